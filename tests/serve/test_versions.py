"""Servers on one PostgreSQL while its tables are made or become those of a newer version."""
import subprocess
import threading

from lib.a2a import RPC1, Client, message, new_id
from lib.http import ask
from lib.server import DRAGOMAN, ENV, Server, folder, on_postgres
from lib.tap import check, same, soon, test
from test_replicas import sql

AT_ONCE = 4
TABLES = ("tasks", "log", "turns", "messages", "calls", "notes", "threads", "checkpoints", "replicas", "commands", "answers", "jobs")


@test(f"{AT_ONCE} servers that start at the same time on an empty database: one makes the tables, all serve", timeout=240)
def _():
    store, servers, faults = on_postgres("memory:"), [], []

    def start():
        try:
            servers.append(Server("bench", store=store))
        except Exception as e:
            faults.append(str(e))
    threads = [threading.Thread(target=start, daemon=True) for _ in range(AT_ONCE)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(200)
    same((faults, len(servers)), ([], AT_ONCE), "servers that do not start")
    same(sql(store, "SELECT count(*) FROM dragoman.migrations"), ["1"], "migrations")
    task = Client(servers[0], RPC1).send("chunks 3 x").task
    for s in servers:
        same(Client(s, RPC1).get(task["id"]).task, task, "the task")
    for s in servers:
        s.stop_well()


def work(s, earlier=None):
    """A send, a resend, a stream, a resume, a list, a cancel; returns a task."""
    c, m = Client(s, RPC1), message("chunks 3 x", context=new_id("ctx"))
    task = c.send(m=m).task["id"]
    same(c.send(m=m).task["id"], task, "the task of a resend")
    with c.stream("chunks 30 yield y") as stream:
        seen = [e.id for e in stream]
    with c.subscribe(stream.seen[0].body["id"], last=int(seen[4])) as rest:
        same([e.id for e in rest], seen[5:], "the rest of the stream")
    same([t["id"] for t in c.list(contextId=m["contextId"]).value["tasks"]], [task], "tasks of the context")
    held = c.send("hold 600 x", config={"returnImmediately": True}).task["id"]
    check(c.cancel(held).ok, "canceled")
    if earlier:
        same(c.get(earlier).task["status"]["state"], "TASK_STATE_COMPLETED", "an earlier task")
    return task


@test("a newer version adds columns and indexes to all tables: the servers of this one go on, over lost connections too; one that starts then is refused", timeout=240)
def _():
    store = on_postgres("memory:")
    database = store.rsplit("dbname=", 1)[1]
    with Server("bench", store=store) as s:
        task = work(s)
        for table in TABLES:
            sql(store, f"ALTER TABLE dragoman.{table} ADD COLUMN later bigint NOT NULL DEFAULT 7; CREATE INDEX ON dragoman.{table}(later)")
        sql(store, "CREATE TABLE dragoman.later(tenant bytea PRIMARY KEY); INSERT INTO dragoman.migrations(version,about) VALUES(99,'later')")
        work(s, task)
        sql(store, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname='{database}' AND pid<>pg_backend_pid()")
        soon(lambda: ask(s.address, "GET", "/readyz").status == 200 and Client(s, RPC1).send("chunks 1 x").ok, "it does not come back", 60)
        work(s, task)
        p = subprocess.run([DRAGOMAN, "serve", "--listen", "127.0.0.1:0", "--agent", "bench", "--store", store], cwd=folder(), env=ENV, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
        same(p.returncode, 1, "status of a server of this version")
        check("newer dragoman" in p.stdout, p.stdout)
        s.stop_well()
