/* model/fold_keep.c - a Task that grows: copies, lists, metadata, garbage. */
#include "base/limits.h"
#include "model/fold_int.h"
#include "model/guard.h"
#include "model/stamp.h"
#include "json/json.h"
#include "json/shape.h"

/* Up to so many are looked at one by one. */
#define FEW_MESSAGES 8
/* How many ids of messages that were shown and not stored are remembered: an agent that reports progress
 * for an hour, every four seconds. */
#define PASSED_IDS 1024

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Room for one more entry. From `first` on lists double. */
static void *grow(dgm_fold *f, uint32_t first, void *list, size_t n, uint32_t *cap, size_t size)
{
    if (n < *cap)
        return list;
    *cap = *cap ? *cap * 2 : first;
    f->cost.moved += n * size;
    return dgm_xrealloc(list, *cap * size);
}

static dgm_strs copy_strs(dgm_arena *a, dgm_strs from)
{
    if (!from.at)
        return (dgm_strs){0};
    dgm_strs to = {dgm_new_n(a, dgm_str, from.n), from.n};
    for (size_t i = 0; i < from.n; i++)
        to.at[i] = dgm_arena_dup(a, from.at[i]);
    return to;
}

static const dgm_extra *copy_extra(dgm_arena *a, const dgm_extra *from)
{
    if (!from)
        return NULL;
    dgm_extra *to = dgm_new(a, dgm_extra);
    *to = (dgm_extra){from->format, dgm_new_n(a, dgm_member, from->n), from->n};
    for (size_t i = 0; i < from->n; i++)
        to->at[i] =
            (dgm_member){dgm_arena_dup(a, from->at[i].key), dgm_json_copy(a, from->at[i].value)};
    return to;
}

static dgm_part copy_part(dgm_arena *a, const dgm_part *from)
{
    return (dgm_part){.kind = from->kind,
                      .content = dgm_arena_dup(a, from->content),
                      .data = dgm_json_copy(a, from->data),
                      .filename = dgm_arena_dup(a, from->filename),
                      .media_type = dgm_arena_dup(a, from->media_type),
                      .metadata = dgm_json_copy(a, from->metadata),
                      .extra = copy_extra(a, from->extra),
                      .nested_extra = copy_extra(a, from->nested_extra)};
}

dgm_message dgm_message_copy(dgm_arena *a, const dgm_message *from)
{
    dgm_message to = {.message_id = dgm_arena_dup(a, from->message_id),
                      .context_id = dgm_arena_dup(a, from->context_id),
                      .task_id = dgm_arena_dup(a, from->task_id),
                      .role = from->role,
                      .parts = {dgm_new_n(a, dgm_part, from->parts.n), from->parts.n},
                      .metadata = dgm_stamp_text(from->metadata).n
                                      ? from->metadata
                                      : dgm_json_copy(a, from->metadata),
                      .extensions = copy_strs(a, from->extensions),
                      .reference_task_ids = copy_strs(a, from->reference_task_ids),
                      .extra = copy_extra(a, from->extra)};
    for (size_t i = 0; i < from->parts.n; i++)
        to.parts.at[i] = copy_part(a, &from->parts.at[i]);
    return to;
}

/* Its messages name the task and its context, mostly: those are there once. */
static dgm_message keep_message(dgm_fold *f, const dgm_message *from)
{
    dgm_message bare = *from;
    bool in_context = from->context_id.n && dgm_str_eq(from->context_id, f->task.context_id);
    bool in_task = from->task_id.n && dgm_str_eq(from->task_id, f->task.id);
    if (in_context)
        bare.context_id = (dgm_str){0};
    if (in_task)
        bare.task_id = (dgm_str){0};
    bare = dgm_message_copy(f->arena, &bare);
    if (in_context)
        bare.context_id = f->task.context_id;
    if (in_task)
        bare.task_id = f->task.id;
    return bare;
}

/* Copies s over *to, unless it says the same already; returns how many bytes became garbage. */
static size_t replace_text(dgm_fold *f, dgm_str *to, dgm_str s)
{
    size_t old = to->n;
    if (!s.n || dgm_str_eq(*to, s))
        return 0;
    *to = dgm_arena_dup(f->arena, s);
    f->garbage += old;
    return old;
}

