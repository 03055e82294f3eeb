// Runs of graphs in a worker: the acceptance list of the mapping, with the real LangGraph and a stand-in for the server.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Store, message, newThread, start, textOf } from './lib.mjs';

const NAMES = ['chat', 'plain', 'rewrapped', 'twoCalls', 'tools', 'subgraph', 'parallel', 'emits', 'outbox', 'strict', 'narrow', 'inbox', 'ask', 'toolAsks', 'askTwice', 'askMany', 'askInside',
    'breakpoint', 'slow', 'cpu', 'bad', 'loop', 'large', 'ownSaver', 'list', 'blocks', 'chunkInState'];
const driver = await start(NAMES);
after(() => driver.close());

const run = (agent, params, thread = newThread()) => driver.run({ agent, thread, ...params });
const chunks = (r) => textOf(driver.eventsOf(r.id));
const texts = (result) => result.messages.map((m) => m.content);
const rejects = (promise, code, text) => assert.rejects(promise, (e) => e.code === code && text.test(e.message));

test('tokens are streamed, then the run completes', async () => {
    const r = run('chat', message('hi')), result = await r;
    assert.equal(result.status, 'completed');
    assert.equal(chunks(r), 'Hello there');
    assert.deepEqual(texts(result), ['Hello there']);
    assert.equal(result.messages[0].chunk, undefined, 'chunks in the state are messages');
    assert.deepEqual(driver.eventsOf(r.id).map((e) => e.seq), driver.eventsOf(r.id).map((_, i) => i), 'seq is dense');
    const [first] = driver.eventsOf(r.id, 'messages');
    assert.deepEqual([first.ns, first.data.node, first.data.step, first.data.src.startsWith('chat:')], [[], 'chat', 1, true]);
});

test('the worker asks for all four stream modes: updates and custom values arrive, values only if they are requested [R003-19]', async () => {
    const r = run('chat', message('hi')), forwarded = run('chat', { ...message('hi'), forward: ['values'] });
    await Promise.all([r, forwarded]);
    assert.deepEqual(driver.eventsOf(r.id, 'updates').map((e) => e.data), [{ nodes: ['chat'] }, { nodes: ['post'] }]);
    assert.equal(driver.eventsOf(r.id, 'values').length, 0);
    const values = driver.eventsOf(forwarded.id, 'values');
    assert.equal(values[values.length - 1].data.n, 1);
    assert.equal(values[values.length - 1].data.messages[1].content, 'Hello there');
});

test('a graph without a model', async () => {
    const r = run('plain', message('x')), result = await r;
    assert.deepEqual(texts(result), ['You wrote: x']);
    assert.equal(chunks(r), '');
});

test('a message that repeats streamed text is not marked as a chunk', async () => {
    const r = run('rewrapped', message('x'));
    await r;
    const full = driver.eventsOf(r.id, 'messages').filter((e) => !e.data.message.chunk);
    assert.deepEqual(full.map((e) => e.data.message.content), ['twice']);
    assert.equal(chunks(r), 'twice');
    assert.equal(full[0].data.src, driver.eventsOf(r.id, 'messages')[0].data.src);
});

test('the end of each model call is marked, before the next one of the same node', async () => {
    const r = run('twoCalls', message('x'));
    await r;
    const seen = driver.eventsOf(r.id).map((e) => (e.type === 'updates' ? '|' : e.data.message.chunk_position === 'last' ? '.' : e.data.message.content));
    assert.equal(seen.join(''), 'first.second.|');
});

test('tool calls and results have their own members', async () => {
    const result = await run('tools', message('x'));
    assert.deepEqual(result.messages.map((m) => m.type), ['ai', 'tool', 'ai']);
    assert.deepEqual(result.messages[0].tool_calls.map(({ id, name, args }) => ({ id, name, args })), [{ id: 'c1', name: 'look_up', args: { city: 'Oslo' } }]);
    assert.equal(result.messages[1].tool_call_id, 'c1');
});

test('events of a subgraph have its namespace, and messages the namespace of their graph', async () => {
    const r = run('subgraph', message('x'));
    await r;
    const custom = driver.eventsOf(r.id, 'custom')[0], [chunk] = driver.eventsOf(r.id, 'messages');
    assert.match(custom.ns[0], /^outer:/);
    assert.deepEqual(chunk.ns, custom.ns);
    assert.ok(chunk.data.src.startsWith(`${chunk.ns[0]}|inner:`));
});

