"""Functions of the Functional API (`@entrypoint`) behind a server, in Python and JavaScript."""
import os
import signal
import subprocess
import time

import common
from lib import fronts, server
from lib.a2a import RPC1, Client, new_id, task_text
from lib.server import folder
from lib.tap import check, each, same, soon, test

JS = os.path.join(common.TREE, "tests", "interop", "langgraph-js", "projects", "server")
LANGUAGES = {
    "Python": {"config": os.path.join(common.FOLDER, "projects", "functional", "langgraph.json"), "command": common.COMMAND},
    "JavaScript": {"config": os.path.join(JS, "functional.json"), "command": ["node", os.path.join(common.TREE, "js", "worker.js")]},
}
EACH = [(language, language) for language in LANGUAGES]


def config(language, graph="agent", **env):
    return server.settings(agents=[server.agent("langgraph", id="demo", settings={**LANGUAGES[language], "graph": graph, "env": env})])


def shared(language, graph="agent"):
    return server.server(None, config=config(language, graph))


def client(language):
    return Client(shared(language), RPC1)


def answer(task):
    return task["status"]["message"]["parts"][0]["text"]


@each("{}: what the function returns is the answer, once, by every protocol [R003-11]", EACH)
def _(language):
    for name, call in fronts.ALL.items():
        told = call(shared(language), "hello")
        same(told.text, "functional: hello", name)


@each("{}: tokens of a task are streamed; without a result they are the answer [R003-20 R003-23]", EACH)
def _(language):
    events = client(language).stream("stream it").rest()
    text = "".join(p.get("text", "") for e in events if e.kind == "artifactUpdate" for p in e.body["artifact"]["parts"])
    same((text, events[-1].state, events[-1].body["status"]["message"]["parts"][0]["text"]),
         ("thought stream it", "TASK_STATE_COMPLETED", "thought stream it"), "stream")


@each("{}: an outbox in the result; the inbox and the writer reach the function [R003-06 R003-10]", EACH)
def _(language):
    task = client(language).send(m={"messageId": "in-" + language, "role": "ROLE_USER", "parts": [{"text": "outbox"}]}).task
    same(task["status"]["message"]["parts"], [{"text": "to in-" + language}, {"data": {"x": 1}}], "answer")
    same([p["data"] for a in task["artifacts"] for p in a["parts"] if "data" in p], [{"n": 1}], "artifact")


@each("{}: what is saved comes back as the previous value of the thread", EACH)
def _(language):
    c, context = client(language), new_id("ctx")
    same([answer(c.send(text, context=context).task) for text in ("remember a", "remember b")], ["remember a", "remember a | remember b"], "answers")
    same(answer(c.send("remember c", context=new_id("ctx")).task), "remember c", "another thread")


@each("{}: an interrupt is a question; it is answered after a kill -9 of worker and server, and the task before it does not run again", EACH)
def _(language):
    trace = os.path.join(folder(), "trace")
    with server.Server(None, store=f"sqlite:{folder()}/store.db", config=config(language, TRACE=trace)) as s:
        task = Client(s, RPC1).send("ask me").task
        same((task["status"]["state"], task_text(task).strip()), ("TASK_STATE_INPUT_REQUIRED", "Your name?"), "question")
        kill_worker(s, language)
        s.kill()
        s.restart()
        done = Client(s, RPC1).send("Ann", task=task["id"]).task
        same((done["status"]["state"], answer(done)), ("TASK_STATE_COMPLETED", "thought ask me, Ann"), "answer")
        with open(trace, encoding="utf-8") as f:
            same(f.read().split(), ["think"], "runs of the task")


def kill_worker(s, language):
    pattern = "dragoman.worker" if language == "Python" else "worker.js"
    out = subprocess.run(["pgrep", "-P", str(s.process.pid), "-f", pattern], capture_output=True, text=True, check=False).stdout
    check(out.split(), "there is a worker")
    for pid in out.split():
        os.kill(int(pid), signal.SIGKILL)


@each("{} in the middle of the function: it goes on, the finished task does not run again",
      [(f"{language}, {name} is killed", language, name) for language in LANGUAGES for name in ("the worker", "the server")])
def _(language, name):
    trace, gate = os.path.join(folder(), "trace"), os.path.join(folder(), "gate")
    with server.Server(None, store=f"sqlite:{folder()}/store.db", config=config(language, TRACE=trace, GATE=gate)) as s:
        task = Client(s, RPC1).send("wait here", config={"returnImmediately": True}).task["id"]
        soon(lambda: os.path.exists(trace), "the task did not run", 60)
        soon(lambda: checkpoints_have_task(trace), "no result", 60)
        if name == "the worker":
            kill_worker(s, language)
        else:
            s.kill()
            s.restart()
        with open(gate, "w", encoding="utf-8"):
            pass
        c = Client(s, RPC1)
        soon(lambda: c.get(task).state == "TASK_STATE_COMPLETED", lambda: (c.get(task).task["status"], s.log[-5:]), 60)
        same(answer(c.get(task).task), "thought wait here, done", "answer")
        with open(trace, encoding="utf-8") as f:
            same(f.read().split(), ["think"], "runs of the task")


def checkpoints_have_task(trace):
    """The result of the task is stored some milliseconds after it has run."""
    return os.path.getmtime(trace) < time.time() - 1


@test("Python: a sync function that returns a text")
def _():
    same(answer(Client(shared("Python", "sync"), RPC1).send("hi").task), "sync: hi", "answer")


if __name__ == "__main__":
    common.main()
