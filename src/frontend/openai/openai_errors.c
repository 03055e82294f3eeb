/* frontend/openai/openai_errors.c - errors in OpenAI's format, and how runs end. */
#include "frontend/openai/openai_errors.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>

#define INVALID "invalid_request_error"

/* ---- answering ---------------------------------------------------------------------------------------------- */

static void openai_errors_put_text(dgm_buf *out, dgm_str text)
{
    if (text.p)
        dgm_json_put_str(out, text);
    else
        dgm_buf_add_lit(out, "null");
}

void dgm_openai_put_error(dgm_buf *out, const struct openai_error *e)
{
    dgm_buf_add_lit(out, "{\"error\":{\"message\":");
    dgm_json_put_str(out, e->message);
    dgm_buf_printf(out, ",\"type\":\"%s\",\"param\":", e->type);
    openai_errors_put_text(out, e->param);
    dgm_buf_add_lit(out, ",\"code\":");
    openai_errors_put_text(out, e->code);
    dgm_buf_add_lit(out, "}}");
}

void dgm_openai_fail_with(dgm_http_exchange *x, const struct openai_error *e,
                          const dgm_http_header *headers, size_t n)
{
    dgm_arena *a = dgm_http_arena(x);
    dgm_http_header *all = dgm_new_n(a, dgm_http_header, n + 2);
    dgm_buf body;
    if (n)
        memcpy(all, headers, n * sizeof *headers);
    if (e->should_retry != OPENAI_RETRY_BY_STATUS)
        all[n++] =
            (dgm_http_header){DGM_STR("x-should-retry"),
                              e->should_retry == OPENAI_RETRY ? DGM_STR("true") : DGM_STR("false")};
    if (e->retry_after)
        all[n++] =
            (dgm_http_header){DGM_STR("Retry-After"), dgm_arena_printf(a, "%d", e->retry_after)};
    dgm_buf_init(&body, SIZE_MAX);
    dgm_openai_put_error(&body, e);
    dgm_http_respond(x, e->http, DGM_STR("application/json"), all, n, dgm_buf_str(&body));
    dgm_buf_done(&body);
}

void dgm_openai_fail(dgm_http_exchange *x, const struct openai_error *e)
{
    dgm_openai_fail_with(x, e, NULL, 0);
}

