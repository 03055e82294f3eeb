/* lib/formats.c - the table of formats, and what is lost between them. */
#include "lib/formats.h"
#include "lib/direct.h"
#include "wire/a2a/a2a.h"
#include "wire/a2a/a2a_losses.h"
#include "wire/agui/agui_codec.h"
#include "wire/agui/agui_proto.h"
#include "wire/aisdk/aisdk.h"
#include "wire/chat/chat_codec.h"
#include "wire/langchain/langchain.h"
#include "wire/responses/responses.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
#define FORMATS(X) /* name, what it is, whether it has JSON-RPC envelopes, its codec; in the order shown, and tried */ \
    X("a2a-1.0", "A2A 1.0: JSON-RPC, REST, push bodies, cards", true, .a2a = &dgm_codec_a2a_10)              \
    X("a2a-0.3", "A2A 0.3, JSON-RPC: objects tagged by kind", true, .a2a = &dgm_codec_a2a_03)                \
    X("a2a-0.3-rest", "A2A 0.3, HTTP+JSON: the ProtoJSON of its proto", false, .a2a = &dgm_codec_a2a_03_rest) \
    X("openai-chat", "OpenAI Chat Completions: requests, messages, completions and their chunks", false,     \
      .canon = &dgm_codec_openai_chat, .direct = true)                                                       \
    X("openai-responses", "OpenAI Responses: requests, items, response objects, events", false,              \
      .canon = &dgm_codec_responses)                                                                         \
    X("ag-ui", "AG-UI 1.0: events, messages, requests; input of older clients is accepted too", false,           \
      .canon = &dgm_codec_agui)                                                                              \
    X("ag-ui-0", "AG-UI as clients older than 1.0 accept it", false, .canon = &dgm_codec_agui_old)              \
    X("ag-ui-proto", "AG-UI 1.0 events in protobuf: binary, each with a length prefix", false,                    \
      .canon = &dgm_codec_agui_proto)                                                                        \
    X("ai-sdk", "the AI SDK's UI message stream, UI messages and requests", false, .canon = &dgm_codec_aisdk) \
    X("langchain", "LangChain messages and message chunks, as dicts", false, .canon = &dgm_codec_langchain)    \
    X("ag-ui-simple", "the simple dialect of AG-UI: complete events", false, .canon = &dgm_codec_agui_simple) \
    X("responses-simple", "the simple dialect of Responses: complete events", false,                        \
      .canon = &dgm_codec_responses_simple)
/* clang-format on */

#define ROW(name_, about_, envelopes_, ...) {name_, __VA_ARGS__},
static const dgm_format formats[] = {FORMATS(ROW)};
#undef ROW
#define N_FORMATS (sizeof formats / sizeof *formats)

size_t dgm_formats(const dgm_format_info **ret_formats)
{
#define ROW(name_, about_, envelopes_, ...) {name_, about_, envelopes_},
    static const dgm_format_info infos[N_FORMATS] = {FORMATS(ROW)};
#undef ROW
    *ret_formats = infos;
    return N_FORMATS;
}

const dgm_format *dgm_format_by_name(const char *name, dgm_err *err)
{
    char names[256] = "";
    for (size_t i = 0, n = 0; i < N_FORMATS; i++) {
        if (name && strcmp(formats[i].name, name) == 0)
            return &formats[i];
        n += (size_t)snprintf(names + n, n < sizeof names ? sizeof names - n : 0, "%s%s",
                              i ? ", " : "", formats[i].name);
    }
    dgm_fail(err, DGM_BAD_REQUEST, NULL, "unknown format \"%.60s\"; allowed values: %s",
             name ? name : "", names);
    return NULL;
}

bool dgm_format_is_binary(const char *name)
{
    const dgm_format *f = dgm_format_by_name(name, NULL);
    return f && f->canon && f->canon->binary;
}

