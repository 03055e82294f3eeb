/*
 * backend/exec/exec_emitted.c - the texts that a run in mode: worker has emitted, for the case that its process is lost.
 *
 * The next process gets them in `currentTask`, so that it can go on where the first one stopped instead of sending the text
 * again. Pieces are in the run's arena. A run with more than DGM_MAX_FINAL_TEXT_BYTES stores none: its artifact starts again.
 */
#include "backend/exec/exec_int.h"
#include "base/limits.h"

struct exec_piece {
    struct exec_piece *next;
    dgm_str text;
};

struct exec_emitted_text {
    struct exec_emitted_text *next;
    dgm_str id;
    bool continues; /* a text that an earlier process of the server emitted */
    struct exec_piece *first, **end;
    size_t n;
};

static struct exec_emitted_text *emitted_text_of(struct exec_emitted *e, dgm_arena *a, dgm_str id,
                                                 bool append)
{
    struct exec_emitted_text **at = &e->texts;
    while (*at && !dgm_str_eq((*at)->id, id))
        at = &(*at)->next;
    if (!*at) {
        *at = dgm_new(a, struct exec_emitted_text);
        (*at)->id = dgm_arena_dup(a, id);
        (*at)->continues = append;
        (*at)->end = &(*at)->first;
    }
    return *at;
}

void dgm_exec_emitted_note(struct exec_emitted *e, dgm_arena *a, const dgm_artifact_update *u)
{
    bool append = u->append == DGM_TRUE;
    for (size_t i = 0; i < u->artifact.parts.n; i++) {
        if (u->artifact.parts.at[i].kind != DGM_PART_TEXT)
            return;
    }
    struct exec_emitted_text *t = emitted_text_of(e, a, u->artifact.artifact_id, append);
    if (!append) {
        t->continues = false;
        t->first = NULL;
        t->end = &t->first;
        t->n = 0;
    }
    for (size_t i = 0; i < u->artifact.parts.n && !e->is_over; i++) {
        dgm_str text = u->artifact.parts.at[i].content;
        e->bytes += text.n;
        e->is_over = e->bytes > DGM_MAX_FINAL_TEXT_BYTES;
        if (!text.n || e->is_over)
            continue;
        *t->end = dgm_new(a, struct exec_piece);
        (*t->end)->text = dgm_arena_dup(a, text);
        t->end = &(*t->end)->next;
        t->n += text.n;
    }
}

/* The text of an artifact that is only text. */
static dgm_str emitted_before(const dgm_task *task, dgm_str id, dgm_arena *a)
{
    for (size_t i = 0; task && i < task->artifacts.n; i++) {
        if (dgm_str_eq(task->artifacts.at[i].artifact_id, id))
            return dgm_parts_text(task->artifacts.at[i].parts, a);
    }
    return DGM_STR("");
}

static dgm_artifact emitted_artifact(const struct exec_emitted_text *t, const dgm_task *before,
                                     dgm_arena *a)
{
    dgm_str old = t->continues ? emitted_before(before, t->id, a) : DGM_STR("");
    char *text = dgm_arena_alloc_raw(a, old.n + t->n + 1);
    size_t n = old.n;
    dgm_part *part = dgm_new(a, dgm_part);
    if (old.n)
        memcpy(text, old.p, old.n);
    for (const struct exec_piece *p = t->first; p; p = p->next) {
        memcpy(text + n, p->text.p, p->text.n);
        n += p->text.n;
    }
    *part = (dgm_part){.kind = DGM_PART_TEXT, .content = {text, n}};
    return (dgm_artifact){.artifact_id = t->id, .parts = {part, 1}};
}

static bool emitted_has(const struct exec_emitted *e, dgm_str id)
{
    const struct exec_emitted_text *t = e->texts;
    while (t && !dgm_str_eq(t->id, id))
        t = t->next;
    return t;
}

const dgm_task *dgm_exec_emitted_task(const struct exec_emitted *e, const dgm_run_input *in,
                                      dgm_arena *a)
{
    size_t n = in->task ? in->task->artifacts.n : 0, used = 0;
    if (!e->texts || e->is_over)
        return in->task;
    dgm_task *task = dgm_new(a, dgm_task);
    if (in->task)
        *task = *in->task;
    task->id = in->task_id;
    task->context_id = in->context_id;
    task->status = (dgm_status){.state = DGM_STATE_WORKING};
    for (const struct exec_emitted_text *t = e->texts; t; t = t->next)
        n++;
    dgm_artifact *artifacts = dgm_new_n(a, dgm_artifact, n);
    for (size_t i = 0; in->task && i < in->task->artifacts.n; i++) {
        if (!emitted_has(e, in->task->artifacts.at[i].artifact_id))
            artifacts[used++] = in->task->artifacts.at[i];
    }
    for (const struct exec_emitted_text *t = e->texts; t; t = t->next)
        artifacts[used++] = emitted_artifact(t, in->task, a);
    task->artifacts = (dgm_artifacts){artifacts, used};
    return task;
}
