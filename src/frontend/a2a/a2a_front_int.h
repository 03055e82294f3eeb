/*
 * frontend/a2a/a2a_front_int.h - one operation on its way.
 *
 *   a2a_front.c          routes, and where a request starts
 *   a2a_front_headers.c  what headers and the query say: versions, media types, extensions
 *   a2a_front_rpc.c      JSON-RPC:  body  ─┐
 *   a2a_front_rest.c     REST: path, query, body ─┴─► an operation and its request
 *   a2a_front_ops.c      what each operation asks of the core        (a2a_front_list.c: ListTasks; a2a_front_tools.c: the caller's tools)
 *   a2a_front_stream.c   answers that go on
 *   a2a_front_answer.c   answers in the caller's dialect             (a2a_front_errors.c: errors)
 */
#pragma once

#include "base/limits.h"
#include "frontend/a2a/a2a_front.h"
#include "frontend/turn/turn.h"
#include "frontend/words.h"
#include "wire/a2a/a2a.h"

/* What the answers of one loop are put together in. */
struct scratch {
    dgm_buf out;
    dgm_arena *arena; /* of one event */
};

struct dgm_a2a_front {
    dgm_core *core;
    dgm_a2a_options o;
    struct scratch scratch[DGM_MAX_LOOPS];
};

struct scratch *dgm_front_scratch(dgm_a2a_front *f); /* this loop's, emptied */
struct op *dgm_a2a_new_op(const dgm_front_request *q, bool is_rpc);

enum version { VERSION_03, VERSION_10, VERSION_OTHER };

struct began; /* a2a_front_ops.c */

/* Lives in the exchange's arena until the core has the request; then as long as the exchange, with what the answer
 * needs (op_release_request). */
struct op {
    dgm_a2a_front *front;
    dgm_http_exchange *x;
    dgm_arena *arena;
    dgm_owner owner;        /* tenant: the one that was named, if the caller may */
    dgm_strs may_set;       /* as in dgm_front_request */
    bool any_tenant;        /* likewise */
    const dgm_codec *codec; /* of the caller's dialect */
    enum version version;   /* that the request asks for */
    bool has_version;       /* it names a version */
    bool rest;              /* no envelope */
    bool below_v1;          /* a path of 0.3 */
    /* A streaming call of JSON-RPC: a2a-go reads nothing but events, and all other SDKs read an error in either form. */
    bool wants_sse_errors;
    const dgm_json *id; /* of the envelope */
    dgm_method method;
    dgm_str task_id;    /* that it is about; empty: none yet */
    dgm_str extensions; /* activated ones, as the header has them; empty: none */
    dgm_opt_int history_length;
    bool return_immediately;
    dgm_str media;    /* type of a REST answer, once the request is released */
    uint64_t cursor;  /* Last-Event-ID, likewise */
    uint64_t sent;    /* the number of its send, for dgm_core_caller_left */
    uint64_t sent_at; /* the loop's time then, in milliseconds */
    uint32_t turn;    /* that this caller began; 0: none */
    /* a send that waits */
    struct began *began;
    dgm_log_reader *reader;
    dgm_timer *timer; /* of its own memory: closing it takes longer than the exchange lives */
};

static inline bool op_is_10(const struct op *op)
{
    return op->codec == &dgm_codec_a2a_10;
}

/* ---- a2a_front_headers.c ------------------------------------------------------------------------------------- */

/* The header, else the query parameter; nothing is 0.3. Patch numbers do not count. */
enum version dgm_version_of(const dgm_http_request *r, dgm_arena *a, bool *ret_said);
bool dgm_is_json_type(dgm_str content_type);            /* absent is */
dgm_str dgm_rest_type(const struct op *op);             /* of a REST answer */
void dgm_find_extensions(struct op *op);                /* fills op->extensions */
const char *dgm_missing_extension(const struct op *op); /* that a send needs; NULL: none */
bool dgm_takes_media_type(dgm_strs modes,
                          dgm_str type); /* no modes take all, and no type is taken */

