/*
 * wire/a2a/a2a_card_oauth.c - the flows of an oauth2 scheme.
 *
 * The model has a list; on the wire each kind is a member of one object. In ProtoJSON that object is
 * a union, so it holds one flow; in the JSON dialect of 0.3 it may hold several.
 */
#include "wire/a2a/a2a_card_int.h"

/* ---- scopes ------------------------------------------------------------------------------------ */

static dgm_code read_scope(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return dgm_read_str(r, v, at, &((dgm_named_text *)object)->text);
}

static void write_scope(dgm_writer *w, const void *object)
{
    dgm_json_put_str(w->out, ((const dgm_named_text *)object)->text);
}

static const dgm_shape scope = {.what = "scope",
                                .size = sizeof(dgm_named_text),
                                .extra_at = DGM_NOWHERE,
                                .tag_at = DGM_NOWHERE,
                                .read_instead = read_scope,
                                .write_instead = write_scope};

/* ---- one flow ---------------------------------------------------------------------------------- */

#define URL(member, json) DGM_F(dgm_oauth_flow, member, json, STR, DGM_REQUIRED)
#define OPTIONAL_URL(member, json) DGM_F(dgm_oauth_flow, member, json, STR, 0)
#define SCOPES(flags) DGM_F_OF(dgm_oauth_flow, scopes, "scopes", MAP, (flags), &scope)

