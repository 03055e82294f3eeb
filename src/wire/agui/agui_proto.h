/*
 * wire/agui/agui_proto.h - AG-UI's binary events: application/vnd.ag-ui.event+proto.
 *
 * A body is a row of frames: a length in four bytes, the highest first, then one protobuf message `Event`. What
 * is in it is what the JSON has, member by member (agui_proto_schema.c), so both ways lead through the JSON:
 * reading a frame gives the text that an ag-ui decoder takes.
 *
 * Numbers in open JSON are doubles there. Members that the protocol does not know have no place.
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

typedef struct dgm_agui_proto_frames {
    dgm_buf hold; /* of a frame that is not whole yet */
} dgm_agui_proto_frames;

void dgm_agui_proto_init(dgm_agui_proto_frames *f);
void dgm_agui_proto_done(dgm_agui_proto_frames *f);
/* The events of all frames that are whole by now, a line each, behind what lines has. */
dgm_code dgm_agui_proto_feed(dgm_agui_proto_frames *f, dgm_str bytes, dgm_buf *lines, dgm_err *err);
dgm_code dgm_agui_proto_end(const dgm_agui_proto_frames *f, dgm_err *err); /* was that all? */
/* By its first byte: no text begins so, and no frame is so long that it would begin otherwise. */
static inline bool dgm_agui_proto_begins(char first)
{
    return first == 0;
}

/* ---- the codec ------------------------------------------------------------------------------------------ */

/* Its decoder takes values as dgm_agui_proto_read gives them, its encoder gives frames with their length. */
extern const dgm_codec dgm_codec_agui_proto;
