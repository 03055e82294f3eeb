/* backend/worker/worker_checkpoints_params.c - requests of a worker as queries and changes of checkpoints. */
#include "backend/worker/worker_checkpoints_int.h"

#include "base/limits.h"

/* ---- members --------------------------------------------------------------------------------------------- */

/* A text. `required`: it must be there, and not be empty. */
static dgm_code text_member(const dgm_json *params, const char *name, bool required,
                            dgm_str *ret_text, dgm_err *err)
{
    const dgm_json *v = dgm_json_non_null(params, name);
    *ret_text = (dgm_str){0};
    if (v && !yyjson_is_str((yyjson_val *)(uintptr_t)v))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: expected a text, got %s", name,
                        dgm_json_type(v));
    if (v)
        *ret_text = dgm_json_str(v);
    if (required && !ret_text->n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s is missing", name);
    return DGM_OK;
}

static dgm_code check_thread(const struct worker_session *s, dgm_str thread, dgm_err *err)
{
    if (dgm_worker_session_may_use(s, thread))
        return DGM_OK;
    return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                    "thread \"%.*s\" was not named to this process: use the thread of a run, or a "
                    "name that starts with it and a colon",
                    (int)(thread.n < 80 ? thread.n : 80), thread.p);
}

static dgm_code thread_member(const struct worker_session *s, const dgm_json *params,
                              const char *name, dgm_str *ret_thread, dgm_err *err)
{
    dgm_code code = text_member(params, name, true, ret_thread, err);
    return code ? code : check_thread(s, *ret_thread, err);
}

/* A list of texts, in the arena of the request. */
static dgm_code texts_member(const dgm_worker_request *r, const char *name, dgm_strs *ret_texts,
                             dgm_err *err)
{
    yyjson_val *v = (yyjson_val *)(uintptr_t)dgm_json_non_null(r->params, name), *item;
    size_t i, n, most = yyjson_arr_size(v);
    if (!yyjson_is_arr(v))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: expected a list of texts", name);
    if (most > DGM_MAX_CHECKPOINT_NAMES)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "%s: %zu entries, the limit checkpoint_names is %d: send several requests",
                        name, most, DGM_MAX_CHECKPOINT_NAMES);
    *ret_texts = (dgm_strs){dgm_new_n(r->arena, dgm_str, most + 1), most};
    yyjson_arr_foreach (v, i, n, item) {
        if (!yyjson_is_str(item))
            return dgm_fail(err, DGM_BAD_PARAMS, NULL, "%s: entry %zu is not a text", name, i);
        ret_texts->at[i] = dgm_json_str(item);
    }
    return DGM_OK;
}

static dgm_code key_members(const struct worker_session *s, const dgm_json *params,
                            dgm_checkpoint *row, dgm_err *err)
{
    dgm_code code = thread_member(s, params, "thread", &row->thread, err);
    if (!code)
        code = text_member(params, "ns", false, &row->ns, err);
    return code ? code : text_member(params, "id", true, &row->id, err);
}

/* ---- reading --------------------------------------------------------------------------------------------- */

dgm_code dgm_worker_params_get(const struct worker_session *s, const dgm_worker_request *r,
                               dgm_checkpoint_query *ret_query, dgm_err *err)
{
    dgm_checkpoint_query q = {.limit = 1};
    dgm_code code = thread_member(s, r->params, "thread", &q.thread, err);
    if (!code)
        code = text_member(r->params, "ns", false, &q.ns, err);
    if (!code)
        code = text_member(r->params, "id", false, &q.id, err);
    *ret_query = q;
    return code;
}

/* The cursor is a JSON list of three texts. */
static dgm_code read_cursor(const dgm_worker_request *r, dgm_checkpoint_query *q, dgm_err *err)
{
    dgm_str text;
    yyjson_val *v = NULL;
    dgm_code code = text_member(r->params, "after", false, &text, err);
    if (code || !text.n)
        return code;
    if (dgm_json_read(r->arena, text, 4 * DGM_MAX_CHECKPOINT_NAME_BYTES * 6,
                      "checkpoint_name_bytes", &v, NULL) ||
        yyjson_arr_size(v) != 3 || !yyjson_is_str(yyjson_arr_get(v, 0)) ||
        !yyjson_is_str(yyjson_arr_get(v, 1)) || !yyjson_is_str(yyjson_arr_get(v, 2)) ||
        !dgm_json_str(yyjson_arr_get(v, 0)).n)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "after: expected the text `next` of the page before");
    q->after.id = dgm_json_str(yyjson_arr_get(v, 0));
    q->after.ns = dgm_json_str(yyjson_arr_get(v, 1));
    q->after.thread = dgm_json_str(yyjson_arr_get(v, 2));
    return DGM_OK;
}

