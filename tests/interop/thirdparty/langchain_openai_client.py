"""langchain-openai talks to a live server over both of OpenAI's APIs: structured output, tools, a question, a failure."""

import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, each, equal, run, runs_of, serve

import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel


class Weather(BaseModel):
    """The weather in a city."""
    city: str
    forecast: list[str]


@tool
def get_weather(location: str) -> str:
    """The weather at a place."""
    return f'Rain in {location}'


APIS = {'chat': False, 'responses': True}


def model(api):
    return ChatOpenAI(model='demo', base_url=f'{serve().url}/v1', api_key='none', use_responses_api=APIS[api])


for method in ('json_schema', 'function_calling', 'json_mode'):
    @each(f'langchain-openai, {{}}: with_structured_output({method})', APIS)
    def _(api, method=method):
        output = model(api).with_structured_output(Weather, method=method).invoke('data')
        equal(output, Weather(city='Oakland', forecast=['sunny', 'sunny', 'fog']), 'the output')


@each('langchain-openai, {}: structured output, streamed', APIS)
def _(api):
    *_, last = model(api).with_structured_output(Weather, method='function_calling').stream('data')
    equal(last.city, 'Oakland', 'the output')


@each('langchain-openai, {}: a tool of the caller', APIS)
def _(api):
    chat = model(api).bind_tools([get_weather])
    messages = [HumanMessage('client-tool')]
    call = chat.invoke(messages)
    messages += [call] + [ToolMessage(get_weather.invoke(c['args']), tool_call_id=c['id']) for c in call.tool_calls]
    equal(chat.invoke(messages).text, 'Your tool says: Rain in Oakland', 'the answer')


@each('langchain-openai, {}: a question is answered with the messages so far', APIS)
def _(api):
    messages = [HumanMessage('ask')]
    messages.append(model(api).invoke(messages))
    equal(messages[-1].text, 'What is your name?', 'the question')
    answer = model(api).invoke(messages + [HumanMessage('Ann')])
    check(answer.text.startswith('Hello Ann'), answer.text)


@each('langchain-openai, {}: usage is there', APIS)
def _(api):
    equal(model(api).invoke('hello').usage_metadata['total_tokens'], 0, 'tokens')


@each('langchain-openai, {}: a task that fails is an error, and the agent runs once', APIS)
def _(api):
    before = runs_of('fail')
    try:
        model(api).invoke('fail')
    except openai.APIStatusError as error:
        equal([error.status_code, error.code], [424, 'task_failed'], 'the error')
    else:
        raise AssertionError('no error')
    equal(runs_of('fail') - before, 1, 'runs')


run(serve())
