/* wire/a2a/a2a_int.h - what the files of this folder share. */
#pragma once

#include "model/form.h"
#include "wire/a2a/a2a.h"

/* The formats' names; their addresses tag unknown members. 1.0's is dgm_form_name. */
extern const char dgm_a2a_03_name[], dgm_a2a_03_rest_name[];

/* a2a_card*.c: the agent card. */
extern const dgm_shape dgm_a2a_10_card, dgm_a2a_03_card, dgm_a2a_03_rest_card;
