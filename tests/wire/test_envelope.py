"""JSON-RPC 2.0 as A2A uses it (2.3), and what is no call at all (4.4, first rows)."""
from lib.a2a import ALL, METHODS, ONE, REST1, RPC, RPC1, RPC03, Client, json_bytes, message
from lib.shapes import message_03
from lib.server import server
from lib.tap import check, each, same, test


def client(wire):
    return Client(server("bench"), wire)


def call(wire, **changes):
    """A good GetTask of an unknown task, then changed; a member set to ... is taken away."""
    body = {"jsonrpc": "2.0", "id": 7, "method": METHODS["get"][not wire.is_1], "params": {"id": "nobody"}}
    body.update(changes)
    return {k: v for k, v in body.items() if v is not ...}


BYTES = [("nothing", b""), ("half an object", b'{"jsonrpc":"2.0","id":1,'), ("a word", b"hello"), ("two values", b'{} {}'),
         ("a trailing comma", b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x",}}'), ("bad UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}'),
         ("a lone surrogate escape", b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"\\ud800"}}'), ("NaN", b'{"jsonrpc":"2.0","id":NaN,"method":"GetTask"}')]


@each("not JSON is a parse error with id null and HTTP 200, {}", [(f"{what}, {w}", w, data) for w in RPC for what, data in BYTES])
def _(wire, data):
    client(wire).rpc(data, id=None).expect("Parse")


@each("not JSON is 400 INVALID_ARGUMENT on REST, {}", [(what, data) for what, data in BYTES if what not in ("nothing",)])
def _(data):
    client(REST1).rest("POST", "/message:send", data).expect("Parse")


@each("JSON that is not an object is an invalid request with id null, {}", [(f"{what}, {w}", w, data) for w in RPC for what, data in
      [("a string", b'"SendMessage"'), ("a number", b"42"), ("null", b"null"), ("true", b"true")]])
def _(wire, data):
    client(wire).rpc(data, id=None).expect("InvalidRequest")


@each("a batch is an invalid request, {}", [(f"{what}, {w}", w, n) for w in RPC for what, n in (("empty", 0), ("of one", 1), ("of three", 3))])
def _(wire, n):
    client(wire).rpc([call(wire)] * n, id=None).expect("InvalidRequest")


@each("JSON that is not an object is 400 on REST, {}", [("array", b"[]"), ("string", b'"x"'), ("number", b"1"), ("null", b"null")])
def _(data):
    same(client(REST1).rest("POST", "/message:send", data).refused().response.status, 400, "status")


NOT_CALLS = [("jsonrpc 1.0", {"jsonrpc": "1.0"}), ("jsonrpc 2", {"jsonrpc": 2}), ("jsonrpc 2.0 as a number", {"jsonrpc": 2.0}), ("no jsonrpc", {"jsonrpc": ...}),
             ("no method", {"method": ...}), ("an empty method", {"method": ""}), ("a number as method", {"method": 5}), ("null as method", {"method": None})]


@each("no call of JSON-RPC 2.0 is an invalid request, the id echoed, {}", [(f"{what}, {w}", w, change) for w in RPC for what, change in NOT_CALLS])
def _(wire, change):
    client(wire).rpc(call(wire, **change), id=7).expect("InvalidRequest")


@each("an invalid id is an invalid request with id null, {}", [(f"{what}, {w}", w, id) for w in RPC for what, id in
      [("object", {}), ("array", [1]), ("true", True), ("false", False), ("fraction", 1.5)]])
def _(wire, id):
    client(wire).rpc(call(wire, id=id), id=None).expect("InvalidRequest")


@each("the id comes back as it was, {}", [(f"{what}, {w}", w, id) for w in RPC for what, id in
      [("text", "abc"), ("empty text", ""), ("digits as text", "1"), ("zero", 0), ("negative", -5), ("2^53+1", 9007199254740993),
       ("18 digits", 123456789012345678), ("non-ASCII text", "Ü-€-😀"), ("text with quotes", 'a"b\\c'), ("null", None)]])
def _(wire, id):
    client(wire).rpc(call(wire, id=id), id=id).expect("TaskNotFound")


@each("a call without id is executed and answered with id null, {}", RPC)
def _(wire):
    client(wire).rpc(call(wire, id=...), id=None).expect("TaskNotFound")


@each("an unknown method is -32601, {}", [(f"{m or 'tasks/list'}, {w}", w, m) for w in RPC for m in
      ["Nonsense", "tasks/nonsense", "sendmessage", "rpc.discover"]])
def _(wire, method):
    client(wire).rpc(call(wire, method=method), id=7).expect("MethodNotFound")


