/* backend/worker/worker_checkpoints.c - see worker_checkpoints.h. */
#include "backend/worker/worker_checkpoints_int.h"

#include "base/limits.h"

#include <stdlib.h>

/* ---- threads --------------------------------------------------------------------------------------------- */

struct worker_named {
    dgm_table_node node; /* first; the hash is all that is known of it */
    struct worker_named *later, **to_this;
    dgm_fence *fence; /* of the run that was sent last; NULL: none */
};

static struct worker_named *named_find(const struct worker_session *s, uint64_t hash)
{
    dgm_table_node *at = dgm_table_first(&s->named, hash);
    while (at && at->hash != hash)
        at = at->next;
    return (struct worker_named *)at;
}

static void named_unlink(struct worker_session *s, struct worker_named *n)
{
    *n->to_this = n->later;
    if (n->later)
        n->later->to_this = n->to_this;
    else
        s->last = n->to_this;
}

static void named_drop(struct worker_session *s, struct worker_named *n)
{
    named_unlink(s, n);
    dgm_table_remove(&s->named, &n->node);
    free(n->fence);
    free(n);
}

static void session_on_thread(void *session, uint64_t thread, const dgm_fence *fence)
{
    struct worker_session *s = session;
    struct worker_named *n = named_find(s, thread);
    if (n) {
        named_unlink(s, n);
    } else {
        n = dgm_xcalloc(1, sizeof *n);
        dgm_table_add(&s->named, &n->node, thread);
    }
    free(n->fence);
    n->fence = dgm_worker_fence_copy(fence);
    n->later = NULL;
    n->to_this = s->last;
    *s->last = n;
    s->last = &n->later;
    if (s->named.n > DGM_MAX_WORKER_THREADS)
        named_drop(s, s->first);
}

static const struct worker_named *named_find_thread(const struct worker_session *s, dgm_str thread)
{
    const struct worker_named *n = named_find(s, dgm_worker_thread_hash(thread));
    for (size_t i = 0; !n && i < thread.n && i < DGM_MAX_CHECKPOINT_NAME_BYTES; i++) {
        if (thread.p[i] == ':')
            n = named_find(s, dgm_worker_thread_hash((dgm_str){thread.p, i}));
    }
    return n;
}

bool dgm_worker_session_may_use(const struct worker_session *s, dgm_str thread)
{
    return named_find_thread(s, thread);
}

/* ---- life ------------------------------------------------------------------------------------------------ */

static void pool_error(dgm_worker_request *r, int code, const char *message)
{
    dgm_worker_respond_error(r, code, "%s", message);
}

struct worker_session *dgm_worker_session_new(const dgm_agent_checkpoints *store,
                                              const struct worker_answers *answers)
{
    static const struct worker_answers of_pool = {dgm_worker_respond, pool_error};
    struct worker_session *s = dgm_xcalloc(1, sizeof *s);
    s->store = store;
    s->answers = answers ? answers : &of_pool;
    s->last = &s->first;
    return s;
}

static void *session_open(void *user, dgm_loop *home)
{
    (void)home;
    return dgm_worker_session_new(user, NULL);
}

static void session_free_if_done(struct worker_session *s)
{
    if (!s->is_closed || s->n_pending)
        return;
    while (s->first)
        named_drop(s, s->first);
    dgm_table_done(&s->named);
    dgm_worker_blobs_done(&s->blobs);
    free(s);
}

static void session_close(void *session)
{
    struct worker_session *s = session;
    s->is_closed = true;
    session_free_if_done(s);
}

/* ---- answers --------------------------------------------------------------------------------------------- */

struct pending { /* in the arena of the request */
    struct worker_session *session;
    dgm_worker_request *request;
    bool is_list;
};

static void respond_failed(struct worker_session *s, dgm_worker_request *r, const dgm_err *err)
{
    bool is_fault_of_worker = err->code == DGM_BAD_PARAMS || err->code == DGM_TOO_LARGE;
    s->answers->error(r, is_fault_of_worker ? DGM_WORKER_BAD_PARAMS : DGM_WORKER_INTERNAL,
                      err->msg);
}

static void put_text_member(dgm_buf *out, const char *name, dgm_str text)
{
    dgm_buf_printf(out, "\"%s\":", name);
    dgm_json_put_str(out, text);
    dgm_buf_add_char(out, ',');
}

