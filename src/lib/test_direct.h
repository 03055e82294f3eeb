/*
 * test_direct.h - shared by the tests of the direct path between A2A and Chat Completions.
 *
 * JSON is written with ` for ", which is easier to read. Messages are in the 1.0 dialect except where the examples of
 * document 001 are tested.
 */
#pragma once

#include "base/limits.h"
#include "lib/direct.h"
#include "model/form.h"
#include "model/stamp.h"
#include "support/check.h"
#include "wire/a2a/a2a.h"

#include <dragoman/document.h>

#define N(array) (sizeof(array) / sizeof *(array))
#define USER(...) "{`role`:`ROLE_USER`,`parts`:[" __VA_ARGS__ "]}"
#define AGENT(...) "{`role`:`ROLE_AGENT`,`parts`:[" __VA_ARGS__ "]}"
#define ASSISTANT(content) "{`role`:`assistant`,`content`:`" content "`}"

struct row {
    const char *name, *in, *out;
};

static inline dgm_str quoted(dgm_arena *a, const char *text)
{
    dgm_str s = dgm_arena_dup(a, dgm_str_from(text));
    for (char *p = (char *)(uintptr_t)s.p; (p = strchr(p, '`')); p++)
        *p = '"';
    return s;
}

static inline void read_form(dgm_arena *a, const dgm_shape *shape, dgm_str text, void *object)
{
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .mint = &mint, .err = &err};
    yyjson_val *v;
    check_ok(dgm_json_read(a, text, SIZE_MAX, "none", &v, &err), err);
    check_ok(dgm_shape_read(&r, shape, v, NULL, object), err);
}

static inline dgm_message message(dgm_arena *a, const char *text)
{
    dgm_message m = {0};
    read_form(a, &dgm_form_message, quoted(a, text), &m);
    return m;
}

static inline dgm_str chat_text(dgm_arena *a, const dgm_chat_messages *list)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_CHAT};
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            dgm_buf_add_char(&b, '\n');
        dgm_chat_write(&w, &list->at[i]);
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static inline dgm_str a2a_text(dgm_arena *a, const dgm_message *m)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_shape_write(&w, &dgm_form_message, m);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static inline dgm_chat_messages chat(dgm_arena *a, const char *text)
{
    dgm_mint mint = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_CHAT, .mint = &mint, .err = &err};
    dgm_chat_messages list = {0};
    yyjson_val *v;
    check_ok(dgm_json_read(a, quoted(a, text), SIZE_MAX, "none", &v, &err), err);
    check_ok(dgm_chat_read(&r, v, NULL, &list), err);
    return list;
}
