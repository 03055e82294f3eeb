"""kill -9 of a server with llm agents, after every commit of its store and at random moments, with tools that count their runs.

DRAGOMAN_KILLS says how often at random (20; `make soak`: 200)."""
import json
import os

import threading
import time
import traceback

from lib import kills
from lib.a2a import RPC1, TERMINAL, Client, artifact_texts, new_id, task_text
from lib.http import Closed, ask
from lib.kills import READERS, Runs
from lib.server import Server, agent, folder, needs_ours, settings, needs_sqlite
from lib.tap import Failure, check, each, same, soon, test
from test_resume import rng

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "20"))
TEXT = "one two three four five six seven eight"
UNKNOWN = "outcome of this call is unknown"


class World:
    """An assistant with tools of each kind, and one that it invokes."""

    def __init__(self, seconds=0.0):
        needs_ours("only Dragoman has this agent")
        self.folder, self.first = folder(), {}  # first: agents and first messages of the tasks that were listed
        self.log, self.store = self.folder + "/runs", f"sqlite:{self.folder}/tasks.db"
        tools = [kills.exec_tool("step", self.log, seconds), kills.exec_tool("again", self.log, seconds, idempotent=True), "t", {"agent": "desk"}]
        self.config = settings(agents=[
            agent("llm", id="assistant", settings={"base_url": "mock:", "tools": tools, "ask_user": True, "request_auth": True}),
            agent("llm", id="desk", settings={"base_url": "mock:", "tools": [kills.exec_tool("part", self.log, seconds)]})])
        self.config["mcp"] = {"t": kills.mcp_server(self.log)}

    def start(self, env=None):
        self.server = Server(None, store=self.store, config=self.config, env=env)
        self.client = Client(self.server, RPC1, base="/agents/assistant")
        return self.server


def prompt(tag, pace=1):
    part = json.dumps({"tag": tag})
    return f"call step {part} call again {part} then call t__count {part} then call desk " + \
        json.dumps({"message": f"call part {part}"}) + f" then slow {pace} {TEXT}"


def results(task):
    return {r["name"]: r for m in task["history"] for p in m["parts"] for r in p.get("data", {}).get("tool_results", [])}


def check_end(w, task, tag):
    """After a restart and the end of the task; the number of calls whose outcome is unknown."""
    what, runs, unknown = f"{tag} {task['id']}", Runs(w.log), 0
    same(task["status"]["state"], "TASK_STATE_COMPLETED", what)
    same((artifact_texts(task), task_text(task)), ([TEXT], TEXT), f"{what}: the text")
    ids = [m["messageId"] for m in task["history"]]
    same(len(set(ids)), len(ids), f"{what}: messages of the history")
    same(len([m for m in task["history"] if m["role"] == "ROLE_USER"]), 1, f"{what}: messages of the user")
    for tool in ("step", "mcp", "part"):
        check(len(runs.of(tool, tag)) <= 1, f"{what}: {tool} ran {len(runs.of(tool, tag))} times")
    again = runs.of("again", tag)
    check(again and len(set(again)) == 1, f"{what}: the idempotent tool ran with {again}")
    found = results(task)
    same(sorted(found), ["again", "desk", "step", "t__count"], f"{what}: results")
    for name, r in found.items():
        if UNKNOWN in json.dumps(r["output"]):
            check(name != "again", f"{what}: {name} {r}")
            unknown += 1
        else:
            check(f"done {tag}" in json.dumps(r["output"]) or name == "desk", f"{what}: {name} {r}")
            check(name in ("again", "desk") or len(runs.of({"t__count": "mcp"}.get(name, name), tag)) == 1, f"{what}: {name} did not run")
    return unknown


def tasks_of(w, id, tag):
    """The tasks of an agent whose first message has the tag."""
    c, token = Client(w.server, RPC1, base=f"/agents/{id}"), None
    while token != "":
        page = c.list(pageSize=100, **({"pageToken": token} if token else {})).value
        new = [t["id"] for t in page["tasks"] if t["id"] not in w.first]
        for task in new:
            w.first[task] = (id, c.get(task).task["history"][0]["parts"][0]["text"])
        token = page["nextPageToken"] if new else ""  # the newest are listed first
    return [task for task, (of, text) in w.first.items() if of == id and f'"{tag}"' in text]


def wait_for_end(w, id):
    soon(lambda: w.client.get(id).state in TERMINAL, lambda: w.client.get(id).task["status"], 90, step=0.05)
    return w.client.get(id).task


