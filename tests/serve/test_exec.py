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


# ---- tools, reasoning, state, usage ----------------------------------------------------------------------------------------------

def sse(s, path, body):
    p = subprocess.run(["curl", "-sN", s.url + path, "-H", "Content-Type: application/json", "-d", json.dumps(body)], capture_output=True, text=True, timeout=60, check=True)
    return [json.loads(line[6:]) for line in p.stdout.splitlines() if line.startswith("data: {")]


@test("what to emit: the example of docs/agents.md is shown by every protocol as its table says")
def _():
    (lines,) = [lines for section, lines in guide_events() if section.startswith("What to emit for tools")]
    path = os.path.join(folder(), "agent")
    with open(path, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\ncat >/dev/null\n" + "".join(f"echo '{x}'\n" for x in lines))
    os.chmod(path, 0o755)
    with serve({"command": [path]}) as s:
        # AG-UI
        events = sse(s, "/ag-ui", {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}], "tools": [], "context": []})
        types = [e["type"] for e in events]
        for wanted in ("REASONING_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT", "STATE_SNAPSHOT", "STATE_DELTA", "CUSTOM"):
            check(wanted in types, (wanted, types))
        check({"type": "STEP_STARTED", "stepName": "plan"} in events and {"type": "STEP_FINISHED", "stepName": "plan"} in events, events)
        same(next(e for e in events if e["type"] == "TOOL_CALL_START")["toolCallName"], "get_weather", "tool")
        same(events[-1]["usage"][0]["totalTokens"], 21, "usage")
        # Responses
        r = json.loads(ask(s.address, "POST", "/v1/responses", json.dumps({"model": "exec", "input": "hi"}).encode(), [("Content-Type", "application/json")]).body)
        same([o["type"] for o in r["output"]], ["reasoning", "mcp_call", "reasoning", "message"], "output")
        same((r["output"][1]["name"], json.loads(r["output"][1]["output"]), r["usage"]["total_tokens"]), ("get_weather", {"sky": "snow", "celsius": -3}, 21), "call")
        # Chat Completions
        r = json.loads(ask(s.address, "POST", "/v1/chat/completions", json.dumps({"model": "exec", "messages": [{"role": "user", "content": "hi"}]}).encode(), [("Content-Type", "application/json")]).body)
        m = r["choices"][0]["message"]
        same((m["content"], r["usage"]["total_tokens"], "tool_calls" in m), ("It snows in Oslo.", 21, False), "chat")
        check("I need the weather" in m["reasoning_content"] and "Asking the travel agent" in m["reasoning_content"], m)
        # AI SDK
        events = sse(s, "/ai-sdk", {"id": "c", "messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]})
        types = [e["type"] for e in events]
        for wanted in ("reasoning-delta", "tool-input-available", "tool-output-available", "data-a2a-status", "data-state", "data-custom"):
            check(wanted in types, (wanted, types))
        same(events[-1]["messageMetadata"]["usage"][0]["totalTokens"], 21, "usage")
        # A2A
        with Client(s, RPC1).stream("hi") as stream:
            check("internal:" not in json.dumps([e.payload for e in stream.rest()]), "internal events in A2A")
        same(warnings(s), [], "warnings")


@test("a file for a program that reads text is rejected, and `dragoman send --file` reports it")
def _():
    path = os.path.join(folder(), "x.png")
    with open(path, "wb") as f:
        f.write(b"\x89PNG")
    with serve({"command": ["cat"], "input": "text", "output": "text"}) as s:
        p = subprocess.run([DRAGOMAN, "send", "--file", path, s.url, "look"], env=ENV, capture_output=True, text=True, timeout=60)
        check(p.returncode != 0 and "accepts only text" in p.stdout + p.stderr and "x.png" in p.stdout + p.stderr, p)


# ---- the environment of programs ------------------------------------------------------------------------------------------------------

SECRETS = {"ALICE_TOKEN": "alice-secret-1", "BOB_TOKEN": "bob-secret-2", "OTHER_KEY": "other-key-3"}
CALLERS = {"tokens": [{"token_env": "ALICE_TOKEN", "principal": "alice"}, {"token": "${BOB_TOKEN}", "principal": "bob"}]}


def answer(c, text="hi", **how):
    return text_of(c.send(text, **how).task["status"]["message"])


def environment(**more):
    """What a program of bob's finds in its environment."""
    with serve({"command": ["env"], "output": "text", **more}, env=SECRETS, config=CALLERS) as s:
        return dict(line.split("=", 1) for line in answer(Client(s, RPC1, token=SECRETS["BOB_TOKEN"])).splitlines() if "=" in line)


@test("environment: a program gets the usual variables, and no token of a caller")
def _():
    env = environment()
    same([n for n in SECRETS if n in env], [], "secrets")
    check(not any(v in env.values() for v in SECRETS.values()), env)
    same(env["PATH"], os.environ["PATH"], "PATH")
    same(env["DRAGOMAN_PRINCIPAL"], "bob", "principal")


@test("environment: `inherit_env: all` passes all variables but those that hold tokens; a list passes what it names")
def _():
    env = environment(inherit_env="all")
    same([n for n in SECRETS if n in env], ["OTHER_KEY"], "secrets")
    env = environment(inherit_env=["ALICE_TOKEN"])
    same([n for n in SECRETS if n in env], ["ALICE_TOKEN"], "secrets")
    env = environment(env={"KEY": "${OTHER_KEY}"})
    same(([n for n in SECRETS if n in env], env["KEY"]), ([], SECRETS["OTHER_KEY"]), "by env")


@test("environment: `inherit_env: all` does not pass the keys of models and the tokens for other servers, a list does")
def _():
    keys = {"MODEL_KEY": "k-1", "SPARE_KEY": "k-2", "TOOL_TOKEN": "k-3", "DESK_TOKEN": "k-4", "OTHER_KEY": "k-5"}
    model = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "MODEL_KEY",
             "upstreams": [{"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key_env": "SPARE_KEY"}],
             "tools": [{"http": {"name": "look", "url": "http://127.0.0.1:9/", "description": "looks", "token_env": "TOOL_TOKEN"}}]}
    others = [agent("llm", settings=model), agent("a2a", settings={"url": "http://127.0.0.1:9", "token_env": "DESK_TOKEN"})]
    for inherited, passed in (("all", ["OTHER_KEY"]), (["MODEL_KEY"], ["MODEL_KEY"])):
        program = agent("exec", settings={"command": ["env"], "output": "text", "inherit_env": inherited}, default=True)
        with Server(None, config={"agents": [program, *others]}, env=keys) as s:
            env = dict(line.split("=", 1) for line in answer(Client(s, RPC1)).splitlines() if "=" in line)
            same([n for n in keys if n in env], passed, f"inherit_env: {inherited}")


@test("environment: the log of a failure names the variables that were withheld, and no value")
def _():
    with serve(shell("exit 3"), env=SECRETS, config={"log": {"level": "warn"}}) as s:
        Client(s, RPC1).send("hi")
        line = soon(lambda: next((x for x in s.log if "agent failed" in x), None), lambda: s.log)
        check("OTHER_KEY" in line and "inherit_env" in line, line)
        check(not any(v in x for v in SECRETS.values() for x in s.log), s.log)


@test("environment: --check does not print the values of `env`")
def _():
    path = os.path.join(folder(), "dragoman.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("agents:\n- type: exec\n  settings: {command: [cat], env: {KEY: '${OTHER_KEY}'}}\n")
    p = subprocess.run([DRAGOMAN, "serve", "--check", "-c", path], env={**ENV, **SECRETS}, capture_output=True, text=True, timeout=60)
    check(p.returncode == 0 and SECRETS["OTHER_KEY"] not in p.stdout + p.stderr and '"KEY": "***"' in p.stdout, p)


# ---- the caller ------------------------------------------------------------------------------------------------------------------------

@test("callers: a program can keep apart what two principals name alike")
def _():
    script = """line=$(cat); printf '%s|%s|%s\\n%s\\n' "$DRAGOMAN_CONTEXT_ID" "$DRAGOMAN_PRINCIPAL" "$DRAGOMAN_CONTEXT_KEY" "$line" """
    with serve(shell(script, output="text"), env=SECRETS, config=CALLERS) as s:
        rows = [answer(Client(s, RPC1, token=SECRETS[t]), context="support-1").split("\n", 1) for t in ("ALICE_TOKEN", "BOB_TOKEN", "ALICE_TOKEN")]
        head = [r[0].split("|") for r in rows]
        same([h[:2] for h in head], [["support-1", "alice"], ["support-1", "bob"], ["support-1", "alice"]], "who")
        check(head[0][2] == head[2][2] != head[1][2] and len(head[0][2]) == 32, head)
        turn = json.loads(rows[1][1])
        same((turn["tenant"], turn["principal"], turn["contextKey"]), ("", "bob", head[1][2]), "members of the input")


HOLD = shell("""cat >/dev/null; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}'; exec sleep 600""", max_processes=3)


@test("callers: no principal can occupy all programs of an agent")
def _():
    with serve(HOLD, env=SECRETS, config=CALLERS) as s:
        alice, bob = (Client(s, RPC1, token=SECRETS[t]) for t in ("ALICE_TOKEN", "BOB_TOKEN"))
        held = [alice.stream("x") for _ in range(2)]  # half of three, rounded up
        for h in held:
            h.until("WORKING")
        refused = alice.send("x").task
        same(refused["status"]["state"], "TASK_STATE_FAILED", "alice's third")
        check("wait for one to end, or cancel one" in json.dumps(refused), refused)
        with bob.stream("x") as events:
            events.until("WORKING")
        for h in held:
            h.close()


@test("callers: a program without a task ends when its caller disconnects")
def _():
    path = os.path.join(folder(), "pid")
    with serve(shell("""cat >/dev/null; echo $$ > "$PIDFILE.new"; mv "$PIDFILE.new" "$PIDFILE"; exec sleep 600""", env={"PIDFILE": path})) as s:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}})
        caller = subprocess.Popen(["curl", "-s", s.url, "-H", "Content-Type: application/json", "-H", "A2A-Version: 1.0", "-d", body])
        soon(lambda: os.path.exists(path), "the program did not start")
        with open(path, encoding="utf-8") as f:
            pid = int(f.read())
        caller.kill()
        caller.wait()
        soon(lambda: not is_alive(pid), "the program still runs")


