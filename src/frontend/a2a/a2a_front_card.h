/*
 * frontend/a2a/a2a_front_card.h - an agent's card, in the words of either version.
 *
 *   A2A-Version: 1.0, or an unknown one     the card of 1.0 and nothing else
 *   none, or 0.3                            a hybrid: with the members of 0.3 as well
 *
 * It is made once, and again when the agent's program sends another description. Only the addresses may depend on the request.
 */
#pragma once

#include "net/http.h"

#include <dragoman/model.h>

typedef struct dgm_a2a_card dgm_a2a_card;

typedef struct dgm_a2a_card_options {
    /* Objects with members of a 1.0 card, checked; the first object that has a member is used. NULL: no object. They must be
     * valid as long as the card. */
    const dgm_json *members[2];
    /* Returns members that may change, JSON text in the arena; absent: no members. `members` have priority. From any thread. May
     * be NULL. */
    dgm_str (*describe)(void *user, dgm_str agent, dgm_arena *a);
    void *describe_user;
    dgm_str agent;        /* its id */
    const dgm_json *type; /* the last ones, of the agent's type */
    dgm_str path;         /* of the agent below the server's address: "", "/agents/x" */
    dgm_str public_url;   /* the server's address; empty: as the request has it */
    bool v10, v03;        /* the supported versions */
    bool headerless_10;   /* callers who name no version get the card of 1.0 alone */
    bool streaming;
    bool no_requirements; /* securityRequirements that follow from tokens are left out */
    bool extended;        /* there is another card for those we know */
    bool bearer;          /* tokens are asked for */
    dgm_strs key_headers; /* headers in which keys are */
    dgm_agent_extensions extensions;
    int64_t max_age_s;
    int64_t made_s; /* Unix time */
} dgm_a2a_card_options;

/* What the options point to is copied. A card that A2A would not take is an error. */
dgm_code dgm_a2a_card_new(const dgm_a2a_card_options *o, dgm_a2a_card **ret_card, dgm_err *err);
void dgm_a2a_card_free(dgm_a2a_card *c); /* NULL is fine */

/* The same for every caller; without its interfaces, and without what may change. */
const dgm_agent_card *dgm_a2a_card_of(const dgm_a2a_card *c);
/* As this caller gets it; in the arena. */
const dgm_agent_card *dgm_a2a_card_for(dgm_a2a_card *c, dgm_arena *a, const dgm_http_request *r);
