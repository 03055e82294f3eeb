"""kill -9 of a server with an llm agent: the task goes on by itself, tools run once, the text is there once.

DRAGOMAN_KILLS says how often at random moments (10)."""
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

from lib import fronts, kills, models
from lib.a2a import RPC1, Client, artifact_texts, message, task_text
from lib.http import ask
from lib.models import Upstream, calls, text
from lib.server import Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test
from test_resume import rng

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "10"))
STEPS = 3  # calls of the tool, one per iteration
# appends a line with the key of its call, then waits for a file if its argument names one
TOOL = """import json, os, sys, time
a = json.load(sys.stdin)
with open(a["log"], "a") as f: f.write(os.environ["DRAGOMAN_CALL_ID"] + "\\n")
while a.get("until") and not os.path.exists(a["until"]): time.sleep(0.02)
print("done", a["n"])
"""
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}, "log": {"type": "string"}, "until": {"type": "string"}},
          "required": ["n", "log"]}


class World:
    """A scripted model that calls the tool STEPS times and then answers, and a server in front of it."""

    def __init__(self, idempotent=False):
        needs_ours("only Dragoman has this agent")
        self.folder, self.hold, self.released, self.until = folder(), None, threading.Event(), {}
        self.log = self.folder + "/calls"
        self.up = Upstream(self.script)
        tool = {"exec": {"name": "step", "description": "a step", "command": [sys.executable, "-c", TOOL], "parameters": SCHEMA,
                         "idempotent": idempotent}}
        self.server = Server(None, store=f"sqlite:{self.folder}/tasks.db", config=settings(agents=[
            agent("llm", id="assistant", settings={"base_url": self.up.url, "model": "m", "tools": [tool]})]))
        self.client = Client(self.server, RPC1)

    def script(self, body, n):
        done = len(models.results_of(body))
        gate = (lambda h: self.released.wait(60)) if done == self.hold and not self.released.is_set() else None
        if done < STEPS:
            arguments = {"n": done, "log": self.log, **({"until": self.until[done]} if done in self.until else {})}
            return calls(("step", arguments), words=f"step {done} ", gate=gate)
        return text("all done", gate=gate)

    def ran(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as f:
            return f.read().split()

    def waiting_at(self, n):
        return any(len(models.results_of(b)) == n for b in self.up.bodies())

    def finished(self, id):
        soon(lambda: self.client.get(id).state == "TASK_STATE_COMPLETED", lambda: self.client.get(id).task["status"], 60)
        return self.client.get(id).task

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.released.set()
        self.server.__exit__()


@each("killed at the model call of iteration {}: the task goes on without being asked, tools ran once, the text is there once "
      "[R002-32] [R002-33] [R002-37]", [(str(n + 1), n) for n in range(STEPS + 1)])
def _(n):
    with World() as w:
        w.hold = n
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(lambda: w.waiting_at(n), "the model was not called")
        w.server.kill()
        w.released.set()
        w.server.restart()
        done = w.finished(t["id"])
        same(len(w.ran()), STEPS, "runs of the tool")
        same(len(set(w.ran())), STEPS, "keys of the calls")
        same(artifact_texts(done), [f"step {i} " for i in range(STEPS)] + ["all done"], "the texts")
        check(task_text(done).endswith("all done"), task_text(done))
        same(len([m for m in done["history"] if m["role"] == "ROLE_USER"]), 1, "messages of the user")


def killed_in_tool(w):
    """Kills the server while the second tool runs; the id of the task."""
    w.until[1] = w.folder + "/go"
    t = w.client.send("go", config={"returnImmediately": True}).task
    soon(lambda: len(w.ran()) == 2, "the tool was not started")
    w.server.kill()
    with open(w.until[1], "w", encoding="utf-8"):
        pass
    w.server.restart()
    return t["id"]


@test("a server that cannot listen leaves the tasks of the one before alone")
def _():
    with World() as w:
        w.hold = 1
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(lambda: w.waiting_at(1), "the model was not called")
        w.server.kill()
        w.released.set()
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            w.server.listen = f"127.0.0.1:{holder.getsockname()[1]}"
            calls_before = len(w.up.bodies())
            p = subprocess.run(w.server.command(), capture_output=True, text=True, timeout=60, check=False)
        check("already in use" in p.stderr, p.stderr)
        same(p.returncode, 1, p.stderr)  # not a sanitizer's
        same(len(w.up.bodies()), calls_before, "calls of the model")
        w.server.restart()
        w.finished(t["id"])
        same(len(w.ran()), STEPS, "runs of the tool")


@test("killed while a tool runs: the tool is not run again, and the model is informed")
def _():
    with World() as w:
        w.finished(killed_in_tool(w))
        same((len(w.ran()), len(set(w.ran()))), (STEPS, STEPS), "runs of the tool")
        results = models.results_of(w.up.bodies()[-1])
        check("done" not in results[1][1], results)


@test("killed while an idempotent tool runs: it is run again, with the same key")
def _():
    with World(idempotent=True) as w:
        w.finished(killed_in_tool(w))
        same((len(w.ran()), len(set(w.ran()))), (STEPS + 1, STEPS), "runs of the tool")
        check(all("done" in r for _, r in models.results_of(w.up.bodies()[-1])), w.up.bodies()[-1])


@test("killed in the middle of a text: a client that reads on has the text once")
def _():
    with World() as w:
        w.up.script = lambda body, n: text("one two three four", pause=0.3) if n == 0 else text("one two three four")
        with w.client.stream("go") as events:
            events.until(lambda e: e.kind == "artifactUpdate")
            before = events.seen
            w.server.kill()
        id = before[0].body["id"]
        w.server.restart()
        done = w.finished(id)
        same((artifact_texts(done), task_text(done)), (["one two three four"], "one two three four"), "the text")
        with w.client.subscribe(id, last=before[-1].id) as events:
            seen = before + events.rest(60)
        folded = ""
        for e in seen:
            if e.kind == "artifactUpdate":
                folded = (folded if e.body.get("append") else "") + "".join(p["text"] for p in e.body["artifact"]["parts"])
        same(folded, "one two three four", "the text of the client")


@test("killed in the middle of a text: a response of OpenAI's Responses has the text once")
def _():
    with World() as w:
        w.up.script = lambda body, n: text("one two three four", pause=0.3) if n == 0 else text("one two three four")
        with fronts.stream(w.server, "/v1/responses", {"model": "assistant", "input": "go", "stream": True}) as frames:
            first = frames.next().json["response"]["id"]
            while "delta" not in frames.next().json["type"]:
                pass
            w.server.kill()
        w.server.restart()

        def response():
            return ask(w.server.address, "GET", f"/v1/responses/{first}").json
        soon(lambda: response()["status"] == "completed", lambda: response(), 60)
        same(fronts.output_text(response()), "one two three four", "the text")


@test("a question that waits survives a restart")
def _():
    needs_ours("only Dragoman has this agent")
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[
            agent("llm", id="assistant", settings={"base_url": "mock:", "ask_user": True})])) as s:
        c = Client(s, RPC1)
        t = c.send("ask which colour?").task
        s.kill()
        s.restart()
        t = c.send("green", task=t["id"]).task
        same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")
        check("green" in task_text(t), task_text(t))