void dgm_worker_params_put_next(dgm_buf *out, dgm_arena *a, const dgm_checkpoint *last)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* three names, which have a limit */
    dgm_buf_add_char(&b, '[');
    dgm_json_put_str(&b, last->id);
    dgm_buf_add_char(&b, ',');
    dgm_json_put_str(&b, last->ns);
    dgm_buf_add_char(&b, ',');
    dgm_json_put_str(&b, last->thread);
    dgm_buf_add_char(&b, ']');
    dgm_json_put_str(out, dgm_arena_dup(a, dgm_buf_str(&b)));
    dgm_buf_done(&b);
}

dgm_code dgm_worker_params_list(const struct worker_session *s, const dgm_worker_request *r,
                                dgm_checkpoint_query *ret_query, dgm_err *err)
{
    dgm_checkpoint_query q = {.limit = DGM_MAX_CHECKPOINT_PAGE};
    const dgm_json *limit = dgm_json_non_null(r->params, "limit");
    int64_t n = DGM_MAX_CHECKPOINT_PAGE;
    dgm_code code = text_member(r->params, "thread", false, &q.thread, err);
    if (!code && q.thread.n)
        code = check_thread(s, q.thread, err);
    q.any_ns = !dgm_json_non_null(r->params, "ns");
    if (!code)
        code = text_member(r->params, "ns", false, &q.ns, err);
    if (!code)
        code = text_member(r->params, "id", false, &q.id, err);
    if (!code)
        code = text_member(r->params, "before", false, &q.before, err);
    if (!code)
        code = read_cursor(r, &q, err);
    if (!code && limit && (!dgm_json_int(limit, &n) || n < 1))
        code = dgm_fail(err, DGM_BAD_PARAMS, NULL, "limit: expected a number of at least 1");
    if (n < DGM_MAX_CHECKPOINT_PAGE)
        q.limit = (size_t)n;
    *ret_query = q;
    return code;
}

/* ---- changes --------------------------------------------------------------------------------------------- */

dgm_code dgm_worker_params_put(struct worker_session *s, const dgm_worker_request *r,
                               dgm_checkpoint_change *ret_change, dgm_err *err)
{
    dgm_checkpoint *row = &ret_change->row;
    const dgm_json *metadata = dgm_json_non_null(r->params, "metadata");
    ret_change->kind = DGM_CHECKPOINT_PUT;
    dgm_code code = key_members(s, r->params, row, err);
    if (!code)
        code = text_member(r->params, "parent", false, &row->parent, err);
    if (!code)
        code = text_member(r->params, "run", false, &row->run, err);
    if (!code)
        code = dgm_worker_value_read(&s->blobs, dgm_json_get(r->params, DGM_STR("checkpoint")),
                                     "checkpoint", &row->checkpoint, err);
    if (!code && metadata)
        code = dgm_worker_value_read(&s->blobs, metadata, "metadata", &row->metadata, err);
    return code;
}

/* [idx, channel, VALUE] */
static dgm_code read_write(struct worker_session *s, yyjson_val *v, dgm_checkpoint_write *ret_write,
                           dgm_err *err)
{
    yyjson_val *idx = yyjson_arr_get(v, 0), *channel = yyjson_arr_get(v, 1);
    if (yyjson_arr_size(v) != 3 || yyjson_is_str(idx) || !dgm_json_int(idx, &ret_write->idx) ||
        !yyjson_is_str(channel))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "writes: expected a list of [idx, \"channel\", VALUE]");
    ret_write->channel = dgm_json_str(channel);
    return dgm_worker_value_read(&s->blobs, yyjson_arr_get(v, 2), "writes", &ret_write->value, err);
}

