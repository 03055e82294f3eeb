// npm `openai` talks to a live server: chat completions, streamed and not, tools of the caller, errors, models.
import OpenAI, { APIError, AuthenticationError, BadRequestError, NotFoundError } from 'openai';
import { check, equal, failure, run, test, until } from '../server/node/lib/tap.mjs';
import { Server } from '../server/node/lib/server.mjs';
import { agents, gate, live } from './lib/live.mjs';

const server = await live();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none' });
const user = (content) => ({ role: 'user', content });
const ask = (content, more) => client.chat.completions.create({ model: 'demo', messages: [user(content)], ...more });
const story = 'An A2A task is a small story';

async function chunks(stream) {
    const all = [];
    for await (const chunk of stream) all.push(chunk);
    return all;
}
const text = (all) => all.map((c) => c.choices[0]?.delta?.content ?? '').join('');

/** The task, from A2A. */
async function task(id) {
    const response = await fetch(`${server.url}/tasks/${id}`, { headers: { 'A2A-Version': '1.0' } });
    return response.json();
}

// ---- answers -------------------------------------------------------------------------------------------

test('openai: a completion', async () => {
    const { data, response } = await ask('stream', { temperature: 0.5, seed: 1 }).withResponse();
    const [choice] = data.choices;
    check(choice.message.content.startsWith(story), choice.message.content);
    equal([choice.index, choice.finish_reason, choice.message.refusal], [0, 'stop', null], 'the choice');
    equal([data.object, data.model], ['chat.completion', 'demo'], 'the completion');
    check(data.id.startsWith('chatcmpl-') && Number.isInteger(data.created), data.id);
    equal(data.a2a.state, 'completed', 'the state');
    const header = (name) => response.headers.get(name);
    equal([header('x-a2a-context-id'), header('x-a2a-task-id')], [data.a2a.context_id, data.a2a.task_id], 'the ids');
    equal([header('x-a2a-task-state'), header('x-dragoman-ignored')], ['completed', 'temperature, seed'], 'the headers');
    equal((await task(data.a2a.task_id)).status.state, 'TASK_STATE_COMPLETED', 'the task');
});

test('openai: chunks', async () => {
    const { data, response } = await ask('stream', { stream: true }).withResponse();
    const all = await chunks(data);
    equal(text(all), (await ask('stream')).choices[0].message.content, 'the text');
    equal(all[0].choices[0].delta.role, 'assistant', 'the first chunk');
    equal(all.filter((c) => c.choices[0].finish_reason).map((c) => c.choices[0].finish_reason), ['stop'], 'the reasons');
    equal(new Set(all.map((c) => `${c.id} ${c.created} ${c.model} ${c.object}`)).size, 1, 'what all chunks share');
    equal([all[0].a2a.state, all.at(-1).a2a.state], ['working', 'completed'], 'the states');
    equal(response.headers.get('x-a2a-task-id'), all[0].a2a.task_id, 'the task');
    check(!('usage' in all[0]), 'usage was not asked for');
});

test('openai: .stream() and what it adds up to', async () => {
    const stream = client.chat.completions.stream({ model: 'demo', messages: [user('reasoning')] });
    const final = await stream.finalChatCompletion();
    equal(final.choices[0].message.content, '17 is a prime number.', 'the answer');
    equal(final.choices[0].finish_reason, 'stop', 'the reason');
});

test('openai: thoughts are no part of the answer', async () => {
    const { message } = (await ask('reasoning')).choices[0];
    equal(message.content, '17 is a prime number.', 'the answer');
    check(message.reasoning_content.includes('17 is prime'), message.reasoning_content);
    const all = await chunks(await ask('reasoning', { stream: true }));
    equal(all.map((c) => c.choices[0].delta.reasoning_content ?? '').join(''), message.reasoning_content, 'the thoughts');
});

test('openai: usage, in the completion and in a chunk of its own', async () => {
    equal((await ask('usage')).usage.total_tokens, 21, 'the total');
    const all = await chunks(await ask('usage', { stream: true, stream_options: { include_usage: true } }));
    equal([all.at(-1).choices, all.at(-1).usage.prompt_tokens, all.at(-1).usage.completion_tokens], [[], 12, 9], 'the last chunk');
    check(all.slice(0, -1).every((c) => c.usage === null), 'the others say null');
});

