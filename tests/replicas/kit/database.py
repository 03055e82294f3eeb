"""PostgreSQL with a port, a streaming standby and failover. tests/postgres/server knows how it is started and killed."""
import importlib.machinery
import importlib.util
import os
import shutil
import socket
import subprocess
import threading
import time

from . import ROOT
from lib.tap import Failure, check, soon

_loader = importlib.machinery.SourceFileLoader("postgres_server", os.path.join(ROOT, "tests/postgres/server"))
server = importlib.util.module_from_spec(importlib.util.spec_from_loader("postgres_server", _loader))
_loader.exec_module(server)

SETTINGS = "listen_addresses='127.0.0.1'\nmax_connections=120\nshared_buffers=16MB\nwal_keep_size=64MB\nmax_wal_senders=4\nport={}\n"


def new_folder():
    folder = server.new_folder("dgm-replicas-")
    server.watch(folder, os.getpid())
    return folder


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Node:
    """One PostgreSQL: a socket in its folder, and a port of 127.0.0.1."""

    def __init__(self, copy_of=None):
        self.folder = new_folder()
        if copy_of is None:
            server.copy_template(self.folder + "/data")
        else:
            server.run(server.bindir() + "/pg_basebackup", "-D", self.folder + "/data", "-R", "-X", "stream", "-c", "fast", "--no-sync",
                       "-d", f"host=127.0.0.1 port={copy_of.port} user=dragoman application_name=standby")
        for _ in range(5):
            self.port = free_port()
            with open(self.folder + "/data/postgresql.conf", "a", encoding="utf-8") as f:
                f.write(server.SETTINGS + server.UNSYNCED + SETTINGS.format(self.port))
            try:
                return server.launch(self.folder)
            except SystemExit as e:  # the port was taken meanwhile
                fault = e
        raise Failure(str(fault))

    def sql(self, text, database="postgres", seconds=60):
        p = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "dragoman", "-d", database, "-c", text],
                           capture_output=True, text=True, timeout=seconds, check=False)
        check(p.returncode == 0, lambda: f"psql: {p.stderr}")
        return p.stdout.strip()

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def crash(self):
        server.kill(self.folder)

    def launch(self):
        server.launch(self.folder)

    def restart(self, crash=False):
        if crash:
            self.crash()
        else:
            server.run(server.bindir() + "/pg_ctl", "-D", self.folder + "/data", "-w", "-m", "fast", "stop")
        self.launch()

    def stop(self):
        server.stop(self.folder)


class Database:
    """A primary and, if wanted, a synchronous standby. `nodes` are in the order of their addresses in a connection string."""

    def __init__(self, standby=False):
        self.primary = Node()
        self.nodes = [self.primary]
        self.standby, self.lock = None, threading.Lock()  # lock: one restart at a time
        if standby:
            self.add_standby()

    def add_standby(self):
        self.standby = Node(copy_of=self.primary)
        self.nodes.append(self.standby)
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names='*'")
        self.primary.sql("SELECT pg_reload_conf()")
        soon(lambda: self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state='sync'") == "1", "the standby is not synchronous")

    def fail_over(self):
        """The primary is killed, and the standby becomes the primary; seconds until it accepts writes."""
        began = time.monotonic()
        self.primary.crash()
        self.standby.sql("SELECT pg_promote(true, 60)")
        self.primary, self.standby = self.standby, None
        return time.monotonic() - began

    def create(self, name):
        self.primary.sql(f"CREATE DATABASE {name}")

    def stop(self):
        for n in self.nodes:
            n.stop()
            shutil.rmtree(n.folder, ignore_errors=True)