/* ---- a2a_front_rpc.c, a2a_front_rest.c ------------------------------------------------------------------------- */

void dgm_a2a_handle_rpc(const dgm_front_request *q);
void dgm_rest_take(struct op *op, const dgm_front_request *q);
/* An object of this kind, and no other. */
dgm_code dgm_a2a_decode_request(struct op *op, const dgm_codec *codec, yyjson_val *v,
                                dgm_object_kind kind, void **ret_request, dgm_err *err);
void dgm_fail_version(struct op *op); /* with a word about those that are spoken */

/* ---- a2a_front_ops.c, a2a_front_list.c -------------------------------------------------------------------------- */

/* False: this server does not offer it, and has responded. Before the params are read. */
bool dgm_op_is_offered(struct op *op);
/* The same operation without its request, unless that is small: what is needed for the answer is copied. */
struct op *dgm_op_release_request(struct op *op);
void dgm_op_run(struct op *op,
                void *request); /* of the type that DGM_METHODS names for op->method */
void dgm_op_list(struct op *op, const dgm_list_tasks_request *q);
/* What is to be done when the connection that started a turn is lost; NULL: nothing, by setting. */
struct began *dgm_began_by(struct op *op);
void dgm_began_gone(const struct began *b); /* NULL is fine */

/* ---- a2a_front_tools.c --------------------------------------------------------------------------------------------- */

/* Makes the tools of the message metadata of the request. False: they are invalid, and the call is answered. */
bool dgm_a2a_set_tools(struct op *op, dgm_send *send);

/* ---- a2a_front_answer.c, a2a_front_errors.c ----------------------------------------------------------------------- */

void dgm_op_fail(struct op *op, const dgm_err *err);
void dgm_op_fail_with(struct op *op, dgm_code code, const char *msg);
/* With this HTTP status, on either binding, and more headers. */
void dgm_op_fail_as(struct op *op, const dgm_err *err, int http, const dgm_http_header *more,
                    size_t n);
void dgm_op_put_error(struct op *op, const dgm_err *err, int http,
                      dgm_buf *out); /* envelope and all */
/* An envelope's head and tail around a result, or nothing. */
void dgm_op_put_head(const struct op *op, dgm_buf *out);
void dgm_op_put_tail(const struct op *op, dgm_buf *out);
void dgm_op_respond(struct op *op, int status, dgm_str type, dgm_str body,
                    const dgm_http_header *more, size_t n);
void dgm_op_send(struct op *op, const dgm_buf *out);         /* head, result, tail */
void dgm_op_send_record(struct op *op, const dgm_record *r); /* a Task, or the Message of a send */
dgm_http_header dgm_op_extensions_header(const struct op *op);

/* How one caller sees tasks and events. */
struct view {
    const dgm_codec *codec;
    dgm_opt_int history_length;
    bool no_canonical_type;
};
struct view dgm_op_view(const struct op *op);
bool dgm_view_is_plain(const struct view *v, const dgm_record *r); /* its own bytes will do */
/* False: it cannot be read. */
bool dgm_view_event(const struct view *v, const dgm_record *r, dgm_arena *a, dgm_event *ret_event);
/* As a StreamResponse, a SendMessageResponse, or a Task. */
bool dgm_view_put(const struct view *v, const dgm_record *r, dgm_object_kind as, dgm_arena *scratch,
                  dgm_buf *out);

/* ---- a2a_front_stream.c --------------------------------------------------------------------------------------------- */

/* Takes over: the op is of no more use. snapshot, if any, comes first; log NULL: it is all. */
void dgm_op_stream(struct op *op, dgm_log *log, uint64_t after, dgm_record *snapshot);
void dgm_op_stream_error(struct op *op, const dgm_err *err); /* one event, and the end */

/* ---- a2a_front_card.c ------------------------------------------------------------------------------------------------ */

void dgm_card_send(struct op *op, const dgm_http_request *r);
void dgm_card_send_extended(struct op *op); /* there is one */
