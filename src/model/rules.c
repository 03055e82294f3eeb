/* model/rules.c - see rules.h. */
#include "model/rules.h"
#include "base/err.h"
#include "model/stamp.h"
#include "json/json.h"

static int shown(dgm_str s) /* as much of an id as a sentence can hold */
{
    return (int)(s.n < 60 ? s.n : 60);
}

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

/* ---- ids ------------------------------------------------------------------------------------------- */

static bool breaks_ids(dgm_event_rule rule, const dgm_event_view *v, dgm_err *what)
{
    const dgm_event *e = v->event;
    if (rule == DGM_RULE_REQUIRED_MEMBER) {
        /* An event from a decoder has an id, or was refused: this is for agents that make structs. */
        if (e->artifact->artifact.artifact_id.n)
            return false;
        dgm_fail(what, DGM_INVALID_AGENT_RESPONSE,
                 DGM_AT_LIT(DGM_AT_LIT(NULL, "artifact"), "artifactId"),
                 "an artifact needs an artifactId");
        return true;
    }
    bool is_task = e->kind == DGM_EVENT_TASK, is_status = e->kind == DGM_EVENT_STATUS;
    dgm_str keys[] = {is_task ? DGM_STR("id") : DGM_STR("taskId"), DGM_STR("contextId")};
    dgm_str theirs[] = {is_task     ? e->task->id
                        : is_status ? e->status->task_id
                                    : e->artifact->task_id,
                        is_task     ? e->task->context_id
                        : is_status ? e->status->context_id
                                    : e->artifact->context_id};
    dgm_str ours[] = {v->task_id, v->context_id};
    for (int i = 0; i < 2; i++) {
        if (!theirs[i].n || !ours[i].n || dgm_str_eq(theirs[i], ours[i]))
            continue;
        dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, DGM_AT(NULL, keys[i]),
                 "%.*s is \"%.*s\" here and was \"%.*s\" before", DGM_P(keys[i]), shown(theirs[i]),
                 theirs[i].p, shown(ours[i]), ours[i].p);
        return true;
    }
    return false;
}

/* ---- order ------------------------------------------------------------------------------------------ */

static bool breaks_order(dgm_event_rule rule, const dgm_event_view *v, dgm_err *what)
{
    const dgm_event *e = v->event;
    bool is_over = v->has_task && dgm_state_is_terminal(v->state), is_broken = false;
    bool is_sealed = v->artifact == DGM_ARTIFACT_SEALED;
    dgm_str key = {0};
    switch ((int)rule) {
    case DGM_RULE_AFTER_TERMINAL: /* a last snapshot of the task as it ended is allowed */
        is_broken = is_over && !(e->kind == DGM_EVENT_TASK && e->task->status.state == v->state);
        break;
    case DGM_RULE_TRANSITION:
        key = DGM_STR("state");
        is_broken =
            v->has_task && !is_over && !dgm_state_may_become(v->state, e->status->status.state);
        break;
    case DGM_RULE_SECOND_TASK:
        is_broken = v->has_task && !dgm_state_is_terminal(e->task->status.state) &&
                    !dgm_state_is_interrupted(e->task->status.state);
        break;
    case DGM_RULE_MESSAGE_IN_TASK: is_broken = v->has_task; break;
    case DGM_RULE_UNKNOWN_APPEND:
        key = DGM_STR("append");
        is_broken = e->artifact->append == DGM_TRUE && v->artifact == DGM_ARTIFACT_NEW;
        break;
    case DGM_RULE_LAST_CHUNK_TWICE:
        key = DGM_STR("lastChunk");
        is_broken = is_sealed && e->artifact->last_chunk == DGM_TRUE;
        break;
    case DGM_RULE_AFTER_LAST_CHUNK:
        key = DGM_STR("artifact");
        is_broken = is_sealed && e->artifact->last_chunk != DGM_TRUE;
        break;
    }
    if (is_broken) {
        const dgm_at *in = rule == DGM_RULE_TRANSITION ? DGM_AT_LIT(NULL, "status") : NULL;
        dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, key.n ? DGM_AT(in, key) : NULL, "%s",
                 rows[rule].about);
    }
    return is_broken;
}

/* ---- content ---------------------------------------------------------------------------------------- */