# ---- after every commit ---------------------------------------------------------------------------------------------------

@test("killed after every commit of the store: the task goes on without being asked, tools run once, the text is there once "
      "[R002-32] [R002-33] [R002-37]", timeout=900)
def _():
    needs_sqlite("it counts the syncs of its file")
    first, last, n, unknown = None, None, 0, 0
    w = World()
    count = w.folder + "/commits"
    with w.start(kills.at_commit(0, count)):
        first = kills.commits(count) if os.path.exists(count) else 0
        check_end(w, w.client.send(prompt("whole")).task, "whole")
        time.sleep(0.3)
        last = kills.commits(count)
    check(last - first > 8, f"{first} {last}")
    for at in range(first + 1, last + 1):
        w = World()
        tag = f"commit-{at}"
        with w.start(kills.at_commit(at, count)) as s:
            sent = threading.Thread(target=send_quietly, args=(w, tag), daemon=True)
            sent.start()
            if not killed(s, 15):
                continue  # it made fewer commits than the first one
            sent.join(10)
            s.env = {}
            s.restart()
            ids = tasks_of(w, "assistant", tag)
            check(len(ids) <= 1, ids)
            for id in ids:
                unknown += check_end(w, wait_for_end(w, id), tag)
                check(len(tasks_of(w, "desk", tag)) <= 1, "the agent was invoked twice")
                n += 1
    check(n > (last - first) // 2, f"{n} of {last - first}")
    print(f"# {n} kills, {unknown} calls with an unknown outcome")


def killed(server, seconds):
    try:
        server.process.wait(seconds)
    except Exception:
        return False
    server.kill()
    return True


def send_quietly(w, tag):
    try:
        w.client.send(prompt(tag))
    except (Closed, ConnectionError, OSError, Failure):
        pass


# ---- at random moments ----------------------------------------------------------------------------------------------------------

@test(f"kill -9 at {KILLS} random moments: each task finishes, default tools run once, idempotent ones at least once, and clients "
      "of every protocol have the text once [R002-33] [R002-37]", timeout=180 + 60 * KILLS)
def _():
    pick, totals = rng("llm kills"), {"tasks": 0, "came back": 0, "unknown": 0, "repeated": 0}
    w = World(0.05)
    with w.start() as s:
        readers = []
        began = time.monotonic()
        in_parallel(read_one, [(kind, s, new_id("whole"), readers) for kind in READERS])
        for r in readers:
            check_reader(w, r, totals)
        took = time.monotonic() - began
        for n in range(KILLS):
            readers = []
            threads = in_parallel(read_one, [(kind, s, new_id(f"k{n}"), readers) for kind in READERS], wait=False)
            time.sleep(pick.random() * took)
            s.kill()
            for t in threads:
                t.join(60)
                check(not t.is_alive(), "a stream does not end")
            s.restart()
            in_parallel(come_back, [(r,) for r in readers if r.is_cut and r.frames])
            for r in readers:
                check_reader(w, r, totals)
    print("# " + ", ".join(f"{v} {k}" for k, v in totals.items()))


def read_one(kind, server, tag, readers):
    try:
        r = kind(server, "assistant", prompt(tag, 60))
    except (Closed, ConnectionError, OSError, Failure):
        return
    r.tag = tag
    r.is_cut = not r.read()
    readers.append(r)


def come_back(r):
    try:
        r.come_back()
    except Exception:
        r.fault = traceback.format_exc()


def in_parallel(function, arguments, wait=True):
    threads = [threading.Thread(target=function, args=a, daemon=True) for a in arguments]
    for t in threads:
        t.start()
    for t in threads if wait else ():
        t.join(90)
        check(not t.is_alive(), "a client does not end")
    return threads


def check_reader(w, r, totals):
    ids = tasks_of(w, "assistant", r.tag)
    check(len(ids) <= 1, f"{r.name}: {ids}")
    check(ids or not r.frames, f"{r.name}: its task is missing")
    if not ids:
        return
    task = wait_for_end(w, ids[0])
    totals["tasks"] += 1
    totals["unknown"] += check_end(w, task, r.tag)
    totals["repeated"] += len(Runs(w.log).of("again", r.tag)) - 1
    same(len(tasks_of(w, "desk", r.tag)) <= 1, True, "invocations")
    if r.frames:
        check(not r.fault, f"{r.name}: {r.fault}")
        same(r.text(), TEXT, f"{r.name}: the text of the client")
        totals["came back"] += r.is_cut
