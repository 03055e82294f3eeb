// POST /ai-sdk and its routes byte by byte: refusals, wrong types at every field, callers that leave after any frame.
import { randomUUID } from 'node:crypto';
import { check, equal, run, test, until } from '../server/node/lib/tap.mjs';
import { agents, start } from './lib/chat.mjs';

const server = await start();
const api = `${server.url}/ai-sdk`;
const user = (text, id = randomUUID()) => ({ id, role: 'user', parts: [{ type: 'text', text }] });
const body = (text, more = {}) => ({ id: randomUUID(), messages: [user(text)], trigger: 'submit-message', ...more });
const post = (what, headers = {}) =>
    fetch(api, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: typeof what === 'string' ? what : JSON.stringify(what) });

test('the stream is as the SDK wants it', async () => {
    const r = await post(body('echo x'));
    const headers = ['content-type', 'x-vercel-ai-ui-message-stream', 'cache-control', 'x-accel-buffering'];
    equal(headers.map((h) => r.headers.get(h)), ['text/event-stream', 'v1', 'no-cache', 'no'], 'headers');
    const text = await r.text();
    check(text.endsWith('data: [DONE]\n\n'), text.slice(-200));
    const frames = text.slice(0, -2).split('\n\n');
    for (const f of frames) check(/^data: .*(\nid: \d+)?$/.test(f), f);
    const ids = frames.flatMap((f) => /\nid: (\d+)$/.exec(f)?.slice(1) ?? []).map(Number);
    check(ids.length > 3 && ids.every((n, i) => !i || n > ids[i - 1]), `ids: ${ids}`);
});

test('what is not taken is refused, in words', async () => {
    const at = (path, method, more = {}) => fetch(server.url + path, { method, ...more });
    for (const [path, method, allow] of [['/ai-sdk', 'GET', 'POST, OPTIONS'], ['/ai-sdk/x/stream', 'POST', 'GET, DELETE, OPTIONS'],
        ['/ai-sdk/x/cancel', 'GET', 'POST, OPTIONS'], ['/ai-sdk/x/messages', 'DELETE', 'GET, HEAD, OPTIONS']]) {
        const r = await at(path, method);
        equal([r.status, r.headers.get('allow'), await r.text()], [405, allow, `this address takes ${allow}`], `${method} ${path}`);
    }
    equal((await at('/ai-sdk/x', 'GET')).status, 404, 'an unknown path');
    equal((await at('/ai-sdk/%ff/messages', 'GET')).status, 400, 'an id that is not UTF-8');
    equal((await at('/agents/nobody/ai-sdk', 'POST')).status, 404, 'an unknown agent');
    const plain = await post(body('x'), { 'content-type': 'text/plain' });
    equal([plain.status, plain.headers.get('content-type')], [415, 'text/plain; charset=utf-8'], 'another media type');
    equal((await post('{"id":')).status, 400, 'no JSON');
    equal((await post('')).status, 400, 'no body');
    equal((await post({ ...body('x'), id: 'x'.repeat(2000) })).status, 400, 'an id that is too long');
    const far = await fetch(api, { method: 'POST', headers: { 'content-type': 'application/json', origin: 'https://evil.example' }, body: JSON.stringify(body('x')) });
    equal([far.status, far.headers.get('content-type')], [403, 'text/plain; charset=utf-8'], 'a page of another origin');
});

test('an id of a chat may hold anything', async () => {
    const id = 'a/b %?#ü\u0001"';
    await (await post(body('echo x', { id }))).text();
    const saved = await (await fetch(`${api}/${encodeURIComponent(id)}/messages`)).json();
    equal(saved.length, 2, 'messages');
});

test('a reader that counts goes on where it was', async () => {
    const b = body('slow 600', { id: randomUUID() });
    const slow = `${server.url}/agents/slow/ai-sdk`;
    const first = await fetch(slow, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(b) });
    const reader = first.body.getReader();
    let seen = '';
    while (!/"text-delta"[^\n]*\nid: \d+\n\n/.test(seen)) seen += Buffer.from((await reader.read()).value);
    await reader.cancel();
    const last = seen.match(/^id: (\d+)$/gm).at(-1).slice(4);
    const again = await fetch(`${slow}/${b.id}/stream`, { headers: { 'last-event-id': last } });
    const more = again.body.getReader();
    let rest = '';
    while (!/^id: \d+$/m.test(rest)) rest += Buffer.from((await more.read()).value);
    check(!rest.includes('"start"') && Number(/^id: (\d+)$/m.exec(rest)[1]) > Number(last), rest);
    equal((await fetch(`${slow}/${b.id}/cancel`, { method: 'POST' })).status, 200, 'cancel');
    while (!(await more.read()).done);
});

// ---- wrong types -------------------------------------------------------------------------------------------------

