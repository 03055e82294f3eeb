/*
 * wire/responses/responses_check.c - is the body of a request of the types that OpenAI's document says?
 *
 * The decoder reads what many peers send and treats a member of a wrong type as absent. A server that did so would run
 * an agent on half of what its caller meant, so a server checks the body first: see json/check.h.
 */
#include "wire/check_rules.h"
#include "wire/responses/responses_int.h"

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static const dgm_json_rule text_part[] = {RULE("type", TEXT, .is_required = true),
                                          RULE("text", TEXT, .is_required = true),
                                          RULE("annotations", LIST, .of = OBJECT, PARTS),
                                          RULE("logprobs", LIST, .of = OBJECT, PARTS), END};
static const dgm_json_rule refusal_part[] = {RULE("type", TEXT, .is_required = true),
                                             RULE("refusal", TEXT, .is_required = true), END};
static const dgm_json_rule image_part[] = {RULE("type", TEXT, .is_required = true),
                                           RULE("image_url", TEXT), RULE("file_id", TEXT),
                                           RULE("detail", TEXT), END};
static const dgm_json_rule file_part[] = {RULE("type", TEXT, .is_required = true),
                                          RULE("file_data", TEXT),
                                          RULE("file_url", TEXT),
                                          RULE("file_id", TEXT),
                                          RULE("filename", TEXT),
                                          RULE("detail", TEXT),
                                          END};
static const dgm_json_rule sound[] = {RULE("data", TEXT, .is_required = true),
                                      RULE("format", TEXT, .is_required = true), END};
static const dgm_json_rule audio_part[] = {RULE("type", TEXT, .is_required = true),
                                           RULE("input_audio", OBJECT, sound, .is_required = true),
                                           END};
static const dgm_json_rule typed[] = {RULE("type", TEXT, .is_required = true), END};

static const dgm_json_rule *responses_check_pick_part(yyjson_val *v)
{
    static const struct {
        const char *type;
        const dgm_json_rule *rules;
    } parts[] = {{"input_text", text_part},   {"output_text", text_part},
                 {"refusal", refusal_part},   {"input_image", image_part},
                 {"input_file", file_part},   {"input_audio", audio_part},
                 {"summary_text", text_part}, {"reasoning_text", text_part}};
    dgm_str type = dgm_json_str_member(v, "type");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (dgm_str_eq(type, dgm_str_from(parts[i].type)))
            return parts[i].rules;
    }
    return typed;
}

/* ---- items ------------------------------------------------------------------------------------------------------ */

static const dgm_json_rule message[] = {RULE("type", TEXT),
                                        RULE("role", TEXT, .is_required = true),
                                        RULE("content", TEXT | LIST, .of = OBJECT,
                                             .pick = responses_check_pick_part, .is_required = true,
                                             PARTS),
                                        RULE("id", TEXT),
                                        RULE("status", TEXT),
                                        RULE("phase", TEXT),
                                        END};
static const dgm_json_rule call[] = {RULE("call_id", TEXT, .is_required = true),
                                     RULE("name", TEXT, .is_required = true),
                                     RULE("arguments", TEXT, .is_required = true),
                                     RULE("id", TEXT),
                                     RULE("status", TEXT),
                                     END};
static const dgm_json_rule custom_call[] = {
    RULE("call_id", TEXT, .is_required = true), RULE("name", TEXT, .is_required = true),
    RULE("input", TEXT, .is_required = true), RULE("id", TEXT), END};
static const dgm_json_rule output[] = {RULE("call_id", TEXT, .is_required = true),
                                       RULE("output", TEXT | LIST, .of = OBJECT,
                                            .pick = responses_check_pick_part, .is_required = true,
                                            PARTS),
                                       RULE("id", TEXT), RULE("status", TEXT), END};
static const dgm_json_rule reasoning_item[] = {
    RULE("id", TEXT),
    RULE("summary", LIST, .of = OBJECT, .pick = responses_check_pick_part, .is_required = true,
         PARTS),
    RULE("content", LIST, .of = OBJECT, .pick = responses_check_pick_part, PARTS),
    RULE("encrypted_content", TEXT), END};
static const dgm_json_rule mcp[] = {RULE("id", TEXT),
                                    RULE("server_label", TEXT, .is_required = true),
                                    RULE("name", TEXT, .is_required = true),
                                    RULE("arguments", TEXT, .is_required = true),
                                    RULE("output", TEXT),
                                    END};
