/*
 * test_graph_turns.c - the mapping of document 003, by turns in files: tests/langgraph/turns.
 *
 * A file holds one turn: {"name", "holds": [ids], "turn": {...}, "events": [...], "result" or "error", "expect": {...}}.
 * DGM_GRAPH_UPDATE=1 writes `expect` of every file as it is now: read the change before you commit it.
 */
#include "backend/langgraph/graph_map.h"
#include "base/limits.h"
#include "model/fold.h"
#include "model/form.h"
#include "support/check.h"
#include "json/build.h"

#include <dirent.h>

#define MAX_TURNS 300

struct turn_file {
    char path[300];
    char name[200];
    dgm_arena *arena;
    const dgm_json *root;
};

static struct turn_file files[MAX_TURNS];
static size_t n_files;

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

static dgm_str read_whole(dgm_arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    dgm_buf b;
    char block[4096];
    size_t n;
    assert_non_null(f);
    dgm_buf_init(&b, SIZE_MAX);
    while ((n = fread(block, 1, sizeof block, f)) > 0)
        dgm_buf_add(&b, block, n);
    fclose(f);
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static const dgm_json *member(const dgm_json *v, const char *key)
{
    return dgm_json_get(v, dgm_str_from(key));
}

static const dgm_json *list_of(const dgm_json *v, const char *key)
{
    return member(v, key);
}

static void *read_object(dgm_arena *a, const dgm_json *v, const dgm_shape *shape, size_t size)
{
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = DGM_FORMAT_A2A_10, .err = &err};
    void *it = dgm_arena_alloc(a, size);
    if (!v)
        return NULL;
    check_ok(dgm_shape_read(&r, shape, (yyjson_val *)(uintptr_t)v, NULL, it), err);
    return it;
}

/* ---- output ------------------------------------------------------------------------------------------------------------- */

struct output {
    dgm_buf events, notes;
    dgm_fold *fold;
    dgm_arena *arena;
};

static void on_emit(void *arg, const dgm_event *event)
{
    struct output *x = arg;
    dgm_err err = {0};
    dgm_writer w = {.out = &x->events, .format = DGM_FORMAT_A2A_10};
    if (x->events.n)
        dgm_buf_add_char(&x->events, ',');
    dgm_form_write_event(&w, event);
    check_ok(dgm_fold_add(x->fold, event, DGM_BY_AGENT, &err), err);
}

static void on_note(void *arg, dgm_str line)
{
    struct output *x = arg;
    if (x->notes.n)
        dgm_buf_add_char(&x->notes, ',');
    dgm_json_put_str(&x->notes, line);
}

static void start_fold(struct output *x, const dgm_graph_turn *t)
{
    dgm_err err = {0};
    dgm_message first = *t->message;
    dgm_task task = {.id = t->task_id,
                     .context_id = t->context_id,
                     .status.state = DGM_STATE_SUBMITTED,
                     .history = {&first, 1}};
    dgm_event event = {.kind = DGM_EVENT_TASK,
                       .task = t->task ? (dgm_task *)(uintptr_t)t->task : &task};
    x->fold = dgm_fold_new((dgm_fold_options){0});
    check_ok(dgm_fold_add(x->fold, &event, DGM_BY_SERVER, &err), err);
    dgm_internal answer = {.kind = DGM_INTERNAL_MESSAGE, .message = &first};
    event = (dgm_event){.kind = DGM_EVENT_INTERNAL, .internal = &answer};
    if (t->task)
        check_ok(dgm_fold_add(x->fold, &event, DGM_BY_SERVER, &err), err);
    dgm_status_update working = {.status.state = DGM_STATE_WORKING};
    event = (dgm_event){.kind = DGM_EVENT_STATUS, .status = &working};
    check_ok(dgm_fold_add(x->fold, &event, DGM_BY_SERVER, &err), err);
}

static void put_plan(dgm_buf *b, const dgm_graph_plan *p)
{
    static const char *const kinds[] = {"input", "resume", "continue", "ask-again", "nothing"};
    dgm_buf_printf(b, "\"plan\":{\"kind\":\"%s\",\"input\":", kinds[p->kind]);
    dgm_json_put(b, p->input);
    dgm_buf_add_lit(b, ",\"resume\":");
    dgm_json_put(b, p->resume);
    if (p->why.n) {
        dgm_buf_add_lit(b, ",\"why\":");
        dgm_json_put_str(b, p->why);
    }
    dgm_buf_add_lit(b, "}");
}

static void feed(dgm_graph_out *o, const dgm_json *events)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)events, i, n, e) {
        dgm_str type = dgm_json_str_member(e, "type");
        if (dgm_str_is(type, "restart"))
            dgm_graph_out_restart(o);
        else
            dgm_graph_out_event(o, type, member(e, "ns"), member(e, "data"));
    }
}

