/*
 * json/shape.h - objects read and written by table.
 *
 * A shape defines how one struct is encoded in one format: a row per member. Reading and writing walk
 * the same rows, so missing, mistyped, doubled and unknown members are met in one place, and what a
 * format can say is a table that docs and tests can print.
 *
 * Absent and null mean the same, except for JSON values, where null is a value.
 */
#pragma once

#include "base/mint.h"
#include "json/json.h"

#include <stddef.h>

typedef struct dgm_shape dgm_shape;
typedef struct dgm_field dgm_field;

/* Up to DGM_FIELD_MAP what is in the struct is a pointer and a length, up to DGM_FIELD_OBJECT it
 * begins with a pointer; NULL is absent. */
typedef enum dgm_field_kind {
    DGM_FIELD_STR,      /* dgm_str */
    DGM_FIELD_TIME,     /* dgm_str: any RFC 3339 time is read, UTC with Z is kept and written */
    DGM_FIELD_BASE64,   /* dgm_str: either alphabet, padded or not, is read; standard is kept */
    DGM_FIELD_STRS,     /* dgm_strs */
    DGM_FIELD_LIST,     /* struct { T *at; size_t n; }; of.shape */
    DGM_FIELD_MAP,      /* the same, T beginning with a dgm_str that holds the key; of.shape */
    DGM_FIELD_JSON,     /* const dgm_json *: any value */
    DGM_FIELD_MAP_JSON, /* const dgm_json *: an object with members of the sender's choice */
    DGM_FIELD_OBJECT,   /* T *; of.shape */
    DGM_FIELD_BOOL,     /* dgm_opt_bool */
    DGM_FIELD_INT,      /* int32_t */
    DGM_FIELD_OPT_INT,  /* dgm_opt_int */
    DGM_FIELD_ENUM,     /* int; of.names */
    DGM_FIELD_OPT_ENUM, /* dgm_opt_int; of.names */
    DGM_FIELD_INLINE,   /* T; of.shape; absent leaves it zeroed */
    DGM_FIELD_NEST,     /* an object on the wire, more members of the same struct here; of.shape */
    DGM_FIELD_CONST,    /* always of.literal; nothing in the struct */
    DGM_FIELD_CUSTOM    /* of.custom */
} dgm_field_kind;

enum dgm_field_flags {
    DGM_REQUIRED = 1, /* refused when missing; written even when empty */
    DGM_MINTED = 2,   /* an id: made up when missing, if the reader has a mint */
    DGM_NONEMPTY = 4, /* text or list of length 0 counts as missing */
    DGM_STRICT = 8,   /* DGM_NONEMPTY is asked for by strict readers only; without it, DGM_REQUIRED:
                        * others take absent for the default, as ProtoJSON writers mean it */
    DGM_PRESENCE = 16,  /* written when set, also to its default */
    DGM_READ_ONLY = 32, /* another name of a member at the same place: never written */
    DGM_ONE_OF = 64,    /* member of the shape's union: set iff the tag is its own */
    DGM_ANY_TYPE = 128  /* CUSTOM: read() also sees null */
};

/* Names of an enum: names[value]; NULL where the format has none. */
typedef struct dgm_enum_alias {
    const char *name;
    int value;
} dgm_enum_alias;

typedef struct dgm_enum_names {
    const char *what; /* "task state", for messages */
    const char *const *names;
    int n;
    bool numbers;                  /* the value's number is read too, as ProtoJSON wants */
    const dgm_enum_alias *aliases; /* read only; ends with {NULL, 0} */
} dgm_enum_names;

typedef struct dgm_reader {
    dgm_arena *arena;
    dgm_format_id format; /* tags unknown members */
    dgm_mint *mint;       /* NULL: a missing id is an error */
    dgm_str now; /* RFC 3339, for missing times; absent: a missing required time is an error */
    bool strict; /* a server's own rules: see DGM_STRICT */
    bool drop_unknown; /* counted in n_unknown either way */
    bool drop_nulls;   /* unknown members that are null count as absent */
    bool drop_empties; /* ProtoJSON came in: optional members that are empty count as absent */
    size_t n_unknown;
    /* Called for each unknown member of an object that a table reads; NULL: not needed. */
    void (*on_unknown)(void *arg, const dgm_at *at, dgm_str key);
    void *on_unknown_arg;
    dgm_err *err;
} dgm_reader;

typedef struct dgm_writer {
    dgm_buf *out;
    dgm_format_id format; /* whose unknown members may be written */
} dgm_writer;

typedef struct dgm_custom {
    dgm_code (*read)(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object);
    /* Writes nothing, or dgm_put_key(w, f) and a value. */
    void (*write)(dgm_writer *w, const dgm_field *f, const void *object);
} dgm_custom;

