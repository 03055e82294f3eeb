/*
 * backend/demo/demo.c - an agent whose answers are scripts, picked by what the user writes.
 *
 * A timer goes from step to step, so a run can be canceled between any two: an open text is closed
 * first (with a last chunk), then the task is canceled.
 */
#include "backend/demo/demo_int.h"

#include <stdlib.h>

#define FULL_MS 5 /* how soon we look again whether the log has room */

#define DEMO_MAX_HEARD 16    /* messages that one run accepts while it works */
#define DEMO_MAX_LOOKS 15000 /* how often it looks for one: five minutes */

struct demo {
    double pace; /* waits are multiplied by it */
};

struct play {
    dgm_run *run;
    const struct demo *demo;
    const struct demo_step *step;
    dgm_timer timer;
    dgm_loop_stop stop;
    dgm_str made;  /* by the script's function */
    dgm_str text;  /* what is left of the text being streamed */
    dgm_str whole; /* the text that was or is being streamed */
    size_t n_files;
    size_t n_heard, n_shown; /* messages that came while it worked; of them in artifacts */
    dgm_str *heard;
    unsigned n_looks;
    bool is_done; /* one of them was "done" */
    bool in_text; /* the first chunk is out, the last is not */
};

static void demo_finish(struct play *p, const char *error)
{
    dgm_run *run = p->run;
    dgm_loop_off_stop(run->loop, &p->stop);
    dgm_timer_close(&p->timer, free, p);
    run->ops->end(run, error);
}

/* ---- steps ----------------------------------------------------------------------------------------------- */

static dgm_code chunk(struct play *p, size_t n, bool last, dgm_err *err)
{
    dgm_str text = {p->text.p, n};
    bool append = p->in_text;
    p->in_text = !last;
    p->text = (dgm_str){p->text.p + n, p->text.n - n};
    return dgm_run_chunk(p->run, DGM_STR(DGM_ANSWER_ID), DGM_STR("Answer"), text, append, last,
                         err);
}

static dgm_code text_step(struct play *p, bool *ret_more, dgm_err *err)
{
    const struct demo_step *step = p->step;
    if (!p->in_text) {
        p->whole = step->text ? dgm_str_from(step->text) : p->made;
        p->text = p->whole;
    }
    size_t n = dgm_demo_chunk(p->text, step->cut);
    bool last = n == p->text.n || (step->op == DEMO_BREAK && 2 * p->text.n < p->whole.n);
    *ret_more = !last;
    return chunk(p, n, last, err);
}

static dgm_code file_step(struct play *p, dgm_err *err)
{
    const struct demo_step *step = p->step;
    dgm_part part = {
        .kind = step->op == DEMO_FILE ? DGM_PART_RAW : DGM_PART_URL,
        .content = dgm_str_from(step->text),
        .filename = dgm_str_from(step->name),
        .media_type = dgm_str_from(step->media_type),
    };
    dgm_str id = dgm_arena_printf(p->run->arena, "file-%zu", ++p->n_files);
    return dgm_run_artifact(p->run, id, part.filename, (dgm_parts){&part, 1}, err);
}

static dgm_code data_step(struct play *p, dgm_err *err)
{
    dgm_str name = dgm_str_from(p->step->name);
    dgm_part part = {
        .kind = DGM_PART_DATA,
        .data = dgm_json_parse_trusted(p->run->arena, dgm_str_from(p->step->text)),
    };
    return dgm_run_artifact(p->run, name, name, (dgm_parts){&part, 1}, err);
}

static bool demo_listens(const struct play *p)
{
    return p->step->op == DEMO_LISTEN && !p->is_done && p->n_heard < DEMO_MAX_HEARD &&
           p->n_looks < DEMO_MAX_LOOKS;
}

/* An artifact for each message; the last one is the answer. */
static dgm_code listen_step(struct play *p, bool *ret_more, dgm_err *err)
{
    dgm_code rc = DGM_OK;
    p->n_looks++;
    for (; p->n_shown < p->n_heard && !rc; p->n_shown++) {
        dgm_str id = dgm_arena_printf(p->run->arena, "heard-%zu", p->n_shown + 1);
        dgm_part part = {.kind = DGM_PART_TEXT, .content = p->heard[p->n_shown]};
        rc = dgm_run_artifact(p->run, id, DGM_STR("Heard"), (dgm_parts){&part, 1}, err);
    }
    *ret_more = demo_listens(p);
    if (!*ret_more)
        p->made = dgm_arena_printf(p->run->arena, "I heard %zu messages.", p->n_heard);
    return rc;
}

static bool demo_message(void *agent, dgm_run *run, const dgm_message *message,
                         const dgm_json *metadata)
{
    struct play *p = run->agent_data;
    (void)agent, (void)metadata;
    if (!demo_listens(p))
        return false;
    dgm_str text = dgm_text_trim(dgm_parts_text(message->parts, run->arena));
    p->is_done = dgm_str_is(text, "done");
    if (!p->heard)
        p->heard = dgm_new_n(run->arena, dgm_str, DEMO_MAX_HEARD);
    p->heard[p->n_heard++] = dgm_arena_dup(run->arena, text);
    return true;
}