dgm_code dgm_worker_params_writes(struct worker_session *s, const dgm_worker_request *r,
                                  dgm_checkpoint_change *ret_change, dgm_err *err)
{
    dgm_checkpoint *row = &ret_change->row;
    yyjson_val *list = (yyjson_val *)(uintptr_t)dgm_json_get(r->params, DGM_STR("writes")), *item;
    size_t i, most, n = yyjson_arr_size(list);
    dgm_str task, path;
    ret_change->kind = DGM_CHECKPOINT_WRITES;
    dgm_code code = key_members(s, r->params, row, err);
    if (!code)
        code = text_member(r->params, "task", true, &task, err);
    if (!code)
        code = text_member(r->params, "taskPath", false, &path, err);
    if (!code && (!yyjson_is_arr(list) || n > DGM_MAX_CHECKPOINT_WRITES))
        code = dgm_fail(err, yyjson_is_arr(list) ? DGM_TOO_LARGE : DGM_BAD_PARAMS, NULL,
                        "writes: expected a list of [idx, \"channel\", VALUE], at most %d (limit "
                        "checkpoint_writes)",
                        DGM_MAX_CHECKPOINT_WRITES);
    if (code)
        return code;
    dgm_checkpoint_write *writes = dgm_new_n(r->arena, dgm_checkpoint_write, n + 1);
    row->writes = writes;
    yyjson_arr_foreach (list, i, most, item) {
        writes[i].task = task;
        writes[i].path = path;
        if ((code = read_write(s, item, &writes[i], err)))
            return code;
        row->n_writes++;
    }
    return DGM_OK;
}

dgm_code dgm_worker_params_delete(struct worker_session *s, const dgm_worker_request *r,
                                  dgm_checkpoint_change *ret_change, dgm_err *err)
{
    ret_change->kind = DGM_CHECKPOINT_DELETE_THREADS;
    ret_change->names = (dgm_strs){dgm_new(r->arena, dgm_str), 1};
    return thread_member(s, r->params, "thread", ret_change->names.at, err);
}

dgm_code dgm_worker_params_delete_runs(struct worker_session *s, const dgm_worker_request *r,
                                       dgm_checkpoint_change *ret_change, dgm_err *err)
{
    (void)s;
    ret_change->kind = DGM_CHECKPOINT_DELETE_RUNS;
    return texts_member(r, "runs", &ret_change->names, err);
}

dgm_code dgm_worker_params_copy(struct worker_session *s, const dgm_worker_request *r,
                                dgm_checkpoint_change *ret_change, dgm_err *err)
{
    ret_change->kind = DGM_CHECKPOINT_COPY;
    dgm_code code = thread_member(s, r->params, "from", &ret_change->row.thread, err);
    return code ? code : thread_member(s, r->params, "to", &ret_change->to, err);
}

dgm_code dgm_worker_params_prune(struct worker_session *s, const dgm_worker_request *r,
                                 dgm_checkpoint_change *ret_change, dgm_err *err)
{
    dgm_str strategy;
    dgm_code code = texts_member(r, "threads", &ret_change->names, err);
    if (!code)
        code = text_member(r->params, "strategy", false, &strategy, err);
    for (size_t i = 0; !code && i < ret_change->names.n; i++)
        code = check_thread(s, ret_change->names.at[i], err);
    if (code)
        return code;
    if (dgm_str_is(strategy, "delete"))
        ret_change->kind = DGM_CHECKPOINT_DELETE_THREADS;
    else if (!strategy.n || dgm_str_is(strategy, "keep_latest"))
        ret_change->kind = DGM_CHECKPOINT_KEEP_LATEST;
    else
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "strategy: allowed values: keep_latest, delete; got \"%.*s\"",
                        (int)(strategy.n < 40 ? strategy.n : 40), strategy.p);
    return DGM_OK;
}

void dgm_worker_params_release(dgm_checkpoint_change *c)
{
    dgm_bytes_unref(c->row.checkpoint.bytes);
    dgm_bytes_unref(c->row.metadata.bytes);
    for (size_t i = 0; i < c->row.n_writes; i++)
        dgm_bytes_unref(c->row.writes[i].value.bytes);
}
