/* wire/a2a/a2a_10.c - requests, results and the card of 1.0; messages, tasks and events are in model/form.c. */
#include "wire/a2a/a2a_card_int.h"

#define DIALECT_10
#include "model/a2a_table.h"

/* 1.0 has one authentication scheme, 0.3 a list. */
static dgm_code read_scheme(dgm_reader *r, yyjson_val *v, const dgm_at *at, void *object)
{
    dgm_push_auth *auth = object;
    dgm_str *scheme = dgm_new(r->arena, dgm_str);
    dgm_code rc = dgm_read_str(r, v, at, scheme);
    if (!rc)
        auth->schemes = (dgm_strs){scheme, scheme->n ? 1 : 0};
    return rc;
}

static void write_scheme(dgm_writer *w, const dgm_field *f, const void *object)
{
    const dgm_push_auth *auth = object;
    dgm_put_key(w, f);
    dgm_json_put_str(w->out, auth->schemes.n ? auth->schemes.at[0] : DGM_STR(""));
}
static const dgm_custom push_scheme = {read_scheme, write_scheme};

/* Absent is false in 1.0, while 0.3 can leave it open. Set it, because some servers of 0.3 do not wait unless a request
 * sets it. */
static dgm_code wait_by_default(dgm_reader *r, void *object, yyjson_val *v, const dgm_at *at)
{
    dgm_send_configuration *c = object;
    (void)r;
    (void)v;
    (void)at;
    if (c->return_immediately == DGM_UNSET)
        c->return_immediately = DGM_FALSE;
    return DGM_OK;
}

#include "wire/a2a/a2a_card.def"
#include "wire/a2a/a2a_requests.def"
