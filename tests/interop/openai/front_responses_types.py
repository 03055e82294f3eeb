"""Wrong types at every member of a request, as the types of PyPI `openai` say; clients that leave at every event."""

import http.client
import json
import random
import socket
import sys
import typing

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, equal, live, run, test, until

import typing_extensions
from openai.types.responses import response_create_params

server = live()
WRONG = {'text': 'x', 'int': 7, 'number': 0.5, 'bool': True, 'list': ['x', 1], 'object': {'x': 1}}


def call(method, path, body=None, raw=None):
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    data = raw if raw is not None else json.dumps(body) if body is not None else None
    connection.request(method, path, data, {'Content-Type': 'application/json'} if data is not None else {})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text else None


# ---- types ---------------------------------------------------------------------------------------------------------

# A request with a value for everything we read, so that each of them can be made wrong.
SAMPLE = {
    'model': 'demo', 'instructions': 'x', 'previous_response_id': 'x', 'conversation': {'id': 'x'}, 'store': True, 'background': False,
    'stream': False, 'stream_options': {'include_obfuscation': False}, 'parallel_tool_calls': True, 'max_tool_calls': 1,
    'max_output_tokens': 100, 'temperature': 0.5, 'top_p': 0.5, 'top_logprobs': 1, 'reasoning': {'effort': 'low', 'summary': 'auto'},
    'text': {'format': {'type': 'json_schema', 'name': 'x', 'schema': {}, 'strict': True, 'description': 'x'}, 'verbosity': 'low'},
    'metadata': {'k': 'v'}, 'truncation': 'auto', 'include': ['x'], 'user': 'x', 'safety_identifier': 'x', 'prompt_cache_key': 'x',
    'prompt_cache_retention': '24h', 'service_tier': 'auto', 'prompt': {'id': 'x', 'version': '1', 'variables': {}},
    'context_management': [{'type': 'compaction', 'compact_threshold': 1000}], 'moderation': {'model': 'x'}, 'prompt_cache_options': {},
    'access_programs': {}, 'image': {},
    'tool_choice': {'type': 'function', 'name': 'f'},
    'tools': [{'type': 'function', 'name': 'f', 'description': 'x', 'parameters': {}, 'strict': True}],
    'input': [
        {'type': 'message', 'role': 'user', 'content': [
            {'type': 'input_text', 'text': 'x'}, {'type': 'input_image', 'image_url': 'x', 'detail': 'auto', 'file_id': 'x'},
            {'type': 'input_file', 'file_data': 'x', 'file_url': 'x', 'filename': 'x', 'file_id': 'x'}]},
        {'type': 'message', 'role': 'assistant', 'id': 'x', 'status': 'completed', 'content': [
            {'type': 'output_text', 'text': 'x', 'annotations': []}, {'type': 'refusal', 'refusal': 'x'}]},
        {'type': 'function_call', 'call_id': 'x', 'name': 'f', 'arguments': '{}', 'id': 'x', 'status': 'completed'},
        {'type': 'function_call_output', 'call_id': 'x', 'output': 'x', 'id': 'x', 'status': 'completed'},
        {'type': 'reasoning', 'id': 'x', 'summary': [{'type': 'summary_text', 'text': 'x'}], 'encrypted_content': 'x'},
        {'type': 'item_reference', 'id': 'x'},
    ],
}


def names(hint):
    """What JSON a hint takes."""
    origin = typing.get_origin(hint)
    if typing_extensions.is_typeddict(hint) or origin is dict or hint is object:
        return {'object'}
    if hint in (str, bool, int, float, type(None)):
        return {str: {'text'}, bool: {'bool'}, int: {'int'}, float: {'int', 'number'}, type(None): {'null'}}[hint]
    if origin is typing.Literal:
        return {'bool' if isinstance(v, bool) else 'text' for v in typing.get_args(hint)}
    if origin is typing.Union:
        return set().union(*map(names, typing.get_args(hint)))
    if str(origin).startswith('typing.Required') or str(origin).startswith('typing_extensions.Required'):
        return names(typing.get_args(hint)[0])
    return {'list'}


def unions(hint):
    args = typing.get_args(hint)
    return [h for a in args for h in unions(a)] if typing.get_origin(hint) is typing.Union else [hint]


def members(hint, sample):
    """The hints of an object's members, of all kinds of objects that the sample could be."""
    found = {}
    for h in unions(hint):
        if not typing_extensions.is_typeddict(h):
            continue
        hints = typing.get_type_hints(h)
        kind = typing.get_args(hints.get('type'))
        if 'type' in sample and kind and sample['type'] not in kind:
            continue
        for name in sample:
            if name in hints:
                found[name] = found.get(name, []) + [hints[name]]
    return {n: typing.Union[tuple(h)] for n, h in found.items()}


