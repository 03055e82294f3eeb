/*
 * loop/llm_loop_int.h - the state of the agent loop, and the files that it is made of:
 *
 *   llm_loop.c     events, the start, the end, messages while it works
 *   llm_model.c    one model call: text, retries, the end of it
 *   llm_compact.c  the summary of older messages
 *   llm_calls.c    the tool calls of a model turn, from their check to their results
 *   llm_ask.c      questions to the caller, and their answers
 *   llm_emit.c     events and messages
 *   llm_state.c    save and load
 */
#pragma once

#include "base/limits.h"
#include "base/list.h"
#include "loop/llm_loop.h"
#include "model/calls.h"
#include "model/fold.h"
#include "model/names.h"
#include "json/build.h"

#define LLM_MAX_SEEN 32 /* ids of messages, to recognise one that comes again */
#define LLM_MAX_CALLS 1000
#define LLM_MAX_REPEATS 3 /* of an idempotent call whose outcome is unknown */

/*
 *   NEW ─► MODEL ◄─► RETRY
 *            │ ▲
 *            ▼ │
 *          TOOLS ◄─► WAITING      all of them ─► OVER
 */
enum llm_phase { LLM_NEW, LLM_MODEL, LLM_RETRY, LLM_TOOLS, LLM_WAITING, LLM_OVER };

enum llm_call_state {
    LLM_CALL_READY,    /* may start */
    LLM_CALL_STARTED,  /* its start waits for COMMITTED */
    LLM_CALL_RUNNING,  /* saved like STARTED: its outcome is unknown to the next process */
    LLM_CALL_APPROVAL, /* these four wait for the caller */
    LLM_CALL_QUESTION,
    LLM_CALL_AUTH,
    LLM_CALL_CALLER,
    LLM_CALL_DONE
};

/* A call of the current model turn. Everything is in the arena `turn`. */
struct llm_call {
    dgm_str id, name;
    const dgm_json *arguments; /* an object; the text, if it is not one */
    enum llm_call_state state;
    dgm_llm_tool_kind kind;
    bool is_idempotent;
    bool is_shown;   /* in the history: calls of the server's tools, and calls that are wrong */
    bool is_changed; /* the user approved it with other arguments */
    bool has_start;  /* tool-start was emitted */
    uint8_t repeats; /* it ran before: in another process, or the driver lost it */
    dgm_str agent_name, agent_url;
    /* The question: of ask_user, of request_auth, or of the tool itself (from_tool). */
    bool from_tool;
    dgm_str question, url, scheme;
    const dgm_json *choices, *schema, *asked_state;
    /* The answer to the tool's question, for ANSWER_TOOL after the commit. */
    bool has_answer;
    dgm_llm_answer_kind answer;
    dgm_str answer_text;
    const dgm_json *answer_value;
    /* DONE */
    bool is_error;
    const dgm_json *output; /* a string, or any value */
    dgm_parts files;
};

struct dgm_llm_loop {
    dgm_llm_options options; /* limits have their values; tools: copied */
    dgm_arena *tools_arena;
    dgm_arena *arena;   /* ids and messages */
    dgm_arena *turn;    /* of the current model turn: reset with each */
    dgm_arena *scratch; /* of the step */
    dgm_llm_sink sink;  /* of the step */
    enum llm_phase phase;
    dgm_task_state state; /* as emitted last */
    dgm_str task_id, context_id;
    dgm_messages messages; /* for the model; in arena */
    size_t bytes;          /* of them, as JSON */
    dgm_messages queued;   /* came while it worked; in arena */
    dgm_str seen[LLM_MAX_SEEN];
    size_t n_seen; /* all that were seen: the next one goes to n_seen % LLM_MAX_SEEN */

