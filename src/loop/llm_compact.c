/*
 * loop/llm_compact.c - compaction: a summary by the model replaces the older messages.
 *
 *   [ older ... | newest ]  ─►  [ summary | newest ]
 *
 * A call and its result are on the same side. If the summary cannot be made, the messages stay: the model may accept them.
 */
#include "loop/llm_loop_int.h"

#include "base/map.h"

static bool llm_is_too_much(const dgm_llm_loop *l)
{
    const dgm_llm_options *o = &l->options;
    return (o->compact_bytes && l->bytes > o->compact_bytes) ||
           (o->compact_tokens && l->input_tokens > o->compact_tokens);
}

static void llm_map_part(dgm_map *calls, const dgm_json *data, size_t index)
{
    yyjson_val *call;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(data, DGM_STR(DGM_DATA_CALLS)), i, n, call) {
        dgm_str id = dgm_json_str_member(call, "call_id");
        if (id.n)
            dgm_map_put(calls, id, index);
    }
}

/* Which message has a call: by its id. */
static void llm_map_calls(dgm_llm_loop *l, dgm_map *calls)
{
    for (size_t i = 0; i < l->messages.n; i++) {
        const dgm_parts *parts = &l->messages.at[i].parts;
        for (size_t k = 0; k < parts->n; k++) {
            if (parts->at[k].kind == DGM_PART_DATA)
                llm_map_part(calls, parts->at[k].data, i);
        }
    }
}

/* The first message that has a call whose result is in this message; `first` if no message before it has one. */
static size_t llm_first_call(const dgm_map *calls, const dgm_message *m, size_t first)
{
    for (size_t i = 0; i < m->parts.n; i++) {
        yyjson_val *result;
        size_t k, n;
        if (m->parts.at[i].kind != DGM_PART_DATA)
            continue;
        yyjson_arr_foreach (dgm_json_get(m->parts.at[i].data, DGM_STR(DGM_DATA_RESULTS)), k, n,
                            result) {
            size_t *at = dgm_map_get(calls, dgm_json_str_member(result, "call_id"));
            first = at && *at < first ? *at : first;
        }
    }
    return first;
}

static size_t llm_bytes_before(dgm_llm_loop *l, size_t cut)
{
    size_t bytes = 0;
    for (size_t i = 0; i < cut; i++)
        bytes += dgm_llm_message_bytes(l, &l->messages.at[i]);
    return bytes;
}

/* The newest messages that have half of what is allowed stay, and the last one always. */
static size_t llm_find_cut(dgm_llm_loop *l)
{
    size_t n = l->messages.n, bytes = 0,
           room = (l->options.compact_bytes && l->options.compact_bytes < l->bytes
                       ? l->options.compact_bytes
                       : l->bytes) /
                  2;
    size_t cut = n;
    dgm_map calls = {0};
    llm_map_calls(l, &calls);
    for (size_t i = n; i-- > 0;) {
        bytes += dgm_llm_message_bytes(l, &l->messages.at[i]);
        if (i < cut && bytes > room && cut < n)
            break;
        size_t first = llm_first_call(&calls, &l->messages.at[i], i);
        cut = first < cut ? first : cut;
    }
    dgm_map_done(&calls);
    return cut;
}

bool dgm_llm_compact(dgm_llm_loop *l, bool is_forced)
{
    if (l->was_compacted || (!is_forced && !llm_is_too_much(l)))
        return false;
    l->was_compacted = true;
    l->summary_cut = llm_find_cut(l);
    if (l->summary_cut < 2 || llm_bytes_before(l, l->summary_cut) < l->bytes / 4)
        return false; /* too little would be won */
    l->is_summary = true;
    l->phase = LLM_MODEL;
    l->tried = l->attempt = 0;
    dgm_llm_send_call(l);
    return true;
}

static void llm_replace_by_summary(dgm_llm_loop *l)
{
    dgm_arena *old = l->arena;
    dgm_messages before = l->messages, queued = l->queued;
    dgm_str task = l->task_id, context = l->context_id;
    dgm_part part = dgm_llm_text_part(dgm_arena_join(
        l->scratch, DGM_STR("Summary of the conversation so far:\n\n"), dgm_buf_str(&l->text)));
    dgm_message summary = {.message_id = dgm_llm_id(l, "summary", l->iteration, -1),
                           .role = DGM_ROLE_USER,
                           .parts = {&part, 1}};
    l->arena = dgm_arena_new();
    l->messages = l->queued = (dgm_messages){0};
    l->bytes = 0;
    l->task_id = dgm_arena_dup(l->arena, task);
    l->context_id = dgm_arena_dup(l->arena, context);
    for (size_t i = 0; i < LLM_MAX_SEEN; i++)
        l->seen[i] = l->seen[i].p ? dgm_arena_dup(l->arena, l->seen[i]) : (dgm_str){0};
    dgm_llm_add_message(l, &summary);
    for (size_t i = l->summary_cut; i < before.n; i++)
        dgm_llm_add_message(l, &before.at[i]);
    for (size_t i = 0; i < queued.n; i++)
        dgm_llm_queue(l, &queued.at[i]);
    dgm_arena_free(old);
}

void dgm_llm_on_summary(dgm_llm_loop *l, bool is_good)
{
    l->is_summary = false;
    if (is_good) {
        llm_replace_by_summary(l);
        l->input_tokens = 0;
        dgm_llm_emit_counted(l, DGM_INTERNAL_CHECKPOINT);
        if (!dgm_llm_save_now(l))
            return;
    }
    dgm_llm_call_model(l);
}
