/* wire/chat/chat_completion.c - a run as one chat.completion. */
#include "wire/chat/chat_encode.h"
#include "json/json.h"

/* Texts of several messages, joined by a blank line; null where there is something else instead. */
static void put_content(dgm_chat_encoder *e, bool others)
{
    dgm_buf *b = &e->out;
    bool any = false;
    for (size_t i = 0; i < e->n_texts; i++) {
        dgm_str text = dgm_buf_str(&e->texts[i].text);
        if (!text.n)
            continue;
        dgm_chat_place_citations(e, i, any ? 2 : 0, text);
        dgm_buf_add_str(b, any ? DGM_STR("\\n\\n") : DGM_STR("\""));
        dgm_json_put_chars(b, text);
        any = true;
    }
    if (any)
        dgm_buf_add_char(b, '"');
    else
        dgm_buf_add_str(b, others ? DGM_STR("null") : DGM_STR("\"\""));
}

static void put_calls(dgm_chat_encoder *e)
{
    bool any = false;
    for (size_t i = 0; i < e->n_calls; i++) {
        if (!e->calls[i].asked)
            continue;
        dgm_buf_add_str(&e->out, any ? DGM_STR(",{") : DGM_STR(",\"tool_calls\":[{"));
        dgm_chat_put_call(&e->out, &e->calls[i]);
        dgm_buf_add_char(&e->out, '}');
        any = true;
    }
    if (any)
        dgm_buf_add_char(&e->out, ']');
}

void dgm_chat_completion(dgm_chat_encoder *e, const char *reason, dgm_str refusal,
                         const char *state, const dgm_canon_usages *usages)
{
    dgm_buf *b = &e->out;
    b->n = e->top;
    dgm_buf_add_lit(b,
                    ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    put_content(e, e->n_given || refusal.p);
    dgm_buf_add_lit(b, ",\"refusal\":");
    if (refusal.p)
        dgm_json_put_str(b, refusal);
    else
        dgm_buf_add_lit(b, "null");
    if (e->reasoning.n) {
        dgm_buf_add_lit(b, ",\"reasoning_content\":");
        dgm_json_put_str(b, dgm_buf_str(&e->reasoning));
    }
    put_calls(e);
    dgm_chat_put_citations(e);
    dgm_buf_add_lit(b, "},\"logprobs\":null,\"finish_reason\":\"");
    dgm_buf_add_str(b, dgm_str_from(reason));
    dgm_buf_add_lit(b, "\"}]");
    if (state)
        dgm_chat_put_a2a(e, state);
    dgm_chat_put_usage(b, usages);
    dgm_buf_add_char(b, '}');
    dgm_chat_emit(e);
}
