"""Agents in long-lived worker processes (`type: exec, mode: worker`): many runs at once, kills, faults. docs/worker-protocol.md."""
import json
import os
import random
import re
import signal
import sys
import threading
import time

from lib.a2a import RPC1, Client, artifact_texts, new_id, task_text, text_of
from lib.server import ROOT, TOKENS, Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test

WORKER = os.path.join(ROOT, "tests/support/worker.py")
COMPLETED = "TASK_STATE_COMPLETED"


def serve(how="", store="memory:", args=(), command=None, drain=1, **more):
    """A server with one worker agent."""
    needs_ours("only Dragoman has this agent")
    command = command or [sys.executable, WORKER, how]
    config = settings(agents=[agent("exec", id="worker", settings={"command": command, "mode": "worker", "grace": 1, **more})])
    return Server(None, store=store, args=args, config={**config, "drain_s": drain})


def on_disk():
    return "sqlite:" + os.path.join(folder(), "tasks.db")


def workers(s):
    """The pids of the worker processes, as the log has them."""
    return [int(m[1]) for line in list(s.log) if (m := re.search(r"process (\d+) is ready", line))]


def worker(s):
    return soon(lambda: workers(s), lambda: "\n".join(s.log))[-1]


def logged(s, text):
    return soon(lambda: [line for line in list(s.log) if text in line], lambda: f"{text} is not in the log:\n" + "\n".join(s.log))


def start(c, text, **how):
    return c.send(text, config={"returnImmediately": True}, **how).task["id"]


def ended(c, id, state=COMPLETED):
    soon(lambda: c.get(id).state in (state, "TASK_STATE_FAILED"), lambda: c.get(id).task["status"], 60)
    task = c.get(id).task
    same(task["status"]["state"], state, f"state of {task}")
    return task


# ---- the example --------------------------------------------------------------------------------------------------------------

@test("examples/agents/worker.py: answers, streams, is canceled, is steered, draws no warnings")
def _():
    with serve(command=[os.path.join(ROOT, "examples/agents/worker.py")]) as s:
        c = Client(s, RPC1)
        same(task_text(c.send("hello").task), "You wrote: hello", "answer")
        with c.stream("count 4") as events:
            seen = events.rest()
        same([e.body["artifact"]["parts"][0]["text"] for e in seen if e.kind == "artifactUpdate"], ["1 ", "2 ", "3 ", "4 "], "chunks")
        same(text_of(seen[-1].body["status"]["message"]), "1 2 3 4 ", "the answer")
        id = start(c, "count 1000")
        same(c.cancel(id).state, "TASK_STATE_CANCELED", "state")
        id = start(c, "count 1000")
        c.send("5", task=id)
        check(artifact_texts(ended(c, id))[0].startswith("1 2 3 "), "the text")
        with open(os.path.join(ROOT, "examples/agents/worker.py"), encoding="utf-8") as f:
            check(len(f.readlines()) <= 60, "it is longer than 60 lines")
        same([line for line in s.log if re.search(r"\bwarn\b", line)], [], "warnings")
        s.stop_well()


# ---- many runs ------------------------------------------------------------------------------------------------------------------

def many(s, n, text):
    """The answers to n messages that are sent at the same time."""
    answers = [None] * n

    def one(i):
        answers[i] = task_text(Client(s, RPC1).send(text.format(i), wait=100).task)

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(110)
    return answers


@each("200 runs at the same time: {}", [("one process", {}), ("three processes", {"processes": 3}), ("at most 5 runs", {"max_runs": 5})])
def _(more):
    with serve(**more) as s:
        for _ in range(more.get("processes", 1)):
            worker(s)
        same(many(s, 200, "part a{0};sleep 0.05;say answer {0}"), [f"answer {i}" for i in range(200)], "answers")
        same(len(workers(s)), more.get("processes", 1), "processes")
        s.stop_well()


