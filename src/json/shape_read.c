/* json/shape_read.c - from values to structs, by table. */
#include "base/limits.h"
#include "base/map.h"
#include "json/shape_int.h"

#include <stdio.h>

/* ---- lists of text, unknown members ------------------------------------------------------------- */

static __attribute__((noinline, cold)) dgm_code list_too_long(dgm_reader *r, size_t n,
                                                              const dgm_at *at)
{
    return dgm_fail(r->err, DGM_TOO_LARGE, at,
                    "%zu entries, more than the limit list_items of %d: send fewer at once", n,
                    DGM_MAX_LIST_ITEMS);
}

dgm_code dgm_read_strs(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_strs *ret)
{
    dgm_code rc;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array of strings");
    size_t i, n = yyjson_arr_size(v);
    if (n > DGM_MAX_LIST_ITEMS)
        return list_too_long(r, n, at);
    dgm_strs list = {dgm_new_n(r->arena, dgm_str, n), n};
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        if ((rc = dgm_read_str(r, e, DGM_AT_I(at, i), &list.at[i])))
            return rc;
    }
    *ret = list;
    return DGM_OK;
}

dgm_code dgm_read_unknown(dgm_reader *r, dgm_str key, yyjson_val *v, const dgm_at *at,
                          const dgm_extra **extra)
{
    r->n_unknown++;
    if (r->on_unknown)
        r->on_unknown(r->on_unknown_arg, at, key);
    if (r->drop_unknown)
        return DGM_OK;
    /* The list was made here, by this reader: it is ours to extend. */
    dgm_extra *x = (dgm_extra *)(uintptr_t)*extra;
    if (!x) {
        x = dgm_new(r->arena, dgm_extra);
        x->format = r->format;
        *extra = x;
    }
    if (x->n == DGM_MAX_UNKNOWN_MEMBERS)
        return dgm_fail(r->err, DGM_TOO_LARGE, at,
                        "more unknown members than the limit unknown_members of %d",
                        DGM_MAX_UNKNOWN_MEMBERS);
    for (size_t i = 0; i < x->n; i++) {
        if (dgm_str_eq(x->at[i].key, key))
            return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, key), "this member occurs twice");
    }
    if ((x->n & (x->n - 1)) == 0) /* full at 0, 1, 2, 4, ...: double */
        x->at = dgm_arena_realloc(r->arena, x->at, x->n * sizeof *x->at,
                                  (x->n ? 2 * x->n : 1) * sizeof *x->at);
    x->at[x->n++] = (dgm_member){key, v};
    return DGM_OK;
}

/* ---- finding the row -------------------------------------------------------------------------- */

/* message_id -> messageId, into a buffer that fits any name we know. */
static dgm_str camel(dgm_str key, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < key.n; i++) {
        char c = key.p[i];
        if (c == '_' && i + 1 < key.n && n) {
            c = key.p[++i];
            if (c >= 'a' && c <= 'z')
                c = (char)(c - 32);
        }
        if (n == size)
            return (dgm_str){0};
        out[n++] = c;
    }
    return (dgm_str){out, n};
}

/* Members mostly come in the order of the table, so this is asked for those that do not. */
static __attribute__((noinline)) const dgm_field *shape_read_find(const dgm_shape *s, dgm_str key)
{
    for (size_t i = 0; i < s->n_fields; i++) {
        const dgm_field *f = &s->fields[i];
        if (f->name_n == key.n && same_bytes(f->quoted + 1, key.p, key.n))
            return f;
    }
    if (s->proto && memchr(key.p, '_', key.n)) {
        char name[48];
        dgm_str other = camel(key, name, sizeof name);
        if (other.p && !memchr(other.p, '_', other.n))
            return shape_read_find(s, other);
    }
    return NULL;
}

/* Another name counts as the row that it is another name of: both at once is a double. */
static size_t index_of(const dgm_shape *s, const dgm_field *f)
{
    /* A function reads another name of a member only if the row has the member's place. */
    if (f->kind != DGM_FIELD_NEST && !(f->kind == DGM_FIELD_CUSTOM && f->at == 0)) {
        for (size_t i = 0; i < s->n_fields; i++) {
            const dgm_field *main = &s->fields[i];
            if (!(main->flags & DGM_READ_ONLY) && main->at == f->at && main->tag == f->tag &&
                main->kind != DGM_FIELD_CUSTOM && main->kind != DGM_FIELD_NEST &&
                main->kind != DGM_FIELD_CONST)
                return i;
        }
    }
    return (size_t)(f - s->fields);
}

