/*
 * fuzz_config.c - any bytes are a configuration or get findings; what is printed of a good one reads back
 * the same. The first byte chooses YAML or JSON.
 */
#include "config/config.h"
#include "fuzz/fuzz.h"

#include <stdlib.h>

static void must(bool holds)
{
    if (!holds)
        abort();
}

static const char *env(const char *name)
{
    return name[0] == 'A' ? "value" : name[0] == 'N' ? "17" : NULL;
}

static dgm_config *load(const char *file, dgm_str text)
{
    return dgm_config_load(
        &(dgm_config_source){.file = file, .text = text, .env = env, .no_files = true});
}

static void look(const dgm_config *c)
{
    size_t n_errors = 0;
    for (size_t i = 0; i < c->n_findings; i++) {
        const dgm_config_finding *f = &c->findings[i];
        dgm_buf b;
        n_errors += !f->is_warning;
        must(f->what.n && f->file.n && (f->pointer.n == 0 || f->pointer.p[0] == '/'));
        must((f->line == 0) == (f->column == 0));
        dgm_buf_init(&b, SIZE_MAX);
        dgm_config_finding_put(&b, f);
        dgm_buf_done(&b);
    }
    must((n_errors > 0) == (c->n_errors > 0));
}

static void comes_back(const dgm_config *c)
{
    dgm_buf one, two;
    dgm_config *again;
    dgm_config_change *changes;
    dgm_arena *a = dgm_arena_new();
    dgm_buf_init(&one, SIZE_MAX);
    dgm_buf_init(&two, SIZE_MAX);
    dgm_config_put(&one, c);
    /* JSON is read as JSON and, but for what YAML's printable set leaves out, as YAML */
    again = load("again.json", dgm_buf_str(&one));
    dgm_config_put(&two, again);
    if (!again->n_errors) { /* two tokens may be "***" now, and ${ is one again */
        must(dgm_str_eq(dgm_buf_str(&one), dgm_buf_str(&two)));
        must(c->tokens.n || dgm_config_diff(a, c, again, &changes) == 0);
    }
    dgm_config_free(again);
    dgm_buf_done(&one);
    dgm_buf_done(&two);
    dgm_arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool json = size && data[0] == '{';
    dgm_config *c = load(json ? "a.json" : "a.yaml", (dgm_str){(const char *)data, size});
    look(c);
    if (c->n_errors == 0)
        comes_back(c);
    dgm_config_free(c);
    if (json) { /* most JSON is YAML as well */
        c = load("a.yaml", (dgm_str){(const char *)data, size});
        look(c);
        dgm_config_free(c);
    }
    return 0;
}
