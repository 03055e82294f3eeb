// The official JavaScript clients against a live server: every client on every transport it has does
// everything it can do.
import { randomUUID } from 'node:crypto';
import { clients } from './lib/clients.mjs';
import { Server } from './lib/server.mjs';
import { check, equal, failure, run, test, until } from './lib/tap.mjs';
import { collect, fold, gated, isOver, message, server, stateOf, stopAll, textOf, versions } from './lib/world.mjs';

/** A test for every client; `wanted` leaves some out. What they streamed is looked at afterwards. */
function each(name, fn, wanted = () => true) {
    for (const kind of clients.filter(wanted)) {
        test(`${kind.name}: ${name}`, async () => {
            await fn(kind);
            kind.checkStreams();
        });
    }
}

const at = async (kind, agent, options) => kind.open(`${(await server(kind, 'open')).url}${agent ? `/agents/${agent}/` : '/'}`, options);
const known = async (kind, token, more) => kind.open((await server(kind, 'closed')).url, { token: token && `${token}-token`, ...more });

// ---- cards -----------------------------------------------------------------------------------------------

each('the card is read', async (kind) => {
    const card = await (await at(kind)).card();
    equal([card.name, card.capabilities.streaming, card.skills.length > 0], ['Demo', true, true], 'name, streams, skills');
});

each('an agent below /agents/ has its own card and its own tasks', async (kind) => {
    const hello = await at(kind, 'hello');
    check((await hello.card()).name !== 'Demo', 'the card of another agent');
    check((await hello.send(message('hi'))).message, 'hello answers with a Message');
    const bench = await at(kind, 'bench');
    const { task } = await bench.send(message('chunks 2'));
    equal((await bench.get(task.id)).id, task.id, 'its task');
    for (const other of [hello, await at(kind)])
        equal((await failure(other.get(task.id))).name, 'TaskNotFoundError', "another agent's view");
});

// ---- sending ---------------------------------------------------------------------------------------------

each('a Message answers', async (kind) => {
    const c = await at(kind, 'hello');
    const { message: m } = await c.send(message('hi'));
    check(m.role === 'ROLE_AGENT' && m.contextId && textOf(m), () => `no answer: ${JSON.stringify(m)}`);
    const events = await collect(c.stream(message('hi')));
    equal([events.length, textOf(events[0].message)], [1, textOf(m)], 'the stream of it');
});

each('a Task answers, waited for [R002-02]', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('stream'));
    equal(task.status.state, 'TASK_STATE_COMPLETED', 'state');
    equal(textOf(task.artifacts[0]), textOf(task.status.message), 'text of artifact and status');
    equal((await c.get(task.id)).status, task.status, 'status later');
});

each('a Task answers, not waited for', async (kind) => {
    const c = await at(kind, 'gate');
    const { message: m, go } = gated();
    const { task } = await c.send(m, { returnImmediately: true });
    check(!isOver(task.status.state), `it is over: ${task.status.state}`);
    go();
    const done = await until(async () => {
        const now = await c.get(task.id);
        return isOver(now.status.state) && now;
    }, 'the task ends');
    equal([done.status.state, textOf(done.status.message)], ['TASK_STATE_COMPLETED', 'one \ntwo \nthree'], 'its end');
});

each('a context goes on', async (kind) => {
    const c = await at(kind);
    const contextId = randomUUID();
    const { task } = await c.send(message('echo', { contextId }));
    const next = (await c.send(message('echo', { contextId, referenceTaskIds: [task.id] }))).task;
    equal([task.contextId, next.contextId, task.id !== next.id], [contextId, contextId, true], 'contexts');
});

each('one messageId sent twice is one task', async (kind) => {
    const c = await at(kind);
    const m = message('stream', { contextId: randomUUID() });
    equal((await c.send(m)).task.id, (await c.send(m)).task.id, 'task of the second');
});

// ---- streams ---------------------------------------------------------------------------------------------

each('a stream begins with the task and ends with its end [R002-02]', async (kind) => {
    const c = await at(kind);
    const m = message('stream');
    const events = await collect(c.stream(m));
    const { task } = events[0];
    equal(task.history.map((h) => h.messageId), [m.messageId], 'history of the first');
    equal(events.map(stateOf).filter(Boolean), ['SUBMITTED', 'WORKING', 'COMPLETED'], 'states');
    equal(stateOf(events.at(-1)), 'COMPLETED', 'the last');
    const last = events.filter((e) => e.artifactUpdate).map((e) => Boolean(e.artifactUpdate.lastChunk));
    equal([last.indexOf(true), last.length > 10], [last.length - 1, true], 'last chunks');
    for (const { statusUpdate, artifactUpdate } of events.slice(1)) {
        const { taskId, contextId } = statusUpdate ?? artifactUpdate;
        equal([taskId, contextId], [task.id, task.contextId], 'ids of a later event');
    }
});

