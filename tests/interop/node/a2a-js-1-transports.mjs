// The client transports and servers of @a2a-js/sdk 1.x: their requests and answers are read by us,
// ours by them.
import * as sdk from 'a2a-js-1';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } from 'a2a-js-1/client';
import * as sdkErrors from 'a2a-js-1/errors';
import {
    collect, convert, convertJson, equal, errors, failure, fakeFetch, inDialect, kindOf, methods, run, same, sse, streams, test,
} from './lib/interop.mjs';

const own = 'a2a-1.0';
const old = 'a2a-0.3';
const oldRest = 'a2a-0.3-rest';

const card = sdk.AgentCard.fromJSON(inDialect('card with what only 1.0 has', own));
const jsonRpc = (fetch) => new JsonRpcTransportFactory({ fetchImpl: fetch }).create('http://agent.test/rpc', card);
const rest = (fetch) => new RestTransportFactory({ fetchImpl: fetch }).create('http://agent.test/rest', card);

/** How the client is asked for each of our calls, and what codec its answer has. */
const calls = {
    send: ['sendMessage', sdk.SendMessageRequest, sdk.Task],
    'send, answered by a message': ['sendMessage', sdk.SendMessageRequest, sdk.Message],
    get: ['getTask', sdk.GetTaskRequest, sdk.Task],
    cancel: ['cancelTask', sdk.CancelTaskRequest, sdk.Task],
    'push set': ['createTaskPushNotificationConfig', sdk.TaskPushNotificationConfig, sdk.TaskPushNotificationConfig],
    'push get': ['getTaskPushNotificationConfig', sdk.GetTaskPushNotificationConfigRequest, sdk.TaskPushNotificationConfig],
    'push list': ['listTaskPushNotificationConfig', sdk.ListTaskPushNotificationConfigsRequest, sdk.ListTaskPushNotificationConfigsResponse],
    'push delete': ['deleteTaskPushNotificationConfig', sdk.DeleteTaskPushNotificationConfigRequest, null],
    'extended card': ['getExtendedAgentCard', sdk.GetExtendedAgentCardRequest, sdk.AgentCard],
};
const paramsOf = (call, codec) => codec.fromJSON(methods[call].params ? inDialect(methods[call].params, own) : {});

/** The answer as the client hands it out: send's wrapper is taken off. */
function answerOf(call, dialect = own) {
    const { result } = methods[call];
    if (!result) return undefined;
    const spelled = inDialect(result, dialect);
    return call.startsWith('send') ? (spelled.task ?? spelled.message) : spelled;
}

// ---- JSON-RPC ------------------------------------------------------------------------------------------

for (const [call, [method, request, response]] of Object.entries(calls)) {
    const { params, result } = methods[call];

    test(`a2a-js 1's JSON-RPC client: ${call}, its request read by us, our answer by it`, async () => {
        const { fetch, requests } = fakeFetch(({ json }) => ({
            body: convert(old, own, { jsonrpc: '2.0', id: json.id, result: result && inDialect(result, old) }, { object: result ? kindOf(result) : 'empty' }),
        }));
        const got = await (await jsonRpc(fetch))[method](paramsOf(call, request));
        if (response) equal(got, response.fromJSON(answerOf(call)), 'answer');

        const asked = convertJson(own, old, requests[0].body);
        equal([asked.jsonrpc, asked.id, asked.method], ['2.0', requests[0].json.id, methods[call][old]], 'envelope');
        if (params) same(asked.params, inDialect(params, old), 'params');
        const back = convertJson(old, own, asked);
        equal([back.id, back.method], [requests[0].json.id, methods[call][own]], 'envelope back');
        equal(request.fromJSON(back.params ?? {}), request.fromJSON(requests[0].json.params), 'params back');
    });
}

