"""The client transports and servers of a2a-sdk 1.x: their requests and answers are read by us, ours by
them."""

import asyncio
import json
import logging
import re
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from interop import ERRORS, METHODS, STREAMS, convert, convert_json, equal, events_of, failure, in_dialect, kind_of, run, same, test, use_venv

use_venv('a2a-1')

import httpx
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.transports.jsonrpc import JsonRpcTransport
from a2a.client.transports.rest import RestTransport
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes.agent_card_routes import create_agent_card_routes
from a2a.server.routes.jsonrpc_routes import create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore
from a2a.types import a2a_pb2 as pb
from a2a.utils import errors as sdk_errors
from google.protobuf.json_format import MessageToDict, Parse, ParseDict
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette

logging.disable(logging.CRITICAL)  # the servers log what the tests provoke

OWN, OLD, REST = 'a2a-1.0', 'a2a-0.3', 'a2a-0.3-rest'

# ---- clients ---------------------------------------------------------------------------------------------

# call: method of the transport, its request, its answer
CALLS = {
    'send': ('send_message', pb.SendMessageRequest, pb.SendMessageResponse),
    'send, answered by a message': ('send_message', pb.SendMessageRequest, pb.SendMessageResponse),
    'get': ('get_task', pb.GetTaskRequest, pb.Task),
    'cancel': ('cancel_task', pb.CancelTaskRequest, pb.Task),
    'push set': ('create_task_push_notification_config', pb.TaskPushNotificationConfig, pb.TaskPushNotificationConfig),
    'push get': ('get_task_push_notification_config', pb.GetTaskPushNotificationConfigRequest, pb.TaskPushNotificationConfig),
    'push list': ('list_task_push_notification_configs', pb.ListTaskPushNotificationConfigsRequest, pb.ListTaskPushNotificationConfigsResponse),
    'push delete': ('delete_task_push_notification_config', pb.DeleteTaskPushNotificationConfigRequest, None),
    'extended card': ('get_extended_agent_card', pb.GetExtendedAgentCardRequest, pb.AgentCard),
}
EXTENDED = pb.AgentCard(capabilities=pb.AgentCapabilities(extended_agent_card=True))


def request_of(call, make):
    return ParseDict(in_dialect(METHODS[call]['params'], OWN) if METHODS[call]['params'] else {}, make())


def client(transport, answer):
    """A transport of the SDK whose server is answer(request) -> (status, type, body), and the requests."""
    asked = []

    async def serve(request):
        asked.append(request)
        status, kind, body = answer(request)
        return httpx.Response(status, headers={'content-type': kind}, content=body.encode())

    http = httpx.AsyncClient(transport=httpx.MockTransport(serve))
    return transport(http, EXTENDED, 'http://agent.test'), asked


JSON, SSE = 'application/json', 'text/event-stream'


def add_call(call, method, request, response):
    m = METHODS[call]
    kind = kind_of(m['result']) if m['result'] else 'empty'

    @test(f"a2a-sdk 1's JSON-RPC client: {call}, its request read by us, our answer by it")
    async def json_rpc():
        def answer(r):
            old = {'jsonrpc': '2.0', 'id': json.loads(r.content)['id'], 'result': in_dialect(m['result'], OLD) if m['result'] else None}
            return 200, JSON, convert(OLD, OWN, old, object=kind)

        transport, asked = client(JsonRpcTransport, answer)
        got = await getattr(transport, method)(request_of(call, request))
        if response:
            equal(got, ParseDict(in_dialect(m['result'], OWN), response()), 'answer')
        theirs = json.loads(asked[0].content)
        ours = convert_json(OWN, OLD, asked[0].content.decode())
        equal((ours['jsonrpc'], ours['id'], ours['method']), ('2.0', theirs['id'], m[OLD]), 'envelope')
        if m['params']:
            same(ours['params'], in_dialect(m['params'], OLD), 'params')
        back = convert_json(OLD, OWN, ours)
        equal((back['id'], back['method']), (theirs['id'], m[OWN]), 'envelope after the way back')
        equal(ParseDict(back.get('params', {}), request()), ParseDict(theirs.get('params', {}), request()), 'params after the way back')

    @test(f"a2a-sdk 1's REST client: {call}, its body read by us, our answer by it")
    async def rest():
        def answer(_):
            return 200, JSON, convert(REST, OWN, in_dialect(m['result'], REST) if m['result'] else {}, object=kind)

        transport, asked = client(RestTransport, answer)
        got = await getattr(transport, method)(request_of(call, request))
        if response:
            equal(got, ParseDict(in_dialect(m['result'], OWN), response()), 'answer')
        else:
            equal(json.loads(answer(None)[2]), {}, 'answer')
        if asked[0].content:
            same(convert_json(OWN, REST, asked[0].content.decode(), object=kind_of(m['params'])), convert_json(OWN, REST, in_dialect(m['params'], OWN), object=kind_of(m['params'])), 'request')


