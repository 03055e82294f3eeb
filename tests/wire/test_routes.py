"""REST in detail (2.1, 2.2, 2.4), route precedence (2.5), where JSON-RPC answers."""
from urllib.parse import quote

from lib.a2a import ALL, ONE, REST, REST03, REST1, RPC, RPC03, RPC1, Answer, Client, Events, METHODS, json_bytes, message, new_id, text_of
from lib.agents import completed, tck, waiting
from lib.http import Conn, Stream
from lib.server import agent, needs_ours, server, settings
from lib.tap import check, each, same, test


def client(wire, type="tck", **more):
    return Client(server(type), wire, **more)


# ---- every operation exists on every wire -----------------------------------------------------------------------------

@each("send, get, cancel, subscribe exist: {} [R002-02]", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    same(c.get(t["id"]).task["id"], t["id"], "id")
    with c.subscribe(t["id"]) as s:
        same(s.next().kind, "task", "first event")
    same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "state")


@each("ListTasks exists: {}", ONE)
def _(wire):
    check(completed(client(wire))["id"] in [t["id"] for t in client(wire).list(pageSize=100).value["tasks"]], "the task is listed")


@each("a method of 0.3 under A2A-Version: 1.0 is -32601: {}", [(METHODS[op][1], METHODS[op][1]) for op in METHODS if METHODS[op][1]])
def _(method):
    client(RPC1).rpc({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "x", "message": message()}}, id=1).expect("MethodNotFound")


@test("0.3 has no tasks/list on JSON-RPC")
def _():
    client(RPC03).rpc({"jsonrpc": "2.0", "id": 1, "method": "tasks/list", "params": {}}, id=1).expect("MethodNotFound")


@test("0.3: GET /v1/tasks lists tasks, with the filters and pages of 1.0")
def _():
    needs_ours("0.3 names it for REST and gRPC only, the stand-in has none")
    c, context = client(REST03), new_id("list")
    ids = [completed(c, context=context)["id"] for _ in range(3)]
    pages, token = [], ""
    while True:
        r = c.raw("GET", f"/v1/tasks?contextId={context}&pageSize=2&pageToken={token}")
        same(r.status, 200, "status")
        pages.append(r.json)
        if not (token := r.json["nextPageToken"]):
            break
    same([len(p["tasks"]) for p in pages], [2, 1], "tasks on the pages")
    same({t["id"] for p in pages for t in p["tasks"]}, set(ids), "ids")
    same({t["status"]["state"] for p in pages for t in p["tasks"]}, {"TASK_STATE_COMPLETED"}, "states, as 0.3 REST has them")
    same(c.raw("GET", "/v1/tasks?pageSize=0").status, 400, "a page of no tasks")


# ---- where JSON-RPC is -----------------------------------------------------------------------------------------------

@each("JSON-RPC answers at {}", [(f"{path}, {w}", w, path) for w in RPC for path in ("/", "/a2a", "/a2a/", "/api/a2a", "/api/a2a/")])
def _(wire, path):
    c = client(wire)
    body = {"jsonrpc": "2.0", "id": 1, "method": METHODS["get"][not wire.is_1], "params": {"id": "nobody"}}
    r = c.raw("POST", path, json_bytes(body), [("Content-Type", "application/json")])
    same(r.status, 200, f"status ({r})")
    same(r.json["error"]["code"], -32001, "code")


@test("POST /api/a2a with message/stream runs the agent on the text in the conversation, frame by frame [R002-23 R002-24]")
def _():
    c = client(RPC03, "bench", base="/api/a2a")
    events = c.stream("chunks 3 hi", context="ctx-of-mine").rest()
    same(events[0].body["contextId"], "ctx-of-mine", "contextId")
    same(events[-1].payload.get("final"), True, "final of the last")
    check(c and all(e.id for e in events), "SSE ids")


@each("no redirect for a trailing slash, {}", RPC)
def _(wire):
    for path in ("/a2a", "/a2a/"):
        check(client(wire).raw("POST", path, b"{}", [("Content-Type", "application/json")]).status == 200, path)


# ---- REST ------------------------------------------------------------------------------------------------------------

def prefix(w):
    return "" if w.is_1 else "/v1"


@each("a known route with a wrong verb is 405 with Allow: {}", [(f"{m} {p}, {w}", w, m, p) for w in REST for m, p in
      [("GET", "/message:send"), ("PUT", "/message:stream"), ("POST", "/tasks/x"), ("GET", "/tasks/x:cancel"), ("DELETE", "/tasks/x"), ("PUT", "/tasks/x:subscribe"), ("PATCH", "/tasks/x/pushNotificationConfigs")]])
def _(wire, method, path):
    r = client(wire).raw(method, prefix(wire) + path, b"{}" if method in ("PUT", "POST", "PATCH") else None, [("Content-Type", "application/json")])
    same(r.status, 405, f"status ({r})")
    allow = {m.strip() for m in (r.get("allow") or "").split(",")}
    check(allow and method not in allow and allow <= {"GET", "HEAD", "POST", "DELETE", "OPTIONS"}, f"Allow: {r.get('allow')}")
    same(r.type, "application/json", "content type")


