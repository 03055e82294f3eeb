"""GET /debug/tasks/{id}/records: the log of a task as it is stored, for operators and, with `inspect: owner`, for its owner."""
import json
import os

from lib.a2a import REST1, RPC1, Client, new_id
from lib.agents import completed, tck, waiting
from lib.http import Conn, Stream, ask
from lib.server import TOKENS, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, test

OPERATOR = "operator-secret"
# writes a line now and then until the file that the message names is there
UNTIL_TOLD = 'read -r gate; i=0; until [ -e "$gate" ]; do i=$((i+1)); echo $i; sleep 0.01; done'


def operated(inspect="operator"):
    config = settings(tokens=True)
    config["tokens"].append({"token": OPERATOR, "principal": "root", "role": "operator"})
    config["inspect"] = inspect
    return server("tck", config=config)


def bearer(token):
    return [("Authorization", f"Bearer {token}")] if token else []


def path(task, query=""):
    return f"/debug/tasks/{task}/records" + query


def read(s, task, query="", token=None, headers=()):
    return ask(s.address, "GET", path(task, query), None, [*bearer(token), *headers])


def lines(r):
    same((r.status, r.type), (200, "application/x-ndjson"), r)
    return [json.loads(line) for line in r.body.decode().splitlines()]


def seqs(records):
    return [r["seq"] for r in records]


@test("records of a task: all of them in order, internal ones included [R002-36]")
def _():
    needs_ours()
    c = Client(server("tck"), RPC1)
    task = waiting(c)["id"]
    c.send(id=tck("complete-task"), task=task)
    got = lines(read(c.server, task))
    same(seqs(got), list(range(1, len(got) + 1)), "seqs")
    check("task" in got[0]["record"], got[0])
    same(sorted({r["turn"] for r in got}), [1, 2], "turns")
    internal = [r for r in got if r["record"].get("kind", "").startswith("internal:")]
    same(len(internal), 1, "the message of the second turn is an internal record")
    check("complete-task" in json.dumps(internal[0]), internal)
    same(got[-1]["record"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "the last one")
    check(all(r["time"].endswith("Z") for r in got), got)


@test("records of a task: behind a cursor")
def _():
    needs_ours()
    s = server("tck")
    task = completed(Client(s, REST1))["id"]
    all = lines(read(s, task))
    same(lines(read(s, task, "?after=1")), all[1:], "after")
    same(lines(read(s, task, headers=[("Last-Event-ID", "2")])), all[2:], "Last-Event-ID")
    same(lines(read(s, task, f"?after={len(all)}")), [], "at the end")
    same(read(s, new_id()).status, 404, "an unknown task")
    same(ask(s.address, "POST", path(task), b"").status, 405, "POST")


@each("records of a task that works are streamed until it ends: {}", [("lines", False), ("server-sent events", True)])
def _(is_sse):
    needs_ours("needs the exec agent")
    s = server(None, config=settings(agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})]))
    gate = os.path.join(folder(), new_id("gate"))
    task = Client(s, RPC1).send(gate, config={"returnImmediately": True}).task["id"]
    with Conn(s.address) as conn:
        conn.request("GET", path(task), None, [("Accept", "text/event-stream")] if is_sse else [])
        r = conn.head()
        same(r.status, 200, "status")
        if is_sse:
            stream = Stream(conn, r)
            first = [stream.next() for _ in range(5)]
            open(gate, "w").close()
            frames = first + stream.rest()
            same([f.id for f in frames], [str(f.json["seq"]) for f in frames], "ids")
            records = [f.json for f in frames]
        else:
            text = b""
            for chunk in conn.chunks(r):
                text += chunk
                if text.count(b"\n") > 5:
                    open(gate, "w").close()
            records = [json.loads(line) for line in text.splitlines()]
    same(seqs(records), list(range(1, len(records) + 1)), "seqs")
    same(records[-1]["record"]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "the last one")


@test("records of a task: operators name its owner, its owner needs `inspect: owner`")
def _():
    needs_ours()
    s = operated()
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    same(read(s, task, token=TOKENS["alice"]).status, 403, "its owner")
    same(read(s, task).status, 401, "without a token")
    same(read(s, task, token=OPERATOR).status, 404, "a task of the operator")
    check(lines(read(s, task, "?principal=alice", OPERATOR)), "of alice")


@test("records of a task: with `inspect: owner` callers read tasks of their own")
def _():
    needs_ours()
    s = operated("owner")
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    check(lines(read(s, task, token=TOKENS["alice"])), "alice")
    same(read(s, task, token=TOKENS["bob"]).status, 404, "bob")
    same(read(s, task, "?principal=alice", TOKENS["bob"]).status, 403, "bob as alice")


@test("records of a task: on loopback `inspect: auto` is `owner`")
def _():
    needs_ours()
    s = operated("auto")
    task = completed(Client(s, REST1, token=TOKENS["alice"]))["id"]
    check(lines(read(s, task, token=TOKENS["alice"])), "alice")
