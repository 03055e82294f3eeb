/*
 * wire/service.h - one turn with a service that speaks a format of ours: the request that it is sent, and its answer as
 * events of A2A.
 *
 *   message, history, metadata ── canonical input ── the format's write_request ──► body of the request
 *   values of the answer ── the format's decoder ── canonical events ── canon/events_to_records.h ──► events
 *
 * Pure, as codecs are. The caller sends and reads the bytes.
 */
#pragma once

#include "wire/codec.h"

/* ---- the request --------------------------------------------------------------------------------------------- */

typedef struct dgm_service_turn {
    const dgm_codec *codec;
    const dgm_message *message;
    dgm_messages history; /* before the message, oldest first */
    const dgm_task *task; /* that the message continues; NULL: none */
    /* Of the caller's request: DGM_META_... of model/names.h; may be NULL. */
    const dgm_json *metadata;
    dgm_str context_id; /* of the conversation, for formats that name it */
    dgm_str run_id;
    dgm_str model; /* OpenAI's formats */
    /* The service stores the conversation: only the message is sent, and one of the next two. Absent if not known. */
    bool has_memory;
    dgm_str previous_id;    /* openai-responses: the response before */
    dgm_str remote_task_id; /* A2A: the service's task that waits for this message */
    /* ag-ui: the state after the turn before, for callers that do not send one; NULL: unknown. May be set later than the
     * answer is opened. */
    const dgm_json *state;
} dgm_service_turn;

/* Appends the body. Asks for a stream where the format has a member for it. */
dgm_code dgm_service_write_request(const dgm_service_turn *turn, dgm_buf *out, dgm_err *err);

/* The metadata of a question that holds the service's interrupts, with their ids: the answer needs them. */
#define DGM_SERVICE_INTERRUPTS "ag-ui:interrupts"
/* The id of an interrupt that came as AG-UI's CUSTOM event of this name. */
#define DGM_SERVICE_CUSTOM_INTERRUPT "on_interrupt"

/* ---- the answer ----------------------------------------------------------------------------------------------- */

typedef struct dgm_service_answer dgm_service_answer;

typedef struct dgm_service_answer_params {
    const dgm_codec *codec;
    /* For the lifetime of the answer: the turn that it answers. */
    const dgm_service_turn *turn;
    /* Gets the events; they live until it returns. There is no `task` event: the answer is the agent's part only. */
    dgm_code (*on_event)(void *arg, const dgm_event *event);
    /* Makes the service's own words about an error safe for callers. The result is in the arena or borrowed. */
    dgm_str (*clean_error)(void *arg, dgm_arena *a, dgm_str text);
    void *arg;
    uint64_t seed; /* of ids that the service leaves out */
} dgm_service_answer_params;

dgm_service_answer *dgm_service_answer_new(const dgm_service_answer_params *params);
void dgm_service_answer_free(dgm_service_answer *s); /* NULL is allowed */

/* One JSON value: an event, or the whole answer. Fails on values that are not of the format, and with what on_event
 * returns; nothing else is accepted after that, except dgm_service_answer_stop(). */
dgm_code dgm_service_answer_feed(dgm_service_answer *s, dgm_str text, dgm_err *err);
/* The mark that ends the format's streams was read. */
dgm_code dgm_service_answer_done(dgm_service_answer *s, dgm_err *err);
/* The answer has ended well: an answer that is not complete fails. */
dgm_code dgm_service_answer_end(dgm_service_answer *s, dgm_err *err);
/* It ends here, whatever is missing: open texts are closed, then the state is reported. error: of a failed task. */
dgm_code dgm_service_answer_stop(dgm_service_answer *s, dgm_task_state state, dgm_str error,
                                 dgm_err *err);

/* A terminal or an interrupted state was emitted: what follows is ignored. */
bool dgm_service_answer_is_over(const dgm_service_answer *s);
/* Anything of the format was read. */
bool dgm_service_answer_has_begun(const dgm_service_answer *s);
/* The error that the answer failed with, as callers see it; absent: it did not fail. */
dgm_str dgm_service_answer_error(const dgm_service_answer *s);
/* openai-responses: the id of the response. A2A: the id of the task. Absent: unknown. */
dgm_str dgm_service_answer_id(const dgm_service_answer *s);

/* ag-ui: the state after this turn, as JSON, if the service changed it and it is not too large. Absent otherwise. */
dgm_str dgm_service_answer_state(const dgm_service_answer *s);

DGM_DEFINE_AUTO(dgm_service_answer, dgm_service_answer_free)
