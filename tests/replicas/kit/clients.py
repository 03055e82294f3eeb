"""Clients that work through the balancer while servers die, come back when a stream breaks, and note everything."""
import random
import threading
import time

from . import history
from lib import fronts, kills
from lib.a2a import RPC1, TERMINAL, Answer, Client, message, new_id, text_of
from lib.http import Closed, Conn, Stream
from lib.server import agent, settings
from lib.tap import Failure

WAIT = 5  # seconds without a byte: the server is stopped or cut off, another one is tried
PATIENCE = 60  # seconds for one operation, over all faults
LOST = (Closed, ConnectionError, OSError)
TEXT = "one two three four five six seven eight nine ten"
ONCE = {"step", "mcp"}  # tools that may not run twice

COMPLETES = {"assistant"}  # agents whose tasks another server can go on with


def config(log, seconds=0.05):
    tools = [kills.exec_tool("step", log, seconds), kills.exec_tool("again", log, seconds, idempotent=True)]
    return settings(agents=[agent("bench"), agent("llm", id="assistant", settings={"base_url": "mock:", "tools": tools})])


def prompt(pick, tag):
    """Two tools at once, then a text in pieces."""
    part = '{"tag": "%s"}' % tag
    return f"call step {part} call again {part} then slow {pick.choice([5, 20, 60])} {TEXT}"


class Run:
    """One run of a tool."""

    def __init__(self, tool, tag, key, fence):
        self.tool, self.tag, self.key = tool, tag, key
        self.fence = int(fence) if fence.isdigit() else 0


def runs(log):
    return [Run(*line) for line in kills.Runs(log).lines]


class Gone(Exception):
    """The client ends: the load is over, or its patience."""


class Load:
    """Clients in threads. ops: the history; stop(): each client ends its operation."""

    def __init__(self, cluster, seed, mix=None):
        self.cluster, self.seed, self.mix = cluster, seed, mix or MIX
        self.ops, self.lock, self.over, self.threads = [], threading.Lock(), threading.Event(), []
        self.agents = {}  # {task: its agent}
        self.resumed = []  # seconds from the last byte of a stream to the next one behind a break

    def note(self, client, kind, start, outcome="ok", **data):
        op = history.Op(client, kind, start, time.monotonic(), outcome, **data)
        with self.lock:
            self.ops.append(op)
        return op

    def start(self, n):
        for i in range(n):
            t = threading.Thread(target=self.run, args=(f"client-{i}", random.Random(f"{self.seed} client {i}"), i), daemon=True)
            t.start()
            self.threads.append(t)

    def run(self, name, pick, i):
        work = Worker(self, name, pick)
        kinds = [k for k, weight in self.mix.items() for _ in range(weight)]
        while not self.over.is_set():
            kind = pick.choice(kinds)
            try:
                getattr(work, kind)()
            except Gone:
                pass
            except LOST:
                pass
            except Failure as e:
                self.note(name, "fault", time.monotonic(), text=f"{kind}: {e}")
                return
            except Exception:  # of the test itself, or an answer in an unexpected form
                import traceback
                self.note(name, "fault", time.monotonic(), text=f"{kind}: {traceback.format_exc()}")
                return
            self.over.wait(pick.random() * 0.1)

    def stop(self, seconds=4 * PATIENCE):
        self.over.set()
        end = time.monotonic() + seconds
        for t in self.threads:
            t.join(max(0.1, end - time.monotonic()))
            if t.is_alive():
                self.note("load", "fault", time.monotonic(), text="a client does not end")


MIX = {"send": 2, "hold": 2, "stream": 4, "look": 2, "responses": 2, "ag_ui": 1, "ag_ui_again": 1, "ai_sdk": 1}


