/* wire/responses/responses_in_other.c - thoughts, images, items of strangers; how items end. */
#include "wire/responses/responses_in.h"

typedef struct responses_in_item item;
typedef struct responses_decoder decoder;

/* ---- reasoning ----------------------------------------------------------------------------------------------- */

static void reasoning_event(decoder *d, dgm_canon_kind kind, dgm_str id, dgm_str delta)
{
    dgm_canon_event e = {.kind = kind};
    e.text.message_id = id;
    e.text.delta = delta;
    if (kind == DGM_CANON_REASONING_MESSAGE_START)
        e.text.role = DGM_CANON_REASONING;
    dgm_responses_in_out(d, &e);
}

static void end_thought(decoder *d, item *it)
{
    if (it->part_open)
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_END, it->thought, (dgm_str){0});
    it->part_open = false;
}

/* The first thought has the id of all of them. */
static void name_thought(decoder *d, item *it)
{
    dgm_str id =
        it->parts > 1 ? dgm_arena_printf(d->arena, "%.*s-%u", DGM_P(it->id), it->parts) : it->id;
    it->thought = dgm_responses_in_id(d, 'h', id);
}

static void begin_thought(decoder *d, item *it, int64_t index, bool is_content)
{
    if (it->part_open && it->part == index && it->part_is_content == is_content)
        return;
    end_thought(d, it);
    if (!it->open)
        reasoning_event(d, DGM_CANON_REASONING_START, it->id, (dgm_str){0});
    it->open = it->told = it->part_open = true;
    it->parts++;
    name_thought(d, it);
    it->part = index;
    it->part_is_content = is_content;
    it->said_of_part = (dgm_sum){0};
    reasoning_event(d, DGM_CANON_REASONING_MESSAGE_START, it->thought, (dgm_str){0});
}

void dgm_responses_in_thought(decoder *d, item *it, yyjson_val *index, bool is_content,
                              dgm_str text, bool whole)
{
    int64_t n = 0;
    if (index && !dgm_json_int(index, &n))
        n = 0;
    dgm_responses_in_reasoning(d, it);
    if (it->kind != RESPONSES_IN_REASONING || !text.n)
        return;
    if (whole && !it->part_open && it->parts)
        return; /* it was over already */
    begin_thought(d, it, n, is_content);
    if (whole && !dgm_sum_is_prefix(&it->said_of_part, text))
        text = (dgm_str){0}; /* thoughts are not taken back */
    else if (whole)
        text = dgm_responses_in_rest(text, it->said_of_part.n);
    if (text.n) {
        dgm_sum_add(&it->said_of_part, text);
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, it->thought, text);
    }
    if (whole)
        end_thought(d, it);
}

static void thoughts(decoder *d, item *it, yyjson_val *list, bool is_content)
{
    size_t i, n;
    yyjson_val *part;
    yyjson_arr_foreach (list, i, n, part) {
        dgm_str text = dgm_json_str_member(part, "text");
        if (!text.n)
            continue;
        begin_thought(d, it, (int64_t)i, is_content);
        reasoning_event(d, DGM_CANON_REASONING_MESSAGE_CONTENT, it->thought, text);
        end_thought(d, it);
    }
}

static void whole_reasoning(decoder *d, item *it, yyjson_val *v)
{
    dgm_str encrypted = dgm_json_str_member(v, "encrypted_content");
    dgm_responses_in_reasoning(d, it);
    if (it->kind != RESPONSES_IN_REASONING)
        return;
    if (!it->parts) {
        thoughts(d, it, dgm_responses_get(v, "summary"), false);
        thoughts(d, it, dgm_responses_get(v, "content"), true);
    }
    if (encrypted.n) {
        dgm_canon_event e = {.kind = DGM_CANON_REASONING_ENCRYPTED_VALUE};
        e.encrypted.subtype = DGM_STR("message");
        e.encrypted.entity_id = it->id;
        e.encrypted.encrypted_value = encrypted;
        if (!it->told) { /* nothing but that: it still needs something to stand on */
            reasoning_event(d, DGM_CANON_REASONING_START, it->id, (dgm_str){0});
            it->parts = 1;
            name_thought(d, it);
            reasoning_event(d, DGM_CANON_REASONING_MESSAGE_START, it->thought, (dgm_str){0});
            it->open = it->told = it->part_open = true;
        }
        dgm_responses_in_out(d, &e);
    }
    dgm_responses_in_close(d, it);
}

/* ---- images and strangers ------------------------------------------------------------------------------------- */

static void custom(decoder *d, dgm_str name, const dgm_json *value)
{
    dgm_canon_event e = {.kind = DGM_CANON_CUSTOM};
    e.custom.name = name;
    e.custom.value = value;
    d->said_anything = true;
    dgm_responses_in_out(d, &e);
}

static void image(decoder *d, yyjson_val *v)
{
    dgm_str result = dgm_json_str_member(v, "result"),
            format = dgm_json_str_member(v, "output_format");
    dgm_str normal;
    if (!result.n || !dgm_base64_normalise(d->r->arena, result, &normal)) {
        custom(d, DGM_STR(DGM_RESPONSES_ITEM), v);
        return;
    }
    format = format.n ? format : DGM_STR("png");
    dgm_part part = {.kind = DGM_PART_RAW,
                     .content = normal,
                     .media_type = dgm_arena_printf(d->r->arena, "image/%.*s", DGM_P(format))};
    dgm_artifact artifact = {.artifact_id = dgm_json_str_member(v, "id"), .parts = {&part, 1}};
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT,
                         .artifact = {.artifact = &artifact, .last_chunk = true}};
    d->said_anything = true;
    dgm_responses_in_out(d, &e);
}

/* ---- the end of items ------------------------------------------------------------------------------------------- */

void dgm_responses_in_close(decoder *d, item *it)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_END};
    if (!it->open)
        return;
    it->open = false;
    switch (it->kind) {
    case RESPONSES_IN_MESSAGE: e.text.message_id = it->id; break;
    case RESPONSES_IN_CALL:
    case RESPONSES_IN_MCP:
        e.kind = DGM_CANON_TOOL_CALL_END;
        e.call.tool_call_id = it->id;
        break;
    case RESPONSES_IN_REASONING:
        end_thought(d, it);
        e.kind = DGM_CANON_REASONING_END;
        e.text.message_id = it->id;
        break;
    case RESPONSES_IN_OTHER: return;
    }
    dgm_responses_in_out(d, &e);
}

void dgm_responses_in_done(decoder *d, item *it, yyjson_val *v)
{
    dgm_str type = dgm_json_str_member(v, "type");
    bool again = it->done;
    it->done = true;
    if (dgm_str_is(type, "message")) { /* the response may know better than the item did */
        dgm_responses_in_message(d, it, v);
        dgm_responses_in_close(d, it);
    } else if (again) {
        return;
    } else if (dgm_str_is(type, "reasoning")) {
        whole_reasoning(d, it, v);
    } else if (dgm_str_is(type, "function_call") || dgm_str_is(type, "custom_tool_call")) {
        dgm_responses_in_call(d, it, v, false);
    } else if (dgm_str_is(type, "mcp_call")) {
        dgm_responses_in_call(d, it, v, true);
    } else if (dgm_str_is(type, "function_call_output") ||
               dgm_str_is(type, "custom_tool_call_output")) {
        dgm_responses_in_output(d, v);
    } else if (dgm_str_is(type, "image_generation_call")) {
        image(d, v);
    } else if (yyjson_is_obj(v)) {
        custom(d, DGM_STR(DGM_RESPONSES_ITEM), v);
    }
}
