// The AI SDK's chat and its transport against a live server: what useChat does, without the page around it.
import { safeValidateUIMessages } from 'ai';
import { check, equal, run, test, until } from '../server/node/lib/tap.mjs';
import { answerOf, artifact, asks, Chat, gate, start, status, text, textsOf, toolsOf } from './lib/chat.mjs';

const server = await start();
const open = (more) => new Chat({ server, ...more });
const stateOf = (t) => t.status.state.slice('TASK_STATE_'.length);
const said = (parts) => parts.map((p) => p.text ?? '').join('');

// ---- answers ---------------------------------------------------------------------------------------------------

for (const script of ['stream', 'echo so many words', 'unicode', 'long 50', 'file', 'data', 'files', 'state', 'reasoning', 'usage', 'subagent', 'tools', 'parallel-tools', 'status'])
    test(`demo ${script}: the answer once, as the task has it`, async () => {
        const chat = open();
        const answer = await chat.say(script);
        const [task] = await chat.tasks();
        equal(chat.errors, [], 'errors');
        equal(textsOf(answer), [said(task.status.message.parts)], 'the answer');
        equal(answer.metadata.taskId, task.id, 'the task');
        equal(answer.metadata.contextId, chat.id, 'the context');
        equal(answer.metadata.state, 'completed', 'the state');
        equal(chat.status, 'ready', 'the status');
        equal(chat.chunks.at(-1).type, 'finish', 'the end');
    });

test('hello: a Message is an answer, too, and stores no task [R004-23 R004-26]', async () => {
    const chat = open({ agent: 'hello' });
    const answer = await chat.say('hi');
    check(/^Hello/.test(answerOf(answer)), answerOf(answer));
    equal((await chat.tasks()).length, 0, 'tasks: a Message answer has none');
    check(!answer.metadata.taskId, 'a task in the metadata');
});

test("document 004's four events, and a word before them, say hello world once [R004-08 R004-10 R004-12 R004-13]", async () => {
    const chat = open({ agent: 'say' });
    const piece = (t) => status('WORKING', text(t, 'TextMessageChunkEvent'));
    const answer = await chat.say([status('WORKING', text('Processing your greeting...')), piece('Hello'), piece(' world'), status('COMPLETED', text('Hello world!'))].join('\n'));
    equal(textsOf(answer), ['Hello world!'], 'one text, longer than what was streamed');
    equal(chat.chunks.filter((c) => c.type === 'text-start').length, 1, 'texts that were begun');
    check(chat.chunks.some((c) => c.type === 'data-a2a-status' && c.data.text === 'Processing your greeting...'), 'progress was shown');
    equal(answer.parts.filter((p) => p.type === 'data-a2a-status').map((p) => p.data), [{ state: 'completed' }], 'and is over');
});

test('a final text that differs is another part, and the last one counts [R004-13]', async () => {
    const chat = open({ agent: 'say' });
    const answer = await chat.say([artifact('a', [{ text: 'Hullo' }], { lastChunk: true }), status('COMPLETED', text('Hello'))].join('\n'));
    equal(textsOf(answer), ['Hullo', 'Hello'], 'both texts');
    equal(answerOf(answer), 'Hello', 'the answer');
    const [a, b] = chat.chunks.filter((c) => c.type === 'text-start');
    check(a.id !== b.id, 'two ids');
    equal((await chat.saved()).at(-1).parts, [{ type: 'text', text: 'Hello' }], 'what is remembered');
});

test('status is never in the answer', async () => {
    const chat = open();
    const answer = await chat.say('status');
    const steps = chat.chunks.filter((c) => c.type === 'data-a2a-status' && c.data.text).map((c) => c.data.text);
    equal(steps.length, 5, 'steps');
    for (const s of steps) check(!answerOf(answer).includes(s), s);
});

test('files and data are parts of the message, also later', async () => {
    const files = open();
    const data = open();
    await files.say('file');
    await data.say('data');
    for (const m of [files.lastMessage, (await files.saved())[1]])
        equal(m.parts.filter((p) => p.type === 'file').map((p) => p.mediaType), ['text/csv', 'image/png', 'application/pdf'], 'files');
    for (const m of [data.lastMessage, (await data.saved())[1]])
        equal(m.parts.filter((p) => p.type === 'data-a2a-artifact').map((p) => [p.id, p.data.parts[0].data.city]), [['weather', 'Oakland']], 'data');
});

