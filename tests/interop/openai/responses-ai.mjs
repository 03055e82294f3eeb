// `ai` with `@ai-sdk/openai`, whose default is Responses, reads what convert writes: generated and streamed.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { server } from './lib/responses.mjs';
import { stories, story } from './lib/world.mjs';

globalThis.AI_SDK_LOG_WARNINGS = false;
const { url, seen, close } = await server();
const openai = createOpenAI({ baseURL: url, apiKey: 'none' });

function weather(calls) {
    return tool({
        description: 'What it is like there', inputSchema: z.object({ city: z.string(), quote: z.string().optional() }),
        execute: async (args) => { calls.push(args); return `rain in ${args.city}`; },
    });
}

const ask = (name, calls) => ({
    model: openai(name), prompt: 'Hello', maxRetries: 2, onError() {},
    ...(calls && { tools: { weather: weather(calls) }, stopWhen: stepCountIs(3) }),
});

async function parts_of(result) {
    const parts = [];
    for await (const part of result.fullStream) parts.push(part);
    return parts;
}

const joined = (parts, type) => parts.filter((p) => p.type === type).map((p) => p.text).join('');

for (const s of stories.filter((s) => s.text && !s.error && !s.calls)) {
    test(`ai: ${s.about}`, async () => {
        seen.length = 0;
        const result = await generateText(ask(s.name));
        equal(result.text, s.final ?? s.text, 'the text');
        equal(result.reasoningText ?? '', s.progress ?? '', 'the reasoning');
        equal(seen.length, 1, 'the requests');
        if (s.usage) equal([result.usage.inputTokens, result.usage.outputTokens], s.usage.slice(0, 2), 'the usage');
    });

    test(`ai: ${s.about}: streamed`, async () => {
        seen.length = 0;
        const result = streamText(ask(s.name));
        const parts = await parts_of(result);
        equal(joined(parts, 'text-delta'), s.text, 'the text');
        equal(joined(parts, 'reasoning-delta'), s.progress ?? '', 'the reasoning');
        equal(parts.filter((p) => p.type === 'error').map((p) => String(p.error)), [], 'errors');
        equal(parts.filter((p) => p.type === 'text-start').length, parts.filter((p) => p.type === 'text-end').length, 'texts that ended');
        equal(seen.length, 1, 'the requests');
        if (s.usage) equal([(await result.usage).inputTokens, (await result.usage).outputTokens], s.usage.slice(0, 2), 'the usage');
        if (s.name !== 'canceled') equal(await result.finishReason, 'stop', 'the reason');
    });
}

function check_calls(s, calls, steps) {
    equal(calls, s.calls.map((c) => c.arguments), 'what the tool was called with');
    equal(steps.map((step) => step.text), [s.text, s.then_text], 'the texts');
    equal(steps[0].toolCalls.map((c) => [c.toolCallId, c.input]), s.calls.map((c) => [c.id, c.arguments]), 'the calls');
    equal(seen.length, 2, 'the requests');
    equal(seen[1].input.filter((i) => i.type === 'function_call_output').map((i) => i.call_id), s.calls.map((c) => c.id), 'the outputs');
}

test('ai: tools are run, each once, and their outputs make the second step', async () => {
    const s = story('tools'), calls = [];
    seen.length = 0;
    check_calls(s, calls, (await generateText(ask(s.name, calls))).steps);
});

test('ai: the same, streamed', async () => {
    const s = story('tools'), calls = [];
    seen.length = 0;
    const result = streamText(ask(s.name, calls));
    await parts_of(result);
    check_calls(s, calls, await result.steps);
});

test('ai: a tool of the agent itself is shown with its output, and not run', async () => {
    const s = story('own-tools'), calls = [];
    const parts = await parts_of(streamText(ask(s.name, calls)));
    equal(calls, [], 'the calls');
    const call = parts.find((p) => p.type === 'tool-call');
    check(call?.providerExecuted && call.toolName.endsWith(s.own.name), 'it is shown as the provider\'s');
    check(JSON.stringify(parts.find((p) => p.type === 'tool-result'))?.includes(s.own.output), 'its output is shown');
});

test('ai: a failure is an error, once', async () => {
    const s = story('failure');
    seen.length = 0;
    const parts = await parts_of(streamText(ask(s.name)));
    equal(joined(parts, 'text-delta'), s.text, 'the text so far');
    check(parts.some((p) => p.type === 'error' && JSON.stringify(p.error, Object.getOwnPropertyNames(p.error)).includes(s.error)), 'the error says why');
    equal(seen.length, 1, 'the requests');
});

test('ai: a failure that is no stream', async () => {
    const s = story('failure');
    seen.length = 0;
    check(String((await failure(generateText(ask(s.name)))).message).includes(s.error), 'the error says why');
    equal(seen.length, 1, 'the requests');
});

test('ai: a refusal is reported as one', async () => {
    const result = await generateText(ask('rejected'));
    equal(result.finishReason, 'content-filter', 'the reason');
    equal(result.text, story('rejected').refusal, 'the text');
});

await run();
close();
