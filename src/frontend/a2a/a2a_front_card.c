/*
 * frontend/a2a/a2a_front_card.c - agent cards: made from the configuration, the agent and the features of the server; sent in
 * the caller's dialect, with headers for caches.
 */
#include "frontend/a2a/a2a_front_card.h"
#include "base/limits.h"
#include "frontend/a2a/a2a_front_int.h"
#include "frontend/cached.h"

#include <pthread.h>
#include <stdlib.h>

#define MAX_VERSIONS 100 /* of one card, between two reloads */

/* The card with members of the agent's program. Requests may have it, so it is freed with the card. */
struct card_version {
    struct card_version *next;
    dgm_arena *arena;
    dgm_str described; /* the members */
    dgm_agent_card card;
    int64_t made_s;
};

struct dgm_a2a_card {
    dgm_a2a_card_options o; /* its texts are in the arena */
    dgm_agent_card card;    /* without interfaces */
    dgm_arena *arena;
    pthread_mutex_t lock;
    struct card_version *versions; /* the newest first */
    size_t n_versions;
};

/* ---- the members --------------------------------------------------------------------------------------------- */

static void a2a_front_card_put_member(dgm_buf *b, const dgm_a2a_card_options *o,
                                      const dgm_json *described, const char *name,
                                      const char *otherwise)
{
    const dgm_json *sources[] = {o->members[0], o->members[1], described, o->type};
    const yyjson_val *v = NULL;
    for (size_t i = 0; !v && i < sizeof sources / sizeof *sources; i++)
        v = dgm_json_get(sources[i], dgm_str_from(name));
    if (!v && !otherwise)
        return;
    dgm_buf_printf(b, ",\"%s\":", name);
    if (v)
        dgm_json_put(b, v);
    else
        dgm_buf_add_str(b, dgm_str_from(otherwise));
}

/* The codec reads it, so what the config has wrong is found with its pointer. */
static dgm_code read_card_members(const dgm_a2a_card_options *o, const dgm_json *described,
                                  dgm_arena *a, dgm_agent_card *ret_card, dgm_err *err)
{
    static const struct {
        const char *name, *otherwise;
    } members[] = {
        {"name", "\"Dragoman agent\""},
        {"description", "\"An agent behind Dragoman\""},
        {"version", "\"" DGM_VERSION "\""},
        {"provider", NULL},
        {"documentationUrl", NULL},
        {"iconUrl", NULL},
        {"securitySchemes", NULL},
        {"securityRequirements", NULL},
        {"defaultInputModes", "[\"text/plain\"]"},
        {"defaultOutputModes", "[\"text/plain\"]"},
        {"skills", "[]"},
    };
    dgm_reader r = {.arena = a, .err = err};
    dgm_frame frame;
    yyjson_val *v;
    dgm_buf b;
    dgm_code rc;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    dgm_buf_add_lit(&b, "{\"supportedInterfaces\":[{\"url\":\"http://localhost/\","
                        "\"protocolBinding\":\"JSONRPC\",\"protocolVersion\":\"1.0\"}]");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        a2a_front_card_put_member(&b, o, described, members[i].name, members[i].otherwise);
    dgm_buf_add_char(&b, '}');
    rc = dgm_json_read(a, dgm_arena_dup(a, dgm_buf_str(&b)), DGM_MAX_OBJECT_BYTES, "object_bytes",
                       &v, err);
    dgm_buf_done(&b);
    if (rc || (rc = dgm_codec_a2a_10.decode(&r, v, DGM_OBJECT_CARD, false, &frame)))
        return rc;
    *ret_card = *(const dgm_agent_card *)frame.object.it;
    return DGM_OK;
}

/* ---- what the server adds ---------------------------------------------------------------------------------------- */

static bool is_first(dgm_strs list, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (dgm_str_eq_nocase(list.at[k], list.at[i]))
            return false;
    }
    return true;
}

