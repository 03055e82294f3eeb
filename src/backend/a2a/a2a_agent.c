/*
 * backend/a2a/a2a_agent.c - agents that are served by another A2A server: settings and the type.
 */
#include "backend/a2a/a2a_int.h"

#include <stdlib.h>

static const char card[] =
    "{\"name\":\"Remote agent\",\"description\":\"An agent of another A2A "
    "server.\",\"skills\":[{\"id\":\"answer\",\"name\":\"Answer\",\"description\":\"Answers what "
    "is written to it.\",\"tags\":[\"a2a\"]}]}";

#define AT(member) offsetof(struct a2a_settings, member)

static const dgm_setting a2a_settings[] = {
    DGM_REMOTE_SETTINGS(struct a2a_settings, remote),
    {"protocol", DGM_SETTING_CHOICE, AT(protocol), .choices = "auto|a2a-1.0|a2a-0.3", .def = "auto",
     .about = "the version to use; `auto`: 1.0 if the card lists it, else 0.3"},
    {"binding", DGM_SETTING_CHOICE, AT(binding), .choices = "auto|jsonrpc|rest", .def = "auto",
     .about = "`jsonrpc` or `rest` (HTTP+JSON); `auto`: what the card lists first"},
    {"card", DGM_SETTING_CHOICE, AT(card), .choices = "fetch|none", .def = "fetch",
     .about = "`none`: there is no agent card, `url` is the address of the interface itself"},
    {"extensions", DGM_SETTING_STR, AT(extensions), .def = "",
     .about = "URIs of extensions to activate, separated by commas (header `A2A-Extensions`)"},
    {"resend", DGM_SETTING_CHOICE, AT(resend), .choices = "false|true", .def = "false",
     .about = "`true`: the agent recognises a `messageId` that it has seen, so a message may be "
              "sent again when it is not known whether it arrived"},
    {"reconnect_timeout", DGM_SETTING_NUMBER, AT(reconnect_timeout), .max = 86400, .def = "60",
     .about = "seconds for which a lost connection to a running task is tried again"},
    {0},
};
#undef AT

static void a2a_close(void *agent)
{
    struct a2a_agent *x = agent;
    dgm_a2a_card_unref(x->card);
    pthread_mutex_destroy(&x->lock);
    dgm_arena_free(x->arena);
}

static dgm_code a2a_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                         dgm_err *err)
{
    struct a2a_settings s = {.remote = DGM_REMOTE_DEFAULTS, .reconnect_timeout = 60};
    dgm_code rc = dgm_settings_read(config, a2a_settings, &s, err);
    if (rc)
        return rc;
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    struct a2a_agent *x = dgm_new(a, struct a2a_agent);
    x->arena = a;
    x->set = s;
    x->set.extensions = dgm_arena_dup(a, s.extensions);
    x->has_own_header = s.remote.token_header.n;
    x->answer_in_status = options && options->answer_in_status;
    if ((rc = dgm_remote_open(&x->set.remote, options, a, err)))
        return rc;
    if (x->set.remote.has_token)
        x->token = dgm_arena_dup(a, dgm_str_from(getenv(x->set.remote.token_env.p)));
    pthread_mutex_init(&x->lock, NULL);
    (void)dgm_take(a); /* x lives in it */
    *ret_agent = x;
    return DGM_OK;
}

static const dgm_inner inner = {
    .open = a2a_open,
    .close = a2a_close,
    .start = dgm_a2a_start,
    .cancel = dgm_a2a_cancel,
    .lacks_final_text = true,
};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_a2a = {
    .type = "a2a",
    .settings = a2a_settings,
    .about = "an agent of another server that speaks A2A 1.0 or 0.3",
    .can_resume = true,
    .cancels_waiting = true,
    .foreign = true,
    .reply = DGM_REPLY_TASK,
    .card = card,
    DGM_SHAPED(open_shaped),
};
