/* model/conversation.c - see conversation.h. */
#define _GNU_SOURCE /* memmem */
#include "model/conversation.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "model/calls.h"
#include "model/fold.h"
#include "model/form.h"
#include "model/history.h"
#include "model/names.h"
#include "model/stamp.h"
#include "json/build.h"

/* ---- transcripts ------------------------------------------------------------------------------------------------- */

dgm_part dgm_transcript_part(dgm_arena *a, dgm_messages messages)
{
    dgm_member mark = {DGM_STR(DGM_META_PART),
                       dgm_json_make_string(a, DGM_STR(DGM_PART_TRANSCRIPT))};
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* the request that they came in has a limit */
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_buf_add_lit(&b, "{\"" DGM_DATA_MESSAGES "\":[");
    for (size_t i = 0; i < messages.n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_shape_write(&w, &dgm_form_message, &messages.at[i]);
    }
    dgm_buf_add_lit(&b, "]}");
    dgm_part part = {.kind = DGM_PART_DATA,
                     .data = dgm_json_parse_trusted(a, dgm_arena_dup(a, dgm_buf_str(&b))),
                     .metadata = dgm_json_object(a, &mark, 1)};
    dgm_buf_done(&b);
    return part;
}

static yyjson_val *transcript_messages(const dgm_message *m)
{
    const dgm_part *first = m->parts.n ? &m->parts.at[0] : NULL;
    if (!first || first->kind != DGM_PART_DATA || !first->metadata ||
        !dgm_str_is(dgm_json_str_member(first->metadata, DGM_META_PART), DGM_PART_TRANSCRIPT))
        return NULL;
    yyjson_val *list = dgm_json_get(first->data, DGM_STR(DGM_DATA_MESSAGES));
    return yyjson_is_arr(list) ? list : NULL;
}

bool dgm_message_has_transcript(const dgm_message *m)
{
    return transcript_messages(m) != NULL;
}

dgm_messages dgm_message_transcript(dgm_arena *a, const dgm_message *m)
{
    yyjson_val *list = transcript_messages(m), *item;
    dgm_messages all = {list ? dgm_new_n(a, dgm_message, yyjson_arr_size(list)) : NULL, 0};
    size_t i, n;
    if (!list)
        return all;
    yyjson_arr_foreach (list, i, n, item) {
        dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10};
        all.n += !dgm_shape_read(&r, &dgm_form_message, item, NULL, &all.at[all.n]);
    }
    return all;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

void dgm_conversation_init(dgm_conversation *c, dgm_arena *a, dgm_history_limits limits)
{
    *c = (dgm_conversation){.arena = a, .limits = limits, .is_full = limits.messages == 0};
}

static bool is_list_of(const dgm_part *part, const char *name)
{
    return part->kind == DGM_PART_DATA &&
           yyjson_arr_size(dgm_json_get(part->data, dgm_str_from(name))) > 0;
}

/* Calls are the agent's: a list of calls of a user is ordinary data. */
static bool has_tools(const dgm_message *m, const dgm_part *part)
{
    return is_list_of(part, DGM_DATA_RESULTS) ||
           (m->role == DGM_ROLE_AGENT && is_list_of(part, DGM_DATA_CALLS));
}

static dgm_message without_tools(dgm_arena *a, const dgm_message *from)
{
    dgm_message m = *from;
    m.parts = (dgm_parts){dgm_new_n(a, dgm_part, from->parts.n), 0};
    for (size_t i = 0; i < from->parts.n; i++) {
        if (!has_tools(from, &from->parts.at[i]))
            m.parts.at[m.parts.n++] = from->parts.at[i];
    }
    return m;
}

static size_t json_bytes(const dgm_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* a record has a limit */
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_shape_write(&w, &dgm_form_message, m);
    size_t n = b.n;
    dgm_buf_done(&b);
    return n;
}

static void conversation_add(dgm_conversation *c, const dgm_message *from)
{
    dgm_message m = *from;
    if (c->is_full)
        return;
    if (!c->limits.tools)
        m = without_tools(c->arena, from);
    if (!m.parts.n)
        return;
    size_t bytes = json_bytes(&m);
    if (c->n == c->limits.messages || bytes > c->limits.bytes - c->bytes) {
        c->is_full = true;
        return;
    }
    c->bytes += bytes;
    c->newest_first = dgm_list_grow(c->arena, c->newest_first, c->n, sizeof *c->newest_first);
    c->newest_first[c->n++] = dgm_message_copy(c->arena, &m);
}

