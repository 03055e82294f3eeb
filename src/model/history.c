/* model/history.c - see history.h. */
#include "model/history.h"
#include "base/str.h"

/* Removes the end from the text, if it is the end. */
static bool cut_end(dgm_str *text, dgm_str end)
{
    if (end.n > text->n || memcmp(text->p + text->n - end.n, end.p, end.n) != 0)
        return false;
    text->n -= end.n;
    return true;
}

/* From its last part to its first: the text parts of a message are concatenated. */
static bool cut_message(dgm_str *text, const dgm_message *m, bool *ret_has_text)
{
    *ret_has_text = false;
    for (size_t i = m->parts.n; i-- > 0;) {
        const dgm_part *part = &m->parts.at[i];
        if (part->kind != DGM_PART_TEXT || !part->content.n)
            continue;
        if (!cut_end(text, part->content))
            return false;
        *ret_has_text = true;
    }
    return true;
}

bool dgm_history_ends_with(const dgm_messages *history, dgm_str text)
{
    bool is_first = true, has_text;
    if (!text.n)
        return false;
    for (size_t i = history->n; i-- > 0;) {
        const dgm_message *m = &history->at[i];
        dgm_str rest = text;
        if (m->role != DGM_ROLE_AGENT && is_first)
            return false;
        if (m->role != DGM_ROLE_AGENT)
            continue;
        if (!is_first)
            cut_end(&rest, DGM_STR("\n\n"));
        if (!cut_message(&rest, m, &has_text))
            return false;
        if (!has_text)
            continue;
        if (!is_first && !cut_end(&text, DGM_STR("\n\n")))
            return false;
        text = rest;
        is_first = false;
        if (!text.n)
            return true;
    }
    return false;
}
