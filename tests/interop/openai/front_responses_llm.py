"""PyPI `openai`, responses of a language model: approvals, questions, tools of the caller, steering, reasoning, usage."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, equal, run, test
from llm import ASK, CALL, REMOVE, SLOW, STEER, WEATHER, llm

import openai

server = llm()
client = openai.OpenAI(base_url=f'{server.url}/v1', api_key='none', max_retries=0)
TOOLS = [{'type': 'function', 'strict': False, **WEATHER}]


def whole(input, before=None, **more):
    return client.responses.create(model='assistant', input=input, previous_response_id=before and before.id, **more)


def streamed(input, before=None, **more):
    with client.responses.stream(model='assistant', input=input, previous_response_id=before and before.id, **more) as events:
        return events.get_final_response()


WAYS = {'whole': whole, 'streamed': streamed}


def items(response, type):
    return [i for i in response.output if i.type == type]


def about(what):
    return [(what.replace('{}', w), create) for w, create in WAYS.items()]


for name, create in about('python, responses, {}: a request for approval is an item, and so is its answer'):
    @test(name)
    def _(create=create):
        for approve in (True, False):
            asked = create(REMOVE)
            [item] = items(asked, 'mcp_approval_request')
            equal((item.name, json.loads(item.arguments)), ('remove', {'path': 'old.txt'}), 'the request')
            done = create([{'type': 'mcp_approval_response', 'approval_request_id': item.id, 'approve': approve}], asked)
            equal(('"path"' in done.output_text, done.status), (approve, 'completed'), f'the tool ran: {done.output_text}')


for name, create in about('python, responses, {}: a question of the model, and its answer'):
    @test(name)
    def _(create=create):
        asked = create(ASK)
        equal(asked.output_text, 'Which colour?', 'the question')
        check('green' in create('green', asked).output_text, 'the answer')


for name, create in about('python, responses, {}: a tool of the caller'):
    @test(name)
    def _(create=create):
        asked = create(CALL, tools=TOOLS)
        [call] = items(asked, 'function_call')
        equal((call.name, json.loads(call.arguments)), ('weather', {'city': 'Oslo'}), 'the call')
        done = create([{'type': 'function_call_output', 'call_id': call.call_id, 'output': 'snow'}], asked, tools=TOOLS)
        check('snow' in done.output_text, done.output_text)


for name, create in about('python, responses, {}: reasoning and usage'):
    @test(name)
    def _(create=create):
        done = create('think about it')
        [thought] = items(done, 'reasoning')
        check(thought.summary[0].text and done.output_text == 'about it', done)
        check(done.usage.input_tokens > 0 and done.usage.output_tokens > 0, done.usage)


@test('python, responses: a message while the model writes reaches it')
def _():
    text, second, id = '', None, None
    for event in client.responses.create(model='assistant', input=SLOW, stream=True):
        id = event.response.id if event.type == 'response.created' else id
        text += event.delta if event.type == 'response.output_text.delta' else ''
        if 'word' in text and not second:
            second = client.responses.create(model='assistant', input=STEER, previous_response_id=id, stream=True)
    other = [e for e in second][-1].response
    check('end' in text and text.count('steered') == 1, text)
    check(other.status == 'completed' and 'steered' in other.output_text, other)


run(server, about='python, responses, llm: ')
