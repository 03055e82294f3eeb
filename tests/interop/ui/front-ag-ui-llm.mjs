// The clients of AG-UI and a language model: approvals, questions, tools of the frontend, steering, reasoning, usage.
import { randomUUID } from 'node:crypto';
import { check, equal, run as runTests, test, until } from '../server/node/lib/tap.mjs';
import { of, open, peers, run, say, stateOf, stopAll, tasksOf, texts, user } from './lib/front.mjs';

const where = { agent: 'assistant' };
const tools = [{ name: 'weather', description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }];
const states = async (agent) => (await tasksOf(agent.threadId, where)).map(stateOf);

for (const peer of peers) {
    test(`${peer.name}, llm: a call that needs approval is an interrupt, its answer decides`, async () => {
        for (const [payload, isRun] of [[{ approved: true }, true], [{ approved: false, reason: 'mine' }, false], [{ approved: true, arguments: { path: 'new.txt' } }, true]]) {
            const agent = await open(peer, where);
            const { finished } = await say(agent, 'call remove {"path": "old.txt"}');
            const [{ id, metadata }] = finished.outcome.interrupts;
            equal([metadata.approval.tool, metadata.approval.arguments], ['remove', { path: 'old.txt' }], 'the request');
            const second = await run(agent, { resume: [{ interruptId: id, status: 'resolved', payload }] });
            check(!second.failed && second.finished, `the answer: ${second.failed}`);
            const last = texts(agent).at(-1);
            equal(/"path"/.test(last), isRun, `the tool ran: ${last}`);
            if (payload.arguments) check(/new\.txt/.test(last), last);
            equal(await states(agent), ['COMPLETED'], 'one task');
        }
    });

    test(`${peer.name}, llm: a question of the model, and its answer`, async () => {
        const agent = await open(peer, where);
        await say(agent, 'ask Which colour?');
        equal(texts(agent).at(-1), 'Which colour?', 'the question');
        await say(agent, 'green');
        check(/green/.test(texts(agent).at(-1)), texts(agent).at(-1));
        equal(await states(agent), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}, llm: a tool of the frontend`, async () => {
        const agent = await open(peer, where);
        await say(agent, 'call weather {"city": "Oslo"}', { tools });
        const [call] = of(agent.messages, 'assistant').flatMap((m) => m.toolCalls ?? []);
        equal([call.function.name, JSON.parse(call.function.arguments)], ['weather', { city: 'Oslo' }], 'the call');
        agent.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call.id, content: 'snow' });
        const second = await run(agent, { tools });
        check(!second.failed && second.finished, `run 2: ${second.failed}`);
        check(/snow/.test(texts(agent).at(-1)), texts(agent).at(-1));
        equal(await states(agent), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}, llm: a message while the model writes reaches it`, async () => {
        const first = await open(peer, where);
        let seen = '';
        const writes = say(first, `slow 60 ${'word '.repeat(80)}end`, {}, (e) => { seen += e.delta ?? ''; });
        await until(() => /word/.test(seen), 'the first words');
        const second = await open(peer, { ...where, threadId: first.threadId, initialMessages: structuredClone(first.messages.filter((m) => m.role === 'user')) });
        second.addMessage(user('echo steered'));
        const end = await run(second);
        check(!end.failed && end.finished, `the second run: ${end.failed}`);
        await writes;
        for (const agent of [first, second]) equal(texts(agent).join(' ').split('steered').length, 2, 'the answer once');
        check(/end/.test(texts(first).join(' ')), texts(first).join(' '));
        equal(await states(first), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}, llm: reasoning and usage`, async () => {
        const agent = await open(peer, where);
        const { finished } = await say(agent, 'think about it');
        check(of(agent.messages, 'reasoning').length === 1 && of(agent.messages, 'reasoning')[0].content, 'the reasoning');
        equal(texts(agent), ['about it'], 'the text');
        check(finished.usage[0].inputTokens > 0, 'the usage');
    });
}

await runTests(stopAll);
