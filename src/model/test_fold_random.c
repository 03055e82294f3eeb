/* model/test_fold_random.c - random events, against a fold that is simple and slow. */
#include "model/record.h"
#include "model/rules.h"
#include "model/test_fold.h"

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

struct naive {
    struct {
        char text[24000], name[20];
        int meta[4]; /* values of k0..k3; 0: not there */
        bool there;
    } artifacts[4];
    int meta[4];
};

static void check_naive(struct log *l, const struct naive *n)
{
    const dgm_task *t = dgm_fold_task(l->fold);
    size_t there = 0;
    for (int i = 0; i < 4; i++)
        there += n->artifacts[i].there;
    assert_int_equal(t->artifacts.n, there);
    for (size_t i = 0; i < t->artifacts.n; i++) {
        int k = t->artifacts.at[i].artifact_id.p[1] - '0';
        dgm_str text = artifact_text(l, i);
        check_str(text, n->artifacts[k].text);
        check_str(t->artifacts.at[i].name, n->artifacts[k].name);
    }
    for (size_t i = 0; i <= t->artifacts.n; i++) {
        bool task = i == t->artifacts.n;
        const int *want =
            task ? n->meta : n->artifacts[t->artifacts.at[i].artifact_id.p[1] - '0'].meta;
        const dgm_json *meta = task ? t->metadata : t->artifacts.at[i].metadata;
        for (int k = 0; k < 4; k++) {
            int64_t got = 0;
            char key[] = {'k', (char)('0' + k)};
            dgm_json_int(dgm_json_get(meta, (dgm_str){key, 2}), &got);
            assert_int_equal(got, want[k]);
        }
    }
}

static void random_events_fold_as_a_naive_fold_does(void **state)
{
    uint64_t seed = 4711;
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct log l = begin_foreign();
        static struct naive n;
        memset(&n, 0, sizeof n);
        add(&l, TASK);
        for (int step = 0; step < 150; step++) {
            char event[400], text[200];
            int k = (int)(next(&seed) % 4), m = (int)(next(&seed) % 4), value = step + 1;
            bool append = next(&seed) % 4 != 0;
            size_t len = next(&seed) % 100 == 0 ? 150 : next(&seed) % 10;
            memset(text, 'a' + step % 26, len);
            text[len] = 0;
            if (next(&seed) % 5 == 0) {
                snprintf(event, sizeof event, STATUS_META("WORKING", "{'k%d':%d}"), m, value);
                n.meta[m] = value;
            } else {
                bool meta = next(&seed) % 2, name = next(&seed) % 8 == 0;
                char metadata[40] = "", naming[40] = "";
                if (meta)
                    snprintf(metadata, sizeof metadata, ",'metadata':{'k%d':%d}", m, value);
                if (name)
                    snprintf(naming, sizeof naming, ",'name':'n%d'", step);
                snprintf(
                    event, sizeof event,
                    "{'artifactUpdate':{" IDS
                    ",'artifact':{'artifactId':'a%d','parts':[{'text':'%s'}]%s%s},'append':%s}}",
                    k, text, metadata, naming, append ? "true" : "false");
                if (!append)
                    memset(&n.artifacts[k], 0, sizeof n.artifacts[k]);
                n.artifacts[k].there = true;
                strcat(n.artifacts[k].text, text);
                if (meta)
                    n.artifacts[k].meta[m] = value;
                if (name)
                    snprintf(n.artifacts[k].name, sizeof n.artifacts[k].name, "n%d", step);
            }
            add(&l, event);
            if (next(&seed) % 10 == 0)
                check_naive(&l, &n);
        }
        check_naive(&l, &n);
        end(&l);
    }
}

static const char *const pool[] = {
    TASK,
    "{'task':{'id':'u','status':{'state':'TASK_STATE_WORKING','message':" SAY(
        "AGENT", "s",
        "x") "},'history':[" SAY("USER", "m",
                                 "x") "," SAY("USER", "m",
                                              "y") "],'artifacts':[{'artifactId':'a','parts':[]"
                                                   "},{'artifactId':'a','parts':[{'text':'x'}],"
                                                   "'metadata':{}}],'metadata':{'a':1,'a':2,'"
                                                   "aion:x':1}}}",
    "{'task':{'id':'t','status':{'state':'TASK_STATE_COMPLETED'},'x':[{}]}}",
    STATUS("UNSPECIFIED"),
    STATUS("SUBMITTED"),
    STATUS("WORKING"),
    STATUS("INPUT_REQUIRED"),
    STATUS_SAYS("WORKING", "m", "x"),
    STATUS_SAYS("WORKING", "s", "y"),
    STATUS_SAYS("AUTH_REQUIRED", "m", "y"),
    STATUS_META("WORKING", "{}"),
    STATUS_META("WORKING", "{'a':{'b':[]},'dragoman:y':null}"),
    "{'message':" SAY("USER", "m", "x") "}",
    "{'message':" SAY("AGENT", "s", "y") "}",
    "{'kind':'internal:message','taskId':'t','message':" SAY(
        "AGENT", "m", "y") ",'timestamp':'2026-01-02T03:04:05Z'}",
    "{'kind':'internal:step','taskId':'v','name':'','timestamp':'2026-01-02T03:04:05Z'}",
    CHUNK("a", "1", ""),
    CHUNK("a", "2", APPEND),
    CHUNK("a", "3", APPEND LAST),
    CHUNK("b", "4", APPEND),
    CHUNK("b", "5", LAST),
    CHUNK("a", "", APPEND),
    CHUNK("b", "a longer piece of text", APPEND),
    CHUNK("b", "\\n", APPEND),
    CHUNK("\\n", "8", ""),
    CHUNK("\\n", "9", APPEND),
    CHUNK(DGM_STREAM_DELTA_ID, "6", APPEND),
    CHUNK(DGM_STREAM_DELTA_ID, "7", LAST),
    "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'a','name':'n','parts':[],'metadata':{"
    "'k':{}},'extensions':['e','e'],'z':1}}}",
};
#define N_POOL (sizeof pool / sizeof *pool)