@test("a server that stops leaves the task for the next one")
def _():
    with World() as w:
        w.hold = 1
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(lambda: w.waiting_at(1), "the model was not called")
        same(w.server.stop(30), 0, "the status of the server")
        w.released.set()
        w.server.restart()
        w.finished(t["id"])
        same(len(w.ran()), STEPS, "runs of the tool")


def records(s, task, until=lambda r: False):
    """The records of a task: up to this one, or up to its end."""
    found = []
    with urllib.request.urlopen(f"{s.url}/debug/tasks/{task}/records", timeout=60) as answer:
        for line in answer:
            found.append(json.loads(line)["record"])
            if until(found[-1]):
                break
    return found


def is_start(record):
    return record.get("kind") == "internal:tool-start"


@test("the start of a tool is stored before the tool runs, and its unknown outcome behind it")
def _():
    with World() as w:
        w.until[0] = w.folder + "/go"
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(w.ran, "the tool was not started")
        start = records(w.server, t["id"], is_start)[-1]  # records that clients see are stored
        w.server.kill()
        with open(w.until[0], "w", encoding="utf-8"):
            pass
        w.server.restart()
        w.finished(t["id"])
        of_call = [r for r in records(w.server, t["id"]) if r.get("toolCallId") == start["toolCallId"]]
        same([r["kind"] for r in of_call], ["internal:tool-start", "internal:tool-complete"], "records of the call")
        check(of_call[1]["success"] is False, of_call)
        check("unknown" in models.results_of(w.up.bodies()[-1])[0][1], models.results_of(w.up.bodies()[-1]))


TEXT = "one two three four five six"


@each("killed in the middle of a text, and the client comes back: {}", [(r.name, r, n) if n == 1 else (f"{r.name}, after {n} words", r, n)
                                                                         for r in kills.READERS for n in (1, 3)])
