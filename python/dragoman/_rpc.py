"""The connection of a worker process: JSON-RPC 2.0, one object per line (docs/worker-protocol.md).

The socket is DRAGOMAN_FD, which the server passes on; without it stdin and stdout are used, for tests by hand. Everything here
runs on one event loop; `request_sync` is for other threads. A value that cannot be sent (NaN, a lone surrogate, an object that
is not JSON, a line over the limit) raises EncodeError before a byte is written, so that it is an error of one run and never a
broken line.
"""
from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from typing import Any, Awaitable, Callable, Dict, List, Mapping, Optional

MAX_LINE_BYTES = 8 << 20  # of a line in both directions, until `initialize` says otherwise
_FLUSH_BYTES = 64 << 10  # this much waits for the next turn of the event loop at most
_YIELD_EVERY = 32  # calls of drain()
_LOG_TEXT = 16 << 10  # characters of one `log` line

# Codes of errors (docs/worker-protocol.md)
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
RAISED, RECURSION_LIMIT, THREAD_BUSY, TOO_MANY_RUNS, CANNOT_LOAD, REJECTED = -32000, -32001, -32002, -32003, -32004, -32005
CANNOT_SEND = -32010


class EncodeError(ValueError):
    """A value that cannot be sent as one line of JSON."""


