// The peer of our benchmarks: @a2a-js/sdk 1.3.0 behind express, with the contract of our agent `bench`:
//   echo ...            one Message with the same text
//   chunks N ...        submitted, working, N artifact-updates of one short text part, completed
//   chunks N yield ...  the same with a turn of the event loop between chunks
//   hold S ...          submitted, working, then silence for S seconds, completed
// Set up as the SDK's own guide does it: DefaultRequestHandler, InMemoryTaskStore, jsonRpcHandler.
//
//   node tests/bench/peer/server.mjs [PORT]      prints the port it listens on
import { randomUUID, webcrypto } from 'node:crypto';
import { createRequire } from 'node:module';

globalThis.crypto ??= webcrypto; // the SDK needs it; Node 18 hides it

// the packages that scripts/setup has pinned for the interop tests
const require = createRequire(new URL('../../interop/node/package.json', import.meta.url));
const { Role, TaskState } = require('a2a-js-1');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = require('a2a-js-1/server');
const { agentCardHandler, jsonRpcHandler } = require('a2a-js-1/server/express');
const express = require('express');

const text = (value) => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: '' });
const message = (contextId, taskId, words) => ({
    messageId: randomUUID(), contextId, taskId, role: Role.ROLE_AGENT, parts: [text(words)],
    metadata: undefined, extensions: [], referenceTaskIds: [],
});
const turn = () => new Promise((done) => setImmediate(done));

class BenchExecutor {
    async execute({ userMessage, taskId, contextId }, bus) {
        const said = userMessage.parts[0].content.value;
        const chunks = /^chunks (\d+)( yield)?/.exec(said);
        const hold = /^hold ([\d.]+)/.exec(said);
        if (!chunks && !hold) {
            bus.publish(AgentEvent.message(message(contextId, '', said)));
            return bus.finished();
        }
        const status = (state, words) => bus.publish(AgentEvent.statusUpdate({
            taskId, contextId, metadata: undefined,
            status: { state, message: words ? message(contextId, taskId, words) : undefined, timestamp: new Date().toISOString() },
        }));
        bus.publish(AgentEvent.task({
            id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined,
            status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() },
        }));
        status(TaskState.TASK_STATE_WORKING);
        let all = '';
        for (let i = 1, n = chunks ? Number(chunks[1]) : 0; i <= n; i++) {
            if (chunks[2]) await turn();
            all += `${i} `;
            bus.publish(AgentEvent.artifactUpdate({
                taskId, contextId, append: i > 1, lastChunk: i === n, metadata: undefined,
                artifact: { artifactId: 'answer', name: '', description: '', parts: [text(`${i} `)], metadata: undefined, extensions: [] },
            }));
        }
        if (hold) {
            await new Promise((done) => setTimeout(done, Number(hold[1]) * 1000));
            all = 'held';
        }
        status(TaskState.TASK_STATE_COMPLETED, all);
        bus.finished();
    }

    async cancelTask() {}
}

const port = Number(process.argv[2] ?? 0);
const card = {
    name: 'Bench', description: 'Answers as fast as it can', version: '1', provider: undefined,
    supportedInterfaces: [{ url: `http://127.0.0.1:${port}/`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 'bench', name: 'Bench', description: 'echo, chunks, hold', tags: ['benchmark'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }],
    signatures: [],
};
const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new BenchExecutor());
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: handler }));
app.use('/', jsonRpcHandler({ requestHandler: handler, userBuilder: async () => undefined }));
const server = app.listen(port, '127.0.0.1', () => console.log(server.address().port));
