/*
 * app/inspect/inspect_int.h - what the files of this folder share.
 *
 *   inspect.c          routes, owners, errors; a task with its turns, opened
 *   inspect_records.c  the records of a task as they are stored
 *   inspect_columns.c  a turn in one format: replayed by its frontend, or converted
 *   inspect_lint.c     findings of lint
 *   inspect_losses.c   losses of a conversion, per record
 *   inspect_walk.c     reads many records in steps; the Task after a record; findings
 *   inspect_live.c     the tasks in memory, for operators
 *   inspect_remote.c   another A2A server, called for an operator
 *   inspect_streams.c  the same for a recorded stream in the body of a request
 */
#pragma once

#include "app/inspect/inspect.h"
#include "frontend/turn/turn.h"

#include <dragoman/convert.h>
#include <dragoman/lint.h>

#define DGM_INSPECT_LINES "application/x-ndjson"

/* ---- inspect.c --------------------------------------------------------------------------------------------------- */

/* A task that is read. In the exchange's arena; the log and the snapshot are references until dgm_inspect_close. */
struct inspect {
    dgm_front_request q; /* its owner is that of the task */
    dgm_arena *arena;
    dgm_str task_id, agent_id, context_id;
    const dgm_turn_agent *agent; /* NULL: no longer configured */
    dgm_task_state state;
    dgm_log *log;
    uint64_t after;       /* the records behind it are there */
    dgm_record *snapshot; /* the Task up to there; NULL: `after` is 0 */
    dgm_task_turn *turns;
    size_t n_turns;
    const dgm_task_turn
        *turn;       /* the turn of ?turn=, else the last one; NULL: the task has no turn */
    bool names_turn; /* ?turn= was sent */
    void (*on_open)(struct inspect *t);
};

/* The owner whose tasks the request is about. False: the request was refused. */
bool dgm_inspect_owner(const dgm_front_request *q, dgm_owner *ret_owner);
/* Opens the task of the path. on_open is not called if the request was refused. */
void dgm_inspect_open(const dgm_front_request *q, void (*on_open)(struct inspect *t));
void dgm_inspect_close(struct inspect *t);

void dgm_inspect_refuse(const dgm_front_request *q, dgm_code code, const char *why);
void dgm_inspect_respond(dgm_http_exchange *x, const dgm_buf *json);
/* Starts a stream of lines. */
void dgm_inspect_start_lines(dgm_http_exchange *x, dgm_str content_type);
/* Digits of a query parameter or header; else `def`. */
uint64_t dgm_inspect_number(dgm_str s, uint64_t def);
/* ?follow=0: the stream ends with the records that exist. */
bool dgm_inspect_follows(dgm_http_exchange *x);

/* The formats of columns. */
struct inspect_format {
    dgm_format_id id;
    const char *protocol; /* of turns whose frontend streams it; NULL: of any turn */
};
extern const struct inspect_format dgm_inspect_formats[];
extern const size_t dgm_inspect_n_formats;
/* NULL: it is unknown, and the request was refused. */
const struct inspect_format *dgm_inspect_format_of(const dgm_front_request *q, dgm_str name);
/* Does a frontend stream this turn in this format? */
bool dgm_inspect_is_replayed(const struct inspect *t, const dgm_task_turn *turn,
                             const struct inspect_format *format);

/* ---- inspect_losses.c -------------------------------------------------------------------------------------------- */

/* The rows of the table of losses that applied since the last call. */
struct inspect_losses {
    size_t *counts; /* of the converter's rows */
    size_t n;
};
void dgm_inspect_losses_done(struct inspect_losses *l);
/* [{"what","why"},...] */
void dgm_inspect_put_losses(struct inspect_losses *l, const dgm_converter *c, dgm_buf *out);
/* {"seq":7,"frames":"...","losses":[...]} and a line end. seq 0: the end of the stream. c NULL: no losses. error: the reason if
 * the conversion failed here; else NULL. */
void dgm_inspect_put_line(uint64_t seq, dgm_str frames, struct inspect_losses *l,
                          const dgm_converter *c, const char *error, dgm_buf *out);

/* ---- inspect_lint.c ---------------------------------------------------------------------------------------------- */

struct inspect_lint {
    dgm_linter *linter; /* NULL: the format has no rules */
    uint64_t *seqs;     /* of the values that it got */
    size_t n, cap, n_findings;
    dgm_buf out;
};
void dgm_inspect_lint_start(struct inspect_lint *l, dgm_format_id from);
/* One value with its framing; a line end may follow by dgm_linter_feed(). */
void dgm_inspect_lint_feed(struct inspect_lint *l, uint64_t seq, dgm_str bytes);
const dgm_buf *dgm_inspect_lint_end(struct inspect_lint *l); /* the JSON */
void dgm_inspect_lint_done(struct inspect_lint *l);

/* ---- inspect_walk.c ---------------------------------------------------------------------------------------------- */

/* Reads records in steps, between which the loop does other work. */
struct inspect_walk {
    dgm_http_exchange *x;
    dgm_log *log;
    uint64_t after,
        last; /* the records behind `after`, up to `last` or to the end of what exists */
    /* False: enough. */
    bool (*on_record)(void *arg, const dgm_record *r);
    void (*on_end)(void *arg); /* responds */
    void (*on_free)(
        void *arg); /* the last call; also if the client has disconnected, and then the only one */
    void *arg;
};
void dgm_inspect_walk(const struct inspect_walk *walk);

/* The Task after the record `seq`. is_turn: that record is the message that starts a turn; if it answers a question, the status
 * behind it is folded in, too. */
typedef void (*dgm_inspect_on_task)(void *arg, dgm_record *task); /* NULL: it cannot be shown */
void dgm_inspect_fold(struct inspect *t, uint64_t seq, bool is_turn, dgm_inspect_on_task on_task,
                      void *arg);

void dgm_inspect_respond_task(dgm_http_exchange *x, const dgm_record *task);

/* ---- handlers ---------------------------------------------------------------------------------------------------- */

void dgm_inspect_records(const dgm_front_request *q);
void dgm_inspect_columns(const dgm_front_request *q);
void dgm_inspect_findings(const dgm_front_request *q);
void dgm_inspect_folded(const dgm_front_request *q);
void dgm_inspect_remote_card(const dgm_front_request *q);
void dgm_inspect_remote_send(const dgm_front_request *q);
void dgm_inspect_live(const dgm_front_request *q);
void dgm_inspect_stream(const dgm_front_request *q); /* the route's op: enum inspect_mode */
enum inspect_mode { INSPECT_RECORDS, INSPECT_COLUMN, INSPECT_FINDINGS, INSPECT_FOLD };
