#!/usr/bin/env node
// A worker process: `node worker.js agent.mjs[:export]`. The server starts it and sends it many runs at once.
//
// This file has what all workers do: the handshake, runs and their cancellation, the log. The agents are functions
// (functions.js), or LangGraph graphs (graphs.js) if `initialize` has `graphs`. docs/worker-protocol.md has the messages.
import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConnectionClosed, FULL, INVALID_PARAMS, NOT_LOADED, PROTOCOL_VERSION, RpcError, UNKNOWN_METHOD, connect, tracebackOf } from './rpc.js';
import { Run, currentRun } from './run.js';
import { interpreter } from './project.js';

const MAX_RUNS = 64;
const CLOSE_MS = 1000; // for runs that are aborted when the server has closed the connection
const MAX_LOG_LINE = 16 * 1024;
const INVALID_REQUEST = -32600;

/** Answers the requests of the server. `agents` is created by `initialize`; see graphs.js for its methods. */
export class Worker {
    #runs = new Map();
    #isDraining = false;
    #agents = null;

    /** file: the agent of the command line; onEnd is called when the connection has ended and all runs have. */
    constructor(file, onEnd) {
        this.file = file;
        this.onEnd = onEnd;
        this.handlers = {
            request: (method, params) => this.#request(method, params),
            notification: (method, params) => this.#notification(method, params),
            end: () => this.#end(),
            fault: (text) => process.stderr.write(`dragoman-worker: ${text}\n`),
        };
    }

    async #request(method, params) {
        if (method === 'ping') return {};
        if (method === 'initialize') return this.#initialize(params);
        if (method === 'shutdown') return this.#shutdown(params);
        if (!this.#agents) throw new RpcError(INVALID_REQUEST, `${method} before initialize`);
        if (method === 'run') return this.#run(params);
        if (method === 'state' && this.#agents.state) return this.#agents.state(params);
        if (method === 'state/update' && this.#agents.updateState) return this.#agents.updateState(params);
        throw new RpcError(UNKNOWN_METHOD, `unknown method ${method}`);
    }

    #notification(method, params) {
        const run = this.#runs.get(params.run);
        if (!run) return; // it has ended in the meantime
        if (method === 'cancel') {
            run.isCancelled = true;
            run.abort(new DOMException('the run was canceled', 'AbortError'));
        } else if (method === 'input' && this.#agents.input && params.message && typeof params.message === 'object') {
            this.#agents.input(run, params.message);
        }
    }

    async #initialize(params) {
        if (params.protocolVersion !== PROTOCOL_VERSION)
            throw new RpcError(INVALID_PARAMS, `unknown protocolVersion ${params.protocolVersion}: this worker has version ${PROTOCOL_VERSION}`);
        if (Number.isInteger(params.maxLineBytes)) this.connection.setMaxLineBytes(params.maxLineBytes);
        let agents;
        try {
            const { load } = await (params.graphs ? import('./graphs.js') : import('./functions.js'));
            agents = await load(this.connection, params, this.file);
        } catch (error) {
            if (error instanceof RpcError) throw error;
            throw new RpcError(NOT_LOADED, explainLoadError(error), { traceback: tracebackOf(error) });
        }
        this.#agents = agents;
        const { worker, ...answer } = agents.description;
        return { protocolVersion: PROTOCOL_VERSION, worker: { name: 'dragoman-js', lang: 'js', version: process.versions.node, ...worker }, maxRuns: MAX_RUNS, ...answer };
    }