@each("params that are no object are invalid params, {}", [(f"{what}, {w}", w, p) for w in RPC for what, p in
      [("missing", ...), ("an array", [{"id": "x"}]), ("a string", "x"), ("a number", 1), ("null", None), ("an empty key", {"": "x", "id": "y"})]])
def _(wire, params):
    client(wire).rpc(call(wire, params=params), id=7).expect("InvalidParams")


@each("an unknown member beside the envelope's and the params' own is ignored, {}", RPC)
def _(wire):
    body = call(wire, tckUnknownField=1)
    body["params"]["tckExtraParam"] = {"a": [1]}
    client(wire).rpc(body, id=7).expect("TaskNotFound")


@each("JSON with white space and escapes is read, {}", RPC)
def _(wire):
    method = METHODS["get"][not wire.is_1]
    data = (' \n\t{ "\\u006asonrpc" : "2.0" ,\r\n "id":7, "method" : "' + method.replace("e", "\\u0065") + '", "params" : { "id" : "n\\u00e9" } } \n').encode()
    client(wire).rpc(data, id=7).expect("TaskNotFound")


@test("a body that begins with a byte order mark is refused or read, never a 500, 1.0 JSON-RPC")
def _():
    r = client(RPC1).raw("POST", "/", b"\xef\xbb\xbf" + json_bytes(call(RPC1)), [("Content-Type", "application/json")])
    same(r.status, 200, "status")
    check(r.json["error"]["code"] in (-32700, -32001), r)


@each("snake_case params are understood, {}", ONE)
def _(wire):
    s = server("tck")
    c = Client(s, wire)
    m = {"message_id": "tck-complete-task-snake-" + wire.binding, "role": "ROLE_USER", "parts": [{"text": "x", "media_type": "text/plain"}]}
    a = c.rpc({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": m, "configuration": {"history_length": 0, "return_immediately": False}}}, id=1, op="send") \
        if wire.is_rpc else c.rest("POST", "/message:send", {"message": m, "configuration": {"history_length": 0, "return_immediately": False}}, op="send")
    same(a.state, "TASK_STATE_COMPLETED", "state")
    check("history" not in a.task, a)
    if wire.is_rpc:
        t = a.task
        a = c.rpc({"jsonrpc": "2.0", "id": 2, "method": "ListTasks", "params": {"context_id": t["contextId"], "page_size": 2, "history_length": 1, "include_artifacts": False}}, id=2, op="list")
        same([x["id"] for x in a.value["tasks"]], [t["id"]], "tasks")
        same(a.value["pageSize"], 2, "pageSize")


@test("enums are also read as their numbers, integers also as text, 1.0 JSON-RPC")
def _():
    m = {**message("echo numbers"), "role": 1}
    a = client(RPC1).rpc({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": m, "configuration": {"historyLength": "3"}}}, id=1, op="send")
    check("message" in a.value, a)


@test("null is as good as absent, 1.0 JSON-RPC")
def _():
    m = {**message("echo null"), "taskId": None, "contextId": None, "metadata": None, "extensions": None, "referenceTaskIds": None}
    a = client(RPC1).rpc({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": m, "configuration": None, "metadata": None, "tenant": None}}, id=1, op="send")
    check("message" in a.value, a)


@test("0.3: a message without kind is understood")
def _():
    m = message_03(message("echo kindless"))
    del m["kind"]
    for p in m["parts"]:
        check(p.pop("kind") == "text")
        p["kind"] = "text"
    a = client(RPC03).rpc({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": m}}, id=1, op="send")
    check("message" in a.value, a)


@each("the answer is application/json in one piece, {}", ALL)
def _(wire):
    r = client(wire).get("nobody").response
    same(r.type, "application/json", "content type")
    check(r.get("content-length"), r)
    check(r.get("date"), f"no Date: {r}")
    same(r.get("x-powered-by"), None, "X-Powered-By")


# ---- an envelope where an object of another kind is expected -----------------------------------------------------------

INNER = {"a request for another method": {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}},
         "an error": {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "x"}}}


@each("an envelope that carries something else is invalid as params: {}", INNER)
def _(what):
    answer = client(RPC1).rpc({"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": INNER[what]}, id=7).expect("InvalidParams")
    got = "those of GetTask" if "method" in INNER[what] else "an object of the kind error"
    check(f"expected the params of SendMessage, got {got}" in answer.error["message"], answer.error["message"])


@each("an envelope that carries something else is invalid as a body of REST: {}", INNER)
def _(what):
    client(REST1).rest("POST", "/message:send", json_bytes(INNER[what])).expect("InvalidParams")
