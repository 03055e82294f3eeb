/* app/serve/banner.c - lines to copy, each of which works unchanged (tests/serve runs them). */
#include "app/serve/banner.h"
#include "store/store.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_same_file(const char *path, const struct stat *self)
{
    struct stat other;
    return stat(path, &other) == 0 && other.st_dev == self->st_dev && other.st_ino == self->st_ino;
}

/* How this program is called from here: by its name if PATH finds it. */
static const char *own_name(char *room, size_t size)
{
    struct stat self;
    const char *path = getenv("PATH");
    ssize_t n = readlink("/proc/self/exe", room, size - 1);
    if (n <= 0 || stat("/proc/self/exe", &self) != 0)
        return "dragoman";
    room[n] = 0;
    while (path && *path) {
        size_t len = strcspn(path, ":");
        char candidate[4096];
        snprintf(candidate, sizeof candidate, "%.*s/dragoman", (int)len, path);
        if (is_same_file(candidate, &self))
            return "dragoman";
        path += len + (path[len] == ':');
    }
    return room;
}

static const char *host_of(const dgm_config *c, char *room, size_t size)
{
    const char *colon = strrchr(c->listen.p, ':');
    size_t n = colon ? (size_t)(colon - c->listen.p) : 0;
    if (!n || n >= size || strncmp(c->listen.p, "0.0.0.0", n) == 0 ||
        strncmp(c->listen.p, "[::]", n) == 0)
        return "127.0.0.1"; /* everywhere is here as well */
    memcpy(room, c->listen.p, n);
    room[n] = 0;
    return room;
}

/* The caller's own secret stays with the caller. */
static void put_lines(FILE *out, const char *name, const char *url, const dgm_config *c)
{
    bool bearer = c->tokens.n && c->tokens.at[0].kind == DGM_TOKEN_BEARER;
    const char *curl = "", *send = "";
    const dgm_config_agent *first = &c->agents.at[0];
    char key[200];
    for (size_t i = 0; i < c->agents.n; i++)
        first = c->agents.at[i].is_default ? &c->agents.at[i] : first;
    if (bearer) {
        curl = " -H \"Authorization: Bearer $TOKEN\"";
        send = " --token \"$TOKEN\"";
    } else if (c->tokens.n) {
        snprintf(key, sizeof key, " -H \"%.*s: $TOKEN\"", (int)c->tokens.at[0].header.n,
                 c->tokens.at[0].header.p);
        curl = key;
    }
    fprintf(out,
            "\nTry, in another terminal%s:\n"
            "  curl -s %s/ -H 'Content-Type: application/json' -H 'A2A-Version: 1.0'%s -d "
            "'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{\"message\":{"
            "\"messageId\":\"m-1\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hello\"}]}}}'\n"
            "  curl -s %s/v1/chat/completions -H 'Content-Type: application/json'%s -d "
            "'{\"model\":\"%.*s\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}'\n"
            "  %s send %s \"hello\"%s\n"
            "or open this in a browser:\n"
            "  %s/\n"
            "Base URLs: OpenAI %s/v1, AG-UI %s/ag-ui, AI SDK %s/ai-sdk\n",
            c->tokens.n ? ", with your token in $TOKEN" : "", url, curl, url, curl,
            DGM_P(first->id), name, url, send, url, url, url, url);
}

static void put_places(FILE *out, const dgm_config *c)
{
    char real[PATH_MAX];
    if (c->file.n)
        fprintf(out, "  settings from %s\n", realpath(c->file.p, real) ? real : c->file.p);
    if (dgm_str_starts(c->store, DGM_STR("sqlite:")))
        fprintf(out, "  tasks are stored in %s\n",
                realpath(c->store.p + 7, real) ? real : c->store.p + 7);
    else if (dgm_str_starts(c->store, DGM_STR("postgres:"))) {
        dgm_store_show(c->store.p, real, sizeof real);
        fprintf(out, "  tasks are stored in %s\n", real);
    } else
        fprintf(out, "  tasks are stored in memory only: they end with the server\n");
}

void dgm_banner_put(FILE *out, const dgm_config *c, int port)
{
    char url[300], room[4096], host[100];
    if (!port) {
        fprintf(out, "listening on %s\n", c->listen.p);
        fflush(out);
        return;
    }
    snprintf(url, sizeof url, "%s://%s:%d", c->tls_cert.n ? "https" : "http",
             host_of(c, host, sizeof host), port);
    fprintf(out, "Dragoman " DGM_VERSION ", listening on %s\n", url);
    for (size_t i = 0; i < c->agents.n; i++)
        fprintf(out, "  agent %.*s at %s/%s%.*s%s\n", DGM_P(c->agents.at[i].id), url,
                c->agents.at[i].is_default ? "" : "agents/",
                c->agents.at[i].is_default ? 0 : (int)c->agents.at[i].id.n, c->agents.at[i].id.p,
                c->agents.at[i].is_default ? "" : "/");
    put_places(out, c);
    put_lines(out, own_name(room, sizeof room), url, c);
    fprintf(out, "Ctrl-C ends it.\n");
    fflush(out);
}
