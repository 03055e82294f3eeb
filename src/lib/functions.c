/* lib/functions.c - what the documents' functions share: see functions_int.h. */
#include "base/limits.h"
#include "lib/functions_int.h"
#include "wire/a2a/a2a.h"
#include "wire/agui/agui.h"
#include "wire/agui/agui_simple.h"

#include <stdlib.h>

/* ---- errors ---------------------------------------------------------------------------------------------- */

/* Line and column of what the pointer of err names, where they are not known yet; copies it out. */
static dgm_code functions_failed(dgm_str text, dgm_err *fault, dgm_err *err)
{
    if (!fault->line && fault->code != DGM_TOO_LARGE && fault->code != DGM_PARSE)
        dgm_json_place(text, dgm_json_find(text, fault->at), fault);
    if (err)
        *err = *fault;
    return fault->code;
}

/* ---- A2A ------------------------------------------------------------------------------------------------- */

/* Decodes v by its codec; ids are generated from the text. */
static dgm_code functions_decode(const dgm_functions_in *in, yyjson_val *v, size_t n,
                                 dgm_object_kind kind, dgm_functions_object *o, dgm_err *err)
{
    const dgm_mint none = {0};
    dgm_mint mint = dgm_mint_for(&none, n, in->text);
    dgm_reader r = {.arena = in->a, .mint = &mint, .err = err};
    dgm_code rc = o->codec->decode(&r, v, kind, false, &o->frame);
    o->made_id = mint.count > 0;
    return rc;
}

dgm_code dgm_functions_read_object(dgm_functions_in *in, yyjson_val *v, size_t n,
                                   dgm_functions_object *ret, dgm_err *err)
{
    dgm_functions_object o = {0};
    dgm_object_kind kind;
    dgm_code rc;
    o.codec = dgm_a2a_find_dialect(v, &kind);
    if (!kind && yyjson_is_str(dgm_json_get(v, DGM_STR("content"))) &&
        !dgm_json_get(v, DGM_STR("parts")))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "content"),
                        "this is a message of Chat Completions: one of A2A has `parts`");
    if (!o.codec)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "not an A2A message, task or update: expected an object with `role` "
                        "and `parts`, or with `status`");
    if ((rc = functions_decode(in, v, n, kind, &o, err)))
        return rc;
    if (o.made_id && !in->text.p) { /* most messages have an id */
        in->text = dgm_json_text_in(in->a, in->root);
        if ((rc = functions_decode(in, v, n, kind, &o, err)))
            return rc;
    }
    *ret = o;
    return DGM_OK;
}

/* ---- events ---------------------------------------------------------------------------------------------- */

struct reading {
    dgm_reader r;
    dgm_functions_events *ret;
    dgm_agui_decoder *decoder; /* NULL: no official event so far */
    size_t n;                  /* events seen */
};

/* What an event points to lives as long as the text, but for what the decoder remembers. */
static dgm_code functions_keep(void *arg, const dgm_canon_event *event)
{
    struct reading *k = arg;
    dgm_canon_events *list = &k->ret->canon;
    dgm_arena *a = k->r.arena;
    list->at = dgm_list_grow(a, list->at, list->n, sizeof *list->at);
    dgm_canon_event *e = &list->at[list->n++];
    *e = *event;
    if (e->subagent_run_id.p)
        e->subagent_run_id = dgm_arena_dup(a, e->subagent_run_id);
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END:
        e->text.message_id = dgm_arena_dup(a, e->text.message_id);
        break;
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END:
        e->call.tool_call_id = dgm_arena_dup(a, e->call.tool_call_id);
        break;
    default: break;
    }
    return DGM_OK;
}

static bool is_chunk(yyjson_val *v)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    dgm_str name = yyjson_is_str(type) ? dgm_json_str(type) : DGM_STR("");
    return dgm_str_is(name, "TEXT_MESSAGE_CHUNK") || dgm_str_is(name, "TOOL_CALL_CHUNK") ||
           dgm_str_is(name, "REASONING_MESSAGE_CHUNK");
}

static dgm_code read_event(struct reading *k, yyjson_val *v, const dgm_at *at)
{
    dgm_functions_events *ret = k->ret;
    dgm_code rc;
    if (!k->n++) {
        ret->official = !dgm_agui_simple_recognise(v) && dgm_agui_recognise(v);
        ret->chunk = is_chunk(v);
    } else if (ret->official && dgm_agui_simple_recognise(v)) {
        return dgm_fail(k->r.err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "type"),
                        "this is an event of ag-ui-simple, those before are of ag-ui: convert them "
                        "apart");
    }
    if (ret->official) {
        if (!k->decoder)
            k->decoder = dgm_agui_decoder_new();
        if ((rc = dgm_agui_decoder_feed(k->decoder, &k->r, v, (dgm_canon_sink){functions_keep, k})))
            dgm_err_below(at, k->r.err);
        return rc;
    }
    dgm_simple_events *list = &ret->simple;
    list->at = dgm_list_grow(k->r.arena, list->at, list->n, sizeof *list->at);
    if ((rc = dgm_agui_simple_read(&k->r, v, at, &list->at[list->n])))
        return rc;
    list->n++;
    return DGM_OK;
}

