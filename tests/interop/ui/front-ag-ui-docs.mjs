// The programs of docs/clients/ag-ui.md, run unchanged; their output is compared with the text below them.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { check, equal, run as runTests, test } from '../server/node/lib/tap.mjs';
import { server, stopAll } from './lib/front.mjs';

const here = new URL('.', import.meta.url);
const page = readFileSync(new URL('../../../docs/clients/ag-ui.md', here), 'utf8');
const blocks = [...page.matchAll(/^```(js|sh)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)].map(([, language, code, output]) => ({ language, code, output }));

/** Its output; the page's address is the server's. */
async function output({ language, code }) {
    const { url } = await server('go_on');
    const text = code.replaceAll('http://127.0.0.1:8484', url);
    const [program, ...args] = language === 'sh' ? ['sh', '-c', text] : ['node', '--import', './lib/copilotkit.mjs', '--input-type=module', '-e', text];
    const child = spawn(program, args, { cwd: here, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', errors = '';
    child.stdout.on('data', (bytes) => { out += bytes; });
    child.stderr.on('data', (bytes) => { errors += bytes; });
    const status = await new Promise((done) => child.on('close', done));
    check(status === 0, `status ${status}\n${errors}`);
    return out;
}

for (const [i, block] of blocks.entries()) {
    test(`docs/clients/ag-ui.md, program ${i + 1}: ${block.code.split('\n').filter((l) => l && !l.startsWith('import'))[0].slice(0, 70)}`, async () => {
        const got = await output(block);
        if (block.output !== undefined) equal(got, block.output, 'what it prints');
        // what is given to CopilotKit's runtime works there as an agent
        else check(/^default: (.+)\nhello: (.+)\n$/.test(got), got);
    });
}

test('docs/clients/ag-ui.md has programs', async () => check(blocks.length >= 8, `${blocks.length}`));

await runTests(stopAll);