test('a file of the user reaches the agent', async () => {
    const chat = open();
    await chat.sendMessage({ parts: [{ type: 'text', text: 'files' }, { type: 'file', mediaType: 'text/plain', filename: 'a.txt', url: 'data:text/plain;base64,aGk=' }] });
    equal(chat.lastMessage.parts.filter((p) => p.type === 'file').map((p) => p.url), ['data:text/plain;base64,aGk='], 'it came back');
});

test('state, reasoning and usage are sent', async () => {
    const state = open();
    await state.say('state');
    check(state.chunks.some((c) => c.type === 'data-state' && c.data.recipe === 'pancakes'), 'the state');
    const thoughts = await open().say('reasoning');
    check(thoughts.parts.find((p) => p.type === 'reasoning').text.includes('17 is prime'), 'the thoughts');
    equal((await open().say('usage')).metadata.usage[0].totalTokens, 21, 'the cost');
});

// ---- tools -------------------------------------------------------------------------------------------------------

test('tools that the agent runs are shown, and not the page\'s to run', async () => {
    const chat = open({ tools: { get_weather: 'never' } });
    const answer = await chat.say('parallel-tools');
    equal(toolsOf(answer).map((p) => [p.toolName, p.state, p.providerExecuted]), [['get_weather', 'output-available', true], ['get_time', 'output-available', true]], 'tools');
    equal(toolsOf(answer)[1].output, { time: '09:41' }, 'a result');
});

test('a tool of the page: the task goes on with its result, in the same message', async () => {
    const chat = open({ tools: { get_weather: 'Fog' } });
    await chat.say('client-tool');
    await until(() => chat.status === 'ready' && textsOf(chat.lastMessage).length, 'the answer');
    equal(chat.messages.map((m) => m.role), ['user', 'assistant'], 'messages');
    equal(toolsOf(chat.lastMessage).map((p) => [p.state, p.output]), [['output-available', 'Fog']], 'the tool');
    equal(textsOf(chat.lastMessage), ['Your tool says: Fog'], 'the answer');
    equal((await chat.tasks()).map(stateOf), ['COMPLETED'], 'one task');
    const saved = await chat.saved();
    equal(saved.map((m) => m.id), chat.messages.map((m) => m.id), 'the same messages, later');
    equal(textsOf(saved[1]), textsOf(chat.lastMessage), 'the same text');
    equal(toolsOf(saved[1]).map((p) => p.output), ['Fog'], 'the same result');
});

test('tools that were announced have parts of their own, and reach the agent', async () => {
    const chat = open({ tools: { get_weather: 'Fog' }, body: { tools: { get_weather: { description: 'the weather', parameters: { type: 'object' } } } } });
    await chat.say('client-tool');
    await until(() => chat.status === 'ready' && textsOf(chat.lastMessage).length, 'the answer');
    equal(toolsOf(chat.lastMessage).map((p) => p.type), ['tool-get_weather'], 'its type');
});

test('two tools of the page, and one that fails', async () => {
    const chat = open({ agent: 'say' });
    await chat.say(asks({ call_id: 'p', name: 'f', arguments: { n: 1 } }, { call_id: 'q', name: 'g', arguments: {} }));
    equal(toolsOf(chat.lastMessage).map((p) => [p.toolCallId, p.state]), [['p', 'input-available'], ['q', 'input-available']], 'they wait');
    await chat.addToolOutput({ tool: 'f', toolCallId: 'p', output: 'one\n' });
    await chat.addToolOutput({ tool: 'g', toolCallId: 'q', state: 'output-error', errorText: 'no luck' });
    await until(() => chat.status === 'ready' && textsOf(chat.lastMessage).length, 'the answer');
    equal(answerOf(chat.lastMessage), 'onegot {"error": "no luck"}', 'the answer');
});

