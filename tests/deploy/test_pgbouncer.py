"""PgBouncer between the servers and PostgreSQL: session pooling, transaction pooling."""
import re
import shutil
import signal
import subprocess
import time

from database import as_user, free_port, postgres, shared
from lib.a2a import RPC1, Client, message, new_id
from lib.http import ask
from lib.server import DRAGOMAN, ENV, Server
from lib.tap import Failure, Skip, check, each, same, soon, test


def version():
    if not shutil.which("pgbouncer"):
        raise Skip("no pgbouncer (Debian's package pgbouncer)")
    return tuple(map(int, re.search(r"PgBouncer (\d+)\.(\d+)", as_user("pgbouncer", "--version").stdout).groups()))


class Bouncer:
    def __init__(self, database, name, mode, more=""):
        self.database, self.name, self.folder, self.process = database, name, postgres.new_folder("dgm-deploy-bouncer-"), None
        who = postgres.user()
        self.user = {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []} if who else {}
        for _ in range(5):
            self.port = free_port()
            database_line = f"* = host={database.folder} port={database.port} user=dragoman"
            with open(self.folder + "/ini", "w", encoding="ascii") as f:
                f.write(f"[databases]\n{database_line}\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={self.port}\nunix_socket_dir=\nauth_type=any\n"
                        f"pool_mode={mode}\nmax_client_conn=200\ndefault_pool_size=40\n{more}\n")
            self.start()
            if self.process.poll() is None:
                return
        raise RuntimeError(self.log())

    def start(self):
        with open(self.folder + "/log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(["pgbouncer", self.folder + "/ini"], cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.user)
        end = time.monotonic() + 90
        while self.process.poll() is None and "process up" not in self.log().rsplit("kernel file descriptor limit", 1)[-1] and time.monotonic() < end:
            time.sleep(0.05)

    def log(self):
        with open(self.folder + "/log", encoding="utf-8", errors="replace") as f:
            return f.read()

    def store(self, more=""):
        return f"postgres:host=127.0.0.1 port={self.port} dbname={self.name} user=any {more}".strip()

    def direct(self):
        """The same database without PgBouncer."""
        return f"postgres:host={self.database.folder} port={self.database.port} dbname={self.name} user=dragoman"

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Behind:
    """A database of its own on the PostgreSQL of all these tests, and PgBouncer."""
    def __init__(self, mode, more=""):
        version()
        database, name = shared("pgbouncer"), f"d{time.monotonic_ns()}"
        database.sql(f"CREATE DATABASE {name}")
        self.bouncer = Bouncer(database, name, mode, more)

    def __enter__(self):
        return self.bouncer

    def __exit__(self, *_):
        self.bouncer.__exit__()


HAS_REPLICA = '"replica"' in subprocess.run([DRAGOMAN, "schema"], stdout=subprocess.PIPE, text=True, env=ENV).stdout


def config(wakeup):
    return {"replica": {"wakeup": wakeup}} if HAS_REPLICA else {}


def work(s):
    """A send, a stream, a resume, a list, a resend."""
    c = Client(s, RPC1)
    m = message("chunks 20 yield x", context=new_id("ctx"))
    task = c.send(m=m).task
    same(task["status"]["state"], "TASK_STATE_COMPLETED", "state")
    same(c.send(m=m).task["id"], task["id"], "the task of a resend")
    with c.stream("chunks 30 yield y") as stream:
        seen = [e.id for e in stream]
    with c.subscribe(stream.seen[0].body["id"], last=int(seen[4])) as rest:
        same([e.id for e in rest], seen[5:], "the rest of the stream")
    same(len(c.list(contextId=m["contextId"]).value["tasks"]), 1, "tasks")


@each("session pooling with wakeup: {}: send, stream, resume, list, resend, restart", ["notify", "poll"], timeout=300)
def _(wakeup):
    with Behind("session") as bouncer:
        for _ in range(2):
            with Server("bench", store=bouncer.store(), config=config(wakeup)) as s:
                work(s)
                s.stop_well()
        check("login attempt" in bouncer.log(), "PgBouncer was not used")


@test("session pooling: PgBouncer is killed and comes back: the server connects again by itself", timeout=300)
def _():
    with Behind("session") as bouncer, Server("bench", store=bouncer.store()) as s:
        work(s)
        bouncer.kill()
        soon(lambda: ask(s.address, "GET", "/readyz").status == 503, "/readyz stays green", 120)
        bouncer.start()
        soon(lambda: ask(s.address, "GET", "/readyz").status == 200, "/readyz stays red", 120)
        work(s)
        s.stop_well()


def accepted(s, seconds=60):
    """Sends messages until one is refused: the tasks of the others."""
    tasks, end = [], time.monotonic() + seconds
    try:
        while time.monotonic() < end and ask(s.address, "GET", "/readyz").status == 200:
            a = Client(s, RPC1).send("chunks 3 x")
            if not a.ok:
                break
            tasks.append(a.task["id"])
    except Failure:
        pass
    return tasks


@test("transaction pooling without PgBouncer's support of prepared statements: the server does not work, reports it, and what it accepted is stored", timeout=600)
def _():
    # before 1.21 PgBouncer has no support; later it is switched off with 0
    # one session of PostgreSQL for all connections
    with Behind("transaction", "default_pool_size=1\n" + ("" if version() < (1, 21) else "max_prepared_statements=0")) as bouncer:
        tasks = []
        try:
            with Server("bench", store=bouncer.store(), config=config("poll")) as s:
                tasks = accepted(s)
                soon(lambda: any("the store failed" in line for line in s.log), "it works", 90)
                text = "\n".join(s.log)
        except Failure as e:
            text = str(e)
        found = re.search("[^\"]*(pool_mode=session|database cannot be reached|no connection to the database)[^\"]*", text)
        check(found, text)
        print(f"# {len(tasks)} messages were accepted; the server printed: {found[0]}", flush=True)
        with Server("bench", store=bouncer.direct(), config=config("poll")) as s:
            for task in tasks:
                same(Client(s, RPC1).get(task).task["status"]["state"], "TASK_STATE_COMPLETED", f"{task}, which was accepted")
            s.stop_well()


def needs_support():
    if version() < (1, 21):
        raise Skip(f"PgBouncer {'.'.join(map(str, version()))} has no support of prepared statements in transactions")


@test("transaction pooling with prepared statements (PgBouncer 1.21, max_prepared_statements) and wakeup: poll: send, stream, resume, list, resend, restart", timeout=600)
def _():
    needs_support()
    with Behind("transaction", "max_prepared_statements=200") as bouncer:
        for _ in range(2):
            with Server("bench", store=bouncer.store(), config=config("poll")) as s:
                for _ in range(5):
                    work(s)
                s.stop_well()


@each("three replicas with transaction pooling and prepared statements (PgBouncer 1.21), wakeup: {}: a task is followed and canceled at the others, and settled when its owner is killed",
      ["poll", "notify"], timeout=600)
def _(wakeup):
    needs_support()
    with Behind("transaction", "max_prepared_statements=200") as bouncer:
        # one after the other: the lock of a migration is of a session, which there is not here
        replicas = [Server("bench", store=bouncer.store(), config=config(wakeup)) for _ in range(3)]
        owner, reader, third = (Client(r, RPC1) for r in replicas)
        for r in replicas:
            work(r)
        task = owner.send("hold 600 x", config={"returnImmediately": True}).task["id"]
        with reader.subscribe(task, last=0) as stream:
            check(third.cancel(task).ok, "canceled at a third replica")
            same(stream.rest()[-1].state, "TASK_STATE_CANCELED", "the last event")
        task = owner.send("hold 600 x", config={"returnImmediately": True}).task["id"]
        replicas[0].kill()
        soon(lambda: reader.get(task).task["status"]["state"] == "TASK_STATE_FAILED", "the task of a killed replica is not settled", 120)
        for r in replicas[1:]:
            r.stop_well()
