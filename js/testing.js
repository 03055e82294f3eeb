// Runs an agent in a test, without a server.
//
//     import { runAgent } from 'dragoman/testing';
//     const answer = await runAgent(main, 'hello');
//     assert.equal(answer.text, 'You wrote: hello');
import { encode } from './rpc.js';
import { runTurn } from './functions.js';
import { Turn, isCounted } from './turn.js';

let count = 0;
const newId = (what) => `${what}-${++count}`;

const messageOf = (value, ids) => {
    const raw = typeof value === 'string' ? { parts: [{ text: value }] } : value;
    return { messageId: newId('m'), role: 'ROLE_USER', ...ids, ...raw };
};

/** A conversation with an agent: send() starts a turn or answers a question. */
export class Conversation {
    #fn;
    #journal = null;
    #emitted = 0; // events behind the journal, as the server counts them
    #message = null;
    #messages = []; // of the conversation
    #turn = null;
    #controller = null;

    /** options: {metadata, tools, history, principal, tenant}: what the server would send */
    constructor(fn, options = {}) {
        this.#fn = fn;
        this.options = options;
        this.contextId = newId('context');
        this.task = null;
        this.#messages = (options.history ?? []).map((m) => messageOf(m));
    }

    /** Sends a text or an A2A message, and returns what the agent emits until its turn ends. */
    async send(message) {
        const isAnswer = ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'].includes(this.task?.status.state);
        if (!isAnswer) {
            this.task = { id: newId('task'), contextId: this.contextId, status: { state: 'TASK_STATE_SUBMITTED' }, artifacts: [], history: [] };
            this.#journal = null;
            this.#emitted = 0;
        }
        this.#message = messageOf(message, { taskId: this.task.id, contextId: this.contextId });
        return this.#run(false);
    }

    /** Runs the last message again, as the server does after a worker was lost. */
    resume() {
        return this.#run(true);
    }

    /** Sends a message to the turn that works. */
    steer(message) {
        if (this.#turn) Turn.receive(this.#turn, messageOf(message, { taskId: this.task.id, contextId: this.contextId }));
    }

    cancel() {
        this.#controller?.abort(new DOMException('the run was canceled', 'AbortError'));
    }

    async #run(isResumed) {
        const { task } = this, result = new Result(task, isResumed);
        this.#controller = new AbortController();
        const params = {
            run: newId('run'), agent: 'test', thread: this.contextId, task: task.id, context: this.contextId, isResumed, attempt: isResumed ? 2 : 1,
            acceptedOutputModes: [], ...this.options, metadata: this.options.metadata ?? {}, tools: this.options.tools ?? [], message: this.#message,
            history: [...this.#messages], accepted: [], currentTask: structuredClone(task), journal: this.#journal, emitted: this.#emitted,
        };
        try {
            this.#turn = new Turn(params, {
                emit: (event) => { // values that are not JSON fail here as well
                    result.add(JSON.parse(encode(event)));
                    this.#emitted += isCounted(event);
                },
                drained: async () => {},
                isFull: false,
                journal: async (makeText) => {
                    this.#journal = makeText();
                    this.#emitted = 0;
                },
            }, this.#controller.signal);
            result.status = await runTurn(this.#fn, this.#turn);
            if (result.status === 'completed' && !result.isFinal) task.status = { state: 'TASK_STATE_COMPLETED' };
        } catch (error) {
            result.error = error;
            result.status = this.#controller.signal.aborted ? 'cancelled' : 'failed';
            task.status = { state: this.#controller.signal.aborted ? 'TASK_STATE_CANCELED' : 'TASK_STATE_FAILED' };
        } finally {
            this.#turn = null;
        }
        this.#remember(result);
        return result;
    }

    #remember(result) {
        if (this.#messages[this.#messages.length - 1] !== this.#message) this.#messages.push(this.#message);
        if (result.text || result.question) this.#messages.push({ messageId: newId('m'), role: 'ROLE_AGENT', parts: [{ text: result.question ?? result.text }] });
    }
}

/** What an agent emitted in one turn. */
class Result {
    #task;

    constructor(task) {
        this.#task = task;
        this.events = [];
        this.status = '';
        this.error = null; // what the function threw
        this.isFinal = false;
    }

    add(event) {
        this.events.push(event);
        const { statusUpdate, artifactUpdate } = event;
        if (statusUpdate) this.#task.status = statusUpdate.status;
        if (statusUpdate && /COMPLETED|FAILED|REJECTED|CANCELED/.test(statusUpdate.status.state)) this.isFinal = true;
        if (artifactUpdate) this.#addArtifact(artifactUpdate);
    }

    #addArtifact({ artifact, append }) {
        const list = this.#task.artifacts, i = list.findIndex((a) => a.artifactId === artifact.artifactId);
        if (i < 0) list.push(structuredClone(artifact));
        else if (!append) list[i] = structuredClone(artifact);
        else for (const part of artifact.parts) {
            const last = list[i].parts[list[i].parts.length - 1];
            if (typeof part.text === 'string' && typeof last?.text === 'string') last.text += part.text;
            else if (part.metadata?.chunk > 0) last.raw += part.raw;
            else list[i].parts.push(part);
        }
    }

    #updates() {
        return this.events.flatMap((e) => (e.artifactUpdate ? [e.artifactUpdate] : []));
    }

