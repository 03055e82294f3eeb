"""HTTP/1.1 as the network has it: pipelining, pieces, limits, slow and rude clients, smuggling."""
import re
import socket
import threading
import time

from lib.a2a import RPC1, Client, json_bytes, message
from lib.http import Closed, Conn, ask, request_bytes
from lib.server import Server, needs_ours, needs_plain, server
from lib.tap import check, each, same, test

HEAD = b"Host: 127.0.0.1\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n"
BODY = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("echo hi")}})
GOOD = b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def conn(wait=30):
    return Conn(server("bench").address, wait)


def alive():
    """Another client is served as ever."""
    began = time.monotonic()
    check(Client(server("bench"), RPC1).send("echo alive").ok, "another client")
    check(time.monotonic() - began < 30, "another client, in time")


def good(r):
    check(r.status == 200 and b"hi" in r.body, r)


# ---- what is allowed -----------------------------------------------------------------------------------------------------------

@test("keep-alive: a hundred calls on one connection")
def _():
    with conn() as c:
        for _ in range(100):
            c.send(GOOD)
            good(c.response())


@test("pipelining: twenty calls in one packet, answered in order")
def _():
    bodies = [json_bytes({"jsonrpc": "2.0", "id": n, "method": "SendMessage", "params": {"message": message(f"echo {n}")}}) for n in range(20)]
    with conn() as c:
        c.send(b"".join(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies))
        same([c.response().json["id"] for _ in range(20)], list(range(20)), "ids")


@test("pipelining: a call behind a stream is answered after the stream")
def _():
    cl = Client(server("bench"), RPC1)
    _, m, t, body, headers = cl.prepare("stream", cl.params("chunks 3 x"))
    with conn() as c:
        c.send(request_bytes(m, t, body, headers, "127.0.0.1") + GOOD)
        first = c.response()
        same(first.type, "text/event-stream", "the first answer")
        check(b"COMPLETED" in first.body, first)
        good(c.response())


@test("a request byte by byte")
def _():
    with conn() as c:
        for i in range(0, len(GOOD)):
            c.send(GOOD[i:i + 1])
        good(c.response())


@each("a chunked body: {}", [("one chunk", [BODY]), ("many small ones", [BODY[i:i + 7] for i in range(0, len(BODY), 7)]), ("with an extension", None), ("with a trailer", None)])
def _(pieces):
    how = pieces
    pieces = pieces or [BODY[:10], BODY[10:]]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(p), b";name=value" if how is None else b"", p) for p in pieces)
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + (b"X-Trailer: a\r\n" if how is None else b"") + b"\r\n")
        good(c.response())
        c.send(GOOD)
        good(c.response())


@test("Expect: 100-continue is answered before the body comes")
def _():
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        line = c.line()
        check(line.startswith(b"HTTP/1.1 100"), line)
        while c.line():
            pass
        c.send(BODY)
        good(c.response())


@test("an Expect that is not known is 417")
def _():
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Expect: a-miracle\r\nContent-Length: 0\r\n\r\n")
        same(c.response().status, 417, "status")


