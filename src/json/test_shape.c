/* test_shape.c - objects by table: what is read, refused, minted, kept, written. */
#include "base/limits.h"
#include "support/check.h"
#include "json/shape.h"

/* ---- a format of our own, with one member of every kind ------------------------------------------- */

struct owner {
    dgm_str name;
    dgm_str phone;
    const dgm_extra *extra;
};

struct friend
{
    dgm_str name; /* its key */
    dgm_str since;
};

struct owners {
    struct owner *at;
    size_t n;
};

struct friends {
    struct friend *at;
    size_t n;
};

enum food { FOOD_NONE, FOOD_TEXT, FOOD_GRAMS, FOOD_RECIPE };

struct pet {
    dgm_str id;
    dgm_str born;
    dgm_str photo;
    dgm_opt_bool tame;
    dgm_opt_bool vaccinated;
    int32_t legs;
    dgm_opt_int age;
    int species;
    dgm_opt_int mood;
    dgm_strs tags;
    const dgm_json *note;
    const dgm_json *metadata;
    struct owner *owner;
    struct owner keeper;
    dgm_str street;
    struct owners owners;
    struct friends friends;
    dgm_str nick_name;
    int kind; /* of food */
    dgm_str food;
    int32_t grams;
    const dgm_json *recipe;
    const dgm_extra *extra;
};

static const dgm_format_id format = DGM_FORMAT_LANGCHAIN, other_format = DGM_FORMAT_AI_SDK;

static const char *const species_names[] = {"NONE", "CAT", "DOG"};
static const dgm_enum_alias species_aliases[] = {{"kitty", 1}, {NULL, 0}};
static const dgm_enum_names species = {
    .what = "species", .names = species_names, .n = 3, .numbers = true, .aliases = species_aliases};
static const char *const mood_names[] = {"calm", "wild"};
static const dgm_enum_names moods = {.what = "mood", .names = mood_names, .n = 2};

