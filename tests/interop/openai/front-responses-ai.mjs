// `ai` with the Responses model of `@ai-sdk/openai` at a live server: two turns (references!), tools, streams.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { live } from './lib/live.mjs';

const server = await live();
const bodies = [];
const openai = createOpenAI({
    baseURL: `${server.url}/v1`, apiKey: 'none',
    fetch: (url, options) => { bodies.push(JSON.parse(options.body)); return fetch(url, options); },
});
const said = 'The tools say: 1=rain in Oslo, 2=noon in CET';
const tools = () => ({
    get_weather: tool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => `rain in ${city}` }),
    get_time: tool({ inputSchema: z.object({ zone: z.string() }), execute: async ({ zone }) => `noon in ${zone}` }),
});

async function streamed(options) {
    const result = streamText({ maxRetries: 0, ...options, onError() {} });
    let text = '';
    for await (const part of result.fullStream) {
        if (part.type === 'text-delta') text += part.text;
        if (part.type === 'error') throw part.error;
    }
    return { text, result };
}

test('ai: generateText', async () => {
    const { text, finishReason } = await generateText({ model: openai('demo'), prompt: 'tools', maxRetries: 0 });
    equal([text, finishReason], ['It is sunny in Oakland, 72°F.', 'stop'], 'the answer');
});

test('ai: streamText: the text once, thoughts beside it', async () => {
    const { text, result } = await streamed({ model: openai('demo'), prompt: 'reasoning' });
    equal(text, '17 is a prime number.', 'the answer');
    check((await result.reasoningText).includes('17 is prime'), 'the thought');
});

test('ai: the second turn refers to items of the first', async () => {
    const messages = [{ role: 'user', content: 'tools' }];
    const first = await generateText({ model: openai('demo'), messages, maxRetries: 0 });
    messages.push(...first.response.messages, { role: 'user', content: 'stream' });
    bodies.length = 0;
    const second = await generateText({ model: openai('demo'), messages, maxRetries: 0 });
    check(bodies[0].input.some((i) => i.type === 'item_reference'), 'it is a reference');
    check(second.text.includes('An A2A task is a small story'), second.text);
});

for (const stream of [false, true]) {
    test(`ai: two tools at once, ${stream ? 'streamed' : 'whole'}`, async () => {
        const options = { model: openai('caller'), prompt: 'go', tools: tools(), stopWhen: stepCountIs(3), maxRetries: 0 };
        bodies.length = 0;
        const text = stream ? (await streamed(options)).text : (await generateText(options)).text;
        equal(text, said, 'the answer');
        equal(bodies.length, 2, 'the requests');
    });
}

test('ai: previousResponseId', async () => {
    const first = await generateText({ model: openai('demo'), prompt: 'ask', maxRetries: 0 });
    const previousResponseId = first.providerMetadata.openai.responseId;
    const second = await generateText({ model: openai('demo'), prompt: 'Ada', maxRetries: 0, providerOptions: { openai: { previousResponseId } } });
    check(second.text.startsWith('Hello Ada'), second.text);
});

test('ai: a failure costs one request', async () => {
    bodies.length = 0;
    const error = await failure(generateText({ model: openai('demo'), prompt: 'fail' }));
    check(String(error.message).includes('asked to fail'), error.message);
    equal(bodies.length, 1, 'the requests');
});

test('ai: a failure before any output costs one request when it is streamed, too', async () => {
    bodies.length = 0;
    const errors = [];
    const result = streamText({ model: openai('demo'), prompt: 'fail', onError: ({ error }) => errors.push(String(error?.message ?? error)) });
    for await (const _ of result.fullStream);
    check(errors.some((e) => e.includes('asked to fail')), errors.join());
    equal(bodies.length, 1, 'the requests');
});

test('ai: the server ends well', () => server.stop());
await run();
