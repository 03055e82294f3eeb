"""Live servers, and HTTP that keeps every stream as it came over the wire. Whoever imports this has gone
into a virtual environment of tests/interop/python already."""

import asyncio
import json
import os
import re
import sys
import traceback
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[5]
sys.path.insert(0, str(ROOT / 'tests/wire'))
from lib.server import Server as Process, end_all, folder, server  # tests/wire: the process, its port, its end

import httpx

GATE = str(ROOT / 'tests/interop/server/gate.sh')
LIMIT = 60  # seconds for a test: a sanitizer build on a busy machine takes some

# ---- TAP ---------------------------------------------------------------------------------------------------

TESTS = {}


def test(name, function):
    assert name not in TESTS, f'two tests are named "{name}"'
    TESTS[name] = function


def check(good, why):
    if not good:
        raise AssertionError(why)


def equal(got, want, what):
    check(got == want, f'{what} is {str(got)[:1500]}, wanted {str(want)[:1500]}')


async def failure(thing):
    """What a coroutine or an async iterator fails with."""
    try:
        if hasattr(thing, '__aiter__'):
            async for _ in thing:
                pass
        else:
            await thing
    except Exception as error:
        return error
    raise AssertionError('expected an error, but the call succeeded')


async def until(look, why):
    for _ in range(1500):
        if found := await look():
            return found
        await asyncio.sleep(0.02)
    raise AssertionError(f'waited 30 s: {why}')


async def ends_well():
    equal(end_all(), [], 'complaints of the servers')


def run(sdk):
    test(f'{sdk}: all servers end well', ends_well)

    async def all_of_them():
        failed = 0
        for n, (name, function) in enumerate(TESTS.items(), 1):
            try:
                await asyncio.wait_for(function(), LIMIT)
                print(f'ok {n} - {name}', flush=True)
            except Exception:
                failed += 1
                print(f'not ok {n} - {name}')
                print(re.sub('^', '# ', traceback.format_exc().rstrip(), flags=re.M), flush=True)
        print(f'1..{len(TESTS)}', flush=True)
        return failed

    sys.exit(1 if asyncio.run(all_of_them()) else 0)


# ---- servers -------------------------------------------------------------------------------------------------

CONFIGS = {
    # everybody may do everything; several agents
    'open': {'agents': [
        {'id': 'demo', 'type': 'demo', 'default': True, 'settings': {'pace': 0}},
        {'id': 'hello', 'type': 'hello'},
        {'id': 'bench', 'type': 'bench'},
        {'id': 'gate', 'type': 'exec', 'settings': {'command': [GATE], 'input': 'text', 'output': 'text'}},
        json.loads((Path(__file__).resolve().parents[3] / 'llm.json').read_text()),
    ]},
    # two callers without a tenant, one in a tenant, and a card that shows more to them
    'closed': {
        'tokens': [{'token': 'alice-token', 'principal': 'alice'}, {'token': 'bob-token', 'principal': 'bob'},
                   {'token': 'carol-token', 'principal': 'carol', 'tenant': 'acme'}],
        'agents': [{'id': 'demo', 'type': 'demo', 'settings': {'pace': 0}, 'extended_card': {'description': 'For those who are known'}}],
    },
    'kept': {'agents': [{'id': 'demo', 'type': 'demo', 'settings': {'pace': 0}}]},
}


def config(kind, name):
    """Clients of 1.x take 0.3 only where there is nothing else."""
    return {**CONFIGS[name], **({'a2a': {'versions': ['0.3']}} if kind.legacy else {})}


def shared(kind, name):
    return server(agent=None, config=config(kind, name))


def kept(kind):
    """One with a database, for a test that ends it."""
    return Process(agent=None, config=config(kind, 'kept'), store=f'sqlite:{folder()}/tasks.db')


class Gate:
    """A message for the gate agent, and what lets it go on."""

    def __init__(self):
        self.path = os.path.join(folder(), str(uuid.uuid4()))
        self.message = message(self.path)

    def open(self):
        open(self.path, 'w').close()


