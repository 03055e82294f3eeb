/*
 * frontend/openai/openai_session.h - which conversation a request goes on with, where only its caller can say.
 *
 * What is named is used as it is, as the A2A context of this caller and agent: another caller's context of the same name is not
 * reached by it.
 */
#pragma once

#include "frontend/turn/turn.h"
#include "wire/output_form.h"

/* The first of: the headers X-A2A-Context-Id, X-Conversation-ID, X-OpenWebUI-Chat-Id, X-Session-Id, any
 * X-...-Session-Id; metadata.a2a_context_id, metadata.conversation_id. Empty: no key. */
dgm_code dgm_openai_session(const dgm_http_request *r, const yyjson_val *metadata, dgm_str *ret_key,
                            dgm_err *err);
/* Metadata of the request for the agent: that of the caller, without members that say where the request goes and without
 * names with our prefixes; tool_choice; the format of JSON output; parameters of models. NULL: none. marks: members that our own answers have
 * (a2a_...) are left out, too. */
const dgm_json *dgm_openai_metadata(dgm_arena *a, const yyjson_val *body,
                                    const dgm_output_form *form, bool marks);
