/*
 * canon/records_to_events_calls.c - calls of a run, their arguments, their results.
 *
 * Calls of one model call have one parent, so that they become one assistant message again. Arguments
 * that come as text are passed on as they come; those that come as objects are merged by key, and their
 * text is emitted when they are complete: a piece of text cannot be withdrawn.
 */
#include "canon/records_to_events_int.h"

/* ---- one call ------------------------------------------------------------------------------------------- */

static struct from_call *from_records_find_call(const dgm_records_to_events *f, dgm_str id)
{
    size_t *at = dgm_map_get(&f->calls_by_id, id);
    return at ? &f->calls[*at] : NULL;
}

bool dgm_from_is_waiting(const dgm_records_to_events *f, dgm_str call_id)
{
    const struct from_call *c = from_records_find_call(f, call_id);
    return c && !c->answered;
}

dgm_strs dgm_from_waiting_calls(dgm_records_to_events *f)
{
    dgm_strs ids = {dgm_new_n(f->scratch, dgm_str, f->n_calls), 0};
    for (size_t i = 0; i < f->n_calls; i++) {
        if (!f->calls[i].answered)
            ids.at[ids.n++] = f->calls[i].id;
    }
    return ids;
}

/* Which assistant message does a call belong to? preferred: of the message that holds it. */
static void choose_parent(dgm_records_to_events *f, dgm_str preferred)
{
    if (f->after_result && !f->model_calls_sent)
        f->parent = (dgm_str){0}; /* no model calls are reported: a result implies one */
    f->after_result = false;
    if (!f->parent.n)
        f->parent = dgm_from_message_id(f, preferred);
}

static struct from_call *from_records_start_call(dgm_records_to_events *f, dgm_str id, dgm_str name,
                                                 dgm_str preferred)
{
    f->calls = dgm_list_reserve(f->calls, f->n_calls, &f->cap_calls, sizeof *f->calls);
    struct from_call *c = &f->calls[f->n_calls];
    *c = (struct from_call){.id = dgm_arena_dup(f->arena, id),
                            .name = dgm_arena_dup(f->arena, name),
                            .turn = f->user_messages};
    dgm_buf_init(&c->text, SIZE_MAX);
    dgm_map_init(&c->by_key);
    dgm_map_put(&f->calls_by_id, c->id, f->n_calls++);
    dgm_from_settle_texts(f);
    dgm_from_end_reasoning(f);
    choose_parent(f, preferred);
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_START};
    e.call.tool_call_id = c->id;
    e.call.name = c->name;
    e.call.parent_message_id = f->parent;
    dgm_from_out(f, &e);
    return c;
}

static void from_records_add_text(dgm_records_to_events *f, struct from_call *c, dgm_str text,
                                  bool whole)
{
    if (!text.n)
        return;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    e.call.tool_call_id = c->id;
    e.call.delta = text;
    e.call.whole = whole;
    dgm_buf_add_str(&c->text, text);
    dgm_from_out(f, &e);
}

static void from_records_end_call(dgm_records_to_events *f, struct from_call *c)
{
    if (c->ended)
        return;
    c->ended = true;
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_END};
    e.call.tool_call_id = c->id;
    dgm_from_out(f, &e);
    dgm_from_forget_call(c);
}

void dgm_from_forget_call(struct from_call *c)
{
    dgm_buf_done(&c->text);
    dgm_map_done(&c->by_key);
    c->n_members = 0;
}

/* ---- arguments --------------------------------------------------------------------------------------------- */

static void merge(dgm_records_to_events *f, struct from_call *c, const dgm_json *object)
{
    yyjson_obj_iter it = yyjson_obj_iter_with((yyjson_val *)(uintptr_t)object);
    yyjson_val *key;
    while ((key = yyjson_obj_iter_next(&it))) {
        size_t *known = dgm_map_get(&c->by_key, dgm_json_str(key));
        size_t i = known ? *known : c->n_members;
        if (!known) {
            c->members = dgm_list_grow(f->arena, c->members, c->n_members, sizeof *c->members);
            c->members[c->n_members++].key = dgm_arena_dup(f->arena, dgm_json_str(key));
            dgm_map_put(&c->by_key, c->members[i].key, i);
        }
        c->members[i].value = dgm_json_copy(f->arena, yyjson_obj_iter_get_val(key));
    }
}

static void from_records_add_piece(dgm_records_to_events *f, struct from_call *c,
                                   const dgm_json *arguments)
{
    if (!arguments)
        return;
    if (yyjson_is_str((yyjson_val *)(uintptr_t)arguments)) {
        from_records_add_text(f, c, dgm_json_str(arguments), false);
        return;
    }
    merge(f, c, arguments);
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_ARGS};
    e.call.tool_call_id = c->id;
    e.call.increment = arguments;
    dgm_from_out(f, &e);
}

static bool same_value(dgm_records_to_events *f, dgm_str text, const dgm_json *arguments)
{
    yyjson_val *v;
    return !dgm_json_read(f->scratch, text, SIZE_MAX, "object_bytes", &v, NULL) &&
           dgm_json_equal(v, arguments);
}

