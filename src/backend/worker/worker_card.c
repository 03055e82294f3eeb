/*
 * backend/worker/worker_card.c - the description that a worker sends in the handshake, as members of an A2A 1.0 card.
 *
 * The members of the last process that was ready are used until the next handshake: a card does not change when a process ends.
 * The worker is not trusted: members of a wrong type are ignored, and a skill gets the members that A2A requires.
 */
#include "backend/worker/worker_int.h"

static void card_put_key(dgm_buf *out, const char *key)
{
    if (out->n > 1)
        dgm_buf_add_char(out, ',');
    dgm_buf_printf(out, "\"%s\":", key);
}

static void card_put_text(dgm_buf *out, const dgm_json *agent, const char *key)
{
    dgm_str text = dgm_json_str_member(agent, key);
    if (!text.n)
        return;
    card_put_key(out, key);
    dgm_json_put_str(out, text);
}

static bool is_list_of_texts(yyjson_val *list)
{
    size_t i, n;
    yyjson_val *item;
    yyjson_arr_foreach (list, i, n, item) {
        if (!yyjson_is_str(item) || !dgm_json_str(item).n)
            return false;
    }
    return yyjson_arr_size(list) > 0;
}

static void card_put_list(dgm_buf *out, const dgm_json *agent, const char *key, const char *member)
{
    yyjson_val *list = dgm_json_get(agent, dgm_str_from(key));
    if (!is_list_of_texts(list))
        return;
    card_put_key(out, member);
    dgm_json_put(out, list);
}

static void card_put_skill(dgm_buf *out, const dgm_json *skill)
{
    static const char *const lists[] = {"examples", "inputModes", "outputModes"};
    dgm_str id = dgm_json_str_member(skill, "id"), name = dgm_json_str_member(skill, "name");
    dgm_str about = dgm_json_str_member(skill, "description");
    yyjson_val *tags = dgm_json_get(skill, DGM_STR("tags"));
    dgm_buf_add_lit(out, "{\"id\":");
    dgm_json_put_str(out, id.n ? id : name);
    dgm_buf_add_lit(out, ",\"name\":");
    dgm_json_put_str(out, name.n ? name : id);
    dgm_buf_add_lit(out, ",\"description\":");
    dgm_json_put_str(out, about.n ? about : name.n ? name : id);
    dgm_buf_add_lit(out, ",\"tags\":");
    if (is_list_of_texts(tags))
        dgm_json_put(out, tags);
    else
        dgm_buf_add_lit(out, "[]");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        card_put_list(out, skill, lists[i], lists[i]);
    dgm_buf_add_char(out, '}');
}

static void card_put_skills(dgm_buf *out, yyjson_val *skills)
{
    size_t i, n, n_put = 0;
    yyjson_val *skill;
    yyjson_arr_foreach (skills, i, n, skill) {
        if (!dgm_json_str_member(skill, "id").n && !dgm_json_str_member(skill, "name").n)
            continue;
        if (!n_put)
            card_put_key(out, "skills");
        dgm_buf_add_char(out, n_put++ ? ',' : '[');
        card_put_skill(out, skill);
    }
    if (n_put)
        dgm_buf_add_char(out, ']');
}

const dgm_json *dgm_worker_find_agent(const dgm_json *info, dgm_str id)
{
    yyjson_val *agents = dgm_json_get(info, DGM_STR("agents")), *item;
    size_t i, n;
    yyjson_arr_foreach (agents, i, n, item) {
        if (dgm_str_eq(dgm_json_str_member(item, "id"), id))
            return item;
    }
    return yyjson_arr_get_first(agents);
}

dgm_str dgm_worker_pool_describe(dgm_worker_pool *p, dgm_str agent_id, dgm_arena *a)
{
    pthread_mutex_lock(&p->lock);
    struct worker_info *info = p->described;
    if (info)
        atomic_fetch_add(&info->refs, 1);
    pthread_mutex_unlock(&p->lock);
    if (!info)
        return (dgm_str){0};
    const dgm_json *agent = dgm_worker_find_agent(info->result, agent_id);
    dgm_buf b;
    dgm_buf_init(&b, DGM_WORKER_LINE_BYTES);
    dgm_buf_add_char(&b, '{');
    card_put_text(&b, agent, "name");
    card_put_text(&b, agent, "description");
    card_put_text(&b, agent, "version");
    card_put_list(&b, agent, "inputModes", "defaultInputModes");
    card_put_list(&b, agent, "outputModes", "defaultOutputModes");
    card_put_skills(&b, dgm_json_get(agent, DGM_STR("skills")));
    dgm_buf_add_char(&b, '}');
    dgm_str text = b.over ? (dgm_str){0} : dgm_arena_dup(a, dgm_buf_str(&b));
    dgm_buf_done(&b);
    dgm_worker_info_unref(info);
    return text;
}
