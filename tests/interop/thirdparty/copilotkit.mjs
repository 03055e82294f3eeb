// CopilotKit's runtime and core against a live server: text, a tool of the page, structured data, a question that is answered in the chat, an
// approval, a failure.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

Object.assign(process.env, { COPILOTKIT_TELEMETRY_DISABLED: 'true', DO_NOT_TRACK: '1', SUPPRESS_TRANSFORMATION_WARNINGS: '1' });
const { HttpAgent } = await import('@ag-ui/client');
const { CopilotKitCore } = await import('@copilotkit/core');
const { CopilotRuntime } = await import('@copilotkit/runtime/v2');
const { createCopilotNodeListener } = await import('@copilotkit/runtime/v2/node');
const { Server } = await import('../server/node/lib/server.mjs');
const { check, equal, run, test, until } = await import('../server/node/lib/tap.mjs');

console.error = console.warn = () => {}; // both halves report every error there, those that are due included
const dragoman = await new Server({ agents: [{ id: 'demo', type: 'demo', default: true, settings: { pace: 0 } }] }).start();
const runtime = new CopilotRuntime({ agents: { default: new HttpAgent({ url: `${dragoman.url}/ag-ui` }) } });
const web = createServer(createCopilotNodeListener({ runtime, basePath: '/api' }));
await new Promise((done) => web.listen(0, '127.0.0.1', done));
// core connects only where there is a window
globalThis.window = Object.assign(new EventTarget(), { location: new URL(`http://127.0.0.1:${web.address().port}/`), setTimeout, clearTimeout });

/** A page with its own thread. */
async function page(tools = []) {
    const errors = [];
    const core = new CopilotKitCore({ runtimeUrl: `http://127.0.0.1:${web.address().port}/api`, tools });
    core.subscribe({ onError: ({ error, code }) => errors.push({ error, code }) });
    core.connect?.();
    await until(() => core.getAgent('default'), 'the runtime names its agents');
    const agent = core.getAgent('default').clone();
    agent.threadId = randomUUID();
    const say = async (content) => {
        agent.addMessage({ id: randomUUID(), role: 'user', content });
        await core.runAgent({ agent });
        return agent.messages.filter((m) => m.role === 'assistant').at(-1)?.content;
    };
    return { core, agent, errors, say };
}

test('CopilotKit: text', async () => {
    const { say, errors } = await page();
    equal(await say('tools'), 'It is sunny in Oakland, 72°F.', 'the answer');
    equal(errors, [], 'errors');
});

test('CopilotKit: a tool of the page', async () => {
    const { say } = await page([{ name: 'get_weather', description: 'The weather', handler: async ({ location }) => `Rain in ${location}` }]);
    equal(await say('client-tool'), 'Your tool says: Rain in Oakland', 'the answer');
});

test('CopilotKit: data is an event of its own', async () => {
    const { agent, say } = await page();
    const seen = [];
    agent.subscribe({ onCustomEvent: ({ event }) => { seen.push(event); } });
    await say('data');
    equal(seen.filter((e) => e.name === 'dragoman:artifact').map((e) => e.value.artifact.parts[0].data.city), ['Oakland'], 'the data');
});

test('CopilotKit: a question is answered in the chat', async () => {
    const { agent, say, errors } = await page();
    equal(await say('ask'), 'What is your name?', 'the question');
    check((await say('Ann')).startsWith('Hello Ann'), () => agent.messages.at(-1).content);
    equal(errors, [], 'errors');
});

test('CopilotKit: an approval is an interrupt, and resume answers it', async () => {
    const { core, agent, say } = await page();
    await say('interrupt');
    const [{ id, metadata }] = agent.pendingInterrupts;
    equal(metadata.approval.tool, 'delete_file', 'the tool');
    await agent.runAgent({ resume: [{ interruptId: id, status: 'resolved', payload: { approved: true } }] });
    check(agent.messages.at(-1).content.startsWith('You said yes'), agent.messages.at(-1).content);
    void core;
});

test('CopilotKit: a task that fails is an error', async () => {
    const { say, errors } = await page();
    await say('fail');
    check(errors.some(({ error }) => error.message.includes('the demo was asked to fail')), () => JSON.stringify(errors.map(String)));
});

await run(async () => {
    web.close();
    web.closeAllConnections();
    await dragoman.stop();
});
