/*
 * canon/records_to_events_int.h - the inside of from_records: what its files share.
 *
 * Whatever goes wrong is remembered in rc; from then on nothing is given any more, so that the files
 * need not ask after every step.
 */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "canon/events_to_messages.h"
#include "canon/message_content.h"
#include "canon/records_to_events.h"
#include "model/text_pieces.h"
#include "json/json.h"

/* A text message. Its index is that of its stream in the reconciler. */
struct from_text {
    dgm_str id;
    dgm_str artifact_id; /* absent: of a message or a status */
    dgm_str artifact_name;
    bool open;   /* START was given, END was not */
    bool sealed; /* nothing more is expected: END is due when something else comes */
};

struct from_call {
    dgm_str id, name;
    bool ended, answered;
    size_t turn;         /* how many messages of the user came before it */
    dgm_buf text;        /* fragments of arguments given so far */
    dgm_member *members; /* arguments that came as objects, merged */
    size_t n_members;
    dgm_map by_key; /* of members */
};

struct from_subagent {
    dgm_str name, url, run_id;
    bool open;
};

struct dgm_records_to_events {
    dgm_records_params params;
    dgm_arena *arena;   /* lives as long as the machine */
    dgm_arena *scratch; /* emptied after every event */
    dgm_canon_sink sink;
    dgm_code rc;
    dgm_err *err;

    dgm_str thread_id, run_id, task_id;
    unsigned turn;
    bool started, finished, interrupted, has_task, task_seen;

    /* TEXT_MESSAGE_CONTENT, of which streams are made: only what differs is filled in. An event is as large
     * as the largest, and to clear it each time would take longer than the rest. */
    dgm_canon_event more;

    dgm_reconcile *texts_said;
    struct from_text *texts;
    size_t n_texts, cap_texts;
    struct from_file *files; /* whose chunks are not complete */
    dgm_map artifacts;       /* artifactId -> text */
    dgm_map ids;             /* messageId -> 0: ids in use */
    dgm_text_pieces pieces;  /* of status and message texts */
    bool restarts;           /* the text of an artifact starts again, and more of it follows */
    size_t touched;          /* the text that was extended last; or DGM_NO_STREAM */

    struct from_call *calls;
    size_t n_calls, cap_calls;
    dgm_map calls_by_id;
    size_t user_messages; /* so far */
    dgm_str parent; /* the assistant message that calls belong to; empty: the next makes one */
    bool model_calls_sent, after_result;
    bool parent_done; /* it came in a message that was complete */
    dgm_buf speaker;  /* id of that message: what else it says is of the same parent */
    dgm_str speakers_parent;
    bool answered; /* by a message, without a task */

    dgm_str reasoning; /* id of what is open */
    dgm_str *steps;    /* open ones */
    size_t n_steps, cap_steps;
    struct from_subagent *subagents;
    size_t n_subagents, cap_subagents;
    size_t n_ids; /* made up so far */
    dgm_canon_usages usage;
    dgm_canon_fold *fold;  /* whole_snapshots only */
    size_t snapshot_bytes; /* given in snapshots so far */
};

/* records_to_events.c */
void dgm_from_out(dgm_records_to_events *f, dgm_canon_event *e);
/* "<run>-<letter><number>" */
dgm_str dgm_from_id(dgm_records_to_events *f, char letter);
/* The id, if it is there and no other message has it; else a made up one. */
dgm_str dgm_from_message_id(dgm_records_to_events *f, dgm_str id);
/* Starts the run, if it has not started. A fragment starts one only if `start` is set. */
void dgm_from_begin(dgm_records_to_events *f, dgm_str context_id, dgm_str task_id, bool start);
/* Closes what is open and emits the terminal event. Success: with the calls that the caller makes. */
void dgm_from_finish(dgm_records_to_events *f, dgm_canon_outcome outcome);
void dgm_from_finish_with_error(dgm_records_to_events *f, dgm_str message, dgm_str code);
void dgm_from_custom(dgm_records_to_events *f, dgm_str name, const dgm_json *value);

/* records_to_events_status.c */
bool dgm_from_read(dgm_records_to_events *f, const dgm_message *m, const dgm_at *at,
                   dgm_content *said);
void dgm_from_on_message(dgm_records_to_events *f, const dgm_message *m);
void dgm_from_on_status(dgm_records_to_events *f, const dgm_status *s, const dgm_json *metadata,
                        const dgm_at *at);
void dgm_from_on_task(dgm_records_to_events *f, const dgm_task *t);

/* records_to_events_text.c */
void dgm_from_artifact(dgm_records_to_events *f, const dgm_artifact *artifact, bool append,
                       bool last);
/* A text that is there in whole, as a message of its own. */
void dgm_from_whole_text(dgm_records_to_events *f, dgm_str text, dgm_str message_id);
/* Somebody else's: the user's, or a system message. */
void dgm_from_user_text(dgm_records_to_events *f, dgm_str text, dgm_canon_parts parts,
                        dgm_str message_id, dgm_canon_role role);
/* A piece of the answer by a message or a status. ends: it is complete with this. */
void dgm_from_piece(dgm_records_to_events *f, dgm_str text, dgm_str message_id, bool ends);
/* The authoritative text. is_question: the task waits for an answer. */
void dgm_from_final(dgm_records_to_events *f, dgm_str text, dgm_str message_id, bool is_question);
/* Another call of a model: the next chunk of the artifact aion:stream-delta is another text. */
void dgm_from_end_delta(dgm_records_to_events *f);
void dgm_from_free_files(dgm_records_to_events *f);
void dgm_from_settle_texts(dgm_records_to_events *f); /* END for what is sealed */
void dgm_from_close_texts(dgm_records_to_events *f);

/* records_to_events_calls.c */
/* may_repeat: a call that is over may be made again with the same id. In a run it is not: a status or a
 * message may say again what was called. */
void dgm_from_calls(dgm_records_to_events *f, const dgm_content *said, dgm_str message_id,
                    bool may_repeat);
void dgm_from_results(dgm_records_to_events *f, const dgm_content *said);
void dgm_from_tool_start(dgm_records_to_events *f, const dgm_internal *e);
void dgm_from_tool_complete(dgm_records_to_events *f, const dgm_internal *e);
void dgm_from_close_calls(dgm_records_to_events *f);
/* Fails when one is open whose arguments nothing will complete. */
void dgm_from_check_calls(dgm_records_to_events *f);
void dgm_from_forget_call(struct from_call *c);
bool dgm_from_is_waiting(const dgm_records_to_events *f, dgm_str call_id);
/* All of them; the list is made in scratch. */
dgm_strs dgm_from_waiting_calls(dgm_records_to_events *f);

/* records_to_events_progress.c: events that do not belong to the answer */
void dgm_from_status_progress(dgm_records_to_events *f, const dgm_message *m);
void dgm_from_reasoning(dgm_records_to_events *f, dgm_str text);
void dgm_from_end_reasoning(dgm_records_to_events *f);
void dgm_from_step(dgm_records_to_events *f, dgm_str name, bool begins);
void dgm_from_close_subagents(dgm_records_to_events *f);
void dgm_from_usage(dgm_records_to_events *f, const dgm_json *value);
void dgm_from_state(dgm_records_to_events *f, dgm_str name, const dgm_json *value);
