"""historyLength (5.4), waiting or not (5.5), life cycle (5.1), cancel (5.8), ListTasks (5.9), reading tasks."""
import concurrent.futures
import os
import time

from lib.a2a import (ALL, INTERRUPTED, ONE, RPC, RPC03, RPC1, TERMINAL, Client, message, new_id, task_text, text_of)
from lib.agents import DEMO_SLOW, completed, tck, waiting
from lib.server import agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test


def client(wire, agent="tck", **options):
    return Client(server(agent, **options), wire)


# ---- historyLength ---------------------------------------------------------------------------------------------------------

def with_history(c, n=4):
    t = waiting(c)
    for i in range(2, n + 1):
        c.send(f"message {i}", id=tck("input-required"), task=t["id"])
    return t["id"]


@each("historyLength unset gives all, 0 none, n the last n in order: {}", ALL)
def _(wire):
    c = client(wire)
    id = with_history(c)
    everything = c.get(id).task["history"]
    check(len(everything) >= 4, everything)
    check("history" not in c.get(id, historyLength=0).task or wire.dialect == "0.3-rest", "0 leaves history out")
    for n in (1, 2, 3):
        same(c.get(id, historyLength=n).task["history"], everything[-n:], f"the last {n}")
    same(c.get(id, historyLength=1000).task["history"], everything, "more than there is")


@each("historyLength 0 on a send leaves history out, {}", [*ONE, RPC03])
def _(wire):
    t = client(wire).send(id=tck("complete-task"), config={"historyLength": 0}).task
    check("history" not in t, t)


@each("historyLength n on a send keeps the last n, {}", ALL)
def _(wire):
    c = client(wire)
    id = with_history(c)
    t = c.send("one more", id=tck("input-required"), task=id, config={"historyLength": 2}).task
    check(len(t["history"]) <= 2, t)


@each("historyLength also holds for the Task of a stream, {}", [*ONE, RPC03])
def _(wire):
    c = client(wire)
    id = with_history(c)
    with c.stream("x", id=tck("input-required"), task=id, config={"historyLength": 0}) as s:
        check("history" not in s.next().body, "history of the first event")


@each("historyLength holds in a list: {}", ONE)
def _(wire):
    c = client(wire)
    id = with_history(c)
    context = c.get(id).task["contextId"]
    check("history" not in c.list(contextId=context, historyLength=0).value["tasks"][0], "0")
    same(len(c.list(contextId=context, historyLength=1).value["tasks"][0]["history"]), 1, "1")
    same(c.list(contextId=context).value["tasks"][0]["history"], c.get(id).task["history"], "unset")


@test("historyLength is unset when it is 0 in ProtoJSON of 0.3")
def _():
    from lib.a2a import REST03
    c = client(REST03)
    id = with_history(c)
    check(c.get(id, historyLength=0).task.get("history"), "history")


@test("0.3: with historyLength >= 1 the history member is there")
def _():
    c = client(RPC03)
    check("history" in c.get(waiting(c)["id"], historyLength=1).result, "history")


# ---- waiting (5.5) -----------------------------------------------------------------------------------------------------------

@each("a send waits for the end and returns the Task with all artifacts, {} [R003-02]", ALL)
def _(wire):
    t = client(wire, "bench").send("chunks 20 word").task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "state")
    same([len(p["text"].split()) for p in t["artifacts"][0]["parts"]], [20], "words in the parts of the artifact")


@each("a send waits for input-required, {} [R003-02]", ALL)
def _(wire):
    same(client(wire).send(id=tck("input-required")).state, "TASK_STATE_INPUT_REQUIRED", "state")


@each("a send waits through silence, {} [R003-02]", ALL)
def _(wire):
    t = client(wire, "bench").send("hold 1 x").task
    check(t["status"]["state"] in TERMINAL, t)


@each("without configuration.blocking 0.3 still waits: {}", [("an empty configuration", {}), ("only historyLength", {"historyLength": 5}), ("blocking true", {"blocking": True})])
def _(configuration):
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"kind": "message", "messageId": new_id(), "role": "user", "parts": [{"kind": "text", "text": "chunks 3 x"}]}, "configuration": configuration}}
    same(client(RPC03, "bench").rpc(body, id=1, op="send").state, "TASK_STATE_COMPLETED", "state")


@each("returnImmediately gives the Task at once and the run goes on, {} [R003-03]", ALL)
def _(wire):
    c = client(wire, "bench")
    t = c.send("hold 5 x", config={"returnImmediately": True}).task
    check(t["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"), t)
    soon(lambda: c.get(t["id"]).state in TERMINAL, "it never ends")