@each("an unknown route is 404 with the error's body: {}", [(f"{m} {p}, {w}", w, m, p) for w in REST for m, p in
      [("GET", "/nonsense"), ("POST", "/message:nonsense"), ("GET", "/tasks/a/b/c"), ("POST", "/tasks/x:nonsense")]])
def _(wire, method, path):
    r = client(wire).raw(method, prefix(wire) + path, b"{}" if method == "POST" else None, [("Content-Type", "application/json")] if method == "POST" else [])
    check(r.status in (404, 405), f"status ({r})")
    same(r.type, "application/json", "content type")
    check("error" in r.json if wire.is_1 or path == "/nonsense" else "message" in r.json, r)  # below /v1 it is OpenAI's


@each("{} works for subscribe", [(f"{m}, {w}", w, m) for w in REST for m in ("GET", "POST")])
def _(wire, method):
    c = client(wire)
    t = waiting(c)
    conn = Conn(c.server.address)
    conn.request(method, f"{prefix(wire)}/tasks/{t['id']}:subscribe", b"" if method == "POST" else None, [("A2A-Version", "1.0")] if wire.is_1 else [])
    with Events(wire, Stream(conn, conn.head()), None) as e:
        same(e.next().body["id"], t["id"], "id")


@each("an empty body with a JSON content type works for {}", [(f"{op}, {w}", w, op, body) for w in REST for op, body in [("cancel", b""), ("subscribe", b"")]] +
      [(f"cancel with the body null, {w}", w, "cancel", b"null") for w in REST] + [(f"cancel with no body and no length, {w}", w, "cancel", None) for w in REST])
def _(wire, op, body):
    c = client(wire)
    t = waiting(c)
    conn = Conn(c.server.address)
    conn.request("POST", f"{prefix(wire)}/tasks/{t['id']}:{op}", body, [("Content-Type", "application/json")] + ([("A2A-Version", "1.0")] if wire.is_1 else []))
    head = conn.head()
    same(head.status, 200, f"status ({head})")
    if op == "cancel":
        head.body = b"".join(conn.chunks(head))
        same(Answer(wire, "cancel", head).state, "TASK_STATE_CANCELED", "state")
    conn.close()


@each("the alias /tasks/ID/subscribe works, {}", REST)
def _(wire):
    needs_ours("an alias for Rust clients")
    c = client(wire)
    t = waiting(c)
    conn = Conn(c.server.address)
    conn.request("POST", f"{prefix(wire)}/tasks/{t['id']}/subscribe", b"", [("A2A-Version", "1.0")] if wire.is_1 else [])
    with Events(wire, Stream(conn, conn.head()), None) as e:
        same(e.next().body["id"], t["id"], "id")


@each("a task id with a colon is not taken for a verb, {}", REST)
def _(wire):
    for id in ("x:y", "x:cancelled", "x:subscribed"):
        client(wire).rest("GET", f"{prefix(wire)}/tasks/{id}").expect("TaskNotFound")


@each("path segments are percent-decoded after they are split: {}", REST)
def _(wire):
    c = client(wire)
    t = completed(c)
    coded = "".join(f"%{ord(x):02X}" for x in t["id"])
    same(c.rest("GET", f"{prefix(wire)}/tasks/{coded}", op="get").task["id"], t["id"], "id")
    c.rest("GET", f"{prefix(wire)}/tasks/{quote('a/b', safe='')}").expect("TaskNotFound")


@each("a broken percent code is 400 or 404, {}", REST)
def _(wire):
    for path in ("/tasks/%", "/tasks/%zz", "/tasks/%f0%28", "/tasks/%00"):
        check(client(wire).raw("GET", prefix(wire) + path).status in (400, 404), path)


@test("query values: camelCase, numbers, booleans, enum names, times, 1.0 REST")
def _():
    c = client(REST1)
    t = completed(c)
    q = f"contextId={t['contextId']}&status=TASK_STATE_COMPLETED&pageSize=3&historyLength=0&includeArtifacts=true&statusTimestampAfter={quote(t['status']['timestamp'])}"
    v = c.rest("GET", f"/tasks?{q}", op="list").value
    same([x["id"] for x in v["tasks"]], [t["id"]], "tasks")
    check("history" not in v["tasks"][0] and "artifacts" in v["tasks"][0], v)


@test("query values: an unknown name is ignored, an empty one is as absent, plus is a space, 1.0 REST")
def _():
    c = client(REST1)
    t = completed(c, context="ctx with space " + tck("x"))
    v = c.rest("GET", "/tasks?contextId=" + t["contextId"].replace(" ", "+") + "&nonsense=1&status=&pageToken=", op="list").value
    same([x["id"] for x in v["tasks"]], [t["id"]], "tasks")