/* ---- metadata ------------------------------------------------------------------------------------------ */

/* NULL while the key is not there. */
static const dgm_json *member_of(const struct members *m, dgm_str key)
{
    size_t *i = dgm_map_get(&m->index, key);
    return i ? m->at[*i].value : NULL;
}

static void fold_keep_remove_member(dgm_fold *f, struct members *m, size_t at)
{
    f->garbage += m->bytes[at] + m->at[at].key.n;
    m->n--;
    memmove(&m->at[at], &m->at[at + 1], (m->n - at) * sizeof *m->at);
    memmove(&m->bytes[at], &m->bytes[at + 1], (m->n - at) * sizeof *m->bytes);
    dgm_map_done(&m->index); /* rare: a map cannot forget a key */
    dgm_map_init(&m->index);
    for (size_t i = 0; i < m->n; i++)
        dgm_map_put(&m->index, m->at[i].key, i);
}

static bool fold_keep_put_member(dgm_fold *f, struct members *m, dgm_str key, const dgm_json *value)
{
    size_t before = dgm_arena_used(f->arena), *found = dgm_map_get(&m->index, key);
    if (found && yyjson_is_null((yyjson_val *)(uintptr_t)value) &&
        !yyjson_is_null((yyjson_val *)(uintptr_t)m->at[*found].value)) {
        fold_keep_remove_member(f, m, *found);
        return true;
    }
    if (found) {
        if (dgm_json_same(m->at[*found].value, value))
            return false;
        f->garbage += m->bytes[*found];
        m->at[*found].value = dgm_json_copy(f->arena, value);
        m->bytes[*found] = (uint32_t)(dgm_arena_used(f->arena) - before);
        return true;
    }
    uint32_t cap = m->cap;
    m->at = grow(f, 6, m->at, m->n, &cap, sizeof *m->at);
    m->bytes = grow(f, 6, m->bytes, m->n, &m->cap, sizeof *m->bytes);
    dgm_str kept = dgm_arena_dup(f->arena, key);
    before = dgm_arena_used(f->arena);
    m->at[m->n] = (dgm_member){kept, dgm_json_copy(f->arena, value)};
    m->bytes[m->n] = (uint32_t)(dgm_arena_used(f->arena) - before);
    dgm_map_put(&m->index, kept, m->n++);
    return true;
}

void dgm_fold_merge(dgm_fold *f, struct members **at, const dgm_json *object, const dgm_at *guard)
{
    if (!yyjson_is_obj((yyjson_val *)(uintptr_t)object))
        return;
    bool changed = !*at;
    struct members *m = *at = *at ? *at : dgm_xcalloc(1, sizeof *m);
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)object);
    yyjson_val *k;
    while ((k = yyjson_obj_iter_next(&it))) {
        dgm_str key = dgm_json_str(k);
        const dgm_json *value = yyjson_obj_iter_get_val(k);
        if (!guard || !dgm_guard_is_servers(key))
            changed |= fold_keep_put_member(f, m, key, value);
        else if (!dgm_json_same(member_of(m, key), value))
            dgm_fold_warn(f, DGM_AT(guard, key),
                          "only the server may change this member: left as it was");
    }
    m->stale |= changed;
}

void dgm_fold_free_members(struct members *m)
{
    if (!m)
        return;
    free(m->at);
    free(m->bytes);
    dgm_map_done(&m->index);
    free(m);
}

static const dgm_json *object_of(dgm_fold *f, struct members *m)
{
    size_t before = dgm_arena_used(f->arena);
    f->garbage += m->object_bytes;
    const dgm_json *object = dgm_json_object(f->arena, m->at, m->n);
    m->object_bytes = dgm_arena_used(f->arena) - before;
    m->stale = false;
    f->cost.moved += m->object_bytes;
    return object;
}

/* ---- history ------------------------------------------------------------------------------------------- */

