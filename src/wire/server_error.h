/* wire/server_error.h - what the body of an answer with an error status holds, in any of the formats. */
#pragma once

#include "json/json.h"

/* The server's words about it; absent if the body has no words. They are in the arena. */
dgm_str dgm_server_error_text(dgm_arena *a, dgm_str body);
/* The same of a value that was read: {"error":{"message"}}, {"error":"text"}, {"message"}, {"detail":"text"},
 * {"detail":[{"msg"}]}, {"errorText"}. */
dgm_str dgm_server_error_in(const yyjson_val *v);
