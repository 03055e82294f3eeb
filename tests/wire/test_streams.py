"""Streams (5.6), artifact events (5.7), SSE framing (6). Every event of every stream is checked by lib."""
import os
import time

from lib.a2a import ALL, RPC, RPC03, RPC1, Client, Events, artifact_texts, fold, new_id, text_of
from lib.agents import DEMO_AUTH, tck, waiting
from lib.http import Conn
from lib.server import agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test


def client(wire, agent="tck"):
    return Client(server(agent), wire)


# ---- table 5.6 -------------------------------------------------------------------------------------------------------------

@each("a Message stream is exactly one message, then the end: {} [R002-30 R004-21 R004-22]", [(f"{a}, {w}", w, a) for w in ALL for a in ("hello", "bench", "tck")])
def _(wire, agent):
    c = client(wire, agent)
    events = c.stream("echo hi", id=tck("message-response")).rest()
    same([e.kind for e in events], ["message"], "events")
    m = events[0].body
    same(m["role"], "ROLE_AGENT", "role")
    check(m["contextId"] and text_of(m), m)


@each("a task stream: a submitted task, working, artifacts, completed, then the end: {} [R002-08 R002-30 R002-31]", ALL)
def _(wire):
    events = client(wire, "bench").stream("chunks 5 x").rest()
    same([(e.kind, e.state and e.state[11:]) for e in events],
         [("task", "SUBMITTED"), ("statusUpdate", "WORKING")] + [("artifactUpdate", None)] * 5 + [("statusUpdate", "COMPLETED")], "events")


@each("the first event carries the caller's message, ids filled in: {} [R002-04]", ALL)
def _(wire):
    with client(wire, "bench").stream("chunks 1 hello there", id=(id := new_id())) as s:
        t = s.next().body
    same([(m["messageId"], text_of(m), m["taskId"], m["contextId"]) for m in t["history"]],
         [(id, "chunks 1 hello there", t["id"], t["contextId"])], "history")


@each("0.3: final is there on every status-update and only true at the end, {} [R002-06]", [RPC03])
def _(wire):
    finals = [e.payload["final"] for e in client(wire, "bench").stream("chunks 2 x").rest() if e.kind == "statusUpdate"]
    same(finals, [False, True], "finals")


@test("1.0 has no final, the stream ends [R002-06]")
def _():
    events = client(RPC1, "bench").stream("chunks 2 x").rest()
    check(all("final" not in str(e.payload) for e in events), events)


@each("chunks: first append false, then true, exactly one lastChunk, one artifactId: {} [R002-13]", ALL)
def _(wire):
    chunks = [e.body for e in client(wire, "bench").stream("chunks 4 x").rest() if e.kind == "artifactUpdate"]
    same([c.get("append", False) for c in chunks], [False, True, True, True], "append")
    same([c.get("lastChunk", False) for c in chunks], [False, False, False, True], "lastChunk")
    same(len({c["artifact"]["artifactId"] for c in chunks}), 1, "artifact ids")


@each("a canceled stream of text still gets its lastChunk: {} [R002-13]", ALL)
def _(wire):
    needs_ours("decided for Dragoman's agents")
    c = client(wire, "demo")
    with c.stream("slow 600") as s:  # one word per second: it cannot be over before we cancel
        id = s.next().body["id"]
        s.until(lambda e: e.kind == "artifactUpdate")
        a = c.cancel(id)
        check(a.ok, a)
        events = s.rest()
    same(events[-1].state, "TASK_STATE_CANCELED", "last state")
    same([e.body.get("lastChunk", False) for e in events if e.kind == "artifactUpdate"].count(True), 1, "lastChunks")


@each("the fold of the stream is the Task of GetTask: {}", ALL)
def _(wire):
    c = client(wire, "bench")
    folded = fold(c.stream("chunks 7 x").rest())
    got = c.get(folded["id"]).task
    for member in ("id", "contextId", "status", "artifacts"):
        same(got[member], folded[member], member)


