/*
 * models/run_models.c - answers of models' servers, read by wire/model_call.h. README.md beside this file says what a case is.
 *
 *     run_models DIRECTORY                  runs the cases and prints TAP
 *     run_models --read chat|responses      reads an answer from stdin and prints what it is
 */
#include "base/limits.h"
#include "wire/model_call.h"
#include "json/build.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one answer ------------------------------------------------------------------------------------------------- */

struct reading {
    dgm_buf text, reasoning;
    dgm_arena *arena;
    dgm_model_call calls[64];
    size_t n_calls, n_started;
};

static dgm_code on_text(void *arg, dgm_str delta)
{
    dgm_buf_add_str(&((struct reading *)arg)->text, delta);
    return DGM_OK;
}

static dgm_code on_reasoning(void *arg, dgm_str delta)
{
    dgm_buf_add_str(&((struct reading *)arg)->reasoning, delta);
    return DGM_OK;
}

static dgm_code on_call_start(void *arg, dgm_str id, dgm_str name)
{
    (void)id, (void)name;
    ((struct reading *)arg)->n_started++;
    return DGM_OK;
}

static dgm_code on_call(void *arg, const dgm_model_call *call)
{
    struct reading *r = arg;
    if (r->n_calls < sizeof r->calls / sizeof *r->calls)
        r->calls[r->n_calls++] =
            (dgm_model_call){dgm_arena_dup(r->arena, call->id), dgm_arena_dup(r->arena, call->name),
                             dgm_arena_dup(r->arena, call->arguments), call->is_custom};
    return DGM_OK;
}

/* What a server's words may hold does not matter here. */
static dgm_str clean_error(void *arg, dgm_arena *a, dgm_str text)
{
    (void)arg, (void)a;
    return text;
}

static void feed_pieces(dgm_model_answer *answer, dgm_str bytes, size_t cut)
{
    dgm_frames frames;
    dgm_frames_item item;
    dgm_frames_init(&frames, false);
    for (size_t part = 0; part < 3; part++) {
        if (part == 0)
            dgm_frames_feed(&frames, bytes.p, cut);
        else if (part == 1)
            dgm_frames_feed(&frames, bytes.p + cut, bytes.n - cut);
        else
            dgm_frames_end(&frames);
        while (!dgm_frames_next(&frames, &item, NULL) && item.text.p)
            (void)dgm_model_answer_feed(answer, &item, NULL);
    }
    dgm_frames_done(&frames);
}

/* ---- the result as JSON ------------------------------------------------------------------------------------------- */

static const char *const finishes[] = {"unfinished",     "stop",    "length", "tool_calls",
                                       "content_filter", "refusal", "error"};

static void build_calls(dgm_json_build *b, const struct reading *r)
{
    if (!r->n_calls)
        return;
    dgm_json_build_array(b, "calls");
    for (size_t i = 0; i < r->n_calls; i++) {
        dgm_json_build_object(b, NULL);
        dgm_json_build_str(b, "id", r->calls[i].id);
        dgm_json_build_str(b, "name", r->calls[i].name);
        dgm_json_build_str(b, "arguments", r->calls[i].arguments);
        if (r->calls[i].is_custom)
            dgm_json_build_bool(b, "custom", true);
        dgm_json_build_close(b);
    }
    dgm_json_build_close(b);
}

static void build_count(dgm_json_build *b, const char *name, dgm_opt_long n)
{
    if (n.set) /* as text: parsed numbers are text, too */
        dgm_json_build_str(b, name, dgm_arena_printf(b->arena, "%lld", (long long)n.value));
}

static void build_usage(dgm_json_build *b, const dgm_canon_usage *u)
{
    if (!u->input_tokens.set && !u->output_tokens.set && !u->total_tokens.set)
        return;
    dgm_json_build_object(b, "usage");
    build_count(b, "input", u->input_tokens);
    build_count(b, "output", u->output_tokens);
    build_count(b, "total", u->total_tokens);
    build_count(b, "reasoning", u->reasoning_tokens);
    build_count(b, "cached", u->cached_input_tokens);
    dgm_json_build_close(b);
}

static void build_error(dgm_json_build *b, const dgm_model_error *e)
{
    dgm_json_build_object(b, "error");
    dgm_json_build_str(b, "message", e->message);
    dgm_json_build_str(b, "code", e->code);
    dgm_json_build_bool(b, "retryable", e->is_retryable);
    if (e->is_content_filter)
        dgm_json_build_bool(b, "content_filter", true);
    if (e->is_too_long)
        dgm_json_build_bool(b, "too_long", true);
    dgm_json_build_close(b);
}

