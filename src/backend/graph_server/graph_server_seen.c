/* backend/graph_server/graph_server_seen.c - recognises the frames that a server repeats after a reconnection. */
#include "backend/graph_server/graph_server_frames.h"

#include "base/limits.h"

#include <stdlib.h>

#define LOOK_AHEAD 512 /* events of an earlier connection that a later one may lack in a row */

void dgm_gserver_seen_init(struct gserver_seen *s)
{
    *s = (struct gserver_seen){0};
    dgm_buf_init(&s->last, DGM_MAX_ID_BYTES);
    dgm_buf_init(&s->before, DGM_MAX_ID_BYTES);
}

void dgm_gserver_seen_done(struct gserver_seen *s)
{
    dgm_buf_done(&s->last);
    dgm_buf_done(&s->before);
    free(s->events);
    s->events = NULL;
}

void dgm_gserver_seen_reconnect(struct gserver_seen *s)
{
    s->is_again = true;
    s->next_event = 0;
}

dgm_str dgm_gserver_seen_cursor(const struct gserver_seen *s)
{
    return s->before.n ? dgm_buf_str(&s->before) : DGM_STR("-1"); /* -1: from the first frame on */
}

/* ---- runs: ids ------------------------------------------------------------------------------------------------------------- */

/* The number at the start of an id: "1763474400123-0", "17". */
static bool id_number(dgm_str *id, uint64_t *ret)
{
    size_t i = 0;
    uint64_t n = 0;
    for (; i < id->n && i < 19 && id->p[i] >= '0' && id->p[i] <= '9'; i++)
        n = n * 10 + (uint64_t)(id->p[i] - '0');
    *ret = n;
    *id = (dgm_str){id->p + i, id->n - i};
    return i > 0;
}

/* < 0: a comes before b. Ids of an unknown form are in no order: then it is > 0 unless they are equal. */
static int id_compare(dgm_str a, dgm_str b)
{
    if (dgm_str_eq(a, b))
        return 0;
    for (;;) {
        uint64_t x, y;
        if (!id_number(&a, &x) || !id_number(&b, &y))
            return 1;
        if (x != y)
            return x < y ? -1 : 1;
        if (!a.n || !b.n || a.p[0] != '-' || b.p[0] != '-')
            return a.n < b.n ? -1 : 1;
        a = (dgm_str){a.p + 1, a.n - 1};
        b = (dgm_str){b.p + 1, b.n - 1};
    }
}

static void seen_next_id(struct gserver_seen *s, dgm_str id)
{
    dgm_buf spare = s->before;
    s->before = s->last;
    s->last = spare;
    dgm_buf_clear(&s->last);
    dgm_buf_add_str(&s->last, id);
    s->n_hashes = 0;
}

bool dgm_gserver_seen_frame(struct gserver_seen *s, const dgm_frames_item *item)
{
    dgm_str id = item->sse_id;
    if (!id.n ||
        id.n > DGM_MAX_ID_BYTES) /* the stream cannot be joined again: nothing is repeated */
        return false;
    uint64_t hash = dgm_hash(1, item->sse_event.p, item->sse_event.n);
    hash = dgm_hash(hash, item->text.p, item->text.n);
    int order = id_compare(id, dgm_buf_str(&s->last));
    if (!s->last.n || order > 0) {
        seen_next_id(s, id);
    } else if (s->is_again) {
        if (order < 0)
            return true;
        for (size_t i = 0; i < s->n_hashes; i++) {
            if (s->hashes[i] == hash)
                return true;
        }
    }
    if (s->n_hashes < GSERVER_MAX_SAME_ID)
        s->hashes[s->n_hashes++] = hash;
    return false;
}

/* ---- v2: content ----------------------------------------------------------------------------------------------------------- */

static uint64_t event_hash(dgm_str method, const dgm_json *params)
{
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    dgm_json_put(&b, dgm_json_get(params, DGM_STR("namespace")));
    dgm_json_put(&b, dgm_json_get(params, DGM_STR("data")));
    uint64_t hash = dgm_hash(dgm_hash(1, method.p, method.n), b.p, b.n);
    dgm_buf_done(&b);
    return hash;
}

/* Puts a new event in front of those that are still expected to be repeated. */
static void seen_insert(struct gserver_seen *s, uint64_t hash)
{
    if (s->n_events == GSERVER_MAX_SEEN) {
        s->is_full = true;
        return;
    }
    if (s->n_events == s->cap_events) {
        s->cap_events = s->cap_events ? 2 * s->cap_events : 256;
        s->events = dgm_xrealloc(s->events, s->cap_events * sizeof *s->events);
    }
    memmove(s->events + s->next_event + 1, s->events + s->next_event,
            (s->n_events - s->next_event) * sizeof *s->events);
    s->events[s->next_event++] = hash;
    s->n_events++;
}

bool dgm_gserver_seen_event(struct gserver_seen *s, dgm_str method, const dgm_json *params)
{
    uint64_t hash = event_hash(method, params);
    if (s->is_full)
        return false;
    for (size_t i = s->next_event; i < s->n_events && i - s->next_event < LOOK_AHEAD; i++) {
        if (s->events[i] == hash) {
            s->next_event = i + 1;
            return true;
        }
    }
    seen_insert(s, hash);
    return false;
}
