/* json/value.c - reading, comparing, copying and merging values; finding one in a text by its JSON pointer. */
#include "json/json.h"

const char *dgm_json_type(const yyjson_val *v)
{
    switch (yyjson_get_type((yyjson_val *)(uintptr_t)v)) {
    case YYJSON_TYPE_NULL: return "null";
    case YYJSON_TYPE_BOOL: return "a boolean";
    case YYJSON_TYPE_RAW:
    case YYJSON_TYPE_NUM: return "a number";
    case YYJSON_TYPE_STR: return "a string";
    case YYJSON_TYPE_ARR: return "an array";
    case YYJSON_TYPE_OBJ: return "an object";
    default: return "nothing";
    }
}

yyjson_val *dgm_json_get(const yyjson_val *v, dgm_str key)
{
    return yyjson_obj_getn((yyjson_val *)(uintptr_t)v, key.p, key.n);
}

bool dgm_json_int(const yyjson_val *v, int64_t *ret)
{
    if (!v ||
        !(yyjson_is_raw((yyjson_val *)(uintptr_t)v) || yyjson_is_str((yyjson_val *)(uintptr_t)v)))
        return false;
    dgm_str s = dgm_json_str(v);
    bool minus = s.n && s.p[0] == '-';
    size_t i = minus;
    int64_t n = 0;
    if (i == s.n)
        return false;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_sub_overflow(n, s.p[i] - '0', &n)) /* downwards: INT64_MIN fits too */
            return false;
    }
    if (!minus && n == INT64_MIN)
        return false;
    *ret = minus ? n : -n;
    return true;
}

bool dgm_json_equal(const yyjson_val *x, const yyjson_val *y)
{
    yyjson_val *a = (yyjson_val *)(uintptr_t)x, *b = (yyjson_val *)(uintptr_t)y;
    if (!a || !b)
        return a == b;
    if (yyjson_get_type(a) != yyjson_get_type(b))
        return false;
    switch (yyjson_get_type(a)) {
    case YYJSON_TYPE_STR:
    case YYJSON_TYPE_RAW: return dgm_str_eq(dgm_json_str(a), dgm_json_str(b));
    case YYJSON_TYPE_BOOL: return yyjson_get_bool(a) == yyjson_get_bool(b);
    case YYJSON_TYPE_ARR: {
        if (yyjson_arr_size(a) != yyjson_arr_size(b))
            return false;
        yyjson_arr_iter ia = yyjson_arr_iter_with(a), ib = yyjson_arr_iter_with(b);
        yyjson_val *ea;
        while ((ea = yyjson_arr_iter_next(&ia))) {
            if (!dgm_json_equal(ea, yyjson_arr_iter_next(&ib)))
                return false;
        }
        return true;
    }
    case YYJSON_TYPE_OBJ: {
        if (yyjson_obj_size(a) != yyjson_obj_size(b))
            return false;
        yyjson_obj_iter ia = yyjson_obj_iter_with(a), ib = yyjson_obj_iter_with(b);
        yyjson_val *ka;
        while ((ka = yyjson_obj_iter_next(&ia))) {
            /* yyjson's iterator looks from where it found the last one: in order, this is linear. */
            yyjson_val *vb = yyjson_obj_iter_getn(&ib, ka->uni.str, unsafe_yyjson_get_len(ka));
            if (!vb || !dgm_json_equal(yyjson_obj_iter_get_val(ka), vb))
                return false;
        }
        /* A key that a has twice leaves room for one in b that a does not have. */
        ia = yyjson_obj_iter_with(a);
        ib = yyjson_obj_iter_with(b);
        yyjson_val *kb;
        while ((kb = yyjson_obj_iter_next(&ib))) {
            if (!yyjson_obj_iter_getn(&ia, kb->uni.str, unsafe_yyjson_get_len(kb)))
                return false;
        }
        return true;
    }
    default: return true;
    }
}

/* How many yyjson_val a value and all below it take: they lie side by side. */
size_t dgm_json_run(const yyjson_val *v)
{
    yyjson_val *first = (yyjson_val *)(uintptr_t)v;
    return (size_t)(unsafe_yyjson_get_next(first) - first);
}

bool dgm_json_same(const yyjson_val *a, const yyjson_val *b)
{
    if (!a || !b)
        return a == b;
    size_t n = dgm_json_run(a);
    if (n != dgm_json_run(b))
        return false;
    for (size_t i = 0; i < n; i++) {
        yyjson_val *x = (yyjson_val *)(uintptr_t)&a[i], *y = (yyjson_val *)(uintptr_t)&b[i];
        yyjson_type type = unsafe_yyjson_get_type(x);
        if (type != unsafe_yyjson_get_type(y))
            return false;
        switch (type) {
        case YYJSON_TYPE_STR:
        case YYJSON_TYPE_RAW:
            if (!dgm_str_eq(dgm_json_str(x), dgm_json_str(y)))
                return false;
            break;
        case YYJSON_TYPE_ARR:
        case YYJSON_TYPE_OBJ:
            if (unsafe_yyjson_get_len(x) != unsafe_yyjson_get_len(y) || x->uni.ofs != y->uni.ofs)
                return false;
            break;
        default:
            if (x->tag != y->tag)
                return false;
            break;
        }
    }
    return true;
}

