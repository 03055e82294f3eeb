/* example_front.h - a protocol with one operation: see docs/internals/adding-a-protocol.md. */
#pragma once

#include "frontend/frontend.h"

extern const dgm_frontend dgm_front_example;
