"""Version negotiation (3.1, 3.2), content types of answers (3.4), the extensions header (5.13)."""
from lib.a2a import ALL, ONE, REST03, REST1, RPC03, RPC1, Client, json_bytes, message
from lib.agents import completed, tck, waiting
from lib.server import agent, needs_ours, server, settings
from lib.shapes import message_03
from lib.tap import check, each, same, test

SEND1 = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("echo hi", id="m-1")}}
SEND03 = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message_03(message("echo hi", id="m-1"))}}


def post(body, *headers, path="/", agent="bench", **options):
    return Client(server(agent, **options), RPC03).raw("POST", path, json_bytes(body), [("Content-Type", "application/json"), *headers])


def error_of(r):
    return r.json.get("error", {}).get("code")


# ---- JSON-RPC ----------------------------------------------------------------------------------------------------------

@each("A2A-Version {} is served as 1.0 on JSON-RPC", ["1.0", "1.0.0", "1.0.7", " 1.0 "])
def _(version):
    check("message" in post(SEND1, ("A2A-Version", version)).json.get("result", {}), version)


@each("A2A-Version {} is served as 0.3 on JSON-RPC", [("0.3", "0.3"), ("0.3.0", "0.3.0"), ("0.3.14", "0.3.14"), ("that is empty", "")])
def _(version):
    same(post(SEND03, ("A2A-Version", version)).json.get("result", {}).get("kind"), "message", "kind")


@test("no A2A-Version is 0.3 on JSON-RPC")
def _():
    same(post(SEND03).json.get("result", {}).get("kind"), "message", "kind")


@each("A2A-Version {} is VersionNotSupported and the message lists what is", ["99.0", "2.0", "0.2", "0.1.5", "abc", "1", "1.", ".3", "-1.0", "1.0x"])
def _(version):
    r = post(SEND1, ("A2A-Version", version))
    same((r.status, error_of(r)), (200, -32009), f"status and code ({r})")
    check("1.0" in r.json["error"]["message"] and "0.3" in r.json["error"]["message"], r)
    r = Client(server("bench"), REST1).raw("GET", "/tasks/x", None, [("A2A-Version", version)])
    same(r.status, 400, "HTTP status on REST")


@each("the header's name has any case: {}", ["a2a-version", "A2A-VERSION", "a2A-vErSiOn"])
def _(name):
    check("message" in post(SEND1, (name, "1.0")).json.get("result", {}), name)


@test("the version may be in the query, the header wins")
def _():
    check("message" in post(SEND1, path="/?A2A-Version=1.0").json.get("result", {}), "query")
    same(error_of(post(SEND1, ("A2A-Version", "99.0"), path="/?A2A-Version=1.0")), -32009, "code with a bad header")
    check("message" in post(SEND1, ("A2A-Version", "1.0"), path="/?A2A-Version=99.0").json.get("result", {}), "good header, bad query")


@test("the version may be in the query, 1.0 REST")
def _():
    r = Client(server("bench"), REST1).raw("GET", "/tasks/nobody?A2A-Version=1.0", version=False)
    same((r.status, r.json["error"]["status"]), (404, "NOT_FOUND"), "status")


@test("strict: a 1.0 method without a version is VersionNotSupported")
def _():
    same(error_of(post(SEND1)), -32009, "code")


@test("lenient: a 1.0 method without a version is served as 1.0")
def _():
    check("message" in post(SEND1, config=settings(version="lenient")).json.get("result", {}), "answer")


@test("a 0.3 method under A2A-Version: 1.0 is -32601")
def _():
    same(error_of(post(SEND03, ("A2A-Version", "1.0"))), -32601, "code")


@test("a 1.0 method under A2A-Version: 0.3 is an error, in the shape of 0.3")
def _():
    r = post(SEND1, ("A2A-Version", "0.3"))
    check(error_of(r) in (-32601, -32009), r)


# ---- REST --------------------------------------------------------------------------------------------------------------

@test("strict: a 1.0 route without a version is refused, lenient: served")
def _():
    c = Client(server("bench"), REST1)
    body = json_bytes({"message": message("echo hi")})
    r = c.raw("POST", "/message:send", body, [("Content-Type", "application/json")], version=False)
    check(r.status in (400, 404), r)
    c = Client(server("bench", config=settings(version="lenient")), REST1)
    r = c.raw("POST", "/message:send", body, [("Content-Type", "application/json")], version=False)
    same(r.status, 200, f"status ({r})")


