/*
 * wire/agui/agui_proto_read.c - protobuf to JSON by the tables.
 *
 * Fields may come in any order, and lists in several pieces. So the message is walked once for every row of a table:
 * a field is skipped in one step, and no memory is needed. Every skipped field was checked before.
 */
#include "base/limits.h"
#include "wire/agui/agui_proto_int.h"

typedef pb_reading R;

static void put_object(R *r, const pb_message *m, dgm_str message);
static void put_members(R *r, const pb_message *m, dgm_str message, const char *in);

static void agui_proto_read_put_key(R *r, const char *name)
{
    char last = r->out->n ? r->out->p[r->out->n - 1] : '{';
    if (last != '{')
        dgm_buf_add_char(r->out, ',');
    dgm_json_put_str(r->out, dgm_str_from(name));
    dgm_buf_add_char(r->out, ':');
}

static unsigned wire_of(pb_kind kind)
{
    return kind == PB_INT || kind == PB_BOOL || kind == PB_ENUM ? 0 : 2;
}

static void put_many(R *r, const pb_field *f, dgm_str message)
{
    pb_found one;
    dgm_buf_add_char(r->out, '[');
    while (!r->rc && dgm_pb_next(&message, &one)) {
        if (one.number != f->number || one.wire != 2)
            continue;
        size_t before = r->out->n;
        if (r->out->p[r->out->n - 1] != '[')
            dgm_buf_add_char(r->out, ',');
        size_t start = r->out->n;
        if (f->kind == PB_STRS)
            dgm_pb_put_text(r, one.bytes);
        else
            put_object(r, f->of, one.bytes);
        if (r->out->n == start) /* an arm of a later protocol */
            r->out->n = before;
    }
    dgm_buf_add_char(r->out, ']');
}

static void put_found(R *r, const pb_field *f, const pb_found *found, dgm_str message)
{
    size_t before = r->out->n;
    agui_proto_read_put_key(r, f->name);
    size_t start = r->out->n;
    switch ((pb_kind)f->kind) {
    case PB_STR:
    case PB_OPT: dgm_pb_put_text(r, found->bytes); break;
    case PB_INT: dgm_json_put_int(r->out, (int64_t)found->n); break;
    case PB_BOOL: dgm_buf_add_str(r->out, found->n ? DGM_STR("true") : DGM_STR("false")); break;
    case PB_ENUM: {
        size_t known = 0;
        while (f->names[known])
            known++;
        if (found->n >= known)
            dgm_json_put_str(r->out, DGM_STR("unknown"));
        else
            dgm_json_put_str(r->out, dgm_str_from(f->names[found->n]));
        break;
    }
    case PB_VALUE: dgm_pb_put_value(r, found->bytes); break;
    case PB_STRUCT: dgm_pb_put_struct(r, found->bytes); break;
    case PB_ONE: put_object(r, f->of, found->bytes); break;
    case PB_MANY:
    case PB_STRS: put_many(r, f, message); break;
    case PB_BASE: break;
    }
    if (r->out->n == start)
        r->out->n = before;
}

static bool same_in(const pb_field *f, const char *in)
{
    return in == f->in || (in && f->in && strcmp(in, f->in) == 0);
}

static bool has_any_in(const pb_message *m, dgm_str message, const char *in)
{
    pb_found found;
    for (size_t i = 0; i < m->n; i++) {
        if (m->fields[i].in && same_in(&m->fields[i], in) &&
            dgm_pb_find(message, m->fields[i].number, 2, &found) && found.bytes.n)
            return true;
    }
    return false;
}

/* Lists that the JSON must have, empty ones too: of messages, of a patch. */
static bool is_list_needed(const pb_field *f)
{
    return f->kind == PB_MANY && (strcmp(f->name, "messages") == 0 ||
                                  strcmp(f->name, "delta") == 0 || strcmp(f->name, "patch") == 0);
}

static void agui_proto_read_put_member(R *r, const pb_field *f, dgm_str message)
{
    pb_found found = {0};
    if (dgm_pb_find(message, f->number, wire_of((pb_kind)f->kind), &found)) {
        if (f->kind == PB_BASE) {
            if (!dgm_pb_is_whole(found.bytes))
                dgm_pb_fail(r, "the base is cut short");
            else
                put_members(r, f->of, found.bytes, NULL);
        } else {
            put_found(r, f, &found, message);
        }
    } else if (f->kind == PB_STR && !f->in) {
        agui_proto_read_put_key(r, f->name);
        dgm_buf_add_lit(r->out, "\"\"");
    } else if (f->kind == PB_ENUM) {
        agui_proto_read_put_key(r, f->name);
        dgm_json_put_str(r->out, dgm_str_from(f->names[0]));
    } else if (is_list_needed(f)) {
        agui_proto_read_put_key(r, f->name);
        dgm_buf_add_lit(r->out, "[]");
    }
}