    async #run(params) {
        if (typeof params.run !== 'string' || this.#runs.has(params.run)) throw new RpcError(INVALID_PARAMS, `run: expected a new id, got ${JSON.stringify(params.run)}`);
        if (this.#isDraining) throw new RpcError(FULL, 'this worker ends');
        if (this.#runs.size >= MAX_RUNS) throw new RpcError(FULL, `${MAX_RUNS} runs are active`);
        const run = new Run(this.connection, params, this.#agents.join);
        this.#runs.set(run.id, run);
        try {
            const result = await currentRun.run(run, () => this.#agents.run(run));
            if (!this.connection.isClosed) await run.flushed();
            return result;
        } catch (error) {
            if (run.failure) throw run.failure;
            if (run.isCancelled && !(error instanceof RpcError)) return { status: 'cancelled', ...this.#agents.emptyResult };
            throw error;
        } finally {
            run.hasEnded = true;
            this.#runs.delete(run.id);
            if (this.#isDraining && this.#runs.size === 0) setImmediate(() => this.connection.close());
        }
    }

    #shutdown({ graceMs = 5000 }) {
        this.#isDraining = true;
        for (const run of this.#runs.values()) {
            run.isDraining = true;
            this.#agents.drain?.(run);
        }
        if (this.#runs.size === 0) setImmediate(() => this.connection.close());
        else setTimeout(() => this.connection.close(), graceMs).unref();
        return {};
    }

    async #end() {
        const runs = [...this.#runs.values()];
        for (const run of runs) run.abort(new ConnectionClosed());
        const deadline = Date.now() + CLOSE_MS;
        while (this.#runs.size && Date.now() < deadline) await new Promise((done) => setTimeout(done, 10));
        this.onEnd();
    }

    /** An error outside of any await: of a timer, or of a promise that is not awaited. Other runs go on. */
    onStrayError(error) {
        const run = currentRun.getStore();
        const text = `an error that no code handles: ${tracebackOf(error)}`;
        if (run && !run.hasEnded) {
            run.log('error', text);
            run.failure ??= error;
            run.abort(error);
        } else {
            process.stderr.write(`${text}\n`);
        }
    }
}

/** One sentence for the operator: what is wrong, and with which node. */
function explainLoadError(error) {
    const missing = error?.code === 'ERR_MODULE_NOT_FOUND' || error?.code === 'MODULE_NOT_FOUND' ? /Cannot find (?:package|module) '([^']+)'/.exec(error.message)?.[1] : null;
    const context = error?.where ? `${error.where}: ` : '';
    if (missing && !/^(?:[./]|file:)/.test(missing)) {
        const name = missing.split('/').slice(0, missing.startsWith('@') ? 2 : 1).join('/');
        return `${context}missing package ${name} (${interpreter()}). Run: npm install ${name}`;
    }
    const type = error instanceof Error && error.name !== 'Error' ? `${error.name}: ` : '';
    return `${context}${type}${error?.message ?? error} (${interpreter()})`;
}

/** Lines that a run prints go to the log with the id of the run; other lines go where they went before. */
function captureOutput(stream, level) {
    const write = stream.write.bind(stream);
    const unfinished = new WeakMap(); // by run
    stream.write = (chunk, encoding, callback) => {
        const run = currentRun.getStore();
        if (!run || run.hasEnded) return write(chunk, encoding, callback);
        const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
        const lines = ((unfinished.get(run) ?? '') + text).split('\n');
        const rest = lines.pop();
        if (rest.length > MAX_LOG_LINE) lines.push(rest);
        unfinished.set(run, rest.length > MAX_LOG_LINE ? '' : rest);
        for (const line of lines) if (line) run.log(level, line.slice(0, MAX_LOG_LINE));
        const done = typeof encoding === 'function' ? encoding : callback;
        if (done) queueMicrotask(done);
        return true;
    };
}

function fileOf(args) {
    const i = args.indexOf('--agent');
    return i >= 0 ? args[i + 1] : args.find((a) => !a.startsWith('-'));
}

function main(args) {
    if (args.includes('--help') || args.includes('-h')) {
        console.log('usage: dragoman-worker [FILE[:EXPORT]]\n\nServes the agents of a JavaScript file to a Dragoman server, which starts this program.');
        return;
    }
    const worker = new Worker(fileOf(args), () => process.exit(0)); // timers of user code would hold the process
    worker.connection = connect(worker.handlers);
    captureOutput(process.stdout, 'info');
    captureOutput(process.stderr, 'info');
    process.on('unhandledRejection', (error) => worker.onStrayError(error));
    process.on('uncaughtException', (error) => worker.onStrayError(error));
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
