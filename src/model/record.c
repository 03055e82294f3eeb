/* model/record.c - events as immutable bytes. */
#include "model/record.h"
#include "base/limits.h"
#include "base/spare.h"
#include "model/form.h"
#include "json/copy_clean.h"

#include <stdlib.h>

/* Writers ask for a little more room than they use; the limit is looked at afterwards. */
#define WRITER_SLACK 256

static bool is_ascii(dgm_str s)
{
    uint64_t all = 0, eight;
    size_t i = 0;
    for (; s.n - i >= sizeof eight; i += sizeof eight) {
        memcpy(&eight, s.p + i, sizeof eight);
        all |= eight;
    }
    for (; i < s.n; i++)
        all |= (unsigned char)s.p[i] & 0x80;
    return !(all & UINT64_C(0x8080808080808080));
}

static size_t record_size(size_t n_bytes)
{
    size_t size = offsetof(dgm_record, bytes) + n_bytes + 1;
    return size > sizeof(dgm_record) ? size : sizeof(dgm_record);
}

/* A Task collects what many events have brought. */
static size_t record_limit(dgm_event_kind kind)
{
    return kind == DGM_EVENT_TASK ? DGM_MAX_TASK_BYTES : DGM_MAX_RECORD_BYTES;
}

static dgm_code make(dgm_record_head head, dgm_str bytes, dgm_record **ret_record, dgm_err *err)
{
    size_t max = record_limit(head.kind);
    if (bytes.n > max)
        return dgm_fail(err, DGM_TOO_LARGE, NULL,
                        "an event of %zu bytes, more than the limit %s of %zu: send it in "
                        "several chunks",
                        bytes.n, head.kind == DGM_EVENT_TASK ? "task_bytes" : "record_bytes", max);
    dgm_record *r = dgm_spare_alloc(record_size(bytes.n));
    r->head = head;
    atomic_init(&r->refs, 1);
    atomic_init(&r->payloads, NULL);
    r->n = (uint32_t)bytes.n;
    r->text_at = r->text_n = 0;
    r->block = NULL;
    r->is_ascii = r->plain_ids = false;
    if (bytes.n)
        memcpy(r->bytes, bytes.p, bytes.n);
    r->bytes[bytes.n] = 0;
    *ret_record = r;
    return DGM_OK;
}

/* Only what others nested is deep: values that we pass on without looking into them. Most records have none but metadata
 * without lists and objects in it. */
static bool nests(const dgm_json *value)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)value);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it)) && !yyjson_is_ctn(yyjson_obj_iter_get_val(key)))
        ;
    return key || yyjson_is_arr((yyjson_val *)(uintptr_t)value);
}

/* Of a message or an artifact. */
static bool content_nests(dgm_parts parts, const dgm_json *metadata, const dgm_extra *extra)
{
    for (size_t i = 0; i < parts.n; i++) {
        const dgm_part *part = &parts.at[i];
        if (part->data || part->metadata || part->extra || part->nested_extra)
            return true;
    }
    return nests(metadata) || extra;
}

static bool may_be_deep(const dgm_event *event, size_t n)
{
    if (n <= 2 * DGM_MAX_JSON_DEPTH)
        return false;
    bool deep = event->extra != NULL;
    if (event->kind == DGM_EVENT_ARTIFACT) {
        const dgm_artifact_update *u = event->artifact;
        const dgm_artifact *x = &u->artifact;
        return deep || content_nests(x->parts, x->metadata, x->extra) || u->metadata || u->extra;
    }
    if (event->kind == DGM_EVENT_STATUS) {
        const dgm_status_update *u = event->status;
        const dgm_message *m = u->status.message;
        return deep || nests(u->metadata) || u->extra || u->status.extra ||
               (m && content_nests(m->parts, m->metadata, m->extra));
    }
    if (event->kind != DGM_EVENT_TASK)
        return true;
    const dgm_task *t = event->task;
    const dgm_message *m = t->status.message, *history = t->history.at;
    deep |= nests(t->metadata) || t->extra || t->status.extra ||
            (m && content_nests(m->parts, m->metadata, m->extra));
    for (size_t i = 0; i < t->history.n && !deep; i++)
        deep = content_nests(history[i].parts, history[i].metadata, history[i].extra);
    for (size_t i = 0; i < t->artifacts.n && !deep; i++) {
        const dgm_artifact *x = &t->artifacts.at[i];
        deep = content_nests(x->parts, x->metadata, x->extra);
    }
    return deep;
}

