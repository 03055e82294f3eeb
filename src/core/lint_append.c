/*
 * core/lint_append.c - what an agent should not have emitted, as far as one event shows it.
 *
 * Each rule is told of once per run and counted. Nothing is refused here: what the task cannot take its
 * fold refuses, of our own agents, or leaves out, of others.
 */
#include "core/core_int.h"
#include "model/form.h"

struct view {
    const struct run *run;
    const dgm_event *event; /* of a kind that the rule is about */
    bool has_task;
    dgm_task_state state; /* before the event */
};

static const dgm_status *status_of(const dgm_event *e) /* of a task or a status-update */
{
    return e->kind == DGM_EVENT_STATUS ? &e->status->status : &e->task->status;
}

static bool is_other(dgm_str theirs, dgm_str ours)
{
    return theirs.n && !dgm_str_eq(theirs, ours);
}

/* ---- the rules ------------------------------------------------------------------------------------------------- */

static bool has_other_ids(const struct view *v)
{
    const dgm_run_input *in = &v->run->input;
    const dgm_event *e = v->event;
    switch (e->kind) {
    case DGM_EVENT_TASK:
        return is_other(e->task->id, in->task_id) || is_other(e->task->context_id, in->context_id);
    case DGM_EVENT_STATUS:
        return is_other(e->status->task_id, in->task_id) ||
               is_other(e->status->context_id, in->context_id);
    case DGM_EVENT_ARTIFACT:
        return is_other(e->artifact->task_id, in->task_id) ||
               is_other(e->artifact->context_id, in->context_id);
    case DGM_EVENT_NONE:
    case DGM_EVENT_MESSAGE:
    case DGM_EVENT_INTERNAL: break;
    }
    return false;
}

static bool is_after_the_end(const struct view *v)
{
    return v->has_task && dgm_state_is_terminal(v->state);
}

static bool is_illegal_transition(const struct view *v)
{
    return v->has_task && !dgm_state_is_terminal(v->state) &&
           !dgm_state_may_become(v->state, status_of(v->event)->state);
}

static bool is_second_task(const struct view *v)
{
    return v->has_task;
}

static bool is_message_in_a_task(const struct view *v)
{
    return v->has_task;
}

static dgm_fold_artifact artifact_of(const struct view *v)
{
    return v->has_task
               ? dgm_fold_artifact_of(v->run->live->fold, v->event->artifact->artifact.artifact_id)
               : DGM_ARTIFACT_NEW;
}

static bool appends_to_nothing(const struct view *v)
{
    return v->event->artifact->append == DGM_TRUE && artifact_of(v) == DGM_ARTIFACT_NEW;
}

static bool is_after_the_last_chunk(const struct view *v)
{
    return artifact_of(v) == DGM_ARTIFACT_SEALED;
}

static bool is_nameless_artifact(const struct view *v)
{
    return !v->event->artifact->artifact.artifact_id.n;
}

/* Is it progress or the answer? Nobody can tell. */
static bool is_unmarked_text(const struct view *v)
{
    const dgm_status *s = status_of(v->event);
    if (s->state != DGM_STATE_WORKING || !s->message)
        return false;
    for (size_t i = 0; i < s->message->parts.n; i++) {
        if (s->message->parts.at[i].kind == DGM_PART_TEXT)
            return !dgm_metadata_has_type(s->message->metadata);
    }
    return false;
}

static bool fails_without_a_word(const struct view *v)
{
    const dgm_event *e = v->event;
    return status_of(e)->state == DGM_STATE_FAILED &&
           !dgm_metadata_error(e->kind == DGM_EVENT_STATUS ? e->status->metadata
                                                           : e->task->metadata)
                .n;
}

enum {
    TASK = 1 << DGM_EVENT_TASK,
    MESSAGE = 1 << DGM_EVENT_MESSAGE,
    STATUS = 1 << DGM_EVENT_STATUS,
    ARTIFACT = 1 << DGM_EVENT_ARTIFACT
};

static const struct rule {
    const char *name, *about;
    unsigned of; /* the kinds of events it is about */
    bool (*is_broken)(const struct view *v);
} rules[] = {
    {"ids", "an event carries the taskId or contextId of another task", TASK | STATUS | ARTIFACT,
     has_other_ids},
    {"after-end", "an event after the task has ended", TASK | MESSAGE | STATUS | ARTIFACT,
     is_after_the_end},
    {"transition", "a state that may not follow the one before", STATUS, is_illegal_transition},
    {"second-task", "a task event in the middle of a task", TASK, is_second_task},
    {"message-in-task", "a message in the stream of a task", MESSAGE, is_message_in_a_task},
    {"append-to-nothing", "a chunk with append:true of an artifact that is not there", ARTIFACT,
     appends_to_nothing},
    {"after-last-chunk", "an update of an artifact after its lastChunk", ARTIFACT,
     is_after_the_last_chunk},
    {"artifact-id", "an artifact without an artifactId", ARTIFACT, is_nameless_artifact},
    {"status-text", "text in a working status without metadata.canonical_type: progress or answer?",
     TASK | STATUS, is_unmarked_text},
    {"error", "a failed status without metadata.error", TASK | STATUS, fails_without_a_word},
};
_Static_assert(sizeof rules / sizeof *rules == N_RULES, "N_RULES of core_int.h");

/* ---- telling ---------------------------------------------------------------------------------------------------- */

void run_warn(struct run *r, const char *rule, const dgm_err *what)
{
    dgm_core *core = r->shard->core;
    atomic_fetch_add_explicit(&core->warnings, 1, memory_order_relaxed);
    if (core->o.on_warning)
        core->o.on_warning(core->o.user, r->input.task_id, rule, what);
}

static void tell(struct run *r, size_t i)
{
    dgm_err what = {0};
    r->told |= 1u << i;
    atomic_fetch_add_explicit(&r->shard->core->broken[i], 1, memory_order_relaxed);
    dgm_fail(&what, DGM_INVALID_AGENT_RESPONSE, NULL, "%s", rules[i].about);
    run_warn(r, rules[i].name, &what);
}

void run_lint(struct run *r, const dgm_event *e)
{
    struct view v = {.run = r,
                     .event = e,
                     .has_task = r->live != NULL,
                     .state = r->live ? r->live->state : DGM_STATE_SUBMITTED};
    for (size_t i = 0; i < N_RULES; i++) {
        if (rules[i].of >> e->kind & 1 && !(r->told >> i & 1) && rules[i].is_broken(&v))
            tell(r, i);
    }
}

bool dgm_core_rule(dgm_core *core, size_t i, const char **ret_name, const char **ret_about,
                   uint64_t *ret_broken)
{
    if (i >= N_RULES)
        return false;
    *ret_name = rules[i].name;
    *ret_about = rules[i].about;
    *ret_broken = atomic_load_explicit(&core->broken[i], memory_order_relaxed);
    return true;
}
