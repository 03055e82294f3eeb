"""Failover of PostgreSQL: a primary, a streaming standby, kill -9, pg_promote. What is kept and what is lost, by synchronous_commit.

Loss is shown, not waited for: the walsender of the primary is stopped before the commit, so that the standby cannot have it."""
import os
import random
import signal
import subprocess
import threading
import time

from database import Database
from lib.a2a import RPC1, TERMINAL, Client, message, new_id
from lib.http import Closed, ask
from lib.server import DRAGOMAN, ENV, Server, folder
from lib.tap import Failure, check, each, same, soon, test


class Pair:
    """A primary and a streaming standby, and the connection string with both."""

    def __init__(self, synchronous, commit="on", settings=""):
        self.primary = Database(settings=settings, hba=["host all all 127.0.0.1/32 trust"])
        try:
            self.primary.sql("CREATE DATABASE d")
            self.standby = Database(primary=self.primary)
        except BaseException:
            self.primary.stop()
            raise
        state = "SELECT state||' '||sync_state FROM pg_stat_replication"
        self.primary.soon(state, "streaming async")
        self.primary.sql(f"ALTER DATABASE d SET synchronous_commit={commit}")
        if synchronous:
            self.primary.set(settings + "\nsynchronous_standby_names='*'")
            self.primary.soon(state, "streaming sync")
        self.store = self.conninfo(self.primary, self.standby)

    @staticmethod
    def conninfo(*databases):
        ports = ",".join(str(d.port) for d in databases)
        return f"postgres:host={','.join(['127.0.0.1'] * len(databases))} port={ports} dbname=d user=dragoman target_session_attrs=read-write"

    def failover(self):
        """The primary crashes, the standby takes over."""
        self.primary.kill()
        self.standby.promote()

    def cut(self):
        """The standby gets nothing more."""
        pids = self.primary.processes("walsender")
        check(pids, "no walsender")
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.primary.stop()
        self.standby.stop()


def ready(s):
    return ask(s.address, "GET", "/readyz").status == 200


class Load:
    """Clients that send, stream and resend, and remember every acknowledgement."""

    def __init__(self, server):
        self.server, self.gone, self.lock = server, threading.Event(), threading.Lock()
        self.tasks, self.frames, self.contexts, self.faults, self.refused = {}, {}, {}, [], 0
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(6)]
        for t in self.threads:
            t.start()

    def seen(self, task, state, frames=()):
        with self.lock:
            if self.tasks.get(task) not in TERMINAL:
                self.tasks[task] = state
            self.frames.setdefault(task, {}).update(frames)

    def run(self, n):
        pick, c = random.Random(n), Client(self.server, RPC1)
        while not self.gone.is_set():
            context = new_id("ctx")
            m = message(f"chunks {pick.randrange(1, 60)} yield x", context=context)
            try:
                if pick.randrange(2):
                    self.stream(c, m)
                else:
                    self.send(c, m, context)
            except (Closed, ConnectionError, OSError) as e:
                if not self.gone.is_set():
                    self.faults.append(f"the server ends a connection: {e}")
                    return
            except Failure as e:
                self.faults.append(str(e))
                return

    def send(self, c, m, context):
        while True:  # the same message, until it is acknowledged: it may not become two tasks
            a = c.send(m=m)
            if a.ok:
                self.seen(a.task["id"], a.task["status"]["state"])
                with self.lock:
                    self.contexts[context] = a.task["id"]
                return
            with self.lock:
                self.refused += 1
            if self.gone.wait(0.1):
                return

    def stream(self, c, m):
        task, cursor = None, 0
        events = c.open("stream", c.params(m=m))
        if not hasattr(events, "seen"):  # refused
            with self.lock:
                self.refused += 1
            self.gone.wait(0.1)
            return
        with events as stream:
            try:
                for e in stream:
                    task, cursor = stream.seen[0].body["id"], int(e.id)
                    self.seen(task, e.state or "TASK_STATE_WORKING", [(cursor, e.payload)])
            except Failure as e:
                if "an error in the stream" not in str(e):
                    raise

    def stop(self):
        self.gone.set()
        for t in self.threads:
            t.join(60)
        check(not self.faults, self.faults[:1])


