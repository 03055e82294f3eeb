/* lib/direct_losses.c - losses and changes of the direct conversion between A2A messages and chat messages. */
#include "lib/direct_int.h"
#include "wire/a2a/a2a.h"
#include "wire/formats.h"

/* ---- A2A to chat ---------------------------------------------------------------------------------------- */

/* Members in the names of a dialect: parts, bytes, address, file name, media type, data. */
#define TO_CHAT(PARTS, BYTES, ADDRESS, NAME, TYPE, DATA)                                           \
    {"message", "/messageId", "left out: chat messages have no id"},                               \
        {"message", "/contextId", "left out: a chat is identified by its list of messages"},       \
        {"message", "/taskId", "left out"},                                                        \
        {"message", "/metadata",                                                                   \
         "left out; members named `dragoman:...` that came from a chat message are restored",      \
         DGM_LOSS_HAS_OTHERS, "dragoman:* canonical_type"},                                        \
        {"message", "/extensions", "left out"}, {"message", "/referenceTaskIds", "left out"},      \
        {"message", "/metadata/canonical_type",                                                    \
         "TextMessageChunkEvent, ToolCallArgsEvent: an intermediate message produces no chat "     \
         "message",                                                                                \
         DGM_LOSS_IS, "TextMessageChunkEvent ToolCallArgsEvent"},                                  \
        {"message", PARTS, "text parts are joined into one text, without a separator",             \
         DGM_LOSS_SEVERAL_TEXTS},                                                                  \
        {"message", PARTS "/*/metadata", "left out"},                                              \
        {"message", PARTS "/*" BYTES,                                                              \
         "user message: an image becomes image_url, wav and mp3 become input_audio, any other "    \
         "file becomes a file part; agent message: becomes a text with file name, media type and " \
         "size, without the bytes",                                                                \
         DGM_LOSS_ROLE_IS, "agent ROLE_AGENT"},                                                    \
        {"message", PARTS "/*" ADDRESS,                                                            \
         "an image in a user message becomes image_url; any other file becomes a link in the "     \
         "text"},                                                                                  \
        {"message", PARTS "/*" NAME,                                                               \
         "left out for images and audio; a file part without a name gets one"},                    \
        {"message", PARTS "/*" TYPE, "left out for text, data and files that are given by URL",    \
         DGM_LOSS_NOT_BESIDE, "raw bytes fileWithBytes"},                                          \
        {"message", PARTS "/*" DATA,                                                               \
         "becomes JSON text on a line of its own, unless it contains tool calls or results",       \
         DGM_LOSS_HAS_NONE, "tool_calls tool_results"},                                            \
        {"message", PARTS "/*" DATA "/*", "left out next to tool_calls and tool_results",          \
         DGM_LOSS_BESIDE, "tool_calls tool_results"},                                              \
        {"message", PARTS "/*" DATA "/tool_calls",                                                 \
         "user message: becomes JSON text, because only agents make calls", DGM_LOSS_ROLE_IS,      \
         "user ROLE_USER"},                                                                        \
        {"message", PARTS "/*" DATA "/tool_calls/*/arguments",                                     \
         "an object becomes JSON text with `, ` and `: ` as separators; absent becomes `{}`",      \
         DGM_LOSS_NOT_TEXT},                                                                       \
        {"message", PARTS "/*" DATA "/tool_calls/*/*", "unknown members are left out",             \
         DGM_LOSS_NAME_IS_NOT, "call_id id type name arguments function"},                         \
        {"message", PARTS "/*" DATA "/tool_results/*/name",                                        \
         "left out: tool messages have no name"},                                                  \
        {"message", PARTS "/*" DATA "/tool_results/*/output",                                      \
         "a value that is not a string becomes JSON text", DGM_LOSS_NOT_TEXT},                     \
        {"message", PARTS "/*" DATA "/tool_results/*/*", "unknown members are left out",           \
         DGM_LOSS_NAME_IS_NOT, "call_id id type name output"},                                     \
        {"task", "/id", "left out"}, {"task", "/contextId", "left out"},                           \
        {"task", "/status/state", "left out"}, {"task", "/status/timestamp", "left out"},          \
        {"task", "/status/message",                                                                \
         "becomes the last message, unless the history contains it or the state is submitted or "  \
         "working"},                                                                               \
        {"task", "/artifacts/*",                                                                   \
         "becomes an assistant message without id, name, description, metadata and extensions; "   \
         "left out if the final message has the same text"},                                       \
        {"task", "/metadata", "left out"}, {"send-request", "/configuration", "left out"},         \
        {"send-request", "/metadata", "left out"}, {"send-request", "/tenant", "left out"},        \
        {"status-update", "", "produces no chat message"},                                         \
        {"artifact-update", "", "produces no chat message"},                                       \
        {"internal-event", "", "produces no chat message"},                                        \
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
     "A2A has the roles user and agent; system, developer and function are stored in metadata as "
     "`dragoman:role`",
     DGM_LOSS_IS, "system developer function"},
    {"message", "/name", "stored in metadata as `dragoman:name`"},
    {"message", "/reasoning_content", "stored in metadata as `dragoman:reasoning_content`"},
    {"message", "/refusal", "becomes a text part, marked in its metadata"},
    {"message", "/function_call",
     "becomes a tool call whose id is the function's name, marked in its metadata"},
    {"message", "/tool_call_id", "left out in messages whose role is not tool",
     DGM_LOSS_ROLE_IS_NOT, "tool"},
    {"message", "/content",
     "null, absent and an empty list become an empty text, or nothing if the message has calls; a "
     "list of text parts comes back as one text",
     DGM_LOSS_EMPTY},
    {"message", "/content/*/image_url/url",
     "a data: URL becomes bytes: it comes back padded, in the standard alphabet",
     DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/image_url/detail",
     "stored in the part's metadata as `dragoman:detail`"},
    {"message", "/content/*/input_audio",
     "becomes bytes: a data: URL comes back as plain base64, the format as wav or mp3 if it is one "
     "of these",
     DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/file/file_data",
     "becomes bytes: plain base64 comes back as a data: URL", DGM_LOSS_NOT_REPORTED},
    {"message", "/content/*/file/file_id",
     "names a file that the A2A side cannot read: stored in a data part, or in metadata if the "
     "part has bytes"},
    {"message", "/content/*/video_url", "becomes a file, marked in its metadata"},
    {"message", "/content/*", "a part of unknown type becomes a data part, unchanged",
     DGM_LOSS_TYPE_IS_NOT, "text image_url input_audio file refusal video_url"},
    {"message", "/content/*/*", "unknown members are left out", DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls/*/function/arguments",
     "remains a string, unless it is an object written with `, ` and `: ` as separators",
     DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls/*/*", "unknown members are left out", DGM_LOSS_NOT_REPORTED},
    {"message", "/tool_calls", "an empty list is left out", DGM_LOSS_EMPTY},
    {"message", "/*", "unknown members (audio, annotations, ...) are left out"},
    {"chat-request", "/*", "everything except messages is left out: model, tools, settings"},
    {"chat-response", "/*",
     "everything except the messages of the choices is left out: id, model, usage"},
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

/* ---- all pairs --------------------------------------------------------------------------------------------- */

static size_t add_losses(const dgm_loss_rows *rows, const dgm_loss **ret, size_t n, size_t max)
{
    for (size_t i = 0; rows && i < rows->n; i++, n++) {
        if (n < max)
            ret[n] = &rows->at[i];
    }
    return n;
}

size_t dgm_format_losses(dgm_format_id from, dgm_format_id to, const dgm_loss **ret_losses,
                         size_t max)
{
    const dgm_codec *f = from ? dgm_codec_by_id(from, NULL) : NULL;
    const dgm_codec *t = to ? dgm_codec_by_id(to, NULL) : NULL;
    if (!ret_losses)
        max = 0;
    size_t n = 0;
    if (f == t || (from && !f) || (to && !t))
        return 0;
    if (f && t && f->decode && t->encode)
        return dgm_a2a_losses(f, t, ret_losses, max);
    if (f && t && (f->decode || t->encode) && (f->direct || t->direct)) {
        n = dgm_direct_losses(f->name, t->name, ret_losses, max);
        /* streams and complete responses pass through canonical events */
        return add_losses(f->direct ? f->lost_reading : t->lost_writing, ret_losses, n, max);
    }
    if (f)
        n = add_losses(f->lost_reading, ret_losses, n, max);
    return t ? add_losses(t->lost_writing, ret_losses, n, max) : n;
}
