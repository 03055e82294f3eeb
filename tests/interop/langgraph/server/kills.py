"""Workers and servers are killed with -9; tasks go on from the stored checkpoints, and finished nodes do not run again."""
import os
import signal

import common
from lib.a2a import RPC1, Client, message, new_id, task_text
from lib.http import Closed
from lib.server import folder
from lib.tap import Failure, check, each, same, soon, test

COMPLETED, ASKS, WORKING = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_WORKING"


class Marks:
    """The file in which nodes write that they ran."""

    def __init__(self):
        self.path = os.path.join(folder(), "marks")

    def lines(self):
        try:
            with open(self.path, encoding="utf-8") as f:
                return f.read().split()
        except FileNotFoundError:
            return []

    def go(self):
        with open(self.path + ".go", "w", encoding="utf-8"):
            pass


def kill_worker(s):
    pids = common.workers_of(s)
    same(len(pids), 1, "workers")
    os.kill(pids[0], signal.SIGKILL)


def kill_server(s):
    s.kill()
    s.restart()


KILLS = [("the worker", kill_worker), ("the server", kill_server)]


def own():
    return common.own(store=f"sqlite:{folder()}/store.db")


def ended(c, task):
    def state():
        try:
            t = c.get(task).task
        except (OSError, Failure, Closed):
            return None
        return t if t["status"]["state"] not in (WORKING, "TASK_STATE_SUBMITTED") else None
    return soon(state, "the task does not end", seconds=90)


@each("{} is killed in the middle of a node: the first node does not run again, the answer is whole [R003-21]", KILLS, timeout=200)
def _(kill):
    marks = Marks()
    with own() as s:
        c = Client(s, RPC1)
        t = c.send(f"steps {marks.path}", config={"returnImmediately": True}).task
        soon(lambda: marks.lines() == ["first", "wait"], f"marks: {marks.lines()}", seconds=60)
        kill(s)
        soon(lambda: marks.lines() == ["first", "wait", "wait"], f"marks: {marks.lines()}", seconds=90)
        marks.go()
        done = ended(c, t["id"])
        same((done["status"]["state"], task_text(done)), (COMPLETED, "All is done, m-."), "the task")
        same(marks.lines(), ["first", "wait", "wait", "last"], "the nodes that ran")
        second = c.send("transcript", context=t["contextId"]).task
        same([p.split(":")[0] for p in task_text(second).split(" | ")], ["human", "ai", "ai", "human"], "the transcript")


@each("{} is killed while a question is open: the answer finishes the task [R003-06]", KILLS, timeout=200)
def _(kill):
    with own() as s:
        c = Client(s, RPC1)
        t = c.send("city").task
        same(t["status"]["state"], ASKS, "the state")
        kill(s)
        done = c.send("Bern", task=t["id"], context=t["contextId"], wait=90).task
        same((done["status"]["state"], task_text(done)), (COMPLETED, "Going to Bern, Bern"), "the task")


@each("{} is killed in the middle of a stream: a client that comes back sees the end, the text once", KILLS, timeout=200)
def _(kill):
    marks = Marks()
    with own() as s:
        c = Client(s, RPC1)
        with c.stream(f"steps {marks.path}") as events:
            events.until(lambda e: e.kind == "artifactUpdate" and "waiting" in str(e.payload))
            task = events.seen[0].body["id"]
            kill(s)
            marks.go()
            try:
                events.rest(seconds=90)
            except (OSError, Closed, Failure):
                pass
        done = ended(c, task)
        same((done["status"]["state"], task_text(done)), (COMPLETED, "All is done, m-."), "the task")
        same(marks.lines().count("first"), 1, "runs of the first node")
        same(len([m for m in done["history"] if "All is done" in str(m)]), 1, "answers in the history")


@test("a node that ends its process every time: the task fails, other tasks of the worker go on", timeout=200)
def _():
    s = common.own()
    with s:
        c = Client(s, RPC1)
        t = c.send("leave", wait=120).task
        same(t["status"]["state"], "TASK_STATE_FAILED", "the state")
        same(c.send("tokens", wait=90).state, COMPLETED, "the next")


@test("the same message after a crash is still known: it does not enter the transcript again [R003-07]", timeout=200)
def _():
    with own() as s:
        c = Client(s, RPC1)
        m = message("tokens", context=new_id("context"))
        first = c.send(m=m).task
        kill_server(s)
        same(c.send(m=m).task["id"], first["id"], "the task of the second send")
        same(task_text(c.send("transcript", context=m["contextId"], wait=90).task), "human:tokens | ai:Hello there friend | human:transcript", "the transcript")


@test("SIGTERM while a graph waits: the server ends in time, and the next one goes on", timeout=200)
def _():
    marks = Marks()
    s = own()
    with s:
        c = Client(s, RPC1)
        t = c.send(f"steps {marks.path}", config={"returnImmediately": True}).task
        soon(lambda: marks.lines() == ["first", "wait"], f"marks: {marks.lines()}", seconds=60)
        status = s.stop(60)
        check(status == 0, s.last_words())
        marks.go()
        s.restart()
        done = ended(c, t["id"])
        same((done["status"]["state"], marks.lines().count("first"), marks.lines()[-1]), (COMPLETED, 1, "last"), "the task")


if __name__ == "__main__":
    common.main()