@each("0.3 REST answers with version {}", [("none", None), ("0.3", "0.3"), ("0.3.0", "0.3.0"), ("empty", "")])
def _(version):
    c = Client(server("bench"), REST03)
    a = c.send("echo hi", headers=[("A2A-Version", version)] if version is not None else [])
    check(a.message, a)


@test("the two versions see the same task, each in its own format")
def _():
    s = server("tck")
    t = waiting(Client(s, RPC03))
    for w in ALL:
        got = Client(s, w).get(t["id"])
        same(got.state, "TASK_STATE_INPUT_REQUIRED", f"state on {w}")
        same(got.task["contextId"], t["contextId"], f"context on {w}")
    same(Client(s, REST1).cancel(t["id"]).state, "TASK_STATE_CANCELED", "state")
    same(Client(s, RPC03).get(t["id"]).result["status"]["state"], "canceled", "0.3's word")
    same(Client(s, REST03).get(t["id"]).result["status"]["state"], "TASK_STATE_CANCELLED", "0.3 REST's word")


@test("a subscriber of one version follows what a sender of the other does")
def _():
    s = server("tck")
    t = waiting(Client(s, RPC1))
    streams = {w: Client(s, w).subscribe(t["id"]) for w in ALL}
    for e in streams.values():
        same(e.next().kind, "task", "first event")
    Client(s, REST03).send(id=tck("complete-task"), task=t["id"])
    for w, e in streams.items():
        same(e.rest()[-1].state, "TASK_STATE_COMPLETED", f"last state on {w}")


# ---- content types of answers (3.4) ---------------------------------------------------------------------------------------

ACCEPT = [(None, None, "application/json"), ("*/*", None, "application/json"), ("application/json", None, "application/json"), ("application/a2a+json", None, "application/a2a+json"),
          ("application/a2a+json, application/json", None, "application/json"), (None, "application/a2a+json", "application/a2a+json"), ("application/json", "application/a2a+json", "application/json")]


@each("REST answers by Accept and Content-Type: {}", [(f"Accept {a or 'none'}, Content-Type {t or 'application/json'} gives {want}", a, t, want) for a, t, want in ACCEPT])
def _(accept, type, want):
    needs_ours("the SDK has another rule")
    c = Client(server("bench"), REST1)
    headers = [("Content-Type", type or "application/json")] + ([("Accept", accept)] if accept else [])
    r = c.raw("POST", "/message:send", json_bytes({"message": message("echo hi")}), headers)
    same((r.status, r.type), (200, want), "answer")


@each("REST errors are application/json whatever was asked for: {}", ["application/a2a+json", "application/json", "text/html"])
def _(accept):
    r = Client(server("bench"), REST1).raw("GET", "/tasks/nobody", None, [("Accept", accept)])
    same((r.status, r.type), (404, "application/json"), "answer")


@each("rest_media_type {}", [("json always gives application/json", "json", "application/a2a+json", "application/json"),
                            ("a2a always gives application/a2a+json", "a2a", "*/*", "application/a2a+json")])
def _(media, accept, want):
    needs_ours("a switch")
    c = Client(server("bench", config=settings(media=media)), REST1)
    r = c.raw("POST", "/message:send", json_bytes({"message": message("echo hi")}), [("Content-Type", "application/json"), ("Accept", accept)])
    same((r.status, r.type), (200, want), "answer")


@each("streams are text/event-stream: {}", ALL)
def _(wire):
    with Client(server("bench"), wire).stream("chunks 1 x") as s:
        same(s.stream.response.type, "text/event-stream", "content type")
        s.rest()


@each("acceptedOutputModes of which the agent gives none is ContentTypeNotSupported: {}", ONE)
def _(wire):
    needs_ours("the SDK does not look at them")
    c = Client(server(None, config=settings(agents=[agent("tck", card={"defaultOutputModes": ["text/plain", "image/png", "audio/*"]})])), wire)
    for modes, good in ([], True), (["text/plain"], True), (["image/*", "x/y"], True), (["*/*"], True), (["audio/ogg"], True), (["text/html"], False):
        a = c.send(id=tck("complete-task"), config={"acceptedOutputModes": modes})
        check(a.ok, (modes, a)) if good else a.expect("ContentTypeNotSupported")


