/*
 * wire/agui/agui_codec.h - the codecs of AG-UI's dialects.
 *
 * ag-ui         the official wire, 1.0 and before
 * ag-ui-0       the same, written for older peers (before 1.0), which reject new events and members
 * ag-ui-simple  the simple dialect, of document 000
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_agui, dgm_codec_agui_old, dgm_codec_agui_simple;

/* What gets lost. */
extern const dgm_loss_rows dgm_agui_lost_reading, dgm_agui_old_lost_writing,
    dgm_agui_simple_lost_reading, dgm_agui_simple_lost_writing, dgm_agui_proto_lost_writing;
