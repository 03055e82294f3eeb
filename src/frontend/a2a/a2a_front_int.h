/* frontend/a2a/a2a_front_int.h - one operation on its way. */
#pragma once

#include "frontend/a2a/a2a_front.h"
#include "wire/a2a/a2a.h"

struct dgm_a2a_front {
    dgm_core *core;
    dgm_a2a_options o;
};

/* Lives in the exchange's arena. */
struct op {
    dgm_a2a_front *front;
    dgm_http_exchange *x;
    dgm_arena *arena;
    dgm_owner owner;
    dgm_str agent;
    const dgm_codec *codec; /* of the caller's dialect */
    bool rest;              /* no envelope */
    const dgm_json *id;     /* of the envelope */
    dgm_method method;
    dgm_str task_id;
    dgm_opt_int history_length;
    bool return_immediately;
    /* while it runs */
    dgm_log *log;
    dgm_reader *reader;
    uint64_t after;
    dgm_timer *timer; /* of its own memory: closing it takes longer than the exchange lives */
    bool streaming, gone, over;
    dgm_arena *scratch; /* of one event */
    dgm_buf out;
};

/* a2a_front_answer.c */
void op_fail(struct op *op, const dgm_err *err);
void op_answer(struct op *op, dgm_object object);
void op_give_task(struct op *op, dgm_record *snapshot, bool wrapped);
void op_over(struct op *op); /* the exchange has its end; free what is held */
void op_after(struct op *op, uint64_t ms, dgm_loop_fn fn); /* fn(op), unless it is over by then */

/* a2a_front_stream.c */
void op_stream(struct op *op, dgm_log *log, uint64_t after, dgm_record *snapshot);

/* a2a_front_ops.c */
void op_run(struct op *op, const dgm_frame *frame);
