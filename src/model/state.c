/*
 * model/state.c - the life of a task.
 *
 *   submitted -> working -> completed | failed | canceled | rejected      (terminal: frozen)
 *                 |   ^
 *                 v   |  a new message, or credentials that arrived
 *        input-required, auth-required                                    (interrupted)
 *
 * Any state that is not terminal may be followed by any other: agents skip steps. `unknown` has
 * no meaning, so it forbids nothing and ends nothing.
 */
#include "model/kinds.h"

#include "base/str.h"

static const struct {
    bool terminal, interrupted, final_03;
} class_of[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = {false, false, false},      [DGM_STATE_SUBMITTED] = {false, false, false},
    [DGM_STATE_WORKING] = {false, false, false},      [DGM_STATE_COMPLETED] = {true, false, true},
    [DGM_STATE_FAILED] = {true, false, true},         [DGM_STATE_CANCELED] = {true, false, true},
    [DGM_STATE_INPUT_REQUIRED] = {false, true, true}, [DGM_STATE_REJECTED] = {true, false, true},
    [DGM_STATE_AUTH_REQUIRED] = {false, true, false},
};

bool dgm_state_is_terminal(dgm_task_state s)
{
    return (unsigned)s < DGM_N_STATES && class_of[s].terminal;
}

bool dgm_state_is_interrupted(dgm_task_state s)
{
    return (unsigned)s < DGM_N_STATES && class_of[s].interrupted;
}

bool dgm_state_is_final_03(dgm_task_state s)
{
    return (unsigned)s < DGM_N_STATES && class_of[s].final_03;
}

/* SUBMITTED is where a task begins; nothing goes back there once it has moved. */
#define ANY ((1u << DGM_N_STATES) - 1)
#define ANY_BUT_SUBMITTED (ANY & ~(1u << DGM_STATE_SUBMITTED))
const char *const dgm_state_names[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = "unknown",
    [DGM_STATE_SUBMITTED] = "submitted",
    [DGM_STATE_WORKING] = "working",
    [DGM_STATE_COMPLETED] = "completed",
    [DGM_STATE_FAILED] = "failed",
    [DGM_STATE_CANCELED] = "canceled",
    [DGM_STATE_INPUT_REQUIRED] = "input-required",
    [DGM_STATE_REJECTED] = "rejected",
    [DGM_STATE_AUTH_REQUIRED] = "auth-required",
};

const uint16_t dgm_state_transitions[DGM_N_STATES] = {
    [DGM_STATE_UNKNOWN] = ANY,
    [DGM_STATE_SUBMITTED] = ANY,
    [DGM_STATE_WORKING] = ANY_BUT_SUBMITTED,
    [DGM_STATE_INPUT_REQUIRED] = ANY_BUT_SUBMITTED,
    [DGM_STATE_AUTH_REQUIRED] = ANY_BUT_SUBMITTED,
    [DGM_STATE_COMPLETED] = 0,
    [DGM_STATE_FAILED] = 0,
    [DGM_STATE_CANCELED] = 0,
    [DGM_STATE_REJECTED] = 0,
};

bool dgm_state_may_become(dgm_task_state from, dgm_task_state to)
{
    return (unsigned)from < DGM_N_STATES && (unsigned)to < DGM_N_STATES &&
           dgm_state_transitions[from] >> to & 1;
}

/* ---- kinds of objects ---------------------------------------------------------------------------- */

static const char *const kind_names[] = {"",
#define X(sym, name, type) name,
                                         DGM_OBJECT_KINDS(X)
#undef X
};

const char *dgm_object_kind_name(dgm_object_kind kind)
{
    return (size_t)kind < sizeof kind_names / sizeof *kind_names ? kind_names[kind] : "";
}

dgm_object_kind dgm_object_kind_by_name(dgm_str name)
{
    for (size_t i = 1; i < sizeof kind_names / sizeof *kind_names; i++) {
        if (dgm_str_eq(dgm_str_from(kind_names[i]), name))
            return (dgm_object_kind)i;
    }
    return DGM_OBJECT_NONE;
}

static const char *const format_names[] = {"",
#define X(sym, name) name,
                                           DGM_FORMAT_IDS(X)
#undef X
};

const char *dgm_format_id_name(dgm_format_id id)
{
    return (size_t)id < sizeof format_names / sizeof *format_names ? format_names[id] : "";
}

dgm_format_id dgm_format_id_by_name(const char *name)
{
    for (size_t i = 1; name && i < sizeof format_names / sizeof *format_names; i++) {
        if (strcmp(format_names[i], name) == 0)
            return (dgm_format_id)i;
    }
    return DGM_FORMAT_NONE;
}

#define X(sym, name) DGM_ROW_OF_FORMAT_##sym,
enum { DGM_ROW_OF_FORMAT_NONE, DGM_FORMAT_IDS(X) };
#undef X
#define X(sym, name, type) DGM_ROW_OF_OBJECT_##sym,
enum { DGM_ROW_OF_OBJECT_NONE, DGM_OBJECT_KINDS(X) };
#undef X
#define X(sym, ...) _Static_assert((int)DGM_FORMAT_##sym == (int)DGM_ROW_OF_FORMAT_##sym, #sym);
DGM_FORMAT_IDS(X)
#undef X
#define X(sym, ...) _Static_assert((int)DGM_OBJECT_##sym == (int)DGM_ROW_OF_OBJECT_##sym, #sym);
DGM_OBJECT_KINDS(X)
#undef X