test('what the user decides about a call goes to the agent that asked', async () => {
    const chat = open({ agent: 'say' });
    await chat.say(asks({ call_id: 'delete-1', name: 'delete', arguments: {} }));
    const asked = structuredClone(chat.lastMessage);
    Object.assign(toolsOf(asked)[0], { state: 'approval-responded', approval: { id: 'x', approved: true } });
    chat.messages = [chat.messages[0], asked];
    await chat.sendMessage();
    equal((await chat.tasks()).map(stateOf), ['FAILED'], 'the agent got {"approved": true}, which is not an event');
    equal((await chat.tasks())[0].history.at(-1).parts[0].data.tool_results, [{ call_id: 'delete-1', name: 'delete', output: '{"approved": true}' }], 'its input');
});

test('calls are approved and rejected, and the message goes on with their results', async () => {
    const chat = open({ agent: 'asks' });
    const asked = await chat.say('delete a b');
    equal(toolsOf(asked).map((p) => [p.toolName, p.state, p.input.path]), [['delete', 'approval-requested', 'a'], ['delete', 'approval-requested', 'b']], 'the requests');
    const [a, b] = toolsOf(asked);
    await chat.addToolApprovalResponse({ id: a.approval.id, approved: true });
    await chat.addToolApprovalResponse({ id: b.approval.id, approved: false, reason: 'mine' });
    await until(() => chat.status === 'ready' && textsOf(chat.lastMessage).at(-1)?.startsWith('deleted'), 'the answer');
    equal(textsOf(chat.lastMessage).at(-1), 'deleted a; kept b (mine)', 'the answer');
    equal(chat.messages.map((m) => m.role), ['user', 'assistant'], 'one message of the agent');
    equal(chat.lastMessage.id, asked.id, 'the same message');
    equal(toolsOf(chat.lastMessage).map((p) => [p.state, p.output]), [['output-available', 'gone'], ['output-denied', undefined]], 'the calls');
    equal(chat.errors, [], 'errors');
    equal((await chat.tasks()).map(stateOf), ['COMPLETED'], 'one task');
});

// ---- questions, errors ------------------------------------------------------------------------------------------

test('a question is text, and the answer goes to its task', async () => {
    const chat = open();
    const question = await chat.say('ask');
    equal([answerOf(question), question.metadata.state], ['What is your name?', 'input-required'], 'the question');
    const answer = await chat.say('Ann');
    check(answerOf(answer).includes('Ann'), answerOf(answer));
    equal(answer.metadata.taskId, question.metadata.taskId, 'the task');
    check(answer.id !== question.id, 'two messages');
});

for (const [script, code] of [['fail', 'failed'], ['reject', 'rejected'], ['break', 'failed']])
    test(`${script}: the reason is an error, the streamed text stays`, async () => {
        const chat = open();
        await chat.say(script);
        equal(chat.status, 'error', 'the status');
        const [task] = await chat.tasks();
        equal(chat.errors.map((e) => e.message), [task.metadata?.error ?? said(task.status.message.parts)], 'the error');
        if (script === 'break') check(answerOf(chat.lastMessage).length, 'the streamed text');
        equal(stateOf(task).toLowerCase(), code, 'the state');
    });

test('a refusal is a sentence', async () => {
    const chat = open();
    chat.messages = [{ id: 'x', role: 'user', parts: [{ type: 'text', text: 7 }] }];
    await chat.regenerate();
    equal([chat.status, chat.errors.length], ['error', 1], 'the status');
    check(/string.*\/messages\/0\/parts\/0\/text/.test(chat.error.message), chat.error.message);
});

// ---- again --------------------------------------------------------------------------------------------------------

test('the messages of a chat can be read', async () => {
    const chat = open();
    await chat.say('echo one');
    await chat.say('ask');
    await chat.say('Ann');
    const saved = await chat.saved();
    const valid = await safeValidateUIMessages({ messages: saved });
    if (!valid.success) throw valid.error;
    equal(saved.map((m) => [m.id, m.role, answerOf(m)]), chat.messages.map((m) => [m.id, m.role, answerOf(m)]), 'the messages');
});