static const dgm_field owner_fields[] = {
    DGM_F(struct owner, name, "name", STR, DGM_REQUIRED | DGM_NONEMPTY),
    DGM_F(struct owner, phone, "phoneNumber", STR, 0),
};
static const dgm_shape owner_shape = {
    .what = "owner",
    .size = sizeof(struct owner),
    DGM_FIELDS(owner_fields),
    .extra_at = offsetof(struct owner, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static const dgm_field friend_fields[] = {DGM_F(struct friend, since, "since", TIME, 0)};
static const dgm_shape friend_shape = {
    .what = "friend",
    .size = sizeof(struct friend),
    DGM_FIELDS(friend_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static const dgm_field address_fields[] = {DGM_F(struct pet, street, "street", STR, 0)};
static const dgm_shape address_shape = {
    .what = "address",
    .size = sizeof(struct pet),
    DGM_FIELDS(address_fields),
    .extra_at = DGM_NOWHERE,
    .tag_at = DGM_NOWHERE,
};

static dgm_code read_nick(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    struct pet *p = object;
    if (yyjson_is_null(v)) {
        p->nick_name = DGM_STR("(null)");
        return DGM_OK;
    }
    return dgm_read_str(r, v, at, &p->nick_name);
}

static void write_nick(dgm_writer *w, const dgm_field *f, const void *object)
{
    const struct pet *p = object;
    if (p->nick_name.p) {
        dgm_put_key(w, f);
        dgm_json_put_str(w->out, p->nick_name);
    }
}

static const dgm_custom nick = {read_nick, write_nick};

static const dgm_field pet_fields[] = {
    DGM_F_CONST("type", "pet"),
    DGM_F(struct pet, id, "petId", STR, DGM_REQUIRED | DGM_NONEMPTY | DGM_MINTED),
    DGM_F(struct pet, id, "identifier", STR, DGM_READ_ONLY),
    DGM_F(struct pet, born, "born", TIME, 0),
    DGM_F(struct pet, photo, "photo", BASE64, 0),
    DGM_F(struct pet, tame, "tame", BOOL, 0),
    DGM_F(struct pet, vaccinated, "vaccinated", BOOL, DGM_PRESENCE),
    DGM_F(struct pet, legs, "legs", INT, 0),
    DGM_F(struct pet, age, "age", OPT_INT, DGM_PRESENCE),
    DGM_F_OF(struct pet, species, "species", ENUM, 0, &species),
    DGM_F_OF(struct pet, mood, "mood", OPT_ENUM, DGM_PRESENCE, &moods),
    DGM_F(struct pet, tags, "tags", STRS, 0),
    DGM_F(struct pet, note, "note", JSON, 0),
    DGM_F(struct pet, metadata, "metadata", MAP_JSON, 0),
    DGM_F_OF(struct pet, owner, "owner", OBJECT, 0, &owner_shape),
    DGM_F_OF(struct pet, keeper, "keeper", INLINE, DGM_REQUIRED, &owner_shape),
    DGM_F_NEST("address", 0, &address_shape),
    DGM_F_OF(struct pet, owners, "formerOwners", LIST, 0, &owner_shape),
    DGM_F_OF(struct pet, friends, "friends", MAP, 0, &friend_shape),
    DGM_F_CUSTOM("nick", DGM_ANY_TYPE, &nick),
    DGM_F_ONE(struct pet, food, "eats", STR, FOOD_TEXT, NULL),
    DGM_F_ONE(struct pet, grams, "grams", INT, FOOD_GRAMS, NULL),
    DGM_F_ONE(struct pet, recipe, "recipe", JSON, FOOD_RECIPE, NULL),
};

static const dgm_shape pet_shape = {
    .what = "pet",
    .size = sizeof(struct pet),
    DGM_FIELDS(pet_fields),
    .extra_at = offsetof(struct pet, extra),
    .tag_at = offsetof(struct pet, kind),
    .one_required = true,
    .proto = true,
};
/* The same in a format that is not ProtoJSON. */
static const dgm_shape plain_shape = {
    .what = "pet",
    .size = sizeof(struct pet),
    DGM_FIELDS(pet_fields),
    .extra_at = offsetof(struct pet, extra),
    .tag_at = offsetof(struct pet, kind),
};

/* ---- helpers ------------------------------------------------------------------------------------------- */

struct
try {
    dgm_arena *a;
    dgm_mint mint;
    dgm_reader r;
    dgm_err err;
    struct pet pet;
};

static void try_init(struct try *t)
{
    *t = (struct try){.a = dgm_arena_new()};
    t->r = (dgm_reader){.arena = t->a, .format = format, .err = &t->err};
}

static void try_done(struct try *t)
{
    dgm_arena_free(t->a);
}

static dgm_code read_as(struct try *t, const dgm_shape *s, const char *text)
{
    memset(&t->pet, 0, sizeof t->pet);
    return dgm_shape_read(&t->r, s, dgm_json_parse_trusted(t->a, dgm_str_from(text)), NULL,
                          &t->pet);
}

static dgm_str written(struct try *t, const dgm_shape *s, dgm_format_id as)
{
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = as};
    dgm_buf_init(&b, SIZE_MAX);
    dgm_shape_write(&w, s, &t->pet);
    dgm_str text = dgm_arena_dup(t->a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

/* Is refused, there, with these words somewhere in the message. */
static void check_refused(const dgm_shape *s, const char *text, const char *at, const char *says)
{
    struct try t;
    try_init(&t);
    dgm_code rc = read_as(&t, s, text);
    if (rc != DGM_BAD_PARAMS || t.err.code != rc || strcmp(t.err.at, at) != 0 ||
        !strstr(t.err.msg, says))
        fail_msg("%s: code %d at \"%s\": %s; wanted \"%s\" at \"%s\"", text, rc, t.err.at,
                 t.err.msg, says, at);
    try_done(&t);
}

/* Is read, and written as `want`. */
static void check_round(const dgm_shape *s, const char *text, const char *want)
{
    struct try t;
    try_init(&t);
    check_ok(read_as(&t, s, text), t.err);
    dgm_str got = written(&t, s, format);
    check_str(got, want);
    try_done(&t);
}

#define MIN "\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{},\"eats\":\"all\""

/* ---- all members --------------------------------------------------------------------------------------- */

static const char full[] =
    "{\"type\":\"pet\",\"petId\":\"p1\",\"born\":\"2026-01-02T03:04:05Z\",\"photo\":\"SGVsbG8=\","
    "\"tame\":true,\"vaccinated\":false,\"legs\":4,\"age\":0,\"species\":\"CAT\",\"mood\":\"calm\","
    "\"tags\":[\"a\",\"\"],\"note\":[1.0,null],\"metadata\":{\"k\":-0},"
    "\"owner\":{\"name\":\"o\",\"phoneNumber\":\"1\"},\"keeper\":{\"name\":\"k\"},"
    "\"address\":{\"street\":\"s\"},\"formerOwners\":[{\"name\":\"x\"},{\"name\":\"y\"}],"
    "\"friends\":{\"Tom\":{\"since\":\"2026-01-02T03:04:05Z\"},\"\":{}},\"nick\":\"n\","
    "\"recipe\":{\"b\":1,\"a\":2},\"unknown\":{\"z\":[1e400]},\"more\":null}";

static void every_kind_of_member_round_trips(void **state)
{
    (void)state;
    check_round(&pet_shape, full, full);
    check_round(&plain_shape, full, full);
}

static void order_does_not_matter(void **state)
{
    (void)state;
    check_round(
        &pet_shape,
        "{\"eats\":\"all\",\"address\":{},\"keeper\":{\"name\":\"k\"},\"legs\":2,\"petId\":\"p\"}",
        "{\"type\":\"pet\",\"petId\":\"p\",\"legs\":2,\"keeper\":{\"name\":\"k\"},\"address\":{},"
        "\"eats\":\"all\"}");
}

static void any_order_is_written_in_ours(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    yyjson_val *whole = dgm_json_parse_trusted(t.a, dgm_str_from(full)), *key, *value;
    size_t n = yyjson_obj_size(whole), i, end, k = 0;
    dgm_member members[32];
    yyjson_obj_foreach (whole, i, end, key, value) {
        members[k++] = (dgm_member){dgm_json_str(key), value};
    }
    for (size_t turn = 0; turn < n; turn++) { /* turned by so many, forwards and backwards */
        for (int backwards = 0; backwards < 2; backwards++) {
            dgm_buf b;
            dgm_buf_init(&b, SIZE_MAX);
            for (i = 0; i < n; i++) {
                const dgm_member *m = &members[(turn + (backwards ? n - i : i)) % n];
                dgm_buf_add_char(&b, i ? ',' : '{');
                dgm_json_put_str(&b, m->key);
                dgm_buf_add_char(&b, ':');
                dgm_json_put(&b, m->value);
            }
            dgm_buf_add_lit(&b, "}");
            dgm_str turned = dgm_arena_dup(t.a, dgm_buf_str(&b));
            dgm_buf_done(&b);
            check_ok(read_as(&t, &pet_shape, turned.p), t.err);
            yyjson_val *got = dgm_json_parse_trusted(t.a, written(&t, &pet_shape, format));
            assert_true(dgm_json_equal(got, whole));
        }
    }
    try_done(&t);
}

static void the_limit_of_the_buffer_holds(void **state)
{
    enum { SLACK = 128 }; /* a key and some: writers ask for more room than they use */
    struct try t;
    (void)state;
    try_init(&t);
    check_ok(read_as(&t, &pet_shape, full), t.err);
    size_t n = sizeof full - 1;
    for (size_t max = 0; max <= n + SLACK; max++) {
        dgm_buf b;
        dgm_writer w = {.out = &b, .format = format};
        dgm_buf_init(&b, max);
        dgm_shape_write(&w, &pet_shape, &t.pet);
        assert_true(b.n <= max);
        if (max < n)
            assert_true(b.over);
        if (max == n + SLACK) {
            assert_false(b.over);
            check_str(dgm_buf_str(&b), full);
        }
        dgm_buf_done(&b);
    }
    try_done(&t);
}

static void values_arrive_in_the_struct(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    check_ok(read_as(&t, &pet_shape, full), t.err);
    check_str(t.pet.id, "p1");
    assert_int_equal(t.pet.tame, DGM_TRUE);
    assert_int_equal(t.pet.vaccinated, DGM_FALSE);
    assert_int_equal(t.pet.legs, 4);
    assert_true(t.pet.age.set);
    assert_int_equal(t.pet.age.value, 0);
    assert_int_equal(t.pet.species, 1);
    assert_true(t.pet.mood.set);
    assert_int_equal(t.pet.mood.value, 0);
    assert_int_equal(t.pet.tags.n, 2);
    check_str(t.pet.owner->phone, "1");
    check_str(t.pet.keeper.name, "k");
    check_str(t.pet.street, "s");
    assert_int_equal(t.pet.owners.n, 2);
    check_str(t.pet.owners.at[1].name, "y");
    assert_int_equal(t.pet.friends.n, 2);
    check_str(t.pet.friends.at[0].name, "Tom");
    assert_int_equal(t.pet.kind, FOOD_RECIPE);
    assert_int_equal(t.pet.extra->n, 2);
    assert_int_equal(t.pet.extra->format, format);
    check_str(t.pet.extra->at[0].key, "unknown");
    assert_int_equal(t.r.n_unknown, 2);
    try_done(&t);
}

static void null_means_absent_except_for_json(void **state)
{
    struct try t;
    (void)state;
    check_round(&pet_shape,
                "{" MIN ",\"type\":null,\"born\":null,\"photo\":null,\"tame\":null,\"legs\":null,"
                "\"age\":null,\"species\":null,\"mood\":null,\"tags\":null,\"metadata\":null,"
                "\"owner\":null,\"formerOwners\":null,\"friends\":null,\"grams\":null}",
                "{\"type\":\"pet\"," MIN "}");
    check_round(&pet_shape, "{" MIN ",\"note\":null}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"note\":null,\"keeper\":{\"name\":\"k\"},"
                "\"address\":{},\"eats\":\"all\"}");
    check_refused(&pet_shape, "{\"petId\":null,\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}",
                  "/petId", "missing");
    check_refused(&pet_shape, "{\"petId\":\"p\",\"keeper\":null,\"eats\":\"x\"}", "/keeper",
                  "missing");
    check_refused(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":null},\"eats\":\"x\"}",
                  "/keeper/name", "missing");
    try_init(&t); /* a hook may ask to see it */
    check_ok(read_as(&t, &pet_shape, "{" MIN ",\"nick\":null}"), t.err);
    check_str(t.pet.nick_name, "(null)");
    try_done(&t);
}

/* ---- required, minted, not empty ------------------------------------------------------------------------- */

static void what_is_required_must_be_there(void **state)
{
    (void)state;
    check_refused(&pet_shape, "{\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}", "/petId",
                  "missing \"petId\": a pet needs it");
    check_refused(&pet_shape, "{\"petId\":\"p\",\"eats\":\"x\"}", "/keeper", "missing");
    check_refused(&pet_shape, "{" MIN ",\"owner\":{}}", "/owner/name",
                  "missing \"name\": a owner needs it");
    check_refused(&pet_shape, "{" MIN ",\"formerOwners\":[{\"name\":\"a\"},{}]}",
                  "/formerOwners/1/name", "missing");
    check_refused(&pet_shape, "{\"petId\":\"\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}",
                  "/petId", "must not be empty");
}

static void missing_ids_are_minted_if_there_is_a_mint(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    t.r.mint = &t.mint;
    check_ok(read_as(&t, &pet_shape, "{\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}"), t.err);
    assert_int_equal(t.pet.id.n, 36);
    dgm_str first = t.pet.id;
    check_ok(read_as(&t, &pet_shape, "{\"petId\":\"\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}"),
             t.err);
    assert_int_equal(t.pet.id.n, 36);
    assert_false(dgm_str_eq(first, t.pet.id));
    check_ok(read_as(&t, &pet_shape, "{" MIN "}"), t.err);
    check_str(t.pet.id, "p");
    /* only ids are */
    check_fails(read_as(&t, &pet_shape, "{\"keeper\":{},\"eats\":\"x\"}"), DGM_BAD_PARAMS, t.err,
                "/keeper/name");
    try_done(&t);
}

struct box {
    dgm_strs items;
    dgm_str label;
    int side;
    const dgm_extra *extra;
};

static const dgm_field box_fields[] = {
    DGM_F(struct box, items, "items", STRS, DGM_REQUIRED | DGM_NONEMPTY | DGM_STRICT),
    DGM_F(struct box, label, "label", STR, DGM_REQUIRED | DGM_STRICT),
    DGM_F_OF(struct box, side, "side", ENUM, DGM_REQUIRED | DGM_NONEMPTY, &species),
};
static const dgm_shape box_shape = {
    .what = "box",
    .size = sizeof(struct box),
    DGM_FIELDS(box_fields),
    .extra_at = offsetof(struct box, extra),
    .tag_at = DGM_NOWHERE,
    .proto = true,
};

static void strict_readers_ask_for_more(void **state)
{
    static const struct {
        const char *text;
        bool strict;
        const char *refused_at; /* NULL: fine */
    } rows[] = {
        {"{\"items\":[\"x\"],\"label\":\"l\",\"side\":\"CAT\"}", true, NULL},
        {"{\"items\":[],\"label\":\"l\",\"side\":\"CAT\"}", false, NULL},
        {"{\"items\":[],\"label\":\"l\",\"side\":\"CAT\"}", true, "/items"},
        {"{\"label\":\"l\",\"side\":\"CAT\"}", false, "/items"},
        {"{\"items\":[\"x\"],\"side\":\"CAT\"}", false, NULL},
        {"{\"items\":[\"x\"],\"side\":\"CAT\"}", true, "/label"},
        {"{\"items\":[\"x\"],\"label\":\"\",\"side\":\"CAT\"}", true, NULL},
        {"{\"items\":[\"x\"],\"label\":\"l\"}", false, "/side"},
        {"{\"items\":[\"x\"],\"label\":\"l\",\"side\":\"NONE\"}", false, "/side"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct try t;
        struct box box = {0};
        try_init(&t);
        t.r.strict = rows[i].strict;
        yyjson_val *v = dgm_json_parse_trusted(t.a, dgm_str_from(rows[i].text));
        dgm_code rc = dgm_shape_read(&t.r, &box_shape, v, NULL, &box);
        if (rc != (rows[i].refused_at ? DGM_BAD_PARAMS : DGM_OK) ||
            strcmp(t.err.at, rows[i].refused_at ? rows[i].refused_at : "") != 0)
            fail_msg("%s, strict %d: code %d at \"%s\"", rows[i].text, rows[i].strict, rc,
                     t.err.at);
        try_done(&t);
    }
}

/* ---- unions ------------------------------------------------------------------------------------------------ */

static void exactly_one_member_of_a_union(void **state)
{
    (void)state;
    check_refused(&pet_shape,
                  "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\",\"grams\":3}",
                  "/grams", "exactly one of eats, grams, recipe; it has a second one");
    check_refused(&pet_shape,
                  "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\",\"recipe\":null}",
                  "/recipe", "second"); /* null is a value where any JSON is */
    check_refused(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"}}", "",
                  "exactly one of eats, grams, recipe; it has none");
    check_refused(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":null}", "",
                  "none");
    check_round(&plain_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"}}", /* need not be */
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{}}");
}

static void the_member_the_tag_names_is_written_even_when_empty(void **state)
{
    (void)state;
    check_round(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":\"\"}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{},"
                "\"eats\":\"\"}");
    check_round(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"grams\":0}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{},"
                "\"grams\":0}");
    check_round(&pet_shape, "{\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"recipe\":null}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{},"
                "\"recipe\":null}");
}

/* ---- doubles and other names ----------------------------------------------------------------------------------- */

static void a_member_twice_is_refused(void **state)
{
    (void)state;
    check_refused(&pet_shape, "{" MIN ",\"legs\":1,\"legs\":1}", "/legs", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"petId\":\"q\"}", "/petId", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"note\":null,\"note\":1}", "/note", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"strange\":1,\"strange\":1}", "/strange", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"friends\":{\"a\":{},\"b\":{},\"a\":{}}}", "/friends/a",
                  "occurs twice");
    /* null means absent, but twice is twice */
    check_refused(&pet_shape, "{" MIN ",\"legs\":null,\"legs\":1}", "/legs", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"legs\":1,\"legs\":null}", "/legs", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"legs\":null,\"legs\":null}", "/legs", "occurs twice");
    /* whatever came between, in whatever order */
    check_refused(&pet_shape, "{" MIN ",\"tame\":true,\"eats\":\"x\"}", "/eats", "occurs twice");
    check_refused(&pet_shape, "{" MIN ",\"born\":null,\"keeper\":{\"name\":\"l\"}}", "/keeper",
                  "occurs twice");
    check_refused(&pet_shape, "{\"tame\":true,\"?\":1," MIN ",\"tame\":true}", "/tame",
                  "occurs twice");
}

static void members_of_opaque_values_may_be_double(void **state)
{
    (void)state;
    check_round(&pet_shape, "{" MIN ",\"metadata\":{\"a\":1,\"a\":2}}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"metadata\":{\"a\":1,\"a\":2},\"keeper\":{"
                "\"name\":\"k\"},\"address\":{},\"eats\":\"all\"}");
    check_round(&pet_shape, "{" MIN ",\"unknown\":{\"a\":1,\"a\":2}}",
                "{\"type\":\"pet\"," MIN ",\"unknown\":{\"a\":1,\"a\":2}}");
}

static void snake_case_is_read_where_protojson_is(void **state)
{
    (void)state;
    check_round(&pet_shape,
                "{\"pet_id\":\"p\",\"keeper\":{\"name\":\"k\",\"phone_number\":\"1\"},\"eats\":"
                "\"x\",\"former_owners\":[]}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\",\"phoneNumber\":"
                "\"1\"},\"address\":{},\"eats\":\"x\"}");
    check_refused(&pet_shape, "{" MIN ",\"pet_id\":\"q\"}", "/pet_id", "occurs twice");
    check_refused(&plain_shape, "{\"pet_id\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}",
                  "/petId", "missing");
    /* what only looks like it stays unknown */
    check_round(&pet_shape,
                "{" MIN ",\"_legs\":1,\"legs_\":1,\"pet__id\":1,\"a_very_long_name_that_is_in_no_"
                "table_of_ours_at_all\":1}",
                "{\"type\":\"pet\"," MIN ",\"_legs\":1,\"legs_\":1,\"pet__id\":1,\"a_very_long_"
                "name_that_is_in_no_table_of_ours_at_all\":1}");
}

static void another_name_is_read_never_written(void **state)
{
    (void)state;
    check_round(&pet_shape, "{\"identifier\":\"p\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}",
                "{\"type\":\"pet\",\"petId\":\"p\",\"keeper\":{\"name\":\"k\"},\"address\":{},"
                "\"eats\":\"x\"}");
    check_refused(&pet_shape, "{" MIN ",\"identifier\":\"q\"}", "/identifier", "occurs twice");
    check_refused(&pet_shape, "{\"identifier\":\"q\"," MIN "}", "/petId", "occurs twice");
    check_refused(&pet_shape, "{\"identifier\":\"\",\"keeper\":{\"name\":\"k\"},\"eats\":\"x\"}",
                  "/petId", "must not be empty");
}

/* ---- unknown members --------------------------------------------------------------------------------------------- */

static void unknown_members_are_kept_for_their_own_format(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    check_ok(
        read_as(&t, &pet_shape, "{" MIN ",\"x\":1.0,\"owner\":{\"name\":\"o\",\"y\":{\"z\":2}}}"),
        t.err);
    assert_int_equal(t.r.n_unknown, 2);
    dgm_str own = written(&t, &pet_shape, format), foreign = written(&t, &pet_shape, other_format);
    check_str(own, "{\"type\":\"pet\",\"petId\":\"p\",\"owner\":{\"name\":\"o\",\"y\":{\"z\":2}},"
                   "\"keeper\":{\"name\":\"k\"},\"address\":{},\"eats\":\"all\",\"x\":1.0}");
    check_str(foreign, "{\"type\":\"pet\",\"petId\":\"p\",\"owner\":{\"name\":\"o\"},\"keeper\":{"
                       "\"name\":\"k\"},\"address\":{},\"eats\":\"all\"}");
    try_done(&t);
}

static void unknown_members_are_dropped_and_counted_on_request(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    t.r.drop_unknown = true;
    check_ok(read_as(&t, &pet_shape, "{" MIN ",\"x\":1,\"y\":2,\"friends\":{\"a\":{\"z\":3}}}"),
             t.err);
    assert_int_equal(t.r.n_unknown, 3);
    assert_null(t.pet.extra);
    try_done(&t);
}

static void unknown_members_has_a_limit(void **state)
{
    struct try t;
    dgm_buf b;
    (void)state;
    try_init(&t);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{" MIN);
    for (int i = 0; i < DGM_MAX_UNKNOWN_MEMBERS; i++)
        dgm_buf_printf(&b, ",\"u%d\":%d", i, i);
    size_t before = b.n;
    dgm_buf_add(&b, "}", 2);
    check_ok(read_as(&t, &pet_shape, b.p), t.err);
    assert_int_equal(t.pet.extra->n, DGM_MAX_UNKNOWN_MEMBERS);
    check_str(t.pet.extra->at[DGM_MAX_UNKNOWN_MEMBERS - 1].key, "u999");
    b.n = before;
    dgm_buf_add(&b, ",\"one\":1}", 10);
    check_fails(read_as(&t, &pet_shape, b.p), DGM_TOO_LARGE, t.err, "");
    assert_non_null(strstr(t.err.msg, "unknown_members of 1000"));
    t.r.drop_unknown = true; /* what is not kept has no limit */
    check_ok(read_as(&t, &pet_shape, b.p), t.err);
    dgm_buf_done(&b);
    try_done(&t);
}

static void list_items_has_a_limit(void **state)
{
    static const struct {
        const char *open, *item, *close, *at;
    } rows[] = {
        {"{" MIN ",\"tags\":[", "\"\"", "]}", "/tags"},
        {"{" MIN ",\"formerOwners\":[", "{\"name\":\"n\"}", "]}", "/formerOwners"},
    };
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        struct try t;
        dgm_buf b;
        try_init(&t);
        dgm_buf_init(&b, SIZE_MAX);
        dgm_buf_add_str(&b, dgm_str_from(rows[k].open));
        for (int i = 0; i < DGM_MAX_LIST_ITEMS; i++) {
            if (i)
                dgm_buf_add_char(&b, ',');
            dgm_buf_add_str(&b, dgm_str_from(rows[k].item));
        }
        size_t before = b.n;
        dgm_buf_add(&b, rows[k].close, 3);
        check_ok(read_as(&t, &pet_shape, b.p), t.err);
        b.n = before;
        dgm_buf_printf(&b, ",%s%s", rows[k].item, rows[k].close);
        dgm_buf_add(&b, "", 1);
        check_fails(read_as(&t, &pet_shape, b.p), DGM_TOO_LARGE, t.err, rows[k].at);
        assert_non_null(strstr(t.err.msg, "list_items of 100000"));
        dgm_buf_done(&b);
        try_done(&t);
    }
    struct try t; /* a map is a list too */
    dgm_buf b;
    try_init(&t);
    dgm_buf_init(&b, SIZE_MAX);
    dgm_buf_add_lit(&b, "{" MIN ",\"friends\":{");
    for (int i = 0; i <= DGM_MAX_LIST_ITEMS; i++)
        dgm_buf_printf(&b, "%s\"%d\":{}", i ? "," : "", i);
    dgm_buf_add(&b, "}}", 3);
    check_fails(read_as(&t, &pet_shape, b.p), DGM_TOO_LARGE, t.err, "/friends");
    dgm_buf_done(&b);
    try_done(&t);
}

/* ---- single values ------------------------------------------------------------------------------------------------- */

static void wrong_types_say_what_was_expected(void **state)
{
    static const char *const rows[][3] = {
        {"\"petId\":1", "/petId", "expected a string, got a number"},
        {"\"born\":1", "/born", "expected a time like"},
        {"\"born\":\"yesterday\"", "/born", "\"yesterday\" is not a time"},
        {"\"photo\":true", "/photo", "expected base64 text, got a boolean"},
        {"\"photo\":\"???\"", "/photo", "not base64"},
        {"\"tame\":\"true\"", "/tame", "expected true or false, got a string"},
        {"\"tame\":1", "/tame", "expected true or false, got a number"},
        {"\"legs\":{}", "/legs", "expected a whole number, got an object"},
        {"\"legs\":1.5", "/legs", "expected a whole number, got 1.5"},
        {"\"legs\":\"four\"", "/legs", "expected a whole number, got four"},
        {"\"legs\":2147483648", "/legs", "does not fit"},
        {"\"age\":-2147483649", "/age", "does not fit"},
        {"\"species\":\"cat\"", "/species", "unknown species \"cat\""},
        {"\"species\":3", "/species", "unknown species 3"},
        {"\"species\":-1", "/species", "unknown species -1"},
        {"\"species\":\"1\"", "/species", "unknown species"},
        {"\"species\":[]", "/species", "expected a species, got an array"},
        {"\"mood\":0", "/mood", "expected a mood, got a number"},
        {"\"tags\":\"a\"", "/tags", "expected an array of strings, got a string"},
        {"\"tags\":[\"a\",null]", "/tags/1", "expected a string, got null"},
        {"\"metadata\":[]", "/metadata", "expected an object, got an array"},
        {"\"owner\":[]", "/owner", "expected an object (owner), got an array"},
        {"\"keeper\":\"k\"", "/keeper", "expected an object (owner), got a string"},
        {"\"address\":1", "/address", "expected an object (address), got a number"},
        {"\"address\":{\"street\":5}", "/address/street", "expected a string"},
        {"\"formerOwners\":{}", "/formerOwners", "expected an array, got an object"},
        {"\"formerOwners\":[{\"name\":\"a\"},null]", "/formerOwners/1", "got null"},
        {"\"friends\":[]", "/friends", "expected an object, got an array"},
        {"\"friends\":{\"a/b\":{\"since\":1}}", "/friends/a~1b/since", "expected a time"},
        {"\"type\":\"car\"", "/type", "expected \"pet\", got \"car\""},
        {"\"type\":1", "/type", "expected a string"},
        {"\"nick\":1", "/nick", "expected a string"},
    };
    char text[200];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "{%s}", rows[i][0]);
        check_refused(&pet_shape, text, rows[i][1], rows[i][2]);
    }
    check_refused(&pet_shape, "[]", "", "expected an object (pet), got an array");
    check_refused(&pet_shape, "null", "", "expected an object (pet), got null");
}

static void other_forms_of_the_same_value_are_read(void **state)
{
    static const char *const rows[][2] = {
        {"\"legs\":\"4\"", "\"legs\":4"},
        {"\"legs\":-2147483648", "\"legs\":-2147483648"},
        {"\"age\":\"2147483647\"", "\"age\":2147483647"},
        {"\"species\":2", "\"species\":\"DOG\""},
        {"\"species\":\"kitty\"", "\"species\":\"CAT\""},
        {"\"born\":\"2026-01-02T03:04:05+01:00\"", "\"born\":\"2026-01-02T02:04:05Z\""},
        {"\"photo\":\"_-8\"", "\"photo\":\"/+8=\""},
    };
    char text[300], want[300];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(text, sizeof text, "{" MIN ",%s}", rows[i][0]);
        snprintf(want, sizeof want,
                 "{\"type\":\"pet\",\"petId\":\"p\",%s,\"keeper\":{\"name\":\"k\"},\"address\":{},"
                 "\"eats\":\"all\"}",
                 rows[i][1]);
        check_round(&pet_shape, text, want);
    }
}

static void protojson_leaves_defaults_out(void **state)
{
    static const char defaults[] =
        "{" MIN ",\"born\":\"2026-01-02T03:04:05Z\",\"tame\":false,\"vaccinated\":false,\"legs\":0,"
        "\"age\":0,\"species\":\"NONE\",\"tags\":[],\"metadata\":{},\"owner\":{\"name\":"
        "\"o\",\"phoneNumber\":\"\"},\"formerOwners\":[],\"friends\":{}}";
    (void)state;
    check_round(&pet_shape, defaults,
                "{\"type\":\"pet\",\"petId\":\"p\",\"born\":\"2026-01-02T03:04:05Z\","
                "\"vaccinated\":false,\"age\":0,\"metadata\":{},\"owner\":{\"name\":\"o\"},"
                "\"keeper\":{\"name\":\"k\"},\"address\":{},\"eats\":\"all\"}");
    check_round(&plain_shape, defaults,
                "{\"type\":\"pet\",\"petId\":\"p\",\"born\":\"2026-01-02T03:04:05Z\",\"tame\":"
                "false,\"vaccinated\":false,\"age\":0,\"tags\":[],\"metadata\":{},\"owner\":{"
                "\"name\":\"o\"},\"keeper\":{\"name\":\"k\"},\"address\":{},\"formerOwners\":[],"
                "\"friends\":{},\"eats\":\"all\"}");
}

static void errors_cost_no_error_struct(void **state)
{
    struct try t;
    (void)state;
    try_init(&t);
    t.r.err = NULL;
    assert_int_equal(read_as(&t, &pet_shape, "{}"), DGM_BAD_PARAMS);
    assert_int_equal(read_as(&t, &pet_shape, "{" MIN ",\"legs\":{}}"), DGM_BAD_PARAMS);
    try_done(&t);
}

static void text_that_hides_json_stays_text(void **state)
{
    (void)state;
    /* commas are placed by looking at the last byte written */
    check_round(&pet_shape,
                "{\"petId\":\"{\",\"keeper\":{\"name\":\"[\"},\"eats\":\",\",\"tags\":[\"{\",\"[\"]"
                ",\"u{\":\"[\"}",
                "{\"type\":\"pet\",\"petId\":\"{\",\"tags\":[\"{\",\"[\"],\"keeper\":{\"name\":\"["
                "\"},\"address\":{},\"eats\":\",\",\"u{\":\"[\"}");
}

static void base64_pieces_join(void **state)
{
    static const struct {
        const char *first, *more, *want;
    } rows[] = {{"aGVs", "bG8=", "aGVsbG8="},
                {"aA==", "aQ==", "aGk="},
                {"aGk=", "IQ==", "aGkh"},
                {"", "aGk=", "aGk="},
                {"aGk=", "", "aGk="},
                {"aA==", "aSE=", "aGkh"},
                {"aGVsbG8=", "IHdvcmxk", "aGVsbG8gd29ybGQ="}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str more, first = dgm_str_from(rows[i].first);
        size_t stays = dgm_base64_join(a, first, dgm_str_from(rows[i].more), &more);
        check_str(dgm_arena_printf(a, "%.*s%.*s", (int)stays, first.p, DGM_P(more)), rows[i].want);
    }
}

DGM_TEST_MAIN(dgm_test(base64_pieces_join), dgm_test(every_kind_of_member_round_trips),
              dgm_test(order_does_not_matter), dgm_test(any_order_is_written_in_ours),
              dgm_test(the_limit_of_the_buffer_holds), dgm_test(values_arrive_in_the_struct),
              dgm_test(null_means_absent_except_for_json), dgm_test(what_is_required_must_be_there),
              dgm_test(missing_ids_are_minted_if_there_is_a_mint),
              dgm_test(strict_readers_ask_for_more), dgm_test(exactly_one_member_of_a_union),
              dgm_test(the_member_the_tag_names_is_written_even_when_empty),
              dgm_test(a_member_twice_is_refused), dgm_test(members_of_opaque_values_may_be_double),
              dgm_test(snake_case_is_read_where_protojson_is),
              dgm_test(another_name_is_read_never_written),
              dgm_test(unknown_members_are_kept_for_their_own_format),
              dgm_test(unknown_members_are_dropped_and_counted_on_request),
              dgm_test(unknown_members_has_a_limit), dgm_test(list_items_has_a_limit),
              dgm_test(wrong_types_say_what_was_expected),
              dgm_test(other_forms_of_the_same_value_are_read),
              dgm_test(protojson_leaves_defaults_out), dgm_test(errors_cost_no_error_struct),
              dgm_test(text_that_hides_json_stays_text))
