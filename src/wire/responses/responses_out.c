/*
 * wire/responses/responses_out.c - the lives of items, as frames.
 *
 *   message    added, content_part.added, text deltas ..., text.done, content_part.done, item done
 *   reasoning  added, { summary_part.added, deltas ..., text.done, summary_part.done } ..., item done
 *   calls      added, deltas of arguments ..., arguments.done, item done
 *
 * Of a response that is wanted whole only the items are kept: frames are not written at all.
 */
#include "wire/responses/responses_out.h"
#include "base/limits.h"
#include "base/list.h"

#include <stdlib.h>

#define LIT(lit) dgm_buf_add_lit(&e->out, lit)

/* ---- frames ------------------------------------------------------------------------------------------------ */

bool dgm_responses_frame(struct responses_encoder *e, dgm_str event)
{
    if (e->rc || e->params.whole)
        return false;
    dgm_buf_clear(&e->out);
    LIT("{\"type\":\"");
    dgm_buf_add_str(&e->out, event);
    LIT("\",\"sequence_number\":");
    dgm_json_put_int(&e->out, e->sequence++);
    return true;
}

void dgm_responses_emit(struct responses_encoder *e, dgm_str event)
{
    dgm_buf_add_char(&e->out, '}');
    if (e->out.over)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the event becomes longer than the limit output_bytes of %zu",
                         DGM_MAX_OUTPUT_BYTES);
    else
        e->rc = e->sink.on_frame(e->sink.arg, event, dgm_buf_str(&e->out));
}

bool dgm_responses_keep(struct responses_encoder *e, size_t n)
{
    e->kept += n;
    if (e->kept > DGM_MAX_OUTPUT_BYTES && !e->rc)
        e->rc = dgm_fail(e->err, DGM_TOO_LARGE, NULL,
                         "the response becomes longer than the limit output_bytes of %zu",
                         DGM_MAX_OUTPUT_BYTES);
    return !e->rc;
}

/* ,"item_id":...,"output_index":n */
static void put_place(struct responses_encoder *e, const struct responses_item *it)
{
    LIT(",\"item_id\":");
    dgm_json_put_str(&e->out, it->id);
    LIT(",\"output_index\":");
    dgm_json_put_int(&e->out, it->index);
}

/* Deltas are what streams are made of: all up to the sequence number is the same for all of an item. */
static dgm_str delta_prefix(struct responses_encoder *e, const struct responses_item *it,
                            dgm_str event, const char *rest)
{
    dgm_buf_clear(&e->out);
    LIT("{\"type\":\"");
    dgm_buf_add_str(&e->out, event);
    dgm_buf_add_char(&e->out, '"');
    put_place(e, it);
    dgm_buf_add_str(&e->out, dgm_str_from(rest));
    LIT(",\"sequence_number\":");
    return dgm_arena_dup(e->arena, dgm_buf_str(&e->out));
}

/* Appends to the stored text and emits the delta. `to` NULL: the text is stored already, and escaped. Without a prefix
 * it is only stored: the item has no index yet. */
static void append_delta(struct responses_encoder *e, dgm_buf *to, dgm_str text, dgm_str prefix,
                         dgm_str event, dgm_str lead)
{
    if (to) {
        size_t before = to->n;
        if (dgm_responses_keep(e, text.n))
            dgm_json_put_chars(to, text);
        text = (dgm_str){to->p + before, to->n - before};
    }
    if (e->rc || e->params.whole || !prefix.p)
        return;
    dgm_buf_clear(&e->out);
    dgm_buf_add_str(&e->out, prefix);
    dgm_json_put_int(&e->out, e->sequence++);
    LIT(",\"delta\":\"");
    dgm_buf_add_str(&e->out, lead);
    dgm_buf_add_str(&e->out, text);
    dgm_buf_add_char(&e->out, '"');
    dgm_responses_emit(e, event);
}

/* ---- items --------------------------------------------------------------------------------------------------- */