static void index_messages(dgm_fold *f)
{
    dgm_map *messages = &dgm_fold_rare(f)->messages;
    dgm_map_done(messages);
    for (size_t i = 0; i < f->task.history.n; i++)
        dgm_map_put(messages, f->task.history.at[i].message_id, i);
}

/* What m points to must live in our arena. */
static void push_message(dgm_fold *f, dgm_message m)
{
    dgm_messages *h = &f->task.history;
    h->at = grow(f, 1, h->at, h->n, &f->history_cap, sizeof *h->at); /* mostly one */
    h->at[h->n++] = m;
    if (f->rare->messages.n)
        dgm_map_put(&dgm_fold_rare(f)->messages, m.message_id, h->n - 1);
    else if (h->n > FEW_MESSAGES)
        index_messages(f);
}

size_t dgm_fold_find_message(const dgm_fold *f, dgm_str id)
{
    const dgm_messages *h = &f->task.history;
    if (f->rare->messages.n) {
        size_t *i = dgm_map_get(&f->rare->messages, id);
        return i ? *i : h->n;
    }
    for (size_t i = h->n; i-- > 0;) {
        if (dgm_str_eq(h->at[i].message_id, id))
            return i;
    }
    return h->n;
}

void dgm_fold_add_message(dgm_fold *f, const dgm_message *m)
{
    push_message(f, keep_message(f, m));
    f->cost.copied += sizeof *m;
}

static bool same_part(const dgm_part *a, const dgm_part *b)
{
    return a->kind == b->kind && dgm_str_eq(a->content, b->content) &&
           dgm_json_same(a->data, b->data) && dgm_str_eq(a->filename, b->filename) &&
           dgm_str_eq(a->media_type, b->media_type);
}

/* Is the last message of this id the same in role and parts? Ids alone do not tell: callers use one
 * for several messages. */
static bool in_history(const dgm_fold *f, const dgm_message *m)
{
    const dgm_message *h = dgm_fold_message(f, m->message_id);
    if (!h || h->role != m->role || h->parts.n != m->parts.n)
        return false;
    for (size_t k = 0; k < m->parts.n; k++) {
        if (!same_part(&h->parts.at[k], &m->parts.at[k]))
            return false;
    }
    return true;
}

/* The newest ids of messages that were shown and not stored, as hashes. A later snapshot of the agent may
 * have these messages in its history: they do not enter ours. */
static uint64_t hash_of_id(dgm_str id)
{
    return dgm_hash(0, id.p, id.n);
}

static void remember_passed(dgm_fold *f, dgm_str id)
{
    if (!id.n)
        return;
    struct rare *x = dgm_fold_rare(f);
    if (x->n_passed < PASSED_IDS)
        x->passed = grow(f, 6, x->passed, x->n_passed, &x->passed_cap, sizeof *x->passed);
    x->passed[x->n_passed++ % PASSED_IDS] = hash_of_id(id);
}

bool dgm_fold_has_passed(const dgm_fold *f, const dgm_message *m)
{
    size_t n = f->rare->n_passed < PASSED_IDS ? f->rare->n_passed : PASSED_IDS;
    uint64_t hash = m->role == DGM_ROLE_AGENT && m->message_id.n ? hash_of_id(m->message_id) : 0;
    for (size_t i = 0; hash && i < n; i++) {
        if (f->rare->passed[i] == hash)
            return true;
    }
    return false;
}

void dgm_fold_drop_status_message(dgm_fold *f)
{
    f->garbage += f->message_bytes;
    f->message_bytes = 0;
    f->task.status.message = NULL;
}

void dgm_fold_retire_status_message(dgm_fold *f)
{
    dgm_message *m = f->task.status.message;
    dgm_status_content content = dgm_status_content_of(f->task.status.state, m);
    if (content == DGM_STATUS_CALLS)
        dgm_message_drop_progress(m);
    if (content != DGM_STATUS_PASSING && !in_history(f, m)) {
        push_message(f, *m);
        f->message_bytes = sizeof *m;
    } else if (content == DGM_STATUS_PASSING) {
        remember_passed(f, m->message_id);
    }
    dgm_fold_drop_status_message(f);
}

