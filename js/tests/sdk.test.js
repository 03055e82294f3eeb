// The Turn of an agent's function: what it emits, and what happens when the function runs again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Failed, NotDeterministic, Rejected, Suspended, agent } from '../agent.js';
import { Conversation, runAgent } from '../testing.js';

const text = (n) => ({ parts: [{ text: n }] });

test('text is one artifact in chunks, the last one closes it', async () => {
    const result = await runAgent(async (turn) => {
        await turn.write('You wrote: ');
        await turn.write(turn.text);
    }, 'hello');
    assert.equal(result.text, 'You wrote: hello');
    assert.equal(result.state, 'TASK_STATE_COMPLETED');
    assert.deepEqual(result.events.slice(1).map(({ artifactUpdate: u }) => [u.artifact.artifactId, u.artifact.parts[0].text, u.append, u.lastChunk]),
        [['answer', 'You wrote: ', false, false], ['answer', 'hello', true, false], ['answer', '', true, true]]);
    assert.deepEqual(result.events[0], { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } });
});

test('an agent may return a text, yield texts, or write nothing', async () => {
    assert.equal((await runAgent(() => 'sync', 'x')).text, 'sync');
    assert.equal((await runAgent(async (turn) => turn.text, 'x')).text, 'x');
    assert.equal((await runAgent(async function* () { yield 'a'; yield 'b'; }, 'x')).text, 'ab');
    assert.equal((await runAgent(function* () { yield 'c'; }, 'x')).text, 'c');
    assert.equal((await runAgent(async () => {}, 'x')).text, '');
    await assert.rejects(runAgent(async () => 3, 'x'), /returns a text or nothing, not number/);
    await assert.rejects(runAgent((turn) => turn.write(null), 'x'), /expected text, got null: turn\.data/);
    assert.throws(() => agent('x'), /expected a function/);
});

test('everything else that an agent can report', async () => {
    const result = await runAgent(async (turn) => {
        await turn.progress('Looking');
        await turn.reasoning('hm');
        await turn.toolCall('add', { a: 1 }, ({ a }) => a + 1);
        turn.toolCall('slow').failed('too slow');
        await turn.data({ rows: 3 }, 'analysis');
        await turn.file('a.csv', 'x,y');
        await turn.file('b.bin', new Uint8Array([1, 2]), { mediaType: 'a/b' });
        await turn.file('c.png', null, { url: 'https://example.com/c.png' });
        turn.state.count = 1;
        await turn.setState({ all: true });
        delete turn.state.all;
        await turn.usage({ inputTokens: 2, outputTokens: 3, model: 'm' });
        await turn.custom('map', [1]);
        await turn.emit({ kind: 'internal:step', name: 's' });
    }, 'x');
    assert.deepEqual(result.progress, ['Looking']);
    assert.equal(result.reasoning, 'hm');
    assert.deepEqual(result.toolCalls.map(({ name, arguments: a, success, result: r, error }) => [name, a, success, r, error]),
        [['add', { a: 1 }, true, 2, null], ['slow', {}, false, null, 'too slow']]);
    assert.deepEqual(result.data, [{ rows: 3 }]);
    assert.deepEqual(result.files.map((f) => [f.name, f.mediaType, f.content?.toString(), f.url]),
        [['a.csv', 'text/csv', 'x,y', null], ['b.bin', 'a/b', '\x01\x02', null], ['c.png', 'image/png', undefined, 'https://example.com/c.png']]);
    assert.deepEqual(result.usage, [{ inputTokens: 2, outputTokens: 3, totalTokens: 5, model: 'm' }]);
    assert.deepEqual(result.events.filter((e) => e.kind === 'internal:state').map(({ name, value }) => [name, value]), [['count', 1], [undefined, { all: true }], [undefined, {}]]);
    assert.deepEqual(result.events.slice(-2).map((e) => e.kind), ['internal:custom', 'internal:step']);
});

