"""Functions in Python (python/dragoman/agent.py) behind a server, by all protocols, with processes that are killed."""
import base64
import os
import re
import signal
import sys

from lib import fronts
from lib.a2a import RPC1, Client, artifact_texts, message, new_id
from lib.server import ROOT, Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "python_agent.py")


def config(**more):
    command = [sys.executable, "-m", "dragoman.worker", AGENT]
    return settings(agents=[agent("exec", id="demo", settings={"mode": "worker", "command": command, "env": {"PYTHONPATH": os.path.join(ROOT, "python")},
                                                               **more})])


def shared():
    needs_ours()
    return server(None, config=config())


def client():
    return Client(shared(), RPC1)


def own_server():
    needs_ours()
    return Server(None, store="sqlite:" + os.path.join(folder(), "tasks.db"), config=config())


def worker_pids(s):
    """Processes of the server that run the agent."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == s.process.pid and b"dragoman.worker" in words:
            found.append(int(pid))
    return found


def full_text(events):
    """What a reader of the stream has at the end, artifact by artifact."""
    texts = {}
    for e in events:
        if e.kind == "artifactUpdate":
            text = "".join(p.get("text", "") for p in e.body["artifact"]["parts"])
            key = e.body["artifact"]["artifactId"]
            texts[key] = texts.get(key, "") + text if e.body.get("append") else text
    return "".join(texts.values())


# ---- answers --------------------------------------------------------------------------------------------------------------------

@each("the same text by {}", list(fronts.ALL.items()))
def _(call):
    told = call(shared(), "count 5")
    same((told.text.strip(), told.end in ("stop", "completed", "success")), ("0 1 2 3 4", True), told.frames or told.body)


@test("A2A streams one artifact in chunks, and the last status repeats the text")
def _():
    events = client().stream("count 3").rest()
    chunks = [e.body for e in events if e.kind == "artifactUpdate"]
    same([(c["artifact"]["parts"][0]["text"], c.get("append", False), c.get("lastChunk", False)) for c in chunks],
         [("0 ", False, False), ("1 ", True, False), ("2 ", True, False), ("", True, True)], "chunks")
    same(events[-1].body["status"]["message"]["parts"][0]["text"], "0 1 2 ", "the text of the last status")


@test("the history of the conversation reaches the function")
def _():
    c, context = client(), new_id("ctx")
    c.send("count 2", context=context)
    task = c.send("history", context=context).task
    same(artifact_texts(task), ["user: count 2 | agent: 0 1 "], "answer")


@test("tool calls, reasoning, progress, state, usage, files and data by A2A and AG-UI")
def _():
    c = client()
    events = c.stream("everything").rest()
    indicators = [p["data"]["text"] for e in events if e.kind == "statusUpdate" for p in (e.body["status"].get("message") or {}).get("parts", []) if "data" in p]
    same(indicators, ["Working on it"], "progress")
    parts = [p for e in events if e.kind == "artifactUpdate" for p in e.body["artifact"]["parts"]]
    same([base64.b64decode(p["raw"]) for p in parts if "raw" in p], [b"content of a"], "file")
    same([p["data"] for p in parts if "data" in p], [{"n": 1}], "data")
    told = fronts.ag_ui(shared(), "everything")
    kinds = [f.json["type"] for f in told.frames]
    for kind in ("TOOL_CALL_START", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA", "TEXT_MESSAGE_CONTENT"):
        check(kind in kinds, lambda kind=kind: f"{kind} is not in {kinds}")
    check(any(k.startswith("REASONING") for k in kinds), kinds)
    same(told.text, "Done.", "text")


@test("usage by Chat, a tool call and files by Responses, state by the AI SDK")
def _():
    usage = fronts.chat(shared(), "everything").body["usage"]
    same((usage["prompt_tokens"], usage["completion_tokens"]), (3, 4), "usage")
    told = fronts.responses(shared(), "everything")
    same([(i["name"], "snow" in i["output"]) for i in told.body["output"] if i["type"] == "mcp_call"], [("get_weather", True)], "mcp_call")
    frames = fronts.ai_sdk(shared(), "everything").frames
    same([f.json["data"] for f in frames[:-1] if f.json["type"] == "data-state"][-1], {"city": "Oslo", "days": 3}, "data-state")


@each("how it ends: {}", [("fail", "TASK_STATE_FAILED", "The bank is closed."), ("reject", "TASK_STATE_REJECTED", "The bank is closed."),
                          ("raise", "TASK_STATE_FAILED", "the agent failed: its code raised an error")])
def _(state, sentence, word=None):
    word = {"TASK_STATE_REJECTED": "reject"}.get(state) or ("raise" if "raised" in sentence else "fail")
    task = client().send(f"end {word}").task
    same((task["status"]["state"], task["status"]["message"]["parts"][0]["text"]), (state, sentence), "status")
    same(artifact_texts(task), ["so far"], "text before the end")
    if word == "raise":
        check(not any("secret" in str(v) for v in task.values()), task)
        soon(lambda: any("a secret" in line for line in shared().log), "the log has no exception")
        soon(lambda: any("python_agent.py" in line for line in shared().log), "the log has no traceback")


@test("cancel: the function ends, its last words are in the artifact, the task is canceled")
def _():
    c = client()
    events = c.stream("wait")
    task = events.next().body["id"]
    soon(lambda: "waiting " in artifact_texts(c.get(task).task), "no text")
    c.cancel(task)
    last = events.rest()
    same((last[-1].state, full_text(last)), ("TASK_STATE_CANCELED", "waiting no more"), "the end of the stream")


@test("messages while it works reach the function, by A2A and AG-UI")
def _():
    s = shared()
    c, thread = Client(s, RPC1), new_id("thread")
    first = c.stream("steer")
    task = first.next().body["id"]
    soon(lambda: artifact_texts(c.get(task).task) == ["ready "], "no text")
    c.send("faster", task=task, config={"returnImmediately": True})
    same(c.send("done", task=task).task["status"]["state"], "TASK_STATE_COMPLETED", "the answer to the last message")
    same(full_text(first.rest()), "ready [faster] [done] ", "text")
    messages = [{"id": "u1", "role": "user", "content": "steer"}]
    run = fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=messages))
    frames = [run.next()]
    while frames[-1].json["type"] != "TEXT_MESSAGE_CONTENT":
        frames.append(run.next())
    with fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=messages + [{"id": "u2", "role": "user", "content": "done"}])) as second:
        second.rest()
    same(fronts.fold_ag_ui(frames + run.rest()).text.strip(), "ready [done]", "text of the first run")


# ---- questions ------------------------------------------------------------------------------------------------------------------

def check_answer(task, pid=None):
    texts = artifact_texts(task)
    same(texts[:2], ["Hello. ", "Thanks, Ann. "], "texts")
    m = re.fullmatch(r"Ann likes blue\. First process: (\d+)\.", texts[2])
    check(m and len(texts) == 3, texts)
    if pid:
        same(int(m[1]), pid, "the process that ran the step")


@test("questions: the function runs again from the top, and nothing is repeated")
def _():
    c = client()
    task = c.send("ask").task
    same((task["status"]["state"], task["status"]["message"]["parts"][0]["text"]), ("TASK_STATE_INPUT_REQUIRED", "What is your name?"), "status")
    task = c.send("Ann", task=task["id"]).task
    same(task["status"]["message"]["parts"][1]["data"]["choices"], ["red", "blue"], "choices")
    task = c.send("blue", task=task["id"]).task
    same(task["status"]["state"], "TASK_STATE_COMPLETED", "state")
    check_answer(task)


@test("questions: answered after kill -9 of the worker, and of worker and server; a step is not repeated")
def _():
    with own_server() as s:
        c = Client(s, RPC1)
        task = c.send("ask").task["id"]
        pid, = worker_pids(s)
        os.kill(pid, signal.SIGKILL)
        same(c.send("Ann", task=task).task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "state after the first answer")
        s.kill()
        s.restart()
        c = Client(s, RPC1)
        done = c.send("blue", task=task).task
        same(done["status"]["state"], "TASK_STATE_COMPLETED", "state")
        check_answer(done, pid)


def ask_by_agui(s):
    thread = new_id("thread")
    return [fronts.ag_ui(s, text, thread=thread).text for text in ("ask", "Ann", "blue")]


def ask_by_responses(s):
    told = [fronts.responses(s, "ask")]
    for text in ("Ann", "blue"):
        told.append(fronts.responses(s, text, previous_response_id=told[-1].body["id"]))
    return [t.text for t in told]


def ask_by_chat(s):
    messages, told = [], []
    for text in ("ask", "Ann", "blue"):
        messages.append({"role": "user", "content": text})
        told.append(fronts.chat_stream(s, "", messages=messages).text)
        messages.append({"role": "assistant", "content": told[-1]})
    return told


def ask_by_ai_sdk(s):
    chat_id, messages, told = new_id("chat"), [], []
    for i, text in enumerate(("ask", "Ann", "blue")):
        messages.append({"id": f"u{i}", "role": "user", "parts": [{"type": "text", "text": text}]})
        told.append(fronts.ai_sdk(s, "", chat_id=chat_id, messages=messages).text)
        messages.append({"id": f"a{i}", "role": "assistant", "parts": [{"type": "text", "text": told[-1]}]})
    return told


@each("questions and answers by {}", [("AG-UI", ask_by_agui), ("Responses", ask_by_responses), ("Chat", ask_by_chat), ("the AI SDK", ask_by_ai_sdk)])
def _(how):
    first, second, third = how(shared())
    check(first.startswith("Hello. ") and first.endswith("What is your name?") and first.count("Hello") == 1, first)
    check(second.startswith("Thanks, Ann. ") and "Which color?" in second and "Hello" not in second, second)
    check(third.startswith("Ann likes blue.") and "Thanks" not in third, third)


@test("a tool of the caller, by Chat")
def _():
    tool = {"type": "function", "function": {"name": "look_up", "description": "", "parameters": {"type": "object"}}}
    messages = [{"role": "user", "content": "tool"}]
    first = fronts.chat(shared(), "", messages=messages, tools=[tool])
    call = first.body["choices"][0]["message"]["tool_calls"][0]
    same((call["function"]["name"], call["function"]["arguments"].replace(" ", "")), ("look_up", '{"city":"Oslo"}'), "call")
    messages += [first.body["choices"][0]["message"], {"role": "tool", "tool_call_id": call["id"], "content": "snow"}]
    same(fronts.chat(shared(), "", messages=messages, tools=[tool]).text, "['look_up'] snow", "answer")


# ---- processes that are lost ----------------------------------------------------------------------------------------------------

@each("a worker that is killed in the middle of a text: {}", [("the same text again", ""), ("another text", " zwei")])
def _(other):
    c = client()
    events = c.stream("lost " + os.path.join(folder(), "mark") + other).rest()
    want = "one two three" if not other else "one zwei three"
    same((events[-1].state, full_text(events)), ("TASK_STATE_COMPLETED", want), "the end of the stream")
    same(artifact_texts(c.get(events[0].body["id"]).task), [want], "the stored text")
    same(events[-1].body["status"]["message"]["parts"][0]["text"], want, "the text of the last status")


@each("a worker that is killed in the middle of a text, seen by {}", list(fronts.ALL.items()))
def _(call):
    told = call(shared(), "lost " + os.path.join(folder(), "mark"))
    same(told.text, "one two three", told.frames or told.body)


@test("a server that is killed in the middle of a text: the function runs again, and readers see the text once")
def _():
    mark = os.path.join(folder(), "mark")
    with own_server() as s:
        c = Client(s, RPC1)
        stream = c.stream("hold " + mark)
        task = stream.next().body["id"]
        soon(lambda: artifact_texts(c.get(task).task) == ["one two "], "no text")
        seen = []
        while full_text(seen) != "one two ":
            seen.append(stream.next())
        s.kill()
        s.restart()
        c = Client(s, RPC1)
        again = c.subscribe(task, last=seen[-1].id)
        with open(mark, "w", encoding="utf-8"):
            pass
        rest = again.rest()
        same(rest[-1].state, "TASK_STATE_COMPLETED", "the last event")
        same(full_text(seen + rest), "one two three", "the text of both streams")
        same([e for e in rest if e.kind == "artifactUpdate" and not e.body.get("append")], [], "restarts of the artifact")
        same(artifact_texts(c.get(task).task), ["one two three"], "the stored text")


@test("dragoman serve FILE serves the agent of a file")
def _():
    needs_ours()
    path = os.path.join(folder(), "my_agent.py")
    with open(path, "w", encoding="utf-8") as f:
        f.write('from dragoman.agent import agent\n\n@agent\nasync def main(turn):\n    await turn.write(f"You wrote: {turn.text}")\n')
    with Server(None, args=[path]) as s:
        same(fronts.chat(s, "hello", model="my_agent").text, "You wrote: hello", "answer")
        same(artifact_texts(Client(s, RPC1).send(m=message("hi")).task), ["You wrote: hi"], "answer by A2A")
        s.stop_well()
