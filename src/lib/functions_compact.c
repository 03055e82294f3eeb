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

dgm_code dgm_functions_compact(dgm_functions_in *in, dgm_functions_out *out, dgm_err *err)
{
    dgm_functions_events events;
    dgm_code rc;
    out->is_list = true;
    if ((rc = dgm_functions_read_events(in, &events, err)))
        return rc;
    if (events.official) {
        dgm_compact_canon(in->a, &events.canon, &events.canon);
        put_canon(out, in->a, &events.canon);
    } else if (!(rc = dgm_compact_simple(in->a, &events.simple, &events.simple, err))) {
        dgm_functions_put_simple(out, &events.simple);
    }
    return rc;
}

dgm_code dgm_compact_events(const char *text, size_t n, char **ret_text, size_t *ret_n,
                            dgm_err *err)
{
    return dgm_functions_on_text(dgm_functions_compact, (dgm_str){text, n}, ret_text, ret_n, err);
}
