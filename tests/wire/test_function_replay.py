"""Functions of both languages that run again after a crash send nothing twice; journals and files above a line."""
import base64
import glob
import json
import os
import signal
import subprocess
import sys
import time

from lib import fronts
from lib.a2a import RPC1, Client
from lib.http import ask as ask_http
from lib.server import ROOT, Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test

LIB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
LANGUAGES = {"Python": ([sys.executable, "-m", "dragoman.worker", os.path.join(LIB, "replay_agent.py")], "dragoman.worker"),
             "JavaScript": (["node", os.path.join(ROOT, "js", "worker.js"), os.path.join(LIB, "replay_agent.mjs")], "worker.js")}


class World:
    """A server of its own; it and its worker can be killed."""

    def __init__(self, language, store="sqlite", **more):
        needs_ours()
        self.folder = folder()
        command, self.pattern = LANGUAGES[language]
        config = settings(agents=[agent("exec", id="demo", settings={"mode": "worker", "command": command,
                                                                     "env": {"PYTHONPATH": os.path.join(ROOT, "python")}}, **more)])
        config["inspect"] = "owner"
        self.gate = os.path.join(self.folder, "gate")
        self.server = Server(None, store="memory:" if store == "memory" else f"sqlite:{self.folder}/tasks.db", config=config)
        self.client = Client(self.server, RPC1)

    def kill_worker(self):
        out = subprocess.run(["pgrep", "-P", str(self.server.process.pid), "-f", self.pattern], capture_output=True, text=True, check=False).stdout
        pids = [int(p) for p in out.split()]
        check(pids, "there is a worker")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def kill_server(self):
        self.server.kill()
        self.server.restart()

    def open_gate(self):
        with open(self.gate, "w", encoding="utf-8"):
            pass

    def records(self, task):
        r = ask_http(self.server.address, "GET", f"/debug/tasks/{task}/records")
        return [json.loads(line)["record"] for line in r.body.decode().splitlines()]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop()


def events_of(records):
    """What the records say, in words; chunks of the answer are left out."""
    found = []
    for r in records:
        status = r.get("statusUpdate", {}).get("status", {})
        for part in (status.get("message") or {}).get("parts", []):
            if status["state"] == "TASK_STATE_WORKING":
                found.append("progress " + part["data"]["text"])
        kind = r.get("kind", "")
        if kind.startswith("internal:") and kind != "internal:message":
            found.append(kind[9:] + " " + r.get("toolName", r.get("toolCallId", r.get("name", ""))) if "tool" in kind else kind[9:])
        if "artifactUpdate" in r and not r["artifactUpdate"]["artifact"]["artifactId"].startswith("answer"):
            a = r["artifactUpdate"]["artifact"]
            found.append("artifact " + (a.get("name") or a["artifactId"]))
    return found


REPORT = ["progress first", "reasoning", "tool-start look_up", "tool-complete", "custom", "state", "artifact chart", "artifact chart",
          "artifact small.txt", "artifact large.bin", "tool-start slow", "tool-complete", "artifact chart", "progress second"]
CASES = [(f"{language}, {name}", language, kills, text, steps) for language in LANGUAGES
         for name, kills, text, steps in (("the worker is killed", ("worker",), "report", False),
                                          ("the worker is killed behind a step", ("worker",), "report", True),
                                          ("the worker is killed behind an answer", ("worker",), "asks", False),
                                          ("the server is killed", ("server",), "report", True),
                                          ("the server is killed behind an answer", ("server",), "asks", True),
                                          ("the worker, then the server is killed", ("worker", "server"), "report", False))]