test('values that are not JSON are errors that name the place', async () => {
    const cycle = {};
    cycle.a = [cycle];
    for (const [value, pattern] of [[{ a: [1n] }, /^data\.a\[0\]: expected JSON, got a bigint/], [{ 'x y': NaN }, /^data\["x y"\]: NaN is not a JSON number/],
        [cycle, /^data\.a\[0\]: it contains itself/], [{ d: new Date() }, /^data\.d: expected a plain object, got Date/], [undefined, /^data: expected JSON, got undefined/]])
        await assert.rejects(runAgent((turn) => turn.data(value), 'x'), (e) => e instanceof TypeError && pattern.test(e.message));
    await assert.rejects(runAgent((turn) => turn.step('s', () => new Map()), 'x'), /the result of the step "s" cannot be stored: result: expected a plain object, got Map/);
    await assert.rejects(runAgent((turn) => turn.file('a', 'b', { url: 'c' }), 'x'), /content or url, and not both/);
    await assert.rejects(runAgent((turn) => turn.file('a'), 'x'), /content or url/);
});

test('a lone surrogate is replaced, an escaped backslash stays', async () => {
    assert.equal((await runAgent((turn) => turn.write('a\ud800b \\ud800 😀'), 'x')).text, 'a\ufffdb \\ud800 😀');
});

test('the caller: messages, files, data, history, instructions, tools', async () => {
    let seen;
    await runAgent(async (turn) => {
        seen = { chat: turn.chat(), files: turn.files, data: turn.message.data, tools: turn.tools, role: turn.history[1].role, principal: turn.principal, state: turn.state.a };
    }, { parts: [{ text: 'a' }, { text: 'b' }, { data: { c: 1 } }, { raw: 'aGk=', filename: 'f.txt', mediaType: 'text/plain' }, { text: 'copy', metadata: { 'dragoman:part': 'transcript' } }] },
    { history: ['one', { role: 'ROLE_AGENT', parts: [{ text: 'two' }] }], metadata: { 'dragoman:instructions': 'Be brief.', 'dragoman:state': { a: 5 } }, tools: [{ name: 't' }], principal: 'ann' });
    assert.deepEqual(seen.chat, [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'one' }, { role: 'assistant', content: 'two' }, { role: 'user', content: 'ab' }]);
    assert.deepEqual([seen.files[0].name, seen.files[0].content.toString(), seen.data, seen.tools, seen.role, seen.principal, seen.state],
        ['f.txt', 'hi', [{ c: 1 }], [{ name: 't', description: '', parameters: {} }], 'agent', 'ann', 5]);
});

test('failures: callers read the sentence of Failed and Rejected only', async () => {
    const end = async (error) => new Conversation(async () => { throw error; }).send('x');
    const failed = await end(new Failed('no paper')), rejected = await end(new Rejected('not on Sundays')), other = await end(new Error('secret'));
    assert.deepEqual([failed.state, failed.reason, failed.status], ['TASK_STATE_FAILED', 'no paper', 'completed']);
    assert.deepEqual([rejected.state, rejected.reason], ['TASK_STATE_REJECTED', 'not on Sundays']);
    assert.deepEqual([other.reason, other.error.message], [null, 'secret']);
});

test('a tool that throws is reported, and the error goes on', async () => {
    const result = await new Conversation((turn) => turn.toolCall('t', {}, () => { throw new Error('secret'); })).send('x');
    assert.deepEqual([result.toolCalls[0].error, result.error.message], ['t failed', 'secret']);
});

// ---- questions ----

test('a question ends the function; with the answer it runs again from the top, and nothing is sent twice', async () => {
    let calls = 0;
    const conversation = new Conversation(async (turn) => {
        calls++;
        await turn.write(`Hello ${turn.text}. `);
        await turn.data({ n: 1 });
        const city = await turn.ask('Which city?', { choices: ['Oslo', 'Rome'] });
        await turn.progress(`Looking at ${city}`);
        const days = await turn.ask('How many days?');
        await turn.write(`${days.text} days in ${city}`);
    });
    const first = await conversation.send('Ann');
    assert.deepEqual([first.status, first.question, first.text, first.state], ['interrupted', 'Which city?', 'Hello Ann. ', 'TASK_STATE_INPUT_REQUIRED']);
    assert.deepEqual(first.events[first.events.length - 1].statusUpdate.status.message.parts[1].data, { type: 'question', text: 'Which city?', choices: ['Oslo', 'Rome'] });
    const second = await conversation.send('Oslo');
    assert.deepEqual([second.question, second.text, second.data, second.progress], ['How many days?', '', [], ['Looking at Oslo']]);
    const third = await conversation.send('3');
    assert.deepEqual([third.text, third.state, third.progress, calls], ['3 days in Oslo', 'TASK_STATE_COMPLETED', [], 3]);
    assert.deepEqual(conversation.task.artifacts.map((a) => a.artifactId), ['answer', 'data-1-1', 'answer-3']);
});

