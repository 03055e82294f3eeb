// npm `openai` reads what convert writes as Responses: plain, streamed, with its .stream() helper.
import OpenAI from 'openai';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { server } from './lib/responses.mjs';
import { stories } from './lib/world.mjs';

const { url, close } = await server();
const client = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
const ask = (model, more) => client.responses.create({ model, input: 'Hello', ...more });

/** Text, calls, reasoning and refusal of a response's output. */
function read(response) {
    const parts = response.output.filter((i) => i.type === 'message').flatMap((i) => i.content);
    return {
        text: parts.filter((p) => p.type === 'output_text').map((p) => p.text).join(''),
        refusal: parts.filter((p) => p.type === 'refusal').map((p) => p.refusal).join(''),
        calls: response.output.filter((i) => i.type === 'function_call').map((i) => ({ id: i.call_id, name: i.name, arguments: JSON.parse(i.arguments) })),
        own: response.output.filter((i) => i.type === 'mcp_call'),
        thoughts: response.output.filter((i) => i.type === 'reasoning').flatMap((i) => i.summary).map((s) => s.text).join(''),
    };
}

function check_response(s, response) {
    const got = read(response);
    equal(response.status, s.error ? 'failed' : s.name === 'canceled' ? 'cancelled' : 'completed', 'the status');
    equal(got.text, s.final ?? s.text ?? '', 'the text');
    equal(response.output_text, got.text, 'output_text');
    equal(got.refusal, s.refusal ?? '', 'the refusal');
    equal(got.calls, s.calls ?? [], 'the calls');
    equal(got.thoughts, s.progress ?? '', 'the reasoning');
    equal(got.own.map((i) => ({ name: i.name, arguments: JSON.parse(i.arguments), output: i.output })), s.own ? [s.own] : [], 'the own calls');
    if (s.usage) equal([response.usage.input_tokens, response.usage.output_tokens, response.usage.output_tokens_details.reasoning_tokens], s.usage, 'the usage');
    if (s.state) equal(response.metadata.a2a_task_state, s.state, 'the state');
    if (s.error) equal(response.error.message, s.error, 'the error');
}

for (const s of stories) {
    test(`openai: ${s.about}: the response`, async () => check_response(s, await ask(s.name)));

    test(`openai: ${s.about}: the stream`, async () => {
        let text = '', refusal = '', last, n = 0;
        const args = {};
        const reading = (async () => {
            for await (const event of await ask(s.name, { stream: true })) {
                equal(event.sequence_number, n++, 'the sequence number');
                if (event.type === 'response.output_text.delta') text += event.delta;
                if (event.type === 'response.refusal.delta') refusal += event.delta;
                if (event.type === 'response.function_call_arguments.delta') args[event.item_id] = (args[event.item_id] ?? '') + event.delta;
                last = event;
            }
        })();
        if (s.error) check((await failure(reading)).message.includes(s.error), 'the error says why');
        else await reading;
        equal(text, s.text ?? '', 'the text of the deltas');
        equal(refusal, s.refusal ?? '', 'the refusal of the deltas');
        equal(Object.values(args).map((a) => JSON.parse(a)), (s.calls ?? []).map((c) => c.arguments), 'the arguments of the deltas');
        if (!s.error) check_response(s, { ...last.response, output_text: read(last.response).text });
    });

    test(`openai: ${s.about}: .stream()`, async () => {
        const stream = client.responses.stream({ model: s.name, input: 'Hello' });
        let text = '';
        stream.on('response.output_text.delta', (event) => { text += event.delta; });
        if (s.error) {
            check((await failure(stream.finalResponse())).message.includes(s.error), 'the error says why');
            return;
        }
        const response = await stream.finalResponse();
        equal(text, s.text ?? '', 'the text of the deltas');
        check_response(s, response);
    });
}

await run();
close();