/* A streamed chunk: one text part and no optional member but append and lastChunk. Most records are such. */
static bool is_plain_chunk(const dgm_event *event)
{
    const dgm_artifact_update *u = event->artifact;
    if (event->kind != DGM_EVENT_ARTIFACT || event->extra || u->metadata || u->extra)
        return false;
    const dgm_artifact *x = &u->artifact;
    const dgm_part *part = x->parts.at;
    return x->parts.n == 1 && !x->name.n && !x->description.n && !x->metadata && !x->extensions.n &&
           !x->extra && part->kind == DGM_PART_TEXT && !part->filename.n && !part->media_type.n &&
           !part->metadata && !part->extra && !part->nested_extra;
}

#define TASK_KEY "{\"artifactUpdate\":{\"taskId\":\""
#define CONTEXT_KEY "\",\"contextId\":\""
#define ARTIFACT_KEY "\",\"artifact\":{"
#define ID_KEY "\"artifactId\":\""
#define TEXT_KEY "\",\"parts\":[{\"text\":\""
#define AFTER_TEXT "\"}]}"
#define APPEND ",\"append\":true"
#define LAST ",\"lastChunk\":true"

/* Several times faster than the tables of form.c. Returns where the text starts. ret_text_n: as in the record. */
static size_t write_plain_chunk(dgm_buf *out, const dgm_artifact_update *u, uint32_t *ret_text_n)
{
    dgm_str text = u->artifact.parts.at->content;
    dgm_buf_add_lit(out, TASK_KEY);
    dgm_json_put_chars(out, u->task_id);
    dgm_buf_add_lit(out, CONTEXT_KEY);
    dgm_json_put_chars(out, u->context_id);
    dgm_buf_add_lit(out, ARTIFACT_KEY ID_KEY);
    dgm_json_put_chars(out, u->artifact.artifact_id);
    dgm_buf_add_lit(out, TEXT_KEY);
    size_t text_at = out->n;
    dgm_json_put_chars(out, text);
    *ret_text_n = out->n - text_at == text.n ? (uint32_t)text.n : UINT32_MAX;
    dgm_buf_add_lit(out, AFTER_TEXT);
    if (u->append == DGM_TRUE)
        dgm_buf_add_lit(out, APPEND);
    if (u->last_chunk == DGM_TRUE)
        dgm_buf_add_lit(out, LAST);
    dgm_buf_add_lit(out, "}}");
    return text_at;
}

/* Memory of several records, freed with the last one. */
struct dgm_record_block {
    _Atomic uint32_t refs; /* the records in it */
    uint32_t n, cap;       /* bytes of data: used by the owner of the log alone */
    uint32_t n_records;    /* it has room for so many of the first one's size */
    _Alignas(dgm_record) char data[];
};

#define FIRST_RECORDS 4
#define MOST_RECORDS 32
#define BLOCK_BYTES ((size_t)16 << 10) /* larger ones hold one record */

#define ALIGNED(n) (((n) + _Alignof(dgm_record) - 1) & ~(_Alignof(dgm_record) - 1))