test('a message that is sent again is no second turn', async () => {
    const chat = open();
    await chat.say('echo one');
    const body = JSON.stringify({ id: chat.id, messages: chat.messages.slice(0, 1), trigger: 'submit-message' });
    const again = await fetch(chat.api, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const deltas = (await again.text()).match(/^data: \{"type":"text-delta".*$/gm).map((l) => JSON.parse(l.slice(6)).delta);
    equal([deltas.join(''), (await chat.tasks()).length], [answerOf(chat.lastMessage), 1], 'the answer, and how many tasks');
});

test('regenerated and edited messages are new turns, and take the place of the old', async () => {
    const chat = open();
    await chat.say('echo one');
    await chat.say('echo two');
    await chat.regenerate();
    equal(chat.messages.length, 4, 'messages after a regeneration');
    equal((await chat.tasks()).length, 3, 'tasks');
    const first = chat.messages[0];
    await chat.sendMessage({ text: 'echo three', messageId: first.id });
    equal(chat.messages.map((m) => m.id), [first.id, `${first.id}.answer`], 'messages after an edit');
    const saved = await chat.saved();
    equal(saved.map((m) => [m.id, answerOf(m)]), chat.messages.map((m) => [m.id, answerOf(m)]), 'the saved messages');
    check(answerOf(saved[1]).includes('three'), answerOf(saved[1]));
});

test('nothing runs, nothing is resumed', async () => {
    const chat = open();
    for (const before of [false, true]) {
        if (before) await chat.say('echo one');
        const r = await fetch(`${chat.api}/${chat.id}/stream`);
        equal([r.status, await r.text()], [204, ''], before ? 'of a chat that rests' : 'of an unknown chat');
        equal((await chat.cancel()).status, 204, 'cancel');
        await chat.resumeStream();
        equal([chat.status, chat.errors.length], ['ready', 0], 'the status');
    }
});

test('a page that is loaded again sees the answer from its beginning', async () => {
    const g = gate();
    const chat = open({ agent: 'say' });
    const talk = chat.say(`one \nwait ${g.path}\ntwo`);
    await until(() => chat.lastMessage?.role === 'assistant' && answerOf(chat.lastMessage) === 'one ', 'half of it');
    const again = open({ agent: 'say', id: chat.id, messages: await chat.saved() });
    const resumed = again.resumeStream();
    await until(() => again.status === 'streaming' && answerOf(again.lastMessage) === 'one ', 'the same half');
    g.open();
    await Promise.all([talk, resumed]);
    equal(answerOf(chat.lastMessage), 'one two', 'the answer');
    equal(again.messages.map((m) => [m.id, textsOf(m), JSON.stringify(m.metadata)]), chat.messages.map((m) => [m.id, textsOf(m), JSON.stringify(m.metadata)]), 'the same messages');
    equal(JSON.stringify(again.lastMessage.parts), JSON.stringify(chat.lastMessage.parts), 'the same parts');
    equal((await chat.tasks()).length, 1, 'tasks');
});

test('and so does one that is loaded while a message goes on after a tool of the page', async () => {
    const g = gate();
    const chat = open({ agent: 'say', tools: { f: `one \nwait ${g.path}\ntwo` } });
    const talk = chat.say([artifact('b', [{ text: 'Let me see. ' }], { lastChunk: true }), asks({ call_id: 'again-1', name: 'f', arguments: { n: 1 } })].join('\n'));
    await until(() => chat.status === 'streaming' && answerOf(chat.lastMessage).endsWith('one '), 'half of it');
    const again = open({ agent: 'say', id: chat.id, messages: await chat.saved() });
    const resumed = again.resumeStream();
    await until(() => again.status === 'streaming' && answerOf(again.lastMessage).endsWith('one '), 'the same half');
    g.open();
    await Promise.all([talk, resumed]);
    equal(textsOf(chat.lastMessage), ['Let me see. ', 'one two'], 'the answer');
    equal(textsOf(again.lastMessage), textsOf(chat.lastMessage), 'the same answer');
    equal(toolsOf(again.lastMessage).map((p) => [p.toolName, p.state, p.input, !!p.providerExecuted]), [['f', 'output-available', { n: 1 }, false]], 'the tool');
    equal(again.messages.map((m) => m.id), chat.messages.map((m) => m.id), 'the messages');
});

// ---- stopping -----------------------------------------------------------------------------------------------------

for (const method of ['POST', 'DELETE'])
    test(`${method === 'POST' ? 'cancel' : 'DELETE of the stream'} ends the agent's work, and the stream by itself`, async () => {
        const chat = open({ agent: 'slow' });
        const talk = chat.say('slow 600');
        await until(() => chat.lastMessage?.role === 'assistant' && answerOf(chat.lastMessage), 'the beginning');
        const r = await chat.cancel(method);
        equal([r.status, await r.json()], [200, { id: chat.id, canceled: true }], 'the answer');
        await talk;
        equal([chat.status, chat.lastMessage.metadata.state, chat.chunks.at(-1).type], ['ready', 'canceled', 'abort'], 'the end');
        equal((await chat.tasks()).map(stateOf), ['CANCELED'], 'the task');
    });

test('stop() alone hangs up, and the agent goes on', async () => {
    const g = gate();
    const chat = open({ agent: 'say' });
    const talk = chat.say(`one \nwait ${g.path}\ntwo`);
    await until(() => chat.lastMessage?.role === 'assistant' && answerOf(chat.lastMessage), 'the beginning');
    await chat.stop();
    await talk;
    g.open();
    const [task] = await until(async () => { const t = await chat.tasks(); return stateOf(t[0]) === 'COMPLETED' && t; }, 'the end');
    equal(said(task.status.message.parts), 'one two', 'the answer');
});

// ---- more servers -------------------------------------------------------------------------------------------------

test('where it is set so, hanging up cancels', async () => {
    const other = await start({ on_disconnect: { 'ai-sdk': 'cancel' }, disconnect_grace_s: { 'ai-sdk': 0 } });
    const chat = new Chat({ server: other, agent: 'slow' });
    const talk = chat.say('slow 600');
    await until(() => chat.lastMessage?.role === 'assistant' && answerOf(chat.lastMessage), 'the beginning');
    await chat.stop();
    await talk;
    await until(async () => (await chat.tasks()).map(stateOf).join() === 'CANCELED', 'the task is canceled');
    await other.stop();
});

test("a chat is its owner's, and survives kill -9", async () => {
    const tokens = ['alice', 'bob'].map((principal) => ({ token: `${principal}-token`, principal }));
    const other = await start({ tokens }, `sqlite:chat-${process.pid}.db`);
    const of = (who, more) => new Chat({ server: other, headers: { Authorization: `Bearer ${who}-token` }, id: 'the-chat', ...more });
    const chat = of('alice');
    await chat.say('echo my secret');
    const g = gate();
    const cut = of('alice', { agent: 'say' });
    const talk = cut.say(`one \nwait ${g.path}\ntwo`);
    await until(() => cut.lastMessage?.role === 'assistant' && answerOf(cut.lastMessage), 'the beginning');
    equal(await of('bob').saved(), [], "bob's chat of that name");
    equal((await of('bob', { agent: 'say' }).cancel()).status, 204, "and he cancels nothing of alice's");
    equal((await fetch(`${chat.api}/x/messages`)).status, 401, 'without a token');
    await other.kill();
    await talk;
    check(cut.errors.length === 1, 'the connection was lost');
    await other.restart();
    equal((await chat.saved()).map(answerOf), chat.messages.map(answerOf), 'the messages');
    await cut.resumeStream();
    equal((await cut.tasks()).map(stateOf), ['FAILED'], 'what was cut short');
    equal((await cut.saved()).map(answerOf)[0], answerOf(cut.messages[0]), 'is remembered');
    await other.stop();
});

test('a server that shuts down ends the stream with an error', async () => {
    const g = gate();
    const other = await start();
    const chat = new Chat({ server: other, agent: 'say' });
    const talk = chat.say(`one \nwait ${g.path}\ntwo`);
    await until(() => chat.lastMessage?.role === 'assistant' && answerOf(chat.lastMessage), 'the beginning');
    const stopped = other.stop();
    await talk;
    equal([chat.status, chat.errors.length], ['error', 1], 'the status');
    g.open();
    await stopped;
});

await run(() => server.stop());
