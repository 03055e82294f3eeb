"""/debug/tasks/{id}: a task record by record, as columns of every protocol, with findings and the Task after each record."""
import json
import os
import socket
import subprocess
import threading
import urllib.parse

from lib.a2a import REST1, RPC1, Client, message, new_id
from lib.agents import completed, tck, waiting
from lib.fronts import chat_body, run_input, ui_body
from lib.http import Closed, Conn, Stream, ask
from lib.server import DRAGOMAN, TOKENS, Server, agent, folder, is_sanitized, needs_ours, needs_sqlite, server, settings
from lib.tap import check, each, same, soon, test

OPERATOR = "operator-secret"
FORMATS = ["a2a-1.0", "a2a-0.3", "ag-ui", "openai-chat", "openai-responses", "ai-sdk"]
JSON = [("Content-Type", "application/json")]
V10, V03 = [("A2A-Version", "1.0")], [("A2A-Version", "0.3")]


def demo(**more):
    return server(None, config=settings(agents=[agent("demo", settings={"pace": 0})], **more))


def operated(inspect="operator", **more):
    config = settings(tokens=True, agents=[agent("demo", settings={"pace": 0})])
    config["tokens"].append({"token": OPERATOR, "principal": "root", "role": "operator"})
    config.update(inspect=inspect, **more)
    return server(None, config=config)


def bearer(token):
    return [("Authorization", f"Bearer {token}")] if token else []


def get(s, path, token=None, headers=()):
    return ask(s.address, "GET", path, None, [*bearer(token), *headers])


def value(s, path, token=None):
    r = get(s, path, token)
    same((r.status, r.type), (200, "application/json"), r)
    return r.json


def lines(r):
    same((r.status, r.type), (200, "application/x-ndjson"), r)
    return [json.loads(line) for line in r.body.decode().split("\n")[:-1]]


def column(s, task, format, query=""):
    got = lines(get(s, f"/debug/tasks/{task}/columns/{format}{query}"))
    same([k for k in got if k["seq"] is not None and "losses" not in k], [], "lines without losses")
    same([k["seq"] for k in got].index(None), len(got) - 1, "the end is the last line")
    seqs = [k["seq"] for k in got[:-1]]
    same(seqs, list(range(seqs[0], seqs[0] + len(seqs))), "a line per record")
    return got


def frames(got):
    return "".join(line["frames"] for line in got)


def raw(s, method, path, body=None, headers=()):
    """The bytes of a streamed answer, without keep-alives."""
    r = ask(s.address, method, path, body, [*(JSON if body is not None else []), *headers])
    same((r.status, r.type), (200, "text/event-stream"), r)
    return r.body.decode().replace(": ping\n\n", "")


def newest(s):
    r = get(s, "/tasks?pageSize=1", headers=V10)
    return r.json["tasks"][0]["id"]


def records(s, task, query=""):
    return lines(get(s, f"/debug/tasks/{task}/records?follow=0{query}"))


# ---- the stream of the protocol that a turn came by ------------------------------------------------------------------------

def user(text):
    return {"id": new_id("u"), "role": "user", "content": text}


def by_ag_ui(s, text, thread, more):
    if text == "old client":
        more = {"protocolVersion": None, **more}
    body = {k: v for k, v in run_input(text, thread, **more).items() if v is not None}
    return raw(s, "POST", "/ag-ui", body)


def by_chat(s, text, thread, more):
    return raw(s, "POST", "/v1/chat/completions", chat_body(text, stream=True, **more), [("X-A2A-Context-Id", thread)])


def by_responses(s, text, thread, more):
    return raw(s, "POST", "/v1/responses", {"model": "demo", "input": text, "stream": True, **more}, [("X-A2A-Context-Id", thread)])


def by_ai_sdk(s, text, thread, more):
    return raw(s, "POST", "/ai-sdk", ui_body(text, thread, **more))


def by_rpc(s, text, thread, more):
    body = {"jsonrpc": "2.0", "id": "call-7", "method": "SendStreamingMessage", "params": {"message": message(text, context=thread, **more)}}
    return raw(s, "POST", "/", body, V10)


def by_rpc_03(s, text, thread, more):
    said = {"kind": "message", "messageId": new_id(), "role": "user", "contextId": thread, "parts": [{"kind": "text", "text": text}]}
    if "task" in more:
        said["taskId"] = more["task"]
    return raw(s, "POST", "/", {"jsonrpc": "2.0", "id": 7, "method": "message/stream", "params": {"message": said}}, V03)


def by_rest(s, text, thread, more):
    return raw(s, "POST", "/message:stream", {"message": message(text, context=thread, **more)}, V10)


def by_rest_03(s, text, thread, more):
    said = {"messageId": new_id(), "role": "ROLE_USER", "contextId": thread, "content": [{"text": text}]}
    if "task" in more:
        said["taskId"] = more["task"]
    return raw(s, "POST", "/v1/message:stream", {"message": said})


TEXTS = ["stream", "status", "file", "data", "ask", "fail", "break", "reject", "unicode", "tools", "parallel-tools", "client-tool", "state",
         "reasoning", "interrupt", "usage", "subagent"]
