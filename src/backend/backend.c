/* backend/backend.c - the list of agent types, and what most of them need. */
#include "backend/backend.h"
#include "backend/backend_int.h"
#include "json/build.h"
#include "model/stamp.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

const dgm_backend *const dgm_backends[] = {
    &dgm_backend_hello,     &dgm_backend_demo,
    &dgm_backend_exec,      &dgm_backend_a2a,
    &dgm_backend_http,      &dgm_backend_llm,
    &dgm_backend_langgraph, &dgm_backend_graph_server,
    &dgm_backend_bench,     &dgm_backend_tck,
    NULL,
};

const dgm_backend *dgm_backend_by_type(dgm_str type)
{
    for (size_t i = 0; dgm_backends[i]; i++) {
        if (dgm_str_eq(type, dgm_str_from(dgm_backends[i]->type)))
            return dgm_backends[i];
    }
    return NULL;
}

/* ---- on top of emit ------------------------------------------------------------------------------------- */

static dgm_code emit_status(dgm_run *run, dgm_task_state state, dgm_part *part,
                            const dgm_json *metadata, dgm_err *err)
{
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {part, 1}};
    dgm_status_update update = {
        .status = {.state = state, .message = part ? &message : NULL},
        .metadata = metadata,
    };
    dgm_event event = {.kind = DGM_EVENT_STATUS, .status = &update};
    return run->ops->emit(run, &event, err);
}

dgm_code dgm_run_status(dgm_run *run, dgm_task_state state, dgm_str text, dgm_err *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    return emit_status(run, state, text.p ? &part : NULL, NULL, err);
}

dgm_code dgm_run_fail(dgm_run *run, dgm_str error, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    return emit_status(run, DGM_STATE_FAILED, NULL, dgm_error_metadata(a, error), err);
}

dgm_code dgm_run_indicate(dgm_run *run, dgm_str text, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_part part = dgm_status_indicator(a, text);
    return emit_status(run, DGM_STATE_WORKING, &part, NULL, err);
}

dgm_code dgm_run_chunk(dgm_run *run, dgm_str artifact_id, dgm_str name, dgm_str text, bool append,
                       bool last, dgm_err *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_artifact_update update = {
        .artifact = {.artifact_id = artifact_id, .name = name, .parts = {&part, 1}},
        .append = append ? DGM_TRUE : DGM_FALSE,
        .last_chunk = last ? DGM_TRUE : DGM_FALSE,
    };
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &update};
    return run->ops->emit(run, &event, err);
}

dgm_code dgm_run_artifact(dgm_run *run, dgm_str artifact_id, dgm_str name, dgm_parts parts,
                          dgm_err *err)
{
    dgm_artifact_update update = {
        .artifact = {.artifact_id = artifact_id, .name = name, .parts = parts},
        .append = DGM_FALSE,
        .last_chunk = DGM_TRUE,
    };
    dgm_event event = {.kind = DGM_EVENT_ARTIFACT, .artifact = &update};
    return run->ops->emit(run, &event, err);
}

dgm_code dgm_run_reply(dgm_run *run, dgm_str text, dgm_err *err)
{
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_message message = {.role = DGM_ROLE_AGENT, .parts = {&part, 1}};
    dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = &message};
    return run->ops->emit(run, &event, err);
}

void dgm_run_note(dgm_run *run, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (!run->ops->note)
        return;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n > 0)
        run->ops->note(run, (dgm_str){line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1});
}

dgm_str dgm_run_traceparent(dgm_arena *a, dgm_str task_id, dgm_str call_id)
{
    char trace[33];
    size_t n = 0;
    for (size_t i = 0; i < task_id.n && n < 32; i++) { /* the hex digits of a UUID */
        if (isxdigit((unsigned char)task_id.p[i]))
            trace[n++] = (char)tolower((unsigned char)task_id.p[i]);
    }
    if (n < 32)
        snprintf(trace, sizeof trace, "%016llx%016llx",
                 (unsigned long long)dgm_hash(1, task_id.p, task_id.n),
                 (unsigned long long)dgm_hash(2, task_id.p, task_id.n) | 1);
    trace[32] = 0;
    return dgm_arena_printf(a, "00-%s-%016llx-01", trace,
                            (unsigned long long)dgm_hash(3, call_id.p, call_id.n) | 1);
}

