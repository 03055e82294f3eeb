/* json/same_text.c - see same_text.h. */
#include "json/same_text.h"

#include "json/copy_clean.h"

/* Without escapes no string contains a quote: if the value occurs once between two quotes, that is the string. */
void dgm_same_text_set(dgm_same_text *s, dgm_str json, dgm_str value)
{
    const char *found = NULL, *p = json.p, *end = json.p + json.n - value.n - 1;
    *s = (dgm_same_text){0};
    if (!value.n || json.n > DGM_MAX_SAME_BYTES || json.n < value.n + 2 ||
        memchr(json.p, '\\', json.n))
        return;
    for (; p < end && (p = memchr(p, '"', (size_t)(end - p))); p++) {
        if (p[value.n + 1] != '"' || memcmp(p + 1, value.p, value.n) != 0)
            continue;
        if (found)
            return;
        found = p + 1;
    }
    if (found)
        *s = (dgm_same_text){json, (size_t)(found - json.p), value.n};
}

/* Bytes of a string that need no escape cannot change the rest. */
bool dgm_same_text_read(const dgm_same_text *s, dgm_str json, dgm_str *ret_value)
{
    size_t behind = s->json.n - s->at - s->n;
    unsigned high = 0;
    if (!s->json.n || json.n <= s->at + behind || json.n > DGM_MAX_SAME_BYTES ||
        memcmp(json.p, s->json.p, s->at) != 0 ||
        memcmp(json.p + json.n - behind, s->json.p + s->json.n - behind, behind) != 0)
        return false;
    dgm_str value = {json.p + s->at, json.n - s->at - behind};
    if (dgm_span_clean(value.p, value.n, &high) < value.n ||
        (high && dgm_utf8_check(value) < value.n))
        return false;
    *ret_value = value;
    return true;
}