@each("every open stream of a task gets every event, same order, same content: {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    streams = [c.subscribe(t["id"]) for _ in range(4)]
    for s in streams:
        s.next()
    c.send(id=tck("stream-001"), task=t["id"])
    seen = [[e.payload for e in s.rest()[1:]] for s in streams]
    check(seen[0] and all(x == seen[0] for x in seen), seen)


@test("streams of 1.0 and 0.3, JSON-RPC and REST, of one task say the same, each its own way")
def _():
    s = server("tck")
    t = waiting(Client(s, RPC1))
    streams = [Client(s, w).subscribe(t["id"]) for w in ALL]
    for x in streams:
        x.next()
    Client(s, RPC1).send(id=tck("stream-001"), task=t["id"])
    seen = [[(e.kind, e.state, e.id) for e in x.rest()[1:]] for x in streams]
    check(seen[0] and all(x == seen[0] for x in seen), seen)


@each("closing one stream affects neither the task nor the others: {}", [(f"{how}, {w}", w, how) for w in ALL for how in ("close", "reset")])
def _(wire, how):
    c = client(wire)
    t = waiting(c)
    streams = [c.subscribe(t["id"]) for _ in range(3)]
    for s in streams:
        s.next()
    getattr(streams[0].stream.conn, how)()
    time.sleep(0.1)
    c.send(id=tck("complete-task"), task=t["id"])
    for s in streams[1:]:
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("a sender who leaves its stream does not end the task: {} [R004-20]", ALL)
def _(wire):
    c = client(wire, "bench")
    with c.stream("hold 1 x") as s:
        id = s.next().body["id"]
    with Client(c.server, RPC1).subscribe(id) as s:
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("a half-closed connection still gets its stream: {}", ALL)
def _(wire):
    import socket
    c = client(wire, "bench")
    s = c.stream("hold 1 x")
    s.stream.conn.socket.shutdown(socket.SHUT_WR)
    same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("the stream ends after a terminal state, the connection is good for another call: {}", ALL)
def _(wire):
    c = client(wire, "bench")
    s = c.stream("chunks 2 x")
    s.rest()
    conn = s.stream.conn
    _, method, target, body, headers = c.prepare("send", c.params("echo again"))
    conn.request(method, target, body, headers)
    same(conn.response().status in (200, 201), True, "second answer")
    conn.close()


@each("a stream ends at input-required: {}", ALL)
def _(wire):
    events = client(wire).stream(id=tck("input-required")).rest()
    same(events[-1].state, "TASK_STATE_INPUT_REQUIRED", "last state")


@each("0.3: input-required is final, {} [R002-06]", [RPC03])
def _(wire):
    same(client(wire).stream(id=tck("input-required")).rest()[-1].payload["final"], True, "final")


@each("a subscription stays open at input-required and gets the next turn: {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        same(s.next().body["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "snapshot")
        check(s.stream.silent(0.5), "it stays open")
        c.send(id=tck("complete-task"), task=t["id"])
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("a subscription survives several turns: {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        s.next()
        for _ in range(3):
            c.send(id=tck("input-required"), task=t["id"])
            s.until("INPUT_REQUIRED")
        c.send(id=tck("complete-task"), task=t["id"])
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("streams stay open at auth-required: {}", ALL)
def _(wire):
    needs_ours("the SDK ends its streams there")
    c = client(wire, "demo")
    with c.stream(DEMO_AUTH) as s:
        s.until("AUTH_REQUIRED")
        id = s.seen[0].body["id"]
        check(s.stream.silent(0.5), "it stays open")
        c.send("here it is", task=id)
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("a follow-up by stream begins with the current task: {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    events = c.stream("the answer", id=tck("complete-task"), task=t["id"]).rest()
    same((events[0].kind, events[0].body["id"]), ("task", t["id"]), "first event")
    same(events[-1].state, "TASK_STATE_COMPLETED", "last state")
    check("the answer" in [text_of(m) for m in events[0].body["history"]], events[0])


@each("the stream of an answer does not start in the interrupted state: {}", [(f"{w}, {state}", w, state) for w in ALL for state in ("input-required", "auth-required")])
def _(wire, state):
    needs_ours("decided for Dragoman: clients close a stream at an interrupted state")
    c = client(wire, "demo")
    t = c.send("ask" if state == "input-required" else DEMO_AUTH).task
    with c.stream("Ann", task=t["id"]) as s:
        first = s.next()
        same((first.kind, first.state), ("task", "TASK_STATE_WORKING"), "first event")
        check("Ann" in [text_of(m) for m in first.body["history"]], first)
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@each("a blocking answer to a question is not the question: {}", ALL)
def _(wire):
    c = client(wire, "demo")
    t = c.send("ask").task
    same(c.send("Ann", task=t["id"]).state, "TASK_STATE_COMPLETED", "state")


@test("a resumed run adds no second task event")
def _():
    needs_ours("the stand-in has to")
    c = client(RPC1)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        s.next()
        c.stream(id=tck("complete-task"), task=t["id"]).rest()
        check(all(e.kind != "task" for e in s.rest()[1:]), s.seen)


# waits in the middle for the file that the message names
GATED = 'read -r gate; seq 1 300; until [ -e "$gate" ]; do sleep 0.05; done; seq 301 600'


@each("subscribe: the snapshot holds what happened before, events go on from there: {}", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    c = Client(server(None, config=settings(agents=[agent("exec", settings={"command": GATED, "input": "text", "output": "text"})])), wire)
    gate = os.path.join(folder(), "gate")
    with c.stream(gate) as first:
        id = first.next().body["id"]
        first.until(lambda e: e.kind == "artifactUpdate")
        with c.subscribe(id) as second:
            before = second.next().body
            open(gate, "w").close()
            one, two = fold(first.rest()), fold(second.rest())
    check(len(artifact_texts(before)[0]) < len(artifact_texts(two)[0]), "the snapshot holds all of it")
    same("".join(p["text"] for p in two["artifacts"][0]["parts"]), "\n".join(map(str, range(1, 601))), "text")
    same(two["artifacts"], one["artifacts"], "artifacts")
    same(two["status"], one["status"], "status")


@each("subscribe to a task that is at work in silence gives the snapshot at once: {}", ALL)
def _(wire):
    c = client(wire, "bench")
    t = c.send("hold 300 x", config={"returnImmediately": True}).task
    with c.subscribe(t["id"]) as s:
        same(s.next().body["id"], t["id"], "id")
    c.cancel(t["id"])


# ---- events arrive as they happen --------------------------------------------------------------------------------------------

@each("events are sent as they come, not at the end: {} [R003-04]", ALL)
def _(wire):
    c = client(wire, "bench")
    with c.stream("hold 300 x") as s:
        s.until("WORKING")
        same(c.get(s.seen[0].body["id"]).state, "TASK_STATE_WORKING", "the task's state meanwhile")
        c.cancel(s.seen[0].body["id"])
        same(s.rest()[-1].state, "TASK_STATE_CANCELED", "last state")


@each("send and stream take the same path: same states, same artifacts: {} [R003-01]", ALL)
def _(wire):
    c = client(wire, "bench")
    sent = c.send("chunks 6 same").task
    streamed = fold(c.stream("chunks 6 same").rest())
    same([[a["parts"], a.get("name")] for a in streamed["artifacts"]], [[a["parts"], a.get("name")] for a in sent["artifacts"]], "artifacts")
    same((streamed["status"]["state"], text_of(streamed["status"].get("message"))), (sent["status"]["state"], text_of(sent["status"].get("message"))), "status")


# ---- framing (6.1, 6.2) ---------------------------------------------------------------------------------------------------------

@each("the head of a stream: {}", ALL)
def _(wire):
    with client(wire, "bench").stream("chunks 1 x") as s:
        r = s.stream.response
        same((r.type, r.get("transfer-encoding"), r.get("content-length")), ("text/event-stream", "chunked", None), "type and framing")
        same(r.get("x-accel-buffering"), "no", "X-Accel-Buffering")


@each("every frame has an id, a growing number, no retry, no event line: {} [R002-24]", ALL)
def _(wire):
    needs_ours("the SDK writes no ids")
    events = client(wire, "bench").stream("chunks 20 x").rest()
    ids = [int(e.id) for e in events]
    same(ids, list(range(ids[0], ids[0] + len(ids))), "ids")
    same(ids[0], 1, "the first of a new task")


@each("the frames' JSON-RPC id is the request's: {} [R002-24]", [(f"{what}, {w}", w, id) for w in RPC for what, id in (("text", "a-b"), ("number", 12345678901), ("zero", 0))])
def _(wire, id):
    c = client(wire, "bench")
    with c.open("stream", c.params("chunks 2 x"), id=id) as s:
        check(len(s.rest()) == 5, s.seen)


@each("a keep-alive comment comes in the silence: {}", [RPC1])
def _(wire):
    needs_ours("the SDK is silent")
    c = client(wire, "bench")
    with c.stream("hold 300 x") as s:
        id = s.next().body["id"]
        s.until("WORKING")
        soon(lambda: not s.stream.silent(1) or s.stream.parser.comments, "no comment in 60 s", 60)
        check(s.stream.parser.comments > 0, "a frame, not a comment")
        c.cancel(id)


@each("text of every kind survives the framing: {}", ALL)
def _(wire):
    text = "line\nline\r\nline\u2028 data: x\n\nid: 7\n😀 \u0000 \\ \" end"
    events = client(wire, "bench").stream("echo " + text).rest()
    check(text_of(events[0].body).endswith(text), repr(text_of(events[0].body)))


@each("HTTP/1.0 clients get a stream that ends with the connection: {}", [RPC1])
def _(wire):
    needs_ours("not required of other servers")
    c = client(wire, "bench")
    _, method, target, body, headers = c.prepare("stream", c.params("chunks 2 x"))
    conn = Conn(c.server.address)
    lines = [f"{method} {target} HTTP/1.0", "Host: localhost"] + [f"{n}: {v}" for n, v in headers] + [f"Content-Length: {len(body)}"]
    conn.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    data = b""
    while piece := conn.socket.recv(65536):
        data += piece
    check(data.startswith(b"HTTP/1.") and b" 200 " in data[:20], data[:100])
    check(b"chunked" not in data.split(b"\r\n\r\n")[0].lower() and data.rstrip().endswith(b"}"), data[-200:])


@each("a stream that is sent again with Last-Event-ID goes on behind it: {}", ALL)
def _(wire):
    needs_ours("the SDK knows no cursors")
    c = client(wire, "bench")
    params = c.params("chunks 5 x")
    first = c.open("stream", params).rest()
    again = c.open("stream", params, headers=[("Last-Event-ID", first[3].id)]).rest()
    same([(e.id, e.payload if not wire.is_rpc else e.kind) for e in again], [(e.id, e.payload if not wire.is_rpc else e.kind) for e in first[4:]], "the rest")


# ---- errors within streams (6.3) ---------------------------------------------------------------------------------------------------

@each("an agent that fails is no stream error: FAILED, then the end: {} [R002-10]", ALL)
def _(wire):
    c = client(wire, "demo")
    events = c.stream("fail").rest()
    same(events[-1].state, "TASK_STATE_FAILED", "last state")
    check(isinstance(events[-1].body["metadata"]["error"], str), events[-1])
    same(c.get(events[0].body["id"]).task["metadata"]["error"], events[-1].body["metadata"]["error"], "the Task's")


@each("subscribe with nonsense in Last-Event-ID gets a snapshot: {}", [(f"{v!r}, {w}", w, v) for w in ALL for v in ("abc", "-1", "99999999999999999999", "1.5", "")])
def _(wire, last):
    c = client(wire)
    t = waiting(c)
    with c.open("subscribe", {"id": t["id"]}, headers=[("Last-Event-ID", last)]) as s:
        check(isinstance(s, Events), s)
        same(s.next().kind, "task", "first event")
