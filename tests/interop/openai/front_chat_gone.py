"""Clients of chat completions that leave: at every chunk, before the answer, half-closed. No task is left behind."""

import json
import socket
import struct
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from front import call, front
from live import Gate, check, equal, run, test, until

server = front()


def begin(body, where=server):
    s = socket.create_connection(where.address, timeout=60)
    data = json.dumps(body).encode()
    s.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' % len(data) + data)
    return s


def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close()


def read_chunks(s, n):
    """What came up to the n-th chunk; the end of the stream counts as one."""
    got = b''
    while got.count(b'\n\n') < n:
        piece = s.recv(4096)
        if not piece:
            break
        got += piece
    return got


def states(agent):
    tasks = call(server, 'GET', f'/agents/{agent}/tasks?pageSize=100', headers={'A2A-Version': '1.0'}).body['tasks']
    return {t['id']: t['status']['state'].removeprefix('TASK_STATE_') for t in tasks}


def settled(agent, id):
    return until(lambda: (s := states(agent).get(id)) in ('COMPLETED', 'CANCELED', 'FAILED') and s, f'{agent} {id} has ended')


def body(agent, text, stream=True):
    return {'model': agent, 'stream': stream, 'messages': [{'role': 'user', 'content': text}]}


WORDS = 20


@test(f'gone at every chunk of {WORDS} words: canceled')
def _():
    ids, before = [], set(states('probe'))
    for n in range(WORDS + 2):  # one for the role
        s = begin(body('probe', f'wait {WORDS}'))
        if n:
            id = read_chunks(s, n).split(b'"task_id":"')[1].split(b'"')[0].decode()
        else:  # it has not read a byte: the task is the one that is new
            id = until(lambda: next(iter(set(states('probe')) - before), None), 'the task begins')
        reset(s)
        ids.append(id)
    ends = [settled('probe', id) for id in ids]
    equal(ends, ['CANCELED'] * len(ids), 'the ends')


@test('gone before an answer that is given as a whole: canceled')
def _():
    gate = Gate()
    before = set(states('gate'))
    s = begin(body('gate', gate.message, stream=False))
    id = until(lambda: next(iter(set(states('gate')) - before), None), 'the task begins')
    reset(s)
    equal(settled('gate', id), 'CANCELED', 'the task')


@test('half-closed is not gone')
def _():
    gate = Gate()
    s = begin(body('gate', gate.message))
    got = read_chunks(s, 3)
    s.shutdown(socket.SHUT_WR)
    gate.open()
    while piece := s.recv(4096):
        got += piece
    check(got.endswith(b'data: [DONE]\n\n\r\n0\r\n\r\n') and b'three' in got, got[-300:])


@test('who else reads the task keeps it alive')
def _():
    gate = Gate()
    s = begin(body('gate', gate.message))
    id = read_chunks(s, 3).split(b'"task_id":"')[1].split(b'"')[0].decode()
    reader = socket.create_connection(server.address, timeout=60)
    reader.sendall(b'POST /agents/gate/tasks/%s:subscribe HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\nContent-Length: 0\r\n\r\n' % id.encode())
    check(b'200 OK' in reader.recv(4096), 'it is followed')
    reset(s)
    gate.open()
    equal(settled('gate', id), 'COMPLETED', 'the task')
    reader.close()


@test('a server that ends tells so, and the stream ends in order')
def _():
    ending = front(drain_s=1)
    s = begin(body('probe', 'wait 3'), ending)
    got = read_chunks(s, 4)
    equal(ending.stop(60), 0, 'its status')
    while piece := s.recv(4096):
        got += piece
    text = got.split(b'\r\n\r\n', 1)[1].decode()
    check('"error":{"message":"' in text and text.index('"error"') < text.index('data: [DONE]'), text[-600:])
    check(text.endswith('0\r\n\r\n'), text[-100:])


run(server)
