"""The command `llm` talks to a live server: without a stream, and a conversation that goes on with -c."""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from live import check, equal, run, serve, test

home = tempfile.mkdtemp()
with open(f'{home}/extra-openai-models.yaml', 'w') as f:
    json.dump([{'model_id': 'demo', 'model_name': 'demo', 'api_base': f'{serve().url}/v1'}], f)  # JSON is YAML


def llm(*args):
    env = {**os.environ, 'LLM_USER_PATH': home, 'OPENAI_API_KEY': 'none'}
    p = subprocess.run([sys.executable, '-m', 'llm', *args], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    check(p.returncode == 0, p.stderr)
    return p.stdout.strip()


@test('llm: a completion, streamed and not')
def _():
    for args in ([], ['--no-stream']):
        equal(llm('-m', 'demo', *args, 'tools'), 'It is sunny in Oakland, 72°F.', 'the answer')


@test('llm: a question is answered with -c')
def _():
    equal(llm('-m', 'demo', 'ask'), 'What is your name?', 'the question')
    answer = llm('-c', 'Ann')
    check(answer.startswith('Hello Ann'), answer)


run(serve())
