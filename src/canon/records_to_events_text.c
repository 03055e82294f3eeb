/*
 * canon/records_to_events_text.c - texts of a run: artifacts, messages, status texts, the final one.
 *
 * A text gets its START when it has something to say, and its END when something else comes after it
 * was sealed: a final text may still add to it.
 */
#include "base/limits.h"
#include "canon/records_to_events_int.h"
#include "model/fold.h"
#include "json/build.h"
#include "json/shape.h"

static void flush_pieces(dgm_records_to_events *f);

/* ---- one text ------------------------------------------------------------------------------------------ */

static size_t new_text(dgm_records_to_events *f, dgm_str id)
{
    f->texts = dgm_list_reserve(f->texts, f->n_texts, &f->cap_texts, sizeof *f->texts);
    f->texts[f->n_texts++] = (struct from_text){.id = id};
    return dgm_reconcile_open(f->texts_said);
}

static void from_records_start_text(dgm_records_to_events *f, size_t i)
{
    struct from_text *t = &f->texts[i];
    if (t->open)
        return;
    if (f->reasoning.n)
        dgm_from_end_reasoning(f);
    t->open = true;
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    if (t->artifact_id.n) {
        dgm_json_build b = dgm_json_build_start(f->scratch);
        dgm_json_build_object(&b, NULL);
        dgm_json_build_object(&b, DGM_NAME_ARTIFACT);
        dgm_json_build_str(&b, "artifactId", t->artifact_id);
        if (t->artifact_name.n)
            dgm_json_build_str(&b, "name", t->artifact_name);
        dgm_json_build_close(&b);
        dgm_json_build_close(&b);
        e.metadata = dgm_json_build_end(&b);
    }
    e.text.message_id = t->id;
    e.text.role = DGM_CANON_ASSISTANT;
    dgm_from_out(f, &e);
    f->after_result = false;
}

static void from_records_end_text(dgm_records_to_events *f, size_t i)
{
    struct from_text *t = &f->texts[i];
    if (!t->open)
        return;
    t->open = false;
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_END};
    e.text.message_id = t->id;
    dgm_from_out(f, &e);
}

void dgm_from_settle_texts(dgm_records_to_events *f)
{
    if (f->pieces.has_held)
        flush_pieces(f);
    if (f->touched != DGM_NO_STREAM && f->texts[f->touched].sealed)
        from_records_end_text(f, f->touched);
}

void dgm_from_close_texts(dgm_records_to_events *f)
{
    if (f->pieces.has_held)
        flush_pieces(f);
    for (size_t i = 0; i < f->n_texts; i++)
        from_records_end_text(f, i);
}

/* The messages are too large for a snapshot: the text continues as another message. */
static void begin_anew(dgm_records_to_events *f, size_t i, dgm_str text)
{
    from_records_end_text(f, i);
    f->texts[i].id = dgm_from_message_id(f, (dgm_str){0});
    if (!text.n)
        return;
    from_records_start_text(f, i);
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_CONTENT};
    e.text.message_id = f->texts[i].id;
    e.text.delta = text;
    dgm_from_out(f, &e);
}

/* The text differs from the emitted one: the reader gets the whole text. */
static void from_records_correct(dgm_records_to_events *f, size_t i, dgm_str text)
{
    dgm_canon_message one = {.role = DGM_CANON_ASSISTANT,
                             .id = f->texts[i].id,
                             .content = {.kind = DGM_CANON_CONTENT_TEXT, .text = text}};
    dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    e.snapshot.messages = (dgm_canon_messages){&one, 1};
    e.snapshot.changed = one.id;
    e.snapshot.restarts = f->restarts;
    if (f->fold) {
        /* an agent that takes back its words all the time must not fill the line with old ones */
        f->snapshot_bytes += dgm_canon_fold_bytes(f->fold);
        if (f->snapshot_bytes > 4 * DGM_MAX_SNAPSHOT_BYTES ||
            !dgm_canon_fold_set_text(f->fold, one.id, text)) {
            begin_anew(f, i, text);
            return;
        }
        e.snapshot.messages = dgm_canon_fold_messages(f->fold, f->scratch);
    }
    dgm_from_out(f, &e);
}