static bool from_records_is_json(dgm_records_to_events *f, dgm_str text)
{
    yyjson_val *v;
    return !dgm_json_read(f->scratch, text, SIZE_MAX, "object_bytes", &v, NULL);
}

/* All of the arguments, or no more of them (NULL). */
static void complete(dgm_records_to_events *f, struct from_call *c, const dgm_json *arguments)
{
    if (c->ended)
        return;
    bool object = yyjson_is_obj((yyjson_val *)(uintptr_t)arguments);
    if (c->n_members && (object || !arguments)) {
        merge(f, c, arguments);
        arguments = dgm_json_object(f->scratch, c->members, c->n_members);
    }
    dgm_str said = dgm_buf_str(&c->text);
    if (arguments && !(object && said.n && same_value(f, said, arguments))) {
        dgm_str text = dgm_content_value_text(f->scratch, arguments);
        /* Text that was passed on stays. A final text may be the complete text or the last piece. */
        if (!said.n)
            from_records_add_text(f, c, text, true);
        else if (dgm_str_starts(text, said))
            from_records_add_text(f, c, (dgm_str){text.p + said.n, text.n - said.n}, false);
        else if (!object && !from_records_is_json(f, said) && !from_records_is_json(f, text))
            from_records_add_text(f, c, text, false);
    } else if (!arguments && !said.n) {
        from_records_add_text(f, c, DGM_STR("{}"), true);
    }
    from_records_end_call(f, c);
}

void dgm_from_close_calls(dgm_records_to_events *f)
{
    for (size_t i = 0; i < f->n_calls; i++)
        complete(f, &f->calls[i], NULL);
}

void dgm_from_check_calls(dgm_records_to_events *f)
{
    for (size_t i = 0; i < f->n_calls; i++) {
        const struct from_call *c = &f->calls[i];
        if (!c->ended && c->text.n && !f->rc && !from_records_is_json(f, dgm_buf_str(&c->text)))
            f->rc = dgm_fail(f->err, DGM_BAD_PARAMS, NULL,
                             "the arguments of the call \"%.*s\" are not JSON, and no final call "
                             "follows: add it, or take its pieces out",
                             (int)(c->id.n < 60 ? c->id.n : 60), c->id.p);
    }
}

/* The call that a piece with this id belongs to. An id that is used again behind the call's result, or behind
 * a later message of the user, is of another call. */
static struct from_call *current_call(const dgm_records_to_events *f, dgm_str id, bool may_repeat)
{
    struct from_call *c = from_records_find_call(f, id);
    bool is_over = c && c->ended && (c->answered || c->turn != f->user_messages);
    return may_repeat && is_over ? NULL : c;
}

/* ---- calls in messages --------------------------------------------------------------------------------------- */

void dgm_from_calls(dgm_records_to_events *f, const dgm_content *said, dgm_str message_id,
                    bool may_repeat)
{
    for (size_t i = 0; i < said->calls.n; i++) {
        const dgm_content_call *from = &said->calls.at[i];
        struct from_call *c = current_call(f, from->call_id, may_repeat);
        if (!c)
            c = from_records_start_call(f, from->call_id, from->name, message_id);
        if (c->ended)
            continue;
        if (said->delta)
            from_records_add_piece(f, c, from->arguments);
        else
            complete(f, c, from->arguments);
    }
}

static void result(dgm_records_to_events *f, dgm_str call_id, dgm_str content,
                   const dgm_json *value, bool failed)
{
    struct from_call *c = from_records_find_call(f, call_id);
    if (c && c->answered)
        return;
    if (c) {
        complete(f, c, NULL);
        c->answered = true;
    }
    dgm_from_settle_texts(f);
    dgm_from_end_reasoning(f);
    dgm_canon_event e = {.kind = DGM_CANON_TOOL_CALL_RESULT};
    e.result.message_id = dgm_from_id(f, 'r');
    e.result.tool_call_id = call_id;
    e.result.content = (dgm_canon_content){.kind = DGM_CANON_CONTENT_TEXT, .text = content};
    e.result.value = value;
    if (failed)
        e.metadata = dgm_json_parse_trusted(f->scratch, DGM_STR("{\"" DGM_META_ERROR "\":true}"));
    dgm_from_out(f, &e);
    f->after_result = true;
}

void dgm_from_results(dgm_records_to_events *f, const dgm_content *said)
{
    for (size_t i = 0; i < said->results.n; i++) {
        const dgm_content_result *r = &said->results.at[i];
        result(f, r->call_id, dgm_content_value_text(f->scratch, r->output), r->output, false);
    }
}

/* ---- calls that agents make by themselves ---------------------------------------------------------------------- */

void dgm_from_tool_start(dgm_records_to_events *f, const dgm_internal *e)
{
    struct from_call *c = from_records_find_call(f, e->tool_call_id);
    if (!c)
        c = from_records_start_call(f, e->tool_call_id, e->tool_name, (dgm_str){0});
    complete(f, c, e->arguments);
}

void dgm_from_tool_complete(dgm_records_to_events *f, const dgm_internal *e)
{
    bool failed = e->success == DGM_FALSE;
    dgm_str text = e->error.p ? e->error : dgm_content_value_text(f->scratch, e->result);
    result(f, e->tool_call_id, text, e->error.p ? NULL : e->result, failed);
}
