/*
 * app/client/client_show.c - prints events for people: the answer on standard output, everything about it on
 * standard error.
 *
 * An answer arrives in chunks, and most agents repeat it at the end, in a status or a complete task. Printed
 * text cannot be removed, so each text is compared with what was printed: the same text prints nothing, a
 * longer one prints the rest, a different one starts a new paragraph.
 */
#include "app/client/client_int.h"
#include "base/limits.h"
#include "model/reconcile.h"
#include "wire/a2a/a2a.h"

#include <stdlib.h>
#include <unistd.h>

struct show_text {
    struct show_text *next;
    dgm_str id;
    dgm_buf text; /* all of it that is on standard output */
    /* of a text in working statuses: */
    dgm_status_text whole; /* the text so far */
    bool open, waits;      /* waits: another one is open, it is printed behind that one */
};

/* ---- bytes ------------------------------------------------------------------------------------------------ */

static void put(show *s, const char *p, size_t n)
{
    if (n && !s->failed)
        s->failed = fwrite(p, 1, n, stdout) != n;
}

static void clear_spinner(show *s)
{
    if (s->spinning)
        fputs("\r\033[K", stderr);
    s->spinning = false;
}

/* Control characters are shown as text, because the text comes from another server. */
static void put_visibly(show *s, dgm_str text)
{
    char shown[8];
    for (size_t i = 0, from = 0; i <= text.n; i++) {
        unsigned char c = i < text.n ? (unsigned char)text.p[i] : 0;
        bool is_c1 = c == 0xc2 && i + 1 < text.n && (unsigned char)text.p[i + 1] < 0xa0;
        if (i < text.n && !is_c1 && c != 0x7f && (c >= 0x20 || c == '\n' || c == '\t'))
            continue;
        put(s, text.p + from, i - from);
        from = i + 1;
        if (i < text.n)
            put(s, shown, (size_t)snprintf(shown, sizeof shown, "\\x%02x", c));
    }
}

static void client_show_put_text(show *s, dgm_str text)
{
    if (!text.n)
        return;
    clear_spinner(s);
    if (s->out_is_tty)
        put_visibly(s, text);
    else
        put(s, text.p, text.n);
    s->failed = s->failed || fflush(stdout) != 0;
    s->printed = true;
    s->at_line_start = text.p[text.n - 1] == '\n';
}

/* ---- texts ------------------------------------------------------------------------------------------------- */

static struct show_text *client_show_text_of(show *s, dgm_str id)
{
    struct show_text **at = &s->texts;
    for (; *at; at = &(*at)->next) {
        if (dgm_str_eq((*at)->id, id))
            return *at;
    }
    *at = dgm_xcalloc(1, sizeof **at);
    (*at)->id = dgm_arena_dup(s->arena, id);
    dgm_buf_init(&(*at)->text, DGM_MAX_OUTPUT_BYTES);
    return *at;
}

static void new_paragraph(show *s)
{
    if (s->printed)
        client_show_put_text(s, s->at_line_start ? DGM_STR("\n") : DGM_STR("\n\n"));
}

static void add_to(show *s, struct show_text *t, dgm_str more)
{
    if (!more.n)
        return;
    if (s->current != t)
        new_paragraph(s);
    s->current = t;
    dgm_buf_add_str(&t->text, more);
    client_show_put_text(s, more);
}

/* Sets the complete text. */
static void show_set_text(show *s, struct show_text *t, dgm_str all)
{
    dgm_text_change change = dgm_text_compare(dgm_buf_str(&t->text), all);
    if (change.kind == DGM_TEXT_REPLACE) {
        dgm_buf_clear(&t->text);
        s->current = NULL;
    }
    add_to(s, t, change.text);
}

/* ---- texts in working statuses: model/text_pieces.h ---------------------------------------------------------- */

static void show_whole(show *s, struct show_text *t)
{
    t->waits = s->speaker && s->speaker != t && s->speaker->open;
    if (t->waits)
        return;
    s->speaker = t;
    show_set_text(s, t, dgm_buf_str(&t->whole.text));
}

static size_t show_open(void *arg, dgm_str message_id)
{
    show *s = arg;
    size_t n = s->n_status_texts;
    (void)message_id;
    if ((n & (n - 1)) == 0) /* a power of two: the list is full */
        s->status_texts = dgm_xrealloc(s->status_texts, (n ? 2 * n : 1) * sizeof *s->status_texts);
    struct show_text *t = client_show_text_of(s, dgm_arena_printf(s->arena, "\1status%zu", n));
    t->open = true;
    dgm_buf_init(&t->whole.text, DGM_MAX_OUTPUT_BYTES);
    s->status_texts[n] = t;
    return s->n_status_texts++;
}

