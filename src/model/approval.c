/* model/approval.c - see approval.h. */
#include "model/approval.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "json/build.h"

/* A question repeats so much of the arguments of a call: a person reads a line, and the data has all of them. */
#define MAX_SHOWN_ARGUMENTS ((size_t)400)

static bool has_type(const dgm_json *data, const char *type)
{
    return dgm_str_eq(dgm_json_str_member(data, "type"), dgm_str_from(type));
}

/* ---- requests for approval ------------------------------------------------------------------------------------- */

const dgm_json *dgm_approval_request_data(dgm_arena *a, const dgm_approval_request *request)
{
    if (request->data)
        return request->data;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", DGM_TYPE_APPROVAL_REQUEST);
    dgm_json_build_str(&b, "id", request->id);
    dgm_json_build_str(&b, "tool", request->tool);
    dgm_json_build_value(&b, "arguments", request->arguments);
    if (request->call_id.n)
        dgm_json_build_str(&b, "call_id", request->call_id);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

const dgm_json *dgm_approval_arguments(dgm_arena *a, dgm_str text)
{
    yyjson_val *v = NULL;
    dgm_str copy = dgm_arena_dup(a, text.n ? text : DGM_STR("{}"));
    if (dgm_json_read(a, copy, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) || !yyjson_is_obj(v))
        return dgm_json_make_string(a, copy);
    return v;
}

bool dgm_approval_request_read(const dgm_json *data, dgm_approval_request *ret)
{
    dgm_str id = dgm_json_str_member(data, "id"), call_id = dgm_json_str_member(data, "call_id");
    if (!has_type(data, DGM_TYPE_APPROVAL_REQUEST) || id.n > DGM_MAX_ID_BYTES)
        return false;
    *ret = (dgm_approval_request){
        .id = id,
        .tool = dgm_json_str_member(data, "tool"),
        .arguments = dgm_json_get(data, DGM_STR("arguments")),
        .call_id = call_id.n <= DGM_MAX_ID_BYTES ? call_id : (dgm_str){0},
        .data = data,
    };
    return true;
}

bool dgm_part_is_approval_request(const dgm_part *p)
{
    dgm_approval_request request;
    return p->kind == DGM_PART_DATA && dgm_approval_request_read(p->data, &request);
}

dgm_approval_requests dgm_message_approval_requests(dgm_arena *a, const dgm_message *m)
{
    dgm_approval_requests list = {0};
    size_t max = 0;
    for (size_t i = 0; m && i < m->parts.n; i++)
        max += dgm_part_is_approval_request(&m->parts.at[i]);
    if (!max)
        return list;
    max = max < DGM_MAX_OPEN_CALLS ? max : DGM_MAX_OPEN_CALLS;
    list.at = dgm_new_n(a, dgm_approval_request, max);
    for (size_t i = 0; i < m->parts.n && list.n < max; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA &&
            dgm_approval_request_read(m->parts.at[i].data, &list.at[list.n]))
            list.n++;
    }
    return list;
}

static void add_shown_arguments(dgm_buf *b, dgm_arena *a, const dgm_json *arguments)
{
    dgm_str text = dgm_json_text_in(a, arguments);
    bool is_cut = text.n > MAX_SHOWN_ARGUMENTS;
    if (is_cut) {
        text.n = MAX_SHOWN_ARGUMENTS;
        while (text.n && ((unsigned char)text.p[text.n] & 0xc0) == 0x80)
            text.n--; /* not within a character */
    }
    dgm_buf_add_lit(b, " with ");
    dgm_buf_add_str(b, text);
    if (is_cut)
        dgm_buf_add_lit(b, "...");
}

