/*
 * wire/a2a/a2a_answer.c - reads what agents answer, whatever version they mix.
 *
 * The usual case is an object of the version that was requested: its codec reads it. An object that the codec rejects is
 * rewritten as 1.0 and read again: names of states and roles, parts, members that only one version has. Times are dropped
 * then: some servers write them without a time zone, and the reader of the answer has a clock.
 */
#include "base/limits.h"
#include "wire/a2a/a2a_int.h"
#include "wire/a2a/a2a_peer.h"

/* ---- the object in an answer ------------------------------------------------------------------------------------------ */

struct noun {
    dgm_event_kind kind;
    yyjson_val *v;
};

static yyjson_val *object_in(const yyjson_val *v, const char *camel, const char *snake)
{
    yyjson_val *found = dgm_json_get(v, dgm_str_from(camel));
    if (!yyjson_is_obj(found) && snake)
        found = dgm_json_get(v, dgm_str_from(snake));
    return yyjson_is_obj(found) ? found : NULL;
}

static dgm_str text_in(const yyjson_val *v, const char *camel, const char *snake)
{
    dgm_str text = dgm_json_str_member(v, camel);
    return text.n || !snake ? text : dgm_json_str_member(v, snake);
}

/* 0.3 names its objects; 1.0 does not, and wraps them. */
static struct noun noun_by_members(yyjson_val *v)
{
    dgm_str kind = dgm_json_str_member(v, "kind");
    bool has_status = object_in(v, "status", NULL);
    if (dgm_str_is(kind, "artifact-update") || object_in(v, "artifact", NULL))
        return (struct noun){DGM_EVENT_ARTIFACT, v};
    if (dgm_str_is(kind, "status-update") || (has_status && text_in(v, "taskId", "task_id").n))
        return (struct noun){DGM_EVENT_STATUS, v};
    if (dgm_str_is(kind, "task") || (has_status && dgm_json_str_member(v, "id").n))
        return (struct noun){DGM_EVENT_TASK, v};
    if (dgm_str_is(kind, "message") || dgm_json_get(v, DGM_STR("parts")) ||
        text_in(v, "messageId", "message_id").n)
        return (struct noun){DGM_EVENT_MESSAGE, v};
    return (struct noun){DGM_EVENT_NONE, has_status ? v : NULL};
}

static struct noun find_noun(yyjson_val *v)
{
    static const struct {
        const char *camel, *snake;
        dgm_event_kind kind;
    } wrappers[] = {
        {"artifactUpdate", "artifact_update", DGM_EVENT_ARTIFACT},
        {"statusUpdate", "status_update", DGM_EVENT_STATUS},
        {"task", NULL, DGM_EVENT_TASK},
        {"message", "msg", DGM_EVENT_MESSAGE},
    };
    struct noun found = noun_by_members(v);
    for (size_t i = 0; !found.kind && i < sizeof wrappers / sizeof *wrappers; i++) {
        yyjson_val *inside = object_in(v, wrappers[i].camel, wrappers[i].snake);
        if (inside)
            return (struct noun){wrappers[i].kind, inside};
    }
    if (!found.kind && found.v) /* a status without any id: of the task that was requested */
        found.kind = DGM_EVENT_STATUS;
    return found;
}

/* ---- rewriting ------------------------------------------------------------------------------------------------------------ */

static void put_key(dgm_buf *b, bool *first, const char *name)
{
    dgm_buf_printf(b, "%s\"%s\":", *first ? "" : ",", name);
    *first = false;
}

static void put_state(dgm_buf *b, const yyjson_val *v)
{
    static const char prefix[] = "TASK_STATE_";
    dgm_str s = dgm_json_str(v);
    if (!yyjson_is_str((yyjson_val *)(uintptr_t)v) || s.n > 40) {
        dgm_json_put(b, v);
        return;
    }
    if (dgm_str_starts(s, DGM_STR("TASK_STATE_")))
        s = (dgm_str){s.p + sizeof prefix - 1, s.n - (sizeof prefix - 1)};
    if (dgm_str_eq_nocase(s, DGM_STR("unknown")))
        s = DGM_STR("UNSPECIFIED");
    if (dgm_str_eq_nocase(s, DGM_STR("created")))
        s = DGM_STR("SUBMITTED");
    if (dgm_str_eq_nocase(s, DGM_STR("cancelled")))
        s = DGM_STR("CANCELED");
    dgm_buf_printf(b, "\"%s", prefix);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        dgm_buf_add_char(b, c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 32) : c);
    }
    dgm_buf_add_char(b, '"');
}

