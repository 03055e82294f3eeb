/*
 * frontend/openai/conversations_front.c - /v1/conversations.
 *
 * A conversation is a context, by its id: its messages are in its tasks. What OpenAI has beside that, its
 * metadata, items that were put there by hand or taken away, is a note of that name. A context that other protocols
 * have begun is a conversation, too, without a note until somebody changes it.
 */
#include "frontend/openai/responses_front_int.h"

#include <time.h>

/* ---- finding --------------------------------------------------------------------------------------------------------- */

struct search {
    struct responses_op *op;
    const char *param;
    conversation_on_found on_found;
    void *arg;
    struct conversation c;
};

static void fail_missing(struct search *s)
{
    struct openai_error e = {
        .http = 404,
        .type = "invalid_request_error",
        .param = dgm_str_from(s->param),
        .message = dgm_arena_printf(s->op->arena, "Conversation with id '%.*s' not found.",
                                    (int)(s->c.id.n < 200 ? s->c.id.n : 200), s->c.id.p)};
    dgm_openai_fail(s->op->x, &e);
}

static void conversations_on_listed(dgm_code code, const dgm_listed *listed, const dgm_err *err,
                                    void *arg)
{
    struct search *s = arg;
    if (code) {
        dgm_responses_fail(s->op, err);
        return;
    }
    if (!listed->n) {
        fail_missing(s);
        return;
    }
    s->c.created_s = listed->last_status_ms / 1000; /* the time of its start is not stored */
    s->on_found(s->arg, &s->c);
}

static void on_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct search *s = arg;
    if (code) {
        dgm_responses_fail(s->op, err);
        return;
    }
    if (!text.p) {
        dgm_list_query q = {.owner = s->op->q.owner, .context_id = s->c.id, .page_size = 1};
        dgm_core_list(s->op->core, &q, conversations_on_listed, s);
        return;
    }
    yyjson_val *note = dgm_json_parse_trusted(s->op->arena, dgm_arena_dup(s->op->arena, text));
    if (dgm_json_get(note, DGM_STR("deleted"))) {
        fail_missing(s);
        return;
    }
    dgm_json_int(dgm_json_get(note, DGM_STR("created_at")), &s->c.created_s);
    s->c.metadata = dgm_json_get(note, DGM_STR("metadata"));
    s->c.added = dgm_json_get(note, DGM_STR("added"));
    s->c.gone = dgm_json_get(note, DGM_STR("gone"));
    s->on_found(s->arg, &s->c);
}

void dgm_conversation_find(struct responses_op *op, dgm_str id, const char *param,
                           conversation_on_found on_found, void *arg)
{
    struct search *s = dgm_new(op->arena, struct search);
    *s = (struct search){
        .op = op, .param = param, .on_found = on_found, .arg = arg, .c = {.id = id}};
    dgm_core_get_note(op->core, op->q.owner, DGM_STR(RESPONSES_CONVERSATION), id, on_note, s);
}

/* ---- keeping ---------------------------------------------------------------------------------------------------------- */

struct keeping {
    struct responses_op *op;
    responses_on_done done;
    void *arg;
};

static void on_kept(dgm_code code, const dgm_err *err, void *arg)
{
    struct keeping *k = arg;
    if (code)
        dgm_responses_fail(k->op, err);
    else
        k->done(k->arg);
}

static void conversation_fail_size(struct responses_op *op)
{
    dgm_err err = {0};
    dgm_fail(&err, DGM_TOO_LARGE, DGM_AT_LIT(NULL, "items"),
             "the conversation becomes longer than the limit note_bytes of %zu",
             DGM_MAX_NOTE_BYTES);
    dgm_responses_fail(op, &err);
}

static void keep_text(struct responses_op *op, dgm_str id, dgm_str text, responses_on_done done,
                      void *arg)
{
    struct keeping *k = dgm_new(op->arena, struct keeping);
    dgm_note note = {
        .owner = op->q.owner, .kind = DGM_STR(RESPONSES_CONVERSATION), .name = id, .text = text};
    *k = (struct keeping){op, done, arg};
    dgm_core_put_note(op->core, &note, on_kept, k);
}

static void conversations_put_list(dgm_buf *b, const char *name, yyjson_val *list)
{
    if (!yyjson_arr_size(list))
        return;
    dgm_buf_printf(b, ",\"%s\":", name);
    dgm_json_put(b, list);
}

