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
    DEMO_ASK,      /* input-required, with this question; nothing follows */
    DEMO_AUTH,     /* auth-required; nothing follows */
    DEMO_FAIL,     /* failed, with this in metadata.error; nothing follows */
    DEMO_REJECT    /* rejected, with this text; nothing follows */
};

/* How a text is cut. */
enum demo_cut { DEMO_WORDS, DEMO_CHARACTERS, DEMO_KILOBYTES };

struct demo_step {
    enum demo_op op;
    unsigned wait;
    const char *text; /* NULL: made by the script's own function from what the user wrote */
    enum demo_cut cut;
    const char *name, *media_type; /* of a file */
};

struct demo_script {
    const char *word;  /* what the user writes; "": anything else */
    const char *about; /* for `help`; NULL: not listed */
    const struct demo_step *steps;
    /* rest: what stood behind the word. Texts live in the arena. */
    dgm_str (*text)(dgm_arena *a, dgm_str rest);
};

/* The script for a message; ret_rest is what stands behind its word. */
const struct demo_script *demo_script_for(const dgm_run *run, dgm_str text, dgm_str *ret_rest);

/* The length of the first piece. */
size_t demo_piece(dgm_str text, enum demo_cut cut);

extern const char demo_card[];
