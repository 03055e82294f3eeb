/*
 * frontend/openai/openai_session.h - which conversation a request goes on with, where only its caller can say.
 *
 * What is named is used as it is, as the A2A context of this caller and agent: nobody else's of the same name is
 * reached by it.
 */
#pragma once

#include "frontend/turn/turn.h"

/* The first of: the headers X-A2A-Context-Id, X-Conversation-ID, X-OpenWebUI-Chat-Id, X-Session-Id, any
 * X-...-Session-Id; metadata.a2a_context_id, metadata.conversation_id. Empty: none of them. */
dgm_code openai_session(const dgm_http_request *r, const yyjson_val *metadata, dgm_str *ret_key,
                        dgm_err *err);
/* A member of metadata that is the agent's to see: none that says where it goes, and names with our prefixes are
 * ours to give. */
bool openai_is_for_agent(dgm_str name);