class RpcError(Exception):
    """An error response: raised by a handler to send it, and by request() when the server sent it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class ConnectionClosed(ConnectionError):
    """The server has closed the connection."""


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def quoted(text: str) -> str:
    """A text as JSON."""
    return _encode(text)


def _path_of_fault(value: Any, path: str = "", depth: int = 0) -> str:
    """Where in a value the first thing is that JSON does not have; "" if it is not found."""
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, (str, int, float, bool)) and key is not None:
                return f"{path}/ has a key of type {type(key).__name__}"
            found = _path_of_fault(member, f"{path}/{key}", depth + 1) if depth < 100 else ""
            if found:
                return found
        return ""
    if isinstance(value, (list, tuple)):
        for i, member in enumerate(value):
            found = _path_of_fault(member, f"{path}/{i}", depth + 1) if depth < 100 else ""
            if found:
                return found
        return ""
    try:
        _encode(value).encode("utf-8")
    except (TypeError, ValueError):
        return f"{path or '/'} is {_describe(value)}"
    return ""


def _describe(value: Any) -> str:
    if isinstance(value, float):
        return str(value)
    return "a text with a lone surrogate" if isinstance(value, str) else f"of type {type(value).__name__}"


def encode(value: Any) -> bytes:
    """JSON as UTF-8, without the newline. EncodeError names the place of what is not JSON."""
    try:
        return _encode(value).encode("utf-8")
    except RecursionError:
        raise EncodeError("the value is nested too deeply for JSON, or contains itself") from None
    except (TypeError, ValueError) as e:
        raise EncodeError(f"the value is not JSON: {_path_of_fault(value) or e}") from None


Handler = Callable[[str, Dict[str, Any]], Awaitable[Any]]
Listener = Callable[[str, Dict[str, Any]], None]


class Connection(asyncio.Protocol):
    """One connection. `on_request(method, params)` is a coroutine function: its result, or the RpcError that it raises, is the
    response. `on_notification(method, params)` is called on the event loop, in the order of the lines. Requests start in
    that order, too; they run at the same time."""

    def __init__(self, on_request: Handler, on_notification: Listener) -> None:
        self._on_request, self._on_notification = on_request, on_notification
        self.max_line_bytes = MAX_LINE_BYTES
        self.loop = asyncio.get_event_loop()
        self.closed: asyncio.Future[None] = self.loop.create_future()
        self._transport: Optional[asyncio.WriteTransport] = None
        self._in = bytearray()
        self._scanned = 0  # bytes of _in that have no newline
        self._out: List[bytes] = []
        self._out_bytes = 0
        self._flushing = False
        self._room: Optional[asyncio.Future[None]] = None  # set while the socket is full
        self._pending: Dict[str, asyncio.Future[Any]] = {}
        self._requests = self._drains = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.get_ident()

    # ---- to send ----

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Queues a notification. EncodeError if it cannot be sent. Await drain() after it, or memory has no limit."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def notify_from_thread(self, method: str, params: Mapping[str, Any]) -> None:
        """As notify, from any thread. What cannot be sent is dropped."""
        def send() -> None:
            try:
                self.notify(method, params)
            except EncodeError:
                pass
        try:
            self.loop.call_soon_threadsafe(send)
        except RuntimeError:  # the loop is closed
            pass

    def log(self, level: str, text: str, run: Optional[str] = None) -> None:
        """A line for the operator's log; from any thread. level: debug, info, warning or error."""
        text = text.encode("utf-8", "replace").decode("utf-8")[:_LOG_TEXT]
        params = {"level": level, "text": text} if run is None else {"run": run, "level": level, "text": text}
        if threading.get_ident() == self._thread:
            self.notify("log", params)
        else:
            self.notify_from_thread("log", params)

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Sends a request and returns the result. RpcError: the server's error. ConnectionClosed: there is no answer."""
        return await self.start_request(method, params)

    def start_request(self, method: str, params: Mapping[str, Any]) -> asyncio.Future[Any]:
        """As request, but the line is queued when this returns."""
        if self.closed.done():
            raise ConnectionClosed("the server has closed the connection")
        self._requests += 1
        key = f"w{self._requests}"
        answer: asyncio.Future[Any] = self.loop.create_future()
        self._send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        self._pending[key] = answer
        answer.add_done_callback(lambda _: self._pending.pop(key, None))
        return answer

    def request_sync(self, method: str, params: Mapping[str, Any]) -> Any:
        """As request, for another thread: blocks it until the answer is here."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("request_sync() would block the event loop: await request() there")
        return asyncio.run_coroutine_threadsafe(self.request(method, params), self.loop).result()

    async def drain(self) -> None:
        """Returns when the server has read enough of what was sent: back-pressure. Other tasks get their turn now and then."""
        self._drains += 1
        if self._room is not None:
            await asyncio.shield(self._room)
        elif self._drains % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        if self.closed.done():
            raise ConnectionClosed("the server has closed the connection")

    def is_full(self) -> bool:
        return self._room is not None

    def queued_bytes(self) -> int:
        transport = self._transport
        return self._out_bytes + (transport.get_write_buffer_size() if transport else 0)

    def _send(self, message: Dict[str, Any]) -> None:
        self.send_line(encode(message))

    def send_line(self, line: bytes) -> None:
        """Queues a message that is encoded already."""
        if len(line) >= self.max_line_bytes:
            raise EncodeError(f"the line has {len(line)} bytes; the limit is {self.max_line_bytes}")
        if self.closed.done():
            return
        self._out.append(line)
        self._out_bytes += len(line) + 1
        if self._out_bytes >= _FLUSH_BYTES:
            self._flush()
        elif not self._flushing:
            self._flushing = True
            self.loop.call_soon(self._flush_later)

    def _flush_later(self) -> None:
        self._flushing = False
        self._flush()

    def _flush(self) -> None:
        lines, self._out, self._out_bytes = self._out, [], 0
        if lines and self._transport is not None:
            lines.append(b"")
            self._transport.write(b"\n".join(lines))

    # ---- to read ----

    def data_received(self, data: bytes) -> None:
        self._in += data
        while True:
            end = self._in.find(b"\n", self._scanned)
            if end < 0:
                break
            line = bytes(self._in[:end])
            del self._in[:end + 1]
            self._scanned = 0
            self._on_line(line)
        self._scanned = len(self._in)
        if self._scanned > self.max_line_bytes:
            self._fail("the server sent a line longer than maxLineBytes")

    def _on_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self._respond(None, error=RpcError(PARSE_ERROR, "expected one JSON object per line"))
            return
        method, key = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if not isinstance(method, str):
            self._on_response(key, message)
        elif not isinstance(params, dict):
            self._respond(key, error=RpcError(INVALID_PARAMS, "expected params to be an object"))
        elif key is None:
            self._on_notification(method, params)
        else:
            task = self.loop.create_task(self._handle(key, method, params))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _on_response(self, key: Any, message: Dict[str, Any]) -> None:
        answer = self._pending.pop(key, None) if isinstance(key, str) else None
        if answer is None or answer.done():
            return  # of a request that is no longer awaited
        error = message.get("error")
        if isinstance(error, dict):
            code = error.get("code")
            answer.set_exception(RpcError(code if isinstance(code, int) else INTERNAL_ERROR,
                                          str(error.get("message", "unknown error")), error.get("data")))
        else:
            answer.set_result(message.get("result"))

    async def _handle(self, key: Any, method: str, params: Dict[str, Any]) -> None:
        try:
            result = await self._on_request(method, params)
        except RpcError as e:
            self._respond(key, error=e)
        except EncodeError as e:
            self._respond(key, error=RpcError(CANNOT_SEND, str(e)))
        else:
            self._respond(key, result)

    def _respond(self, key: Any, result: Any = None, error: Optional[RpcError] = None) -> None:
        try:
            if error is None:
                self._send({"jsonrpc": "2.0", "id": key, "result": result})
                return
        except EncodeError as e:
            error = RpcError(CANNOT_SEND, f"the result cannot be sent: {e}")
        body: Dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            body["data"] = error.data
        try:
            self._send({"jsonrpc": "2.0", "id": key, "error": body})
        except EncodeError as e:
            text = error.message.encode("utf-8", "replace").decode("utf-8")[:_LOG_TEXT]
            self._send({"jsonrpc": "2.0", "id": key, "error": {"code": error.code, "message": text, "data": {"lost": str(e)[:_LOG_TEXT]}}})

    # ---- the transport's callbacks ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport
            self._flush()

    def pause_writing(self) -> None:
        if self._room is None:
            self._room = self.loop.create_future()

    def resume_writing(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def eof_received(self) -> bool:
        self._end()
        return True  # the transport stays open: close() flushes it

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._end()

    def _fail(self, why: str) -> None:
        sys.stderr.write(f"dragoman worker: {why}\n")
        self._in.clear()
        self._scanned = 0
        self._end()

    def _end(self) -> None:
        if self.closed.done():
            return
        self.closed.set_result(None)
        self.resume_writing()
        for answer in list(self._pending.values()):
            if not answer.done():
                answer.set_exception(ConnectionClosed("the server has closed the connection"))

    def close(self) -> None:
        """Sends what is queued and closes. Nothing is read or sent after it."""
        self._flush()
        if self._transport is not None:
            self._transport.close()
        self._end()


class _Reader(asyncio.Protocol):
    """stdin of the fallback to stdio: its data goes to the connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def data_received(self, data: bytes) -> None:
        self._connection.data_received(data)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._connection._end()


