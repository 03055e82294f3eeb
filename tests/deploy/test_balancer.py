"""What deploy/compose.yaml starts, without containers: its PostgreSQL user and password, three replicas with deploy/dragoman.yaml, and HAProxy
with deploy/haproxy.cfg."""
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import yaml

from database import free_port, shared
from lib.a2a import RPC1, TERMINAL, Client, Events, message, new_id
from lib.http import Closed, ask
from lib.server import ROOT, Server, folder
from lib.tap import Failure, Skip, check, same, soon, test

TOKEN = "t0ken-of-the-admin"
REPLICAS = 3


class Balancer:
    def __init__(self, addresses):
        with open(os.path.join(ROOT, "deploy/haproxy.cfg"), encoding="utf-8") as f:
            text = f.read()
        self.folder, self.errors = folder(), "1.0.1"
        servers = "\n".join(f"    server replica{i} {host}:{port}" for i, (host, port) in enumerate(addresses))
        for _ in range(5):
            self.address = ("127.0.0.1", free_port())
            changed, n = re.subn(r"^    bind :8080$", f"    bind 127.0.0.1:{self.address[1]}", text, flags=re.M)
            changed, m = re.subn(r"^    server-template .*$", servers, changed, flags=re.M)
            same((n, m), (1, 1), "lines of haproxy.cfg that this test replaces")
            with open(self.folder + "/haproxy.cfg", "w", encoding="utf-8") as f:
                f.write(changed)
            self.log = open(self.folder + "/log", "w", encoding="utf-8")  # noqa: SIM115
            self.process = subprocess.Popen(["haproxy", "-db", "-f", self.folder + "/haproxy.cfg"], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
            end = time.monotonic() + 90
            while self.process.poll() is None and time.monotonic() < end:
                try:
                    if ask(self.address, "GET", "/readyz").status == 200:
                        time.sleep(4)  # servers are up until their checks have failed
                        soon(lambda: ask(self.address, "GET", "/readyz").status == 200, "no server is up behind the balancer", 90)
                        return
                except (Closed, OSError):
                    pass
                time.sleep(0.1)
            self.end()
        with open(self.folder + "/log", encoding="utf-8") as f:
            raise Failure(f"HAProxy does not start: {f.read()}")

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Group:
    """PostgreSQL, the replicas, the balancer."""
    def __init__(self, agents=None, replicas=REPLICAS):
        if not shutil.which("haproxy"):
            raise Skip("no haproxy (Debian's package haproxy)")
        with open(os.path.join(ROOT, "deploy/dragoman.yaml"), encoding="utf-8") as f:
            self.settings = {k: v for k, v in yaml.safe_load(f).items() if k != "listen"}
        with open(os.path.join(ROOT, "deploy/compose.yaml"), encoding="utf-8") as f:
            services = yaml.safe_load(f)["services"]
        of_postgres, of_replica = services["postgres"]["environment"], services["dragoman"]["environment"]
        if agents:
            self.settings["agents"] = agents
        self.database, self.replicas, self.balancer = shared("balancer", hba=["host all all 127.0.0.1/32 scram-sha-256"]), [], None
        # as the image of PostgreSQL does it: this user owns this database
        if of_postgres["POSTGRES_USER"] != "dragoman":
            self.database.sql(f"DROP ROLE IF EXISTS {of_postgres['POSTGRES_USER']}")
            self.database.sql(f"CREATE ROLE {of_postgres['POSTGRES_USER']} LOGIN")
        self.database.sql(f"ALTER ROLE {of_postgres['POSTGRES_USER']} PASSWORD 'from-compose'")
        self.database.sql(f"DROP DATABASE IF EXISTS {of_postgres['POSTGRES_DB']} WITH (FORCE)")
        self.database.sql(f"CREATE DATABASE {of_postgres['POSTGRES_DB']} OWNER {of_postgres['POSTGRES_USER']}")
        values = {"DATABASE_PASSWORD": "from-compose", "DRAGOMAN_TOKEN": TOKEN}
        self.env = {name: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda m: values[m[1]], value) for name, value in of_replica.items()}
        self.env.update(PGHOST="127.0.0.1", PGPORT=str(self.database.port))
        try:
            self.replicas = [self.replica() for _ in range(replicas)]
            self.balancer = Balancer([r.address for r in self.replicas])
        except BaseException:
            self.__exit__()
            raise

    def replica(self, **more):
        settings = {k: v for k, v in self.settings.items() if k != "store"}
        return Server(agent=None, store=self.settings["store"], config=settings, env=self.env, **more)

    def client(self, at=None):
        return Client(self.balancer if at is None else self.replicas[at], RPC1, token=TOKEN)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.balancer:
            self.balancer.end()
        for r in self.replicas:
            if r.is_running():
                r.kill()


BENCH = [{"id": "bench", "type": "bench"}]


