"""Cancel of an llm agent during everything that it may wait for: it stops, and no descriptor and no child is left."""
import http.server
import os
import sys
import threading
import time

from lib import models
from lib.a2a import RPC1, TERMINAL, Client
from lib.models import Upstream, calls, text
from lib.server import Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test

SOON = 20  # seconds; on an idle machine less than one
HANGS = "import sys, time\nprint('started', file=sys.stderr, flush=True)\ntime.sleep(600)"
# an MCP server of one tool, which does not answer; it writes the methods that it gets into a file
MCP = """import json, sys
for line in sys.stdin:
    m = json.loads(line)
    with open(sys.argv[1], "a") as f: f.write(m["method"] + "\\n")
    if "id" not in m or m["method"] == "tools/call": continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "hang", "description": "hangs", "inputSchema": {"type": "object"}}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


class Silent:
    """An HTTP server that does not answer, and counts connections."""

    def __init__(self):
        outer = self
        self.open, self.seen = 0, 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                outer.open += 1
                outer.seen += 1
                try:
                    while self.connection.recv(4096):
                        pass
                except OSError:
                    pass
                outer.open -= 1
                self.close_connection = True

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"


def processes():
    """(pid, parent, command line) of each."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                parent = f.read().rsplit(")", 1)[1].split()[1]
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                yield pid, parent, f.read()
        except OSError:
            pass


def children(s, command=""):
    """Children of the server and of its children."""
    all = list(processes())
    own = {str(s.process.pid)}
    own |= {pid for pid, parent, _ in all if parent in own}
    return [pid for pid, parent, line in all if parent in own and command in line]


def programs(s):
    return children(s, "time.sleep(600)")


def descriptors(s):
    return len(os.listdir(f"/proc/{s.process.pid}/fd"))


def once(call):
    """A model that makes this call, then answers."""
    return Upstream(lambda body, n: text("done") if models.results_of(body) else calls(call))


ROUNDS = 6  # one descriptor that each of them leaves open would show


def canceled_quickly(s, c, prompt, began, over=lambda: True):
    """The first two rounds leave what is used again: idle connections, MCP servers."""
    for n in range(2 + ROUNDS):
        if n == 2:
            before = (descriptors(s), len(children(s)))
        t = c.send(prompt, config={"returnImmediately": True}).task
        soon(began, "it did not start", 60)
        at = time.monotonic()
        same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "the state")
        soon(over, "it goes on", SOON)
        took = time.monotonic() - at
        same(c.get(t["id"]).state, "TASK_STATE_CANCELED", "the state afterwards")

    def is_clean():
        return descriptors(s) < before[0] + ROUNDS and len(children(s)) <= before[1]
    soon(is_clean, lambda: f"descriptors and children: {(descriptors(s), len(children(s)))}, before {before}", SOON)
    print(f"# {took:.2f} s")


def serve(settings_, *others, mcp=None):
    needs_ours("only Dragoman has this agent")
    config = settings(agents=[agent("llm", id="assistant", settings=settings_), *others])
    config["loops"] = 1  # each loop has connections and MCP sessions of its own
    if mcp:
        config["mcp"] = mcp
    s = Server(None, config=config)
    return s, Client(s, RPC1)


def counter(values):
    """True when the value has grown since the last time."""
    last = [values()]

    def grown():
        if values() <= last[0]:
            return False
        last[0] = values()
        return True
    return grown


@test("during a model call: the connection is closed")
def _():
    up = Silent()
    s, c = serve({"base_url": up.url, "model": "m"})
    with s:
        canceled_quickly(s, c, "go", counter(lambda: up.seen), lambda: up.open == 0)


@test("during the text of a model call: no text follows")
def _():
    up = Upstream(lambda body, n: text("one two three " * 500, pause=0.05))
    s, c = serve({"base_url": up.url, "model": "m"})
    with s:
        canceled_quickly(s, c, "go", counter(lambda: len(up.requests)), lambda: up.open == 0)


@test("during a wait before the next attempt")
def _():
    up = Upstream(lambda body, n: models.error(503, headers={"Retry-After": "20"}))
    s, c = serve({"base_url": up.url, "model": "m"})
    with s:
        canceled_quickly(s, c, "go", counter(lambda: len(up.requests)))


@test("during a program: it is ended")
def _():
    up = once(("sleep", {}))
    s, c = serve({"base_url": up.url, "model": "m", "tools": [{"exec": {"name": "sleep", "description": "sleeps", "command": [sys.executable, "-c", HANGS]}}]})
    with s:
        canceled_quickly(s, c, "go", lambda: programs(s), lambda: not programs(s))