# ---- extensions (5.13) -------------------------------------------------------------------------------------------------------

KNOWN = [{"uri": "urn:example:a", "description": "a"}, {"uri": "urn:example:b", "description": "b"}]


def extended(wire):
    return Client(server("tck", config=settings(extensions=KNOWN)), wire)


def activated(r, wire):
    value = r.get("a2a-extensions" if wire.is_1 else "x-a2a-extensions")
    return [] if not value else [v.strip() for v in value.split(",")]


@each("the known ones of the listed extensions are activated and named in one header: {}", [(f"{what}, {w}", w, value, want) for w in ALL for what, value, want in
      [("one", ["urn:example:a"], ["urn:example:a"]), ("both", ["urn:example:b,urn:example:a"], ["urn:example:a", "urn:example:b"]), ("unknown ones are ignored", ["urn:example:z , urn:example:a,,"], ["urn:example:a"]),
       ("twice is once", ["urn:example:a, urn:example:a"], ["urn:example:a"]), ("two header lines", ["urn:example:a", "urn:example:b"], ["urn:example:a", "urn:example:b"]), ("another version is not substituted", ["urn:example:a/v2"], []), ("none", [], [])]])
def _(wire, values, want):
    name = "A2A-Extensions" if wire.is_1 else "X-A2A-Extensions"
    a = extended(wire).send(id=tck("complete-task"), headers=[(name, v) for v in values])
    check(a.ok, a)
    same(sorted(activated(a.response, wire)), want, "activated")


@test("0.3 also reads the header's name of 1.0")
def _():
    a = extended(RPC03).send(id=tck("complete-task"), headers=[("A2A-Extensions", "urn:example:a")])
    check(a.ok, a)
    same(activated(a.response, RPC03), ["urn:example:a"], "activated")


@each("activated extensions are named on streams too, {}", ALL)
def _(wire):
    name = "A2A-Extensions" if wire.is_1 else "X-A2A-Extensions"
    with extended(wire).stream(id=tck("complete-task"), headers=[(name, "urn:example:a")]) as s:
        same(activated(s.stream.response, wire), ["urn:example:a"], "activated")


@each("activated extensions are named on errors too, {}", ONE)
def _(wire):
    needs_ours("not in the specification")
    a = extended(wire).get("nobody", headers=[("A2A-Extensions", "urn:example:a")]).expect("TaskNotFound")
    same(activated(a.response, wire), ["urn:example:a"], "activated")


@each("an extensions header of nonsense never makes a 5xx, {}", ALL)
def _(wire):
    for value in (",,,", "x" * 4000, "urn:a b c", '"', "%%%"):
        a = Client(server("tck"), wire).send(id=tck("complete-task"), headers=[("A2A-Extensions", value)])
        check(a.response.status < 500, a)


@test("message.extensions and metadata under an extension's URI are kept")
def _():
    c = extended(RPC1)
    m = message(id=tck("input-required"), extensions=["urn:example:a"], metadata={"urn:example:a": {"x": [1, None]}})
    t = c.call("send", {"message": m}, headers=[("A2A-Extensions", "urn:example:a")]).task
    kept = c.get(t["id"]).task["history"][0]
    same(kept["extensions"], ["urn:example:a"], "extensions")
    same(kept["metadata"]["urn:example:a"], {"x": [1, None]}, "metadata")


# ---- all wires give the same (BIND-EQUIV) ------------------------------------------------------------------------------------

@test("the four wires give equivalent results for the same calls")
def _():
    s, seen = server("tck"), {}
    for w in ALL:
        c = Client(s, w)
        t = completed(c)
        e = c.stream(id=tck("stream-001")).rest()
        a = c.send(id=tck("artifact-data")).task
        seen[w.name] = [t["status"]["state"], t["status"]["message"]["parts"], [(x.kind, x.state) for x in e], [x["parts"] for x in a["artifacts"]],
                        c.get("nobody").code, c.cancel(t["id"]).code]
    first = seen.pop(ALL[0].name)
    for name, value in seen.items():
        same(value, first, name)
