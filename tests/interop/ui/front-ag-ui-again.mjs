// A client that reconnects to a run or a thread has every message once: by cursor, by the ids of the run, after a reload.
import { randomUUID } from 'node:crypto';
import { Server } from '../server/node/lib/server.mjs';
import { check, equal, run as runTests, test, until } from '../server/node/lib/tap.mjs';
import { a2a, answerOf, events, frames, gated, input, of, open, peers, post, run, say, server, stateOf, stopAll, tasksOf, texts, user } from './lib/front.mjs';

const said = (agent) => agent.messages.filter((m) => m.role !== 'activity').map((m) => [m.role, m.content]);

for (const peer of peers) {
    test(`${peer.name}: a run that broke off in the middle of a message goes on there`, async () => {
        const agent = await open(peer, { agent: 'gate' });
        const { text, go } = gated();
        const runId = randomUUID();
        agent.addMessage(user(text));
        await run(agent, { runId }, (e) => { if (e.type === 'TEXT_MESSAGE_CONTENT') agent.abortRun(); });
        check(!/two/.test(texts(agent)), 'it has not all of it');
        const seen = await run(agent, { runId }, (e) => { if (e.type === 'TEXT_MESSAGE_START') go(); });
        check(!seen.failed && seen.finished, `the second time: ${seen.failed}`);
        equal(seen.events[0].type, 'RUN_STARTED', 'the first event');
        equal(seen.events[1].type, 'MESSAGES_SNAPSHOT', 'the second');
        const whole = answerOf({ task: (await tasksOf(agent.threadId, { agent: 'gate' }))[0] });
        equal(said(agent), [['user', text], ['assistant', whole]], 'the messages');
    });

    test(`${peer.name}: a finished run is streamed again, and nothing runs twice`, async () => {
        for (const script of ['stream', 'parallel-tools', 'reasoning', 'interrupt', 'status', 'unicode']) {
            const agent = await open(peer);
            const runId = randomUUID();
            const first = await say(agent, script, { runId });
            const before = JSON.stringify(said(agent));
            agent.pendingInterrupts = [];
            const again = await run(agent, { runId });
            check(!again.failed, `${script}: ${again.failed}`);
            equal(JSON.stringify(said(agent)), before, `${script}: the messages`);
            equal(again.finished.outcome, first.finished.outcome, `${script}: the outcome`);
            equal((await tasksOf(agent.threadId)).length, 1, `${script}: tasks`);
        }
    });

    test(`${peer.name}: later turns of a task are streamed again, too`, async () => {
        const asking = await open(peer);
        const { finished } = await say(asking, 'interrupt');
        const calling = await open(peer);
        await say(calling, 'client-tool');
        calling.addMessage({ id: randomUUID(), role: 'tool', toolCallId: calling.messages.at(-1).toolCalls[0].id, content: 'Snow' });
        for (const [agent, parameters] of [[asking, { resume: [{ interruptId: finished.outcome.interrupts[0].id, status: 'resolved', payload: 'yes' }] }], [calling, {}]]) {
            const runId = randomUUID();
            await run(agent, { ...parameters, runId });
            const before = said(agent);
            check(/You said yes|Snow/.test(texts(agent).at(-1)), `it says ${texts(agent)}`);
            const again = await run(agent, { ...parameters, runId });
            check(!again.failed, String(again.failed));
            equal(said(agent), before, 'the messages');
            equal((await tasksOf(agent.threadId)).map(stateOf), ['COMPLETED'], 'the tasks');
        }
    });

    test(`${peer.name}: words that were taken back stay so`, async () => {
        const agent = await open(peer, { agent: 'fickle' });
        const runId = randomUUID();
        await say(agent, 'hi', { runId });
        await run(agent, { runId });
        equal(said(agent), [['user', 'hi'], ['assistant', 'Goodbye']], 'the messages of the run');
        const again = await open(peer, { agent: 'fickle', threadId: agent.threadId });
        await run(again, {}, undefined, 'connectAgent');
        equal(said(again), said(agent), 'those of the thread');
    });

    test(`${peer.name}: state is there again`, async () => {
        const agent = await open(peer);
        const runId = randomUUID();
        await say(agent, 'state', { runId });
        const want = agent.state;
        agent.setState({});
        await run(agent, { runId });
        equal(agent.state, want, 'the state');
    });

    test(`${peer.name}: connect after a reload gives the thread's messages, calls included`, async () => {
        const agent = await open(peer);
        for (const text of ['one', 'parallel-tools', 'tools', 'reasoning', 'client-tool']) await say(agent, text);
        const again = await open(peer, { threadId: agent.threadId });
        const seen = await run(again, {}, undefined, 'connectAgent');
        check(!seen.failed && seen.finished, `connect: ${seen.failed}`);
        equal(said(again), said(agent), 'the messages');
        const calls = (a) => of(a.messages, 'assistant').flatMap((m) => m.toolCalls ?? []).map((c) => [c.id, c.function]);
        equal(calls(again).length, 4, 'calls');
        equal(calls(again), calls(agent), 'the calls');
        again.addMessage({ id: randomUUID(), role: 'tool', toolCallId: again.messages.at(-1).toolCalls[0].id, content: 'Snow' });
        await run(again);
        equal(texts(again).at(-1), 'Your tool says: Snow', 'it goes on');
        equal((await tasksOf(agent.threadId)).length, 5, 'tasks');
    });

    test(`${peer.name}: an answer that was made again stands for the first`, async () => {
        const agent = await open(peer);
        await say(agent, 'one');
        await say(agent, 'two');
        agent.setMessages(agent.messages.slice(0, 3)); // as pages do for "regenerate"
        await run(agent);
        equal((await tasksOf(agent.threadId)).length, 3, 'tasks');
        const again = await open(peer, { threadId: agent.threadId });
        await run(again, {}, undefined, 'connectAgent');
        equal(said(again), said(agent), 'the messages');
    });

    test(`${peer.name}: connect to a client that has messages already puts them in order`, async () => {
        const agent = await open(peer);
        for (const text of ['one', 'two']) await say(agent, text);
        const before = said(agent);
        await run(agent, {}, undefined, 'connectAgent');
        equal(said(agent), before, 'the messages');
    });

    test(`${peer.name}: connect to a thread that asks gives the question, and it can be answered`, async () => {
        const agent = await open(peer);
        await say(agent, 'interrupt');
        const again = await open(peer, { threadId: agent.threadId });
        const { finished } = await run(again, {}, undefined, 'connectAgent');
        equal(said(again), said(agent), 'the messages');
        const [{ id }] = finished.outcome.interrupts;
        const seen = await run(again, { resume: [{ interruptId: id, status: 'resolved', payload: 'yes' }] });
        check(!seen.failed, String(seen.failed));
        check(/You said yes/.test(texts(again)[1]), texts(again)[1]);
    });

    test(`${peer.name}: connect to a thread at work follows it`, async () => {
        const agent = await open(peer, { agent: 'gate' });
        const { text, go } = gated();
        agent.addMessage(user(text));
        const first = run(agent);
        await until(() => texts(agent).length, 'it begins to speak');
        const again = await open(peer, { agent: 'gate', threadId: agent.threadId });
        const seen = await run(again, {}, (e) => { if (e.type === 'TEXT_MESSAGE_START') go(); }, 'connectAgent');
        await first;
        check(!seen.failed && seen.finished, `connect: ${seen.failed}`);
        equal(said(again), said(agent), 'the messages');
    });

    test(`${peer.name}: connect to a thread whose run failed, or to none, is in order`, async () => {
        const agent = await open(peer);
        await say(agent, 'fail');
        const again = await open(peer, { threadId: agent.threadId });
        const seen = await run(again, {}, undefined, 'connectAgent');
        check(seen.finished && !seen.error, JSON.stringify(seen.error));
        equal(said(again)[0], ['user', 'fail'], 'the messages');
        const none = await open(peer);
        none.addMessage({ id: 'x', role: 'assistant', content: 'Welcome' });
        const nothing = await run(none, {}, undefined, 'connectAgent');
        check(nothing.finished && !nothing.failed, String(nothing.failed));
        equal(said(none), [['assistant', 'Welcome']], 'the messages of the client stay');
    });
}