@test("Connection: close is done")
def _():
    with conn() as c:
        c.send(GOOD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        r = c.response()
        good(r)
        same((r.get("connection") or "").lower(), "close", "Connection")
        check(c.ended(), "it ends")


@test("HTTP/1.0 is answered and closed")
def _():
    with conn() as c:
        c.send(GOOD.replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        data = b""
        while piece := c.socket.recv(65536):
            data += piece
        check(b" 200 " in data[:20] and b"hi" in data, data[:200])


@test("HEAD on every GET: no body, the same length")
def _():
    for path in ("/.well-known/agent-card.json", "/tasks/nobody"):
        with conn() as c:
            c.request("HEAD", path, None, [("A2A-Version", "1.0")])
            r = c.response(head=True)
            check(r.get("content-length"), r)
            c.send(GOOD)
            good(c.response())


@test("a target in absolute form, and one with a fragment's sign refused")
def _():
    with conn() as c:
        c.send(GOOD.replace(b"POST /", b"POST http://127.0.0.1/", 1))
        r = c.response()
        check(r.status in (200, 400), r)


@test("header names in any case, values with blanks around")
def _():
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\nHOST:127.0.0.1\r\na2a-version:   1.0  \r\nCONTENT-type:\tapplication/json\t\r\ncontent-LENGTH: %d\r\n\r\n" % len(BODY) + BODY)
        good(c.response())


@test("half-close after the request: the answer still comes")
def _():
    needs_ours("the SDK's server hangs up")
    with conn() as c:
        c.send(GOOD)
        c.socket.shutdown(socket.SHUT_WR)
        good(c.response())


# ---- malformed ------------------------------------------------------------------------------------------------------------------

BAD = {
    "garbage": b"\x00\x01\x02\x03 nonsense\r\n\r\n",
    "TLS to a plain port": bytes.fromhex("16030100c8010000c40303") + b"\x00" * 200,
    "no version": b"GET /\r\n\r\n",
    "HTTP/9.9": b"GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a blank in a header's name": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nBad Name: x\r\n\r\n",
    "a blank before the colon": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length : 0\r\n\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\x00b\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nnonsense\r\n\r\n",
    "a folded header": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\r\n b\r\n\r\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: a\rb\r\n\r\n",
    "a control character in the target": b"GET /\x01 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a blank in the target": b"GET /a b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "an invalid method": b"G{T / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "no Host": b"GET /.well-known/agent-card.json HTTP/1.1\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
}
SMUGGLED = {
    "Content-Length and Transfer-Encoding": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding and Content-Length": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two Content-Lengths": b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}}",
    "a list of Content-Lengths": b"Content-Length: 2, 3\r\n\r\n{}}",
    "a negative Content-Length": b"Content-Length: -1\r\n\r\n",
    "a signed Content-Length": b"Content-Length: +2\r\n\r\n{}",
    "a hexadecimal Content-Length": b"Content-Length: 0x2\r\n\r\n{}",
    "a Content-Length with a blank": b"Content-Length: 1 2\r\n\r\n{}",
    "a Content-Length of 30 digits": b"Content-Length: 999999999999999999999999999999\r\n\r\n",
    "Transfer-Encoding: identity, chunked twice": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding with a tab in the name": b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    "two Transfer-Encodings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
    "a chunk size with 0x": b"Transfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk size of 20 digits": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
    "a chunk longer than it says": b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n",
    "an empty chunk size": b"Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n",
    "lines of LF alone": b"Transfer-Encoding: chunked\n\n2\n{}\n0\n\n",
}


def refused(c):
    """A 4xx or 501 and the end, or the end alone; never a second answer on that connection."""
    try:
        r = c.response()
    except Closed:
        return None
    check(400 <= r.status < 500 or r.status in (501, 505), r)
    return r


@each("malformed is 400 and the end of the connection: {}", [(what, data) for what, data in BAD.items()])
def _(data):
    with conn() as c:
        c.send(data)
        refused(c)
        if data[:3] not in (b"\x00\x01\x02",) and b"Host" in data and data.count(b"Host") > 1:
            return
        check(c.ended(30), "the connection ends")
    alive()


@each("smuggling is refused, the request behind it never runs: {}", [(what, data) for what, data in SMUGGLED.items()])
def _(data):
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + data + GOOD)
        refused(c)
        check(c.ended(30), "the connection ends")
    alive()


# ---- limits ---------------------------------------------------------------------------------------------------------------------

@test("headers without end are 431 (or 400) at the limit")
def _():
    with conn() as c:
        try:
            c.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
            for n in range(100000):
                c.send(b"X-%d: %s\r\n" % (n, b"y" * 100))
        except OSError:
            pass
        try:
            check(c.response().status in (400, 431), "status")
        except (Closed, OSError):
            pass
    alive()


