/* wire/a2a/a2a_requests.c - requests and results of 1.0 and of 0.3's JSON-RPC. */
#include "wire/a2a/a2a_int.h"

#define SHAPE(T, what_, fields_)                                                                   \
    .what = (what_), .size = sizeof(T), DGM_FIELDS(fields_), .extra_at = offsetof(T, extra),       \
    .tag_at = DGM_NOWHERE

#define ID (DGM_REQUIRED | DGM_NONEMPTY)

/* ---- push configurations: 1.0 is flat, 0.3 nests ------------------------------------------------------ */

static dgm_code read_scheme(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_auth *auth = object;
    dgm_str *scheme = dgm_new(r->arena, dgm_str);
    dgm_code rc = dgm_read_str(r, v, at, scheme);
    if (!rc)
        auth->schemes = (dgm_strs){scheme, scheme->n ? 1 : 0};
    return rc;
}

static void write_scheme(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_push_auth *auth = object;
    dgm_put_key(w, f);
    dgm_json_put_str(w->out, auth->schemes.n ? auth->schemes.at[0] : DGM_STR(""));
}
static const dgm_custom scheme = {read_scheme, write_scheme};

static const dgm_field auth_10_fields[] = {
    DGM_F_CUSTOM("scheme", DGM_REQUIRED, &scheme),
    DGM_F(dgm_push_auth, credentials, "credentials", STR, 0),
};
static const dgm_shape auth_10 = {SHAPE(dgm_push_auth, "push authentication", auth_10_fields),
                                  .proto = true};

static const dgm_field push_10_fields[] = {
    DGM_F(dgm_push_config, tenant, "tenant", STR, 0),
    DGM_F(dgm_push_config, id, "id", STR, 0),
    DGM_F(dgm_push_config, task_id, "taskId", STR, 0),
    DGM_F(dgm_push_config, url, "url", STR, ID),
    DGM_F(dgm_push_config, token, "token", STR, 0),
    DGM_F_OF(dgm_push_config, authentication, "authentication", OBJECT, 0, &auth_10),
};
static const dgm_shape push_10 = {SHAPE(dgm_push_config, "push configuration", push_10_fields),
                                  .proto = true};

static const dgm_field push_list_10_fields[] = {
    DGM_F_OF(dgm_push_config_list, configs, "configs", LIST, DGM_REQUIRED | DGM_STRICT, &push_10),
    DGM_F(dgm_push_config_list, next_page_token, "nextPageToken", STR, 0),
};
static const dgm_shape push_list_10 = {
    SHAPE(dgm_push_config_list, "push configuration list", push_list_10_fields), .proto = true};

static const dgm_field auth_03_fields[] = {
    DGM_F(dgm_push_auth, schemes, "schemes", STRS, DGM_REQUIRED),
    DGM_F(dgm_push_auth, credentials, "credentials", STR, 0),
};
static const dgm_shape auth_03 = {SHAPE(dgm_push_auth, "push authentication", auth_03_fields)};

/* 0.3: a configuration without an id goes by its task's; so that id need not be said. */
static dgm_code read_push_id(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config *c = object;
    return dgm_read_str(r, v, at, &c->id);
}

static void write_push_id(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_push_config *c = object;
    if (!c->id.p || (c->id.n && dgm_str_eq(c->id, c->task_id)))
        return;
    dgm_put_key(w, f);
    dgm_json_put_str(w->out, c->id);
}
static const dgm_custom push_id = {read_push_id, write_push_id};

static const dgm_field push_03_inner_fields[] = {
    DGM_F_CUSTOM("id", 0, &push_id),
    DGM_F(dgm_push_config, url, "url", STR, ID),
    DGM_F(dgm_push_config, token, "token", STR, 0),
    DGM_F_OF(dgm_push_config, authentication, "authentication", OBJECT, 0, &auth_03),
};
static const dgm_shape push_03_inner = {
    SHAPE(dgm_push_config, "push configuration", push_03_inner_fields)};

static const dgm_field push_03_fields[] = {
    DGM_F(dgm_push_config, task_id, "taskId", STR, DGM_REQUIRED),
    DGM_F_NEST("pushNotificationConfig", DGM_REQUIRED, &push_03_inner),
};
static dgm_code fill_push_id(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_push_config *c = object;
    (void)r;
    (void)v;
    (void)at;
    if (!c->id.n && c->task_id.n)
        c->id = c->task_id;
    return DGM_OK;
}
static const dgm_shape push_03 = {
    .what = "task push configuration",
    .size = sizeof(dgm_push_config),
    DGM_FIELDS(push_03_fields),
    .extra_at = offsetof(dgm_push_config, outer_extra),
    .tag_at = DGM_NOWHERE,
    .after_read = fill_push_id,
};

