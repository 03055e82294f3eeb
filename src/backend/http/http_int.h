/* backend/http/http_int.h - what the files of the type http share. */
#pragma once

#include "backend/remote/remote.h"
#include "wire/service.h"

/* Who stores the conversation. */
enum http_memory { HTTP_MEMORY_DRAGOMAN, HTTP_MEMORY_SERVICE };

struct http_agent {
    dgm_remote remote;
    int format, memory;
    dgm_str model;
    const dgm_codec *codec;
    dgm_arena *arena;
};

extern const dgm_setting dgm_http_settings[];

dgm_code dgm_http_open(const dgm_json *config, const dgm_agent_options *options, void **ret_agent,
                       dgm_err *err);
void dgm_http_close(void *agent);
