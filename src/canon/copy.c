/* canon/copy.c - see copy.h. Structs are copied flat, then everything they point to is. */
#include "canon/copy.h"
#include "model/fold.h"
#include "json/json.h"

static void text(dgm_arena *a, dgm_str *s)
{
    if (s->p)
        *s = dgm_arena_dup(a, *s);
}

static void value(dgm_arena *a, const dgm_json **v)
{
    *v = *v ? dgm_json_copy(a, *v) : NULL;
}

static void texts(dgm_arena *a, dgm_strs *list)
{
    if (!list->at)
        return; /* absent is not empty */
    dgm_str *at = dgm_new_n(a, dgm_str, list->n);
    for (size_t i = 0; i < list->n; i++)
        at[i] = dgm_arena_dup(a, list->at[i]);
    list->at = at;
}

static void extra(dgm_arena *a, const dgm_extra **x)
{
    if (!*x)
        return;
    dgm_extra *to = dgm_new(a, dgm_extra);
    *to = **x;
    to->at = dgm_new_n(a, dgm_member, to->n);
    for (size_t i = 0; i < to->n; i++) {
        to->at[i] = (*x)->at[i];
        text(a, &to->at[i].key);
        value(a, &to->at[i].value);
    }
    *x = to;
}

/* A list with room of its own for its items, which are copied flat. Absent is not empty. */
#define OWN(a, list)                                                                               \
    do {                                                                                           \
        size_t size_ = (list)->n * sizeof *(list)->at;                                             \
        void *own_ = (list)->at ? dgm_arena_alloc_raw((a), size_) : NULL;                          \
        if (size_)                                                                                 \
            memcpy(own_, (list)->at, size_);                                                       \
        (list)->at = own_;                                                                         \
    } while (0)

/* ---- messages -------------------------------------------------------------------------------------------- */

static void parts(dgm_arena *a, dgm_canon_parts *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        dgm_canon_part *p = &list->at[i];
        text(a, &p->text);
        text(a, &p->source.value);
        text(a, &p->source.mime_type);
        text(a, &p->source.provider);
        extra(a, &p->source.extra);
        text(a, &p->id);
        value(a, &p->metadata);
        extra(a, &p->extra);
    }
}

static void content(dgm_arena *a, dgm_canon_content *c)
{
    text(a, &c->text);
    parts(a, &c->parts);
    value(a, &c->object);
}

static void calls(dgm_arena *a, dgm_canon_calls *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        dgm_canon_call *c = &list->at[i];
        text(a, &c->id);
        text(a, &c->name);
        text(a, &c->arguments);
        text(a, &c->encrypted_value);
        value(a, &c->metadata);
        extra(a, &c->extra);
        extra(a, &c->function_extra);
    }
}

static void messages(dgm_arena *a, dgm_canon_messages *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        dgm_canon_message *m = &list->at[i];
        text(a, &m->id);
        text(a, &m->name);
        content(a, &m->content);
        calls(a, &m->tool_calls);
        text(a, &m->tool_call_id);
        text(a, &m->error);
        text(a, &m->activity_type);
        text(a, &m->encrypted_value);
        text(a, &m->subagent_run_id);
        value(a, &m->metadata);
        extra(a, &m->extra);
    }
}

/* ---- a request ------------------------------------------------------------------------------------------- */

static void tools(dgm_arena *a, dgm_canon_tools *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        text(a, &list->at[i].name);
        text(a, &list->at[i].description);
        value(a, &list->at[i].parameters);
        value(a, &list->at[i].metadata);
        extra(a, &list->at[i].extra);
    }
}

static void contexts(dgm_arena *a, dgm_canon_contexts *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        text(a, &list->at[i].description);
        text(a, &list->at[i].value);
        extra(a, &list->at[i].extra);
    }
}

static void resumes(dgm_arena *a, dgm_canon_resumes *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        text(a, &list->at[i].interrupt_id);
        value(a, &list->at[i].payload);
        value(a, &list->at[i].metadata);
        extra(a, &list->at[i].extra);
    }
}

static void input(dgm_arena *a, dgm_canon_input **in)
{
    if (!*in)
        return;
    dgm_canon_input *to = dgm_new(a, dgm_canon_input);
    *to = **in;
    text(a, &to->thread_id);
    text(a, &to->run_id);
    text(a, &to->protocol_version);
    text(a, &to->parent_run_id);
    value(a, &to->state);
    messages(a, &to->messages);
    tools(a, &to->tools);
    contexts(a, &to->context);
    value(a, &to->forwarded_props);
    resumes(a, &to->resume);
    extra(a, &to->extra);
    *in = to;
}

/* ---- how a run ends ---------------------------------------------------------------------------------------- */

static void outcome(dgm_arena *a, dgm_canon_outcome *o)
{
    texts(a, &o->pending_tool_call_ids);
    texts(a, &o->interrupt_ids);
    OWN(a, &o->interrupts);
    for (size_t i = 0; i < o->interrupts.n; i++) {
        dgm_canon_interrupt *it = &o->interrupts.at[i];
        text(a, &it->id);
        text(a, &it->reason);
        text(a, &it->message);
        text(a, &it->tool_call_id);
        text(a, &it->expires_at);
        value(a, &it->response_schema);
        value(a, &it->metadata);
        text(a, &it->subagent_run_id);
        extra(a, &it->extra);
    }
    extra(a, &o->extra);
}

static void usages(dgm_arena *a, dgm_canon_usages *list)
{
    OWN(a, list);
    for (size_t i = 0; i < list->n; i++) {
        text(a, &list->at[i].provider);
        text(a, &list->at[i].model);
        extra(a, &list->at[i].extra);
    }
}

