/*
 * schema/schema_pattern.c - regular expressions in ECMA-262 syntax, by PCRE2.
 *
 * The syntaxes are nearly equal; the pattern is rewritten where they differ. A callout before every item of the pattern counts
 * the steps of a match, so that patterns use the same budget as the rest of a check. PCRE2's own limits on matching, depth and
 * memory are set besides.
 */
#include "base/limits.h"
#include "schema/schema_int.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

struct dgm_schema_pattern {
    pcre2_code *code;
    dgm_str text; /* as the schema has it */
};

/* ---- ECMA-262 to PCRE2 ------------------------------------------------------------------------- */

struct rewrite {
    dgm_str in;
    size_t i;
    dgm_buf *out;
    bool in_class;
};

/* Spaces of ECMA-262 as the content of a class, and all other characters. */
#define SPACES                                                                                     \
    "\\t-\\r \\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"     \
    "\\x{feff}"
#define NOT_SPACES                                                                                 \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}!-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}"  \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{fefe}"                 \
    "\\x{ff00}-\\x{10ffff}"

static const char *const categories[][2] = {
    {"Letter", "L"},
    {"Lowercase_Letter", "Ll"},
    {"Uppercase_Letter", "Lu"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Cased_Letter", "L&"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Format", "Cf"},
    {"Surrogate", "Cs"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

/* \p{Script=Greek}, \p{gc=Letter}, \p{Letter}: PCRE2 has scripts without a prefix and short categories only. */
static void rewrite_property(struct rewrite *r)
{
    size_t start = r->i + 3, end = start;
    while (end < r->in.n && r->in.p[end] != '}')
        end++;
    dgm_str name = {r->in.p + start, end - start};
    const char *equals = memchr(name.p, '=', name.n);
    if (equals)
        name = (dgm_str){equals + 1, (size_t)(name.p + name.n - equals - 1)};
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        if (dgm_str_eq(name, dgm_str_from(categories[i][0])))
            name = dgm_str_from(categories[i][1]);
    }
    dgm_buf_printf(r->out, "\\%c{%.*s}", r->in.p[r->i + 1], DGM_P(name));
    r->i = end < r->in.n ? end + 1 : end;
}

static bool read_hex(dgm_str s, size_t from, size_t n, uint32_t *ret)
{
    uint32_t c = 0;
    if (!n || n > 6 || from > s.n || s.n - from < n)
        return false;
    for (size_t i = from; i < from + n; i++) {
        int low = s.p[i] | 32, is_digit = s.p[i] >= '0' && s.p[i] <= '9';
        if (!is_digit && (low < 'a' || low > 'f'))
            return false;
        c = c * 16 + (uint32_t)(is_digit ? s.p[i] - '0' : low - 'a' + 10);
    }
    *ret = c;
    return true;
}

/* \u0041, \u{41}, and two halves of a character; anything else stays for PCRE2 to refuse. */
static bool rewrite_unicode(struct rewrite *r)
{
    uint32_t c, low;
    size_t digits = r->i + 2, n = 4;
    bool has_braces = digits < r->in.n && r->in.p[digits] == '{';
    if (has_braces) {
        const char *end = memchr(r->in.p + digits, '}', r->in.n - digits);
        digits++;
        n = end ? (size_t)(end - r->in.p) - digits : 0;
    }
    if (!read_hex(r->in, digits, n, &c))
        return false;
    r->i = digits + n + has_braces;
    if (c >> 10 == 0xD800 >> 10 && r->in.n - r->i >= 6 && r->in.p[r->i] == '\\' &&
        r->in.p[r->i + 1] == 'u' && read_hex(r->in, r->i + 2, 4, &low) &&
        low >> 10 == 0xDC00 >> 10) {
        c = 0x10000 + ((c & 0x3FF) << 10) + (low & 0x3FF);
        r->i += 6;
    }
    dgm_buf_printf(r->out, "\\x{%x}", c);
    return true;
}

static void rewrite_escape(struct rewrite *r)
{
    char c = r->i + 1 < r->in.n ? r->in.p[r->i + 1] : 0;
    bool has_brace = r->i + 2 < r->in.n && r->in.p[r->i + 2] == '{';
    if (c == 'u' && rewrite_unicode(r))
        return;
    if ((c == 'p' || c == 'P') && has_brace) {
        rewrite_property(r);
        return;
    }
    if (c == 's' || c == 'S')
        dgm_buf_printf(r->out, r->in_class ? "%s" : "[%s]", c == 's' ? SPACES : NOT_SPACES);
    else
        dgm_buf_add(r->out, r->in.p + r->i, r->in.n - r->i < 2 ? r->in.n - r->i : 2);
    r->i += 2;
}

static void rewrite_pattern(struct rewrite *r)
{
    while (r->i < r->in.n) {
        char c = r->in.p[r->i];
        if (c == '\\') {
            rewrite_escape(r);
            continue;
        }
        r->i++;
        if (r->in_class && c == '[') { /* PCRE2 would read [:alpha:] */
            dgm_buf_add_lit(r->out, "\\[");
        } else if (!r->in_class && c == '.') {
            dgm_buf_add_lit(r->out, "[^\\n\\r\\x{2028}\\x{2029}]");
        } else {
            r->in_class = c == '[' || (r->in_class && c != ']');
            dgm_buf_add_char(r->out, c);
        }
    }
}

/* ---- compiling --------------------------------------------------------------------------------- */

static void free_code(void *code)
{
    pcre2_code_free(code);
}

static pcre2_code *compile_code(dgm_str text, int *error, size_t *offset)
{
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    const uint32_t options = PCRE2_UTF | PCRE2_AUTO_CALLOUT | PCRE2_DOLLAR_ENDONLY |
                             PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF |
                             PCRE2_NEVER_BACKSLASH_C;
    pcre2_code *code = NULL;
    if (context) {
        pcre2_set_parens_nest_limit(context, DGM_MAX_PATTERN_DEPTH);
        code = pcre2_compile((PCRE2_SPTR)text.p, text.n, options, error, offset, context);
    }
    pcre2_compile_context_free(context);
    return code;
}

dgm_code dgm_schema_pattern_compile(dgm_arena *a, dgm_str text, const dgm_at *at,
                                    dgm_schema_pattern **ret_pattern, dgm_err *err)
{
    int error = 0;
    size_t offset = 0;
    dgm_buf out;
    if (text.n > DGM_MAX_PATTERN_BYTES)
        return dgm_fail(err, DGM_TOO_LARGE, at,
                        "the pattern has %zu bytes, more than the limit pattern_bytes of %zu",
                        text.n, (size_t)DGM_MAX_PATTERN_BYTES);
    dgm_buf_init(&out, DGM_MAX_PATTERN_BYTES * 256); /* \S becomes 170 bytes */
    struct rewrite r = {.in = text, .out = &out};
    rewrite_pattern(&r);
    pcre2_code *code = compile_code(dgm_buf_str(&out), &error, &offset);
    dgm_buf_done(&out);
    if (!code) {
        PCRE2_UCHAR8 reason[128] = "out of memory";
        if (error)
            pcre2_get_error_message(error, reason, sizeof reason);
        return dgm_fail(err, DGM_BAD_PARAMS, at, "invalid regular expression \"%.*s\": %s",
                        (int)(text.n < DGM_MAX_QUOTED_BYTES ? text.n : DGM_MAX_QUOTED_BYTES),
                        text.p, (const char *)reason);
    }
    dgm_arena_defer(a, free_code, code);
    *ret_pattern = dgm_new(a, dgm_schema_pattern);
    **ret_pattern = (dgm_schema_pattern){code, text};
    return DGM_OK;
}

/* ---- matching ---------------------------------------------------------------------------------- */

struct matching {
    dgm_schema_run *run;
    size_t last; /* position of the callout before */
};

/* An item may read all of the text before the next callout (a{60000}, \1), so a long text makes every step cost more. */
static int on_pattern_step(pcre2_callout_block *block, void *user)
{
    struct matching *m = user;
    size_t here = block->current_position;
    size_t moved = here > m->last ? here - m->last : m->last - here;
    m->last = here;
    return dgm_schema_spend(m->run, 1 + moved / 16 + block->subject_length / 256)
               ? 0
               : PCRE2_ERROR_CALLOUT;
}

static void free_match(void *match)
{
    pcre2_match_data_free(match);
}

static void free_context(void *context)
{
    pcre2_match_context_free(context);
}

static bool prepare_matching(dgm_schema_run *run)
{
    if (run->match)
        return true;
    run->match_context = pcre2_match_context_create(NULL);
    run->match = pcre2_match_data_create(1, NULL);
    if (run->match_context)
        dgm_arena_defer(run->arena, free_context, run->match_context);
    if (run->match)
        dgm_arena_defer(run->arena, free_match, run->match);
    if (!run->match || !run->match_context) {
        run->match = NULL;
        return dgm_schema_stop(run, NULL, "no memory for a regular expression");
    }
    pcre2_set_match_limit(run->match_context, DGM_MAX_SCHEMA_STEPS);
    pcre2_set_depth_limit(run->match_context, DGM_MAX_SCHEMA_STEPS);
    pcre2_set_heap_limit(run->match_context, (uint32_t)(DGM_MAX_PATTERN_HEAP_BYTES >> 10));
    return true;
}

bool dgm_schema_pattern_matches(dgm_schema_run *run, const dgm_schema_pattern *p, dgm_str text)
{
    struct matching m = {.run = run};
    if (!prepare_matching(run) || !dgm_schema_spend(run, 4 + text.n / 16))
        return false;
    pcre2_set_callout(run->match_context, on_pattern_step, &m);
    int rc = pcre2_match(p->code, (PCRE2_SPTR)(text.n ? text.p : ""), text.n, 0, 0, run->match,
                         run->match_context);
    if (rc >= 0)
        return true;
    if (rc == PCRE2_ERROR_NOMATCH || run->stop)
        return false;
    PCRE2_UCHAR8 reason[128] = "";
    pcre2_get_error_message(rc, reason, sizeof reason);
    return dgm_schema_stop(
        run, NULL, "the pattern \"%.*s\" cannot be checked: %s",
        (int)(p->text.n < DGM_MAX_QUOTED_BYTES ? p->text.n : DGM_MAX_QUOTED_BYTES), p->text.p,
        (const char *)reason);
}
