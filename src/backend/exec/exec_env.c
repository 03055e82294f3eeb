/*
 * backend/exec/exec_env.c - the environment of a program: the rule of net/process.h, and the variables of a run.
 */
#include "backend/exec/exec_int.h"
#include "base/limits.h"
#include "net/process.h"

#include <openssl/evp.h>

extern char **environ;

/* Set for each run: see dgm_exec_env_of_run. */
static const char *const of_run[] = {"DRAGOMAN_TASK_ID", "DRAGOMAN_CONTEXT_ID",
                                     "DRAGOMAN_CONTEXT_KEY", "DRAGOMAN_TENANT",
                                     "DRAGOMAN_PRINCIPAL"};
#define N_OF_RUN (sizeof of_run / sizeof *of_run)

static bool is_set_otherwise(const struct exec *x, dgm_str name)
{
    for (size_t i = 0; i < N_OF_RUN; i++) {
        if (dgm_str_eq(name, dgm_str_from(of_run[i])))
            return true;
    }
    for (size_t i = 0; i < x->n_own_env; i++) {
        if (dgm_str_eq(name, dgm_process_env_name(x->own_env[i])))
            return true;
    }
    return false;
}

/* Names of variables that the program does not get, for the log of a failure. */
static void note_withheld(dgm_buf *b, size_t *n_more, dgm_str name)
{
    if (b->n + name.n + 2 > DGM_MAX_WITHHELD_BYTES) {
        ++*n_more;
        return;
    }
    if (b->n)
        dgm_buf_add_lit(b, ", ");
    dgm_buf_add_str(b, name);
}

void dgm_exec_env_open(struct exec *x, const dgm_agent_options *options)
{
    size_t n = 0, n_more = 0;
    dgm_buf withheld;
    const dgm_process_env_rule rule = {.inherit = x->inherit_env,
                                       .inherit_all = x->inherit_all_env,
                                       .secret = options ? options->secret_env : (dgm_strs){0}};
    dgm_buf_init(&withheld, SIZE_MAX);
    while (environ && environ[n])
        n++;
    x->env = dgm_new_n(x->arena, const char *, n + x->n_own_env + 1);
    for (size_t i = 0; i < n; i++) {
        dgm_str name = dgm_process_env_name(environ[i]);
        if (is_set_otherwise(x, name))
            continue;
        if (dgm_process_env_passes(&rule, name))
            x->env[x->n_env++] = dgm_arena_dup(x->arena, dgm_str_from(environ[i])).p;
        else
            note_withheld(&withheld, &n_more, name);
    }
    for (size_t i = 0; i < x->n_own_env; i++)
        x->env[x->n_env++] = x->own_env[i];
    if (n_more)
        dgm_buf_printf(&withheld, " and %zu more", n_more);
    x->withheld = dgm_arena_dup(x->arena, dgm_buf_str(&withheld));
    dgm_buf_done(&withheld);
}

/* 32 hex digits of the SHA-256 of the JSON array [tenant, principal, agent, contextId]. */
dgm_str dgm_exec_context_key(dgm_arena *a, const dgm_run_input *in)
{
    const dgm_str parts[] = {in->tenant, in->principal, in->agent, in->context_id};
    unsigned char digest[EVP_MAX_MD_SIZE];
    char *hex = dgm_arena_alloc_raw(a, 33);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        dgm_buf_add_char(&b, i ? ',' : '[');
        dgm_json_put_str(&b, parts[i].p ? parts[i] : DGM_STR(""));
    }
    dgm_buf_add_char(&b, ']');
    if (EVP_Digest(b.p, b.n, digest, NULL, EVP_sha256(), NULL) != 1)
        memset(digest, 0, sizeof digest); /* SHA-256 is always there */
    for (size_t i = 0; i < 16; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[32] = '\0';
    dgm_buf_done(&b);
    return (dgm_str){hex, 32};
}

const char **dgm_exec_env_of_run(const struct exec *x, const dgm_run *run)
{
    const dgm_run_input *in = run->input;
    const dgm_str values[N_OF_RUN] = {in->task_id, in->context_id,
                                      dgm_exec_context_key(run->arena, in), in->tenant,
                                      in->principal};
    const char **env = dgm_new_n(run->arena, const char *, x->n_env + N_OF_RUN + 1);
    memcpy(env, x->env, x->n_env * sizeof *env);
    for (size_t i = 0; i < N_OF_RUN; i++)
        env[x->n_env + i] = dgm_arena_printf(run->arena, "%s=%.*s", of_run[i], DGM_P(values[i])).p;
    return env;
}
