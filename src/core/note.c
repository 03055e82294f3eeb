/* core/note.c - what callers want remembered that is no task: the store does, until the server ends. */
#include "core/core_int.h"

#include <stdlib.h>

/* The answer to one that came too late; never from inside the call. */
struct late {
    dgm_store_done done;
    dgm_on_note_found found;
    void *arg;
};

static void note_refuse(void *arg)
{
    struct late *l = arg;
    dgm_err err = {0};
    dgm_fail(&err, DGM_UNAVAILABLE, NULL, "the server is shutting down");
    if (l->found)
        l->found(err.code, (dgm_str){0}, &err, l->arg);
    else
        l->done(err.code, &err, l->arg);
    free(l);
}

static void refuse_soon(struct late late)
{
    struct late *l = dgm_xmalloc(sizeof *l);
    *l = late;
    dgm_loop_post(dgm_loop_current(), note_refuse, l);
}

void dgm_core_put_note(dgm_core *core, const dgm_note *note, dgm_store_done done, void *arg)
{
    if (core->stopping)
        refuse_soon((struct late){.done = done, .arg = arg});
    else
        dgm_store_put_note(core->o.store, note, done, arg);
}

void dgm_core_get_note(dgm_core *core, dgm_owner owner, dgm_str kind, dgm_str name,
                       dgm_on_note_found found, void *arg)
{
    if (core->stopping)
        refuse_soon((struct late){.found = found, .arg = arg});
    else
        dgm_store_get_note(core->o.store, owner, kind, name, found, arg);
}
