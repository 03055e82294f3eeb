/* app/serve/fronts.c - the list. */
#include "app/serve/fronts.h"
#include "frontend/agui/agui_front.h"
#include "frontend/aisdk/aisdk_front.h"
#include "frontend/openai/openai_front.h"
#include "frontend/simple/simple_front.h"

const dgm_turn_front *const dgm_fronts[] = {&dgm_front_agui, &dgm_front_openai, &dgm_front_aisdk,
                                            &dgm_front_simple, NULL};
