/* frontend/list_limits.c - see list_limits.h. */
#include "frontend/list_limits.h"
#include "base/limits.h"

#define MESSAGES DGM_MAX_REQUEST_MESSAGES, "request_messages"
#define PARTS DGM_MAX_REQUEST_PARTS, "request_parts"
#define TOOLS DGM_MAX_REQUEST_TOOLS, "request_tools"
#define WORDS DGM_MAX_REQUEST_WORDS, "request_words"

const struct dgm_list_limit dgm_list_limits_agui[] = {
    {"messages", MESSAGES},
    {"messages/*/content", PARTS},
    {"messages/*/toolCalls", PARTS},
    {"tools", TOOLS},
    {"context", TOOLS},
    {"resume", DGM_MAX_RESUME_ENTRIES, "resume_entries"},
    {NULL, 0, NULL},
};

const struct dgm_list_limit dgm_list_limits_aisdk[] = {
    {"messages", MESSAGES},
    {"messages/*/parts", PARTS},
    {"tools", TOOLS},
    {NULL, 0, NULL},
};

const struct dgm_list_limit dgm_list_limits_responses[] = {
    {"input", MESSAGES},
    {"input/*/content", PARTS},
    {"input/*/summary", PARTS},
    {"input/*/output", PARTS},
    {"input/*/content/*/annotations", PARTS},
    {"input/*/content/*/logprobs", PARTS},
    {"tools", TOOLS},
    {"tool_choice/tools", TOOLS},
    {"prompt/variables", WORDS},
    {"metadata", WORDS},
    {"include", WORDS},
    {NULL, 0, NULL},
};

/* ---- checking ------------------------------------------------------------------------------------------------ */

dgm_code dgm_check_list(size_t n, size_t max, const char *limit, const dgm_at *at, dgm_err *err)
{
    if (n <= max)
        return DGM_OK;
    return dgm_fail(err, DGM_TOO_LARGE, at, "%zu entries, more than the limit %s of %zu", n, limit,
                    max);
}

static dgm_code check_lists_below(yyjson_val *v, const char *path, const struct dgm_list_limit *l,
                                  const dgm_at *at, dgm_err *err);

static dgm_code check_every_entry(yyjson_val *list, const char *path,
                                  const struct dgm_list_limit *l, const dgm_at *at, dgm_err *err)
{
    yyjson_val *e;
    size_t i, n;
    dgm_code rc;
    yyjson_arr_foreach (list, i, n, e) {
        if ((rc = check_lists_below(e, path, l, DGM_AT_I(at, i), err)))
            return rc;
    }
    return DGM_OK;
}

/* path: the rest of it, from v on; empty: v is the list. */
static dgm_code check_lists_below(yyjson_val *v, const char *path, const struct dgm_list_limit *l,
                                  const dgm_at *at, dgm_err *err)
{
    if (!*path)
        return dgm_check_list(yyjson_is_obj(v) ? yyjson_obj_size(v) : yyjson_arr_size(v), l->max,
                              l->limit, at, err);
    const char *end = strchr(path, '/');
    dgm_str step = {path, end ? (size_t)(end - path) : strlen(path)};
    const char *rest = path + step.n + (end != NULL);
    if (dgm_str_is(step, "*"))
        return check_every_entry(v, rest, l, at, err);
    yyjson_val *member = dgm_json_get(v, step);
    return member ? check_lists_below(member, rest, l, DGM_AT(at, step), err) : DGM_OK;
}

dgm_code dgm_check_lists(yyjson_val *body, const struct dgm_list_limit *limits, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    for (const struct dgm_list_limit *l = limits; !rc && l->path; l++)
        rc = check_lists_below(body, l->path, l, NULL, err);
    return rc;
}