/* ---- one member -------------------------------------------------------------------------------- */

dgm_code dgm_read_list(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                       void *ret_list)
{
    dgm_code rc;
    if (!yyjson_is_arr(v))
        return dgm_read_wrong(r, v, at, "an array");
    size_t i, n = yyjson_arr_size(v);
    if (n > DGM_MAX_LIST_ITEMS)
        return list_too_long(r, n, at);
    char *items = dgm_arena_alloc(r->arena, n * s->size);
    yyjson_val *e;
    yyjson_arr_foreach (v, i, n, e) {
        if ((rc = dgm_shape_read(r, s, e, DGM_AT_I(at, i), items + i * s->size)))
            return rc;
    }
    *(struct any_list *)ret_list = (struct any_list){items, n};
    return DGM_OK;
}

static dgm_code check_keys(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    dgm_code rc = DGM_OK;
    dgm_map seen;
    dgm_map_init(&seen);
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key;
    while (!rc && (key = yyjson_obj_iter_next(&it))) {
        dgm_str name = dgm_json_str(key);
        if (dgm_map_get(&seen, name))
            rc = dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, name), "this member occurs twice");
        else
            dgm_map_put(&seen, name, 0);
    }
    dgm_map_done(&seen);
    return rc;
}

dgm_code dgm_read_map(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                      void *ret_list)
{
    dgm_code rc;
    if (!yyjson_is_obj(v))
        return dgm_read_wrong(r, v, at, "an object");
    size_t n = yyjson_obj_size(v), i = 0;
    if (n > DGM_MAX_LIST_ITEMS)
        return list_too_long(r, n, at);
    if (n > 1 && (rc = check_keys(r, v, at)))
        return rc;
    char *items = dgm_arena_alloc(r->arena, n * s->size);
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        dgm_str name = dgm_json_str(key);
        void *item = items + i++ * s->size;
        memcpy(item, &name, sizeof name); /* every entry of a map begins with its key */
        if ((rc = dgm_shape_read(r, s, yyjson_obj_iter_get_val(key), DGM_AT(at, name), item)))
            return rc;
    }
    *(struct any_list *)ret_list = (struct any_list){items, n};
    return DGM_OK;
}

static dgm_code read_member(dgm_reader *r, const dgm_field *f, yyjson_val *v, const dgm_at *at,
                            void *object)
{
    void *to = (char *)object + f->at;
    dgm_code rc;
    switch ((dgm_field_kind)f->kind) {
    case DGM_FIELD_STR: return dgm_read_str(r, v, at, to);
    case DGM_FIELD_TIME: return dgm_read_time(r, v, at, to);
    case DGM_FIELD_BASE64: return dgm_read_base64(r, v, at, to);
    case DGM_FIELD_BOOL: return dgm_read_bool(r, v, at, to);
    case DGM_FIELD_INT: return dgm_read_int(r, v, at, to);
    case DGM_FIELD_OPT_INT: {
        dgm_opt_int n = {true, 0};
        if ((rc = dgm_read_int(r, v, at, &n.value)))
            return rc;
        *(dgm_opt_int *)to = n;
        return DGM_OK;
    }
    case DGM_FIELD_ENUM: return dgm_read_enum(r, f->of.names, v, at, to);
    case DGM_FIELD_OPT_ENUM: {
        int n;
        if ((rc = dgm_read_enum(r, f->of.names, v, at, &n)))
            return rc;
        *(dgm_opt_int *)to = (dgm_opt_int){true, n};
        return DGM_OK;
    }
    case DGM_FIELD_STRS: return dgm_read_strs(r, v, at, to);
    case DGM_FIELD_JSON: *(yyjson_val **)to = v; return DGM_OK;
    case DGM_FIELD_MAP_JSON:
        if (!yyjson_is_obj(v))
            return dgm_read_wrong(r, v, at, "an object");
        *(yyjson_val **)to = v;
        return DGM_OK;
    case DGM_FIELD_OBJECT: {
        void *o = dgm_arena_alloc(r->arena, f->of.shape->size);
        if ((rc = dgm_shape_read(r, f->of.shape, v, at, o)))
            return rc;
        *(void **)to = o;
        return DGM_OK;
    }
    case DGM_FIELD_INLINE: return dgm_shape_read(r, f->of.shape, v, at, to);
    case DGM_FIELD_NEST: return dgm_shape_read(r, f->of.shape, v, at, object);
    case DGM_FIELD_LIST: return dgm_read_list(r, f->of.shape, v, at, to);
    case DGM_FIELD_MAP: return dgm_read_map(r, f->of.shape, v, at, to);
    case DGM_FIELD_CONST:
        if (!yyjson_is_str(v))
            return dgm_read_wrong(r, v, at, "a string");
        if (!dgm_str_eq(dgm_json_str(v), dgm_str_from(f->of.literal)))
            return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected \"%s\", got \"%.*s\"",
                            f->of.literal, (int)(dgm_json_str(v).n < 60 ? dgm_json_str(v).n : 60),
                            dgm_json_str(v).p);
        return DGM_OK;
    case DGM_FIELD_CUSTOM:
        return f->of.custom->read ? f->of.custom->read(r, v, at, object) : DGM_OK;
    }
    return DGM_OK;
}

