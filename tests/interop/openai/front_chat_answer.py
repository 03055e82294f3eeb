"""The conversion of an agent's events to a chat completion, complete and streamed. One test per rule."""

import http.client
import json
import sys
import threading

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from front import call, chat, front
from live import Gate, check, equal, run, test, until

server = front()


def status(state, text=None, **more):
    message = {} if text is None else {'message': {'role': 'ROLE_AGENT', 'parts': [{'text': text}]}}
    return {'statusUpdate': {'status': {'state': f'TASK_STATE_{state}', **message}, **more}}


def artifact(id, *parts, **more):
    parts = [{'text': p} if isinstance(p, str) else p for p in parts]
    return {'artifactUpdate': {'artifact': {'artifactId': id, 'parts': parts}, **more}}


WORKING = status('WORKING')
DONE = status('COMPLETED')
LINK = {'url': 'https://example.com/a.pdf', 'filename': 'a.pdf', 'mediaType': 'application/pdf'}
IMAGE = {'url': 'https://example.com/a.png', 'filename': 'a.png', 'mediaType': 'image/png'}


def answers(*events, **more):
    """The same events, asked for whole and as a stream."""
    text = json.dumps(events)
    return chat(server, text, **more), chat(server, text, stream=True, **more)


# ---- texts ---------------------------------------------------------------------------------------------------------

SAID = {
    'a text in one artifact': ([artifact('a', 'Hello', lastChunk=True), DONE], 'Hello'),
    'a new artifact is a new paragraph': ([artifact('a', 'one', lastChunk=True), artifact('b', 'two', lastChunk=True), DONE], 'one\n\ntwo'),
    'append: what is added': ([artifact('a', 'Hel'), artifact('a', 'lo', append=True, lastChunk=True), DONE], 'Hello'),
    'white space counts': ([artifact('a', ' a'), artifact('a', '\n', append=True), artifact('a', ' b ', append=True, lastChunk=True), DONE], ' a\n b '),
    'a replacement that goes on: the rest': ([artifact('a', 'Hel'), artifact('a', 'Hello', lastChunk=True), DONE], 'Hello'),
    'a replacement that is the same: nothing': ([artifact('a', 'Hello'), artifact('a', 'Hello', lastChunk=True), DONE], 'Hello'),
    'the final text alone is the answer': ([WORKING, status('COMPLETED', 'Hello')], 'Hello'),
    'the final text again: nothing': ([artifact('a', 'Hello', lastChunk=True), status('COMPLETED', 'Hello')], 'Hello'),
    'the final text goes on: the rest': ([artifact('a', 'Hel', lastChunk=True), status('COMPLETED', 'Hello')], 'Hello'),
    'a message is the answer': ([{'message': {'role': 'ROLE_AGENT', 'parts': [{'text': 'Hel'}, {'text': 'lo'}]}}], 'Hello'),
    'a closing task repeats nothing': ([artifact('a', 'Hello', lastChunk=True), {'task': {
        'status': {'state': 'TASK_STATE_COMPLETED'}, 'artifacts': [{'artifactId': 'a', 'parts': [{'text': 'Hello'}]}]}}], 'Hello'),
    'nothing at all is an empty answer': ([WORKING, DONE], ''),
}
for name, (events, want) in SAID.items():
    @test(f'text: {name}')
    def _(events=events, want=want):
        whole, streamed = answers(*events)
        equal([whole.status, whole.content, streamed.said()], [200, want, want], 'the answer')


@test('text: a different replacement is streamed as a new paragraph; a complete answer contains only the replacement')
def _():
    whole, streamed = answers(artifact('a', 'Helo'), artifact('a', 'Hello', lastChunk=True), DONE)
    equal([whole.content, streamed.said()], ['Hello', 'Helo\n\nHello'], 'the answer')


@test('status: the text of a working status is reasoning, not answer')
def _():
    whole, streamed = answers(status('WORKING', 'Looking'), status('WORKING', 'Looking it up'), artifact('a', 'Found', lastChunk=True), DONE)
    message = whole.body['choices'][0]['message']
    equal([message['content'], message['reasoning_content']], ['Found', 'Looking it up'], 'whole')
    equal([streamed.said(), streamed.said('reasoning_content')], ['Found', 'Looking it up'], 'streamed')


# ---- states --------------------------------------------------------------------------------------------------------