void dgm_fold_set_status(dgm_fold *f, const dgm_status *s)
{
    const dgm_message *old = f->task.status.message;
    if (old && !s->message && s->state == f->task.status.state && dgm_state_is_terminal(s->state))
        return; /* a last snapshot leaves the message out: it stays */
    if (old && s->message && dgm_str_eq(old->message_id, s->message->message_id))
        dgm_fold_drop_status_message(f); /* this is its newer version */
    else if (old)
        dgm_fold_retire_status_message(f);
    f->garbage += f->status_extra_bytes;
    size_t before = dgm_arena_used(f->arena);
    f->task.status = (dgm_status){.state = s->state,
                                  .timestamp = f->task.status.timestamp,
                                  .extra = copy_extra(f->arena, s->extra)};
    f->status_extra_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
    dgm_str *time = &f->task.status.timestamp;
    if (s->timestamp.n && s->timestamp.n == time->n) { /* all of a log are of one length */
        memcpy((char *)(uintptr_t)time->p, s->timestamp.p, time->n);
    } else {
        f->garbage += time->n;
        *time = dgm_arena_dup(f->arena, s->timestamp);
    }
    if (s->message) {
        before = dgm_arena_used(f->arena);
        f->task.status.message = dgm_new(f->arena, dgm_message);
        *f->task.status.message = keep_message(f, s->message);
        f->message_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
    }
}

/* ---- parts of artifacts ------------------------------------------------------------------------------------ */

/* Neighbouring texts are one part, however many chunks they came in. */
static bool are_one_text(const dgm_part *a, const dgm_part *b)
{
    return a->kind == DGM_PART_TEXT && b->kind == DGM_PART_TEXT &&
           dgm_str_eq(a->filename, b->filename) && dgm_str_eq(a->media_type, b->media_type) &&
           (a->metadata == b->metadata || dgm_json_same(a->metadata, b->metadata)) && !a->extra &&
           !b->extra && !a->nested_extra && !b->nested_extra;
}

/* Chunks of one file: each has its number in its metadata (document 003: emit_file with append). */
static bool are_one_file(const dgm_part *a, const dgm_part *b)
{
    int64_t first, second;
    return a->kind == DGM_PART_RAW && b->kind == DGM_PART_RAW &&
           dgm_str_eq(a->filename, b->filename) && dgm_str_eq(a->media_type, b->media_type) &&
           dgm_json_int(dgm_json_get(a->metadata, DGM_STR(DGM_PART_CHUNK)), &first) &&
           dgm_json_int(dgm_json_get(b->metadata, DGM_STR(DGM_PART_CHUNK)), &second) &&
           second > first;
}

/* A chunk that only closes an artifact: A2A wants a part in every update. */
static bool is_empty_text(const dgm_part *p)
{
    return p->kind == DGM_PART_TEXT && !p->content.n && !p->filename.n && !p->media_type.n &&
           !p->metadata && !p->extra && !p->nested_extra;
}

/* Room for a text of cap bytes that starts with `text`; NUL-terminated as all texts are. */
static dgm_str copy_with_room(dgm_fold *f, dgm_str text, size_t cap)
{
    char *to = dgm_arena_alloc_raw(f->arena, cap + 1);
    memcpy(to, text.p, text.n);
    to[text.n] = 0;
    return (dgm_str){to, text.n};
}

/* The last text of an artifact grows in place; when its room is full it gets twice as much. So a byte is
 * moved once or twice however long the text becomes. */
static void join_text(dgm_fold *f, struct slot *slot, dgm_str *text, dgm_str more)
{
    size_t n = text->n + more.n, room = slot->text_cap ? slot->text_cap : text->n;
    if (n > room) {
        size_t before = dgm_arena_used(f->arena);
        *text = copy_with_room(f, *text, 2 * n);
        slot->text_cap = 2 * n;
        slot->bytes -= room;
        f->garbage += room;
        f->cost.moved += text->n;
        f->grown += dgm_arena_used(f->arena) - before;
    }
    char *to = (char *)(uintptr_t)text->p;
    memcpy(to + text->n, more.p, more.n);
    to[n] = 0;
    text->n = n;
    f->cost.copied += more.n;
}

