"""Services as agents (`type: http`): a Dragoman in front of another one's endpoints shows what that one shows directly."""
import os
import time

from lib import fronts
from lib.a2a import RPC03, RPC1, Client, artifact_texts, fold, message, task_text, text_of
from lib.agents import DEMO_ALL, DEMO_ASK, DEMO_AUTH, DEMO_DATA, DEMO_FILE, DEMO_SLOW, DEMO_TEXT
from lib.server import Server, agent, folder, server, settings
from lib.tap import check, each, same, soon, test

FORMATS = {"ag-ui": "/ag-ui", "ag-ui-0": "/ag-ui", "openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses",
           "ai-sdk": "/ai-sdk", "a2a-1.0": "/", "a2a-0.3": "/"}
SCRIPTS = DEMO_ALL + ["break", "long 200", "unicode", "echo so many words", "tools", "parallel-tools", "state", "reasoning", "usage", "files"]
# what OpenAI's formats show as text or links, and what A2A's clients are not shown
NO_FILES = {"openai-chat": [DEMO_FILE, DEMO_DATA], "openai-responses": [DEMO_FILE, DEMO_DATA]}


def service(pace=0):
    """The one that is reached through the other. A question that is only text is an interrupt."""
    return server(None, config={**settings(agents=[agent("demo", settings={"pace": pace})]), "ag-ui": {"questions": "interrupt"}})


def front_of(address, format, **more):
    """An agent of the same name, so that requests in OpenAI's formats find it."""
    path = FORMATS[format]
    return agent("http", id="demo", settings={"url": f"http://127.0.0.1:{address[1]}{path}", "format": format, "model": "demo", **more})


def outer(format, pace=0, **more):
    return server(None, config=settings(agents=[front_of(service(pace).address, format, **more)]))


def content(task):
    """What a reader is shown of a task: its state, its text, and other parts."""
    others = [{k: v for k, v in p.items() if k != "metadata"} for a in task.get("artifacts", []) for p in a["parts"] if "text" not in p]
    text = task_text(task) if task["status"]["state"] != "TASK_STATE_COMPLETED" else "\n\n".join(t for t in artifact_texts(task) if t)
    return {"state": task["status"]["state"], "text": text, "others": others}


# ---- the demo agent's scripts --------------------------------------------------------------------------------

@each("through {}: every script ends as it does directly", list(FORMATS), timeout=300)
def _(format):
    direct, via = Client(service(), RPC1), Client(outer(format), RPC1)
    for script in SCRIPTS:
        want, got = content(direct.send(script).task), content(via.send(script).task)
        same(got["state"], want["state"], f"the state of {script}")
        if script in NO_FILES.get(format, []):
            check(want["text"] in got["text"], lambda: f"{script}: {got['text']}")
        else:
            same(got, want, script)


@each("through {}: live, in chunks, the text once", list(FORMATS))
def _(format):
    direct = Client(service(), RPC1).send(DEMO_TEXT).task
    with Client(outer(format), RPC1).stream(DEMO_TEXT) as events:
        chunks = [e for e in events.rest() if e.kind == "artifactUpdate"]
    check(len(chunks) > 3, f"{len(chunks)} chunks")
    same("".join(p.get("text", "") for e in chunks for p in e.body["artifact"]["parts"]), task_text(direct), "the text")
    same([bool(e.body.get("append")) for e in chunks].count(False), 1, "first chunks")
    same([bool(e.body.get("lastChunk")) for e in chunks].count(True), 1, "last chunks")


@each("an {} service, reached through the other protocols: the same text", list(FORMATS))
def _(format):
    want = task_text(Client(service(), RPC1).send(DEMO_TEXT).task)
    s = outer(format)
    for name, front in fronts.ALL.items():
        same(front(s, DEMO_TEXT).text, want, name)
    same(task_text(Client(s, RPC03).send(DEMO_TEXT).task), want, "A2A 0.3")


def remote_of(inner):
    return agent("a2a", id="demo", settings={"url": inner.url})


# each server calls the next one by the protocol of its row; the last one calls the demo agent's server
CHAINS = {"A2A, AG-UI, A2A": [None, "ag-ui", None], "AG-UI, A2A, AI SDK": ["ag-ui", None, "ai-sdk"],
          "AI SDK, A2A, AG-UI": ["ai-sdk", None, "ag-ui"], "A2A, AI SDK, AG-UI 0": [None, "ai-sdk", "ag-ui-0"],
          "Chat, AG-UI, A2A": ["openai-chat", "ag-ui", None], "A2A, Responses, A2A": [None, "openai-responses", None],
          "Responses, Chat, A2A 0.3": ["openai-responses", "openai-chat", "a2a-0.3"]}
ALL_SCRIPTS = SCRIPTS + ["subagent", "slow 2", "help", "message hello", "client-tool", "interrupt"]


def streamed(client, script):
    with client.stream(script) as events:
        if script != DEMO_AUTH:
            return events.rest()
        events.until("AUTH_REQUIRED")  # the stream goes on then
        return events.seen


