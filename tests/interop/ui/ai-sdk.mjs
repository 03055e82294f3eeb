// `ai` reads what convert writes as a UI message stream, and takes the UI messages as its own.
import { convertToModelMessages, parseJsonEventStream, readUIMessageStream, safeValidateUIMessages, uiMessageChunkSchema } from 'ai';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';
import { convert, convertBytes, sse, stories, tell } from './lib/world.mjs';

/** The message as the stream ends; every chunk is one that the schema knows. */
async function see(bytes) {
    const chunks = [];
    const errors = [];
    const stream = parseJsonEventStream({ stream: new Blob([bytes]).stream(), schema: uiMessageChunkSchema }).pipeThrough(new TransformStream({
        transform(result, controller) {
            if (!result.success) throw result.error;
            chunks.push(structuredClone(result.value)); // the SDK puts later data into it
            controller.enqueue(result.value);
        },
    }));
    let message;
    for await (const m of readUIMessageStream({ stream, onError: (e) => errors.push(e) })) message = m;
    return { message, chunks, errors };
}

const tools = (m) => m.parts.filter((p) => p.type === 'dynamic-tool' || p.type.startsWith('tool-'));
const texts = (m) => m.parts.filter((p) => p.type === 'text').map((p) => p.text);

for (const s of stories) {
    test(`readUIMessageStream reads ${s.name}`, async () => {
        const { message, chunks, errors } = await see(tell(s, 'ai-sdk'));
        const failed = s.ends === 'failed' || s.ends === 'rejected';
        equal(errors.map((e) => e.message).filter((e) => !failed || !e), [], 'errors');
        if (s.error) equal(chunks.filter((c) => c.type === 'error').map((c) => c.errorText), [s.error], 'the error');
        if (s.name === 'corrected') equal(texts(message), [s.said, s.text], 'both texts, the last one counts');
        else if (!failed || s.error) equal(texts(message), s.texts ?? (s.text ? [s.text] : []), 'the texts');
        equal(tools(message).map((p) => ({ id: p.toolCallId, name: p.toolName, arguments: p.input })), s.calls, 'the calls');
        for (const p of tools(message)) {
            equal(p.state, p.toolCallId in s.results ? 'output-available' : 'input-available', `the state of ${p.toolCallId}`);
            equal(p.output, s.results[p.toolCallId], `the result of ${p.toolCallId}`);
            equal(!!p.providerExecuted, s.ends !== 'pending', `who runs ${p.toolCallId}`);
        }
        equal(message.parts.filter((p) => p.type === 'reasoning').map((p) => p.text), s.thought ? [s.thought] : [], 'what was thought');
        const status = message.parts.filter((p) => p.type === 'data-a2a-status').map((p) => p.data.state);
        equal(status, s.progress ? ['completed'] : [], 'progress is over');
        if (s.progress) check(chunks.some((c) => c.type === 'data-a2a-status' && c.data.text === s.progress), 'progress was shown');
        if (s.file) equal(message.parts.filter((p) => p.type === 'file').map((p) => p.url), [s.file], 'the file');
        if (s.shared) check(chunks.some((c) => c.type === 'data-state'), 'the state is sent');
        const last = chunks.at(-1);
        equal(last.type, s.ends === 'cancelled' ? 'abort' : 'finish', 'the end');
        if (last.type === 'finish') equal(last.finishReason, { failed: 'error', rejected: 'error', pending: 'tool-calls' }[s.ends] ?? 'stop', 'why');
    });

    test(`the messages of ${s.name} are the SDK's own`, async () => {
        const text = convert(s.from, 'ai-sdk', sse(s.events) + (s.from === 'openai-chat' ? 'data: [DONE]\n\n' : ''), '--as', 'messages');
        const messages = [JSON.parse(text)].flat();
        const valid = await safeValidateUIMessages({ messages });
        if (!valid.success && messages.length) throw valid.error;
        if (!messages.length || s.ends === 'rejected') return;
        equal(messages.flatMap(texts), s.texts ?? (s.text ? [s.text] : []), 'the texts');
        equal(messages.flatMap(tools).map((p) => ({ id: p.toolCallId, name: p.toolName, arguments: p.input })), s.calls, 'the calls');
        const model = await convertToModelMessages(messages, { ignoreIncompleteToolCalls: true });
        equal(model.filter((m) => m.role === 'tool').flatMap((m) => m.content).map((c) => c.toolCallId), Object.keys(s.results), 'results for the model');
    });
}

test('messages of a reader come back through AG-UI', async () => {
    const { message } = await see(tell(stories.find((s) => s.name === 'own-tools'), 'ai-sdk'));
    const user = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Look' }, { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,aGk=' }] };
    const request = { id: 'chat', messages: [user, message], trigger: 'submit-message' };
    const agui = JSON.parse(convert('ai-sdk', 'ag-ui', request));
    equal(agui.threadId, 'chat', 'the thread');
    equal(agui.messages.map((m) => m.role), ['user', 'assistant', 'tool', 'assistant'], 'who spoke');
    equal(agui.messages[1].toolCalls[0].id, agui.messages[2].toolCallId, 'the call and its result');
    const back = JSON.parse(convert('ag-ui', 'ai-sdk', agui));
    equal(back.messages.length, 2, 'two messages again');
    equal(back.messages[0].parts, user.parts, 'the parts of the user');
    equal(texts(back.messages[1]), texts(message), 'the texts');
    const valid = await safeValidateUIMessages({ messages: back.messages });
    if (!valid.success) throw valid.error;
});

test('a stream of the SDK is read, too', async () => {
    const bytes = tell(stories.find((s) => s.name === 'own-tools'), 'ai-sdk');
    const events = convertBytes('ai-sdk', 'ag-ui', bytes).toString().split('\n').filter((l) => l).map((l) => JSON.parse(l.slice(6)).type);
    equal([events[0], events.at(-1)], ['RUN_STARTED', 'RUN_FINISHED'], 'a run');
    for (const type of ['TOOL_CALL_START', 'TOOL_CALL_RESULT', 'TEXT_MESSAGE_START']) equal(events.filter((t) => t === type).length, 1, type);
});

await run();