void dgm_conversation_add_transcript(dgm_conversation *c, const dgm_message *m)
{
    if (!dgm_message_has_transcript(m))
        return;
    dgm_messages all = dgm_message_transcript(c->arena, m);
    for (size_t i = all.n; i-- > 0;)
        conversation_add(c, &all.at[i]);
    c->is_full = true;
}

/* A message of a history, with its transcript. */
static void add_message(dgm_conversation *c, const dgm_message *from)
{
    dgm_message m = *from;
    bool has_transcript = dgm_message_has_transcript(&m);
    if (m.role == DGM_ROLE_AGENT &&
        dgm_status_content_of(DGM_STATE_COMPLETED, &m) == DGM_STATUS_PASSING)
        return; /* a chunk */
    if (has_transcript)
        m.parts = (dgm_parts){m.parts.at + 1, m.parts.n - 1};
    conversation_add(c, &m);
    if (has_transcript)
        dgm_conversation_add_transcript(c, from);
}

/* ---- the answer of a Task ---------------------------------------------------------------------------------------- */

static dgm_str parts_text(dgm_arena *a, const dgm_parts *parts)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < parts->n; i++) {
        if (parts->at[i].kind == DGM_PART_TEXT)
            dgm_buf_add_str(&b, parts->at[i].content);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static bool contains(dgm_str text, dgm_str part)
{
    return part.n <= text.n && memmem(text.p, text.n, part.p, part.n);
}

static void drop_texts(dgm_arena *a, dgm_message *m)
{
    dgm_parts rest = {dgm_new_n(a, dgm_part, m->parts.n), 0};
    for (size_t i = 0; i < m->parts.n; i++) {
        if (m->parts.at[i].kind != DGM_PART_TEXT)
            rest.at[rest.n++] = m->parts.at[i];
    }
    m->parts = rest;
}

/* The part of the status message that is neither progress nor the reason of a failure nor in the history. */
static dgm_message status_answer(dgm_arena *a, const dgm_task *t)
{
    const dgm_message *m = t->status.message;
    dgm_message none = {.role = DGM_ROLE_AGENT};
    if (!m || t->status.state == DGM_STATE_FAILED)
        return none;
    dgm_status_content content = dgm_status_content_of(t->status.state, m);
    for (size_t i = 0; i < t->history.n; i++) {
        if (m->message_id.n && dgm_str_eq(t->history.at[i].message_id, m->message_id))
            return none;
    }
    dgm_message answer = content == DGM_STATUS_PASSING ? none : *m;
    if (content == DGM_STATUS_CALLS) {
        answer.parts = (dgm_parts){dgm_new_n(a, dgm_part, m->parts.n), m->parts.n};
        memcpy(answer.parts.at, m->parts.at, m->parts.n * sizeof(dgm_part));
        dgm_message_drop_progress(&answer);
    }
    if (dgm_history_ends_with(&t->history, parts_text(a, &answer.parts)))
        drop_texts(a, &answer);
    return answer;
}

/* Has a message of the agent this text? */
static bool is_in_messages(dgm_arena *a, const dgm_task *t, dgm_str answer, dgm_str text)
{
    if (contains(answer, text))
        return true;
    for (size_t i = 0; i < t->history.n; i++) {
        if (t->history.at[i].role == DGM_ROLE_AGENT &&
            contains(parts_text(a, &t->history.at[i].parts), text))
            return true;
    }
    return false;
}

static void add_part(dgm_arena *a, dgm_parts *parts, const dgm_part *part)
{
    parts->at = dgm_list_grow(a, parts->at, parts->n, sizeof *parts->at);
    parts->at[parts->n++] = *part;
}

static dgm_message task_answer(dgm_arena *a, const dgm_task *t)
{
    dgm_message m = status_answer(a, t);
    dgm_str text = parts_text(a, &m.parts);
    dgm_parts parts = {0};
    bool rests =
        dgm_state_is_terminal(t->status.state) || dgm_state_is_interrupted(t->status.state);
    for (size_t i = 0; i < m.parts.n; i++) {
        if (m.parts.at[i].kind != DGM_PART_TEXT || m.parts.at[i].content.n)
            add_part(a, &parts, &m.parts.at[i]);
    }
    for (size_t i = 0; rests && i < t->artifacts.n; i++) {
        const dgm_artifact *artifact = &t->artifacts.at[i];
        if (dgm_str_is(artifact->artifact_id, DGM_STREAM_DELTA_ID))
            continue;
        for (size_t k = 0; k < artifact->parts.n; k++) {
            const dgm_part *part = &artifact->parts.at[k];
            if (part->kind != DGM_PART_TEXT || !is_in_messages(a, t, text, part->content))
                add_part(a, &parts, part);
        }
    }
    m.parts = parts;
    if (!m.message_id.n) {
        m.message_id = dgm_arena_printf(a, "%.*s-answer", DGM_P(t->id));
        m.context_id = t->context_id;
        m.task_id = t->id;
    }
    return m;
}

void dgm_conversation_add_task(dgm_conversation *c, const dgm_task *task, dgm_str until)
{
    size_t n = task->history.n;
    for (size_t i = 0; until.n && i < task->history.n; i++) {
        if (dgm_str_eq(task->history.at[i].message_id, until)) {
            n = i;
            c->n = c->bytes = 0;
            break;
        }
    }
    if (c->is_full)
        return;
    if (n == task->history.n) {
        dgm_message answer = task_answer(c->arena, task);
        conversation_add(c, &answer);
    }
    while (n-- > 0)
        add_message(c, &task->history.at[n]);
}

/* ---- calls and results ------------------------------------------------------------------------------------------- */

static dgm_str call_id(yyjson_val *item)
{
    yyjson_val *v = dgm_json_get(item, DGM_STR("call_id"));
    return yyjson_is_str(v) ? dgm_json_str(v) : (dgm_str){0};
}

static void note_ids(dgm_map *ids, const dgm_message *m, const char *name)
{
    for (size_t i = 0; m && i < m->parts.n; i++) {
        if (!is_list_of(&m->parts.at[i], name))
            continue;
        yyjson_arr_iter it =
            yyjson_arr_iter_with(dgm_json_get(m->parts.at[i].data, dgm_str_from(name)));
        for (yyjson_val *item; (item = yyjson_arr_iter_next(&it));) {
            if (call_id(item).n)
                dgm_map_put(ids, call_id(item), 1);
        }
    }
}

static bool is_known(const dgm_map *ids, yyjson_val *item)
{
    dgm_str id = call_id(item);
    return id.n && dgm_map_get(ids, id);
}

/* The data with only those members of the list whose ids are known; NULL: none is. */
static const dgm_json *known_items(dgm_arena *a, const dgm_json *data, const char *name,
                                   dgm_map *ids)
{
    yyjson_val *list = dgm_json_get(data, dgm_str_from(name)), *item, *key, *value;
    size_t n = 0, i, max;
    yyjson_arr_foreach (list, i, max, item)
        n += is_known(ids, item);
    if (n == yyjson_arr_size(list))
        return data;
    if (!n)
        return NULL;
    dgm_json_build b = dgm_json_build_start(a);
    dgm_json_build_object(&b, NULL);
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)data, i, max, key, value) {
        if (value != list)
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    dgm_json_build_array(&b, name);
    yyjson_arr_foreach (list, i, max, item) {
        if (is_known(ids, item))
            dgm_json_build_value(&b, NULL, item);
    }
    dgm_json_build_close(&b);
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static void keep_known(dgm_arena *a, dgm_message *m, const char *name, dgm_map *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < m->parts.n; i++) {
        dgm_part part = m->parts.at[i];
        if (is_list_of(&part, name) && !(part.data = known_items(a, part.data, name, ids)))
            continue;
        m->parts.at[n++] = part;
    }
    m->parts.n = n;
}