bool dgm_format_has(const dgm_format *f, dgm_form form)
{
    const dgm_canon_codec *codec = f->canon;
    switch (form) {
    case DGM_FORM_NONE: return false;
    case DGM_FORM_EVENTS: return f->a2a || (codec && codec->encoder_new);
    case DGM_FORM_RESPONSE: return f->a2a || (codec && codec->encoder_new && codec->has_response);
    case DGM_FORM_MESSAGES: return f->a2a || f->direct || (codec && codec->write_messages);
    case DGM_FORM_REQUEST: return f->a2a || (codec && codec->write_request);
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

/* ---- whose is it? ------------------------------------------------------------------------------------------ */

/* A2A's codecs go as high as this where nothing speaks for another. */
#define CERTAIN 3

static int score_of(const dgm_format *f, const yyjson_val *v)
{
    dgm_form form = DGM_FORM_NONE;
    if (f->a2a)
        return f->a2a->recognise(v);
    return f->canon->recognise(v, &form);
}

const dgm_format *dgm_format_score(const yyjson_val *v, const dgm_format *guess, int *ret_score)
{
    const dgm_format *best = NULL;
    int best_score = 0;
    if (guess && (best_score = score_of(guess, v)))
        best = guess;
    /* Marks that A2A's spellings share leave the others nothing to show. */
    if (guess && guess->a2a && best_score >= 2) {
        *ret_score = best_score;
        return guess;
    }
    for (size_t i = 0; i < N_FORMATS && best_score < CERTAIN; i++) {
        int score = &formats[i] == guess ? 0 : score_of(&formats[i], v);
        if (score > best_score) {
            best = &formats[i];
            best_score = score;
        }
    }
    *ret_score = best_score;
    return best;
}

const dgm_format *dgm_format_recognise(const yyjson_val *v, const dgm_format *guess)
{
    int score;
    return dgm_format_score(v, guess, &score);
}

bool dgm_format_has_array(const dgm_format *f, const yyjson_val *array)
{
    for (size_t i = 0; i < N_FORMATS; i++) {
        const dgm_canon_codec *codec = formats[i].canon;
        if (codec && codec->is_one && (!f || f == &formats[i]) && codec->is_one(array))
            return true;
    }
    return false;
}

/* ---- losses ------------------------------------------------------------------------------------------------ */

static size_t add_rows(dgm_loss_rows rows, const dgm_loss **ret, size_t n, size_t max)
{
    for (size_t i = 0; i < rows.n; i++, n++) {
        if (n < max)
            ret[n] = &rows.at[i];
    }
    return n;
}

dgm_loss_rows dgm_format_lost_reading(const dgm_format *f)
{
    const dgm_loss_rows *rows = f->canon ? f->canon->lost_reading : &dgm_a2a_lost_reading;
    return rows ? *rows : (dgm_loss_rows){0};
}

dgm_loss_rows dgm_format_lost_writing(const dgm_format *f)
{
    const dgm_loss_rows *rows = f->canon ? f->canon->lost_writing : &dgm_a2a_lost_writing;
    return rows ? *rows : (dgm_loss_rows){0};
}

size_t dgm_losses(const char *from, const char *to, const dgm_loss **ret_losses, size_t max)
{
    const dgm_format *f = from ? dgm_format_by_name(from, NULL) : NULL;
    const dgm_format *t = to ? dgm_format_by_name(to, NULL) : NULL;
    size_t n = 0;
    if (f == t || (from && !f) || (to && !t))
        return 0;
    if (f && t && f->a2a && t->a2a)
        return dgm_a2a_losses(f->a2a, t->a2a, ret_losses, max);
    if (f && t && (f->a2a || t->a2a) && (f->direct || t->direct)) {
        n = dgm_direct_losses(f->name, t->name, ret_losses, max);
        /* streams and whole responses take the other road */
        return f->direct ? add_rows(dgm_format_lost_reading(f), ret_losses, n, max)
                         : add_rows(dgm_format_lost_writing(t), ret_losses, n, max);
    }
    if (f)
        n = add_rows(dgm_format_lost_reading(f), ret_losses, n, max);
    return t ? add_rows(dgm_format_lost_writing(t), ret_losses, n, max) : n;
}

void dgm_free(void *p)
{
    free(p);
}

const char *dgm_version(void)
{
    return DGM_VERSION;
}
