/* lint/lint_format.c - detects the protocol and its dialect. */
#include "lint/lint_int.h"
#include "wire/a2a/a2a.h"
#include "wire/agui/agui.h"

#define N_FORMATS 4

static const lint_format formats[N_FORMATS] = {
    {"a2a-1.0", &dgm_codec_a2a_10, LINT_10},
    {"a2a-0.3", &dgm_codec_a2a_03, LINT_03},
    {"a2a-0.3-rest", &dgm_codec_a2a_03_rest, LINT_03_REST},
    {"ag-ui", NULL, 0},
};
static const lint_format *const agui = &formats[3];

size_t dgm_lint_formats(const char *const **ret_names)
{
    static const char *const names[N_FORMATS] = {"a2a-1.0", "a2a-0.3", "a2a-0.3-rest", "ag-ui"};
    *ret_names = names;
    return N_FORMATS;
}

const lint_format *dgm_lint_format_by_name(const char *name)
{
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    }
    return NULL;
}

/* RUN_STARTED, SOME_NEW_EVENT */
static bool is_event_name(dgm_str s)
{
    bool parted = false;
    for (size_t i = 0; i < s.n; i++) {
        if ((s.p[i] < 'A' || s.p[i] > 'Z') && s.p[i] != '_')
            return false;
        parted = parted || s.p[i] == '_';
    }
    return parted;
}

const lint_format *dgm_lint_format_detect(const yyjson_val *v, const lint_format *guess)
{
    yyjson_val *type = dgm_json_get(v, DGM_STR("type"));
    /* A2A has no `type` where its events begin. Of the formats of AG-UI's kind all events have one. */
    if (dgm_agui_recognise(v) ||
        (yyjson_is_str(type) && (guess == agui || is_event_name(dgm_json_str(type)))))
        return agui;
    const lint_format *best = NULL;
    int best_score = 0;
    dgm_form form;
    for (size_t i = 0; i < N_FORMATS; i++) {
        const lint_format *f = &formats[i];
        int score = f->a2a ? f->a2a->recognise(v, &form) : 0;
        if (score > best_score || (score && score == best_score && f == guess)) {
            best = f;
            best_score = score;
        }
    }
    return best;
}
