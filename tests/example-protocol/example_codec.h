/* example_codec.h - the format of the example protocol: see docs/internals/adding-a-protocol.md. */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_example;
