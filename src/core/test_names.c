/* core/test_names.c - tasks by other names: turns by their callers' ids, tasks by the calls they ask for. */
#include "core/test_core.h"

#define RESPONSES DGM_STR("openai-responses")

/* ---- what is asked ------------------------------------------------------------------------------------------ */

static struct step *send_as(struct env *e, const char *text, const char *task, const char *caller)
{
    static int n;
    static char ids[64][16];
    struct step *s = new_step();
    char *id = ids[n % 64];
    snprintf(id, sizeof ids[0], "f-%d", n);
    s->text = dgm_str_from(text);
    s->message_id = dgm_str_from(id);
    s->task_id = dgm_str_from(task);
    s->protocol = RESPONSES;
    s->caller_id = dgm_str_from(caller);
    s->request = DGM_STR("{\"model\":\"one\"}");
    s->previous = DGM_STR("resp_0");
    do_step(e, s, (size_t)n++, send_it);
    if (s->code)
        fail_msg("%s", s->err.msg);
    return s;
}

struct finding {
    struct step s; /* first */
    uint64_t last_seq;
    char agent[16], request[64], previous[64];
};

static void on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err, void *arg)
{
    struct finding *f = arg;
    f->s.code = code;
    if (code) {
        f->s.err = *err;
    } else {
        f->s.log = dgm_log_ref(turn->log);
        f->s.first_seq = turn->first_seq;
        f->s.after = turn->first_seq - 1;
        f->s.turn = turn->turn;
        f->last_seq = turn->last_seq;
        snprintf(f->s.task, sizeof f->s.task, "%.*s", DGM_P(turn->task_id));
        snprintf(f->s.context, sizeof f->s.context, "%.*s", DGM_P(turn->context_id));
        snprintf(f->agent, sizeof f->agent, "%.*s", DGM_P(turn->agent));
        snprintf(f->request, sizeof f->request, "%.*s", DGM_P(turn->request));
        snprintf(f->previous, sizeof f->previous, "%.*s", DGM_P(turn->previous));
        assert_true(turn->log->first_seq <= turn->first_seq);
        assert_true(turn->log->published >= turn->first_seq);
    }
    sem_post(&f->s.done);
}

static void find_it(struct step *s)
{
    dgm_core_find_turn(s->e->core, s->owner, s->agent, s->protocol, s->caller_id, on_turn, s);
}

static struct finding *find(struct env *e, const char *agent, const char *caller)
{
    static size_t n;
    struct finding *f = calloc(1, sizeof *f);
    f->s.agent = agent ? dgm_str_from(agent) : (dgm_str){0};
    f->s.protocol = RESPONSES;
    f->s.caller_id = dgm_str_from(caller);
    do_step(e, &f->s, ++n, find_it);
    return f;
}

static void check_missing(struct env *e, struct finding *want)
{
    do_step(e, &want->s, 1, find_it);
    assert_int_equal(want->s.code, DGM_TASK_NOT_FOUND);
    clear(&want->s);
}

static struct finding *looking_for(const char *caller)
{
    struct finding *f = calloc(1, sizeof *f);
    f->s.protocol = RESPONSES;
    f->s.caller_id = dgm_str_from(caller);
    return f;
}

/* ---- turns ----------------------------------------------------------------------------------------------------- */

