/* backend/langgraph/graph_content.c - messages of LangChain in their flat form: text, reasoning, files. */
#include "backend/langgraph/graph_int.h"
#include "base/limits.h"
#include "base/list.h"

dgm_graph_role dgm_graph_role_of(const dgm_json *message)
{
    dgm_str type = dgm_json_str_member(message, "type");
    if (!type.n)
        type = dgm_json_str_member(message, "role");
    if (dgm_str_is(type, "ai") || dgm_str_is(type, "AIMessageChunk") ||
        dgm_str_is(type, "assistant"))
        return DGM_GRAPH_AI;
    if (dgm_str_is(type, "human") || dgm_str_is(type, "HumanMessageChunk") ||
        dgm_str_is(type, "user"))
        return DGM_GRAPH_HUMAN;
    if (dgm_str_is(type, "tool") || dgm_str_is(type, "ToolMessageChunk"))
        return DGM_GRAPH_TOOL;
    return DGM_GRAPH_OTHER;
}

bool dgm_graph_is_chunk(const dgm_json *message)
{
    return yyjson_is_true(dgm_json_get(message, DGM_STR("chunk"))) ||
           dgm_str_is(dgm_json_str_member(message, "type"), "AIMessageChunk");
}

/* ---- text and reasoning ------------------------------------------------------------------------------------------------- */

/* The text of a block; absent: it is another kind of block. */
static dgm_str block_text(const yyjson_val *block)
{
    if (yyjson_is_str(graph_val(block)))
        return dgm_json_str(block);
    dgm_str type = dgm_json_str_member(block, "type");
    bool is_text = dgm_str_is(type, "text") || dgm_str_is(type, "text_delta") ||
                   dgm_str_is(type, "output_text");
    return is_text || !type.n ? dgm_json_str_member(block, "text") : (dgm_str){0};
}

static void add_summary(dgm_buf *b, const yyjson_val *summary)
{
    yyjson_val *item;
    size_t i, n;
    yyjson_arr_foreach (graph_val(summary), i, n, item)
        dgm_buf_add_str(b, dgm_json_str_member(item, "text"));
}

/* Providers name it differently: langgraph.md 1.5. */
static void add_block_reasoning(dgm_buf *b, const yyjson_val *block)
{
    dgm_str type = dgm_json_str_member(block, "type");
    if (dgm_str_is(type, "reasoning")) {
        dgm_buf_add_str(b, dgm_json_str_member(block, "reasoning"));
        add_summary(b, dgm_json_get(block, DGM_STR("summary")));
    } else if (dgm_str_is(type, "thinking")) {
        dgm_buf_add_str(b, dgm_json_str_member(block, "thinking"));
    } else if (dgm_str_is(type, "reasoning_content")) {
        dgm_buf_add_str(
            b, dgm_json_str_member(dgm_json_get(block, DGM_STR("reasoning_content")), "text"));
    }
}

static dgm_str buf_in_arena(dgm_arena *a, dgm_buf *b)
{
    dgm_str text = b->n ? dgm_arena_dup(a, dgm_buf_str(b)) : DGM_STR("");
    dgm_buf_done(b);
    return text;
}

dgm_str dgm_graph_text(dgm_arena *a, const dgm_json *message)
{
    yyjson_val *content = dgm_json_get(message, DGM_STR("content")), *block;
    size_t i, n;
    dgm_buf b;
    if (yyjson_is_str(content))
        return dgm_json_str(content);
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    yyjson_arr_foreach (content, i, n, block)
        dgm_buf_add_str(&b, block_text(block));
    return buf_in_arena(a, &b);
}

dgm_str dgm_graph_reasoning(dgm_arena *a, const dgm_json *message)
{
    yyjson_val *content = dgm_json_get(message, DGM_STR("content")), *block;
    const yyjson_val *kwargs = dgm_json_get(message, DGM_STR("additional_kwargs"));
    size_t i, n;
    dgm_buf b;
    dgm_buf_init(&b, DGM_MAX_RECORD_BYTES);
    yyjson_arr_foreach (content, i, n, block)
        add_block_reasoning(&b, block);
    if (!b.n)
        dgm_buf_add_str(&b, dgm_json_str_member(kwargs, "reasoning_content"));
    return buf_in_arena(a, &b);
}

/* ---- files --------------------------------------------------------------------------------------------------------------- */

static bool is_file_block(dgm_str type)
{
    return dgm_str_is(type, "image") || dgm_str_is(type, "audio") || dgm_str_is(type, "video") ||
           dgm_str_is(type, "file");
}

static bool read_file_block(const yyjson_val *block, dgm_part *ret)
{
    dgm_str bytes = dgm_json_str_member(block, "base64"), url = dgm_json_str_member(block, "url");
    if (!bytes.n && !url.n)
        bytes = dgm_json_str_member(block, "data");
    if (!is_file_block(dgm_json_str_member(block, "type")) || (!bytes.n && !url.n))
        return false;
    dgm_str mime = dgm_json_str_member(block, "mime_type");
    *ret = (dgm_part){.kind = bytes.n ? DGM_PART_RAW : DGM_PART_URL,
                      .content = bytes.n ? bytes : url,
                      .media_type = mime.n ? mime : dgm_json_str_member(block, "mimeType"),
                      .filename = dgm_json_str_member(block, "filename")};
    return true;
}

dgm_parts dgm_graph_parts(dgm_arena *a, const dgm_json *message)
{
    yyjson_val *content = dgm_json_get(message, DGM_STR("content")), *block;
    dgm_str text = dgm_graph_text(a, message);
    dgm_parts parts = {dgm_new_n(a, dgm_part, 1 + yyjson_arr_size(content)), 0};
    size_t i, n;
    if (text.n)
        parts.at[parts.n++] = (dgm_part){.kind = DGM_PART_TEXT, .content = text};
    yyjson_arr_foreach (content, i, n, block)
        parts.n += read_file_block(block, &parts.at[parts.n]);
    return parts;
}

/* ---- calls ---------------------------------------------------------------------------------------------------------------- */

const dgm_json *dgm_graph_arguments(dgm_arena *a, const dgm_json *args)
{
    yyjson_val *v;
    if (!yyjson_is_str(graph_val(args)))
        return args;
    if (dgm_json_str(args).n == 0)
        return dgm_json_object(a, NULL, 0);
    if (!dgm_json_read(a, dgm_json_str(args), DGM_MAX_RECORD_BYTES, "record_bytes", &v, NULL) &&
        yyjson_is_obj(v))
        return v;
    return args;
}
