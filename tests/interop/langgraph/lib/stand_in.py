"""The server's side of the worker protocol, for tests without a server: starts `python -m dragoman.worker` with a socket and
answers its checkpoint/* and blob/* requests from tables in memory. The tables outlive the process: a test may kill it.
"""
import base64
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PROJECTS = os.path.join(HERE, "projects")


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Store:
    """checkpoint/* and blob/*, as src/store has them. Values above `inline` bytes are answered as blobs."""

    def __init__(self, inline=5 << 20):
        self.rows = {}  # (thread, ns, id) -> row without writes
        self.writes = {}  # (thread, ns, id) -> {(task, idx): [task, channel, value, path]}
        self.uploads, self.downloads, self.count = {}, {}, 0
        self.inline = inline
        self.calls = []

    def call(self, method, params):
        self.calls.append(method)
        handler = getattr(self, method.replace("/", "_"), None)
        if handler is None:
            raise Refused(-32601, f"unknown method {method}")
        return handler(**{"from_" if k == "from" else k: v for k, v in params.items()})

    # ---- values ----

    def _stored(self, value):
        kind, data = value
        if isinstance(data, dict):
            if data["blob"] not in self.uploads:
                raise Refused(-32602, "unknown blob")
            return kind, bytes(self.uploads.pop(data["blob"]))
        return kind, base64.b64decode(data, validate=True)

    def _sent(self, value):
        kind, data = value
        if len(data) <= self.inline:
            return [kind, base64.b64encode(data).decode()]
        self.count += 1
        self.downloads[f"s{self.count}"] = data
        return [kind, {"blob": f"s{self.count}", "bytes": len(data)}]

    def blob_write(self, blob, data):
        made = self.uploads.setdefault(blob, bytearray())
        if len(self.uploads) > 8:
            raise Refused(-32602, "too many blobs")
        made += base64.b64decode(data, validate=True)
        if len(made) > 64 << 20:
            raise Refused(-32602, "too large")
        return {}

    def blob_read(self, blob, offset, max):
        data = self.downloads[blob]
        part = data[offset:offset + min(max, 4 << 20)]
        return {"data": base64.b64encode(part).decode(), "last": offset + len(part) >= len(data)}

    def blob_close(self, blob):
        self.uploads.pop(blob, None)
        self.downloads.pop(blob, None)
        return {}

    # ---- checkpoints ----

    def _row(self, key):
        row = self.rows[key]
        writes = [[t, c, self._sent(v), *([p] if p else [])] for (t, i), (t, c, v, p) in sorted(self.writes.get(key, {}).items())]
        return {"thread": key[0], "ns": key[1], "id": key[2], **({"parent": row["parent"]} if row["parent"] else {}),
                "checkpoint": self._sent(row["checkpoint"]), "metadata": self._sent(row["metadata"]), "writes": writes}

    def checkpoint_get(self, thread, ns, id=None):
        ids = [i for t, n, i in self.rows if (t, n) == (thread, ns)]
        wanted = id or max(ids, default=None)
        return self._row((thread, ns, wanted)) if wanted in ids else None

    def checkpoint_put(self, thread, ns, id, checkpoint, metadata, parent=None, run=None):
        self.rows[thread, ns, id] = {"parent": parent, "run": run, "checkpoint": self._stored(checkpoint), "metadata": self._stored(metadata)}
        return {}

    def checkpoint_writes(self, thread, ns, id, task, writes, taskPath=""):
        there = self.writes.setdefault((thread, ns, id), {})
        for idx, channel, value in writes:
            data = self._stored(value)
            if idx < 0 or (task, idx) not in there:
                there[task, idx] = (task, channel, data, taskPath)
        return {}

    def checkpoint_list(self, thread=None, ns=None, before=None, limit=100, after=None, filter=None):
        keys = sorted((k for k in self.rows if (thread is None or k[0] == thread) and (ns is None or k[1] == ns) and (not before or k[2] < before)),
                      key=lambda k: (k[2], k[0], k[1]), reverse=True)
        if after:
            keys = keys[int(after):]
        limit = min(limit, 2)  # pages are short, so that tests see several
        more = len(keys) > limit
        return {"rows": [self._row(k) for k in keys[:limit]], "more": more, **({"next": str(int(after or 0) + limit)} if more else {})}

    def _delete(self, keys):
        for key in list(keys):
            self.rows.pop(key, None)
            self.writes.pop(key, None)

    def checkpoint_delete(self, thread):
        self._delete([k for k in {*self.rows, *self.writes} if k[0] == thread])
        return {}

    def checkpoint_delete_runs(self, runs):
        self._delete([k for k, row in self.rows.items() if row["run"] in runs])
        return {}

    def checkpoint_copy(self, from_, to):
        for table in (self.rows, self.writes):
            for key in [k for k in table if k[0] == from_]:
                table[(to, *key[1:])] = dict(table[key])
        return {}

    def checkpoint_prune(self, threads, strategy):
        for thread in threads:
            keys = [k for k in {*self.rows, *self.writes} if k[0] == thread]
            newest = {} if strategy == "delete" else {ns: max(i for _, n, i in keys if n == ns) for _, ns, _ in keys}
            self._delete([k for k in keys if newest.get(k[1]) != k[2]])
        return {}


