/* lib/loss_watch.c - see loss_watch.h. */
#include "lib/loss_watch.h"
#include "lib/direct.h"
#include "wire/a2a/a2a.h"

#include <stdio.h>
#include <stdlib.h>

/* More than any pair of formats has. */
#define MAX_ROWS 256

struct dgm_loss_watch {
    dgm_loss_seen *seen;
    size_t n, room;
    /* the value that is being converted */
    const dgm_frames_item *item; /* NULL: none is */
    yyjson_val *root;
    const dgm_at *below;
    /* its unknown members: their row is known when its path is. n_reported: with those that a row has counted already */
    size_t n_unknown, n_reported;
    char unknown_at[sizeof((dgm_loss_seen *)0)->at];
    /* the rows for its path */
    const void *rows_of[3];
    const dgm_codec *from, *to; /* as for the last value */
    dgm_loss_path path;
    const dgm_loss *rows[MAX_ROWS];
    size_t n_rows;
    bool canonical;       /* the names are AG-UI's, not the input's */
    const dgm_at *inside; /* A2A: where the object is in its JSON-RPC envelope */
    bool in_request;      /* A2A: it is a request */
    bool in_events;       /* it is an event or a response */
    bool is_internal;     /* A2A: an internal event, lost if no canonical event comes of it */
    bool passed;          /* a canonical event came of it */
    bool known_top;       /* its unknown members at the top have been counted */
};

dgm_loss_watch *dgm_loss_watch_new(void)
{
    return dgm_xcalloc(1, sizeof(dgm_loss_watch));
}

void dgm_loss_watch_free(dgm_loss_watch *w)
{
    if (!w)
        return;
    free(w->seen);
    free(w);
}

size_t dgm_loss_watch_seen(const dgm_loss_watch *w, const dgm_loss_seen **ret_seen)
{
    *ret_seen = w->seen;
    return w->n;
}

/* ---- counting ---------------------------------------------------------------------------------- */

static dgm_loss_seen *find_seen(dgm_loss_watch *w, const dgm_loss *loss)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->seen[i].loss == loss)
            return &w->seen[i];
    }
    return NULL;
}

static void place_seen(const dgm_loss_watch *w, dgm_loss_seen *s)
{
    dgm_err place = {0};
    if (!w->item)
        return;
    dgm_json_place(w->item->text, dgm_json_find(w->item->text, s->at), &place);
    dgm_frames_place(w->item, &place);
    s->line = place.line;
    s->column = place.column;
}

static void count_loss(dgm_loss_watch *w, const dgm_loss *loss, const char *at, size_t times)
{
    dgm_loss_seen *s = find_seen(w, loss);
    if (!s) {
        if (w->n == w->room) {
            w->room = w->room ? 2 * w->room : 16;
            w->seen = dgm_xrealloc(w->seen, w->room * sizeof *w->seen);
        }
        s = &w->seen[w->n++];
        *s = (dgm_loss_seen){.loss = loss, .canonical = w->canonical};
        snprintf(s->at, sizeof s->at, "%s", at);
        place_seen(w, s);
    }
    s->count += times;
}

static void pointer_text(const dgm_loss_watch *w, const dgm_at *at, char *out, size_t size)
{
    size_t n;
    out[0] = '\0';
    if (w->canonical)
        return; /* the input has no such name */
    if (w->below)
        dgm_at_text(w->below, out, size);
    n = strlen(out);
    if (at)
        dgm_at_text(at, out + n, size - n);
}

/* ---- conditions -------------------------------------------------------------------------------- */

/* A value that a pattern leads to. */
struct place {
    const dgm_at *at;
    dgm_str key;      /* of the value in its object; p == NULL: in an array, or the object itself */
    size_t i;         /* in its array */
    yyjson_val *in;   /* the object or array around it */
    yyjson_val *root; /* the object that the row is about */
    const dgm_at *top; /* and where it is */
};