RPC_ID = "?id=" + urllib.parse.quote('"call-7"')
WAYS = {
    "ag-ui": (by_ag_ui, "ag-ui", "?"),
    "chat": (by_chat, "openai-chat", "?"),
    "responses": (by_responses, "openai-responses", "?"),
    "ai-sdk": (by_ai_sdk, "ai-sdk", "?"),
    "a2a 1.0, JSON-RPC": (by_rpc, "a2a-1.0", RPC_ID),
    "a2a 0.3, JSON-RPC": (by_rpc_03, "a2a-0.3", "?id=7"),
    "a2a 1.0, REST": (by_rest, "a2a-1.0", "?binding=rest"),
    "a2a 0.3, REST": (by_rest_03, "a2a-0.3", "?binding=rest"),
}


@each("the column of the protocol that a turn came by is what the client got: {}", [(name, *way) for name, way in WAYS.items()], timeout=300)
def _(send, format, query):
    needs_ours("needs the demo agent")
    s = demo()
    for text in TEXTS:
        live = send(s, text, new_id("thread"), {})
        task = newest(s)
        same(frames(column(s, task, format, query)), live, text)
        about = value(s, f"/debug/tasks/{task}")
        check(format in about["turns"][0]["replays"], about)


@each("the same of a turn that answers a question: {}", [(name, *way) for name, way in WAYS.items()])
def _(send, format, query):
    needs_ours("needs the demo agent")
    s = demo()
    thread = new_id("thread")
    send(s, "ask", thread, {})
    task = newest(s)
    live = send(s, "Ada", thread, {"task": task} if "a2a" in format else {})
    same(newest(s), task, "the task that asked")
    same(frames(column(s, task, format, query + "&turn=2")), live, "the second turn")
    same(frames(column(s, task, format, query)), live, "without a turn it is the last one")
    about = value(s, f"/debug/tasks/{task}")
    same([t["turn"] for t in about["turns"]], [1, 2], about)
    same(about["turns"][1]["firstSeq"], about["turns"][0]["lastSeq"] + 1, about)
    same(about["records"], about["turns"][1]["lastSeq"], about)
    same(about["task"]["state"], "completed", about)


SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
TOOL = {"type": "function", "function": {"name": "save", "parameters": {"type": "object", "properties": {}}}}


@each("members of a chat request that change its stream: {}", [
    ("usage", "usage", {"stream_options": {"include_usage": True}}),
    ("JSON", "data", {"response_format": {"type": "json_object"}}),
    ("JSON with a schema", "data", {"response_format": SCHEMA}),
    ("a call", "data", {"tools": [TOOL], "tool_choice": "required"}),
])
def _(text, more):
    needs_ours("needs the demo agent")
    s = demo()
    live = by_chat(s, text, new_id("thread"), more)
    same(frames(column(s, newest(s), "openai-chat")), live, "the column")


@test("an AG-UI run of an older client, and of a client that names the run above")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    for text, more in (("old client", {}), ("tools", {"parentRunId": "above"})):
        live = by_ag_ui(s, text, new_id("thread"), more)
        check(text == "old client" or "above" in live, live[:300])
        same(frames(column(s, newest(s), "ag-ui")), live, text)


REPLACES = r"""read -r text
printf '%s\n' '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"a draft"}]}}}'
printf '%s\n' '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"the answer"}]}}}'
printf '%s\n' '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}'
"""


@each("AG-UI: a snapshot of messages has those that the client had: {}", [
    ("only the new one", lambda thread, new: [new]), ("all", lambda thread, new: [*thread, new]),
    ("a history that was edited", lambda thread, new: [user("other"), {"id": new_id("a"), "role": "assistant", "content": "words"}, new])])
def _(messages):
    needs_ours("needs the exec agent")
    s = server(None, config=settings(agents=[agent("exec", id="demo", settings={"command": REPLACES})]))
    thread, held = new_id("thread"), []
    for turn in range(3):
        live = by_ag_ui(s, None, thread, {"messages": messages(held, user(f"turn {turn}"))})
        events = [json.loads(line[6:]) for line in live.splitlines() if line.startswith("data: ")]
        held = next(e for e in events if e["type"] == "MESSAGES_SNAPSHOT")["messages"]
        same(frames(column(s, newest(s), "ag-ui")), live, f"turn {turn}")


@test("AI SDK: the turn that goes on with a decision about a call")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    chat = new_id("chat")
    first = by_ai_sdk(s, "interrupt", chat, {})
    chunks = [json.loads(line[6:]) for line in first.splitlines() if line.startswith("data: {")]
    asked = next(c for c in chunks if c["type"] == "tool-approval-request")
    call = next(c for c in chunks if c["type"] == "tool-input-available")
    said = {"id": new_id("u"), "role": "user", "parts": [{"type": "text", "text": "interrupt"}]}
    part = {"type": "dynamic-tool", "toolName": call["toolName"], "toolCallId": call["toolCallId"], "state": "approval-responded",
            "input": call["input"], "approval": {"id": asked["approvalId"], "approved": False}}
    answer = {"id": next(c["messageId"] for c in chunks if c["type"] == "start"), "role": "assistant", "parts": [part]}
    live = by_ai_sdk(s, "", chat, {"messages": [said, answer]})
    same(frames(column(s, newest(s), "ai-sdk")), live, "the second turn")


