/* app/inspect/inspect_live.c - GET /debug/tasks: the tasks in memory, of all owners, for operators. */
#include "app/inspect/inspect_int.h"
#include "base/limits.h"
#include "model/kinds.h"
#include "model/stamp.h"
#include "json/json.h"

static void live_put_task(const dgm_live_task *t, dgm_arena *a, dgm_buf *b)
{
    const struct {
        const char *name;
        dgm_str text;
    } members[] = {{"id", t->id},
                   {"contextId", t->context_id},
                   {"agent", t->agent},
                   {"tenant", t->owner.tenant},
                   {"principal", t->owner.principal},
                   {"state", dgm_str_from(dgm_state_names[t->state])},
                   {"created", dgm_time_text(a, t->created_ms)},
                   {"since", dgm_time_text(a, t->status_ms)}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        dgm_buf_printf(b, "%s\"%s\":", i ? "," : "{", members[i].name);
        dgm_json_put_str(b, members[i].text);
    }
    dgm_buf_printf(b, ",\"runs\":%s}", t->runs ? "true" : "false");
}

static void live_put_agents(const dgm_turns_options *o, dgm_buf *b)
{
    for (size_t i = 0; i < o->n_agents; i++) {
        dgm_buf_add_str(b, i ? DGM_STR(",{\"id\":") : DGM_STR("{\"id\":"));
        dgm_json_put_str(b, o->agents[i].id);
        dgm_buf_add_lit(b, ",\"name\":");
        dgm_json_put_str(b, o->agents[i].name);
        dgm_buf_printf(b, ",\"type\":\"%s\"}", o->agents[i].type);
    }
}

static void live_on_tasks(const dgm_live_task *tasks, size_t n, bool more, void *arg)
{
    const dgm_front_request *q = arg;
    dgm_core_stats stats = dgm_core_stats_of(q->turns->o.core);
    dgm_buf b;
    dgm_buf_init(&b, SIZE_MAX); /* DGM_MAX_LIVE_LISTED of them */
    dgm_buf_printf(&b, "{\"live\":%llu,\"running\":%llu,\"agents\":[",
                   (unsigned long long)stats.live, (unsigned long long)stats.running);
    live_put_agents(&q->turns->o, &b);
    dgm_buf_add_lit(&b, "],\"tasks\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            dgm_buf_add_char(&b, ',');
        live_put_task(&tasks[i], dgm_http_arena(q->x), &b);
    }
    dgm_buf_printf(&b, "],\"truncated\":%s}", more ? "true" : "false");
    dgm_inspect_respond(q->x, &b);
    dgm_buf_done(&b);
}

void dgm_inspect_live(const dgm_front_request *q)
{
    dgm_core_list_live(q->turns->o.core, DGM_MAX_LIVE_LISTED, live_on_tasks, (void *)(uintptr_t)q);
}
