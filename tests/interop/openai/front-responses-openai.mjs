// npm `openai` talks to a live server: responses, streamed and not, chains of them, tools of the caller.
import OpenAI, { BadRequestError, NotFoundError } from 'openai';
import { check, equal, failure, run, test } from '../server/node/lib/tap.mjs';
import { live } from './lib/live.mjs';

const server = await live();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const ask = (input, more) => client.responses.create({ model: 'demo', input, ...more });
const outputs = (response, type) => response.output.filter((i) => i.type === type);

async function events(stream) {
    const all = [];
    for await (const event of stream) all.push(event);
    return all;
}

test('openai: a response', async () => {
    const { data, response } = await ask('stream', { metadata: { color: 'red' }, temperature: 0.5 }).withResponse();
    equal(data.status, 'completed', 'the status');
    check(data.output_text.startsWith('An A2A task is a small story'), data.output_text);
    equal([data.model, data.temperature, data.metadata.color], ['demo', 0.5, 'red'], 'what it repeats');
    equal(data.metadata.a2a_task_state, 'completed', 'the state of the task');
    equal(response.headers.get('x-a2a-context-id'), data.metadata.a2a_context_id, 'the context');
    equal(response.headers.get('x-a2a-task-id'), data.metadata.a2a_task_id, 'the task');
    equal(response.headers.get('x-a2a-task-state'), 'completed', 'the state in the header');
    equal(response.headers.get('x-dragoman-ignored'), 'temperature', 'what was ignored');
    check(data.completed_at >= data.created_at, 'it ended after it began');
});

test('openai: the name of the model is returned as it was sent', async () => {
    for (const model of ['demo', 'a2a/demo', 'agent:demo']) equal((await ask('stream', { model })).model, model, 'the model');
});

test('openai: events count from 0, without a gap, in their order', async () => {
    const all = await events(await ask('stream', { stream: true }));
    equal(all.map((e) => e.sequence_number), all.map((_, i) => i), 'the numbers');
    equal(all.slice(0, 2).map((e) => e.type), ['response.created', 'response.in_progress'], 'the first events');
    const last = all.at(-1);
    equal(last.type, 'response.completed', 'the last event');
    const text = all.filter((e) => e.type === 'response.output_text.delta').map((e) => e.delta).join('');
    equal(text, outputs(last.response, 'message')[0].content[0].text, 'the deltas');
    equal(new Set(all.filter((e) => e.response).map((e) => e.response.id)).size, 1, 'ids of the response');
});

test('openai: an approval is an item, and an item answers it', async () => {
    for (const approve of [true, false]) {
        const asked = await ask('interrupt');
        const [request] = outputs(asked, 'mcp_approval_request');
        equal([request.name, JSON.parse(request.arguments), request.server_label], ['delete_file', { path: 'old.txt' }, 'demo'], 'the request');
        const input = [{ type: 'mcp_approval_response', approval_request_id: request.id, approve }];
        const all = await events(await ask(input, { previous_response_id: asked.id, stream: true }));
        check(all.at(-1).response.output[0].content[0].text.startsWith(approve ? 'You said yes' : 'You did not say yes'), JSON.stringify(all.at(-1).response.output));
        const error = await failure(ask(input, { previous_response_id: asked.id }));
        equal([error.status, error.code], [400, 'approval_request_not_found'], 'a second answer');
    }
});

test('openai: .stream() ends with what retrieve gives', async () => {
    const stream = client.responses.stream({ model: 'demo', input: 'stream' });
    let text = '';
    stream.on('response.output_text.delta', (event) => { text += event.delta; });
    const final = await stream.finalResponse();
    equal(final.output_text, text, 'the text');
    const again = await client.responses.retrieve(final.id);
    equal(again.output, JSON.parse(JSON.stringify(final.output)).map(({ parsed, ...item }) => strip(item)), 'the output');
});

/** .stream() adds members of its own. */
function strip(item) {
    return item.content ? { ...item, content: item.content.map(({ parsed, ...part }) => part) } : item;
}

test('openai: thoughts and progress are reasoning', async () => {
    const thinks = await ask('reasoning');
    equal(thinks.output_text, '17 is a prime number.', 'the answer');
    check(outputs(thinks, 'reasoning')[0].summary.map((s) => s.text).join('').includes('17 is prime'), 'the thought');
    const shows = await ask('status');
    check(outputs(shows, 'reasoning').length >= 5, 'the indicators');
    check(!shows.output_text.includes('Looking things up'), 'no indicator in the answer');
});

test('openai: tools of the agent are mcp_call, with their outputs', async () => {
    const calls = outputs(await ask('parallel-tools'), 'mcp_call');
    equal(calls.map((c) => [c.name, c.status]), [['get_time', 'completed'], ['get_weather', 'completed']], 'the calls');
    equal(calls[1].output, 'Sunny, 72°F', 'an output');
});

