/* lib/direct_losses.c - what the direct road loses or changes, row by row. */
#include "lib/direct_int.h"

/* ---- A2A to chat ---------------------------------------------------------------------------------------- */

/* Members in the spelling of a dialect: parts, bytes, address, file name, media type, data. */
#define TO_CHAT(PARTS, BYTES, ADDRESS, NAME, TYPE, DATA)                                           \
    {"message", "/messageId", "left out: chat messages have no id"},                               \
        {"message", "/contextId", "left out: a chat is told by its list of messages"},             \
        {"message", "/taskId", "left out"},                                                        \
        {"message", "/metadata",                                                                   \
         "left out; what came from a chat message under `dragoman:` is restored",                  \
         DGM_LOSS_HAS_OTHERS, "dragoman:* canonical_type"},                                        \
        {"message", "/extensions", "left out"}, {"message", "/referenceTaskIds", "left out"},      \
        {"message", "/metadata/canonical_type",                                                    \
         "TextMessageChunkEvent, ToolCallArgsEvent: an intermediate message gives no chat "        \
         "message",                                                                                \
         DGM_LOSS_IS, "TextMessageChunkEvent ToolCallArgsEvent"},                                  \
        {"message", PARTS, "text parts are joined into one text, without a separator",             \
         DGM_LOSS_SEVERAL_TEXTS},                                                                  \
        {"message", PARTS "/*/metadata", "left out"},                                              \
        {"message", PARTS "/*" BYTES,                                                              \
         "of a user: an image becomes image_url, wav and mp3 input_audio, another file a file "    \
         "part; of an agent: a text that names file, media type and size, without the bytes",      \
         DGM_LOSS_ROLE_IS, "agent ROLE_AGENT"},                                                    \
        {"message", PARTS "/*" ADDRESS,                                                            \
         "an image of a user becomes image_url; any other file a link in the text"},               \
        {"message", PARTS "/*" NAME,                                                               \
         "left out for images and audio; a file part without a name gets one"},                    \
        {"message", PARTS "/*" TYPE, "left out for text, data, and files by address",              \
         DGM_LOSS_NOT_BESIDE, "raw bytes fileWithBytes"},                                          \
        {"message", PARTS "/*" DATA,                                                               \
         "becomes JSON text on a line of its own, unless it holds tool calls or results",          \
         DGM_LOSS_HAS_NONE, "tool_calls tool_results"},                                            \
        {"message", PARTS "/*" DATA "/*", "left out beside tool_calls and tool_results",           \
         DGM_LOSS_BESIDE, "tool_calls tool_results"},                                              \
        {"message", PARTS "/*" DATA "/tool_calls",                                                 \
         "of a user: becomes JSON text, only agents make calls", DGM_LOSS_ROLE_IS,                 \
         "user ROLE_USER"},                                                                        \
        {"message", PARTS "/*" DATA "/tool_calls/*/arguments",                                     \
         "an object becomes its text with `, ` and `: `; absent becomes `{}`", DGM_LOSS_NOT_TEXT}, \
        {"message", PARTS "/*" DATA "/tool_calls/*/*", "unknown members are left out",             \
         DGM_LOSS_NAME_IS_NOT, "call_id id type name arguments function"},                         \
        {"message", PARTS "/*" DATA "/tool_results/*/name", "left out: tool messages have none"},  \
        {"message", PARTS "/*" DATA "/tool_results/*/output",                                      \
         "a value that is no text becomes its JSON text", DGM_LOSS_NOT_TEXT},                      \
        {"message", PARTS "/*" DATA "/tool_results/*/*", "unknown members are left out",           \
         DGM_LOSS_NAME_IS_NOT, "call_id id type name output"},                                     \
        {"task", "/id", "left out"}, {"task", "/contextId", "left out"},                           \
        {"task", "/status/state", "left out"}, {"task", "/status/timestamp", "left out"},          \
        {"task", "/status/message",                                                                \
         "becomes the last message, unless the history has it or the state is submitted or "       \
         "working"},                                                                               \
        {"task", "/artifacts/*",                                                                   \
         "becomes an assistant message without id, name, description, metadata and extensions; "   \
         "left out when the final message says its text"},                                         \
        {"task", "/metadata", "left out"}, {"send-request", "/configuration", "left out"},         \
        {"send-request", "/metadata", "left out"}, {"send-request", "/tenant", "left out"},        \
        {"status-update", "", "gives no chat message"},                                            \
        {"artifact-update", "", "gives no chat message"},                                          \
        {"internal-event", "", "gives no chat message"},                                           \
    {                                                                                              \
        "any", "/*", "unknown members are left out"                                                \
    }

