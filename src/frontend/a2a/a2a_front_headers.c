/* frontend/a2a/a2a_front_headers.c - what headers and the query say: versions, media types, extensions. */
#include "frontend/a2a/a2a_front_int.h"

/* ---- versions ------------------------------------------------------------------------------------------------------ */

/* This version, alone or with a patch number. */
static bool is_version(dgm_str v, dgm_str version)
{
    if (!dgm_str_starts(v, version))
        return false;
    if (v.n == version.n)
        return true;
    for (size_t i = version.n + 1; i < v.n; i++) {
        if (v.p[i] < '0' || v.p[i] > '9')
            return false;
    }
    return v.p[version.n] == '.' && v.n > version.n + 1;
}

enum version dgm_version_of(const dgm_http_request *r, dgm_arena *a, bool *ret_said)
{
    dgm_str v = dgm_http_header_of(r, DGM_STR("a2a-version"));
    if (!v.p && r->query.n)
        v = dgm_query_value(a, r->query, "A2A-Version");
    v = dgm_trim(v);
    *ret_said = v.n > 0;
    if (is_version(v, DGM_STR("1.0")))
        return VERSION_10;
    return !v.n || is_version(v, DGM_STR("0.3")) ? VERSION_03 : VERSION_OTHER;
}

/* ---- media types ----------------------------------------------------------------------------------------------------- */

#define JSON_TYPE DGM_STR("application/json")
#define A2A_TYPE DGM_STR("application/a2a+json")

bool dgm_is_json_type(dgm_str content_type)
{
    dgm_str bare = dgm_bare_type(content_type);
    return !content_type.n || dgm_str_eq_nocase(bare, JSON_TYPE) ||
           dgm_str_eq_nocase(bare, A2A_TYPE);
}

/* By 1.0.1 it is application/a2a+json, by 1.0.0 and the kits application/json: whoever names the former
 * and not the latter gets it. */
dgm_str dgm_rest_type(const struct op *op)
{
    const dgm_http_request *r = dgm_http_request_of(op->x);
    if (op->media.n)
        return op->media;
    if (!op_is_10(op) || op->front->o.rest_media == DGM_A2A_MEDIA_JSON)
        return JSON_TYPE;
    if (op->front->o.rest_media == DGM_A2A_MEDIA_A2A)
        return A2A_TYPE;
    dgm_str own = dgm_bare_type(dgm_http_header_of(r, DGM_STR("content-type")));
    bool named = dgm_str_eq_nocase(own, A2A_TYPE) || dgm_accepts(r, A2A_TYPE);
    return named && !dgm_accepts(r, JSON_TYPE) ? A2A_TYPE : JSON_TYPE;
}

bool dgm_takes_media_type(dgm_strs modes, dgm_str type)
{
    dgm_str bare = dgm_bare_type(type);
    if (!modes.n || !bare.n)
        return true;
    for (size_t i = 0; i < modes.n; i++) {
        dgm_str mode = dgm_bare_type(modes.at[i]);
        bool any = mode.n >= 2 && mode.p[mode.n - 1] == '*';
        if (any ? dgm_str_is(mode, "*/*") ||
                      (bare.n >= mode.n && dgm_str_eq_nocase((dgm_str){bare.p, mode.n - 1},
                                                             (dgm_str){mode.p, mode.n - 1}))
                : dgm_str_eq_nocase(mode, bare))
            return true;
    }
    return false;
}

/* ---- extensions ------------------------------------------------------------------------------------------------------- */

static bool is_listed_in(const dgm_http_request *r, dgm_str header, dgm_str uri)
{
    dgm_str list, word;
    for (size_t i = 0; i < r->n_headers; i++) {
        list = dgm_str_eq(r->headers[i].name, header) ? r->headers[i].value : (dgm_str){0};
        while (dgm_next_word(&list, ',', &word)) {
            if (dgm_str_eq(word, uri))
                return true;
        }
    }
    return false;
}

/* 0.3 had another name for the header; there both are read. */
static bool is_listed(const struct op *op, dgm_str uri)
{
    const dgm_http_request *r = dgm_http_request_of(op->x);
    return is_listed_in(r, DGM_STR("a2a-extensions"), uri) ||
           (!op_is_10(op) && is_listed_in(r, DGM_STR("x-a2a-extensions"), uri));
}

void dgm_find_extensions(struct op *op)
{
    const dgm_a2a_options *o = &op->front->o;
    for (size_t i = 0; i < o->n_extensions; i++) {
        dgm_str uri = o->extensions[i].uri;
        if (is_listed(op, uri))
            op->extensions = dgm_arena_printf(op->arena, "%.*s%s%.*s", DGM_P(op->extensions),
                                              op->extensions.n ? ", " : "", DGM_P(uri));
    }
}

const char *dgm_missing_extension(const struct op *op)
{
    const dgm_a2a_options *o = &op->front->o;
    for (size_t i = 0; i < o->n_extensions; i++) {
        if (o->extensions[i].required && !is_listed(op, o->extensions[i].uri))
            return dgm_arena_dup(op->arena, o->extensions[i].uri).p;
    }
    return NULL;
}
