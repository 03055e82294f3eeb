// `@openai/agents` runs agents whose model is an agent of ours, over Chat Completions.
import { Agent, OpenAIChatCompletionsModel, run as runAgent, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { front } from './lib/front.mjs';

setTracingDisabled(true);
const server = await front();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' });
const model = (name) => new OpenAIChatCompletionsModel(client, name);

const called = [];
const parameters = { type: 'object', properties: {}, required: [], additionalProperties: true };
const give = (name, result) => tool({
    name, description: name, strict: false, parameters,
    execute: async (args) => { called.push([name, args]); return result; },
});

for (const stream of [false, true]) {
    const way = stream ? ', streamed' : '';
    async function answer(agent, input) {
        const result = await runAgent(agent, input, { stream, maxTurns: 4 });
        if (stream) {
            result.streamed = '';
            for await (const event of result)
                if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') result.streamed += event.data.delta;
            await result.completed;
        }
        return result;
    }

    test(`agents: an answer${way}`, async () => {
        const result = await answer(new Agent({ name: 'a', instructions: 'Be nice.', model: model('demo') }), 'stream');
        check(result.finalOutput.startsWith('An A2A task is a small story'), result.finalOutput);
        if (stream) equal(result.streamed, result.finalOutput, 'the deltas');
    });

    test(`agents: two tools at once${way}`, async () => {
        called.length = 0;
        const agent = new Agent({ name: 'a', model: model('caller'), tools: [give('get_weather', 'snow'), give('get_time', 'noon')] });
        const result = await answer(agent, 'go');
        equal(result.finalOutput, 'The tools say: 1=snow, 2=noon', 'the answer');
        equal(called, [['get_weather', { city: 'Oslo' }], ['get_time', { zone: 'CET' }]], 'the calls');
    });

    test(`agents: a second turn${way}`, async () => {
        const agent = new Agent({ name: 'a', model: model('demo') });
        const first = await answer(agent, 'hello');
        const second = await answer(agent, [...first.history, { role: 'user', content: 'again' }]);
        check(second.finalOutput.startsWith('You said: again'), second.finalOutput);
    });

    test(`agents: a failure is reported${way}`, async () => {
        const error = await failure(answer(new Agent({ name: 'a', model: model('demo') }), 'fail'));
        check(String(error.message).includes('asked to fail'), error);
    });

    test(`agents: a handoff from one agent of ours to another${way}`, async () => {
        const hello = new Agent({ name: 'Hello', handoffDescription: 'greets', model: model('hello') });
        const first = new Agent({ name: 'First', model: model('probe'), handoffs: [hello] });
        const result = await answer(first, 'call transfer_to_Hello');
        equal(result.lastAgent.name, 'Hello', 'who answered');
        check(result.finalOutput.startsWith('Hello'), result.finalOutput);
    });
}

await run(() => server.stop());
