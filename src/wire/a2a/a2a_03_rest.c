/*
 * wire/a2a/a2a_03_rest.c - the ProtoJSON of 0.3, as in its REST binding: the functions of its tables.
 */
#include "wire/a2a/a2a_card_int.h"

#define DIALECT_03_REST
#include "model/a2a_table.h"

const char dgm_a2a_03_rest_name[] = "a2a-0.3-rest";

/* `kind` tags of the other dialect: read, and of no consequence. */
static dgm_code read_kind(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_str ignored;
    (void)object;
    return dgm_read_str(r, v, at, &ignored);
}
static const dgm_custom dgm_a2a_kind_tag = {.read = read_kind};

static const dgm_shape NAME(status_message);
#include "model/a2a_objects.def"

/* ---- parts ------------------------------------------------------------------------------------------ */

#include "wire/a2a/a2a_03_parts.def"

static void write_wrapped_data(dgm_writer *w, const void *part)
{
    dgm_buf_add_lit(w->out, "{\"data\":{\"data\":");
    dgm_a2a_put_wrapped(w, part);
    dgm_buf_add_lit(w->out, "},");
    dgm_a2a_put_marked_metadata(w, part);
    dgm_buf_add_char(w->out, '}');
}

static const dgm_shape *pick_03_part(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    static const struct {
        const char *member;
        const dgm_shape *shape;
    } shapes[] = {
        {"text", &NAME(text_part)}, {"file", &NAME(file_part)}, {"data", &NAME(data_part)}};
    const dgm_shape *found = NULL;
    if (yyjson_obj_size(v) == 1 && dgm_str_is(dgm_json_str(unsafe_yyjson_get_first(v)), "text"))
        return &NAME(text_part); /* nearly all of them */
    if (yyjson_is_str(dgm_json_get(v, DGM_STR("kind"))))
        return dgm_a2a_03_part.pick_read(r, v, at);
    for (size_t i = 0; i < 3; i++) {
        yyjson_val *member = dgm_json_get(v, dgm_str_from(shapes[i].member));
        if (!member || yyjson_is_null(member))
            continue;
        if (found) {
            dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT(at, dgm_str_from(shapes[i].member)),
                     "a part holds exactly one of text, file, data; it has a second one");
            return NULL;
        }
        found = shapes[i].shape;
    }
    return found ? found : &NAME(text_part); /* whose reader says what is missing */
}

/* ---- resource names ------------------------------------------------------------------------------------ */

#define TASKS DGM_STR("tasks/")
#define CONFIGS DGM_STR("/pushNotificationConfigs/")

/* tasks/T or tasks/T/pushNotificationConfigs/C; a bare id is taken as T. */
static dgm_code read_name(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret_task,
                          dgm_str *ret_config)
{
    dgm_str name;
    dgm_code rc = dgm_read_str(r, v, at, &name);
    if (rc)
        return rc;
    if (dgm_str_starts(name, TASKS))
        name = (dgm_str){name.p + TASKS.n, name.n - TASKS.n};
    const char *slash = memchr(name.p, '/', name.n);
    dgm_str task = {name.p, slash ? (size_t)(slash - name.p) : name.n};
    dgm_str rest = {name.p + task.n, name.n - task.n};
    if (!task.n || (rest.n && !(ret_config && dgm_str_starts(rest, CONFIGS))))
        return dgm_fail(r->err, DGM_BAD_PARAMS, at, "expected a name like tasks/{task}%s",
                        ret_config ? "/pushNotificationConfigs/{config}" : "");
    *ret_task = task;
    if (rest.n)
        *ret_config = (dgm_str){rest.p + CONFIGS.n, rest.n - CONFIGS.n};
    return DGM_OK;
}

static void put_name(dgm_writer *w, const dgm_field *f, dgm_str task, dgm_str config, bool whole)
{
    dgm_put_key(w, f);
    dgm_buf_add_lit(w->out, "\"tasks/");
    dgm_json_put_chars(w->out, task);
    if (whole) {
        dgm_buf_add_str(w->out, CONFIGS);
        dgm_json_put_chars(w->out, config);
    }
    dgm_buf_add_char(w->out, '"');
}

static dgm_code read_task_name(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_task_request *q = object;
    return read_name(r, v, at, &q->task_id, NULL);
}

static void write_task_name(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_task_request *q = object;
    put_name(w, f, q->task_id, q->config_id, false);
}
static const dgm_custom task_name = {read_task_name, write_task_name};

static dgm_code read_config_name(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_task_request *q = object;
    return read_name(r, v, at, &q->task_id, &q->config_id);
}

static void write_config_name(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_task_request *q = object;
    put_name(w, f, q->task_id, q->config_id, true);
}
static const dgm_custom config_name = {read_config_name, write_config_name};

/* ---- push configurations ------------------------------------------------------------------------------ */

static dgm_code read_own_name(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    dgm_str id = {0};
    dgm_code rc = read_name(r, v, at, &c->task_id, &id);
    if (!rc && !c->id.n)
        c->id = id;
    return rc;
}

static void write_own_name(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_push_config *c = object;
    if (c->task_id.n)
        put_name(w, f, c->task_id, c->id, true);
}
static const dgm_custom push_name = {read_own_name, write_own_name};

static dgm_code read_parent(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    return read_name(r, v, at, &c->task_id, NULL);
}
static const dgm_custom push_parent = {.read = read_parent};

static dgm_code read_config_id(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    dgm_str id;
    dgm_code rc = dgm_read_str(r, v, at, &id);
    if (!rc && id.n)
        c->id = id;
    return rc;
}
static const dgm_custom push_config_id = {.read = read_config_id};

static dgm_code check_push(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    const dgm_push_config *c = object;
    (void)v;
    if (!c->url.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "pushNotificationConfig"),
                        "missing: a push configuration needs it, with a url");
    return DGM_OK;
}

/* ---- requests ---------------------------------------------------------------------------------------- */

/* The proto has no presence here, and its SDKs mean what they leave out: do not wait. So it is
 * always written, and a configuration without it says false. */
static void write_blocking(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_send_configuration *c = object;
    dgm_put_key(w, f);
    if (c->return_immediately == DGM_TRUE)
        dgm_buf_add_lit(w->out, "false");
    else
        dgm_buf_add_lit(w->out, "true");
}
static const dgm_custom blocking = {dgm_a2a_read_blocking, write_blocking};

/* What the proto's defaults mean: no limit for a history of 0, and "do not wait". */
static dgm_code apply_send_defaults(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_send_configuration *c = object;
    (void)r;
    (void)v;
    (void)at;
    c->history_length.set = c->history_length.value != 0;
    if (c->return_immediately == DGM_UNSET)
        c->return_immediately = DGM_TRUE;
    return DGM_OK;
}

static dgm_code apply_get_defaults(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_task_request *q = object;
    (void)r;
    (void)v;
    (void)at;
    q->history_length.set = q->history_length.value != 0;
    return DGM_OK;
}

#include "wire/a2a/a2a_card.def"
#include "wire/a2a/a2a_requests.def"
