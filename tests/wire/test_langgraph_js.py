"""A graph of the real LangGraph for JavaScript behind the server: all protocols, questions, processes that are killed. The packages are those
of tests/interop/langgraph-js; its README describes the other tests."""
import base64
import json
import os
import signal
import subprocess
import threading

from lib import fronts
from lib.a2a import ALL, RPC1, Client, message, new_id, task_text, text_of
from lib.http import ask
from lib.server import ROOT, Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

PROJECT = os.path.join(ROOT, "tests/interop/langgraph-js/projects/server")


def config(**env):
    return settings(agents=[agent("langgraph", id="demo", settings={"config": os.path.join(PROJECT, "langgraph.json"), "env": env})])


def shared():
    needs_ours("needs the agent type langgraph")
    return server(None, config=config())


def texts(task):
    return [text_of(m) for m in task["history"]]


class World:
    """A server of its own, whose worker and which itself can be killed."""

    def __init__(self):
        needs_ours("needs the agent type langgraph")
        self.folder = folder()
        self.server = Server(None, store=f"sqlite:{self.folder}/tasks.db", config=config(TRACE=self.path("trace"), GATE=self.path("gate")))
        self.client = Client(self.server, RPC1)

    def path(self, name):
        return os.path.join(self.folder, name)

    def trace(self):
        if not os.path.exists(self.path("trace")):
            return []
        with open(self.path("trace"), encoding="utf-8") as f:
            return f.read().splitlines()

    def open_gate(self):
        with open(self.path("gate"), "w", encoding="utf-8"):
            pass

    def kill_worker(self):
        out = subprocess.run(["pgrep", "-P", str(self.server.process.pid), "-f", "worker.js"], capture_output=True, text=True, check=False).stdout
        pids = [int(p) for p in out.split()]
        check(pids, "there is a worker")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def kill_server(self):
        self.server.kill()
        self.server.restart()

    def finished(self, id):
        soon(lambda: self.client.get(id).state == "TASK_STATE_COMPLETED", lambda: (self.client.get(id).task["status"], self.server.log[-5:]), 60)
        return self.client.get(id).task

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()


KILLS = [("the worker", World.kill_worker), ("the server", World.kill_server)]


@each("A2A, {}: tokens are chunks of the stream-delta artifact, the answer is there once [R003-24 R003-25 R003-26]", ALL)
def _(wire):
    c = Client(shared(), wire)
    sent = c.send("hello").task
    same((sent["status"]["state"], task_text(sent), texts(sent), sent.get("artifacts", [])), ("TASK_STATE_COMPLETED", "Hello there", ["hello", "Hello there"], []))
    with c.stream("hello") as events:
        seen = events.rest()
    chunks = [e.body for e in seen if e.kind == "artifactUpdate"]
    same({x["artifact"]["artifactId"] for x in chunks}, {"aion:stream-delta"})
    same("".join(text_of(x["artifact"]) for x in chunks), "Hello there")
    same([bool(x.get("lastChunk")) for x in chunks].count(True), 1, "exactly one last chunk")


@each("JavaScript, {}: the streamed text is there once [R003-27]", list(fronts.ALL.items()))
def _(call):
    same(call(shared(), "hello").text, "Hello there")


@each("{}: text of the model in a new message is there once [R003-27]", list(fronts.ALL.items()))
def _(call):
    same(call(shared(), "twice").text, "once")


@test("parallel nodes: one call at a time, and every text is whole")
def _():
    with Client(shared(), RPC1).stream("parallel") as events:
        seen = events.rest()
    shown = ""
    for e in seen:
        if e.kind == "artifactUpdate":
            shown = shown + text_of(e.body["artifact"]) if e.body.get("append") else text_of(e.body["artifact"])
    check(shown in ("left", "right"), shown)
    check(text_of(seen[-1].body["status"]["message"]) in ("left", "right"), seen[-1].body)


@test("a model and emitted metadata inside of a subgraph")
def _():
    task = Client(shared(), RPC1).send("sub").task
    same((task_text(task), task["metadata"]["from"]), ("from inside", "inside"))


@test("the emit functions: files, chunks of a file, data, a message, metadata [R003-28 R003-32 R003-33 R003-34 R003-36 R003-37 R003-38]")
def _():
    task = Client(shared(), RPC1).send("emit").task
    found = {a["name"]: a["parts"] for a in task["artifacts"]}
    same(found["file"][0]["url"], "https://example.com/report.pdf")
    same(b"".join(base64.b64decode(p["raw"]) for p in found["notes.txt"]), b"one two")
    same(found["analysis"][0]["data"], {"status": "success", "results": [1, 2]})
    check("Processing complete" in texts(task), task["history"])
    same((task["metadata"].get("progress"), "aion:network" in task["metadata"]), (100, False))