# ---- the wire ------------------------------------------------------------------------------------------------

class Tap(httpx.AsyncByteStream):
    """A body that passes by, and is kept."""

    def __init__(self, stream, kept):
        self.stream, self.kept = stream, kept

    async def __aiter__(self):
        async for chunk in self.stream:
            self.kept.append(chunk)
            yield chunk

    async def aclose(self):
        await self.stream.aclose()


class Recording(httpx.AsyncHTTPTransport):
    """Keeps every stream in `streams`, as lists of chunks."""

    def __init__(self, streams):
        super().__init__()
        self.streams = streams

    async def handle_async_request(self, request):
        response = await super().handle_async_request(request)
        if response.headers.get('content-type', '').startswith('text/event-stream'):
            self.streams.append([])
            response.stream = Tap(response.stream, self.streams[-1])
        return response


WRAPPERS = ['task', 'message', 'statusUpdate', 'artifactUpdate']
BARE = ['task', 'message', 'status-update', 'artifact-update']


def check_frames(text, rpc, version):
    """First a task or a message, one wrapper member (1.0, REST) or a kind (0.3 over JSON-RPC) each, ids that count
    up, nothing internal."""
    check('internal:' not in text, f'an internal event on the wire: {text}')
    blocks = [[line for line in block.split('\n') if not line.startswith(':')] for block in text.split('\n\n')[:-1]]
    frames = [dict(line.split(': ', 1) for line in lines) for lines in blocks if lines]
    # a streaming call over JSON-RPC that is refused: the error is the only frame
    if rpc and len(frames) == 1 and 'error' in json.loads(frames[0]['data']):
        return
    before = 0
    for n, frame in enumerate(frames):
        equal(sorted(frame), ['data', 'id'], 'lines of a frame')
        event = json.loads(frame['data'])
        if rpc:
            equal(sorted(event), ['id', 'jsonrpc', 'result'], 'members of the envelope')
            event = event['result']
        bare = rpc and version == '0.3'
        names = [event.get('kind')] if bare else list(event)
        check(len(names) == 1 and names[0] in (BARE if bare else WRAPPERS), f'no event of A2A {version}: {frame}')
        check(n > 0 or names[0] in ('task', 'message'), f'the first event is {frame}')
        check(int(frame['id']) > before, f'id {frame["id"]} after {before}')
        before = int(frame['id'])


# ---- words for what tests do ------------------------------------------------------------------------------------

def message(text, parts=None, **more):
    return {'messageId': str(uuid.uuid4()), 'role': 'ROLE_USER', 'parts': parts or [{'text': text}], **more}


def text_of(thing):
    return ''.join(p.get('text', '') for p in (thing or {}).get('parts', []))


def texts_of(task):
    return ''.join(text_of(a) for a in task.get('artifacts', []))


def state_of(event):
    body = event.get('task') or event.get('statusUpdate')
    return body and body['status']['state'][11:]


def is_over(task):
    return task['status']['state'][11:] in ('COMPLETED', 'FAILED', 'CANCELED', 'REJECTED')


async def collect(events, state=None):
    """All events until the stream ends, or the task is in that state."""
    out = []
    async for event in events:
        out.append(event)
        if state and state_of(event) == state:
            break
    return out


def fold(events):
    """What a reader makes of a stream: (task id, last status, text of its artifacts)."""
    check('task' in events[0], f'no task first: {events[0]}')
    task = events[0]['task']
    status, texts = task['status'], {a['artifactId']: text_of(a) for a in task.get('artifacts', [])}
    for event in events[1:]:
        if update := event.get('statusUpdate'):
            status = update['status']
        else:
            update = event['artifactUpdate']
            key = update['artifact']['artifactId']
            texts[key] = (texts.get(key, '') if update.get('append') else '') + text_of(update['artifact'])
    return task['id'], status, ''.join(texts.values())
