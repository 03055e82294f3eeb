/*
 * wire/a2a/a2a_card_security.c - security schemes and requirements of a card.
 *
 * A scheme has two forms: ProtoJSON names its kind by a wrapper member, the JSON dialect of
 * 0.3 by a `type` beside the other members ("flat"). Hybrid cards hold both, or flat ones only.
 */
#include "wire/a2a/a2a_card_int.h"

/* ---- schemes: wrapped -------------------------------------------------------------------------- */

#define STR(member, json, flags) DGM_F(dgm_security_scheme, member, json, STR, flags)

static const dgm_field api_key_fields[] = {
    STR(description, "description", 0),
    STR(location, "location", DGM_REQUIRED),
    STR(key_name, "name", DGM_REQUIRED),
};
static const dgm_field http_fields[] = {
    STR(description, "description", 0),
    STR(scheme, "scheme", DGM_REQUIRED),
    STR(bearer_format, "bearerFormat", 0),
};
static const dgm_field oauth2_10_fields[] = {
    STR(description, "description", 0),
    DGM_F_CUSTOM("flows", DGM_REQUIRED, &dgm_a2a_10_flows),
    STR(oauth2_metadata_url, "oauth2MetadataUrl", 0),
};
static const dgm_field oauth2_03_rest_fields[] = {
    STR(description, "description", 0),
    DGM_F_CUSTOM("flows", DGM_REQUIRED, &dgm_a2a_03_rest_flows),
    STR(oauth2_metadata_url, "oauth2MetadataUrl", 0),
};
static const dgm_field openid_fields[] = {
    STR(description, "description", 0),
    STR(openid_connect_url, "openIdConnectUrl", DGM_REQUIRED),
};
static const dgm_field mtls_fields[] = {
    STR(description, "description", 0),
};

#define BODY(what, fields) DGM_A2A_SHAPE(dgm_security_scheme, what " scheme", fields, true)
static const dgm_shape api_key = BODY("API key", api_key_fields);
static const dgm_shape http = BODY("HTTP", http_fields);
static const dgm_shape oauth2_10 = BODY("OAuth 2", oauth2_10_fields);
static const dgm_shape oauth2_03_rest = BODY("OAuth 2", oauth2_03_rest_fields);
static const dgm_shape openid = BODY("OpenID Connect", openid_fields);
static const dgm_shape mtls = BODY("mutual TLS", mtls_fields);

/* A copy of another member of the same object. */
static const dgm_custom copy = {NULL, NULL};

#define WRAPPER(tag, json, shape) DGM_F_ONE(dgm_security_scheme, kind, json, NEST, tag, shape)
#define WRAPPERS(oauth2)                                                                           \
    WRAPPER(DGM_SCHEME_API_KEY, "apiKeySecurityScheme", &api_key),                                 \
        WRAPPER(DGM_SCHEME_HTTP, "httpAuthSecurityScheme", &http),                                 \
        WRAPPER(DGM_SCHEME_OAUTH2, "oauth2SecurityScheme", oauth2),                                \
        WRAPPER(DGM_SCHEME_OPENID, "openIdConnectSecurityScheme", &openid),                        \
        WRAPPER(DGM_SCHEME_MTLS, "mtlsSecurityScheme", &mtls)

/* Members that repeat the scheme in its other form. The Go SDK copies the 1.0 body to a
 * member that is called like the type. */
#define GO_COPIES                                                                                  \
    DGM_F_CUSTOM("apiKey", 0, &copy), DGM_F_CUSTOM("http", 0, &copy),                              \
        DGM_F_CUSTOM("oauth2", 0, &copy), DGM_F_CUSTOM("openIdConnect", 0, &copy),                 \
        DGM_F_CUSTOM("mutualTLS", 0, &copy)
#define NULL_WRAPPERS                                                                              \
    DGM_F_CUSTOM("apiKeySecurityScheme", 0, &copy),                                                \
        DGM_F_CUSTOM("httpAuthSecurityScheme", 0, &copy),                                          \
        DGM_F_CUSTOM("oauth2SecurityScheme", 0, &copy),                                            \
        DGM_F_CUSTOM("openIdConnectSecurityScheme", 0, &copy),                                     \
        DGM_F_CUSTOM("mtlsSecurityScheme", 0, &copy)