/* 0.3 lists are bare arrays; there is no second page. */
static const dgm_field bare_list_03[] = {
    DGM_F_OF(dgm_push_config_list, configs, "configs", LIST, DGM_REQUIRED, &push_03)};

static dgm_code read_push_list_03(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_config_list *list = object;
    return dgm_read_list(r, &push_03, v, at, &list->configs);
}

static void write_push_list_03(dgm_writer *w, const void *object)
{
    const dgm_push_config_list *list = object;
    dgm_buf_add_char(w->out, '[');
    for (size_t i = 0; i < list->configs.n; i++) {
        if (i)
            dgm_buf_add_char(w->out, ',');
        dgm_shape_write(w, &push_03, &list->configs.at[i]);
    }
    dgm_buf_add_char(w->out, ']');
}

static const dgm_shape push_list_03 = {
    SHAPE(dgm_push_config_list, "push configuration list", bare_list_03),
    .read_instead = read_push_list_03,
    .write_instead = write_push_list_03,
};

/* ---- sending ------------------------------------------------------------------------------------------- */

static const dgm_field configuration_10_fields[] = {
    DGM_F(dgm_send_configuration, accepted_output_modes, "acceptedOutputModes", STRS, 0),
    DGM_F_OF(dgm_send_configuration, push_config, "taskPushNotificationConfig", OBJECT, 0,
             &push_10),
    DGM_F(dgm_send_configuration, history_length, "historyLength", OPT_INT, DGM_PRESENCE),
    DGM_F(dgm_send_configuration, return_immediately, "returnImmediately", BOOL, 0),
};
/* Absent is false here, while 0.3 can leave it open: say it, for some of its servers do not wait
 * unless they are told to. */
static dgm_code wait_by_default(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_send_configuration *c = object;
    (void)r;
    (void)v;
    (void)at;
    if (c->return_immediately == DGM_UNSET)
        c->return_immediately = DGM_FALSE;
    return DGM_OK;
}
static const dgm_shape configuration_10 = {
    SHAPE(dgm_send_configuration, "send configuration", configuration_10_fields), .proto = true,
    .after_read = wait_by_default};