@test("a process per message costs more than a run of a worker: the program is started once")
def _():
    log = os.path.join(folder(), "starts")
    with serve(command=["/bin/sh", "-c", f"echo x >> {log}; exec {sys.executable} {WORKER}"]) as s:
        c = Client(s, RPC1)
        for i in range(10):
            same(task_text(c.send(f"say {i}").task), str(i), "answer")
        with open(log, encoding="utf-8") as f:
            same(f.read(), "x\n", "starts")


# ---- kill -9 ----------------------------------------------------------------------------------------------------------------------

@each("kill -9 of the worker {}: the run is started again and the text is there once", [
    ("before the first event", "until {file}"), ("in the middle of a text", "part half;until {file}"),
    ("after a stored journal", "journal kept;until {file}")])
def _(script):
    there = folder()
    file = os.path.join(there, "go")
    with serve() as s:
        c = Client(s, RPC1)
        first = worker(s)
        id = start(c, f"note {there}/log started;1:" + script.format(file=file).replace(";", ";1:") + ";again:say whole")
        soon(lambda: os.path.exists(there + "/log"), "it does not start")
        os.kill(first, signal.SIGKILL)
        task = ended(c, id)
        check("whole" in artifact_texts(task), task)
        check("half" not in json.dumps(task["artifacts"]), task["artifacts"])
        with open(there + "/log", encoding="utf-8") as f:
            same(f.read(), "started\n" * 2, "starts")
        logged(s, "it was killed by signal 9")
        soon(lambda: worker(s) != first, "the same process")


@each("kill -9 of the server {}: the next one runs the task again, with the journal", [
    ("before the first event", "until {file}"), ("in the middle of a text", "part half;until {file}"),
    ("after a stored journal", "journal kept;until {file}")])
def _(script):
    there = folder()
    file = os.path.join(there, "go")
    with serve(store=on_disk()) as s:
        id = start(Client(s, RPC1), f"note {there}/log started;1:" + script.format(file=file).replace(";", ";1:") +
                   ";again:show journal;again:sleep 0.1")
        soon(lambda: os.path.exists(there + "/log"), "it does not start")
        time.sleep(0.2)
        pid = worker(s)
        s.kill()
        soon(lambda: not os.path.exists(f"/proc/{pid}") or open(f"/proc/{pid}/stat").read().split()[2] == "Z", "the worker lives on")
        s.restart()
        task = ended(Client(s, RPC1), id)
        texts = artifact_texts(task)
        check(('"kept"' if "journal" in script else "null") in texts, texts)
        same(len([m for m in task["history"] if m["role"] == "ROLE_USER"]), 1, "messages of the user")


