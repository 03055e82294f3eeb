"""Servers (replicas) on one database, each with proxies of its own in front of the database, and a balancer in front of them."""
import os
import signal
import threading
import time

from .database import Database
from .proxies import Balancer, Proxy
from lib.server import LIVE, Server
from lib.tap import Failure

LEASE = 1.0  # seconds: the least that a server accepts


class Replica:
    """A server, and its proxies to each node of the database."""

    def __init__(self, cluster, index, lease, wakeup):
        self.cluster, self.index, self.is_stopped = cluster, index, False
        self.dead = set()  # nodes of the database that are gone for ever
        self.lock = threading.Lock()  # one fault at a time starts or ends it
        self.proxies = [Proxy(n.address) for n in cluster.database.nodes]
        ports = ",".join(str(p.port) for p in self.proxies)
        hosts = ",".join("127.0.0.1" for _ in self.proxies)
        conninfo = f"postgres:host={hosts} port={ports} user=dragoman dbname={cluster.name}" + \
            (" target_session_attrs=read-write" if len(self.proxies) > 1 else "")
        config = dict(cluster.config)
        config["replica"] = {"name": f"replica-{index}", "lease_s": round(lease), "wakeup": wakeup}
        self.server = Server(None, store=conninfo, config=config, args=cluster.args)
        self.listen = self.server.address

    @property
    def pid(self):
        return self.server.process.pid

    def kill(self):
        with self.lock:
            self.server.kill()
            self.is_stopped = False

    def revive(self, seconds=60):
        """Starts it again at the same address, as a service manager does: until it runs."""
        with self.lock:
            end = time.monotonic() + seconds
            while not self.server.is_running():
                try:
                    self.server.restart()
                except Failure:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.2)

    def stop(self):
        with self.lock:
            if self.server.is_running():
                os.kill(self.pid, signal.SIGSTOP)
                self.is_stopped = True

    def go_on(self):
        with self.lock:
            if self.is_stopped and self.server.is_running():
                os.kill(self.pid, signal.SIGCONT)
            self.is_stopped = False

    def each_proxy(self, action):
        """Of the nodes that still exist."""
        for i, p in enumerate(self.proxies):
            if i not in self.dead:
                getattr(p, action)()

    def delay(self, seconds):
        for p in self.proxies:
            p.delay = seconds


class Cluster:
    """`address` is the balancer's: clients of tests/wire use it as they use a server."""
    errors = "1.0.1"  # table of A2A's errors

    def __init__(self, n=3, config=None, database=None, standby=False, lease=LEASE, wakeup="notify", args=()):
        self.config, self.args, self.lease = config or {}, list(args), lease
        self.is_own, self.replicas, self.balancer = database is None, [], None
        self.database = database or Database(standby)
        self.name = f"r{os.getpid()}_{time.monotonic_ns()}"
        try:
            self.database.create(self.name)
            for i in range(n):
                self.replicas.append(Replica(self, i, lease, wakeup))
            self.balancer = Balancer(*[r.listen for r in self.replicas])
        except BaseException:
            self.close()
            raise

    @property
    def address(self):
        return self.balancer.address

    @property
    def url(self):
        return f"http://127.0.0.1:{self.balancer.port}"

    def sql(self, text):
        return self.database.primary.sql(text, self.name)

    def fail_over(self):
        """The primary dies, the standby takes over; seconds until it accepts writes."""
        dead = self.database.nodes.index(self.database.primary)
        for r in self.replicas:
            r.dead.add(dead)
            r.proxies[dead].refuse()
        return self.database.fail_over()

    def heal(self):
        """The end of all faults: everything runs and is connected."""
        for r in self.replicas:
            r.go_on()
            r.each_proxy("heal")
        for r in self.replicas:
            r.revive()

    def owner(self, task):
        """The replica that has the lease of the task; None."""
        pid = self.sql(f"SELECT r.pid FROM dragoman.tasks t JOIN dragoman.replicas r ON r.id=t.owner WHERE t.id='\\x{task.encode().hex()}'")
        return next((r for r in self.replicas if pid == str(r.pid)), None)

    def faults(self):
        """What the servers wrote that no server should write: reports of sanitizers, crashes."""
        out = []
        for r in self.replicas:
            text = "\n".join(r.server.log)
            if "Sanitizer" in text or "runtime error" in text:
                out.append(f"replica {r.index}: {r.server.last_words()}")
            status = r.server.process.returncode
            if status not in (None, 0, -signal.SIGKILL):
                out.append(f"replica {r.index} ended with status {status}: {r.server.last_words()}")
        return out

    def close(self):
        for r in self.replicas:
            r.go_on()
            if r.server.is_running():
                r.server.kill()
            LIVE.discard(r.server)
            for p in r.proxies:
                p.close()
        if self.balancer:
            self.balancer.close()
        if self.is_own:
            self.database.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
