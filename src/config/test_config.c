/* test_config.c - what a config comes to, as the rest of the server sees it. */
#include "backend/backend.h"
#include "base/limits.h"
#include "config.h"
#include "support/check.h"

#include <unistd.h>

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static const char *some_env(const char *name)
{
    static const struct {
        const char *name, *value;
    } vars[] = {{"PORT", "9000"}, {"TOKEN", "12345"},   {"FLAG", "true"},   {"EMPTY", ""},
                {"BAD", "\xff"},  {"WEIRD", "a: [b\n"}, {"WORD", "lenient"}};
    for (size_t i = 0; i < sizeof vars / sizeof *vars; i++)
        if (strcmp(vars[i].name, name) == 0)
            return vars[i].value;
    return NULL;
}

static dgm_config *load(const char *text)
{
    return dgm_config_load(&(dgm_config_source){
        .file = "dragoman.yaml", .text = dgm_str_from(text), .env = some_env, .no_files = true});
}

static void print_findings(const dgm_config *c)
{
    for (size_t i = 0; i < c->n_findings; i++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_config_finding_put(&b, &c->findings[i]);
        print_error("%.*s\n", (int)b.n, b.p);
        dgm_buf_done(&b);
    }
}

static dgm_config *load_well(const char *text)
{
    dgm_config *c = load(text);
    if (c->n_findings) {
        print_findings(c);
        fail();
    }
    return c;
}

/* Exactly these findings, each compared by its text up to the end of `want`; NULL ends. */
static void check_findings(dgm_config *c, const char *const *want)
{
    size_t i = 0;
    for (; want[i] && i < c->n_findings; i++) {
        dgm_buf b;
        dgm_buf_init(&b, SIZE_MAX);
        dgm_config_finding_put(&b, &c->findings[i]);
        if (b.n < strlen(want[i]) || memcmp(b.p, want[i], strlen(want[i])) != 0) {
            print_error("got  %.*s\nwant %s\n", (int)b.n, b.p, want[i]);
            fail();
        }
        dgm_buf_done(&b);
    }
    if (want[i] || i < c->n_findings) {
        print_findings(c);
        fail_msg("%zu findings, wanted %s", c->n_findings, want[i] ? "more" : "fewer");
    }
}
#define finds(config, ...)                                                                         \
    do {                                                                                           \
        dgm_auto(dgm_config_free) dgm_config *found_ = (config);                                   \
        check_findings(found_, (const char *const[]){__VA_ARGS__, NULL});                          \
    } while (0)

/* ---- values ------------------------------------------------------------------------------------------- */

static void no_settings_is_a_demo_on_loopback(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c = dgm_config_load(&(dgm_config_source){.env = no_env});
    (void)state;
    assert_int_equal(c->n_findings, 0);
    check_str(c->listen, "127.0.0.1:8484");
    assert_true(c->is_loopback);
    check_str(c->store, "sqlite:dragoman.db");
    assert_int_equal(c->retention_hours, 24);
    assert_int_equal(c->limits.http_body_bytes, DGM_MAX_HTTP_BODY_BYTES);
    assert_int_equal(c->limits.connections, DGM_MAX_CONNECTIONS);
    assert_int_equal(c->limits.log_bytes, (int64_t)256 << 20);
    assert_int_equal(c->limits.queued_messages, 16);
    assert_int_equal(c->agents.n, 1);
    check_str(c->agents.at[0].id, "demo");
    assert_true(c->agents.at[0].is_default);
    assert_true(c->agents.at[0].manner.dedupe);
    assert_int_equal(c->a2a.versions, DGM_A2A_VERSION_10 | DGM_A2A_VERSION_03);
    assert_int_equal(c->a2a.error_table, DGM_ERROR_TABLE_101);
    assert_true(c->a2a.canonical_type);
    assert_int_equal(c->on_disconnect[DGM_FRONTEND_A2A], DGM_DISCONNECT_CONTINUE);
    assert_int_equal(c->disconnect_grace_s[DGM_FRONTEND_A2A], 15);
    assert_int_equal(c->tokens.n, 0);
    assert_null(c->tls_cert.p);
}

