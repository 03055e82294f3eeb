/*
 * fuzz_model.c - answers of models' servers, and requests to the scripted model.
 *
 * An answer has the same result however its bytes are cut, and exactly one. The values that it wants back are JSON, and the
 * request that sends them back is JSON, too. The scripted model answers any bytes, and what it answers can be read.
 */
#include "backend/llm/mock.h"
#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "model/names.h"
#include "wire/model_call.h"

#include <stdio.h>
#include <stdlib.h>

struct seen {
    dgm_buf all; /* everything that the callbacks got */
    dgm_model_finish finish;
    dgm_str opaque;
};

static void must(bool ok, const char *what, dgm_str one, dgm_str two)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_model: %s\n  %.*s\n  %.*s\n", what, DGM_P(one), DGM_P(two));
    abort();
}

/* ---- an answer ------------------------------------------------------------------------------------------------------ */

/* Texts may come in other pieces: only their bytes count. */
static dgm_code on_text(void *arg, dgm_str delta)
{
    dgm_buf_add_str(&((struct seen *)arg)->all, delta);
    return DGM_OK;
}

static dgm_code on_call(void *arg, const dgm_model_call *call)
{
    dgm_buf_printf(&((struct seen *)arg)->all, "\n%.*s %.*s %.*s", DGM_P(call->id),
                   DGM_P(call->name), DGM_P(call->arguments));
    must(call->id.n && call->name.n, "a call without id or name", call->id, call->name);
    return DGM_OK;
}

/* False: the framing is wrong, and nothing more is read. */
static bool feed(dgm_model_answer *m, dgm_frames *frames)
{
    dgm_frames_item item;
    dgm_code rc;
    while (!(rc = dgm_frames_next(frames, &item, NULL)) && item.text.p)
        (void)dgm_model_answer_feed(m, &item, NULL);
    return !rc;
}

static void read_answer(dgm_arena *a, dgm_model_api api, dgm_str bytes, size_t cut,
                        struct seen *ret)
{
    dgm_model_handler handler = {.on_text = on_text,
                                 .on_reasoning = on_text,
                                 .on_call = on_call,
                                 .arg = ret,
                                 .keeps_reasoning = true};
    dgm_auto(dgm_model_answer_free) dgm_model_answer *m = dgm_model_answer_new(api, &handler, 7);
    dgm_frames frames;
    *ret = (struct seen){0};
    dgm_buf_init(&ret->all, SIZE_MAX);
    dgm_frames_init(&frames, false);
    dgm_frames_feed(&frames, bytes.p, cut);
    bool is_fine = feed(m, &frames);
    if (is_fine) {
        dgm_frames_feed(&frames, bytes.p + cut, bytes.n - cut);
        is_fine = feed(m, &frames);
    }
    if (is_fine) {
        dgm_frames_end(&frames);
        (void)feed(m, &frames);
    }
    dgm_frames_done(&frames);
    (void)dgm_model_answer_end(m, NULL);
    const dgm_model_result *result = dgm_model_answer_result(m);
    must(result->finish != DGM_MODEL_UNFINISHED, "no result", bytes, (dgm_str){0});
    must(result->finish != DGM_MODEL_ERROR || result->error.message.n, "an error without a message",
         bytes, (dgm_str){0});
    ret->finish = result->finish;
    ret->opaque = dgm_arena_dup(a, result->opaque);
}

/* ---- the values are sent back ---------------------------------------------------------------------------------------- */

static void send_back(dgm_arena *a, dgm_model_api api, dgm_str opaque)
{
    yyjson_val *v = NULL;
    dgm_err err = {0};
    must(!dgm_json_read(a, opaque, SIZE_MAX, "none", &v, &err) ||
             err.code == DGM_TOO_LARGE, /* deeper by the levels around it */
         "the values to send back are not JSON", opaque, dgm_str_from(err.msg));
    if (!v)
        return;
    dgm_member metadata = {DGM_STR(DGM_META_MODEL), v};
    dgm_part part = {.kind = DGM_PART_TEXT, .content = DGM_STR("Hi")};
    dgm_message message = {
        .role = DGM_ROLE_AGENT, .parts = {&part, 1}, .metadata = dgm_json_object(a, &metadata, 1)};
    dgm_model_request request = {
        .api = api, .model = DGM_STR("m"), .messages = {&message, 1}, .sends_reasoning = true};
    dgm_buf out;
    dgm_buf_init(&out, SIZE_MAX);
    must(!dgm_model_write_request(&request, &out, &err), "it cannot be sent back", opaque,
         dgm_str_from(err.msg));
    dgm_code rc = dgm_json_read(a, dgm_buf_str(&out), SIZE_MAX, "none", &v, &err);
    must(!rc || rc == DGM_TOO_LARGE, "the request is not JSON", dgm_buf_str(&out),
         dgm_str_from(err.msg));
    dgm_buf_done(&out);
}

static void check_answer(dgm_model_api api, dgm_str bytes)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct seen whole, cut;
    read_answer(a, api, bytes, bytes.n, &whole);
    read_answer(a, api, bytes, (size_t)(dgm_hash(3, bytes.p, bytes.n) % (bytes.n + 1)), &cut);
    must(whole.finish == cut.finish && dgm_str_eq(dgm_buf_str(&whole.all), dgm_buf_str(&cut.all)) &&
             dgm_str_eq(whole.opaque, cut.opaque),
         "it depends on the cut", dgm_buf_str(&whole.all), dgm_buf_str(&cut.all));
    if (whole.opaque.n)
        send_back(a, api, whole.opaque);
    dgm_buf_done(&whole.all);
    dgm_buf_done(&cut.all);
}

/* ---- errors and the scripted model -------------------------------------------------------------------------------------- */

static void check_error(dgm_str body)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_model_handler handler = {0};
    dgm_model_error error;
    dgm_model_read_error(a, 400, body, &handler, &error);
    must(error.message.n > 0, "an error without a message", body, (dgm_str){0});
    (void)dgm_model_rejected(400, body);
    (void)dgm_model_retry_after(body, body, 1000);
}

static void check_mock(dgm_str body)
{
    dgm_auto(dgm_mock_free) dgm_mock *mock = dgm_mock_new(body, body.n % 2);
    dgm_mock_step step = {0};
    dgm_buf out;
    dgm_buf_init(&out, DGM_MAX_RECORD_BYTES);
    for (size_t i = 0; i < 5000 && !step.is_end && !step.is_cut; i++) {
        dgm_mock_next(mock, &step);
        dgm_buf_add_str(&out, step.bytes);
    }
    if (step.is_end && dgm_mock_status(mock) == 200) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        struct seen seen;
        read_answer(a, DGM_MODEL_CHAT, dgm_buf_str(&out), out.n, &seen);
        dgm_buf_done(&seen.all);
    }
    dgm_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str bytes = {size ? (const char *)data : "", size};
    check_answer(DGM_MODEL_CHAT, bytes);
    check_answer(DGM_MODEL_RESPONSES, bytes);
    check_error(bytes);
    check_mock(bytes);
    return 0;
}
