// Every A2A object through the generated codecs of @a2a-js/sdk 1.x: what we write it reads, what it
// writes we read.
import * as sdk from 'a2a-js-1';
import { convertJson, equal, inDialect, normal, objectsOf, othersOf, run, same, test } from './lib/interop.mjs';

const own = 'a2a-1.0';

const codecs = {
    message: sdk.Message,
    task: sdk.Task,
    artifact: sdk.Artifact,
    'status-update': sdk.TaskStatusUpdateEvent,
    'artifact-update': sdk.TaskArtifactUpdateEvent,
    'stream-response': sdk.StreamResponse,
    'send-response': sdk.SendMessageResponse,
    'send-request': sdk.SendMessageRequest,
    'get-task-request': sdk.GetTaskRequest,
    'cancel-request': sdk.CancelTaskRequest,
    'subscribe-request': sdk.SubscribeToTaskRequest,
    'list-tasks-request': sdk.ListTasksRequest,
    'list-tasks-response': sdk.ListTasksResponse,
    'push-config': sdk.TaskPushNotificationConfig,
    'push-config-list': sdk.ListTaskPushNotificationConfigsResponse,
    'push-get-request': sdk.GetTaskPushNotificationConfigRequest,
    'push-list-request': sdk.ListTaskPushNotificationConfigsRequest,
    'push-delete-request': sdk.DeleteTaskPushNotificationConfigRequest,
    card: sdk.AgentCard,
    'extended-card-request': sdk.GetExtendedAgentCardRequest,
};

/** What a 1.0 reader must also take: the proto's own snake_case names. Opaque values keep theirs. */
function snakeCase(value, key = '') {
    if (Array.isArray(value)) return value.map((v) => snakeCase(v, key));
    if (value === null || typeof value !== 'object') return value;
    const names = ['securitySchemes', 'schemes'].includes(key); // their keys are the user's
    return Object.fromEntries(
        Object.entries(value).map(([k, v]) => [
            names ? k : k.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`),
            ['metadata', 'data', 'params', 'header', 'scopes'].includes(k) ? v : snakeCase(v, k),
        ]),
    );
}

for (const { name, object, hint } of objectsOf(own)) {
    const codec = codecs[object];
    const expected = inDialect(name, own);
    const meant = codec.fromJSON(expected);

    for (const other of othersOf(name, own)) {
        test(`a2a-js 1 reads our ${name}, made from ${other}`, () => {
            const ours = convertJson(other, own, inDialect(name, other), { object: hint });
            equal(codec.fromJSON(ours), meant, 'what the SDK reads');
            same(codec.toJSON(codec.fromJSON(ours)), ours, 'what the SDK keeps of it');
        });
        test(`we read a2a-js 1's ${name} into ${other}, and back`, () => {
            const theirs = codec.toJSON(meant);
            const ours = convertJson(own, other, theirs, { object: hint });
            same(ours, inDialect(name, other), other);
            equal(codec.fromJSON(convertJson(other, own, ours, { object: hint })), meant, 'after the way back');
        });
    }

    test(`a2a-js 1 reads our ${name}, made from snake_case`, () => {
        const ours = convertJson(own, own, snakeCase(expected), { object });
        equal(codec.fromJSON(ours), meant, 'what the SDK reads');
        const text = JSON.stringify(normal(ours));
        if (/"[a-z]+_[a-z_]+":/.test(text.replace(/"snake_key":/g, ''))) throw new Error(`snake_case in ${text}`);
    });
}

test('a2a-js 1 finds each part of our message in its own case', () => {
    const name = 'message of the user, every kind of part';
    const { parts, role } = sdk.Message.fromJSON(convertJson('a2a-0.3', own, inDialect(name, 'a2a-0.3')));
    equal(role, sdk.Role.ROLE_USER, 'role');
    equal(parts.map((p) => p.content.$case), ['text', 'text', 'raw', 'url', 'data'], 'cases');
    equal(parts[2].content.value, Buffer.from([0xfb, 0xff, 0xfe, 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), 'bytes');
    equal([parts[2].filename, parts[2].mediaType], ['dot.png', 'image/png'], 'file');
    equal(parts[1].metadata, { lang: 'de', score: 0.5 }, 'metadata');
    equal(parts[4].content.value.deep.list[2], null, 'null in data');
});

test('a2a-js 1 finds our security schemes in their own cases', () => {
    const card = sdk.AgentCard.fromJSON(convertJson('a2a-0.3', own, inDialect('card with everything', 'a2a-0.3')));
    equal(
        Object.fromEntries(Object.entries(card.securitySchemes).map(([k, v]) => [k, v.scheme.$case])),
        {
            key: 'apiKeySecurityScheme', bearer: 'httpAuthSecurityScheme', oidc: 'openIdConnectSecurityScheme', mtls: 'mtlsSecurityScheme',
            code: 'oauth2SecurityScheme', machine: 'oauth2SecurityScheme', implicit: 'oauth2SecurityScheme', password: 'oauth2SecurityScheme',
        },
        'schemes',
    );
    const flow = (k) => card.securitySchemes[k].scheme.value.flows.flow.$case;
    equal(['code', 'machine', 'implicit', 'password'].map(flow), ['authorizationCode', 'clientCredentials', 'implicit', 'password'], 'flows');
    equal(card.securityRequirements[0].schemes, { code: { list: ['read', 'write'] }, mtls: { list: [] } }, 'requirements');
    equal(card.capabilities.extendedAgentCard, true, 'extended card');
});

test('a2a-js 1 sees that a flag is set to false, not absent', () => {
    const card = sdk.AgentCard.fromJSON(convertJson(own, own, inDialect('card with what only 1.0 has', own)));
    equal([card.capabilities.streaming, card.capabilities.pushNotifications, card.capabilities.extendedAgentCard], [false, undefined, false], 'flags');
    const request = sdk.GetTaskRequest.fromJSON(convertJson('a2a-0.3', own, { id: 't', historyLength: 0 }, { object: 'get-task-request' }));
    equal(request.historyLength, 0, 'historyLength');
});

test('a2a-js 1 reads all of our ListTasks members, the empty ones too', () => {
    const ours = convertJson(own, own, {}, { object: 'list-tasks-response' });
    equal(Object.keys(ours).sort(), ['nextPageToken', 'pageSize', 'tasks', 'totalSize'], 'members');
});

test('we read states and roles that a2a-js 1 would write as numbers', () => {
    const ours = convertJson(own, 'a2a-0.3', {
        id: 't', contextId: 'c', status: { state: sdk.TaskState.TASK_STATE_AUTH_REQUIRED },
        history: [{ messageId: 'm', role: sdk.Role.ROLE_AGENT, parts: [{ text: 'x' }] }],
    });
    equal([ours.status.state, ours.history[0].role], ['auth-required', 'agent'], 'enums');
});

await run();
