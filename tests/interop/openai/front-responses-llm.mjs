// npm `openai` and the AI SDK's provider, responses of a language model: approvals, questions, tools of the caller, steering.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { llm, messages as say, weather } from './lib/llm.mjs';

const server = await llm();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', strict: false, ...weather }];
const body = (input, before, more) => ({ model: 'assistant', input, previous_response_id: before?.id, ...more });
const ways = {
    whole: (...args) => client.responses.create(body(...args)),
    streamed: (...args) => client.responses.stream(body(...args)).finalResponse(),
};
const items = (response, type) => response.output.filter((i) => i.type === type);

for (const [way, create] of Object.entries(ways)) {
    test(`openai, responses, ${way}: a request for approval is an item, and so is its answer`, async () => {
        for (const approve of [true, false]) {
            const asked = await create(say.remove);
            const [item] = items(asked, 'mcp_approval_request');
            equal([item.name, JSON.parse(item.arguments)], ['remove', { path: 'old.txt' }], 'the request');
            const done = await create([{ type: 'mcp_approval_response', approval_request_id: item.id, approve }], asked);
            equal([/"path"/.test(done.output_text), done.status], [approve, 'completed'], `the tool ran: ${done.output_text}`);
        }
    });

    test(`openai, responses, ${way}: a question of the model, and its answer`, async () => {
        const asked = await create(say.ask);
        equal(asked.output_text, 'Which colour?', 'the question');
        const done = await create('green', asked);
        check(/green/.test(done.output_text), done.output_text);
    });

    test(`openai, responses, ${way}: a tool of the caller`, async () => {
        const asked = await create(say.call, undefined, { tools });
        const [call] = items(asked, 'function_call');
        equal([call.name, JSON.parse(call.arguments)], ['weather', { city: 'Oslo' }], 'the call');
        const done = await create([{ type: 'function_call_output', call_id: call.call_id, output: 'snow' }], asked, { tools });
        check(/snow/.test(done.output_text), done.output_text);
    });
}

test('openai, responses: a message while the model writes reaches it', async () => {
    let text = '', id, second;
    for await (const event of await client.responses.create({ ...body(say.slow), stream: true })) {
        if (event.type === 'response.created') id = event.response.id;
        if (event.type === 'response.output_text.delta') text += event.delta;
        if (/word/.test(text)) second ??= ways.streamed(say.steer, { id });
    }
    check(/end/.test(text) && text.split('steered').length === 2, text);
    const other = await second;
    check(other.status === 'completed' && /steered/.test(other.output_text), other.output_text);
});

// ---- the AI SDK's provider -------------------------------------------------------------------------------------------------

const provider = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' });
for (const api of ['chat', 'responses']) {
    const model = provider[api]('assistant');
    const settings = {
        model, maxRetries: 0, stopWhen: stepCountIs(4),
        tools: { weather: tool({ description: weather.description, inputSchema: jsonSchema(weather.parameters), execute: ({ city }) => `snow in ${city}` }) },
    };

    test(`ai, ${api}: generateText runs a tool of the caller for a language model`, async () => {
        const done = await generateText({ ...settings, prompt: say.call });
        check(/snow in Oslo/.test(done.text), done.text);
        equal(done.steps.length, 2, 'steps');
    });

    test(`ai, ${api}: streamText runs a tool of the caller for a language model`, async () => {
        const done = streamText({ ...settings, prompt: say.call });
        let text = '';
        for await (const delta of done.textStream) text += delta;
        check(/snow in Oslo/.test(text), text);
    });

    test(`ai, ${api}: a question of the model, and its answer`, async () => {
        const messages = [{ role: 'user', content: say.ask }];
        const asked = await generateText({ ...settings, messages });
        equal(asked.text, 'Which colour?', 'the question');
        const done = await generateText({ ...settings, messages: [...messages, ...asked.response.messages, { role: 'user', content: 'green' }] });
        check(/green/.test(done.text), done.text);
    });
}

await run(() => server.stop());
