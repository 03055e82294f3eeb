/*
 * schema/schema_meta.c - the rules for schemas of draft 2020-12, as a schema.
 *
 * A schema may refer to the draft's meta-schema by its URI. This is our own statement of it: one resource instead of one per
 * vocabulary. References to the resources of the vocabularies are refused like all other remote ones.
 */
#include "schema/schema_int.h"

const char dgm_schema_meta_uri[] = "https://json-schema.org/draft/2020-12/schema";

#define COUNTS(name) "\"" name "\":{\"$ref\":\"#/$defs/count\"},"
#define SCHEMAS(name) "\"" name "\":{\"$dynamicRef\":\"#meta\"},"
#define LISTS(name) "\"" name "\":{\"$ref\":\"#/$defs/list\"},"
#define MAPS(name) "\"" name "\":{\"$ref\":\"#/$defs/map\"},"
#define TYPED(name, type) "\"" name "\":{\"type\":\"" type "\"},"

/* clang-format off */
const char dgm_schema_meta_text[] =
    "{\"$id\":\"https://json-schema.org/draft/2020-12/schema\",\"$dynamicAnchor\":\"meta\","
    "\"type\":[\"object\",\"boolean\"],\"properties\":{"
    "\"$id\":{\"type\":\"string\",\"pattern\":\"^[^#]*#?$\"},"
    "\"$anchor\":{\"$ref\":\"#/$defs/anchor\"},\"$dynamicAnchor\":{\"$ref\":\"#/$defs/anchor\"},"
    TYPED("$schema", "string") TYPED("$ref", "string") TYPED("$dynamicRef", "string") TYPED("$comment", "string")
    "\"$vocabulary\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"boolean\"}},"
    MAPS("$defs") MAPS("definitions") MAPS("properties") MAPS("patternProperties") MAPS("dependentSchemas")
    LISTS("prefixItems") LISTS("allOf") LISTS("anyOf") LISTS("oneOf")
    SCHEMAS("items") SCHEMAS("contains") SCHEMAS("additionalProperties") SCHEMAS("propertyNames")
    SCHEMAS("if") SCHEMAS("then") SCHEMAS("else") SCHEMAS("not")
    SCHEMAS("unevaluatedItems") SCHEMAS("unevaluatedProperties") SCHEMAS("contentSchema")
    "\"type\":{\"anyOf\":[{\"$ref\":\"#/$defs/type\"},"
    "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/type\"},\"minItems\":1,\"uniqueItems\":true}]},"
    TYPED("enum", "array")
    "\"multipleOf\":{\"type\":\"number\",\"exclusiveMinimum\":0},"
    TYPED("maximum", "number") TYPED("exclusiveMaximum", "number") TYPED("minimum", "number") TYPED("exclusiveMinimum", "number")
    COUNTS("maxLength") COUNTS("minLength") COUNTS("maxItems") COUNTS("minItems")
    COUNTS("maxContains") COUNTS("minContains") COUNTS("maxProperties") COUNTS("minProperties")
    TYPED("pattern", "string") TYPED("uniqueItems", "boolean")
    "\"required\":{\"$ref\":\"#/$defs/names\"},"
    "\"dependentRequired\":{\"type\":\"object\",\"additionalProperties\":{\"$ref\":\"#/$defs/names\"}},"
    TYPED("title", "string") TYPED("description", "string") TYPED("deprecated", "boolean")
    TYPED("readOnly", "boolean") TYPED("writeOnly", "boolean") TYPED("examples", "array")
    TYPED("format", "string") TYPED("contentEncoding", "string") TYPED("contentMediaType", "string")
    "\"default\":true,\"const\":true},"
    "\"$defs\":{"
    "\"anchor\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z_][-A-Za-z0-9._]*$\"},"
    "\"count\":{\"type\":\"integer\",\"minimum\":0},"
    "\"names\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"uniqueItems\":true},"
    "\"list\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"$dynamicRef\":\"#meta\"}},"
    "\"map\":{\"type\":\"object\",\"additionalProperties\":{\"$dynamicRef\":\"#meta\"}},"
    "\"type\":{\"enum\":[\"array\",\"boolean\",\"integer\",\"null\",\"number\",\"object\",\"string\"]}}}";
/* clang-format on */