test('code that catches everything cannot continue after a question', async () => {
    const conversation = new Conversation(async (turn) => {
        let answer;
        try {
            answer = (await turn.ask('Name?')).text;
        } catch (error) {
            assert.ok(error instanceof Suspended);
            await turn.write('not sent').catch?.(() => {});
        }
        return `got ${answer}`;
    });
    const first = await conversation.send('x');
    assert.deepEqual([first.status, first.text], ['interrupted', '']);
    assert.equal((await conversation.send('Ann')).text, 'got Ann');
});

test('the results of steps are stored; the function is not called again', async () => {
    const called = [];
    const conversation = new Conversation(async (turn) => {
        const [a, b] = await Promise.all(['a', 'b'].map((name) => turn.step('load', async (n) => { called.push(n); return { name: n }; }, name)));
        a.changed = true;
        const answer = await turn.ask('Go on?');
        const none = await turn.step('none', () => undefined);
        return `${a.name}${b.name} ${answer} ${none} ${await turn.step('load', () => 'third')}`;
    });
    await conversation.send('x');
    assert.equal((await conversation.send('yes')).text, 'ab yes null third');
    assert.deepEqual(called, ['a', 'b']);
});

test('an error of a step that the agent catches is thrown again', async () => {
    let calls = 0;
    const conversation = new Conversation(async (turn) => {
        let caught;
        try {
            await turn.step('s', () => { calls++; throw new RangeError('too far'); });
        } catch (error) {
            caught = error;
        }
        await turn.ask('Go on?');
        return `${caught instanceof RangeError} ${caught.message}`;
    });
    await conversation.send('x');
    assert.equal((await conversation.send('yes')).text, 'true too far');
    assert.equal(calls, 1);
});

test('a long text is several events', async () => {
    const long = `${'x'.repeat((256 << 10) - 1)}😀${'y'.repeat(10)}`;
    const result = await runAgent((turn) => turn.write(long), 'x');
    assert.equal(result.text, long);
    assert.equal(result.events.length, 4);
});

test('a lost worker: the turn runs again, stored steps and output that was sent are not repeated', async () => {
    let isLost = true, steps = 0;
    const conversation = new Conversation(async (turn) => {
        await turn.write('Hello, ');
        await turn.progress('p1');
        await turn.data({ n: 1 });
        const value = await turn.step('s', () => ++steps);
        await turn.write(`step ${value}, `);
        if (isLost) throw new Error('killed');
        await turn.progress('p2');
        await turn.write('done');
    });
    const first = await conversation.send('x');
    assert.equal(first.error.message, 'killed');
    isLost = false;
    const second = await conversation.resume();
    assert.equal(second.text, 'done', 'only what is new');
    assert.deepEqual([second.progress, second.data, steps], [['p2'], [], 1]);
    assert.equal(conversation.task.artifacts.find((a) => a.artifactId === 'answer').parts[0].text, 'Hello, step 1, done');
});

test('a step is stored before the events that a lost run had sent: a second loss does not send them again', async () => {
    let runs = 0;
    const conversation = new Conversation(async (turn) => {
        const run = ++runs;
        await turn.progress('p1');
        if (run > 1) await turn.step('slow', () => 1); // beside the events, and not done in the first run
        await turn.progress('p2');
        if (run === 1) throw new Error('killed');
        await turn.progress('p3');
        if (run === 2) throw new Error('killed');
        await turn.progress('p4');
    });
    const results = [await conversation.send('x'), await conversation.resume(), await conversation.resume()];
    assert.deepEqual(results.map((r) => r.progress), [['p1', 'p2'], ['p3'], ['p4']]);
});

test('a lost worker whose text is another one when it runs again: the artifact restarts', async () => {
    let word = 'first';
    const conversation = new Conversation(async (turn) => {
        await turn.write('The ');
        await turn.write(`${word} answer`);
        if (word === 'first') throw new Error('killed');
    });
    await conversation.send('x');
    word = 'second';
    await conversation.resume();
    assert.equal(conversation.task.artifacts[0].parts[0].text, 'The second answer');
});

