/*
 * wire/a2a/a2a_card.h - agent cards: telling the versions apart, and what conversion loses.
 *
 * The shapes themselves are declared in a2a_int.h. Each reads every known form of a card: what a
 * peer publishes at the well-known address is not known before it was read.
 */
#pragma once

#include "json/json.h"

#include <dragoman/convert.h>

/* Has it members that only cards have? Also true for cards with faults, so that errors name them. */
bool dgm_a2a_looks_like_card(const yyjson_val *v);

/* A card of 0.3, in either dialect. A hybrid (with a non-empty supportedInterfaces) is one of 1.0. */
bool dgm_a2a_card_is_03(const yyjson_val *v);

/* A card of 0.3 that shows marks of ProtoJSON: schemes as wrapper members, security[].schemes. */
bool dgm_a2a_card_is_03_rest(const yyjson_val *v);

/* What a card loses on the way. Pointers name members of the format it comes from. */
extern const dgm_loss dgm_a2a_card_losses_10_to_03[], dgm_a2a_card_losses_03_to_10[],
    dgm_a2a_card_losses_10_to_03_rest[], dgm_a2a_card_losses_03_rest_to_10[],
    dgm_a2a_card_losses_03_to_03_rest[], dgm_a2a_card_losses_03_rest_to_03[];
extern const size_t dgm_a2a_n_card_losses_10_to_03, dgm_a2a_n_card_losses_03_to_10,
    dgm_a2a_n_card_losses_10_to_03_rest, dgm_a2a_n_card_losses_03_rest_to_10,
    dgm_a2a_n_card_losses_03_to_03_rest, dgm_a2a_n_card_losses_03_rest_to_03;
