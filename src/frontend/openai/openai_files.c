/* frontend/openai/openai_files.c - ids of files, and the files themselves. */
#include "frontend/openai/openai_files.h"
#include "base/limits.h"
#include "canon/media.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/words.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#define PREFIX "file-"
#define MAX_INNER 2000 /* bytes within an id: a longer one would not fit into an address */

/* ---- ids -------------------------------------------------------------------------------------------------------- */

/* Of base64 for addresses, without padding: n and what follows. */
dgm_str dgm_openai_file_id(dgm_arena *a, const struct openai_file *f)
{
    dgm_str inner = dgm_arena_printf(a, "%.*s\n%.*s\n%zu\n%.*s", DGM_P(f->agent), DGM_P(f->task_id),
                                     f->index, DGM_P(f->artifact_id));
    if (inner.n > MAX_INNER)
        return (dgm_str){0};
    char *id = dgm_arena_alloc(a, sizeof PREFIX + inner.n / 3 * 4 + 8);
    memcpy(id, PREFIX, sizeof PREFIX - 1);
    size_t n = sizeof PREFIX - 1;
    n += (size_t)EVP_EncodeBlock((unsigned char *)id + n, (const unsigned char *)inner.p,
                                 (int)inner.n);
    while (id[n - 1] == '=')
        n--;
    for (size_t i = sizeof PREFIX - 1; i < n; i++)
        id[i] = id[i] == '+' ? '-' : id[i] == '/' ? '_' : id[i];
    return (dgm_str){id, n};
}

/* Standard base64 as bytes. */
static bool decode(dgm_arena *a, dgm_str base64, dgm_str *ret)
{
    if (base64.n % 4 || base64.n > DGM_MAX_RECORD_BYTES)
        return false;
    char *out = dgm_arena_alloc_raw(a, base64.n / 4 * 3 + 1);
    int n = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)base64.p, (int)base64.n);
    if (n < 0)
        return false;
    for (size_t i = base64.n; i > 0 && base64.p[i - 1] == '='; i--)
        n--; /* it counts padding as zeros */
    *ret = (dgm_str){out, (size_t)n};
    return true;
}

static bool next_line(dgm_str *rest, dgm_str *ret)
{
    const char *end = rest->n ? memchr(rest->p, '\n', rest->n) : NULL;
    if (!end)
        return false;
    *ret = (dgm_str){rest->p, (size_t)(end - rest->p)};
    *rest = (dgm_str){end + 1, rest->n - ret->n - 1};
    return true;
}

bool dgm_openai_file_read_id(dgm_arena *a, dgm_str id, struct openai_file *ret)
{
    dgm_str base64, inner, number, prefix = DGM_STR(PREFIX);
    if (!dgm_str_starts(id, prefix) || id.n > 2 * MAX_INNER)
        return false;
    id = (dgm_str){id.p + prefix.n, id.n - prefix.n};
    if (!dgm_base64_normalise(a, id, &base64) || !decode(a, base64, &inner) ||
        dgm_utf8_check(inner) != inner.n)
        return false;
    if (!next_line(&inner, &ret->agent) || !next_line(&inner, &ret->task_id) ||
        !next_line(&inner, &number))
        return false;
    ret->artifact_id = inner;
    ret->index = 0;
    for (size_t i = 0; i < number.n; i++) {
        if (number.p[i] < '0' || number.p[i] > '9' || number.n > 6)
            return false;
        ret->index = ret->index * 10 + (size_t)(number.p[i] - '0');
    }
    return number.n && ret->task_id.n && ret->artifact_id.n;
}

const dgm_part *dgm_openai_file_of(const dgm_task *task, const struct openai_file *f)
{
    for (size_t i = 0; i < task->artifacts.n; i++) {
        const dgm_artifact *artifact = &task->artifacts.at[i];
        if (!dgm_str_eq(artifact->artifact_id, f->artifact_id))
            continue;
        for (size_t k = 0, n = 0; k < artifact->parts.n; k++) {
            const dgm_part *p = &artifact->parts.at[k];
            if (p->kind == DGM_PART_RAW && n++ == f->index)
                return p;
        }
    }
    return NULL;
}

/* ---- giving ------------------------------------------------------------------------------------------------------- */

