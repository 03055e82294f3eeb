/*
 * json/shape_write.c - from structs to bytes, by the same tables.
 *
 * Within this file the end of what is written travels as a pointer, `out`, from function to function:
 * in a register, where the buffer's own length would be stored and loaded for every member. The
 * buffer gets it (`leave`) before other code reads the buffer, and `out` is loaded again afterwards.
 */
#include "json/copy_clean.h"
#include "json/shape.h"

struct any_list { /* the layout all lists of the model share */
    const char *at;
    size_t n;
};

/* ---- the cursor --------------------------------------------------------------------------------- */

static inline void leave(dgm_writer *w, char *out)
{
    w->out->n = (size_t)(out - w->out->p);
}

static __attribute__((noinline, cold)) char *grow(dgm_writer *w, char *out, size_t more)
{
    leave(w, out);
    return dgm_buf_grow(w->out, more) ? w->out->p + w->out->n : NULL;
}

/* Where to write `more` bytes that follow what is at out; NULL when the limit does not allow it: out
 * stays good then, and what does not fit is left away. */
static inline char *room(dgm_writer *w, char *out, size_t more)
{
    dgm_buf *b = w->out;
    if (__builtin_expect((size_t)(b->p + b->cap - out) < more, 0))
        return grow(w, out, more);
    if (!out)
        __builtin_unreachable(); /* spares every caller the look at what only grow() returns */
    return out;
}

static inline char *put_char(dgm_writer *w, char *out, char c)
{
    char *to = room(w, out, 1);
    if (!to)
        return out;
    *to = c;
    return to + 1;
}

static inline char *shape_write_put_key(dgm_writer *w, char *out, const dgm_field *f)
{
    char *to = room(w, out, DGM_KEY_ROOM + 1);
    return to ? dgm_copy_key(to, f) : out;
}

/* ---- members -------------------------------------------------------------------------------------- */

static __attribute__((noinline)) char *put_rest(dgm_writer *w, char *out, const char *p, size_t n)
{
    leave(w, out);
    dgm_json_put_chars(w->out, (dgm_str){p, n});
    dgm_buf_add_char(w->out, '"');
    return w->out->p + w->out->n;
}

/* The most frequent member of all: key and text with one look at the room. */
static inline __attribute__((always_inline)) char *
put_text_here(dgm_writer *w, char *out, const dgm_field *f, const char *p, size_t n)
{
    char *to = room(w, out, DGM_KEY_ROOM + 3 + n + DGM_COPY_SLACK);
    if (!to)
        return out;
    to = dgm_copy_key(to, f);
    *to++ = '"';
    size_t clean = dgm_copy_clean(to, p, n);
    if (clean < n)
        return put_rest(w, to + clean, p + clean, n - clean);
    to[n] = '"';
    return to + n + 1;
}

static char *put_int(dgm_writer *w, char *out, const dgm_field *f, int64_t n)
{
    leave(w, shape_write_put_key(w, out, f));
    dgm_json_put_int(w->out, n);
    return w->out->p + w->out->n;
}

static inline char *put_bool(dgm_writer *w, char *out, const dgm_field *f, bool set)
{
    char *to = room(w, out, DGM_KEY_ROOM + 1 + 8);
    if (!to)
        return out;
    to = dgm_copy_key(to, f);
    static const char words[2][8] = {"false", "true"};
    memcpy(to, words[set], sizeof words[set]);
    return to + (set ? 4 : 5);
}

static char *put_object(dgm_writer *w, char *out, const dgm_shape *s, const void *object);

static char *shape_write_put_list(dgm_writer *w, char *out, const dgm_shape *s,
                                  const struct any_list *list)
{
    out = put_char(w, out, '[');
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            out = put_char(w, out, ',');
        out = put_object(w, out, s, list->at + i * s->size);
    }
    return put_char(w, out, ']');
}

