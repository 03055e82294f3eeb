/* Agent cards: member by member, from each dialect to each other, and the errors. */
#include "support/check.h"
#include "wire/a2a/a2a_card_int.h"

/* ---- helpers ----------------------------------------------------------------------------------- */

static const struct dialect {
    dgm_format_id format;
    const dgm_shape *shape;
} V10 = {DGM_FORMAT_A2A_10, &dgm_form_card}, V03 = {DGM_FORMAT_A2A_03, &dgm_a2a_03_card},
  REST = {DGM_FORMAT_A2A_03_REST, &dgm_a2a_03_rest_card};
static const struct dialect *const all[] = {&V10, &V03, &REST};

static yyjson_val *parse(dgm_arena *a, const char *text)
{
    yyjson_val *root;
    dgm_err err = {0};
    check_ok(dgm_json_read(a, dgm_str_from(text), SIZE_MAX, "any", &root, &err), err);
    return root;
}

static dgm_code read_as(dgm_arena *a, const struct dialect *d, const char *text, bool strict,
                        dgm_agent_card *ret_card, dgm_err *err)
{
    dgm_reader r = {.arena = a, .format = d->format, .strict = strict, .err = err};
    *ret_card = (dgm_agent_card){0};
    return dgm_shape_read(&r, d->shape, parse(a, text), NULL, ret_card);
}

static const char *write_as(dgm_arena *a, const struct dialect *d, const dgm_agent_card *card)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_writer w = {&b, d->format};
    dgm_shape_write(&w, d->shape, card);
    const char *text = dgm_arena_dup(a, dgm_buf_str(&b)).p;
    dgm_buf_done(&b);
    return text;
}

static const char *convert(dgm_arena *a, const struct dialect *from, const struct dialect *to,
                           const char *text)
{
    dgm_agent_card card;
    dgm_err err = {0};
    check_ok(read_as(a, from, text, false, &card, &err), err);
    return write_as(a, to, &card);
}

#define check_text(got, want)                                                                      \
    do {                                                                                           \
        dgm_str got_ = dgm_str_from(got);                                                          \
        check_str(got_, want);                                                                     \
    } while (0)

/* Members around which most of these tests are built. */
#define HEAD "\"name\":\"n\",\"description\":\"d\","
#define MODES "\"defaultInputModes\":[\"i\"],\"defaultOutputModes\":[\"o\"],"
#define CARD_10_WITH(more)                                                                         \
    "{" HEAD "\"supportedInterfaces\":[{\"url\":\"u\",\"protocolBinding\":\"JSONRPC\","            \
    "\"protocolVersion\":\"0.3.0\"}],\"version\":\"v\",\"capabilities\":{}," more MODES            \
    "\"skills\":[]}"
#define CARD_03_WITH(more)                                                                         \
    "{" HEAD "\"url\":\"u\",\"version\":\"v\",\"capabilities\":{}," more MODES                     \
    "\"skills\":[],\"preferredTransport\":\"JSONRPC\",\"protocolVersion\":\"0.3.0\"}"

/* ---- members ----------------------------------------------------------------------------------- */

#define FULL_SCHEMES_10                                                                            \
    "\"securitySchemes\":{"                                                                        \
    "\"a\":{\"apiKeySecurityScheme\":{\"description\":\"ad\",\"location\":\"header\","             \
    "\"name\":\"X\"}},"                                                                            \
    "\"h\":{\"httpAuthSecurityScheme\":{\"description\":\"hd\",\"scheme\":\"Bearer\","             \
    "\"bearerFormat\":\"JWT\"}},"                                                                  \
    "\"o\":{\"oauth2SecurityScheme\":{\"description\":\"od\",\"flows\":{\"authorizationCode\":{"   \
    "\"authorizationUrl\":\"au\",\"tokenUrl\":\"tu\",\"refreshUrl\":\"ru\","                       \
    "\"scopes\":{\"s\":\"sd\"},\"pkceRequired\":true}},\"oauth2MetadataUrl\":\"mu\"}},"            \
    "\"i\":{\"openIdConnectSecurityScheme\":{\"description\":\"id\","                              \
    "\"openIdConnectUrl\":\"iu\"}},"                                                               \
    "\"m\":{\"mtlsSecurityScheme\":{\"description\":\"md\"}}},"

