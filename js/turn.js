// Turn: what the function of an agent gets. Everything that it sends goes through here, and replay is decided here.
// It does not know the server: a sink accepts the events. The rules are those of python/dragoman/_turn.py.
import { createHash } from 'node:crypto';
import { extname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Journal, NotDeterministic } from './journal.js';
import { encode } from './rpc.js';
import { requireJson } from './values.js';
import { Answer, Message, toolsOf } from './view.js';

const YIELD_EVERY = 32; // awaited writes after which other runs and a cancel get their turn
const CHUNK = 256 * 1024; // characters of one event: a longer text is several, so that it fits a line
const FILE_CHUNK = 3 << 20; // bytes of a file in one event
const MAX_FILE = 20 << 20; // bytes of a file: the server's limit file_bytes
const DONE = Promise.resolve();

const isHighSurrogate = (unit) => unit >= 0xd800 && unit < 0xdc00;

/** Throw it to fail the task: callers read the sentence. Any other error is only in the operator's log. */
export class Failed extends Error {
    constructor(message, options) {
        super(message, options);
        this.name = 'Failed';
    }
}

/** Throw it to refuse the message: callers read the sentence. The task ends as rejected. */
export class Rejected extends Error {
    constructor(message, options) {
        super(message, options);
        this.name = 'Rejected';
    }
}

/** Ends the function while a question waits for its answer. Code that catches it cannot send anything more. */
export class Suspended extends Error {
    constructor() {
        super('the function ends here and runs again when the answer is there: do not catch this');
        this.name = 'Suspended';
    }
}

/** An error of a step that was stored, with its class if that is one of JavaScript's own. */
function makeError(name, message) {
    const classes = { Failed, Rejected, TypeError, RangeError, SyntaxError, ReferenceError };
    const error = new (classes[name] ?? Error)(message);
    error.name = name;
    return error;
}

const status = (state, parts) => ({ statusUpdate: { status: { state, ...(parts ? { message: { role: 'ROLE_AGENT', parts } } : {}) } } });

/** Events that the server counts, too: internal ones, and progress. */
export function isCounted(event) {
    if (typeof event.kind === 'string' && event.kind.startsWith('internal:')) return event.kind !== 'internal:message';
    const { state, message } = (event.statusUpdate ?? (event.kind === 'status-update' ? event : {})).status ?? {};
    return (state === 'TASK_STATE_WORKING' || state === 'working') && message != null;
}

/** As the server stores them: neighbouring texts are one part. */
function joinTexts(parts) {
    const joined = [];
    for (const part of parts) {
        const last = joined[joined.length - 1];
        if ('text' in part && last && 'text' in last && isDeepStrictEqual(part.metadata, last.metadata)) joined[joined.length - 1] = { ...last, text: last.text + part.text };
        else joined.push(part);
    }
    return joined;
}

function isStart(parts, whole) {
    if (parts.length > whole.length || parts.length === 0) return parts.length === 0;
    const last = parts[parts.length - 1], same = whole[parts.length - 1];
    const starts = isDeepStrictEqual(last, same) || ('text' in last && String(same.text ?? '').startsWith(last.text) && isDeepStrictEqual(last.metadata, same.metadata));
    return starts && isDeepStrictEqual(parts.slice(0, -1), whole.slice(0, parts.length - 1));
}

/** One part, or several for a file that is too large for a line: the server joins those that have a number. */
function partsOfFile(part, content) {
    if (content.length > MAX_FILE) throw new RangeError(`${part.filename} has ${content.length} bytes; the limit file_bytes is ${MAX_FILE}: send its URL`);
    if (content.length <= FILE_CHUNK) return [{ ...part, raw: content.toString('base64') }];
    const parts = [];
    for (let i = 0; i < content.length; i += FILE_CHUNK) parts.push({ ...part, raw: content.toString('base64', i, i + FILE_CHUNK), metadata: { chunk: parts.length } });
    return parts;
}

