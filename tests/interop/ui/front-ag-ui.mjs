// The clients of AG-UI, 1.0 and older, with a live server: they show every text of the agent once; tools, questions,
// state and errors work in both directions; and the same task is visible over A2A.
import { randomUUID } from 'node:crypto';
import { Server } from '../server/node/lib/server.mjs';
import { check, equal, run as runTests, test, until } from '../server/node/lib/tap.mjs';
import { a2a, answerOf, events, input, of, open, peers, post, run, say, stateOf, stopAll, tasksOf, texts, user } from './lib/front.mjs';

const scripts = ['stream', 'status', 'file', 'data', 'ask', 'auth', 'long 50', 'unicode', 'tools', 'parallel-tools', 'state', 'reasoning',
    'interrupt', 'usage', 'subagent', 'files', 'help', 'message hi', 'some other words'];

/** What A2A's clients get for it. */
const answers = new Map();
async function answerTo(text) {
    if (!answers.has(text)) {
        const m = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
        answers.set(text, answerOf(await a2a('SendMessage', { message: m })));
    }
    return answers.get(text);
}

for (const peer of peers) {
    for (const script of scripts) {
        test(`${peer.name}: ${script} is answered as over A2A`, async () => {
            const agent = await open(peer);
            const seen = await say(agent, script);
            equal(texts(agent).join(''), await answerTo(script), 'the answer');
            check(seen.finished && !seen.error, 'it ends well');
            equal(of(agent.messages, 'user').map((m) => m.content), [script], 'the text of the user');
        });
    }

    test(`${peer.name}: parallel tools are one message, their results follow it`, async () => {
        const agent = await open(peer);
        await say(agent, 'parallel-tools');
        equal(agent.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'tool', 'assistant'], 'the messages');
        equal(agent.messages[1].toolCalls.map((c) => [c.function.name, JSON.parse(c.function.arguments)]),
            [['get_weather', { location: 'Oakland' }], ['get_time', { zone: 'America/Los_Angeles', seconds: false }]], 'the calls');
        const [weather, time] = agent.messages[1].toolCalls.map((c) => c.id);
        equal(of(agent.messages, 'tool').map((m) => [m.toolCallId, m.content]), [[time, '{"time": "09:41"}'], [weather, 'Sunny, 72°F']], 'the results');
    });

    test(`${peer.name}: a frontend's tool is run by the frontend, and the task goes on`, async () => {
        const agent = await open(peer);
        const tools = [{ name: 'get_weather', description: 'The weather', parameters: { type: 'object', properties: { location: { type: 'string' } } } }];
        const first = await say(agent, 'client-tool', { tools });
        const [call] = of(agent.messages, 'assistant').flatMap((m) => m.toolCalls ?? []);
        equal([call.function.name, JSON.parse(call.function.arguments)], ['get_weather', { location: 'Oakland' }], 'the call');
        equal(of(agent.messages, 'tool'), [], 'results that were not sent');
        check(!agent.pendingInterrupts?.length, 'it is no interrupt');
        if (peer.current) equal(first.finished.outcome?.pendingToolCallIds, [call.id], 'calls that wait');
        agent.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call.id, content: 'Rain, 50°F' });
        const second = await run(agent, { tools });
        check(!second.failed && second.finished, `run 2: ${second.failed}`);
        check(!second.events.some((e) => e.type.startsWith('TOOL_CALL')), 'the old call is not streamed again');
        equal(texts(agent), ['Your tool says: Rain, 50°F'], 'the answer');
        equal(agent.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant'], 'the messages');
        equal((await tasksOf(agent.threadId)).map(stateOf), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}: a question that is only text is a message, and the next message answers it`, async () => {
        const agent = await open(peer);
        const { finished } = await say(agent, 'ask');
        equal([finished.outcome?.type ?? 'success', texts(agent)], ['success', ['What is your name?']], 'the run');
        check(!agent.pendingInterrupts?.length, 'no interrupt is open');
        await say(agent, 'Ada');
        check(/Hello Ada/.test(texts(agent)[1]), texts(agent)[1]);
        equal((await tasksOf(agent.threadId)).map(stateOf), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}: ag-ui.questions: interrupt makes an interrupt of such a question too`, async () => {
        const agent = await open(peer, { at: 'interrupts' });
        const { finished } = await say(agent, 'ask');
        const [{ id, message }] = finished.outcome.interrupts;
        equal(message, 'What is your name?', 'the question');
        await run(agent, { resume: [{ interruptId: id, status: 'resolved', payload: 'Ada' }] });
        check(/Hello Ada/.test(texts(agent)[1]), texts(agent)[1]);
    });

    test(`${peer.name}: structured input is asked for by an interrupt`, async () => {
        const agent = await open(peer, { agent: 'form' });
        const { finished } = await say(agent, 'hi');
        check(finished.outcome.interrupts[0].message.startsWith('Fill this in.'), 'the question');
    });

    test(`${peer.name}: a request for approval is an interrupt, its answer goes to the task`, async () => {
        for (const [payload, answer] of [[{ approved: true }, /You said yes/], ['yes', /You said yes/], [{ text: 'no' }, /You did not/], [undefined, /You did not/]]) {
            const agent = await open(peer);
            const { finished } = await say(agent, 'interrupt');
            const [{ id, reason, message }] = finished.outcome.interrupts;
            equal([reason, message], ['confirmation', texts(agent)[0]], 'the interrupt');
            equal(Object.keys(finished.outcome.interrupts[0].responseSchema.properties), ['approved', 'arguments', 'reason'], 'the form of the answer');
            equal(texts(agent), ['May I delete the file old.txt? Answer yes or no.'], 'the question');
            const { approval } = finished.outcome.interrupts[0].metadata;
            equal([approval.tool, approval.arguments], ['delete_file', { path: 'old.txt' }], 'what is to be approved');
            const resume = [{ interruptId: id, status: payload === undefined ? 'cancelled' : 'resolved', ...(payload && { payload }) }];
            const second = await run(agent, { resume });
            check(!second.failed && second.finished, `the answer: ${second.failed}`);
            const tasks = await tasksOf(agent.threadId);
            equal(tasks.map(stateOf), ['COMPLETED'], 'one task');
            check(answer.test(texts(agent)[1]), `it says ${texts(agent)[1]}`);
            check(!agent.pendingInterrupts?.length, 'nothing is open any more');
        }
    });

    test(`${peer.name}: credentials are asked for by an interrupt`, async () => {
        const agent = await open(peer);
        const { finished } = await say(agent, 'auth');
        equal(finished.outcome.interrupts[0].reason, 'a2a:auth_required', 'the reason');
        await run(agent, { resume: [{ interruptId: finished.outcome.interrupts[0].id, status: 'resolved', payload: 'here' }] });
        check(/secret: 42/.test(texts(agent)[1]), texts(agent)[1]);
    });

    test(`${peer.name}: a client that forgot the interrupt answers by a message`, async () => {
        const agent = await open(peer);
        await say(agent, 'ask');
        const again = await open(peer, { threadId: agent.threadId, initialMessages: agent.messages });
        await say(again, 'Ada');
        check(/Hello Ada/.test(texts(again)[1]), texts(again)[1]);
        equal((await tasksOf(agent.threadId)).map(stateOf), ['COMPLETED'], 'one task');
    });

    test(`${peer.name}: state comes as a snapshot and deltas`, async () => {
        const agent = await open(peer, { initialState: { recipe: 'none' } });
        const { events: all } = await say(agent, 'state');
        equal(agent.state, { recipe: 'pancakes', servings: 4, steps: ['mix', 'bake'] }, 'the state');
        equal(all.filter((e) => e.type.startsWith('STATE')).map((e) => e.type), ['STATE_SNAPSHOT', 'STATE_DELTA', 'STATE_DELTA'], 'its events');
    });

    test(`${peer.name}: reasoning is a message of its own`, async () => {
        const agent = await open(peer);
        const { events: all } = await say(agent, 'reasoning');
        equal(agent.messages.map((m) => m.role), ['user', 'reasoning', 'assistant'], 'the messages');
        check(/17 is prime/.test(agent.messages[1].content), agent.messages[1].content);
        equal(all.filter((e) => e.type === 'REASONING_START').length, 1, 'spans');
    });

    test(`${peer.name}: usage, subagents, status and files are sent in addition to the answer`, async () => {
        const agent = await open(peer);
        const { finished } = await say(agent, 'usage');
        equal([finished.usage[0].inputTokens, finished.usage[0].outputTokens], [12, 9], 'the usage');
        const helped = await say(agent, 'subagent');
        equal(helped.events.filter((e) => e.type.startsWith('SUBAGENT')).map((e) => e.type), peer.current ? ['SUBAGENT_STARTED', 'SUBAGENT_FINISHED'] : [], 'subagents');
        await say(agent, 'status');
        check(of(agent.messages, 'activity').some((m) => m.content.text === 'Writing the answer'), 'the status is an activity');
        const { events: all } = await say(agent, 'file');
        equal(all.filter((e) => e.type === 'CUSTOM').map((e) => e.value.artifact.parts[0].filename), ['sales.csv', 'dot.png', 'report.pdf'], 'the files');
    });

    test(`${peer.name}: files go to the agent`, async () => {
        const agent = await open(peer);
        const source = { type: 'data', value: 'aGk=', mimeType: 'image/png' };
        agent.addMessage({ id: randomUUID(), role: 'user', content: [{ type: 'text', text: 'files' }, { type: 'image', source, metadata: { filename: 'hi.png' } }] });
        const seen = await run(agent);
        check(!seen.failed, String(seen.failed));
        check(/1\. hi\.png \(image\/png\)/.test(texts(agent)[0]), texts(agent)[0]);
    });

    test(`${peer.name}: words of a working status are shown, and are no part of the answer [R004-08]`, async () => {
        const agent = await open(peer, { agent: 'loud' });
        await say(agent, 'hi');
        equal(texts(agent), ['Hello world!'], 'the answer');
        equal(of(agent.messages, 'activity').map((m) => [m.activityType, m.content.text]), [['a2a-status', 'Processing your greeting...']], 'the progress');
    });

    test(`${peer.name}: an agent that takes back its words is shown with the last ones`, async () => {
        const agent = await open(peer, { agent: 'fickle' });
        const { events: all } = await say(agent, 'hi');
        check(all.some((e) => e.delta === 'Hello'), 'it sent another text before');
        equal(texts(agent), ['Goodbye'], 'the answer');
        equal(agent.messages.map((m) => m.role), ['user', 'assistant'], 'the messages');
    });

    test(`${peer.name}: failures are RUN_ERROR with a code`, async () => {
        for (const [script, code, message] of [['fail', 'failed', /asked to fail/], ['reject', 'rejected', /asked to refuse/], ['break', 'failed', /broke off/]]) {
            const agent = await open(peer);
            const seen = await say(agent, script);
            check(seen.error && !seen.finished, `${script} ends with ${JSON.stringify(seen.finished)}`);
            equal(seen.error.code, code, 'the code');
            check(message.test(seen.error.message), seen.error.message);
        }
    });

    test(`${peer.name}: what is refused before it runs is an HTTP error`, async () => {
        const agent = await open(peer);
        const seen = await run(agent); // without a message
        check(/HTTP 400/.test(seen.failed?.message), String(seen.failed));
        if (peer.current) equal(seen.failed.payload.error.pointer, '/messages', 'the pointer');
    });

    test(`${peer.name}: abortRun cancels the task`, async () => {
        const agent = await open(peer, { at: 'cancel', agent: 'paced' });
        agent.addMessage(user('slow 60'));
        const seen = await run(agent, {}, (e) => { if (e.type === 'TEXT_MESSAGE_CONTENT') agent.abortRun(); });
        check(!seen.finished, 'it did not end by itself');
        const where = { at: 'cancel', agent: 'paced' };
        await until(async () => stateOf((await tasksOf(agent.threadId, where))[0]) === 'CANCELED', 'the task is canceled');
    });

    test(`${peer.name}: several turns are one thread, for A2A one context`, async () => {
        const agent = await open(peer);
        for (const text of ['one', 'tools', 'three']) await say(agent, text);
        equal(texts(agent).map((t) => t.split('\n')[0]), ['You said: one', 'It is sunny in Oakland, 72°F.', 'You said: three'], 'the answers');
        const tasks = await tasksOf(agent.threadId);
        equal(tasks.map(stateOf), ['COMPLETED', 'COMPLETED', 'COMPLETED'], 'the tasks');
        equal(tasks[0].history[0].parts.map((p) => p.text), ['three'], 'only what is new is sent');
    });
}

