/*
 * json/find.c - where in a text the value at a JSON pointer stands.
 *
 * For error messages: a decoder knows the pointer of what it refuses, a person wants the line. The
 * text has been parsed already, so this may take its grammar for granted; it is still safe on any
 * bytes.
 */
#include "json/json.h"

static size_t skip_space(dgm_str t, size_t i)
{
    while (i < t.n && (t.p[i] == ' ' || t.p[i] == '\n' || t.p[i] == '\r' || t.p[i] == '\t'))
        i++;
    return i;
}

static size_t skip_string(dgm_str t, size_t i) /* t.p[i] is the opening quote */
{
    for (i++; i < t.n && t.p[i] != '"'; i++)
        i += t.p[i] == '\\';
    return i < t.n ? i + 1 : t.n;
}

static size_t skip_value(dgm_str t, size_t i)
{
    size_t depth = 0;
    for (; i < t.n; i++) {
        char c = t.p[i];
        if (c == '"') {
            i = skip_string(t, i) - 1;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return i;
            if (--depth == 0)
                return i + 1;
        } else if (c == ',' && depth == 0) {
            return i;
        }
    }
    return t.n;
}

/* Is this key, as it stands in the text, the step of a pointer? Keys with escapes are not looked at
 * closely: their line is then that of the object around them. */
static bool is_step(dgm_str key, dgm_str step)
{
    size_t k = 0;
    for (size_t i = 0; i < step.n; i++, k++) {
        char c = step.p[i];
        if (c == '~' && i + 1 < step.n)
            c = step.p[++i] == '1' ? '/' : '~';
        if (k == key.n || key.p[k] != c)
            return false;
    }
    return k == key.n;
}

/* From the start of a container to the start of its child; 0 when it has none of that name. */
static size_t find_child(dgm_str t, size_t i, dgm_str step)
{
    bool array = t.p[i] == '[';
    size_t index = 0, wanted = 0;
    for (size_t k = 0; array && k < step.n; k++)
        wanted = wanted * 10 + (size_t)(step.p[k] - '0');
    for (i++; i < t.n; i++) {
        i = skip_space(t, i);
        if (i == t.n || t.p[i] == '}' || t.p[i] == ']')
            return 0;
        bool found = array && index++ == wanted;
        if (!array) {
            size_t end = skip_string(t, i);
            found = end >= i + 2 && is_step((dgm_str){t.p + i + 1, end - i - 2}, step);
            i = skip_space(t, end);
            if (i < t.n && t.p[i] == ':')
                i = skip_space(t, i + 1);
        }
        if (found)
            return i;
        i = skip_space(t, skip_value(t, i)); /* at the comma or the end */
        if (i < t.n && t.p[i] != ',')
            return 0;
    }
    return 0;
}

size_t dgm_json_find(dgm_str text, const char *pointer)
{
    size_t i = skip_space(text, 0);
    while (*pointer == '/' && i < text.n && (text.p[i] == '{' || text.p[i] == '[')) {
        dgm_str step = {pointer + 1, strcspn(pointer + 1, "/")};
        size_t child = find_child(text, i, step);
        if (!child || child >= text.n)
            break;
        i = child;
        pointer += 1 + step.n;
    }
    return i;
}

size_t dgm_json_next(dgm_str text, size_t i)
{
    if (i >= text.n)
        return text.n;
    i = skip_space(text, skip_value(text, i));
    return i < text.n && text.p[i] == ',' ? skip_space(text, i + 1) : i;
}