static const char full_10[] =
    "{" HEAD "\"supportedInterfaces\":["
    "{\"url\":\"u1\",\"protocolBinding\":\"JSONRPC\",\"tenant\":\"t\",\"protocolVersion\":\"1.0\"},"
    "{\"url\":\"u2\",\"protocolBinding\":\"GRPC\",\"protocolVersion\":\"0.3\"}],"
    "\"provider\":{\"url\":\"pu\",\"organization\":\"po\"},\"version\":\"v\","
    "\"documentationUrl\":\"du\",\"capabilities\":{\"streaming\":true,\"pushNotifications\":false,"
    "\"extensions\":[{\"uri\":\"eu\",\"description\":\"ed\",\"required\":true,"
    "\"params\":{\"n\":1.0}}],\"extendedAgentCard\":true}," FULL_SCHEMES_10
    "\"securityRequirements\":[{\"schemes\":{\"a\":{},\"o\":{\"list\":[\"s\"]}}}]," MODES
    "\"skills\":[{\"id\":\"si\",\"name\":\"sn\",\"description\":\"sd\",\"tags\":[\"st\"],"
    "\"examples\":[\"se\"],\"inputModes\":[\"sim\"],\"outputModes\":[\"som\"],"
    "\"securityRequirements\":[{\"schemes\":{\"m\":{}}}]}],"
    "\"signatures\":[{\"protected\":\"p\",\"signature\":\"s\",\"header\":{\"k\":null}}],"
    "\"iconUrl\":\"iu\"}";

static void every_member_has_its_place_in_the_struct(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card c;
    dgm_err err = {0};
    (void)state;
    check_ok(read_as(a, &V10, full_10, true, &c, &err), err);
    check_str(c.name, "n");
    check_str(c.description, "d");
    assert_int_equal(c.interfaces.n, 2);
    check_str(c.interfaces.at[0].url, "u1");
    check_str(c.interfaces.at[0].protocol_binding, "JSONRPC");
    check_str(c.interfaces.at[0].tenant, "t");
    check_str(c.interfaces.at[0].protocol_version, "1.0");
    check_str(c.interfaces.at[1].url, "u2");
    check_str(c.provider->url, "pu");
    check_str(c.provider->organization, "po");
    check_str(c.version, "v");
    check_str(c.documentation_url, "du");
    check_str(c.icon_url, "iu");
    assert_int_equal(c.capabilities.streaming, DGM_TRUE);
    assert_int_equal(c.capabilities.push_notifications, DGM_FALSE);
    assert_int_equal(c.capabilities.extended_agent_card, DGM_TRUE);
    assert_int_equal(c.capabilities.state_transition_history, DGM_UNSET);
    assert_int_equal(c.capabilities.extensions.n, 1);
    check_str(c.capabilities.extensions.at[0].uri, "eu");
    check_str(c.capabilities.extensions.at[0].description, "ed");
    assert_int_equal(c.capabilities.extensions.at[0].required, DGM_TRUE);
    check_str(dgm_json_text_in(a, c.capabilities.extensions.at[0].params), "{\"n\":1.0}");
    check_str(c.default_input_modes.at[0], "i");
    check_str(c.default_output_modes.at[0], "o");
    assert_int_equal(c.security_requirements.n, 1);
    const dgm_required_schemes *needs = &c.security_requirements.at[0].schemes;
    assert_int_equal(needs->n, 2);
    check_str(needs->at[0].name, "a");
    assert_int_equal(needs->at[0].scopes.n, 0);
    check_str(needs->at[1].name, "o");
    check_str(needs->at[1].scopes.at[0], "s");
    assert_int_equal(c.skills.n, 1);
    const dgm_agent_skill *skill = &c.skills.at[0];
    check_str(skill->id, "si");
    check_str(skill->name, "sn");
    check_str(skill->description, "sd");
    check_str(skill->tags.at[0], "st");
    check_str(skill->examples.at[0], "se");
    check_str(skill->input_modes.at[0], "sim");
    check_str(skill->output_modes.at[0], "som");
    check_str(skill->security_requirements.at[0].schemes.at[0].name, "m");
    assert_int_equal(c.signatures.n, 1);
    check_str(c.signatures.at[0].protected_header, "p");
    check_str(c.signatures.at[0].signature, "s");
    check_str(dgm_json_text_in(a, c.signatures.at[0].header), "{\"k\":null}");
    assert_null(c.extra);
    check_text(write_as(a, &V10, &c), full_10);
}

