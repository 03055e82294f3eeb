// One run of a graph: its input, its stream as events, its result. What LangGraph for JavaScript does otherwise than for
// Python ends here.
import { INVALID_PARAMS, RAISED, RECURSION, REJECTED, RpcError, describeError } from './rpc.js';
import { MESSAGE_ID, messageIdOf, nextOf, valuesOf } from './functional.js';
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

const isText = (m) => m.chunk && !m.chunk_position && typeof m.content === 'string' && !m.tool_call_chunks && !m.usage_metadata;

/** Whether the newest AI message calls a tool that has no result yet: a tool asks, or a node in front of it. */
function hasOpenCall(messages) {
    const done = new Set();
    for (const m of messages.filter((one) => isMessage(one)).reverse()) {
        if (m.getType() === 'tool') done.add(m.tool_call_id);
        else if (m.getType() === 'ai') return (m.tool_calls ?? []).some((call) => !done.has(call.id));
    }
    return false;
}

/** Models refuse a message between a call of a tool and its result: only results enter there. */
function withoutText(old, added) {
    const results = added.filter((m) => m.getType() === 'tool');
    return hasOpenCall([...old, ...results]) ? results : added;
}

/** messagesBefore: of the state that a resume finds. */
async function inputOf(graph, compiled, { input, resume }, messagesBefore) {
    const { Command } = graph.library.langgraph;
    if (input != null && (typeof input !== 'object' || Array.isArray(input))) throw new RpcError(INVALID_PARAMS, 'run: expected input to be an object or null');
    let state = null;
    if (input != null) {
        state = { ...input };
        if (Array.isArray(state.messages)) {
            state.messages = toMessages(graph, state.messages);
            if (resume) state.messages = withoutText(messagesBefore, state.messages);
            if (resume && !state.messages.length) delete state.messages;
        }
        if (graph.entry) delete state.a2a_outbox;
        if (state.a2a_outbox === null && !(await acceptsInput(compiled, state))) delete state.a2a_outbox;
    }
    if (!resume) return state;
    return new Command({ resume, ...(state && !graph.entry && Object.keys(state).length ? { update: state } : {}) });
}

/** A schema may not allow null for the outbox of the turn before. A value that stays is not sent: see Observer.hasOutbox. */
async function acceptsInput(compiled, state) {
    try {
        await compiled._validateInput?.(state);
        return true;
    } catch {
        return false;
    }
}

/** Collects what the stream shows of the state. */
class Observer {
    constructor(graph, run, oldIds) {
        Object.assign(this, { graph, run, oldIds, hasOutbox: false, forward: run.params.forward ?? [] });
        this.calls = new ModelCalls((data, ns) => run.emit('messages', data, ns));
    }

    /** Whether messages of this run were in the state before it: a new turn, or a step that runs again. */
    onValues(ns, values) {
        if (ns.length || !values || typeof values !== 'object') return; // a function may return anything
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
        if (this.graph.entry && ns.length === 0 && this.graph.entry in updates) this.returned = updates[this.graph.entry];
        const nodes = Object.keys(updates).filter((name) => !name.startsWith('__'));
        const written = nodes.flatMap((name) => [updates[name]].flat()).filter((u) => u && typeof u === 'object' && 'a2a_outbox' in u);
        if (written.length && ns.length === 0) this.hasOutbox = written[written.length - 1].a2a_outbox != null;
        const hasOutbox = written.length > 0 && this.hasOutbox && ns.length === 0;
        if (nodes.length) this.run.emit('updates', { nodes, ...(hasOutbox ? { outbox: true } : {}) }, ns);
    }

    onMessage(ns, [message, metadata]) {
        if (!isMessage(message)) return;
        const data = {
            message: flatMessage(message), node: metadata.langgraph_node, step: metadata.langgraph_step,
            src: metadata.langgraph_checkpoint_ns ?? metadata.checkpoint_ns ?? '' };
        ns = ns.slice(0, -1); // the last element is the node itself
        this.run.emit('messages', data, ns);
        this.calls.onConsumed(message, data, ns);
    }

    onElement([ns, mode, payload]) {
        if (mode === 'messages') this.onMessage(ns, payload);
        else if (mode === 'custom') this.run.emit('custom', graphJson(payload), ns);
        else if (mode === 'updates') this.onUpdates(ns, payload);
        else if (mode === 'values') this.onValues(ns, payload);
    }
}

/**
 * Finds the ends of model calls. LangGraph for JavaScript does not mark the last chunk of a call, and the server shows the chunks of
 * a second call only after it. The callback that a call has ended comes apart from the stream, so chunks are counted: the end is
 * sent when all chunks of the call were.
 */
class ModelCalls {
    #runs = new Map(); // id of the call -> {sent, consumed, hasEnded, last}
    #runOf = new WeakMap(); // message -> id of its call

    constructor(emit) {
        this.emit = emit;
        this.handler = {
            name: 'DragomanModelCalls',
            awaitHandlers: true,
            ignoreChain: true, ignoreAgent: true, ignoreRetriever: true, ignoreCustomEvent: true,
            handleLLMNewToken: (_token, _index, id, _parent, _tags, fields) => {
                const message = fields?.chunk?.message;
                if (message) this.#runOf.set(message, id);
                this.#of(id).sent++;
            },
            handleLLMEnd: (_output, id) => {
                const call = this.#runs.get(id);
                if (!call) return;
                call.hasEnded = true;
                this.#end(id, call);
            },
            handleLLMError: (_error, id) => this.#runs.delete(id),
        };
    }

