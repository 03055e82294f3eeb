/*
 * core/test_replicas_model.c - random schedules of three servers, and what clients see of them.
 *
 * The model is one order of records per task: whatever any reader of any server was given for a number is the record that
 * every other reader gets for that number, each reader gets them once and in order, and what was acknowledged is there at
 * the end. Threads make a schedule differ from run to run; the seed decides what is done.
 */
#include "core/test_replicas.h"

#define N_SCHEDULES 12
#define N_STEPS 60
#define MOST_TASKS 6
#define MOST_READERS 64

struct model_task {
    char id[64];
    struct step *readers[MOST_READERS];
    size_t n_readers;
    size_t n_accepted; /* messages that were acknowledged */
    char accepted[N_STEPS][16];
    bool is_canceled; /* that was acknowledged */
};

static uint64_t seed;
static struct model_task model[MOST_TASKS];
static size_t n_tasks, n_messages;

static size_t draw(size_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (size_t)(seed % n);
}

static void model_send(size_t i, struct model_task *t)
{
    char id[16];
    snprintf(id, sizeof id, "s%zu", n_messages++);
    const char *text = draw(3) ? "hold" : "ask";
    struct step *s = say(&replicas[i], id, text, t ? t->id : "");
    if (!s->code && !t) {
        t = &model[n_tasks++];
        *t = (struct model_task){0};
        snprintf(t->id, sizeof t->id, "%s", s->task);
    }
    if (!s->code) {
        assert_string_equal(t->id, s->task);
        snprintf(t->accepted[t->n_accepted++], sizeof t->accepted[0], "%s", id);
    } else if (s->code != DGM_UNSUPPORTED_OPERATION && s->code != DGM_UNAVAILABLE) {
        fail_msg("send: %d %s", s->code, s->err.msg);
    }
    clear(s);
}

static void model_read(size_t i, struct model_task *t)
{
    size_t from = draw(2) ? 0 : draw(8);
    if (t->n_readers == MOST_READERS)
        return;
    struct step *s = ask(&replicas[i], t->id, "", subscribe_it, from);
    if (s->code) {
        assert_true(s->code == DGM_UNAVAILABLE);
        clear(s);
        return;
    }
    t->readers[t->n_readers++] = s;
    post_step(&replicas[i], s, i, open_reader);
}

static void model_look(size_t i, struct model_task *t)
{
    struct step *s = get_at(i, t->id);
    if (s->code)
        assert_int_equal(s->code, DGM_UNAVAILABLE);
    clear(s);
}

static void model_cancel(size_t i, struct model_task *t)
{
    struct step *s = ask(&replicas[i], t->id, "", cancel_it, 0);
    if (!s->code)
        t->is_canceled = s->snapshot->head.state == DGM_STATE_CANCELED;
    else
        assert_true(s->code == DGM_TASK_NOT_CANCELABLE || s->code == DGM_UNAVAILABLE);
    clear(s);
}

static void model_step(void)
{
    static const char *const texts[] = {"a", "b", "b", "c", "ask", "end"};
    size_t i = draw(n_replicas), what = draw(20);
    struct model_task *t = n_tasks ? &model[draw(n_tasks)] : NULL;
    if (!t || (what < 3 && n_tasks < MOST_TASKS))
        model_send(i, NULL);
    else if (what < 6)
        model_send(i, t);
    else if (what < 9)
        model_read(i, t);
    else if (what < 11)
        model_look(i, t);
    else if (what < 12)
        model_cancel(i, t);
    else if (what < 13)
        dgm_store_memory_kill(replicas[i].store);
    else
        emit_at(i, texts[draw(sizeof texts / sizeof *texts)]);
}

/* ---- the end ---------------------------------------------------------------------------------------------------------- */

/* A new reader from the first record; the task has ended. */
static struct step *read_whole(size_t i, const struct model_task *t)
{
    for (;;) {
        struct step *s = ask(&replicas[i], t->id, "", subscribe_it, 0);
        if (s->code) { /* a server that lost it just notices it */
            assert_int_equal(s->code, DGM_UNAVAILABLE);
            clear(s);
            continue;
        }
        read_all(&replicas[i], s, i);
        if (s->n && dgm_state_is_terminal(s->records[s->n - 1]->head.state))
            return s;
        clear(s);
    }
}

static void end_task(const struct model_task *t)
{
    for (size_t i = 0;; i = (i + 1) % n_replicas) {
        struct step *s = ask(&replicas[i], t->id, "", cancel_it, 0);
        bool ended = s->code == DGM_TASK_NOT_CANCELABLE ||
                     (!s->code && dgm_state_is_terminal(s->snapshot->head.state));
        clear(s);
        if (ended)
            return;
    }
}

static void check_view(const struct step *view, const struct step *whole)
{
    uint64_t first = view->after + 1;
    for (size_t i = 0; i < view->n; i++) {
        const dgm_record *r = view->records[i];
        assert_int_equal(r->head.seq, first + i);
        assert_true(r->head.seq <= whole->n);
        if (!dgm_str_eq(dgm_record_bytes(r), dgm_record_bytes(whole->records[r->head.seq - 1])))
            fail_msg("record %llu of a reader is not that of the log",
                     (unsigned long long)r->head.seq);
    }
}

static void check_task(struct model_task *t)
{
    struct step *whole[MOST_REPLICAS];
    for (size_t i = 0; i < n_replicas; i++)
        whole[i] = read_whole(i, t);
    for (size_t i = 1; i < n_replicas; i++)
        check_same_records(whole[0], whole[i]);
    for (size_t i = 0; i < t->n_readers; i++) {
        wait_for_end(t->readers[i]);
        check_view(t->readers[i], whole[0]);
        clear(t->readers[i]);
    }
    for (size_t m = 0; m < t->n_accepted; m++) {
        char key[40];
        size_t n = 0;
        snprintf(key, sizeof key, "\"messageId\":\"%s\"", t->accepted[m]);
        for (size_t i = 0; i < whole[0]->n; i++) /* in a record of its own, or in the `task` */
            n += strstr(whole[0]->records[i]->bytes, key) != NULL;
        if (n != 1)
            fail_msg("message %s, which was accepted, is in the log %zu times", t->accepted[m], n);
    }
    if (t->is_canceled)
        assert_int_equal(whole[0]->records[whole[0]->n - 1]->head.state, DGM_STATE_CANCELED);
    for (size_t i = 0; i < n_replicas; i++)
        clear(whole[i]);
}

static void schedules_agree(void **state)
{
    const char *n = getenv("DGM_SCHEDULES");
    size_t n_schedules = n ? (size_t)atoi(n) : N_SCHEDULES;
    (void)state;
    for (size_t k = 0; k < n_schedules; k++) {
        seed = 0x9e3779b97f4a7c15u * (k + 1);
        n_tasks = n_messages = 0;
        start_replicas(2 + draw(2));
        agents_resume = draw(4) != 0;
        agents_accept = true; /* no message waits for a run that only this thread can end */
        for (size_t i = 0; i < N_STEPS; i++)
            model_step();
        for (size_t i = 0; i < n_tasks; i++)
            end_task(&model[i]);
        for (size_t i = 0; i < n_tasks; i++)
            check_task(&model[i]);
        stop_replicas();
    }
}

DGM_TEST_MAIN(dgm_test(schedules_agree))
