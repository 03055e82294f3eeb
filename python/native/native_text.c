/*
 * python/native/native_text.c - converts a whole text: str to str, bytes to bytes.
 *
 * CPython encodes text with characters above U+007F byte by byte. Western text has few of them, and none above U+00FF:
 * CPython stores it as Latin-1, which is encoded here, 16 bytes at a time.
 */
#include "native.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Shorter texts are not worth another thread's time, or a look at their characters. */
#define LARGE_BYTES 16384

/*
 * A conversion needs some four times the memory of its text, and frees it. glibc then returns it to the system, and the
 * next conversion spends half of its time in page faults. It retains twice the size of the largest block that it ever had to
 * map and unmap: this is such a block, which is never touched.
 */
#define BLOCK_BYTES ((size_t)8 << 20)

static void native_retain_memory(struct native *m)
{
    if (!m->retains_memory)
        PyMem_Free(PyMem_Malloc(BLOCK_BYTES));
    m->retains_memory = true;
}

/* How many bytes at the start are ASCII. Stops at a multiple of 16 before the first one that is not, or before the end. */
static size_t ascii_blocks(const char *p, size_t n)
{
    size_t i = 0;
#ifdef __SSE2__
    for (; i + 16 <= n; i += 16) {
        if (_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + i))))
            break;
    }
#endif
    return i;
}

/* ---- text in ---------------------------------------------------------------------------------------- */

struct text_in {
    const char *p;
    size_t n;
    char *own; /* NULL: borrowed */
};

static size_t count_high(const char *p, size_t n)
{
    size_t high = 0;
    for (size_t i = 0; i < n;) {
        i += ascii_blocks(p + i, n - i);
        size_t end = n - i < 16 ? n : i + 16;
        for (; i < end; i++)
            high += (unsigned char)p[i] >> 7;
    }
    return high;
}

static void encode_latin1(const char *p, size_t n, char *out)
{
    for (size_t i = 0; i < n;) {
        size_t block = ascii_blocks(p + i, n - i);
        memcpy(out, p + i, block);
        out += block;
        i += block;
        size_t end = n - i < 16 ? n : i + 16;
        for (; i < end; i++) {
            unsigned char c = (unsigned char)p[i];
            if (c < 0x80) {
                *out++ = (char)c;
            } else {
                *out++ = (char)(0xC0 | c >> 6);
                *out++ = (char)(0x80 | (c & 0x3F));
            }
        }
    }
}

/* Does the interpreter store one byte per character, and no UTF-8 beside it? Then the text is ASCII or Latin-1. */
static bool is_narrow(PyObject *text, Py_ssize_t characters)
{
    PyObject *size = PyObject_CallMethod(text, "__sizeof__", NULL);
    Py_ssize_t bytes = size ? PyLong_AsSsize_t(size) : -1;
    Py_XDECREF(size);
    if (bytes < 0)
        PyErr_Clear();
    return bytes >= characters && bytes < characters + LARGE_BYTES / 2;
}

/* Text whose characters are all below U+0100. false: it is other text, or ASCII. */
static bool read_latin1(PyObject *text, struct text_in *ret)
{
    Py_ssize_t n = PyUnicode_GetLength(text);
    char *p;
    if (n < LARGE_BYTES || !is_narrow(text, n))
        return false;
    PyObject *bytes = PyUnicode_AsLatin1String(text);
    if (!bytes) {
        PyErr_Clear();
        return false;
    }
    PyBytes_AsStringAndSize(bytes, &p, &n);
    size_t high = count_high(p, (size_t)n);
    if (high && (ret->own = PyMem_Malloc((size_t)n + high))) {
        encode_latin1(p, (size_t)n, ret->own);
        ret->p = ret->own;
        ret->n = (size_t)n + high;
    }
    Py_DECREF(bytes);
    return ret->own != NULL;
}

/* false: it is unusual. An exception may be set. */
static bool read_text(PyObject *o, struct text_in *ret)
{
    Py_ssize_t n;
    char *bytes;
    *ret = (struct text_in){0};
    if (PyBytes_CheckExact(o)) {
        if (PyBytes_AsStringAndSize(o, &bytes, &n) < 0)
            return false;
        *ret = (struct text_in){.p = bytes, .n = (size_t)n};
        return true;
    }
    if (!PyUnicode_CheckExact(o))
        return false;
    if (read_latin1(o, ret))
        return true;
    ret->p = PyUnicode_AsUTF8AndSize(o, &n);
    ret->n = (size_t)n;
    return ret->p != NULL;
}

/* ---- the conversion ------------------------------------------------------------------------------------------ */

static dgm_code convert_all(const char *options, Py_ssize_t n, const struct text_in *in,
                            dgm_converter **ret)
{
    dgm_code rc = dgm_converter_new_json(options, (size_t)n, ret, NULL);
    return rc ? rc : dgm_converter_feed_all(*ret, in->p, in->n, NULL);
}

PyObject *native_convert_text(PyObject *module, PyObject *arguments)
{
    const char *options;
    Py_ssize_t n;
    PyObject *text, *built = NULL;
    struct text_in in;
    dgm_converter *c = NULL;
    dgm_code rc;
    if (!PyArg_ParseTuple(arguments, "y#O", &options, &n, &text))
        return NULL;
    if (!read_text(text, &in)) {
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (in.n < LARGE_BYTES) {
        rc = convert_all(options, n, &in, &c);
    } else {
        native_retain_memory(PyModule_GetState(module));
        Py_BEGIN_ALLOW_THREADS rc = convert_all(options, n, &in, &c);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(in.own);
    if (rc == DGM_OK) {
        dgm_str out = dgm_converter_output(c);
        built = PyUnicode_CheckExact(text) ? PyUnicode_DecodeUTF8(out.p, (Py_ssize_t)out.n, NULL)
                                           : PyBytes_FromStringAndSize(out.p, (Py_ssize_t)out.n);
    }
    dgm_converter_free(c);
    if (rc)
        Py_RETURN_NOTIMPLEMENTED;
    return built;
}
