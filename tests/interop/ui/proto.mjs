// @ag-ui/proto reads our bytes, and we read its: both see what the JSON has.
import { decode, encode } from '@ag-ui/proto';
import { equal, run, test } from '../server/node/lib/tap.mjs';
import { convert, convertBytes, sse, stories, tell } from './lib/world.mjs';

function* frames(bytes) {
    for (let at = 0, n; at < bytes.length; at += 4 + n) {
        n = bytes.readUInt32BE(at);
        yield bytes.subarray(at + 4, at + 4 + n);
    }
}

const framed = (parts) => Buffer.concat(parts.flatMap((p) => {
    const head = Buffer.alloc(4);
    head.writeUInt32BE(p.length);
    return [head, Buffer.from(p)];
}));

const values = (text) => text.split('\n').filter((l) => l.startsWith('data: ')).map((l) => JSON.parse(l.slice(6)));

for (const s of stories) {
    test(`@ag-ui/proto reads ${s.name} with the values of the JSON`, async () => {
        equal([...frames(tell(s, 'ag-ui-proto'))].map((f) => decode(f)), values(tell(s, 'ag-ui').toString()), 'the events');
    });
    test(`@ag-ui/proto writes ${s.name} as we read it`, async () => {
        const events = values(tell(s, 'ag-ui').toString());
        const read = convertBytes('ag-ui-proto', 'ag-ui', framed(events.map((e) => encode(e)))).toString();
        equal(values(read), events, 'the events');
    });
    test(`@ag-ui/proto and we write ${s.name} with the same bytes`, async () => {
        const events = values(tell(s, 'ag-ui').toString());
        equal(tell(s, 'ag-ui-proto').toString('hex'), framed(events.map((e) => encode(e))).toString('hex'), 'the bytes');
    });
}

// every event with every member, which no story has
const parts = [
    { type: 'text', text: 'a', id: 'p', metadata: [1] }, { type: 'image', source: { type: 'data', value: 'aGk=', mimeType: 'image/png' } },
    { type: 'audio', source: { type: 'url', value: 'u' } }, { type: 'video', source: { type: 'file', value: 'f', provider: 'x' } },
    { type: 'document', source: { type: 'url', value: 'u', mimeType: 'a/b' } }];
const messages = [
    { id: '1', role: 'user', content: parts, name: 'n' }, { id: '3', role: 'tool', content: 'x', toolCallId: 'c', error: 'no' },
    { id: '2', role: 'assistant', content: '', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' }, encryptedValue: 'e', metadata: { k: 1 } }] },
    { id: '4', role: 'activity', activityType: 't', content: { n: null } }, { id: '5', role: 'reasoning', content: 'hm', encryptedValue: 'e' },
    { id: '6', role: 'developer', content: 'd', metadata: { a: {} } }, { id: '7', role: 'user', content: [] }];
const base = { timestamp: 1700000000000, rawEvent: { a: [1, -0.5, true, null, 'x', {}] }, metadata: { m: 1e300 } };
const by = { subagentRunId: 's' };
const events = [
    { type: 'RUN_STARTED', ...base, threadId: 't', runId: 'r', parentRunId: 'p', protocolVersion: '1.0',
        input: { threadId: 't', runId: 'r', state: {}, messages, tools: [{ name: 'f', description: 'd', parameters: { type: 'object' }, metadata: { z: 1 } }],
            context: [{ description: 'd', value: 'v' }], forwardedProps: { x: [] }, resume: [{ interruptId: 'i', status: 'resolved', payload: false }], protocolVersion: '1.0' } },
    { type: 'STEP_STARTED', stepName: 's', ...by }, { type: 'STEP_FINISHED', stepName: 's', ...by },
    { type: 'SUBAGENT_STARTED', ...by, name: 'n', description: 'd', parentToolCallId: 'c', parentMessageId: 'm' },
    { type: 'TEXT_MESSAGE_START', messageId: 'm', role: 'assistant', name: 'n', ...by }, { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm', delta: 'Hé 😀', ...by },
    { type: 'TEXT_MESSAGE_END', messageId: 'm', ...by },
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'f', parentMessageId: 'm' }, { type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta: '{}' },
    { type: 'TOOL_CALL_END', toolCallId: 'c' }, { type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c', content: parts, role: 'tool' },
    { type: 'TOOL_CALL_RESULT', messageId: 'm3', toolCallId: 'c', content: '' },
    { type: 'STATE_SNAPSHOT', snapshot: null }, { type: 'STATE_SNAPSHOT', snapshot: { a: 0.1, b: 9007199254740991 } },
    { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/a', value: null }, { op: 'test', path: '', value: 1 }, { op: 'move', path: '/b', from: '/a' }] },
    { type: 'MESSAGES_SNAPSHOT', messages }, { type: 'ACTIVITY_SNAPSHOT', messageId: 'a', activityType: 't', content: {}, replace: false },
    { type: 'ACTIVITY_DELTA', messageId: 'a', activityType: 't', patch: [{ op: 'remove', path: '/x' }] },
    { type: 'REASONING_START', messageId: 'q' }, { type: 'REASONING_MESSAGE_START', messageId: 'q', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'q', delta: 'hm' }, { type: 'REASONING_MESSAGE_END', messageId: 'q' }, { type: 'REASONING_END', messageId: 'q' },
    { type: 'REASONING_ENCRYPTED_VALUE', subtype: 'message', entityId: 'q', encryptedValue: 'e' },
    { type: 'SUBAGENT_FINISHED', ...by, result: [], outcome: { type: 'suspended', interruptIds: ['i'] } },
    { type: 'SUBAGENT_ERROR', subagentRunId: 'z', message: 'm', code: 'c' }, { type: 'RAW', event: null, source: 's' }, { type: 'CUSTOM', name: 'n', value: [1, 'x'] },
    { type: 'RUN_FINISHED', threadId: 't', runId: 'r', result: 7, usage: [{ model: 'm', provider: 'p', inputTokens: 5, outputTokens: 0, cacheWriteInputTokens: 1 }],
        outcome: { type: 'interrupt', interrupts: [{ id: 'i', reason: 'x', message: 'm', toolCallId: 'c', expiresAt: 'e', responseSchema: {}, metadata: { k: 1 }, ...by }] } }];

for (const [i, event] of events.entries()) {
    test(`event ${i}, ${event.type}, is the same to both`, async () => {
        const ours = convertBytes('ag-ui', 'ag-ui-proto', sse([event]));
        equal(decode([...frames(ours)][0]), event, 'what @ag-ui/proto reads');
        equal(JSON.parse(convert('ag-ui', 'ag-ui', sse([event])).slice(6)), event, 'what the JSON has');
        const theirs = convertBytes('ag-ui-proto', 'ag-ui', framed([encode(event)])).toString();
        equal(values(theirs), [event], 'what we read');
    });
}

await run();
