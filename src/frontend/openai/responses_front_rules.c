/* frontend/openai/responses_front_rules.c - the types of what requests hold; see responses_front_check.c. */
#include "frontend/openai/responses_front_rules.h"
#include "canon/said.h"

#define RULES(table)                                                                               \
    {                                                                                              \
        .at = (table), .n = sizeof(table) / sizeof *(table)                                        \
    }

/* ---- parts ------------------------------------------------------------------------------------------------------ */

static const struct rule text_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"text", STR, MUST, 0, NULL},
    {"annotations", LIST | NIL, MAY, OBJ, NULL},
    {"logprobs", LIST | NIL, MAY, OBJ, NULL},
};
static const struct rule refusal_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"refusal", STR, MUST, 0, NULL},
};
static const struct rule image_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"image_url", STR | NIL, MAY, 0, NULL},
    {"file_id", STR | NIL, MAY, 0, NULL},
    {"detail", STR | NIL, MAY, 0, NULL},
};
static const struct rule file_rows[] = {
    {"type", STR, MUST, 0, NULL},          {"file_data", STR | NIL, MAY, 0, NULL},
    {"file_url", STR | NIL, MAY, 0, NULL}, {"file_id", STR | NIL, MAY, 0, NULL},
    {"filename", STR | NIL, MAY, 0, NULL}, {"detail", STR | NIL, MAY, 0, NULL},
};
static const struct rule sound_rows[] = {
    {"data", STR, MUST, 0, NULL},
    {"format", STR, MUST, 0, NULL},
};
static const struct rules sound = RULES(sound_rows);
static const struct rule audio_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"input_audio", OBJ, MUST, 0, &sound},
};
static const struct rule typed_rows[] = {{"type", STR, MUST, 0, NULL}};
static const struct rules text_part = RULES(text_rows), refusal_part = RULES(refusal_rows),
                          image_part = RULES(image_rows), file_part = RULES(file_rows),
                          audio_part = RULES(audio_rows), typed = RULES(typed_rows);

static const struct rules *pick_part(yyjson_val *v)
{
    static const struct {
        const char *type;
        const struct rules *rules;
    } parts[] = {{"input_text", &text_part},   {"output_text", &text_part},
                 {"refusal", &refusal_part},   {"input_image", &image_part},
                 {"input_file", &file_part},   {"input_audio", &audio_part},
                 {"summary_text", &text_part}, {"reasoning_text", &text_part}};
    dgm_str type = dgm_said_mark(v, "type");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (dgm_str_eq(type, dgm_str_from(parts[i].type)))
            return parts[i].rules;
    }
    return &typed;
}
static const struct rules part = {.pick = pick_part};

/* ---- items ------------------------------------------------------------------------------------------------------ */

static const struct rule message_rows[] = {
    {"type", STR | NIL, MAY, 0, NULL},         {"role", STR, MUST, 0, NULL},
    {"content", STR | LIST, MUST, OBJ, &part}, {"id", STR | NIL, MAY, 0, NULL},
    {"status", STR | NIL, MAY, 0, NULL},       {"phase", STR | NIL, MAY, 0, NULL},
};
static const struct rule call_rows[] = {
    {"call_id", STR, MUST, 0, NULL},     {"name", STR, MUST, 0, NULL},
    {"arguments", STR, MUST, 0, NULL},   {"id", STR | NIL, MAY, 0, NULL},
    {"status", STR | NIL, MAY, 0, NULL},
};
static const struct rule custom_call_rows[] = {
    {"call_id", STR, MUST, 0, NULL},
    {"name", STR, MUST, 0, NULL},
    {"input", STR, MUST, 0, NULL},
    {"id", STR | NIL, MAY, 0, NULL},
};
static const struct rule output_rows[] = {
    {"call_id", STR, MUST, 0, NULL},
    {"output", STR | LIST, MUST, OBJ, &part},
    {"id", STR | NIL, MAY, 0, NULL},
    {"status", STR | NIL, MAY, 0, NULL},
};
static const struct rule reasoning_rows[] = {
    {"id", STR | NIL, MAY, 0, NULL},
    {"summary", LIST, MUST, OBJ, &part},
    {"content", LIST | NIL, MAY, OBJ, &part},
    {"encrypted_content", STR | NIL, MAY, 0, NULL},
};
static const struct rule mcp_rows[] = {
    {"id", STR | NIL, MAY, 0, NULL},     {"server_label", STR, MUST, 0, NULL},
    {"name", STR, MUST, 0, NULL},        {"arguments", STR, MUST, 0, NULL},
    {"output", STR | NIL, MAY, 0, NULL},
};
static const struct rule reference_rows[] = {
    {"type", STR | NIL, MAY, 0, NULL},
    {"id", STR, MUST, 0, NULL},
};
static const struct rules message = RULES(message_rows), call = RULES(call_rows),
                          custom_call = RULES(custom_call_rows), output = RULES(output_rows),
                          reasoning_item = RULES(reasoning_rows), mcp = RULES(mcp_rows),
                          reference = RULES(reference_rows);

