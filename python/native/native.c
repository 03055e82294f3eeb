/*
 * python/native/native.c - dragoman._native: the package's functions on dicts, and whole texts, without ctypes.
 *
 * Everything here is a fast path for usual input: exact dicts, lists, tuples, strings, numbers, booleans and None; text
 * that can be converted. For everything else, errors included, a function returns NotImplemented, and the package calls
 * the library through ctypes. So both ways have the same results and the same errors; python/tests/test_native.py
 * compares them.
 *
 * The library is the one that the package has loaded: it has the name that this module is linked with.
 */
#include "native.h"

#include <string.h>

/* ---- reading an object ----------------------------------------------------------------------------- */

/* Limits of json text: a string needs at most 6 bytes per byte, and quotes and a separator. What may be above the limit
 * object_bytes of the library is converted through text, which is measured. */
#define MAX_TEXT_BYTES ((size_t)32 << 20)
#define MAX_DEPTH 128
#define MAX_VALUES ((size_t)1 << 20)

struct chunk {
    struct chunk *older;
    char bytes[4080];
};

/* An object as a flat list. The first values and numbers are on the stack: most messages have no more. */
struct input {
    dgm_value *values;
    size_t n, cap;
    size_t text_bytes;    /* at most so many */
    struct chunk *chunks; /* texts of numbers */
    char *free;
    size_t n_free;
    char numbers[128];
    dgm_value first[96];
    /* The first strings that are not keys, for build_string(). They are borrowed: see native_build(). */
    struct {
        size_t at; /* in values */
        PyObject *string;
    } strings[16];
    size_t n_strings;
};

static void input_init(struct input *in)
{
    in->values = in->first;
    in->n = 0;
    in->cap = sizeof in->first / sizeof *in->first;
    in->text_bytes = 0;
    in->chunks = NULL;
    in->free = in->numbers;
    in->n_free = sizeof in->numbers;
    in->n_strings = 0;
}

static void input_done(struct input *in)
{
    if (in->values != in->first)
        PyMem_Free(in->values);
    while (in->chunks) {
        struct chunk *older = in->chunks->older;
        PyMem_Free(in->chunks);
        in->chunks = older;
    }
}

static bool input_grow(struct input *in)
{
    bool on_stack = in->values == in->first;
    size_t cap = 4 * in->cap;
    if (in->n >= MAX_VALUES)
        return false;
    dgm_value *values = PyMem_Realloc(on_stack ? NULL : in->values, cap * sizeof *values);
    if (!values)
        return false;
    if (on_stack)
        memcpy(values, in->first, in->n * sizeof *values);
    in->values = values;
    in->cap = cap;
    return true;
}

static inline bool input_add(struct input *in, dgm_json_kind kind, size_t n, const char *text)
{
    if (in->n == in->cap && !input_grow(in))
        return false;
    in->values[in->n++] = (dgm_value){kind, n, text};
    in->text_bytes += 6 * n + 3;
    return in->text_bytes <= MAX_TEXT_BYTES;
}

/* Copies the text of a number. */
static bool input_add_number(struct input *in, const char *text, size_t n)
{
    if (n > in->n_free) {
        struct chunk *c = n <= sizeof c->bytes ? PyMem_Malloc(sizeof *c) : NULL;
        if (!c)
            return false;
        c->older = in->chunks;
        in->chunks = c;
        in->free = c->bytes;
        in->n_free = sizeof c->bytes;
    }
    char *copy = in->free;
    memcpy(copy, text, n);
    in->free += n;
    in->n_free -= n;
    return input_add(in, DGM_JSON_KIND_NUMBER, n, copy);
}

static bool read_string(struct input *in, PyObject *o)
{
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(o, &n); /* fails for half a surrogate pair */
    return text && input_add(in, DGM_JSON_KIND_STRING, (size_t)n, text);
}

static bool read_large_int(struct input *in, PyObject *o)
{
    Py_ssize_t n;
    PyObject *digits = PyObject_Str(o);
    const char *text = digits ? PyUnicode_AsUTF8AndSize(digits, &n) : NULL;
    bool done = text && input_add_number(in, text, (size_t)n);
    Py_XDECREF(digits);
    return done;
}

static bool read_int(struct input *in, PyObject *o)
{
    char digits[24], *p = digits + sizeof digits;
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow)
        return read_large_int(in, o);
    unsigned long long rest =
        number < 0 ? 0 - (unsigned long long)number : (unsigned long long)number;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--p = '-';
    return input_add_number(in, p, (size_t)(digits + sizeof digits - p));
}

static bool read_float(struct input *in, PyObject *o)
{
    double number = PyFloat_AsDouble(o);
    if (number - number != 0) /* infinity or not a number */
        return false;
    char *text = PyOS_double_to_string(number, 'r', 0, Py_DTSF_ADD_DOT_0, NULL);
    bool done = text && input_add_number(in, text, strlen(text));
    PyMem_Free(text);
    return done;
}

static bool read_value(struct input *in, PyObject *o, int depth);

