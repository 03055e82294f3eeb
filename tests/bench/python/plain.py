"""The same work in plain Python, as one would write it who has only the json module: honest, not slow on purpose.

It does what dragoman does to well-formed messages and nothing of what it does beside: no checks, no pointers in errors,
no unknown members.
"""
import json


def dumps(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- a2a-0.3 -> a2a-1.0 ----------------------------------------------------------------------------

ROLES = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}


def part_10(part):
    kind = part["kind"]
    if kind == "text":
        out = {"text": part["text"]}
    elif kind == "data":
        out = {"data": part["data"]}
    else:
        file = part["file"]
        out = {"raw": file["bytes"]} if "bytes" in file else {"url": file["uri"]}
        if "mimeType" in file:
            out["mediaType"] = file["mimeType"]
        if "name" in file:
            out["filename"] = file["name"]
    if "metadata" in part:
        out["metadata"] = part["metadata"]
    return out


def message_10(message):
    out = {"messageId": message["messageId"]}
    for name in ("contextId", "taskId"):
        if name in message:
            out[name] = message[name]
    out["role"] = ROLES[message["role"]]
    out["parts"] = [part_10(p) for p in message["parts"]]
    if "metadata" in message:
        out["metadata"] = message["metadata"]
    return out


def to_10(text):
    return dumps([message_10(m) for m in json.loads(text)])


# ---- a2a-0.3 -> openai-chat ------------------------------------------------------------------------

def text_of(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def message_to_openai(message):
    """Document 001's function."""
    texts, calls, tools = [], [], []
    for part in message["parts"]:
        if part["kind"] == "text":
            texts.append(part["text"])
        elif part["kind"] == "data":
            data = part["data"]
            for call in data.get("tool_calls", ()):
                calls.append({"id": call["call_id"], "type": "function",
                              "function": {"name": call["name"], "arguments": text_of(call["arguments"])}})
            for result in data.get("tool_results", ()):
                tools.append({"role": "tool", "tool_call_id": result["call_id"], "content": text_of(result["output"])})
    if not texts and not calls:
        return None, tools
    chat = {"role": "user" if message["role"] == "user" else "assistant", "content": "".join(texts)}
    if calls:
        chat["tool_calls"] = calls
    return chat, tools


def to_chat(text):
    out = []
    for message in json.loads(text):
        chat, tools = message_to_openai(message)
        out += tools
        if chat:
            out.append(chat)
    return dumps(out)


# ---- events ----------------------------------------------------------------------------------------

def message_to_event(message):
    """Document 000's first function, for messages."""
    events = []
    chat, tools = message_to_openai(message)
    for part in message["parts"]:
        for call in part["data"].get("tool_calls", ()) if part["kind"] == "data" else ():
            events.append({"type": "tool-call-start", "toolCall": {
                "id": call["call_id"], "name": call["name"], "arguments": call["arguments"]}})
    if chat and chat["content"]:
        role = chat["role"]
        event = {"type": "text-message-content" if role == "user" else "text-message-end"}
        if role != "user":
            event["messageId"] = message["messageId"]
        event["message"] = {"role": role, "content": chat["content"]}
        events.insert(0, event)
    events += [{"type": "tool-call-result", "toolCallId": t["tool_call_id"], "result": t["content"]} for t in tools]
    return events[0] if len(events) == 1 else events or None
