/* canon/chunks_to_events.c - see chunks_to_events.h; the rules are those of the official client. */
#include "canon/chunks_to_events.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/list.h"

#include <stdlib.h>

/* A stream that chunks opened. Its texts are in `words`, one behind the other. */
struct lane {
    dgm_canon_kind opened_by; /* a CHUNK; NONE: nothing is open */
    dgm_str words[4];
    char *memory;
    dgm_canon_role role;
};
enum word { WHO, ID, NAME, PARENT };

struct dgm_chunks {
    struct lane *lanes;
    size_t n, cap;
};

dgm_chunks *dgm_chunks_new(void)
{
    return dgm_xcalloc(1, sizeof(dgm_chunks));
}

void dgm_chunks_free(dgm_chunks *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n; i++)
        free(x->lanes[i].memory);
    free(x->lanes);
    free(x);
}

static struct lane *lane_of(dgm_chunks *x, dgm_str who)
{
    for (size_t i = 0; i < x->n; i++) {
        if (dgm_str_eq(x->lanes[i].words[WHO], who))
            return &x->lanes[i];
    }
    return NULL;
}

/* ---- closing ----------------------------------------------------------------------------------------- */

static dgm_code close_lane(struct lane *l, dgm_canon_sink sink)
{
    dgm_canon_event e = {.subagent_run_id = l->words[WHO].n ? l->words[WHO] : (dgm_str){0}};
    switch ((int)l->opened_by) {
    case DGM_CANON_TEXT_MESSAGE_CHUNK: e.kind = DGM_CANON_TEXT_MESSAGE_END; break;
    case DGM_CANON_REASONING_MESSAGE_CHUNK: e.kind = DGM_CANON_REASONING_MESSAGE_END; break;
    case DGM_CANON_TOOL_CALL_CHUNK: e.kind = DGM_CANON_TOOL_CALL_END; break;
    default: return DGM_OK;
    }
    if (e.kind == DGM_CANON_TOOL_CALL_END)
        e.call.tool_call_id = l->words[ID];
    else
        e.text.message_id = l->words[ID];
    l->opened_by = DGM_CANON_NONE;
    return dgm_canon_emit(sink, &e);
}

dgm_code dgm_chunks_end(dgm_chunks *x, dgm_canon_sink sink)
{
    dgm_code rc;
    for (size_t i = 0; i < x->n; i++) {
        if ((rc = close_lane(&x->lanes[i], sink)))
            return rc;
    }
    return DGM_OK;
}

/* An event that is not a chunk closes all lanes, the lane of its run, or no lane. */
static dgm_code close_before(dgm_chunks *x, const dgm_canon_event *e, dgm_canon_sink sink)
{
    switch (e->kind) {
    case DGM_CANON_RUN_STARTED:
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR:
    case DGM_CANON_MESSAGES_SNAPSHOT: return dgm_chunks_end(x, sink);
    case DGM_CANON_NONE:
    case DGM_CANON_RAW:
    case DGM_CANON_ACTIVITY_SNAPSHOT:
    case DGM_CANON_ACTIVITY_DELTA:
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_TOOL_CALL_CHUNK:
    case DGM_CANON_REASONING_MESSAGE_CHUNK: return DGM_OK;
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED:
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END:
    case DGM_CANON_TOOL_CALL_START:
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END:
    case DGM_CANON_TOOL_CALL_RESULT:
    case DGM_CANON_STATE_SNAPSHOT:
    case DGM_CANON_STATE_DELTA:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END:
    case DGM_CANON_REASONING_END:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR:
    case DGM_CANON_CUSTOM:
    case DGM_CANON_ARTIFACT: break;
    }
    struct lane *l = lane_of(x, e->subagent_run_id);
    return l ? close_lane(l, sink) : DGM_OK;
}

/* ---- chunks ------------------------------------------------------------------------------------------- */

static bool is_call(const dgm_canon_event *e)
{
    return e->kind == DGM_CANON_TOOL_CALL_CHUNK;
}

static dgm_str from_chunks_id_of(const dgm_canon_event *e)
{
    return is_call(e) ? e->call.tool_call_id : e->text.message_id;
}

