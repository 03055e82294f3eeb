// The graphs of ../python/agent.py in JavaScript: what they do is chosen by the message. No model is needed.
import { setTimeout as sleep } from 'node:timers/promises';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, ToolMessage } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { Annotation, END, MessagesAnnotation, MessagesZodState, START, StateGraph, interrupt } from '@langchain/langgraph';

/** Streams its text word by word. */
class Words extends BaseChatModel {
    constructor(text, pause) {
        super({});
        Object.assign(this, { text, pause });
    }

    _llmType() {
        return 'words';
    }

    async _generate() {
        return { generations: [{ text: this.text, message: new AIMessage(this.text) }] };
    }

    async *_streamResponseChunks(_messages, options, manager) {
        for (const [i, word] of this.text.split(' ').entries()) {
            await sleep(this.pause, undefined, { signal: options.signal });
            const text = i ? ` ${word}` : word;
            yield new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
            await manager?.handleLLMNewToken(text);
        }
    }
}

const WORDS = ['fail', 'ask', 'approve', 'slow', 'sleep', 'count', 'write', 'loop', 'both', 'tool'];
const say = (text) => ({ messages: [new AIMessage(text)] });

/** The last message that names what to do, else the last one: the answer to a question is a message, too. */
function lastText({ messages }) {
    const texts = messages.filter((m) => m.getType() === 'human').map((m) => m.text);
    const isWaiting = messages.at(-1)?.getType() === 'human';
    return (isWaiting ? texts.slice(-2) : texts).reverse().find((t) => WORDS.includes(t.split(' ')[0])) ?? texts.at(isWaiting ? 0 : -1) ?? '';
}

async function answer(state, config) {
    const text = lastText(state), [word, rest] = [text.split(' ')[0], text.split(' ').slice(1).join(' ')];
    switch (word) {
        case 'fail':
            throw new RangeError('the secret is 42');
        case 'ask':
            return say(`Hello ${interrupt({ prompt: rest || 'Your name?' })}`);
        case 'approve':
            return say(`answered ${JSON.stringify(interrupt({ prompt: 'May I?', kind: 'approval' }))}`);
        case 'slow':
            return { messages: [await new Words(Array.from({ length: Number(rest || 20) }, (_, i) => `w${i}`).join(' '), 30).invoke(state.messages)] };
        case 'sleep':
            await sleep(Number(rest || 30) * 1000, undefined, { signal: config.signal });
            return say('awake');
        case 'count':
            return say(`${state.messages.filter((m) => m.getType() === 'human').length} messages`);
        case 'write':
            config.writer({ progress: 50 });
            config.writer({ a2a: { type: 'artifact', kind: 'data', name: 'analysis', data: { status: 'success' }, append: false, is_last_chunk: true } });
            config.writer({ a2a: { type: 'artifact', kind: 'file', name: 'file', mime_type: 'application/pdf', url: 'https://example.com/report.pdf', append: false, is_last_chunk: true } });
            config.writer({ a2a: { type: 'task_metadata', metadata: { progress: 100 } } });
            return say('written');
        default:
            return { messages: [await new Words(`You said: ${text} with several words`, 5).invoke(state.messages)] };
    }
}

/** Its state is declared with zod: the server has the schemas of this graph. Of the other one it has none, which it finds out within seconds. */
export const graph = new StateGraph(MessagesZodState)
    .addNode('answer', answer)
    .addNode('loop', () => ({ messages: [] }))
    .addNode('both', () => ({ messages: [] }))
    .addNode('first', () => say(`first ${interrupt({ prompt: 'First?' })}`))
    .addNode('second', () => say(`second ${interrupt({ prompt: 'Second?' })}`))
    .addNode('call', () => ({ messages: [new AIMessage({ content: '', tool_calls: [{ name: 'book', args: {}, id: 'c1' }] })] }))
    .addNode('book', () => ({ messages: [new ToolMessage({ content: `booked: ${interrupt({ prompt: 'Book?' })}`, tool_call_id: 'c1' })] }))
    .addNode('types', (state) => say(state.messages.map((m) => m.getType()).join(' ')))
    .addConditionalEdges(START, (state) => ({ loop: 'loop', both: 'both', tool: 'call' })[lastText(state)] ?? 'answer', ['answer', 'loop', 'both', 'call'])
    .addEdge('call', 'book')
    .addEdge('book', 'types')
    .addEdge('types', END)
    .addEdge('loop', 'loop')
    .addEdge('both', 'first')
    .addEdge('both', 'second')
    .addEdge('answer', END)
    .compile();

const A2AState = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation, a2a_outbox: Annotation });

export const a2aGraph = new StateGraph(A2AState)
    .addNode('outbox', ({ a2a_inbox: { message, metadata } }) => ({ a2a_outbox: { kind: 'message', role: 'agent', messageId: `out-${message.messageId}`,
        parts: [{ kind: 'text', text: `${message.parts.length} parts` }, { kind: 'data', data: { metadata } }] } }))
    .addEdge(START, 'outbox')
    .addEdge('outbox', END)
    .compile();
