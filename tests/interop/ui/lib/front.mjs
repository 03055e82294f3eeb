// A live server, its AG-UI clients of both generations, and what others see of the same tasks over A2A.
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as now from '@ag-ui/client';
import * as before from 'ag-ui-client-0';
import { Server, folder } from '../../server/node/lib/server.mjs';
import { check } from '../../server/node/lib/tap.mjs';

console.error = () => {}; // the clients tell of every error there, those that are due included
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = '1';

const gate = fileURLToPath(new URL('../../server/gate.sh', import.meta.url));
/** Says Hello, and at the end that it was Goodbye. */
const changesItsMind = `cat > /dev/null
echo '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"Hello"}]},"lastChunk":true}}'
echo '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","parts":[{"text":"Goodbye"}]}}}}'`;
/** Document 004's greeting, with words in its working status. */
const thinksAloud = `cat > /dev/null
echo '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT","parts":[{"text":"Processing your greeting..."}]}}}}'
echo '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"Hello "}]}}}'
echo '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"world!"}]},"append":true,"lastChunk":true}}'
echo '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED","message":{"role":"ROLE_AGENT","parts":[{"text":"Hello world!"}]}}}}'`;
/** Always asks for the call that it calls call_0, as some servers of models do. */
const callsByNumber = `cat > /dev/null
echo '{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","parts":[{"data":{"tool_calls":[{"call_id":"call_0","name":"f","arguments":{}}]}}]}}}}'`;
/** Asks for structured input. */
const asksForm = `cat > /dev/null
echo '{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"role":"ROLE_AGENT","parts":[{"text":"Fill this in."},{"data":{"schema":{"type":"object"}}}]}}}}'`;
const agents = [
    { id: 'form', type: 'exec', settings: { command: asksForm } },
    { id: 'demo', type: 'demo', default: true, settings: { pace: 0 } },
    { id: 'paced', type: 'demo' },
    { id: 'hello', type: 'hello' },
    { id: 'mirror', type: 'exec', settings: { command: ['cat'], output: 'text' } },
    { id: 'caller', type: 'exec', settings: { command: callsByNumber } },
    { id: 'loud', type: 'exec', settings: { command: thinksAloud } },
    { id: 'fickle', type: 'exec', settings: { command: changesItsMind } },
    { id: 'gate', type: 'exec', settings: { command: [gate], input: 'text', output: 'text' } },
    JSON.parse(readFileSync(new URL('../../llm.json', import.meta.url), 'utf8')),
];
const configs = {
    /** A run whose client is gone for a moment ends. */
    cancel: { agents, disconnect_grace_s: { 'ag-ui': 0 } },
    /** It goes on. */
    go_on: { agents, on_disconnect: { 'ag-ui': 'continue' } },
    /** Every question is an interrupt. */
    interrupts: { agents, 'ag-ui': { questions: 'interrupt' } },
    closed: { agents, tokens: [{ token: 'alice-token', principal: 'alice' }, { token: 'bob-token', principal: 'bob' }] },
};
const servers = {};

/** The shared server of that name, started when it is first wanted. */
export const server = (name) => (servers[name] ??= new Server(configs[name]).start());

export async function stopAll() {
    for (const s of Object.values(servers)) await (await s).stop();
}

// ---- clients ----------------------------------------------------------------------------------------------------------

const binaryType = 'application/vnd.ag-ui.event+proto';

/** HttpAgent as it is published, and with what it leaves to its users: another Accept, a connect. */
const agentOf = (client, accept) => class extends client.HttpAgent {
    requestInit(input) {
        const init = super.requestInit(input);
        return accept ? { ...init, headers: { ...init.headers, Accept: accept } } : init;
    }
    connect(input) {
        return client.transformHttpEventStream(client.runHttpRequest(() => this.fetch(`${this.url}/connect`, this.requestInit(input))));
    }
};

export const peers = [
    { name: '@ag-ui/client 1.0.0', Agent: agentOf(now), current: true },
    { name: '@ag-ui/client 1.0.0 in protobuf', Agent: agentOf(now, binaryType), current: true, binary: true },
    { name: '@ag-ui/client 0.0.59', Agent: agentOf(before) },
];

/** A client of this server's agent, in a thread of its own. */
export async function open(peer, { at = 'go_on', agent = '', threadId = randomUUID(), ...more } = {}) {
    const { url } = await server(at);
    return new peer.Agent({ url: `${url}${agent && `/agents/${agent}`}/ag-ui`, threadId, ...more });
}

export const user = (content) => ({ id: randomUUID(), role: 'user', content });

/** Runs it and says what came. on: called with each event. */
export async function run(agent, parameters = {}, on = () => {}, how = 'runAgent') {
    const seen = { events: [] };
    const result = await agent[how](parameters, {
        onEvent: ({ event }) => { seen.events.push(event); on(event); },
        onRunFailed: ({ error }) => { seen.failed = error; },
        onRunErrorEvent: ({ event }) => { seen.error = event; },
        onRunFinishedEvent: ({ event }) => { seen.finished = event; },
    }).catch((error) => { seen.failed ??= error; });
    return Object.assign(seen, result);
}

/** Says something and runs; throws what went wrong in the client. */
export async function say(agent, text, parameters, on) {
    agent.addMessage(user(text));
    const seen = await run(agent, parameters, on);
    if (seen.failed) throw seen.failed;
    return seen;
}

export const of = (messages, role) => messages.filter((m) => m.role === role);
export const texts = (agent) => of(agent.messages, 'assistant').filter((m) => m.content).map((m) => m.content);

// ---- without a client -----------------------------------------------------------------------------------------------------

export const input = (more) => ({ threadId: randomUUID(), runId: randomUUID(), protocolVersion: '1.0', messages: [], ...more });

/** Posts a RunAgentInput; headers win over the usual ones. */
export async function post(body, { at = 'go_on', path = '/ag-ui', headers = {}, signal } = {}) {
    const { url } = await server(at);
    return fetch(url + path, {
        method: 'POST', signal, headers: { 'Content-Type': 'application/json', ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body),
    });
}

/** The frames of a stream: {id, event}. */
export function frames(text) {
    check(text === '' || text.endsWith('\n\n'), 'a frame is cut');
    return text.split('\n\n').filter((f) => f && !f.startsWith(':')).map((f) => ({
        id: /^id: (.*)$/m.exec(f)?.[1], event: JSON.parse(/^data: (.*)$/m.exec(f)[1]),
    }));
}

export async function events(response) {
    const text = await response.text();
    check(response.status === 200, `status ${response.status}: ${text}`);
    return frames(text).map((f) => f.event);
}

/** A text for the gate agent, which stops half way, and what lets it go on. */
export function gated() {
    const file = join(folder, randomUUID());
    return { text: file, go: () => writeFileSync(file, '') };
}

// ---- the same over A2A -------------------------------------------------------------------------------------------------------

export async function a2a(method, params, { at = 'go_on', agent = '' } = {}) {
    const { url } = await server(at);
    const r = await fetch(`${url}${agent && `/agents/${agent}`}/`, {
        method: 'POST', headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const { result, error } = await r.json();
    check(!error, `${method}: ${JSON.stringify(error)}`);
    return result;
}

/** The tasks of a thread, the newest first. */
export const tasksOf = async (threadId, where) => (await a2a('ListTasks', { contextId: threadId, historyLength: 100, includeArtifacts: true }, where)).tasks;
export const stateOf = (task) => task.status.state.replace('TASK_STATE_', '');
/** What an A2A client shows of an answer. */
export const answerOf = ({ task, message }) => (task ? task.status.message : message).parts.map((p) => p.text ?? '').join('');
