/* wire/formats.c - every format, in the order in which formats are listed and detected. */
#include "wire/formats.h"
#include "wire/a2a/a2a.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "wire/aisdk/aisdk.h"
#include "wire/chat/chat_codec.h"
#include "wire/langchain/langchain.h"
#include "wire/responses/responses.h"

#include <stdio.h>

/* clang-format off */
#define FORMATS(X) /* id, name, what it is, whether it has JSON-RPC envelopes, its codec; in the order shown, and tried */ \
    X(A2A_10, "a2a-1.0", "A2A 1.0: JSON-RPC, REST, push bodies, cards", true, &dgm_codec_a2a_10)              \
    X(A2A_03, "a2a-0.3", "A2A 0.3, JSON-RPC: objects tagged by kind", true, &dgm_codec_a2a_03)                \
    X(A2A_03_REST, "a2a-0.3-rest", "A2A 0.3, HTTP+JSON: the ProtoJSON of its proto", false, &dgm_codec_a2a_03_rest) \
    X(CHAT, "openai-chat", "OpenAI Chat Completions: requests, messages, completions and their chunks", false,     \
      &dgm_codec_openai_chat)                                                       \
    X(RESPONSES, "openai-responses", "OpenAI Responses: requests, items, response objects, events", false,              \
      &dgm_codec_responses)                                                                         \
    X(AG_UI, "ag-ui", "AG-UI 1.0: events, messages, requests; input of older clients is accepted too", false,           \
      &dgm_codec_agui)                                                                              \
    X(AG_UI_0, "ag-ui-0", "AG-UI as clients older than 1.0 accept it", false, &dgm_codec_agui_old)              \
    X(AG_UI_PROTO, "ag-ui-proto", "AG-UI 1.0 events in protobuf: binary, each with a length prefix", false,                    \
      &dgm_codec_agui_proto)                                                                        \
    X(AI_SDK, "ai-sdk", "the AI SDK's UI message stream, UI messages and requests", false, &dgm_codec_aisdk) \
    X(LANGCHAIN, "langchain", "LangChain messages and message chunks, as dicts", false, &dgm_codec_langchain)    \
    X(AG_UI_SIMPLE, "ag-ui-simple", "the simple dialect of AG-UI: complete events", false, &dgm_codec_agui_simple) \
    X(RESPONSES_SIMPLE, "responses-simple", "the simple dialect of Responses: complete events", false,                        \
      &dgm_codec_responses_simple)
/* clang-format on */

#define ROW(sym, name_, about_, envelopes_, codec_) codec_,
static const dgm_codec *const codecs[] = {FORMATS(ROW)};
#undef ROW
#define N_CODECS (sizeof codecs / sizeof *codecs)

size_t dgm_format_count(void)
{
    return N_CODECS;
}

const dgm_format_info *dgm_format_at(size_t index)
{
#define ROW(sym, name_, about_, envelopes_, codec_)                                                \
    {DGM_FORMAT_##sym, name_, about_, envelopes_, DGM_FORMAT_##sym == DGM_FORMAT_AG_UI_PROTO},
    static const dgm_format_info infos[N_CODECS] = {FORMATS(ROW)};
#undef ROW
    return index < N_CODECS ? &infos[index] : NULL;
}

const dgm_codec *dgm_codec_by_id(dgm_format_id id, dgm_err *err)
{
    char number[16]; /* for the error message */
    for (size_t i = 0; i < N_CODECS; i++) {
        if (codecs[i]->format == id)
            return codecs[i];
    }
    snprintf(number, sizeof number, "%d", (int)id);
    return dgm_codec_by_name(number, err);
}

const dgm_codec *dgm_codec_by_name(const char *name, dgm_err *err)
{
    char names[256] = "";
    for (size_t i = 0, n = 0; i < N_CODECS; i++) {
        if (name && strcmp(codecs[i]->name, name) == 0)
            return codecs[i];
        n += (size_t)snprintf(names + n, n < sizeof names ? sizeof names - n : 0, "%s%s",
                              i ? ", " : "", codecs[i]->name);
    }
    dgm_fail(err, DGM_BAD_REQUEST, NULL, "unknown format \"%.60s\"; allowed values: %s",
             name ? name : "", names);
    return NULL;
}

bool dgm_codec_has(const dgm_codec *codec, dgm_form form)
{
    switch (form) {
    case DGM_FORM_NONE: return false;
    case DGM_FORM_EVENTS: return codec->encoder_new;
    case DGM_FORM_RESPONSE: return codec->encoder_new && codec->has_response;
    case DGM_FORM_MESSAGES: return codec->write_messages;
    case DGM_FORM_REQUEST: return codec->write_request;
    }
    return false;
}

const char *dgm_form_word(dgm_form form)
{
    static const char *const words[] = {[DGM_FORM_NONE] = "",
                                        [DGM_FORM_EVENTS] = "events",
                                        [DGM_FORM_RESPONSE] = "response",
                                        [DGM_FORM_MESSAGES] = "messages",
                                        [DGM_FORM_REQUEST] = "request"};
    return words[form];
}

/* ---- detection --------------------------------------------------------------------------------------------- */

/* No format has a higher score: the others need not be tried. */
#define CERTAIN 3

const dgm_codec *dgm_codec_detect(const yyjson_val *v, const dgm_codec *guess, int *ret_score)
{
    dgm_form form;
    int best_score = guess ? guess->recognise(v, &form) : 0;
    const dgm_codec *best = best_score ? guess : NULL;
    /* Two dialects of A2A may share marks; then another format has none. */
    bool sure = guess && guess->decode && best_score >= 2;
    for (size_t i = 0; !sure && i < N_CODECS && best_score < CERTAIN; i++) {
        int score = codecs[i] == guess ? 0 : codecs[i]->recognise(v, &form);
        if (score > best_score) {
            best = codecs[i];
            best_score = score;
        }
    }
    if (ret_score)
        *ret_score = best_score;
    return best;
}

bool dgm_codec_has_array(const dgm_codec *codec, const yyjson_val *array)
{
    for (size_t i = 0; i < N_CODECS; i++) {
        if (codecs[i]->is_one && (!codec || codec == codecs[i]) && codecs[i]->is_one(array))
            return true;
    }
    return false;
}