@each("returnImmediately normally answers with working, {} [R003-03]", ALL)
def _(wire):
    needs_ours("decided for Dragoman")
    same(client(wire, "bench").send("hold 2 x", config={"returnImmediately": True}).state, "TASK_STATE_WORKING", "state")


# silent until the file is there that the message names, then a Message
SILENT = ["/bin/sh", "-c", """read -r gate; until [ -e "$gate" ]; do sleep 0.05; done; echo '{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"done"}]}}'"""]
# asks at once; the answer names the file
ASKS = ["/bin/sh", "-c", """read -r gate; [ "$gate" = ask ] && { echo '{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}'; exit; }
until [ -e "$gate" ]; do sleep 0.05; done; echo '{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}'"""]


def gated(command, reply, wire):
    return client(wire, None, config=settings(agents=[agent("exec", settings={"command": command, "input": "text"}, reply=reply)]))


@each("returnImmediately: a silent agent does not keep its caller: {} [R003-03]", [(f"reply: {r}, {w}", r, w) for r in ("auto", "task", "message") for w in ALL])
def _(reply, wire):
    needs_ours("needs the exec agent")
    c, gate = gated(SILENT, reply, wire), os.path.join(folder(), "gate")
    t = c.send(gate, config={"returnImmediately": True}).task  # the agent emits nothing before this is answered
    check(t["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"), t)
    same(t["history"][0]["parts"][0]["text"], gate, "its history")
    open(gate, "w").close()
    soon(lambda: c.get(t["id"]).state == "TASK_STATE_COMPLETED", "it never ends")
    check("done" in str(c.get(t["id"]).task), "the agent's text")


@each("returnImmediately: nor on an answer to a question: {} [R003-03]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    c, gate = gated(ASKS, "task", wire), os.path.join(folder(), "gate")
    t = c.send("ask").task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "state")
    after = c.send(gate, task=t["id"], config={"returnImmediately": True}).task
    same((after["id"], after["status"]["state"]), (t["id"], "TASK_STATE_WORKING"), "the task, which does not wait any more")
    open(gate, "w").close()
    soon(lambda: c.get(t["id"]).state == "TASK_STATE_COMPLETED", "it never ends")


@each("returnImmediately: nor on a message to a task at work: {} [R003-03]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    c, gate = gated(ASKS, "task", wire), os.path.join(folder(), "gate")
    t = c.send("ask").task
    c.send(gate, task=t["id"], config={"returnImmediately": True})
    again = c.send(m=message("ask", task=t["id"]), config={"returnImmediately": True}).task
    same((again["id"], again["status"]["state"]), (t["id"], "TASK_STATE_WORKING"), "the task as it is")
    c.cancel(t["id"])


@each("returnImmediately has no effect on a Message answer, {}", ALL)
def _(wire):
    check(client(wire, "bench").send("echo x", config={"returnImmediately": True}).message, "a message")


@each("a caller who leaves does not end the task, {}", ALL)
def _(wire):
    from lib.http import Conn
    c = client(wire, "bench")
    context = new_id("leave")
    one = Client(c.server, RPC1)
    for leave in ("close", "reset"):
        _, method, target, body, headers = c.prepare("send", c.params("hold 1 x", context=context))
        before = one.list(contextId=context).value["totalSize"]
        conn = Conn(c.server.address)
        conn.request(method, target, body, headers)
        soon(lambda: one.list(contextId=context).value["totalSize"] > before, "there is a task")
        getattr(conn, leave)()
    soon(lambda: [t["status"]["state"] for t in one.list(contextId=context).value["tasks"]] == ["TASK_STATE_COMPLETED"] * 2, "both complete")


# ---- reading ------------------------------------------------------------------------------------------------------------------

@each("GetTask gives what the send gave, {}", ALL)
def _(wire):
    c = client(wire, "bench")
    t = c.send("chunks 5 x").task
    got = c.get(t["id"]).task
    for member in ("id", "contextId", "status", "artifacts"):
        same(got[member], t[member], member)


@each("times are UTC with Z, to the millisecond, and move on: {}", ALL)
def _(wire):
    c = client(wire, "bench")
    events = c.stream("hold 1 x").rest()
    times = [e.body["status"]["timestamp"] for e in events if e.state]
    check(all(len(t) == len("2026-01-02T03:04:05.678Z") for t in times) or not c.server, times)
    check(times == sorted(times) and times[0] < times[-1], times)


@each("the tck agent's artifacts: {}", [(f"{what}, {w}", w, what, part) for w in ALL for what, part in [
    ("artifact-text", {"text": "Generated text content"}), ("artifact-file-url", {"url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain"}), ("artifact-data", {"data": {"key": "value", "count": 42}})]])
def _(wire, what, part):
    t = client(wire).send(id=tck(what)).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "state")
    same([a["parts"] for a in t["artifacts"]], [[part]], "parts")


