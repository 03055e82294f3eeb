/*
 * config.c - the layers put together, and what no single setting can know about itself.
 *
 * What must stay true: a config without errors can be started; secrets are in no finding.
 */
#include "config.h"
#include "backend/backend.h"
#include "base/limits.h"
#include "base/list.h"
#include "config_int.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_LAYERS 7 /* profile, file, --store, --listen, --agent, --insecure, --profile */

typedef struct loader {
    const dgm_config_source *source;
    dgm_config *config;
    dgm_arena *arena;
    dgm_config_findings findings;
    dgm_config_doc *layers[MAX_LAYERS];
    size_t n_layers;
} loader;

/* ---- files ------------------------------------------------------------------------------------------------- */

/* The text of a regular file of at most max bytes; absent, and *ret_why says why. */
static dgm_str config_read_file(dgm_arena *a, const char *path, size_t max, const char **ret_why)
{
    struct stat st;
    dgm_str text = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not keep us waiting */
    if (fd < 0) {
        *ret_why = strerror(errno);
        return text;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        *ret_why = "it is not a regular file";
    } else if ((size_t)st.st_size > max) {
        *ret_why = "it is too large";
    } else {
        char *p = dgm_arena_alloc(a, (size_t)st.st_size + 1);
        size_t n = 0;
        long got = 1;
        while (n < (size_t)st.st_size && (got = read(fd, p + n, (size_t)st.st_size - n)) > 0)
            n += (size_t)got;
        if (got < 0)
            *ret_why = strerror(errno);
        else
            text = (dgm_str){p, n};
    }
    close(fd);
    return text;
}

static bool ends_in(dgm_str s, dgm_str end)
{
    return s.n >= end.n && dgm_str_eq((dgm_str){s.p + s.n - end.n, end.n}, end);
}

static dgm_str folder_of(dgm_str path)
{
    size_t n = path.n;
    while (n && path.p[n - 1] != '/')
        n--;
    return (dgm_str){path.p, n > 1 ? n - 1 : n};
}

/* ---- layers ------------------------------------------------------------------------------------------------- */

static dgm_config_doc *add_layer(loader *l, dgm_str file)
{
    dgm_config_doc *doc = dgm_new(l->arena, dgm_config_doc);
    doc->file = file;
    l->layers[l->n_layers++] = doc;
    return doc;
}

static void add_file(loader *l)
{
    dgm_str file = dgm_arena_dup(l->arena, dgm_str_from(l->source->file)), text = l->source->text;
    dgm_config_doc *doc;
    const char *why = NULL;
    if (!file.p && !text.p)
        return;
    doc = add_layer(l, file.p ? file : DGM_STR("config"));
    doc->folder = dgm_arena_dup(l->arena, folder_of(doc->file));
    l->config->file = file;
    if (!text.p)
        text = config_read_file(l->arena, file.p, DGM_MAX_CONFIG_BYTES, &why);
    if (why) {
        dgm_config_find(&l->findings, (dgm_config_said){.doc = doc},
                        DGM_STR("name an existing file; `dragoman init exec` writes one"),
                        "cannot read it: %s", why);
        return;
    }
    dgm_config_doc_read(doc, l->arena, text, ends_in(doc->file, DGM_STR(".json")),
                        l->source->env ? l->source->env : (const char *(*)(const char *))getenv,
                        &l->findings);
}

/* {"name": value} as it is on the command line; value is JSON. */
static void add_option(loader *l, dgm_str option, const char *name, dgm_str value)
{
    dgm_config_doc *doc = add_layer(l, option);
    doc->root = dgm_json_parse_trusted(
        l->arena, dgm_arena_printf(l->arena, "{\"%s\":%.*s}", name, DGM_P(value)));
}

