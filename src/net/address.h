/*
 * net/address.h - which addresses a request may go to when its URL was not written by the operator.
 *
 * URLs that come from callers, models, cards or agents could name this machine or its private network. Their addresses are
 * checked after name resolution, on the very address that is connected to, so a name server cannot change its answer
 * between the check and the connection.
 */
#pragma once

#include "base/err.h"

#include <sys/socket.h>

/* A range of addresses: "10.0.0.0/8", "fd00::/8", or one address. */
typedef struct dgm_address_range {
    unsigned char bytes[16]; /* IPv4: the first four */
    unsigned bits;
    int family; /* AF_INET, AF_INET6 */
} dgm_address_range;

typedef struct dgm_address_ranges {
    const dgm_address_range *at;
    size_t n;
} dgm_address_ranges;

/* DGM_BAD_PARAMS: it is no range; bits behind the prefix must be zero. */
dgm_code dgm_address_parse_range(dgm_str text, dgm_address_range *ret_range, dgm_err *err);

/* NULL: the address may be connected to. Otherwise what it is, for a sentence: "a loopback address". Refused are addresses
 * that are not public, and IPv6 forms that contain an IPv4 address (IPv4-mapped, NAT64, 6to4, Teredo), unless they are in
 * `allowed`. An IPv4-mapped address is also looked for in `allowed` as the IPv4 address that it is. */
const char *dgm_address_refusal(const struct sockaddr *address, dgm_address_ranges allowed);

/* "127.0.0.1", "::1"; cut off when it does not fit (INET6_ADDRSTRLEN is enough). */
void dgm_address_text(const struct sockaddr *address, char *out, size_t size);
