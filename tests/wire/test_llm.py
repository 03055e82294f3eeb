"""The agent type llm with the scripted model (`mock:`): text, tools, questions, approvals, limits; document 002's compliance
test on live streams."""
import json

from lib import fronts
from lib.a2a import ALL, RPC03, RPC1, Client, artifact_texts, message, task_text
from lib.http import ask
from lib.server import Server, agent, folder, server, settings
from lib.tap import check, each, same, test

NOW = {"exec": {"name": "now", "command": ["cat"], "description": "the time",
                "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "additionalProperties": False}}}


def llm(**more):
    return agent("llm", id="assistant", settings={"base_url": "mock:", **more})


def assistant(*others, **more):
    return server(None, config=settings(agents=[llm(**more), *others]))


def records(s, task):
    """The log of a task, from the endpoint for operators."""
    r = ask(s.address, "GET", f"/debug/tasks/{task}/records")
    same(r.status, 200, "the records")
    return [json.loads(line)["record"] for line in r.body.decode().splitlines() if line]


# ---- document 002 ------------------------------------------------------------------------------------------------------

SCRIPTS = ["hello", "think hard about it", "length cut here", "call desk {\"message\": \"stream\"}", "call nothing {} then echo done",
           "refuse", "error 400", "fail in the middle", "filter", "ask which one", "slow 1 a b c"]


@each("compliance test of document 002: {} [R002-29] [R002-30] [R002-31]", SCRIPTS)
def _(script):
    s = assistant(agent("demo", id="desk"), tools=[{"agent": "desk"}], ask_user=True)
    with Client(s, RPC03).stream(script) as events:
        seen = [e.payload for e in events.rest()]
    for e in seen:
        check(e["kind"] in ("task", "status-update", "artifact-update"), e)
        check("internal:" not in json.dumps(e), e)
    same((seen[0]["kind"], seen[0]["status"]["state"]), ("task", "submitted"), "the first event")
    same((seen[1]["kind"], seen[1]["status"]["state"], seen[1]["final"]), ("status-update", "working", False), "the second event")
    same((seen[-1]["kind"], seen[-1]["final"]), ("status-update", True), "the last event")
    check(not any(e.get("final") for e in seen[:-1]), "an event behind a final one")


@each("{}: streamed, not streamed and GetTask are the same", SCRIPTS)
def _(script):
    s = assistant(agent("demo", id="desk"), tools=[{"agent": "desk"}], ask_user=True)
    c = Client(s, RPC1)
    plain = c.send(script).task
    with c.stream(script) as events:
        seen = events.rest()
    for other in (c.get(plain["id"]).task, c.get(seen[0].body["id"]).task):
        same(other["status"]["state"], plain["status"]["state"], "the state")
        same(task_text(other), task_text(plain), "the text")
        same(artifact_texts(other), artifact_texts(plain), "the artifacts")
    streamed = {}
    for e in seen:
        if e.kind == "artifactUpdate":
            a = e.body["artifact"]
            streamed[a["artifactId"]] = (streamed.get(a["artifactId"], "") if e.body.get("append") else "") + \
                "".join(p.get("text", "") for p in a["parts"])
    same(list(streamed.values()), artifact_texts(plain), "the streamed text")


@each("through {}: the text is streamed in chunks, with one first and one last [R002-13]", ALL)
def _(wire):
    with Client(assistant(), wire).stream("echo one two three") as events:
        chunks = [e.body for e in events.rest() if e.kind == "artifactUpdate"]
    same([bool(c.get("append")) for c in chunks], [False] + [True] * (len(chunks) - 1), "append")
    same([bool(c.get("lastChunk")) for c in chunks], [False] * (len(chunks) - 1) + [True], "lastChunk")
    same("".join(p["text"] for c in chunks for p in c["artifact"]["parts"]), "one two three", "the text")


@test("the log has the internal events of the flow, with their members [R002-15] [R002-16] [R002-17] [R002-18] [R002-19] [R002-36]")
def _():
    s = assistant(agent("hello", id="desk"), tools=[{"agent": "desk"}])
    t = Client(s, RPC1).send('call desk {"message": "Ann"}').task
    found = [r for r in records(s, t["id"]) if r.get("kind", "").startswith("internal:")]
    for r in found:
        check(r["taskId"] == t["id"] and r["timestamp"], r)
    flow = [r for r in found if r["kind"] in ("internal:llm-call", "internal:tool-start", "internal:tool-complete", "internal:checkpoint")]
    same([r["kind"][9:] for r in flow], ["llm-call", "tool-start", "tool-complete", "checkpoint", "llm-call", "checkpoint"], "the flow")
    same([flow[i]["iteration"] for i in (0, 3, 4, 5)], [1, 1, 2, 2], "iterations")
    start, end = flow[1], flow[2]
    same((start["toolName"], start["arguments"], end["success"], end["toolCallId"]), ("desk", {"message": "Ann"}, True, start["toolCallId"]), "the call")
    check("Hello" in end["result"], end)
    check([r for r in found if r["kind"] == "internal:usage"], "no usage")


@each("through {}: no internal event reaches a client: stream, subscription, GetTask, ListTasks [R002-20]", ALL)
def _(wire):
    s = assistant(tools=[NOW])
    c = Client(s, wire)
    with c.stream("call now {} then think hard") as events:
        seen = events.rest()
    id = seen[0].body["id"]
    check("internal:" in json.dumps(records(s, id)), "the log has no internal events")
    with c.subscribe(id, last=seen[0].id) as events:
        again = events.rest()
    same([e.payload for e in again], [e.payload for e in seen[1:]], "the events behind the first")
    for what in ([e.payload for e in seen], c.get(id).value, c.list().value if wire.version == "1.0" else None):
        check("internal:" not in json.dumps(what), what)


@test("clients see the task, working, the text and the end, and nothing about calls of the model [R002-14]")
def _():
    with Client(assistant(tools=[NOW]), RPC1).stream("call now {} then echo one two") as events:
        seen = events.rest()
    same([(e.kind, e.state) for e in seen if e.kind != "artifactUpdate"],
         [("task", "TASK_STATE_SUBMITTED"), ("statusUpdate", "TASK_STATE_WORKING"), ("statusUpdate", "TASK_STATE_COMPLETED")], "the events")


@test("an error has its reason in metadata.error [R002-10]")
def _():
    t = Client(assistant(retries=0), RPC1).send("error 400 no such thing").task
    same(t["status"]["state"], "TASK_STATE_FAILED", "the state")
    check("no such thing" in t["metadata"]["error"], t["metadata"])


@test("a refusal of the model is its answer; a filter rejects")
def _():
    c = Client(assistant(), RPC1)
    same(c.send("refuse I cannot help").task["status"]["state"], "TASK_STATE_COMPLETED", "a refusal")
    same(c.send("filter").task["status"]["state"], "TASK_STATE_REJECTED", "a filter before any text")


# ---- other agents ---------------------------------------------------------------------------------------------------------

@test("a sub-agent shows as working statuses without text, and its answer reaches the model [R002-21]")
def _():
    s = assistant(agent("hello", id="desk"), tools=[{"agent": "desk"}])
    with Client(s, RPC1).stream('call desk {"message": "Ann"}') as events:
        seen = events.rest()
    indicators = [p["data"] for e in seen if e.kind == "statusUpdate" and e.state == "TASK_STATE_WORKING"
                  for p in e.body["status"].get("message", {}).get("parts", [])]
    same([(d["type"], d["agent"]["name"]) for d in indicators], [("status-indicator", "desk")] * 2, "the status updates")
    check("Hello" in task_text({"status": seen[-1].body["status"]}), seen[-1])


@test("a question of a sub-agent is one of the task, and the answer reaches the sub-agent")
def _():
    c = Client(assistant(agent("demo", id="desk"), tools=[{"agent": "desk"}]), RPC1)
    t = c.send('call desk {"message": "ask"}').task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
    t = c.send("blue", task=t["id"]).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state behind the answer")
    check("blue" in task_text(t), task_text(t))


@test("an A2A agent of another server is a tool")
def _():
    behind = server(None, config=settings(agents=[agent("demo")]))
    s = assistant(tools=[{"agent": behind.url}])
    name = "127_0_0_1"
    t = Client(s, RPC1).send("call %s %s" % (name, json.dumps({"message": "stream"}))).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", t)
    want = task_text(Client(behind, RPC1).send("stream").task)
    check(want in task_text(t), task_text(t))


# ---- tools of the caller -----------------------------------------------------------------------------------------------------

WEATHER = {"name": "weather", "description": "the weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}


@test("tools of an A2A caller: a data part lists them, its calls and results are data parts")
def _():
    c = Client(assistant(), RPC1)
    m = message(parts=[{"text": 'call weather {"city": "Paris"}'}, {"data": {"tools": [WEATHER]}}])
    t = c.send(m=m).task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
    call, = [x for p in t["status"]["message"]["parts"] if "data" in p for x in p["data"].get("tool_calls", [])]
    same((call["name"], call["arguments"]), ("weather", {"city": "Paris"}), "the call")
    t = c.send(m=message(task=t["id"], parts=[{"data": {"tool_results": [{"call_id": call["call_id"], "output": "rain"}]}}])).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state behind the result")
    check("rain" in task_text(t), task_text(t))


@test("tools of a Chat caller")
def _():
    s = assistant()
    tools = [{"type": "function", "function": WEATHER}]
    first = fronts.post(s, "/v1/chat/completions", {"model": "assistant", "tools": tools,
                                                   "messages": [{"role": "user", "content": 'call weather {"city": "Rome"}'}]}).json
    choice = first["choices"][0]
    same(choice["finish_reason"], "tool_calls", "finish_reason")
    call, = choice["message"]["tool_calls"]
    same((call["function"]["name"], json.loads(call["function"]["arguments"])), ("weather", {"city": "Rome"}), "the call")
    second = fronts.post(s, "/v1/chat/completions", {"model": "assistant", "tools": tools, "messages": [
        {"role": "user", "content": 'call weather {"city": "Rome"}'}, choice["message"],
        {"role": "tool", "tool_call_id": call["id"], "content": "sun"}]}).json
    check("sun" in second["choices"][0]["message"]["content"], second)


# ---- questions -----------------------------------------------------------------------------------------------------------------

@each("through {}: ask_user is input-required, and the answer reaches the model", ALL)
def _(wire):
    c = Client(assistant(ask_user=True), wire)
    t = c.send("ask which colour?").task
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_INPUT_REQUIRED", "which colour?"), "the question")
    t = c.send("green", task=t["id"]).task
    same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")
    check("green" in task_text(t), task_text(t))


# ---- limits ----------------------------------------------------------------------------------------------------------------------

@test("the conversation before is part of the next request")
def _():
    c = Client(assistant(), RPC1)
    t = c.send("echo one").task
    t = c.send("echo two", context=t["contextId"]).task
    same(task_text(t), "two", "the second answer")


@test("a time limit ends the task as failed, and the error names it")
def _():
    t = Client(assistant(limits={"max_time": 0.3}), RPC1).send("slow 100 " + "word " * 200).task
    same(t["status"]["state"], "TASK_STATE_FAILED", "the state")
    check("time" in t["metadata"]["error"], t["metadata"])