@test("three replicas behind the balancer: a task of one is read, streamed, resumed, listed and canceled at the others, and a resend finds it", timeout=300)
def _():
    with Group(BENCH) as g:
        c = g.client()
        for path in ("/metrics", "/debug/tasks", "/debug/me"):
            same(ask(g.balancer.address, "GET", path, headers=[("Authorization", "Bearer " + TOKEN)]).status, 403, path)
        # 503: the checks of the balancer may fail for a moment on a busy machine
        soon(lambda: ask(g.balancer.address, "GET", "/tasks").status != 503, "no server is up behind the balancer", 90)
        same(ask(g.balancer.address, "GET", "/tasks").status, 401, "a request without the token")
        m = message("chunks 20 x", context=new_id("ctx"))
        soon(lambda: ask(g.balancer.address, "GET", "/readyz").status == 200, "no server is up behind the balancer", 90)
        task = c.send(m=m).task
        for i in range(REPLICAS):
            same(g.client(i).get(task["id"]).task, task, f"the task at replica {i}")
            same(g.client(i).send(m=m).task["id"], task["id"], f"a resend to replica {i}")
            same(len(g.client(i).list(contextId=m["contextId"]).value["tasks"]), 1, f"tasks at replica {i}")
        # a running task: started at replica 0, followed at the others
        with g.client(0).stream("hold 600 x") as first:
            first.until("WORKING")
            running = first.seen[0].body["id"]
            with g.client(1).subscribe(running) as second, g.client(2).subscribe(running, last=0) as third:
                check(g.client(2).cancel(running).ok, "canceled at replica 2")
                for s in (first, second, third):
                    same(s.rest()[-1].state, "TASK_STATE_CANCELED", "the last event")
        for r in g.replicas:
            r.stop_well()


class Clients:
    """Send through the balancer, and continue their streams at the next connection, until they are stopped."""
    def __init__(self, g):
        self.g, self.gone, self.lock = g, threading.Event(), threading.Lock()
        self.done, self.faults, self.again = {}, [], 0
        self.threads = [threading.Thread(target=self.run, args=(n,), daemon=True) for n in range(6)]
        for t in self.threads:
            t.start()

    def run(self, n):
        try:
            while not self.gone.is_set():
                m = message("chunks 40 yield x", context=new_id("ctx"))
                task = self.stream(m) if n % 2 else self.send(m)
                with self.lock:
                    self.done[m["contextId"]] = task
        except Exception as e:
            self.faults.append(f"{type(e).__name__}: {e}")

    def retry(self, call):
        end = time.monotonic() + 180
        while True:
            try:
                a = call()
                if a is not None:
                    return a
            except (Closed, ConnectionError, OSError):
                pass
            except Failure as f:  # the balancer's own response is HTML
                if "No server is available" not in str(f) and "502 Bad Gateway" not in str(f):
                    raise
            check(time.monotonic() < end, "no answer for 180 s")
            with self.lock:
                self.again += 1
            time.sleep(0.05)

    def send(self, m):
        def call():
            a = self.g.client().send(m=m)
            return a if a.response.status < 500 and a.ok else None
        return self.retry(call).task["id"]

    def stream(self, m):
        task, ids = None, []

        def call():
            nonlocal task
            c = self.g.client()
            e = c.open("subscribe", {"id": task}, headers=[("Last-Event-ID", str(ids[-1]))]) if ids else c.open("stream", c.params(m=m))
            if not isinstance(e, Events):
                return None
            with e as events:
                try:
                    for event in events:
                        task = task or events.seen[0].body["id"]
                        ids.append(int(event.id))
                        if event.state in TERMINAL:
                            return events
                except Failure as f:
                    if "an error in the stream" not in str(f):
                        raise
            return None
        self.retry(call)
        same(ids, list(range(1, len(ids) + 1)), f"ids of {task}")
        return task

    def stop(self):
        self.gone.set()
        for t in self.threads:
            t.join(240)
        check(not self.faults, self.faults[:1])


@test("a rolling restart under load: no message is lost or executed twice, no cursor skips or repeats, every replica ends with status 0", timeout=500)
def _():
    with Group(BENCH) as g:
        clients = Clients(g)
        soon(lambda: len(clients.done) > 10 or clients.faults, "no tasks", 120)
        for i, r in enumerate(g.replicas):
            before = len(clients.done)
            status = r.stop(120)
            check(status == 0, lambda: f"status {status}\n" + r.last_words())
            soon(lambda: len(clients.done) > before + 10 or clients.faults, f"no tasks without replica {i}", 120)
            r.restart()
            soon(lambda: ask(r.address, "GET", "/readyz").status == 200, "it does not become ready", 120)
        clients.stop()
        c = g.client()
        for context, task in clients.done.items():
            same([(t["id"], t["status"]["state"]) for t in c.list(contextId=context).value["tasks"]], [(task, "TASK_STATE_COMPLETED")], "tasks of one message")
        print(f"# {len(clients.done)} messages, {clients.again} attempts were repeated", flush=True)


@test("a replica that is killed while it streams: its clients continue at another one with their cursor", timeout=300)
def _():
    with Group([{"id": "bench", "type": "bench"}]) as g:
        clients = Clients(g)
        soon(lambda: len(clients.done) > 10 or clients.faults, "no tasks", 120)
        g.replicas[0].process.send_signal(signal.SIGKILL)
        g.replicas[0].process.wait()
        before = len(clients.done)
        soon(lambda: len(clients.done) > before + 30 or clients.faults, "no tasks after the kill", 90)
        clients.stop()
