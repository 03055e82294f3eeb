// npm `openai` and what outlives a connection: background, streams taken up again, cancel, conversations.
import OpenAI, { NotFoundError } from 'openai';
import { check, equal, failure, run, test, until } from '../server/node/lib/tap.mjs';
import { gate, live } from './lib/live.mjs';

const server = await live();
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
const ask = (input, more) => client.responses.create({ model: 'demo', input, ...more });
const ended = (id) => until(async () => {
    const response = await client.responses.retrieve(id);
    return response.status === 'in_progress' || response.status === 'queued' ? undefined : response;
}, 'the response ends');

/** Up to n events of a stream; then the connection is closed. */
async function take(stream, n = Infinity) {
    const all = [];
    for await (const event of stream) {
        all.push(event);
        if (all.length >= n) break;
    }
    return all;
}

test('openai: in the background: an answer at once, the rest by polling', async () => {
    const g = gate();
    const first = await ask(g.message, { model: 'gate', background: true });
    equal([first.status, first.background, first.completed_at], ['in_progress', true, null], 'the first answer');
    const meanwhile = await client.responses.retrieve(first.id);
    equal(meanwhile.status, 'in_progress', 'while it runs');
    g.open();
    const last = await ended(first.id);
    equal([last.status, last.output_text], ['completed', 'one \ntwo \nthree'], 'the end');
    equal(last.id, first.id, 'the id');
});

test('openai: cancel, once and again', async () => {
    const g = gate();
    const { id } = await ask(g.message, { model: 'gate', background: true });
    const canceled = await client.responses.cancel(id);
    equal(canceled.status, 'cancelled', 'the status');
    equal((await client.responses.cancel(id)).status, 'cancelled', 'the second time');
    equal((await client.responses.retrieve(id)).metadata.a2a_task_state, 'canceled', 'the task');
    const sync = await ask('hello');
    equal((await failure(client.responses.cancel(sync.id))).status, 400, 'one that is not in the background');
    check(await failure(client.responses.cancel('resp_nobody')) instanceof NotFoundError, 'one that is not there');
    const done = await ask('hello', { background: true });
    await ended(done.id);
    equal((await client.responses.cancel(done.id)).status, 'completed', 'one that has ended');
});

test('openai: a canceled response ends its stream', async () => {
    const g = gate();
    const stream = await ask(g.message, { model: 'gate', background: true, stream: true });
    const seen = [];
    for await (const event of stream) {
        seen.push(event);
        if (event.type === 'response.output_text.delta') await client.responses.cancel(seen[0].response.id);
    }
    equal([seen.at(-1).type, seen.at(-1).response.status], ['response.incomplete', 'cancelled'], 'the end');
});

test('openai: a stream is taken up again at every event', async () => {
    const all = await take(await ask('stream', { background: true, stream: true }));
    const id = all[0].response.id;
    for (let n = 0; n < all.length; n++) {
        const rest = await take(await client.responses.retrieve(id, { stream: true, starting_after: n }));
        equal(rest, all.slice(n + 1), `what comes after ${n}`);
    }
    equal(await take(await client.responses.retrieve(id, { stream: true })), all, 'from the beginning');
    const helper = client.responses.stream({ response_id: id, starting_after: 5 });
    let first;
    helper.on('event', (event) => { first ??= event.sequence_number; });
    equal((await helper.finalResponse()).output_text, all.at(-1).response.output[0].content[0].text, '.stream() of an old one');
    equal(first, 6, 'the first event it gives');
});

test('openai: who leaves after any event finds the response again', async () => {
    const total = (await take(await ask('stream', { stream: true }))).length;
    for (let n = 1; n < total; n += 3) {
        const seen = await take(await ask('stream', { stream: true, model: 'steady' }), n);
        const response = await ended(seen[0].response.id);
        equal(response.status, 'completed', `left after ${n}`);
    }
});

test('openai: killed with -9 in the middle: the stream goes on after the restart', async () => {
    const g = gate();
    const stream = await ask(g.message, { model: 'gate', background: true, stream: true });
    const seen = [];
    await failure((async () => {
        for await (const event of stream) {
            seen.push(event);
            if (event.type === 'response.output_text.delta') await server.kill();
        }
    })());
    await server.restart();
    const { id } = seen[0].response;
    const from = seen.at(-1).sequence_number;
    const rest = [];
    const error = await failure((async () => {
        for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: from })) rest.push(event);
    })());
    check(/restart|interrupt|crash|server/i.test(error.message), error.message); // the loss is reported as an error
    const again = await client.responses.retrieve(id);
    equal([again.status, again.model, again.background], ['failed', 'gate', true], 'the response');
    check(again.output_text.startsWith('one'), 'the text before the kill is there');
});

