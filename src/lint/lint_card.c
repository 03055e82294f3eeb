/* lint/lint_card.c - agent cards: required members, and entries that must be unique. */
#include "lint/lint_int.h"

#include "wire/a2a/a2a_card.h"

#include <stdio.h>

#define AT 96 /* bytes of a pointer into a card */
#define CARD_PLACE "/.well-known/agent-card.json"

/* ---- required members ------------------------------------------------------------------------------------- */

static bool lint_card_is_blank(yyjson_val *v)
{
    return !v || yyjson_is_null(v) || (yyjson_is_str(v) && !unsafe_yyjson_get_len(v));
}

static void need(dgm_linter *l, yyjson_val *v, const char *at, const char *const *members)
{
    for (; *members; members++) {
        char pointer[AT];
        yyjson_val *member = dgm_json_get(v, dgm_str_from(*members));
        /* an empty list of skills or tags is valid; interfaces and modes need at least one element */
        bool empty = yyjson_is_arr(member) && !unsafe_yyjson_get_len(member) &&
                     strcmp(*members, "skills") != 0 && strcmp(*members, "tags") != 0;
        if (!lint_card_is_blank(member) && !empty)
            continue;
        snprintf(pointer, sizeof pointer, "%s/%s", at, *members);
        dgm_lint_report_in(l, LINT_REQUIRED_MEMBER, pointer, "%s: required in a card",
                           member && !yyjson_is_null(member) ? "empty" : "missing");
    }
}

static void need_in_list(dgm_linter *l, yyjson_val *card, const char *list,
                         const char *const *members)
{
    yyjson_val *e, *all = dgm_json_get(card, dgm_str_from(list));
    size_t i, n;
    yyjson_arr_foreach (all, i, n, e) {
        char at[AT];
        snprintf(at, sizeof at, "/%s/%zu", list, i);
        if (yyjson_is_obj(e))
            need(l, e, at, members);
    }
}

void dgm_lint_card_members(dgm_linter *l, yyjson_val *v)
{
    static const char *const of_all[] = {"name",
                                         "description",
                                         "version",
                                         "capabilities",
                                         "defaultInputModes",
                                         "defaultOutputModes",
                                         "skills",
                                         NULL};
    static const char *const of_10[] = {"supportedInterfaces", NULL};
    static const char *const of_03[] = {"url", "protocolVersion", NULL};
    static const char *const skill[] = {"id", "name", "description", "tags", NULL};
    static const char *const interface[] = {"url", "protocolBinding", "protocolVersion", NULL};
    static const char *const additional[] = {"url", "transport", NULL};
    static const char *const provider[] = {"url", "organization", NULL};
    need(l, v, "", of_all);
    need(l, v, "", dgm_a2a_card_is_03(v) ? of_03 : of_10);
    need_in_list(l, v, "skills", skill);
    need_in_list(l, v, "supportedInterfaces", interface);
    need_in_list(l, v, "additionalInterfaces", additional);
    if (yyjson_is_obj(dgm_json_get(v, DGM_STR("provider"))))
        need(l, dgm_json_get(v, DGM_STR("provider")), "/provider", provider);
}

/* ---- interfaces ------------------------------------------------------------------------------------------------ */

/* The JSON pointer of an interface of the decoded card: 0.3 has its first one at the top level. */
static void interface_at(yyjson_val *v, size_t i, const char *member, char *to)
{
    bool transport = strcmp(member, "protocolBinding") == 0;
    if (!dgm_a2a_card_is_03(v))
        snprintf(to, AT, "/supportedInterfaces/%zu/%s", i, member);
    else if (i == 0 || strcmp(member, "protocolVersion") == 0)
        snprintf(to, AT, "/%s", transport ? "preferredTransport" : member);
    else
        snprintf(to, AT, "/additionalInterfaces/%zu/%s", i - 1, transport ? "transport" : member);
}

static bool is_version(dgm_str v)
{
    return dgm_str_is(v, "1.0") || dgm_str_starts(v, DGM_STR("1.0.")) || dgm_str_is(v, "0.3") ||
           dgm_str_starts(v, DGM_STR("0.3."));
}

static bool is_http(dgm_str url)
{
    size_t n = dgm_str_starts(url, DGM_STR("http://"))    ? 7
               : dgm_str_starts(url, DGM_STR("https://")) ? 8
                                                          : 0;
    return n && url.n > n && url.p[n] != '/';
}

static bool is_known_transport(dgm_str t)
{
    return dgm_str_eq_nocase(t, DGM_STR("JSONRPC")) || dgm_str_eq_nocase(t, DGM_STR("HTTP+JSON")) ||
           dgm_str_eq_nocase(t, DGM_STR("GRPC")) || (t.n && memchr(t.p, ':', t.n));
}

static void lint_card_interface(dgm_linter *l, yyjson_val *v, const dgm_agent_interface *f,
                                size_t i)
{
    char at[AT];
    bool is_grpc = dgm_str_eq_nocase(f->protocol_binding, DGM_STR("GRPC"));
    int url_n = (int)(f->url.n < 100 ? f->url.n : 100);
    interface_at(v, i, "url", at);
    if (f->url.n && !is_grpc && !is_http(f->url))
        dgm_lint_report_in(l, LINT_CARD_URL, at, "\"%.*s\" is not an absolute http or https URL",
                           url_n, f->url.p);
    interface_at(v, i, "protocolBinding", at);
    if (f->protocol_binding.n && !is_known_transport(f->protocol_binding))
        dgm_lint_report_in(l, LINT_CARD_TRANSPORT, at, NULL);
    interface_at(v, i, "protocolVersion", at);
    if (f->protocol_version.n && !is_version(f->protocol_version) &&
        (i == 0 || !dgm_a2a_card_is_03(v)))
        dgm_lint_report_in(l, LINT_CARD_VERSION, at, "\"%.*s\" is not a version of A2A",
                           (int)(f->protocol_version.n < 40 ? f->protocol_version.n : 40),
                           f->protocol_version.p);
}

