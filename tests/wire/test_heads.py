"""What is decided by the head of a request, before its body arrives: Host, Origin, credentials, address, size, and how many
bytes all requests may hold."""
from lib.a2a import RPC1, Client, json_bytes, message
from lib.http import Conn, ask
from lib.server import TOKENS, Server, server, settings
from lib.tap import check, each, same, soon, test

MIB = 1 << 20
OWN = [("A2A-Version", "1.0"), ("Content-Type", "application/json")]
ALICE, BOB = ("Authorization", f"Bearer {TOKENS['alice']}"), ("Authorization", f"Bearer {TOKENS['bob']}")
EVIL = "https://evil.example"

# where messages are sent, and what an error looks like there
SHAPES = {"/": lambda r: r.json["error"]["code"] == -32000 or r.json["error"]["code"] == -32600,
          "/message:send": lambda r: r.json["error"]["code"] == r.status,
          "/v1/message:send": lambda r: r.json["error"]["code"] == r.status,
          "/ag-ui": lambda r: r.json["error"]["code"] == r.status,
          "/v1/chat/completions": lambda r: r.json["error"]["message"] and "type" in r.json["error"],
          "/v1/responses": lambda r: r.json["error"]["message"] and "type" in r.json["error"],
          "/v1/conversations": lambda r: r.json["error"]["message"] and "type" in r.json["error"],
          "/ai-sdk": lambda r: r.type == "text/plain",
          "/simple/ag-ui": lambda r: r.json,
          "/simple/responses": lambda r: r.json,
          "/agents/tck/ag-ui": lambda r: r.json["error"]["code"] == r.status}
SIZES = {"10 bytes": "Content-Length: 10", "30 MiB": f"Content-Length: {30 * MIB}", "chunks": "Transfer-Encoding: chunked",
         "1 GB": "Content-Length: 1000000000"}


