/* wire/agui/agui_proto_write.c - JSON to protobuf by the tables. */
#include "wire/agui/agui_proto_int.h"

enum wire { VARINT = 0, FIXED64 = 1, BYTES = 2 };

/* ---- scalars ---------------------------------------------------------------------------------------------- */

static void put_varint(dgm_buf *b, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        dgm_buf_add_char(b, (char)(n | 0x80));
    dgm_buf_add_char(b, (char)n);
}

static void put_tag(dgm_buf *b, unsigned number, enum wire wire)
{
    put_varint(b, (uint64_t)number << 3 | wire);
}

static void agui_proto_write_put_text(dgm_buf *b, unsigned number, dgm_str s)
{
    put_tag(b, number, BYTES);
    put_varint(b, s.n);
    dgm_buf_add_str(b, s);
}

/* What is written between begin and end has its length in front: most need one byte for it. */
static size_t begin_message(dgm_buf *b, unsigned number)
{
    put_tag(b, number, BYTES);
    dgm_buf_add_char(b, 0);
    return b->n;
}

static void end_message(dgm_buf *b, size_t from)
{
    size_t n = b->n - from, more = 0;
    char length[10];
    if (b->over)
        return;
    for (size_t rest = n; rest >= 0x80; rest >>= 7)
        length[more++] = (char)(rest | 0x80);
    length[more] = (char)(n >> (7 * more));
    if (more && !dgm_buf_room(b, more))
        return;
    memmove(b->p + from + more, b->p + from, n);
    memcpy(b->p + from - 1, length, more + 1);
    b->n += more;
}

/* ---- open JSON ---------------------------------------------------------------------------------------------- */

/* Independent of the locale, which may have another decimal point. */
static double number_of(const yyjson_val *v)
{
    char text[512]; /* longer ones have no more digits that count */
    dgm_str s = dgm_json_str(v);
    yyjson_val number = {0};
    size_t n = s.n < sizeof text - 1 ? s.n : sizeof text - 1;
    memcpy(text, s.p, n);
    text[n] = '\0';
    if (!yyjson_read_number(text, &number, YYJSON_READ_ALLOW_INF_AND_NAN, NULL, NULL))
        return 0;
    return yyjson_get_num(&number);
}

static void put_value(dgm_buf *b, unsigned number, const yyjson_val *v);

static void put_struct(dgm_buf *b, unsigned number, const yyjson_val *v)
{
    size_t at = begin_message(b, number), i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach ((yyjson_val *)(uintptr_t)v, i, n, key, value) {
        size_t entry = begin_message(b, 1);
        if (dgm_json_str(key).n)
            agui_proto_write_put_text(b, 1, dgm_json_str(key));
        put_value(b, 2, value);
        end_message(b, entry);
    }
    end_message(b, at);
}

static void agui_proto_write_put_list(dgm_buf *b, unsigned number, const yyjson_val *v)
{
    size_t at = begin_message(b, number), i, n;
    yyjson_val *one;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)v, i, n, one)
        put_value(b, 1, one);
    end_message(b, at);
}

static void put_value(dgm_buf *b, unsigned number, const yyjson_val *v)
{
    yyjson_val *it = (yyjson_val *)(uintptr_t)v;
    size_t at = begin_message(b, number);
    if (yyjson_is_str(it)) {
        agui_proto_write_put_text(b, 3, dgm_json_str(v));
    } else if (yyjson_is_raw(it)) {
        double d = number_of(v);
        uint64_t bits;
        memcpy(&bits, &d, sizeof bits);
        put_tag(b, 2, FIXED64);
        for (int i = 0; i < 64; i += 8)
            dgm_buf_add_char(b, (char)(bits >> i));
    } else if (yyjson_is_bool(it)) {
        put_tag(b, 4, VARINT);
        put_varint(b, yyjson_is_true(it));
    } else if (yyjson_is_obj(it)) {
        put_struct(b, 5, v);
    } else if (yyjson_is_arr(it)) {
        agui_proto_write_put_list(b, 6, v);
    } else {
        put_tag(b, 1, VARINT); /* null */
        put_varint(b, 0);
    }
    end_message(b, at);
}

/* ---- messages by table ----------------------------------------------------------------------------------------- */

static void put_members(dgm_buf *b, const pb_message *m, const yyjson_val *v);

