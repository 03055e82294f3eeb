// One small agent, twice: behind the servers of @a2a-js/sdk 1.x and 0.3.x. It does what the first text
// of the message says: "reply" answers with a message, "wait" works until canceled, anything else
// makes an artifact in two chunks and completes.
import * as sdk1 from 'a2a-js-1';
import * as server1 from 'a2a-js-1/server';
import * as express1 from 'a2a-js-1/server/express';
import * as server03 from 'a2a-js-0.3/server';
import * as express03 from 'a2a-js-0.3/server/express';
import express from 'express';
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto; // the 1.x server needs it; Node 18 hides it

const time = '2026-03-04T05:06:07.089Z';
const sender = { send: async () => {} };
const card1 = (path) => ({
    name: 'Agent', description: 'An agent', version: '1', provider: undefined, iconUrl: 'https://example.com/i.png',
    supportedInterfaces: ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({ url: `http://agent.test${path}`, protocolBinding, tenant: '', protocolVersion: '1.0' })),
    capabilities: { streaming: true, pushNotifications: true, extensions: [], extendedAgentCard: true },
    securitySchemes: { key: { scheme: { $case: 'apiKeySecurityScheme', value: { description: '', location: 'header', name: 'X-Key' } } } },
    securityRequirements: [{ schemes: { key: { list: [] } } }],
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'does s', tags: ['x'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
    signatures: [],
});
const card03 = {
    name: 'Agent', description: 'An agent', version: '1', protocolVersion: '0.3.0', url: 'http://agent.test/', preferredTransport: 'JSONRPC',
    capabilities: { streaming: true, pushNotifications: true, stateTransitionHistory: false }, supportsAuthenticatedExtendedCard: true,
    defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'does s', tags: ['x'] }],
    securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } }, security: [{ key: [] }],
};

const text1 = (text) => ({ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' });
const message1 = (contextId, taskId, text) => ({
    messageId: 'm-answer', contextId, taskId, role: sdk1.Role.ROLE_AGENT, parts: [text1(text)], metadata: { mood: 'fine' }, extensions: [], referenceTaskIds: [],
});

/** {handle(body), seen, handler}: the 1.x agent; `seen` is what it got last. */
export function agent1() {
    const self = { seen: undefined };
    const waiting = new Map();
    const S = sdk1.TaskState;
    const status = (taskId, contextId, state, message) =>
        server1.AgentEvent.statusUpdate({ taskId, contextId, status: { state, message, timestamp: time }, metadata: undefined });
    const executor = {
        async execute({ userMessage, taskId, contextId, request }, bus) {
            self.seen = request;
            const wish = userMessage.parts[0].content.value;
            if (wish === 'reply') {
                bus.publish(server1.AgentEvent.message(message1(contextId, '', 'Hello')));
                return bus.finished();
            }
            bus.publish(server1.AgentEvent.task({ id: taskId, contextId, status: { state: S.TASK_STATE_SUBMITTED, message: undefined, timestamp: time }, artifacts: [], history: [userMessage], metadata: { from: 'agent' } }));
            bus.publish(status(taskId, contextId, S.TASK_STATE_WORKING));
            if (wish === 'wait') return new Promise((done) => waiting.set(taskId, { contextId, done }));
            const artifact = (text) => ({ artifactId: 'out', name: 'output', description: '', parts: [text1(text)], metadata: undefined, extensions: [] });
            bus.publish(server1.AgentEvent.artifactUpdate({ taskId, contextId, artifact: artifact('Hello '), append: false, lastChunk: false, metadata: undefined }));
            bus.publish(server1.AgentEvent.artifactUpdate({ taskId, contextId, artifact: artifact('world'), append: true, lastChunk: true, metadata: { chunk: 2 } }));
            bus.publish(status(taskId, contextId, S.TASK_STATE_COMPLETED, message1(contextId, taskId, 'Done')));
            bus.finished();
        },
        async cancelTask(taskId, bus) {
            const { contextId, done } = waiting.get(taskId);
            bus.publish(status(taskId, contextId, S.TASK_STATE_CANCELED));
            bus.finished();
            done();
        },
    };
    self.handler = new server1.DefaultRequestHandler(
        card1('/'), new server1.InMemoryTaskStore(), executor, undefined, new server1.InMemoryPushNotificationStore(), sender, card1('/extended'));
    const rpc = new server1.JsonRpcTransportHandler(self.handler);
    self.handle = (body) => rpc.handle(body, new server1.ServerCallContext({ requestedVersion: '1.0', user: new server1.UnauthenticatedUser() }));
    return self;
}

export function agent03() {
    const self = { seen: undefined };
    const waiting = new Map();
    const message = (contextId, taskId, text) => ({ kind: 'message', messageId: 'm-answer', role: 'agent', contextId, taskId, parts: [{ kind: 'text', text }], metadata: { mood: 'fine' } });
    const status = (taskId, contextId, state, final, m) => ({ kind: 'status-update', taskId, contextId, final, status: { state, timestamp: time, message: m } });
    const executor = {
        async execute({ userMessage, taskId, contextId }, bus) {
            self.seen = userMessage;
            const wish = userMessage.parts[0].text;
            if (wish === 'reply') {
                bus.publish(message(contextId, undefined, 'Hello'));
                return bus.finished();
            }
            bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted', timestamp: time }, history: [userMessage], metadata: { from: 'agent' } });
            bus.publish(status(taskId, contextId, 'working', false));
            if (wish === 'wait') return new Promise((done) => waiting.set(taskId, { contextId, done }));
            const artifact = (text) => ({ artifactId: 'out', name: 'output', parts: [{ kind: 'text', text }] });
            bus.publish({ kind: 'artifact-update', taskId, contextId, artifact: artifact('Hello '), append: false, lastChunk: false });
            bus.publish({ kind: 'artifact-update', taskId, contextId, artifact: artifact('world'), append: true, lastChunk: true, metadata: { chunk: 2 } });
            bus.publish(status(taskId, contextId, 'completed', true, message(contextId, taskId, 'Done')));
            bus.finished();
        },
        async cancelTask(taskId, bus) {
            const { contextId, done } = waiting.get(taskId);
            bus.publish(status(taskId, contextId, 'canceled', true));
            bus.finished();
            done();
        },
    };
    self.handler = new server03.DefaultRequestHandler(
        card03, new server03.InMemoryTaskStore(), executor, undefined, new server03.InMemoryPushNotificationStore(), sender, { ...card03, name: 'Agent, extended' });
    const rpc = new server03.JsonRpcTransportHandler(self.handler);
    self.handle = (body) => rpc.handle(body);
    return self;
}

/** Both HTTP servers of the agent under one address: JSON-RPC at /rpc, REST at /rest, the card at /card. */
export async function listen(agent, { rpc, rest, card }) {
    const app = express();
    app.use('/rpc', rpc({ requestHandler: agent.handler, userBuilder: async () => undefined }));
    app.use('/rest', rest({ requestHandler: agent.handler, userBuilder: async () => undefined }));
    app.use('/card', card({ agentCardProvider: agent.handler }));
    const server = await new Promise((done) => {
        const s = app.listen(0, '127.0.0.1', () => done(s));
    });
    return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}
export const http1 = { rpc: express1.jsonRpcHandler, rest: express1.restHandler, card: express1.agentCardHandler };
export const http03 = { rpc: express03.jsonRpcHandler, rest: express03.restHandler, card: express03.agentCardHandler };
