/* lib/api_int.h - the inside of a dgm_document: objects and the memory that they are in. */
#pragma once

#include "base/arena.h"
#include "wire/codec.h"

#include <dragoman/document.h>

struct dgm_document {
    dgm_arena *arena;
    dgm_frame *frames; /* of A2A */
    dgm_agui_event **agui;
    size_t n; /* of the one list that is used */
    bool is_agui;
    bool is_built; /* by the caller: not decoded, so it may be wrong */
};

DGM_DEFINE_AUTO(dgm_document, dgm_document_free)
DGM_DEFINE_AUTO(dgm_converter, dgm_converter_free)

/* api_agui.c: an event as the JSON object that AG-UI has for it, and back. */
dgm_code dgm_agui_event_write(dgm_buf *out, const dgm_agui_event *event, dgm_err *err);
dgm_code dgm_agui_event_read(dgm_arena *a, const yyjson_val *v, dgm_agui_event *ret_event,
                             dgm_err *err);