// ---- without a client -------------------------------------------------------------------------------------------------------

test('with Last-Event-ID exactly what is missing comes, from every cursor', async () => {
    for (const script of ['parallel-tools', 'reasoning', 'status', 'interrupt', 'fail']) {
        const body = input({ messages: [user(script)] });
        const all = frames(await (await post(body)).text());
        const cursors = all.map((f) => f.id).filter(Boolean);
        check(cursors.length > 2 && all.at(-1).id, `${script}: the ids are ${cursors}`);
        for (const cursor of cursors) {
            const rest = frames(await (await post(body, { headers: { 'Last-Event-ID': cursor } })).text());
            equal(rest, all.slice(all.findIndex((f) => f.id === cursor) + 1), `${script}: what follows ${cursor}`);
        }
        for (const wrong of ['999999', 'x', '-1', '0']) {
            const again = frames(await (await post(body, { headers: { 'Last-Event-ID': wrong } })).text());
            if (wrong === '0') equal(again, all, `${script}: everything`);
            else equal(again.slice(0, 2).map((f) => f.event.type), ['RUN_STARTED', 'MESSAGES_SNAPSHOT'], `${script}: an invalid cursor`);
        }
    }
});

test('a run is known by thread and run: other threads may use its id', async () => {
    const first = input({ messages: [user('hi')] });
    await events(await post(first));
    const other = await events(await post(input({ runId: first.runId, messages: [user('there')] })));
    check(!other.some((e) => e.type === 'MESSAGES_SNAPSHOT'), 'it is another run');
    const slash = input({ threadId: 'a/b', runId: 'c', messages: [user('one')] });
    await events(await post(slash));
    const twin = await events(await post(input({ threadId: 'a', runId: 'b/c', messages: [user('two')] })));
    check(twin.map((e) => e.delta ?? '').join('').startsWith('You said: two'), 'ids with a slash are no others\'');
});

