"""Tokens and keys, two principals for every operation, tenants, Host, Origin and CORS."""
from lib.a2a import ALL, METHODS, ONE, PUSH, REST1, RPC1, Client, Events, json_bytes, message, new_id
from lib.agents import completed, tck, waiting
from lib.http import ask
from lib.server import KEYS, TOKENS, Server, needs_ours, server, settings
from lib.tap import Failure, check, each, same, test

PATH = "/.well-known/agent-card.json"


def closed(**more):
    return server("tck", config=settings(tokens=True, **more))


def alice(wire, **more):
    return Client(closed(**more), wire, token=TOKENS["alice"])


def bob(wire, **more):
    return Client(closed(**more), wire, token=TOKENS["bob"])


# ---- who are you ----------------------------------------------------------------------------------------------------------------

OPERATIONS = {"send": {"message": message()}, "stream": {"message": message()}, "get": {"id": "x"}, "list": {}, "cancel": {"id": "x"}, "subscribe": {"id": "x"}, "card": {},
              **{op: {"taskId": "x", "id": "c", "url": "https://example.com/"} for op in PUSH}}
EVERY = [(f"{op}, {w}", w, op) for w in ALL for op in OPERATIONS if op in METHODS and (w.is_1 or METHODS[op][1])]


@each("without a token: 401 with WWW-Authenticate: {}", EVERY)
def _(wire, op):
    a = Client(closed(), wire).open(op, OPERATIONS[op])
    check(not isinstance(a, Events), a)
    same(a.response.status, 401, "status")
    check("bearer" in (a.response.get("www-authenticate") or "").lower(), a.response)
    same(a.response.type, "application/json", "content type")


@each("a wrong credential is as good as none: {}", [
    ("another token", [("Authorization", "Bearer nonsense")]), ("an empty token", [("Authorization", "Bearer ")]), ("the token with a tail", [("Authorization", f"Bearer {TOKENS['alice']}x")]),
    ("the token cut short", [("Authorization", f"Bearer {TOKENS['alice'][:-1]}")]), ("Basic", [("Authorization", "Basic YWxpY2U6YWxpY2Utc2VjcmV0")]), ("the token as a key", [("X-API-Key", TOKENS["alice"])]),
    ("the key as a token", [("Authorization", f"Bearer {KEYS['carol']}")]), ("the bare token", [("Authorization", TOKENS["alice"])]), ("the token in the query", None)])
def _(headers):
    r = Client(closed(), REST1).raw("GET", "/tasks/x" + ("" if headers is not None else f"?access_token={TOKENS['alice']}&token={TOKENS['alice']}"), None, headers or [])
    same(r.status, 401, "status")


@test("JSON-RPC's 401 carries an error of code -32000")
def _():
    r = Client(closed(), RPC1).raw("POST", "/", json_bytes({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}), [("Content-Type", "application/json")])
    same((r.status, r.json["error"]["code"]), (401, -32000), "answer")


@each("the scheme's name has any case: {}", ["bearer", "BEARER", "bEaReR"])
def _(scheme):
    same(Client(closed(), REST1).raw("GET", "/tasks/x", None, [("Authorization", f"{scheme} {TOKENS['alice']}")]).status, 404, "status")


@test("an API key is as good as a token")
def _():
    c = Client(closed(), RPC1, key=KEYS["carol"])
    t = completed(c)
    same(c.get(t["id"]).task["id"], t["id"], "id")
    bob(RPC1).get(t["id"]).expect("TaskNotFound")


@test("two credentials of two principals are refused or one of them, never both")
def _():
    t = completed(alice(RPC1))
    r = Client(closed(), REST1, token=TOKENS["bob"], key=KEYS["carol"]).raw("GET", f"/tasks/{t['id']}")
    check(r.status in (400, 401, 404), r)


@test("authentication comes before everything else")
def _():
    c = Client(closed(), RPC1)
    for headers, body in ([("A2A-Version", "99.0")], b"{}"), ([("Content-Type", "text/plain")], b"x"), ([], b"{"):
        same(c.raw("POST", "/", body, [("Content-Type", "application/json"), *headers] if not any(n == "Content-Type" for n, _ in headers) else headers).status, 401, "status")
    check(c.raw("GET", "/tasks").status == 401, "a list")


@test("secrets are not in the log")
def _():
    s = closed()
    completed(alice(RPC1))
    text = "\n".join(s.log)
    check(not any(x in text for x in [*TOKENS.values(), *KEYS.values()]), "a secret in the log")


