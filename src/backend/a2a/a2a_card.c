/*
 * backend/a2a/a2a_card.c - the agent card: fetched by the first run, then shared by the runs of all loops.
 *
 * Each loop may use the cached card; the lock protects only the pointer. A card that is not fresh any more is fetched by
 * one run, while the others use the old one. If that fails, the old one is used for a while longer: a server may be
 * reachable although its card is not.
 *
 * If the card names an extended one and there is a credential, that one is fetched behind it and used in its place.
 */
#include "backend/a2a/a2a_int.h"

#include "base/limits.h"

#include <stdlib.h>
#include <strings.h>

#define FRESH_MS 300000 /* of a card that does not say how long */
#define MAX_FRESH_MS 86400000
#define STALE_MS 10000 /* after a card could not be fetched again */
#define MAX_CARD_BYTES ((size_t)1 << 20)
#define EXTENDED_TIMEOUT_S 10.0 /* a run waits for it, and it can do without */

static struct a2a_card *card_ref(struct a2a_card *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void dgm_a2a_card_unref(struct a2a_card *c)
{
    if (c && atomic_fetch_sub(&c->refs, 1) == 1)
        dgm_arena_free(c->arena); /* c lives in it */
}

void dgm_a2a_card_expire(struct a2a_card *c)
{
    atomic_store(&c->fresh_until, 0);
}

struct a2a_card *dgm_a2a_card_cached(struct a2a_agent *x)
{
    struct a2a_card *found = NULL;
    pthread_mutex_lock(&x->lock);
    if (x->card && (x->refreshing || atomic_load(&x->card->fresh_until) > dgm_loop_unix_ms()))
        found = card_ref(x->card);
    else if (x->card)
        x->refreshing = true; /* by the caller */
    pthread_mutex_unlock(&x->lock);
    return found;
}

/* ---- what a card says --------------------------------------------------------------------------------------------------- */

static const dgm_security_scheme *scheme_named(const dgm_agent_card *card, dgm_str name)
{
    for (size_t i = 0; i < card->security_schemes.n; i++) {
        if (dgm_str_eq(card->security_schemes.at[i].name, name))
            return &card->security_schemes.at[i];
    }
    return NULL;
}

/* The scheme of the first requirement that one token fulfils; NULL: none. */
static const dgm_security_scheme *usable_scheme(const dgm_agent_card *card)
{
    for (size_t i = 0; i < card->security_requirements.n; i++) {
        const dgm_required_schemes *all = &card->security_requirements.at[i].schemes;
        const dgm_security_scheme *s = all->n == 1 ? scheme_named(card, all->at[0].name) : NULL;
        if (s && s->kind != DGM_SCHEME_NONE && s->kind != DGM_SCHEME_MTLS &&
            !(s->kind == DGM_SCHEME_API_KEY && dgm_str_is(s->location, "query")))
            return s;
    }
    return NULL;
}

/* The credential in the header that the card names. The token is the last of the headers. */
static void use_scheme(const struct a2a_agent *x, struct a2a_card *c, const dgm_agent_card *card)
{
    const dgm_security_scheme *s = usable_scheme(card);
    if (!s || !x->token.n || x->has_own_header)
        return;
    dgm_fetch_header *all = dgm_new_n(c->arena, dgm_fetch_header, c->remote.n_headers);
    memcpy(all, c->remote.all_headers, c->remote.n_headers * sizeof *all);
    dgm_fetch_header *token = &all[c->remote.n_headers - 1];
    if (s->kind == DGM_SCHEME_API_KEY && dgm_str_is(s->location, "cookie"))
        *token = (dgm_fetch_header){
            DGM_STR("Cookie"),
            dgm_arena_printf(c->arena, "%.*s=%.*s", DGM_P(s->key_name), DGM_P(x->token))};
    else if (s->kind == DGM_SCHEME_API_KEY && s->key_name.n)
        *token = (dgm_fetch_header){dgm_arena_dup(c->arena, s->key_name), x->token};
    else if (s->kind == DGM_SCHEME_HTTP && s->scheme.n &&
             !dgm_str_eq_nocase(s->scheme, DGM_STR("bearer")) &&
             !memchr(x->token.p, ' ', x->token.n))
        *token = (dgm_fetch_header){
            DGM_STR("Authorization"),
            dgm_arena_printf(c->arena, "%.*s %.*s", DGM_P(s->scheme), DGM_P(x->token))};
    c->remote.all_headers = all;
}

static bool is_local_name(dgm_str host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "0.0.0.0", "[::1]", "[::]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (dgm_str_eq_nocase(host, dgm_str_from(names[i])))
            return true;
    }
    return false;
}

