/* frontend/openai/responses_front_rules.c - the types of what requests hold; see openai_check.h. */
#include "frontend/openai/responses_front_int.h"

#define TEXT OPENAI_TEXT
#define OBJECT OPENAI_OBJECT
#define LIST OPENAI_LIST
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static const struct openai_rule text_part[] = {{"type", TEXT, .must = true},
                                               {"text", TEXT, .must = true},
                                               {"annotations", LIST, .of = OBJECT},
                                               {"logprobs", LIST, .of = OBJECT},
                                               END};
static const struct openai_rule refusal_part[] = {
    {"type", TEXT, .must = true}, {"refusal", TEXT, .must = true}, END};
static const struct openai_rule image_part[] = {
    {"type", TEXT, .must = true}, {"image_url", TEXT}, {"file_id", TEXT}, {"detail", TEXT}, END};
static const struct openai_rule file_part[] = {{"type", TEXT, .must = true},
                                               {"file_data", TEXT},
                                               {"file_url", TEXT},
                                               {"file_id", TEXT},
                                               {"filename", TEXT},
                                               {"detail", TEXT},
                                               END};
static const struct openai_rule sound[] = {
    {"data", TEXT, .must = true}, {"format", TEXT, .must = true}, END};
static const struct openai_rule audio_part[] = {
    {"type", TEXT, .must = true}, {"input_audio", OBJECT, sound, .must = true}, END};
static const struct openai_rule typed[] = {{"type", TEXT, .must = true}, END};

