"""Every error in both profiles of the status table (4.1, 4.2): code, reason, HTTP status, status name."""
from lib.a2a import ALL, ERRORS, ONE, OLD, REST, REST1, RPC, RPC1, Client, Events, message
from lib.agents import completed
from lib.server import agent, needs_ours, server, settings
from lib.tap import check, each, same, test

PROFILES = ["1.0.1", "1.0.0"]
EXTENSION = [{"uri": "urn:example:required", "required": True}]


def client(wire, profile, **more):
    return Client(server("tck", config=settings(errors=profile, **more)), wire)


def task_not_found(c):
    return c.get("nobody")


def task_not_cancelable(c):
    return c.cancel(completed(c)["id"])


def push_not_supported(c):
    return c.call("push-list", {"taskId": "nobody"})


def unsupported_operation(c):
    return c.send(task=completed(c)["id"])


def content_type(c):
    headers = [("Content-Type", "text/plain")]
    return c.rpc(b"x", headers=headers) if c.wire.is_rpc else c.rest("POST", "/message:send" if c.wire.is_1 else "/v1/message:send", b"x", headers)


def invalid_params(c):
    return c.call("send", {})


MAKERS = {"TaskNotFound": task_not_found, "TaskNotCancelable": task_not_cancelable, "PushNotificationNotSupported": push_not_supported,
          "UnsupportedOperation": unsupported_operation, "ContentTypeNotSupported": content_type, "InvalidParams": invalid_params}


@each("{}", [(f"{name} in the table of {p}, {w}", w, p, name) for p in PROFILES for w in ALL for name in MAKERS])
def _(wire, profile, name):
    MAKERS[name](client(wire, profile)).expect(name)


@each("VersionNotSupported in the table of {}", [(f"{p}, {w}", w, p) for p in PROFILES for w in ONE])
def _(wire, profile):
    client(wire, profile).get("x", headers=[("A2A-Version", "99.0")]).expect("VersionNotSupported")


@each("ExtensionSupportRequired in the table of {}", [(f"{p}, {w}", w, p) for p in PROFILES for w in ONE])
def _(wire, profile):
    client(wire, profile, extensions=EXTENSION).send().expect("ExtensionSupportRequired")


@each("ExtendedAgentCardNotConfigured in the table of {}", [(f"{p}, {w}", w, p) for p in PROFILES for w in OLD])
def _(wire, profile):
    client(wire, profile).call("card").expect("ExtendedAgentCardNotConfigured")


@each("MethodNotFound in the table of {}", PROFILES)
def _(profile):
    c = client(RPC1, profile)
    c.rpc({"jsonrpc": "2.0", "id": 1, "method": "Nonsense", "params": {}}, id=1).expect("MethodNotFound")


@each("Parse in the table of {}", [(f"{p}, {w}", w, p) for p in PROFILES for w in ONE])
def _(wire, profile):
    c = client(wire, profile)
    (c.rpc(b"{") if wire.is_rpc else c.rest("POST", "/message:send", b"{")).expect("Parse")


@each("InvalidAgentResponse in the table of {}", [(f"{p}, {w}", w, p) for p in PROFILES for w in ONE])
def _(wire, profile):
    needs_ours("needs the exec agent")
    program = ["/bin/sh", "-c", "cat >/dev/null; echo this is no event"]
    s = server(None, config=settings(errors=profile, agents=[agent("exec", settings={"command": program}, reply="message")]))
    Client(s, wire).send().expect("InvalidAgentResponse")


@each("the same error has the same meaning on every wire: {}", list(MAKERS))
def _(name):
    for w in ALL:
        MAKERS[name](client(w, "1.0.1")).expect(name)


@test("every A2A error of the reference has a code of its own between -32001 and -32009")
def _():
    same(sorted(e.code for e in ERRORS.values() if e.reason), list(range(-32009, -32000)), "codes")


REFUSED = [("stream", "no message", {}), ("stream", "unknown task", {"message": message(task="nobody")}), ("subscribe", "unknown task", {"id": "nobody"})]


@each("REST: an error before the first event is an ordinary answer, not a stream: {}", [(f"{w}, {op}, {what}", w, op, p) for w in REST for op, what, p in REFUSED])
def _(wire, op, params):
    a = client(wire, "1.0.1").open(op, params)
    check(not isinstance(a, Events), a)
    a.refused()
    same(a.response.type, "application/json", "content type")


@each("JSON-RPC: a caller that only accepts events gets the error as one event: {}", [(f"{w}, {op}, {what}", w, op, p) for w in RPC for op, what, p in REFUSED])
def _(wire, op, params):
    needs_ours("found for a2a-go, which reads nothing else")
    a = client(wire, "1.0.1").open(op, params)
    same(a.stream.response.status, 200, "status")
    check(isinstance(a, Events), a)
    a.refused()


@each("JSON-RPC: a caller that accepts JSON gets the error as JSON: {}", [(f"{w}, {op}, Accept: {accept}", w, op, p, accept) for w in RPC for op, _, p in REFUSED[1:]
      for accept in (None, "*/*", "application/json", "application/json, text/event-stream")])
def _(wire, op, params, accept):
    c = client(wire, "1.0.1")
    c.call(op, params, headers=[("Accept", accept)] if accept else []).expect("TaskNotFound")


@test("JSON-RPC: what the transport refuses keeps its HTTP status on a streaming call")
def _():
    needs_ours("needs tokens")
    c = Client(server("tck", config=settings(tokens=True)), RPC1, token="wrong")
    same(c.open("subscribe", {"id": "x"}).response.status, 401, "status")


@each("an error says which task it means, {}", ONE)
def _(wire):
    needs_ours("metadata of ErrorInfo is free")
    a = client(wire, "1.0.1").get("task-nobody-has").expect("TaskNotFound")
    details = a.error["data"] if wire.is_rpc else a.error["error"]["details"]
    same(details[0]["metadata"].get("taskId"), "task-nobody-has", "metadata.taskId")


@each("an error tells nothing of the server's inside, {}", ALL)
def _(wire):
    for a in (client(wire, "1.0.1").get("nobody"), client(wire, "1.0.1").call("send", {})):
        for word in (b"/src/", b".c:", b"node_modules", b"Traceback", b"   at "):
            check(word not in a.response.body, a)


@test("REST: the code of a 404 for a missing task differs from a missing route by ErrorInfo")
def _():
    c = client(REST1, "1.0.1")
    check(c.get("nobody").code == -32001, "the task's")
    a = c.rest("GET", "/nonsense/that/is/no/route")
    same((a.response.status, a.code), (404, None), "the route's")
