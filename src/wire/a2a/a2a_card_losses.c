/*
 * wire/a2a/a2a_card_losses.c - what a card loses on its way from one spelling to another.
 *
 * Unknown members are no rows here: they are written back by the format they came from, in all
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
        "kept when its protocolVersion is empty or from 0.3 to below 1.0: the first such becomes " \
        "url and preferredTransport, the others additionalInterfaces; all others are left out"),   \
        ROW("/supportedInterfaces",                                                                \
            "when no entry is of 0.3, those of an older version are kept instead; when there are " \
            "none, the first entry is written as if it were of 0.3.0",                             \
            DGM_LOSS_NOT_REPORTED),                                                                \
        ROW("/supportedInterfaces/*/protocolVersion",                                              \
            "one for the whole card, that of the first entry kept; 0.3.0 when it is empty"),       \
        ROW("/supportedInterfaces/*/tenant", "left out"),                                          \
        ROW("/securitySchemes/*/oauth2SecurityScheme/flows/deviceCode", "left out"),               \
        ROW("/securitySchemes/*/oauth2SecurityScheme/flows/authorizationCode/pkceRequired",        \
            "left out"),                                                                           \
        ROW("/signatures", "kept, but they sign the card of 1.0: they do not verify this one"),    \
        ROW("/url",                                                                                \
            "in a hybrid card the members of 0.3 are read only where those of 1.0 are missing: "   \
            "this and its transport become an interface when no listed one is of 0.3")

const dgm_loss dgm_a2a_card_losses_10_to_03[] = {FROM_10};

const dgm_loss dgm_a2a_card_losses_10_to_03_rest[] = {
    FROM_10,
    ROW("/capabilities/streaming", "false is left out: 0.3 cannot tell it from absent",
        DGM_LOSS_FALSE),
    ROW("/capabilities/pushNotifications", "false is left out: 0.3 cannot tell it from absent",
        DGM_LOSS_FALSE),
    ROW("/capabilities/extendedAgentCard", "false is left out: 0.3 cannot tell it from absent",
        DGM_LOSS_FALSE),
    ROW("/documentationUrl", "left out when empty: 0.3 cannot tell it from absent", DGM_LOSS_EMPTY),
    ROW("/iconUrl", "left out when empty: 0.3 cannot tell it from absent", DGM_LOSS_EMPTY),
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
        "one is kept, the first of authorizationCode, clientCredentials, implicit, password",      \
        DGM_LOSS_NOT_FIRST)

#define SIGNED_03                                                                                  \
    ROW("/signatures",                                                                             \
        "kept, but they sign the card of 0.3: they do not verify this one; left out when empty")

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
