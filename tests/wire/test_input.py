"""What bad input gets (4.4): one test per row and wire; the order of the checks."""
from lib.a2a import ALL, ONE, OLD, PUSH, REST1, RPC1, RPC03, Client, json_bytes, message, new_id
from lib.agents import completed, tck, waiting
from lib.server import agent, needs_ours, server, settings
from lib.shapes import message_03
from lib.tap import check, each, same, test


def client(wire, type="tck", **options):
    return Client(server(type, **options), wire)


def bad(wires, cases):
    return [(f"{what}, {w}", w, value) for w in wires for what, value in cases]


def without(member, m=None):
    return {k: v for k, v in (m or message()).items() if k != member}


# ---- required members -----------------------------------------------------------------------------------------

MISSING = [("message missing", {}), ("message null", {"message": None}), ("messageId missing", {"message": without("messageId")}), ("messageId empty", {"message": {**message(), "messageId": ""}}),
           ("role missing", {"message": without("role")}), ("parts missing", {"message": without("parts")}), ("parts empty", {"message": {**message(), "parts": []}})]


@each("a send without what is required is invalid params: {}", bad(ALL, MISSING))
def _(wire, params):
    client(wire).call("send", params).expect("InvalidParams")


@each("a stream without what is required is invalid params, not a stream: {}", bad(ALL, MISSING))
def _(wire, params):
    a = client(wire).open("stream", params)
    a.expect("InvalidParams")


@each("a task operation without id is invalid params: {}", [(f"{op}{what}, {w}", w, op, p) for w in [RPC1, RPC03] for op in ("get", "cancel", "subscribe")
      for what, p in (("", {}), (" with an empty one", {"id": ""}), (" with a null", {"id": None}))])
def _(wire, op, params):
    a = client(wire).open(op, params)
    a.expect("InvalidParams")


# ---- parts ------------------------------------------------------------------------------------------------------

PARTS = [("a part with nothing", [{}]), ("a part with only metadata", [{"metadata": {"a": 1}}]), ("text and url", [{"text": "x", "url": "https://example.com/"}]),
         ("raw and data", [{"raw": "eA==", "data": {}}]), ("a part that is a number", [5]), ("a part that is a text", ["x"]), ("a part that is null", [None]),
         ("text that is a number", [{"text": 5}]), ("bad base64", [{"raw": "%%%"}]), ("url that is a number", [{"url": 5}]), ("the second part is bad", [{"text": "x"}, {}])]


@each("bad parts are invalid params: {}", bad(ONE, PARTS))
def _(wire, parts):
    a = client(wire).call("send", {"message": message(parts=parts)}).expect("InvalidParams")
    check(a.error, a)


PARTS_03 = [("an unknown kind", [{"kind": "video", "text": "x"}]), ("a file without bytes or uri", [{"kind": "file", "file": {"name": "x"}}]), ("a file part without file", [{"kind": "file"}]),
            ("a text part without text", [{"kind": "text"}]), ("a data part without data", [{"kind": "data"}]), ("data that is a text", [{"kind": "data", "data": "x"}]), ("parts that are a text", "invalid"), ("bad base64", [{"kind": "file", "file": {"bytes": "%%%"}}])]


