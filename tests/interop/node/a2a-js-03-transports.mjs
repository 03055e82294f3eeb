// The clients of @a2a-js/sdk 0.3.x over JSON-RPC and REST: their requests are read by us, our answers
// by them.
import {
    A2AClient, ClientFactory, DefaultAgentCardResolver, JsonRpcTransport, JsonRpcTransportFactory, RestTransport,
} from 'a2a-js-0.3/client';
import * as sdkErrors from 'a2a-js-0.3/client';
import {
    collect, convert, convertJson, equal, errors, failure, fakeFetch, inDialect, kindOf, methods, objectsOf, run, same, sse, streams, test,
} from './lib/interop.mjs';

const next = 'a2a-1.0';
const own = 'a2a-0.3';
const ownRest = 'a2a-0.3-rest';

const jsonRpc = (fetch) => new JsonRpcTransport({ endpoint: 'http://agent.test/rpc', fetchImpl: fetch });
const rest = (fetch) => new RestTransport({ endpoint: 'http://agent.test/rest', fetchImpl: fetch });

const calls = {
    send: 'sendMessage',
    'send, answered by a message': 'sendMessage',
    get: 'getTask',
    cancel: 'cancelTask',
    'push set': 'setTaskPushNotificationConfig',
    'push get': 'getTaskPushNotificationConfig',
    'push list': 'listTaskPushNotificationConfig',
    'push delete': 'deleteTaskPushNotificationConfig',
    'extended card': 'getExtendedAgentCard',
};
const argumentsOf = (call) => (methods[call].params ? [inDialect(methods[call].params, own)] : []);

/** What this SDK's REST client keeps: it has no room for these members. */
function restView(value, key = '') {
    if (Array.isArray(value)) return value.map((v) => restView(v, key));
    if (value === null || typeof value !== 'object' || ['metadata', 'data', 'params', 'header'].includes(key)) return value;
    const lost = new Set();
    if (key === 'file') lost.add('name');
    if (['text', 'file', 'data'].includes(value.kind)) lost.add('metadata');
    if ('artifactId' in value) lost.add('extensions');
    if (value.kind === 'artifact-update') lost.add('append');
    if ('protocolVersion' in value) lost.add('iconUrl');
    return Object.fromEntries(Object.entries(value).filter(([k]) => !lost.has(k)).map(([k, v]) => [k, restView(v, k)]));
}
/** The same for what it writes, in the REST dialect. */
function restWritten(value, key = '') {
    if (Array.isArray(value)) return value.map((v) => restWritten(v, key));
    if (value === null || typeof value !== 'object' || ['metadata', 'header'].includes(key)) return value;
    const lost = new Set();
    if (key === 'file') lost.add('name');
    if (key === 'content') lost.add('metadata');
    return Object.fromEntries(
        Object.entries(value).filter(([k]) => !lost.has(k)).map(([k, v]) => [k, key === 'content' && k === 'data' ? v : restWritten(v, k)]));
}

// ---- JSON-RPC ----------------------------------------------------------------------------------------------

for (const from of [next, ownRest]) {
    for (const [call, method] of Object.entries(calls)) {
        const { params, result } = methods[call];
        test(`a2a-js 0.3's JSON-RPC client: ${call}, its request read by us into ${from}, our answer by it`, async () => {
            const { fetch, requests } = fakeFetch(({ json: { id } }) => {
                if (from === next)
                    return { body: convert(next, own, { jsonrpc: '2.0', id, result: result && inDialect(result, next) }, { object: result ? kindOf(result) : 'empty' }) };
                const bare = result ? convertJson(from, own, inDialect(result, from), { object: kindOf(result) }) : null;
                return { body: JSON.stringify({ jsonrpc: '2.0', id, result: bare }) };
            });
            const got = await jsonRpc(fetch)[method](...argumentsOf(call));
            if (result) same(got, inDialect(result, own), 'answer');

            const { body, json } = requests[0];
            const asked = convertJson(own, from, body);
            if (from === next) {
                equal([asked.jsonrpc, asked.id, asked.method], ['2.0', json.id, methods[call][next]], 'envelope');
                if (params) same(asked.params, inDialect(params, next), 'params');
                const back = convertJson(next, own, asked);
                equal([back.id, back.method], [json.id, json.method], 'envelope back');
                same(back.params, json.params, 'params back');
            } else if (params && inDialect(params, from)) {
                same(asked, inDialect(params, from), 'params');
            }
        });
    }
}