static void short_forms_mean_what_they_look_like(void **state)
{
    static const struct {
        const char *text, *listen, *store;
    } rows[] = {
        {"listen: 9000", "127.0.0.1:9000", "sqlite:dragoman.db"},
        {"listen: '9000'\nstore: tasks.db", "127.0.0.1:9000", "sqlite:tasks.db"},
        {"listen: localhost:1\nstore: /a/b.sqlite", "127.0.0.1:1", "sqlite:/a/b.sqlite"},
        {"store: memory", "127.0.0.1:8484", "memory:"},
        {"store: 'sqlite:x'", "127.0.0.1:8484", "sqlite:x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_config_free) dgm_config *c = load_well(rows[i].text);
        check_str(c->listen, rows[i].listen);
        check_str(c->store, rows[i].store);
    }
    dgm_auto(dgm_config_free) dgm_config *c =
        load_well("log: debug\nagents:\n  b: {type: hello}\n  a: {type: demo, default: on}\n");
    assert_int_equal(c->log_level, DGM_LOG_DEBUG);
    assert_int_equal(c->agents.n, 2);
    check_str(c->agents.at[0].id, "b");
    check_str(c->agents.at[1].id, "a");
    check_str(c->agents.at[1].type, "demo");
    assert_true(c->agents.at[1].is_default && !c->agents.at[0].is_default);
}

static void a_value_with_two_meanings_names_the_line_to_write(void **state)
{
    (void)state;
    finds(load("listen: ':9000'"), "dragoman.yaml:1:9: invalid listen \":9000\", at /listen: write "
                                   "127.0.0.1:9000 for this machine only, or "
                                   "0.0.0.0:9000 for all networks (needs tokens)");
    finds(load("store: tasks"),
          "dragoman.yaml:1:8: invalid store \"tasks\", at /store: did you mean sqlite:tasks?");
    finds(load("listen: 99999"),
          "dragoman.yaml:1:9: invalid listen \"99999\", at /listen: write an address");
    finds(load("log: loud"),
          "dragoman.yaml:1:6: unknown level \"loud\", at /log/level: allowed values: error");
    finds(load("agents: {a: demo}"),
          "dragoman.yaml:1:13: expected an object, got text, at /agents/a: write ID: {type: TYPE}");
    finds(load("agents: {a: {id: b, type: demo}}"),
          "dragoman.yaml:1:18: the id is set twice, at /agents/a/id: remove it: the key \"a\" is "
          "the id");
    finds(load("agents: {a: {type: dmeo}, 'x/y': {type: demo}}"),
          "dragoman.yaml:1:20: unknown agent type \"dmeo\", at /agents/a/type: did you mean "
          "\"demo\"?",
          "dragoman.yaml:1:27: invalid id \"x/y\", at /agents/x~1y");
    finds(load("agents: {}"), "dragoman.yaml:1:9: the list is empty, at /agents");
}

static const char *state_folders(const char *name)
{
    return strcmp(name, "STATE_DIRECTORY") == 0  ? "/var/lib/a:/var/lib/b"
           : strcmp(name, "XDG_STATE_HOME") == 0 ? "/home/x/state"
           : strcmp(name, "HOME") == 0           ? "/home/x"
                                                 : NULL;
}

static const char *xdg_folders(const char *name)
{
    return strcmp(name, "STATE_DIRECTORY") == 0 ? NULL : state_folders(name);
}

static const char *home_folder(const char *name)
{
    return strcmp(name, "HOME") == 0             ? "/home/x"
           : strcmp(name, "XDG_STATE_HOME") == 0 ? "no"
                                                 : NULL;
}

static void the_default_database_is_beside_the_file_or_in_the_state_folder(void **state)
{
    static const struct {
        const char *file, *text;
        const char *(*env)(const char *name);
        const char *store;
        bool is_state;
    } rows[] = {
        {"/etc/d/dragoman.yaml", "log: info", state_folders, "sqlite:/etc/d/dragoman.db", false},
        {"/etc/d/dragoman.yaml", "store: 'sqlite:dragoman.db'", state_folders,
         "sqlite:/etc/d/dragoman.db", false},
        {"/etc/d/dragoman.yaml", "store:", state_folders, "sqlite:/etc/d/dragoman.db", false},
        {"dragoman.yaml", "log: info", state_folders, "sqlite:dragoman.db", false},
        {"/dragoman.yaml", "log: info", state_folders, "sqlite:/dragoman.db", false},
        {NULL, NULL, state_folders, "sqlite:/var/lib/a/dragoman.db", true},
        {NULL, NULL, xdg_folders, "sqlite:/home/x/state/dragoman/dragoman.db", true},
        {NULL, NULL, home_folder, "sqlite:/home/x/.local/state/dragoman/dragoman.db", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_config_free) dgm_config *c = dgm_config_load(&(dgm_config_source){
            .file = rows[i].file, .text = dgm_str_from(rows[i].text), .env = rows[i].env});
        assert_int_equal(c->n_errors, 0);
        check_str(c->store, rows[i].store);
        assert_int_equal(c->store_is_state, rows[i].is_state);
    }
}

static void an_empty_file_sets_nothing(void **state)
{
    static const char *const texts[] = {"", "# nothing\n", "---\n", "{}", "null", "\xEF\xBB\xBF"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        dgm_config_free(load_well(texts[i]));
}

static void an_agent_inherits_and_overrides(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        load_well("agents:\n"
                  "- {id: a, type: demo, reply: task}\n"
                  "- id: b\n"
                  "  type: exec\n"
                  "  default: true\n"
                  "  a2a: {error_table: 1.0.1}\n"
                  "  card: {version: 1.10, name: B}\n"
                  "  settings: {command: [1, two]}\n"
                  "agent_defaults: {reply: message, dedupe: off, history: 0}\n"
                  "a2a: {error_table: 1.0.0, versions: [1.0]}\n");
    const dgm_config_agent *a = &c->agents.at[0], *b = &c->agents.at[1];
    (void)state;
    assert_int_equal(a->manner.reply, DGM_CONFIG_REPLY_TASK);
    assert_false(a->manner.dedupe);
    assert_int_equal(b->manner.reply, DGM_CONFIG_REPLY_MESSAGE);
    assert_int_equal(a->a2a.error_table, DGM_ERROR_TABLE_100);
    assert_int_equal(b->a2a.error_table, DGM_ERROR_TABLE_101);
    assert_int_equal(b->a2a.versions, DGM_A2A_VERSION_10);
    assert_false(a->is_default);
    assert_true(b->is_default);
    check_str(dgm_json_text_in(c->arena, b->card), "{\"name\":\"B\",\"version\":\"1.10\"}");
    check_str(dgm_json_text_in(c->arena, b->settings), "{\"command\":[1,\"two\"]}");
    assert_null(a->card);
}

static void tokens_come_from_the_file_or_the_environment(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c = load_well(
        "tokens:\n"
        "- {token: '${TOKEN}', principal: ann}\n"
        "- {token_env: PORT, principal: bob, tenant: acme, kind: api-key, header: X-Key}\n");
    (void)state;
    check_str(c->tokens.at[0].secret, "12345");
    assert_int_equal(c->tokens.at[0].kind, DGM_TOKEN_BEARER);
    check_str(c->tokens.at[0].tenant, "");
    check_str(c->tokens.at[1].secret, "9000");
    check_str(c->tokens.at[1].header, "X-Key");
    assert_int_equal(c->tenants.n, 1);
    check_str(c->tenants.at[0], "acme");
}

static void the_last_layer_wins(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        dgm_config_load(&(dgm_config_source){.file = "x/dragoman.yaml",
                                             .text = DGM_STR("profile: tck\n"
                                                             "listen: 127.0.0.1:1\n"
                                                             "store: sqlite:here.db\n"
                                                             "a2a: {canonical_type: on}\n"),
                                             .listen = "[::1]:2",
                                             .agent = "hello",
                                             .env = no_env});
    (void)state;
    assert_int_equal(c->n_findings, 0);
    check_str(c->listen, "[::1]:2");
    assert_true(c->is_loopback);
    check_str(c->store, "sqlite:x/here.db"); /* counts from the file's folder */
    assert_int_equal(c->agents.n, 1);
    check_str(c->agents.at[0].id, "hello");
    assert_false(c->agents.at[0].manner.dedupe);     /* by the profile */
    assert_true(c->agents.at[0].a2a.canonical_type); /* by the file, over the profile */
    assert_int_equal(c->a2a.error_table, DGM_ERROR_TABLE_100);
}

static void every_profile_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; dgm_config_profile(i); i++) {
        dgm_auto(dgm_config_free) dgm_config *c =
            dgm_config_load(&(dgm_config_source){.profile = dgm_config_profile(i), .env = no_env});
        print_findings(c);
        assert_int_equal(c->n_findings, 0);
    }
}

