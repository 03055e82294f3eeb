#!/usr/bin/env python3
"""A worker for `type: exec, mode: worker` in plain Python: started once, it serves many messages at the same time.

The protocol (docs/worker-protocol.md) is JSON-RPC, one object per line, on the descriptor that DRAGOMAN_FD names. `count 5` streams and can
be canceled; a message that comes meanwhile is the new number to count to. print() goes to the server's log."""
import json
import os
import socket
import threading
import time

connection = socket.socket(fileno=int(os.environ["DRAGOMAN_FD"]))
lock = threading.Lock()  # one line at a time
runs = {}  # messages that are being answered


def send(**message):
    with lock:
        connection.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


class Run(threading.Thread):
    def __init__(self, id, params):
        super().__init__(daemon=True)
        self.id, self.params, self.seq, self.canceled, self.inbox = id, params, 0, False, []

    def stream(self, text, last):  # data: an event as an exec agent writes it on a line
        artifact = {"artifactId": "answer", "parts": [{"text": text}]}
        event = {"artifactUpdate": {"artifact": artifact, "append": self.seq > 0, "lastChunk": last}}
        send(method="event", params={"run": self.params["run"], "seq": self.seq, "type": "a2a", "data": event})
        self.seq += 1

    def run(self):
        text = "".join(part.get("text", "") for part in self.params["message"]["parts"])
        word, _, rest = text.partition(" ")
        last = int(rest or 3) if word == "count" else 0
        while self.seq < last and not self.canceled:
            last = int(self.inbox.pop()) if self.inbox else last
            self.stream(f"{self.seq + 1} ", last=self.seq + 1 >= last)
            time.sleep(0.05)
        if word != "count":
            self.stream(f"You wrote: {text}", last=True)
        send(id=self.id, result={"status": "cancelled" if self.canceled else "completed"})


for line in connection.makefile("rb"):
    request = json.loads(line)
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        send(id=request["id"], result={"protocolVersion": 1, "worker": {"name": "worker.py", "lang": "python", "version": "1"},
             "agents": [{"id": params["agent"], "kind": "events"}], "capabilities": {"cancel": True, "input": True}, "maxRuns": 64})
    elif method == "run":
        runs[params["run"]] = Run(request["id"], params)
        runs[params["run"]].start()
    elif method == "cancel":
        runs[params["run"]].canceled = True
    elif method == "input":
        runs[params["run"]].inbox.append(params["message"]["parts"][0]["text"])
    elif "id" in request:  # ping, shutdown
        send(id=request["id"], result={})