static dgm_code put_row(struct worker_session *s, dgm_buf *out, const dgm_checkpoint *c,
                        size_t *left, dgm_err *err)
{
    dgm_code code;
    dgm_buf_add_char(out, '{');
    put_text_member(out, "thread", c->thread);
    put_text_member(out, "ns", c->ns);
    put_text_member(out, "id", c->id);
    if (c->parent.n)
        put_text_member(out, "parent", c->parent);
    if (c->run.n)
        put_text_member(out, "run", c->run);
    dgm_buf_add_lit(out, "\"checkpoint\":");
    if ((code = dgm_worker_value_put(&s->blobs, out, &c->checkpoint, left, err)))
        return code;
    dgm_buf_add_lit(out, ",\"metadata\":");
    if ((code = dgm_worker_value_put(&s->blobs, out, &c->metadata, left, err)))
        return code;
    dgm_buf_add_lit(out, ",\"writes\":[");
    for (size_t i = 0; i < c->n_writes; i++) {
        const dgm_checkpoint_write *w = &c->writes[i];
        dgm_buf_add_str(out, i ? DGM_STR(",[") : DGM_STR("["));
        dgm_json_put_str(out, w->task);
        dgm_buf_add_char(out, ',');
        dgm_json_put_str(out, w->channel);
        dgm_buf_add_char(out, ',');
        if ((code = dgm_worker_value_put(&s->blobs, out, &w->value, left, err)))
            return code;
        dgm_buf_add_char(out, ',');
        dgm_json_put_str(out, w->path);
        dgm_buf_add_char(out, ']');
    }
    dgm_buf_add_lit(out, "]}");
    return DGM_OK;
}

static size_t row_bytes(const dgm_checkpoint *c)
{
    size_t n = (c->checkpoint.bytes ? c->checkpoint.bytes->n : 0) +
               (c->metadata.bytes ? c->metadata.bytes->n : 0);
    for (size_t i = 0; i < c->n_writes; i++)
        n += (c->writes[i].value.bytes ? c->writes[i].value.bytes->n : 0) + c->writes[i].task.n +
             c->writes[i].channel.n + c->writes[i].path.n + 64;
    return n;
}

/* A page ends before a row that does not fit the line; only the first row may need blobs. */
static dgm_code put_page(const struct pending *p, dgm_buf *out, const dgm_checkpoint *rows,
                         size_t n, bool more, dgm_err *err)
{
    size_t left = DGM_WORKER_INLINE_BYTES, i = 0, shown = 0;
    dgm_buf_add_lit(out, "{\"rows\":[");
    for (; i < n && (!shown || row_bytes(&rows[i]) <= left); i++) {
        if (!dgm_worker_session_may_use(p->session, rows[i].thread))
            continue;
        if (shown++)
            dgm_buf_add_char(out, ',');
        dgm_code code = put_row(p->session, out, &rows[i], &left, err);
        if (code)
            return code;
    }
    more |= i < n;
    dgm_buf_printf(out, "],\"more\":%s", more ? "true" : "false");
    if (more) {
        dgm_buf_add_lit(out, ",\"next\":");
        dgm_worker_params_put_next(out, p->request->arena, &rows[i - 1]);
    }
    dgm_buf_add_char(out, '}');
    return DGM_OK;
}

static void on_checkpoints(dgm_code code, const dgm_checkpoint *rows, size_t n, bool more,
                           const dgm_err *err, void *arg)
{
    const struct pending *p = arg;
    struct worker_session *s = p->session;
    dgm_err why = code ? *err : (dgm_err){0};
    dgm_buf out;
    dgm_buf_init(&out, DGM_WORKER_LINE_BYTES);
    size_t left = DGM_WORKER_INLINE_BYTES;
    if (!code && p->is_list)
        code = put_page(p, &out, rows, n, more, &why);
    else if (!code && n)
        code = put_row(s, &out, rows, &left, &why);
    else
        dgm_buf_add_lit(&out, "null");
    if (code)
        respond_failed(s, p->request, &why);
    else if (out.over)
        s->answers->error(p->request, DGM_WORKER_BAD_LINE,
                          "the answer is larger than maxLineBytes: the checkpoint has too many "
                          "writes");
    else
        s->answers->result(p->request, dgm_buf_str(&out)); /* p is gone */
    dgm_buf_done(&out);
    s->n_pending--;
    session_free_if_done(s);
}

