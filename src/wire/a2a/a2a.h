/*
 * wire/a2a/a2a.h - A2A in its three JSON spellings.
 *
 * a2a-1.0       ProtoJSON of 1.0: JSON-RPC, REST, push bodies, cards
 * a2a-0.3       the kind-tagged dialect of 0.3's JSON-RPC
 * a2a-0.3-rest  ProtoJSON of 0.3, as its HTTP+JSON binding speaks it
 */
#pragma once

#include "wire/codec.h"

extern const dgm_codec dgm_codec_a2a_10, dgm_codec_a2a_03, dgm_codec_a2a_03_rest;
