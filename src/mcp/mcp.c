/* mcp/mcp.c - servers and their lists of tools; the sessions are in mcp_session.c. */
#include "mcp/mcp_int.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NAME 32

void dgm_mcp_log(const dgm_mcp *m, const char *fmt, ...)
{
    char line[1024];
    va_list args;
    if (!m->config.on_log)
        return;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (n < 0)
        return;
    m->config.on_log(m->config.log_user,
                     (dgm_str){line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1});
}

bool dgm_mcp_is_name(dgm_str name)
{
    if (!name.n || name.n > MAX_NAME)
        return false;
    bool after_letter = false;
    for (size_t i = 0; i < name.n; i++) {
        bool is_letter = isalnum((unsigned char)name.p[i]);
        if (!is_letter && !(after_letter && (name.p[i] == '_' || name.p[i] == '-')))
            return false;
        after_letter = is_letter;
    }
    return after_letter;
}

/* ---- open, close -------------------------------------------------------------------------------------- */

static const char *copy_cstr(dgm_arena *a, const char *text)
{
    return text ? dgm_arena_dup(a, dgm_str_from(text)).p : NULL;
}

static const char *const *copy_list(dgm_arena *a, const char *const *list)
{
    size_t n = 0;
    if (!list)
        return NULL;
    while (list[n])
        n++;
    const char **copy = dgm_new_n(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = copy_cstr(a, list[i]);
    return copy;
}

/* The token is one of the headers. */
static void copy_headers(dgm_arena *a, dgm_mcp_config *c)
{
    dgm_fetch_header *headers = dgm_new_n(a, dgm_fetch_header, c->n_headers + 1);
    for (size_t i = 0; i < c->n_headers; i++)
        headers[i] = (dgm_fetch_header){dgm_arena_dup(a, c->headers[i].name),
                                        dgm_arena_dup(a, c->headers[i].value)};
    if (c->token.n)
        headers[c->n_headers++] = (dgm_fetch_header){
            DGM_STR("Authorization"), dgm_arena_printf(a, "Bearer %.*s", DGM_P(c->token))};
    c->headers = headers;
    c->token = (dgm_str){0};
}

static void set_default(uint64_t *value, uint64_t def)
{
    if (!*value)
        *value = def;
}

static void copy_config(dgm_arena *a, dgm_mcp_config *c)
{
    c->name = dgm_arena_dup(a, c->name);
    c->argv = copy_list(a, c->argv);
    c->env = copy_list(a, c->env);
    c->cwd = copy_cstr(a, c->cwd);
    c->url = copy_cstr(a, c->url);
    copy_headers(a, c);
    c->tls.ca_file = copy_cstr(a, c->tls.ca_file);
    c->tls.cert_file = copy_cstr(a, c->tls.cert_file);
    c->tls.key_file = copy_cstr(a, c->tls.key_file);
    c->client_version = c->client_version ? copy_cstr(a, c->client_version) : "0";
    set_default(&c->timeout_ms, 60000);
    set_default(&c->start_ms, 30000);
    set_default(&c->idle_ms, 300000);
    set_default(&c->grace_ms, 2000);
    set_default(&c->answer_ms, 3600000);
    c->max_calls = c->max_calls ? c->max_calls : 64;
}

static dgm_code mcp_invalid(dgm_err *err, const char *member, const char *what)
{
    return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT(NULL, dgm_str_from(member)), "%s", what);
}

static dgm_code check_header(const dgm_fetch_header *h, dgm_err *err)
{
    for (size_t i = 0; i < h->name.n; i++) {
        if (h->name.p[i] <= ' ' || h->name.p[i] == ':' || h->name.p[i] == 0x7f)
            return mcp_invalid(err, "headers", "invalid name of a header");
    }
    for (size_t i = 0; i < h->value.n; i++) {
        if ((unsigned char)h->value.p[i] < ' ' && h->value.p[i] != '\t')
            return mcp_invalid(err, "headers", "invalid character in the value of a header");
    }
    return h->name.n ? DGM_OK : mcp_invalid(err, "headers", "a header without a name");
}

