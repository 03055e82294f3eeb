/*
 * test_reconcile.c - a text appears once, however an agent sends it.
 *
 * The random test sends the same texts to the reconciler, which stores no text, and to a model that
 * stores all of it. DRAGOMAN_TEST_ALL=1 runs all 100,000 stories, otherwise a tenth.
 */
#include "base/buf.h"
#include "model/reconcile.h"
#include "support/check.h"

/* ---- single steps ----------------------------------------------------------------------------------- */

static void check_say(dgm_text_change say, dgm_text_change_kind kind, const char *text)
{
    assert_int_equal(say.kind, kind);
    check_str(say.text, text);
}

#define S(text) dgm_str_from(text)

static void a_sum_does_not_mind_where_it_is_cut(void **state)
{
    static const char text[] = "Hello, world! 0123456789abcdef \xf0\x9f\x98\x80 and so on, and on,"
                               " until there are several blocks of it: one, two, three";
    const size_t n = sizeof text - 1;
    (void)state;
    for (size_t i = 0; i <= n; i++) {
        for (size_t j = i; j <= n; j++) {
            dgm_sum s = {0};
            dgm_sum_add(&s, (dgm_str){text, i});
            dgm_sum_add(&s, (dgm_str){text + i, j - i});
            dgm_sum_add(&s, (dgm_str){text + j, n - j});
            assert_true(dgm_sum_is_prefix(&s, (dgm_str){text, n}));
        }
    }
    dgm_sum s = {0};
    dgm_sum_add(&s, S("Hello"));
    assert_true(dgm_sum_is_prefix(&s, S("Hello!")));
    assert_false(dgm_sum_is_prefix(&s, S("Hell")));
    assert_false(dgm_sum_is_prefix(&s, S("HellO!")));
    for (size_t i = 0; i < n; i++) { /* any byte that differs, at any position in its block */
        char other[sizeof text];
        memcpy(other, text, sizeof text);
        other[i] ^= 1;
        dgm_sum all = {0};
        dgm_sum_add(&all, (dgm_str){text, n});
        assert_false(dgm_sum_is_prefix(&all, (dgm_str){other, n}));
    }
    dgm_sum zeros = {0};
    dgm_sum_add(&zeros, (dgm_str){"\0\0\0", 3});
    assert_false(dgm_sum_is_prefix(&zeros, (dgm_str){"\0\0a", 3}));
}