static void from_records_say(dgm_records_to_events *f, dgm_text_change what, bool whole)
{
    if (f->touched != what.stream && f->touched != DGM_NO_STREAM && f->texts[f->touched].sealed)
        from_records_end_text(f, f->touched);
    f->touched = what.stream;
    if (what.kind == DGM_TEXT_UNCHANGED)
        return;
    f->parent = f->texts[what.stream].id; /* calls that follow are made by the same message */
    if (what.kind == DGM_TEXT_REPLACE) {
        from_records_correct(f, what.stream, what.text);
        return;
    }
    bool all = whole && !f->texts[what.stream].open;
    from_records_start_text(f, what.stream);
    f->more.text.message_id = f->texts[what.stream].id;
    f->more.text.delta = what.text;
    f->more.text.whole = all;
    dgm_from_out(f, &f->more);
    if (all)
        from_records_end_text(f, what.stream);
}

/* ---- whole texts ----------------------------------------------------------------------------------------- */

/* Of somebody else: no stream of ours, no final text is about it. */
static void say_for(dgm_records_to_events *f, dgm_str text, dgm_canon_parts parts, dgm_str id,
                    dgm_canon_role role)
{
    dgm_canon_event e = {.kind = DGM_CANON_TEXT_MESSAGE_START};
    e.text.message_id = id;
    e.text.role = role;
    dgm_from_out(f, &e);
    e.kind = DGM_CANON_TEXT_MESSAGE_CONTENT;
    e.text.role = DGM_CANON_ROLE_NONE;
    e.text.delta = text;
    e.text.parts = parts;
    e.text.whole = true;
    dgm_from_out(f, &e);
    e = (dgm_canon_event){.kind = DGM_CANON_TEXT_MESSAGE_END};
    e.text.message_id = id;
    dgm_from_out(f, &e);
}

void dgm_from_user_text(dgm_records_to_events *f, dgm_str text, dgm_canon_parts parts,
                        dgm_str message_id, dgm_canon_role role)
{
    if (!text.n && !parts.n)
        return;
    f->user_messages++;
    if (f->pieces.has_held)
        flush_pieces(f);
    say_for(f, text, parts, dgm_from_message_id(f, message_id), role);
    if (!parts.n || !f->fold || dgm_canon_fold_is_over(f->fold))
        return;
    /* A stream has no room for files; a reader who builds messages gets them with all the others. */
    dgm_canon_event e = {.kind = DGM_CANON_MESSAGES_SNAPSHOT};
    e.snapshot.messages = dgm_canon_fold_messages(f->fold, f->scratch);
    dgm_from_out(f, &e);
}

static void message_add_whole(void *arg, dgm_str message_id, dgm_str whole);

void dgm_from_whole_text(dgm_records_to_events *f, dgm_str text, dgm_str message_id)
{
    if (f->pieces.has_held)
        flush_pieces(f);
    message_add_whole(f, message_id, text);
}

/* ---- artifacts --------------------------------------------------------------------------------------------- */

/* The text parts become a text message. */
static void emit_artifact(dgm_records_to_events *f, const dgm_artifact *artifact, bool append,
                          bool last, bool text)
{
    dgm_artifact rest = *artifact;
    rest.parts = (dgm_parts){dgm_new_n(f->scratch, dgm_part, artifact->parts.n), 0};
    for (size_t i = 0; i < artifact->parts.n; i++) {
        if (artifact->parts.at[i].kind != DGM_PART_TEXT)
            rest.parts.at[rest.parts.n++] = artifact->parts.at[i];
    }
    dgm_canon_event e = {.kind = DGM_CANON_ARTIFACT};
    e.artifact.artifact = &rest;
    e.artifact.append = append;
    e.artifact.last_chunk = last;
    e.artifact.has_text = text;
    dgm_from_out(f, &e);
}

/* ---- files that come in chunks --------------------------------------------------------------------------- */

struct from_file {
    struct from_file *next;
    dgm_str artifact_id;
    dgm_buf base64;
};