/* ---- artifacts ------------------------------------------------------------------------------------------- */

static void mark_stale(dgm_fold *f, size_t i)
{
    if (f->slots[i].queued)
        return;
    f->slots[i].queued = true;
    struct rare *x = dgm_fold_rare(f);
    x->stale = grow(f, 6, x->stale, x->n_stale, &x->stale_cap, sizeof *x->stale);
    x->stale[x->n_stale++] = (uint32_t)i;
}

size_t dgm_fold_open_artifact(dgm_fold *f, dgm_str id)
{
    dgm_artifacts *list = &f->task.artifacts;
    uint32_t cap = f->artifacts_cap;
    list->at = grow(f, 6, list->at, list->n, &cap, sizeof *list->at);
    f->slots = grow(f, 6, f->slots, list->n, &f->artifacts_cap, sizeof *f->slots);
    size_t i = list->n++;
    list->at[i] = (dgm_artifact){.artifact_id = dgm_arena_dup(f->arena, id)};
    f->slots[i] = (struct slot){0};
    dgm_map_put(&f->artifacts, list->at[i].artifact_id, i);
    return i;
}

void dgm_fold_clear_artifact(dgm_fold *f, size_t i)
{
    dgm_artifact *x = &f->task.artifacts.at[i];
    f->garbage += f->slots[i].bytes + f->slots[i].extra_bytes;
    f->slots[i].bytes = f->slots[i].extra_bytes = f->slots[i].text_cap = 0;
    struct members *m = dgm_take(f->slots[i].metadata);
    for (size_t k = 0; m && k < m->n; k++)
        f->garbage += m->bytes[k] + m->at[k].key.n;
    f->garbage += m ? m->object_bytes : 0;
    dgm_fold_free_members(m);
    dgm_map_done(&f->slots[i].extensions);
    *x = (dgm_artifact){.artifact_id = x->artifact_id,
                        .parts = {x->parts.at, 0},
                        .extensions = {x->extensions.at, 0}};
}

void dgm_fold_add_to_artifact(dgm_fold *f, size_t i, const dgm_artifact *from)
{
    dgm_artifact *x = &f->task.artifacts.at[i];
    struct slot *slot = &f->slots[i];
    size_t before = dgm_arena_used(f->arena);
    slot->bytes -= replace_text(f, &x->name, from->name);
    slot->bytes -= replace_text(f, &x->description, from->description);
    bool is_append = x->parts.n > 0;
    for (size_t k = 0; k < from->parts.n; k++) {
        const dgm_part *part = &from->parts.at[k];
        dgm_part *last = x->parts.n ? &x->parts.at[x->parts.n - 1] : NULL;
        if (is_append && is_empty_text(part))
            continue;
        if (last && are_one_text(last, part)) {
            if (part->content.n)
                join_text(f, slot, &last->content, part->content);
            continue;
        }
        if (last && are_one_file(last, part)) {
            dgm_str more;
            dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
            size_t stays = dgm_base64_join(scratch, last->content, part->content, &more);
            slot->text_cap = slot->text_cap ? slot->text_cap : last->content.n;
            last->content.n = stays;
            join_text(f, slot, &last->content, more);
            continue;
        }
        x->parts.at = grow(f, 1, x->parts.at, x->parts.n, &slot->parts_cap, sizeof *x->parts.at);
        x->parts.at[x->parts.n++] = copy_part(f->arena, part);
        slot->text_cap = 0;
        f->cost.copied += sizeof *x->parts.at;
    }
    for (size_t k = 0; k < from->extensions.n; k++) {
        if (dgm_map_get(&slot->extensions, from->extensions.at[k]))
            continue;
        dgm_str name = dgm_arena_dup(f->arena, from->extensions.at[k]);
        x->extensions.at = grow(f, 6, x->extensions.at, x->extensions.n, &slot->extensions_cap,
                                sizeof *x->extensions.at);
        dgm_map_put(&slot->extensions, name, x->extensions.n);
        x->extensions.at[x->extensions.n++] = name;
    }
    slot->bytes += dgm_arena_used(f->arena) - before;
    if (from->extra) { /* the meaning of unknown members is not known, so they are not merged: the newest count */
        f->garbage += slot->extra_bytes;
        before = dgm_arena_used(f->arena);
        x->extra = copy_extra(f->arena, from->extra);
        slot->extra_bytes = dgm_arena_used(f->arena) - before;
    }
    if (from->metadata)
        dgm_fold_merge(f, &slot->metadata, from->metadata, NULL);
    if (slot->metadata && slot->metadata->stale)
        mark_stale(f, i);
}

