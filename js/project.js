// Packages and modules of the project whose graphs are run. They must be the project's own copies: an object of another copy of
// LangGraph is not an instance of the project's classes.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { registerPackage } from './resolve.js';

/** How this process is described in errors: which node, and where. */
export const interpreter = () => `node ${process.versions.node} (${process.execPath})`;

/** Finds an installed package as node does: the node_modules of the folder and of those above it. */
export function findPackage(name, folder) {
    for (let dir = existsSync(folder) ? realpathSync(folder) : path.resolve(folder); ; dir = path.dirname(dir)) {
        const candidate = path.join(dir, 'node_modules', name, 'package.json');
        if (existsSync(candidate)) {
            const file = realpathSync(candidate);
            return { name, dir: path.dirname(file), manifest: JSON.parse(readFileSync(file, 'utf8')) };
        }
        if (path.dirname(dir) === dir) return null;
    }
}

function pickTarget(target, conditions) {
    if (typeof target === 'string' || target == null) return target;
    if (Array.isArray(target)) return target.map((t) => pickTarget(t, conditions)).find(Boolean);
    for (const [key, value] of Object.entries(target))
        if (key === 'default' || conditions.includes(key)) {
            const found = pickTarget(value, conditions);
            if (found) return found;
        }
    return undefined;
}

/**
 * The file of a package's entry ("." or "./messages") for `import` or for `require`. node offers this only for the module
 * that asks: import.meta.resolve with another parent is experimental.
 */
export function entryFile(pkg, subpath, kind) {
    const { exports, main } = pkg.manifest;
    const entries = exports && typeof exports === 'object' && Object.keys(exports).some((k) => k.startsWith('.')) ? exports : { '.': exports ?? main ?? 'index.js' };
    const target = pickTarget(entries[subpath], ['node', kind]);
    return target ? path.join(pkg.dir, target) : null;
}

async function importEntry(pkg, subpath, kind) {
    const file = entryFile(pkg, subpath, kind);
    if (!file) throw new Error(`the package ${pkg.name} has no entry ${subpath}`);
    return kind === 'require' ? createRequire(path.join(pkg.dir, 'package.json'))(file) : import(pathToFileURL(file).href);
}

/** What this worker needs of LangGraph, from the project. `graph` decides between its two builds (ES modules, CommonJS). */
export async function loadLibrary(folder, graph) {
    const langgraph = findPackage('@langchain/langgraph', folder);
    if (!langgraph)
        throw new Error(`the package @langchain/langgraph is not installed: no node_modules with it in ${folder} or above. Run: npm install @langchain/langgraph @langchain/core`);
    const { version } = langgraph.manifest;
    const core = findPackage('@langchain/core', langgraph.dir), checkpoint = findPackage('@langchain/langgraph-checkpoint', langgraph.dir);
    for (const [name, found] of [['@langchain/core', core], ['@langchain/langgraph-checkpoint', checkpoint]])
        if (!found) throw new Error(`the package ${name} is not installed, and @langchain/langgraph ${version} needs it. Run: npm install ${name}`);
    let kind = 'import';
    if (graph) {
        const { Pregel } = await importEntry(langgraph, './pregel', 'import');
        if (!(graph instanceof Pregel)) kind = 'require';
    }
    const [main, messages, saver] = await Promise.all([
        importEntry(langgraph, '.', kind), importEntry(core, './messages', kind), importEntry(checkpoint, '.', kind)]);
    return { version, kind, langgraph: main, messages, checkpoint: saver };
}

let hasTypeScript = false;

/** Lets import() read TypeScript: by the project's tsx, or by node itself. */
async function enableTypeScript(file) {
    if (hasTypeScript) return;
    const tsx = findPackage('tsx', path.dirname(file));
    if (tsx) {
        for (const entry of ['./esm/api', './cjs/api'])
            if (entryFile(tsx, entry, 'import')) (await importEntry(tsx, entry, 'import')).register();
    } else if (!process.features.typescript) {
        throw new Error(`${file} is TypeScript, which ${interpreter()} cannot read. Run: npm install --save-dev tsx   (in the project), or build it and name the .js file`);
    }
    hasTypeScript = true;
}

const LOCATE_MS = 5000;
const LOCATE = `const { registerPackage } = await import(process.argv[1]); registerPackage(); await import(process.argv[2]);`;

/**
 * Adds the file and the line to a syntax error of a module. node shows the place only of an error that ends the process, and stores it
 * nowhere, so another process imports the file and is read.
 */
function locateSyntaxError(error, url) {
    if (!(error instanceof SyntaxError) || !/^SyntaxError: .*\n +at .*\(node:/.test(error.stack)) return;
    const args = ['--input-type=module', '--eval', LOCATE, new URL('./resolve.js', import.meta.url).href, url];
    const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: LOCATE_MS, stdio: ['ignore', 'ignore', 'pipe'] });
    const found = /^(file:\S+):(\d+)\n([^\n]*\n[^\n]*)\n/m.exec(stderr ?? '');
    if (!found) return;
    const place = `${fileURLToPath(found[1])}:${found[2]}`;
    error.stack = `${place}\n${found[3]}\n${error.stack}`;
    error.message = `${error.message} (${place})`;
}

/** Imports a file of the project. */
export async function importFile(file) {
    if (!existsSync(file)) throw new Error(`no such file: ${file}`);
    registerPackage();
    if (/\.[cm]?tsx?$/.test(file)) await enableTypeScript(file);
    const url = pathToFileURL(file).href;
    try {
        return await import(url);
    } catch (error) {
        locateSyntaxError(error, url);
        throw error;
    }
}

/** Splits "./src/agent.mjs:graph" into a path and the name of an export ("default" if it has none). */
export function splitSpec(spec) {
    const colon = spec.lastIndexOf(':');
    return colon > 0 && !/[/\\]/.test(spec.slice(colon)) ? [spec.slice(0, colon), spec.slice(colon + 1) || 'default'] : [spec, 'default'];
}

/** The export of a module; of a CommonJS module also the member of module.exports. */
export function exportOf(module, name) {
    if (name in module) return module[name] !== undefined && name === 'default' && module.default?.default !== undefined && module.default.__esModule ? module.default.default : module[name];
    return module.default?.[name];
}