@test("kill -9 of worker and server at random moments: every task ends, the text is there once", timeout=300)
def _():
    there, random_ = folder(), random.Random(7)
    with serve(store=on_disk(), max_attempts=10) as s:
        for n in range(int(os.environ.get("DRAGOMAN_KILLS", "10")) // 2):
            c = Client(s, RPC1)
            ids = [start(c, "count 10") for _ in range(5)]
            time.sleep(random_.random() * 0.4)
            if n % 2:
                s.kill()
                s.restart()
                c = Client(s, RPC1)
            else:
                os.kill(worker(s), signal.SIGKILL)
            for id in ids:
                same(artifact_texts(ended(c, id)), ["".join(f"{i} " for i in range(10))], f"texts in {there}")


@test("a message that ends the worker every time: the task fails after max_attempts, others go on")
def _():
    with serve() as s:
        c = Client(s, RPC1)
        task = c.send("say x;errors my last words;sleep 0.1;die").task
        same(task["status"]["state"], "TASK_STATE_FAILED", "state")
        check("exit status 3" in task["metadata"]["error"], task["metadata"])
        soon(lambda: any("my last words" in line and "agent failed" in line for line in list(s.log)), lambda: "\n".join(s.log))
        same(task_text(c.send("say fine").task), "fine", "answer")
        s.stop_well()


@test("a message that ends the server every time is not tried for ever")
def _():
    there = folder()
    with serve(store=on_disk(), max_attempts=3) as s:
        id = start(Client(s, RPC1), f"note {there}/log x;wait")
        for n in range(3):
            soon(lambda n=n: os.path.exists(there + "/log") and len(open(there + "/log").read().split()) > n, "it does not start")
            s.kill()
            s.restart()
        task = ended(Client(s, RPC1), id, "TASK_STATE_FAILED")
        check("was started 3 times" in task["metadata"]["error"], task["metadata"])


# ---- faults -----------------------------------------------------------------------------------------------------------------------

@each("a worker that {}: contained and explained", [
    ("prints", "print hello there;say x", "hello there", True), ("writes to stderr", "errors oh no;say x", "oh no", True),
    ("writes a line over the limit", "1:long;1:wait;again:say x", "longer than the limit worker_line_bytes", False),
    ("writes invalid JSON", "1:garbage;1:wait;again:say x", "a line that is not JSON", False),
    ("exits", "1:die 4;again:say x", "exit status 4", False),
    ("closes its channel", "1:close;again:say x", "it has closed its channel", False)])
def _(text, line, survives):
    with serve() as s:
        c = Client(s, RPC1)
        first = worker(s)
        other = start(c, "wait")
        same(task_text(c.send(text, wait=60).task), "x", "answer")
        logged(s, line)
        if survives:
            same(worker(s), first, "process")
            same(c.cancel(other).state, "TASK_STATE_CANCELED", "the other run")
        else:
            soon(lambda: worker(s) != first, "the same process")
        s.stop_well()


@test("a worker that blocks is killed after hang_timeout")
def _():
    with serve(hang_timeout=3) as s:
        c = Client(s, RPC1)
        same(task_text(c.send("1:block 60;again:say x", wait=60).task), "x", "answer")
        logged(s, "it has written nothing for 3 seconds")


@each("a worker that {}: the agent is unavailable, and requests fail at once", [
    ("exits at once", "exit", "does not start", "it ended with exit status 7"),
    ("cannot load its code", "broken", "could not be loaded", "Traceback two")])
def _(how, safe, line):
    with serve(how) as s:
        logged(s, line)  # before the first message
        c = Client(s, RPC1)
        for _ in range(2):
            task = c.send("say x", wait=60).task
            same(task["status"]["state"], "TASK_STATE_FAILED", "state")
            check(safe in task["metadata"]["error"], task["metadata"])
        s.stop_well()


@test("a worker that never answers the handshake: requests end after start_timeout, the server stops")
def _():
    with serve("silent", start_timeout=0.5) as s:
        task = Client(s, RPC1).send("say x", wait=60).task
        check("ready in time" in task["metadata"]["error"] or "does not start" in task["metadata"]["error"], task["metadata"])
        logged(s, "it has not answered the handshake within 0.5 seconds")
        s.stop_well()


# ---- cancel, steering, tools ---------------------------------------------------------------------------------------------------------

@test("cancel: answered within seconds, also if the worker ignores it")
def _():
    with serve() as s:
        c = Client(s, RPC1)
        id = start(c, "part a;wait")
        same(c.cancel(id).state, "TASK_STATE_CANCELED", "state")
        deaf = start(c, "part a;deaf")
        same(c.cancel(deaf).state, "TASK_STATE_CANCELED", "state of the run that does not react")
        same(task_text(c.send("say next").task), "next", "answer")


@test("steering: a message reaches the run that works, and is in the history")
def _():
    with serve() as s:
        c = Client(s, RPC1)
        worker(s)
        id = start(c, "part a;input heard")
        same(c.send("turn left", task=id).state, COMPLETED, "state")
        task = c.get(id).task
        check("turn left" in artifact_texts(task), task)
        same([m["parts"][0]["text"] for m in task["history"] if m["role"] == "ROLE_USER"][-1], "turn left", "history")


@test("a question, its answer, and the caller's tools")
def _():
    with serve() as s:
        c = Client(s, RPC1)
        task = c.send("journal asked;ask Which?").task
        same(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "state")
        check('"asked"' in artifact_texts(c.send("show journal", task=task["id"]).task), "the journal")
        tools = [{"name": "look_up", "description": "d", "parameters": {"type": "object"}}]
        parts = [{"text": "show tools"}, {"data": {"tools": tools}}]
        same(json.loads(task_text(c.send(parts=parts).task)), tools, "tools")
        parts = [{"text": "show toolResults"}, {"data": {"tool_results": [{"call_id": "c1", "output": "snow"}]}}]
        same(json.loads(task_text(c.send(parts=parts).task)), [{"call_id": "c1", "output": "snow"}], "results")


@test("principals with the same contextId have different threads")
def _():
    needs_ours("only Dragoman has this agent")
    config = settings(tokens=True, agents=[agent("exec", id="worker", settings={"command": [sys.executable, WORKER], "mode": "worker"})])
    with Server(None, config=config) as s:
        context = new_id("ctx")
        threads = [task_text(Client(s, RPC1, token=TOKENS[p]).send("show thread", context=context).task) for p in ("alice", "bob", "alice")]
        same(threads[0], threads[2], "threads of one principal")
        check(threads[0] != threads[1], threads)


# ---- reload, shutdown, watch ------------------------------------------------------------------------------------------------------------

@test("reload: a run ends in the old process, a new one uses the new process, and the old process ends")
def _():
    there = folder()
    with serve() as s:
        c = Client(s, RPC1)
        old = worker(s)
        id = start(c, f"part a;until {there}/go;say old")
        with open(s.file, encoding="utf-8") as f:
            config = json.load(f)
        config["agents"][0]["settings"]["max_attempts"] = 2
        with open(s.file, "w", encoding="utf-8") as f:
            json.dump(config, f)
        s.process.send_signal(signal.SIGHUP)
        soon(lambda: len(workers(s)) == 2, lambda: "\n".join(s.log))
        same(task_text(c.send("say new").task), "new", "answer")
        check(os.path.exists(f"/proc/{old}"), "the old process has ended before its run")
        with open(f"{there}/go", "w", encoding="utf-8"):
            pass
        check("old" in artifact_texts(ended(c, id)), "the answer of the old process")
        soon(lambda: not os.path.exists(f"/proc/{old}"), "the old process lives on")
        same([line for line in s.log if "process ended" in line], [], "faults")
        s.stop_well()


@test("SIGTERM: a run that does not end is continued by the next server, and this is not a failed attempt")
def _():
    there = folder()
    with serve(store=on_disk(), drain=0, max_attempts=2) as s:
        id = start(Client(s, RPC1), f"note {there}/log x;part a;until {there}/go;again:show attempt")
        for n in range(3):
            soon(lambda n=n: os.path.exists(there + "/log") and len(open(there + "/log").read().split()) > n, "it does not start")
            s.stop_well()
            s.restart()
        with open(f"{there}/go", "w", encoding="utf-8"):
            pass
        check("1" in artifact_texts(ended(Client(s, RPC1), id)), "the answer")
        s.stop_well()


@test("serve --watch: a changed file is loaded between runs, a mistake is in the log, and repaired")
def _():
    there = folder()
    file = os.path.join(there, "agent.py")
    with open(WORKER, encoding="utf-8") as f:
        source = f.read()

    def change(new):
        with open(file, "w", encoding="utf-8") as f:
            f.write(new)

    change(source)
    with serve(args=["--watch"], command=[sys.executable, file], cwd=there) as s:
        c = Client(s, RPC1)
        worker(s)
        id = start(c, f"part a;until {there}/go;say old")
        change(source.replace('self.text(arg)\n', 'self.text("changed " + arg)\n', 1))
        logged(s, "files of the agent have changed")
        waiting = start(c, "say x")
        with open(f"{there}/go", "w", encoding="utf-8"):
            pass
        check("old" in artifact_texts(ended(c, id)), "the run of the old process")
        same(artifact_texts(ended(c, waiting)), ["changed x"], "answer of the new one")
        change("def f(:\n")
        logged(s, "SyntaxError")
        change(source)
        soon(lambda: c.send("say repaired", wait=60).state == COMPLETED, lambda: "\n".join(s.log), 60)
        s.stop_well()