static void end_turn(dgm_graph_out *o, dgm_arena *a, const struct turn_file *f,
                     const dgm_graph_turn *t, const dgm_graph_plan *plan, dgm_buf *b)
{
    const dgm_json *error = member(f->root, "error"), *state = member(f->root, "state"),
                   *sync = NULL;
    const dgm_json *result = member(f->root, "result");
    if (state)
        result = dgm_graph_result_of_state(a, state, plan->human_id);
    if (plan->kind == DGM_GRAPH_ASK_AGAIN) {
        dgm_graph_out_ask(o, t, plan->why);
    } else if (error) {
        dgm_task_state to =
            dgm_str_is(dgm_json_str_member(error, "state"), "rejected")   ? DGM_STATE_REJECTED
            : dgm_str_is(dgm_json_str_member(error, "state"), "canceled") ? DGM_STATE_CANCELED
                                                                          : DGM_STATE_FAILED;
        dgm_graph_out_fail(o, to, dgm_json_str_member(error, "text"));
    } else if (result) {
        sync = dgm_graph_out_result(o, a, result);
        dgm_graph_out_finish(o);
    }
    if (sync) {
        dgm_buf_add_lit(b, ",\"sync\":");
        dgm_json_put(b, sync);
    }
}

/* ---- one file -------------------------------------------------------------------------------------------------------------- */

static dgm_graph_turn read_turn(dgm_arena *a, const dgm_json *v)
{
    return (dgm_graph_turn){
        .message = read_object(a, member(v, "message"), &dgm_form_message, sizeof(dgm_message)),
        .task = read_object(a, member(v, "task"), &dgm_form_task, sizeof(dgm_task)),
        .metadata = member(v, "metadata"),
        .task_id = DGM_STR("t1"),
        .context_id = DGM_STR("c1"),
        .keys = member(v, "keys"),
        .is_v10 = yyjson_is_true(dgm_json_get(v, DGM_STR("v10"))),
        .is_small = yyjson_is_true(dgm_json_get(v, DGM_STR("small"))),
        .has_open_call = yyjson_is_true(dgm_json_get(v, DGM_STR("openCall"))),
    };
}

static void run_turn(dgm_arena *a, const struct turn_file *f, dgm_buf *b)
{
    const dgm_json *given = member(f->root, "turn");
    dgm_graph_turn turn = read_turn(a, given);
    dgm_graph_plan plan = dgm_graph_plan_turn(a, &turn);
    struct output x = {.arena = a};
    dgm_buf_init(&x.events, SIZE_MAX);
    dgm_buf_init(&x.notes, SIZE_MAX);
    start_fold(&x, &turn);
    dgm_graph_out *o = dgm_graph_out_new(
        &(dgm_graph_options){.task_id = turn.task_id,
                             .context_id = turn.context_id,
                             .message = turn.message,
                             .task = turn.task,
                             .tools = dgm_graph_tools(turn.message, turn.metadata),
                             .has_messages =
                                 !yyjson_is_false(dgm_json_get(given, DGM_STR("hasMessages"))),
                             .is_rerun = yyjson_is_true(dgm_json_get(given, DGM_STR("rerun"))),
                             .mint = {{1, 2}, 0, {0}}},
        (dgm_graph_sink){on_emit, on_note, &x});
    dgm_buf_add_char(b, '{');
    put_plan(b, &plan);
    feed(o, list_of(f->root, "events"));
    end_turn(o, a, f, &turn, &plan, b);
    dgm_buf_printf(b, ",\"emits\":[%.*s]", DGM_P(dgm_buf_str(&x.events)));
    if (x.notes.n)
        dgm_buf_printf(b, ",\"notes\":[%.*s]", DGM_P(dgm_buf_str(&x.notes)));
    dgm_writer w = {.out = b, .format = DGM_FORMAT_A2A_10};
    dgm_buf_add_lit(b, ",\"task\":");
    dgm_shape_write(&w, &dgm_form_task, dgm_fold_task(x.fold));
    dgm_buf_add_char(b, '}');
    dgm_graph_out_free(o);
    dgm_fold_free(x.fold);
    dgm_buf_done(&x.events);
    dgm_buf_done(&x.notes);
}

/* ---- files ------------------------------------------------------------------------------------------------------------------ */

/* Expectations on lines of their own: a change can be read. */
static void put_expect(FILE *out, const dgm_json *got)
{
    yyjson_val *key, *value, *item;
    size_t i, n, k, m;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)got, i, n, key, value) {
        dgm_buf_printf(&b, "%s\n  \"%.*s\": ", i ? "," : "", DGM_P(dgm_json_str(key)));
        if (!yyjson_is_arr(value)) {
            dgm_json_put_spaced(&b, value);
            continue;
        }
        dgm_buf_add_char(&b, '[');
        yyjson_arr_foreach (value, k, m, item) {
            dgm_buf_printf(&b, "%s\n   ", k ? "," : "");
            dgm_json_put_spaced(&b, item);
        }
        dgm_buf_add_str(&b, m ? DGM_STR("\n  ]") : DGM_STR("]"));
    }
    fprintf(out, " \"expect\": {%.*s\n }\n", (int)b.n, b.p);
    dgm_buf_done(&b);
}

