"""LangGraph graphs behind the server: document 003 on the wire, with a scripted worker in the graph's place (lib/graph_worker.py)."""
import base64
import json
import os
import signal
import subprocess
import sys

from lib import fronts
from lib.a2a import ALL, RPC03, RPC1, Client, message, new_id, task_text, text_of
from lib.http import ask
from lib.server import Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "graph_worker.py")
SHARED = []


def config(state, keys=None, more=(), **options):
    env = {"GRAPH_STATE": state, **({"GRAPH_KEYS": keys} if keys is not None else {})}
    return settings(agents=[agent("langgraph", id="demo", settings={"path": "./agent.py:graph", "graph": "agent", "command": [sys.executable, WORKER],
                                                                    "env": env, **options})], **dict(more))


def shared():
    """One server for the tests that need no other settings."""
    needs_ours("needs the agent type langgraph")
    if not SHARED:
        SHARED.append(folder())
    return server(None, config=config(SHARED[0]))


class World:
    """A server of its own, whose worker and store can be killed."""

    def __init__(self, **options):
        needs_ours("needs the agent type langgraph")
        self.state = folder()
        self.server = Server(None, store=f"sqlite:{folder()}/tasks.db", config=config(self.state, **options))
        self.client = Client(self.server, RPC1)

    def trace(self):
        path = os.path.join(self.state, "trace")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as f:
            return f.read().splitlines()

    def go(self, word):
        with open(os.path.join(self.state, "go-" + word), "w", encoding="utf-8"):
            pass

    def workers(self):
        out = subprocess.run(["pgrep", "-P", str(self.server.process.pid)], capture_output=True, text=True, check=False).stdout
        return [int(p) for p in out.split()]

    def kill_worker(self):
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)

    def finished(self, id, state="TASK_STATE_COMPLETED"):
        soon(lambda: self.client.get(id).state == state, lambda: (self.client.get(id).task["status"], self.server.log[-5:]), 60)
        return self.client.get(id).task

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()


def texts(messages):
    return [text_of(m) for m in messages]


def data_of(m):
    return [p["data"] for p in m["parts"] if "data" in p]


def reply(c, task, parts=None, text=None):
    return c.send(m=message(text or "", parts=parts, task=task["id"], context=task["contextId"])).task


# ---- the text, through every protocol --------------------------------------------------------------------------------

@each("A2A, {}: tokens are chunks of the stream-delta artifact, and the answer is there once [R003-01] [R003-02] [R003-04] [R003-20] [R003-24] [R003-25]", ALL)
def _(wire):
    c = Client(shared(), wire)
    sent = c.send("hello").task
    same((sent["status"]["state"], task_text(sent)), ("TASK_STATE_COMPLETED", "Hello there"))
    same(texts(sent["history"]), ["hello", "Hello there"], "the history [R003-26]")
    same(sent.get("artifacts", []), [], "the stream-delta artifact is not stored")
    with c.stream("hello") as events:
        seen = events.rest()
    chunks = [e.body for e in seen if e.kind == "artifactUpdate"]
    same([(x["artifact"]["artifactId"], x["artifact"]["name"], bool(x.get("append")), bool(x.get("lastChunk"))) for x in chunks],
         [("aion:stream-delta", "Stream Delta", n > 0, n == 3) for n in range(4)])
    same("".join(text_of(x["artifact"]) for x in chunks), "Hello there")
    same(text_of(seen[-1].body["status"]["message"]), "Hello there")


@each("{}: the streamed text is there once [R003-27]", [(name, name) for name in fronts.ALL])
def _(name):
    same((fronts.ALL[name](shared(), "hello").text), "Hello there")


@each("{}: text next to a tool call comes before the answer [R003-27]", [(name, name) for name in fronts.ALL])
def _(name):
    told = fronts.ALL[name](shared(), "tool")
    check("".join(told.text.split()) == "Letmeadd.Itis3.", lambda: told.text)


@each("{}: a streamed text that is emitted as a message is there once [R003-29]", [(name, name) for name in fronts.ALL])
def _(name):
    same(fronts.ALL[name](shared(), "streamed").text, "Hello")


