/* test_worker_checkpoints.c - the requests checkpoint/... and blob/... of a worker, with a store and a connection of the test. */
#include "backend/worker/worker_checkpoints_int.h"
#include "base/limits.h"
#include "support/check.h"

/* ---- a store that notes what it was asked --------------------------------------------------------------- */

struct fake_store {
    dgm_agent_checkpoints base; /* first */
    char last[4000];            /* the last query or change, as text */
    char fence[100];            /* of the last change, as text */
    dgm_bytes *large;           /* of the last put */
    const dgm_checkpoint *rows; /* the next answer */
    size_t n;
    bool more;
    dgm_code code;
    dgm_store_done done; /* of a change that is not answered yet; is_slow: the test does that */
    void *arg;
    bool is_slow;
};

static void fake_answer_change(struct fake_store *s)
{
    dgm_err err = {.code = s->code};
    dgm_store_done done = s->done;
    snprintf(err.msg, sizeof err.msg, "the disk is full");
    s->done = NULL;
    if (done)
        done(s->code, s->code ? &err : NULL, s->arg);
}

static void fake_change(const dgm_agent_checkpoints *base, const dgm_checkpoint_change *c,
                        dgm_store_done done, void *arg)
{
    struct fake_store *s = (struct fake_store *)(uintptr_t)base;
    size_t at;
    snprintf(s->last, sizeof s->last,
             "%d t=%.*s ns=%.*s id=%.*s p=%.*s r=%.*s to=%.*s c=%.*s:%zu m=%.*s:%zu", (int)c->kind,
             DGM_P(c->row.thread), DGM_P(c->row.ns), DGM_P(c->row.id), DGM_P(c->row.parent),
             DGM_P(c->row.run), DGM_P(c->to), DGM_P(c->row.checkpoint.type),
             c->row.checkpoint.bytes ? c->row.checkpoint.bytes->n : 0, DGM_P(c->row.metadata.type),
             c->row.metadata.bytes ? c->row.metadata.bytes->n : 0);
    snprintf(s->fence, sizeof s->fence, "%.*s/%.*s/%.*s %llu %d", DGM_P(c->fence.owner.tenant),
             DGM_P(c->fence.owner.principal), DGM_P(c->fence.task_id),
             (unsigned long long)c->fence.fence, c->fence.is_new);
    for (size_t i = 0; i < c->row.n_writes; i++) {
        const dgm_checkpoint_write *w = &c->row.writes[i];
        at = strlen(s->last);
        snprintf(s->last + at, sizeof s->last - at, " [%.*s %.*s %lld %.*s %.*s:%.*s]",
                 DGM_P(w->task), DGM_P(w->path), (long long)w->idx, DGM_P(w->channel),
                 DGM_P(w->value.type), (int)w->value.bytes->n, w->value.bytes->p);
    }
    for (size_t i = 0; i < c->names.n; i++) {
        at = strlen(s->last);
        snprintf(s->last + at, sizeof s->last - at, " <%.*s>", DGM_P(c->names.at[i]));
    }
    dgm_bytes_unref(s->large);
    s->large = dgm_bytes_ref(c->row.checkpoint.bytes);
    s->done = done;
    s->arg = arg;
}

static void fake_read(const dgm_agent_checkpoints *base, const dgm_checkpoint_query *q,
                      dgm_checkpoints_got got, void *arg)
{
    struct fake_store *s = (struct fake_store *)(uintptr_t)base;
    dgm_err err = {.code = s->code};
    snprintf(err.msg, sizeof err.msg, "the disk is full");
    snprintf(s->last, sizeof s->last,
             "t=%.*s ns=%.*s%s id=%.*s before=%.*s after=%.*s/%.*s/%.*s %zu", DGM_P(q->thread),
             DGM_P(q->ns), q->any_ns ? "*" : "", DGM_P(q->id), DGM_P(q->before), DGM_P(q->after.id),
             DGM_P(q->after.ns), DGM_P(q->after.thread), q->limit);
    got(s->code, s->rows, s->code ? 0 : s->n, s->more, s->code ? &err : NULL, arg);
}

