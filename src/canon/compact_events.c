/* canon/compact_events.c - AG-UI's own streams, compacted: see compact.h. */
#include "base/buf.h"
#include "base/map.h"
#include "canon/compact.h"
#include "canon/message_content.h"

#include <stdlib.h>

/* A text, a call or reasoning: its place in the list, and its text so far. */
struct item {
    size_t content, end; /* places kept free for them; end SIZE_MAX: none */
    dgm_buf text;
    bool any;
};

struct compacting {
    dgm_arena *a;
    dgm_canon_events out;
    struct item *items;
    size_t n, cap;
    dgm_map index; /* kind and id -> item that goes on */
};

static size_t compact_events_give(struct compacting *k, const dgm_canon_event *e)
{
    k->out.at = dgm_list_grow(k->a, k->out.at, k->out.n, sizeof *k->out.at);
    k->out.at[k->out.n] = *e;
    return k->out.n++;
}

/* START, CONTENT or END of what? */
enum phase { OTHER, START, CONTENT, END, BARRIER };

static enum phase phase_of(const dgm_canon_event *e, char *ret_kind, dgm_str *ret_id)
{
    switch ((int)e->kind) {
    case DGM_CANON_TEXT_MESSAGE_START:
    case DGM_CANON_TEXT_MESSAGE_CONTENT:
    case DGM_CANON_TEXT_MESSAGE_END:
        *ret_kind = 't';
        *ret_id = e->text.message_id;
        return e->kind == DGM_CANON_TEXT_MESSAGE_START     ? START
               : e->kind == DGM_CANON_TEXT_MESSAGE_CONTENT ? CONTENT
                                                           : END;
    case DGM_CANON_REASONING_MESSAGE_START:
    case DGM_CANON_REASONING_MESSAGE_CONTENT:
    case DGM_CANON_REASONING_MESSAGE_END:
        *ret_kind = 'r';
        *ret_id = e->text.message_id;
        return e->kind == DGM_CANON_REASONING_MESSAGE_START     ? START
               : e->kind == DGM_CANON_REASONING_MESSAGE_CONTENT ? CONTENT
                                                                : END;
    case DGM_CANON_TOOL_CALL_START:
    case DGM_CANON_TOOL_CALL_ARGS:
    case DGM_CANON_TOOL_CALL_END:
        *ret_kind = 'c';
        *ret_id = e->call.tool_call_id;
        return e->kind == DGM_CANON_TOOL_CALL_START  ? START
               : e->kind == DGM_CANON_TOOL_CALL_ARGS ? CONTENT
                                                     : END;
    case DGM_CANON_RUN_STARTED:
    case DGM_CANON_RUN_FINISHED:
    case DGM_CANON_RUN_ERROR:
    case DGM_CANON_MESSAGES_SNAPSHOT: return BARRIER;
    default: return OTHER;
    }
}

static struct item *add_item(struct compacting *k, dgm_str key)
{
    k->items = dgm_list_reserve(k->items, k->n, &k->cap, sizeof *k->items);
    struct item *it = &k->items[k->n];
    *it = (struct item){.end = SIZE_MAX};
    dgm_buf_init(&it->text, SIZE_MAX);
    dgm_map_put(&k->index, key, k->n++);
    return it;
}

static void compact_events_add_content(struct compacting *k, struct item *it,
                                       const dgm_canon_event *e)
{
    bool call = e->kind == DGM_CANON_TOOL_CALL_ARGS;
    if (!it->any) {
        k->out.at[it->content] = *e; /* its metadata, if any, is the one that stays */
        it->any = true;
    }
    dgm_buf_add_str(&it->text, call ? e->call.delta : e->text.delta);
}

static void fill(struct compacting *k, struct item *it)
{
    dgm_canon_event *e = &k->out.at[it->content];
    bool ended = it->end != SIZE_MAX && k->out.at[it->end].kind != DGM_CANON_NONE;
    if (!it->text.n && it->any) {
        e->kind = DGM_CANON_NONE;
    } else if (it->any) {
        dgm_str text = dgm_arena_dup(k->a, dgm_buf_str(&it->text));
        if (e->kind == DGM_CANON_TOOL_CALL_ARGS) {
            e->call.delta = text;
            e->call.increment = NULL;
            e->call.whole = ended;
        } else {
            e->text.delta = text;
            e->text.whole = ended;
        }
    }
    dgm_buf_done(&it->text);
}

static void compact_events_add(struct compacting *k, const dgm_canon_event *e)
{
    static const dgm_canon_event nothing = {.kind = DGM_CANON_NONE};
    char kind = 0;
    dgm_str id = {0};
    enum phase phase = phase_of(e, &kind, &id);
    if (phase == BARRIER) {
        dgm_map_done(&k->index);
        dgm_map_init(&k->index);
    }
    if (phase == BARRIER || phase == OTHER) {
        compact_events_give(k, e);
        return;
    }
    dgm_str key = dgm_arena_printf(k->a, "%c%.*s", kind, DGM_P(id));
    size_t *known = dgm_map_get(&k->index, key);
    struct item *it = known ? &k->items[*known] : NULL;
    bool ended = it && it->end != SIZE_MAX && k->out.at[it->end].kind != DGM_CANON_NONE;
    if (phase == START || (phase == CONTENT && (!it || ended))) {
        it = add_item(k, key);
        if (phase == START)
            compact_events_give(k, e);
        it->content = compact_events_give(k, &nothing);
        if (phase == START)
            it->end = compact_events_give(k, &nothing);
    }
    if (phase == CONTENT)
        compact_events_add_content(k, it, e);
    else if (phase == END && it && it->end != SIZE_MAX && !ended)
        k->out.at[it->end] = *e;
    else if (phase == END)
        compact_events_give(k, e);
}

void dgm_compact_canon(dgm_arena *a, const dgm_canon_events *events, dgm_canon_events *ret_events)
{
    struct compacting k = {.a = a};
    size_t n = 0;
    dgm_map_init(&k.index);
    for (size_t i = 0; i < events->n; i++)
        compact_events_add(&k, &events->at[i]);
    for (size_t i = 0; i < k.n; i++)
        fill(&k, &k.items[i]);
    for (size_t i = 0; i < k.out.n; i++) {
        if (k.out.at[i].kind != DGM_CANON_NONE)
            k.out.at[n++] = k.out.at[i];
    }
    k.out.n = n;
    dgm_map_done(&k.index);
    free(k.items);
    *ret_events = k.out;
}
