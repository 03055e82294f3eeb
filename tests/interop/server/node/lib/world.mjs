// The servers that the tests share, and words for what they do with them.
import { readFileSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Server, folder } from './server.mjs';
import { check } from './tap.mjs';

const gate = fileURLToPath(new URL('../../gate.sh', import.meta.url));
const servers = {};

const configs = {
    /** Everybody may do everything; several agents. */
    open: {
        agents: [
            { id: 'demo', type: 'demo', default: true, settings: { pace: 0 } },
            { id: 'hello', type: 'hello' },
            { id: 'bench', type: 'bench' },
            { id: 'gate', type: 'exec', settings: { command: [gate], input: 'text', output: 'text' } },
            JSON.parse(readFileSync(new URL('../../../llm.json', import.meta.url), 'utf8')),
        ],
    },
    /** Two callers without a tenant, one in a tenant, and a card that shows more to them. */
    closed: {
        tokens: [
            { token: 'alice-token', principal: 'alice' },
            { token: 'bob-token', principal: 'bob' },
            { token: 'carol-token', principal: 'carol', tenant: 'acme' },
        ],
        agents: [{ id: 'demo', type: 'demo', settings: { pace: 0 }, extended_card: { description: 'For those who are known' } }],
    },
};

/** Clients of 1.x take 0.3 only where there is nothing else. */
export const versions = (kind) => (kind.legacy ? { a2a: { versions: ['0.3'] } } : {});

/** The shared server of that name, started when it is first wanted. */
export const server = (kind, name) =>
    (servers[name + Boolean(kind.legacy)] ??= new Server({ ...configs[name], ...versions(kind) }).start());

export async function stopAll() {
    for (const s of Object.values(servers)) await (await s).stop();
}

export const message = (text, more = {}) => ({ messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more });
export const textOf = (thing) => (thing?.parts ?? []).map((p) => p.text ?? '').join('');
export const isOver = (state) => ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'].includes(state.slice(11));
export const stateOf = (event) => (event.task ?? event.statusUpdate)?.status.state.slice(11);

/** All events until the stream ends, or the task is in that state. */
export async function collect(events, state) {
    const all = [];
    for await (const event of events) {
        all.push(event);
        if (state && stateOf(event) === state) break;
    }
    return all;
}

/** What a reader makes of a stream: the text of its artifacts, its last status, its task. */
export function fold(kind, events) {
    const texts = new Map();
    let { task } = events[0];
    check(task, `no task first: ${JSON.stringify(events[0])}`);
    let status = task.status;
    for (const a of task.artifacts ?? []) texts.set(a.artifactId, textOf(a));
    for (const { statusUpdate, artifactUpdate } of events.slice(1)) {
        if (statusUpdate) status = statusUpdate.status;
        const a = artifactUpdate?.artifact;
        if (a) texts.set(a.artifactId, (artifactUpdate.append || kind.forgets ? texts.get(a.artifactId) ?? '' : '') + textOf(a));
    }
    return { id: task.id, contextId: task.contextId, status, text: [...texts.values()].join('') };
}

/** A message for the gate agent, and what lets it go on. */
export function gated() {
    const file = join(folder, randomUUID());
    return { message: message(file), go: () => writeFileSync(file, '') };
}