const whole = () => ({
    id: randomUUID(), trigger: 'submit-message', messageId: 'u2', tools: { f: { description: 'd', parameters: { type: 'object' } } }, extra: 1,
    messages: [
        { id: 's', role: 'system', parts: [{ type: 'text', text: 'Be kind' }] },
        { id: 'u1', role: 'user', metadata: { a: 1 }, parts: [{ type: 'text', text: 'hi' }, { type: 'file', mediaType: 'text/plain', filename: 'a', url: 'data:text/plain;base64,aGk=' }] },
        { id: 'a1', role: 'assistant', parts: [
            { type: 'step-start' }, { type: 'reasoning', text: 'hm' }, { type: 'text', text: 'x', state: 'done', providerMetadata: { dragoman: { instead: true } } },
            { type: 'tool-f', toolCallId: '1', state: 'output-available', input: { q: 1 }, output: { n: 2 }, providerExecuted: true },
            { type: 'dynamic-tool', toolName: 'g', toolCallId: '2', state: 'approval-responded', input: {}, approval: { id: 'p', approved: true, reason: 'r' } },
            { type: 'data-a2a-status', id: 'status', data: { state: 'working', text: 't' } }, { type: 'data-activity', data: { activityType: 'x', content: {} } },
            { type: 'source-url', sourceId: 's', url: 'https://x' }] },
        { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'echo y' }] }],
});
const wrong = [null, true, 7, '', 'word', [], [1], {}, { x: [{}] }];

/** The path of every value in it. */
function* paths(v, at = []) {
    if (at.length) yield at;
    if (v && typeof v === 'object') for (const k of Object.keys(v)) yield* paths(v[k], [...at, k]);
}

test('wrong types at every field: a sentence that says where, or an answer', async () => {
    const seen = { 200: 0, 400: 0 };
    for (const path of paths(whole())) {
        await Promise.all([...wrong, undefined].map(async (value) => {
            const b = whole();
            const parent = path.slice(0, -1).reduce((v, k) => v[k], b);
            if (value === undefined) delete parent[path.at(-1)];
            else parent[path.at(-1)] = value;
            const r = await post(b);
            const text = await r.text();
            const what = `${path.join('/')} = ${JSON.stringify(value)}`;
            check(r.status in seen, () => `${what}: ${r.status} ${text}`);
            seen[r.status]++;
            if (r.status === 400) check(r.headers.get('content-type').startsWith('text/plain') && /\(at \/|expected|nothing/.test(text), () => `${what}: ${text}`);
            else check(text.endsWith('data: [DONE]\n\n'), () => `${what}: ${text.slice(-300)}`);
        }));
    }
    check(seen[200] > 100 && seen[400] > 100, `answers: ${JSON.stringify(seen)}`);
    for (const value of wrong) check([400, 200].includes((await post(JSON.stringify(value))).status), 'the whole body');
});

test('a conversation with very many tools is read in time', async () => {
    const parts = Array.from({ length: 1000 }, (_, i) => ({ type: 'tool-f', toolCallId: `${i}`, state: 'output-available', input: {}, output: 1 }));
    const messages = Array.from({ length: 50 }, (_, n) => ({ id: `a${n}`, role: 'assistant', parts: parts.map((p) => ({ ...p, toolCallId: `${n}-${p.toolCallId}` })) }));
    const r = await post({ id: randomUUID(), messages: [user('x'), ...messages] });
    equal(r.status, 200, 'the status');
    await r.text();
});

// ---- leaving -------------------------------------------------------------------------------------------------------

/** Reads k frames and goes; gives what there was. */
async function leaveAfter(k, url, b) {
    const gone = new AbortController();
    const r = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(b), signal: gone.signal });
    const reader = r.body.getReader();
    let text = '';
    for (let piece; text.split('\n\n').length <= k && !(piece = await reader.read()).done;) text += Buffer.from(piece.value);
    gone.abort();
    return text;
}

async function ends(base, context) {
    const r = await fetch(`${base}/tasks?contextId=${context}`, { headers: { 'A2A-Version': '1.0' } });
    const { tasks } = await r.json();
    return tasks.length && tasks.every((t) => !/SUBMITTED|WORKING/.test(t.status.state)) && tasks.map((t) => t.status.state).join();
}

/** What is posted where, in a context of its own. */
const ways = {
    'ai-sdk': (script, c) => ['/ai-sdk', body(script, { id: c })],
    'simple/ag-ui': (script, c) => ['/simple/ag-ui', { threadId: c, runId: 'r', state: {}, tools: [], context: [], forwardedProps: {}, messages: [{ id: 'u', role: 'user', content: script }] }],
    'simple/responses': (script, c) => ['/simple/responses', { conversation: c, input: script }],
};

for (const setting of ['continue', 'cancel'])
    for (const [name, way] of Object.entries(ways))
        test(`callers of ${name} that leave after any frame leave no task behind (${setting})`, async () => {
            const all = (value) => ({ 'ai-sdk': value, 'ag-ui': value, responses: value });
            const other = await start({ agents: agents.map((a) => (a.id === 'demo' ? { ...a, settings: { pace: 0.2 } } : a)), on_disconnect: all(setting), disconnect_grace_s: all(0) });
            const states = new Set();
            for (const script of ['tools', 'status', 'client-tool', 'break', 'ask']) {
                const ask = (k, c) => leaveAfter(k, other.url + way(script, c)[0], way(script, c)[1]);
                const frames = (await ask(Infinity, randomUUID())).split('\n\n').length;
                await Promise.all(Array.from({ length: frames }, async (_, k) => {
                    const context = randomUUID();
                    await ask(k, context);
                    states.add(await until(() => ends(other.url, context), `${script}, left after ${k} frames`));
                }));
            }
            equal(states.has('TASK_STATE_CANCELED'), setting === 'cancel', `canceled ones among ${[...states]}`);
            await other.stop();
        });

await run(() => server.stop());
