// The connection between a worker and the server: JSON-RPC 2.0, one object per line, both sides may call.
// docs/worker-protocol.md describes the messages. No other module knows how they are transported.
import net from 'node:net';

export const PROTOCOL_VERSION = 1;
export const MAX_LINE_BYTES = 8 * 1024 * 1024; // until `initialize` agrees on another limit
const FLUSH_BYTES = 64 * 1024; // this much waits for the end of a turn of the event loop at most

// Codes of errors, see docs/worker-protocol.md
export const RAISED = -32000, RECURSION = -32001, BUSY = -32002, FULL = -32003, NOT_LOADED = -32004,
    REJECTED = -32005, NOT_A_LINE = -32010, UNKNOWN_METHOD = -32601, INVALID_PARAMS = -32602, INTERNAL_ERROR = -32603, PARSE_ERROR = -32700;

/** An error that the other side gets as it is. */
export class RpcError extends Error {
    constructor(code, message, data) {
        super(message);
        this.name = 'RpcError';
        this.code = code;
        this.data = data;
    }
}

/** The connection has ended: no request can be answered. */
export class ConnectionClosed extends Error {
    constructor() {
        super('the connection to the server is closed');
        this.name = 'ConnectionClosed';
    }
}

// JSON.stringify writes a surrogate without its partner as an escape, which strict parsers refuse. A pair is never
// escaped, so every such escape is a lone one. The first alternative skips escaped backslashes.
const LONE_SURROGATE = /\\\\|\\ud[89a-f][0-9a-f]{2}/g;

/** JSON without escapes of lone surrogates. */
export function encode(value) {
    const text = JSON.stringify(value);
    return text.includes('\\ud') ? text.replace(LONE_SURROGATE, (m) => (m === '\\\\' ? m : '\ufffd')) : text;
}

/** Splits bytes into lines. A line longer than `maxBytes` calls onTooLong once; nothing follows. */
export class LineReader {
    #parts = [];
    #bytes = 0;
    #failed = false;

    constructor(maxBytes, onLine, onTooLong) {
        Object.assign(this, { maxBytes, onLine, onTooLong });
    }

    push(chunk) {
        let start = 0;
        for (let end; !this.#failed && (end = chunk.indexOf(10, start)) >= 0; start = end + 1)
            this.#add(chunk.subarray(start, end), true);
        if (!this.#failed && start < chunk.length) this.#add(chunk.subarray(start), false);
    }

    #add(part, isEnd) {
        this.#bytes += part.length;
        if (this.#bytes > this.maxBytes) {
            this.#failed = true;
            this.onTooLong();
            return;
        }
        this.#parts.push(part);
        if (!isEnd) return;
        const line = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts, this.#bytes);
        this.#parts = [];
        this.#bytes = 0;
        this.onLine(line.toString('utf8'));
    }
}

/**
 * One connection. `handlers`: request(method, params) returns the result or a promise of it, or throws;
 * notification(method, params); end() is called once, when the other side has closed the connection;
 * fault(text) when it sent something that is not a line of the protocol.
 */
export class Connection {
    #out;
    #queue = []; // lines of this turn of the event loop that wait for #flush
    #queuedBytes = 0;
    #isScheduled = false;
    #isFull = false;
    #waiters = []; // of drained()
    #pending = new Map();
    #nextId = 1;
    #isClosed = false;