/* Behind the record before it, if there is room; else in a new block with room for twice as many. */
static dgm_record *alloc_behind(const dgm_record *before, size_t size)
{
    struct dgm_record_block *b = before->block;
    if (!b || b->cap - b->n < size) {
        uint32_t n = !b                            ? FIRST_RECORDS
                     : b->n_records < MOST_RECORDS ? 2 * b->n_records
                                                   : MOST_RECORDS;
        if (n * size > BLOCK_BYTES)
            n = 1;
        b = dgm_xmalloc(sizeof *b + n * size);
        *b = (struct dgm_record_block){.cap = (uint32_t)(n * size), .n_records = n};
    }
    dgm_record *r = (dgm_record *)(void *)(b->data + b->n);
    r->block = b;
    b->n += (uint32_t)size;
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return r;
}

dgm_record *dgm_record_next_chunk(const dgm_record *before, const dgm_event *event,
                                  dgm_record_head head)
{
    enum { LONGEST_END = sizeof AFTER_TEXT APPEND LAST "}}" };
    if (!before->text_at || !is_plain_chunk(event))
        return NULL;
    const dgm_artifact_update *u = event->artifact;
    dgm_str id = u->artifact.artifact_id, text = u->artifact.parts.at->content;
    /* The artifact of the record before it. An id that needs escapes differs from its text there. */
    size_t around = sizeof ID_KEY - 1 + sizeof TEXT_KEY - 1;
    if (id.n + around > before->text_at ||
        text.n > DGM_MAX_RECORD_BYTES - LONGEST_END - before->text_at)
        return NULL;
    const char *key = before->bytes + before->text_at - around - id.n;
    unsigned high = 0;
    if (memcmp(key, ID_KEY, sizeof ID_KEY - 1) != 0 ||
        memcmp(key + sizeof ID_KEY - 1, id.p, id.n) != 0 ||
        dgm_span_clean(text.p, text.n, &high) < text.n)
        return NULL;
    size_t most = before->text_at + text.n + LONGEST_END;
    dgm_record *r = alloc_behind(before, ALIGNED(offsetof(dgm_record, bytes) + most));
    memcpy(r->bytes, before->bytes, before->text_at);
    char *to = r->bytes + before->text_at;
    if (text.n)
        memcpy(to, text.p, text.n);
    to = stpcpy(to + text.n, AFTER_TEXT);
    if (u->append == DGM_TRUE)
        to = stpcpy(to, APPEND);
    if (u->last_chunk == DGM_TRUE)
        to = stpcpy(to, LAST);
    to = stpcpy(to, "}}");
    head.kind = DGM_EVENT_ARTIFACT;
    head.state = DGM_STATE_UNKNOWN;
    r->head = head;
    atomic_init(&r->refs, 1);
    atomic_init(&r->payloads, NULL);
    r->n = (uint32_t)(to - r->bytes);
    r->text_at = before->text_at;
    r->text_n = (uint32_t)text.n;
    r->is_ascii = before->is_ascii && !high;
    r->plain_ids = before->plain_ids;
    return r;
}

dgm_code dgm_record_new(const dgm_event *event, dgm_record_head head, dgm_buf *scratch,
                        dgm_record **ret_record, dgm_err *err)
{
    if (event->kind == DGM_EVENT_NONE)
        return dgm_fail(err, DGM_INVALID_AGENT_RESPONSE, NULL,
                        "an event without content; expected one of task, message, statusUpdate, "
                        "artifactUpdate, or internal");
    dgm_buf_clear(scratch);
    scratch->max = record_limit(event->kind) + WRITER_SLACK;
    dgm_writer w = {.out = scratch, .format = DGM_FORMAT_A2A_10};
    size_t text_at = 0;
    uint32_t text_n = 0;
    if (is_plain_chunk(event))
        text_at = write_plain_chunk(scratch, event->artifact, &text_n);
    else
        dgm_form_write_event(&w, event);
    dgm_str bytes = dgm_buf_str(scratch);
    if (scratch->over) /* of unknown size: writing stopped */
        bytes.n = record_limit(event->kind) + 1;
    bool look = !scratch->over && may_be_deep(event, bytes.n);
    size_t deep = look ? dgm_json_depth_fault(bytes) : bytes.n;
    if (deep < bytes.n) {
        dgm_fail(err, DGM_TOO_LARGE, NULL,
                 "an event nested deeper than the limit json_depth of %d: flatten it",
                 DGM_MAX_JSON_DEPTH);
        if (err)
            dgm_json_locate(bytes, deep, err);
        return DGM_TOO_LARGE;
    }
    head.kind = event->kind;
    head.state = event->kind == DGM_EVENT_TASK     ? event->task->status.state
                 : event->kind == DGM_EVENT_STATUS ? event->status->status.state
                                                   : DGM_STATE_UNKNOWN;
    dgm_code rc = make(head, bytes, ret_record, err);
    if (!rc && text_at) {
        dgm_record *r = *ret_record;
        r->text_at = (uint32_t)text_at;
        r->text_n = text_n;
        r->is_ascii = is_ascii(bytes);
        r->plain_ids = !memchr(bytes.p, '\\', text_at);
    }
    return rc;
}

