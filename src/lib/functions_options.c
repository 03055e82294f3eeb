/* lib/functions_options.c - a converter whose options are JSON: for languages that have no structs of ours. */
#include "base/limits.h"
#include "lib/functions_int.h"
#include "wire/formats.h"
#include "json/shape.h"

#include <dragoman/convert.h>

struct options {
    dgm_str from, to, object, seed;
    int framing, as, answer_source;
    dgm_opt_bool compact;
};

static const char *const framing_names[] = {"auto", "json", "array", "lines", "sse"};
static const dgm_enum_names framings = {.what = "framing", .names = framing_names, .n = 5};
static const char *const form_names[] = {NULL, "events", "response", "messages", "request"};
static const dgm_enum_names forms = {.what = "form", .names = form_names, .n = 5};
static const char *const source_names[] = {"auto", "status"};
static const dgm_enum_names sources = {.what = "source of answers", .names = source_names, .n = 2};

static const dgm_field fields[] = {
    DGM_F(struct options, from, "from", STR, 0),
    DGM_F(struct options, to, "to", STR, DGM_REQUIRED),
    DGM_F_OF(struct options, framing, "framing", ENUM, 0, &framings),
    DGM_F_OF(struct options, as, "as", ENUM, 0, &forms),
    DGM_F(struct options, object, "object", STR, 0),
    DGM_F(struct options, seed, "seed", STR, 0),
    DGM_F(struct options, compact, "compact", BOOL, 0),
    DGM_F_OF(struct options, answer_source, "answer_source", ENUM, 0, &sources),
};
static const dgm_shape shape = {
    .what = "options",
    .size = sizeof(struct options),
    DGM_FIELDS(fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static bool is_option(dgm_str name)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (dgm_str_eq(dgm_field_name(&fields[i]), name))
            return true;
    }
    return false;
}

/* A misspelled option that is ignored would be noticed too late. */
static dgm_code refuse_unknown(yyjson_val *v, dgm_err *err)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        if (!is_option(dgm_json_str(key)))
            return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT(NULL, dgm_json_str(key)),
                            "unknown option; allowed options: from, to, framing, as, object, "
                            "seed, compact, answer_source");
    }
    return DGM_OK;
}

static const char *functions_options_text_of(dgm_arena *a, dgm_str s)
{
    return s.p ? dgm_arena_dup(a, s).p : NULL; /* a copy ends with a NUL */
}

dgm_code dgm_converter_new_json(const char *options, size_t n, dgm_converter **ret_converter,
                                dgm_err *err)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    dgm_reader r = {.arena = a, .err = err};
    struct options o = {0};
    yyjson_val *v;
    dgm_code rc;
    if (!ret_converter || (!options && n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    if ((rc = dgm_json_read(a, (dgm_str){options, n}, DGM_MAX_OBJECT_BYTES, "object_bytes", &v,
                            err)) ||
        (rc = dgm_shape_read(&r, &shape, v, NULL, &o)) || (rc = refuse_unknown(v, err)))
        return rc;
    const dgm_codec *from = NULL, *to;
    if ((o.from.p && !dgm_str_eq(o.from, DGM_STR("auto")) &&
         !(from = dgm_codec_by_name(functions_options_text_of(a, o.from), err))) ||
        !(to = dgm_codec_by_name(functions_options_text_of(a, o.to), err)))
        return DGM_BAD_REQUEST;
    const dgm_convert_options plain = {
        .size = sizeof plain,
        .from = from ? from->format : DGM_FORMAT_NONE,
        .to = to->format,
        .framing = (dgm_framing)o.framing,
        .object = dgm_object_kind_by_name(o.object),
        .seed = functions_options_text_of(a, o.seed),
        .as = (dgm_form)o.as,
        .compact = o.compact == DGM_TRUE    ? DGM_COMPACT_ALWAYS
                   : o.compact == DGM_FALSE ? DGM_COMPACT_NEVER
                                            : DGM_COMPACT_DOCUMENTS,
        .status_is_answer = o.answer_source == 1,
    };
    if (o.object.n && !plain.object)
        return dgm_fail(err, DGM_BAD_REQUEST, DGM_AT_LIT(NULL, "object"), "unknown kind of object");
    return dgm_converter_new(&plain, ret_converter, err);
}
