/* wire/agui/agui_proto_frames.c - a body of binary events, in pieces of any size, as lines of JSON. */
#include "base/limits.h"
#include "wire/agui/agui_proto.h"

void dgm_agui_proto_init(dgm_agui_proto_frames *f)
{
    dgm_buf_init(&f->hold, SIZE_MAX);
}

void dgm_agui_proto_done(dgm_agui_proto_frames *f)
{
    dgm_buf_done(&f->hold);
}

static dgm_code read_frame(dgm_str frame, dgm_buf *lines, dgm_err *err)
{
    bool known;
    dgm_code rc = dgm_agui_proto_read(frame, lines, &known, err);
    if (known)
        dgm_buf_add_char(lines, '\n');
    return rc;
}

dgm_code dgm_agui_proto_feed(dgm_agui_proto_frames *f, dgm_str bytes, dgm_buf *lines, dgm_err *err)
{
    size_t at = 0;
    dgm_code rc = DGM_OK;
    dgm_buf_add_str(&f->hold, bytes);
    while (!rc && f->hold.n - at >= DGM_AGUI_PROTO_HEAD) {
        size_t n = dgm_agui_proto_length(f->hold.p + at);
        if (n > DGM_MAX_RECORD_BYTES)
            rc =
                dgm_fail(err, DGM_TOO_LARGE, NULL,
                         "a binary event of %zu bytes is longer than the limit record_bytes of %zu",
                         n, DGM_MAX_RECORD_BYTES);
        else if (f->hold.n - at - DGM_AGUI_PROTO_HEAD < n)
            break;
        else
            rc = read_frame((dgm_str){f->hold.p + at + DGM_AGUI_PROTO_HEAD, n}, lines, err);
        at += DGM_AGUI_PROTO_HEAD + n;
    }
    dgm_buf_drop_front(&f->hold, at < f->hold.n ? at : f->hold.n);
    if (!f->hold.n)
        dgm_buf_shrink(&f->hold, DGM_ARENA_KEEP_BYTES);
    return rc;
}

dgm_code dgm_agui_proto_end(const dgm_agui_proto_frames *f, dgm_err *err)
{
    return f->hold.n ? dgm_fail(err, DGM_PARSE, NULL,
                                "the last binary event is cut short: %zu bytes of it are there",
                                f->hold.n)
                     : DGM_OK;
}