@each("a run that accepts a message while it works: both turns, {}", [("ag-ui", by_ag_ui, "ag-ui", "?"), ("a2a", by_rest, "a2a-1.0", "?binding=rest")])
def _(send, format, query):
    needs_ours("needs the demo agent")
    s = demo()
    thread, live, before = new_id("thread"), [], newest(s)
    first = threading.Thread(target=lambda: live.append(send(s, "listen", thread, {})))
    first.start()
    soon(lambda: newest(s) != before, "the task")  # a run is there before its task is stored
    task = newest(s)
    soon(lambda: any(t["runs"] for t in value(s, "/debug/tasks")["tasks"] if t["id"] == task), "the run")
    soon(lambda: "working" in json.dumps(records(s, task)).lower(), "it works")
    second = send(s, "done", thread, {"task": task} if format != "ag-ui" else {})
    first.join(60)
    same(len(value(s, f"/debug/tasks/{task}")["turns"]), 2, "turns")
    same(frames(lines(get(s, f"/debug/tasks/{task}/columns/{format}{query}&turn=1"))), live[0], "the first turn")
    same(frames(lines(get(s, f"/debug/tasks/{task}/columns/{format}{query}&turn=2"))), second, "the second turn")


@test("columns after kill -9 and a restart are the same")
def _():
    needs_ours("needs the demo agent")
    s = Server(None, "sqlite:" + os.path.join(folder(), "dragoman.db"), config=settings(agents=[agent("demo", settings={"pace": 0})]))
    before = []
    for name, (send, format, query) in WAYS.items():
        thread = new_id("thread")
        send(s, "ask", thread, {})
        task = newest(s)
        live = send(s, "Ada", thread, {"task": task} if "a2a" in format else {})
        before.append((name, task, format, query, live))
    s.kill()
    s.start()
    for name, task, format, query, live in before:
        same(frames(column(s, task, format, query + "&turn=2")), live, name)
        value(s, f"/debug/tasks/{task}/findings")
        same(value(s, f"/debug/tasks/{task}/fold")["status"]["state"], "TASK_STATE_COMPLETED", name)
    s.stop()


# ---- other columns ---------------------------------------------------------------------------------------------------------

def convert(text, to):
    done = subprocess.run([DRAGOMAN, "convert", "--from", "a2a-1.0", "--to", to, "--frame", "sse", "-"], input=text.encode(),
                          capture_output=True, timeout=300)
    check(not done.returncode, done.stderr)
    return done.stdout.decode()


def are_converted(s, task, formats):
    exported = "".join(line[line.index('"record":') + 9:-1] + "\n"
                       for line in get(s, f"/debug/tasks/{task}/records?follow=0").body.decode().split("\n")[:-1])
    for format in formats:
        same(frames(column(s, task, format)), convert(exported, format), format)


@each("the other columns are `dragoman convert` of the exported records: {}", [(t, t) for t in TEXTS])
def _(text):
    needs_ours("needs the demo agent")
    s = demo()
    by_rest(s, text, new_id("thread"), {})
    are_converted(s, newest(s), FORMATS[2:])


@each("the same of a turn that came by another protocol: {}", [(name, *way) for name, way in list(WAYS.items())[:4]])
def _(send, own, _query):
    needs_ours("needs the demo agent")
    s = demo()
    for text in ("tools", "data", "state", "fail"):
        send(s, text, new_id("thread"), {})
        are_converted(s, newest(s), [f for f in FORMATS[2:] if f != own])


@test("A2A columns of a turn of another protocol are what a subscriber gets behind the record before it")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    by_ag_ui(s, "tools", new_id("thread"), {})
    task = newest(s)
    cursor = [("Last-Event-ID", "0")]
    rpc = {"jsonrpc": "2.0", "id": 1, "params": {"id": task}}
    same(frames(column(s, task, "a2a-1.0")), raw(s, "POST", "/", {"method": "SubscribeToTask", **rpc}, V10 + cursor), "1.0")
    same(frames(column(s, task, "a2a-0.3")), raw(s, "POST", "/", {"method": "tasks/resubscribe", **rpc}, V03 + cursor), "0.3")
    same(frames(column(s, task, "a2a-1.0", "?binding=rest")), raw(s, "GET", f"/tasks/{task}:subscribe", None, V10 + cursor), "REST")


@test("what a protocol cannot say is a loss of the record, with its reason")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    by_rest(s, "state", new_id("thread"), {})
    got = column(s, newest(s), "openai-chat")
    lost = [loss for line in got[:-1] for loss in line["losses"]]
    check(lost and all(loss["what"] and loss["why"] for loss in lost), lost)
    same(frames(column(s, newest(s), "a2a-1.0")).count("data:"), len([r for r in records(s, newest(s)) if "kind" not in r["record"]]), "frames")
    internal = [r["seq"] for r in records(s, newest(s)) if "kind" in r["record"]]
    check(internal, "no internal record")
    for format in ("a2a-1.0", "a2a-0.3"):
        got = column(s, newest(s), format)
        same([k["seq"] for k in got[:-1] if "internal-event" in [x["what"] for x in k["losses"]]], internal, format)
        same([k["seq"] for k in got[:-1] if not k["frames"]], internal, f"{format}: records without frames")
    same([k["seq"] for k in column(s, newest(s), "a2a-1.0")[:-1] if k["losses"]], internal, "the format of the records loses nothing else")