/* How a writer sees at a glance that a member is absent, as most members of most objects are. */
enum dgm_field_look {
    DGM_LOOK_CLOSER,  /* it cannot */
    DGM_LOOK_POINTER, /* optional, begins with a pointer: NULL is absent */
    DGM_LOOK_INT,     /* optional, an int or an enum: 0 is absent */
    DGM_LOOK_TAG,     /* member of the union: absent unless the tag is its own */
    DGM_LOOK_NEVER    /* another name */
};
#define DGM_LOOK(kind_, flags_)                                                                    \
    ((flags_)&DGM_READ_ONLY        ? DGM_LOOK_NEVER                                                \
     : (flags_)&DGM_ONE_OF         ? DGM_LOOK_TAG                                                  \
     : (flags_)&DGM_REQUIRED       ? DGM_LOOK_CLOSER                                               \
     : (kind_) <= DGM_FIELD_OBJECT ? DGM_LOOK_POINTER                                              \
     : (kind_) == DGM_FIELD_BOOL || (kind_) == DGM_FIELD_INT || (kind_) == DGM_FIELD_ENUM          \
         ? DGM_LOOK_INT                                                                            \
         : DGM_LOOK_CLOSER)

/* Room for the longest name with quotes and colon ("supportsAuthenticatedExtendedCard":) and then
 * some: of one size, so that a key is written by copies of constant length, and such that a row is
 * one cache line. This is the hot path of every codec. */
#define DGM_KEY_ROOM 44

struct dgm_field {
    char
        quoted[DGM_KEY_ROOM]; /* "name": with quotes and colon, ready to write; a CONST all of it */
    uint8_t quoted_n, name_n;
    uint8_t kind;
    uint8_t look; /* enum dgm_field_look */
    uint16_t flags;
    uint16_t tag; /* of a DGM_ONE_OF member; of a CONST the literal's length */
    uint32_t at;  /* offset in the struct */
    union {
        const dgm_shape *shape;
        const dgm_enum_names *names;
        const char *literal;
        const dgm_custom *custom;
        const void *any;
    } of;
};

typedef struct dgm_rows {
    _Atomic uint64_t bits;
} dgm_rows;

/* What to write instead: the same object by another shape, or one that it holds. */
typedef struct dgm_picked {
    const dgm_shape *shape;
    const void *object;
} dgm_picked;

struct dgm_shape {
    const char *what; /* "message": for messages to people */
    size_t size;
    const dgm_field *fields; /* at most 63 */
    size_t n_fields;
    dgm_rows *required; /* a bit per required row, found by the first reader; may be NULL */
    uint32_t extra_at;  /* offset of const dgm_extra *, or DGM_NOWHERE */
    uint32_t tag_at;    /* offset of the union's tag (an enum), or DGM_NOWHERE */
    bool one_required;  /* one member of the union must be set */
    bool proto; /* ProtoJSON: snake_case names are read, defaults without presence not written */
    /* Another shape for this value or struct (kind-tagged unions). NULL result: err is set. */
    const dgm_shape *(*pick_read)(dgm_reader *r, yyjson_val *v, const dgm_at *at);
    dgm_picked (*pick_write)(const void *object);
    /* Last word on an object that was read. */
    dgm_code (*after_read)(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at);
    /* Instead of all rows, for the odd one out. */
    dgm_code (*read_instead)(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object);
    void (*write_instead)(dgm_writer *w, const void *object);
};

#define DGM_NOWHERE UINT32_MAX

#define DGM_KEY(json, kind_, flags_)                                                               \
    .quoted = "\"" json "\":", .quoted_n = sizeof(json) + 2, .name_n = sizeof(json) - 1,           \
    .kind = DGM_FIELD_##kind_, .look = DGM_LOOK(DGM_FIELD_##kind_, flags_), .flags = (flags_)
#define DGM_F(T, member, json, kind_, flags_)                                                      \
    {                                                                                              \
        DGM_KEY(json, kind_, flags_), .at = offsetof(T, member)                                    \
    }
#define DGM_F_OF(T, member, json, kind_, flags_, of_)                                              \
    {                                                                                              \
        DGM_KEY(json, kind_, flags_), .at = offsetof(T, member), .of = {.any = (of_) }             \
    }
#define DGM_F_ONE(T, member, json, kind_, tag_, of_)                                               \
    {                                                                                              \
        DGM_KEY(json, kind_, DGM_ONE_OF), .tag = (tag_), .at = offsetof(T, member), .of = {        \
            .any = (of_)                                                                           \
        }                                                                                          \
    }
/* Another name of a member of the union. */
#define DGM_F_ONE_READ(T, member, json, kind_, tag_, of_)                                          \
    {                                                                                              \
        DGM_KEY(json, kind_, DGM_ONE_OF | DGM_READ_ONLY), .tag = (tag_),                           \
                                                          .at = offsetof(T, member), .of = {       \
                                                              .any = (of_)                         \
                                                          }                                        \
    }
/* The literal is written unchanged: it needs no escapes. */
#define DGM_F_CONST(json, literal_)                                                                \
    {                                                                                              \
        .quoted = "\"" json "\":\"" literal_ "\"",                                                 \
        .quoted_n = sizeof(json) + sizeof(literal_) + 3, .name_n = sizeof(json) - 1,               \
        .kind = DGM_FIELD_CONST, .tag = sizeof(literal_) - 1, .of = {                              \
            .literal = "" literal_                                                                 \
        }                                                                                          \
    }