dgm_str dgm_approval_question(dgm_arena *a, const dgm_approval_requests *requests)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_add_str(&b, requests->n > 1 ? DGM_STR("May the tools ") : DGM_STR("May the tool "));
    for (size_t i = 0; i < requests->n; i++) {
        const dgm_approval_request *r = &requests->at[i];
        if (i)
            dgm_buf_add_str(&b, i + 1 == requests->n ? DGM_STR(" and ") : DGM_STR(", "));
        dgm_buf_add_str(&b, r->tool.n ? r->tool : DGM_STR("unknown"));
        if (yyjson_obj_size((yyjson_val *)(uintptr_t)r->arguments))
            add_shown_arguments(&b, a, r->arguments);
    }
    dgm_buf_add_lit(&b, " be called? Answer yes or no.");
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- decisions ---------------------------------------------------------------------------------------------------- */

const dgm_json *dgm_approval_data(dgm_arena *a, const dgm_approval *approval)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", DGM_TYPE_APPROVAL);
    if (approval->id.n)
        dgm_json_build_str(&b, "id", approval->id);
    dgm_json_build_bool(&b, "approved", approval->decision == DGM_APPROVED);
    dgm_json_build_value(&b, "arguments", approval->arguments);
    if (approval->reason.n)
        dgm_json_build_str(&b, "reason", approval->reason);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

bool dgm_approval_read(const dgm_json *data, dgm_approval *ret)
{
    yyjson_val *approved = dgm_json_get(data, DGM_STR("approved"));
    yyjson_val *type = dgm_json_get(data, DGM_STR("type"));
    if (!yyjson_is_bool(approved) || (type && !has_type(data, DGM_TYPE_APPROVAL)))
        return false;
    *ret = (dgm_approval){
        .id = dgm_json_str_member(data, "id"),
        .decision = yyjson_is_true(approved) ? DGM_APPROVED : DGM_REJECTED,
        .arguments = dgm_json_non_null(data, "arguments"),
        .reason = dgm_json_str_member(data, "reason"),
    };
    return true;
}

const dgm_approval_word dgm_approval_words[] = {
    {"yes", DGM_APPROVED},      {"y", DGM_APPROVED},      {"approve", DGM_APPROVED},
    {"approved", DGM_APPROVED}, {"allow", DGM_APPROVED},  {"no", DGM_REJECTED},
    {"n", DGM_REJECTED},        {"reject", DGM_REJECTED}, {"rejected", DGM_REJECTED},
    {"deny", DGM_REJECTED},     {"denied", DGM_REJECTED}, {"decline", DGM_REJECTED},
    {"declined", DGM_REJECTED}, {NULL, DGM_UNDECIDED},
};

dgm_decision dgm_approval_of_text(dgm_str text)
{
    while (text.n && memchr(" \t\r\n.!", text.p[text.n - 1], 6))
        text.n--;
    while (text.n && memchr(" \t\r\n", text.p[0], 4))
        text = (dgm_str){text.p + 1, text.n - 1};
    for (const dgm_approval_word *w = dgm_approval_words; w->word; w++) {
        if (dgm_str_eq_nocase(text, dgm_str_from(w->word)))
            return w->decision;
    }
    return DGM_UNDECIDED;
}

/* The text of a message if it is short enough to be one of the words. */
static dgm_str short_text(dgm_arena *a, const dgm_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, 64);
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(&b, m->parts.at[i].content);
    }
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

dgm_approval dgm_message_approval(dgm_arena *a, const dgm_message *m, dgm_str id)
{
    dgm_approval found = {0}, one;
    bool has_data = false;
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_DATA || !dgm_approval_read(m->parts.at[i].data, &one))
            continue;
        has_data = true;
        if (one.id.n && dgm_str_eq(one.id, id))
            return one;
        if (!one.id.n && !found.decision)
            found = one;
    }
    if (!has_data)
        found.decision = dgm_approval_of_text(short_text(a, m));
    found.id = id;
    return found;
}

/* ---- questions, requests to sign in ------------------------------------------------------------------------------- */

