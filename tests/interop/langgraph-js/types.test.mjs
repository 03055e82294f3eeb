// The declarations of js/*.d.ts: a program that uses everything compiles, and wrong uses do not.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const folder = fileURLToPath(new URL('.', import.meta.url));

test('the declarations describe the package: types/uses.ts compiles, lines marked as errors are errors', () => {
    const tsc = spawnSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'types/tsconfig.json'], { cwd: folder, encoding: 'utf8' });
    assert.equal(tsc.stdout, '');
    assert.equal(tsc.status, 0);
});