@each("{}: an emitted message is content [R003-35]", [(name, name) for name in fronts.ALL])
def _(name):
    check("Processing complete" in fronts.ALL[name](shared(), "emit").text, name)
    check(fronts.ALL[name](shared(), "emit").text.count("Processing complete") == 1, name)


@each("{}: parallel model calls do not mix [R003-27]", [(name, name) for name in fronts.ALL])
def _(name):
    told = fronts.ALL[name](shared(), "parallel")
    check("a1 a2" in told.text and "b1 b2" in told.text, lambda: told.text)


@test("AG-UI: tool calls, results and custom values of a graph are events")
def _():
    told = fronts.ag_ui(shared(), "tool")
    kinds = [f.json["type"] for f in told.frames]
    check("TOOL_CALL_START" in kinds and "TOOL_CALL_RESULT" in kinds, lambda: kinds)
    [result] = [f.json for f in told.frames if f.json["type"] == "TOOL_CALL_RESULT"]
    same((result["toolCallId"], result["content"]), ("c1", "3"))
    customs = [f.json for f in fronts.ag_ui(shared(), "custom").frames if f.json["type"] == "CUSTOM"]
    same([(x["name"], x["value"]) for x in customs], [("custom", {"pct": 10})])


@test("AI SDK: custom values of a graph are data parts")
def _():
    parts = [f.json for f in fronts.ai_sdk(shared(), "custom").frames[:-1] if f.json["type"].startswith("data-")]
    check(any(p["data"] == {"pct": 10} or p["data"].get("value") == {"pct": 10} for p in parts), lambda: parts)


# ---- in --------------------------------------------------------------------------------------------------------------

@test("a2a_inbox has the task, the message and the request's metadata with a traceparent [R003-06]")
def _():
    c = Client(shared(), RPC1)
    done = c.send(m=message(parts=[{"text": "inbox"}, {"data": {"x": 1}}]), metadata={"trace": "t1"}).task
    [inbox] = data_of(done["status"]["message"])
    same((inbox["message"]["kind"], inbox["task"]["kind"], inbox["task"]["id"]), ("message", "task", done["id"]))
    same(inbox["message"]["parts"], [{"kind": "text", "text": "inbox"}, {"kind": "data", "data": {"x": 1}}])
    same(inbox["metadata"]["trace"], "t1")
    check(inbox["metadata"]["traceparent"].startswith("00-"), inbox["metadata"])


@test("a2a_dialect 1.0: the inbox has the form of 1.0 [R003-06]")
def _():
    needs_ours("needs the agent type langgraph")
    with World(a2a_dialect="1.0") as w:
        [inbox] = data_of(w.client.send("inbox").task["status"]["message"])
        same((inbox["message"]["role"], inbox["message"]["parts"]), ("ROLE_USER", [{"text": "inbox"}]))


@test("a graph without a2a_inbox: a message without text is rejected, and nothing runs [R003-05]")
def _():
    with World(keys="messages") as w:
        t = w.client.send(m=message(parts=[{"url": "https://example.com/x.png", "mediaType": "image/png"}])).task
        same(t["status"]["state"], "TASK_STATE_REJECTED")
        check("a2a_inbox" in task_text(t), t["status"])
        same(w.trace(), [], "runs")


@test("the same messageId again is the same task; with another content it is refused, and the first task is named [R003-07]")
def _():
    c, context = Client(shared(), RPC1), new_id("c")
    first = c.send(m=message("hello", id="same-" + context, context=context)).task
    same(c.send(m=message("hello", id="same-" + context, context=context)).task["id"], first["id"])
    changed = c.send(m=message("other", id="same-" + context, context=context))
    changed.expect("InvalidParams")
    check(first["id"] in changed.response.body.decode(), changed)


