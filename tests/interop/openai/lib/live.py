"""Live servers for the Python programs: the same agents as in live.mjs."""

import json
import os
import re
import sys
import time
import traceback
import uuid
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / 'wire'))
from lib.server import Server, end_all, folder  # tests/wire: the process, its port, its end

AGENTS = [
    {'id': 'demo', 'type': 'demo', 'default': True, 'settings': {'pace': 0}},
    {'id': 'steady', 'type': 'demo', 'settings': {'pace': 0.02}},
    {'id': 'hello', 'type': 'hello'},
    {'id': 'caller', 'type': 'exec', 'settings': {'command': [str(HERE / 'caller.py')]}},
    {'id': 'gate', 'type': 'exec', 'settings': {'command': [str(HERE.parents[1] / 'server/gate.sh')], 'input': 'text', 'output': 'text'}},
]


def live(**more):
    """One with a database, so that it can be killed and started again."""
    return Server(agent=None, config={'agents': AGENTS, **more}, store=f'sqlite:{folder()}/tasks.db')


class Gate:
    """A message for the agent `gate`, and what lets it go on."""

    def __init__(self):
        self.message = os.path.join(folder(), str(uuid.uuid4()))

    def open(self):
        open(self.message, 'w').close()


def until(look, why):
    for _ in range(1500):
        if found := look():
            return found
        time.sleep(0.02)
    raise AssertionError(f'waited 30 s: {why}')


def check(good, why):
    if not good:
        raise AssertionError(why)


def equal(got, want, what):
    check(got == want, f'{what} is {json.dumps(got, default=str)[:1500]}, wanted {json.dumps(want, default=str)[:1500]}')


TESTS = {}


def test(name):
    def put(function):
        assert name not in TESTS, name
        TESTS[name] = function
        return function
    return put


def run(*servers, about=''):
    """All tests; the last one is how the servers end: a sanitizer's word included."""
    TESTS[f'{about}the servers end well'] = lambda: [s.stop_well() for s in servers]
    failed = 0
    for n, (name, function) in enumerate(TESTS.items(), 1):
        try:
            function()
            print(f'ok {n} - {name}', flush=True)
        except Exception:
            failed += 1
            print(f'not ok {n} - {name}')
            print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M), flush=True)
    print(f'1..{len(TESTS)}', flush=True)
    end_all()
    sys.exit(1 if failed else 0)
