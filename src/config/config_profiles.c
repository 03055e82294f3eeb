/* config_profiles.c - the profiles, which are named lists of settings, and the names that a tenant may not have. */
#include "config_int.h"

/* Ordinary settings, nothing else: no code looks at a profile's name. */
const dgm_config_profile_row dgm_config_profiles[] = {
    {"tck",
     "for the conformance kits of A2A (a2aproject/a2a-tck): branch 1.0-dev against `/`, branch "
     "0.3.x against `/agents/tck-0.3/`. The kit for 1.0 requires the error table of 1.0.0 and, "
     "without a version header, a card with no other members; the kit for 0.3 requires, without a "
     "version header, a 0.3 card. Both send the same messageId many times and reject keys in snake "
     "case. The kit for 1.0 counts a stream that contains an error as a success.",
     "{\"a2a\":{\"error_table\":\"1.0.0\",\"card_headerless\":\"pure-1.0\","
     "\"rest_media_type\":\"json\",\"media_types\":\"accept\",\"canonical_type\":false,"
     "\"stream_errors\":\"json\"},"
     "\"agent_defaults\":{\"dedupe\":false},"
     "\"agents\":[{\"id\":\"tck\",\"type\":\"tck\",\"default\":true},"
     "{\"id\":\"tck-0.3\",\"type\":\"tck\",\"a2a\":{\"card_headerless\":\"hybrid\"}}]}"},
    {0},
};

const dgm_config_profile_row *dgm_config_profile_find(dgm_str wanted)
{
    for (const dgm_config_profile_row *p = dgm_config_profiles; p->name; p++)
        if (dgm_str_eq(wanted, dgm_str_from(p->name)))
            return p;
    return NULL;
}

const char *dgm_config_profile(size_t i)
{
    return i < sizeof dgm_config_profiles / sizeof *dgm_config_profiles
               ? dgm_config_profiles[i].name
               : NULL;
}

const char *const dgm_config_reserved_tenants[] = {
    "v1",          "a2a",    "api",          "agents",         "ag-ui",
    "ai-sdk",      "simple", "healthz",      "readyz",         "metrics",
    "web",         "tasks",  "message:send", "message:stream", "extendedAgentCard",
    ".well-known", "debug",  "inspect",      "compare",        "operate",
    "licenses",    NULL};

bool dgm_config_is_reserved_tenant(dgm_str wanted)
{
    for (size_t i = 0; dgm_config_reserved_tenants[i]; i++)
        if (dgm_str_eq_nocase(wanted, dgm_str_from(dgm_config_reserved_tenants[i])))
            return true;
    return false;
}