@each("the id of an agent's message is refused, and its task is named: {} [R003-07]", [(name, name) for name in ("a new task", "a task that waits", "after a restart")])
def _(how):
    w = World()
    with w.server:
        context = new_id("ctx")
        first = w.client.send("hello", context=context).task
        key = first["status"]["message"]["messageId"]
        ids = {"context": context}
        if how == "a task that waits":
            ids["task"] = w.client.send("ask", context=context).task["id"]
        if how == "after a restart":
            w.server.kill()
            w.server.restart()
        refused = Client(w.server, RPC1).send(m=message("other", id=key, **ids))
        refused.expect("InvalidParams")
        check("messageId was used before" in refused.response.body.decode() and first["id"] in refused.response.body.decode(), refused)
        same(Client(w.server, RPC1).send(m=message("other", id=key, context=new_id("ctx"))).state, "TASK_STATE_COMPLETED", "in another context it is a new id")


@test("the same messageId with another content is refused while the first one runs, too [R003-07]")
def _():
    with World() as w:
        context = new_id("c")
        first = w.client.send(m=message("wait here", id="m1", context=context), config={"returnImmediately": True}).task
        changed = w.client.send(m=message("other", id="m1", context=context))
        changed.expect("InvalidParams")
        w.go("here")
        w.finished(first["id"])


@test("two messages of one context run one after the other")
def _():
    with World() as w:
        context = new_id("c")
        first = w.client.send(m=message("wait one", context=context), config={"returnImmediately": True}).task
        soon(lambda: len(w.trace()) == 1, w.trace)
        second = w.client.send(m=message("hello", context=context), config={"returnImmediately": True}).task
        other = w.client.send("hello").task  # another context does not wait
        same(other["status"]["state"], "TASK_STATE_COMPLETED")
        same(w.client.get(second["id"]).state, "TASK_STATE_WORKING")
        w.go("one")
        w.finished(first["id"])
        w.finished(second["id"])


@test("AG-UI: a conversation that the thread lacks enters it, an edited one starts a new thread")
def _():
    with World() as w:
        thread = new_id("t")
        said = [{"id": "u1", "role": "user", "content": "Hi"}, {"id": "a1", "role": "assistant", "content": "Hello."},
                {"id": "u2", "role": "user", "content": "echo"}]
        fronts.ag_ui(w.server, None, thread=thread, messages=said)
        files = [f for f in os.listdir(w.state) if f.endswith(".json")]
        same(len(files), 1)
        with open(os.path.join(w.state, files[0]), encoding="utf-8") as f:
            same([(m["type"], m["content"]) for m in json.load(f)["values"]["messages"][:3]],
                 [("human", "Hi"), ("ai", "Hello."), ("human", "echo")])
        fronts.ag_ui(w.server, None, thread=thread, messages=said + [{"id": "a2", "role": "assistant", "content": "echo: echo"},
                                                                     {"id": "u3", "role": "user", "content": "again"}])
        same(len([f for f in os.listdir(w.state) if f.endswith(".json")]), 1, "threads")
        edited = [{"id": "u1", "role": "user", "content": "Changed"}, said[1], {"id": "u9", "role": "user", "content": "echo"}]
        fronts.ag_ui(w.server, None, thread=thread, messages=edited)
        same(len([f for f in os.listdir(w.state) if f.endswith(".json")]), 2, "threads")


@test("the caller's tools reach the graph, a call of one goes to the caller, and its result to the graph")
def _():
    tools = [{"type": "function", "function": {"name": "look_up", "description": "finds", "parameters": {"type": "object"}}}]
    r = fronts.chat(shared(), "callers", tools=tools)
    same(r.end, "tool_calls")
    [call] = r.body["choices"][0]["message"]["tool_calls"]
    same((call["function"]["name"], json.loads(call["function"]["arguments"])), ("look_up", {"q": 1}))
    messages = [{"role": "user", "content": "callers"}, r.body["choices"][0]["message"], {"role": "tool", "tool_call_id": call["id"], "content": "snow"},
                {"role": "user", "content": "echo"}]
    same(fronts.chat(shared(), None, messages=messages, tools=tools).text, "echo: echo")


# ---- out -------------------------------------------------------------------------------------------------------------

