"""kill -9 under load: nothing acknowledged is missing, no task is stuck, no cursor skips or repeats.

DRAGOMAN_KILLS says how often (10; `make soak`: 50)."""
import os
import random
import threading
import time

from lib.a2a import INTERRUPTED, RPC1, TERMINAL, Client, message, new_id
from lib.agents import tck
from lib.http import Closed
from lib.server import Server, folder, needs_ours, needs_sqlite
from lib.tap import Failure, check, same, soon, test
from test_resume import rng, sqlite

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "10"))


class Load:
    """Clients that send, stream, subscribe and cancel until the server is killed, and remember every answer."""

    def __init__(self, server, random):
        self.server, self.random, self.gone = server, random, threading.Event()
        self.tasks, self.frames, self.faults, self.lock = {}, {}, [], threading.Lock()

    def told(self, task, state, frames=()):
        with self.lock:
            known = self.tasks.get(task)
            if known not in TERMINAL:
                self.tasks[task] = state
            self.frames.setdefault(task, {}).update(frames)

    def client(self, n):
        pick = random.Random(f"{self.random} {n}")
        c = Client(self.server, RPC1)
        while not self.gone.is_set():
            try:
                kind = pick.randrange(4)
                if kind == 0:
                    t = c.send(f"chunks {pick.randrange(1, 30)} x").task
                    self.told(t["id"], t["status"]["state"])
                elif kind == 1:
                    t = c.send("hold 30 x", config={"returnImmediately": True}).task
                    self.told(t["id"], t["status"]["state"])
                    if pick.random() < 0.5:
                        self.told(t["id"], c.cancel(t["id"]).state)
                else:
                    with c.stream(f"chunks {pick.randrange(1, 200)} yield x") as s:
                        for e in s:
                            self.told(s.seen[0].body["id"], e.state or "TASK_STATE_WORKING", [(int(e.id), e.payload)])
            except (Closed, ConnectionError, OSError):
                if self.gone.wait(0.05):
                    return
            except Failure as e:
                # a server that was killed leaves half a line; one that lives may not
                if not self.gone.wait(1):
                    self.faults.append(str(e))
                return


@test(f"kill -9 under load, {KILLS} times: nothing acknowledged is missing, no task stuck, no cursor skips or repeats", timeout=120 + 60 * KILLS)
def _():
    needs_ours("needs a store that stays")
    pick = rng("crash")
    with Server("bench", store=sqlite()) as s:
        everything = {}
        for n in range(KILLS):
            load = Load(s, f"{pick.random()}")
            threads = [threading.Thread(target=load.client, args=(i,), daemon=True) for i in range(8)]
            for t in threads:
                t.start()
            time.sleep(0.2 + pick.random() * 0.6)
            load.gone.set()
            s.kill()
            for t in threads:
                t.join(10)
            check(not load.faults, load.faults[:1])
            s.restart()
            c = Client(s, RPC1)
            check(load.tasks, "no task was made")
            for task, state in load.tasks.items():
                got = c.get(task).task
                now = got["status"]["state"]
                check(now in TERMINAL, f"round {n}: {task} is {now} after the restart")
                check(state not in TERMINAL or now == state, f"round {n}: {task} was reported as {state} and is {now}")
                if now == "TASK_STATE_FAILED":
                    check(isinstance(got.get("metadata", {}).get("error"), str), got.get("metadata"))
                seen = load.frames.get(task)
                if seen:
                    last = max(seen)
                    same(sorted(seen), list(range(1, last + 1)), f"round {n}: ids of {task} before the kill")
                    with c.subscribe(task, last=0) as r:
                        again = {int(e.id): e.payload for e in r.rest()}
                    same({i: again.get(i) for i in seen}, seen, f"round {n}: {task} read again")
                    same(sorted(again), list(range(1, len(again) + 1)), f"round {n}: ids of {task} after the kill")
            everything.update({t: c.get(t).task for t in list(load.tasks)[:20]})
        for task, before in everything.items():
            same(Client(s, RPC1).get(task).task, before, f"{task} after all restarts")


