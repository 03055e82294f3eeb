"""Tools of llm agents: programs, HTTP requests and MCP servers; questions of MCP servers; cancel."""
import json
import os
import sys
import time

from lib import models
from lib.a2a import RPC1, Client, message, task_text
from lib.models import Upstream, calls, text
from lib.server import DRAGOMAN, Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test

DEMO = {"command": [DRAGOMAN, "mcp-demo"]}
# MCP 2025-11-25: the tool `pay` asks for an amount, `hang` never answers
MCP = """import json, sys
def send(o): print(json.dumps({"jsonrpc": "2.0", **o}), flush=True)
tools = [{"name": n, "inputSchema": {"type": "object"}} for n in ("pay", "hang", "boom")]
waiting = None
for line in sys.stdin:
    m = json.loads(line)
    id, method = m.get("id"), m.get("method")
    if method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": tools}})
    elif method == "tools/call" and m["params"]["name"] == "pay":
        waiting = id
        send({"id": "ask-1", "method": "elicitation/create", "params": {"message": "How much?", "requestedSchema": {
            "type": "object", "properties": {"amount": {"type": "string"}}, "required": ["amount"]}}})
    elif method == "tools/call" and m["params"]["name"] == "boom":
        send({"id": id, "result": {"isError": True, "content": [{"type": "text", "text": "it broke"}]}})
    elif id == "ask-1":
        r = m["result"]
        send({"id": waiting, "result": {"content": [{"type": "text", "text": r["action"] + " " + json.dumps(r.get("content"))}]}})
    elif method == "ping" or (id is not None and method and method != "tools/call"):
        send({"id": id, **({"result": {}} if method == "ping" else {"error": {"code": -32601, "message": "unknown method"}})})
"""


def world(up, mcp=None, agents=(), loops=2, **more):
    needs_ours("only Dragoman has this agent")
    rows = [agent("llm", id="assistant", settings={"base_url": up.url, "model": "m", **more}), *agents]
    return Server(None, config={**settings(agents=rows), "loops": loops, **({"mcp": mcp} if mcp else {})})


def then_done(*list):
    return Upstream(lambda body, n: calls(*list) if not models.results_of(body) else text("done"))


def result_of(up):
    (_, result), = models.results_of(up.bodies()[-1])
    return result


def sleeping(server):
    """Its children that run `sleep`."""
    found = []
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{task}/children", encoding="utf-8") as f:
            found += f.read().split()
    return [c for c in found if command_of(c).startswith("sleep")]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


# ---- programs and requests -----------------------------------------------------------------------------------------------

