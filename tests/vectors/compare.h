/*
 * vectors/compare.h - are two JSON texts the same value, and where do they part?
 *
 * Members in any order, numbers by their text (1.0 is not 1), arrays in order, doubled keys by
 * their turn. With holes, the wanted string "<uuid>" fits any UUID, and "<uuid:x>" fits one that is
 * the same in every "<uuid:x>" and differs from every other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>

/* got or want is NULL where a member is missing on that side. */
typedef void compare_on_difference(void *ctx, const char *pointer, yyjson_val *got,
                                   yyjson_val *want);

typedef struct compare {
    compare_on_difference *on_difference;
    void *ctx;
    bool holes;      /* "<uuid>" in wanted values */
    bool star_index; /* pointers say * for an index in an array */
    size_t n_differences;
    char names[32][64], ids[32][40]; /* of "<uuid:x>" */
    size_t n_names;
} compare;

void compare_values(compare *c, yyjson_val *got, yyjson_val *want);

/* As our output has to be: strict, one value, numbers kept as text. NULL: *ret_fault says why. */
yyjson_doc *compare_read(const char *text, size_t n, const char **ret_fault);

/* Compact text of a value, cut to fit; "(nothing)" for NULL. */
void compare_show(yyjson_val *v, char *out, size_t size);