static bool read_dict(struct input *in, PyObject *o, int depth)
{
    Py_ssize_t at = 0, n = PyDict_Size(o);
    PyObject *key, *value;
    if (depth == MAX_DEPTH || !input_add(in, DGM_JSON_KIND_OBJECT, (size_t)n, NULL))
        return false;
    while (PyDict_Next(o, &at, &key, &value)) {
        if (!PyUnicode_CheckExact(key) || !read_string(in, key) ||
            !read_value(in, value, depth + 1))
            return false;
    }
    return true;
}

static bool read_list(struct input *in, PyObject *o, int depth)
{
    bool is_list = PyList_CheckExact(o);
    Py_ssize_t n = is_list ? PyList_Size(o) : PyTuple_Size(o);
    if (depth == MAX_DEPTH || !input_add(in, DGM_JSON_KIND_ARRAY, (size_t)n, NULL))
        return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!read_value(in, is_list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i), depth + 1))
            return false;
    }
    return true;
}

/* false: it is unusual. An exception may be set. */
static bool read_value(struct input *in, PyObject *o, int depth)
{
    if (PyUnicode_CheckExact(o)) {
        if (in->n_strings < sizeof in->strings / sizeof *in->strings) {
            in->strings[in->n_strings].at = in->n;
            in->strings[in->n_strings++].string = o;
        }
        return read_string(in, o);
    }
    if (PyDict_CheckExact(o))
        return read_dict(in, o, depth);
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o))
        return read_list(in, o, depth);
    if (o == Py_None)
        return input_add(in, DGM_JSON_KIND_NULL, 0, NULL);
    if (o == Py_True || o == Py_False)
        return input_add(in, DGM_JSON_KIND_BOOL, o == Py_True, NULL);
    if (PyLong_CheckExact(o))
        return read_int(in, o);
    return PyFloat_CheckExact(o) && read_float(in, o);
}

/* ---- building an object ------------------------------------------------------------------------------ */

/* What a result is built with. */
struct building {
    struct native *m;
    const struct input *in;
};

static PyObject *decode_text(const char *text, size_t n)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, NULL);
}

/* Keys and names of results are few and short: the module retains some of them. */
static PyObject *build_name(struct native *m, const char *text, size_t n)
{
    unsigned char first = (unsigned char)text[0], last = (unsigned char)text[n - 1];
    struct native_name *k = &m->names[(first + 7u * last + 31u * (unsigned)n) % NATIVE_NAMES];
    if (k->n != n || memcmp(k->text, text, n) != 0) {
        PyObject *name = decode_text(text, n), *old = k->name;
        if (!name)
            return NULL;
        memcpy(k->text, text, n);
        k->n = n;
        k->name = name;
        Py_XDECREF(old);
    }
    Py_INCREF(k->name);
    return k->name;
}

static PyObject *build_key(struct native *m, const char *text, size_t n)
{
    return n && n <= NATIVE_NAME_BYTES ? build_name(m, text, n) : decode_text(text, n);
}

/* Most texts of a result are texts of the input: the same object, if it is soon found. */
static PyObject *build_string(const struct building *b, const char *text, size_t n)
{
    const struct input *in = b->in;
    bool is_name = n && n <= NATIVE_NAME_BYTES;
    for (size_t i = 0; i < in->n_strings; i++) {
        const dgm_value *v = &in->values[in->strings[i].at];
        if (v->text == text && v->n == n) {
            Py_INCREF(in->strings[i].string);
            return in->strings[i].string;
        }
    }
    for (size_t i = 0; is_name && i < n; i++)
        is_name = (text[i] >= 'a' && text[i] <= 'z') || text[i] == '-';
    return is_name ? build_name(b->m, text, n) : decode_text(text, n);
}

/* As Python's json reads it. */
static PyObject *build_number(const char *text, size_t n)
{
    bool minus = text[0] == '-', is_float = false;
    long long number = 0;
    for (size_t i = minus; i < n; i++) {
        is_float |= text[i] < '0' || text[i] > '9';
        number = i < 18 ? 10 * number + (text[i] - '0') : number;
    }
    if (!is_float && n <= 18)
        return PyLong_FromLongLong(minus ? -number : number);
    PyObject *s = decode_text(text, n);
    PyObject *o = !s ? NULL : is_float ? PyFloat_FromString(s) : PyNumber_Long(s);
    Py_XDECREF(s);
    return o;
}

static PyObject *build_value(const struct building *b, const dgm_value **at);

static PyObject *build_dict(const struct building *b, size_t n, const dgm_value **at)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < n; i++) {
        const dgm_value *k = (*at)++;
        PyObject *key = build_key(b->m, k->text, k->n), *value = key ? build_value(b, at) : NULL;
        if (!value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *build_list(const struct building *b, size_t n, const dgm_value **at)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *value = build_value(b, at);
        if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0) /* the list owns value */
            Py_CLEAR(list);
    }
    return list;
}