/* `words` are separated by spaces; one may end with "*". */
static bool is_word(const char *words, dgm_str s)
{
    while (words && *words) {
        size_t n = strcspn(words, " ");
        bool prefix = n && words[n - 1] == '*';
        if (prefix ? s.n >= n - 1 && memcmp(s.p, words, n - 1) == 0
                   : s.n == n && memcmp(s.p, words, n) == 0)
            return true;
        words += n + (words[n] == ' ');
    }
    return false;
}

static dgm_str loss_watch_text_of(yyjson_val *v)
{
    return yyjson_is_str(v) ? dgm_json_str(v) : (dgm_str){0};
}

/* Has it a member of these names? others: one of another name. */
static bool has_member(yyjson_val *object, const char *names, bool others)
{
    yyjson_val *key, *v;
    size_t i, n;
    if (!yyjson_is_obj(object))
        return false;
    yyjson_obj_foreach (object, i, n, key, v) {
        if (is_word(names, dgm_json_str(key)) != others)
            return true;
    }
    return false;
}

static size_t count_texts(yyjson_val *list)
{
    yyjson_val *e;
    size_t i, n, texts = 0;
    if (!yyjson_is_arr(list))
        return 0;
    yyjson_arr_foreach (list, i, n, e)
        texts += yyjson_is_str(dgm_json_get(e, DGM_STR("text")));
    return texts;
}

static bool is_empty_value(yyjson_val *v)
{
    return (yyjson_is_str(v) && !yyjson_get_len(v)) || (yyjson_is_ctn(v) && yyjson_get_len(v) == 0);
}

static dgm_str member_text(yyjson_val *object, dgm_str name)
{
    return yyjson_is_obj(object) ? loss_watch_text_of(dgm_json_get(object, name)) : (dgm_str){0};
}

static size_t steps_between(const dgm_at *at, const dgm_at *above)
{
    size_t n = 0;
    for (; at && at != above; at = at->up)
        n++;
    return n;
}

static bool condition_holds(const dgm_loss_watch *w, const dgm_loss *loss, yyjson_val *v,
                            const struct place *p)
{
    int64_t number;
    switch (loss->when) {
    case DGM_LOSS_PRESENT: return !is_empty_value(v);
    case DGM_LOSS_NOT_REPORTED: return false;
    case DGM_LOSS_EMPTY: return is_empty_value(v);
    case DGM_LOSS_FALSE: return yyjson_is_false(v);
    case DGM_LOSS_ZERO: return dgm_json_int(v, &number) && number == 0;
    case DGM_LOSS_NOT_TEXT: return !yyjson_is_str(v);
    case DGM_LOSS_SEVERAL_TEXTS: return count_texts(v) > 1;
    case DGM_LOSS_SEVERAL: return yyjson_arr_size(v) > 1;
    case DGM_LOSS_NOT_FIRST:
        v = yyjson_is_obj(v) ? dgm_json_get(v, DGM_STR("index")) : NULL;
        return p->i > 0 || (v && dgm_json_int(v, &number) && number > 0);
    case DGM_LOSS_IS: return is_word(loss->words, loss_watch_text_of(v));
    case DGM_LOSS_IS_NOT: return !is_word(loss->words, loss_watch_text_of(v));
    case DGM_LOSS_NAME_IS_NOT: return p->key.p && !is_word(loss->words, p->key);
    case DGM_LOSS_TYPE_IS: return is_word(loss->words, member_text(v, DGM_STR("type")));
    case DGM_LOSS_TYPE_IS_NOT: return !is_word(loss->words, member_text(v, DGM_STR("type")));
    case DGM_LOSS_MORE_THAN:
        return !is_word(loss->words, member_text(v, DGM_STR("type"))) ||
               has_member(v, "type", true);
    case DGM_LOSS_EVENT_IS_NOT: return !is_word(loss->words, member_text(v, DGM_STR("name")));
    case DGM_LOSS_STEP_IS: return is_word(loss->words, member_text(v, DGM_STR("stepName")));
    case DGM_LOSS_OUTCOME_IS:
        v = dgm_json_get(v, DGM_STR("outcome"));
        return is_word(loss->words, member_text(v, DGM_STR("type")));
    case DGM_LOSS_SOURCE_IS_NOT:
        v = dgm_json_get(v, DGM_STR("source"));
        return v && !is_word(loss->words, member_text(v, DGM_STR("type")));
    case DGM_LOSS_HAS: return has_member(v, loss->words, false);
    case DGM_LOSS_HAS_OTHERS: return !yyjson_is_obj(v) || has_member(v, loss->words, true);
    case DGM_LOSS_HAS_NONE: return !has_member(v, loss->words, false);
    case DGM_LOSS_BESIDE:
        return has_member(p->in, loss->words, false) && p->key.p && !is_word(loss->words, p->key);
    case DGM_LOSS_NOT_BESIDE: return !has_member(p->in, loss->words, false);
    case DGM_LOSS_STATE_IS: return is_word(loss->words, member_text(p->in, DGM_STR("state")));
    case DGM_LOSS_ALONE: return !w->in_request && steps_between(p->top, w->inside) <= 1;
    case DGM_LOSS_STREAMED: return w->item && !w->item->alone;
    case DGM_LOSS_ROLE_IS: return is_word(loss->words, member_text(p->root, DGM_STR("role")));
    case DGM_LOSS_LIST_UNLESS_ROLE:
        return yyjson_is_arr(v) && !is_word(loss->words, member_text(p->root, DGM_STR("role")));
    case DGM_LOSS_ROLE_IS_NOT: return !is_word(loss->words, member_text(p->root, DGM_STR("role")));
    }
    return true;
}