def element(hint):
    return typing.Union[tuple(a for h in unions(hint) if typing.get_origin(h) not in (None, dict, typing.Literal) for a in typing.get_args(h))]


def wrongs(sample, hint, path=()):
    """(path, what it may be) of everything in the sample that the hint knows."""
    if isinstance(sample, dict):
        for name, h in members(hint, sample).items():
            yield path + (name,), names(h)
            if isinstance(sample[name], (dict, list)):
                yield from wrongs(sample[name], h, path + (name,))
    elif isinstance(sample, list):
        for i, one in enumerate(sample):
            yield path + (i,), names(element(hint))
            yield from wrongs(one, element(hint), path + (i,))


def with_wrong(sample, path, value):
    out = json.loads(json.dumps(sample))
    at = out
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return out


def spelled(path):
    return ''.join(f'[{s}]' if isinstance(s, int) else f'.{s}' for s in path).lstrip('.')


CASES = list(wrongs(SAMPLE, response_create_params.ResponseCreateParamsNonStreaming))


@test(f'wrong types at {len(CASES)} members of a request, each by its name')
def _():
    check(len(CASES) > 80, f'{len(CASES)} members')
    bad, n = [], 0
    for path, good in CASES:
        if path[-1] == 'type':  # another type is another thing: below
            continue
        for kind, value in WRONG.items():
            if kind in good or (kind == 'int' and 'number' in good):
                continue
            if kind == 'object' and path == ('metadata',) or isinstance(path[-1], int) and kind == 'object':
                continue
            n += 1
            status, body = call('POST', '/v1/responses', with_wrong(SAMPLE, path, value))
            error = body['error'] if body else {}
            param = spelled(path)
            if status != 400 or error.get('param') != param or error.get('type') != 'invalid_request_error' or not error.get('message'):
                bad.append(f'{param} = {json.dumps(value)}: {status} {error}')
    check(n > 300, f'{n} requests')
    equal(bad[:10], [], f'{len(bad)} of {n} answers')


@test('the error names an unknown type')
def _():
    for path in [('input', 0), ('input', 0, 'content', 0), ('tools', 0)]:
        status, body = call('POST', '/v1/responses', with_wrong(SAMPLE, path + ('type',), 7))
        equal([status, body['error']['param']], [400, spelled(path + ('type',))], 'the answer')


@test('bodies that are no requests')
def _():
    for raw in ['', '{', '[]', '"x"', 'null', '7', '{"model":"demo","model":"demo"', '{"model":"demo","input":"\\ud800"}']:
        status, body = call('POST', '/v1/responses', raw=raw)
        equal([status, body['error']['type']], [400, 'invalid_request_error'], raw)
    for raw in ['[]', '{"items":7}', '{"items":[7]}', '{"metadata":[]}', '{"metadata":{"a":1}}']:
        status, body = call('POST', '/v1/conversations', raw=raw)
        equal(status, 400, raw)
    for items, param in [([{'role': 'nobody', 'content': 'x'}], 'items[0].role'), ([{'role': 'user', 'content': 'x'}, {}], 'items[1].role'),
                         ([{'type': 'function_call', 'call_id': 'x', 'name': '', 'arguments': '{}'}], 'items[0].name')]:
        for path in ['/v1/conversations', f'/v1/conversations/{call("POST", "/v1/conversations", {})[1]["id"]}/items']:
            status, body = call('POST', path, {'items': items})
            equal([status, body['error']['param']], [400, param], f'{path} {items}')
    deep = '[' * 120 + ']' * 120
    status, body = call('POST', '/v1/responses', raw=f'{{"model":"demo","input":"x","new":{deep}}}')
    equal(status, 400, 'what is nested too deeply')


def mutate(value, pick):
    """The same with something else somewhere: another value, one less, one twice, one from elsewhere."""
    words = [None, True, 0, -1, 1.5, '', 'x', 'user', 'assistant', 'item_reference', 'function_call_output', [], {}, {'type': 'input_text'}, [[]], {'id': 'msg_x'}]
    if pick.random() < 0.3 or not isinstance(value, (dict, list)) or not value:
        return pick.choice(words)
    out = value.copy()
    key = pick.choice(list(out) if isinstance(out, dict) else range(len(out)))
    if pick.random() < 0.2:
        del out[key]
    elif isinstance(out, list) and pick.random() < 0.2:
        out.append(pick.choice(out))
    else:
        out[key] = mutate(out[key], pick)
    return out