test('openai: usage', async () => {
    const { usage } = await ask('usage');
    equal([usage.input_tokens, usage.output_tokens, usage.total_tokens, usage.output_tokens_details.reasoning_tokens,
        usage.input_tokens_details.cached_tokens], [12, 9, 21, 3, 4], 'the usage');
});

test('openai: failed, refused', async () => {
    const failed = await failure(ask('fail'));
    equal([failed.status, failed.code, failed.error.message], [424, 'task_failed', 'the demo was asked to fail'], 'a failure');
    equal(failed.headers.get('x-should-retry'), 'false', 'it is not to be tried again');
    const refused = await ask('reject');
    equal([refused.status, refused.metadata.a2a_task_state], ['completed', 'rejected'], 'a refusal');
    check(refused.output[0].content[0].refusal.includes('asked to refuse'), 'its words');
    const broken = await events(await ask('break', { stream: true }).catch((e) => e)).catch((e) => e);
    check(broken.message?.includes('broke off in the middle'), 'an error in the stream is thrown');
});

test('openai: an answer to a question goes to the task that asked', async () => {
    const question = await ask('ask');
    equal([question.status, question.output_text, question.metadata.a2a_task_state], ['completed', 'What is your name?', 'input-required'], 'the question');
    const answer = await ask('Ada', { previous_response_id: question.id });
    check(answer.output_text.startsWith('Hello Ada, nice to meet you.'), answer.output_text);
    equal(answer.metadata.a2a_task_id, question.metadata.a2a_task_id, 'the task');
    equal([answer.previous_response_id, answer.metadata.a2a_task_state], [question.id, 'completed'], 'the end');
    const first = await client.responses.retrieve(question.id);
    equal(first.output_text, 'What is your name?', 'the first response is still the first turn');
});

test('openai: a chain stays in its context, a fork leaves it', async () => {
    const one = await ask('I am Ada');
    const two = await ask('I am Bob', { previous_response_id: one.id });
    equal(two.metadata.a2a_context_id, one.metadata.a2a_context_id, 'the context of the chain');
    const fork = await ask('I am Eve', { previous_response_id: one.id });
    check(fork.metadata.a2a_context_id !== one.metadata.a2a_context_id, 'a fork has a context of its own');
    const three = await ask('I am Cyd', { previous_response_id: two.id });
    equal(three.metadata.a2a_context_id, one.metadata.a2a_context_id, 'the chain goes on where it was');
    check(!three.output_text.includes('Eve'), 'and knows nothing of the fork');
});

const tools = [
    { type: 'function', name: 'get_weather', description: 'The weather', parameters: { type: 'object', properties: { city: { type: 'string' } } }, strict: false },
    { type: 'function', name: 'get_time', parameters: { type: 'object', properties: { zone: { type: 'string' } } }, strict: false },
];
const run_tools = (response) => outputs(response, 'function_call').map((call) =>
    ({ type: 'function_call_output', call_id: call.call_id, output: `${call.name}:${Object.values(JSON.parse(call.arguments))[0]}` }));
const said = 'The tools say: 1=get_weather:Oslo, 2=get_time:CET';

test('openai: two calls at once, answered with previous_response_id', async () => {
    const asked = await ask('go', { model: 'caller', tools });
    equal(outputs(asked, 'function_call').map((c) => [c.name, c.status]), [['get_weather', 'completed'], ['get_time', 'completed']], 'the calls');
    equal(asked.tools.map((t) => t.name), ['get_weather', 'get_time'], 'the tools, repeated');
    const answer = await ask(run_tools(asked).reverse(), { model: 'caller', tools, previous_response_id: asked.id });
    equal([answer.output_text, answer.metadata.a2a_task_id], [said, asked.metadata.a2a_task_id], 'the answer');
});

test('openai: two calls at once, answered without any state of ours', async () => {
    const input = [{ role: 'user', content: 'go' }];
    const asked = await ask(input, { model: 'caller', tools, store: false });
    const answer = await ask([...input, ...asked.output, ...run_tools(asked)], { model: 'caller', tools, store: false });
    equal([answer.output_text, answer.metadata.a2a_task_id], [said, asked.metadata.a2a_task_id], 'the answer');
});

test('openai: two calls at once, streamed', async () => {
    const all = await events(await ask('go', { model: 'caller', tools, stream: true }));
    const done = all.filter((e) => e.type === 'response.function_call_arguments.done').map((e) => JSON.parse(e.arguments));
    equal(done, [{ city: 'Oslo' }, { zone: 'CET' }], 'the arguments');
    const answer = client.responses.stream({ model: 'caller', input: run_tools(all.at(-1).response), previous_response_id: all[0].response.id });
    equal((await answer.finalResponse()).output_text, said, 'the answer');
});