test('chunks of parallel nodes have different sources', async () => {
    const r = run('parallel', message('x'));
    await r;
    const bySource = Map.groupBy(driver.eventsOf(r.id, 'messages'), (e) => e.data.src);
    assert.deepEqual([...bySource.values()].map((list) => list.map((e) => e.data.message.content).join('')).sort(), ['aaaa', 'bbbb']);
});

test('the emit functions send their payloads as custom events; other values arrive as JSON [R003-28]', async () => {
    const r = run('emits', message('x'));
    await r;
    assert.deepEqual(driver.eventsOf(r.id, 'custom').map((e) => e.data.a2a ?? e.data), [
        { type: 'artifact', kind: 'file', name: 'file', mime_type: 'application/pdf', url: 'https://example.com/report.pdf', append: false, is_last_chunk: true },
        { type: 'artifact', kind: 'data', name: 'analysis', data: { status: 'success', results: [1, 2] }, append: false, is_last_chunk: true },
        { type: 'message', message: { type: 'ai', content: 'Processing complete', id: null } },
        { type: 'message', message: { type: 'ai', content: 'chunk', id: null, chunk: true } },
        { type: 'task_metadata', metadata: { progress: 100 } },
        { mine: [1, [null]] },
    ]);
});

test('an outbox counts only in the run that wrote it', async () => {
    const thread = newThread();
    const first = await run('outbox', message('message'), thread);
    assert.deepEqual([first.hasOutbox, first.outbox.messageId, first.outbox.parts[0].data], [true, 'out-1', { a: 1 }]);
    const second = await run('outbox', message('nothing'), thread);
    assert.deepEqual([second.hasOutbox, second.outbox], [false, null]);
    assert.equal((await run('outbox', message('task'), thread)).outbox.metadata.mine, 1);
    assert.deepEqual((await run('outbox', message('wrapped'), thread)).outbox, { parts: [{ text: 'wrapped' }] });
});

test('a schema that does not allow null: the outbox of the turn before is not sent again', async () => {
    const thread = newThread();
    assert.equal((await run('strict', message('out'), thread)).hasOutbox, true);
    assert.deepEqual(await run('strict', message('no'), thread).then((r) => [r.status, r.hasOutbox]), ['completed', false]);
});

test('keys are the names of the state; the ones that the input cannot write are not among them', async () => {
    const keysOf = (id) => driver.description.agents.find((a) => a.id === id).keys;
    assert.deepEqual(keysOf('chat'), ['messages', 'a2a_inbox', 'a2a_outbox', 'n']);
    assert.ok(!keysOf('narrow').includes('a2a_inbox'));
    assert.ok(driver.logs.some((l) => /narrow: a2a_inbox/.test(l.text)));
});

test('the inbox and the tools of the caller reach the node', async () => {
    const a2a_inbox = { task: { id: 't' }, message: { messageId: 'm', parts: [{ kind: 'text', text: 'x' }] }, metadata: { traceparent: '00-1' } };
    const { input } = message('x');
    const result = await run('inbox', { input: { ...input, a2a_inbox }, tools: [{ name: 'look_up', description: 'd', parameters: {} }], principal: 'ann', metadata: { k: 1 } });
    const seen = JSON.parse(texts(result)[0]);
    assert.deepEqual(seen.box, a2a_inbox);
    assert.deepEqual(seen.tools, ['look_up']);
    assert.deepEqual([seen.a2a.principal, seen.a2a.metadata], ['ann', { k: 1 }]);
});

test('messages of the input are LangChain objects, also in a state without a reducer', async () => {
    const result = await run('list', message('x'));
    assert.deepEqual(texts(result), ['injected', 'got human']);
});

test('content in blocks has one form', async () => {
    const result = await run('blocks', message('x'));
    assert.deepEqual(result.messages[0].content, [{ type: 'reasoning', reasoning: 'hm' }, { type: 'text', text: 'see ' },
        { type: 'image', base64: 'aGk=', mime_type: 'image/png' }, { type: 'text', text: 'this' }]);
});

test('a chunk that a node returned is a message in the result', async () => {
    const result = await run('chunkInState', message('x'));
    assert.deepEqual(result.messages, [{ type: 'ai', content: 'as chunk', id: 'ai-c' }]);
});

