/* wire/model_call_error.c - see model_call.h: errors of a model's server, and when a request may be repeated. */
#include "base/http_date.h"
#include "base/limits.h"
#include "wire/model_call_int.h"
#include "wire/server_error.h"

#include <stdlib.h>
#include <strings.h>

/* ---- what an error means ------------------------------------------------------------------------------------- */

/* The offset of the word in the text, or text.n. */
static size_t find_word(dgm_str text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.n; i++) {
        if (strncasecmp(text.p + i, word, n) == 0)
            return i;
    }
    return text.n;
}

static bool has_word(dgm_str text, const char *const *words)
{
    for (; *words; words++) {
        if (find_word(text, *words) < text.n)
            return true;
    }
    return false;
}

static bool is_one_of(dgm_str text, const char *const *words)
{
    for (; *words; words++) {
        if (dgm_str_eq_nocase(text, dgm_str_from(*words)))
            return true;
    }
    return false;
}

static bool is_retryable_status(long status)
{
    return status == 408 || status == 409 || status == 425 || status == 429 ||
           (status >= 500 && status <= 599 && status != 501 && status != 505);
}

void dgm_model_classify(dgm_model_error *e)
{
    static const char *const filter_codes[] = {"content_filter", "content_policy_violation",
                                               "ResponsibleAIPolicyViolation", NULL};
    static const char *const filter_words[] = {"content filter", "content management policy",
                                               "content_filter", NULL};
    static const char *const length_codes[] = {"context_length_exceeded",
                                               "exceed_context_size_error", NULL};
    static const char *const length_words[] = {"maximum context length", "context window",
                                               "context length", "available context size", NULL};
    static const char *const never_codes[] = {"insufficient_quota", "billing_hard_limit_reached",
                                              NULL};
    static const char *const retry_codes[] = {"rate_limit_exceeded",
                                              "rate_limit_error",
                                              "server_error",
                                              "internal_error",
                                              "internal_server_error",
                                              "overloaded_error",
                                              "overloaded",
                                              "server_is_overloaded",
                                              "slow_down",
                                              "service_unavailable",
                                              "timeout",
                                              "incomplete",
                                              "invalid_answer",
                                              "failed",
                                              NULL};
    bool is_rejected = !e->status || e->status == 400 || e->status == 413 || e->status == 422;
    char *end = NULL;
    long number = e->code.n && e->code.n < 5 ? strtol(e->code.p, &end, 10) : 0;
    if (end && *end)
        number = 0;
    e->is_content_filter =
        is_rejected && (is_one_of(e->code, filter_codes) || has_word(e->message, filter_words));
    e->is_too_long =
        is_rejected && (is_one_of(e->code, length_codes) || has_word(e->message, length_words));
    if (e->is_content_filter || e->is_too_long || is_one_of(e->code, never_codes))
        e->is_retryable = false;
    else if (e->status)
        e->is_retryable = is_retryable_status(e->status);
    else /* in a stream: most servers that do not say why have failed */
        e->is_retryable =
            !e->code.n || is_one_of(e->code, retry_codes) || is_retryable_status(number);
}

/* ---- answers with an error status -------------------------------------------------------------------------------- */

/* code, or type; Azure has the reason in innererror. */
static dgm_str error_code_in(const yyjson_val *v)
{
    yyjson_val *error = dgm_json_get(v, DGM_STR("error"));
    const yyjson_val *from = yyjson_is_obj(error) ? error : v;
    dgm_str inner = dgm_json_str_member(dgm_json_get(from, DGM_STR("innererror")), "code");
    yyjson_val *code = dgm_json_non_null(from, "code");
    if (inner.n)
        return inner;
    if (yyjson_is_str(code) || yyjson_is_raw(code))
        return dgm_json_str(code);
    return dgm_json_str_member(from, "type");
}

void dgm_model_read_error(dgm_arena *a, int status, dgm_str body, const dgm_model_handler *handler,
                          dgm_model_error *ret)
{
    yyjson_val *v = NULL;
    dgm_str words = {0};
    *ret = (dgm_model_error){.status = status, .retry_after_ms = -1};
    if (body.n && !dgm_json_read(a, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL)) {
        if (yyjson_is_arr(v)) /* Gemini's: [{"error":{...}}] */
            v = yyjson_arr_get_first(v);
        words = dgm_server_error_in(v);
        ret->code = dgm_arena_dup(a, error_code_in(v));
    }
    ret->message = words;
    dgm_model_classify(ret);
    if (words.n && handler->clean_error)
        words = handler->clean_error(handler->arg, a, words);
    ret->message = words.n
                       ? dgm_arena_dup(a, words)
                       : dgm_arena_printf(a, "the model's server answered with status %d", status);
}

/* ---- members that a server rejects -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned bit;
    bool is_common; /* an ordinary word: in a sentence only in quotes */
} rejectable[] = {
    {"stream_options", DGM_MODEL_STREAM_OPTIONS, false},
    {"max_completion_tokens", DGM_MODEL_MAX_COMPLETION_TOKENS, false},
    {"max_tokens", DGM_MODEL_MAX_TOKENS, false},
    {"include", DGM_MODEL_INCLUDE, true},
    {"store", DGM_MODEL_STORE, true},
};

static bool is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* Where a text names a member first; text.n: it does not. */
static size_t find_member(dgm_str text, const char *name, bool is_common)
{
    size_t n = strlen(name), from = 0, at;
    while ((at = from + find_word((dgm_str){text.p + from, text.n - from}, name)) < text.n) {
        char before = at ? text.p[at - 1] : ' ', after = at + n < text.n ? text.p[at + n] : ' ';
        bool is_word = before != '_' && after != '_';
        if (is_word && (!is_common || (is_quote(before) && is_quote(after))))
            return at;
        from = at + n;
    }
    return text.n;
}

unsigned dgm_model_rejected(int status, dgm_str body)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new_small(2048);
    yyjson_val *v = NULL;
    size_t first = body.n;
    unsigned found = 0;
    if ((status != 400 && status != 422) || !body.n)
        return 0;
    (void)dgm_json_read(a, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL);
    dgm_str param = dgm_json_str_member(dgm_json_get(v, DGM_STR("error")), "param");
    for (size_t i = 0; i < sizeof rejectable / sizeof *rejectable; i++) {
        const char *name = rejectable[i].name;
        if (dgm_str_starts(param, dgm_str_from(name)) &&
            (param.n == strlen(name) || strchr(".[", param.p[strlen(name)])))
            return rejectable[i].bit;
        size_t at = find_member(body, name, rejectable[i].is_common);
        if (at < first) {
            first = at;
            found = rejectable[i].bit;
        }
    }
    return param.n ? 0 : found;
}

/* ---- when a request may be repeated -------------------------------------------------------------------------------- */

/* A number without sign; false: it is not one. */
static bool read_number(dgm_str text, double *ret)
{
    char copy[16], *end;
    if (!text.n || text.n >= sizeof copy || text.p[0] < '0' || text.p[0] > '9')
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    *ret = strtod(copy, &end);
    return !*end && *ret < 1e9;
}

int64_t dgm_model_retry_after(dgm_str retry_after, dgm_str retry_after_ms, int64_t now)
{
    double n;
    int64_t at;
    if (read_number(retry_after_ms, &n))
        return (int64_t)n;
    if (read_number(retry_after, &n))
        return (int64_t)(n * 1000);
    if (dgm_http_date_read(retry_after, &at))
        return at * 1000 > now ? at * 1000 - now : 0;
    return -1;
}
