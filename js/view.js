// What an agent reads: messages, files, answers, tools. All of them are views of A2A 1.0 objects.

const APPROVED = new Set(['yes', 'y', 'approve', 'approved', 'allow']);
const DECLINED = new Set(['no', 'n', 'reject', 'rejected', 'deny', 'denied', 'decline', 'declined']);

const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

/** A message of the conversation. `raw` is the A2A 1.0 object. */
export class Message {
    constructor(raw) {
        this.raw = raw;
    }

    get id() {
        return String(this.raw.messageId ?? '');
    }

    /** "user" or "agent" */
    get role() {
        return ['ROLE_AGENT', 'agent'].includes(this.raw.role) ? 'agent' : 'user';
    }

    /** Text, data and file parts, as A2A 1.0 has them. The server's copy of a transcript is not one of them. */
    get parts() {
        const parts = Array.isArray(this.raw.parts) ? this.raw.parts.filter(isObject) : [];
        return parts.filter((p) => p.metadata?.['dragoman:part'] !== 'transcript');
    }

    /** The text parts, one after the other. */
    get text() {
        return this.parts.map((p) => (typeof p.text === 'string' ? p.text : '')).join('');
    }

    /** The values of the data parts. */
    get data() {
        return this.parts.filter((p) => 'data' in p).map((p) => p.data);
    }

    /** The files: {name, mediaType, content (a Buffer) or url}. */
    get files() {
        return this.parts.filter((p) => 'raw' in p || 'url' in p).map((p) => ({
            name: p.filename || null, mediaType: p.mediaType || null,
            content: typeof p.raw === 'string' ? Buffer.from(p.raw, 'base64') : null, url: p.url ?? null }));
    }

    get metadata() {
        return { ...this.raw.metadata };
    }

    toString() {
        return this.text;
    }
}

/** The answer to a question. `text` is its text, and a template literal shows it. */
export class Answer {
    constructor(message) {
        this.message = message;
    }

    get text() {
        return this.message.text;
    }

    /** The value of its first data part, or null. */
    get data() {
        return this.message.data[0] ?? null;
    }

    get files() {
        return this.message.files;
    }

    /** True or false if the answer decides about a request for approval, else null. */
    get approved() {
        for (const value of this.message.data)
            if (isObject(value) && typeof value.approved === 'boolean' && [undefined, null, 'approval'].includes(value.type)) return value.approved;
        const word = this.text.trim().replace(/[.! \t\r\n]+$/, '').toLowerCase();
        return APPROVED.has(word) ? true : DECLINED.has(word) ? false : null;
    }

    /** The output of a tool that the caller ran, or null. */
    resultOf(callId) {
        for (const value of this.message.data)
            for (const result of isObject(value) && Array.isArray(value.tool_results) ? value.tool_results : [])
                if (isObject(result) && result.call_id === callId) return result.output ?? null;
        return null;
    }

    toString() {
        return this.text;
    }
}

/** The tools that the caller runs: [{name, description, parameters}]. */
export function toolsOf(values) {
    return (Array.isArray(values) ? values : []).filter((v) => isObject(v) && typeof v.name === 'string')
        .map(({ name, description, parameters }) => ({ name, description: description ?? '', parameters: parameters ?? {} }));
}

export function findMessage(messageId, lists) {
    for (const messages of lists) for (const message of messages) if (message?.messageId === messageId) return message;
    return null;
}
