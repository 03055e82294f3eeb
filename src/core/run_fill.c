/*
 * core/run_fill.c - the events that agents emit: rules that they break; ids, times and marks that the server adds;
 * metadata that only the server may set.
 *
 * The rules are those of model/rules.h. Each is reported once per run and counted; nothing is refused here. An event
 * that the task cannot accept is refused by its fold (of our own agents) or left out (of third-party agents).
 */
#include "base/ids.h"
#include "core/core_int.h"
#include "model/rules.h"

_Static_assert(DGM_N_EVENT_RULES == N_RULES, "N_RULES of core_int.h");

void dgm_core_run_warn(struct run *r, const char *rule, const dgm_err *what)
{
    dgm_core *core = r->shard->core;
    atomic_fetch_add_explicit(&core->warnings, 1, memory_order_relaxed);
    if (core->o.on_warning)
        core->o.on_warning(core->o.user, r->input.task_id, rule, what);
}

static void lint_report(struct run *r, dgm_event_rule rule, const dgm_event_view *v)
{
    dgm_err what = {0};
    dgm_event_breaks(rule, v, &what);
    r->warned |= 1u << rule;
    atomic_fetch_add_explicit(&r->shard->core->broken[rule], 1, memory_order_relaxed);
    dgm_core_run_warn(r, dgm_event_rule_id(rule), &what);
}

void dgm_core_run_lint(struct run *r, const dgm_event *e)
{
    dgm_event_view v = {.event = e,
                        .task_id = r->input.task_id,
                        .context_id = r->input.context_id,
                        .has_task = r->live != NULL,
                        .state = r->live ? r->live->task_state : DGM_STATE_SUBMITTED};
    if (r->live && e->kind == DGM_EVENT_ARTIFACT)
        v.artifact = dgm_fold_artifact_of(r->live->fold, e->artifact->artifact.artifact_id);
    unsigned broken = dgm_event_broken_rules(&v, r->warned);
    for (unsigned i = 0; broken >> i; i++) {
        if (broken >> i & 1)
            lint_report(r, (dgm_event_rule)i, &v);
    }
}

bool dgm_core_rule(dgm_core *core, size_t i, const char **ret_name, const char **ret_about,
                   uint64_t *ret_broken)
{
    if (i >= N_RULES)
        return false;
    *ret_name = dgm_event_rule_id((dgm_event_rule)i);
    *ret_about = dgm_event_rule_about((dgm_event_rule)i);
    *ret_broken = atomic_load_explicit(&core->broken[i], memory_order_relaxed);
    return true;
}

/* ---- ids, times and marks ---------------------------------------------------------------------------------------- */

bool dgm_core_run_is_routing(dgm_str key)
{
    return dgm_str_starts(key, DGM_STR("aion:"));
}

static size_t count_routing(const dgm_json *metadata)
{
    yyjson_val *key, *value;
    size_t i, max, n = 0;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)metadata, i, max, key, value)
        n += dgm_core_run_is_routing(dgm_json_str(key));
    return n;
}

const dgm_json *dgm_core_run_find_routing(dgm_arena *a, const dgm_json *first,
                                          const dgm_json *second)
{
    const dgm_json *both[] = {first, second};
    dgm_member *members =
        dgm_new_n(a, dgm_member, count_routing(first) + count_routing(second) + 1);
    yyjson_val *key, *value;
    size_t i, max, n = 0;
    for (int k = 0; k < 2; k++) {
        yyjson_obj_foreach ((yyjson_val *)(uintptr_t)both[k], i, max, key, value) {
            if (dgm_core_run_is_routing(dgm_json_str(key)) &&
                !(k && dgm_json_get(first, dgm_json_str(key))))
                members[n++] = (dgm_member){dgm_json_str(key), value};
        }
    }
    return n ? dgm_json_copy(a, dgm_json_object(a, members, n)) : NULL;
}

const dgm_json *dgm_core_run_routed(dgm_arena *a, const dgm_json *routing, const dgm_json *metadata)
{
    yyjson_val *key, *value;
    size_t i, max, n = 0;
    dgm_member *members = dgm_new_n(a, dgm_member,
                                    yyjson_obj_size((yyjson_val *)(uintptr_t)routing) +
                                        yyjson_obj_size((yyjson_val *)(uintptr_t)metadata));
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)metadata, i, max, key, value) {
        if (!dgm_json_get(routing, dgm_json_str(key)))
            members[n++] = (dgm_member){dgm_json_str(key), value};
    }
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)routing, i, max, key, value)
        members[n++] = (dgm_member){dgm_json_str(key), value};
    return dgm_json_object(a, members, n);
}

/* Ids of a message that an agent sends. Shallow: what it points to is only read. */
static dgm_message *fill_message(struct run *r, const dgm_message *m, bool in_task)
{
    if (!m)
        return NULL;
    dgm_message *filled = dgm_new(r->scratch, dgm_message);
    *filled = *m;
    if (!filled->message_id.n)
        filled->message_id = dgm_uuid7_in(r->scratch);
    filled->context_id = r->input.context_id;
    filled->task_id = in_task ? r->input.task_id : (dgm_str){0};
    if (filled->role == DGM_ROLE_UNSPECIFIED)
        filled->role = DGM_ROLE_AGENT;
    dgm_guard_content(&r->shard->guard, r->scratch, &filled->metadata, &filled->parts);
    if (r->routing && filled->role == DGM_ROLE_AGENT)
        filled->metadata = dgm_core_run_routed(r->scratch, r->routing, filled->metadata);
    return filled;
}

