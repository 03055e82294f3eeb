// `ai` with @ai-sdk/openai-compatible, and with @ai-sdk/openai's .chat(), reads what convert writes as Chat Completions.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, streamText, tool } from 'ai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { reason, server, streamed, wrong } from './lib/chat.mjs';
import { stories } from './lib/world.mjs';

const { url, seen, close } = await server();
const compatible = createOpenAICompatible({ name: 'dragoman', baseURL: url, apiKey: 'none', includeUsage: true });
const openai = createOpenAI({ baseURL: url, apiKey: 'none' });
const makers = { 'ai-compat': (name) => compatible(name), 'ai-oai.chat': (name) => openai.chat(name) };

const quiet = { prompt: 'Hello', maxRetries: 0, onError: () => {} };
const tools = { weather: tool({ description: 'weather', inputSchema: z.object({ city: z.string() }).passthrough() }) };
const offered = (s) => (s.calls ? { tools } : {});
const finish = (s) => (s.refusal ? 'content-filter' : reason(s).replace('_', '-'));

function check_calls(s, calls) {
    equal(calls.map((c) => ({ id: c.toolCallId, name: c.toolName, arguments: c.input })), s.calls ?? [], 'the calls');
}

function check_usage(s, usage) {
    if (s.usage) equal([usage.inputTokens, usage.outputTokens, usage.outputTokenDetails.reasoningTokens], s.usage, 'the usage');
}

for (const [who, make] of Object.entries(makers)) {
    for (const s of stories) {
        test(`${who}: ${s.about}: generateText`, async () => {
            const asked = generateText({ ...quiet, ...offered(s), model: make(s.name) });
            if (wrong(s)) {
                check(String(await failure(asked)).includes(wrong(s)), 'the error says why');
                return;
            }
            const got = await asked;
            equal(got.text, s.final ?? s.text ?? s.refusal ?? '', 'the text');
            equal(got.finishReason, finish(s), 'the finish reason');
            check_calls(s, got.toolCalls);
            if (who === 'ai-compat') equal(got.reasoningText, s.progress, 'the reasoning');
            check_usage(s, got.usage);
        });

        test(`${who}: ${s.about}: streamText`, async () => {
            const before = seen.length;
            const got = streamText({ ...quiet, ...offered(s), model: make(s.name) });
            const parts = [];
            for await (const part of got.fullStream) parts.push(part);
            const of = (type) => parts.filter((p) => p.type === type);
            const text = of('text-delta').map((p) => p.text).join('');
            equal(text, streamed(s) || (s.refusal ?? ''), 'the text of the deltas');
            equal(of('text-start').length, text ? 1 : 0, 'the texts');
            if (who === 'ai-compat') equal(of('reasoning-delta').map((p) => p.text).join(''), s.progress ?? '', 'the reasoning');
            equal(seen.length - before, 1, 'the requests');
            if (wrong(s)) {
                check(of('error').some((p) => JSON.stringify(p.error.message ?? p.error).includes(wrong(s))), 'the error says why');
                return;
            }
            equal(of('error'), [], 'the errors');
            check_calls(s, of('tool-call'));
            equal(await got.finishReason, finish(s), 'the finish reason');
            if (who === 'ai-compat') check_usage(s, await got.usage);
        });
    }
}

await run();
close();
