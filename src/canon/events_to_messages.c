/* canon/events_to_messages.c - see events_to_messages.h. */
#include "canon/events_to_messages.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "json/json.h"

#include <stdlib.h>

struct call {
    dgm_canon_call it; /* arguments: see text */
    dgm_buf text;
};

struct message {
    dgm_canon_message it; /* content of kind TEXT: see text; tool_calls: see calls */
    dgm_buf text;
    struct call *calls;
    size_t n_calls, cap_calls;
};

struct owned {
    struct message *by;
    size_t call;
    bool ended; /* by its END: a START with the same id is another call */
};

struct dgm_canon_fold {
    dgm_arena *arena;
    struct message **made; /* as they were made */
    dgm_map messages;      /* id -> index of made */
    struct owned *owned;
    dgm_map calls; /* id -> index of owned */
    size_t n_made, cap_made, n_owned, cap_owned;
    struct message **at; /* in order */
    size_t n, cap, bytes, max_bytes;
    bool over;
};

dgm_canon_fold *dgm_canon_fold_new(size_t max_bytes)
{
    dgm_canon_fold *f = dgm_xcalloc(1, sizeof *f);
    f->arena = dgm_arena_new();
    dgm_map_init(&f->messages);
    dgm_map_init(&f->calls);
    f->max_bytes = max_bytes;
    return f;
}

static void to_messages_forget(dgm_canon_fold *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct message *m = f->at[i];
        for (size_t k = 0; k < m->n_calls; k++)
            dgm_buf_done(&m->calls[k].text);
        free(m->calls);
        dgm_buf_done(&m->text);
        free(m);
    }
    f->n = f->n_made = f->n_owned = 0;
    dgm_map_done(&f->messages);
    dgm_map_done(&f->calls);
    dgm_map_init(&f->messages);
    dgm_map_init(&f->calls);
}

void dgm_canon_fold_free(dgm_canon_fold *f)
{
    if (!f)
        return;
    to_messages_forget(f);
    dgm_map_done(&f->messages);
    dgm_map_done(&f->calls);
    free(f->at);
    free(f->made);
    free(f->owned);
    dgm_arena_free(f->arena);
    free(f);
}

bool dgm_canon_fold_is_over(const dgm_canon_fold *f)
{
    return f->over;
}

size_t dgm_canon_fold_bytes(const dgm_canon_fold *f)
{
    return f->bytes;
}

/* false: no room, all is forgotten. */
static bool to_messages_take(dgm_canon_fold *f, size_t bytes)
{
    f->bytes += bytes + 64;
    if (!f->over && f->bytes > f->max_bytes) {
        f->over = true;
        to_messages_forget(f);
    }
    return !f->over;
}

/* ---- copies ------------------------------------------------------------------------------------------- */

static dgm_str to_messages_keep(dgm_canon_fold *f, dgm_str s)
{
    return s.p && to_messages_take(f, s.n) ? dgm_arena_dup(f->arena, s) : (dgm_str){0};
}

static const dgm_json *keep_json(dgm_canon_fold *f, const dgm_json *v)
{
    if (!v)
        return NULL;
    size_t before = dgm_arena_used(f->arena);
    const dgm_json *copy = dgm_json_copy(f->arena, v);
    return to_messages_take(f, dgm_arena_used(f->arena) - before) ? copy : NULL;
}

