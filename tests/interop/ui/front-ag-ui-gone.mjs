// Clients that leave, at every event: the task ends or waits, it is never stuck; those who only watch leave it alone.
import { connect } from 'node:net';
import { check, equal, run as runTests, test, until } from '../server/node/lib/tap.mjs';
import { a2a, events, gated, input, post, server, stateOf, stopAll, tasksOf, user } from './lib/front.mjs';

const isAtRest = (task) => !['WORKING', 'SUBMITTED'].includes(stateOf(task));

/** Posts it and leaves after n frames, with a FIN or a reset; gives how many frames came. */
function leave(url, path, body, n, reset) {
    return new Promise((done, fail) => {
        const text = JSON.stringify(body);
        const socket = connect(new URL(url).port, '127.0.0.1');
        let got = '';
        const frames = () => got.split('\ndata: ').length - 1;
        const go = () => { if (reset) socket.resetAndDestroy(); else socket.destroy(); };
        socket.on('connect', () => {
            socket.write(`POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
                () => { if (!n) go(); });
        });
        socket.on('data', (bytes) => { got += bytes; if (n && frames() >= n) go(); });
        socket.on('close', () => done(frames()));
        socket.on('error', fail);
        socket.setTimeout(30_000, () => fail(new Error('no byte for 30 s')));
    });
}

for (const script of ['stream', 'parallel-tools', 'reasoning', 'state', 'subagent', 'interrupt', 'client-tool', 'break', 'status']) {
    test(`${script}: a client that leaves after any number of events leaves no task behind`, async () => {
        const { url } = await server('cancel');
        const where = { at: 'cancel', agent: 'paced' };
        const count = (await events(await post(input({ messages: [user(script)] }), { at: 'cancel' }))).length;
        const ids = [];
        const one = async (n) => {
            const body = input({ messages: [user(script)] });
            ids.push(body.threadId);
            await leave(url, '/agents/paced/ag-ui', body, n, n % 2);
        };
        await Promise.all(Array.from({ length: count }, (_, n) => one(n)));
        for (const id of ids) await until(async () => (await tasksOf(id, where)).every(isAtRest), `the task of ${id} ends`);
    });
}

test('a client that leaves in the middle has its task canceled, which 1.0 calls an outcome [R000-18]', async () => {
    const { url } = await server('cancel');
    const body = input({ messages: [user('slow 100')] });
    await leave(url, '/agents/paced/ag-ui', body, 4, true);
    await until(async () => stateOf((await tasksOf(body.threadId, { at: 'cancel', agent: 'paced' }))[0]) === 'CANCELED', 'it is canceled');
    const again = await events(await post({ ...body, messages: [] }, { at: 'cancel', path: '/agents/paced/ag-ui' }));
    equal(again.at(-1).outcome, { type: 'cancelled' }, 'a client that reconnects gets the outcome');
    const old = await events(await post({ ...body, protocolVersion: undefined }, { at: 'cancel', path: '/agents/paced/ag-ui' }));
    equal([old.at(-1).type, old.at(-1).code], ['RUN_ERROR', 'cancelled'], 'and one of before 1.0 in its words');
});

test('those who come to watch, and leave, leave the run alone', async () => {
    const { url } = await server('cancel');
    const { text, go } = gated();
    const body = input({ messages: [user(text)] });
    const running = post(body, { at: 'cancel', path: '/agents/gate/ag-ui' });
    await until(async () => (await tasksOf(body.threadId, { at: 'cancel', agent: 'gate' })).length, 'the task');
    for (let n = 0; n < 4; n++) {
        await leave(url, '/agents/gate/ag-ui', body, n, n % 2);
        await leave(url, '/agents/gate/ag-ui/connect', input({ threadId: body.threadId }), n, n % 2);
    }
    go();
    const all = await events(await running);
    equal(all.map((e) => e.delta ?? '').join('').split(/\s+/).filter(Boolean), ['one', 'two', 'three'], 'the answer');
    equal(all.at(-1).type, 'RUN_FINISHED', 'the end');
});

test('somebody who watches keeps a run alive whose client left', async () => {
    const { url } = await server('cancel');
    const where = { at: 'cancel', agent: 'gate' };
    const { text, go } = gated();
    const body = input({ messages: [user(text)] });
    const abort = new AbortController();
    const began = await post(body, { at: 'cancel', path: '/agents/gate/ag-ui', signal: abort.signal });
    const watching = await post(input({ threadId: body.threadId }), { at: 'cancel', path: '/agents/gate/ag-ui/connect' });
    check(began.ok && watching.ok && url, 'both get the stream');
    abort.abort();
    await began.text().catch(() => {});
    await new Promise((done) => setTimeout(done, 300)); // a run that should not end has time to
    go();
    const all = await events(watching);
    equal(all.at(-1).type, 'RUN_FINISHED', 'the end');
    equal((await tasksOf(body.threadId, where)).map(stateOf), ['COMPLETED'], 'the task');
});

test('nothing is left at work', async () => {
    for (const agent of ['paced', 'gate', 'demo'])
        await until(async () => !(await a2a('ListTasks', { status: 'TASK_STATE_WORKING' }, { at: 'cancel', agent })).tasks.length, `tasks of ${agent} end`);
});

await runTests(stopAll);