@each("the tck agent's file artifact has bytes, a name and a type, {}", ALL)
def _(wire):
    part, = client(wire).send(id=tck("artifact-file")).task["artifacts"][0]["parts"]
    same((part["filename"], part["mediaType"]), ("output.txt", "text/plain"), "name and type")
    check(part["raw"], part)


@each("the tck agent answers with a message, {}", ALL)
def _(wire):
    same(text_of(client(wire).send(id=tck("message-response")).message), "Direct message response", "text")


@each("the tck agent completes with its text, rejects, and completes what it does not know, {}", ALL)
def _(wire):
    c = client(wire)
    same(task_text(completed(c)), "Hello from TCK", "text")
    same(c.send(id=tck("reject-task")).state, "TASK_STATE_REJECTED", "state")
    same(c.send(id=tck("never-heard-of")).state, "TASK_STATE_COMPLETED", "state")


@each("the tck agent asks for input when the id is not a kit's, {}", RPC)
def _(wire):
    same(client(wire).send(id=new_id("message")).state, "TASK_STATE_INPUT_REQUIRED", "state")


# ---- cancel (5.8) ----------------------------------------------------------------------------------------------------------------

@each("cancel of a working task gives the canceled Task, {} [R002-07 R004-20]", ALL)
def _(wire):
    c = client(wire, "bench")
    with c.stream("hold 20 x") as s:
        id = s.next().body["id"]
        s.until("WORKING")
        t = c.cancel(id).task
        same((t["id"], t["status"]["state"]), (id, "TASK_STATE_CANCELED"), "answer")
        same(s.rest()[-1].state, "TASK_STATE_CANCELED", "the stream's last state")
    same(c.get(id).state, "TASK_STATE_CANCELED", "state later")


@each("cancel of an interrupted task gives the canceled Task, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        s.next()
        same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "answer")
        same(s.rest()[-1].state, "TASK_STATE_CANCELED", "the subscriber's last state")


