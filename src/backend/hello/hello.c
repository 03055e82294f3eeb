/*
 * backend/hello/hello.c - the smallest agent: one Message, at once, about nothing but the message it
 * answers (document 004, future work 6).
 */
#include "backend/backend_int.h"

static const char card[] =
    "{\"name\":\"Hello\",\"description\":\"Greets the caller, by name if the message "
    "contains one. "
    "Answers with a "
    "Message, no task.\",\"skills\":[{\"id\":\"greet\",\"name\":\"Greet\",\"description\":\"Says "
    "hello, by "
    "name when there is one.\",\"tags\":[\"greeting\"],\"examples\":[\"Hello!\",\"My name is "
    "Ada\"]}]}";

/* What people say before their name. */
static const char *const introductions[] = {
    "my name is", "i am", "i'm", "i’m", "this is", "it's", "call me",
};
/* What they say when they do not. */
static const char *const greetings[] = {
    "hello", "hi", "hey", "hallo", "moin", "servus", "bonjour", "hola", "ciao", "howdy", "yo",
};

#define MAX_NAME_BYTES 100 /* a longer text is not taken for a name */

static bool is_mark(char c)
{
    return c == '!' || c == '.' || c == ',' || c == '?' || c == ';' || c == ':';
}

static dgm_str without_marks(dgm_str s)
{
    s = dgm_text_trim(s);
    while (s.n > 0 && is_mark(*s.p))
        s = dgm_text_trim((dgm_str){s.p + 1, s.n - 1});
    while (s.n > 0 && is_mark(s.p[s.n - 1]))
        s = dgm_text_trim((dgm_str){s.p, s.n - 1});
    return s;
}

static dgm_str after_greeting(dgm_str text)
{
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
        size_t n = strlen(greetings[i]);
        if (text.n >= n && dgm_str_eq_nocase((dgm_str){text.p, n}, dgm_str_from(greetings[i])) &&
            (text.n == n || is_mark(text.p[n]) || text.p[n] == ' '))
            return without_marks((dgm_str){text.p + n, text.n - n});
    }
    return text;
}

/* Absent when the text has none. */
static dgm_str name_in(dgm_str text)
{
    dgm_str rest;
    text = after_greeting(without_marks(text));
    for (size_t i = 0; i < sizeof introductions / sizeof *introductions; i++) {
        if (dgm_text_command(text, introductions[i], &rest) && rest.n > 0 &&
            rest.n <= MAX_NAME_BYTES)
            return without_marks(rest);
    }
    return (dgm_str){0};
}

static void hello_start(void *agent, dgm_run *run)
{
    dgm_err err = {0};
    dgm_str name = name_in(dgm_run_text(run, run->arena));
    dgm_str text = name.n > 0 ? dgm_arena_printf(run->arena, "Hello, %.*s!", DGM_P(name))
                              : DGM_STR("Hello! How can I assist you today? 😊");
    (void)agent;
    run->ops->end(run, dgm_run_reply(run, text, &err) ? err.msg : NULL);
}

/* Only a run that is still open can be canceled; runs of this agent end at once. */
static void hello_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    (void)run;
}

static const dgm_inner inner = {.start = hello_start, .cancel = hello_cancel};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_hello = {
    .type = "hello",
    .about = "replies hello: one Message, no task",
    .card = card,
    DGM_SHAPED(open_shaped),
};