each('subscribing in the middle of a stream [R002-02]', async (kind) => {
    const c = await at(kind, 'gate');
    const { message: m, go } = gated();
    const first = c.stream(m)[Symbol.asyncIterator]();
    const head = [];
    while (!head.at(-1)?.artifactUpdate) head.push((await first.next()).value);
    const second = c.subscribe(head[0].task.id)[Symbol.asyncIterator]();
    const snapshot = (await second.next()).value;
    equal([snapshot.task.id, textOf(snapshot.task.artifacts[0])], [head[0].task.id, 'one '], 'the snapshot');
    go();
    const [one, two] = await Promise.all([collect({ [Symbol.asyncIterator]: () => first }), collect({ [Symbol.asyncIterator]: () => second })]);
    equal(two, one, 'what follows, of both');
    equal([fold(kind, [...head, ...one]).text, fold(kind, [snapshot, ...two]).text], Array(2).fill('one \ntwo \nthree'), 'text of both');
});

each('a dropped stream is picked up again', async (kind) => {
    const c = await at(kind, 'gate');
    const { message: m, go } = gated();
    const cut = new AbortController();
    let id;
    await failure((async () => {
        for await (const event of c.stream(m, { signal: cut.signal })) {
            id ??= event.task.id;
            if (event.artifactUpdate) cut.abort();
        }
        throw new Error('the stream did not mind');
    })());
    check(!isOver((await c.get(id)).status.state), 'the task goes on without its reader');
    const again = c.subscribe(id)[Symbol.asyncIterator]();
    const events = [(await again.next()).value];
    go();
    events.push(...await collect({ [Symbol.asyncIterator]: () => again }));
    const { status, text } = fold(kind, events);
    equal([status.state, text], ['TASK_STATE_COMPLETED', 'one \ntwo \nthree'], 'end and text');
});

each('canceling ends the task and its streams [R002-02]', async (kind) => {
    const c = await at(kind, 'bench');
    const events = [];
    let canceled;
    for await (const event of c.stream(message('hold 600'))) {
        events.push(event);
        if (stateOf(event) === 'WORKING') canceled = c.cancel(events[0].task.id);
    }
    equal([(await canceled).status.state, stateOf(events.at(-1))], ['TASK_STATE_CANCELED', 'CANCELED'], 'states');
    equal((await c.get(events[0].task.id)).status.state, 'TASK_STATE_CANCELED', 'state later');
});

// ---- reading ---------------------------------------------------------------------------------------------

each('history is as long as asked for', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('ask'));
    await c.send(message('Ann', { taskId: task.id, contextId: task.contextId }));
    const all = (await c.get(task.id)).history;
    check(all.length >= 3, `history: ${JSON.stringify(all)}`);
    equal((await c.get(task.id, 1)).history, all.slice(-1), 'the last one');
    equal((await c.get(task.id, 2)).history, all.slice(-2), 'the last two');
    if (kind.version === '1.0') equal((await c.get(task.id, 0)).history ?? [], [], 'none');
});

each('lists: filters and pages', async (kind) => {
    const c = await at(kind);
    const contextId = randomUUID();
    const ids = [];
    for (const text of ['stream', 'fail', 'stream']) ids.push((await c.send(message(text, { contextId }))).task.id);
    const all = await c.list({ contextId });
    equal([all.tasks.map((t) => t.id).sort(), all.totalSize ?? 0, all.nextPageToken ?? ''], [[...ids].sort(), 3, ''], 'all of the context');
    check(all.tasks.every((t) => !t.artifacts?.length), 'artifacts that were not requested');
    const failed = await c.list({ contextId, status: 'TASK_STATE_FAILED' });
    equal(failed.tasks.map((t) => t.id), [ids[1]], 'those that failed');
    const pages = [];
    for (let pageToken = ''; ;) {
        const page = await c.list({ contextId, pageSize: 1, includeArtifacts: true, ...(pageToken && { pageToken }) });
        pages.push(...page.tasks.map((t) => t.id));
        pageToken = page.nextPageToken;
        if (!pageToken) break;
    }
    equal(pages, all.tasks.map((t) => t.id), 'pages of one');
}, (kind) => kind.version === '1.0');