for (const [what, names] of Object.entries(streams)) {
    const expected = names.map((n) => sdk.StreamResponse.fromJSON(inDialect(n, own)));
    const oldStream = (id) => names.map((n) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: inDialect(n, old) })}\n\n`).join('');

    for (const [method, request, call] of [['sendMessageStream', sdk.SendMessageRequest, 'stream'], ['resubscribeTask', sdk.SubscribeToTaskRequest, 'subscribe']]) {
        test(`a2a-js 1's JSON-RPC client: ${method} reads our stream of ${what}`, async () => {
            const { fetch, requests } = fakeFetch(({ json }) => ({ type: sse, body: convert(old, own, oldStream(json.id)) }));
            const got = await collect((await jsonRpc(fetch))[method](paramsOf(call, request)));
            equal(got, expected, 'events');
            const asked = convertJson(own, old, requests[0].body);
            equal(asked.method, methods[call][old], 'method');
            same(asked.params, inDialect(methods[call].params, old), 'params');
        });
    }

    test(`a2a-js 1's REST client: sendMessageStream reads our stream of ${what}`, async () => {
        const theirs = names.map((n) => `data: ${JSON.stringify(inDialect(n, oldRest))}\r\n\r\n: ping - now\r\n\r\n`).join('');
        const { fetch, requests } = fakeFetch(() => ({ type: sse, body: convert(oldRest, own, theirs) }));
        const got = await collect((await rest(fetch)).sendMessageStream(paramsOf('stream', sdk.SendMessageRequest)));
        equal(got, expected, 'events');
        same(convertJson(own, oldRest, requests[0].body), inDialect(methods.stream.params, oldRest), 'request');
    });

    test(`a2a-js 1's REST client: resubscribeTask reads our stream of ${what}, made of JSON lines`, async () => {
        const theirs = names.map((n) => `${JSON.stringify(inDialect(n, old))}\n`).join('');
        const { fetch } = fakeFetch(() => ({ type: sse, body: convert(old, own, theirs, { frame: 'sse' }) }));
        equal(await collect((await rest(fetch)).resubscribeTask({ id: 't-1', tenant: '' })), expected, 'events');
    });
}

for (const e of errors) {
    test(`a2a-js 1's JSON-RPC client: our ${e.class} is its own`, async () => {
        const { fetch } = fakeFetch(({ json }) => ({ body: convert(old, own, { jsonrpc: '2.0', id: json.id, error: { code: e.code, message: `${e.message}: 7` } }) }));
        const error = await failure((await jsonRpc(fetch)).getTask({ id: 't', tenant: '' }));
        equal([error instanceof sdkErrors[e.class], error.message, error.envelopeCode], [true, `${e.message}: 7`, e.code], 'error');
        equal(error.data.map((d) => [d['@type'], d.reason, d.domain]), [['type.googleapis.com/google.rpc.ErrorInfo', e.reason, 'a2a-protocol.org']], 'ErrorInfo');
    });

    test(`a2a-js 1's REST client: our ${e.class} is its own`, async () => {
        const { fetch } = fakeFetch(() => ({ status: e.http, body: convert(oldRest, own, { code: e.code, message: `${e.message}: 7` }, { object: 'error' }) }));
        const error = await failure((await rest(fetch)).getTask({ id: 't', tenant: '' }));
        equal([error instanceof sdkErrors[e.class], error.message, error.statusCode], [true, `${e.message}: 7`, e.http], 'error');
    });

    test(`we read the ${e.class} that a2a-js 1 writes`, () => {
        const error = new sdkErrors[e.class]({ message: `${e.message}: 8`, metadata: { taskId: 't-8' } });
        const envelope = { jsonrpc: '2.0', id: 'q', error: { code: e.code, message: error.message, data: [error.toErrorInfo()] } };
        const ours = convertJson(own, old, envelope);
        equal([ours.jsonrpc, ours.id, ours.error.code, ours.error.message], ['2.0', 'q', e.code, `${e.message}: 8`], old);
        const back = convertJson(old, own, ours);
        equal([back.error.code, back.error.message, back.error.data[0].reason], [e.code, `${e.message}: 8`, e.reason], 'and back');
        const body = { error: { code: e.http, status: e.status, message: error.message, details: [error.toErrorInfo()] } };
        const restOurs = convertJson(own, oldRest, body);
        equal([restOurs.code, restOurs.message], [e.code, `${e.message}: 8`], oldRest);
    });
}