for (const [what, names] of Object.entries(streams)) {
    const newStream = (id) => names.map((n) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: inDialect(n, next) })}\n\n`).join('');
    for (const [method, call] of [['sendMessageStream', 'stream'], ['resubscribeTask', 'subscribe']]) {
        test(`a2a-js 0.3's JSON-RPC client: ${method} reads our stream of ${what}`, async () => {
            const { fetch, requests } = fakeFetch(({ json }) => ({ type: sse, body: convert(next, own, newStream(json.id)) }));
            same(await collect(jsonRpc(fetch)[method](...argumentsOf(call))), names.map((n) => inDialect(n, own)), 'events');
            const asked = convertJson(own, next, requests[0].body);
            equal(asked.method, methods[call][next], 'method');
            same(asked.params, inDialect(methods[call].params, next), 'params');
        });
    }
    test(`a2a-js 0.3's REST client reads our stream of ${what}`, async () => {
        const theirs = names.map((n) => `data: ${JSON.stringify(inDialect(n, next))}\r\n\r\n: ping\r\n\r\n`).join('');
        const { fetch, requests } = fakeFetch(() => ({ type: sse, body: convert(next, ownRest, theirs) }));
        const got = await collect(rest(fetch).sendMessageStream(...argumentsOf('stream')));
        same(got, names.map((n) => restView(inDialect(n, own))), 'events');
        same(convertJson(ownRest, next, requests[0].body), convertJson(ownRest, next, restWritten(inDialect(methods.stream.params, ownRest))), 'request');
    });
    test(`a2a-js 0.3's REST client reads our stream of ${what}, made of JSON lines of ${own}`, async () => {
        const theirs = names.map((n) => `${JSON.stringify(inDialect(n, own))}\n`).join('');
        const { fetch } = fakeFetch(() => ({ type: sse, body: convert(own, ownRest, theirs, { frame: 'sse' }) }));
        same(await collect(rest(fetch).resubscribeTask({ id: 't-1' })), names.map((n) => restView(inDialect(n, own))), 'events');
    });
}

test('a2a-js 0.3 sees our stream end where it should: final is set on the last status alone', async () => {
    const states = ['WORKING', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'COMPLETED', 'FAILED', 'CANCELED', 'REJECTED', 'SUBMITTED'];
    const { fetch } = fakeFetch(({ json: { id } }) => ({
        type: sse,
        body: convert(next, own, states.map((s) =>
            `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: `TASK_STATE_${s}` } } } })}\n\n`).join('')),
    }));
    const got = await collect(jsonRpc(fetch).sendMessageStream(...argumentsOf('stream')));
    equal(got.map((e) => e.final), [false, true, false, true, true, true, true, false], 'final');
});

for (const e of errors) {
    const name = e.class === 'ExtendedAgentCardNotConfiguredError' ? 'AuthenticatedExtendedCardNotConfiguredError' : e.class;
    const info = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: e.reason, domain: 'a2a-protocol.org', metadata: { taskId: 't-9' } }];

    test(`a2a-js 0.3's JSON-RPC client: our ${name} is its own`, async () => {
        const { fetch } = fakeFetch(({ json: { id } }) => ({ body: convert(next, own, { jsonrpc: '2.0', id, error: { code: e.code, message: `${e.message}: 7`, data: info } }) }));
        const error = await failure(jsonRpc(fetch).getTask({ id: 't' }));
        equal([error instanceof sdkErrors[name], error.errorResponse.error.message, error.errorResponse.error.code], [true, `${e.message}: 7`, e.code], 'error');
    });
    test(`a2a-js 0.3's REST client: our ${name} is its own`, async () => {
        const { fetch } = fakeFetch(() => ({ status: e.http, body: convert(next, ownRest, { error: { code: e.http, status: e.status, message: `${e.message}: 7`, details: info } }) }));
        const error = await failure(rest(fetch).getTask({ id: 't' }));
        equal([error instanceof sdkErrors[name], error.message], [true, `${e.message}: 7`], 'error');
    });
}

test("a2a-js 0.3's JSON-RPC client: an error in the middle of our stream is its own", async () => {
    const { fetch } = fakeFetch(({ json: { id } }) => ({
        type: sse,
        body: convert(next, own,
            `data: ${JSON.stringify({ jsonrpc: '2.0', id, result: inDialect('stream response with a task', next) })}\n\n` +
            `event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'broken' } })}\n\n`),
    }));
    const got = [];
    const error = await failure((async () => {
        for await (const event of jsonRpc(fetch).sendMessageStream(...argumentsOf('stream'))) got.push(event);
    })());
    equal([got.length, got[0]?.kind, error.cause.errorResponse.error.code], [1, 'task', -32603], 'error');
});