static const struct rules *pick_item(yyjson_val *v)
{
    static const struct {
        const char *type;
        const struct rules *rules;
    } items[] = {{"message", &message},
                 {"function_call", &call},
                 {"custom_tool_call", &custom_call},
                 {"function_call_output", &output},
                 {"custom_tool_call_output", &output},
                 {"reasoning", &reasoning_item},
                 {"mcp_call", &mcp},
                 {"item_reference", &reference}};
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    if (!type || yyjson_is_null(type)) /* clients leave it out of messages and references */
        return dgm_json_get(v, DGM_STR("role")) || !dgm_json_get(v, DGM_STR("id")) ? &message
                                                                                   : &reference;
    for (size_t i = 0; yyjson_is_str(type) && i < sizeof items / sizeof *items; i++) {
        if (dgm_str_eq(dgm_json_str(type), dgm_str_from(items[i].type)))
            return items[i].rules;
    }
    return &typed;
}
static const struct rules item = {.pick = pick_item};

/* ---- tools and settings ----------------------------------------------------------------------------------------- */

static const struct rule function_rows[] = {
    {"name", STR, MUST, 0, NULL},
    {"description", STR | NIL, MAY, 0, NULL},
    {"parameters", OBJ | NIL, MAY, 0, NULL},
    {"strict", BOOL | NIL, MAY, 0, NULL},
};
static const struct rules function = RULES(function_rows);
static const struct rule nested_rows[] = {{"function", OBJ, MUST, 0, &function}};
static const struct rules nested = RULES(nested_rows);

static const struct rules *pick_tool(yyjson_val *v)
{
    if (!dgm_str_is(dgm_said_mark(v, "type"), "function"))
        return &typed;
    return dgm_json_get(v, DGM_STR("function")) ? &nested
                                                : &function; /* Chat's way is taken, too */
}
static const struct rules tool = {.pick = pick_tool};

static const struct rule choice_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"name", STR | NIL, MAY, 0, NULL},
    {"mode", STR | NIL, MAY, 0, NULL},
    {"tools", LIST | NIL, MAY, OBJ, NULL},
};
static const struct rule named_rows[] = {{"id", STR, MUST, 0, NULL}};
static const struct rule stream_options_rows[] = {
    {"include_obfuscation", BOOL | NIL, MAY, 0, NULL}};
static const struct rule reasoning_setting_rows[] = {
    {"effort", STR | NIL, MAY, 0, NULL},
    {"summary", STR | NIL, MAY, 0, NULL},
    {"generate_summary", STR | NIL, MAY, 0, NULL},
};
static const struct rule format_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"name", STR | NIL, MAY, 0, NULL},
    {"schema", OBJ | NIL, MAY, 0, NULL},
    {"strict", BOOL | NIL, MAY, 0, NULL},
    {"description", STR | NIL, MAY, 0, NULL},
};
static const struct rules format = RULES(format_rows);
static const struct rule text_setting_rows[] = {
    {"format", OBJ | NIL, MAY, 0, &format},
    {"verbosity", STR | NIL, MAY, 0, NULL},
};
static const struct rules choice = RULES(choice_rows), named = RULES(named_rows),
                          stream_options = RULES(stream_options_rows),
                          reasoning_setting = RULES(reasoning_setting_rows),
                          text_setting = RULES(text_setting_rows);

