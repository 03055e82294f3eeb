// `ai` talks to a live server, by @ai-sdk/openai-compatible and by @ai-sdk/openai's .chat().
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { front } from './lib/front.mjs';

const server = await front();
const baseURL = `${server.url}/v1`;
const compatible = createOpenAICompatible({ name: 'dragoman', baseURL, apiKey: 'none', includeUsage: true, supportsStructuredOutputs: true });
const openai = createOpenAI({ baseURL, apiKey: 'none' });
const makers = { 'ai-compat': (name) => compatible(name), 'ai-oai.chat': (name) => openai.chat(name) };
const story = 'An A2A task is a small story';

const called = [];
const tools = {
    get_weather: tool({ description: 'weather', inputSchema: z.object({ city: z.string() }), execute: ({ city }) => (called.push(city), 'snow') }),
    get_time: tool({ description: 'time', inputSchema: z.object({ zone: z.string() }), execute: ({ zone }) => (called.push(zone), 'noon') }),
};

async function parts(result) {
    const all = [];
    for await (const part of result.fullStream) all.push(part);
    return all;
}
const of = (all, type) => all.filter((p) => p.type === type);
const text = (all) => of(all, 'text-delta').map((p) => p.text).join('');

for (const [who, make] of Object.entries(makers)) {
    test(`${who}: generateText`, async () => {
        const got = await generateText({ model: make('demo'), prompt: 'stream' });
        check(got.text.startsWith(story), got.text);
        equal([got.finishReason, got.response.modelId], ['stop', 'demo'], 'the end');
        check(got.response.headers['x-a2a-task-id'], 'the task is named');
    });

    test(`${who}: streamText, text once`, async () => {
        const whole = (await generateText({ model: make('demo'), prompt: 'stream' })).text;
        const result = streamText({ model: make('demo'), prompt: 'stream' });
        const all = await parts(result);
        equal([text(all), of(all, 'text-start').length, of(all, 'error').length], [whole, 1, 0], 'the text');
        equal(await result.finishReason, 'stop', 'the end');
    });

    test(`${who}: tools, run by the SDK`, async () => {
        for (const go of [
            async (o) => (await generateText(o)).text,
            async (o) => { const r = streamText(o); await parts(r); return r.text; },
        ]) {
            called.length = 0;
            const answer = await go({ model: make('caller'), prompt: 'go', tools, stopWhen: stepCountIs(3) });
            equal(answer, 'The tools say: 1=snow, 2=noon', 'the answer');
            equal(called.toSorted(), ['CET', 'Oslo'], 'what was called');
        }
    });

    test(`${who}: a question, and its answer`, async () => {
        const headers = { 'X-Conversation-ID': `${who}-asked` };
        const first = await generateText({ model: make('demo'), prompt: 'ask', headers });
        equal(first.text, 'What is your name?', 'the question');
        const messages = [{ role: 'user', content: 'ask' }, { role: 'assistant', content: first.text }, { role: 'user', content: 'Ann' }];
        const second = await generateText({ model: make('demo'), messages, headers });
        check(second.text.startsWith('Hello Ann'), second.text);
        equal(second.response.headers['x-a2a-task-id'], first.response.headers['x-a2a-task-id'], 'the task');
    });

    test(`${who}: a failure is reported, and the task runs once`, async () => {
        const error = await failure(generateText({ model: make('demo'), prompt: 'fail' }));
        check(APICallError.isInstance(error), error);
        equal([error.statusCode, error.isRetryable, error.message], [424, false, 'the demo was asked to fail'], 'the error');
        const all = await parts(streamText({ model: make('demo'), prompt: 'break', onError: () => {} }));
        check(text(all).length > 10 && JSON.stringify(of(all, 'error').map((p) => p.error.message ?? p.error)).includes('broke off'), JSON.stringify(of(all, 'error')));
    });

    test(`${who}: usage`, async () => {
        const { usage } = await generateText({ model: make('demo'), prompt: 'usage' });
        equal([usage.inputTokens, usage.outputTokens, usage.totalTokens], [12, 9, 21], 'the usage');
    });

    test(`${who}: data, where an object is asked for`, async () => {
        const schema = z.object({ city: z.string() }).passthrough();
        const { output } = await generateText({ model: make('probe'), prompt: 'json', output: Output.object({ schema }) });
        equal(output, { city: 'Oakland' }, 'the object');
    });
}

test('ai-compat: thoughts beside the answer', async () => {
    const got = await generateText({ model: compatible('demo'), prompt: 'reasoning' });
    equal(got.text, '17 is a prime number.', 'the answer');
    check(got.reasoningText.includes('17 is prime'), got.reasoningText);
    const all = await parts(streamText({ model: compatible('demo'), prompt: 'reasoning' }));
    equal([text(all), of(all, 'reasoning-delta').map((p) => p.text).join('')], [got.text, got.reasoningText], 'streamed');
});

await run(() => server.stop());
