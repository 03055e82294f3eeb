/* wire/agui/agui_proto_value.c - fields of protobuf, and open JSON in it. */
#include "base/limits.h"
#include "wire/agui/agui_proto_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef pb_reading R;

void dgm_pb_fail(R *r, const char *why)
{
    if (!r->rc)
        r->rc = dgm_fail(r->err, DGM_BAD_PARAMS, NULL, "no AG-UI event in protobuf: %s", why);
}

/* ---- fields ------------------------------------------------------------------------------------------------ */

static bool get_varint(dgm_str *s, uint64_t *ret)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64 && s->n; shift += 7) {
        unsigned char c = (unsigned char)*s->p;
        s->p++, s->n--;
        n |= (uint64_t)(c & 0x7f) << shift;
        if (!(c & 0x80)) {
            *ret = n;
            return true;
        }
    }
    return false;
}

static bool get_fixed(dgm_str *s, size_t size, uint64_t *ret)
{
    if (s->n < size)
        return false;
    *ret = 0;
    for (size_t i = 0; i < size; i++)
        *ret |= (uint64_t)(unsigned char)s->p[i] << (8 * i);
    s->p += size, s->n -= size;
    return true;
}

bool dgm_pb_next(dgm_str *s, pb_found *ret)
{
    uint64_t tag, n = 0;
    dgm_str at = *s;
    if (!at.n || !get_varint(&at, &tag) || tag >> 3 == 0 || tag >> 3 > 536870911)
        return false;
    *ret = (pb_found){.number = (unsigned)(tag >> 3), .wire = (unsigned)(tag & 7)};
    switch (ret->wire) {
    case 0:
        if (!get_varint(&at, &ret->n))
            return false;
        break;
    case 1:
    case 5:
        if (!get_fixed(&at, ret->wire == 1 ? 8 : 4, &ret->n))
            return false;
        break;
    case 2:
        if (!get_varint(&at, &n) || n > at.n)
            return false;
        ret->bytes = (dgm_str){at.p, (size_t)n};
        at.p += n, at.n -= n;
        break;
    default: return false; /* groups are of another age */
    }
    *s = at;
    return true;
}

bool dgm_pb_is_whole(dgm_str message)
{
    pb_found f;
    while (dgm_pb_next(&message, &f))
        continue;
    return message.n == 0;
}

bool dgm_pb_find(dgm_str message, unsigned number, unsigned wire, pb_found *ret)
{
    pb_found f;
    bool found = false;
    while (dgm_pb_next(&message, &f)) {
        if (f.number == number && f.wire == wire) {
            *ret = f;
            found = true;
        }
    }
    return found;
}

/* ---- open JSON ------------------------------------------------------------------------------------------------ */

void dgm_pb_put_text(R *r, dgm_str s)
{
    if (dgm_utf8_check(s) != s.n)
        dgm_pb_fail(r, "a text is not UTF-8");
    else
        dgm_json_put_str(r->out, s);
}

/* The shortest decimal that is read as the same number. */
static void put_number(R *r, double d)
{
    char text[40];
    int n = 0;
    if (!isfinite(d)) {
        dgm_buf_add_lit(r->out, "null"); /* JSON has none */
        return;
    }
    if (fabs(d) < 9007199254740992.0 && d == (double)(int64_t)d && !(d == 0 && signbit(d))) {
        dgm_json_put_int(r->out, (int64_t)d);
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        n = snprintf(text, sizeof text, "%.*g", precision, d);
        if (strtod(text, NULL) == d)
            break;
    }
    for (int i = 0; i < n; i++) /* the host's locale */
        text[i] = text[i] == ',' ? '.' : text[i];
    dgm_buf_add(r->out, text, (size_t)n);
}

void dgm_pb_put_struct(R *r, dgm_str message)
{
    pb_found f, key, value;
    dgm_buf_add_char(r->out, '{');
    while (!r->rc && dgm_pb_next(&message, &f)) {
        if (f.number != 1 || f.wire != 2)
            continue;
        if (!dgm_pb_is_whole(f.bytes)) {
            dgm_pb_fail(r, "an entry is cut short");
            return;
        }
        if (!dgm_pb_find(f.bytes, 2, 2, &value))
            continue;
        if (r->out->p[r->out->n - 1] != '{')
            dgm_buf_add_char(r->out, ',');
        dgm_pb_put_text(r, dgm_pb_find(f.bytes, 1, 2, &key) ? key.bytes : DGM_STR(""));
        dgm_buf_add_char(r->out, ':');
        dgm_pb_put_value(r, value.bytes);
    }
    dgm_buf_add_char(r->out, '}');
    if (message.n)
        dgm_pb_fail(r, "an object is cut short");
}

static void agui_proto_value_put_list(R *r, dgm_str message)
{
    pb_found f;
    dgm_buf_add_char(r->out, '[');
    while (!r->rc && dgm_pb_next(&message, &f)) {
        if (f.number != 1 || f.wire != 2)
            continue;
        if (r->out->p[r->out->n - 1] != '[')
            dgm_buf_add_char(r->out, ',');
        dgm_pb_put_value(r, f.bytes);
    }
    dgm_buf_add_char(r->out, ']');
    if (message.n)
        dgm_pb_fail(r, "a list is cut short");
}

void dgm_pb_put_value(R *r, dgm_str message)
{
    pb_found f, last = {0};
    if (++r->depth > DGM_MAX_JSON_DEPTH)
        dgm_pb_fail(r, "it nests deeper than the limit json_depth");
    while (!r->rc && dgm_pb_next(&message, &f))
        last = f;
    if (message.n)
        dgm_pb_fail(r, "a value is cut short");
    if (r->rc)
        return;
    if (last.number == 2 && last.wire == 1) {
        double d;
        memcpy(&d, &last.n, sizeof d);
        put_number(r, d);
    } else if (last.number == 3 && last.wire == 2) {
        dgm_pb_put_text(r, last.bytes);
    } else if (last.number == 4 && last.wire == 0) {
        dgm_buf_add_str(r->out, last.n ? DGM_STR("true") : DGM_STR("false"));
    } else if (last.number == 5 && last.wire == 2) {
        dgm_pb_put_struct(r, last.bytes);
    } else if (last.number == 6 && last.wire == 2) {
        agui_proto_value_put_list(r, last.bytes);
    } else {
        dgm_buf_add_lit(r->out, "null");
    }
    r->depth--;
}