// ---- interrupts ----

test('an interrupt ends the run, with its value and the messages of the run; a resume goes on', async () => {
    const thread = newThread();
    const first = await run('ask', message('text'), thread);
    assert.deepEqual([first.status, first.next, first.interrupts.map((i) => i.value), texts(first)], ['interrupted', ['ask'], ['Your name?'], ['Let me ask']]);
    const second = await run('ask', { resume: { [first.interrupts[0].id]: 'Ann' }, input: { messages: [{ role: 'user', content: 'Ann', id: 'm-ann' }], a2a_inbox: { a: 1 }, a2a_outbox: null } }, thread);
    assert.equal(second.status, 'completed');
    assert.deepEqual(texts(second), ['Ann', 'Hello "Ann", inbox {"a":1}']);
    const state = await driver.request('state', { agent: 'ask', thread, values: true });
    assert.deepEqual(state.values.messages.map((m) => m.content), ['text', 'Let me ask', 'Ann', 'Hello "Ann", inbox {"a":1}']);
});

test('the answer to a question of a tool is not put between the call and its result', async () => {
    const thread = newThread(), { interrupts } = await run('toolAsks', message('x'), thread);
    const result = await run('toolAsks', { resume: { [interrupts[0].id]: 'yes' }, input: { ...message('yes').input, a2a_outbox: null } }, thread);
    assert.deepEqual([result.status, texts(result).pop()], ['completed', 'human ai tool']);
});

test('the value of an interrupt may be an object', async () => {
    const result = await run('ask', message('object'));
    assert.deepEqual(result.interrupts[0].value, { prompt: 'Your name?', a2a_state: 'auth-required' });
});

test('two interrupts at the same time are answered by their ids', async () => {
    const thread = newThread();
    const first = await run('askTwice', message('x'), thread);
    assert.equal(first.interrupts.length, 2);
    const [a, b] = ['A?', 'B?'].map((q) => first.interrupts.find((i) => i.value === q).id);
    const half = await run('askTwice', { resume: { [a]: 1 } }, thread);
    assert.deepEqual([half.status, half.interrupts.map((i) => i.id)], ['interrupted', [b]]);
    const second = await run('askTwice', { resume: { [b]: 2 } }, thread);
    assert.equal(second.status, 'completed');
    const { values } = await driver.request('state', { agent: 'askTwice', thread, values: true });
    assert.deepEqual(values.messages.slice(1).map((m) => m.content).sort(), ['a=1', 'b=2']);
});

test('interrupts of three tasks of one node: answered ones are not reported again', async () => {
    const thread = newThread();
    const first = await run('askMany', message('x'), thread);
    assert.deepEqual(first.interrupts.map((i) => i.value).sort(), ['1?', '2?', '3?']);
    const two = first.interrupts.find((i) => i.value === '2?').id;
    const second = await run('askMany', { resume: { [two]: 'b' } }, thread);
    assert.deepEqual(second.interrupts.map((i) => i.value).sort(), ['1?', '3?']);
    const third = await run('askMany', { resume: Object.fromEntries(second.interrupts.map((i) => [i.id, 'x'])) }, thread);
    assert.equal(third.status, 'completed');
    assert.deepEqual((await messagesOf('askMany', thread)).slice(1).map((m) => m.content).sort(), ['1=x', '2=b', '3=x']);
});

test('an interrupt inside of a subgraph', async () => {
    const thread = newThread();
    const first = await run('askInside', message('x'), thread);
    assert.deepEqual(first.interrupts.map((i) => i.value), ['Inside?']);
    assert.deepEqual(texts(await run('askInside', { resume: { [first.interrupts[0].id]: 'yes' } }, thread)), ['inner yes']);
});

for (const value of ['', 0, false, null, {}, []])
    test(`a resume with ${JSON.stringify(value)} reaches the node`, async () => {
        const thread = newThread();
        const { interrupts } = await run('ask', message('text'), thread);
        const result = await run('ask', { resume: { [interrupts[0].id]: value } }, thread);
        assert.deepEqual(texts(result), [`Hello ${JSON.stringify(value)}, inbox null`]);
    });

