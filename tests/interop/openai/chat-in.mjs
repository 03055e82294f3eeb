// The way in: streams as servers of many makers send them, our own chunks, and the requests of the clients, as A2A.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, tool } from 'ai';
import OpenAI from 'openai';
import { z } from 'zod';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { chunks, completion, server, streamed, wrong } from './lib/chat.mjs';
import { convert, sse, stories, story } from './lib/world.mjs';

const events_of = (text) => text.split('\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)));

/** What an A2A client has of a stream: text of its artifacts, the last status, the calls that wait. */
function fold(events) {
    const artifacts = new Map();
    let status, metadata;
    for (const { artifactUpdate: a, statusUpdate: s } of events) {
        const text = a?.artifact.parts.map((p) => p.text ?? '').join('');
        if (a) artifacts.set(a.artifact.artifactId, (a.append ? artifacts.get(a.artifact.artifactId) : '') + text);
        if (s) ({ status, metadata } = s);
    }
    const data = status.message?.parts.flatMap((p) => p.data?.tool_calls ?? []) ?? [];
    return {
        text: [...artifacts.values()].join('\n\n'),
        state: status.state.replace('TASK_STATE_', ''),
        said: status.message?.parts.map((p) => p.text ?? '').join('') ?? '',
        calls: data.map((c) => ({ id: c.call_id, name: c.name, arguments: typeof c.arguments === 'string' ? JSON.parse(c.arguments) : c.arguments })),
        error: metadata?.error,
    };
}

const read = (text) => fold(events_of(convert('openai-chat', 'a2a-1.0', text)));

// ---- our own ----

const state_of = (s) => (s.error ? 'FAILED' : s.name === 'canceled' ? 'CANCELED' : s.refusal ? 'REJECTED' : s.calls || s.state ? 'INPUT_REQUIRED' : 'COMPLETED');

for (const s of stories) {
    test(`chunks to A2A and back: ${s.about}`, async () => {
        const got = read(chunks(s.events));
        equal(got.state, state_of(s), 'the state');
        equal(got.text, streamed(s), 'the text');
        equal(got.calls, s.calls ?? [], 'the calls');
        equal(got.error, s.error, 'the error');
        if (s.refusal) equal(got.said, s.refusal, 'the refusal');
    });

    test(`a completion to A2A's events: ${s.about}`, async () => {
        if (wrong(s)) return;
        const got = fold(events_of(convert('openai-chat', 'a2a-1.0', completion(s.events), '--as', 'events', '--frame', 'sse')));
        equal(got.text, s.final ?? s.text ?? '', 'the text');
        equal(got.state, state_of(s), 'the state');
        equal(got.calls, s.calls ?? [], 'the calls');
    });
}

// ---- other makers ----

const chunk = (delta, more = {}, top = {}) => ({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1790000000, model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }], ...top });
const end = (reason) => chunk({}, { finish_reason: reason });
const call = (c) => chunk({ tool_calls: [c] });
const done = 'data: [DONE]\n\n';

