/* lib/agent/agent_options.c - a configuration from the options of a loop; a message from a prompt. */
#include "base/ids.h"
#include "base/limits.h"
#include "lib/agent/agent_int.h"

#include <dragoman/document.h>

#define OWN_AGENT "agent" /* the id of an agent that has only settings */

/* ---- the configuration --------------------------------------------------------------------------------------- */

static dgm_code put_object(dgm_buf *b, dgm_str text, const char *what, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    dgm_code rc = dgm_json_read(a, text, DGM_MAX_CONFIG_BYTES, "config_bytes", &v, err);
    if (rc)
        return rc;
    if (!yyjson_is_obj(v))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: expected a JSON object, got %s", what,
                        dgm_json_type(v));
    dgm_json_put(b, v);
    return DGM_OK;
}

/* {"agents":[{"id":"agent","type":"llm","settings":{...}}],"mcp":{...}} */
static dgm_code settings_to_config(const dgm_agent_loop_options *o, dgm_buf *b, dgm_err *err)
{
    dgm_code rc;
    dgm_buf_add_lit(b, "{\"agents\":[{\"id\":\"" OWN_AGENT "\",\"type\":\"llm\",\"settings\":");
    if ((rc = put_object(b, o->settings, "settings", err)))
        return rc;
    dgm_buf_add_lit(b, "}]");
    if (o->mcp.p) {
        dgm_buf_add_lit(b, ",\"mcp\":");
        if ((rc = put_object(b, o->mcp, "mcp", err)))
            return rc;
    }
    dgm_buf_add_char(b, '}');
    return DGM_OK;
}

/* The settings as the caller wrote them: without the place where settings_to_config() put them. */
static dgm_str caller_pointer(const dgm_agent_loop_options *o, dgm_str pointer)
{
    dgm_str place = DGM_STR("/agents/0/settings");
    if (!o->settings.p || !dgm_str_starts(pointer, place))
        return pointer;
    return (dgm_str){pointer.p + place.n, pointer.n - place.n};
}

static dgm_code report_finding(const dgm_agent_loop_options *o, const dgm_config *c, dgm_err *err)
{
    const dgm_config_finding *f = c->findings;
    while (f->is_warning)
        f++;
    dgm_fail(err, DGM_BAD_PARAMS, NULL, "%.*s%s%.*s", DGM_P(f->what), f->todo.n ? ": " : "",
             DGM_P(f->todo));
    if (err) {
        dgm_str pointer = caller_pointer(o, f->pointer);
        snprintf(err->at, sizeof err->at, "%.*s", DGM_P(pointer));
        err->line = o->settings.p ? 0 : f->line;
        err->column = o->settings.p ? 0 : f->column;
    }
    return DGM_BAD_PARAMS;
}

static bool has_agent(const dgm_config *c, const char *id)
{
    size_t i = 0;
    while (i < c->agents.n && !dgm_str_eq(c->agents.at[i].id, dgm_str_from(id)))
        i++;
    return i < c->agents.n;
}

dgm_code dgm_agent_load_config(const dgm_agent_loop_options *o, dgm_config **ret_config,
                               dgm_err *err)
{
    dgm_config_source source = {.file = o->config_file ? o->config_file : "config.yaml",
                                .text = o->config,
                                .store = o->store ? o->store : "memory:",
                                .check_agent = dgm_agents_check};
    dgm_buf b;
    dgm_code rc;
    if (!!o->settings.p + !!o->config.p + !!o->config_file != 1)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "expected exactly one of settings, config and config_file");
    if (o->mcp.p && !o->settings.p)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "mcp goes with settings: a configuration has a member mcp of its own");
    dgm_buf_init(&b, 3 * DGM_MAX_CONFIG_BYTES);
    if (o->settings.p && (rc = settings_to_config(o, &b, err))) {
        dgm_buf_done(&b);
        return rc;
    }
    if (o->settings.p)
        source = (dgm_config_source){.file = "settings.json",
                                     .text = dgm_buf_str(&b),
                                     .store = source.store,
                                     .check_agent = source.check_agent};
    dgm_auto(dgm_config_free) dgm_config *c = dgm_config_load(&source);
    dgm_buf_done(&b);
    if (c->n_errors)
        return report_finding(o, c, err);
    if (o->agent && !has_agent(c, o->agent))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "unknown agent \"%s\"", o->agent);
    c->loops = 1;
    *ret_config = dgm_take(c);
    return DGM_OK;
}

