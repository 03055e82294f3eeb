/*
 * backend/langgraph/graph_custom.c - `custom`: the payloads of emit_file, emit_data, emit_message and emit_task_metadata, and
 * values of the graph's own.
 *
 * The ids of artifacts are ours. An artifact is open from its first chunk to its last one; while it is, append continues it,
 * found by kind and name.
 */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "model/fold.h"
#include "json/build.h"
#include "json/shape.h"

/* The name of AG-UI's CUSTOM event, and of the AI SDK's data part, for values without `a2a`. */
#define CUSTOM_NAME "custom"

/* ---- artifacts --------------------------------------------------------------------------------------------------------------- */

static struct graph_artifact *find_open(const dgm_graph_out *o, dgm_str kind, dgm_str name)
{
    struct graph_artifact *x = o->artifacts;
    while (x && !(x->is_open && dgm_str_eq(x->kind, kind) && dgm_str_eq(x->name, name)))
        x = x->next;
    return x;
}

static struct graph_artifact *open_artifact(dgm_graph_out *o, dgm_str kind, dgm_str name)
{
    if (o->n_artifacts >= DGM_MAX_LIST_ITEMS)
        return NULL;
    struct graph_artifact *x = dgm_new(o->arena, struct graph_artifact);
    x->kind = dgm_arena_dup(o->arena, kind);
    x->name = dgm_arena_dup(o->arena, name);
    x->id = dgm_arena_printf(o->arena, "%.*s-%zu", DGM_P(kind), ++o->n_ids);
    x->next = o->artifacts;
    o->artifacts = x;
    o->n_artifacts++;
    return x;
}

static bool is_same_part(const dgm_part *a, const dgm_part *b)
{
    return a->kind == b->kind && dgm_str_eq(a->content, b->content) &&
           dgm_str_eq(a->media_type, b->media_type) &&
           (a->kind != DGM_PART_DATA || dgm_json_equal(a->data, b->data));
}

/* A node that runs a second time emits its artifacts a second time. */
static bool was_emitted_before(const dgm_graph_out *o, dgm_str name, const dgm_part *part)
{
    for (size_t i = 0; i < o->before.n; i++) {
        const dgm_artifact *x = &o->before.at[i];
        if (x->parts.n == 1 && dgm_str_eq(x->name, name) && is_same_part(x->parts.at, part))
            return true;
    }
    return false;
}

/* For the case that this process goes on and the worker is lost. */
static void remember_artifact(dgm_graph_out *o, const dgm_artifact *artifact)
{
    dgm_message parts = {.parts = artifact->parts};
    size_t n = o->before.n;
    if (n >= DGM_MAX_GRAPH_CALLS || (artifact->parts.at[0].content.n > DGM_MAX_GRAPH_HELD_BYTES))
        return;
    o->before.at = dgm_arena_realloc(o->arena, o->before.at, n * sizeof *o->before.at,
                                     (n + 1) * sizeof *o->before.at);
    o->before.at[o->before.n++] =
        (dgm_artifact){.artifact_id = dgm_arena_dup(o->arena, artifact->artifact_id),
                       .name = dgm_arena_dup(o->arena, artifact->name),
                       .parts = dgm_message_copy(o->arena, &parts).parts};
}

/* Chunks of one file are marked with their number, so that readers join them (model/fold.h). */
static void emit_chunk(dgm_graph_out *o, struct graph_artifact *x, dgm_part *part, bool append,
                       bool last)
{
    dgm_artifact artifact = {.artifact_id = x->id, .name = x->name, .parts = {part, 1}};
    if (part->kind == DGM_PART_RAW && (append || !last)) {
        dgm_json_build b = dgm_json_build_start(o->scratch);
        dgm_json_build_object(&b, NULL);
        dgm_json_build_int(&b, DGM_PART_CHUNK, x->chunks);
        dgm_json_build_close(&b);
        part->metadata = dgm_json_build_end(&b);
    }
    x->chunks++;
    x->is_open = !last;
    dgm_graph_emit_artifact(o, &artifact, append, last);
    if (last && !append)
        remember_artifact(o, &artifact);
}

/* Some graphs cut the base64 of a whole file into pieces: characters that are not a group of four wait for the next one. */
static dgm_str whole_groups(dgm_graph_out *o, struct graph_artifact *x, dgm_str text, bool last)
{
    text = dgm_arena_printf(o->scratch, "%.*s%.*s", (int)x->n_carried, x->carried, DGM_P(text));
    size_t rest = last || memchr(text.p, '=', text.n) ? 0 : text.n % 4;
    text.n -= rest;
    memcpy(x->carried, text.p + text.n, rest);
    x->n_carried = rest;
    return text;
}

