// `ai` with npm a2a-ai-provider as its model, against hello and demo: text once, Message answers and questions shown.
import { readFileSync } from 'node:fs';
import { a2a } from 'a2a-ai-provider';
import { generateText, streamText } from 'ai';
import { Server } from '../server/node/lib/server.mjs';
import { check, equal, run, test } from '../server/node/lib/tap.mjs';

const server = await new Server({
    agents: [
        { id: 'demo', type: 'demo', default: true, settings: { pace: 0 } },
        { id: 'once', type: 'demo', settings: { pace: 0 }, final_text: 'omit' },
        { id: 'hello', type: 'hello' },
    ],
}).start();
globalThis.AI_SDK_LOG_WARNINGS = false; // that the provider is of an older make
const model = (agent) => a2a(`${server.url}/agents/${agent}/.well-known/agent-card.json`);

/** It says all it does on stdout, where our TAP goes. */
async function quietly(what) {
    const log = console.log;
    console.log = () => {};
    try {
        return await what();
    } finally {
        console.log = log;
    }
}

const ask = (agent, prompt, contextId) =>
    quietly(async () => generateText({ model: model(agent), prompt, providerOptions: contextId && { a2a: { contextId } }, maxRetries: 0 }));
const stream = (agent, prompt) =>
    quietly(async () => {
        const errors = [];
        const r = streamText({ model: model(agent), prompt, maxRetries: 0, onError: ({ error }) => errors.push(error) });
        let pieces = 0;
        let text = '';
        for await (const piece of r.textStream) [pieces, text] = [pieces + 1, text + piece];
        return { text, pieces, errors, files: await r.files, whole: await r.text };
    });

/** The answer as A2A has it. */
async function answer(words) {
    const params = { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: words }] } };
    const r = await fetch(server.url, { method: 'POST', headers: { 'content-type': 'application/json', 'A2A-Version': '1.0' }, body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }) });
    return (await r.json()).result.task.status.message.parts.map((p) => p.text).join('');
}

for (const [name, version] of Object.entries(JSON.parse(readFileSync(new URL('package.json', import.meta.url))).dependencies))
    test(`${name} is ${version}`, async () => equal(JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version, version, 'the version'));

for (const how of [ask, stream])
    test(`hello: a Message is the answer, ${how === ask ? 'whole' : 'streamed'} [R004-23]`, async () => {
        const { text, errors = [] } = await how('hello', 'hi');
        equal(errors, [], 'errors');
        equal(text.match(/Hello!/g)?.length, 1, `greetings in ${text}`);
    });

for (const script of ['stream', 'echo so many words', 'unicode', 'long 50', 'status', 'tools', 'data'])
    test(`demo ${script}: the text once, streamed`, async () => {
        const { text, whole, pieces, errors } = await stream('demo', script);
        equal(errors, [], 'errors');
        equal(text, await answer(script), 'the answer');
        equal(whole, text, 'as a whole');
        if (script === 'stream') check(pieces > 10, `pieces: ${pieces}`);
    });

for (const script of ['stream', 'echo so many words', 'status'])
    test(`demo ${script}: the text once, whole, where the end does not repeat it`, async () =>
        equal((await ask('once', script)).text, await answer(script), 'the answer'));

test('a file is a file', async () => {
    const { files } = await stream('demo', 'file');
    equal(files.map((f) => f.mediaType), ['text/csv', 'image/png'], 'files that came as bytes');
});

for (const [script, words] of [['ask', 'What is your name?'], ['interrupt', '?']])
    test(`${script}: the question is shown`, async () => {
        const { text } = await ask('demo', script, `chat-${script}`);
        check(text.includes(words) && text.split(words).length >= 2, text);
    });

await run(() => server.stop());
