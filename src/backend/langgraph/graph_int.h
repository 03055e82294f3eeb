/*
 * backend/langgraph/graph_int.h - shared by the files of the mapping.
 *
 *   graph_input.c    the turn: input, a2a_inbox, answers to interrupts
 *   graph_content.c  messages of LangChain in their flat form
 *   graph_stream.c   `messages` and `updates`: the stream-delta artifact, tool calls
 *   graph_custom.c   `custom`: the payloads of the emit functions
 *   graph_outbox.c   a2a_outbox, and the messages that the state gets of it
 *   graph_end.c      the result: the answer, interrupts, failures
 */
#pragma once

#include "backend/langgraph/graph_map.h"
#include "model/reconcile.h"

#define GRAPH_DELTA_NAME "Stream Delta"
#define GRAPH_DATA_NEXT "next"

static inline yyjson_val *graph_val(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

/* ---- graph_content.c: one flat message ------------------------------------------------------------------------------- */

typedef enum dgm_graph_role {
    DGM_GRAPH_OTHER,
    DGM_GRAPH_AI,
    DGM_GRAPH_HUMAN,
    DGM_GRAPH_TOOL
} dgm_graph_role;

dgm_graph_role dgm_graph_role_of(const dgm_json *message);
bool dgm_graph_is_chunk(const dgm_json *message);
/* The text, without reasoning; in the arena or the message's. */
dgm_str dgm_graph_text(dgm_arena *a, const dgm_json *message);
dgm_str dgm_graph_reasoning(dgm_arena *a, const dgm_json *message);
/* Text and files. */
dgm_parts dgm_graph_parts(dgm_arena *a, const dgm_json *message);
/* The arguments of a call: an object, or a string if they are not JSON. */
const dgm_json *dgm_graph_arguments(dgm_arena *a, const dgm_json *args);

/* ---- the state of a run's output --------------------------------------------------------------------------------------- */

/* A call of a tool that a model makes. */
struct graph_tool {
    struct graph_tool *next;
    struct graph_call *call; /* the model call whose chunks it comes in; NULL: it came complete */
    int64_t index;           /* in these chunks */
    dgm_str id, name;
    dgm_buf arguments;
    bool is_started, is_completed;
};

/* A call of a model, or a text that the graph emits in chunks. */
struct graph_call {
    struct graph_call *next; /* in the order in which they started */
    dgm_str src, ns, node;
    int64_t step;
    dgm_str ids[2]; /* of its chunks: made by LangChain, made by the provider */
    dgm_sum sum;    /* of all of its text */
    dgm_buf text;   /* the same, while it may be the answer */
    dgm_buf held;   /* the part of it that waits for another call */
    dgm_buf held_reasoning;
    bool is_explicit; /* emitted by emit_message */
    bool is_done;     /* no more chunks */
    bool is_shown;    /* it has been the current one */
    bool has_text;    /* its first chunk of text was emitted */
};

/* An artifact of emit_file or emit_data that is not complete. */
struct graph_artifact {
    struct graph_artifact *next;
    dgm_str kind, name, id;
    bool is_open;
    unsigned chunks;
    char carried[4]; /* characters of base64 that wait for the next chunk */
    size_t n_carried;
};

struct dgm_graph_out {
    dgm_arena *arena, *scratch; /* scratch: of one call from outside */
    dgm_graph_sink sink;
    dgm_str task_id, context_id;
    dgm_strs tools; /* names of the caller's */
    bool has_messages, is_rerun;
    dgm_mint mint;
    /* ids of messages in the task's history, and of those that were emitted */
    dgm_strs known;
    dgm_artifacts before; /* of a run that may have emitted them already */
    /* graph_stream.c */
    struct graph_call *calls, *current;
    struct graph_call *answer; /* the last one with text that was shown */
    size_t n_calls, held_bytes;
    enum {
        DELTA_NONE,
        DELTA_MAYBE,
        DELTA_OPEN,
        DELTA_CLOSED
    } delta; /* MAYBE: in a process that was lost */
    bool warned_held, restarts_text;
    struct graph_tool *tool_calls;
    size_t n_tool_calls;
    int32_t iteration;
    /* graph_custom.c */
    struct graph_artifact *artifacts;
    size_t n_artifacts, n_ids;
    dgm_message emitted; /* the last complete message of emit_message; no parts: none */
    bool has_emitted, emitted_is_past; /* past: another status followed it */
    /* graph_end.c: of the last status */
    dgm_task_state state;
    dgm_message final;
    bool has_final, is_ended;
    const dgm_json *final_metadata;
};

/* graph_out.c */
void dgm_graph_emit(dgm_graph_out *o, dgm_event event);
void dgm_graph_emit_internal(dgm_graph_out *o, dgm_internal internal);
/* message and metadata may be NULL */
void dgm_graph_emit_status(dgm_graph_out *o, dgm_task_state state, dgm_message *message,
                           const dgm_json *metadata);
void dgm_graph_emit_artifact(dgm_graph_out *o, const dgm_artifact *artifact, bool append,
                             bool last);
/* A complete message of the agent while it works: content for every client, and in the history. */
void dgm_graph_emit_message(dgm_graph_out *o, dgm_message *message);
void dgm_graph_note(dgm_graph_out *o, const char *fmt, ...) DGM_PRINTF(2, 3);
bool dgm_graph_knows(const dgm_graph_out *o, dgm_str message_id);
void dgm_graph_add_known(dgm_graph_out *o, dgm_str message_id);
/* Metadata of the graph without the server's keys; NULL if nothing remains. */
const dgm_json *dgm_graph_clean(dgm_graph_out *o, const dgm_json *metadata);

/* graph_stream.c */
void dgm_graph_on_message(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data);
void dgm_graph_on_updates(dgm_graph_out *o, const dgm_json *ns, const dgm_json *data);
/* Chunks that emit_message sends. */
void dgm_graph_on_chunk(dgm_graph_out *o, const dgm_json *message);
/* A complete message replaces the text that was streamed so far: the next chunk restarts the artifact. */
void dgm_graph_forget_text(dgm_graph_out *o);
/* The run starts again: what is held back is dropped, and the next text replaces the one that was shown. */
void dgm_graph_drop_text(dgm_graph_out *o);
/* Emits everything that is held back. */
void dgm_graph_flush(dgm_graph_out *o);
/* The last chunk of the stream-delta artifact, if it is open. */
void dgm_graph_close_delta(dgm_graph_out *o);
/* Calls and results of messages that were not streamed. */
void dgm_graph_show_tools(dgm_graph_out *o, const dgm_json *message);
void dgm_graph_stream_free(dgm_graph_out *o);

/* graph_custom.c */
void dgm_graph_on_custom(dgm_graph_out *o, const dgm_json *value);

/* graph_outbox.c: applies an outbox. False: it is neither a Message nor a Task, and nothing was done. sync: messages for the state are added. */
bool dgm_graph_apply_outbox(dgm_graph_out *o, dgm_arena *a, const dgm_json *outbox, bool is_end,
                            dgm_buf *sync);

/* A message as LangChain's flat messages, appended with a comma: one with its text and its calls, then one for each result. */
void dgm_graph_put_flat(dgm_arena *a, dgm_buf *b, const dgm_message *m);

/* graph_input.c */
/* The data of the question that a task waits with: {"interrupts": [{"id", "value"}]}; NULL: it asks no such question. */
const dgm_json *dgm_graph_pending(const dgm_task *task);
