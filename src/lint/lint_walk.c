/*
 * lint/lint_walk.c - checks every member of a value: its name, null, the dialect that it belongs to.
 *
 * The decoders tolerate these faults, so the JSON itself is checked. Members with content of the sender's choice
 * (metadata, data, state, ...) are skipped.
 */
#include "lint/lint_int.h"

#include "base/err.h"

struct walk {
    dgm_linter *l;
    bool is_card;
    bool is_subagent; /* a SUBAGENT_ event */
    bool mixed;       /* already reported: one finding per value is enough */
};

static bool is_one_of(dgm_str key, const char *const *names)
{
    for (; *names; names++) {
        if (dgm_str_eq(key, dgm_str_from(*names)))
            return true;
    }
    return false;
}

static void walk_report(struct walk *w, lint_rule rule, const dgm_at *at, dgm_str name)
{
    char pointer[sizeof((dgm_err *)0)->at];
    dgm_at_text(at, pointer, sizeof pointer);
    if (rule == LINT_SNAKE_CASE)
        dgm_lint_report(w->l, rule, pointer,
                        "%.*s is in snake_case: conformance kits and strict readers reject it",
                        (int)(name.n < 60 ? name.n : 60), name.p);
    else if (rule == LINT_NULL_MEMBER || rule == LINT_AGUI_NULLS)
        dgm_lint_report(w->l, rule, pointer, "%.*s is null, which the protocol does not allow",
                        (int)(name.n < 60 ? name.n : 60), name.p);
    else
        dgm_lint_report(w->l, rule, pointer, NULL);
}

/* ---- marks of A2A's dialects ----------------------------------------------------------------------------- */

/* The value at `at` can belong to these dialects only. l->dialects has those that fit the whole stream. */
static void mark(struct walk *w, unsigned dialects, const dgm_at *at)
{
    dgm_linter *l = w->l;
    if (w->is_card || w->mixed)
        return; /* a card may be in both versions at once */
    w->mixed = !(l->dialects & dialects);
    if (w->mixed)
        walk_report(w, LINT_DIALECT_MIXING, at, (dgm_str){0});
    else
        l->dialects &= dialects;
}

static unsigned marks_of_state(dgm_str s)
{
    if (dgm_str_is(s, "TASK_STATE_CANCELLED"))
        return LINT_03_REST;
    if (dgm_str_is(s, "TASK_STATE_CANCELED"))
        return LINT_10;
    return dgm_str_starts(s, DGM_STR("TASK_STATE_")) ? LINT_10 | LINT_03_REST : LINT_03;
}

static unsigned marks_of_kind(dgm_str s)
{
    static const char *const kinds[] = {"task", "message", "status-update", "artifact-update",
                                        "text", "file",    "data",          NULL};
    return is_one_of(s, kinds) ? LINT_03 : LINT_ANY_DIALECT;
}

static unsigned marks_of(dgm_str key, yyjson_val *v, bool in_part)
{
    static const char *const wrappers[] = {"statusUpdate",    "artifactUpdate", "status_update",
                                           "artifact_update", "task",           NULL};
    static const char *const part_10[] = {"raw", "url", "mediaType", "filename", NULL};
    dgm_str text = yyjson_is_str(v) ? dgm_json_str(v) : (dgm_str){0};
    if (dgm_str_is(key, "kind"))
        return marks_of_kind(text);
    if (dgm_str_is(key, "state") && text.p)
        return marks_of_state(text);
    if (dgm_str_is(key, "role") && text.p)
        return dgm_str_starts(text, DGM_STR("ROLE_")) ? LINT_10 | LINT_03_REST : LINT_03;
    if (yyjson_is_obj(v) && is_one_of(key, wrappers))
        return LINT_10 | LINT_03_REST;
    if (in_part && is_one_of(key, part_10))
        return LINT_10;
    if (dgm_str_is(key, "content") && yyjson_is_arr(v))
        return LINT_03_REST;
    if (dgm_str_is(key, "final") && yyjson_is_bool(v))
        return LINT_03 | LINT_03_REST;
    if (dgm_str_is(key, "method") && text.p)
        return memchr(text.p, '/', text.n) ? LINT_03 : LINT_10;
    return LINT_ANY_DIALECT;
}

/* ---- A2A --------------------------------------------------------------------------------------------------- */

static bool is_free_a2a(dgm_str key)
{
    static const char *const names[] = {"metadata", "data", "error", "header", "details", NULL};
    return is_one_of(key, names);
}

/* Objects whose members have names of the sender's choice. */
static bool has_free_names(dgm_str key)
{
    static const char *const names[] = {"securitySchemes", "scopes", "schemes", "security", NULL};
    return is_one_of(key, names);
}

static bool is_snake_case(dgm_str key)
{
    return key.n && key.p[0] >= 'a' && key.p[0] <= 'z' && memchr(key.p, '_', key.n);
}

static bool may_be_null_a2a(dgm_str key, const dgm_at *at, bool in_part)
{
    /* of the envelope; and data is any value */
    return (!at && (dgm_str_is(key, "id") || dgm_str_is(key, "result"))) ||
           (in_part && dgm_str_is(key, "data"));
}