static struct from_file *file_of(dgm_records_to_events *f, dgm_str artifact_id)
{
    struct from_file *x = f->files;
    while (x && !dgm_str_eq(x->artifact_id, artifact_id))
        x = x->next;
    if (x)
        return x;
    x = dgm_new(f->arena, struct from_file);
    x->artifact_id = dgm_arena_dup(f->arena, artifact_id);
    dgm_buf_init(&x->base64, DGM_MAX_FILE_BYTES / 3 * 4 + 4);
    x->next = f->files;
    return f->files = x;
}

void dgm_from_free_files(dgm_records_to_events *f)
{
    for (struct from_file *x = f->files; x; x = x->next)
        dgm_buf_done(&x->base64);
}

/* The number of the chunk that the artifact is; -1: it is something else. */
static int64_t chunk_number(const dgm_artifact *artifact)
{
    const dgm_part *p = artifact->parts.n == 1 ? artifact->parts.at : NULL;
    int64_t number = -1;
    if (p && p->kind == DGM_PART_RAW)
        (void)dgm_json_int(dgm_json_get(p->metadata, DGM_STR(DGM_PART_CHUNK)), &number);
    return number;
}

/* Readers get the file when it is complete. One that joined later gets it from the Task. */
static void from_records_file_chunk(dgm_records_to_events *f, const dgm_artifact *artifact,
                                    bool append, bool last)
{
    struct from_file *x = file_of(f, artifact->artifact_id);
    dgm_part part = artifact->parts.at[0];
    dgm_artifact whole = *artifact;
    dgm_str more;
    if (append && !x->base64.n)
        x->base64.over = true;
    if (!append)
        dgm_buf_clear(&x->base64);
    x->base64.n = dgm_base64_join(f->scratch, dgm_buf_str(&x->base64), part.content, &more);
    dgm_buf_add_str(&x->base64, more);
    if (!last)
        return;
    part.content = dgm_buf_str(&x->base64);
    part.metadata = NULL;
    whole.parts = (dgm_parts){&part, 1};
    if (!x->base64.over)
        emit_artifact(f, &whole, false, true, false);
    dgm_buf_done(&x->base64);
}

void dgm_from_artifact(dgm_records_to_events *f, const dgm_artifact *artifact, bool append,
                       bool last)
{
    bool others;
    dgm_str text = dgm_content_text(f->scratch, &artifact->parts, &others);
    size_t *known = dgm_map_get(&f->artifacts, artifact->artifact_id), i;
    if (known && *known == DGM_NO_STREAM)
        known = NULL; /* aion:stream-delta of an earlier call */
    if (chunk_number(artifact) >= 0) {
        from_records_file_chunk(f, artifact, append, last);
        return;
    }
    if (others)
        emit_artifact(f, artifact, append, last, known || text.n);
    if (!known && !text.n)
        return;
    if (known) {
        i = *known;
    } else {
        i = new_text(f, dgm_from_message_id(f, (dgm_str){0}));
        f->texts[i].artifact_id = dgm_arena_dup(f->arena, artifact->artifact_id);
        f->texts[i].artifact_name = dgm_arena_dup(f->arena, artifact->name);
        dgm_map_put(&f->artifacts, f->texts[i].artifact_id, i);
        /* The stream starts in the middle of the artifact. Clients that can replace a text get all of it at the end. */
        if (append && i == 0 && !f->params.whole_snapshots)
            dgm_reconcile_join(f->texts_said, true);
    }
    if (f->pieces.has_held)
        flush_pieces(f);
    f->texts[i].sealed = last;
    f->restarts = !append && !last && f->texts[i].open;
    from_records_say(f,
                     append ? dgm_reconcile_delta(f->texts_said, i, text)
                            : dgm_reconcile_replace(f->texts_said, i, text),
                     !known && last);
    f->restarts = false;
}

/* ---- messages and status texts -------------------------------------------------------------------------------- */

static size_t message_open(void *arg, dgm_str message_id)
{
    dgm_records_to_events *f = arg;
    return new_text(f, dgm_from_message_id(f, message_id));
}

