/* backend/http/http_config.c - the settings of an http agent. */
#include "backend/http/http_int.h"
#include "base/limits.h"
#include "wire/formats.h"

#include <stdlib.h>

#define FORMATS "ag-ui|ag-ui-0|openai-chat|openai-responses|ai-sdk|a2a-1.0|a2a-0.3"

#define AT(member) offsetof(struct http_agent, member)

const dgm_setting dgm_http_settings[] = {
    DGM_REMOTE_SETTINGS(struct http_agent, remote),
    {"format", DGM_SETTING_CHOICE, AT(format), .choices = FORMATS, .required = true,
     .about = "the protocol that it speaks"},
    {"model", DGM_SETTING_STR, AT(model), .def = "dragoman",
     .about = "the `model` of requests in OpenAI's formats"},
    {"memory", DGM_SETTING_CHOICE, AT(memory), .choices = "dragoman|service", .def = "dragoman",
     .about = "`dragoman`: every request has the conversation so far; `service`: it has only the "
              "new message and the id of the conversation, or of the response before"},
    {0},
};
#undef AT

/* The name of the format at this index of FORMATS. */
static const char *format_name(dgm_arena *a, int index)
{
    const char *from = FORMATS;
    while (index-- > 0)
        from = strchr(from, '|') + 1;
    return dgm_arena_dup(a, (dgm_str){from, strcspn(from, "|")}).p;
}

dgm_code dgm_http_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                       dgm_err *err)
{
    dgm_arena *a = dgm_arena_new();
    struct http_agent *x = dgm_new(a, struct http_agent);
    dgm_code rc;
    *x = (struct http_agent){.remote = DGM_REMOTE_DEFAULTS, .arena = a};
    if ((rc = dgm_settings_read(config, dgm_http_settings, x, err)) ||
        (rc = dgm_remote_open(&x->remote, options, a, err))) {
        dgm_arena_free(a);
        return rc;
    }
    x->model = dgm_arena_dup(a, x->model);
    x->codec = dgm_codec_by_name(format_name(a, x->format), err);
    *ret_agent = x;
    return DGM_OK;
}

void dgm_http_close(void *agent)
{
    dgm_arena_free(((struct http_agent *)agent)->arena);
}
