"""The clients and servers of a2a-sdk 0.3.x over JSON-RPC and REST: their requests and answers are read by
us, ours by them."""

import asyncio
import json
import logging
import re
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from interop import ERRORS, METHODS, STREAMS, convert, convert_json, equal, events_of, failure, in_dialect, kind_of, run, same, test, use_venv

use_venv('a2a-03')

import httpx
from a2a import types
from a2a.client import A2ACardResolver
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore
from sse_starlette.sse import EventSourceResponse

logging.disable(logging.CRITICAL)  # the servers log what the tests provoke

NEXT, OWN, REST = 'a2a-1.0', 'a2a-0.3', 'a2a-0.3-rest'
JSON, SSE = 'application/json', 'text/event-stream'
CARD = types.AgentCard.model_validate(in_dialect('card with everything', OWN))


def dump(value):
    return value.model_dump(mode='json', by_alias=True, exclude_none=True)


# ---- clients ---------------------------------------------------------------------------------------------

CALLS = {
    'send': ('send_message', types.MessageSendParams),
    'send, answered by a message': ('send_message', types.MessageSendParams),
    'get': ('get_task', types.TaskQueryParams),
    'cancel': ('cancel_task', types.TaskIdParams),
    'push set': ('set_task_callback', types.TaskPushNotificationConfig),
    'push get': ('get_task_callback', types.GetTaskPushNotificationConfigParams),
}


def request_of(call, model):
    return model.model_validate(in_dialect(METHODS[call]['params'], OWN))


def client(transport, answer):
    """A transport of the SDK whose server is answer(request) -> (status, type, body), and the requests."""
    asked = []

    async def serve(request):
        asked.append(request)
        status, kind, body = answer(request)
        return httpx.Response(status, headers={'content-type': kind}, content=body.encode())

    http = httpx.AsyncClient(transport=httpx.MockTransport(serve))
    return transport(http, agent_card=CARD.model_copy(), url='http://agent.test'), asked


def as_rest_reads(value, key=''):
    """What this SDK's REST client makes of an answer: times are not read, and the bytes of a file are
    taken for text (the protobuf tests look at them)."""
    if isinstance(value, list):
        return [as_rest_reads(v) for v in value if not (isinstance(v, dict) and 'bytes' in v.get('file', {}))]
    if isinstance(value, dict) and key not in ('metadata', 'data', 'params', 'header'):
        return {k: as_rest_reads(v, k) for k, v in value.items() if not (k == 'timestamp')}
    return value


def without_bytes(value, key=''):
    """The same object, in any dialect, without the files that it carries."""
    if isinstance(value, list):
        return [without_bytes(v) for v in value if not (isinstance(v, dict) and ('raw' in v or {'bytes', 'fileWithBytes'} & set(v.get('file', {}))))]
    if isinstance(value, dict) and key not in ('metadata', 'data'):
        return {k: without_bytes(v, k) for k, v in value.items()}
    return value


def add_call(call, method, model):
    m = METHODS[call]
    kind = kind_of(m['result'])

    @test(f"a2a-sdk 0.3's JSON-RPC client: {call}, its request read by us, our answer by it")
    async def json_rpc():
        def answer(r):
            return 200, JSON, convert(NEXT, OWN, {'jsonrpc': '2.0', 'id': json.loads(r.content)['id'], 'result': in_dialect(m['result'], NEXT)}, object=kind)

        transport, asked = client(JsonRpcTransport, answer)
        got = await getattr(transport, method)(request_of(call, model))
        same(dump(got), in_dialect(m['result'], OWN), 'answer')
        theirs = json.loads(asked[0].content)
        ours = convert_json(OWN, NEXT, asked[0].content.decode())
        equal((ours['jsonrpc'], ours['id'], ours['method']), ('2.0', theirs['id'], m[NEXT]), 'envelope')
        same(ours['params'], in_dialect(m['params'], NEXT), 'params')
        same(convert_json(NEXT, OWN, ours), theirs, 'request after the way back')

    @test(f"a2a-sdk 0.3's REST client: {call}, its body read by us, our answer by it")
    async def rest():
        new = without_bytes(in_dialect(m['result'], NEXT))
        new.pop('artifacts', None)
        new.get('task', {}).pop('artifacts', None)
        transport, asked = client(RestTransport, lambda r: (200, JSON, convert(NEXT, REST, new, object=kind)))
        got = dump(await getattr(transport, method)(request_of(call, model)))
        if got.get('status', {}).get('message', {}).get('messageId') == '':
            del got['status']['message']  # the SDK adds an empty one if it is absent
        expected = as_rest_reads(in_dialect(m['result'], OWN))
        expected.pop('artifacts', None)
        same(got, expected, 'answer')
        if asked[0].content:
            theirs = json.loads(asked[0].content)
            ours = convert_json(REST, NEXT, asked[0].content.decode(), object=kind_of(m['params']))
            expected = in_dialect(m['params'].replace(' with metadata', ''), NEXT)
            if call.startswith('send'):
                # the bytes of a file are in base64 twice
                equal([p['raw'] for p in ours['message']['parts'] if 'raw' in p], ['Ky8vK2lWQk9SdzBLR2dvPQ=='], 'bytes')
            same(without_bytes(ours), without_bytes(expected), 'request')
            if call != 'push set':
                same(convert_json(NEXT, REST, ours, object=kind_of(m['params'])), theirs, 'request after the way back')


