/* frontend/agui/agui_messages.c - which of a thread's messages somebody is shown who comes back to it. */
#include "base/map.h"
#include "frontend/agui/agui_front_int.h"

/* Where the message stands already, with the same words: n if it does not. */
static size_t first_time(dgm_arena *a, const dgm_canon_messages *list, const dgm_map *ids,
                         const dgm_canon_message *m)
{
    size_t *at = m->role == DGM_CANON_USER ? dgm_map_get(ids, m->id) : NULL;
    if (!at || *at >= list->n || !dgm_str_eq(list->at[*at].id, m->id))
        return list->n;
    bool same = dgm_str_eq(dgm_canon_content_text(a, &list->at[*at].content),
                           dgm_canon_content_text(a, &m->content));
    return same ? *at : list->n;
}

dgm_canon_messages agui_shown(dgm_arena *a, const dgm_canon_messages *all)
{
    dgm_canon_messages shown = {dgm_new_n(a, dgm_canon_message, all->n), 0};
    dgm_map ids;
    dgm_map_init(&ids);
    for (size_t i = 0; i < all->n; i++) {
        const dgm_canon_message *m = &all->at[i];
        if (m->role == DGM_CANON_ACTIVITY)
            continue;
        shown.n = first_time(a, &shown, &ids, m);
        dgm_map_put(&ids, m->id, shown.n);
        shown.at[shown.n++] = *m;
    }
    dgm_map_done(&ids);
    return shown;
}

size_t agui_cut(const dgm_canon_messages *messages, dgm_str message_id, dgm_str run_id)
{
    for (size_t i = messages->n; message_id.n && i-- > 0;) {
        if (dgm_str_eq(messages->at[i].id, message_id))
            return i + 1;
    }
    for (size_t i = 0; run_id.n && i < messages->n; i++) {
        dgm_str id = messages->at[i].id;
        if (dgm_str_starts(id, run_id) && id.n > run_id.n && id.p[run_id.n] == '-')
            return i;
    }
    return messages->n;
}