# ---- failures --------------------------------------------------------------------------------------------------------------------------------

@test("failures: one record at warn, with the task and the end of stderr")
def _():
    with serve(shell("""echo 'Traceback:' >&2; echo '  File "x.py"' >&2; echo 'ValueError: no' >&2; exit 1"""), config={"log": {"level": "warn", "format": "json"}}) as s:
        task = Client(s, RPC1).send("hi").task
        same(task["metadata"]["error"], "the agent ended with exit status 1", "error")
        line = soon(lambda: next((x for x in s.log if "agent failed" in x), None), lambda: s.log)
        r = json.loads(line)
        same((r["level"], r["task"], r["agent"], r["why"]), ("warn", task["id"], "exec", "the agent ended with exit status 1"), "record")
        same(r["stderr"], 'Traceback:\n  File "x.py"\nValueError: no', "stderr")
        same(len([x for x in s.log if "agent" in x and "warn" in x]), 1, "records")


@test("failures: plain text where JSON is expected is named as that, to the caller without the text")
def _():
    with serve(shell("cat >/dev/null; echo Hello from my agent")) as s:
        task = Client(s, RPC1).send("hi").task
        same(task["metadata"]["error"], "line 1 of the agent's output is not JSON (if it writes plain text, set output: text)", "error")
        check("Hello from" not in json.dumps(task), task)
        soon(lambda: any("agent failed" in x and "Hello from my agent" in x for x in s.log), lambda: s.log)