/* No address need be listed twice. 1.0 lists one that speaks several transports once for each; 0.3's url has
 * the preferredTransport, and no other. */
static void lint_card_conflicts(dgm_linter *l, yyjson_val *v, const dgm_agent_interfaces *all)
{
    bool is_03 = dgm_a2a_card_is_03(v);
    struct lint_seen seen = {0};
    for (size_t i = 0; i < all->n; i++) {
        const dgm_agent_interface *f = &all->at[i];
        dgm_str binding = is_03 ? (dgm_str){"", 0} : f->protocol_binding;
        dgm_str key =
            dgm_arena_printf(l->arena, "%.*s\n%.*s\n%.*s\n%.*s", DGM_P(f->url), DGM_P(f->tenant),
                             DGM_P(f->protocol_version), DGM_P(binding));
        uint64_t *first = dgm_lint_seen_find(&seen, key);
        if (!first && (first = dgm_lint_seen_add(&seen, key))) {
            *first = i;
            continue;
        }
        if (!first)
            break; /* more than anybody lists */
        bool same = dgm_str_eq_nocase(f->protocol_binding, all->at[*first].protocol_binding);
        char at[AT];
        interface_at(v, i, same ? "url" : "protocolBinding", at);
        dgm_lint_report_in(l, LINT_CARD_INTERFACES, at,
                           same ? "the same address, transport and version as interface %zu"
                                : "interface %zu has this address with another transport",
                           (size_t)*first);
    }
    dgm_lint_seen_clear(&seen);
}

/* ---- names that must be right -------------------------------------------------------------------------------- */

static void lint_card_skills(dgm_linter *l, const dgm_agent_card *c)
{
    struct lint_seen ids = {0};
    for (size_t i = 0; i < c->skills.n; i++) {
        dgm_str id = c->skills.at[i].id;
        char at[AT];
        if (id.n && dgm_lint_seen_find(&ids, id)) {
            snprintf(at, sizeof at, "/skills/%zu/id", i);
            dgm_lint_report_in(l, LINT_CARD_SKILLS, at, NULL);
        }
        dgm_lint_seen_add(&ids, id);
    }
    dgm_lint_seen_clear(&ids);
}

static void lint_card_security(dgm_linter *l, yyjson_val *v, const dgm_agent_card *c)
{
    const char *list =
        dgm_json_get(v, DGM_STR("securityRequirements")) ? "securityRequirements" : "security";
    struct lint_seen schemes = {0};
    for (size_t i = 0; i < c->security_schemes.n; i++)
        dgm_lint_seen_add(&schemes, c->security_schemes.at[i].name);
    for (size_t i = 0; i < c->security_requirements.n; i++) {
        const dgm_required_schemes *all = &c->security_requirements.at[i].schemes;
        for (size_t k = 0; k < all->n; k++) {
            char at[AT];
            dgm_str name = all->at[k].name;
            if (dgm_lint_seen_find(&schemes, name) || schemes.full)
                continue;
            snprintf(at, sizeof at, "/%s/%zu", list, i);
            dgm_lint_report_in(l, LINT_CARD_SECURITY, at,
                               "\"%.*s\" is not among the securitySchemes",
                               (int)(name.n < 60 ? name.n : 60), name.p);
        }
    }
    dgm_lint_seen_clear(&schemes);
}

/* ---- where it was found ------------------------------------------------------------------------------------------ */

/* "https://host:port" of an address. */
static dgm_str origin_of(dgm_str url)
{
    size_t n = 0, slashes = 0;
    while (n < url.n && (url.p[n] != '/' || ++slashes < 3))
        n++;
    return (dgm_str){url.p, n};
}

static void lint_card_place(dgm_linter *l, yyjson_val *v, const dgm_agent_card *c)
{
    dgm_str url = dgm_str_from(l->o.url), origin = origin_of(url);
    dgm_str path = {url.p + origin.n, url.n - origin.n}, place = DGM_STR(CARD_PLACE);
    /* below a path, too: one host may have many agents */
    if (path.n < place.n || memcmp(path.p + path.n - place.n, place.p, place.n) != 0)
        dgm_lint_report_in(l, LINT_CARD_PLACE, "",
                           "the card is at %.*s: clients read it from " CARD_PLACE,
                           (int)(path.n < 100 ? path.n : 100), path.p);
    for (size_t i = 0; i < c->interfaces.n; i++) {
        dgm_str theirs = origin_of(c->interfaces.at[i].url);
        char at[AT];
        if (!is_http(c->interfaces.at[i].url) || dgm_str_eq_nocase(theirs, origin))
            continue;
        interface_at(v, i, "url", at);
        dgm_lint_report_in(l, LINT_CARD_HOST, at, NULL);
    }
}

void dgm_lint_card(dgm_linter *l, yyjson_val *v, const dgm_agent_card *card)
{
    for (size_t i = 0; i < card->interfaces.n; i++)
        lint_card_interface(l, v, &card->interfaces.at[i], i);
    lint_card_conflicts(l, v, &card->interfaces);
    lint_card_skills(l, card);
    lint_card_security(l, v, card);
    if (l->o.url)
        lint_card_place(l, v, card);
}
