"""A LangGraph graph behind Dragoman beside the bare graph and beside `langgraph dev`, and a turn of a worker beside a process per
message: rows for scripts/bench-server.

CPU time is that of all processes of a server, user and system: ours is the program and its worker. The state of threads is in memory on
both sides: ours with `checkpointer: memory` (LangGraph's InMemorySaver, which saves at the end of a run), that of `langgraph dev` as its in-memory
runtime does it; one row has ours in the server's store, which is the default (`checkpointer: server`, every step is saved before the next). Requests come one after the other or from a few threads of this
program, on the other core; both servers get the same ones."""
import contextlib
import http.client
import json
import os
import shutil
import statistics
import subprocess
import threading
import time
import urllib.request

from kit import DRAGOMAN, FOLDER, ROOT, Failed, Row, Server, Skip, free_port, ours, pinned

GRAPH = os.path.join(ROOT, "tests/bench/graph")
TURN = os.path.join(ROOT, "tests/bench/turn")
DEV = os.path.join(ROOT, "tests/interop/langgraph/.venv-langgraph/bin")
PYTHON = os.path.join(DEV, "python")
LEAST_OF_BARE, TIMES_DEV, TIMES_PROCESS = 0.8, 3, 50
LONG, SHORT = 1000, 20  # tokens of an answer
THREADS, FIRST = 16, 30
TICKS = os.sysconf("SC_CLK_TCK")


# ---- CPU time of a server and its processes --------------------------------------------------------------

def tree_cpu(pid):
    """Seconds of a process, of those that it started, and of those that have ended."""
    total, parents = 0.0, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rsplit(")", 1)[1].split()
            parents[int(name)] = (int(fields[1]), sum(map(int, fields[11:15])) / TICKS)
    waiting = [pid]
    while waiting:
        at = waiting.pop()
        total += parents.get(at, (0, 0.0))[1]
        waiting += [child for child, (parent, _) in parents.items() if parent == at]
    return total


# ---- the servers -------------------------------------------------------------------------------------------

def needed(path, what):
    if not os.access(path, os.X_OK):
        raise Skip(f"{what} is not installed (`scripts/setup test` does)")


