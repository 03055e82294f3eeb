/* backend/llm/mock_values.c - see mock_int.h: which tool fits a text, and values for its parameters. */
#include "backend/llm/mock_int.h"

#include <ctype.h>
#include <strings.h>

#define MAX_DEPTH 8

/* ---- words ------------------------------------------------------------------------------------------------------- */

static bool is_word_char(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The next word from *at on; empty: there are no more. */
static dgm_str values_next_word(dgm_str text, size_t *at)
{
    size_t i = *at, from;
    if (i >= text.n) /* also a text that is absent */
        return (dgm_str){0};
    while (i < text.n && !is_word_char(text.p[i]))
        i++;
    from = i;
    while (i < text.n && is_word_char(text.p[i]))
        i++;
    *at = i;
    return (dgm_str){text.p + from, i - from};
}

static bool has_this_word(dgm_str text, dgm_str word)
{
    size_t at = 0;
    for (dgm_str w; (w = values_next_word(text, &at)).n;) {
        if (dgm_str_eq_nocase(w, word))
            return true;
    }
    return false;
}

/* Words that fit any tool. */
static bool is_common_word(dgm_str word)
{
    static const char *const common[] = {
        "the",    "and",     "for",    "you",  "are",   "can",   "what",  "which", "who",
        "how",    "when",    "where",  "why",  "this",  "that",  "with",  "from",  "into",
        "please", "tell",    "give",   "get",  "show",  "has",   "have",  "its",   "not",
        "all",    "any",     "one",    "use",  "using", "about", "does",  "will",  "text",
        "tool",   "returns", "return", "user", "your",  "hello", "there", "some"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        if (dgm_str_eq_nocase(word, dgm_str_from(common[i])))
            return true;
    }
    return word.n < 3;
}

/* ---- tools ------------------------------------------------------------------------------------------------------- */

static size_t score_of(const yyjson_val *function, dgm_str text)
{
    dgm_str name = dgm_json_str_member(function, "name");
    dgm_str about = dgm_json_str_member(function, "description");
    size_t at = 0, score = 0;
    for (dgm_str w; (w = values_next_word(text, &at)).n;) {
        if (is_common_word(w))
            continue;
        score += has_this_word(name, w) ? 3 : has_this_word(about, w) ? 1 : 0;
        if (dgm_str_eq_nocase(w, DGM_STR("time")) && has_this_word(name, DGM_STR("now")))
            score += 2;
    }
    return score;
}

yyjson_val *dgm_mock_find_tool(const yyjson_val *tools, dgm_str text)
{
    yyjson_val *tool, *best = NULL;
    size_t i, n, best_score = 0;
    yyjson_arr_foreach ((yyjson_val *)(uintptr_t)tools, i, n, tool) {
        yyjson_val *function = dgm_json_get(tool, DGM_STR("function"));
        dgm_str name = dgm_json_str_member(function, "name");
        /* questions are asked by scripts only */
        if (dgm_str_is(name, "ask_user") || dgm_str_is(name, "request_auth"))
            continue;
        size_t score = score_of(function, text);
        if (score > best_score) {
            best = tool;
            best_score = score;
        }
    }
    return best;
}

/* ---- values ------------------------------------------------------------------------------------------------------- */

/* Parameters that are about the whole text, not about a word of it. */
static bool wants_whole_text(dgm_str name)
{
    static const char *const names[] = {"text",  "query",    "message",    "prompt",
                                        "input", "question", "expression", "content"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (dgm_str_eq_nocase(name, dgm_str_from(names[i])))
            return true;
    }
    return false;
}

/* The last word; for a parameter `from` the one before "to": km in "convert 5 km to mile". */
static dgm_str value_word(dgm_str name, dgm_str text)
{
    size_t at = 0;
    dgm_str last = {"", 0}, before_to = {"", 0};
    for (dgm_str w; (w = values_next_word(text, &at)).n; last = w) {
        if (dgm_str_eq_nocase(w, DGM_STR("to")))
            before_to = last;
    }
    return dgm_str_is(name, "from") && before_to.n ? before_to : last;
}

static void mock_put_number(dgm_buf *out, dgm_str text)
{
    size_t from = 0, n = 0;
    while (from < text.n && !isdigit((unsigned char)text.p[from]))
        from++;
    while (from + n < text.n && n < 9 && isdigit((unsigned char)text.p[from + n]))
        n++;
    while (n > 1 && text.p[from] == '0') { /* JSON has no leading zeros */
        from++;
        n--;
    }
    dgm_buf_add_str(out, n ? (dgm_str){text.p + from, n} : DGM_STR("1"));
}

static bool is_required(const yyjson_val *schema, dgm_str name)
{
    yyjson_val *e;
    size_t i, n;
    yyjson_arr_foreach (dgm_json_get(schema, DGM_STR("required")), i, n, e) {
        if (yyjson_is_str(e) && dgm_str_eq(dgm_json_str(e), name))
            return true;
    }
    return false;
}

static void mock_put_object(dgm_buf *out, const yyjson_val *schema, dgm_str text, int depth)
{
    yyjson_val *key, *value;
    size_t i, n, before = out->n;
    dgm_buf_add_char(out, '{');
    yyjson_obj_foreach (dgm_json_get(schema, DGM_STR("properties")), i, n, key, value) {
        if (!is_required(schema, dgm_json_str(key)))
            continue;
        if (out->n > before + 1)
            dgm_buf_add_char(out, ',');
        dgm_json_put_str(out, dgm_json_str(key));
        dgm_buf_add_char(out, ':');
        dgm_mock_put_value(out, value, dgm_json_str(key), text, depth + 1);
    }
    dgm_buf_add_char(out, '}');
}

void dgm_mock_put_value(dgm_buf *out, const yyjson_val *schema, dgm_str name, dgm_str text,
                        int depth)
{
    yyjson_val *words = dgm_json_get(schema, DGM_STR("enum"));
    yyjson_val *constant = dgm_json_get(schema, DGM_STR("const"));
    yyjson_val *type = dgm_json_get(schema, DGM_STR("type"));
    if (yyjson_is_arr(type))
        type = yyjson_arr_get_first(type);
    dgm_str word = yyjson_is_str(type) ? dgm_json_str(type) : DGM_STR("object");
    if (constant || yyjson_arr_size(words))
        dgm_json_put(out, constant ? constant : yyjson_arr_get_first(words));
    else if (depth > MAX_DEPTH || dgm_str_is(word, "null"))
        dgm_buf_add_lit(out, "null");
    else if (dgm_str_is(word, "string"))
        dgm_json_put_str(out, wants_whole_text(name) ? text : value_word(name, text));
    else if (dgm_str_is(word, "integer") || dgm_str_is(word, "number"))
        mock_put_number(out, text);
    else if (dgm_str_is(word, "boolean"))
        dgm_buf_add_lit(out, "true");
    else if (dgm_str_is(word, "array"))
        dgm_buf_add_lit(out, "[]");
    else
        mock_put_object(out, schema, text, depth);
}