static void put_role(dgm_buf *b, const yyjson_val *v)
{
    dgm_str s = dgm_json_str(v);
    bool is_user = dgm_str_eq_nocase(s, DGM_STR("user")) || dgm_str_is(s, "ROLE_USER");
    if (is_user)
        dgm_buf_add_lit(b, "\"ROLE_USER\"");
    else /* `assistant`, `model`: only agents answer */
        dgm_buf_add_lit(b, "\"ROLE_AGENT\"");
}

static void put_file(dgm_buf *b, bool *first, const yyjson_val *file)
{
    static const char *const names[][2] = {
        {"bytes", "raw"},
        {"fileWithBytes", "raw"},
        {"uri", "url"},
        {"url", "url"},
        {"fileWithUri", "url"},
        {"name", "filename"},
        {"filename", "filename"},
        {"mimeType", "mediaType"},
        {"mediaType", "mediaType"},
        {"mime_type", "mediaType"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dgm_str text = dgm_json_str_member(file, names[i][0]);
        if (!text.n)
            continue;
        put_key(b, first, names[i][1]);
        dgm_json_put_str(b, text);
    }
}

static void put_part(dgm_buf *b, yyjson_val *part)
{
    static const char *const same[] = {"text",     "raw",       "url",     "data",
                                       "filename", "mediaType", "metadata"};
    bool first = true;
    yyjson_val *file = object_in(part, "file", NULL);
    dgm_buf_add_char(b, '{');
    if (yyjson_is_str(part)) {
        put_key(b, &first, "text");
        dgm_json_put(b, part);
    }
    if (file)
        put_file(b, &first, file);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        yyjson_val *v = dgm_json_get(part, dgm_str_from(same[i]));
        if (!v || (yyjson_is_null(v) && i != 3))
            continue;
        put_key(b, &first, same[i]);
        dgm_json_put(b, v);
    }
    dgm_buf_add_char(b, '}');
}

static void put_noun(dgm_buf *b, yyjson_val *v);

static void put_nouns(dgm_buf *b, yyjson_val *list, void (*put)(dgm_buf *, yyjson_val *))
{
    yyjson_val *item;
    size_t i, n;
    dgm_buf_add_char(b, '[');
    yyjson_arr_foreach (list, i, n, item) {
        if (i)
            dgm_buf_add_char(b, ',');
        put(b, item);
    }
    dgm_buf_add_char(b, ']');
}

/* One member of a task, an update, a status, a message or an artifact. */
static void put_noun_member(dgm_buf *b, bool *first, yyjson_val *key, yyjson_val *v)
{
    static const char *const nouns[] = {"status", "message", "artifact"};
    static const char *const lists[] = {"history", "artifacts"};
    dgm_str name = dgm_json_str(key);
    bool is_parts = dgm_str_is(name, "parts") || dgm_str_is(name, "content");
    if (dgm_str_is(name, "kind") || dgm_str_is(name, "final") || dgm_str_is(name, "timestamp") ||
        yyjson_is_null(v))
        return;
    if (!*first)
        dgm_buf_add_char(b, ',');
    *first = false;
    dgm_json_put_str(b, is_parts ? DGM_STR("parts") : name);
    dgm_buf_add_char(b, ':');
    bool is_noun = false, is_list = false;
    for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
        is_noun = is_noun || dgm_str_eq(name, dgm_str_from(nouns[i]));
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        is_list = is_list || dgm_str_eq(name, dgm_str_from(lists[i]));
    if (is_parts && yyjson_is_arr(v)) {
        put_nouns(b, v, put_part);
    } else if (is_parts && yyjson_is_str(v)) {
        dgm_buf_add_char(b, '[');
        put_part(b, v);
        dgm_buf_add_char(b, ']');
    } else if (is_list && yyjson_is_arr(v)) {
        put_nouns(b, v, put_noun);
    } else if (is_noun && yyjson_is_obj(v)) {
        put_noun(b, v);
    } else if (dgm_str_is(name, "state")) {
        put_state(b, v);
    } else if (dgm_str_is(name, "role")) {
        put_role(b, v);
    } else {
        dgm_json_put(b, v);
    }
}

