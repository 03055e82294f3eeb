"""What is stored and read back: progress is shown and forgotten, answers are there once, failures have a reason.

Every story (tests/store/stories) is checked twice: written by this program, and read from a database of an earlier version."""
import json
import os
import shutil
import subprocess
import threading

from lib import fronts
from lib.a2a import ALL, RPC1, Client, task_text
from lib.http import ask
from lib.server import DRAGOMAN, ENV, ROOT, Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

STORE = os.path.join(ROOT, "tests", "store")
GREETING, REASON = "Hello! How can I assist you today? 😊", "the shop is closed"
# the agent's messages of each story, in order
ANSWERS = {"greet": [GREETING], "deltas": ["Hello world!"], "marked": ["Hello"], "tools": ["It is 72 degrees."],
           "noted": ["I noted it.", "Done."], "ask": ["Which city?"], "fail": [], "crash": [], "snapshot": ["Here it is."]}
# what a reader of the conversation is shown: the artifact in front of the question, too
SHOWN = {**ANSWERS, "ask": ["Let me see.", "Which city?"]}
SEVERAL = ["greet", "deltas", "marked", "tools", "fail"]
FORMATS = ["openai-chat", "openai-responses", "ag-ui", "ag-ui-simple", "responses-simple", "ai-sdk", "langchain"]


def stories(**more):
    needs_ours()
    return settings(agents=[agent("exec", id="stories", settings={"command": [os.path.join(STORE, "stories")]}, **more)])


class Now:
    """The stories as this program stores them."""
    name = "written now"

    def server(self):
        s = server(None, config=stories(), store=f"sqlite:{os.path.join(FOLDERS['now'], 'now.db')}")
        with LOCKS["now"]:
            if "now" not in WRITTEN:
                WRITTEN.add("now")
                for word in ANSWERS:
                    Client(s, RPC1).send(word, context=f"ctx-{word}")
                for word in SEVERAL:
                    Client(s, RPC1).send(word, context="all")
        return s


class Version:
    """A database that an earlier version wrote."""

    def __init__(self, number):
        self.number, self.name = number, f"version {number}"

    def server(self):
        with LOCKS[self.name]:
            path = os.path.join(FOLDERS[self.name], "old.db")
            if not os.path.exists(path):
                shutil.copyfile(os.path.join(STORE, f"version-{self.number}.db"), path)
        return server(None, config=stories(), store=f"sqlite:{path}")


SOURCES = [Now(), Version(3), Version(4), Version(5)]
FOLDERS = {"now": folder(), **{s.name: folder() for s in SOURCES[1:]}}
LOCKS = {name: threading.Lock() for name in FOLDERS}
WRITTEN = set()
CASES = [(f"{word}, {s.name}", word, s) for s in SOURCES for word in ANSWERS]


def in_context(s, context):
    tasks = Client(s, RPC1).list(contextId=context, pageSize=50, historyLength=50, includeArtifacts=True).value["tasks"]
    return sorted(tasks, key=lambda t: t["id"])


def texts_of(message):
    return "".join(p.get("text", "") for p in message["parts"])


def check_history(task, word):
    """Only messages of the conversation, each of them marked."""
    said = [texts_of(m) for m in task.get("history", []) if m["role"] == "ROLE_AGENT" and texts_of(m)]
    last = task["status"].get("message")
    if last and task["status"]["state"] != "TASK_STATE_FAILED" and texts_of(last) not in said:
        said.append(texts_of(last))
    same(said, ANSWERS[word], "the agent's messages")
    for m in task["history"] + ([last] if last else []):
        check("canonical_type" in m.get("metadata", {}), f"no canonical_type: {m}")
        check(m["metadata"]["canonical_type"] not in ("TextMessageChunkEvent", "ToolCallArgsEvent"), f"a chunk: {m}")


@each("the stored Task has complete messages only, each with its canonical_type: {} [R000-02 R001-08 R004-25]", CASES)
def _(word, source):
    s = source.server()
    task, = in_context(s, f"ctx-{word}")
    check_history(task, word)
    for wire in ALL:
        got = Client(s, wire).get(task["id"], historyLength=50).task
        same([texts_of(m) for m in got["history"]], [texts_of(m) for m in task["history"]], f"history over {wire}")
        check("Processing" not in json.dumps(got), f"progress is left in {got}")


