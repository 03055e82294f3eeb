#!/usr/bin/env python3
"""A worker of kind graph without LangGraph: speaks docs/worker-protocol.md and plays graphs by the first word of the message.

GRAPH_STATE names a folder: the state of each thread is a file there, `trace` lists the nodes that ran, and a node waits
for the file `go-<word>` if its script has a word.
"""
import json
import os
import socket
import sys
import threading
import time

FOLDER = os.environ["GRAPH_STATE"]
KEYS = os.environ.get("GRAPH_KEYS", "messages a2a_inbox a2a_outbox").split()
LOCK = threading.Lock()


class Failed(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.code, self.data = code, data


class Thread:
    """The state of a thread, in a file."""

    def __init__(self, name):
        self.path = os.path.join(FOLDER, name.replace("/", "_") + ".json")
        self.values, self.next, self.interrupts, self.exists = {"messages": []}, [], [], os.path.exists(self.path)
        if self.exists:
            with open(self.path, encoding="utf-8") as f:
                self.__dict__.update(json.load(f))

    def save(self):
        self.exists = True
        temporary = self.path + ".new"
        with open(temporary, "w", encoding="utf-8") as f:
            json.dump({"values": self.values, "next": self.next, "interrupts": self.interrupts}, f)
        os.replace(temporary, self.path)

    def add(self, messages):
        for m in messages:
            m = {"type": {"user": "human", "assistant": "ai"}.get(m.get("role"), m.get("role")) or m["type"], **{k: v for k, v in m.items() if k != "role"}}
            known = [i for i, old in enumerate(self.values["messages"]) if old.get("id") == m.get("id") and m.get("id")]
            if known:
                self.values["messages"][known[0]] = m
            else:
                self.values["messages"].append(m)


def trace(word):
    with LOCK, open(os.path.join(FOLDER, "trace"), "a", encoding="utf-8") as f:
        f.write(word + "\n")


def wait(word, run):
    path = os.path.join(FOLDER, "go-" + word)
    while not os.path.exists(path):
        if run.cancelled.is_set():
            raise Failed(0, "cancelled")
        time.sleep(0.01)


class Run:
    def __init__(self, worker, params):
        self.worker, self.params, self.seq, self.cancelled = worker, params, 0, threading.Event()
        self.thread = Thread(params["thread"])
        self.new = []

    # ---- what nodes do
    def event(self, type, data, ns=()):
        self.worker.send({"jsonrpc": "2.0", "method": "event", "params": {"run": self.params["run"], "seq": self.seq, "type": type, "ns": list(ns), "data": data}})
        self.seq += 1

    def token(self, text, node="chat", step=1, id="run-1", **more):
        self.event("messages", {"message": {"type": "ai", "content": text, "id": id, "chunk": True, **more}, "node": node, "step": step, "src": f"{node}:u{step}"})

    def whole(self, message, node="chat", step=1):
        self.event("messages", {"message": message, "node": node, "step": step, "src": f"{node}:u{step}"})

    def done(self, *nodes):
        self.event("updates", {"nodes": list(nodes)})

    def a2a(self, **payload):
        self.event("custom", {"a2a": payload})

    def say(self, text, id=None, **more):
        m = {"type": "ai", "content": text, "id": id or f"ai-{self.params['task']}-{len(self.thread.values['messages'])}", **more}
        self.thread.add([m])
        self.new.append(m)
        return m

    # ---- a run
    def result(self, status="completed", outbox=None):
        t = self.thread
        if outbox is not None:
            t.values["a2a_outbox"] = outbox
        t.save()
        return {"status": status, "interrupts": t.interrupts, "next": t.next, "outbox": outbox, "hasOutbox": outbox is not None, "messages": self.new}

    def ask(self, *values):
        self.thread.interrupts = [{"id": f"i{n}", "value": v} for n, v in enumerate(values, 1)]
        self.thread.next = ["ask"]
        return self.result("interrupted")

    def play(self):
        t, given, resume = self.thread, self.params.get("input"), self.params.get("resume")
        if resume and not any(i["id"] in resume for i in t.interrupts):
            raise Failed(-32602, "these interrupts are not pending")
        if given:
            t.add(given.get("messages") or [])
            t.values.update({k: v for k, v in given.items() if k != "messages"})
        if resume:
            t.interrupts, t.next = [], ["answered"]
            return self.answered(resume)
        if given:
            t.interrupts, t.next = [], ["start"]
            t.save()
        human = [m for m in t.values["messages"] if m["type"] == "human"]
        text = human[-1]["content"] if human else "inbox"
        return getattr(self, "on_" + text.split()[0].lower(), self.on_echo)(text)

    def answered(self, resume):
        if "after" in self.thread.values:
            wait(self.thread.values["after"], self)
        self.say("got " + json.dumps(resume, sort_keys=True))
        self.thread.next = []
        return self.result()

    # ---- scripts
    def on_echo(self, text):
        self.say("echo: " + text)
        self.thread.next = []
        return self.result()

    def on_inbox(self, text):
        self.thread.next = []
        return self.result(outbox={"kind": "message", "role": "agent", "messageId": f"o-{self.params['task']}",
                                   "parts": [{"kind": "text", "text": "inbox"}, {"kind": "data", "data": self.thread.values.get("a2a_inbox") or {}}]})

    def on_hello(self, text):
        for piece in ("Hel", "lo ", "there"):
            self.token(piece)
        self.done("chat")
        self.say("Hello there", id=f"run-{self.params['task']}")
        self.thread.next = []
        return self.result()

    def on_parallel(self, text):
        for a, b in (("a1 ", "b1 "), ("a2", "b2")):
            self.token(a, node="a", id="run-a")
            self.token(b, node="b", id="run-b")
        self.done("a")
        self.done("b")
        self.say("a1 a2", id=f"a-{self.params['task']}")
        self.say("b1 b2", id=f"b-{self.params['task']}")
        self.thread.next = []
        return self.result()

    def on_tool(self, text):
        call = {"id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
        self.token("Let me add. ", tool_call_chunks=[])
        self.token("", tool_call_chunks=[{"index": 0, "id": "c1", "name": "add", "args": "{\"a\": 1,"}])
        self.token("", tool_call_chunks=[{"index": 0, "args": " \"b\": 2}"}])
        self.done("chat")
        self.say("Let me add. ", id="m1" + self.params["task"], tool_calls=[call])
        self.whole({"type": "tool", "content": "3", "tool_call_id": "c1", "id": "t1", "name": "add"}, node="tools", step=2)
        self.done("tools")
        self.token("It is 3.", step=3, id="run-3")
        self.done("chat")
        self.say("It is 3.", id="m3" + self.params["task"])
        self.thread.next = []
        return self.result()

    def on_callers(self, text):
        self.say("", id="call-" + self.params["task"], tool_calls=[{"id": "c-" + self.params["task"], "name": self.params["tools"][0]["name"], "args": {"q": 1}}])
        self.thread.next = []
        return self.result()

    def on_emit(self, text):
        self.a2a(type="artifact", kind="file", name="file", mime_type="application/pdf", url="https://example.com/report.pdf", append=False, is_last_chunk=True)
        self.a2a(type="artifact", kind="data", name="analysis", data={"status": "success", "results": [1]}, append=False, is_last_chunk=True)
        self.a2a(type="message", message={"type": "ai", "content": "Processing complete", "id": None})
        self.a2a(type="task_metadata", metadata={"progress": 100, "aion:network": "forged"})
        self.thread.next = []
        return self.result()

    def on_file(self, text):
        for n, piece in enumerate(("aGVsbG8g", "d29y", "bGQ=")):
            self.a2a(type="artifact", kind="file", name="big.txt", mime_type="text/plain", base64=piece, append=n > 0, is_last_chunk=n == 2)
        self.say("see the file")
        self.thread.next = []
        return self.result()

    def on_custom(self, text):
        self.event("custom", {"pct": 10})
        return self.on_echo(text)

    def on_streamed(self, text):
        self.token("Hello")
        self.a2a(type="message", message={"type": "ai", "content": "Hello", "id": None})
        self.done("chat")
        self.thread.next = []
        return self.result()

    def on_ask(self, text):
        return self.ask({"prompt": "Your name?"})

    def on_ask2(self, text):
        return self.ask("A?", "B?")

    def on_signin(self, text):
        return self.ask({"a2a_state": "auth-required", "prompt": "Sign in"})

    def on_pause(self, text):
        if self.params.get("input") is None:
            return self.on_echo("continued")
        self.thread.next = ["tools"]
        return self.result("interrupted")

    def on_task(self, text):
        self.thread.next = []
        return self.result(outbox={"task": {"id": "evil", "contextId": "evil", "status": {"state": "TASK_STATE_COMPLETED"},
                                            "history": [{"messageId": f"p-{self.params['task']}", "role": "ROLE_AGENT", "parts": [{"text": "patched"}]}],
                                            "artifacts": [{"artifactId": "r1", "name": "report", "parts": [{"text": "R"}]}], "metadata": {"k": 1, "aion:network": "forged"}}})

    def on_fail(self, text):
        raise Failed(-32000, "secret detail", {"type": "ValueError", "traceback": "Traceback: secret"})

    def on_loop(self, text):
        raise Failed(-32001, "Recursion limit of 100 reached")

    def on_no(self, text):
        raise Failed(-32005, "not allowed here")

    def on_wait(self, text):
        self.token("working ")
        wait(text.split()[1], self)
        return self.on_echo(text)

    def on_die(self, text):
        self.token("partial ")
        trace("die")
        if self.params["attempt"] == 1 or "always" in text:
            time.sleep(0.05)
            os.kill(os.getpid(), 9)
        return self.on_echo("alive again")

    def on_steps(self, text):
        """Two nodes: s1, then s2, which waits for a file."""
        t = self.thread
        if t.next != ["s2"]:
            trace("s1")
            self.token("one", node="s1", step=1, id="run-s1")
            self.done("s1")
            t.next = ["s2"]
            t.save()
        trace("s2")
        self.token("two", node="s2", step=2, id="run-s2")
        if len(text.split()) > 1:
            wait(text.split()[1], self)
        self.token(" three", node="s2", step=2, id="run-s2")
        self.done("s2")
        self.say("two three", id=f"s2-{self.params['task']}")
        t.next = []
        return self.result()


class Worker:
    def __init__(self):
        self.socket = socket.socket(fileno=int(os.environ["DRAGOMAN_FD"]))
        self.runs, self.lock = {}, threading.Lock()

    def send(self, value):
        with self.lock:
            self.socket.sendall(json.dumps(value).encode() + b"\n")

    def answer(self, id, result=None, error=None):
        self.send({"jsonrpc": "2.0", "id": id, **({"error": error} if error else {"result": result})})

    def run(self, id, run):
        try:
            self.answer(id, run.play())
        except Failed as e:
            if run.cancelled.is_set():
                run.thread.save()
                self.answer(id, {"status": "cancelled", "interrupts": [], "next": run.thread.next, "outbox": None, "messages": []})
            else:
                self.answer(id, error={"code": e.code, "message": str(e), "data": e.data})
        finally:
            self.runs.pop(run.params["run"], None)

    def handle(self, m):
        method, params, id = m.get("method"), m.get("params") or {}, m.get("id")
        if method == "initialize":
            assert list(params["graphs"]) == ["agent"], params
            self.answer(id, {"protocolVersion": 1, "worker": {"name": "scripted", "lang": "python", "version": "0"},
                             "agents": [{"id": "agent", "kind": "graph", "keys": KEYS}],
                             "capabilities": {"cancel": True, "input": False, "state": True, "drain": False}, "maxRuns": 64})
        elif method == "run":
            trace(f"run {params['attempt']} {'resume' if params.get('resume') else 'input' if params.get('input') else 'continue'}")
            self.runs[params["run"]] = run = Run(self, params)
            threading.Thread(target=self.run, args=(id, run), daemon=True).start()
        elif method == "cancel" and params.get("run") in self.runs:
            self.runs[params["run"]].cancelled.set()
        elif method == "state":
            t = Thread(params["thread"])
            self.answer(id, {"exists": t.exists, "next": t.next, "interrupts": t.interrupts,
                             "messageIds": [x.get("id") for x in t.values["messages"]], **({"values": t.values} if params["values"] else {})})
        elif method == "state/update":
            t = Thread(params["thread"])
            t.add(params["messages"])
            t.save()
            trace("update " + json.dumps(params["messages"], sort_keys=True))
            self.answer(id, {})
        elif id is not None:
            self.answer(id, {})

    def main(self):
        rest = b""
        while True:
            data = self.socket.recv(1 << 20)
            if not data:
                os._exit(0)
            rest += data
            *lines, rest = rest.split(b"\n")
            for line in lines:
                if line.strip():
                    self.handle(json.loads(line))


if __name__ == "__main__":
    print("scripted worker", file=sys.stderr)
    Worker().main()