const dgm_json *dgm_question_data(dgm_arena *a, const dgm_question *question)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", DGM_TYPE_QUESTION);
    dgm_json_build_str(&b, "text", question->text);
    dgm_json_build_value(&b, "choices", question->choices);
    dgm_json_build_value(&b, "schema", question->schema);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static const dgm_json *texts_only(yyjson_val *list)
{
    yyjson_val *one;
    size_t i, n;
    yyjson_arr_foreach (list, i, n, one) {
        if (!yyjson_is_str(one))
            return NULL;
    }
    return yyjson_arr_size(list) ? list : NULL;
}

bool dgm_question_read(const dgm_json *data, dgm_question *ret)
{
    yyjson_val *schema = dgm_json_get(data, DGM_STR("schema"));
    if (!has_type(data, DGM_TYPE_QUESTION))
        return false;
    *ret = (dgm_question){
        .text = dgm_json_str_member(data, "text"),
        .choices = texts_only(dgm_json_get(data, DGM_STR("choices"))),
        .schema = yyjson_is_obj(schema) ? schema : NULL,
    };
    return true;
}

const dgm_json *dgm_message_question(const dgm_message *m, dgm_question *ret)
{
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA && dgm_question_read(m->parts.at[i].data, ret))
            return m->parts.at[i].data;
    }
    return NULL;
}

const dgm_json *dgm_auth_request_data(dgm_arena *a, const dgm_auth_request *request)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", DGM_TYPE_AUTH_REQUEST);
    if (request->url.n)
        dgm_json_build_str(&b, "url", request->url);
    if (request->scheme.n)
        dgm_json_build_str(&b, "scheme", request->scheme);
    if (request->reason.n)
        dgm_json_build_str(&b, "reason", request->reason);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static bool is_web_address(dgm_str url)
{
    dgm_str secure = {url.p, url.n < 8 ? url.n : 8}, plain = {url.p, url.n < 7 ? url.n : 7};
    return dgm_str_eq_nocase(secure, DGM_STR("https://")) ||
           dgm_str_eq_nocase(plain, DGM_STR("http://"));
}

bool dgm_auth_request_read(const dgm_json *data, dgm_auth_request *ret)
{
    dgm_str url = dgm_json_str_member(data, "url");
    if (!has_type(data, DGM_TYPE_AUTH_REQUEST))
        return false;
    *ret = (dgm_auth_request){
        .url = is_web_address(url) ? url : (dgm_str){0},
        .scheme = dgm_json_str_member(data, "scheme"),
        .reason = dgm_json_str_member(data, "reason"),
    };
    return true;
}

const dgm_json *dgm_message_auth_request(const dgm_message *m, dgm_auth_request *ret)
{
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_DATA && dgm_auth_request_read(m->parts.at[i].data, ret))
            return m->parts.at[i].data;
    }
    return NULL;
}

bool dgm_message_declines(dgm_arena *a, const dgm_message *m)
{
    if (dgm_approval_of_text(short_text(a, m)) == DGM_REJECTED)
        return true;
    for (size_t i = 0; i < m->parts.n; i++) {
        const dgm_part *p = &m->parts.at[i];
        dgm_approval approval;
        if (p->kind != DGM_PART_DATA)
            continue;
        dgm_str action = dgm_json_str_member(p->data, "action");
        if (dgm_str_is(action, "decline") || dgm_str_is(action, "cancel") ||
            (dgm_approval_read(p->data, &approval) && approval.decision == DGM_REJECTED))
            return true;
    }
    return false;
}

dgm_message dgm_auth_answer_hidden(dgm_arena *a, const dgm_message *m)
{
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "type", DGM_TYPE_AUTH_RESPONSE);
    dgm_json_build_lit(&b, "action", dgm_message_declines(a, m) ? "decline" : "accept");
    dgm_json_build_close(&b);
    dgm_part *part = dgm_new(a, dgm_part);
    *part = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_build_end(&b)};
    return (dgm_message){.message_id = m->message_id,
                         .context_id = m->context_id,
                         .task_id = m->task_id,
                         .role = m->role,
                         .parts = {part, 1}};
}