async def connect_socket(sock: socket.socket, on_request: Handler, on_notification: Listener) -> Connection:
    """A connection over a socket of any stream type."""
    sock.setblocking(False)
    connection = Connection(on_request, on_notification)
    loop = asyncio.get_event_loop()
    if sock.family == getattr(socket, "AF_UNIX", None):
        await loop.create_unix_connection(lambda: connection, sock=sock)
    else:
        await loop.create_connection(lambda: connection, sock=sock)
    return connection


async def connect_stdio(on_request: Handler, on_notification: Listener, stdin: Optional[int] = None,
                        stdout: Optional[int] = None) -> Connection:
    """A connection over stdin and stdout. Output of user code that goes to fd 1 is redirected to stderr first."""
    read_fd = os.dup(0) if stdin is None else stdin
    write_fd = stdout
    if write_fd is None:
        sys.stdout.flush()
        write_fd = os.dup(1)
        os.dup2(2, 1)
    connection = Connection(on_request, on_notification)
    loop = asyncio.get_event_loop()
    await loop.connect_write_pipe(lambda: connection, os.fdopen(write_fd, "wb", 0))
    await loop.connect_read_pipe(lambda: _Reader(connection), os.fdopen(read_fd, "rb", 0))
    return connection


async def connect(on_request: Handler, on_notification: Listener) -> Connection:
    """The connection that the environment names: DRAGOMAN_FD, else stdio."""
    named = os.environ.pop("DRAGOMAN_FD", None)  # not for processes that user code starts
    if named is None:
        return await connect_stdio(on_request, on_notification)
    try:
        fd = int(named)
        os.set_inheritable(fd, False)
        sock = socket.socket(fileno=fd)
    except (ValueError, OSError) as e:
        raise SystemExit(f"dragoman worker: DRAGOMAN_FD={named} is not an open socket: {e}") from None
    return await connect_socket(sock, on_request, on_notification)