test("a2a-js 0.3's REST client: an error in the middle of our stream is its own", async () => {
    const { fetch } = fakeFetch(() => ({
        type: sse,
        body: convert(next, ownRest,
            `data: ${JSON.stringify(inDialect('stream response with a task', next))}\n\n` +
            `event: error\ndata: ${JSON.stringify({ error: { code: 404, status: 'NOT_FOUND', message: 'gone', details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }] } })}\n\n`),
    }));
    const got = [];
    const error = await failure((async () => {
        for await (const event of rest(fetch).sendMessageStream(...argumentsOf('stream'))) got.push(event);
    })());
    equal([got.length, error instanceof sdkErrors.TaskNotFoundError, error.message], [1, true, 'gone'], 'error');
});

// ---- REST ------------------------------------------------------------------------------------------------

for (const from of [next, own]) {
    for (const [call, method] of Object.entries(calls)) {
        const { params, result } = methods[call];
        test(`a2a-js 0.3's REST client: ${call}, its body read by us into ${from}, our answer by it`, async () => {
            const { fetch, requests } = fakeFetch(() => ({
                body: convert(from, ownRest, result ? inDialect(result, from) : {}, { object: result ? kindOf(result) : 'empty' }),
            }));
            const got = await rest(fetch)[method](...argumentsOf(call));
            if (result) same(got, restView(inDialect(result, own)), 'answer');
            else equal(convertJson(from, ownRest, {}, { object: 'empty' }), {}, 'answer');
            const { body } = requests[0];
            if (!body) return;
            const asked = convertJson(ownRest, from, body);
            const lossy = restWritten(inDialect(params, ownRest));
            same(asked, convertJson(ownRest, from, lossy), 'request');
            if (from === next && call.startsWith('send')) equal(asked.message.parts.length, 5, 'parts');
            same(convertJson(from, ownRest, asked), lossy, 'request back');
        });
    }
}

// Every object that a REST answer can hold, each in the place where the client reads it.
for (const { name, object } of objectsOf(ownRest)) {
    const method = { task: 'getTask', card: 'getExtendedAgentCard', 'push-config': 'getTaskPushNotificationConfig' }[object];
    if (!method) continue;
    test(`a2a-js 0.3's REST client reads our ${name}`, async () => {
        const { fetch } = fakeFetch(() => ({ body: convert(next, ownRest, inDialect(name, next), { object }) }));
        same(await rest(fetch)[method]({ id: 't-1', pushNotificationConfigId: 'p-1' }), restView(inDialect(name, own)), name);
    });
}

// ---- cards -------------------------------------------------------------------------------------------------

for (const [from, to] of [[next, own], [ownRest, own], [next, ownRest], [own, ownRest]]) {
    test(`a2a-js 0.3's card resolver reads our card, ${to} made from ${from}`, async () => {
        const name = 'card with everything';
        const { fetch } = fakeFetch(() => ({ body: convert(from, to, inDialect(name, from)) }));
        const got = await new DefaultAgentCardResolver({ fetchImpl: fetch }).resolve('http://agent.test');
        same(got, to === ownRest ? restView(inDialect(name, own)) : inDialect(name, own), 'card');
    });
}

test("a2a-js 0.3's clients find their transport in our card and talk through it", async () => {
    const name = 'card with everything';
    const answer = ({ url, json }) => ({
        body: url.endsWith('agent-card.json')
            ? convert(next, own, inDialect(name, next))
            : convert(next, own, { jsonrpc: '2.0', id: json.id, result: inDialect('send response with a message', next) }),
    });
    const [a, b] = [fakeFetch(answer), fakeFetch(answer)];
    const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl: a.fetch })], cardResolver: new DefaultAgentCardResolver({ fetchImpl: a.fetch }) });
    const request = inDialect('send request that waits', own);
    const expected = inDialect('message of the agent, as small as can be', own);
    same(await (await factory.createFromUrl('http://agent.test')).sendMessage(request), expected, 'answer');
    equal(a.requests[1].url, 'https://agent.example.com/rpc', 'url');
    const client = await A2AClient.fromCardUrl('http://agent.test/.well-known/agent-card.json', { fetchImpl: b.fetch });
    same((await client.sendMessage(request)).result, expected, 'answer to A2AClient');
});

await run();
