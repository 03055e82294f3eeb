/*
 * json/shape_flat.c - from structs to flat lists of values, by table: shape_write.c without text.
 *
 * It handles the members that results of the functions on values have. An object with another member is refused; its text is
 * written and read instead. src/lib/test_values.c compares both.
 */
#include "json/shape_int.h"

#define FIRST_VALUES 32

/* ---- lists --------------------------------------------------------------------------------------------- */

dgm_value *dgm_flat_grow(dgm_flat *flat)
{
    size_t cap = flat->cap ? 2 * flat->cap : FIRST_VALUES;
    flat->at = dgm_arena_realloc(flat->arena, flat->at, flat->cap * sizeof *flat->at,
                                 cap * sizeof *flat->at);
    flat->cap = cap;
    return &flat->at[flat->n++];
}

void dgm_flat_add_json(dgm_flat *flat, const yyjson_val *value)
{
    size_t n = value ? dgm_json_run(value) : 0;
    if (!value)
        dgm_flat_add(flat, DGM_JSON_KIND_NULL, 0, NULL);
    for (const yyjson_val *v = value; n; v++, n--) {
        size_t length = (size_t)(v->tag >> YYJSON_TAG_BIT);
        switch (v->tag & YYJSON_TYPE_MASK) {
        case YYJSON_TYPE_STR: dgm_flat_add(flat, DGM_JSON_KIND_STRING, length, v->uni.str); break;
        case YYJSON_TYPE_RAW: dgm_flat_add(flat, DGM_JSON_KIND_NUMBER, length, v->uni.str); break;
        case YYJSON_TYPE_ARR: dgm_flat_add(flat, DGM_JSON_KIND_ARRAY, length, NULL); break;
        case YYJSON_TYPE_OBJ: dgm_flat_add(flat, DGM_JSON_KIND_OBJECT, length, NULL); break;
        case YYJSON_TYPE_BOOL:
            dgm_flat_add(flat, DGM_JSON_KIND_BOOL,
                         (v->tag & YYJSON_SUBTYPE_MASK) == YYJSON_SUBTYPE_TRUE, NULL);
            break;
        default: dgm_flat_add(flat, DGM_JSON_KIND_NULL, 0, NULL); break;
        }
    }
}

/* ---- members ------------------------------------------------------------------------------------------- */

static bool flat_list(dgm_flat *flat, const dgm_shape *s, const struct any_list *list)
{
    dgm_flat_add(flat, DGM_JSON_KIND_ARRAY, list->n, NULL);
    for (size_t i = 0; i < list->n; i++) {
        if (!dgm_shape_flatten(flat, s, (const char *)list->at + i * s->size))
            return false;
    }
    return true;
}

/* Is it written? For the kinds that flat_value() knows; shape_write.c has all. */
static bool flat_is_there(const dgm_shape *s, const dgm_field *f, const void *from)
{
    bool always = (f->flags & (DGM_REQUIRED | DGM_ONE_OF)) != 0;
    bool defaults = !s->proto || f->flags & DGM_PRESENCE;
    switch ((int)f->kind) {
    case DGM_FIELD_STR:
    case DGM_FIELD_LIST: {
        const struct any_list *list = from; /* a text is a pointer and a length, too */
        return always || (defaults ? list->at != NULL : list->n != 0);
    }
    case DGM_FIELD_ENUM: return always || *(const int *)from;
    case DGM_FIELD_JSON: return always || *(yyjson_val *const *)from;
    case DGM_FIELD_OBJECT: return *(void *const *)from;
    default: return true;
    }
}

static dgm_str flat_enum_name(const dgm_enum_names *names, int value)
{
    const char *name = value >= 0 && value < names->n ? names->names[value] : NULL;
    return dgm_str_from(name ? name : names->names[0]);
}

static bool flat_value(dgm_flat *flat, const dgm_field *f, const void *object)
{
    const void *from = (const char *)object + f->at;
    switch ((int)f->kind) {
    case DGM_FIELD_STR: dgm_flat_add_str(flat, *(const dgm_str *)from); return true;
    case DGM_FIELD_CONST:
        dgm_flat_add(flat, DGM_JSON_KIND_STRING, f->tag, f->of.literal);
        return true;
    case DGM_FIELD_ENUM:
        dgm_flat_add_str(flat, flat_enum_name(f->of.names, *(const int *)from));
        return true;
    case DGM_FIELD_JSON: dgm_flat_add_json(flat, *(yyjson_val *const *)from); return true;
    case DGM_FIELD_LIST: return flat_list(flat, f->of.shape, from);
    case DGM_FIELD_OBJECT: return dgm_shape_flatten(flat, f->of.shape, *(void *const *)from);
    case DGM_FIELD_INLINE: return dgm_shape_flatten(flat, f->of.shape, from);
    case DGM_FIELD_NEST: return dgm_shape_flatten(flat, f->of.shape, object);
    case DGM_FIELD_CUSTOM: return f->of.custom->flatten && f->of.custom->flatten(flat, object);
    default: return false;
    }
}

/* ---- objects --------------------------------------------------------------------------------------------- */

bool dgm_shape_flatten(dgm_flat *flat, const dgm_shape *s, const void *object)
{
    if (s->pick_write) {
        dgm_picked picked = s->pick_write(object);
        s = picked.shape;
        object = picked.object;
    }
    if (s->write_instead || s->tag_at != DGM_NOWHERE)
        return false;
    size_t head = flat->n, members = 0;
    dgm_flat_add(flat, DGM_JSON_KIND_OBJECT, 0, NULL);
    for (size_t i = 0; i < s->n_fields; i++) {
        const dgm_field *f = &s->fields[i];
        const void *from = (const char *)object + f->at;
        if (f->look == DGM_LOOK_NEVER || (f->look == DGM_LOOK_POINTER && !*(void *const *)from) ||
            !flat_is_there(s, f, from))
            continue;
        dgm_flat_add(flat, DGM_JSON_KIND_STRING, f->name_n, f->quoted + 1);
        if (!flat_value(flat, f, object))
            return false;
        members++;
    }
    flat->at[head].n = members;
    return s->extra_at == DGM_NOWHERE ||
           !*(const dgm_extra *const *)(const void *)((const char *)object + s->extra_at);
}
