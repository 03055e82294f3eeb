/*
 * python/native/native.h - what the files of dragoman._native share. They use the stable ABI of CPython 3.10: one module
 * for all later versions.
 */
#pragma once

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dragoman/convert.h>

#define NATIVE_NAMES 128
#define NATIVE_NAME_BYTES 24

struct native_name {
    size_t n; /* 0: it is free */
    char text[NATIVE_NAME_BYTES];
    PyObject *name;
};

/* The state of the module; a new one is zeroed. */
struct native {
    dgm_values *values;  /* NULL: not needed so far */
    bool retains_memory; /* see native_retain_memory() */
    struct native_name names[NATIVE_NAMES];
};

/* native_text.c: convert(options, text) -> text. options: JSON, bytes; text: str or bytes. */
PyObject *native_convert_text(PyObject *module, PyObject *arguments);