static const dgm_field send_10_fields[] = {
    DGM_F(dgm_send_request, tenant, "tenant", STR, 0),
    DGM_F_OF(dgm_send_request, message, "message", OBJECT, DGM_REQUIRED, &dgm_form_message),
    DGM_F_OF(dgm_send_request, configuration, "configuration", OBJECT, 0, &configuration_10),
    DGM_F(dgm_send_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape send_10 = {SHAPE(dgm_send_request, "send request", send_10_fields),
                                  .proto = true};

/* 0.3 says the opposite: blocking. Absent means wait in both. */
dgm_code dgm_a2a_read_blocking(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_send_configuration *c = object;
    dgm_opt_bool blocking;
    dgm_code rc = dgm_read_bool(r, v, at, &blocking);
    if (!rc)
        c->return_immediately = blocking == DGM_TRUE ? DGM_FALSE : DGM_TRUE;
    return rc;
}

static void write_blocking(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_send_configuration *c = object;
    if (c->return_immediately == DGM_UNSET)
        return;
    dgm_put_key(w, f);
    if (c->return_immediately == DGM_TRUE)
        dgm_buf_add_lit(w->out, "false");
    else
        dgm_buf_add_lit(w->out, "true");
}
static const dgm_custom blocking = {dgm_a2a_read_blocking, write_blocking};

static const dgm_field configuration_03_fields[] = {
    DGM_F(dgm_send_configuration, accepted_output_modes, "acceptedOutputModes", STRS, 0),
    DGM_F_OF(dgm_send_configuration, push_config, "pushNotificationConfig", OBJECT, 0,
             &push_03_inner),
    DGM_F(dgm_send_configuration, history_length, "historyLength", OPT_INT, 0),
    DGM_F_CUSTOM("blocking", 0, &blocking),
};
static const dgm_shape configuration_03 = {
    SHAPE(dgm_send_configuration, "send configuration", configuration_03_fields)};

static const dgm_field send_03_fields[] = {
    DGM_F_OF(dgm_send_request, message, "message", OBJECT, DGM_REQUIRED, &dgm_a2a_03_message),
    DGM_F_OF(dgm_send_request, configuration, "configuration", OBJECT, 0, &configuration_03),
    DGM_F(dgm_send_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape send_03 = {SHAPE(dgm_send_request, "send request", send_03_fields)};

/* ---- requests that name a task ---------------------------------------------------------------------------- */

static const dgm_field get_10_fields[] = {
    DGM_F(dgm_task_request, tenant, "tenant", STR, 0),
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, history_length, "historyLength", OPT_INT, DGM_PRESENCE),
};
static const dgm_shape get_10 = {SHAPE(dgm_task_request, "GetTask request", get_10_fields),
                                 .proto = true};

static const dgm_field cancel_10_fields[] = {
    DGM_F(dgm_task_request, tenant, "tenant", STR, 0),
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape cancel_10 = {SHAPE(dgm_task_request, "CancelTask request", cancel_10_fields),
                                    .proto = true};

static const dgm_field subscribe_10_fields[] = {
    DGM_F(dgm_task_request, tenant, "tenant", STR, 0),
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
};
static const dgm_shape subscribe_10 = {
    SHAPE(dgm_task_request, "SubscribeToTask request", subscribe_10_fields), .proto = true};

static const dgm_field one_push_10_fields[] = {
    DGM_F(dgm_task_request, tenant, "tenant", STR, 0),
    DGM_F(dgm_task_request, task_id, "taskId", STR, ID),
    DGM_F(dgm_task_request, config_id, "id", STR, ID),
};
static const dgm_shape one_push_10 = {
    SHAPE(dgm_task_request, "push configuration request", one_push_10_fields), .proto = true};

static const dgm_field all_push_10_fields[] = {
    DGM_F(dgm_task_request, task_id, "taskId", STR, ID),
    DGM_F(dgm_task_request, page_size, "pageSize", OPT_INT, 0),
    DGM_F(dgm_task_request, page_token, "pageToken", STR, 0),
    DGM_F(dgm_task_request, tenant, "tenant", STR, 0),
};
static const dgm_shape all_push_10 = {
    SHAPE(dgm_task_request, "push configuration list request", all_push_10_fields), .proto = true};

static const dgm_field card_10_fields[] = {DGM_F(dgm_task_request, tenant, "tenant", STR, 0)};
static const dgm_shape card_10 = {SHAPE(dgm_task_request, "extended card request", card_10_fields),
                                  .proto = true};

static const dgm_field get_03_fields[] = {
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, history_length, "historyLength", OPT_INT, 0),
    DGM_F(dgm_task_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape get_03 = {SHAPE(dgm_task_request, "tasks/get request", get_03_fields)};

static const dgm_field task_03_fields[] = {
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape task_03 = {SHAPE(dgm_task_request, "task request", task_03_fields)};

static const dgm_field get_push_03_fields[] = {
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, config_id, "pushNotificationConfigId", STR, 0),
    DGM_F(dgm_task_request, metadata, "metadata", MAP_JSON, 0),
};
/* Without a configuration id 0.3 means the one whose id is the task's. */
dgm_code dgm_a2a_fill_config_id(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_task_request *q = object;
    (void)r;
    (void)v;
    (void)at;
    if (!q->config_id.n)
        q->config_id = q->task_id;
    return DGM_OK;
}
static const dgm_shape get_push_03 = {
    SHAPE(dgm_task_request, "push configuration request", get_push_03_fields),
    .after_read = dgm_a2a_fill_config_id};

static const dgm_field delete_push_03_fields[] = {
    DGM_F(dgm_task_request, task_id, "id", STR, ID),
    DGM_F(dgm_task_request, config_id, "pushNotificationConfigId", STR, ID),
    DGM_F(dgm_task_request, metadata, "metadata", MAP_JSON, 0),
};
static const dgm_shape delete_push_03 = {
    SHAPE(dgm_task_request, "push configuration request", delete_push_03_fields)};

static const dgm_shape card_03 = {
    .what = "extended card request",
    .size = sizeof(dgm_task_request),
    .extra_at = offsetof(dgm_task_request, extra),
    .tag_at = DGM_NOWHERE,
};

/* ---- lists of tasks: 1.0 alone -------------------------------------------------------------------------------- */

static const dgm_field list_fields[] = {
    DGM_F(dgm_list_tasks_request, tenant, "tenant", STR, 0),
    DGM_F(dgm_list_tasks_request, context_id, "contextId", STR, 0),
    DGM_F_OF(dgm_list_tasks_request, status, "status", OPT_ENUM, 0, &dgm_form_states),
    DGM_F(dgm_list_tasks_request, page_size, "pageSize", OPT_INT, DGM_PRESENCE),
    DGM_F(dgm_list_tasks_request, page_token, "pageToken", STR, 0),
    DGM_F(dgm_list_tasks_request, history_length, "historyLength", OPT_INT, DGM_PRESENCE),
    DGM_F(dgm_list_tasks_request, status_timestamp_after, "statusTimestampAfter", TIME, 0),
    DGM_F(dgm_list_tasks_request, include_artifacts, "includeArtifacts", BOOL, DGM_PRESENCE),
};
static const dgm_shape list_request = {
    SHAPE(dgm_list_tasks_request, "ListTasks request", list_fields), .proto = true};

/* All four are always written; a reader takes a missing one as its default, as ProtoJSON does. */
static const dgm_field list_result_fields[] = {
    DGM_F_OF(dgm_list_tasks_result, tasks, "tasks", LIST, DGM_REQUIRED | DGM_STRICT,
             &dgm_form_task),
    DGM_F(dgm_list_tasks_result, next_page_token, "nextPageToken", STR, DGM_REQUIRED | DGM_STRICT),
    DGM_F(dgm_list_tasks_result, page_size, "pageSize", INT, DGM_REQUIRED | DGM_STRICT),
    DGM_F(dgm_list_tasks_result, total_size, "totalSize", INT, DGM_REQUIRED | DGM_STRICT),
};
static const dgm_shape list_result = {
    SHAPE(dgm_list_tasks_result, "ListTasks result", list_result_fields), .proto = true};

/* ---- by kind --------------------------------------------------------------------------------------------------- */

const dgm_shape *dgm_a2a_10_request(dgm_object_kind kind)
{
    static const dgm_shape *const shapes[] = {
        [DGM_OBJECT_SEND_REQUEST] = &send_10,
        [DGM_OBJECT_GET_TASK_REQUEST] = &get_10,
        [DGM_OBJECT_LIST_TASKS_REQUEST] = &list_request,
        [DGM_OBJECT_LIST_TASKS_RESPONSE] = &list_result,
        [DGM_OBJECT_CANCEL_REQUEST] = &cancel_10,
        [DGM_OBJECT_SUBSCRIBE_REQUEST] = &subscribe_10,
        [DGM_OBJECT_PUSH_CONFIG] = &push_10,
        [DGM_OBJECT_PUSH_CONFIG_LIST] = &push_list_10,
        [DGM_OBJECT_PUSH_GET_REQUEST] = &one_push_10,
        [DGM_OBJECT_PUSH_LIST_REQUEST] = &all_push_10,
        [DGM_OBJECT_PUSH_DELETE_REQUEST] = &one_push_10,
        [DGM_OBJECT_EXTENDED_CARD_REQUEST] = &card_10,
    };
    return (size_t)kind < sizeof shapes / sizeof *shapes ? shapes[kind] : NULL;
}

const dgm_shape *dgm_a2a_03_request(dgm_object_kind kind)
{
    static const dgm_shape *const shapes[] = {
        [DGM_OBJECT_SEND_REQUEST] = &send_03,
        [DGM_OBJECT_GET_TASK_REQUEST] = &get_03,
        [DGM_OBJECT_CANCEL_REQUEST] = &task_03,
        [DGM_OBJECT_SUBSCRIBE_REQUEST] = &task_03,
        [DGM_OBJECT_PUSH_CONFIG] = &push_03,
        [DGM_OBJECT_PUSH_CONFIG_LIST] = &push_list_03,
        [DGM_OBJECT_PUSH_GET_REQUEST] = &get_push_03,
        [DGM_OBJECT_PUSH_LIST_REQUEST] = &task_03,
        [DGM_OBJECT_PUSH_DELETE_REQUEST] = &delete_push_03,
        [DGM_OBJECT_EXTENDED_CARD_REQUEST] = &card_03,
    };
    return (size_t)kind < sizeof shapes / sizeof *shapes ? shapes[kind] : NULL;
}
