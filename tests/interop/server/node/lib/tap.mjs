// Tests, their names, what they check with. Prints TAP.
import { isDeepStrictEqual } from 'node:util';

const tests = [];
// Ends a test that hangs. Far above what a busy machine needs: a cold "import openai" alone can take 20 s there.
const limit = 300_000;

export function test(name, fn) {
    if (tests.some((t) => t.name === name)) throw new Error(`two tests are named "${name}"`);
    tests.push({ name, fn });
}

/** Runs all tests in order, then end(), if there is one: its failure is a test's too. */
export async function run(end) {
    let failed = 0;
    if (end) tests.push({ name: 'all servers end well', fn: end });
    for (const [i, { name, fn }] of tests.entries()) {
        let late;
        try {
            await Promise.race([fn(), new Promise((_, no) => { late = setTimeout(() => no(new Error(`no end after ${limit / 1000} s`)), limit); })]);
            console.log(`ok ${i + 1} - ${name}`);
        } catch (error) {
            failed++;
            console.log(`not ok ${i + 1} - ${name}`);
            console.log(String(error?.stack ?? error).replace(/^/gm, '# '));
        }
        clearTimeout(late);
    }
    console.log(`1..${tests.length}`);
    process.exit(failed ? 1 : 0);
}

const show = (value) => JSON.stringify(value)?.slice(0, 1500) ?? String(value);

export function check(good, why) {
    if (!good) throw new Error(typeof why === 'function' ? why() : why);
}

export const equal = (got, want, what) =>
    check(isDeepStrictEqual(got, want), () => `${what} is ${show(got)}, wanted ${show(want)}`);

/** The error that a promise or an async iterator ends with; its cause where the SDK has one. */
export async function failure(thing) {
    try {
        if (thing[Symbol.asyncIterator]) for await (const _ of thing);
        else await thing;
    } catch (error) {
        return error.cause instanceof Error ? error.cause : error;
    }
    throw new Error('expected an error, but the call succeeded');
}

/** Waits until look() gives something true. */
export async function until(look, why) {
    for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((go) => setTimeout(go, 20))) {
        const found = await look();
        if (found) return found;
    }
    throw new Error(`waited 30 s: ${why}`);
}