static dgm_code check_config(const dgm_mcp_config *c, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    if (!dgm_mcp_is_name(c->name))
        return mcp_invalid(err, "name",
                           "invalid name of an MCP server: use letters, digits and single - or _ "
                           "between them, at most 32 characters");
    if (!c->argv == !c->url)
        return mcp_invalid(err, c->argv ? "url" : "command", "expected either command or url");
    if (c->argv && !c->argv[0])
        return mcp_invalid(err, "command", "the list is empty");
    if (c->url && !dgm_url_is_same_origin(c->url, c->url))
        return mcp_invalid(err, "url",
                           "expected an http or https URL, as in https://mcp.example.com/mcp");
    for (size_t i = 0; i < c->n_headers && !rc; i++)
        rc = check_header(&c->headers[i], err);
    return rc;
}

dgm_code dgm_mcp_open(const dgm_mcp_config *config, dgm_mcp **ret_mcp, dgm_err *err)
{
    dgm_code rc = check_config(config, err);
    if (rc)
        return rc;
    dgm_arena *a = dgm_arena_new_small(1024);
    dgm_mcp *m = dgm_new(a, dgm_mcp);
    m->arena = a;
    m->config = *config;
    copy_config(a, &m->config);
    atomic_init(&m->refs, 1);
    pthread_mutex_init(&m->lock, NULL);
    *ret_mcp = m;
    return DGM_OK;
}

void dgm_mcp_unref(dgm_mcp *m)
{
    if (atomic_fetch_sub(&m->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&m->lock);
    dgm_arena_free(m->arena);
}

struct mcp_closing {
    dgm_mcp *mcp;
    dgm_loop *loop;
};

static void mcp_close_sessions(void *arg)
{
    struct mcp_closing *k = arg;
    struct mcp_session *next;
    for (struct mcp_session *s = k->mcp->sessions[k->loop->index]; s; s = next) {
        next = s->next;
        dgm_mcp_session_end(s);
    }
    dgm_mcp_unref(k->mcp);
    free(k);
}

void dgm_mcp_close(dgm_mcp *m)
{
    if (!m)
        return;
    atomic_store(&m->is_closing, true);
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < DGM_MAX_LOOPS; i++) {
        if (!m->loops[i])
            continue;
        struct mcp_closing *k = dgm_xcalloc(1, sizeof *k);
        *k = (struct mcp_closing){m, m->loops[i]};
        atomic_fetch_add(&m->refs, 1);
        dgm_loop_post(m->loops[i], mcp_close_sessions, k);
    }
    pthread_mutex_unlock(&m->lock);
    dgm_mcp_unref(m);
}

dgm_str dgm_mcp_name(const dgm_mcp *m)
{
    return m->config.name;
}

dgm_mcp_share dgm_mcp_share_of(const dgm_mcp *m)
{
    return m->config.share;
}

/* ---- lists of tools ----------------------------------------------------------------------------------- */

struct dgm_mcp_listing {
    struct mcp_waiter waiter;
    dgm_mcp_tools_handler handler;
};

static void listing_ready(struct mcp_waiter *w, const dgm_mcp_error *error)
{
    dgm_mcp_listing *l = (dgm_mcp_listing *)w;
    l->handler.on_tools(l->handler.user, error ? NULL : &w->session->tools->tools, error);
    free(l);
}

dgm_mcp_listing *dgm_mcp_list(dgm_mcp *m, dgm_loop *loop, dgm_str share_key,
                              dgm_mcp_tools_handler handler)
{
    dgm_mcp_listing *l = dgm_xcalloc(1, sizeof *l);
    l->waiter.on_ready = listing_ready;
    l->handler = handler;
    dgm_mcp_wait(dgm_mcp_session_find(m, loop, share_key), &l->waiter);
    return l;
}

void dgm_mcp_list_cancel(dgm_mcp_listing *l)
{
    dgm_mcp_leave(&l->waiter);
    free(l);
}