# ---- findings, the Task after a record -------------------------------------------------------------------------------------

SAYS_TWICE = r"""read -r text
printf '%s\n' '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}'
printf '%s\n' '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"The answer is 42, and this is long enough."}]}}}'
printf '%s\n' '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"The answer is 42, and this is long enough."}]}}}}'
printf '%s\n' '{"artifactUpdate":{"artifact":{"artifactId":"b","parts":[{"text":"The answer is 42, and this is long enough."}]}}}'
printf '%s\n' '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}'
"""


@test("findings are at the record that they are about, with the rule and its fix")
def _():
    needs_ours("needs the exec agent")
    s = server(None, config=settings(agents=[agent("exec", settings={"command": SAYS_TWICE})]))
    by_rest(s, "go", new_id("thread"), {})
    task = newest(s)
    found = value(s, f"/debug/tasks/{task}/findings")["findings"]
    twice = [f for f in found if f["rule"] == "final-text-twice"]
    check(twice and all(f["severity"] == "warning" and f["message"] and f["fix"] for f in twice), found)
    about = next(r for r in records(s, task) if r["seq"] == twice[-1]["seq"])
    check("The answer is 42" in json.dumps(about["record"]), about)
    same(value(s, f"/debug/tasks/{task}/findings?turn=1")["findings"], found, "of the only turn")


@test("internal records are not linted as A2A")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    by_ag_ui(s, "reasoning", new_id("thread"), {})
    task = newest(s)
    check([r for r in records(s, task) if r["record"].get("kind", "").startswith("internal:")], "no internal record")
    same([f for f in value(s, f"/debug/tasks/{task}/findings")["findings"] if f["severity"] == "error"], [], "errors")


@test("the Task after each record: it ends as GetTask has it")
def _():
    needs_ours()
    c = Client(server("tck"), RPC1)
    task = waiting(c)["id"]
    c.send(id=tck("complete-task"), task=task)
    fold = f"/debug/tasks/{task}/fold"
    n = value(c.server, f"/debug/tasks/{task}")["records"]
    same(value(c.server, fold), c.get(task).task, "the last one")
    states = [value(c.server, f"{fold}?seq={i}")["status"]["state"] for i in range(1, n + 1)]
    same((states[0], states[-1]), ("TASK_STATE_SUBMITTED", "TASK_STATE_COMPLETED"), states)
    check("TASK_STATE_INPUT_REQUIRED" in states, states)
    same(get(c.server, f"{fold}?seq={n + 1}").status, 400, "behind the end")
    same(get(c.server, f"{fold}?seq=0").status, 400, "0")


# ---- tasks that work -------------------------------------------------------------------------------------------------------

# writes a line now and then until the file that the message names is there
UNTIL_TOLD = 'read -r gate; i=0; until [ -e "$gate" ]; do i=$((i+1)); echo $i; sleep 0.01; done'


@each("a column follows a turn that runs until it ends: {}", [(f, f) for f in FORMATS])
def _(format):
    needs_ours("needs the exec agent")
    s = server(None, config=settings(agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})]))
    gate = os.path.join(folder(), new_id("gate"))
    task = Client(s, RPC1).send(gate, config={"returnImmediately": True}).task["id"]
    path = f"/debug/tasks/{task}/columns/{format}"
    soon(lambda: len(lines(get(s, path + "?follow=0"))) > 3, "lines of a turn that runs")
    check(None not in [k["seq"] for k in lines(get(s, path + "?follow=0"))], "an end")
    same(value(s, f"/debug/tasks/{task}")["turns"][0]["lastSeq"], None, "the turn runs")
    with Conn(s.address) as conn:
        conn.request("GET", path)
        r = conn.head()
        text = b""
        for chunk in conn.chunks(r):
            text += chunk
            if text.count(b"\n") > 5:
                open(gate, "w").close()
    followed = [json.loads(line) for line in text.decode().split("\n")[:-1]]
    same(followed[-1]["seq"], None, "the end")
    same(frames(followed), frames(column(s, task, format)), "read again when it has ended")


@each("a run whose client disconnects is canceled, also while it is inspected: {}", [
    (p, p) for p in ("records", "columns/ag-ui", "columns/openai-chat", "columns/a2a-1.0")])
def _(path):
    needs_ours("needs the exec agent")
    config = settings(agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})])
    config.update(on_disconnect={"ag-ui": "cancel"}, disconnect_grace_s={"ag-ui": 0})
    s = server(None, config=config)
    c, before = Client(s, RPC1), {t["id"] for t in value(s, "/debug/tasks")["tasks"]}
    client, inspector = Conn(s.address), Conn(s.address)
    client.request("POST", "/ag-ui", json.dumps(run_input("no gate", new_id("thread"))).encode(), JSON)
    client.head()
    task = soon(lambda: next((t["id"] for t in value(s, "/debug/tasks")["tasks"] if t["id"] not in before and t["runs"]), None), "the run")
    inspector.request("GET", f"/debug/tasks/{task}/{path}")
    inspector.head()
    inspector.line()
    client.reset()
    soon(lambda: c.get(task).state == "TASK_STATE_CANCELED", "the run is canceled")
    inspector.close()