@each("A2A, {}: the usage example of document 003 [R003-28] [R003-32] [R003-34] [R003-36] [R003-37] [R003-38] [R003-39]", ALL)
def _(wire):
    t = Client(shared(), wire).send("emit").task
    same([(a["name"], list(a["parts"][0])[0]) for a in t["artifacts"]], [("file", "url"), ("analysis", "data")])
    same(texts(t["history"]).count("Processing complete"), 1, "the message in the history")
    same(t["metadata"], {"progress": 100})


@test("chunks of a file are one file, in the task and for download [R003-33]")
def _():
    c = Client(shared(), RPC1)
    with c.stream("file") as events:
        seen = events.rest()
    chunks = [e.body for e in seen if e.kind == "artifactUpdate"]
    same([(bool(x.get("append")), bool(x.get("lastChunk"))) for x in chunks], [(False, False), (True, False), (True, True)])
    t = c.get(chunks[0]["taskId"]).task
    [artifact] = t["artifacts"]
    same([base64.b64decode(p["raw"]) for p in artifact["parts"]], [b"hello world"])
    told = fronts.responses(shared(), "file")
    ids = [a["file_id"] for item in told.body["output"] for p in item.get("content", []) for a in p.get("annotations", []) if "file_id" in a]
    for id in ids:
        same(ask(shared().address, "GET", f"/v1/files/{id}/content").body, b"hello world")


@each("A2A, {}: an outbox Task is a patch, ids and routing metadata are the server's [R003-09] [R003-11] [R003-12] [R003-14] [R003-15]", ALL)
def _(wire):
    t = Client(shared(), wire).send("task").task
    check(t["id"] != "evil" and t["contextId"] != "evil", t)
    same((task_text(t), t["metadata"]), ("patched", {"k": 1}))
    same([a["artifactId"] for a in t["artifacts"]], ["r1"])
    same(texts(t["history"]), ["task", "patched"])


@test("an outbox Message is the answer in full, and state.messages gets it with its messageId [R003-13] [R003-16] [R003-18]")
def _():
    with World() as w:
        t = w.client.send("inbox").task
        same(texts(t["history"]), ["inbox", "inbox"])
        same(len(data_of(t["status"]["message"])), 1)
        [update] = [line[7:] for line in w.trace() if line.startswith("update ")]
        same(json.loads(update), [{"content": "inbox", "id": t["status"]["message"]["messageId"], "type": "ai"}])


@test("routing keys of a request are copied to the task and the agent's messages, the graph's are dropped [R003-12] [R003-42]")
def _():
    needs_ours("needs the agent type langgraph")
    state = folder()
    made = config(state)
    made["tokens"] = [{"token": "t", "principal": "p", "may_set_metadata": ["aion:"]}]
    with Server(None, config=made) as s:
        c = Client(s, RPC1, token="t")
        t = c.send("task", metadata={"aion:network": "n1"}).task
        same(t["metadata"], {"aion:network": "n1", "k": 1})
        same(t["status"]["message"]["metadata"]["aion:network"], "n1")


@each("A2A, {}", [(f"{w.name}: {what}", w, text, state, why) for w in (RPC1, RPC03) for what, text, state, why in (
    ("an exception is a failure without its text", "fail", "TASK_STATE_FAILED", "the agent failed"),
    ("the recursion limit has its own text", "loop", "TASK_STATE_FAILED", "recursion_limit"),
    ("a rejection has its reason", "no", "TASK_STATE_REJECTED", "not allowed here"))])
def _(wire, text, state, why):
    t = Client(shared(), wire).send(text).task
    same(t["status"]["state"], state)
    check(why in task_text(t), t["status"])
    check("secret" not in json.dumps(t), t)


@test("expose_errors shows the text of an exception")
def _():
    with World(expose_errors=True) as w:
        check("secret detail" in task_text(w.client.send("fail").task), "the text")
        soon(lambda: any("ValueError" in line for line in w.server.log), lambda: w.server.log[-10:])


