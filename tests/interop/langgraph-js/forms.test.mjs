// The forms in which a project declares its graphs, and what the operator reads when one cannot be loaded.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Driver, PROJECTS, message, newThread, textOf } from './lib.mjs';

const FORMS = ['compiled', 'withSaver', 'uncompiled', 'promise', 'factory', 'factoryAsync', 'factoryConfig', 'wrapper'];

const load = async (graphs, options = {}) => {
    const driver = new Driver({ cwd: PROJECTS, ...options });
    after(() => driver.kill());
    driver.description = await driver.initialize({ cwd: options.cwd ?? PROJECTS, graphs });
    return driver;
};
const answer = async (driver, agent, thread = newThread()) => (await driver.run({ agent, thread, ...message('x') })).messages.map((m) => m.content).join();

const driver = await load({
    ...Object.fromEntries(FORMS.map((name) => [name, `./forms/graphs.mjs:${name}`])),
    default: './forms/graphs.mjs', 'default by name': './forms/graphs.mjs:default',
    described: { path: './forms/graphs.mjs:compiled', description: 'what it does' },
});

for (const name of FORMS)
    test(`a graph as ${name}`, async () => {
        const thread = newThread();
        assert.equal(await answer(driver, name, thread), name === 'factoryConfig' ? `factoryConfig ${thread}` : name);
        assert.ok([...driver.store.rows.values()].some((r) => r.thread === thread), 'its checkpoints are on the server');
    });

test('a graph as default export, with a description', async () => {
    assert.equal(await answer(driver, 'default'), 'default');
    assert.equal(await answer(driver, 'default by name'), 'default');
    assert.equal(await answer(driver, 'described'), 'compiled');
    assert.equal(driver.description.agents.find((a) => a.id === 'described').description, 'what it does');
});

test('a graph of a CommonJS module uses the CommonJS build of LangGraph', async () => {
    const other = await load({ main: './commonjs/graph.cjs:graph' }), thread = newThread();
    const { interrupts } = await other.run({ thread, ...message('x') });
    const result = await other.run({ thread, resume: { [interrupts[0].id]: 'this' } });
    assert.deepEqual(result.messages.map((m) => m.content), ['commonjs this']);
});

test('a graph in TypeScript is read by the tsx of the project', async () => {
    assert.equal(await answer(await load({ main: './typescript/graph.ts:graph' }), 'main'), 'typescript 1');
});

const fails = (graphs, pattern, options) => assert.rejects(load(graphs, options), (e) => {
    assert.equal(e.code, -32004);
    assert.match(e.message, pattern);
    return true;
});

test('a project without tsx: the message names it', { skip: process.features.typescript && 'this node reads TypeScript' }, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
    t.after(() => rmSync(dir, { recursive: true }));
    cpSync(join(PROJECTS, 'typescript'), dir, { recursive: true });
    await fails({ main: './graph.ts:graph' }, /graph "main" \(\.\/graph\.ts:graph\):.* is TypeScript, which node [\d.]+ \(.*npm install --save-dev tsx/, { cwd: dir });
});

test('a missing package is named together with the interpreter', () =>
    fails({ main: './broken/missing.mjs:graph' }, /graph "main" \(\.\/broken\/missing\.mjs:graph\): missing package a-package-that-does-not-exist \(node [\d.]+ \(\/.*Run: npm install a-package-that-does-not-exist/));

test('a project without LangGraph: the message names it', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
    t.after(() => rmSync(dir, { recursive: true }));
    writeFileSync(join(dir, 'g.mjs'), 'export const graph = { stream() {}, getState() {}, channels: {} };\n');
    await fails({ main: './g.mjs:graph' }, /@langchain\/langgraph is not installed: .*npm install @langchain\/langgraph @langchain\/core/, { cwd: dir });
});

test('packages of a project in another folder are found', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
    t.after(() => rmSync(dir, { recursive: true }));
    cpSync(join(PROJECTS, 'forms'), dir, { recursive: true });
    symlinkSync(join(PROJECTS, '../node_modules'), join(dir, 'node_modules'));
    assert.equal(await answer(await load({ main: './graphs.mjs:compiled' }, { cwd: dir }), 'main'), 'compiled');
});

test('examples/langgraph-js streams, asks and goes on', async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
    t.after(() => rmSync(dir, { recursive: true }));
    cpSync(join(PROJECTS, '../../../../examples/langgraph-js'), dir, { recursive: true });
    symlinkSync(join(PROJECTS, '../node_modules'), join(dir, 'node_modules'));
    const { graphs } = JSON.parse(readFileSync(join(dir, 'langgraph.json'), 'utf8'));
    const other = await load(graphs, { cwd: dir }), thread = newThread();
    const first = other.run({ agent: 'agent', thread, ...message('Where is Oslo?') }), { interrupts } = await first;
    assert.equal(textOf(other.eventsOf(first.id)), 'Oslo is the capital of Norway.');
    const second = await other.run({ agent: 'agent', thread, resume: { [interrupts[0].id]: '4' } });
    assert.deepEqual(second.messages.map((m) => m.content), ['Thank you for 4 stars.']);
});

test('errors of loading are explained', async () => {
    await fails({ main: './broken/syntax.mjs:graph' }, /SyntaxError: Unexpected token ';'/);
    await fails({ main: './broken/throws.mjs:graph' }, /RangeError: at import/);
    await fails({ main: './nowhere.mjs:graph' }, /no such file: .*nowhere\.mjs/);
    await fails({ main: './forms/graphs.mjs:nope' }, /has no export "nope": it exports compiled, default, factory/);
    await fails({ main: './forms/graphs.mjs:notAGraph' }, /expected a graph, got number/);
    await fails({ main: {} }, /expected a text such as/);
});

test('another version of the protocol is refused', async (t) => {
    const other = new Driver({ cwd: PROJECTS });
    t.after(() => other.kill());
    await assert.rejects(other.initialize({ protocolVersion: 2 }), (e) => e.code === -32602 && /unknown protocolVersion 2/.test(e.message));
    await assert.rejects(other.run({}), (e) => e.code === -32600 && /before initialize/.test(e.message));
});

test('without DRAGOMAN_FD the protocol is on stdin and stdout, and prints go to stderr', async (t) => {
    const other = new Driver({ cwd: PROJECTS, isStdio: true });
    t.after(() => other.kill());
    await other.initialize({ cwd: PROJECTS, graphs: { bad: './acceptance/graphs.mjs:bad' } });
    assert.equal((await other.run({ agent: 'bad', ...message('print') })).status, 'completed');
    assert.deepEqual(other.faults, []);
    assert.deepEqual(await other.close(), { code: 0, signal: null });
});