    uint32_t iteration;    /* of the task; from 1 */
    uint32_t turn_first;   /* the first iteration of this turn */
    uint64_t tokens;       /* used by the task */
    uint64_t input_tokens; /* of the last model call */
    uint32_t questions;    /* emitted so far: for ids */
    bool has_output;       /* text was shown in this task */
    dgm_buf answer;        /* texts of the complete model calls of this turn */
    uint32_t answer_texts; /* how many they are */

    /* The model call. */
    uint32_t upstream; /* that it goes to */
    uint32_t tried;    /* upstreams that failed in this call */
    uint32_t attempt;
    bool is_calling; /* the driver has it */
    bool is_summary;
    bool was_compacted; /* in this iteration: not again */
    bool is_open;       /* its artifact has started */
    bool is_stale;      /* the log has text of this artifact, by a process before */
    dgm_str stale_text; /* that text; in turn */
    char artifact_id[32];
    dgm_buf text;
    dgm_artifact_update chunk; /* the last one of the text: the next differs only in its content */
    dgm_part chunk_part;
    size_t summary_cut; /* messages before this one are summarised */

    /* Its calls: first as the model sent them, then checked. In turn. */
    struct llm_call *calls;
    size_t n_calls;
    dgm_llm_call *raw;
    size_t n_raw;
    bool is_committing;

    bool is_loaded; /* and not stepped since */
    dgm_buf saved;  /* the text of SAVE */
};

/* ---- llm_emit.c -------------------------------------------------------------------------------------------------- */

void dgm_llm_act(dgm_llm_loop *l, dgm_llm_action action);
void dgm_llm_emit_status(dgm_llm_loop *l, dgm_task_state state, dgm_message *m,
                         const dgm_json *metadata);
/* A status whose message is this text; is_error: also its metadata.error. */
void dgm_llm_emit_sentence(dgm_llm_loop *l, dgm_task_state state, dgm_str text, bool is_error);
void dgm_llm_emit_chunk(dgm_llm_loop *l, dgm_str text, bool append, bool is_last);
/* An artifact of its own, complete. */
void dgm_llm_emit_files(dgm_llm_loop *l, dgm_str artifact_id, dgm_str name, dgm_parts files);
void dgm_llm_emit_internal(dgm_llm_loop *l, dgm_internal *it);
void dgm_llm_emit_counted(dgm_llm_loop *l, dgm_internal_kind kind); /* with the iteration */
void dgm_llm_emit_history(dgm_llm_loop *l, dgm_message *m);
void dgm_llm_note(dgm_llm_loop *l, const char *fmt, ...) DGM_PRINTF(2, 3);
/* "<task id>-<kind><a>" or "...<a>-<b>"; b < 0: without. In the scratch arena. */
dgm_str dgm_llm_id(dgm_llm_loop *l, const char *kind, uint32_t a, int b);
dgm_part dgm_llm_text_part(dgm_str text);

/* ---- messages (llm_emit.c) --------------------------------------------------------------------------------------- */

size_t dgm_llm_message_bytes(dgm_llm_loop *l, const dgm_message *m);
void dgm_llm_add_message(dgm_llm_loop *l, const dgm_message *m); /* a copy, with an id */
/* Text parts, one after the other; in the arena. */
dgm_str dgm_llm_text_of(dgm_arena *a, const dgm_message *m);
/* A text as JSON string, a string as its text, another value as JSON text. */
dgm_str dgm_llm_value_text(dgm_arena *a, const dgm_json *v);
/* At most max bytes of the text, cut between two characters, with a sentence about the rest. In the arena. */
dgm_str dgm_llm_cut(dgm_arena *a, dgm_str text, size_t max);

/* ---- llm_loop.c -------------------------------------------------------------------------------------------------- */