static void put_noun(dgm_buf *b, yyjson_val *v)
{
    yyjson_val *key, *value;
    size_t i, n;
    bool first = true;
    dgm_buf_add_char(b, '{');
    yyjson_obj_foreach (v, i, n, key, value) {
        put_noun_member(b, &first, key, value);
    }
    dgm_buf_add_char(b, '}');
}

/* ---- reading -------------------------------------------------------------------------------------------------------------- */

static const dgm_object_kind object_kinds[] = {
    [DGM_EVENT_NONE] = DGM_OBJECT_NONE,
    [DGM_EVENT_TASK] = DGM_OBJECT_TASK,
    [DGM_EVENT_MESSAGE] = DGM_OBJECT_MESSAGE,
    [DGM_EVENT_STATUS] = DGM_OBJECT_STATUS_UPDATE,
    [DGM_EVENT_ARTIFACT] = DGM_OBJECT_ARTIFACT_UPDATE,
};

static dgm_code read_rewritten(dgm_reader *r, struct noun noun, dgm_frame *ret_frame)
{
    dgm_buf b;
    dgm_err first = *r->err;
    yyjson_val *v;
    dgm_buf_init(&b, DGM_MAX_OBJECT_BYTES);
    put_noun(&b, noun.v);
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(r->arena, dgm_buf_str(&b));
    dgm_buf_done(&b);
    if (!text.p ||
        dgm_json_read(r->arena, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, r->err) ||
        dgm_codec_a2a_10.decode(r, v, object_kinds[noun.kind], false, ret_frame)) {
        *r->err = first; /* of the object as it came */
        return first.code;
    }
    return DGM_OK;
}

static dgm_code read_noun(dgm_reader *r, const dgm_codec *codec, struct noun noun,
                          dgm_a2a_answer *ret)
{
    dgm_frame frame;
    dgm_code rc = codec->decode(r, noun.v, object_kinds[noun.kind], false, &frame);
    if (rc && (rc = read_rewritten(r, noun, &frame)))
        return rc;
    ret->event = (dgm_event){.kind = noun.kind, .any = frame.object.it};
    ret->task_id = noun.kind == DGM_EVENT_TASK ? dgm_json_str_member(noun.v, "id")
                                               : text_in(noun.v, "taskId", "task_id");
    ret->context_id = text_in(noun.v, "contextId", "context_id");
    return DGM_OK;
}

/* {"error": ...}, with a JSON-RPC envelope or without; {"code", "message"}; a text. */
static bool read_error(dgm_reader *r, yyjson_val *v, dgm_a2a_answer *ret)
{
    yyjson_val *inner = dgm_json_non_null(v, "error");
    dgm_peer_error *e = dgm_new(r->arena, dgm_peer_error);
    bool is_bare = !inner && dgm_json_str_member(v, "message").n && !dgm_json_get(v, DGM_STR("id"));
    if (!inner && !is_bare)
        return false;
    if (yyjson_is_str(inner))
        e->message = dgm_json_str(inner);
    else if (dgm_json_get(v, DGM_STR("jsonrpc")) ? dgm_a2a_read_rpc_error(r, inner, NULL, e)
                                                 : dgm_a2a_read_rest_error(r, v, NULL, e))
        *e = (dgm_peer_error){.message = dgm_json_str_member(inner ? inner : v, "message")};
    ret->error = e;
    return true;
}

/* The result in a JSON-RPC envelope as servers usually write it, with the number that our requests have as their id; the
 * text itself if it has no such envelope. */
static dgm_str usual_result(dgm_str text)
{
    static const dgm_str heads[] = {
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":", 33},
        {"{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":", 33},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (dgm_str_starts(text, heads[i]) && text.p[text.n - 1] == '}')
            return (dgm_str){text.p + heads[i].n, text.n - heads[i].n - 1};
    }
    return text;
}