    #of(id) {
        if (!this.#runs.has(id)) this.#runs.set(id, { sent: 0, consumed: 0, hasEnded: false, last: null });
        return this.#runs.get(id);
    }

    onConsumed(message, data, ns) {
        const id = this.#runOf.get(message) ?? String(message.id).replace(/^run-/, ''); // a model that reports only text: LangGraph makes the chunk
        const call = this.#runs.get(id);
        if (!call || !data.message.chunk) return;
        call.consumed++;
        call.last = [data, ns];
        this.#end(id, call);
    }

    #end(id, call) {
        if (!call.hasEnded || !call.last || call.consumed < call.sent) return;
        this.#runs.delete(id);
        const [data, ns] = call.last;
        this.emit({ ...data, message: { type: 'ai', content: '', id: data.message.id, chunk: true, chunk_position: 'last' } }, ns);
    }
}

/** The fields of the graph's context schema that have a value here. */
function contextOf(compiled, { input, tools = [], task, context, principal, tenant }) {
    const shape = compiled.builder?._configRuntimeSchema?.shape;
    if (!shape) return null;
    const values = { tools, a2a_inbox: input?.a2a_inbox, task_id: task, context_id: context, principal, tenant };
    return Object.fromEntries(Object.entries(values).filter(([name, value]) => name in shape && value !== undefined));
}

function configurableOf({ thread, tools = [], ...params }) {
    const names = ['task', 'context', 'principal', 'tenant', 'metadata', 'acceptedOutputModes', 'isResumed', 'attempt'];
    return { thread_id: thread, tools, a2a: Object.fromEntries(names.filter((n) => n in params).map((n) => [n, params[n]])) };
}

/** Also of a run that goes on. */
async function messageIdFor(graph, compiled, { thread, input }) {
    if (!graph.entry) return undefined;
    return messageIdOf(input) ?? (await compiled.getState({ configurable: { thread_id: thread } })).metadata?.[MESSAGE_ID];
}

function configOf(graph, compiled, run, calls, messageId) {
    const { task, context, recursionLimit, durability } = run.params;
    const { RunControl } = graph.library.langgraph;
    if (RunControl) run.control = new RunControl();
    const graphContext = contextOf(compiled, run.params);
    return {
        configurable: configurableOf(run.params), streamMode: MODES, subgraphs: true, signal: run.signal, callbacks: [calls.handler],
        // no run_id: LangGraph takes a run with the run_id of the newest checkpoint for a continuation
        metadata: { ...(task ? { task_id: task } : {}), ...(context ? { context_id: context } : {}), ...(messageId ? { [MESSAGE_ID]: messageId } : {}) },
        ...(graphContext ? { context: graphContext } : {}),
        ...(run.control ? { control: run.control } : {}),
        ...(recursionLimit ? { recursionLimit } : {}),
        ...(durability ? { durability } : {}),
    };
}

/**
 * The messages of the state before a resumed run: they are not new, also those of nodes that ran beside the interrupted one.
 * LangGraph ignores answers to interrupts that it does not know, and replays the old state.
 */
async function messagesBeforeResume(compiled, { thread, resume }) {
    const state = await compiled.getState({ configurable: { thread_id: thread } }), { values } = state;
    const pending = (await interruptsOf(compiled, thread, state)).map((i) => i.id);
    const unknown = Object.keys(resume).find((id) => !pending.includes(id));
    if (unknown !== undefined) throw new RpcError(INVALID_PARAMS, `interrupt ${unknown} is not pending on this thread; pending: ${pending.join(', ') || 'none'}`);
    return Array.isArray(values?.messages) ? values.messages : [];
}

export async function runGraph(graph, run) {
    const compiled = await graph.forThread(run.thread, configurableOf(run.params));
    const before = run.params.resume ? await messagesBeforeResume(compiled, run.params) : null;
    const observer = new Observer(graph, run, before && new Set(before.map((m) => m?.id).filter((id) => id != null)));
    const config = configOf(graph, compiled, run, observer.calls, await messageIdFor(graph, compiled, run.params));
    if (run.isDraining) run.control?.requestDrain('shutdown'); // it came before there was a control
    try {
        const stream = await compiled.stream(await inputOf(graph, compiled, run.params, before ?? []), config);
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
    if (name === 'EmptyInputError' && run.params.input == null && !run.params.resume) throw new RpcError(INVALID_PARAMS, 'this thread has no state: there is nothing to continue');
    const described = describeError(error);
    throw new RpcError(RAISED, described.message, described.data);
}

/** LangGraph has the state of a run that was interrupted only in the thread, not in the last element of its stream. */
async function resultOf(graph, run, observer, compiled) {
    const state = await compiled.getState({ configurable: { thread_id: run.thread } });
    const interrupts = await interruptsOf(compiled, run.thread, state), next = nextOf(state);
    if (graph.entry) return functionalResult(observer.returned, interrupts, next);
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

function functionalResult(returned, interrupts, next) {
    const { messages, outbox } = valuesOf(returned);
    return {
        status: interrupts.length || next.length ? 'interrupted' : 'completed', interrupts, next, messages,
        hasOutbox: outbox !== null, outbox: outbox === null ? null : plainOutbox(outbox),
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
