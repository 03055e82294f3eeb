/*
 * backend/tck/tck.c - the agent that the conformance kits expect to find.
 *
 * The start of the messageId decides what it does, the longest match winning (reference a2a.md 9.3);
 * ids that do not begin with tck- come from the older kits, which expect a question from every task (9.5).
 */
#include "backend/backend_int.h"

#include <stdlib.h>

static const char card[] = "{\"name\":\"TCK\",\"description\":\"Behaves as the A2A conformance "
                           "kits ask for.\",\"skills\":[{"
                           "\"id\":\"tck\",\"name\":\"Conformance\",\"description\":\"Does what "
                           "the kit names in the id of "
                           "its message.\",\"tags\":[\"tck\"]}]}";

enum act {
    COMPLETE,  /* with this text */
    ASK,       /* input-required */
    WORK_ASK,  /* working, a moment, input-required */
    ANSWER,    /* a Message */
    REJECT,    /* rejected */
    TEXT,      /* an artifact of this text, completed */
    TWO_TEXTS, /* the same in two chunks, cut before the last word */
    FILE_RAW,  /* an artifact by bytes, completed */
    FILE_URL,  /* by address */
    DATA,      /* of JSON */
    STAY       /* working for a while, completed */
};

static const struct row {
    const char *prefix;
    enum act act;
    const char *text;
} rows[] = {
    {"tck-", COMPLETE, "Hello from TCK"},
    {"tck-complete-task", COMPLETE, "Hello from TCK"},
    {"tck-input-required", ASK, NULL},
    {"tck-artifact-text", TEXT, "Generated text content"},
    {"tck-artifact-file", FILE_RAW, "dGNr"}, /* "tck" */
    {"tck-artifact-file-url", FILE_URL, "https://example.com/output.txt"},
    {"tck-artifact-data", DATA, "{\"key\":\"value\",\"count\":42}"},
    {"tck-message-response", ANSWER, "Direct message response"},
    {"tck-reject-task", REJECT, "rejected"},
    {"tck-stream-001", TEXT, "Stream hello from TCK"},
    {"tck-stream-002", COMPLETE, "Hello from TCK"},
    {"tck-stream-003", TEXT, "Stream task lifecycle"},
    {"tck-stream-ordering-001", TEXT, "Ordered output"},
    {"tck-stream-artifact-text", TEXT, "Streamed text content"},
    {"tck-stream-artifact-file", FILE_RAW, "dGNr"},
    {"tck-stream-artifact-chunked", TWO_TEXTS, "chunk-1 chunk-2"},
    {"test-resubscribe-message-id", STAY, "Done"},
    {"", WORK_ASK, NULL},
};

struct tck {
    double stay_seconds, ask_seconds;
};

struct stay {
    dgm_run *run;
    dgm_timer timer;
    dgm_loop_stop stop;
    const struct row *row;
};

static const struct row *tck_row_of(dgm_str id)
{
    const struct row *best = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (dgm_str_starts(id, dgm_str_from(rows[i].prefix)) &&
            (!best || strlen(rows[i].prefix) > strlen(best->prefix)))
            best = &rows[i];
    }
    return best;
}

/* ---- what is done at once -------------------------------------------------------------------------------- */

static dgm_code artifact(dgm_run *run, const struct row *row, dgm_err *err)
{
    dgm_str id = DGM_STR(DGM_ANSWER_ID), text = dgm_str_from(row->text);
    dgm_part part = {.kind = DGM_PART_TEXT, .content = text};
    dgm_code rc;
    switch (row->act) {
    case TWO_TEXTS: {
        size_t n = (size_t)(strrchr(row->text, ' ') - row->text) + 1;
        if ((rc = dgm_run_chunk(run, id, (dgm_str){0}, (dgm_str){text.p, n}, false, false, err)))
            return rc;
        return dgm_run_chunk(run, id, (dgm_str){0}, (dgm_str){text.p + n, text.n - n}, true, true,
                             err);
    }
    case FILE_RAW:
    case FILE_URL:
        part.kind = row->act == FILE_RAW ? DGM_PART_RAW : DGM_PART_URL;
        part.filename = DGM_STR("output.txt");
        part.media_type = DGM_STR("text/plain");
        break;
    case DATA:
        part = (dgm_part){.kind = DGM_PART_DATA, .data = dgm_json_parse_trusted(run->arena, text)};
        break;
    case COMPLETE:
    case ASK:
    case WORK_ASK:
    case ANSWER:
    case REJECT:
    case TEXT:
    case STAY: break;
    }
    return dgm_run_artifact(run, id, (dgm_str){0}, (dgm_parts){&part, 1}, err);
}

