/* frontend/agui/agui_front_input.c - the body: a RunAgentInput, and what of it counts here. */
#include "frontend/agui/agui_front_int.h"
#include "frontend/list_limits.h"
#include "frontend/words.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "json/json.h"

#include <ctype.h>

#define NOTED_ID_BYTES ((size_t)2 << 10) /* of a message list: some 50 ids */

/* ---- what it says ------------------------------------------------------------------------------------------------------ */

bool dgm_agui_peer_of(dgm_str version, bool *ret_old)
{
    const char *dot = version.n ? memchr(version.p, '.', version.n) : NULL;
    dgm_str major = {version.p, dot ? (size_t)(dot - version.p) : version.n};
    *ret_old = !version.n || dgm_str_is(major, "0");
    return *ret_old || dgm_str_is(major, "1");
}

bool dgm_agui_has_news(const dgm_canon_messages *messages)
{
    for (size_t i = messages->n; i-- > 0;) {
        dgm_canon_role role = messages->at[i].role;
        if (role == DGM_CANON_USER || role == DGM_CANON_TOOL)
            return true;
        if (role == DGM_CANON_ASSISTANT)
            return false;
    }
    return false;
}

const dgm_json *dgm_agui_plain_payload(const dgm_json *payload)
{
    yyjson_val *text = dgm_json_get(payload, DGM_STR("text"));
    bool alone = yyjson_obj_size((yyjson_val *)(uintptr_t)payload) == 1;
    return alone && yyjson_is_str(text) ? text : payload;
}

bool dgm_agui_continues(const dgm_http_request *r)
{
    dgm_str value = dgm_trim(dgm_http_header_of(r, DGM_STR("x-dragoman-on-disconnect")));
    return dgm_str_eq_nocase(value, DGM_STR("continue"));
}

bool dgm_agui_cursor_of(const dgm_http_request *r, uint64_t *ret)
{
    dgm_str s = dgm_trim(dgm_http_header_of(r, DGM_STR("last-event-id")));
    *ret = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!isdigit((unsigned char)s.p[i]) || *ret > UINT64_MAX / 100)
            return false;
        *ret = *ret * 10 + (uint64_t)(s.p[i] - '0');
    }
    return s.n > 0;
}

/* ---- reading --------------------------------------------------------------------------------------------------------------- */

static dgm_code check_id(dgm_str id, const char *name, dgm_err *err)
{
    const dgm_at *at = DGM_AT(NULL, dgm_str_from(name));
    if (!id.n)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "empty: give it a name of its own");
    if (id.n > DGM_MAX_ID_BYTES)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "longer than the limit id_bytes of %d bytes",
                        DGM_MAX_ID_BYTES);
    return DGM_OK;
}

static dgm_code read_input(struct agui_op *op, dgm_err *err)
{
    yyjson_val *body;
    dgm_reader r = dgm_turn_reader(op->x, NULL, err); /* AG-UI's ids are the caller's */
    dgm_code rc;
    if ((rc = dgm_turn_body(op->x, &body, err)) ||
        (rc = dgm_check_lists(body, dgm_list_limits_agui, err)) ||
        (rc = dgm_codec_agui.read_request(&r, body, NULL, &op->input)) ||
        (rc = check_id(op->input.thread_id, "threadId", err)) ||
        (rc = check_id(op->input.run_id, "runId", err)))
        return rc;
    if (!dgm_agui_peer_of(op->input.protocol_version, &op->old_peer))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "protocolVersion"),
                        "unsupported AG-UI version: supported are 1.0 and older");
    return DGM_OK;
}

bool dgm_agui_read(struct agui_op *op)
{
    dgm_err err = {0};
    if (read_input(op, &err)) {
        dgm_agui_fail(op, &err);
        return false;
    }
    op->binary = dgm_accepts(dgm_http_request_of(op->x), DGM_STR(DGM_AGUI_PROTO_TYPE));
    op->had_resume = op->input.resume.n > 0;
    op->caller_id = dgm_arena_printf(op->arena, "%.*s/%.*s", DGM_P(op->input.thread_id),
                                     DGM_P(op->input.run_id));
    return true;
}

/* For replays: a snapshot of messages starts with those of the client. Their ids are stored while they are few. */
static void agui_note_put_messages(const struct agui_op *op, dgm_buf *b)
{
    const dgm_canon_messages *m = &op->input.messages;
    size_t bytes = 0;
    for (size_t i = 0; i < m->n; i++)
        bytes += m->at[i].id.n + 3; /* with its quotes and comma */
    if (bytes > NOTED_ID_BYTES) {
        dgm_buf_printf(b, "%zu", m->n);
        return;
    }
    dgm_buf_add_char(b, '[');
    for (size_t i = 0; i < m->n; i++) {
        if (i)
            dgm_buf_add_char(b, ',');
        dgm_json_put_str(b, m->at[i].id);
    }
    dgm_buf_add_char(b, ']');
}