test("a2a-js 1's JSON-RPC client: an error in the middle of our stream is its own", async () => {
    const first = 'stream response with a task';
    const { fetch } = fakeFetch(({ json: { id } }) => ({
        type: sse,
        body: convert(old, own,
            `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: inDialect(first, old) })}\n\n` +
            `event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'broken' } })}\n\n`),
    }));
    const got = [];
    const error = await failure((async () => {
        for await (const event of (await jsonRpc(fetch)).sendMessageStream(paramsOf('stream', sdk.SendMessageRequest))) got.push(event);
    })());
    equal(got, [sdk.StreamResponse.fromJSON(inDialect(first, own))], 'events');
    equal([error.cause.envelopeCode, error.cause.message], [-32603, 'broken'], 'error');
});

test("a2a-js 1's REST client: an error in the middle of our stream is its own", async () => {
    const { fetch } = fakeFetch(() => ({
        type: sse,
        body: convert(oldRest, own,
            `data: ${JSON.stringify(inDialect('stream response with a task', oldRest))}\n\n` +
            `event: error\ndata: ${JSON.stringify({ code: -32001, message: 'gone' })}\n\n`),
    }));
    const got = [];
    const error = await failure((async () => {
        for await (const event of (await rest(fetch)).sendMessageStream(paramsOf('stream', sdk.SendMessageRequest))) got.push(event);
    })());
    equal([got.length, error instanceof sdkErrors.TaskNotFoundError, error.message], [1, true, 'gone'], 'error');
});

// ---- REST ------------------------------------------------------------------------------------------------

for (const [call, [method, request, response]] of Object.entries(calls)) {
    const { params, result } = methods[call];
    test(`a2a-js 1's REST client: ${call}, its body read by us, our answer by it`, async () => {
        const { fetch, requests } = fakeFetch(() => ({
            body: convert(oldRest, own, result ? inDialect(result, oldRest) : {}, { object: result ? kindOf(result) : 'empty' }),
        }));
        const got = await (await rest(fetch))[method](paramsOf(call, request));
        if (response) equal(got, response.fromJSON(answerOf(call)), 'answer');
        if (!result) equal(convertJson(oldRest, own, {}, { object: 'empty' }), {}, 'answer');
        if (requests[0].body) same(convertJson(own, oldRest, requests[0].body), inDialect(params, oldRest), 'request');
    });
}

test("a2a-js 1's clients read our list of tasks", async () => {
    const name = 'list tasks response';
    const theirs = inDialect(name, own);
    const request = sdk.ListTasksRequest.fromJSON(inDialect('list tasks request', own));
    const ofRest = fakeFetch(() => ({ body: convert(own, own, theirs) }));
    equal(await (await rest(ofRest.fetch)).listTasks(request), sdk.ListTasksResponse.fromJSON(theirs), 'REST');
    const ofRpc = fakeFetch(({ json: { id } }) => ({ body: convert(own, own, { jsonrpc: '2.0', id, result: theirs }) }));
    equal(await (await jsonRpc(ofRpc.fetch)).listTasks(request), sdk.ListTasksResponse.fromJSON(theirs), 'JSON-RPC');
    const asked = convertJson(own, own, ofRpc.requests[0].body);
    equal([asked.method, sdk.ListTasksRequest.fromJSON(asked.params)], ['ListTasks', request], 'request');
});

// ---- cards -------------------------------------------------------------------------------------------------

