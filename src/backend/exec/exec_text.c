/* backend/exec/exec_text.c - what goes to a program and what comes back. Pure. */
#include "backend/exec/exec_int.h"
#include "base/limits.h"
#include "model/calls.h"
#include "model/form.h"
#include "model/stamp.h"
#include "wire/a2a/a2a.h"
#include "json/build.h"

/* ---- in -------------------------------------------------------------------------------------------------- */

static void put_task(const dgm_task *task, dgm_buf *out)
{
    dgm_writer w = {.out = out, .format = DGM_FORMAT_A2A_10};
    if (task)
        dgm_shape_write(&w, &dgm_form_task, task);
    else
        dgm_buf_add_lit(out, "null");
}

/* Without the bracket that closes the list. */
static void put_messages(dgm_messages messages, dgm_buf *out)
{
    dgm_writer w = {.out = out, .format = DGM_FORMAT_A2A_10};
    dgm_buf_add_char(out, '[');
    for (size_t i = 0; i < messages.n; i++) {
        if (i > 0)
            dgm_buf_add_char(out, ',');
        dgm_shape_write(&w, &dgm_form_message, &messages.at[i]);
    }
}

static void put_json(const dgm_run_input *in, dgm_str key, dgm_buf *out)
{
    dgm_writer w = {.out = out, .format = DGM_FORMAT_A2A_10};
    dgm_buf_add_lit(out, "{\"message\":");
    dgm_shape_write(&w, &dgm_form_message, in->message);
    dgm_buf_add_lit(out, ",\"task\":");
    put_task(in->task, out);
    dgm_buf_add_lit(out, ",\"history\":");
    put_messages(in->history, out);
    dgm_buf_add_lit(out, "],\"metadata\":");
    dgm_json_put(out, in->metadata);
    dgm_buf_add_lit(out, ",\"taskId\":");
    dgm_json_put_str(out, in->task_id);
    dgm_buf_add_lit(out, ",\"contextId\":");
    dgm_json_put_str(out, in->context_id);
    dgm_buf_add_lit(out, ",\"contextKey\":");
    dgm_json_put_str(out, key);
    dgm_buf_add_lit(out, ",\"tenant\":");
    dgm_json_put_str(out, in->tenant.p ? in->tenant : DGM_STR(""));
    dgm_buf_add_lit(out, ",\"principal\":");
    dgm_json_put_str(out, in->principal.p ? in->principal : DGM_STR(""));
    dgm_buf_add_lit(out, ",\"acceptedOutputModes\":[");
    for (size_t i = 0; i < in->accepted_output_modes.n; i++) {
        if (i > 0)
            dgm_buf_add_char(out, ',');
        dgm_json_put_str(out, in->accepted_output_modes.at[i]);
    }
    dgm_buf_add_lit(out, "]}\n");
}

/* The results of the caller's tools: those of all parts of the message. */
static void put_tool_results(const dgm_message *m, dgm_buf *out)
{
    size_t i, n;
    yyjson_val *item;
    bool is_first = true;
    if (!dgm_message_has(m, DGM_RESULTS))
        return;
    dgm_buf_add_lit(out, ",\"toolResults\":[");
    for (size_t p = 0; p < m->parts.n; p++) {
        yyjson_val *list = m->parts.at[p].kind == DGM_PART_DATA
                               ? dgm_json_get(m->parts.at[p].data, DGM_STR(DGM_DATA_RESULTS))
                               : NULL;
        if (!yyjson_is_arr(list))
            continue;
        yyjson_arr_foreach (list, i, n, item) {
            if (!is_first)
                dgm_buf_add_char(out, ',');
            is_first = false;
            dgm_json_put(out, item);
        }
    }
    dgm_buf_add_char(out, ']');
}

/* Its files without their bytes: the line has a limit, and a worker only compares them. */
static const dgm_task *task_without_files(const dgm_task *task, dgm_arena *a)
{
    dgm_task *copy = dgm_new(a, dgm_task);
    *copy = *task;
    copy->artifacts.at = dgm_new_n(a, dgm_artifact, task->artifacts.n);
    for (size_t i = 0; i < task->artifacts.n; i++) {
        dgm_artifact *x = &copy->artifacts.at[i];
        *x = task->artifacts.at[i];
        dgm_part *parts = dgm_new_n(a, dgm_part, x->parts.n);
        for (size_t p = 0; p < x->parts.n; p++) {
            parts[p] = x->parts.at[p];
            if (parts[p].kind != DGM_PART_RAW || parts[p].content.n <= DGM_WORKER_TASK_FILE_BYTES)
                continue;
            dgm_json_build b = dgm_json_build_start(a);
            dgm_json_build_object(&b, NULL);
            dgm_json_build_int(&b, "omittedBytes", (int64_t)parts[p].content.n);
            dgm_json_build_close(&b);
            parts[p].metadata = dgm_json_build_end(&b);
            parts[p].content = DGM_STR("");
        }
        x->parts.at = parts;
    }
    return copy;
}

static void put_worker_task(const dgm_task *task, dgm_buf *out)
{
    size_t n = out->n;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (!task) {
        put_task(task, out);
        return;
    }
    const dgm_task *small = task_without_files(task, a);
    put_task(small, out);
    if (out->n - n <= DGM_WORKER_TASK_BYTES && !out->over)
        return;
    dgm_task bare = *small;
    bare.artifacts = (dgm_artifacts){0};
    out->n = n;
    out->over = false;
    put_task(&bare, out);
}