@test("a cancel stops the graph; one that is over wins")
def _():
    with World() as w:
        t = w.client.send("wait never", config={"returnImmediately": True}).task
        soon(lambda: len(w.trace()) == 1, w.trace)
        same(w.client.cancel(t["id"]).state, "TASK_STATE_CANCELED")
        done = w.client.send("hello").task
        w.client.cancel(done["id"]).expect("TaskNotCancelable")


# ---- interrupts ------------------------------------------------------------------------------------------------------

@each("A2A, {}: an interrupt is input-required, a text answers it", ALL)
def _(wire):
    c = Client(shared(), wire)
    t = c.send("ask").task
    same((t["status"]["state"], text_of(t["status"]["message"])), ("TASK_STATE_INPUT_REQUIRED", "Your name?"))
    same(data_of(t["status"]["message"]), [{"interrupts": [{"id": "i1", "value": {"prompt": "Your name?"}}]}])
    same(t["status"]["message"]["metadata"]["interruptId"], "i1")
    same(task_text(reply(c, t, text="Ann")), 'got {"i1": "Ann"}')


@test("one data part answers with its data, several parts with the message")
def _():
    c = Client(shared(), RPC1)
    same(task_text(reply(c, c.send("ask").task, parts=[{"data": {"a": False}}])), 'got {"i1": {"a": false}}')
    same(task_text(reply(c, c.send("ask").task, parts=[{"data": False}])), 'got {"i1": false}')
    answered = json.loads(task_text(reply(c, c.send("ask").task, parts=[{"text": "x"}, {"data": {"a": 1}}]))[4:])
    same([p["kind"] for p in answered["i1"]["parts"]], ["text", "data"])


@test("two interrupts are answered by a map of their ids; a text is not enough")
def _():
    c = Client(shared(), RPC1)
    t = c.send("ask2").task
    same(len(data_of(t["status"]["message"])[0]["interrupts"]), 2)
    t = reply(c, t, text="yes")
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    same(task_text(reply(c, t, parts=[{"data": {"resume": {"i1": 1, "i2": ""}}}])), 'got {"i1": 1, "i2": ""}')


@test("a2a_state auth-required is auth-required, and its answer reaches the graph")
def _():
    c = Client(shared(), RPC1)
    t = c.send("signin").task
    same(t["status"]["state"], "TASK_STATE_AUTH_REQUIRED")
    same(task_text(reply(c, t, parts=[{"data": {"code": 7}}])), 'got {"i1": {"code": 7}}')


@test("any message continues behind a breakpoint")
def _():
    c = Client(shared(), RPC1)
    t = c.send("pause").task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    same(task_text(reply(c, t, text="go")), "echo: continued")


