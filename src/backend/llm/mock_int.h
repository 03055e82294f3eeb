/* backend/llm/mock_int.h - what the files of the scripted model share. */
#pragma once

#include "backend/llm/mock.h"
#include "json/json.h"

/* One piece of the answer: it becomes one event of the stream. */
enum mock_kind {
    MOCK_TEXT,
    MOCK_REASONING,
    MOCK_REFUSAL,
    MOCK_CALL,   /* text: the name; arguments follow in two pieces */
    MOCK_FINISH, /* text: finish_reason. The last piece, unless it is one of the next two */
    MOCK_FAIL,   /* text: an error in the stream */
    MOCK_CUT,
};

struct mock_piece {
    enum mock_kind kind;
    dgm_str text, arguments;
};

/* The answer that a script describes. */
struct mock_script {
    dgm_arena *arena;
    int status; /* 0: 200 */
    dgm_str error;
    uint32_t wait_ms; /* between words */
    bool hangs;       /* nothing comes for an hour */
    size_t n_words;   /* made-up words before the pieces */
    struct mock_piece *pieces;
    size_t n;
};

/* Reads the request and finds its script. */
void dgm_mock_write_script(struct mock_script *s, const yyjson_val *request, unsigned attempt);

/* A value that fits a JSON Schema, in simple cases. text: of the user; the value is taken from it, if it can be. */
void dgm_mock_put_value(dgm_buf *out, const yyjson_val *schema, dgm_str name, dgm_str text,
                        int depth);
/* The tool whose name or description has most words of the text; NULL: not one has a word of it. */
yyjson_val *dgm_mock_find_tool(const yyjson_val *tools, dgm_str text);
