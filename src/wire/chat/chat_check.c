/*
 * wire/chat/chat_check.c - is the body of a request of the types that OpenAI's document says?
 *
 * The decoder reads what many peers send and skips members that it does not use. A server checks them, too: see
 * json/check.h.
 */
#include "wire/chat/chat_codec.h"
#include "wire/check_rules.h"

/* ---- messages: the members that the decoder does not read -------------------------------------------- */

static const dgm_json_rule breakpoint[] = {RULE("mode", TEXT), RULE("ttl", TEXT), END};
static const dgm_json_rule part[] = {RULE("prompt_cache_breakpoint", OBJECT, breakpoint), END};
static const dgm_json_rule message_audio[] = {RULE("id", TEXT), END};
static const dgm_json_rule message[] = {RULE("audio", OBJECT, message_audio),
                                        RULE("content", TEXT | LIST, part, PARTS),
                                        RULE("tool_calls", DGM_JSON_ANY, PARTS), END};

/* ---- tools --------------------------------------------------------------------------------------------------------- */

static const dgm_json_rule function[] = {RULE("name", TEXT), RULE("description", TEXT),
                                         RULE("parameters", OBJECT), RULE("strict", BOOL), END};
static const dgm_json_rule grammar[] = {RULE("definition", TEXT), RULE("syntax", TEXT), END};
static const dgm_json_rule custom_format[] = {RULE("type", TEXT), RULE("grammar", OBJECT, grammar),
                                              END};
static const dgm_json_rule custom[] = {RULE("name", TEXT), RULE("description", TEXT),
                                       RULE("format", OBJECT, custom_format), END};
static const dgm_json_rule tool[] = {RULE("type", TEXT), RULE("function", OBJECT, function),
                                     RULE("custom", OBJECT, custom), END};

static const dgm_json_rule name_only[] = {RULE("name", TEXT), END};
static const dgm_json_rule allowed[] = {RULE("mode", TEXT),
                                        RULE("tools", LIST, .of = OBJECT, TOOLS), END};
static const dgm_json_rule choice[] = {RULE("type", TEXT), RULE("function", OBJECT, name_only),
                                       RULE("custom", OBJECT, name_only),
                                       RULE("allowed_tools", OBJECT, allowed), END};

/* ---- settings ------------------------------------------------------------------------------------------------------ */

static const dgm_json_rule stream_options[] = {RULE("include_usage", BOOL),
                                               RULE("include_obfuscation", BOOL), END};
static const dgm_json_rule json_schema[] = {RULE("name", TEXT), RULE("description", TEXT),
                                            RULE("schema", OBJECT), RULE("strict", BOOL), END};
static const dgm_json_rule response_format[] = {RULE("type", TEXT),
                                                RULE("json_schema", OBJECT, json_schema), END};
static const dgm_json_rule voice[] = {RULE("id", TEXT), END};
static const dgm_json_rule audio[] = {RULE("format", TEXT), RULE("voice", TEXT | OBJECT, voice),
                                      END};
static const dgm_json_rule mode[] = {RULE("mode", TEXT), END};
static const dgm_json_rule policy[] = {RULE("input", OBJECT, mode), RULE("output", OBJECT, mode),
                                       END};
static const dgm_json_rule moderation[] = {RULE("model", TEXT), RULE("policy", OBJECT, policy),
                                           END};
static const dgm_json_rule predicted[] = {RULE("text", TEXT), RULE("type", TEXT),
                                          RULE("prompt_cache_breakpoint", OBJECT, breakpoint), END};
static const dgm_json_rule prediction[] = {
    RULE("type", TEXT), RULE("content", TEXT | LIST, predicted, .of = OBJECT, PARTS), END};
static const dgm_json_rule approximate[] = {RULE("city", TEXT), RULE("country", TEXT),
                                            RULE("region", TEXT), RULE("timezone", TEXT), END};
static const dgm_json_rule location[] = {RULE("type", TEXT),
                                         RULE("approximate", OBJECT, approximate), END};
static const dgm_json_rule web_search[] = {RULE("search_context_size", TEXT),
                                           RULE("user_location", OBJECT, location), END};

const dgm_json_rule dgm_chat_rules[] = {
    RULE("model", TEXT),
    RULE("messages", LIST, message, .of = OBJECT, MESSAGES),
    RULE("stream", BOOL),
    RULE("stream_options", OBJECT, stream_options),
    RULE("n", INT),
    RULE("tools", LIST, tool, .of = OBJECT, TOOLS),
    RULE("tool_choice", TEXT | OBJECT, choice),
    RULE("functions", LIST, function, .of = OBJECT, TOOLS),
    RULE("function_call", TEXT | OBJECT, name_only),
    RULE("response_format", OBJECT, response_format),
    RULE("metadata", OBJECT, .of = TEXT, WORDS),
    RULE("audio", OBJECT, audio, .is_ignored = true),
    RULE("frequency_penalty", NUMBER, .is_ignored = true),
    RULE("logit_bias", OBJECT, .of = INT, .is_ignored = true, .max = DGM_MAX_UNKNOWN_MEMBERS,
         .limit = "unknown_members"),
    RULE("logprobs", BOOL, .is_ignored = true),
    RULE("max_completion_tokens", INT, .is_ignored = true),
    RULE("max_tokens", INT, .is_ignored = true),
    RULE("modalities", LIST, .of = TEXT, .is_ignored = true, WORDS),
    RULE("moderation", OBJECT, moderation, .is_ignored = true),
    RULE("parallel_tool_calls", BOOL, .is_ignored = true),
    RULE("prediction", OBJECT, prediction, .is_ignored = true),
    RULE("presence_penalty", NUMBER, .is_ignored = true),
    RULE("prompt_cache_key", TEXT, .is_ignored = true),
    RULE("prompt_cache_options", OBJECT, breakpoint, .is_ignored = true),
    RULE("prompt_cache_retention", TEXT, .is_ignored = true),
    RULE("reasoning_effort", TEXT, .is_ignored = true),
    RULE("safety_identifier", TEXT, .is_ignored = true),
    RULE("seed", INT, .is_ignored = true),
    RULE("service_tier", TEXT, .is_ignored = true),
    RULE("stop", TEXT | LIST, .of = TEXT, .is_ignored = true, WORDS),
    RULE("store", BOOL, .is_ignored = true),
    RULE("temperature", NUMBER, .is_ignored = true),
    RULE("top_logprobs", INT, .is_ignored = true),
    RULE("top_p", NUMBER, .is_ignored = true),
    RULE("user", TEXT, .is_ignored = true),
    RULE("verbosity", TEXT, .is_ignored = true),
    RULE("web_search_options", OBJECT, web_search, .is_ignored = true),
    END,
};

/* ---- requests ------------------------------------------------------------------------------------------------------ */

dgm_code dgm_chat_check_request(yyjson_val *body, dgm_err *err)
{
    if (!yyjson_is_obj(body))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "expected an object, got %s",
                        dgm_json_type(body));
    return dgm_json_check(body, dgm_chat_rules, NULL, err);
}

dgm_str dgm_chat_ignored(dgm_arena *a, yyjson_val *body)
{
    dgm_str names = dgm_json_ignored(a, body, dgm_chat_rules);
    yyjson_val *entry;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(body, DGM_STR("tools")), i, n, entry) {
        dgm_str type = dgm_json_str_member(entry, "type");
        if (type.n && !dgm_str_is(type, "function") && names.n < 1000)
            names = dgm_arena_printf(a, "%.*s%stools[%zu]", DGM_P(names), names.n ? ", " : "", i);
    }
    return names;
}
