#!/usr/bin/env python3
"""An exec agent that asks its caller as the agent loop does: approvals, questions, sign-in, tools of the caller."""
import json
import sys

YES = ("yes", "y", "approve", "approved", "allow")
NO = ("no", "n", "reject", "rejected", "deny", "denied", "decline", "declined")


def emit(value):
    print(json.dumps(value), flush=True)


def status(state, parts=None, metadata=None):
    update = {"status": {"state": "TASK_STATE_" + state}}
    if parts:
        update["status"]["message"] = {"role": "ROLE_AGENT", "parts": parts}
    if metadata:
        update["metadata"] = metadata
    emit({"statusUpdate": update})


def text(words):
    return {"text": words}


def data(value):
    return {"data": value}


def answer(words):
    emit({"artifactUpdate": {"artifact": {"artifactId": "answer", "parts": [text(words)]}, "lastChunk": True}})


def ask_approvals(names, say, again=False):
    names = [(i, n) for i, n in names]
    words = ("The answer was not understood. " if again else "") + "May I delete " + " and ".join(n for _, n in names) + "? Answer yes or no."
    requests = [data({"type": "approval-request", "id": i, "tool": "delete", "arguments": {"path": n}}) for i, n in names]
    status("INPUT_REQUIRED", ([text(words)] if say else []) + requests)


def decision(message, id):
    """(approved, arguments, reason); approved is None: not decided."""
    answers = [p["data"] for p in message["parts"] if isinstance(p.get("data"), dict) and p["data"].get("type") == "approval"]
    for d in answers:
        if d.get("id") == id:
            return d["approved"], d.get("arguments"), d.get("reason")
    for d in answers:
        if "id" not in d:
            return d["approved"], d.get("arguments"), d.get("reason")
    if answers:
        return None, None, None
    word = "".join(p.get("text", "") for p in message["parts"]).strip().rstrip(".!").lower()
    return (True if word in YES else False if word in NO else None), None, None


def decide(message, requests):
    done, left = [], []
    for r in requests:
        approved, arguments, reason = decision(message, r["id"])
        path = (arguments or r["arguments"])["path"]
        if approved is None:
            left.append((r["id"], r["arguments"]["path"]))
            continue
        if approved:
            emit({"kind": "internal:tool-start", "toolCallId": r["id"], "toolName": "delete", "arguments": {"path": path}})
            emit({"kind": "internal:tool-complete", "toolCallId": r["id"], "success": True, "result": "gone"})
        done.append(f"deleted {path}" if approved else f"kept {path}" + (f" ({reason})" if reason else ""))
    if left:
        ask_approvals(left, True, again=True)
    else:
        answer("; ".join(done))


def words_of(message):
    """The message without a transcript in front of it."""
    return "".join(p["text"] for p in message["parts"] if "text" in p and "dragoman:part" not in p.get("metadata", {})).strip()


def start(message, metadata):
    words = words_of(message)
    name, _, rest = words.partition(" ")
    if name in ("delete", "silent"):
        ask_approvals([(f"call-{i + 1}", n) for i, n in enumerate(rest.split())], name == "delete")
    elif name == "choose":
        status("INPUT_REQUIRED", [text("Which colour?\n- red\n- blue"), data({"type": "question", "text": "Which colour?", "choices": ["red", "blue"]})])
    elif name == "pick":
        status("INPUT_REQUIRED", [data({"type": "question", "text": "Which colour?", "choices": ["red", "blue"]})])
    elif name == "fill":
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        status("INPUT_REQUIRED", [text("How many?"), data({"type": "question", "text": "How many?", "schema": schema})])
    elif name == "sign":
        status("AUTH_REQUIRED", [data({"type": "auth-request", "url": "https://login.example/start", "reason": "Your calendar is needed."})])
    elif name == "length":
        answer("The answer is cut he")
        status("COMPLETED", [text("The answer is cut he")], {"finish_reason": "length"})
    elif name == "filtered":
        answer("Half of")
        status("COMPLETED", [text("Half of")], {"finish_reason": "content_filter"})
    elif name == "refuse":
        status("REJECTED", [text("I will not do that.")])
    elif name == "think":
        emit({"kind": "internal:reasoning", "text": "Let me think."})
        emit({"kind": "internal:tool-start", "toolCallId": "t1", "toolName": "look_up", "arguments": {"city": "Oslo"}})
        emit({"kind": "internal:tool-complete", "toolCallId": "t1", "success": True, "result": {"sky": "snow"}})
        emit({"kind": "internal:state", "value": {"city": "Oslo"}})
        emit({"kind": "internal:usage", "value": {"inputTokens": 7, "outputTokens": 5, "totalTokens": 12, "model": "m"}})
        answer("Snow.")
    elif name == "tools":
        answer(json.dumps((metadata or {}).get("dragoman:tools")))
    elif name == "call":
        status("INPUT_REQUIRED", [data({"tool_calls": [{"call_id": "c1", "name": "look_up", "arguments": {"city": "Oslo"}}]})])
    elif name == "metadata":
        answer(json.dumps(metadata))
    else:
        answer("You wrote: " + words)


def go_on(message, question):
    parts = [p["data"] for p in question["parts"] if isinstance(p.get("data"), dict)]
    requests = [d for d in parts if d.get("type") == "approval-request"]
    results = [r for p in message["parts"] if isinstance(p.get("data"), dict) for r in p["data"].get("tool_results", [])]
    if requests:
        decide(message, requests)
    elif results:
        answer("It says: " + json.dumps(results[0]["output"]))
    else:
        given = [p["data"] for p in message["parts"] if "data" in p]
        answer("You answered: " + (json.dumps(given[0]) if given else words_of(message)))


def main():
    line = json.loads(sys.stdin.readline())
    task = line["task"]
    question = None
    if task:
        spoken = [m for m in task.get("history", []) if m["role"] == "ROLE_AGENT"]
        question = task["status"].get("message") or (spoken[-1] if spoken else None)
    if question:
        go_on(line["message"], question)
    else:
        start(line["message"], line["metadata"])


main()