/* ---- a connection ------------------------------------------------------------------------------------------ */

struct env {
    struct fake_store store;
    dgm_worker_service service;
    struct worker_session *session;
};

static char *answer; /* to the last request: the result, or "CODE message" */

static void take_answer(dgm_worker_request *r, char *text)
{
    free(answer);
    answer = text;
    dgm_arena_free(r->arena);
}

static void on_result(dgm_worker_request *r, dgm_str result)
{
    take_answer(r, strndup(result.p, result.n));
}

static void on_error(dgm_worker_request *r, int code, const char *message)
{
    char text[1000];
    snprintf(text, sizeof text, "%d %s", code, message);
    take_answer(r, strdup(text));
}

static const struct worker_answers answers = {on_result, on_error};

static struct env setup(void)
{
    struct env e = {.store.base = {fake_read, fake_change}};
    e.service = dgm_worker_checkpoints(&e.store.base);
    return e;
}

/* After setup has returned: the session has the address of the store. */
static void open_session(struct env *e)
{
    e->session = dgm_worker_session_new(&e->store.base, &answers);
    e->service.on_thread(e->session, dgm_worker_thread_hash(DGM_STR("t1")), NULL);
}

static void teardown(struct env *e)
{
    if (e->session)
        e->service.close(e->session);
    dgm_bytes_unref(e->store.large);
    free(answer);
    answer = NULL;
}

static bool call_text(struct env *e, const char *method, dgm_str params)
{
    dgm_arena *a = dgm_arena_new();
    dgm_worker_request *r = dgm_new(a, dgm_worker_request);
    dgm_err err = {0};
    yyjson_val *v = NULL;
    check_ok(dgm_json_read(a, dgm_arena_dup(a, params), SIZE_MAX, "x", &v, &err), err);
    *r = (dgm_worker_request){.method = dgm_str_from(method), .params = v, .arena = a};
    free(answer);
    answer = NULL;
    bool is_known = e->service.request(e->session, r);
    if (!e->store.is_slow)
        fake_answer_change(&e->store);
    if (!is_known)
        dgm_arena_free(a);
    return is_known;
}

static const char *call(struct env *e, const char *method, const char *params)
{
    assert_true(call_text(e, method, dgm_str_from(params)));
    return answer ? answer : "";
}

static void check_call(struct env *e, const char *method, const char *params, const char *expected)
{
    assert_string_equal(call(e, method, params), expected);
}

static void check_refused(struct env *e, const char *method, const char *params, const char *part)
{
    const char *got = call(e, method, params);
    if (strncmp(got, "-32602 ", 7) != 0 || !strstr(got, part))
        fail_msg("%s %s: expected an error with \"%s\", got %.300s", method, params, part, got);
}

/* ---- changes ----------------------------------------------------------------------------------------------- */