def _(kind, words):
    needs_ours("only Dragoman has this agent")
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[agent("llm", id="assistant", settings={"base_url": "mock:"})])) as s:
        r = kind(s, "assistant", f"slow 150 {TEXT}")
        check(r.read(lambda f: r.has_word(f, TEXT.split()[words - 1])), "no text")
        s.kill()
        r.read()
        r.is_cut = True
        s.restart()
        r.come_back()
        same(r.text(), TEXT, "the text of the client")
        r.check_restart(words)


@test("an approval that waits survives kill -9")
def _():
    needs_ours("only Dragoman has this agent")
    log = folder() + "/runs"
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[agent("llm", id="assistant", settings={
            "base_url": "mock:", "tools": [kills.exec_tool("step", log)], "approve": "always"})])) as s:
        c = Client(s, RPC1)
        t = c.send('call step {"tag": "x"} then echo ready').task
        same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
        s.kill()
        s.restart()
        same(c.get(t["id"]).task["status"], t["status"], "the question after the restart")
        request, = [p["data"] for p in t["status"]["message"]["parts"] if p.get("data", {}).get("type") == "approval-request"]
        check(not kills.Runs(log).lines, "it ran without approval")
        t = c.send(m=message(task=t["id"], parts=[{"data": {"type": "approval", "id": request["id"], "approved": True}}])).task
        same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "ready"), "the end")
        same(len(kills.Runs(log).of("step", "x")), 1, "runs of the tool")


def user_texts(body):
    return [m["content"] for m in body["messages"] if m["role"] == "user"]


@test("a message to a task that works survives kill -9 and reaches the model once")
def _():
    with World(idempotent=True) as w:
        w.until[0] = w.folder + "/go"
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(w.ran, "the tool was not started")
        w.client.send("and quickly", task=t["id"], config={"returnImmediately": True})
        w.server.kill()
        with open(w.until[0], "w", encoding="utf-8"):
            pass
        w.server.restart()
        done = w.finished(t["id"])
        same(user_texts(w.up.bodies()[-1]), ["go", "and quickly"], "messages of the user in the last request")
        same([p["text"] for m in done["history"] if m["role"] == "ROLE_USER" for p in m["parts"]], ["go", "and quickly"], "the history")


@test("a message to a task that works: the next task has each text once")
def _():
    with World() as w:
        w.until[0] = w.folder + "/go"
        t = w.client.send("go", config={"returnImmediately": True}).task
        soon(w.ran, "the tool was not started")
        w.client.send("and quickly", task=t["id"], config={"returnImmediately": True})
        with open(w.until[0], "w", encoding="utf-8"):
            pass
        done = w.finished(t["id"])
        w.up.script = lambda body, n: text("fine")
        w.client.send("later", context=done["contextId"])
        all = json.dumps(w.up.bodies()[-1]["messages"])
        for words in [f"step {i} " for i in range(STEPS)] + ["all done", "and quickly"]:
            same(all.count(json.dumps(words)[1:-1]), 1, f"{words!r} in the conversation {all}")


@test("killed while an agent of this server works: it is not invoked again")
def _():
    needs_ours("only Dragoman has this agent")
    released = threading.Event()
    inner = Upstream(lambda body, n: text("from the desk", gate=None if released.is_set() else lambda h: released.wait(60)))
    up = Upstream(lambda body, n: text("done") if models.results_of(body) else calls(("desk", {"message": "go"})))
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[
            agent("llm", id="assistant", settings={"base_url": up.url, "model": "m", "tools": [{"agent": "desk"}]}),
            agent("llm", id="desk", settings={"base_url": inner.url, "model": "m"})])) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: inner.requests, "the agent was not invoked")
        s.kill()
        released.set()
        s.restart()
        soon(lambda: c.get(t["id"]).state == "TASK_STATE_COMPLETED", lambda: c.get(t["id"]).task["status"], 60)
        same(models.results_of(up.bodies()[-1])[0][1], "from the desk", "the result")
        same(Client(s, RPC1, base="/agents/desk").list().value["totalSize"], 1, "tasks of the agent")


@test(f"killed at {KILLS} random moments: every task finishes, no tool runs twice", timeout=120 + 20 * KILLS)
def _():
    pick = rng("llm-crash")
    with World() as w:
        ids, kills = [], 0
        while kills < KILLS:
            ids += [w.client.send("go", config={"returnImmediately": True}).task["id"] for _ in range(3)]
            time.sleep(pick.random() * 0.6)
            w.server.kill()
            kills += 1
            w.server.restart()
        for id in ids:
            done = w.finished(id)
            check(task_text(done).endswith("all done"), task_text(done))
            texts = artifact_texts(done)
            same(len(texts), len(set(texts)), f"texts of {id}: {texts}")
        ran = w.ran()
        same(len(ran), len(set(ran)), "runs of the tool, and keys of its calls")