static void write_file(const struct turn_file *f, const dgm_json *got)
{
    FILE *out = fopen(f->path, "wb");
    yyjson_val *key, *value, *item;
    size_t i, n, k, m;
    dgm_buf b;
    assert_non_null(out);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\n");
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)f->root, i, n, key, value) {
        if (dgm_str_is(dgm_json_str(key), "expect"))
            continue;
        dgm_buf_printf(&b, " \"%.*s\": ", DGM_P(dgm_json_str(key)));
        if (dgm_str_is(dgm_json_str(key), "events")) {
            dgm_buf_add_char(&b, '[');
            yyjson_arr_foreach (value, k, m, item) {
                dgm_buf_printf(&b, "%s\n  ", k ? "," : "");
                dgm_json_put_spaced(&b, item);
            }
            dgm_buf_add_str(&b, m ? DGM_STR("\n ]") : DGM_STR("]"));
        } else {
            dgm_json_put_spaced(&b, value);
        }
        dgm_buf_add_lit(&b, ",\n");
    }
    fwrite(b.p, 1, b.n, out);
    put_expect(out, got);
    fprintf(out, "}\n");
    fclose(out);
    dgm_buf_done(&b);
}

static void turn_is_mapped(void **state)
{
    const struct turn_file *f = *state;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_json *expect = member(f->root, "expect");
    yyjson_val *got;
    dgm_buf b;
    dgm_err err = {0};
    dgm_buf_init(&b, SIZE_MAX);
    run_turn(a, f, &b);
    check_ok(dgm_json_read(a, dgm_arena_dup(a, dgm_buf_str(&b)), SIZE_MAX, "", &got, &err), err);
    dgm_buf_done(&b);
    if (getenv("DGM_GRAPH_UPDATE")) {
        write_file(f, got);
        return;
    }
    dgm_str want_text = expect ? dgm_json_text_in(a, expect) : DGM_STR("null");
    if (!expect || !dgm_json_equal(got, expect))
        check_bytes_(dgm_json_text_in(a, got).p, dgm_json_text_in(a, got).n, want_text.p,
                     want_text.n, f->path, 1);
}

static int compare_files(const void *a, const void *b)
{
    return strcmp(((const struct turn_file *)a)->path, ((const struct turn_file *)b)->path);
}

static void load_files(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *e;
    if (!d) {
        fprintf(stderr, "cannot open %s: run this from the source folder\n", folder);
        exit(1);
    }
    while ((e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (n < 6 || strcmp(e->d_name + n - 5, ".json") != 0 || n_files == MAX_TURNS)
            continue;
        struct turn_file *f = &files[n_files++];
        snprintf(f->path, sizeof f->path, "%s/%s", folder, e->d_name);
    }
    closedir(d);
    qsort(files, n_files, sizeof *files, compare_files);
}

static void load_file(struct turn_file *f)
{
    dgm_err err = {0};
    yyjson_val *root, *id;
    size_t i, n;
    dgm_buf b;
    f->arena = dgm_arena_new();
    if (dgm_json_read(f->arena, read_whole(f->arena, f->path), SIZE_MAX, "", &root, &err)) {
        fprintf(stderr, "%s:%zu: %s\n", f->path, err.line, err.msg);
        exit(1);
    }
    f->root = root;
    dgm_buf_init(&b, sizeof f->name - 1);
    dgm_buf_add_str(&b, dgm_json_str_member(root, "name"));
    yyjson_arr_foreach (dgm_json_get(root, DGM_STR("holds")), i, n, id) {
        dgm_buf_add_str(&b, i ? DGM_STR(" ") : DGM_STR(" ["));
        dgm_buf_add_str(&b, dgm_json_str(id));
    }
    if (n)
        dgm_buf_add_char(&b, ']');
    snprintf(f->name, sizeof f->name, "%.*s", (int)b.n, b.p);
    dgm_buf_done(&b);
}

int main(void)
{
    static struct CMUnitTest tests[MAX_TURNS];
    const char *root = getenv("DGM_SOURCE_DIR");
    char folder[300];
    snprintf(folder, sizeof folder, "%s/tests/langgraph/turns", root ? root : ".");
    load_files(folder);
    for (size_t i = 0; i < n_files; i++) {
        load_file(&files[i]);
        tests[i] = (struct CMUnitTest)dgm_test_with(files[i].name, turn_is_mapped, &files[i]);
    }
    cmocka_set_message_output(CM_OUTPUT_TAP);
    int rc = _cmocka_run_group_tests("turns", tests, n_files, NULL, NULL);
    for (size_t i = 0; i < n_files; i++)
        dgm_arena_free(files[i].arena);
    return rc;
}