static void put_members(R *r, const pb_message *m, dgm_str message, const char *in)
{
    const char *last_in = NULL;
    for (size_t i = 0; !r->rc && i < m->n; i++) {
        const pb_field *f = &m->fields[i];
        if (same_in(f, in)) {
            agui_proto_read_put_member(r, f, message);
        } else if (!in && f->in && !(last_in && strcmp(last_in, f->in) == 0)) {
            last_in = f->in; /* the first row of a nested object writes the complete object */
            if (!has_any_in(m, message, f->in))
                continue;
            agui_proto_read_put_key(r, f->in);
            dgm_buf_add_char(r->out, '{');
            put_members(r, m, message, f->in);
            dgm_buf_add_char(r->out, '}');
        }
    }
}

/* Content may be empty parts, of which nothing is on the wire. */
static bool lacks_content(const pb_message *m, dgm_str message)
{
    pb_found found;
    dgm_str role = dgm_pb_find(message, 2, 2, &found) ? found.bytes : (dgm_str){0};
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->fields[i].name, "content") == 0 &&
            dgm_pb_find(message, m->fields[i].number, 2, &found))
            return false;
    }
    return strcmp(m->what, "message") != 0 || dgm_str_is(role, "user") || dgm_str_is(role, "tool");
}

/* The arm of a oneof; nothing is written for one that we do not know. */
static void put_arm(R *r, const pb_message *m, dgm_str message)
{
    pb_found f, found = {0};
    const pb_field *arm = NULL;
    while (dgm_pb_next(&message, &f)) {
        for (size_t i = 0; f.wire == 2 && i < m->n; i++) {
            if (m->fields[i].number != f.number)
                continue;
            if (arm)
                dgm_pb_fail(r, "it is several things at once");
            arm = &m->fields[i];
            found = f;
        }
    }
    if (!arm || r->rc)
        return;
    if (!dgm_pb_is_whole(found.bytes)) {
        dgm_pb_fail(r, "a message is cut short");
        return;
    }
    dgm_buf_add_lit(r->out, "{\"type\":");
    dgm_json_put_str(r->out, dgm_str_from(arm->name));
    put_members(r, arm->of, found.bytes, NULL);
    if (arm->of->content && lacks_content(arm->of, found.bytes))
        dgm_buf_add_lit(r->out, ",\"content\":[]");
    dgm_buf_add_char(r->out, '}');
}

static void put_object(R *r, const pb_message *m, dgm_str message)
{
    if (++r->depth > DGM_MAX_JSON_DEPTH)
        dgm_pb_fail(r, "it nests deeper than the limit json_depth");
    if (!r->rc && !dgm_pb_is_whole(message))
        dgm_pb_fail(r, "a message is cut short");
    if (r->rc)
        return;
    if (m->one_of) {
        put_arm(r, m, message);
    } else {
        dgm_buf_add_char(r->out, '{');
        put_members(r, m, message, NULL);
        if (m->content && lacks_content(m, message)) {
            agui_proto_read_put_key(r, "content");
            dgm_buf_add_lit(r->out, "[]");
        }
        dgm_buf_add_char(r->out, '}');
    }
    r->depth--;
}

size_t dgm_agui_proto_length(const char head[DGM_AGUI_PROTO_HEAD])
{
    size_t n = 0;
    for (int i = 0; i < DGM_AGUI_PROTO_HEAD; i++)
        n = n << 8 | (unsigned char)head[i];
    return n;
}

dgm_code dgm_agui_proto_read(dgm_str message, dgm_buf *out, bool *ret_known, dgm_err *err)
{
    R r = {.out = out, .err = err};
    size_t before = out->n;
    if (!message.n)
        dgm_pb_fail(&r, "the frame is empty");
    put_object(&r, &dgm_pb_event, message);
    if (!r.rc && out->over)
        r.rc = dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "the event becomes longer than the limit output_bytes of %zu",
                        DGM_MAX_OUTPUT_BYTES);
    *ret_known = !r.rc && out->n > before;
    if (r.rc)
        out->n = before;
    return r.rc;
}
