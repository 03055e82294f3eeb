/* model/rules.c - see rules.h. */
#include "model/rules.h"
#include "base/err.h"
#include "model/stamp.h"
#include "json/json.h"

/* ---- pieces of events ------------------------------------------------------------------------------ */

static const dgm_status *status_of(const dgm_event *e) /* of a task or a status-update */
{
    return e->kind == DGM_EVENT_STATUS ? &e->status->status : &e->task->status;
}

static const dgm_json *metadata_of(const dgm_event *e) /* likewise */
{
    return e->kind == DGM_EVENT_STATUS ? e->status->metadata : e->task->metadata;
}

static int shown(dgm_str s) /* as much of an id as a sentence can hold */
{
    return (int)(s.n < 60 ? s.n : 60);
}

/* ---- ids ------------------------------------------------------------------------------------------- */

static bool is_other(dgm_str theirs, dgm_str ours)
{
    return theirs.n && ours.n && !dgm_str_eq(theirs, ours);
}

static bool other_id(const dgm_at *at, dgm_str theirs, dgm_str ours, dgm_err *what)
{
    if (!is_other(theirs, ours))
        return false;
    dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, at, "%.*s is \"%.*s\" here and was \"%.*s\" before",
             DGM_P(at->key), shown(theirs), theirs.p, shown(ours), ours.p);
    return true;
}

static bool has_other_ids(const dgm_event_view *v, dgm_err *what)
{
    const dgm_event *e = v->event;
    const dgm_at *task_at = DGM_AT_LIT(NULL, "taskId"), *context_at = DGM_AT_LIT(NULL, "contextId");
    switch (e->kind) {
    case DGM_EVENT_TASK:
        return other_id(DGM_AT_LIT(NULL, "id"), e->task->id, v->task_id, what) ||
               other_id(context_at, e->task->context_id, v->context_id, what);
    case DGM_EVENT_STATUS:
        return other_id(task_at, e->status->task_id, v->task_id, what) ||
               other_id(context_at, e->status->context_id, v->context_id, what);
    case DGM_EVENT_ARTIFACT:
        return other_id(task_at, e->artifact->task_id, v->task_id, what) ||
               other_id(context_at, e->artifact->context_id, v->context_id, what);
    case DGM_EVENT_NONE:
    case DGM_EVENT_MESSAGE:
    case DGM_EVENT_INTERNAL: break;
    }
    return false;
}

/* What comes from a decoder has an id, or was refused: this is for agents that make structs. */
static bool is_nameless_artifact(const dgm_event_view *v, dgm_err *what)
{
    if (v->event->artifact->artifact.artifact_id.n)
        return false;
    dgm_fail(what, DGM_INVALID_AGENT_RESPONSE,
             DGM_AT_LIT(DGM_AT_LIT(NULL, "artifact"), "artifactId"),
             "an artifact needs an artifactId");
    return true;
}

/* ---- order ------------------------------------------------------------------------------------------ */

static bool tell(dgm_err *what, dgm_event_rule rule, const dgm_at *at)
{
    dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, at, "%s", dgm_event_rule_about(rule));
    return true;
}

/* A last snapshot of the task as it ended is allowed. */
static bool is_after_the_end(const dgm_event_view *v, dgm_err *what)
{
    if (!v->has_task || !dgm_state_is_terminal(v->state) ||
        (v->event->kind == DGM_EVENT_TASK && v->event->task->status.state == v->state))
        return false;
    return tell(what, DGM_RULE_AFTER_TERMINAL, NULL);
}

static bool is_illegal_transition(const dgm_event_view *v, dgm_err *what)
{
    if (!v->has_task || dgm_state_is_terminal(v->state) ||
        dgm_state_may_become(v->state, status_of(v->event)->state))
        return false;
    return tell(what, DGM_RULE_TRANSITION, DGM_AT_LIT(DGM_AT_LIT(NULL, "status"), "state"));
}

static bool is_second_task(const dgm_event_view *v, dgm_err *what)
{
    dgm_task_state s = v->event->task->status.state;
    if (!v->has_task || dgm_state_is_terminal(s) || dgm_state_is_interrupted(s))
        return false;
    return tell(what, DGM_RULE_SECOND_TASK, NULL);
}

static bool is_message_in_a_task(const dgm_event_view *v, dgm_err *what)
{
    return v->has_task && tell(what, DGM_RULE_MESSAGE_IN_TASK, NULL);
}

/* ---- artifacts -------------------------------------------------------------------------------------- */

static bool appends_to_nothing(const dgm_event_view *v, dgm_err *what)
{
    if (v->event->artifact->append != DGM_TRUE || v->artifact != DGM_ARTIFACT_NEW)
        return false;
    return tell(what, DGM_RULE_UNKNOWN_APPEND, DGM_AT_LIT(NULL, "append"));
}

static bool is_last_again(const dgm_event_view *v, dgm_err *what)
{
    if (v->artifact != DGM_ARTIFACT_SEALED || v->event->artifact->last_chunk != DGM_TRUE)
        return false;
    return tell(what, DGM_RULE_LAST_CHUNK_TWICE, DGM_AT_LIT(NULL, "lastChunk"));
}

static bool is_after_the_last_chunk(const dgm_event_view *v, dgm_err *what)
{
    if (v->artifact != DGM_ARTIFACT_SEALED || v->event->artifact->last_chunk == DGM_TRUE)
        return false;
    return tell(what, DGM_RULE_AFTER_LAST_CHUNK, DGM_AT_LIT(NULL, "artifact"));
}

/* ---- what is said ------------------------------------------------------------------------------------ */