test('a resume of an interrupt that is not pending is an error', async () => {
    const thread = newThread(), unknown = { resume: { '0123456789abcdef0123456789abcdef': 1 } };
    const { interrupts } = await run('ask', message('text'), thread);
    await rejects(run('ask', unknown, thread), -32602, /is not pending.*pending: [0-9a-f]{32}/);
    await run('ask', { resume: { [interrupts[0].id]: 'x' } }, thread);
    await rejects(run('ask', { resume: { [interrupts[0].id]: 'x' } }, thread), -32602, /pending: none/);
    await rejects(run('ask', unknown), -32602, /not pending/);
});

test('a static breakpoint: interrupted without interrupts, and null continues', async () => {
    const thread = newThread();
    const first = await run('breakpoint', message('x'), thread);
    assert.deepEqual([first.status, first.interrupts, first.next], ['interrupted', [], ['two']]);
    assert.equal((await run('breakpoint', { input: null }, thread)).status, 'completed');
});

test('to continue a thread without a state is an error', async () => {
    await rejects(run('chat', { input: null }), -32602, /nothing to continue/);
});

// ---- state ----

test('state describes a thread', async () => {
    const thread = newThread();
    assert.deepEqual(await driver.request('state', { agent: 'ask', thread, values: false }), { exists: false, next: [], interrupts: [], messageIds: [] });
    const { interrupts } = await run('ask', message('text', 'm-1'), thread);
    assert.deepEqual(await driver.request('state', { agent: 'ask', thread, values: false }), { exists: true, next: ['ask'], interrupts, messageIds: ['m-1', 'ai-ask'] });
});

const update = (agent, thread, messages, more = {}) => driver.request('state/update', { agent, thread, messages, ...more });
const messagesOf = async (agent, thread) => (await driver.request('state', { agent, thread, values: true })).values.messages;

for (const agent of ['chat', 'list'])
    test(`state/update adds a message without running a node: ${agent} [R003-16]`, async () => {
        const thread = newThread();
        await run(agent, message('hi'), thread);
        await update(agent, thread, [{ type: 'ai', content: 'from outside', id: 'out-1' }]);
        const before = await messagesOf(agent, thread), state = await driver.request('state', { agent, thread });
        assert.deepEqual(before[before.length - 1], { type: 'ai', content: 'from outside', id: 'out-1' });
        assert.deepEqual([state.next, state.messageIds.includes('out-1')], [[], true]);
        await update(agent, thread, [{ type: 'ai', content: 'replaced', id: 'out-1' }, { type: 'tool', content: 'r', tool_call_id: 'c', id: 'out-2' }]);
        const after = await messagesOf(agent, thread);
        assert.deepEqual(after.slice(-2).map((m) => [m.type, m.content]), [['ai', 'replaced'], ['tool', 'r']]);
        assert.equal(after.length, before.length + 1);
        const next = await run(agent, message('again'), thread);
        assert.equal(next.status, 'completed');
    });

test('state/update after parallel nodes, and while a thread is interrupted: what runs next stays', async () => {
    const thread = newThread(), parallel = newThread();
    await run('parallel', message('x'), parallel);
    await update('parallel', parallel, [{ type: 'ai', content: 'sum', id: 'out-p' }]);
    assert.equal((await messagesOf('parallel', parallel)).length, 4);
    const { interrupts } = await run('askTwice', message('x'), thread);
    await run('askTwice', { resume: { [interrupts[0].id]: 1 } }, thread);
    await update('askTwice', thread, [{ type: 'ai', content: 'note', id: 'out-n' }]);
    const state = await driver.request('state', { agent: 'askTwice', thread });
    assert.deepEqual(state.interrupts, [interrupts[1]]);
    const result = await run('askTwice', { resume: { [interrupts[1].id]: 2 } }, thread);
    assert.equal(result.status, 'completed');
    assert.deepEqual((await messagesOf('askTwice', thread)).map((m) => m.content).sort(), ['a=1', 'b=2', 'note', 'x']);
});

test('state/update skips a text that the state has already', async () => {
    const thread = newThread();
    await run('chat', message('hi'), thread);
    await update('chat', thread, [{ type: 'ai', content: 'Hello there', id: 'out-1' }], { checkSkipText: true });
    assert.equal((await messagesOf('chat', thread)).length, 2);
    await rejects(update('chat', newThread(), [{ type: 'ai', content: 'x' }]), -32602, /unknown thread/);
});

// ---- errors ----

