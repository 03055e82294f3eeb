/*
 * wire/chat/chat_artifacts.c - artifacts that are not text, as the text of an answer: data as a block of
 * JSON, files as links, which are cited as well.
 *
 * A part that is replaced is emitted like a text that was replaced: once more, at the end.
 */
#include "base/list.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "model/form.h"
#include "wire/chat/chat_encode.h"

/* ---- links --------------------------------------------------------------------------------------------------- */

/* Characters: all bytes but those that continue one, which are 10xxxxxx. Every piece of every text is counted,
 * so eight at a time. */
static uint64_t count(dgm_str text)
{
    uint64_t n = text.n, each = ~(uint64_t)0 / 255;
    size_t i = 0;
    for (; text.n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, text.p + i, sizeof w);
        n -= ((w >> 7 & ~w >> 6 & each) * each) >> 56;
    }
    for (; i < text.n; i++)
        n -= ((unsigned char)text.p[i] & 0xc0) == 0x80;
    return n;
}

void dgm_chat_place_citations(dgm_chat_encoder *e, size_t text, unsigned gap, dgm_str said)
{
    uint64_t start = e->n_chars + gap;
    e->n_chars = start + count(said);
    for (size_t i = 0; i < e->n_citations; i++) {
        if (e->citations[i].text == text) {
            e->citations[i].start = start;
            e->citations[i].end = e->n_chars;
        }
    }
}

static void cite(dgm_chat_encoder *e, size_t text, const dgm_part *p)
{
    size_t i = 0;
    while (i < e->n_citations && e->citations[i].text != text)
        i++;
    if (i == e->n_citations) {
        e->citations =
            dgm_list_reserve(e->citations, e->n_citations, &e->cap_citations, sizeof *e->citations);
        e->n_citations++;
    }
    dgm_str title = p->filename.n ? p->filename : p->content;
    e->citations[i] = (struct chat_citation){.text = text,
                                             .url = dgm_arena_dup(e->arena, p->content),
                                             .title = dgm_arena_dup(e->arena, title)};
}

void dgm_chat_put_citations(dgm_chat_encoder *e)
{
    dgm_buf *b = &e->out;
    if (!e->n_citations)
        return;
    if (b->p[b->n - 1] != '{')
        dgm_buf_add_char(b, ',');
    dgm_buf_add_lit(b, "\"annotations\":[");
    for (size_t i = 0; i < e->n_citations; i++) {
        const struct chat_citation *c = &e->citations[i];
        dgm_buf_add_str(b, i ? DGM_STR(",") : DGM_STR(""));
        dgm_buf_add_lit(b, "{\"type\":\"url_citation\",\"url_citation\":{\"start_index\":");
        dgm_json_put_int(b, (int64_t)c->start);
        dgm_buf_add_lit(b, ",\"end_index\":");
        dgm_json_put_int(b, (int64_t)c->end);
        dgm_buf_add_lit(b, ",\"url\":");
        dgm_json_put_str(b, c->url);
        dgm_buf_add_lit(b, ",\"title\":");
        dgm_json_put_str(b, c->title);
        dgm_buf_add_lit(b, "}}");
    }
    dgm_buf_add_char(b, ']');
}

/* ---- parts ---------------------------------------------------------------------------------------------------- */

static dgm_str chat_artifacts_text_of(dgm_chat_encoder *e, dgm_arena *a, const dgm_part *p)
{
    if (p->kind != DGM_PART_DATA)
        return dgm_content_file_text(a, p);
    dgm_str json = dgm_content_spaced_json(a, p->data);
    return e->params.json ? json : dgm_arena_printf(a, "```json\n%.*s\n```", DGM_P(json));
}

static void tell_part(dgm_chat_encoder *e, dgm_arena *a, dgm_str id, const dgm_part *p)
{
    struct chat_text *t = dgm_chat_text_of(e, id);
    dgm_str text = chat_artifacts_text_of(e, a, p), was = dgm_buf_str(&t->text);
    bool again = was.n > 0;
    if (again && dgm_str_eq(was, text))
        return;
    bool image = dgm_media_is(dgm_media_type(p), DGM_STR("image/"));
    if (p->kind == DGM_PART_URL && !image && e->task_id.n) /* who converts reads the link */
        cite(e, (size_t)(t - e->texts), p);
    e->kept -= was.n;
    dgm_buf_clear(&t->text);
    dgm_chat_keep(e, &t->text, text);
    if (again)
        t->instead = !e->params.whole;
    else if (!e->params.whole)
        dgm_chat_say(e, t, text);
}

void dgm_chat_add_artifact(dgm_chat_encoder *e, const dgm_canon_event *event)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_artifact *artifact = event->artifact.artifact;
    dgm_str id = artifact->artifact_id;
    size_t *n_parts = dgm_map_get(&e->artifacts, id);
    if (!n_parts) {
        dgm_map_put(&e->artifacts, dgm_arena_dup(e->arena, id), 0);
        n_parts = dgm_map_get(&e->artifacts, id);
    }
    if (!event->artifact.append)
        *n_parts = 0;
    for (size_t i = 0; i < artifact->parts.n; i++) {
        const dgm_part *p = &artifact->parts.at[i];
        if (p->kind != DGM_PART_TEXT)
            tell_part(e, a, dgm_arena_printf(a, "artifact/%zu/%.*s", (*n_parts)++, DGM_P(id)), p);
    }
}