dgm_str dgm_auth_request_hidden(dgm_arena *a, dgm_str request)
{
    yyjson_val *root = dgm_json_parse_trusted(a, dgm_arena_dup(a, request)), *key, *value;
    size_t i, n;
    if (!dgm_json_get(root, DGM_STR("input")))
        return request;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    yyjson_obj_foreach (root, i, n, key, value) {
        if (!dgm_str_is(dgm_json_str(key), "input"))
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    dgm_json_build_array(&b, "input");
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_text_in(a, dgm_json_build_end(&b));
}

/* ---- as text ---------------------------------------------------------------------------------------------------------- */

bool dgm_part_is_asked(const dgm_part *p)
{
    dgm_question question;
    dgm_auth_request auth;
    return dgm_part_is_approval_request(p) ||
           (p->kind == DGM_PART_DATA &&
            (dgm_question_read(p->data, &question) || dgm_auth_request_read(p->data, &auth)));
}

const dgm_json *dgm_part_interrupts(const dgm_part *p)
{
    yyjson_val *list =
        p->kind == DGM_PART_DATA ? dgm_json_get(p->data, DGM_STR(DGM_DATA_INTERRUPTS)) : NULL;
    yyjson_val *first = yyjson_arr_get_first(list);
    bool is_list = yyjson_is_arr(list) && (!first || dgm_json_str_member(first, "id").n) &&
                   yyjson_obj_size((yyjson_val *)(uintptr_t)p->data) <= 2;
    return is_list ? list : NULL;
}

/* A question whose choices are only data: they follow it, one per line. */
static dgm_str question_text(dgm_arena *a, const dgm_question *q)
{
    yyjson_val *choice;
    size_t i, n;
    dgm_buf b;
    if (!q->choices)
        return q->text;
    dgm_buf_init(&b, DGM_MAX_FINAL_TEXT_BYTES);
    dgm_buf_add_str(&b, q->text);
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)q->choices, i, n, choice) {
        dgm_buf_add_lit(&b, "\n- ");
        dgm_buf_add_str(&b, dgm_json_str(choice));
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_str auth_text(dgm_arena *a, const dgm_auth_request *auth)
{
    dgm_str why = auth->reason.n ? auth->reason : DGM_STR("The agent needs you to sign in.");
    if (auth->url.n)
        return dgm_arena_printf(a, "%.*s\nSign in at %.*s", DGM_P(why), DGM_P(auth->url));
    if (auth->scheme.n)
        return dgm_arena_printf(a, "%.*s\nScheme: %.*s", DGM_P(why), DGM_P(auth->scheme));
    return why;
}

static dgm_str text_of_data(dgm_arena *a, const dgm_message *m)
{
    dgm_approval_requests requests = dgm_message_approval_requests(a, m);
    dgm_question question;
    dgm_auth_request auth;
    if (requests.n)
        return dgm_approval_question(a, &requests);
    if (dgm_message_question(m, &question))
        return question_text(a, &question);
    return dgm_message_auth_request(m, &auth) ? auth_text(a, &auth) : (dgm_str){0};
}

const dgm_message *dgm_message_as_shown(dgm_arena *a, const dgm_message *m)
{
    bool has_text = false;
    size_t n = 0;
    for (size_t i = 0; i < m->parts.n; i++) {
        n += dgm_part_is_asked(&m->parts.at[i]) || dgm_part_interrupts(&m->parts.at[i]);
        has_text |= m->parts.at[i].kind == DGM_PART_TEXT && m->parts.at[i].content.n;
    }
    if (!n)
        return m;
    dgm_message *shown = dgm_new(a, dgm_message);
    *shown = *m;
    shown->parts = (dgm_parts){dgm_new_n(a, dgm_part, m->parts.n + 1), 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (!dgm_part_is_asked(&m->parts.at[i]) && !dgm_part_interrupts(&m->parts.at[i]))
            shown->parts.at[shown->parts.n++] = m->parts.at[i];
    }
    if (!has_text)
        shown->parts.at[shown->parts.n++] =
            (dgm_part){.kind = DGM_PART_TEXT, .content = text_of_data(a, m)};
    return shown;
}