static void show_replace(void *arg, size_t i, dgm_str whole)
{
    struct show_text *t = ((show *)arg)->status_texts[i];
    dgm_status_text_set(&t->whole, whole);
    show_whole(arg, t);
}

static void show_add(void *arg, size_t i, dgm_str piece)
{
    struct show_text *t = ((show *)arg)->status_texts[i];
    dgm_status_text_add(&t->whole, piece);
    if (piece.n)
        show_whole(arg, t);
}

static void show_close(void *arg, size_t i)
{
    show *s = arg;
    s->status_texts[i]->open = false;
    for (size_t k = 0; k < s->n_status_texts; k++) {
        if (s->status_texts[k]->waits)
            show_whole(s, s->status_texts[k]);
    }
}

static void show_add_whole(void *arg, dgm_str message_id, dgm_str whole)
{
    size_t i = show_open(arg, message_id);
    show_replace(arg, i, whole);
    show_close(arg, i);
}

static size_t show_begins(void *arg, size_t i, dgm_str whole)
{
    return dgm_status_text_begins(&((show *)arg)->status_texts[i]->whole, whole);
}

static dgm_text_sink show_sink(show *s)
{
    return (dgm_text_sink){.open = show_open,
                           .add = show_add,
                           .replace = show_replace,
                           .close = show_close,
                           .add_whole = show_add_whole,
                           .begins = show_begins,
                           .arg = s};
}

/* A repeated answer: prints nothing if it equals one of the printed texts, or all of them joined. */
static void show_final_text(show *s, dgm_str all)
{
    dgm_buf joined, apart; /* without and with a blank line between them */
    dgm_text_pieces_close(&s->pieces, show_sink(s));
    struct show_text *last = NULL;
    bool known = !all.n;
    dgm_buf_init(&joined, DGM_MAX_OUTPUT_BYTES);
    dgm_buf_init(&apart, DGM_MAX_OUTPUT_BYTES);
    for (struct show_text *t = s->texts; t; t = t->next) {
        known = known || dgm_str_eq(dgm_buf_str(&t->text), all);
        dgm_buf_add_str(&joined, dgm_buf_str(&t->text));
        if (apart.n && t->text.n)
            dgm_buf_add_lit(&apart, "\n\n");
        dgm_buf_add_str(&apart, dgm_buf_str(&t->text));
        last = t;
    }
    known = known || dgm_str_eq(dgm_buf_str(&joined), all) || dgm_str_eq(dgm_buf_str(&apart), all);
    dgm_buf_done(&joined);
    dgm_buf_done(&apart);
    if (known)
        return;
    if (last && last->text.n && dgm_str_starts(all, dgm_buf_str(&last->text)))
        show_set_text(s, last, all);
    else
        show_set_text(s, client_show_text_of(s, DGM_STR("\1final")), all);
}

/* ---- parts --------------------------------------------------------------------------------------------------- */

static bool is_indicator(const dgm_part *part)
{
    const yyjson_val *type =
        part->kind == DGM_PART_DATA ? dgm_json_get(part->data, DGM_STR("type")) : NULL;
    return type && yyjson_is_str((yyjson_val *)(uintptr_t)type) &&
           dgm_str_is(dgm_json_str(type), "status-indicator");
}

/* Texts are joined; each other part is on its own line. The bytes of files are not printed. */
static dgm_str text_of_parts(dgm_arena *a, const dgm_parts *parts)
{
    dgm_buf b;
    dgm_str all;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    for (size_t i = 0; i < parts->n; i++) {
        const dgm_part *p = &parts->at[i];
        if (p->kind == DGM_PART_TEXT) {
            dgm_buf_add_str(&b, p->content);
            continue;
        }
        if (p->kind == DGM_PART_NONE || is_indicator(p))
            continue;
        if (b.n && b.p[b.n - 1] != '\n')
            dgm_buf_add_char(&b, '\n');
        if (p->kind == DGM_PART_DATA)
            dgm_json_put(&b, p->data);
        else if (p->kind == DGM_PART_URL)
            dgm_buf_add_str(&b, p->content);
        else
            dgm_buf_printf(&b, "[file %.*s, %.*s, %zu bytes]",
                           DGM_P(p->filename.n ? p->filename : DGM_STR("without a name")),
                           DGM_P(p->media_type.n ? p->media_type : DGM_STR("of unknown type")),
                           p->content.n / 4 * 3);
        dgm_buf_add_char(&b, '\n');
    }
    all = dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return all;
}

static dgm_str text_of_message(dgm_arena *a, const dgm_message *m)
{
    return m ? text_of_parts(a, &dgm_message_as_shown(a, m)->parts) : DGM_STR("");
}