/* The messages are copies: their lists of parts may be changed. */
static void conversation_match_calls(dgm_conversation *c, dgm_messages *list,
                                     const dgm_message *next)
{
    dgm_map calls, results;
    size_t n = 0;
    dgm_map_init(&calls);
    dgm_map_init(&results);
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].role == DGM_ROLE_AGENT)
            note_ids(&calls, &list->at[i], DGM_DATA_CALLS);
        note_ids(&results, &list->at[i], DGM_DATA_RESULTS);
    }
    note_ids(&results, next, DGM_DATA_RESULTS);
    for (size_t i = 0; i < list->n; i++) {
        dgm_message *m = &list->at[i];
        if (m->role == DGM_ROLE_AGENT)
            keep_known(c->arena, m, DGM_DATA_CALLS, &results);
        keep_known(c->arena, m, DGM_DATA_RESULTS, &calls);
        if (m->parts.n)
            list->at[n++] = *m;
    }
    list->n = n;
    dgm_map_done(&calls);
    dgm_map_done(&results);
}

dgm_messages dgm_conversation_end(dgm_conversation *c, const dgm_message *next)
{
    dgm_messages list = {c->newest_first, c->n};
    for (size_t i = 0; i < c->n / 2; i++) {
        dgm_message m = list.at[i];
        list.at[i] = list.at[c->n - 1 - i];
        list.at[c->n - 1 - i] = m;
    }
    conversation_match_calls(c, &list, next);
    return list;
}
