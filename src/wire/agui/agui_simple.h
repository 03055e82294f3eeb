/*
 * wire/agui/agui_simple.h - the simple dialect of AG-UI events, `ag-ui-simple` (document 000).
 *
 * The three event bodies in the document are written exactly as shown there; the other types have the official camelCase
 * members. No official client understands the dialect: it is used only where it is named.
 */
#pragma once

#include "canon/simple.h"
#include "json/shape.h"

extern const char dgm_agui_simple_name[]; /* "ag-ui-simple" */

dgm_code dgm_agui_simple_read(dgm_reader *r, yyjson_val *v, const dgm_at *at,
                              dgm_simple_event *ret_event);
void dgm_agui_simple_write(dgm_writer *w, const dgm_simple_event *event);
bool dgm_agui_simple_flatten(dgm_flat *flat,
                             const dgm_simple_event *event); /* dgm_shape_flatten() */

/* How likely is it that v is ours? 0: no, 2: shows its marks. */
int dgm_agui_simple_recognise(const yyjson_val *v);
