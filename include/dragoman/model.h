/*
 * dragoman/model.h - A2A's objects and events as C structs.
 *
 * They do not depend on the version: A2A 1.0 and 0.3 are two dialects of them. A struct borrows everything
 * it points to; its creator (often a dgm_document) owns the memory. Absent text is {NULL, 0}, absent
 * objects are NULL, empty lists have n == 0.
 */
#pragma once

#include <dragoman/base.h>
#include <dragoman/json.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Formats by id; the numbers never change. dgm_format_id_name() has their names. */
typedef enum dgm_format_id {
    DGM_FORMAT_NONE = 0,              /* to be detected, or the format of the input */
    DGM_FORMAT_A2A_10 = 1,            /* "a2a-1.0" */
    DGM_FORMAT_A2A_03 = 2,            /* "a2a-0.3" */
    DGM_FORMAT_A2A_03_REST = 3,       /* "a2a-0.3-rest" */
    DGM_FORMAT_CHAT = 4,              /* "openai-chat" */
    DGM_FORMAT_RESPONSES = 5,         /* "openai-responses" */
    DGM_FORMAT_AG_UI = 6,             /* "ag-ui" */
    DGM_FORMAT_AG_UI_0 = 7,           /* "ag-ui-0" */
    DGM_FORMAT_AG_UI_PROTO = 8,       /* "ag-ui-proto" */
    DGM_FORMAT_AI_SDK = 9,            /* "ai-sdk" */
    DGM_FORMAT_LANGCHAIN = 10,        /* "langchain" */
    DGM_FORMAT_AG_UI_SIMPLE = 11,     /* "ag-ui-simple" */
    DGM_FORMAT_RESPONSES_SIMPLE = 12, /* "responses-simple" */
} dgm_format_id;

DGM_API const char *dgm_format_id_name(dgm_format_id id);      /* "a2a-1.0"; "" for NONE */
DGM_API dgm_format_id dgm_format_id_by_name(const char *name); /* NONE: there is no such format */

/* Unknown members: those that a format has no name for. Only the same format writes them back. */
typedef struct dgm_member {
    dgm_str key;
    const dgm_json *value;
} dgm_member;

typedef struct dgm_extra {
    dgm_format_id format; /* that they were read from */
    dgm_member *at;
    size_t n;
} dgm_extra;

typedef enum dgm_opt_bool { DGM_UNSET = 0, DGM_FALSE = 1, DGM_TRUE = 2 } dgm_opt_bool;

typedef struct dgm_opt_int {
    bool set;
    int32_t value;
} dgm_opt_int;

/* ---- messages -------------------------------------------------------------------------------- */

typedef enum dgm_role { DGM_ROLE_UNSPECIFIED = 0, DGM_ROLE_USER = 1, DGM_ROLE_AGENT = 2 } dgm_role;

typedef enum dgm_part_kind {
    DGM_PART_NONE = 0,
    DGM_PART_TEXT = 1,
    DGM_PART_RAW = 2, /* a file by its bytes */
    DGM_PART_URL = 3, /* a file by its address */
    DGM_PART_DATA = 4 /* any JSON value */
} dgm_part_kind;

typedef struct dgm_part {
    dgm_part_kind kind;
    dgm_str content;      /* the text, the bytes in standard base64, or the address */
    const dgm_json *data; /* DGM_PART_DATA only; may be JSON null */
    dgm_str filename;
    dgm_str media_type;
    const dgm_json *metadata;
    const dgm_extra *extra;
    const dgm_extra *nested_extra; /* 0.3: unknown members of the object inside the part */
} dgm_part;

typedef struct dgm_parts {
    dgm_part *at;
    size_t n;
} dgm_parts;

typedef struct dgm_message {
    dgm_str message_id;
    dgm_str context_id;
    dgm_str task_id;
    dgm_role role;
    dgm_parts parts;
    const dgm_json *metadata;
    dgm_strs extensions;
    dgm_strs reference_task_ids;
    const dgm_extra *extra;
} dgm_message;