/* The host and the port of a URL, and where they end. */
static size_t host_of(const char *url, dgm_str *ret_host, dgm_str *ret_port)
{
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    size_t n = strcspn(start, "/?#");
    const char *colon = NULL;
    for (size_t i = 0; i < n; i++)
        colon = start[i] == ':' ? start + i : start[i] == ']' ? NULL : colon;
    *ret_host = (dgm_str){start, colon ? (size_t)(colon - start) : n};
    *ret_port = colon ? (dgm_str){colon + 1, n - ret_host->n - 1} : (dgm_str){start + n, 0};
    return (size_t)(start - url) + n;
}

/* Many cards name the address that the server listens on (localhost, 0.0.0.0), which means the server that the card is from:
 * the address of the settings is used instead, unless both are local and the ports differ. */
static dgm_str local_interface(dgm_arena *a, const char *configured, dgm_str url)
{
    dgm_str own_host, own_port, host, port;
    const char *text = dgm_arena_dup(a, url).p;
    size_t own_n = host_of(configured, &own_host, &own_port), n = host_of(text, &host, &port);
    if (!is_local_name(host) || dgm_url_is_same_origin(configured, text) ||
        (is_local_name(own_host) && !dgm_str_eq(own_port, port)))
        return url;
    return dgm_arena_printf(a, "%.*s%s", (int)own_n, configured, text + n);
}

static struct a2a_card *card_new(const struct a2a_agent *x)
{
    dgm_arena *a = dgm_arena_new_small(1024);
    struct a2a_card *c = dgm_new(a, struct a2a_card);
    c->arena = a;
    atomic_init(&c->refs, 1);
    c->remote = x->set.remote;
    return c;
}

/* The settings alone. */
static struct a2a_card *card_of_settings(const struct a2a_agent *x)
{
    struct a2a_card *c = card_new(x);
    c->peers[0] = dgm_a2a_peer_at(x->set.remote.url, (dgm_str){0}, x->set.binding == DGM_A2A_REST,
                                  x->set.protocol != DGM_A2A_VERSION_03);
    c->n_peers = 1;
    c->streams = true;
    atomic_init(&c->fresh_until, INT64_MAX);
    return c;
}

/* The interfaces that the settings allow: those of 1.0, then those of 0.3. */
static size_t usable_interfaces(const struct a2a_agent *x, const dgm_agent_card *card,
                                dgm_a2a_peer *peers)
{
    dgm_a2a_version version = (dgm_a2a_version)x->set.protocol;
    dgm_a2a_binding binding = (dgm_a2a_binding)x->set.binding;
    if (version)
        return dgm_a2a_interfaces(card, version, binding, peers, A2A_MAX_INTERFACES);
    size_t n = dgm_a2a_interfaces(card, DGM_A2A_VERSION_10, binding, peers, A2A_MAX_INTERFACES);
    return n +
           dgm_a2a_interfaces(card, DGM_A2A_VERSION_03, binding, peers + n, A2A_MAX_INTERFACES - n);
}

/* NULL: *ret_error is a sentence in the arena. */
static struct a2a_card *card_of_text(const struct a2a_agent *x, dgm_arena *scratch, const char *url,
                                     dgm_str text, const char **ret_error)
{
    const dgm_agent_card *card;
    dgm_a2a_peer peers[A2A_MAX_INTERFACES];
    size_t n;
    dgm_err err = {0};
    if (dgm_a2a_read_card(scratch, text, NULL, &card, &err)) {
        *ret_error = dgm_arena_printf(scratch, "%s is not an agent card: %s%s%s", url, err.msg,
                                      err.at[0] ? " at " : "", err.at)
                         .p;
        return NULL;
    }
    if ((n = usable_interfaces(x, card, peers)) == 0) {
        dgm_buf offers;
        dgm_buf_init(&offers, 500);
        dgm_a2a_list_interfaces(card, &offers);
        *ret_error = dgm_arena_printf(scratch,
                                      "the agent card at %s has no interface that can be used "
                                      "(JSONRPC or HTTP+JSON, A2A 1.0 or 0.3%s): %.*s",
                                      url,
                                      x->set.protocol || x->set.binding
                                          ? ", as the settings protocol and binding want it"
                                          : "",
                                      DGM_P(dgm_buf_str(&offers)))
                         .p;
        dgm_buf_done(&offers);
        return NULL;
    }
    struct a2a_card *c = card_new(x);
    for (; c->n_peers < n; c->n_peers++) {
        dgm_a2a_peer *peer = &c->peers[c->n_peers];
        *peer = peers[c->n_peers];
        peer->url =
            dgm_arena_dup(c->arena, local_interface(scratch, x->set.remote.url.p, peer->url));
        peer->tenant = dgm_arena_dup(c->arena, peer->tenant);
    }
    c->streams = card->capabilities.streaming == DGM_TRUE;
    c->has_extended = card->capabilities.extended_agent_card == DGM_TRUE;
    use_scheme(x, c, card);
    return c;
}