static void put_journal(dgm_str journal, dgm_buf *out)
{
    if (!journal.p)
        dgm_buf_add_lit(out, "null");
    else if (journal.n > DGM_JOURNAL_PART_BYTES)
        dgm_buf_printf(out, "{\"bytes\":%zu}", journal.n);
    else
        dgm_json_put_str(out, journal);
}

void dgm_exec_put_run(const dgm_run *run, const dgm_task *task, dgm_strs accepted, dgm_str journal,
                      dgm_buf *out)
{
    const dgm_run_input *in = run->input;
    dgm_writer w = {.out = out, .format = DGM_FORMAT_A2A_10};
    dgm_buf_add_lit(out, ",\"message\":");
    dgm_shape_write(&w, &dgm_form_message, in->message);
    dgm_buf_add_lit(out, ",\"history\":");
    put_messages(in->history, out);
    dgm_buf_add_lit(out, "],\"accepted\":");
    put_messages(in->accepted, out);
    for (size_t i = 0; i < accepted.n; i++) {
        if (i > 0 || in->accepted.n)
            dgm_buf_add_char(out, ',');
        dgm_buf_add_str(out, accepted.at[i]);
    }
    dgm_buf_add_lit(out, "],\"currentTask\":");
    put_worker_task(task, out);
    dgm_buf_add_lit(out, ",\"journal\":");
    put_journal(journal, out);
    put_tool_results(in->message, out);
}

void dgm_exec_write_input(const dgm_run *run, enum exec_form form, dgm_buf *out)
{
    if (form == EXEC_JSON) {
        put_json(run->input, dgm_program_context_key(run->arena, run->input), out);
        return;
    }
    dgm_str text = dgm_run_text(run, run->arena);
    dgm_buf_add_str(out, text);
    if (text.n == 0 || text.p[text.n - 1] != '\n')
        dgm_buf_add_char(out, '\n');
}

/* ---- out ------------------------------------------------------------------------------------------------- */

static bool has_text(yyjson_val *object, const char *name)
{
    yyjson_val *v = dgm_json_get(object, dgm_str_from(name));
    return yyjson_is_str(v) && dgm_json_str(v).n > 0;
}

/* An id that the object does not have was minted by the decoder. other: the name in ProtoJSON's snake case. */
static void clear_minted_id(yyjson_val *object, const char *name, const char *other, dgm_str *id)
{
    if (!has_text(object, name) && !has_text(object, other))
        *id = (dgm_str){0};
}

static void clear_minted_ids(yyjson_val *v, const dgm_event *e)
{
    static const char *const wrappers[] = {"task", "statusUpdate", "status_update",
                                           "artifactUpdate", "artifact_update"};
    if (!dgm_json_get(v, DGM_STR("kind"))) {
        yyjson_val *inside = NULL;
        for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers && !inside; i++)
            inside = dgm_json_get(v, dgm_str_from(wrappers[i]));
        v = inside;
    }
    switch (e->kind) {
    case DGM_EVENT_TASK:
        clear_minted_id(v, "id", "id", &e->task->id);
        clear_minted_id(v, "contextId", "context_id", &e->task->context_id);
        break;
    case DGM_EVENT_STATUS:
        clear_minted_id(v, "taskId", "task_id", &e->status->task_id);
        clear_minted_id(v, "contextId", "context_id", &e->status->context_id);
        break;
    case DGM_EVENT_ARTIFACT:
        clear_minted_id(v, "taskId", "task_id", &e->artifact->task_id);
        clear_minted_id(v, "contextId", "context_id", &e->artifact->context_id);
        break;
    case DGM_EVENT_NONE:
    case DGM_EVENT_MESSAGE:
    case DGM_EVENT_INTERNAL: break;
    }
}

dgm_code dgm_exec_read_event(dgm_arena *a, dgm_mint *mint, int64_t now_ms, dgm_str line,
                             dgm_event *ret_event, dgm_err *err)
{
    yyjson_val *v;
    dgm_code rc = dgm_json_read(a, line, DGM_MAX_RECORD_BYTES, "record_bytes", &v, err);
    return rc ? rc : dgm_exec_read_event_value(a, mint, now_ms, v, ret_event, err);
}

dgm_code dgm_exec_read_event_value(dgm_arena *a, dgm_mint *mint, int64_t now_ms, yyjson_val *v,
                                   dgm_event *ret_event, dgm_err *err)
{
    dgm_frame frame;
    dgm_code rc;
    dgm_reader r = {.arena = a, .mint = mint, .drop_unknown = true, .err = err};
    if (!yyjson_is_obj(v))
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "expected an object, got %s",
                        dgm_json_type(v));
    yyjson_val *kind = dgm_json_get(v, DGM_STR("kind"));
    if (yyjson_is_str(kind) && dgm_str_starts(dgm_json_str(kind), DGM_STR("internal:"))) {
        r.now = dgm_time_text(a, now_ms);
        if ((rc = dgm_codec_a2a_10.decode(&r, v, DGM_OBJECT_INTERNAL_EVENT, true, &frame)))
            return rc;
        *ret_event = (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = frame.object.it};
        return DGM_OK;
    }
    const dgm_codec *codec = kind ? &dgm_codec_a2a_03 : &dgm_codec_a2a_10;
    if ((rc = codec->decode(&r, v, DGM_OBJECT_STREAM_RESPONSE, true, &frame)))
        return rc;
    if (frame.object.kind != DGM_OBJECT_STREAM_RESPONSE)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL, "not an event of a stream");
    *ret_event = *(dgm_event *)frame.object.it;
    clear_minted_ids(v, ret_event);
    return DGM_OK;
}
