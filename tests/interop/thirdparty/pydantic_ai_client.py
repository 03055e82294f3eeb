"""pydantic-ai talks to a live server over both of OpenAI's APIs: structured output, tools, a question, a failure."""

import asyncio
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, each, equal, run, runs_of, serve

from openai import AsyncOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider


class Weather(BaseModel):
    city: str
    forecast: list[str]


APIS = {'chat': OpenAIChatModel, 'responses': OpenAIResponsesModel}


def model(api, name='demo'):
    client = AsyncOpenAI(base_url=f'{serve().url}/v1', api_key='none')
    return APIS[api](name, provider=OpenAIProvider(openai_client=client))


@each('pydantic-ai, {}: output_type, by a tool that must be called', APIS)
def _(api):
    output = Agent(model(api), output_type=Weather).run_sync('data').output
    equal(output, Weather(city='Oakland', forecast=['sunny', 'sunny', 'fog']), 'the output')


@each('pydantic-ai, {}: NativeOutput, by a JSON schema', APIS)
def _(api):
    output = Agent(model(api), output_type=NativeOutput(Weather)).run_sync('data').output
    equal(output.city, 'Oakland', 'the output')


@each('pydantic-ai, {}: structured output, streamed', APIS)
def _(api):
    async def stream():
        async with Agent(model(api), output_type=NativeOutput(Weather)).run_stream('data') as result:
            return await result.get_output()
    equal(asyncio.run(stream()).city, 'Oakland', 'the output')


@each('pydantic-ai, {}: a tool of the caller', APIS)
def _(api):
    agent = Agent(model(api))

    @agent.tool_plain
    def get_weather(location: str) -> str:
        return f'Rain in {location}'

    equal(agent.run_sync('client-tool').output, 'Your tool says: Rain in Oakland', 'the answer')


@each('pydantic-ai, {}: a question is answered with message_history', APIS)
def _(api):
    agent = Agent(model(api), instructions='Be brief.')
    question = agent.run_sync('ask')
    equal(question.output, 'What is your name?', 'the question')
    answer = agent.run_sync('Ann', message_history=question.all_messages())
    check(answer.output.startswith('Hello Ann'), answer.output)


@each('pydantic-ai, {}: a task that fails is an error, and the agent runs once', APIS)
def _(api):
    before = runs_of('fail')
    try:
        Agent(model(api)).run_sync('fail')
    except ModelHTTPError as error:
        equal(error.status_code, 424, 'the status')
        check('the demo was asked to fail' in str(error), error)
    else:
        raise AssertionError('no error')
    equal(runs_of('fail') - before, 1, 'runs')


run(serve())