test('an error of a node ends its run, with its type and traceback', async () => {
    await assert.rejects(run('bad', message('throw')), (e) => e.code === -32000 && e.message === 'secret detail' && e.data.type === 'TypeError' && /graphs\.mjs/.test(e.data.traceback));
    await rejects(run('bad', message('reject')), -32005, /^not on Sundays$/);
    assert.equal((await run('plain', message('x'))).status, 'completed');
});

test('an event that is longer than a line is an error of its run, and no line is too long', async () => {
    await rejects(run('bad', message('long')), -32010, /longer than maxLineBytes/);
    assert.ok(driver.maxLine <= 8 << 20);
    assert.deepEqual(driver.faults, []);
});

test('an error of a timer ends the run that started it, and no other', async () => {
    await assert.rejects(run('bad', message('stray')), /stray/);
    assert.equal((await run('plain', message('x'))).status, 'completed');
});

test('a loop ends at the recursion limit', async () => {
    await rejects(run('loop', { ...message('x'), recursionLimit: 5 }), -32001, /Recursion limit of 5/);
});

test('printed lines are log lines of their run and cannot break the protocol', async () => {
    const r = run('bad', message('print'));
    await r;
    assert.deepEqual(driver.logs.filter((l) => l.run === r.id).map((l) => l.text), ['line 1', 'line 2', 'to stderr', '{"jsonrpc":"2.0","id":1,"result":{}}']);
    assert.deepEqual(driver.faults, []);
});

test('unknown agents, methods and lines are errors', async () => {
    await rejects(run('nope', message('x')), -32602, /unknown agent "nope"/);
    await rejects(driver.request('nope'), -32601, /unknown method nope/);
    driver.sendLine('not json');
    await driver.until(() => driver.faults.length === 1);
    assert.equal(driver.faults.pop().error.code, -32700);
    assert.deepEqual(await driver.request('ping'), {});
});

test('a state of 9 MiB is stored in parts', async () => {
    const thread = newThread();
    const result = await run('large', message('x'), thread);
    assert.deepEqual(texts(result), [`n has ${9 << 20}`]);
    assert.equal((await driver.request('state', { agent: 'large', thread })).exists, true);
    assert.ok(driver.store.requests.some(([method]) => method === 'blob/write') && driver.store.requests.some(([method]) => method === 'blob/read'));
    assert.deepEqual([...driver.store.blobs.keys()], [], 'every blob is consumed or closed');
    await rejects(driver.request('state', { agent: 'large', thread, values: true }), -32010, /longer than maxLineBytes/);
});

test('a graph that was compiled with a checkpointer gets that of the server', async () => {
    const thread = newThread();
    await run('ownSaver', message('x'), thread);
    assert.ok([...driver.store.rows.values()].some((r) => r.thread === thread));
});

// ---- several runs ----

test('200 runs at once, 64 at a time: every one has its own text', async () => {
    let active = 0;
    const queue = Array.from({ length: 200 }, (_, i) => i), results = [];
    const work = async () => {
        for (let i; (i = queue.shift()) !== undefined;) {
            active++;
            results[i] = await run('plain', message(`number ${i}`));
            active--;
        }
    };
    await Promise.all(Array.from({ length: 64 }, work));
    assert.equal(active, 0);
    results.forEach((r, i) => assert.deepEqual(texts(r), [`You wrote: number ${i}`]));
});

test('a second run of a thread is refused while the first one is active, and more than 64 runs are', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-')), GATE = join(dir, 'gate');
    const other = await start(['slow'], { env: { GATE } });
    t.after(() => other.kill());
    const runs = Array.from({ length: 64 }, (_, i) => other.run({ agent: 'slow', thread: `t${i}`, ...message('x') }));
    await other.until(() => runs.every((r) => other.eventsOf(r.id, 'custom').length === 1), 'every run is in s2');
    await rejects(other.run({ agent: 'slow', thread: 't0', ...message('x') }), -32003, /64 runs are active/);
    other.notify('cancel', { run: runs[63].id });
    assert.equal((await runs[63]).status, 'cancelled');
    await rejects(other.run({ agent: 'slow', thread: 't0', ...message('x') }), -32002, /thread t0 is active/);
    writeFileSync(GATE, '');
    assert.deepEqual(new Set((await Promise.all(runs.slice(0, 63))).map((r) => r.status)), new Set(['completed']));
    assert.deepEqual(await other.close(), { code: 0, signal: null });
});