for call, entry in CALLS.items():
    add_call(call, *entry)


def add_stream(what, names):
    expected = [ParseDict(in_dialect(n, OWN), pb.StreamResponse()) for n in names]

    for call, method, request in (('stream', 'send_message_streaming', pb.SendMessageRequest), ('subscribe', 'subscribe', pb.SubscribeToTaskRequest)):

        @test(f"a2a-sdk 1's JSON-RPC client: {method} reads our stream of {what}")
        async def json_rpc(call=call, method=method, request=request):
            def answer(r):
                id = json.loads(r.content)['id']
                old = ''.join(f'data: {json.dumps({"jsonrpc": "2.0", "id": id, "result": in_dialect(n, OLD)})}\r\n\r\n: ping\r\n\r\n' for n in names)
                return 200, SSE, convert(OLD, OWN, old)

            transport, asked = client(JsonRpcTransport, answer)
            equal([e async for e in getattr(transport, method)(request_of(call, request))], expected, 'events')
            equal(convert_json(OWN, OLD, asked[0].content.decode())['method'], METHODS[call][OLD], 'method')

        @test(f"a2a-sdk 1's REST client: {method} reads our stream of {what}")
        async def rest(call=call, method=method, request=request):
            old = ''.join(f'data: {json.dumps(in_dialect(n, REST), indent=1)}\n\n'.replace('\n ', '\ndata:  ').replace('\n}', '\ndata: }') for n in names)
            transport, _ = client(RestTransport, lambda r: (200, SSE, convert(REST, OWN, old)))
            equal([e async for e in getattr(transport, method)(request_of(call, request))], expected, 'events')


for what, names in STREAMS.items():
    add_stream(what, names)


def add_error(e):
    cls = getattr(sdk_errors, e['class'])

    @test(f"a2a-sdk 1's JSON-RPC client: our {e['class']} is its own")
    async def json_rpc():
        def answer(r):
            return 200, JSON, convert(OLD, OWN, {'jsonrpc': '2.0', 'id': json.loads(r.content)['id'], 'error': {'code': e['code'], 'message': 'because'}})

        transport, _ = client(JsonRpcTransport, answer)
        error = await failure(transport.get_task(pb.GetTaskRequest(id='t')), cls)
        equal((type(error), error.message), (cls, 'because'), 'error')

    @test(f"a2a-sdk 1's REST client: our {e['class']} is its own")
    async def rest():
        body = convert(REST, OWN, {'code': e['code'], 'message': 'because'}, object='error')
        transport, _ = client(RestTransport, lambda r: (e['http'], JSON, body))
        error = await failure(transport.get_task(pb.GetTaskRequest(id='t')), cls)
        equal((type(error), error.message), (cls, 'because'), 'error')


for entry in ERRORS:
    add_error(entry)


@test("a2a-sdk 1's JSON-RPC client: an error in the middle of our stream is its own")
async def error_in_stream():
    def answer(r):
        id = json.loads(r.content)['id']
        old = f'data: {json.dumps({"jsonrpc": "2.0", "id": id, "result": in_dialect("stream response with a task", OLD)})}\n\n'
        old += f'event: error\ndata: {json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32001, "message": "gone"}})}\n\n'
        return 200, SSE, convert(OLD, OWN, old)

    transport, _ = client(JsonRpcTransport, answer)
    events = []

    async def read():
        async for e in transport.send_message_streaming(request_of('stream', pb.SendMessageRequest)):
            events.append(e)

    error = await failure(read(), sdk_errors.TaskNotFoundError)
    equal((len(events), events[0].WhichOneof('payload'), error.message), (1, 'task', 'gone'), 'stream')


@test("a2a-sdk 1's REST client: an error in the middle of our stream is its own")
async def error_in_rest_stream():
    old = f'data: {json.dumps(in_dialect("stream response with a message", REST))}\n\n'
    old += f'event: error\ndata: {json.dumps({"code": -32001, "message": "gone"})}\n\n'
    transport, _ = client(RestTransport, lambda r: (200, SSE, convert(REST, OWN, old)))
    events = []

    async def read():
        async for e in transport.send_message_streaming(request_of('stream', pb.SendMessageRequest)):
            events.append(e)

    error = await failure(read(), sdk_errors.TaskNotFoundError)
    equal((len(events), events[0].WhichOneof('payload'), error.message), (1, 'message', 'gone'), 'stream')


