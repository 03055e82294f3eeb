"""What every client does, on every transport it has. A kind (of client) has a name, a version, open() and
error(); its clients speak A2A 1.0's JSON, whatever is on the wire."""

import asyncio
import re
import uuid
from base64 import b64decode

from live import (Gate, check, check_frames, collect, equal, failure, fold, is_over, kept, message, shared, state_of,
                  test, text_of, texts_of, until)

KINDS = []
TEXT = 'one \ntwo \nthree'  # of the gate agent


def new():
    return str(uuid.uuid4())


def everybody(kind):
    return True


def one(kind):
    return kind.version == '1.0'


def reads_bytes(kind):
    """a2a-sdk 0.3's REST client reads the bytes of a file as text, and fails if they are not text."""
    return one(kind) or kind.rpc


def each(name, wanted=everybody):
    """A test for every client; `wanted` leaves some out. What they streamed is looked at afterwards."""
    def add(function):
        for kind in filter(wanted, KINDS):
            async def run(kind=kind):
                kind.streams.clear()
                try:
                    await function(kind)
                finally:
                    await kind.close()
                for chunks in kind.streams:
                    check_frames(b''.join(chunks).decode('utf-8', 'ignore'), kind.rpc, kind.version)
            test(f'{kind.name}: {name}', run)
        return function
    return add


def at(kind, agent=None, **more):
    return kind.open(shared(kind, 'open').url + (f'/agents/{agent}' if agent else ''), **more)


def known(kind, who=None, **more):
    return kind.open(shared(kind, 'closed').url, token=who and f'{who}-token', **more)


async def not_found(kind, c, id, m):
    """Every request about the task is answered with not found for this client."""
    for what, call in {'get': lambda: c.get(id), 'cancel': lambda: c.cancel(id), 'send': lambda: c.send(m)}.items():
        equal(kind.error(await failure(call())), kind.wanted('TaskNotFoundError'), what)
    equal(kind.error(await failure(c.subscribe(id))), kind.wanted('TaskNotFoundError', resubscribe=True), 'subscribe')
    equal(kind.error(await failure(c.stream(m))), kind.wanted('TaskNotFoundError', stream=True), 'stream')



