/* app/client/client_card.c - `dragoman card get`: a card for a person, for a program, or judged. */
#include "app/client/client_int.h"
#include "wire/a2a/a2a.h"
#include "wire/a2a/a2a_card.h"

#include <stdarg.h>

/* ---- for a person -------------------------------------------------------------------------------------------- */

static void plain(dgm_str text)
{
    for (size_t i = 0; i < text.n; i++)
        putchar((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i]);
}

static void row(const char *name, dgm_str text)
{
    if (!text.n)
        return;
    printf("%-14s", name);
    plain(text);
    putchar('\n');
}

static void words(const char *name, const dgm_strs *list)
{
    if (!list->n)
        return;
    printf("%-14s", name);
    for (size_t i = 0; i < list->n; i++) {
        printf("%s", i ? ", " : "");
        plain(list->at[i]);
    }
    putchar('\n');
}

static void print_card(const dgm_agent_card *c)
{
    const dgm_agent_capabilities *can = &c->capabilities;
    row("name", c->name);
    row("description", c->description);
    row("version", c->version);
    if (c->provider)
        row("provider", c->provider->organization);
    row("documentation", c->documentation_url);
    printf("%-14sstreaming %s, push notifications %s, extended card %s\n", "capabilities",
           can->streaming == DGM_TRUE ? "yes" : "no",
           can->push_notifications == DGM_TRUE ? "yes" : "no",
           can->extended_agent_card == DGM_TRUE ? "yes" : "no");
    words("input", &c->default_input_modes);
    words("output", &c->default_output_modes);
    for (size_t i = 0; i < c->security_schemes.n; i++)
        row(i ? "" : "security", c->security_schemes.at[i].name);
    printf("\ninterfaces\n");
    for (size_t i = 0; i < c->interfaces.n; i++) {
        const dgm_agent_interface *at = &c->interfaces.at[i];
        printf("  A2A %-4.*s %-10.*s ", DGM_P(at->protocol_version), DGM_P(at->protocol_binding));
        plain(at->url);
        if (at->tenant.n) {
            printf(" tenant ");
            plain(at->tenant);
        }
        putchar('\n');
    }
    printf("\nskills\n");
    for (size_t i = 0; i < c->skills.n; i++) {
        const dgm_agent_skill *s = &c->skills.at[i];
        printf("  ");
        plain(s->name);
        printf(": ");
        plain(s->description);
        putchar('\n');
    }
}

/* ---- judged ------------------------------------------------------------------------------------------------------ */

struct judge {
    const char *url;
    size_t faults;
};

