/*
 * test_dump.h - canonical events as lines that a person can read, and records from JSON lines.
 *
 * A line is the kind without what it repeats, then its members: "TEXT_MESSAGE_CONTENT m1 \"Hi\"".
 */
#pragma once

#include "base/limits.h"
#include "canon/canon.h"
#include "model/form.h"
#include "support/check.h"
#include "json/json.h"

struct dump {
    dgm_buf b;
};

static inline void dump_str(dgm_buf *b, const char *name, dgm_str s)
{
    if (s.p)
        dgm_buf_printf(b, " %s%.*s", name, DGM_P(s));
}

static inline void dump_text(dgm_buf *b, dgm_str s)
{
    dgm_buf_add_char(b, ' ');
    dgm_json_put_str(b, s);
}

static inline void dump_json(dgm_buf *b, const char *name, const dgm_json *v)
{
    if (v) {
        dgm_buf_printf(b, " %s", name);
        dgm_json_put(b, v);
    }
}

static inline void dump_content(dgm_buf *b, const dgm_canon_content *c)
{
    if (c->kind == DGM_CANON_CONTENT_TEXT)
        dump_text(b, c->text);
    else if (c->kind == DGM_CANON_CONTENT_PARTS)
        dgm_buf_printf(b, " %zu parts", c->parts.n);
    else if (c->kind == DGM_CANON_CONTENT_OBJECT)
        dump_json(b, "", c->object);
}

static inline void dump_messages(dgm_buf *b, const dgm_canon_messages *list)
{
    static const char *const roles[] = {"",     "developer", "system",    "assistant",
                                        "user", "tool",      "reasoning", "activity"};
    for (size_t i = 0; i < list->n; i++) {
        const dgm_canon_message *m = &list->at[i];
        dgm_buf_printf(b, " {%s %.*s", roles[m->role], DGM_P(m->id));
        dump_content(b, &m->content);
        for (size_t k = 0; k < m->tool_calls.n; k++)
            dgm_buf_printf(b, " %.*s=%.*s(%.*s)", DGM_P(m->tool_calls.at[k].id),
                           DGM_P(m->tool_calls.at[k].name), DGM_P(m->tool_calls.at[k].arguments));
        dump_str(b, "of ", m->tool_call_id);
        dgm_buf_add_char(b, '}');
    }
}

static inline void dump_outcome(dgm_buf *b, const dgm_canon_outcome *o)
{
    static const char *const names[] = {"", " success", " interrupt", " cancelled", " suspended"};
    dgm_buf_add_str(b, dgm_str_from(names[o->kind]));
    for (size_t i = 0; i < o->pending_tool_call_ids.n; i++)
        dump_str(b, "pending=", o->pending_tool_call_ids.at[i]);
    for (size_t i = 0; i < o->interrupts.n; i++) {
        const dgm_canon_interrupt *t = &o->interrupts.at[i];
        dgm_buf_printf(b, " {%.*s %.*s", DGM_P(t->id), DGM_P(t->reason));
        if (t->message.p)
            dump_text(b, t->message);
        dump_json(b, "", t->metadata);
        dgm_buf_add_char(b, '}');
    }
}

static inline void dump_usage(dgm_buf *b, const dgm_canon_usages *usages)
{
    for (size_t i = 0; i < usages->n; i++) {
        const dgm_canon_usage *u = &usages->at[i];
        dump_str(b, "model=", u->model);
        if (u->input_tokens.set)
            dgm_buf_printf(b, " in=%lld", (long long)u->input_tokens.value);
        if (u->output_tokens.set)
            dgm_buf_printf(b, " out=%lld", (long long)u->output_tokens.value);
        if (u->reasoning_tokens.set)
            dgm_buf_printf(b, " reasoning=%lld", (long long)u->reasoning_tokens.value);
    }
}