/* *ret_over: that was the last step; *ret_more: the same step again. */
static dgm_code step(struct play *p, bool *ret_over, bool *ret_more, dgm_err *err)
{
    dgm_run *run = p->run;
    dgm_str text = p->step->text ? dgm_str_from(p->step->text) : p->made;
    *ret_over = false;
    switch (p->step->op) {
    case DEMO_WORKING: return dgm_run_status(run, DGM_STATE_WORKING, (dgm_str){0}, err);
    case DEMO_INDICATE: return dgm_run_indicate(run, text, err);
    case DEMO_TEXT:
    case DEMO_BREAK: return text_step(p, ret_more, err);
    case DEMO_FILE:
    case DEMO_LINK: return file_step(p, err);
    case DEMO_DATA: return data_step(p, err);
    case DEMO_TELL: return dgm_demo_emit(run, p->step, err);
    case DEMO_INVOKE: return dgm_demo_invoke(run, p->step, err);
    case DEMO_LISTEN: return listen_step(p, ret_more, err);
    case DEMO_RETURN: return dgm_demo_return(run, err);
    case DEMO_CALL:
    case DEMO_END:
    case DEMO_MESSAGE:
    case DEMO_ASK:
    case DEMO_APPROVE:
    case DEMO_AUTH:
    case DEMO_FAIL:
    case DEMO_REJECT: break;
    }
    *ret_over = true;
    switch (p->step->op) {
    case DEMO_MESSAGE: return dgm_run_reply(run, text, err);
    case DEMO_CALL: return dgm_demo_call(run, p->step, err);
    case DEMO_ASK: return dgm_run_status(run, DGM_STATE_INPUT_REQUIRED, text, err);
    case DEMO_APPROVE: return dgm_demo_approve(run, p->step, err);
    case DEMO_AUTH: return dgm_run_status(run, DGM_STATE_AUTH_REQUIRED, text, err);
    case DEMO_FAIL: return dgm_run_fail(run, text, err);
    case DEMO_REJECT: return dgm_run_status(run, DGM_STATE_REJECTED, text, err);
    default: return dgm_run_status(run, DGM_STATE_COMPLETED, p->whole, err);
    }
}

/* ---- time ------------------------------------------------------------------------------------------------ */

/* Steps until one has to be waited for. p is gone when this returns false. */
static bool play(struct play *p, bool waited)
{
    for (;;) {
        bool over, more = false;
        dgm_err err = {0};
        unsigned wait = p->step->wait;
        if (p->run->ops->is_full(p->run)) {
            dgm_timer_start(&p->timer, FULL_MS);
            return true;
        }
        if (wait > 0 && !waited) {
            double ms = wait * p->demo->pace;
            dgm_timer_start(&p->timer, ms < 1 ? 1 : (uint64_t)ms);
            return true;
        }
        dgm_code rc = step(p, &over, &more, &err);
        if (rc || over) {
            demo_finish(p, rc ? err.msg : NULL);
            return false;
        }
        if (!more)
            p->step++;
        waited = false;
    }
}

static void on_time(void *arg)
{
    play(arg, true);
}

/* Readers of the text get its last chunk. */
static dgm_code close_text(struct play *p, dgm_err *err)
{
    if (!p->in_text)
        return DGM_OK;
    p->text = DGM_STR("");
    return chunk(p, 0, true, err);
}

static void on_stop(void *arg)
{
    dgm_err err = {0};
    close_text(arg, &err);
    demo_finish(arg, DGM_SHUTTING_DOWN);
}

static void demo_start(void *agent, dgm_run *run)
{
    dgm_str rest, text = dgm_run_text(run, run->arena);
    const struct demo_script *script = dgm_demo_script_for(run, text, &rest);
    struct play *p = dgm_xcalloc(1, sizeof *p);
    p->run = run;
    p->demo = agent;
    p->step = script->steps;
    if (script->text)
        p->made = script->text(run, rest);
    run->agent_data = p;
    dgm_timer_init(run->loop, &p->timer, on_time, p);
    p->stop = (dgm_loop_stop){.fn = on_stop, .arg = p};
    dgm_loop_on_stop(run->loop, &p->stop);
    play(p, false);
}

static void demo_cancel(void *agent, dgm_run *run)
{
    struct play *p = run->agent_data;
    dgm_err err = {0};
    dgm_code rc = close_text(p, &err);
    (void)agent;
    if (!rc)
        rc = dgm_run_status(run, DGM_STATE_CANCELED, (dgm_str){0}, &err);
    demo_finish(p, rc ? err.msg : NULL);
}

/* ---- the type -------------------------------------------------------------------------------------------- */

static const dgm_setting demo_settings[] = {
    {"pace", DGM_SETTING_NUMBER, offsetof(struct demo, pace), .max = 100, .def = "1",
     .about = "how long it waits between steps, as a factor; 0 does not wait"},
    {0},
};

static dgm_code open_agent(const dgm_json *config, const dgm_agent_options *options,
                           void **ret_agent, dgm_err *err)
{
    struct demo d = {.pace = 1};
    dgm_code rc = dgm_settings_read(config, demo_settings, &d, err);
    (void)options;
    if (rc)
        return rc;
    struct demo *agent = dgm_xmalloc(sizeof *agent);
    *agent = d;
    *ret_agent = agent;
    return DGM_OK;
}

static const dgm_inner inner = {.open = open_agent,
                                .close = free,
                                .start = demo_start,
                                .cancel = demo_cancel,
                                .message = demo_message};
DGM_SHAPED_OPEN(open_shaped, inner)

const dgm_backend dgm_backend_demo = {
    .type = "demo",
    .settings = demo_settings,
    .about = "scripts that show everything an agent can do: write help",
    .card = dgm_demo_card,
    DGM_SHAPED(open_shaped),
};
