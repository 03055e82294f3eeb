/* schema/schema_check.c - one check of a value: steps, mistakes, nodes, and the public functions. */
#include "base/limits.h"
#include "schema/schema_int.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- steps and mistakes ------------------------------------------------------------------------ */

bool dgm_schema_stop(dgm_schema_run *run, const dgm_at *at, const char *fmt, ...)
{
    char text[sizeof run->err->msg];
    va_list ap;
    if (run->stop)
        return false;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    run->stop = dgm_fail(run->err, DGM_TOO_LARGE, at, "%s", text);
    return false;
}

bool dgm_schema_spend(dgm_schema_run *run, uint64_t steps)
{
    if (run->stop)
        return false;
    if (steps > run->steps)
        return dgm_schema_stop(run, NULL,
                               "the check needs more than the limit schema_steps of %d: use a "
                               "simpler schema or a smaller value",
                               DGM_MAX_SCHEMA_STEPS);
    run->steps -= steps;
    return true;
}

bool dgm_schema_mistake(dgm_schema_run *run, const dgm_at *at, const char *fmt, ...)
{
    va_list ap;
    if (!dgm_schema_wants_more(run))
        return false;
    dgm_err *e = &run->mistakes[run->n_mistakes++];
    *e = (dgm_err){.code = DGM_BAD_PARAMS};
    va_start(ap, fmt);
    vsnprintf(e->msg, sizeof e->msg, fmt, ap);
    va_end(ap);
    dgm_at_text(at, e->at, sizeof e->at);
    return false;
}

/* The start of the text, without a part of a character at its end. */
static dgm_str cut_text(dgm_str text, size_t most)
{
    if (text.n <= most)
        return text;
    while (most && ((unsigned char)text.p[most] & 0xC0) == 0x80)
        most--;
    return (dgm_str){text.p, most};
}

/* May it be written? Quoting is not paid for, so large values are not quoted. */
static bool is_quotable(const yyjson_val *v)
{
    size_t n = dgm_json_run(v), bytes = 0;
    if (n > DGM_MAX_QUOTED_BYTES)
        return false;
    for (size_t i = 0; i < n; i++) {
        yyjson_val *at = dgm_schema_plain(v + i);
        if (yyjson_is_str(at) || yyjson_is_raw(at))
            bytes += dgm_json_str(at).n;
    }
    return bytes <= 8 * DGM_MAX_QUOTED_BYTES;
}

dgm_str dgm_schema_quote(dgm_schema_run *run, const yyjson_val *v)
{
    if (!run->mistakes)
        return DGM_STR("");
    bool is_text = yyjson_is_str(dgm_schema_plain(v)), is_cut = false;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    if (is_text) {
        dgm_str text = cut_text(dgm_json_str(v), DGM_MAX_QUOTED_BYTES);
        is_cut = text.n < dgm_json_str(v).n;
        dgm_json_put_str(&b, text);
    } else if (is_quotable(v)) {
        dgm_json_put(&b, v);
    } else {
        dgm_buf_add_str(&b, dgm_str_from(dgm_json_type(v)));
    }
    dgm_str cut = cut_text(dgm_buf_str(&b), is_text ? SIZE_MAX : DGM_MAX_QUOTED_BYTES);
    is_cut |= cut.n < b.n;
    dgm_str text = dgm_arena_printf(run->arena, "%.*s%s", DGM_P(cut), is_cut ? "..." : "");
    dgm_buf_done(&b);
    return text;
}

dgm_str dgm_schema_join(dgm_schema_run *run, const dgm_str *texts, size_t n, size_t most)
{
    dgm_str out = {0};
    size_t shown = n < most ? n : most;
    for (size_t i = 0; i < shown; i++) {
        const char *between = i == 0 ? "" : i + 1 == n ? " or " : ", ";
        out = dgm_arena_printf(run->arena, "%.*s%s%.*s", DGM_P(out), between, DGM_P(texts[i]));
    }
    return shown < n ? dgm_arena_printf(run->arena, "%.*s, ...", DGM_P(out)) : out;
}

unsigned dgm_schema_type_of(const yyjson_val *v)
{
    dgm_schema_number number;
    switch (yyjson_get_type(dgm_schema_plain(v))) {
    case YYJSON_TYPE_NULL: return DGM_SCHEMA_NULL;
    case YYJSON_TYPE_BOOL: return DGM_SCHEMA_BOOLEAN;
    case YYJSON_TYPE_STR: return DGM_SCHEMA_STRING;
    case YYJSON_TYPE_ARR: return DGM_SCHEMA_ARRAY;
    case YYJSON_TYPE_OBJ: return DGM_SCHEMA_OBJECT;
    case YYJSON_TYPE_RAW:
        number = dgm_schema_number_read(dgm_json_str(v));
        return DGM_SCHEMA_NUMBER |
               (dgm_schema_number_is_integer(&number) ? DGM_SCHEMA_INTEGER : 0u);
    default: return 0;
    }
}

