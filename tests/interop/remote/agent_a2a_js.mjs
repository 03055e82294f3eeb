// An agent of @a2a-js/sdk 1.x. usage: node agent_a2a_js.mjs PORT
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const find = createRequire(new URL('../node/package.json', import.meta.url));
const load = (name) => import(pathToFileURL(find.resolve(name)).href);
const sdk = await load('a2a-js-1');
const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } = await load('a2a-js-1/server');
const { agentCardHandler, jsonRpcHandler, restHandler } = await load('a2a-js-1/server/express');
const express = (await load('express')).default;

const port = Number(process.argv[2]);
const S = sdk.TaskState;
const part = ($case, value, more = {}) => ({ content: { $case, value }, metadata: undefined, filename: '', mediaType: '', ...more });
const waiting = new Map();
const status = (taskId, contextId, state, text) => AgentEvent.statusUpdate({
    taskId, contextId, metadata: undefined,
    status: {
        state, timestamp: new Date().toISOString(), message: text && {
            messageId: `m-${taskId}-${state}`, contextId, taskId, role: sdk.Role.ROLE_AGENT, parts: [part('text', text)], metadata: undefined, extensions: [], referenceTaskIds: [],
        },
    },
});
const artifact = (taskId, contextId, artifactId, one, append, lastChunk) => AgentEvent.artifactUpdate({
    taskId, contextId, append, lastChunk, metadata: undefined,
    artifact: { artifactId, name: '', description: '', parts: [one], metadata: undefined, extensions: [] },
});
const executor = {
    async execute({ userMessage, task, taskId, contextId }, bus) {
        const word = userMessage.parts[0].content.value;
        if (word === 'message') {
            bus.publish(AgentEvent.message({ messageId: 'm', contextId, taskId: '', role: sdk.Role.ROLE_AGENT, parts: [part('text', 'Hello')], metadata: undefined, extensions: [], referenceTaskIds: [] }));
            return bus.finished();
        }
        if (!task)
            bus.publish(AgentEvent.task({ id: taskId, contextId, status: { state: S.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() }, artifacts: [], history: [userMessage], metadata: undefined }));
        bus.publish(status(taskId, contextId, S.TASK_STATE_WORKING));
        if (word === 'wait') return new Promise((done) => waiting.set(taskId, { contextId, done }));
        if (word === 'fail') {
            bus.publish(status(taskId, contextId, S.TASK_STATE_FAILED, 'no luck'));
        } else if (word === 'ask') {
            bus.publish(status(taskId, contextId, S.TASK_STATE_INPUT_REQUIRED, 'Which one?'));
        } else if (word === 'files') {
            bus.publish(artifact(taskId, contextId, 'f', part('raw', Buffer.from('a,b\n'), { filename: 't.csv', mediaType: 'text/csv' }), false, true));
            bus.publish(artifact(taskId, contextId, 'd', part('data', { n: 1 }), false, true));
            bus.publish(status(taskId, contextId, S.TASK_STATE_COMPLETED));
        } else {
            ['Hello', ' ', 'world'].forEach((text, i) => bus.publish(artifact(taskId, contextId, 'a', part('text', text), i > 0, i === 2)));
            bus.publish(status(taskId, contextId, S.TASK_STATE_COMPLETED));
        }
        bus.finished();
    },
    async cancelTask(taskId, bus) {
        const { contextId, done } = waiting.get(taskId);
        bus.publish(status(taskId, contextId, S.TASK_STATE_CANCELED));
        bus.finished();
        done();
    },
};
const card = {
    name: 'Agent', description: 'An agent', version: '1', provider: undefined, iconUrl: '', documentationUrl: '',
    supportedInterfaces: [['JSONRPC', 'rpc'], ['HTTP+JSON', 'rest']].map(([protocolBinding, path]) => ({ url: `http://127.0.0.1:${port}/${path}`, protocolBinding, tenant: '', protocolVersion: '1.0' })),
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {}, securityRequirements: [], defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'],
    skills: [{ id: 's', name: 'S', description: 'does s', tags: ['x'], examples: [], inputModes: [], outputModes: [], securityRequirements: [] }], signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const userBuilder = async () => undefined;
const app = express();
app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder }));
app.use('/rest', restHandler({ requestHandler, userBuilder }));
app.listen(port, '127.0.0.1');
