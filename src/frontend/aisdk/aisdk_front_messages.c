/* frontend/aisdk/aisdk_front_messages.c - a chat's messages, as its page has them. */
#include "base/map.h"
#include "frontend/aisdk/aisdk_front_int.h"

static void drop_behind(dgm_canon_messages *list, const dgm_map *users, dgm_str id)
{
    size_t *at = dgm_map_get(users, id);
    /* what stood there may have been dropped before, and something else stand there now */
    if (at && *at < list->n && dgm_str_eq(list->at[*at].id, id))
        list->n = *at;
}

dgm_canon_messages aisdk_as_seen(dgm_arena *a, const dgm_canon_messages *messages)
{
    dgm_canon_messages list = {dgm_new_n(a, dgm_canon_message, messages->n), 0};
    dgm_map users;
    dgm_str answer = {0};
    dgm_map_init(&users);
    for (size_t i = 0; i < messages->n; i++) {
        dgm_canon_message m = messages->at[i];
        if (m.role == DGM_CANON_USER) {
            drop_behind(&list, &users, m.id);
            dgm_map_put(&users, m.id, list.n);
            answer = aisdk_answer_id(a, m.id);
        } else if (m.role == DGM_CANON_ASSISTANT || m.role == DGM_CANON_TOOL ||
                   m.role == DGM_CANON_REASONING) {
            m.id = answer.n ? answer : m.id;
        }
        list.at[list.n++] = m;
    }
    dgm_map_done(&users);
    return list;
}

/* ---- the route --------------------------------------------------------------------------------------------- */

static dgm_code add_message(void *arg, dgm_str name, dgm_str payload)
{
    dgm_buf *out = arg;
    (void)name;
    if (out->n > 1)
        dgm_buf_add_char(out, ',');
    dgm_buf_add_str(out, payload);
    return DGM_OK;
}

static void on_history(dgm_code code, const dgm_turn_history *history, const dgm_err *err,
                       void *arg)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"no-store", 8}};
    struct aisdk_ask *ask = arg;
    dgm_http_exchange *x = ask->q.x;
    dgm_err fault = {0};
    dgm_buf out;
    if (code) {
        aisdk_refuse(x, err, NULL, 0);
        return;
    }
    dgm_canon_messages seen = aisdk_as_seen(dgm_http_arena(x), &history->messages);
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_add_char(&out, '[');
    code = dgm_codec_aisdk.write_messages(&seen, &(dgm_stream_params){0},
                                          (dgm_frame_sink){add_message, &out}, &fault);
    dgm_buf_add_char(&out, ']');
    if (!code && out.over)
        code =
            dgm_fail(&fault, DGM_TOO_LARGE, NULL,
                     "the chat is longer than the limit output_bytes of %zu", DGM_MAX_OUTPUT_BYTES);
    if (code)
        aisdk_refuse(x, &fault, NULL, 0);
    else
        dgm_turn_respond_held(x, DGM_STR("application/json"), &not_kept, 1, &out,
                              dgm_turn_take_hold(history));
    dgm_buf_done(&out);
}

void aisdk_messages(struct aisdk_ask *ask)
{
    dgm_turn_get_shown_history(ask->q.turns, dgm_http_arena(ask->q.x), ask->q.owner,
                               ask->q.agent->id, ask->chat, on_history, ask);
}
