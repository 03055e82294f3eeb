/* backend/program.c - the command and the environment of a program, and the text that it writes. */
#include "backend/program.h"
#include "backend/backend_int.h"
#include "base/limits.h"

#include <openssl/evp.h>

extern char **environ;

/* Set for each run: see dgm_program_env. */
static const char *const of_run[] = {
    "DRAGOMAN_TASK_ID",   "DRAGOMAN_CONTEXT_ID", "DRAGOMAN_CONTEXT_KEY", "DRAGOMAN_TENANT",
    "DRAGOMAN_PRINCIPAL", "DRAGOMAN_CALL_ID",    "DRAGOMAN_FENCE"};
#define N_OF_RUN (sizeof of_run / sizeof *of_run)
#define N_ALWAYS 5 /* the others only if they have a value */

static bool is_set_otherwise(const dgm_process_env_rule *e, dgm_str name)
{
    for (size_t i = 0; i < N_OF_RUN; i++) {
        if (dgm_str_eq(name, dgm_str_from(of_run[i])))
            return true;
    }
    for (size_t i = 0; i < e->n_own; i++) {
        if (dgm_str_eq(name, dgm_process_env_name(e->own[i])))
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

static void fill_env(dgm_program *p, const dgm_process_env_rule *e, dgm_arena *a)
{
    size_t n = 0, n_more = 0;
    dgm_buf withheld;
    dgm_buf_init(&withheld, SIZE_MAX);
    while (environ && environ[n])
        n++;
    p->env = dgm_new_n(a, const char *, n + e->n_own + 1);
    for (size_t i = 0; i < n; i++) {
        dgm_str name = dgm_process_env_name(environ[i]);
        if (is_set_otherwise(e, name))
            continue;
        if (dgm_process_env_passes(e, name))
            p->env[p->n_env++] = dgm_arena_dup(a, dgm_str_from(environ[i])).p;
        else
            note_withheld(&withheld, &n_more, name);
    }
    for (size_t i = 0; i < e->n_own; i++)
        p->env[p->n_env++] = e->own[i];
    if (n_more)
        dgm_buf_printf(&withheld, " and %zu more", n_more);
    p->withheld = dgm_arena_dup(a, dgm_buf_str(&withheld));
    dgm_buf_done(&withheld);
}

/* ---- settings ---------------------------------------------------------------------------------------------- */

static yyjson_val *program_plain(const dgm_json *v) /* yyjson's readers do not say const */
{
    return (yyjson_val *)(uintptr_t)v;
}

static const char *copy_text(dgm_arena *a, const dgm_json *v)
{
    dgm_str s = yyjson_is_str(program_plain(v)) ? dgm_json_str(v) : dgm_json_text_in(a, v);
    return dgm_arena_dup(a, s).p;
}

static const char **read_command(dgm_arena *a, const dgm_json *v)
{
    size_t i, n;
    yyjson_val *item;
    if (yyjson_is_str(program_plain(v))) {
        const char **argv = dgm_new_n(a, const char *, 4);
        argv[0] = "/bin/sh";
        argv[1] = "-c";
        argv[2] = copy_text(a, v);
        return argv;
    }
    const char **argv = dgm_new_n(a, const char *, yyjson_arr_size(program_plain(v)) + 1);
    yyjson_arr_foreach (program_plain(v), i, n, item) {
        argv[i] = copy_text(a, item);
    }
    return argv;
}

static void read_env(dgm_process_env_rule *e, dgm_arena *a, const dgm_json *env,
                     const dgm_json *inherit)
{
    size_t i, n;
    yyjson_val *key, *item;
    const char **own =
        dgm_new_n(a, const char *, (env ? yyjson_obj_size(program_plain(env)) : 0) + 1);
    yyjson_obj_foreach (program_plain(env), i, n, key, item) {
        own[e->n_own++] =
            dgm_arena_printf(a, "%.*s=%s", DGM_P(dgm_json_str(key)), copy_text(a, item)).p;
    }
    e->own = own;
    e->inherit_all = yyjson_is_str(program_plain(inherit));
    if (!yyjson_is_arr(program_plain(inherit)))
        return;
    e->inherit.at = dgm_new_n(a, dgm_str, yyjson_arr_size(program_plain(inherit)));
    yyjson_arr_foreach (program_plain(inherit), i, n, item) {
        e->inherit.at[e->inherit.n++] = dgm_arena_dup(a, dgm_json_str(item));
    }
}

dgm_code dgm_program_open(const dgm_program_settings *settings, const dgm_agent_options *options,
                          dgm_arena *a, dgm_program *ret_program, dgm_err *err)
{
    dgm_program p = {.argv = read_command(a, settings->command)};
    dgm_process_env_rule e = {.secret = options ? options->secret_env : (dgm_strs){0}};
    char path[PATH_MAX];
    dgm_err why = {0};
    if (settings->cwd.n > 0)
        p.cwd = dgm_arena_dup(a, settings->cwd).p;
    read_env(&e, a, settings->env, settings->inherit_env);
    fill_env(&p, &e, a);
    if (dgm_process_find(p.argv[0], p.env, p.cwd, path, &why))
        return dgm_fail(err, DGM_BAD_PARAMS, DGM_AT_LIT(NULL, "command"), "%s", why.msg);
    *ret_program = p;
    return DGM_OK;
}

/* ---- a run ------------------------------------------------------------------------------------------------- */

/* 32 hex digits of the SHA-256 of the JSON array [tenant, principal, agent, contextId]. */
dgm_str dgm_program_context_key(dgm_arena *a, const dgm_run_input *in)
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

const char **dgm_program_env(const dgm_program *p, const dgm_run_input *in, dgm_str call_key,
                             dgm_arena *a)
{
    dgm_str fence =
        in->fence ? dgm_arena_printf(a, "%llu", (unsigned long long)in->fence) : (dgm_str){0};
    const dgm_str values[N_OF_RUN] = {in->task_id, in->context_id, dgm_program_context_key(a, in),
                                      in->tenant,  in->principal,  call_key,
                                      fence};
    const char **env = dgm_new_n(a, const char *, p->n_env + N_OF_RUN + 1);
    size_t n = p->n_env;
    memcpy(env, p->env, n * sizeof *env);
    for (size_t i = 0; i < N_OF_RUN; i++) {
        if (i < N_ALWAYS || values[i].n)
            env[n++] = dgm_arena_printf(a, "%s=%.*s", of_run[i], DGM_P(values[i])).p;
    }
    return env;
}

/* ---- what it writes ---------------------------------------------------------------------------------------- */

/* How many bytes at the end may be the beginning of a character? */
static size_t cut_off(dgm_str s)
{
    for (size_t k = 1; k <= 3 && k <= s.n; k++) {
        unsigned char c = (unsigned char)s.p[s.n - k];
        if ((c & 0xc0) == 0x80)
            continue;
        size_t want = c >= 0xf0 && c < 0xf8 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return c < 0xf8 && want > k ? k : 0;
    }
    return 0;
}

dgm_str dgm_program_clean_text(dgm_arena *a, dgm_program_tail *tail, dgm_str bytes, bool last)
{
    if (tail->n > 0) {
        char *p = dgm_arena_alloc_raw(a, tail->n + bytes.n);
        memcpy(p, tail->p, tail->n);
        if (bytes.n > 0)
            memcpy(p + tail->n, bytes.p, bytes.n);
        bytes = (dgm_str){p, tail->n + bytes.n};
        tail->n = 0;
    }
    if (!last && (tail->n = cut_off(bytes)) > 0) {
        bytes.n -= tail->n;
        memcpy(tail->p, bytes.p + bytes.n, tail->n);
    }
    size_t bad = dgm_utf8_check(bytes);
    if (bad == bytes.n)
        return bytes;
    static const char replacement[3] = {(char)0xef, (char)0xbf, (char)0xbd};
    char *p = dgm_arena_alloc_raw(a, 3 * bytes.n), *to = p;
    while (bytes.n > 0) {
        memcpy(to, bytes.p, bad);
        to += bad;
        bytes = (dgm_str){bytes.p + bad, bytes.n - bad};
        if (bytes.n == 0)
            break;
        memcpy(to, replacement, sizeof replacement);
        to += sizeof replacement;
        bytes = (dgm_str){bytes.p + 1, bytes.n - 1};
        bad = dgm_utf8_check(bytes);
    }
    return (dgm_str){p, (size_t)(to - p)};
}

void dgm_program_add_error_line(dgm_buf *b, dgm_str line, dgm_line_end end)
{
    dgm_buf_add_str(b, line);
    if (end != DGM_LINE_CUT)
        dgm_buf_add_char(b, '\n');
    if (b->n > 2 * DGM_MAX_STDERR_TAIL_BYTES) {
        memmove(b->p, b->p + b->n - DGM_MAX_STDERR_TAIL_BYTES, DGM_MAX_STDERR_TAIL_BYTES);
        b->n = DGM_MAX_STDERR_TAIL_BYTES;
    }
}

dgm_str dgm_program_errors(const dgm_buf *b)
{
    dgm_str s = dgm_buf_str(b);
    if (s.n > DGM_MAX_STDERR_TAIL_BYTES) {
        s = (dgm_str){s.p + s.n - DGM_MAX_STDERR_TAIL_BYTES, DGM_MAX_STDERR_TAIL_BYTES};
        const char *newline = memchr(s.p, '\n', s.n);
        if (newline && newline + 1 < s.p + s.n)
            s = (dgm_str){newline + 1, (size_t)(s.p + s.n - newline - 1)};
    }
    return dgm_text_trim(s);
}
