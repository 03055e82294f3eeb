// docs/clients/ai-sdk.md: its programs run unchanged and print the text below them; a block that shows a file of the example equals that file.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { start } from './lib/chat.mjs';

const here = new URL('.', import.meta.url);
const root = new URL('../../../', here);
const page = readFileSync(new URL('docs/clients/ai-sdk.md', root), 'utf8');
const blocks = [...page.matchAll(/^```(\w+)(?: file=(\S+))?\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(([, language, file, code, output]) => ({ language, file, code, output }));
const server = await start();

/** Its output; the page's address is the server's. */
async function output({ language, code }) {
    const text = code.replaceAll('http://127.0.0.1:8484', server.url);
    const [program, ...args] = language === 'sh' ? ['sh', '-c', text] : ['node', '--input-type=module', '-e', text];
    const child = spawn(program, args, { cwd: here, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', errors = '';
    child.stdout.on('data', (bytes) => { out += bytes; });
    child.stderr.on('data', (bytes) => { errors += bytes; });
    const status = await new Promise((done) => child.on('close', done));
    check(status === 0, `status ${status}\n${errors}`);
    return out;
}

for (const [i, block] of blocks.filter((b) => ['js', 'sh'].includes(b.language)).entries())
    test(`docs/clients/ai-sdk.md, block ${i + 1}`, async () => {
        if (block.file) return equal(block.code, readFileSync(new URL(block.file, root), 'utf8'), block.file);
        const got = await output(block);
        if (block.output !== undefined) return equal(got, block.output, 'what it prints');
        const [delta, saved, status] = got.trim().split('\n');
        check(delta.includes('What is your name?'), delta);
        equal(JSON.parse(saved).map((m) => m.role), ['user', 'assistant'], 'the messages');
        equal(status, '204', 'the status');
    });

test('docs/clients/ai-sdk.md says the refusal as it is', async () => {
    const said = /`400 (expected .*?)`/.exec(page)[1];
    const body = { id: 'c', messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 7 }] }] };
    const r = await fetch(`${server.url}/ai-sdk`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    equal([r.status, await r.text()], [400, said], 'the refusal');
});

test('docs/clients/ai-sdk.md has programs', async () => check(blocks.length >= 5, `${blocks.length}`));

await run(() => server.stop());
