// A stand-in for `dragoman serve` made of @a2a-js/sdk 1.3.0 and express: same command line, same start
// line, the agents bench, tck, hello and demo. It is here to try the wire tests, not to be right: what
// it does otherwise than the reference says is listed in `known`.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { webcrypto } from 'node:crypto';

globalThis.crypto ??= webcrypto;
const require = createRequire(new URL('../../interop/node/package.json', import.meta.url));
const load = (name) => import(pathToFileURL(require.resolve(name)).href.replace(/\.cjs$/, '.js'));
const sdk = await load('a2a-js-1');
const lib = await load('a2a-js-1/server');
const { jsonRpcHandler, restHandler, agentCardHandler } = await load('a2a-js-1/server/express');
const express = require('express');

// ---- command line ------------------------------------------------------------------------------------

const options = { listen: '127.0.0.1:0', agent: 'bench', profile: '' };
let config = {};
for (let i = 3; i < process.argv.length; i += 2) {
    const [name, value] = [process.argv[i], process.argv[i + 1]];
    if (name === '-c') config = JSON.parse(readFileSync(value, 'utf8'));
    else options[name.replace(/^--/, '')] = value;
}
if (options.profile === 'tck') options.agent = 'tck';
const a2a = config.a2a ?? {};
const port = Number(options.listen.split(':').pop());

// ---- events ------------------------------------------------------------------------------------------

const S = sdk.TaskState;
const E = lib.AgentEvent;
const now = () => new Date().toISOString();
const text = (t) => ({ content: { $case: 'text', value: t }, metadata: undefined, filename: '', mediaType: '' });
const data = (v) => ({ content: { $case: 'data', value: v }, metadata: undefined, filename: '', mediaType: '' });
const said = (run, parts) => ({
    messageId: crypto.randomUUID(), contextId: run.contextId, taskId: run.taskId, role: sdk.Role.ROLE_AGENT, parts, metadata: undefined, extensions: [], referenceTaskIds: [],
});
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

class Run {
    constructor({ userMessage, taskId, contextId, task }, bus) {
        Object.assign(this, { userMessage, taskId, contextId, task, bus, canceled: false });
        this.words = userMessage.parts.map((p) => (p.content?.$case === 'text' ? p.content.value : '')).join('');
    }
    begin() {
        const status = { state: S.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() };
        if (!this.task) this.bus.publish(E.task({ id: this.taskId, contextId: this.contextId, status, artifacts: [], history: [{ ...this.userMessage, taskId: this.taskId, contextId: this.contextId }], metadata: undefined }));
    }
    status(state, parts, metadata) {
        this.bus.publish(E.statusUpdate({ taskId: this.taskId, contextId: this.contextId, status: { state, message: parts && said(this, parts), timestamp: now() }, metadata }));
    }
    chunk(id, part, append, lastChunk) {
        const artifact = { artifactId: id, name: id, description: '', parts: [part], metadata: undefined, extensions: [] };
        this.bus.publish(E.artifactUpdate({ taskId: this.taskId, contextId: this.contextId, artifact, append, lastChunk, metadata: undefined }));
    }
    reply(t) {
        this.bus.publish(E.message({ ...said(this, [text(t)]), taskId: '' }));
    }
    /** false when canceled meanwhile */
    async wait(ms) {
        for (const end = Date.now() + ms; Date.now() < end && !this.canceled;) await sleep(Math.min(50, Math.max(1, end - Date.now())));
        return !this.canceled;
    }
}

// ---- agents ------------------------------------------------------------------------------------------

