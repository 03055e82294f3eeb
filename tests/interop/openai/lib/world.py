"""What the programs share: the stories, `dragoman convert`, a server that answers with what it made, TAP."""

import json
import os
import re
import subprocess
import sys
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
BINARY = ROOT / os.environ.get('DRAGOMAN', 'build/dragoman')
STORIES = json.loads((HERE / 'stories.json').read_text(encoding='utf-8'))

if not BINARY.exists():
    print(f'not ok 1 - dragoman is built\n# no {BINARY}: run make build, or name it in DRAGOMAN\n1..1')
    sys.exit(1)


def convert(source, target, text, *options):
    args = [str(BINARY), 'convert', '--from', source, '--to', target, *options]
    r = subprocess.run(args, input=text.encode(), capture_output=True, timeout=60)
    if r.returncode:
        raise AssertionError(f'{" ".join(args[1:])}: exit {r.returncode}\n{r.stderr.decode()}for {text[:2000]}')
    return r.stdout.decode()


def sse(events):
    return ''.join(f'data: {json.dumps(e)}\n\n' for e in events)


def story(name):
    return next(s for s in STORIES if s['name'] == name)


def serve(answer):
    """A server on a free port, in a thread: answer(body, path) gives (is it a stream, text). Returns its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers['content-length'])))
            try:
                stream, text = answer(body, self.path)
                self.send_response(200)
            except Exception as error:
                stream, text = False, json.dumps({'error': {'message': str(error), 'type': 'test', 'code': 'test', 'param': None}})
                self.send_response(400)
            data = text.encode()
            self.send_header('content-type', 'text/event-stream' if stream else 'application/json')
            self.send_header('content-length', str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f'http://127.0.0.1:{server.server_port}/v1'


_tests = {}


def test(name, fn):
    if name in _tests:
        raise ValueError(f'two tests are named "{name}"')
    _tests[name] = fn


def run():
    failed = 0
    for n, (name, fn) in enumerate(_tests.items(), 1):
        try:
            fn()
            print(f'ok {n} - {name}', flush=True)
        except Exception:
            failed += 1
            print(f'not ok {n} - {name}')
            print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M), flush=True)
    print(f'1..{len(_tests)}', flush=True)
    os._exit(1 if failed else 0)


def equal(got, want, what):
    if got != want:
        raise AssertionError(f'{what} is {got!r}, wanted {want!r}')