static void every_scheme_has_its_place_in_the_struct(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card c;
    dgm_err err = {0};
    (void)state;
    check_ok(read_as(a, &V10, full_10, true, &c, &err), err);
    assert_int_equal(c.security_schemes.n, 5);
    const dgm_security_scheme *s = c.security_schemes.at;
    static const dgm_scheme_kind kinds[] = {DGM_SCHEME_API_KEY, DGM_SCHEME_HTTP, DGM_SCHEME_OAUTH2,
                                            DGM_SCHEME_OPENID, DGM_SCHEME_MTLS};
    static const char *const names[] = {"a", "h", "o", "i", "m"};
    static const char *const descriptions[] = {"ad", "hd", "od", "id", "md"};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(s[i].kind, kinds[i]);
        check_str(s[i].name, names[i]);
        check_str(s[i].description, descriptions[i]);
    }
    check_str(s[0].location, "header");
    check_str(s[0].key_name, "X");
    check_str(s[1].scheme, "Bearer");
    check_str(s[1].bearer_format, "JWT");
    check_str(s[2].oauth2_metadata_url, "mu");
    check_str(s[3].openid_connect_url, "iu");
    assert_int_equal(s[2].flows.n, 1);
    const dgm_oauth_flow *flow = &s[2].flows.at[0];
    assert_int_equal(flow->kind, DGM_FLOW_AUTHORIZATION_CODE);
    check_str(flow->authorization_url, "au");
    check_str(flow->token_url, "tu");
    check_str(flow->refresh_url, "ru");
    assert_int_equal(flow->scopes.n, 1);
    check_str(flow->scopes.at[0].name, "s");
    check_str(flow->scopes.at[0].text, "sd");
    assert_int_equal(flow->pkce_required, DGM_TRUE);
}

static void members_of_0_3_have_their_place_in_the_struct(void **state)
{
    static const char text[] =
        "{" HEAD "\"url\":\"u1\",\"version\":\"v\",\"capabilities\":{\"stateTransitionHistory\":"
        "true},\"security\":[{\"a\":[\"s\"]}]," MODES "\"skills\":[],"
        "\"supportsAuthenticatedExtendedCard\":false,\"preferredTransport\":\"GRPC\","
        "\"additionalInterfaces\":[{\"url\":\"u2\",\"transport\":\"HTTP+JSON\"}],"
        "\"protocolVersion\":\"0.3.1\"}";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card c;
    dgm_err err = {0};
    (void)state;
    check_ok(read_as(a, &V03, text, true, &c, &err), err);
    assert_int_equal(c.interfaces.n, 2);
    check_str(c.interfaces.at[0].url, "u1");
    check_str(c.interfaces.at[0].protocol_binding, "GRPC");
    check_str(c.interfaces.at[0].protocol_version, "0.3.1");
    check_str(c.interfaces.at[1].url, "u2");
    check_str(c.interfaces.at[1].protocol_binding, "HTTP+JSON");
    check_str(c.interfaces.at[1].protocol_version, "0.3.1");
    assert_int_equal(c.capabilities.state_transition_history, DGM_TRUE);
    assert_int_equal(c.capabilities.extended_agent_card, DGM_FALSE);
    check_str(c.security_requirements.at[0].schemes.at[0].scopes.at[0], "s");
    assert_null(c.extra);
    check_text(write_as(a, &V03, &c), text);
}

/* ---- flows ------------------------------------------------------------------------------------- */

static void the_model_keeps_all_flows_in_order_of_preference(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card c;
    dgm_err err = {0};
    (void)state;
    check_ok(read_as(a, &V03,
                     CARD_03_WITH("\"securitySchemes\":{\"o\":{\"type\":\"oauth2\",\"flows\":{"
                                  "\"deviceCode\":{\"deviceAuthorizationUrl\":\"d\","
                                  "\"tokenUrl\":\"t\"},"
                                  "\"password\":{\"tokenUrl\":\"p\"},"
                                  "\"clientCredentials\":{\"tokenUrl\":\"c\"},"
                                  "\"implicit\":{\"authorizationUrl\":\"i\"}}}},"),
                     false, &c, &err),
             err);
    const dgm_oauth_flows *flows = &c.security_schemes.at[0].flows;
    assert_int_equal(flows->n, 4);
    assert_int_equal(flows->at[0].kind, DGM_FLOW_CLIENT_CREDENTIALS);
    assert_int_equal(flows->at[1].kind, DGM_FLOW_IMPLICIT);
    assert_int_equal(flows->at[2].kind, DGM_FLOW_PASSWORD);
    assert_int_equal(flows->at[3].kind, DGM_FLOW_DEVICE_CODE);
    check_str(flows->at[3].device_authorization_url, "d");
}