static dgm_code act(dgm_run *run, const struct row *row, dgm_err *err)
{
    dgm_str text = dgm_str_from(row->text);
    dgm_code rc;
    if (row->act == ANSWER)
        return dgm_run_reply(run, text, err);
    if (row->act == ASK)
        return dgm_run_status(run, DGM_STATE_INPUT_REQUIRED, (dgm_str){0}, err);
    if (row->act == REJECT)
        return dgm_run_status(run, DGM_STATE_REJECTED, text, err);
    if ((rc = dgm_run_status(run, DGM_STATE_WORKING, (dgm_str){0}, err)))
        return rc;
    if (row->act == COMPLETE)
        return dgm_run_status(run, DGM_STATE_COMPLETED, text, err);
    if ((rc = artifact(run, row, err)))
        return rc;
    bool is_text = row->act == TEXT || row->act == TWO_TEXTS;
    return dgm_run_status(run, DGM_STATE_COMPLETED, is_text ? text : (dgm_str){0}, err);
}

/* ---- what takes a while ---------------------------------------------------------------------------------- */

static void end(struct stay *s, const char *error)
{
    dgm_run *run = s->run;
    dgm_loop_off_stop(run->loop, &s->stop);
    dgm_timer_close(&s->timer, free, s);
    run->ops->end(run, error);
}

static void tck_finish(struct stay *s, dgm_task_state state, dgm_str text)
{
    dgm_err err = {0};
    end(s, dgm_run_status(s->run, state, text, &err) ? err.msg : NULL);
}

static void on_stop(void *arg)
{
    end(arg, DGM_SHUTTING_DOWN);
}

static void on_time(void *arg)
{
    struct stay *s = arg;
    if (s->row->act == STAY)
        tck_finish(s, DGM_STATE_COMPLETED, dgm_str_from(s->row->text));
    else
        tck_finish(s, DGM_STATE_INPUT_REQUIRED, (dgm_str){0});
}

static void tck_start(void *agent, dgm_run *run)
{
    const struct tck *t = agent;
    const struct row *row = tck_row_of(run->input->message->message_id);
    dgm_err err = {0};
    dgm_code rc;
    if (row->act != STAY && row->act != WORK_ASK) {
        rc = act(run, row, &err);
    } else if (!(rc = dgm_run_status(run, DGM_STATE_WORKING, (dgm_str){0}, &err))) {
        struct stay *s = dgm_xcalloc(1, sizeof *s);
        s->run = run;
        s->row = row;
        run->agent_data = s;
        dgm_run_has_read(run);
        dgm_timer_init(run->loop, &s->timer, on_time, s);
        s->stop = (dgm_loop_stop){.fn = on_stop, .arg = s};
        dgm_loop_on_stop(run->loop, &s->stop);
        dgm_timer_start(&s->timer,
                        (uint64_t)(1000 * (row->act == STAY ? t->stay_seconds : t->ask_seconds)));
        return;
    }
    run->ops->end(run, rc ? err.msg : NULL);
}

static void tck_cancel(void *agent, dgm_run *run)
{
    (void)agent;
    tck_finish(run->agent_data, DGM_STATE_CANCELED, (dgm_str){0});
}

/* ---- the type -------------------------------------------------------------------------------------------- */

static const dgm_setting tck_settings[] = {
    {"stay_seconds", DGM_SETTING_NUMBER, offsetof(struct tck, stay_seconds), .max = 600,
     .def = "4.5", .about = "how long a task works that the kits subscribe to or cancel"},
    {"ask_seconds", DGM_SETTING_NUMBER, offsetof(struct tck, ask_seconds), .max = 600, .def = "0.1",
     .about = "how long it works before it asks for input"},
    {0},
};

static dgm_code open_agent(const dgm_json *config, const dgm_agent_options *options,
                           void **ret_agent, dgm_err *err)
{
    /* twice the kits' TCK_STREAMING_TIMEOUT of 2 s and a little; 3 s would be too late to ask */
    struct tck t = {.stay_seconds = 4.5, .ask_seconds = 0.1};
    dgm_code rc = dgm_settings_read(config, tck_settings, &t, err);
    (void)options;
    if (rc)
        return rc;
    struct tck *agent = dgm_xmalloc(sizeof *agent);
    *agent = t;
    *ret_agent = agent;
    return DGM_OK;
}

static const dgm_inner inner = {
    .open = open_agent, .close = free, .start = tck_start, .cancel = tck_cancel};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_tck = {
    .type = "tck",
    .settings = tck_settings,
    .about = "behaves as the conformance kits ask for",
    .card = card,
    DGM_SHAPED(open_shaped),
};
