/* model/record_int.h - what reads records. */
#pragma once

#include "model/record.h"

/* A piece of plain text, as most records are; false: it is something else, or it is damaged. */
bool dgm_record_chunk(dgm_str bytes, dgm_arena *a, dgm_event *ret_event);