@test("an outbox is the answer, with the ids of the server; the state has its text in the next turn [R003-11 R003-13 R003-16]")
def _():
    c = Client(shared(), RPC1)
    task = c.send("outbox").task
    parts = task["status"]["message"]["parts"]
    same((parts[0]["text"], parts[1]["data"], task["status"]["message"]["taskId"]), ("from the outbox", {"a": 1}, task["id"]))
    seen = task_text(c.send(m=message("seen", context=task["contextId"])).task)
    check('["ai","from the outbox' in seen, seen)


@test("a message is in the state once, its parts are in the inbox [R003-05 R003-06]")
def _():
    m = message("seen", parts=[{"text": "seen "}, {"text": "both"}, {"data": {"d": 1}}])
    seen = task_text(Client(shared(), RPC1).send(m=m).task)
    check('"messages":[["human","seen both"]]' in seen and '"data":{"d":1}' in seen, seen)


@test("a messageId is accepted once, while the graph runs and after its end; with another content it is refused [R003-07]")
def _():
    with World() as w:
        context, now = new_id("c"), {"returnImmediately": True}
        first = w.client.send(m=message("slow", id="m1", context=context), config=now).task

        def check_again():
            same(w.client.send(m=message("slow", id="m1", context=context), config=now).task["id"], first["id"], "the task")
            refused = w.client.send(m=message("other", id="m1", context=context), config=now)
            refused.expect("InvalidParams")
            check(first["id"] in refused.response.body.decode(), refused)
        check_again()
        soon(lambda: w.trace() == ["first", "slow"], w.trace, 60)
        check_again()
        w.open_gate()
        w.finished(first["id"])
        check_again()
        seen = json.loads(task_text(w.client.send("seen", context=context).task))
        same(seen["messages"], [["human", "slow"], ["ai", "first. "], ["ai", "slow is done"], ["human", "seen"]], "state.messages")
        same(w.trace(), ["first", "slow"], "the nodes that ran")


@test("two messages in one context at the same time run one after the other, and both are in the state")
def _():
    with World() as w:
        context = new_id("c")
        first = w.client.send("slow", context=context, config={"returnImmediately": True}).task
        soon(lambda: w.trace() == ["first", "slow"], w.trace, 60)
        second = w.client.send("seen", context=context, config={"returnImmediately": True}).task
        same(task_text(w.client.send("hello").task), "Hello there", "another context does not wait")
        same(w.client.get(second["id"]).state, "TASK_STATE_WORKING", "the second message")
        w.open_gate()
        w.finished(first["id"])
        seen = json.loads(task_text(w.finished(second["id"])))
        same([text for _, text in seen["messages"]], ["slow", "first. ", "slow is done", "seen"], "state.messages")


@test("a value of the graph's own is CUSTOM in AG-UI and a data part in the AI SDK")
def _():
    found = [f.json["value"] for f in fronts.ag_ui(shared(), "everything").frames if f.json["type"] == "CUSTOM" and "own" in str(f.json)]
    same(found, [{"own": {"step": 1}}], "CUSTOM events")
    found = [f.json["data"]["value"] for f in fronts.ai_sdk(shared(), "everything").frames[:-1] if f.json["type"].startswith("data-") and "own" in str(f.json)]
    same(found, [{"own": {"step": 1}}], "data parts")


@test("calls and results of the graph's own tools are not in the answer, nor in the history")
def _():
    task = Client(shared(), RPC1).send("look").task
    same(texts(task), ["look", "It snows."], "the history")
    for name, call in fronts.ALL.items():
        same(call(shared(), "look").text, "It snows.", name)


@test("an outbox Task is a patch: artifacts extend, metadata merges, ids and routing keys are the server's [R003-12 R003-14 R003-15]")
def _():
    task = Client(shared(), RPC1).send("patch", metadata={"note": 1}).task
    same((texts(task), [a["artifactId"] for a in task["artifacts"]]), (["patch", "first step"], ["table"]), "the patch")
    same((task["metadata"].get("cost"), "aion:network" in task["metadata"], task["id"] == "not mine"), (3, False, False), "metadata and ids")


