"""The frontends besides A2A's, byte by byte: requests, and what their streams add up to."""
import json

from .a2a import new_id
from .http import Conn, Stream, ask
from .tap import check, same

JSON = [("Content-Type", "application/json")]


class Told:
    """What an answer came to."""

    def __init__(self, text, end, frames=(), headers=None, body=None):
        self.text, self.end, self.frames, self.headers, self.body = text, end, list(frames), headers, body


def post(server, path, body, headers=()):
    return ask(server.address, "POST", path, body, JSON + list(headers))


def stream(server, path, body, headers=(), method="POST"):
    conn = Conn(server.address)
    data = None if body is None else json.dumps(body).encode()
    conn.request(method, path, data, (JSON if data is not None else []) + list(headers))
    return Stream(conn, conn.head())


# ---- Chat Completions ------------------------------------------------------------------------------------

def chat_body(text, model="demo", messages=None, **more):
    return {"model": model, "messages": messages or [{"role": "user", "content": text}], **more}


def chat(server, text, headers=(), **more):
    r = post(server, "/v1/chat/completions", chat_body(text, **more), headers)
    if r.status != 200:
        return Told(None, r.json["error"]["code"], headers=r, body=r.json)
    choice = r.json["choices"][0]
    return Told(choice["message"]["content"] or choice["message"].get("refusal") or "", choice["finish_reason"], headers=r, body=r.json)


def fold_chat(frames):
    text, end = "", None
    check(frames[-1].data == "[DONE]", "no [DONE]")
    for f in frames[:-1]:
        if "error" in f.json:
            return Told(text, f.json["error"]["code"], frames)
        for choice in f.json["choices"]:
            check(end is None, "something behind the finish_reason")
            text += choice["delta"].get("content") or choice["delta"].get("refusal") or ""
            end = choice["finish_reason"]
    return Told(text, end, frames)


def chat_stream(server, text, headers=(), **more):
    with stream(server, "/v1/chat/completions", chat_body(text, stream=True, **more), headers) as s:
        return fold_chat(s.rest())


# ---- Responses -----------------------------------------------------------------------------------------------

def output_text(response):
    return "".join(p.get("text", p.get("refusal", "")) for item in response["output"] if item["type"] == "message" for p in item["content"])


def responses(server, input, headers=(), **more):
    r = post(server, "/v1/responses", {"model": "demo", "input": input, **more}, headers)
    if r.status == 424:
        return Told(None, r.json["error"]["code"], headers=r, body=r.json)
    check(r.status == 200, r)
    return Told(output_text(r.json), r.json["status"], headers=r, body=r.json)


def fold_responses(frames):
    last = None
    for i, f in enumerate(frames):
        if f.data == "[DONE]":
            continue
        same(f.json["sequence_number"], i, "sequence_number")
        same(f.event, f.json["type"], "the frame's name")
        last = f.json
    return Told(output_text(last["response"]), last["response"]["status"], frames, body=last["response"])


def responses_stream(server, input, headers=(), **more):
    with stream(server, "/v1/responses", {"model": "demo", "input": input, "stream": True, **more}, headers) as s:
        return fold_responses(s.rest())


# ---- AG-UI -----------------------------------------------------------------------------------------------------

def run_input(text=None, thread=None, run=None, messages=None, **more):
    said = [{"id": new_id("u"), "role": "user", "content": text}] if text is not None else []
    return {"threadId": thread or new_id("thread"), "runId": run or new_id("run"), "protocolVersion": "1.0", "state": {},
            "messages": said if messages is None else messages, "tools": [], "context": [], "forwardedProps": {}, **more}


def fold_ag_ui(frames):
    texts, end, order = {}, None, []
    for f in frames:
        e = f.json
        check(end is None, "something behind the end of the run")
        if e["type"] == "TEXT_MESSAGE_START":
            texts.setdefault(e["messageId"], "")
            if e["messageId"] not in order:
                order.append(e["messageId"])
        elif e["type"] == "TEXT_MESSAGE_CONTENT":
            texts[e["messageId"]] += e["delta"]
        elif e["type"] == "MESSAGES_SNAPSHOT":
            said = [m for m in e["messages"] if m["role"] == "assistant" and m.get("content")]
            texts, order = {m["id"]: m["content"] for m in said}, [m["id"] for m in said]
        elif e["type"] == "RUN_FINISHED":
            end = (e.get("outcome") or {"type": "success"})["type"]
        elif e["type"] == "RUN_ERROR":
            end = "error:" + e.get("code", "")
    check(frames[0].json["type"] == "RUN_STARTED", frames[0])
    return Told("\n\n".join(texts[i] for i in order if texts[i]), end, frames)


def ag_ui(server, text, **more):
    with stream(server, "/ag-ui", run_input(text, **more)) as s:
        return fold_ag_ui(s.rest())


# ---- the AI SDK --------------------------------------------------------------------------------------------------

def ui_body(text, chat_id=None, messages=None, **more):
    said = [{"id": new_id("u"), "role": "user", "parts": [{"type": "text", "text": text}]}]
    return {"id": chat_id or new_id("chat"), "messages": messages or said, "trigger": "submit-message", **more}


def fold_ui(frames):
    texts, order, end = {}, [], None
    check(frames[-1].data == "[DONE]", "no [DONE]")
    for f in frames[:-1]:
        c = f.json
        if c["type"] == "text-start":
            if "instead" in (c.get("providerMetadata") or {}).get("dragoman", {}):
                order.clear()
            texts[c["id"]] = ""
            order.append(c["id"])
        elif c["type"] == "text-delta":
            texts[c["id"]] += c["delta"]
        elif c["type"] == "finish":
            end = c.get("finishReason", "stop")
        elif c["type"] == "abort":
            end = "abort"
    return Told("\n\n".join(texts[i] for i in order if texts[i]), end, frames)


def ai_sdk(server, text, **more):
    with stream(server, "/ai-sdk", ui_body(text, **more)) as s:
        return fold_ui(s.rest())


ALL = {"chat": chat, "chat, streamed": chat_stream, "responses": responses, "responses, streamed": responses_stream,
       "ag-ui": ag_ui, "ai-sdk": ai_sdk}
