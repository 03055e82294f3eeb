/* backend/demo/demo_int.h - scripts as tables. */
#pragma once

#include "backend/backend_int.h"

/* One step of a script. `wait` is in milliseconds, before the step (of TEXT: before each piece). */
enum demo_op {
    DEMO_END,      /* the script is over: completed, with the text that was streamed */
    DEMO_MESSAGE,  /* answer with a Message; nothing follows */
    DEMO_WORKING,  /* a bare working status */
    DEMO_INDICATE, /* a working status with a status indicator */
    DEMO_TEXT,     /* stream a text, piece by piece */
    DEMO_BREAK,    /* the same, but stop in the middle and fail */
    DEMO_FILE,     /* a file by its bytes: text is base64 */
    DEMO_LINK,     /* a file by its address */
    DEMO_DATA,     /* JSON */
    DEMO_TELL,   /* an internal event of this kind; text is its JSON, or words where it has words */
    DEMO_INVOKE, /* another agent works for us, or has: an indicator that names it */
    DEMO_LISTEN, /* works on, and shows the messages that come meanwhile, until one of them is "done" */
    DEMO_RETURN,  /* the files that came with the message, as artifacts */
    DEMO_CALL,    /* input-required: the caller is to run a tool; nothing follows */
    DEMO_ASK,     /* input-required, with this question; nothing follows */
    DEMO_APPROVE, /* likewise, with a request for approval of the call of `name` */
    DEMO_AUTH,    /* auth-required; nothing follows */
    DEMO_FAIL,    /* failed, with this in metadata.error; nothing follows */
    DEMO_REJECT   /* rejected, with this text; nothing follows */
};

/* How a text is cut. */
enum demo_cut { DEMO_WORDS, DEMO_CHARACTERS, DEMO_KILOBYTES };

struct demo_step {
    enum demo_op op;
    unsigned wait;
    const char *text; /* NULL: made by the script's own function from what the user wrote */
    enum demo_cut cut;
    const char *name, *media_type; /* of a file; of a tool, state, agent */
    dgm_internal_kind kind;        /* TELL */
    const char *call_id;           /* TELL of tools, CALL */
};

struct demo_script {
    const char *word;  /* what the user writes; "": anything else */
    const char *about; /* for `help`; NULL: not listed */
    const struct demo_step *steps;
    /* rest: the text after the word. Texts live in the arena. */
    dgm_str (*text)(const dgm_run *run, dgm_str rest);
};

/* ---- scripts that show work (demo_work.c) ------------------------------------------------------------------- */

extern const struct demo_step dgm_demo_tools[], dgm_demo_parallel_tools[], dgm_demo_client_tool[],
    dgm_demo_state[], dgm_demo_reasoning[], dgm_demo_interrupt[], dgm_demo_usage[],
    dgm_demo_subagent[], dgm_demo_files[];
extern const char dgm_demo_interrupt_question[];

dgm_str dgm_demo_files_text(const dgm_run *run, dgm_str rest);
/* What goes on after these have asked. */
dgm_str dgm_demo_after_client_tool(const dgm_run *run, dgm_str rest);
dgm_str dgm_demo_after_interrupt(const dgm_run *run, dgm_str rest);
bool dgm_demo_requested_tool(const dgm_task *task);

/* A step's event, if its type is not one that every agent has. */
dgm_code dgm_demo_emit(dgm_run *run, const struct demo_step *step, dgm_err *err);
dgm_code dgm_demo_invoke(dgm_run *run, const struct demo_step *step, dgm_err *err);
dgm_code dgm_demo_return(dgm_run *run, dgm_err *err);
dgm_code dgm_demo_approve(dgm_run *run, const struct demo_step *step, dgm_err *err);
dgm_code dgm_demo_call(dgm_run *run, const struct demo_step *step, dgm_err *err);

/* The script for a message; ret_rest is the text after its word. */
const struct demo_script *dgm_demo_script_for(const dgm_run *run, dgm_str text, dgm_str *ret_rest);

/* The length of the first piece. */
size_t dgm_demo_chunk(dgm_str text, enum demo_cut cut);

extern const char dgm_demo_card[];
