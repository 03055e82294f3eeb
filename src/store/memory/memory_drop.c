/* store/memory/memory_drop.c - forgetting: the tasks that ended first, turns that are old, the rest. */
#include "base/limits.h"
#include "store/memory/memory_int.h"

#include <stdlib.h>

static void drop_caller(struct memory_store *s, struct caller *c)
{
    dgm_table_remove(&s->callers, &c->node);
    free(c);
}

static void drop_caller_of(struct memory_store *s, const struct task *t, const struct turn *turn)
{
    dgm_turn_row row = turn_row(turn);
    struct caller *c =
        dgm_memory_find_caller(s, task_owner(t), task_agent(t), row.protocol, row.caller_id);
    if (c && c->task == t && c->turn == turn->turn)
        drop_caller(s, c);
}

void dgm_memory_drop_message(struct memory_store *s, struct taken *d, enum taken_by by)
{
    dgm_table_remove(&s->taken[by], &d->keys[by].node);
    d->has[by] = false;
    if (d->has[BY_CONTEXT] || d->has[BY_NONE])
        return;
    *d->to_this = d->next;
    if (d->next)
        d->next->to_this = d->to_this;
    free(d);
}

void dgm_memory_drop_calls(struct memory_store *s, struct asked *a)
{
    dgm_table_remove(&s->asked, &a->node);
    *a->to_this = a->next;
    if (a->next)
        a->next->to_this = a->to_this;
    s->bytes -= sizeof *a + a->call_id_n;
    free(a);
}

static void drop_all_asked(struct memory_store *s, struct task *t)
{
    while (t->asked)
        dgm_memory_drop_calls(s, t->asked);
}

static void free_task(struct task *t)
{
    for (size_t i = 0; i < t->n_records; i++)
        dgm_record_unref(t->records[i]);
    for (struct turn *turn = t->turns, *next; turn; turn = next) {
        next = turn->next;
        free(turn);
    }
    if (t->records != t->first_records)
        free(t->records);
    free(t->folded);
    free(t);
}

/* ---- tasks that ended ---------------------------------------------------------------------------------- */

void dgm_memory_note_end(struct memory_store *s, struct task *t)
{
    if (t->to_this || !dgm_state_is_terminal(t->state))
        return;
    t->to_this = s->last_ended;
    *s->last_ended = t;
    s->last_ended = &t->later;
}

static void drop_all_taken(struct memory_store *s, struct task *t)
{
    for (struct taken *d = t->taken, *next; d; d = next) {
        next = d->next;
        for (size_t by = 0; by < N_TAKEN_KEYS; by++) {
            if (d->has[by])
                dgm_table_remove(&s->taken[by], &d->keys[by].node);
        }
        free(d);
    }
    t->taken = NULL;
}

static void memory_drop_forget(struct memory_store *s, struct task *t) /* one that has ended */
{
    *t->to_this = t->later;
    if (t->later)
        t->later->to_this = t->to_this;
    else
        s->last_ended = t->to_this;
    drop_all_taken(s, t);
    drop_all_asked(s, t);
    for (const struct turn *turn = t->turns; turn; turn = turn->next)
        drop_caller_of(s, t, turn);
    for (size_t i = 0; i < t->n_records; i++)
        s->bytes -= t->records[i]->n;
    s->bytes -= t->folded_n;
    dgm_table_remove(&s->tasks, &t->node);
    dgm_table_remove(&s->contexts, &t->in_context);
    free_task(t);
}

void dgm_memory_delete_some(struct memory_store *s)
{
    /* the one that ended last may still be written to */
    while (s->first_ended && s->first_ended->later &&
           (s->tasks.n > DGM_MAX_MEMORY_TASKS || s->bytes > DGM_MAX_MEMORY_BYTES))
        memory_drop_forget(s, s->first_ended);
}

void dgm_memory_delete_all(struct memory_store *s)
{
    for (size_t i = 0; i < s->callers.cap; i++) {
        while (s->callers.slots[i])
            drop_caller(s, (struct caller *)s->callers.slots[i]);
    }
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (dgm_table_node *at = s->tasks.slots[i], *next; at; at = next) {
            next = at->next;
            drop_all_taken(s, (struct task *)at);
            drop_all_asked(s, (struct task *)at);
            free_task((struct task *)at);
        }
    }
    dgm_memory_drop_all_notes(s);
    dgm_memory_drop_all_threads(s);
    dgm_table_done(&s->callers);
    dgm_table_done(&s->tasks);
    dgm_table_done(&s->contexts);
    dgm_table_done(&s->asked);
    dgm_table_done(&s->notes);
    for (size_t by = 0; by < N_TAKEN_KEYS; by++)
        dgm_table_done(&s->taken[by]);
}

/* ---- what is old ----------------------------------------------------------------------------------------- */

static bool is_emptied(const struct turn *t)
{
    return t->last_seq && t->first_seq > t->last_seq;
}

/* Only its number is left, and that only while there is no later one. */
static void empty_first_turn(struct memory_store *s, struct task *t)
{
    struct turn *turn = t->turns;
    uint32_t last = turn->last_seq, gone = last - t->first + 1;
    for (size_t i = 0; i < gone; i++) {
        s->bytes -= t->records[i]->n;
        dgm_record_unref(t->records[i]);
    }
    memmove(t->records, t->records + gone, (t->n_records - gone) * sizeof(dgm_record *));
    t->n_records -= gone;
    t->first = last + 1;
    drop_caller_of(s, t, turn);
    dgm_turn_row left = {.turn = turn->turn, .first_seq = last + 1, .last_seq = last};
    t->turns = dgm_memory_add_turn(&left);
    t->turns->next = turn->next;
    free(turn);
}

/* The first turns of a log, as long as they are finished, old enough, and in the folded Task. */
static void trim_task(struct memory_store *s, struct task *t, int64_t older_than_ms)
{
    struct turn *turn;
    while ((turn = t->turns)) {
        uint32_t last = turn->last_seq;
        if (!is_emptied(turn)) {
            if (last == 0 || last > t->folded_seq || last - t->first >= t->n_records ||
                t->records[last - t->first]->head.time >= older_than_ms)
                return;
            empty_first_turn(s, t);
            turn = t->turns;
        }
        if (!turn->next)
            return;
        t->turns = turn->next;
        free(turn);
    }
}

static void drop_expired(struct memory_store *s, enum taken_by by, int64_t now)
{
    const dgm_table *t = &s->taken[by];
    for (size_t i = 0; i < t->cap; i++) {
        for (dgm_table_node *at = t->slots[i], *next; at; at = next) {
            struct taken *d = taken_of(at, by);
            next = at->next;
            if (d->keys[by].expires_ms && d->keys[by].expires_ms <= now)
                dgm_memory_drop_message(s, d, by);
        }
    }
}

void dgm_memory_trim(struct memory_store *s, dgm_job *job)
{
    int64_t now = dgm_loop_unix_ms();
    for (struct task *t = s->first_ended, *later; t; t = later) {
        later = t->later;
        if (t->status_ms < job->trim.keep.tasks_before_ms)
            memory_drop_forget(s, t);
    }
    for (size_t i = 0; i < s->tasks.cap; i++) {
        for (dgm_table_node *at = s->tasks.slots[i]; at; at = at->next)
            trim_task(s, (struct task *)at, job->trim.keep.turns_before_ms);
    }
    drop_expired(s, BY_CONTEXT, now);
    drop_expired(s, BY_NONE, now);
    dgm_memory_drop_expired_notes(s);
    dgm_memory_drop_old_threads(s, job->trim.keep.tasks_before_ms);
}