static inline void dump_members(dgm_buf *b, const dgm_canon_event *e)
{
    switch (e->kind) {
    case DGM_CANON_NONE: break;
    case DGM_CANON_RUN_STARTED:
        dump_str(b, "", e->run_started.thread_id);
        dump_str(b, "", e->run_started.run_id);
        break;
    case DGM_CANON_RUN_FINISHED:
        dump_str(b, "", e->run_finished.thread_id);
        dump_str(b, "", e->run_finished.run_id);
        dump_outcome(b, &e->run_finished.outcome);
        dump_usage(b, &e->run_finished.usage);
        break;
    case DGM_CANON_RUN_ERROR:
        dump_str(b, "", e->run_error.code);
        dump_text(b, e->run_error.message);
        dump_usage(b, &e->run_error.usage);
        break;
    case DGM_CANON_STEP_STARTED:
    case DGM_CANON_STEP_FINISHED: dump_str(b, "", e->step.name); break;
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_REASONING_START:
    case DGM_CANON_REASONING_END:
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_END:
    case DGM_CANON_TEXT_MESSAGE_END:
        dump_str(b, "", e->text.message_id);
        if (e->text.role == DGM_CANON_USER)
            dgm_buf_add_lit(b, " user");
        break;
    case DGM_CANON_TEXT_MESSAGE_CHUNK:
    case DGM_CANON_REASONING_MESSAGE_CHUNK:
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
        dump_str(b, "", e->text.message_id);
        dump_text(b, e->text.delta);
        if (e->text.whole)
            dgm_buf_add_lit(b, " whole");
        break;
    case DGM_CANON_TOOL_CALL_START:
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END:
    case DGM_CANON_TOOL_CALL_CHUNK:
        dump_str(b, "", e->call.tool_call_id);
        dump_str(b, "", e->call.name);
        dump_str(b, "parent=", e->call.parent_message_id);
        if (e->call.delta.p)
            dump_text(b, e->call.delta);
        dump_json(b, "+", e->call.increment);
        if (e->call.whole)
            dgm_buf_add_lit(b, " whole");
        break;
    case DGM_CANON_TOOL_CALL_RESULT:
        dump_str(b, "", e->result.message_id);
        dump_str(b, "", e->result.tool_call_id);
        dump_content(b, &e->result.content);
        break;
    case DGM_CANON_STATE_SNAPSHOT: dump_json(b, "", e->state.snapshot); break;
    case DGM_CANON_STATE_DELTA: dump_json(b, "", e->state_delta.patch); break;
    case DGM_CANON_MESSAGES_SNAPSHOT:
        dump_messages(b, &e->snapshot.messages);
        dump_str(b, "changed=", e->snapshot.changed);
        break;
    case DGM_CANON_ACTIVITY_SNAPSHOT:
    case DGM_CANON_ACTIVITY_DELTA:
        dump_str(b, "", e->activity.message_id);
        dump_str(b, "", e->activity.activity_type);
        dump_json(b, "", e->activity.content);
        break;
    case DGM_CANON_REASONING_ENCRYPTED_VALUE: dump_str(b, "", e->encrypted.entity_id); break;
    case DGM_CANON_SUBAGENT_STARTED:
    case DGM_CANON_SUBAGENT_FINISHED:
    case DGM_CANON_SUBAGENT_ERROR: dump_str(b, "", e->subagent.name); break;
    case DGM_CANON_RAW: dump_json(b, "", e->raw.event); break;
    case DGM_CANON_ARTIFACT: dgm_buf_add_char(b, ' '), dgm_canon_put_artifact(b, e); break;
    case DGM_CANON_CUSTOM:
        dump_str(b, "", e->custom.name);
        dump_json(b, "", e->custom.value);
        break;
    }
}

/* A dgm_on_canon; arg is a struct dump. */
static inline dgm_code dump_event(void *arg, const dgm_canon_event *e)
{
    dgm_buf *b = &((struct dump *)arg)->b;
    dgm_buf_add_str(b, dgm_str_from(dgm_canon_kind_name(e->kind)));
    dump_members(b, e);
    dump_json(b, "metadata=", e->metadata);
    dump_str(b, "by=", e->subagent_run_id);
    dgm_buf_add_char(b, '\n');
    return DGM_OK;
}

/* A record's text, with ids made up where they are missing. */
static inline void read_record(dgm_arena *a, dgm_mint *mint, dgm_str text, dgm_event *ret)
{
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = mint, .err = &err};
    yyjson_val *v;
    check_ok(dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &err), err);
    check_ok(dgm_form_read_event(&r, v, NULL, ret), err);
}
