/* net/process_env.c - which variables of our environment a child process gets: see process.h. */
#include "net/process.h"

extern char **environ;

/* Where things are, the language, the terminal. No proxy settings: their URLs may hold passwords. */
static const char *const allowed[] = {"PATH",
                                      "HOME",
                                      "USER",
                                      "LOGNAME",
                                      "SHELL",
                                      "LANG",
                                      "LANGUAGE",
                                      "LC_*",
                                      "TZ",
                                      "TERM",
                                      "TMPDIR",
                                      "TMP",
                                      "TEMP",
                                      "XDG_*",
                                      "SSL_CERT_DIR",
                                      "SSL_CERT_FILE",
                                      "CURL_CA_BUNDLE",
                                      "PYTHONPATH",
                                      "PYTHONHOME",
                                      "PYTHONUNBUFFERED",
                                      "PYTHONUTF8",
                                      "VIRTUAL_ENV",
                                      "NODE_PATH",
                                      "NODE_ENV",
                                      "NODE_EXTRA_CA_CERTS",
                                      "REQUESTS_CA_BUNDLE",
                                      "PYTHONIOENCODING",
                                      "LD_LIBRARY_PATH",
                                      NULL};

static bool is_allowed(dgm_str name)
{
    for (size_t i = 0; allowed[i]; i++) {
        dgm_str row = dgm_str_from(allowed[i]);
        if (row.p[row.n - 1] == '*' ? dgm_str_starts(name, (dgm_str){row.p, row.n - 1})
                                    : dgm_str_eq(name, row))
            return true;
    }
    return false;
}

static bool has_name(dgm_strs names, dgm_str name)
{
    for (size_t i = 0; i < names.n; i++) {
        if (dgm_str_eq(names.at[i], name))
            return true;
    }
    return false;
}

bool dgm_process_env_passes(const dgm_process_env_rule *rule, dgm_str name)
{
    if (has_name(rule->inherit, name))
        return true;
    if (has_name(rule->secret, name))
        return false;
    return rule->inherit_all || is_allowed(name);
}

dgm_str dgm_process_env_name(const char *entry)
{
    return (dgm_str){entry, strcspn(entry, "=")};
}

static bool is_own(const dgm_process_env_rule *rule, dgm_str name)
{
    for (size_t i = 0; i < rule->n_own; i++) {
        if (dgm_str_eq(name, dgm_process_env_name(rule->own[i])))
            return true;
    }
    return false;
}

const char **dgm_process_env(dgm_arena *a, const dgm_process_env_rule *rule)
{
    size_t n = 0, used = 0;
    while (environ && environ[n])
        n++;
    const char **env = dgm_new_n(a, const char *, n + rule->n_own + 1);
    for (size_t i = 0; i < n; i++) {
        dgm_str name = dgm_process_env_name(environ[i]);
        if (!is_own(rule, name) && dgm_process_env_passes(rule, name))
            env[used++] = dgm_arena_dup(a, dgm_str_from(environ[i])).p;
    }
    for (size_t i = 0; i < rule->n_own; i++)
        env[used++] = rule->own[i];
    return env;
}
