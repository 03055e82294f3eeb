/* The table, and what is made from it; the program as a whole is driven by tests/cli. */
#include "cli.h"

#include "support/check.h"

#include <ctype.h>

/* ---- text made into memory ----------------------------------------------------------------------- */

typedef struct made {
    char *p;
    size_t n;
    FILE *out;
} made;

static void made_begin(made *m)
{
    m->out = open_memstream(&m->p, &m->n);
    assert_non_null(m->out);
}

static void made_end(made *m)
{
    fclose(m->out);
}

static void check_holds(const made *m, const char *what, const char *where)
{
    if (!strstr(m->p, what)) {
        print_error("%s says nothing of %s\n", where, what);
        fail();
    }
}

/* ---- the table -------------------------------------------------------------------------------------- */

static const dgm_cli_command *command_at(size_t i) /* the root, then all; NULL after the last */
{
    return i == 0 ? &dgm_cli_root : dgm_cli_commands[i - 1];
}

static void check_text(const char *text)
{
    size_t ticks = 0;
    assert_non_null(text);
    assert_true(text[0]);
    for (const char *p = text; *p; p++) {
        assert_true((unsigned char)*p < 0x80);
        ticks += *p == '`';
    }
    assert_int_equal(ticks % 2, 0);
}

static void check_phrase(const char *text)
{
    check_text(text);
    assert_true(islower((unsigned char)text[0]) || isupper((unsigned char)text[1]) ||
                text[0] == '`');
    assert_int_not_equal(text[strlen(text) - 1], '.'); /* what is made from it adds its own */
}

static void every_command_is_described(void **state)
{
    const dgm_cli_command *c;
    (void)state;
    for (size_t i = 0; (c = command_at(i)); i++) {
        const dgm_cli_note *e = c->exits;
        check_text(c->name);
        check_phrase(c->about);
        check_text(c->text);
        assert_non_null(c->run);
        assert_string_equal(e[0].head, "0");
        for (; e->head; e++)
            check_phrase(e->about);
        assert_string_equal(e[-1].head, "2");
        assert_non_null(c->examples);
        for (e = c->examples; e->head; e++) {
            check_text(e->about);
            assert_non_null(strstr(e->head, "dragoman"));
        }
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(c->name, command_at(j)->name);
    }
}

static void every_option_is_described_and_unique(void **state)
{
    const dgm_cli_command *c;
    (void)state;
    for (size_t i = 0; (c = command_at(i)); i++) {
        size_t n = 0;
        bool help = false;
        for (const dgm_cli_option *o = c->options; o->name; o++, n++) {
            check_phrase(o->about);
            if (o->more)
                check_text(o->more);
            assert_int_equal(!o->value, !o->kind);
            assert_false(o->required && !o->value);
            help = help || strcmp(o->name, "help") == 0;
            for (const dgm_cli_option *other = c->options; other < o; other++) {
                assert_string_not_equal(o->name, other->name);
                assert_true(!o->letter || o->letter != other->letter);
            }
        }
        assert_true(n <= DGM_CLI_MAX_OPTIONS);
        assert_true(help);
    }
}

static void optional_arguments_come_last(void **state)
{
    const dgm_cli_command *c;
    (void)state;
    for (size_t i = 0; (c = command_at(i)); i++) {
        bool optional = false;
        for (const dgm_cli_argument *a = c->arguments; a && a->name; a++) {
            check_phrase(a->about);
            assert_non_null(a->kind);
            assert_false(a->required && optional);
            assert_true(!a->repeats || !a[1].name);
            optional = optional || !a->required;
        }
    }
}

/* ---- what is made from it ---------------------------------------------------------------------------- */