static void on_changed(dgm_code code, const dgm_err *err, void *arg)
{
    const struct pending *p = arg;
    struct worker_session *s = p->session;
    if (code)
        respond_failed(s, p->request, err);
    else
        s->answers->result(p->request, DGM_STR("{}"));
    s->n_pending--;
    session_free_if_done(s);
}

/* ---- requests -------------------------------------------------------------------------------------------- */

static struct pending *start_pending(struct worker_session *s, dgm_worker_request *r, bool is_list)
{
    struct pending *p = dgm_new(r->arena, struct pending);
    *p = (struct pending){s, r, is_list};
    s->n_pending++;
    return p;
}

static void handle_read(struct worker_session *s, dgm_worker_request *r, bool is_list)
{
    dgm_checkpoint_query q;
    dgm_err err = {0};
    dgm_code code =
        is_list ? dgm_worker_params_list(s, r, &q, &err) : dgm_worker_params_get(s, r, &q, &err);
    if (code)
        respond_failed(s, r, &err);
    else
        s->store->read(s->store, &q, on_checkpoints, start_pending(s, r, is_list));
}

static void handle_get(struct worker_session *s, dgm_worker_request *r)
{
    handle_read(s, r, false);
}

static void handle_list(struct worker_session *s, dgm_worker_request *r)
{
    handle_read(s, r, true);
}

static void handle_change(struct worker_session *s, dgm_worker_request *r, dgm_worker_params_fn *fn)
{
    dgm_checkpoint_change change = {0};
    dgm_err err = {0};
    dgm_code code = fn(s, r, &change, &err);
    const struct worker_named *n =
        !code && change.row.thread.n ? named_find_thread(s, change.row.thread) : NULL;
    if (n && n->fence)
        change.fence = *n->fence;
    if (!code) /* it answers later, and has its own references */
        s->store->change(s->store, &change, on_changed, start_pending(s, r, false));
    dgm_worker_params_release(&change);
    if (code)
        respond_failed(s, r, &err);
}

static void handle_blob(struct worker_session *s, dgm_worker_request *r)
{
    dgm_buf out;
    dgm_err err = {0};
    dgm_code code = DGM_OK;
    dgm_buf_init(&out, DGM_WORKER_LINE_BYTES);
    if (dgm_str_is(r->method, "blob/read"))
        code = dgm_worker_blobs_read(&s->blobs, r->params, &out, &err);
    else if (dgm_str_is(r->method, "blob/write"))
        code = dgm_worker_blobs_write(&s->blobs, r->params, &err);
    else
        dgm_worker_blobs_close(&s->blobs, r->params);
    if (code)
        respond_failed(s, r, &err);
    else
        s->answers->result(r, out.n ? dgm_buf_str(&out) : DGM_STR("{}"));
    dgm_buf_done(&out);
}

static const struct method {
    const char *name;
    void (*handle)(struct worker_session *s, dgm_worker_request *r);
    dgm_worker_params_fn *change; /* if handle is NULL */
} methods[] = {
    {"checkpoint/get", handle_get, NULL},
    {"checkpoint/put", NULL, dgm_worker_params_put},
    {"checkpoint/writes", NULL, dgm_worker_params_writes},
    {"checkpoint/list", handle_list, NULL},
    {"checkpoint/delete", NULL, dgm_worker_params_delete},
    {"checkpoint/delete_runs", NULL, dgm_worker_params_delete_runs},
    {"checkpoint/copy", NULL, dgm_worker_params_copy},
    {"checkpoint/prune", NULL, dgm_worker_params_prune},
    {"blob/write", handle_blob, NULL},
    {"blob/read", handle_blob, NULL},
    {"blob/close", handle_blob, NULL},
};

static bool session_request(void *session, dgm_worker_request *r)
{
    struct worker_session *s = session;
    const struct method *m = NULL;
    for (size_t i = 0; i < sizeof methods / sizeof *methods && !m; i++) {
        if (dgm_str_eq(r->method, dgm_str_from(methods[i].name)))
            m = &methods[i];
    }
    if (!m)
        return false;
    if (!s->store)
        s->answers->error(r, DGM_WORKER_INTERNAL, "this server stores no checkpoints");
    else if (m->handle)
        m->handle(s, r);
    else
        handle_change(s, r, m->change);
    return true;
}

dgm_worker_service dgm_worker_checkpoints(const dgm_agent_checkpoints *store)
{
    return (dgm_worker_service){.open = session_open,
                                .on_thread = session_on_thread,
                                .request = session_request,
                                .close = session_close,
                                .user = (void *)(uintptr_t)store};
}