// ---- what clients leave to the wire -----------------------------------------------------------------------------------------

const asks = async () => {
    const first = input({ messages: [user('interrupt')] });
    const all = await events(await post(first));
    return { threadId: first.threadId, interrupt: all.at(-1).outcome.interrupts[0], question: all.find((e) => e.delta).delta };
};

test('an answer that comes twice is harmless', async () => {
    const { threadId, interrupt } = await asks();
    const answer = { threadId, resume: [{ interruptId: interrupt.id, status: 'resolved', payload: 'yes' }] };
    const first = await events(await post(input(answer)));
    check(first.map((e) => e.delta ?? '').join('').startsWith('You said yes.'), 'it goes on');
    const response = await post(input(answer));
    equal(response.headers.get('x-dragoman-ignored'), 'resume[0]', 'the header');
    equal((await events(response)).map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED'], 'the second time');
    equal((await tasksOf(threadId)).map(stateOf), ['COMPLETED'], 'one task');
});

test('an answer to an unknown interrupt is ignored, the message is handled', async () => {
    const resume = [{ interruptId: 'nobody', status: 'resolved', payload: 'yes' }];
    const response = await post(input({ messages: [user('hi')], resume }));
    equal(response.headers.get('x-dragoman-ignored'), 'resume[0]', 'the header');
    check((await events(response)).at(-1).type === 'RUN_FINISHED', 'it runs');
});

test('somebody else\'s question cannot be answered from another thread', async () => {
    const { threadId, interrupt } = await asks();
    const resume = [{ interruptId: interrupt.id, status: 'resolved', payload: 'yes' }];
    equal((await events(await post(input({ resume })))).map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED'], 'the events');
    equal((await tasksOf(threadId)).map(stateOf), ['INPUT_REQUIRED'], 'the task');
});

test('a question that is asked twice has two names', async () => {
    const first = input({ messages: [user('ask')] }), at = 'interrupts';
    const [one] = (await events(await post(first, { at }))).at(-1).outcome.interrupts;
    const nothing = { threadId: first.threadId, resume: [{ interruptId: one.id, status: 'resolved', payload: ' ' }] };
    const [two] = (await events(await post(input(nothing), { at }))).at(-1).outcome.interrupts;
    check(one.id !== two.id, `both are ${one.id}`);
    const again = await events(await post(input({ ...nothing, resume: [{ ...nothing.resume[0], payload: 'Eve' }] }), { at }));
    equal(again.at(-1).outcome.interrupts.map((i) => i.id), [two.id], 'the first answer does not fit the second question');
    const last = await events(await post(input({ threadId: first.threadId, resume: [{ interruptId: two.id, status: 'resolved', payload: 'Ada' }] }), { at }));
    check(last.map((e) => e.delta ?? '').join('').startsWith('Hello Ada'), 'the answer');
});

test('a question that is only text is the same for every reader: attached, behind a cursor, connected, and with nothing new', async () => {
    const body = input({ messages: [user('ask')] });
    const live = await events(await post(body));
    const question = live.find((e) => e.delta).delta;
    const asked = [...body.messages, { id: live.find((e) => e.delta).messageId, role: 'assistant', content: question }];
    const readers = {
        attached: await post(body),
        'behind a cursor': await post(body, { headers: { 'Last-Event-ID': '1' } }),
        connected: await post(input({ threadId: body.threadId }), { path: '/ag-ui/connect' }),
        'with nothing new': await post(input({ threadId: body.threadId, messages: asked })),
    };
    for (const [name, response] of Object.entries(readers)) {
        const all = await events(response);
        equal([all.at(-1).type, all.at(-1).outcome], ['RUN_FINISHED', live.at(-1).outcome], name);
    }
    equal(live.at(-1).outcome, undefined, 'the outcome');
    const answer = await events(await post(input({ threadId: body.threadId, messages: [...asked, user('Ada')] })));
    check(answer.map((e) => e.delta ?? '').join('').startsWith('Hello Ada'), 'the answer');
});

test('a request with nothing new repeats the question', async () => {
    const { threadId, interrupt, question } = await asks();
    const all = await events(await post(input({ threadId, messages: [user('interrupt'), { id: 'a', role: 'assistant', content: question }] })));
    equal(all.map((e) => e.type), ['RUN_STARTED', 'RUN_FINISHED'], 'the events');
    equal(all[1].outcome.interrupts, [interrupt], 'the question');
});

test('a dismissed approval and something new: the call is not approved, and the message reaches the task', async () => {
    const { threadId, interrupt } = await asks();
    const all = await events(await post(input({ threadId, messages: [user('hi')], resume: [{ interruptId: interrupt.id, status: 'cancelled' }] })));
    equal(all.at(-1).outcome, undefined, 'the outcome');
    equal((await tasksOf(threadId)).map(stateOf).sort(), ['COMPLETED'], 'the tasks');
    check(all.map((e) => (e.type === 'TEXT_MESSAGE_CONTENT' ? e.delta : '')).join('').startsWith('You did not'), 'it was approved');
});

test('results go to the thread they come from, also when another waits for a call of that id', async () => {
    const path = '/agents/caller/ag-ui';
    const threads = [input({ messages: [user('hi')] }), input({ messages: [user('hi')] })];
    for (const body of threads) equal((await events(await post(body, { path }))).at(-1).outcome.pendingToolCallIds, ['call_0'], 'calls that wait');
    for (const { threadId, messages } of threads) {
        const call = { id: 'a', role: 'assistant', toolCalls: [{ id: 'call_0', type: 'function', function: { name: 'f', arguments: '{}' } }] };
        await events(await post(input({ threadId, messages: [...messages, call, { id: 't', role: 'tool', toolCallId: 'call_0', content: threadId }] }), { path }));
        const [task, ...others] = await tasksOf(threadId, { agent: 'caller' });
        check(!others.length && JSON.stringify(task.history.at(-1)).includes(threadId), `the thread has ${JSON.stringify(task.history)}`);
    }
});

test('peers of before 1.0 get nothing that is newer', async () => {
    const old = (text, more) => ({ ...input({ messages: [user(text)], ...more }), protocolVersion: undefined });
    const pending = await events(await post(old('client-tool', { tools: [{ name: 'get_weather', description: '' }] })));
    equal(pending.at(-1).outcome, undefined, 'the outcome');
    check(!(await events(await post(old('subagent')))).some((e) => e.type.startsWith('SUBAGENT')), 'no subagents');
    const versioned = await post({ ...old('hi'), protocolVersion: '2.0' });
    equal([versioned.status, (await versioned.json()).error.pointer], [400, '/protocolVersion'], 'a foreign major');
    equal((await post({ ...old('hi'), protocolVersion: '1.3' })).status, 200, 'a newer minor');
});

test('what the application sends along reaches the agent', async () => {
    const more = { state: { a: 1 }, context: [{ description: 'd', value: 'v' }], forwardedProps: { model: 'x' }, parentRunId: 'p' };
    const tools = [{ name: 't', description: 'd', parameters: { type: 'object' } }];
    const body = input({ messages: [{ id: 's', role: 'system', content: 'Be brief.' }, user('hi')], tools, ...more });
    const all = await events(await post(body, { path: '/agents/mirror/ag-ui' }));
    equal(all[0].parentRunId, 'p', 'the parent');
    const { message, metadata } = JSON.parse(all.map((e) => e.delta ?? '').join(''));
    equal([message.messageId, message.contextId, message.parts], [body.messages[1].id, body.threadId, [{ text: 'hi' }]], 'the message');
    const got = Object.fromEntries(['state', 'context', 'forwarded_props', 'tools', 'instructions'].map((k) => [k, metadata[`dragoman:${k}`]]));
    equal(got, { state: more.state, context: more.context, forwarded_props: more.forwardedProps, tools, instructions: 'Be brief.' }, 'the metadata');
});

test('a run that the server ends has an end', async () => {
    const s = await new Server({ drain_s: 0, agents: [{ id: 'demo', type: 'demo' }] }).start();
    const response = await fetch(`${s.url}/ag-ui`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(input({ messages: [user('slow 100')] })) });
    const ends = s.stop();
    const all = await events(response);
    equal(all.at(-1).type, 'RUN_ERROR', 'the last event');
    await ends;
});

await runTests(stopAll);