static void both_kits_find_their_card_in_the_tck_profile(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        dgm_config_load(&(dgm_config_source){.profile = "tck", .env = no_env});
    (void)state;
    assert_int_equal(c->agents.n, 2);
    assert_true(c->agents.at[0].is_default);
    assert_int_equal(c->agents.at[0].a2a.card_headerless, DGM_CARD_PURE_10);
    assert_int_equal(c->agents.at[1].a2a.card_headerless, DGM_CARD_HYBRID);
    assert_int_equal(c->agents.at[1].a2a.error_table, DGM_ERROR_TABLE_100);
    assert_false(c->agents.at[1].manner.dedupe);
}

static void a_history_is_a_number_or_an_object(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        load_well("agents:\n"
                  "- {id: a, type: demo}\n"
                  "- {id: b, type: demo, history: 7}\n"
                  "- {id: c, type: demo, history: {bytes: 100, tools: off}}\n"
                  "- {id: d, type: demo, history: 0}\n");
    static const dgm_config_history want[] = {
        {50, 262144, true}, {7, 262144, true}, {50, 100, false}, {0, 262144, true}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const dgm_config_manner *m = &c->agents.at[i].manner;
        assert_int_equal(m->history.messages, want[i].messages);
        assert_int_equal(m->history.bytes, want[i].bytes);
        assert_int_equal(m->history.tools, want[i].tools);
        assert_int_equal(m->reply, DGM_CONFIG_REPLY_DEFAULT);
    }
}