static void requests_become_changes(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    check_call(&e, "checkpoint/put",
               "{\"thread\":\"t1\",\"ns\":\"n\",\"id\":\"i\",\"parent\":\"p\",\"run\":\"r\","
               "\"checkpoint\":[\"msgpack\",\"AAEC\"],\"metadata\":[\"json\",\"e30=\"]}",
               "{}");
    assert_string_equal(e.store.last, "0 t=t1 ns=n id=i p=p r=r to= c=msgpack:3 m=json:2");
    assert_memory_equal(e.store.large->p, "\0\1\2", 3);
    check_call(&e, "checkpoint/put",
               "{\"thread\":\"t1\",\"id\":\"i\",\"parent\":null,\"checkpoint\":[\"x\",\"\"]}",
               "{}");
    assert_string_equal(e.store.last, "0 t=t1 ns= id=i p= r= to= c=x:0 m=:0");
    check_call(&e, "checkpoint/writes",
               "{\"thread\":\"t1\",\"ns\":\"\",\"id\":\"i\",\"task\":\"k\",\"taskPath\":\"~p\","
               "\"writes\":[[0,\"a\",[\"y\",\"b25l\"]],[-3,\"b\",[\"z\",\"dHdv\"]]]}",
               "{}");
    assert_string_equal(e.store.last, "1 t=t1 ns= id=i p= r= to= c=:0 m=:0 [k ~p 0 a y:one]"
                                      " [k ~p -3 b z:two]");
    check_call(&e, "checkpoint/delete", "{\"thread\":\"t1\"}", "{}");
    assert_string_equal(e.store.last, "2 t= ns= id= p= r= to= c=:0 m=:0 <t1>");
    check_call(&e, "checkpoint/delete_runs", "{\"runs\":[\"a\",\"b\"]}", "{}");
    assert_string_equal(e.store.last, "3 t= ns= id= p= r= to= c=:0 m=:0 <a> <b>");
    check_call(&e, "checkpoint/copy", "{\"from\":\"t1\",\"to\":\"t1:copy:2\"}", "{}");
    assert_string_equal(e.store.last, "4 t=t1 ns= id= p= r= to=t1:copy:2 c=:0 m=:0");
    check_call(&e, "checkpoint/prune",
               "{\"threads\":[\"t1\",\"t1:x\"],\"strategy\":\"keep_latest\"}", "{}");
    assert_string_equal(e.store.last, "5 t= ns= id= p= r= to= c=:0 m=:0 <t1> <t1:x>");
    check_call(&e, "checkpoint/prune", "{\"threads\":[\"t1\"],\"strategy\":\"delete\"}", "{}");
    assert_string_equal(e.store.last, "2 t= ns= id= p= r= to= c=:0 m=:0 <t1>");
    assert_false(call_text(&e, "checkpoint/unknown", DGM_STR("{}")));
    teardown(&e);
}

static void put_in(struct env *e, const char *thread, const char *fence)
{
    char params[200];
    snprintf(params, sizeof params, "{\"thread\":\"%s\",\"id\":\"i\",\"checkpoint\":[\"x\",\"\"]}",
             thread);
    check_call(e, "checkpoint/put", params, "{}");
    assert_string_equal(e->store.fence, fence);
}

static void changes_have_the_fence_of_the_last_run(void **state)
{
    (void)state;
    struct env e = setup();
    dgm_run_input in = {.tenant = DGM_STR("acme"),
                        .principal = DGM_STR("ann"),
                        .task_id = DGM_STR("task-1"),
                        .fence = 1};
    dgm_run run = {.input = &in};
    dgm_task task = {0};
    uint64_t thread = dgm_worker_thread_hash(DGM_STR("t1"));
    open_session(&e); /* without a fence: the store is not shared */
    put_in(&e, "t1", "// 0 0");
    dgm_fence fence = dgm_worker_fence_of(&run);
    e.service.on_thread(e.session, thread, &fence);
    put_in(&e, "t1", "acme/ann/task-1 1 1");
    put_in(&e, "t1:sub", "acme/ann/task-1 1 1");
    in.task = &task;
    in.fence = 2;
    fence = dgm_worker_fence_of(&run);
    e.service.on_thread(e.session, thread, &fence);
    put_in(&e, "t1", "acme/ann/task-1 2 0");
    in.fence = 0;
    fence = dgm_worker_fence_of(&run);
    e.service.on_thread(e.session, thread, &fence);
    put_in(&e, "t1", "// 0 0");
    teardown(&e);
}

