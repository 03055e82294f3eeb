// node --test runs the other files.
export default { test: { globals: true, include: ['validation.vitest.mjs'], pool: 'threads', maxWorkers: 1, testTimeout: 60000, hookTimeout: 60000 } };