/* Text of the command line as JSON; absent, and reported, if it is not UTF-8. */
static dgm_str option_json(loader *l, dgm_str option, const char *text)
{
    dgm_str s = dgm_str_from(text);
    dgm_config_doc doc = {.file = option};
    dgm_buf b;
    if (dgm_utf8_check(s) != s.n || s.n > DGM_MAX_CONFIG_ENV_BYTES) {
        dgm_config_find(&l->findings, (dgm_config_said){.doc = &doc}, DGM_STR("write it in UTF-8"),
                        "this is not text");
        return (dgm_str){0};
    }
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put_str(&b, s);
    s = dgm_arena_dup(l->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return s;
}

static void add_options(loader *l)
{
    const struct {
        dgm_str option;
        const char *name, *text;
    } texts[] = {{DGM_STR("--listen"), "listen", l->source->listen},
                 {DGM_STR("--store"), "store", l->source->store},
                 {DGM_STR("--profile"), "profile", l->source->profile}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dgm_str json;
        if (texts[i].text && (json = option_json(l, texts[i].option, texts[i].text)).p)
            add_option(l, texts[i].option, texts[i].name, json);
    }
    if (l->source->insecure)
        add_option(l, DGM_STR("--insecure"), "insecure", DGM_STR("true"));
    if (l->source->agents.p)
        add_option(l, DGM_STR("the command line"), "agents", l->source->agents);
    if (l->source->agent) {
        dgm_str type = option_json(l, DGM_STR("--agent"), l->source->agent);
        if (type.p)
            add_option(l, DGM_STR("--agent"), "agents",
                       dgm_arena_printf(l->arena, "[{\"type\":%.*s}]", DGM_P(type)));
    }
}

static const char *profile_at(const void *names, size_t i)
{
    (void)names;
    return dgm_config_profile(i);
}

/* The profile is named by a layer above it: look there first, then put it below. */
static void add_profile(loader *l)
{
    const dgm_config_profile_row *found;
    dgm_config_doc *says = NULL;
    yyjson_val *v = NULL, *member;
    for (size_t i = 0; i < l->n_layers; i++) {
        member = dgm_json_get(l->layers[i]->root, DGM_STR("profile"));
        if (yyjson_is_str(member)) { /* else: reported when the layer is read */
            v = member;
            says = l->layers[i];
        }
    }
    if (!v || !dgm_json_str(v).n)
        return;
    if (!(found = dgm_config_profile_find(dgm_json_str(v)))) {
        const char *nearest = dgm_config_nearest(dgm_json_str(v), profile_at, NULL);
        dgm_config_find(&l->findings, dgm_config_said_by(says, v, DGM_AT_LIT(NULL, "profile")),
                        dgm_arena_printf(l->arena,
                                         nearest ? "did you mean \"%s\"?" : "allowed values: %s",
                                         nearest ? nearest : dgm_config_profile(0)),
                        "unknown profile");
        return;
    }
    add_layer(l, dgm_arena_printf(l->arena, "profile %s", found->name))->root =
        dgm_json_parse_trusted(l->arena, dgm_str_from(found->json));
    for (size_t i = l->n_layers - 1; i > 0; i--) {
        dgm_config_doc *below = l->layers[i - 1];
        l->layers[i - 1] = l->layers[i];
        l->layers[i] = below;
    }
}

/* ---- where a value is set --------------------------------------------------------------------------------------------- */

/* Where the value at this place is in the uppermost layer that has it; keys as in DGM_AT. */
static dgm_config_said said(loader *l, const dgm_at *at)
{
    const dgm_at *steps[16];
    size_t n = 0;
    for (const dgm_at *s = at; s && n < 16; s = s->up)
        steps[n++] = s;
    for (size_t i = l->n_layers; i-- > 0;) {
        yyjson_val *v = l->layers[i]->root;
        yyjson_val *list = dgm_json_get(v, steps[n - 1]->key); /* lists come from one layer */
        for (size_t s = n; s-- > 0 && v;)
            v = steps[s]->key.p ? dgm_json_get(v, steps[s]->key) : dgm_config_item(v, steps[s]->i);
        bool may_be_map =
            dgm_str_is(steps[n - 1]->key, "agents") || dgm_str_is(steps[n - 1]->key, "mcp");
        if (v || (list && (yyjson_is_arr(list) || may_be_map)))
            return dgm_config_said_by(l->layers[i], v ? v : list, at);
    }
    return (dgm_config_said){.at = at};
}

/* ---- what settings know of each other ------------------------------------------------------------------------ */

static bool is_loopback(dgm_str listen)
{
    unsigned char six[16] = {0};
    static const unsigned char one[16] = {[15] = 1};
    char host[64] = "";
    if (dgm_str_starts(listen, DGM_STR("unix:")) || dgm_str_starts(listen, DGM_STR("127.")) ||
        dgm_str_starts(listen, DGM_STR("localhost:")))
        return true;
    if (listen.p[0] != '[')
        return false;
    sscanf(listen.p, "[%63[^]]", host);
    return inet_pton(AF_INET6, host, six) == 1 && memcmp(six, one, sizeof one) == 0;
}

static void check_listen(loader *l)
{
    dgm_config *c = l->config;
    dgm_str localhost = DGM_STR("localhost:");
    if (dgm_str_starts(c->listen, localhost))
        c->listen = dgm_arena_printf(l->arena, "127.0.0.1:%s", c->listen.p + localhost.n);
    c->is_loopback = is_loopback(c->listen);
    if (c->is_loopback)
        return;
    if (!c->tokens.n && !c->insecure) {
        dgm_config_find(
            &l->findings, said(l, DGM_AT_LIT(NULL, "listen")),
            DGM_STR("add tokens, or listen on 127.0.0.1, or set insecure: true"
                    " (--insecure)"),
            "other machines can reach %s, and without tokens every caller may do everything",
            c->listen.p);
    } else if (c->tokens.n && !c->tls_cert.n) {
        dgm_config_said where = said(l, DGM_AT_LIT(NULL, "listen"));
        where.is_warning = true;
        dgm_config_find(&l->findings, where,
                        DGM_STR("set tls, unless a proxy in front of this server uses TLS"),
                        "tokens are sent to %s without encryption", c->listen.p);
    }
}

static void check_readable(loader *l, const dgm_at *at, dgm_str path)
{
    if (path.n && !l->source->no_files && access(path.p, R_OK))
        dgm_config_find(&l->findings, said(l, at), DGM_STR("name an existing file"),
                        "cannot read %s: %s", path.p, strerror(errno));
}

static dgm_str without_newline(dgm_str s)
{
    while (s.n && (s.p[s.n - 1] == '\n' || s.p[s.n - 1] == '\r'))
        s.n--;
    return s;
}

/* The secret of a token, from where it is; absent, and reported, if it cannot be read. */
static dgm_str secret_of(loader *l, const dgm_config_token *t, const dgm_at *at)
{
    const char *why = NULL, *value;
    dgm_str s = t->token;
    const dgm_at *where = DGM_AT(at, t->token_env.p    ? DGM_STR("token_env")
                                     : t->token_file.p ? DGM_STR("token_file")
                                                       : DGM_STR("token"));
    if (t->token_env.p) {
        value = l->source->env ? l->source->env(t->token_env.p) : getenv(t->token_env.p);
        if (!value || !*value)
            why = "the environment variable is not set, or empty";
        s = dgm_arena_dup(l->arena, dgm_str_from(value));
    } else if (t->token_file.p) {
        if (l->source->no_files)
            return DGM_STR("not-read");
        s = without_newline(config_read_file(l->arena, t->token_file.p, 65536, &why));
    }
    for (size_t i = 0; i < s.n && !why; i++)
        if ((unsigned char)s.p[i] <= 0x20 || (unsigned char)s.p[i] >= 0x7F)
            why = "a secret has only visible ASCII characters, without spaces";
    if (!why && !s.n)
        why = "it is empty";
    if (why) {
        dgm_config_find(&l->findings, said(l, where), DGM_STR("set it to a secret"),
                        "missing secret: %s", why);
        return (dgm_str){0};
    }
    return s;
}

static bool has_str(const dgm_strs *strs, dgm_str s)
{
    for (size_t i = 0; i < strs->n; i++)
        if (dgm_str_eq(strs->at[i], s))
            return true;
    return false;
}

/* Variables that settings of agents name: keys of models, tokens for remote agents and services. Tools have settings of their own,
 * so members of the settings are searched, too. */
static void collect_keys(dgm_arena *a, yyjson_val *settings, dgm_strs *names)
{
    size_t i, n;
    yyjson_val *key, *v;
    if (yyjson_is_arr(settings)) {
        yyjson_arr_foreach (settings, i, n, v)
            collect_keys(a, v, names);
        return;
    }
    yyjson_obj_foreach (settings, i, n, key, v) {
        dgm_str name = dgm_json_str(key);
        if (yyjson_is_str(v) &&
            (dgm_str_is(name, "api_key_env") || dgm_str_is(name, "token_env"))) {
            names->at = dgm_list_grow(a, names->at, names->n, sizeof *names->at);
            names->at[names->n++] = dgm_json_str(v);
        } else {
            collect_keys(a, v, names);
        }
    }
}

static void collect_secret_env(loader *l)
{
    dgm_config *c = l->config;
    dgm_strs keys = {0};
    for (size_t i = 0; i < c->agents.n; i++)
        collect_keys(l->arena, (yyjson_val *)(uintptr_t)c->agents.at[i].settings, &keys);
    size_t n = c->tokens.n + c->mcp.n + keys.n + 1;
    for (size_t i = 0; i < l->n_layers; i++)
        n += l->layers[i]->secret_env.n;
    c->secret_env.at = dgm_new_n(l->arena, dgm_str, n);
    if (dgm_str_starts(c->store, DGM_STR("postgres:")))
        c->secret_env.at[c->secret_env.n++] = DGM_STR("PGPASSWORD");
    for (size_t i = 0; i < c->tokens.n; i++)
        if (c->tokens.at[i].token_env.n)
            c->secret_env.at[c->secret_env.n++] = c->tokens.at[i].token_env;
    for (size_t i = 0; i < c->mcp.n; i++)
        if (c->mcp.at[i].token_env.n)
            c->secret_env.at[c->secret_env.n++] = c->mcp.at[i].token_env;
    for (size_t i = 0; i < keys.n; i++)
        if (keys.at[i].n)
            c->secret_env.at[c->secret_env.n++] = keys.at[i];
    for (size_t i = 0; i < l->n_layers; i++)
        for (size_t j = 0; j < l->layers[i]->secret_env.n; j++)
            c->secret_env.at[c->secret_env.n++] = l->layers[i]->secret_env.at[j];
}

static void check_tokens(loader *l)
{
    dgm_config *c = l->config;
    const dgm_at *list = DGM_AT_LIT(NULL, "tokens");
    dgm_strs named = c->tenants;
    dgm_strs all = {dgm_new_n(l->arena, dgm_str, named.n + c->tokens.n), 0};
    for (size_t i = 0; i < named.n; i++) {
        if (named.at[i].n && has_str(&all, named.at[i]))
            dgm_config_find(&l->findings, said(l, DGM_AT_I(DGM_AT_LIT(NULL, "tenants"), i)),
                            DGM_STR("remove one of them"), "the same tenant twice");
        else
            all.at[all.n++] = named.at[i];
    }
    for (size_t i = 0; i < c->tokens.n; i++) {
        dgm_config_token *t = &c->tokens.at[i];
        const dgm_at *at = DGM_AT_I(list, i);
        int given = !!t->token.p + !!t->token_env.p + !!t->token_file.p;
        if (given != 1) {
            dgm_config_find(&l->findings, said(l, at),
                            DGM_STR("set one of token, token_env and token_file"),
                            given ? "more than one secret" : "missing secret");
            continue;
        }
        t->secret = secret_of(l, t, at);
        for (size_t j = 0; j < i && t->secret.p; j++) {
            const dgm_config_token *u = &c->tokens.at[j];
            if (u->kind == t->kind && dgm_str_eq(u->secret, t->secret) &&
                (t->kind == DGM_TOKEN_BEARER || dgm_str_eq_nocase(u->header, t->header)))
                dgm_config_find(&l->findings, said(l, at),
                                DGM_STR("use a different secret for each token"),
                                "the same secret as /tokens/%zu", j);
        }
        if (named.n && t->tenant.n && !has_str(&named, t->tenant))
            dgm_config_find(&l->findings, said(l, DGM_AT_LIT(at, "tenant")),
                            DGM_STR("add it to tenants, or use one of them"),
                            "unknown tenant \"%.*s\": /tenants does not list it", DGM_P(t->tenant));
        if (t->tenant.n && !has_str(&all, t->tenant))
            all.at[all.n++] = t->tenant;
    }
    c->tenants = all;
}

/* ---- MCP servers ---------------------------------------------------------------------------------------------- */

/* Headers and variables: an object of texts. */
static void check_texts(loader *l, const dgm_json *object, const dgm_at *at)
{
    yyjson_val *key, *item;
    size_t i, n;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)object, i, n, key, item) {
        if (yyjson_is_ctn(item) || yyjson_is_null(item) || !dgm_json_str(key).n)
            dgm_config_find(&l->findings, said(l, at), DGM_STR("write name: value lines"),
                            "the value of \"%.*s\" is not text", DGM_P(dgm_json_str(key)));
    }
}