struct responses_item *dgm_responses_new_item(struct responses_encoder *e, enum responses_kind kind)
{
    dgm_responses_keep(e, sizeof *e->items);
    e->items = dgm_list_reserve(e->items, e->n_items, &e->cap_items, sizeof *e->items);
    struct responses_item *it = &e->items[e->n_items++];
    *it = (struct responses_item){
        .kind = kind, .first = DGM_RESPONSES_NONE, .last = DGM_RESPONSES_NONE};
    dgm_buf_init(&it->text, SIZE_MAX);
    dgm_buf_init(&it->output, SIZE_MAX);
    return it;
}

size_t dgm_responses_new_piece(struct responses_encoder *e, dgm_str id)
{
    dgm_responses_keep(e, sizeof *e->pieces);
    e->pieces = dgm_list_reserve(e->pieces, e->n_pieces, &e->cap_pieces, sizeof *e->pieces);
    e->pieces[e->n_pieces] = (struct responses_piece){.id = dgm_arena_dup(e->arena, id),
                                                      .item = DGM_RESPONSES_NONE,
                                                      .earlier = DGM_RESPONSES_NONE,
                                                      .next = DGM_RESPONSES_NONE};
    dgm_buf_init(&e->pieces[e->n_pieces].text, SIZE_MAX);
    return e->n_pieces++;
}

void dgm_responses_forget(struct responses_encoder *e)
{
    for (size_t i = 0; i < e->n_items; i++) {
        dgm_buf_done(&e->items[i].text);
        dgm_buf_done(&e->items[i].output);
    }
    for (size_t i = 0; i < e->n_pieces; i++)
        dgm_buf_done(&e->pieces[i].text);
    dgm_map_done(&e->texts);
    dgm_map_done(&e->thoughts);
    dgm_map_done(&e->calls);
    dgm_map_done(&e->spans);
    dgm_map_done(&e->ids);
    dgm_map_done(&e->client_tools);
    e->n_items = e->n_pieces = e->kept = 0;
    e->n_given = 0;
    e->sequence = 0;
    e->current = e->message = e->said = DGM_RESPONSES_NONE;
    e->span = (dgm_str){0};
    e->has_message = false;
    e->progress = (dgm_str){0};
    dgm_arena_reset(e->arena);
}

/* Two items of one response never share an id, whatever the ids were before. */
static dgm_str item_id(struct responses_encoder *e, const char *prefix, dgm_str id, bool again)
{
    dgm_str lead = dgm_str_from(prefix);
    if (dgm_str_starts(id, lead))
        lead = (dgm_str){0};
    if (again || !id.n)
        return dgm_arena_printf(e->arena, "%.*s%.*s%s%u", DGM_P(lead), DGM_P(id), id.n ? "-" : "",
                                e->n_given);
    return dgm_arena_join(e->arena, lead, id);
}

void dgm_responses_add(struct responses_encoder *e, struct responses_item *it, const char *prefix,
                       dgm_str id)
{
    bool scoped = e->params.scoped_ids && *prefix && e->id.n > 5;
    it->id = scoped ? dgm_responses_scoped_id(e->arena, prefix, (dgm_str){e->id.p + 5, e->id.n - 5},
                                              "", e->n_given)
                    : item_id(e, prefix, id, false);
    if (dgm_map_get(&e->ids, it->id))
        it->id = item_id(e, prefix, id, true);
    dgm_map_put(&e->ids, it->id, 0);
    it->index = e->n_given;
    it->state = RESPONSES_OPEN;
    e->has_message |= it->kind == RESPONSES_MESSAGE;
    e->order = dgm_list_reserve(e->order, e->n_given, &e->cap_order, sizeof *e->order);
    e->order[e->n_given++] = (size_t)(it - e->items);
    if (!dgm_responses_frame(e, DGM_STR("response.output_item.added")))
        return;
    LIT(",\"output_index\":");
    dgm_json_put_int(&e->out, it->index);
    LIT(",\"item\":");
    dgm_responses_put_item(e, it);
    dgm_responses_emit(e, DGM_STR("response.output_item.added"));
}

