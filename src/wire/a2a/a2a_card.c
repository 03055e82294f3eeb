/*
 * wire/a2a/a2a_card.c - the agent card.
 *
 * 1.0 lists interfaces, each with its version; 0.3 has one version, one url with its transport, and
 * more of them in a second list. Both kinds of members may be in one card, a hybrid: then those of
 * 1.0 count, and those of 0.3 only where 1.0's are missing.
 */
#include "wire/a2a/a2a_card_int.h"

/* How well a version fits into a card of 0.3. */
enum fit { ANOTHER_VERSION, OLDER, FITS };

static enum fit fit_of(dgm_str version)
{
    int number[2] = {0};
    size_t i = 0;
    if (version.n == 0)
        return FITS;
    for (int part = 0; part < 2; part++, i++) {
        size_t from = i;
        for (; i < version.n && version.p[i] >= '0' && version.p[i] <= '9' && i - from < 4; i++)
            number[part] = 10 * number[part] + version.p[i] - '0';
        if (i == from)
            return ANOTHER_VERSION;
        if (i == version.n)
            break;
        if (version.p[i] != '.')
            return ANOTHER_VERSION;
    }
    return number[0] > 0 ? ANOTHER_VERSION : number[1] < 3 ? OLDER : FITS;
}

static enum fit best_fit(const dgm_agent_interfaces *list)
{
    enum fit best = ANOTHER_VERSION;
    for (size_t i = 0; i < list->n; i++) {
        enum fit fit = fit_of(list->at[i].protocol_version);
        best = fit > best ? fit : best;
    }
    return best;
}

/* ---- skills ------------------------------------------------------------------------------------ */

/* 0.3's `security`, where 1.0's securityRequirements are absent. An empty list counts as absent: were it
 * to win, the skill would seem open to everybody. */
dgm_code dgm_a2a_read_skill_security(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_agent_skill *skill = object;
    yyjson_val *security = dgm_json_get(v, DGM_STR("security"));
    if (skill->security_requirements.n || !security || yyjson_is_null(security))
        return DGM_OK;
    return dgm_read_list(r, &dgm_form_requirement, security, DGM_AT_LIT(at, "security"),
                         &skill->security_requirements);
}

const dgm_custom dgm_a2a_ignored = {NULL, NULL};

/* ---- the card: 1.0, and reading ---------------------------------------------------------------- */

static bool same_place(const dgm_agent_interface *a, const dgm_agent_interface *b)
{
    return dgm_str_eq(a->url, b->url) && dgm_str_eq(a->protocol_binding, b->protocol_binding);
}

/* The interfaces of a card of 0.3, behind those it has already. Many cards name their main address
 * among the additional ones again, as 0.3 advises: once is enough. */
static void add_interfaces_03(dgm_arena *a, struct card *card)
{
    dgm_agent_interface first = {
        .url = card->url,
        .protocol_binding = card->transport.n ? card->transport : DGM_STR("JSONRPC"),
        .protocol_version = card->version.n ? card->version : DGM_STR("0.3"),
    };
    const dgm_agent_interfaces *old = &card->it.interfaces;
    dgm_agent_interfaces list = {dgm_new_n(a, dgm_agent_interface, old->n + 1 + card->additional.n),
                                 old->n};
    for (size_t i = 0; i < old->n; i++)
        list.at[i] = old->at[i];
    list.at[list.n++] = first;
    for (size_t i = 0; i < card->additional.n; i++) {
        if (same_place(&card->additional.at[i], &first))
            continue;
        list.at[list.n] = card->additional.at[i];
        list.at[list.n++].protocol_version = first.protocol_version;
    }
    card->it.interfaces = list;
}

static dgm_code read_card(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object, bool v03)
{
    struct card card = {0};
    dgm_code rc = dgm_shape_read(r, &dgm_form_card_members, v, at, &card);
    if (rc)
        return rc;
    size_t listed = card.it.interfaces.n;
    if (!listed && v03 && !card.url.n)
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "url"),
                        "missing or empty: a card of 0.3 needs it");
    if (!listed && !v03 && (!card.url.n || r->strict))
        return dgm_fail(r->err, DGM_BAD_PARAMS, DGM_AT_LIT(at, "supportedInterfaces"),
                        "missing or empty: a card of 1.0 lists at least one interface");
    /* A hybrid repeats one of its interfaces as url; if none is of 0.3, url tells of one more. */
    if (card.url.n && (!listed || best_fit(&card.it.interfaces) != FITS))
        add_interfaces_03(r->arena, &card);
    if (!card.it.capabilities.extended_agent_card)
        card.it.capabilities.extended_agent_card = card.extended;
    if (!card.it.security_requirements.n && card.security.at)
        card.it.security_requirements = card.security;
    *(dgm_agent_card *)object = card.it;
    return DGM_OK;
}

dgm_code dgm_a2a_read_card_10(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return read_card(r, v, at, object, false);
}

dgm_code dgm_a2a_read_card_03(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    return read_card(r, v, at, object, true);
}

/* ---- the card: writing 0.3 --------------------------------------------------------------------- */

/* Which interfaces go into a card of 0.3: all that fit best. A card without any has to be served by
 * somebody who knows better; here the first one stands for all. */
static bool is_kept(const dgm_agent_interfaces *list, size_t i, enum fit best)
{
    return best == ANOTHER_VERSION ? i == 0 : fit_of(list->at[i].protocol_version) == best;
}