static void a_history_may_be_in_the_settings(void **state)
{
    static const struct {
        const char *agent;
        dgm_config_history want;
        const char *what; /* a finding */
    } rows[] = {
        {"{type: exec, settings: {command: x, history: 7}}", {7, 262144, true}, NULL},
        {"{type: exec, settings: {history: {bytes: 100, tools: off}, command: x}}",
         {20, 100, false},
         NULL},
        {"{type: http, settings: {url: 'http://h/', format: ag-ui, history: 0}}",
         {0, 262144, true},
         NULL},
        {"{type: exec, history: 7, settings: {command: x, history: {messages: 7}}}",
         {7, 262144, true},
         NULL},
        {"{type: exec, history: 7, settings: {command: x, history: }}", {7, 262144, true}, NULL},
        {"{type: exec, history: 7, settings: {command: x, history: 8}}",
         {7, 262144, true},
         "history is set twice"},
        {"{type: exec, settings: {command: x, history: many}}", {20, 262144, true}, "messages"},
        {"{type: exec, settings: {command: x, history: -1}}", {20, 262144, true}, "messages"},
        {"{type: hello, settings: {history: 7}}", {20, 262144, true}, "unknown"},
        {"{type: a2a, settings: {url: 'http://h/', history: 7}}", {20, 262144, true}, "unknown"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[300];
        snprintf(text, sizeof text, "agent_defaults: {history: 20}\nagents:\n- %s\n",
                 rows[i].agent);
        dgm_auto(dgm_config_free) dgm_config *c = load(text);
        const dgm_config_history *h = &c->agents.at[0].manner.history;
        if (c->n_findings != (rows[i].what != NULL))
            fail_msg("%s: %zu findings: %s", rows[i].agent, c->n_findings,
                     c->n_findings ? c->findings[0].what.p : "");
        if (rows[i].what && !strstr(c->findings[0].what.p, rows[i].what) &&
            !strstr(c->findings[0].pointer.p, rows[i].what))
            fail_msg("%s: %s", rows[i].agent, c->findings[0].what.p);
        assert_int_equal(h->messages, rows[i].want.messages);
        assert_int_equal(h->bytes, rows[i].want.bytes);
        assert_int_equal(h->tools, rows[i].want.tools);
        assert_null(
            dgm_json_get(rows[i].what ? NULL : c->agents.at[0].settings, DGM_STR("history")));
    }
}

static void messages_and_a_history_are_a_warning(void **state)
{
    static const struct {
        const char *text;
        bool warns;
    } rows[] = {
        {"agents: [{type: exec, reply: message, settings: {command: x}}]", true},
        {"agent_defaults: {reply: message}\nagents: [{type: exec, settings: {command: x}}]", true},
        {"agents: [{type: exec, reply: message, history: 0, settings: {command: x}}]", false},
        {"agents: [{type: exec, reply: auto, settings: {command: x}}]", false},
        {"agents: [{type: demo, reply: message}]", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_config_free) dgm_config *c = load(rows[i].text);
        assert_int_equal(c->n_findings, rows[i].warns);
        if (rows[i].warns) {
            assert_true(c->findings[0].is_warning);
            assert_non_null(strstr(c->findings[0].what.p, "Messages, which are not stored"));
        }
    }
}

static void the_types_are_those_there_are(void **state)
{
    size_t n = 0;
    (void)state;
    for (size_t i = 0; dgm_config_agent_type(i); i++)
        assert_non_null(dgm_backend_by_type(dgm_str_from(dgm_config_agent_type(i))));
    while (dgm_config_agent_type(n))
        n++;
    for (size_t i = 0; dgm_backends[i]; i++)
        assert_true(i < n);
    assert_int_equal(DGM_CONFIG_REPLY_MESSAGE, DGM_REPLY_MESSAGE);
    assert_int_equal(DGM_CONFIG_REPLY_TASK, DGM_REPLY_TASK);
}

/* ---- variables ---------------------------------------------------------------------------------------- */

static void variables_take_the_type_that_is_wanted(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        load_well("listen: 127.0.0.1:${PORT}\n"
                  "retention_hours: ${HOURS:-48}\n"
                  "a2a: {streaming: \"${FLAG}\", version_mode: '${WORD}'}\n"
                  "agents:\n- type: exec\n  settings:\n    timeout: ${PORT}\n    command: "
                  "[\"${PORT}\", \"$${x}\"]\n"
                  "    env: {E: '${EMPTY}'}\n  card: {name: '${WEIRD}', version: '${PORT}'}\n");
    (void)state;
    check_str(c->listen, "127.0.0.1:9000");
    assert_int_equal(c->retention_hours, 48);
    assert_true(c->a2a.streaming);
    assert_int_equal(c->a2a.version_mode, DGM_VERSION_LENIENT);
    check_str(dgm_json_text_in(c->arena, c->agents.at[0].settings),
              "{\"timeout\":9000,\"command\":[\"9000\",\"${x}\"],\"env\":{\"E\":\"\"}}");
    check_str(dgm_json_text_in(c->arena, c->agents.at[0].card),
              "{\"name\":\"a: [b\\n\",\"version\":\"9000\"}");
}

static void a_missing_variable_is_named(void **state)
{
    (void)state;
    finds(load("store: sqlite:${NOWHERE}/x\nretention_hours: ${EMPTY:-12}\nlisten: ${BAD}\n"
               "public_url: ${oops\nhosts: [\"${A}\", \"${B} ${C}\", ok]\n"),
          "dragoman.yaml:1:8: the environment has no variable NOWHERE, at /store: set it",
          "dragoman.yaml:3:9: the variable BAD is not UTF-8, at /listen",
          "dragoman.yaml:4:13: this ${ does not name a variable, at /public_url",
          "dragoman.yaml:5:9: the environment has no variable A, at /hosts/0",
          "dragoman.yaml:5:17: the environment has no variable B, at /hosts/1",
          "dragoman.yaml:5:17: the environment has no variable C, at /hosts/1");
    finds(
        load("a2a: {streaming: ${X}}\n"),
        "dragoman.yaml:1:19: did not find expected ',' or '}', while parsing a flow mapping: within"
        " {...} and [...] put \"${NAME}\" in quotes");
}

static void json_has_variables_too(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c = dgm_config_load(&(dgm_config_source){
        .file = "a.json",
        .text = DGM_STR("{\"listen\": \"127.0.0.1:${PORT}\", \"retention_hours\": \"${PORT}\",\n"
                        " \"public_url\": \"http://\\ud83d\", \"loops\": \"${NO}\"}"),
        .env = some_env});
    (void)state;
    assert_true(c->n_errors > 0); /* a lone surrogate: JSON is read strictly */
    dgm_auto(dgm_config_free) dgm_config *d = dgm_config_load(&(dgm_config_source){
        .file = "a.json",
        .text = DGM_STR("{\"listen\": \"127.0.0.1:${PORT}\",\n \"retention_hours\": \"${PORT}\"}"),
        .env = some_env});
    assert_int_equal(d->n_findings, 0);
    check_str(d->listen, "127.0.0.1:9000");
    assert_int_equal(d->retention_hours, 9000);
    finds(
        dgm_config_load(&(dgm_config_source){
            .file = "a.json",
            .text = DGM_STR("{\"log\": {\"level\": \"\xc3\xa9\", \"levle\": 1},\n  \"loops\": -1}"),
            .env = no_env}),
        "a.json:1:19: unknown level \"\xc3\xa9\", at /log/level",
        "a.json:1:24: unknown setting \"levle\", at /log/levle: did you mean \"level\"?",
        "a.json:2:12: out of range, at /loops");
}

/* ---- limits ------------------------------------------------------------------------------------------- */

static void a_bomb_of_aliases_does_not_go_off(void **state)
{
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "a: &a0 [1,1,1,1,1,1,1,1,1,1]\n");
    for (int i = 1; i < 10; i++) {
        dgm_buf_printf(&b, "%c: &a%d [", 'a' + i, i);
        for (int j = 0; j < 10; j++)
            dgm_buf_printf(&b, "%s*a%d", j ? "," : "", i - 1);
        dgm_buf_add_lit(&b, "]\n");
    }
    dgm_buf_add_char(&b, 0);
    finds(load(b.p), "dragoman.yaml:1:17: with its aliases this has more values than config_values "
                     "(20000), at /e/");
    dgm_buf_done(&b);
}

