// Functions of the Functional API. The text of the message says what they do.
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { entrypoint, getPreviousState, interrupt, task } from '@langchain/langgraph';
import { emitData } from 'dragoman/langgraph';

const think = task('think', async (text) => {
    if (process.env.TRACE) appendFileSync(process.env.TRACE, 'think\n');
    return (await new FakeListChatModel({ responses: [`thought ${text}`] }).invoke('x')).content;
});

export const agent = entrypoint('agent', async (inputs, config) => {
    const text = inputs.messages.at(-1).content, word = text.split(' ')[0];
    const thought = ['ask', 'stream', 'wait'].includes(word) ? await think(text) : '';
    if (word === 'ask') return { messages: [new AIMessage(`${thought}, ${interrupt({ prompt: 'Your name?' })}`)] };
    if (word === 'remember') {
        const seen = [...(getPreviousState() ?? []), text];
        return entrypoint.final({ value: seen.join(' | '), save: seen });
    }
    if (word === 'outbox') {
        emitData(config.writer, { n: 1 });
        return { a2a_outbox: { role: 'ROLE_AGENT', messageId: 'out-1', parts: [{ text: `to ${inputs.a2a_inbox.message.messageId}` }, { data: { x: 1 } }] } };
    }
    if (word === 'stream') return null;
    if (word === 'wait') {
        while (!existsSync(process.env.GATE)) await sleep(20);
        return new AIMessage(`${thought}, done`);
    }
    return { messages: [new AIMessage(`functional: ${text}`)] };
});
