/* model/test_history.c - texts that the history has already. */
#include "base/str.h"
#include "model/history.h"
#include "support/check.h"

struct row {
    const char *text;
    bool want;
    const char *said[5]; /* "u:" the user, "a:" the agent, "c" calls */
};

static void a_final_text_is_found_in_the_last_messages(void **state)
{
    static const struct row rows[] = {
        {"Hello", true, {"u:hi", "a:Hello"}},
        {"First.\n\nSecond.", true, {"u:hi", "a:First.", "a:Second."}},
        {"First.\n\nSecond.", true, {"u:hi", "a:First.", "c", "a:Second.", "c"}},
        {"a\n\nb", true, {"u:hi", "a:a\n\nb"}},
        {"Second.", true, {"u:hi", "a:First.", "a:Second."}},
        {"First.Second.", false, {"u:hi", "a:First.", "a:Second."}},
        {"First.\n\nSecond.", false, {"u:First.", "a:Second."}},
        {"First.\n\nSecond.", true, {"u:hi", "a:First.", "u:more", "a:Second."}},
        {"First.\n\nSecond.", false, {"a:First.", "u:more", "a:Third."}},
        {"Hello", false, {"u:hi", "a:Hello", "u:again"}},
        {"Hello world", false, {"u:hi", "a:Hello"}},
        {"Hello", false, {"u:Hello"}},
        {"Hello", false, {0}},
        {"", false, {"a:Hello"}},
        {"\n\nHello", false, {"u:hi", "a:Hello"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_message at[5];
        dgm_part parts[5];
        dgm_messages history = {at, 0};
        for (; history.n < 5 && rows[i].said[history.n]; history.n++) {
            const char *said = rows[i].said[history.n];
            size_t k = history.n;
            parts[k] = (dgm_part){.kind = DGM_PART_DATA};
            if (said[0] != 'c')
                parts[k] = (dgm_part){.kind = DGM_PART_TEXT, .content = dgm_str_from(said + 2)};
            at[k] = (dgm_message){.role = said[0] == 'u' ? DGM_ROLE_USER : DGM_ROLE_AGENT,
                                  .parts = {&parts[k], 1}};
        }
        if (dgm_history_ends_with(&history, dgm_str_from(rows[i].text)) != rows[i].want) {
            print_error("row %zu: \"%s\"\n", i, rows[i].text);
            fail();
        }
    }
}

DGM_TEST_MAIN(dgm_test(a_final_text_is_found_in_the_last_messages))