@test("a message without a taskId answers the only open question of its context")
def _():
    c, context = Client(shared(), RPC1), new_id("c")
    t = c.send(m=message("ask", context=context)).task
    answered = c.send(m=message("Ann", context=context)).task
    same((answered["id"], task_text(answered)), (t["id"], 'got {"i1": "Ann"}'))
    check(c.send(m=message("hello", context=context)).task["id"] != t["id"], "no question is open: a new task")
    c.send(m=message("ask", context=context))
    other = c.send(m=message("ask", context=new_id("c"))).task
    check(other["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", "another context")


@test("an interrupt is answered through AG-UI")
def _():
    s, thread = shared(), new_id("t")
    told = fronts.ag_ui(s, "ask", thread=thread)
    same(told.end, "interrupt")
    [it] = told.frames[-1].json["outcome"]["interrupts"]
    same(it["message"], "Your name?")
    told = fronts.ag_ui(s, None, thread=thread, resume=[{"interruptId": it["id"], "status": "resolved", "payload": {"name": "Ann"}}])
    same(told.text, 'got {"i1": {"name": "Ann"}}')


@test("an interrupt is answered through Chat, Responses and the AI SDK")
def _():
    s = shared()
    asked = fronts.chat(s, "ask")
    same(asked.text, "Your name?")
    same(fronts.chat(s, None, messages=[{"role": "user", "content": "ask"}, {"role": "assistant", "content": asked.text},
                                        {"role": "user", "content": "Ann"}]).text, 'got {"i1": "Ann"}')
    asked = fronts.responses(s, "ask")
    same(asked.text, "Your name?")
    same(fronts.responses(s, "Ann", previous_response_id=asked.body["id"]).text, 'got {"i1": "Ann"}')
    chat = new_id("chat")
    same(fronts.ai_sdk(s, "ask", chat_id=chat).text, "Your name?")
    same(fronts.ai_sdk(s, "Ann", chat_id=chat).text, 'got {"i1": "Ann"}')


# ---- what is lost ----------------------------------------------------------------------------------------------------

@test("kill -9 of the worker in a node: the run goes on, finished nodes are not repeated, the text is there once")
def _():
    with World() as w:
        with w.client.stream("steps go") as events:
            events.until(lambda e: e.kind == "artifactUpdate" and text_of(e.body["artifact"]) == "two")
            w.kill_worker()
            w.go("go")
            events.rest(60)
            seen = events.seen
        same(w.trace(), ["run 1 input", "s1", "s2", "run 2 continue", "s2"])
        same(text_of(seen[-1].body["status"]["message"]), "two three")
        same(seen[-1].body["status"]["state"], "TASK_STATE_COMPLETED")
        text = ""
        for x in (e.body for e in seen if e.kind == "artifactUpdate"):
            text = (text if x.get("append") else "") + text_of(x["artifact"])
        same(text, "two three", "the text of the client")


@test("a worker that is lost before its input is stored gets the same run again")
def _():
    with World() as w:
        t = w.client.send("die").task
        same(t["status"]["state"], "TASK_STATE_COMPLETED")
        same([line for line in w.trace() if line.startswith("run")][0], "run 1 input")


@test("a graph that always kills its worker fails in the end")
def _():
    with World() as w:
        t = w.client.send("die always", wait=120).task
        same(t["status"]["state"], "TASK_STATE_FAILED")
        check(len([line for line in w.trace() if line == "die"]) <= 4, w.trace())


@test("kill -9 of the worker while the task waits: the answer resumes it")
def _():
    with World() as w:
        t = w.client.send("ask").task
        w.kill_worker()
        same(task_text(reply(w.client, t, text="Ann")), 'got {"i1": "Ann"}')


@test("kill -9 of the server in a node: the task goes on, finished nodes are not repeated")
def _():
    with World() as w:
        with w.client.stream("steps go") as events:
            events.until(lambda e: e.kind == "artifactUpdate" and text_of(e.body["artifact"]) == "two")
            id = events.seen[0].body["id"]
        w.server.kill()
        w.go("go")
        w.server.restart()
        done = w.finished(id)
        same((task_text(done), texts(done["history"])), ("two three", ["steps go", "two three"]))
        same(w.trace(), ["run 1 input", "s1", "s2", "run 1 continue", "s2"])


@test("kill -9 of the server, twice in one node: the task goes on")
def _():
    with World() as w:
        t = w.client.send("steps go", config={"returnImmediately": True}).task
        for n in 1, 2:
            soon(lambda n=n: w.trace().count("s2") == n, w.trace)
            w.server.kill()
            w.server.restart()
        soon(lambda: w.trace().count("s2") == 3, w.trace)
        w.go("go")
        same((task_text(w.finished(t["id"])), w.trace().count("s1")), ("two three", 1))


@test("kill -9 of the server while the task waits: the answer resumes it")
def _():
    with World() as w:
        t = w.client.send("ask").task
        w.server.kill()
        w.server.restart()
        same(task_text(reply(w.client, t, text="Ann")), 'got {"i1": "Ann"}')


@test("kill -9 of the server while it waits for the first token: the run starts again, with the same message")
def _():
    with World() as w:
        t = w.client.send("wait there", config={"returnImmediately": True}).task
        soon(lambda: len(w.trace()) == 1, w.trace)
        w.server.kill()
        w.go("there")
        w.server.restart()
        done = w.finished(t["id"])
        same((task_text(done), len([m for m in done["history"] if m["role"] == "ROLE_USER"])), ("echo: wait there", 1))