static void wrong_params_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *method, *params, *part;
    } wrong[] = {
        {"checkpoint/put", "{}", "thread is missing"},
        {"checkpoint/put", "{\"thread\":7}", "thread: expected a text, got a number"},
        {"checkpoint/put", "{\"thread\":\"t1\"}", "id is missing"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"\"}", "id is missing"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\"}", "checkpoint: expected ["},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\"]}",
         "checkpoint: exp"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[1,\"\"]}",
         "checkpoint: exp"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",\"A\"]}",
         "base64"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",\"A===\"]}",
         "base64"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",\"AA==AAAA\"]}",
         "base64"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",\" AAA\"]}",
         "base64"},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",\"A_A=\"]}",
         "base64"},
        {"checkpoint/put",
         "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",{\"blob\":\"b\"}]}",
         "unknown blob \"b\""},
        {"checkpoint/put", "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"a\",null]}",
         "unknown blob"},
        {"checkpoint/put", "{\"thread\":\"t2\",\"id\":\"i\"}", "thread \"t2\" was not named"},
        {"checkpoint/put", "{\"thread\":\"t1x\",\"id\":\"i\"}", "was not named"},
        {"checkpoint/put", "{\"thread\":\"x:t1\",\"id\":\"i\"}", "was not named"},
        {"checkpoint/get", "{\"thread\":\"t2\"}", "was not named"},
        {"checkpoint/list", "{\"thread\":\"t2\"}", "was not named"},
        {"checkpoint/list", "{\"limit\":0}", "limit: expected"},
        {"checkpoint/list", "{\"after\":\"x\"}", "after: expected"},
        {"checkpoint/list", "{\"after\":\"[1,2,3]\"}", "after: expected"},
        {"checkpoint/delete", "{\"thread\":\"t2\"}", "was not named"},
        {"checkpoint/copy", "{\"from\":\"t1\",\"to\":\"t2\"}", "was not named"},
        {"checkpoint/copy", "{\"from\":\"t2\",\"to\":\"t1\"}", "was not named"},
        {"checkpoint/prune", "{\"threads\":[\"t1\",\"t2\"]}", "was not named"},
        {"checkpoint/prune", "{\"threads\":[1]}", "threads: entry 0 is not a text"},
        {"checkpoint/prune", "{\"threads\":[],\"strategy\":\"some\"}",
         "allowed values: keep_latest, delete"},
        {"checkpoint/delete_runs", "{\"runs\":\"r\"}", "runs: expected a list"},
        {"checkpoint/writes", "{\"thread\":\"t1\",\"id\":\"i\"}", "task is missing"},
        {"checkpoint/writes", "{\"thread\":\"t1\",\"id\":\"i\",\"task\":\"k\"}",
         "writes: expected a list"},
        {"checkpoint/writes",
         "{\"thread\":\"t1\",\"id\":\"i\",\"task\":\"k\",\"writes\":[[0,\"c\",[\"t\",\"AAAA\"]],[1,"
         "2]]}",
         "writes: expected a list of"},
        {"checkpoint/writes",
         "{\"thread\":\"t1\",\"id\":\"i\",\"task\":\"k\",\"writes\":[[0,\"c\",[\"t\",\"AAAA\"]],"
         "[\"0\",\"c\",[\"t\",\"AAAA\"]]]}",
         "writes: expected a list of"},
        {"blob/write", "{\"blob\":\"\",\"data\":\"\"}", "blob: expected a name"},
        {"blob/write", "{\"blob\":\"b\"}", "data: expected base64"},
        {"blob/write", "{\"blob\":\"b\",\"data\":\"?\"}", "invalid base64"},
        {"blob/read", "{\"blob\":\"s1\"}", "unknown blob \"s1\""},
        {"blob/read", "{\"blob\":\"sx\"}", "unknown blob"},
        {"blob/read", "[]", "unknown blob"},
    };
    struct env e = setup();
    open_session(&e);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        check_refused(&e, wrong[i].method, wrong[i].params, wrong[i].part);
    assert_string_equal(e.store.last, "");
    teardown(&e);
}

static void faults_of_the_store_are_answered(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    e.store.code = DGM_UNAVAILABLE;
    check_call(&e, "checkpoint/delete", "{\"thread\":\"t1\"}", "-32603 the disk is full");
    check_call(&e, "checkpoint/get", "{\"thread\":\"t1\"}", "-32603 the disk is full");
    e.store.code = DGM_TOO_LARGE;
    check_call(&e, "checkpoint/delete", "{\"thread\":\"t1\"}", "-32602 the disk is full");
    teardown(&e);
    struct env none = setup();
    none.session = dgm_worker_session_new(NULL, &answers);
    check_call(&none, "checkpoint/get", "{}", "-32603 this server stores no checkpoints");
    teardown(&none);
}