def cut_or_not(conn, response):
    """The lines of a response, and whether it had an end."""
    text = b""
    try:
        for chunk in conn.chunks(response):
            text += chunk
    except Closed:
        return text.decode().split("\n")[:-1], False
    return text.decode().split("\n")[:-1], True


@test("when the store fails nothing says that a turn has ended: connections are cut")
def _():
    needs_ours("needs the demo agent")
    needs_sqlite("removes the file of the database")
    path = os.path.join(folder(), "dragoman.db")
    with Server(None, "sqlite:" + path, config=settings(agents=[agent("demo", settings={"pace": 0})])) as s:
        task = Client(s, RPC1).send("slow 60000", config={"returnImmediately": True}).task["id"]
        readers = {}
        for what in ["records", *(f"columns/{f}" for f in FORMATS)]:
            conn = Conn(s.address)
            conn.request("GET", f"/debug/tasks/{task}/{what}")
            readers[what] = (conn, conn.head())
        for file in os.listdir(os.path.dirname(path)):
            os.unlink(os.path.join(os.path.dirname(path), file))
        for what, (conn, response) in readers.items():
            got, has_end = cut_or_not(conn, response)
            check(got and not has_end, f"{what}: {len(got)} lines, an end: {has_end}")
            check(json.loads(got[-1])["seq"] is not None, f"{what}: {got[-1][:200]}")
            conn.close()
        s.kill()


@test("tasks in memory are listed for operators")
def _():
    needs_ours("needs the exec agent")
    config = settings(tokens=True, agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})])
    config["tokens"].append({"token": OPERATOR, "principal": "root", "role": "operator"})
    s = server(None, config=config)
    gate = os.path.join(folder(), new_id("gate"))
    task = Client(s, RPC1, token=TOKENS["alice"]).send(gate, config={"returnImmediately": True}).task["id"]
    got = value(s, "/debug/tasks", OPERATOR)
    row = next(t for t in got["tasks"] if t["id"] == task)
    same((row["principal"], row["agent"], row["state"], row["runs"]), ("alice", "exec", "working", True), row)
    same((got["running"], got["truncated"], [a["id"] for a in got["agents"]]), (1, False, ["exec"]), got)
    same(get(s, "/debug/tasks", TOKENS["alice"]).status, 403, "its owner")
    open(gate, "w").close()


# ---- access ----------------------------------------------------------------------------------------------------------------

PATHS = ["", "/records", "/columns/ag-ui", "/columns/a2a-1.0", "/findings", "/fold"]


@each("a task of another owner is like one that does not exist: {}", [(p or "task", p) for p in PATHS])
def _(path):
    needs_ours()
    s = operated("owner")
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    same(get(s, f"/debug/tasks/{task}{path}", TOKENS["alice"]).status, 200, "its owner")
    unknown = get(s, f"/debug/tasks/{new_id()}{path}", TOKENS["bob"])
    stranger = get(s, f"/debug/tasks/{task}{path}", TOKENS["bob"])
    same((stranger.status, stranger.body), (404, unknown.body), "a stranger")
    same(get(s, f"/debug/tasks/{task}{path}", OPERATOR).body, unknown.body, "an operator, as its own")
    same(get(s, f"/debug/tasks/{task}{path}?principal=alice", OPERATOR).status, 200, "an operator who names the owner")
    same(get(s, f"/debug/tasks/{task}{path}?principal=alice", TOKENS["bob"]).status, 403, "a stranger who names the owner")
    same(get(s, f"/debug/tasks/{task}{path}").status, 401, "without a token")


@test("without `inspect: owner` only operators inspect; a page learns what it may do")
def _():
    needs_ours()
    s = operated()
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    for path in PATHS:
        same(get(s, f"/debug/tasks/{task}{path}", TOKENS["alice"]).status, 403, path)
    same(ask(s.address, "POST", "/debug/streams", b"{}", bearer(TOKENS["alice"])).status, 403, "a recorded stream")
    same(value(s, "/debug/me", TOKENS["alice"]), {"operator": False, "inspect": False, "remote": False}, "alice")
    same(value(s, "/debug/me", OPERATOR), {"operator": True, "inspect": True, "remote": False}, "the operator")
    same(get(s, "/debug/me").status, 401, "without a token")
    same(value(operated("owner"), "/debug/me", TOKENS["alice"]), {"operator": False, "inspect": True, "remote": False}, "inspect: owner")
    same(value(demo(), "/debug/me"), {"operator": True, "inspect": True, "remote": False}, "on loopback, without tokens")


@test("requests that make no sense are refused")
def _():
    needs_ours()
    s = demo()
    by_rest(s, "stream", new_id("thread"), {})
    task = newest(s)
    for path in ("/columns/morse", "/columns/ag-ui?turn=2", "/columns/a2a-1.0?id={", "/columns/a2a-1.0?id=[1]", "/columns/ag-ui?turn=x"):
        same(get(s, f"/debug/tasks/{task}{path}").status, 400, path)
    same(ask(s.address, "POST", f"/debug/tasks/{task}/fold", b"").status, 405, "POST")
    same(ask(s.address, "POST", "/debug/streams?format=morse", b"{}").status, 400, "an unknown format")