/* ---- patterns ---------------------------------------------------------------------------------- */

static void match_steps(dgm_loss_watch *w, const dgm_loss *loss, const char *pattern, yyjson_val *v,
                        const struct place *p);

static void match_each(dgm_loss_watch *w, const dgm_loss *loss, const char *rest, yyjson_val *v,
                       const struct place *p)
{
    yyjson_val *e, *key;
    size_t i, n;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e) {
            struct place inner = {DGM_AT_I(p->at, i), {NULL, 0}, i, v, p->root, p->top};
            match_steps(w, loss, rest, e, &inner);
        }
    } else if (yyjson_is_obj(v)) {
        yyjson_obj_foreach (v, i, n, key, e) {
            dgm_str name = dgm_json_str(key);
            struct place inner = {DGM_AT(p->at, name), name, i, v, p->root, p->top};
            match_steps(w, loss, rest, e, &inner);
        }
    }
}

/* The rows from A2A to canonical events are the same for all its dialects, which have other names for these. */
static dgm_str dialect_name(yyjson_val *v, dgm_str step)
{
    if (dgm_json_get(v, step))
        return step;
    if (dgm_str_is(step, "parts"))
        return DGM_STR("content");
    if (dgm_str_is(step, "file"))
        return dgm_json_get(v, DGM_STR("raw")) ? DGM_STR("raw") : DGM_STR("url");
    return step;
}

/* pattern: "" or "/step/...". */
static void match_steps(dgm_loss_watch *w, const dgm_loss *loss, const char *pattern, yyjson_val *v,
                        const struct place *p)
{
    if (!*pattern) {
        char at[sizeof((dgm_loss_seen *)0)->at];
        if (yyjson_is_null(v) || !condition_holds(w, loss, v, p))
            return;
        pointer_text(w, p->at, at, sizeof at);
        count_loss(w, loss, at, 1);
        return;
    }
    dgm_str step = {pattern + 1, strcspn(pattern + 1, "/")};
    const char *rest = pattern + 1 + step.n;
    if (dgm_str_is(step, "*")) {
        match_each(w, loss, rest, v, p);
        return;
    }
    if (!w->canonical && w->from->decode && yyjson_is_obj(v))
        step = dialect_name(v, step);
    yyjson_val *member = yyjson_is_obj(v) ? dgm_json_get(v, step) : NULL;
    if (member) {
        struct place inner = {DGM_AT(p->at, step), step, 0, v, p->root, p->top};
        match_steps(w, loss, rest, member, &inner);
    }
}