def head(c, path, size, *headers, host="127.0.0.1", method="POST", expect=False):
    """A head without a byte of its body."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", size] + [f"{n}: {v}" for n, v in OWN + list(headers)]
    c.send("\r\n".join(lines + ["Expect: 100-continue"] * expect) + "\r\n\r\n")


def answer_to_head(s, path, size, *headers, **more):
    with Conn(s.address) as c:
        head(c, path, size, *headers, **more)
        r = c.response()
        same((r.get("connection") or "").lower(), "close", "Connection")
        check(c.ended(30), "the connection ends")
        return r


def closed(**more):
    return server("tck", config=settings(tokens=True, **more))


# ---- refused without the body ---------------------------------------------------------------------------------------------

@each("without a token the body is not waited for: {}", [(f"{p}, {name}", p, size) for p in SHAPES for name, size in SIZES.items()])
def _(path, size):
    for headers in [], [("Authorization", "Bearer nonsense")]:
        r = answer_to_head(closed(), path, size, *headers)
        same(r.status, 401, "status")
        check("bearer" in (r.get("www-authenticate") or "").lower(), r)
        check(SHAPES[path](r), r)


@each("a foreign Host or Origin is refused before the body, and not mirrored: {}", [(f"{p}, {name}", p, size) for p in ("/", "/ag-ui", "/v1/chat/completions", "/healthz", "/no/such/place") for name, size in SIZES.items()])
def _(path, size):
    s = server("tck")
    for r in (answer_to_head(s, path, size, host="evil.example"), answer_to_head(s, path, size, ("Origin", EVIL)),
              answer_to_head(s, path, size, ("Origin", EVIL), host="evil.example")):
        same(r.status, 403, "status")
        same(r.all("access-control-allow-origin"), [], "Access-Control-Allow-Origin")


@test("a page that may call can read the 413 and the 401")
def _():
    origin = "http://localhost:3000"
    for s, want in (server("tck"), 413), (closed(), 401):
        r = answer_to_head(s, "/", SIZES["1 GB"], ("Origin", origin))
        same((r.status, r.get("access-control-allow-origin")), (want, origin), "answer")


@each("an unknown address is 404 before the body: {}", ["/no/such/place", "/agents/nobody/ag-ui", "/agents/nobody"])
def _(path):
    same(answer_to_head(server("tck"), path, SIZES["30 MiB"]).status, 404, "status")


@each("addresses that need little take little: {}", ["POST /tasks/x:cancel", "POST /tasks/x:subscribe", "GET /tasks/x", "DELETE /v1/responses/resp_x", "POST /v1/responses/resp_x/cancel",
                                                      "POST /ai-sdk/x/cancel", "GET /healthz", "POST /healthz", "GET /v1/models", "GET /.well-known/agent-card.json"])
def _(line):
    method, path = line.split()
    same(answer_to_head(server("tck"), path, f"Content-Length: {64 * 1024 + 1}", method=method).status, 413, "status")


@test("a small address that gets a large body in one piece refuses it, too")
def _():
    s = server("tck")
    with Conn(s.address) as c:
        c.request("POST", "/tasks/x:cancel", b" " * (64 * 1024 + 1), OWN)
        same(c.response().status, 413, "status")


@each("Expect: 100-continue gets the refusal instead of 100: {}", [("no token", "/", [], 401), ("an unknown address", "/no/such/place", [ALICE], 404), ("too large", "/", [ALICE], 413),
                                                                 ("a foreign Origin", "/", [ALICE, ("Origin", EVIL)], 403)])
def _(path, headers, status):
    with Conn(closed().address) as c:
        head(c, path, SIZES["1 GB"] if status == 413 else SIZES["30 MiB"], *headers, expect=True)
        r = c.response()
        same((r.status, c.continued), (status, False), "answer")


@test("Expect: 100-continue with a token gets 100, then the answer")
def _():
    body = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}})
    for size in f"Content-Length: {len(body)}", "Transfer-Encoding: chunked":
        with Conn(closed().address) as c:
            head(c, "/", size, ALICE, expect=True)
            check(c.line().startswith(b"HTTP/1.1 100"), "100 Continue")
            while c.line():
                pass
            c.send(body if "Length" in size else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            same(c.response().json["error"]["code"], -32001, "code")


@test("a head first and its body later, piece by piece, many times on one connection")
def _():
    body = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x" * 20000}})
    with Conn(closed().address) as c:
        for n in 1, 100, 5000, len(body):
            head(c, "/", f"Content-Length: {len(body)}", ALICE)
            for i in range(0, len(body) if n > 1 else 50, n):
                c.send(body[i:i + n])
            if n == 1:
                c.send(body[50:])
            same(c.response().json["error"]["code"], -32001, "code")


@test("callers that leave in the middle of a body, or are too slow, leave nothing behind")
def _():
    s = Server("tck", config=settings(tokens=True, limits={"in_flight_bytes": MIB}))
    with s:
        for n in range(50):
            with Conn(s.address) as c:
                head(c, "/", f"Content-Length: {600_000}", ALICE)
                c.send(b" " * (n * 1000))
                if n % 2:
                    c.reset()
        soon(lambda: ask(s.address, "POST", "/", b" " * 600_000, OWN + [ALICE]).status == 200, "all bytes were given back")


# ---- how much all of them may hold ------------------------------------------------------------------------------------------

def hold(s, n, *headers):
    """A request that was admitted and whose body does not come."""
    def admitted():
        c = Conn(s.address)
        head(c, "/", f"Content-Length: {n}", *headers, expect=True)
        if c.line().startswith(b"HTTP/1.1 100"):
            return c
        c.close()  # of a test before this one there is still something to be given back
        return None
    return soon(admitted, "it is admitted")


@each("a server that holds enough answers 503 and when to come again: {}", list(SHAPES))
def _(path):
    s = server("tck", config={"limits": {"in_flight_bytes": MIB}})
    with hold(s, 700_000):
        r = answer_to_head(s, path, "Content-Length: 700000")
        same((r.status, r.get("retry-after")), (503, "1"), "answer")
        check(SHAPES[path](r) and b"in_flight_bytes" in r.body, r)
        check(Client(s, RPC1).call("get", {"id": "x"}).response.status == 200, "small requests are served")


@each("a principal that holds enough gets 429, another one is served: {}", list(SHAPES))
def _(path):
    s = closed(limits={"in_flight_bytes_per_principal": MIB})
    with hold(s, 700_000, ALICE):
        r = answer_to_head(s, path, "Content-Length: 700000", ALICE)
        same((r.status, r.get("retry-after")), (429, "1"), "answer")
        check(SHAPES[path](r) and b"in_flight_bytes_per_principal" in r.body, r)
        soon(lambda: ask(s.address, "POST", "/", b" " * 700_000, OWN + [BOB]).status == 200, "bob's")  # the test before has the same one
        check(Client(s, RPC1, token=TOKENS["alice"]).call("get", {"id": "x"}).response.status == 200, "alice's small ones")


@test("chunks count as they come: what does not fit is refused in the middle")
def _():
    s = server("tck", config={"limits": {"in_flight_bytes": MIB}})
    with hold(s, 700_000), Conn(s.address) as c:
        head(c, "/", SIZES["chunks"])
        try:
            for _ in range(100):
                c.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")
        except OSError:
            pass
        same(c.response().status, 503, "status")


@test("a send that waits for its answer has given back the bytes of its document")
def _():
    s = server("bench", config=settings(tokens=True, limits={"in_flight_bytes_per_principal": 4 * MIB}))

    def body(text):
        params = {"message": {**message(text), "metadata": {"x": [0] * 200_000}}}  # decoded it takes 4 MiB
        return json_bytes({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params})
    with Conn(s.address) as c:
        c.request("POST", "/", body("hold 20"), OWN + [ALICE])
        soon(lambda: Client(s, RPC1, token=TOKENS["alice"]).call("list", {}).result["tasks"], "the first one is at work")
        soon(lambda: ask(s.address, "POST", "/", body("echo hi"), OWN + [ALICE]).status == 200, "the second one is admitted")


@test("a body of more values than the limit is refused before it is decoded")
def _():
    s = server("tck")
    for value in b"[" + b"0," * 1_500_000 + b"0]", b'"' + b"[" + b"0," * 1_500_000 + b'0]"', b"[" + b'"a",' * 1_200_000 + b"1]":
        r = ask(s.address, "POST", "/", b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x","y":' + value + b"}}", OWN)
        same(r.status, 413, "status")
        check(b"json_values" in r.body, r)
    text = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x", "y": "a,b\\\",[" * 600_000}})
    same(ask(s.address, "POST", "/", text, OWN).json["error"]["code"], -32001, "commas in a text are not values")
