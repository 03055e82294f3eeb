"""instructor talks to a live server: structured output in each of its modes, a failure."""

import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, each, equal, run, runs_of, serve, test

import instructor
import openai
from pydantic import BaseModel


class Weather(BaseModel):
    city: str
    forecast: list[str]


MODES = {name: instructor.Mode[name] for name in ('TOOLS', 'JSON', 'JSON_SCHEMA', 'MD_JSON')}


def create(mode, content):
    client = instructor.from_openai(openai.OpenAI(base_url=f'{serve().url}/v1', api_key='none'), mode=mode)
    return client.chat.completions.create(model='demo', response_model=Weather, max_retries=0, messages=[{'role': 'user', 'content': content}])


@each('instructor: {}', MODES)
def _(name):
    equal(create(MODES[name], 'data').model_dump(), {'city': 'Oakland', 'forecast': ['sunny', 'sunny', 'fog']}, 'the output')


@test('instructor: a task that fails is an error, and the agent runs once')
def _():
    before = runs_of('fail')
    try:
        create(instructor.Mode.TOOLS, 'fail')
    except Exception as error:
        check('the demo was asked to fail' in str(error), error)
    else:
        raise AssertionError('no error')
    equal(runs_of('fail') - before, 1, 'runs')


run(serve())
