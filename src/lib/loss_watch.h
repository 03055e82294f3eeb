/*
 * lib/loss_watch.h - which rows of dgm_format_losses() apply to the input that is being converted.
 *
 * A row is an object, a pattern and a condition. The watch matches the rows of the path that a value takes
 * (between dialects of A2A, directly to or from chat messages, or through canonical events) against the members that
 * the value has. Canonical events are matched in AG-UI's names, because the rows of every target use them. Memory is one
 * counter per row that was seen, however long the stream is. There is a watch only if losses were requested.
 */
#pragma once

#include "wire/formats.h"
#include "wire/frames/frames.h"
#include "wire/stream.h"

typedef enum dgm_loss_path {
    DGM_LOSS_A2A,     /* one dialect of A2A to another */
    DGM_LOSS_DIRECT,  /* A2A to or from chat messages */
    DGM_LOSS_READING, /* the first half of the path through canonical events */
} dgm_loss_path;

typedef struct dgm_loss_watch dgm_loss_watch;

dgm_loss_watch *dgm_loss_watch_new(void);
void dgm_loss_watch_free(dgm_loss_watch *w); /* NULL is fine */
size_t dgm_loss_watch_seen(const dgm_loss_watch *w, const dgm_loss_seen **ret_seen);

/* A value of the input, from here to dgm_loss_watch_end(). `r` reports its unknown members to the watch. */
void dgm_loss_watch_start(dgm_loss_watch *w, const dgm_frames_item *item, yyjson_val *value,
                          dgm_reader *r);
/* The element of an array that is converted next; NULL: the whole value. */
void dgm_loss_watch_below(dgm_loss_watch *w, const dgm_at *at);
/* Unknown members and types that `r` met become rows, too. */
void dgm_loss_watch_end(dgm_loss_watch *w, const dgm_reader *r);

/* An object of A2A, as it was decoded. */
void dgm_loss_watch_a2a(dgm_loss_watch *w, dgm_loss_path path, const dgm_codec *from,
                        const dgm_codec *to, yyjson_val *value, const dgm_frame *frame);
/* Chat messages, a chat request or a chat completion on the direct path. */
void dgm_loss_watch_chat(dgm_loss_watch *w, const dgm_codec *from, const dgm_codec *to,
                         yyjson_val *value);
/* A value of another format; messages may be a list. */
void dgm_loss_watch_canon(dgm_loss_watch *w, const dgm_codec *from, const dgm_codec *to,
                          yyjson_val *value, dgm_form form);

/* A canonical event came out of the value. */
void dgm_loss_watch_passed(dgm_loss_watch *w);

/* loss_writing.c: what streams (wire/stream.h) write, in AG-UI's names. */
typedef struct dgm_loss_writing dgm_loss_writing;

dgm_loss_writing *dgm_loss_writing_new(dgm_loss_watch *w, const dgm_codec *to);
void dgm_loss_writing_free(dgm_loss_writing *l); /* NULL is fine */
/* Sets the hooks of a stream. */
void dgm_loss_writing_observe(dgm_loss_writing *l, dgm_stream_options *options);
/* For it: a value in AG-UI's names. */
void dgm_loss_watch_written(dgm_loss_watch *w, const dgm_codec *to, yyjson_val *value,
                            dgm_form form);