@each("0.3: bad parts are invalid params: {}", [(what, p) for what, p in PARTS_03])
def _(parts):
    m = {**message_03(message()), "parts": parts}
    client(RPC03).rpc({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": m}}, id=1).expect("InvalidParams")


@each("the BadRequest of invalid params names the member: {}", ONE)
def _(wire):
    needs_ours("the SDK sends no BadRequest")
    a = client(wire).call("send", {"message": message(parts=[{"text": "x"}, {}])}).expect("InvalidParams")
    details = a.error["data"] if wire.is_rpc else a.error["error"]["details"]
    found = [v["field"] for d in details if d["@type"].endswith("google.rpc.BadRequest") for v in d["fieldViolations"]]
    check(found and "parts" in found[0] and "1" in found[0], details)


# ---- types ------------------------------------------------------------------------------------------------------

TYPES = [("message is a text", {"message": "x"}), ("message is an array", {"message": []}), ("messageId is a number", {"message": {**message(), "messageId": 5}}), ("role is unknown", {"message": {**message(), "role": "ROLE_ROBOT"}}),
         ("role is a number out of range", {"message": {**message(), "role": 99}}), ("parts is an object", {"message": {**message(), "parts": {}}}), ("parts is a text", {"message": {**message(), "parts": "x"}}),
         ("metadata is an array", {"message": {**message(), "metadata": []}}), ("contextId is an object", {"message": {**message(), "contextId": {}}}), ("referenceTaskIds is a text", {"message": {**message(), "referenceTaskIds": "x"}}),
         ("configuration is a text", {"message": message(), "configuration": "x"}), ("historyLength is a text", {"message": message(), "configuration": {"historyLength": "many"}}),
         ("historyLength is negative", {"message": message(), "configuration": {"historyLength": -1}}), ("returnImmediately is a number", {"message": message(), "configuration": {"returnImmediately": 1}}),
         ("request metadata is a text", {"message": message(), "metadata": "x"})]


@each("a wrong type is invalid params: {}", bad(ONE, TYPES))
def _(wire, params):
    client(wire).call("send", params).expect("InvalidParams")


@each("0.3: a wrong type is invalid params: {}", [
    ("role of 1.0", {**message_03(message()), "role": "ROLE_USER"}), ("role is a number", {**message_03(message()), "role": 1}), ("messageId is a number", {**message_03(message()), "messageId": 1}),
    ("kind is task", {**message_03(message()), "kind": "task"}), ("parts is an object", {**message_03(message()), "parts": {}})])
def _(m):
    client(RPC03).rpc({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": m}}, id=1).expect("InvalidParams")


LIST = [("pageSize 0", {"pageSize": 0}), ("pageSize -1", {"pageSize": -1}), ("pageSize 101", {"pageSize": 101}), ("pageSize a word", {"pageSize": "many"}), ("historyLength -1", {"historyLength": -1}), ("an unknown status", {"status": "TASK_STATE_ASLEEP"}), ("a status of 0.3", {"status": "completed"}),
        ("an invalid pageToken", {"pageToken": "not-a-token"}), ("a bad timestamp", {"statusTimestampAfter": "yesterday"}), ("a timestamp out of range", {"statusTimestampAfter": "2026-13-45T00:00:00Z"}), ("includeArtifacts a word", {"includeArtifacts": "perhaps"})]


@each("ListTasks refuses {}", bad(ONE, LIST))
def _(wire, params):
    client(wire).call("list", params).expect("InvalidParams")


@each("GetTask refuses historyLength {}", [(f"{n}, {w}", w, n) for w in ALL for n in (-1, "many")])
def _(wire, n):
    client(wire).call("get", {"id": completed(client(RPC1))["id"], "historyLength": n}).expect("InvalidParams")


# ---- content types ------------------------------------------------------------------------------------------------

WRONG = ["text/plain", "text/html", "application/xml", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/octet-stream", "application/jsonp", "json", "application/json-patch+json"]


@each("a wrong content type is ContentTypeNotSupported before anything is parsed: {}", [(f"{t}, {w}", w, t) for w in ALL for t in WRONG])
def _(wire, type):
    c = client(wire)
    headers = [("Content-Type", type)]
    a = c.rpc(b"this is not JSON", headers=headers, id=None) if wire.is_rpc else \
        c.rest("POST", "/message:send" if wire.is_1 else "/v1/message:send", b"this is not JSON", headers=headers)
    a.expect("ContentTypeNotSupported")


@each("a content type that is JSON is taken: {}", [(f"{t or 'none'}, {w}", w, t) for w in ALL for t in
      ["application/json", "application/a2a+json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8", 'application/json; profile="a;b"', None]])
def _(wire, type):
    c = client(wire, "bench")
    id, method, target, body, headers = c.prepare("send", c.params("echo typed"))
    headers = [h for h in headers if h[0] != "Content-Type"] + ([("Content-Type", type)] if type else [])
    r = c.raw(method, target, body, headers)
    same(r.status, 200, f"status ({r})")
    check(b"typed" in r.body, r)


@each("a part's media type outside the input modes is ContentTypeNotSupported, {}", ONE)
def _(wire):
    needs_ours("the SDK does not enforce input modes")
    c = client(wire, None, config=settings(agents=[agent("tck", card={"defaultInputModes": ["text/plain"]})]))
    c.send(parts=[{"raw": "eA==", "mediaType": "application/x-unsupported-type"}]).expect("ContentTypeNotSupported")
    check(c.send(parts=[{"text": "x", "mediaType": "text/plain"}]).ok, "text/plain is taken")


# ---- tasks --------------------------------------------------------------------------------------------------------

@each("an unknown task is TaskNotFound: {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("get", "cancel")])
def _(wire, op):
    client(wire).call(op, {"id": new_id("nobody")}).expect("TaskNotFound")


@each("subscribing to an unknown task is TaskNotFound, {}", [RPC1, REST1, *OLD])
def _(wire):
    a = client(wire).open("subscribe", {"id": new_id("nobody")})
    a.expect("TaskNotFound")


@test("0.3 resubscribe to an unknown task: SSE with one error when SSE was asked for, else JSON")
def _():
    c = client(RPC03)
    body = {"jsonrpc": "2.0", "id": 9, "method": "tasks/resubscribe", "params": {"id": "nobody"}}
    r = c.raw("POST", "/", json_bytes(body), [("Content-Type", "application/json"), ("Accept", "text/event-stream")])
    same((r.status, r.type), (200, "text/event-stream"), "answer to Accept: text/event-stream")
    check(b'"error"' in r.body and b"-32001" in r.body, r)
    c.rpc(body, id=9).expect("TaskNotFound")


@each("a message to an unknown task is TaskNotFound, {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("send", "stream")])
def _(wire, op):
    a = client(wire).open(op, {"message": message(task=new_id("nobody"))})
    a.expect("TaskNotFound")


@each("a task's context and another contextId do not go together, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    c.send("x", id=tck("complete-task"), task=t["id"], context=new_id("c")).expect("InvalidParams")
    same(c.get(t["id"]).state, "TASK_STATE_INPUT_REQUIRED", "state afterwards")


@each("a message to a finished task is UnsupportedOperation, {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("send", "stream")])
def _(wire, op):
    c = client(wire)
    t = completed(c)
    a = c.open(op, {"message": message(task=t["id"])})
    a.expect("UnsupportedOperation")


@each("subscribing to a finished task is UnsupportedOperation, {}", ONE)
def _(wire):
    c = client(wire)
    a = c.open("subscribe", {"id": completed(c)["id"]})
    a.expect("UnsupportedOperation")


@each("0.3: subscribing to a finished task gives the Task once and ends, {}", OLD)
def _(wire):
    c = client(wire)
    t = completed(c)
    events = c.subscribe(t["id"]).rest()
    same([e.kind for e in events], ["task"], "events")
    same(events[0].body["status"]["state"], "TASK_STATE_COMPLETED", "state")


@each("canceling a finished task is TaskNotCancelable, {}", ALL)
def _(wire):
    c = client(wire)
    c.cancel(completed(c)["id"]).expect("TaskNotCancelable")


# ---- capabilities ---------------------------------------------------------------------------------------------------

@each("without streaming, streaming calls are UnsupportedOperation: {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("stream", "subscribe")])
def _(wire, op):
    c = client(wire, "tck", config=settings(streaming=False))
    a = c.open(op, {"message": message()} if op == "stream" else {"id": "nobody"})
    a.expect("UnsupportedOperation")


PUSH_PARAMS = {"taskId": "nobody", "id": "c1", "url": "https://example.com/hook"}


@each("without push, push operations are PushNotificationNotSupported, before the task is looked for: {}", [(f"{op}, {w}", w, op) for w in ALL for op in PUSH])
def _(wire, op):
    needs_push_off()
    params = {k: v for k, v in PUSH_PARAMS.items() if op == "push-create" or k == "taskId" or (k == "id" and op != "push-list")}
    client(wire).call(op, params).expect("PushNotificationNotSupported")


@each("without push, an inline push config is PushNotificationNotSupported, {}", [(f"{op}, {w}", w, op) for w in ALL for op in ("send", "stream")])
def _(wire, op):
    needs_push_off()
    a = client(wire).open(op, {"message": message(), "configuration": {"taskPushNotificationConfig": {"url": "https://example.com/hook"}}})
    a.expect("PushNotificationNotSupported")


def needs_push_off():
    card = Client(server("tck"), RPC1).raw("GET", "/.well-known/agent-card.json").json
    check(not card["capabilities"].get("pushNotifications"), "the card declares push: these tests want another server now")


@each("the extended card that is not declared is refused, {}", [("1.0 JSON-RPC", RPC1, "UnsupportedOperation"), ("1.0 REST", REST1, "UnsupportedOperation"),
                                                               ("0.3 JSON-RPC", RPC03, "ExtendedAgentCardNotConfigured"), ("0.3 REST", OLD[1], "ExtendedAgentCardNotConfigured")])
def _(wire, error):
    client(wire).call("card").expect(error)


REQUIRED = [{"uri": "urn:example:required", "required": True, "description": "needed"}, {"uri": "urn:example:extra", "description": "not needed"}]


@each("a required extension that is not listed is ExtensionSupportRequired: {}", [(f"{op}, {w}", w, op) for w in ONE for op in ("send", "stream")])
def _(wire, op):
    c = client(wire, "tck", config=settings(extensions=REQUIRED))
    for headers in [], [("A2A-Extensions", "urn:example:other")]:
        a = c.open(op, {"message": message()}, headers=headers)
        a.expect("ExtensionSupportRequired")
    check(c.send(id=tck("complete-task"), headers=[("A2A-Extensions", "urn:example:other, urn:example:required")]).ok, "with the extension")


# ---- the order of the checks ------------------------------------------------------------------------------------------

@test("order: the version is looked at before the method and the params")
def _():
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}
    client(RPC1).rpc(body, headers=[("A2A-Version", "99.0")], id=1).expect("VersionNotSupported")


@test("order: the content type is looked at before the body")
def _():
    client(RPC1).rpc(b"{", headers=[("Content-Type", "text/plain")], id=None).expect("ContentTypeNotSupported")


@each("order: params before existence, {}", ONE)
def _(wire):
    client(wire).call("send", {"message": {**message(task="nobody"), "parts": []}}).expect("InvalidParams")


@each("order: required extensions before existence, {}", ONE)
def _(wire):
    c = client(wire, "tck", config=settings(extensions=REQUIRED))
    c.call("send", {"message": message(task="nobody")}).expect("ExtensionSupportRequired")


@each("order: existence before state, {}", ALL)
def _(wire):
    client(wire).cancel("nobody").expect("TaskNotFound")


# ---- sizes and depths ---------------------------------------------------------------------------------------------------

@each("nesting without end is refused and others are unaffected, {}", ALL)
def _(wire):
    c = client(wire, "bench")
    deep = b'{"a":' * 100000 + b"1" + b"}" * 100000
    body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":' + deep + b"}" if wire.is_rpc else b'{"message":' + deep + b"}"
    r = c.raw("POST", "/" if wire.is_rpc else "/message:send" if wire.is_1 else "/v1/message:send", body, [("Content-Type", "application/json")])
    check(r.status in (200, 400, 413), r)
    if r.status == 200:
        check(r.json["error"]["code"] in (-32600, -32602, -32700), r)
    check(c.send("echo still here").ok, "the next call")


@each("text of every kind comes back as it went in, {}", ALL)
def _(wire):
    text = "quotes \" and \\ / tab\t newline\n CR\r nul\u0000 DEL\u007f é ü € 漢字 😀 \u2028 \ufeff end"
    a = client(wire, "bench").send("echo " + text)
    got = "".join(p["text"] for p in a.message["parts"])
    check(got in (text, "echo " + text), f"text {got!r}")


@each("a message as large as is allowed works: {}", [(f"{kib} KiB, {w}", w, kib) for w in ALL for kib in (64, 1024)])
def _(wire, kib):
    text = "0123456789abcdef" * (kib * 64)
    got = client(wire, "bench").send("echo " + text)
    check("".join(p["text"] for p in got.message["parts"]).endswith(text), "the text")


@test("numbers in data and metadata pass as they came")
def _():
    needs_ours("JavaScript's numbers are doubles")
    c = client(RPC1)
    data = b'{"big":123456789012345678901234567890,"small":1.0,"exp":1e400,"neg":-0,"frac":0.1000}'
    body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"' + tck("input-required").encode() + \
        b'","role":"ROLE_USER","parts":[{"data":' + data + b'}],"metadata":{"m":' + data + b"}}}}"
    r = c.raw("POST", "/", body, [("Content-Type", "application/json")])
    check(data in r.body.replace(b" ", b""), r)