/** `before` is what the server has; it leaves out the bytes of larger files. */
function isSameArtifact(before, parts) {
    const size = before.length === 1 ? before[0].metadata?.omittedBytes : undefined;
    if (size === undefined) return isDeepStrictEqual(before, parts);
    return before[0].filename === parts[0].filename && size === parts.reduce((sum, p) => sum + (p.raw ?? '').length, 0);
}

const TYPES = { '.txt': 'text/plain', '.md': 'text/markdown', '.html': 'text/html', '.css': 'text/css', '.csv': 'text/csv', '.js': 'text/javascript',
    '.json': 'application/json', '.pdf': 'application/pdf', '.zip': 'application/zip', '.xml': 'application/xml', '.png': 'image/png',
    '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg', '.gif': 'image/gif', '.webp': 'image/webp', '.svg': 'image/svg+xml', '.mp3': 'audio/mpeg',
    '.wav': 'audio/wav', '.mp4': 'video/mp4' };

/**
 * The streamed text of a segment: one artifact. `before` is what the server has of it from a run that was lost; text that is
 * the same is not sent again, and the artifact restarts where it is not.
 */
class AnswerText {
    #isOpen = false;
    #same = 0;

    constructor(id, before) {
        this.id = id;
        this.before = before;
    }

    /** The events that add text. */
    add(text) {
        let append = this.#isOpen;
        if (this.before !== null) {
            const rest = this.before.slice(this.#same);
            if (rest.startsWith(text)) {
                this.#same += text.length;
                this.#isOpen = true;
                return [];
            }
            if (text.startsWith(rest)) [text, append] = [text.slice(rest.length), true];
            else [text, append] = [this.before.slice(0, this.#same) + text, false];
            this.before = null;
        }
        const updates = [];
        for (let i = 0; i < text.length; append = this.#isOpen = true) {
            const end = i + CHUNK < text.length && isHighSurrogate(text.charCodeAt(i + CHUNK - 1)) ? i + CHUNK + 1 : i + CHUNK;
            updates.push(this.#update(text.slice(i, end), append, false));
            i = end;
        }
        return updates;
    }

    /** The event that closes the artifact, or null. */
    end() {
        const { before } = this, wasOpen = this.#isOpen;
        this.before = null;
        this.#isOpen = false;
        if (before !== null && this.#same < before.length) return this.#update(before.slice(0, this.#same), false, true);
        return wasOpen || before ? this.#update('', true, true) : null;
    }

    #update(text, append, lastChunk) {
        return { artifactUpdate: { artifact: { artifactId: this.id, parts: [{ text }] }, append, lastChunk } };
    }
}

/** A call of one of the agent's own tools: call succeeded() or failed() when it is over. */
export class ToolCall {
    #send;
    #isOver = false;

    constructor(id, name, args, send) {
        Object.assign(this, { id, name, arguments: args });
        this.#send = send;
        send({ kind: 'internal:tool-start', toolCallId: id, toolName: name, arguments: args });
    }

    succeeded(result = null) {
        return this.#end({ success: true, result });
    }

    /** Reports a failure; callers may read the sentence. */
    failed(error) {
        return this.#end({ success: false, error: String(error) });
    }

    #end(how) {
        if (this.#isOver) throw new Error(`the call of ${this.name} has its result already`);
        this.#isOver = true;
        return this.#send({ kind: 'internal:tool-complete', toolCallId: this.id, ...how });
    }
}

/** One turn of the conversation. See docs/agents/javascript.md. */
export class Turn {
    #sink;
    #journal;
    #task;
    #isResumed;
    #inbox;
    #arrived = [];
    #index = -1;
    #segment;
    #text;
    #before; // artifacts of the open segment that a lost run has sent, by id
    #counts; // of this segment: polls, events, calls, artifacts
    #eventsBefore;
    #emitted; // events of the open segment that were sent behind the journal
    #shown; // parts of artifacts of emit(), as this run has made them, by id
    #writes = 0;
    #isOver = false;
    #isSuspended = false; // a question is being asked
    #hasAsked = false;

    /** sink: {emit(event), drained(), isFull, journal(makeText)} */
    constructor(params, sink, signal) {
        this.#sink = sink;
        this.#journal = new Journal(params);
        this.#task = params.currentTask ?? {};
        this.#isResumed = Boolean(params.isResumed);
        this.#emitted = params.emitted ?? 0;
        const received = this.#journal.idsReceived();
        this.#inbox = [...this.#journal.unread, ...(params.accepted ?? []).filter((m) => !received.has(m.messageId))];
        this.signal = signal;
        this.message = new Message(this.#journal.message);
        this.history = this.#journal.history.map((m) => new Message(m));
        this.metadata = this.#journal.metadata;
        this.tools = toolsOf(this.#journal.tools);
        this.taskId = params.task ?? '';
        this.contextId = params.context ?? '';
        this.thread = params.thread ?? '';
        this.principal = params.principal ?? '';
        this.tenant = params.tenant ?? '';
        this.acceptedOutputModes = [...(params.acceptedOutputModes ?? [])];
        this.state = this.#createState(this.metadata['dragoman:state']);
        this.#nextSegment();
        if (this.#task.status?.state !== 'TASK_STATE_WORKING') sink.emit(status('TASK_STATE_WORKING'));
    }

    // ---- what the caller wrote ----

    get text() {
        return this.message.text;
    }

    get files() {
        return this.message.files;
    }

    get instructions() {
        return String(this.metadata['dragoman:instructions'] ?? '');
    }

    /** The conversation and the message as messages of Chat Completions: role and content, texts only. */
    chat() {
        const messages = this.instructions ? [{ role: 'system', content: this.instructions }] : [];
        for (const m of [...this.history, this.message])
            if (m.text) messages.push({ role: m.role === 'agent' ? 'assistant' : 'user', content: m.text });
        return messages;
    }

    /** Messages that the caller sent to this turn while it works (steering), since the last call. Recorded for replay. */
    newMessages() {
        this.#check();
        const segment = this.#segment, poll = this.#counts.polls++;
        if (poll < segment.polls) return (segment.received.get(poll) ?? []).map((m) => new Message(m)); // as in the run before
        const found = this.#inbox.splice(0);
        segment.polls = this.#counts.polls;
        if (found.length) segment.received.set(poll, found);
        return found.map((m) => new Message(m));
    }

    /** Resolves when newMessages() has one. */
    async waitForMessage() {
        this.#check();
        while (this.#inbox.length === 0 && this.#counts.polls >= this.#segment.polls) {
            this.signal.throwIfAborted();
            await new Promise((done, fail) => {
                const onAbort = () => fail(this.signal.reason);
                this.signal.addEventListener('abort', onAbort, { once: true });
                this.#arrived.push(() => {
                    this.signal.removeEventListener('abort', onAbort);
                    done();
                });
            });
        }
    }

    // ---- what the agent sends ----

    /** Adds text to the answer. Callers see it at once. */
    write(text) {
        if (typeof text !== 'string') throw new TypeError(`expected text, got ${text === null ? 'null' : typeof text}: turn.data() sends other values`);
        this.#check();
        for (const event of this.#isReplaying ? [] : this.#text.add(text)) this.#sink.emit(event);
        return this.#sent();
    }

    /** Shows what the agent is doing. It is not part of the answer. */
    progress(text) {
        return this.#event(status('TASK_STATE_WORKING', [{ data: { type: 'status-indicator', text: String(text), displayAs: 'loading' } }]));
    }

    /** Adds text to the reasoning that clients may show apart from the answer. */
    reasoning(text) {
        return this.#event({ kind: 'internal:reasoning', text: String(text) });
    }

    /**
     * Reports a call of one of the agent's own tools. With a function: calls it, reports what it returns or that it failed, and
     * returns its result. Without: returns a ToolCall.
     */
    toolCall(name, args = {}, fn) {
        const call = new ToolCall(this.#newCallId(), name, args, (event) => this.#event(event));
        return fn ? this.#runTool(call, fn) : call;
    }

    async #runTool(call, fn) {
        let result;
        try {
            result = await fn(call.arguments);
        } catch (error) {
            if (!(error instanceof Suspended) && !this.#isOver && !this.#isSuspended)
                call.failed(error instanceof Failed ? error.message : this.signal?.aborted ? 'canceled' : `${call.name} failed`);
            throw error;
        }
        await call.succeeded(result);
        return result;
    }

    /** Reports the tokens that a model used. */
    usage({ inputTokens = 0, outputTokens = 0, totalTokens = inputTokens + outputTokens, ...more } = {}) {
        return this.#event({ kind: 'internal:usage', value: { inputTokens, outputTokens, totalTokens, ...more } });
    }

    /** Sends a custom event to AG-UI clients, a data part to AI SDK clients. */
    custom(name, value) {
        return this.#event({ kind: 'internal:custom', name, value });
    }

    /** Sends a file: its content (bytes, or a string as text), or a URL. */
    file(name, content, { url, mediaType } = {}) {
        if ((content == null) === (url == null)) throw new TypeError('turn.file: expected content or url, and not both');
        const part = { filename: name, mediaType: mediaType ?? TYPES[extname(name).toLowerCase()] ?? 'application/octet-stream' };
        if (url != null) part.url = String(url);
        else return this.#artifact('file', name, partsOfFile(part, Buffer.from(content)));
        return this.#artifact('file', name, [part]);
    }

    /** Sends a JSON value as an artifact. */
    data(value, name = 'data') {
        return this.#artifact('data', name, [{ data: requireJson(value, 'data') }]);
    }

    /** Sends any event, in the form that docs/agents.md describes for programs. Not sent again when the function runs again. */
    emit(event) {
        return event.artifactUpdate && typeof event.artifactUpdate === 'object' ? this.#emittedArtifact(event) : this.#event(event);
    }

    /**
     * An artifact of emit(). Parts that a lost run has sent are not sent again; if this run makes other parts, the artifact
     * starts again.
     */
    #emittedArtifact(event) {
        const { artifactUpdate: update } = event, { artifact = {} } = update, id = String(artifact.artifactId), before = this.#before.get(id);
        this.#check();
        if (!before || this.#isReplaying) return this.#event(event);
        const parts = joinTexts([...(update.append ? this.#shown.get(id) ?? [] : []), ...(artifact.parts ?? [])]);
        this.#shown.set(id, parts);
        if (!isStart(parts, before.parts ?? [])) {
            this.#before.delete(id);
            this.#sink.emit({ artifactUpdate: { ...update, append: false, artifact: { ...artifact, parts } } });
        }
        return this.#sent();
    }

    /** Sends the whole shared state. Setting a member of `state` sends only that member. */
    setState(value) {
        const members = { ...requireJson(value, 'state') };
        const sent = this.#event({ kind: 'internal:state', value: members });
        this.state = this.#createState(members);
        return sent;
    }

    #createState(value) {
        const members = value && typeof value === 'object' && !Array.isArray(value) ? { ...value } : {};
        return new Proxy(members, {
            set: (target, name, member) => {
                if (typeof name !== 'string') return false;
                this.#event({ kind: 'internal:state', name, value: requireJson(member, `state.${name}`) });
                target[name] = member;
                return true;
            },
            deleteProperty: (target, name) => {
                if (!(name in target)) return true;
                delete target[name];
                this.#event({ kind: 'internal:state', value: { ...target } });
                return true;
            },
        });
    }

    // ---- questions ----

    /** Asks the caller and returns the answer. The function ends here; it runs again from the top when the answer is there. */
    async ask(question, { choices, schema } = {}) {
        const parts = [{ text: question }];
        if (choices || schema) parts.push({ data: { type: 'question', text: question, ...(choices ? { choices: [...choices] } : {}), ...(schema ? { schema } : {}) } });
        return this.#ask(question, 'TASK_STATE_INPUT_REQUIRED', parts);
    }

    /** Asks whether a tool may be called. Asks again until the answer is a decision. */
    async approve(tool, args = {}, { question = `May ${tool} be called? Answer yes or no.` } = {}) {
        for (;;) {
            const request = { type: 'approval-request', id: this.#questionId(), tool, arguments: args };
            const { approved } = await this.#ask(question, 'TASK_STATE_INPUT_REQUIRED', [{ text: question }, { data: request }]);
            if (approved !== null) return approved;
        }
    }

    /** Asks the caller to sign in at a URL; any message is the answer. */
    async signIn(url, reason = 'Please sign in.') {
        return this.#ask(reason, 'TASK_STATE_AUTH_REQUIRED', [{ text: reason }, { data: { type: 'auth-request', url, reason } }]);
    }

    /** Lets the caller run one of its tools (see `tools`) and returns the output. */
    async callTool(name, args = {}) {
        const id = this.#questionId();
        const answer = await this.#ask(`tool ${name} ${encode(args)}`, 'TASK_STATE_INPUT_REQUIRED', [{ data: { tool_calls: [{ call_id: id, name, arguments: args }] } }]);
        return answer.resultOf(id);
    }

    #questionId() {
        return `call-${this.taskId || 'turn'}-${this.#index + 1}`;
    }

    async #ask(key, state, parts) {
        this.#check();
        const segment = this.#segment, n = this.#index + 1;
        if (segment.question !== null && segment.question !== key)
            throw new NotDeterministic(`question ${n} was ${JSON.stringify(segment.question)} when the function ran before, and is now ${JSON.stringify(key)}`);
        if (segment.answer !== null) {
            const missing = segment.stepNotRequested();
            if (missing !== undefined) throw new NotDeterministic(`before question ${n} (${JSON.stringify(key)}) the step ${JSON.stringify(missing)} was run, and is not run now`);
            const answer = new Answer(new Message(segment.answer));
            this.#nextSegment();
            return answer;
        }
        this.#endText();
        this.#isSuspended = true; // another question at the same time is asked in the next run
        if (segment.question === null) {
            segment.question = key;
            try {
                await this.#store();
            } catch (error) {
                segment.question = null;
                this.#isSuspended = false;
                throw error;
            }
        }
        this.#sink.emit(status(state, parts));
        this.#hasAsked = this.#isOver = true;
        throw new Suspended();
    }

    // ---- results that are stored ----

    /**
     * Calls the function once and stores its result, which must be JSON. When the agent's function runs again, the stored result
     * is returned, or the error is thrown, and the function is not called.
     */
    async step(name, fn, ...args) {
        this.#check();
        const segment = this.#segment;
        let step = segment.findStep(name);
        if (step?.length > 3) throw makeError(...step[3]);
        if (step?.length > 2) return structuredClone(step[2]);
        if (!step) {
            if (this.#isReplaying)
                throw new NotDeterministic(`the step ${JSON.stringify(name)} is run before question ${this.#index + 1} (${JSON.stringify(segment.question)}), and was not run there before`);
            step = segment.addStep(name);
        }
        let value;
        try {
            value = (await fn(...args)) ?? null;
        } catch (error) {
            // stored with the next question or step: the function may go on after the error, and must do so again
            if (!(error instanceof Suspended) && !this.signal.aborted) step.push(null, [String(error?.name ?? 'Error'), String(error?.message ?? error).slice(0, 10000)]);
            throw error;
        }
        try {
            requireJson(value, 'result');
        } catch (error) {
            throw new TypeError(`the result of the step ${JSON.stringify(name)} cannot be stored: ${error.message}`);
        }
        step.push(structuredClone(value));
        await this.#store();
        return value;
    }

    // ---- inside ----

    /** The output of this segment was sent before: its question has an answer. */
    get #isReplaying() {
        return this.#segment.answer !== null;
    }

    #nextSegment() {
        this.#segment = this.#journal.segments[++this.#index];
        this.#counts = { polls: 0, events: 0, calls: 0, artifacts: 0 };
        // Only a run that was lost has sent something of the open segment before.
        const artifacts = this.#isResumed && !this.#isReplaying ? this.#task.artifacts ?? [] : [];
        this.#before = new Map(artifacts.map((a) => [a.artifactId, a]));
        this.#shown = new Map();
        this.#eventsBefore = this.#segment.events + (this.#isReplaying ? 0 : this.#emitted);
        const id = this.#index === 0 ? 'answer' : `answer-${this.#index + 1}`, before = this.#before.get(id);
        this.#text = new AnswerText(id, before ? (before.parts ?? []).map((p) => p.text ?? '').join('') : null);
    }

    async #store() {
        const segment = this.#segment, counts = this.#counts, eventsBefore = this.#eventsBefore;
        await this.#sink.journal(() => {
            // the server counts from here on: also what a lost run has sent and this one has not reached yet
            segment.events = Math.max(segment.events, counts.events, eventsBefore);
            segment.polls = Math.max(segment.polls, counts.polls);
            return this.#journal.encode(this.#inbox);
        });
    }

    #check() {
        if (this.#isSuspended) throw new Suspended();
        this.signal.throwIfAborted();
        if (this.#isOver) throw new Error('the turn is over: nothing can be sent any more');
    }

    #event(event) {
        this.#check();
        const counted = isCounted(event);
        this.#counts.events += counted;
        if (!this.#isReplaying && !(counted && this.#counts.events <= this.#eventsBefore)) this.#sink.emit(event);
        return this.#sent();
    }

    #artifact(kind, name, parts) {
        this.#check();
        const artifactId = `${kind}-${this.#index + 1}-${++this.#counts.artifacts}`;
        const before = this.#before.get(artifactId);
        if (this.#isReplaying || (before && isSameArtifact(before.parts ?? [], parts))) return this.#sent();
        parts.forEach((part, i) => this.#sink.emit({ artifactUpdate: { artifact: { artifactId, name, parts: [part] }, append: i > 0, lastChunk: i === parts.length - 1 } }));
        return this.#sent();
    }

    /** Await it, so that a fast agent waits for a slow reader; the event is sent in any case. */
    #sent() {
        if (this.#sink.isFull) return this.#sink.drained();
        return ++this.#writes % YIELD_EVERY === 0 ? new Promise((done) => setImmediate(done)) : DONE;
    }

    #newCallId() {
        const key = `${this.taskId}/${this.message.id}/${this.#index}/${++this.#counts.calls}`; // the same one when the function runs again
        return `call-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
    }

    #endText() {
        const event = this.#isReplaying ? null : this.#text.end();
        if (event) this.#sink.emit(event);
    }

    // ---- for the runner, see functions.js and testing.js ----

    /** A message of the caller while the turn works. */
    static receive(turn, message) {
        turn.#inbox.push(message);
        for (const done of turn.#arrived.splice(0)) done();
    }

    static hasAsked(turn) {
        return turn.#hasAsked;
    }

    /** The function has ended: closes the text. `state` and `text` are the end that callers read, if it was not a normal one. */
    static finish(turn, state, text) {
        if (!state && !turn.#isOver && turn.#isReplaying && !turn.signal.aborted)
            throw new NotDeterministic(`question ${turn.#index + 1} was ${JSON.stringify(turn.#segment.question)} when the function ran before, and has not been asked now when the function ended`);
        if (!turn.#isOver) turn.#endText();
        if (!turn.#isOver && state) turn.#sink.emit(status(state, [{ text }]));
        turn.#isOver = true;
    }
}
