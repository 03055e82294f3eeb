// The clients of @a2a-js/sdk, each on each of its transports, behind one face: what goes in and comes out
// is A2A 1.0's JSON. They are made as a user makes them, by the factory, from the address of the card.
import { client03, client1, sdk1 } from '../../../node/lib/sdks.mjs';
import { checkFrames } from './frames.mjs';

// ---- the wire, listened to ---------------------------------------------------------------------------

/** fetch that keeps every stream in `streams`, as text. */
const recording = (streams, kind) => async (url, init) => {
    const response = await fetch(url, init);
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return response;
    const stream = { text: '', ...kind };
    streams.push(stream);
    const decoder = new TextDecoder();
    const keep = new TransformStream({
        transform(bytes, out) {
            stream.text += decoder.decode(bytes, { stream: true });
            out.enqueue(bytes);
        },
    });
    return new Response(response.body.pipeThrough(keep), { status: response.status, headers: response.headers });
};

const withToken = (sdk, fetchImpl, token) => !token ? fetchImpl : sdk.createAuthenticatingFetchWithRetry(fetchImpl, {
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
});

async function connect(sdk, binding, base, options) {
    const factory = new sdk.ClientFactory({
        transports: [new sdk.JsonRpcTransportFactory(options), new sdk.RestTransportFactory(options)],
        preferredTransports: [binding],
        cardResolver: new sdk.DefaultAgentCardResolver(options),
    });
    const client = await factory.createFromUrl(base);
    if (!client.transport.constructor.name.includes(binding === 'JSONRPC' ? 'JsonRpc' : 'Rest'))
        throw new Error(`the card has no ${binding}: the client took ${client.transport.constructor.name}`);
    return client;
}

async function* mapped(events, change) {
    for await (const event of events) yield change(event);
}

// ---- 1.x ----------------------------------------------------------------------------------------------

const answer1 = (r) => ('messageId' in r ? { message: sdk1.Message.toJSON(r) } : { task: sdk1.Task.toJSON(r) });

class Client1 {
    constructor(client, tenant) {
        Object.assign(this, { client, tenant });
    }
    /** The client does not send a request for what the card does not offer; its transport does. */
    get raw() {
        return { serviceParameters: { 'A2A-Version': this.client.protocolVersion } };
    }
    request(codec, members) {
        return codec.fromJSON({ ...(this.tenant && { tenant: this.tenant }), ...members });
    }
    async card() {
        return sdk1.AgentCard.toJSON(await this.client.getAgentCard());
    }
    async send(message, configuration = {}) {
        return answer1(await this.client.sendMessage(this.request(sdk1.SendMessageRequest, { message, configuration })));
    }
    stream(message, options) {
        return mapped(this.client.sendMessageStream(this.request(sdk1.SendMessageRequest, { message }), options), sdk1.StreamResponse.toJSON);
    }
    async get(id, historyLength) {
        return sdk1.Task.toJSON(await this.client.getTask(this.request(sdk1.GetTaskRequest, { id, historyLength })));
    }
    async list(filters) {
        return sdk1.ListTasksResponse.toJSON(await this.client.listTasks(this.request(sdk1.ListTasksRequest, filters)));
    }
    async cancel(id) {
        return sdk1.Task.toJSON(await this.client.cancelTask(this.request(sdk1.CancelTaskRequest, { id })));
    }
    subscribe(id, options) {
        return mapped(this.client.resubscribeTask(this.request(sdk1.SubscribeToTaskRequest, { id }), options), sdk1.StreamResponse.toJSON);
    }
    setPush(taskId) {
        return this.client.transport.createTaskPushNotificationConfig(this.request(sdk1.TaskPushNotificationConfig, { taskId, id: 'p', url: 'https://example.com/push' }), this.raw);
    }
    extendedCard() {
        return this.client.transport.getExtendedAgentCard(this.request(sdk1.GetExtendedAgentCardRequest, {}), this.raw);
    }
}

// ---- 0.3 ----------------------------------------------------------------------------------------------

const part03 = ({ text, raw, url, data, filename, mediaType }) =>
    text !== undefined ? { kind: 'text', text }
        : data !== undefined ? { kind: 'data', data }
        : { kind: 'file', file: { ...(raw ? { bytes: raw } : { uri: url }), name: filename, mimeType: mediaType } };
