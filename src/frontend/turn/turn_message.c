/*
 * frontend/turn/turn_message.c - what of a request's messages an agent is sent.
 *
 * Clients of these protocols send the whole conversation every time; A2A's agents store theirs. So only the messages
 * after the agent's last one are sent: results of calls, then the user's text. If the agent cannot have the earlier
 * messages, they go in front as a transcript: a separate, marked part, so that an agent that does not need it can skip
 * it. Instructions, tools, state and so on are not text of the user: they are metadata of the request.
 */
#define _GNU_SOURCE /* memmem */
#include "base/ids.h"
#include "base/list.h"
#include "base/map.h"
#include "canon/events_to_records.h"
#include "canon/message_content.h"
#include "frontend/turn/turn_int.h"
#include "model/guard.h"

/* ---- where the agent spoke last -------------------------------------------------------------------------------------- */

struct cut dgm_cut_messages(dgm_arena *a, const dgm_canon_messages *messages)
{
    struct cut cut = {.tail = dgm_messages_tail(messages)};
    cut.has_assistant = cut.tail > 0;
    for (size_t i = cut.tail; i < messages->n; i++) {
        if (messages->at[i].role != DGM_CANON_TOOL)
            continue;
        cut.results.at = dgm_list_grow(a, cut.results.at, cut.results.n, sizeof *cut.results.at);
        cut.results.at[cut.results.n++] = messages->at[i].tool_call_id;
    }
    return cut;
}

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

static void turn_message_add_part(dgm_arena *a, dgm_message *m, dgm_part part)
{
    m->parts.at = dgm_list_grow(a, m->parts.at, m->parts.n, sizeof *m->parts.at);
    m->parts.at[m->parts.n++] = part;
}

/* The calls of the messages by their ids; of two that are called alike the last. */
struct calls {
    dgm_map by_id;
    dgm_strs names;
};

static void find_calls(dgm_arena *a, const dgm_canon_messages *messages, struct calls *calls)
{
    dgm_map_init(&calls->by_id);
    for (size_t i = 0; i < messages->n; i++) {
        const dgm_canon_calls *list = &messages->at[i].tool_calls;
        for (size_t k = 0; k < list->n; k++) {
            calls->names.at =
                dgm_list_grow(a, calls->names.at, calls->names.n, sizeof *calls->names.at);
            calls->names.at[calls->names.n] = list->at[k].name;
            dgm_map_put(&calls->by_id, list->at[k].id, calls->names.n++);
        }
    }
}

static void put_result(dgm_buf *b, dgm_arena *a, const struct calls *calls,
                       const dgm_canon_message *m)
{
    size_t *call = dgm_map_get(&calls->by_id, m->tool_call_id);
    dgm_str text = dgm_canon_content_text(a, &m->content);
    dgm_buf_add_lit(b, "{\"call_id\":");
    dgm_json_put_str(b, m->tool_call_id);
    if (call && calls->names.at[*call].n) {
        dgm_buf_add_lit(b, ",\"name\":");
        dgm_json_put_str(b, calls->names.at[*call]);
    }
    dgm_buf_add_lit(b, ",\"output\":");
    if (m->error.n) {
        dgm_buf_add_lit(b, "{\"error\":");
        dgm_json_put_str(b, m->error);
        dgm_buf_add_char(b, '}');
    } else {
        dgm_json_put_str(b, text);
    }
    dgm_buf_add_char(b, '}');
}

/* One part with all results of calls. */
static void add_results(dgm_arena *a, dgm_message *out, const dgm_canon_messages *all,
                        const struct cut *cut)
{
    struct calls calls = {0};
    dgm_buf b;
    if (!cut->results.n)
        return;
    find_calls(a, all, &calls);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_RESULTS "\":[");
    for (size_t i = cut->tail, n = 0; i < all->n; i++) {
        if (all->at[i].role != DGM_CANON_TOOL)
            continue;
        if (n++)
            dgm_buf_add_char(&b, ',');
        put_result(&b, a, &calls, &all->at[i]);
    }
    dgm_buf_add_lit(&b, "]}");
    turn_message_add_part(
        a, out,
        (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(a, dgm_buf_str(&b))});
    dgm_buf_done(&b);
    dgm_map_done(&calls.by_id);
}