static const dgm_field authorization_code_fields[] = {
    URL(authorization_url, "authorizationUrl"),
    URL(token_url, "tokenUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES((DGM_REQUIRED | DGM_STRICT)),
    DGM_F(dgm_oauth_flow, pkce_required, "pkceRequired", BOOL, 0), /* since 1.0 */
};
static const dgm_field client_credentials_fields[] = {
    URL(token_url, "tokenUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES((DGM_REQUIRED | DGM_STRICT)),
};
static const dgm_field device_code_fields[] = {
    URL(device_authorization_url, "deviceAuthorizationUrl"),
    URL(token_url, "tokenUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES((DGM_REQUIRED | DGM_STRICT)),
};
/* Deprecated in 1.0, which no longer asks for any of their members; 0.3 does. */
static const dgm_field implicit_10_fields[] = {
    OPTIONAL_URL(authorization_url, "authorizationUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES(0),
};
static const dgm_field implicit_03_fields[] = {
    URL(authorization_url, "authorizationUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES(DGM_REQUIRED),
};
static const dgm_field password_10_fields[] = {
    OPTIONAL_URL(token_url, "tokenUrl"),
    OPTIONAL_URL(refresh_url, "refreshUrl"),
    SCOPES(0),
};
#define password_03_fields client_credentials_fields /* the same members */

#define FLOW(what, fields, proto) DGM_A2A_SHAPE(dgm_oauth_flow, what " flow", fields, proto)

static const dgm_shape authorization_code_10 =
    FLOW("authorization code", authorization_code_fields, true);
static const dgm_shape client_credentials_10 =
    FLOW("client credentials", client_credentials_fields, true);
static const dgm_shape implicit_10 = FLOW("implicit", implicit_10_fields, true);
static const dgm_shape password_10 = FLOW("password", password_10_fields, true);
static const dgm_shape device_code_10 = FLOW("device code", device_code_fields, true);

#define AUTHORIZATION_CODE_03(proto_)                                                              \
    {                                                                                              \
        .what = "authorization code flow", .size = sizeof(dgm_oauth_flow),                         \
        .fields = authorization_code_fields, .n_fields = 4, /* without pkceRequired */             \
            .extra_at = offsetof(dgm_oauth_flow, extra), .tag_at = DGM_NOWHERE, .proto = (proto_)  \
    }
static const dgm_shape authorization_code_03 = AUTHORIZATION_CODE_03(false);
static const dgm_shape client_credentials_03 =
    FLOW("client credentials", client_credentials_fields, false);
static const dgm_shape implicit_03 = FLOW("implicit", implicit_03_fields, false);
static const dgm_shape password_03 = FLOW("password", password_03_fields, false);

static const dgm_shape authorization_code_03_rest = AUTHORIZATION_CODE_03(true);
static const dgm_shape implicit_03_rest = FLOW("implicit", implicit_03_fields, true);
static const dgm_shape password_03_rest = FLOW("password", password_03_fields, true);

/* ---- the object with the flows ----------------------------------------------------------------- */

/* The members of the object; their order is that of dgm_oauth_flow_kind, which is the order in which
 * a flow is chosen where only one is allowed. */
struct flows {
    int kind; /* of the union */
    dgm_oauth_flow *of[DGM_FLOW_DEVICE_CODE + 1];
    const dgm_extra *extra;
};

#define ONE(kind_, json, shape) DGM_F_ONE(struct flows, of[kind_], json, OBJECT, kind_, shape)
#define ANY(kind_, json, shape) DGM_F_OF(struct flows, of[kind_], json, OBJECT, 0, shape)

static const dgm_field one_10_fields[] = {
    ONE(DGM_FLOW_AUTHORIZATION_CODE, "authorizationCode", &authorization_code_10),
    ONE(DGM_FLOW_CLIENT_CREDENTIALS, "clientCredentials", &client_credentials_10),
    ONE(DGM_FLOW_IMPLICIT, "implicit", &implicit_10),
    ONE(DGM_FLOW_PASSWORD, "password", &password_10),
    ONE(DGM_FLOW_DEVICE_CODE, "deviceCode", &device_code_10),
};
static const dgm_field one_03_fields[] = {
    ONE(DGM_FLOW_AUTHORIZATION_CODE, "authorizationCode", &authorization_code_03_rest),
    ONE(DGM_FLOW_CLIENT_CREDENTIALS, "clientCredentials", &client_credentials_10),
    ONE(DGM_FLOW_IMPLICIT, "implicit", &implicit_03_rest),
    ONE(DGM_FLOW_PASSWORD, "password", &password_03_rest),
};
static const dgm_field many_03_fields[] = {
    ANY(DGM_FLOW_AUTHORIZATION_CODE, "authorizationCode", &authorization_code_03),
    ANY(DGM_FLOW_CLIENT_CREDENTIALS, "clientCredentials", &client_credentials_03),
    ANY(DGM_FLOW_IMPLICIT, "implicit", &implicit_03),
    ANY(DGM_FLOW_PASSWORD, "password", &password_03),
};
/* For reading: cards of 1.0 may contain the type-tagged form, with the members of 1.0. */
static const dgm_field many_10_fields[] = {
    ANY(DGM_FLOW_AUTHORIZATION_CODE, "authorizationCode", &authorization_code_10),
    ANY(DGM_FLOW_CLIENT_CREDENTIALS, "clientCredentials", &client_credentials_10),
    ANY(DGM_FLOW_IMPLICIT, "implicit", &implicit_10),
    ANY(DGM_FLOW_PASSWORD, "password", &password_10),
    ANY(DGM_FLOW_DEVICE_CODE, "deviceCode", &device_code_10),
};

#define FLOWS(fields_, tag_at_, proto_)                                                            \
    {                                                                                              \
        .what = "set of OAuth flows", .size = sizeof(struct flows), DGM_FIELDS(fields_),           \
        .extra_at = offsetof(struct flows, extra), .tag_at = (tag_at_), .proto = (proto_)          \
    }
static const dgm_shape one_10 = FLOWS(one_10_fields, offsetof(struct flows, kind), true);
static const dgm_shape one_03 = FLOWS(one_03_fields, offsetof(struct flows, kind), true);
static const dgm_shape many_03 = FLOWS(many_03_fields, DGM_NOWHERE, false);
static const dgm_shape many_10 = FLOWS(many_10_fields, DGM_NOWHERE, true);

static dgm_code read_flow_case(dgm_reader *r, yyjson_val *v, const dgm_at *at, struct flows *flows)
{
    yyjson_val *value;
    const dgm_field *f = dgm_a2a_read_case(r, &one_10, v, at, &value);
    if (!f)
        return DGM_BAD_PARAMS;
    flows->of[f->tag] = dgm_new(r->arena, dgm_oauth_flow);
    return dgm_shape_read(r, f->of.shape, value, DGM_AT_LIT(at, "value"), flows->of[f->tag]);
}

static dgm_code read_flows(dgm_reader *r, const dgm_shape *s, yyjson_val *v, const dgm_at *at,
                           dgm_security_scheme *scheme)
{
    struct flows flows = {0};
    yyjson_val *in_memory = dgm_a2a_find_case(v, DGM_STR("flow"));
    dgm_code rc = in_memory ? read_flow_case(r, in_memory, DGM_AT_LIT(at, "flow"), &flows)
                            : dgm_shape_read(r, s, v, at, &flows);
    if (rc)
        return rc;
    dgm_oauth_flows list = {dgm_new_n(r->arena, dgm_oauth_flow, DGM_FLOW_DEVICE_CODE), 0};
    for (int kind = DGM_FLOW_AUTHORIZATION_CODE; kind <= DGM_FLOW_DEVICE_CODE; kind++) {
        if (!flows.of[kind])
            continue;
        list.at[list.n] = *flows.of[kind];
        list.at[list.n++].kind = (dgm_oauth_flow_kind)kind;
    }
    scheme->flows = list;
    scheme->flows_extra = flows.extra;
    return DGM_OK;
}

static void write_flows(dgm_writer *w, const dgm_field *f, const dgm_shape *s,
                        const dgm_security_scheme *scheme)
{
    struct flows flows = {.extra = scheme->flows_extra};
    for (size_t i = 0; i < scheme->flows.n; i++) {
        dgm_oauth_flow *flow = &scheme->flows.at[i];
        flows.of[flow->kind] = flow;
        /* deviceCode is the last kind: 0.3's union leaves it out only when it is alone. */
        if (!flows.kind || (int)flow->kind < flows.kind)
            flows.kind = flow->kind;
    }
    dgm_put_key(w, f);
    dgm_shape_write(w, s, &flows);
}

static dgm_code read_one(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return read_flows(r, &one_10, v, at, object);
}

static dgm_code read_many(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return read_flows(r, &many_10, v, at, object);
}

static void write_10(dgm_writer *w, const dgm_field *f, const void *object)
{
    write_flows(w, f, &one_10, object);
}

static void write_03(dgm_writer *w, const dgm_field *f, const void *object)
{
    write_flows(w, f, &many_03, object);
}

static void write_03_rest(dgm_writer *w, const dgm_field *f, const void *object)
{
    write_flows(w, f, &one_03, object);
}

const dgm_custom dgm_a2a_10_flows = {read_one, write_10};
const dgm_custom dgm_a2a_03_flows = {read_many, write_03};
const dgm_custom dgm_a2a_03_rest_flows = {NULL, write_03_rest};