test('openai: ended before the kill: all of it is as it was', async () => {
    const all = await take(await ask('reasoning', { background: true, stream: true, metadata: { k: 'v' }, instructions: 'Be brief' }));
    const { id } = all[0].response;
    const before = await client.responses.retrieve(id);
    const items = (await client.responses.inputItems.list(id)).data;
    await server.kill();
    await server.restart();
    equal(await take(await client.responses.retrieve(id, { stream: true, starting_after: 4 })), all.slice(5), 'the events');
    equal(await client.responses.retrieve(id), before, 'the response');
    equal((await client.responses.inputItems.list(id)).data, items, 'its input');
    const next = await ask('hello', { previous_response_id: id });
    equal(next.metadata.a2a_context_id, before.metadata.a2a_context_id, 'the chain goes on');
});

test('openai: a conversation', async () => {
    const conversation = await client.conversations.create({ metadata: { topic: 'tests' }, items: [{ role: 'user', content: 'I am Ada' }] });
    equal([conversation.object, conversation.metadata.topic], ['conversation', 'tests'], 'it');
    const question = await ask('ask', { conversation: conversation.id });
    equal(question.conversation, { id: conversation.id }, 'the response says where');
    equal(question.metadata.a2a_context_id, conversation.id, 'which is the context');
    const answer = await ask('Bob', { conversation: { id: conversation.id } });
    check(answer.output_text.startsWith('Hello Bob'), answer.output_text);
    const texts = [];
    for await (const item of client.conversations.items.list(conversation.id, { order: 'asc', limit: 2 }))
        texts.push(`${item.role}: ${item.content[0].text}`);
    equal(texts, ['user: I am Ada', 'user: ask', 'assistant: What is your name?', 'user: Bob', `assistant: ${answer.output_text}`], 'its items');
    check(await failure(ask('x', { conversation: 'conv_nobody' })) instanceof NotFoundError, 'one that is not there');
});

test('openai: items of a conversation are added, found, deleted', async () => {
    const { id } = await client.conversations.create();
    const added = await client.conversations.items.create(id, { items: [{ role: 'user', content: 'one' }, { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'two' }] }] });
    equal(added.data.map((i) => i.content[0].text), ['one', 'two'], 'what was added');
    equal((await client.conversations.items.retrieve(added.data[1].id, { conversation_id: id })).content[0].text, 'two', 'one of them');
    await ask('three', { conversation: id });
    equal((await client.conversations.items.delete(added.data[0].id, { conversation_id: id })).id, id, 'deleting gives the conversation');
    const left = (await client.conversations.items.list(id, { order: 'asc' })).data;
    equal(left.slice(0, 2).map((i) => i.content[0].text), ['two', 'three'], 'what is left');
    const said = left.find((i) => i.role === 'assistant' && i !== left[0]);
    await client.conversations.items.delete(said.id, { conversation_id: id });
    equal((await client.conversations.items.list(id)).data.some((i) => i.id === said.id), false, 'the item is deleted from the list, too');
    check(await failure(client.conversations.items.retrieve(said.id, { conversation_id: id })) instanceof NotFoundError, 'and cannot be had');
});

test('openai: conversations are changed and deleted, and survive a restart', async () => {
    const { id } = await client.conversations.create({ metadata: { a: '1' } });
    equal((await client.conversations.update(id, { metadata: { b: '2' } })).metadata, { b: '2' }, 'changed');
    await ask('hello', { conversation: id });
    const before = (await client.conversations.items.list(id)).data;
    await server.kill();
    await server.restart();
    equal((await client.conversations.retrieve(id)).metadata, { b: '2' }, 'after the restart');
    equal((await client.conversations.items.list(id)).data, before, 'its items');
    equal((await client.conversations.delete(id)).deleted, true, 'deleted');
    check(await failure(client.conversations.retrieve(id)) instanceof NotFoundError, 'it is gone');
    check(await failure(ask('x', { conversation: id })) instanceof NotFoundError, 'and takes nothing more');
});

test('openai, stored: the server ends well', () => server.stop());
await run();
