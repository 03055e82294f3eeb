/* lib/functions_compact.c - compact_events(): document 000's events, and AG-UI's own. */
#include "lib/functions_int.h"
#include "wire/agui/agui.h"

static void put_canon(dgm_functions_out *out, dgm_arena *a, const dgm_canon_events *events)
{
    for (size_t i = 0; i < events->n; i++) {
        dgm_writer w = dgm_functions_next(out, DGM_FORMAT_AG_UI);
        dgm_agui_write_event(&w, &events->at[i], (dgm_agui_peer){0}, a);
    }
}

dgm_code dgm_compact_events(const char *text, size_t n, char **ret_text, size_t *ret_n,
                            dgm_err *err)
{
    if (!ret_text || (!text && n))
        return dgm_fail(err, DGM_BAD_PARAMS, NULL, "missing argument");
    dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
    const dgm_str in = {text, n};
    dgm_functions_events events;
    dgm_functions_out out;
    dgm_err fault = {0};
    dgm_functions_out_init(&out);
    out.is_list = true;
    dgm_code rc = dgm_functions_read_events(a, in, &events, &fault);
    if (!rc && events.official) {
        dgm_compact_canon(a, &events.canon, &events.canon);
        put_canon(&out, a, &events.canon);
    } else if (!rc && !(rc = dgm_compact_simple(a, &events.simple, &events.simple, &fault))) {
        dgm_functions_put_simple(&out, &events.simple);
    }
    rc = dgm_functions_out_done(&out, rc, ret_text, ret_n, &fault);
    return rc ? dgm_functions_failed(in, &fault, err) : DGM_OK;
}
