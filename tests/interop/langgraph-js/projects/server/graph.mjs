// One graph for the tests with a server: the first word of the message chooses what it does. It notes its steps in the file TRACE, and
// `slow` waits for the file GATE.
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Annotation, END, MessagesAnnotation, START, StateGraph, interrupt } from '@langchain/langgraph';
import { callerTools, emitData, emitFile, emitMessage, emitTaskMetadata, TaskRejected } from 'dragoman/langgraph';

const State = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation, a2a_outbox: Annotation });
const say = (text) => new FakeListChatModel({ responses: [text] });
const trace = (word) => process.env.TRACE && appendFileSync(process.env.TRACE, `${word}\n`);
const wordOf = (state) => String(state.messages.filter((m) => m.getType() === 'human').pop()?.content ?? '').split(' ')[0];

const inner = new StateGraph(State).addNode('inner', async (state, config) => {
    emitTaskMetadata(config.writer, { from: 'inside' });
    return { messages: [await say('from inside').invoke(state.messages)] };
}).addEdge(START, 'inner').addEdge('inner', END).compile();

const nodes = {
    chat: async (state) => ({ messages: [await say('Hello there').invoke(state.messages)] }),
    twice: async (state) => ({ messages: [new AIMessage((await say('once').invoke(state.messages)).content)] }),
    left: async (state) => ({ messages: [await say('left').invoke(state.messages)] }),
    right: async (state) => ({ messages: [await say('right').invoke(state.messages)] }),
    emit: async (_state, config) => {
        emitFile(config.writer, { url: 'https://example.com/report.pdf', mimeType: 'application/pdf' });
        emitFile(config.writer, { base64: Buffer.from('one ').toString('base64'), mimeType: 'text/plain', name: 'notes.txt', isLastChunk: false });
        emitFile(config.writer, { base64: Buffer.from('two').toString('base64'), mimeType: 'text/plain', name: 'notes.txt', append: true });
        emitData(config.writer, { status: 'success', results: [1, 2] }, { name: 'analysis' });
        emitMessage(config.writer, new AIMessage('Processing complete'));
        emitTaskMetadata(config.writer, { progress: 100, 'aion:network': 'mine' });
        config.writer({ mine: 1 });
        return {};
    },
    outbox: async () => ({ a2a_outbox: { kind: 'message', messageId: `out-${Date.now()}-${Math.random()}`, role: 'agent', taskId: 'wrong', parts: [{ kind: 'text', text: 'from the outbox' }, { kind: 'data', data: { a: 1 } }] } }),
    seen: async (state, config) => ({ messages: [new AIMessage(JSON.stringify({
        messages: state.messages.map((m) => [m.getType(), m.content]), inbox: state.a2a_inbox.message.parts, tools: callerTools(config).map((t) => t.function.name) }))] }),
    ask: async () => {
        trace('ask');
        const name = interrupt({ prompt: 'Your name?' });
        return { messages: [new AIMessage(`Hello ${typeof name === 'string' ? name : JSON.stringify(name)}`)] };
    },
    slow: async (_state, config) => {
        trace('slow');
        config.writer({ at: 'slow' });
        while (process.env.GATE && !existsSync(process.env.GATE)) await sleep(10, undefined, { signal: config.signal });
        return { messages: [new AIMessage('slow is done')] };
    },
    first: async (state) => {
        trace('first');
        return { messages: [await say('first. ').invoke(state.messages)] };
    },
    bad: async (state) => {
        const text = state.messages[state.messages.length - 1].content;
        if (text === 'bad reject') throw new TaskRejected('not on Sundays');
        if (text === 'bad exit') process.exit(3);
        throw new Error('secret detail');
    },
};

const builder = new StateGraph(State);
for (const [name, node] of Object.entries(nodes)) builder.addNode(name, node);
builder.addNode('sub', inner);
const ways = { hello: ['chat'], twice: ['twice'], parallel: ['left', 'right'], emit: ['emit'], outbox: ['outbox'], seen: ['seen'], ask: ['ask'], slow: ['first'], bad: ['bad'], sub: ['sub'] };
builder.addConditionalEdges(START, (state) => ways[wordOf(state)] ?? ['chat']);
builder.addEdge('first', 'slow');
for (const name of [...Object.keys(nodes), 'sub']) if (name !== 'first') builder.addEdge(name, END);

export const graph = builder;
