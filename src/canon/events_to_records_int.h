/* canon/events_to_records_int.h - the inside of to_model: what its files share. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "canon/events_to_records.h"
#include "canon/message_content.h"
#include "json/json.h"

/* A text message or a call. */
struct to_item {
    dgm_str id, name, parent, artifact_id;
    dgm_canon_role role;
    dgm_buf text;
    dgm_canon_parts parts; /* of the user: instead of the text */
    bool begun, sealed;    /* of its artifact; of a call, sealed: it has ended */
};

struct dgm_events_to_records {
    dgm_events_params params;
    dgm_on_record_event on_event;
    void *arg;
    dgm_code rc;
    dgm_arena *arena, *scratch;
    const dgm_canon_event *now; /* being fed */
    dgm_err *err;

    dgm_str task_id, context_id;
    bool in_run, working, finished;
    const dgm_json *metadata; /* for the next status; in `arena` */

    struct to_item *items;
    size_t n_items, cap_items;
    dgm_map texts, calls; /* id -> item */
    dgm_map subagents;    /* likewise: name, and the address as parent */
    dgm_map artifacts;    /* ids of those that were begun */
    dgm_map known;        /* ids of messages that the caller sent */
    size_t last_text;     /* the assistant's last text; SIZE_MAX: none */

    /* without a run: a message that is being put together */
    dgm_str waiting_id;
    dgm_buf waiting_text;
    struct {
        size_t *at; /* items */
        size_t n;
    } waiting_calls;
    dgm_buf waiting_results; /* elements of tool_results */
    bool waiting;
};

/* events_to_records.c */
void dgm_to_out(dgm_events_to_records *m, const dgm_event *event);
void dgm_to_status(dgm_events_to_records *m, dgm_task_state state, dgm_message *message);
void dgm_to_work(dgm_events_to_records *m); /* emits status working, unless it was emitted before */
void dgm_to_internal(dgm_events_to_records *m, dgm_internal *e);
dgm_message *dgm_to_agent_message(dgm_events_to_records *m, dgm_str id, dgm_part part);

/* events_to_records_items.c */
/* Finds the item with this id, or adds one. */
struct to_item *dgm_to_open(dgm_events_to_records *m, dgm_map *map, dgm_str id);
struct to_item *dgm_to_find(const dgm_events_to_records *m, const dgm_map *map, dgm_str id);
void dgm_to_start_text(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_add_text(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_end_text(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_start_call(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_add_arguments(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_end_call(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_result(dgm_events_to_records *m, const dgm_canon_event *e);
void dgm_to_snapshot(dgm_events_to_records *m, const dgm_canon_messages *list);
void dgm_to_close_items(dgm_events_to_records *m);
void dgm_to_flush(dgm_events_to_records *m); /* gives the message that waits */
/* {"tool_calls":[...]} of these calls. */
const dgm_json *dgm_to_call_data(dgm_events_to_records *m, const dgm_strs *ids);

/* events_to_records_message.c */
void dgm_to_usage(dgm_events_to_records *m, const dgm_canon_usages *usages);
void dgm_to_put_call(dgm_buf *b, dgm_arena *a, dgm_str id, dgm_str name, dgm_str arguments);