/* False: it is too large, and the task has failed. */
bool dgm_llm_save_now(dgm_llm_loop *l);
/* Stops everything and ends the task. text: of the status; absent: none. */
void dgm_llm_terminate(dgm_llm_loop *l, dgm_task_state state, dgm_str text);
void dgm_llm_fail(dgm_llm_loop *l, const char *fmt, ...) DGM_PRINTF(2, 3);
bool dgm_llm_input_fits(dgm_llm_loop *l, const dgm_message *m);
/* Puts the message into the queue, for the next model call. False: nothing in it is for the model. */
bool dgm_llm_queue(dgm_llm_loop *l, const dgm_message *m);

/* ---- llm_model.c ------------------------------------------------------------------------------------------------- */

/* The next iteration: limits, compaction, the call. */
void dgm_llm_next_iteration(dgm_llm_loop *l);
/* The iteration's call, again or for the first time, without a new count. */
void dgm_llm_call_model(dgm_llm_loop *l);
void dgm_llm_send_call(dgm_llm_loop *l); /* CALL_MODEL with the current upstream and attempt */
void dgm_llm_on_text(dgm_llm_loop *l, dgm_str text);
void dgm_llm_on_reasoning(dgm_llm_loop *l, dgm_str text);
void dgm_llm_on_call(dgm_llm_loop *l, const dgm_llm_call *call);
void dgm_llm_on_end(dgm_llm_loop *l, const dgm_llm_end *end);
void dgm_llm_on_failed(dgm_llm_loop *l, const dgm_llm_failure *f);
void dgm_llm_close_text(dgm_llm_loop *l, bool has_ended);
void dgm_llm_name_artifact(dgm_llm_loop *l);

/* ---- llm_compact.c ----------------------------------------------------------------------------------------------- */

bool dgm_llm_compact(dgm_llm_loop *l, bool is_forced); /* true: the summary is being made */
void dgm_llm_on_summary(dgm_llm_loop *l, bool is_good);

/* ---- llm_calls.c ------------------------------------------------------------------------------------------------- */

void dgm_llm_check_calls(dgm_llm_loop *l, const dgm_llm_end *end);
void dgm_llm_pump(dgm_llm_loop *l); /* starts, asks, or goes on with the model */
void dgm_llm_build_call(dgm_json_build *b, const struct llm_call *c); /* of `tool_calls` */
struct llm_call *dgm_llm_find_call(dgm_llm_loop *l, dgm_str id);
dgm_str dgm_llm_call_key(dgm_llm_loop *l, const struct llm_call *c);
void dgm_llm_set_output(dgm_llm_loop *l, struct llm_call *c, bool is_error, dgm_str text);
void dgm_llm_finish_call(dgm_llm_loop *l, struct llm_call *c, const dgm_llm_result *r);
void dgm_llm_on_committed(dgm_llm_loop *l);
void dgm_llm_on_result(dgm_llm_loop *l, const dgm_llm_result *r);
void dgm_llm_on_unknown(dgm_llm_loop *l, dgm_str call_id);
void dgm_llm_stop_calls(dgm_llm_loop *l);
/* After a load: results that the log has, calls whose outcome is unknown. */
void dgm_llm_resume_calls(dgm_llm_loop *l, const dgm_task *task);
bool dgm_llm_arguments_fit(dgm_llm_loop *l, dgm_str tool, const dgm_json *arguments,
                           dgm_str *ret_why);

/* ---- llm_ask.c --------------------------------------------------------------------------------------------------- */

enum llm_ask {
    LLM_ASK,       /* the next question */
    LLM_ASK_AGAIN, /* the answer was not understood */
    LLM_ASK_REPEAT /* the same question: the log may not have it */
};
bool dgm_llm_ask(dgm_llm_loop *l, enum llm_ask how); /* false: there is nothing to ask */
/* Reads the arguments of ask_user or request_auth into the call; false: they are wrong, and the call is done. */
bool dgm_llm_read_question(dgm_llm_loop *l, struct llm_call *c);
void dgm_llm_on_question(dgm_llm_loop *l, const dgm_llm_question *q);
void dgm_llm_on_answer(dgm_llm_loop *l, const dgm_message *m);
