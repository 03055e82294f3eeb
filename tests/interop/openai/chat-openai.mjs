// npm `openai` reads what convert writes as Chat Completions: plain, streamed, with its .stream() helper and runTools.
import OpenAI from 'openai';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { completion, reason, server, streamed, wrong } from './lib/chat.mjs';
import { stories, story } from './lib/world.mjs';

const { url, seen, close } = await server();
const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const body = (model, more) => ({ model, messages: [{ role: 'user', content: 'Hello' }], ...more });
const ask = (model, more) => client.chat.completions.create(body(model, more));

function check_usage(s, usage) {
    if (s.usage) equal([usage.prompt_tokens, usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens], s.usage, 'the usage');
    else check(!usage, 'no usage that the agent did not send');
}

function check_message(s, message, text) {
    equal(message.role, 'assistant', 'the role');
    equal(message.content ?? '', text, 'the text');
    equal(message.refusal ?? '', s.refusal ?? '', 'the refusal');
    equal((message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: JSON.parse(c.function.arguments) })), s.calls ?? [], 'the calls');
}

const final = (s) => s.final ?? s.text ?? '';

for (const s of stories) {
    test(`openai chat: ${s.about}: the completion`, async () => {
        if (wrong(s)) {
            check((await failure(ask(s.name))).message.includes(wrong(s)), 'the error says why');
            const { error } = JSON.parse(completion(s.events));
            equal(Object.keys(error).sort(), ['code', 'message', 'param', 'type'], 'the members of the error');
            return;
        }
        const got = await ask(s.name);
        equal(got.object, 'chat.completion', 'the object');
        check(got.id.startsWith('chatcmpl-') && Number.isInteger(got.created), 'an id and a time');
        equal([got.choices.length, got.choices[0].index, got.choices[0].finish_reason], [1, 0, reason(s)], 'the choice');
        check_message(s, got.choices[0].message, final(s));
        equal(got.choices[0].message.reasoning_content, s.progress, 'the reasoning');
        check_usage(s, got.usage);
        if (s.state) equal(got.a2a.state, s.state, 'the state');
    });

    test(`openai chat: ${s.about}: the chunks`, async () => {
        const deltas = [], finishes = [], ids = new Set(), calls = [];
        let usage;
        const reading = (async () => {
            for await (const chunk of await ask(s.name, { stream: true, stream_options: { include_usage: true } })) {
                ids.add(`${chunk.id} ${chunk.created} ${chunk.model} ${chunk.object}`);
                usage = chunk.usage ?? usage;
                for (const choice of chunk.choices) {
                    equal(choice.index, 0, 'the index');
                    deltas.push(choice.delta);
                    if (choice.finish_reason) finishes.push(choice.finish_reason);
                    for (const c of choice.delta.tool_calls ?? []) {
                        if (c.id) calls[c.index] = { id: c.id, name: c.function.name, arguments: '' };
                        calls[c.index].arguments += c.function.arguments;
                    }
                }
            }
        })();
        if (wrong(s)) check((await failure(reading)).message.includes(wrong(s)), 'the error says why');
        else await reading;
        equal(ids.size, 1, 'all chunks are of one completion');
        equal(deltas[0].role, 'assistant', 'the role of the first delta');
        check(deltas.slice(1).every((d) => d.role === undefined), 'the role comes once');
        equal(deltas.map((d) => d.content ?? '').join(''), streamed(s), 'the text of the deltas');
        equal(deltas.map((d) => d.refusal ?? '').join(''), s.refusal ?? '', 'the refusal of the deltas');
        equal(deltas.map((d) => d.reasoning_content ?? '').join(''), s.progress ?? '', 'the reasoning of the deltas');
        equal(calls.map((c) => ({ ...c, arguments: JSON.parse(c.arguments) })), s.calls ?? [], 'the calls of the deltas');
        equal(finishes, wrong(s) ? [] : [reason(s)], 'the finish reasons');
        if (!wrong(s)) check_usage(s, usage);
    });

    test(`openai chat: ${s.about}: .stream()`, async () => {
        const stream = client.chat.completions.stream(body(s.name));
        let text = '', said;
        stream.on('content', (delta) => { text += delta; });
        stream.on('content.done', (event) => { said = event.content; });
        if (wrong(s)) {
            check((await failure(stream.finalChatCompletion())).message.includes(wrong(s)), 'the error says why');
            return;
        }
        const got = await stream.finalChatCompletion();
        equal(got.choices[0].finish_reason, reason(s), 'the finish reason');
        check_message(s, got.choices[0].message, streamed(s));
        check_message(s, await stream.finalMessage(), streamed(s));
        equal((await stream.finalContent()) ?? '', streamed(s), 'finalContent');
        equal(text, streamed(s), 'the text of the deltas');
        if (text) equal(said, streamed(s), 'content.done');
    });
}

for (const stream of [false, true]) {
    test(`openai chat: runTools makes both calls once${stream ? ', streamed' : ''}`, async () => {
        const s = story('tools'), made = [];
        const weather = {
            type: 'function',
            function: {
                name: 'weather', description: 'weather', parse: JSON.parse, parameters: { type: 'object' },
                function: (args) => { made.push(args); return 'rain'; },
            },
        };
        const before = seen.length;
        const runner = client.chat.completions.runTools({ ...body(s.name), tools: [weather], stream });
        equal(await runner.finalContent(), s.then_text, 'the answer');
        equal(made, s.calls.map((c) => c.arguments), 'the arguments of the calls');
        equal(seen.length - before, 2, 'the requests');
        equal(seen.at(-1).messages.filter((m) => m.role === 'tool').map((m) => m.tool_call_id), s.calls.map((c) => c.id), 'the results');
    });
}

await run();
close();