const dgm_json *dgm_run_metadata(dgm_arena *a, const dgm_run_input *in)
{
    const dgm_json *given = in->metadata;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    if (yyjson_is_obj((yyjson_val *)(uintptr_t)given))
        dgm_json_build_members_of(&b, given);
    if (!dgm_json_get(given, DGM_STR("traceparent")))
        dgm_json_build_str(&b, "traceparent", dgm_run_traceparent(a, in->task_id, in->task_id));
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

void dgm_run_report(dgm_run *run, const dgm_run_fault *fault)
{
    if (run->ops->fault)
        run->ops->fault(run, fault);
    else
        dgm_run_note(run, "%.*s: %.*s", DGM_P(fault->what), DGM_P(fault->detail));
}

void dgm_run_has_read(dgm_run *run)
{
    if (run->ops->has_read)
        run->ops->has_read(run);
}

dgm_str dgm_run_text(const dgm_run *run, dgm_arena *a)
{
    dgm_parts parts = run->input->message->parts;
    if (parts.n && parts.at[0].metadata && /* only the first part can be: see frontend/turn */
        dgm_str_is(dgm_json_str_member(parts.at[0].metadata, DGM_META_PART), "transcript"))
        parts = (dgm_parts){parts.at + 1, parts.n - 1};
    return dgm_parts_text(parts, a);
}

dgm_str dgm_parts_text(dgm_parts parts, dgm_arena *a)
{
    size_t n = 0, n_texts = 0, last = 0;
    for (size_t i = 0; i < parts.n; i++) {
        if (parts.at[i].kind == DGM_PART_TEXT) {
            n += parts.at[i].content.n;
            n_texts++;
            last = i;
        }
    }
    if (n_texts == 1)
        return parts.at[last].content;
    char *p = dgm_arena_alloc_raw(a, n + 1);
    dgm_str text = {p, n};
    for (size_t i = 0; i < parts.n; i++) {
        if (parts.at[i].kind == DGM_PART_TEXT && parts.at[i].content.n > 0) {
            memcpy(p, parts.at[i].content.p, parts.at[i].content.n);
            p += parts.at[i].content.n;
        }
    }
    *p = '\0';
    return text;
}

dgm_part dgm_status_indicator(dgm_arena *a, dgm_str text)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"type\":\"status-indicator\",\"text\":");
    dgm_json_put_str(&b, text);
    dgm_buf_add_lit(&b, ",\"displayAs\":\"loading\"}");
    dgm_part part = {
        .kind = DGM_PART_DATA,
        .data = dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b))),
    };
    dgm_buf_done(&b);
    return part;
}

/* ---- words ---------------------------------------------------------------------------------------------- */

static const char spaces[4] = {' ', '\t', '\n', '\r'};

dgm_str dgm_text_trim(dgm_str text)
{
    while (text.n > 0 && memchr(spaces, *text.p, 4))
        text.p++, text.n--;
    while (text.n > 0 && memchr(spaces, text.p[text.n - 1], 4))
        text.n--;
    return text;
}

bool dgm_text_command(dgm_str text, const char *word, dgm_str *ret_rest)
{
    size_t n = strlen(word);
    text = dgm_text_trim(text);
    if (text.n < n || !dgm_str_eq_nocase((dgm_str){text.p, n}, (dgm_str){word, n}) ||
        (text.n > n && !memchr(spaces, text.p[n], 4)))
        return false;
    if (ret_rest)
        *ret_rest = dgm_text_trim((dgm_str){text.p + n, text.n - n});
    return true;
}
