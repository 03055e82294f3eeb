/* wire/agui/agui_proto_int.h - the schema of the binary events as tables. */
#pragma once

#include "wire/agui/agui_proto.h"

typedef struct pb_message pb_message;

typedef enum pb_kind {
    PB_STR,    /* absent is "" */
    PB_OPT,    /* a text that may be absent */
    PB_INT,    /* int64 that may be absent */
    PB_BOOL,   /* likewise */
    PB_ENUM,   /* one of `names`, written unless it is the first */
    PB_VALUE,  /* google.protobuf.Value: any JSON */
    PB_STRUCT, /* google.protobuf.Struct: an object */
    PB_ONE,    /* a message */
    PB_MANY,   /* messages: an array */
    PB_STRS,   /* texts: an array */
    PB_BASE    /* a message that holds more members of the same object */
} pb_kind;

typedef struct pb_field {
    uint8_t number;
    uint8_t kind;
    const char *name;
    const char *in; /* the member is in this object of the JSON; NULL: in the message itself */
    const pb_message *of;
    const char *const *names;
} pb_field;

struct pb_message {
    const char *what;
    const pb_field *fields;
    size_t n;
    /* A oneof: the fields are its arms, and the JSON's `type` names one of them. */
    bool one_of;
    /* The JSON has `content` even when nothing on the wire does: an empty list. */
    bool content;
};

extern const pb_message dgm_pb_event;
/* Of the arms of an event: the type's number in the base. */
unsigned dgm_pb_event_number(dgm_str type);
/* The number of union arms in the schema of older peers (before 1.0). */
#define PB_OLD_ARMS 18

/* ---- reading -------------------------------------------------------------------------------------------- */

typedef struct pb_reading {
    dgm_buf *out;
    dgm_err *err;
    dgm_code rc;
    unsigned depth;
} pb_reading;

typedef struct pb_found {
    unsigned number, wire;
    uint64_t n; /* of a varint, or the bits of a fixed one */
    dgm_str bytes;
} pb_found;

void dgm_pb_fail(pb_reading *r, const char *why);
/* The next field of a message; false: end of the message, or invalid bytes (then s is not empty). */
bool dgm_pb_next(dgm_str *s, pb_found *ret);
bool dgm_pb_is_whole(dgm_str message);
/* The last field of that number and wire type: it is the one that counts. */
bool dgm_pb_find(dgm_str message, unsigned number, unsigned wire, pb_found *ret);

void dgm_pb_put_text(pb_reading *r, dgm_str s);
void dgm_pb_put_struct(pb_reading *r, dgm_str message);
void dgm_pb_put_value(pb_reading *r, dgm_str message);
