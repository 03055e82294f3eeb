// One run of a graph: its input, its stream as events, its result. What LangGraph for JavaScript does otherwise than for
// Python ends here.
import { RAISED, RECURSION, REJECTED, RpcError, describeError } from './rpc.js';
import { flatMessage, graphJson, isMessage } from './messages.js';
import { interruptsOf, toMessages } from './graph_state.js';

const MODES = ['values', 'messages', 'custom', 'updates'];

/** Text chunks of one model call, while the server does not read: one longer chunk. */
export function joinChunks(last, next) {
    if (last.type !== 'messages' || next.type !== 'messages' || last.data.src !== next.data.src) return false;
    const a = last.data.message, b = next.data.message;
    if (!isText(a) || !isText(b) || a.id !== b.id) return false;
    last.data = { ...last.data, message: { ...a, content: a.content + b.content } };
    return true;
}

const isText = (m) => m.chunk && typeof m.content === 'string' && !m.tool_call_chunks && !m.usage_metadata;

function inputOf(graph, { input, resume }) {
    const { Command } = graph.library.langgraph;
    let state = null;
    if (input != null) {
        state = { ...input };
        if (Array.isArray(state.messages)) state.messages = toMessages(graph, state.messages);
    }
    if (!resume) return state;
    return new Command({ resume, ...(state && Object.keys(state).length ? { update: state } : {}) });
}

/** Collects what the stream shows of the state. */
class Observer {
    constructor(graph, run, oldIds) {
        Object.assign(this, { graph, run, oldIds, hasOutbox: false, forward: run.params.forward ?? [] });
    }

    /** Whether messages of this run were in the state before it: a new turn, or a step that runs again. */
    onValues(ns, values) {
        if (ns.length) return;
        if (this.oldIds === null) this.oldIds = new Set(this.#idsBefore(values.messages));
        if (this.forward.includes('values') && !('__interrupt__' in values)) this.run.emit('values', graphJson(values), ns);
    }

    // A run that continues after a crash answers with everything since the message of the user.
    #idsBefore(messages) {
        const list = Array.isArray(messages) ? messages : [];
        const isContinued = this.run.params.input == null && !this.run.params.resume;
        const end = isContinued ? list.findLastIndex((m) => isMessage(m) && flatMessage(m).type === 'human') + 1 : list.length;
        return list.slice(0, end).map((m) => m?.id).filter((id) => id != null);
    }

    onUpdates(ns, updates) {
        const nodes = Object.keys(updates).filter((name) => !name.startsWith('__'));
        const hasOutbox = nodes.some((name) => [updates[name]].flat().some((u) => u && typeof u === 'object' && u.a2a_outbox != null));
        if (hasOutbox && ns.length === 0) this.hasOutbox = true;
        if (nodes.length) this.run.emit('updates', { nodes, ...(hasOutbox ? { outbox: true } : {}) }, ns);
    }

    onMessage(ns, [message, metadata]) {
        if (!isMessage(message)) return;
        this.run.emit('messages', {
            message: flatMessage(message), node: metadata.langgraph_node, step: metadata.langgraph_step,
            src: metadata.langgraph_checkpoint_ns ?? metadata.checkpoint_ns ?? '' }, ns.slice(0, -1)); // the last element is the node itself
    }

    onElement([ns, mode, payload]) {
        if (mode === 'messages') this.onMessage(ns, payload);
        else if (mode === 'custom') this.run.emit('custom', graphJson(payload), ns);
        else if (mode === 'updates') this.onUpdates(ns, payload);
        else if (mode === 'values') this.onValues(ns, payload);
    }
}

function configOf(graph, run) {
    const { thread, task, context, principal, tenant, metadata = {}, tools = [], recursionLimit, durability } = run.params;
    const { RunControl } = graph.library.langgraph;
    if (RunControl) run.control = new RunControl();
    const configurable = { thread_id: thread, task_id: task, context_id: context, principal, tenant, tools, request_metadata: metadata };
    return {
        configurable, streamMode: MODES, subgraphs: true, signal: run.signal,
        ...(run.control ? { control: run.control } : {}),
        ...(recursionLimit ? { recursionLimit } : {}),
        ...(durability ? { durability } : {}),
    };
}

/** The state before a resumed run: messages of it are not new, also those of nodes that ran beside the interrupted one. */
async function idsBeforeResume(compiled, config) {
    const { values } = await compiled.getState({ configurable: { thread_id: config.configurable.thread_id } });
    return new Set((Array.isArray(values?.messages) ? values.messages : []).map((m) => m?.id).filter((id) => id != null));
}

export async function runGraph(graph, run) {
    const config = configOf(graph, run);
    const compiled = await graph.forThread(run.thread, config.configurable);
    const observer = new Observer(graph, run, run.params.resume ? await idsBeforeResume(compiled, config) : null);
    if (run.isDraining) run.control?.requestDrain('shutdown'); // it came before there was a control
    try {
        const stream = await compiled.stream(inputOf(graph, run.params), config);
        for await (const element of stream) {
            run.signal.throwIfAborted();
            observer.onElement(element);
            if (run.failure) throw run.failure;
        }
    } catch (error) {
        return statusOfError(graph, run, observer, compiled, error);
    }
    return resultOf(graph, run, observer, compiled);
}

async function statusOfError(graph, run, observer, compiled, error) {
    if (run.failure) throw run.failure;
    if (run.isCancelled) return { status: 'cancelled', interrupts: [], next: [], outbox: null, hasOutbox: false, messages: [] };
    const name = error?.name ?? '', type = error?.constructor?.name ?? '';
    if (name === 'GraphDrained' || type === 'GraphDrained') return { ...(await resultOf(graph, run, observer, compiled)), status: 'drained' };
    if (error?.lc_error_code === 'GRAPH_RECURSION_LIMIT' || name === 'GraphRecursionError')
        throw new RpcError(RECURSION, error.message, describeError(error).data);
    if (name === 'TaskRejected' || type === 'TaskRejected') throw new RpcError(REJECTED, error.message);
    if (error instanceof RpcError) throw error;
    const described = describeError(error);
    throw new RpcError(RAISED, described.message, described.data);
}

/** LangGraph has the state of a run that was interrupted only in the thread, not in the last element of its stream. */
async function resultOf(graph, run, observer, compiled) {
    const state = await compiled.getState({ configurable: { thread_id: run.thread } });
    const interrupts = interruptsOf(state), next = [...(state.next ?? [])];
    const messages = Array.isArray(state.values?.messages) ? state.values.messages : [];
    const isContinued = run.params.input == null && !run.params.resume;
    const outbox = state.values?.a2a_outbox ?? null;
    const hasOutbox = outbox !== null && (observer.hasOutbox || isContinued);
    return {
        status: interrupts.length || next.length ? 'interrupted' : 'completed',
        interrupts, next, hasOutbox,
        outbox: hasOutbox ? plainOutbox(outbox) : null,
        messages: messages.filter((m) => isMessage(m) && !observer.oldIds?.has(m.id)).map((m) => flatMessage(m, true)),
    };
}

/** `{message: ...}` and `{task: ...}` are wrappers, as A2AOutbox of Python. */
function plainOutbox(value) {
    const plain = graphJson(value);
    if (plain && typeof plain === 'object' && !Array.isArray(plain)) {
        const members = Object.entries(plain).filter(([, v]) => v !== null);
        if (members.length === 1 && ['message', 'task'].includes(members[0][0]) && typeof members[0][1] === 'object') return members[0][1];
    }
    return plain;
}
