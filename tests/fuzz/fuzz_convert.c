/*
 * fuzz_convert.c - any bytes through every decoder and encoder.
 *
 * Checked for each pair of formats: no crash, an error has a message, input in pieces has the same result,
 * and we read what we write: converting the output to its own format works; between A2A's dialects and for
 * chat messages it changes nothing.
 */
#include "base/err.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

#include <dragoman/dragoman.h>
#include <stdio.h>
#include <stdlib.h>

/* All that are text. The first one is no format: the library is to find out. */
static size_t list_formats(const char **names, size_t max)
{
    size_t n = dgm_format_count(), found = 1;
    names[0] = "auto";
    for (size_t i = 0; i < n && found < max; i++) {
        if (strcmp(dgm_format_at(i)->name, "ag-ui-proto") != 0)
            names[found++] = dgm_format_at(i)->name;
    }
    return found;
}

static void must(bool holds, const char *what, const char *from, const char *to, dgm_str text)
{
    if (holds)
        return;
    fprintf(stderr, "%s: %s to %s:\n%.*s\n", what, from, to, DGM_P(text));
    abort();
}

static dgm_code convert(const char *from, const char *to, dgm_framing framing, dgm_str in,
                        char **ret, size_t *ret_n, dgm_err *err)
{
    dgm_convert_options o = {.size = sizeof o,
                             .from = dgm_format_id_by_name(from),
                             .to = dgm_format_id_by_name(to),
                             .framing = framing};
    return dgm_convert(&o, in.p, in.n, ret, ret_n, err);
}

static void in_pieces(const char *from, const char *to, dgm_str in, dgm_code want_rc, dgm_str want,
                      uint64_t seed)
{
    dgm_convert_options o = {
        .size = sizeof o, .from = dgm_format_id_by_name(from), .to = dgm_format_id_by_name(to)};
    dgm_converter *c;
    dgm_err err = {0};
    dgm_code rc = dgm_converter_new(&o, &c, &err);
    for (size_t i = 0; !rc && i < in.n;) {
        size_t n = 1 + (seed = dgm_hash(seed, &i, sizeof i)) % 37;
        n = n < in.n - i ? n : in.n - i;
        rc = dgm_converter_feed(c, in.p + i, n, &err);
        i += n;
    }
    if (!rc)
        rc = dgm_converter_end(c, &err);
    must(rc == want_rc, "another result in pieces", from, to, in);
    if (!rc)
        must(dgm_str_eq(dgm_converter_output(c), want), "another output in pieces", from, to, in);
    dgm_converter_free(c);
}

/* What stands for itself; a stream's ids are made of the stream, so that they change with it. */
static bool is_fixed(const char *to, dgm_str out)
{
    static const char chunk[] = "chat.completion";
    if (strncmp(to, "a2a-", 4) == 0)
        return true;
    for (size_t i = 0; i + sizeof chunk <= out.n; i++) {
        if (memcmp(out.p + i, chunk, sizeof chunk - 1) == 0)
            return false;
    }
    return strcmp(to, "openai-chat") == 0;
}

static void again(const char *to, dgm_str out)
{
    dgm_err err = {0};
    char *same = NULL, *more = NULL;
    size_t same_n = 0, more_n = 0;
    dgm_code rc = convert(to, to, DGM_FRAMING_AUTO, out, &same, &same_n, &err);
    if (rc)
        fprintf(stderr, "%s at %s\n", err.msg, err.at);
    must(rc == DGM_OK, "we do not read what we wrote", to, to, out);
    if (same_n) /* an empty output is not a stream */
        rc = convert(to, to, DGM_FRAMING_AUTO, (dgm_str){same, same_n}, &more, &more_n, &err);
    must(rc == DGM_OK, "we do not read what we wrote twice", to, to, out);
    must(!is_fixed(to, out) || dgm_str_eq((dgm_str){same, same_n}, (dgm_str){more, more_n}),
         "no fixed point", to, to, out);
    dgm_free(same);
    dgm_free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dgm_str in = {(const char *)data, size};
    uint64_t h = dgm_hash(1, data, size);
    const char *formats[32];
    size_t n_formats = list_formats(formats, 32);
    const char *to = formats[1 + h % (n_formats - 1)];
    for (size_t f = 0; f < n_formats; f++) {
        dgm_err err = {0};
        char *out = NULL;
        size_t n = 0;
        dgm_code rc = convert(formats[f], to, DGM_FRAMING_AUTO, in, &out, &n, &err);
        must(rc == err.code && (!rc || err.msg[0]), "an error without words", formats[f], to, in);
        in_pieces(formats[f], to, in, rc, (dgm_str){out, n}, h);
        if (!rc && n)
            again(to, (dgm_str){out, n});
        dgm_free(out);
    }
    return 0;
}
