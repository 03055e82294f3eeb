/* frontend/openai/responses_front_rules.h - the types of what requests hold, as tables. */
#pragma once

#include "json/json.h"

enum rule_kind { STR = 1, INT = 2, NUM = 4, BOOL = 8, LIST = 16, OBJ = 32, NIL = 64 };

struct rules;
struct rule {
    const char *name;
    unsigned is;                    /* kinds */
    enum { MAY, MUST, UNUSED } use; /* UNUSED: taken, and told to the caller as ignored */
    unsigned each;                  /* of a list: kinds of its elements */
    const struct rules *of;         /* of an object, or of each element that is one */
};
struct rules {
    const struct rule *at;
    size_t n;
    const struct rules *(*pick)(yyjson_val *v); /* instead, by what it is; NULL: these */
};

extern const struct rules responses_request_rules; /* POST /v1/responses */
extern const struct rules conversation_rules;      /* POST /v1/conversations, and /{id} */
extern const struct rules conversation_items_rules;
