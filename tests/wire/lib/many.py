"""Many connections at once, on asyncio: subscribers, resends, idle streams. Same strict SSE parser."""
import asyncio
import json

from .http import SseParser, request_bytes
from .tap import check


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"HTTP {self.status} {self.headers} {self.body[:500]!r}"


async def read_head(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:] if line)}
    return int(head[0].split(" ")[1]), headers


async def read_chunk(reader):
    """Bytes, or b'' at the end of the body."""
    size = int((await reader.readuntil(b"\r\n"))[:-2], 16)
    data = await reader.readexactly(size)
    check(await reader.readexactly(2) == b"\r\n", "a chunk ends without CRLF")
    return data


async def read_body(reader, headers):
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while data := await read_chunk(reader):
            body += data
        return body
    return await reader.readexactly(int(headers.get("content-length", 0)))


class Pool:
    """Calls over a number of kept connections, as many at once."""

    def __init__(self, client, size):
        self.client, self.gate, self.idle = client, asyncio.Semaphore(size), []

    async def call(self, op, params):
        async with self.gate:
            pair = self.idle.pop() if self.idle else await asyncio.open_connection(*self.client.server.address, limit=1 << 24)
            _, method, target, body, headers = self.client.prepare(op, params)
            pair[1].write(request_bytes(method, target, body, headers, "127.0.0.1"))
            status, got = await read_head(pair[0])
            reply = Reply(status, got, await read_body(pair[0], got))
            self.idle.append(pair)
            return reply

    def close(self):
        for _, writer in self.idle:
            writer.close()


class Subscriber:
    """One stream: open(), then frames() with (id, data) pairs until the end or as many as wanted."""

    def __init__(self, client, op, params, last=None):
        self.client, self.op, self.params, self.last = client, op, params, last
        self.parser, self.ready, self.is_ended = SseParser(), [], False

    async def open(self):
        headers = [("Accept", "text/event-stream")] + ([("Last-Event-ID", str(self.last))] if self.last is not None else [])
        _, method, target, body, headers = self.client.prepare(self.op, self.params, id=1, headers=headers)
        self.reader, self.writer = await asyncio.open_connection(*self.client.server.address, limit=1 << 24)
        self.writer.write(request_bytes(method, target, body, headers, "127.0.0.1"))
        self.status, self.headers = await read_head(self.reader)
        if self.headers.get("content-type", "").split(";")[0] != "text/event-stream":
            body = await read_body(self.reader, self.headers)
            check(False, f"no stream: HTTP {self.status} {body[:500]!r}")
        return self

    async def next(self):
        """The next frame; None at the end."""
        while not self.ready:
            if self.is_ended:
                return None
            data = await read_chunk(self.reader)
            if not data:
                self.parser.end()
                self.is_ended = True
                return None
            self.ready += self.parser.feed(data)
        return self.ready.pop(0)

    async def rest(self):
        frames = []
        while (f := await self.next()) is not None:
            frames.append((f.id, f.data))
        return frames

    def close(self, reset=True):
        if reset:
            self.writer.transport.abort()
        else:
            self.writer.close()


def run(coroutine, seconds):
    async def limited():
        return await asyncio.wait_for(coroutine, seconds)
    return asyncio.run(limited())