// ---- cancel, drain, crash ----

const files = () => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
    return { TRACE: join(dir, 'trace'), GATE: join(dir, 'gate') };
};
const traceOf = (env) => (existsSync(env.TRACE) ? readFileSync(env.TRACE, 'utf8').split('\n').filter(Boolean).join(' ') : '');

test('a cancel is answered although the node goes on; the thread can continue', async (t) => {
    const env = files(), other = await start(['slow', 'chat'], { env });
    t.after(() => other.kill());
    const r = other.run({ agent: 'slow', thread: 't1', durability: 'sync', ...message('x') });
    await other.until(() => other.eventsOf(r.id, 'custom').length === 1);
    other.notify('cancel', { run: r.id });
    assert.equal((await r).status, 'cancelled');
    const seen = other.events.length;
    const state = await other.request('state', { agent: 'slow', thread: 't1' });
    assert.deepEqual(state.next, ['s2']);
    writeFileSync(env.GATE, ''); // the node of the canceled run goes on, too
    assert.equal((await other.run({ agent: 'slow', thread: 't1', input: null })).status, 'completed');
    assert.deepEqual(other.events.slice(0, seen).filter((e) => e.run === r.id), other.eventsOf(r.id), 'no event after the answer');
    const early = other.run({ agent: 'chat', thread: 't2', ...message('x') });
    other.notify('cancel', { run: early.id });
    assert.equal((await early).status, 'cancelled');
    other.notify('cancel', { run: 'unknown' });
    assert.deepEqual(await other.request('ping'), {});
});

test('shutdown: runs stop at the next step, later ones are refused, then the worker ends', async (t) => {
    const env = files(), store = new Store(), other = await start(['slow'], { env, store });
    t.after(() => other.kill());
    const r = other.run({ agent: 'slow', thread: 't1', ...message('x') });
    await other.until(() => other.eventsOf(r.id, 'custom').length === 1);
    assert.deepEqual(await other.request('shutdown', { graceMs: 60000 }), {});
    await rejects(other.run({ agent: 'slow', thread: 't2', ...message('x') }), -32003, /ends/);
    writeFileSync(env.GATE, '');
    const result = await r;
    assert.deepEqual([result.status, result.next], ['drained', ['s3']]);
    assert.deepEqual(await other.exited, { code: 0, signal: null });
    const next = await start(['slow'], { env, store });
    t.after(() => next.kill());
    const continued = await next.run({ agent: 'slow', thread: 't1', input: null });
    assert.deepEqual([continued.status, texts(continued)], ['completed', ['from s1']]);
    assert.equal(traceOf(env), 's1 s2 s3');
});

test('kill -9 in the middle of a node: the next worker continues, finished nodes are not repeated', async (t) => {
    const env = files(), store = new Store(), first = await start(['slow'], { env, store });
    const r = first.run({ agent: 'slow', thread: 't1', durability: 'sync', ...message('x') });
    await first.until(() => first.eventsOf(r.id, 'custom').length === 1);
    await first.kill();
    await assert.rejects(r);
    writeFileSync(env.GATE, '');
    const second = await start(['slow'], { env, store });
    t.after(() => second.kill());
    assert.deepEqual((await second.request('state', { agent: 'slow', thread: 't1' })).next, ['s2']);
    const result = await second.run({ agent: 'slow', thread: 't1', input: null });
    assert.deepEqual([result.status, texts(result)], ['completed', ['from s1']], 'the messages since that of the user');
    assert.equal(traceOf(env), 's1 s2 s2 s3');
});

test('kill -9 while interrupted: the next worker resumes', async (t) => {
    const env = files(), store = new Store(), first = await start(['ask'], { env, store });
    const { interrupts } = await first.run({ agent: 'ask', thread: 't1', ...message('x') });
    await first.kill();
    const second = await start(['ask'], { env, store });
    t.after(() => second.kill());
    assert.deepEqual((await second.request('state', { agent: 'ask', thread: 't1' })).interrupts, interrupts);
    const result = await second.run({ agent: 'ask', thread: 't1', resume: { [interrupts[0].id]: 'Bo' } });
    assert.deepEqual(texts(result), ['Hello "Bo", inbox null']);
    assert.equal(traceOf(env), 'before ask');
});