def check_kept(s, load, what):
    c = Client(s, RPC1)
    for task, state in load.tasks.items():
        got = c.get(task)
        check(got.ok, f"{what}: the acknowledged task {task} ({state}) is lost: {got.value}")
        now = got.task["status"]["state"]
        check(state not in TERMINAL or now == state, f"{what}: {task} was {state} and is {now}")
        seen = load.frames.get(task)
        if seen and now in TERMINAL:
            with c.subscribe(task, last=0) as r:
                again = {int(e.id): e.payload for e in r.rest()}
            same({i: again.get(i) for i in seen}, seen, f"{what}: {task} read again")
            same(sorted(again), list(range(1, len(again) + 1)), f"{what}: ids of {task}")
    for context, task in load.contexts.items():
        listed = c.list(contextId=context).value["tasks"]
        same([t["id"] for t in listed], [task], f"{what}: tasks of one message")


@each("a synchronous standby, synchronous_commit={}: kill -9 of the primary under load, pg_promote: nothing acknowledged is lost, the server goes on",
      ["on", "remote_write", "remote_apply"], timeout=400)
def _(commit):
    with Pair(True, commit) as pair:
        with Server("bench", store=pair.store) as s:
            load = Load(s)
            soon(lambda: len(load.tasks) > 30 or load.faults, "no tasks", 120)
            pair.primary.kill()
            began = time.monotonic()
            soon(lambda: not ready(s), "/readyz stays green", 90)
            red = time.monotonic() - began
            pair.standby.promote()
            promoted, before = time.monotonic(), len(load.tasks)
            soon(lambda: ready(s), "/readyz stays red", 120)
            print(f"# {commit}: /readyz red {red:.1f} s after the crash, green {time.monotonic() - promoted:.1f} s after the promotion", flush=True)
            soon(lambda: len(load.tasks) > before + 20 or load.faults, "no tasks after the failover", 120)
            load.stop()
            check_kept(s, load, "the same server")
            print(f"# {len(load.tasks)} tasks, {len(load.contexts)} messages with a resend loop, {load.refused} refused", flush=True)
            s.stop_well()
        with Server("bench", store=pair.store) as s:
            check_kept(s, load, "another server")
            s.stop_well()


@test("a planned switch to the standby under load: nothing acknowledged is lost, with an asynchronous standby too", timeout=400)
def _():
    with Pair(False) as pair, Server("bench", store=pair.store) as s:
        load = Load(s)
        soon(lambda: len(load.tasks) > 30 or load.faults, "no tasks", 120)
        # A fast shutdown ends sessions and sends all WAL to the standby first.
        os.kill(pair.primary.pid(), signal.SIGINT)
        soon(lambda: pair.primary.pid() is None or not os.path.exists(f"/proc/{pair.primary.pid()}"), "the primary runs on", 120)
        pair.standby.promote()
        before = len(load.tasks)
        soon(lambda: len(load.tasks) > before + 20 or load.faults, "no tasks after the switch", 120)
        load.stop()
        check_kept(s, load, "the same server")
        s.stop_well()


# ---- what is lost ---------------------------------------------------------------------------------------------------

def acknowledged(s, m, seconds):
    """Whether a send is answered within that time; the Answer is in the list."""
    answers = []
    t = threading.Thread(target=lambda: answers.append(Client(s, RPC1).send(m=m)), daemon=True)
    t.start()
    t.join(seconds)
    return answers


@each("{}: kill -9 of the primary before the standby has the commit: the acknowledged task is lost, the earlier one is not",
      [("an asynchronous standby", False, "on"), ("a synchronous standby, synchronous_commit=local", True, "local"),
       ("a synchronous standby, synchronous_commit=off", True, "off")], timeout=300)
def _(synchronous, commit):
    with Pair(synchronous, commit) as pair:
        with Server("bench", store=pair.store) as s:
            c = Client(s, RPC1)
            early = c.send("chunks 3 x").task["id"]
            # the earlier one is on the standby
            pair.primary.soon("SELECT replay_lsn >= (SELECT pg_current_wal_lsn()) FROM pg_stat_replication", "t")
            pair.cut()
            m = message("chunks 3 x", context=new_id("ctx"))
            answers = acknowledged(s, m, 90)
            check(answers and answers[0].ok, "it is not acknowledged")
            late = answers[0].task["id"]
            pair.failover()
            soon(lambda: ready(s), "/readyz stays red", 120)
            check(c.send("echo x").ok, "the server does not go on")
            s.kill()
        with Server("bench", store=pair.store) as s:
            c = Client(s, RPC1)
            same(c.get(early).task["status"]["state"], "TASK_STATE_COMPLETED", "the earlier task")
            c.get(late).expect("TaskNotFound")
            # A client that sends it again gets a new task: the message id is lost as well.
            again = c.send(m=m).task["id"]
            check(again != late, "the task is not lost")
            same(len(c.list(contextId=m["contextId"]).value["tasks"]), 1, "tasks of the message")
            s.stop_well()