static void message_add(void *arg, size_t i, dgm_str piece)
{
    dgm_records_to_events *f = arg;
    from_records_say(f, dgm_reconcile_status(f->texts_said, i, piece), false);
}

static void message_replace(void *arg, size_t i, dgm_str whole)
{
    dgm_records_to_events *f = arg;
    from_records_say(f, dgm_reconcile_replace(f->texts_said, i, whole), false);
}

static void message_close(void *arg, size_t i)
{
    dgm_records_to_events *f = arg;
    f->texts[i].sealed = true;
    if (f->touched != i)
        from_records_end_text(f, i);
}

static void message_add_whole(void *arg, dgm_str message_id, dgm_str whole)
{
    dgm_records_to_events *f = arg;
    if (!whole.n)
        return;
    size_t i = new_text(f, dgm_from_message_id(f, message_id));
    f->texts[i].sealed = true;
    from_records_say(f, dgm_reconcile_delta(f->texts_said, i, whole), true);
}

static size_t message_begins(void *arg, size_t i, dgm_str whole)
{
    return dgm_reconcile_begins(((dgm_records_to_events *)arg)->texts_said, i, whole);
}

static dgm_text_sink message_sink(dgm_records_to_events *f)
{
    return (dgm_text_sink){.open = message_open,
                           .add = message_add,
                           .replace = message_replace,
                           .close = message_close,
                           .add_whole = message_add_whole,
                           .begins = message_begins,
                           .arg = f};
}

/* ---- aion:stream-delta ------------------------------------------------------------------------------------- */

static size_t *open_delta(dgm_records_to_events *f)
{
    size_t *i = dgm_map_get(&f->artifacts, DGM_STR(DGM_STREAM_DELTA_ID));
    return i && *i != DGM_NO_STREAM ? i : NULL;
}

void dgm_from_end_delta(dgm_records_to_events *f)
{
    size_t *i = open_delta(f);
    if (!i)
        return;
    f->texts[*i].sealed = true;
    *i = DGM_NO_STREAM;
}

/* A complete message that starts with the text of the artifact is that text. */
static bool from_records_covers_delta(dgm_records_to_events *f, dgm_str text)
{
    const size_t *delta = open_delta(f);
    if (!delta || !text.n || dgm_reconcile_begins(f->texts_said, *delta, text) == SIZE_MAX)
        return false;
    size_t i = *delta;
    from_records_say(f, dgm_reconcile_replace(f->texts_said, i, text), false);
    f->parent = f->texts[i].id;
    dgm_from_end_delta(f);
    return true;
}

void dgm_from_piece(dgm_records_to_events *f, dgm_str text, dgm_str message_id, bool ends)
{
    if (!ends) {
        dgm_text_pieces_chunk(&f->pieces, message_sink(f), message_id, text);
        return;
    }
    if (!f->pieces.n_open && !f->pieces.has_held && from_records_covers_delta(f, text))
        return;
    bool any = text.n || f->pieces.n_open;
    dgm_text_pieces_end(&f->pieces, message_sink(f), message_id, text);
    if (any && f->touched != DGM_NO_STREAM)
        f->parent = f->texts[f->touched].id; /* also if the text was emitted before */
}

static void flush_pieces(dgm_records_to_events *f)
{
    dgm_text_pieces_flush(&f->pieces, message_sink(f));
}

void dgm_from_final(dgm_records_to_events *f, dgm_str text, dgm_str message_id, bool is_question)
{
    if (f->pieces.has_held)
        flush_pieces(f);
    dgm_text_change what = dgm_reconcile_final(f->texts_said, text);
    /* a question is not another version of an artifact, also where the agent did not end it */
    if (is_question && what.kind == DGM_TEXT_REPLACE && f->texts[what.stream].artifact_id.n)
        what.stream = DGM_NO_STREAM;
    if (what.stream == DGM_NO_STREAM)
        dgm_from_whole_text(f, what.text, message_id);
    else
        from_records_say(f, what, false);
    if (what.stream != DGM_NO_STREAM && text.n)
        f->parent = f->texts[what.stream].id;
    if (f->pieces.n_open)
        dgm_text_pieces_close(&f->pieces, message_sink(f));
}
