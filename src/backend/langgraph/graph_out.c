/* backend/langgraph/graph_out.c - the output of a run: what its files share, and its entry points. */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "base/list.h"
#include "model/fold.h"
#include "model/guard.h"
#include "model/stamp.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- emitting --------------------------------------------------------------------------------------------------------------- */

void dgm_graph_emit(dgm_graph_out *o, dgm_event event)
{
    o->sink.emit(o->sink.arg, &event);
}

void dgm_graph_emit_internal(dgm_graph_out *o, dgm_internal internal)
{
    internal.task_id = o->task_id;
    dgm_graph_emit(o, (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = &internal});
}

void dgm_graph_emit_status(dgm_graph_out *o, dgm_task_state state, dgm_message *message,
                           const dgm_json *metadata)
{
    dgm_status_update u = {.task_id = o->task_id,
                           .context_id = o->context_id,
                           .status = {.state = state, .message = message},
                           .metadata = metadata};
    dgm_graph_emit(o, (dgm_event){.kind = DGM_EVENT_STATUS, .status = &u});
    o->emitted_is_past = true;
}

void dgm_graph_emit_artifact(dgm_graph_out *o, const dgm_artifact *artifact, bool append, bool last)
{
    dgm_artifact_update u = {.task_id = o->task_id,
                             .context_id = o->context_id,
                             .artifact = *artifact,
                             .append = append ? DGM_TRUE : DGM_FALSE,
                             .last_chunk = last ? DGM_TRUE : DGM_FALSE};
    dgm_graph_emit(o, (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &u});
}

void dgm_graph_emit_message(dgm_graph_out *o, dgm_message *message)
{
    message->metadata = dgm_metadata_with_text(
        o->scratch, message->metadata, DGM_STR("canonical_type"), DGM_STR("TextMessageEndEvent"));
    dgm_graph_emit_status(o, DGM_STATE_WORKING, message, NULL);
    dgm_graph_add_known(o, message->message_id);
}

void dgm_graph_note(dgm_graph_out *o, const char *fmt, ...)
{
    char line[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    o->sink.note(o->sink.arg, dgm_str_from(line));
}

/* ---- ids ----------------------------------------------------------------------------------------------------------------- */

bool dgm_graph_knows(const dgm_graph_out *o, dgm_str message_id)
{
    for (size_t i = 0; i < o->known.n; i++) {
        if (dgm_str_eq(o->known.at[i], message_id))
            return true;
    }
    return false;
}

void dgm_graph_add_known(dgm_graph_out *o, dgm_str message_id)
{
    if (!message_id.n || o->known.n >= DGM_MAX_LIST_ITEMS)
        return;
    o->known.at = dgm_list_grow(o->arena, o->known.at, o->known.n, sizeof *o->known.at);
    o->known.at[o->known.n++] = dgm_arena_dup(o->arena, message_id);
}

const dgm_json *dgm_graph_clean(dgm_graph_out *o, const dgm_json *metadata)
{
    dgm_guard guard = {0};
    if (!yyjson_is_obj(graph_val(metadata)))
        return NULL;
    return dgm_guard_metadata(&guard, o->scratch, metadata, true);
}

/* ---- new and free ---------------------------------------------------------------------------------------------------------- */

void dgm_graph_out_set_tools(dgm_graph_out *o, const dgm_json *tools)
{
    yyjson_val *tool;
    size_t i, n;
    o->tools = (dgm_strs){dgm_new_n(o->arena, dgm_str, yyjson_arr_size(graph_val(tools))), 0};
    yyjson_arr_foreach (graph_val(tools), i, n, tool)
        o->tools.at[o->tools.n++] = dgm_arena_dup(o->arena, dgm_json_str_member(tool, "name"));
}

/* Artifacts of the task: their number makes ids unique; a run that starts again recognises those that it emitted. */
static void copy_artifacts(dgm_graph_out *o, const dgm_task *task)
{
    o->n_ids = task->artifacts.n;
    if (!o->is_rerun)
        return;
    o->before.at = dgm_new_n(o->arena, dgm_artifact, task->artifacts.n);
    for (size_t i = 0; i < task->artifacts.n; i++) {
        const dgm_artifact *from = &task->artifacts.at[i];
        dgm_message parts = {.parts = from->parts};
        dgm_artifact *to = &o->before.at[o->before.n++];
        *to = (dgm_artifact){.artifact_id = dgm_arena_dup(o->arena, from->artifact_id),
                             .name = dgm_arena_dup(o->arena, from->name),
                             .parts = dgm_message_copy(o->arena, &parts).parts};
    }
}

dgm_graph_out *dgm_graph_out_new(const dgm_graph_options *options, dgm_graph_sink sink)
{
    dgm_arena *a = dgm_arena_new();
    dgm_graph_out *o = dgm_new(a, dgm_graph_out);
    o->arena = a;
    o->scratch = dgm_arena_new();
    o->sink = sink;
    o->task_id = dgm_arena_dup(a, options->task_id);
    o->context_id = dgm_arena_dup(a, options->context_id);
    o->has_messages = options->has_messages;
    o->is_rerun = options->is_rerun;
    o->delta = options->is_rerun ? DELTA_MAYBE : DELTA_NONE;
    o->restarts_text = options->is_rerun;
    o->mint = options->mint;
    o->state = DGM_STATE_COMPLETED;
    dgm_graph_out_set_tools(o, options->tools);
    if (options->message)
        dgm_graph_add_known(o, options->message->message_id);
    for (size_t i = 0; options->task && i < options->task->history.n; i++)
        dgm_graph_add_known(o, options->task->history.at[i].message_id);
    if (options->task && options->task->status.message)
        dgm_graph_add_known(o, options->task->status.message->message_id);
    if (options->task)
        copy_artifacts(o, options->task);
    return o;
}

void dgm_graph_out_free(dgm_graph_out *o)
{
    if (!o)
        return;
    dgm_graph_stream_free(o);
    dgm_arena_free(o->scratch);
    dgm_arena_free(o->arena); /* o is in it */
}

void dgm_graph_out_set_messages(dgm_graph_out *o, bool has_messages)
{
    o->has_messages = has_messages;
}

/* ---- events ----------------------------------------------------------------------------------------------------------------- */

void dgm_graph_out_event(dgm_graph_out *o, dgm_str type, const dgm_json *ns, const dgm_json *data)
{
    if (o->is_ended)
        return;
    if (dgm_str_is(type, "messages"))
        dgm_graph_on_message(o, ns, data);
    else if (dgm_str_is(type, "custom"))
        dgm_graph_on_custom(o, data);
    else if (dgm_str_is(type, "updates"))
        dgm_graph_on_updates(o, ns, data);
    else if (!dgm_str_is(type, "values")) /* the result has the final state */
        dgm_graph_note(o, "an event of the unknown type \"%.*s\" was ignored",
                       (int)(type.n < 60 ? type.n : 60), type.p);
    dgm_arena_reset(o->scratch);
}