bool dgm_fold_add_next_chunk(dgm_fold *f, const dgm_artifact_update *u)
{
    dgm_str id = u->artifact.artifact_id, text = u->artifact.parts.at->content;
    bool is_last = u->last_chunk == DGM_TRUE;
    if (u->append != DGM_TRUE || !id.n || !f->task.context_id.n ||
        dgm_state_is_terminal(f->task.status.state))
        return false;
    if (!f->keep_transitory && dgm_str_is(id, DGM_STREAM_DELTA_ID)) {
        if (!f->delta.open || f->delta.sealed)
            return false;
        f->delta.sealed = is_last;
        return true;
    }
    if (!f->task.artifacts.n)
        return false;
    const dgm_artifact *x = &f->task.artifacts.at[f->task.artifacts.n - 1];
    struct slot *slot = &f->slots[f->task.artifacts.n - 1];
    if (slot->sealed || !x->parts.n || x->parts.n >= DGM_MAX_LIST_ITEMS ||
        !dgm_str_eq(x->artifact_id, id))
        return false;
    dgm_part *last = &x->parts.at[x->parts.n - 1];
    if (last->kind != DGM_PART_TEXT || last->filename.n || last->media_type.n || last->metadata ||
        last->extra || last->nested_extra)
        return false;
    size_t before = dgm_arena_used(f->arena);
    if (text.n)
        join_text(f, slot, &last->content, text);
    slot->bytes += dgm_arena_used(f->arena) - before;
    slot->sealed = is_last;
    if (f->garbage >= DGM_FOLD_GARBAGE_FLOOR)
        dgm_fold_tidy(f);
    return true;
}

/* ---- the task itself ------------------------------------------------------------------------------------ */

void dgm_fold_learn_ids(dgm_fold *f, dgm_str task_id, dgm_str context_id)
{
    if (!f->has_task) {
        f->has_lent_id = f->has_lent_id && dgm_str_eq(f->task.id, task_id);
        if (!f->has_lent_id)
            f->task.id = dgm_arena_dup(f->arena, task_id);
    }
    if (!f->has_task || (!f->task.context_id.n && context_id.n)) {
        f->has_lent_context = f->has_lent_context && dgm_str_eq(f->task.context_id, context_id);
        if (!f->has_lent_context)
            f->task.context_id = dgm_arena_dup(f->arena, context_id);
    }
    f->has_task = true;
}

void dgm_fold_set_extra(dgm_fold *f, const dgm_extra *extra)
{
    size_t before = dgm_arena_used(f->arena);
    f->garbage += f->extra_bytes;
    f->task.extra = copy_extra(f->arena, extra);
    f->extra_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
}

/* ---- tidying up ---------------------------------------------------------------------------------------------- */

static void move_members(dgm_fold *f, struct members *m)
{
    if (!m)
        return;
    dgm_map_done(&m->index);
    for (size_t i = 0; i < m->n; i++) {
        dgm_str key = dgm_arena_dup(f->arena, m->at[i].key);
        size_t before = dgm_arena_used(f->arena);
        m->at[i] = (dgm_member){key, dgm_json_copy(f->arena, m->at[i].value)};
        m->bytes[i] = (uint32_t)(dgm_arena_used(f->arena) - before);
        dgm_map_put(&m->index, key, i);
    }
    m->object_bytes = 0;
    m->stale = true;
}

