"""`dragoman db copy`: tasks move from SQLite to PostgreSQL and back, and clients go on where they were."""
import os
import subprocess

from lib.a2a import RPC1, Client, message, new_id
from lib.server import DRAGOMAN, ENV, Server, folder, needs_sqlite, on_postgres
from lib.tap import check, same, test


def copy(*stores, status=0):
    p = subprocess.run([DRAGOMAN, "db", "copy", *stores], cwd=folder(), env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=100)
    same(p.returncode, status, f"status of db copy: {p.stdout}")
    return p.stdout


@test("db copy to PostgreSQL and back: each task is the same, a cursor continues its stream, a resend finds its task, and the next message is stored", timeout=240)
def _():
    needs_sqlite("it starts with a file of SQLite")
    first, back = (f"sqlite:{os.path.join(folder(), name)}" for name in ("first.db", "back.db"))
    postgres, m = on_postgres("memory:"), message("chunks 20 x", context=new_id("ctx"))

    def work(s, known=()):
        """What was known is there; one more task of the context is made."""
        c = Client(s, RPC1)
        for task, records in known:
            same(c.get(task["id"]).task, task, "the Task")
            with c.subscribe(task["id"], last=5) as rest:
                same([(e.id, e.payload) for e in rest], records[5:], "the stream behind a cursor")
        same(c.send(m=m).task["id"], known[0][0]["id"] if known else c.list(contextId=m["contextId"]).value["tasks"][0]["id"], "the task of a resend")
        task = c.send(m=message(f"chunks {10 + len(known)} x", context=m["contextId"])).task if known else c.send(m=m).task
        with c.subscribe(task["id"], last=0) as all_of:
            made = task, [(e.id, e.payload) for e in all_of]
        same(len(c.list(contextId=m["contextId"]).value["tasks"]), len(known) + 1, "tasks of the context")
        return [*known, made]

    known = []
    for store, source in ((first, None), (postgres, first), (back, postgres)):
        if source:
            check("tasks" in copy(source, store), "it prints no counts")
        with Server("bench", store=store) as s:
            known = work(s, known)
            s.stop_well()
    same(len(known), 3, "tasks")
    check("is not empty" in copy(first, postgres, status=1), "a database with tasks")


@test("db copy refuses a password in the connection string, and does not print it")
def _():
    needs_sqlite("it starts with a file of SQLite")
    source = f"sqlite:{os.path.join(folder(), 'source.db')}"
    with Server("bench", store=source) as s:
        s.stop_well()
    for conninfo in ("host=127.0.0.1 dbname=d password=hunter2-secret", "postgresql://me:hunter2-secret@127.0.0.1/d"):
        text = copy(source, "postgres:" + conninfo, status=1)
        check("hunter2" not in text and "PGPASSWORD" in text, text)