@test("a synchronous standby, synchronous_commit=on: without the standby's confirmation nothing is acknowledged, and a resend after the failover makes one task", timeout=300)
def _():
    with Pair(True) as pair, Server("bench", store=pair.store) as s:
        c = Client(s, RPC1)
        early = c.send("chunks 3 x").task["id"]
        pair.cut()
        m = message("chunks 3 x", context=new_id("ctx"))
        same(acknowledged(s, m, 3), [], "answers without the standby")
        pair.failover()
        soon(lambda: ready(s), "/readyz stays red", 120)
        end = time.monotonic() + 60
        while not (a := c.send(m=m)).ok and time.monotonic() < end:
            time.sleep(0.2)
        same(a.task["status"]["state"], "TASK_STATE_COMPLETED", "the message that was sent again")
        same([t["id"] for t in c.list(contextId=m["contextId"]).value["tasks"]], [a.task["id"]], "tasks of the message")
        same(c.get(early).task["status"]["state"], "TASK_STATE_COMPLETED", "the earlier task")
        s.stop_well()


@each("one PostgreSQL, kill -9 of all its processes right after an acknowledgement, restart: {}",
      [("synchronous_commit=on: the task is kept", "on", True), ("synchronous_commit=off: the task is lost", "off", False)], timeout=300)
def _(commit, kept):
    # off: the WAL is written by the walwriter alone, which sleeps
    d = Database(settings="wal_writer_delay=10s\nwal_writer_flush_after=1GB", hba=["host all all 127.0.0.1/32 trust"])
    try:
        d.sql("CREATE DATABASE d")
        with Server("bench", store=Pair.conninfo(d)) as s:
            early = Client(s, RPC1).send("chunks 3 x").task["id"]
            s.stop_well()
        d.sql("CHECKPOINT")
        d.sql(f"ALTER DATABASE d SET synchronous_commit={commit}")
        with Server("bench", store=Pair.conninfo(d)) as s:
            time.sleep(1)  # what it writes when it starts
            d.sql("SELECT pg_switch_wal()")
            if not kept:  # nothing but a commit may write the WAL
                for pid in d.processes("walwriter"):
                    os.kill(pid, signal.SIGSTOP)
            late = Client(s, RPC1).send("chunks 3 x").task["id"]
            d.kill()
            s.kill()
        d.start()
        with Server("bench", store=Pair.conninfo(d)) as s:
            c = Client(s, RPC1)
            same(c.get(early).task["status"]["state"], "TASK_STATE_COMPLETED", "the earlier task")
            if kept:
                same(c.get(late).task["status"]["state"], "TASK_STATE_COMPLETED", "the acknowledged task")
            else:
                c.get(late).expect("TaskNotFound")
            s.stop_well()
    finally:
        d.stop()


# ---- several hosts ---------------------------------------------------------------------------------------------------

@test("target_session_attrs=read-write finds the primary in any order of hosts, also behind a host that does not answer; a standby alone is refused", timeout=300)
def _():
    with Pair(False) as pair:
        for order in ((pair.standby, pair.primary), (pair.primary, pair.standby)):
            with Server("bench", store=Pair.conninfo(*order)) as s:
                check(Client(s, RPC1).send("echo x").ok, "a send")
                s.stop_well()
        store = Pair.conninfo(pair.standby, pair.primary).replace("host=127.0.0.1,127.0.0.1 port=", "host=127.0.0.1,127.0.0.1,127.0.0.1 port=1,")
        with Server("bench", store=store) as s:
            check(Client(s, RPC1).send("echo x").ok, "a send")
            s.stop_well()
        for store in (Pair.conninfo(pair.standby), Pair.conninfo(pair.standby).replace(" target_session_attrs=read-write", "")):
            p = subprocess.run([DRAGOMAN, "serve", "--listen", "127.0.0.1:0", "--store", store], cwd=folder(), env=ENV, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
            same(p.returncode, 1, "status")
            check("read-only" in p.stdout, p.stdout)