# ---- recorded streams ------------------------------------------------------------------------------------------------------

def play(s, path, body, expected=200):
    r = ask(s.address, "POST", "/debug/streams" + path, body if isinstance(body, bytes) else body.encode(), [("Content-Type", "text/plain")])
    same(r.status, expected, r)
    return r


@each("a recorded stream of {} is shown like a task", [(name, *way) for name, way in WAYS.items()])
def _(send, format, _query):
    needs_ours("needs the demo agent")
    s = demo()
    live = send(s, "tools", new_id("thread"), {})
    shown = play(s, "?format=auto", live).json
    same((shown["framing"], shown["records"][0]["seq"]), ("sse", 1), shown)
    check(shown["format"] in (format, "a2a-0.3-rest"), shown["format"])
    data = [line[6:] for line in live.split("\n") if line.startswith("data: ")]
    same([r["record"] for r in shown["records"]], [json.loads(d) if d != "[DONE]" else d for d in data], "records")
    for to in FORMATS:
        got = lines(play(s, f"/columns/{to}", live))
        same([k["seq"] for k in got], [*range(1, len(data) + 1), None], "a line per record")
        if to == shown["format"]:
            same(frames(got), live, "its own column")
        else:
            done = subprocess.run([DRAGOMAN, "convert", "--from", shown["format"], "--to", to, "--frame", "sse", "-"], input=live.encode(),
                                  capture_output=True, timeout=300)
            same(frames(got), done.stdout.decode(), to)
    same(play(s, "/fold", live).json["status"]["state"], "TASK_STATE_COMPLETED", "the fold")
    found = play(s, "/findings", live).json
    same(found["checked"], shown["format"] in ("a2a-1.0", "a2a-0.3", "a2a-0.3-rest", "ag-ui"), found)


@test("a recorded stream: lines, one array, our own export, steps of the fold")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    by_rest(s, "tools", new_id("thread"), {})
    task = newest(s)
    exported = get(s, f"/debug/tasks/{task}/records?follow=0").body.decode()
    kept = [json.loads(line) for line in exported.split("\n")[:-1]]
    plain = "".join(json.dumps(r["record"]) + "\n" for r in kept)
    array = json.dumps([r["record"] for r in kept])
    for body, framing in ((exported, "lines"), (plain, "lines"), (array, "array")):
        got = play(s, "", body).json
        same((got["format"], got["framing"]), ("a2a-1.0", framing), framing)
        same([r["record"] for r in got["records"]], [r["record"] for r in kept], framing)
        same([r.get("time") for r in got["records"]], [r["time"] if body == exported else None for r in kept], "times")
        for seq in range(1, len(kept) + 1):
            same(play(s, f"/fold?seq={seq}", body).json, value(s, f"/debug/tasks/{task}/fold?seq={seq}"), f"the Task after {seq}")
        play(s, f"/fold?seq={len(kept) + 1}", body, 400)
        same(frames(lines(play(s, "/columns/openai-chat", body))), frames(column(s, task, "openai-chat")), "a column")


@test("a recorded stream: findings are at their records")
def _():
    needs_ours()
    s = demo()
    start, end = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    wrong = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
    found = play(s, "/findings", "".join(json.dumps(e) + "\n" for e in (start, wrong, end))).json["findings"]
    same([(f["seq"], f["rule"]) for f in found], [(2, "agui-text-not-open")], found)


# ---- hostile input ---------------------------------------------------------------------------------------------------------

@each("invalid streams are shown as far as they can be read: {}", [
    ("no JSON", b"hello\nworld\n"), ("half a value", b'{"type":"RUN_STARTED"'), ("not UTF-8", b'{"a":"\xff\xfe"}\n{"b":1}\n'),
    ("zeros", b"\0" * 100), ("unknown objects", b'{"a":1}\n{"b":2}\n'), ("numbers", b"1 2 3"), ("deep", b'{"a":' + b"[" * 500 + b"]" * 500 + b"}\n"),
    ("an event without data", b"event: x\n\n"), ("an invalid event", b'data: {"a":\n\ndata: {"type":"RUN_STARTED"}\n\n'), ("nothing", b""),
    ("a huge id", b"id: " + b"x" * 100000 + b'\ndata: {"type":"RUN_STARTED"}\n\n'), ("empty lists", b"[]"), ("a list in lines", b"[1]\n[2]\n"),
])
def _(body):
    needs_ours()
    s = demo()
    shown = play(s, "", body).json
    check(all("error" in r or "record" in r for r in shown["records"]), shown)
    for to in FORMATS:
        got = lines(play(s, f"/columns/{to}", body))
        same(got[-1]["seq"], None, "the end")
        unread = [r["error"] for r in shown["records"][:1] if r.get("error")]
        if unread and to != shown["format"]:
            same([k.get("error") for k in got if "error" in k][:1], unread, f"{to}: why the conversion ends")
    play(s, "/findings", body)
    check(ask(s.address, "POST", "/debug/streams/fold", body).status in (200, 400), "fold")


EVENTS = 10_000 if is_sanitized() else 100_000


