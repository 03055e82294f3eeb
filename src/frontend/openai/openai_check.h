/*
 * frontend/openai/openai_check.h - is a request's body of the types that OpenAI's document says?
 *
 * Codecs read what servers and clients of many makers send, and pass over what they do not use. A server says what
 * is wrong, also of what it would not look at: who sends a temperature in words has made a mistake.
 */
#pragma once

#include "json/json.h"

enum openai_type {
    OPENAI_TEXT = 1,
    OPENAI_INT = 2,
    OPENAI_NUMBER = 4, /* any, ints too */
    OPENAI_BOOL = 8,
    OPENAI_OBJECT = 16,
    OPENAI_LIST = 32
};

/* A member. null is as good as absent, everywhere but in a list. */
struct openai_rule {
    const char *name; /* NULL: the last row */
    unsigned types;
    const struct openai_rule *members; /* of it, or of the objects in it if it is a list */
    unsigned
        of; /* what the values of an object of any members, or of a list, may be; 0: anything */
    bool ignored; /* we take it and do nothing with it */
    bool must;    /* be there */
    /* Instead of `members`: by what an element of the list is. */
    const struct openai_rule *(*pick)(yyjson_val *v);
};

/* What v has that no rule knows is not looked at. */
dgm_code openai_check(yyjson_val *v, const struct openai_rule *rules, const dgm_at *at,
                      dgm_err *err);

/* Members that nothing is done with, unknown ones too, as the header x-dragoman-ignored names them: "seed, stop".
 * Empty: there are none. */
dgm_str openai_ignored(dgm_arena *a, yyjson_val *body, const struct openai_rule *rules);
