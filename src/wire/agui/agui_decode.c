/* wire/agui/agui_decode.c - the events of one stream. */
#include "canon/chunks_to_events.h"
#include "wire/agui/agui_int.h"

#include <stdlib.h>

struct dgm_agui_decoder {
    dgm_chunks *expand;
    unsigned spans, messages; /* retired events that had no id: how many were opened */
};

dgm_agui_decoder *dgm_agui_decoder_new(void)
{
    dgm_agui_decoder *d = dgm_xcalloc(1, sizeof *d);
    d->expand = dgm_chunks_new();
    return d;
}

void dgm_agui_decoder_free(dgm_agui_decoder *d)
{
    if (!d)
        return;
    dgm_chunks_free(d->expand);
    free(d);
}

/* THINKING_* were one at a time, so that they needed no ids. */
static void name_retired(dgm_agui_decoder *d, dgm_arena *a, dgm_canon_event *e)
{
    bool span = e->kind == DGM_CANON_REASONING_START || e->kind == DGM_CANON_REASONING_END;
    e->extra = NULL; /* unknown then, it may have a meaning now */
    if (e->kind == DGM_CANON_REASONING_START)
        d->spans++;
    if (e->kind == DGM_CANON_REASONING_MESSAGE_START) {
        d->messages++;
        e->text.role = DGM_CANON_REASONING;
    }
    e->text.message_id = span ? dgm_arena_printf(a, "thinking-%u", d->spans)
                              : dgm_arena_printf(a, "thinking-message-%u", d->messages);
}

dgm_code dgm_agui_decoder_feed(dgm_agui_decoder *d, dgm_reader *r, yyjson_val *v,
                               dgm_canon_sink sink)
{
    dgm_canon_event e;
    dgm_agui_found found;
    dgm_code rc;
    if ((rc = dgm_agui_read_event(r, v, NULL, &e, &found)) || found == DGM_AGUI_UNKNOWN)
        return rc;
    if (found == DGM_AGUI_RETIRED)
        name_retired(d, r->arena, &e);
    return dgm_chunks_feed(d->expand, &e, sink, r->err);
}

dgm_code dgm_agui_decoder_end(dgm_agui_decoder *d, dgm_canon_sink sink)
{
    return dgm_chunks_end(d->expand, sink);
}