/* Whatever order a caller of the library has put them into. */
static void one_flow_is_written_by_preference_not_by_place(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_oauth_flow flows[] = {{.kind = DGM_FLOW_DEVICE_CODE, .token_url = DGM_STR("d")},
                              {.kind = DGM_FLOW_PASSWORD, .token_url = DGM_STR("p")},
                              {.kind = DGM_FLOW_CLIENT_CREDENTIALS, .token_url = DGM_STR("c")}};
    dgm_security_scheme scheme = {
        .name = DGM_STR("o"), .kind = DGM_SCHEME_OAUTH2, .flows = {flows, 3}};
    dgm_agent_interface interface = {.url = DGM_STR("u"), .protocol_binding = DGM_STR("JSONRPC")};
    dgm_agent_card card = {.interfaces = {&interface, 1}, .security_schemes = {&scheme, 1}};
    (void)state;
#define ONE_FLOW "{\"clientCredentials\":{\"tokenUrl\":\"c\",\"scopes\":{}}}"
    assert_non_null(strstr(write_as(a, &V10, &card), "\"flows\":" ONE_FLOW));
    assert_non_null(strstr(write_as(a, &REST, &card), "\"flows\":" ONE_FLOW));
    assert_non_null(strstr(write_as(a, &V03, &card),
                           "\"flows\":{\"clientCredentials\":{\"tokenUrl\":\"c\",\"scopes\":{}},"
                           "\"password\":{\"tokenUrl\":\"p\",\"scopes\":{}}}"));
    scheme.flows.n = 2; /* 0.3's union takes the one that it has */
    assert_non_null(strstr(write_as(a, &REST, &card),
                           "\"flows\":{\"password\":{\"tokenUrl\":\"p\",\"scopes\":{}}}"));
    scheme.flows.n = 1;
    assert_non_null(strstr(write_as(a, &REST, &card), "\"flows\":{}"));
    assert_non_null(strstr(write_as(a, &V03, &card), "\"flows\":{}"));
}

/* ---- interfaces -------------------------------------------------------------------------------- */

/* What a card of 1.0 with interfaces of these versions becomes in 0.3: the urls kept, the version. */
static void check_kept(const char *const *versions, size_t n, const char *want)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    static const char *const urls[] = {"a", "b", "c", "d"};
    dgm_agent_interface list[4] = {0};
    for (size_t i = 0; i < n; i++) {
        list[i].url = dgm_str_from(urls[i]);
        list[i].protocol_binding = DGM_STR("J");
        list[i].protocol_version = dgm_str_from(versions[i]);
    }
    dgm_agent_card card = {.interfaces = {list, n}};
    for (int d = 1; d < 3; d++) {
        yyjson_val *v = parse(a, write_as(a, all[d], &card));
        dgm_buf got;
        dgm_buf_init(&got, SIZE_MAX);
        dgm_buf_add_str(&got, dgm_json_str(dgm_json_get(v, DGM_STR("url"))));
        size_t i, max;
        yyjson_val *more;
        yyjson_arr_foreach (dgm_json_get(v, DGM_STR("additionalInterfaces")), i, max, more) {
            dgm_buf_add_str(&got, dgm_json_str(dgm_json_get(more, DGM_STR("url"))));
        }
        dgm_buf_add_char(&got, ' ');
        dgm_buf_add_str(&got, dgm_json_str(dgm_json_get(v, DGM_STR("protocolVersion"))));
        check_str(got, want);
        dgm_buf_done(&got);
    }
}

