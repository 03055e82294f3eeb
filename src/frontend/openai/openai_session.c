/* frontend/openai/openai_session.c - which conversation a request goes on with. */
#include "frontend/openai/openai_session.h"
#include "model/guard.h"
#include "wire/model_call.h"

#define MAX_KEY 512 /* bytes: what OpenAI allows a value of metadata */

static const char *const headers[] = {"x-a2a-context-id", "x-conversation-id",
                                      "x-openwebui-chat-id", "x-session-id"};
static const char *const members[] = {"a2a_context_id", "conversation_id"};
#define N(list) (sizeof(list) / sizeof *(list))

/* It goes into answers' headers and into JSON. */
static dgm_code check(dgm_str key, dgm_str name, const dgm_at *at, dgm_err *err)
{
    bool fine = dgm_utf8_check(key) == key.n;
    for (size_t i = 0; i < key.n; i++)
        fine &= (unsigned char)key.p[i] >= ' ' && key.p[i] != 0x7f;
    if (!fine || key.n > MAX_KEY)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "%.*s: expected at most %d bytes of plain text",
                        DGM_P(name), MAX_KEY);
    return DGM_OK;
}

dgm_code dgm_openai_session(const dgm_http_request *r, const yyjson_val *metadata, dgm_str *ret_key,
                            dgm_err *err)
{
    const dgm_http_header *h = NULL;
    *ret_key = (dgm_str){0};
    for (size_t i = 0; !h && i < N(headers); i++) {
        for (size_t k = 0; !h && k < r->n_headers; k++) {
            if (r->headers[k].value.n && dgm_str_eq(r->headers[k].name, dgm_str_from(headers[i])))
                h = &r->headers[k];
        }
    }
    for (size_t k = 0; !h && k < r->n_headers; k++) { /* "x-librechat-session-id" and the like */
        dgm_str name = r->headers[k].name, end = DGM_STR("-session-id");
        if (r->headers[k].value.n && name.n > end.n + 2 && dgm_str_starts(name, DGM_STR("x-")) &&
            memcmp(name.p + name.n - end.n, end.p, end.n) == 0)
            h = &r->headers[k];
    }
    if (h) {
        *ret_key = h->value;
        return check(h->value, h->name, NULL, err);
    }
    for (size_t i = 0; i < N(members); i++) {
        dgm_str name = dgm_str_from(members[i]);
        yyjson_val *v = dgm_json_get(metadata, name);
        if (!yyjson_is_str(v) || !dgm_json_str(v).n)
            continue;
        *ret_key = dgm_json_str(v);
        return check(*ret_key, name, DGM_AT(DGM_AT_LIT(NULL, "metadata"), name), err);
    }
    return DGM_OK;
}

static bool is_for_agent(dgm_str name, bool marks)
{
    for (size_t i = 0; i < N(members); i++) {
        if (dgm_str_eq(name, dgm_str_from(members[i])))
            return false;
    }
    return !dgm_guard_is_servers(name) && !(marks && dgm_str_starts(name, DGM_STR("a2a_")));
}

const dgm_json *dgm_openai_metadata(dgm_arena *a, const yyjson_val *body,
                                    const dgm_output_form *form, bool marks)
{
    yyjson_val *metadata = dgm_json_get(body, DGM_STR("metadata")), *key, *value;
    yyjson_val *choice = dgm_json_get(body, DGM_STR("tool_choice"));
    const dgm_json *parameters = dgm_model_parameters(a, body);
    dgm_member *list = dgm_new_n(a, dgm_member, yyjson_obj_size(metadata) + 3);
    size_t i, max, n = 0;
    yyjson_obj_foreach (metadata, i, max, key, value) {
        if (!yyjson_is_null(value) && is_for_agent(dgm_json_str(key), marks))
            list[n++] = (dgm_member){dgm_json_str(key), value};
    }
    if (choice && !yyjson_is_null(choice))
        list[n++] = (dgm_member){DGM_STR(DGM_META_TOOL_CHOICE), choice};
    if (form->json)
        list[n++] = (dgm_member){DGM_STR(DGM_META_RESPONSE_FORMAT), form->format};
    if (parameters)
        list[n++] = (dgm_member){DGM_STR(DGM_META_PARAMETERS), parameters};
    return n ? dgm_json_object(a, list, n) : NULL;
}
