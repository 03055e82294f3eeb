// npm `openai`, chat completions of a language model: approvals, questions, tools of the caller, steering.
import { randomUUID } from 'node:crypto';
import OpenAI from 'openai';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { llm, messages as say, weather } from './lib/llm.mjs';

const server = await llm();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const tools = [{ type: 'function', function: weather }];
const ways = {
    whole: (body) => client.chat.completions.create(body),
    streamed: (body) => client.chat.completions.stream(body).finalChatCompletion(),
};

/** A conversation as a Chat client has it: all of its messages are sent each time. */
function talk(way, more) {
    const messages = [{ role: 'system', content: randomUUID() }]; // equal transcripts of two tasks would be ambiguous
    return async (next) => {
        messages.push(typeof next === 'string' ? { role: 'user', content: next } : next);
        const [choice] = (await ways[way]({ model: 'assistant', messages: [...messages], ...more })).choices;
        const { role, content, tool_calls } = choice.message;
        messages.push({ role, content, ...(tool_calls?.length && { tool_calls }) });
        return { ...choice, content };
    };
}

for (const way of Object.keys(ways)) {
    test(`openai, chat, ${way}: an approval is a question; no denies, yes approves, other words ask again`, async () => {
        for (const [answer, isRun] of [['yes', true], ['no', false]]) {
            const send = talk(way);
            const asked = await send(say.remove);
            check(/remove/.test(asked.content) && /old\.txt/.test(asked.content), asked.content);
            check(/not understood/.test((await send('perhaps')).content), 'it asks again');
            const done = await send(answer);
            equal(/"path"/.test(done.content), isRun, `the tool ran: ${done.content}`);
        }
    });

    test(`openai, chat, ${way}: a question of the model, and its answer`, async () => {
        const send = talk(way);
        equal((await send(say.ask)).content, 'Which colour?', 'the question');
        const done = await send('green');
        check(/green/.test(done.content), done.content);
    });

    test(`openai, chat, ${way}: a tool of the caller`, async () => {
        const send = talk(way, { tools });
        const asked = await send(say.call);
        equal(asked.finish_reason, 'tool_calls', 'finish_reason');
        const [call] = asked.message.tool_calls;
        equal([call.function.name, JSON.parse(call.function.arguments)], ['weather', { city: 'Oslo' }], 'the call');
        const done = await send({ role: 'tool', tool_call_id: call.id, content: 'snow' });
        check(/snow/.test(done.content), done.content);
    });
}

test('openai, chat: runTools runs a tool of the caller for a language model', async () => {
    const cities = [];
    const runner = client.chat.completions.runTools({
        model: 'assistant', messages: [{ role: 'user', content: say.call }],
        tools: [{ type: 'function', function: { ...weather, parse: JSON.parse, function: ({ city }) => { cities.push(city); return 'snow'; } } }],
    });
    check(/snow/.test(await runner.finalContent()), 'the answer');
    equal(cities, ['Oslo'], 'the calls');
});

test('openai, chat: a message while the model writes reaches it', async () => {
    const headers = { 'X-Session-Id': randomUUID() };
    const open = (...texts) => client.chat.completions.create(
        { model: 'assistant', stream: true, messages: texts.map((content) => ({ role: 'user', content })) }, { headers });
    const read = async (stream, on = () => {}) => {
        let text = '';
        for await (const chunk of stream) await on(text += chunk.choices[0]?.delta.content ?? '');
        return text;
    };
    let second;
    const text = await read(await open(say.slow), async (soFar) => { if (/word/.test(soFar)) second ??= read(await open(say.slow, say.steer)); });
    check(/end/.test(text) && text.split('steered').length === 2, text);
    check(/steered/.test(await second), 'the second one');
});

await run(() => server.stop());