static void a_final_text_is_emitted_once(void **state)
{
    static const struct {
        const char *deltas[3], *final;
        dgm_text_change_kind kind;
        const char *text;
    } rows[] = {
        {{"Hello", " world"}, "Hello world!", DGM_TEXT_APPEND, "!"},
        {{"Hello", " world!"}, "Hello world!", DGM_TEXT_UNCHANGED, ""},
        {{"Hello", " word!"}, "Hello world!", DGM_TEXT_REPLACE, "Hello world!"},
        {{"Hello world!!"}, "Hello world!", DGM_TEXT_REPLACE, "Hello world!"},
        {{"Hello"}, "", DGM_TEXT_UNCHANGED, ""},
        {{NULL}, "Hello", DGM_TEXT_APPEND, "Hello"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
        size_t stream = dgm_reconcile_open(r);
        for (size_t k = 0; k < 3 && rows[i].deltas[k]; k++)
            dgm_reconcile_delta(r, stream, S(rows[i].deltas[k]));
        check_say(dgm_reconcile_final(r, S(rows[i].final)), rows[i].kind, rows[i].text);
    }
    dgm_auto(dgm_reconcile_free) dgm_reconcile *none = dgm_reconcile_new(DGM_STATUS_DETECT);
    assert_true(dgm_reconcile_final(none, S("x")).stream == DGM_NO_STREAM);
}

static void a_text_is_compared_with_the_stored_one(void **state)
{
    (void)state;
    check_say(dgm_text_compare(S("a"), S("ab")), DGM_TEXT_APPEND, "b");
    check_say(dgm_text_compare(S("a"), S("a")), DGM_TEXT_UNCHANGED, "");
    check_say(dgm_text_compare(S("ab"), S("a")), DGM_TEXT_REPLACE, "a");
    check_say(dgm_text_compare(S("a"), S("b")), DGM_TEXT_REPLACE, "b");
    dgm_sum s = {0};
    dgm_sum_add(&s, S("b"));
    assert_int_equal(dgm_sum_end_in(&s, S("a \nb"), 1, true), 4);
    assert_true(dgm_sum_end_in(&s, S("a \nb"), 1, false) == SIZE_MAX);
    assert_true(dgm_sum_end_in(&s, S("a         b"), 1, true) == SIZE_MAX);
}

static void several_streams_and_one_final_text(void **state)
{
    static const struct {
        const char *final;
        dgm_text_change_kind kind;
        const char *text;
    } rows[] = {
        {"second", DGM_TEXT_UNCHANGED, ""},
        {"second!", DGM_TEXT_APPEND, "!"},
        {"first\n\nsecond", DGM_TEXT_UNCHANGED, ""},
        {"firstsecond.", DGM_TEXT_APPEND, "."},
        {"first", DGM_TEXT_UNCHANGED, ""},
        {"third", DGM_TEXT_REPLACE, "third"},
        {"first, second", DGM_TEXT_REPLACE, "first, second"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
        dgm_reconcile_delta(r, dgm_reconcile_open(r), S("first"));
        dgm_reconcile_delta(r, dgm_reconcile_open(r), S("second"));
        check_say(dgm_reconcile_final(r, S(rows[i].final)), rows[i].kind, rows[i].text);
    }
}

static void streams_that_start_in_the_middle(void **state)
{
    static const struct {
        bool is_tail;
        const char *final;
        dgm_text_change_kind kind;
        const char *text;
    } rows[] = {
        {false, "zero\n\nfirst\n\nsecond", DGM_TEXT_UNCHANGED, ""},
        {false, "zero\n\nfirstsecond", DGM_TEXT_UNCHANGED, ""},
        {false, "zero first\n\nsecond", DGM_TEXT_REPLACE, "zero first\n\nsecond"},
        {true, "zero first\n\nsecond", DGM_TEXT_UNCHANGED, ""},
        {true, "zerofirstsecond", DGM_TEXT_UNCHANGED, ""},
        {true, "zero second", DGM_TEXT_REPLACE, "zero second"},
        {true, "d", DGM_TEXT_REPLACE, "d"},
        {true, "first\n\nsecond.", DGM_TEXT_APPEND, "."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
        dgm_reconcile_join(r, rows[i].is_tail);
        dgm_reconcile_delta(r, dgm_reconcile_open(r), S("first"));
        dgm_reconcile_delta(r, dgm_reconcile_open(r), S("second"));
        check_say(dgm_reconcile_final(r, S(rows[i].final)), rows[i].kind, rows[i].text);
    }
}

static void status_texts_show_what_they_are(void **state)
{
    (void)state;
    {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
        size_t s = dgm_reconcile_open(r);
        check_say(dgm_reconcile_status(r, s, S("Hel")), DGM_TEXT_APPEND, "Hel");
        check_say(dgm_reconcile_status(r, s, S("Hello")), DGM_TEXT_APPEND, "lo");
        check_say(dgm_reconcile_status(r, s, S("Hello world")), DGM_TEXT_APPEND, " world");
        check_say(dgm_reconcile_status(r, s, S("Hi")), DGM_TEXT_REPLACE, "Hi");
    }
    {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
        size_t s = dgm_reconcile_open(r);
        check_say(dgm_reconcile_status(r, s, S("ha")), DGM_TEXT_APPEND, "ha");
        check_say(dgm_reconcile_status(r, s, S("haha")), DGM_TEXT_APPEND, "ha");
        check_say(dgm_reconcile_status(r, s, S("!")), DGM_TEXT_REPLACE, "hahaha!");
        check_say(dgm_reconcile_status(r, s, S("hahaha!?")), DGM_TEXT_APPEND, "hahaha!?");
    }
    {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DELTAS);
        size_t s = dgm_reconcile_open(r);
        dgm_reconcile_status(r, s, S("ha"));
        check_say(dgm_reconcile_status(r, s, S("haha")), DGM_TEXT_APPEND, "haha");
        check_say(dgm_reconcile_final(r, S("hahaha")), DGM_TEXT_UNCHANGED, "");
    }
    {
        dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_CUMULATIVE);
        size_t s = dgm_reconcile_open(r);
        dgm_reconcile_status(r, s, S("ha"));
        check_say(dgm_reconcile_status(r, s, S("ha")), DGM_TEXT_UNCHANGED, "");
        check_say(dgm_reconcile_status(r, s, S("ho")), DGM_TEXT_REPLACE, "ho");
    }
}

/* ---- random stories -------------------------------------------------------------------------------------- */

static uint64_t seed;

static size_t roll(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

#define MAX_STREAMS 4
#define MAX_TEXT 4096

/* What the text of a stream must be, and what the reconciler's answers add up to. */
struct told {
    char text[MAX_TEXT];
    size_t n;
};

static void tell(struct told *t, dgm_str text, bool anew)
{
    if (anew)
        t->n = 0;
    assert_true(t->n + text.n <= MAX_TEXT);
    memcpy(t->text + t->n, text.p, text.n);
    t->n += text.n;
}

static void apply(struct told *heard, size_t *n_heard, struct told *deltas, dgm_text_change say)
{
    if (say.kind == DGM_TEXT_UNCHANGED)
        return;
    if (say.stream == DGM_NO_STREAM)
        say.stream = (*n_heard)++;
    tell(&heard[say.stream], say.text, say.kind == DGM_TEXT_REPLACE);
    if (say.kind == DGM_TEXT_REPLACE)
        deltas[say.stream].n = SIZE_MAX; /* cannot be sent in deltas */
    else if (deltas[say.stream].n != SIZE_MAX)
        tell(&deltas[say.stream], say.text, false);
}

/* Few letters and much repetition: texts that begin alike are the hard ones. */
static dgm_str random_text(char *out)
{
    static const char *const words[] = {"ha",   "h",     "a",        "haha", " ",
                                        "\n\n", "Hello", "\xc3\xa9", "!"};
    size_t n = 0, count = roll(4);
    for (size_t i = 0; i < count; i++) {
        for (const char *w = words[roll(sizeof words / sizeof *words)]; *w; w++)
            out[n++] = *w;
    }
    if (n > 1 && roll(5) == 0)
        n--; /* anywhere, also within a character */
    return (dgm_str){out, n};
}

static bool begins(const struct told *t, const char *p, size_t n)
{
    return n >= t->n && memcmp(p, t->text, t->n) == 0;
}

/* The rule for finals, on whole texts. */
static void model_final(struct told *t, size_t n, dgm_str f)
{
    struct told *last = &t[n - 1];
    if (!f.n)
        return;
    if (begins(last, f.p, f.n)) {
        tell(last, f, true);
        return;
    }
    size_t at = 0, i = 0;
    for (; i < n; i++) {
        size_t skipped = 0;
        while (!begins(&t[i], f.p + at, f.n - at) && i && skipped < 8 && at < f.n &&
               strchr(" \t\r\n", f.p[at]) && f.p[at])
            at++, skipped++;
        if (!begins(&t[i], f.p + at, f.n - at))
            break;
        at += t[i].n;
    }
    if (i == n && at) {
        tell(last, (dgm_str){f.p + at, f.n - at}, false);
        return;
    }
    for (i = 0; i < n; i++) {
        if (t[i].n == f.n && begins(&t[i], f.p, f.n))
            return;
    }
    tell(last, f, true);
}

/* One text of an agent that says deltas, or all of it each time; what it means is known only here. */
struct status_model {
    struct told texts[64];
    size_t n;
};

static void model_status(struct told *t, struct status_model *m, dgm_str text)
{
    if (!text.n)
        return;
    assert_true(m->n < 64);
    m->texts[m->n].n = 0;
    tell(&m->texts[m->n++], text, true);
    bool grows = m->n > 1;
    for (size_t i = 1; i < m->n && i < 3; i++)
        grows &= m->texts[i].n > m->texts[i - 1].n &&
                 begins(&m->texts[i - 1], m->texts[i].text, m->texts[i].n);
    if (grows) { /* the last text is complete */
        tell(t, text, true);
        return;
    }
    t->n = 0;
    for (size_t i = 0; i < m->n; i++)
        tell(t, (dgm_str){m->texts[i].text, m->texts[i].n}, false);
}

static void one_story(void)
{
    static struct told want[MAX_STREAMS + 1], heard[MAX_STREAMS + 1], deltas[MAX_STREAMS + 1];
    static struct status_model status;
    dgm_auto(dgm_reconcile_free) dgm_reconcile *r = dgm_reconcile_new(DGM_STATUS_DETECT);
    size_t n = 0, n_heard = 0, steps = roll(12), status_stream = DGM_NO_STREAM;
    char text[256], final[MAX_TEXT * 4];
    dgm_status_text stored = {0}; /* the status stream again, by a caller that has the text */
    dgm_buf_init(&stored.text, SIZE_MAX);
    memset(want, 0, sizeof want);
    memset(heard, 0, sizeof heard);
    memset(deltas, 0, sizeof deltas);
    status.n = 0;
    for (size_t i = 0; i < steps; i++) {
        size_t what = roll(10);
        if (!n || (what == 0 && n < MAX_STREAMS)) {
            assert_true(dgm_reconcile_open(r) == n);
            n_heard = ++n;
            if (status_stream == DGM_NO_STREAM && roll(3) == 0)
                status_stream = n - 1;
            continue;
        }
        size_t s = roll(n);
        dgm_str t = random_text(text);
        if (s == status_stream) {
            if (roll(2) && want[s].n < 64) { /* all so far, and more */
                memmove(text + want[s].n, text, t.n);
                memcpy(text, want[s].text, want[s].n);
                t.n += want[s].n;
            }
            model_status(&want[s], &status, t);
            apply(heard, &n_heard, deltas, dgm_reconcile_status(r, s, t));
            dgm_status_text_add(&stored, t);
            check_bytes_(stored.text.p, stored.text.n, want[s].text, want[s].n, __FILE__, __LINE__);
        } else if (what < 7) {
            tell(&want[s], t, false);
            apply(heard, &n_heard, deltas, dgm_reconcile_delta(r, s, t));
        } else {
            tell(&want[s], t, true);
            apply(heard, &n_heard, deltas, dgm_reconcile_replace(r, s, t));
        }
    }
    dgm_buf_done(&stored.text);
    /* equal, longer, different, all of them joined */
    size_t fn = 0, how = roll(6);
    if (n && how < 3) {
        fn = want[n - 1].n;
        memcpy(final, want[n - 1].text, fn);
    } else if (how == 3) {
        for (size_t i = 0; i < n; i++) {
            size_t blanks = i && roll(2) ? 2 : 0;
            memcpy(final + fn, "\n\n", blanks);
            fn += blanks;
            memcpy(final + fn, want[i].text, want[i].n);
            fn += want[i].n;
        }
    }
    if (how) {
        dgm_str t = random_text(text);
        memcpy(final + fn, t.p, t.n);
        fn += t.n;
    }
    dgm_str f = {final, fn};
    bool first = !n;
    if (first && f.n)
        tell(&want[n++], f, true);
    else if (n)
        model_final(want, n, f);
    apply(heard, &n_heard, deltas, dgm_reconcile_final(r, f));
    assert_int_equal(n, n_heard);
    for (size_t i = 0; i < n; i++) {
        check_bytes_(heard[i].text, heard[i].n, want[i].text, want[i].n, __FILE__, __LINE__);
        if (deltas[i].n != SIZE_MAX)
            check_bytes_(deltas[i].text, deltas[i].n, want[i].text, want[i].n, __FILE__, __LINE__);
    }
}

static void every_text_arrives_once(void **state)
{
    const char *all = getenv("DRAGOMAN_TEST_ALL");
    size_t stories = all && *all ? 100000 : 10000;
    (void)state;
    for (size_t i = 0; i < stories; i++) {
        seed = i;
        one_story();
    }
}

DGM_TEST_MAIN(dgm_test(a_sum_does_not_mind_where_it_is_cut),
              dgm_test_holds(a_final_text_is_emitted_once, "R004-04"),
              dgm_test(a_text_is_compared_with_the_stored_one),
              dgm_test(several_streams_and_one_final_text),
              dgm_test(streams_that_start_in_the_middle),
              dgm_test_holds(status_texts_show_what_they_are, "R004-15"),
              dgm_test_holds(every_text_arrives_once, "R004-15"))