/* Of requests and completions: the members that have rows of their own, or are converted. */
static bool is_named(const char *object, dgm_str key)
{
    if (strncmp(object, "chat-", 5) == 0)
        return dgm_str_is(key, "messages") || dgm_str_is(key, "choices");
    return is_word(
        "id object messages input tools functions output choices usage status error threadId", key);
}

/* A row for members that have no name of their own. Unknown members of events and messages are counted by
 * the reader instead, which knows them: see on_unknown_member(). */
static void match_unnamed(dgm_loss_watch *w, const dgm_loss *loss, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *key, *e;
    size_t i, n;
    if (strcmp(loss->object, "any") == 0 || strcmp(loss->object, "events") == 0 ||
        strncmp(loss->object, "message", 7) == 0 || !yyjson_is_obj(v))
        return;
    w->known_top = true;
    yyjson_obj_foreach (v, i, n, key, e) {
        dgm_str name = dgm_json_str(key);
        char pointer[sizeof((dgm_loss_seen *)0)->at];
        if (is_named(loss->object, name))
            continue;
        pointer_text(w, DGM_AT(at, name), pointer, sizeof pointer);
        count_loss(w, loss, pointer, 1);
    }
}

static void match_row(dgm_loss_watch *w, const dgm_loss *loss, yyjson_val *v, dgm_str name,
                      const dgm_at *at)
{
    size_t n = strcspn(loss->member, "/");
    bool prefix = n && loss->member[n - 1] == '*';
    struct place top = {.at = at, .root = v, .top = at};
    bool unnamed = strcmp(loss->member, "/*") == 0;
    /* decoders of streams do not report unknown members: their rows list the known ones */
    if (unnamed && !(loss->words && w->in_events)) {
        match_unnamed(w, loss, v, at);
        return;
    }
    if (strcmp(loss->member, "*") == 0)
        return; /* of types that are unknown: see dgm_loss_watch_end() */
    if (n && !(prefix ? name.n >= n - 1 && memcmp(name.p, loss->member, n - 1) == 0
                      : name.n == n && memcmp(name.p, loss->member, n) == 0))
        return;
    match_steps(w, loss, loss->member + n, v, &top);
}

/* All rows about objects of that name. any: those about any object, too. */
static void match_object(dgm_loss_watch *w, const char *object, bool any, yyjson_val *v,
                         dgm_str name, const dgm_at *at)
{
    for (size_t i = 0; i < w->n_rows; i++) {
        const char *of = w->rows[i]->object;
        if (strcmp(of, object) == 0 || (any && strcmp(of, "any") == 0))
            match_row(w, w->rows[i], v, name, at);
    }
}

/* ---- the rows of a path ------------------------------------------------------------------------ */

static void add_loss_rows(dgm_loss_watch *w, const dgm_loss_rows *rows)
{
    for (size_t i = 0; rows && i < rows->n && w->n_rows < MAX_ROWS; i++)
        w->rows[w->n_rows++] = &rows->at[i];
}

static bool start_rows(dgm_loss_watch *w, const void *a, const void *b, const void *c)
{
    if (w->rows_of[0] == a && w->rows_of[1] == b && w->rows_of[2] == c)
        return false;
    w->rows_of[0] = a;
    w->rows_of[1] = b;
    w->rows_of[2] = c;
    w->n_rows = 0;
    return true;
}

static void find_path_rows(dgm_loss_watch *w, dgm_loss_path path, const dgm_codec *from,
                           const dgm_codec *to)
{
    static const char paths[] = {DGM_LOSS_A2A, DGM_LOSS_DIRECT, DGM_LOSS_READING};
    w->canonical = false;
    w->from = from;
    w->to = to;
    w->path = path;
    if (!start_rows(w, from, to, &paths[path]) || from == to)
        return;
    switch (path) {
    case DGM_LOSS_A2A: w->n_rows = dgm_a2a_losses(from, to, w->rows, MAX_ROWS); break;
    case DGM_LOSS_DIRECT:
        w->n_rows = dgm_direct_losses(from->name, to->name, w->rows, MAX_ROWS);
        break;
    case DGM_LOSS_READING: add_loss_rows(w, from->lost_reading); break;
    }
    w->n_rows = w->n_rows < MAX_ROWS ? w->n_rows : MAX_ROWS;
}