static void walk_check_time(struct walk *w, dgm_str key, yyjson_val *v, const dgm_at *at)
{
    if (!dgm_str_is(key, "timestamp") || !yyjson_is_str(v))
        return;
    dgm_str time = dgm_json_str(v);
    if (!time.n || time.p[time.n - 1] != 'Z')
        walk_report(w, LINT_TIME_ZONE, at, key);
}

/* Decoders read the number of a name as well, as ProtoJSON wants. */
static void walk_check_enum(struct walk *w, dgm_str key, yyjson_val *v, const dgm_at *at)
{
    char pointer[sizeof((dgm_err *)0)->at];
    if ((!dgm_str_is(key, "state") && !dgm_str_is(key, "role")) || !yyjson_is_raw(v))
        return;
    dgm_at_text(at, pointer, sizeof pointer);
    dgm_lint_report(w->l, LINT_WRONG_VALUE, pointer, "%.*s is a number: write its name",
                    DGM_P(key));
}

/* The schema of 0.3 wants the tag on parts; decoders tell by the member that is there. */
static void walk_check_kind(struct walk *w, yyjson_val *part, const dgm_at *at)
{
    char pointer[sizeof((dgm_err *)0)->at];
    if (w->l->format->dialect != LINT_03 || !yyjson_is_obj(part) ||
        dgm_json_get(part, DGM_STR("kind")))
        return;
    dgm_at_text(DGM_AT_LIT(at, "kind"), pointer, sizeof pointer);
    dgm_lint_report(w->l, LINT_REQUIRED_MEMBER, pointer,
                    "missing: A2A 0.3 needs it to identify the part");
}

static void walk_a2a(struct walk *w, yyjson_val *v, const dgm_at *at, bool in_part, bool free_names)
{
    size_t i, n;
    yyjson_val *e;
    if (in_part)
        walk_check_kind(w, v, at);
    yyjson_arr_foreach (v, i, n, e)
        walk_a2a(w, e, DGM_AT_I(at, i), in_part, free_names);
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    while ((e = yyjson_obj_iter_next(&it))) {
        yyjson_val *member = yyjson_obj_iter_get_val(e);
        dgm_str key = dgm_json_str(e);
        const dgm_at *here = DGM_AT(at, key);
        if (!free_names && is_snake_case(key))
            walk_report(w, LINT_SNAKE_CASE, here, key);
        if (yyjson_is_null(member) && !may_be_null_a2a(key, at, in_part))
            walk_report(w, LINT_NULL_MEMBER, here, key);
        mark(w, marks_of(key, member, in_part), here);
        walk_check_time(w, key, member, here);
        walk_check_enum(w, key, member, here);
        if (yyjson_is_ctn(member) && !is_free_a2a(key))
            walk_a2a(w, member, here, dgm_str_is(key, "parts") || dgm_str_is(key, "content"),
                     has_free_names(key));
    }
}

bool dgm_lint_walk_a2a(dgm_linter *l, yyjson_val *v, bool is_card)
{
    struct walk w = {.l = l, .is_card = is_card};
    if (yyjson_is_ctn(v))
        walk_a2a(&w, v, NULL, false, false);
    return w.mixed;
}

/* ---- AG-UI -------------------------------------------------------------------------------------------------- */

/* Members that may have any JSON value, also null. */
static bool may_be_null_agui(dgm_str key)
{
    static const char *const names[] = {"value", "event", "snapshot", "state", "payload", NULL};
    return is_one_of(key, names);
}

static bool is_free_agui(dgm_str key, yyjson_val *v)
{
    static const char *const names[] = {"metadata",       "rawEvent",   "result",
                                        "forwardedProps", "patch",      "responseSchema",
                                        "delta",          "parameters", NULL};
    return may_be_null_agui(key) || is_one_of(key, names) ||
           (dgm_str_is(key, "content") && yyjson_is_obj(v));
}

static void walk_agui(struct walk *w, yyjson_val *v, const dgm_at *at)
{
    size_t i, n;
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e)
        walk_agui(w, e, DGM_AT_I(at, i));
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    while ((e = yyjson_obj_iter_next(&it))) {
        yyjson_val *member = yyjson_obj_iter_get_val(e);
        dgm_str key = dgm_json_str(e);
        const dgm_at *here = DGM_AT(at, key);
        bool of_subagent = (w->is_subagent && !at) || dgm_str_is(key, "subagentRunId");
        if (yyjson_is_null(member) && !may_be_null_agui(key))
            walk_report(w, of_subagent ? LINT_AGUI_NULLS : LINT_NULL_MEMBER, here, key);
        if (yyjson_is_ctn(member) && !is_free_agui(key, member))
            walk_agui(w, member, here);
    }
}

void dgm_lint_walk_agui(dgm_linter *l, yyjson_val *v)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    struct walk w = {.l = l};
    w.is_subagent = yyjson_is_str(type) && dgm_str_starts(dgm_json_str(type), DGM_STR("SUBAGENT_"));
    if (yyjson_is_ctn(v))
        walk_agui(&w, v, NULL);
}
