/*
 * store/sqlite/sqlite_migrate.c - version 4: folded Tasks as the fold makes them now.
 *
 * Earlier versions moved every status message to the history: progress texts and unmarked deltas became
 * messages of the agent. They are recognised by what they lack: the server marked every other message with
 * its canonical_type. Two more kinds have no mark, and belong to the conversation: messages that the
 * agent put into the history itself (an internal `message`, the history of a snapshot). The log shows which
 * these are. If it was trimmed, a message without a mark is taken for progress.
 *
 * What else changes: the calls and results in a history get their mark, neighbouring texts of an artifact
 * become one part, a failed status gets its reason as a message. Logs stay as they are: they hold what was
 * sent. A folded Task that cannot be read stays as it is, too; `dragoman db check` reports it.
 */
#include "base/ids.h"
#include "base/map.h"
#include "model/calls.h"
#include "model/fold.h"
#include "model/stamp.h"
#include "sqlite_int.h"

struct folds_migration {
    sqlite3_stmt *next, *log, *update;
    dgm_arena *arena, *per_record; /* emptied after each Task, after each record */
    dgm_buf scratch;
};

/* ---- what the log knows about messages --------------------------------------------------------------------- */

/* The strongest counts: a snapshot repeats what a status showed; an internal message is never progress. */
enum { IN_SNAPSHOT = 1, IN_STATUS, IN_INTERNAL };

static void note_message(struct folds_migration *m, dgm_map *origins, dgm_str id, size_t origin)
{
    size_t *known = dgm_map_get(origins, id);
    if (!known)
        dgm_map_put(origins, dgm_arena_dup(m->arena, id), origin);
    else if (*known < origin)
        *known = origin;
}

static void note_event(struct folds_migration *m, dgm_map *origins, const dgm_event *e)
{
    if (e->kind == DGM_EVENT_INTERNAL && e->internal->message)
        note_message(m, origins, e->internal->message->message_id, IN_INTERNAL);
    if (e->kind == DGM_EVENT_STATUS && e->status->status.message)
        note_message(m, origins, e->status->status.message->message_id, IN_STATUS);
    for (size_t i = 0; e->kind == DGM_EVENT_TASK && i < e->task->history.n; i++)
        note_message(m, origins, e->task->history.at[i].message_id, IN_SNAPSHOT);
}

static void note_record(struct folds_migration *m, dgm_map *origins, const dgm_frame *f)
{
    dgm_record *record;
    dgm_event event;
    if (f->head.kind == DGM_EVENT_ARTIFACT ||
        dgm_record_from_bytes(f->head, f->bytes, &record, NULL))
        return;
    if (!dgm_record_event(record, m->per_record, &event, NULL))
        note_event(m, origins, &event);
    dgm_record_unref(record);
    dgm_arena_reset(m->per_record);
}

static int note_log(struct folds_migration *m, int64_t task, dgm_map *origins)
{
    int rc;
    sqlite3_reset(m->log);
    sqlite3_bind_int64(m->log, 1, task << 32);
    sqlite3_bind_int64(m->log, 2, (task + 1) << 32);
    while ((rc = sqlite3_step(m->log)) == SQLITE_ROW) {
        dgm_frame f;
        if (!dgm_frame_open(dgm_column_str(m->log, 0), 1, &f))
            continue;
        while (dgm_frame_next(&f))
            note_record(m, origins, &f);
    }
    sqlite3_reset(m->log);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- one Task ------------------------------------------------------------------------------------------------ */

static bool is_unmarked(const dgm_message *m)
{
    return m->role == DGM_ROLE_AGENT && !dgm_metadata_has_type(m->metadata);
}

static int migrate_history(struct folds_migration *m, int64_t number, dgm_task *task)
{
    dgm_messages *h = &task->history;
    size_t n = 0, unmarked = 0;
    dgm_map origins;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < h->n; i++)
        unmarked += is_unmarked(&h->at[i]);
    if (!unmarked)
        return SQLITE_OK;
    dgm_map_init(&origins);
    rc = note_log(m, number, &origins);
    for (size_t i = 0; i < h->n; i++) {
        dgm_message *x = &h->at[i];
        bool stays = true;
        if (is_unmarked(x)) {
            const size_t *origin = dgm_map_get(&origins, x->message_id);
            stays = origin && *origin != IN_STATUS;
            if (!stays && (dgm_message_has(x, DGM_CALLS) || dgm_message_has(x, DGM_RESULTS))) {
                dgm_message_drop_progress(x);
                stays = true;
            }
            dgm_message_stamp(m->arena, x);
        }
        if (stays)
            h->at[n++] = *x;
    }
    h->n = n;
    dgm_map_done(&origins);
    return rc;
}

