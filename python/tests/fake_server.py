"""The server's side of a worker, for tests: starts `python -m dragoman.worker` with a socket pair and speaks JSON lines."""
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

import tap

PATH = os.path.join(tap.TREE, "python")
TIMEOUT = 60


class FakeServer:
    """One worker process. Lines are read by a thread, unless `is_reading` is False."""

    def __init__(self, *arguments, cwd=None, env=None, interpreter=sys.executable, stdio=False, is_reading=True):
        environment = {k: v for k, v in os.environ.items() if k != "DRAGOMAN_FD"}
        environment.update({"PYTHONPATH": PATH, "DRAGOMAN_LIB": "/nowhere/libdragoman.so", **(env or {})})
        command = [interpreter, "-m", "dragoman.worker", *arguments]
        if stdio:
            self.process = subprocess.Popen(command, cwd=cwd, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.reader, self.writer = self.process.stdout, self.process.stdin
        else:
            ours, theirs = socket.socketpair()
            self.process = subprocess.Popen(command, cwd=cwd, env={**environment, "DRAGOMAN_FD": str(theirs.fileno())}, pass_fds=[theirs.fileno()],
                                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            theirs.close()
            self.socket = ours
            self.reader, self.writer = ours.makefile("rb"), ours.makefile("wb", buffering=0)
        self.output = b""  # stdout and stderr of the process
        self.events = {}  # by run
        self.logs, self.journals, self.calls = [], {}, []
        self.answer = self.answer_request  # a test may replace it
        self._answers = {}
        self._n = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._drain, args=[s], daemon=True)
                         for s in ([self.process.stderr] if stdio else [self.process.stdout, self.process.stderr])]
        if is_reading:
            self._threads.append(threading.Thread(target=self.read, daemon=True))
        for thread in self._threads:
            thread.start()

    def _drain(self, stream):
        for line in stream:
            self.output += line

    def read(self):
        try:
            for line in self.reader:
                self._on_line(json.loads(line))
        except (OSError, ValueError):
            pass
        for answer in self._answers.values():
            answer.put({"error": {"code": 0, "message": "the worker has closed the connection"}})

    def _on_line(self, message):
        method, params = message.get("method"), message.get("params")
        if method is None:
            if message.get("id") in self._answers:
                self._answers[message["id"]].put(message)
        elif method == "event":
            seen = self.events.setdefault(params["run"], [])
            assert params["seq"] == len(seen), params
            seen.append(params)
        elif method == "log":
            self.logs.append(params)
        else:
            self.calls.append((method, params))
            assert str(message["id"]).startswith("w"), message
            answer = self.answer(method, params)
            if answer is not None:
                self.send({"jsonrpc": "2.0", "id": message["id"], **answer})

    def answer_request(self, method, params):
        if method == "journal/put":
            self.journals[params["run"]] = params["text"]
            return {"result": {}}
        return {"error": {"code": -32601, "message": f"unknown method {method}"}}

    # ---- what tests call ----

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data):
        with self._lock:
            self.writer.write(data)
            self.writer.flush()

    def start(self, method, params=None):
        """Sends a request; wait() returns the response."""
        self._n += 1
        self._answers[self._n] = queue.Queue()
        key = self._n
        self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params or {}})
        return key

    def wait(self, key):
        return self._answers[key].get(timeout=TIMEOUT)

    def call(self, method, params=None):
        """The result, or {"error": ...}"""
        message = self.wait(self.start(method, params))
        return message["result"] if "result" in message else {"error": message["error"]}

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self, **more):
        return self.call("initialize", {"protocolVersion": 1, "server": {"name": "test", "version": "0"}, "agent": "a", "cwd": ".",
                                        "maxLineBytes": 8 << 20, "checkpointer": "server", "settings": {}, **more})

    @staticmethod
    def run_params(run, text="", **more):
        return {"run": run, "agent": "a", "thread": "t", "task": "task-1", "context": "c", "isResumed": False, "metadata": {}, "tools": [],
                "acceptedOutputModes": [], "attempt": 1, "message": {"messageId": f"m-{run}", "role": "ROLE_USER", "parts": [{"text": text}]},
                "history": [], "accepted": [], "currentTask": None, "journal": None, **more}

    def run(self, run, text="", **more):
        return self.call("run", self.run_params(run, text, **more))

    def text(self, run):
        text = ""
        for e in self.events.get(run, []):
            update = e["data"].get("artifactUpdate") if e["type"] == "a2a" else None
            if update:
                piece = "".join(p.get("text", "") for p in update["artifact"]["parts"])
                text = text + piece if update["append"] else piece
        return text

    def until(self, condition):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"timeout; the worker wrote: {self.output.decode()}")
            time.sleep(0.005)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT)

    def close(self):
        """Closes the connection; returns the exit status of the process."""
        if hasattr(self, "socket"):
            self.socket.shutdown(socket.SHUT_RDWR)
        else:
            self.writer.close()
        status = self.process.wait(TIMEOUT)
        for thread in self._threads:
            thread.join(TIMEOUT)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()
        if hasattr(self, "socket"):
            self.reader.close()
            self.writer.close()
            self.socket.close()
        return status
