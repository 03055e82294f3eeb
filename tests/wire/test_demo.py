"""The demo agent's scripts and the hello agent: the same text however it is asked for (004)."""
import os
import select

from lib.a2a import ALL, INTERRUPTED, RPC, RPC1, TERMINAL, Client, artifact_texts, fold, task_text, text_of
from lib.agents import (DEMO_ALL, DEMO_ASK, DEMO_AUTH, DEMO_DATA, DEMO_END_WELL, DEMO_FAIL, DEMO_FILE, DEMO_MORE, DEMO_REJECT, DEMO_SLOW, DEMO_TEXT, tck)
from lib.http import Conn, ask
from lib.server import IS_STANDIN, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test


def client(wire, type="demo", pace=0):
    """pace: what the demo's pauses are multiplied by."""
    if type == "demo" and not IS_STANDIN:
        return Client(server(None, config=settings(agents=[agent("demo", settings={"pace": pace})])), wire)
    return Client(server(type), wire)


def shown(task):
    """What a client shows of a task: its artifacts' parts and the text of its status."""
    return [[p for p in a["parts"]] for a in task.get("artifacts", [])], task_text(task), task["status"]["state"]


@each("non-streamed == streamed == GetTask: {} [R004-17]", [(f"{word}, {w}", w, word) for w in ALL for word in DEMO_ALL])
def _(wire, word):
    c = client(wire)
    events = c.stream(word)
    if word == DEMO_AUTH:
        events.until("AUTH_REQUIRED")
        events.close()
        streamed = fold(events.seen)
    else:
        streamed = fold(events.rest())
    sent = c.send(word).task
    check(sent["status"]["state"] in TERMINAL | INTERRUPTED, sent)
    same(shown(streamed), shown(sent), "stream and send")
    same(shown(c.get(sent["id"]).task), shown(sent), "GetTask and send")
    same(shown(c.get(streamed["id"]).task), shown(streamed), "GetTask and stream")


@each("non-streamed == streamed == GetTask: {} [R004-17]", [(f"{word}, {w}", w, word) for w in ALL for word in DEMO_MORE])
def _(wire, word):
    needs_ours("a script of Dragoman's demo")
    c = client(wire)
    streamed, sent = fold(c.stream(word).rest()), c.send(word).task
    same(shown(streamed), shown(sent), "stream and send")
    same(shown(c.get(sent["id"]).task), shown(sent), "GetTask and send")
    if sent["status"]["state"] == "TASK_STATE_COMPLETED":
        same("".join(artifact_texts(sent)), task_text(sent), "artifacts and the final text")


@each("the text in completed is the concatenated text of the stream: {} [R002-09 R004-11 R004-15]", [(f"{word}, {w}", w, word) for w in ALL for word in (DEMO_TEXT, DEMO_SLOW)])
def _(wire, word):
    events = client(wire).stream(word).rest()
    text = "".join(text_of(e.body["artifact"]) for e in events if e.kind == "artifactUpdate")
    check(text, "no streamed text")
    same(task_text(events[-1].body), text, "the text of completed")
    m = events[-1].body["status"]["message"]
    same((m["role"], len(m["parts"])), ("ROLE_AGENT", 1), "role and parts")


@each("a working status has a state, a timestamp and no message: {} [R004-06]", [(f"{word}, {w}", w, word) for w in ALL for word in (DEMO_TEXT, DEMO_DATA)])
def _(wire, word):
    working = [e for e in client(wire).stream(word).rest() if e.kind == "statusUpdate" and e.state == "TASK_STATE_WORKING"]
    check(working, "a working status")
    for e in working:
        same(set(e.body["status"]), {"state", "timestamp"}, "members of the status")
        check(wire.is_1 or e.payload.get("final", e.body.get("final", False)) is False, e)


@each("no working status has a text part: {} [R004-24]", [(f"{word}, {w}", w, word) for w in RPC for word in DEMO_END_WELL])
def _(wire, word):
    for e in client(wire).stream(word).rest():
        if e.state == "TASK_STATE_WORKING" and e.kind == "statusUpdate":
            check(all("text" not in p for p in e.body["status"].get("message", {}).get("parts", [])), e)


