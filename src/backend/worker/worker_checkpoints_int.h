/*
 * backend/worker/worker_checkpoints_int.h - a session of the checkpoint service.
 *
 *   worker_checkpoints.c         the session, what is asked of the store, answers
 *   worker_checkpoints_params.c  requests as queries and changes
 *   worker_blobs.c               values
 */
#pragma once

#include "backend/worker/worker_blobs.h"
#include "backend/worker/worker_checkpoints.h"

struct worker_named; /* a thread that the process may use */

/* How requests are answered: a test has its own. */
struct worker_answers {
    void (*result)(dgm_worker_request *r, dgm_str result);
    void (*error)(dgm_worker_request *r, int code, const char *message);
};

struct worker_session {
    const struct worker_answers *answers;
    const dgm_agent_checkpoints *store; /* NULL: none */
    size_t n_pending;                   /* requests that the store works on */
    bool is_closed;                     /* the process has ended; freed after the last answer */
    dgm_worker_blobs blobs;
    dgm_table named;
    struct worker_named *first, **last; /* in the order in which they were named last */
};

/* NULL: those of the pool. */
struct worker_session *dgm_worker_session_new(const dgm_agent_checkpoints *store,
                                              const struct worker_answers *answers);

/* The thread, or the one that its name was derived from by appending ":...", was named to this process. */
bool dgm_worker_session_may_use(const struct worker_session *s, dgm_str thread);

/* checkpoint/get and checkpoint/list. Texts are borrowed from the request. */
dgm_code dgm_worker_params_get(const struct worker_session *s, const dgm_worker_request *r,
                               dgm_checkpoint_query *ret_query, dgm_err *err);
dgm_code dgm_worker_params_list(const struct worker_session *s, const dgm_worker_request *r,
                                dgm_checkpoint_query *ret_query, dgm_err *err);
/* The cursor of the page behind this row, as JSON text. */
void dgm_worker_params_put_next(dgm_buf *out, dgm_arena *a, const dgm_checkpoint *last);

/* The other methods. Their bytes have a reference each, also after an error: dgm_worker_params_release(). */
typedef dgm_code dgm_worker_params_fn(struct worker_session *s, const dgm_worker_request *r,
                                      dgm_checkpoint_change *ret_change, dgm_err *err);
dgm_worker_params_fn dgm_worker_params_put, dgm_worker_params_writes, dgm_worker_params_delete,
    dgm_worker_params_delete_runs, dgm_worker_params_copy, dgm_worker_params_prune;
void dgm_worker_params_release(dgm_checkpoint_change *c);
