/*
 * wire/agui/agui_proto.h - AG-UI's binary events: application/vnd.ag-ui.event+proto.
 *
 * A body is a list of frames: a length in four bytes, big endian, then one protobuf message `Event`. It has the same
 * members as the JSON (agui_proto_schema.c), so both directions go through the JSON: reading a frame returns the text
 * that the ag-ui decoder reads.
 *
 * Numbers in open JSON are doubles in protobuf. Unknown members cannot be written.
 */
#pragma once

#include "wire/codec.h"

#define DGM_AGUI_PROTO_TYPE "application/vnd.ag-ui.event+proto"
#define DGM_AGUI_PROTO_HEAD 4 /* bytes that a frame's length takes */

/* The length in the head of a frame. */
size_t dgm_agui_proto_length(const char head[DGM_AGUI_PROTO_HEAD]);

/* One message without its length, as JSON behind what out has. *ret_known false: an event of a later
 * protocol, nothing is written. */
dgm_code dgm_agui_proto_read(dgm_str message, dgm_buf *out, bool *ret_known, dgm_err *err);

/* An event as JSON to a frame, its length included; false: of a type that it does not have. */
bool dgm_agui_proto_write(dgm_buf *out, const yyjson_val *event);

/* ---- a body --------------------------------------------------------------------------------------------- */

/* The events of all frames that are complete by now, a line each, behind what lines has. hold: of a frame that is not
 * complete yet. A body is detected by its first byte: no text starts with 0, and every frame does, because its length is
 * limited. */
dgm_code dgm_agui_proto_feed(dgm_buf *hold, dgm_str bytes, dgm_buf *lines, dgm_err *err);

/* ---- the codec ------------------------------------------------------------------------------------------ */

/* Its decoder reads the values of dgm_agui_proto_read(), its encoder writes frames with their length. */
extern const dgm_codec dgm_codec_agui_proto;