static void write_additional(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_agent_interfaces *list = &((const struct card *)object)->it.interfaces;
    enum fit best = best_fit(list);
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        if (!is_kept(list, i, best) || kept++ == 0)
            continue;
        if (kept == 2) {
            dgm_put_key(w, f);
            dgm_buf_add_char(w->out, '[');
        } else {
            dgm_buf_add_char(w->out, ',');
        }
        dgm_shape_write(w, &dgm_a2a_03_rest_interface, &list->at[i]);
    }
    if (kept > 1)
        dgm_buf_add_char(w->out, ']');
}

const dgm_custom dgm_a2a_additional = {NULL, write_additional};

static void write_card(dgm_writer *w, const dgm_shape *s, const dgm_agent_card *it)
{
    struct card card = {.it = *it, .extended = it->capabilities.extended_agent_card};
    enum fit best = best_fit(&it->interfaces);
    for (size_t i = 0; i < it->interfaces.n; i++) {
        if (!is_kept(&it->interfaces, i, best))
            continue;
        card.url = it->interfaces.at[i].url;
        card.transport = it->interfaces.at[i].protocol_binding;
        if (best != ANOTHER_VERSION)
            card.version = it->interfaces.at[i].protocol_version;
        break;
    }
    if (!card.version.n)
        card.version = DGM_STR("0.3.0");
    dgm_shape_write(w, s, &card);
}

void dgm_a2a_write_card_03(dgm_writer *w, const void *object)
{
    write_card(w, &dgm_a2a_03_card_members, object);
}

void dgm_a2a_write_card_03_rest(dgm_writer *w, const void *object)
{
    write_card(w, &dgm_a2a_03_rest_card_members, object);
}

/* ---- telling cards apart ----------------------------------------------------------------------- */

/* A member that is there and not null, by either of its names. */
static yyjson_val *a2a_card_member(const yyjson_val *v, const char *camel, const char *snake)
{
    yyjson_val *m = dgm_json_get(v, dgm_str_from(camel));
    if (!m && snake)
        m = dgm_json_get(v, dgm_str_from(snake));
    return yyjson_is_null(m) ? NULL : m;
}

static bool has_any_mark(const yyjson_val *v, const char *const (*names)[2], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (a2a_card_member(v, names[i][0], names[i][1]))
            return true;
    }
    return false;
}

/* No other object of A2A has any of these; `name`, `url` and `version` others have too. */
static const char *const marks[][2] = {
    {"preferredTransport", "preferred_transport"}, /* from here on 0.3's alone */
    {"additionalInterfaces", "additional_interfaces"},
    {"supportsAuthenticatedExtendedCard", "supports_authenticated_extended_card"},
    {"supportedInterfaces", "supported_interfaces"}, /* from here on not */
    {"protocolVersion", "protocol_version"},
    {"capabilities", NULL},
    {"skills", NULL},
    {"defaultInputModes", "default_input_modes"},
    {"defaultOutputModes", "default_output_modes"},
    {"securitySchemes", "security_schemes"},
};
#define N_MARKS_03 3

bool dgm_a2a_looks_like_card(const yyjson_val *v)
{
    if (yyjson_is_str(a2a_card_member(v, "type", NULL)))
        return false; /* an event of AG-UI's, which has a protocolVersion too */
    return has_any_mark(v, marks, sizeof marks / sizeof *marks) ||
           (yyjson_is_str(a2a_card_member(v, "name", NULL)) &&
            yyjson_is_str(a2a_card_member(v, "url", NULL)) &&
            yyjson_is_str(a2a_card_member(v, "version", NULL)));
}

bool dgm_a2a_card_is_03(const yyjson_val *v)
{
    if (yyjson_arr_size(a2a_card_member(v, "supportedInterfaces", "supported_interfaces")) > 0)
        return false;
    if (yyjson_is_str(a2a_card_member(v, "url", NULL)) || has_any_mark(v, marks, N_MARKS_03))
        return true;
    yyjson_val *version = a2a_card_member(v, "protocolVersion", "protocol_version");
    return yyjson_is_str(version) && unsafe_yyjson_get_len(version) > 0 &&
           fit_of(dgm_json_str(version)) == FITS;
}

static bool security_is_wrapped(const yyjson_val *v)
{
    yyjson_val *first = yyjson_arr_get_first(a2a_card_member(v, "security", NULL));
    return yyjson_is_obj(a2a_card_member(first, "schemes", NULL));
}

bool dgm_a2a_card_is_03_rest(const yyjson_val *v)
{
    size_t i, n;
    yyjson_val *key, *scheme, *a_skill;
    if (!dgm_a2a_card_is_03(v))
        return false;
    /* yyjson's loops count from the value they are given: it must be there */
    yyjson_val *schemes = a2a_card_member(v, "securitySchemes", "security_schemes");
    if (yyjson_is_obj(schemes)) {
        yyjson_obj_foreach (schemes, i, n, key, scheme) {
            if (dgm_a2a_scheme_is_wrapped(scheme))
                return true;
        }
    }
    yyjson_val *skills = a2a_card_member(v, "skills", NULL);
    if (yyjson_is_arr(skills)) {
        yyjson_arr_foreach (skills, i, n, a_skill) {
            if (security_is_wrapped(a_skill))
                return true;
        }
    }
    return security_is_wrapped(v);
}