test('openai: files go to the agent, references stand for items', async () => {
    const content = [{ type: 'input_text', text: 'files' }, { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,SGk=' },
        { type: 'input_image', detail: 'auto', image_url: 'https://example.com/dot.png' }];
    const first = await ask([{ role: 'user', content }]);
    check(first.output_text.includes('Files that came with your message: 2.'), first.output_text);
    const { data } = await client.responses.inputItems.list(first.id);
    const again = await ask([{ type: 'item_reference', id: data[0].id }]);
    check(again.output_text.includes('Files that came with your message: 2.'), again.output_text);
    const missing = await failure(ask([{ type: 'item_reference', id: 'msg_nobody' }]));
    check(missing instanceof NotFoundError && missing.message.includes("Item with id 'msg_nobody' not found"), missing.message);
});

test('openai: what the agent makes: a link, a picture, data; and the file comes back by its id', async () => {
    const made = await ask('file');
    const [, id] = /\/v1\/files\/(file-[^/]+)\/content/.exec(made.output_text) ?? [];
    check(id, made.output_text);
    check(made.output_text.includes('https://example.com/report.pdf'), 'the link');
    equal(outputs(made, 'image_generation_call').length, 1, 'the picture');
    equal(await (await client.files.content(id)).text(), 'month,sales\nJanuary,100\nFebruary,115\n', 'the file');
    const again = await ask([{ role: 'user', content: [{ type: 'input_text', text: 'files' }, { type: 'input_file', file_id: id }] }]);
    check(again.output_text.includes('sales.csv (text/csv)'), again.output_text);
});

test('openai: input items, in pages', async () => {
    const response = await ask([{ role: 'user', content: 'one' }, { role: 'assistant', content: 'two' }, { role: 'user', content: 'three' }]);
    const items = [];
    for await (const item of client.responses.inputItems.list(response.id, { limit: 2, order: 'asc' })) items.push(item);
    equal(items.map((i) => i.content[0].text), ['one', 'two', 'three'], 'all of them');
    const page = await client.responses.inputItems.list(response.id, { limit: 1 });
    equal([page.data[0].content[0].text, page.has_more], ['three', true], 'the last one');
});

test('openai: what is stored can be deleted, what is not cannot be found', async () => {
    const stored = await ask('hello');
    await client.responses.delete(stored.id);
    for (const call of [() => client.responses.retrieve(stored.id), () => client.responses.delete(stored.id),
        () => client.responses.inputItems.list(stored.id), () => client.responses.cancel(stored.id)])
        check(await failure(call()) instanceof NotFoundError, 'it is not there any more');
    const next = await failure(ask('more', { previous_response_id: stored.id }));
    equal([next.status, next.code, next.param], [400, 'previous_response_not_found', 'previous_response_id'], 'a chain behind it');
    const kept = await ask('hello', { store: false });
    check(await failure(client.responses.retrieve(kept.id)) instanceof NotFoundError, 'store: false');
    equal(kept.store, false, 'store is false in the response');
});

test('openai: errors as the API has them', async () => {
    const model = await failure(ask('x', { model: 'nobody' }));
    equal([model.status, model.code, model.param, model.type], [404, 'model_not_found', 'model', 'invalid_request_error'], 'an unknown model');
    const nothing = await failure(client.responses.create({ model: 'demo' }));
    equal([nothing.status, nothing.param], [400, 'input'], 'nothing to say');
    const both = await failure(ask('x', { previous_response_id: 'resp_x', conversation: 'conv_x' }));
    equal([both.status, both.code], [400, 'mutually_exclusive_parameters'], 'two places at once');
    const type = await failure(ask('x', { temperature: 'hot' }));
    check(type instanceof BadRequestError, 'a wrong type');
    equal([type.param, type.message.includes('expected a number')], ['temperature', true], 'what is wrong');
    const deep = await failure(ask([{ role: 'user', content: [{ type: 'input_text', text: 7 }] }]));
    equal(deep.param, 'input[0].content[0].text', 'where it is wrong');
    const choice = await failure(ask('x', { model: 'hello', tools, tool_choice: 'required' }));
    equal([choice.status, choice.code, choice.param], [400, 'unsupported_value', 'tool_choice'], 'a tool that must be called');
    const file = await failure(ask([{ role: 'user', content: [{ type: 'input_file', file_id: 'file-nobody' }] }]));
    equal([file.status, file.param], [400, 'input[0].content[0].file_id'], 'a file that is not here');
});

test('openai: the server ends well', () => server.stop());
await run();