static void migrate_failure(struct folds_migration *m, dgm_task *task)
{
    dgm_str why = dgm_metadata_error(task->metadata);
    if (task->status.state != DGM_STATE_FAILED || task->status.message || !why.n)
        return;
    dgm_message *x = dgm_error_message(m->arena, why);
    x->message_id = dgm_uuid7_in(m->arena);
    x->context_id = task->context_id;
    x->task_id = task->id;
    task->status.message = x;
}

static int update_fold(struct folds_migration *m, int64_t number, dgm_str body)
{
    sqlite3_reset(m->update);
    sqlite3_bind_int64(m->update, 1, number);
    sqlite3_bind_blob64(m->update, 2, body.p, body.n, SQLITE_STATIC);
    int rc = sqlite3_step(m->update);
    sqlite3_reset(m->update);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int migrate_fold(struct folds_migration *m, int64_t number, dgm_str body)
{
    dgm_record_head head = {.kind = DGM_EVENT_TASK};
    dgm_auto(dgm_record_unref) dgm_record *old = NULL, *new = NULL;
    dgm_event event;
    int rc;
    if (dgm_record_from_bytes(head, body, &old, NULL) ||
        dgm_record_event(old, m->arena, &event, NULL) || event.kind != DGM_EVENT_TASK)
        return SQLITE_OK;
    if ((rc = migrate_history(m, number, event.task)))
        return rc;
    migrate_failure(m, event.task);
    dgm_auto(dgm_fold_free) dgm_fold *fold =
        dgm_fold_new((dgm_fold_options){.foreign = true, .keep_transitory = true});
    if (dgm_fold_add(fold, &event, DGM_BY_SERVER, NULL))
        return SQLITE_OK;
    event.task = (dgm_task *)(uintptr_t)dgm_fold_task(fold);
    if (dgm_record_new(&event, head, &m->scratch, &new, NULL) ||
        dgm_str_eq(dgm_record_bytes(new), body))
        return SQLITE_OK;
    return update_fold(m, number, dgm_record_bytes(new));
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

static int migrate_each(struct folds_migration *m)
{
    int64_t number = 0;
    int rc = SQLITE_OK;
    for (;;) {
        sqlite3_reset(m->next);
        sqlite3_bind_int64(m->next, 1, number);
        int step = sqlite3_step(m->next);
        if (step != SQLITE_ROW)
            return step == SQLITE_DONE ? SQLITE_OK : step;
        number = sqlite3_column_int64(m->next, 0);
        dgm_str body = dgm_arena_dup(m->arena, dgm_column_str(m->next, 1));
        sqlite3_reset(m->next);
        if ((rc = migrate_fold(m, number, body)))
            return rc;
        dgm_arena_reset(m->arena);
    }
}

int dgm_schema_migrate_folds(dgm_conn *c)
{
    struct folds_migration m = {.arena = dgm_arena_new(), .per_record = dgm_arena_new()};
    dgm_buf_init(&m.scratch, SIZE_MAX);
    int rc =
        sqlite3_prepare_v2(c->db, "SELECT task,body FROM folds WHERE task>?1 ORDER BY task LIMIT 1",
                           -1, &m.next, NULL);
    if (!rc)
        rc = sqlite3_prepare_v2(c->db, "SELECT bytes FROM log WHERE at>=?1 AND at<?2 ORDER BY at",
                                -1, &m.log, NULL);
    if (!rc)
        rc = sqlite3_prepare_v2(c->db, "UPDATE folds SET body=?2 WHERE task=?1", -1, &m.update,
                                NULL);
    if (!rc)
        rc = migrate_each(&m);
    sqlite3_finalize(m.next);
    sqlite3_finalize(m.log);
    sqlite3_finalize(m.update);
    dgm_buf_done(&m.scratch);
    dgm_arena_free(m.arena);
    dgm_arena_free(m.per_record);
    return rc;
}