def ending(client, script, live):
    """What a reader is shown; a Message counts as a task that completed with it (`reply` of these agents is `task`)."""
    first = [client.send(script).value] if not live else streamed(client, script)
    if not live and "message" in first[0] or live and first[0].kind == "message":
        return {"state": "TASK_STATE_COMPLETED", "text": text_of(first[0].body if live else first[0]["message"]), "others": [], "asked": []}
    task = fold(first) if live else first[0]["task"]
    return {**content(task), "asked": questions(task)}


def questions(task):
    """The data of a question: the calls of the caller's tools, without their ids, and what is to be approved."""
    if task["status"]["state"] != "TASK_STATE_INPUT_REQUIRED":
        return []
    data = [p["data"] for p in task["status"]["message"]["parts"] if "data" in p]
    return [[(c["name"], c["arguments"]) for c in d["tool_calls"]] if "tool_calls" in d else (d["type"], d["tool"], d["arguments"]) for d in data]


def chain(formats, pace=0):
    """The server that callers use; formats: None is `type: a2a`."""
    inner = service(pace)
    for format in reversed(formats):
        row = front_of(inner.address, format) if format else remote_of(inner)
        inner = server(None, config={**settings(agents=[row]), "ag-ui": {"questions": "interrupt"}})
    return inner


def has_openai(formats):
    return any(f and f.startswith("openai") for f in formats)


def no_approvals(formats):
    """This format has the question only as text: docs/agents/http.md."""
    return "openai-chat" in formats


@each("three in a chain: {}: every script looks as it does directly", [(f"{name}, {'streamed' if live else 'sent'}", c, live)
                                                                      for name, c in CHAINS.items() for live in (False, True)], timeout=300)
def _(formats, live):
    direct, via = Client(service(), RPC1), Client(chain(formats), RPC1)
    for script in ALL_SCRIPTS:
        want, got = ending(direct, script, live), ending(via, script, live)
        if script in (DEMO_FILE, DEMO_DATA) and has_openai(formats):  # files are links and data is text there: docs/agents/http.md
            check(got["state"] == want["state"] and got["text"].endswith(want["text"]), lambda: f"{script}: {got}")
            continue
        if script == "interrupt" and no_approvals(formats):
            want["asked"] = []
        same(got, want, script)


@each("three in a chain: {}: the same text in every protocol", [(name, c) for name, c in CHAINS.items()], timeout=300)
def _(formats):
    direct, via = service(), chain(formats)
    for name, front in fronts.ALL.items():
        for script in [DEMO_TEXT, "unicode", "tools", "reasoning", "fail", "reject", "break"]:
            want, got = front(direct, script), front(via, script)
            same((got.text, got.end), (want.text, want.end), f"{name}: {script}")


@each("three in a chain: {}: a question, a tool of the caller, an approval", [(name, c) for name, c in CHAINS.items()])
def _(formats):
    # servers without unanswered questions of other tests: OpenAI's formats find a question by the conversation
    direct, via = Client(service(0.01), RPC1), Client(chain(formats, 0.01), RPC1)

    def said(client):
        name = answer(client, client.send(DEMO_ASK).task, "Ann")
        asked = client.send("client-tool").task
        call = asked["status"]["message"]["parts"][0]["data"]["tool_calls"][0]
        result = {"call_id": call["call_id"], "name": call["name"], "output": "hail"}
        tool = answer(client, asked, parts=[{"data": {"tool_results": [result]}}])
        asked = client.send("interrupt").task
        request = [p["data"] for p in asked["status"]["message"]["parts"] if "data" in p]
        check(request or no_approvals(formats), "the request for approval is missing")
        approval = {"parts": [{"data": {"type": "approval", "id": request[0]["id"], "approved": True}}]} if request else {"text": "yes"}
        approved = answer(client, asked, **approval)
        return [(t["status"]["state"], task_text(t)) for t in (name, tool, approved)]
    same(said(via), said(direct), "the answers")


# ---- questions, tools, files -----------------------------------------------------------------------------------

def answer(client, task, text=None, **more):
    return client.send(m=message(text or "", task=task["id"], context=task["contextId"], **more)).task


@each("through {}: a question and its answer", ["ag-ui", "ag-ui-0", "openai-chat", "openai-responses", "ai-sdk"])
def _(format):
    c = Client(outer(format), RPC1)
    t = c.send(DEMO_ASK).task
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_INPUT_REQUIRED", "What is your name?"), "the question")
    t = answer(c, t, "Ann")
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")
    check("Ann" in task_text(t), task_text(t))


@each("through {}: a call of the caller's tool and its result", ["ag-ui", "ag-ui-0", "openai-chat", "openai-responses", "ai-sdk"])
def _(format):
    c = Client(outer(format), RPC1)
    t = c.send("client-tool").task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
    call = t["status"]["message"]["parts"][0]["data"]["tool_calls"][0]
    same(call["name"], "get_weather", "the tool")
    result = {"call_id": call["call_id"], "name": call["name"], "output": "hail"}
    t = answer(c, t, parts=[{"data": {"tool_results": [result]}}])
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "Your tool says: hail"), "the answer")


