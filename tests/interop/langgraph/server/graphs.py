"""Graphs of the real LangGraph behind a server, through every protocol."""
import asyncio
import base64
import json
import os
import shutil

import common
from common import shared
from lib import fronts
from lib.a2a import RPC1, RPC03, Client, message, new_id, task_text
from lib.http import ask
from lib.server import Server, folder, on_postgres
from lib.tap import check, each, same, soon, test

COMPLETED, FAILED, ASKS = "TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_INPUT_REQUIRED"
TOOLS = [{"name": "get_weather", "description": "the weather of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]


def part_texts(m):
    return [p["text"] for p in m["parts"] if "text" in p]


# ---- text ----------------------------------------------------------------------------------------------------

@each("{}: the same text once through A2A, Chat, Responses, AG-UI and the AI SDK [R003-09 R003-17 R003-22 R003-27]",
      [("tokens of a model", "tokens", "Hello there friend"), ("a model's text in a new message", "rewrap", "Hello there friend"),
       ("calls and results of tools", "tools", "done"), ("only emitted chunks", "deltas", "only deltas"), ("a node that prints", "print", "quiet")])
def _(text, want):
    s = shared()
    for wire in (RPC1, RPC03):
        t = Client(s, wire).send(text).task
        same((t["status"]["state"], task_text(t), t.get("artifacts", [])), (COMPLETED, want, []), wire.name)
        same([part_texts(m) for m in t["history"]], [[text], [want]], "the history")
    for name, front in fronts.ALL.items():
        same(front(s, text).text, want, name)


@test("send returns the final task, stream each event, and a send that returns at once the working task [R003-01 R003-02 R003-03 R003-04 R003-20]")
def _():
    c = Client(shared(), RPC1)
    same(c.send("tokens").state, COMPLETED, "the state of send")
    with c.stream("tokens") as events:
        seen = events.rest()
    check(seen[0].kind == "task" and seen[-1].state == COMPLETED, seen)
    check(len([e for e in seen if e.kind == "artifactUpdate"]) >= 3, seen)
    t = c.send("sleep", config={"returnImmediately": True}).task
    same(t["status"]["state"], "TASK_STATE_WORKING", "the state")
    c.cancel(t["id"])


@test("chunks are the artifact aion:stream-delta: the first opens it, the last closes it once; it is not stored [R003-23 R003-24 R003-25 R003-26]")
def _():
    c = Client(shared(), RPC1)
    with c.stream("tokens") as events:
        chunks = [e.body for e in events.rest() if e.kind == "artifactUpdate"]
    same({(a["artifact"]["artifactId"], a["artifact"]["name"]) for a in chunks}, {("aion:stream-delta", "Stream Delta")}, "the artifact")
    same([bool(a.get("append")) for a in chunks], [False] + [True] * (len(chunks) - 1), "append")
    same([bool(a.get("lastChunk")) for a in chunks], [False] * (len(chunks) - 1) + [True], "lastChunk")
    same("".join(p["text"] for a in chunks for p in a["artifact"]["parts"]), "Hello there friend", "the text")
    same(c.get(chunks[0]["taskId"]).task.get("artifacts", []), [], "stored artifacts")


@test("two models at the same time: one after the other in the artifact, both in the texts [R003-27]")
def _():
    s = shared()
    with Client(s, RPC1).stream("parallel") as events:
        chunks = [e.body for e in events.rest() if e.kind == "artifactUpdate"]
    texts = []
    for a in chunks:
        if not a.get("append"):
            texts.append("")
        texts[-1] += "".join(p["text"] for p in a["artifact"]["parts"])
    same(sorted(texts), ["left one two", "right one two"], "the texts of the artifact")
    same(sorted(fronts.ag_ui(s, "parallel").text.split("\n\n")), ["left one two", "right one two"], "AG-UI")


@test("a conversation: the thread has the earlier messages; a second context does not")
def _():
    c = Client(shared(), RPC1)
    first = c.send("tokens").task
    second = c.send("transcript", context=first["contextId"]).task
    same(task_text(second), "human:tokens | ai:Hello there friend | human:transcript", "the transcript")
    same(task_text(c.send("transcript").task), "human:transcript", "another context")


@test("several text parts are one message, in order; a message without text adds none [R003-05]")
def _():
    c = Client(shared(), RPC1)
    t = c.send(m=message(parts=[{"text": "transcript "}, {"data": {"x": 1}}, {"text": "and more"}])).task
    same(task_text(t), "human:transcript and more", "the transcript")


@test("a message id that was ingested before does not enter the transcript again [R003-07]")
def _():
    c = Client(shared(), RPC1)
    m = message("tokens", context=new_id("context"))
    first = c.send(m=m).task
    same(c.send(m=m).task["id"], first["id"], "the task of the second send")
    t = c.send("transcript", context=m["contextId"]).task
    same(task_text(t), "human:tokens | ai:Hello there friend | human:transcript", "the transcript")


# ---- events and boxes --------------------------------------------------------------------------------------------

@test("the usage example: a file, data, a message and metadata [R003-28 R003-32 R003-34 R003-35 R003-36 R003-37 R003-39]")
def _():
    t = Client(shared(), RPC1).send("example").task
    same([(a["name"], a["parts"]) for a in t["artifacts"]],
         [("file", [{"url": "https://example.com/report.pdf", "mediaType": "application/pdf"}]),
          ("analysis", [{"data": {"status": "success", "results": [1, 2]}}])], "the artifacts")
    same((t["metadata"].get("progress"), t["status"]["state"]), (100, COMPLETED), "metadata and state")
    same([part_texts(m) for m in t["history"]].count(["Processing complete"]), 1, "the message in the history")
    for name in ("ag-ui", "ai-sdk"):
        same(fronts.ALL[name](shared(), "example").text, "Processing complete", name)


@test("every emit function, inbox and outbox: chunks of a file join, protected keys are dropped, the outbox is the answer [R003-06 R003-10 R003-11 R003-12 R003-13 R003-18 R003-29 R003-33 R003-38]")
def _():
    s = shared()
    c = Client(s, RPC1)
    m = message("everything", parts=[{"text": "everything"}, {"data": {"x": 1}}])
    t = c.send(m=m).task
    answer = t["status"]["message"]
    same(answer["parts"], [{"text": "You sent 2 part(s)"}, {"data": {"answer": 42}}], "the answer")
    same((answer["messageId"], answer["taskId"], answer["contextId"]), ("outbox-" + m["messageId"], t["id"], t["contextId"]), "its ids")
    same(t["history"][-1], answer, "the last of the history")
    check("aion:network" not in t["metadata"], t["metadata"])
    files = {a["name"]: a["parts"] for a in t["artifacts"]}
    same(base64.b64decode("".join(p["raw"] for p in files["hello.txt"])), b"Hello", "the file")
    same(files["numbers"], [{"data": [1, 2]}], "the data")
    same(len([m for m in t["history"] if "thinking" in "".join(part_texts(m))]), 0, "chunks in the history")
    for name in ("ag-ui", "ai-sdk"):
        same(fronts.ALL[name](s, "everything").text, 'You sent 1 part(s)\n{"answer": 42}', name)


@test("an author's own custom event is CUSTOM in AG-UI and a data part in the AI SDK")
def _():
    s = shared()
    own = [f.json for f in fronts.ag_ui(s, "everything").frames if f.json["type"] == "CUSTOM" and "own" in json.dumps(f.json)]
    same(len(own), 1, "CUSTOM events")
    parts = [f.json for f in fronts.ai_sdk(s, "everything").frames[:-1] if f.json["type"].startswith("data-") and '"own"' in json.dumps(f.json)]
    same(len(parts), 1, "data parts")


@test("an outbox Task is a patch: history and artifacts extend, metadata merges, ids and protected keys are the server's [R003-11 R003-12 R003-14 R003-15]")
def _():
    t = Client(shared(), RPC1).send("patch", metadata={"note": 1}).task
    check(t["id"] != "not mine" and t["contextId"] != "neither", t)
    same([part_texts(m) for m in t["history"]], [["patch"], ["first step"]], "the history")
    same(([a["artifactId"] for a in t["artifacts"]], t["metadata"].get("cost"), t["metadata"].get("aion:network")), (["table"], 3, None), "the patch")


@test("the answer of an outbox is in state.messages of the next turn, once [R003-16]")
def _():
    c = Client(shared(), RPC1)
    first = c.send("everything").task
    t = c.send("transcript", context=first["contextId"]).task
    same(task_text(t).count("ai:You sent 1 part(s)"), 1, "the text in " + task_text(t))


# ---- questions -----------------------------------------------------------------------------------------------------

@test("an interrupt is input-required; the answer on the task, or only in its context, goes on [R003-06]")
def _():
    c = Client(shared(), RPC1)
    for how in ("task", "context"):
        t = c.send("city").task
        same((t["status"]["state"], part_texts(t["status"]["message"])[0]), (ASKS, "Which city?"), "the question")
        given = {"task": t["id"], "context": t["contextId"]} if how == "task" else {"context": t["contextId"]}
        done = c.send("Bern", **given).task
        same((done["id"], done["status"]["state"], task_text(done)), (t["id"], COMPLETED, "Going to Bern, Bern"), how)


@test("two questions of one node, one after the other")
def _():
    c = Client(shared(), RPC1)
    t = c.send("two").task
    for text, state in (("red", ASKS), ("blue", COMPLETED)):
        t = c.send(text, task=t["id"], context=t["contextId"]).task
        same(t["status"]["state"], state, "the state")
    same(task_text(t), "red and blue", "the answer")


@test("an interrupt with a2a_state auth-required")
def _():
    c = Client(shared(), RPC1)
    t = c.send("login").task
    same(t["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "the state")
    same(task_text(c.send("done", task=t["id"], context=t["contextId"]).task), "Logged in", "the answer")


@test("a tool of the caller, through Chat: the call, then its result")
def _():
    s = shared()
    tools = [{"type": "function", "function": t} for t in TOOLS]
    asked = [{"role": "user", "content": "weather"}]
    r = fronts.chat(s, None, messages=asked, tools=tools)
    same(r.end, "tool_calls", "finish_reason")
    call = r.body["choices"][0]["message"]["tool_calls"][0]
    same((call["function"]["name"], json.loads(call["function"]["arguments"])), ("get_weather", {"city": "Bern"}), "the call")
    messages = asked + [r.body["choices"][0]["message"], {"role": "tool", "tool_call_id": call["id"], "content": "sunny"}]
    same(fronts.chat(s, None, messages=messages, tools=tools).text, "The tool says sunny", "the answer")


# ---- trouble -------------------------------------------------------------------------------------------------------

@test("an exception: the task failed, the caller does not see its text, the log has it with the traceback")
def _():
    s = shared()
    t = Client(s, RPC1).send("fail").task
    same(t["status"]["state"], FAILED, "the state")
    check("secret" not in json.dumps(t), t)
    soon(lambda: any("secret detail" in line for line in s.log), "the exception is not in the log")


@test("TaskRejected: the task is rejected, with the author's text")
def _():
    t = Client(shared(), RPC1).send("reject").task
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_REJECTED", "not my job"), "the task")


@test("an event over the line limit fails its task with the reason; the worker goes on")
def _():
    c = Client(shared(), RPC1)
    t = c.send("large").task
    same(t["status"]["state"], FAILED, "the state")
    check("too large" in task_text(t), t)
    same(c.send("tokens").state, COMPLETED, "the next")


@test("a node that uses the CPU: other runs of the worker go on")
def _():
    c = Client(shared(), RPC1)
    t = c.send("burn", config={"returnImmediately": True}).task
    same(c.send("tokens").state, COMPLETED, "another run")
    soon(lambda: c.get(t["id"]).state == COMPLETED, "it does not end")


@test("what a node prints is in the log, with the agent and the task of its run")
def _():
    s = shared()
    t = Client(s, RPC1).send("print").task
    for text in ("printed by a node", "logged by a node", "to stderr"):
        soon(lambda: any("agent=demo" in line and f"task={t['id']}" in line and text in line for line in s.log), "not in the log: " + text)


@test("a graph that does not end: the task fails at recursion_limit, and its text says why")
def _():
    t = Client(shared(), RPC1).send("loop").task
    same(t["status"]["state"], FAILED, "the state")
    check("recursion_limit" in task_text(t), t)


@test("a state of 9 MiB is stored in parts, and read again in the next turn")
def _():
    c = Client(shared(), RPC1)
    first = c.send("state").task
    same(first["status"]["state"], COMPLETED, "the state")
    second = c.send("length", context=first["contextId"]).task
    same(task_text(second), f"length {9 << 20}", "the second turn")


@test("two messages in one context at the same time run one after the other, and both are in the transcript")
def _():
    c, context = Client(shared(), RPC1), new_id("context")
    a, b = (c.send(m=message("short", context=context), config={"returnImmediately": True}).task for _ in range(2))
    for t in (a, b):
        soon(lambda: c.get(t["id"]).state == COMPLETED, "it does not end")
    same(task_text(c.send("transcript", context=context).task).count("human:short"), 2, "messages")


@test("a message that is sent again while it runs is the same task [R003-07]")
def _():
    c = Client(shared(), RPC1)
    m = message("short", context=new_id("context"))
    first = c.send(m=m, config={"returnImmediately": True}).task
    again = c.send(m=m).task
    same((again["id"], again["status"]["state"]), (first["id"], COMPLETED), "the task")
    same(task_text(c.send("transcript", context=m["contextId"]).task).count("human:"), 2, "messages")


@test("a run is canceled")
def _():
    c = Client(shared(), RPC1)
    with c.stream("sleep") as events:
        events.until("WORKING")
        same(c.cancel(events.seen[0].body["id"]).state, "TASK_STATE_CANCELED", "the state")
    same(c.send("tokens").state, COMPLETED, "the next")


@test("200 runs at the same time, each with its answer", timeout=300)
def _():
    async def one(loop, s):
        return await loop.run_in_executor(None, lambda: Client(s, RPC1).send("tokens", wait=250).task)

    async def many(s):
        import concurrent.futures
        loop = asyncio.get_running_loop()
        loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(200))
        return await asyncio.gather(*(one(loop, s) for _ in range(200)))
    tasks = asyncio.run(many(shared()))
    same({(t["status"]["state"], task_text(t)) for t in tasks}, {(COMPLETED, "Hello there friend")}, "the answers")


# ---- a2a-sdk -----------------------------------------------------------------------------------------------------------

async def sdk(url, *texts):
    """The texts as turns of one conversation: events of a stream and the task of a send for each."""
    import httpx
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types import a2a_pb2 as pb
    from google.protobuf.json_format import MessageToDict, ParseDict
    out = []
    async with httpx.AsyncClient(timeout=60) as http:
        for streaming in (True, False):
            client = await ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create_from_url(url)
            for text in texts:
                request = ParseDict({"message": message(text)}, pb.SendMessageRequest())
                out.append([MessageToDict(e) async for e in client.send_message(request)])
    return out


@test("a2a-sdk, streaming and not: text, the usage example, the outbox, a question [R003-04 R003-20 R003-39]")
def _():
    texts = ("tokens", "example", "everything", "city")
    found = asyncio.run(sdk(shared().url, *texts))
    for text, events in zip(texts, found):
        check(all(len(e) == 1 and next(iter(e)) in ("task", "statusUpdate", "artifactUpdate") for e in events), events)
        last = events[-1]["statusUpdate"]["status"]
        same(last["state"], ASKS if text == "city" else COMPLETED, text)
    names = {e["artifactUpdate"]["artifact"]["name"] for e in found[1] if "artifactUpdate" in e}
    same(names, {"file", "analysis"}, "artifacts of the example")
    for text, (answer,) in zip(texts, found[4:]):
        t = answer["task"]
        same(t["status"]["state"], ASKS if text == "city" else COMPLETED, text)
    same([a["name"] for a in found[5][0]["task"]["artifacts"]], ["file", "analysis"], "artifacts of the sent example")


# ---- LangGraph's conformance tests against the server's store --------------------------------------------------------------

@each("conformance of the checkpointer with the store {}", ["memory", "sqlite", "postgres"], timeout=900)
def _(store):
    url = {"memory": lambda: "memory:", "sqlite": lambda: f"sqlite:{folder()}/store.db", "postgres": lambda: on_postgres("memory:")}[store]()
    s = common.own(store=url, graph="conformance")
    try:
        t = Client(s, RPC1).send("go", wait=250).task
        report = json.loads(task_text(t))
        same(report["failures"], [], "failures")
        same(sorted(report["passed"]), sorted(report["all"]), "capabilities")
        same(len(report["all"]), 8, "base and extended capabilities")
        check(report["tests"] > 60 and not report["skipped"], report)
        same(s.stop(), 0, "the server's status")
    finally:
        s.__exit__()


# ---- projects --------------------------------------------------------------------------------------------------------------

def project(name, file="langgraph.json"):
    """A copy of a project that has its own environment, served by its file alone."""
    copied = os.path.join(folder(), name)
    shutil.copytree(os.path.join(common.TREE, "examples", "langgraph") if name == "example" else os.path.join(common.FOLDER, "projects", name), copied)
    os.symlink(os.path.join(common.FOLDER, ".venv-langgraph"), os.path.join(copied, ".venv"))
    return Server(None, args=["--langgraph", os.path.join(copied, file)])


@each("serve --langgraph {}", [("langgraph.json: the project's .venv and .env, and the card", "described", "langgraph.json", "good morning described: hi", "Answers with a greeting"),
                               ("aion.yaml", "aion", "aion.yaml", "aion: hi", "Helps"),
                               ("the example", "example", "langgraph.json", "You asked: hi The best month for Lisbon is May.", "Advises on travel and books flights"),
                               ("a graph with a checkpointer of its own", "own_checkpointer", "langgraph.json", "own_checkpointer: hi", None)])
def _(name, file, want, about):
    with project(name, file) as s:
        same(task_text(Client(s, RPC1).send("hi").task), want, "the answer")
        card = ask(s.address, "GET", "/.well-known/agent-card.json").json
        check(not about or card["description"] == about, card)
        s.stop_well()


@test("missing packages: the request fails, the log names them and the interpreter")
def _():
    with project("missing") as s:
        t = Client(s, RPC1).send("hi").task
        same(t["status"]["state"], FAILED, "the state")
        soon(lambda: any("missing packages another_missing_one, package_that_is_missing" in line and ".venv/bin/python" in line for line in s.log), "the log has\n" + "\n".join(s.log[-10:]))


if __name__ == "__main__":
    common.main()