static void interfaces_of_0_3_are_kept(void **state)
{
    (void)state;
#define KEPT(want, ...)                                                                            \
    check_kept((const char *const[]){__VA_ARGS__},                                                 \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), want)
    KEPT("a 0.3", "0.3");
    KEPT("a 0.3.0", "");
    KEPT("bd 0.3.9", "1.0", "0.3.9", "1.0", "0.9");
    KEPT("a 0.12", "0.12", "0.2.5", "2.0", "1");
    KEPT("b 0.3", "0.2.5", "0.3", "2.0", "1");
    KEPT("bd 0.2.5", "1.0", "0.2.5", "latest", "0.1"); /* no 0.3: older ones are as good */
    KEPT("a 0.3.0", "1.0", "1.0.1");
    KEPT("a 0.3.0", "latest");
    KEPT("a 0", "0"); /* no minor: older */
    KEPT("a 0.3.0", "0.");
    KEPT("a 0.3.0", "0.3x");
    KEPT("a 0.3.0", "00000.3");
}

static void a_card_without_interfaces_is_written_all_the_same(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card card = {.name = DGM_STR("n")};
    (void)state;
    check_text(write_as(a, &V10, &card),
               "{\"name\":\"n\",\"description\":\"\",\"version\":\"\","
               "\"capabilities\":{},\"defaultInputModes\":[],\"defaultOutputModes\":[],"
               "\"skills\":[]}");
    for (int d = 1; d < 3; d++)
        check_text(write_as(a, all[d], &card),
                   "{\"name\":\"n\",\"description\":\"\",\"url\":\"\",\"version\":\"\","
                   "\"capabilities\":{},\"defaultInputModes\":[],\"defaultOutputModes\":[],"
                   "\"skills\":[],\"preferredTransport\":\"\",\"protocolVersion\":\"0.3.0\"}");
}

/* ---- round trips ------------------------------------------------------------------------------- */

/* A card that all three dialects can say, in each of them. */
static const char *const common[] = {
    CARD_10_WITH("\"securitySchemes\":{\"k\":{\"apiKeySecurityScheme\":{\"location\":\"query\","
                 "\"name\":\"q\"}}},\"securityRequirements\":[{\"schemes\":{\"k\":{\"list\":"
                 "[\"s\"]}}},{}],"),
    CARD_03_WITH("\"securitySchemes\":{\"k\":{\"type\":\"apiKey\",\"in\":\"query\",\"name\":"
                 "\"q\"}},\"security\":[{\"k\":[\"s\"]},{}],"),
    CARD_03_WITH("\"securitySchemes\":{\"k\":{\"apiKeySecurityScheme\":{\"location\":\"query\","
                 "\"name\":\"q\"}}},\"security\":[{\"schemes\":{\"k\":{\"list\":[\"s\"]}}},{}],"),
};

static void what_all_can_say_survives_every_way(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++)
            check_text(convert(a, all[from], all[to], common[from]), common[to]);
    }
}

/* A second trip changes nothing more: what is lost is lost the first time. */
static void a_second_round_trip_changes_nothing(void **state)
{
    static const char hybrid[] =
        "{" HEAD "\"url\":\"u\",\"supportedInterfaces\":[{\"url\":\"u\",\"protocolBinding\":\"J\","
        "\"tenant\":\"t\",\"protocolVersion\":\"1.0\"}],\"version\":\"v\",\"capabilities\":{"
        "\"stateTransitionHistory\":true,\"streaming\":false},\"additionalInterfaces\":["
        "{\"url\":\"u\",\"transport\":\"JSONRPC\"},{\"url\":\"w\",\"transport\":\"GRPC\"}],"
        "\"securitySchemes\":{\"o\":{\"type\":\"oauth2\",\"flows\":{\"implicit\":{"
        "\"authorizationUrl\":\"i\"},\"password\":{\"tokenUrl\":\"p\"}}}}," MODES
        "\"skills\":[{\"id\":\"s\",\"name\":\"s\",\"security\":[{\"o\":null}]}]}";
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const char *const cards[] = {full_10, hybrid};
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        for (int from = 0; from < 3; from++) {
            for (int via = 0; via < 3; via++) {
                const char *start = convert(a, &V10, all[from], cards[c]);
                const char *once =
                    convert(a, all[via], all[from], convert(a, all[from], all[via], start));
                const char *twice =
                    convert(a, all[via], all[from], convert(a, all[from], all[via], once));
                check_text(twice, once);
            }
        }
    }
}

/* ---- leniency ---------------------------------------------------------------------------------- */