static void fail_unknown(dgm_http_exchange *x)
{
    dgm_openai_fail(x, &(struct openai_error){.http = 404,
                                              .type = "invalid_request_error",
                                              .message = DGM_STR("unknown file id"),
                                              .param = DGM_STR("file_id")});
}

/* attachment; filename*=UTF-8''... */
static dgm_str disposition(dgm_arena *a, dgm_str filename)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "attachment");
    if (filename.n) {
        dgm_buf_add_lit(&b, "; filename*=UTF-8''");
        for (size_t i = 0; i < filename.n && i < 255; i++) {
            unsigned char c = (unsigned char)filename.p[i];
            bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
            if (plain)
                dgm_buf_add_char(&b, (char)c);
            else
                dgm_buf_printf(&b, "%%%02X", c);
        }
    }
    dgm_str text = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static bool is_media_type(dgm_str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < ' ' || s.p[i] > '~')
            return false;
    }
    return s.n > 2 && s.n < 200 && memchr(s.p, '/', s.n);
}

static bool has_word(dgm_str s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n; i++) {
        if (dgm_str_eq_nocase((dgm_str){s.p + i, n}, dgm_str_from(word)))
            return true;
    }
    return false;
}

static bool ends_with(dgm_str s, const char *end)
{
    size_t n = strlen(end);
    return s.n >= n && dgm_str_eq_nocase((dgm_str){s.p + s.n - n, n}, dgm_str_from(end));
}

/* A page of ours may load a file of this type as a script, a style sheet or a document. "script" is part of every name
 * that browsers accept for one (javascript, ecmascript, jscript, livescript). */
static bool is_active_type(dgm_str type)
{
    dgm_str bare = dgm_bare_type(type);
    return has_word(bare, "script") || has_word(bare, "html") || ends_with(bare, "/xml") ||
           ends_with(bare, "+xml") || ends_with(bare, "/css") || ends_with(bare, "/wasm") ||
           has_word(bare, "multipart/");
}

dgm_str dgm_openai_file_type(dgm_str type)
{
    return is_media_type(type) && !is_active_type(type) ? type
                                                        : DGM_STR("application/octet-stream");
}

struct giving {
    dgm_http_exchange *x;
    struct openai_file file;
};

/* Whatever it is, a browser that comes by must not run it as a page of ours. */
static void openai_files_give(struct giving *g, const dgm_part *p, dgm_str bytes)
{
    dgm_str type = dgm_media_type(p);
    dgm_http_header headers[] = {
        {DGM_STR("Content-Disposition"), disposition(dgm_http_arena(g->x), p->filename)},
        {DGM_STR("X-Content-Type-Options"), DGM_STR("nosniff")},
        {DGM_STR("Content-Security-Policy"), DGM_STR("sandbox; default-src 'none'")},
        {DGM_STR("Cache-Control"), DGM_STR("private, no-cache")}};
    dgm_http_respond(g->x, 200, dgm_openai_file_type(type), headers, 4, bytes);
}

static void openai_files_on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct giving *g = arg;
    dgm_arena *a = dgm_http_arena(g->x);
    const dgm_part *p = NULL;
    dgm_event event;
    dgm_str bytes;
    if (code && code != DGM_TASK_NOT_FOUND) {
        dgm_openai_fail_err(g->x, err, NULL);
        return;
    }
    if (!code && !dgm_record_event(snapshot, a, &event, NULL) && event.kind == DGM_EVENT_TASK)
        p = dgm_openai_file_of(event.task, &g->file);
    if (p && decode(a, p->content, &bytes))
        openai_files_give(g, p, bytes);
    else
        fail_unknown(g->x);
}

void dgm_openai_file_send(const dgm_turn_request *q, dgm_str raw_id)
{
    dgm_arena *a = dgm_http_arena(q->x);
    struct giving *g = dgm_new(a, struct giving);
    dgm_str id;
    g->x = q->x;
    if (!dgm_percent_decode(a, raw_id, false, &id) || !dgm_openai_file_read_id(a, id, &g->file)) {
        fail_unknown(q->x);
        return;
    }
    dgm_core_get(q->turns->o.core, q->owner, g->file.agent, g->file.task_id, openai_files_on_task,
                 g);
}