@test("two questions at the same time are answered by a map of their ids; one text does not answer them")
def _():
    c = Client(shared(), RPC1)
    asked = c.send("both").task
    data = next(p["data"] for p in asked["status"]["message"]["parts"] if "data" in p)
    ids = {i["value"]: i["id"] for i in data["interrupts"]}
    same(sorted(ids), ["A?", "B?"], "the questions")
    again = c.send("x", task=asked["id"], context=asked["contextId"]).task
    same(again["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "after one text")
    answers = {"resume": {ids["A?"]: 0, ids["B?"]: ""}}
    done = c.send("", parts=[{"data": answers}], task=asked["id"], context=asked["contextId"]).task
    seen = json.loads(task_text(c.send("seen", context=done["contextId"]).task))
    same((done["status"]["state"], sorted(text for kind, text in seen["messages"] if kind == "ai")), ("TASK_STATE_COMPLETED", ['A?=0', 'B?=""']), "the answers")


@test("the tools of the caller reach the graph")
def _():
    body = fronts.chat_body("seen", tools=[{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}])
    r = ask(shared().address, "POST", "/v1/chat/completions", body, [("Content-Type", "application/json")])
    check('"tools":["look_up"]' in r.json["choices"][0]["message"]["content"], r.json)


@test("errors: the caller sees no detail; a rejection has its sentence; a process that ends is started again")
def _():
    c = Client(shared(), RPC1)
    task = c.send("bad").task
    same(task["status"]["state"], "TASK_STATE_FAILED")
    check("secret" not in str(task), task)
    task = c.send("bad reject").task
    same((task["status"]["state"], "not on Sundays" in str(task["status"])), ("TASK_STATE_REJECTED", True))
    same(c.send("bad exit").task["status"]["state"], "TASK_STATE_FAILED")
    same(task_text(c.send("hello").task), "Hello there")


@each("an interrupt is a question; {} is killed while it waits, and the answer resumes the graph", KILLS)
def _(kill):
    with World() as w:
        task = w.client.send("ask").task
        same((task["status"]["state"], task["status"]["message"]["parts"][0]["text"]), ("TASK_STATE_INPUT_REQUIRED", "Your name?"))
        kill(w)
        task = w.client.send(m=message("Ann", task=task["id"], context=task["contextId"])).task
        same((task["status"]["state"], task_text(task)), ("TASK_STATE_COMPLETED", "Hello Ann"))


@test("data resumes with the data")
def _():
    c = Client(shared(), RPC1)
    task = c.send("ask").task
    task = c.send(m=message("", parts=[{"data": {"first": "Ann"}}], task=task["id"], context=task["contextId"])).task
    same(task_text(task), 'Hello {"first":"Ann"}')


@each("{} is killed in the middle of a node: the task goes on, finished nodes are not repeated", KILLS)
def _(kill):
    with World() as w:
        task = w.client.send("slow", config={"returnImmediately": True}).task
        soon(lambda: w.trace() == ["first", "slow"], w.trace, 60)
        kill(w)
        w.open_gate()
        same(task_text(w.finished(task["id"])), "slow is done")
        same(w.trace(), ["first", "slow", "slow"])


def folded(events):
    """The text of the stream-delta artifact, as a client has it."""
    text = ""
    for e in events:
        if e.kind == "artifactUpdate":
            text = (text if e.body.get("append") else "") + text_of(e.body["artifact"])
    return text


@each("{} is killed in the middle of a model's stream: a reader has the text once, finished nodes are not repeated", KILLS)
def _(kill):
    with World() as w:
        with w.client.stream("halves") as events:
            events.until(lambda _: folded(events.seen) == "hal", 60)  # the newest chunk waits for the next one: it may be the last
            id = events.seen[0].body["id"]
            kill(w)
            with w.client.subscribe(id, last=events.seen[-1].id) as later:
                w.open_gate()
                seen = events.seen + later.rest(60)
        same((folded(seen), text_of(seen[-1].body["status"]["message"])), ("half and whole", "half and whole"), "the reader's text")
        task = w.finished(id)
        same((texts(task), task.get("artifacts", [])), (["halves", "half and whole"], []), "the task")
        same(w.trace(), ["first", "halfway", "halfway"], "the nodes that ran")


@test("a cancel ends the run, and the conversation goes on")
def _():
    with World() as w:
        task = w.client.send("slow", config={"returnImmediately": True}).task
        soon(lambda: w.trace() == ["first", "slow"], w.trace, 60)
        same(w.client.cancel(task["id"]).task["status"]["state"], "TASK_STATE_CANCELED")
        same(task_text(w.client.send(m=message("hello", context=task["contextId"])).task), "Hello there")


@test("200 conversations at once: each has its answer")
def _():
    s, failed, left = shared(), [], list(range(200))
    lock = threading.Lock()

    def work():
        c = Client(s, RPC1)
        while True:
            with lock:
                if not left:
                    return
                n = left.pop()
            try:
                answer = task_text(c.send(m=message("seen", parts=[{"text": f"seen {n}"}]), wait=120).task)
                if f'["human","seen {n}"]]' not in answer:
                    failed.append((n, answer))
            except Exception as e:  # pylint: disable=broad-except
                failed.append((n, repr(e)))

    threads = [threading.Thread(target=work) for _ in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    same(failed, [])
