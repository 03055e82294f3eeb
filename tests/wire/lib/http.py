"""HTTP/1.1 over plain sockets, as strict as a proxy with a bad day: a response that is not framed
exactly as RFC 9112 has it fails the test. Also the SSE reader."""
import json
import select
import socket
import time

from .tap import Failure, check, show

WAIT = 30  # seconds without a byte


class Closed(Failure):
    """The peer ended the connection where an answer was due."""


class Response:
    def __init__(self, status, headers, body=b""):
        self.status, self.headers, self.body = status, headers, body

    def all(self, name):
        return [v for n, v in self.headers if n.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        check(len(values) < 2, f"header {name} comes {len(values)} times: {values}")
        return values[0] if values else default

    @property
    def type(self):
        return (self.get("content-type") or "").split(";")[0].strip().lower()

    @property
    def json(self):
        try:
            return json.loads(self.body.decode("utf-8"), object_pairs_hook=no_duplicates)
        except ValueError as e:
            raise Failure(f"the body is not JSON ({e}): status {self.status}, {show(self.body)}")

    def __repr__(self):
        return f"HTTP {self.status} {dict(self.headers)} {show(self.body)}"


def no_duplicates(pairs):
    keys = [k for k, _ in pairs]
    check(len(set(keys)) == len(keys), lambda: f"an object has a key twice: {keys}")
    return dict(pairs)


class Conn:
    """One connection. send() bytes as they are; response() reads one whole answer; head() and body() a stream."""

    def __init__(self, address, wait=WAIT):
        self.socket = socket.create_connection(address, timeout=wait)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.kept = b""
        self.host = f"{address[0]}:{address[1]}"

    def close(self):
        self.socket.close()

    def reset(self):
        """RST instead of FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else data.encode())

    def request(self, method, target, body=None, headers=()):
        self.send(request_bytes(method, target, body, headers, self.host))

    # -- reading

    def more(self):
        try:
            data = self.socket.recv(65536)
        except (TimeoutError, socket.timeout):
            raise Failure(f"no byte for {self.socket.gettimeout()} s; so far {show(self.kept)}")
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(f"the connection ended; so far {show(self.kept)}")
        self.kept += data

    def line(self):
        while b"\n" not in self.kept:
            self.more()
        line, self.kept = self.kept.split(b"\n", 1)
        check(line.endswith(b"\r"), f"a line of the head ends without CR: {line!r}")
        return line[:-1]

    def take(self, n):
        while len(self.kept) < n:
            self.more()
        data, self.kept = self.kept[:n], self.kept[n:]
        return data

    def head(self):
        """Status and headers of the next final response (100 Continue is in .continued)."""
        self.continued = False
        while True:
            start = self.line().decode("latin-1")
            check(start.startswith("HTTP/1.1 ") and start[9:12].isdigit(), f"a status line: {start!r}")
            status, headers = int(start[9:12]), []
            while line := self.line():
                name, colon, value = line.decode("latin-1").partition(":")
                check(colon and name and name == name.strip() and "\x00" not in value, f"a header line: {line!r}")
                headers.append((name, value.strip()))
            if status != 100:
                return Response(status, headers)
            self.continued = True

    def chunks(self, response):
        """The pieces of the body, as they come."""
        if response.status in (204, 304) or response.status < 200:
            return
        coding, length = response.get("transfer-encoding"), response.get("content-length")
        check(not (coding and length), "both Transfer-Encoding and Content-Length")
        if coding:
            check(coding.lower() == "chunked", f"Transfer-Encoding: {coding}")
            while True:
                size = self.line()
                check(size and all(c in b"0123456789abcdefABCDEF" for c in size), f"a chunk size: {size!r}")
                n = int(size, 16)
                data = self.take(n)
                check(self.take(2) == b"\r\n", "a chunk ends without CRLF")
                if n == 0:
                    return
                yield data
        elif length is not None:
            check(length.isdigit(), f"Content-Length: {length}")
            if int(length):
                yield self.take(int(length))
        else:
            check((response.get("connection") or "").lower() == "close", "a body without length on a kept connection")
            while True:
                if self.kept:
                    yield self.kept
                    self.kept = b""
                try:
                    self.more()
                except Closed:
                    return

    def response(self, head=False):
        r = self.head()
        if not head:
            r.body = b"".join(self.chunks(r))
        return r

    def ended(self, seconds=5):
        """True when the peer closes within that time, without another byte."""
        self.socket.settimeout(seconds)
        try:
            return not self.kept and self.socket.recv(1) == b""
        except (TimeoutError, socket.timeout):
            return False
        except ConnectionResetError:
            return True


def request_bytes(method, target, body, headers, host):
    names = {n.lower() for n, _ in headers}
    lines = [f"{method} {target} HTTP/1.1"]
    if "host" not in names:
        lines.append(f"Host: {host}")
    lines += [f"{n}: {v}" for n, v in headers if v is not None]
    if body is not None and "content-length" not in names and "transfer-encoding" not in names:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body or b"")


def ask(address, method, target, body=None, headers=(), head=None, wait=WAIT):
    """One request on a connection of its own, its whole answer."""
    with Conn(address, wait) as c:
        if isinstance(body, (dict, list)):
            body = json.dumps(body, ensure_ascii=False).encode()
        c.request(method, target, body, headers)
        return c.response(head=method == "HEAD" if head is None else head)


# ---- SSE -----------------------------------------------------------------------------------------------

class Frame:
    def __init__(self, id, event, data):
        self.id, self.event, self.data = id, event, data

    @property
    def json(self):
        try:
            return json.loads(self.data, object_pairs_hook=no_duplicates)
        except ValueError as e:
            raise Failure(f"a frame's data is not JSON ({e}): {show(self.data)}")

    def __repr__(self):
        return f"id {self.id}, event {self.event}: {show(self.data)}"


class SseParser:
    """Reads bytes, returns frames. Checks that the server writes what the reference promises: LF, one data
    line, nothing but id, event, data and comments, no retry."""

    def __init__(self):
        self.kept, self.fields, self.comments = b"", {}, 0

    def feed(self, data):
        check(b"\r" not in data, "a CR in the stream")
        self.kept += data
        frames = []
        *lines, self.kept = self.kept.split(b"\n")
        for line in lines:
            line = line.decode("utf-8")
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, colon, value = line.partition(": ")
                check(colon and name in ("id", "event", "data"), f"a strange line in the stream: {line!r}")
                check(name not in self.fields, f"two {name} lines in one frame")
                self.fields[name] = value
            elif self.fields:
                check(self.fields.get("data"), f"a frame without data: {self.fields}")
                frames.append(Frame(self.fields.get("id"), self.fields.get("event"), self.fields["data"]))
                self.fields = {}
        return frames

    def end(self):
        check(not self.kept and not self.fields, f"the stream ends within a frame: {self.kept!r} {self.fields}")


class Stream:
    """A request answered by SSE. Iterating gives frames until the server ends the stream."""

    def __init__(self, conn, response):
        self.conn, self.response, self.parser, self.ready = conn, response, SseParser(), []
        self.pieces, self.is_ended = conn.chunks(response), False
        check(response.status == 200 and response.type == "text/event-stream", response)

    def next(self, seconds=None):
        """The next frame; None at the end of the stream."""
        if seconds is not None:
            self.conn.socket.settimeout(seconds)
        while not self.ready:
            piece = next(self.pieces, None)
            if piece is None:
                self.parser.end()
                self.is_ended = True
                return None
            self.ready += self.parser.feed(piece)
        return self.ready.pop(0)

    def __iter__(self):
        while (frame := self.next()) is not None:
            yield frame

    def rest(self, seconds=WAIT):
        self.conn.socket.settimeout(seconds)
        return list(self)

    def silent(self, seconds):
        """True when neither a frame nor the end comes within that time."""
        end = time.monotonic() + seconds
        while not self.ready:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.conn.socket], [], [], left)[0]:
                return True
            piece = next(self.pieces, None)
            if piece is None:
                self.is_ended = True
                return False
            self.ready += self.parser.feed(piece)
        return False

    def close(self):
        self.conn.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