static const dgm_field wrapped_fields[] = {
    WRAPPERS(&oauth2_10),
    GO_COPIES,
    DGM_F_CUSTOM("type", 0, &copy),
    DGM_F_CUSTOM("description", 0, &copy),
    DGM_F_CUSTOM("in", 0, &copy),
    DGM_F_CUSTOM("name", 0, &copy),
    DGM_F_CUSTOM("scheme", 0, &copy),
    DGM_F_CUSTOM("bearerFormat", 0, &copy),
    DGM_F_CUSTOM("flows", 0, &copy),
    DGM_F_CUSTOM("oauth2MetadataUrl", 0, &copy),
    DGM_F_CUSTOM("openIdConnectUrl", 0, &copy),
};
static const dgm_field wrapped_03_fields[] = {WRAPPERS(&oauth2_03_rest)};
static const dgm_field go_fields[] = {
    WRAPPER(DGM_SCHEME_API_KEY, "apiKey", &api_key),
    WRAPPER(DGM_SCHEME_HTTP, "http", &http),
    WRAPPER(DGM_SCHEME_OAUTH2, "oauth2", &oauth2_10),
    WRAPPER(DGM_SCHEME_OPENID, "openIdConnect", &openid),
    WRAPPER(DGM_SCHEME_MTLS, "mutualTLS", &mtls),
};

#define WRAPPED(fields_)                                                                           \
    .what = "security scheme", .size = sizeof(dgm_security_scheme), DGM_FIELDS(fields_),           \
    .extra_at = offsetof(dgm_security_scheme, outer_extra),                                        \
    .tag_at = offsetof(dgm_security_scheme, kind), .one_required = true, .proto = true
static const dgm_shape wrapped = {WRAPPED(wrapped_fields)};
static const dgm_shape go_copy = {WRAPPED(go_fields)};

/* ---- schemes: as the JS SDK has them in memory ------------------------------------------------- */

yyjson_val *dgm_a2a_find_case(const yyjson_val *v, dgm_str member)
{
    yyjson_val *found = dgm_json_get(v, member);
    return dgm_json_get(found, DGM_STR("$case")) ? found : NULL;
}

const dgm_field *dgm_a2a_read_case(dgm_reader *r, const dgm_shape *the_union, yyjson_val *v,
                                   const dgm_at *at, yyjson_val **ret_value)
{
    dgm_str name;
    if (dgm_read_str(r, dgm_json_get(v, DGM_STR("$case")), DGM_AT_LIT(at, "$case"), &name))
        return NULL;
    yyjson_val *value = dgm_json_get(v, DGM_STR("value"));
    for (size_t i = 0; i < the_union->n_fields; i++) {
        const dgm_field *f = &the_union->fields[i];
        if (f->flags & DGM_ONE_OF && dgm_str_eq(dgm_field_name(f), name) && value) {
            *ret_value = value;
            return f;
        }
    }
    if (value)
        dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "$case"), "no member of a %s",
                 the_union->what);
    else
        dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "value"), "missing: $case needs it");
    return NULL;
}

static dgm_code read_scheme_case(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    const dgm_at *inside = DGM_AT_LIT(at, "scheme");
    yyjson_val *value;
    const dgm_field *f =
        dgm_a2a_read_case(r, &wrapped, dgm_a2a_find_case(v, DGM_STR("scheme")), inside, &value);
    if (!f)
        return DGM_BAD_PARAMS;
    ((dgm_security_scheme *)object)->kind = (dgm_scheme_kind)f->tag;
    return dgm_shape_read(r, f->of.shape, value, DGM_AT_LIT(inside, "value"), object);
}

static const dgm_shape in_memory = {.what = "security scheme",
                                    .size = sizeof(dgm_security_scheme),
                                    .extra_at = DGM_NOWHERE,
                                    .tag_at = DGM_NOWHERE,
                                    .read_instead = read_scheme_case};

