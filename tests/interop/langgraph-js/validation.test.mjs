// The validation of LangGraph's checkpointers: vitest runs validation.vitest.mjs.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

const folder = fileURLToPath(new URL('.', import.meta.url));

test('@langchain/langgraph-checkpoint-validation passes on DragomanSaver, also with every value in parts', () => {
    const vitest = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', '--reporter=json'], { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 28 });
    const result = JSON.parse(vitest.stdout.slice(vitest.stdout.indexOf('{')));
    const failed = result.testResults.flatMap((f) => f.assertionResults).filter((t) => t.status !== 'passed').map((t) => `${t.fullName}: ${t.failureMessages?.[0]}`);
    assert.deepEqual(failed.slice(0, 5), [], vitest.stderr);
    assert.ok(result.success && result.numPassedTests >= 1400, `${result.numPassedTests} tests`);
});