static void a_strict_reader_wants_every_required_member(void **state)
{
    static const struct {
        const char *text, *at;
    } rows[] = {
        {"{\"name\":\"n\",\"supportedInterfaces\":[{\"url\":\"u\",\"protocolBinding\":\"J\","
         "\"protocolVersion\":\"1.0\"}]}",
         "/description"},
        {"{" HEAD "\"supportedInterfaces\":[{\"url\":\"u\",\"protocolBinding\":\"J\"}]}",
         "/supportedInterfaces/0/protocolVersion"},
        {CARD_10_WITH("\"provider\":{\"url\":\"u\"},"), "/provider/organization"},
        {CARD_03_WITH(""), "/supportedInterfaces"}, /* a server's own card is one of 1.0 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_agent_card card;
        dgm_err err = {0};
        check_fails(read_as(a, &V10, rows[i].text, true, &card, &err), DGM_BAD_PARAMS, err,
                    rows[i].at);
        check_ok(read_as(a, &V10, rows[i].text, false, &card, &err), err);
    }
}

static void unknown_members_are_counted_and_may_be_dropped(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card card = {0};
    dgm_err err = {0};
    dgm_reader r = {.arena = a, .format = V10.format, .drop_unknown = true, .err = &err};
    (void)state;
    check_ok(dgm_shape_read(&r, V10.shape,
                            parse(a, CARD_10_WITH("\"x\":1,\"provider\":{\"y\":2},"
                                                  "\"url\":\"u\",\"security\":[],")),
                            NULL, &card),
             err);
    assert_int_equal(r.n_unknown, 2); /* those of 0.3 are known */
    assert_null(card.extra);
    assert_null(card.provider->extra);
}

static void unknown_members_of_another_format_stay_behind(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    (void)state;
    check_text(convert(a, &V10, &V03, CARD_10_WITH("\"x\":1,")), CARD_03_WITH(""));
    check_text(convert(a, &V03, &REST, CARD_03_WITH("\"x\":1,")), CARD_03_WITH(""));
    check_text(convert(a, &REST, &V03, CARD_03_WITH("\"x\":1,")), CARD_03_WITH(""));
}

static void a_failed_read_leaves_the_struct_alone(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_agent_card card;
    dgm_err err = {0};
    (void)state;
    check_fails(read_as(a, &V10, "{\"name\":\"n\"}", false, &card, &err), DGM_BAD_PARAMS, err,
                "/supportedInterfaces");
    assert_null(card.name.p);
    check_fails(read_as(a, &V03, "{\"name\":\"n\"}", false, &card, &err), DGM_BAD_PARAMS, err,
                "/url");
    check_fails(read_as(a, &REST, "[]", false, &card, &err), DGM_BAD_PARAMS, err, "");
}

static void long_lists_meet_their_limit(void **state)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_buf b;
    dgm_agent_card card;
    dgm_err err = {0};
    (void)state;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{\"name\":\"n\",\"url\":\"u\",\"security\":[{");
    for (int i = 0; i <= 100000; i++)
        dgm_buf_printf(&b, "%s\"%d\":[]", i ? "," : "", i);
    dgm_buf_add_lit(&b, "}]}");
    dgm_buf_add_char(&b, 0);
    check_fails(read_as(a, &V03, b.p, false, &card, &err), DGM_TOO_LARGE, err, "/security/0");
    dgm_buf_done(&b);
}

/* ---- telling cards apart ----------------------------------------------------------------------- */

