// Clients of one version of @a2a-js/sdk talk to servers of the other, `dragoman convert` in between:
// every request, answer, stream and error of real clients and real servers passes through us.
import * as sdk from 'a2a-js-1';
import { JsonRpcTransportFactory, RestTransportFactory } from 'a2a-js-1/client';
import * as errors1 from 'a2a-js-1/errors';
import * as client03 from 'a2a-js-0.3/client';
import { agent03, agent1, http03, http1, listen } from './lib/agents.mjs';
import { collect, convert, convertJson, equal, failure, inDialect, methods, run, same, test } from './lib/interop.mjs';

console.error = console.warn = () => {}; // the servers log what the tests provoke

const v1 = 'a2a-1.0';
const v03 = 'a2a-0.3';
const v03rest = 'a2a-0.3-rest';

/** What answers each method, when the answer's shape alone does not tell. */
const answers = {};
for (const [call, kind] of Object.entries({ send: 'send-response', get: 'task', cancel: 'task', 'push list': 'push-config-list' }))
    answers[methods[call][v1]] = answers[methods[call][v03]] = kind;

/** A fetch for a JSON-RPC client of `from` that asks the JSON-RPC handler of an agent of `to`. */
function rpcBridge(agent, from, to) {
    return async (_url, { body }) => {
        const asked = convertJson(from, to, body);
        const reply = await agent.handle(asked);
        if (reply[Symbol.asyncIterator]) {
            let text = '';
            for await (const event of reply) text += `data: ${JSON.stringify(event)}\n\n`;
            return new Response(convert(to, from, text), { headers: { 'Content-Type': 'text/event-stream' } });
        }
        const object = 'error' in reply ? undefined : reply.result === null ? 'empty' : answers[asked.method];
        return new Response(convert(to, from, JSON.stringify(reply), { object }), { headers: { 'Content-Type': 'application/json' } });
    };
}

/** A fetch for a REST client of `from` that asks the HTTP server of an agent of `to`. */
function restBridge(base, from, to) {
    return async (url, { method, body }) => {
        const path = String(url).replace('http://agent.test', '').replace(/^\/v1/, '');
        const theirs = { '/extendedAgentCard': '/card', '/card': '/extendedAgentCard' }[path] ?? path;
        let asked = body && convert(from, to, body);
        const task = /^\/tasks\/([^/]+)\/pushNotificationConfigs$/.exec(path)?.[1];
        if (body && task && to === v03rest) asked = JSON.stringify({ parent: `tasks/${task}`, config: JSON.parse(asked) });
        const headers = { 'Content-Type': 'application/json', ...(to === v1 ? { 'A2A-Version': '1.0' } : {}) };
        const reply = await fetch(`${base}${to === v1 ? '' : '/v1'}${theirs}`, { method, body: asked, headers, signal: AbortSignal.timeout(5000) });
        const text = await reply.text();
        const type = reply.headers.get('Content-Type') ?? 'application/json';
        if (!text) return new Response(null, { status: reply.status });
        const object = !reply.ok ? 'error' : /message:send$/.test(path) ? 'send-response' : undefined;
        return new Response(convert(to, from, text, { object }), { status: reply.status, headers: { 'Content-Type': type } });
    };
}

// ---- a client of 1.x, a server of 0.3 ------------------------------------------------------------------

