// What the tests of this folder share.
import { fileURLToPath } from 'node:url';
import { Driver } from '../../../js/tests/lib/driver.js';

export { Driver, Store, textOf } from '../../../js/tests/lib/driver.js';
export const PROJECTS = fileURLToPath(new URL('./projects', import.meta.url));

/** A worker with graphs of projects/acceptance/graphs.mjs, by name. */
export async function start(names, { initialize = {}, ...options } = {}) {
    const driver = new Driver({ cwd: PROJECTS, ...options });
    driver.description = await driver.initialize({ cwd: PROJECTS, graphs: Object.fromEntries(names.map((n) => [n, `./acceptance/graphs.mjs:${n}`])), ...initialize });
    return driver;
}

let count = 0;
export const newThread = () => `thread-${++count}`;

/** The parameters of a run with a message of the user. */
export const message = (text, id = `m${++count}`) => ({ input: { messages: [{ role: 'user', content: text, id }], a2a_outbox: null } });