static void dialects_of_cards_are_detected(void **state)
{
    static const struct {
        const char *text;
        bool card, v03, rest;
    } rows[] = {
        {CARD_10_WITH(""), true, false, false},
        {CARD_03_WITH(""), true, true, false},
        {CARD_10_WITH("\"url\":\"u\",\"protocolVersion\":\"0.3.0\","), true, false, false},
        {"{\"supported_interfaces\":[{}]}", true, false, false},
        {"{\"supportedInterfaces\":[],\"url\":\"u\"}", true, true, false},
        {"{\"supportedInterfaces\":null,\"url\":\"u\",\"skills\":[]}", true, true, false},
        {"{\"supportedInterfaces\":[]}", true, false, false},
        {"{\"preferred_transport\":\"GRPC\"}", true, true, false},
        {"{\"additionalInterfaces\":[]}", true, true, false},
        {"{\"supportsAuthenticatedExtendedCard\":false}", true, true, false},
        {"{\"protocolVersion\":\"0.3.0\"}", true, true, false},
        {"{\"protocol_version\":\"0.9\"}", true, true, false},
        {"{\"protocolVersion\":\"1.0\"}", true, false, false},
        {"{\"protocolVersion\":\"0.2\"}", true, false, false},
        {"{\"protocolVersion\":\"\"}", true, false, false},
        {"{\"protocolVersion\":3}", true, false, false},
        {"{\"capabilities\":{}}", true, false, false},
        {"{\"name\":\"n\",\"url\":\"u\",\"version\":\"1\"}", true, true, false},
        {"{\"name\":\"n\",\"url\":\"u\"}", false, true, false},
        {"{\"url\":null,\"preferredTransport\":null}", false, false, false},
        {"{\"url\":\"u\",\"securitySchemes\":{\"m\":{\"mtls_security_scheme\":{}}}}", true, true,
         true},
        {"{\"url\":\"u\",\"securitySchemes\":{\"m\":{\"type\":\"mutualTLS\"}}}", true, true, false},
        {"{\"url\":\"u\",\"skills\":[],\"security\":[{\"schemes\":{}}]}", true, true, true},
        {"{\"url\":\"u\",\"skills\":[],\"security\":[{\"schemes\":[]}]}", true, true, false},
        {"{\"url\":\"u\",\"skills\":[{},{\"security\":[{\"schemes\":{}}]}]}", true, true, true},
        {CARD_10_WITH("\"url\":\"u\",\"securitySchemes\":{\"m\":{\"mtlsSecurityScheme\":{}}},"),
         true, false, false},
        /* others that have a name or a url */
        {"{\"url\":\"u\",\"mediaType\":\"image/png\"}", false, true, false},
        {"{\"id\":\"c\",\"url\":\"u\",\"token\":\"t\"}", false, true, false},
        {"{\"artifactId\":\"a\",\"name\":\"n\",\"description\":\"d\",\"parts\":[]}", false, false,
         false},
        {"{\"role\":\"user\",\"content\":\"hi\",\"name\":\"n\"}", false, false, false},
        {"{}", false, false, false},
        {"[]", false, false, false},
        {"null", false, false, false},
        {"\"url\"", false, false, false},
        {"{\"skills\":7,\"securitySchemes\":[],\"security\":7,\"supportedInterfaces\":7}", true,
         false, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        yyjson_val *v = parse(a, rows[i].text);
        if (dgm_a2a_looks_like_card(v) != rows[i].card || dgm_a2a_card_is_03(v) != rows[i].v03 ||
            dgm_a2a_card_is_03_rest(v) != rows[i].rest)
            fail_msg("%s: card %d, 0.3 %d, rest %d", rows[i].text, dgm_a2a_looks_like_card(v),
                     dgm_a2a_card_is_03(v), dgm_a2a_card_is_03_rest(v));
    }
}

/* ---- losses ------------------------------------------------------------------------------------ */

static void check_losses(const dgm_loss *rows, size_t n)
{
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(rows[i].object, "card");
        assert_int_equal(rows[i].member[0], '/');
        assert_true(strlen(rows[i].what) > 0);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(rows[i].member, rows[j].member);
    }
}

static void losses_are_listed_once_each(void **state)
{
    (void)state;
#define WAY(way) check_losses(dgm_a2a_card_losses_##way, dgm_a2a_n_card_losses_##way)
    WAY(10_to_03);
    WAY(03_to_10);
    WAY(10_to_03_rest);
    WAY(03_rest_to_10);
    WAY(03_to_03_rest);
    WAY(03_rest_to_03);
}

DGM_TEST_MAIN(dgm_test(every_member_has_its_place_in_the_struct),
              dgm_test(every_scheme_has_its_place_in_the_struct),
              dgm_test(members_of_0_3_have_their_place_in_the_struct),
              dgm_test(the_model_keeps_all_flows_in_order_of_preference),
              dgm_test(one_flow_is_written_by_preference_not_by_place),
              dgm_test(interfaces_of_0_3_are_kept),
              dgm_test(a_card_without_interfaces_is_written_all_the_same),
              dgm_test(what_all_can_say_survives_every_way),
              dgm_test(a_second_round_trip_changes_nothing),
              dgm_test(a_strict_reader_wants_every_required_member),
              dgm_test(unknown_members_are_counted_and_may_be_dropped),
              dgm_test(unknown_members_of_another_format_stay_behind),
              dgm_test(a_failed_read_leaves_the_struct_alone),
              dgm_test(long_lists_meet_their_limit), dgm_test(dialects_of_cards_are_detected),
              dgm_test(losses_are_listed_once_each))
