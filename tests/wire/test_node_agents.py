"""Functions in JavaScript (js/agent.js) behind a server, by all protocols, with processes that are killed."""
import os
import signal
import subprocess

from lib import fronts
from lib.a2a import RPC1, Client, message, task_text
from lib.server import ROOT, Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "node_agent.mjs")


def config(**env):
    command = ["node", os.path.join(ROOT, "js", "worker.js"), AGENT]
    return settings(agents=[agent("exec", id="demo", settings={"mode": "worker", "command": command, "env": env})])


def client():
    needs_ours()
    return Client(server(None, config=config()), RPC1)


class World:
    """A server of its own, whose worker and which itself can be killed."""

    def __init__(self):
        needs_ours()
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

    def restart(self):
        self.server.kill()
        self.server.restart()

    def finished(self, id):
        soon(lambda: self.client.get(id).state == "TASK_STATE_COMPLETED", lambda: (self.client.get(id).task["status"], self.server.log[-5:]), 60)
        return self.client.get(id).task

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()


def answer(c, task, text):
    return c.send(m=message(text, task=task["id"], context=task["contextId"])).task


@each("JavaScript: the same text by {}", list(fronts.ALL.items()))
def _(call):
    needs_ours()
    told = call(server(None, config=config()), "count 5")
    same(told.text.strip(), "0 1 2 3 4", told.frames or told.body)


@test("the history reaches the function, and files reach the caller")
def _():
    c = client()
    first = c.send("count 1").task
    second = c.send(m=message("history", context=first["contextId"])).task
    same(task_text(second), "user:count 1|agent:0 ")
    same([(a["name"], a["parts"][0]["filename"]) for a in c.send("file").task["artifacts"]], [("a.txt", "a.txt")])


@test("ends: callers read the sentences that are for them")
def _():
    c = client()
    for text, state, words in (("fail", "FAILED", "no paper"), ("reject", "REJECTED", "not on Sundays"), ("error", "FAILED", None), ("exit", "FAILED", None)):
        task = c.send(text).task
        same(task["status"]["state"], "TASK_STATE_" + state)
        check("secret" not in str(task), task)
        check(words is None or words in str(task["status"]), task)
    same(task_text(c.send("count 2").task), "0 1 ", "the worker was started again")


@test("a message to a task that works reaches the function")
def _():
    c = client()
    with c.stream("steer") as events:
        seen = [events.next()]
        while "waiting" not in str(seen[-1].body):
            seen.append(events.next())
        update = seen[-1].body
        c.send(m=message("more", task=update["taskId"], context=update["contextId"]), config={"returnImmediately": True})
        events.rest()
    same(task_text(c.get(update["taskId"]).task), "waiting, got more")


@test("questions are answered after the worker and the server were killed; steps are not repeated")
def _():
    with World() as w:
        task = w.client.send("ask").task
        same((task["status"]["state"], task["status"]["message"]["parts"][0]["text"]), ("TASK_STATE_INPUT_REQUIRED", "Your name?"))
        w.kill_worker()
        task = answer(w.client, task, "Ann")
        same(task["status"]["message"]["parts"][0]["text"], "Which color?")
        w.restart()
        task = answer(w.client, task, "blue")
        same(task["status"]["state"], "TASK_STATE_COMPLETED")
        check("Ann likes blue and 7." in str(task["status"]), task["status"])
        same(w.trace(), ["step"])


@each("{} killed in the middle of a turn: it runs again, the text is there once", [("the worker", World.kill_worker), ("the server", World.restart)])
def _(kill):
    with World() as w:
        task = w.client.send("slow", config={"returnImmediately": True}).task
        soon(lambda: w.trace() == ["slow 1"], w.trace, 60)
        kill(w)
        w.open_gate()
        task = w.finished(task["id"])
        same((task_text(task), ["".join(p["text"] for p in a["parts"]) for a in task["artifacts"]]), ("one two", ["one two"]))
        same(w.trace(), ["slow 1", "slow 1"])


@test("a cancel aborts the signal of the turn")
def _():
    with World() as w:
        task = w.client.send("slow", config={"returnImmediately": True}).task
        soon(lambda: w.trace() == ["slow 1"], w.trace, 60)
        same(w.client.cancel(task["id"]).task["status"]["state"], "TASK_STATE_CANCELED")
        same(task_text(w.client.send("count 1").task), "0 ")