class Worker:
    """One client."""

    def __init__(self, load, name, pick):
        self.load, self.name, self.pick = load, name, pick
        self.context, self.known = new_id("ctx"), []  # known: tasks of the context that were acknowledged
        self.bench, self.llm = (Client(load.cluster, RPC1, base="/agents/" + a) for a in ("bench", "assistant"))

    def note(self, *of, **data):
        return self.load.note(self.name, *of, **data)

    def client_of(self, task):
        return self.load.agents[task]

    def pause(self, since):
        if time.monotonic() - since > PATIENCE:
            raise Gone
        time.sleep(0.05 + self.pick.random() * 0.1)

    def call(self, client, op, params):
        """The Answer, or None: it is unknown what happened."""
        try:
            return client.call(op, params, wait=WAIT)
        except LOST:
            return None
        except Failure as e:
            if str(e).startswith("no byte"):
                return None
            raise

    @staticmethod
    def error_of(answer):
        """A2A's name of the error; an error that says `later` has none."""
        if answer.response.status in (429, 503):
            return "later"
        return {-32001: "TaskNotFound", -32002: "TaskNotCancelable"}.get(answer.code, str(answer.error))

    # -- operations

    def sent(self, client, m, immediately=False):
        """Sends a message until it is acknowledged, with the same id; the task."""
        began = time.monotonic()
        config = {"configuration": {"returnImmediately": True}} if immediately else {}
        while True:
            start = time.monotonic()
            a = self.call(client, "send", {"message": m, **config})
            if a is not None and a.ok:
                t = a.task
                self.load.agents[t["id"]] = client
                self.note("send", start, message=m["messageId"], task=t["id"], view=history.view_of(t))
                if m.get("contextId") == self.context:
                    self.known.append(t["id"])
                return t
            self.note("send", start, "unknown" if a is None else "refused", message=m["messageId"])
            self.unexpected(a, "send")
            self.pause(began)

    def unexpected(self, a, what, *expected):
        if a is not None and not a.ok and self.error_of(a) not in ("later", *expected):
            self.note("fault", time.monotonic(), text=f"{what}: {a}")

    def get(self, task):
        start = time.monotonic()
        a = self.call(self.client_of(task), "get", {"id": task})
        if a is None:
            return self.note("get", start, "unknown", task=task) and None
        if a.ok:
            self.note("get", start, task=task, view=history.view_of(a.task))
            return a.task
        self.note("get", start, "refused", task=task, error=self.error_of(a))
        self.unexpected(a, "get", "TaskNotFound")
        return None

    def send(self):
        t = self.sent(self.bench, message(f"chunks {self.pick.randrange(1, 20)} x", context=self.context))
        self.get(t["id"])

    def hold(self):
        t = self.sent(self.bench, message("hold 1 x", context=self.context), True)["id"]
        self.get(t)
        if self.pick.random() < 0.6:
            self.cancel(t)
        self.wait_for_end(t)

    def cancel(self, task):
        began = time.monotonic()
        while True:
            start = time.monotonic()
            a = self.call(self.client_of(task), "cancel", {"id": task})
            if a is not None and a.ok:
                return self.note("cancel", start, task=task, view=history.view_of(a.task))
            self.note("cancel", start, "unknown" if a is None else "refused", task=task, error=a and self.error_of(a))
            if a is not None and self.error_of(a) == "TaskNotCancelable":
                return None
            self.unexpected(a, "cancel", "TaskNotFound")
            self.pause(began)

    def wait_for_end(self, task):
        began = time.monotonic()
        while True:
            t = self.get(task)
            if t and t["status"]["state"] in TERMINAL:
                return t
            self.pause(began)

    def look(self):
        """Reads tasks: a list of its own, and the log of a task of another client from its start or from now on."""
        start, must = time.monotonic(), [t for t in self.known if self.client_of(t).base == self.bench.base]
        a = self.call(self.bench, "list", {"contextId": self.context, "pageSize": 100})
        if a is not None and a.ok:
            v = a.value
            states = {t["id"]: t["status"]["state"] for t in v["tasks"]}
            self.note("list", start, states=states, must=must if v.get("totalSize", 0) <= 100 else [])
        else:
            self.unexpected(a, "list")
        with self.load.lock:
            tasks = [o.task for o in self.load.ops[-60:] if o.kind in ("send", "stream") and o.task in self.load.agents]
        if tasks:
            task = self.pick.choice(tasks)
            self.get(task)
            self.follow(task, self.pick.choice([0, None]))

    def stream(self):
        """A streamed message to the agent with tools, read to its end over all breaks."""
        if self.pick.random() < 0.3:
            client, words = self.bench, f"chunks {self.pick.randrange(1, 60)} yield x"
        else:
            client, words = self.llm, prompt(self.pick, new_id("tag"))
        m, began = message(words, context=self.context), time.monotonic()
        while True:
            start = time.monotonic()
            state = self.read_stream(client, "stream", {"message": m}, None, start, m)
            if state["task"]:
                break
            self.pause(began)
        task = state["task"]
        self.known.append(task)
        if not state["is_over"]:
            self.follow(task, state["last"], state["time"])
        t = self.wait_for_end(task)
        if client is self.llm and t["status"]["state"] == "TASK_STATE_COMPLETED":
            self.note("text", began, task=task, protocol="A2A", text=text_of(t["status"].get("message")), want=TEXT)

    def follow(self, task, after, broke=None):
        """Subscribes until the task ends, each time behind the last cursor."""
        began = time.monotonic()
        while True:
            start = time.monotonic()
            state = self.read_stream(self.client_of(task), "subscribe", {"id": task}, after, start, None, broke)
            after = state["last"] if state["last"] is not None else after
            broke = state["time"] or broke
            if state["is_over"]:
                return
            self.pause(began)

    def read_stream(self, client, op, params, after, start, m, broke=None):
        """One connection: what it brought is one operation."""
        headers = [("Last-Event-ID", str(after))] if after is not None else []
        records, task, is_over, is_whole, outcome = [], params.get("id"), False, False, "unknown"
        snapshot = op == "subscribe" and after is None
        try:
            events = client.open(op, params, headers=headers, wait=WAIT)
            if isinstance(events, Answer):
                outcome = "refused"
                self.unexpected(events, op, "TaskNotFound")
                if op == "subscribe" and self.error_of(events) != "later":  # the task ended
                    is_over = True
            else:
                with events:
                    while (e := events.next(WAIT)) is not None:
                        records.append((int(e.id), e.payload, time.monotonic()))
                        task = e.body["id"] if e.kind == "task" else e.body["taskId"]
                        self.load.agents.setdefault(task, client)
                        is_over = e.state in TERMINAL
                        if broke and len(records) == 1:
                            self.load.resumed.append((task, broke, time.monotonic()))
                    is_whole, outcome = is_over, "ok"
        except LOST:
            pass
        except Failure as e:
            text = str(e)
            if text.startswith("an error in the stream"):
                outcome = "refused"
                if "-32004" in text or "terminal" in text:
                    is_over = True
            elif not text.startswith("no byte"):
                self.note("fault", start, text=f"{op}: {text}")
        if task and records:
            self.note("stream", start, outcome, task=task, after=after, records=records, snapshot=snapshot, is_whole=is_whole)
            if m and op == "stream":
                self.note("send", start, message=m["messageId"], task=task)
        return {"task": task, "last": records[-1][0] if records else None, "time": records[-1][2] if records else None, "is_over": is_over}

    # -- the other protocols, with the clients of the crash tests

    def read_front(self, kind):
        began, tag = time.monotonic(), new_id("tag")
        while True:
            try:
                r = kind(self.load.cluster, "assistant", prompt(self.pick, tag))
            except (Failure, *LOST):
                if kind.may_repeat:
                    self.pause(began)
                    continue
                return  # it cannot know whether it was sent
            break
        r.worker = self
        is_over = r.read()
        r.is_cut = not is_over
        r.noted(None, r.frames, began)
        if not r.frames and not is_over:
            return
        while not is_over and not r.is_ended():
            self.pause(began)
            start = time.monotonic()
            r.partial = []
            try:
                r.more = []
                after = r.cursor()
                r.come_back()
                r.noted(after, r.more, start)
                is_over = True
                r.merge(r.more)
            except (Failure, *LOST) as e:
                r.noted(after, r.partial, start)
                r.merge(r.partial)
                self.odd(e, kind.name)
        r.more = []
        if r.is_good():
            self.note("text", began, protocol=kind.name, text=r.text(), want=TEXT, frames=[f.data for f in r.frames])
        elif r.frames:
            self.note("end", began, protocol=kind.name, tag=tag, frames=[f.data for f in r.frames[-3:]])

    def odd(self, e, what):
        """Of failures, only those that a lost connection cannot explain."""
        text = str(e)
        if isinstance(e, Failure) and not isinstance(e, Closed) and not text.startswith("no byte") and "HTTP 503" not in text and "HTTP 429" not in text:
            self.note("fault", time.monotonic(), text=f"{what}: {text}")

    def responses(self):
        self.read_front(Responses)

    def ag_ui(self):
        self.read_front(AgUi)

    def ag_ui_again(self):
        self.read_front(AgUiAgain)

    def ai_sdk(self):
        self.read_front(AiSdk)