@each("status indicators are data parts with loading: {} [R004-07]", ALL)
def _(wire):
    events = client(wire).stream(DEMO_SLOW).rest()
    found = [p for e in events if e.kind == "statusUpdate" and e.state == "TASK_STATE_WORKING" for p in e.body["status"].get("message", {}).get("parts", [])]
    check(len(found) >= 2, "no indicators")
    for p in found:
        d = p["data"]
        same((d["type"], d["displayAs"], bool(d["text"])), ("status-indicator", "loading", True), "indicator")


@each("canceled at any point: after {} events [R004-20]", [(str(n), n) for n in (1, 2, 3, 4)])
def _(n):
    c = client(RPC1, pace=4)  # 8 seconds are left behind the fourth
    with c.stream(DEMO_SLOW) as s:
        id = [s.next() for _ in range(n)][0].body["id"]
        same(c.cancel(id).state, "TASK_STATE_CANCELED", "state")
        same(s.rest()[-1].state, "TASK_STATE_CANCELED", "the stream's end")


@each("a file artifact: {} [R002-26]", ALL)
def _(wire):
    t = client(wire).send(DEMO_FILE).task
    files = [p for a in t["artifacts"] for p in a["parts"] if "raw" in p or "url" in p]
    check(files and files[0].get("filename") and files[0].get("mediaType"), t["artifacts"])


@each("a data artifact: {} [R002-25]", ALL)
def _(wire):
    t = client(wire).send(DEMO_DATA).task
    check([p for a in t["artifacts"] for p in a["parts"] if isinstance(p.get("data"), dict)], t["artifacts"])


@each("input-required, then an answer, then completed: {} [R002-07 R004-20]", ALL)
def _(wire):
    c = client(wire)
    t = c.send(DEMO_ASK).task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "state")
    check(task_text(t), "it says what it needs")
    t = c.send("the answer", task=t["id"]).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "state")


