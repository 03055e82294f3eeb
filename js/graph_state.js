// The state of a thread: what it waits for, and messages that the server adds without running a node.
import { INVALID_PARAMS, RpcError } from './rpc.js';
import { nextOf, stateOf } from './functional.js';
import { flatMessage, graphJson, isMessage, textOf } from './messages.js';

const MAX_IDS = 200;

/** Messages of the protocol as objects of LangChain. */
export function toMessages(graph, list) {
    return list.map((m) => (isMessage(m) ? m : graph.library.messages.coerceMessageLikeToMessage(m)));
}

const SPECIAL = ['__interrupt__', '__resume__', '__error__', '__scheduled__'];

/** Tasks that have finished: they have written something. */
async function finishedTasks(compiled, thread) {
    const tuple = await compiled.checkpointer.getTuple(configOf(thread));
    return new Set((tuple?.pendingWrites ?? []).filter(([, channel]) => !SPECIAL.includes(channel)).map(([task]) => task));
}

/**
 * The interrupts that wait for an answer. JavaScript has them only in the tasks of a state, and a task still has its interrupt
 * after the answer, until the tasks beside it have finished, too.
 */
export async function interruptsOf(compiled, thread, state) {
    const count = (list, name) => list.filter((n) => n === name).length;
    const asked = (state.tasks ?? []).filter((t) => t.interrupts?.length), names = asked.map((t) => t.name), next = state.next ?? [];
    const isUnclear = names.some((name) => count(next, name) > 0 && count(next, name) < count(names, name));
    const finished = isUnclear ? await finishedTasks(compiled, thread) : null;
    const pending = asked.filter((t) => (finished ? !finished.has(t.id) : next.includes(t.name)));
    return pending.flatMap((t) => t.interrupts).map(({ id, value, response_schema: schema }) => ({
        id, value: graphJson(value), ...(schema ? { responseSchema: graphJson(schema) } : {}) }));
}

const configOf = (thread) => ({ configurable: { thread_id: thread } });

export async function readState(compiled, graph, thread, hasValues) {
    if (typeof thread !== 'string') throw new RpcError(INVALID_PARAMS, 'state: expected a thread');
    const state = await compiled.getState(configOf(thread));
    if (graph.entry) return stateOf(state, await interruptsOf(compiled, thread, state), hasValues);
    const messages = Array.isArray(state.values?.messages) ? state.values.messages : [];
    return {
        exists: state.createdAt !== undefined,
        next: nextOf(state),
        interrupts: await interruptsOf(compiled, thread, state),
        messageIds: messages.map((m) => m?.id).filter((id) => typeof id === 'string').slice(-MAX_IDS),
        ...(hasValues ? { values: graphJson(state.values ?? {}) } : {}),
    };
}

/**
 * Adds messages to `state.messages`; one with a known id replaces the other. updateState() of LangGraph acts as a node: it
 * changes what runs next, and is ambiguous after nodes that ran in parallel. So the newest checkpoint is written again with
 * the new list: it has the same id, so what the thread waits for stays.
 */
export async function updateMessages(compiled, graph, thread, list, checkSkipText) {
    if (graph.entry) return; // a function saves its own value
    const channel = compiled.channels.messages, saver = compiled.checkpointer;
    if (!channel) throw new RpcError(INVALID_PARAMS, 'state/update: the state of this graph has no messages');
    const tuple = await saver.getTuple(configOf(thread));
    if (!tuple) throw new RpcError(INVALID_PARAMS, `state/update: unknown thread ${thread}`);
    const old = (await compiled.getState(configOf(thread))).values?.messages;
    const added = toMessages(graph, checkSkipText ? withoutLastText(list, old) : list);
    if (added.length === 0) return;
    const { checkpoint, metadata, parentConfig } = tuple;
    const versions = checkpoint.channel_versions;
    const newest = Object.values(versions).reduce((a, b) => (graph.library.checkpoint.compareChannelVersions(a, b) >= 0 ? a : b), versions.messages);
    const version = saver.getNextVersion(newest);
    const next = {
        ...checkpoint,
        channel_values: { ...checkpoint.channel_values, messages: listWith(channel, checkpoint.channel_values.messages, old, added) },
        channel_versions: { ...versions, messages: version },
    };
    const config = { configurable: { thread_id: thread, checkpoint_ns: '', ...(parentConfig ? { checkpoint_id: parentConfig.configurable.checkpoint_id } : {}) } };
    await saver.put(config, next, metadata, next.channel_versions);
}

/** As the graph's own reducer does it; a key without one gets the list. */
function listWith(channel, stored, old, added) {
    if (channel.lc_graph_name === 'LastValue') {
        const ids = new Set(added.map((m) => m.id));
        return [...(Array.isArray(old) ? old : []).filter((m) => m?.id == null || !ids.has(m.id)), ...added];
    }
    // DeltaChannel stores no value with most checkpoints; a plain value is allowed and ends its chain of changes
    const copy = channel.fromCheckpoint(channel.lc_graph_name === 'DeltaChannel' ? old : stored);
    copy.update([added]);
    return channel.lc_graph_name === 'DeltaChannel' ? copy.get() : copy.checkpoint();
}

/** An answer that the graph has put into its state itself is not added a second time. */
function withoutLastText(list, old) {
    const last = (Array.isArray(old) ? old : []).filter((m) => isMessage(m)).map((m) => flatMessage(m, true)).filter((m) => m.type === 'ai').pop();
    const text = last && textOf(last);
    return list.filter((m) => !(text && m.type === 'ai' && !m.tool_calls?.length && textOf(m) === text));
}
