// A LangGraph checkpointer on the store of the Dragoman server: threads survive the worker, and the graph needs no database.
// The values are opaque to the server: [type, base64] as the serialiser of LangGraph made them.
import { setTimeout as sleep } from 'node:timers/promises';
import { MESSAGE_ID } from './functional.js';
import { INTERNAL_ERROR } from './rpc.js';

const MAX_BLOBS = 8; // of one worker at a time, see docs/worker-protocol.md
const PAGE = 100; // checkpoints that one answer of checkpoint/list has at most
const MAX_PART = 4 * 1024 * 1024; // bytes of one blob/write or blob/read
const MAX_VALUE = 64 * 1024 * 1024; // the server's limit
const RETRY_MS = [100, 500]; // before a store that has failed is asked again

/** At most `size` at a time; acquire(n) waits for n together, so that two requests cannot wait for each other. */
class Slots {
    #free;
    #waiting = [];

    constructor(size) {
        this.#free = size;
    }

    acquire(n) {
        return new Promise((go) => {
            this.#waiting.push({ n, go });
            this.#next();
        });
    }

    release(n) {
        this.#free += n;
        this.#next();
    }

    #next() {
        while (this.#waiting.length && this.#waiting[0].n <= this.#free) {
            const { n, go } = this.#waiting.shift();
            this.#free -= n;
            go();
        }
    }
}

/** Sends and reads values that do not fit a line in parts. One for each connection. */
class Blobs {
    #slots = new Slots(MAX_BLOBS);
    #n = 0;

    constructor(connection) {
        this.connection = connection;
    }

    /** Values up to this size are part of the request itself. */
    get inlineBytes() {
        return Math.floor(this.connection.maxLineBytes / 16);
    }