def check_end(streamed, reason, state):
    chunks = streamed.chunks
    reasons = [c['choices'][0]['finish_reason'] for c in chunks if c['choices'] and c['choices'][0]['finish_reason']]
    equal([reasons, chunks[-1]['a2a']['state']], [[reason], state], 'the end')


def check_whole(whole, reason, state):
    choice = whole.body['choices'][0]
    equal([whole.status, choice['finish_reason'], whole.body['a2a']['state'], whole.headers['x-a2a-task-state']], [200, reason, state, state], 'whole')
    equal([whole.headers['x-a2a-task-id'], whole.headers['x-a2a-context-id']], [whole.body['a2a']['task_id'], whole.body['a2a']['context_id']], 'its ids')
    return choice['message']


@test('completed: 200 and stop')
def _():
    whole, streamed = answers(artifact('a', 'Hello', lastChunk=True), DONE)
    check_whole(whole, 'stop', 'completed')
    check_end(streamed, 'stop', 'completed')
    equal([streamed.headers['x-a2a-task-state'], streamed.chunks[0]['a2a']['state']], [None, 'working'], 'a stream does not know at its beginning')


@test('input-required: the question is the answer')
def _():
    whole, streamed = answers(status('INPUT_REQUIRED', 'Who?'))
    equal([check_whole(whole, 'stop', 'input-required')['content'], streamed.said()], ['Who?', 'Who?'], 'the question')
    check_end(streamed, 'stop', 'input-required')


@test('input-required without a word: one of ours')
def _():
    whole, streamed = answers(status('INPUT_REQUIRED'))
    message = check_whole(whole, 'stop', 'input-required')
    check('needs more from you' in message['content'], message)
    equal(streamed.said(), message['content'], 'the stream')


@test('auth-required: as input-required, never 401')
def _():
    whole, streamed = answers(status('AUTH_REQUIRED', 'Go to https://example.com/login'))
    equal(check_whole(whole, 'stop', 'auth-required')['content'], 'Go to https://example.com/login', 'the question')
    check_end(streamed, 'stop', 'auth-required')
    whole, streamed = answers(status('AUTH_REQUIRED'))
    check('credentials' in whole.content and streamed.said() == whole.content, whole.content)


@test('failed: 424 task_failed that is not tried again; in a stream an error after the text')
def _():
    whole, streamed = answers(artifact('a', 'So far', lastChunk=True), status('FAILED', metadata={'error': 'out of luck'}))
    equal([whole.status, whole.headers['x-should-retry'], whole.headers['x-a2a-task-state']], [424, 'false', 'failed'], 'the status')
    equal(whole.error, {'message': 'out of luck', 'type': 'agent_error', 'param': None, 'code': 'task_failed'}, 'the error')
    equal(streamed.status, 200, 'the status of the stream')
    equal([streamed.said(), streamed.chunks[-1]],
          ['So far', {'error': {'message': 'out of luck', 'type': 'server_error', 'param': None, 'code': 'task_failed'}}], 'the stream')
    check(all('error' not in c for c in streamed.chunks[:-1]), 'no chunk before it has the key')


@test('rejected: a refusal')
def _():
    whole, streamed = answers(status('REJECTED', 'No.'))
    message = check_whole(whole, 'stop', 'rejected')
    equal([message['content'], message['refusal'], streamed.said('refusal'), streamed.said()], [None, 'No.', 'No.', ''], 'the refusal')
    check_end(streamed, 'stop', 'rejected')


@test('canceled: 424 task_canceled; in a stream an error')
def _():
    for stream in [False, True]:
        g, got = Gate(), []
        thread = threading.Thread(target=lambda: got.append(chat(server, g.message, model='gate', stream=stream)))
        thread.start()

        def running():
            tasks = call(server, 'GET', '/agents/gate/tasks?pageSize=1', headers={'A2A-Version': '1.0'}).body['tasks']
            return tasks and tasks[0]['status']['state'] == 'TASK_STATE_WORKING' and tasks[0]['id']
        id = until(running, 'the task runs')
        call(server, 'POST', f'/agents/gate/tasks/{id}:cancel', headers={'A2A-Version': '1.0'})
        thread.join(60)
        if stream:
            equal(got[0].chunks[-1]['error']['code'], 'task_canceled', 'the last chunk')
        else:
            equal([got[0].status, got[0].error['code'], got[0].headers['x-should-retry']], [424, 'task_canceled', 'false'], 'the answer')


