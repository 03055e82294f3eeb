/* wire/responses/responses_item.c - how items are spelled; see responses_out.h. */
#include "wire/responses/responses_out.h"

#define LIT(lit) dgm_buf_add_lit(&e->out, lit)

static void put_word(struct responses_encoder *e, const char *word)
{
    dgm_buf_add_char(&e->out, '"');
    dgm_buf_add_str(&e->out, dgm_str_from(word));
    dgm_buf_add_char(&e->out, '"');
}

/* In quotes: it is escaped already. */
static void put_escaped(struct responses_encoder *e, const dgm_buf *text)
{
    dgm_buf_add_char(&e->out, '"');
    dgm_buf_add_str(&e->out, dgm_buf_str(text));
    dgm_buf_add_char(&e->out, '"');
}

/* ---- items ------------------------------------------------------------------------------------------------ */

void dgm_responses_put_text(struct responses_encoder *e, const struct responses_item *it)
{
    bool first = !it->follows;
    dgm_buf_add_char(&e->out, '"');
    for (size_t i = it->first; i != DGM_RESPONSES_NONE; i = e->pieces[i].next) {
        if (!e->pieces[i].text.n)
            continue; /* taken back */
        if (!first)
            LIT("\\n\\n");
        dgm_buf_add_str(&e->out, dgm_buf_str(&e->pieces[i].text));
        first = false;
    }
    dgm_buf_add_char(&e->out, '"');
}

void dgm_responses_put_part(struct responses_encoder *e, const struct responses_item *it,
                            bool empty)
{
    if (it->kind == RESPONSES_REFUSAL)
        LIT("{\"type\":\"refusal\",\"refusal\":");
    else
        LIT("{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":");
    if (empty)
        LIT("\"\"");
    else
        dgm_responses_put_text(e, it);
    dgm_buf_add_char(&e->out, '}');
}

void dgm_responses_put_summary(struct responses_encoder *e, const struct responses_piece *p,
                               bool empty)
{
    LIT("{\"type\":\"summary_text\",\"text\":");
    if (empty)
        LIT("\"\"");
    else
        put_escaped(e, &p->text);
    dgm_buf_add_char(&e->out, '}');
}

static void put_reasoning(struct responses_encoder *e, const struct responses_item *it)
{
    LIT(",\"type\":\"reasoning\",\"summary\":[");
    for (size_t i = it->first; it->status && i != DGM_RESPONSES_NONE; i = e->pieces[i].next) {
        if (i != it->first)
            dgm_buf_add_char(&e->out, ',');
        dgm_responses_put_summary(e, &e->pieces[i], false);
    }
    dgm_buf_add_char(&e->out, ']');
    if (it->encrypted.p) {
        LIT(",\"encrypted_content\":");
        dgm_json_put_str(&e->out, it->encrypted);
    }
}

static void put_call(struct responses_encoder *e, const struct responses_item *it)
{
    bool mcp = it->kind == RESPONSES_MCP;
    if (mcp)
        LIT(",\"type\":\"mcp_call\",\"approval_request_id\":null,\"arguments\":");
    else
        LIT(",\"type\":\"function_call\",\"arguments\":");
    if (it->status)
        put_escaped(e, &it->text);
    else
        LIT("\"\"");
    if (mcp) {
        LIT(",\"server_label\":");
        dgm_json_put_str(&e->out, e->model);
        LIT(",\"error\":");
        if (it->failed && it->status)
            put_escaped(e, &it->output);
        else
            LIT("null");
        LIT(",\"output\":");
        if (it->answered && !it->failed && it->status)
            put_escaped(e, &it->output);
        else
            LIT("null");
    } else {
        LIT(",\"call_id\":");
        dgm_json_put_str(&e->out, it->call_id);
    }
    LIT(",\"name\":");
    dgm_json_put_str(&e->out, it->name);
}

/* Not done yet: without what it will hold. */
void dgm_responses_put_item(struct responses_encoder *e, const struct responses_item *it)
{
    if (it->kind == RESPONSES_OTHER) {
        dgm_buf_add_str(&e->out, dgm_buf_str(&it->text));
        return;
    }
    LIT("{\"id\":");
    dgm_json_put_str(&e->out, it->id);
    switch (it->kind) {
    case RESPONSES_OTHER: break;
    case RESPONSES_MESSAGE:
    case RESPONSES_REFUSAL:
        LIT(",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
        if (it->status)
            dgm_responses_put_part(e, it, false);
        dgm_buf_add_char(&e->out, ']');
        break;
    case RESPONSES_REASONING: put_reasoning(e, it); break;
    case RESPONSES_FUNCTION:
    case RESPONSES_MCP: put_call(e, it); break;
    case RESPONSES_IMAGE:
        LIT(",\"type\":\"image_generation_call\",\"result\":");
        if (it->status)
            put_escaped(e, &it->text);
        else
            LIT("null");
        break;
    }
    if (it->kind != RESPONSES_REASONING) { /* which has none while it is made */
        LIT(",\"status\":");
        put_word(e, it->status ? it->status : "in_progress");
    }
    dgm_buf_add_char(&e->out, '}');
}
