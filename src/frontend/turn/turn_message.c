/*
 * frontend/turn/turn_message.c - what of a request's messages an agent is sent.
 *
 * Clients of these protocols send the whole conversation every time; A2A's agents store theirs. So only the messages
 * after the agent's last one are sent: results of calls, then the user's text. If the agent cannot have the earlier
 * messages, they go in front as a transcript: a separate, marked part. The core makes it the history of agents that get
 * one; for other agents it is text, which they may skip. Instructions, tools, state and so on are not text of the user: they are metadata of the request.
 */
#define _GNU_SOURCE /* memmem */
#include "base/ids.h"
#include "base/list.h"
#include "base/map.h"
#include "canon/events_to_records.h"
#include "canon/message_content.h"
#include "frontend/turn/turn_int.h"
#include "model/conversation.h"
#include "model/guard.h"
#include "json/build.h"

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

/* One part with all results of calls. */
static void add_results(dgm_arena *a, dgm_message *out, const dgm_canon_messages *all,
                        const struct cut *cut)
{
    struct calls calls = {0};
    dgm_json_build b = dgm_json_build_start(a);
    find_calls(a, all, &calls);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_array(&b, DGM_DATA_RESULTS);
    for (size_t i = cut->tail; i < all->n; i++) {
        const dgm_canon_message *m = &all->at[i];
        size_t *call = dgm_map_get(&calls.by_id, m->tool_call_id);
        if (m->role != DGM_CANON_TOOL)
            continue;
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "call_id", m->tool_call_id);
        if (call && calls.names.at[*call].n)
            dgm_json_build_str(&b, "name", calls.names.at[*call]);
        if (m->error.n) {
            dgm_json_build_object(&b, "output");
            dgm_json_build_str(&b, "error", m->error);
            dgm_json_build_close(&b);
        } else {
            dgm_json_build_str(&b, "output", dgm_canon_content_text(a, &m->content));
        }
        dgm_json_build_close(&b);
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    turn_message_add_part(a, out,
                          (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_build_end(&b)});
    dgm_map_done(&calls.by_id);
}

/* An answer to an interrupt: its words, or the data that it is. */
static void add_answer(dgm_arena *a, dgm_message *out, const dgm_canon_resume *r)
{
    yyjson_val *payload = (yyjson_val *)(uintptr_t)r->payload;
    if (r->status == DGM_CANON_DISMISSED) {
        dgm_member members[] = {{DGM_STR("interrupt_id"), dgm_json_make_string(a, r->interrupt_id)},
                                {DGM_STR("status"), dgm_json_make_string(a, DGM_STR("cancelled"))}};
        turn_message_add_part(
            a, out, (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_object(a, members, 2)});
    } else if (yyjson_is_str(payload)) {
        turn_message_add_part(a, out,
                              (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_json_str(payload)});
    } else if (payload) {
        turn_message_add_part(a, out, (dgm_part){.kind = DGM_PART_DATA, .data = payload});
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

/* The same as messages. */
static void add_transcript_messages(dgm_arena *a, dgm_message *out, const dgm_canon_messages *all,
                                    const struct cut *cut)
{
    dgm_messages list = {dgm_new_n(a, dgm_message, cut->tail), 0};
    for (size_t i = 0; i < cut->tail; i++) {
        const dgm_canon_message *from = &all->at[i];
        dgm_message *m = &list.at[list.n];
        dgm_mint mint = dgm_turn_mint();
        dgm_guard guard = {0};
        bool is_empty =
            from->role == DGM_CANON_ASSISTANT && !from->content.text.n && !from->tool_calls.n;
        if (!speaker(from->role) || is_empty || !dgm_to_message(a, from, &mint, m))
            continue;
        dgm_guard_content(&guard, a, &m->metadata, &m->parts);
        list.n++;
    }
    if (list.n)
        turn_message_add_part(a, out, dgm_transcript_part(a, list));
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
    if (cut->results.n)
        add_results(a, &m, all, cut);
    for (size_t i = cut->tail; i < all->n; i++) {
        dgm_mint mint = {{0}, 0, {0}}; /* the id of this message is not used */
        dgm_message user;
        dgm_guard guard = {0};
        if (all->at[i].role != DGM_CANON_USER || !dgm_to_message(a, &all->at[i], &mint, &user))
            continue;
        dgm_guard_content(&guard, a, &user.metadata, &user.parts); /* it is sent as one of ours */
        for (size_t k = 0; k < user.parts.n; k++)
            turn_message_add_part(a, &m, user.parts.at[k]);
    }
    for (size_t i = 0; i < ask->input->resume.n; i++)
        add_answer(a, &m, &ask->input->resume.at[i]);
    if (!m.parts.n)
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "messages"),
                        "there is nothing to answer: the last message must be the user's or a "
                        "tool's, and not be empty");
    if (with_history && cut->tail) {
        dgm_parts said = m.parts;
        m.parts = (dgm_parts){0};
        if (ask->agent && ask->agent->gets_history)
            add_transcript_messages(a, &m, all, cut);
        else
            add_transcript(a, &m, all, cut);
        for (size_t i = 0; i < said.n; i++)
            turn_message_add_part(a, &m, said.at[i]);
    }
    *ret = m;
    return DGM_OK;
}