@each("auth-required with words about it, goes on with a message: {} [R002-07]", ALL)
def _(wire):
    c = client(wire)
    t = c.send(DEMO_AUTH).task
    same(t["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "state")
    check(task_text(t), "it says what it needs")
    same(c.send("logged in", task=t["id"]).state, "TASK_STATE_COMPLETED", "state")


@each("failed with metadata.error: {} [R002-07 R002-10]", ALL)
def _(wire):
    t = client(wire).send(DEMO_FAIL).task
    same(t["status"]["state"], "TASK_STATE_FAILED", "state")
    check(isinstance(t["metadata"]["error"], str) and t["metadata"]["error"], t)


@each("rejected: {} [R002-07]", ALL)
def _(wire):
    same(client(wire).send(DEMO_REJECT).state, "TASK_STATE_REJECTED", "state")


@each("help lists the scripts: {}", RPC)
def _(wire):
    a = client(wire).send("help")
    text = text_of(a.message) if "message" in a.value else task_text(a.task) + "".join(artifact_texts(a.task))
    for word in DEMO_ALL:
        check(word in text, f"{word} is not in {text!r}")


@each("something it has no script for is answered, too: {}", RPC)
def _(wire):
    a = client(wire).send("what can you do?")
    check("message" in a.value or a.state in TERMINAL, a)


@each("all events of a task carry the same ids: {} [R004-16]", [(w.name, w, DEMO_TEXT) for w in ALL])
def _(wire, word):
    events = client(wire).stream(word).rest()
    same({(e.body.get("taskId", e.body.get("id")), e.body["contextId"]) for e in events}, {(events[0].body["id"], events[0].body["contextId"])}, "ids")


# ---- hello ------------------------------------------------------------------------------------------------------------------------

@each("hello answers with one Message, nothing else: {} [R004-21 R004-22 R004-23]", ALL)
def _(wire):
    c = client(wire, "hello")
    m = c.send("hi").message
    same(m["role"], "ROLE_AGENT", "role")
    check(text_of(m), m)
    same([text_of(e.body) for e in c.stream("hi").rest()], [text_of(m)], "the stream's")


# ---- settings of every agent ----------------------------------------------------------------------------------------------------------

def configured(**how):
    needs_ours("settings of Dragoman's agents")
    return Client(server(None, config=settings(agents=[agent("demo", **how)])), RPC1)


# of every agent type: what would be a Message and what would be a Task, if it has both
SAY = '{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}'
DO = '{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}}}'
TYPES = {"hello": [("hi", None)], "demo": [("stream", None)], "bench": [("echo x", None), ("chunks 1 x", None)],
         "tck": [("x", "message-response"), ("x", "complete-task")], "exec": [(SAY, None), (DO, None)]}


@each("every agent type has reply: {} [R004-19]", [(f"{reply}, {type}, {text[:12]}{id or ''}", reply, type, text, id) for type, says in TYPES.items()
      for text, id in says for reply in ("message", "task")])
def _(reply, type, text, id):
    needs_ours("a setting of ours")
    more = {"settings": {"command": ["/bin/cat"], "input": "text"}} if type == "exec" else {}
    c = Client(server(None, config=settings(agents=[agent(type, reply=reply, **more)])), RPC1)
    how = {"id": tck(id)} if id else {}
    same(list(c.send(text, **how).value), [reply], "the answer")


@test("nothing is stored or sent before an agent's first event [R004-19]")
def _():
    needs_ours("needs the exec agent")
    program = ["/bin/sh", "-c", 'read -r gate; : > "$gate.started"; until [ -e "$gate" ]; do sleep 0.05; done; echo \'' + SAY + "'"]
    for reply in ("auto", "task", "message"):
        s = server(None, config=settings(agents=[agent("exec", settings={"command": program, "input": "text"}, reply=reply)]))
        c, gate = Client(s, RPC1), os.path.join(folder(), "gate")
        before = c.list().value["totalSize"]
        with Conn(s.address) as conn:
            _, method, path, body, headers = c.prepare("stream", c.params(gate))
            conn.request(method, path, body, headers + [("Accept", "text/event-stream")])
            soon(lambda: os.path.exists(gate + ".started"), "the agent does not start", 30)
            same(c.list().value["totalSize"], before, f"tasks, reply: {reply}")
            same(select.select([conn.socket], [], [], 0)[0], [], f"bytes of an answer, reply: {reply}")
            open(gate, "w").close()
            same(conn.head().status, 200, "status")


@test("reply: message makes a Message of what would be a Task [R004-19]")
def _():
    a = configured(reply="message").send(DEMO_TEXT)
    check(text_of(a.message), a)


@test("reply: task makes a Task of what would be a Message [R004-19]")
def _():
    needs_ours("settings of Dragoman's agents")
    c = Client(server(None, config=settings(agents=[agent("hello", reply="task")])), RPC1)
    t = c.send("hi").task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "state")
    check(task_text(t), t)


@test("final_text: omit leaves the text out of completed [R004-11]")
def _():
    c = configured(final_text="omit")
    t = c.send(DEMO_TEXT).task
    check("message" not in t["status"] and "".join(artifact_texts(t)), t)


@test("working_message makes a status indicator [R004-07]")
def _():
    events = configured(working_message="One moment").stream(DEMO_TEXT).rest()
    parts = [p for e in events if e.state == "TASK_STATE_WORKING" for p in e.body["status"].get("message", {}).get("parts", [])]
    check({"type": "status-indicator", "text": "One moment", "displayAs": "loading"} in [p.get("data") for p in parts], parts)


@test("the demo's card lists the media types that its script `files` accepts")
def _():
    needs_ours("a script of Dragoman's demo")
    modes = ask(server("demo").address, "GET", "/.well-known/agent-card.json").json["defaultInputModes"]
    check("text/plain" in modes and "image/png" in modes and "*/*" in modes, modes)


@each("every status of a stream, and the Task, have a timestamp: {} [R004-09]", [(f"{word}, {w}", w, word) for w in ALL for word in (DEMO_TEXT, DEMO_ASK, DEMO_FAIL)])
def _(wire, word):
    needs_ours("the stand-in's clock is the SDK's")
    c = client(wire)
    events = c.stream(word).rest()
    same(events[0].kind, "task", "the first event")
    statuses = [e.body["status"] for e in events if e.kind in ("task", "statusUpdate")]
    check(len(statuses) > 1 and all(s.get("timestamp") for s in statuses), statuses)
    check(c.get(events[0].body["id"]).task["status"].get("timestamp"), "the Task")
