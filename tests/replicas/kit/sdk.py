"""Clients of SDKs: processes in their own virtual environments, which print what they do."""
import json
import os
import subprocess
import sys
import threading
import time

from . import HERE, ROOT
from .history import Op
from lib.tap import check

# program: its virtual environment, and the path that its client is given
PROGRAMS = {"sdk_a2a.py": ("tests/interop/python/.venv-a2a-1", "/agents/assistant"), "sdk_openai.py": ("tests/interop/openai/.venv-openai", "")}


# ---- in the process of the SDK

_over = threading.Event()
_lock = threading.Lock()


def is_over():
    return _over.is_set()


def stopped():
    """Ends the work when stdin ends."""
    def wait():
        sys.stdin.read()
        _over.set()
    threading.Thread(target=wait, daemon=True).start()


class Printer:
    def __call__(self, client, kind, start, outcome="ok", **data):
        line = json.dumps({"client": client, "kind": kind, "start": start, "end": time.monotonic(), "outcome": outcome, "data": data})
        with _lock:
            print(line, flush=True)


# ---- in the test

class Sdk:
    def __init__(self, program, cluster, seed, clients):
        venv, path = PROGRAMS[program]
        python = os.path.join(ROOT, venv, "bin/python")
        check(os.path.exists(python), f"no {venv}: run scripts/setup test")
        self.program, self.ops = program, []
        self.process = subprocess.Popen([python, os.path.join(HERE, program), cluster.url + path, str(seed), str(clients)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            o = json.loads(line)
            if o["data"].get("view"):  # JSON has no tuples
                state, texts = o["data"]["view"]
                o["data"]["view"] = (state, tuple(tuple(t) for t in texts))
            self.ops.append(Op(o["client"], o["kind"], o["start"], o["end"], o["outcome"], **o["data"]))

    def texts(self):
        """What it read to the end."""
        return [o for o in list(self.ops) if o.kind == "text"]

    def stop(self, seconds):
        """Its operations."""
        self.process.stdin.close()
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "no end"
        self.reader.join(10)
        check(status == 0 and self.ops, lambda: f"{self.program}: {status}, {len(self.ops)} operations; {self.process.stderr.read()[-3000:]}")
        return self.ops
