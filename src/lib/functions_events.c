/*
 * lib/functions_events.c - convert_a2a_message_to_agui_event(): one object of A2A, its events.
 *
 * It has no memory: a state gives its event each time, a chunk is a chunk. What a text says may
 * depend on what came before only in a converter.
 */
#include "base/limits.h"
#include "canon/message_content.h"
#include "lib/direct.h"
#include "lib/functions_int.h"
#include "model/stamp.h"
#include "wire/a2a/a2a.h"

struct making {
    dgm_arena *a;
    dgm_simple_events list;
    const dgm_task *task; /* whose messages these are */
    dgm_err *err;
};

static dgm_simple_event *functions_events_add(struct making *k, dgm_simple_kind kind)
{
    k->list.at = dgm_list_grow(k->a, k->list.at, k->list.n, sizeof *k->list.at);
    dgm_simple_event *e = &k->list.at[k->list.n++];
    *e = (dgm_simple_event){.kind = kind};
    return e;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static dgm_str on_new_line(dgm_arena *a, dgm_str text)
{
    char *p = dgm_arena_alloc_raw(a, text.n + 1);
    p[0] = '\n';
    memcpy(p + 1, text.p, text.n);
    return (dgm_str){p, text.n + 1};
}

/* In chat, files at an address are in the text, and data is on lines of its own. Parts cannot express
 * that, so the line ends are written into the texts. */
static void part_lines(dgm_arena *a, dgm_canon_content *c)
{
    for (size_t i = 0; i < c->parts.n; i++) {
        const dgm_canon_part *p = &c->parts.at[i];
        if (p->kind == DGM_CANON_PART_IMAGE || p->source.kind == DGM_CANON_SOURCE_DATA)
            return; /* chat has parts for it, too */
    }
    bool line_open = false, own_before = false, file_before = false;
    for (size_t i = 0; i < c->parts.n; i++) {
        dgm_canon_part *p = &c->parts.at[i];
        bool file = p->kind != DGM_CANON_PART_TEXT;
        if (line_open && !file && !file_before && (p->own_line || own_before) && p->text.n &&
            p->text.p[0] != '\n')
            p->text = on_new_line(a, p->text);
        if (file || p->text.n)
            line_open = file || p->text.p[p->text.n - 1] != '\n';
        own_before = file || p->own_line;
        file_before = file;
    }
}

static dgm_code functions_events_say(struct making *k, const dgm_message *m, const dgm_at *at)
{
    dgm_simple_events events;
    dgm_code rc;
    if ((rc = dgm_simple_from_message(k->a, m, false, at, &events, k->err)))
        return rc;
    for (size_t i = 0; i < events.n; i++) {
        if (events.at[i].message.content.kind == DGM_CANON_CONTENT_PARTS)
            part_lines(k->a, &events.at[i].message.content);
        *functions_events_add(k, events.at[i].kind) = events.at[i];
    }
    return DGM_OK;
}

/* A message that ends something is whole, whatever it says of itself. */
static dgm_code say_whole(struct making *k, const dgm_message *m, const dgm_at *at)
{
    dgm_message whole = *m;
    whole.metadata = NULL;
    return functions_events_say(k, &whole, at);
}

/* ---- states ---------------------------------------------------------------------------------------------- */

/* Progress is not part of the answer, unless it is marked so: canon/records_to_events.h. */
static dgm_code say_while_working(struct making *k, const dgm_message *m, const dgm_at *at)
{
    dgm_str type = dgm_json_str_member(m->metadata, "canonical_type");
    bool answer =
        dgm_str_is(type, "TextMessageChunkEvent") || dgm_str_is(type, "TextMessageEndEvent");
    size_t before = k->list.n, n = before;
    dgm_code rc;
    if ((rc = functions_events_say(k, m, at)))
        return rc;
    for (size_t i = before; i < k->list.n; i++) {
        const dgm_simple_event *e = &k->list.at[i];
        bool text = e->kind == DGM_SIMPLE_TEXT_CHUNK || e->kind == DGM_SIMPLE_TEXT_END ||
                    e->kind == DGM_SIMPLE_TEXT_CONTENT;
        if (!text || answer)
            k->list.at[n++] = *e;
    }
    k->list.n = n;
    return DGM_OK;
}

static dgm_str functions_events_text_of(struct making *k, const dgm_message *m)
{
    bool others;
    return m ? dgm_content_text(k->a, &m->parts, &others) : (dgm_str){0};
}

/* An error is reported once: by its event if that has no other text. */
static bool is_only_error(struct making *k, const dgm_status *s, const dgm_json *metadata)
{
    dgm_str text = functions_events_text_of(k, s->message), error = dgm_metadata_error(metadata);
    return (s->state == DGM_STATE_FAILED || s->state == DGM_STATE_REJECTED) &&
           (!error.n || dgm_str_eq(text, error));
}

static void add_error(struct making *k, const dgm_status *s, const dgm_json *metadata)
{
    static const char *const codes[][2] = {
        [DGM_STATE_FAILED] = {"failed", "The task failed"},
        [DGM_STATE_CANCELED] = {"canceled", "The task was canceled"},
        [DGM_STATE_REJECTED] = {"rejected", "The task was rejected"},
    };
    bool canceled = s->state == DGM_STATE_CANCELED;
    dgm_str error = canceled ? (dgm_str){0} : dgm_metadata_error(metadata);
    if (!error.n && !canceled)
        error = functions_events_text_of(k, s->message);
    dgm_simple_event *e = functions_events_add(k, DGM_SIMPLE_RUN_ERROR);
    e->error_message = error.n ? error : dgm_str_from(codes[s->state][1]);
    e->code = dgm_str_from(codes[s->state][0]);
}

struct run {
    dgm_str thread_id, run_id;
    const dgm_json *metadata;
};

static void add_run(struct making *k, dgm_simple_kind kind, const struct run *run)
{
    dgm_simple_event *e = functions_events_add(k, kind);
    e->thread_id = run->thread_id;
    e->run_id = run->run_id;
}

static void add_state(struct making *k, const dgm_status *s, const struct run *run)
{
    switch (s->state) {
    case DGM_STATE_UNKNOWN: break;
    case DGM_STATE_SUBMITTED: add_run(k, DGM_SIMPLE_RUN_STARTED, run); break;
    case DGM_STATE_WORKING:
        functions_events_add(k, DGM_SIMPLE_STEP_STARTED)->step_name = DGM_STR("working");
        break;
    case DGM_STATE_INPUT_REQUIRED:
    case DGM_STATE_AUTH_REQUIRED:
        functions_events_add(k, DGM_SIMPLE_STEP_FINISHED)->step_name = DGM_STR("working");
        break;
    case DGM_STATE_COMPLETED: add_run(k, DGM_SIMPLE_RUN_FINISHED, run); break;
    case DGM_STATE_FAILED:
    case DGM_STATE_CANCELED:
    case DGM_STATE_REJECTED: add_error(k, s, run->metadata); break;
    }
}

static dgm_code from_status(struct making *k, const dgm_status_update *u, const dgm_at *at)
{
    const dgm_status *s = &u->status;
    const struct run run = {u->context_id, u->task_id, u->metadata};
    const dgm_at *status = DGM_AT_LIT(at, "status"), *message = DGM_AT_LIT(status, "message");
    bool working = s->state == DGM_STATE_WORKING;
    bool silent = s->state == DGM_STATE_SUBMITTED || s->state == DGM_STATE_UNKNOWN ||
                  is_only_error(k, s, u->metadata);
    dgm_code rc = DGM_OK;
    if (working)
        add_state(k, s, &run);
    if (s->message && working)
        rc = say_while_working(k, s->message, message);
    else if (s->message && !silent)
        rc = say_whole(k, s->message, message);
    if (!working)
        add_state(k, s, &run);
    return rc;
}

/* ---- tasks and artifacts ----------------------------------------------------------------------------------- */

static dgm_code say_of_task(void *arg, const dgm_message *m, const dgm_at *at)
{
    struct making *k = arg;
    if (m != k->task->status.message)
        return functions_events_say(k, m, at);
    return is_only_error(k, &k->task->status, k->task->metadata) ? DGM_OK : say_whole(k, m, at);
}

static dgm_code from_task(struct making *k, const dgm_task *t, const dgm_at *at)
{
    const struct run run = {t->context_id, t->id, t->metadata};
    dgm_code rc;
    k->task = t;
    add_run(k, DGM_SIMPLE_RUN_STARTED, &run);
    if ((rc = dgm_direct_each_message(k->a, t, at, say_of_task, k)))
        return rc;
    if (t->status.state != DGM_STATE_SUBMITTED)
        add_state(k, &t->status, &run);
    return DGM_OK;
}

/* An artifact that comes at once is whole; of one that comes in pieces this is one. */
static dgm_code from_artifact(struct making *k, const dgm_artifact_update *u, const dgm_at *at)
{
    bool whole = u->append != DGM_TRUE && u->last_chunk == DGM_TRUE;
    dgm_member mark = {DGM_STR("canonical_type"),
                       dgm_json_make_string(k->a, DGM_STR("TextMessageChunkEvent"))};
    dgm_message m = {.message_id = u->artifact.artifact_id,
                     .role = DGM_ROLE_AGENT,
                     .parts = u->artifact.parts,
                     .metadata = whole ? NULL : dgm_json_object(k->a, &mark, 1)};
    return m.parts.n ? functions_events_say(k, &m, DGM_AT_LIT(at, "artifact")) : DGM_OK;
}

/* Pointers of errors start with the wrapper: dgm_a2a_name_pointer() removes it where the input has none. */
static dgm_code from_event(struct making *k, const dgm_event *e)
{
    switch (e->kind) {
    case DGM_EVENT_TASK: return from_task(k, e->task, DGM_AT_LIT(NULL, "task"));
    case DGM_EVENT_MESSAGE: return functions_events_say(k, e->message, DGM_AT_LIT(NULL, "message"));
    case DGM_EVENT_STATUS: return from_status(k, e->status, DGM_AT_LIT(NULL, "statusUpdate"));
    case DGM_EVENT_ARTIFACT:
        return from_artifact(k, e->artifact, DGM_AT_LIT(NULL, "artifactUpdate"));
    case DGM_EVENT_NONE:
    case DGM_EVENT_INTERNAL: break; /* clients do not get internal events */
    }
    return DGM_OK;
}

/* Every object that contains messages, as an event. */
static dgm_code event_of(const dgm_object *o, dgm_event *ret, dgm_err *err)
{
    *ret = (dgm_event){.any = o->it};
    switch ((int)o->kind) {
    case DGM_OBJECT_MESSAGE: ret->kind = DGM_EVENT_MESSAGE; return DGM_OK;
    case DGM_OBJECT_TASK: ret->kind = DGM_EVENT_TASK; return DGM_OK;
    case DGM_OBJECT_STATUS_UPDATE: ret->kind = DGM_EVENT_STATUS; return DGM_OK;
    case DGM_OBJECT_ARTIFACT_UPDATE: ret->kind = DGM_EVENT_ARTIFACT; return DGM_OK;
    case DGM_OBJECT_INTERNAL_EVENT: ret->kind = DGM_EVENT_INTERNAL; return DGM_OK;
    case DGM_OBJECT_STREAM_RESPONSE:
    case DGM_OBJECT_SEND_RESPONSE: *ret = *(const dgm_event *)o->it; return DGM_OK;
    case DGM_OBJECT_SEND_REQUEST:
        *ret = (dgm_event){.kind = DGM_EVENT_MESSAGE,
                           .message = ((const dgm_send_request *)o->it)->message};
        return DGM_OK;
    default:
        return dgm_fail(err, DGM_BAD_PARAMS, NULL,
                        "a %s is not part of a conversation: only messages, tasks and updates "
                        "become events",
                        dgm_object_kind_name(o->kind));
    }
}

/* ---- the functions -------------------------------------------------------------------------------------------- */

/* An id that was made up is of use only to those who share it. */
static void forget_made_id(struct making *k)
{
    for (size_t i = 0; i < k->list.n; i++) {
        if (k->list.at[i].parent_message_id.n)
            return;
    }
    for (size_t i = 0; i < k->list.n; i++)
        k->list.at[i].message_id = (dgm_str){0};
}

static dgm_code put_object(dgm_arena *a, const dgm_functions_object *o, dgm_event_dialect dialect,
                           dgm_functions_out *out, dgm_err *err)
{
    struct making k = {.a = a, .err = err};
    dgm_event e;
    dgm_code rc;
    if ((rc = event_of(&o->frame.object, &e, err)))
        return rc;
    if ((rc = from_event(&k, &e))) {
        if (err)
            dgm_a2a_name_pointer(o->codec, &o->frame, err);
        return rc;
    }
    if (dialect == DGM_EVENTS_OFFICIAL)
        return dgm_functions_put_official(out, a, &k.list, &e, err);
    if (o->made_id && e.kind == DGM_EVENT_MESSAGE)
        forget_made_id(&k);
    dgm_functions_put_simple(out, &k.list);
    return DGM_OK;
}

static dgm_code put_value(dgm_functions_in *in, yyjson_val *v, size_t i, const dgm_at *at,
                          dgm_event_dialect dialect, dgm_functions_out *out, dgm_err *err)
{
    dgm_functions_object o;
    dgm_code rc = dgm_functions_read_object(in, v, i, &o, err);
    if (!rc)
        rc = put_object(in->a, &o, dialect, out, err);
    if (rc)
        dgm_err_below(at, err);
    return rc;
}

static dgm_code put_values(dgm_functions_in *in, dgm_event_dialect dialect, dgm_functions_out *out,
                           dgm_err *err)
{
    size_t i, n;
    yyjson_val *v;
    dgm_code rc;
    if (!yyjson_is_arr(in->root))
        return put_value(in, in->root, 0, NULL, dialect, out, err);
    out->is_list = true;
    yyjson_arr_foreach (in->root, i, n, v) {
        if ((rc = put_value(in, v, i, DGM_AT_I(NULL, i), dialect, out, err)))
            return rc;
    }
    return DGM_OK;
}

dgm_code dgm_functions_a2a_to_simple(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err)
{
    return put_values(in, DGM_EVENTS_SIMPLE, out, err);
}

dgm_code dgm_functions_a2a_to_official(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err)
{
    return put_values(in, DGM_EVENTS_OFFICIAL, out, err);
}

dgm_code dgm_convert_a2a_message_to_agui_event(const char *text, size_t n,
                                               dgm_event_dialect dialect, char **ret_text,
                                               size_t *ret_n, dgm_err *err)
{
    return dgm_functions_on_text(dialect == DGM_EVENTS_OFFICIAL ? dgm_functions_a2a_to_official
                                                                : dgm_functions_a2a_to_simple,
                                 (dgm_str){text, n}, ret_text, ret_n, err);
}

/* The same parts, the same id. */
static dgm_str id_of_parts(dgm_arena *a, const dgm_parts *parts)
{
    dgm_mint mint = {0};
    for (size_t i = 0; i < parts->n; i++)
        dgm_mint_seed(&mint, parts->at[i].data ? dgm_json_text_in(a, parts->at[i].data)
                                               : parts->at[i].content);
    return dgm_mint_id(&mint, a);
}

dgm_code dgm_message_to_agui_event(const dgm_message *message, dgm_event_dialect dialect,
                                   char **ret_text, size_t *ret_n, dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (!message || !ret_text)
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    dgm_message copy = *message;
    dgm_functions_object o = {.frame.object = {DGM_OBJECT_MESSAGE, &copy},
                              .codec = &dgm_codec_a2a_10,
                              .made_id = !message->message_id.n};
    if (o.made_id)
        copy.message_id = id_of_parts(a, &message->parts);
    dgm_functions_out out;
    dgm_functions_out_init(&out);
    return dgm_functions_out_done(&out, put_object(a, &o, dialect, &out, err), ret_text, ret_n,
                                  err);
}
