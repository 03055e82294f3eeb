/* test_gate.c - who may come in, from where, and as whom. */
#include "app/serve/gate.h"
#include "support/check.h"

struct given {
    const char *name, *value;
};

static dgm_http_request request(const char *method, dgm_http_header *room,
                                const struct given *headers)
{
    dgm_http_request r = {.method = dgm_str_from(method), .path = DGM_STR("/"), .headers = room};
    for (; headers->name; headers++)
        room[r.n_headers++] =
            (dgm_http_header){dgm_str_from(headers->name), dgm_str_from(headers->value)};
    return r;
}
#define REQUEST(method, ...)                                                                       \
    request((method), (dgm_http_header[8]){{{0}, {0}}}, (const struct given[]){__VA_ARGS__, {0}})

static void loopback_has_few_names(void **state)
{
    static const char *const good[] = {"localhost", "LOCALHOST:1", "127.0.0.1:8484", "[::1]",
                                       "[::1]:80"};
    static const char *const bad[] = {"",        "localhost.evil", "127.0.0.1.evil",  "127.0.0.2",
                                      "[::2]",   "localhost:x",    "localhost:1:2",   "[::1].evil",
                                      "[::1]x1", "evil:80",        "127.0.0.1:123456"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(dgm_gate_is_loopback(dgm_str_from(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(dgm_gate_is_loopback(dgm_str_from(bad[i])));
}

static dgm_config_token tokens[] = {
    {.kind = DGM_TOKEN_BEARER, .secret = DGM_STR("one"), .principal = DGM_STR("ann")},
    {.kind = DGM_TOKEN_BEARER, .secret = DGM_STR("two"), .principal = DGM_STR("ann")},
    {.kind = DGM_TOKEN_API_KEY,
     .secret = DGM_STR("key"),
     .header = DGM_STR("X-API-Key"),
     .tenant = DGM_STR("acme"),
     .principal = DGM_STR("bob")},
};

static bool comes_in(const dgm_config *c, const char *host, const char *origin)
{
    dgm_http_request r = REQUEST("POST", {"host", host}, {origin ? "origin" : "x", origin});
    return !dgm_gate_refuses(c, &r);
}

static void a_foreign_page_stays_outside(void **state)
{
    dgm_str hosts[] = {DGM_STR("agents.example")}, origins[] = {DGM_STR("https://app.example")};
    dgm_config c = {.is_loopback = true, .hosts = {hosts, 1}, .cors_origins = {origins, 1}};
    dgm_config open = {.is_loopback = false, .tokens = {tokens, 3}};
    (void)state;
    assert_true(comes_in(&c, "localhost:1", NULL));
    assert_true(comes_in(&c, "localhost:1", "http://127.0.0.1:3000"));
    assert_true(comes_in(&c, "agents.example:8", "https://app.example"));
    assert_true(comes_in(&c, "agents.example", "http://agents.example")); /* our own page */
    assert_false(comes_in(&c, "evil.example", NULL));
    assert_false(comes_in(&c, "localhost", "https://evil.example"));
    assert_false(comes_in(&c, "localhost", "null"));
    assert_false(comes_in(&c, "localhost", "http://localhost.evil.example"));
    assert_false(comes_in(&c, "localhost", "https://app.example.evil"));
    assert_true(comes_in(&open, "anything.example", "https://anything.example"));
    assert_false(comes_in(&open, "anything.example", "https://other.example"));
}

/* DNS rebinding: a name that an attacker owns comes to resolve to our address. */
static void without_tokens_only_known_names_are_answered(void **state)
{
    dgm_str hosts[] = {DGM_STR("agents.example")};
    dgm_config c = {.insecure = true}, listed = {.insecure = true, .hosts = {hosts, 1}};
    (void)state;
    assert_true(comes_in(&c, "192.0.2.7:8484", NULL));
    assert_true(comes_in(&c, "[2001:db8::1]:8484", "http://[2001:db8::1]:8484"));
    assert_true(comes_in(&c, "localhost", NULL));
    assert_false(comes_in(&c, "evil.example", "http://evil.example"));
    assert_false(comes_in(&c, "192.0.2.7.evil.example", NULL));
    assert_false(comes_in(&c, "[::1", NULL));
    assert_false(comes_in(&c, "", NULL)); /* HTTP/1.0 without a Host */
    c.public_url = DGM_STR("https://agents.example/base");
    assert_true(comes_in(&c, "agents.example", NULL));
    assert_true(comes_in(&c, "agents.example:8484", NULL));
    assert_false(comes_in(&c, "agents.example.evil", NULL));
    assert_true(comes_in(&listed, "agents.example:1", NULL));
    assert_false(comes_in(&listed, "192.0.2.7", NULL));
}

static const dgm_config closed = {.tokens = {tokens, 3}};

static void check_word(dgm_http_request r, dgm_gate_word want, const char *principal)
{
    dgm_owner owner;
    dgm_strs may_set;
    assert_int_equal(dgm_gate_owner(&closed, &r, &owner, &may_set), want);
    assert_true(dgm_str_eq(owner.principal, dgm_str_from(principal)));
}

static void credentials_say_who_it_is(void **state)
{
    (void)state;
    check_word(REQUEST("GET", {"authorization", "Bearer one"}), DGM_GATE_KNOWN, "ann");
    check_word(REQUEST("GET", {"authorization", "bearer  two"}), DGM_GATE_KNOWN, "ann");
    check_word(REQUEST("GET", {"x-api-key", "key"}), DGM_GATE_KNOWN, "bob");
    check_word(REQUEST("GET", {"x", "y"}), DGM_GATE_MISSING, "");
    check_word(REQUEST("GET", {"authorization", "Bearer on"}), DGM_GATE_WRONG, "");
    check_word(REQUEST("GET", {"authorization", "Bearer "}), DGM_GATE_WRONG, "");
    check_word(REQUEST("GET", {"authorization", "Basic one"}), DGM_GATE_WRONG, "");
    check_word(REQUEST("GET", {"authorization", "Bearer key"}), DGM_GATE_WRONG, "");
    check_word(REQUEST("GET", {"x-api-key", "one"}), DGM_GATE_WRONG, "");
}

static void credentials_of_two_are_nobodys(void **state)
{
    (void)state;
    check_word(REQUEST("GET", {"authorization", "Bearer one"}, {"x-api-key", "key"}),
               DGM_GATE_WRONG, "");
    check_word(REQUEST("GET", {"authorization", "Bearer one"}, {"x-api-key", "wrong"}),
               DGM_GATE_KNOWN, "ann");
}

static void a_token_may_set_metadata_for_itself_alone(void **state)
{
    static dgm_str prefixes[] = {{"aion:", 5}};
    dgm_config_token some[] = {tokens[0], tokens[1], tokens[2]};
    dgm_config c = {.tokens = {some, 3}};
    dgm_http_request one = REQUEST("GET", {"authorization", "Bearer one"});
    dgm_http_request two = REQUEST("GET", {"authorization", "Bearer two"});
    dgm_http_request wrong = REQUEST("GET", {"authorization", "Bearer three"});
    (void)state;
    some[1].may_set_metadata = (dgm_strs){prefixes, 1};
    dgm_owner owner;
    dgm_strs may_set;
    dgm_gate_owner(&c, &one, &owner, &may_set); /* of the same principal */
    assert_int_equal(may_set.n, 0);
    dgm_gate_owner(&c, &two, &owner, &may_set);
    assert_int_equal(may_set.n, 1);
    dgm_gate_owner(&c, &wrong, &owner, &may_set);
    assert_int_equal(may_set.n, 0);
}

static void operators_are_tokens_with_the_role_or_local_callers(void **state)
{
    dgm_config_token some[] = {tokens[0], tokens[1], tokens[2]};
    dgm_config c = {.tokens = {some, 3}}, open = {0};
    dgm_http_request one = REQUEST("GET", {"authorization", "Bearer one"});
    dgm_http_request two = REQUEST("GET", {"authorization", "Bearer two"});
    (void)state;
    some[1].role = DGM_TOKEN_OPERATOR;
    one.is_loopback = true; /* of no use where there are tokens */
    assert_false(dgm_gate_is_operator(&c, &one));
    assert_true(dgm_gate_is_operator(&c, &two));
    assert_true(dgm_gate_is_operator(&open, &one));
    assert_false(dgm_gate_is_operator(&open, &two));
}

static void without_tokens_every_caller_is_accepted(void **state)
{
    dgm_config c = {0};
    dgm_http_request r = REQUEST("GET", {"authorization", "Bearer x"});
    dgm_owner owner;
    dgm_strs may_set;
    (void)state;
    assert_int_equal(dgm_gate_owner(&c, &r, &owner, &may_set), DGM_GATE_OPEN);
    assert_int_equal(owner.principal.n + owner.tenant.n, 0);
}

static void the_challenge_names_a_scheme_there_is(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_config keys = {.tokens = {&tokens[2], 1}};
    (void)state;
    assert_string_equal(dgm_gate_challenge(a, &closed, DGM_GATE_MISSING).p,
                        "Bearer realm=\"dragoman\"");
    assert_string_equal(dgm_gate_challenge(a, &closed, DGM_GATE_WRONG).p,
                        "Bearer realm=\"dragoman\", error=\"invalid_token\"");
    assert_string_equal(dgm_gate_challenge(a, &keys, DGM_GATE_MISSING).p,
                        "ApiKey realm=\"dragoman\", header=\"X-API-Key\"");
}

static void a_preflight_lists_every_header_that_is_read(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_http_header headers[3];
    dgm_http_request ask = REQUEST("OPTIONS", {"origin", "http://localhost"},
                                   {"access-control-request-method", "POST"});
    dgm_http_request plain = REQUEST("OPTIONS", {"origin", "http://localhost"});
    (void)state;
    assert_true(dgm_gate_is_preflight(&ask));
    assert_false(dgm_gate_is_preflight(&plain));
    assert_int_equal(dgm_gate_preflight(a, &closed, &ask, headers), 3);
    assert_non_null(strstr(headers[1].value.p, "Last-Event-ID"));
    assert_non_null(strstr(headers[1].value.p, ", X-API-Key"));
}

static void a_preflight_allows_what_a_library_adds(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_http_header headers[3];
    dgm_http_request ask = REQUEST("OPTIONS", {"origin", "http://localhost"},
                                   {"access-control-request-method", "POST"},
                                   {"access-control-request-headers", "x-stainless-os,x-a"});
    dgm_http_request odd = REQUEST("OPTIONS", {"access-control-request-headers", "a\"b"});
    (void)state;
    dgm_gate_preflight(a, &closed, &ask, headers);
    assert_non_null(strstr(headers[1].value.p, ", x-stainless-os,x-a"));
    dgm_gate_preflight(a, &closed, &odd, headers);
    assert_null(strstr(headers[1].value.p, "\""));
}

DGM_TEST_MAIN(dgm_test(loopback_has_few_names), dgm_test(a_foreign_page_stays_outside),
              dgm_test(without_tokens_only_known_names_are_answered),
              dgm_test(credentials_say_who_it_is), dgm_test(credentials_of_two_are_nobodys),
              dgm_test(a_token_may_set_metadata_for_itself_alone),
              dgm_test(operators_are_tokens_with_the_role_or_local_callers),
              dgm_test(without_tokens_every_caller_is_accepted),
              dgm_test(the_challenge_names_a_scheme_there_is),
              dgm_test(a_preflight_lists_every_header_that_is_read),
              dgm_test(a_preflight_allows_what_a_library_adds))