    /** The text of this turn. */
    get text() {
        const texts = new Map();
        for (const { artifact, append } of this.#updates())
            if (artifact.parts.every((p) => typeof p.text === 'string'))
                texts.set(artifact.artifactId, (append ? texts.get(artifact.artifactId) ?? '' : '') + artifact.parts.map((p) => p.text).join(''));
        return [...texts.values()].join('');
    }

    /** The state of the task: "TASK_STATE_COMPLETED", ... */
    get state() {
        return this.#task.status.state;
    }

    #statusParts() {
        return this.#task.status.message?.parts ?? [];
    }

    /** The text of the question that waits for an answer, or null. */
    get question() {
        return /REQUIRED/.test(this.state) ? this.#statusParts().map((p) => p.text ?? '').join('') : null;
    }

    /** The sentence of a task that failed or was rejected, or null. */
    get reason() {
        return /FAILED|REJECTED/.test(this.state) ? this.#statusParts().map((p) => p.text ?? '').join('') || null : null;
    }

    /** Files: {name, mediaType, content (a Buffer) or url}. */
    get files() {
        const files = [];
        for (const part of this.#updates().flatMap(({ artifact }) => artifact.parts).filter((p) => 'raw' in p || 'url' in p)) {
            if (part.metadata?.chunk > 0) files[files.length - 1].raw += part.raw;
            else files.push({ ...part });
        }
        return files.map((p) => ({ name: p.filename, mediaType: p.mediaType, content: p.raw === undefined ? null : Buffer.from(p.raw, 'base64'), url: p.url ?? null }));
    }

    /** Values of data artifacts. */
    get data() {
        return this.#updates().flatMap(({ artifact }) => artifact.parts).filter((p) => 'data' in p).map((p) => p.data);
    }

    /** Texts of progress(). */
    get progress() {
        return this.events.flatMap((e) => e.statusUpdate?.status.message?.parts ?? []).filter((p) => p.data?.type === 'status-indicator').map((p) => p.data.text);
    }

    #internal(kind) {
        return this.events.filter((e) => e.kind === `internal:${kind}`);
    }

    /** Calls of the agent's own tools: {id, name, arguments, success, result or error}. */
    get toolCalls() {
        return this.#internal('tool-start').map((start) => {
            const end = this.#internal('tool-complete').find((e) => e.toolCallId === start.toolCallId);
            return { id: start.toolCallId, name: start.toolName, arguments: start.arguments, success: end?.success ?? null, result: end?.result ?? null, error: end?.error ?? null };
        });
    }

    get reasoning() {
        return this.#internal('reasoning').map((e) => e.text).join('');
    }

    get usage() {
        return this.#internal('usage').map((e) => e.value);
    }
}

/** One turn of a new conversation. Throws what the function throws. */
export async function runAgent(fn, message, options) {
    const result = await new Conversation(fn, options).send(message);
    if (result.error) throw result.error;
    return result;
}
