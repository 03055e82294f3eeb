/* store/memory/memory_find.c - a task, a turn by its caller's id, a message id, a call. */
#include "store/memory/memory_int.h"

uint64_t dgm_memory_task_hash(dgm_owner owner, dgm_str id)
{
    return dgm_hash_texts(1, (dgm_str[]){owner.tenant, owner.principal, id}, 3);
}

struct task *dgm_memory_find_task(const struct memory_store *s, uint64_t hash, dgm_owner owner,
                                  dgm_str id)
{
    for (dgm_table_node *at = dgm_table_first(&s->tasks, hash); at; at = at->next) {
        struct task *t = (struct task *)at;
        if (at->hash == hash && memory_same_owner(task_owner(t), owner) &&
            dgm_str_eq(task_id(t), id))
            return t;
    }
    return NULL;
}

uint64_t dgm_memory_context_hash(dgm_owner owner, dgm_str context_id)
{
    return dgm_hash_texts(5, (dgm_str[]){owner.tenant, owner.principal, context_id}, 3);
}

uint64_t dgm_memory_caller_hash(dgm_owner owner, dgm_str protocol, dgm_str caller_id)
{
    return dgm_hash_texts(2, (dgm_str[]){owner.tenant, owner.principal, protocol, caller_id}, 4);
}

struct caller *dgm_memory_find_caller(const struct memory_store *s, dgm_owner owner, dgm_str agent,
                                      dgm_str protocol, dgm_str caller_id)
{
    uint64_t hash = dgm_memory_caller_hash(owner, protocol, caller_id);
    struct caller *found = NULL;
    for (dgm_table_node *at = dgm_table_first(&s->callers, hash); at; at = at->next) {
        struct caller *c = (struct caller *)at;
        if (at->hash == hash && memory_same_owner(task_owner(c->task), owner) &&
            (!agent.n || dgm_str_eq(task_agent(c->task), agent)) &&
            dgm_str_eq((dgm_str){c->texts, c->protocol_n}, protocol) &&
            dgm_str_eq((dgm_str){c->texts + c->protocol_n, c->caller_id_n}, caller_id) &&
            (!found || found->order < c->order))
            found = c;
    }
    return found;
}

uint64_t dgm_memory_call_hash(dgm_owner owner, dgm_str call_id)
{
    return dgm_hash_texts(4, (dgm_str[]){owner.tenant, owner.principal, call_id}, 3);
}

struct asked *dgm_memory_find_call(const struct memory_store *s, dgm_owner owner, dgm_str agent,
                                   dgm_str call_id)
{
    uint64_t hash = dgm_memory_call_hash(owner, call_id);
    struct asked *found = NULL;
    for (dgm_table_node *at = dgm_table_first(&s->asked, hash); at; at = at->next) {
        struct asked *a = (struct asked *)at;
        if (at->hash == hash && memory_same_owner(task_owner(a->task), owner) &&
            (!agent.n || dgm_str_eq(task_agent(a->task), agent)) &&
            dgm_str_eq(asked_call(a), call_id) && (!found || found->order < a->order))
            found = a;
    }
    return found;
}

uint64_t dgm_memory_message_hash(dgm_owner owner, dgm_str agent, dgm_str context_id,
                                 dgm_str message_id)
{
    dgm_str key[] = {owner.tenant, owner.principal, agent, context_id, message_id};
    return dgm_hash_texts(3, key, 5);
}

struct taken *dgm_memory_find_message(const struct memory_store *s, uint64_t hash, dgm_owner owner,
                                      dgm_str agent, dgm_str context_id, dgm_str message_id)
{
    enum taken_by by = taken_by(context_id);
    for (dgm_table_node *at = dgm_table_first(&s->taken[by], hash); at; at = at->next) {
        struct taken *d = taken_of(at, by);
        if (at->hash == hash && memory_same_owner(task_owner(d->task), owner) &&
            dgm_str_eq(task_agent(d->task), agent) && dgm_str_eq(taken_message(d), message_id) &&
            (by == BY_NONE || dgm_str_eq(task_context(d->task), context_id)))
            return d;
    }
    return NULL;
}
