/* frontend/openai/openai_question.c - see openai_question.h. */
#define _GNU_SOURCE /* memmem */
#include "frontend/openai/openai_question.h"
#include "base/limits.h"
#include "canon/message_content.h"
#include "frontend/openai/openai_errors.h"
#include "model/approval.h"
#include "model/reconcile.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>

#define NOTE                                                                                       \
    "question" /* its text: a line "TASK TURN" per task; "*": more wait than may be listed */

/* ---- keys -------------------------------------------------------------------------------------------------------------- */

#define BYTES_OF(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The text without white space, in the arena. */
static dgm_str question_squeeze(dgm_arena *a, dgm_str text)
{
    static const bool is_space[256] = {
        [' '] = true, ['\t'] = true, ['\n'] = true, ['\v'] = true, ['\f'] = true, ['\r'] = true};
    char *to = dgm_arena_alloc_raw(a, text.n + 1);
    size_t n = 0, i = 0;
    while (
        i <
        text.n) { /* eight bytes at a time where not one is white space: a transcript may have megabytes */
        uint64_t word;
        for (; text.n - i >= sizeof word; i += sizeof word, n += sizeof word) {
            memcpy(&word, text.p + i, sizeof word);
            if ((word - BYTES_OF(0x21)) & ~word &
                BYTES_OF(0x80)) /* a byte below 0x21, or after one */
                break;
            memcpy(to + n, &word, sizeof word);
        }
        for (size_t end = text.n - i < sizeof word ? text.n : i + sizeof word; i < end; i++) {
            to[n] = text.p[i];
            n += !is_space[(unsigned char)text.p[i]];
        }
    }
    return (dgm_str){to, n};
}

/*
 * Messages of one role that follow each other are one: APIs split answers in different ways. The texts are hashed by
 * dgm_sum, which is ten times as fast as SHA-256 on a transcript of megabytes. It does not resist an attacker who looks
 * for two transcripts with one sum, but such an attacker gains nothing: the key only finds questions in a transcript that
 * the same principal sent, and knowing that transcript is enough to send it again.
 */