    /**
     * Calls a method with values: `values` are [type, bytes], `build(encoded)` returns the params. At most MAX_BLOBS / 2 of
     * the values may be larger than inlineBytes.
     */
    async request(method, values, build) {
        const large = values.filter(([, bytes]) => bytes.length > this.inlineBytes).length, open = [];
        await this.#slots.acquire(large);
        try {
            const encoded = [];
            for (const [type, bytes] of values) encoded.push([type, bytes.length > this.inlineBytes ? await this.#write(bytes, open) : base64(bytes)]);
            // a request consumes its blobs, also one that fails: only one without blobs can be repeated
            return await (large ? this.connection.request(method, build(encoded)) : this.ask(method, build(encoded)));
        } catch (error) {
            for (const blob of open) await this.close(blob);
            throw error;
        } finally {
            this.#slots.release(large);
        }
    }

    /** A request without blobs; repeated if the store has failed. */
    async ask(method, params) {
        for (const ms of RETRY_MS) {
            try {
                return await this.connection.request(method, params);
            } catch (error) {
                if (error.code !== INTERNAL_ERROR) throw error;
            }
            await sleep(ms);
        }
        return this.connection.request(method, params);
    }

    async #write(bytes, open) {
        const blob = `b${++this.#n}`;
        const part = Math.floor(Math.min(MAX_PART, this.connection.maxLineBytes * 0.6) / 3) * 3; // whole groups of base64
        open.push(blob);
        for (let i = 0; i < bytes.length; i += part)
            await this.connection.request('blob/write', { blob, data: base64(bytes.subarray(i, i + part)) });
        return { blob };
    }

    /** One that cannot be closed ends with the process. */
    async close(blob) {
        await this.connection.request('blob/close', { blob }).catch(() => {});
    }

    /** Closes the blobs of a row that is not read. */
    async skip(row) {
        for (const [, data] of [row.checkpoint, row.metadata, ...(row.writes ?? []).map((w) => w[2])]) if (data?.blob) await this.close(data.blob);
    }

    /** The bytes of a VALUE: [type, base64 or {blob, bytes}]. */
    async read([type, data]) {
        if (typeof data === 'string') return [type, Buffer.from(data, 'base64')];
        const parts = [], max = Math.floor(Math.min(MAX_PART, this.connection.maxLineBytes * 0.6));
        try {
            for (let offset = 0, isLast = false; !isLast;) {
                const answer = await this.connection.request('blob/read', { blob: data.blob, offset, max });
                const bytes = Buffer.from(answer.data, 'base64');
                isLast = answer.last || bytes.length === 0;
                offset += bytes.length;
                parts.push(bytes);
            }
        } finally {
            await this.close(data.blob);
        }
        return [type, Buffer.concat(parts)];
    }
}

const base64 = (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
const toBytes = (value) => (typeof value === 'string' ? Buffer.from(value) : value);
const configurableOf = (config) => config?.configurable ?? {};
const pick = (object, names) => Object.fromEntries(Object.entries(object).filter(([key]) => key in names));
const without = (object) => Object.fromEntries(Object.entries(object).filter(([, v]) => v !== undefined));

/**
 * The class DragomanSaver for one copy of @langchain/langgraph-checkpoint, the module `checkpoint`.
 * `new DragomanSaver(connection)`.
 */
export function createSaverClass(checkpoint) {
    const { BaseCheckpointSaver, WRITES_IDX_MAP, TASKS = '__pregel_tasks', copyCheckpoint, getCheckpointId, maxChannelVersion } = checkpoint;

    return class DragomanSaver extends BaseCheckpointSaver {
        constructor(connection, serde) {
            super(serde);
            // not enumerable: LangGraph copies and prints configurations that contain the checkpointer
            Object.defineProperty(this, 'blobs', { value: new Blobs(connection) });
            Object.defineProperty(this, 'connection', { value: connection });
        }

        async getTuple(config) {
            const { thread_id: thread, checkpoint_ns: ns = '' } = configurableOf(config);
            if (thread === undefined) return undefined;
            const row = await this.blobs.ask('checkpoint/get', without({ thread: String(thread), ns, id: getCheckpointId(config) || undefined }));
            return row ? this.#tuple(row) : undefined;
        }

        async *list(config, options) {
            const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id } = configurableOf(config);
            const { filter, before } = options ?? {};
            const query = { thread: thread === undefined ? undefined : String(thread), ns, before: before?.configurable?.checkpoint_id };
            let remaining = options?.limit ?? Infinity, after;
            for (let more = true; more && remaining > 0;) {
                const limit = filter || id ? PAGE : Math.min(PAGE, remaining);
                const answer = await this.blobs.ask('checkpoint/list', without({ ...query, limit, after }));
                const rows = [...answer.rows];
                after = answer.next;
                try {
                    for (let row; remaining > 0 && (row = rows.shift());) {
                        if (id && row.id !== id) {
                            await this.blobs.skip(row);
                            continue;
                        }
                        const tuple = await this.#tuple(row);
                        if (filter && !Object.entries(filter).every(([key, value]) => tuple.metadata?.[key] === value)) continue;
                        remaining--;
                        yield tuple;
                    }
                } finally {
                    for (const row of rows) await this.blobs.skip(row);
                }
                more = Boolean(answer.more && after);
            }
        }

        async put(config, value, metadata, newVersions) {
            const { thread_id, checkpoint_ns = '', checkpoint_id: parent, run_id } = configurableOf(config);
            if (thread_id === undefined) throw new Error('cannot store a checkpoint: the configuration has no configurable.thread_id');
            const stored = copyCheckpoint(value);
            // every value of the first checkpoint of a thread has a new version; one without has not been written
            if (!parent && newVersions && metadata?.source !== 'fork') stored.channel_values = pick(stored.channel_values, newVersions);
            const messageId = config.metadata?.[MESSAGE_ID]; // LangGraph for JavaScript does not copy it, that for Python does
            const values = [await this.#dump(stored, 'the checkpoint'), await this.#dump(messageId ? { ...metadata, [MESSAGE_ID]: messageId } : metadata, 'the metadata')];
            await this.blobs.request('checkpoint/put', values, ([checkpoint, metadata_]) => without({
                thread: String(thread_id), ns: checkpoint_ns, id: value.id, parent: parent || undefined,
                run: metadata?.run_id ?? run_id, checkpoint, metadata: metadata_ }));
            return { configurable: { thread_id, checkpoint_ns, checkpoint_id: value.id } };
        }

        async putWrites(config, writes, taskId) {
            const { thread_id, checkpoint_ns = '', checkpoint_id } = configurableOf(config);
            if (thread_id === undefined || checkpoint_id === undefined)
                throw new Error('cannot store writes: the configuration has no configurable.thread_id or checkpoint_id');
            const dumped = await Promise.all(writes.map(async ([channel, value], i) => [WRITES_IDX_MAP[channel] ?? i, channel, await this.#dump(value, `the value of ${channel}`)]));
            for (const group of this.#groups(dumped))
                await this.blobs.request('checkpoint/writes', group.map((w) => w[2]), (encoded) => ({
                    thread: String(thread_id), ns: checkpoint_ns, id: checkpoint_id, task: taskId,
                    writes: group.map(([index, channel], i) => [index, channel, encoded[i]]) }));
        }

        /** Requests that fit a line and need few blobs each. A write has its index, so the order does not matter. */
        *#groups(writes) {
            let group = [], bytes = 0, large = 0;
            for (const write of writes) {
                const size = write[2][1].length, isLarge = size > this.blobs.inlineBytes;
                if (group.length && (bytes + (isLarge ? 0 : size) > this.blobs.inlineBytes * 4 || (isLarge && large === MAX_BLOBS / 2))) {
                    yield group;
                    group = [];
                    bytes = large = 0;
                }
                group.push(write);
                if (isLarge) large++;
                else bytes += size;
            }
            if (group.length) yield group;
        }

        async deleteThread(threadId) {
            await this.blobs.ask('checkpoint/delete', { thread: String(threadId) });
        }

        /** Deletes the checkpoints of runs, by the run_id of their metadata. */
        async deleteForRuns(runIds) {
            await this.blobs.ask('checkpoint/delete_runs', { runs: runIds.map(String) });
        }

        async copyThread(from, to) {
            await this.blobs.ask('checkpoint/copy', { from: String(from), to: String(to) });
        }

        /** strategy: "keep_latest" or "delete" */
        async prune(threadIds, strategy = 'keep_latest') {
            const threads = [];
            for (const thread of threadIds.map(String)) if (strategy === 'delete' || !(await this.#needsAncestors(thread))) threads.push(thread);
            if (threads.length) await this.blobs.ask('checkpoint/prune', { threads, strategy });
        }

        /** A DeltaChannel is rebuilt from older checkpoints: the newest one alone would lose its value. */
        async #needsAncestors(thread) {
            const seen = new Set();
            for await (const { config, metadata } of this.list({ configurable: { thread_id: thread } })) {
                const ns = config.configurable.checkpoint_ns;
                if (!seen.has(ns) && Object.keys(metadata?.counters_since_delta_snapshot ?? {}).length) return true;
                seen.add(ns);
            }
            return false;
        }

        async #dump(value, what) {
            const [type, text] = await this.serde.dumpsTyped(value), bytes = toBytes(text);
            if (bytes.length > MAX_VALUE)
                throw new Error(`${what} has ${bytes.length} bytes; the limit is ${MAX_VALUE}. Store large data elsewhere, and a reference to it in the state`);
            return [type, bytes];
        }

        async #load(value) {
            const [type, bytes] = await this.blobs.read(value);
            if (type === '') return undefined; // absent
            return this.serde.loadsTyped(type, bytes);
        }

        async #tuple(row) {
            const at = (id) => ({ configurable: { thread_id: row.thread, checkpoint_ns: row.ns, checkpoint_id: id } });
            const value = await this.#load(row.checkpoint);
            const tuple = { config: at(row.id), checkpoint: value, metadata: await this.#load(row.metadata), pendingWrites: [] };
            for (const [task, channel, write] of row.writes ?? []) tuple.pendingWrites.push([task, channel, await this.#load(write)]);
            if (row.parent) tuple.parentConfig = at(row.parent);
            if (value.v < 4 && row.parent) await this.#migrate(value, row);
            return tuple;
        }

        /** Older checkpoints have the tasks that were sent in the writes of their parent. */
        async #migrate(value, { thread, ns, parent }) {
            const row = await this.blobs.ask('checkpoint/get', { thread, ns, id: parent });
            const sends = [];
            for (const [, channel, write] of row?.writes ?? []) if (channel === TASKS) sends.push(await this.#load(write));
            const versions = Object.values((value.channel_versions ??= {}));
            (value.channel_values ??= {})[TASKS] = sends;
            value.channel_versions[TASKS] = versions.length ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
        }
    };
}