const message1 = (text) => sdk.SendMessageRequest.fromJSON({
    message: { messageId: 'm-q', role: 'ROLE_USER', parts: [{ text }, { raw: 'AAEC/w==', mediaType: 'image/png' }, { data: { n: [1, null] } }], metadata: { k: 1 }, extensions: ['https://e.test/1'] },
    configuration: text === 'wait' ? { returnImmediately: true } : { acceptedOutputModes: ['text/plain'] },
});
const message03 = (text) => ({
    message: { kind: 'message', messageId: 'm-q', role: 'user', parts: [{ kind: 'text', text }, { kind: 'file', file: { bytes: 'AAEC/w==', mimeType: 'image/png' } }, { kind: 'data', data: { n: [1, null] } }], metadata: { k: 1 }, extensions: ['https://e.test/1'] },
    configuration: { blocking: text !== 'wait', acceptedOutputModes: ['text/plain'] },
});
const hook1 = (taskId) => sdk.TaskPushNotificationConfig.fromJSON({ taskId, id: 'p-9', url: 'https://hooks.example.com/x', token: 'tok', authentication: { scheme: 'Bearer', credentials: 'c' } });
const hook03 = (taskId) => ({ taskId, pushNotificationConfig: { id: 'p-9', url: 'https://hooks.example.com/x', token: 'tok', authentication: { schemes: ['Bearer'], credentials: 'c' } } });

const served = { 1: agent1(), '03': agent03() };
const http = { 1: await listen(served[1], http1), '03': await listen(served['03'], http03) };
const card = sdk.AgentCard.fromJSON(inDialect('card with what only 1.0 has', v1));

const ways1 = {
    'JSON-RPC': () => new JsonRpcTransportFactory({ fetchImpl: rpcBridge(served['03'], v1, v03) }).create('http://agent.test', card),
    REST: () => new RestTransportFactory({ fetchImpl: restBridge(`${http['03'].url}/rest`, v1, v03rest) }).create('http://agent.test', card),
};