    constructor(input, output, handlers) {
        this.#out = output;
        this.handlers = handlers;
        this.maxLineBytes = MAX_LINE_BYTES;
        this.#reader = new LineReader(MAX_LINE_BYTES, (line) => this.#receive(line), () => this.#fault('a line is longer than maxLineBytes'));
        input.on('data', (chunk) => this.#reader.push(chunk));
        input.on('end', () => this.close());
        input.on('close', () => this.close());
        input.on('error', () => this.close());
        output.on('drain', () => this.#drain());
        output.on('error', () => this.close());
        output.on('close', () => this.close());
    }

    #reader;

    setMaxLineBytes(bytes) {
        this.maxLineBytes = this.#reader.maxBytes = bytes;
    }

    /** True while the other side does not read: whoever can wait or merge should. */
    get isFull() {
        return this.#isFull;
    }

    get isClosed() {
        return this.#isClosed;
    }

    /** Resolves when there is room again, or when the connection is closed. */
    drained() {
        return this.#isFull && !this.#isClosed ? new Promise((done) => this.#waiters.push(done)) : Promise.resolve();
    }

    /** Calls a method of the other side. */
    request(method, params) {
        if (this.#isClosed) return Promise.reject(new ConnectionClosed());
        const id = `w${this.#nextId++}`;
        return new Promise((resolve, reject) => {
            this.#send({ jsonrpc: '2.0', id, method, params });
            this.#pending.set(id, { resolve, reject });
        });
    }

    notify(method, params) {
        this.#send({ jsonrpc: '2.0', method, params });
    }

    /** Closes this side after everything queued is written. Open requests fail. */
    close() {
        if (this.#isClosed) return;
        this.#flush();
        this.#isClosed = true;
        this.#drain();
        for (const { reject } of this.#pending.values()) reject(new ConnectionClosed());
        this.#pending.clear();
        this.#out.end();
        this.handlers.end();
    }

    // ---- out ------------------------------------------------------------------------------------------------------

    /** Throws RpcError(NOT_A_LINE) if the message does not fit a line or is not JSON. */
    #send(message) {
        if (this.#isClosed) return;
        let text;
        try {
            text = encode(message);
        } catch (error) {
            throw new RpcError(NOT_A_LINE, `a value cannot be written as JSON: ${error.message}`);
        }
        if (text.length * 3 >= this.maxLineBytes && Buffer.byteLength(text) + 1 > this.maxLineBytes)
            throw new RpcError(NOT_A_LINE, `a message of ${Buffer.byteLength(text)} bytes is longer than maxLineBytes (${this.maxLineBytes})`);
        this.#queue.push(text);
        this.#queuedBytes += text.length;
        if (this.#queuedBytes > FLUSH_BYTES) this.#flush();
        // The first line of a turn of the event loop is written at once: code that blocks the CPU after it must not
        // delay it. The lines after it are written together.
        if (this.#isScheduled) return;
        this.#isScheduled = true;
        this.#flush();
        setImmediate(() => {
            this.#isScheduled = false;
            this.#flush();
        });
    }

    #flush() {
        if (this.#queue.length === 0 || this.#isClosed) return;
        const text = this.#queue.join('\n') + '\n';
        this.#queue = [];
        this.#queuedBytes = 0;
        if (!this.#out.write(text)) this.#isFull = true;
    }

    #drain() {
        this.#isFull = false;
        for (const done of this.#waiters.splice(0)) done();
    }

    // ---- in -------------------------------------------------------------------------------------------------------

    #fault(text) {
        this.handlers.fault(text);
        this.close();
    }

    #receive(line) {
        let message;
        if (line.trim() === '') return;
        try {
            message = JSON.parse(line);
        } catch {
            message = undefined;
        }
        if (message === null || typeof message !== 'object' || Array.isArray(message)) {
            this.#send({ jsonrpc: '2.0', id: null, error: { code: PARSE_ERROR, message: 'expected one JSON object per line' } });
            return;
        }
        if (typeof message.method === 'string') {
            if (message.id === undefined) this.handlers.notification(message.method, message.params ?? {});
            else this.#answer(message.id, message.method, message.params ?? {});
            return;
        }
        const waiting = this.#pending.get(message.id);
        if (!waiting) return; // an answer that came too late
        this.#pending.delete(message.id);
        if (message.error) waiting.reject(new RpcError(message.error.code, message.error.message, message.error.data));
        else waiting.resolve(message.result);
    }

    async #answer(id, method, params) {
        try {
            const result = await this.handlers.request(method, params);
            this.#send({ jsonrpc: '2.0', id, result: result === undefined ? {} : result });
        } catch (error) {
            this.#send({ jsonrpc: '2.0', id, error: describeError(error) });
        }
    }
}

/** An error as the member `error` of a response. `data` is for the operator's log only. */
export function describeError(error) {
    if (error instanceof RpcError) return { code: error.code, message: error.message, ...(error.data === undefined ? {} : { data: error.data }) };
    const isError = error instanceof Error;
    return {
        code: RAISED,
        message: cut(isError ? error.message : String(error), 4000),
        data: { type: isError ? error.constructor?.name || error.name : typeof error, traceback: cut(tracebackOf(error), 16000) },
    };
}

function cut(text, max) {
    return text.length > max ? `${text.slice(0, max)} ...` : text;
}

/** The stack of an error and of its causes. */
export function tracebackOf(error) {
    const texts = [];
    for (let e = error; e != null && texts.length < 5; e = e.cause) texts.push(String(e?.stack ?? e));
    return texts.join('\ncaused by: ');
}

/**
 * Connects to the server: the socket whose number is in DRAGOMAN_FD, or stdin and stdout. In the second case what
 * programs print goes to stderr from now on, so call this before code of the user is loaded.
 */
export function connect(handlers, env = process.env) {
    if (env.DRAGOMAN_FD) {
        const fd = Number(env.DRAGOMAN_FD);
        if (!Number.isInteger(fd) || fd < 0) throw new Error(`DRAGOMAN_FD: expected the number of a socket, got "${env.DRAGOMAN_FD}"`);
        delete env.DRAGOMAN_FD; // the socket is not for programs that this one starts
        const socket = new net.Socket({ fd, readable: true, writable: true });
        return new Connection(socket, socket, handlers);
    }
    const stdout = process.stdout;
    const output = Object.create(stdout, { write: { value: stdout.write.bind(stdout) }, end: { value: () => {} } });
    stdout.write = process.stderr.write.bind(process.stderr);
    return new Connection(process.stdin, output, handlers);
}