/* ---- fetching --------------------------------------------------------------------------------------------------------------- */

struct a2a_fetch {
    struct a2a_agent *agent;
    dgm_run *run;
    a2a_on_card on_card;
    void *arg;
    dgm_arena *arena;
    dgm_remote_call *call;
    size_t index; /* of the address */
    const char *url;
    struct a2a_card *made;
    struct a2a_card *extended;       /* that for callers with a credential, in place of `made` */
    const char *error, *first_error; /* of this address; of the first one */
    dgm_str etag;
    int64_t fresh_ms;
};

static void fetch_free(struct a2a_fetch *f)
{
    dgm_a2a_card_unref(f->made);
    dgm_a2a_card_unref(f->extended);
    dgm_arena_free(f->arena); /* f lives in it */
}

/* max-age=600 */
static int64_t max_age(dgm_str control)
{
    for (size_t i = 0; i + 8 < control.n; i++) {
        if (strncasecmp(control.p + i, "max-age=", 8) == 0) {
            int64_t seconds = 0;
            for (i += 8; i < control.n && control.p[i] >= '0' && control.p[i] <= '9'; i++)
                seconds = seconds < 1000000 ? 10 * seconds + (control.p[i] - '0') : seconds;
            return seconds * 1000 < MAX_FRESH_MS ? seconds * 1000 : MAX_FRESH_MS;
        }
    }
    return FRESH_MS;
}

static void card_on_head(void *user, const dgm_fetch_head *head)
{
    struct a2a_fetch *f = user;
    f->etag = dgm_arena_dup(f->arena, dgm_fetch_header_of(head, "etag"));
    f->fresh_ms = max_age(dgm_fetch_header_of(head, "cache-control"));
}

static void card_on_item(void *user, const dgm_frames_item *item)
{
    struct a2a_fetch *f = user;
    if (f->made || f->error)
        return;
    f->made = card_of_text(f->agent, f->arena, f->url, item->text, &f->error);
}

/* Replaces the cached card, or keeps the old one; the caller gets a reference, NULL if no card is known. */
static struct a2a_card *publish(struct a2a_fetch *f, bool is_unchanged)
{
    struct a2a_agent *x = f->agent;
    struct a2a_card *old = NULL, *result = NULL;
    int64_t now = dgm_loop_unix_ms();
    pthread_mutex_lock(&x->lock);
    if (f->made) {
        old = x->card;
        x->card = dgm_take(f->made);
        x->card->etag = dgm_arena_dup(x->card->arena, f->etag);
        atomic_store(&x->card->fresh_until, now + f->fresh_ms);
    } else if (x->card) {
        atomic_store(&x->card->fresh_until, now + (is_unchanged ? f->fresh_ms : STALE_MS));
        atomic_store(&x->card->preferred, 0); /* it may be reachable again */
    }
    if (x->card)
        result = card_ref(x->card);
    x->refreshing = false;
    pthread_mutex_unlock(&x->lock);
    dgm_a2a_card_unref(old);
    return result;
}

static void card_request(struct a2a_fetch *f);

static void card_fetched(struct a2a_fetch *f, bool is_unchanged)
{
    struct a2a_card *card = publish(f, is_unchanged);
    f->on_card(f->arg, card, card ? NULL : f->error);
    fetch_free(f);
}

/* ---- the extended card ---------------------------------------------------------------------------------------------------- */

/* The card in the answer to a JSON-RPC request; absent: f->error is why. */
static dgm_str extended_result(struct a2a_fetch *f, dgm_str text)
{
    yyjson_val *v;
    dgm_err err = {0};
    dgm_peer_error *e;
    dgm_str copy = dgm_arena_dup(f->arena, text);
    if (dgm_json_read(f->arena, copy, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &err))
        f->error = dgm_arena_dup(f->arena, dgm_str_from(err.msg)).p;
    else if (yyjson_is_obj(dgm_json_get(v, DGM_STR("result"))))
        return dgm_json_text_in(f->arena, dgm_json_get(v, DGM_STR("result")));
    else if ((e = dgm_a2a_error_of(f->arena, f->made->peers[0].codec, copy)))
        f->error = dgm_a2a_error_sentence(f->arena, e);
    else
        f->error = "the answer has no result";
    return (dgm_str){0};
}

static void extended_on_item(void *user, const dgm_frames_item *item)
{
    struct a2a_fetch *f = user;
    dgm_str text = item->text;
    if (f->extended || f->error)
        return;
    if (!f->made->peers[0].is_rest)
        text = extended_result(f, text);
    if (text.n)
        f->extended = card_of_text(f->agent, f->arena, f->made->peers[0].url.p, text, &f->error);
}

