// The validation of LangGraph's checkpointers, run by vitest, on DragomanSaver: with a stand-in for the server, or with the server behind the socket BRIDGE
// (projects/bridge). Once with values in the lines, once with every value in parts.
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import * as checkpoint from '@langchain/langgraph-checkpoint';
import { validate } from '@langchain/langgraph-checkpoint-validation';
import { createSaverClass } from '../../../js/checkpointer.js';
import { Store } from '../../../js/tests/lib/driver.js';

const DragomanSaver = createSaverClass(checkpoint);

/** A connection to a store in this process; everything is JSON in between. */
const connectTo = (store, maxLineBytes) => ({
    maxLineBytes,
    request: async (method, params) => JSON.parse(JSON.stringify(store.handle(method, JSON.parse(JSON.stringify(params))))),
});

/** The connection of a worker to its server. */
class Bridge {
    #waiting = new Map();
    #n = 0;

    static async open(path) {
        const bridge = new Bridge();
        bridge.socket = connect(path);
        bridge.thread = await new Promise((done, fail) => {
            bridge.socket.on('error', fail);
            createInterface({ input: bridge.socket }).on('line', (line) => {
                const { thread, id, result, error } = JSON.parse(line);
                if (thread) return done(thread);
                const [good, bad] = bridge.#waiting.get(id);
                bridge.#waiting.delete(id);
                return error ? bad(new Error(error)) : good(result);
            });
        });
        return bridge;
    }

    request(method, params) {
        const id = ++this.#n;
        this.socket.write(`${JSON.stringify({ id, method, params })}\n`);
        return new Promise((good, bad) => this.#waiting.set(id, [good, bad]));
    }
}

let places = 0;

/** A part of the server's store: a worker may use names that begin with that of a thread which its server has named. */
class Place {
    threads = new Set();
    prefix = `${bridge.thread}:${++places}:`;

    constructor(maxLineBytes) {
        this.maxLineBytes = maxLineBytes;
    }

    #name(thread) {
        this.threads.add(thread);
        return this.prefix + thread;
    }

    async request(method, params) {
        const named = { ...params };
        for (const key of ['thread', 'from', 'to']) if (named[key] !== undefined) named[key] = this.#name(named[key]);
        if (named.threads) named.threads = named.threads.map((t) => this.#name(t));
        const answer = await bridge.request(method, named);
        const mine = (row) => row?.thread.startsWith(this.prefix), strip = (row) => ({ ...row, thread: row.thread.slice(this.prefix.length) });
        if (method === 'checkpoint/list') return { ...answer, rows: answer.rows.filter(mine).map(strip) };
        return method === 'checkpoint/get' && answer ? strip(answer) : answer;
    }

    async clear() {
        for (const thread of this.threads) await this.request('checkpoint/delete', { thread });
    }
}

const bridge = process.env.BRIDGE && await Bridge.open(process.env.BRIDGE);

for (const [name, maxLineBytes, inlineBytes] of [['DragomanSaver', 8 << 20, Infinity], ['DragomanSaver, values in parts', 64, 1]])
    validate({
        checkpointerName: name,
        createCheckpointer: () => new DragomanSaver(bridge ? new Place(maxLineBytes) : connectTo(Object.assign(new Store(), { inlineBytes }), maxLineBytes)),
        ...(bridge && { destroyCheckpointer: (saver) => saver.connection.clear() }),
    });
