"""Checkpoints of graphs in the server's store, through a worker process in plain Python (lib/checkpoints.py)."""
import json
import os
import sys
import time

from lib import checkpoints
from lib.a2a import RPC1, Client, task_text
from lib.server import ROOT, Server, agent, folder, is_sanitized, needs_ours, settings
from lib.tap import check, each, same, soon, test
from test_resume import sqlite

WORKER = os.path.join(ROOT, "tests", "wire", "lib", "checkpoints.py")
KILLS = int(os.environ.get("DRAGOMAN_KILLS", "5"))
STORES = [("memory", lambda: "memory:"), ("sqlite", sqlite)]


def one_agent(id="graph"):
    needs_ours()
    return agent("exec", id=id, settings={"mode": "worker", "command": [sys.executable, WORKER]})


def config(*ids):
    return settings(agents=[one_agent(id) for id in ids or ["graph"]])


def do(s, *calls, context="c", **client):
    """The results of these requests."""
    text = json.dumps({"calls": calls})
    return json.loads(task_text(Client(s, RPC1, **client).send(text, context=context).task))


def put(id, size=10, ns="", thread="$thread", **more):
    return ["checkpoint/put", {"thread": thread, "ns": ns, "id": id, "checkpoint": {"$value": ["msgpack", size, id]},
                               "metadata": {"$value": ["json", 5, id]}, **more}]


def writes(id, *items, task="k", thread="$thread", ns=""):
    return ["checkpoint/writes", {"thread": thread, "ns": ns, "id": id, "task": task, "taskPath": "~p",
                                  "writes": [[idx, channel, {"$value": ["w", size, channel]}] for idx, channel, size in items]}]


def get(thread="$thread", ns="", **more):
    return ["checkpoint/get", {"thread": thread, "ns": ns, **more}]


def ls(thread="$thread", **more):
    return ["checkpoint/list", {"thread": thread, **more}]


def value(type, size, seed):
    return [type, size, checkpoints.digest(checkpoints.value_bytes(size, seed))]


def ids(page):
    return [f"{r['ns']}/{r['id']}" for r in page["rows"]]


@each("a worker stores checkpoints and reads them: {}", STORES)
def _(store):
    with Server(None, config=config(), store=store()) as s:
        same(do(s, get(), put("1", run="r1"), put("2", parent="1"), writes("2", (0, "a", 3), (-3, "b", 4)), writes("2", (0, "other", 9), (-3, "c", 5))),
             [None, {}, {}, {}, {}], "answers")
        latest, first, none = do(s, get(), get(id="1"), get(id="3"))
        same(latest, {"thread": "$thread", "ns": "", "id": "2", "parent": "1", "checkpoint": value("msgpack", 10, "2"), "metadata": value("json", 5, "2"),
                      "writes": [["k", "c", value("w", 5, "c"), "~p"], ["k", "a", value("w", 3, "a"), "~p"]]}, "latest")
        same((first["id"], first["run"], first["writes"], none), ("1", "r1", [], None), "others")
        same(do(s, get(), context="another"), [None], "the thread of another context")


@each("all operations on threads: {}", STORES)
def _(store):
    with Server(None, config=config(), store=store()) as s:
        do(s, put("1", run="r1"), put("2", run="r2"), put("3", run="r1"), put("2", ns="n", run="r2"), put("4", ns="n"), writes("3", (0, "a", 3)))
        whole, root, before, limited = do(s, ls(), ls(ns=""), ls(before="3"), ls(limit=2))
        same((ids(whole), whole["more"]), (["n/4", "/3", "/2", "n/2", "/1"], False), "all")
        same((ids(root), ids(before)), (["/3", "/2", "/1"], ["/2", "n/2", "/1"]), "filtered")
        same((ids(limited), limited["more"]), (["n/4", "/3"], True), "first page")
        again, = do(s, ls(limit=3, after=limited["next"]))
        same((ids(again), again["more"]), (["/2", "n/2", "/1"], False), "second page")
        copied, = do(s, ["checkpoint/copy", {"from": "$thread", "to": "$thread:copy"}], ls("$thread:copy"))[1:]
        same(ids(copied), ids(whole), "copy")
        same(copied["rows"][1]["writes"], whole["rows"][1]["writes"], "its writes")
        everything, = do(s, ["checkpoint/list", {}])
        same(len(everything["rows"]), 10, "of all threads")
        same([ids(p) for p in do(s, ["checkpoint/prune", {"threads": ["$thread:copy"], "strategy": "keep_latest"}], ls("$thread:copy"), ls())[1:]],
             [["n/4", "/3"], ids(whole)], "pruned")
        same([ids(p) for p in do(s, ["checkpoint/delete_runs", {"runs": ["r1", "r9"]}], ls(), ls("$thread:copy"))[1:]], [["n/4", "/2", "n/2"], ["n/4"]], "without a run")
        same([ids(p) for p in do(s, ["checkpoint/prune", {"threads": ["$thread:copy"], "strategy": "delete"}], ls("$thread:copy"))[1:]], [[]], "deleted by prune")
        same([ids(p) for p in do(s, ["checkpoint/delete", {"thread": "$thread"}], ls())[1:]], [[]], "deleted")