@each("cancel twice gives the Task again, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    same([c.cancel(t["id"]).state for _ in range(2)], ["TASK_STATE_CANCELED"] * 2, "states")


@each("cancel of a finished task is TaskNotCancelable: {}", [(f"completed, {w}", w, "complete-task") for w in ALL] + [(f"rejected, {w}", w, "reject-task") for w in ALL])
def _(wire, what):
    c = client(wire)
    c.cancel(c.send(id=tck(what)).task["id"]).expect("TaskNotCancelable")


@each("cancel takes metadata, {}", ONE)
def _(wire):
    c = client(wire)
    same(c.cancel(waiting(c)["id"], metadata={"why": "no more"}).state, "TASK_STATE_CANCELED", "state")


@each("a canceled task takes no message, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    c.cancel(t["id"])
    c.send(task=t["id"]).expect("UnsupportedOperation")


@test("a blocking send returns the canceled Task when somebody cancels")
def _():
    c = client(RPC1, "bench")
    context = new_id("cancel")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: Client(c.server, RPC1).send("hold 20 x", context=context))
        tasks = soon(lambda: c.list(contextId=context).value["tasks"], "the task shows up")
        c.cancel(tasks[0]["id"])
        same(answer.result(30).state, "TASK_STATE_CANCELED", "state")


@test("many cancels of one task at once: each gets the canceled Task, one status event")
def _():
    c = client(RPC1, "bench")
    with c.stream("hold 20 x") as s:
        id = s.next().body["id"]
        s.until("WORKING")
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            states = list(pool.map(lambda _: Client(c.server, RPC1).cancel(id).state, range(10)))
        same(set(states), {"TASK_STATE_CANCELED"}, "states")
        same([e.state for e in s.rest()].count("TASK_STATE_CANCELED"), 1, "status events")


@test("a race of cancel and completion ends in one terminal state that all agree on")
def _():
    c = client(RPC1, "bench")
    for _ in range(20):
        with c.stream("chunks 50 yield x") as s:
            id = s.next().body["id"]
            a = c.cancel(id)
            last = s.rest()[-1].state
        check(last in TERMINAL, last)
        same(c.get(id).state, last, "GetTask's state")
        if a.ok:
            same((a.state, last), ("TASK_STATE_CANCELED",) * 2, "cancel's state")
        else:
            a.expect("TaskNotCancelable")


# ---- ListTasks (5.9) ---------------------------------------------------------------------------------------------------------------

def three(c):
    context = new_id("list")
    return context, [completed(c, context), waiting(c, context), c.send(id=tck("artifact-text"), context=context).task]


@each("ListTasks: all four members, newest first, {}", ONE)
def _(wire):
    c = client(wire)
    context, tasks = three(c)
    v = c.list(contextId=context).value
    same(set(v), {"tasks", "nextPageToken", "pageSize", "totalSize"}, "members")
    same([t["id"] for t in v["tasks"]], [t["id"] for t in reversed(tasks)], "order")
    same((v["nextPageToken"], v["pageSize"], v["totalSize"]), ("", 50, 3), "the rest")


@each("ListTasks of an empty context: an empty page, {}", ONE)
def _(wire):
    same(client(wire).list(contextId=new_id("nothing")).value, {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}, "page")


@each("ListTasks filters: context and status together, {}", ONE)
def _(wire):
    c = client(wire)
    context, tasks = three(c)
    v = c.list(contextId=context, status="TASK_STATE_COMPLETED").value
    same({t["id"] for t in v["tasks"]}, {tasks[0]["id"], tasks[2]["id"]}, "completed")
    same(v["totalSize"], 2, "totalSize")
    same([t["id"] for t in c.list(contextId=context, status="TASK_STATE_INPUT_REQUIRED").value["tasks"]], [tasks[1]["id"]], "input-required")
    same(c.list(contextId=context, status="TASK_STATE_FAILED").value["tasks"], [], "failed")
    same(c.list(contextId=context, status="TASK_STATE_UNSPECIFIED").value["totalSize"], 3, "unspecified is any")


@each("ListTasks filters: statusTimestampAfter is greater or equal, {}", ONE)
def _(wire):
    c = client(wire)
    context = new_id("list")
    tasks = []
    for _ in range(3):
        tasks.append(completed(c, context))
        time.sleep(0.01)
    v = c.list(contextId=context, statusTimestampAfter=tasks[1]["status"]["timestamp"]).value
    same([t["id"] for t in v["tasks"]], [tasks[2]["id"], tasks[1]["id"]], "tasks")


@each("ListTasks: times with an offset are instants too, {}", ONE)
def _(wire):
    c = client(wire)
    context = new_id("list")
    t = completed(c, context)
    stamp = t["status"]["timestamp"]
    hour = int(stamp[11:13])
    moved = f"{stamp[:11]}{(hour + 1) % 24:02d}{stamp[13:-1]}+01:00" if hour < 23 else stamp
    same([x["id"] for x in c.list(contextId=context, statusTimestampAfter=moved).value["tasks"]], [t["id"]], "tasks")


@each("ListTasks: pages of two hold everything once, in order, {}", ONE)
def _(wire):
    c = client(wire)
    context = new_id("pages")
    ids = [completed(c, context)["id"] for _ in range(7)]
    seen, token, sizes = [], None, []
    while token != "":
        v = c.list(contextId=context, pageSize=2, **({"pageToken": token} if token else {})).value
        same((v["pageSize"], v["totalSize"]), (2, 7), "pageSize, totalSize")
        sizes.append(len(v["tasks"]))
        seen += [t["id"] for t in v["tasks"]]
        token = v["nextPageToken"]
    same(seen, ids[::-1], "ids")
    same(sizes, [2, 2, 2, 1], "sizes of the pages")


@each("ListTasks: a page that ends exactly at the end has no next one, {}", ONE)
def _(wire):
    c = client(wire)
    context = new_id("pages")
    for _ in range(4):
        completed(c, context)
    v = c.list(contextId=context, pageSize=4).value
    same((len(v["tasks"]), v["nextPageToken"]), (4, ""), "page")


@each("ListTasks: new tasks between two pages neither repeat nor hide others, {}", ONE)
def _(wire):
    c = client(wire)
    context = new_id("pages")
    old = [completed(c, context)["id"] for _ in range(6)]
    first = c.list(contextId=context, pageSize=3).value
    for _ in range(3):
        completed(c, context)
    second = c.list(contextId=context, pageSize=3, pageToken=first["nextPageToken"]).value
    same([t["id"] for t in first["tasks"] + second["tasks"]], old[::-1], "the six of before")


@each("ListTasks: a token of other filters is refused, {}", ONE)
def _(wire):
    needs_ours("the SDK's tokens do not know their filters")
    c = client(wire)
    context = new_id("pages")
    for _ in range(3):
        completed(c, context)
    token = c.list(contextId=context, pageSize=1).value["nextPageToken"]
    c.list(contextId=new_id("other"), pageSize=1, pageToken=token).expect("InvalidParams")


@each("ListTasks: artifacts only when asked for, then always, {}", ONE)
def _(wire):
    c = client(wire)
    context, tasks = three(c)
    for more in ({}, {"includeArtifacts": False}):
        check(all("artifacts" not in t for t in c.list(contextId=context, **more).value["tasks"]), more)
    got = {t["id"]: t.get("artifacts") for t in c.list(contextId=context, includeArtifacts=True).value["tasks"]}
    same([got[t["id"]] for t in tasks], [[], [], tasks[2]["artifacts"]], "artifacts")


@each("ListTasks: a task moves to the front when its status changes, {}", ONE)
def _(wire):
    c = client(wire)
    context, tasks = three(c)
    time.sleep(0.01)
    c.send(id=tck("complete-task"), task=tasks[1]["id"])
    same(c.list(contextId=context).value["tasks"][0]["id"], tasks[1]["id"], "first")


@each("ListTasks without any filter works, {}", ONE)
def _(wire):
    c = client(wire)
    t = completed(c)
    v = c.list().value
    check(t["id"] in [x["id"] for x in v["tasks"]] and v["totalSize"] >= len(v["tasks"]), v)


@each("ListTasks: a Message answer leaves nothing behind, {} [R004-21]", ONE)
def _(wire):
    c = client(wire, "bench")
    context = new_id("message")
    c.send("echo x", context=context)
    same(c.list(contextId=context).value["totalSize"], 0, "tasks")


# ---- messages to tasks at work -----------------------------------------------------------------------------------------------------

@test("a message to a working task waits for its turn and is handed to the agent")
def _():
    needs_ours("decided for Dragoman")
    program = ["/bin/sh", "-c", """cat >/dev/null; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}'; sleep 2; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED"}}}'"""]
    c = client(RPC1, None, config=settings(agents=[agent("exec", settings={"command": program}, reply="task")]))
    t = c.send("one", config={"returnImmediately": True}).task
    check(t["status"]["state"] not in INTERRUPTED | TERMINAL, t)
    a = c.send("two", task=t["id"])
    same(a.state, "TASK_STATE_INPUT_REQUIRED", "state")
    same([text_of(m) for m in a.task["history"]], ["one", "two"], "history")


@test("16 messages wait for a task at work, the 17th is UnsupportedOperation")
def _():
    needs_ours("decided for Dragoman")
    c = client(RPC1, "bench")
    with c.stream("hold 60 x") as s, concurrent.futures.ThreadPoolExecutor(17) as pool:
        id = s.next().body["id"]
        s.until("WORKING")
        sent = [pool.submit(lambda n=n: Client(c.server, RPC1).send(f"echo {n}", task=id)) for n in range(17)]
        try:
            refused = soon(lambda: [f for f in sent if f.done()], "one is refused", 30)
            same(len(refused), 1, "refused")
            refused[0].result().expect("UnsupportedOperation")
        finally:
            c.cancel(id)
        for f in sent:
            f.result().expect("UnsupportedOperation")  # there is no task to talk to any more


@test("progress in a task of 5 s: working all along, the task can be read meanwhile [R004-20]")
def _():
    c = client(RPC1, "demo")
    t = c.send(DEMO_SLOW, config={"returnImmediately": True}).task
    check(t["status"]["state"] not in TERMINAL | INTERRUPTED, t)
    check(c.get(t["id"]).state in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"), "state")
    c.cancel(t["id"])


# ---- canonical_type ------------------------------------------------------------------------------------------------------------------

@test("every stored message carries canonical_type, the client's own is overwritten [R000-02]")
def _():
    needs_ours("Dragoman's own mark")
    c = client(RPC1)
    t = c.send(m=message("q", id=tck("input-required"), metadata={"canonical_type": "Nonsense", "mine": 1})).task
    first = c.get(t["id"]).task["history"][0]
    same(first["metadata"], {"canonical_type": "TextMessageContentEvent", "mine": 1}, "metadata")


@test("canonical_type: off keeps it off the wire [R000-02]")
def _():
    needs_ours("Dragoman's own mark")
    c = client(RPC1, config=settings(canonical_type=False))
    t = c.send("q", id=tck("input-required")).task
    check("canonical_type" not in str(c.get(t["id"]).result), "canonical_type")


@test("Tasks and events carry no canonical_type of their own [R000-02]")
def _():
    needs_ours("Dragoman's own mark")
    for e in client(RPC1, "bench").stream("chunks 2 x").rest():
        check("canonical_type" not in e.body.get("metadata", {}), e)
