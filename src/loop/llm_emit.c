/* loop/llm_emit.c - events and messages of the agent loop. */
#include "loop/llm_loop_int.h"

#include "model/form.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- actions and events ------------------------------------------------------------------------------------------ */

void dgm_llm_act(dgm_llm_loop *l, dgm_llm_action action)
{
    l->sink.on_action(l->sink.arg, &action);
}

static void llm_emit(dgm_llm_loop *l, dgm_event event)
{
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_EMIT, .event = &event});
}

void dgm_llm_emit_status(dgm_llm_loop *l, dgm_task_state state, dgm_message *m,
                         const dgm_json *metadata)
{
    dgm_status_update u = {.task_id = l->task_id,
                           .context_id = l->context_id,
                           .status = {.state = state, .message = m},
                           .metadata = metadata};
    l->state = state;
    llm_emit(l, (dgm_event){.kind = DGM_EVENT_STATUS, .status = &u});
}

dgm_part dgm_llm_text_part(dgm_str text)
{
    return (dgm_part){.kind = DGM_PART_TEXT, .content = text.p ? text : DGM_STR("")};
}

void dgm_llm_emit_sentence(dgm_llm_loop *l, dgm_task_state state, dgm_str text, bool is_error)
{
    dgm_part part = dgm_llm_text_part(text);
    dgm_message m = {.message_id = dgm_llm_id(l, "end", l->iteration, -1),
                     .context_id = l->context_id,
                     .task_id = l->task_id,
                     .role = DGM_ROLE_AGENT,
                     .parts = {&part, 1}};
    dgm_json_build b = dgm_json_build_start(l->scratch);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_str(&b, "error", text.p ? text : DGM_STR(""));
    dgm_json_build_close(&b);
    const dgm_json *metadata = dgm_json_build_end(&b);
    dgm_llm_emit_status(l, state, text.n ? &m : NULL, is_error ? metadata : NULL);
}

void dgm_llm_emit_chunk(dgm_llm_loop *l, dgm_str text, bool append, bool is_last)
{
    if (!append) {
        l->chunk_part = (dgm_part){.kind = DGM_PART_TEXT};
        l->chunk = (dgm_artifact_update){.task_id = l->task_id,
                                         .context_id = l->context_id,
                                         .artifact = {.artifact_id = dgm_str_from(l->artifact_id),
                                                      .parts = {&l->chunk_part, 1}}};
    }
    l->chunk_part.content = text.p ? text : DGM_STR("");
    l->chunk.append = append ? DGM_TRUE : DGM_FALSE;
    l->chunk.last_chunk = is_last ? DGM_TRUE : DGM_FALSE;
    llm_emit(l, (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &l->chunk});
}

void dgm_llm_emit_files(dgm_llm_loop *l, dgm_str artifact_id, dgm_str name, dgm_parts files)
{
    dgm_artifact_update u = {.task_id = l->task_id,
                             .context_id = l->context_id,
                             .artifact = {.artifact_id = artifact_id, .name = name, .parts = files},
                             .append = DGM_FALSE,
                             .last_chunk = DGM_TRUE};
    llm_emit(l, (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &u});
}

void dgm_llm_emit_internal(dgm_llm_loop *l, dgm_internal *it)
{
    it->task_id = l->task_id;
    llm_emit(l, (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = it});
}

void dgm_llm_emit_counted(dgm_llm_loop *l, dgm_internal_kind kind)
{
    dgm_internal it = {.kind = kind, .iteration = {true, (int32_t)l->iteration}};
    dgm_llm_emit_internal(l, &it);
}

void dgm_llm_emit_history(dgm_llm_loop *l, dgm_message *m)
{
    dgm_internal it = {.kind = DGM_INTERNAL_MESSAGE, .message = m};
    m->task_id = l->task_id;
    m->context_id = l->context_id;
    dgm_llm_emit_internal(l, &it);
}

void dgm_llm_note(dgm_llm_loop *l, const char *fmt, ...)
{
    char line[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    dgm_llm_act(l, (dgm_llm_action){.kind = DGM_LLM_NOTE, .text = dgm_str_from(line)});
}

dgm_str dgm_llm_id(dgm_llm_loop *l, const char *kind, uint32_t a, int b)
{
    if (b < 0)
        return dgm_arena_printf(l->scratch, "%.*s-%s%u", DGM_P(l->task_id), kind, a);
    return dgm_arena_printf(l->scratch, "%.*s-%s%u-%d", DGM_P(l->task_id), kind, a, b);
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

size_t dgm_llm_message_bytes(dgm_llm_loop *l, const dgm_message *m)
{
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    (void)l;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_shape_write(&w, &dgm_form_message, m);
    size_t n = b.n;
    dgm_buf_done(&b);
    return n;
}

void dgm_llm_add_message(dgm_llm_loop *l, const dgm_message *m)
{
    dgm_messages *list = &l->messages;
    list->at = dgm_list_grow(l->arena, list->at, list->n, sizeof *list->at);
    dgm_message *copy = &list->at[list->n];
    *copy = dgm_message_copy(l->arena, m);
    if (!copy->message_id.n)
        copy->message_id = dgm_arena_dup(l->arena, dgm_llm_id(l, "h", (uint32_t)list->n, -1));
    list->n++;
    l->bytes += dgm_llm_message_bytes(l, copy);
}

dgm_str dgm_llm_text_of(dgm_arena *a, const dgm_message *m)
{
    dgm_str text = {"", 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT && m->parts.at[i].content.n)
            text =
                text.n ? dgm_arena_join(a, text, m->parts.at[i].content) : m->parts.at[i].content;
    }
    return text;
}

dgm_str dgm_llm_value_text(dgm_arena *a, const dgm_json *v)
{
    return yyjson_is_str((yyjson_val *)(uintptr_t)v) ? dgm_json_str(v) : dgm_json_text_in(a, v);
}

dgm_str dgm_llm_cut(dgm_arena *a, dgm_str text, size_t max)
{
    size_t n = max;
    if (text.n <= max)
        return text;
    while (n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;
    return dgm_arena_join(a, (dgm_str){text.p, n},
                          dgm_arena_printf(a, "\n[cut: %zu of %zu bytes are shown]", n, text.n));
}