@each("values above the line travel in parts: {}", STORES)
def _(store):
    with Server(None, config=config(), store=store()) as s:
        size = 9 * 1024 * 1024 + 1
        do(s, put("1", size=size), writes("1", (0, "large", 5 * 1024 * 1024), (1, "small", 10)))
        row, = do(s, get())
        same(row["checkpoint"], value("msgpack", size, "1"), "checkpoint")
        same([w[2] for w in row["writes"]], [value("w", 5 * 1024 * 1024, "large"), value("w", 10, "small")], "writes")
        for _ in range(3):
            same(do(s, get())[0]["checkpoint"], row["checkpoint"], "read again")


@test("a checkpoint of the largest size is stored", timeout=300)
def _():
    with Server(None, config=config(), store=sqlite()) as s:
        size = 16 << 20 if is_sanitized() else 64 << 20  # a sanitizer makes it slow; test_worker_checkpoints.c has the limit
        same(do(s, put("1", size=size)), [{}], "put")
        same(do(s, get())[0]["checkpoint"], value("msgpack", size, "1"), "get")
        refused, = do(s, ["blob/write", {"blob": "x", "data": "AAAA"}], ["checkpoint/put", {"thread": "$thread", "id": "2", "checkpoint": ["b", {"blob": "y"}]}])[1:]
        same((refused["error"], "unknown blob" in refused["message"]), (-32602, True), refused)


@test("a thread that the server has not named is refused")
def _():
    with Server(None, config=config("graph", "other"), store="memory:") as s:
        do(s, put("1"))
        for method, params in (put("1", thread="x"), get("x"), ls("x"), ["checkpoint/delete", {"thread": "x"}], writes("1", thread="x"),
                               ["checkpoint/copy", {"from": "$thread", "to": "x"}], ["checkpoint/copy", {"from": "x", "to": "$thread"}],
                               ["checkpoint/prune", {"threads": ["x"]}]):
            refused, = do(s, [method, params])
            check(refused["error"] == -32602 and "was not named" in refused["message"], (method, refused))
        unknown, = do(s, ["checkpoint/unknown", {}])
        same(unknown["error"], -32601, "unknown method")


@test("agents do not see each other's checkpoints")
def _():
    with Server(None, config=config("graph", "other"), store=sqlite()) as s:
        do(s, put("1"))
        do(s, put("2"), base="/agents/other")
        for base, id in (("", "1"), ("/agents/other", "2")):
            same(ids(do(s, ["checkpoint/list", {}], base=base)[0]), ["/" + id], base)
            same(do(s, get(), base=base)[0]["id"], id, base)


@test("nothing that was acknowledged is lost when the server is killed", timeout=600)
def _():
    with Server(None, config=config(), store=sqlite()) as s:
        for kill in range(KILLS):
            acknowledged = os.path.join(folder(), "acknowledged")
            size = (10, 5000, 100000)[kill % 3]
            Client(s, RPC1).send(json.dumps({"puts": acknowledged, "size": size}), context="c", config={"returnImmediately": True})
            soon(lambda: len(lines(acknowledged)) > kill, "nothing was acknowledged", 60)
            s.kill()
            time.sleep(0.2)  # the worker ends with its connection
            s.restart()
            check_acknowledged(s, lines(acknowledged))
            if kill % 2:
                do(s, ["checkpoint/delete", {"thread": "$thread"}])


def lines(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read().splitlines()
    except FileNotFoundError:
        return []


def check_acknowledged(s, acknowledged):
    rows, page = {}, {"more": True}
    while page["more"]:
        page, = do(s, ls(**({"after": page["next"]} if "next" in page else {})))
        rows.update({r["id"]: r for r in page["rows"]})
    for line in acknowledged:
        kind, id = line.split()
        check(id in rows, f"lost: {line}")
        same(rows[id]["metadata"], value("json", 20, id), "metadata")
        same(rows[id]["checkpoint"], value("bytes", rows[id]["checkpoint"][1], id), "checkpoint")
        if kind == "writes":
            same([w[2] for w in rows[id]["writes"]], [value("w", rows[id]["checkpoint"][1], id)], f"writes of {id}")
