/* lint/lint_int.h - declarations that the files of this folder share. */
#pragma once

#include "base/limits.h"
#include "canon/canon.h"
#include "lint/lint_rules.h"
#include "model/reconcile.h"
#include "wire/codec.h"
#include "wire/frames/frames.h"

#include <dragoman/lint.h>

/* ---- formats (lint.c) ------------------------------------------------------------------------------- */

typedef struct lint_format {
    dgm_format_id id;
    const dgm_codec *a2a; /* NULL: ag-ui */
    unsigned dialect;     /* a bit of enum lint_dialect; ag-ui: 0 */
} lint_format;

enum lint_dialect { LINT_10 = 1, LINT_03 = 2, LINT_03_REST = 4, LINT_ANY_DIALECT = 7 };

/* ---- ids that were there (lint_seen.c) ----------------------------------------------------------------- */

/* Ids by their hash, each with a number, as many as lint_items allows. */
struct lint_seen {
    struct lint_seen_slot {
        uint64_t hash; /* 0: free */
        uint64_t value;
    } * slots;
    size_t n, cap;
    bool full; /* some were left out */
};

uint64_t *dgm_lint_seen_find(const struct lint_seen *s, dgm_str id); /* NULL: was not there */
uint64_t *dgm_lint_seen_add(struct lint_seen *s, dgm_str id);        /* NULL: no room */
void dgm_lint_seen_clear(struct lint_seen *s);                       /* frees, too */

/* ---- texts (lint_seen.c) ---------------------------------------------------------------------------------- */

/* The last texts of a stream, each by its message or artifact id: lengths and hashes only. */
struct lint_texts {
    struct lint_text {
        uint64_t id;
        dgm_sum sum;
        size_t pieces;
    } at[DGM_MAX_LINT_TEXTS];
    size_t n;      /* how many there were */
    size_t pieces; /* of all of them */
};

void dgm_lint_text_start(dgm_linter *l, dgm_str id, dgm_str text); /* replaces the text of id */
void dgm_lint_text_append(dgm_linter *l, dgm_str id, dgm_str delta,
                          const char *at); /* may be a whole again */
void dgm_lint_text_complete(dgm_linter *l, dgm_str id,
                            const char *at); /* it is complete: is it another's? */
void dgm_lint_text_final(dgm_linter *l, dgm_str text,
                         const char *at); /* of a task that completed */

/* ---- one stream of A2A (lint_stream.c) ----------------------------------------------------------------- */

struct lint_id { /* one that stays the same */
    char text[DGM_MAX_ID_BYTES];
    size_t n; /* 0: not known */
};

struct lint_stream {
    bool any;      /* an event was there */
    bool has_task; /* it was about a task */
    bool ended;    /* by a terminal status, a message or an error */
    dgm_task_state state;
    struct lint_id task_id, context_id, request_id;
    struct lint_seen artifacts; /* id -> enum lint_artifact */
    size_t n_unsealed;          /* artifacts that came in chunks and had no last one */
};

/* An event, or a task or message alone. */
void dgm_lint_event(dgm_linter *l, const dgm_event *e, bool in_stream);
void dgm_lint_request_id(dgm_linter *l, const dgm_json *id);
void dgm_lint_stream_error(dgm_linter *l); /* an error in the place of an event */
void dgm_lint_stream_end(dgm_linter *l);   /* and nothing of it is left */

/* ---- tools (lint_tools.c) ------------------------------------------------------------------------------- */

void dgm_lint_message_tools(dgm_linter *l, const dgm_message *m, const dgm_at *at);
void dgm_lint_add_call(dgm_linter *l, dgm_str call_id);
void dgm_lint_add_result(dgm_linter *l, dgm_str call_id, const char *at);

/* ---- the rest --------------------------------------------------------------------------------------------- */

struct lint_agui; /* lint_agui.c: one stream of AG-UI */

/* How values belong together. */
typedef struct lint_where {
    bool in_stream; /* an event of a stream */
    bool in_list;   /* one of several: calls and results can be held against each other */
} lint_where;

struct dgm_linter {
    dgm_lint_options o;
    const lint_format *requested; /* NULL: detected from the input */
    const lint_format *format;    /* of the last value */
    unsigned dialects; /* the dialects that every value of the stream so far can belong to */
    dgm_frames frames;
    dgm_arena *arena; /* of one value */
    bool over;        /* nothing more can be read */
    size_t found[DGM_SEVERITY_ERROR + 1];

    /* the value being looked at */
    const dgm_frames_item *item; /* NULL: between values */
    size_t n_values;
    lint_where where;
    char base[24]; /* pointer to it in the text: "", or "/3" in an array */
    uint8_t reported[LINT_N_RULES];
    struct {
        size_t i, pos;  /* an element of the array, and where it starts */
        size_t line_at; /* where its line does */
        size_t line;
    } element; /* the last element with a finding: the search for the next position starts there */
    size_t i;  /* index of the current element; 0: not an array, or its first */
    char object[64]; /* pointer from there to the event or noun: "/result/statusUpdate" */
    size_t line, column, character; /* of the last value */

    struct lint_stream stream;
    struct lint_texts texts;
    struct lint_seen calls;
    struct lint_agui *agui; /* NULL: no event yet */
};

void dgm_lint_a2a_value(dgm_linter *l, yyjson_val *v); /* lint_a2a.c; by l->format */
void dgm_lint_agui_value(dgm_linter *l, yyjson_val *v);
void dgm_lint_agui_end(dgm_linter *l);                                        /* frees, too */
void dgm_lint_card(dgm_linter *l, yyjson_val *v, const dgm_agent_card *card); /* in l->object */
/* Checks the required members of a card in v, before it is decoded. */
void dgm_lint_card_members(dgm_linter *l, yyjson_val *v);

/* Names and nulls, and what shows the dialect (lint_walk.c). True: it is in two dialects at once. */
bool dgm_lint_walk_a2a(dgm_linter *l, yyjson_val *v, bool is_card);
void dgm_lint_walk_agui(dgm_linter *l, yyjson_val *v);

/* ---- telling (lint_tell.c) --------------------------------------------------------------------------------- */

/* at: pointer from the value, or from l->object. fmt NULL: what the table says. */
void dgm_lint_report(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
    DGM_PRINTF(4, 5);
void dgm_lint_report_in(dgm_linter *l, lint_rule rule, const char *at, const char *fmt, ...)
    DGM_PRINTF(4, 5);
/* An array is about to be looked at. */
void dgm_lint_first_element(dgm_linter *l);
/* Invalid JSON: err has the position. */
void dgm_lint_report_text(dgm_linter *l, lint_rule rule, const dgm_err *err);
/* An error of the decoder about the value. */
void dgm_lint_report_decoder(dgm_linter *l, yyjson_val *v, const dgm_err *err);