for (const [way, connect] of Object.entries(ways1)) {
    const name = `a 1.x client and a 0.3 server over ${way}`;

    test(`${name}: send, answered by a task`, async () => {
        const task = await (await connect()).sendMessage(message1('go'));
        equal([task.status.state, task.status.timestamp], [sdk.TaskState.TASK_STATE_COMPLETED, '2026-03-04T05:06:07.089Z'], 'status');
        equal(task.status.message.parts[0].content, { $case: 'text', value: 'Done' }, 'status message');
        equal(task.artifacts[0].parts.map((p) => p.content.value), ['Hello ', 'world'], 'artifact');
        equal(task.history.map((m) => m.messageId), ['m-q', 'm-answer'], 'history');
        equal(task.metadata.from, 'agent', 'metadata');
        const { contextId, taskId, ...seen } = served['03'].seen;
        same(seen, message03('go').message, 'what the server saw');
        equal(task.history[0].parts, message1('go').message.parts, 'what came back of the request');
    });
    test(`${name}: send, answered by a message`, async () => {
        const message = await (await connect()).sendMessage(message1('reply'));
        equal([message.messageId, message.role, message.metadata], ['m-answer', sdk.Role.ROLE_AGENT, { mood: 'fine' }], 'message');
    });
    test(`${name}: stream`, async () => {
        const events = await collect((await connect()).sendMessageStream(message1('go')));
        equal(events.map((e) => e.payload.$case), ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate'], 'events');
        const last = events[3].payload.value;
        equal([last.append, last.lastChunk, last.metadata], [true, true, { chunk: 2 }], 'last chunk');
        equal(events[4].payload.value.status.state, sdk.TaskState.TASK_STATE_COMPLETED, 'last state');
    });
    test(`${name}: get, subscribe to the ended task, and a task that is not there`, async () => {
        const client = await connect();
        const { id } = await client.sendMessage(message1('go'));
        const task = await client.getTask({ id, tenant: '', historyLength: 1 });
        equal([task.id, task.history.length], [id, 1], 'task');
        const events = await collect(client.resubscribeTask({ id, tenant: '' }));
        equal([events.length, events[0].payload.$case, events[0].payload.value.id], [1, 'task', id], 'subscription');
        const error = await failure(client.getTask({ id: 'nope', tenant: '' }));
        equal([error instanceof errors1.TaskNotFoundError, error.message], [true, 'Task not found: nope'], 'error');
    });
    test(`${name}: cancel`, async () => {
        const client = await connect();
        const { id, status } = await client.sendMessage(message1('wait'));
        equal([sdk.TaskState.TASK_STATE_SUBMITTED, sdk.TaskState.TASK_STATE_WORKING].includes(status.state), true, 'state at once');
        await new Promise((r) => setTimeout(r, 20));
        equal((await client.cancelTask({ id, tenant: '', metadata: undefined })).status.state, sdk.TaskState.TASK_STATE_CANCELED, 'state');
        const error = await failure(client.cancelTask({ id, tenant: '', metadata: undefined }));
        equal(error instanceof errors1.TaskNotCancelableError, true, `error ${error}`);
    });
    test(`${name}: push configurations`, async () => {
        const client = await connect();
        const { id } = await client.sendMessage(message1('go'));
        equal(await client.createTaskPushNotificationConfig(hook1(id)), hook1(id), 'set');
        equal(await client.getTaskPushNotificationConfig({ taskId: id, id: 'p-9', tenant: '' }), hook1(id), 'get');
        equal((await client.listTaskPushNotificationConfig({ taskId: id, tenant: '', pageSize: 0, pageToken: '' })).configs, [hook1(id)], 'list');
        await client.deleteTaskPushNotificationConfig({ taskId: id, id: 'p-9', tenant: '' });
        equal((await client.listTaskPushNotificationConfig({ taskId: id, tenant: '', pageSize: 0, pageToken: '' })).configs, [], 'list after delete');
    });
    test(`${name}: extended card`, async () => {
        const got = await (await connect()).getExtendedAgentCard({ tenant: '' });
        equal(got.supportedInterfaces, [{ url: 'http://agent.test/', protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '0.3.0' }], 'interfaces');
        equal(got.securitySchemes.key.scheme.$case, 'apiKeySecurityScheme', 'scheme');
        equal(got.capabilities.extendedAgentCard, true, 'extended card');
    });
}

// ---- a client of 0.3, a server of 1.x ------------------------------------------------------------------

const ways03 = {
    'JSON-RPC': () => new client03.JsonRpcTransport({ endpoint: 'http://agent.test', fetchImpl: rpcBridge(served[1], v03, v1) }),
    REST: () => new client03.RestTransport({ endpoint: 'http://agent.test', fetchImpl: restBridge(`${http[1].url}/rest`, v03rest, v1) }),
};

for (const [way, connect] of Object.entries(ways03)) {
    const name = `a 0.3 client and a 1.x server over ${way}`;

    test(`${name}: send, answered by a task`, async () => {
        const task = await connect().sendMessage(message03('go'));
        equal([task.kind, task.status.state, task.status.timestamp], ['task', 'completed', '2026-03-04T05:06:07.089Z'], 'status');
        equal(task.status.message.parts, [{ kind: 'text', text: 'Done' }], 'status message');
        equal(task.artifacts[0].parts.map((p) => p.text), ['Hello ', 'world'], 'artifact');
        equal(task.history.map((m) => [m.kind, m.role]), [['message', 'user'], ['message', 'agent']], 'history');
        const seen = served[1].seen;
        equal(seen.message.parts.map(sdk.Part.toJSON), message1('go').message.parts.map(sdk.Part.toJSON), 'what the server saw');
        equal([seen.message.metadata, seen.message.extensions, seen.configuration.returnImmediately], [{ k: 1 }, ['https://e.test/1'], false], 'what the server saw');
        same(task.history[0].parts, message03('go').message.parts, 'what came back of the request');
    });
    test(`${name}: send, answered by a message`, async () => {
        const message = await connect().sendMessage(message03('reply'));
        equal([message.kind, message.messageId, message.role, message.metadata], ['message', 'm-answer', 'agent', { mood: 'fine' }], 'message');
    });
    test(`${name}: stream`, async () => {
        const events = await collect(connect().sendMessageStream(message03('go')));
        equal(events.map((e) => e.kind), ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'], 'events');
        equal([events[1].final, events[4].final, events[4].status.state], [false, true, 'completed'], 'final');
        equal([events[3].lastChunk, events[3].metadata], [true, { chunk: 2 }], 'last chunk');
    });
    test(`${name}: get, and a task that is not there`, async () => {
        const client = connect();
        const { id } = await client.sendMessage(message03('go'));
        const task = await client.getTask({ id, historyLength: 1 });
        equal([task.kind, task.id, task.history.length], ['task', id, 1], 'task');
        const error = await failure(client.getTask({ id: 'nope' }));
        equal(error instanceof client03.TaskNotFoundError, true, `error ${error}`);
    });
    test(`${name}: cancel`, async () => {
        const client = connect();
        const { id } = await client.sendMessage(message03('wait'));
        await new Promise((r) => setTimeout(r, 20));
        equal((await client.cancelTask({ id })).status.state, 'canceled', 'state');
        const { id: done } = await client.sendMessage(message03('go'));
        const error = await failure(client.cancelTask({ id: done }));
        equal(error instanceof client03.TaskNotCancelableError, true, `error ${error}`);
    });
    test(`${name}: push configurations`, async () => {
        const client = connect();
        const { id } = await client.sendMessage(message03('go'));
        same(await client.setTaskPushNotificationConfig(hook03(id)), hook03(id), 'set');
        same(await client.getTaskPushNotificationConfig({ id, pushNotificationConfigId: 'p-9' }), hook03(id), 'get');
        same(await client.listTaskPushNotificationConfig({ id }), [hook03(id)], 'list');
        await client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: 'p-9' });
        same(await client.listTaskPushNotificationConfig({ id }), [], 'list after delete');
    });
}

