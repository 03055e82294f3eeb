/*
 * wire/a2a/a2a_card_int.h - what the files about cards share.
 *
 * Everything is read by the 1.0 shapes, which also know the names of 0.3: hybrid cards mix them.
 * The 0.3 shapes are for writing only.
 */
#pragma once

#include "wire/a2a/a2a_card.h"
#include "wire/a2a/a2a_int.h"

/* A card with the members that only 0.3 has. */
struct card {
    dgm_agent_card it; /* first: rows for this serve a plain dgm_agent_card too */
    dgm_str url, transport, version;
    dgm_agent_interfaces additional;
    dgm_opt_bool extended;
    dgm_security_requirements security;
};
extern const dgm_shape dgm_form_card_members, dgm_a2a_03_card_members, dgm_a2a_03_rest_card_members;
extern const dgm_shape dgm_a2a_03_rest_interface;

/* a2a_card.c: functions of the card's table. */
dgm_code dgm_a2a_read_card_10(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object);
dgm_code dgm_a2a_read_card_03(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object);
void dgm_a2a_write_card_03(dgm_writer *w, const void *object);
void dgm_a2a_write_card_03_rest(dgm_writer *w, const void *object);
dgm_code dgm_a2a_read_skill_security(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at);
extern const dgm_custom dgm_a2a_additional; /* the interfaces of a card of 0.3 but the first */
extern const dgm_custom dgm_a2a_ignored;    /* neither read nor written here */

/* A plain object that keeps its unknown members. */
#define DGM_A2A_SHAPE(T, what_, fields_, proto_)                                                   \
    {                                                                                              \
        .what = (what_), .size = sizeof(T), DGM_FIELDS(fields_), .extra_at = offsetof(T, extra),   \
        .tag_at = DGM_NOWHERE, .proto = (proto_)                                                   \
    }

/* a2a_card_security.c */
extern const dgm_shape dgm_form_scheme, dgm_a2a_03_scheme, dgm_a2a_03_rest_scheme;
extern const dgm_shape dgm_form_requirement, dgm_a2a_03_requirement; /* 0.3-rest has that of 1.0 */
bool dgm_a2a_scheme_is_wrapped(const yyjson_val *v);

/* The JS SDK's 1.x servers publish cards as they have them in memory, where a union is an object
 * {"$case": name, "value": {...}} under a name of its own. Is `member` of v one? */
yyjson_val *dgm_a2a_find_case(const yyjson_val *v, dgm_str member);
/* The row of the union that it names, and the value; NULL with r->err set. */
const dgm_field *dgm_a2a_read_case(dgm_reader *r, const dgm_shape *the_union, yyjson_val *v,
                                   const dgm_at *at, yyjson_val **ret_value);

/* a2a_card_oauth.c: `flows` of a dgm_security_scheme. ONE: a union; MANY: any number is read. */
extern const dgm_custom dgm_a2a_10_flows, dgm_a2a_03_flows, dgm_a2a_03_rest_flows;