/** A worker that is killed at its n-th checkpoint/put, before that one is stored. */
async function killedAtPut(n, names, store, env = {}) {
    let count = 0;
    const worker = await start(names, { env, store, onRequest: async (method) => {
        if (method !== 'checkpoint/put' || ++count < n) return;
        await worker.kill();
        throw new Error('the worker is lost');
    } });
    return worker;
}

test('kill -9 before the input is stored: the thread does not exist, and the same run is sent again', async (t) => {
    const store = new Store(), first = await killedAtPut(1, ['chat'], store), input = message('hi', 'm-hi');
    await assert.rejects(first.run({ agent: 'chat', thread: 't1', durability: 'sync', ...input }));
    const second = await start(['chat'], { store });
    t.after(() => second.kill());
    assert.equal((await second.request('state', { agent: 'chat', thread: 't1' })).exists, false);
    const result = await second.run({ agent: 'chat', thread: 't1', durability: 'sync', ...input });
    assert.deepEqual([result.status, texts(result)], ['completed', ['Hello there']]);
    assert.deepEqual((await second.request('state', { agent: 'chat', thread: 't1' })).messageIds[0], 'm-hi');
});

test('kill -9 between the input and the first node: the thread is not finished, and the next worker continues with the inbox', async (t) => {
    const store = new Store(), first = await killedAtPut(2, ['inbox'], store), { input } = message('hi', 'm-hi');
    await assert.rejects(first.run({ agent: 'inbox', thread: 't1', durability: 'sync', input: { ...input, a2a_inbox: { message: { messageId: 'm-hi' } } } }));
    const second = await start(['inbox'], { store });
    t.after(() => second.kill());
    const state = await second.request('state', { agent: 'inbox', thread: 't1' });
    assert.deepEqual([state.exists, state.next, state.messageIds], [true, ['__start__'], ['m-hi']]);
    const result = await second.run({ agent: 'inbox', thread: 't1', input: null });
    assert.deepEqual(JSON.parse(texts(result).pop()).box, { message: { messageId: 'm-hi' } });
    assert.deepEqual((await second.request('state', { agent: 'inbox', thread: 't1' })).next, []);
});

test('kill -9 between the end of a node and the checkpoint of its step: the thread is not finished, and the node is not repeated', async (t) => {
    for (const [agent, put, next, answer, trace] of [['slow', 3, ['s1'], 'from s1', 's1 s2 s3'], ['slow', 4, ['s2'], 'from s1', 's1 s2 s3'], ['slow', 5, ['s3'], 'from s1', 's1 s2 s3'],
        ['parallel', 3, ['a', 'b'], 'aaaa', '']]) {
        const env = files(), store = new Store(), first = await killedAtPut(put, [agent], store, env);
        writeFileSync(env.GATE, '');
        await assert.rejects(first.run({ agent, thread: 't1', durability: 'sync', ...message('x', 'm-x') }));
        const second = await start([agent], { env, store });
        t.after(() => second.kill());
        const state = await second.request('state', { agent, thread: 't1' });
        assert.deepEqual([state.next.sort(), state.messageIds[0]], [next, 'm-x'], agent);
        const result = await second.run({ agent, thread: 't1', input: null });
        assert.deepEqual([result.status, result.next, texts(result).includes(answer)], ['completed', [], true], agent);
        assert.equal(traceOf(env), trace, 'no node ran again');
    }
});

test('kill -9 in the middle of a resumed node: the interrupt is still pending, and the same resume finishes it', async (t) => {
    const env = files(), store = new Store(), first = await start(['askSlow'], { env, store });
    const { interrupts } = await first.run({ agent: 'askSlow', thread: 't1', durability: 'sync', ...message('x') });
    const answer = message('Bo', 'm-bo');
    answer.input.a2a_inbox = { message: { messageId: 'm-bo' } };
    const resume = { agent: 'askSlow', thread: 't1', durability: 'sync', ...answer, resume: { [interrupts[0].id]: 'Bo' } };
    const r = first.run(resume);
    await first.until(() => first.eventsOf(r.id, 'custom').length === 1);
    await first.kill();
    await assert.rejects(r);
    writeFileSync(env.GATE, '');
    const second = await start(['askSlow'], { env, store });
    t.after(() => second.kill());
    assert.deepEqual((await second.request('state', { agent: 'askSlow', thread: 't1' })).interrupts, interrupts);
    assert.deepEqual(texts(await second.run(resume)).pop(), 'Hello Bo, m-bo');
    assert.equal(traceOf(env), 'before answered answered');
    const { values } = await second.request('state', { agent: 'askSlow', thread: 't1', values: true });
    assert.deepEqual(values.messages.map((m) => m.content), ['x', 'Bo', 'Hello Bo, m-bo'], 'the answer is in the state once');
});