static void one_past_every_limit(void **state)
{
    dgm_buf b;
    dgm_config *c;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    while (b.n <= DGM_MAX_CONFIG_BYTES)
        dgm_buf_add_lit(&b, "# 0123456789\n");
    finds(dgm_config_load(&(dgm_config_source){.file = "x", .text = dgm_buf_str(&b)}),
          "x: the file is longer than config_bytes (1048576)");
    dgm_buf_clear(&b);

    dgm_buf_add_lit(&b, "hosts: [");
    for (int i = 0; i < DGM_MAX_CONFIG_VALUES; i++)
        dgm_buf_add_lit(&b, "a,");
    dgm_buf_add_lit(&b, "]");
    c = dgm_config_load(&(dgm_config_source){.file = "x", .text = dgm_buf_str(&b)});
    finds(c, "x:1:40003: more values than config_values (20000)");
    dgm_buf_clear(&b);

    for (int i = 0; i <= DGM_MAX_CONFIG_DEPTH; i++)
        dgm_buf_add_lit(&b, "[");
    finds(dgm_config_load(&(dgm_config_source){.file = "x", .text = dgm_buf_str(&b)}),
          "x:1:33: nests deeper than config_depth (32)");
    for (int i = 0; i <= DGM_MAX_CONFIG_DEPTH; i++)
        dgm_buf_add_lit(&b, "]");
    finds(dgm_config_load(&(dgm_config_source){.file = "x.json", .text = dgm_buf_str(&b)}),
          "x.json:1:1: nests deeper than config_depth (32)");
    dgm_buf_clear(&b);

    for (int i = 0; i <= DGM_MAX_CONFIG_FINDINGS; i++)
        dgm_buf_printf(&b, "nonsense%d: 1\n", i);
    c = dgm_config_load(&(dgm_config_source){.file = "x", .text = dgm_buf_str(&b)});
    assert_int_equal(c->n_findings, DGM_MAX_CONFIG_FINDINGS + 1);
    check_str(c->findings[DGM_MAX_CONFIG_FINDINGS].what,
              "there are more errors than are listed here");
    dgm_config_free(c);
    dgm_buf_done(&b);
}

