// Bodies that are no RunAgentInput: every member of one with everything of another type, held against the schema that is
// published with the client. What it refuses is refused with a pointer, what it takes runs.
import { RunAgentInputSchema } from '@ag-ui/core/schemas';
import { check, equal, run as runTests, test } from '../server/node/lib/tap.mjs';
import { input, post, server, stopAll } from './lib/front.mjs';

const source = { type: 'url', value: 'https://example.com/a', mimeType: 'image/png' };
const whole = () => JSON.parse(JSON.stringify(input({
    parentRunId: 'p',
    state: { a: 1 },
    tools: [{ name: 't', description: 'd', parameters: { type: 'object' }, metadata: { m: 1 } }],
    context: [{ description: 'd', value: 'v' }],
    forwardedProps: { f: 1 },
    resume: [{ interruptId: 'nobody', status: 'resolved', payload: { p: 1 }, metadata: { m: 1 } }],
    messages: [
        { id: 's', role: 'system', content: 'Be brief.', name: 'n' },
        { id: 'd', role: 'developer', content: 'Be kind.' },
        { id: 'u1', role: 'user', content: 'hi', name: 'n', metadata: { m: 1 }, encryptedValue: 'e', subagentRunId: 's' },
        { id: 'r', role: 'reasoning', content: 'hm', encryptedValue: 'e' },
        { id: 'a', role: 'assistant', content: 'x', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, encryptedValue: 'e', metadata: { m: 1 } }] },
        { id: 't', role: 'tool', toolCallId: 'c', content: 'ok', error: 'e' },
        { id: 't2', role: 'tool', toolCallId: 'c', content: [{ type: 'text', text: 'ok' }] },
        { id: 'v', role: 'activity', activityType: 'y', content: { z: 1 } },
        {
            id: 'u2', role: 'user', content: [{ type: 'text', text: 'hi', id: 'i', metadata: { m: 1 } }, { type: 'image', source, id: 'i', metadata: { filename: 'a' } },
                { type: 'audio', source: { type: 'data', value: 'aGk=', mimeType: 'audio/wav' } }, { type: 'video', source }, { type: 'document', source: { type: 'file', value: 'f', provider: 'p', mimeType: 'a/b' } }],
        },
    ],
})));
const others = [null, true, 5, 1.5, 'x', [], {}, [1], { a: 1 }];
const kind = (v) => (v === null ? 'null' : Array.isArray(v) ? 'array' : typeof v);

/** The paths of all values in it. */
function* paths(value, path = []) {
    if (path.length) yield path;
    if (value && typeof value === 'object') for (const key of Object.keys(value)) yield* paths(value[key], [...path, key]);
}
const at = (value, path) => path.reduce((v, key) => v[key], value);

/** A whole one with another value there; undefined: with none. */
function changed(path, value) {
    const body = whole();
    const holder = at(body, path.slice(0, -1));
    if (value !== undefined) holder[path.at(-1)] = value;
    else if (Array.isArray(holder)) holder.splice(Number(path.at(-1)), 1);
    else delete holder[path.at(-1)];
    return body;
}

/**
 * Where we differ from the schema, on purpose: null is absent (serializers of old peers write it), unions that we do not know are
 * ignored, as the client ignores ours, and a call without a type is a function call.
 */
function differs(path, value) {
    const name = path.at(-1);
    if (value === null) return true;
    if (['role', 'type'].includes(name) && value === 'x') return true;
    return value === undefined && name === 'type' && path.includes('toolCalls');
}

const pointer = (path) => path.map((key) => `/${key}`).join('');
const related = (a, b) => a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);

async function judge(path, value) {
    const body = changed(path, value);
    const fits = RunAgentInputSchema.safeParse(body).success;
    const response = await post(body);
    const text = await response.text();
    const what = `${pointer(path)} = ${JSON.stringify(value) ?? 'nothing'}`;
    check([200, 400].includes(response.status), `${what}: status ${response.status} ${text}`);
    if (response.status === 400) {
        const { error } = JSON.parse(text);
        check(error.message && related(error.pointer, pointer(path)), `${what}: ${text}`);
        check(!fits || differs(path, value), `${what} is refused, the schema takes it: ${text}`);
    } else {
        check(fits || differs(path, value), `${what} is taken, the schema refuses it`);
        check(/"type":"RUN_(FINISHED|ERROR)"/.test(text), `${what}: no end in ${text.slice(-300)}`);
    }
}