test('openai: a refusal', async () => {
    const { message, finish_reason } = (await ask('reject')).choices[0];
    equal([message.content, finish_reason], [null, 'stop'], 'the choice');
    check(message.refusal.startsWith('I will not do that'), message.refusal);
    const final = await client.chat.completions.stream({ model: 'demo', messages: [user('reject')] }).finalMessage();
    equal(final.refusal, message.refusal, 'the refusal, streamed');
});

test('openai: files are links, and their bytes are there', async () => {
    const { message } = (await ask('file')).choices[0];
    const links = [...message.content.matchAll(/(!?)\[([^\]]+)\]\(([^)]+)\)/g)].map((m) => m.slice(1));
    equal(links.map(([image, name]) => image + name), ['sales.csv', '!dot.png', 'report.pdf'], 'the links');
    check(!message.content.includes('base64'), 'no bytes in the text');
    equal(message.annotations.map((a) => a.url_citation.title), ['sales.csv', 'report.pdf'], 'the citations');
    for (const { url_citation: c } of message.annotations)
        check(message.content.slice(c.start_index, c.end_index) === `[${c.title}](${c.url})`, JSON.stringify(c));
    const id = /files\/([^/]+)\/content/.exec(links[0][2])[1];
    equal(await (await client.files.content(id)).text(), 'month,sales\nJanuary,100\nFebruary,115\n', 'the file');
    const image = await fetch(links[1][2]);
    equal(image.headers.get('content-type'), 'image/png', 'the type of the picture');
    equal([...new Uint8Array(await image.arrayBuffer())].slice(1, 4), [...Buffer.from('PNG')], 'the picture');
});

test('openai: a file of ours, sent back by its id', async () => {
    const link = /files\/([^/]+)\/content/.exec((await ask('file')).choices[0].message.content)[1];
    const answer = await ask([{ type: 'text', text: 'files' }, { type: 'file', file: { file_id: link } }]);
    check(answer.choices[0].message.content.includes('sales.csv'), answer.choices[0].message.content);
});

// ---- conversations ------------------------------------------------------------------------------------

test('openai: a question, and its answer in the same task', async () => {
    const asked = await ask('ask');
    const { message } = asked.choices[0];
    equal([message.content, asked.a2a.state, asked.choices[0].finish_reason], ['What is your name?', 'input-required', 'stop'], 'the question');
    const headers = { 'X-A2A-Context-Id': asked.a2a.context_id };
    const done = await client.chat.completions.create({ model: 'demo', messages: [user('ask'), message, user('Ann')] }, { headers });
    check(done.choices[0].message.content.startsWith('Hello Ann'), done.choices[0].message.content);
    equal(done.a2a, { ...asked.a2a, state: 'completed' }, 'the task');
});

test('openai: a history that was edited is another conversation', async () => {
    const headers = { 'X-Session-Id': 'edited' };
    const create = (messages) => client.chat.completions.create({ model: 'demo', messages }, { headers });
    const first = await create([user('one')]);
    equal(first.a2a.context_id, 'edited', 'the context');
    const second = await create([user('one'), first.choices[0].message, user('two')]);
    equal(second.a2a.context_id, 'edited', 'what goes on');
    const other = await create([user('one'), { role: 'assistant', content: 'something else' }, user('two')]);
    check(other.a2a.context_id !== 'edited', 'what does not go on');
    equal(other.choices[0].message.content, second.choices[0].message.content, 'the answer');
});

// ---- tools --------------------------------------------------------------------------------------------