// ---- conversations -----------------------------------------------------------------------------------------

for (const [script, state, reply, words] of [['ask', 'INPUT_REQUIRED', 'Ann', 'Ann'], ['auth', 'AUTH_REQUIRED', 'done', '42']]) {
    each(`${script}: the task asks and goes on with the answer`, async (kind) => {
        const c = await at(kind);
        const { task } = await c.send(message(script));
        equal(task.status.state, `TASK_STATE_${state}`, 'state');
        check(textOf(task.status.message), 'it says what it wants');
        const done = (await c.send(message(reply, { taskId: task.id, contextId: task.contextId }))).task;
        equal([done.id, done.status.state], [task.id, 'TASK_STATE_COMPLETED'], 'the end');
        check(textOf(done.status.message).includes(words), textOf(done.status.message));
    });
}

each('ask, streamed: the stream of the answer begins with the task', async (kind) => {
    const c = await at(kind);
    const asked = await collect(c.stream(message('ask')));
    equal(stateOf(asked.at(-1)), 'INPUT_REQUIRED', 'the last of the first stream');
    const { id, contextId } = asked[0].task;
    const events = await collect(c.stream(message('Ann', { taskId: id, contextId })));
    const { status, text } = fold(kind, events);
    equal([events[0].task.id, status.state, text], [id, 'TASK_STATE_COMPLETED', textOf(status.message)], 'task, state, text');
});

each('a subscriber of a waiting task sees the next turn', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('ask'));
    const reader = c.subscribe(task.id)[Symbol.asyncIterator]();
    equal(stateOf((await reader.next()).value), 'INPUT_REQUIRED', 'the first event');
    await c.send(message('Ann', { taskId: task.id, contextId: task.contextId }));
    const rest = await collect({ [Symbol.asyncIterator]: () => reader });
    equal(stateOf(rest.at(-1)), 'COMPLETED', 'the last event');
});

each('files and data arrive as they are', async (kind) => {
    const c = await at(kind);
    const files = (await c.send(message('file'))).task.artifacts.flatMap((a) => a.parts).filter((p) => p.raw || p.url);
    equal(files.map((p) => p.mediaType), ['text/csv', 'image/png', 'application/pdf'], 'types');
    if (!kind.forgets) equal(files.map((p) => p.filename), ['sales.csv', 'dot.png', 'report.pdf'], 'names');
    equal(Buffer.from(files[0].raw, 'base64').toString(), 'month,sales\nJanuary,100\nFebruary,115\n', 'bytes');
    equal(files[2].url, 'https://example.com/report.pdf', 'link');
    const data = (await c.send(message('data'))).task.artifacts.flatMap((a) => a.parts).find((p) => p.data).data;
    equal(data, { city: 'Oakland', temperature: { value: 72, unit: '°F' }, forecast: ['sunny', 'sunny', 'fog'], sunrise: null, chance_of_rain: 0.05 }, 'data');
});

each('files and data are taken', async (kind) => {
    const c = await at(kind);
    const parts = [{ text: 'stream' }, { raw: 'aGk=', ...(!kind.forgets && { filename: 'a.txt' }), mediaType: 'text/plain' }, { data: { n: 1, list: [null, 2.5] } }];
    const { task } = await c.send(message('', { parts }));
    equal((await c.get(task.id)).history[0].parts, parts, 'parts in the history');
});

// ---- errors ------------------------------------------------------------------------------------------------

/** Every request about the task is answered with not found for this client. */
async function notFound(kind, c, id, m) {
    const calls = { get: () => c.get(id), cancel: () => c.cancel(id), subscribe: () => c.subscribe(id), send: () => c.send(m) };
    for (const [what, call] of Object.entries(calls)) equal((await failure(call())).name, 'TaskNotFoundError', what);
    const error = await failure(c.stream(m)); // 0.3's SDK has the code in its words only
    if (kind.version === '0.3' && kind.rpc) check(/Task not found.*-32001/.test(error.message) || error.name === 'TaskNotFoundError', () => error.message);
    else equal(error.name, 'TaskNotFoundError', 'stream');
}

each('what does not exist is TaskNotFound', async (kind) => {
    const id = randomUUID();
    const c = await at(kind);
    await notFound(kind, c, id, message('stream', { taskId: id }));
});

each('what is over is not canceled and takes no message', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('stream'));
    equal((await failure(c.cancel(task.id))).name, 'TaskNotCancelableError', 'cancel');
    equal((await failure(c.send(message('more', { taskId: task.id })))).name, 'UnsupportedOperationError', 'send');
    if (kind.version === '1.0') equal((await failure(c.subscribe(task.id))).name, 'UnsupportedOperationError', 'subscribe');
    else equal((await collect(c.subscribe(task.id))).map(stateOf), ['COMPLETED'], 'subscribe: the task, once');
});