static void move_artifact(dgm_fold *f, size_t i)
{
    dgm_artifact *x = &f->task.artifacts.at[i];
    struct slot *slot = &f->slots[i];
    x->artifact_id = dgm_arena_dup(f->arena, x->artifact_id);
    dgm_map_put(&f->artifacts, x->artifact_id, i);
    size_t before = dgm_arena_used(f->arena);
    x->name = dgm_arena_dup(f->arena, x->name);
    x->description = dgm_arena_dup(f->arena, x->description);
    for (size_t k = 0; k < x->parts.n; k++) {
        dgm_str text = x->parts.at[k].content;
        bool grows = k + 1 == x->parts.n && slot->text_cap && !slot->sealed;
        if (grows)
            x->parts.at[k].content = (dgm_str){0};
        x->parts.at[k] = copy_part(f->arena, &x->parts.at[k]);
        if (grows)
            x->parts.at[k].content = copy_with_room(f, text, slot->text_cap);
    }
    slot->text_cap = slot->sealed ? 0 : slot->text_cap;
    dgm_map_done(&slot->extensions);
    for (size_t k = 0; k < x->extensions.n; k++) {
        x->extensions.at[k] = dgm_arena_dup(f->arena, x->extensions.at[k]);
        dgm_map_put(&slot->extensions, x->extensions.at[k], k);
    }
    slot->bytes = dgm_arena_used(f->arena) - before;
    before = dgm_arena_used(f->arena);
    x->extra = copy_extra(f->arena, x->extra);
    slot->extra_bytes = dgm_arena_used(f->arena) - before;
    move_members(f, slot->metadata);
    x->metadata = NULL;
    slot->queued = false;
    if (slot->metadata && slot->metadata->stale)
        mark_stale(f, i);
}

void dgm_fold_tidy(dgm_fold *f)
{
    if (f->garbage < dgm_arena_used(f->arena) / 2)
        return;
    dgm_arena *old = f->arena;
    dgm_task *t = &f->task;
    f->arena = dgm_arena_new();
    f->garbage = 0;
    if (f->rare->n_stale)
        dgm_fold_rare(f)->n_stale = 0;
    dgm_map_done(&f->artifacts);
    if (!f->has_lent_id)
        t->id = dgm_arena_dup(f->arena, t->id);
    if (!f->has_lent_context)
        t->context_id = dgm_arena_dup(f->arena, t->context_id);
    size_t before = dgm_arena_used(f->arena);
    t->extra = copy_extra(f->arena, t->extra);
    f->extra_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
    t->status.timestamp = dgm_arena_dup(f->arena, t->status.timestamp);
    before = dgm_arena_used(f->arena);
    t->status.extra = copy_extra(f->arena, t->status.extra);
    f->status_extra_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
    if (t->status.message) {
        before = dgm_arena_used(f->arena);
        dgm_message m = keep_message(f, t->status.message);
        t->status.message = dgm_new(f->arena, dgm_message);
        *t->status.message = m;
        f->message_bytes = (uint32_t)(dgm_arena_used(f->arena) - before);
    }
    for (size_t i = 0; i < t->history.n; i++)
        t->history.at[i] = keep_message(f, &t->history.at[i]);
    if (f->rare->messages.n)
        index_messages(f);
    for (size_t i = 0; i < t->artifacts.n; i++)
        move_artifact(f, i);
    move_members(f, f->metadata);
    t->metadata = NULL;
    f->cost.moved += dgm_arena_used(f->arena);
    dgm_arena_free(old);
}

/* Makes objects of the metadata that changed. */
const dgm_task *dgm_fold_task(dgm_fold *f)
{
    if (f->metadata && f->metadata->stale)
        f->task.metadata = object_of(f, f->metadata);
    for (size_t i = 0; i < f->rare->n_stale; i++) {
        uint32_t index = f->rare->stale[i];
        struct slot *slot = &f->slots[index];
        slot->queued = false;
        if (slot->metadata && slot->metadata->stale)
            f->task.artifacts.at[index].metadata = object_of(f, slot->metadata);
    }
    if (f->rare->n_stale)
        dgm_fold_rare(f)->n_stale = 0;
    return f->has_task ? &f->task : NULL;
}
