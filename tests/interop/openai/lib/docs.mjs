// Runs the programs of a page unchanged: every block of js, python or sh, and compares with the text below it.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { check, equal, test } from '../../server/node/lib/tap.mjs';

const here = new URL('../', import.meta.url);

/** What a program prints; the page's address is that of the server. */
async function output({ language, code }, url) {
    const text = code.replaceAll('http://127.0.0.1:8484', url);
    const [program, ...args] = {
        js: ['node', '--input-type=module', '-e', text],
        python: ['.venv-openai/bin/python', '-c', text],
        sh: ['sh', '-c', text],
    }[language];
    const child = spawn(program, args, { cwd: here, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '', errors = '';
    child.stdout.on('data', (bytes) => { out += bytes; });
    child.stderr.on('data', (bytes) => { errors += bytes; });
    const status = await new Promise((done) => child.on('close', done));
    check(status === 0, `status ${status}\n${errors}`);
    return out;
}

/** A test for each program of a page, and that it has so many. */
export function page(path, url, programs) {
    const text = readFileSync(new URL(`../../../${path}`, here), 'utf8');
    const blocks = [...text.matchAll(/^```(js|python|sh)\n(.*?)^```\n(?:```text\n(.*?)^```\n)?/gms)];
    for (const [i, [, language, code, printed]] of blocks.entries())
        test(`${path}, program ${i + 1} (${language})`, async () => equal(await output({ language, code }, url()), printed, 'what it prints'));
    test(`${path} has programs`, async () => equal(blocks.length, programs, 'its programs'));
}