void dgm_responses_close(struct responses_encoder *e, struct responses_item *it, const char *status)
{
    it->state = RESPONSES_DONE;
    it->status = status;
    if (!dgm_responses_frame(e, DGM_STR("response.output_item.done")))
        return;
    LIT(",\"output_index\":");
    dgm_json_put_int(&e->out, it->index);
    LIT(",\"item\":");
    dgm_responses_put_item(e, it);
    dgm_responses_emit(e, DGM_STR("response.output_item.done"));
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

static void content_frame(struct responses_encoder *e, const struct responses_item *it,
                          dgm_str event, bool empty)
{
    if (!dgm_responses_frame(e, event))
        return;
    put_place(e, it);
    LIT(",\"content_index\":0,\"part\":");
    dgm_responses_put_part(e, it, empty);
    dgm_responses_emit(e, event);
}

/* Where a text began. */
static size_t first_of(const struct responses_encoder *e, size_t piece)
{
    while (e->pieces[piece].earlier != DGM_RESPONSES_NONE)
        piece = e->pieces[piece].earlier;
    return piece;
}

void dgm_responses_say(struct responses_encoder *e, size_t piece, dgm_str text)
{
    struct responses_piece *p = &e->pieces[piece];
    struct responses_item *it = &e->items[p->item];
    bool first = !p->prefix.p, leads = first && (it->follows || it->first != piece);
    if (first && it->state == RESPONSES_HELD) {
        dgm_responses_add(e, it, "msg_", p->id);
        content_frame(e, it, DGM_STR("response.content_part.added"), true);
    }
    if (first)
        p->prefix = it->first == piece ? delta_prefix(e, it, DGM_STR("response.output_text.delta"),
                                                      ",\"content_index\":0,\"logprobs\":[]")
                                       : e->pieces[it->first].prefix;
    append_delta(e, p->moved ? &e->pieces[first_of(e, piece)].text : &p->text, text, p->prefix,
                 DGM_STR("response.output_text.delta"), leads ? DGM_STR("\\n\\n") : (dgm_str){0});
}

void dgm_responses_close_message(struct responses_encoder *e, struct responses_item *it,
                                 const char *status)
{
    if (it->state != RESPONSES_OPEN)
        return;
    if (dgm_responses_frame(e, DGM_STR("response.output_text.done"))) {
        put_place(e, it);
        LIT(",\"content_index\":0,\"logprobs\":[],\"text\":");
        dgm_responses_put_text(e, it);
        dgm_responses_emit(e, DGM_STR("response.output_text.done"));
    }
    content_frame(e, it, DGM_STR("response.content_part.done"), false);
    dgm_responses_close(e, it, status);
}

void dgm_responses_refuse(struct responses_encoder *e, dgm_str text)
{
    struct responses_item *it = dgm_responses_new_item(e, RESPONSES_REFUSAL);
    it->first = it->last = dgm_responses_new_piece(e, (dgm_str){0});
    dgm_responses_add(e, it, "msg_", (dgm_str){0});
    content_frame(e, it, DGM_STR("response.content_part.added"), true);
    dgm_str prefix = delta_prefix(e, it, DGM_STR("response.refusal.delta"), ",\"content_index\":0");
    append_delta(e, &e->pieces[it->first].text, text, prefix, DGM_STR("response.refusal.delta"),
                 (dgm_str){0});
    if (dgm_responses_frame(e, DGM_STR("response.refusal.done"))) {
        put_place(e, it);
        LIT(",\"content_index\":0,\"refusal\":");
        dgm_responses_put_text(e, it);
        dgm_responses_emit(e, DGM_STR("response.refusal.done"));
    }
    content_frame(e, it, DGM_STR("response.content_part.done"), false);
    dgm_responses_close(e, it, "completed");
}

/* ---- reasoning ---------------------------------------------------------------------------------------------------- */

static void summary_frame(struct responses_encoder *e, const struct responses_piece *p,
                          dgm_str event, bool empty)
{
    if (!dgm_responses_frame(e, event))
        return;
    put_place(e, &e->items[p->item]);
    LIT(",\"summary_index\":");
    dgm_json_put_int(&e->out, p->index);
    LIT(",\"part\":");
    dgm_responses_put_summary(e, p, empty);
    dgm_responses_emit(e, event);
}

void dgm_responses_append_reasoning(struct responses_encoder *e, size_t piece, dgm_str text)
{
    struct responses_piece *p = &e->pieces[piece];
    if (!p->prefix.p) {
        char index[40];
        snprintf(index, sizeof index, ",\"summary_index\":%u", p->index);
        summary_frame(e, p, DGM_STR("response.reasoning_summary_part.added"), true);
        p->prefix = delta_prefix(e, &e->items[p->item],
                                 DGM_STR("response.reasoning_summary_text.delta"), index);
    }
    append_delta(e, &p->text, text, p->prefix, DGM_STR("response.reasoning_summary_text.delta"),
                 (dgm_str){0});
}

void dgm_responses_end_thought(struct responses_encoder *e, size_t piece)
{
    struct responses_piece *p = &e->pieces[piece];
    if (p->ended)
        return;
    p->ended = true;
    if (dgm_responses_frame(e, DGM_STR("response.reasoning_summary_text.done"))) {
        put_place(e, &e->items[p->item]);
        LIT(",\"summary_index\":");
        dgm_json_put_int(&e->out, p->index);
        LIT(",\"text\":\"");
        dgm_buf_add_str(&e->out, dgm_buf_str(&p->text));
        dgm_buf_add_char(&e->out, '"');
        dgm_responses_emit(e, DGM_STR("response.reasoning_summary_text.done"));
    }
    summary_frame(e, p, DGM_STR("response.reasoning_summary_part.done"), false);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static void place_frame(struct responses_encoder *e, const struct responses_item *it, dgm_str event)
{
    if (!dgm_responses_frame(e, event))
        return;
    put_place(e, it);
    dgm_responses_emit(e, event);
}

static dgm_str delta_event(const struct responses_item *it)
{
    return it->kind == RESPONSES_MCP ? DGM_STR("response.mcp_call_arguments.delta")
                                     : DGM_STR("response.function_call_arguments.delta");
}

void dgm_responses_open_call(struct responses_encoder *e, struct responses_item *it)
{
    bool mcp = it->kind == RESPONSES_MCP;
    dgm_responses_add(e, it, mcp ? "mcp_" : "fc_", it->call_id);
    if (mcp)
        place_frame(e, it, DGM_STR("response.mcp_call.in_progress"));
    it->prefix = delta_prefix(e, it, delta_event(it), "");
    if (it->text.n) /* what came while it was held */
        append_delta(e, NULL, dgm_buf_str(&it->text), it->prefix, delta_event(it), (dgm_str){0});
}

void dgm_responses_append_arguments(struct responses_encoder *e, struct responses_item *it,
                                    dgm_str text)
{
    append_delta(e, &it->text, text, it->prefix, delta_event(it), (dgm_str){0});
}

void dgm_responses_close_call(struct responses_encoder *e, struct responses_item *it,
                              const char *status)
{
    bool mcp = it->kind == RESPONSES_MCP;
    dgm_str event = mcp ? DGM_STR("response.mcp_call_arguments.done")
                        : DGM_STR("response.function_call_arguments.done");
    if (!it->text.n) /* no arguments are an empty object: an empty string is not JSON */
        dgm_responses_append_arguments(e, it, DGM_STR("{}"));
    if (dgm_responses_frame(e, event)) {
        put_place(e, it);
        LIT(",\"name\":");
        dgm_json_put_str(&e->out, it->name);
        LIT(",\"arguments\":\"");
        dgm_buf_add_str(&e->out, dgm_buf_str(&it->text));
        dgm_buf_add_char(&e->out, '"');
        dgm_responses_emit(e, event);
    }
    if (mcp && it->answered)
        place_frame(e, it,
                    it->failed ? DGM_STR("response.mcp_call.failed")
                               : DGM_STR("response.mcp_call.completed"));
    dgm_responses_close(e, it, status);
}