@test('requests of which something is another: refused or answered, and nothing breaks')
def _():
    pick = random.Random(5)
    base = {'model': 'demo', **{k: SAMPLE[k] for k in ('instructions', 'metadata', 'tools', 'text', 'store', 'include')},
            'input': [i for i in SAMPLE['input'] if i['type'] != 'item_reference'] + [{'role': 'user', 'content': 'hello'}]}
    base['input'][0]['content'] = base['input'][0]['content'][:1]
    seen = {}
    for _ in range(1500):
        body = base
        for _ in range(pick.choice([1, 1, 2, 4])):
            body = mutate(body, pick)
        status, answer = call('POST', '/v1/responses', raw=json.dumps(body))
        seen[status] = seen.get(status, 0) + 1
        check(status in (200, 400, 404) and ('error' in answer if status != 200 else answer['object'] == 'response'),
              f'{status} {json.dumps(answer)[:300]} for {json.dumps(body)}')
    check(seen.get(200, 0) > 50 and seen.get(400, 0) > 50, seen)


@test('unknown paths and methods')
def _():
    for method, path, want in [('GET', '/v1/responses', 405), ('PUT', '/v1/responses/x', 405), ('GET', '/v1/responses/x/cancel', 405),
                               ('POST', '/v1/responses/x/input_items', 405), ('GET', '/v1/conversations', 405),
                               ('GET', '/v1/responses/x/y', 404), ('GET', '/v1/conversations/x/items/y/z', 404),
                               ('GET', '/v1/responses/' + 'x' * 3000, 404), ('GET', '/v1/responses/%ff', 404),
                               ('GET', '/v1/conversations/x', 404), ('DELETE', '/v1/conversations/x/items/y', 404)]:
        status, body = call(method, path)
        equal([status, sorted(body['error'])], [want, ['code', 'message', 'param', 'type']], f'{method} {path}')


@test('invalid pages and numbers')
def _():
    _, response = call('POST', '/v1/responses', {'model': 'demo', 'input': 'hello'})
    for query in ['limit=0', 'limit=101', 'limit=x', 'order=up', 'after=nobody']:
        status, body = call('GET', f'/v1/responses/{response["id"]}/input_items?{query}')
        equal([status, body['error']['param']], [400, query.split('=')[0]], query)
    for number in ['x', '-1', '1.5', '99999999999999999999999']:
        status, body = call('GET', f'/v1/responses/{response["id"]}?stream=true&starting_after={number}')
        equal([status, body['error']['param']], [400, 'starting_after'], number)


# ---- leaving ----------------------------------------------------------------------------------------------------------

