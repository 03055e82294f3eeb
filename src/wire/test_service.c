/*
 * test_service.c - answers of services, whole and damaged: whatever comes, the task ends once, and every text is closed.
 *
 * The requests and the sentences are tested with a server: src/backend/test_http_agent*.c.
 */
#include "wire/service.h"

#include "model/fold.h"
#include "model/kinds.h"
#include "support/check.h"
#include "wire/formats.h"

/* ---- recorded answers --------------------------------------------------------------------------------------------- */

#define MAX_EVENTS 12
#define CHUNK(delta, finish)                                                                       \
    "{'id':'c1','choices':[{'index':0,'delta':{" delta "},'finish_reason':" finish "}]}"
#define RPC(result) "{'jsonrpc':'2.0','id':1,'result':{" result "}}"

static const struct recording {
    const char *format;
    const char *events[MAX_EVENTS];
} recordings[] = {
    {"openai-chat",
     {CHUNK("'role':'assistant','reasoning_content':'hm'", "null"),
      CHUNK("'content':'Hel'", "null"), CHUNK("'content':'lo'", "null"),
      CHUNK("'tool_calls':[{'index':0,'id':'k','function':{'name':'f','arguments':'{}'}}]", "null"),
      CHUNK("", "'tool_calls'"), "{'choices':[],'usage':{'prompt_tokens':1}}",
      "{'error':{'message':'no','code':7}}"}},
    {"openai-responses",
     {"{'type':'response.created','response':{'id':'r1','object':'response','output':[]}}",
      "{'type':'response.output_item.added','output_index':0,'item':{'type':'message','id':'m1',"
      "'content':[]}}",
      "{'type':'response.output_text.delta','item_id':'m1','output_index':0,'content_index':0,"
      "'delta':'Hello'}",
      "{'type':'response.output_item.done','output_index':0,'item':{'type':'message','id':'m1',"
      "'content':[{'type':'output_text','text':'Hello'}]}}",
      "{'type':'response.output_item.done','output_index':1,'item':{'type':'function_call','id':"
      "'k','call_id':'k','name':'f','arguments':'{}'}}",
      "{'type':'response.output_item.done','output_index':2,'item':{'type':'mcp_approval_request',"
      "'id':'p','name':'g','arguments':'{','server_label':'s'}}",
      "{'type':'error','message':'no'}",
      "{'type':'response.completed','response':{'id':'r1','object':'response','status':'completed',"
      "'output':[]}}"}},
    {"ag-ui",
     {"{'type':'RUN_STARTED','threadId':'t','runId':'r'}",
      "{'type':'STATE_SNAPSHOT','snapshot':{'a':[1]}}",
      "{'type':'STATE_DELTA','delta':[{'op':'add','path':'/a/-','value':2}]}",
      "{'type':'TEXT_MESSAGE_START','messageId':'m1','role':'assistant'}",
      "{'type':'TEXT_MESSAGE_CONTENT','messageId':'m1','delta':'Hello'}",
      "{'type':'TEXT_MESSAGE_END','messageId':'m1'}",
      "{'type':'TOOL_CALL_CHUNK','toolCallId':'k','toolCallName':'f','delta':'{}'}",
      "{'type':'CUSTOM','name':'on_interrupt','value':'Sure?'}",
      "{'type':'MESSAGES_SNAPSHOT','messages':[{'id':'u','role':'user','content':'Hi'},{'id':'m2',"
      "'role':'assistant','content':'Hello again'}]}",
      "{'type':'RUN_ERROR','message':'no'}",
      "{'type':'RUN_FINISHED','threadId':'t','runId':'r','outcome':{'type':'interrupt','interrupts'"
      ":"
      "[{'id':'i','reason':'tool_call','toolCallId':'k'}]}}",
      "{'type':'RUN_FINISHED','threadId':'t','runId':'r'}"}},
    {"ai-sdk",
     {"{'type':'start','messageId':'a'}", "{'type':'text-start','id':'t1'}",
      "{'type':'text-delta','id':'t1','delta':'Hello'}", "{'type':'text-end','id':'t1'}",
      "{'type':'tool-input-available','toolCallId':'k','toolName':'f','input':{}}",
      "{'type':'tool-approval-request','approvalId':'p','toolCallId':'k'}",
      "{'type':'file','url':'data:text/plain;base64,aGk=','mediaType':'text/plain'}",
      "{'type':'error','errorText':'no'}", "{'type':'abort'}", "{'type':'finish'}"}},
    {"a2a-1.0",
     {RPC("'task':{'id':'T','contextId':'c','status':{'state':'TASK_STATE_WORKING'}}"),
      RPC("'artifactUpdate':{'taskId':'T','contextId':'c','artifact':{'artifactId':'x','parts':[{"
          "'text':'Hel'}]}}"),
      RPC("'artifactUpdate':{'taskId':'T','contextId':'c','artifact':{'artifactId':'x','parts':[{"
          "'text':'lo'}]},'append':true}"),
      RPC("'statusUpdate':{'taskId':'T','contextId':'c','status':{'state':'TASK_STATE_WORKING',"
          "'message':{'messageId':'q','role':'ROLE_AGENT','parts':[{'text':'...'}]}}}"),
      "{'jsonrpc':'2.0','id':1,'error':{'code':-32603,'message':'no'}}",
      RPC("'statusUpdate':{'taskId':'T','contextId':'c','status':{'state':"
          "'TASK_STATE_INPUT_REQUIRED'}}"),
      RPC("'statusUpdate':{'taskId':'T','contextId':'c','status':{'state':'TASK_STATE_COMPLETED'}"
          "}")}},
};