static char *put_map(dgm_writer *w, char *out, const dgm_shape *s, const struct any_list *list)
{
    out = put_char(w, out, '{');
    for (size_t i = 0; i < list->n; i++) {
        const void *item = list->at + i * s->size;
        if (i)
            out = put_char(w, out, ',');
        leave(w, out);
        dgm_json_put_str(w->out, *(const dgm_str *)item);
        out = put_object(w, put_char(w, w->out->p + w->out->n, ':'), s, item);
    }
    return put_char(w, out, '}');
}

/* A member that a glance did not show to be absent. */
static __attribute__((noinline)) char *shape_write_put_member(dgm_writer *w, char *out,
                                                              const dgm_shape *s,
                                                              const dgm_field *f,
                                                              const void *object)
{
    const void *from = (const char *)object + f->at;
    /* What is always there: a required member, the one of the union that the tag names. */
    bool always = (f->flags & (DGM_REQUIRED | DGM_ONE_OF)) != 0;
    bool defaults = !s->proto || f->flags & DGM_PRESENCE;
    dgm_str text = {0};
    switch ((dgm_field_kind)f->kind) {
    case DGM_FIELD_STR:
    case DGM_FIELD_TIME:
    case DGM_FIELD_BASE64:
        text = *(const dgm_str *)from;
        if (!always && !(defaults ? text.p != NULL : text.n != 0))
            return out;
        break;
    case DGM_FIELD_BOOL: {
        dgm_opt_bool b = *(const dgm_opt_bool *)from;
        return always || b == DGM_TRUE || (b == DGM_FALSE && defaults)
                   ? put_bool(w, out, f, b == DGM_TRUE)
                   : out;
    }
    case DGM_FIELD_INT: {
        int32_t n = *(const int32_t *)from;
        return always || n ? put_int(w, out, f, n) : out;
    }
    case DGM_FIELD_OPT_INT: {
        const dgm_opt_int *n = from;
        return always || (n->set && (defaults || n->value)) ? put_int(w, out, f, n->value) : out;
    }
    case DGM_FIELD_ENUM:
    case DGM_FIELD_OPT_ENUM: {
        const dgm_enum_names *names = f->of.names;
        const dgm_opt_int *opt = f->kind == DGM_FIELD_OPT_ENUM ? from : NULL;
        int value = opt ? opt->value : *(const int *)from;
        if (opt ? !opt->set || (!defaults && !value) : !always && !value)
            return out;
        const char *name = value >= 0 && value < names->n ? names->names[value] : NULL;
        text = dgm_str_from(name ? name : names->names[0]);
        break;
    }
    case DGM_FIELD_STRS: {
        const dgm_strs *list = from;
        if (!always && !(defaults ? list->at != NULL : list->n != 0))
            return out;
        leave(w, shape_write_put_key(w, out, f));
        dgm_put_strs(w, *list);
        return w->out->p + w->out->n;
    }
    case DGM_FIELD_JSON:
    case DGM_FIELD_MAP_JSON: {
        const yyjson_val *v = *(yyjson_val *const *)from;
        if (!always && !v)
            return out;
        leave(w, shape_write_put_key(w, out, f));
        dgm_json_put(w->out, v);
        return w->out->p + w->out->n;
    }
    case DGM_FIELD_OBJECT: {
        const void *o = *(void *const *)from;
        return o ? put_object(w, shape_write_put_key(w, out, f), f->of.shape, o) : out;
    }
    case DGM_FIELD_INLINE: return put_object(w, shape_write_put_key(w, out, f), f->of.shape, from);
    case DGM_FIELD_NEST: return put_object(w, shape_write_put_key(w, out, f), f->of.shape, object);
    case DGM_FIELD_LIST:
    case DGM_FIELD_MAP: {
        const struct any_list *list = from;
        if (!always && !(defaults ? list->at != NULL : list->n != 0))
            return out;
        out = shape_write_put_key(w, out, f);
        return f->kind == DGM_FIELD_LIST ? shape_write_put_list(w, out, f->of.shape, list)
                                         : put_map(w, out, f->of.shape, list);
    }
    case DGM_FIELD_CONST: return shape_write_put_key(w, out, f);
    case DGM_FIELD_CUSTOM:
        if (!f->of.custom->write)
            return out;
        leave(w, out);
        f->of.custom->write(w, f, object);
        return w->out->p + w->out->n;
    }
    return put_text_here(w, out, f, text.p, text.n); /* the kinds that are a text */
}