def leave_after(n, body):
    """Reads n events and is gone, with a reset; the events."""
    s = socket.create_connection(server.address, timeout=60)
    data = json.dumps(body).encode()
    s.sendall(b'POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(data) + data)
    got = b''
    while got.count(b'\ndata: ') < n:
        piece = s.recv(4096)
        if not piece:
            break
        got += piece
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\x01\0\0\0\0\0\0\0')  # a reset, not a farewell
    s.close()
    return [json.loads(line[6:]) for line in got.split(b'\n') if line.startswith(b'data: {') and line.endswith(b'}')]


@test('who leaves after any event: the response goes on, and its task ends')
def _():
    status, whole = call('POST', '/v1/responses', {'model': 'demo', 'input': 'stream'})
    text = whole['output'][-1]['content'][0]['text']
    for n in range(1, 40):
        seen = leave_after(n, {'model': 'steady', 'input': 'stream', 'stream': True})
        id = seen[0]['response']['id']
        done = until(lambda: (r := call('GET', f'/v1/responses/{id}')[1])['status'] != 'in_progress' and r, 'it ends')
        equal([done['status'], done['output'][-1]['content'][0]['text']], ['completed', text], f'left after {n}')
        task = done['metadata']['a2a_task_id']
        connection = http.client.HTTPConnection(*server.address, timeout=60)
        connection.request('GET', f'/agents/steady/tasks/{task}', headers={'A2A-Version': '1.0'})
        equal(json.loads(connection.getresponse().read())['status']['state'], 'TASK_STATE_COMPLETED', 'the task')
        connection.close()


# ---- other protocols, other addresses ------------------------------------------------------------------------------------

@test('a context that A2A has begun is a conversation')
def _():
    message = {'messageId': 'm-1', 'role': 'ROLE_USER', 'parts': [{'text': 'ask'}]}
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    connection.request('POST', '/message:send', json.dumps({'message': message}), {'Content-Type': 'application/json', 'A2A-Version': '1.0'})
    task = json.loads(connection.getresponse().read())['task']
    context = task['contextId']
    equal(call('GET', f'/v1/conversations/{context}')[1]['id'], context, 'it')
    _, answer = call('POST', '/v1/responses', {'model': 'demo', 'input': 'Ada', 'conversation': context})
    equal(answer['metadata']['a2a_task_id'], task['id'], 'the task that asked')
    _, items = call('GET', f'/v1/conversations/{context}/items?order=asc')
    equal([i['content'][0]['text'] for i in items['data']], ['ask', 'What is your name?', 'Ada', answer['output'][-1]['content'][0]['text']], 'its items')
    check(all(i['id'] and i['status'] == 'completed' for i in items['data']), items)
    _, changed = call('POST', f'/v1/conversations/{context}', {'metadata': {'k': 'v'}})
    equal(call('GET', f'/v1/conversations/{context}')[1]['metadata'], {'k': 'v'}, 'its metadata')


@test('a session key is a context')
def _():
    def ask(text, **more):
        return call('POST', '/v1/responses', {'model': 'demo', 'input': text, **more})[1]
    first = ask('ask', metadata={'a2a_context_id': 'my-chat'})
    equal(first['metadata']['a2a_context_id'], 'my-chat', 'the context')
    second = ask('Ada', metadata={'conversation_id': 'my-chat'})
    equal(second['metadata']['a2a_task_id'], first['metadata']['a2a_task_id'], 'the task')
    history = [{'role': 'user', 'content': 'ask'}, {'role': 'assistant', 'content': 'something else'}, {'role': 'user', 'content': 'more'}]
    check(ask(history, metadata={'a2a_context_id': 'my-chat'})['metadata']['a2a_context_id'] != 'my-chat', 'another history is another context')


@test('an address of an agent knows its own responses')
def _():
    _, response = call('POST', '/agents/hello/v1/responses', {'model': 'whatever', 'input': 'hi'})
    equal([response['status'], response['model']], ['completed', 'whatever'], 'any model will do there')
    equal(call('GET', f'/agents/hello/v1/responses/{response["id"]}')[0], 200, 'at its address')
    equal(call('GET', f'/v1/responses/{response["id"]}')[0], 200, "without an agent in the path")
    equal(call('GET', f'/agents/demo/v1/responses/{response["id"]}')[0], 404, "at another's")


# ---- whose ------------------------------------------------------------------------------------------------------------

closed = live(tokens=[{'token': 'alice-token', 'principal': 'alice'}, {'token': 'bob-token', 'principal': 'bob'}])


def call_as(who, method, path, body=None):
    connection = http.client.HTTPConnection(*closed.address, timeout=60)
    headers = {'Content-Type': 'application/json', **({'Authorization': f'Bearer {who}-token'} if who else {})}
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    response = connection.getresponse()
    status, answer = response.status, json.loads(response.read())
    connection.close()
    return status, answer


@test('what is not yours does not exist')
def _():
    _, response = call_as('alice', 'POST', '/v1/responses', {'model': 'demo', 'input': 'ask', 'background': True})
    _, conversation = call_as('alice', 'POST', '/v1/conversations', {'items': [{'role': 'user', 'content': 'x'}]})
    one, other = f'/v1/responses/{response["id"]}', f'/v1/conversations/{conversation["id"]}'
    _, items = call_as('alice', 'GET', f'{one}/input_items')
    for method, path in [('GET', one), ('GET', one + '?stream=true'), ('GET', one + '/input_items'), ('POST', one + '/cancel'), ('DELETE', one),
                         ('GET', other), ('DELETE', other), ('GET', other + '/items')]:
        equal(call_as('bob', method, path)[0], 404, f"another's {method} {path}")
        equal(call_as(None, method, path)[0], 401, f"without a token: {method} {path}")
    request = {'model': 'demo', 'input': 'x'}
    equal(call_as('bob', 'POST', '/v1/responses', {**request, 'previous_response_id': response['id']})[0], 400, "another's chain")
    equal(call_as('bob', 'POST', '/v1/responses', {**request, 'conversation': conversation['id']})[0], 404, "another's conversation")
    reference = [{'type': 'item_reference', 'id': items['data'][0]['id']}]
    equal(call_as('bob', 'POST', '/v1/responses', {**request, 'input': reference})[0], 404, "another's item")
    equal(call_as('alice', 'GET', one)[0], 200, 'all of it is still there')


run(server, closed, about='types and clients that leave: ')
