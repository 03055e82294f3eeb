/* json/shape_write.c - from structs to bytes, by the same tables. */
#include "json/copy_clean.h"
#include "json/shape.h"

struct any_list { /* the layout all lists of the model share */
    const char *at;
    size_t n;
};

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

static dgm_str enum_name(const dgm_enum_names *names, int value)
{
    const char *name = value >= 0 && value < names->n ? names->names[value] : NULL;
    return dgm_str_from(name ? name : names->names[0] ? names->names[0] : "");
}

/* The most frequent member of all: key and text with one look at the room. */
static inline void put_text_member(dgm_writer *w, const dgm_field *f, dgm_str s)
{
    dgm_buf *b = w->out;
    if (!dgm_buf_room(b, DGM_KEY_ROOM + 3 + s.n + DGM_COPY_SLACK))
        return;
    char *out = b->p + b->n;
    if (out[-1] != '{') /* members are only ever written inside an object */
        *out++ = ',';
    memcpy(out, f->quoted, DGM_KEY_ROOM);
    out += f->quoted_n;
    *out++ = '"';
    size_t clean = s.n ? dgm_copy_clean(out, s.p, s.n) : 0;
    out += clean;
    if (clean == s.n)
        *out++ = '"';
    b->n = (size_t)(out - b->p);
    if (clean < s.n) {
        dgm_json_put_chars(b, (dgm_str){s.p + clean, s.n - clean});
        dgm_buf_add_char(b, '"');
    }
}

static void put_member(dgm_writer *w, const dgm_shape *s, const dgm_field *f, const void *object)
{
    const void *from = (const char *)object + f->at;
    /* What is always there: a required member, the one of the union that the tag names. */
    bool always = (f->flags & (DGM_REQUIRED | DGM_ONE_OF)) != 0;
    bool defaults = !s->proto || f->flags & DGM_PRESENCE;
    switch ((dgm_field_kind)f->kind) {
    case DGM_FIELD_STR:
    case DGM_FIELD_TIME:
    case DGM_FIELD_BASE64: {
        const dgm_str *str = from;
        if (always || (defaults ? str->p != NULL : str->n != 0))
            put_text_member(w, f, *str);
        return;
    }
    case DGM_FIELD_BOOL: {
        dgm_opt_bool b = *(const dgm_opt_bool *)from;
        if (always || b == DGM_TRUE || (b == DGM_FALSE && defaults)) {
            dgm_put_key(w, f);
            if (b == DGM_TRUE)
                dgm_buf_add_lit(w->out, "true");
            else
                dgm_buf_add_lit(w->out, "false");
        }
        return;
    }
    case DGM_FIELD_INT: {
        int32_t n = *(const int32_t *)from;
        if (always || n) {
            dgm_put_key(w, f);
            dgm_json_put_int(w->out, n);
        }
        return;
    }
    case DGM_FIELD_OPT_INT: {
        const dgm_opt_int *n = from;
        if (always || (n->set && (defaults || n->value))) {
            dgm_put_key(w, f);
            dgm_json_put_int(w->out, n->value);
        }
        return;
    }
    case DGM_FIELD_ENUM: {
        int value = *(const int *)from;
        if (always || value)
            put_text_member(w, f, enum_name(f->of.names, value));
        return;
    }
    case DGM_FIELD_OPT_ENUM: {
        const dgm_opt_int *n = from;
        if (n->set && (defaults || n->value))
            put_text_member(w, f, enum_name(f->of.names, n->value));
        return;
    }
    case DGM_FIELD_STRS: {
        const dgm_strs *list = from;
        if (always || (defaults ? list->at != NULL : list->n != 0)) {
            dgm_put_key(w, f);
            dgm_put_strs(w, *list);
        }
        return;
    }
    case DGM_FIELD_JSON:
    case DGM_FIELD_MAP_JSON: {
        const yyjson_val *v = *(yyjson_val *const *)from;
        if (always || v) {
            dgm_put_key(w, f);
            dgm_json_put(w->out, v);
        }
        return;
    }
    case DGM_FIELD_OBJECT: {
        const void *o = *(void *const *)from;
        if (o) {
            dgm_put_key(w, f);
            dgm_shape_write(w, f->of.shape, o);
        }
        return;
    }
    case DGM_FIELD_INLINE:
        dgm_put_key(w, f);
        dgm_shape_write(w, f->of.shape, from);
        return;
    case DGM_FIELD_NEST:
        dgm_put_key(w, f);
        dgm_shape_write(w, f->of.shape, object);
        return;
    case DGM_FIELD_LIST: {
        const struct any_list *list = from;
        if (always || (defaults ? list->at != NULL : list->n != 0)) {
            dgm_put_key(w, f);
            dgm_buf_add_char(w->out, '[');
            for (size_t i = 0; i < list->n; i++) {
                if (i)
                    dgm_buf_add_char(w->out, ',');
                dgm_shape_write(w, f->of.shape, list->at + i * f->of.shape->size);
            }
            dgm_buf_add_char(w->out, ']');
        }
        return;
    }
    case DGM_FIELD_MAP: {
        const struct any_list *list = from;
        if (always || (defaults ? list->at != NULL : list->n != 0)) {
            dgm_put_key(w, f);
            dgm_buf_add_char(w->out, '{');
            for (size_t i = 0; i < list->n; i++) {
                const void *item = list->at + i * f->of.shape->size;
                if (i)
                    dgm_buf_add_char(w->out, ',');
                dgm_json_put_str(w->out, *(const dgm_str *)item);
                dgm_buf_add_char(w->out, ':');
                dgm_shape_write(w, f->of.shape, item);
            }
            dgm_buf_add_char(w->out, '}');
        }
        return;
    }
    case DGM_FIELD_CONST: put_text_member(w, f, (dgm_str){f->of.literal, f->tag}); return;
    case DGM_FIELD_CUSTOM:
        if (f->of.custom->write)
            f->of.custom->write(w, f, object);
        return;
    }
}

