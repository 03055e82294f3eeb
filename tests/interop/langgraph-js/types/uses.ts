import { AIMessage } from '@langchain/core/messages';
import { Annotation, MessagesAnnotation, type LangGraphRunnableConfig } from '@langchain/langgraph';
import { agent, Failed, type Answer, type Turn } from 'dragoman';
import { emitData, emitFile, emitMessage, emitTaskMetadata, callerTools, type A2AInbox, type A2AOutbox } from 'dragoman/langgraph';
import { Conversation, runAgent } from 'dragoman/testing';

export const main = agent({ name: 'Main', skills: [{ id: 's', name: 'S' }] }, async (turn: Turn) => {
    for (const message of turn.history) await turn.write(`${message.role}: ${message.text}`);
    const answer: Answer = await turn.ask('Which?', { choices: ['a', 'b'] });
    const rows = await turn.step('load', async (n: number) => ({ rows: n }), 3);
    await turn.toolCall('search', { q: answer.text }, async ({ q }) => q.length);
    const call = turn.toolCall('other', { a: 1 });
    await call.succeeded(rows.rows + 1);
    turn.state.count = 1;
    await turn.file('a.txt', 'text');
    await turn.file('b.pdf', null, { url: 'https://example.com/b.pdf' });
    await turn.usage({ inputTokens: 1, outputTokens: 2, model: 'm' });
    if (turn.signal.aborted) throw new Failed('stopped');
    // @ts-expect-error: write() accepts text
    await turn.write(3);
});
export const generator = agent(async function* (turn) {
    yield turn.text;
});
// @ts-expect-error: a number is not an answer
export const wrong = agent(async () => 3);

export async function tests(): Promise<string> {
    const conversation = new Conversation(main, { metadata: { k: 1 } });
    const first = await conversation.send('hello');
    return first.question ?? (await runAgent(main, { parts: [{ text: 'x' }] })).text;
}

const State = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation<A2AInbox>, a2a_outbox: Annotation<A2AOutbox | null> });
export const node = async (state: typeof State.State, config: LangGraphRunnableConfig) => {
    emitFile(config.writer, { url: 'https://example.com/a.pdf', mimeType: 'application/pdf' });
    emitData(config.writer, { rows: [1] }, { name: 'analysis', isLastChunk: false });
    emitMessage(config.writer, new AIMessage('done'));
    emitTaskMetadata(config.writer, { progress: 100 });
    // @ts-expect-error: url and base64 exclude each other
    emitFile(config.writer, { url: 'x', base64: 'eA==', mimeType: 'a/b' });
    // @ts-expect-error: mimeType is missing
    emitFile(config.writer, { url: 'x' });
    return { a2a_outbox: { parts: [{ kind: 'text' as const, text: `${state.a2a_inbox.message.parts.length} ${callerTools(config).length}` }] } };
};