# ---- two principals ---------------------------------------------------------------------------------------------------------------

def not_there(wire, op, params):
    """bob gets the same answer for a task of alice's as any caller gets for an unknown task."""
    theirs, nobodys = bob(wire).open(op, params), bob(wire).open(op, {**params, **({"id": "nobody"} if "id" in params else {}), **({"message": {**params["message"], "taskId": "nobody"}} if "message" in params else {})})
    if isinstance(theirs, Events):
        for s in theirs, nobodys:
            same(s.stream.next().json["error"]["code"], -32001, "code")
        return
    theirs.expect("TaskNotFound")
    same(theirs.response.status, nobodys.response.status, "status")
    same(str(theirs.error.get("message")).replace(str(params.get("id")), "X"), str(nobodys.error.get("message")).replace("nobody", "X"), "message") if wire.is_rpc and "id" in params else None


@each("what is not yours does not exist: {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("get", "cancel", "subscribe")])
def _(wire, op):
    t = waiting(alice(wire))
    not_there(wire, op, {"id": t["id"]})
    same(alice(wire).get(t["id"]).state, "TASK_STATE_INPUT_REQUIRED", "alice's task afterwards")


@each("what is not yours does not exist, finished or not: {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("get", "cancel", "subscribe")])
def _(wire, op):
    not_there(wire, op, {"id": completed(alice(wire))["id"]})


@each("a message to a task that is not yours: {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("send", "stream")])
def _(wire, op):
    t = waiting(alice(wire))
    not_there(wire, op, {"message": message(id=tck("complete-task"), task=t["id"])})
    got = alice(wire).get(t["id"]).task
    same((got["status"]["state"], len([m for m in got["history"] if m["role"] == "ROLE_USER"])), ("TASK_STATE_INPUT_REQUIRED", 1), "alice's task afterwards")


@each("a list holds only your own, also of a context both use: {}", ONE)
def _(wire):
    context = new_id("shared")
    mine, theirs = completed(alice(wire), context)["id"], completed(bob(wire), context)["id"]
    for c, want in ((alice(wire), mine), (bob(wire), theirs)):
        v = c.list(contextId=context).value
        same(([t["id"] for t in v["tasks"]], v["totalSize"]), ([want], 1), "list")
        everything = {t["id"] for t in c.list(pageSize=100).value["tasks"]}
        check(want in everything and not ({mine, theirs} - {want}) & everything, "the whole list")


@each("a page token is of no use to another: {}", ONE)
def _(wire):
    context = new_id("shared")
    for _ in range(3):
        completed(alice(wire), context)
    token = alice(wire).list(contextId=context, pageSize=1).value["nextPageToken"]
    a = bob(wire).list(contextId=context, pageSize=1, pageToken=token)
    check(not a.ok or a.value["tasks"] == [], a)


@each("a cursor is of no use to another: {}", ALL)
def _(wire):
    t = waiting(alice(wire))
    a = bob(wire).open("subscribe", {"id": t["id"]}, headers=[("Last-Event-ID", "1")])
    if isinstance(a, Events):
        same(a.stream.next().json["error"]["code"], -32001, "code")
    else:
        a.expect("TaskNotFound")


@each("push operations do not tell whose task it is: {}", [(f"{op}, {w}", w, op) for w in ALL for op in PUSH])
def _(wire, op):
    t = completed(alice(wire))
    params = {"taskId": t["id"], "id": "c", "url": "https://example.com/"}
    theirs, nobodys = bob(wire).call(op, params), bob(wire).call(op, {**params, "taskId": "nobody"})
    same((theirs.ok, theirs.response.status, theirs.code), (False, nobodys.response.status, nobodys.code), "bob's answer")


@test("the same contextId of two principals is two contexts")
def _():
    context = new_id("ctx")
    a, b = waiting(alice(RPC1), context), waiting(bob(RPC1), context)
    check(a["id"] != b["id"], "two tasks")
    same(len(bob(RPC1).get(b["id"]).task["history"]), len(alice(RPC1).get(a["id"]).task["history"]), "histories")


# ---- tenants ------------------------------------------------------------------------------------------------------------------------

@each("a tenant is where its tasks are: {}", ONE)
def _(wire):
    needs_ours("the SDK's in-memory store has no tenants")
    s = server("tck")
    a, b, none = (Client(s, wire, tenant=t) for t in ("acme", "globex", None))
    t = completed(a)
    same(a.get(t["id"]).task["id"], t["id"], "at home")
    for c in (b, none):
        c.get(t["id"]).expect("TaskNotFound")
        check(t["id"] not in [x["id"] for x in c.list(pageSize=100).value["tasks"]], "in another's list")


@test("a tenant in the body, in the path and in the query are the same")
def _():
    needs_ours("the SDK's in-memory store has no tenants")
    s = server("tck")
    t = completed(Client(s, RPC1, tenant="acme"))
    c = Client(s, REST1)
    for target in (f"/acme/tasks/{t['id']}", f"/tasks/{t['id']}?tenant=acme"):
        same(c.rest("GET", target, op="get").task["id"], t["id"], target)
    same(c.rest("POST", "/message:send", {"tenant": "acme", "message": message(id=tck("complete-task"), context=t["contextId"])}, op="send").task["contextId"], t["contextId"], "context")


@each("a token's tenant is the only one it reaches: {}", ONE)
def _(wire):
    needs_ours("needs tenants of tokens")
    s = closed(tenants=True)
    own, other = (Client(s, wire, token=TOKENS["alice"], tenant=t) for t in ("acme", "globex"))
    t = completed(own)
    other.get(t["id"]).expect("TaskNotFound")
    check(not other.send(id=tck("complete-task")).ok, "a send to another's tenant")


@each("a tenant may not be called {}", ["v1", "a2a", "api", "agents", "ag-ui", "ai-sdk", "simple", "healthz", "readyz", "metrics", "tasks"])
def _(name):
    needs_ours("a rule of the configuration")
    config = {"tokens": [{"token": "t", "principal": "p", "tenant": name}]}
    try:
        Server("tck", config=config).kill()
    except Failure as e:
        check("tenant" in str(e), e)
        return
    raise Failure("it started")


# ---- listening ------------------------------------------------------------------------------------------------------------------------

@test("a listen beyond loopback without tokens is refused, and the words say what to do")
def _():
    needs_ours("Dragoman is safe by default")
    try:
        Server("tck", listen="0.0.0.0:0").kill()
    except Failure as e:
        check("--insecure" in str(e) or "token" in str(e), e)
        return
    raise Failure("it started")


# ---- Host, Origin, CORS -----------------------------------------------------------------------------------------------------------------

def port():
    return server("tck").address[1]


@each("Host {} is served on loopback", [("of the address", lambda: f"127.0.0.1:{port()}"), ("localhost", lambda: f"localhost:{port()}"), ("localhost without a port", lambda: "localhost"), ("[::1]", lambda: f"[::1]:{port()}"), ("LOCALHOST", lambda: f"LOCALHOST:{port()}")])
def _(host):
    same(Client(server("tck"), REST1).raw("GET", "/tasks/x", None, [("Host", host())]).status, 404, "status")


@each("a foreign Host gets 403 on loopback: {}", ["example.com", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "[::2]"])
def _(host):
    needs_ours("Dragoman is safe by default")
    for target in ("/tasks/x", PATH):
        same(Client(server("tck"), REST1).raw("GET", target, None, [("Host", host)]).status, 403, f"status of {target}")


@each("a foreign Origin gets 403 on loopback: {}", ["https://evil.example", "http://evil.example:80", "http://localhost.evil.example", "null", "file://", "http://127.0.0.1.evil.example"])
def _(origin):
    needs_ours("Dragoman is safe by default")
    c = Client(server("tck"), RPC1)
    r = c.raw("POST", "/", json_bytes({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}), [("Content-Type", "application/json"), ("Origin", origin)])
    same((r.status, r.get("access-control-allow-origin")), (403, None), "answer")
    r = c.raw("OPTIONS", "/", None, [("Origin", origin), ("Access-Control-Request-Method", "POST")])
    check(r.get("access-control-allow-origin") is None, r)


@each("CORS for an origin on loopback: {}", ["http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:8080"])
def _(origin):
    needs_ours("the SDK has no CORS")
    c = Client(server("tck"), RPC1)
    r = c.raw("OPTIONS", "/", None, [("Origin", origin), ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type,a2a-version,a2a-extensions,authorization,last-event-id")])
    check(r.status in (200, 204), r)
    same(r.get("access-control-allow-origin"), origin, "allowed origin")
    allowed = {h.strip().lower() for h in (r.get("access-control-allow-headers") or "").split(",")}
    check({"content-type", "a2a-version", "a2a-extensions", "authorization", "last-event-id"} <= allowed, allowed)
    check("POST" in (r.get("access-control-allow-methods") or ""), r)
    check("origin" in (r.get("vary") or "").lower(), r)
    r = c.raw("GET", "/tasks/x", None, [("Origin", origin)])
    same((r.status, r.get("access-control-allow-origin")), (404, origin), "answer")
    check("a2a-extensions" in (r.get("access-control-expose-headers") or "").lower(), r)


@test("CORS on a stream too")
def _():
    needs_ours("the SDK has no CORS")
    with Client(server("bench"), RPC1).stream("chunks 1 x", headers=[("Origin", "http://localhost:3000")]) as s:
        same(s.stream.response.get("access-control-allow-origin"), "http://localhost:3000", "allowed origin")


@test("an origin that is listed is allowed, others are not")
def _():
    needs_ours("the SDK has no CORS")
    s = server("tck", config=settings(origins=["https://app.example"]))
    r = Client(s, REST1).raw("GET", "/tasks/x", None, [("Origin", "https://app.example")])
    same((r.status, r.get("access-control-allow-origin")), (404, "https://app.example"), "answer")
    same(Client(s, REST1).raw("GET", "/tasks/x", None, [("Origin", "https://other.example")]).status, 403, "status")


@each("a form of another site cannot post: {}", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def _(type):
    for wire, path in ((RPC1, "/"), (RPC1, "/a2a"), (REST1, "/message:send"), (REST1, "/v1/message:send")):
        body = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message()}, "message": message()})
        r = ask(server("tck").address, "POST", path, body, [("Content-Type", type), ("A2A-Version", wire.version)])
        check(b"result" not in r.body and b"task" not in r.body.lower().replace(b"tasknotfound", b""), r)


# ---- operators -------------------------------------------------------------------------------------------------------------------

OPERATOR = "operator-secret"


def operated():
    config = settings(tokens=True)
    config["tokens"].append({"token": OPERATOR, "principal": "root", "role": "operator"})
    return server("tck", config=config)


def trace(s, task, token=None, method="GET"):
    return ask(s.address, method, f"/debug/tasks/{task}/trace", None, [("Authorization", f"Bearer {token}")] if token else [])


def transitions(r):
    return [f"{t['machine']}: {t['from']} > {t['to']}" for t in r.json["transitions"]]


@test("the trace of a task is for operators")
def _():
    needs_ours()
    s = operated()
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    r = trace(s, task, OPERATOR)
    same((r.status, r.type, r.json["task"]), (200, "application/json", task), "answer")
    got = transitions(r)
    for t in ("loaded-task: loading > ready", "task-state: unknown > submitted", "run: undecided > task", "run: task > ended"):
        check(t in got, got)
    check(any(t.startswith("task-state: ") and t.endswith(" > completed") for t in got), got)
    same(transitions(trace(s, new_id(), OPERATOR)), [], "of an unknown task")
    same(trace(s, task, OPERATOR, "POST").status, 405, "POST")
    same(ask(s.address, "GET", "/debug/else", None, [("Authorization", f"Bearer {OPERATOR}")]).status, 404, "another path")


@test("the trace of a task has the states of the streams of its turns")
def _():
    needs_ours()
    s = operated()
    body = json_bytes({"model": "tck", "stream": True, "messages": [{"role": "user", "content": "tck-complete-task"}]})
    r = ask(s.address, "POST", "/v1/chat/completions", body, [("Authorization", f"Bearer {TOKENS['alice']}"), ("Content-Type", "application/json")])
    same(r.status, 200, "status")
    got = [t for t in transitions(trace(s, r.get("x-a2a-task-id"), OPERATOR)) if t.startswith("stream: ")]
    same((got[0], got[-1]), ("stream: waiting > replaying", "stream: ended > closed"), got)


@test("the trace of a task: 403 for other callers, 401 without a token")
def _():
    needs_ours()
    s = operated()
    r = trace(s, "x", TOKENS["alice"])
    same((r.status, r.json["error"]["code"], r.json["error"]["status"]), (403, 403, "PERMISSION_DENIED"), "alice")
    check("operator" in r.json["error"]["message"], r.json)
    same(trace(s, "x").status, 401, "without a token")
    same(trace(s, "x", "nonsense").status, 401, "unknown token")


@test("the trace of a task: on a server without tokens a local caller is the operator")
def _():
    needs_ours()
    s = server("tck")
    task = completed(Client(s, REST1))["id"]
    check("run: task > ended" in transitions(trace(s, task)), "the trace")
