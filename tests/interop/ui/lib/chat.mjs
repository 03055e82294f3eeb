// useChat without React: the SDK's own chat and transport, against a live server.
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { folder, Server } from '../../server/node/lib/server.mjs';

const say = fileURLToPath(new URL('say.py', import.meta.url));

export const agents = [
    { id: 'demo', type: 'demo', default: true, settings: { pace: 0 } },
    { id: 'hello', type: 'hello' },
    { id: 'slow', type: 'demo' },
    { id: 'say', type: 'exec', settings: { command: [say] } },
    JSON.parse(readFileSync(new URL('../../llm.json', import.meta.url), 'utf8')),
    { id: 'asks', type: 'exec', settings: { command: [fileURLToPath(new URL('../../../wire/lib/asks.py', import.meta.url))] } },
];

export const start = (more = {}, store) => new Server({ agents, ...more }, store).start();

/** A file that is not there yet, for agents that wait for it. */
export function gate() {
    const path = join(folder, randomUUID());
    return { path, open: () => writeFileSync(path, '') };
}

/** Events of A2A 1.0, as lines for the agent `say`. */
export const status = (state, message) =>
    JSON.stringify({ statusUpdate: { status: { state: `TASK_STATE_${state}`, ...(message && { message: { role: 'ROLE_AGENT', ...message } }) } } });
export const text = (words, type) => ({ parts: [{ text: words }], ...(type && { metadata: { canonical_type: type } }) });
export const artifact = (id, parts, more = {}) => JSON.stringify({ artifactUpdate: { artifact: { artifactId: id, parts }, ...more } });
export const asks = (...calls) => status('INPUT_REQUIRED', { parts: [{ data: { tool_calls: calls } }] });

class State {
    constructor(messages) {
        Object.assign(this, { messages, status: 'ready', error: undefined });
    }
    pushMessage = (m) => { this.messages = [...this.messages, m]; };
    popMessage = () => { this.messages = this.messages.slice(0, -1); };
    replaceMessage = (i, m) => { this.messages = this.messages.with(i, structuredClone(m)); };
    snapshot = (v) => structuredClone(v);
}

export class Chat extends AbstractChat {
    constructor({ server, agent = 'demo', id = randomUUID(), messages = [], tools = {}, headers, body }) {
        const api = `${server.url}/agents/${agent}/ai-sdk`;
        const chunks = [];
        const errors = [];
        super({
            id,
            state: new State(messages),
            transport: new (class extends DefaultChatTransport {
                processResponseStream(stream) {
                    return super.processResponseStream(stream).pipeThrough(new TransformStream({
                        transform(chunk, out) {
                            chunks.push(structuredClone(chunk));
                            out.enqueue(chunk);
                        },
                    }));
                }
            })({ api, headers, body }),
            onError: (e) => errors.push(e),
            onToolCall: ({ toolCall }) => {
                const output = tools[toolCall.toolName];
                if (output !== undefined) this.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output });
            },
            sendAutomaticallyWhen: (chat) => lastAssistantMessageIsCompleteWithToolCalls(chat) || lastAssistantMessageIsCompleteWithApprovalResponses(chat),
        });
        Object.assign(this, { server, api, headers, chunks, errors });
    }

    async say(text, options) {
        await this.sendMessage({ text }, options);
        return this.lastMessage;
    }
    saved = async () => (await fetch(`${this.api}/${encodeURIComponent(this.id)}/messages`, { headers: this.headers })).json();
    cancel = (method = 'POST') =>
        fetch(`${this.api}/${encodeURIComponent(this.id)}/${method === 'POST' ? 'cancel' : 'stream'}`, { method, headers: this.headers });
    /** Its tasks, as A2A lists them: the newest first. */
    async tasks() {
        const url = `${this.api.slice(0, -'/ai-sdk'.length)}/tasks?includeArtifacts=true&contextId=${encodeURIComponent(this.id)}`;
        const r = await fetch(url, { headers: { 'A2A-Version': '1.0', ...this.headers } });
        return (await r.json()).tasks;
    }
}

export const textsOf = (m) => m.parts.filter((p) => p.type === 'text').map((p) => p.text);
export const toolsOf = (m) => m.parts.filter((p) => p.type === 'dynamic-tool' || p.type.startsWith('tool-'));
/** The answer: the texts, but those that another took the place of. */
export const answerOf = (m) =>
    m.parts.filter((p) => p.type === 'text').reduce((all, p) => [...(p.providerMetadata?.dragoman?.instead ? all.slice(0, -1) : all), p.text], []).join('\n\n');