/* The process ends while the store works: the answer is dropped, and everything is freed. */
static void a_session_ends_before_its_answer(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    e.store.is_slow = true;
    assert_string_equal(call(&e, "checkpoint/delete", "{\"thread\":\"t1\"}"), "");
    e.service.close(e.session);
    e.session = NULL;
    fake_answer_change(&e.store);
    assert_string_equal(answer, "{}");
    teardown(&e);
}

static void the_threads_that_were_named_last_may_be_used(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    for (uint64_t i = 1; i < DGM_MAX_WORKER_THREADS; i++)
        e.service.on_thread(e.session, i, NULL);
    check_call(&e, "checkpoint/get", "{\"thread\":\"t1\"}", "null");
    e.service.on_thread(e.session, dgm_worker_thread_hash(DGM_STR("t1")), NULL);
    e.service.on_thread(e.session, 1ull << 40, NULL);
    check_call(&e, "checkpoint/get", "{\"thread\":\"t1:x\"}", "null");
    for (uint64_t i = 1; i < DGM_MAX_WORKER_THREADS; i++)
        e.service.on_thread(e.session, 1ull << 41 | i, NULL);
    check_refused(&e, "checkpoint/get", "{\"thread\":\"t1\"}", "was not named");
    teardown(&e);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static void rows_are_answered(void **state)
{
    (void)state;
    struct env e = setup();
    dgm_bytes *abc = dgm_bytes_copy(DGM_STR("abc")), *one = dgm_bytes_copy(DGM_STR("\1"));
    dgm_checkpoint_write w[] = {{.task = DGM_STR("k1"),
                                 .path = DGM_STR("~p"),
                                 .channel = DGM_STR("ch"),
                                 .value = {DGM_STR("t"), one}},
                                {.task = DGM_STR("k2"), .channel = DGM_STR("ch\"")}};
    dgm_checkpoint rows[] = {{.thread = DGM_STR("t1"),
                              .id = DGM_STR("i2"),
                              .parent = DGM_STR("i1"),
                              .run = DGM_STR("r"),
                              .checkpoint = {DGM_STR("msgpack"), abc},
                              .metadata = {DGM_STR("json"), one},
                              .writes = w,
                              .n_writes = 2},
                             {.thread = DGM_STR("another"), .id = DGM_STR("i1")},
                             {.thread = DGM_STR("t1"), .ns = DGM_STR("n"), .id = DGM_STR("i1")}};
    open_session(&e);
    check_call(&e, "checkpoint/get", "{\"thread\":\"t1\"}", "null");
    assert_string_equal(e.store.last, "t=t1 ns= id= before= after=// 1");
    e.store.rows = rows;
    e.store.n = 1;
    check_call(&e, "checkpoint/get", "{\"thread\":\"t1\",\"ns\":\"n\",\"id\":\"i2\"}",
               "{\"thread\":\"t1\",\"ns\":\"\",\"id\":\"i2\",\"parent\":\"i1\",\"run\":\"r\","
               "\"checkpoint\":[\"msgpack\",\"YWJj\"],\"metadata\":[\"json\",\"AQ==\"],"
               "\"writes\":[[\"k1\",\"ch\",[\"t\",\"AQ==\"],\"~p\"],[\"k2\",\"ch\\\"\",[\"\",\"\"],"
               "\"\"]]}");
    assert_string_equal(e.store.last, "t=t1 ns=n id=i2 before= after=// 1");
    e.store.n = 3;
    e.store.more = true;
    const char *list = call(&e, "checkpoint/list", "{\"limit\":3,\"before\":\"i9\"}");
    assert_string_equal(e.store.last, "t= ns=* id= before=i9 after=// 3");
    assert_null(strstr(list, "another"));
    assert_non_null(strstr(list, "\"ns\":\"n\",\"id\":\"i1\",\"checkpoint\":[\"\",\"\"]"));
    assert_non_null(
        strstr(list, "],\"more\":true,\"next\":\"[\\\"i1\\\",\\\"n\\\",\\\"t1\\\"]\"}"));
    e.store.n = 0;
    e.store.more = false;
    check_call(&e, "checkpoint/list",
               "{\"thread\":\"t1\",\"ns\":\"\",\"limit\":1000,\"after\":\"[\\\"i1\\\",\\\"n\\\","
               "\\\"t1\\\"]\"}",
               "{\"rows\":[],\"more\":false}");
    assert_string_equal(e.store.last, "t=t1 ns= id= before= after=i1/n/t1 100");
    dgm_bytes_unref(abc);
    dgm_bytes_unref(one);
    teardown(&e);
}

/* ---- blobs -------------------------------------------------------------------------------------------------- */

/* {"blob":NAME,"data":...} of so many base64 characters A */
static const char *write_blob(struct env *e, const char *name, size_t chars)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_printf(&b, "{\"blob\":\"%s\",\"data\":\"", name);
    assert_true(dgm_buf_room(&b, chars));
    memset(b.p + b.n, 'A', chars);
    b.n += chars;
    dgm_buf_add_lit(&b, "\"}");
    assert_true(call_text(e, "blob/write", dgm_buf_str(&b)));
    dgm_buf_done(&b);
    return answer;
}