@test("during four programs at a time: all are ended")
def _():
    up = Upstream(lambda body, n: text("done") if models.results_of(body) else calls(*[("sleep", {})] * 6))
    s, c = serve({"base_url": up.url, "model": "m", "tools": [{"exec": {"name": "sleep", "description": "sleeps", "command": [sys.executable, "-c", HANGS]}}]})
    with s:
        canceled_quickly(s, c, "go", lambda: len(programs(s)) == 4, lambda: not programs(s))


@test("during an HTTP request: the connection is closed")
def _():
    api, up = Silent(), once(("post", {}))
    s, c = serve({"base_url": up.url, "model": "m", "tools": [{"http": {"name": "post", "description": "posts", "method": "POST", "url": api.url}}]})
    with s:
        canceled_quickly(s, c, "go", counter(lambda: api.seen), lambda: api.open == 0)


@test("during a call of an MCP server: the server is notified and stays")
def _():
    up, log = once(("t__hang", {})), folder() + "/methods"

    def count(method):
        if not os.path.exists(log):
            return 0
        with open(log, encoding="utf-8") as f:
            return f.read().split().count(method)
    s, c = serve({"base_url": up.url, "model": "m", "tools": ["t"]}, mcp={"t": {"command": [sys.executable, "-S", "-c", MCP, log]}})
    with s:
        canceled_quickly(s, c, "go", counter(lambda: count("tools/call")),
                         lambda: count("notifications/cancelled") == count("tools/call"))


def tasks(s, id):
    c = Client(s, RPC1, base=f"/agents/{id}")
    return [(t["id"], t["status"]["state"]) for t in c.list(pageSize=100).value["tasks"]]


def all_ended(s, id):
    return all(state == "TASK_STATE_CANCELED" for _, state in tasks(s, id))


@test("during an agent of this server: its task is canceled, and what that waits for ends")
def _():
    up, inner = once(("desk", {"message": "go"})), Silent()
    s, c = serve({"base_url": up.url, "model": "m", "tools": [{"agent": "desk"}]}, agent("llm", id="desk", settings={"base_url": inner.url, "model": "m"}))
    with s:
        canceled_quickly(s, c, "go", counter(lambda: inner.seen), lambda: inner.open == 0 and all_ended(s, "desk"))
        same(len(tasks(s, "desk")), 2 + ROUNDS, "tasks of the agent")


@test("during an agent of another server: its task is canceled")
def _():
    inner = Silent()
    behind = Server(None, config=settings(agents=[agent("llm", id="desk", settings={"base_url": inner.url, "model": "m"})]))
    up = once(("127_0_0_1", {"message": "go"}))
    with behind:
        s, c = serve({"base_url": up.url, "model": "m", "tools": [{"agent": behind.url}]})
        with s:
            canceled_quickly(s, c, "go", counter(lambda: inner.seen), lambda: inner.open == 0 and all_ended(behind, "desk"))


@each("of a task that waits with an agent that waits: both are canceled: {}", [("in this process", False), ("after kill -9", True)])
def _(restarts):
    needs_ours("only Dragoman has this agent")
    asks = Upstream(lambda body, n: calls(("ask_user", {"question": "Which one?"})))
    up = once(("desk", {"message": "go"}))
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[
            agent("llm", id="assistant", settings={"base_url": up.url, "model": "m", "tools": [{"agent": "desk"}]}),
            agent("llm", id="desk", settings={"base_url": asks.url, "model": "m", "ask_user": True})])) as s:
        c = Client(s, RPC1)
        t, other = c.send("go").task, c.send("go").task
        same([t["status"]["state"], other["status"]["state"]], ["TASK_STATE_INPUT_REQUIRED"] * 2, "the states")
        if restarts:
            s.kill()
            s.restart()
        c.cancel(t["id"])
        soon(lambda: sorted(state for _, state in tasks(s, "desk")) == ["TASK_STATE_CANCELED", "TASK_STATE_INPUT_REQUIRED"],
             lambda: tasks(s, "desk"), SOON)
        same(c.get(other["id"]).state, "TASK_STATE_INPUT_REQUIRED", "the other task")


@test("a canceled task stays canceled after kill -9, and its tool is not run again")
def _():
    needs_ours("only Dragoman has this agent")
    up, log = once(("note", {})), folder() + "/runs"
    program = f"import time\nopen({log!r}, 'a').write('x')\ntime.sleep(600)"
    with Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[agent("llm", id="assistant", settings={
            "base_url": up.url, "model": "m", "tools": [{"exec": {"name": "note", "description": "x", "idempotent": True,
                                                                 "command": [sys.executable, "-c", program]}}]})])) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: os.path.exists(log) and os.path.getsize(log), "it did not start")
        same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "the state")
        s.kill()
        s.restart()
        check(c.get(t["id"]).state in TERMINAL, "the state after the restart")
        same(c.get(t["id"]).state, "TASK_STATE_CANCELED", "the state after the restart")
        with open(log, encoding="utf-8") as f:
            same(f.read(), "x", "runs")