void dgm_openai_fail_param(dgm_http_exchange *x, const char *code, const char *param,
                           const char *fmt, ...)
{
    char message[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    dgm_openai_fail(x, &(struct openai_error){.http = 400,
                                              .type = INVALID,
                                              .code = dgm_str_from(code),
                                              .param = dgm_str_from(param),
                                              .message = dgm_str_from(message)});
}

void dgm_openai_fail_method(dgm_http_exchange *x, const char *allow)
{
    dgm_http_header header = {DGM_STR("Allow"), dgm_str_from(allow)};
    struct openai_error e = {
        .http = 405,
        .type = INVALID,
        .code = DGM_STR("method_not_supported"),
        .message = dgm_arena_printf(dgm_http_arena(x), "this address takes %s", allow)};
    dgm_openai_fail_with(x, &e, &header, 1);
}

/* ---- what it was ---------------------------------------------------------------------------------------------- */

dgm_str dgm_openai_param(dgm_arena *a, const char *pointer)
{
    dgm_str step, rest = dgm_str_from(pointer);
    dgm_buf b;
    if (!rest.n)
        return (dgm_str){0};
    dgm_buf_init(&b, SIZE_MAX);
    while (rest.n) {
        rest = (dgm_str){rest.p + 1, rest.n - 1}; /* the slash */
        const char *slash = rest.n ? memchr(rest.p, '/', rest.n) : NULL;
        step = (dgm_str){rest.p, slash ? (size_t)(slash - rest.p) : rest.n};
        rest = (dgm_str){rest.p + step.n, rest.n - step.n};
        bool index = b.n && step.n && step.p[0] >= '0' && step.p[0] <= '9';
        dgm_buf_add_str(&b, index ? DGM_STR("[") : b.n ? DGM_STR(".") : DGM_STR(""));
        dgm_buf_add_str(&b, step);
        dgm_buf_add_str(&b, index ? DGM_STR("]") : DGM_STR(""));
    }
    dgm_str param = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return param;
}

static dgm_str code_of_params(const dgm_err *err, yyjson_val *body)
{
    bool is_there = !body || !err->at[0] || yyjson_ptr_get(body, err->at);
    return is_there ? DGM_STR("invalid_value") : DGM_STR("missing_required_parameter");
}

static struct openai_error as(int http, const char *type, const char *code)
{
    return (struct openai_error){.http = http, .type = type, .code = dgm_str_from(code)};
}

static struct openai_error by_code(const dgm_err *err, yyjson_val *body)
{
    struct openai_error e = as(500, "server_error", NULL);
    switch (err->code) {
    case DGM_PARSE: return as(400, INVALID, "invalid_json");
    case DGM_BAD_REQUEST:
    case DGM_BAD_PARAMS:
        e = as(400, INVALID, NULL);
        e.code = code_of_params(err, body);
        return e;
    case DGM_NO_SUCH_METHOD: return as(404, INVALID, "unknown_url");
    case DGM_TASK_NOT_FOUND: return as(404, INVALID, NULL);
    case DGM_TASK_NOT_CANCELABLE:
    case DGM_PUSH_NOT_SUPPORTED:
    case DGM_UNSUPPORTED_OPERATION:
    case DGM_EXTENDED_CARD_NOT_CONFIGURED:
    case DGM_EXTENSION_REQUIRED:
    case DGM_VERSION_NOT_SUPPORTED: return as(400, INVALID, "unsupported_operation");
    case DGM_CONTENT_TYPE_NOT_SUPPORTED: return as(415, INVALID, "unsupported_content_type");
    case DGM_UNAUTHENTICATED: return as(401, "authentication_error", "invalid_api_key");
    case DGM_FORBIDDEN: return as(403, "permission_error", NULL);
    case DGM_TOO_LARGE: return as(413, INVALID, "request_too_large");
    case DGM_RATE_LIMITED:
        e = as(429, "rate_limit_error", "rate_limit_exceeded");
        e.retry_after = 1;
        return e;
    case DGM_UNAVAILABLE:
        e = as(503, "server_error", "unavailable");
        e.should_retry = OPENAI_RETRY;
        e.retry_after = 1;
        return e;
    case DGM_UPSTREAM_TIMEOUT: return as(504, "server_error", "timeout");
    case DGM_INVALID_AGENT_RESPONSE: /* it has run */
        e = as(424, "agent_error", "invalid_agent_response");
        e.should_retry = OPENAI_RETRY_NEVER;
        return e;
    case DGM_INTERNAL:
    case DGM_OK: break;
    }
    return e;
}

struct openai_error dgm_openai_error_of(dgm_arena *a, const dgm_err *err, yyjson_val *body)
{
    struct openai_error e = by_code(err, body);
    e.param = dgm_openai_param(a, err->at);
    e.message = e.param.n ? dgm_arena_printf(a, "%s: %s", e.param.p, err->msg)
                          : dgm_arena_dup(a, dgm_str_from(err->msg));
    return e;
}

void dgm_openai_fail_err(dgm_http_exchange *x, const dgm_err *err, yyjson_val *body)
{
    struct openai_error e = dgm_openai_error_of(dgm_http_arena(x), err, body);
    dgm_openai_fail(x, &e);
}

struct openai_error dgm_openai_error_of_end(dgm_str code, dgm_str message)
{
    struct openai_error e = as(424, "agent_error", NULL);
    e.should_retry = OPENAI_RETRY_NEVER;
    e.message = message.n ? message : DGM_STR("the agent gave no reason");
    if (dgm_str_is(code, "canceled"))
        e.code = DGM_STR("task_canceled");
    else if (dgm_str_is(code, "failed") || !code.n)
        e.code = DGM_STR("task_failed");
    else
        e.code = code;
    return e;
}

/* ---- how runs end -------------------------------------------------------------------------------------------------- */

#define NEEDS_INPUT "The agent needs more from you before it can go on."
#define NEEDS_CREDENTIALS "The agent needs credentials before it can go on."

static bool needs_credentials(const dgm_canon_outcome *o)
{
    return o->interrupts.n && dgm_str_is(o->interrupts.at[0].reason, "a2a:auth_required");
}

const char *dgm_openai_state_of(const dgm_canon_event *end)
{
    const dgm_canon_outcome *o = &end->run_finished.outcome;
    if (end->kind == DGM_CANON_RUN_ERROR)
        return dgm_str_is(end->run_error.code, "rejected")   ? "rejected"
               : dgm_str_is(end->run_error.code, "canceled") ? "canceled"
                                                             : "failed";
    if (o->kind == DGM_CANON_CANCELLED)
        return "canceled";
    if (o->kind == DGM_CANON_INTERRUPT)
        return needs_credentials(o) ? "auth-required" : "input-required";
    return o->pending_tool_call_ids.n ? "input-required" : "completed";
}

void dgm_openai_end_note(dgm_http_exchange *x, struct openai_end *end, const dgm_canon_event *e)
{
    const dgm_canon_outcome *o = &e->run_finished.outcome;
    dgm_str code = {0}, message = {0};
    end->state = dgm_openai_state_of(e);
    if (e->kind == DGM_CANON_RUN_ERROR && !dgm_str_is(e->run_error.code, "rejected")) {
        end->failed = true;
        code = e->run_error.code;
        message = e->run_error.message;
    } else if (e->kind == DGM_CANON_RUN_FINISHED && o->kind == DGM_CANON_CANCELLED) {
        end->failed = true;
        code = DGM_STR("canceled");
        message = DGM_STR("The task was canceled");
    }
    if (end->failed) {
        end->code = dgm_http_keep_text(x, code);
        end->message = dgm_http_keep_text(x, message);
    }
    end->is_question = e->kind == DGM_CANON_RUN_FINISHED && o->kind == DGM_CANON_INTERRUPT;
    end->lacks_question = end->is_question && o->interrupts.n && !o->interrupts.at[0].message.n;
}

dgm_str dgm_openai_our_question(bool auth)
{
    return auth ? DGM_STR(NEEDS_CREDENTIALS) : DGM_STR(NEEDS_INPUT);
}

dgm_code dgm_openai_ask(dgm_output *output, const dgm_canon_event *end, dgm_canon_sink next)
{
    return dgm_output_text(output, DGM_STR(DGM_NAME_QUESTION),
                           dgm_openai_our_question(needs_credentials(&end->run_finished.outcome)),
                           next);
}

bool dgm_openai_is_our_question(dgm_str text)
{
    return dgm_str_is(text, NEEDS_INPUT) || dgm_str_is(text, NEEDS_CREDENTIALS);
}