def config_of(name, agent):
    """A server whose only agent is this one."""
    path = os.path.join(FOLDER, f"{name}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"loops": 1, "log": {"level": "warn"}, "agents": [{"id": "bench", **agent}]}, f)
    checked = subprocess.run([DRAGOMAN, "serve", "--check", "-c", path], capture_output=True, text=True)
    if "unknown agent type" in checked.stderr or "unknown setting" in checked.stderr:
        raise Skip(f"this build has no agents of this kind: {checked.stderr.strip().splitlines()[0]}")
    if checked.returncode:
        raise Failed(f"the configuration {name}: {checked.stderr}")
    return path


def graph_server(checkpointer="memory"):
    needed(PYTHON, "LangGraph")
    return Server(*ours(config=config_of("graph", {"type": "langgraph", "settings": {
        "config": os.path.join(GRAPH, "langgraph.json"), "checkpointer": checkpointer,
        "command": [PYTHON, "-m", "dragoman.worker"], "env": {"PYTHONPATH": os.path.join(ROOT, "python")}}})))


class Dev:
    """`langgraph dev` with the same graph, on core 0 as ours."""

    def __init__(self):
        needed(os.path.join(DEV, "langgraph"), "langgraph-cli")
        self.folder = os.path.join(FOLDER, "dev")
        shutil.copytree(GRAPH, self.folder, dirs_exist_ok=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        self.log = open(os.path.join(FOLDER, "dev.log"), "wb")
        self.p = subprocess.Popen(
            pinned(0, os.path.join(DEV, "langgraph"), "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port),
                   "--n-jobs-per-worker", str(THREADS)), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, "LANGSMITH_TRACING": "false", "PATH": DEV + os.pathsep + os.environ["PATH"]})
        end = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(self.url + "ok", timeout=5).read()
                return
            except OSError:
                if self.p.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    raise Skip("langgraph dev does not start") from None
                time.sleep(0.2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.terminate()
        try:
            self.p.wait(15)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()
        self.log.close()


# ---- requests ------------------------------------------------------------------------------------------------

def our_request(text, stream):
    message = {"messageId": os.urandom(8).hex(), "role": "ROLE_USER", "parts": [{"text": text}]}
    return "/", {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage" if stream else "SendMessage", "params": {"message": message}}


def their_request(text, stream):
    """LangGraph's own API, without a thread: what costs it least."""
    body = {"assistant_id": "bench", "input": {"messages": [{"role": "user", "content": text}]}}
    return ("/runs/stream", {**body, "stream_mode": "messages-tuple", "stream_subgraphs": True}) if stream else ("/runs/wait", body)


def their_a2a_request(url):
    """A2A 0.3, which `langgraph dev` has for each graph."""
    search = urllib.request.Request(url + "assistants/search", b"{}", {"Content-Type": "application/json"})
    with urllib.request.urlopen(search, timeout=30) as f:
        assistant = json.load(f)[0]["assistant_id"]

    def request(text, _):
        message = {"kind": "message", "messageId": os.urandom(8).hex(), "role": "user", "parts": [{"kind": "text", "text": text}]}
        return f"/a2a/{assistant}", {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
    return request


def post(connection, request):
    path, body = request
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "A2A-Version": "1.0"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise Failed(f"{path}: {answer.status} {answer.read()[:300]!r}")
    return answer


def connect(url):
    host, port = url.rstrip("/").removeprefix("http://").split(":")
    return http.client.HTTPConnection(host, int(port), timeout=120)


def first_token(url, request_of, rounds=FIRST):
    """Milliseconds until the first token of a stream was read: the median."""
    times = []
    for _ in range(rounds):
        connection = connect(url)
        request = request_of(f"tokens {SHORT}", True)
        began = time.monotonic()
        answer = post(connection, request)
        for line in answer:
            if b"token0" in line:
                times.append((time.monotonic() - began) * 1000)
                break
        else:
            raise Failed(f"{url}: a stream without tokens")
        answer.read()  # so that the next request does not wait for this one
        connection.close()
    return statistics.median(times)


def per_cpu_second(server, request_of, seconds):
    """Answers per second of CPU time, from a few threads; every answer has all tokens."""
    last, failed, counts = f"token{SHORT - 1}".encode(), [], []

    def work(until):
        connection, n = connect(server.url), 0
        try:
            while time.monotonic() < until:
                if last not in post(connection, request_of(f"tokens {SHORT}", False)).read():
                    raise Failed(f"{server.url}: an answer without all tokens")
                n += 1
        except (Failed, OSError, http.client.HTTPException) as e:
            failed.append(str(e))
        counts.append(n)

    def load(for_seconds):
        counts.clear()
        threads = [threading.Thread(target=work, args=(time.monotonic() + for_seconds,)) for _ in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise Failed(failed[0])
        return sum(counts)

    load(1)
    before = tree_cpu(server.p.pid)
    n = load(seconds)
    return n / (tree_cpu(server.p.pid) - before)


# ---- the rows --------------------------------------------------------------------------------------------------

def bare(seconds):
    needed(PYTHON, "LangGraph")
    p = subprocess.run(pinned(0, PYTHON, "bare.py", str(seconds), str(LONG)), cwd=GRAPH, capture_output=True, text=True)
    if p.returncode:
        raise Failed(f"bare.py: {p.stderr}")
    return json.loads(p.stdout)


def streamed(seconds):
    """Of streams one after the other: tokens per second that a client has read; CPU microseconds a token of the server's process, and of it and its worker."""
    with graph_server() as server:
        connection, n, first = connect(server.url), 0, None
        while True:
            answer = post(connection, our_request(f"tokens {LONG}", True))
            text = answer.read()
            if text.count(b"token") < LONG:
                raise Failed(f"a stream of {LONG} tokens has {text.count(b'token')}")
            if first is None:  # the graph is loaded
                first, own, tree = time.monotonic(), own_cpu(server.p.pid), tree_cpu(server.p.pid)
                continue
            n += 1
            if time.monotonic() - first >= seconds:
                return (n * LONG / (time.monotonic() - first), (own_cpu(server.p.pid) - own) * 1e6 / (n * LONG),
                        (tree_cpu(server.p.pid) - tree) * 1e6 / (n * LONG))


def own_cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13])) / TICKS


def beside_dev(measure, request_at=lambda _: their_request, checkpointer="memory"):
    with graph_server(checkpointer) as server:
        mine = measure(server, our_request)
    with Dev() as server:
        return mine, measure(server, request_at(server.url))


def turn_cost(name, agent, seconds):
    """CPU milliseconds of a turn, all processes."""
    with Server(*ours(config=config_of(name, agent))) as server:
        connection = connect(server.url)

        def turn():
            if b"You wrote" not in post(connection, our_request("hello", False)).read():
                raise Failed(f"{name}: another answer")
        turn()
        n, began, before = 0, time.monotonic(), tree_cpu(server.p.pid)
        while time.monotonic() - began < seconds:
            turn()
            n += 1
        return (tree_cpu(server.p.pid) - before) * 1000 / n


def turns(seconds):
    needed(PYTHON, "the openai package")
    env = {"PYTHONPATH": os.path.join(ROOT, "python")}
    worker = turn_cost("worker", {"type": "exec", "settings": {
        "mode": "worker", "command": [PYTHON, "-m", "dragoman.worker", "--agent", os.path.join(TURN, "agent.py")], "env": env}}, seconds)
    process = turn_cost("process", {"type": "exec", "settings": {"command": [PYTHON, os.path.join(TURN, "process.py")]}}, seconds)
    return process, worker


def graph_rows(seconds):
    return [
        Row(f"graph: streams of {LONG} tokens to a client, beside the graph's own astream", "tokens per second", LEAST_OF_BARE,
            lambda: (streamed(seconds)[0], bare(seconds)["tokens_per_s"]), against="the bare graph"),
        Row("graph: CPU time of the server for a token, beside that of the bare graph", "microseconds", None,
            lambda: (streamed(seconds)[1], bare(seconds)["cpu_us_per_token"]), against="the bare graph"),
        Row("graph: CPU time of the server and its worker for a token, beside that of the bare graph", "microseconds", None,
            lambda: (streamed(seconds)[2], bare(seconds)["cpu_us_per_token"]), against="the bare graph"),
        Row(f"graph: answers of {SHORT} tokens over A2A, not streamed", "requests per CPU-second", TIMES_DEV,
            lambda: beside_dev(lambda server, request_of: per_cpu_second(server, request_of, seconds), their_a2a_request), against="langgraph dev"),
        Row("graph: the same, with our state in the server's store", "requests per CPU-second", None,
            lambda: beside_dev(lambda server, request_of: per_cpu_second(server, request_of, seconds), their_a2a_request, "server"), against="langgraph dev"),
        Row("graph: the same, beside runs without a thread (/runs/wait), which store nothing", "requests per CPU-second", None,
            lambda: beside_dev(lambda server, request_of: per_cpu_second(server, request_of, seconds)), against="langgraph dev"),
        Row("graph: from the request to the first token", "ms", 1 / TIMES_DEV,
            lambda: beside_dev(lambda server, request_of: first_token(server.url, request_of)), goal_is_least=False, against="langgraph dev"),
        Row("worker: a process per message with `import openai`, beside a turn of a worker", "CPU milliseconds", TIMES_PROCESS,
            lambda: turns(seconds), against="a worker"),
    ]
