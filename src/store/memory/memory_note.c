/* store/memory/memory_note.c - notes: texts by (owner, kind, name). */
#include "base/limits.h"
#include "store/memory/memory_int.h"

#include <stdlib.h>

static uint64_t note_hash(const dgm_note *n)
{
    dgm_str key[] = {n->owner.tenant, n->owner.principal, n->kind, n->name};
    return dgm_hash_texts(6, key, 4);
}

static dgm_note note_of(const struct note *n)
{
    const char *principal = n->texts + n->tenant_n, *kind = principal + n->principal_n,
               *name = kind + n->kind_n;
    return (dgm_note){.owner = {{n->texts, n->tenant_n}, {principal, n->principal_n}},
                      .kind = {kind, n->kind_n},
                      .name = {name, n->name_n},
                      .text = {name + n->name_n, n->text_n},
                      .expires_ms = n->expires_ms};
}

static struct note *memory_note_find(const struct memory_store *s, const dgm_note *like)
{
    uint64_t hash = note_hash(like);
    for (dgm_table_node *at = dgm_table_first(&s->notes, hash); at; at = at->next) {
        struct note *n = (struct note *)at;
        dgm_note is = note_of(n);
        if (at->hash == hash && memory_same_owner(is.owner, like->owner) &&
            dgm_str_eq(is.kind, like->kind) && dgm_str_eq(is.name, like->name))
            return n;
    }
    return NULL;
}

static size_t bytes_of(const struct note *n)
{
    return sizeof *n + n->tenant_n + n->principal_n + n->kind_n + n->name_n + n->text_n;
}

static void drop(struct memory_store *s, struct note *n)
{
    *n->to_this = n->later;
    if (n->later)
        n->later->to_this = n->to_this;
    else
        s->last_note = n->to_this;
    dgm_table_remove(&s->notes, &n->node);
    s->note_bytes -= bytes_of(n);
    free(n);
}

static void memory_note_add(struct memory_store *s, const dgm_note *from)
{
    struct note *n = dgm_xmalloc(sizeof *n + from->owner.tenant.n + from->owner.principal.n +
                                 from->kind.n + from->name.n + from->text.n);
    char *at = n->texts;
    *n = (struct note){.to_this = s->last_note,
                       .expires_ms = from->expires_ms,
                       .tenant_n = (uint32_t)from->owner.tenant.n,
                       .principal_n = (uint32_t)from->owner.principal.n,
                       .kind_n = (uint32_t)from->kind.n,
                       .name_n = (uint32_t)from->name.n,
                       .text_n = (uint32_t)from->text.n};
    dgm_memory_put_text(&at, from->owner.tenant);
    dgm_memory_put_text(&at, from->owner.principal);
    dgm_memory_put_text(&at, from->kind);
    dgm_memory_put_text(&at, from->name);
    dgm_memory_put_text(&at, from->text);
    *s->last_note = n;
    s->last_note = &n->later;
    dgm_table_add(&s->notes, &n->node, note_hash(from));
    s->note_bytes += bytes_of(n);
}

void dgm_memory_put_note(struct memory_store *s, dgm_job *job)
{
    if ((job->code = dgm_memory_check_fence(s, &job->note.fence, &job->err)))
        return;
    struct note *old = memory_note_find(s, &job->note);
    if (old)
        drop(s, old);
    if (job->note.text.p)
        memory_note_add(s, &job->note);
    while (s->notes.n > DGM_MAX_MEMORY_NOTES || s->note_bytes > DGM_MAX_MEMORY_NOTE_BYTES)
        drop(s, s->first_note);
    s->stats.commits++;
}

void dgm_memory_get_note(struct memory_store *s, dgm_job *job)
{
    const struct note *n = memory_note_find(s, &job->note);
    if (n && !dgm_note_has_expired(n->expires_ms))
        job->got.note = dgm_arena_dup(dgm_job_arena(job), note_of(n).text);
}

void dgm_memory_drop_expired_notes(struct memory_store *s)
{
    for (struct note *n = s->first_note, *later; n; n = later) {
        later = n->later;
        if (dgm_note_has_expired(n->expires_ms))
            drop(s, n);
    }
}

void dgm_memory_drop_all_notes(struct memory_store *s)
{
    while (s->first_note)
        drop(s, s->first_note);
}
