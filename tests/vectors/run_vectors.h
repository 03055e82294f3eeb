/* vectors/run_vectors.h - what the parts of the runner share. */
#pragma once

#include "base/err.h"

#include <dragoman/convert.h>
#include <stdio.h>

typedef struct text {
    char *p;
    size_t n;
} text;

/* The outcome of one conversion, by any path. */
typedef struct outcome {
    int exit;     /* 0 or 1; what a program would end with. Others: it did not end well */
    bool has_err; /* err is filled (the library); else `said` has the program's stderr */
    dgm_code code;
    dgm_err err;
    text out;
    text said;
    long peak_kib; /* resident memory at its highest; 0: not measured */
} outcome;

void outcome_done(outcome *o);

/* A conversion as the library and the command line want it. */
typedef struct job {
    dgm_convert_options options;
    const char *argv[32]; /* "convert", ...; ends with NULL; argv[0] is for the program */
    size_t argc;
    const char *file; /* read by the program; NULL: it gets standard input */
} job;

/* Gives input bytes piece by piece; 0: there are no more. */
typedef size_t source(void *ctx, char *into, size_t size);

/* The library, all at once. */
void run_whole(const job *j, text in, outcome *ret);
/* The library, in pieces of random size (seeded), output taken in pieces too. */
void run_pieces(const job *j, text in, uint64_t seed, outcome *ret);
/* The library in a child process, in pieces of 64 KiB or whole; output is counted, not kept. */
void run_measured(const job *j, source *from, void *ctx, bool whole, outcome *ret);
/* The program. from may be NULL when the job names a file. */
void run_program(const char *path, const job *j, source *from, void *ctx, bool keep_output,
                 outcome *ret);

/* TAP. */
void tap(bool ok, const char *name, const char *ids, const char *diagnostics);
size_t tap_end(void); /* prints the plan; returns how many failed */

/* Inputs too large to commit, made here. program: NULL for the library. */
void run_big(const char *program, const char *only);

text read_file(const char *path);
_Noreturn void die(const char *format, ...) DGM_PRINTF(1, 2);