typedef struct dgm_messages {
    dgm_message *at;
    size_t n;
} dgm_messages;

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The numbers are those of A2A's protobuf enum. */
typedef enum dgm_task_state {
    DGM_STATE_UNKNOWN = 0,
    DGM_STATE_SUBMITTED = 1,
    DGM_STATE_WORKING = 2,
    DGM_STATE_COMPLETED = 3,
    DGM_STATE_FAILED = 4,
    DGM_STATE_CANCELED = 5,
    DGM_STATE_INPUT_REQUIRED = 6,
    DGM_STATE_REJECTED = 7,
    DGM_STATE_AUTH_REQUIRED = 8
} dgm_task_state;

typedef struct dgm_status {
    dgm_task_state state;
    dgm_message *message;
    dgm_str timestamp; /* RFC 3339 in UTC, ends in Z */
    const dgm_extra *extra;
} dgm_status;

typedef struct dgm_artifact {
    dgm_str artifact_id;
    dgm_str name;
    dgm_str description;
    dgm_parts parts;
    const dgm_json *metadata;
    dgm_strs extensions;
    const dgm_extra *extra;
} dgm_artifact;

typedef struct dgm_artifacts {
    dgm_artifact *at;
    size_t n;
} dgm_artifacts;

typedef struct dgm_task {
    dgm_str id;
    dgm_str context_id;
    dgm_status status;
    dgm_artifacts artifacts;
    dgm_messages history;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_task;

typedef struct dgm_tasks {
    dgm_task *at;
    size_t n;
} dgm_tasks;

/* ---- stream events --------------------------------------------------------------------------- */

typedef struct dgm_status_update {
    dgm_str task_id;
    dgm_str context_id;
    dgm_status status;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_status_update;

typedef struct dgm_artifact_update {
    dgm_str task_id;
    dgm_str context_id;
    dgm_artifact artifact;
    dgm_opt_bool append;     /* unset reads as false */
    dgm_opt_bool last_chunk; /* unset reads as false */
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_artifact_update;

/*
 * Events that an agent sends to the server and an A2A client never sees. The members of each kind are listed
 * behind it.
 */
typedef enum dgm_internal_kind {
    DGM_INTERNAL_LLM_CALL = 0,      /* taskId, iteration, timestamp */
    DGM_INTERNAL_TOOL_START = 1,    /* taskId, toolName, toolCallId, timestamp (+ arguments) */
    DGM_INTERNAL_TOOL_COMPLETE = 2, /* taskId, toolCallId, success, timestamp (+ result or error) */
    DGM_INTERNAL_CHECKPOINT = 3,    /* taskId, iteration, timestamp */
    DGM_INTERNAL_MESSAGE = 4,       /* taskId, message, timestamp: history only */
    DGM_INTERNAL_REASONING = 5,     /* taskId, text, timestamp */
    DGM_INTERNAL_STATE = 6,         /* taskId, value, timestamp */
    DGM_INTERNAL_STEP = 7,          /* taskId, name, timestamp, success once it is over */
    DGM_INTERNAL_USAGE = 8,         /* taskId, value, timestamp */
    DGM_INTERNAL_CUSTOM = 9         /* taskId, name, value, timestamp */
} dgm_internal_kind;

typedef struct dgm_internal {
    dgm_internal_kind kind;
    dgm_str task_id;
    dgm_opt_int iteration;
    dgm_str tool_name;
    dgm_str tool_call_id;
    const dgm_json *arguments;
    dgm_opt_bool success;
    const dgm_json *result;
    dgm_str error;
    dgm_message *message;
    dgm_str text;
    dgm_str name;
    const dgm_json *value;
    dgm_str timestamp;
    const dgm_extra *extra;
} dgm_internal;

typedef enum dgm_event_kind {
    DGM_EVENT_NONE = 0,
    DGM_EVENT_TASK = 1,
    DGM_EVENT_MESSAGE = 2,
    DGM_EVENT_STATUS = 3,
    DGM_EVENT_ARTIFACT = 4,
    DGM_EVENT_INTERNAL = 5
} dgm_event_kind;

typedef struct dgm_event {
    dgm_event_kind kind;
    union {
        dgm_task *task;
        dgm_message *message;
        dgm_status_update *status;
        dgm_artifact_update *artifact;
        dgm_internal *internal;
        void *any;
    };
    const dgm_extra *extra;
} dgm_event;

/* ---- what may follow what ----------------------------------------------------------------------- */

DGM_API bool dgm_state_is_terminal(dgm_task_state s);    /* completed failed canceled rejected */
DGM_API bool dgm_state_is_interrupted(dgm_task_state s); /* input-required auth-required */

/* May a task in state `from` report `to` next? Terminal states are frozen for ever. */
DGM_API bool dgm_state_may_become(dgm_task_state from, dgm_task_state to);

/* A2A 0.3's `final` flag, a function of the state alone: terminal, or input-required. */
DGM_API bool dgm_state_is_final_03(dgm_task_state s);

/* ---- requests and results -------------------------------------------------------------------- */

typedef struct dgm_push_auth {
    dgm_strs schemes; /* A2A 1.0 has room for the first alone */
    dgm_str credentials;
    const dgm_extra *extra;
} dgm_push_auth;

typedef struct dgm_push_config {
    dgm_str tenant;
    dgm_str id;
    dgm_str task_id;
    dgm_str url;
    dgm_str token;
    dgm_push_auth *authentication;
    const dgm_extra *extra;
    const dgm_extra *outer_extra; /* 0.3: unknown members beside the nested configuration */
} dgm_push_config;

typedef struct dgm_push_configs {
    dgm_push_config *at;
    size_t n;
} dgm_push_configs;

typedef struct dgm_send_configuration {
    dgm_strs accepted_output_modes;
    dgm_push_config *push_config;
    dgm_opt_int history_length;
    dgm_opt_bool return_immediately;
    const dgm_extra *extra;
} dgm_send_configuration;

typedef struct dgm_send_request {
    dgm_str tenant;
    dgm_message *message;
    dgm_send_configuration *configuration;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_send_request;

/* GetTask, CancelTask, SubscribeToTask, and the four on push configurations but Create. */
typedef struct dgm_task_request {
    dgm_str tenant;
    dgm_str task_id;
    dgm_str config_id; /* push configuration requests only */
    dgm_opt_int history_length;
    dgm_opt_int page_size;
    dgm_str page_token;
    const dgm_json *metadata;
    const dgm_extra *extra;
} dgm_task_request;

typedef struct dgm_list_tasks_request {
    dgm_str tenant;
    dgm_str context_id;
    dgm_opt_int status; /* a dgm_task_state */
    dgm_opt_int page_size;
    dgm_str page_token;
    dgm_opt_int history_length;
    dgm_str status_timestamp_after;
    dgm_opt_bool include_artifacts;
    const dgm_extra *extra;
} dgm_list_tasks_request;

typedef struct dgm_list_tasks_result {
    dgm_tasks tasks;
    dgm_str next_page_token;
    int32_t page_size;
    int32_t total_size;
    const dgm_extra *extra;
} dgm_list_tasks_result;

typedef struct dgm_push_config_list {
    dgm_push_configs configs;
    dgm_str next_page_token;
    const dgm_extra *extra;
} dgm_push_config_list;

/* ---- agent cards --------------------------------------------------------------------------------- */

typedef struct dgm_agent_interface {
    dgm_str url;
    dgm_str protocol_binding;
    dgm_str tenant;
    dgm_str protocol_version;
    const dgm_extra *extra;
} dgm_agent_interface;

typedef struct dgm_agent_interfaces {
    dgm_agent_interface *at;
    size_t n;
} dgm_agent_interfaces;

typedef struct dgm_agent_provider {
    dgm_str url;
    dgm_str organization;
    const dgm_extra *extra;
} dgm_agent_provider;

typedef struct dgm_agent_extension {
    dgm_str uri;
    dgm_str description;
    dgm_opt_bool required;
    const dgm_json *params;
    const dgm_extra *extra;
} dgm_agent_extension;

typedef struct dgm_agent_extensions {
    dgm_agent_extension *at;
    size_t n;
} dgm_agent_extensions;

typedef struct dgm_agent_capabilities {
    dgm_opt_bool streaming;
    dgm_opt_bool push_notifications;
    dgm_opt_bool state_transition_history; /* 0.3 only */
    dgm_opt_bool extended_agent_card;
    dgm_agent_extensions extensions;
    const dgm_extra *extra;
} dgm_agent_capabilities;

typedef struct dgm_named_text {
    dgm_str name;
    dgm_str text;
} dgm_named_text;

typedef struct dgm_named_texts {
    dgm_named_text *at;
    size_t n;
} dgm_named_texts;

typedef enum dgm_oauth_flow_kind {
    DGM_FLOW_NONE = 0,
    DGM_FLOW_AUTHORIZATION_CODE = 1,
    DGM_FLOW_CLIENT_CREDENTIALS = 2,
    DGM_FLOW_IMPLICIT = 3,
    DGM_FLOW_PASSWORD = 4,
    DGM_FLOW_DEVICE_CODE = 5
} dgm_oauth_flow_kind;

typedef struct dgm_oauth_flow {
    dgm_oauth_flow_kind kind;
    dgm_str authorization_url;
    dgm_str device_authorization_url;
    dgm_str token_url;
    dgm_str refresh_url;
    dgm_named_texts scopes;
    dgm_opt_bool pkce_required;
    const dgm_extra *extra;
} dgm_oauth_flow;

typedef struct dgm_oauth_flows {
    dgm_oauth_flow *at; /* A2A 1.0 has room for one */
    size_t n;
} dgm_oauth_flows;

typedef enum dgm_scheme_kind {
    DGM_SCHEME_NONE = 0,
    DGM_SCHEME_API_KEY = 1,
    DGM_SCHEME_HTTP = 2,
    DGM_SCHEME_OAUTH2 = 3,
    DGM_SCHEME_OPENID = 4,
    DGM_SCHEME_MTLS = 5
} dgm_scheme_kind;

typedef struct dgm_security_scheme {
    dgm_str name; /* its key in the card */
    dgm_scheme_kind kind;
    dgm_str description;
    dgm_str location; /* api key: query, header or cookie */
    dgm_str key_name; /* api key: the header's, parameter's or cookie's name */
    dgm_str scheme;   /* http */
    dgm_str bearer_format;
    dgm_oauth_flows flows;
    dgm_str oauth2_metadata_url;
    dgm_str openid_connect_url;
    const dgm_extra *extra;
    const dgm_extra *outer_extra; /* 1.0: unknown members beside the one that names the kind */
    const dgm_extra *flows_extra; /* oauth2: unknown members beside the flows */
} dgm_security_scheme;

typedef struct dgm_security_schemes {
    dgm_security_scheme *at;
    size_t n;
} dgm_security_schemes;

typedef struct dgm_required_scheme {
    dgm_str name;
    dgm_strs scopes;
    const dgm_extra *extra;
} dgm_required_scheme;

typedef struct dgm_required_schemes {
    dgm_required_scheme *at;
    size_t n;
} dgm_required_schemes;

/* All of its schemes together; the card's list of these is an "or". */
typedef struct dgm_security_requirement {
    dgm_required_schemes schemes;
    const dgm_extra *extra;
} dgm_security_requirement;

typedef struct dgm_security_requirements {
    dgm_security_requirement *at;
    size_t n;
} dgm_security_requirements;

typedef struct dgm_agent_skill {
    dgm_str id;
    dgm_str name;
    dgm_str description;
    dgm_strs tags;
    dgm_strs examples;
    dgm_strs input_modes;
    dgm_strs output_modes;
    dgm_security_requirements security_requirements;
    const dgm_extra *extra;
} dgm_agent_skill;

typedef struct dgm_agent_skills {
    dgm_agent_skill *at;
    size_t n;
} dgm_agent_skills;

typedef struct dgm_card_signature {
    dgm_str protected_header; /* base64url */
    dgm_str signature;        /* base64url */
    const dgm_json *header;
    const dgm_extra *extra;
} dgm_card_signature;

typedef struct dgm_card_signatures {
    dgm_card_signature *at;
    size_t n;
} dgm_card_signatures;

typedef struct dgm_agent_card {
    dgm_str name;
    dgm_str description;
    dgm_agent_interfaces interfaces; /* in order of preference */
    dgm_agent_provider *provider;
    dgm_str version;
    dgm_str documentation_url;
    dgm_str icon_url;
    dgm_agent_capabilities capabilities;
    dgm_security_schemes security_schemes;
    dgm_security_requirements security_requirements;
    dgm_strs default_input_modes;
    dgm_strs default_output_modes;
    dgm_agent_skills skills;
    dgm_card_signatures signatures;
    const dgm_extra *extra;
} dgm_agent_card;

/* ---- errors as peers send them ------------------------------------------------------------------- */

typedef struct dgm_peer_error {
    dgm_code code;       /* DGM_OK when no code of ours fits: then only the members below tell */
    int32_t rpc_code;    /* 0: not given */
    int32_t http_status; /* 0: not given */
    dgm_str status;      /* the gRPC status name of a REST error */
    dgm_str message;
    const dgm_json *details; /* `data` or `details` unchanged; NULL if absent */
    const dgm_extra *extra;
} dgm_peer_error;

/* ---- any of them ----------------------------------------------------------------------------------- */

/* Kinds of objects and the struct of each; the numbers never change. */
typedef enum dgm_object_kind {
    DGM_OBJECT_NONE = 0,
    DGM_OBJECT_MESSAGE = 1,                /* dgm_message */
    DGM_OBJECT_TASK = 2,                   /* dgm_task */
    DGM_OBJECT_STATUS_UPDATE = 3,          /* dgm_status_update */
    DGM_OBJECT_ARTIFACT_UPDATE = 4,        /* dgm_artifact_update */
    DGM_OBJECT_STREAM_RESPONSE = 5,        /* dgm_event */
    DGM_OBJECT_SEND_RESPONSE = 6,          /* dgm_event */
    DGM_OBJECT_INTERNAL_EVENT = 7,         /* dgm_internal */
    DGM_OBJECT_PART = 8,                   /* dgm_part */
    DGM_OBJECT_ARTIFACT = 9,               /* dgm_artifact */
    DGM_OBJECT_STATUS = 10,                /* dgm_status */
    DGM_OBJECT_SEND_REQUEST = 11,          /* dgm_send_request */
    DGM_OBJECT_GET_TASK_REQUEST = 12,      /* dgm_task_request */
    DGM_OBJECT_LIST_TASKS_REQUEST = 13,    /* dgm_list_tasks_request */
    DGM_OBJECT_LIST_TASKS_RESPONSE = 14,   /* dgm_list_tasks_result */
    DGM_OBJECT_CANCEL_REQUEST = 15,        /* dgm_task_request */
    DGM_OBJECT_SUBSCRIBE_REQUEST = 16,     /* dgm_task_request */
    DGM_OBJECT_PUSH_CONFIG = 17,           /* dgm_push_config */
    DGM_OBJECT_PUSH_CONFIG_LIST = 18,      /* dgm_push_config_list */
    DGM_OBJECT_PUSH_GET_REQUEST = 19,      /* dgm_task_request */
    DGM_OBJECT_PUSH_LIST_REQUEST = 20,     /* dgm_task_request */
    DGM_OBJECT_PUSH_DELETE_REQUEST = 21,   /* dgm_task_request */
    DGM_OBJECT_CARD = 22,                  /* dgm_agent_card */
    DGM_OBJECT_EXTENDED_CARD_REQUEST = 23, /* dgm_task_request */
    DGM_OBJECT_ERROR = 24,                 /* dgm_peer_error */
    DGM_OBJECT_EMPTY = 25,                 /* has no struct */
} dgm_object_kind;

DGM_API const char *dgm_object_kind_name(dgm_object_kind kind); /* "message"; "" for NONE */
DGM_API dgm_object_kind dgm_object_kind_by_name(dgm_str name);  /* NONE when there is no such */

#ifdef __cplusplus
}
#endif
