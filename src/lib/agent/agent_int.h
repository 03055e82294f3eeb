/* lib/agent/agent_int.h - the structs of a loop and of a stream. */
#pragma once

#include "base/map.h"
#include "config/engine.h"

#include <dragoman/agent.h>
#include <pthread.h>

#define DGM_AGENT_QUEUE 64 /* records that wait for the caller's thread */

struct dgm_agent_loop {
    dgm_engine engine;
    dgm_str agent; /* id; empty: the default agent */
    dgm_arena *arena;
    void (*on_log)(void *user, dgm_str line);
    void *log_user;
    /* Of the loop thread: */
    dgm_agent_stream *streams; /* that have not ended */
    bool is_closing;
    /* Of the tasks that the process before this one left unfinished, by id: the last record before they were resumed, plus 1; 0:
     * that task was resumed by a caller. */
    dgm_map resumable;
};

typedef enum dgm_agent_request { DGM_AGENT_EXECUTE, DGM_AGENT_RESUME } dgm_agent_request;

/* One execute or resume. Two threads have it: the caller's, and that of the loop. */
struct dgm_agent_stream {
    dgm_agent_loop *loop; /* not after is_ended */
    dgm_agent_request request;
    dgm_arena *arena; /* of the next three */
    dgm_message *message;
    dgm_str task_id;
    _Atomic int refs; /* the caller, the loop, and each job that was posted */

    /* Of the caller's thread: */
    dgm_arena *event_arena; /* of the event that the caller has */
    dgm_event event;
    dgm_buf json;
    dgm_agent_event given;

    /* Of the loop thread: */
    dgm_log_reader *reader;
    uint64_t sent;      /* number of dgm_core_send */
    bool is_waiting;    /* for an answer of the core */
    bool is_discarded;  /* the caller has freed it */
    dgm_agent_stream *next, **link; /* in loop->streams */

    pthread_mutex_t lock; /* for the rest */
    pthread_cond_t ready;
    dgm_record *queue[DGM_AGENT_QUEUE];
    size_t first, n;
    bool is_full;  /* the loop waits until the queue has room */
    bool is_ended; /* nothing is added any more */
    dgm_code code; /* why it ended */
    dgm_err err;
};

/* ---- agent_options.c ------------------------------------------------------------------------------------------- */

/* A configuration without errors. */
dgm_code dgm_agent_load_config(const dgm_agent_loop_options *o, dgm_config **ret_config,
                               dgm_err *err);
/* The user's message, in the arena. */
dgm_code dgm_agent_make_message(dgm_arena *a, dgm_str prompt, const dgm_agent_execute_options *o,
                                dgm_message **ret_message, dgm_err *err);
/* An id of a task or a context: UTF-8, not empty, not too long. what: "task_id". */
dgm_code dgm_agent_check_id(dgm_str id, const char *what, dgm_err *err);

/* ---- agent_stream.c -------------------------------------------------------------------------------------------- */

/* Ends every stream. On the loop thread. */
void dgm_agent_end_streams(dgm_agent_loop *loop);