/* ---- objects --------------------------------------------------------------------------------------- */

static char *put_extra(dgm_writer *w, char *out, const dgm_extra *x)
{
    leave(w, out);
    for (size_t i = 0; i < x->n; i++) {
        dgm_put_comma(w);
        dgm_json_put_str(w->out, x->at[i].key);
        dgm_buf_add_char(w->out, ':');
        dgm_json_put(w->out, x->at[i].value);
    }
    return w->out->p + w->out->n;
}

static char *put_object(dgm_writer *w, char *out, const dgm_shape *s, const void *object)
{
    if (s->pick_write) {
        dgm_picked picked = s->pick_write(object);
        s = picked.shape;
        object = picked.object;
    }
    if (s->write_instead) {
        leave(w, out);
        s->write_instead(w, object);
        return w->out->p + w->out->n;
    }
    char *to = room(w, out, 1);
    if (!to)
        return out;
    *to = '{';
    out = to + 1;
    int tag = s->tag_at == DGM_NOWHERE
                  ? 0
                  : *(const int *)(const void *)((const char *)object + s->tag_at);
    const dgm_field *end = s->n_fields ? s->fields + s->n_fields : s->fields; /* may be NULL */
    for (const dgm_field *f = s->fields; f < end; f++) {
        const void *from = (const char *)object + f->at;
        if (f->look == DGM_LOOK_POINTER) {
            if (!*(void *const *)from)
                continue;
        } else if (f->look != DGM_LOOK_CLOSER) {
            if (f->look == DGM_LOOK_INT   ? !*(const int *)from
                : f->look == DGM_LOOK_TAG ? f->tag != tag
                                          : true)
                continue;
        }
        /* Most of what is left, one by one, which is foreseen better than a jump by table. */
        if (f->kind == DGM_FIELD_STR) {
            const dgm_str *str = from;
            if (str->n || !s->proto || f->flags & (DGM_REQUIRED | DGM_ONE_OF | DGM_PRESENCE))
                out = put_text_here(w, out, f, str->p, str->n);
        } else if (f->kind == DGM_FIELD_CONST) {
            out = shape_write_put_key(w, out, f);
        } else if (f->kind == DGM_FIELD_INLINE) {
            out = put_object(w, shape_write_put_key(w, out, f), f->of.shape, from);
        } else if (f->kind == DGM_FIELD_OBJECT && *(void *const *)from) {
            out = put_object(w, shape_write_put_key(w, out, f), f->of.shape, *(void *const *)from);
        } else if (f->kind == DGM_FIELD_LIST && ((const struct any_list *)from)->n) {
            out = shape_write_put_list(w, shape_write_put_key(w, out, f), f->of.shape, from);
        } else if (f->kind == DGM_FIELD_BOOL && *(const dgm_opt_bool *)from == DGM_TRUE) {
            out = put_bool(w, out, f, true);
        } else {
            out = shape_write_put_member(w, out, s, f, object);
        }
    }
    if (s->extra_at != DGM_NOWHERE) {
        const dgm_extra *x =
            *(const dgm_extra *const *)(const void *)((const char *)object + s->extra_at);
        if (x && x->format == w->format)
            out = put_extra(w, out, x);
    }
    return put_char(w, out, '}');
}

void dgm_put_strs(dgm_writer *w, dgm_strs list)
{
    dgm_buf_add_char(w->out, '[');
    for (size_t i = 0; i < list.n; i++) {
        if (i)
            dgm_buf_add_char(w->out, ',');
        dgm_json_put_str(w->out, list.at[i]);
    }
    dgm_buf_add_char(w->out, ']');
}

void dgm_shape_write(dgm_writer *w, const dgm_shape *s, const void *object)
{
    if (dgm_buf_room(w->out, 1))
        leave(w, put_object(w, w->out->p + w->out->n, s, object));
}
