/* lib/direct_int.h - what the files of the direct path share: marks in metadata, chat's kinds of files. What a
 * message says, whichever the path, is canon/message_content.h. */
#pragma once

#include "base/list.h"
#include "canon/media.h"
#include "canon/message_content.h"
#include "lib/direct.h"
#include "model/names.h"

/*
 * What A2A has no place for, as metadata. Values of DGM_META_PART beside the names of chat parts:
 * "message_refusal" a message's own `refusal`, "other" a chat part of unknown type as it was,
 * "function_call" the legacy way to call, "content" results whose output is a list of chat parts.
 */
#define DIRECT_CANONICAL_TYPE "canonical_type"

/* direct.c: the kind of chat part that a part becomes without marks. TEXT: its text, JSON text, or a link. */
dgm_chat_part_kind dgm_direct_part_kind(const dgm_part *p, dgm_role role);