/* Recursion is limited by the depth of JSON that the library reads. */
static PyObject *build_value(const struct building *b, const dgm_value **at)
{
    const dgm_value *v = (*at)++;
    switch (v->kind) {
    case DGM_JSON_KIND_STRING: return build_string(b, v->text, v->n);
    case DGM_JSON_KIND_OBJECT: return build_dict(b, v->n, at);
    case DGM_JSON_KIND_ARRAY: return build_list(b, v->n, at);
    case DGM_JSON_KIND_NUMBER: return build_number(v->text, v->n);
    case DGM_JSON_KIND_BOOL: return PyBool_FromLong((long)v->n);
    case DGM_JSON_KIND_NULL:
    case DGM_JSON_KIND_ABSENT: break;
    }
    Py_RETURN_NONE;
}

/* [message, [tool messages]] is a pair in Python. */
static PyObject *build_pair(const struct building *b, const dgm_value *at)
{
    PyObject *first, *second;
    at++;
    if (!(first = build_value(b, &at)))
        return NULL;
    second = build_value(b, &at);
    PyObject *pair = second ? PyTuple_Pack(2, first, second) : NULL;
    Py_DECREF(first);
    Py_XDECREF(second);
    return pair;
}

/* ---- the functions on dicts ----------------------------------------------------------------------------- */

/* So much memory may be retained until the next call. */
#define RETAINED_BYTES ((size_t)256 << 10)

/*
 * The result borrows texts of the input, which another thread or a finalizer could free. Neither runs: we hold the
 * interpreter's lock, and building allocates nothing but plain objects, with garbage collection switched off.
 */
static PyObject *native_build(struct native *m, const struct input *in, dgm_function function,
                              const dgm_value *result, size_t n)
{
    const struct building b = {m, in};
    PyObject *built;
    if (!n)
        Py_RETURN_NONE;
    int was_enabled = PyGC_Disable();
    built = function == DGM_FUNCTION_A2A_MESSAGE_TO_OPENAI ? build_pair(&b, result)
                                                           : build_value(&b, &result);
    if (was_enabled)
        PyGC_Enable();
    return built;
}

static PyObject *native_convert(PyObject *module, PyObject *o, dgm_function function)
{
    struct native *m = PyModule_GetState(module);
    struct input in;
    const dgm_value *result;
    size_t n;
    PyObject *built = NULL;
    bool is_usual = PyDict_CheckExact(o) || PyList_CheckExact(o) || PyTuple_CheckExact(o);
    if (!is_usual)
        Py_RETURN_NOTIMPLEMENTED;
    input_init(&in);
    if (!m->values)
        m->values = dgm_values_new();
    if (!(is_usual = read_value(&in, o, 0)))
        PyErr_Clear();
    else
        is_usual =
            dgm_values_convert(m->values, function, in.values, in.n, &result, &n, NULL) == DGM_OK;
    if (is_usual)
        built = native_build(m, &in, function, result, n);
    if (in.text_bytes > RETAINED_BYTES) {
        dgm_values_free(m->values);
        m->values = NULL;
    }
    input_done(&in);
    if (!is_usual)
        Py_RETURN_NOTIMPLEMENTED;
    return built;
}

#define FUNCTION(name, id)                                                                         \
    static PyObject *name(PyObject *module, PyObject *o)                                           \
    {                                                                                              \
        return native_convert(module, o, DGM_FUNCTION_##id);                                       \
    }
FUNCTION(native_to_event, A2A_MESSAGE_TO_AGUI_EVENT)
FUNCTION(native_to_official, A2A_MESSAGE_TO_OFFICIAL_EVENT)
FUNCTION(native_compact, COMPACT_EVENTS)
FUNCTION(native_to_chat, AGUI_EVENT_TO_OPENAI_CHAT)
FUNCTION(native_to_openai, A2A_MESSAGE_TO_OPENAI)
#undef FUNCTION

/* ---- the module ------------------------------------------------------------------------------------------- */

static PyMethodDef native_methods[] = {
    {"a2a_message_to_agui_event", native_to_event, METH_O, NULL},
    {"a2a_message_to_official_event", native_to_official, METH_O, NULL},
    {"compact_events", native_compact, METH_O, NULL},
    {"agui_event_to_openai_chat", native_to_chat, METH_O, NULL},
    {"a2a_message_to_openai", native_to_openai, METH_O, NULL},
    {"convert", native_convert_text, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int native_exec(PyObject *module)
{
    return PyModule_AddStringConstant(module, "version", DGM_VERSION);
}

static int native_clear(PyObject *module)
{
    struct native *m = PyModule_GetState(module);
    if (!m)
        return 0;
    for (size_t i = 0; i < NATIVE_NAMES; i++) {
        m->names[i].n = 0;
        Py_CLEAR(m->names[i].name);
    }
    return 0;
}

static void native_free(void *module)
{
    struct native *m = PyModule_GetState(module);
    native_clear(module);
    if (m) {
        dgm_values_free(m->values);
        m->values = NULL;
    }
}

static PyModuleDef_Slot native_slots[] = {
    {Py_mod_exec, native_exec},
    {0, NULL},
};

static struct PyModuleDef native_module = {
    PyModuleDef_HEAD_INIT,       .m_name = "dragoman._native", .m_size = sizeof(struct native),
    .m_methods = native_methods, .m_slots = native_slots,      .m_clear = native_clear,
    .m_free = native_free,
};

PyMODINIT_FUNC PyInit__native(void);
PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&native_module);
}
