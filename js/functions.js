// Runs the functions of agent.js in a worker: finds them in a file, calls them, and reports how they ended.
import path from 'node:path';
import { INVALID_PARAMS, RpcError } from './rpc.js';
import { MARK } from './agent.js';
import { exportOf, importFile, splitSpec } from './project.js';
import { Failed, Rejected, Turn } from './turn.js';

const STOP_MS = 1000; // for a function to end after a cancel

/** The agents of a file, by the names of their exports: functions that agent() has marked. */
function agentsOf(module) {
    const found = new Map();
    const add = (name, value) => {
        if (typeof value === 'function' && value[MARK] && ![...found.values()].includes(value)) found.set(value[MARK].id ?? name, value);
    };
    for (const [name, value] of Object.entries(module)) if (name !== 'default') add(name, value);
    add('default', module.default);
    if (module.default && typeof module.default === 'object') for (const [name, value] of Object.entries(module.default)) add(name, value); // CommonJS
    return found;
}

/** Loads FILE[:EXPORT] and chooses the agent that is configured as `id`: the same id, the only one, the default export, or main. */
export async function loadFunction(spec, id, cwd = process.cwd()) {
    const [file, name] = splitSpec(spec);
    const module = await importFile(path.resolve(cwd, file));
    const found = agentsOf(module), names = [...found.keys()].join(', ');
    if (name !== 'default' || spec.endsWith(':default')) {
        const chosen = found.get(name) ?? exportOf(module, name);
        if (typeof chosen !== 'function') throw new Error(`${file} has no agent "${name}". Agents: ${names || 'none'}`);
        return chosen;
    }
    const chosen = found.get(id) ?? (found.size === 1 ? [...found.values()][0] : found.get('default') ?? found.get('main'));
    if (chosen) return chosen;
    if (found.size === 0) throw new Error(`${file} has no agent: export default agent(async (turn) => { ... }), with agent from the package dragoman`);
    throw new Error(`${file} has several agents (${names}): name one, ${file}:${[...found.keys()][0]}`);
}

export async function load(connection, params, file) {
    if (!file) throw new Error('missing the file of the agent: dragoman-worker FILE[:EXPORT]');
    return new Functions(connection, params.agent ?? 'main', await loadFunction(file, params.agent));
}

class Functions {
    #connection;
    #fn;
    #turns = new Map();

    constructor(connection, id, fn) {
        this.#connection = connection;
        this.#fn = fn;
        this.join = joinTexts;
        this.emptyResult = {};
        const { name, description, version, skills, inputModes, outputModes } = fn[MARK] ?? {};
        this.description = {
            agents: [JSON.parse(JSON.stringify({ id, kind: 'events', name, description, version, inputModes, outputModes, skills: skills?.length ? skills : undefined }))],
            capabilities: { cancel: true, input: true, state: false, drain: false },
        };
    }

    async run(run) {
        const { message } = run.params;
        if (message === null || typeof message !== 'object') throw new RpcError(INVALID_PARAMS, 'run: expected message to be an object');
        const connection = this.#connection;
        await run.fetchJournal();
        const turn = new Turn(run.params, {
            emit: (event) => run.emit('a2a', event),
            drained: () => connection.drained(),
            get isFull() {
                return connection.isFull;
            },
            journal: (makeText) => run.journal(makeText),
        }, run.signal);
        this.#turns.set(run.id, turn);
        try {
            return { status: await runTurn(this.#fn, turn) };
        } finally {
            this.#turns.delete(run.id);
        }
    }

    input(run, message) {
        const turn = this.#turns.get(run.id);
        if (turn) Turn.receive(turn, message);
    }
}

/** Streamed text, while the server does not read: one longer chunk. */
function joinTexts(last, next) {
    const a = last.data?.artifactUpdate, b = next.data?.artifactUpdate;
    if (!a || !b?.append || a.lastChunk || b.lastChunk || a.artifact.artifactId !== b.artifact.artifactId) return false;
    const [p, q] = [a.artifact.parts, b.artifact.parts];
    if (p.length !== 1 || q.length !== 1 || typeof p[0].text !== 'string' || typeof q[0].text !== 'string') return false;
    last.data = { artifactUpdate: { ...a, artifact: { ...a.artifact, parts: [{ ...p[0], text: p[0].text + q[0].text }] } } };
    return true;
}

async function callFunction(fn, turn) {
    const result = await fn(turn);
    if (typeof result === 'string') await turn.write(result);
    else if (typeof result?.[Symbol.asyncIterator] === 'function' || typeof result?.[Symbol.iterator] === 'function') for await (const text of result) await turn.write(text);
    else if (result !== undefined && result !== null) throw new TypeError(`an agent returns a text or nothing, not ${typeof result}: turn.data() sends other values`);
}

/** Rejects some time after an abort: a function that does not notice it must not hold the run. */
function stopAfterAbort(signal) {
    let timer, onAbort;
    const promise = new Promise((_, reject) => {
        onAbort = () => {
            timer = setTimeout(() => reject(signal.reason), STOP_MS);
        };
        if (signal.aborted) onAbort();
        else signal.addEventListener('abort', onAbort, { once: true });
    });
    promise.catch(() => {});
    return { promise, clear: () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
    } };
}

/** Closes the text. An error of the function is the one that counts. */
function endQuietly(turn, error) {
    try {
        Turn.finish(turn);
    } catch (fault) {
        if (!error) throw fault;
    }
}

/**
 * Calls the function and returns the status of the run. Throws what the function threw, except for the ends that are reported
 * to the caller.
 */
export async function runTurn(fn, turn) {
    let error = null;
    const stop = stopAfterAbort(turn.signal);
    try {
        await Promise.race([callFunction(fn, turn), stop.promise]);
    } catch (e) {
        error = e ?? new Error('the agent failed');
    }
    stop.clear();
    // code that catches Suspended may return or throw anything: the question is what counts
    if (Turn.hasAsked(turn) && !turn.signal.aborted) return 'interrupted';
    const isFailed = error instanceof Failed || error?.name === 'Failed', isRejected = error instanceof Rejected || error?.name === 'Rejected'; // of another copy of this package
    if (isFailed) Turn.finish(turn, 'TASK_STATE_FAILED', error.message || 'the agent failed');
    else if (isRejected) Turn.finish(turn, 'TASK_STATE_REJECTED', error.message || 'the agent failed');
    else endQuietly(turn, error);
    turn.signal.throwIfAborted();
    if (error && !isFailed && !isRejected) throw error;
    return 'completed';
}