/* Any one of them will do: a requirement each. */
static void add_schemes(dgm_a2a_card *c, const dgm_a2a_card_options *o)
{
    dgm_arena *a = c->arena;
    dgm_agent_card *card = &c->card;
    size_t most = o->key_headers.n + 1;
    dgm_security_schemes schemes = {dgm_new_n(a, dgm_security_scheme, most), 0};
    dgm_security_requirements needs = {dgm_new_n(a, dgm_security_requirement, most), 0};
    if (o->bearer)
        schemes.at[schemes.n++] = (dgm_security_scheme){
            .name = DGM_STR("bearer"), .kind = DGM_SCHEME_HTTP, .scheme = DGM_STR("Bearer")};
    for (size_t i = 0; i < o->key_headers.n; i++) {
        dgm_str header = dgm_arena_dup(a, o->key_headers.at[i]);
        if (is_first(o->key_headers, i))
            schemes.at[schemes.n++] = (dgm_security_scheme){
                .name = schemes.n > (o->bearer ? 1u : 0u)
                            ? dgm_arena_printf(a, "apiKey-%.*s", DGM_P(header))
                            : DGM_STR("apiKey"),
                .kind = DGM_SCHEME_API_KEY,
                .location = DGM_STR("header"),
                .key_name = header};
    }
    for (; needs.n < schemes.n; needs.n++) {
        dgm_required_scheme *one = dgm_new(a, dgm_required_scheme);
        one->name = schemes.at[needs.n].name;
        needs.at[needs.n].schemes = (dgm_required_schemes){one, 1};
    }
    if (!card->security_schemes.n)
        card->security_schemes = schemes;
    if (!card->security_requirements.n && !o->no_requirements)
        card->security_requirements = needs;
}

static void add_capabilities(dgm_a2a_card *c, const dgm_a2a_card_options *o)
{
    dgm_agent_capabilities *can = &c->card.capabilities;
    size_t n = o->extensions.n;
    can->streaming = o->streaming ? DGM_TRUE : DGM_FALSE;
    can->push_notifications = DGM_FALSE;
    can->extended_agent_card = o->extended ? DGM_TRUE : DGM_FALSE;
    if (n)
        can->extensions = (dgm_agent_extensions){dgm_new_n(c->arena, dgm_agent_extension, n), n};
    for (size_t i = 0; i < n; i++) {
        const dgm_agent_extension *e = &o->extensions.at[i];
        can->extensions.at[i] =
            (dgm_agent_extension){.uri = dgm_arena_dup(c->arena, e->uri),
                                  .description = dgm_arena_dup(c->arena, e->description),
                                  .required = e->required,
                                  .params = e->params ? dgm_json_copy(c->arena, e->params) : NULL};
    }
}

/* ---- life ----------------------------------------------------------------------------------------------------------- */

dgm_code dgm_a2a_card_new(const dgm_a2a_card_options *o, dgm_a2a_card **ret_card, dgm_err *err)
{
    dgm_a2a_card *c = dgm_xcalloc(1, sizeof *c);
    dgm_code rc;
    c->arena = dgm_arena_new();
    c->o = *o;
    c->o.path = dgm_arena_dup(c->arena, o->path);
    c->o.public_url = dgm_arena_dup(c->arena, o->public_url);
    c->o.agent = dgm_arena_dup(c->arena, o->agent);
    pthread_mutex_init(&c->lock, NULL);
    rc = read_card_members(o, NULL, c->arena, &c->card, err);
    if (rc) {
        dgm_a2a_card_free(c);
        return rc;
    }
    if (o->bearer || o->key_headers.n)
        add_schemes(c, o);
    add_capabilities(c, o);
    *ret_card = c;
    return DGM_OK;
}

void dgm_a2a_card_free(dgm_a2a_card *c)
{
    if (!c)
        return;
    while (c->versions) {
        struct card_version *v = c->versions;
        c->versions = v->next;
        dgm_arena_free(v->arena); /* v lives in it */
    }
    pthread_mutex_destroy(&c->lock);
    dgm_arena_free(c->arena);
    free(c);
}

/* ---- what the agent's program says ------------------------------------------------------------------------------------- */