/* ---- A2A --------------------------------------------------------------------------------------- */

/* Which objects are below a member of this name. Members with other names hold none. */
static const struct {
    const char *name, *object;
} a2a_places[] = {
    {"parts", "part"},
    {"content", "part"},
    {"history", "message"},
    {"message", "message"},
    {"status", "status"},
    {"artifacts", "artifact"},
    {"artifact", "artifact"},
    {"task", "task"},
    {"tasks", "task"},
    {"statusUpdate", "status-update"},
    {"artifactUpdate", "artifact-update"},
    {"configs", "push-config"},
    {"configuration", "configuration"},
    {"taskPushNotificationConfig", "push-config"},
    {"pushNotificationConfig", "push-config"},
    {"pushNotification", "push-config"},
};

static void walk_a2a(dgm_loss_watch *w, const char *object, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *e;
    size_t k, n;
    if (!yyjson_is_obj(v))
        return;
    match_object(w, object, true, v, (dgm_str){0}, at);
    if (strcmp(object, "part") == 0)
        return; /* its data is the user's */
    for (size_t i = 0; i < sizeof a2a_places / sizeof *a2a_places; i++) {
        dgm_str name = dgm_str_from(a2a_places[i].name);
        yyjson_val *member = dgm_json_get(v, name);
        if (yyjson_is_obj(member)) {
            walk_a2a(w, a2a_places[i].object, member, DGM_AT(at, name));
        } else if (yyjson_is_arr(member)) {
            const dgm_at *list = DGM_AT(at, name);
            yyjson_arr_foreach (member, k, n, e)
                walk_a2a(w, a2a_places[i].object, e, DGM_AT_I(list, k));
        }
    }
}

/* 0.3 has no wrappers: an event of a stream is the object itself. */
static const char *bare_event(const dgm_object *o, yyjson_val *v)
{
    static const char *const names[] = {[DGM_EVENT_NONE] = NULL,
                                        [DGM_EVENT_TASK] = "task",
                                        [DGM_EVENT_MESSAGE] = "message",
                                        [DGM_EVENT_STATUS] = "status-update",
                                        [DGM_EVENT_ARTIFACT] = "artifact-update",
                                        [DGM_EVENT_INTERNAL] = "internal-event"};
    bool any = o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE;
    if (!any || has_member(v, "task message statusUpdate artifactUpdate", false))
        return NULL;
    return names[((const dgm_event *)o->it)->kind];
}

static bool is_internal(const dgm_object *o)
{
    return o->kind == DGM_OBJECT_INTERNAL_EVENT ||
           ((o->kind == DGM_OBJECT_STREAM_RESPONSE || o->kind == DGM_OBJECT_SEND_RESPONSE) &&
            ((const dgm_event *)o->it)->kind == DGM_EVENT_INTERNAL);
}

/* No dialect of A2A has them, not even the one that they came in. */
static const dgm_loss internal_loss = {"internal-event", "",
                                       "left out: the target has no events of this kind"};

void dgm_loss_watch_a2a(dgm_loss_watch *w, dgm_loss_path path, const dgm_codec *from,
                        const dgm_codec *to, yyjson_val *value, const dgm_frame *frame)
{
    dgm_at inside = {0};
    const dgm_at *at = frame->envelope ? &inside : NULL;
    find_path_rows(w, path, from, to);
    if (path == DGM_LOSS_A2A && is_internal(&frame->object)) {
        count_loss(w, &internal_loss, "", 1);
        return;
    }
    w->is_internal = path == DGM_LOSS_READING && is_internal(&frame->object);
    if (frame->envelope) {
        inside.key =
            frame->envelope == DGM_ENVELOPE_REQUEST ? DGM_STR("params") : DGM_STR("result");
        match_object(w, "any", false, value, (dgm_str){0}, NULL);
        if (!dgm_json_get(value, inside.key))
            inside.key = DGM_STR("error");
        value = dgm_json_get(value, inside.key);
    }
    w->inside = at;
    w->in_request = frame->object.kind == DGM_OBJECT_SEND_REQUEST;
    const char *bare = value ? bare_event(&frame->object, value) : NULL;
    if (bare)
        match_object(w, bare, false, value, (dgm_str){0}, at);
    if (value)
        walk_a2a(w, dgm_object_kind_name(frame->object.kind), value, at);
    w->inside = NULL;
}

