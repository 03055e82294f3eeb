// A stand-in for the server: starts worker.js with a socket, sends it requests, holds checkpoints and journals in memory. It
// shares no code with the worker, so that both sides of the protocol are tested.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const WORKER = fileURLToPath(new URL('../../worker.js', import.meta.url));
const EVENT_MS = 20000; // far above what a busy machine needs

/** Checkpoints as the server stores them: they outlive a worker. */
export class Store {
    constructor() {
        this.rows = new Map(); // key -> row without writes
        this.writes = new Map(); // key -> Map("task,idx" -> [task, idx, channel, value])
        this.journals = new Map();
        this.blobs = new Map();
        this.requests = [];
        this.nBlobs = 0;
        this.inlineBytes = 4 << 20; // longer values of answers are blobs
    }

    #key = (...parts) => JSON.stringify(parts);

    #out([type, data]) {
        const bytes = Buffer.from(data, 'base64').length;
        if (bytes <= this.inlineBytes) return [type, data];
        const blob = `s${++this.nBlobs}`;
        this.blobs.set(blob, Buffer.from(data, 'base64'));
        return [type, { blob, bytes }];
    }

    #in([type, data]) {
        if (typeof data === 'string') return [type, data];
        const bytes = this.blobs.get(data.blob);
        if (!bytes) throw { code: -32602, message: `unknown blob ${data.blob}` };
        this.blobs.delete(data.blob);
        return [type, bytes.toString('base64')];
    }

    #row(row) {
        const writes = [...(this.writes.get(this.#key(row.thread, row.ns, row.id)) ?? new Map()).values()];
        writes.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]));
        return { ...row, checkpoint: this.#out(row.checkpoint), metadata: this.#out(row.metadata), writes: writes.map(([task, , channel, value]) => [task, channel, this.#out(value)]) };
    }

    #select({ thread, ns, before, id, after }) {
        const found = [...this.rows.values()].filter((r) => (thread === undefined || r.thread === thread) && (ns === undefined || r.ns === ns)
            && (before === undefined || r.id < before) && (id === undefined || r.id === id));
        found.sort((a, b) => (a.id < b.id ? 1 : -1));
        return after === undefined ? found : found.slice(found.findIndex((r) => this.#key(r.thread, r.ns, r.id) === after) + 1);
    }

    handle(method, p) {
        this.requests.push([method, p]);
        const handlers = {
            'journal/put': () => {
                this.journals.set(p.run, p.text);
                return {};
            },
            'checkpoint/get': () => {
                const [row] = this.#select(p);
                return row ? this.#row(row) : null;
            },
            'checkpoint/put': () => {
                this.rows.set(this.#key(p.thread, p.ns, p.id), { ...p, checkpoint: this.#in(p.checkpoint), metadata: this.#in(p.metadata) });
                return {};
            },
            'checkpoint/writes': () => {
                const key = this.#key(p.thread, p.ns, p.id), writes = this.writes.get(key) ?? new Map();
                this.writes.set(key, writes);
                for (const [idx, channel, value] of p.writes) {
                    const at = `${p.task},${idx}`, stored = this.#in(value);
                    if (idx < 0 || !writes.has(at)) writes.set(at, [p.task, idx, channel, stored]);
                }
                return {};
            },
            'checkpoint/list': () => {
                const found = this.#select(p), limit = Math.min(p.limit ?? 100, 2); // small pages, so that they are tested
                const rows = found.slice(0, limit), last = rows[rows.length - 1], more = found.length > limit;
                return { rows: rows.map((r) => this.#row(r)), more, ...(more ? { next: this.#key(last.thread, last.ns, last.id) } : {}) };
            },
            'checkpoint/delete': () => {
                for (const map of [this.rows, this.writes]) for (const key of [...map.keys()]) if (JSON.parse(key)[0] === p.thread) map.delete(key);
                return {};
            },
            'checkpoint/delete_runs': () => {
                for (const [key, row] of [...this.rows]) if (p.runs.includes(row.run)) [this.rows, this.writes].forEach((m) => m.delete(key));
                return {};
            },
            'checkpoint/copy': () => {
                for (const [key, row] of [...this.rows]) if (row.thread === p.from) this.rows.set(this.#key(p.to, row.ns, row.id), { ...row, thread: p.to });
                for (const [key, writes] of [...this.writes]) if (JSON.parse(key)[0] === p.from) this.writes.set(this.#key(p.to, ...JSON.parse(key).slice(1)), new Map(writes));
                return {};
            },
            'checkpoint/prune': () => {
                for (const thread of p.threads) {
                    const seen = new Set();
                    for (const row of this.#select({ thread })) {
                        const key = this.#key(row.thread, row.ns, row.id);
                        if (p.strategy === 'delete' || seen.has(row.ns)) [this.rows, this.writes].forEach((m) => m.delete(key));
                        seen.add(row.ns);
                    }
                }
                return {};
            },
            'blob/write': () => {
                if (!this.blobs.has(p.blob) && [...this.blobs.keys()].filter((k) => k.startsWith('b')).length >= 8) throw { code: -32602, message: 'more than 8 blobs' };
                this.blobs.set(p.blob, Buffer.concat([this.blobs.get(p.blob) ?? Buffer.alloc(0), Buffer.from(p.data, 'base64')]));
                return {};
            },
            'blob/read': () => {
                const bytes = this.blobs.get(p.blob), part = bytes.subarray(p.offset, p.offset + p.max);
                return { data: part.toString('base64'), last: p.offset + part.length >= bytes.length };
            },
            'blob/close': () => {
                this.blobs.delete(p.blob);
                return {};
            },
        };
        if (!handlers[method]) throw { code: -32601, message: `unknown method ${method}` };
        return handlers[method]();
    }
}

let runs = 0;

/** A worker process. */
export class Driver {
    constructor({ args = [], store = new Store(), cwd, env = {}, node = process.execPath, onRequest, isStdio = false } = {}) {
        Object.assign(this, { store, onRequest, events: [], logs: [], printed: '', faults: [], maxLine: 0 });
        this.pending = new Map();
        this.nextId = 1;
        this.waiters = [];
        const stdio = isStdio ? ['pipe', 'pipe', 'pipe'] : ['ignore', 'pipe', 'pipe', 'pipe'];
        this.child = spawn(node, [WORKER, ...args], { stdio, cwd, env: { ...process.env, ...(isStdio ? {} : { DRAGOMAN_FD: '3' }), ...env } });
        [this.input, this.output] = isStdio ? [this.child.stdout, this.child.stdin] : [this.child.stdio[3], this.child.stdio[3]];
        this.output.on('error', () => {}); // the worker was killed
        this.exited = new Promise((done) => this.child.on('exit', (code, signal) => done({ code, signal })));
        if (!isStdio) this.child.stdout.on('data', (d) => (this.printed += d));
        this.child.stderr.on('data', (d) => (this.printed += d));
        let rest = Buffer.alloc(0);
        this.input.on('data', (chunk) => {
            rest = Buffer.concat([rest, chunk]);
            for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) this.#receive(rest.subarray(0, end).toString());
        });
        this.exited.then((how) => {
            for (const { reject } of this.pending.values()) reject(new Error(`the worker ended: ${JSON.stringify(how)}\n${this.printed}`));
            for (const wake of this.waiters.splice(0)) wake();
        });
    }

    #receive(line) {
        let message;
        this.maxLine = Math.max(this.maxLine, Buffer.byteLength(line));
        try {
            message = JSON.parse(line);
        } catch {
            this.faults.push(line);
            return;
        }
        if (message.method === 'event') this.events.push(message.params);
        else if (message.method === 'log') this.logs.push(message.params);
        else if (message.method) this.#answer(message);
        else this.#settle(message);
        for (const wake of this.waiters.splice(0)) wake();
    }

    async #answer({ id, method, params }) {
        try {
            await this.onRequest?.(method, params);
            this.send({ id, result: this.store.handle(method, params) });
        } catch (error) {
            this.send({ id, error: { code: error.code ?? -32603, message: error.message } });
        }
    }

    #settle({ id, result, error }) {
        const waiting = this.pending.get(id);
        if (!waiting) {
            this.faults.push({ id, result, error });
            return;
        }
        this.pending.delete(id);
        if (error) waiting.reject(Object.assign(new Error(error.message), error));
        else waiting.resolve(result);
    }

    send(message) {
        this.sendLine(JSON.stringify({ jsonrpc: '2.0', ...message }));
    }

    sendLine(line) {
        this.output.write(`${line}\n`);
    }

    request(method, params = {}) {
        const id = this.nextId++;
        return new Promise((resolve, reject) => {
            this.pending.set(id, { resolve, reject });
            this.send({ id, method, params });
        });
    }

    notify(method, params) {
        this.send({ method, params });
    }

    initialize(params = {}) {
        return this.request('initialize', { protocolVersion: 1, server: { name: 'test', version: '0' }, agent: 'main', cwd: process.cwd(),
            maxLineBytes: 8 << 20, checkpointer: 'server', settings: {}, ...params });
    }

    /** Starts a run; the promise has the member `id`. */
    run(params) {
        const run = params.run ?? `r${++runs}`;
        const promise = this.request('run', { run, agent: 'main', thread: 't1', task: 'task-1', context: 'ctx-1', isResumed: false, metadata: {},
            acceptedOutputModes: [], tools: [], attempt: 1, ...params });
        promise.catch(() => {});
        return Object.assign(promise, { id: run });
    }

    eventsOf(run, type) {
        return this.events.filter((e) => e.run === run && (!type || e.type === type));
    }

    /** Waits until a condition holds. */
    async until(condition, what = 'the condition') {
        const deadline = Date.now() + EVENT_MS;
        while (!condition()) {
            if (Date.now() > deadline) throw new Error(`${what} did not happen\n${this.printed}`);
            await new Promise((done) => {
                const timer = setTimeout(done, 200);
                this.waiters.push(() => {
                    clearTimeout(timer);
                    done();
                });
            });
        }
    }

    async kill() {
        this.child.kill('SIGKILL');
        return this.exited;
    }

    /** Closes the connection; the worker must end by itself. */
    async close() {
        this.output.end();
        this.input.destroy?.();
        return this.exited;
    }
}

/** The text of the chunks of a run. */
export const textOf = (events) => events.filter((e) => e.type === 'messages' && e.data.message.type === 'ai' && e.data.message.chunk)
    .map((e) => (typeof e.data.message.content === 'string' ? e.data.message.content : '')).join('');

/** The files of a folder whose names end with a suffix. */
export const filesOf = (folder, suffix) => readdirSync(folder).filter((name) => name.endsWith(suffix)).sort();
