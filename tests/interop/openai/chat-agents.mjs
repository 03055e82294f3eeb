// `@openai/agents` over Chat Completions reads what convert writes: an answer, tools of its own, a failure.
import { Agent, OpenAIChatCompletionsModel, Runner, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { server, streamed, wrong } from './lib/chat.mjs';
import { stories } from './lib/world.mjs';

setTracingDisabled(true);
const { url, seen, close } = await server();
const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const runner = new Runner({ tracingDisabled: true });

function agent(s, made) {
    const weather = tool({
        name: 'weather', description: 'weather', strict: false,
        parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
        execute: async (args) => { made.push(args); return 'rain'; },
    });
    return new Agent({ name: 'a', instructions: 'Be nice.', model: new OpenAIChatCompletionsModel(client, s.name), tools: s.calls ? [weather] : [] });
}

for (const s of stories.filter((s) => !s.refusal)) {
    for (const stream of [false, true]) {
        test(`agents chat: ${s.about}${stream ? ', streamed' : ''}`, async () => {
            const made = [], before = seen.length;
            const running = (async () => {
                const result = await runner.run(agent(s, made), 'Hello', { stream, maxTurns: 3 });
                if (stream) await result.completed;
                return result;
            })();
            if (wrong(s)) {
                check(String((await failure(running)).message).includes(wrong(s)), 'the error says why');
                return;
            }
            const text = stream ? streamed(s) : s.final ?? s.text ?? '';
            equal((await running).finalOutput, s.calls ? s.then_text : text, 'the answer');
            equal(made, (s.calls ?? []).map((c) => c.arguments), 'the arguments of the calls');
            equal(seen.length - before, s.calls ? 2 : 1, 'the requests');
        });
    }
}

await run();
close();
