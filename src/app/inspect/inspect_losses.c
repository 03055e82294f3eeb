/* app/inspect/inspect_losses.c - losses of a conversion, per record; the lines of columns. */
#include "app/inspect/inspect_int.h"
#include "json/json.h"

#include <stdlib.h>

void dgm_inspect_losses_done(struct inspect_losses *l)
{
    free(l->counts);
    *l = (struct inspect_losses){0};
}

void dgm_inspect_put_losses(struct inspect_losses *l, const dgm_converter *c, dgm_buf *out)
{
    size_t n = c ? dgm_converter_loss_count(c) : 0, n_put = 0;
    if (n > l->n) {
        l->counts = dgm_xrealloc(l->counts, n * sizeof *l->counts);
        memset(l->counts + l->n, 0, (n - l->n) * sizeof *l->counts);
        l->n = n;
    }
    dgm_buf_add_char(out, '[');
    for (size_t i = 0; i < n; i++) {
        const dgm_loss_seen *seen = dgm_converter_loss_at(c, i);
        if (seen->count == l->counts[i])
            continue;
        l->counts[i] = seen->count;
        dgm_buf_add_str(out, n_put++ ? DGM_STR(",{\"what\":") : DGM_STR("{\"what\":"));
        dgm_str object = dgm_str_from(seen->loss->object), at = dgm_str_from(seen->loss->member);
        dgm_buf_add_char(out, '"');
        dgm_json_put_chars(out, object);
        dgm_buf_add_str(out, at.n ? DGM_STR(" ") : DGM_STR(""));
        dgm_json_put_chars(out, at);
        dgm_buf_add_lit(out, "\",\"why\":");
        dgm_json_put_str(out, dgm_str_from(seen->loss->what));
        dgm_buf_add_char(out, '}');
    }
    dgm_buf_add_char(out, ']');
}

void dgm_inspect_put_line(uint64_t seq, dgm_str frames, struct inspect_losses *l,
                          const dgm_converter *c, const char *error, dgm_buf *out)
{
    dgm_buf_add_lit(out, "{\"seq\":");
    if (seq)
        dgm_json_put_int(out, (int64_t)seq);
    else
        dgm_buf_add_lit(out, "null");
    dgm_buf_add_lit(out, ",\"frames\":");
    dgm_json_put_str(out, frames);
    if (seq) {
        dgm_buf_add_lit(out, ",\"losses\":");
        dgm_inspect_put_losses(l, c, out);
    }
    if (error) {
        dgm_buf_add_lit(out, ",\"error\":");
        dgm_json_put_str(out, dgm_str_from(error));
    }
    dgm_buf_add_lit(out, "}\n");
}