for call, entry in CALLS.items():
    add_call(call, *entry)


@test("a2a-sdk 0.3's clients read our extended card")
async def extended_card():
    def answer(r):
        return 200, JSON, convert(NEXT, OWN, {'jsonrpc': '2.0', 'id': json.loads(r.content)['id'], 'result': in_dialect('card with everything', NEXT)})

    transport, asked = client(JsonRpcTransport, answer)
    same(dump(await transport.get_card()), in_dialect('card with everything', OWN), 'card over JSON-RPC')
    equal(convert_json(OWN, NEXT, asked[0].content.decode())['method'], 'GetExtendedAgentCard', 'method')
    # this SDK's REST takes the card in the words of JSON-RPC, unlike everything else
    transport, _ = client(RestTransport, lambda r: (200, JSON, convert(NEXT, OWN, in_dialect('card with everything', NEXT))))
    same(dump(await transport.get_card()), in_dialect('card with everything', OWN), 'card over REST')


def add_stream(what, names):
    for call, method, model in (('stream', 'send_message_streaming', types.MessageSendParams), ('subscribe', 'resubscribe', types.TaskIdParams)):

        @test(f"a2a-sdk 0.3's JSON-RPC client: {method} reads our stream of {what}")
        async def json_rpc(call=call, method=method, model=model):
            def answer(r):
                id = json.loads(r.content)['id']
                return 200, SSE, convert(NEXT, OWN, ''.join(f'data: {json.dumps({"jsonrpc": "2.0", "id": id, "result": in_dialect(n, NEXT)})}\r\n\r\n: ping\r\n\r\n' for n in names))

            transport, asked = client(JsonRpcTransport, answer)
            got = [dump(e) async for e in getattr(transport, method)(request_of(call, model))]
            same(got, [in_dialect(n, OWN) for n in names], 'events')
            ours = convert_json(OWN, NEXT, asked[0].content.decode())
            equal(ours['method'], METHODS[call][NEXT], 'method')
            same(ours['params'], in_dialect(METHODS[call]['params'], NEXT), 'params')

        @test(f"a2a-sdk 0.3's REST client: {method} reads our stream of {what}")
        async def rest(call=call, method=method, model=model):
            new = [without_bytes(in_dialect(n, NEXT)) for n in names]
            for event in new:
                for artifact in event.get('task', {}).get('artifacts', []):
                    artifact['parts'] = artifact['parts'] or [{'text': 'no file'}]
            body = convert(NEXT, REST, ''.join(f'data: {json.dumps(e)}\n\n' for e in new))
            transport, _ = client(RestTransport, lambda r: (200, SSE, body))
            got = [dump(e) async for e in getattr(transport, method)(request_of(call, model))]
            expected = [as_rest_reads(in_dialect(n, OWN)) for n in names]
            for event in expected:
                for artifact in event.get('artifacts', []):
                    artifact['parts'] = artifact['parts'] or [{'kind': 'text', 'text': 'no file'}]
            same(got, expected, 'events')