void dgm_shape_write(dgm_writer *w, const dgm_shape *s, const void *object)
{
    if (s->pick_write)
        s = s->pick_write(object);
    if (s->write_instead) {
        s->write_instead(w, object);
        return;
    }
    dgm_buf_add_char(w->out, '{');
    int tag = s->tag_at == DGM_NOWHERE
                  ? 0
                  : *(const int *)(const void *)((const char *)object + s->tag_at);
    const dgm_field *end = s->n_fields ? s->fields + s->n_fields : s->fields; /* may be NULL */
    for (const dgm_field *f = s->fields; f < end; f++) {
        /* Most members of most objects are absent: see that before asking for their kind. */
        if (f->flags & (DGM_READ_ONLY | DGM_ONE_OF)) {
            if (f->flags & DGM_READ_ONLY || f->tag != tag)
                continue;
        } else if (f->kind <= DGM_FIELD_OBJECT && !(f->flags & DGM_REQUIRED) &&
                   !*(void *const *)(const void *)((const char *)object + f->at)) {
            continue;
        }
        if (f->kind == DGM_FIELD_STR) { /* most of what is left; spares a jump nobody foresees */
            const dgm_str *str = (const void *)((const char *)object + f->at);
            if (str->n || !s->proto || f->flags & (DGM_REQUIRED | DGM_ONE_OF | DGM_PRESENCE))
                put_text_member(w, f, *str);
            continue;
        }
        put_member(w, s, f, object);
    }
    if (s->extra_at != DGM_NOWHERE) {
        const dgm_extra *x =
            *(const dgm_extra *const *)(const void *)((const char *)object + s->extra_at);
        /* Formats are told apart by their name's address: each has one. */
        for (size_t i = 0; x && x->format == w->format && i < x->n; i++) {
            dgm_put_comma(w);
            dgm_json_put_str(w->out, x->at[i].key);
            dgm_buf_add_char(w->out, ':');
            dgm_json_put(w->out, x->at[i].value);
        }
    }
    dgm_buf_add_char(w->out, '}');
}