/* Two that change one conversation at once: the last one stays. */
void dgm_conversation_keep(struct responses_op *op, const struct conversation *c,
                           responses_on_done done, void *arg)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_NOTE_BYTES);
    dgm_buf_printf(&b, "{\"created_at\":%lld,\"metadata\":", (long long)c->created_s);
    if (c->metadata)
        dgm_json_put(&b, c->metadata);
    else
        dgm_buf_add_lit(&b, "{}");
    conversations_put_list(&b, "added", c->added);
    conversations_put_list(&b, "gone", c->gone);
    dgm_buf_add_char(&b, '}');
    if (b.over)
        conversation_fail_size(op);
    else
        keep_text(op, c->id, dgm_buf_str(&b), done, arg);
    dgm_buf_done(&b);
}

/* ---- operations --------------------------------------------------------------------------------------------------------- */

void dgm_conversation_respond(struct responses_op *op, const struct conversation *c)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"id\":");
    dgm_json_put_str(&b, c->id);
    dgm_buf_printf(&b, ",\"object\":\"conversation\",\"created_at\":%lld,\"metadata\":",
                   (long long)c->created_s);
    if (c->metadata)
        dgm_json_put(&b, c->metadata);
    else
        dgm_buf_add_lit(&b, "{}");
    dgm_buf_add_char(&b, '}');
    dgm_responses_respond(op, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

struct changing {
    struct responses_op *op;
    struct conversation c;
    yyjson_val **items;
    size_t n;
};

static void respond_changed(void *arg)
{
    struct changing *k = arg;
    dgm_conversation_respond(k->op, &k->c);
}

static void on_resolved(void *arg)
{
    struct changing *k = arg;
    if (!dgm_conversation_can_take(k->op, k->items, k->n))
        return;
    k->c.added = dgm_conversation_with(k->op->arena, NULL, k->items, k->n, (dgm_str){0});
    dgm_conversation_keep(k->op, &k->c, respond_changed, k);
}

void dgm_conversation_create(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    struct changing *k = dgm_new(op->arena, struct changing);
    if (dgm_http_request_of(op->x)->body.n &&
        !dgm_responses_read_body(op, dgm_responses_conversation_rules))
        return;
    k->op = op;
    k->c = (struct conversation){
        .id = dgm_arena_printf(op->arena, "conv_%.*s", DGM_P(dgm_responses_new_scope(op->arena))),
        .created_s = (int64_t)time(NULL),
        .metadata = dgm_json_non_null(op->body, "metadata")};
    dgm_conversation_items_of(op->arena, op->body, &k->items, &k->n);
    struct responses_room room = {DGM_MAX_NOTE_BYTES, "note_bytes"};
    dgm_responses_resolve(op, k->items, k->n, "items", room, on_resolved, k);
}

static void give_found(void *arg, const struct conversation *c)
{
    dgm_conversation_respond(arg, c);
}

void dgm_conversation_get(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_conversation_find(op, op->id, NULL, give_found, op);
}

static void update_found(void *arg, const struct conversation *c)
{
    struct changing *k = dgm_new(((struct responses_op *)arg)->arena, struct changing);
    k->op = arg;
    k->c = *c;
    if (dgm_json_non_null(k->op->body, "metadata"))
        k->c.metadata = dgm_json_get(k->op->body, DGM_STR("metadata"));
    dgm_conversation_keep(k->op, &k->c, respond_changed, k);
}

void dgm_conversation_update(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    if (dgm_responses_read_body(op, dgm_responses_conversation_rules))
        dgm_conversation_find(op, op->id, NULL, update_found, op);
}

static void respond_deleted(void *arg)
{
    struct responses_op *op = arg;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"id\":");
    dgm_json_put_str(&b, op->id);
    dgm_buf_add_lit(&b, ",\"object\":\"conversation.deleted\",\"deleted\":true}");
    dgm_responses_respond(op, dgm_buf_str(&b));
    dgm_buf_done(&b);
}

static void delete_found(void *arg, const struct conversation *c)
{
    keep_text(arg, c->id, DGM_STR("{\"deleted\":true}"), respond_deleted, arg);
}

/* It is no more to be found; its tasks stay, as OpenAI's responses do. */
void dgm_conversation_delete(const dgm_front_request *q)
{
    struct responses_op *op = dgm_responses_new_op(q);
    dgm_conversation_find(op, op->id, NULL, delete_found, op);
}