@each("through {}: an approval", ["ag-ui", "ag-ui-0"])
def _(format):
    c = Client(outer(format), RPC1)
    t = c.send("interrupt").task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
    request = [p["data"] for p in t["status"]["message"]["parts"] if "data" in p]
    same([(r["type"], r["tool"]) for r in request], [("approval-request", "delete_file")], "the request")
    t = answer(c, t, parts=[{"data": {"type": "approval", "id": request[0]["id"], "approved": False}}])
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")


@test("AG-UI to AG-UI: tools of the page, their results, and state")
def _():
    s = outer("ag-ui")
    thread = "thread-" + os.urandom(4).hex()
    tools = [{"name": "get_weather", "description": "the weather", "parameters": {"type": "object"}}]
    first = fronts.ag_ui(s, "client-tool", thread=thread, tools=tools)
    calls = [f.json for f in first.frames if f.json["type"] == "TOOL_CALL_START"]
    same([c["toolCallName"] for c in calls], ["get_weather"], "calls")
    messages = [{"id": "u1", "role": "user", "content": "client-tool"},
                {"id": "a1", "role": "assistant", "toolCalls": [{"id": calls[0]["toolCallId"], "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}]},
                {"id": "t1", "role": "tool", "toolCallId": calls[0]["toolCallId"], "content": "hail"}]
    then = fronts.ag_ui(s, None, thread=thread, tools=tools, messages=messages)
    check("Your tool says: hail" in then.text, then.text)
    direct, via = fronts.ag_ui(service(), "state"), fronts.ag_ui(s, "state")
    states = [[(f.json["type"], f.json.get("snapshot") or f.json.get("delta")) for f in t.frames if f.json["type"].startswith("STATE_")] for t in (direct, via)]
    same(states[1], states[0], "state events")


@each("through {}: a file of the caller comes back", ["ag-ui", "ai-sdk"])
def _(format):
    parts = [{"text": "files"}, {"raw": "aGVsbG8=", "filename": "a.txt", "mediaType": "text/plain"}]
    want = content(Client(service(), RPC1).send(m=message(parts=parts)).task)
    got = content(Client(outer(format), RPC1).send(m=message(parts=parts)).task)
    same(got, want, "the answer")


# ---- cancel, loss --------------------------------------------------------------------------------------------------

def descriptors(s):
    return len(os.listdir(f"/proc/{s.process.pid}/fd"))


@each("through {}: cancel ends the request", list(FORMATS))
def _(format):
    inner = service(1)
    with Server(None, config={**settings(agents=[front_of(inner.address, format)]), "loops": 1}) as s:
        c = Client(s, RPC1)

        def start_and_cancel():
            t = c.send(DEMO_SLOW, config={"returnImmediately": True}).task
            soon(lambda: c.get(t["id"]).task["status"]["state"] == "TASK_STATE_WORKING", "it does not work")
            at = time.monotonic()
            same(c.cancel(t["id"]).task["status"]["state"], "TASK_STATE_CANCELED", "the state")
            check(time.monotonic() - at < 20, "cancel took long")

        start_and_cancel()  # the loop has its client after that
        before = descriptors(s)
        for _ in range(6):
            start_and_cancel()
        soon(lambda: descriptors(s) <= before, lambda: f"{descriptors(s)} descriptors, before {before}", seconds=10)


@test("the service is killed in the middle: the task fails, what was streamed stays")
def _():
    with Server(None, config=settings(agents=[agent("demo")])) as inner, \
            Server(None, config=settings(agents=[front_of(inner.address, "openai-chat")])) as s:
        c = Client(s, RPC1)
        with c.stream(DEMO_TEXT) as events:
            events.until(lambda e: e.kind == "artifactUpdate")
            inner.kill()
            last = events.rest()[-1].body
        same(last["status"]["state"], "TASK_STATE_FAILED", "the state")
        error = last["metadata"]["error"]
        same(error, f"127.0.0.1:{inner.address[1]} closed the connection in the middle of its answer", "the sentence")
        t = c.get(last["taskId"]).task
        check(artifact_texts(t)[0].startswith("An "), t)
        failed = c.send("hello").task
        check(failed["metadata"]["error"].startswith(f"cannot connect to 127.0.0.1:{inner.address[1]}: "), failed["metadata"])


@test("SIGTERM while a service answers: the server ends, and the task has an end after the restart")
def _():
    store = f"sqlite:{folder()}/db"
    with Server("demo") as inner, Server(None, store=store, config=settings(agents=[front_of(inner.address, "ag-ui")])) as s:
        c = Client(s, RPC1)
        t = c.send("slow 60", config={"returnImmediately": True}).task
        soon(lambda: c.get(t["id"]).task["status"]["state"] == "TASK_STATE_WORKING", "it does not work")
        s.stop_well()
        s.restart()
        soon(lambda: c.get(t["id"]).task["status"]["state"] in ("TASK_STATE_FAILED", "TASK_STATE_CANCELED"), "it does not end")
