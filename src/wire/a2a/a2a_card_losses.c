/*
 * wire/a2a/a2a_card_losses.c - losses of a card that is converted from one A2A dialect to another.
 *
 * Unknown members have no rows here: they are written back by the format they came from, in all
 * objects alike.
 */
#include "wire/a2a/a2a_card_int.h"

#define ROW(member, ...)                                                                           \
    {                                                                                              \
        "card", member, __VA_ARGS__                                                                \
    }

/* ---- from 1.0 ---------------------------------------------------------------------------------- */

#define FROM_10                                                                                    \
    ROW("/supportedInterfaces/*",                                                                  \
        "copied if its protocolVersion is empty or at least 0.3 and below 1.0: the first of "      \
        "these becomes url and preferredTransport, the others additionalInterfaces; other "        \
        "entries are left out"),                                                                   \
        ROW("/supportedInterfaces",                                                                \
            "if no entry has version 0.3, entries of an older version are used instead; without "  \
            "those, the first entry is written as version 0.3.0",                                  \
            DGM_LOSS_NOT_REPORTED),                                                                \
        ROW("/supportedInterfaces/*/protocolVersion",                                              \
            "one for the whole card: the version of the first entry that is copied; 0.3.0 if it "  \
            "is empty"),                                                                           \
        ROW("/supportedInterfaces/*/tenant", "left out"),                                          \
        ROW("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode", "left out"),               \
        ROW("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/pkceRequired",        \
            "left out"),                                                                           \
        ROW("/signatures",                                                                         \
            "copied, but they sign the 1.0 card: they do not verify the converted card"),          \
        ROW("/url", "in a hybrid card the 0.3 members are read only where the 1.0 members are "    \
                    "missing: url and preferredTransport become an interface if no listed "        \
                    "interface has version 0.3")

const dgm_loss dgm_a2a_card_losses_10_to_03[] = {FROM_10};

const dgm_loss dgm_a2a_card_losses_10_to_03_rest[] = {
    FROM_10,
    ROW("/capabilities/streaming", "false is left out: 0.3 does not distinguish it from absent",
        DGM_LOSS_FALSE),
    ROW("/capabilities/pushNotifications",
        "false is left out: 0.3 does not distinguish it from absent", DGM_LOSS_FALSE),
    ROW("/capabilities/extendedAgentCard",
        "false is left out: 0.3 does not distinguish it from absent", DGM_LOSS_FALSE),
    ROW("/documentationUrl", "left out when empty: 0.3 does not distinguish it from absent",
        DGM_LOSS_EMPTY),
    ROW("/iconUrl", "left out when empty: 0.3 does not distinguish it from absent", DGM_LOSS_EMPTY),
};

/* ---- from 0.3 ---------------------------------------------------------------------------------- */

#define FROM_03                                                                                    \
    ROW("/preferredTransport", "JSONRPC when absent", DGM_LOSS_NOT_REPORTED),                      \
        ROW("/protocolVersion", "0.3 when absent", DGM_LOSS_NOT_REPORTED),                         \
        ROW("/additionalInterfaces", "left out when empty", DGM_LOSS_EMPTY),                       \
        ROW("/additionalInterfaces/*", "left out when it repeats url and preferredTransport",      \
            DGM_LOSS_NOT_REPORTED)

#define EMPTY_IS_ABSENT                                                                            \
    ROW("/securitySchemes", "left out when empty", DGM_LOSS_EMPTY),                                \
        ROW("/security", "left out when empty", DGM_LOSS_EMPTY),                                   \
        ROW("/capabilities/extensions", "left out when empty", DGM_LOSS_EMPTY),                    \
        ROW("/capabilities/extensions/*/description", "left out when empty", DGM_LOSS_EMPTY),      \
        ROW("/capabilities/extensions/*/required", "false is left out: it means the same",         \
            DGM_LOSS_FALSE),                                                                       \
        ROW("/securitySchemes/*/description", "left out when empty", DGM_LOSS_EMPTY),              \
        ROW("/securitySchemes/*/bearerFormat", "left out when empty", DGM_LOSS_EMPTY),             \
        ROW("/securitySchemes/*/oauth2MetadataUrl", "left out when empty", DGM_LOSS_EMPTY),        \
        ROW("/securitySchemes/*/flows/*/refreshUrl", "left out when empty", DGM_LOSS_EMPTY),       \
        ROW("/skills/*/examples", "left out when empty", DGM_LOSS_EMPTY),                          \
        ROW("/skills/*/inputModes", "left out when empty", DGM_LOSS_EMPTY),                        \
        ROW("/skills/*/outputModes", "left out when empty", DGM_LOSS_EMPTY),                       \
        ROW("/skills/*/security", "left out when empty", DGM_LOSS_EMPTY)

#define ONE_FLOW                                                                                   \
    ROW("/securitySchemes/*/flows/*",                                                              \
        "only one is copied, the first of authorizationCode, clientCredentials, implicit, "        \
        "password",                                                                                \
        DGM_LOSS_NOT_FIRST)

#define SIGNED_03                                                                                  \
    ROW("/signatures", "copied, but they sign the 0.3 card: they do not verify the converted "     \
                       "card; left out when empty")

const dgm_loss dgm_a2a_card_losses_03_to_10[] = {
    FROM_03,         ROW("/capabilities/stateTransitionHistory", "left out"), ONE_FLOW, SIGNED_03,
    EMPTY_IS_ABSENT,
};

const dgm_loss dgm_a2a_card_losses_03_to_03_rest[] = {
    FROM_03,
    ROW("/capabilities/streaming", "false is left out: it means the same", DGM_LOSS_FALSE),
    ROW("/capabilities/pushNotifications", "false is left out: it means the same", DGM_LOSS_FALSE),
    ROW("/capabilities/stateTransitionHistory", "left out"),
    ROW("/supportsAuthenticatedExtendedCard", "false is left out: it means the same",
        DGM_LOSS_FALSE),
    ROW("/documentationUrl", "left out when empty", DGM_LOSS_EMPTY),
    ROW("/iconUrl", "left out when empty", DGM_LOSS_EMPTY),
    ONE_FLOW,
    EMPTY_IS_ABSENT,
    ROW("/signatures", "left out when empty", DGM_LOSS_EMPTY),
};

const dgm_loss dgm_a2a_card_losses_03_rest_to_10[] = {
    FROM_03,
    SIGNED_03,
};

const dgm_loss dgm_a2a_card_losses_03_rest_to_03[] = {FROM_03};

#define COUNT(way)                                                                                 \
    const size_t dgm_a2a_n_card_losses_##way =                                                     \
        sizeof dgm_a2a_card_losses_##way / sizeof *dgm_a2a_card_losses_##way

COUNT(10_to_03);
COUNT(03_to_10);
COUNT(10_to_03_rest);
COUNT(03_rest_to_10);
COUNT(03_to_03_rest);
COUNT(03_rest_to_03);
