/*
 * model/history.h - what the messages of a Task's history say together.
 */
#pragma once

#include <dragoman/model.h>

/*
 * Is the text the same as that of the agent's last messages, separated by blank lines? A `completed`
 * status repeats the texts of its turn in this form, and these are in the history one by one. Messages
 * without text (calls, results) may be between them, and messages that the user sent while the agent worked. If the last
 * message is the user's, the text is a new one.
 */
bool dgm_history_ends_with(const dgm_messages *history, dgm_str text);