static dgm_canon_parts keep_parts(dgm_canon_fold *f, dgm_canon_parts from)
{
    size_t before = dgm_arena_used(f->arena);
    dgm_canon_parts to = dgm_canon_copy_parts(f->arena, from);
    return to_messages_take(f, dgm_arena_used(f->arena) - before) ? to : (dgm_canon_parts){0};
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static struct message *to_messages_find(const dgm_canon_fold *f, dgm_str id)
{
    size_t *at = dgm_map_get(&f->messages, id);
    return at ? f->made[*at] : NULL;
}

static struct message *insert(dgm_canon_fold *f, size_t at, dgm_canon_role role, dgm_str id)
{
    if (!to_messages_take(f, sizeof(struct message)))
        return NULL;
    f->at = dgm_list_reserve(f->at, f->n, &f->cap, sizeof *f->at);
    struct message *m = dgm_xcalloc(1, sizeof *m);
    dgm_buf_init(&m->text, f->max_bytes);
    memmove(f->at + at + 1, f->at + at, (f->n - at) * sizeof *f->at);
    f->at[at] = m;
    f->n++;
    m->it.role = role;
    dgm_str copy = to_messages_keep(f, id);
    if (f->over)
        return NULL;
    m->it.id = copy;
    f->made = dgm_list_reserve(f->made, f->n_made, &f->cap_made, sizeof *f->made);
    f->made[f->n_made] = m;
    if (copy.p)
        dgm_map_put(&f->messages, copy, f->n_made);
    f->n_made++;
    return m;
}

static struct message *open_message(dgm_canon_fold *f, dgm_canon_role role, dgm_str id)
{
    struct message *m = to_messages_find(f, id);
    return m ? m : insert(f, f->n, role, id);
}

static void to_messages_add_text(dgm_canon_fold *f, struct message *m, dgm_str text)
{
    if (!m || !to_messages_take(f, text.n))
        return;
    m->it.content.kind = DGM_CANON_CONTENT_TEXT;
    dgm_buf_add_str(&m->text, text);
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

static struct call *to_messages_find_call(const dgm_canon_fold *f, dgm_str id,
                                          struct message **ret_owner)
{
    size_t *at = dgm_map_get(&f->calls, id);
    if (!at)
        return NULL;
    *ret_owner = f->owned[*at].by;
    return &f->owned[*at].by->calls[f->owned[*at].call];
}

static struct call *to_messages_add_call(dgm_canon_fold *f, struct message *m, dgm_str id,
                                         dgm_str name)
{
    if (!m || !to_messages_take(f, sizeof(struct call)))
        return NULL;
    m->calls = dgm_list_reserve(m->calls, m->n_calls, &m->cap_calls, sizeof *m->calls);
    struct call *c = &m->calls[m->n_calls++];
    *c = (struct call){0};
    dgm_buf_init(&c->text, f->max_bytes);
    dgm_str kept_id = to_messages_keep(f, id), kept_name = to_messages_keep(f, name);
    if (f->over)
        return NULL;
    c->it.id = kept_id;
    c->it.name = kept_name;
    f->owned = dgm_list_reserve(f->owned, f->n_owned, &f->cap_owned, sizeof *f->owned);
    f->owned[f->n_owned] = (struct owned){m, m->n_calls - 1, false};
    if (kept_id.p)
        dgm_map_put(&f->calls, kept_id, f->n_owned);
    f->n_owned++;
    return c;
}

static void to_messages_start_call(dgm_canon_fold *f, const dgm_canon_event *e)
{
    size_t *known = dgm_map_get(&f->calls, e->call.tool_call_id);
    if (known && !f->owned[*known].ended)
        return;
    dgm_str parent = e->call.parent_message_id;
    struct message *m = parent.n ? open_message(f, DGM_CANON_ASSISTANT, parent) : NULL;
    if (!m || m->it.role != DGM_CANON_ASSISTANT)
        m = insert(f, f->n, DGM_CANON_ASSISTANT, e->call.tool_call_id);
    to_messages_add_call(f, m, e->call.tool_call_id, e->call.name);
}

static void to_messages_end_call(dgm_canon_fold *f, const dgm_canon_event *e)
{
    size_t *known = dgm_map_get(&f->calls, e->call.tool_call_id);
    if (known)
        f->owned[*known].ended = true;
}

static void to_messages_add_arguments(dgm_canon_fold *f, const dgm_canon_event *e)
{
    struct message *owner;
    struct call *c = to_messages_find_call(f, e->call.tool_call_id, &owner);
    if (c && to_messages_take(f, e->call.delta.n))
        dgm_buf_add_str(&c->text, e->call.delta);
}

static void set_content(dgm_canon_fold *f, struct message *m, const dgm_canon_content *c)
{
    if (!m)
        return;
    if (c->kind == DGM_CANON_CONTENT_PARTS) {
        dgm_canon_parts parts = keep_parts(f, c->parts);
        if (f->over)
            return;
        m->it.content = (dgm_canon_content){.kind = c->kind, .parts = parts};
    } else if (c->kind == DGM_CANON_CONTENT_OBJECT) {
        const dgm_json *object = keep_json(f, c->object);
        if (f->over)
            return;
        m->it.content = (dgm_canon_content){.kind = c->kind, .object = object};
    } else if (c->kind == DGM_CANON_CONTENT_TEXT) {
        dgm_buf_clear(&m->text);
        to_messages_add_text(f, m, c->text);
    }
}

static void to_messages_add_result(dgm_canon_fold *f, const dgm_canon_event *e)
{
    struct message *owner;
    size_t at = f->n;
    if (to_messages_find_call(f, e->result.tool_call_id, &owner)) {
        while (at && f->at[at - 1] != owner) /* mostly one of the last */
            at--;
        while (at < f->n && f->at[at]->it.role == DGM_CANON_TOOL)
            at++;
    }
    struct message *m = insert(f, at, DGM_CANON_TOOL, e->result.message_id);
    dgm_str id = to_messages_keep(f, e->result.tool_call_id);
    if (!m || f->over)
        return;
    m->it.tool_call_id = id;
    set_content(f, m, &e->result.content);
    if (!f->over && yyjson_is_true(dgm_json_get(e->metadata, DGM_STR(DGM_META_ERROR)))) {
        dgm_str error =
            to_messages_keep(f, e->result.content.text.p ? e->result.content.text : DGM_STR(""));
        if (!f->over)
            m->it.error = error;
    }
}

/* ---- whole messages --------------------------------------------------------------------------------------- */

void dgm_canon_fold_add_message(dgm_canon_fold *f, const dgm_canon_message *from)
{
    struct message *m = insert(f, f->n, from->role, from->id);
    dgm_canon_message to = {.role = from->role,
                            .name = to_messages_keep(f, from->name),
                            .tool_call_id = to_messages_keep(f, from->tool_call_id),
                            .error = to_messages_keep(f, from->error),
                            .activity_type = to_messages_keep(f, from->activity_type),
                            .encrypted_value = to_messages_keep(f, from->encrypted_value),
                            .subagent_run_id = to_messages_keep(f, from->subagent_run_id),
                            .metadata = keep_json(f, from->metadata)};
    if (!m || f->over)
        return;
    to.id = m->it.id;
    m->it = to;
    set_content(f, m, &from->content);
    for (size_t i = 0; !f->over && i < from->tool_calls.n; i++) {
        const dgm_canon_call *call = &from->tool_calls.at[i];
        struct call *c = to_messages_add_call(f, m, call->id, call->name);
        if (c && to_messages_take(f, call->arguments.n))
            dgm_buf_add_str(&c->text, call->arguments);
    }
}

bool dgm_canon_fold_set_text(dgm_canon_fold *f, dgm_str id, dgm_str text)
{
    struct message *m = to_messages_find(f, id);
    if (!m)
        return false;
    set_content(f, m, &(dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = text});
    return !f->over;
}

static void set_messages(dgm_canon_fold *f, const dgm_canon_messages *list)
{
    to_messages_forget(f);
    for (size_t i = 0; !f->over && i < list->n; i++)
        dgm_canon_fold_add_message(f, &list->at[i]);
}

static void set_activity(dgm_canon_fold *f, const dgm_canon_event *e)
{
    struct message *m = to_messages_find(f, e->activity.message_id);
    if (m && e->activity.replace == DGM_FALSE)
        return;
    if (!m)
        m = insert(f, f->n, DGM_CANON_ACTIVITY, e->activity.message_id);
    dgm_str type = to_messages_keep(f, e->activity.activity_type);
    if (!m || f->over)
        return;
    m->it.activity_type = type;
    set_content(
        f, m,
        &(dgm_canon_content){.kind = DGM_CANON_CONTENT_OBJECT, .object = e->activity.content});
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void add_missing(dgm_canon_fold *f, const dgm_canon_messages *list)
{
    for (size_t i = 0; !f->over && i < list->n; i++) {
        if (!to_messages_find(f, list->at[i].id))
            dgm_canon_fold_add_message(f, &list->at[i]);
    }
}

void dgm_canon_fold_add(dgm_canon_fold *f, const dgm_canon_event *e)
{
    if (f->over)
        return;
    switch ((int)e->kind) {
    case DGM_CANON_RUN_STARTED:
        if (e->run_started.input)
            add_missing(f, &e->run_started.input->messages);
        break;
    case DGM_CANON_TEXT_MESSAGE_START: {
        struct message *m =
            open_message(f, e->text.role ? e->text.role : DGM_CANON_ASSISTANT, e->text.message_id);
        to_messages_add_text(f, m, (dgm_str){"", 0});
        break;
    }
    case DGM_CANON_REASONING_MESSAGE_START:
        to_messages_add_text(f, open_message(f, DGM_CANON_REASONING, e->text.message_id),
                             (dgm_str){"", 0});
        break;
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
        if (e->text.parts.n)
            set_content(
                f, to_messages_find(f, e->text.message_id),
                &(dgm_canon_content){.kind = DGM_CANON_CONTENT_PARTS, .parts = e->text.parts});
        else
            to_messages_add_text(f, to_messages_find(f, e->text.message_id), e->text.delta);
        break;
    case DGM_CANON_TOOL_CALL_START: to_messages_start_call(f, e); break;
    case DGM_CANON_TOOL_CALL_ARGS: to_messages_add_arguments(f, e); break;
    case DGM_CANON_TOOL_CALL_END: to_messages_end_call(f, e); break;
    case DGM_CANON_TOOL_CALL_RESULT: to_messages_add_result(f, e); break;
    case DGM_CANON_MESSAGES_SNAPSHOT: set_messages(f, &e->snapshot.messages); break;
    case DGM_CANON_ACTIVITY_SNAPSHOT: set_activity(f, e); break;
    default: break;
    }
}

dgm_canon_messages dgm_canon_fold_messages(const dgm_canon_fold *f, dgm_arena *a)
{
    dgm_canon_messages list = {dgm_new_n(a, dgm_canon_message, f->n), f->n};
    for (size_t i = 0; i < f->n; i++) {
        const struct message *m = f->at[i];
        list.at[i] = m->it;
        if (m->it.content.kind == DGM_CANON_CONTENT_TEXT)
            list.at[i].content.text = dgm_buf_str(&m->text);
        list.at[i].tool_calls =
            (dgm_canon_calls){dgm_new_n(a, dgm_canon_call, m->n_calls), m->n_calls};
        if (!m->n_calls)
            list.at[i].tool_calls = (dgm_canon_calls){0};
        for (size_t k = 0; k < m->n_calls; k++) {
            list.at[i].tool_calls.at[k] = m->calls[k].it;
            list.at[i].tool_calls.at[k].arguments = dgm_buf_str(&m->calls[k].text);
        }
    }
    return list;
}