/* NULL: A2A would not take it, or there are too many. */
static struct card_version *version_add(dgm_a2a_card *c, dgm_str described)
{
    dgm_arena *a = dgm_arena_new();
    struct card_version *v = dgm_new(a, struct card_version);
    yyjson_val *members;
    dgm_agent_card made;
    if (c->n_versions >= MAX_VERSIONS ||
        dgm_json_read(a, dgm_arena_dup(a, described), DGM_MAX_OBJECT_BYTES, "object_bytes",
                      &members, NULL) ||
        read_card_members(&c->o, members, a, &made, NULL)) {
        dgm_arena_free(a);
        return NULL;
    }
    *v = (struct card_version){.next = c->versions,
                               .arena = a,
                               .described = dgm_arena_dup(a, described),
                               .card = c->card, /* with what the server has added */
                               .made_s = dgm_loop_unix_ms() / 1000};
    v->card.name = made.name;
    v->card.description = made.description;
    v->card.version = made.version;
    v->card.default_input_modes = made.default_input_modes;
    v->card.default_output_modes = made.default_output_modes;
    v->card.skills = made.skills;
    c->n_versions++;
    return c->versions = v;
}

static const dgm_agent_card *card_now(dgm_a2a_card *c, int64_t *ret_made_s)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_str described = {0};
    *ret_made_s = c->o.made_s;
    if (c->o.describe)
        described = c->o.describe(c->o.describe_user, c->o.agent, a);
    if (described.n <= 2) /* {} */
        return &c->card;
    pthread_mutex_lock(&c->lock);
    struct card_version *v = c->versions;
    while (v && !dgm_str_eq(v->described, described))
        v = v->next;
    if (!v)
        v = version_add(c, described);
    pthread_mutex_unlock(&c->lock);
    if (v && v->made_s > *ret_made_s)
        *ret_made_s = v->made_s;
    return v ? &v->card : &c->card;
}

/* ---- telling ---------------------------------------------------------------------------------------------------------- */

static void add_interfaces(dgm_agent_interfaces *list, dgm_str rpc, dgm_str rest, dgm_str version)
{
    list->at[list->n++] = (dgm_agent_interface){
        .url = rpc, .protocol_binding = DGM_STR("JSONRPC"), .protocol_version = version};
    list->at[list->n++] = (dgm_agent_interface){
        .url = rest, .protocol_binding = DGM_STR("HTTP+JSON"), .protocol_version = version};
}

const dgm_agent_card *dgm_a2a_card_of(const dgm_a2a_card *c)
{
    return &c->card;
}

static const dgm_agent_card *card_for(dgm_a2a_card *c, dgm_arena *a, const dgm_http_request *r,
                                      int64_t *ret_made_s)
{
    dgm_agent_card *card = dgm_new(a, dgm_agent_card);
    dgm_str address = dgm_front_address(a, r, c->o.public_url);
    /* REST clients put "/message:send" after the address of the card, JSON-RPC clients nothing. */
    dgm_str rest = dgm_arena_printf(a, "%.*s%.*s", DGM_P(address), DGM_P(c->o.path));
    dgm_str rpc = dgm_arena_printf(a, "%.*s/", DGM_P(rest));
    *card = *card_now(c, ret_made_s);
    card->interfaces = (dgm_agent_interfaces){dgm_new_n(a, dgm_agent_interface, 4), 0};
    if (c->o.v10)
        add_interfaces(&card->interfaces, rpc, rest, DGM_STR("1.0"));
    if (c->o.v03)
        add_interfaces(&card->interfaces, rpc, rest, DGM_STR("0.3"));
    return card;
}

const dgm_agent_card *dgm_a2a_card_for(dgm_a2a_card *c, dgm_arena *a, const dgm_http_request *r)
{
    int64_t made_s;
    return card_for(c, a, r, &made_s);
}

static dgm_str card_text(dgm_arena *a, const dgm_codec *codec, const dgm_agent_card *card)
{
    dgm_frame frame = {.object = {DGM_OBJECT_CARD, (void *)(uintptr_t)card}};
    dgm_str text;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &b};
    codec->encode(&w, &frame, NULL);
    text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static void put_both(dgm_buf *b, const yyjson_val *one, const yyjson_val *other);

