/*
 * lib/direct.h - where A2A and Chat Completions meet: complete messages, without a middle
 * (document 001), and the way back.
 *
 * To chat: text parts become `content`, `data.tool_calls` become `tool_calls`, every entry of
 * `data.tool_results` a tool message of its own; files become image_url, input_audio and file parts
 * of user messages, links in the text of assistant ones; other data becomes JSON text. JSON made into
 * text is always written with ", " and ": ".
 *
 * From chat: one message in, one message out. What A2A has no place for is kept in metadata, so that
 * the way back restores it. Keys of messages: `dragoman:role` (system, developer, function),
 * `dragoman:name`, `dragoman:reasoning_content`. Keys of parts: `dragoman:part` (the chat part that it
 * was, where it cannot be detected), `dragoman:detail`, `dragoman:file_id`. Each message made
 * gets `canonical_type`. What is lost in either direction is listed in dgm_direct_losses().
 *
 * Everything made lives in the arena or borrows from what it was made of.
 */
#pragma once

#include "wire/chat/chat.h"
#include "wire/codec.h"

/* What document 001's function returns. */
typedef struct dgm_direct_pair {
    dgm_chat_message *openai_message; /* user or assistant; NULL when there are only tool results */
    dgm_chat_messages tool_messages;  /* one per result, in order */
} dgm_direct_pair;

/*
 * trusted: believe the `dragoman:` keys of metadata. They can make a user's message a system message:
 * whoever takes messages from strangers either removes them or says false here.
 * An intermediate message (canonical_type TextMessageChunkEvent, ToolCallArgsEvent) gives nothing.
 * Fails with a pointer (below `at`) on malformed calls and results: /parts/0/data/tool_calls/1/name.
 */
dgm_code dgm_direct_to_chat(dgm_arena *a, const dgm_message *m, const dgm_at *at, bool trusted,
                            dgm_direct_pair *ret_pair, dgm_err *err);

/*
 * The same as a list in the order of a history: tool messages first, then the user's or agent's
 * (which goes first when it makes calls itself: results follow their calls).
 */
dgm_code dgm_direct_message_to_chat(dgm_arena *a, const dgm_message *m, const dgm_at *at,
                                    bool trusted, dgm_chat_messages *ret_messages, dgm_err *err);

/*
 * A task as a history: its history; artifacts that the final message does not say already, each an
 * assistant message; the status message, unless it is in the history (same id, or the same text at
 * its end) or only progress (submitted, working).
 */
dgm_code dgm_direct_task_to_chat(dgm_arena *a, const dgm_task *t, const dgm_at *at, bool trusted,
                                 dgm_chat_messages *ret_messages, dgm_err *err);

/*
 * What a task says, message by message, as above; an artifact comes as a message of the agent with its
 * id. A code other than DGM_OK stops it and is returned.
 */
typedef dgm_code (*dgm_on_message)(void *arg, const dgm_message *m, const dgm_at *at);
dgm_code dgm_direct_each_message(dgm_arena *a, const dgm_task *t, const dgm_at *at,
                                 dgm_on_message on_message, void *arg);

/*
 * Any object: messages, tasks, artifacts, and objects that hold one (send requests, responses, stream events). Objects
 * that document 000 calls N/A (status- and artifact-updates, internal events) become nothing; others (cards, push
 * configurations, ...) fail. Pointers of errors have the names of codec, the dialect of A2A that the frame was decoded by.
 * ret_is_list: false when it is a message, so that one result need not become an array.
 */
dgm_code dgm_direct_object_to_chat(dgm_arena *a, const dgm_frame *frame, const dgm_codec *codec,
                                   bool trusted, dgm_chat_messages *ret_messages, bool *ret_is_list,
                                   dgm_err *err);

/* Cannot fail. The message id is minted; contextId and taskId stay absent. */
void dgm_direct_from_chat(dgm_arena *a, const dgm_chat_message *m, dgm_mint *mint,
                          dgm_message *ret_message);

/* Rows for (an A2A format, "openai-chat") and back; 0 for every other pair. Writes up to max. */
size_t dgm_direct_losses(const char *from, const char *to, const dgm_loss **ret_losses, size_t max);