/* ---- required members --------------------------------------------------------------------------- */

static __attribute__((noinline, cold)) dgm_code missing(dgm_reader *r, const dgm_shape *s,
                                                        const dgm_field *f, bool is_there,
                                                        const dgm_at *at, void *object)
{
    if (f->flags & DGM_MINTED && r->mint) {
        *(dgm_str *)(void *)((char *)object + f->at) = dgm_mint_id(r->mint, r->arena);
        return DGM_OK;
    }
    if (f->kind == DGM_FIELD_TIME && r->now.n) {
        *(dgm_str *)(void *)((char *)object + f->at) = r->now;
        return DGM_OK;
    }
    dgm_str name = dgm_field_name(f);
    if (is_there)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, name), "must not be empty in a %s",
                        s->what);
    return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, name), "missing \"%.*s\": a %s needs it",
                    DGM_P(name), s->what);
}

static __attribute__((noinline, cold)) dgm_code fill_missing(dgm_reader *r, const dgm_shape *s,
                                                             uint64_t rows, uint64_t empty,
                                                             const dgm_at *at, void *object)
{
    dgm_code rc;
    for (; rows; rows &= rows - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rows);
        if ((s->fields[i].flags & (DGM_STRICT | DGM_NONEMPTY)) == DGM_STRICT && !r->strict)
            continue; /* absent is empty */
        if ((rc = missing(r, s, &s->fields[i], empty >> i & 1, at, object)))
            return rc;
    }
    return DGM_OK;
}

static __attribute__((noinline, cold)) dgm_code union_fault(dgm_reader *r, const dgm_shape *s,
                                                            const dgm_at *at, const char *more)
{
    char names[200];
    size_t n = 0;
    for (size_t i = 0; i < s->n_fields; i++) {
        const dgm_field *f = &s->fields[i];
        if (f->flags & DGM_ONE_OF && !(f->flags & DGM_READ_ONLY) && n < sizeof names - 60)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%.*s", n ? ", " : "",
                                  DGM_P(dgm_field_name(f)));
    }
    names[n] = 0;
    return dgm_fail(r->err, DGM_BAD_PARAMS, at, "a %s holds exactly one of %s; %s", s->what, names,
                    more);
}

/* ---- one object ---------------------------------------------------------------------------------- */

/* One object being read. */
struct reading {
    dgm_reader *r;
    const dgm_shape *s;
    const dgm_at *at;
    char *object;
    const dgm_field *next; /* the row that the next member is expected to be of */
    uint64_t seen;         /* rows that were met, */
    uint64_t missing;      /* which of those count as missing all the same, */
    uint64_t empty;        /* and which of those because there is nothing in them */
};

static inline bool claim_tag(struct reading *o, const dgm_field *f)
{
    int *tag = (int *)(void *)(o->object + o->s->tag_at);
    if (*tag)
        return false;
    *tag = f->tag;
    return true;
}