static const dgm_json_rule approval_request[] = {RULE("id", TEXT, .is_required = true),
                                                 RULE("server_label", TEXT), RULE("name", TEXT),
                                                 RULE("arguments", TEXT), END};
static const dgm_json_rule approval_response[] = {
    RULE("approval_request_id", TEXT, .is_required = true),
    RULE("approve", BOOL, .is_required = true), RULE("reason", TEXT), RULE("id", TEXT), END};
static const dgm_json_rule reference[] = {RULE("type", TEXT), RULE("id", TEXT, .is_required = true),
                                          END};

static const dgm_json_rule *pick_item(yyjson_val *v)
{
    static const struct {
        const char *type;
        const dgm_json_rule *rules;
    } items[] = {{"message", message},
                 {"function_call", call},
                 {"custom_tool_call", custom_call},
                 {"function_call_output", output},
                 {"custom_tool_call_output", output},
                 {"reasoning", reasoning_item},
                 {"mcp_call", mcp},
                 {"mcp_approval_request", approval_request},
                 {"mcp_approval_response", approval_response},
                 {"item_reference", reference}};
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    if (!type || yyjson_is_null(type)) /* clients leave it out of messages and references */
        return dgm_json_get(v, DGM_STR("role")) || !dgm_json_get(v, DGM_STR("id")) ? message
                                                                                   : reference;
    for (size_t i = 0; yyjson_is_str(type) && i < sizeof items / sizeof *items; i++) {
        if (dgm_str_eq(dgm_json_str(type), dgm_str_from(items[i].type)))
            return items[i].rules;
    }
    return typed;
}

/* ---- tools and settings ----------------------------------------------------------------------------------------- */

static const dgm_json_rule function[] = {RULE("name", TEXT, .is_required = true),
                                         RULE("description", TEXT), RULE("parameters", OBJECT),
                                         RULE("strict", BOOL), END};
static const dgm_json_rule nested[] = {RULE("function", OBJECT, function, .is_required = true),
                                       END};

static const dgm_json_rule *pick_tool(yyjson_val *v)
{
    if (!dgm_str_is(dgm_json_str_member(v, "type"), "function"))
        return typed;
    return dgm_json_get(v, DGM_STR("function")) ? nested : function; /* Chat's way is taken, too */
}

static const dgm_json_rule choice[] = {RULE("type", TEXT, .is_required = true), RULE("name", TEXT),
                                       RULE("mode", TEXT), RULE("tools", LIST, .of = OBJECT, TOOLS),
                                       END};
static const dgm_json_rule named[] = {RULE("id", TEXT, .is_required = true), END};
static const dgm_json_rule stream_options[] = {RULE("include_obfuscation", BOOL), END};
static const dgm_json_rule reasoning_setting[] = {RULE("effort", TEXT), RULE("summary", TEXT),
                                                  RULE("generate_summary", TEXT), END};
static const dgm_json_rule format[] = {RULE("type", TEXT, .is_required = true),
                                       RULE("name", TEXT),
                                       RULE("schema", OBJECT),
                                       RULE("strict", BOOL),
                                       RULE("description", TEXT),
                                       END};
static const dgm_json_rule text_setting[] = {RULE("format", OBJECT, format),
                                             RULE("verbosity", TEXT), END};

static const dgm_json_rule prompt[] = {RULE("id", TEXT, .is_required = true), RULE("version", TEXT),
                                       RULE("variables", OBJECT, WORDS), END};
static const dgm_json_rule context_management[] = {RULE("type", TEXT, .is_required = true),
                                                   RULE("compact_threshold", INT), END};
static const dgm_json_rule moderation[] = {RULE("model", TEXT), END};

