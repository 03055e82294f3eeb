"""The recorded streams of ../shared/streams behind an agent of `type: llm`: a server replays each of them, and A2A, Chat,
Responses and AG-UI clients read exactly its text, reasoning, calls and errors. The tools are the clients' own; in one more run
the agent runs them. Skipped where the folder does not exist."""
import json
import os
import sys
import threading
import zipfile

from common import main
from lib import fronts, models
from lib.a2a import RPC1, Client, artifact_texts, message, task_text
from lib.http import ask
from lib.server import ROOT, agent, server, settings
from lib.tap import check, each, same

FOLDER = os.path.join(ROOT, "..", "shared", "streams")


def manifest():
    with open(os.path.join(FOLDER, "manifest.json"), encoding="utf-8") as f:
        return json.load(f)


def sse(text):
    """Chunk files have one JSON value per line; others are the SSE body."""
    lines = [line for line in text.split("\n") if line.strip()]
    if all(line.startswith("{") for line in lines):
        text = "".join(f"data: {line}\n\n" for line in lines) + "data: [DONE]\n\n"
    return text.encode()


def pieces_of(data):
    """Sizes that cut frames, lines and characters."""
    size = max(7, len(data) // 200)
    return [data[i:i + size] for i in range(0, len(data), size)]


class Replay:
    """The name of the model is the name of the stream. Each task reads the files of its stream in order, then our own text."""

    def __init__(self, streams, own):
        archive = zipfile.ZipFile(os.path.join(FOLDER, "streams.zip"))
        self.bodies = {s["name"]: [sse(archive.read(f).decode()) for f in s["files"]] for s in streams}
        self.apis, self.own = {s["name"]: s["api"] for s in streams}, own
        self.steps, self.requests, self.lock = {}, {}, threading.Lock()
        self.up = models.Upstream(self.answer)
        self.url = self.up.url

    def answer(self, body, n):
        task, name = self.up.requests[n][1]["X-Dragoman-Task"], body["model"]
        with self.lock:
            step = self.steps[task] = self.steps.get(task, -1) + 1
            self.requests.setdefault(task, []).append(body)
        if step < len(self.bodies[name]):
            return models.Answer(pieces_of(self.bodies[name][step]))
        return models.text(self.own) if self.apis[name] == "chat" else models.responses_text(self.own)


def names_of(stream):
    return sorted({c["name"] for calls in stream["calls"] for c in calls})


def functions(stream):
    return [{"name": n, "description": "a tool", "parameters": {"type": "object"}} for n in names_of(stream)]


def llm(stream, id, **more):
    return agent("llm", id=id, settings={"base_url": REPLAY.url, "api": stream["api"], "model": stream["name"], "retries": 0, **more})


def cat(name):
    return {"exec": {"name": name, "command": ["cat"], "description": "returns its arguments", "parameters": {"type": "object"}}}


def serve():
    rows = [llm(s, s["name"]) for s in STREAMS]
    rows += [llm(s, s["name"] + ".own", tools=[cat(n) for n in names_of(s)]) for s in STREAMS if s["calls"]]
    return server(None, config=settings(agents=rows))


# ---- one answer per model call: its text, its reasoning, its calls [(id, name, arguments)] and its error ---------------------

class Answer:
    def __init__(self, text="", reasoning="", calls=(), error=None, usage=None):
        self.text, self.reasoning, self.calls, self.error, self.usage = text, reasoning, list(calls), error, usage


def output_of(stream, call):
    return f"result of {call[0]}"


def records(s, task):
    body = ask(s.address, "GET", f"/debug/tasks/{task}/records").body.decode()
    return [json.loads(line)["record"] for line in body.splitlines()]


def a2a(s, stream):
    """The artifacts are those of the task: one per model call that has text. A2A shows no reasoning: the records have it."""
    c = Client(s, RPC1, base=f"/agents/{stream['name']}")
    parts, task, answers = [{"text": "go"}, {"data": {"tools": functions(stream)}}], None, []
    while True:
        with c.stream(m=message(parts=parts, task=task)) as events:
            seen = events.rest()
        task = task or seen[0].body["id"]
        status = seen[-1].body["status"]
        calls = [(x["call_id"], x["name"], x["arguments"]) for p in status.get("message", {}).get("parts", [])
                 for x in p.get("data", {}).get("tool_calls", [])]
        answers.append(Answer(streamed_text(seen), calls=calls))
        if not calls:
            break
        parts = [{"data": {"tool_results": [{"call_id": x[0], "output": output_of(stream, x)} for x in calls]}}]
    whole = c.get(task).task
    same(artifact_texts(whole), [a.text for a in answers if a.text], "the artifacts of the task")
    if whole["status"]["state"] == "TASK_STATE_FAILED":
        same(task_text(whole), whole["metadata"]["error"], "the message of the error")
        answers[-1].error = whole["metadata"]["error"]
    else:
        same(whole["status"]["state"], "TASK_STATE_COMPLETED", whole["status"])
    check("internal:" not in json.dumps(whole), "an internal event")
    found = [r for r in records(s, task) if r.get("kind") == "internal:reasoning"]
    answers[0].reasoning = joined_reasoning(found)
    return answers


def streamed_text(events):
    text = ""
    for e in events:
        if e.kind == "artifactUpdate":
            text = (text if e.body.get("append") else "") + "".join(p.get("text", "") for p in e.body["artifact"]["parts"])
    return text


def joined_reasoning(found):
    """Pieces of one model call follow each other; another call is another paragraph."""
    texts = {}
    for r in found:
        key = r.get("id") or r.get("messageId")
        texts[key] = texts.get(key, "") + r["text"]
    return "\n\n".join(texts.values())


def chat(s, stream):
    messages, answers = [{"role": "user", "content": "go " + stream["name"]}], []
    tools = {"tools": [{"type": "function", "function": f} for f in functions(stream)]} if stream["calls"] else {}
    while True:
        body = {"model": stream["name"], "messages": messages, "stream": True, "stream_options": {"include_usage": True}, **tools}
        with fronts.stream(s, "/v1/chat/completions", body) as live:
            told = fronts.fold_chat(live.rest())
        a = Answer(told.text)
        calls = {}
        for f in told.frames[:-1]:
            a.error = f.json.get("error", {}).get("message", a.error)
            a.usage = f.json.get("usage") or a.usage
            for choice in f.json.get("choices", []):
                a.reasoning += choice["delta"].get("reasoning_content") or ""
                for x in choice["delta"].get("tool_calls", []):
                    call = calls.setdefault(x["index"], {"id": x.get("id"), "name": x["function"].get("name"), "arguments": ""})
                    call["arguments"] += x["function"].get("arguments", "")
        a.calls = [(x["id"], x["name"], json.loads(x["arguments"])) for x in calls.values()]
        answers.append(a)
        if not calls:
            return answers
        same(told.end, "tool_calls", "finish_reason")
        messages = messages + [{"role": "assistant", "content": a.text or None, "tool_calls": [
            {"id": x["id"], "type": "function", "function": {"name": x["name"], "arguments": x["arguments"]}} for x in calls.values()]}]
        messages += [{"role": "tool", "tool_call_id": x[0], "content": output_of(stream, x)} for x in a.calls]


def responses(s, stream):
    body, answers = {"model": stream["name"], "input": "go", "stream": True}, []
    body["tools"] = [{"type": "function", "strict": False, **f} for f in functions(stream)]
    while True:
        with fronts.stream(s, "/v1/responses", body) as live:
            told = fronts.fold_responses(live.rest())
        items = told.body["output"]
        deltas = "".join(f.json["delta"] for f in told.frames if f.event == "response.output_text.delta")
        a = Answer(told.text, usage=told.body["usage"], error=(told.body["error"] or {}).get("message"))
        same(deltas, a.text, "the streamed text")
        thoughts = [p["text"] for i in items if i["type"] == "reasoning" for p in i["summary"]]
        a.reasoning = "\n\n".join(x for x in thoughts if x != a.error)  # an error before any output is shown there, too
        a.calls = [(i["call_id"], i["name"], json.loads(i["arguments"])) for i in items if i["type"] == "function_call"]
        answers.append(a)
        if not a.calls:
            return answers
        body = {**body, "previous_response_id": told.body["id"],
                "input": [{"type": "function_call_output", "call_id": x[0], "output": output_of(stream, x)} for x in a.calls]}


def ag_ui(s, stream):
    said, answers, thread = [{"id": "u1", "role": "user", "content": "go"}], [], "thread-" + stream["name"]
    while True:
        run = fronts.run_input(thread=thread, messages=said, tools=functions(stream))
        with fronts.stream(s, f"/agents/{stream['name']}/ag-ui", run) as live:
            frames = live.rest()
        a, calls, ids = Answer(), {}, []
        for e in (f.json for f in frames):
            if e["type"] == "TEXT_MESSAGE_CONTENT":
                a.text += e["delta"]
                ids.append(e["messageId"])
            elif e["type"] == "REASONING_MESSAGE_CONTENT":
                a.reasoning += e["delta"]
            elif e["type"] == "TOOL_CALL_START":
                calls[e["toolCallId"]] = [e["toolCallName"], ""]
            elif e["type"] == "TOOL_CALL_ARGS":
                calls[e["toolCallId"]][1] += e["delta"]
            elif e["type"] == "RUN_ERROR":
                a.error = e["message"]
        same(len(set(ids)), 1 if a.text else 0, "messages with text")
        a.calls = [(id, name, json.loads(text)) for id, (name, text) in calls.items()]
        a.usage = frames[-1].json.get("usage")
        answers.append(a)
        if not a.calls:
            return answers
        turn = len(answers)
        said = said + [{"id": f"a{turn}", "role": "assistant", "content": a.text, "toolCalls": [
            {"id": id, "type": "function", "function": {"name": name, "arguments": text}} for id, (name, text) in calls.items()]}]
        said += [{"id": f"r{turn}-{x[0]}", "role": "tool", "toolCallId": x[0], "content": output_of(stream, x)} for x in a.calls]


# ---- comparison --------------------------------------------------------------------------------------------------------------

def wanted_calls(calls):
    """Calls that came in one wrapped call have its id in the manifest, and ids of their own here."""
    ids = [c["id"] for c in calls]
    own = [id if ids.index(id) == i else f"{id}-{i + 1}" for i, id in enumerate(ids)]
    return [(id, c["name"], c["args"] if "args" in c else {"input": c["input"]}) for id, c in zip(own, calls)]


def compare(stream, answers):
    same([a.text for a in answers if a.text], stream["pieces"], "the text")
    same("\n\n".join(a.reasoning for a in answers if a.reasoning), stream["reasoning"], "the reasoning")
    for i, a in enumerate(answers):
        same(a.calls, wanted_calls(stream["calls"][i]) if i < len(stream["calls"]) else [], f"the calls of answer {i}")
    same(len(answers), len(stream["calls"]) + 1, "the number of answers")
    same(bool(answers[-1].error), bool(stream["error"]), f"an error ({answers[-1].error})")
    check(not stream["error"] or stream["error"] in answers[-1].error, answers[-1].error)


PROTOCOLS = {"A2A": a2a, "Chat": chat, "Responses": responses, "AG-UI": ag_ui}


def define():
    @each("recorded stream {}", [(f"{s['name']} through {p}: {s['quirk']}", s, p) for s in STREAMS for p in PROTOCOLS])
    def _(stream, protocol):
        compare(stream, PROTOCOLS[protocol](serve(), stream))

    @each("recorded stream {}: the agent runs the tools", [(s["name"], s) for s in STREAMS if s["calls"]])
    def _(stream):
        t = Client(serve(), RPC1, base=f"/agents/{stream['name']}.own").send("go").task
        same((t["status"]["state"], artifact_texts(t)), ("TASK_STATE_COMPLETED", stream["pieces"]), "the end")
        data = [p["data"] for m in t["history"] for p in m["parts"] if "data" in p]
        want = [c for calls in stream["calls"] for c in wanted_calls(calls)]
        same([(c["call_id"], c["name"], c["arguments"]) for d in data for c in d.get("tool_calls", [])], want, "the calls")
        same(sorted((r["call_id"], json.dumps(r["output"])) for d in data for r in d.get("tool_results", [])),
             sorted((id, json.dumps(arguments)) for id, _, arguments in want), "the results")


if not os.path.exists(os.path.join(FOLDER, "manifest.json")):
    print("ok 1 - recorded streams # SKIP ../shared/streams does not exist\n1..1")
    sys.exit(0)
STREAMS = [s for s in manifest()["streams"] if not sys.argv[1:] or any(w in s["name"] for w in sys.argv[1:])]
REPLAY = Replay(STREAMS, manifest()["own"])
define()
main()