each('push notifications are not offered', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('stream'));
    equal((await failure(c.setPush(task.id))).name, 'PushNotificationNotSupportedError', 'error');
});

each('a message without parts or with a wrong context is refused', async (kind) => {
    const c = await at(kind);
    const { task } = await c.send(message('ask'));
    for (const bad of [message('', { parts: [] }), message('Ann', { taskId: task.id, contextId: randomUUID() })]) {
        const error = await failure(c.send(bad));
        check(error.envelopeCode === -32602 || error.statusCode === 400 || /RequestMalformed|-32602|Error code: 400/.test(`${error.name} ${error.message}`), () => `${error.name}: ${error.message} ${JSON.stringify(error)}`);
    }
});

each('an extended card that is not there', async (kind) => {
    const error = await failure((await at(kind)).extendedCard());
    check(/UnsupportedOperation|ExtendedCardNotConfigured|ExtendedAgentCardNotConfigured/.test(error.name), `${error.name}: ${error.message}`);
});

// ---- who is who ----------------------------------------------------------------------------------------------

each('the extended card is for callers with a token', async (kind) => {
    equal((await (await known(kind, 'alice')).card()).description, 'For those who are known', 'description');
    const error = await failure((await known(kind)).extendedCard());
    check(/401|uthenti|nauthorized|token/.test(`${error.name} ${error.message}`), `${error.name}: ${error.message}`);
});

each('without a token nothing goes', async (kind) => {
    const c = await known(kind);
    for (const call of [() => c.send(message('stream')), () => c.get(randomUUID()), () => c.stream(message('stream'))]) {
        const error = await failure(call());
        check(/401|uthenti|nauthorized|token/.test(`${error.name} ${error.message}`), `${error.name}: ${error.message}`);
    }
});

each('two callers: what is not yours does not exist', async (kind) => {
    const [alice, bob] = [await known(kind, 'alice'), await known(kind, 'bob')];
    const contextId = randomUUID();
    const { task } = await alice.send(message('ask', { contextId }));
    const { id } = task;
    await notFound(kind, bob, id, message('Bob', { taskId: id, contextId }));
    if (kind.version === '1.0') {
        equal((await alice.list({ contextId })).tasks.map((t) => t.id), [id], "alice's list");
        equal((await bob.list({ contextId })).tasks ?? [], [], "bob's list");
    }
    equal((await alice.get(id)).status.state, 'TASK_STATE_INPUT_REQUIRED', "alice's task");
    equal((await alice.cancel(id)).status.state, 'TASK_STATE_CANCELED', 'and she may cancel it');
});

each('a tenant is one of its own', async (kind) => {
    const carol = await known(kind, 'carol', { tenant: 'acme' });
    const { task } = await carol.send(message('stream'));
    equal((await carol.get(task.id)).id, task.id, "carol's task");
    equal((await collect(carol.stream(message('stream')))).length > 3, true, "carol's stream");
    if (kind.version === '1.0') check((await carol.list({})).tasks.some((t) => t.id === task.id), "carol's list");
    const alice = await known(kind, 'alice', { tenant: 'acme' });
    equal((await failure(alice.get(task.id))).name, 'TaskNotFoundError', "a caller of another tenant");
}, (kind) => kind.version === '1.0');

// ---- what is kept ----------------------------------------------------------------------------------------------

for (const kind of clients) {
    test(`${kind.name}: a task survives its server`, async () => {
        const s = await new Server({ agents: [{ id: 'demo', type: 'demo', settings: { pace: 0 } }], ...versions(kind) }, 'sqlite:tasks.db').start();
        let c = await kind.open(s.url);
        const { task } = await c.send(message('stream'));
        const asked = (await c.send(message('ask'))).task;
        await s.kill();
        await s.restart();
        c = await kind.open(s.url);
        equal(await c.get(task.id), task, 'the finished task');
        const done = (await c.send(message('Ann', { taskId: asked.id, contextId: asked.contextId }))).task;
        equal([done.id, done.status.state], [asked.id, 'TASK_STATE_COMPLETED'], 'the one that waited');
        await s.stop();
    });
}

// ---- every script of the demo -------------------------------------------------------------------------------------

