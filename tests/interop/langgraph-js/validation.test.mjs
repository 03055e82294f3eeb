// The validation of LangGraph's checkpointers: vitest runs validation.vitest.mjs, with a stand-in for the server and with each store of the server.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const here = fileURLToPath(new URL('.', import.meta.url)), ROOT = resolve(here, '../../..');
const DRAGOMAN = resolve(ROOT, process.env.DRAGOMAN ?? 'build/dragoman');

async function validate(env) {
    const vitest = spawn(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json'], { cwd: here, env: { ...process.env, ...env } });
    const [out, err] = await Promise.all([text(vitest.stdout), text(vitest.stderr)]);
    const result = JSON.parse(out.slice(out.indexOf('{')));
    const others = result.testResults.flatMap((f) => f.assertionResults).filter((t) => t.status !== 'passed').map((t) => `${t.status} ${t.fullName}: ${t.failureMessages?.[0]}`);
    assert.deepEqual(others.slice(0, 5), [], err);
    assert.ok(result.success && result.numPassedTests >= 1400 && result.numPassedTests === result.numTotalTests, `${result.numPassedTests} of ${result.numTotalTests} tests`);
}

/** A new database: on the PostgreSQL that tests/run started, or on one that ends with this process. */
function postgres() {
    const server = join(ROOT, 'tests/postgres/server');
    process.env.DRAGOMAN_TEST_POSTGRES ??= execFileSync(server, ['start', '--until', String(process.pid)], { encoding: 'utf8' }).trim();
    const host = process.env.DRAGOMAN_TEST_POSTGRES.match(/host=(\S+)/)[1], name = `js${process.pid}`;
    execFileSync('psql', ['-q', '-h', host, '-U', 'dragoman', '-d', 'postgres', '-c', `CREATE DATABASE ${name}`]);
    return `postgres:${process.env.DRAGOMAN_TEST_POSTGRES} dbname=${name}`;
}

const STORES = { memory: () => 'memory:', sqlite: (folder) => `sqlite:${folder}/store.db`, postgres };

/** The server with the graph of projects/bridge, and a run of it. Returns its task at the end. */
async function withServer(store, folder, work) {
    const BRIDGE = join(folder, 'bridge'), config = join(folder, 'dragoman.yaml');
    const settings = { config: join(here, 'projects/bridge/langgraph.json'), env: { BRIDGE } };
    writeFileSync(config, JSON.stringify({ agents: [{ id: 'demo', type: 'langgraph', default: true, settings }] }));
    const child = spawn(DRAGOMAN, ['serve', '--listen', '127.0.0.1:0', '--store', store, '-c', config], { stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    child.stderr.on('data', (d) => (log += d));
    const exited = new Promise((done) => child.on('exit', done));
    try {
        const url = await new Promise((done, fail) => {
            let out = '';
            child.stdout.on('data', (d) => {
                out += d;
                const m = out.match(/listening on (http:\S+)/);
                if (m) done(m[1]);
            });
            exited.then((code) => fail(new Error(`the server ended with ${code}: ${log}`)));
        });
        const answer = fetch(`${url}/message:send`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0' },
            body: JSON.stringify({ message: { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] } }) }).then((r) => r.json());
        answer.catch(() => {}); // awaited below
        for (const end = Date.now() + 60000; !existsSync(BRIDGE); await sleep(50)) assert.ok(Date.now() < end, `the graph does not run: ${log}`);
        await work({ BRIDGE });
        return (await answer).task;
    } finally {
        child.kill('SIGTERM');
        assert.equal(await exited, 0, log);
    }
}

test('@langchain/langgraph-checkpoint-validation passes on DragomanSaver, also with every value in parts', () => validate());

for (const [store, open] of Object.entries(STORES))
    test(`@langchain/langgraph-checkpoint-validation passes on the server's store ${store}, also with every value in parts`, async () => {
        const folder = mkdtempSync(join(tmpdir(), 'dragoman-js-'));
        try {
            const task = await withServer(open(folder), folder, validate);
            assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
            assert.ok(parseInt(task.status.message.parts[0].text) > 1500, task.status.message.parts[0].text);
        } finally {
            rmSync(folder, { recursive: true });
        }
    });
