// Graphs for the tests, one for each behaviour. Several of them write to the file TRACE what they do.
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AIMessage, AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { Annotation, END, MemorySaver, MessagesAnnotation, Send, START, StateGraph, interrupt } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { z } from 'zod';
import { emitData, emitFile, emitMessage, emitTaskMetadata, TaskRejected, callerTools } from '../../../../../js/langgraph.js';

export const State = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation, a2a_outbox: Annotation, n: Annotation });
const model = (...responses) => new FakeListChatModel({ responses });
const trace = (word) => process.env.TRACE && appendFileSync(process.env.TRACE, `${word}\n`);
const lastText = (state) => state.messages[state.messages.length - 1].content;

const graphOf = (nodes, edges = {}) => {
    const builder = new StateGraph(State), names = Object.keys(nodes);
    for (const name of names) builder.addNode(name, nodes[name]);
    if (edges.parallel) for (const name of names) builder.addEdge(START, name).addEdge(name, END);
    else [START, ...names].forEach((name, i) => builder.addEdge(name, names[i] ?? END));
    return builder;
};

/** Tokens, then a node without a model. */
export const chat = graphOf({
    chat: async (state) => ({ messages: [await model('Hello there').invoke(state.messages)] }),
    post: async () => ({ n: 1 }),
}).compile();

/** No model at all. */
export const plain = graphOf({ echo: async (state) => ({ messages: [new AIMessage({ content: `You wrote: ${lastText(state)}`, id: 'ai-1' })] }) }).compile();

/** The text of the model in a new message. */
export const rewrapped = graphOf({
    chat: async (state) => ({ messages: [new AIMessage((await model('twice').invoke(state.messages)).content)] }),
}).compile();

/** Two calls of a model in one node. */
export const twoCalls = graphOf({
    chat: async (state) => {
        const first = await model('first').invoke(state.messages);
        return { messages: [first, await model('second').invoke(state.messages)] };
    },
}).compile();

/** A model that calls a tool, and its result. */
export const tools = graphOf({
    call: async () => ({ messages: [new AIMessage({ content: '', id: 'ai-call', tool_calls: [{ id: 'c1', name: 'look_up', args: { city: 'Oslo' } }] })] }),
    tool: async () => ({ messages: [new ToolMessage({ content: 'snow', tool_call_id: 'c1', name: 'look_up', id: 'tool-1' })] }),
    answer: async (state) => ({ messages: [await model('It snows.').invoke(state.messages)] }),
}).compile();

const inner = graphOf({
    inner: async (state, config) => {
        emitTaskMetadata(config.writer, { from: 'inside' });
        return { messages: [await model('inside').invoke(state.messages)] };
    },
}).compile();
export const subgraph = new StateGraph(State).addNode('outer', inner).addEdge(START, 'outer').addEdge('outer', END).compile();

export const parallel = graphOf({
    a: async (state) => ({ messages: [await model('aaaa').invoke(state.messages)] }),
    b: async (state) => ({ messages: [await model('bbbb').invoke(state.messages)] }),
}, { parallel: true }).compile();

/** All emit functions, the usage example of the documentation. */
export const emits = graphOf({
    node: async (state, config) => {
        emitFile(config.writer, { url: 'https://example.com/report.pdf', mimeType: 'application/pdf' });
        emitData(config.writer, { status: 'success', results: [1, 2] }, { name: 'analysis' });
        emitMessage(config.writer, new AIMessage('Processing complete'));
        emitMessage(config.writer, new AIMessageChunk('chunk'));
        emitTaskMetadata(config.writer, { progress: 100 });
        config.writer({ mine: [1n, new Set([NaN])] });
        return {};
    },
}).compile();

export const outbox = graphOf({
    node: async (state) => {
        const text = lastText(state);
        if (text === 'task') return { a2a_outbox: { kind: 'task', artifacts: [{ artifactId: 'a', parts: [{ kind: 'text', text: 'x' }] }], metadata: { mine: 1 } } };
        if (text === 'wrapped') return { a2a_outbox: { message: { parts: [{ text: 'wrapped' }] } } };
        return text === 'message' ? { a2a_outbox: { kind: 'message', messageId: 'out-1', role: 'agent', parts: [{ kind: 'data', data: { a: 1 } }] } } : { n: 1 };
    },
}).compile();

/** A schema that does not allow null for the outbox. */
export const strict = new StateGraph(z.object({ messages: z.array(z.any()), a2a_outbox: z.object({ parts: z.array(z.any()) }).optional() }))
    .addNode('node', (state) => (state.messages[0].content === 'out' ? { a2a_outbox: { parts: [{ text: 'x' }] } } : { messages: state.messages }))
    .addEdge(START, 'node').addEdge('node', END).compile();

/** messages and inbox are in the state, and the input cannot write the inbox. */
export const narrow = new StateGraph({ stateSchema: State, input: Annotation.Root({ ...MessagesAnnotation.spec }) })
    .addNode('node', async () => ({})).addEdge(START, 'node').addEdge('node', END).compile();

export const inbox = graphOf({
    node: async ({ a2a_inbox: box }, config) => ({ messages: [new AIMessage(JSON.stringify({ box, tools: callerTools(config).map((t) => t.function.name), a2a: config.configurable.a2a }))] }),
}).compile();

/** Interrupts: once as text, once as an object. */
export const ask = graphOf({
    before: async () => {
        trace('before');
        return { messages: [new AIMessage({ content: 'Let me ask', id: 'ai-ask' })] };
    },
    ask: async (state) => {
        const text = interrupt(state.messages[0].content === 'object' ? { prompt: 'Your name?', a2a_state: 'auth-required' } : 'Your name?');
        trace('ask');
        return { messages: [new AIMessage(`Hello ${JSON.stringify(text)}, inbox ${JSON.stringify(state.a2a_inbox ?? null)}`)] };
    },
}).compile();

