/* wire/frames/frames_int.h - finding where one JSON value ends. */
#pragma once

#include "wire/frames/frames.h"

/*
 * Continues to scan a value that started with a bracket. Returns how many bytes belong to it; *ret_ended: the
 * value is complete. It ends with the bracket that closes the first one, or before a line end inside a string:
 * JSON has no line ends there, so the writer was interrupted, and waiting for a closing quote would
 * consume the next values. A backslash escapes the quote or backslash after it; brackets are counted
 * without their kind. All three functions return the same results.
 */
size_t dgm_frames_scan_fast(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
size_t dgm_frames_scan_portable(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
size_t dgm_frames_scan_plain(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);

/* The same in a top-level string, from behind its first quote on. */
size_t dgm_frames_scan_string(dgm_frames_scan *s, const char *p, size_t n, bool *ret_ended);