static void add_user(dgm_arena *a, dgm_message *out, const dgm_canon_message *from)
{
    dgm_mint mint = {{0}, 0, {0}}; /* its id is not used */
    dgm_message m;
    dgm_guard guard = {0};
    if (!dgm_to_message(a, from, &mint, &m))
        return;
    dgm_guard_content(&guard, a, &m.metadata, &m.parts); /* the message is sent as one of ours */
    for (size_t i = 0; i < m.parts.n; i++)
        turn_message_add_part(a, out, m.parts.at[i]);
}

/* An answer to an interrupt: its words, or the data that it is. */
static void add_answers(dgm_arena *a, dgm_message *out, const dgm_canon_resumes *resume)
{
    for (size_t i = 0; i < resume->n; i++) {
        const dgm_canon_resume *r = &resume->at[i];
        yyjson_val *payload = (yyjson_val *)(uintptr_t)r->payload;
        if (r->status == DGM_CANON_DISMISSED) {
            dgm_member members[] = {
                {DGM_STR("interrupt_id"), dgm_json_make_string(a, r->interrupt_id)},
                {DGM_STR("status"), dgm_json_make_string(a, DGM_STR("cancelled"))}};
            turn_message_add_part(
                a, out, (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_object(a, members, 2)});
        } else if (yyjson_is_str(payload)) {
            turn_message_add_part(
                a, out, (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_json_str(payload)});
        } else if (payload) {
            turn_message_add_part(a, out, (dgm_part){.kind = DGM_PART_DATA, .data = payload});
        }
    }
}

/* ---- what came before ---------------------------------------------------------------------------------------------------- */

static const char *speaker(dgm_canon_role role)
{
    return role == DGM_CANON_USER        ? "user"
           : role == DGM_CANON_ASSISTANT ? "assistant"
           : role == DGM_CANON_TOOL      ? "tool"
                                         : NULL;
}

static void put_said(dgm_buf *b, dgm_arena *a, const dgm_canon_message *m)
{
    const char *who = speaker(m->role);
    dgm_str text = dgm_canon_content_text(a, &m->content);
    if (!who)
        return;
    if (text.n) {
        dgm_buf_add_str(b, dgm_str_from(who));
        dgm_buf_add_lit(b, ": ");
        dgm_buf_add_str(b, text);
        dgm_buf_add_char(b, '\n');
    }
    for (size_t i = 0; i < m->tool_calls.n; i++) {
        dgm_buf_add_lit(b, "assistant called ");
        dgm_buf_add_str(b, m->tool_calls.at[i].name);
        dgm_buf_add_char(b, '(');
        dgm_buf_add_str(b, m->tool_calls.at[i].arguments);
        dgm_buf_add_lit(b, ")\n");
    }
}

static void add_transcript(dgm_arena *a, dgm_message *out, const dgm_canon_messages *all,
                           const struct cut *cut)
{
    dgm_buf b;
    dgm_member mark = {DGM_STR(DGM_META_PART), dgm_json_make_string(a, DGM_STR("transcript"))};
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < cut->tail; i++)
        put_said(&b, a, &all->at[i]);
    if (b.n)
        turn_message_add_part(a, out,
                              (dgm_part){.kind = DGM_PART_TEXT,
                                         .content = dgm_arena_dup(a, dgm_buf_str(&b)),
                                         .metadata = dgm_json_object(a, &mark, 1)});
    dgm_buf_done(&b);
}

/* ---- the message ------------------------------------------------------------------------------------------------------------ */

