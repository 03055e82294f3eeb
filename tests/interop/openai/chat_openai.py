"""PyPI `openai` reads what convert writes as Chat Completions: plain, streamed, with its .stream() helper."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from world import STORIES, convert, equal, run, serve, sse, story, test

import openai


def answer(body, path):
    if not path.endswith('/chat/completions'):
        raise ValueError(f'no such path: {path}')
    said = sse(story(body['model'])['events'])
    if body.get('stream'):
        return True, convert('a2a-1.0', 'openai-chat', said)
    text = convert('a2a-1.0', 'openai-chat', said, '--as', 'response')
    if 'error' in json.loads(text):  # a server would not say 200
        raise ValueError(json.loads(text)['error']['message'])
    return False, text


client = openai.OpenAI(base_url=serve(answer), api_key='none', max_retries=0)
HELLO = [{'role': 'user', 'content': 'Hello'}]


def streamed(s):
    """Streamed text cannot be revoked: a different final text follows as a new paragraph."""
    return s['text'] + '\n\n' + s['final'] if 'final' in s else s.get('text', '')


def wrong(s):
    return s.get('error') or ('The task was canceled' if s['name'] == 'canceled' else None)


def failing(s, fn):
    try:
        fn()
    except openai.APIError as error:
        if wrong(s) not in str(error):
            raise AssertionError(f'the error says {error}') from error
    else:
        raise AssertionError('expected an error, but the call succeeded')


def check_message(s, message, text):
    equal(message.content or '', text, 'the text')
    equal(message.refusal or '', s.get('refusal', ''), 'the refusal')
    calls = [{'id': c.id, 'name': c.function.name, 'arguments': json.loads(c.function.arguments)} for c in message.tool_calls or []]
    equal(calls, s.get('calls', []), 'the calls')


def check_usage(s, usage):
    if 'usage' in s:
        equal([usage.prompt_tokens, usage.completion_tokens, usage.completion_tokens_details.reasoning_tokens], s['usage'], 'the usage')


def plain(s):
    def ask():
        return client.chat.completions.create(model=s['name'], messages=HELLO)
    if wrong(s):
        return failing(s, ask)
    got = ask()
    equal(got.choices[0].finish_reason, 'tool_calls' if 'calls' in s else 'stop', 'the finish reason')
    check_message(s, got.choices[0].message, s.get('final', s.get('text', '')))
    check_usage(s, got.usage)


def chunks(s):
    deltas, finishes, calls, usage = [], [], {}, []

    def read():
        for chunk in client.chat.completions.create(model=s['name'], messages=HELLO, stream=True, stream_options={'include_usage': True}):
            usage[:] = [chunk.usage] if chunk.usage else usage
            for choice in chunk.choices:
                deltas.append(choice.delta)
                finishes.extend([choice.finish_reason] if choice.finish_reason else [])
                for c in choice.delta.tool_calls or []:
                    calls.setdefault(c.index, [c.id, c.function.name, ''])[2] += c.function.arguments
    failing(s, read) if wrong(s) else read()
    equal(deltas[0].role, 'assistant', 'the role of the first delta')
    equal(''.join(d.content or '' for d in deltas), streamed(s), 'the text of the deltas')
    equal(''.join(d.refusal or '' for d in deltas), s.get('refusal', ''), 'the refusal of the deltas')
    equal([[c['id'], c['name'], c['arguments']] for c in s.get('calls', [])], [[i, n, json.loads(a)] for i, n, a in calls.values()], 'the calls of the deltas')
    equal(finishes, [] if wrong(s) else ['tool_calls' if 'calls' in s else 'stop'], 'the finish reasons')
    if 'usage' in s:
        check_usage(s, usage[0])


def helper(s):
    texts, whole = [], []

    def read():
        with client.chat.completions.stream(model=s['name'], messages=HELLO) as stream:
            for event in stream:
                if event.type == 'content.delta':
                    texts.append(event.delta)
                if event.type == 'content.done':
                    whole.append(event.content)
            return stream.get_final_completion()
    if wrong(s):
        return failing(s, read)
    got = read()
    check_message(s, got.choices[0].message, streamed(s))
    equal(''.join(texts), streamed(s), 'the text of the deltas')
    if streamed(s):
        equal(whole, [streamed(s)], 'content.done')


for s in STORIES:
    test(f'openai chat (python): {s["about"]}: the completion', lambda s=s: plain(s))
    test(f'openai chat (python): {s["about"]}: the chunks', lambda s=s: chunks(s))
    test(f'openai chat (python): {s["about"]}: .stream()', lambda s=s: helper(s))

run()