static void DGM_PRINTF(3, 4) fault(struct judge *j, const char *at, const char *fmt, ...)
{
    char text[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    j->faults++;
    dgm_cli_complain("%s: at %s: %s", j->url, at, text);
}

static void need(struct judge *j, const char *at, dgm_str text)
{
    if (!text.n)
        fault(j, at, "missing or empty");
}

static bool is_version(dgm_str v)
{
    size_t dots = 0;
    for (size_t i = 0; i < v.n; i++) {
        if (v.p[i] != '.' && (v.p[i] < '0' || v.p[i] > '9'))
            return false;
        dots += v.p[i] == '.';
    }
    return v.n && dots >= 1 && dots <= 2;
}

static void judge_interfaces(struct judge *j, const dgm_agent_card *c)
{
    char at[80];
    if (!c->interfaces.n)
        fault(j, "/supportedInterfaces", "there is none: nobody can reach this agent");
    for (size_t i = 0; i < c->interfaces.n; i++) {
        const dgm_agent_interface *f = &c->interfaces.at[i];
        bool is_grpc = dgm_str_eq_nocase(f->protocol_binding, DGM_STR("GRPC"));
        snprintf(at, sizeof at, "/supportedInterfaces/%zu/url", i);
        if (!is_grpc && !dgm_str_starts(f->url, DGM_STR("http://")) &&
            !dgm_str_starts(f->url, DGM_STR("https://")))
            fault(j, at, "'%.*s' is no absolute http(s) address", DGM_P(f->url));
        snprintf(at, sizeof at, "/supportedInterfaces/%zu/protocolBinding", i);
        need(j, at, f->protocol_binding);
        snprintf(at, sizeof at, "/supportedInterfaces/%zu/protocolVersion", i);
        if (!is_version(f->protocol_version))
            fault(j, at, "'%.*s' is no version like 1.0", DGM_P(f->protocol_version));
        for (size_t k = 0; k < i; k++) {
            const dgm_agent_interface *g = &c->interfaces.at[k];
            if (dgm_str_eq(f->url, g->url) && dgm_str_eq(f->tenant, g->tenant) &&
                dgm_str_eq_nocase(f->protocol_binding, g->protocol_binding) &&
                dgm_str_eq(f->protocol_version, g->protocol_version))
                fault(j, at, "the same as interface %zu", k);
        }
    }
}

static void judge_skills(struct judge *j, const dgm_agent_card *c)
{
    char at[80];
    for (size_t i = 0; i < c->skills.n; i++) {
        const dgm_agent_skill *s = &c->skills.at[i];
        const struct {
            const char *name;
            dgm_str text;
        } rows[] = {{"id", s->id}, {"name", s->name}, {"description", s->description}};
        for (size_t k = 0; k < 3; k++) {
            snprintf(at, sizeof at, "/skills/%zu/%s", i, rows[k].name);
            need(j, at, rows[k].text);
        }
        snprintf(at, sizeof at, "/skills/%zu/id", i);
        for (size_t k = 0; k < i; k++) {
            if (s->id.n && dgm_str_eq(s->id, c->skills.at[k].id))
                fault(j, at, "skill %zu has the same id", k);
        }
    }
}

static void judge_security(struct judge *j, const dgm_agent_card *c)
{
    for (size_t i = 0; i < c->security_requirements.n; i++) {
        const dgm_required_schemes *all = &c->security_requirements.at[i].schemes;
        for (size_t k = 0; k < all->n; k++) {
            bool known = false;
            for (size_t m = 0; m < c->security_schemes.n; m++)
                known = known || dgm_str_eq(all->at[k].name, c->security_schemes.at[m].name);
            if (!known)
                fault(j, "/securityRequirements", "'%.*s' is not among the security schemes",
                      DGM_P(all->at[k].name));
        }
    }
}

static int judge_card(const peer *p)
{
    struct judge j = {.url = p->card_url};
    const dgm_agent_card *c = p->card;
    need(&j, "/name", c->name);
    need(&j, "/description", c->description);
    need(&j, "/version", c->version);
    if (!dgm_json_get(p->card_json, DGM_STR("capabilities")))
        fault(&j, "/capabilities", "missing");
    if (!dgm_json_get(p->card_json, DGM_STR("skills")))
        fault(&j, "/skills", "missing; a list without elements would do");
    if (!c->default_input_modes.n)
        fault(&j, "/defaultInputModes", "missing or empty");
    if (!c->default_output_modes.n)
        fault(&j, "/defaultOutputModes", "missing or empty");
    judge_interfaces(&j, c);
    judge_skills(&j, c);
    judge_security(&j, c);
    if (!j.faults)
        printf("%s: a card of A2A %s without faults\n", p->card_url,
               dgm_a2a_card_is_03(p->card_json) ? "0.3" : "1.0");
    return j.faults ? DGM_CLI_FAILED : DGM_CLI_OK;
}

int dgm_client_card(const dgm_cli_line *line)
{
    peer p = {0};
    int status;
    if (line->n_args < 2)
        return dgm_cli_refuse(line, "get needs URL");
    if (!(status = peer_open_card(&p, line, line->args[1]))) {
        if (dgm_cli_get(line, "validate"))
            status = judge_card(&p);
        else if (!dgm_cli_get(line, "json"))
            print_card(p.card);
        else if (!show_json(DGM_OBJECT_CARD, p.card, true))
            status = DGM_CLI_FAILED;
    }
    peer_close(&p);
    return status;
}