/* clang-format off */
static const dgm_loss from_10[] = {
    TO_CHAT("/parts", "/raw", "/url", "/filename", "/mediaType", "/data")};
static const dgm_loss from_03[] = {
    TO_CHAT("/parts", "/file/bytes", "/file/uri", "/file/name", "/file/mimeType", "/data")};
static const dgm_loss from_03_rest[] = {
    TO_CHAT("/content", "/file/fileWithBytes", "/file/fileWithUri", "/file/name", "/file/mimeType",
            "/data/data")};
/* clang-format on */

/* ---- chat to A2A ------------------------------------------------------------------------------------------- */

static const dgm_loss from_chat[] = {
    {"message", "/role",
     "A2A knows user and agent; system, developer and function ride in metadata as "
     "`dragoman:role`",
     DGM_LOSS_IS, "system developer function"},
    {"message", "/name", "rides in metadata as `dragoman:name`"},
    {"message", "/reasoning_content", "rides in metadata as `dragoman:reasoning_content`"},
    {"message", "/refusal", "becomes a text part, marked in its metadata"},
    {"message", "/function_call",
     "becomes a tool call whose id is the function's name, marked in its metadata"},
    {"message", "/tool_call_id", "left out in messages of other roles than tool",
     DGM_LOSS_ROLE_IS_NOT, "tool"},
    {"message", "/content",
     "null, absent and an empty list become an empty text, or nothing beside calls; a list of text "
     "parts comes back as one text",
     DGM_LOSS_EMPTY},
    {"message", "/content/*/image_url/url",
     "a data: URL becomes bytes: it comes back padded, in the standard alphabet",
     DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/image_url/detail", "rides in the part's metadata as `dragoman:detail`"},
    {"message", "/content/*/input_audio",
     "becomes bytes: a data: URL comes back as plain base64, the format as wav or mp3 where it is "
     "one",
     DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/file/file_data",
     "becomes bytes: plain base64 comes back as a data: URL", DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/file/file_id",
     "names a file that the A2A side cannot reach: kept in a data part, or in metadata beside "
     "bytes"},
    {"message", "/content/*/video_url", "becomes a file, marked in its metadata"},
    {"message", "/content/*", "a part of unknown type becomes a data part, as it is",
     DGM_LOSS_TYPE_IS_NOT, "text image_url input_audio file refusal video_url"},
    {"message", "/content/*/*", "unknown members are left out", DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls/*/function/arguments",
     "stays text, unless the object in it is spelled with `, ` and `: `", DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls/*/*", "unknown members are left out", DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls", "an empty list is left out", DGM_LOSS_EMPTY},
    {"message", "/*", "unknown members (audio, annotations, ...) are left out"},
    {"chat-request", "/*", "everything but messages is left out: model, tools, settings"},
    {"chat-response", "/*", "everything but the choices' messages is left out: id, model, usage"},
};

/* ---- looking up --------------------------------------------------------------------------------------------- */

#define PAIR(from_, to_, rows_)                                                                    \
    {                                                                                              \
        (from_), (to_), (rows_), sizeof(rows_) / sizeof *(rows_)                                   \
    }
static const struct {
    const char *from, *to;
    const dgm_loss *rows;
    size_t n;
} pairs[] = {
    PAIR("a2a-1.0", dgm_chat_name, from_10),
    PAIR("a2a-0.3", dgm_chat_name, from_03),
    PAIR("a2a-0.3-rest", dgm_chat_name, from_03_rest),
    PAIR(dgm_chat_name, "a2a-1.0", from_chat),
    PAIR(dgm_chat_name, "a2a-0.3", from_chat),
    PAIR(dgm_chat_name, "a2a-0.3-rest", from_chat),
};

size_t dgm_direct_losses(const char *from, const char *to, const dgm_loss **ret_losses, size_t max)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (strcmp(pairs[i].from, from) != 0 || strcmp(pairs[i].to, to) != 0)
            continue;
        for (size_t k = 0; k < pairs[i].n && k < max; k++)
            ret_losses[k] = &pairs[i].rows[k];
        return pairs[i].n;
    }
    return 0;
}
