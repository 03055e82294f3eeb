/*
 * model/record_chunk.c - the records of which there are most: pieces of text, read without a parser.
 *
 * Whatever is not spelled exactly as our writer spells a piece of plain text is left to the parser. So nothing is
 * accepted here that is refused there, and nothing is understood otherwise: a test holds the two together.
 */
#include "model/record_int.h"
#include "json/copy_clean.h"

struct scan {
    const char *p;
    size_t i, n;
    char *copy; /* of strings, where they stand in p */
};

static bool skip(struct scan *s, dgm_str literal)
{
    if (s->n - s->i < literal.n || memcmp(s->p + s->i, literal.p, literal.n) != 0)
        return false;
    s->i += literal.n;
    return true;
}

static dgm_opt_bool may_skip(struct scan *s, dgm_str literal)
{
    return skip(s, literal) ? DGM_TRUE : DGM_UNSET;
}

/* A string without escapes, and what follows it. */
static bool take(struct scan *s, dgm_str *ret, dgm_str then)
{
    size_t n = dgm_copy_clean(s->copy + s->i, s->p + s->i, s->n - s->i);
    *ret = (dgm_str){s->copy + s->i, n};
    s->i += n;
    return n > 0 && skip(s, then);
}

bool dgm_record_chunk(dgm_str bytes, dgm_arena *a, dgm_event *ret_event)
{
    struct scan s = {.p = bytes.p, .n = bytes.n};
    if (!skip(&s, DGM_STR("{\"artifactUpdate\":{\"taskId\":\"")))
        return false;
    dgm_artifact_update *u = dgm_new(a, dgm_artifact_update);
    dgm_part *part = dgm_new(a, dgm_part);
    s.copy = dgm_arena_alloc_raw(a, bytes.n + DGM_COPY_SLACK);
    if (!take(&s, &u->task_id, DGM_STR("\",\"contextId\":\"")) ||
        !take(&s, &u->context_id, DGM_STR("\",\"artifact\":{\"artifactId\":\"")) ||
        !take(&s, &u->artifact.artifact_id, DGM_STR("\",\"parts\":[{\"text\":\"")) ||
        !take(&s, &part->content, DGM_STR("\"}]}")))
        return false;
    u->append = may_skip(&s, DGM_STR(",\"append\":true"));
    u->last_chunk = may_skip(&s, DGM_STR(",\"lastChunk\":true"));
    if (!skip(&s, DGM_STR("}}")) || s.i < s.n || dgm_utf8_check(bytes) < bytes.n)
        return false;
    part->kind = DGM_PART_TEXT;
    u->artifact.parts = (dgm_parts){part, 1};
    *ret_event = (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = u};
    return true;
}
