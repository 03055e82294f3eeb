/* frontend/a2a/a2a_front_card_int.h - between making a card and telling it. */
#pragma once

#include "frontend/a2a/a2a_front_card.h"
#include "wire/a2a/a2a.h"

struct dgm_a2a_card {
    dgm_a2a_card_options o; /* its texts are in the arena */
    dgm_agent_card card;    /* without interfaces */
    dgm_arena *arena;
};

/* In the arena. */
dgm_str card_text(dgm_arena *a, const dgm_codec *codec, const dgm_agent_card *card);
dgm_str card_hybrid(dgm_arena *a, const dgm_agent_card *card);