for (const from of [old, oldRest]) {
    for (const name of ['card with everything', 'card as small as can be']) {
        test(`a2a-js 1's card resolver reads our ${name}, made from ${from}`, async () => {
            const { fetch, requests } = fakeFetch(() => ({ body: convert(from, own, inDialect(name, from)) }));
            const got = await new DefaultAgentCardResolver({ fetchImpl: fetch }).resolve('http://agent.test');
            equal(requests[0].url, 'http://agent.test/.well-known/agent-card.json', 'url');
            equal(sdk.AgentCard.fromJSON(sdk.AgentCard.toJSON(sdk.AgentCard.fromJSON(got.securitySchemes ? sdk.AgentCard.toJSON(got) : got))),
                sdk.AgentCard.fromJSON(inDialect(name, own)), 'card');
        });
    }
}

test("a2a-js 1's client factory finds its transport in our card and talks through it", async () => {
    const newCard = { ...inDialect('card as small as can be', own), supportedInterfaces: [{ url: 'http://agent.test/r', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }] };
    const { fetch, requests } = fakeFetch(({ url }) => ({
        body: url.endsWith('agent-card.json') ? convert(own, own, newCard) : convert(oldRest, own, inDialect('send response with a message', oldRest), { object: 'send-response' }),
    }));
    const factory = new ClientFactory({ transports: [new RestTransportFactory({ fetchImpl: fetch })], cardResolver: new DefaultAgentCardResolver({ fetchImpl: fetch }) });
    const client = await factory.createFromUrl('http://agent.test');
    const got = await client.sendMessage(sdk.SendMessageRequest.fromJSON(inDialect('send request that waits', own)));
    equal(got, sdk.Message.fromJSON(inDialect('message of the agent, as small as can be', own)), 'answer');
    equal(requests[1].url, 'http://agent.test/r/message:send', 'url');
});

// ---- the 0.3 side of the 1.x SDK ----------------------------------------------------------------------------

test("a2a-js 1's resolver for older cards reads our 0.3 card", async () => {
    const name = 'card with everything';
    const { fetch } = fakeFetch(() => ({ body: convert(own, old, inDialect(name, own)) }));
    const got = await new DefaultAgentCardResolver({ fetchImpl: fetch, legacyCompat: { enabled: true } }).resolve('http://agent.test');
    const expected = inDialect(name, own);
    for (const i of expected.supportedInterfaces.slice(1)) i.protocolVersion = '0.3'; // what this reader makes of them
    same(sdk.AgentCard.toJSON(got), expected, 'card');
});

for (const [binding, factory, from] of [['JSONRPC', JsonRpcTransportFactory, old], ['HTTP+JSON', RestTransportFactory, oldRest]]) {
    test(`a2a-js 1's transport for older agents over ${binding}: our request and answer`, async () => {
        const name = 'send response with a task';
        const url = 'http://agent.test/x';
        const oldCard = sdk.AgentCard.fromJSON({ ...inDialect('card as small as can be', own), supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: '0.3' }] });
        const { fetch, requests } = fakeFetch(({ json }) => ({
            body: json.jsonrpc
                ? convert(own, from, { jsonrpc: '2.0', id: json.id, result: inDialect(name, own) })
                : convert(own, from, inDialect(name, own), { object: 'send-response' }),
        }));
        const transport = await new factory({ fetchImpl: fetch, legacyCompat: { enabled: true } }).create(url, oldCard);
        const request = sdk.SendMessageRequest.fromJSON(inDialect('send request that waits', own));
        const got = await transport.sendMessage(request);
        equal([got.id, got.status.state, got.history.length, got.artifacts[0].artifactId], ['t-1', sdk.TaskState.TASK_STATE_COMPLETED, 2, 'a-1'], 'task');
        equal(got.status.timestamp, '2026-01-02T03:04:05.678Z', 'timestamp');
        const { body, json } = requests[0];
        const asked = convertJson(from, own, body);
        equal((json.jsonrpc ? asked.params : asked).message.parts.map((p) => Object.keys(p)[0]), ['text', 'text', 'raw', 'url', 'data'], 'parts');
    });
}

await run();