const scripts = ['stream', 'status', 'file', 'data', 'ask', 'auth', 'fail', 'break', 'reject', 'long 200', 'unicode', 'slow 3', 'so many words',
    'tools', 'parallel-tools', 'client-tool', 'state', 'reasoning', 'interrupt', 'usage', 'subagent', 'files'];
for (const script of scripts) {
    each(`demo ${script}: the answer, the stream and the task later say the same`, async (kind) => {
        const c = await at(kind);
        const events = await collect(c.stream(message(script)), 'AUTH_REQUIRED');
        const streamed = fold(kind, events);
        const { task } = await c.send(message(script));
        const later = await c.get(streamed.id);
        const texts = (t) => (t.artifacts ?? []).map(textOf).join('');
        equal([streamed.text, texts(later)], [texts(task), texts(task)], 'texts of the artifacts: streamed, later');
        equal([streamed.status.state, later.status.state], [task.status.state, task.status.state], 'states');
        equal([textOf(streamed.status.message), textOf(later.status.message)], Array(2).fill(textOf(task.status.message)), 'last words');
        if (task.status.state === 'TASK_STATE_COMPLETED') equal(textOf(task.status.message), texts(task), 'last words and text');
    });
}
for (const script of ['help', 'message with words']) {
    each(`demo ${script}: the Message and its stream say the same`, async (kind) => {
        const c = await at(kind);
        const events = await collect(c.stream(message(script)));
        equal([events.length, textOf(events[0].message)], [1, textOf((await c.send(message(script))).message)], 'the stream');
    });
}

// ---- a language model --------------------------------------------------------------------------------------

const dataOf = (task, member) => task.status.message.parts.map((p) => p.data).find((d) => d && member in d);
const reply = async (c, task, ...parts) => (await c.send(message('', { parts, taskId: task.id, contextId: task.contextId }))).task;

each('llm: a call that needs approval is data, and so is the decision', async (kind) => {
    const c = await at(kind, 'assistant');
    for (const [more, words] of [[{ approved: true }, /old\.txt/], [{ approved: true, arguments: { path: 'new.txt' } }, /new\.txt/], [{ approved: false, reason: 'mine' }]]) {
        const { task } = await c.send(message('call remove {"path": "old.txt"}'));
        const asked = dataOf(task, 'tool');
        equal([asked.type, asked.tool, asked.arguments], ['approval-request', 'remove', { path: 'old.txt' }], 'the request');
        const done = await reply(c, task, { data: { type: 'approval', id: asked.id, ...more } });
        equal([done.id, stateOf({ task: done })], [task.id, 'COMPLETED'], 'the end');
        const text = textOf(done.status.message);
        check(words ? words.test(text) : !/"path"/.test(text), text);
    }
});

each('llm: a question of the model, and its answer', async (kind) => {
    const c = await at(kind, 'assistant');
    const { task } = await c.send(message('ask Which colour?'));
    equal([stateOf({ task }), textOf(task.status.message)], ['INPUT_REQUIRED', 'Which colour?'], 'the question');
    const done = await reply(c, task, { text: 'green' });
    check(/green/.test(textOf(done.status.message)), textOf(done.status.message));
});

each("llm: the caller's tool is data, and so are its call and its result", async (kind) => {
    const c = await at(kind, 'assistant');
    const tools = [{ name: 'weather', description: 'the weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } }];
    const { task } = await c.send(message('', { parts: [{ text: 'call weather {"city": "Oslo"}' }, { data: { tools } }] }));
    const [call] = dataOf(task, 'tool_calls').tool_calls;
    equal([call.name, call.arguments], ['weather', { city: 'Oslo' }], 'the call');
    const done = await reply(c, task, { data: { tool_results: [{ call_id: call.call_id, output: 'snow' }] } });
    equal(stateOf({ task: done }), 'COMPLETED', 'the end');
    check(/snow/.test(textOf(done.status.message)), textOf(done.status.message));
});

each('llm: a message while the model writes reaches it, and its answer is in the stream once', async (kind) => {
    const c = await at(kind, 'assistant');
    const events = [];
    let sent;
    for await (const event of c.stream(message(`slow 60 ${'word '.repeat(80)}end`))) {
        events.push(event);
        const { id: taskId, contextId } = events[0].task;
        if (event.artifactUpdate) sent ??= c.send(message('echo steered', { taskId, contextId }));
    }
    await sent;
    equal(stateOf(events.at(-1)), 'COMPLETED', 'the end');
    const text = events.map((e) => textOf(e.artifactUpdate?.artifact)).join('');
    check(/end/.test(text) && text.split('steered').length === 2, text);
});

await run(stopAll);