/* ---- what comes out ------------------------------------------------------------------------------------------------ */

struct output {
    dgm_fold *fold;
    size_t n_ends, n_behind;
    dgm_task_state state;
    char open[16][64]; /* ids of texts without their last chunk; "": a free place */
};

static size_t n_open(const struct output *o)
{
    size_t n = 0;
    for (size_t i = 0; i < 16; i++)
        n += o->open[i][0] != '\0';
    return n;
}

static void output_watch(struct output *o, const dgm_artifact_update *u)
{
    char id[64];
    size_t i = 0;
    snprintf(id, sizeof id, "%.*s", DGM_P(u->artifact.artifact_id));
    while (i < 16 && strcmp(o->open[i], id) != 0)
        i++;
    for (size_t k = 0; i == 16 && k < 16; k++)
        i = o->open[k][0] ? i : k;
    assert_true(i < 16);
    snprintf(o->open[i], sizeof o->open[i], "%s", u->last_chunk == DGM_TRUE ? "" : id);
}

/* The core's part: ids, times, the task. */
static dgm_code output_add(void *arg, const dgm_event *event)
{
    struct output *o = arg;
    dgm_err err = {0};
    o->n_behind += o->n_ends > 0;
    assert_int_not_equal(event->kind, DGM_EVENT_TASK);
    assert_int_not_equal(event->kind, DGM_EVENT_MESSAGE);
    if (event->kind == DGM_EVENT_STATUS) {
        o->state = event->status->status.state;
        o->n_ends += dgm_state_is_terminal(o->state) || dgm_state_is_interrupted(o->state);
    }
    if (event->kind == DGM_EVENT_ARTIFACT && event->artifact->artifact.parts.n &&
        event->artifact->artifact.parts.at[0].kind == DGM_PART_TEXT)
        output_watch(o, event->artifact);
    return dgm_fold_add(o->fold, event, DGM_BY_AGENT, &err);
}

static dgm_message hello = {.message_id = {"m", 1}, .role = DGM_ROLE_USER};

