// What the programs share: the stories of ../openai, more of them, convert, and a server of any bytes.
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { convert, sse, stories as told } from '../../openai/lib/world.mjs';

export { convert, sse };

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const binary = resolve(root, process.env.DRAGOMAN ?? 'build/dragoman');

/** `dragoman convert`, bytes in, bytes out. */
export function convertBytes(from, to, input, ...options) {
    const args = ['convert', '--from', from, '--to', to, ...options];
    const r = spawnSync(binary, args, { input, maxBuffer: 1 << 28 });
    if (r.status) throw new Error(`${args.join(' ')}: exit ${r.status}\n${r.stderr}`);
    return r.stdout;
}

const run = { threadId: 't', runId: 'r' };
const chunk = (delta, more = {}) => ({
    id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }],
});

/**
 * A2A's stories, and what A2A's wire has no events for. text: the whole answer; texts: by message, where they
 * are several; calls; results; thought; shared: the state; ends: how the run does.
 */
export const stories = [
    ...told.map((s) => ({
        ...s,
        from: 'a2a-1.0',
        text: s.final ?? s.text ?? s.refusal ?? '',
        said: s.text,
        texts: s.name === 'two-texts' ? ['One.', 'Two.'] : undefined,
        calls: s.calls ?? (s.own ? [{ id: 'own1', name: s.own.name, arguments: s.own.arguments }] : []),
        results: s.own ? { own1: s.own.output } : {},
        ends: s.error ? 'failed' : { canceled: 'cancelled', rejected: 'rejected', question: 'interrupt', tools: 'pending' }[s.name] ?? 'completed',
    })),
    {
        name: 'reasoning', from: 'openai-chat', text: 'Four.', thought: 'Two and two', calls: [], results: {}, ends: 'completed',
        events: [chunk({ role: 'assistant', reasoning_content: 'Two ' }), chunk({ reasoning_content: 'and two' }), chunk({ content: 'Fo' }),
            chunk({ content: 'ur.' }), chunk({}, { finish_reason: 'stop' })],
    },
    {
        name: 'parallel-arguments', from: 'openai-chat', text: '', ends: 'pending', results: {},
        calls: [{ id: 'a', name: 'f', arguments: { x: 'é"' } }, { id: 'b', name: 'g', arguments: { y: [1] } }],
        events: [
            chunk({ role: 'assistant', tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] }),
            chunk({ tool_calls: [{ index: 0, function: { arguments: '{"x":"é' } }, { index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{"y"' } }] }),
            chunk({ tool_calls: [{ index: 1, function: { arguments: ':[1]}' } }] }),
            chunk({ tool_calls: [{ index: 0, function: { arguments: '\\""}' } }] }),
            chunk({}, { finish_reason: 'tool_calls' })],
    },
    {
        name: 'state-and-subagents', from: 'ag-ui', text: 'Done', shared: { plan: ['a'] }, calls: [], results: {}, ends: 'completed',
        events: [
            { type: 'RUN_STARTED', ...run, protocolVersion: '1.0' }, { type: 'STATE_SNAPSHOT', snapshot: { plan: [] } },
            { type: 'SUBAGENT_STARTED', subagentRunId: 's', name: 'helper' }, { type: 'STEP_STARTED', stepName: 'look', subagentRunId: 's' },
            { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/plan/-', value: 'a' }] },
            { type: 'STEP_STARTED', stepName: 'look' }, { type: 'STEP_FINISHED', stepName: 'look' },
            { type: 'STEP_FINISHED', stepName: 'look', subagentRunId: 's' }, { type: 'SUBAGENT_FINISHED', subagentRunId: 's' },
            { type: 'TEXT_MESSAGE_START', messageId: 'm' }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Done' },
            { type: 'TEXT_MESSAGE_END', messageId: 'm' }, { type: 'CUSTOM', name: 'x:y', value: null },
            { type: 'RUN_FINISHED', ...run, outcome: { type: 'success' }, usage: [{ model: 'm', inputTokens: 3, outputTokens: 2 }] }],
    },
    {
        name: 'files', from: 'a2a-1.0', text: 'See the picture', calls: [], results: {}, ends: 'completed', file: 'data:image/png;base64,aGk=',
        events: [
            { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' } } },
            { artifactUpdate: { taskId: 't', contextId: 'c', artifact: { artifactId: 'p', parts: [{ raw: 'aGk=', filename: 'a.png', mediaType: 'image/png' }, { data: { n: 1 } }] } } },
            { artifactUpdate: { taskId: 't', contextId: 'c', lastChunk: true, artifact: { artifactId: 'a', parts: [{ text: 'See the picture' }] } } },
            { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } }],
    },
];

/** The story in another format, as bytes. */
export const tell = (s, to) => convertBytes(s.from, to, sse(s.events) + (s.from === 'openai-chat' ? 'data: [DONE]\n\n' : ''));

/** A server on a free port that answers every request with these bytes. */
export async function serve(type, bytes) {
    const server = createServer((request, response) => {
        request.resume().on('end', () => response.setHeader('content-type', type).end(bytes));
    });
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}