for what, names in STREAMS.items():
    add_stream(what, names)


def add_error(e):
    info = [{'@type': 'type.googleapis.com/google.rpc.ErrorInfo', 'reason': e['reason'], 'domain': 'a2a-protocol.org'}]

    @test(f"a2a-sdk 0.3's clients read our {e['class']}")
    async def clients():
        def answer(r):
            return 200, JSON, convert(NEXT, OWN, {'jsonrpc': '2.0', 'id': json.loads(r.content)['id'], 'error': {'code': e['code'], 'message': 'because', 'data': info}})

        transport, _ = client(JsonRpcTransport, answer)
        error = await failure(transport.get_task(types.TaskQueryParams(id='t')), A2AClientJSONRPCError)
        equal((error.error.code, error.error.message), (e['code'], 'because'), 'error')
        body = convert(NEXT, REST, {'error': {'code': e['http'], 'status': e['status'], 'message': 'because', 'details': info}})
        transport, _ = client(RestTransport, lambda r: (e['http'], JSON, body))
        error = await failure(transport.get_task(types.TaskQueryParams(id='t')), A2AClientHTTPError)
        equal((error.status_code, json.loads(body)['message']), (e['http'], 'because'), 'error over REST')


for entry in ERRORS:
    add_error(entry)

for source in (NEXT, REST):

    @test(f"a2a-sdk 0.3's card resolver reads our card, made from {source}")
    async def resolver(source=source):
        for name in ('card with everything', 'card as small as can be'):
            http = httpx.AsyncClient(transport=httpx.MockTransport(lambda r: httpx.Response(200, text=convert(source, OWN, in_dialect(name, source)))))
            same(dump(await A2ACardResolver(http, 'http://agent.test').get_agent_card()), in_dialect(name, OWN), name)


# ---- servers -----------------------------------------------------------------------------------------------

EventSourceResponse.DEFAULT_PING_INTERVAL = 0.02  # so that streams have comments, too


class Agent(AgentExecutor):
    """Does what the first text says: "reply" with a message, "wait" until canceled, or make an artifact."""

    seen = None

    async def execute(self, context, queue):
        self.seen = context.message
        ids = {'task_id': context.task_id, 'context_id': context.context_id}
        wish = context.message.parts[0].root.text
        if wish == 'reply':
            return await queue.enqueue_event(types.Message(message_id='m-answer', role='agent', context_id=context.context_id, parts=[types.TextPart(text='Hello')]))
        await queue.enqueue_event(types.Task(id=context.task_id, context_id=context.context_id, status={'state': 'submitted'}, history=[context.message]))
        await queue.enqueue_event(types.TaskStatusUpdateEvent(**ids, status={'state': 'working'}, final=False))
        await asyncio.sleep(60 if wish == 'wait' else 0.2)
        for i, text in enumerate(('Hello ', 'world')):
            artifact = types.Artifact(artifact_id='out', name='output', parts=[types.TextPart(text=text)])
            await queue.enqueue_event(types.TaskArtifactUpdateEvent(**ids, artifact=artifact, append=i > 0, last_chunk=i > 0, metadata={'chunk': i}))
        done = types.Message(message_id='m-done', role='agent', parts=[types.TextPart(text='Done')])
        status = types.TaskStatus(state='completed', timestamp='2026-03-04T05:06:07.089123+00:00', message=done)
        await queue.enqueue_event(types.TaskStatusUpdateEvent(**ids, status=status, final=True))

    async def cancel(self, context, queue):
        await queue.enqueue_event(types.TaskStatusUpdateEvent(task_id=context.task_id, context_id=context.context_id, status={'state': 'canceled'}, final=True))


def served(rest=False):
    agent = Agent()
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), push_config_store=InMemoryPushNotificationConfigStore())
    make = A2ARESTFastAPIApplication if rest else A2AStarletteApplication
    app = make(agent_card=CARD, http_handler=handler, extended_agent_card=CARD).build()
    return agent, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url='http://agent.test', headers={'content-type': JSON})


NEW_MESSAGE = {
    'messageId': 'm-q', 'role': 'ROLE_USER', 'metadata': {'k': 1}, 'extensions': ['https://e.test/1'],
    'parts': [{'text': 'go'}, {'url': 'https://files.example.com/x.png', 'mediaType': 'image/png', 'filename': 'x.png'}, {'data': {'n': [1, None]}}],
}