test('kill -9 in the middle of a stream: the next worker streams from the start of the node', async (t) => {
    const env = files(), store = new Store(), first = await start(['streamSlow'], { env, store });
    const r = first.run({ agent: 'streamSlow', thread: 't1', durability: 'sync', ...message('x') });
    await first.until(() => textOf(first.eventsOf(r.id)) === 'hal', 'the first chunks');
    await first.kill();
    await assert.rejects(r);
    writeFileSync(env.GATE, '');
    const second = await start(['streamSlow'], { env, store });
    t.after(() => second.kill());
    assert.deepEqual((await second.request('state', { agent: 'streamSlow', thread: 't1' })).next, ['stream']);
    const again = second.run({ agent: 'streamSlow', thread: 't1', input: null, attempt: 2 }), result = await again;
    assert.deepEqual([textOf(second.eventsOf(again.id)), texts(result)], ['half and whole', ['half and whole']]);
    assert.equal(traceOf(env), 'before stream stream');
});

test('kill -9 after the end: the state has the messages, and to continue returns them', async (t) => {
    const store = new Store(), first = await start(['chat'], { store });
    await first.run({ agent: 'chat', thread: 't1', ...message('hi') });
    await first.kill();
    const second = await start(['chat'], { store });
    t.after(() => second.kill());
    const state = await second.request('state', { agent: 'chat', thread: 't1', values: true });
    assert.deepEqual([state.next, state.values.messages.map((m) => m.content)], [[], ['hi', 'Hello there']]);
    const result = await second.run({ agent: 'chat', thread: 't1', input: null });
    assert.deepEqual([result.status, texts(result).pop()], ['completed', 'Hello there']);
});

test('the end of the connection ends the worker, also while a node works', async () => {
    const other = await start(['slow'], { env: files() });
    const r = other.run({ agent: 'slow', thread: 't1', ...message('x') });
    await other.until(() => other.eventsOf(r.id, 'custom').length === 1);
    assert.deepEqual(await other.close(), { code: 0, signal: null });
});

test('a node that blocks the CPU: events before it have arrived, a ping is answered after it', async (t) => {
    const other = await start(['cpu']);
    t.after(() => other.kill());
    const r = other.run({ agent: 'cpu', thread: 't1', ...message('300') });
    await other.until(() => other.eventsOf(r.id, 'custom').length === 1);
    assert.deepEqual(await other.request('ping'), {});
    assert.equal((await r).status, 'completed');
});

test('checkpoints in memory, and those of the graph itself', async (t) => {
    for (const checkpointer of ['memory', 'worker']) {
        const other = await start(['ask', 'ownSaver'], { initialize: { checkpointer } });
        t.after(() => other.kill());
        const { interrupts } = await other.run({ agent: 'ask', thread: 't1', ...message('x') });
        assert.equal((await other.run({ agent: 'ask', thread: 't1', resume: { [interrupts[0].id]: 'C' } })).status, 'completed');
        assert.equal((await other.run({ agent: 'ownSaver', thread: 't2', ...message('x') })).status, 'completed');
        assert.equal(other.store.rows.size, 0);
        assert.equal(other.logs.some((l) => /graph ask has no checkpointer/.test(l.text)), checkpointer === 'worker');
        assert.equal(other.logs.some((l) => /ownSaver has no checkpointer/.test(l.text)), false);
    }
});

test('a slow server gets fewer, longer chunks and every character', async (t) => {
    const other = await start(['chat']);
    t.after(() => other.kill());
    other.input.pause();
    const r = Promise.all(Array.from({ length: 60 }, (_, i) => other.run({ agent: 'chat', thread: `t${i}`, checkpointer: 'memory', ...message('x') })));
    await new Promise((done) => setTimeout(done, 200));
    other.input.resume();
    assert.deepEqual(new Set((await r).map((x) => x.status)), new Set(['completed']));
});
