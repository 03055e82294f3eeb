// The packages that the other programs load are the ones that package.json names.
import { readFileSync } from 'node:fs';
import { equal, run, test } from '../server/node/lib/tap.mjs';

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url)));

for (const [name, version] of Object.entries(read('package.json').dependencies))
    test(`${name} is ${version}`, async () => equal(read(`node_modules/${name}/package.json`).version, version.replace(/^npm:.*@/, ''), 'the version'));

await run();
