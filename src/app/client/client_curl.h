/*
 * app/client/client_curl.h - libcurl, loaded when it is needed.
 *
 * libcurl loads about thirty other libraries. The server and the converter do not need them, and would
 * start three times slower with them, so only the commands that call other servers open it.
 */
#pragma once

#include "base/err.h"

#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init)                                                                                 \
    X(global_cleanup)                                                                              \
    X(easy_init)                                                                                   \
    X(easy_cleanup)                                                                                \
    X(easy_reset)                                                                                  \
    X(easy_setopt)                                                                                 \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_cleanup)                                                                               \
    X(multi_add_handle)                                                                            \
    X(multi_remove_handle)                                                                         \
    X(multi_perform)                                                                               \
    X(multi_poll)                                                                                  \
    X(multi_info_read)

struct curl_library {
#define X(name) __typeof__(&curl_##name) name;
    CURL_FUNCTIONS(X)
#undef X
};

/* NULL: err says why. Once open it stays. */
const struct curl_library *dgm_client_curl_open(dgm_err *err);