@test("a stream of 100,000 events in every path", timeout=600)
def _():
    needs_ours()
    s = demo()
    ids = '"taskId":"t","contextId":"c"'
    body = '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}\n' + "".join(
        f'{{"artifactUpdate":{{{ids},"artifact":{{"artifactId":"a","parts":[{{"text":"{i} "}}]}},"append":{"true" if i else "false"}}}}}\n'
        for i in range(EVENTS - 2)) + f'{{"statusUpdate":{{{ids},"status":{{"state":"TASK_STATE_COMPLETED"}}}}}}\n'
    same(len(play(s, "", body).json["records"]), EVENTS, "records")
    for to in FORMATS:
        same(len(lines(play(s, f"/columns/{to}", body))), EVENTS + 1, to)
    same(play(s, "/findings", body).json["checked"], True, "findings")
    check("json_values" in play(s, "", "[" + ",".join(["[1]"] * 600_000) + "]").json["records"][0]["error"], "an array of too many values")
    text = play(s, "/fold", body).json["artifacts"][0]["parts"][0]["text"]
    check(text.endswith(f" {EVENTS - 3} "), text[-100:])


FLOOD = f'read -r x; awk \'BEGIN {{ for (i = 0; i < {EVENTS}; i++) print "line " i }}\''


@test("a task of 100,000 records: every column, findings, the Task; a slow reader is waited for", timeout=900)
def _():
    needs_ours("needs the exec agent")
    s = server(None, config=settings(agents=[agent("exec", settings={"command": FLOOD, "input": "text", "output": "text"})]))
    task = Client(s, RPC1).send("go", wait=300).task["id"]
    n = value(s, f"/debug/tasks/{task}")["records"]
    check(n > 1000, n)
    print(f"# {n} records")
    for format in FORMATS:
        same(len(column(s, task, format)), n + 1, format)
    value(s, f"/debug/tasks/{task}/findings")
    check(f"line {EVENTS - 1}" in json.dumps(value(s, f"/debug/tasks/{task}/fold")), "the last line")
    with Conn(s.address) as slow:
        slow.request("GET", f"/debug/tasks/{task}/columns/ag-ui")
        slow.head()
        same(value(s, "/debug/me")["operator"], True, "another request")


@test("a record of 8 MiB in every column")
def _():
    needs_ours()
    s = demo()
    text = "\x01<script>\u2028" * 380_000  # grows by its escapes
    body = json.dumps({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": {"artifactId": "a", "parts": [{"text": text}]}}})
    check(7 << 20 < len(body) < 8 << 20, len(body))
    lines_of = '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}\n' + body + "\n"
    same(play(s, "", lines_of).json["records"][1]["record"], json.loads(body), "the record")
    for to in FORMATS:
        same(lines(play(s, f"/columns/{to}", lines_of))[-1]["seq"], None, to)
    same(play(s, "/fold", lines_of).json["artifacts"][0]["parts"][0]["text"], text, "the fold")
    too_large = '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}\n{"a":"' + "x" * (9 << 20) + '"}\n'
    shown = play(s, "", too_large).json["records"]
    check("record_bytes" in shown[1]["error"], shown[1].get("error"))


@test("readers that disconnect in the middle")
def _():
    needs_ours("needs the demo agent")
    s = demo()
    by_rest(s, "long 2000", new_id("thread"), {})
    task = newest(s)
    body = "".join(json.dumps(r["record"]) + "\n" for r in records(s, task)).encode() * 20
    for path in ("/records", "/columns/ag-ui", "/columns/openai-chat", "/columns/a2a-1.0", "/findings", "/fold"):
        for _i in range(5):
            conn = Conn(s.address)
            conn.request("GET", f"/debug/tasks/{task}{path}")
            conn.reset()
    for path in ("", "/columns/ag-ui", "/findings", "/fold"):
        for _i in range(5):
            conn = Conn(s.address)
            conn.request("POST", "/debug/streams" + path, body, [("Content-Type", "text/plain")])
            conn.reset()
    same(value(s, f"/debug/tasks/{task}")["task"]["state"], "completed", "the server goes on")


# ---- other servers ---------------------------------------------------------------------------------------------------------

def remote(s, path, body, token=OPERATOR):
    return ask(s.address, "POST", "/debug/remote/" + path, json.dumps(body).encode(), JSON + bearer(token))


def sent(text, method="SendStreamingMessage"):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message(text)}}


@test("another server is reached only by operators, if `inspect_remote` is set and its address is allowed")
def _():
    needs_ours("needs the demo agent")
    other = demo()
    body = {"url": other.url, "body": sent("stream")}
    for path in ("card", "send"):
        off = remote(operated(), path, body)
        same(off.status, 403, "off")
        check("inspect_remote" in off.json["error"]["message"], off)
        on = operated("owner", inspect_remote=True)
        same(value(on, "/debug/me", OPERATOR)["remote"], True, "me")
        same(value(on, "/debug/me", TOKENS["alice"])["remote"], False, "alice")
        same(remote(on, path, body, TOKENS["alice"]).status, 403, "alice")
        same(remote(on, path, body, None).status, 401, "without a token")
        guarded = remote(on, path, body)
        same(guarded.status, 403, "a loopback address")
        check("loopback" in guarded.json["error"]["message"], guarded)
        check(not guarded.all("x-dragoman-remote"), "it is our own answer")
    for url in ("http://[::1]:1", "http://10.0.0.1", "http://169.254.169.254/", "http://[::ffff:127.0.0.1]:1"):
        same(remote(on, "card", {"url": url}).status, 403, url)
    for url in ("", "ftp://example.com", "example.com", "http://" + "x" * 5000, None):
        same(remote(on, "card", {"url": url}).status, 400, url)


