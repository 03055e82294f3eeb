/*
 * fuzz_functions.c - the documents' functions on any text.
 *
 * Held: what one of them gives the next one reads; compacting twice is compacting once; for a complete message map,
 * reduce, map fails only where the direct function fails.
 */
#include "base/err.h"
#include "fuzz/fuzz.h"

#include <dragoman/dragoman.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct text {
    char *p;
    size_t n;
} text;

static void must(bool ok, const char *what, text in, const dgm_err *err)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_functions: %s: %s at \"%s\"\n%.*s\n", what, err->msg, err->at, (int)in.n,
            in.p);
    abort();
}

/* A text that grows on the way may become too large; everything else must be read. */
static bool read_again(dgm_code rc, const char *what, text in, const dgm_err *err)
{
    must(!rc || rc == DGM_TOO_LARGE, what, in, err);
    return !rc;
}

static void compact_again(text compacted)
{
    text again = {0};
    dgm_err err = {0};
    if (read_again(dgm_compact_events(compacted.p, compacted.n, &again.p, &again.n, &err),
                   "what was compacted is not read", compacted, &err))
        must(again.n == compacted.n && memcmp(again.p, compacted.p, again.n) == 0,
             "compacting twice gives something else", compacted, &err);
    dgm_free(again.p);
}

/* ours: made by us, not by a stranger. */
static void events(text in, bool ours)
{
    text compacted = {0}, chat = {0};
    dgm_err err = {0};
    dgm_code rc = dgm_compact_events(in.p, in.n, &compacted.p, &compacted.n, &err);
    /* pieces of arguments that are no JSON are the only thing wrong with events of ours */
    must(!ours || !rc || rc == DGM_TOO_LARGE || strstr(err.msg, "pieces of the call"),
         "events of ours are not read", in, &err);
    if (!rc) {
        compact_again(compacted);
        read_again(
            dgm_convert_agui_event_to_openai_chat(compacted.p, compacted.n, &chat.p, &chat.n, &err),
            "what was compacted becomes no messages", compacted, &err);
        dgm_free(chat.p);
        chat.p = NULL;
    }
    rc = dgm_convert_agui_event_to_openai_chat(in.p, in.n, &chat.p, &chat.n, &err);
    must(!ours || !rc || rc == DGM_TOO_LARGE, "events of ours become no messages", in, &err);
    dgm_free(chat.p);
    dgm_free(compacted.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    text in = {malloc(size + !size), size}, out = {0}, direct = {0};
    dgm_err err = {0}, direct_err = {0};
    if (!in.p)
        return 0;
    memcpy(in.p, data, size);
    dgm_code direct_rc =
        dgm_convert_a2a_message_to_openai(in.p, in.n, &direct.p, &direct.n, &direct_err);
    dgm_free(direct.p);
    for (int spelling = DGM_EVENTS_SIMPLE; spelling <= DGM_EVENTS_OFFICIAL; spelling++) {
        out = (text){0};
        dgm_code rc = dgm_convert_a2a_message_to_agui_event(in.p, in.n, (dgm_event_dialect)spelling,
                                                            &out.p, &out.n, &err);
        must(rc || out.p || !out.n, "nothing that has a length", in, &err);
        must(!rc || direct_rc || rc == DGM_TOO_LARGE, "the direct function takes it", in, &err);
        if (!rc && out.p)
            events(out, true);
        dgm_free(out.p);
    }
    events(in, false);
    free(in.p);
    return 0;
}