/* Is it progress or the answer? Nobody can tell. */
static bool is_unmarked_text(const dgm_event_view *v, dgm_err *what)
{
    const dgm_status *s = status_of(v->event);
    if (s->state != DGM_STATE_WORKING || !s->message || dgm_metadata_has_type(s->message->metadata))
        return false;
    const dgm_at *parts = DGM_AT_LIT(DGM_AT_LIT(DGM_AT_LIT(NULL, "status"), "message"), "parts");
    for (size_t i = 0; i < s->message->parts.n; i++) {
        if (s->message->parts.at[i].kind == DGM_PART_TEXT)
            return tell(what, DGM_RULE_WORKING_TEXT, DGM_AT_I(parts, i));
    }
    return false;
}

static bool is_mistyped(const dgm_message *m, const dgm_at *at, dgm_err *what)
{
    dgm_str said = dgm_metadata_type(m->metadata);
    dgm_str meant = dgm_str_from(dgm_message_canonical_type(m));
    if (!said.p || dgm_str_eq(said, meant) ||
        (dgm_str_is(said, "TextMessageChunkEvent") && dgm_str_is(meant, "TextMessageEndEvent")) ||
        (dgm_str_is(said, "ToolCallArgsEvent") && dgm_str_is(meant, "ToolCallStartEvent")))
        return false;
    dgm_fail(what, DGM_INVALID_AGENT_RESPONSE,
             DGM_AT_LIT(DGM_AT_LIT(at, "metadata"), "canonical_type"),
             "canonical_type is %.*s, but role and parts make it a %.*s", shown(said), said.p,
             DGM_P(meant));
    return true;
}

static bool has_mistyped_message(const dgm_event_view *v, dgm_err *what)
{
    const dgm_event *e = v->event;
    if (e->kind == DGM_EVENT_MESSAGE)
        return is_mistyped(e->message, NULL, what);
    const dgm_at *in_status = DGM_AT_LIT(DGM_AT_LIT(NULL, "status"), "message");
    const dgm_at *in_history = DGM_AT_LIT(NULL, "history");
    if (status_of(e)->message && is_mistyped(status_of(e)->message, in_status, what))
        return true;
    for (size_t i = 0; e->kind == DGM_EVENT_TASK && i < e->task->history.n; i++) {
        if (is_mistyped(&e->task->history.at[i], DGM_AT_I(in_history, i), what))
            return true;
    }
    return false;
}

static bool fails_without_a_word(const dgm_event_view *v, dgm_err *what)
{
    if (status_of(v->event)->state != DGM_STATE_FAILED ||
        dgm_metadata_error(metadata_of(v->event)).n)
        return false;
    return tell(what, DGM_RULE_FAILED_WITHOUT_ERROR, DGM_AT_LIT(NULL, "metadata"));
}

/* ---- the table ---------------------------------------------------------------------------------------- */

enum {
    TASK = 1 << DGM_EVENT_TASK,
    MESSAGE = 1 << DGM_EVENT_MESSAGE,
    STATUS = 1 << DGM_EVENT_STATUS,
    ARTIFACT = 1 << DGM_EVENT_ARTIFACT
};

static const struct {
    unsigned kinds; /* of events that it applies to */
    bool (*is_broken)(const dgm_event_view *v, dgm_err *what);
} checks[DGM_N_EVENT_RULES] = {
    [DGM_RULE_REQUIRED_MEMBER] = {ARTIFACT, is_nameless_artifact},
    [DGM_RULE_CHANGING_IDS] = {TASK | STATUS | ARTIFACT, has_other_ids},
    [DGM_RULE_AFTER_TERMINAL] = {TASK | MESSAGE | STATUS | ARTIFACT, is_after_the_end},
    [DGM_RULE_TRANSITION] = {STATUS, is_illegal_transition},
    [DGM_RULE_SECOND_TASK] = {TASK, is_second_task},
    [DGM_RULE_MESSAGE_IN_TASK] = {MESSAGE, is_message_in_a_task},
    [DGM_RULE_UNKNOWN_APPEND] = {ARTIFACT, appends_to_nothing},
    [DGM_RULE_LAST_CHUNK_TWICE] = {ARTIFACT, is_last_again},
    [DGM_RULE_AFTER_LAST_CHUNK] = {ARTIFACT, is_after_the_last_chunk},
    [DGM_RULE_WORKING_TEXT] = {TASK | STATUS, is_unmarked_text},
    [DGM_RULE_CANONICAL_TYPE] = {TASK | MESSAGE | STATUS, has_mistyped_message},
    [DGM_RULE_FAILED_WITHOUT_ERROR] = {TASK | STATUS, fails_without_a_word},
};

static const struct {
    const char *id, *about;
} rows[DGM_N_EVENT_RULES] = {
#define X(sym, id, severity, of, about, fix) {id, about},
    DGM_EVENT_RULES(X)
#undef X
};

const char *dgm_event_rule_id(dgm_event_rule rule)
{
    return rows[rule].id;
}

const char *dgm_event_rule_about(dgm_event_rule rule)
{
    return rows[rule].about;
}

bool dgm_event_breaks(dgm_event_rule rule, const dgm_event_view *v, dgm_err *ret_what)
{
    return checks[rule].kinds >> v->event->kind & 1 && checks[rule].is_broken(v, ret_what);
}

unsigned dgm_event_broken_rules(const dgm_event_view *v, unsigned ignored)
{
    unsigned broken = 0;
    for (unsigned i = 0; i < DGM_N_EVENT_RULES; i++)
        if (checks[i].kinds >> v->event->kind & 1 && !(ignored >> i & 1) &&
            checks[i].is_broken(v, NULL))
            broken |= 1u << i;
    return broken;
}
