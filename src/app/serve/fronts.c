/* app/serve/fronts.c - the list. */
#include "app/serve/fronts.h"

const dgm_turn_front *const dgm_fronts[] = {NULL};
