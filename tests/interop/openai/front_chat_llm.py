"""PyPI `openai`, chat completions of a language model: approvals, questions, tools of the caller, steering."""

import json
import sys
import uuid

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, equal, run, test
from llm import ASK, CALL, REMOVE, SLOW, STEER, WEATHER, llm

import openai

server = llm()
client = openai.OpenAI(base_url=f'{server.url}/v1', api_key='none', max_retries=0)
TOOLS = [{'type': 'function', 'function': WEATHER}]


def whole(messages, **more):
    return client.chat.completions.create(model='assistant', messages=messages, **more)


def streamed(messages, **more):
    with client.chat.completions.stream(model='assistant', messages=messages, **more) as events:
        return events.get_final_completion()


WAYS = {'whole': whole, 'streamed': streamed}


class Talk:
    """A conversation as a Chat client has it: all of its messages are sent each time."""

    def __init__(self, way, **more):
        self.create, self.more, self.messages = WAYS[way], more, []

    def send(self, *new):
        self.messages += [{'role': 'user', 'content': m} if isinstance(m, str) else m for m in new]
        done = self.create(self.messages, **self.more)
        choice = done.choices[0]
        self.messages.append(choice.message.model_dump(exclude_none=True, include={'role', 'content', 'tool_calls'}))
        return choice


def about(what):
    return [(what.replace('{}', w), w) for w in WAYS]


for name, way in about('python, chat, {}: an approval is a question; no denies, yes approves, other words ask again'):
    @test(name)
    def _(way=way):
        for answer, is_run in (('yes', True), ('no', False)):
            talk = Talk(way)
            talk.messages.append({'role': 'system', 'content': f'{way} {answer}'})  # equal transcripts of two tasks would be ambiguous
            asked = talk.send(REMOVE)
            check('remove' in asked.message.content and 'old.txt' in asked.message.content, asked)
            again = talk.send('perhaps')
            check('not understood' in again.message.content, again)
            done = talk.send(answer)
            equal('"path"' in done.message.content, is_run, f'the tool ran: {done.message.content}')


for name, way in about('python, chat, {}: a question of the model, and its answer'):
    @test(name)
    def _(way=way):
        talk = Talk(way)
        equal(talk.send(ASK).message.content, 'Which colour?', 'the question')
        check('green' in talk.send('green').message.content, talk.messages)


for name, way in about('python, chat, {}: a tool of the caller'):
    @test(name)
    def _(way=way):
        talk = Talk(way, tools=TOOLS)
        asked = talk.send(CALL)
        equal(asked.finish_reason, 'tool_calls', 'finish_reason')
        [call] = asked.message.tool_calls
        equal((call.function.name, json.loads(call.function.arguments)), ('weather', {'city': 'Oslo'}), 'the call')
        done = talk.send({'role': 'tool', 'tool_call_id': call.id, 'content': 'snow'})
        check('snow' in done.message.content and done.finish_reason == 'stop', done)


@test('python, chat: a message while the model writes reaches it')
def _():
    key = {'X-Session-Id': str(uuid.uuid4())}
    first = client.chat.completions.create(model='assistant', messages=[{'role': 'user', 'content': SLOW}], stream=True, extra_headers=key)
    text, second = '', None
    for chunk in first:
        text += chunk.choices[0].delta.content or '' if chunk.choices else ''
        if 'word' in text and not second:
            second = client.chat.completions.create(model='assistant', stream=True, extra_headers=key,
                                                    messages=[{'role': 'user', 'content': SLOW}, {'role': 'user', 'content': STEER}])
    other = ''.join(c.choices[0].delta.content or '' for c in second if c.choices)
    check('end' in text and 'steered' in text and 'steered' in other, [text, other])
    equal(text.count('steered'), 1, 'the text once')


run(server, about='python, chat, llm: ')