const dgm_json_rule dgm_responses_request_rules[] = {
    RULE("model", TEXT, .is_required = true),
    RULE("input", TEXT | LIST, .of = OBJECT, .pick = pick_item, MESSAGES),
    RULE("instructions", TEXT),
    RULE("previous_response_id", TEXT),
    RULE("conversation", TEXT | OBJECT, named),
    RULE("store", BOOL),
    RULE("background", BOOL),
    RULE("stream", BOOL),
    RULE("stream_options", OBJECT, stream_options),
    RULE("tools", LIST, .of = OBJECT, .pick = pick_tool, TOOLS),
    RULE("tool_choice", TEXT | OBJECT, choice),
    RULE("text", OBJECT, text_setting),
    RULE("metadata", OBJECT, WORDS),
    RULE("parallel_tool_calls", BOOL, .is_ignored = true),
    RULE("max_tool_calls", INT, .is_ignored = true),
    RULE("max_output_tokens", INT, .is_ignored = true),
    RULE("temperature", NUMBER, .is_ignored = true),
    RULE("top_p", NUMBER, .is_ignored = true),
    RULE("top_logprobs", INT, .is_ignored = true),
    RULE("presence_penalty", NUMBER, .is_ignored = true),
    RULE("frequency_penalty", NUMBER, .is_ignored = true),
    RULE("reasoning", OBJECT, reasoning_setting, .is_ignored = true),
    RULE("truncation", TEXT, .is_ignored = true),
    RULE("include", LIST, .of = TEXT, .is_ignored = true, WORDS),
    RULE("user", TEXT, .is_ignored = true),
    RULE("safety_identifier", TEXT, .is_ignored = true),
    RULE("prompt_cache_key", TEXT, .is_ignored = true),
    RULE("prompt_cache_retention", TEXT, .is_ignored = true),
    RULE("service_tier", TEXT, .is_ignored = true),
    RULE("prompt", OBJECT, prompt, .is_ignored = true),
    RULE("prompt_cache_options", OBJECT, .is_ignored = true),
    RULE("context_management", LIST, context_management, .of = OBJECT, .is_ignored = true),
    RULE("moderation", OBJECT, moderation, .is_ignored = true),
    RULE("access_programs", OBJECT, .is_ignored = true),
    RULE("image", OBJECT, .is_ignored = true),
    END};
const dgm_json_rule dgm_responses_conversation_rules[] = {
    RULE("items", LIST, .of = OBJECT, .pick = pick_item, MESSAGES), RULE("metadata", OBJECT, WORDS),
    END};
const dgm_json_rule dgm_responses_conversation_items_rules[] = {
    RULE("items", LIST, .of = OBJECT, .pick = pick_item, .is_required = true, MESSAGES), END};

/* ---- requests --------------------------------------------------------------------------------------------------- */

/* The members that a response repeats are nested deeper there, and clients have to be able to read it. */
#define MAX_DEPTH (DGM_MAX_JSON_DEPTH - 16)

/* OpenAI's own limits: clients rely on the errors. */
#define MAX_METADATA 16
#define MAX_METADATA_KEY 64
#define MAX_METADATA_VALUE 512

dgm_code dgm_responses_check(yyjson_val *body, const dgm_json_rule *rules, dgm_err *err)
{
    const dgm_at *at = DGM_AT_LIT(NULL, "metadata");
    yyjson_val *metadata = dgm_json_get(body, DGM_STR("metadata")), *key, *value;
    size_t i, n;
    dgm_code rc;
    if (!yyjson_is_obj(body))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected an object, got %s",
                        dgm_json_type(body));
    if (dgm_json_deeper_than(body, MAX_DEPTH))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "nested deeper than %d levels", MAX_DEPTH);
    if ((rc = dgm_json_check(body, rules, NULL, err)))
        return rc;
    if (yyjson_obj_size(metadata) > MAX_METADATA)
        return dgm_fail(err, DGM_BAD_PARAMS, at, "%zu pairs: there may be %d",
                        yyjson_obj_size(metadata), MAX_METADATA);
    yyjson_obj_foreach (metadata, i, n, key, value) {
        const dgm_at *here = DGM_AT(at, dgm_json_str(key));
        if (dgm_json_str(key).n > MAX_METADATA_KEY)
            return dgm_fail(err, DGM_BAD_PARAMS, at, "a key is longer than %d characters",
                            MAX_METADATA_KEY);
        if (!yyjson_is_str(value))
            return dgm_fail(err, DGM_BAD_PARAMS, here, "expected a string, got %s",
                            dgm_json_type(value));
        if (dgm_json_str(value).n > MAX_METADATA_VALUE)
            return dgm_fail(err, DGM_BAD_PARAMS, here, "longer than %d characters",
                            MAX_METADATA_VALUE);
    }
    return DGM_OK;
}

/* ---- ignored members ------------------------------------------------------------------------------- */

#define MAX_NAMED 1000 /* bytes of a header */

dgm_str dgm_responses_ignored(dgm_arena *a, yyjson_val *body)
{
    dgm_str names = dgm_json_ignored(a, body, dgm_responses_request_rules);
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(body, DGM_STR("tools")), i, n,
                        e) { /* those that OpenAI runs itself */
        if (!dgm_str_is(dgm_json_str_member(e, "type"), "function") && names.n < MAX_NAMED)
            names = dgm_arena_printf(a, "%.*s%stools[%zu]", DGM_P(names), names.n ? ", " : "", i);
    }
    return names;
}