test('a function that does something else when it runs again is an error that names both', async () => {
    const again = async (fn, pattern) => {
        const conversation = new Conversation(fn);
        await conversation.send('x');
        const { error } = await conversation.send('y');
        assert.ok(error instanceof NotDeterministic);
        assert.match(error.message, pattern);
    };
    let n = 0;
    await again((turn) => turn.ask(`Question ${++n}?`), /question 1 was "Question 1\?" when the function ran before, and is now "Question 2\?"/);
    await again(async (turn) => {
        if (n++ === 2) await turn.step('once', () => 1);
        await turn.ask('Q?');
    }, /before question 1 \("Q\?"\) the step "once" was run, and is not run now/);
    n = 0;
    await again(async (turn) => {
        if (n++ === 0) await turn.ask('Q?');
    }, /question 1 was "Q\?" when the function ran before, and has not been asked now when the function ended/);
    n = 0;
    await again(async (turn) => {
        if (n++ === 1) await turn.step('new', () => 1);
        await turn.ask('Q?');
    }, /the step "new" is run before question 1 \("Q\?"\), and was not run there before/);
});

test('approvals, signing in, tools of the caller', async () => {
    const approve = new Conversation(async (turn) => `${await turn.approve('delete', { path: 'a' })}`);
    const asked = await approve.send('x');
    assert.equal(asked.events[asked.events.length - 1].statusUpdate.status.message.parts[1].data.type, 'approval-request');
    assert.equal((await approve.send('maybe')).question, 'May delete be called? Answer yes or no.', 'it asks again');
    assert.equal((await approve.send('Yes!')).text, 'true');
    const byData = new Conversation(async (turn) => `${await turn.approve('delete')}`);
    await byData.send('x');
    assert.equal((await byData.send({ parts: [{ data: { type: 'approval', id: 'i', approved: false } }] })).text, 'false');
    const signIn = new Conversation(async (turn) => `in: ${await turn.signIn('https://example.com/login')}`);
    assert.equal((await signIn.send('x')).state, 'TASK_STATE_AUTH_REQUIRED');
    assert.equal((await signIn.send('done')).text, 'in: done');
    const tool = new Conversation(async (turn) => `${(await turn.callTool('look_up', { city: 'Oslo' })).sky}`, { tools: [{ name: 'look_up' }] });
    const call = await tool.send('x');
    const { call_id: id } = call.events[call.events.length - 1].statusUpdate.status.message.parts[0].data.tool_calls[0];
    assert.equal((await tool.send({ parts: [{ data: { tool_results: [{ call_id: id, output: { sky: 'snow' } }] } }] })).text, 'snow');
});

test('messages to a turn that works are recorded for replay', async () => {
    const seen = [];
    let conversation;
    const fn = async (turn) => {
        await turn.write('x');
        if (seen.length === 0) conversation.steer('also this');
        await turn.waitForMessage();
        const found = turn.newMessages().map((m) => m.text);
        seen.push(found);
        await turn.ask('Go on?');
        return `${found} ${turn.newMessages().length}`;
    };
    conversation = new Conversation(fn);
    await conversation.send('x');
    assert.equal((await conversation.send('yes')).text, 'also this 0');
    assert.deepEqual(seen, [['also this'], ['also this']]);
});

test('a cancel aborts the signal; the turn can send nothing more', async () => {
    const conversation = new Conversation(async (turn) => {
        await turn.write('a');
        queueMicrotask(() => conversation.cancel());
        await new Promise((done) => turn.signal.addEventListener('abort', done));
        assert.throws(() => turn.write('b'), { name: 'AbortError' });
        return 'not sent';
    });
    const result = await conversation.send('x');
    assert.deepEqual([result.status, result.text, result.state], ['cancelled', 'a', 'TASK_STATE_CANCELED']);
});

test('a journal of another program, and one that is too long, are errors', async () => {
    const conversation = new Conversation(async (turn) => turn.step('s', () => 'x'.repeat(65 << 20)));
    assert.match((await conversation.send('x')).error.message, /more than 67108864 bytes .limit journal_bytes.: return less from turn\.step/);
});

test('large messages are in the journal by their ids', async () => {
    const big = 'y'.repeat(300 << 10);
    const conversation = new Conversation(async (turn) => {
        await turn.ask('Q?');
        return `${turn.text.length} ${turn.history.length} ${turn.history[0].text.length}`;
    }, { history: [text(big), text('small')] });
    await conversation.send(big);
    assert.equal((await conversation.send('yes')).text, `${big.length} 2 ${big.length}`);
});
