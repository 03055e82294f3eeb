/* fuzz.h - what a fuzz target defines. libFuzzer calls it with invented bytes; replay.c with the corpus. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
