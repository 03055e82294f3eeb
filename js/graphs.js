// LangGraph graphs as agents: loads them as `langgraph.json` names them and runs them. graph_run.js has a single run,
// graph_state.js reads and changes the state of a thread.
import path from 'node:path';
import { BUSY, INVALID_PARAMS, RpcError } from './rpc.js';
import { createSaverClass } from './checkpointer.js';
import { KEYS, entryOf, isFunctional } from './functional.js';
import { exportOf, importFile, loadLibrary, splitSpec } from './project.js';
import { joinChunks, runGraph } from './graph_run.js';
import { readState, updateMessages } from './graph_state.js';

const INGRESS = ['messages', 'a2a_inbox']; // keys that the input of a run writes

/** Loads the graphs of `initialize`. */
export async function load(connection, params) {
    if (params.cwd) process.chdir(params.cwd);
    Object.assign(process.env, params.settings?.env ?? {});
    const graphs = new Map();
    for (const [name, spec] of Object.entries(params.graphs)) {
        try {
            graphs.set(name, await Graph.load(connection, name, spec, params));
        } catch (error) {
            if (error && typeof error === 'object') error.where = `graph "${name}" (${typeof spec === 'string' ? spec : spec?.path})`;
            throw error;
        }
    }
    return new Graphs(graphs);
}

class Graphs {
    #graphs;
    #busy = new Set(); // agent and thread of active runs

    constructor(graphs) {
        this.#graphs = graphs;
        this.join = joinChunks;
        this.emptyResult = { interrupts: [], next: [], outbox: null, hasOutbox: false, messages: [] };
    }

    get description() {
        const all = [...this.#graphs.values()];
        return {
            worker: { langgraph: all[0]?.library.version },
            agents: all.map(({ name, keys, description }) => ({ id: name, kind: 'graph', keys, ...(description ? { description } : {}) })),
            capabilities: { cancel: true, input: false, state: true, drain: all.every((g) => g.library.langgraph.RunControl) },
        };
    }

    #find(name) {
        const graph = this.#graphs.get(name);
        if (!graph) throw new RpcError(INVALID_PARAMS, `unknown agent "${name}": this worker has ${[...this.#graphs.keys()].join(', ')}`);
        return graph;
    }

    async run(run) {
        const graph = this.#find(run.agent), key = JSON.stringify([run.agent, run.thread]);
        if (typeof run.thread !== 'string' || run.thread === '') throw new RpcError(INVALID_PARAMS, 'run: expected a thread');
        if (this.#busy.has(key)) throw new RpcError(BUSY, `a run of the thread ${run.thread} is active`);
        this.#busy.add(key);
        try {
            return await runGraph(graph, run);
        } finally {
            this.#busy.delete(key);
        }
    }

    /** Stops at the next step boundary. */
    drain(run) {
        run.control?.requestDrain('shutdown');
    }

    async state({ agent, thread, values = false }) {
        const graph = this.#find(agent);
        return readState(await graph.forThread(thread), graph, thread, values);
    }

    async updateState({ agent, thread, messages = [], checkSkipText = false }) {
        const graph = this.#find(agent);
        await updateMessages(await graph.forThread(thread), graph, thread, messages, checkSkipText);
        return {};
    }
}

const isCompiled = (v) => typeof v === 'object' && v !== null && typeof v.stream === 'function' && typeof v.getState === 'function';

/** The graph that a value is: compiled, to be compiled, or inside of a wrapper such as that of createAgent. */
async function resolveGraph(value) {
    const v = await value;
    if (isCompiled(v)) return isCompiled(v.graph) ? v.graph : v; // a wrapper forwards its methods, but not all of them
    if (v && typeof v === 'object' && typeof v.compile === 'function') return v.compile();
    if (v && typeof v === 'object' && v.graph) return resolveGraph(v.graph);
    throw new Error(`expected a graph, got ${v === null ? 'null' : typeof v === 'object' ? v.constructor?.name ?? 'an object' : typeof v}. Export a compiled graph, a StateGraph, or a function that returns one`);
}

class Graph {
    static async load(connection, name, spec, { cwd = process.cwd(), checkpointer = 'server' }) {
        const { path: location, description } = typeof spec === 'string' ? { path: spec } : spec ?? {};
        if (typeof location !== 'string') throw new Error('expected a text such as "./src/agent.mjs:graph"');
        const [file, exportName] = splitSpec(location);
        const fullPath = path.resolve(cwd, file);
        const module = await importFile(fullPath);
        const exported = exportOf(module, exportName);
        if (exported === undefined) {
            const names = Object.keys(module).filter((k) => k !== 'module.exports');
            throw new Error(`${file} has no export "${exportName}": it exports ${names.join(', ') || 'nothing'}`);
        }
        const graph = new Graph();
        Object.assign(graph, { name, description, connection, checkpointer });
        const isFunction = typeof exported === 'function' && !isCompiled(exported);
        const first = await resolveGraph(isFunction ? exported({ configurable: {} }) : exported);
        graph.factory = isFunction && exported.length > 0 ? exported : null;
        graph.library = await loadLibrary(path.dirname(fullPath), first);
        graph.saver = graph.#createSaver();
        graph.compiled = graph.#prepare(first);
        graph.#warnMemory(first);
        graph.entry = isFunctional(first) ? entryOf(first) : null; // the name of a function of the Functional API
        graph.keys = graph.entry ? KEYS : graph.#findKeys(first);
        return graph;
    }

    /** The names of the state, without LangGraph's own channels. Keys that the input cannot write are not among them. */
    #findKeys(compiled) {
        const { builder } = compiled, input = builder?._schemaDefinitions?.get?.(builder._inputDefinition);
        const keys = Object.keys(compiled.channels).filter((k) => !k.startsWith('__') && !k.includes(':'));
        const isWritten = (key) => !INGRESS.includes(key) || !input || key in input;
        for (const key of keys) if (!isWritten(key)) this.connection.notify('log', { level: 'warning', text: `graph ${this.name}: ${key} is in the state, but not in the input schema: it is not set` });
        return keys.filter(isWritten);
    }

    #createSaver() {
        if (this.checkpointer === 'server') return new (createSaverClass(this.library.checkpoint))(this.connection);
        return new this.library.langgraph.MemorySaver();
    }

    #warnMemory(compiled) {
        if (this.checkpointer === 'worker' && compiled.checkpointer === this.saver)
            this.connection.notify('log', { level: 'warning', text: `graph ${this.name} has no checkpointer of its own: its state is lost when the worker ends` });
    }

    /** With "worker" a checkpointer of the graph itself stays. */
    #prepare(compiled) {
        if (this.checkpointer !== 'worker' || !compiled.checkpointer || typeof compiled.checkpointer !== 'object') compiled.checkpointer = this.saver;
        compiled.store ??= new this.library.langgraph.InMemoryStore(); // as LangGraph's own server does
        return compiled;
    }

    /** The graph for one thread. A function of the configuration is called for every run, as the platform of LangGraph does. */
    async forThread(thread, configurable = {}) {
        if (!this.factory) return this.compiled;
        return this.#prepare(await resolveGraph(this.factory({ configurable: { thread_id: thread, ...configurable } })));
    }

    hasKey(key) {
        return this.keys.includes(key);
    }
}