static void put_one(dgm_buf *b, unsigned number, const pb_message *m, const yyjson_val *v)
{
    size_t at = begin_message(b, number);
    put_members(b, m, v);
    end_message(b, at);
}

/* false: the union has no arm of that type. */
static bool put_arm(dgm_buf *b, const pb_message *m, const yyjson_val *v)
{
    const yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    for (size_t i = 0; type && yyjson_is_str((yyjson_val *)(uintptr_t)type) && i < m->n; i++) {
        if (!dgm_str_eq(dgm_str_from(m->fields[i].name), dgm_json_str(type)))
            continue;
        put_one(b, m->fields[i].number, m->fields[i].of, v);
        return true;
    }
    return false;
}

static void put_enum(dgm_buf *b, const pb_field *f, const yyjson_val *v)
{
    for (size_t i = 0; f->names[i]; i++) {
        if (!dgm_str_eq(dgm_str_from(f->names[i]), dgm_json_str(v)) || !i)
            continue;
        put_tag(b, f->number, VARINT);
        put_varint(b, i);
    }
}

static void put_many(dgm_buf *b, const pb_field *f, const yyjson_val *v)
{
    size_t i, n;
    yyjson_val *one;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)v, i, n, one) {
        if (f->kind == PB_MANY && yyjson_is_obj(one))
            put_one(b, f->number, f->of, one);
        else if (f->kind == PB_STRS && yyjson_is_str(one))
            agui_proto_write_put_text(b, f->number, dgm_json_str(one));
    }
}

static void put_field(dgm_buf *b, const pb_field *f, const yyjson_val *holder)
{
    yyjson_val *v = dgm_json_get(f->in ? dgm_json_get(holder, dgm_str_from(f->in)) : holder,
                                 dgm_str_from(f->name));
    int64_t number;
    if (!v)
        return;
    switch ((pb_kind)f->kind) {
    case PB_STR:
    case PB_OPT:
        if (yyjson_is_str(v) && (f->kind == PB_OPT || dgm_json_str(v).n))
            agui_proto_write_put_text(b, f->number, dgm_json_str(v));
        break;
    case PB_INT:
        if (yyjson_is_raw(v) && dgm_json_int(v, &number)) {
            put_tag(b, f->number, VARINT);
            put_varint(b, (uint64_t)number);
        }
        break;
    case PB_BOOL:
        if (yyjson_is_bool(v)) {
            put_tag(b, f->number, VARINT);
            put_varint(b, yyjson_is_true(v));
        }
        break;
    case PB_ENUM:
        if (yyjson_is_str(v))
            put_enum(b, f, v);
        break;
    case PB_VALUE: put_value(b, f->number, v); break;
    case PB_STRUCT:
        if (yyjson_is_obj(v))
            put_struct(b, f->number, v);
        break;
    case PB_ONE:
        if (yyjson_is_obj(v))
            put_one(b, f->number, f->of, v);
        break;
    case PB_MANY:
    case PB_STRS: put_many(b, f, v); break;
    case PB_BASE: break;
    }
}

/* Type and what every event may have. */
static void put_base(dgm_buf *b, const pb_field *f, const yyjson_val *event)
{
    size_t at = begin_message(b, f->number);
    unsigned number = dgm_pb_event_number(dgm_json_str(dgm_json_get(event, DGM_STR("type"))));
    if (number) {
        put_tag(b, 1, VARINT);
        put_varint(b, number);
    }
    put_members(b, f->of, event);
    end_message(b, at);
}

static void put_members(dgm_buf *b, const pb_message *m, const yyjson_val *v)
{
    if (m->one_of) {
        put_arm(b, m, v);
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->fields[i].kind == PB_BASE)
            put_base(b, &m->fields[i], v);
        else
            put_field(b, &m->fields[i], v);
    }
}

bool dgm_agui_proto_write(dgm_buf *out, const yyjson_val *event)
{
    size_t at = out->n;
    dgm_buf_add(out, "\0\0\0\0", DGM_AGUI_PROTO_HEAD);
    if (!put_arm(out, &dgm_pb_event, event)) {
        out->n = at;
        return false;
    }
    size_t n = out->n - at - DGM_AGUI_PROTO_HEAD;
    for (int i = 0; !out->over && i < DGM_AGUI_PROTO_HEAD; i++)
        out->p[at + (size_t)i] = (char)(n >> (24 - 8 * i));
    return true;
}