const agents = {
    async hello(run) {
        run.reply('Hello!');
    },
    async bench(run) {
        const [, verb, n, pause, rest] = /^(echo|chunks|hold) ?(\d+)? ?(yield)? ?([^]*)$/.exec(run.words) ?? [null, 'echo', '', '', run.words];
        if (verb === 'echo') return run.reply(run.words.replace(/^echo /, ''));
        run.begin();
        run.status(S.TASK_STATE_WORKING);
        let all = '';
        if (verb === 'hold') {
            if (!(await run.wait(Number(n) * 1000))) return;
        } else {
            for (let i = 0; i < n; i++) {
                if (pause) await new Promise(setImmediate);
                if (run.canceled) return;
                all += `${rest || 'chunk'} ${i} `;
                run.chunk('text', text(`${rest || 'chunk'} ${i} `), i > 0, i + 1 == n);
            }
        }
        run.status(S.TASK_STATE_COMPLETED, [text(all || 'done')]);
    },
    async tck(run) {
        const id = run.userMessage.messageId;
        const is = (p) => id.startsWith('tck-' + p);
        if (is('message-response')) return run.reply('Direct message response');
        run.begin();
        if (is('reject-task')) return run.status(S.TASK_STATE_REJECTED, [text('rejected')]);
        run.status(S.TASK_STATE_WORKING);
        if (id.startsWith('test-resubscribe') && !(await run.wait(4000))) return;
        if (is('input-required') || !/^(tck|test)-/.test(id)) return run.status(S.TASK_STATE_INPUT_REQUIRED, [text('More, please')]);
        const file = (content) => ({ content, metadata: undefined, filename: 'output.txt', mediaType: 'text/plain' });
        if (is('artifact-file-url')) run.chunk('a', file({ $case: 'url', value: 'https://example.com/output.txt' }), false, true);
        else if (is('artifact-file')) run.chunk('a', file({ $case: 'raw', value: Buffer.from('file content') }), false, true);
        else if (is('artifact-data')) run.chunk('a', data({ key: 'value', count: 42 }), false, true);
        else if (is('stream-artifact-chunked')) {
            run.chunk('a', text('chunk-1 '), false, false);
            run.chunk('a', text('chunk-2'), true, true);
        } else if (is('artifact-text') || is('stream-001') || is('stream-003') || is('stream-ordering')) run.chunk('a', text('Generated text content'), false, true);
        run.status(S.TASK_STATE_COMPLETED, [text('Hello from TCK')]);
    },
    async demo(run) {
        run.begin();
        if (run.task) return run.status(S.TASK_STATE_COMPLETED, [text('Thank you.')]);
        const word = run.words.trim();
        if (word === 'reject') return run.status(S.TASK_STATE_REJECTED, [text('No.')]);
        run.status(S.TASK_STATE_WORKING);
        const done = (t) => run.status(S.TASK_STATE_COMPLETED, [text(t)]);
        const stream = (words) => words.forEach((w, i) => run.chunk('answer', text(w), i > 0, i + 1 === words.length));
        if (word === 'stream') return stream(['Hello', ' world', '!']), done('Hello world!');
        if (word === 'status') {
            for (let i = 1; i <= 5; i++) {
                run.status(S.TASK_STATE_WORKING, [data({ type: 'status-indicator', text: `Step ${i}`, displayAs: 'loading' })]);
                if (!(await run.wait(1000))) return;
            }
            return stream(['Slow', ' done']), done('Slow done');
        }
        if (word === 'file') return run.chunk('file', { content: { $case: 'raw', value: Buffer.from('content') }, metadata: undefined, filename: 'demo.txt', mediaType: 'text/plain' }, false, true), done('A file.');
        if (word === 'data') return run.chunk('data', data({ a: 1 }), false, true), done('Data.');
        if (word === 'ask') return run.status(S.TASK_STATE_INPUT_REQUIRED, [text('Which one?')]);
        if (word === 'auth') return run.status(S.TASK_STATE_AUTH_REQUIRED, [text('Please log in.')]);
        if (word === 'fail') return run.status(S.TASK_STATE_FAILED, [text('It broke.')], { error: 'It broke.' });
        return done('help: stream status file data ask auth fail reject');
    },
};

const runs = new Map();
const executor = {
    async execute(context, bus) {
        const run = new Run(context, bus);
        runs.set(run.taskId, run);
        try {
            await agents[options.agent](run);
        } finally {
            if (runs.get(run.taskId) === run) runs.delete(run.taskId);
            if (!run.canceled) bus.finished();
        }
    },
    async cancelTask(taskId, bus) {
        const run = runs.get(taskId);
        if (run) run.canceled = true;
        const contextId = run?.contextId ?? (await store.load(taskId, new lib.ServerCallContext({})))?.contextId ?? '';
        bus.publish(E.statusUpdate({ taskId, contextId, status: { state: S.TASK_STATE_CANCELED, message: undefined, timestamp: now() }, metadata: undefined }));
        bus.finished();
    },
};

// ---- server ------------------------------------------------------------------------------------------

const store = new lib.InMemoryTaskStore();
const card = (url) => ({
    name: options.agent, description: 'A stand-in', version: '1', provider: undefined,
    supportedInterfaces: ['1.0', '0.3'].flatMap((protocolVersion) => ['JSONRPC', 'HTTP+JSON'].map((protocolBinding) => ({ url, protocolBinding, tenant: '', protocolVersion }))),
    capabilities: { streaming: a2a.streaming ?? true, pushNotifications: false, extensions: (a2a.extensions ?? []).map((e) => ({ description: '', required: false, params: undefined, ...e })), extendedAgentCard: false },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'does s', tags: ['x'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }], signatures: [],
});

const app = express();
const tokens = new Map((config.tokens ?? []).filter((t) => t.kind !== 'api-key').map((t) => [`Bearer ${t.token}`, t.principal]));
const keys = new Map((config.tokens ?? []).filter((t) => t.kind === 'api-key').map((k) => [k.token, k.principal]));
const whose = (req) => tokens.get(req.headers.authorization?.replace(/^bearer /i, 'Bearer ')) ?? keys.get(req.headers['x-api-key']);
if (tokens.size) {
    app.use((req, res, next) => {
        if (req.path.startsWith('/.well-known/') || whose(req)) return next();
        res.status(401).set('WWW-Authenticate', 'Bearer').json({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'who are you?' } });
    });
}
const userBuilder = async (req) => (tokens.size ? { isAuthenticated: true, userName: whose(req) } : new lib.UnauthenticatedUser());

const server = app.listen(port, '127.0.0.1', () => {
    const url = `http://127.0.0.1:${server.address().port}/`;
    const requestHandler = new lib.DefaultRequestHandler(card(url), store, executor);
    const legacyCompat = { enabled: true };
    app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
    const rpc = jsonRpcHandler({ requestHandler, userBuilder, legacyCompat });
    const rest = restHandler({ requestHandler, userBuilder, legacyCompat });
    app.use((req, res, next) => (/^\/(api\/)?a2a\/?$|^\/$/.test(req.path) ? ((req.url = '/'), rpc(req, res, next)) : rest(req, res, next)));
    console.log(`listening on ${url.slice(0, -1)}`);
});
process.on('SIGTERM', () => process.exit(0));