@test("another server: its card, its answers as they are, its errors")
def _():
    needs_ours("needs the demo agent")
    s = operated(inspect_remote=True, outbound={"allow": ["127.0.0.1"]})
    other = server(None, config=settings(tokens=True, agents=[agent("demo", settings={"pace": 0})]))
    card = remote(s, "card", {"url": other.url + "/"})
    same((card.status, card.type, card.get("x-dragoman-remote")), (200, "application/json", "1"), card)
    same(card.json, get(other, "/.well-known/agent-card.json").json, "the card")
    same(remote(s, "card", {"url": other.url + "/.well-known/agent-card.json"}).json, card.json, "by its own URL")
    ours = {"Authorization": "Bearer " + TOKENS["alice"], "A2A-Version": "1.0"}
    refused = remote(s, "send", {"url": other.url, "body": sent("stream"), "headers": {"A2A-Version": "1.0"}})
    same((refused.status, refused.get("x-dragoman-remote")), (401, "1"), "without its token")
    r = remote(s, "send", {"url": other.url, "body": sent("tools"), "headers": ours})
    same((r.status, r.type), (200, "text/event-stream"), r)
    task = json.loads(r.body.decode().split("\n")[1][6:])["result"]["task"]["id"]
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}
    again = remote(s, "send", {"url": other.url, "body": rpc, "headers": {**ours, "Last-Event-ID": "0"}})
    same(again.body, r.body, "a stream, read again")
    same(remote(s, "send", {"url": other.url, "body": sent("hi", "SendMessage"), "headers": ours}).type, "application/json", "one answer")
    for body in ({"url": other.url}, {"url": other.url, "body": []}, {"url": other.url, "body": {}, "headers": {"Cookie": "x"}},
                 {"url": other.url, "body": {}, "headers": {"Authorization": 1}}):
        same(remote(s, "send", body).status, 400, body)
    same(ask(s.address, "POST", "/debug/remote/card", b"{}", [("Content-Type", "text/plain"), *bearer(OPERATOR)]).status, 400, "no JSON")
    other.stop()
    check(remote(s, "card", {"url": other.url}).status in (500, 502), "no server")


def answering(answer):
    """The URL of a server that sends these bytes to everyone and closes the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            conn, _ = listener.accept()
            with conn:
                conn.recv(65536)
                conn.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@each("another server whose answer is not one: {}", [
    ("it switches to another protocol", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes", "status 101"),
    ("no HTTP", b"SSH-2.0-OpenSSH_9.2\r\n", "not HTTP"), ("nothing", b"", "without an answer"),
])
def _(answer, why):
    needs_ours()
    s = operated(inspect_remote=True, outbound={"allow": ["127.0.0.1"]})
    for path in ("card", "send"):
        r = remote(s, path, {"url": answering(answer), "body": sent("hi")})
        same((r.status, r.get("x-dragoman-remote")), (500, None), r)
        check(why in r.json["error"]["message"], r)
    same(value(s, "/debug/me", OPERATOR)["operator"], True, "the server goes on")


@each("another server whose answer is cut off: the part of it has no end here either, {}", [
    ("a length", b"Content-Length: 10\r\n\r\ndata:"), ("chunks", b"Transfer-Encoding: chunked\r\n\r\n5\r\ndata:\r\n9\r\n"),
])
def _(rest):
    needs_ours()
    s = operated(inspect_remote=True, outbound={"allow": ["127.0.0.1"]})
    url = answering(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + rest)
    with Conn(s.address) as conn:
        conn.request("POST", "/debug/remote/send", json.dumps({"url": url, "body": sent("hi")}).encode(), JSON + bearer(OPERATOR))
        r, got = conn.head(), b""
        same((r.status, r.get("x-dragoman-remote")), (200, "1"), r)
        try:
            for chunk in conn.chunks(r):
                got += chunk
        except Closed:
            same(got, b"data:", "the part")
        else:
            check(False, "the answer has an end")


@test("another server: a caller that disconnects ends the request there")
def _():
    needs_ours("needs the exec agent")
    s = operated(inspect_remote=True, outbound={"allow": ["127.0.0.1"]})
    config = settings(agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})])
    config["on_disconnect"] = {"a2a": "cancel"}
    config["disconnect_grace_s"] = {"a2a": 0}
    other = server(None, config=config)
    gate = os.path.join(folder(), new_id("gate"))
    conn = Conn(s.address)
    conn.request("POST", "/debug/remote/send", json.dumps({"url": other.url, "headers": {"A2A-Version": "1.0"}, "body": sent(gate)}).encode(),
                 JSON + bearer(OPERATOR))
    first = Stream(conn, conn.head()).next()
    task = first.json["result"]["task"]["id"]
    conn.reset()
    soon(lambda: Client(other, RPC1).get(task).state == "TASK_STATE_CANCELED", "the run there is canceled")
