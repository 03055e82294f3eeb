// LangChain messages as plain objects: the flat form that the protocol uses, with keys in snake_case.
import { isMessage, toJson } from './values.js';

const typeOf = (m) => (typeof m.getType === 'function' ? m.getType() : m._getType());

/** AIMessageChunk and the others: only they can be joined with another one. */
export const isChunk = (m) => typeof m.concat === 'function';

/**
 * The flat form of a message: {type, content, id, name?, tool_calls?, ...}. `chunk: true` marks a part of a message that is
 * streamed. A chunk that a node returns is in the state as it is; `isFinal` then leaves the mark out.
 */
export function flatMessage(m, isFinal = false) {
    const type = typeOf(m);
    const flat = { type, content: contentOf(m), id: m.id ?? null };
    const chunk = isChunk(m) && !isFinal;
    if (chunk) flat.chunk = true;
    if (m.name) flat.name = m.name;
    if (type === 'tool') {
        flat.tool_call_id = m.tool_call_id;
        if (m.status) flat.status = m.status;
    }
    if (type === 'ai') addCalls(flat, m, chunk);
    if (m.usage_metadata) flat.usage_metadata = toJson(m.usage_metadata);
    return flat;
}

// What a chunk has in `tool_calls` are guesses from a fragment of their arguments.
function addCalls(flat, m, chunk) {
    if (chunk) {
        if (m.tool_call_chunks?.length) flat.tool_call_chunks = toJson(m.tool_call_chunks);
        return;
    }
    if (m.tool_calls?.length) flat.tool_calls = toJson(m.tool_calls);
}

function contentOf(m) {
    const reasoning = m.additional_kwargs?.reasoning_content;
    const { content } = m;
    if (typeof content === 'string') {
        if (typeof reasoning !== 'string' || reasoning === '') return content;
        return content === '' ? [{ type: 'reasoning', reasoning }] : [{ type: 'reasoning', reasoning }, { type: 'text', text: content }];
    }
    return blocksOf(m).map(flatBlock).filter(Boolean);
}

// contentBlocks translates what providers call these things; it may throw for blocks that it does not know.
function blocksOf(m) {
    try {
        const blocks = m.contentBlocks;
        if (Array.isArray(blocks)) return blocks;
    } catch {
        // the content as it is
    }
    return Array.isArray(m.content) ? m.content : [];
}

const MEDIA = new Set(['image', 'audio', 'video', 'file', 'text-plain']);
const CALLS = new Set(['tool_call', 'tool_call_chunk', 'invalid_tool_call']);

function flatBlock(block) {
    if (typeof block === 'string') return { type: 'text', text: block };
    if (block === null || typeof block !== 'object' || CALLS.has(block.type)) return null; // calls have members of their own
    if (block.type === 'text') return { type: 'text', text: String(block.text ?? '') };
    if (block.type === 'reasoning') return { type: 'reasoning', reasoning: String(block.reasoning ?? '') };
    if (block.type === 'thinking') return { type: 'reasoning', reasoning: String(block.thinking ?? '') };
    if (MEDIA.has(block.type)) return mediaBlock(block);
    return toJson(block);
}

function mediaBlock({ type, url, data, fileId, mimeType, ...rest }) {
    const flat = { type };
    const bytes = data ?? rest.base64, id = fileId ?? rest.file_id, mime = mimeType ?? rest.mime_type;
    if (url !== undefined) flat.url = String(url);
    else if (bytes !== undefined) flat.base64 = toJson(bytes);
    else if (id !== undefined) flat.file_id = id;
    if (mime) flat.mime_type = mime;
    const name = rest.metadata?.filename ?? rest.metadata?.name ?? rest.filename;
    if (typeof name === 'string') flat.filename = name;
    return flat;
}

/** Any value of a graph as JSON, messages in their flat form. */
export const graphJson = (value) => toJson(value, (m) => flatMessage(m, true));

/** The text of a flat message, without reasoning. */
export function textOf(flat) {
    if (typeof flat.content === 'string') return flat.content;
    return flat.content.filter((b) => b.type === 'text').map((b) => b.text).join('');
}

export { isMessage };
