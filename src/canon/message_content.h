/*
 * canon/message_content.h - what a message of A2A says: its text, its files, its calls, its results.
 *
 * Text parts are joined without a separator. Data that holds `tool_calls` (of an agent) or
 * `tool_results` becomes those; other data becomes JSON text on a line of its own. Files of a user
 * become parts; of an agent, who has only text in AG-UI, links and names in the text. Document 001's direct function
 * (lib/direct.c) uses the same reading.
 */
#pragma once

#include "base/err.h"
#include "base/list.h"
#include "canon/canon.h"
#include "model/calls.h"
#include "json/json.h"

typedef struct dgm_content_call {
    dgm_str call_id;
    dgm_str name;
    const dgm_json *arguments; /* an object or its text; NULL: none */
    const dgm_json *type;      /* as it came; NULL: none */
    const dgm_part *part;      /* that it is in */
} dgm_content_call;

typedef struct dgm_content_calls {
    dgm_content_call *at;
    size_t n;
} dgm_content_calls;

typedef struct dgm_content_result {
    dgm_str call_id;
    dgm_str name;
    const dgm_json *output; /* NULL: none */
    const dgm_part *part;   /* that it is in */
} dgm_content_result;

typedef struct dgm_content_results {
    dgm_content_result *at;
    size_t n;
} dgm_content_results;

typedef struct dgm_content_tools {
    dgm_content_calls calls;
    dgm_content_results results;
} dgm_content_tools;

typedef struct dgm_content {
    dgm_canon_role role;       /* user or assistant; trusted: also system, developer */
    bool delta;                /* dgm_content_is_chunk() */
    dgm_canon_content content; /* ABSENT: nothing but calls or results */
    dgm_content_calls calls;
    dgm_content_results results;
    dgm_canon_parts pieces;      /* of `content`, also if it is joined or absent */
    const dgm_part **piece_from; /* the part of the message that each piece comes from */
} dgm_content;

/* Is the message a chunk of a stream by its canonical_type? A complete message follows. A type that contradicts the parts
 * is ignored. */
bool dgm_content_is_chunk(const dgm_message *m);

/*
 * trusted: believe `dragoman:role` in the metadata, which can make a user's message a system message.
 * Fails with a pointer (below `at`) on malformed calls and results: /parts/0/data/tool_calls/1/name.
 */
dgm_code dgm_content_read(dgm_arena *a, const dgm_message *m, bool trusted, const dgm_at *at,
                          dgm_content *ret_said, dgm_err *err);

/* Joins texts without a separator; a text that needs a line of its own gets one. */
dgm_str dgm_content_join(dgm_arena *a, const dgm_canon_part *pieces, size_t n);

/* All text of a list of parts, and whether there is anything else in it. */
dgm_str dgm_content_text(dgm_arena *a, const dgm_parts *parts, bool *ret_others);

/* Text as it is, everything else as JSON text with ", " and ": ". NULL: absent. */
dgm_str dgm_content_value_text(dgm_arena *a, const dgm_json *value);
dgm_str dgm_content_spaced_json(dgm_arena *a, const dgm_json *value); /* JSON text, of a text too */

/* Describes a file as text. Of its bytes only their number: base64 is of no use in a conversation. */
dgm_str dgm_content_file_text(dgm_arena *a, const dgm_part *p);

/* Data under one of these names holds calls (of agents) and results. */
yyjson_val *dgm_content_data_member(const dgm_part *p,
                                    const char *name); /* of data; NULL for null, too */

/* Reads both from data. Users make no calls: a list of calls in a user's message is ordinary data. */
dgm_code dgm_content_read_tools(dgm_arena *a, const dgm_part *p, dgm_role role, const dgm_at *at,
                                dgm_content_tools *ret_tools, dgm_err *err);

/* The text of a call's arguments: "{}" without arguments. */
dgm_str dgm_content_arguments(dgm_arena *a, const dgm_json *arguments);

/* The inverse: an object if the text is exactly our encoding of an object; else the text itself. So
 * arguments that came as text are sent as the same text. */
const dgm_json *dgm_content_arguments_value(dgm_arena *a, dgm_str text);