static dgm_code open_lane(dgm_chunks *x, struct lane *l, const dgm_canon_event *e,
                          dgm_canon_sink sink, dgm_err *err)
{
    bool call = is_call(e);
    const char *id_name = call ? "toolCallId" : "messageId";
    if (!from_chunks_id_of(e).p)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(id_name)),
                        "missing: the first %s needs it", dgm_canon_kind_name(e->kind));
    if (call && !e->call.name.p)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "toolCallName"),
                        "missing: the first %s needs it", dgm_canon_kind_name(e->kind));
    if (!l) {
        if (x->n == DGM_MAX_LIST_ITEMS)
            return dgm_fail(err, DGM_TOO_LARGE, NULL,
                            "more subagents than the limit list_items of %d", DGM_MAX_LIST_ITEMS);
        x->lanes = dgm_list_reserve(x->lanes, x->n, &x->cap, sizeof *x->lanes);
        l = &x->lanes[x->n++];
        *l = (struct lane){0};
    }
    dgm_str from[4] = {e->subagent_run_id, from_chunks_id_of(e), call ? e->call.name : e->text.name,
                       call ? e->call.parent_message_id : (dgm_str){0}};
    size_t n = 1;
    for (int i = 0; i < 4; i++)
        n += from[i].n;
    char *memory = dgm_xmalloc(n), *p = memory;
    for (int i = 0; i < 4; i++) {
        if (from[i].n)
            memcpy(p, from[i].p, from[i].n);
        l->words[i] = (dgm_str){from[i].p ? p : NULL, from[i].n};
        p += from[i].n;
    }
    free(l->memory);
    l->memory = memory;
    l->opened_by = e->kind;
    l->role = call ? DGM_CANON_ROLE_NONE : e->text.role;
    dgm_canon_event start = {.subagent_run_id = e->subagent_run_id, .timestamp = e->timestamp};
    if (call) {
        start.kind = DGM_CANON_TOOL_CALL_START;
        start.call.tool_call_id = e->call.tool_call_id;
        start.call.name = e->call.name;
        start.call.parent_message_id = e->call.parent_message_id;
    } else {
        bool text = e->kind == DGM_CANON_TEXT_MESSAGE_CHUNK;
        start.kind = text ? DGM_CANON_TEXT_MESSAGE_START : DGM_CANON_REASONING_MESSAGE_START;
        start.text.message_id = e->text.message_id;
        start.text.name = e->text.name;
        start.text.role = text ? e->text.role : DGM_CANON_REASONING;
    }
    return dgm_canon_emit(sink, &start);
}

/* A later chunk may repeat the members of the first chunk, but not with other values. */
static dgm_code check_same(const struct lane *l, const dgm_canon_event *e, dgm_err *err)
{
    bool call = is_call(e);
    dgm_str name = call ? e->call.name : e->text.name;
    dgm_str parent = call ? e->call.parent_message_id : (dgm_str){0};
    const char *what = name.p && !dgm_str_eq(name, l->words[NAME])
                           ? (call ? "toolCallName" : "name")
                       : parent.p && !dgm_str_eq(parent, l->words[PARENT]) ? "parentMessageId"
                                                                           : NULL;
    if (!call && e->text.role && e->text.role != l->role &&
        !(e->text.role == DGM_CANON_ASSISTANT && !l->role))
        what = "role";
    if (!what)
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(what)),
                    "does not match the chunk that opened \"%.*s\"",
                    (int)(l->words[ID].n < 60 ? l->words[ID].n : 60), l->words[ID].p);
}

static dgm_code feed_chunk(dgm_chunks *x, const dgm_canon_event *e, dgm_canon_sink sink,
                           dgm_err *err)
{
    struct lane *l = lane_of(x, e->subagent_run_id);
    dgm_code rc;
    bool goes_on = l && l->opened_by == e->kind &&
                   (!from_chunks_id_of(e).p || dgm_str_eq(from_chunks_id_of(e), l->words[ID]));
    if (goes_on) {
        if ((rc = check_same(l, e, err)))
            return rc;
    } else {
        if ((l && (rc = close_lane(l, sink))) || (rc = open_lane(x, l, e, sink, err)))
            return rc;
        l = lane_of(x, e->subagent_run_id);
    }
    dgm_canon_event content = *e;
    if (is_call(e)) {
        content.kind = DGM_CANON_TOOL_CALL_ARGS;
        content.call.tool_call_id = l->words[ID];
    } else {
        content.kind = e->kind == DGM_CANON_TEXT_MESSAGE_CHUNK
                           ? DGM_CANON_TEXT_MESSAGE_CONTENT
                           : DGM_CANON_REASONING_MESSAGE_CONTENT;
        content.text.message_id = l->words[ID];
    }
    dgm_str delta = is_call(e) ? e->call.delta : e->text.delta;
    return delta.n || e->metadata || e->raw_event ? dgm_canon_emit(sink, &content) : DGM_OK;
}

dgm_code dgm_chunks_feed(dgm_chunks *x, const dgm_canon_event *event, dgm_canon_sink sink,
                         dgm_err *err)
{
    dgm_code rc;
    if (event->kind == DGM_CANON_TEXT_MESSAGE_CHUNK || event->kind == DGM_CANON_TOOL_CALL_CHUNK ||
        event->kind == DGM_CANON_REASONING_MESSAGE_CHUNK)
        return feed_chunk(x, event, sink, err);
    if ((rc = close_before(x, event, sink)))
        return rc;
    return dgm_canon_emit(sink, event);
}
