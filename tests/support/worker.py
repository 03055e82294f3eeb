#!/usr/bin/env python3
"""A worker for tests: it does what the text of a message says. usage: worker.py [HOW]

A text is a list of actions, separated by ";" (Run.act). An action that starts with "1:" is done in the first attempt only, one that
starts with "again:" if the run is resumed, "new:" if it is not. After the last one the run is completed. HOW: what is special about the
process (see the end of this file); a number is its maxRuns.
"""
import json
import os
import socket
import sys
import threading
import time

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
connection = socket.socket(fileno=int(os.environ["DRAGOMAN_FD"]))
lock, runs, waiting, number = threading.Lock(), {}, {}, [0]


def write(data):
    with lock:
        connection.sendall(data + b"\n")


def send(**message):
    write(json.dumps({**message, "jsonrpc": "2.0"}).encode())


def request(method, params):
    with lock:
        number[0] += 1
        id = f"w{number[0]}"
    done = waiting[id] = threading.Event()
    send(id=id, method=method, params=params)
    done.wait()
    return done.answer


class Run(threading.Thread):
    def __init__(self, id, params):
        super().__init__(daemon=True)
        self.id, self.params, self.seq, self.canceled, self.inbox = id, params, 0, threading.Event(), []

    def emit(self, data, type="a2a"):
        send(method="event", params={"run": self.params["run"], "seq": self.seq, "type": type, "data": data})
        self.seq += 1

    def text(self, text, append=False, last=True, id="a"):
        self.emit({"artifactUpdate": {"artifact": {"artifactId": id, "parts": [{"text": text}]}, "append": append, "lastChunk": last}})

    def status(self, state, text):
        self.emit({"statusUpdate": {"status": {"state": state, "message": {"role": "ROLE_AGENT", "parts": [{"text": text}]}}}})

    def end(self, **message):
        send(id=self.id, **message)
        return True

    def run(self):
        for action in self.params["message"]["parts"][0]["text"].split(";"):
            first, _, rest = action.partition(":")
            if first.isdigit() or first in ("new", "again"):
                if first not in (str(self.params["attempt"]), "again" if self.params["isResumed"] else "new"):
                    continue
                action = rest
            word, _, arg = action.strip().partition(" ")
            if self.act(word, arg):
                return
            if self.canceled.is_set() and word != "deaf":
                self.end(result={"status": "cancelled"})
                return
        self.end(result={"status": "completed"})

    def act(self, word, arg):
        """True: the run is over."""
        run = {"run": self.params["run"]}
        # ---- events
        if word == "say":
            self.text(arg)
        elif word == "part":
            self.text(arg, last=False)
        elif word == "many":  # COUNT SIZE
            count, size = map(int, arg.split())
            for i in range(count):
                self.text("x" * size, append=i > 0, last=i == count - 1)
        elif word == "count":  # COUNT, one every 20 ms
            for i in range(int(arg)):
                if not self.canceled.is_set():
                    self.text(f"{i} ", append=i > 0, last=i == int(arg) - 1)
                    time.sleep(0.02)
        elif word == "show":  # a member of the params
            self.text(json.dumps(self.params.get(arg)))
        elif word == "ask":
            self.status("TASK_STATE_INPUT_REQUIRED", arg)
        elif word == "event":
            self.emit(json.loads(arg))
        elif word == "type":
            self.emit({}, type=arg)
        elif word == "seq":  # a wrong one
            self.seq += 3
            self.text(arg)
        elif word == "unknown":
            send(method="event", params={"run": "r999999", "seq": 0, "type": "a2a", "data": {}})
            send(id=999999, result={})
        # ---- waiting
        elif word == "wait":  # for cancel
            self.canceled.wait(60)
        elif word == "sleep":
            time.sleep(float(arg))
        elif word == "until":  # a file is there
            while not os.path.exists(arg):
                time.sleep(0.01)
        elif word == "input":
            while not self.inbox and not self.canceled.is_set():
                time.sleep(0.005)
            self.text(self.inbox.pop(0) if self.inbox else "", id=arg or "a")
        elif word == "deaf":  # to cancel
            time.sleep(30)
        elif word == "block":  # no other thread can write meanwhile
            end = time.monotonic() + float(arg)
            with lock:
                while time.monotonic() < end:
                    pass
        # ---- what the operator reads
        elif word == "log":
            send(method="log", params={**run, "level": "info", "text": arg})
        elif word == "print":
            print(arg, flush=True)
        elif word == "errors":
            print(arg, file=sys.stderr, flush=True)
        elif word == "note":  # FILE TEXT: a line in a file
            path, _, line = arg.partition(" ")
            with open(path, "a", encoding="utf-8") as f:
                f.write(line + "\n")
        # ---- requests
        elif word == "journal":
            self.text(json.dumps(request("journal/put", {**run, "text": arg})), id="j")
        elif word == "call":
            self.text(json.dumps(request(arg, run)), id="c")
        # ---- ends
        elif word == "status":
            return self.end(result={"status": arg})
        elif word == "error":
            return self.end(error={"code": int(arg), "message": "secret " + arg, "data": {"type": "X", "traceback": "Traceback: line 1"}})
        elif word == "die":
            os._exit(int(arg or 3))
        elif word == "kill":
            os.kill(os.getpid(), 9)
        elif word == "close":
            connection.shutdown(socket.SHUT_WR)
            time.sleep(60)
        elif word == "garbage":
            write(b"this is not JSON")
        elif word == "list":
            write(b"[]")
        elif word == "long":
            write(b'{"x":"' + b"x" * (9 << 20) + b'"}')
        return False


def initialize(id, params):
    if HOW == "silent":
        return
    if HOW == "broken":
        send(id=id, error={"code": -32004, "message": "no module named x", "data": {"traceback": "Traceback one\nTraceback two"}})
        return
    if HOW == "slow":
        time.sleep(0.5)
    send(id=id, result={"protocolVersion": 2 if HOW == "version" else 1, "worker": {"name": "test", "lang": "python", "version": "1"},
                        "maxRuns": int(HOW) if HOW.isdigit() else 64, "agents": [{"id": params["agent"], "kind": "graph" if HOW == "graph" else "events"}],
                        "capabilities": {"cancel": True, "input": HOW != "noinput"}})


if HOW == "exit":
    sys.exit(7)
if HOW == "print":
    print("hello from the worker", flush=True)
for data in connection.makefile("rb"):
    line = json.loads(data)
    if "method" not in line:
        done = waiting.pop(line["id"])
        done.answer = line.get("result", line.get("error"))
        done.set()
        continue
    method, params = line["method"], line.get("params", {})
    if method == "initialize":
        initialize(line["id"], params)
    elif method == "run":
        runs[params["run"]] = Run(line["id"], params)
        runs[params["run"]].start()
    elif method == "cancel":
        runs[params["run"]].canceled.set()
    elif method == "input":
        runs[params["run"]].inbox.append(params["message"]["parts"][0]["text"])
    elif method == "state":
        if HOW != "mute":
            send(id=line["id"], result={"exists": True, "thread": params["thread"]})
    elif "id" in line:  # ping, shutdown
        send(id=line["id"], result={})