def saying(text):
    return NEW_MESSAGE | {'parts': [{'text': text}, *NEW_MESSAGE['parts'][1:]]}


async def call_new(http, method, params, kind=None, id=5):
    """Calls the 0.3 JSON-RPC endpoint in 1.0 words, through us in both directions."""
    reply = await http.post('/', content=convert(NEXT, OWN, {'jsonrpc': '2.0', 'id': id, 'method': method, 'params': params}))
    if 'event-stream' in reply.headers['content-type']:
        assert '\r\n' in reply.text and ': ping' in reply.text, 'no CRLF or ping in the stream'
        got = events_of(convert(OWN, NEXT, reply.text))
        equal({g['id'] for g in got}, {id}, 'ids')
        return [g['result'] for g in got]
    ours = convert_json(OWN, NEXT, reply.text, object=None if 'error' in reply.json() else kind)
    equal((ours['jsonrpc'], ours['id']), ('2.0', id), 'envelope')
    return ours['error'] if 'error' in ours else ours['result']


@test("a2a-sdk 0.3's JSON-RPC server, spoken to in 1.0 through us: send, get, stream")
async def server_send():
    agent, http = served()
    task = (await call_new(http, 'SendMessage', {'message': NEW_MESSAGE}, 'send-response'))['task']
    equal((task['status']['state'], task['status']['message']['parts']), ('TASK_STATE_COMPLETED', [{'text': 'Done'}]), 'task')
    equal(re.sub('0*Z$', 'Z', task['status']['timestamp']), '2026-03-04T05:06:07.089123Z', 'timestamp')
    equal([p['text'] for p in task['artifacts'][0]['parts']], ['Hello ', 'world'], 'artifact')
    same(task['history'][0] | {'taskId': None, 'contextId': None}, NEW_MESSAGE, 'what came back of the request')
    equal([p.root.kind for p in agent.seen.parts], ['text', 'file', 'data'], 'parts that the server saw')
    again = await call_new(http, 'GetTask', {'id': task['id'], 'historyLength': 1}, 'task')
    equal((again['id'], len(again['history'])), (task['id'], 1), 'task again')
    message = (await call_new(http, 'SendMessage', {'message': saying('reply')}, 'send-response'))['message']
    equal((message['role'], message['parts']), ('ROLE_AGENT', [{'text': 'Hello'}]), 'message')
    events = await call_new(http, 'SendStreamingMessage', {'message': NEW_MESSAGE})
    equal([list(e) for e in events], [['task'], ['statusUpdate'], ['artifactUpdate'], ['artifactUpdate'], ['statusUpdate']], 'events')
    last = events[3]['artifactUpdate']
    equal((last['append'], last['lastChunk'], last['metadata']), (True, True, {'chunk': 1}), 'last chunk')


@test("a2a-sdk 0.3's JSON-RPC server, spoken to in 1.0 through us: cancel, push configs, card, errors")
async def server_rest_of_it():
    _, http = served()
    task = (await call_new(http, 'SendMessage', {'message': saying('wait'), 'configuration': {'returnImmediately': True}}, 'send-response'))['task']
    equal((await call_new(http, 'CancelTask', {'id': task['id']}, 'task'))['status']['state'], 'TASK_STATE_CANCELED', 'state')
    error = await call_new(http, 'CancelTask', {'id': task['id']})
    equal((error['code'], error['data'][0]['reason']), (-32002, 'TASK_NOT_CANCELABLE'), 'error')
    error = await call_new(http, 'GetTask', {'id': 'nope'}, id='text')
    equal((error['code'], error['data'][0]['reason']), (-32001, 'TASK_NOT_FOUND'), 'error')
    config = {'taskId': task['id'], 'id': 'p-9', 'url': 'https://hooks.example.com/x', 'token': 'tok', 'authentication': {'scheme': 'Bearer', 'credentials': 'c'}}
    asked = {'taskId': task['id'], 'id': 'p-9'}
    same(await call_new(http, 'CreateTaskPushNotificationConfig', config), config, 'set')
    same(await call_new(http, 'GetTaskPushNotificationConfig', asked), config, 'get')
    same(await call_new(http, 'ListTaskPushNotificationConfigs', {'taskId': task['id']}, 'push-config-list'), {'configs': [config]}, 'list')
    equal(await call_new(http, 'DeleteTaskPushNotificationConfig', asked, 'empty'), None, 'delete')
    same(await call_new(http, 'GetExtendedAgentCard', {}), in_dialect('card with everything', NEXT), 'card')


