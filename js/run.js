// One run of an agent: its parameters, its events in order, its cancellation.
import { AsyncLocalStorage } from 'node:async_hooks';
import { RpcError, NOT_A_LINE } from './rpc.js';

const JOURNAL_PART = 1 << 20; // characters of a part: below the limit of a line, also if all are escaped
const MAX_QUEUED_EVENTS = 10000; // of one run, while the server does not read

/** The run whose code is running: `currentRun.getStore()`. */
export const currentRun = new AsyncLocalStorage();

/**
 * While the server does not read, events wait here. `join(last, event)` may then put an event into the one before it and
 * returns true if it did: streamed text becomes fewer, longer chunks. Without it a slow server would make the queue grow.
 */
export class Run {
    #connection;
    #seq = 0;
    #queue = [];
    #isFlushing = null;
    #controller = new AbortController();
    #join;

    constructor(connection, params, join = () => false) {
        this.#connection = connection;
        this.params = params;
        this.id = params.run;
        this.agent = params.agent;
        this.thread = params.thread;
        this.#join = join;
        this.isCancelled = false;
        this.isDraining = false;
        this.hasEnded = false; // the response was sent: no event may follow
        this.failure = null; // of an event that could not be sent later
    }

    /** Aborted by a cancel, by the end of the connection, and when the worker must end. */
    get signal() {
        return this.#controller.signal;
    }

    abort(reason) {
        this.#controller.abort(reason);
    }

    /** Sends one event. Throws RpcError(NOT_A_LINE) if it does not fit a line. */
    emit(type, data, ns) {
        if (this.hasEnded || this.#connection.isClosed) return;
        const event = ns === undefined ? { type, data } : { type, ns, data };
        if (!this.#connection.isFull && this.#queue.length === 0) {
            this.#send(event);
            return;
        }
        const last = this.#queue[this.#queue.length - 1];
        if (last && this.#join(last, event)) return;
        if (this.#queue.length >= MAX_QUEUED_EVENTS)
            throw new RpcError(NOT_A_LINE, `${MAX_QUEUED_EVENTS} events wait for the server, which does not read them`);
        this.#queue.push(event);
        this.#isFlushing ??= this.#flush();
    }

    #send({ type, ns, data }) {
        const params = ns === undefined ? { run: this.id, seq: this.#seq, type, data } : { run: this.id, seq: this.#seq, type, ns, data };
        this.#connection.notify('event', params);
        this.#seq++;
    }

    async #flush() {
        while (this.#queue.length && !this.#connection.isClosed) {
            await this.#connection.drained();
            while (this.#queue.length && !this.#connection.isFull) {
                const event = this.#queue.shift();
                try {
                    this.#send(event);
                } catch (error) {
                    this.failure ??= error;
                    this.abort(error);
                }
            }
        }
        this.#isFlushing = null;
    }

    /** Resolves when all events are on their way. Throws if one could not be sent. */
    async flushed() {
        while (this.#isFlushing) await this.#isFlushing;
        if (this.failure) throw this.failure;
    }

    /** A line for the operator's log. */
    log(level, text) {
        try {
            this.#connection.notify('log', { run: this.id, level, text });
        } catch {
            // a line of the log that is too long is lost
        }
    }

    /** Stores the text that makeText() returns with the task, durably, together with all events sent before it. A long one is sent in parts. */
    async journal(makeText) {
        await this.flushed();
        const text = makeText(), parts = []; // now: no event that the text does not count comes in between
        for (let i = 0; i === 0 || i < text.length;) {
            const end = text.charCodeAt(i + JOURNAL_PART - 1) >> 10 === 0x36 ? i + JOURNAL_PART + 1 : i + JOURNAL_PART; // not between two surrogates
            parts.push({ run: this.id, text: text.slice(i, end), ...(end < text.length ? { more: true } : {}) });
            i = end;
        }
        // all are queued at once, in order: no part of another text comes in between
        await Promise.all(parts.map((part) => this.#connection.request('journal/put', part)));
    }

    /** A long journal is only announced in `run`: reads it into the params. */
    async fetchJournal() {
        if (typeof this.params.journal !== 'object' || this.params.journal === null) return;
        let text = '', part = { next: 0, more: true };
        while (part.more) {
            part = await this.#connection.request('journal/get', { run: this.id, offset: part.next });
            text += part.text;
        }
        this.params.journal = text;
    }
}
