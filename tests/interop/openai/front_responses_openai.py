"""PyPI `openai` talks to a live server: responses, tools, chains, conversations, background, a restart after kill -9."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import Gate, check, equal, live, run, test, until

import openai

server = live()
client = openai.OpenAI(base_url=server.url + '/v1', api_key='none', max_retries=0)


def ask(input, model='demo', **more):
    return client.responses.create(model=model, input=input, **more)


def fails(kind, call, *args, **more):
    try:
        call(*args, **more)
    except kind as error:
        return error
    raise AssertionError(f'no {kind.__name__} came')


def ended(id):
    return until(lambda: (r := client.responses.retrieve(id)).status not in ('queued', 'in_progress') and r, 'the response ends')


def calls(response):
    return [i for i in response.output if i.type == 'function_call']


def run_tools(response):
    return [{'type': 'function_call_output', 'call_id': c.call_id, 'output': f'{c.name}:{list(json.loads(c.arguments).values())[0]}'}
            for c in calls(response)]


SAID = 'The tools say: 1=get_weather:Oslo, 2=get_time:CET'
TOOLS = [{'type': 'function', 'name': n, 'parameters': {'type': 'object', 'properties': {}}, 'strict': False} for n in ('get_weather', 'get_time')]


@test('openai for Python: a response, streamed and not, is the same')
def _():
    whole = ask('tools', metadata={'k': 'v'})
    equal([whole.status, whole.output_text, whole.metadata['k']], ['completed', 'It is sunny in Oakland, 72°F.', 'v'], 'the response')
    with client.responses.stream(model='demo', input='tools') as stream:
        text = ''.join(e.delta for e in stream if e.type == 'response.output_text.delta')
        final = stream.get_final_response()
    equal([text, final.output_text], [whole.output_text] * 2, 'the stream')
    equal(client.responses.retrieve(final.id).output_text, text, 'retrieved')


@test('openai for Python: two calls at once, with previous_response_id and without')
def _():
    asked = ask('go', 'caller', tools=TOOLS)
    equal([c.name for c in calls(asked)], ['get_weather', 'get_time'], 'the calls')
    answer = ask(run_tools(asked), 'caller', tools=TOOLS, previous_response_id=asked.id)
    equal(answer.output_text, SAID, 'the answer')
    again = ask('go', 'caller', tools=TOOLS, store=False)
    history = [{'role': 'user', 'content': 'go'}, *[c.to_dict() for c in again.output], *run_tools(again)]
    equal(ask(history, 'caller', tools=TOOLS, store=False).output_text, SAID, 'the answer without any state')


@test('openai for Python: a question and its answer are one task')
def _():
    question = ask('ask')
    answer = ask('Ada', previous_response_id=question.id)
    check(answer.output_text.startswith('Hello Ada'), answer.output_text)
    equal(answer.metadata['a2a_task_id'], question.metadata['a2a_task_id'], 'the task')


@test('openai for Python: a conversation')
def _():
    c = client.conversations.create(items=[{'type': 'message', 'role': 'user', 'content': 'I am Ada'}], metadata={'k': 'v'})
    ask('ask', conversation=c.id)
    answer = ask('Bob', conversation={'id': c.id})
    items = list(client.conversations.items.list(c.id, order='asc', limit=2))
    equal([i.content[0].text for i in items], ['I am Ada', 'ask', 'What is your name?', 'Bob', answer.output_text], 'its items')
    equal(client.conversations.update(c.id, metadata={'a': 'b'}).metadata, {'a': 'b'}, 'its metadata')
    client.conversations.delete(c.id)
    fails(openai.NotFoundError, client.conversations.retrieve, c.id)


@test('openai for Python: background, polled, canceled, deleted')
def _():
    g = Gate()
    first = ask(g.message, 'gate', background=True)
    equal(first.status, 'in_progress', 'the first answer')
    g.open()
    equal(ended(first.id).output_text, 'one \ntwo \nthree', 'the end')
    second = ask(Gate().message, 'gate', background=True)
    equal(client.responses.cancel(second.id).status, 'cancelled', 'canceled')
    client.responses.delete(second.id)
    fails(openai.NotFoundError, client.responses.retrieve, second.id)


@test('openai for Python: a stream is taken up again after kill -9 and a restart')
def _():
    seen = list(ask('reasoning', background=True, stream=True))
    id = seen[0].response.id
    server.kill()
    server.restart()
    rest = list(client.responses.retrieve(id, stream=True, starting_after=3))
    equal([e.to_dict() for e in rest], [e.to_dict() for e in seen[4:]], 'the rest')
    equal([i.content[0].text for i in client.responses.input_items.list(id)], ['reasoning'], 'the input')


@test('openai for Python: killed in the middle: the streamed text stays, the end has the reason')
def _():
    seen = []
    try:
        for event in ask(Gate().message, 'gate', background=True, stream=True):
            seen.append(event)
            if event.type == 'response.output_text.delta':
                server.kill()
    except Exception:  # of whichever layer
        pass
    server.restart()
    response = client.responses.retrieve(seen[0].response.id)
    equal(response.status, 'failed', 'the status')
    check(response.output_text.startswith('one'), response.output_text)
    last = seen[-1].sequence_number
    numbers = []
    try:
        for event in client.responses.retrieve(response.id, stream=True, starting_after=last):
            numbers.append(event.sequence_number)
    except openai.APIError:
        pass
    equal(numbers, list(range(last + 1, last + 1 + len(numbers))), 'the numbers go on')


@test('openai for Python: errors')
def _():
    equal(fails(openai.NotFoundError, ask, 'x', 'nobody').code, 'model_not_found', 'an unknown model')
    equal(fails(openai.BadRequestError, ask, 'x', previous_response_id='resp_x').code, 'previous_response_not_found', 'an unknown response')
    fails(openai.NotFoundError, client.responses.retrieve, 'resp_x')
    fails(openai.NotFoundError, client.conversations.retrieve, 'conv_x')
    failed = fails(openai.APIStatusError, ask, 'fail')
    equal([failed.status_code, failed.code], [424, 'task_failed'], 'a failure')
    background = ask('fail', background=True)
    while background.status in ('queued', 'in_progress'):
        background = client.responses.retrieve(background.id)
    equal([background.status, background.error.code], ['failed', 'task_failed'], 'a failure in the background')


run(server, about='openai for Python: ')