@test("failures: a missing program is found at the start and by --check")
def _():
    there = folder()
    for name, mode in ("plain.sh", 0o644), ("agent.sh", 0o755):
        with open(os.path.join(there, name), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho ok\n")
        os.chmod(os.path.join(there, name), mode)
    path = os.path.join(there, "dragoman.yaml")
    for command, words in (["./gone.sh"], ["./gone.sh", there, "No such file"]), (["./plain.sh"], ["not executable", "chmod +x"]), \
            (["no-such-program"], ["cannot find the program", "PATH"]), (["./agent.sh"], []):
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"agents:\n- type: exec\n  settings:\n    command: {json.dumps(command)}\n")
        p = subprocess.run([DRAGOMAN, "serve", "--check", "-c", path], env=ENV, capture_output=True, text=True, timeout=60, cwd="/")
        same(p.returncode, 1 if words else 0, f"status of --check with {command}: {p.stderr}")
        check(all(w in p.stderr for w in words) and (not words or f"{path}:4:" in p.stderr), p.stderr)
        if words:
            p = subprocess.run([DRAGOMAN, "serve", "-c", path, "--listen", "127.0.0.1:0", "--store", "memory:"], env=ENV, capture_output=True, text=True, timeout=60)
            check(p.returncode == 1 and all(w in p.stderr for w in words), p.stderr)


# ---- kill -9 -----------------------------------------------------------------------------------------------------------------------------------

def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):  # it may end between open and read
        return False


@test("kill -9 of the server ends its programs and what they started")
def _():
    script = "cat >/dev/null; sleep 600 & echo $!; sleep 600 & echo $!; echo $$; wait; true"
    s = serve({"command": script, "output": "text"})
    with Client(s, RPC1).stream("x") as events:
        text = ""
        while len(text.split()) < 3:
            e = events.next()
            text += "".join(p["text"] for p in e.body["artifact"]["parts"]) if e.kind == "artifactUpdate" else ""
        pids = [int(x) for x in text.split()]
        check(all(is_alive(p) for p in pids), pids)
        s.kill()
    soon(lambda: not any(is_alive(p) for p in pids), lambda: [p for p in pids if is_alive(p)])