/* ---- metadata ------------------------------------------------------------------------------------------------------------ */

const dgm_json *dgm_make_metadata(dgm_arena *a, const dgm_ask *ask)
{
    const dgm_canon_input *in = ask->input;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_buf instructions;
    dgm_json_build_object(&b, NULL);
    if (ask->metadata)
        dgm_json_build_members_of(&b, ask->metadata);
    if (in->tools.n)
        dgm_json_build_array(&b, DGM_META_TOOLS);
    for (size_t i = 0; i < in->tools.n; i++) {
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "name", in->tools.at[i].name);
        if (in->tools.at[i].description.n)
            dgm_json_build_str(&b, "description", in->tools.at[i].description);
        dgm_json_build_value(&b, "parameters", in->tools.at[i].parameters);
        dgm_json_build_close(&b);
    }
    if (in->tools.n)
        dgm_json_build_close(&b);
    if (in->context.n)
        dgm_json_build_array(&b, DGM_META_CONTEXT);
    for (size_t i = 0; i < in->context.n; i++) {
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "description", in->context.at[i].description);
        dgm_json_build_str(&b, "value", in->context.at[i].value);
        dgm_json_build_close(&b);
    }
    if (in->context.n)
        dgm_json_build_close(&b);
    if (in->resume.n)
        dgm_json_build_array(&b, DGM_META_RESUME);
    for (size_t i = 0; i < in->resume.n; i++) {
        const dgm_canon_resume *r = &in->resume.at[i];
        dgm_json_build_object(&b, NULL);
        dgm_json_build_str(&b, "interruptId", r->interrupt_id);
        dgm_json_build_lit(&b, "status",
                           r->status == DGM_CANON_DISMISSED ? "cancelled" : "resolved");
        dgm_json_build_value(&b, "payload", r->payload);
        dgm_json_build_close(&b);
    }
    if (in->resume.n)
        dgm_json_build_close(&b);
    dgm_json_build_value(&b, DGM_META_STATE, in->state);
    dgm_buf_init(&instructions, SIZE_MAX);
    for (size_t i = 0; i < in->messages.n; i++) {
        const dgm_canon_message *m = &in->messages.at[i];
        if (m->role != DGM_CANON_SYSTEM && m->role != DGM_CANON_DEVELOPER)
            continue;
        if (instructions.n)
            dgm_buf_add_lit(&instructions, "\n\n");
        dgm_buf_add_str(&instructions, dgm_canon_content_text(a, &m->content));
    }
    if (instructions.n)
        dgm_json_build_str(&b, DGM_META_INSTRUCTIONS, dgm_buf_str(&instructions));
    dgm_buf_done(&instructions);
    dgm_json_build_close(&b);
    yyjson_val *all = dgm_json_build_end(&b);
    return yyjson_obj_size(all) ? all : NULL;
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

/* ---- news for a task that works -------------------------------------------------------------------------------------------- */

static void add_known(dgm_arena *a, struct known *known, dgm_str id, dgm_str text)
{
    known->at = dgm_list_grow(a, known->at, known->n, sizeof *known->at);
    known->at[known->n].id = id;
    known->at[known->n++].text = text;
}

struct known dgm_known_of_task(dgm_arena *a, const dgm_task *task)
{
    struct known known = {0};
    for (size_t i = 0; i < task->history.n; i++) {
        const dgm_message *m = &task->history.at[i];
        dgm_str text = DGM_STR("");
        for (size_t k = 0; k < m->parts.n; k++) {
            if (m->parts.at[k].kind == DGM_PART_TEXT)
                text = dgm_arena_join(a, text, m->parts.at[k].content);
        }
        if (m->role == DGM_ROLE_USER)
            add_known(a, &known, m->message_id, text);
    }
    return known;
}

struct known dgm_known_of_messages(dgm_arena *a, const dgm_canon_messages *messages)
{
    struct known known = {0};
    for (size_t i = 0; i < messages->n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        if (m->role == DGM_CANON_USER)
            add_known(a, &known, m->id, dgm_canon_content_text(a, &m->content));
    }
    return known;
}

size_t dgm_find_news(dgm_arena *a, const dgm_canon_messages *messages, size_t tail,
                     const struct known *known, bool by_text)
{
    size_t next = 0;
    for (size_t i = tail; i < messages->n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        dgm_str text = dgm_canon_content_text(a, &m->content);
        size_t k = next;
        if (m->role != DGM_CANON_USER)
            continue;
        while (k < known->n && !(m->id.n && dgm_str_eq(m->id, known->at[k].id)) &&
               !(by_text && text.n && dgm_str_eq(text, known->at[k].text)))
            k++;
        if (k < known->n) {
            next = k + 1;
            tail = i + 1;
        }
    }
    return tail;
}

/* ---- does it extend the history? ------------------------------------------------------------------------------------------- */

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
