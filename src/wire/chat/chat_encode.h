/* wire/chat/chat_encode.h - the inside of the encoder: what its files share. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "wire/codec.h"

/* A text message, in the order they began. */
struct chat_text {
    dgm_str id;
    bool foreign;  /* not the assistant's: no part of the answer */
    bool instead;  /* `text` replaces what was streamed */
    dgm_buf text;  /* a completion has it from the start */
    bool open;     /* its END has not come */
    bool artifact; /* of an artifact: agents often leave out its end */
    bool waits;    /* another text is open: this one is emitted after it */
};

/* An address that the answer links to. */
struct chat_citation {
    size_t text; /* index */
    dgm_str url, title;
    uint64_t start, end; /* in characters of the whole answer; a completion finds them at its end */
};

struct chat_call {
    dgm_str id, name;
    dgm_buf arguments;
    bool answered; /* by the agent itself */
    bool given;    /* the client knows of it */
    bool asked;    /* the client is to make it */
    size_t index;
};

typedef struct dgm_chat_encoder {
    dgm_stream_params params;
    dgm_frame_sink sink;
    dgm_code rc;
    dgm_err *err;
    dgm_arena *arena; /* of this run */
    dgm_buf model, task_id;
    /* Begins with what all chunks begin with: up to `top` the completion, up to `head` its choice. */
    dgm_buf out;
    size_t top, head;

    dgm_str run_id, thread_id;
    bool begun, finished;
    struct chat_text *texts;
    size_t n_texts, cap_texts, speaker; /* index of the text that spoke last */
    size_t n_waiting;                   /* texts that wait for the speaker's end */
    bool spoke;
    dgm_map texts_by_id;
    uint64_t n_chars; /* of the answer so far, in a stream */
    dgm_map
        artifacts; /* by id: how many of its parts were emitted since it started, or started again */
    struct chat_citation *citations;
    size_t n_citations, cap_citations;
    struct chat_call *calls;
    size_t n_calls, cap_calls, n_given;
    dgm_map calls_by_id;
    dgm_buf thinker;   /* id of the reasoning that was emitted last; empty: progress */
    dgm_buf progress;  /* the last text of it */
    dgm_buf reasoning; /* a completion's */
    bool thought;
    const char *finish_reason; /* other than stop and tool_calls; NULL: none */
    size_t kept;               /* bytes that wait for the end */
} dgm_chat_encoder;

/* chat_encode.c */
void dgm_chat_emit(dgm_chat_encoder *e);

/* chat_encode_events.c */
/* Text that cannot be emitted yet, or may have to be compared. */
void dgm_chat_keep(dgm_chat_encoder *e, dgm_buf *b, dgm_str text);
struct chat_text *dgm_chat_text_of(dgm_chat_encoder *e, dgm_str id);
void dgm_chat_say(dgm_chat_encoder *e, const struct chat_text *t, dgm_str text);
void dgm_chat_start_text(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_add_text(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_end_text(dgm_chat_encoder *e, const dgm_canon_event *event);
/* Texts that wait for another one to end. all: the run ends, none waits any longer. */
void dgm_chat_say_waiting(dgm_chat_encoder *e, bool all);
void dgm_chat_correct(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_say_corrected(dgm_chat_encoder *e);
void dgm_chat_add_reasoning(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_add_progress(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_start_call(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_add_arguments(dgm_chat_encoder *e, const dgm_canon_event *event);
void dgm_chat_answer(dgm_chat_encoder *e, dgm_str call_id);
/* Which calls are the client's? Those that the run names; if it names none: all that were not answered. */
void dgm_chat_ask_calls(dgm_chat_encoder *e, dgm_strs pending);

/* chat_artifacts.c */
void dgm_chat_add_artifact(dgm_chat_encoder *e, const dgm_canon_event *event);
/* ,"annotations":[...]; nothing where nothing is linked to. */
void dgm_chat_put_citations(dgm_chat_encoder *e);
/* The text of this index is emitted now, after a gap of so many characters. */
void dgm_chat_place_citations(dgm_chat_encoder *e, size_t text, unsigned gap, dgm_str said);

/* chat_chunks.c: one chunk each */
void dgm_chat_put_top(dgm_chat_encoder *e, const dgm_canon_event *started);
void dgm_chat_chunk_role(dgm_chat_encoder *e);
void dgm_chat_chunk_text(dgm_chat_encoder *e, dgm_str member, bool apart, dgm_str text);
void dgm_chat_chunk_call(dgm_chat_encoder *e, const struct chat_call *c);
void dgm_chat_chunk_arguments(dgm_chat_encoder *e, const struct chat_call *c, dgm_str delta);
void dgm_chat_chunk_finish(dgm_chat_encoder *e, const char *reason, const char *state);
void dgm_chat_chunk_usage(dgm_chat_encoder *e, const dgm_canon_usages *usages);
void dgm_chat_put_error(dgm_chat_encoder *e, dgm_str message, dgm_str code);

/* chat_completion.c: all of it */
void dgm_chat_completion(dgm_chat_encoder *e, const char *reason, dgm_str refusal,
                         const char *state, const dgm_canon_usages *usages);

/* ,"usage":{...}; false: there is nothing to tell. */
bool dgm_chat_put_usage(dgm_buf *b, const dgm_canon_usages *usages);
/* ,"a2a":{...} in this state: of a run that waits for an answer, of every one if its task is known. */
void dgm_chat_put_a2a(dgm_chat_encoder *e, const char *state);
/* "id":...,"type":"function","function":{...} */
void dgm_chat_put_call(dgm_buf *b, const struct chat_call *c);

/* The codec's handles. */
void *dgm_chat_encoder_new(const dgm_stream_params *params, dgm_frame_sink sink);
dgm_code dgm_chat_encoder_feed(void *encoder, const dgm_canon_event *event, dgm_err *err);
dgm_code dgm_chat_encoder_end(void *encoder, dgm_err *err);
void dgm_chat_encoder_free(void *encoder);