@test("history_length is understood beside historyLength, 0.3 REST")
def _():
    c = client(REST03)
    t = waiting(c)
    a = c.rest("GET", f"/v1/tasks/{t['id']}?history_length=1", op="get")
    same(len(a.task["history"]), 1, "history")


@each("a path's id wins over the body's, {}", REST)
def _(wire):
    c = client(wire)
    t = waiting(c)
    a = c.rest("POST", f"{prefix(wire)}/tasks/{t['id']}:cancel", {"id": "another", "name": "tasks/another"}, op="cancel")
    same(a.task["id"], t["id"], "id")


@each("the results of get and cancel are bare, of send wrapped: {}", REST)
def _(wire):
    c = client(wire)
    a = c.send(id=tck("input-required"))
    same(list(a.result), ["task"], "members of send's")
    t = a.task
    check(c.get(t["id"]).result["id"] == c.cancel(t["id"]).result["id"] == t["id"], "bare tasks")


@test("0.3 REST reads ProtoJSON and the kind dialect alike")
def _():
    c = client(REST03, "bench")
    shapes = {
        "content": {"messageId": "m1", "role": "ROLE_USER", "content": [{"text": "echo one"}]},
        "kind": {"kind": "message", "messageId": "m2", "role": "user", "parts": [{"kind": "text", "text": "echo two"}]},
        "snake": {"message_id": "m3", "role": "ROLE_USER", "content": [{"text": "echo three"}]},
    }
    for name, m in shapes.items():
        a = c.rest("POST", "/v1/message:send", {"message": m}, op="send")
        check(a.ok and a.message, f"{name}: {a}")
    check(c.rest("POST", "/v1/message:send", {"request": shapes["content"]}, op="send").ok, "request instead of message")


# ---- precedence (2.5) ---------------------------------------------------------------------------------------------------

@test("GET /tasks/tasks is GetTask of `tasks`, not a list of the tenant `tasks`")
def _():
    client(REST1).rest("GET", "/tasks/tasks").expect("TaskNotFound")


@test("/v1/ with A2A-Version: 1.0 is a tenant's prefix or not found, never 0.3")
def _():
    r = client(REST1).raw("POST", "/v1/message:send", b'{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"x"}]}}', [("Content-Type", "application/json")])
    check(r.status in (400, 404), r)


@test("0.3 does not know the routes without /v1")
def _():
    r = client(REST03).raw("POST", "/message:send", b'{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]}}', [("Content-Type", "application/json")])
    check(r.status in (400, 404), r)


@each("a tenant's prefix reaches the same operations: {}", ["acme", "a b", "x%2Fy"])
def _(tenant):
    needs_ours("tenants are open to all only without tokens")
    c = client(REST1)
    a = c.rest("POST", f"/{quote(tenant)}/message:send", {"message": message(id=tck("complete-task"))}, op="send")
    same(a.state, "TASK_STATE_COMPLETED", "state")
    same(c.rest("GET", f"/{quote(tenant)}/tasks/{a.task['id']}", op="get").task["id"], a.task["id"], "id")
    c.get(a.task["id"]).expect("TaskNotFound")


@each("agents are reached at /agents/ID/: {}", ALL)
def _(wire):
    needs_ours("several agents in one server")
    s = server(None, config=settings(agents=[agent("bench", "first"), agent("hello", "second")]))
    same(text_of(Client(s, wire).send("echo one").message)[-3:], "one", "the default's answer")
    check(Client(s, wire, base="/agents/second").send("hi").message, "the second's answer")
    same(Client(s, wire, base="/agents/first").send("chunks 1 x").state, "TASK_STATE_COMPLETED", "the first's by name")
    r = Client(s, wire, base="/agents/third").raw("POST", "/message:send", b"{}", [("Content-Type", "application/json")])
    same(r.status, 404, "an unknown agent's status")


@each("a task of one agent is not seen at another, {}", ONE)
def _(wire):
    needs_ours("several agents in one server")
    s = server(None, config=settings(agents=[agent("bench", "first"), agent("bench", "second")]))
    t = Client(s, wire, base="/agents/first").send("chunks 1 x").task
    Client(s, wire, base="/agents/second").get(t["id"]).expect("TaskNotFound")
    same(Client(s, wire, base="/agents/first").get(t["id"]).task["id"], t["id"], "id")


@each("HEAD is as GET without a body: {}", ["/tasks", "/tasks/nobody", "/extendedAgentCard", "/.well-known/agent-card.json"])
def _(path):
    c = Client(server("tck"), REST1)
    head, get = c.raw("HEAD", path), c.raw("GET", path)
    same((head.status, head.type, head.body), (get.status, get.type, b""), "answer")


@test("there is no HEAD of a stream")
def _():
    same(Client(server("tck"), REST1).raw("HEAD", "/tasks/x:subscribe").status, 405, "status")


@each("OPTIONS says what is allowed: {}", ["/", "/message:send", "/tasks", "/.well-known/agent-card.json"])
def _(path):
    r = Client(server("tck"), RPC1).raw("OPTIONS", path)
    check(r.status in (200, 204), r)
    check(r.get("allow"), r)
