"""Every A2A object through a2a-sdk 0.3.x, in both of its dialects: the pydantic models of JSON-RPC and
the protobuf messages of REST. What we write it reads, what it writes we read."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from interop import (
    ERRORS, METHODS, convert, convert_json, equal, has, in_dialect, kind_of, objects_of, others_of, run, same, test, use_venv,
)

use_venv('a2a-03')

from a2a import types
from a2a.grpc import a2a_pb2 as pb
from a2a.utils import proto_utils
from google.protobuf.json_format import MessageToJson, Parse, ParseDict
from pydantic import BaseModel, TypeAdapter

NEXT, OWN, REST = 'a2a-1.0', 'a2a-0.3', 'a2a-0.3-rest'

MODELS = {
    'message': types.Message,
    'task': types.Task,
    'artifact': types.Artifact,
    'status-update': types.TaskStatusUpdateEvent,
    'artifact-update': types.TaskArtifactUpdateEvent,
    'stream-response': types.Task | types.Message | types.TaskStatusUpdateEvent | types.TaskArtifactUpdateEvent,
    'send-response': types.Task | types.Message,
    'send-request': types.MessageSendParams,
    'get-task-request': types.TaskQueryParams,
    'cancel-request': types.TaskIdParams,
    'subscribe-request': types.TaskIdParams,
    'push-config': types.TaskPushNotificationConfig,
    'push-config-list': list[types.TaskPushNotificationConfig],
    'push-get-request': types.GetTaskPushNotificationConfigParams,
    'push-list-request': types.ListTaskPushNotificationConfigParams,
    'push-delete-request': types.DeleteTaskPushNotificationConfigParams,
    'card': types.AgentCard,
}
MESSAGES = {
    'message': pb.Message,
    'task': pb.Task,
    'artifact': pb.Artifact,
    'status-update': pb.TaskStatusUpdateEvent,
    'artifact-update': pb.TaskArtifactUpdateEvent,
    'stream-response': pb.StreamResponse,
    'send-response': pb.SendMessageResponse,
    'send-request': pb.SendMessageRequest,
    'get-task-request': pb.GetTaskRequest,
    'cancel-request': pb.CancelTaskRequest,
    'subscribe-request': pb.TaskSubscriptionRequest,
    'push-config': pb.TaskPushNotificationConfig,
    'push-config-list': pb.ListTaskPushNotificationConfigResponse,
    'push-get-request': pb.GetTaskPushNotificationConfigRequest,
    'push-list-request': pb.ListTaskPushNotificationConfigRequest,
    'push-delete-request': pb.DeleteTaskPushNotificationConfigRequest,
    'card': pb.AgentCard,
    'extended-card-request': pb.GetAgentCardRequest,
}


def dump(value, **options):
    """What the SDK writes of a model (or a list of them)."""
    return TypeAdapter(type(value) if isinstance(value, BaseModel) else list[types.TaskPushNotificationConfig]).dump_json(
        value, by_alias=True, **options).decode()


# Its clients and servers leave out what is not set; an application that does not gets nulls.
PYDANTIC = {'without nulls': {'exclude_none': True}, 'with nulls': {}}
PROTOBUF = {
    'as it is': {},
    'in snake_case': {'preserving_proto_field_name': True},
    'with default values': {'always_print_fields_with_no_presence': True},
    'with numbers for enums': {'use_integers_for_enums': True},
}


def add_model(name, kind, hint):
    model = TypeAdapter(MODELS[kind])
    meant = model.validate_json(json.dumps(in_dialect(name, OWN)), strict=True)

    for other in others_of(name, OWN):

        @test(f"a2a-sdk 0.3's models read our {name}, made from {other}")
        def we_write(other=other):
            ours = convert(other, OWN, in_dialect(name, other), object=hint)
            read = model.validate_json(ours, strict=True)
            equal(type(read), type(meant), 'model')
            same(json.loads(dump(read, exclude_none=True)), in_dialect(name, OWN), 'what the SDK reads')
            same(json.loads(dump(read, exclude_none=True)), json.loads(ours), 'what the SDK keeps of it')

        @test(f"we read {name} of a2a-sdk 0.3's models into {other}, and back")
        def they_write(other=other):
            for how, options in PYDANTIC.items():
                theirs = dump(meant, **options)
                ours = convert_json(OWN, other, theirs, object=hint)
                same(ours, in_dialect(name, other), f'{other}, written {how},')
                back = model.validate_json(convert(other, OWN, ours, object=hint), strict=True)
                same(json.loads(dump(back)), json.loads(theirs), f'model, written {how}, after the way back')


def add_message(name, kind, hint):
    make = MESSAGES[kind]
    meant = ParseDict(in_dialect(name, REST), make())

    for other in others_of(name, REST):

        @test(f"a2a-sdk 0.3's protobuf reads our {name}, made from {other}")
        def we_write(other=other):
            equal(Parse(convert(other, REST, in_dialect(name, other), object=hint), make()), meant, 'message')

        @test(f"we read {name} of a2a-sdk 0.3's protobuf into {other}, and back")
        def they_write(other=other):
            for how, options in PROTOBUF.items():
                ours = convert_json(REST, other, MessageToJson(meant, **options), object=hint)
                same(ours, in_dialect(name, other), f'{other}, written {how},')
                back = convert(other, REST, ours, object=hint)
                equal(Parse(back, make()), meant, f'message, written {how}, after the way back')


for entry in objects_of(OWN):
    add_model(*entry)
for entry in objects_of(REST):
    add_message(*entry)


# ---- envelopes -----------------------------------------------------------------------------------------


def add_method(call, m):
    @test(f"a2a-sdk 0.3 reads our request: {call}")
    def request():
        new = {'jsonrpc': '2.0', 'id': 'req-1', 'method': m[NEXT]}
        if m['params']:
            new['params'] = in_dialect(m['params'], NEXT)
        read = types.A2ARequest.model_validate_json(convert(NEXT, OWN, new)).root
        equal((read.id, read.method), ('req-1', m[OWN]), 'envelope')
        if m['params']:
            same(json.loads(dump(read.params, exclude_none=True)), in_dialect(m['params'], OWN), 'params')

    @test(f"we read a2a-sdk 0.3's request: {call}")
    def their_request():
        theirs = {'jsonrpc': '2.0', 'id': 7, 'method': m[OWN]}
        if m['params']:
            theirs['params'] = in_dialect(m['params'], OWN)
        theirs = dump(types.A2ARequest.model_validate(theirs).root, exclude_none=True)
        ours = convert_json(OWN, NEXT, theirs)
        equal((ours['jsonrpc'], ours['id'], ours['method']), ('2.0', 7, m[NEXT]), 'envelope')
        if m['params']:
            same(ours['params'], in_dialect(m['params'], NEXT), 'params')
        same(convert_json(NEXT, OWN, ours), json.loads(theirs), 'request after the way back')

    response = {
        'message/send': types.SendMessageResponse,
        'message/stream': types.SendStreamingMessageResponse,
        'tasks/resubscribe': types.SendStreamingMessageResponse,
        'tasks/get': types.GetTaskResponse,
        'tasks/cancel': types.CancelTaskResponse,
        'tasks/pushNotificationConfig/set': types.SetTaskPushNotificationConfigResponse,
        'tasks/pushNotificationConfig/get': types.GetTaskPushNotificationConfigResponse,
        'tasks/pushNotificationConfig/list': types.ListTaskPushNotificationConfigResponse,
        'tasks/pushNotificationConfig/delete': types.DeleteTaskPushNotificationConfigResponse,
        'agent/getAuthenticatedExtendedCard': types.GetAuthenticatedExtendedCardResponse,
    }[m[OWN]]
    kind = kind_of(m['result']) if m['result'] else 'empty'

    @test(f"a2a-sdk 0.3 reads our response: {call}")
    def our_response():
        new = {'jsonrpc': '2.0', 'id': 3, 'result': in_dialect(m['result'], NEXT) if m['result'] else None}
        ours = convert(NEXT, OWN, new, object=kind)
        read = response.model_validate_json(ours).root
        equal(read.id, 3, 'id')
        if m['result']:
            same(json.loads(dump(read.result, exclude_none=True)), in_dialect(m['result'], OWN), 'result')
        else:
            equal(json.loads(ours), {'jsonrpc': '2.0', 'id': 3, 'result': None}, 'response')

    @test(f"we read a2a-sdk 0.3's response: {call}")
    def their_response():
        theirs = {'jsonrpc': '2.0', 'id': 'r', 'result': in_dialect(m['result'], OWN) if m['result'] else None}
        theirs = dump(response.model_validate(theirs).root, exclude_none=bool(m['result']))
        ours = convert_json(OWN, NEXT, theirs, object=kind)
        equal((ours['jsonrpc'], ours['id']), ('2.0', 'r'), 'envelope')
        if m['result']:
            same(ours['result'], in_dialect(m['result'], NEXT), 'result')
        else:
            equal(ours, {'jsonrpc': '2.0', 'id': 'r', 'result': None}, 'response')
        same(convert_json(NEXT, OWN, ours, object=kind), json.loads(theirs), 'response after the way back')


for entry in METHODS.items():
    add_method(*entry)

STANDARD = [
    {'code': -32700, 'class': 'JSONParseError', 'message': 'Invalid JSON payload'},
    {'code': -32600, 'class': 'InvalidRequestError', 'message': 'Request payload validation error'},
    {'code': -32601, 'class': 'MethodNotFoundError', 'message': 'Method not found'},
    {'code': -32602, 'class': 'InvalidParamsError', 'message': 'Invalid parameters'},
    {'code': -32603, 'class': 'InternalError', 'message': 'Internal error'},
]


def add_error(e):
    name = e['class'].replace('ExtendedAgentCard', 'AuthenticatedExtendedCard')

    @test(f'a2a-sdk 0.3 reads our {name}')
    def we_write():
        new = {'jsonrpc': '2.0', 'id': None, 'error': {'code': e['code'], 'message': 'because'}}
        if 'reason' in e:
            new['error']['data'] = [{'@type': 'type.googleapis.com/google.rpc.ErrorInfo', 'reason': e['reason'], 'domain': 'a2a-protocol.org', 'metadata': {'taskId': 't-9'}}]
        ours = convert(NEXT, OWN, new)
        read = types.JSONRPCErrorResponse.model_validate_json(ours)
        equal((read.id, read.error.code, read.error.message), (None, e['code'], 'because'), 'error')
        getattr(types, name).model_validate(json.loads(ours)['error'])
        equal('id' in json.loads(ours), True, 'id')

    @test(f"we read a2a-sdk 0.3's {name}")
    def they_write():
        error = getattr(types, name)(data={'free': ['form', 1]})
        theirs = dump(types.JSONRPCErrorResponse(id='x', error=error), exclude_none=True)
        ours = convert_json(OWN, NEXT, theirs)
        equal((ours['id'], ours['error']['code'], ours['error']['message']), ('x', e['code'], error.message), 'error')
        if 'reason' in e:
            equal([d['reason'] for d in ours['error']['data'] if 'reason' in d], [e['reason']], 'reason')
        back = convert_json(NEXT, OWN, ours)
        equal((back['id'], back['error']['code'], back['error']['message']), ('x', e['code'], error.message), 'error back')


for entry in ERRORS + STANDARD:
    add_error(entry)


# ---- what this SDK makes of its own objects ----------------------------------------------------------------


@test("a2a-sdk 0.3 turns our REST objects into its models")
def from_proto():
    task = proto_utils.FromProto.task(Parse(convert(NEXT, REST, in_dialect('task with status, history and artifacts', NEXT).copy() | {'history': [], 'artifacts': []}), pb.Task()))
    equal((task.id, task.status.state, task.status.message.parts[0].root.text), ('t-1', types.TaskState.completed, 'Sunny, 72°F'), 'task')
    event = proto_utils.FromProto.stream_response(Parse(convert(NEXT, REST, in_dialect('stream response with a status update', NEXT), object='stream-response'), pb.StreamResponse()))
    equal((event.kind, event.final, event.metadata), ('status-update', True, {'tokens': 42}), 'event')
    config = proto_utils.FromProto.task_push_notification_config(Parse(convert(NEXT, REST, in_dialect('push config', NEXT)), pb.TaskPushNotificationConfig()))
    equal((config.task_id, config.push_notification_config.id, config.push_notification_config.authentication.schemes), ('t-1', 'p-1', ['Bearer']), 'push config')
    params = proto_utils.FromProto.task_query_params(Parse(convert(NEXT, REST, in_dialect('get task request', NEXT), object='get-task-request'), pb.GetTaskRequest()))
    equal((params.id, params.history_length), ('t-1', 5), 'get task request')
    card = proto_utils.FromProto.agent_card(Parse(convert(NEXT, REST, in_dialect('card with everything', NEXT)), pb.AgentCard()))
    equal((card.url, card.security[0], card.security_schemes['key'].root.in_), ('https://agent.example.com/rpc', {'code': ['read', 'write'], 'mtls': []}, types.In.header), 'card')


@test('we read what a2a-sdk 0.3 turns its models into for REST')
def to_proto():
    models = {kind: model for kind, model in MODELS.items() if kind in ('message', 'task', 'stream-response', 'card')}
    write = {
        'message': proto_utils.ToProto.message,
        'task': proto_utils.ToProto.task,
        'stream-response': proto_utils.ToProto.stream_response,
        'card': proto_utils.ToProto.agent_card,
    }
    for name, kind, hint in objects_of(OWN):
        if kind not in models or not has(name, REST):
            continue
        meant = TypeAdapter(models[kind]).validate_python(in_dialect(name, OWN))
        theirs = write[kind](meant)
        ours = convert(REST, NEXT, MessageToJson(theirs), object=hint)
        equal(Parse(convert(NEXT, REST, ours, object=hint), MESSAGES[kind]()), theirs, f'{name} after the way back')


@test('we read the empty status message that a2a-sdk 0.3 makes of none')
def empty_status_message():
    task = proto_utils.FromProto.task(pb.Task(id='t', context_id='c', status=pb.TaskStatus(state=pb.TASK_STATE_WORKING)))
    ours = convert_json(OWN, NEXT, dump(task, exclude_none=True))
    equal((ours['id'], ours['status']['state']), ('t', 'TASK_STATE_WORKING'), 'model')
    ours = convert_json(REST, NEXT, MessageToJson(proto_utils.ToProto.task(task)))
    equal((ours['id'], ours['status']['state']), ('t', 'TASK_STATE_WORKING'), 'message')


@test('we read a push config to which a2a-sdk 0.3 gave no id')
def push_config_without_id():
    config = types.TaskPushNotificationConfig(task_id='t-1', push_notification_config=types.PushNotificationConfig(url='https://hooks.example.com/b'))
    ours = convert_json(OWN, NEXT, dump(config, exclude_none=True))
    equal((ours['taskId'], ours['url']), ('t-1', 'https://hooks.example.com/b'), 'model')
    request = pb.CreateTaskPushNotificationConfigRequest(parent='tasks/t-1', config=proto_utils.ToProto.task_push_notification_config(config))
    ours = convert_json(REST, NEXT, MessageToJson(request), object='push-config')
    equal((ours['taskId'], ours['url']), ('t-1', 'https://hooks.example.com/b'), 'message')


@test('we read the push config in each of the bodies that clients send')
def push_config_bodies():
    expected = in_dialect('push config', NEXT)
    bare = in_dialect('push config', REST)
    for body in (
        bare,
        {'parent': 'tasks/t-1', 'configId': 'p-1', 'config': bare},
        {'parent': 'tasks/t-1', 'config_id': 'p-1', 'config': {'push_notification_config': bare['pushNotificationConfig']}},
        {'config': bare},
    ):
        same(convert_json(REST, NEXT, body, object='push-config'), expected, json.dumps(body))


run()