/* ---- the others -------------------------------------------------------------------------------- */

static dgm_str name_of_value(yyjson_val *v, bool message)
{
    yyjson_val *name = dgm_json_get(v, message ? DGM_STR("role") : DGM_STR("type"));
    if (!name)
        name = dgm_json_get(v, message ? DGM_STR("type") : DGM_STR("event"));
    return loss_watch_text_of(name);
}

static void walk_messages(dgm_loss_watch *w, const char *object, yyjson_val *v, const dgm_at *at)
{
    yyjson_val *e;
    size_t i, n;
    if (yyjson_is_arr(v)) {
        yyjson_arr_foreach (v, i, n, e)
            walk_messages(w, object, e, DGM_AT_I(at, i));
    } else if (yyjson_is_obj(v)) {
        match_object(w, object, true, v, name_of_value(v, true), at);
    }
}

void dgm_loss_watch_chat(dgm_loss_watch *w, const dgm_codec *from, const dgm_codec *to,
                         yyjson_val *value)
{
    yyjson_val *messages = dgm_json_get(value, DGM_STR("messages")), *e;
    yyjson_val *choices = dgm_json_get(value, DGM_STR("choices"));
    size_t i, n;
    find_path_rows(w, DGM_LOSS_DIRECT, from, to);
    if (messages) {
        match_object(w, "chat-request", true, value, (dgm_str){0}, NULL);
        walk_messages(w, "message", messages, DGM_AT_LIT(NULL, "messages"));
    } else if (yyjson_is_arr(choices)) {
        const dgm_at *list = DGM_AT_LIT(NULL, "choices");
        match_object(w, "chat-response", true, value, (dgm_str){0}, NULL);
        yyjson_arr_foreach (choices, i, n, e) {
            const dgm_at *choice = DGM_AT_I(list, i);
            walk_messages(w, "message", dgm_json_get(e, DGM_STR("message")),
                          DGM_AT_LIT(choice, "message"));
        }
    } else {
        walk_messages(w, "message", value, NULL);
    }
}

static void walk_form(dgm_loss_watch *w, yyjson_val *v, dgm_form form)
{
    static const char *const lists[] = {"messages", "input"};
    if (form == DGM_FORM_MESSAGES) {
        walk_messages(w, "messages", v, NULL);
        return;
    }
    if (!yyjson_is_obj(v))
        return;
    w->in_events = form == DGM_FORM_EVENTS || form == DGM_FORM_RESPONSE;
    match_object(w, dgm_form_word(form), true, v,
                 form == DGM_FORM_EVENTS ? name_of_value(v, false) : (dgm_str){0}, NULL);
    w->in_events = false;
    for (size_t i = 0; form == DGM_FORM_REQUEST && i < 2; i++) {
        dgm_str name = dgm_str_from(lists[i]);
        yyjson_val *list = dgm_json_get(v, name);
        if (yyjson_is_arr(list))
            walk_messages(w, "messages", list, DGM_AT(NULL, name));
    }
}

void dgm_loss_watch_canon(dgm_loss_watch *w, const dgm_codec *from, const dgm_codec *to,
                          yyjson_val *value, dgm_form form)
{
    find_path_rows(w, DGM_LOSS_READING, from, to);
    walk_form(w, value, form);
}

void dgm_loss_watch_written(dgm_loss_watch *w, const dgm_codec *to, yyjson_val *value,
                            dgm_form form)
{
    if (start_rows(w, NULL, to, NULL))
        add_loss_rows(w, to->lost_writing);
    w->canonical = true;
    walk_form(w, value, form);
    w->canonical = false;
}

/* ---- the value --------------------------------------------------------------------------------- */

