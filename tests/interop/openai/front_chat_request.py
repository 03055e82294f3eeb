"""The conversion of a chat request: which agent, which conversation, what the agent receives. One test per rule."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from front import PROBE, call, chat, front
from live import AGENTS, check, equal, run, test

server = front(agents=AGENTS + [PROBE, {**PROBE, 'id': 'forgets', 'history': 0}])
TOKENS = [{'token': n, 'principal': n, 'tenant': t} for n, t in [('ann', 'acme'), ('bob', 'acme'), ('eve', 'globex')]]
guarded = front(tokens=TOKENS)


def user(content):
    return {'role': 'user', 'content': content}


def said(content):
    return {'role': 'assistant', 'content': content}


def probe(messages, **more):
    """The input of the agent."""
    answer = chat(server, messages, **more)
    equal(answer.status, 200, answer.text)
    return json.loads(answer.content)


def parts(messages, **more):
    return probe(messages, **more)['message']['parts']


def as_(who):
    return {'Authorization': f'Bearer {who}'}


# ---- which agent -----------------------------------------------------------------------------------------------

for name in ['probe', 'a2a/probe', 'agent:probe']:
    @test(f'the model {name} is the agent probe, and the name is echoed')
    def _(name=name):
        answer = chat(server, 'what', model=name)
        equal([answer.status, answer.body['model']], [200, name], 'the answer')
        equal(chat(server, 'what', model=name, stream=True).chunks[0]['model'], name, 'the chunks')


@test('a model behind its tenant, for whom it is')
def _():
    equal(chat(guarded, 'what', model='acme/probe', headers=as_('ann')).status, 200, 'the caller of the tenant')
    unknown = chat(guarded, 'what', model='nobody', headers=as_('eve'))
    other = chat(guarded, 'what', model='acme/probe', headers=as_('eve'))
    equal([other.status, other.error['code']], [unknown.status, unknown.error['code']], 'another tenant gets the error of an unknown model')


@test('an agent at its own address takes any model, or none')
def _():
    for body in [{'model': 'gpt-4o'}, {}]:
        answer = call(server, 'POST', '/agents/hello/v1/chat/completions', {'messages': [user('I am Ann')], **body})
        equal([answer.status, answer.content, answer.body['model']], [200, 'Hello, Ann!', body.get('model', 'hello')], 'the answer')


@test('models have an owner and a time')
def _():
    models = call(server, 'GET', '/v1/models').body['data']
    equal([m['id'] for m in models], ['demo', 'steady', 'hello', 'caller', 'gate', 'probe', 'forgets'], 'the models')
    check(all(m['owned_by'] == 'dragoman' and m['created'] > 1700000000 for m in models), models)
    equal(call(guarded, 'GET', '/v1/models/demo', headers=as_('ann')).body['owned_by'], 'acme', 'the tenant')
    equal(call(server, 'GET', '/v1/models/a2a%2Fdemo').body['id'], 'demo', 'a slash comes in percent codes')


@test('an unknown model is 404 model_not_found')
def _():
    answer = chat(server, 'what', model='gpt-4o')
    equal([answer.status, answer.error['code'], answer.error['param'], answer.error['type']],
          [404, 'model_not_found', 'model', 'invalid_request_error'], 'the error')
    check('gpt-4o' in answer.error['message'], answer.error)
    equal(call(server, 'GET', '/v1/models/gpt-4o').error['code'], 'model_not_found', 'one that is asked for')


# ---- which conversation ------------------------------------------------------------------------------------------

for header in ['X-A2A-Context-Id', 'X-Conversation-ID', 'X-OpenWebUI-Chat-Id', 'X-Session-Id', 'x-anything-session-id']:
    @test(f'the header {header} names the conversation')
    def _(header=header):
        first = chat(server, 'what', headers={header: f'by {header}'})
        second = chat(server, 'what', headers={header: f'by {header}'})
        equal([json.loads(a.content)['contextId'] for a in (first, second)], [f'by {header}'] * 2, 'the contexts')
        check(first.headers['x-a2a-task-id'] != second.headers['x-a2a-task-id'], 'two tasks')
        equal(json.loads(second.content)['message']['referenceTaskIds'], [first.headers['x-a2a-task-id']], 'the task before')

for key in ['a2a_context_id', 'conversation_id']:
    @test(f'metadata.{key} names the conversation, and is not passed to the agent')
    def _(key=key):
        answer = probe('what', metadata={key: f'by {key}', 'color': 'red'})
        equal([answer['contextId'], answer['metadata']], [f'by {key}', {'color': 'red'}], 'its input')


@test('headers come before metadata')
def _():
    equal(probe('what', headers={'X-Session-Id': 'header'}, metadata={'a2a_context_id': 'metadata'})['contextId'], 'header', 'the context')


@test('the user is not a conversation')
def _():
    a, b = [probe('what', user='ann')['contextId'] for _ in range(2)]
    check(a != b, 'two contexts')


@test('without a key it is a new conversation')
def _():
    check(probe('what')['contextId'] != probe('what')['contextId'], 'two contexts')


@test('a name is one of its caller and agent alone')
def _():
    asked = chat(guarded, 'nothing', headers={**as_('ann'), 'X-Session-Id': 'mine'})
    equal(asked.body['a2a']['state'], 'input-required', 'the state')
    for who, model in [('bob', 'probe'), ('eve', 'probe'), ('ann', 'hello')]:
        answer = chat(guarded, 'what', model=model, headers={**as_(who), 'X-Session-Id': 'mine'})
        # hello answers with a Message, which has no task
        check(answer.body.get('a2a', {}).get('task_id') != asked.body['a2a']['task_id'], f'{who} at {model} began another')
    again = chat(guarded, [user('nothing'), said(asked.content), user('what')], headers={**as_('ann'), 'X-Session-Id': 'mine'})
    equal(again.body['a2a']['task_id'], asked.body['a2a']['task_id'], 'the task of this caller')


@test('a task that waits is gone on with, one that is over is not')
def _():
    headers = {'X-Session-Id': 'waits'}
    asked = chat(server, 'nothing', headers=headers)
    answered = chat(server, [user('nothing'), said(asked.content), user('what')], headers=headers)
    equal(answered.body['a2a']['task_id'], asked.body['a2a']['task_id'], 'the task that waited')
    after = chat(server, 'what', headers=headers)
    check(after.body['a2a']['task_id'] != asked.body['a2a']['task_id'], 'a new one')


@test('keys that are too long or hold line breaks are refused')
def _():
    for metadata in [{'a2a_context_id': 'x' * 513}, {'conversation_id': 'a\nb'}]:
        answer = chat(server, 'what', metadata=metadata)
        equal([answer.status, answer.error['param']], [400, f'metadata.{list(metadata)[0]}'], 'the error')


# ---- the input of the agent -----------------------------------------------------------------------------------------

@test('all that follows the last answer is one message')
def _():
    got = parts([user('one'), said('two'), user('three'), user('what')], headers={'X-Session-Id': 'tail'})
    equal([p['text'] for p in got][-2:], ['three', 'what'], 'the parts')


def texts(messages):
    return [[m['role'], p['text']] for m in messages for p in m['parts']]


@test('what came before is the history where the agent cannot know it')
def _():
    got = probe([user('one'), said('two'), user('what')])
    equal([p['text'] for p in got['message']['parts']], ['what'], 'the parts')
    equal(texts(got['history']), [['ROLE_USER', 'one'], ['ROLE_AGENT', 'two']], 'the history')


@test('what came before goes along as a text for an agent without a history')
def _():
    answer = chat(server, [user('one'), said('two'), user('what')], model='forgets')
    first, *rest = json.loads(answer.content)['message']['parts']
    equal([first['text'], [p['text'] for p in rest]], ['user: one\nassistant: two\n', ['what']], 'the parts')
    equal(first['metadata'], {'dragoman:part': 'transcript'}, 'what the first part is')


@test('what came before is not sent where the agent has it')
def _():
    headers = {'X-Session-Id': 'knows'}
    first = chat(server, 'what', headers=headers)
    got = parts([user('what'), said(first.content), user('what')], headers=headers)
    equal([p['text'] for p in got], ['what'], 'the parts')


@test('a history that is not the conversation\'s own begins another, with all of it')
def _():
    headers = {'X-Session-Id': 'edited'}
    chat(server, 'what', headers=headers)
    got = probe([user('what'), said('an invented answer'), user('what')], headers=headers)
    check(got['contextId'] != 'edited', got['contextId'])
    equal([p['text'] for p in got['message']['parts']], ['what'], 'the parts')
    equal(texts(got['history']), [['ROLE_USER', 'what'], ['ROLE_AGENT', 'an invented answer']], 'the history')


@test('instructions are separate from the texts of the user')
def _():
    got = probe([{'role': 'system', 'content': 'Be brief.'}, {'role': 'developer', 'content': [{'type': 'text', 'text': 'In verse.'}]}, user('what')])
    equal([got['metadata']['dragoman:instructions'], got['message']['parts']], ['Be brief.\n\nIn verse.', [{'text': 'what'}]], 'its input')


PARTS = {
    'text': ({'type': 'text', 'text': 'words'}, {'text': 'words'}),
    'an image by its address': ({'type': 'image_url', 'image_url': {'url': 'https://example.com/a.png', 'detail': 'low'}},
                                {'url': 'https://example.com/a.png', 'mediaType': 'image/png'}),
    'an image by its bytes': ({'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,AAAA'}}, {'raw': 'AAAA', 'mediaType': 'image/png'}),
    'audio, wav': ({'type': 'input_audio', 'input_audio': {'data': 'AAAA', 'format': 'wav'}}, {'raw': 'AAAA', 'mediaType': 'audio/wav'}),
    'audio, mp3': ({'type': 'input_audio', 'input_audio': {'data': 'AAAA', 'format': 'mp3'}}, {'raw': 'AAAA', 'mediaType': 'audio/mpeg'}),
    'a file by its bytes': ({'type': 'file', 'file': {'file_data': 'data:application/pdf;base64,AAAA', 'filename': 'a.pdf'}},
                            {'raw': 'AAAA', 'mediaType': 'application/pdf', 'filename': 'a.pdf'}),
}
for name, (part, want) in PARTS.items():
    @test(f'parts: {name}')
    def _(part=part, want=want):
        equal(parts([user([part, {'type': 'text', 'text': 'what'}])])[0], want, 'the part')


@test('parts: a file that we do not hold is refused')
def _():
    for id in ['file-abc', 'file-', 'x', 'file-dG9sZAp0CjAKbWFkZQ']:
        answer = chat(server, [user('one'), {**said('two'), 'reasoning_content': 'so'}, user([{'type': 'file', 'file': {'file_id': id}}])])
        equal([answer.status, answer.error['param']], [400, 'messages[2].content[0].file.file_id'], 'the error')


@test('parts: a file that we hold is what it was')
def _():
    made = chat(server, json.dumps([{'raw': 'AAAA', 'filename': 'a.bin', 'mediaType': 'x/y'}, {'raw': 'BBBB', 'mediaType': 'image/gif'}]))
    ids = [link.split('/')[0] for link in made.content.split('/v1/files/')[1:]]
    got = parts([user([*({'type': 'file', 'file': {'file_id': id}} for id in ids), {'type': 'text', 'text': 'what'}])])
    equal(got[:2], [{'raw': 'AAAA', 'filename': 'a.bin', 'mediaType': 'x/y'}, {'raw': 'BBBB', 'mediaType': 'image/gif'}], 'the parts')


@test('results of tools go to the task that waits, as data.tool_results')
def _():
    asked = chat(server, 'call look_up')
    message = asked.body['choices'][0]['message']
    [tool_call] = message['tool_calls']
    got = chat(server, [user('call look_up'), message, {'role': 'tool', 'tool_call_id': tool_call['id'], 'content': [{'type': 'text', 'text': 'found'}]}])
    equal(got.body['a2a']['task_id'], asked.body['a2a']['task_id'], 'the task')
    [part] = json.loads(got.content)['message']['parts']
    equal(part['data'], {'tool_results': [{'call_id': tool_call['id'], 'name': 'look_up', 'output': 'found'}]}, 'the part')


@test('response_format: JSON is an output mode, its schema metadata')
def _():
    for kind in ['json_object', 'json_schema']:
        format = {'type': kind, **({'json_schema': {'name': 'x', 'schema': {'type': 'object'}}} if kind == 'json_schema' else {})}
        got = probe('what', response_format=format)
        equal([got['acceptedOutputModes'], got['metadata']['dragoman:response_format']], [['application/json'], format], kind)
    equal(probe('what', response_format={'type': 'text'})['acceptedOutputModes'], [], 'text')
    equal(chat(server, 'what', response_format={'type': 'xml'}).error['param'], 'response_format.type', 'another')


@test('stream: the same answer in chunks')
def _():
    whole, streamed = chat(server, 'stream', model='demo'), chat(server, 'stream', model='demo', stream=True)
    equal([streamed.headers['content-type'], streamed.said()], ['text/event-stream', whole.content], 'the stream')
    equal([streamed.headers['cache-control'], streamed.headers['x-accel-buffering']], ['no-cache', 'no'], 'its headers')


@test('stream: the body decides, whatever Accept says')
def _():
    for accept, stream in [('application/json', True), ('text/event-stream', False)]:
        answer = chat(server, 'what', headers={'Accept': accept}, stream=stream)
        equal(answer.headers['content-type'], 'text/event-stream' if stream else 'application/json', accept)


@test('metadata is the request\'s, but what only we may say')
def _():
    got = probe('what', metadata={'color': 'red', 'dragoman:tools': 'x', 'aion:x': 'y'})
    equal(got['metadata'], {'color': 'red'}, 'the metadata')


TOOL = {'type': 'function', 'function': {'name': 'look_up', 'description': 'looks', 'parameters': {'type': 'object', 'properties': {}}}}


@test('tools reach the agent')
def _():
    got = probe('what', tools=[TOOL, {'type': 'custom', 'custom': {'name': 'c'}}], tool_choice='auto')['metadata']
    equal(got['dragoman:tools'], [TOOL['function']], 'the tools')
    equal(got['dragoman:tool_choice'], 'auto', 'the choice')
    legacy = probe('what', functions=[TOOL['function']], function_call='auto')['metadata']
    equal(legacy['dragoman:tools'], [TOOL['function']], 'functions, as they were once called')


@test('tools that must be called: an agent that supports tool_choice receives it')
def _():
    named = {'type': 'function', 'function': {'name': 'look_up'}}
    for choice in ['required', named, {'type': 'allowed_tools', 'allowed_tools': {'mode': 'required', 'tools': [named]}}]:
        equal(probe('what', tools=[TOOL], tool_choice=choice)['metadata']['dragoman:tool_choice'], choice, 'the choice')


@test('tools that must be called: 400 where that cannot be honoured')
def _():
    named = {'type': 'function', 'function': {'name': 'nobody'}}
    rows = [('hello', [TOOL], 'required'), ('hello', [TOOL], {'type': 'function', 'function': {'name': 'look_up'}}), ('probe', [], 'required'),
            ('probe', [TOOL], named), ('probe', [TOOL], 'always')]
    for model, tools, choice in rows:
        answer = chat(server, 'what', model=model, tools=tools, tool_choice=choice)
        equal([answer.status, answer.error['param']], [400, 'tool_choice'], f'{model} {choice}')
    for choice in ['auto', 'none']:
        equal(chat(server, 'hello', model='demo', tools=[TOOL], tool_choice=choice).status, 200, choice)


@test('what is ignored is named')
def _():
    more = {'temperature': 1, 'top_p': 0.5, 'seed': 7, 'stop': ['x'], 'max_tokens': 5, 'logprobs': True, 'user': 'u', 'store': False,
            'parallel_tool_calls': True, 'n': 1, 'reasoning_effort': 'low', 'my_own': {'x': 1}}
    answer = chat(server, 'what', **more)
    equal([answer.status, answer.headers['x-dragoman-ignored']],
          [200, 'temperature, top_p, seed, stop, max_tokens, logprobs, user, store, parallel_tool_calls, reasoning_effort, my_own'], 'the header')
    equal(chat(server, 'what', stream=True, seed=7).headers['x-dragoman-ignored'], 'seed', 'in a stream')
    equal(chat(server, 'what').headers['x-dragoman-ignored'], None, 'nothing')
    custom = {'type': 'custom', 'custom': {'name': 'c'}}
    equal(chat(server, 'what', tools=[TOOL, custom], seed=7).headers['x-dragoman-ignored'], 'seed, tools[1]', 'a tool that is no function')


@test('more than one answer is refused')
def _():
    for n, code in [(2, 'unsupported_value'), (128, 'unsupported_value'), (0, 'invalid_value'), (-1, 'invalid_value')]:
        answer = chat(server, 'what', n=n)
        equal([answer.status, answer.error['param'], answer.error['code']], [400, 'n', code], f'n = {n}')


@test('an Idempotency-Key: the same answer, one task')
def _():
    for stream in [False, True]:
        headers = {'Idempotency-Key': f'once {stream}'}
        first, second = [chat(server, 'what', headers=headers, stream=stream) for _ in range(2)]
        equal(second.headers['x-a2a-task-id'], first.headers['x-a2a-task-id'], 'the task')
        equal(second.text, first.text, 'the answer')
        other = chat(server, 'json', headers=headers, stream=stream)
        check(other.headers['x-a2a-task-id'] != first.headers['x-a2a-task-id'], 'other words are another request')
    equal(chat(server, 'what', headers={'Idempotency-Key': 'x' * 256}).status, 400, 'one that is too long')


run(server)