static char long_value[DGM_MAX_CONFIG_ENV_BYTES + 2];

static const char *long_env(const char *name)
{
    (void)name;
    memset(long_value, 'x', sizeof long_value - 1);
    return long_value;
}

static void a_variable_has_a_limit(void **state)
{
    (void)state;
    finds(dgm_config_load(
              &(dgm_config_source){.file = "x", .text = DGM_STR("profile: ${A}"), .env = long_env}),
          "x:1:10: the variable A is longer than config_env_bytes (65536), at /profile");
}

/* ---- what settings know of each other --------------------------------------------------------------- */

static void the_open_network_wants_tokens(void **state)
{
    static const char *const open[] = {"0.0.0.0:80", "[::]:80", "192.168.1.2:8484", "[::2]:1"};
    static const char *const own[] = {"127.0.0.2:80", "[::1]:80", "localhost:0", "unix:/x.sock",
                                      "[0:0:0:0:0:0:0:1]:5"};
    (void)state;
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        dgm_config *c = dgm_config_load(&(dgm_config_source){.listen = open[i], .env = no_env});
        check_str(c->findings[0].file, "--listen");
        finds(c, "--listen: other machines can reach ");
        c = dgm_config_load(
            &(dgm_config_source){.listen = open[i], .insecure = true, .env = no_env});
        assert_int_equal(c->n_findings, 0);
        dgm_config_free(c);
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        dgm_config *c = dgm_config_load(&(dgm_config_source){.listen = own[i], .env = no_env});
        print_findings(c);
        assert_int_equal(c->n_findings, 0);
        dgm_config_free(c);
    }
    finds(
        load("listen: 0.0.0.0:80\ntokens: [{token: abcdef, principal: p}]\n"),
        "dragoman.yaml:1:9: warning: tokens are sent to 0.0.0.0:80 without encryption, at /listen");
}