def define():
    # ---- cards

    @each('the card is read')
    async def _(kind):
        card = (await at(kind)).card
        equal((card['name'], card['capabilities']['streaming'], len(card['skills']) > 0), ('Demo', True, True), 'name, streams, skills')

    @each('an agent below /agents/ has its own card and its own tasks')
    async def _(kind):
        hello, bench = await at(kind, 'hello'), await at(kind, 'bench')
        check(hello.card['name'] != 'Demo', 'the card of another agent')
        check('message' in await hello.send(message('hi')), 'hello answers with a Message')
        task = (await bench.send(message('chunks 2')))['task']
        equal((await bench.get(task['id']))['id'], task['id'], 'its task')
        for other in hello, await at(kind):
            equal(kind.error(await failure(other.get(task['id']))), kind.wanted('TaskNotFoundError'), "another agent's view")

    # ---- sending

    @each('a Message answers')
    async def _(kind):
        c = await at(kind, 'hello')
        m = (await c.send(message('hi')))['message']
        check(m['role'] == 'ROLE_AGENT' and m['contextId'] and text_of(m), f'no answer: {m}')
        events = await collect(c.stream(message('hi')))
        equal([text_of(e['message']) for e in events], [text_of(m)], 'the stream of it')

    @each('a Task answers, waited for [R002-02]')
    async def _(kind):
        c = await at(kind)
        task = (await c.send(message('stream')))['task']
        equal(task['status']['state'], 'TASK_STATE_COMPLETED', 'state')
        equal(texts_of(task), text_of(task['status']['message']), 'text of artifact and status')
        equal((await c.get(task['id']))['status'], task['status'], 'status later')

    @each('a Task answers, not waited for')
    async def _(kind):
        c, gate = await at(kind, 'gate'), Gate()
        task = (await c.send(gate.message, immediately=True))['task']
        check(not is_over(task), f'it is over: {task}')
        gate.open()

        async def ended():
            now = await c.get(task['id'])
            return now if is_over(now) else None
        done = await until(ended, 'the task ends')
        equal((done['status']['state'], text_of(done['status']['message'])), ('TASK_STATE_COMPLETED', TEXT), 'its end')

    @each('a context goes on')
    async def _(kind):
        c, context = await at(kind), new()
        task = (await c.send(message('echo', contextId=context)))['task']
        after = (await c.send(message('echo', contextId=context)))['task']
        equal((task['contextId'], after['contextId'], task['id'] != after['id']), (context, context, True), 'contexts')

    @each('one messageId sent twice is one task')
    async def _(kind):
        c, m = await at(kind), message('stream', contextId=new())
        equal((await c.send(m))['task']['id'], (await c.send(m))['task']['id'], 'task of the second')

    # ---- streams

    @each('a stream begins with the task and ends with its end [R002-02]')
    async def _(kind):
        c, m = await at(kind), message('stream')
        events = await collect(c.stream(m))
        task = events[0]['task']
        equal([h['messageId'] for h in task['history']], [m['messageId']], 'history of the first')
        equal([s for s in map(state_of, events) if s], ['SUBMITTED', 'WORKING', 'COMPLETED'], 'states')
        equal(state_of(events[-1]), 'COMPLETED', 'the last')
        last = [bool(e['artifactUpdate'].get('lastChunk')) for e in events if 'artifactUpdate' in e]
        equal((last.index(True), len(last) > 10), (len(last) - 1, True), 'last chunks')
        for e in events[1:]:
            body, = e.values()
            equal((body['taskId'], body['contextId']), (task['id'], task['contextId']), 'ids of a later event')

    @each('subscribing in the middle of a stream [R002-02]')
    async def _(kind):
        c, gate = await at(kind, 'gate'), Gate()
        stream, head = c.stream(gate.message), []
        while not head or 'artifactUpdate' not in head[-1]:
            head.append(await anext(stream))
        second = c.subscribe(head[0]['task']['id'])
        snapshot = await anext(second)
        equal((snapshot['task']['id'], texts_of(snapshot['task'])), (head[0]['task']['id'], 'one '), 'the snapshot')
        gate.open()
        one, two = await asyncio.gather(collect(stream), collect(second))
        equal(two, one, 'what follows, of both')
        equal([fold(head + one)[2], fold([snapshot] + two)[2]], [TEXT, TEXT], 'text of both')

    @each('a dropped stream is picked up again')
    async def _(kind):
        c, gate = await at(kind, 'gate'), Gate()
        stream, head = c.stream(gate.message), []
        while not head or 'artifactUpdate' not in head[-1]:
            head.append(await anext(stream))
        await stream.aclose()
        id = head[0]['task']['id']
        check(not is_over(await c.get(id)), 'the task goes on without its reader')
        again = c.subscribe(id)
        events = [await anext(again)]
        gate.open()
        events += await collect(again)
        _, status, text = fold(events)
        equal((status['state'], text), ('TASK_STATE_COMPLETED', TEXT), 'end and text')

    @each('canceling ends the task and its streams [R002-02]')
    async def _(kind):
        c, events, canceled = await at(kind, 'bench'), [], None
        async for e in c.stream(message('hold 600')):
            events.append(e)
            if state_of(e) == 'WORKING':
                canceled = asyncio.create_task(c.cancel(events[0]['task']['id']))
        equal(((await canceled)['status']['state'], state_of(events[-1])), ('TASK_STATE_CANCELED', 'CANCELED'), 'states')
        equal((await c.get(events[0]['task']['id']))['status']['state'], 'TASK_STATE_CANCELED', 'state later')

    # ---- reading

    @each('history is as long as asked for')
    async def _(kind):
        c = await at(kind)
        task = (await c.send(message('ask')))['task']
        await c.send(message('Ann', taskId=task['id'], contextId=task['contextId']))
        history = (await c.get(task['id']))['history']
        check(len(history) >= 3, f'history: {history}')
        for n in 1, 2:
            equal((await c.get(task['id'], n))['history'], history[-n:], f'the last {n}')
        if one(kind):
            equal((await c.get(task['id'], 0)).get('history', []), [], 'none')

    @each('lists: filters and pages', one)
    async def _(kind):
        c, context = await at(kind), new()
        ids = [(await c.send(message(text, contextId=context)))['task']['id'] for text in ('stream', 'fail', 'stream')]
        everything = await c.list(contextId=context)
        listed = [t['id'] for t in everything['tasks']]
        equal((sorted(listed), everything['totalSize'], everything.get('nextPageToken', '')), (sorted(ids), 3, ''), 'all of the context')
        check(not any(t.get('artifacts') for t in everything['tasks']), 'artifacts that were not requested')
        equal([t['id'] for t in (await c.list(contextId=context, status='TASK_STATE_FAILED'))['tasks']], [ids[1]], 'those that failed')
        pages, token = [], None
        while token != '':
            page = await c.list(contextId=context, pageSize=1, includeArtifacts=True, **({'pageToken': token} if token else {}))
            pages += [t['id'] for t in page['tasks']]
            token = page.get('nextPageToken', '')
        equal(pages, listed, 'pages of one')

    # ---- conversations

    for script, state, reply, words in ('ask', 'INPUT_REQUIRED', 'Ann', 'Ann'), ('auth', 'AUTH_REQUIRED', 'done', '42'):
        @each(f'{script}: the task asks and goes on with the answer')
        async def _(kind, script=script, state=state, reply=reply, words=words):
            c = await at(kind)
            task = (await c.send(message(script)))['task']
            equal(task['status']['state'], 'TASK_STATE_' + state, 'state')
            check(text_of(task['status']['message']), 'it says what it wants')
            done = (await c.send(message(reply, taskId=task['id'], contextId=task['contextId'])))['task']
            equal((done['id'], done['status']['state']), (task['id'], 'TASK_STATE_COMPLETED'), 'the end')
            check(words in text_of(done['status']['message']), str(done['status']))

    @each('ask, streamed: the stream of the answer begins with the task')
    async def _(kind):
        c = await at(kind)
        asked = await collect(c.stream(message('ask')))
        equal(state_of(asked[-1]), 'INPUT_REQUIRED', 'the last of the first stream')
        task = asked[0]['task']
        id, status, text = fold(await collect(c.stream(message('Ann', taskId=task['id'], contextId=task['contextId']))))
        equal((id, status['state'], text), (task['id'], 'TASK_STATE_COMPLETED', text_of(status['message'])), 'task, state, text')

    @each('a subscriber of a waiting task sees the next turn')
    async def _(kind):
        c = await at(kind)
        task = (await c.send(message('ask')))['task']
        reader = c.subscribe(task['id'])
        equal(state_of(await anext(reader)), 'INPUT_REQUIRED', 'the first event')
        await c.send(message('Ann', taskId=task['id'], contextId=task['contextId']))
        equal(state_of((await collect(reader))[-1]), 'COMPLETED', 'the last event')

    @each('files and data arrive as they are', reads_bytes)
    async def _(kind):
        c = await at(kind)
        parts = [p for a in (await c.send(message('file')))['task']['artifacts'] for p in a['parts'] if 'text' not in p]
        equal([p['mediaType'] for p in parts], ['text/csv', 'image/png', 'application/pdf'], 'types')
        equal([p['filename'] for p in parts], ['sales.csv', 'dot.png', 'report.pdf'], 'names')
        equal(b64decode(parts[0]['raw']), b'month,sales\nJanuary,100\nFebruary,115\n', 'bytes')
        equal(parts[2]['url'], 'https://example.com/report.pdf', 'link')
        data = [p['data'] for a in (await c.send(message('data')))['task']['artifacts'] for p in a['parts'] if 'data' in p]
        weather = {'city': 'Oakland', 'temperature': {'value': 72, 'unit': '°F'}, 'forecast': ['sunny', 'sunny', 'fog'],
                   'sunrise': None, 'chance_of_rain': 0.05}
        equal(data, [weather], 'data')

    @each('files and data are taken')
    async def _(kind):
        c = await at(kind)
        parts = [{'text': 'stream'}, {'raw': 'aGk=', 'filename': 'a.txt', 'mediaType': 'text/plain'}, {'data': {'n': 1, 'list': [None, 2.5]}}]
        task = (await c.send(message('', parts=parts)))['task']
        equal((await c.get(task['id']))['history'][0]['parts'], parts, 'parts in the history')

    # ---- errors

    @each('what does not exist is TaskNotFound')
    async def _(kind):
        id = new()
        await not_found(kind, await at(kind), id, message('stream', taskId=id))

    @each('what is over is not canceled and takes no message')
    async def _(kind):
        c = await at(kind)
        id = (await c.send(message('stream')))['task']['id']
        equal(kind.error(await failure(c.cancel(id))), kind.wanted('TaskNotCancelableError'), 'cancel')
        equal(kind.error(await failure(c.send(message('more', taskId=id)))), kind.wanted('UnsupportedOperationError'), 'send')
        if one(kind):
            equal(kind.error(await failure(c.subscribe(id))), 'UnsupportedOperationError', 'subscribe')
        else:
            equal([state_of(e) for e in await collect(c.subscribe(id))], ['COMPLETED'], 'subscribe: the task, once')

    @each('push notifications are not offered')
    async def _(kind):
        c = await at(kind)
        id = (await c.send(message('stream')))['task']['id']
        equal(kind.error(await failure(c.set_push(id))), kind.wanted('PushNotificationNotSupportedError'), 'error')

    @each('a wrong context is refused')
    async def _(kind):
        c = await at(kind)
        task = (await c.send(message('ask')))['task']
        error = await failure(c.send(message('Ann', taskId=task['id'], contextId=new())))
        equal(kind.error(error), kind.wanted('InvalidParamsError'), 'error')

    # ---- who is who

    @each('the extended card is for callers with a token')
    async def _(kind):
        if one(kind) or kind.rpc:  # 0.3's REST has it in ProtoJSON: JavaScript's client reads that, Python's the other dialect
            equal((await (await known(kind, 'alice')).extended_card())['description'], 'For those who are known', 'description')
        error = await failure((await known(kind)).extended_card())
        check(re.search('401|uthenti|token', f'{type(error).__name__} {error}'), repr(error))

    @each('without a token nothing goes')
    async def _(kind):
        c = await known(kind)
        for call in lambda: c.send(message('stream')), lambda: c.get(new()), lambda: c.stream(message('stream')):
            error = await failure(call())
            check(re.search('401|uthenti|token', f'{type(error).__name__} {error}'), repr(error))

    @each('two callers: what is not yours does not exist')
    async def _(kind):
        alice, bob, context = await known(kind, 'alice'), await known(kind, 'bob'), new()
        id = (await alice.send(message('ask', contextId=context)))['task']['id']
        await not_found(kind, bob, id, message('Bob', taskId=id, contextId=context))
        if one(kind):
            equal([t['id'] for t in (await alice.list(contextId=context))['tasks']], [id], "alice's list")
            equal((await bob.list(contextId=context)).get('tasks', []), [], "bob's list")
        equal((await alice.get(id))['status']['state'], 'TASK_STATE_INPUT_REQUIRED', "alice's task")
        equal((await alice.cancel(id))['status']['state'], 'TASK_STATE_CANCELED', 'and she may cancel it')

    @each('a tenant is one of its own', one)
    async def _(kind):
        carol, alice = await known(kind, 'carol', tenant='acme'), await known(kind, 'alice', tenant='acme')
        id = (await carol.send(message('stream')))['task']['id']
        equal((await carol.get(id))['id'], id, "carol's task")
        check(len(await collect(carol.stream(message('stream')))) > 3, "carol's stream")
        check(id in [t['id'] for t in (await carol.list())['tasks']], "carol's list")
        equal(kind.error(await failure(alice.get(id))), 'TaskNotFoundError', 'a caller of another tenant')

    # ---- what is kept

    @each('a task survives its server')
    async def _(kind):
        s = kept(kind)
        c = await kind.open(s.url)
        task, asked = (await c.send(message('stream')))['task'], (await c.send(message('ask')))['task']
        s.kill()
        s.restart()
        c = await kind.open(s.url)
        equal(await c.get(task['id']), task, 'the finished task')
        done = (await c.send(message('Ann', taskId=asked['id'], contextId=asked['contextId'])))['task']
        equal((done['id'], done['status']['state']), (asked['id'], 'TASK_STATE_COMPLETED'), 'the one that waited')
        await kind.close()
        s.stop_well()

    # ---- every script of the demo

    for script in ('stream', 'status', 'file', 'data', 'ask', 'auth', 'fail', 'break', 'reject', 'long 200', 'unicode', 'slow 3',
                   'so many words', 'tools', 'parallel-tools', 'client-tool', 'state', 'reasoning', 'interrupt', 'usage',
                   'subagent', 'files'):
        @each(f'demo {script}: the answer, the stream and the task later say the same', reads_bytes if script == 'file' else everybody)
        async def _(kind, script=script):
            c = await at(kind)
            id, status, text = fold(await collect(c.stream(message(script)), 'AUTH_REQUIRED'))
            task, later = (await c.send(message(script)))['task'], await c.get(id)
            equal((text, texts_of(later)), (texts_of(task), texts_of(task)), 'texts of the artifacts: streamed, later')
            state, words = task['status']['state'], text_of(task['status'].get('message'))
            equal((status['state'], later['status']['state']), (state, state), 'states')
            equal((text_of(status.get('message')), text_of(later['status'].get('message'))), (words, words), 'last words')
            if state == 'TASK_STATE_COMPLETED':
                equal(words, texts_of(task), 'last words and text')

    for script in 'help', 'message with words':
        @each(f'demo {script}: the Message and its stream say the same')
        async def _(kind, script=script):
            c = await at(kind)
            events = await collect(c.stream(message(script)))
            equal([text_of(e['message']) for e in events], [text_of((await c.send(message(script)))['message'])], 'the stream')

    # ---- a language model

    def data_of(task, member):
        return [p['data'] for p in task['status']['message']['parts'] if member in p.get('data', {})]

    async def reply(c, task, *parts):
        return (await c.send(message('', list(parts), taskId=task['id'], contextId=task['contextId'])))['task']

    @each('llm: a call that needs approval is data, and so is the decision')
    async def _(kind):
        c = await at(kind, 'assistant')
        for more, words in ({'approved': True}, 'old.txt'), ({'approved': True, 'arguments': {'path': 'new.txt'}}, 'new.txt'), ({'approved': False, 'reason': 'mine'}, None):
            task = (await c.send(message('call remove {"path": "old.txt"}')))['task']
            equal(task['status']['state'], 'TASK_STATE_INPUT_REQUIRED', 'state')
            [asked] = data_of(task, 'tool')
            equal((asked['type'], asked['tool'], asked['arguments']), ('approval-request', 'remove', {'path': 'old.txt'}), 'the request')
            done = await reply(c, task, {'data': {'type': 'approval', 'id': asked['id'], **more}})
            text = text_of(done['status']['message'])
            equal((done['id'], done['status']['state']), (task['id'], 'TASK_STATE_COMPLETED'), 'the end')
            check(words in text if words else '"path"' not in text, text)

    @each('llm: a question of the model, and its answer')
    async def _(kind):
        c = await at(kind, 'assistant')
        task = (await c.send(message('ask Which colour?')))['task']
        equal((task['status']['state'], text_of(task['status']['message'])), ('TASK_STATE_INPUT_REQUIRED', 'Which colour?'), 'the question')
        done = await reply(c, task, {'text': 'green'})
        check('green' in text_of(done['status']['message']), str(done['status']))

    @each("llm: the caller's tool is data, and so are its call and its result")
    async def _(kind):
        c = await at(kind, 'assistant')
        tool = {'name': 'weather', 'description': 'the weather', 'parameters': {'type': 'object', 'properties': {'city': {'type': 'string'}}}}
        task = (await c.send(message('', [{'text': 'call weather {"city": "Oslo"}'}, {'data': {'tools': [tool]}}])))['task']
        [call] = data_of(task, 'tool_calls')[0]['tool_calls']
        equal((call['name'], call['arguments']), ('weather', {'city': 'Oslo'}), 'the call')
        done = await reply(c, task, {'data': {'tool_results': [{'call_id': call['call_id'], 'output': 'snow'}]}})
        equal(done['status']['state'], 'TASK_STATE_COMPLETED', 'state')
        check('snow' in text_of(done['status']['message']), str(done['status']))

    @each('llm: a message while the model writes reaches it, and its answer is in the stream once')
    async def _(kind):
        c, events, sent = await at(kind, 'assistant'), [], None
        async for event in c.stream(message('slow 60 ' + 'word ' * 80 + 'end')):
            events.append(event)
            if 'artifactUpdate' in event and not sent:
                task = events[0]['task']
                sent = await c.send(message('echo steered', taskId=task['id'], contextId=task['contextId']), immediately=True)
        equal(state_of(events[-1]), 'COMPLETED', 'the end')
        texts = [text_of(e['artifactUpdate']['artifact']) for e in events if 'artifactUpdate' in e]
        check(''.join(texts).count('steered') == 1 and 'end' in ''.join(texts), texts)