@test('nothing to say: 400, and nothing is begun')
def _():
    for messages in [[], [{'role': 'system', 'content': 'x'}], [{'role': 'user', 'content': 'x'}, {'role': 'assistant', 'content': 'y'}]]:
        for stream in [False, True]:
            answer = chat(server, messages, stream=stream)
            equal([answer.status, answer.error['param']], [400, 'messages'], json.dumps(messages))


# ---- files and data -------------------------------------------------------------------------------------------------

def citations(answer):
    return [(c['title'], c['url'], answer.content[c['start_index']:c['end_index']])
            for c in (a['url_citation'] for a in answer.body['choices'][0]['message'].get('annotations', []))]


@test('parts: data is a block of JSON, bare where JSON was asked for')
def _():
    events = [artifact('a', {'data': {'city': 'Ö', 'n': 1.0}}, lastChunk=True), DONE]
    whole, streamed = answers(*events)
    equal([whole.content, streamed.said()], ['```json\n{"city": "Ö", "n": 1.0}\n```'] * 2, 'the block')
    whole, streamed = answers(*events, response_format={'type': 'json_object'})
    equal([json.loads(whole.content), streamed.said()], [{'city': 'Ö', 'n': 1.0}, whole.content], 'bare')


@test('parts: an image at an address is shown')
def _():
    whole, streamed = answers(artifact('a', IMAGE, lastChunk=True), DONE)
    equal([whole.content, streamed.said(), citations(whole)], ['![a.png](https://example.com/a.png)'] * 2 + [[]], 'the link')


@test('parts: a file at an address is a link, and cited')
def _():
    whole, streamed = answers(artifact('t', 'Grüße 👋', lastChunk=True), artifact('a', LINK, lastChunk=True), DONE)
    equal(whole.content, 'Grüße 👋\n\n[a.pdf](https://example.com/a.pdf)', 'the link')
    equal(citations(whole), [('a.pdf', LINK['url'], '[a.pdf](https://example.com/a.pdf)')], 'the citation')
    equal(streamed.chunks[-1]['choices'][0]['delta']['annotations'], whole.body['choices'][0]['message']['annotations'], 'in the last chunk')


@test('parts: bytes are links to what we give')
def _():
    raw = [{'raw': 'iVBORw0KGgo=', 'mediaType': 'image/png'}, {'raw': 'aGVsbG8=', 'filename': 'ä "b".txt', 'mediaType': 'text/plain'}]
    whole, streamed = answers(artifact('a', raw[0]), artifact('a', raw[1], append=True, lastChunk=True), DONE)
    check('iVBORw0' not in whole.text and 'aGVsbG8' not in whole.text, 'no bytes in the answer')
    image, file = whole.content.split('\n\n')
    check(image.startswith('![file.png](http://127.0.0.1:'), image)
    equal(len(citations(whole)), 1, 'the citations')
    for link, text, type in [(image, b'\x89PNG\r\n\x1a\n'.decode('latin1'), 'image/png'), (file, 'hello', 'text/plain')]:
        path = '/v1/files/' + link.split('/v1/files/')[1].rstrip(')')
        connection = http.client.HTTPConnection(*server.address, timeout=60)
        connection.request('GET', path)
        response = connection.getresponse()
        equal([response.status, response.headers['content-type'], response.read().decode('latin1')], [200, type, text], path)
        equal([response.headers['x-content-type-options'], response.headers['content-security-policy']],
              ['nosniff', "sandbox; default-src 'none'"], 'a browser must not run it')
    check('filename*=UTF-8\'\'%C3%A4%20%22b%22.txt' in response.headers['content-disposition'], response.headers['content-disposition'])
    equal(len(streamed.said().split('\n\n')), 2, 'the stream')


@test('unknown files: 404')
def _():
    for id in ['x', 'file-', 'file-abc', 'file-dG9sZAp0CjAKbWFkZQ', '%ff', 'file-' + 'A' * 5000]:
        answer = call(server, 'GET', f'/v1/files/{id}/content')
        equal([answer.status, answer.error['type']], [404, 'invalid_request_error'], id)
    equal(call(server, 'GET', '/v1/files/x').status, 404, 'without /content')
    equal(call(server, 'POST', '/v1/files/x/content', {}).status, 405, 'another method')


run(server)