static const struct openai_rule *pick_part(yyjson_val *v)
{
    static const struct {
        const char *type;
        const struct openai_rule *rules;
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

static const struct openai_rule message[] = {
    {"type", TEXT},
    {"role", TEXT, .must = true},
    {"content", TEXT | LIST, .of = OBJECT, .pick = pick_part, .must = true},
    {"id", TEXT},
    {"status", TEXT},
    {"phase", TEXT},
    END};
static const struct openai_rule call[] = {{"call_id", TEXT, .must = true},
                                          {"name", TEXT, .must = true},
                                          {"arguments", TEXT, .must = true},
                                          {"id", TEXT},
                                          {"status", TEXT},
                                          END};
static const struct openai_rule custom_call[] = {{"call_id", TEXT, .must = true},
                                                 {"name", TEXT, .must = true},
                                                 {"input", TEXT, .must = true},
                                                 {"id", TEXT},
                                                 END};
static const struct openai_rule output[] = {
    {"call_id", TEXT, .must = true},
    {"output", TEXT | LIST, .of = OBJECT, .pick = pick_part, .must = true},
    {"id", TEXT},
    {"status", TEXT},
    END};
static const struct openai_rule reasoning_item[] = {
    {"id", TEXT},
    {"summary", LIST, .of = OBJECT, .pick = pick_part, .must = true},
    {"content", LIST, .of = OBJECT, .pick = pick_part},
    {"encrypted_content", TEXT},
    END};
static const struct openai_rule mcp[] = {{"id", TEXT},
                                         {"server_label", TEXT, .must = true},
                                         {"name", TEXT, .must = true},
                                         {"arguments", TEXT, .must = true},
                                         {"output", TEXT},
                                         END};
static const struct openai_rule reference[] = {{"type", TEXT}, {"id", TEXT, .must = true}, END};

static const struct openai_rule *pick_item(yyjson_val *v)
{
    static const struct {
        const char *type;
        const struct openai_rule *rules;
    } items[] = {{"message", message},
                 {"function_call", call},
                 {"custom_tool_call", custom_call},
                 {"function_call_output", output},
                 {"custom_tool_call_output", output},
                 {"reasoning", reasoning_item},
                 {"mcp_call", mcp},
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

static const struct openai_rule function[] = {{"name", TEXT, .must = true},
                                              {"description", TEXT},
                                              {"parameters", OBJECT},
                                              {"strict", OPENAI_BOOL},
                                              END};
static const struct openai_rule nested[] = {{"function", OBJECT, function, .must = true}, END};

static const struct openai_rule *pick_tool(yyjson_val *v)
{
    if (!dgm_str_is(dgm_json_str_member(v, "type"), "function"))
        return typed;
    return dgm_json_get(v, DGM_STR("function")) ? nested : function; /* Chat's way is taken, too */
}

static const struct openai_rule choice[] = {{"type", TEXT, .must = true},
                                            {"name", TEXT},
                                            {"mode", TEXT},
                                            {"tools", LIST, .of = OBJECT},
                                            END};
static const struct openai_rule named[] = {{"id", TEXT, .must = true}, END};
static const struct openai_rule stream_options[] = {{"include_obfuscation", OPENAI_BOOL}, END};
static const struct openai_rule reasoning_setting[] = {
    {"effort", TEXT}, {"summary", TEXT}, {"generate_summary", TEXT}, END};
static const struct openai_rule format[] = {{"type", TEXT, .must = true}, {"name", TEXT},
                                            {"schema", OBJECT},           {"strict", OPENAI_BOOL},
                                            {"description", TEXT},        END};
static const struct openai_rule text_setting[] = {
    {"format", OBJECT, format}, {"verbosity", TEXT}, END};

static const struct openai_rule prompt[] = {
    {"id", TEXT, .must = true}, {"version", TEXT}, {"variables", OBJECT}, END};
static const struct openai_rule context_management[] = {
    {"type", TEXT, .must = true}, {"compact_threshold", OPENAI_INT}, END};
static const struct openai_rule moderation[] = {{"model", TEXT}, END};

const struct openai_rule responses_request_rules[] = {
    {"model", TEXT, .must = true},
    {"input", TEXT | LIST, .of = OBJECT, .pick = pick_item},
    {"instructions", TEXT},
    {"previous_response_id", TEXT},
    {"conversation", TEXT | OBJECT, named},
    {"store", OPENAI_BOOL},
    {"background", OPENAI_BOOL},
    {"stream", OPENAI_BOOL},
    {"stream_options", OBJECT, stream_options},
    {"tools", LIST, .of = OBJECT, .pick = pick_tool},
    {"tool_choice", TEXT | OBJECT, choice},
    {"text", OBJECT, text_setting},
    {"metadata", OBJECT},
    {"parallel_tool_calls", OPENAI_BOOL, .ignored = true},
    {"max_tool_calls", OPENAI_INT, .ignored = true},
    {"max_output_tokens", OPENAI_INT, .ignored = true},
    {"temperature", OPENAI_NUMBER, .ignored = true},
    {"top_p", OPENAI_NUMBER, .ignored = true},
    {"top_logprobs", OPENAI_INT, .ignored = true},
    {"presence_penalty", OPENAI_NUMBER, .ignored = true},
    {"frequency_penalty", OPENAI_NUMBER, .ignored = true},
    {"reasoning", OBJECT, reasoning_setting, .ignored = true},
    {"truncation", TEXT, .ignored = true},
    {"include", LIST, .of = TEXT, .ignored = true},
    {"user", TEXT, .ignored = true},
    {"safety_identifier", TEXT, .ignored = true},
    {"prompt_cache_key", TEXT, .ignored = true},
    {"prompt_cache_retention", TEXT, .ignored = true},
    {"service_tier", TEXT, .ignored = true},
    {"prompt", OBJECT, prompt, .ignored = true},
    {"prompt_cache_options", OBJECT, .ignored = true},
    {"context_management", LIST, context_management, .of = OBJECT, .ignored = true},
    {"moderation", OBJECT, moderation, .ignored = true},
    {"access_programs", OBJECT, .ignored = true},
    {"image", OBJECT, .ignored = true},
    END};
const struct openai_rule conversation_rules[] = {
    {"items", LIST, .of = OBJECT, .pick = pick_item}, {"metadata", OBJECT}, END};
const struct openai_rule conversation_items_rules[] = {
    {"items", LIST, .of = OBJECT, .pick = pick_item, .must = true}, END};
