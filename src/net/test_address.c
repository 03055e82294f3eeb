/* test_address.c - which addresses are refused. */
#include "net/address.h"

#include "support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct row {
    const char *address;
    bool refused;
};

static const struct row rows[] = {
    {"0.0.0.0", true},
    {"0.255.255.255", true},
    {"1.0.0.0", false},
    {"9.255.255.255", false},
    {"10.0.0.0", true},
    {"10.255.255.255", true},
    {"11.0.0.0", false},
    {"100.63.255.255", false},
    {"100.64.0.0", true},
    {"100.127.255.255", true},
    {"100.128.0.0", false},
    {"126.255.255.255", false},
    {"127.0.0.1", true},
    {"127.255.255.255", true},
    {"128.0.0.0", false},
    {"169.253.255.255", false},
    {"169.254.169.254", true},
    {"169.255.0.0", false},
    {"172.15.255.255", false},
    {"172.16.0.0", true},
    {"172.31.255.255", true},
    {"172.32.0.0", false},
    {"192.0.0.1", true},
    {"192.0.1.0", false},
    {"192.0.2.1", true},
    {"192.88.99.1", true},
    {"192.167.255.255", false},
    {"192.168.0.1", true},
    {"192.169.0.0", false},
    {"198.17.255.255", false},
    {"198.18.0.1", true},
    {"198.19.255.255", true},
    {"198.20.0.0", false},
    {"198.51.100.7", true},
    {"203.0.113.7", true},
    {"223.255.255.255", false},
    {"224.0.0.1", true},
    {"239.255.255.255", true},
    {"240.0.0.1", true},
    {"255.255.255.255", true},
    {"8.8.8.8", false},
    {"::", true},
    {"::1", true},
    {"::2", true},
    {"::127.0.0.1", true},
    {"::ffff:127.0.0.1", true},
    {"::ffff:8.8.8.8", true},
    {"::ffff:0:127.0.0.1", true},
    {"64:ff9b::127.0.0.1", true},
    {"64:ff9b::8.8.8.8", true},
    {"64:ff9b:1::1", true},
    {"100::1", true},
    {"2001::1", true},
    {"2001:db8::1", true},
    {"2001:4860:4860::8888", false},
    {"2002:7f00:1::", true},
    {"2606:4700::1111", false},
    {"3fff::1", true},
    {"4000::1", true},
    {"fc00::1", true},
    {"fdff::1", true},
    {"fe80::1", true},
    {"febf::1", true},
    {"fec0::1", true},
    {"ff02::1", true},
};

static const char *refusal(const char *text, dgm_address_ranges allowed)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return dgm_address_refusal((const struct sockaddr *)&v4, allowed);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return dgm_address_refusal((const struct sockaddr *)&v6, allowed);
}

static void addresses_that_are_not_public_are_refused(void **state)
{
    (void)state;
    assert_true(sizeof rows / sizeof *rows >= 60);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = refusal(rows[i].address, (dgm_address_ranges){0});
        if (!!why != rows[i].refused)
            print_error("%s: %s\n", rows[i].address, why ? why : "allowed");
        assert_int_equal(!!why, rows[i].refused);
    }
}

static dgm_address_range range_of(const char *text)
{
    dgm_address_range range;
    dgm_err err = {0};
    check_ok(dgm_address_parse_range(dgm_str_from(text), &range, &err), err);
    return range;
}

static void allowed_ranges_are_exact(void **state)
{
    dgm_address_range ranges[] = {range_of("10.1.0.0/16"), range_of("127.0.0.1"),
                                  range_of("fd00:1::/32"), range_of("172.16.5.128/25"),
                                  range_of("64:ff9b::/96")};
    dgm_address_ranges allowed = {ranges, sizeof ranges / sizeof *ranges};
    (void)state;
    assert_null(refusal("10.1.0.0", allowed));
    assert_null(refusal("10.1.255.255", allowed));
    assert_non_null(refusal("10.2.0.0", allowed));
    assert_null(refusal("127.0.0.1", allowed));
    assert_non_null(refusal("127.0.0.2", allowed));
    assert_null(refusal("::ffff:127.0.0.1", allowed));
    assert_non_null(refusal("::ffff:127.0.0.2", allowed));
    assert_null(refusal("fd00:1::5", allowed));
    assert_non_null(refusal("fd00:2::5", allowed));
    assert_null(refusal("172.16.5.128", allowed));
    assert_non_null(refusal("172.16.5.127", allowed));
    assert_null(refusal("64:ff9b::1.2.3.4", allowed));
}

static void what_is_no_range_is_an_error(void **state)
{
    static const char *const bad[] = {"",          "10.0.0.0/33",
                                      "10.0.0.0/", "10.0.0.1/8",
                                      "10.0.0/8",  "::/129",
                                      "fd00::1/8", "10.0.0.0/a",
                                      "localhost", "10.0.0.0/8 ",
                                      "/8",        "1.2.3.4/-1",
                                      "::1/1234",  "::ffff:255.255.255.255.1"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        dgm_address_range range;
        dgm_err err = {0};
        if (dgm_address_parse_range(dgm_str_from(bad[i]), &range, &err) == DGM_OK)
            print_error("%s is taken\n", bad[i]);
        assert_int_equal(err.code, DGM_BAD_PARAMS);
    }
    assert_int_equal(range_of("0.0.0.0/0").bits, 0);
}

DGM_TEST_MAIN(dgm_test(addresses_that_are_not_public_are_refused),
              dgm_test(allowed_ranges_are_exact), dgm_test(what_is_no_range_is_an_error))