static void large_values_are_written_in_parts(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    assert_string_equal(write_blob(&e, "b1", 4 << 20), "{}");
    check_call(&e, "blob/write", "{\"blob\":\"b1\",\"data\":\"////\"}", "{}");
    check_call(&e, "blob/write", "{\"blob\":\"b1\",\"data\":\"/w==\"}", "{}");
    check_call(&e, "checkpoint/put",
               "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"x\",{\"blob\":\"b1\"}]}", "{}");
    assert_int_equal(e.store.large->n, (3 << 20) + 4);
    assert_memory_equal(e.store.large->p + (3 << 20) - 1, "\0\xff\xff\xff\xff", 5);
    check_refused(&e, "checkpoint/put",
                  "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"x\",{\"blob\":\"b1\"}]}",
                  "unknown blob"); /* it is consumed */
    for (int i = 0; i < DGM_MAX_WORKER_BLOBS; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        assert_string_equal(write_blob(&e, name, 4), "{}");
    }
    assert_non_null(strstr(write_blob(&e, "more", 4), "8 blobs are open"));
    check_call(&e, "blob/close", "{\"blob\":\"n3\"}", "{}");
    check_call(&e, "blob/close", "{\"blob\":\"n3\"}", "{}");
    assert_string_equal(write_blob(&e, "more", 4), "{}");
    teardown(&e);
}

static void a_blob_has_a_limit(void **state)
{
    (void)state;
    struct env e = setup();
    open_session(&e);
    size_t part = (size_t)4 << 20; /* 3 MiB */
    for (int i = 0; i < 21; i++)
        assert_string_equal(write_blob(&e, "b", part), "{}"); /* 63 MiB */
    assert_non_null(strstr(write_blob(&e, "b", part), "checkpoint_bytes"));
    check_call(&e, "checkpoint/put",
               "{\"thread\":\"t1\",\"id\":\"i\",\"checkpoint\":[\"x\",{\"blob\":\"b\"}]}", "{}");
    assert_int_equal(e.store.large->n, (size_t)63 << 20);
    teardown(&e);
}