static void help_names_everything(void **state)
{
    const dgm_cli_command *c;
    (void)state;
    for (size_t i = 0; (c = command_at(i)); i++) {
        made m;
        char word[80];
        made_begin(&m);
        dgm_cli_help(c, m.out);
        made_end(&m);
        for (const dgm_cli_option *o = c->options; o->name; o++) {
            snprintf(word, sizeof word, "%c%c%s--%s%s%s", o->letter ? '-' : ' ',
                     o->letter ? o->letter : ' ', o->letter ? ", " : "  ", o->name,
                     o->value ? " " : "", o->value ? o->value : "");
            check_holds(&m, word, c->name);
            if (o->kind && o->kind->word)
                check_holds(&m, o->kind->word(0), c->name);
        }
        for (const dgm_cli_note *e = c->examples; e->head; e++)
            check_holds(&m, e->head, c->name);
        for (const char *line = m.p, *end; *line; line = end + 1) {
            end = strchr(line, '\n');
            assert_non_null(end);
            assert_true(end - line <= 80 || strstr(line, "  ") == line); /* but examples */
            assert_true(end == line || end[-1] != ' ');
        }
        free(m.p);
    }
}

/* A name as roff writes it: only hyphens need an escape. */
static const char *spelled(const char *text, char *to)
{
    size_t n = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '-')
            to[n++] = '\\';
        to[n++] = *p;
    }
    to[n] = '\0';
    return to;
}

static void man_pages_name_everything(void **state)
{
    const dgm_cli_command *c;
    (void)state;
    for (size_t i = 0; (c = command_at(i)); i++) {
        made m;
        char name[160], word[80];
        made_begin(&m);
        dgm_cli_man(c, m.out);
        made_end(&m);
        for (const dgm_cli_option *o = c->options; o->name; o++) {
            snprintf(word, sizeof word, "--%s", o->name);
            check_holds(&m, spelled(word, name), c->name);
            if (o->letter) {
                snprintf(word, sizeof word, "-%c", o->letter);
                check_holds(&m, spelled(word, name), c->name);
            }
            for (size_t j = 0; o->kind && o->kind->word && o->kind->word(j); j++)
                check_holds(&m, spelled(o->kind->word(j), name), c->name);
        }
        for (const dgm_cli_command *const *o = dgm_cli_commands; c == &dgm_cli_root && *o; o++) {
            if (!(*o)->hidden)
                check_holds(&m, spelled((*o)->name, name), "dragoman");
        }
        check_holds(&m, ".SH EXIT STATUS", c->name);
        check_holds(&m, ".SH EXAMPLES", c->name);
        free(m.p);
    }
}

static void completions_name_everything(void **state)
{
    void (*const shells[])(FILE *) = {dgm_cli_bash, dgm_cli_zsh, dgm_cli_fish};
    const dgm_cli_command *c;
    (void)state;
    for (size_t s = 0; s < 3; s++) {
        made m;
        char word[80];
        made_begin(&m);
        shells[s](m.out);
        made_end(&m);
        for (size_t i = 0; (c = command_at(i)); i++) {
            if (c->hidden)
                continue;
            check_holds(&m, c->name, "a completion");
            for (const dgm_cli_option *o = c->options; o->name; o++) {
                snprintf(word, sizeof word, s == 2 ? "-l %s" : "--%s", o->name);
                check_holds(&m, word, "a completion");
                for (size_t j = 0; o->kind && o->kind->word && o->kind->word(j); j++)
                    check_holds(&m, o->kind->word(j), "a completion");
            }
        }
        free(m.p);
    }
}

/* ---- command lines ------------------------------------------------------------------------------------- */

#define MAX_WORDS 12

static bool parse(const char *const *words, dgm_cli_line *line, dgm_cli_misuse *misuse)
{
    static char *argv[MAX_WORDS + 1]; /* the line's arguments stay in here */
    int argc = 1;
    argv[0] = (char *)"dragoman";
    for (; *words; words++)
        argv[argc++] = (char *)*words;
    argv[argc] = NULL;
    return dgm_cli_parse(argc, argv, line, misuse);
}

