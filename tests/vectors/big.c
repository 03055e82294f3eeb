/*
 * vectors/big.c - hostile inputs that are too large to commit, made while they are read.
 *
 * Each goes one past a limit of base/limits.h, or far past it, and must end with an error that
 * names the limit; or it keeps the limit, and must end well. Never a crash, never more memory than
 * the row allows.
 */
#include "vectors/run_vectors.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* What only has to be long is shorter under the sanitizers, which are slow. */
#define LONG(n) (SANITIZED ? (n) / 8 : (n))

#define KI 1024ul
#define MI (1024ul * 1024ul)

/* head, unit again and again, middle, unit2 again and again, tail */
typedef struct recipe {
    const char *name;
    const char *head, *unit;
    size_t times;
    const char *middle, *unit2;
    size_t times2;
    const char *tail;
    bool numbered; /* every # in a unit is its number */
    /* What is expected: DGM_OK, or an error that points here (or below) and says this. */
    dgm_code code;
    const char *pointer, *says;
    unsigned long peak_mib; /* of memory, whole texts not counted */
    const char *ids;
} recipe;

#define MESSAGE "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":["
#define SSE_TEXT                                                                                   \
    "data: {\"artifactUpdate\":{\"taskId\":\"t\",\"contextId\":\"c\",\"append\":true,"             \
    "\"artifact\":{\"artifactId\":\"a\",\"parts\":[{\"text\":\"chunk #\"}]}}}\n\n"

