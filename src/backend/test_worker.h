/*
 * backend/test_worker.h - for tests with the worker of tests/support/worker.py, which does what the text of a message says.
 */
#pragma once

#include "backend/test_fake.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define worker_path DGM_ROOT "/tests/support/worker.py"

/* The operator's log. */
struct worker_lines {
    pthread_mutex_t lock;
    dgm_buf text;
};

static inline void worker_on_log(void *user, dgm_str agent, bool is_fault, dgm_str line)
{
    struct worker_lines *l = user;
    (void)agent;
    pthread_mutex_lock(&l->lock);
    dgm_buf_printf(&l->text, "%s%.*s\n", is_fault ? "! " : "", DGM_P(line));
    pthread_mutex_unlock(&l->lock);
}

static inline bool worker_logged(struct worker_lines *l, const char *what)
{
    pthread_mutex_lock(&l->lock);
    bool has = fake_has(&l->text, what);
    pthread_mutex_unlock(&l->lock);
    return has;
}

/* Within 20 s. */
static inline void worker_wait_log(struct worker_lines *l, const char *what)
{
    for (int i = 0; i < 2000 && !worker_logged(l, what); i++)
        usleep(10000);
    if (!worker_logged(l, what)) {
        print_error("\"%s\" is not in the log: %.*s\n", what, DGM_P(dgm_buf_str(&l->text)));
        fail();
    }
}