static void options_may_be_typed_in_four_ways(void **state)
{
    const char *const ways[][MAX_WORDS] = {
        {"convert", "--from", "a2a-0.3", "--to", "a2a-1.0", "--output", "x", "a", "b"},
        {"convert", "--from=a2a-0.3", "--to=a2a-1.0", "--output=x", "a", "b"},
        {"convert", "-f", "a2a-0.3", "-t", "a2a-1.0", "-o", "x", "a", "b"},
        {"convert", "-fa2a-0.3", "-ta2a-1.0", "-ox", "a", "b"},
        {"convert", "a", "-f", "openai-chat", "-fa2a-0.3", "b", "-ox", "--to", "a2a-1.0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        dgm_cli_line line;
        dgm_cli_misuse misuse;
        assert_true(parse(ways[i], &line, &misuse));
        assert_string_equal(line.command->name, "convert");
        assert_string_equal(dgm_cli_get(&line, "from"), "a2a-0.3");
        assert_string_equal(dgm_cli_get(&line, "to"), "a2a-1.0");
        assert_string_equal(dgm_cli_get(&line, "output"), "x");
        assert_null(dgm_cli_get(&line, "seed"));
        assert_int_equal(line.n_args, 2);
        assert_string_equal(line.args[0], "a");
        assert_string_equal(line.args[1], "b");
    }
}

static void two_dashes_end_the_options(void **state)
{
    const char *const words[] = {"convert", "-t", "a2a-1.0", "-", "--", "--to", "--", "-x", NULL};
    dgm_cli_line line;
    dgm_cli_misuse misuse;
    (void)state;
    assert_true(parse(words, &line, &misuse));
    assert_int_equal(line.n_args, 4);
    assert_string_equal(line.args[0], "-");
    assert_string_equal(line.args[1], "--to");
    assert_string_equal(line.args[2], "--");
    assert_string_equal(line.args[3], "-x");
}

static void values_may_be_empty_or_look_like_options(void **state)
{
    const char *const words[] = {"convert", "-t", "a2a-1.0", "--seed=", "-o", "--to", NULL};
    dgm_cli_line line;
    dgm_cli_misuse misuse;
    (void)state;
    assert_true(parse(words, &line, &misuse));
    assert_string_equal(dgm_cli_get(&line, "seed"), "");
    assert_string_equal(dgm_cli_get(&line, "output"), "--to");
}

static void help_needs_nothing_else_to_be_right(void **state)
{
    const char *const words[] = {"convert", "--help", "--nonsense", NULL};
    dgm_cli_line line;
    dgm_cli_misuse misuse;
    (void)state;
    assert_true(parse(words, &line, &misuse));
    assert_non_null(dgm_cli_get(&line, "help"));
    assert_string_equal(line.command->name, "convert");
}

static void misuse_is_reported_with_advice(void **state)
{
    static const struct {
        const char *words[MAX_WORDS];
        const char *what, *hint;
    } rows[] = {
        {{"convrt"}, "unknown command 'convrt'", "did you mean 'convert'?"},
        {{"zzz"}, "unknown command 'zzz'", "`dragoman help` lists the commands"},
        {{"--nonsense"}, "unknown option '--nonsense'", "`dragoman help`"},
        {{"--to", "x"}, "unknown option '--to'", "`dragoman convert --to`"},
        {{"-x"}, "unknown option '-x'", "`dragoman help`"},
        {{"convert"}, "convert needs --to FORMAT", "allowed values: a2a-1.0, "},
        {{"convert", "--form", "x"}, "unknown option '--form'", "did you mean '--from'?"},
        {{"convert", "--form=x"}, "unknown option '--form'", "did you mean '--from'?"},
        {{"convert", "--", "--form"}, "convert needs --to FORMAT", "allowed values"},
        {{"convert", "--frme"}, "unknown option '--frme'", "did you mean '--frame'?"},
        {{"convert", "--qqqqqqq"}, "unknown option '--qqqqqqq'", "`dragoman help convert`"},
        {{"convert", "-q"}, "unknown option '-q'", "`dragoman help convert`"},
        {{"convert", "--to"}, "'--to' needs a value", "allowed values: a2a-1.0, "},
        {{"convert", "-t"}, "'-t' needs a value", "allowed values: a2a-1.0, "},
        {{"convert", "--seed"}, "'--seed' needs a value", "--seed TEXT: seed for"},
        {{"convert", "--to", "a2a"}, "unknown format 'a2a'", "did you mean 'a2a-1.0'?"},
        {{"convert", "--to", "auto"}, "unknown format 'auto'", "allowed values: a2a-1.0, "},
        {{"convert", "--from", "openai"}, "unknown format 'openai'", "did you mean 'openai-chat'?"},
        {{"convert", "--from", ""}, "unknown format ''", "allowed values: auto, "},
        {{"convert", "--frame", "line"}, "unknown framing 'line'", "did you mean 'lines'?"},
        {{"convert", "--object", "taks"}, "unknown kind of object 'taks'", "did you mean 'task'?"},
        {{"convert", "--object", "zzz"}, "unknown kind of object 'zzz'", "`dragoman help convert`"},
        {{"convert", "--help=yes"}, "'--help' takes no value", "`dragoman help convert`"},
        {{"formats", "--json=1"}, "'--json' takes no value", "`dragoman help formats`"},
        {{"formats", "a2a-0.2"}, "unknown format 'a2a-0.2'", "did you mean 'a2a-0.3'?"},
        {{"formats", "a2a-1.0", "a2a-0.3", "x"}, "'x' is one argument too many", "help formats"},
        {{"version", "x"}, "'x' is one argument too many", "`dragoman help version`"},
        {{"help", "formt"}, "unknown command 'formt'", "did you mean 'formats'?"},
        {{"__completion"}, "__completion needs SHELL", "allowed values: bash, zsh, fish"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_cli_line line;
        dgm_cli_misuse misuse = {"", ""};
        assert_false(parse(rows[i].words, &line, &misuse));
        assert_string_equal(misuse.what, rows[i].what);
        if (!strstr(misuse.hint, rows[i].hint)) {
            print_error("%s: hint is \"%s\"\n", misuse.what, misuse.hint);
            fail();
        }
    }
}

static void words_of_any_length_are_refused_safely(void **state)
{
    char longest[5000];
    const char *option[] = {longest, NULL}, *format[] = {"formats", longest + 2, NULL};
    dgm_cli_line line;
    dgm_cli_misuse misuse;
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    longest[0] = longest[1] = '-';
    assert_false(parse(option, &line, &misuse));
    assert_false(parse(format, &line, &misuse));
}

/* ---- text ----------------------------------------------------------------------------------------------- */

static void text_is_broken_at_blanks(void **state)
{
    made m;
    (void)state;
    made_begin(&m);
    dgm_cli_wrap("one `two` three unbreakablyunbreakable x", 2, 12, m.out);
    made_end(&m);
    assert_string_equal(m.p, "one 'two'\n  three\n  unbreakablyunbreakable\n  x\n");
    free(m.p);
    assert_int_equal(dgm_cli_width("Gr\xc3\xbc\xc3\x9f"
                                   "e"),
                     5);
}

static void json_strings_are_escaped(void **state)
{
    made m;
    (void)state;
    made_begin(&m);
    dgm_cli_json_string("a\"b\\c\n\x01 \xc3\xbc", m.out);
    made_end(&m);
    assert_string_equal(m.p, "\"a\\\"b\\\\c\\u000a\\u0001 \xc3\xbc\"");
    free(m.p);
}

DGM_TEST_MAIN(dgm_test(every_command_is_described), dgm_test(every_option_is_described_and_unique),
              dgm_test(optional_arguments_come_last), dgm_test(help_names_everything),
              dgm_test(man_pages_name_everything), dgm_test(completions_name_everything),
              dgm_test(options_may_be_typed_in_four_ways), dgm_test(two_dashes_end_the_options),
              dgm_test(values_may_be_empty_or_look_like_options),
              dgm_test(help_needs_nothing_else_to_be_right),
              dgm_test(misuse_is_reported_with_advice),
              dgm_test(words_of_any_length_are_refused_safely), dgm_test(text_is_broken_at_blanks),
              dgm_test(json_strings_are_escaped))