static void check_mcp_token(loader *l, dgm_config_mcp *m, const dgm_at *at)
{
    const char *value;
    if (!m->token_env.n)
        return;
    value = l->source->env ? l->source->env(m->token_env.p) : getenv(m->token_env.p);
    m->secret = dgm_arena_dup(l->arena, dgm_str_from(value));
    for (size_t i = 0; i < m->secret.n; i++) {
        if ((unsigned char)m->secret.p[i] <= 0x20 || (unsigned char)m->secret.p[i] >= 0x7F)
            m->secret = (dgm_str){0};
    }
    if (!m->secret.n && !l->source->no_files)
        dgm_config_find(&l->findings, said(l, DGM_AT_LIT(at, "token_env")),
                        DGM_STR("set it to a token of visible ASCII characters"),
                        "the environment variable %s is not set, or not a token", m->token_env.p);
}

static void check_mcp(loader *l)
{
    dgm_config *c = l->config;
    const dgm_at *list = DGM_AT_LIT(NULL, "mcp");
    const dgm_config_doc *doc = c->mcp.n ? said(l, list).doc : NULL;
    bool is_map = doc && yyjson_is_obj(dgm_json_get(doc->root, DGM_STR("mcp")));
    for (size_t i = 0; i < c->mcp.n; i++) {
        dgm_config_mcp *m = &c->mcp.at[i];
        const dgm_at *at = DGM_AT_I(list, i);
        if (!m->name.n && is_map)
            continue; /* its key is invalid, or it is not an object: that was reported */
        if (!m->cwd.n && doc && doc->folder.n)
            m->cwd = doc->folder;
        if (!m->name.n)
            dgm_config_find(&l->findings, said(l, at), DGM_STR("write NAME: {command: [PROGRAM]}"),
                            "an MCP server without a name");
        if (!m->command.n == !m->url.n)
            dgm_config_find(&l->findings, said(l, at), DGM_STR("set one of command and url"),
                            m->url.n ? "both command and url" : "missing command or url");
        if (m->share == DGM_CONFIG_SHARE_AUTO)
            m->share = c->tokens.n ? DGM_CONFIG_SHARE_PRINCIPAL : DGM_CONFIG_SHARE_SERVER;
        check_texts(l, m->env, DGM_AT_LIT(at, "env"));
        check_texts(l, m->headers, DGM_AT_LIT(at, "headers"));
        check_mcp_token(l, m, at);
        for (size_t j = 0; j < i; j++) {
            if (m->name.n && dgm_str_eq(m->name, c->mcp.at[j].name))
                dgm_config_find(&l->findings, said(l, at),
                                DGM_STR("use a different name for each server"),
                                "the same name as /mcp/%zu: \"%.*s\"", j, DGM_P(m->name));
        }
    }
}

