/* lib/formats.c - the table of formats, and what is lost between them. */
#include "lib/formats.h"
#include "lib/direct.h"
#include "wire/a2a/a2a.h"
#include "wire/a2a/a2a_losses.h"
#include "wire/openai/chat.h"

#include <stdlib.h>

#define N_FORMATS 4

/* Formats are told apart by the address of their name, so the codecs' own are used. */
static const dgm_format formats[N_FORMATS] = {
    {"a2a-1.0", &dgm_codec_a2a_10, NULL},
    {"a2a-0.3", &dgm_codec_a2a_03, NULL},
    {"a2a-0.3-rest", &dgm_codec_a2a_03_rest, NULL},
    {"openai-chat", NULL, dgm_chat_recognise},
};

size_t dgm_formats(const dgm_format_info **ret_formats)
{
    static const dgm_format_info infos[N_FORMATS] = {
        {"a2a-1.0", "A2A 1.0: JSON-RPC, REST, push bodies, cards", true},
        {"a2a-0.3", "A2A 0.3, JSON-RPC: objects tagged by kind", true},
        {"a2a-0.3-rest", "A2A 0.3, HTTP+JSON: the ProtoJSON of its proto", false},
        {"openai-chat", "OpenAI Chat Completions: complete messages", false},
    };
    *ret_formats = infos;
    return N_FORMATS;
}

const dgm_format *dgm_format_by_name(const char *name, dgm_err *err)
{
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (name && strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    dgm_fail(err, DGM_BAD_REQUEST, NULL,
             "no format is called \"%.60s\": there are a2a-1.0, a2a-0.3, a2a-0.3-rest, openai-chat",
             name ? name : "");
    return NULL;
}

const dgm_format *dgm_format_recognise(const yyjson_val *v, const dgm_format *guess)
{
    const dgm_format *best = NULL;
    int best_score = 0;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const dgm_format *f = &formats[i];
        int score = f->a2a ? f->a2a->recognise(v) : f->recognise(v);
        if (score > best_score || (score && score == best_score && f == guess)) {
            best = f;
            best_score = score;
        }
    }
    return best;
}

size_t dgm_losses(const char *from, const char *to, const dgm_loss **ret_losses, size_t max)
{
    const dgm_format *f = dgm_format_by_name(from, NULL), *t = dgm_format_by_name(to, NULL);
    if (!f || !t || f == t)
        return 0;
    if (f->a2a && t->a2a)
        return dgm_a2a_losses(f->a2a, t->a2a, ret_losses, max);
    return dgm_direct_losses(f->name, t->name, ret_losses, max);
}

void dgm_free(void *p)
{
    free(p);
}

const char *dgm_version(void)
{
    return DGM_VERSION;
}
