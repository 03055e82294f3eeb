/* canon/messages_to_events.c - see messages_to_events.h. */
#include "canon/messages_to_events.h"
#include "base/buf.h"
#include "json/json.h"

struct saying {
    dgm_arena *a;
    dgm_canon_sink sink;
    dgm_code rc;
};

static void from_messages_say(struct saying *s, const dgm_canon_event *e)
{
    if (!s->rc)
        s->rc = dgm_canon_emit(s->sink, e);
}

static bool has_files(const dgm_canon_content *c)
{
    for (size_t i = 0; c->kind == DGM_CANON_CONTENT_PARTS && i < c->parts.n; i++) {
        if (c->parts.at[i].kind != DGM_CANON_PART_TEXT)
            return true;
    }
    return false;
}

static void say_text(struct saying *s, const dgm_canon_message *m)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START, .metadata = m->metadata};
    dgm_str text = dgm_canon_content_text(s->a, &m->content);
    bool files = has_files(&m->content);
    if (!text.n && !files)
        return;
    e.subagent_run_id = m->subagent_run_id;
    e.text.message_id = m->id;
    e.text.role = m->role;
    e.text.name = m->name;
    from_messages_say(s, &e);
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.metadata = NULL;
    e.text.name = (dgm_str){0};
    e.text.delta = text;
    e.text.whole = true;
    if (files)
        e.text.parts = m->content.parts;
    from_messages_say(s, &e);
    e = (dgm_canon_event){.kind = DGM_CANON_TEXT_MESSAGE_END,
                          .subagent_run_id = m->subagent_run_id};
    e.text.message_id = m->id;
    from_messages_say(s, &e);
}

static void say_call(struct saying *s, const dgm_canon_message *m, const dgm_canon_call *call)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START,
                         .metadata = call->metadata,
                         .subagent_run_id = m->subagent_run_id};
    e.call.tool_call_id = call->id;
    e.call.name = call->name;
    e.call.parent_message_id = m->id;
    from_messages_say(s, &e);
    e.kind = DGM_CANON_TOOL_CALL_ARGS;
    e.metadata = NULL;
    e.call.name = e.call.parent_message_id = (dgm_str){0};
    e.call.delta = call->arguments;
    e.call.whole = true;
    if (call->arguments.n)
        from_messages_say(s, &e);
    e.kind = DGM_CANON_TOOL_CALL_END;
    e.call.delta = (dgm_str){0};
    e.call.whole = false;
    from_messages_say(s, &e);
    if (!call->encrypted_value.n)
        return;
    e = (dgm_canon_event){.kind = DGM_CANON_REASONING_ENCRYPTED_VALUE};
    e.encrypted.subtype = DGM_STR("tool-call");
    e.encrypted.entity_id = call->id;
    e.encrypted.encrypted_value = call->encrypted_value;
    from_messages_say(s, &e);
}

static void say_result(struct saying *s, const dgm_canon_message *m)
{
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_RESULT,
                         .metadata = m->metadata,
                         .subagent_run_id = m->subagent_run_id};
    e.result.message_id = m->id;
    e.result.tool_call_id = m->tool_call_id;
    e.result.content = m->content;
    if (m->content.kind == DGM_CANON_CONTENT_ABSENT)
        e.result.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = DGM_STR("")};
    e.result.role = DGM_STR("tool");
    if (m->error.p && !e.metadata)
        e.metadata = dgm_json_parse_trusted(s->a, DGM_STR("{\"" DGM_META_ERROR "\":true}"));
    from_messages_say(s, &e);
}

static void say_reasoning(struct saying *s, const dgm_canon_message *m)
{
    static const dgm_canon_kind kinds[] = {
        DGM_CANON_REASONING_START, DGM_CANON_REASONING_MESSAGE_START,
        DGM_CANON_REASONING_MESSAGE_CONTENT, DGM_CANON_REASONING_MESSAGE_END,
        DGM_CANON_REASONING_END};
    dgm_str text = dgm_canon_content_text(s->a, &m->content);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        dgm_canon_event e = {.kind = kinds[i], .subagent_run_id = m->subagent_run_id};
        e.text.message_id = m->id;
        if (kinds[i] == DGM_CANON_REASONING_MESSAGE_START)
            e.text.role = DGM_CANON_REASONING;
        if (kinds[i] == DGM_CANON_REASONING_MESSAGE_CONTENT) {
            e.text.delta = text;
            e.text.whole = true;
        }
        if (text.n || kinds[i] == DGM_CANON_REASONING_START || kinds[i] == DGM_CANON_REASONING_END)
            from_messages_say(s, &e);
    }
    if (!m->encrypted_value.n)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_REASONING_ENCRYPTED_VALUE};
    e.encrypted.subtype = DGM_STR("message");
    e.encrypted.entity_id = m->id;
    e.encrypted.encrypted_value = m->encrypted_value;
    from_messages_say(s, &e);
}

static void say_activity(struct saying *s, const dgm_canon_message *m)
{
    dgm_canon_event e = {.kind = DGM_CANON_ACTIVITY_SNAPSHOT,
                         .subagent_run_id = m->subagent_run_id};
    e.activity.message_id = m->id;
    e.activity.activity_type = m->activity_type;
    e.activity.content = m->content.object;
    from_messages_say(s, &e);
}

static void say_message(struct saying *s, const dgm_canon_message *m)
{
    switch (m->role) {
    case DGM_CANON_TOOL: say_result(s, m); return;
    case DGM_CANON_REASONING: say_reasoning(s, m); return;
    case DGM_CANON_ACTIVITY: say_activity(s, m); return;
    case DGM_CANON_ROLE_NONE:
    case DGM_CANON_DEVELOPER:
    case DGM_CANON_SYSTEM:
    case DGM_CANON_ASSISTANT:
    case DGM_CANON_USER: break;
    }
    say_text(s, m);
    for (size_t i = 0; i < m->tool_calls.n; i++)
        say_call(s, m, &m->tool_calls.at[i]);
}

dgm_code dgm_messages_to_events(dgm_arena *a, const dgm_canon_messages *messages, dgm_mint *mint,
                                bool with_files, dgm_canon_sink sink)
{
    struct saying s = {.a = a, .sink = sink};
    dgm_canon_messages named = {dgm_new_n(a, dgm_canon_message, messages->n), messages->n};
    bool files = false;
    for (size_t i = 0; i < named.n; i++) {
        named.at[i] = messages->at[i];
        if (!named.at[i].id.n)
            named.at[i].id = dgm_mint_id(mint, a);
        files = files || has_files(&named.at[i].content);
        say_message(&s, &named.at[i]);
    }
    if (with_files && files) {
        dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
        e.snapshot.messages = named;
        from_messages_say(&s, &e);
    }
    return s.rc;
}