static dgm_code check_empty(struct reading *o, const dgm_field *f, const dgm_field *main)
{
    if (main->flags & DGM_NONEMPTY && (!(main->flags & DGM_STRICT) || o->r->strict)) {
        o->empty |= (uint64_t)1 << (main - o->s->fields);
        o->missing |= o->empty;
    }
    if (o->r->drop_empties && f->kind <= DGM_FIELD_MAP &&
        !(main->flags & (DGM_REQUIRED | DGM_ONE_OF | DGM_PRESENCE)))
        *(void **)(void *)(o->object + f->at) = NULL;
    return DGM_OK;
}

/* Any member. main: the row that f is another name of, or f. */
static __attribute__((noinline)) dgm_code read_other(struct reading *o, const dgm_field *f,
                                                     const dgm_field *main, yyjson_val *key)
{
    yyjson_val *val = key + 1;
    dgm_code rc;
    if (unsafe_yyjson_is_null(val) && f->kind != DGM_FIELD_JSON && !(f->flags & DGM_ANY_TYPE)) {
        o->missing |= (uint64_t)1 << (main - o->s->fields); /* absent, but twice is twice */
        return DGM_OK;
    }
    if (f->flags & DGM_ONE_OF && !claim_tag(o, f))
        return union_fault(o->r, o->s, DGM_AT(o->at, dgm_json_str(key)), "it has a second one");
    if ((rc = read_member(o->r, f, val, DGM_AT(o->at, dgm_json_str(key)), o->object)))
        return rc;
    const void *from = o->object + main->at;
    bool is_empty = main->kind <= DGM_FIELD_MAP
                        ? ((const struct any_list *)from)->n == 0
                        : main->kind == DGM_FIELD_ENUM && !*(const int *)from;
    return is_empty ? check_empty(o, f, main) : DGM_OK;
}

static __attribute__((noinline, cold)) dgm_code keep_unknown(struct reading *o, yyjson_val *key)
{
    if (o->s->extra_at == DGM_NOWHERE || (o->r->drop_nulls && unsafe_yyjson_is_null(key + 1))) {
        o->r->n_unknown++;
        if (o->r->on_unknown)
            o->r->on_unknown(o->r->on_unknown_arg, o->at, dgm_json_str(key));
        return DGM_OK;
    }
    return dgm_read_unknown(o->r, dgm_json_str(key), key + 1, o->at,
                            (const dgm_extra **)(void *)(o->object + o->s->extra_at));
}

static __attribute__((noinline, cold)) dgm_code occurs_twice(struct reading *o, yyjson_val *key)
{
    return dgm_fail(o->r->err, DGM_BAD_PARAMS, DGM_AT(o->at, dgm_json_str(key)),
                    "this member occurs twice");
}

static __attribute__((noinline, cold)) dgm_code no_object(dgm_reader *r, const dgm_shape *s,
                                                          yyjson_val *v, const dgm_at *at)
{
    char expected[80];
    snprintf(expected, sizeof expected, "an object (%s)", s->what);
    return dgm_read_wrong(r, v, at, expected);
}

/* A member that is unknown (f is NULL), has another name, or there for the second time. */
static __attribute__((noinline)) dgm_code read_stray(struct reading *o, const dgm_field *f,
                                                     yyjson_val *key)
{
    if (!f)
        return keep_unknown(o, key);
    o->next = f + 1;
    /* another name has no rules of its own */
    const dgm_field *main = f->flags & DGM_READ_ONLY ? &o->s->fields[index_of(o->s, f)] : f;
    uint64_t bit = (uint64_t)1 << (main - o->s->fields);
    if (o->seen & bit)
        return occurs_twice(o, key);
    o->seen |= bit;
    return read_other(o, f, main, key);
}

/* The members met all the time are read without ado, as long as they are as they should be: there,
 * of the right type, not empty. False, or what goes to read_other(): this is something else, or odd. */