static const recipe recipes[] = {
    /* ---- depth ------------------------------------------------------------------------------ */
    {"arrays 10,000 deep in a data part", MESSAGE "{\"data\":", "[", 10000, "", "]", 10000, "}]}",
     false, DGM_TOO_LARGE, "/parts/0/data/0", "json_depth", 8, ""},
    {"objects 10,000 deep in metadata", MESSAGE "{\"text\":\"x\"}],\"metadata\":", "{\"a\":", 10000,
     "1", "}", 10000, "}", false, DGM_TOO_LARGE, "/metadata/a", "json_depth", 8, ""},
    {"objects 10,000 deep in a protocol object", "", "{\"message\":", 10000, "1", "}", 10000, "",
     false, DGM_TOO_LARGE, "/message/message", "json_depth", 8, ""},
    {"arrays 10,000 deep that never close", MESSAGE "{\"data\":", "[", 10000, "", "", 0, "", false,
     DGM_PARSE, "/parts/0/data", "", 8, ""},
    {"arrays 1,000,000 deep at the top", "", "[", 1000000, "", "]", 1000000, "", false,
     DGM_TOO_LARGE, "", "json_depth", 64, ""},
    {"arrays 1,000,000 deep in one event of a stream", "data: ", "[", 1000000, "", "]", 1000000,
     "\n\n", false, DGM_TOO_LARGE, "", "json_depth", 64, ""},
    {"closing brackets without end", MESSAGE "{\"text\":\"x\"}]}", "]", 1000000, "", "", 0, "",
     false, DGM_PARSE, "", "", 16, ""},
    /* ---- bytes ------------------------------------------------------------------------------ */
    {"a text of 64 MiB", MESSAGE "{\"text\":\"", "0123456789abcdef", 64 * MI / 16, "", "", 0,
     "\"}]}", false, DGM_TOO_LARGE, "", "object_bytes", 48, ""},
    {"a text of 64 MiB that never ends", MESSAGE "{\"text\":\"", "0123456789abcdef", 64 * MI / 16,
     "", "", 0, "", false, DGM_TOO_LARGE, "", "object_bytes", 48, ""},
    {"a text of 31 MiB", MESSAGE "{\"text\":\"", "0123456789abcdef", 31 * MI / 16, "", "", 0,
     "\"}]}", false, DGM_OK, "", "", 144, ""},
    {"a text of 20 MiB in escapes", MESSAGE "{\"text\":\"", "\\u0001", 20 * MI / 6, "", "", 0,
     "\"}]}", false, DGM_OK, "", "", 96, ""},
    {"a number of 64 MiB", MESSAGE "{\"data\":", "0123456789012345", 64 * MI / 16, "", "", 0, "}]}",
     false, DGM_TOO_LARGE, "", "object_bytes", 48, ""},
    {"white space of 64 MiB", "", "                ", 64 * MI / 16, MESSAGE "{\"text\":\"x\"}]}",
     "", 0, "", false, DGM_OK, "", "", 8, ""},
    {"white space of 64 MiB and nothing else", "", "   \n   \t   \r\n   ", 64 * MI / 16, "", "", 0,
     "", false, DGM_PARSE, "", "", 8, ""},
    {"one event of 64 MiB", "data: {\"message\":" MESSAGE "{\"text\":\"", "0123456789abcdef",
     64 * MI / 16, "", "", 0, "\"}]}}\n\n", false, DGM_TOO_LARGE, "", "_bytes", 16, ""},
    {"one event of 64 MiB in many data lines", "data: {\n", "data:  \n", 8 * MI, "", "", 0, "\n",
     false, DGM_TOO_LARGE, "", "_bytes", 16, ""},
    {"one field name of 64 MiB", "data: {}\nname", "0123456789abcdef", 64 * MI / 16, "", "", 0,
     "\n\n", false, DGM_TOO_LARGE, "", "_bytes", 16, ""},
    {"one line of 64 MiB among JSON lines",
     "{\"message\":" MESSAGE "{\"text\":\"x\"}]}}\n{\"message\":" MESSAGE "{\"text\":\"",
     "0123456789abcdef", 64 * MI / 16, "", "", 0, "\"}]}}\n", false, DGM_TOO_LARGE, "", "_bytes",
     16, ""},
    {"an event of 7 MiB", "data: {\"message\":" MESSAGE "{\"text\":\"", "0123456789abcdef",
     7 * MI / 16, "", "", 0, "\"}]}}\n\n", false, DGM_OK, "", "", 40, ""},
    {"a million small events", "", SSE_TEXT, LONG(1000000), "", "", 0, "", true, DGM_OK, "", "", 8,
     ""},
    {"four million comments", "data: {\"message\":" MESSAGE "{\"text\":\"x\"}]}}\n\n",
     ": ping ping ping\n", LONG(4 * MI), "", "", 0, "", false, DGM_OK, "", "", 8, ""},
    /* ---- counts ----------------------------------------------------------------------------- */
    {"100,001 parts", MESSAGE "{\"text\":\"x\"}", ",{\"text\":\"x\"}", 100000, "", "", 0, "]}",
     false, DGM_TOO_LARGE, "/parts", "list_items", 24, ""},
    {"100,000 parts", MESSAGE "{\"text\":\"x\"}", ",{\"text\":\"x\"}", 99999, "", "", 0, "]}",
     false, DGM_OK, "", "", 40, ""},
    {"100,001 extensions", MESSAGE "{\"text\":\"x\"}],\"extensions\":[\"x\"", ",\"x\"", 100000, "",
     "", 0, "]}", false, DGM_TOO_LARGE, "/extensions", "list_items", 16, ""},
    {"1,001 unknown members", MESSAGE "{\"text\":\"x\"}]", ",\"x#\":0", 1001, "", "", 0, "}", true,
     DGM_TOO_LARGE, "", "unknown_members", 8, ""},
    {"1,000 unknown members", MESSAGE "{\"text\":\"x\"}]", ",\"x#\":0", 1000, "", "", 0, "}", true,
     DGM_OK, "", "", 8, ""},
    /* the worst that 32 MiB can hold: 16 bytes of ours for every 2 of theirs */
    {"16 million numbers in a data part", MESSAGE "{\"data\":[0", ",0", LONG(15 * MI), "", "", 0,
     "]}]}", false, DGM_OK, "", "", 450, ""},
    {"10 million empty arrays in a data part", MESSAGE "{\"data\":[0", ",[]", LONG(10 * MI), "", "",
     0, "]}]}", false, DGM_OK, "", "", 450, ""},
    {"100,000 members in metadata", MESSAGE "{\"text\":\"x\"}],\"metadata\":{\"x\":0", ",\"x#\":0",
     100000, "", "", 0, "}}", true, DGM_OK, "", "", 24, ""},
};

/* ---- making them ------------------------------------------------------------------------------------ */

struct maker {
    const recipe *r;
    int stage; /* 0 head, 1 units, 2 middle, 3 second units, 4 tail */
    size_t done;
    char unit[512];
    const char *rest; /* of what was begun */
};

static const char *numbered(struct maker *m, const char *unit)
{
    size_t n = 0;
    if (!m->r->numbered)
        return unit;
    for (; *unit && n + 24 < sizeof m->unit; unit++) {
        if (*unit == '#')
            n += (size_t)snprintf(m->unit + n, sizeof m->unit - n, "%zu", m->done);
        else
            m->unit[n++] = *unit;
    }
    m->unit[n] = 0;
    return m->unit;
}

