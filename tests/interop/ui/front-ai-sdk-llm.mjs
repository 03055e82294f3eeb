// The AI SDK's chat and a language model: approvals, questions, tools of the page, steering, reasoning, usage.
import { check, equal, run, test, until } from '../server/node/lib/tap.mjs';
import { answerOf, Chat, start, textsOf, toolsOf } from './lib/chat.mjs';

const server = await start();
const open = (more) => new Chat({ server, agent: 'assistant', ...more });
const states = async (chat) => (await chat.tasks()).map((t) => t.status.state.slice('TASK_STATE_'.length));

test('AI SDK, llm: a call that needs approval, approved and denied by addToolApprovalResponse', async () => {
    for (const approved of [true, false]) {
        const chat = open();
        await chat.say('call remove {"path": "old.txt"}');
        const [part] = toolsOf(chat.lastMessage);
        equal([part.toolName, part.state, part.input], ['remove', 'approval-requested', { path: 'old.txt' }], 'the request');
        await chat.addToolApprovalResponse({ id: part.approval.id, approved });
        await until(async () => chat.status === 'ready' && (await states(chat))[0] === 'COMPLETED', 'the answer');
        equal(chat.errors, [], 'errors');
        equal(/"path"/.test(textsOf(chat.lastMessage).at(-1)), approved, `the tool ran: ${textsOf(chat.lastMessage).at(-1)}`);
        equal(chat.messages.map((m) => m.role), ['user', 'assistant'], 'messages');
        equal(await states(chat), ['COMPLETED'], 'one task');
    }
});

test('AI SDK, llm: a question of the model, and its answer', async () => {
    const chat = open();
    equal(textsOf(await chat.say('ask Which colour?')), ['Which colour?'], 'the question');
    check(/green/.test(answerOf(await chat.say('green'))), answerOf(chat.lastMessage));
    equal(await states(chat), ['COMPLETED'], 'one task');
});

test('AI SDK, llm: a tool of the page', async () => {
    const weather = { description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } };
    const chat = open({ tools: { weather: 'snow' }, body: { tools: { weather } } });
    await chat.say('call weather {"city": "Oslo"}');
    await until(() => chat.status === 'ready' && textsOf(chat.lastMessage).length, 'the answer');
    equal(toolsOf(chat.lastMessage).map((p) => [p.type, p.input, p.output]), [['tool-weather', { city: 'Oslo' }, 'snow']], 'the call');
    check(/snow/.test(answerOf(chat.lastMessage)), answerOf(chat.lastMessage));
    equal(await states(chat), ['COMPLETED'], 'one task');
});

test('AI SDK, llm: a message while the model writes reaches it', async () => {
    const first = open();
    const writes = first.say(`slow 60 ${'word '.repeat(80)}end`);
    await until(() => /word/.test(textsOf(first.lastMessage ?? { parts: [] }).join('')), 'the first words');
    const second = open({ id: first.id, messages: structuredClone(first.messages.filter((m) => m.role === 'user')) });
    await second.say('echo steered');
    await writes;
    for (const chat of [first, second]) {
        equal(chat.errors, [], 'errors');
        equal(textsOf(chat.lastMessage).join(' ').split('steered').length, 2, `the answer once: ${textsOf(chat.lastMessage)}`);
    }
    equal(await states(first), ['COMPLETED'], 'one task');
});

test('AI SDK, llm: reasoning and usage', async () => {
    const answer = await open().say('think about it');
    check(answer.parts.find((p) => p.type === 'reasoning').text, 'the reasoning');
    equal(textsOf(answer), ['about it'], 'the text');
    check(answer.metadata.usage[0].inputTokens > 0, 'the usage');
});

await run(() => server.stop());