for source in (OWN, OLD, REST):

    @test(f"a2a-sdk 1's card resolver reads our card, made from {source}")
    async def resolver(source=source):
        for name in ('card with everything', 'card as small as can be'):
            http = httpx.AsyncClient(transport=httpx.MockTransport(lambda r: httpx.Response(200, text=convert(source, OWN, in_dialect(name, source)))))
            equal(await A2ACardResolver(http, 'http://agent.test').get_agent_card(), ParseDict(in_dialect(name, OWN), pb.AgentCard()), name)


@test("a2a-sdk 1's card resolver reads our 0.3 card")
async def resolver_of_older():
    http = httpx.AsyncClient(transport=httpx.MockTransport(lambda r: httpx.Response(200, text=convert(OWN, OLD, in_dialect('card with everything', OWN)))))
    equal(await A2ACardResolver(http, 'http://agent.test').get_agent_card(), ParseDict(in_dialect('card with everything', OWN), pb.AgentCard()), 'card')


# ---- servers -----------------------------------------------------------------------------------------------

EventSourceResponse.DEFAULT_PING_INTERVAL = 0.02  # so that streams have comments, too


class Agent(AgentExecutor):
    """Does what the first text says: "reply" with a message, "wait" until canceled, or make an artifact."""

    seen = None

    async def execute(self, context, queue):
        self.seen = context.message
        ids = {'task_id': context.task_id, 'context_id': context.context_id}
        wish = context.message.parts[0].text
        if wish == 'reply':
            return await queue.enqueue_event(pb.Message(message_id='m-answer', context_id=context.context_id, role=pb.ROLE_AGENT, parts=[pb.Part(text='Hello')]))
        await queue.enqueue_event(pb.Task(id=context.task_id, context_id=context.context_id, status=pb.TaskStatus(state=pb.TASK_STATE_SUBMITTED), history=[context.message]))
        await queue.enqueue_event(pb.TaskStatusUpdateEvent(**ids, status=pb.TaskStatus(state=pb.TASK_STATE_WORKING)))
        await asyncio.sleep(60 if wish == 'wait' else 0.2)
        for i, text in enumerate(('Hello ', 'world')):
            artifact = pb.Artifact(artifact_id='out', name='output', parts=[pb.Part(text=text)])
            await queue.enqueue_event(pb.TaskArtifactUpdateEvent(**ids, artifact=artifact, append=i > 0, last_chunk=i > 0, metadata={'chunk': i}))
        status = ParseDict({'state': 'TASK_STATE_COMPLETED', 'timestamp': '2026-03-04T05:06:07.089123Z', 'message': {'messageId': 'm-done', 'role': 'ROLE_AGENT', 'parts': [{'text': 'Done'}]}}, pb.TaskStatus())
        await queue.enqueue_event(pb.TaskStatusUpdateEvent(**ids, status=status))

    async def cancel(self, context, queue):
        await queue.enqueue_event(pb.TaskStatusUpdateEvent(task_id=context.task_id, context_id=context.context_id, status=pb.TaskStatus(state=pb.TASK_STATE_CANCELED)))


def served():
    """The agent, and a client of its HTTP server."""
    agent = Agent()
    card = ParseDict(in_dialect('card with everything', OWN), pb.AgentCard())
    for interface in card.supported_interfaces[:2]:
        card.supported_interfaces.add(url=interface.url, protocol_binding=interface.protocol_binding, protocol_version='1.0')
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card, push_config_store=InMemoryPushNotificationConfigStore(), extended_agent_card=card)
    app = Starlette(routes=[
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, '/rpc', enable_v0_3_compat=True),
        *create_rest_routes(handler, path_prefix='/rest', enable_v0_3_compat=True),
    ])
    return agent, card, httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url='http://agent.test')


OLD_MESSAGE = {
    'kind': 'message', 'messageId': 'm-q', 'role': 'user', 'metadata': {'k': 1}, 'extensions': ['https://e.test/1'],
    'parts': [{'kind': 'text', 'text': 'go'}, {'kind': 'file', 'file': {'bytes': 'AAEC/w==', 'mimeType': 'image/png', 'name': 'x.png'}}, {'kind': 'data', 'data': {'n': [1, None]}}],
}


def saying(text):
    return OLD_MESSAGE | {'parts': [{'kind': 'text', 'text': text}, *OLD_MESSAGE['parts'][1:]]}


NEW = {'A2A-Version': '1.0'}
KINDS = {'message/send': 'send-response', 'tasks/get': 'task', 'tasks/cancel': 'task', 'tasks/pushNotificationConfig/list': 'push-config-list', 'tasks/pushNotificationConfig/delete': 'empty'}


