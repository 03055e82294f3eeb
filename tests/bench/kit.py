"""What the benchmarks of servers share: servers on a core of their own, `dragoman bench` on the other, rows of figures."""
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, "build-bench")
DRAGOMAN = os.path.join(BUILD, "dragoman")
PEER = os.path.join(ROOT, "tests/bench/peer/server.mjs")
FOLDER = tempfile.mkdtemp(prefix="bench-", dir=BUILD if os.path.isdir(BUILD) else None)
PINNED = len(os.sched_getaffinity(0)) > 1 and shutil.which("taskset")
WARM_CPU_S, WARM_MOST_S = 3, 20  # what a server has worked before it is measured; but no longer than this
CONFIG = os.path.join(FOLDER, "bench.yaml")


class Failed(Exception):
    """A server did not start or did not answer as it should."""


def pinned(core, *command):
    """core None: wherever the system puts it."""
    return ["taskset", "-c", str(core), *command] if PINNED and core is not None else list(command)


def write_config(path=CONFIG, more=""):
    with open(path, "w", encoding="utf-8") as f:
        f.write("loops: 1\nlog:\n  level: warn\nagents:\n  - id: bench\n    type: bench\n" + more)


# ---- servers ---------------------------------------------------------------------------------------------

class Server:
    def __init__(self, *command, core=0, env=None):
        self.p = subprocess.Popen(pinned(core, *command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=FOLDER,
                                  env={**os.environ, "NODE_ENV": "production", **(env or {})})
        for line in self.p.stdout:
            port = re.search(rb"^(?:.*127\.0\.0\.1:)?(\d+)\s*$", line)
            if port:
                self.url = f"http://127.0.0.1:{port[1].decode()}/"
                return
        self.__exit__()
        raise Failed(f"{' '.join(command)} did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()
        self.p.stdout.close()


def ours(store="memory:", listen="127.0.0.1:0", config=CONFIG):
    return [DRAGOMAN, "serve", "-c", config, "--listen", listen, "--store", store]


def peer(port=0):
    return ["node", PEER, str(port)]


def bench(url, *args, must=True):
    p = subprocess.run(pinned(1, DRAGOMAN, "bench", "--json", *args, url), capture_output=True, text=True)
    if p.returncode and must:
        raise Failed(f"dragoman bench {' '.join(args)} {url}: {p.stderr}{p.stdout}")
    return json.loads(p.stdout) if must else None


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load_at(server, *args, path="", warm=WARM_CPU_S):
    """Warm is who has worked, not who has waited: compilers in other runtimes need CPU time to get going."""
    began = time.monotonic()
    while cpu_seconds(server.p.pid) < warm and time.monotonic() - began < WARM_MOST_S:
        bench(server.url + path, *args, "--seconds", "1", must=False)  # a slow one may not finish anything yet
    return bench(server.url + path, "--pid", str(server.p.pid), *args)


def load(command, *args, **how):
    with Server(*command) as server:
        return load_at(server, *args, **how)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def startup(command_for, rounds):
    """Milliseconds from nothing to the first answer, the median."""
    port = free_port()
    command = pinned(0, *command_for(port))
    p = subprocess.run(pinned(1, DRAGOMAN, "bench", "--json", "--mode", "startup", "--requests", str(rounds),
                              f"http://127.0.0.1:{port}/", "--", *command), capture_output=True, text=True, cwd=FOLDER)
    if p.returncode:
        raise Failed(f"startup of {command}: {p.stderr}")
    return json.loads(p.stdout)["latency_us"]["p50"] / 1000


# ---- figures -----------------------------------------------------------------------------------------------

def number(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.1f}" if x >= 10 else f"{x:.2f}" if x >= 0.1 or not x else f"{x:.2g}"


class Skip(Exception):
    """This cannot be measured here, and why."""


class Row:
    def __init__(self, what, unit, goal, measure, goal_is_least=True, against="peer"):
        self.what, self.unit, self.goal, self.measure = what, unit, goal, measure
        self.goal_is_least, self.against = goal_is_least, against
        self.rounds = []  # [(ours, theirs)]
        self.skipped = None  # or why

    def ratio(self):
        return statistics.median(a / b for a, b in self.rounds)

    def passed(self):
        if self.goal is None or self.skipped:
            return None
        return self.ratio() >= self.goal if self.goal_is_least else self.ratio() <= self.goal

    def verdict(self):
        return "SKIP" if self.skipped else {None: "shown", True: "PASS", False: "FAIL"}[self.passed()]

    def goal_text(self):
        return "" if self.goal is None else f"{'at least' if self.goal_is_least else 'at most'} {self.goal:g}"

    def compared(self):
        return f"{self.ratio():.2f}"

    def median_of(self, i):
        return number(statistics.median(r[i] for r in self.rounds))

    def cells(self):
        if self.skipped:
            return ["", "", "", self.goal_text(), f"skipped: {self.skipped}"]
        return [self.median_of(0), f"{self.median_of(1)} ({self.against})", self.compared(), self.goal_text(), self.verdict()]
