"""What the interop programs share: TAP output, `dragoman convert`, and the objects of ../objects.json
in every A2A dialect."""

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
import traceback
from datetime import datetime, timezone
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
BINARY = ROOT / os.environ.get('DRAGOMAN', 'build/dragoman')
DIALECTS = ('a2a-1.0', 'a2a-0.3', 'a2a-0.3-rest')

if not BINARY.exists():
    print(f'not ok 1 - dragoman is built\n# no {BINARY}: run make build, or name it in DRAGOMAN\n1..1')
    sys.exit(1)


def use_venv(name):
    """Goes on in the virtual environment that scripts/setup made from requirements-<name>.txt."""
    venv = HERE.parent / f'.venv-{name}'
    if Path(sys.prefix).resolve() == venv.resolve():
        return
    python = venv / 'bin' / 'python'
    if not python.exists():
        print(f'not ok 1 - the packages of requirements-{name}.txt are installed\n# run scripts/setup\n1..1')
        sys.exit(1)
    os.execv(python, [str(python), *sys.argv])


# ---- TAP ---------------------------------------------------------------------------------------------

_tests = {}


def test(name):
    def add(fn):
        if name in _tests:
            raise ValueError(f'two tests are named "{name}"')
        _tests[name] = fn
        return fn

    return add


def run():
    """Runs the tests in the order they were added; a coroutine function is awaited."""

    async def all_of_them():
        failed = 0
        for n, (name, fn) in enumerate(_tests.items(), 1):
            try:
                result = fn()
                if inspect.isawaitable(result):
                    await asyncio.wait_for(result, 20)
                print(f'ok {n} - {name}')
            except Exception:
                failed += 1
                print(f'not ok {n} - {name}')
                print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M))
        print(f'1..{len(_tests)}', flush=True)
        os._exit(1 if failed else 0)  # agents that still wait, and threads, are of no more use

    asyncio.run(all_of_them())


# ---- dragoman convert --------------------------------------------------------------------------------


def convert(source, target, value, object=None, frame=None):
    """Runs `dragoman convert`; text (or a value, as JSON) in, text out. Raises with its words."""
    args = [str(BINARY), 'convert', '--from', source, '--to', target]
    args += ['--object', object] if object else []
    args += ['--frame', frame] if frame else []
    text = value if isinstance(value, str) else json.dumps(value)
    r = subprocess.run(args, input=text.encode(), capture_output=True, timeout=60)
    if r.returncode:
        raise AssertionError(f'{" ".join(args[1:])}: exit {r.returncode}\n{r.stderr.decode()}for {text}')
    return r.stdout.decode()


def events_of(stream):
    """The JSON values in the data of server-sent events, each on one line. (str.splitlines would
    also split at the U+2028 that JSON may hold.)"""
    return [json.loads(line[6:]) for line in stream.split('\n') if line.startswith('data: ')]


def convert_json(source, target, value, **options):
    return json.loads(convert(source, target, value, **options))


# ---- the objects ---------------------------------------------------------------------------------------

_objects = json.loads((HERE.parents[1] / 'objects.json').read_text())
_calls = json.loads((HERE.parents[1] / 'calls.json').read_text())
METHODS, STREAMS, ERRORS = _calls['methods'], _calls['streams'], _calls['errors']


def in_dialect(name, dialect):
    """The named object in the dialect."""

    def spell(value):
        if isinstance(value, list):
            return [spell(v) for v in value]
        if isinstance(value, dict):
            return in_dialect(value['$'], dialect) if '$' in value else {k: spell(v) for k, v in value.items()}
        return value

    return spell(_objects[name][dialect])


def has(name, dialect):
    return dialect in _objects[name]


def objects_of(dialect):
    """(name, kind, the value for --object or None) of the objects that the dialect has."""
    return [(n, o['object'], o['object'] if o.get('ask') else None) for n, o in _objects.items() if dialect in o]


def others_of(name, dialect):
    return [d for d in DIALECTS if d != dialect and d in _objects[name]]


def kind_of(name):
    return _objects[name]['object']


# ---- comparing -----------------------------------------------------------------------------------------

_OPAQUE = {'metadata', 'header', 'scopes'}


def normal(value):
    """The same value for every way to write it: members with default values may be left out, times
    have one format. Values that are opaque to A2A (metadata, data, params of an extension) are not changed."""
    if isinstance(value, list):
        return [normal(v) for v in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for k, v in value.items():
        is_data = k == 'data' and not (isinstance(v, dict) and list(v) == ['data'])
        if k in _OPAQUE or is_data or (k == 'params' and 'uri' in value):
            if v or k not in ('metadata', 'header', 'params'):
                out[k] = v
        elif k == 'securitySchemes' and not v:
            continue
        elif k == 'state' and v == 'TASK_STATE_UNSPECIFIED':
            continue
        elif isinstance(v, str) and re.search('^timestamp$|TimestampAfter$', k):
            out[k] = datetime.fromisoformat(v.replace('Z', '+00:00')).astimezone(timezone.utc).isoformat()
        elif not (v is None or v is False or v == '' or v == [] or (not isinstance(v, dict) and v == 0)):
            out[k] = normal(v)
    return out


def _difference(a, b, at=''):
    """Where two values differ first: (JSON pointer, one, other)."""
    if isinstance(a, dict) and isinstance(b, dict):
        for k in [*a, *(k for k in b if k not in a)]:
            if a.get(k, ...) != b.get(k, ...):
                return _difference(a.get(k, 'absent'), b.get(k, 'absent'), f'{at}/{k}')
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return _difference(x, y, f'{at}/{i}')
    return at, a, b


def equal(got, expected, what='value'):
    if got != expected:
        at, one, other = _difference(got, expected)
        raise AssertionError(f'{what} differs at "{at}"\n  got:      {one!r}\n  expected: {other!r}')


def same(got, expected, what='value'):
    equal(normal(got), normal(expected), what)


async def failure(awaitable, kind=Exception):
    """Awaits a failure of that kind and hands it back."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError('no error came')
