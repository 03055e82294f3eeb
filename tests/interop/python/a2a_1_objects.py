"""Every A2A object through the protobuf messages of a2a-sdk 1.x: what we write it reads (unknown
members refused), what it writes we read."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from interop import convert, convert_json, equal, in_dialect, objects_of, others_of, run, same, test, use_venv

use_venv('a2a-1')

from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, MessageToJson, Parse, ParseDict

OWN = 'a2a-1.0'
TYPES = {
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
    'subscribe-request': pb.SubscribeToTaskRequest,
    'list-tasks-request': pb.ListTasksRequest,
    'list-tasks-response': pb.ListTasksResponse,
    'push-config': pb.TaskPushNotificationConfig,
    'push-config-list': pb.ListTaskPushNotificationConfigsResponse,
    'push-get-request': pb.GetTaskPushNotificationConfigRequest,
    'push-list-request': pb.ListTaskPushNotificationConfigsRequest,
    'push-delete-request': pb.DeleteTaskPushNotificationConfigRequest,
    'card': pb.AgentCard,
    'extended-card-request': pb.GetExtendedAgentCardRequest,
}

# The ways in which protobuf may write the same message.
SPELLINGS = {
    'as it is': {},
    'in snake_case': {'preserving_proto_field_name': True},
    'with default values': {'always_print_fields_with_no_presence': True},
    'with numbers for enums': {'use_integers_for_enums': True},
}


def add(name, kind, hint):
    make = TYPES[kind]
    meant = ParseDict(in_dialect(name, OWN), make())

    for other in others_of(name, OWN):

        @test(f'a2a-sdk 1 reads our {name}, made from {other}')
        def we_write(other=other):
            ours = convert(other, OWN, in_dialect(name, other), object=hint)
            equal(Parse(ours, make()), meant, 'message')

        @test(f"we read a2a-sdk 1's {name} into {other}, and back")
        def they_write(other=other):
            for how, options in SPELLINGS.items():
                ours = convert_json(OWN, other, MessageToJson(meant, **options), object=hint)
                same(ours, in_dialect(name, other), f'{other}, written {how},')
                back = convert(other, OWN, ours, object=hint)
                equal(Parse(back, make()), meant, f'message, written {how}, after the way back')

    @test(f'a2a-sdk 1 reads our {name}, made from its own')
    def through_us():
        for how, options in SPELLINGS.items():
            ours = convert(OWN, OWN, MessageToJson(meant, **options), object=kind)
            equal(Parse(ours, make()), meant, f'message, written {how},')


for entry in objects_of(OWN):
    add(*entry)


@test('a2a-sdk 1 reads values of our message with their types')
def values():
    name = 'message of the user, every kind of part'
    m = Parse(convert('a2a-0.3', OWN, in_dialect(name, 'a2a-0.3')), pb.Message())
    equal(m.role, pb.ROLE_USER, 'role')
    equal([p.WhichOneof('content') for p in m.parts], ['text', 'text', 'raw', 'url', 'data'], 'parts')
    equal(m.parts[2].raw, bytes.fromhex('fbfffe89504e470d0a1a0a'), 'bytes')
    equal((m.parts[2].filename, m.parts[2].media_type), ('dot.png', 'image/png'), 'file')
    equal(MessageToDict(m.parts[4].data)['deep'], {'list': [1, 'two', None, True, []]}, 'data')
    equal(m.metadata.fields['nothing'].WhichOneof('kind'), 'null_value', 'null in metadata')


@test('a2a-sdk 1 reads our times as instants')
def times():
    for text, nanos in (
        ('2026-01-02T03:04:05Z', 0),
        ('2026-01-02T03:04:05.678Z', 678000000),
        ('2026-01-02T03:04:05.678901', 678901000),
        ('2026-01-02T03:04:05.678901+00:00', 678901000),
        ('2026-01-02T05:04:05.5+02:00', 500000000),
    ):
        old = {'kind': 'task', 'id': 't', 'contextId': 'c', 'status': {'state': 'working', 'timestamp': text}}
        t = Parse(convert('a2a-0.3', OWN, old), pb.Task()).status.timestamp
        equal((t.seconds, t.nanos), (1767323045, nanos), text)


@test('a2a-sdk 1 sees that a flag is set to false, not absent')
def presence():
    card = Parse(convert(OWN, OWN, in_dialect('card with what only 1.0 has', OWN)), pb.AgentCard())
    c = card.capabilities
    equal([c.HasField(f) for f in ('streaming', 'push_notifications', 'extended_agent_card')], [True, False, True], 'presence')
    equal((c.streaming, c.extended_agent_card), (False, False), 'flags')
    request = Parse(convert('a2a-0.3', OWN, {'id': 't', 'historyLength': 0}, object='get-task-request'), pb.GetTaskRequest())
    equal((request.HasField('history_length'), request.history_length), (True, 0), 'historyLength')
    request = Parse(convert('a2a-0.3', OWN, {'id': 't'}, object='get-task-request'), pb.GetTaskRequest())
    equal(request.HasField('history_length'), False, 'no historyLength')


@test('we read a2a-sdk 1 parts whose data is not an object, convert them to 0.3 and back')
def wrapped_data():
    m = pb.Message(message_id='m', role=pb.ROLE_AGENT)
    for value in (7, 'text', True, [1, {'a': None}]):
        ParseDict(value, m.parts.add().data)
    m.parts.add().data.null_value = 0
    for other in ('a2a-0.3', 'a2a-0.3-rest'):
        old = convert_json(OWN, other, MessageToJson(m))
        for part in old['parts' if other == 'a2a-0.3' else 'content']:
            data = part['data'] if other == 'a2a-0.3' else part['data']['data']
            equal((list(data), part['metadata']), (['value'], {'data_part_compat': True}), other)
        equal(Parse(convert(other, OWN, old), pb.Message()), m, f'after the way back from {other}')


for name in (
    'message of the user, every kind of part',
    'task with status, history and artifacts',
    'stream response with a status update',
    'send request with everything',
    'push config',
    'card with everything',
):

    @test(f'a2a-sdk 1 reads our {name}, made from a dialect that we find out')
    def found_out(name=name):
        kind, hint = next((k, h) for n, k, h in objects_of(OWN) if n == name)
        meant = ParseDict(in_dialect(name, OWN), TYPES[kind]())
        for source in (OWN, *others_of(name, OWN)):
            equal(Parse(convert('auto', OWN, in_dialect(name, source), object=hint), TYPES[kind]()), meant, source)


@test('a2a-sdk 1 reads our JSON lines, one by one')
def lines():
    names = [n for n, kind, _ in objects_of('a2a-0.3') if kind == 'task']
    text = ''.join(json.dumps(in_dialect(n, 'a2a-0.3')) + '\n' for n in names)
    ours = convert('a2a-0.3', OWN, text, frame='lines').split('\n')[:-1]
    equal(len(ours), len(names), 'lines')
    for line, name in zip(ours, names):
        equal(Parse(line, pb.StreamResponse()).task, ParseDict(in_dialect(name, OWN), pb.Task()), name)


run()