@test("a program gets the arguments on stdin, and its output is the result")
def _():
    tool = {"exec": {"name": "repeat", "description": "repeats", "command": ["cat"],
                     "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    up = then_done(("repeat", {"a": 7}))
    with world(up, tools=[tool]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        same(json.loads(result_of(up)), {"a": 7}, "the result")
        same([t["function"]["name"] for t in up.bodies()[0]["tools"]], ["repeat"], "the tools of the request")


@test("an HTTP request is a tool")
def _():
    api = Upstream(lambda body, n: models.Answer(body={"got": body}))
    tool = {"http": {"name": "post", "description": "posts", "method": "POST", "url": api.url + "/x",
                     "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    up = then_done(("post", {"a": 7}))
    with world(up, tools=[tool]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        same(json.loads(result_of(up)), {"got": {"a": 7}}, "the result")
        check(api.requests[0][1].get("Idempotency-Key"), api.requests[0][1])


@test("approval of a program: denied, it does not run; changed arguments are used")
def _():
    where = folder() + "/ran"
    tool = {"exec": {"name": "touch", "description": "writes", "command": ["tee", where],
                     "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}}
    for answer, ran in (({"approved": False, "reason": "not today"}, None), ({"approved": True, "arguments": {"a": 9}}, {"a": 9})):
        up = then_done(("touch", {"a": 1}))
        with world(up, tools=[tool], approve="always") as s:
            c = Client(s, RPC1)
            t = c.send("go").task
            same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
            check(not os.path.exists(where), "it ran before it was approved")
            request, = [p["data"] for p in t["status"]["message"]["parts"] if p.get("data", {}).get("type") == "approval-request"]
            t = c.send(m=message(task=t["id"], parts=[{"data": {"type": "approval", "id": request["id"], **answer}}])).task
            same(task_text(t), "done", "the answer")
            if ran is None:
                check("not today" in result_of(up) and not os.path.exists(where), result_of(up))
            else:
                with open(where, encoding="utf-8") as f:
                    same(json.load(f), ran, "the arguments")


# ---- MCP -----------------------------------------------------------------------------------------------------------------------

@test("tools of an MCP server: their names, their arguments, their results")
def _():
    up = then_done(("demo__convert_units", {"value": 1, "from": "km", "to": "m"}))
    with world(up, mcp={"demo": DEMO}, tools=["demo"]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        check("1000" in result_of(up), result_of(up))
        names = [t["function"]["name"] for t in up.bodies()[0]["tools"]]
        same(sorted(names), ["demo__convert_units", "demo__roll_dice"], "the tools")


@test("only: the other tools of the server are not offered")
def _():
    up = Upstream(lambda body, n: text("done"))
    with world(up, mcp={"demo": DEMO}, tools=[{"mcp": {"server": "demo", "only": ["roll_dice"]}}]) as s:
        Client(s, RPC1).send("go")
        same([t["function"]["name"] for t in up.bodies()[0]["tools"]], ["demo__roll_dice"], "the tools")


@test("arguments that a tool of an MCP server does not accept are explained to the model")
def _():
    up = then_done(("demo__roll_dice", {"count": "two"}))
    with world(up, mcp={"demo": DEMO}, tools=["demo"]) as s:
        Client(s, RPC1).send("go")
        check("/count" in result_of(up) and "integer" in result_of(up), result_of(up))


@test("an error of a tool of an MCP server is a result")
def _():
    up = then_done(("t__boom", {}))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", MCP]}}, tools=["t"]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        check("it broke" in result_of(up), result_of(up))


@each("a question of an MCP server is one of the task: {}", [
    ("answered by text", [{"text": "12"}], 'accept {"amount": "12"}'),
    ("answered by data", [{"data": {"amount": "13"}}], 'accept {"amount": "13"}'),
    ("declined", [{"text": "no"}], "decline null")])
def _(parts, want):
    up = then_done(("t__pay", {}))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", MCP]}}, tools=["t"]) as s:
        c = Client(s, RPC1)
        t = c.send("go").task
        same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
        check("How much?" in json.dumps(t["status"]), t["status"])
        t = c.send(m=message(task=t["id"], parts=parts)).task
        same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "done"), "the end")
        check(want in result_of(up), result_of(up))


@test("a server stops well while a question of an MCP server waits")
def _():
    up = then_done(("t__pay", {}))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", MCP]}}, tools=["t"]) as s:
        same(Client(s, RPC1).send("go").task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
        s.stop_well()


@test("an MCP server that cannot be started is missing; the agent answers")
def _():
    up = Upstream(lambda body, n: text("done"))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", "raise SystemExit(3)"]}}, tools=["t"]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        check("tools" not in up.bodies()[0], up.bodies()[0])


# ---- cancel ----------------------------------------------------------------------------------------------------------------------

@test("cancel during a program: it is ended")
def _():
    tool = {"exec": {"name": "sleep", "description": "sleeps", "command": ["sleep", "100"]}}
    up = then_done(("sleep", {}))
    with world(up, tools=[tool]) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: sleeping(s), "no program")
        same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "the state")
        soon(lambda: not sleeping(s), lambda: f"still there: {sleeping(s)}", 10)


@test("cancel during a call of an MCP server")
def _():
    up = then_done(("t__hang", {}))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", MCP]}}, tools=["t"]) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: up.requests, "no model call")
        time.sleep(0.3)
        same(c.cancel(t["id"]).state, "TASK_STATE_CANCELED", "the state")


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@test("canceled tasks leave no descriptor and no program behind")
def _():
    tool = {"exec": {"name": "sleep", "description": "sleeps", "command": ["sleep", "100"]}}
    up = Upstream(lambda body, n: calls(("sleep", {}), ("t__hang", {}), ("desk", {"message": "slow 30"})))
    with world(up, mcp={"t": {"command": [sys.executable, "-c", MCP]}}, tools=[tool, "t", {"agent": "desk"}],
               agents=[agent("demo", id="desk")], loops=1) as s:  # each loop has a session with the MCP server
        c, counts = Client(s, RPC1), []
        for round in range(2):
            ids = [c.send("go", config={"returnImmediately": True}).task["id"] for _ in range(5)]
            soon(lambda: len(sleeping(s)) == 5, lambda: f"{len(sleeping(s))} programs")
            for id in ids:
                same(c.cancel(id).state, "TASK_STATE_CANCELED", "the state")
            soon(lambda: not sleeping(s), lambda: f"still there: {sleeping(s)}", 10)
            counts.append(descriptors(s))
        soon(lambda: descriptors(s) <= counts[0] + 2, lambda: f"descriptors: {counts}, now {descriptors(s)}", 20)
        s.stop_well()