yyjson_val *dgm_json_object(dgm_arena *a, const dgm_member *members, size_t n)
{
    size_t vals = 1;
    for (size_t i = 0; i < n; i++)
        vals += 1 + dgm_json_run(members[i].value);
    yyjson_val *object = dgm_arena_alloc_raw(a, vals * sizeof *object), *to = object + 1;
    object->tag = YYJSON_TYPE_OBJ | (uint64_t)n << YYJSON_TAG_BIT;
    object->uni.ofs = vals * sizeof *object;
    for (size_t i = 0; i < n; i++) {
        to->tag = YYJSON_TYPE_STR | (uint64_t)members[i].key.n << YYJSON_TAG_BIT;
        to->uni.str = members[i].key.p;
        to++;
        size_t run = dgm_json_run(members[i].value);
        memcpy(to, members[i].value, run * sizeof *to);
        to += run;
    }
    return object;
}

yyjson_val *dgm_json_copy(dgm_arena *a, const yyjson_val *v)
{
    if (!v)
        return NULL;
    /* Linked by relative offsets: copy the run, then give every text a home of its own. */
    size_t n = dgm_json_run(v);
    yyjson_val *copy = dgm_arena_alloc_raw(a, n * sizeof *copy);
    memcpy(copy, v, n * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        if (unsafe_yyjson_is_str(&copy[i]) || unsafe_yyjson_is_raw(&copy[i]))
            copy[i].uni.str = dgm_arena_dup(a, dgm_json_str(&copy[i])).p;
    }
    return copy;
}

dgm_str dgm_json_text_in(dgm_arena *a, const yyjson_val *v)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put(&b, v);
    dgm_str s = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return s;
}

yyjson_val *dgm_json_non_null(const yyjson_val *v, const char *key)
{
    yyjson_val *member = dgm_json_get(v, dgm_str_from(key));
    return yyjson_is_null(member) ? NULL : member;
}

dgm_str dgm_json_str_member(const yyjson_val *v, const char *key)
{
    yyjson_val *member = dgm_json_get(v, dgm_str_from(key));
    return yyjson_is_str(member) ? dgm_json_str(member) : (dgm_str){0};
}

yyjson_val *dgm_json_make_string(dgm_arena *a, dgm_str text)
{
    yyjson_val *v = dgm_new(a, yyjson_val);
    text = dgm_arena_dup(a, text);
    v->tag = YYJSON_TYPE_STR | (uint64_t)text.n << YYJSON_TAG_BIT;
    v->uni.str = text.p ? text.p : "";
    return v;
}

static size_t skip_space(dgm_str t, size_t i)
{
    while (i < t.n && (t.p[i] == ' ' || t.p[i] == '\n' || t.p[i] == '\r' || t.p[i] == '\t'))
        i++;
    return i;
}

static size_t skip_string(dgm_str t, size_t i) /* t.p[i] is the opening quote */
{
    for (i++; i < t.n && t.p[i] != '"'; i++)
        i += t.p[i] == '\\';
    return i < t.n ? i + 1 : t.n;
}

static size_t skip_value(dgm_str t, size_t i)
{
    size_t depth = 0;
    for (; i < t.n; i++) {
        char c = t.p[i];
        if (c == '"') {
            i = skip_string(t, i) - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return i;
            if (--depth == 0)
                return i + 1;
        } else if (c == ',' && depth == 0) {
            return i;
        }
    }
    return t.n;
}

/* Is this key, as the text has it, the step of a pointer? Keys with escapes are not looked at
 * closely: their line is then that of the object around them. */
static bool is_step(dgm_str key, dgm_str step)
{
    size_t k = 0;
    for (size_t i = 0; i < step.n; i++, k++) {
        char c = step.p[i];
        if (c == '~' && i + 1 < step.n)
            c = step.p[++i] == '1' ? '/' : '~';
        if (k == key.n || key.p[k] != c)
            return false;
    }
    return k == key.n;
}

/* From the start of a container to the start of its child; 0 when it has no child of that name. */
static size_t find_child(dgm_str t, size_t i, dgm_str step)
{
    bool array = t.p[i] == '[';
    size_t index = 0, wanted = 0;
    for (size_t k = 0; array && k < step.n; k++)
        wanted = wanted * 10 + (size_t)(step.p[k] - '0');
    for (i++; i < t.n; i++) {
        i = skip_space(t, i);
        if (i == t.n || t.p[i] == '}' || t.p[i] == ']')
            return 0;
        bool found = array && index++ == wanted;
        if (!array) {
            size_t end = skip_string(t, i);
            found = end >= i + 2 && is_step((dgm_str){t.p + i + 1, end - i - 2}, step);
            i = skip_space(t, end);
            if (i < t.n && t.p[i] == ':')
                i = skip_space(t, i + 1);
        }
        if (found)
            return i;
        i = skip_space(t, skip_value(t, i)); /* at the comma or the end */
        if (i < t.n && t.p[i] != ',')
            return 0;
    }
    return 0;
}

size_t dgm_json_find(dgm_str text, const char *pointer)
{
    size_t i = skip_space(text, 0);
    while (*pointer == '/' && i < text.n && (text.p[i] == '{' || text.p[i] == '[')) {
        dgm_str step = {pointer + 1, strcspn(pointer + 1, "/")};
        size_t child = find_child(text, i, step);
        if (!child || child >= text.n)
            break;
        i = child;
        pointer += 1 + step.n;
    }
    return i;
}

size_t dgm_json_next(dgm_str text, size_t i)
{
    if (i >= text.n)
        return text.n;
    i = skip_space(text, skip_value(text, i));
    return i < text.n && text.p[i] == ',' ? skip_space(text, i + 1) : i;
}