dgm_code dgm_make_message(dgm_arena *a, const dgm_ask *ask, const struct cut *cut,
                          bool with_history, dgm_message *ret, dgm_err *err)
{
    const dgm_canon_messages *all = &ask->input->messages;
    const dgm_canon_message *last = all->n ? &all->at[all->n - 1] : NULL;
    bool has_id = last && last->id.n && last->role != DGM_CANON_ASSISTANT;
    dgm_message m = {.message_id = ask->message_id.n ? ask->message_id
                                   : has_id          ? last->id
                                                     : dgm_uuid7_in(a),
                     .role = DGM_ROLE_USER};
    add_results(a, &m, all, cut);
    for (size_t i = cut->tail; i < all->n; i++) {
        if (all->at[i].role == DGM_CANON_USER)
            add_user(a, &m, &all->at[i]);
    }
    add_answers(a, &m, &ask->input->resume);
    if (!m.parts.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "messages"),
                        "there is nothing to answer: the last message must be the user's or a "
                        "tool's, and not be empty");
    if (with_history && cut->tail) {
        dgm_parts said = m.parts;
        m.parts = (dgm_parts){0};
        add_transcript(a, &m, all, cut);
        for (size_t i = 0; i < said.n; i++)
            turn_message_add_part(a, &m, said.at[i]);
    }
    *ret = m;
    return DGM_OK;
}

/* ---- metadata ------------------------------------------------------------------------------------------------------------ */

static const dgm_json *instructions_of(dgm_arena *a, const dgm_canon_messages *all)
{
    dgm_buf b;
    const dgm_json *v = NULL;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].role != DGM_CANON_SYSTEM && all->at[i].role != DGM_CANON_DEVELOPER)
            continue;
        if (b.n)
            dgm_buf_add_lit(&b, "\n\n");
        dgm_buf_add_str(&b, dgm_canon_content_text(a, &all->at[i].content));
    }
    if (b.n)
        v = dgm_json_make_string(a, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return v;
}

static void turn_message_put_member(dgm_buf *b, const char *name, dgm_str text)
{
    if (b->p[b->n - 1] != '{' && b->p[b->n - 1] != '[')
        dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(name));
    dgm_buf_add_char(b, ':');
    dgm_json_put_str(b, text);
}

static void put_json_member(dgm_buf *b, const char *name, const dgm_json *value)
{
    dgm_buf_add_char(b, ',');
    dgm_json_put_str(b, dgm_str_from(name));
    dgm_buf_add_char(b, ':');
    dgm_json_put(b, value);
}

static void begin_item(dgm_buf *b)
{
    if (b->p[b->n - 1] != '[')
        dgm_buf_add_char(b, ',');
    dgm_buf_add_char(b, '{');
}

static void put_tools(dgm_buf *b, const dgm_canon_tools *tools)
{
    for (size_t i = 0; i < tools->n; i++) {
        begin_item(b);
        turn_message_put_member(b, "name", tools->at[i].name);
        if (tools->at[i].description.n)
            turn_message_put_member(b, "description", tools->at[i].description);
        if (tools->at[i].parameters)
            put_json_member(b, "parameters", tools->at[i].parameters);
        dgm_buf_add_char(b, '}');
    }
}

static void put_resumes(dgm_buf *b, const dgm_canon_resumes *list)
{
    for (size_t i = 0; i < list->n; i++) {
        bool dismissed = list->at[i].status == DGM_CANON_DISMISSED;
        begin_item(b);
        turn_message_put_member(b, "interruptId", list->at[i].interrupt_id);
        turn_message_put_member(b, "status",
                                dismissed ? DGM_STR("cancelled") : DGM_STR("resolved"));
        if (list->at[i].payload)
            put_json_member(b, "payload", list->at[i].payload);
        dgm_buf_add_char(b, '}');
    }
}

struct members {
    dgm_member *at;
    size_t n;
};

static void add_member(dgm_arena *a, struct members *m, dgm_str key, const dgm_json *value)
{
    if (!value)
        return;
    m->at = dgm_list_grow(a, m->at, m->n, sizeof *m->at);
    m->at[m->n++] = (dgm_member){key, value};
}

/* A list that was put; NULL: it is empty. */
static const dgm_json *list_of(dgm_arena *a, dgm_buf *b)
{
    const dgm_json *list = NULL;
    if (b->n > 1) {
        dgm_buf_add_char(b, ']');
        list = dgm_json_parse_trusted(a, dgm_buf_str(b));
    }
    dgm_buf_clear(b);
    dgm_buf_add_char(b, '[');
    return list;
}