/* ---- schemes: flat ----------------------------------------------------------------------------- */

static const char *const type_names[] = {
    [DGM_SCHEME_API_KEY] = "apiKey", [DGM_SCHEME_HTTP] = "http",
    [DGM_SCHEME_OAUTH2] = "oauth2",  [DGM_SCHEME_OPENID] = "openIdConnect",
    [DGM_SCHEME_MTLS] = "mutualTLS", [DGM_SCHEME_MTLS + 1] = NULL,
};
static const dgm_enum_names types = {
    .what = "type of security scheme", .names = type_names, .n = DGM_SCHEME_MTLS + 1};

#define TYPE DGM_F_OF(dgm_security_scheme, kind, "type", ENUM, DGM_REQUIRED, &types)

static const dgm_field flat_api_key_fields[] = {
    TYPE,
    STR(description, "description", DGM_PRESENCE),
    STR(location, "in", DGM_REQUIRED),
    STR(key_name, "name", DGM_REQUIRED),
    GO_COPIES,
    NULL_WRAPPERS,
};
static const dgm_field flat_http_fields[] = {
    TYPE,
    STR(description, "description", DGM_PRESENCE),
    STR(scheme, "scheme", DGM_REQUIRED),
    STR(bearer_format, "bearerFormat", DGM_PRESENCE),
    GO_COPIES,
    NULL_WRAPPERS,
};
static const dgm_field flat_oauth2_fields[] = {
    TYPE,
    STR(description, "description", DGM_PRESENCE),
    DGM_F_CUSTOM("flows", DGM_REQUIRED, &dgm_a2a_03_flows),
    STR(oauth2_metadata_url, "oauth2MetadataUrl", DGM_PRESENCE),
    GO_COPIES,
    NULL_WRAPPERS,
};
static const dgm_field flat_openid_fields[] = {
    TYPE,
    STR(description, "description", DGM_PRESENCE),
    STR(openid_connect_url, "openIdConnectUrl", DGM_REQUIRED),
    GO_COPIES,
    NULL_WRAPPERS,
};
static const dgm_field flat_mtls_fields[] = {
    TYPE,
    STR(description, "description", DGM_PRESENCE),
    GO_COPIES,
    NULL_WRAPPERS,
};
static const dgm_field flat_none_fields[] = {TYPE}; /* says what is wrong with the type */

static const dgm_shape flat[] = {
    [DGM_SCHEME_NONE] = BODY("security", flat_none_fields),
    [DGM_SCHEME_API_KEY] = BODY("API key", flat_api_key_fields),
    [DGM_SCHEME_HTTP] = BODY("HTTP", flat_http_fields),
    [DGM_SCHEME_OAUTH2] = BODY("OAuth 2", flat_oauth2_fields),
    [DGM_SCHEME_OPENID] = BODY("OpenID Connect", flat_openid_fields),
    [DGM_SCHEME_MTLS] = BODY("mutual TLS", flat_mtls_fields),
};

static dgm_picked pick_flat(const void *object)
{
    return (dgm_picked){&flat[((const dgm_security_scheme *)object)->kind], object};
}

/* ---- schemes: whichever it is ------------------------------------------------------------------ */

static bool has_any(const yyjson_val *v, const char *const *names)
{
    for (; *names; names++) {
        yyjson_val *member = dgm_json_get(v, dgm_str_from(*names));
        if (member && !yyjson_is_null(member))
            return true;
    }
    return false;
}

bool dgm_a2a_scheme_is_wrapped(const yyjson_val *v)
{
    static const char *const names[] = {
        "apiKeySecurityScheme",
        "api_key_security_scheme",
        "httpAuthSecurityScheme",
        "http_auth_security_scheme",
        "oauth2SecurityScheme",
        "oauth2_security_scheme",
        "openIdConnectSecurityScheme",
        "open_id_connect_security_scheme",
        "mtlsSecurityScheme",
        "mtls_security_scheme",
        NULL,
    };
    return has_any(v, names);
}

