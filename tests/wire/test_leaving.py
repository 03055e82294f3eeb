"""Callers that disconnect before their run has a task: the run ends, since no client could find it, read it or stop it."""
import json
import os
import socket

from lib import fronts
from lib.a2a import ALL, RPC1, Client
from lib.http import Conn
from lib.server import agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon

# writes its process id into the file that the message names, and nothing to its caller
SILENT = ["/bin/sh", "-c", 'read -r file; echo $$ > "$file.new"; mv "$file.new" "$file"; exec sleep 600']


def silent():
    needs_ours("needs the exec agent")
    return server(None, config=settings(agents=[agent("exec", id="silent", settings={"command": SILENT, "input": "text"}, reply="auto")]))


def requests(s, text):
    """How the message is sent: name -> (method, path, body, headers)."""
    out = {}
    for wire in ALL:
        for op in ("send", "stream"):
            c = Client(s, wire)
            _, method, path, body, headers = c.prepare(op, c.params(text))
            out[f"{op}, {wire}"] = (method, path, body, headers)
    post = lambda path, body: ("POST", path, json.dumps(body).encode(), fronts.JSON)
    out["chat"] = post("/v1/chat/completions", fronts.chat_body(text, model="silent"))
    out["chat, streamed"] = post("/v1/chat/completions", fronts.chat_body(text, model="silent", stream=True))
    out["responses"] = post("/v1/responses", {"model": "silent", "input": text})
    out["responses, streamed"] = post("/v1/responses", {"model": "silent", "input": text, "stream": True})
    out["ag-ui"] = post("/ag-ui", fronts.run_input(text))
    out["ai-sdk"] = post("/ai-sdk", fronts.ui_body(text))
    return out


LEAVE = {"FIN": lambda c: c.socket.shutdown(socket.SHUT_WR), "close": lambda c: c.close(), "reset": lambda c: c.reset()}
NAMES = [f"{op}, {w}" for w in ALL for op in ("send", "stream")] + ["chat", "chat, streamed", "responses", "responses, streamed", "ag-ui", "ai-sdk"]


def runs(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False


def started(conn, s, file, name):
    method, path, body, headers = requests(s, file)[name]
    conn.request(method, path, body, headers)
    soon(lambda: os.path.exists(file), "the agent does not start", 30)
    with open(file) as f:
        return int(f.read())


@each("a run without a task ends with its caller: {}", [(f"{name}, {how}", name, how) for name in NAMES for how in LEAVE])
def _(name, how):
    s, file = silent(), os.path.join(folder(), "pid")
    conn = Conn(s.address)
    pid = started(conn, s, file, name)
    check(runs(pid), "the agent has ended by itself")
    LEAVE[how](conn)
    soon(lambda: not runs(pid), "the agent still runs", 30)
    conn.close()
    same(Client(s, RPC1).list().value["totalSize"], 0, "tasks")
