"""kill -9 of a server with an llm agent: the task goes on by itself, tools run once, the text is there once.

DRAGOMAN_KILLS says how often at random moments (10)."""
import os
import sys
import threading
import time

from lib import fronts, models
from lib.a2a import RPC1, Client, artifact_texts, task_text
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
