/* net/address.c - see address.h. The ranges are those of IANA's special-purpose address registries. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

struct special {
    const char *range, *what;
};

static const struct special special_v4[] = {
    {"0.0.0.0/8", "an address of this machine"},
    {"10.0.0.0/8", "a private address"},
    {"100.64.0.0/10", "a shared address (carrier network)"},
    {"127.0.0.0/8", "a loopback address"},
    {"169.254.0.0/16", "a link-local address"},
    {"172.16.0.0/12", "a private address"},
    {"192.0.0.0/24", "a reserved address"},
    {"192.0.2.0/24", "an address for documentation"},
    {"192.88.99.0/24", "a reserved address"},
    {"192.168.0.0/16", "a private address"},
    {"198.18.0.0/15", "an address for benchmarks"},
    {"198.51.100.0/24", "an address for documentation"},
    {"203.0.113.0/24", "an address for documentation"},
    {"224.0.0.0/4", "a multicast address"},
    {"240.0.0.0/4", "a reserved address"},
};

static const struct special special_v6[] = {
    {"::/128", "an address of this machine"},
    {"::1/128", "a loopback address"},
    {"::/96", "an IPv4-compatible address"},
    {"::ffff:0:0/96", "an IPv4-mapped address"},
    {"::ffff:0:0:0/96", "an IPv4-translated address"},
    {"64:ff9b::/96", "a NAT64 address"},
    {"64:ff9b:1::/48", "a NAT64 address"},
    {"100::/64", "a discard address"},
    {"2001::/23", "a reserved or Teredo address"},
    {"2001:db8::/32", "an address for documentation"},
    {"2002::/16", "a 6to4 address"},
    {"3fff::/20", "an address for documentation"},
    {"5f00::/16", "a reserved address"},
    {"fc00::/7", "a private address"},
    {"fe80::/10", "a link-local address"},
    {"fec0::/10", "a site-local address"},
    {"ff00::/8", "a multicast address"},
};

static bool address_in(const unsigned char *bytes, int family, const dgm_address_range *range)
{
    if (family != range->family || memcmp(bytes, range->bytes, range->bits / 8) != 0)
        return false;
    unsigned rest = range->bits % 8, mask = 0xff00u >> rest & 0xff;
    return !rest || ((bytes[range->bits / 8] ^ range->bytes[range->bits / 8]) & mask) == 0;
}

dgm_code dgm_address_parse_range(dgm_str text, dgm_address_range *ret_range, dgm_err *err)
{
    bool is_v6 = text.n && memchr(text.p, ':', text.n);
    dgm_address_range range = {.family = is_v6 ? AF_INET6 : AF_INET};
    unsigned max = is_v6 ? 128 : 32;
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    size_t n = slash ? (size_t)(slash - text.p) : text.n;
    char address[INET6_ADDRSTRLEN] = "";
    bool ok = n < sizeof address;
    if (ok && n)
        memcpy(address, text.p, n);
    ok = ok && inet_pton(range.family, address, range.bytes) == 1;
    range.bits = max;
    if (ok && slash) {
        size_t digits = text.n - n - 1;
        range.bits = 0;
        ok = digits >= 1 && digits <= 3;
        for (size_t i = 0; ok && i < digits; i++) {
            ok = slash[1 + i] >= '0' && slash[1 + i] <= '9';
            range.bits = range.bits * 10 + (unsigned)(slash[1 + i] - '0');
        }
        ok = ok && range.bits <= max;
    }
    for (unsigned bit = range.bits; ok && bit < max; bit++)
        ok = (range.bytes[bit / 8] & (0x80u >> bit % 8)) == 0;
    if (!ok)
        return dgm_fail(
            err, DGM_BAD_PARAMS, NULL,
            "\"%.*s\" is no range of addresses: write \"10.1.0.0/16\", \"fd00::/8\" or one address",
            (int)(text.n < 60 ? text.n : 60), text.p);
    *ret_range = range;
    return DGM_OK;
}

static const unsigned char *bytes_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return (const void *)&((const struct sockaddr_in *)(const void *)address)->sin_addr;
    return (const void *)&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
}

static const char *find_special(const unsigned char *bytes, int family)
{
    const struct special *rows = family == AF_INET ? special_v4 : special_v6;
    size_t n = family == AF_INET ? sizeof special_v4 / sizeof *special_v4
                                 : sizeof special_v6 / sizeof *special_v6;
    for (size_t i = 0; i < n; i++) {
        dgm_address_range range;
        if (dgm_address_parse_range(dgm_str_from(rows[i].range), &range, NULL) == DGM_OK &&
            address_in(bytes, family, &range))
            return rows[i].what;
    }
    return family == AF_INET6 && (bytes[0] & 0xe0) != 0x20 ? "a reserved address"
                                                           : NULL; /* public: 2000::/3 */
}

const char *dgm_address_refusal(const struct sockaddr *address, dgm_address_ranges allowed)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    int family = address->sa_family;
    if (family != AF_INET && family != AF_INET6)
        return "no internet address";
    const unsigned char *bytes = bytes_of(address);
    bool is_mapped = family == AF_INET6 && memcmp(bytes, mapped, sizeof mapped) == 0;
    for (size_t i = 0; i < allowed.n; i++) {
        if (address_in(bytes, family, &allowed.at[i]) ||
            (is_mapped && address_in(bytes + sizeof mapped, AF_INET, &allowed.at[i])))
            return NULL;
    }
    return find_special(bytes, family);
}

void dgm_address_text(const struct sockaddr *address, char *out, size_t size)
{
    if (!inet_ntop(address->sa_family, bytes_of(address), out, (socklen_t)size))
        snprintf(out, size, "?");
}
