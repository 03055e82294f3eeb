/* frontend/web/web_files.h - the files of web/, as the build puts them into the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef struct dgm_web_bytes {
    const unsigned char *bytes;
    size_t n;
} dgm_web_bytes;

typedef struct dgm_web_file {
    const char *name; /* "page-6Q3KZ2AB.js" */
    const char *type;
    bool has_hash; /* the name changes with the content */
    dgm_web_bytes plain, gzip;
} dgm_web_file;

extern const dgm_web_file dgm_web_files[]; /* name NULL after the last */
