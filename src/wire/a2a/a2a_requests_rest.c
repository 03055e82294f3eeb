/*
 * wire/a2a/a2a_requests_rest.c - requests and results in the ProtoJSON of 0.3.
 *
 * 0.3's proto names things by resource: tasks/{task}/pushNotificationConfigs/{config}. On the wire
 * most of these are URLs; as messages they are what gRPC and `convert` see.
 */
#include "wire/a2a/a2a_int.h"

#define SHAPE(T, what_, fields_)                                                                   \
    .what = (what_), .size = sizeof(T), DGM_FIELDS(fields_), .extra_at = offsetof(T, extra),       \
    .tag_at = DGM_NOWHERE, .proto = true

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

/* ---- push configurations ---------------------------------------------------------------------------------- */

static const dgm_field auth_fields[] = {
    DGM_F(dgm_push_auth, schemes, "schemes", STRS, 0),
    DGM_F(dgm_push_auth, credentials, "credentials", STR, 0),
};
static const dgm_shape auth = {SHAPE(dgm_push_auth, "push authentication", auth_fields)};

static const dgm_field inner_fields[] = {
    DGM_F(dgm_push_config, id, "id", STR, 0),
    DGM_F(dgm_push_config, url, "url", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(dgm_push_config, token, "token", STR, 0),
    DGM_F_OF(dgm_push_config, authentication, "authentication", OBJECT, 0, &auth),
};
static const dgm_shape inner = {SHAPE(dgm_push_config, "push configuration", inner_fields)};

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
static const dgm_custom own_name = {read_own_name, write_own_name};

static dgm_code read_parent(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    return read_name(r, v, at, &c->task_id, NULL);
}
static const dgm_custom parent = {.read = read_parent};

static dgm_code read_config_id(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    dgm_str id;
    dgm_code rc = dgm_read_str(r, v, at, &id);
    if (!rc && id.n)
        c->id = id;
    return rc;
}
static const dgm_custom config_id = {.read = read_config_id};

static const dgm_shape push;
static const dgm_field push_fields[] = {
    DGM_F_CUSTOM("name", 0, &own_name),
    DGM_F_NEST("pushNotificationConfig", 0, &inner),
    /* A create request: each SDK sends another form of it. */
    DGM_F_CUSTOM("parent", DGM_READ_ONLY, &parent),
    DGM_F_CUSTOM("configId", DGM_READ_ONLY, &config_id),
    DGM_F_NEST("config", DGM_READ_ONLY, &push),
    DGM_F(dgm_push_config, task_id, "taskId", STR, DGM_READ_ONLY),
};

static dgm_code check_push(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    const dgm_push_config *c = object;
    (void)v;
    if (!c->url.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "pushNotificationConfig"),
                        "missing: a push configuration needs it, with a url");
    return DGM_OK;
}
static const dgm_shape push = {
    .what = "task push configuration",
    .size = sizeof(dgm_push_config),
    DGM_FIELDS(push_fields),
    .extra_at = offsetof(dgm_push_config, outer_extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .after_read = check_push,
};

static const dgm_field push_list_fields[] = {
    DGM_F_OF(dgm_push_config_list, configs, "configs", LIST, DGM_REQUIRED | DGM_STRICT, &push),
    DGM_F(dgm_push_config_list, next_page_token, "nextPageToken", STR, 0),
};
static const dgm_shape push_list = {
    SHAPE(dgm_push_config_list, "push configuration list", push_list_fields)};

/* ---- sending ---------------------------------------------------------------------------------------------------- */

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
static dgm_code apply_defaults(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
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

static const dgm_field configuration_fields[] = {
    DGM_F(dgm_send_configuration, accepted_output_modes, "acceptedOutputModes", STRS, 0),
    DGM_F_OF(dgm_send_configuration, push_config, "pushNotification", OBJECT, 0, &inner),
    DGM_F_OF(dgm_send_configuration, push_config, "pushNotificationConfig", OBJECT, DGM_READ_ONLY,
             &inner),
    DGM_F(dgm_send_configuration, history_length, "historyLength", OPT_INT, 0),
    DGM_F_CUSTOM("blocking", 0, &blocking),
};
static const dgm_shape configuration = {
    SHAPE(dgm_send_configuration, "send configuration", configuration_fields),
    .after_read = apply_defaults};

static const dgm_field send_fields[] = {
    DGM_F_OF(dgm_send_request, message, "message", OBJECT, DGM_REQUIRED, &dgm_a2a_03_rest_message),
    DGM_F_OF(dgm_send_request, message, "request", OBJECT, DGM_READ_ONLY, &dgm_a2a_03_rest_message),
    DGM_F_OF(dgm_send_request, configuration, "configuration", OBJECT, 0, &configuration),
    DGM_F(dgm_send_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape send = {SHAPE(dgm_send_request, "send request", send_fields)};

/* ---- requests that name a task ------------------------------------------------------------------------------------ */

static dgm_code no_zero_get_history(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_task_request *q = object;
    (void)r;
    (void)v;
    (void)at;
    q->history_length.set = q->history_length.value != 0;
    return DGM_OK;
}

static const dgm_field get_fields[] = {
    DGM_F_CUSTOM("name", DGM_REQUIRED, &task_name),
    DGM_F(dgm_task_request, history_length, "historyLength", OPT_INT, 0),
};
static const dgm_shape get = {SHAPE(dgm_task_request, "GetTask request", get_fields),
                              .after_read = no_zero_get_history};

static const dgm_field task_fields[] = {DGM_F_CUSTOM("name", DGM_REQUIRED, &task_name)};
static const dgm_shape task = {SHAPE(dgm_task_request, "task request", task_fields)};

static const dgm_field one_push_fields[] = {DGM_F_CUSTOM("name", DGM_REQUIRED, &config_name)};
static const dgm_shape one_push = {
    SHAPE(dgm_task_request, "push configuration request", one_push_fields),
    .after_read = dgm_a2a_fill_config_id};

static const dgm_field all_push_fields[] = {
    DGM_F_CUSTOM("parent", DGM_REQUIRED, &task_name),
    DGM_F(dgm_task_request, page_size, "pageSize", OPT_INT, 0),
    DGM_F(dgm_task_request, page_token, "pageToken", STR, 0),
};
static const dgm_shape all_push = {
    SHAPE(dgm_task_request, "push configuration list request", all_push_fields)};

static const dgm_shape card = {
    .what = "extended card request",
    .size = sizeof(dgm_task_request),
    .extra_at = offsetof(dgm_task_request, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

const dgm_shape *dgm_a2a_03_rest_request(dgm_object_kind kind)
{
    static const dgm_shape *const shapes[] = {
        [DGM_OBJECT_SEND_REQUEST] = &send,
        [DGM_OBJECT_GET_TASK_REQUEST] = &get,
        [DGM_OBJECT_CANCEL_REQUEST] = &task,
        [DGM_OBJECT_SUBSCRIBE_REQUEST] = &task,
        [DGM_OBJECT_PUSH_CONFIG] = &push,
        [DGM_OBJECT_PUSH_CONFIG_LIST] = &push_list,
        [DGM_OBJECT_PUSH_GET_REQUEST] = &one_push,
        [DGM_OBJECT_PUSH_LIST_REQUEST] = &all_push,
        [DGM_OBJECT_PUSH_DELETE_REQUEST] = &one_push,
        [DGM_OBJECT_EXTENDED_CARD_REQUEST] = &card,
    };
    return (size_t)kind < sizeof shapes / sizeof *shapes ? shapes[kind] : NULL;
}
