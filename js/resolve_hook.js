// See resolve.js. Older versions of node run this module in a thread of its own.
import { readFileSync } from 'node:fs';

const { name, exports } = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8'));

/** The file of `dragoman` or `dragoman/testing`, or null. */
function ownFile(specifier) {
    if (specifier !== name && !specifier.startsWith(`${name}/`)) return null;
    const entry = exports[`.${specifier.slice(name.length)}`];
    return entry ? new URL(typeof entry === 'string' ? entry : entry.default, import.meta.url).href : null;
}

export function resolve(specifier, context, nextResolve) {
    const own = ownFile(specifier);
    if (!own) return nextResolve(specifier, context);
    const found = (error) => {
        if (error && !/NOT_FOUND/.test(error.code)) throw error;
        return { url: own, format: 'module', shortCircuit: true };
    };
    let result;
    try {
        result = nextResolve(specifier, context);
    } catch (error) {
        return found(error);
    }
    return typeof result?.catch === 'function' ? result.catch(found) : result;
}
