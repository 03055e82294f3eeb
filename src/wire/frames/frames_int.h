/* wire/frames/frames_int.h - finding where one JSON value ends. */
#pragma once

#include "wire/frames/frames.h"

/*
 * Reads on in a value that began with a bracket. Returns how many bytes belong to it; *ret_ended
 * tells whether that is its end. It ends with the bracket that closes the first one, or before a
 * line end inside a string: no JSON text goes on there, so whoever wrote it was cut off, and waiting
 * for a closing quote would swallow what follows. A backslash takes the quote or backslash behind it
 * with it; brackets are counted without looking at their kind. All three give the same results.
 */
size_t dgm_frames_scan_fast(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
size_t dgm_frames_scan_portable(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
size_t dgm_frames_scan_plain(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);

/* The same in a top-level string, from behind its first quote on. */
size_t dgm_frames_scan_string(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
