// The checkpointer when the store fails, and with values that are too large: nothing stays open on the server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as checkpoint from '@langchain/langgraph-checkpoint';
import { createSaverClass } from '../../../js/checkpointer.js';
import { Store } from './lib.mjs';

const DragomanSaver = createSaverClass(checkpoint);

/** A saver on a stand-in; `faults` are thrown by the next requests of a method. */
function saverOn(store, { maxLineBytes = 64 << 10, faults = {} } = {}) {
    const calls = [];
    const request = async (method, params) => {
        calls.push(method);
        if (faults[method]?.length) throw faults[method].shift();
        return JSON.parse(JSON.stringify(store.handle(method, JSON.parse(JSON.stringify(params)))));
    };
    return Object.assign(new DragomanSaver({ maxLineBytes, request }), { calls });
}

let count = 0;
const put = (saver, big, thread = 't') => {
    const value = { ...checkpoint.emptyCheckpoint(), id: checkpoint.uuid6(++count), channel_values: { big }, channel_versions: { big: 1 } };
    return saver.put({ configurable: { thread_id: thread } }, value, { source: 'loop', step: count, parents: {} }, { big: 1 });
};
const fault = (code, message) => Object.assign(new Error(message), { code });

test('a value over 64 MiB is refused with its size, before it is sent', async () => {
    const saver = saverOn(new Store());
    await assert.rejects(put(saver, 'x'.repeat(65 << 20)), /the checkpoint has \d+ bytes; the limit is 67108864/);
    const config = { configurable: { thread_id: 't', checkpoint_id: 'c' } };
    await assert.rejects(saver.putWrites(config, [['big', 'x'.repeat(65 << 20)]], 'task'), /the value of big has \d+ bytes/);
    assert.deepEqual(saver.calls, []);
});

test('uploads that fail are closed: the next ones have room', async () => {
    const store = new Store(), refused = () => fault(-32602, 'no such thread');
    const saver = saverOn(store, { faults: { 'checkpoint/put': Array.from({ length: 9 }, refused), 'blob/write': [] } });
    for (let i = 0; i < 9; i++) await assert.rejects(put(saver, 'x'.repeat(100000)), /no such thread/);
    assert.equal(store.blobs.size, 0, 'open blobs');
    const halfway = saverOn(store, { faults: { 'blob/close': [fault(-32603, 'busy')] } });
    await put(halfway, 'y'.repeat(200000));
    assert.equal((await halfway.getTuple({ configurable: { thread_id: 't' } })).checkpoint.channel_values.big.length, 200000);
});

test('an upload that is refused in its middle is closed', async () => {
    const store = new Store(), refused = fault(-32602, 'blob b1: more than the limit');
    let writes = 0;
    const handle = store.handle.bind(store);
    store.handle = (method, params) => {
        if (method === 'blob/write' && ++writes === 3) throw refused;
        return handle(method, params);
    };
    await assert.rejects(put(saverOn(store), 'x'.repeat(300000)), /more than the limit/);
    assert.deepEqual([writes, store.blobs.size], [3, 0]);
});

test('a store that fails once is asked again, one that refuses is not', async () => {
    const store = new Store(), faults = { 'checkpoint/put': [fault(-32603, 'busy')], 'checkpoint/get': [fault(-32603, 'busy'), fault(-32603, 'busy'), fault(-32603, 'down')] };
    const saver = saverOn(store, { faults });
    await put(saver, 'small');
    await assert.rejects(saver.getTuple({ configurable: { thread_id: 't' } }), /down/);
    assert.deepEqual(saver.calls, ['checkpoint/put', 'checkpoint/put', 'checkpoint/get', 'checkpoint/get', 'checkpoint/get']);
    faults['checkpoint/put'] = [fault(-32602, 'no such thread')];
    await assert.rejects(put(saver, 'small'), /no such thread/);
    assert.equal(saver.calls.length, 6);
});

test('a list that is not read to its end leaves no blobs open', async () => {
    const store = Object.assign(new Store(), { inlineBytes: 1 }), saver = saverOn(store);
    const configs = [];
    for (let i = 0; i < 4; i++) configs.push(await put(saver, `value ${i}`));
    for await (const saved of saver.list({ configurable: { thread_id: 't' } })) {
        assert.equal(saved.checkpoint.channel_values.big, 'value 3');
        break;
    }
    assert.equal(store.blobs.size, 0, 'after a break');
    const read = async (config, options) => {
        const found = [];
        for await (const saved of saver.list(config, options)) found.push(saved.checkpoint.channel_values.big);
        return found;
    };
    assert.deepEqual(await read({ configurable: { thread_id: 't' } }, { limit: 1, filter: { step: count - 1 } }), ['value 2']);
    assert.deepEqual(await read(configs[0]), ['value 0']);
    assert.equal(store.blobs.size, 0, 'after a limit, and with one id');
});

test('copy, prune, and delete for runs', async () => {
    const store = new Store(), saver = saverOn(store), ids = [];
    const stored = async (thread) => {
        const found = [];
        for await (const saved of saver.list({ configurable: { thread_id: thread } })) found.push(saved.checkpoint.channel_values.big);
        return found;
    };
    for (const [big, run] of [['one', 'r1'], ['two', 'r1'], ['three', 'r2']]) {
        const value = { ...checkpoint.emptyCheckpoint(), id: checkpoint.uuid6(++count), channel_values: { big }, channel_versions: { big: 1 } };
        ids.push(await saver.put({ configurable: { thread_id: 'a' } }, value, { source: 'loop', step: count, parents: {}, run_id: run }, { big: 1 }));
    }
    await saver.putWrites(ids[2], [['big', 'written']], 'task');
    await saver.copyThread('a', 'b');
    assert.deepEqual([await stored('b'), (await saver.getTuple({ configurable: { thread_id: 'b' } })).pendingWrites], [['three', 'two', 'one'], [['task', 'big', 'written']]]);
    await saver.deleteForRuns(['r1']);
    assert.deepEqual(await stored('a'), ['three']);
    await saver.copyThread('a', 'c');
    await put(saver, 'four', 'c');
    await saver.prune(['c']);
    assert.deepEqual(await stored('c'), ['four']);
    await saver.prune(['c'], 'delete');
    await saver.deleteThread('a');
    assert.deepEqual([await stored('c'), await stored('a')], [[], []]);
});

test('prune leaves a thread whose DeltaChannel is rebuilt from older checkpoints', async () => {
    const store = new Store(), saver = saverOn(store);
    await put(saver, 'old', 'd');
    const value = { ...checkpoint.emptyCheckpoint(), id: checkpoint.uuid6(++count), channel_values: {}, channel_versions: { big: 2 } };
    await saver.put({ configurable: { thread_id: 'd' } }, value, { source: 'loop', step: count, parents: {}, counters_since_delta_snapshot: { big: [1, 1] } }, {});
    await saver.prune(['d']);
    assert.equal(store.rows.size, 2);
    await saver.prune(['d'], 'delete');
    assert.equal(store.rows.size, 0);
});
