/* frontend/web/web_files.h - the files of web/, as the build puts them into the program. */
#pragma once

#include <stddef.h>

typedef struct dgm_web_file {
    const char *name; /* "page.js" */
    const char *type;
    const unsigned char *bytes;
    size_t n;
} dgm_web_file;

extern const dgm_web_file dgm_web_files[]; /* name NULL after the last */
