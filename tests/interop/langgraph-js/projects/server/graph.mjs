// One graph for the tests with a server: the first word of the message chooses what it does. It notes its steps in the file TRACE, and
// `slow` waits for the file GATE.
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AIMessage, AIMessageChunk, ToolMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Annotation, END, MessagesAnnotation, START, StateGraph, interrupt } from '@langchain/langgraph';
import { callerTools, emitData, emitFile, emitMessage, emitTaskMetadata, TaskRejected } from 'dragoman/langgraph';

const State = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation, a2a_outbox: Annotation });
const say = (text) => new FakeListChatModel({ responses: [text] });
const gate = async (signal) => {
    while (process.env.GATE && !existsSync(process.env.GATE)) await sleep(10, undefined, { signal });
};
const trace = (word) => process.env.TRACE && appendFileSync(process.env.TRACE, `${word}\n`);
const wordOf = (state) => String(state.messages.filter((m) => m.getType() === 'human').pop()?.content ?? '').split(' ')[0];

/** Its stream stops after four characters until the file GATE exists. */
class Halting extends FakeListChatModel {
    async *_streamResponseChunks(...args) {
        let n = 0;
        for await (const chunk of super._streamResponseChunks(...args)) {
            yield chunk;
            if (++n !== 4) continue;
            trace('halfway');
            await gate();
        }
    }
}

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
    // these four do what those of the Python project (../../../langgraph/projects/acceptance/routed.py) do
    tokens: async (state) => ({ messages: [await say('Hello there friend').invoke(state.messages)] }),
    example: async (state, config) => {
        emitFile(config.writer, { url: 'https://example.com/report.pdf', mimeType: 'application/pdf' });
        emitData(config.writer, { status: 'success', results: [1, 2] }, { name: 'analysis' });
        emitMessage(config.writer, new AIMessage('Processing complete'));
        emitTaskMetadata(config.writer, { progress: 100 });
        return state;
    },
    everything: async (state, config) => {
        const { message } = state.a2a_inbox;
        emitTaskMetadata(config.writer, { progress: 10, 'aion:network': 'mine' });
        for (const [base64, isLastChunk] of [['SGVs', false], ['bG8=', true]])
            emitFile(config.writer, { base64, mimeType: 'text/plain', name: 'hello.txt', append: base64 !== 'SGVs', isLastChunk });
        emitData(config.writer, [1, 2], { name: 'numbers' });
        for (const piece of ['thin', 'king']) emitMessage(config.writer, new AIMessageChunk(piece));
        config.writer({ own: { step: 1 } });
        return { a2a_outbox: { kind: 'message', messageId: `outbox-${message.messageId}`, role: 'agent',
            parts: [{ kind: 'text', text: `You sent ${message.parts.length} part(s)` }, { kind: 'data', data: { answer: 42 } }] } };
    },
    city: async (state) => {
        const city = interrupt({ prompt: 'Which city?' });
        return { messages: [new AIMessage(`Going to ${city}, ${state.a2a_inbox.message.parts[0].text}`)] };
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
        await gate(config.signal);
        return { messages: [new AIMessage('slow is done')] };
    },
    halves: async (state) => ({ messages: [await new Halting({ responses: ['half and whole'] }).invoke(state.messages)] }),
    first: async (state) => {
        trace('first');
        return { messages: [await say('first. ').invoke(state.messages)] };
    },
    look: async () => ({ messages: [new AIMessage({ content: '', tool_calls: [{ id: 'c1', name: 'look_up', args: { city: 'Oslo' } }] }),
        new ToolMessage({ content: 'secret snow', tool_call_id: 'c1', name: 'look_up' }), new AIMessage('It snows.')] }),
    patch: async (state) => ({ a2a_outbox: { kind: 'task', id: 'not mine', contextId: 'neither', status: { state: 'completed' }, metadata: { cost: 3, 'aion:network': 'mine' },
        artifacts: [{ artifactId: 'table', name: 'table', parts: [{ kind: 'data', data: { rows: 2 } }] }],
        history: [{ kind: 'message', role: 'agent', messageId: `step-${state.a2a_inbox.message.messageId}`, parts: [{ kind: 'text', text: 'first step' }] }] } }),
    askA: async () => ({ messages: [new AIMessage(`A?=${JSON.stringify(interrupt('A?'))}`)] }),
    askB: async () => ({ messages: [new AIMessage(`B?=${JSON.stringify(interrupt('B?'))}`)] }),
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
const ways = { hello: ['chat'], twice: ['twice'], parallel: ['left', 'right'], emit: ['emit'], outbox: ['outbox'], seen: ['seen'], ask: ['ask'], slow: ['first'], halves: ['first'], bad: ['bad'], look: ['look'], patch: ['patch'], both: ['askA', 'askB'], sub: ['sub'],
    tokens: ['tokens'], example: ['example'], everything: ['everything'], city: ['city'] };
builder.addConditionalEdges(START, (state) => ways[wordOf(state)] ?? ['chat']);
builder.addConditionalEdges('first', wordOf, ['slow', 'halves']);
for (const name of [...Object.keys(nodes), 'sub']) if (name !== 'first') builder.addEdge(name, END);

export const graph = builder;