/* ---- events ------------------------------------------------------------------------------------------------ */

static void copy_text_event(dgm_arena *a, dgm_canon_event *e)
{
    text(a, &e->text.message_id);
    text(a, &e->text.delta);
    text(a, &e->text.name);
    parts(a, &e->text.parts);
}

static void copy_call_event(dgm_arena *a, dgm_canon_event *e)
{
    text(a, &e->call.tool_call_id);
    text(a, &e->call.name);
    text(a, &e->call.parent_message_id);
    text(a, &e->call.delta);
    value(a, &e->call.increment);
}

static void copy_run_event(dgm_arena *a, dgm_canon_event *e)
{
    if (e->kind == DGM_CANON_RUN_STARTED) {
        text(a, &e->run_started.thread_id);
        text(a, &e->run_started.run_id);
        text(a, &e->run_started.protocol_version);
        text(a, &e->run_started.parent_run_id);
        input(a, &e->run_started.input);
    } else if (e->kind == DGM_CANON_RUN_FINISHED) {
        text(a, &e->run_finished.thread_id);
        text(a, &e->run_finished.run_id);
        value(a, &e->run_finished.result);
        outcome(a, &e->run_finished.outcome);
        usages(a, &e->run_finished.usage);
    } else {
        text(a, &e->run_error.message);
        text(a, &e->run_error.code);
        text(a, &e->run_error.thread_id);
        text(a, &e->run_error.run_id);
        usages(a, &e->run_error.usage);
    }
}

static void copy_subagent_event(dgm_arena *a, dgm_canon_event *e)
{
    text(a, &e->subagent.name);
    text(a, &e->subagent.description);
    text(a, &e->subagent.parent_subagent_run_id);
    text(a, &e->subagent.parent_tool_call_id);
    text(a, &e->subagent.parent_message_id);
    value(a, &e->subagent.result);
    outcome(a, &e->subagent.outcome);
    text(a, &e->subagent.message);
    text(a, &e->subagent.code);
}

static void copy_activity_event(dgm_arena *a, dgm_canon_event *e)
{
    text(a, &e->activity.message_id);
    text(a, &e->activity.activity_type);
    value(a, &e->activity.content);
    value(a, &e->activity.patch);
}

static void copy_result_event(dgm_arena *a, dgm_canon_event *e)
{
    text(a, &e->result.message_id);
    text(a, &e->result.tool_call_id);
    content(a, &e->result.content);
    text(a, &e->result.role);
    value(a, &e->result.value);
}

static void copy_artifact_event(dgm_arena *a, dgm_canon_event *e)
{
    const dgm_artifact *from = e->artifact.artifact;
    dgm_artifact *to = dgm_new(a, dgm_artifact);
    dgm_message rest = {.parts = from->parts,
                        .metadata = from->metadata,
                        .extensions = from->extensions,
                        .extra = from->extra};
    rest = dgm_message_copy(a, &rest);
    *to = (dgm_artifact){.artifact_id = dgm_arena_dup(a, from->artifact_id),
                         .name = from->name,
                         .description = from->description,
                         .parts = rest.parts,
                         .metadata = rest.metadata,
                         .extensions = rest.extensions,
                         .extra = rest.extra};
    text(a, &to->name);
    text(a, &to->description);
    e->artifact.artifact = to;
    value(a, &e->artifact.value);
}

dgm_canon_event dgm_canon_copy_event(dgm_arena *a, const dgm_canon_event *from)
{
    dgm_canon_event e = *from;
    value(a, &e.raw_event);
    value(a, &e.metadata);
    text(a, &e.subagent_run_id);
    extra(a, &e.extra);
    switch (e.kind) {
    case DGM_CANON_NONE: break;
    case DGM_CANON_RUN_STARTED:
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR: copy_run_event(a, &e); break;
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED:
        text(a, &e.step.name);
        text(a, &e.step.thread_id);
        text(a, &e.step.run_id);
        break;
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END:
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_REASONING_END: copy_text_event(a, &e); break;
    case DGM_CANON_TOOL_CALL_START:
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END:
    case DGM_CANON_TOOL_CALL_CHUNK: copy_call_event(a, &e); break;
    case DGM_CANON_TOOL_CALL_RESULT: copy_result_event(a, &e); break;
    case DGM_CANON_STATE_SNAPSHOT: value(a, &e.state.snapshot); break;
    case DGM_CANON_STATE_DELTA: value(a, &e.state_delta.patch); break;
    case DGM_CANON_MESSAGES_SNAPSHOT:
        messages(a, &e.snapshot.messages);
        text(a, &e.snapshot.changed);
        break;
    case DGM_CANON_ACTIVITY_SNAPSHOT:
    case DGM_CANON_ACTIVITY_DELTA: copy_activity_event(a, &e); break;
    case DGM_CANON_REASONING_ENCRYPTED_VALUE:
        text(a, &e.encrypted.subtype);
        text(a, &e.encrypted.entity_id);
        text(a, &e.encrypted.encrypted_value);
        break;
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: copy_subagent_event(a, &e); break;
    case DGM_CANON_RAW:
        value(a, &e.raw.event);
        text(a, &e.raw.source);
        break;
    case DGM_CANON_CUSTOM:
        text(a, &e.custom.name);
        value(a, &e.custom.value);
        break;
    case DGM_CANON_ARTIFACT: copy_artifact_event(a, &e); break;
    }
    return e;
}
