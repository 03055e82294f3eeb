/* wire/agui/agui_int.h - declarations that the files of this folder share. */
#pragma once

#include "wire/agui/agui.h"

/* An optional member: absent is absent, empty is written. */
#define OPT DGM_PRESENCE

#define DGM_AGUI_SHAPE(T, what_, fields_)                                                          \
    {                                                                                              \
        .what = (what_), .size = sizeof(T), DGM_FIELDS(fields_), .extra_at = offsetof(T, extra),   \
        .tag_at = DGM_NOWHERE, .proto = true                                                       \
    }

extern const dgm_shape dgm_agui_message, dgm_agui_input, dgm_agui_usage;
extern const dgm_enum_names dgm_agui_roles;
extern const dgm_shape *const dgm_agui_event_shapes[DGM_N_CANON_KINDS]; /* by kind */

/* A whole number within 2^53; null is absent. */
dgm_code dgm_agui_read_long(dgm_reader *r, yyjson_val *v, const dgm_at *at, dgm_opt_long *ret);
/* Rows: {DGM_KEY(..., CUSTOM, 0), .at = offsetof(dgm_opt_long), .of = {.custom = ...}} */
void dgm_agui_write_long(dgm_writer *w, const dgm_field *f, const void *object);

dgm_code dgm_agui_read_content(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_content *ret);
void dgm_agui_put_content(dgm_writer *w, const dgm_canon_content *c);

dgm_code dgm_agui_read_messages(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                                dgm_canon_messages *ret);
void dgm_agui_put_messages(dgm_writer *w, const dgm_canon_messages *m);

dgm_code dgm_agui_read_outcome(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                               dgm_canon_outcome *ret);
void dgm_agui_put_outcome(dgm_writer *w, const dgm_canon_outcome *o);

/* For older peers (before 1.0): a copy without the members that they reject. */
void dgm_agui_age_messages(dgm_arena *a, dgm_canon_messages *list);

/* Is it one of these names? An unknown name is not an error. */
bool dgm_agui_is_name(const dgm_enum_names *names, dgm_str s);
/* An array that keeps to the limit? */
dgm_code dgm_agui_list_room(dgm_reader *r, yyjson_val *v, const dgm_at *at);

/* null counts as absent, except where it is a value. */
static inline void dgm_agui_drop_null(const dgm_json **v)
{
    if (*v && yyjson_is_null((yyjson_val *)(uintptr_t)*v))
        *v = NULL;
}
