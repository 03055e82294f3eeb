"""openai-agents talks to a live server over both of OpenAI's APIs: structured output, tools, a question, a failure."""

import asyncio
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, each, equal, run, runs_of, serve

import openai
from agents import (Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, SQLiteSession, function_tool,
                    set_tracing_disabled)
from pydantic import BaseModel

set_tracing_disabled(True)


class Weather(BaseModel):
    city: str
    forecast: list[str]


@function_tool
def get_weather(location: str) -> str:
    """The weather at a place."""
    return f'Rain in {location}'


APIS = {'chat': OpenAIChatCompletionsModel, 'responses': OpenAIResponsesModel}


def agent(api, **more):
    client = openai.AsyncOpenAI(base_url=f'{serve().url}/v1', api_key='none')
    return Agent(name='A', model=APIS[api](model='demo', openai_client=client), **more)


@each('openai-agents, {}: output_type', APIS)
def _(api):
    output = Runner.run_sync(agent(api, output_type=Weather), 'data').final_output
    equal(output, Weather(city='Oakland', forecast=['sunny', 'sunny', 'fog']), 'the output')


@each('openai-agents, {}: output_type, streamed', APIS)
def _(api):
    async def stream():
        result = Runner.run_streamed(agent(api, output_type=Weather), 'data')
        async for _ in result.stream_events():
            pass
        return result.final_output
    equal(asyncio.run(stream()).city, 'Oakland', 'the output')


@each('openai-agents, {}: a tool of the caller', APIS)
def _(api):
    answer = Runner.run_sync(agent(api, tools=[get_weather]), 'client-tool').final_output
    equal(answer, 'Your tool says: Rain in Oakland', 'the answer')


@each('openai-agents, {}: tool_choice required reaches an agent that calls tools', APIS)
def _(api):
    settings = ModelSettings(tool_choice='required')
    answer = Runner.run_sync(agent(api, tools=[get_weather], model_settings=settings), 'client-tool').final_output
    equal(answer, 'Your tool says: Rain in Oakland', 'the answer')


@each('openai-agents, {}: a question is answered in a session', APIS)
def _(api):
    session = SQLiteSession(api)
    question = Runner.run_sync(agent(api), 'ask', session=session).final_output
    equal(question, 'What is your name?', 'the question')
    answer = Runner.run_sync(agent(api), 'Ann', session=session).final_output
    check(answer.startswith('Hello Ann'), answer)


@each('openai-agents, {}: a task that fails is an error, and the agent runs once', APIS)
def _(api):
    before = runs_of('fail')
    try:
        Runner.run_sync(agent(api), 'fail')
    except openai.APIStatusError as error:
        equal([error.status_code, error.code], [424, 'task_failed'], 'the error')
    else:
        raise AssertionError('no error')
    equal(runs_of('fail') - before, 1, 'runs')


run(serve())