/* Without it the public card is used. */
static void extended_on_end(void *user, const dgm_remote_end *end)
{
    struct a2a_fetch *f = user;
    f->call = NULL;
    if (f->extended) {
        dgm_a2a_card_unref(f->made);
        f->made = dgm_take(f->extended);
    } else {
        const char *why = f->error ? f->error : end->error ? end->error : "the answer is empty";
        dgm_run_note(f->run, "the extended agent card cannot be used, so the public one is: %s",
                     why);
    }
    card_fetched(f, false);
}

/* Is there an extended card, and a credential that may be sent to its address? */
static bool wants_extended(const struct a2a_card *c)
{
    return c->has_extended && (c->remote.n_credentials || c->remote.client_cert.n) &&
           dgm_url_is_same_origin(c->remote.url.p, c->peers[0].url.p);
}

/* false: it cannot be requested. */
static bool extended_request(struct a2a_fetch *f)
{
    const struct a2a_card *c = f->made;
    dgm_task_request params = {.tenant = dgm_a2a_tenant_of(&c->peers[0])};
    dgm_err err = {0};
    double limit = f->agent->set.remote.answer_timeout;
    f->error = NULL; /* that of an address without a card */
    struct a2a_operation o = {
        .remote = &c->remote,
        .peer = &c->peers[0],
        .method = DGM_METHOD_EXTENDED_CARD,
        .params = &params,
        .max_bytes = MAX_CARD_BYTES,
        .answer_timeout = limit < EXTENDED_TIMEOUT_S ? limit : EXTENDED_TIMEOUT_S,
    };
    f->call = dgm_a2a_call(
        f->agent, f->run, &o,
        (dgm_remote_handler){.on_item = extended_on_item, .on_end = extended_on_end, .user = f},
        &err);
    return f->call;
}

/* ---- the public card ------------------------------------------------------------------------------------------------------ */

static void card_on_end(void *user, const dgm_remote_end *end)
{
    struct a2a_fetch *f = user;
    f->call = NULL;
    if (!f->made && !f->error)
        f->error = dgm_arena_printf(f->arena, "no agent card at %s: %s", f->url,
                                    end->error ? end->error : "the answer is empty")
                       .p;
    if (!f->made && (end->status == 404 || end->status == 405) &&
        dgm_a2a_card_url(f->arena, f->agent->set.remote.url.p, f->index + 1)) {
        f->index++;
        f->first_error = f->error;
        f->error = NULL;
        card_request(f);
        return;
    }
    if (f->first_error)
        f->error = f->first_error;
    if (!f->made && end->status != 304)
        dgm_run_note(f->run, "%s", f->error);
    if (!f->made || !wants_extended(f->made) || !extended_request(f))
        card_fetched(f, end->status == 304);
}

static void card_request(struct a2a_fetch *f)
{
    struct a2a_agent *x = f->agent;
    dgm_remote_request q = {.method = "GET", .follows = true, .max_bytes = MAX_CARD_BYTES};
    f->url = dgm_a2a_card_url(f->arena, x->set.remote.url.p, f->index);
    q.url = f->url;
    q.headers[q.n_headers++] = (dgm_fetch_header){DGM_STR("Accept"), DGM_STR("application/json")};
    q.headers[q.n_headers++] =
        (dgm_fetch_header){DGM_STR("A2A-Version"),
                           x->set.protocol == DGM_A2A_VERSION_03 ? DGM_STR("0.3") : DGM_STR("1.0")};
    pthread_mutex_lock(&x->lock);
    if (x->card && x->card->etag.n)
        q.headers[q.n_headers++] =
            (dgm_fetch_header){DGM_STR("If-None-Match"), dgm_arena_dup(f->arena, x->card->etag)};
    pthread_mutex_unlock(&x->lock);
    f->call = dgm_remote_start(
        &x->set.remote, f->run, &q,
        (dgm_remote_handler){
            .on_item = card_on_item, .on_end = card_on_end, .user = f, .on_head = card_on_head});
}

struct a2a_fetch *dgm_a2a_card_fetch(struct a2a_agent *x, dgm_run *run, a2a_on_card on_card,
                                     void *arg)
{
    if (x->set.card == 1) {
        on_card(arg, card_of_settings(x), NULL);
        return NULL;
    }
    dgm_arena *a = dgm_arena_new_small(2048);
    struct a2a_fetch *f = dgm_new(a, struct a2a_fetch);
    *f = (struct a2a_fetch){.agent = x, .run = run, .on_card = on_card, .arg = arg, .arena = a};
    card_request(f);
    return f;
}

void dgm_a2a_card_fetch_cancel(struct a2a_fetch *f)
{
    dgm_remote_cancel(f->call);
    pthread_mutex_lock(&f->agent->lock);
    f->agent->refreshing = false;
    pthread_mutex_unlock(&f->agent->lock);
    fetch_free(f);
}
