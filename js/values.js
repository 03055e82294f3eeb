// Values of JavaScript as JSON: what a user's code returns may hold anything, a line of the protocol may not.

const MAX_DEPTH = 100; // the server's limit is 128 for a whole line

/** A value that has no form in JSON. `path` is where: ".results[2].callback". */
export class NotJson extends TypeError {
    constructor(path, what) {
        super(`${path || 'the value'}: ${what}`);
        this.name = 'NotJson';
        this.path = path;
    }
}

const step = (path, key) => (typeof key === 'number' ? `${path}[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`);

/** A LangChain message, from any copy of its package. */
export const isMessage = (v) => typeof v === 'object' && v !== null && (typeof v.getType === 'function' || typeof v._getType === 'function') && 'content' in v;

/**
 * A copy that is JSON. Map becomes an object, Set a list, BigInt a number or a string, bytes base64, an Error its name and
 * message, NaN and Infinity null; functions, symbols and undefined are left out as JSON.stringify does. `message` converts
 * LangChain messages. A value that contains itself is null there, and so is one that is nested too deeply.
 */
export function toJson(value, message) {
    return copy(value, [], message) ?? null;
}

function copy(v, above, message) {
    switch (typeof v) {
    case 'string':
    case 'boolean':
        return v;
    case 'number':
        return Number.isFinite(v) ? v : null;
    case 'bigint':
        return Number.isSafeInteger(Number(v)) ? Number(v) : String(v);
    case 'object':
        return v === null ? null : copyObject(v, above, message);
    default:
        return undefined;
    }
}

function copyObject(v, above, message) {
    if (above.length >= MAX_DEPTH || above.includes(v)) return null;
    above.push(v);
    try {
        if (message && isMessage(v)) return copy(message(v), above);
        if (v instanceof Uint8Array) return Buffer.from(v.buffer, v.byteOffset, v.byteLength).toString('base64');
        if (typeof v.toJSON === 'function') return copy(v.toJSON(), above, message);
        if (v instanceof Error) return { name: v.name, message: v.message };
        if (v instanceof Set) v = [...v];
        else if (v instanceof Map) v = Object.fromEntries(v);
        if (Array.isArray(v)) return Array.from(v, (item) => copy(item, above, message) ?? null);
        const result = {};
        for (const key of Object.keys(v)) {
            const member = copy(v[key], above, message);
            if (member !== undefined) define(result, key, member);
        }
        return result;
    } finally {
        above.pop();
    }
}

// A member named __proto__ must not become the prototype.
function define(object, key, value) {
    if (key === '__proto__') Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
    else object[key] = value;
}

/** Throws NotJson unless `value` is JSON already: for data that a client gets as it is. Returns the value. */
export function requireJson(value, name = 'data') {
    check(value, name, []);
    return value;
}

function check(v, path, above) {
    if (v === null || typeof v === 'string' || typeof v === 'boolean') return;
    if (typeof v === 'number') {
        if (!Number.isFinite(v)) throw new NotJson(path, `${v} is not a JSON number`);
        return;
    }
    if (typeof v !== 'object') throw new NotJson(path, `expected JSON, got ${v === undefined ? 'undefined' : `a ${typeof v}`}`);
    if (above.includes(v)) throw new NotJson(path, 'it contains itself');
    if (above.length >= MAX_DEPTH) throw new NotJson(path, `more than ${MAX_DEPTH} levels`);
    const isList = Array.isArray(v), prototype = Object.getPrototypeOf(v);
    if (!isList && prototype !== Object.prototype && prototype !== null)
        throw new NotJson(path, `expected a plain object, got ${v.constructor?.name ?? 'an object'}`);
    above.push(v);
    for (const key of Object.keys(v)) check(v[key], step(path, isList ? Number(key) : key), above);
    above.pop();
}