/* Every message that may enter the history gets a canonical_type. Progress has none: with it, it would be content. A
 * message that the agent marked as TextMessageEndEvent while it works stays as it is: the mark makes its text content,
 * also next to calls. */
static void fill_status(struct run *r, dgm_status *s)
{
    dgm_message *m = s->message = fill_message(r, s->message, true);
    dgm_status_content content = m ? dgm_status_content_of(s->state, m) : DGM_STATUS_PASSING;
    bool is_early = s->state == DGM_STATE_WORKING || s->state == DGM_STATE_SUBMITTED;
    if (m && (!is_early || content == DGM_STATUS_CALLS ||
              (content == DGM_STATUS_COMPLETE && !dgm_metadata_has_type(m->metadata))))
        dgm_message_stamp(r->scratch, m);
    if (!s->timestamp.n)
        s->timestamp = dgm_time_text(r->scratch, r->shard->now);
}

/* The text parts, concatenated. */
static dgm_str message_text(struct run *r, const dgm_message *m)
{
    dgm_buf all;
    dgm_buf_init(&all, SIZE_MAX);
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (m->parts.at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(&all, m->parts.at[i].content);
    }
    dgm_str text = dgm_arena_dup(r->scratch, dgm_buf_str(&all));
    dgm_buf_done(&all);
    return text;
}

/* Every failure has its reason in metadata.error and in its message: where the agent sent only one of them,
 * the other is made of it. */
static const dgm_json *fill_failure(struct run *r, dgm_status *s, const dgm_json *metadata)
{
    dgm_str why = dgm_metadata_error(metadata);
    if (!why.n) {
        dgm_str text = message_text(r, s->message);
        why = text.n ? text : DGM_STR("the agent failed and did not say why");
        metadata = dgm_metadata_with_error(r->scratch, metadata, why);
    }
    if (!s->message || !s->message->parts.n)
        s->message = fill_message(r, dgm_error_message(r->scratch, why), true);
    return metadata;
}

/* A snapshot may bring messages that were not sent before. Chunks stay marked as what they are. */
static dgm_messages fill_history(struct run *r, dgm_messages from)
{
    dgm_messages to = {dgm_new_n(r->scratch, dgm_message, from.n), from.n};
    for (size_t i = 0; i < from.n; i++) {
        to.at[i] = *fill_message(r, &from.at[i], true);
        if (dgm_status_content_of(DGM_STATE_COMPLETED, &to.at[i]) == DGM_STATUS_COMPLETE)
            dgm_message_stamp(r->scratch, &to.at[i]);
    }
    return to;
}

static dgm_task *fill_task(struct run *r, const dgm_task *from)
{
    dgm_task *t = dgm_new(r->scratch, dgm_task);
    *t = *from;
    t->id = r->input.task_id;
    t->context_id = r->input.context_id;
    fill_status(r, &t->status);
    dgm_guard_task(&r->shard->guard, r->scratch, t);
    if (t->status.state == DGM_STATE_FAILED)
        t->metadata = fill_failure(r, &t->status, t->metadata);
    t->history = fill_history(r, t->history);
    return t;
}

static dgm_internal *fill_internal(struct run *r, const dgm_internal *from)
{
    dgm_internal *i = dgm_new(r->scratch, dgm_internal);
    *i = *from;
    i->task_id = r->input.task_id;
    i->message = fill_message(r, i->message, true);
    if (i->message)
        dgm_message_stamp(r->scratch, i->message);
    if (!i->timestamp.n)
        i->timestamp = dgm_time_text(r->scratch, r->shard->now);
    return i;
}

/* The event as it goes into the log: our ids whatever the agent wrote there. */
dgm_event dgm_core_run_fill(struct run *r, const dgm_event *e)
{
    dgm_event filled = {.kind = e->kind};
    switch (e->kind) {
    case DGM_EVENT_TASK: filled.task = fill_task(r, e->task); break;
    case DGM_EVENT_STATUS: {
        dgm_status_update *u = filled.status = dgm_new(r->scratch, dgm_status_update);
        *u = *e->status;
        u->task_id = r->input.task_id;
        u->context_id = r->input.context_id;
        fill_status(r, &u->status);
        u->metadata = dgm_guard_metadata(&r->shard->guard, r->scratch, u->metadata, true);
        if (u->status.state == DGM_STATE_FAILED)
            u->metadata = fill_failure(r, &u->status, u->metadata);
        break;
    }
    case DGM_EVENT_ARTIFACT: {
        dgm_artifact_update *u = filled.artifact = dgm_new(r->scratch, dgm_artifact_update);
        *u = *e->artifact;
        u->task_id = r->input.task_id;
        u->context_id = r->input.context_id;
        if (!u->artifact.artifact_id.n)
            u->artifact.artifact_id = dgm_uuid7_in(r->scratch);
        dgm_guard_content(&r->shard->guard, r->scratch, &u->artifact.metadata, &u->artifact.parts);
        u->metadata = dgm_guard_metadata(&r->shard->guard, r->scratch, u->metadata, true);
        break;
    }
    case DGM_EVENT_INTERNAL: filled.internal = fill_internal(r, e->internal); break;
    case DGM_EVENT_MESSAGE:
        filled.message = fill_message(r, e->message, r->live);
        dgm_message_stamp(r->scratch, filled.message);
        break;
    case DGM_EVENT_NONE: break;
    }
    return filled;
}
