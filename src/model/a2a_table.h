/*
 * model/a2a_table.h - how the member tables of A2A are written (model/a2a_objects.def, wire/a2a/a2a_*.def).
 *
 * A .def file describes each object once: one row per member, one column per dialect (1.0, 0.3, 0.3-rest). A source
 * file defines its dialect (DIALECT_10, DIALECT_03 or DIALECT_03_REST), includes this header, then the .def files, and
 * gets that dialect's shapes. So all names of a member are in one row, and no dialect has a table of its own.
 *
 *   ROW(struct member, kind, cell of 1.0, cell of 0.3, cell of 0.3-rest)
 *   ALL(struct member, kind, "name", flags)          the same in all dialects
 *
 * The kind is a DGM_FIELD_ kind, with the inner object in parentheses where it has one: LIST(part). A cell is:
 *
 *   is("name", flags)              the member's name in this dialect
 *   is_of("name", flags, &shape)   the same, with an inner object of another dialect
 *   read("name")                   another name: read, never written
 *   one("name", tag)               member of the union of this object; tag is the value of the union's `kind`
 *   read_one("name", tag)          another name of such a member
 *   by("name", flags, custom)      read and written by functions
 *   read_by("name", custom)        another name, read by a function
 *   no                             the dialect does not have the member
 *
 * Members are written in the order of the rows.
 */
#pragma once

#include "json/shape.h"

/* The value for this dialect, and the name of its shape for an object. */
#if defined DIALECT_10
#define COLUMN(v10, v03, v03_rest) v10
#define NAME_(object) dgm_form_##object
#elif defined DIALECT_03
#define COLUMN(v10, v03, v03_rest) v03
#define NAME_(object) dgm_a2a_03_##object
#else
#define COLUMN(v10, v03, v03_rest) v03_rest
#define NAME_(object) dgm_a2a_03_rest_##object
#endif
#define NAME(object) NAME_(object)

/* ---- shapes: T is the struct ------------------------------------------------------------------------- */

#define FIELDS_(name) name##_fields
#define FIELDS__(name) FIELDS_(name)
#define FIELDS_OF(object) FIELDS__(NAME(object))
#define FIELDS(object) static const dgm_field FIELDS_OF(object)[]

#define PROTO .proto = COLUMN(true, false, true)
#define SHAPE(object, what_)                                                                       \
    .what = (what_), .size = sizeof(T), DGM_FIELDS(FIELDS_OF(object)),                             \
    .extra_at = offsetof(T, extra), .tag_at = DGM_NOWHERE, PROTO
/* An object that holds exactly one of the members in its union. */
#define UNION(object, what_)                                                                       \
    .what = (what_), .size = sizeof(T), DGM_FIELDS(FIELDS_OF(object)),                             \
    .extra_at = offsetof(T, extra), .tag_at = offsetof(T, kind), .one_required = true, PROTO

/* ---- flags that go together --------------------------------------------------------------------------- */

#define ID (DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED)
#define NOT_EMPTY (DGM_REQUIRED | DGM_NONEMPTY)
/* Always written; a reader treats a missing one as empty, because ProtoJSON writers leave out what is empty even where
 * the definition requires it. */
#define OR_EMPTY (DGM_REQUIRED | DGM_STRICT)

/* ---- rows --------------------------------------------------------------------------------------------- */

#define ROW(member, kind, c10, c03, c03_rest)                                                      \
    ROW_(member, KIND_##kind, COLUMN(CELL_##c10, CELL_##c03, CELL_##c03_rest))
#define ALL(member, kind, name, flags) ROW_(member, KIND_##kind, CELL_is(name, flags))
#define ROW_(...) ROW__(__VA_ARGS__)
#define ROW__(member, kind, of, field, name, a, b) field(member, kind, of, name, a, b)

#define KIND_STR STR, NULL
#define KIND_TIME TIME, NULL
#define KIND_BASE64 BASE64, NULL
#define KIND_STRS STRS, NULL
#define KIND_JSON JSON, NULL
#define KIND_MAP_JSON MAP_JSON, NULL
#define KIND_BOOL BOOL, NULL
#define KIND_INT INT, NULL
#define KIND_OPT_INT OPT_INT, NULL
#define KIND_CUSTOM CUSTOM, NULL
#define KIND_ENUM(names) ENUM, &NAME(names)
#define KIND_OPT_ENUM(names) OPT_ENUM, &NAME(names)
#define KIND_LIST(object) LIST, &NAME(object)
#define KIND_MAP(object) MAP, &NAME(object)
#define KIND_OBJECT(object) OBJECT, &NAME(object)
#define KIND_INLINE(object) INLINE, &NAME(object)
#define KIND_NEST(object) NEST, &NAME(object)

#define CELL_is(name, flags) FIELD_is, name, flags, _
#define CELL_is_of(name, flags, shape) FIELD_is_of, name, flags, shape
#define CELL_read(name) FIELD_is, name, DGM_READ_ONLY, _
#define CELL_one(name, tag) FIELD_one, name, tag, DGM_ONE_OF
#define CELL_read_one(name, tag) FIELD_one, name, tag, (DGM_ONE_OF | DGM_READ_ONLY)
#define CELL_by(name, flags, custom) FIELD_by, name, flags, custom
#define CELL_read_by(name, custom) FIELD_read_by, name, custom, _
#define CELL_no FIELD_no, _, _, _

/* clang-format off: an initializer and its comma */
#define FIELD_is(member, kind, of_, name, flags_, _)                                               \
    {DGM_KEY(name, kind, flags_), .at = offsetof(T, member), .of = {.any = (of_)}},
#define FIELD_is_of(member, kind, of_, name, flags_, shape_)                                       \
    {DGM_KEY(name, kind, flags_), .at = offsetof(T, member), .of = {.any = (shape_)}},
#define FIELD_one(member, kind, of_, name, tag_, flags_)                                           \
    {DGM_KEY(name, kind, flags_), .tag = (tag_), .at = offsetof(T, member), .of = {.any = (of_)}},
#define FIELD_by(member, kind, of_, name, flags_, custom_)                                         \
    {DGM_KEY(name, CUSTOM, flags_), .of = {.custom = (custom_)}},
#define FIELD_read_by(member, kind, of_, name, custom_, _)                                         \
    {DGM_KEY(name, CUSTOM, DGM_READ_ONLY), .at = offsetof(T, member), .of = {.custom = (custom_)}},
#define FIELD_no(member, kind, of_, name, a, b)
/* clang-format on */