/* ---- agents ---------------------------------------------------------------------------------------------------- */

/* The agent as it was written in this layer. Agents are a list, or a map by id. */
static yyjson_val *written_agent(const dgm_config_doc *doc, size_t i)
{
    yyjson_val *agents = doc ? dgm_json_get(doc->root, DGM_STR("agents")) : NULL, *key, *item;
    size_t at, n;
    if (yyjson_is_arr(agents))
        return yyjson_arr_get(agents, i);
    yyjson_obj_foreach (agents, at, n, key, item) {
        if (at == i)
            return item;
    }
    return NULL;
}

/* Sets one of an agent's settings to this JSON text, or removes it: empty. */
static void replace_setting(loader *l, dgm_config_agent *a, const char *name, dgm_str value)
{
    yyjson_val *key, *item;
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_char(&b, '{');
    if (value.n) {
        dgm_json_put_str(&b, dgm_str_from(name));
        dgm_buf_add_char(&b, ':');
        dgm_buf_add_str(&b, value);
    }
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)a->settings, i, n, key, item) {
        if (dgm_str_eq(dgm_json_str(key), dgm_str_from(name)))
            continue;
        if (b.n > 1)
            dgm_buf_add_char(&b, ',');
        dgm_json_put_str(&b, dgm_json_str(key));
        dgm_buf_add_char(&b, ':');
        dgm_json_put(&b, item);
    }
    dgm_buf_add_char(&b, '}');
    a->settings = dgm_json_parse_trusted(l->arena, dgm_arena_dup(l->arena, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

/* A program runs in the folder of the file that names it, unless its settings say otherwise: then a
 * server can be started from anywhere. */
static void place_program(loader *l, dgm_config_agent *a, dgm_str folder)
{
    yyjson_val *given = dgm_json_get(a->settings, DGM_STR("cwd"));
    dgm_str cwd = yyjson_is_str(given) ? dgm_json_str(given) : (dgm_str){0};
    dgm_buf b;
    if (!dgm_str_is(a->type, "exec") || !a->settings || !folder.n || (given && !cwd.p) ||
        (cwd.n && cwd.p[0] == '/'))
        return;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_json_put_str(&b, cwd.n ? dgm_arena_printf(l->arena, "%.*s/%.*s", DGM_P(folder), DGM_P(cwd))
                               : folder);
    replace_setting(l, a, "cwd", dgm_buf_str(&b));
    dgm_buf_done(&b);
}

/* `settings: {history: 50}` is `history: 50` of the agent, for types that read a history. */
static void move_history(loader *l, dgm_config_agent *a, const dgm_config_doc *doc,
                         yyjson_val *written, const dgm_at *at)
{
    const dgm_backend *backend = dgm_backend_by_type(a->type);
    const dgm_at *settings_at = DGM_AT_LIT(at, "settings"),
                 *where = DGM_AT_LIT(settings_at, "history");
    yyjson_val *given =
        dgm_json_get(dgm_json_get(written, DGM_STR("settings")), DGM_STR("history"));
    yyjson_val *own = dgm_json_get(written, DGM_STR("history"));
    dgm_config_manner m = l->config->agent_defaults;
    if (!backend || !backend->wants_history || !given)
        return;
    replace_setting(l, a, "history", (dgm_str){0});
    if (yyjson_is_null(given) || !dgm_config_read_value(l->config, doc, dgm_config_history_row,
                                                        given, &m, where, &l->findings))
        return;
    const dgm_config_history *old = &a->manner.history, *new = &m.history;
    if (own && !yyjson_is_null(own) &&
        (old->messages != new->messages || old->bytes != new->bytes || old->tools != new->tools))
        dgm_config_find(&l->findings, dgm_config_said_by(doc, given, where),
                        DGM_STR("remove one of them: both are the same setting"),
                        "history is set twice, in the agent and in its settings");
    else
        a->manner.history = m.history;
}

static void check_agents(loader *l)
{
    dgm_config *c = l->config;
    const dgm_at *list = DGM_AT_LIT(NULL, "agents");
    const dgm_config_doc *doc = said(l, list).doc;
    size_t first_default = SIZE_MAX;
    for (size_t i = 0; i < c->agents.n; i++) {
        dgm_config_agent *a = &c->agents.at[i];
        const dgm_at *at = DGM_AT_I(list, i);
        if (!a->id.p)
            a->id = a->type;
        if (doc) {
            a->folder = doc->folder;
            place_program(l, a, doc->folder);
            move_history(l, a, doc, written_agent(doc, i), at);
        }
        for (size_t j = 0; j < i; j++)
            if (a->id.n && dgm_str_eq(a->id, c->agents.at[j].id)) {
                dgm_config_find(&l->findings, said(l, at),
                                DGM_STR("use a different id for each agent"),
                                "the same id as /agents/%zu: \"%.*s\"", j, DGM_P(a->id));
                break;
            }
        if (a->is_default && first_default != SIZE_MAX)
            dgm_config_find(&l->findings, said(l, DGM_AT_LIT(at, "default")), DGM_STR("choose one"),
                            "/agents/%zu is the default already", first_default);
        else if (a->is_default)
            first_default = i;
    }
    if (first_default == SIZE_MAX && c->agents.n)
        c->agents.at[0].is_default = true;
}

/* What a table cannot know: whether the program is there, for instance. */
static void ask_agent(loader *l, const dgm_config_agent *a, const dgm_config_doc *doc,
                      yyjson_val *written, const dgm_at *at)
{
    dgm_err err = {0};
    if (!l->source->check_agent || !l->source->check_agent(l->config, a, l->source->user, &err))
        return;
    yyjson_val *settings = dgm_json_get(written, DGM_STR("settings"));
    yyjson_val *v = settings && err.at[0] ? yyjson_ptr_get(settings, err.at) : NULL;
    dgm_config_find(&l->findings,
                    dgm_config_said_by(doc,
                                       v          ? v
                                       : settings ? settings
                                                  : written,
                                       DGM_AT_LIT(at, "settings")),
                    DGM_STR("see docs/agents.md"), "%s", err.msg);
    dgm_config_finding *last = &l->findings.at[l->findings.n - 1];
    last->pointer = dgm_arena_printf(l->arena, "%.*s%s", DGM_P(last->pointer), err.at);
}

/* Messages are not stored: the history would have holes. */
static void check_history(loader *l, const dgm_config_agent *a, const dgm_config_doc *doc,
                          yyjson_val *written, const dgm_at *at)
{
    const dgm_backend *backend = dgm_backend_by_type(a->type);
    yyjson_val *reply = written ? dgm_json_get(written, DGM_STR("reply")) : NULL;
    if (!backend || !backend->wants_history || !a->manner.history.messages ||
        a->manner.reply != DGM_CONFIG_REPLY_MESSAGE)
        return;
    dgm_config_said where = reply ? dgm_config_said_by(doc, reply, DGM_AT_LIT(at, "reply"))
                                  : said(l, DGM_AT_LIT(NULL, "agent_defaults"));
    where.is_warning = true;
    dgm_config_find(&l->findings, where,
                    DGM_STR("set reply: task, or history: 0 if the agent needs no history"),
                    "the agent \"%.*s\" answers with Messages, which are not stored: they are "
                    "missing in its history",
                    DGM_P(a->id));
}

static void check_settings(loader *l)
{
    dgm_config *c = l->config;
    const dgm_at *list = DGM_AT_LIT(NULL, "agents");
    const dgm_config_doc *doc = said(l, list).doc;
    for (size_t i = 0; i < c->agents.n; i++) {
        const dgm_config_agent *a = &c->agents.at[i];
        const dgm_at *at = DGM_AT_I(list, i);
        yyjson_val *written = written_agent(doc, i);
        if (!doc || dgm_config_check_settings(a, doc, written, at, &l->findings))
            ask_agent(l, a, doc, written, at);
        check_history(l, a, doc, written, at);
    }
}

/* Was every layer read? If not, what is missing may be in there. */
static bool is_whole(const loader *l)
{
    for (size_t i = 0; i < l->n_layers; i++)
        if (!l->layers[i]->root)
            return false;
    return true;
}

/* The default of `store` depends on whether there is a file. */
static void place_store(loader *l)
{
    dgm_str folder = {0};
    for (size_t i = 0; i < l->n_layers; i++) {
        yyjson_val *v = dgm_json_get(l->layers[i]->root, DGM_STR("store"));
        if (v && !yyjson_is_null(v))
            return;
        folder = l->layers[i]->folder.n ? l->layers[i]->folder : folder; /* only a file has one */
    }
    l->config->store =
        dgm_config_default_store(l->arena, l->source, folder, &l->config->store_is_state);
}

/* The file is printed by `serve --check`, the command line is visible to every user. */
static void check_store(loader *l)
{
    if (dgm_str_starts(l->config->store, DGM_STR("postgres:")) &&
        dgm_config_store_has_secret(l->config->store))
        dgm_config_find(&l->findings, said(l, DGM_AT_LIT(NULL, "store")),
                        DGM_STR("set PGPASSWORD, or write it to a PGPASSFILE or a service file"),
                        "a password in the connection string of PostgreSQL: other users could "
                        "read it");
}

/* ---- in the order of the file ------------------------------------------------------------------------------------ */

static int by_place(const void *pa, const void *pb)
{
    const dgm_config_finding *a = pa, *b = pb;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    int by_pointer = strcmp(a->pointer.p, b->pointer.p);
    return by_pointer ? by_pointer : strcmp(a->what.p, b->what.p);
}

static void sort_findings(loader *l)
{
    size_t n = l->findings.n;
    if (n > DGM_MAX_CONFIG_FINDINGS)
        n = DGM_MAX_CONFIG_FINDINGS; /* the last one says that there are more */
    if (n)
        qsort(l->findings.at, n, sizeof *l->findings.at, by_place);
    l->config->findings = l->findings.at;
    l->config->n_findings = l->findings.n;
    l->config->n_errors = l->findings.n_errors;
}

/* ---- public --------------------------------------------------------------------------------------------------------- */

dgm_config *dgm_config_load(const dgm_config_source *s)
{
    dgm_arena *a = dgm_arena_new();
    dgm_config *c = dgm_new(a, dgm_config);
    loader l = {.source = s, .config = c, .arena = a, .findings = {.arena = a}};
    c->arena = a;
    c->watch = s->watch;
    add_file(&l);
    add_options(&l);
    add_profile(&l);
    dgm_config_read_layers(c, l.layers, l.n_layers, &l.findings);
    if (is_whole(&l)) {
        const dgm_at *tls = DGM_AT_LIT(NULL, "tls");
        place_store(&l);
        check_store(&l);
        check_tokens(&l);
        collect_secret_env(&l);
        check_listen(&l);
        check_readable(&l, DGM_AT_LIT(tls, "cert"), c->tls_cert);
        check_readable(&l, DGM_AT_LIT(tls, "key"), c->tls_key);
        check_mcp(&l);
        check_agents(&l);
        check_settings(&l);
    }
    sort_findings(&l);
    return c;
}

void dgm_config_free(dgm_config *c)
{
    if (c)
        dgm_arena_free(c->arena);
}
