"""What the Python programs share: the stories of world.mjs as JSON, `dragoman convert`, TAP."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
BINARY = ROOT / os.environ.get('DRAGOMAN', 'build/dragoman')


def stories():
    """They are written in JavaScript: node prints them."""
    js = "import { stories } from './lib/world.mjs'; console.log(JSON.stringify(stories));"
    r = subprocess.run(['node', '--input-type=module', '-e', js], cwd=HERE.parent, capture_output=True, timeout=60, check=True)
    return json.loads(r.stdout)


def convert(source, target, text, *options):
    args = [str(BINARY), 'convert', '--from', source, '--to', target, *options]
    r = subprocess.run(args, input=text.encode(), capture_output=True, timeout=60)
    if r.returncode:
        raise AssertionError(f'{" ".join(args[1:])}: exit {r.returncode}\n{r.stderr.decode()}for {text[:2000]}')
    return r.stdout.decode()


def tell(s, target, *options):
    text = ''.join(f'data: {json.dumps(e)}\n\n' for e in s['events'])
    if s['from'] == 'openai-chat':
        text += 'data: [DONE]\n\n'
    return convert(s['from'], target, text, *options)


def events(text):
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith('data: ') and line != 'data: [DONE]']


def equal(got, want, what):
    if got != want:
        raise AssertionError(f'{what} is {got!r}, wanted {want!r}')


def pinned(package):
    """Is the package the one that requirements-ui.txt names?"""
    want = re.search(rf'^{package}==(.*)$', (HERE.parent / 'requirements-ui.txt').read_text(), re.M)[1]
    test(f'PyPI {package} is {want}', lambda: equal(importlib.metadata.version(package), want, 'the version'))


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
    print(f'1..{len(_tests)}')
    sys.exit(1 if failed else 0)