/* ---- evaluated members and items --------------------------------------------------------------- */

dgm_schema_seen *dgm_schema_seen_new(dgm_schema_run *run, const yyjson_val *v)
{
    yyjson_val *value = dgm_schema_plain(v);
    size_t count = yyjson_is_obj(value) ? yyjson_obj_size(value) : yyjson_arr_size(value);
    if (!dgm_schema_spend(run, 4 + count / 8))
        count = 0;
    dgm_schema_seen *seen = dgm_new(run->arena, dgm_schema_seen);
    seen->n = (count + 63) / 64;
    seen->bits = dgm_new_n(run->arena, uint64_t, seen->n);
    return seen;
}

void dgm_schema_seen_merge(dgm_schema_seen *into, const dgm_schema_seen *from)
{
    for (size_t i = 0; into && i < into->n && i < from->n; i++)
        into->bits[i] |= from->bits[i];
}

/* ---- nodes ------------------------------------------------------------------------------------- */

static bool check_rules(dgm_schema_run *run, const dgm_schema_visit *visit)
{
    const dgm_schema_node *node = visit->node;
    unsigned type = dgm_schema_type_of(visit->value);
    bool is_valid = true;
    for (size_t i = 0; i < node->n_rules; i++) {
        const dgm_schema_keyword *k = node->rules[i].keyword;
        if ((k->types && !(k->types & type)) || (k->is_last && !is_valid))
            continue;
        if (k->check(run, &node->rules[i], visit))
            continue;
        is_valid = false;
        /* With a wrong type every other rule would only repeat it. */
        if (!dgm_schema_wants_more(run) || k->check == dgm_schema_check_type)
            break;
    }
    return is_valid && !run->stop;
}

bool dgm_schema_visit_node(dgm_schema_run *run, const dgm_schema_node *node, const yyjson_val *v,
                           const dgm_at *at, const dgm_schema_scope *scope, dgm_schema_seen *seen)
{
    dgm_schema_scope own = {scope, node->resource};
    /* A number is read again by every node. */
    size_t digits = yyjson_is_raw(dgm_schema_plain(v)) ? dgm_json_str(v).n : 0;
    if (!dgm_schema_spend(run, 1 + node->n_rules + digits / 16))
        return false;
    if (yyjson_is_bool(dgm_schema_plain(node->value)))
        return yyjson_get_bool(dgm_schema_plain(node->value)) ||
               dgm_schema_mistake(run, at, "no value is allowed here");
    if (run->depth >= DGM_MAX_SCHEMA_DEPTH)
        return dgm_schema_stop(run, at,
                               "the schema nests deeper than the limit schema_depth of %d here: a "
                               "reference may refer to itself",
                               DGM_MAX_SCHEMA_DEPTH);
    dgm_schema_visit visit = {node, v, at, scope, seen};
    if (!scope || scope->resource != node->resource)
        visit.scope = &own;
    if (node->has_unevaluated)
        visit.seen = dgm_schema_seen_new(run, v);
    run->depth++;
    bool is_valid = check_rules(run, &visit);
    run->depth--;
    if (node->has_unevaluated && is_valid)
        dgm_schema_seen_merge(seen, visit.seen);
    return is_valid;
}

/* ---- public ------------------------------------------------------------------------------------ */

dgm_code dgm_schema_check(const dgm_schema *s, const dgm_json *value,
                          dgm_schema_mistakes *ret_mistakes, dgm_err *err)
{
    dgm_err first = {0}, stopped = {0};
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_schema_run run = {.arena = a,
                          .steps = DGM_MAX_SCHEMA_STEPS,
                          .err = &stopped,
                          .mistakes = ret_mistakes ? ret_mistakes->items : &first,
                          .max_mistakes = ret_mistakes ? DGM_SCHEMA_MISTAKES : 1};
    bool is_valid = dgm_schema_visit_node(&run, s->root, value, NULL, NULL, NULL);
    if (ret_mistakes)
        ret_mistakes->n = run.stop ? 0 : run.n_mistakes;
    if (!run.stop && is_valid)
        return DGM_OK;
    if (err)
        *err = run.stop ? stopped : run.mistakes[0];
    return run.stop ? run.stop : DGM_BAD_PARAMS;
}

void dgm_schema_explain(const dgm_schema_mistakes *mistakes, dgm_buf *out)
{
    for (size_t i = 0; i < mistakes->n; i++) {
        const dgm_err *e = &mistakes->items[i];
        dgm_buf_printf(out, "%s%s%s%s", i ? "\n" : "", e->at, e->at[0] ? ": " : "", e->msg);
    }
}
