/* frontend/openai/openai_links.c - files in answers as links, files that requests name as bytes. */
#include "base/limits.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "frontend/cached.h"
#include "frontend/openai/openai_errors.h"
#include "frontend/openai/openai_files.h"

/* ---- in answers --------------------------------------------------------------------------------------------------- */

struct openai_made { /* an artifact with bytes */
    struct openai_made *next;
    dgm_str id;
    size_t n; /* parts so far */
};

void dgm_openai_links_init(struct openai_links *l, const dgm_turn_request *q, dgm_str agent,
                           dgm_str task_id)
{
    dgm_str url = q->turns->o.public_url;
    dgm_str base = dgm_front_address(dgm_http_arena(q->x), dgm_http_request_of(q->x), url);
    *l = (struct openai_links){.x = q->x,
                               .base = dgm_turn_copy(q->x, base),
                               .agent = dgm_turn_copy(q->x, agent),
                               .task_id = dgm_turn_copy(q->x, task_id)};
}

/* NULL: there are too many already. */
static struct openai_made *made_of(struct openai_links *l, dgm_str id)
{
    struct openai_made *m = l->made;
    while (m && !dgm_str_eq(m->id, id))
        m = m->next;
    if (m || l->n_made == DGM_MAX_OPEN_ITEMS)
        return m;
    m = dgm_http_alloc(l->x, sizeof *m);
    *m = (struct openai_made){.next = l->made, .id = dgm_turn_copy(l->x, id)};
    l->made = m;
    l->n_made++;
    return m;
}

static void link_part(struct openai_links *l, dgm_arena *a, dgm_part *p, dgm_str artifact_id,
                      size_t index)
{
    dgm_str type = dgm_media_type(p);
    dgm_str id =
        dgm_openai_file_id(a, &(struct openai_file){l->agent, l->task_id, artifact_id, index});
    if (!id.n)
        return;
    if (!p->filename.n)
        p->filename = dgm_arena_printf(a, "file.%s", dgm_media_extension(type));
    p->media_type = type;
    p->kind = DGM_PART_URL;
    p->content = dgm_arena_printf(a, "%.*s/v1/files/%.*s/content", DGM_P(l->base), DGM_P(id));
}

static bool has_bytes(const dgm_artifact *artifact)
{
    for (size_t i = 0; i < artifact->parts.n; i++) {
        if (artifact->parts.at[i].kind == DGM_PART_RAW)
            return true;
    }
    return false;
}

dgm_canon_event dgm_openai_links_put(struct openai_links *l, dgm_arena *a,
                                     const dgm_canon_event *event, bool images)
{
    const dgm_artifact *from = event->artifact.artifact;
    struct openai_made *made = has_bytes(from) ? made_of(l, from->artifact_id) : NULL;
    dgm_canon_event linked = *event;
    if (!made)
        return linked;
    if (!event->artifact.append)
        made->n = 0;
    dgm_artifact *to = dgm_new(a, dgm_artifact);
    *to = *from;
    to->parts.at = dgm_new_n(a, dgm_part, from->parts.n);
    for (size_t i = 0; i < from->parts.n; i++) {
        dgm_part *p = &to->parts.at[i];
        *p = from->parts.at[i];
        if (p->kind != DGM_PART_RAW)
            continue;
        size_t index = made->n++;
        if (images || !dgm_media_is(dgm_media_type(p), DGM_STR("image/")))
            link_part(l, a, p, from->artifact_id, index);
    }
    linked.artifact.artifact = to;
    linked.artifact.value = NULL;
    return linked;
}

/* ---- in requests ---------------------------------------------------------------------------------------------------- */

struct fetching {
    struct openai_fetch f;
    dgm_arena *arena;
    size_t message, part; /* that is looked at */
    size_t in_request;    /* messages before it that the request has */
    size_t n;
    struct openai_file file;
};

static void next_file(struct fetching *g);

static void openai_links_fail(struct fetching *g, const char *why)
{
    dgm_str param = dgm_arena_printf(g->arena, "%s[%zu].content[%zu].%s", g->f.list, g->in_request,
                                     g->part, g->f.member);
    dgm_openai_fail_param(g->f.q->x, "invalid_value", param.p, "%s: %s", param.p, why);
}

static void openai_links_take(struct fetching *g, const dgm_part *from)
{
    dgm_canon_part *p = &g->f.messages.at[g->message].content.parts.at[g->part];
    dgm_str type = dgm_media_type(from);
    if (!type.n)
        type = DGM_STR("application/octet-stream");
    p->kind = dgm_media_kind(type);
    p->source = (dgm_canon_source){.kind = DGM_CANON_SOURCE_DATA,
                                   .value = dgm_arena_dup(g->arena, from->content),
                                   .mime_type = dgm_arena_dup(g->arena, type)};
    if (!p->metadata && from->filename.n) {
        dgm_str name = dgm_arena_dup(g->arena, from->filename);
        dgm_member m = {DGM_STR("filename"), dgm_json_make_string(g->arena, name)};
        p->metadata = dgm_json_object(g->arena, &m, 1);
    }
}

static void openai_links_on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct fetching *g = arg;
    const dgm_part *p = NULL;
    dgm_event event;
    if (code && code != DGM_TASK_NOT_FOUND) {
        dgm_openai_fail_err(g->f.q->x, err, NULL);
        return;
    }
    if (!code && !dgm_record_event(snapshot, g->arena, &event, NULL) &&
        event.kind == DGM_EVENT_TASK)
        p = dgm_openai_file_of(event.task, &g->file);
    if (!p) {
        openai_links_fail(g, "unknown file id");
        return;
    }
    openai_links_take(g, p);
    g->part++;
    next_file(g);
}

/* Reads the next file that a part names. */
static void next_file(struct fetching *g)
{
    const dgm_canon_messages *all = &g->f.messages;
    const dgm_canon_part *found = NULL;
    for (; g->message < all->n; g->message++, g->part = 0) {
        const dgm_canon_message *m = &all->at[g->message];
        bool has_parts = m->content.kind == DGM_CANON_CONTENT_PARTS;
        for (; has_parts && !found && g->part < m->content.parts.n; g->part += !found) {
            const dgm_canon_part *p = &m->content.parts.at[g->part];
            if (p->kind != DGM_CANON_PART_TEXT && p->source.kind == DGM_CANON_SOURCE_FILE)
                found = p;
        }
        if (found)
            break;
        g->in_request += m->role != DGM_CANON_REASONING; /* which is a member there */
    }
    if (!found)
        g->f.on_done(g->f.arg);
    else if (g->n++ == DGM_MAX_REQUEST_FILES)
        openai_links_fail(g, "more files by their id than the limit request_files");
    else if (!dgm_openai_file_read_id(g->arena, found->source.value, &g->file))
        openai_links_fail(g, "unknown file id");
    else
        dgm_core_get(g->f.q->turns->o.core, g->f.q->owner, g->file.agent, g->file.task_id,
                     openai_links_on_task, g);
}

void dgm_openai_fetch_files(const struct openai_fetch *f)
{
    dgm_arena *a = dgm_http_arena(f->q->x);
    struct fetching *g = dgm_new(a, struct fetching);
    *g = (struct fetching){.f = *f, .arena = a};
    next_file(g);
}