@each("calls and results of a working task stay, the progress next to them does not: {}", [(s.name, s) for s in SOURCES])
def _(source):
    task, = in_context(source.server(), "ctx-tools")
    same([(m["metadata"]["canonical_type"], [sorted(p)[0] for p in m["parts"]]) for m in task["history"][1:]],
         [("ToolCallStartEvent", ["data"]), ("ToolCallResultEvent", ["data"])], "calls and results")


def items(s, context):
    r = ask(s.address, "GET", f"/v1/conversations/{context}/items?order=asc&limit=100", None, [])
    same(r.status, 200, r)
    return r.json["data"]


def item_texts(s, context):
    return ["".join(p["text"] for p in i["content"]) for i in items(s, context) if i.get("role") == "assistant"]


@each("conversation items hold the answers, once: {} [R004-05 R004-10 R004-12 R004-25]", CASES)
def _(word, source):
    s = source.server()
    same(item_texts(s, f"ctx-{word}"), SHOWN[word], "assistant items")
    check("Processing" not in json.dumps(items(s, f"ctx-{word}")), "progress")


def ui_messages(s, context):
    r = ask(s.address, "GET", f"/ai-sdk/{context}/messages", None, [])
    same(r.status, 200, r)
    return r.json


def thread_messages(s, context):
    with fronts.stream(s, "/ag-ui/connect", fronts.run_input(thread=context)) as frames:
        told = [f.json for f in frames.rest()]
    return [m for e in told if e["type"] == "MESSAGES_SNAPSHOT" for m in e["messages"]]


@each("the histories of AG-UI and AI SDK hold the answers, once: {} [R004-12 R004-25]", [c for c in CASES if c[1] not in ("noted", "snapshot")])
def _(word, source):  # both are read from the log: what an agent puts only into the history was never streamed
    s, context = source.server(), f"ctx-{word}"
    ui = [p["text"] for m in ui_messages(s, context) if m["role"] == "assistant" for p in m["parts"] if p["type"] == "text"]
    said = [m["content"] for m in thread_messages(s, context) if m["role"] == "assistant" and m.get("content")]
    for shown, name in (ui, "AI SDK"), (said, "AG-UI"):
        same("\n\n".join(shown), "\n\n".join(SHOWN[word]), name)


def converted(value, to, *more):
    p = subprocess.run([DRAGOMAN, "convert", "--from", "a2a-1.0", "--to", to, *more], input=json.dumps(value), env=ENV,
                       capture_output=True, text=True, timeout=60)
    same(p.returncode, 0, p.stderr)
    return p.stdout


@each("a stored Task is converted to its answers, once, in every format: {} [R004-05 R004-08 R004-10 R004-12 R004-25]", CASES)
def _(word, source):
    task, = in_context(source.server(), f"ctx-{word}")
    for to in FORMATS:
        text = json.dumps(json.loads(converted(task, to)), ensure_ascii=False)
        check("Processing" not in text, f"{to}: progress in {text}")
        for answer in SHOWN[word]:
            if word != "ask":  # an interrupt repeats its question
                same(text.count(answer), 1, f"{to}: how often {answer!r} is in {text}")
            check(answer in text, f"{to}: no {answer!r} in {text}")


@each("several tasks of one context: {} [R004-05 R004-12 R004-25]", [(s.name, s) for s in SOURCES])
def _(source):
    s = source.server()
    for task, word in zip(in_context(s, "all"), SEVERAL):
        check_history(task, word)
    want = [a for word in SEVERAL for a in ANSWERS[word]]
    same(item_texts(s, "all"), want, "assistant items")
    same([m["content"] for m in thread_messages(s, "all") if m["role"] == "assistant" and m.get("content")], want, "AG-UI's thread")


@each("an agent that goes on with its task gets the conversation without progress: {} [R004-25]", [(s.name, s) for s in SOURCES])
def _(source):
    copy = os.path.join(folder(), "copy.db")
    if isinstance(source, Version):
        shutil.copyfile(os.path.join(STORE, f"version-{source.number}.db"), copy)
    with Server(None, config=stories(), store=f"sqlite:{copy}") as s:
        c = Client(s, RPC1)
        waits = c.send("ask", context="ctx-ask").task if not isinstance(source, Version) else in_context(s, "ctx-ask")[0]
        done = c.send("Oakland", task=waits["id"]).task
        seen, = [p["data"]["texts"] for a in done["artifacts"] for p in a["parts"] if "data" in p]
        same(seen, ["ask"], "what the agent got as task.history; the question is in its status")
        same([texts_of(m) for m in done["history"]], ["ask", "Which city?", "Oakland"], "history")
        same((done["status"]["state"], task_text(done)), ("TASK_STATE_COMPLETED", "Sunny."), "end")