static bool is_mistyped(const dgm_message *m, const dgm_at *at, dgm_err *what)
{
    dgm_str type = dgm_metadata_type(m->metadata);
    if (!type.p)
        return false;
    dgm_str implied = dgm_str_from(dgm_message_canonical_type(m));
    if (dgm_str_eq(type, implied) ||
        (dgm_str_is(type, "TextMessageChunkEvent") && dgm_str_is(implied, "TextMessageEndEvent")) ||
        (dgm_str_is(type, "ToolCallArgsEvent") && dgm_str_is(implied, "ToolCallStartEvent")))
        return false;
    dgm_fail(what, DGM_INVALID_AGENT_RESPONSE,
             DGM_AT_LIT(DGM_AT_LIT(at, "metadata"), "canonical_type"),
             "canonical_type is %.*s, but role and parts make it a %.*s", shown(type), type.p,
             DGM_P(implied));
    return true;
}

static bool breaks_content(dgm_event_rule rule, const dgm_event_view *v, dgm_err *what)
{
    const dgm_event *e = v->event;
    if (e->kind == DGM_EVENT_MESSAGE) /* of these rules it has one */
        return is_mistyped(e->message, NULL, what);
    const dgm_status *s = e->kind == DGM_EVENT_STATUS ? &e->status->status : &e->task->status;
    const dgm_at *in_status = DGM_AT_LIT(DGM_AT_LIT(NULL, "status"), "message");
    if (rule == DGM_RULE_CANONICAL_TYPE) {
        bool is_broken = s->message && is_mistyped(s->message, in_status, what);
        const dgm_at *history = DGM_AT_LIT(NULL, "history");
        size_t n = e->kind == DGM_EVENT_TASK ? e->task->history.n : 0;
        for (size_t i = 0; i < n && !is_broken; i++)
            is_broken = is_mistyped(&e->task->history.at[i], DGM_AT_I(history, i), what);
        return is_broken;
    }
    if (rule == DGM_RULE_FAILED_WITHOUT_ERROR) {
        if (s->state != DGM_STATE_FAILED ||
            dgm_metadata_error(e->kind == DGM_EVENT_STATUS ? e->status->metadata
                                                           : e->task->metadata)
                .n)
            return false;
        dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, DGM_AT_LIT(NULL, "metadata"), "%s",
                 rows[rule].about);
        return true;
    }
    /* Text of a working status without a type: it may be progress or the answer. */
    if (s->state != DGM_STATE_WORKING || !s->message || dgm_metadata_type(s->message->metadata).p)
        return false;
    const dgm_at *parts = DGM_AT_LIT(in_status, "parts");
    for (size_t i = 0; i < s->message->parts.n; i++) {
        if (s->message->parts.at[i].kind == DGM_PART_TEXT) {
            dgm_fail(what, DGM_INVALID_AGENT_RESPONSE, DGM_AT_I(parts, i), "%s", rows[rule].about);
            return true;
        }
    }
    return false;
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
    bool (*is_broken)(dgm_event_rule rule, const dgm_event_view *v, dgm_err *what);
} checks[DGM_N_EVENT_RULES] = {
    [DGM_RULE_REQUIRED_MEMBER] = {ARTIFACT, breaks_ids},
    [DGM_RULE_CHANGING_IDS] = {TASK | STATUS | ARTIFACT, breaks_ids},
    [DGM_RULE_AFTER_TERMINAL] = {TASK | MESSAGE | STATUS | ARTIFACT, breaks_order},
    [DGM_RULE_TRANSITION] = {STATUS, breaks_order},
    [DGM_RULE_SECOND_TASK] = {TASK, breaks_order},
    [DGM_RULE_MESSAGE_IN_TASK] = {MESSAGE, breaks_order},
    [DGM_RULE_UNKNOWN_APPEND] = {ARTIFACT, breaks_order},
    [DGM_RULE_LAST_CHUNK_TWICE] = {ARTIFACT, breaks_order},
    [DGM_RULE_AFTER_LAST_CHUNK] = {ARTIFACT, breaks_order},
    [DGM_RULE_WORKING_TEXT] = {TASK | STATUS, breaks_content},
    [DGM_RULE_CANONICAL_TYPE] = {TASK | MESSAGE | STATUS, breaks_content},
    [DGM_RULE_FAILED_WITHOUT_ERROR] = {TASK | STATUS, breaks_content},
};

bool dgm_event_breaks(dgm_event_rule rule, const dgm_event_view *v, dgm_err *ret_what)
{
    return checks[rule].kinds >> v->event->kind & 1 && checks[rule].is_broken(rule, v, ret_what);
}

unsigned dgm_event_broken_rules(const dgm_event_view *v, unsigned ignored)
{
    unsigned broken = 0;
    for (unsigned i = 0; i < DGM_N_EVENT_RULES; i++)
        if (checks[i].kinds >> v->event->kind & 1 && !(ignored >> i & 1) &&
            checks[i].is_broken((dgm_event_rule)i, v, NULL))
            broken |= 1u << i;
    return broken;
}