static dgm_code read_elements(struct reading *k, yyjson_val *array, const dgm_at *at, bool inner)
{
    size_t i, n;
    yyjson_val *v;
    dgm_code rc;
    if (yyjson_arr_size(array) > DGM_MAX_LIST_ITEMS)
        return dgm_fail(k->r.err, DGM_TOO_LARGE, at,
                        "%zu entries, more than the limit list_items of %d: send fewer at once",
                        yyjson_arr_size(array), DGM_MAX_LIST_ITEMS);
    yyjson_arr_foreach (array, i, n, v) {
        const dgm_at *here = DGM_AT_I(at, i);
        if (yyjson_is_null(v))
            continue;
        if ((rc = yyjson_is_arr(v) && !inner ? read_elements(k, v, here, true)
                                             : read_event(k, v, here)))
            return rc;
    }
    return DGM_OK;
}

dgm_code dgm_functions_read_events(const dgm_functions_in *in, dgm_functions_events *ret,
                                   dgm_err *err)
{
    struct reading k = {.r = {.arena = in->a, .err = err}, .ret = ret};
    dgm_code rc = DGM_OK;
    *ret = (dgm_functions_events){.is_list = yyjson_is_arr(in->root)};
    if (ret->is_list)
        rc = read_elements(&k, in->root, NULL, false);
    else if (!yyjson_is_null(in->root)) /* null is a message that has no event */
        rc = read_event(&k, in->root, NULL);
    ret->chunk = ret->chunk && !ret->is_list;
    if (k.decoder && !rc)
        rc = dgm_agui_decoder_end(k.decoder, (dgm_canon_sink){functions_keep, &k});
    dgm_agui_decoder_free(k.decoder);
    return rc;
}

/* ---- writing --------------------------------------------------------------------------------------------- */

void dgm_functions_out_init(dgm_functions_out *o)
{
    *o = (dgm_functions_out){0};
    dgm_buf_init(&o->text, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_add_char(&o->text, '[');
}

void dgm_functions_out_clear(dgm_functions_out *o)
{
    o->n = o->n_flat = 0;
    o->is_list = false;
    o->flat = NULL;
    dgm_buf_clear(&o->text);
    dgm_buf_add_char(&o->text, '[');
}

dgm_writer dgm_functions_next(dgm_functions_out *o, dgm_format_id format)
{
    if (o->n++)
        dgm_buf_add_char(&o->text, ',');
    return (dgm_writer){.out = &o->text, .format = format};
}

dgm_code dgm_functions_out_end(dgm_functions_out *o, dgm_str *ret_text, dgm_err *err)
{
    bool one = !o->is_list && o->n == 1, none = !o->is_list && !o->n;
    if (!one)
        dgm_buf_add_char(&o->text, ']');
    if (o->text.over)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "becomes more than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    dgm_str text = dgm_buf_str(&o->text);
    if (one) /* without the bracket that was written in case there would be more */
        text = (dgm_str){text.p + 1, text.n - 1};
    *ret_text = none ? (dgm_str){0} : text;
    return DGM_OK;
}

dgm_code dgm_functions_out_done(dgm_functions_out *o, dgm_code rc, char **ret_text, size_t *ret_n,
                                dgm_err *err)
{
    dgm_str text;
    if (!rc && !(rc = dgm_functions_out_end(o, &text, err))) {
        size_t n = 0;
        dgm_buf_drop_front(&o->text, o->text.n - text.n);
        o->text.max = SIZE_MAX;
        *ret_text = text.p ? dgm_buf_steal(&o->text, &n) : NULL;
        if (ret_n)
            *ret_n = n;
    }
    dgm_buf_done(&o->text);
    return rc;
}

/* Counts a value that was written to the flat list, or removes the part of it that was. */
static bool functions_flat_done(dgm_functions_out *o, size_t start, bool is_done)
{
    if (is_done)
        o->n_flat++;
    else
        o->flat->n = start;
    return is_done;
}

bool dgm_functions_flatten(dgm_functions_out *o, const dgm_shape *s, const void *object)
{
    size_t start = o->flat ? o->flat->n : 0;
    return o->flat && functions_flat_done(o, start, dgm_shape_flatten(o->flat, s, object));
}

void dgm_functions_put_simple(dgm_functions_out *o, const dgm_simple_events *events)
{
    for (size_t i = 0; i < events->n; i++) {
        const dgm_simple_event *e = &events->at[i];
        size_t start = o->flat ? o->flat->n : 0;
        if (o->flat && functions_flat_done(o, start, dgm_agui_simple_flatten(o->flat, e)))
            continue;
        dgm_writer w = dgm_functions_next(o, DGM_FORMAT_AG_UI_SIMPLE);
        dgm_agui_simple_write(&w, e);
    }
}

/* ---- text to text ---------------------------------------------------------------------------------------- */

dgm_code dgm_functions_on_text(dgm_functions_convert *convert, dgm_str text, char **ret_text,
                               size_t *ret_n, dgm_err *err)
{
    if (!ret_text || (!text.p && text.n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_functions_in in = {.a = a, .text = text.p ? text : DGM_STR("")};
    dgm_functions_out out;
    dgm_err fault = {0};
    dgm_functions_out_init(&out);
    dgm_code rc = dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &in.root, &fault);
    if (!rc)
        rc = convert(&in, &out, &fault);
    rc = dgm_functions_out_done(&out, rc, ret_text, ret_n, &fault);
    return rc ? functions_failed(text, &fault, err) : DGM_OK;
}
