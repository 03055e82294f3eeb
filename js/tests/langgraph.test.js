// The functions for authors of graphs, without LangGraph: they only call the writer.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callerTools, emitData, emitFile, emitMessage, emitTaskMetadata } from '../langgraph.js';

const sent = (emit) => {
    const values = [];
    emit((v) => values.push(v.a2a));
    return values[0];
};
const ai = { content: 'hi', id: 'a', getType: () => 'ai' };

test('emitFile: url or base64, a MIME type, a name', () => {
    assert.deepEqual(sent((w) => emitFile(w, { base64: 'aGk=', mimeType: 'a/b', name: 'n', append: true, isLastChunk: false })),
        { type: 'artifact', kind: 'file', name: 'n', mime_type: 'a/b', base64: 'aGk=', append: true, is_last_chunk: false });
    assert.throws(() => emitFile(() => {}, { url: 'x', base64: 'y', mimeType: 'a/b' }), /exactly one of url and base64, got both/);
    assert.throws(() => emitFile(() => {}, { mimeType: 'a/b' }), /got neither/);
    assert.throws(() => emitFile(() => {}, { url: 'x' }), /missing mimeType/);
    assert.throws(() => emitFile(() => {}, { url: 3, mimeType: 'a/b' }), /url: expected a string, got number/);
});

test('emitFile: a file that is too large for one event is sent in several', () => {
    const values = [], base64 = Buffer.alloc(8 << 20, 'x').toString('base64');
    emitFile((v) => values.push(v.a2a), { base64: `${base64.slice(0, 76)}\n${base64.slice(76)}`, mimeType: 'a/b', name: 'n' });
    assert.deepEqual(values.map((v) => [v.base64.length % 4, v.append, v.is_last_chunk]), [[0, false, false], [0, true, false], [0, true, true]]);
    assert.equal(values.map((v) => v.base64).join(''), base64);
    assert.throws(() => emitFile(() => {}, { base64: 'A'.repeat(28 << 20), mimeType: 'a/b' }), /the limit file_bytes is 20971520/);
});

test('emitData: JSON only, and the error names the place', () => {
    assert.deepEqual(sent((w) => emitData(w, [1, null])), { type: 'artifact', kind: 'data', name: 'data', data: [1, null], append: false, is_last_chunk: true });
    assert.throws(() => emitData(() => {}, { a: { b: () => 1 } }), (e) => e instanceof TypeError && e.message === 'data.a.b: expected JSON, got a function');
});

test('emitMessage: messages of the AI, chunks are marked', () => {
    assert.deepEqual(sent((w) => emitMessage(w, ai)), { type: 'message', message: { type: 'ai', content: 'hi', id: 'a' } });
    assert.equal(sent((w) => emitMessage(w, { ...ai, concat() {} })).message.chunk, true);
    assert.throws(() => emitMessage(() => {}, { ...ai, getType: () => 'human' }), /expected an AIMessage or AIMessageChunk/);
    assert.throws(() => emitMessage(() => {}, 'text'), /got String/);
});

test('emitTaskMetadata: an object of JSON', () => {
    assert.deepEqual(sent((w) => emitTaskMetadata(w, { progress: 1 })), { type: 'task_metadata', metadata: { progress: 1 } });
    assert.throws(() => emitTaskMetadata(() => {}, [1]), /expected an object/);
    assert.throws(() => emitTaskMetadata(() => {}, { a: undefined }), /metadata\.a: expected JSON/);
});

test('without a writer nothing happens; something else than a writer is an error', () => {
    emitData(undefined, 1);
    assert.throws(() => emitData({ writer() {} }, 1), /expected the writer of the node's configuration/);
});

test('callerTools has the form that models accept', () => {
    assert.deepEqual(callerTools({ configurable: { tools: [{ name: 't' }] } }), [{ type: 'function', function: { name: 't', description: '', parameters: { type: 'object', properties: {} } } }]);
    assert.deepEqual(callerTools(undefined), []);
});