class ComesBack:
    """Breaks may come again and again; what a connection brought before its break counts."""
    may_repeat = False

    def read(self, until=lambda f: False):
        try:
            while (f := self.stream.next(WAIT)) is not None:
                self.frames.append(f)
        except (Failure, *LOST):
            return False
        return self.is_ended()

    def rest(self, stream):
        self.partial = []
        with stream as s:
            while (f := s.next(WAIT)) is not None:
                self.partial.append(f)
        if not self.is_ended(self.partial):
            raise Closed("the stream ended before the end of the run")
        return self.partial

    def cursor(self):
        return None

    def noted(self, after, frames, start):
        pass

    def merge(self, frames):
        self.frames = self.frames + frames

    def is_ended(self, frames=None):
        frames = self.frames if frames is None else frames
        return bool(frames) and (frames[-1].data == "[DONE]" or frames[-1].json.get("type") in self.ENDS)

    def is_good(self):
        """It ended as a task that completed."""
        return self.frames and any(f.data != "[DONE]" and f.json.get("type") in self.GOOD for f in self.frames[-2:])


class Responses(ComesBack, kills.Responses):
    ENDS, GOOD = ("response.completed", "response.failed", "response.incomplete", "error"), ("response.completed",)

    def cursor(self):
        return self.frames[-1].json["sequence_number"]

    def noted(self, after, frames, start):
        events = [f.json for f in frames if f.data != "[DONE]"]
        if frames:
            first = (self.frames or frames)[0].json
            self.worker.note("numbers", start, response=first["response"]["id"], after=after, records=[(e["sequence_number"], e) for e in events])


class AgUi(ComesBack, kills.AgUi):
    ENDS, GOOD = ("RUN_FINISHED", "RUN_ERROR"), ("RUN_FINISHED",)
    may_repeat = True

    def merge(self, frames):
        if frames and frames[0].json["type"] == "RUN_STARTED":
            self.frames = frames
        else:
            self.frames = self.frames + frames


class AgUiAgain(AgUi):
    name = "AG-UI, from its beginning"

    def headers(self):
        return []


class AiSdk(ComesBack, kills.AiSdk):
    ENDS, GOOD = ("finish", "error", "abort"), ("finish",)
    messages = None

    def merge(self, frames):
        self.frames = frames or self.frames  # it is read from its beginning each time

    def is_good(self):
        return self.messages is not None or super().is_good() and not any('"finishReason":"error"' in f.data for f in self.frames[-2:])

    def text(self):
        if self.messages is None:
            return fronts.fold_ui(self.frames).text
        self.is_cut, self.more = True, []
        return super().text()