static yyjson_val *result_of(const struct reading *r, const dgm_model_result *result)
{
    dgm_json_build b = dgm_json_build_start(r->arena);
    dgm_json_build_object(&b, NULL);
    dgm_json_build_lit(&b, "finish", finishes[result->finish]);
    if (r->text.n)
        dgm_json_build_str(&b, "text", dgm_buf_str(&r->text));
    if (r->reasoning.n)
        dgm_json_build_str(&b, "reasoning", dgm_buf_str(&r->reasoning));
    build_calls(&b, r);
    if (result->refusal.n)
        dgm_json_build_str(&b, "refusal", result->refusal);
    build_usage(&b, &result->usage);
    if (result->finish == DGM_MODEL_ERROR)
        build_error(&b, &result->error);
    if (result->opaque.n)
        dgm_json_build_value(&b, "opaque", dgm_json_parse_trusted(r->arena, result->opaque));
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

/* cut: after how many bytes the second piece starts. The result is in the arena. */
static yyjson_val *read_answer(dgm_arena *a, dgm_model_api api, dgm_str bytes, size_t cut)
{
    struct reading r = {.arena = a};
    dgm_model_handler handler = {on_text,     on_reasoning, on_call_start,          on_call,
                                 clean_error, &r,           .keeps_reasoning = true};
    dgm_auto(dgm_model_answer_free) dgm_model_answer *answer =
        dgm_model_answer_new(api, &handler, 1);
    dgm_buf_init(&r.text, SIZE_MAX);
    dgm_buf_init(&r.reasoning, SIZE_MAX);
    feed_pieces(answer, bytes, cut);
    (void)dgm_model_answer_end(answer, NULL);
    yyjson_val *v = dgm_json_copy(a, result_of(&r, dgm_model_answer_result(answer)));
    dgm_buf_done(&r.text);
    dgm_buf_done(&r.reasoning);
    return v;
}

/* ---- files ------------------------------------------------------------------------------------------------------------ */

static dgm_str read_stream(dgm_arena *a, FILE *f)
{
    dgm_buf b;
    char chunk[65536];
    size_t n;
    dgm_buf_init(&b, SIZE_MAX);
    while ((n = fread(chunk, 1, sizeof chunk, f)))
        dgm_buf_add(&b, chunk, n);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static dgm_str read_path(dgm_arena *a, dgm_str path)
{
    FILE *f = fopen(path.p, "rb");
    if (!f) {
        printf("Bail out! cannot read %s\n", path.p);
        exit(3);
    }
    dgm_str text = read_stream(a, f);
    fclose(f);
    return text;
}

static dgm_str with_crlf(dgm_arena *a, dgm_str text)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\n')
            dgm_buf_add_char(&b, '\r');
        dgm_buf_add_char(&b, text.p[i]);
    }
    dgm_str out = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return out;
}

/* ---- cases ------------------------------------------------------------------------------------------------------------- */

static size_t n_tests, n_failed;

static void tap(bool ok, const char *name, dgm_str about)
{
    n_tests++;
    n_failed += !ok;
    printf("%sok %zu - models: %s: %.*s\n", ok ? "" : "not ", n_tests, name, DGM_P(about));
}

/* Without `about`, which is for people. Numbers of the usage are text on both sides. */
static yyjson_val *wanted(dgm_arena *a, yyjson_val *v)
{
    dgm_json_build b = dgm_json_build_start(a);
    yyjson_val *key, *value;
    size_t i, n;
    dgm_json_build_object(&b, NULL);
    yyjson_obj_foreach (v, i, n, key, value) {
        if (strcmp(yyjson_get_str(key), "about") != 0)
            dgm_json_build_member(&b, dgm_json_str(key), value);
    }
    dgm_json_build_close(&b);
    return dgm_json_build_end(&b);
}

static bool is_same(dgm_model_api api, dgm_str bytes, size_t cut, const yyjson_val *want,
                    const char *how)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    yyjson_val *got = read_answer(a, api, bytes, cut);
    if (dgm_json_equal(got, want))
        return true;
    printf("# %s, cut at %zu\n# got  %s\n# want %s\n", how, cut, dgm_json_text_in(a, got).p,
           dgm_json_text_in(a, want).p);
    return false;
}

static void run_case(const char *directory, const char *name)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str path = dgm_arena_printf(a, "%s/%s", directory, name);
    dgm_model_api api = strstr(name, ".responses.") ? DGM_MODEL_RESPONSES : DGM_MODEL_CHAT;
    bool is_stream = strstr(name, ".sse") != NULL;
    dgm_str bytes = read_path(a, path), crlf = with_crlf(a, bytes);
    dgm_str file = dgm_arena_printf(a, "%.*s.want.json", (int)(strchr(name, '.') - name), name);
    yyjson_val *v = NULL;
    dgm_err err = {0};
    if (dgm_json_read(a, read_path(a, dgm_arena_printf(a, "%s/%s", directory, file.p)), SIZE_MAX,
                      "none", &v, &err)) {
        printf("# %s: %s\n", file.p, err.msg);
        tap(false, name, DGM_STR("the wanted result is not JSON"));
        return;
    }
    yyjson_val *want = wanted(a, v);
    bool ok = true;
    for (size_t cut = 0; ok && cut <= bytes.n; cut++)
        ok = is_same(api, bytes, cut, want, "LF");
    for (size_t cut = 0; ok && is_stream && cut <= crlf.n; cut++)
        ok = is_same(api, crlf, cut, want, "CRLF");
    tap(ok, name, dgm_json_str_member(v, "about"));
}

static int is_case(const struct dirent *e)
{
    return strstr(e->d_name, ".chat.") || strstr(e->d_name, ".responses.");
}

int main(int argc, char **argv)
{
    struct dirent **list;
    if (argc == 3 && strcmp(argv[1], "--read") == 0) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str bytes = read_stream(a, stdin);
        dgm_model_api api =
            strcmp(argv[2], "responses") == 0 ? DGM_MODEL_RESPONSES : DGM_MODEL_CHAT;
        puts(dgm_json_text_in(a, read_answer(a, api, bytes, bytes.n / 2)).p);
        return 0;
    }
    int n = argc == 2 ? scandir(argv[1], &list, is_case, alphasort) : -1;
    if (n < 1) {
        printf("Bail out! usage: run_models DIRECTORY, one with cases\n");
        return 3;
    }
    for (int i = 0; i < n; i++) {
        run_case(argv[1], list[i]->d_name);
        free(list[i]);
    }
    free(list);
    printf("1..%zu\n", n_tests);
    return n_failed ? 1 : 0;
}
