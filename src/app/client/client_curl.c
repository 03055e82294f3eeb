/* app/client/client_curl.c - libcurl by dlopen. */
#include "app/client/client_curl.h"

#include <dlfcn.h>

static const struct {
    const char *symbol;
    size_t at;
} functions[] = {
#define X(name) {"curl_" #name, offsetof(struct curl_library, name)},
    CURL_FUNCTIONS(X)
#undef X
};

const struct curl_library *dgm_client_curl_open(dgm_err *err)
{
    static struct curl_library library;
    static void *handle;
    if (handle)
        return &library;
    if (!(handle = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL))) {
        dgm_fail(err, DGM_UNAVAILABLE, NULL, "%s: install it (Debian: libcurl4)", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(handle, functions[i].symbol);
        if (!found) {
            dgm_fail(err, DGM_UNAVAILABLE, NULL, "libcurl.so.4 is too old: it has no %s",
                     functions[i].symbol);
            return NULL;
        }
        memcpy((char *)&library + functions[i].at, &found, sizeof found);
    }
    return &library;
}