async def call_old(http, method, params, id=5):
    """Calls the 1.0 JSON-RPC endpoint in 0.3 words, through us in both directions."""
    old = {'jsonrpc': '2.0', 'id': id, 'method': method} | ({'params': params} if params is not None else {})
    reply = await http.post('/rpc', content=convert(OLD, OWN, old), headers=NEW | {'content-type': JSON})
    if 'event-stream' in reply.headers['content-type']:
        assert '\r\n' in reply.text and ': ping' in reply.text, 'no CRLF or ping in the stream'
        text = convert(OWN, OLD, reply.text)
        got = events_of(text)
        equal({g['id'] for g in got}, {id}, 'ids')
        return [g['result'] for g in got]
    ours = convert_json(OWN, OLD, reply.text, object=None if 'error' in reply.json() else KINDS.get(method))
    equal((ours['jsonrpc'], ours['id']), ('2.0', id), 'envelope')
    return ours['error'] if 'error' in ours else ours['result']


@test("a2a-sdk 1's JSON-RPC server, spoken to in 0.3 through us: send and get")
async def server_send():
    agent, _, http = served()
    task = await call_old(http, 'message/send', {'message': OLD_MESSAGE, 'configuration': {'blocking': True}})
    equal((task['kind'], task['status']['state'], task['status']['message']['parts'][0]['text']), ('task', 'completed', 'Done'), 'task')
    equal(re.sub('0*Z$', 'Z', task['status']['timestamp']), '2026-03-04T05:06:07.089123Z', 'timestamp')
    equal([p['text'] for p in task['artifacts'][0]['parts']], ['Hello ', 'world'], 'artifact')
    expected = Parse(convert(OLD, OWN, OLD_MESSAGE | {'taskId': task['id'], 'contextId': task['contextId']}), pb.Message())
    equal(agent.seen, expected, 'what the server saw')
    equal([p.WhichOneof('content') for p in agent.seen.parts], ['text', 'raw', 'data'], 'parts that the server saw')
    same(task['history'][0] | {'taskId': None, 'contextId': None}, OLD_MESSAGE, 'what came back of the request')
    again = await call_old(http, 'tasks/get', {'id': task['id'], 'historyLength': 1})
    equal((again['id'], len(again['history'])), (task['id'], 1), 'task again')
    message = await call_old(http, 'message/send', {'message': saying('reply')})
    equal((message['kind'], message['role'], message['parts']), ('message', 'agent', [{'kind': 'text', 'text': 'Hello'}]), 'message')


@test("a2a-sdk 1's JSON-RPC server, spoken to in 0.3 through us: stream with CRLF and pings")
async def server_stream():
    _, _, http = served()
    events = await call_old(http, 'message/stream', {'message': OLD_MESSAGE})
    equal([e['kind'] for e in events], ['task', 'status-update', 'artifact-update', 'artifact-update', 'status-update'], 'events')
    equal([e.get('final') for e in events], [None, False, None, None, True], 'final')
    equal((events[3]['append'], events[3]['lastChunk'], events[3]['metadata']), (True, True, {'chunk': 1}), 'last chunk')


@test("a2a-sdk 1's JSON-RPC server, spoken to in 0.3 through us: cancel, push configs, card, errors")
async def server_rest_of_it():
    _, card, http = served()
    task = await call_old(http, 'message/send', {'message': saying('wait'), 'configuration': {'blocking': False}})
    equal((await call_old(http, 'tasks/cancel', {'id': task['id']}))['status']['state'], 'canceled', 'state')
    equal((await call_old(http, 'tasks/cancel', {'id': task['id']}))['code'], -32002, 'error')
    equal((await call_old(http, 'tasks/get', {'id': 'nope'}, id='text'))['code'], -32001, 'error')
    config = {'taskId': task['id'], 'pushNotificationConfig': {'id': 'p-9', 'url': 'https://93.184.216.34/x', 'token': 'tok', 'authentication': {'schemes': ['Bearer'], 'credentials': 'c'}}}
    asked = {'id': task['id'], 'pushNotificationConfigId': 'p-9'}
    same(await call_old(http, 'tasks/pushNotificationConfig/set', config), config, 'set')
    same(await call_old(http, 'tasks/pushNotificationConfig/get', asked), config, 'get')
    same(await call_old(http, 'tasks/pushNotificationConfig/list', {'id': task['id']}), [config], 'list')
    equal(await call_old(http, 'tasks/pushNotificationConfig/delete', asked), None, 'delete')
    same(await call_old(http, 'tasks/pushNotificationConfig/list', {'id': task['id']}), [], 'list after delete')
    same(await call_old(http, 'agent/getAuthenticatedExtendedCard', None), in_dialect('card with everything', OLD), 'card')