static void large_values_are_read_in_parts(void **state)
{
    (void)state;
    struct env e = setup();
    dgm_bytes *large = dgm_bytes_new(((size_t)5 << 20) + 1),
              *small = dgm_bytes_copy(DGM_STR("abc"));
    for (size_t i = 0; i < large->n; i++)
        large->p[i] = (char)(i % 251);
    dgm_checkpoint row = {.thread = DGM_STR("t1"),
                          .id = DGM_STR("i"),
                          .checkpoint = {DGM_STR("x"), large},
                          .metadata = {DGM_STR("y"), small}};
    e.store.rows = &row;
    e.store.n = 1;
    open_session(&e);
    const char *got = call(&e, "checkpoint/get", "{\"thread\":\"t1\"}");
    assert_non_null(strstr(got, "\"checkpoint\":[\"x\",{\"blob\":\"s1\",\"bytes\":5242881}]"));
    assert_non_null(strstr(got, "\"metadata\":[\"y\",\"YWJj\"]"));
    got = call(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":0}");
    assert_non_null(strstr(got, "\"last\":false}"));
    assert_int_equal(strlen(got), strlen("{\"data\":\"\",\"last\":false}") + (4194304 + 2) / 3 * 4);
    assert_memory_equal(got, "{\"data\":\"AAECAwQF", 17);
    check_call(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":5242880}",
               "{\"data\":\"8w==\",\"last\":true}"); /* 5242880 % 251 = 243 */
    check_call(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":5242881,\"max\":5}",
               "{\"data\":\"\",\"last\":true}");
    check_call(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":1,\"max\":2}",
               "{\"data\":\"AQI=\",\"last\":false}");
    check_refused(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":5242882}", "expected an offset");
    check_refused(&e, "blob/read", "{\"blob\":\"s1\",\"offset\":-1}", "expected an offset");
    check_refused(&e, "blob/read", "{\"blob\":\"s1\",\"max\":0}", "expected an offset");
    /* 512 MiB of them may be open */
    for (int i = 0; i < 101; i++)
        call(&e, "checkpoint/get", "{\"thread\":\"t1\"}");
    check_refused(&e, "checkpoint/get", "{\"thread\":\"t1\"}", "blob/close");
    check_call(&e, "blob/close", "{\"blob\":\"s1\"}", "{}");
    check_refused(&e, "blob/read", "{\"blob\":\"s1\"}", "unknown blob");
    assert_non_null(strstr(call(&e, "checkpoint/get", "{\"thread\":\"t1\"}"), "\"blob\":\"s103\""));
    dgm_bytes_unref(large);
    dgm_bytes_unref(small);
    teardown(&e);
}

/* A page ends before a row that does not fit the line. */
static void pages_fit_their_line(void **state)
{
    (void)state;
    struct env e = setup();
    dgm_bytes *large = dgm_bytes_new((size_t)3 << 20);
    memset(large->p, 'x', large->n);
    dgm_checkpoint rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = (dgm_checkpoint){.thread = DGM_STR("t1"),
                                   .id = dgm_str_from(i == 0   ? "c"
                                                      : i == 1 ? "b"
                                                               : "a"),
                                   .checkpoint = {DGM_STR("x"), large}};
    e.store.rows = rows;
    e.store.n = 3;
    open_session(&e);
    const char *got = call(&e, "checkpoint/list", "{\"thread\":\"t1\"}");
    assert_null(strstr(got, "\"blob\""));
    assert_null(strstr(got, "\"id\":\"b\""));
    assert_non_null(strstr(got, "],\"more\":true,\"next\":\"[\\\"c\\\",\\\"\\\",\\\"t1\\\"]\"}"));
    dgm_bytes_unref(large);
    teardown(&e);
}

DGM_TEST_MAIN(dgm_test(requests_become_changes), dgm_test(changes_have_the_fence_of_the_last_run),
              dgm_test(wrong_params_are_explained), dgm_test(faults_of_the_store_are_answered),
              dgm_test(a_session_ends_before_its_answer),
              dgm_test(the_threads_that_were_named_last_may_be_used), dgm_test(rows_are_answered),
              dgm_test(large_values_are_written_in_parts), dgm_test(a_blob_has_a_limit),
              dgm_test(large_values_are_read_in_parts), dgm_test(pages_fit_their_line))
