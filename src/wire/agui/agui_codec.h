/*
 * wire/agui/agui_codec.h - AG-UI's two spellings as codecs.
 *
 * ag-ui         the official wire, 1.0 and before
 * ag-ui-simple  document 000's dialect
 */
#pragma once

#include "wire/canon_codec.h"

extern const dgm_canon_codec dgm_codec_agui, dgm_codec_agui_simple;
