/*
 * wire/a2a/a2a_peer.h - the side of A2A that calls agents: where a card is, which of its interfaces to use, how an operation
 * is requested there, and how its answers are read.
 *
 * Servers mix the versions: 1.0 answers with `kind` and with parts of 0.3, wrapped results in 0.3. Answers are therefore read
 * by what they contain, not by the version that was chosen.
 */
#pragma once

#include "wire/a2a/a2a.h"
#include "json/same_text.h"

/* An interface of an agent. */
typedef struct dgm_a2a_peer {
    dgm_str url, tenant;
    bool is_rest, is_v1;
    const dgm_codec *codec; /* for requests */
} dgm_a2a_peer;

/* ---- the card --------------------------------------------------------------------------------------------------- */

/* The addresses at which the card of the agent at `url` may be, the best first; NULL: there are not that many. 0: below the
 * URL, or the URL itself if it names a JSON file; 1: that of the host, unless the path names one agent of several. */
const char *dgm_a2a_card_url(dgm_arena *a, const char *url, size_t index);

/* Reads a card of 1.0, of 0.3 or of both. The text is copied; ret_json may be NULL. */
dgm_code dgm_a2a_read_card(dgm_arena *a, dgm_str text, const yyjson_val **ret_json,
                           const dgm_agent_card **ret_card, dgm_err *err);

typedef enum dgm_a2a_version {
    DGM_A2A_ANY_VERSION,
    DGM_A2A_VERSION_10,
    DGM_A2A_VERSION_03
} dgm_a2a_version;
typedef enum dgm_a2a_binding { DGM_A2A_ANY_BINDING, DGM_A2A_JSONRPC, DGM_A2A_REST } dgm_a2a_binding;

/* The interfaces of the card that we support, in its order; of two at one address only the newer, unless the version is chosen.
 * At most `max` are written; returns how many. */
size_t dgm_a2a_interfaces(const dgm_agent_card *card, dgm_a2a_version version,
                          dgm_a2a_binding binding, dgm_a2a_peer *peers, size_t max);
/* The first of these interfaces. False if the card has none. */
bool dgm_a2a_choose_interface(const dgm_agent_card *card, dgm_a2a_version version,
                              dgm_a2a_binding binding, dgm_a2a_peer *ret_peer);
dgm_a2a_peer dgm_a2a_peer_at(dgm_str url, dgm_str tenant, bool is_rest, bool is_v1);
/* "JSONRPC 1.0, GRPC 1.0": for error messages. */
void dgm_a2a_list_interfaces(const dgm_agent_card *card, dgm_buf *to);

/* ---- requests ----------------------------------------------------------------------------------------------------- */

/* The address of an operation; returns its HTTP method. params: the struct that DGM_METHODS names. */
const char *dgm_a2a_put_route(const dgm_a2a_peer *p, dgm_method method, const void *params,
                              dgm_buf *url);
/* The body of a POST. */
dgm_code dgm_a2a_put_body(const dgm_a2a_peer *p, dgm_method method, void *params, dgm_arena *a,
                          dgm_buf *body, dgm_err *err);
/* What `tenant` of the params is: REST has it in the path. */
static inline dgm_str dgm_a2a_tenant_of(const dgm_a2a_peer *p)
{
    return p->is_rest ? (dgm_str){0} : p->tenant;
}

/* ---- answers ------------------------------------------------------------------------------------------------------ */

/* The error in the body of an HTTP response; NULL: it has none that we can read. In the arena. */
dgm_peer_error *dgm_a2a_error_of(dgm_arena *a, const dgm_codec *codec, dgm_str body);

typedef struct dgm_a2a_answer {
    const dgm_peer_error *error; /* NULL: it is an event */
    dgm_event event;             /* a task, a message or an update */
    dgm_str task_id, context_id; /* as the answer has them; empty: it has none */
} dgm_a2a_answer;

/* For the answers of one stream, one after the other. Most of them differ from the one before only in the text of a chunk: such
 * a one is not parsed. */
typedef struct dgm_a2a_answers {
    dgm_arena
        *arena; /* of the last one that was parsed, and for its reader until the next one is */
    dgm_same_text same; /* its bytes, and its text in them */
    dgm_a2a_answer answer;
} dgm_a2a_answers;

void dgm_a2a_answers_init(dgm_a2a_answers *s);
void dgm_a2a_answers_done(dgm_a2a_answers *s);
/* As dgm_a2a_read_answer. The answer is valid until the next call, and as long as the text. */
dgm_code dgm_a2a_answers_read(dgm_a2a_answers *s, const dgm_codec *codec, dgm_mint *mint,
                              dgm_str text, const dgm_a2a_answer **ret_answer, dgm_err *err);

/* Reads what an agent answers to a message, a subscription, GetTask and CancelTask, in any version, with an envelope or
 * without. The text must live as long as the arena. Ids that are missing are empty, or those of `mint`. */
dgm_code dgm_a2a_read_answer(dgm_arena *a, const dgm_codec *codec, dgm_mint *mint, dgm_str text,
                             dgm_a2a_answer *ret_answer, dgm_err *err);
