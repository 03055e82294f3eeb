/*
 * app/serve/logger.h - lines for people or for programs, on standard error.
 *
 * A line is built by the thread that logs it and written by a thread of its own, so that a blocked
 * terminal blocks no other thread. Lines that do not fit meanwhile are counted and dropped. Never a secret: the log
 * of a request has its method, path, status, sizes and ids.
 */
#pragma once

#include "config/config.h"

typedef struct dgm_logger dgm_logger;

dgm_logger *dgm_logger_new(int fd, dgm_config_log_level level, dgm_config_log_format format);
/* Writes what waits, for 2 s at most. NULL is fine. */
void dgm_logger_free(dgm_logger *l);
void dgm_logger_set(dgm_logger *l, dgm_config_log_level level, dgm_config_log_format format);
bool dgm_logger_wants(const dgm_logger *l, dgm_config_log_level level);

typedef struct dgm_log_field {
    const char *name;
    dgm_str text;  /* if not absent; an empty text leaves the field out */
    double number; /* else this */
} dgm_log_field;

/* What happened, in few words and always the same ones; what it was about, in fields. From any thread. */
void dgm_logger_say(dgm_logger *l, dgm_config_log_level level, const char *what,
                    const dgm_log_field *fields, size_t n);
#define dgm_logger_says(l, level, what, ...)                                                       \
    dgm_logger_say((l), (level), (what), (const dgm_log_field[]){__VA_ARGS__},                     \
                   sizeof((const dgm_log_field[]){__VA_ARGS__}) / sizeof(dgm_log_field))