static void any_sequence_of_events_is_survived(void **state)
{
    /* Whatever was decoded: no crash, no leak, and a Task that is written and read back the same. */
    uint64_t seed = 815;
    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct log l =
            begin_with((dgm_fold_options){.foreign = round % 2, .keep_transitory = round % 3 == 0});
        for (int step = 0; step < 40; step++) {
            const char *event = pool[next(&seed) % N_POOL];
            add_as(&l, next(&seed) % 4 ? DGM_BY_AGENT : DGM_BY_SERVER, event);
            if (next(&seed) % 8 == 0)
                dgm_fold_task(l.fold);
        }
        if (dgm_fold_task(l.fold)) {
            dgm_str first = task_text(&l);
            dgm_task again = {0};
            dgm_reader r = {.arena = l.scratch, .format = DGM_FORMAT_A2A_10, .err = &l.err};
            check_ok(dgm_shape_read(&r, &dgm_form_task, dgm_json_parse_trusted(l.scratch, first),
                                    NULL, &again),
                     l.err);
            struct log second = begin_with((dgm_fold_options){.keep_transitory = true});
            dgm_event event = {.kind = DGM_EVENT_TASK, .task = &again};
            check_ok(dgm_fold_add(second.fold, &event, DGM_BY_SERVER, &second.err), second.err);
            dgm_str text = task_text(&second);
            check_same(text, first);
            end(&second);
        }
        end(&l);
    }
    dgm_fold_free(NULL);
}

/* Records and fold of the next chunk: what the fast path accepts, the slow path accepts with the same result. */
static bool add_fast(dgm_fold *fast, const dgm_fold *slow, const dgm_event *e, dgm_record *want,
                     dgm_record **before)
{
    dgm_event_view v = {.event = e,
                        .task_id = DGM_STR("t"),
                        .context_id = DGM_STR("c"),
                        .has_task = true,
                        .state = dgm_fold_state(slow)};
    if (e->kind == DGM_EVENT_ARTIFACT)
        v.artifact = dgm_fold_artifact_of(slow, e->artifact->artifact.artifact_id);
    dgm_record *made = *before ? dgm_record_next_chunk(*before, e, want->head) : NULL;
    bool is_added = made && dgm_fold_add_next_chunk(fast, e->artifact);
    if (made) {
        check_same(dgm_record_bytes(made), dgm_record_bytes(want));
        assert_int_equal(made->text_at, want->text_at);
        assert_memory_equal(&made->head, &want->head, sizeof made->head);
        assert_int_equal(made->bytes[made->n], 0);
    }
    if (is_added)
        assert_int_equal(dgm_event_broken_rules(&v, 0), 0);
    dgm_record_unref(made);
    return is_added;
}

static void next_chunks_are_those_of_the_slow_path(void **state)
{
    uint64_t seed = 42;
    size_t n_fast = 0;
    dgm_buf text;
    (void)state;
    dgm_buf_init(&text, SIZE_MAX);
    for (int round = 0; round < 1000; round++) {
        dgm_fold_options o = {.foreign = round % 2, .keep_transitory = round % 3 == 0};
        struct log slow = begin_with(o), fast = begin_with(o);
        dgm_record *before = NULL, *made;
        size_t last = 0;
        for (int step = 0; step < 60; step++) {
            dgm_event e;
            if (next(&seed) % 3) /* mostly chunks, and often of the same artifact */
                last = N_POOL - 13 + next(&seed) % 12;
            else if (!step || next(&seed) % 2)
                last = step ? next(&seed) % N_POOL : 0;
            read_event(&slow, pool[last], &e);
            dgm_record_head head = {.seq = (uint64_t)step + 1, .time = step, .turn = 3};
            assert_int_equal(dgm_record_new(&e, head, &text, &made, NULL), DGM_OK);
            bool is_fast = add_fast(fast.fold, slow.fold, &e, made, &before);
            dgm_code rc = dgm_fold_add(slow.fold, &e, DGM_BY_AGENT, &slow.err);
            n_fast += is_fast;
            if (is_fast)
                assert_int_equal(rc, DGM_OK);
            else
                assert_int_equal(dgm_fold_add(fast.fold, &e, DGM_BY_AGENT, &fast.err), rc);
            assert_int_equal(dgm_fold_n_warnings(fast.fold), dgm_fold_n_warnings(slow.fold));
            assert_int_equal(dgm_fold_cost_of(fast.fold).copied,
                             dgm_fold_cost_of(slow.fold).copied);
            dgm_record_unref(before);
            before = made;
            dgm_arena_reset(slow.scratch);
            if (dgm_fold_task(slow.fold))
                check_same(task_text(&fast), task_text(&slow));
        }
        dgm_record_unref(before);
        end(&slow);
        end(&fast);
    }
    dgm_buf_done(&text);
    assert_true(n_fast > 1000);
}

DGM_TEST_MAIN(dgm_test(next_chunks_are_those_of_the_slow_path),
              dgm_test(random_events_fold_as_a_naive_fold_does),
              dgm_test(any_sequence_of_events_is_survived))