// ---- what the servers publish beside the calls -----------------------------------------------------------

test('we read the card that the 1.x server publishes', async () => {
    const text = await (await fetch(`${http[1].url}/card`)).text();
    const ours = sdk.AgentCard.fromJSON(convertJson(v1, v1, text));
    equal(ours, sdk.AgentCard.fromJSON(sdk.AgentCard.toJSON(await served[1].handler.getAgentCard())), 'card');
});

test('we read the card that the 0.3 server publishes, into 1.0 and back', async () => {
    const text = await (await fetch(`${http['03'].url}/card`)).text();
    const ours = sdk.AgentCard.fromJSON(convertJson(v03, v1, text));
    equal([ours.name, ours.supportedInterfaces[0].url, ours.securitySchemes.key.scheme.$case], ['Agent', 'http://agent.test/', 'apiKeySecurityScheme'], 'card');
    same(convertJson(v1, v03, convertJson(v03, v1, text)), JSON.parse(text), 'card back');
});

test('we read the list of tasks that the 1.x server gives', async () => {
    const reply = await served[1].handle({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { includeArtifacts: true } });
    const ours = convertJson(v1, v1, reply);
    equal(sdk.ListTasksResponse.fromJSON(ours.result), sdk.ListTasksResponse.fromJSON(reply.result), 'list');
    equal(ours.result.tasks.length > 0, true, 'tasks');
});

test('we read what the servers say to bad requests', async () => {
    for (const [agent, dialect, other, method] of [[served[1], v1, v03, methods.send[v1]], [served['03'], v03, v1, methods.send[v03]]]) {
        for (const body of [
            { jsonrpc: '2.0', id: 'a', method, params: {} },
            { jsonrpc: '2.0', id: 7, method: 'no/such', params: {} },
            { jsonrpc: '1.0', id: 8, method, params: {} },
        ]) {
            const reply = await agent.handle(body);
            const { code } = reply.error;
            const ours = convertJson(dialect, other, JSON.stringify(reply));
            equal([ours.id, ours.error.code, ours.error.message], [body.id, code, reply.error.message], JSON.stringify(body));
            const back = convertJson(other, dialect, ours);
            equal([back.id, back.error.code, back.error.message], [body.id, code, reply.error.message], 'and back');
        }
    }
});

await run();
