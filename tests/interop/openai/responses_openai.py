"""PyPI `openai` reads what convert writes as Responses: plain, streamed, with its .stream() helper."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from world import STORIES, convert, equal, run, serve, sse, story, test

import openai


def answer(body, path):
    if not path.endswith('/responses'):
        raise ValueError(f'no such path: {path}')
    said = sse(story(body['model'])['events'])
    if body.get('stream'):
        return True, convert('a2a-1.0', 'openai-responses', said)
    return False, convert('a2a-1.0', 'openai-responses', said, '--as', 'response')


client = openai.OpenAI(base_url=serve(answer), api_key='none', max_retries=0)


def read(response):
    parts = [p for i in response.output if i.type == 'message' for p in i.content]
    return {
        'text': ''.join(p.text for p in parts if p.type == 'output_text'),
        'refusal': ''.join(p.refusal for p in parts if p.type == 'refusal'),
        'calls': [{'id': i.call_id, 'name': i.name, 'arguments': json.loads(i.arguments)}
                  for i in response.output if i.type == 'function_call'],
        'own': [{'name': i.name, 'arguments': json.loads(i.arguments), 'output': i.output}
                for i in response.output if i.type == 'mcp_call'],
        'progress': ''.join(s.text for i in response.output if i.type == 'reasoning' for s in i.summary),
    }


def check_response(s, response):
    status = 'failed' if 'error' in s else 'cancelled' if s['name'] == 'canceled' else 'completed'
    equal(response.status, status, 'the status')
    want = {'text': s.get('final', s.get('text', '')), 'refusal': s.get('refusal', ''), 'calls': s.get('calls', []),
            'own': [s['own']] if 'own' in s else [], 'progress': s.get('progress', '')}
    equal(read(response), want, 'the output')
    equal(response.output_text, want['text'], 'output_text')
    if 'usage' in s:
        u = response.usage
        equal([u.input_tokens, u.output_tokens, u.output_tokens_details.reasoning_tokens], s['usage'], 'the usage')
    if 'state' in s:
        equal(response.metadata['a2a_task_state'], s['state'], 'the state')
    if 'error' in s:
        equal(response.error.message, s['error'], 'the error')


def fails(s, fn):
    try:
        fn()
    except openai.APIError as error:
        if s['error'] in str(error):
            return
        raise
    raise AssertionError('no error came')


def plain(s):
    check_response(s, client.responses.create(model=s['name'], input='Hello'))


def streamed(s):
    text, arguments, last, n = '', {}, None, 0

    def follow():
        nonlocal text, last, n
        for event in client.responses.create(model=s['name'], input='Hello', stream=True):
            equal(event.sequence_number, n, 'the sequence number')
            n += 1
            if event.type == 'response.output_text.delta':
                text += event.delta
            if event.type == 'response.function_call_arguments.delta':
                arguments[event.item_id] = arguments.get(event.item_id, '') + event.delta
            last = event

    if 'error' in s:
        fails(s, follow)
    else:
        follow()
        check_response(s, last.response)
    equal(text, s.get('text', ''), 'the text of the deltas')
    equal([json.loads(a) for a in arguments.values()], [c['arguments'] for c in s.get('calls', [])], 'the arguments')


def helper(s):
    def follow():
        with client.responses.stream(model=s['name'], input='Hello') as stream:
            text = ''.join(e.delta for e in stream if e.type == 'response.output_text.delta')
            equal(text, s.get('text', ''), 'the text of the deltas')
            return stream

    if 'error' in s:
        fails(s, follow)
    elif s['name'] == 'canceled':
        follow()  # the helper knows no end but response.completed
    else:
        check_response(s, follow().get_final_response())


for s in STORIES:
    test(f'PyPI openai: {s["about"]}: the response', lambda s=s: plain(s))
    test(f'PyPI openai: {s["about"]}: the stream', lambda s=s: streamed(s))
    test(f'PyPI openai: {s["about"]}: .stream()', lambda s=s: helper(s))
run()