static void a_turn_is_found_by_its_callers_id(void **state)
{
    static const char *const agents[] = {NULL, "", "one"};
    struct env e;
    start_env(&e, state, 0);
    struct step *sent = send_as(&e, "chunks", NULL, "resp_1");
    assert_int_equal(sent->first_seq, 1);
    read_all(&e, sent, 0);
    for (int round = 0; round < 6; round++) {
        struct finding *f = find(&e, agents[round % 3], "resp_1");
        assert_int_equal(f->s.code, DGM_OK);
        assert_string_equal(f->s.task, sent->task);
        assert_string_equal(f->s.context, sent->context);
        assert_string_equal(f->agent, "one");
        assert_string_equal(f->request, "{\"model\":\"one\"}");
        assert_string_equal(f->previous, "resp_0");
        assert_int_equal(f->s.turn, 1);
        assert_int_equal(f->s.first_seq, 1);
        assert_int_equal(f->last_seq, sent->n);
        read_all(&e, &f->s, (size_t)round);
        assert_int_equal(f->s.n, sent->n);
        for (size_t i = 0; i < sent->n; i++)
            assert_string_equal(f->s.records[i]->bytes, sent->records[i]->bytes);
        clear(&f->s);
        if (round == 2)
            restart(&e); /* from here on there is only the store */
    }
    check_missing(&e, looking_for("resp_2"));
    struct finding *other = looking_for("resp_1");
    other->s.owner.principal = DGM_STR("somebody else");
    check_missing(&e, other);
    other = looking_for("resp_1");
    other->s.protocol = DGM_STR("openai-chat");
    check_missing(&e, other);
    other = looking_for("resp_1");
    other->s.agent = DGM_STR("two");
    check_missing(&e, other);
    other = looking_for("resp_1");
    other->s.agent = DGM_STR("nobody");
    check_missing(&e, other);
    clear(sent);
    stop_env(&e);
}

static void every_turn_of_a_task_is_found(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = send_as(&e, "ask", NULL, "resp_1");
    struct step *second = send_as(&e, "ask", first->task, "resp_2");
    struct step *third = send_as(&e, "hold", first->task, "resp_3");
    assert_true(second->first_seq > 1 && third->first_seq > second->first_seq);
    for (int round = 0; round < 3; round++) {
        const struct step *sent[] = {first, second, third};
        static const char *const callers[] = {"resp_1", "resp_2", "resp_3"};
        for (uint32_t i = 0; i < 3; i++) {
            struct finding *f = find(&e, NULL, callers[i]);
            assert_int_equal(f->s.code, DGM_OK);
            assert_string_equal(f->s.task, first->task);
            assert_int_equal(f->s.turn, i + 1);
            assert_int_equal(f->s.first_seq, sent[i]->first_seq);
            if (i < 2)
                assert_int_equal(f->last_seq, sent[i + 1]->first_seq - 1);
            else
                assert_int_equal(f->last_seq > third->first_seq, round > 0); /* 0: it runs */
            f->s.until_question = true;
            if (i < 2 || round > 0) {
                read_all(&e, &f->s, i);
                assert_int_equal(f->s.records[0]->head.seq, sent[i]->first_seq);
                assert_int_equal(f->s.records[0]->head.turn, i + 1);
            }
            clear(&f->s);
        }
        if (round == 0) {
            release();
            struct step *more = ask(&e, first->task, NULL, subscribe_it, third->first_seq);
            more->until_question = true;
            read_all(&e, more, 0); /* it has asked: that turn is over */
            clear(more);
        } else {
            restart(&e);
        }
    }
    clear(first);
    clear(second);
    clear(third);
    stop_env(&e);
}

/* The newest of several; of each agent its own. */
static void a_name_is_that_of_the_newest_turn(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = send_as(&e, "chunks", NULL, "resp_1");
    struct step *second = send_as(&e, "chunks", NULL, "resp_1");
    struct step *other = new_step();
    *other = (struct step){.text = DGM_STR("chunks"),
                           .agent = DGM_STR("two"),
                           .message_id = DGM_STR("other"),
                           .protocol = RESPONSES,
                           .caller_id = DGM_STR("resp_1")};
    do_step(&e, other, 0, send_it);
    assert_int_equal(other->code, DGM_OK);
    read_all(&e, first, 0); /* its end is no news */
    struct finding *f = find(&e, "one", "resp_1");
    assert_string_equal(f->s.task, second->task);
    clear(&f->s);
    f = find(&e, "two", "resp_1");
    assert_string_equal(f->s.task, other->task);
    assert_string_equal(f->request, "");
    clear(&f->s);
    f = find(&e, NULL, "resp_1");
    assert_string_equal(f->s.task, other->task);
    clear(&f->s);
    clear(first);
    clear(second);
    clear(other);
    stop_env(&e);
}

static void on_trimmed(dgm_code code, const dgm_err *err, void *arg)
{
    struct step *s = arg;
    (void)err;
    s->code = code;
    sem_post(&s->done);
}