@test("kill -9 between acknowledgement and answer of the agent: the message is there", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("bench", store=sqlite()) as s:
        c = Client(s, RPC1)
        m = message("hold 30 the question")
        t = c.send(m=m, config={"returnImmediately": True}).task
        s.kill()
        s.restart()
        got = c.get(t["id"]).task
        same([h["messageId"] for h in got["history"] if h["role"] == "ROLE_USER"], [m["messageId"]], "history")
        same(got["status"]["state"], "TASK_STATE_FAILED", "state")


@test("a resend after kill -9 and restart finds its first send", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("bench", store=sqlite()) as s:
        c = Client(s, RPC1)
        m = message("chunks 5 x", context=new_id("ctx"))
        t = c.send(m=m).task
        s.kill()
        s.restart()
        same(c.send(m=m).task["id"], t["id"], "id")
        same(c.list(contextId=m["contextId"]).value["totalSize"], 1, "tasks")


@test("a second server on the same database is refused by one sentence that names the holder")
def _():
    needs_sqlite("src/store/postgres/test_postgres.c has the same for PostgreSQL")
    needs_ours("needs a store that stays")
    store = sqlite()
    with Server("bench", store=store) as s:
        try:
            Server("bench", store=store).kill()
        except Failure as e:
            check(str(s.process.pid) in str(e) or store.removeprefix("sqlite:") in str(e), e)
        else:
            raise Failure("it started")
        check(Client(s, RPC1).send("echo x").ok, "the first goes on")


@test("a file that is not a database is refused by one sentence, and not changed")
def _():
    needs_sqlite("it is about a file")
    needs_ours("needs a store that stays")
    path = os.path.join(folder(), "dragoman.db")
    with open(path, "wb") as f:
        f.write(b"this is no database " * 1000)
    try:
        Server("bench", store="sqlite:" + path).kill()
    except Failure as e:
        check("dragoman.db" in str(e), e)
    else:
        raise Failure("it started")
    with open(path, "rb") as f:
        check(f.read().startswith(b"this is no database"), "the file")


@test("the database goes away under a running server: new work is refused by name, /readyz is red, reads of what is known go on", timeout=200)
def _():
    needs_ours("needs a store that stays")
    from lib.http import ask
    path = os.path.join(folder(), "small")
    os.mkdir(path)
    with Server("bench", store=f"sqlite:{path}/dragoman.db", args=[], env={"DRAGOMAN_TEST_DISK_FULL": "1"}) as s:
        c = Client(s, RPC1)
        a = c.send("chunks 1 x")
        if a.ok:
            from lib.tap import Skip
            raise Skip("the build has no switch for a full disk (DRAGOMAN_TEST_DISK_FULL): the store's unit tests hold this")
        check(a.response.status in (200, 503), a)
        same(ask(s.address, "GET", "/readyz").status, 503, "readyz")


@test("interrupted tasks survive any number of restarts", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("tck", store=sqlite()) as s:
        c = Client(s, RPC1)
        ids = [c.send(id=tck("input-required")).task["id"] for _ in range(20)]
        for _ in range(3):
            s.kill()
            s.restart()
            check({c.get(i).state for i in ids} <= INTERRUPTED, "states")
        same({c.send(id=tck("complete-task"), task=i).state for i in ids}, {"TASK_STATE_COMPLETED"}, "states")


@test("a server that is killed while it starts starts again", timeout=300)
def _():
    needs_ours("needs a store that stays")
    import subprocess
    store = sqlite()
    s = Server("bench", store=store)
    t = Client(s, RPC1).send("chunks 3 x").task
    s.kill()
    pick = rng("start")
    for _ in range(10):
        p = subprocess.Popen(s.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder())
        time.sleep(pick.random() * 0.1)
        p.kill()
        p.wait()
    s.restart()
    same(soon(lambda: Client(s, RPC1).get(t["id"]), "no answer").task["id"], t["id"], "id")
    s.kill()
