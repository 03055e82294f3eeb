// The examples of docs/agents/javascript.md are one program, and its tests pass. So do the examples of examples/agents.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { registerPackage } from '../resolve.js';
import { Conversation, runAgent } from '../testing.js';

registerPackage(); // the examples import `dragoman`, as in a worker

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

test('the examples of docs/agents/javascript.md', (t) => {
    const blocks = [...readFileSync(path('../../docs/agents/javascript.md'), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map((m) => m[1]);
    const file = path(`./docs-${process.pid}.mjs`); // in the package: it can import itself as `dragoman`
    t.after(() => rmSync(file));
    writeFileSync(file, blocks.join('\n'));
    const env = { ...process.env };
    delete env.NODE_TEST_CONTEXT;
    const run = spawnSync(process.execPath, ['--test', '--test-reporter=tap', file], { encoding: 'utf8', env });
    assert.equal(run.status, 0, run.stdout);
    assert.match(run.stdout, /# pass 5/);
    assert.ok(blocks.length >= 7);
});

test('examples/agents/streaming.mjs', async () => {
    const { default: main } = await import('../../examples/agents/streaming.mjs');
    const result = await runAgent(main, 'Where is Oslo?');
    assert.equal(result.text, 'You asked: Where is Oslo?');
    assert.ok(result.events.length > 5);
    assert.deepEqual(result.usage[0].model, 'fake');
});

test('examples/agents/booking.mjs', async () => {
    const { default: main } = await import('../../examples/agents/booking.mjs');
    const conversation = new Conversation(main);
    assert.equal((await conversation.send('Book a table')).question, 'For how many people?');
    assert.equal((await conversation.send('3')).question, 'May book_table be called? Answer yes or no.');
    const last = await conversation.send('yes');
    assert.match(last.text, /^A table for 3 is booked: [0-9a-f-]{8}\.$/);
    assert.equal(last.toolCalls[0].name, 'book_table');
});