@test("a2a-sdk 0.3's REST server, spoken to in 1.0 through us")
async def rest_server():
    agent, http = served(rest=True)
    request = {'message': NEW_MESSAGE, 'configuration': {'acceptedOutputModes': ['text/plain']}}
    reply = await http.post('/v1/message:send', content=convert(NEXT, REST, request))
    task = convert_json(REST, NEXT, reply.text, object='send-response')['task']
    equal((task['status']['state'], task['status']['message']['parts']), ('TASK_STATE_COMPLETED', [{'text': 'Done'}]), 'task')
    same(task['history'][0] | {'taskId': None, 'contextId': None}, NEW_MESSAGE, 'what came back of the request')
    equal((agent.seen.parts[1].root.file.uri, agent.seen.metadata), ('https://files.example.com/x.png', {'k': 1}), 'what the server saw')
    # this server writes each event over several lines of data
    stream = await http.post('/v1/message:stream', content=convert(NEXT, REST, request))
    assert '\r\ndata:   "' in stream.text and ': ping' in stream.text, 'no event of several lines, or no ping, in the stream'
    for target, keys in ((NEXT, ['task', 'statusUpdate', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']), (OWN, None)):
        events = events_of(convert(REST, target, stream.text))
        kinds = [next(iter(e)) for e in events] if keys else [e['kind'] for e in events]
        equal(kinds, keys or ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'], f'events in {target}')
    reply = await http.get(f'/v1/tasks/{task["id"]}')
    equal(convert_json(REST, OWN, reply.text)['kind'], 'task', 'get')
    config = {'taskId': task['id'], 'id': 'p-9', 'url': 'https://hooks.example.com/x', 'token': 'tok', 'authentication': {'scheme': 'Bearer', 'credentials': 'c'}}
    body = {'parent': f'tasks/{task["id"]}', 'configId': 'p-9', 'config': convert_json(NEXT, REST, config)}
    reply = await http.post(f'/v1/tasks/{task["id"]}/pushNotificationConfigs', json=body)
    same(convert_json(REST, NEXT, reply.text), config, 'push set')
    reply = await http.get(f'/v1/tasks/{task["id"]}/pushNotificationConfigs/p-9')
    same(convert_json(REST, NEXT, reply.text), config, 'push get')
    reply = await http.get('/v1/tasks/nope')
    equal(reply.json(), {'message': 'Task not found'}, 'what the server says')
    equal(convert_json(REST, NEXT, reply.text)['error']['message'], 'Task not found', 'error')
    reply = await http.get('/v1/card')
    same(convert_json(REST, NEXT, reply.text), in_dialect('card with everything', NEXT), 'card')


@test("a2a-sdk 0.3's REST server waits if `blocking` is true, and only then")
async def rest_server_waits():
    agent, http = served(rest=True)
    reply = await http.post('/v1/message:send', content=convert(NEXT, REST, {'message': NEW_MESSAGE, 'configuration': {}}))
    equal(reply.json()['task']['status']['state'], 'TASK_STATE_COMPLETED', 'state after waiting')
    reply = await http.post('/v1/message:send', content=convert(NEXT, REST, {'message': NEW_MESSAGE, 'configuration': {'returnImmediately': True}}))
    equal(reply.json()['task']['status']['state'] in ('TASK_STATE_SUBMITTED', 'TASK_STATE_WORKING'), True, 'state at once')


@test("we read the card that a2a-sdk 0.3's servers publish")
async def public_card():
    for rest in (False, True):
        _, http = served(rest)
        text = (await http.get('/.well-known/agent-card.json')).text
        same(convert_json(OWN, NEXT, text), in_dialect('card with everything', NEXT), 'card')
        same(convert_json('auto', NEXT, text), in_dialect('card with everything', NEXT), 'card, format found out')


run()