static void a_password_of_the_database_is_refused_and_not_repeated(void **state)
{
    static const char *const bad[] = {
        "postgres:host=h password=s3cret", "postgres:host=h PassWord = s3cret",
        "postgres:sslpassword=s3cret",     "postgres:postgresql://u:s3cret@h/d",
        "postgres:postgres://u:s3cret@h",  "postgres:postgresql://u@h/d?password=s3cret",
        "postgresql://u:s3cret@h/d",       "mysql:password=s3cret"};
    static const char *const good[] = {"postgres:",
                                       "postgres:host=h user=password",
                                       "postgres:passfile=/run/password",
                                       "postgres:postgresql://u@h:5432/d",
                                       "postgres:postgresql://h:5432/d?user=a@b",
                                       "postgres:postgresql://[::1]:5432,h:1/d"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_auto(dgm_config_free) dgm_config *c =
            dgm_config_load(&(dgm_config_source){.store = bad[i], .env = no_env});
        assert_int_equal(c->n_errors, 1);
        check_str(c->findings[0].pointer, "/store");
        assert_null(strstr(c->findings[0].what.p, "s3cret"));
        assert_null(strstr(c->findings[0].todo.p, "s3cret"));
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        dgm_auto(dgm_config_free) dgm_config *c =
            dgm_config_load(&(dgm_config_source){.store = good[i], .env = no_env});
        assert_int_equal(c->n_errors, 0);
        check_str(c->store, good[i]);
        check_str(c->secret_env.at[0], "PGPASSWORD");
    }
}

static void bad_options_name_the_option(void **state)
{
    (void)state;
    finds(dgm_config_load(&(dgm_config_source){.listen = "84.84",
                                               .store = "mysql:x",
                                               .agent = "demmo",
                                               .profile = "tkc",
                                               .env = no_env}),
          "--agent: unknown agent type \"demmo\", at /agents/0/type: did you mean \"demo\"? Types: "
          "llm ",
          "--listen: invalid listen \"84.84\", at /listen: write an address and a port",
          "--profile: unknown profile, at /profile: did you mean \"tck\"?",
          "--store: invalid store \"mysql:x\", at /store: write memory:, sqlite:PATH or "
          "postgres:CONNINFO");
    finds(dgm_config_load(&(dgm_config_source){.listen = "\xff", .env = no_env}),
          "--listen: this is not text");
    finds(dgm_config_load(&(dgm_config_source){.file = "/nonexistent/x.yaml", .env = no_env}),
          "/nonexistent/x.yaml: cannot read it: No such file or directory");
    finds(dgm_config_load(&(dgm_config_source){.file = "/dev/null", .env = no_env}),
          "/dev/null: cannot read it: it is not a regular file");
}

static dgm_code refuse(const dgm_config *config, const dgm_config_agent *agent, void *user,
                       dgm_err *err)
{
    (void)config;
    (void)user;
    if (!dgm_json_get(agent->settings, DGM_STR("command")))
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "command"), "not like this");
}

static void a_type_is_asked_about_its_settings(void **state)
{
    (void)state;
    finds(dgm_config_load(&(dgm_config_source){
              .file = "x",
              .text = DGM_STR("agents:\n- type: demo\n- type: exec\n  settings:\n    command: x\n"),
              .check_agent = refuse,
              .env = no_env}),
          "x:5:14: not like this, at /agents/1/settings/command");
}

static void secrets_are_not_printed(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c =
        load("tokens:\n- {token: hunter2, principal: a}\n- {token: hunter2, principal: b}\n"
             "- {token: 'hunter2 x', principal: b}\n- {token: 7771, principal: b}\n"
             "- {tokken: hunter3, principal: b}\n");
    dgm_buf b;
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    assert_int_equal(c->n_errors, 7);
    for (size_t i = 0; i < c->n_findings; i++)
        dgm_config_finding_put(&b, &c->findings[i]);
    dgm_config_put(&b, c);
    dgm_buf_add_char(&b, 0);
    assert_null(strstr(b.p, "hunter"));
    assert_null(strstr(b.p, "7771"));
    assert_non_null(strstr(b.p, "***"));
    dgm_buf_done(&b);
}

/* ---- reloading ------------------------------------------------------------------------------------------ */

static void check_diff(const char *from, const char *to, const char *want)
{
    dgm_auto(dgm_config_free) dgm_config *a = load_well(from);
    dgm_auto(dgm_config_free) dgm_config *b = load_well(to);
    static const char *const actions[] = {[DGM_CONFIG_CHANGED] = "",
                                          [DGM_CONFIG_ADDED] = " added",
                                          [DGM_CONFIG_REMOVED] = " removed"};
    dgm_config_change *changes;
    size_t n = dgm_config_diff(a->arena, a, b, &changes);
    dgm_buf got;
    dgm_buf_init(&got, SIZE_MAX);
    for (size_t i = 0; i < n; i++)
        dgm_buf_printf(&got, "%s%.*s %s%s", i ? "; " : "", DGM_P(changes[i].pointer),
                       changes[i].live ? "live" : "restart", actions[changes[i].action]);
    check_str(got, want);
    dgm_buf_done(&got);
}