static void trim_it(struct step *s)
{
    dgm_retention keep = {.turns_before_ms = dgm_loop_unix_ms() + 100000};
    dgm_store_trim(s->e->store, keep, on_trimmed, s);
}

static void turns_that_were_trimmed_are_not_found(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *done = send_as(&e, "chunks", NULL, "resp_1");
    read_all(&e, done, 0);
    struct step *asks = send_as(&e, "ask", NULL, "resp_2");
    asks->until_question = true;
    read_all(&e, asks, 0);
    clear(asks); /* and with it who reads */
    struct finding *before = find(&e, NULL, "resp_2");
    assert_int_equal(before->s.code, DGM_OK);
    struct step *trim = new_step();
    do_step(&e, trim, 0, trim_it);
    assert_int_equal(trim->code, DGM_OK);
    check_missing(&e, looking_for("resp_1"));
    check_missing(&e, looking_for("resp_2"));
    struct step *next = send_as(&e, "ask", before->s.task, "resp_3");
    struct finding *f = find(&e, NULL, "resp_3");
    assert_int_equal(f->s.first_seq, next->first_seq);
    clear(&f->s);
    restart(&e);
    f = find(&e, NULL, "resp_3");
    assert_int_equal(f->s.code, DGM_OK);
    assert_int_equal(f->s.turn, 2);
    assert_int_equal(f->s.first_seq, next->first_seq);
    clear(&f->s);
    clear(&before->s);
    clear(trim);
    clear(next);
    clear(done);
    stop_env(&e);
}

/* Changes a letter of the words wherever they are in the database: its log has sums. */
static void damage(const char *words)
{
    char path[96], bytes[1 << 16];
    snprintf(path, sizeof path, "%s/db", dir);
    FILE *f = fopen(path, "r+");
    size_t n, len = strlen(words), found = 0;
    assert_non_null(f);
    for (long at = 0; (n = fread(bytes, 1, sizeof bytes, f)) > 0; at += (long)n) {
        for (size_t i = 0; i + len <= n; i++) {
            if (memcmp(bytes + i, words, len) == 0) {
                bytes[i] ^= 1;
                found++;
            }
        }
        fseek(f, at, SEEK_SET);
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        fseek(f, at + (long)n, SEEK_SET);
    }
    fclose(f);
    assert_true(found > 0);
}

static void a_log_that_cannot_be_read_is_not_one_that_is_gone(void **state)
{
    static char sqlite[] = "sqlite";
    void *on_disk = sqlite;
    struct env e;
    dgm_err err = {0};
    char url[96];
    (void)state;
    start_env(&e, &on_disk, 0);
    struct step *sent = send_as(&e, "chunks", NULL, "resp_1");
    read_all(&e, sent, 0);
    dgm_loops_stop(e.loops);
    dgm_core_stop(e.core);
    dgm_store_close(e.store);
    dgm_loops_free(e.loops);
    dgm_core_free(e.core);
    damage("\"lastChunk\"");
    snprintf(url, sizeof url, "sqlite:%s/db", dir);
    assert_int_equal(dgm_store_open(url, &e.store, &err), DGM_OK);
    assert_int_equal(dgm_loops_new(N_LOOPS, &e.loops, &err), DGM_OK);
    start_core(&e, 0);
    assert_int_equal(dgm_loops_start(e.loops, &err), DGM_OK);
    struct finding *f = find(&e, NULL, "resp_1");
    assert_int_equal(f->s.code, DGM_INTERNAL);
    assert_non_null(strstr(f->s.err.msg, "damaged"));
    clear(&f->s);
    clear(sent);
    stop_env(&e);
}