/* The most frequent answer, a chunk of an artifact: without JSON values in between. false: it is another one. */
static bool read_usual(dgm_reader *r, const dgm_codec *codec, dgm_str text, dgm_a2a_answer *ret)
{
    dgm_frame frame;
    if (!codec->decode_usual || !codec->decode_usual(r, usual_result(text), &frame))
        return false;
    const dgm_event *event = frame.object.it;
    *ret = (dgm_a2a_answer){.event = *event,
                            .task_id = event->artifact->task_id,
                            .context_id = event->artifact->context_id};
    return true;
}

dgm_code dgm_a2a_read_answer(dgm_arena *a, const dgm_codec *codec, dgm_mint *mint, dgm_str text,
                             dgm_a2a_answer *ret_answer, dgm_err *err)
{
    yyjson_val *v, *result;
    dgm_reader r = {.arena = a, .mint = mint, .drop_unknown = true, .err = err};
    dgm_a2a_answer answer = {0};
    dgm_code rc;
    if (read_usual(&r, codec, text, ret_answer))
        return DGM_OK;
    if ((rc = dgm_json_read(a, text, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, err)))
        return rc;
    if (read_error(&r, v, &answer)) {
        *ret_answer = answer;
        return DGM_OK;
    }
    if ((result = object_in(v, "result", NULL)))
        v = result;
    struct noun noun = find_noun(v);
    if (!noun.kind && (result = object_in(v, "result", NULL)))
        noun = find_noun(result);
    if (!noun.kind)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL,
                        "expected a task, a message or an update, got %s", dgm_json_type(v));
    if ((rc = read_noun(&r, codec, noun, &answer)))
        return rc;
    *ret_answer = answer;
    return DGM_OK;
}

dgm_peer_error *dgm_a2a_error_of(dgm_arena *a, const dgm_codec *codec, dgm_str body)
{
    yyjson_val *v;
    dgm_frame frame;
    dgm_err unread = {0};
    dgm_reader r = {.arena = a, .err = &unread};
    if (dgm_json_read(a, body, DGM_MAX_OBJECT_BYTES, "object_bytes", &v, &unread) ||
        !yyjson_is_obj(v))
        return NULL;
    dgm_object_kind kind = dgm_json_get(v, DGM_STR("jsonrpc")) ? DGM_OBJECT_NONE : DGM_OBJECT_ERROR;
    if (codec->decode(&r, v, kind, false, &frame) || frame.object.kind != DGM_OBJECT_ERROR)
        return NULL;
    return frame.object.it;
}

/* ---- the answers of a stream ---------------------------------------------------------------------------------------------- */

void dgm_a2a_answers_init(dgm_a2a_answers *s)
{
    *s = (dgm_a2a_answers){.arena = dgm_arena_new()};
}

void dgm_a2a_answers_done(dgm_a2a_answers *s)
{
    dgm_arena_free(s->arena);
}

/* The only part of an artifact-update, if it is a text. */
static dgm_part *only_text(const dgm_a2a_answer *answer)
{
    if (answer->error || answer->event.kind != DGM_EVENT_ARTIFACT)
        return NULL;
    dgm_parts parts = answer->event.artifact->artifact.parts;
    return parts.n == 1 && parts.at->kind == DGM_PART_TEXT ? parts.at : NULL;
}

dgm_code dgm_a2a_answers_read(dgm_a2a_answers *s, const dgm_codec *codec, dgm_mint *mint,
                              dgm_str text, const dgm_a2a_answer **ret_answer, dgm_err *err)
{
    uint64_t n_minted = mint ? mint->count : 0;
    dgm_str content;
    *ret_answer = &s->answer;
    if (dgm_same_text_read(&s->same, text, &content)) {
        only_text(&s->answer)->content = content;
        return DGM_OK;
    }
    bool may_repeat = text.n <= DGM_MAX_SAME_BYTES;
    dgm_arena_reset(s->arena);
    s->same = (dgm_same_text){0};
    if (may_repeat)
        text = dgm_arena_dup(s->arena, text);
    dgm_code rc = dgm_a2a_read_answer(s->arena, codec, mint, text, &s->answer, err);
    dgm_part *part = rc || !may_repeat ? NULL : only_text(&s->answer);
    /* an id that was generated is for this answer only */
    if (part && !(mint && mint->count != n_minted))
        dgm_same_text_set(&s->same, text, part->content);
    return rc;
}