dgm_code dgm_record_from_bytes(dgm_record_head head, dgm_str bytes, dgm_record **ret_record,
                               dgm_err *err)
{
    if (head.kind <= DGM_EVENT_NONE || head.kind > DGM_EVENT_INTERNAL ||
        (unsigned)head.state >= DGM_N_STATES)
        return dgm_fail(err, DGM_INTERNAL, NULL,
                        "record %llu is of kind %d and state %d: there is "
                        "no such",
                        (unsigned long long)head.seq, (int)head.kind, (int)head.state);
    return make(head, bytes, ret_record, err);
}

dgm_record *dgm_record_ref(dgm_record *r)
{
    atomic_fetch_add_explicit(&r->refs, 1, memory_order_relaxed);
    return r;
}

void dgm_record_unref(dgm_record *r)
{
    /* release: what this thread did with the record comes before the free; acquire: for the one
     * that frees, all of it has happened. */
    if (!r || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (dgm_payload *p = r->payloads, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    if (!r->block)
        dgm_spare_free(r, record_size(r->n));
    else if (atomic_fetch_sub_explicit(&r->block->refs, 1, memory_order_acq_rel) == 1)
        free(r->block);
}

static const dgm_payload *find_payload(const dgm_payload *p, unsigned dialect)
{
    while (p && p->dialect != dialect)
        p = p->next;
    return p;
}

static dgm_code make_payload(const dgm_record *r, unsigned dialect, dgm_payload_fn encode,
                             void *arg, dgm_payload **ret_made)
{
    dgm_buf out;
    dgm_buf_init(&out, DGM_MAX_OUTPUT_BYTES);
    dgm_code rc = encode(r, &out, arg);
    if (!rc && out.over)
        rc = DGM_TOO_LARGE;
    if (!rc) {
        *ret_made = dgm_xmalloc(sizeof **ret_made + out.n);
        **ret_made = (dgm_payload){.dialect = dialect, .n = (uint32_t)out.n};
        if (out.n)
            memcpy((*ret_made)->bytes, out.p, out.n);
    }
    dgm_buf_done(&out);
    return rc;
}

dgm_code dgm_record_payload(dgm_record *r, unsigned dialect, dgm_payload_fn encode, void *arg,
                            dgm_str *ret_bytes)
{
    dgm_payload *made, *first = atomic_load_explicit(&r->payloads, memory_order_acquire);
    const dgm_payload *p = find_payload(first, dialect);
    dgm_code rc;
    if (!p) {
        if ((rc = make_payload(r, dialect, encode, arg, &made)))
            return rc;
        do {
            made->next = first;
        } while (!(p = find_payload(first, dialect)) &&
                 !atomic_compare_exchange_weak_explicit(
                     &r->payloads, &first, made, memory_order_acq_rel, memory_order_acquire));
        if (p)
            free(made); /* another was faster */
        else
            p = made;
    }
    *ret_bytes = (dgm_str){p->bytes, p->n};
    return DGM_OK;
}

/* A plain chunk that this process wrote: its members are at known offsets. */
static bool read_plain_chunk(const dgm_record *r, dgm_arena *a, dgm_event *ret_event)
{
    enum {
        END_N = sizeof AFTER_TEXT "}}" - 1,
        APPEND_N = sizeof APPEND - 1,
        LAST_N = sizeof LAST - 1
    };
    if (!r->text_at || !r->plain_ids || r->text_n == UINT32_MAX ||
        (!r->is_ascii && dgm_utf8_check(dgm_record_bytes(r)) < r->n))
        return false;
    const char *bytes = dgm_arena_dup(a, dgm_record_bytes(r)).p, *text = bytes + r->text_at;
    const char *task = bytes + sizeof TASK_KEY - 1, *task_end = strchr(task, '"');
    const char *context = task_end + sizeof CONTEXT_KEY - 1, *context_end = strchr(context, '"');
    const char *id = context_end + sizeof ARTIFACT_KEY ID_KEY - 1,
               *id_end = text - (sizeof TEXT_KEY - 1);
    if (task_end == task || context_end == context || id_end == id)
        return false;
    size_t flags = r->n - r->text_at - r->text_n - END_N; /* bytes of append and lastChunk */
    struct {
        dgm_artifact_update update;
        dgm_part part;
    } *chunk = dgm_arena_alloc_raw(a, sizeof *chunk);
    chunk->part = (dgm_part){.kind = DGM_PART_TEXT, .content = {text, r->text_n}};
    chunk->update = (dgm_artifact_update){
        .task_id = {task, (size_t)(task_end - task)},
        .context_id = {context, (size_t)(context_end - context)},
        .artifact = {.artifact_id = {id, (size_t)(id_end - id)}, .parts = {&chunk->part, 1}},
        .append = flags == APPEND_N || flags == APPEND_N + LAST_N ? DGM_TRUE : DGM_UNSET,
        .last_chunk = flags >= LAST_N ? DGM_TRUE : DGM_UNSET};
    *ret_event = (dgm_event){.kind = DGM_EVENT_ARTIFACT, .artifact = &chunk->update};
    return true;
}

/* Most records are a chunk of text: a scan of a copy reads them, and the others are parsed. */
dgm_code dgm_record_event(const dgm_record *r, dgm_arena *a, dgm_event *ret_event, dgm_err *err)
{
    if (read_plain_chunk(r, a, ret_event))
        return DGM_OK;
    dgm_reader reader = {.arena = a, .format = DGM_FORMAT_A2A_10};
    if (r->head.kind == DGM_EVENT_ARTIFACT && r->n <= DGM_SCAN_MAX_BYTES &&
        dgm_form_scan_chunk(&reader, dgm_arena_dup(a, dgm_record_bytes(r)), ret_event))
        return DGM_OK;
    yyjson_val *root;
    dgm_event event;
    dgm_err fault = {0};
    reader.err = &fault;
    dgm_code rc = dgm_json_read(a, dgm_record_bytes(r), record_limit(r->head.kind), "record_bytes",
                                &root, &fault);
    if (!rc)
        rc = dgm_form_read_event(&reader, root, NULL, &event);
    if (!rc && event.kind != r->head.kind)
        rc = dgm_fail(&fault, DGM_INTERNAL, NULL, "an event of kind %d under a header of kind %d",
                      (int)event.kind, (int)r->head.kind);
    if (!rc) {
        *ret_event = event;
        return DGM_OK;
    }
    if (err) {
        dgm_fail(err, DGM_INTERNAL, NULL, "record %llu is damaged: %.300s",
                 (unsigned long long)r->head.seq, fault.msg);
        memcpy(err->at, fault.at, sizeof err->at);
        err->line = fault.line;
        err->column = fault.column;
    }
    return DGM_INTERNAL;
}
