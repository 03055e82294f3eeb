"""Programs as agents: what an operator and a program's author meet. docs/agents.md."""
import json
import os
import re
import subprocess

from lib.a2a import RPC1, Client, text_of
from lib.agents import DEMO_END_WELL, tck
from lib.http import ask
from lib.server import DRAGOMAN, ENV, ROOT, Server, agent, folder
from lib.tap import check, same, soon, test

GUIDE = os.path.join(ROOT, "docs/agents.md")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.S)


def serve(settings=None, **more):
    """A server with one exec agent."""
    config = more.pop("config", {})
    return Server(None, config={**config, "agents": [agent("exec", settings=settings, **more.pop("how", {}))]}, **more)


def shell(script, **more):
    return {"command": ["/bin/sh", "-c", script], **more}


def warnings(s):
    """What the log and the metrics have against the agents."""
    text = ask(s.address, "GET", "/metrics").body.decode()
    counted = [line for line in text.splitlines() if line.startswith("dragoman_agent_warnings_total") and not line.endswith(" 0")]
    return counted + [line for line in s.log if re.search(r"\bwarn\b", line)]


# ---- no false warnings --------------------------------------------------------------------------------------------------------

@test("warnings: the agents of examples/agents draw none [R004-16 R004-24]")
def _():
    with Server(None, args=["-c", os.path.join(ROOT, "examples/agents/dragoman.yaml")]) as s:
        python, sh = Client(s, RPC1, base="/agents/python"), Client(s, RPC1, base="/agents/shell")
        for text in ("count 3", "chart", "hello"):
            python.send(text)
        asked = python.send("order").task
        same(python.send("with olives", task=asked["id"]).state, "TASK_STATE_COMPLETED", "state")
        with python.stream("count 3") as events:
            same(events.rest()[-1].body["status"]["state"], "TASK_STATE_COMPLETED", "state")
        same(text_of(sh.send("count 3").task["status"]["message"]), "1\n2\n3", "text")
        same(warnings(s), [], "warnings")


@test("warnings: the agent of `dragoman init exec` draws none [R004-24]")
def _():
    there = os.path.join(folder(), "new")
    subprocess.run([DRAGOMAN, "init", "exec", there], env=ENV, check=True, capture_output=True, timeout=60)
    with Server(None, args=["-c", os.path.join(there, "dragoman.yaml")]) as s:
        same(text_of(Client(s, RPC1).send("hi").task["status"]["message"]), "You wrote: hi", "text")
        same(warnings(s), [], "warnings")


@test("warnings: hello, demo, bench and tck draw none [R004-24]")
def _():
    with Server(None, config={"agents": [agent(t) for t in ("hello", "demo", "bench", "tck")]}) as s:
        at = {t: Client(s, RPC1, base=f"/agents/{t}") for t in ("hello", "demo", "bench", "tck")}
        at["hello"].send("hi")
        for word in DEMO_END_WELL + ["tools", "state", "reasoning", "usage", "subagent"]:
            at["demo"].send(word)
        for text in ("echo x", "chunks 3", "chunks 3 yield", "hold 0.1"):
            at["bench"].send(text)
        for what in ("complete-task", "artifact-text", "artifact-file", "artifact-data", "stream-001", "stream-artifact-chunked"):
            at["tck"].send("please", id=tck(what))
        same(warnings(s), [], "warnings")


def guide_events():
    """(section, lines) of the guide's examples of events, with the ids of the run where the guide has ids."""
    with open(GUIDE, encoding="utf-8") as f:
        text = f.read()
    for section in re.split(r"^##+ ", text, flags=re.M)[1:]:
        for language, block in BLOCK.findall(section):
            if language in ("json", "jsonl") and "acceptedOutputModes" not in block:
                lines = [json.dumps(json.loads(block))] if language == "json" else block.splitlines()
                yield section.split("\n")[0], [x.replace("task-1", "'$DRAGOMAN_TASK_ID'").replace("ctx-1", "'$DRAGOMAN_CONTEXT_ID'") for x in lines]


@test("warnings: the events of docs/agents.md, written by a program, draw none [R004-16 R004-24]")
def _():
    blocks = list(guide_events())
    check(len(blocks) > 6, blocks)
    for i, (section, lines) in enumerate(blocks):
        path = os.path.join(folder(), "agent")
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ncat >/dev/null\n" + "".join(f"echo '{x}'\n" for x in lines))
        os.chmod(path, 0o755)
        with serve({"command": [path]}) as s:
            r = Client(s, RPC1).send("hi").result
            check("message" in r or r["task"]["status"]["state"] in ("TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"), (section, r))
            same(warnings(s), [], f"warnings of {section}")


@test("warnings: a program that writes a foreign task id is reported once [R004-16]")
def _():
    with serve(shell("""cat >/dev/null; echo '{"statusUpdate":{"taskId":"another","status":{"state":"TASK_STATE_WORKING"}}}'""")) as s:
        Client(s, RPC1).send("hi")
        soon(lambda: len([w for w in warnings(s) if "changing-ids" in w]) == 2, lambda: f"a line and a count: {warnings(s)}")


# ---- internal events --------------------------------------------------------------------------------------------------------------

@test("internal events of a program get ids and times, and `db export` shows them [R002-19]")
def _():
    path = os.path.join(folder(), "t.db")
    with serve(shell("""cat >/dev/null; echo '{"kind":"internal:llm-call","iteration":1}'"""), store="sqlite:" + path) as s:
        task = Client(s, RPC1).send("hi").task
        same(task["status"]["state"], "TASK_STATE_COMPLETED", "state")
        check("internal:" not in json.dumps(task), task)
        s.stop_well()
    out = subprocess.run([DRAGOMAN, "db", "export", "-d", path], env=ENV, capture_output=True, text=True, check=True, timeout=60).stdout
    (event,) = [e for line in out.splitlines() for e in find_internal(json.loads(line))]
    same((event["kind"], event["iteration"], event["taskId"]), ("internal:llm-call", 1, task["id"]), "event")
    check(re.match(r"20\d\d-\d\d-\d\dT.*Z$", event["timestamp"]), event)


def find_internal(value):
    if isinstance(value, dict) and str(value.get("kind", "")).startswith("internal:llm"):
        yield value
    for v in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from find_internal(v)