dgm_str dgm_agui_note_text(const struct agui_op *op)
{
    dgm_str parent = op->input.parent_run_id, text = {0};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* ids have limits */
    dgm_buf_printf(&b, "{\"old\":%s,\"had\":", op->old_peer ? "true" : "false");
    agui_note_put_messages(op, &b);
    if (parent.n) {
        dgm_buf_add_lit(&b, ",\"parent\":");
        dgm_json_put_str(&b, parent);
    }
    dgm_buf_add_char(&b, '}');
    text = dgm_arena_dup(op->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

void dgm_agui_note_read(struct agui_op *op, dgm_str text)
{
    const dgm_json *note = text.n ? dgm_json_parse_trusted(op->arena, text) : NULL;
    op->old_peer = yyjson_is_true(dgm_json_get(note, DGM_STR("old")));
    op->input.parent_run_id = dgm_json_str_member(note, "parent");
    yyjson_val *had = dgm_json_get(note, DGM_STR("had")), *id;
    size_t i, max;
    op->had.n = yyjson_is_arr(had)    ? yyjson_arr_size(had)
                : yyjson_is_uint(had) ? yyjson_get_uint(had)
                                      : SIZE_MAX;
    if (yyjson_is_arr(had))
        op->had.at = dgm_new_n(op->arena, dgm_str, op->had.n + 1);
    yyjson_arr_foreach (had, i, max, id)
        op->had.at[i] = dgm_json_str(id);
}

dgm_canon_messages dgm_agui_note_messages(const struct agui_op *op, dgm_canon_messages thread)
{
    size_t n = op->had.n;
    if (n > thread.n)
        return thread;
    dgm_canon_messages list = {dgm_new_n(op->arena, dgm_canon_message, n + 1), n};
    for (size_t i = 0; i < n; i++) {
        list.at[i] = thread.at[thread.n - n + i];
        if (op->had.at)
            list.at[i].id = op->had.at[i];
    }
    return list;
}

/* How the events of a run that is followed from its start, or behind a cursor, are changed. Lives as long as the
 * exchange. */
struct agui_following {
    dgm_str parent_run_id; /* the run that started this one; empty: the client named none */
    bool interrupts;
};

static dgm_code agui_follow_event(void *arg, const dgm_canon_event *event, dgm_canon_sink next)
{
    const struct agui_following *f = arg;
    dgm_canon_event changed;
    if (event->kind == DGM_CANON_RUN_STARTED && f->parent_run_id.n) {
        changed = *event;
        changed.run_started.parent_run_id = f->parent_run_id;
        event = &changed;
    } else if (!f->interrupts) {
        event = dgm_agui_as_message(event, &changed);
    }
    return dgm_canon_emit(next, event);
}

void dgm_agui_follow(const struct agui_op *op, dgm_turn_output *output)
{
    struct agui_following *f = dgm_http_alloc(op->x, sizeof *f);
    dgm_str parent = op->input.parent_run_id;
    *f = (struct agui_following){
        .parent_run_id = {parent.n ? dgm_http_keep_text(op->x, parent) : NULL, parent.n},
        .interrupts = op->q.turns->o.agui_interrupts};
    output->on_event = agui_follow_event;
    output->arg = f;
}

dgm_turn_output dgm_agui_turn_output(const struct agui_op *op)
{
    dgm_turn_output output = {.codec = op->binary     ? &dgm_codec_agui_proto
                                       : op->old_peer ? &dgm_codec_agui_old
                                                      : &dgm_codec_agui,
                              .params = {.old_peer = op->old_peer},
                              .thread_id = op->input.thread_id,
                              .run_id = op->input.run_id,
                              .as = op->binary ? DGM_OUTPUT_BYTES : DGM_OUTPUT_SSE,
                              .seq_ids = !op->binary,
                              .turns = op->q.turns,
                              .owner = op->q.owner,
                              .agent = op->agent->id,
                              .answer_in_status = op->agent->answer_in_status,
                              .tap = op->tap};
    if (op->binary)
        output.content_type = DGM_STR(DGM_AGUI_PROTO_TYPE);
    dgm_http_header *headers = dgm_new_n(op->arena, dgm_http_header, AGUI_MAX_HEADERS);
    size_t n = 0;
    if (op->ignored.n)
        headers[n++] = (dgm_http_header){DGM_STR("X-Dragoman-Ignored"), op->ignored};
    if (op->task_id.n)
        headers[n++] = (dgm_http_header){DGM_STR("X-A2A-Task-Id"), op->task_id};
    if (op->task_id.n && op->turn)
        headers[n++] = (dgm_http_header){DGM_STR("X-Dragoman-Turn"),
                                         dgm_arena_printf(op->arena, "%u", op->turn)};
    output.headers = headers;
    output.n_headers = n;
    return output;
}
