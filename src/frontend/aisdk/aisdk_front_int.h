/*
 * frontend/aisdk/aisdk_front_int.h - one request of a chat on its way.
 *
 *   aisdk_front.c           paths and refusals
 *   aisdk_front_read.c      what a request says, what is noted of a turn
 *   aisdk_front_chat.c      requests; streams, also resumed ones; canceling
 *   aisdk_front_before.c    what a message had before it went on
 */
#pragma once

#include "base/limits.h"
#include "frontend/aisdk/aisdk_front.h"
#include "wire/aisdk/aisdk.h"

#define AISDK_PROTOCOL "ai-sdk"

/* ---- aisdk_front.c ----------------------------------------------------------------------------------------- */

/* Lives in the exchange's arena, until it has its response or a turn is streamed. */
struct aisdk_ask {
    dgm_front_request q; /* q.agent is never NULL */
    dgm_str chat;        /* its id: the context's */
};

void dgm_aisdk_refuse(dgm_http_exchange *x, const dgm_err *err, const dgm_http_header *headers,
                      size_t n);
void dgm_aisdk_send_nothing(dgm_http_exchange *x); /* 204 */

/* ---- aisdk_front_read.c -------------------------------------------------------------------------------------- */

/* What is noted of a turn, so that it can be streamed again. */
struct aisdk_note {
    dgm_str message_id; /* of the UI message that it writes */
    dgm_strs tools;     /* names of the caller's tools */
    dgm_strs results;   /* calls of the UI message that the caller has answered: it goes on */
    bool is_approval;   /* it goes on with the caller's decisions about calls of the agent */
    dgm_strs decided;   /* these calls */
    dgm_strs denied;    /* some of them */
};
dgm_str dgm_aisdk_note_text(dgm_arena *a, const struct aisdk_note *note);
struct aisdk_note dgm_aisdk_note_read(dgm_arena *a, dgm_str text);

/* The UI message that answers a message of the user's: so streams and histories name it alike. */
dgm_str dgm_aisdk_answer_id(dgm_arena *a, dgm_str user_message_id);

struct aisdk_request {
    dgm_canon_input input;
    dgm_strs decided; /* calls of the last message that the user decided about */
    bool *is_denied;  /* for each */
    struct aisdk_note note;
    bool again; /* regenerated or edited: a new turn, though the message is known */
};
dgm_code dgm_aisdk_read_request(dgm_reader *r, yyjson_val *body, struct aisdk_request *ret);

/* ---- aisdk_front_chat.c ---------------------------------------------------------------------------------------- */

void dgm_aisdk_chat(struct aisdk_ask *ask);
void dgm_aisdk_stream(struct aisdk_ask *ask);
void dgm_aisdk_cancel(struct aisdk_ask *ask);

/* ---- aisdk_front_before.c: messages -------------------------------------------------------------------------------------- */

void dgm_aisdk_messages(struct aisdk_ask *ask);
/* As the client has them: answers are named after what they answer, and a message that was sent again, or changed,
 * replaces the message there and all after it. */
dgm_canon_messages dgm_aisdk_as_seen(dgm_arena *a, const dgm_canon_messages *messages);

/* ---- aisdk_front_before.c ------------------------------------------------------------------------------------------ */

/* What the UI message had before the turn that begins at first_seq. */
dgm_code dgm_aisdk_say_before(dgm_log *log, uint64_t first_seq, const struct aisdk_note *note,
                              dgm_answer_source source, dgm_canon_sink next);