static bool read_custom_part(dgm_graph_out *o, const dgm_json *a2a, dgm_str kind, dgm_part *ret)
{
    dgm_str url = dgm_json_str_member(a2a, "url"), bytes = dgm_json_str_member(a2a, "base64");
    bool has_bytes = yyjson_is_str(dgm_json_get(a2a, DGM_STR("base64")));
    yyjson_val *data = dgm_json_get(a2a, DGM_STR("data"));
    if (dgm_str_is(kind, "data") && data) {
        *ret = (dgm_part){.kind = DGM_PART_DATA, .data = data};
        return true;
    }
    if (!dgm_str_is(kind, "file") || (url.n > 0) == has_bytes) {
        dgm_graph_note(
            o, "an artifact that is neither a file with url or base64 nor data was ignored");
        return false;
    }
    *ret = (dgm_part){.kind = has_bytes ? DGM_PART_RAW : DGM_PART_URL,
                      .content = has_bytes ? bytes : url,
                      .media_type = dgm_json_str_member(a2a, "mime_type")};
    return true;
}

static void on_artifact(dgm_graph_out *o, const dgm_json *a2a)
{
    dgm_str kind = dgm_json_str_member(a2a, "kind"), name = dgm_json_str_member(a2a, "name");
    bool wants_append = yyjson_is_true(dgm_json_get(a2a, DGM_STR("append")));
    bool last = !yyjson_is_false(dgm_json_get(a2a, DGM_STR("is_last_chunk")));
    dgm_part part;
    if (!read_custom_part(o, a2a, kind, &part))
        return;
    name = name.n ? name : kind;
    part.filename = part.kind == DGM_PART_DATA || dgm_str_eq(name, kind) ? (dgm_str){0} : name;
    struct graph_artifact *x = find_open(o, kind, name);
    bool append = wants_append && x;
    if (!append && last && o->is_rerun && was_emitted_before(o, name, &part))
        return;
    if (!append && x && !o->is_rerun) { /* another one of the same name */
        x->is_open = false;
        x = NULL;
    }
    if (!append && x)
        x->chunks = 0; /* it starts again */
    if (!x && !(x = open_artifact(o, kind, name)))
        return;
    if (part.kind == DGM_PART_RAW &&
        !dgm_base64_normalise(o->scratch, whole_groups(o, x, part.content, last), &part.content)) {
        dgm_graph_note(o, "the content of the file \"%.*s\" is not base64: ignored", DGM_P(name));
        return;
    }
    emit_chunk(o, x, &part, append, last);
}

/* ---- messages, metadata -------------------------------------------------------------------------------------------------------- */

static dgm_str message_id_of(dgm_graph_out *o, const dgm_json *message)
{
    dgm_str id = dgm_json_str_member(message, "id");
    if (!id.n || id.n > DGM_MAX_ID_BYTES || dgm_graph_knows(o, id))
        id = dgm_mint_id(&o->mint, o->scratch);
    return id;
}

static void on_emitted_message(dgm_graph_out *o, const dgm_json *message)
{
    if (dgm_graph_role_of(message) != DGM_GRAPH_AI) {
        dgm_graph_note(
            o, "emit_message: expected an AIMessage or AIMessageChunk; the message was ignored");
        return;
    }
    if (dgm_graph_is_chunk(message)) {
        dgm_graph_on_chunk(o, message);
        return;
    }
    dgm_message m = {.message_id = message_id_of(o, message),
                     .role = DGM_ROLE_AGENT,
                     .parts = dgm_graph_parts(o->scratch, message)};
    if (!m.parts.n)
        return;
    o->emitted = dgm_message_copy(o->arena, &m);
    o->has_emitted = true;
    dgm_graph_emit_message(o, &m);
    o->emitted_is_past = false;
    dgm_graph_forget_text(o);
}

static void on_metadata(dgm_graph_out *o, const dgm_json *metadata)
{
    const dgm_json *clean = dgm_graph_clean(o, metadata);
    if (clean && yyjson_obj_size(graph_val(clean)))
        dgm_graph_emit_status(o, DGM_STATE_WORKING, NULL, clean);
}

void dgm_graph_on_custom(dgm_graph_out *o, const dgm_json *value)
{
    yyjson_val *a2a = dgm_json_get(value, DGM_STR("a2a"));
    dgm_str type = dgm_json_str_member(a2a, "type");
    if (!yyjson_is_obj(a2a))
        dgm_graph_emit_internal(o, (dgm_internal){.kind = DGM_INTERNAL_CUSTOM,
                                                  .name = DGM_STR(CUSTOM_NAME),
                                                  .value = value});
    else if (dgm_str_is(type, "artifact"))
        on_artifact(o, a2a);
    else if (dgm_str_is(type, "message"))
        on_emitted_message(o, dgm_json_get(a2a, DGM_STR("message")));
    else if (dgm_str_is(type, "task_metadata"))
        on_metadata(o, dgm_json_get(a2a, DGM_STR("metadata")));
    else
        dgm_graph_note(o,
                       "a custom event with the unknown a2a.type \"%.*s\" was ignored; types: "
                       "artifact, message, task_metadata",
                       (int)(type.n < 60 ? type.n : 60), type.p ? type.p : "");
}
