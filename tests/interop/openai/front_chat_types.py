"""Wrong types at every member of a chat request, generated from the types of PyPI `openai`; invalid bodies."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from front import call, chat, front
from live import check, equal, run, test
from wrong import VALUES, allowed, put, spelled, wrongs

from openai.types.chat import completion_create_params

server = front(limits={'http_body_bytes': 1 << 20})
CASES = list(wrongs(completion_create_params.CompletionCreateParamsNonStreaming))

# What we take although the types do not: servers and clients of other makers send it.
TAKEN = {'arguments': {'object', 'list', 'int', 'number', 'bool'}, 'image_url': {'text'}, 'content': {'list'}}


def is_taken(path, kind):
    name = path[-1][1]
    if isinstance(name, int):  # another object is another kind of thing, of which nothing is known; text is a part of text
        return kind == 'object' or (kind == 'text' and path[-2][1] == 'content' and path[0][1] == 'messages')
    return kind in TAKEN.get(name, ())


@test(f'wrong types at {len(CASES)} members of a request, each by its name')
def _():
    check(len(CASES) > 120, f'{len(CASES)} members')
    bad, n = [], 0
    for path, hint in CASES:
        for kind, value in VALUES.items():
            if kind in allowed(hint) or 'any' in allowed(hint) or is_taken(path, kind):
                continue
            n += 1
            body = put(path, value)
            answer = call(server, 'POST', '/v1/chat/completions', {**body, 'model': body['model'] if spelled(path) == 'model' else 'demo'})
            param = spelled(path)
            error = answer.body['error'] if answer.body and 'error' in answer.body else {}
            if answer.status != 400 or error.get('type') != 'invalid_request_error' or error.get('param') != param or \
                    not error.get('message') or error.get('code') != 'invalid_value':
                bad.append(f'{param} = {json.dumps(value)}: {answer.status} {error or answer.text[:200]}')
    check(n > 500, f'{n} requests')
    equal(bad[:20], [], f'{len(bad)} of {n} answers')


@test('what is missing is named')
def _():
    user = {'role': 'user', 'content': 'x'}
    rows = [({'messages': [user]}, 'model'), ({'model': 'demo'}, 'messages'), ({'model': 'demo', 'messages': None}, 'messages'),
            ({'model': 'demo', 'messages': [{'content': 'x'}]}, 'messages[0].role'),
            ({'model': 'demo', 'messages': [{'role': 'user'}]}, 'messages[0].content'),
            ({'model': 'demo', 'messages': [user, {'role': 'tool', 'content': 'x'}]}, 'messages[1].tool_call_id'),
            ({'model': 'demo', 'messages': [user], 'tools': [{'type': 'function'}]}, 'tools[0].function'),
            ({'model': 'demo', 'messages': [user], 'tools': [{'type': 'function', 'function': {}}]}, 'tools[0].function.name')]
    for body, param in rows:
        answer = call(server, 'POST', '/v1/chat/completions', body)
        equal([answer.status, answer.error['param']], [400, param], json.dumps(body))


@test('unknown values of enumerations')
def _():
    user = {'role': 'user', 'content': 'x'}
    for body, param in [({'messages': [{'role': 'king', 'content': 'x'}]}, 'messages[0].role'),
                        ({'messages': [user, {'role': 'user', 'content': 'x', 'tool_calls': [{'id': 'x', 'function': {'name': 'f'}}]}]}, 'messages[1].tool_calls'),
                        ({'messages': [user], 'response_format': {}}, 'response_format.type')]:
        answer = call(server, 'POST', '/v1/chat/completions', {'model': 'demo', **body})
        equal([answer.status, answer.error['param']], [400, param], json.dumps(body))


@test('bodies that are no requests')
def _():
    for raw in ['', '{', '[]', '"x"', 'null', '7', '{"model":"demo","messages":"\\ud800"}', '{"model":"demo","messages":[]}', '\xff']:
        answer = call(server, 'POST', '/v1/chat/completions', raw=raw.encode('latin1'))
        equal([answer.status, answer.error['type']], [400, 'invalid_request_error'], raw)
    deep = '[' * 200 + ']' * 200
    answer = call(server, 'POST', '/v1/chat/completions', raw=f'{{"model":"demo","messages":[],"new":{deep}}}')
    equal([answer.status, sorted(answer.error)], [answer.status, ['code', 'message', 'param', 'type']], 'what is nested too deeply')
    check(answer.status in (400, 413), answer.status)
    answer = call(server, 'POST', '/v1/chat/completions', raw='{"model":"demo","model":"hello","messages":[{"role":"user","content":"x"}]}')
    equal([answer.status, answer.error['param']], [400, 'model'], 'a member that occurs twice')


@test('another media type: 415')
def _():
    for type in ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']:
        answer = call(server, 'POST', '/v1/chat/completions', {'model': 'demo'}, headers={'Content-Type': type})
        equal([answer.status, answer.error['type']], [415, 'invalid_request_error'], type)


@test('a body that is too large: 413, in the words of this API')
def _():
    answer = chat(server, 'x' * (1 << 20))
    equal([answer.status, answer.error['type'], answer.error['code']], [413, 'invalid_request_error', 'request_too_large'], 'the answer')


@test('unknown methods and paths')
def _():
    for method, path, want in [('GET', '/v1/chat/completions', 405), ('DELETE', '/v1/models', 405), ('POST', '/v1/models/demo', 405),
                               ('GET', '/v1/chat', 404), ('POST', '/v1/chat/completions/x', 404), ('GET', '/v1/files', 404)]:
        answer = call(server, method, path, {} if method == 'POST' else None)
        equal([answer.status, sorted(answer.error)], [want, ['code', 'message', 'param', 'type']], f'{method} {path}')
        check(want != 405 or answer.headers['allow'], 'what is allowed')


run(server)