const makers = {
    'OpenAI': [sse([chunk({ role: 'assistant', content: '', refusal: null }), chunk({ content: 'Sun' }), chunk({ content: 'ny.' }), end('stop'), { id: 'chatcmpl-1', choices: [], usage: { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 } }]) + done, { text: 'Sunny.', state: 'COMPLETED' }],
    'Azure': [sse([{ choices: [], id: '', model: '', created: 0, prompt_filter_results: [{}] }, chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hi' }), { ...end('stop'), choices: [{ index: 0, finish_reason: 'stop', content_filter_results: {} }] }]) + done, { text: 'Hi', state: 'COMPLETED' }],
    'vLLM': [sse([chunk({ role: 'assistant', content: '' }), chunk({ reasoning: 'hm' }), chunk({ content: 'Hi' }, { finish_reason: 'stop', stop_reason: null })]) + done, { text: 'Hi', state: 'COMPLETED' }],
    'llama.cpp that fails and closes': [`: hello\n\n${sse([chunk({ role: 'assistant', content: null }), chunk({ content: 'H' }), { error: { code: 500, message: 'boom', type: 'server_error' } }])}`, { text: 'H', state: 'FAILED', error: 'boom' }],
    'Ollama with whole calls': [sse([chunk({ role: 'assistant', content: '', tool_calls: [{ id: 'call_1', index: 0, type: 'function', function: { name: 'f', arguments: '{"a":1}' } }, { id: 'call_2', index: 0, type: 'function', function: { name: 'g', arguments: '{}' } }] }), end('tool_calls')]) + done, { text: '', state: 'INPUT_REQUIRED', calls: [{ id: 'call_1', name: 'f', arguments: { a: 1 } }, { id: 'call_2', name: 'g', arguments: {} }] }],
    'Ollama that stops': [sse([chunk({ role: 'assistant', content: 'Ha' }), chunk({})]), { text: 'Ha', state: 'FAILED', error: 'The stream ended before the answer did' }],
    'a server without finish_reason': [sse([chunk({ role: 'assistant', content: 'Ha' })]) + done, { text: 'Ha', state: 'COMPLETED' }],
    'interleaved calls': [sse([call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '' } }), call({ index: 1, id: 'b', type: 'function', function: { name: 'g', arguments: '{"x":"\\u00' } }), call({ index: 0, function: { arguments: '{"city":' } }), call({ index: 1, function: { arguments: 'e9"}' } }), call({ index: 0, function: { arguments: '"Oslo"}' } }), end('tool_calls')]) + done, { text: '', state: 'INPUT_REQUIRED', calls: [{ id: 'a', name: 'f', arguments: { city: 'Oslo' } }, { id: 'b', name: 'g', arguments: { x: 'é' } }] }],
    'OpenRouter': [`: OPENROUTER PROCESSING\n\n${sse([chunk({ role: 'assistant', content: 'Hi', reasoning: null }, {}, { provider: 'x' }), { id: 'chatcmpl-1', error: { code: 502, message: 'gone' }, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] }])}`, { text: 'Hi', state: 'FAILED', error: 'gone' }],
};
for (const [who, [text, want]] of Object.entries(makers)) {
    test(`as ${who} sends it`, async () => {
        const got = read(text);
        equal([got.text, got.state, got.calls, got.error], [want.text, want.state, want.calls ?? [], want.error], 'what A2A has of it');
    });
}

// ---- requests ----

const { url, seen, close } = await server();

test('requests of the clients are understood', async () => {
    const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    await client.chat.completions.create({
        model: 'text', temperature: 0.5,
        messages: [{ role: 'system', content: 'Be nice.' }, { role: 'user', content: [{ type: 'text', text: 'What is it?' }, { type: 'image_url', image_url: { url: 'https://example.org/a.png' } }] }],
        tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object', properties: {} } } }],
        metadata: { a2a_context_id: 'ctx' },
    });
    const input = JSON.parse(convert('openai-chat', 'ag-ui', seen.at(-1)));
    equal(input.threadId, 'ctx', 'the thread');
    equal(input.messages.map((m) => m.role), ['system', 'user'], 'the roles');
    equal(input.messages[1].content.map((p) => p.type), ['text', 'image'], 'the parts');
    equal(input.tools.map((t) => [t.name, t.description, t.parameters.type]), [['f', 'd', 'object']], 'the tools');
    equal(JSON.parse(convert('openai-chat', 'openai-chat', seen.at(-1), '--as', 'request')), seen.at(-1), 'the request, through us');
});

test('the second request of a client with tools has its calls and results', async () => {
    const s = story('tools');
    const compatible = createOpenAICompatible({ name: 'dragoman', baseURL: url, apiKey: 'none' });
    const weather = tool({ description: 'weather', inputSchema: z.object({ city: z.string() }).passthrough(), execute: async ({ city }) => `rain in ${city}` });
    const { text } = await generateText({ model: compatible(s.name), prompt: 'Hello', tools: { weather }, maxRetries: 0, stopWhen: ({ steps }) => steps.length === 2 });
    equal(text, s.then_text, 'the answer');
    const { messages } = JSON.parse(convert('openai-chat', 'ag-ui', seen.at(-1)));
    const made = messages.find((m) => m.toolCalls).toolCalls;
    equal(made.map((c) => [c.id, JSON.parse(c.function.arguments)]), s.calls.map((c) => [c.id, c.arguments]), 'the calls');
    equal(messages.filter((m) => m.role === 'tool').map((m) => [m.toolCallId, m.content]), s.calls.map((c) => [c.id, `rain in ${c.arguments.city}`]), 'the results');
    check(seen.length >= 2, 'two requests');
});

await run();
close();
