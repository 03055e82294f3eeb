"""PyPI `openai` talks to a live server: chat completions, streamed and not, tools of the caller, errors, models."""

import asyncio
import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from front import front
from live import check, equal, run, test

import openai
from pydantic import BaseModel

server = front()
client = openai.OpenAI(base_url=f'{server.url}/v1', api_key='none')
TOOLS = [{'type': 'function', 'function': {'name': n, 'parameters': {'type': 'object', 'properties': {}}}} for n in ('get_weather', 'get_time')]
RESULTS = {'get_weather': 'snow', 'get_time': 'noon'}


def user(content):
    return {'role': 'user', 'content': content}


def ask(content, model='demo', **more):
    return client.chat.completions.create(model=model, messages=[user(content)], **more)


def failing(fn):
    try:
        fn()
    except openai.APIError as error:
        return error
    raise AssertionError('expected an error, but the call succeeded')


@test('python: a completion')
def _():
    raw = client.chat.completions.with_raw_response.create(model='demo', messages=[user('stream')], seed=7)
    done = raw.parse()
    check(done.choices[0].message.content.startswith('An A2A task is a small story'), done)
    equal([done.choices[0].finish_reason, done.a2a['state']], ['stop', 'completed'], 'the end')
    equal([raw.headers['x-a2a-task-id'], raw.headers['x-dragoman-ignored']], [done.a2a['task_id'], 'seed'], 'the headers')


@test('python: chunks, and the usage behind them')
def _():
    text, usage = '', None
    for chunk in ask('usage', stream=True, stream_options={'include_usage': True}):
        text += chunk.choices[0].delta.content or '' if chunk.choices else ''
        usage = chunk.usage or usage
    equal([text, usage.total_tokens], ['This answer cost 12 tokens in and 9 out.', 21], 'the stream')


@test('python: .stream() and what it adds up to')
def _():
    with client.chat.completions.stream(model='demo', messages=[user('stream')]) as stream:
        deltas = ''.join(e.delta for e in stream if e.type == 'content.delta')
        final = stream.get_final_completion()
    equal(deltas, final.choices[0].message.content, 'the deltas')
    equal(final.choices[0].finish_reason, 'stop', 'the end')


@test('python: two tools of the caller at once, streamed and not')
def _():
    def create(messages, stream):
        if not stream:
            return client.chat.completions.create(model='caller', messages=messages, tools=TOOLS)
        with client.chat.completions.stream(model='caller', messages=messages, tools=TOOLS) as events:
            return events.get_final_completion()

    for stream in [False, True]:
        first = create([user('go')], stream).choices[0]
        equal(first.finish_reason, 'tool_calls', 'the reason')
        equal([(c.function.name, json.loads(c.function.arguments)) for c in first.message.tool_calls],
              [('get_weather', {'city': 'Oslo'}), ('get_time', {'zone': 'CET'})], 'the calls')
        results = [{'role': 'tool', 'tool_call_id': c.id, 'content': RESULTS[c.function.name]} for c in first.message.tool_calls]
        last = create([user('go'), first.message.model_dump(exclude_none=True, include={'role', 'content', 'tool_calls'}), *results], stream)
        equal(last.choices[0].message.content, 'The tools say: 1=snow, 2=noon', 'the answer')


@test('python: an object, where one is asked for')
def _():
    class City(BaseModel):
        city: str

    parsed = client.chat.completions.parse(model='probe', messages=[user('json')], response_format=City)
    equal(parsed.choices[0].message.parsed, City(city='Oakland'), 'the object')


@test('python: a question, and its answer in the same task')
def _():
    asked = ask('ask', metadata={'conversation_id': 'python'})
    messages = [user('ask'), {'role': 'assistant', 'content': asked.choices[0].message.content}, user('Ann')]
    done = client.chat.completions.create(model='demo', messages=messages, metadata={'conversation_id': 'python'})
    equal([asked.a2a['state'], done.a2a['state'], done.a2a['task_id']], ['input-required', 'completed', asked.a2a['task_id']], 'the task')
    check(done.choices[0].message.content.startswith('Hello Ann'), done)


@test('python: errors have their classes')
def _():
    unknown = failing(lambda: ask('x', model='gpt-4o'))
    equal([type(unknown), unknown.code, unknown.param], [openai.NotFoundError, 'model_not_found', 'model'], 'no such model')
    many = failing(lambda: ask('x', n=2))
    equal([type(many), many.code, many.param], [openai.BadRequestError, 'unsupported_value', 'n'], 'two answers')
    failed = failing(lambda: ask('fail'))
    equal([failed.status_code, failed.code, failed.type, failed.message.count('asked to fail')], [424, 'task_failed', 'agent_error', 1], 'a failure')
    broken = failing(lambda: list(ask('break', stream=True)))
    equal([type(broken), broken.code], [openai.APIError, 'task_failed'], 'a failure in a stream')


@test('python: models and files')
def _():
    equal([m.id for m in client.models.list()], ['demo', 'steady', 'hello', 'caller', 'gate', 'probe'], 'the models')
    equal(client.models.retrieve('agent:hello').id, 'hello', 'one')
    content = ask('file').choices[0].message.content
    equal(client.files.content(content.split('/v1/files/')[1].split('/')[0]).text[:11], 'month,sales', 'a file')


@test('python: many at once')
def _():
    async def all_():
        many = openai.AsyncOpenAI(base_url=f'{server.url}/v1', api_key='none')
        asked = [many.chat.completions.create(model='demo', messages=[user(f'number {i}')]) for i in range(20)]
        return [a.choices[0].message.content.split('\n')[0] for a in await asyncio.gather(*asked)]
    equal(asyncio.run(all_()), [f'You said: number {i}' for i in range(20)], 'the answers')


run(server)