dgm_str dgm_openai_question_seed(const dgm_turn_request *q, const dgm_turn_agent *agent,
                                 const yyjson_val *body, const dgm_canon_messages *messages,
                                 size_t n)
{
    dgm_arena *a = dgm_http_arena(q->x);
    dgm_str texts[] = {agent->id, dgm_json_str_member(body, "user"),
                       dgm_json_str_member(body, "safety_identifier")};
    dgm_canon_role role = DGM_CANON_ROLE_NONE;
    dgm_sum sum = {0};
    dgm_buf seed;
    if (q->turns->o.openai_by_id_only)
        return (dgm_str){0};
    dgm_buf_init(&seed, SIZE_MAX);
    for (size_t i = 0; i < 3; i++) {
        uint64_t length = texts[i].n;
        dgm_buf_add(&seed, &length, sizeof length);
        dgm_buf_add_str(&seed, texts[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const dgm_canon_message *m = &messages->at[i];
        if (m->role != DGM_CANON_USER && m->role != DGM_CANON_ASSISTANT)
            continue;
        dgm_str text = question_squeeze(a, dgm_canon_content_text(a, &m->content));
        if (!text.n)
            continue;
        if (m->role != role)
            dgm_sum_add(&sum, m->role == DGM_CANON_USER ? DGM_STR("\1") : DGM_STR("\2"));
        role = m->role;
        dgm_sum_add(&sum, text);
    }
    dgm_buf_add(&seed, &sum.n, sizeof sum.n);
    dgm_buf_add(&seed, sum.lanes, sizeof sum.lanes);
    dgm_buf_add(&seed, sum.tail, sum.n % DGM_SUM_BLOCK);
    dgm_str copy = dgm_arena_dup(a, dgm_buf_str(&seed));
    dgm_buf_done(&seed);
    return copy;
}

/* SHA-256 of the seed, in hexadecimal digits. Empty: no memory; then the question is not found. */
static dgm_str question_key(dgm_arena *a, dgm_str seed)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (!EVP_Digest(seed.p, seed.n, digest, &size, EVP_sha256(), NULL))
        return (dgm_str){0};
    char *hex = dgm_arena_alloc(a, 2 * (size_t)size + 1);
    for (unsigned i = 0; i < size; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", digest[i]);
    return (dgm_str){hex, 2 * (size_t)size};
}

/* ---- the tasks that are stored under a key -------------------------------------------------------------------------------- */

struct question_entry {
    dgm_str task_id;
    uint32_t turn;
};

struct question_list {
    struct question_entry at[DGM_MAX_WAITING_QUESTIONS];
    size_t n;
    bool is_over; /* there were more */
};

static void question_read_line(dgm_arena *a, dgm_str line, struct question_list *list)
{
    const char *space = line.n ? memchr(line.p, ' ', line.n) : NULL;
    uint32_t turn = 0;
    if (dgm_str_is(line, "*"))
        list->is_over = true;
    if (!space || list->n == DGM_MAX_WAITING_QUESTIONS)
        return;
    for (const char *p = space + 1; p < line.p + line.n && isdigit((unsigned char)*p); p++)
        turn = turn * 10 + (uint32_t)(*p - '0');
    list->at[list->n++] = (struct question_entry){
        dgm_arena_dup(a, (dgm_str){line.p, (size_t)(space - line.p)}), turn};
}

static void question_read_list(dgm_arena *a, dgm_str text, struct question_list *list)
{
    *list = (struct question_list){0};
    while (text.n) {
        const char *end = memchr(text.p, '\n', text.n);
        size_t n = end ? (size_t)(end - text.p) : text.n;
        question_read_line(a, (dgm_str){text.p, n}, list);
        n += end != NULL;
        text = (dgm_str){text.p + n, text.n - n};
    }
}

/* Every turn starts with a message of the caller. */
static uint32_t question_turn_of(const dgm_task *task)
{
    uint32_t turn = 0;
    for (size_t i = 0; i < task->history.n; i++)
        turn += task->history.at[i].role == DGM_ROLE_USER;
    return turn;
}

/* Reads the tasks of a list one after the other. */
struct question_walk {
    dgm_arena *arena;
    dgm_core *core;
    dgm_owner owner;
    dgm_str agent;
    struct question_list list;
    size_t at;
    /* task: it waits, in the turn that the entry names. It lives in the scratch arena, until this returns. */
    void (*on_waiting)(struct question_walk *w, const dgm_task *task, dgm_arena *scratch);
    void (*on_end)(struct question_walk *w);
};

static void question_walk_on(struct question_walk *w);

/* In an arena of its own: the task may be large. */
static void question_see_task(struct question_walk *w, const dgm_record *snapshot)
{
    dgm_auto(dgm_arena_free) dgm_arena *scratch = dgm_arena_new();
    dgm_event event;
    if (!dgm_record_event(snapshot, scratch, &event, NULL) && event.kind == DGM_EVENT_TASK &&
        dgm_state_is_interrupted(event.task->status.state) &&
        question_turn_of(event.task) == w->list.at[w->at].turn)
        w->on_waiting(w, event.task, scratch);
}

static void question_on_task(dgm_code code, dgm_record *snapshot, const dgm_err *err, void *arg)
{
    struct question_walk *w = arg;
    (void)err;
    if (!code)
        question_see_task(w, snapshot);
    w->at++;
    question_walk_on(w);
}

static void question_walk_on(struct question_walk *w)
{
    if (w->at < w->list.n)
        dgm_core_get(w->core, w->owner, w->agent, w->list.at[w->at].task_id, question_on_task, w);
    else
        w->on_end(w);
}

/* What makes those who read and write the note of one key wait for each other. */
static dgm_str question_lock(dgm_arena *a, dgm_owner owner, dgm_str key)
{
    return dgm_arena_printf(a, NOTE "\n%.*s\n%.*s\n%.*s", DGM_P(owner.tenant),
                            DGM_P(owner.principal), DGM_P(key));
}

/* ---- finding --------------------------------------------------------------------------------------------------------------- */

struct question_finding {
    struct question_walk walk; /* first */
    struct openai_question_search search;
    dgm_turn_once once;
    dgm_str key;
    dgm_str answer; /* the last answer in the request, without white space */
    dgm_str context_id;
    size_t n_found;
};

static void question_found(struct question_finding *f, dgm_str context_id)
{
    dgm_turn_begun(f->search.q->turns, &f->once);
    f->search.on_found(f->search.arg, context_id);
}

static dgm_str question_text(dgm_arena *a, const dgm_task *task)
{
    const dgm_message *m = task->status.message;
    bool others;
    dgm_str text =
        m ? dgm_content_text(a, &dgm_message_as_shown(a, m)->parts, &others) : (dgm_str){0};
    return text.n ? text : dgm_openai_our_question(task->status.state == DGM_STATE_AUTH_REQUIRED);
}

static void question_on_match(struct question_walk *w, const dgm_task *task, dgm_arena *scratch)
{
    struct question_finding *f = (struct question_finding *)w;
    dgm_str question = question_squeeze(scratch, question_text(scratch, task));
    if (!question.n || !memmem(f->answer.p, f->answer.n, question.p, question.n))
        return;
    f->n_found++;
    f->context_id = dgm_arena_dup(w->arena, task->context_id);
}

/* The request was sent before, and answered a question then: the same turn is its answer. */
static void question_on_turn(dgm_code code, const dgm_found_turn *turn, const dgm_err *err,
                             void *arg)
{
    struct question_finding *f = arg;
    dgm_str context_id = {0};
    (void)err;
    for (size_t i = 0; !code && i < f->walk.list.n; i++) {
        if (dgm_str_eq(f->walk.list.at[i].task_id, turn->task_id))
            context_id = dgm_arena_dup(f->walk.arena, turn->context_id);
    }
    question_found(f, context_id);
}

static void question_on_all_seen(struct question_walk *w)
{
    struct question_finding *f = (struct question_finding *)w;
    bool is_one = f->n_found == 1 && !w->list.is_over;
    if (!is_one && f->search.caller_id.n && w->list.n)
        dgm_core_find_turn(w->core, w->owner, w->agent, f->search.protocol, f->search.caller_id,
                           question_on_turn, f);
    else
        question_found(f, is_one ? f->context_id : (dgm_str){0});
}

static void question_on_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct question_finding *f = arg;
    (void)err; /* a store that cannot be read refuses the request, too */
    question_read_list(f->walk.arena, code ? (dgm_str){0} : text, &f->walk.list);
    question_walk_on(&f->walk);
}

static void question_look(void *arg)
{
    struct question_finding *f = arg;
    dgm_core_get_note(f->walk.core, f->walk.owner, DGM_STR(NOTE), f->key, question_on_note, f);
}

static dgm_str question_answer(dgm_arena *a, const dgm_canon_messages *list, size_t start,
                               size_t end)
{
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t i = start; i < end; i++) {
        if (list->at[i].role == DGM_CANON_ASSISTANT)
            dgm_buf_add_str(&b, dgm_canon_content_text(a, &list->at[i].content));
    }
    dgm_str text = question_squeeze(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

bool dgm_openai_question_find(const struct openai_question_search *search)
{
    const dgm_turn_request *q = search->q;
    const dgm_canon_messages *list = search->messages;
    dgm_arena *a = dgm_http_arena(q->x);
    size_t end = list->n, start; /* of the last answer: behind it only the user speaks */
    bool has_user = false;
    for (; end && list->at[end - 1].role != DGM_CANON_ASSISTANT; end--) {
        has_user |= list->at[end - 1].role == DGM_CANON_USER;
        if (list->at[end - 1].role == DGM_CANON_TOOL)
            return false; /* results find their task by the ids of the calls */
    }
    for (start = end; start && list->at[start - 1].role != DGM_CANON_USER; start--)
        ;
    if (q->turns->o.openai_by_id_only || !has_user || !end || !start)
        return false;
    struct question_finding *f = dgm_new(a, struct question_finding);
    *f = (struct question_finding){
        .walk = {.arena = a,
                 .core = q->turns->o.core,
                 .owner = q->owner,
                 .agent = search->agent->id,
                 .on_waiting = question_on_match,
                 .on_end = question_on_all_seen},
        .search = *search,
        .key =
            question_key(a, dgm_openai_question_seed(q, search->agent, search->body, list, start)),
        .answer = question_answer(a, list, start, end)};
    f->once = (dgm_turn_once){
        .name = question_lock(a, q->owner, f->key), .go_on = question_look, .arg = f};
    if (dgm_turn_begin(q->turns, &f->once))
        question_look(f);
    return true;
}

/* ---- storing --------------------------------------------------------------------------------------------------------------- */

/* Lives in its own arena: the exchange may be gone before it is stored. */
struct question_keeping {
    struct question_walk walk; /* first */
    dgm_turns *turns;
    dgm_turn_once once;
    dgm_str key;
    struct question_entry entry;
    struct question_list still; /* those that wait, of a list that is full */
    dgm_loop_fn on_kept;
    void *arg;
};

static void question_on_stored(dgm_code code, const dgm_err *err, void *arg)
{
    struct question_keeping *k = arg;
    (void)code, (void)err; /* not stored: then the next request starts a new task */
    dgm_turn_begun(k->turns, &k->once);
    if (k->on_kept)
        k->on_kept(k->arg);
    dgm_arena_free(k->walk.arena);
}

static void question_put(struct question_keeping *k, const struct question_list *list)
{
    dgm_buf b;
    bool is_full = list->n == DGM_MAX_WAITING_QUESTIONS || list->is_over;
    dgm_buf_init(&b, SIZE_MAX);
    if (is_full)
        dgm_buf_add_lit(&b, "*\n");
    for (size_t i = 0; i < list->n; i++)
        dgm_buf_printf(&b, "%.*s %u\n", DGM_P(list->at[i].task_id), list->at[i].turn);
    if (!is_full)
        dgm_buf_printf(&b, "%.*s %u\n", DGM_P(k->entry.task_id), k->entry.turn);
    dgm_note note = {.owner = k->walk.owner,
                     .kind = DGM_STR(NOTE),
                     .name = k->key,
                     .text = dgm_buf_str(&b),
                     .expires_ms = dgm_loop_unix_ms() + DGM_QUESTION_MS};
    dgm_core_put_note(k->walk.core, &note, question_on_stored, k);
    dgm_buf_done(&b);
}

static void question_still_waits(struct question_walk *w, const dgm_task *task, dgm_arena *scratch)
{
    struct question_keeping *k = (struct question_keeping *)w;
    (void)task, (void)scratch;
    k->still.at[k->still.n++] = w->list.at[w->at];
}

static void question_on_pruned(struct question_walk *w)
{
    struct question_keeping *k = (struct question_keeping *)w;
    k->still.is_over = w->list.is_over && k->still.n > 0;
    question_put(k, &k->still);
}

static void question_on_old_note(dgm_code code, dgm_str text, const dgm_err *err, void *arg)
{
    struct question_keeping *k = arg;
    struct question_list *list = &k->walk.list;
    (void)err;
    question_read_list(k->walk.arena, code ? (dgm_str){0} : text, list);
    for (size_t i = 0; i < list->n; i++) {
        if (list->at[i].turn == k->entry.turn &&
            dgm_str_eq(list->at[i].task_id, k->entry.task_id)) { /* it is there */
            question_on_stored(DGM_OK, NULL, k);
            return;
        }
    }
    if (list->n == DGM_MAX_WAITING_QUESTIONS || list->is_over)
        question_walk_on(&k->walk);
    else
        question_put(k, list);
}

static void question_add(void *arg)
{
    struct question_keeping *k = arg;
    dgm_core_get_note(k->walk.core, k->walk.owner, DGM_STR(NOTE), k->key, question_on_old_note, k);
}

void dgm_openai_question_keep(const struct openai_question *question, dgm_loop_fn on_kept,
                              void *arg)
{
    dgm_owner owner = question->owner;
    dgm_arena *a = dgm_arena_new();
    struct question_keeping *k = dgm_new(a, struct question_keeping);
    *k = (struct question_keeping){
        .walk = {.arena = a,
                 .core = question->turns->o.core,
                 .owner = {dgm_arena_dup(a, owner.tenant), dgm_arena_dup(a, owner.principal)},
                 .agent = dgm_arena_dup(a, question->agent),
                 .on_waiting = question_still_waits,
                 .on_end = question_on_pruned},
        .turns = question->turns,
        .key = question_key(a, question->seed),
        .entry = {dgm_arena_dup(a, question->task_id), question->turn},
        .on_kept = on_kept,
        .arg = arg};
    k->once = (dgm_turn_once){
        .name = question_lock(a, k->walk.owner, k->key), .go_on = question_add, .arg = k};
    if (dgm_turn_begin(question->turns, &k->once))
        question_add(k);
}