# ---- while it works ------------------------------------------------------------------------------------------------------

@test("progress is there while it is the current status, and gone afterwards [R004-08 R004-25]")
def _():
    with Server(None, config=stories()) as s:
        c = Client(s, RPC1)
        t = c.send("sleep", config={"returnImmediately": True}).task
        shown = soon(lambda: (m := c.get(t["id"]).task["status"].get("message")) and texts_of(m), "no progress")
        same(shown, "Processing your patience...", "what is shown")
        done = c.cancel(t["id"]).task
        check("Processing" not in json.dumps(done), done)


@each("every frontend shows each story's answer, and stores the same: {} [R004-05 R004-10 R004-12]",
      [(f"{w}, {name}", w, name) for w in ("greet", "deltas", "marked", "tools") for name in fronts.ALL])
def _(word, name):
    s = server(None, config=stories(), store="memory:")
    told = fronts.ALL[name](s, word, **({} if "ag-ui" in name or "ai-sdk" in name else {"model": "stories"}))
    same(told.text, ANSWERS[word][0], "what is shown")
    newest = Client(s, RPC1).list(pageSize=1, historyLength=50).value["tasks"][0]
    check_history(newest, word)


# ---- answer_source: status -------------------------------------------------------------------------------------------------

@test("answer_source status: the deltas are streamed, the complete text is stored once [R001-08 R004-25]")
def _():
    s = server(None, config=stories(answer_source="status"))
    t = Client(s, RPC1).send("deltas", context="by-status").task
    same(([texts_of(m) for m in t["history"]], task_text(t)), (["deltas"], "Hello world!"), "history and status")
    same(item_texts(s, "by-status"), ["Hello world!"], "items")


# ---- parts -------------------------------------------------------------------------------------------------------------------

@each("a streamed text is one part in every Task that is read: {}", [(s.name, s) for s in SOURCES])
def _(source):
    s = source.server()
    task, = in_context(s, "ctx-tools")
    for wire in ALL:
        got = Client(s, wire).get(task["id"]).task
        same([p.get("text") for a in got["artifacts"] for p in a["parts"]], ["It is 72 degrees."], f"parts over {wire}")
    waits, = in_context(s, "ctx-ask")
    same([a["parts"] for a in waits["artifacts"]], [[{"text": "Let me see."}]], "parts of a task that waits")


@each("an artifact that the server closes gets no empty part: {}", ["text", "events"])
def _(output):
    lines = "cat >/dev/null; echo You wrote 3"
    if output == "events":
        event = {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"data": {"n": 3}}]}}}
        lines = f"cat >/dev/null; echo '{json.dumps(event)}'"
    program = {"command": ["/bin/sh", "-c", lines], **({"output": "text"} if output == "text" else {})}
    t = Client(server(None, config=settings(agents=[agent("exec", settings=program, reply="task")])), RPC1).send("3").task
    same([len(a["parts"]) for a in t["artifacts"]], [1], f"parts of {t['artifacts']}")
    check({"text": ""} not in t["artifacts"][0]["parts"], t)


# ---- failures ----------------------------------------------------------------------------------------------------------------

def shell(lines, **more):
    return agent("exec", id="stories", settings={"command": ["/bin/sh", "-c", "cat >/dev/null; " + lines], **more})


def status_line(state, **more):
    return "echo '" + json.dumps({"statusUpdate": {"status": {"state": f"TASK_STATE_{state}", **more.pop("status", {})}, **more}}) + "'"


FAILURES = {
    "metadata.error": shell(status_line("FAILED", metadata={"error": REASON})),
    "a message": shell(status_line("FAILED", status={"message": {"role": "ROLE_AGENT", "parts": [{"text": "the shop "}, {"text": "is closed"}]}})),
    "both": shell(status_line("FAILED", status={"message": {"role": "ROLE_AGENT", "parts": [{"text": REASON}]}}, metadata={"error": REASON})),
    "no reason": shell(status_line("FAILED")),
    "exit status": shell("exit 3"),
    "no JSON": shell("echo this is not JSON"),
    "timeout": shell("exec sleep 60", timeout=0.2),
    "a limit of the log": shell("i=0; while [ $i -lt 40 ]; do " + status_line("WORKING") + "; i=$((i+1)); done"),
}


def unstartable():
    """Found when the server starts, and not to be started."""
    path = os.path.join(folder(), "program")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/nonexistent/interpreter\n")
    os.chmod(path, 0o755)
    return agent("exec", id="stories", settings={"command": [path]})


