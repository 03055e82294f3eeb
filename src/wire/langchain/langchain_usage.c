/* wire/langchain/langchain_usage.c - usage_metadata, read and written. */
#include "wire/langchain/langchain_int.h"

static void add_count(dgm_opt_long *to, const yyjson_val *v, const char *name)
{
    int64_t n;
    yyjson_val *m = dgm_json_get(v, dgm_str_from(name));
    if (!m || !yyjson_is_raw(m) || !dgm_json_int(m, &n) || n < 0 || n > (int64_t)1 << 50)
        return;
    if (to->value > (int64_t)1 << 52)
        return;
    *to = (dgm_opt_long){true, to->value + n};
}

void dgm_lc_add_usage(dgm_canon_usage *to, const yyjson_val *data)
{
    const yyjson_val *usage = dgm_json_get(data, DGM_STR("usage_metadata"));
    const yyjson_val *in = dgm_json_get(usage, DGM_STR("input_token_details"));
    add_count(&to->input_tokens, usage, "input_tokens");
    add_count(&to->output_tokens, usage, "output_tokens");
    add_count(&to->total_tokens, usage, "total_tokens");
    add_count(&to->cached_input_tokens, in, "cache_read");
    add_count(&to->cache_write_input_tokens, in, "cache_creation");
    add_count(&to->reasoning_tokens, dgm_json_get(usage, DGM_STR("output_token_details")),
              "reasoning");
}

static void put_count(dgm_buf *b, const char *name, dgm_opt_long n)
{
    if (!n.set)
        return;
    dgm_buf_printf(b, "%s\"%s\":", b->p[b->n - 1] == '{' ? "" : ",", name);
    dgm_json_put_int(b, n.value);
}

static int64_t sum(dgm_opt_long a, dgm_opt_long b)
{
    return (a.set ? a.value : 0) + (b.set ? b.value : 0);
}

/* LangChain wants all three counts, of all models together. */
void dgm_lc_put_usage(dgm_buf *b, const dgm_canon_usages *usage)
{
    dgm_canon_usage all = {.input_tokens = {true, 0}, .output_tokens = {true, 0}};
    bool counted = false;
    for (size_t i = 0; i < usage->n; i++) {
        const dgm_canon_usage *u = &usage->at[i];
        counted |= u->input_tokens.set || u->output_tokens.set;
        all.input_tokens.value += sum(u->input_tokens, (dgm_opt_long){0});
        all.output_tokens.value += sum(u->output_tokens, (dgm_opt_long){0});
#define ADD(member)                                                                                \
    if (u->member.set)                                                                             \
    all.member = (dgm_opt_long){true, sum(all.member, u->member)}
        ADD(reasoning_tokens);
        ADD(cached_input_tokens);
        ADD(cache_write_input_tokens);
#undef ADD
    }
    if (!counted)
        return;
    all.total_tokens = (dgm_opt_long){true, sum(all.input_tokens, all.output_tokens)};
    dgm_buf_add_lit(b, ",\"usage_metadata\":{");
    put_count(b, "input_tokens", all.input_tokens);
    put_count(b, "output_tokens", all.output_tokens);
    put_count(b, "total_tokens", all.total_tokens);
    if (all.cached_input_tokens.set || all.cache_write_input_tokens.set) {
        dgm_buf_add_lit(b, ",\"input_token_details\":{");
        put_count(b, "cache_read", all.cached_input_tokens);
        put_count(b, "cache_creation", all.cache_write_input_tokens);
        dgm_buf_add_char(b, '}');
    }
    if (all.reasoning_tokens.set) {
        dgm_buf_add_lit(b, ",\"output_token_details\":{");
        put_count(b, "reasoning", all.reasoning_tokens);
        dgm_buf_add_char(b, '}');
    }
    dgm_buf_add_char(b, '}');
}