@each("output that was sent is not sent again: {}", CASES)
def _(language, kills, text, steps):
    with World(language, working_message="One moment" if steps else None) as w:
        c, metadata = w.client, {"steps": True} if steps else None
        task = c.send(f"{text} {w.gate}", metadata=metadata, config={"returnImmediately": True}).task["id"]
        if text == "asks":
            soon(lambda: c.get(task).state == "TASK_STATE_INPUT_REQUIRED", "no question", 20)
            c.send("this", task=task, config={"returnImmediately": True})
        for n, kill in enumerate(kills, 1):
            soon(lambda n=n: len(glob.glob(w.gate + ".*")) == n, lambda: (c.get(task).task["status"], w.server.log[-5:]), 30)
            time.sleep(0.3)  # the last events have arrived
            w.kill_worker() if kill == "worker" else w.kill_server()
            c = w.client = Client(w.server, RPC1)
        w.open_gate()
        soon(lambda: c.get(task).state == "TASK_STATE_COMPLETED", lambda: (c.get(task).task["status"], w.server.log[-5:]), 20)
        before = ["progress One moment"] * (2 if text == "asks" else 1) if steps else []  # once for each message
        got = [e for e in events_of(w.records(task)) if e != "progress before the question"]
        same([e.replace("tool-complete look_up", "tool-complete").split(" call-")[0] for e in got], before + REPORT, "events")
        ids = [(r["kind"], r["toolCallId"]) for r in w.records(task) if r.get("kind", "").startswith("internal:tool")]
        same([i for _, i in ids], [ids[0][1], ids[0][1], ids[2][1], ids[2][1]], "ids of calls")
        artifacts = {a.get("name") or a["artifactId"]: a["parts"] for a in c.get(task).task["artifacts"]}
        same(artifacts["chart"], [{"text": "abc"}], "chart")
        same(base64.b64decode(artifacts["large.bin"][0]["raw"]), b"x" * 200_000, "the large file")
        answer = [p for name, p in artifacts.items() if name.startswith("answer")]
        same([p[0]["text"] for p in answer], ["one two"], "answer")


@each("{}: a journal of 24 MiB is stored, and comes back after a kill -9 of both", [(language, language) for language in LANGUAGES])
def _(language):
    with World(language) as w:
        size = 4 << 20
        task = w.client.send(f"large {size}", wait=120).task
        same(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", task["status"])
        w.kill_worker()
        w.kill_server()
        done = Client(w.server, RPC1).send("that", task=task["id"], wait=120).task
        same(done["status"]["message"]["parts"][0]["text"], f"that ['ä{size}', 'å{size}', 'æ{size}']", "answer")


@each("{}: a journal above the limit fails the task with a sentence for the operator", [(language, language) for language in LANGUAGES])
def _(language):
    with World(language, store="memory") as w:
        task = w.client.send(f"large {12 << 20}", wait=120).task
        same(task["status"]["state"], "TASK_STATE_FAILED", task["status"])
        soon(lambda: any("limit journal_bytes" in line for line in w.server.log), lambda: w.server.log[-5:])


def want_file(size):
    return bytes(i % 251 for i in range(251)) * (size // 251) + b"end"


@each("{}: a file above a line arrives whole", [(language, language) for language in LANGUAGES])
def _(language):
    with World(language) as w:
        size = 12 << 20
        task = w.client.send(f"file {size}", wait=120).task
        part, = task["artifacts"][0]["parts"]
        check(base64.b64decode(part["raw"]) == want_file(size), lambda: (len(part["raw"]), part["filename"]))
        got = w.client.get(task["id"], wait=120).task["artifacts"][0]["parts"]
        check([base64.b64decode(p["raw"]) for p in got] == [want_file(size)], "the stored Task")
        w.kill_server()
        got = Client(w.server, RPC1).get(task["id"], wait=120).task["artifacts"][0]["parts"]
        check([base64.b64decode(p["raw"]) for p in got] == [want_file(size)], "the Task after a restart")


@each("{}: a file above the limit is refused in the function", [(language, language) for language in LANGUAGES])
def _(language):
    with World(language, store="memory") as w:
        text = w.client.send(f"file {21 << 20}", wait=120).task["status"]["message"]["parts"][0]["text"]
        check("large.bin has 22019982" in text and "limit file_bytes is 20971520" in text, text)


@each("{}: a file above a line by AG-UI", [(language, language) for language in LANGUAGES])
def _(language):
    with World(language, store="memory") as w:
        size = 12 << 20
        frames = fronts.ag_ui(w.server, f"file {size}").frames
        found = [f for f in frames if "large.bin" in json.dumps(f.json)[:2000]]
        check(found, lambda: [json.dumps(f.json)[:200] for f in frames])
        check(base64.b64encode(want_file(size)).decode() in json.dumps(found[0].json), "the content")
