/* frontend/openai/chat_rules.c - the body of a chat request, as a table of types. */
#include "frontend/openai/chat_front_int.h"

#define TEXT OPENAI_TEXT
#define OBJECT OPENAI_OBJECT
#define LIST OPENAI_LIST
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define IGNORED(name_, types_)                                                                     \
    {                                                                                              \
        .name = (name_), .types = (types_), .ignored = true                                        \
    }

/* ---- messages: what the codec does not know of them, which is the rest -------------------------------------------- */

static const struct openai_rule breakpoint[] = {{"mode", TEXT}, {"ttl", TEXT}, END};
static const struct openai_rule part[] = {{"prompt_cache_breakpoint", OBJECT, breakpoint}, END};
static const struct openai_rule message_audio[] = {{"id", TEXT}, END};
static const struct openai_rule message[] = {
    {"audio", OBJECT, message_audio}, {"content", TEXT | LIST, part}, END};

/* ---- tools --------------------------------------------------------------------------------------------------------- */

static const struct openai_rule function[] = {
    {"name", TEXT}, {"description", TEXT}, {"parameters", OBJECT}, {"strict", OPENAI_BOOL}, END};
static const struct openai_rule grammar[] = {{"definition", TEXT}, {"syntax", TEXT}, END};
static const struct openai_rule custom_format[] = {
    {"type", TEXT}, {"grammar", OBJECT, grammar}, END};
static const struct openai_rule custom[] = {
    {"name", TEXT}, {"description", TEXT}, {"format", OBJECT, custom_format}, END};
static const struct openai_rule tool[] = {
    {"type", TEXT}, {"function", OBJECT, function}, {"custom", OBJECT, custom}, END};

static const struct openai_rule name_only[] = {{"name", TEXT}, END};
static const struct openai_rule allowed[] = {{"mode", TEXT}, {"tools", LIST, .of = OBJECT}, END};
static const struct openai_rule choice[] = {{"type", TEXT},
                                            {"function", OBJECT, name_only},
                                            {"custom", OBJECT, name_only},
                                            {"allowed_tools", OBJECT, allowed},
                                            END};

/* ---- settings ------------------------------------------------------------------------------------------------------ */

static const struct openai_rule stream_options[] = {
    {"include_usage", OPENAI_BOOL}, {"include_obfuscation", OPENAI_BOOL}, END};
static const struct openai_rule json_schema[] = {
    {"name", TEXT}, {"description", TEXT}, {"schema", OBJECT}, {"strict", OPENAI_BOOL}, END};
static const struct openai_rule response_format[] = {
    {"type", TEXT}, {"json_schema", OBJECT, json_schema}, END};
static const struct openai_rule voice[] = {{"id", TEXT}, END};
static const struct openai_rule audio[] = {{"format", TEXT}, {"voice", TEXT | OBJECT, voice}, END};
static const struct openai_rule mode[] = {{"mode", TEXT}, END};
static const struct openai_rule policy[] = {{"input", OBJECT, mode}, {"output", OBJECT, mode}, END};
static const struct openai_rule moderation[] = {{"model", TEXT}, {"policy", OBJECT, policy}, END};
static const struct openai_rule predicted[] = {
    {"text", TEXT}, {"type", TEXT}, {"prompt_cache_breakpoint", OBJECT, breakpoint}, END};
static const struct openai_rule prediction[] = {
    {"type", TEXT}, {"content", TEXT | LIST, predicted, .of = OBJECT}, END};
static const struct openai_rule approximate[] = {
    {"city", TEXT}, {"country", TEXT}, {"region", TEXT}, {"timezone", TEXT}, END};
static const struct openai_rule location[] = {
    {"type", TEXT}, {"approximate", OBJECT, approximate}, END};
static const struct openai_rule web_search[] = {
    {"search_context_size", TEXT}, {"user_location", OBJECT, location}, END};

const struct openai_rule chat_rules[] = {
    {"model", TEXT},
    {"messages", LIST, message, .of = OBJECT},
    {"stream", OPENAI_BOOL},
    {"stream_options", OBJECT, stream_options},
    {"n", OPENAI_INT},
    {"tools", LIST, tool, .of = OBJECT},
    {"tool_choice", TEXT | OBJECT, choice},
    {"functions", LIST, function, .of = OBJECT},
    {"function_call", TEXT | OBJECT, name_only},
    {"response_format", OBJECT, response_format},
    {"metadata", OBJECT, .of = TEXT},
    {"audio", OBJECT, audio, .ignored = true},
    IGNORED("frequency_penalty", OPENAI_NUMBER),
    {"logit_bias", OBJECT, .of = OPENAI_INT, .ignored = true},
    IGNORED("logprobs", OPENAI_BOOL),
    IGNORED("max_completion_tokens", OPENAI_INT),
    IGNORED("max_tokens", OPENAI_INT),
    {"modalities", LIST, .of = TEXT, .ignored = true},
    {"moderation", OBJECT, moderation, .ignored = true},
    IGNORED("parallel_tool_calls", OPENAI_BOOL),
    {"prediction", OBJECT, prediction, .ignored = true},
    IGNORED("presence_penalty", OPENAI_NUMBER),
    IGNORED("prompt_cache_key", TEXT),
    {"prompt_cache_options", OBJECT, breakpoint, .ignored = true},
    IGNORED("prompt_cache_retention", TEXT),
    IGNORED("reasoning_effort", TEXT),
    IGNORED("safety_identifier", TEXT),
    IGNORED("seed", OPENAI_INT),
    IGNORED("service_tier", TEXT),
    {"stop", TEXT | LIST, .of = TEXT, .ignored = true},
    IGNORED("store", OPENAI_BOOL),
    IGNORED("temperature", OPENAI_NUMBER),
    IGNORED("top_logprobs", OPENAI_INT),
    IGNORED("top_p", OPENAI_NUMBER),
    IGNORED("user", TEXT),
    IGNORED("verbosity", TEXT),
    {"web_search_options", OBJECT, web_search, .ignored = true},
    END,
};