const functions = [
    { name: 'get_weather', description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
    { name: 'get_time', description: 'the time', parameters: { type: 'object', properties: { zone: { type: 'string' } } } },
];
const tools = functions.map((f) => ({ type: 'function', function: f }));

test('openai: two tools of the caller, run by hand', async () => {
    for (const stream of [false, true]) {
        const create = (messages) => stream
            ? client.chat.completions.stream({ model: 'caller', messages, tools }).finalChatCompletion()
            : client.chat.completions.create({ model: 'caller', messages, tools });
        const first = await create([user('go')]);
        const { message, finish_reason } = first.choices[0];
        equal([finish_reason, message.tool_calls.map((c) => c.function.name)], ['tool_calls', ['get_weather', 'get_time']], 'the calls');
        equal(message.tool_calls.map((c) => JSON.parse(c.function.arguments)), [{ city: 'Oslo' }, { zone: 'CET' }], 'their arguments');
        const results = message.tool_calls.map((c, i) => ({ role: 'tool', tool_call_id: c.id, content: ['snow', 'noon'][i] }));
        const second = await create([user('go'), message, ...results]);
        equal(second.choices[0].message.content, 'The tools say: 1=snow, 2=noon', 'the answer');
        equal(second.choices[0].finish_reason, 'stop', 'the reason');
    }
});

test('openai: the results go to the task that asked, without any session', async () => {
    const [a, b] = await Promise.all([0, 1].map(() => client.chat.completions.create({ model: 'caller', messages: [user('go')], tools })));
    check(a.a2a.task_id !== b.a2a.task_id, 'two tasks');
    const { message } = a.choices[0];
    const results = message.tool_calls.map((c) => ({ role: 'tool', tool_call_id: c.id, content: 'x' }));
    const done = await client.chat.completions.create({ model: 'caller', messages: [user('go'), message, ...results], tools });
    equal(done.a2a, { ...a.a2a, state: 'completed' }, 'the task');
    equal((await fetch(`${server.url}/agents/caller/tasks/${b.a2a.task_id}`, { headers: { 'A2A-Version': '1.0' } }).then((r) => r.json())).status.state,
        'TASK_STATE_INPUT_REQUIRED', 'the other');
});

test('openai: runTools, streamed and not', async () => {
    for (const stream of [false, true]) {
        const called = [];
        const runner = client.chat.completions.runTools({
            model: 'caller', stream, messages: [user('go')],
            tools: [
                { type: 'function', function: { ...functions[0], parse: JSON.parse, function: ({ city }) => (called.push(city), 'snow') } },
                { type: 'function', function: { ...functions[1], parse: JSON.parse, function: ({ zone }) => (called.push(zone), 'noon') } },
            ],
        });
        equal(await runner.finalContent(), 'The tools say: 1=snow, 2=noon', 'the answer');
        equal(called, ['Oslo', 'CET'], 'what was called');
    }
});

test('openai: tools that an agent runs itself are not given away', async () => {
    const { message } = (await ask('parallel-tools', { tools })).choices[0];
    equal(message.tool_calls, undefined, 'the calls');
    check(message.content.includes('Oakland'), message.content);
});

// ---- errors -------------------------------------------------------------------------------------------

test('openai: a task that failed is an error that is not tried again', async () => {
    const before = (await list()).length;
    const error = await failure(ask('fail'));
    check(error instanceof APIError, error);
    equal([error.status, error.code, error.type, error.param], [424, 'task_failed', 'agent_error', null], 'the error');
    equal(error.headers.get('x-should-retry'), 'false', 'the header');
    equal((await list()).length, before + 1, 'how often it ran');
});

test('openai: a task that fails in a stream', async () => {
    const stream = await ask('break', { stream: true });
    let said = '';
    const error = await failure((async () => { for await (const c of stream) said += c.choices[0].delta.content ?? ''; })());
    check(error instanceof APIError, error);
    equal([error.code, error.type], ['task_failed', 'server_error'], 'the error');
    check(story.startsWith(said.slice(0, 10)) && said.length > 10, said);
});

test('openai: errors have their classes', async () => {
    const unknown = await failure(ask('x', { model: 'gpt-4o' }));
    check(unknown instanceof NotFoundError, unknown);
    equal([unknown.code, unknown.param, unknown.type], ['model_not_found', 'model', 'invalid_request_error'], 'no such model');
    const two = await failure(ask('x', { n: 2 }));
    check(two instanceof BadRequestError, two);
    equal([two.code, two.param], ['unsupported_value', 'n'], 'two answers');
    const file = await failure(ask([{ type: 'file', file: { file_id: 'file-abc' } }]));
    check(file instanceof BadRequestError, file);
    equal(file.param, 'messages[0].content[0].file.file_id', 'no such file');
    const forced = await failure(ask('x', { model: 'hello', tools, tool_choice: 'required' }));
    check(forced instanceof BadRequestError, forced);
    equal([forced.code, forced.param], ['unsupported_value', 'tool_choice'], 'a tool that must be called');
    equal((await failure(client.files.content('file-abc'))).status, 404, 'no such file');
});

test('openai: every answer names its request', async () => {
    const answer = await ask('hello');
    check(/^req_[0-9a-f-]+$/.test(answer._request_id), answer._request_id);
    const error = await failure(ask('x', { n: 2 }));
    check(/^req_/.test(error.requestID) && error.requestID !== answer._request_id, error.requestID);
    await until(() => server.log.includes(error.requestID), 'the log has it');
    const { response } = await client.chat.completions.create({ model: 'demo', messages: [user('x')] }, { headers: { 'X-Request-Id': 'mine' } }).withResponse();
    equal(response.headers.get('x-request-id'), 'mine', 'the name that the caller gave');
    const crossed = await fetch(`${server.url}/v1/models`, { headers: { Origin: 'http://localhost:3000' } });
    check(/^req_/.test(crossed.headers.get('x-request-id')) && crossed.headers.get('access-control-allow-origin'), 'in addition to the CORS headers');
});

test('openai: tokens', async () => {
    const tokens = [{ token: 'secret', principal: 'ann', tenant: 'acme' }, { token: 'other', principal: 'bob', tenant: 'acme' }];
    const guarded = await new Server({ agents, tokens }).start();
    const as = (apiKey) => new OpenAI({ baseURL: `${guarded.url}/v1`, apiKey });
    const error = await failure(as('wrong').models.list());
    check(error instanceof AuthenticationError, error);
    equal([error.status, error.code, error.type], [401, 'invalid_api_key', 'authentication_error'], 'the error');
    const mine = await as('secret').chat.completions.create({ model: 'acme/demo', messages: [user('file')] });
    equal(mine.model, 'acme/demo', 'the model, behind its tenant');
    const id = /files\/([^/]+)\/content/.exec(mine.choices[0].message.content)[1];
    check((await (await as('secret').files.content(id)).text()).startsWith('month'), 'the owner has the file');
    equal((await failure(as('other').files.content(id))).status, 404, 'no other caller has');
    equal((await failure(as('other').chat.completions.create({ model: 'globex/demo', messages: [user('x')] }))).status, 404, 'another tenant');
    await guarded.stop();
});

// ---- leaving ------------------------------------------------------------------------------------------

test('openai: who breaks off cancels', async () => {
    const g = gate();
    const stream = await client.chat.completions.create({ model: 'gate', stream: true, messages: [user(g.message)] });
    let id;
    for await (const chunk of stream) {
        id ??= chunk.a2a?.task_id;
        if (chunk.choices[0].delta.content) break;
    }
    const state = async () => (await fetch(`${server.url}/agents/gate/tasks/${id}`, { headers: { 'A2A-Version': '1.0' } }).then((r) => r.json())).status.state;
    await until(async () => (await state()) === 'TASK_STATE_CANCELED', 'the task is canceled');
});

// ---- models -------------------------------------------------------------------------------------------

async function list() {
    const response = await fetch(`${server.url}/tasks?pageSize=100`, { headers: { 'A2A-Version': '1.0' } });
    return (await response.json()).tasks;
}

test('openai: agents are models', async () => {
    const all = [];
    for await (const model of client.models.list()) all.push(model);
    equal(all.map((m) => m.id), agents.map((a) => a.id), 'the models');
    check(all.every((m) => m.object === 'model' && Number.isInteger(m.created) && m.owned_by), JSON.stringify(all));
    equal((await client.models.retrieve('a2a/hello')).id, 'hello', 'one, by another of its names');
    check((await failure(client.models.retrieve('nobody'))) instanceof NotFoundError, 'and an unknown one');
});

test('openai: an agent at its own address', async () => {
    const own = new OpenAI({ baseURL: `${server.url}/agents/hello/v1`, apiKey: 'none' });
    const answer = await own.chat.completions.create({ model: 'gpt-4o', messages: [user('I am Ann')] });
    equal([answer.model, answer.choices[0].message.content], ['gpt-4o', 'Hello, Ann!'], 'the answer');
    equal((await own.models.list()).data.map((m) => m.id), ['hello'], 'its models');
});

await run(() => server.stop());