@test("a2a-sdk 1's REST server, spoken to in 0.3 through us")
async def rest_server():
    agent, _, http = served()
    headers = NEW | {'content-type': JSON}
    old = convert_json(OLD, REST, {'message': OLD_MESSAGE, 'configuration': {'blocking': True, 'acceptedOutputModes': ['text/plain']}})
    reply = await http.post('/rest/message:send', content=convert(REST, OWN, old), headers=headers)
    task = convert_json(OWN, REST, reply.text)['task']
    equal((task['status']['state'], [p['text'] for p in task['artifacts'][0]['parts']]), ('TASK_STATE_COMPLETED', ['Hello ', 'world']), 'task')
    same(task['history'][0] | {'taskId': None, 'contextId': None}, old['message'], 'what came back of the request')
    equal(agent.seen.parts[1].raw, b'\0\1\2\xff', 'bytes that the server saw')
    stream = await http.post('/rest/message:stream', content=convert(REST, OWN, old), headers=headers)
    assert '\r\n' in stream.text and ': ping' in stream.text, 'no CRLF or ping in the stream'
    events = events_of(convert(OWN, REST, stream.text))
    equal([list(e) for e in events], [['task'], ['statusUpdate'], ['artifactUpdate'], ['artifactUpdate'], ['statusUpdate']], 'events')
    equal(events[4]['statusUpdate']['final'], True, 'final')
    reply = await http.get(f'/rest/tasks/{task["id"]}', headers=NEW)
    equal(convert_json(OWN, OLD, reply.text)['kind'], 'task', 'get')
    reply = await http.get('/rest/tasks/nope', headers=NEW)
    error = convert_json(OWN, REST, reply.text)
    equal((error['code'], error['message']), (-32001, 'Task not found'), 'error')
    reply = await http.get('/rest/tasks?includeArtifacts=true', headers=NEW)
    listed = Parse(convert(OWN, OWN, reply.text), pb.ListTasksResponse())
    equal(listed, Parse(reply.text, pb.ListTasksResponse()), 'list')
    equal((len(listed.tasks), listed.total_size), (2, 2), 'list')


@test("we read the card that a2a-sdk 1's server publishes, which is of both versions at once")
async def hybrid_card():
    _, card, http = served()
    text = (await http.get('/.well-known/agent-card.json')).text
    equal('supportedInterfaces' in json.loads(text) and 'url' in json.loads(text), True, 'hybrid')
    equal(Parse(convert(OWN, OWN, text), pb.AgentCard()), card, 'card')
    same(convert_json(OWN, OLD, text), in_dialect('card with everything', OLD), 'as 0.3')
    equal(Parse(convert('auto', OWN, text), pb.AgentCard()), card, 'card, format found out')


@test("a2a-sdk 1's server for 0.3 clients reads our 0.3 requests; we read its answers")
async def compat_server():
    _, _, http = served()
    new_message = convert_json(OLD, OWN, OLD_MESSAGE)
    request = convert(OWN, OLD, {'jsonrpc': '2.0', 'id': 1, 'method': 'SendStreamingMessage', 'params': {'message': new_message}})
    reply = await http.post('/rpc', content=request, headers={'content-type': JSON})
    events = [e['result'] for e in events_of(convert(OLD, OWN, reply.text))]
    equal([list(e) for e in events], [['task'], ['statusUpdate'], ['artifactUpdate'], ['artifactUpdate'], ['statusUpdate']], 'JSON-RPC events')
    equal(ParseDict(events[0], pb.StreamResponse()).task.history[0].parts[1].raw, b'\0\1\2\xff', 'bytes')
    # over REST it takes the bytes of a file for text, so no file here
    del new_message['parts'][1]
    body = convert(OWN, REST, {'message': new_message, 'configuration': {}})
    reply = await http.post('/rest/v1/message:send', content=body, headers={'content-type': JSON})
    got = ParseDict(convert_json(REST, OWN, reply.text, object='send-response'), pb.SendMessageResponse())
    equal(MessageToDict(got.task.history[0])['parts'], new_message['parts'], 'what came back of the request')
    reply = await http.get('/rest/v1/card')
    equal(ParseDict(convert_json(REST, OWN, reply.text), pb.AgentCard()).skills[0].id, 'cook', 'card')
    reply = await http.get('/rest/v1/tasks/nope')
    equal(convert_json(REST, OWN, reply.text)['error']['details'][0]['reason'], 'TASK_NOT_FOUND', 'error')


run()