const book = tool(({ city }) => `${city}: ${interrupt(`Book ${city}?`)}`, {
    name: 'book', description: 'Books a flight', schema: z.object({ city: z.string() }) });
export const toolAsks = graphOf({
    call: () => ({ messages: [new AIMessage({ content: '', tool_calls: [{ name: 'book', args: { city: 'Bern' }, id: 'c1' }] })] }),
    tools: new ToolNode([book]),
    types: (state) => ({ messages: [new AIMessage(state.messages.map((m) => m.getType()).join(' '))] }),
}).compile();

export const askTwice = graphOf({
    a: async () => ({ messages: [new AIMessage(`a=${JSON.stringify(interrupt('A?'))}`)] }),
    b: async () => ({ messages: [new AIMessage(`b=${JSON.stringify(interrupt('B?'))}`)] }),
}, { parallel: true }).compile();

/** Three tasks of one node. */
export const askMany = new StateGraph(State).addNode('each', async ({ n }) => ({ messages: [new AIMessage(`${n}=${interrupt(`${n}?`)}`)] }))
    .addConditionalEdges(START, () => [1, 2, 3].map((n) => new Send('each', { n }))).addEdge('each', END).compile();

const innerAsk = graphOf({ inner: async () => ({ messages: [new AIMessage(`inner ${interrupt('Inside?')}`)] }) }).compile();
export const askInside = new StateGraph(State).addNode('outer', innerAsk).addEdge(START, 'outer').addEdge('outer', END).compile();

export const breakpoint = graphOf({ one: async () => ({ n: 1 }), two: async () => ({ n: 2 }) }).compile({ interruptBefore: ['two'] });

/** Stops in the second node until the file GATE exists. */
const gate = async () => {
    const { existsSync } = await import('node:fs');
    while (process.env.GATE && !existsSync(process.env.GATE)) await sleep(10);
};
export const slow = graphOf({
    s1: async () => {
        trace('s1');
        return { messages: [new AIMessage({ content: 'from s1', id: 'ai-s1' })] };
    },
    s2: async (state, config) => {
        trace('s2');
        config.writer({ at: 's2' });
        await gate();
        return { n: 2 };
    },
    s3: async () => {
        trace('s3');
        return { n: 3 };
    },
}).compile();

/** Asks, and stops in the answered node until the file GATE exists. */
export const askSlow = graphOf({
    before: async () => {
        trace('before');
        return {};
    },
    ask: async (state, config) => {
        const answer = interrupt('Your name?');
        trace('answered');
        config.writer({ at: 'ask' });
        await gate();
        return { messages: [new AIMessage({ content: `Hello ${answer}, ${state.a2a_inbox.message.messageId}`, id: 'ai-slow' })] };
    },
}).compile();

/** Its second node streams some chunks and stops until the file GATE exists. */
class Halting extends FakeListChatModel {
    async *_streamResponseChunks(...args) {
        let n = 0;
        for await (const chunk of super._streamResponseChunks(...args)) {
            yield chunk;
            if (++n === 4) await gate();
        }
    }
}
export const streamSlow = graphOf({
    before: async () => {
        trace('before');
        return {};
    },
    stream: async (state) => {
        trace('stream');
        return { messages: [await new Halting({ responses: ['half and whole'] }).invoke(state.messages)] };
    },
}).compile();

export const cpu = graphOf({
    node: async (state, config) => {
        config.writer({ at: 'start' });
        for (const end = Date.now() + Number(lastText(state)); Date.now() < end;);
        return { n: 1 };
    },
}).compile();

export const bad = graphOf({
    node: async (state, config) => {
        const what = lastText(state);
        if (what === 'throw') throw new TypeError('secret detail');
        if (what === 'reject') throw new TaskRejected('not on Sundays');
        if (what === 'long') config.writer({ text: 'x'.repeat(9 << 20) });
        if (what === 'stray') {
            setTimeout(() => {
                throw new Error('stray');
            }, 1);
            await sleep(60000, undefined, { signal: config.signal });
        }
        if (what === 'print') {
            console.log('line 1\nline 2');
            console.error('to stderr');
            process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\n');
        }
        return { n: 1 };
    },
}).compile();

export const loop = new StateGraph(State).addNode('again', async () => ({ n: 1 })).addEdge(START, 'again').addEdge('again', 'again').compile();

/** State of 9 MiB. */
export const large = graphOf({ node: async () => ({ n: 'y'.repeat(9 << 20) }), next: async (state) => ({ messages: [new AIMessage(`n has ${state.n.length}`)] }) }).compile();

export const ownSaver = graphOf({ node: async () => ({ n: 1 }) }).compile({ checkpointer: new MemorySaver() });

/** A state key without a reducer. */
export const list = new StateGraph(Annotation.Root({ messages: Annotation }))
    .addNode('node', async (state) => ({ messages: [...state.messages, new HumanMessage('injected'), new AIMessage({ content: `got ${state.messages[0].getType()}`, id: 'ai-l' })] }))
    .addEdge(START, 'node').addEdge('node', END).compile();

/** Content in blocks: reasoning, text, an image. */
export const blocks = graphOf({
    node: async () => ({ messages: [new AIMessage({ content: [{ type: 'reasoning', reasoning: 'hm' }, { type: 'text', text: 'see ' },
        { type: 'image', mimeType: 'image/png', data: 'aGk=' }, { type: 'text', text: 'this' }], id: 'ai-b' })] }),
}).compile();

/** A chunk that a node returns is in the state as it is. */
export const chunkInState = graphOf({ node: async () => ({ messages: [new AIMessageChunk({ content: 'as chunk', id: 'ai-c' })] }) }).compile();