static void a_task_with_many_readers_is_not_given_to_more(void **state)
{
    struct env e;
    max_subscribers = 1;
    start_env(&e, state, 0);
    max_subscribers = 0;
    struct step *sent = send_as(&e, "hold", NULL, "resp_1");
    post_step(&e, sent, 0, open_it); /* done when it asks */
    sent->until_question = true;
    struct finding *f = find(&e, NULL, "resp_1");
    for (int i = 0; !f->s.code && i < 1000; i++) { /* until the reader is open */
        clear(&f->s);
        f = find(&e, NULL, "resp_1");
    }
    assert_int_equal(f->s.code, DGM_RATE_LIMITED);
    assert_non_null(strstr(f->s.err.msg, "subscribers"));
    release();
    sem_wait(&sent->done);
    clear(&f->s);
    clear(sent);
    stop_env(&e);
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static void find_call_it(struct step *s)
{
    dgm_core_find_call(s->e->core, s->owner, s->agent, s->text, on_task, s);
}

/* The task that asked for it, in this state; "" if not found. */
static void check_call(struct env *e, const char *agent, const char *principal, const char *call,
                       const char *task, dgm_task_state state)
{
    static size_t n;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct step *s = new_step();
    s->agent = agent ? dgm_str_from(agent) : (dgm_str){0};
    s->owner.principal = dgm_str_from(principal);
    s->text = dgm_str_from(call);
    do_step(e, s, ++n, find_call_it);
    assert_int_equal(s->code, *task ? DGM_OK : DGM_TASK_NOT_FOUND);
    if (*task) {
        dgm_task t = read_task(a, s->snapshot);
        check_str(t.id, task);
        assert_int_equal(t.status.state, state);
    }
    clear(s);
}

static void a_task_is_found_by_the_calls_it_asks_for(void **state)
{
    struct env e;
    char last[32], too_many[32];
    dgm_task_state asks = DGM_STATE_INPUT_REQUIRED;
    start_env(&e, state, 0);
    struct step *first = send_text(&e, "call c1", NULL, NULL);
    check_call(&e, NULL, NULL, "c1", first->task, asks);
    check_call(&e, "one", NULL, "c1", first->task, asks);
    check_call(&e, "two", NULL, "c1", "", asks);
    check_call(&e, "nobody", NULL, "c1", "", asks);
    check_call(&e, NULL, "somebody else", "c1", "", asks);
    check_call(&e, NULL, NULL, "c2", "", asks);
    struct step *second = send_text(&e, "call c1", NULL, NULL);
    check_call(&e, NULL, NULL, "c1", second->task, asks);
    struct step *other = new_step();
    *other = (struct step){
        .text = DGM_STR("call c1"), .agent = DGM_STR("two"), .message_id = DGM_STR("other")};
    do_step(&e, other, 1, send_it);
    check_call(&e, NULL, NULL, "c1", other->task, asks);
    restart(&e);
    check_call(&e, "one", NULL, "c1", second->task, asks);
    check_call(&e, "", NULL, "c1", second->task, asks);
    check_call(&e, NULL, NULL, "c1", other->task, asks);
    struct step *answer = send_text(&e, "answer", second->task, NULL);
    read_all(&e, answer, 0);
    check_call(&e, "one", NULL, "c1", second->task, DGM_STATE_COMPLETED); /* it went on */
    struct step *many = send_text(&e, "calls m", NULL, NULL);
    snprintf(last, sizeof last, "m%d", DGM_MAX_OPEN_CALLS - 1);
    snprintf(too_many, sizeof too_many, "m%d", DGM_MAX_OPEN_CALLS);
    check_call(&e, NULL, NULL, "m", many->task, DGM_STATE_AUTH_REQUIRED);
    check_call(&e, NULL, NULL, last, many->task, DGM_STATE_AUTH_REQUIRED);
    check_call(&e, NULL, NULL, too_many, "", DGM_STATE_AUTH_REQUIRED);
    clear(first);
    clear(second);
    clear(other);
    clear(answer);
    clear(many);
    stop_env(&e);
}

/* ---- a task with its turns --------------------------------------------------------------------------------------- */

struct shown {
    struct step s; /* first */
    size_t n_turns, n_live;
    bool is_live;
    uint64_t first[4], last[4];
    char agent[16], caller[4][16], request[4][32];
};

static void on_shown(dgm_code code, const dgm_task_log *task, const dgm_err *err, void *arg)
{
    struct shown *v = arg;
    v->s.code = code;
    if (code) {
        v->s.err = *err;
    } else {
        v->n_turns = task->n_turns;
        snprintf(v->agent, sizeof v->agent, "%.*s", DGM_P(task->agent));
        snprintf(v->s.context, sizeof v->s.context, "%.*s", DGM_P(task->context_id));
        assert_true(task->log->first_seq == 1 && !task->snapshot && !task->after);
        for (size_t i = 0; i < task->n_turns && i < 4; i++) {
            const dgm_task_turn *t = &task->turns[i];
            v->first[i] = t->first_seq;
            v->last[i] = t->last_seq;
            assert_true(dgm_str_eq(t->protocol, RESPONSES));
            snprintf(v->caller[i], sizeof v->caller[i], "%.*s", DGM_P(t->caller_id));
            snprintf(v->request[i], sizeof v->request[i], "%.*s", DGM_P(t->request));
        }
    }
    sem_post(&v->s.done);
}

static void show_it(struct step *s)
{
    dgm_core_read_task(s->e->core, s->owner, s->task_id, on_shown, s);
}

static void on_live(const dgm_live_task *tasks, size_t n, bool more, void *arg)
{
    struct shown *v = arg;
    v->n_live = n + more;
    for (size_t i = 0; i < n; i++)
        v->is_live |= dgm_str_eq(tasks[i].id, v->s.task_id) && tasks[i].runs;
    sem_post(&v->s.done);
}

static void list_it(struct step *s)
{
    dgm_core_list_live(s->e->core, 100, on_live, s);
}

static struct shown *show(struct env *e, const char *task, void (*fn)(struct step *))
{
    static size_t n;
    struct shown *v = calloc(1, sizeof *v);
    v->s.task_id = dgm_str_from(task);
    do_step(e, &v->s, ++n, fn);
    return v;
}

static void a_task_is_read_with_its_turns(void **state)
{
    struct env e;
    start_env(&e, state, 0);
    struct step *first = send_as(&e, "ask", NULL, "resp_1");
    struct step *second = send_as(&e, "hold", first->task, "resp_2");
    for (int round = 0; round < 2; round++) {
        struct shown *v = show(&e, first->task, show_it);
        assert_int_equal(v->s.code, DGM_OK);
        assert_int_equal(v->n_turns, 2);
        assert_string_equal(v->agent, "one");
        assert_string_equal(v->s.context, first->context);
        assert_string_equal(v->caller[0], "resp_1");
        assert_string_equal(v->caller[1], "resp_2");
        assert_string_equal(v->request[1], "{\"model\":\"one\"}");
        assert_int_equal(v->first[0], 1);
        assert_int_equal(v->last[0], second->first_seq - 1);
        assert_int_equal(v->first[1], second->first_seq);
        assert_int_equal(v->last[1] > 0, round); /* 0: it runs */
        clear(&v->s);
        v = show(&e, first->task, list_it);
        assert_int_equal(v->is_live, !round);
        clear(&v->s);
        if (round)
            break;
        release();
        struct step *more = ask(&e, first->task, NULL, subscribe_it, second->first_seq);
        more->until_question = true;
        read_all(&e, more, 0);
        clear(more);
        restart(&e);
    }
    struct shown *unknown = show(&e, "unknown", show_it);
    assert_int_equal(unknown->s.code, DGM_TASK_NOT_FOUND);
    clear(&unknown->s);
    unknown = calloc(1, sizeof *unknown);
    unknown->s.task_id = dgm_str_from(first->task);
    unknown->s.owner.principal = DGM_STR("somebody else");
    do_step(&e, &unknown->s, 1, show_it);
    assert_int_equal(unknown->s.code, DGM_TASK_NOT_FOUND);
    clear(&unknown->s);
    clear(first);
    clear(second);
    stop_env(&e);
}

DGM_TEST_MAIN(ON_BOTH(a_turn_is_found_by_its_callers_id), ON_BOTH(every_turn_of_a_task_is_found),
              ON_BOTH(a_name_is_that_of_the_newest_turn),
              ON_BOTH(turns_that_were_trimmed_are_not_found),
              dgm_test(a_log_that_cannot_be_read_is_not_one_that_is_gone),
              ON_BOTH(a_task_with_many_readers_is_not_given_to_more),
              ON_BOTH(a_task_is_found_by_the_calls_it_asks_for),
              ON_BOTH(a_task_is_read_with_its_turns))