const message03 = ({ role, parts, ...rest }) => ({ kind: 'message', ...rest, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(part03) });

const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined && v !== null));
const part1 = ({ kind, text, data, file, metadata }) =>
    clean(kind === 'text' ? { text, metadata } : kind === 'data' ? { data, metadata }
        : { raw: file.bytes, url: file.uri, filename: file.name, mediaType: file.mimeType, metadata });
const message1 = ({ kind, role, parts, ...rest }) => clean({ ...rest, role: `ROLE_${role.toUpperCase()}`, parts: parts.map(part1) });
const status1 = ({ state, message, timestamp }) =>
    clean({ state: `TASK_STATE_${state.toUpperCase().replace('-', '_')}`, message: message && message1(message), timestamp });
const artifact1 = ({ parts, ...rest }) => clean({ ...rest, parts: parts.map(part1) });
const task1 = ({ kind, status, history, artifacts, ...rest }) =>
    clean({ ...rest, status: status1(status), history: history?.map(message1), artifacts: artifacts?.map(artifact1) });
function event1({ kind, final, ...event }) {
    if (kind === 'task') return { task: task1(event) };
    if (kind === 'message') return { message: message1(event) };
    if (kind === 'status-update') return { statusUpdate: clean({ ...event, status: status1(event.status) }) };
    return { artifactUpdate: clean({ ...event, artifact: artifact1(event.artifact) }) };
}

class Client03 {
    constructor(client) {
        this.client = client;
    }
    card() {
        return this.client.getAgentCard();
    }
    async send(message, { returnImmediately, ...configuration } = {}) {
        return event1(await this.client.sendMessage({ message: message03(message), configuration: { ...configuration, blocking: !returnImmediately } }));
    }
    stream(message, options) {
        return mapped(this.client.sendMessageStream({ message: message03(message) }, options), event1);
    }
    async get(id, historyLength) {
        return task1(await this.client.getTask({ id, historyLength }));
    }
    async cancel(id) {
        return task1(await this.client.cancelTask({ id }));
    }
    subscribe(id, options) {
        return mapped(this.client.resubscribeTask({ id }, options), event1);
    }
    setPush(taskId) {
        return this.client.transport.setTaskPushNotificationConfig({ taskId, pushNotificationConfig: { id: 'p', url: 'https://example.com/push' } });
    }
    extendedCard() {
        return this.client.transport.getExtendedAgentCard();
    }
}

// ---- all of them --------------------------------------------------------------------------------------

const kind = (label, version, binding, sdk, Client, more) => {
    const streams = [];
    const rpc = binding === 'JSONRPC';
    return {
        name: `a2a-js ${label} over ${rpc ? 'JSON-RPC' : 'REST'}`, version, rpc, ...more,
        async open(base, { token, tenant } = {}) {
            const fetchImpl = withToken(sdk, recording(streams, { rpc, version }), token);
            const legacyCompat = { enabled: Boolean(more?.legacy) };
            const client = await connect(sdk, binding, base.endsWith('/') ? base : `${base}/`, { fetchImpl, legacyCompat });
            return new Client(client, tenant);
        },
        /** Looks at every frame since the last time. */
        checkStreams() {
            streams.splice(0).forEach(checkFrames);
        },
    };
};

// forgets: the readers of 0.3's ProtoJSON do not return `append`, nor the names of files
export const clients = [
    kind('1.3.0', '1.0', 'JSONRPC', client1, Client1),
    kind('1.3.0', '1.0', 'HTTP+JSON', client1, Client1),
    // 1.x as it talks to servers that speak nothing but 0.3
    kind('1.3.0 in 0.3', '0.3', 'JSONRPC', client1, Client1, { legacy: true }),
    kind('1.3.0 in 0.3', '0.3', 'HTTP+JSON', client1, Client1, { legacy: true, forgets: true }),
    kind('0.3.14', '0.3', 'JSONRPC', client03, Client03),
    kind('0.3.14', '0.3', 'HTTP+JSON', client03, Client03, { forgets: true }),
];