for (const key of Object.keys(whole())) {
    test(`wrong values at every member of ${key}`, async () => {
        const cases = [...paths(whole())].filter((p) => p[0] === key)
            .flatMap((p) => [undefined, ...others.filter((v) => kind(v) !== kind(at(whole(), p)))].map((v) => [p, v]));
        check(cases.length > 5, 'there are cases');
        for (let i = 0; i < cases.length; i += 8) await Promise.all(cases.slice(i, i + 8).map(([p, v]) => judge(p, v)));
    });
}

test('invalid bodies', async () => {
    for (const [body, status] of [['', 400], ['{', 400], ['[]', 400], ['null', 400], ['"x"', 400], ['{}', 400], ['{"threadId":"\\ud800"}', 400],
        [`{"threadId":"t","runId":"r","messages":${'['.repeat(10000)}`, 400], ['{"threadId":"a","threadId":"b"}', 400]]) {
        const response = await post(body);
        equal(response.status, status, `the status of ${body.slice(0, 40)}`);
        check((await response.json()).error.message, 'an error');
    }
});

test('invalid ids', async () => {
    for (const [key, value] of [['threadId', ''], ['runId', ''], ['threadId', 'x'.repeat(2000)], ['runId', 'x'.repeat(2000)]]) {
        const response = await post({ ...whole(), [key]: value });
        equal([response.status, (await response.json()).error.pointer], [400, `/${key}`], 'the error');
    }
});

test('content types, sizes and methods', async () => {
    const { url } = await server('go_on');
    const body = JSON.stringify(whole());
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data', 'application/jsonx'])
        equal((await post(body, { headers: { 'Content-Type': type } })).status, 415, `the status of ${type}`);
    equal((await post(body, { headers: { 'Content-Type': 'application/json; charset=utf-8' } })).status, 200, 'a charset');
    const huge = await post(`{"threadId":"${'x'.repeat(64 << 20)}"}`).catch((error) => error);
    check(huge.status === 413 || huge instanceof TypeError, `64 MiB: ${huge.status}`);
    for (const [path, method, allow] of [['/ag-ui', 'GET', 'POST, OPTIONS'], ['/ag-ui', 'DELETE', 'POST, OPTIONS'], ['/ag-ui/connect', 'GET', 'POST, OPTIONS'],
        ['/ag-ui/capabilities', 'POST', 'GET, HEAD, OPTIONS'], ['/ag-ui/threads/t/messages', 'PUT', 'GET, HEAD, OPTIONS']]) {
        const response = await fetch(url + path, { method });
        equal([response.status, response.headers.get('allow')], [405, allow], `${method} ${path}`);
        check((await response.json()).error.message, 'an error');
    }
    const nothing = await fetch(`${url}/ag-ui/nothing`, { method: 'POST', body: '{}', headers: { 'Content-Type': 'application/json' } });
    equal([nothing.status, (await nothing.json()).error.code], [404, 404], 'an unknown path');
    equal((await fetch(`${url}/agents/nobody/ag-ui`, { method: 'POST', body, headers: { 'Content-Type': 'application/json' } })).status, 404, 'an unknown agent');
});

test('pages of other origins are refused', async () => {
    const foreign = await post(whole(), { headers: { Origin: 'https://example.com' } });
    equal(foreign.status, 403, 'a foreign origin');
    const { url } = await server('go_on');
    const preflight = await fetch(`${url}/ag-ui`, {
        method: 'OPTIONS', headers: { Origin: 'http://localhost:3000', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,accept,last-event-id' },
    });
    equal([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, 'http://localhost:3000'], 'a page of ours may ask');
    const asked = await post({}, { headers: { Origin: 'http://localhost:3000' } });
    equal([asked.status, asked.headers.get('access-control-allow-origin')], [400, 'http://localhost:3000'], 'it may read errors');
});

test('capabilities have the published shape', async () => {
    const { AgentCapabilitiesSchema } = await import('@ag-ui/core/schemas');
    const { url } = await server('go_on');
    for (const [path, tools] of [['', true], ['/agents/hello', false], ['/agents/gate', undefined]]) {
        const found = await (await fetch(`${url}${path}/ag-ui/capabilities`)).json();
        equal(AgentCapabilitiesSchema.parse(found), found, `what the schema makes of ${path}`);
        equal(found.tools?.supported, tools, 'tools');
        equal([found.transport.streaming, found.transport.httpBinary], [true, true], 'the transport');
    }
});

await runTests(stopAll);