/* Names with escaped characters are not found: then the position is that of the whole value. */
static bool is_pointer_to_value(yyjson_val *v, const char *pointer)
{
    while (v && *pointer) {
        dgm_str step = {pointer + 1, strcspn(pointer + 1, "/")};
        if (yyjson_is_arr(v))
            v = yyjson_arr_get(v, (size_t)strtoul(step.p, NULL, 10));
        else
            v = yyjson_is_obj(v) ? dgm_json_get(v, step) : NULL;
        pointer += 1 + step.n;
    }
    return v;
}

/* Where an unknown member is in the input: a codec may have left out the index of an array's element, or named a
 * wrapper that the dialect does not have. */
static bool find_unknown(const dgm_loss_watch *w, const char *at, char *out, size_t size)
{
    char below[64] = "";
    const char *second = at[0] ? strchr(at + 1, '/') : NULL;
    if (w->below)
        dgm_at_text(w->below, below, sizeof below);
    const char *tries[][2] = {{below, at}, {below, second ? second : at}, {"", at}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(out, size, "%s%s", tries[i][0], tries[i][1]);
        if (is_pointer_to_value(w->root, out))
            return true;
    }
    return false;
}

static void on_unknown_member(void *arg, const dgm_at *up, dgm_str key)
{
    dgm_loss_watch *w = arg;
    char at[sizeof w->unknown_at], found[sizeof w->unknown_at];
    w->n_reported++;
    if (w->known_top && (!up || up == w->below))
        return;
    dgm_at_text(DGM_AT(up, key), at, sizeof at);
    bool known = w->root && find_unknown(w, at, found, sizeof found);
    if (w->n_unknown++ == 0)
        snprintf(w->unknown_at, sizeof w->unknown_at, "%s", known ? found : "");
}

void dgm_loss_watch_start(dgm_loss_watch *w, const dgm_frames_item *item, yyjson_val *value,
                          dgm_reader *r)
{
    w->item = item;
    w->root = value;
    w->below = NULL;
    w->n_unknown = w->n_reported = 0;
    w->from = w->to = NULL;
    w->known_top = w->is_internal = w->passed = false;
    r->on_unknown = on_unknown_member;
    r->on_unknown_arg = w;
}

void dgm_loss_watch_passed(dgm_loss_watch *w)
{
    w->passed = true;
}

void dgm_loss_watch_below(dgm_loss_watch *w, const dgm_at *at)
{
    w->below = at;
}

static const dgm_loss *find_row(const dgm_loss_watch *w, const char *member)
{
    for (size_t i = 0; i < w->n_rows; i++) {
        if (strcmp(w->rows[i]->member, member) == 0)
            return w->rows[i];
    }
    return NULL;
}

/* The row for unknown members: of the path, or of the second half of it. */
static const dgm_loss *find_unknown_row(dgm_loss_watch *w)
{
    static const dgm_loss unknown = {"any", "/*", "unknown members are left out"};
    const dgm_loss *row = find_row(w, "/*");
    if (row || w->path != DGM_LOSS_READING)
        return row;
    const dgm_loss_rows *rows = w->to->lost_writing;
    for (size_t i = 0; rows && i < rows->n; i++) {
        if (strcmp(rows->at[i].member, "/*") == 0)
            return &rows->at[i];
    }
    return w->to->decode ? &unknown : NULL;
}

void dgm_loss_watch_end(dgm_loss_watch *w, const dgm_reader *r)
{
    const dgm_loss *row;
    w->below = NULL;
    if (w->is_internal && !w->passed)
        count_loss(w, &internal_loss, "", 1);
    if (w->from && w->from != w->to) {
        find_path_rows(w, w->path, w->from, w->to);
        if (w->n_unknown && (row = find_unknown_row(w)))
            count_loss(w, row, w->unknown_at, w->n_unknown);
        if (r->n_unknown > w->n_reported && (row = find_row(w, "*")))
            count_loss(w, row, "", r->n_unknown - w->n_reported);
    }
    w->item = NULL;
    w->root = NULL;
}
