// An agent of `@openai/agents` whose model is what convert writes as Responses: its answers, its tools, its end.
import { Agent, OpenAIResponsesModel, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { server } from './lib/responses.mjs';
import { stories, story } from './lib/world.mjs';

const { url, seen, close } = await server();
const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const runner = new Runner({ tracingDisabled: true });

function agent(model, calls = []) {
    const weather = tool({
        name: 'weather', description: 'What it is like there',
        parameters: z.object({ city: z.string(), quote: z.string().nullable().optional() }),
        execute: async (args) => { calls.push(args); return `rain in ${args.city}`; },
    });
    return new Agent({ name: 'a', instructions: 'Be brief', model: new OpenAIResponsesModel(client, model), tools: [weather] });
}

async function streamed(model, calls) {
    const result = await runner.run(agent(model, calls), 'Hello', { stream: true, maxTurns: 3 });
    let text = '';
    for await (const event of result)
        if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') text += event.data.delta;
    await result.completed;
    return { result, text };
}

/** Those that end well and need no tool. */
for (const s of stories.filter((s) => s.text && !s.error && !s.calls && s.name !== 'canceled')) {
    test(`@openai/agents: ${s.about}`, async () => {
        seen.length = 0;
        const result = await runner.run(agent(s.name), 'Hello', { maxTurns: 3 });
        equal(result.finalOutput, s.final ?? s.text, 'the answer');
        equal(seen.length, 1, 'the requests');
        if (s.usage) equal([result.rawResponses[0].usage.inputTokens, result.rawResponses[0].usage.outputTokens], s.usage.slice(0, 2), 'the usage');
    });

    test(`@openai/agents: ${s.about}: streamed`, async () => {
        seen.length = 0;
        const { result, text } = await streamed(s.name);
        equal(text, s.text, 'the text of the deltas');
        equal(result.finalOutput, s.final ?? s.text, 'the answer');
        equal(seen.length, 1, 'the requests');
    });
}

function check_calls(s, calls, result) {
    equal(calls.map(({ city }) => city), s.calls.map((c) => c.arguments.city), 'what the tool was called with');
    equal(result.finalOutput, s.then_text, 'the answer');
    equal(seen.length, 2, 'the requests');
    equal(seen[1].input.filter((i) => i.type === 'function_call_output').map((i) => [i.call_id, i.output]),
        s.calls.map((c) => [c.id, `rain in ${c.arguments.city}`]), 'the outputs that were sent');
    equal(seen[1].input.filter((i) => i.type === 'function_call').map((i) => [i.call_id, JSON.parse(i.arguments)]),
        s.calls.map((c) => [c.id, c.arguments]), 'the calls that were sent back');
}

test('@openai/agents: tools are run, each once, and their outputs make the second turn', async () => {
    const s = story('tools'), calls = [];
    seen.length = 0;
    check_calls(s, calls, await runner.run(agent(s.name, calls), 'Hello', { maxTurns: 3 }));
});

test('@openai/agents: the same, streamed', async () => {
    const s = story('tools'), calls = [];
    seen.length = 0;
    const { result, text } = await streamed(s.name, calls);
    equal(text, s.text + s.then_text, 'the text of the deltas');
    check_calls(s, calls, result);
});

test('@openai/agents: a tool of the agent itself is not run again', async () => {
    const calls = [];
    const { result } = await streamed('own-tools', calls);
    equal(calls, [], 'the calls');
    check(JSON.stringify(result.rawResponses ?? result.newItems).includes('lookup'), 'it is shown');
});

test('@openai/agents: a failure is an error, once', async () => {
    seen.length = 0;
    const error = await failure(streamed('failure'));
    check(String(error.message).includes(story('failure').error), `the error says why: ${error.message}`);
    equal(seen.length, 1, 'the requests');
});

test('@openai/agents: a refusal is reported as one', async () => {
    const error = await failure(runner.run(agent('rejected'), 'Hello', { maxTurns: 3 }));
    check(`${error.name} ${error.message}`.match(/refus/i), `${error.name}: ${error.message}`);
});

await run();
close();