/* ---- progress -------------------------------------------------------------------------------------------------- */

static void set_progress(show *s, const dgm_message *m)
{
    dgm_str text = {0};
    char line[120];
    size_t n = 0;
    for (size_t i = 0; m && i < m->parts.n && !text.n; i++) {
        const dgm_part *p = &m->parts.at[i];
        const yyjson_val *label = is_indicator(p) ? dgm_json_get(p->data, DGM_STR("text")) : NULL;
        if (p->kind == DGM_PART_TEXT)
            text = p->content;
        else if (label && yyjson_is_str((yyjson_val *)(uintptr_t)label))
            text = dgm_json_str(label);
    }
    if (!text.n && s->state == DGM_STATE_WORKING)
        text = DGM_STR("Working"); /* most agents send no text: show that something happens */
    for (size_t i = 0; i < text.n && n < sizeof line - 1; i++)
        line[n++] = (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i];
    s->progress = dgm_arena_dup(s->arena, (dgm_str){line, n});
    dgm_show_tick(s);
}

void dgm_show_tick(void *arg)
{
    show *s = arg;
    if (!s->err_is_tty || s->json || !s->progress.n ||
        (s->printed && !s->at_line_start && s->out_is_tty))
        return;
    fprintf(stderr, "\r\033[K%c %.*s", "|/-\\"[s->spin++ % 4], DGM_P(s->progress));
    fflush(stderr);
    s->spinning = true;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void learn(show *s, dgm_str task, dgm_str context)
{
    if (task.n && !dgm_str_eq(task, s->task_id))
        s->task_id = dgm_arena_dup(s->arena, task);
    if (context.n && !dgm_str_eq(context, s->context_id))
        s->context_id = dgm_arena_dup(s->arena, context);
}

/* Some agents put their answer into status messages, and mark it (design: canonical_type). */
static int marked_as_text(const dgm_message *m) /* 1: a piece, 2: all of it */
{
    const yyjson_val *type = m ? dgm_json_get(m->metadata, DGM_STR("canonical_type")) : NULL;
    dgm_str name =
        type && yyjson_is_str((yyjson_val *)(uintptr_t)type) ? dgm_json_str(type) : DGM_STR("");
    return dgm_str_is(name, "TextMessageChunkEvent") ? 1
           : dgm_str_is(name, "TextMessageEndEvent") ? 2
                                                     : 0;
}

/* Why it failed: what the status says, or the word that our own servers leave in the metadata. */
static dgm_str reason(dgm_str text, const dgm_json *metadata)
{
    const yyjson_val *error = text.n ? NULL : dgm_json_get(metadata, DGM_STR("error"));
    return error && yyjson_is_str((yyjson_val *)(uintptr_t)error) ? dgm_json_str(error) : text;
}

static void show_status(show *s, dgm_arena *a, const dgm_status *status, const dgm_json *metadata)
{
    const dgm_message *m = status->message;
    dgm_str text = text_of_message(a, m);
    const char *how = "failed";
    s->state = status->state;
    dgm_client_note_question(s, status);
    switch (status->state) {
    case DGM_STATE_UNKNOWN:
    case DGM_STATE_SUBMITTED:
    case DGM_STATE_WORKING:
        switch (marked_as_text(m)) {
        case 1: dgm_text_pieces_chunk(&s->pieces, show_sink(s), m->message_id, text); break;
        case 2: dgm_text_pieces_end(&s->pieces, show_sink(s), m->message_id, text); break;
        default: set_progress(s, m);
        }
        return;
    case DGM_STATE_COMPLETED:
    case DGM_STATE_INPUT_REQUIRED:
    case DGM_STATE_AUTH_REQUIRED: show_final_text(s, text); return;
    case DGM_STATE_CANCELED: how = "was canceled"; break;
    case DGM_STATE_REJECTED: how = "was rejected"; break;
    case DGM_STATE_FAILED: break;
    }
    text = reason(text, metadata);
    if (s->is_calm) {
        show_final_text(s, text);
        return;
    }
    dgm_show_end(s);
    dgm_cli_complain("the task %s%s%.*s", how, text.n ? ": " : "", DGM_P(text));
}

static void show_artifact(show *s, dgm_arena *a, const dgm_artifact *artifact, bool append)
{
    struct show_text *t = client_show_text_of(s, artifact->artifact_id);
    dgm_str text = text_of_parts(a, &artifact->parts);
    dgm_text_pieces_flush(&s->pieces, show_sink(s));
    if (append)
        add_to(s, t, text);
    else
        show_set_text(s, t, text);
}

static void show_task(show *s, dgm_arena *a, const dgm_task *task)
{
    learn(s, task->id, task->context_id);
    for (size_t i = 0; i < task->artifacts.n; i++)
        show_artifact(s, a, &task->artifacts.at[i], false);
    show_status(s, a, &task->status, task->metadata);
}

bool dgm_show_event(show *s, const dgm_event *e)
{
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    if (s->json) {
        if (!dgm_show_json(DGM_OBJECT_STREAM_RESPONSE, e, false))
            s->failed = true;
    }
    /* the state and the ids are needed in any case; with --json the texts go nowhere */
    if (s->json && e->kind == DGM_EVENT_TASK) {
        learn(s, e->task->id, e->task->context_id);
        s->state = e->task->status.state;
    } else if (s->json && e->kind == DGM_EVENT_STATUS) {
        learn(s, e->status->task_id, e->status->context_id);
        s->state = e->status->status.state;
    } else if (e->kind == DGM_EVENT_TASK) {
        show_task(s, a, e->task);
    } else if (e->kind == DGM_EVENT_STATUS) {
        learn(s, e->status->task_id, e->status->context_id);
        show_status(s, a, &e->status->status, e->status->metadata);
    } else if (e->kind == DGM_EVENT_ARTIFACT && !s->json) {
        learn(s, e->artifact->task_id, e->artifact->context_id);
        show_artifact(s, a, &e->artifact->artifact, e->artifact->append == DGM_TRUE);
    } else if (e->kind == DGM_EVENT_MESSAGE) {
        learn(s, (dgm_str){0}, e->message->context_id);
        s->is_message = true;
        if (!s->json)
            show_set_text(s, client_show_text_of(s, DGM_STR("\1message")),
                          text_of_message(a, e->message));
    }
    return !s->failed;
}

/* ---- public --------------------------------------------------------------------------------------------------------- */

void dgm_show_init(show *s, bool json)
{
    *s = (show){.json = json, .arena = dgm_arena_new(), .at_line_start = true};
    dgm_text_pieces_init(&s->pieces);
    s->out_is_tty = isatty(STDOUT_FILENO);
    s->err_is_tty = isatty(STDERR_FILENO);
}

void dgm_show_done(show *s)
{
    while (s->texts) {
        struct show_text *t = s->texts;
        s->texts = t->next;
        dgm_buf_done(&t->text);
        dgm_buf_done(&t->whole.text);
        free(t);
    }
    free(s->status_texts);
    dgm_text_pieces_done(&s->pieces);
    dgm_arena_free(s->arena);
}

void dgm_show_end(show *s)
{
    dgm_text_pieces_close(&s->pieces, show_sink(s));
    clear_spinner(s);
    if (s->printed && !s->at_line_start)
        client_show_put_text(s, DGM_STR("\n"));
}

const char *dgm_show_state_name(dgm_task_state s)
{
    switch (s) {
    case DGM_STATE_UNKNOWN: return "unknown";
    case DGM_STATE_SUBMITTED: return "submitted";
    case DGM_STATE_WORKING: return "working";
    case DGM_STATE_COMPLETED: return "completed";
    case DGM_STATE_FAILED: return "failed";
    case DGM_STATE_CANCELED: return "canceled";
    case DGM_STATE_INPUT_REQUIRED: return "input-required";
    case DGM_STATE_REJECTED: return "rejected";
    case DGM_STATE_AUTH_REQUIRED: return "auth-required";
    }
    return "";
}

bool dgm_show_json(dgm_object_kind kind, const void *it, bool pretty)
{
    dgm_frame frame = {.object = {kind, (void *)(uintptr_t)it}};
    dgm_err err = {0};
    dgm_buf b;
    bool good;
    dgm_buf_init(&b, DGM_MAX_OUTPUT_BYTES);
    dgm_writer w = {.out = &b};
    good = !dgm_codec_a2a_10.encode(&w, &frame, &err) && !b.over;
    if (good && pretty) {
        yyjson_doc *doc = yyjson_read_opts(b.p, b.n, YYJSON_READ_NUMBER_AS_RAW, NULL, NULL);
        char *text = doc ? yyjson_write(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, NULL) : NULL;
        good = text && puts(text) >= 0;
        free(text);
        yyjson_doc_free(doc);
    } else if (good) {
        dgm_buf_add_char(&b, '\n');
        good = fwrite(b.p, 1, b.n, stdout) == b.n && fflush(stdout) == 0;
    }
    dgm_buf_done(&b);
    return good;
}

bool dgm_show_is_settled(const show *s)
{
    return s->is_message || dgm_state_is_terminal(s->state) || dgm_state_is_interrupted(s->state);
}