static void put_both_objects(dgm_buf *b, const yyjson_val *one, const yyjson_val *other)
{
    yyjson_val *key, *v;
    size_t i, n;
    const char *comma = "";
    dgm_buf_add_char(b, '{');
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)one, i, n, key, v) {
        dgm_buf_printf(b, "%s", comma);
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_char(b, ':');
        put_both(b, v, dgm_json_get(other, dgm_json_str(key)));
        comma = ",";
    }
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)other, i, n, key, v) {
        if (dgm_json_get(one, dgm_json_str(key)))
            continue;
        dgm_buf_printf(b, "%s", comma);
        dgm_json_put_str(b, dgm_json_str(key));
        dgm_buf_add_char(b, ':');
        dgm_json_put(b, v);
        comma = ",";
    }
    dgm_buf_add_char(b, '}');
}

/* The members of both; where both have a plain value, one's. Lists (skills) are of the same length. */
static void put_both(dgm_buf *b, const yyjson_val *one, const yyjson_val *other)
{
    yyjson_val *v;
    size_t i, n;
    if (other && yyjson_is_obj((yyjson_val *)(uintptr_t)one)) {
        put_both_objects(b, one, other);
    } else if (other && yyjson_is_arr((yyjson_val *)(uintptr_t)one)) {
        dgm_buf_add_char(b, '[');
        yyjson_arr_foreach ((yyjson_val *)(uintptr_t)one, i, n, v) {
            if (i)
                dgm_buf_add_char(b, ',');
            put_both(b, v, yyjson_arr_get((yyjson_val *)(uintptr_t)other, i));
        }
        dgm_buf_add_char(b, ']');
    } else {
        dgm_json_put(b, one);
    }
}

/* Peers read the members they know: those of both versions do not collide. */
static dgm_str card_hybrid(dgm_arena *a, const dgm_agent_card *card)
{
    const yyjson_val *one = dgm_json_parse_trusted(a, card_text(a, &dgm_codec_a2a_10, card));
    const yyjson_val *old = dgm_json_parse_trusted(a, card_text(a, &dgm_codec_a2a_03, card));
    dgm_str text;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    put_both_objects(&b, one, old);
    text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* ---- responses ----------------------------------------------------------------------------------------------------- */

void dgm_card_send(struct op *op, const dgm_http_request *r)
{
    dgm_a2a_card *c = op->front->o.card;
    dgm_arena *a = op->arena;
    int64_t made_s;
    const dgm_agent_card *card = card_for(c, a, r, &made_s);
    bool said;
    bool is_03 = dgm_version_of(r, a, &said) == VERSION_03; /* also without a version */
    bool both = c->o.v03 && is_03 && (said || !c->o.headerless_10);
    dgm_cached it = {.type = DGM_STR("application/json"),
                     .body = both ? card_hybrid(a, card) : card_text(a, &dgm_codec_a2a_10, card),
                     .cache_control =
                         dgm_arena_printf(a, "public, max-age=%lld", (long long)c->o.max_age_s),
                     .vary = DGM_STR("A2A-Version, Origin"),
                     .modified_s = made_s};
    dgm_cached_send(op->x, &it);
}

void dgm_card_send_extended(struct op *op)
{
    static const dgm_http_header not_kept = {{"Cache-Control", 13}, {"private, no-store", 17}};
    const dgm_agent_card *card =
        dgm_a2a_card_for(op->front->o.extended_card, op->arena, dgm_http_request_of(op->x));
    struct scratch *s = dgm_front_scratch(op->front);
    dgm_op_put_head(op, &s->out);
    dgm_buf_add_str(&s->out, card_text(op->arena, op->codec, card));
    dgm_op_put_tail(op, &s->out);
    dgm_op_respond(op, 200, op->rest ? dgm_rest_type(op) : DGM_STR("application/json"),
                   dgm_buf_str(&s->out), &not_kept, 1);
}