@each("a head over the limit is refused: {}", [("one long header", b"X: " + b"y" * 200000), ("a long target", None), ("a thousand headers", b"\r\n".join(b"X-%d: y" % n for n in range(1000)))])
def _(header):
    with conn() as c:
        target = b"/" + b"x" * 200000 if header is None else b"/tasks/x"
        try:
            c.send(b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n" + (header + b"\r\n" if header else b"") + b"\r\n")
            status = c.response().status
        except (Closed, OSError):
            status = 431
        check(status in (400, 414, 431), status)
    alive()


@test("a body over the limit is 413 before it is sent")
def _():
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 10000000000\r\n\r\n{")
        same(c.response().status, 413, "status")
        check(c.ended(30), "the connection ends")
    alive()


@test("Expect: 100-continue with a body over the limit is 413 or 417, not 100")
def _():
    with conn() as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n")
        r = c.head()
        check(r.status in (413, 417) and not c.continued, r)


@test("a chunked body that grows over the limit is 413")
def _():
    s = Server("bench", config={"limits": {"http_body_bytes": 65536}})
    with s, Conn(s.address, 30) as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(100):
                c.send(b"1000\r\n" + b" " * 4096 + b"\r\n")
        except OSError:
            pass
        try:
            same(c.response().status, 413, "status")
        except Closed:
            pass  # reset while we were still writing
        check(Client(s, RPC1).send("echo x").ok, "another client")


@test("413 on JSON-RPC carries an error of code -32000")
def _():
    needs_ours("our own body")
    s = Server("bench", config={"limits": {"http_body_bytes": 2048}})
    with s:
        r = ask(s.address, "POST", "/", b'{"x":"' + b"y" * 4000 + b'"}', [("Content-Type", "application/json"), ("A2A-Version", "1.0")])
        same(r.status, 413, "status")


# ---- slow and rude clients ---------------------------------------------------------------------------------------------------------

@test("slowloris: 200 heads that never end do not keep others waiting, and are cut", timeout=240)
def _():
    slow = [conn(90) for _ in range(200)]
    for c in slow:
        c.send(b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    stop, gone = time.monotonic() + 75, set()
    while time.monotonic() < stop and len(gone) < len(slow):
        for i, c in enumerate(slow):
            if i not in gone:
                try:
                    c.send(b"a")
                    c.socket.setblocking(False)
                    try:
                        if c.socket.recv(4096) == b"" or True:
                            gone.add(i)
                    except BlockingIOError:
                        pass
                    c.socket.setblocking(True)
                except OSError:
                    gone.add(i)
        alive()
        time.sleep(1)
    for c in slow:
        c.close()
    check(len(gone) == len(slow), f"{len(slow) - len(gone)} heads still open after 75 s")


@test("a body that never comes is cut, others are served meanwhile", timeout=240)
def _():
    with conn(90) as c:
        c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: 1000\r\n\r\n{")
        began = time.monotonic()
        alive()
        try:
            r = c.response()
            check(r.status in (400, 408), r)
        except Closed:
            pass
        check(time.monotonic() - began < 85, "in time")


@test("resets in the middle of everything: 300 of them")
def _():
    cl = Client(server("bench"), RPC1)
    _, m, t, body, headers = cl.prepare("stream", cl.params("chunks 1000 yield x"))
    data = request_bytes(m, t, body, headers, "127.0.0.1")
    for n in range(300):
        c = conn()
        c.send(data[:len(data) * (n % 10 + 1) // 10])
        if n % 3 == 0:
            time.sleep(0.002)
        c.reset()
    alive()


@test("connects without a word: 1,000 at once, others are served", timeout=150)
def _():
    idle = [conn() for _ in range(1000)]
    alive()
    for c in idle:
        c.close()
    alive()


@test("a reader that does not read does not stop others or the task", timeout=150)
def _():
    s = server("bench")
    cl = Client(s, RPC1)
    _, m, t, body, headers = cl.prepare("stream", cl.params("chunks 20000 yield x", context="slow-reader"))
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(s.address)
    raw.sendall(request_bytes(m, t, body, headers, "127.0.0.1"))
    raw.settimeout(30)
    data = b""
    while not (found := re.search(rb'"task":\{"id":"([^"]+)"', data)):
        data += raw.recv(100)
    end = time.monotonic() + 30
    state = None
    while time.monotonic() < end and state != "TASK_STATE_COMPLETED":
        state = cl.get(found[1].decode()).task["status"]["state"]
        time.sleep(0.1)
    same(state, "TASK_STATE_COMPLETED", "the task's state")
    # and what it has not read yet is still there for it
    seen = b""
    while b"TASK_STATE_COMPLETED" not in seen:
        piece = raw.recv(65536)
        check(piece, "the stream ended too early")
        seen = seen[-30:] + piece
    raw.close()


@test("10,000 connects one after the other", timeout=240)
def _():
    address = server("bench").address
    for n in range(10000):
        s = socket.create_connection(address, timeout=30)
        if n % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        s.close()
    alive()


@test("64 threads hammer, every answer belongs to its question", timeout=180)
def _():
    faults = []

    def one(n):
        try:
            with conn() as c:
                for i in range(50):
                    body = json_bytes({"jsonrpc": "2.0", "id": f"{n}-{i}", "method": "SendMessage", "params": {"message": message(f"echo {n} {i}")}})
                    c.send(b"POST / HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                    r = c.response().json
                    same((r["id"], r["result"]["message"]["parts"][0]["text"].endswith(f"{n} {i}")), (f"{n}-{i}", True), "answer")
        except Exception as e:
            faults.append(repr(e))
    threads = [threading.Thread(target=one, args=(n,)) for n in range(64)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not faults, faults[:3])


@test("memory comes back after a storm", timeout=180)
def _():
    needs_ours("a promise of ours")
    needs_plain()
    with Server("bench") as s:
        c = Client(s, RPC1)

        def storm():
            conns = [Conn(s.address) for _ in range(300)]
            for x in conns:
                x.send(GOOD)
            for x in conns:
                good(x.response())
                x.close()
        storm()
        before = s.memory()
        for _ in range(5):
            storm()
        check(c.send("echo x").ok, "alive")
        check(s.memory() < before + (8 << 20), f"{before} then {s.memory()}")


@test("an answer is never given twice or to another: status lines on one connection")
def _():
    with conn() as c:
        c.send(b"GET /tasks/one HTTP/1.1\r\nHost: 127.0.0.1\r\nA2A-Version: 1.0\r\n\r\n" * 3)
        for _ in range(3):
            same(c.response().status, 404, "status")
        check(not c.kept, c.kept)