const dgm_json *dgm_make_metadata(dgm_arena *a, const dgm_ask *ask)
{
    const dgm_canon_input *in = ask->input;
    struct members m = {0};
    yyjson_val *key, *value;
    size_t i, n;
    dgm_buf b;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)ask->metadata, i, n, key, value)
        add_member(a, &m, dgm_json_str(key), value);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '[');
    put_tools(&b, &in->tools);
    add_member(a, &m, DGM_STR(DGM_META_TOOLS), list_of(a, &b));
    for (i = 0; i < in->context.n; i++) {
        begin_item(&b);
        turn_message_put_member(&b, "description", in->context.at[i].description);
        turn_message_put_member(&b, "value", in->context.at[i].value);
        dgm_buf_add_char(&b, '}');
    }
    add_member(a, &m, DGM_STR(DGM_META_CONTEXT), list_of(a, &b));
    put_resumes(&b, &in->resume);
    add_member(a, &m, DGM_STR(DGM_META_RESUME), list_of(a, &b));
    dgm_buf_done(&b);
    add_member(a, &m, DGM_STR(DGM_META_STATE), in->state);
    add_member(a, &m, DGM_STR(DGM_META_INSTRUCTIONS), instructions_of(a, &in->messages));
    return m.n ? dgm_json_object(a, m.at, m.n) : NULL;
}

/* ---- the same conversation? ------------------------------------------------------------------------------------------------ */

/* What one of the two says before the other does. */
struct speech {
    dgm_canon_role role; /* NONE: that was all */
    dgm_str *at;
    size_t n;
};

static struct speech next_speech(dgm_arena *a, const dgm_canon_messages *list, size_t end,
                                 size_t *at)
{
    struct speech s = {0};
    for (; *at < end; ++*at) {
        const dgm_canon_message *m = &list->at[*at];
        if (m->role != DGM_CANON_USER && m->role != DGM_CANON_ASSISTANT)
            continue;
        dgm_str text = dgm_canon_content_text(a, &m->content);
        if (!text.n)
            continue;
        if (s.n && s.role != m->role)
            break;
        s.role = m->role;
        s.at = dgm_list_grow(a, s.at, s.n, sizeof *s.at);
        s.at[s.n++] = text;
    }
    return s;
}

/* Every text of the user in the request is stored, in order. More may be stored: texts that failed and were sent again. */
static bool was_asked(const struct speech *said, const struct speech *stored)
{
    size_t i = 0;
    for (size_t k = 0; i < said->n && k < stored->n; k++)
        i += dgm_str_eq(said->at[i], stored->at[k]);
    return i == said->n;
}

/* Is it JSON and nothing else? So the data of an agent is shown to a caller who requested JSON, without the agent's texts. */
static bool turn_message_is_json(dgm_arena *a, dgm_str text)
{
    yyjson_val *v;
    return text.n && (text.p[0] == '{' || text.p[0] == '[') &&
           !dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, NULL);
}

/* The request has every stored text of the agent, in order; protocols without files add links and join texts. */
static bool was_answered(dgm_arena *a, const struct speech *said, const struct speech *stored)
{
    size_t i = 0, from = 0;
    if (said->n == 1 && turn_message_is_json(a, said->at[0]))
        return true;
    for (size_t k = 0; k < stored->n; k++) {
        const char *found = NULL;
        for (; i < said->n; i++, from = 0) {
            dgm_str in = {said->at[i].p + from, said->at[i].n - from};
            if ((found = memmem(in.p, in.n, stored->at[k].p, stored->at[k].n)))
                break;
        }
        if (!found)
            return false;
        from = (size_t)(found - said->at[i].p) + stored->at[k].n;
    }
    return true;
}

bool dgm_extends_history(dgm_arena *a, const dgm_canon_messages *messages, const struct cut *cut,
                         const dgm_canon_messages *stored)
{
    size_t i = 0, k = 0;
    if (!cut->has_assistant)
        return true;
    for (;;) {
        struct speech said = next_speech(a, messages, cut->tail, &i);
        struct speech was = next_speech(a, stored, stored->n, &k);
        if (!said.n) /* a question without an answer may be left over */
            return !was.n ||
                   (was.role == DGM_CANON_USER && !next_speech(a, stored, stored->n, &k).n);
        if (said.role != was.role ||
            !(was.role == DGM_CANON_USER ? was_asked(&said, &was) : was_answered(a, &said, &was)))
            return false;
    }
}