test('copies of a request that come at once are one run', async () => {
    for (let i = 0; i < 20; i++) {
        const body = input({ messages: [user('tools')] });
        const told = await Promise.all(Array.from({ length: 5 }, async () => events(await post(body))));
        for (const all of told) equal(all.at(-1).type, 'RUN_FINISHED', 'the end');
        equal(told.filter((all) => !all.some((e) => e.type === 'MESSAGES_SNAPSHOT')).length, 1, 'the one that ran');
        equal((await tasksOf(body.threadId)).length, 1, 'tasks');
    }
});

test('a run that is streamed again without messages has those of its thread', async () => {
    const threadId = randomUUID();
    await events(await post(input({ threadId, messages: [{ ...user('one'), id: 'u1' }] })));
    const second = input({ threadId, messages: [{ ...user('tools'), id: 'u2' }] });
    await events(await post(second));
    const again = await events(await post({ ...second, messages: [] }));
    const { messages } = again.find((e) => e.type === 'MESSAGES_SNAPSHOT');
    equal(messages.map((m) => m.role), ['user', 'assistant', 'user', 'assistant', 'tool', 'assistant'], 'the messages');
    equal([messages[0].id, messages[2].id, messages[3].toolCalls.length], ['u1', 'u2', 1], 'the user\'s, and the calls');
    equal(Object.keys(messages[0]).sort(), ['content', 'id', 'role'], 'members of a user\'s message');
});

test('runs and threads survive the server', async () => {
    const s = await new Server({ agents: [{ id: 'demo', type: 'demo', settings: { pace: 0 } }] }, 'sqlite:tasks.db').start();
    const ask = async (body, path = '/ag-ui', headers = {}) =>
        frames(await (await fetch(s.url + path, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })).text());
    const body = input({ messages: [user('interrupt')] });
    const all = await ask(body);
    await s.kill();
    await s.restart();
    const rest = await ask(body, '/ag-ui', { 'Last-Event-ID': all[1].id });
    equal(rest, all.slice(2), 'what follows the cursor');
    const [{ id }] = all.at(-1).event.outcome.interrupts;
    const answer = input({ threadId: body.threadId, resume: [{ interruptId: id, status: 'resolved', payload: 'yes' }] });
    check((await ask(answer)).map((f) => f.event.delta ?? '').join('').startsWith('You said yes'), 'the question can still be answered');
    await s.kill();
    await s.restart();
    const { event } = (await ask(input({ threadId: body.threadId }), '/ag-ui/connect'))[1];
    equal(event.messages.map((m) => m.role), ['user', 'assistant', 'user', 'assistant'], 'the thread');
    await s.stop();
});

test('a thread\'s messages as JSON; for its owner only', async () => {
    const { url } = await server('closed');
    const as = (who) => ({ Authorization: `Bearer ${who}-token`, 'Content-Type': 'application/json' });
    const body = input({ threadId: 'ours/ä', messages: [{ ...user('tools'), id: 'u' }] });
    await events(await fetch(`${url}/ag-ui`, { method: 'POST', headers: as('alice'), body: JSON.stringify(body) }));
    const get = async (who) => (await fetch(`${url}/ag-ui/threads/${encodeURIComponent('ours/ä')}/messages`, { headers: who ? as(who) : {} }));
    const mine = await (await get('alice')).json();
    equal([mine.threadId, mine.messages.map((m) => m.role)], ['ours/ä', ['user', 'assistant', 'tool', 'assistant']], 'Alice\'s');
    equal((await (await get('bob')).json()).messages, [], 'Bob\'s');
    const nobody = await get();
    equal([nobody.status, typeof (await nobody.json()).error.message], [401, 'string'], 'without a token');
    const bobs = await fetch(`${url}/ag-ui`, { method: 'POST', headers: as('bob'), body: JSON.stringify({ ...body, messages: [] }) });
    equal(bobs.status, 400, 'the run of another is not known');
});

test('a run is seen live over A2A, and one of A2A\'s in its thread', async () => {
    const { text, go } = gated();
    const body = input({ messages: [user(text)] });
    const running = post(body, { path: '/agents/gate/ag-ui' });
    const [task] = await until(async () => { const t = await tasksOf(body.threadId, { agent: 'gate' }); return t.length && t; }, 'the task');
    equal([task.contextId, stateOf(task)], [body.threadId, 'WORKING'], 'the task');
    go();
    const all = await events(await running);
    const done = await a2a('GetTask', { id: task.id }, { agent: 'gate' });
    equal(all.map((e) => e.delta ?? '').join(''), answerOf({ task: done }), 'the text');
    const m = { messageId: 'by-a2a', contextId: body.threadId, role: 'ROLE_USER', parts: [{ text }] };
    await a2a('SendMessage', { message: m }, { agent: 'gate' });
    const { messages } = (await events(await post(input({ threadId: body.threadId }), { path: '/agents/gate/ag-ui/connect' })))[1];
    equal([messages.length, messages[2].id], [4, 'by-a2a'], 'the thread');
});

await runTests(stopAll);
