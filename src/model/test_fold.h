/* model/test_fold.h - a fold in a test. JSON is written here with ' for ". */
#pragma once

#include "base/limits.h"
#include "model/fold.h"
#include "model/form.h"
#include "support/check.h"

struct log {
    dgm_arena *scratch; /* reset after every event: what the fold keeps must be its own */
    dgm_fold *fold;
    dgm_err err;
};

static inline struct log begin_with(dgm_fold_options options)
{
    return (struct log){.scratch = dgm_arena_new(), .fold = dgm_fold_new(options)};
}

static inline struct log begin(void)
{
    return begin_with((dgm_fold_options){0});
}

static inline struct log begin_foreign(void)
{
    return begin_with((dgm_fold_options){.foreign = true});
}

static inline void end(struct log *l)
{
    dgm_fold_free(l->fold);
    dgm_arena_free(l->scratch);
}

static inline void read_event(struct log *l, const char *quoted, dgm_event *ret_event)
{
    dgm_reader r = {.arena = l->scratch, .format = DGM_FORMAT_A2A_10, .err = &l->err};
    dgm_str text = dgm_arena_dup(l->scratch, dgm_str_from(quoted));
    for (char *p = (char *)(uintptr_t)text.p; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    check_ok(dgm_form_read_event(&r, dgm_json_parse_trusted(l->scratch, text), NULL, ret_event),
             l->err);
}

static inline dgm_code add_as(struct log *l, dgm_author author, const char *quoted)
{
    dgm_event event;
    read_event(l, quoted, &event);
    dgm_code rc = dgm_fold_add(l->fold, &event, author, &l->err);
    dgm_arena_reset(l->scratch);
    return rc;
}

#define add(l, text) check_ok(add_as((l), DGM_BY_AGENT, (text)), (l)->err)
#define add_by_server(l, text) check_ok(add_as((l), DGM_BY_SERVER, (text)), (l)->err)
#define refuse(l, text, at)                                                                        \
    check_fails(add_as((l), DGM_BY_AGENT, (text)), DGM_INVALID_AGENT_RESPONSE, (l)->err, (at))

static inline dgm_str task_text(struct log *l)
{
    dgm_buf b;
    dgm_writer w = {.out = &b, .format = DGM_FORMAT_A2A_10};
    dgm_buf_init(&b, SIZE_MAX);
    assert_non_null(dgm_fold_task(l->fold));
    dgm_shape_write(&w, &dgm_form_task, dgm_fold_task(l->fold));
    dgm_str text = dgm_arena_dup(l->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

static inline void check_task_(struct log *l, const char *want, const char *file, int line)
{
    dgm_str got = task_text(l), quoted = dgm_arena_dup(l->scratch, got);
    for (size_t i = 0; i < quoted.n; i++)
        ((char *)(uintptr_t)quoted.p)[i] = (char)(quoted.p[i] == '"' ? '\'' : quoted.p[i]);
    check_bytes_(quoted.p, quoted.n, want, strlen(want), file, line);
}

#define check_task(l, want) check_task_((l), (want), __FILE__, __LINE__)

static inline void check_warned_(struct log *l, size_t n, const char *at, const char *says,
                                 const char *file, int line)
{
    const dgm_err *w = dgm_fold_warning(l->fold);
    if (dgm_fold_n_warnings(l->fold) != n || strcmp(w->at, at) != 0 || !strstr(w->msg, says)) {
        print_error("%zu warnings, the last at \"%s\": %s; wanted %zu, \"%s\": %s\n",
                    dgm_fold_n_warnings(l->fold), w->at, w->msg, n, at, says);
        _fail(file, line);
    }
}

#define check_warned(l, n, at, says) check_warned_((l), (n), (at), (says), __FILE__, __LINE__)
#define check_silent(l) check_warned_((l), 0, "", "", __FILE__, __LINE__)

/* The text of all text parts of an artifact. */
static inline dgm_str artifact_text(struct log *l, size_t i)
{
    const dgm_artifact *x = &dgm_fold_task(l->fold)->artifacts.at[i];
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX);
    for (size_t k = 0; k < x->parts.n; k++)
        dgm_buf_add_str(&b, x->parts.at[k].content);
    dgm_str text = dgm_arena_dup(l->scratch, dgm_buf_str(&b));
    dgm_buf_done(&b);
    return text;
}

#define IDS "'taskId':'t','contextId':'c'"
#define TASK "{'task':{'id':'t','contextId':'c','status':{'state':'TASK_STATE_SUBMITTED'}}}"
#define STATUS(state) "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state "'}}}"
#define SAY(role, id, text)                                                                        \
    "{'messageId':'" id "','role':'ROLE_" role "','parts':[{'text':'" text "'}]}"
#define STATUS_SAYS(state, id, text)                                                               \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state                                \
    "','message':" SAY("AGENT", id, text) "}}}"
#define STATUS_META(state, meta)                                                                   \
    "{'statusUpdate':{" IDS ",'status':{'state':'TASK_STATE_" state "'},'metadata':" meta "}}"
#define CHUNK(id, text, flags)                                                                     \
    "{'artifactUpdate':{" IDS ",'artifact':{'artifactId':'" id "','parts':[{'text':'" text         \
    "'}]}" flags "}}"
#define APPEND ",'append':true"
#define LAST ",'lastChunk':true"