static const struct rule prompt_rows[] = {
    {"id", STR, MUST, 0, NULL},
    {"version", STR | NIL, MAY, 0, NULL},
    {"variables", OBJ | NIL, MAY, 0, NULL},
};
static const struct rule context_rows[] = {
    {"type", STR, MUST, 0, NULL},
    {"compact_threshold", INT | NIL, MAY, 0, NULL},
};
static const struct rule moderation_rows[] = {{"model", STR | NIL, MAY, 0, NULL}};
static const struct rules prompt = RULES(prompt_rows), context_management = RULES(context_rows),
                          moderation = RULES(moderation_rows);

static const struct rule request_rows[] = {
    {"model", STR, MUST, 0, NULL},
    {"input", STR | LIST | NIL, MAY, OBJ, &item},
    {"instructions", STR | NIL, MAY, 0, NULL},
    {"previous_response_id", STR | NIL, MAY, 0, NULL},
    {"conversation", STR | OBJ | NIL, MAY, 0, &named},
    {"store", BOOL | NIL, MAY, 0, NULL},
    {"background", BOOL | NIL, MAY, 0, NULL},
    {"stream", BOOL | NIL, MAY, 0, NULL},
    {"stream_options", OBJ | NIL, MAY, 0, &stream_options},
    {"tools", LIST | NIL, MAY, OBJ, &tool},
    {"tool_choice", STR | OBJ | NIL, MAY, 0, &choice},
    {"text", OBJ | NIL, MAY, 0, &text_setting},
    {"metadata", OBJ | NIL, MAY, 0, NULL},
    {"parallel_tool_calls", BOOL | NIL, UNUSED, 0, NULL},
    {"max_tool_calls", INT | NIL, UNUSED, 0, NULL},
    {"max_output_tokens", INT | NIL, UNUSED, 0, NULL},
    {"temperature", NUM | NIL, UNUSED, 0, NULL},
    {"top_p", NUM | NIL, UNUSED, 0, NULL},
    {"top_logprobs", INT | NIL, UNUSED, 0, NULL},
    {"presence_penalty", NUM | NIL, UNUSED, 0, NULL},
    {"frequency_penalty", NUM | NIL, UNUSED, 0, NULL},
    {"reasoning", OBJ | NIL, UNUSED, 0, &reasoning_setting},
    {"truncation", STR | NIL, UNUSED, 0, NULL},
    {"include", LIST | NIL, UNUSED, STR, NULL},
    {"user", STR | NIL, UNUSED, 0, NULL},
    {"safety_identifier", STR | NIL, UNUSED, 0, NULL},
    {"prompt_cache_key", STR | NIL, UNUSED, 0, NULL},
    {"prompt_cache_retention", STR | NIL, UNUSED, 0, NULL},
    {"service_tier", STR | NIL, UNUSED, 0, NULL},
    {"prompt", OBJ | NIL, UNUSED, 0, &prompt},
    {"prompt_cache_options", OBJ | NIL, UNUSED, 0, NULL},
    {"context_management", LIST | NIL, UNUSED, OBJ, &context_management},
    {"moderation", OBJ | NIL, UNUSED, 0, &moderation},
    {"access_programs", OBJ | NIL, UNUSED, 0, NULL},
    {"image", OBJ | NIL, UNUSED, 0, NULL},
};
const struct rules responses_request_rules = RULES(request_rows);
static const struct rule conversation_rows[] = {
    {"items", LIST | NIL, MAY, OBJ, &item},
    {"metadata", OBJ | NIL, MAY, 0, NULL},
};
const struct rules conversation_rules = RULES(conversation_rows);
static const struct rule items_rows[] = {{"items", LIST, MUST, OBJ, &item}};
const struct rules conversation_items_rules = RULES(items_rows);
