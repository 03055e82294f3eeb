// What is stored of a turn that asks questions, so that its function can run again from the top. The format is that of
// python/dragoman/_journal.py:
//
//     {"v": 1, "start": {message, history, metadata, tools}, "by": "<messageId of the run that wrote it>", "segments": [
//         {"question": "Which color?", "answer": {message}, "steps": [["name", 0, <value>], ["name", 1], ...],
//          "polls": 3, "received": {"2": [message, ...]}, "events": 4}, ...], "unread": [message, ...]}
//
// A segment is the part of the function between two questions; the last one is open: it has no answer yet. When the function
// runs again, answers are returned in order. Within a segment the n-th step of a name gets the n-th result of that name, so
// steps may run at the same time. All output of a segment that has an answer was sent before: it is not sent again. `events`
// counts the progress, tool calls and the like of the open segment that were sent before the journal was stored; the server
// counts the events after it.
import { encode } from './rpc.js';
import { findMessage } from './view.js';

const VERSION = 1;
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024; // the server's limit journal_bytes
const MAX_INLINE_BYTES = 256 * 1024; // longer values of the start are found in the task's history, or are those of the new run

/** The function did something else when it ran again. The message names both. */
export class NotDeterministic extends Error {
    constructor(what) {
        super(`the agent is not deterministic: ${what}. The function of an agent that asks a question runs again from the top when the answer `
            + 'arrives, and must then do the same as before. Wrap everything that may change (calls of a model, the time, random numbers) in '
            + 'turn.step(name, function), which stores the result');
        this.name = 'NotDeterministic';
    }
}

/** The part of the function up to a question. `answer` is null in the open one. */
class Segment {
    #steps = new Map(); // by name: [name, n] was requested, [name, n, value] has its result
    #requested = new Map(); // in this run

    constructor(stored = {}, lists = []) {
        this.question = stored.question ?? null;
        this.answer = stored.answer ? unpack(stored.answer, lists) : null;
        this.polls = stored.polls ?? 0;
        this.received = new Map(Object.entries(stored.received ?? {}).map(([poll, messages]) => [Number(poll), messages.map((m) => unpack(m, lists))]));
        this.events = stored.events ?? 0;
        for (const step of stored.steps ?? []) this.#stepsOf(step[0]).push([...step]);
    }

    #stepsOf(name) {
        if (!this.#steps.has(name)) this.#steps.set(name, []);
        return this.#steps.get(name);
    }

    /** The next step of this name, or undefined if it was never requested before. */
    findStep(name) {
        const n = this.#requested.get(name) ?? 0;
        this.#requested.set(name, n + 1);
        return this.#steps.get(name)?.[n];
    }

    addStep(name) {
        const stored = this.#stepsOf(name), step = [name, stored.length];
        stored.push(step);
        return step;
    }

    /** A step of the run before that this run has not requested. */
    stepNotRequested() {
        for (const [name, steps] of this.#steps) if ((this.#requested.get(name) ?? 0) < steps.length) return name;
        return undefined;
    }

    toJSON() {
        const steps = [...this.#steps.values()].flat(), json = steps.length ? { steps } : {};
        if (this.question !== null) json.question = this.question;
        if (this.answer) json.answer = pack(this.answer);
        if (this.polls) json.polls = this.polls;
        if (this.events) json.events = this.events;
        if (this.received.size) json.received = Object.fromEntries([...this.received].map(([poll, messages]) => [poll, packList(messages)]));
        return json;
    }
}

/** The segments of a turn, and the message that started it. */
export class Journal {
    #by;
    #start = null; // encoded

    constructor({ journal, currentTask, history = [], accepted = [], message, metadata, tools }) {
        const stored = parse(journal), start = stored.start ?? {};
        const lists = [history, currentTask?.history ?? [], accepted, [message]];
        this.message = start.message ? unpack(start.message, lists) : message;
        // the oldest messages may be too old for the history of this run: it starts later then
        this.history = start.history ? start.history.map((m) => unpack(m, lists, false)).filter(Boolean) : [...history];
        this.metadata = start.metadata ?? { ...metadata };
        this.tools = start.tools ?? tools ?? [];
        this.#by = String(message.messageId ?? '');
        this.segments = (stored.segments ?? []).map((s) => new Segment(s, lists));
        if (this.segments.length === 0) this.segments.push(new Segment());
        this.unread = (stored.unread ?? []).map((m) => unpack(m, lists));
        const last = this.segments[this.segments.length - 1];
        // A question that another run stored was asked: this run's message is the answer. One that this run's message led
        // to may not have been sent: the process ended in between.
        if (last.question !== null && stored.by !== this.#by) last.answer ??= message;
        if (last.answer !== null) this.segments.push(new Segment());
    }

    /** Ids of all messages that the function has received or that are unread. */
    idsReceived() {
        const lists = [...this.segments.flatMap((s) => [...s.received.values()]), this.unread];
        return new Set(lists.flat().map((m) => m.messageId));
    }

    encode(unread) {
        this.#start ??= encode({ message: pack(this.message), history: packList(this.history), metadata: pack(this.metadata), tools: pack(this.tools) });
        const text = `{"v":${VERSION},"by":${encode(this.#by)},"start":${this.#start},"unread":${encode(packList(unread))},"segments":${encode(this.segments)}}`;
        if (Buffer.byteLength(text) > MAX_JOURNAL_BYTES)
            throw new RangeError(`the answers and the results of steps of this turn have more than ${MAX_JOURNAL_BYTES} bytes (limit journal_bytes): return less from turn.step()`);
        return text;
    }
}

function parse(text) {
    if (typeof text !== 'string' || text === '') return {};
    let stored = null;
    try {
        stored = JSON.parse(text);
    } catch {
        // reported below
    }
    if (stored?.v !== VERSION) throw new Error('the journal of this task has an unknown format: another program wrote it');
    return stored;
}

/** The value, or how to find it: a large message by its id, other large values not at all. */
function pack(value, limit = MAX_INLINE_BYTES) {
    if (Buffer.byteLength(encode(value)) <= limit) return value;
    return value && typeof value === 'object' && 'messageId' in value ? { messageId: value.messageId, isStored: true } : null;
}

/** The messages; the oldest ones only by their ids if all together are large. */
function packList(messages) {
    let room = MAX_INLINE_BYTES;
    return [...messages].reverse().map((message) => {
        room -= Buffer.byteLength(encode(message));
        return pack(message, room >= 0 ? MAX_INLINE_BYTES : 0);
    }).filter(Boolean).reverse();
}

function unpack(value, lists, isRequired = true) {
    if (!value?.isStored) return value;
    const found = findMessage(value.messageId, lists);
    if (!found && isRequired) throw new Error(`the message ${value.messageId} of this turn is not in the history of its task`);
    return found;
}