FAILURES["a program that cannot be started"] = unstartable()


def failing(name):
    needs_ours()
    return server(None, config=settings(agents=[FAILURES[name]], limits={"log_records": 16} if "limit" in name else None))


def check_reason(task):
    same(task["status"]["state"], "TASK_STATE_FAILED", "state")
    why, m = task["metadata"]["error"], task["status"].get("message")
    check(m, f"no status.message: {task}")
    same((m["role"], texts_of(m)), ("ROLE_AGENT", why), "status.message")
    check(m["messageId"] and (m["taskId"], m["contextId"]) == (task["id"], task["contextId"]), m)
    same(m["metadata"]["canonical_type"], "TextMessageEndEvent", "its canonical_type")
    check(all(texts_of(x) != why for x in task["history"]), "the reason is in the history")
    return why


@each("the reason of a failure is in metadata.error and in status.message: {}", list(FAILURES))
def _(name):
    s = failing(name)
    t = Client(s, RPC1).send("go", context="why").task
    why = check_reason(t)
    if name in ("metadata.error", "a message", "both"):
        same(why, REASON, "the reason")
    for wire in ALL:
        same(texts_of(Client(s, wire).get(t["id"]).task["status"]["message"]), why, f"over {wire}")
    with Client(s, RPC1).stream("go") as events:
        last = events.rest()[-1].body
    same((texts_of(last["status"]["message"]), last["metadata"]["error"]), (why, why), "in the stream")
    same(item_texts(s, "why"), [], "assistant items")
    check(why not in json.dumps(ui_messages(s, "why")), "AI SDK shows the reason as a message")
    check(all(m["role"] == "user" for m in thread_messages(s, "why")), "AG-UI shows the reason as a message")


@each("a frontend shows the reason of a failure once, and not as an answer: {}", [(f"{n}, {name}", n, name) for n in ("metadata.error", "a message", "both", "exit status") for name in fronts.ALL])
def _(failure, name):
    s = failing(failure)
    why = Client(s, RPC1).send("go").task["metadata"]["error"]
    told = fronts.ALL[name](s, "go", **({} if "ag-ui" in name or "ai-sdk" in name else {"model": "stories"}))
    same(told.text or "", "", "the answer")
    frames = [f.data for f in told.frames] or [json.dumps(told.body)]
    if name == "responses, streamed":  # progress has it too, so that clients do not run the agent again
        same((told.body["error"]["message"], [i["type"] for i in told.body["output"]]), (why, ["reasoning"]), "the response")
        return
    same(sum(f.count(why) for f in frames), 1, f"how often the reason is in {frames}")


@each("a failed Task is converted without its reason as an answer: {}", [(f"{to}, {s.name}", to, s) for s in SOURCES for to in FORMATS])
def _(to, source):
    task, = in_context(source.server(), "ctx-fail")
    check_reason(task)
    text = converted(task, to)
    value = json.loads(text) if to != "openai-responses" else text
    said = [m for m in (value if isinstance(value, list) else []) if isinstance(m, dict) and m.get("role") == "assistant"]
    check(not said and '"assistant"' not in text and '"ai"' not in text, f"an answer in {text}")
    check(text.count(REASON) <= 1, f"twice in {text}")


@test("the command line prints the reason of a failure once")
def _():
    s = failing("metadata.error")
    for more in [], ["--no-stream"]:
        p = subprocess.run([DRAGOMAN, "send", *more, s.url, "go"], env=ENV, capture_output=True, text=True, timeout=60)
        same((p.stdout + p.stderr).count(REASON), 1, f"in {p.stdout!r} and {p.stderr!r}")
        check(REASON not in p.stdout, "printed as an answer")


@each("what was running when the server was killed has a reason: {}", [(s.name, s) for s in SOURCES])
def _(source):
    if isinstance(source, Version):
        check_reason(in_context(source.server(), "ctx-sleep")[0])
        return
    with Server(None, config=stories(), store=f"sqlite:{folder()}/d.db") as s:
        t = Client(s, RPC1).send("sleep", config={"returnImmediately": True}).task
        s.kill()
        s.restart()
        check_reason(Client(s, RPC1).get(t["id"]).task)


@test("canonical_type off: the reason's message has no metadata")
def _():
    s = server(None, config={**settings(agents=[FAILURES["exit status"]], canonical_type="off")})
    m = Client(s, RPC1).send("go").task["status"]["message"]
    check("canonical_type" not in m.get("metadata", {}), m)
