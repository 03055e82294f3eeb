/* test_text_pieces.c - which text a streamed piece belongs to: the rows of support/text_streams.h. */
#include "base/limits.h"
#include "base/str.h"
#include "model/text_pieces.h"
#include "support/check.h"
#include "support/text_streams.h"

struct texts {
    dgm_buf text[2 * DGM_MAX_OPEN_TEXTS];
    dgm_text_mode mode[2 * DGM_MAX_OPEN_TEXTS];
    size_t first[2 * DGM_MAX_OPEN_TEXTS];
    size_t n, n_closed;
    bool taken_back;
};

static size_t open_one(void *arg, dgm_str id)
{
    struct texts *t = arg;
    (void)id;
    dgm_buf_init(&t->text[t->n], SIZE_MAX);
    return t->n++;
}

static void set_one(void *arg, size_t i, dgm_str whole)
{
    struct texts *t = arg;
    t->taken_back |= !dgm_str_starts(whole, dgm_buf_str(&t->text[i]));
    dgm_buf_clear(&t->text[i]);
    dgm_buf_add_str(&t->text[i], whole);
}

static void add_one(void *arg, size_t i, dgm_str piece)
{
    struct texts *t = arg;
    dgm_str before = dgm_buf_str(&t->text[i]);
    bool extends = piece.n > before.n && dgm_str_starts(piece, before);
    if (t->mode[i] == DGM_TEXT_SECOND)
        t->first[i] = before.n;
    switch (dgm_text_next_step(&t->mode[i], before.n, extends)) {
    case DGM_STEP_ADD: dgm_buf_add_str(&t->text[i], piece); break;
    case DGM_STEP_ADD_REST:
    case DGM_STEP_REPLACE: set_one(t, i, piece); break;
    case DGM_STEP_TAKE_BACK: {
        dgm_buf all;
        dgm_buf_init(&all, SIZE_MAX);
        dgm_buf_add(&all, before.p, t->first[i]);
        dgm_buf_add_str(&all, before);
        dgm_buf_add_str(&all, piece);
        set_one(t, i, dgm_buf_str(&all));
        dgm_buf_done(&all);
    }
    }
}

static void close_one(void *arg, size_t i)
{
    (void)i;
    ((struct texts *)arg)->n_closed++;
}

static void whole_one(void *arg, dgm_str id, dgm_str whole)
{
    set_one(arg, open_one(arg, id), whole);
    close_one(arg, 0);
}

static size_t begins_one(void *arg, size_t i, dgm_str whole)
{
    dgm_str text = dgm_buf_str(&((struct texts *)arg)->text[i]);
    return dgm_str_starts(whole, text) ? text.n : SIZE_MAX;
}

static dgm_text_sink sink_of(struct texts *t)
{
    return (dgm_text_sink){open_one, add_one, set_one, close_one, whole_one, begins_one, t};
}

static void pieces_find_their_text(void **state)
{
    const struct text_stream *row = *state;
    const char *at = row->pieces;
    struct texts t = {0};
    dgm_text_pieces p;
    dgm_str id, text;
    dgm_buf all;
    bool end;
    dgm_text_pieces_init(&p);
    dgm_buf_init(&all, SIZE_MAX);
    while (text_stream_next(&at, &end, &id, &text)) {
        if (end)
            dgm_text_pieces_end(&p, sink_of(&t), id, text);
        else
            dgm_text_pieces_chunk(&p, sink_of(&t), id, text);
    }
    dgm_text_pieces_close(&p, sink_of(&t));
    assert_int_equal(t.n_closed, t.n);
    if (!*row->final) { /* final texts are the caller's */
        for (size_t i = 0; i < t.n; i++) {
            if (all.n)
                dgm_buf_add_lit(&all, "\n\n");
            dgm_buf_add_str(&all, dgm_buf_str(&t.text[i]));
        }
        check_str(all, row->answer);
        assert_int_equal(t.taken_back, !row->streamable);
    }
    for (size_t i = 0; i < t.n; i++)
        dgm_buf_done(&t.text[i]);
    dgm_buf_done(&all);
    dgm_text_pieces_done(&p);
}

static void only_so_many_are_open(void **state)
{
    struct texts t = {0};
    dgm_text_pieces p;
    char id[16];
    (void)state;
    dgm_text_pieces_init(&p);
    dgm_text_pieces_chunk(&p, sink_of(&t), DGM_STR("x"), DGM_STR("1"));
    dgm_text_pieces_chunk(&p, sink_of(&t), DGM_STR("x"), DGM_STR("2"));
    for (int i = 0; i < DGM_MAX_OPEN_TEXTS; i++) {
        snprintf(id, sizeof id, "m%d", i);
        dgm_text_pieces_chunk(&p, sink_of(&t), dgm_str_from(id), DGM_STR("a"));
    }
    assert_int_equal(t.n, DGM_MAX_OPEN_TEXTS + 1);
    assert_int_equal(t.n_closed, 1);
    for (size_t i = 0; i < t.n; i++)
        dgm_buf_done(&t.text[i]);
    dgm_text_pieces_done(&p);
}

int main(void)
{
    struct CMUnitTest tests[N_TEXT_STREAMS + 1];
    static char names[N_TEXT_STREAMS][120];
    for (size_t i = 0; i < N_TEXT_STREAMS; i++) {
        snprintf(names[i], sizeof names[i], "%s [R000-40]", text_streams[i].name);
        tests[i] = (struct CMUnitTest){names[i], pieces_find_their_text, NULL, NULL,
                                       (void *)(uintptr_t)&text_streams[i]};
    }
    tests[N_TEXT_STREAMS] = (struct CMUnitTest)dgm_test(only_so_many_are_open);
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
