// What the interop programs share: TAP output, `dragoman convert`, and the objects of ../objects.json
// in every A2A dialect.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const root = resolve(here, '../../../..');
const binary = resolve(root, process.env.DRAGOMAN ?? 'build/dragoman');

if (!existsSync(binary)) {
    console.log(`not ok 1 - dragoman is built\n# no ${binary}: run make build, or name it in DRAGOMAN\n1..1`);
    process.exit(1);
}

// ---- TAP -----------------------------------------------------------------------------------------

const tests = [];

/** Adds a test; run() runs them in order, one at a time. */
export function test(name, fn) {
    if (tests.some((t) => t.name === name)) throw new Error(`two tests are named "${name}"`);
    tests.push({ name, fn });
}

export async function run() {
    let failed = 0;
    for (const [i, { name, fn }] of tests.entries()) {
        try {
            await Promise.race([fn(), new Promise((_, no) => setTimeout(() => no(new Error('no end after 20 s')), 20000).unref())]);
            console.log(`ok ${i + 1} - ${name}`);
        } catch (error) {
            failed++;
            console.log(`not ok ${i + 1} - ${name}`);
            console.log(String(error?.stack ?? error).replace(/^/gm, '# '));
        }
    }
    console.log(`1..${tests.length}`);
    process.exit(failed ? 1 : 0);
}

// ---- dragoman convert ------------------------------------------------------------------------------

/** Runs `dragoman convert`; text in, text out. Throws with its words when it refuses. */
export function convert(from, to, input, { object, frame } = {}) {
    const args = ['convert', '--from', from, '--to', to];
    if (object) args.push('--object', object);
    if (frame) args.push('--frame', frame);
    const text = typeof input === 'string' ? input : JSON.stringify(input);
    const r = spawnSync(binary, args, { input: text, encoding: 'utf8', maxBuffer: 1 << 28 });
    if (r.error) throw r.error;
    if (r.status !== 0)
        throw new Error(`dragoman ${args.join(' ')}: exit ${r.status ?? r.signal}\n${r.stderr}for ${text}`);
    return r.stdout;
}

export const convertJson = (from, to, input, options) => {
    const text = convert(from, to, input, options);
    try {
        return JSON.parse(text);
    } catch (error) {
        throw new Error(`dragoman wrote no JSON: ${error.message}\n${text}`);
    }
};

// ---- the objects -------------------------------------------------------------------------------------

export const dialects = ['a2a-1.0', 'a2a-0.3', 'a2a-0.3-rest'];

const read = (name) => JSON.parse(readFileSync(resolve(here, '../..', name), 'utf8'));
const table = read('objects.json');
export const { methods, streams, errors } = read('calls.json');

function spell(value, dialect) {
    if (Array.isArray(value)) return value.map((v) => spell(v, dialect));
    if (value === null || typeof value !== 'object') return value;
    if ('$' in value) return inDialect(value.$, dialect);
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, spell(v, dialect)]));
}

/** The named object in the dialect; undefined when the dialect does not have it. */
export function inDialect(name, dialect) {
    if (!table[name]) throw new Error(`objects.json has no "${name}"`);
    return spell(table[name][dialect], dialect);
}

/** [{name, object, hint}] of the objects that the dialect has; hint: the value for --object. */
export const objectsOf = (dialect) =>
    Object.entries(table)
        .filter(([, o]) => dialect in o)
        .map(([name, o]) => ({ name, object: o.object, hint: o.ask ? o.object : undefined }));

export const othersOf = (name, dialect) => dialects.filter((d) => d !== dialect && d in table[name]);

/** What --object must say for the named object, even where convert would guess it: in an envelope
 *  the same result may answer several methods. */
export const kindOf = (name) => table[name].object;

// ---- comparing ---------------------------------------------------------------------------------------

const opaque = new Set(['metadata', 'header', 'scopes']);
const isEmpty = (v) =>
    v === undefined || v === null || v === '' || v === false || v === 0 || (Array.isArray(v) && v.length === 0);

/** The same value for every way to write it: members with default values may be left out, times have
 *  one format. Values that are opaque to A2A (metadata, data, params of an extension) are not changed. */
export function normal(value) {
    if (Array.isArray(value)) return value.map((v) => normal(v));
    if (value === null || typeof value !== 'object') return value;
    const out = {};
    for (const [k, v] of Object.entries(value)) {
        const isData = k === 'data' && !(v && typeof v === 'object' && Object.keys(v).join() === 'data');
        if (opaque.has(k) || isData || (k === 'params' && 'uri' in value)) {
            if (v !== undefined && !(k === 'metadata' && (v === null || Object.keys(v).length === 0))) out[k] = v;
        } else if (k === 'securitySchemes' && v && Object.keys(v).length === 0) {
            continue;
        } else if (k === 'state' && v === 'TASK_STATE_UNSPECIFIED') {
            continue;
        } else if (typeof v === 'string' && /^timestamp$|TimestampAfter$/.test(k)) {
            out[k] = new Date(v).toISOString();
        } else if (!isEmpty(v)) {
            out[k] = normal(v);
        }
    }
    return out;
}

/** Where two values differ first: [JSON pointer, one, other]; undefined when they do not. */
function difference(a, b, at = '') {
    if (isDeepStrictEqual(a, b)) return undefined;
    const both = [a, b].every((v) => v !== null && typeof v === 'object' && !Buffer.isBuffer(v)) && Array.isArray(a) === Array.isArray(b);
    if (!both) return [at, a, b];
    for (const k of new Set([...Object.keys(a), ...Object.keys(b)])) {
        const found = difference(a[k], b[k], `${at}/${k}`);
        if (found) return found;
    }
    return [at, a, b];
}

export function equal(got, expected, what = 'value') {
    const found = difference(got, expected);
    if (found) throw new Error(`${what} differs at "${found[0]}"\n  got:      ${JSON.stringify(found[1])}\n  expected: ${JSON.stringify(found[2])}`);
}

export const same = (got, expected, what = 'value') => equal(normal(got), normal(expected), what);

/** Awaits a failure and hands it back. */
export async function failure(promise) {
    try {
        await promise;
    } catch (error) {
        return error;
    }
    throw new Error('no error came');
}

export async function collect(stream) {
    const all = [];
    for await (const event of stream) all.push(event);
    return all;
}

// ---- a fake of fetch ---------------------------------------------------------------------------------

/** A fetch that notes each request and answers with what `answer(request)` gives:
 *  {status?, type?, body}. SSE bodies come in small pieces, so that no event arrives whole. */
export function fakeFetch(answer) {
    const requests = [];
    const fetch = async (url, init = {}) => {
        const request = {
            url: String(url),
            method: init.method ?? 'GET',
            body: init.body,
            json: init.body === undefined ? undefined : JSON.parse(init.body),
        };
        requests.push(request);
        const { status = 200, type = 'application/json', body = '' } = await answer(request);
        const bytes = new TextEncoder().encode(body);
        const pieces = new ReadableStream({
            start(controller) {
                for (let at = 0; at < bytes.length; at += 97) controller.enqueue(bytes.slice(at, at + 97));
                controller.close();
            },
        });
        const empty = status === 204 || status === 304;
        return new Response(empty ? null : pieces, { status, headers: { 'Content-Type': type } });
    };
    return { fetch, requests };
}

export const sse = 'text/event-stream';