static inline bool read_leaf(struct reading *o, const dgm_field *f, const yyjson_val *val)
{
    void *to = o->object + f->at;
    size_t n = val->tag >> YYJSON_TAG_BIT;
    unsigned type = val->tag & YYJSON_TYPE_MASK;
    if (f->kind == DGM_FIELD_STR) {
        if (type != YYJSON_TYPE_STR || !n || (f->flags & DGM_ONE_OF && !claim_tag(o, f)))
            return false;
        *(dgm_str *)to = (dgm_str){val->uni.str, n};
        return true;
    }
    if (f->kind == DGM_FIELD_CONST)
        return type == YYJSON_TYPE_STR && n == f->tag && same_bytes(f->of.literal, val->uni.str, n);
    if (f->kind != DGM_FIELD_BOOL || type != YYJSON_TYPE_BOOL || f->flags & DGM_ONE_OF)
        return false;
    *(dgm_opt_bool *)to = unsafe_yyjson_is_true((void *)(uintptr_t)val) ? DGM_TRUE : DGM_FALSE;
    return true;
}

static inline __attribute__((always_inline)) dgm_code
read_branch(struct reading *o, const dgm_field *f, yyjson_val *key)
{
    yyjson_val *val = key + 1;
    void *to = o->object + f->at;
    bool list = f->kind == DGM_FIELD_LIST;
    if (list ? !unsafe_yyjson_is_arr(val) || !unsafe_yyjson_get_len(val)
             : (f->kind != DGM_FIELD_OBJECT && f->kind != DGM_FIELD_INLINE) ||
                   !unsafe_yyjson_is_obj(val))
        return read_other(o, f, f, key);
    if (f->flags & DGM_ONE_OF && !claim_tag(o, f))
        return read_other(o, f, f, key);
    dgm_at at = {o->at, dgm_json_str(key), 0};
    if (list)
        return dgm_read_list(o->r, f->of.shape, val, &at, to);
    if (f->kind == DGM_FIELD_OBJECT)
        to = *(void **)to = dgm_arena_alloc(o->r->arena, f->of.shape->size);
    return dgm_shape_read(o->r, f->of.shape, val, &at, to);
}

static inline __attribute__((always_inline)) dgm_code read_members(struct reading *o, yyjson_val *v)
{
    const dgm_field *f = o->s->fields;
    const dgm_field *end = f ? f + o->s->n_fields : f;
    yyjson_val *key = unsafe_yyjson_get_first(v);
    uint64_t bit = 1; /* of f */
    dgm_code rc;
    for (size_t m = unsafe_yyjson_get_len(v); m > 0; m--) {
        dgm_str name = dgm_json_str(key);
        o->next = f;
        while (f < end && !(f->name_n == name.n && same_bytes(f->quoted + 1, name.p, name.n))) {
            f++;
            bit <<= 1;
        }
        if (f == end && (f = shape_read_find(o->s, name)))
            bit = (uint64_t)1 << (f - o->s->fields);
        if (!f || f->flags & DGM_READ_ONLY || o->seen & bit) {
            if ((rc = read_stray(o, f, key)))
                return rc;
            f = o->next;
            bit = (uint64_t)1 << (f - o->s->fields);
            key = unsafe_yyjson_get_next(key + 1);
            continue;
        }
        o->seen |= bit;
        if (read_leaf(o, f, key + 1)) {
            key += 2;
        } else {
            if ((rc = read_branch(o, f, key)))
                return rc;
            key = unsafe_yyjson_get_next(key + 1);
        }
        f++;
        bit <<= 1;
    }
    return DGM_OK;
}

static inline __attribute__((always_inline)) dgm_code end_object(struct reading *o, yyjson_val *v)
{
    const dgm_shape *s = o->s;
    dgm_code rc;
    if (s->one_required && !*(int *)(void *)(o->object + s->tag_at))
        return union_fault(o->r, s, o->at, "it has none");
    uint64_t rows = required_rows(s) & (~o->seen | o->missing);
    if (rows && (rc = fill_missing(o->r, s, rows, o->empty, o->at, o->object)))
        return rc;
    return s->after_read ? s->after_read(o->r, o->object, v, o->at) : DGM_OK;
}

dgm_code dgm_shape_read(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                        void *object)
{
    dgm_code rc;
    if (s->pick_read && !(s = s->pick_read(r, v, at)))
        return r->err ? r->err->code : DGM_BAD_PARAMS;
    if (s->read_instead)
        return s->read_instead(r, v, at, object);
    if (!yyjson_is_obj(v))
        return no_object(r, s, v, at);
    struct reading o = {.r = r, .s = s, .at = at, .object = object};
    if ((rc = read_members(&o, v)))
        return rc;
    return end_object(&o, v);
}