class Error(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code, self.data = error["code"], error.get("data") or {}


class Answer:
    """The response to a request, once it is there; for `run` also its events so far."""

    def __init__(self):
        self._done = threading.Event()
        self._message = None
        self.events = []

    def set(self, message):
        self._message = message
        self._done.set()

    def result(self, seconds=60):
        if not self._done.wait(seconds):
            raise TimeoutError("no response")
        if "error" in self._message:
            raise Error(self._message["error"])
        return self._message["result"]

    def is_done(self):
        return self._done.is_set()

    def of(self, kind):
        return [e["data"] for e in list(self.events) if e["type"] == kind]

    def text(self):
        return "".join(e["message"]["content"] for e in self.of("messages") if e["message"].get("chunk"))

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition(self):
            if time.monotonic() > end or self.is_done():
                raise TimeoutError(f"the event did not come; events: {self.events}, response: {self._message}")
            time.sleep(0.01)


class Worker:
    """A worker process. Use it with `with`."""

    def __init__(self, project, graphs, store=None, checkpointer="server", max_line=8 << 20, env=None, settings=None, start=True):
        ours, theirs = socket.socketpair()
        self.store = store if store is not None else Store()
        self.socket = ours
        self.log, self.answers, self.runs = [], {}, {}
        self.counter = 0
        self.lock = threading.Lock()
        self.reading = threading.Event()
        self.reading.set()
        environment = {**os.environ, "DRAGOMAN_FD": str(theirs.fileno()), "PYTHONPATH": os.path.join(TREE, "python"),
                       "PYTHONDONTWRITEBYTECODE": "1", "LANGSMITH_TRACING": "false", **(env or {})}
        environment.pop("DRAGOMAN_LIB", None)
        self.project = os.path.join(PROJECTS, project)
        self.process = subprocess.Popen([sys.executable, "-m", "dragoman.worker"], cwd=self.project, env=environment, pass_fds=[theirs.fileno()],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        theirs.close()
        for target in (self._read, self._read_log):
            threading.Thread(target=target, daemon=True).start()
        self.initialize = {"protocolVersion": 1, "server": {"name": "stand-in", "version": "0"}, "agent": "a", "cwd": self.project,
                           "maxLineBytes": max_line, "checkpointer": checkpointer, "settings": settings or {}, "graphs": graphs}
        self.described = None
        if start:
            self.described = self.call("initialize", self.initialize, seconds=120)

    def _read_log(self):
        for line in self.process.stdout:
            self.log.append(line.decode("utf-8", "replace").rstrip("\n"))

    def _read(self):
        with self.socket.makefile("rb") as lines:
            while True:
                self.reading.wait()
                try:
                    line = lines.readline()
                except OSError:
                    line = b""
                if not line:
                    break
                self._on_line(json.loads(line))
        for answer in list(self.answers.values()):
            answer.set({"error": {"code": 0, "message": "the worker has ended"}})

    def _on_line(self, message):
        method, params = message.get("method"), message.get("params")
        if method is None:
            self.answers.pop(message["id"]).set(message)
        elif method == "event":
            run = self.runs[params["run"]]
            assert params["seq"] == len(run.events), f"seq {params['seq']} after {len(run.events)} events"
            assert not run.is_done(), "an event after the response"
            run.events.append(params)
        elif method == "log":
            self.log.append(f"{params.get('run', '-')} {params['level']}: {params['text']}")
        else:
            try:
                body = {"result": self.store.call(method, params)}
            except Refused as e:
                body = {"error": {"code": e.code, "message": str(e)}}
            self._send({"jsonrpc": "2.0", "id": message["id"], **body})

    def _send(self, message):
        data = json.dumps(message).encode() + b"\n"
        with self.lock:
            try:
                self.socket.sendall(data)
            except OSError:
                pass

    def request(self, method, params, answer=None):
        with self.lock:
            self.counter += 1
            key = self.counter
        answer = answer or Answer()
        self.answers[key] = answer
        self._send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return answer

    def call(self, method, params, seconds=60):
        return self.request(method, params).result(seconds)

    def notify(self, method, params):
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, agent, thread, input=None, resume=None, **more):
        """Starts a run; `input`: a text, an input object, or None."""
        with self.lock:
            run = f"r{len(self.runs) + 1}"
            answer = self.runs[run] = Answer()
        answer.run = run
        if isinstance(input, str):
            input = user(input)
        params = {"run": run, "agent": agent, "thread": thread, "task": "t1", "context": "c1", "isResumed": False, "metadata": {},
                  "acceptedOutputModes": [], "tools": [], "attempt": 1, "input": input, "recursionLimit": 100, "durability": "sync",
                  "forward": [], **({"resume": resume} if resume is not None else {}), **more}
        return self.request("run", params, answer)

    def run(self, *args, seconds=60, **more):
        answer = self.start(*args, **more)
        answer.value = answer.result(seconds)
        return answer

    def state(self, agent, thread, values=False):
        return self.call("state", {"agent": agent, "thread": thread, "values": values})

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self, seconds=20):
        """Closes the connection; the worker ends by itself. Returns its exit code."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close()
        self.socket.close()
        self.process.stdout.close()


COUNT = iter(range(1, 1 << 30))


def user(text, **more):
    """The input of a run, as the server sends it."""
    key = f"m{next(COUNT)}"
    message = {"kind": "message", "messageId": key, "role": "user", "parts": [{"kind": "text", "text": text}]}
    return {"messages": [{"role": "user", "content": text, "id": key}], "a2a_outbox": None,
            "a2a_inbox": {"task": {"id": "t1", "contextId": "c1", "kind": "task"}, "message": message, "metadata": {"trace": "x"}}, **more}
