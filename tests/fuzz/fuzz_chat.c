/*
 * fuzz_chat.c - chat messages and the direct road between A2A and chat.
 *
 * What is read must be written so that we read it the same; what an A2A message becomes must be a
 * chat message that we would take from anybody; and after one trip through the other side, further
 * trips change nothing.
 */
#include "base/limits.h"
#include "fuzz/fuzz.h"
#include "lib/direct.h"
#include "model/form.h"

#include <stdio.h>
#include <stdlib.h>

static void must(bool ok, const char *what, dgm_str one, dgm_str two)
{
    if (ok)
        return;
    fprintf(stderr, "fuzz_chat: %s\n  %.*s\n  %.*s\n", what, DGM_P(one), DGM_P(two));
    abort();
}

static dgm_str written(dgm_arena *a, const dgm_chat_messages *list)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = dgm_chat_name};
    dgm_buf_add_char(&b, '[');
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        dgm_chat_write(&w, &list->at[i]);
    }
    dgm_buf_add_char(&b, ']');
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_chat_messages read_again(dgm_arena *a, dgm_str text)
{
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = dgm_chat_name, .mint = &mint, .err = &err};
    dgm_chat_messages list = {0};
    yyjson_val *v = NULL;
    dgm_code rc = dgm_json_read(a, text, SIZE_MAX, "none", &v, &err);
    if (rc == DGM_TOO_LARGE)
        return list; /* the list around it was one level too many */
    must(!rc && !dgm_chat_read(&r, v, NULL, &list), "we do not read what we write", text,
         dgm_str_from(err.msg));
    return list;
}

/* Over to A2A, as bytes, and back. */
static dgm_chat_messages trip(dgm_arena *a, const dgm_chat_messages *in)
{
    dgm_chat_messages out = {0};
    dgm_mint mint = {0};
    for (size_t i = 0; i < in->n; i++) {
        dgm_message m = {0}, again = {0};
        dgm_err err = {0};
        dgm_reader r = {.arena = a, .format = dgm_form_name, .err = &err};
        yyjson_val *v = NULL;
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_writer w = {.out = &b, .format = dgm_form_name};
        dgm_direct_from_chat(a, &in->at[i], &mint, &m);
        dgm_shape_write(&w, &dgm_form_message, &m);
        must(!dgm_json_read(a, dgm_buf_str(&b), SIZE_MAX, "none", &v, &err) &&
                 !dgm_shape_read(&r, &dgm_form_message, v, NULL, &again),
             "no A2A message", dgm_buf_str(&b), dgm_str_from(err.msg));
        dgm_chat_messages back;
        must(!dgm_direct_message_to_chat(a, &again, NULL, true, &back, &err), "no way back",
             dgm_buf_str(&b), dgm_str_from(err.msg));
        out.at =
            dgm_arena_realloc(a, out.at, out.n * sizeof *out.at, (out.n + back.n) * sizeof *out.at);
        if (back.n)
            memcpy(out.at + out.n, back.at, back.n * sizeof *out.at);
        out.n += back.n;
        dgm_buf_done(&b);
    }
    return out;
}

static void check_list(dgm_arena *a, const dgm_chat_messages *list)
{
    dgm_str text = written(a, list);
    dgm_chat_messages again = read_again(a, text);
    if (again.n != list->n)
        return;
    dgm_str same = written(a, &again);
    must(dgm_str_eq(text, same), "written otherwise the second time", text, same);
    dgm_chat_messages once = trip(a, list), twice = trip(a, &once);
    dgm_str first = written(a, &once), second = written(a, &twice);
    must(dgm_str_eq(first, second), "a second trip changes it", first, second);
    read_again(a, first);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_err err = {0};
    dgm_mint mint = {0};
    dgm_chat_messages list;
    yyjson_val *v;
    if (dgm_json_read(a, (dgm_str){(const char *)data, size}, DGM_MAX_RECORD_BYTES, "record_bytes",
                      &v, &err))
        return 0;
    dgm_chat_recognise(v);
    dgm_reader r = {.arena = a, .format = dgm_chat_name, .mint = &mint, .err = &err};
    if (!dgm_chat_read(&r, v, NULL, &list))
        check_list(a, &list);

    r.format = dgm_form_name;
    dgm_message m = {0};
    if (!dgm_shape_read(&r, &dgm_form_message, v, NULL, &m)) {
        for (int trusted = 0; trusted < 2; trusted++) {
            if (!dgm_direct_message_to_chat(a, &m, NULL, trusted, &list, &err))
                check_list(a, &list);
        }
        dgm_openai_messages public;
        if (!dgm_convert_a2a_message_to_openai(&m, &public, &err))
            dgm_openai_messages_done(&public);
    }
    dgm_task t = {0};
    if (!dgm_shape_read(&r, &dgm_form_task, v, NULL, &t) &&
        !dgm_direct_task_to_chat(a, &t, NULL, true, &list, &err))
        check_list(a, &list);
    return 0;
}