static void a_reload_knows_what_it_can_do(void **state)
{
    (void)state;
    check_diff("", "listen: 127.0.0.1:8484", "");
    check_diff("", "listen: 127.0.0.1:1\nlog: {level: debug}", "/listen restart; /log/level live");
    check_diff("tokens: [{token: abc, principal: p}]", "tokens: [{token: abd, principal: p}]",
               "/tokens live");
    check_diff("tokens: [{token_env: TOKEN, principal: p}]",
               "tokens: [{token_env: PORT, principal: p}]", "/tokens live");
    check_diff("agents: [{type: demo}]", "agents: [{type: demo}, {type: hello}]",
               "/agents/hello live added");
    check_diff("agents: [{type: demo}, {type: hello}]", "agents: [{type: hello}, {type: tck}]",
               "/agents/demo live removed; /agents/0/default live; /agents/tck live added");
    check_diff("agents: [{type: demo, default: on}, {type: hello}]",
               "agents: [{type: hello}, {type: demo, default: on}]", "/agents live");
    check_diff("agents: [{type: demo}]",
               "agents: [{type: demo, card: {name: X}, settings: {pace: 2}}]",
               "/agents/0/card live; /agents/0/settings live");
    check_diff("a2a: {streaming: on}", "a2a: {streaming: off}",
               "/a2a/streaming live; /agents/0/a2a/streaming live");
    check_diff("limits: {connections: 5}", "limits: {connections: 6}", "/limits/connections live");
    check_diff("agents: [{type: demo}]", "agents: [{type: demo, dedupe: off}]",
               "/agents/0/dedupe live");
}

/* ---- what is printed ---------------------------------------------------------------------------------- */

static void what_check_prints_reads_back_the_same(void **state)
{
    dgm_auto(dgm_config_free) dgm_config *c = load_well(
        "profile: tck\nhosts: [a.b]\nagents: [{type: demo, card: {skills: [{id: a, name: b,"
        " description: c, tags: []}]}}]\na2a: {extensions: [{uri: 'x:y', params: {a: 1.50}}]}\n");
    dgm_buf one, two;
    (void)state;
    dgm_buf_init(&one, SIZE_MAX);
    dgm_buf_init(&two, SIZE_MAX);
    dgm_config_put(&one, c);
    dgm_buf_add_char(&one, 0);
    dgm_auto(dgm_config_free) dgm_config *again = load_well(one.p);
    dgm_config_put(&two, again);
    dgm_buf_add_char(&two, 0);
    check_same(two, one);
    dgm_buf_done(&one);
    dgm_buf_done(&two);
}

DGM_TEST_MAIN(
    dgm_test(no_settings_is_a_demo_on_loopback), dgm_test(short_forms_mean_what_they_look_like),
    dgm_test(a_value_with_two_meanings_names_the_line_to_write),
    dgm_test(the_default_database_is_beside_the_file_or_in_the_state_folder),
    dgm_test(an_empty_file_sets_nothing), dgm_test(an_agent_inherits_and_overrides),
    dgm_test(tokens_come_from_the_file_or_the_environment), dgm_test(the_last_layer_wins),
    dgm_test(every_profile_is_right), dgm_test(both_kits_find_their_card_in_the_tck_profile),
    dgm_test(a_history_is_a_number_or_an_object), dgm_test(a_history_may_be_in_the_settings),
    dgm_test(messages_and_a_history_are_a_warning), dgm_test(the_types_are_those_there_are),
    dgm_test(variables_take_the_type_that_is_wanted), dgm_test(a_missing_variable_is_named),
    dgm_test(json_has_variables_too), dgm_test(a_bomb_of_aliases_does_not_go_off),
    dgm_test(one_past_every_limit), dgm_test(a_variable_has_a_limit),
    dgm_test(the_open_network_wants_tokens), dgm_test(bad_options_name_the_option),
    dgm_test(a_password_of_the_database_is_refused_and_not_repeated),
    dgm_test(a_type_is_asked_about_its_settings), dgm_test(secrets_are_not_printed),
    dgm_test(a_reload_knows_what_it_can_do), dgm_test(what_check_prints_reads_back_the_same))