static bool more(struct maker *m)
{
    const recipe *r = m->r;
    for (; m->stage < 5; m->stage++, m->done = 0) {
        const char *piece = m->stage == 0   ? r->head
                            : m->stage == 1 ? r->unit
                            : m->stage == 2 ? r->middle
                            : m->stage == 3 ? r->unit2
                                            : r->tail;
        size_t times = m->stage == 1 ? r->times : m->stage == 3 ? r->times2 : 1;
        if (*piece && m->done < times) {
            m->rest = m->stage % 2 ? numbered(m, piece) : piece;
            m->done++;
            return true;
        }
    }
    return false;
}

static size_t make(void *ctx, char *into, size_t size)
{
    struct maker *m = ctx;
    size_t n = 0;
    while (n < size) {
        if (!*m->rest && !more(m))
            break;
        while (n < size && *m->rest)
            into[n++] = *m->rest++;
    }
    return n;
}

/* ---- running them ------------------------------------------------------------------------------------ */

static void check(const recipe *r, const char *road, unsigned long extra_kib, const outcome *o,
                  FILE *why)
{
    const char *said = o->has_err ? o->err.msg : o->said.p ? o->said.p : "";
    unsigned long room_kib = r->peak_mib * KI + extra_kib;
    if (o->exit != (r->code != DGM_OK))
        fprintf(why, "%s: ended with %d: %s\n", road, o->exit, said);
    else if (r->code != DGM_OK && !strstr(said, r->says))
        fprintf(why, "%s: the error does not say \"%s\": %s\n", road, r->says, said);
    if (o->has_err && o->exit < 2 && o->code != r->code)
        fprintf(why, "%s: the code is %s instead of %s: %s\n", road, dgm_code_name(o->code),
                dgm_code_name(r->code), said);
    if (o->has_err && o->exit == 1 && strncmp(o->err.at, r->pointer, strlen(r->pointer)) != 0)
        fprintf(why, "%s: the error points to \"%s\" instead of \"%s\": %s\n", road, o->err.at,
                r->pointer, said);
    if (!SANITIZED && o->peak_kib > 0 && (unsigned long)o->peak_kib > room_kib)
        fprintf(why, "%s: %ld KiB of memory at its peak, %lu KiB allowed\n", road, o->peak_kib,
                room_kib);
}

static size_t length_of(const recipe *r)
{
    return strlen(r->head) + strlen(r->unit) * r->times + strlen(r->middle) +
           strlen(r->unit2) * r->times2 + strlen(r->tail);
}

static void run_recipe(const recipe *r, const char *program)
{
    char name[128], *text_why = NULL;
    size_t n_why = 0;
    FILE *why = open_memstream(&text_why, &n_why);
    job j = {
        .options = {.size = sizeof j.options, .from = DGM_FORMAT_A2A_10, .to = DGM_FORMAT_A2A_03},
        .argv = {"convert", "--from", "a2a-1.0", "--to", "a2a-0.3"},
        .argc = 5};
    outcome o;
    snprintf(name, sizeof name, "big/%s", r->name);
    if (program) {
        struct maker m = {.r = r, .rest = ""};
        run_program(program, &j, make, &m, false, &o);
        check(r, "program", 0, &o, why);
        outcome_done(&o);
    } else {
        for (int whole = 0; whole < 2; whole++) {
            struct maker m = {.r = r, .rest = ""};
            if (whole && length_of(r) > (SANITIZED ? 8 : 80) * MI)
                continue;
            run_measured(&j, make, &m, whole, &o);
            /* The text itself, doubling while it is made, and 4 MiB for the runner. */
            check(r, whole ? "whole" : "pieces", (whole ? 3 * length_of(r) / KI : 0) + 4 * KI, &o,
                  why);
            o.out.p = NULL;
            outcome_done(&o);
        }
    }
    bool ok = ftell(why) == 0;
    fclose(why);
    tap(ok, name, r->ids, text_why);
    free(text_why);
}

void run_big(const char *program, const char *only)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        char name[128];
        snprintf(name, sizeof name, "big/%s", recipes[i].name);
        if (strncmp(name, only, strlen(only)) == 0)
            run_recipe(&recipes[i], program);
    }
}
