// Functions as agents in a worker process, with a stand-in for the server.
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { after, test } from 'node:test';
import { Driver } from './lib/driver.js';

const file = (name) => fileURLToPath(new URL(`./agents/${name}`, import.meta.url));

const start = async (name, options = {}) => {
    const driver = new Driver({ args: [file(name)], ...options });
    after(() => driver.kill());
    driver.description = await driver.initialize(options.initialize);
    return driver;
};
const params = (text, more = {}) => ({ message: { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }] }, history: [], accepted: [], currentTask: null, journal: null, ...more });
const textOf = (driver, run) => driver.eventsOf(run.id).flatMap((e) => e.data.artifactUpdate?.artifact.parts ?? []).map((p) => p.text).join('');
const stateOf = (driver, run) => driver.eventsOf(run.id).flatMap((e) => (e.data.statusUpdate ? [e.data.statusUpdate.status.state] : [])).pop();

test('the handshake describes the agent; its prints are log lines of the run', async () => {
    const driver = await start('agents.mjs:echo', { initialize: { agent: 'my-echo' } });
    assert.deepEqual(driver.description, { protocolVersion: 1, worker: { name: 'dragoman-js', lang: 'js', version: process.versions.node }, maxRuns: 64,
        agents: [{ id: 'my-echo', kind: 'events', name: 'Echo', description: 'repeats', skills: [{ id: 'e', name: 'E' }] }],
        capabilities: { cancel: true, input: true, state: false, drain: false } });
    const run = driver.run({ agent: 'my-echo', ...params('a b') });
    assert.deepEqual(await run, { status: 'completed' });
    assert.equal(textOf(driver, run), 'a b ');
    assert.deepEqual(driver.logs, [{ run: run.id, level: 'info', text: 'prints a b' }]);
    assert.deepEqual(await driver.close(), { code: 0, signal: null });
});

test('the agent of a file: the only one, the configured id, or by name', async () => {
    const one = await start('one.mjs'), run = one.run(params('x'));
    await run;
    assert.equal(textOf(one, run), 'a x');
    const byId = await start('agents.mjs', { initialize: { agent: 'returns' } }), second = byId.run({ agent: 'returns', ...params('x') });
    await second;
    assert.equal(textOf(byId, second), 'You wrote: x');
    const unmarked = await start('agents.mjs:plain'), third = unmarked.run(params('x'));
    await third;
    assert.equal(textOf(unmarked, third), 'plain x');
    for (const [name, pattern] of [['agents.mjs', /has several agents \(asks, beside, .*name one/], ['agents.mjs:nope', /has no agent "nope"\. Agents: asks/],
        ['nowhere.mjs', /no such file/], ['../lib/driver.js', /has no agent: export default agent\(/]])
        await assert.rejects(start(name), (e) => e.code === -32004 && pattern.test(e.message) && /node [\d.]+ \(\//.test(e.message));
});

test('a syntax error is explained with its file and line, also in a file that the agent imports', async () => {
    for (const name of ['syntax.mjs', 'imports_syntax.mjs', 'imports_syntax.mjs:main'])
        await assert.rejects(start(name), (e) => e.code === -32004 && /SyntaxError: Unexpected token ';' \(\/.*\/agents\/syntax\.mjs:2\) \(node /.test(e.message) &&
            /^\/.*\/agents\/syntax\.mjs:2\nconst two = ;\n/.test(e.data.traceback));
    await assert.rejects(start('throws_syntax.mjs'), (e) => e.code === -32004 && /SyntaxError: .*JSON/.test(e.message) && /throws_syntax\.mjs:1:/.test(e.data.traceback));
});

test('a question is answered by the next run, in another process', async () => {
    const first = await start('agents.mjs:asks'), one = first.run(params('hi'));
    assert.deepEqual(await one, { status: 'interrupted' });
    assert.deepEqual([textOf(first, one), stateOf(first, one)], ['Before. ', 'TASK_STATE_INPUT_REQUIRED']);
    const journal = first.store.journals.get(one.id);
    assert.equal(JSON.parse(journal).v, 1);
    await first.kill();
    const second = await start('agents.mjs:asks'), two = second.run(params('Ann', { journal, currentTask: { id: 't', status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }));
    assert.deepEqual(await two, { status: 'completed' });
    assert.equal(textOf(second, two), 'Hello Ann');
});

test('a journal counts exactly the events that the server has received before it', async () => {
    const driver = await start('agents.mjs:beside'), seen = [];
    driver.onRequest = (_method, { run, text }) => {
        seen.push([JSON.parse(text).segments.pop().events ?? 0, driver.eventsOf(run).filter((e) => e.data.statusUpdate?.status.message).length]);
    };
    assert.deepEqual(await driver.run(params('x')), { status: 'completed' });
    assert.equal(seen.length, 1);
    assert.equal(seen[0][0], seen[0][1]);
});

test('a message to a run that works reaches it', async () => {
    const driver = await start('agents.mjs:steered'), run = driver.run(params('x'));
    await driver.until(() => textOf(driver, run) === 'waiting');
    driver.notify('input', { run: run.id, message: { messageId: 's-1', role: 'ROLE_USER', parts: [{ text: 'more' }] } });
    await run;
    assert.equal(textOf(driver, run), 'waiting got more');
});

test('ends: failed and rejected are events, other errors are for the operator', async () => {
    const driver = await start('agents.mjs:ends');
    for (const [text, state] of [['fail', 'TASK_STATE_FAILED'], ['reject', 'TASK_STATE_REJECTED']]) {
        const run = driver.run(params(text));
        assert.deepEqual(await run, { status: 'completed' });
        assert.equal(stateOf(driver, run), state);
    }
    const run = driver.run(params('x'));
    await assert.rejects(run, (e) => e.code === -32000 && e.message === 'secret' && e.data.type === 'TypeError' && /agents\.mjs/.test(e.data.traceback));
    assert.equal(driver.eventsOf(run.id).pop().data.artifactUpdate.lastChunk, true, 'the text is closed');
    await assert.rejects(driver.run(params('number')), /not number/);
    await assert.rejects(driver.run({ ...params('x'), message: null }), (e) => e.code === -32602);
});

test('a cancel ends a function that writes, and one that does not notice it', async () => {
    for (const name of ['endless', 'deaf']) {
        const driver = await start(`agents.mjs:${name}`), run = driver.run(params('x'));
        await driver.until(() => textOf(driver, run).startsWith('start'));
        driver.notify('cancel', { run: run.id });
        assert.deepEqual(await run, { status: 'cancelled' });
        const last = driver.events[driver.events.length - 1];
        assert.equal(last.data.artifactUpdate.lastChunk, true);
        assert.deepEqual(await driver.request('ping'), {});
    }
});

test('text that is not awaited, and a server that reads late: fewer chunks, every character', async () => {
    const driver = await start('agents.mjs:flood'), run = driver.run(params('x'));
    driver.input.pause();
    await new Promise((done) => setTimeout(done, 300));
    driver.input.resume();
    await run;
    assert.equal(textOf(driver, run).length, 200000);
    assert.ok(driver.eventsOf(run.id).length < 100000, `${driver.eventsOf(run.id).length} events`);
    assert.deepEqual(driver.eventsOf(run.id).map((e) => e.seq), driver.eventsOf(run.id).map((_, i) => i));
});

test('a line that is too long ends the worker', async () => {
    const driver = await start('one.mjs', { initialize: { maxLineBytes: 1000 } });
    driver.sendLine('x'.repeat(2000));
    assert.equal((await driver.exited).signal, null);
    assert.match(driver.printed, /longer than maxLineBytes/);
});