static const dgm_shape *pick_scheme(dgm_reader *r, yyjson_val *v, const dgm_at *at)
{
    (void)r;
    (void)at;
    if (dgm_a2a_scheme_is_wrapped(v))
        return &wrapped;
    if (dgm_a2a_find_case(v, DGM_STR("scheme")))
        return &in_memory;
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    if (!type || yyjson_is_null(type))
        return has_any(v, type_names + 1) ? &go_copy : &wrapped;
    for (int kind = DGM_SCHEME_API_KEY; yyjson_is_str(type) && type_names[kind]; kind++) {
        if (dgm_str_eq(dgm_json_str(type), dgm_str_from(type_names[kind])))
            return &flat[kind];
    }
    return &flat[DGM_SCHEME_NONE];
}

const dgm_shape dgm_form_scheme = {WRAPPED(wrapped_fields), .pick_read = pick_scheme};
const dgm_shape dgm_a2a_03_rest_scheme = {WRAPPED(wrapped_03_fields)};
const dgm_shape dgm_a2a_03_scheme = {
    .what = "security scheme",
    .size = sizeof(dgm_security_scheme),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .pick_write = pick_flat,
};

/* ---- requirements ------------------------------------------------------------------------------ */

static const dgm_field string_list_fields[] = {
    DGM_F(dgm_required_scheme, scopes, "list", STRS, 0),
};
static const dgm_shape string_list =
    DGM_A2A_SHAPE(dgm_required_scheme, "list of scopes", string_list_fields, true);

/* {"list":[...]}; in 0.3, and in all that the Go SDK writes, the array itself, or null for none. */
static dgm_code read_scopes(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    if (yyjson_is_null(v))
        return DGM_OK;
    if (yyjson_is_arr(v))
        return dgm_read_strs(r, v, at, &((dgm_required_scheme *)object)->scopes);
    return dgm_shape_read(r, &string_list, v, at, object);
}

static const dgm_shape required_scheme = {
    .what = "list of scopes",
    .size = sizeof(dgm_required_scheme),
    DGM_FIELDS(string_list_fields),
    .extra_at = offsetof(dgm_required_scheme, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .read_instead = read_scopes,
};

static const dgm_field requirement_fields[] = {
    DGM_F_OF(dgm_security_requirement, schemes, "schemes", MAP, 0, &required_scheme),
};
static const dgm_shape requirement =
    DGM_A2A_SHAPE(dgm_security_requirement, "security requirement", requirement_fields, true);

/* {"schemes":{name: scopes}}, or {name: scopes}, where a scheme may be called "schemes". */
static dgm_code read_requirement(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    const yyjson_val *schemes = dgm_json_get(v, DGM_STR("schemes"));
    if (yyjson_is_obj(v) && (!schemes || yyjson_is_arr((yyjson_val *)(uintptr_t)schemes)))
        return dgm_read_map(r, &required_scheme, v, at,
                            &((dgm_security_requirement *)object)->schemes);
    return dgm_shape_read(r, &requirement, v, at, object);
}

const dgm_shape dgm_form_requirement = {
    .what = "security requirement",
    .size = sizeof(dgm_security_requirement),
    DGM_FIELDS(requirement_fields),
    .extra_at = offsetof(dgm_security_requirement, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
    .read_instead = read_requirement,
};

static void write_flat_requirement(dgm_writer *w, const void *object)
{
    const dgm_required_schemes *schemes = &((const dgm_security_requirement *)object)->schemes;
    dgm_buf_add_char(w->out, '{');
    for (size_t i = 0; i < schemes->n; i++) {
        if (i)
            dgm_buf_add_char(w->out, ',');
        dgm_json_put_str(w->out, schemes->at[i].name);
        dgm_buf_add_char(w->out, ':');
        dgm_put_strs(w, schemes->at[i].scopes);
    }
    dgm_buf_add_char(w->out, '}');
}

const dgm_shape dgm_a2a_03_requirement = {
    .what = "security requirement",
    .size = sizeof(dgm_security_requirement),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
    .write_instead = write_flat_requirement,
};