/* Feeds the events until one cannot be read; ends as backend/http does. */
static void play(const struct recording *r, dgm_str *events, size_t n, bool is_marked,
                 struct output *ret)
{
    dgm_err err = {0};
    const dgm_codec *codec = dgm_codec_by_name(r->format, &err);
    dgm_service_turn turn = {
        .codec = codec, .message = &hello, .context_id = DGM_STR("ctx"), .run_id = DGM_STR("run")};
    dgm_task task = {.id = DGM_STR("task"), .context_id = DGM_STR("ctx")};
    task.status = (dgm_status){.state = DGM_STATE_SUBMITTED};
    *ret = (struct output){.fold = dgm_fold_new((dgm_fold_options){.foreign = true})};
    check_ok(dgm_fold_add(ret->fold, &(dgm_event){.kind = DGM_EVENT_TASK, .task = &task},
                          DGM_BY_SERVER, &err),
             err);
    dgm_service_answer *s = dgm_service_answer_new(&(dgm_service_answer_params){
        .codec = codec, .turn = &turn, .on_event = output_add, .arg = ret});
    dgm_code rc = DGM_OK;
    for (size_t i = 0; !rc && i < n; i++)
        rc = dgm_service_answer_feed(s, events[i], &err);
    if (!rc && is_marked)
        rc = dgm_service_answer_done(s, &err);
    if (!rc)
        rc = dgm_service_answer_end(s, &err);
    if (rc)
        check_ok(dgm_service_answer_stop(s, DGM_STATE_FAILED, DGM_STR("bad"), &err), err);
    assert_true(dgm_service_answer_is_over(s));
    dgm_service_answer_free(s);
}

/* ---- tests ----------------------------------------------------------------------------------------------------------- */

static uint64_t seed = 1;

static size_t any_of(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

static size_t copy_events(dgm_arena *a, const struct recording *r, dgm_str *to)
{
    size_t n = 0;
    for (; n < MAX_EVENTS && r->events[n]; n++) {
        to[n] = dgm_arena_dup(a, dgm_str_from(r->events[n]));
        for (char *p = (char *)(uintptr_t)to[n].p; *p; p++)
            *p = *p == '\'' ? '"' : *p;
    }
    return n;
}

/* Drops, repeats and exchanges events; now and then a byte of one is another. */
static size_t damage(dgm_arena *a, dgm_str *events, size_t n)
{
    for (size_t k = any_of(4); k && n; k--) {
        size_t i = any_of(n), j = any_of(n);
        dgm_str one = events[i];
        switch (any_of(4)) {
        case 0: memmove(events + i, events + i + 1, (--n - i) * sizeof *events); break;
        case 1: events[j] = one; break;
        case 2:
            events[i] = events[j];
            events[j] = one;
            break;
        default:
            events[i] = dgm_arena_dup(a, one);
            ((char *)(uintptr_t)events[i].p)[any_of(one.n)] = "\"{}[],:x1\\"[any_of(10)];
            break;
        }
    }
    return n;
}

static void whatever_comes_the_task_ends_once(void **state)
{
    const struct recording *r = *state;
    size_t by_state[DGM_N_STATES] = {0};
    for (int round = 0; round < 4000; round++) {
        dgm_auto(dgm_arena_free) dgm_arena *a = dgm_arena_new();
        dgm_str events[MAX_EVENTS];
        struct output o;
        size_t n = damage(a, events, copy_events(a, r, events));
        play(r, events, n, any_of(2), &o);
        if (o.n_ends != 1 || o.n_behind || n_open(&o)) {
            print_error("%zu ends, %zu events behind the first, %zu open texts\n", o.n_ends,
                        o.n_behind, n_open(&o));
            for (size_t i = 0; i < n; i++)
                print_error("%.*s\n", DGM_P(events[i]));
            fail();
        }
        by_state[o.state]++;
        dgm_fold_free(o.fold);
    }
    assert_true(by_state[DGM_STATE_FAILED] > 0); /* it is damaged indeed */
}

DGM_TEST_MAIN(dgm_test_with("damaged openai-chat", whatever_comes_the_task_ends_once,
                            &recordings[0]),
              dgm_test_with("damaged openai-responses", whatever_comes_the_task_ends_once,
                            &recordings[1]),
              dgm_test_with("damaged ag-ui", whatever_comes_the_task_ends_once, &recordings[2]),
              dgm_test_with("damaged ai-sdk", whatever_comes_the_task_ends_once, &recordings[3]),
              dgm_test_with("damaged a2a", whatever_comes_the_task_ends_once, &recordings[4]))
