// For authors of LangGraph graphs: A2A events from inside a node, and the types of `a2a_inbox` and `a2a_outbox`.
//
//     import { emitData } from 'dragoman/langgraph';
//     const node = (state, config) => { emitData(config.writer, { rows: 3 }, { name: 'analysis' }); ... };
//
// The functions only call `writer`, so a graph that uses them also runs in plain LangGraph. docs/agents/langgraph.md describes
// what the caller sees.
import { flatMessage, isChunk, isMessage } from './messages.js';
import { requireJson } from './values.js';

const FILE_CHUNK = 4 << 20; // characters of base64 in one event
const MAX_FILE_BYTES = 20 << 20; // the server's limit file_bytes

// config.writer is not set if the graph is not streamed with the mode `custom`
const send = (writer, value) => {
    if (writer === undefined || writer === null) return;
    if (typeof writer !== 'function') throw new TypeError(`expected the writer of the node's configuration, config.writer, got ${typeof writer}`);
    writer({ a2a: value });
};

function requireText(where, value) {
    if (value !== undefined && value !== null && typeof value !== 'string') throw new TypeError(`${where}: expected a string, got ${typeof value}`);
}

const artifact = (kind, { name, append = false, isLastChunk = true }, content) => {
    requireText(`the name of a ${kind} artifact`, name);
    return { type: 'artifact', kind, name: name || kind, ...content, append: Boolean(append), is_last_chunk: Boolean(isLastChunk) };
};

/** Sends a file artifact. Its content is either at `url` or in `base64`. */
export function emitFile(writer, options = {}) {
    const { url, base64, mimeType } = options;
    if ((url == null) === (base64 == null)) throw new TypeError(`emitFile: expected exactly one of url and base64, got ${url == null ? 'neither' : 'both'}`);
    requireText('emitFile: url', url);
    requireText('emitFile: base64', base64);
    requireText('emitFile: mimeType', mimeType);
    if (!mimeType) throw new TypeError('emitFile: missing mimeType');
    if (url != null) {
        send(writer, artifact('file', options, { mime_type: mimeType, url }));
        return;
    }
    const pieces = piecesOf(base64), { append = false, isLastChunk = true } = options;
    for (const [i, piece] of pieces.entries())
        send(writer, artifact('file', { ...options, append: append || i > 0, isLastChunk: isLastChunk && i === pieces.length - 1 }, { mime_type: mimeType, base64: piece }));
}

/** A file that is too large for one event is sent in several; the server joins them. */
function piecesOf(base64) {
    if (base64.length <= FILE_CHUNK) return [base64];
    const text = base64.replace(/\s+/g, ''), pieces = [];
    const size = Math.floor(text.length / 4) * 3;
    if (size > MAX_FILE_BYTES + 2) throw new RangeError(`emitFile: the file has ${size} bytes; the limit file_bytes is ${MAX_FILE_BYTES}: send its URL`);
    for (let i = 0; i < text.length; i += FILE_CHUNK) pieces.push(text.slice(i, i + FILE_CHUNK));
    return pieces;
}

/** Sends a data artifact. A TypeError names the place of a value that is not JSON. */
export function emitData(writer, data, options = {}) {
    send(writer, artifact('data', options, { data: requireJson(data, 'data') }));
}

/** Shows an AIMessage, which is stored in the history, or an AIMessageChunk, which is only streamed. */
export function emitMessage(writer, message) {
    const flat = isMessage(message) ? flatMessage(message, !isChunk(message)) : null;
    if (flat?.type !== 'ai') throw new TypeError(`emitMessage: expected an AIMessage or AIMessageChunk, got ${message?.constructor?.name ?? typeof message}`);
    send(writer, { type: 'message', message: flat });
}

/** Merges `metadata` into the task's. Keys that start with `aion:` or `dragoman:` are ignored. */
export function emitTaskMetadata(writer, metadata) {
    if (metadata === null || typeof metadata !== 'object' || Array.isArray(metadata)) throw new TypeError('emitTaskMetadata: expected an object');
    send(writer, { type: 'task_metadata', metadata: requireJson(metadata, 'metadata') });
}

/** Thrown by a node: the task ends as rejected, and the caller sees the message. */
export class TaskRejected extends Error {
    constructor(message) {
        super(message);
        this.name = 'TaskRejected';
    }
}

/** The tools that the caller can run, as `model.bindTools()` accepts them. `config`: the configuration of the node. */
export function callerTools(config) {
    const tools = config?.configurable?.tools;
    return (Array.isArray(tools) ? tools : []).map(({ name, description, parameters }) => ({
        type: 'function', function: { name, description: description ?? '', parameters: parameters ?? { type: 'object', properties: {} } } }));
}
