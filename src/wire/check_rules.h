/*
 * wire/check_rules.h - short names for tables of rules (json/check.h). Only the *_check.c files of OpenAI's formats include it.
 */
#pragma once

#include "base/limits.h"
#include "json/check.h"

#define RULE DGM_JSON_RULE
#define END DGM_JSON_RULES_END
#define TEXT DGM_JSON_TEXT
#define INT DGM_JSON_INT
#define NUMBER DGM_JSON_NUMBER
#define BOOL DGM_JSON_BOOL
#define OBJECT DGM_JSON_OBJECT
#define LIST DGM_JSON_LIST

/* How many entries a list may have: a server does work per entry. Values that pass through unread (schemas, arguments)
 * have no number of their own: object_bytes limits them. */
#define PARTS .max = DGM_MAX_REQUEST_PARTS, .limit = "request_parts"
#define TOOLS .max = DGM_MAX_REQUEST_TOOLS, .limit = "request_tools"
#define WORDS .max = DGM_MAX_REQUEST_WORDS, .limit = "request_words"
#define MESSAGES .max = DGM_MAX_REQUEST_MESSAGES, .limit = "request_messages"