#define DGM_F_NEST(json, flags_, shape_)                                                           \
    {                                                                                              \
        DGM_KEY(json, NEST, flags_), .of = {.shape = (shape_) }                                    \
    }
#define DGM_F_CUSTOM(json, flags_, custom_)                                                        \
    {                                                                                              \
        DGM_KEY(json, CUSTOM, flags_), .of = {.custom = (custom_) }                                \
    }
/* Another name of the member at `member`, read by a function. */
#define DGM_F_CUSTOM_FOR(T, member, json, custom_)                                                 \
    {                                                                                              \
        DGM_KEY(json, CUSTOM, DGM_READ_ONLY), .at = offsetof(T, member), .of = {                   \
            .custom = (custom_)                                                                    \
        }                                                                                          \
    }
#define DGM_FIELDS(array)                                                                          \
    .fields = (array), .n_fields = sizeof(array) / sizeof *(array), .required = &(dgm_rows)        \
    {                                                                                              \
        0                                                                                          \
    }

static inline dgm_str dgm_field_name(const dgm_field *f)
{
    return (dgm_str){f->quoted + 1, f->name_n};
}

/* Reads v into a zeroed struct. */
dgm_code dgm_shape_read(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                        void *object);
/* The same, from compact text that has nothing unusual in it (shape_scan.c). False: use dgm_shape_read() with another
 * struct. Strings are borrowed from the text. Longer texts are not scanned, which also bounds the memory for
 * unescaped strings. */
#define DGM_SCAN_MAX_BYTES ((size_t)8 << 10)
bool dgm_shape_scan(dgm_reader *r, const dgm_shape *s, dgm_str text, void *object);
void dgm_shape_write(dgm_writer *w, const dgm_shape *s, const void *object);

/* For hooks: one value by itself, and the pieces of it. */
dgm_code dgm_read_str(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret);
dgm_code dgm_read_time(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret);
dgm_code dgm_read_base64(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_str *ret);
dgm_code dgm_read_bool(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_opt_bool *ret);
dgm_code dgm_read_int(dgm_reader *r, yyjson_val *v, const dgm_at *at, int32_t *ret);
dgm_code dgm_read_enum(dgm_reader *r, const dgm_enum_names *names, yyjson_val *v, const dgm_at *at,
                       int *ret);
dgm_code dgm_read_strs(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_strs *ret);
/* ret_list: struct { T *at; size_t n; }, as for DGM_FIELD_LIST and DGM_FIELD_MAP. */
dgm_code dgm_read_list(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                       void *ret_list);
dgm_code dgm_read_map(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                      void *ret_list);
dgm_code dgm_read_wrong(dgm_reader *r, yyjson_val *v, const dgm_at *at, const char *expected)
    __attribute__((cold));
/* Stores an unknown member, for writing it back. */
dgm_code dgm_read_unknown(dgm_reader *r, dgm_str key, yyjson_val *v, const dgm_at *at,
                          const dgm_extra **extra);

/* For write hooks. Commas: a value is preceded by one unless it follows '{' or '['. */
static inline void dgm_put_comma(dgm_writer *w)
{
    dgm_buf *b = w->out;
    if (b->n && b->p[b->n - 1] != '{' && b->p[b->n - 1] != '[')
        dgm_buf_add_char(b, ',');
}

/* There is room for DGM_KEY_ROOM + 1 bytes, and out is inside an object. Most keys are short: one copy of 16 bytes. */
static inline char *dgm_copy_key(char *out, const dgm_field *f)
{
    if (out[-1] != '{')
        *out++ = ',';
    memcpy(out, f->quoted, 16);
    if (f->quoted_n > 16)
        memcpy(out + 16, f->quoted + 16, DGM_KEY_ROOM - 16);
    return out + f->quoted_n;
}

static inline void dgm_put_key(dgm_writer *w, const dgm_field *f)
{
    dgm_buf *b = w->out;
    if (!dgm_buf_room(b, DGM_KEY_ROOM + 1))
        return;
    b->n = (size_t)(dgm_copy_key(b->p + b->n, f) - b->p);
}

void dgm_put_strs(dgm_writer *w, dgm_strs list);

/* RFC 3339 to UTC with 0, 3, 6 or 9 fraction digits; false when it is no time. Times without a zone
 * are taken as UTC. The result is the input itself when it has that form already. */
bool dgm_time_normalise(dgm_arena *a, dgm_str in, dgm_str *ret);

/* Either alphabet, padded or not, to standard padded base64; false when it is not base64. */
bool dgm_base64_normalise(dgm_arena *a, dgm_str in, dgm_str *ret);
/* The base64 of two pieces of bytes that follow each other: so many characters of the first stay (all, unless it is padded), and
 * *ret_more comes behind them. Both are standard base64. */
size_t dgm_base64_join(dgm_arena *a, dgm_str first, dgm_str more, dgm_str *ret_more);