/* ---- the message --------------------------------------------------------------------------------------------- */

dgm_code dgm_agent_check_id(dgm_str id, const char *what, dgm_err *err)
{
    if (!id.p || !id.n || id.n > DGM_MAX_ID_BYTES || dgm_utf8_check(id) != id.n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "invalid %s: expected UTF-8 text of 1 to %d bytes", what, DGM_MAX_ID_BYTES);
    return DGM_OK;
}

static dgm_message *message_of_prompt(dgm_arena *a, dgm_str prompt)
{
    dgm_message *m = dgm_new(a, dgm_message);
    m->parts = (dgm_parts){dgm_new(a, dgm_part), 1};
    m->parts.at[0] = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_arena_dup(a, prompt)};
    return m;
}

/* The decoder derives ids that are missing from the text: the same text twice would be the same message. */
static bool json_has_id(dgm_str json)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *v;
    return !dgm_json_read(a, json, DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) &&
           dgm_json_str_member(v, "messageId").n;
}

/* Its structs are freed with the document, so it is written and read again. */
static dgm_code message_of_json(dgm_arena *a, dgm_str json, dgm_message **ret, dgm_err *err)
{
    dgm_convert_options to = {.size = sizeof to};
    dgm_document *d = NULL;
    dgm_code rc = dgm_document_decode(&to, json.p, json.n, &d, err);
    if (!rc && (dgm_document_count(d) != 1 || dgm_document_kind(d, 0) != DGM_OBJECT_MESSAGE))
        rc = dgm_fail(err, DGM_BAD_PARAMS, NULL, "message: expected one A2A message");
    if (!rc) {
        dgm_event event = {.kind = DGM_EVENT_MESSAGE, .message = dgm_document_object(d, 0)};
        dgm_record *r = NULL;
        dgm_buf scratch;
        dgm_buf_init(&scratch, SIZE_MAX); /* a record has a limit */
        rc = dgm_record_new(&event, (dgm_record_head){.seq = 1}, &scratch, &r, err);
        if (!rc && !(rc = dgm_record_event(r, a, &event, err)))
            *ret = event.message;
        if (!rc && !json_has_id(json))
            (*ret)->message_id = (dgm_str){0};
        dgm_record_unref(r);
        dgm_buf_done(&scratch);
    }
    dgm_document_free(d);
    return rc;
}

dgm_code dgm_agent_make_message(dgm_arena *a, dgm_str prompt, const dgm_agent_execute_options *o,
                                dgm_message **ret_message, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    dgm_message *m = NULL;
    if (!prompt.p == !o->message.p)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected a prompt or a message, one of them");
    if (prompt.n > DGM_MAX_RECORD_BYTES / 2)
        return dgm_fail(err, DGM_TOO_LARGE, NULL, "the prompt is larger than 4 MiB");
    if (prompt.p && dgm_utf8_check(prompt) != prompt.n)
        return dgm_fail(err, DGM_PARSE, NULL, "the prompt is not valid UTF-8");
    if (o->context_id.p && (rc = dgm_agent_check_id(o->context_id, "context_id", err)))
        return rc;
    if (o->task_id.p && (rc = dgm_agent_check_id(o->task_id, "task_id", err)))
        return rc;
    if (prompt.p)
        m = message_of_prompt(a, prompt);
    else if ((rc = message_of_json(a, o->message, &m, err)))
        return rc;
    m->role = DGM_ROLE_USER;
    if (!m->message_id.n)
        m->message_id = dgm_uuid7_in(a);
    if (o->context_id.p)
        m->context_id = dgm_arena_dup(a, o->context_id);
    if (o->task_id.p)
        m->task_id = dgm_arena_dup(a, o->task_id);
    *ret_message = m;
    return DGM_OK;
}
