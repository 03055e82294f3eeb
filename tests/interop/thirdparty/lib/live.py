"""What the programs of this folder share: one server, tests per API, and how often an agent ran."""

import http.client
import importlib.util
import json
from pathlib import Path

# the module of the same name in ../openai: the process, its port, TAP
spec = importlib.util.spec_from_file_location('openai_live', Path(__file__).resolve().parents[2] / 'openai/lib/live.py')
openai_live = importlib.util.module_from_spec(spec)
spec.loader.exec_module(openai_live)
check, equal, test, run = openai_live.check, openai_live.equal, openai_live.test, openai_live.run

server = None


def serve():
    """The server of this program, started when it is first wanted."""
    global server
    server = server or openai_live.live()
    return server


def each(name, cases):
    """A test per case; the function gets the case."""
    def declare(fn):
        for case in cases:
            test(name.format(case))(lambda case=case: fn(case))
        return fn
    return declare


def runs_of(word):
    """How many tasks began with this word."""
    connection = http.client.HTTPConnection(*serve().address, timeout=60)
    body = {'jsonrpc': '2.0', 'id': 1, 'method': 'ListTasks', 'params': {'pageSize': 100, 'historyLength': 1}}
    connection.request('POST', '/', json.dumps(body), {'Content-Type': 'application/json', 'A2A-Version': '1.0'})
    tasks = json.loads(connection.getresponse().read())['result']['tasks']
    connection.close()
    texts = [p.get('text') for t in tasks for m in t.get('history', []) for p in m['parts']]
    return texts.count(word)
