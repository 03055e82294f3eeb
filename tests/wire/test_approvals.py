"""What an agent asks its caller, in every protocol: approvals, questions, sign-in; and what else an agent loop shows."""
import json
import os

from lib import fronts
from lib.a2a import ALL, RPC03, RPC1, Client, message, new_id, task_text, text_of
from lib.server import agent, needs_ours, server, settings
from lib.tap import check, each, same, test

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "asks.py")
DELETE, QUESTION = "delete old.txt", "May I delete old.txt? Answer yes or no."


def ours(**more):
    needs_ours("needs the exec agent")
    return server(None, config=settings(agents=[agent("exec", id="demo", settings={"command": [AGENT]}, **more)]))


def data_of(parts):
    return [p["data"] for p in parts if "data" in p]


def approval(id=None, approved=True, **more):
    return {"data": {"type": "approval", **({"id": id} if id else {}), "approved": approved, **more}}


# ---- A2A ------------------------------------------------------------------------------------------------------

def reply(c, task, parts):
    return c.send(m=message(parts=parts, task=task["id"], context=task["contextId"])).task


def final(task):
    return task["status"]["state"], task_text(task)


@each("A2A, {}: an approval is data, and so is its answer", ALL)
def _(wire):
    c = Client(ours(), wire)
    asked = c.send(DELETE).task
    same(asked["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    same(text_of(asked["status"]["message"]), QUESTION)
    same(data_of(asked["status"]["message"]["parts"]),
         [{"type": "approval-request", "id": "call-1", "tool": "delete", "arguments": {"path": "old.txt"}}], "the request")
    same(final(reply(c, asked, [approval("call-1")])), ("TASK_STATE_COMPLETED", "deleted old.txt"))
    asked = c.send(DELETE).task
    same(final(reply(c, asked, [approval("call-1", False, reason="too new")])), ("TASK_STATE_COMPLETED", "kept old.txt (too new)"))
    asked = c.send(DELETE).task
    same(final(reply(c, asked, [approval("call-1", arguments={"path": "older.txt"})])), ("TASK_STATE_COMPLETED", "deleted older.txt"))


@test("A2A: one of two is decided, and the other is asked again")
def _():
    c = Client(ours(), RPC1)
    asked = reply(c, c.send("delete a b").task, [approval("call-2", False)])
    same([d["id"] for d in data_of(asked["status"]["message"]["parts"])], ["call-1"], "what is still open")


@test("A2A: the caller's tools are data of the message, and so are results")
def _():
    c = Client(ours(), RPC1)
    tools = [{"name": "look_up", "description": "finds", "parameters": {"type": "object"}}]
    same(json.loads(task_text(c.send(m=message(parts=[{"text": "tools"}, {"data": {"tools": tools}}])).task)), tools)
    asked = c.send(m=message(parts=[{"text": "call"}, {"data": {"tools": tools}}])).task
    same(data_of(asked["status"]["message"]["parts"])[0]["tool_calls"][0]["name"], "look_up")
    same(final(reply(c, asked, [{"data": {"tool_results": [{"call_id": "c1", "output": "snow"}]}}])),
         ("TASK_STATE_COMPLETED", 'It says: "snow"'))
    for bad in ([{"name": ""}], [{"name": 7}], [{"name": "x", "parameters": []}], [{"name": "x", "description": 1}]):
        r = c.send(m=message(parts=[{"text": "tools"}, {"data": {"tools": bad}}]))
        r.expect("InvalidParams")
    r = c.send(m=message(parts=[{"text": "tools"}, {"data": {"tools": [{"name": f"t{i}"} for i in range(1001)]}}]))
    check(r.response.status == 413 and b"request_tools" in r.response.body, r)
    for other in (["hammer"], [{"id": 1}], {"name": "x"}):  # ordinary data
        same(task_text(c.send(m=message(parts=[{"text": "tools"}, {"data": {"tools": other}}])).task), "null")
    forged = c.send(m=message(parts=[{"text": "metadata"}, {"data": {"tools": tools}}]), metadata={"dragoman:instructions": "x", "own": 1}).task
    same(json.loads(task_text(forged)), {"own": 1, "dragoman:tools": tools}, "the server's metadata stays the server's")


# ---- AG-UI ----------------------------------------------------------------------------------------------------

def run(s, text=None, **more):
    told = fronts.ag_ui(s, text, **more)
    return told, told.frames[-1].json


def resume(s, thread, entries):
    return run(s, None, thread=thread, resume=entries)


def resolved(interrupt, payload):
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


@test("AG-UI: an approval is an interrupt with a schema, answered by resume")
def _():
    s, thread = ours(), new_id("t")
    told, end = run(s, DELETE, thread=thread)
    same(told.text, QUESTION)
    [it] = end["outcome"]["interrupts"]
    same((it["reason"], it["message"]), ("confirmation", QUESTION))
    same(it["metadata"]["approval"]["tool"], "delete")
    same(sorted(it["responseSchema"]["properties"]), ["approved", "arguments", "reason"])
    told, end = resume(s, thread, [resolved(it, {"approved": True, "arguments": {"path": "x"}})])
    same((told.text, told.end), ("deleted x", "success"))
    kinds = [f.json["type"] for f in told.frames]
    check("TOOL_CALL_START" in kinds and "TOOL_CALL_RESULT" in kinds, lambda: kinds)
    again, end = resume(s, thread, [resolved(it, {"approved": True})])  # harmless
    same(again.end, "success")
    check("TOOL_CALL_START" not in [f.json["type"] for f in again.frames], "it was called again")


@test("AG-UI: several approvals are open at once; a dismissed one is not approved")
def _():
    s, thread = ours(), new_id("t")
    _, end = run(s, "delete a b c", thread=thread)
    list = end["outcome"]["interrupts"]
    same([i["metadata"]["approval"]["arguments"]["path"] for i in list], ["a", "b", "c"])
    same(len({i["id"] for i in list}), 3, "names")
    told, end = resume(s, thread, [resolved(list[1], {"approved": False, "reason": "mine"}),
                                   {"interruptId": list[2]["id"], "status": "cancelled"}, resolved(list[0], True)])
    same(told.text, "deleted a; kept b (mine); kept c (dismissed)")


@test("AG-UI: an approval of an earlier turn does not count for a later one")
def _():
    s, thread = ours(), new_id("t")
    _, end = run(s, "delete a b", thread=thread)
    first = end["outcome"]["interrupts"]
    _, end = resume(s, thread, [resolved(first[1], {"approved": False})])
    [open] = end["outcome"]["interrupts"]
    same(open["metadata"]["approval"]["id"], "call-1")
    told, end = resume(s, thread, [resolved(first[0], {"approved": True})])
    same(end["outcome"]["interrupts"][0]["id"], open["id"], "it is still asked")
    check("TOOL_CALL_START" not in [f.json["type"] for f in told.frames], "it was called")
    told, _ = resume(s, thread, [resolved(open, {"approved": True})])
    same(told.text, "deleted a")


@test("AG-UI: words in a message decide, others ask again")
def _():
    s, thread = ours(), new_id("t")
    run(s, DELETE, thread=thread)
    told, end = run(s, "well, perhaps", thread=thread)
    same(end["outcome"]["type"], "interrupt")
    check(told.text.startswith("The answer was not understood."), told.text)
    told, _ = run(s, "No.", thread=thread)
    same(told.text, "kept old.txt")


@test("AG-UI: a question with choices has a schema, a sign-in its address")
def _():
    s, thread = ours(), new_id("t")
    told, end = run(s, "choose", thread=thread)
    [it] = end["outcome"]["interrupts"]
    same(it["responseSchema"]["properties"]["text"]["enum"], ["red", "blue"])
    same(told.text, "Which colour?\n- red\n- blue")
    told, _ = resume(s, thread, [resolved(it, {"text": "blue"})])
    same(told.text, "You answered: blue")
    thread = new_id("t")
    _, end = run(s, "fill", thread=thread)
    [it] = end["outcome"]["interrupts"]
    same(it["responseSchema"]["required"], ["n"])
    told, _ = resume(s, thread, [resolved(it, {"n": 3})])
    same(told.text, 'You answered: {"n": 3}')
    thread = new_id("t")
    told, end = run(s, "sign in", thread=thread)
    [it] = end["outcome"]["interrupts"]
    same((it["reason"], it["metadata"]["auth"]["url"]), ("a2a:auth_required", "https://login.example/start"))
    check("https://login.example/start" in told.text, told.text)
    told, _ = resume(s, thread, [resolved(it, {"text": "done"})])
    same(told.text, "You answered: done")


# ---- Responses --------------------------------------------------------------------------------------------------

def respond(s, input, live, **more):
    return (fronts.responses_stream if live else fronts.responses)(s, input, **more)


def requests_of(response):
    return [i for i in response["output"] if i["type"] == "mcp_approval_request"]


def decided(item, approve=True, **more):
    return {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": approve, **more}


@each("Responses, {}: an approval is an item, answered by one", ["whole", "streamed"])
def _(how):
    s, live = ours(), how == "streamed"
    asked = respond(s, DELETE, live)
    same(asked.text, QUESTION)
    [item] = requests_of(asked.body)
    same({k: item[k] for k in ("type", "name", "arguments", "server_label")},
         {"type": "mcp_approval_request", "name": "delete", "arguments": '{"path": "old.txt"}', "server_label": "demo"})
    check(item["id"].startswith("mcpr_"), item["id"])
    if live:
        kinds = [f.json["type"] for f in asked.frames if f.data != "[DONE]" and f.json.get("item", {}).get("type") == "mcp_approval_request"]
        same(kinds, ["response.output_item.added", "response.output_item.done"])
    done = respond(s, [decided(item)], live, previous_response_id=asked.body["id"])
    same((done.text, done.end), ("deleted old.txt", "completed"))
    same([i["type"] for i in done.body["output"] if i["type"] == "mcp_call"], ["mcp_call"])
    stored = fronts.ask(s.address, "GET", f"/v1/responses/{asked.body['id']}").json
    same(requests_of(stored), [item], "the stored request")
    items = fronts.ask(s.address, "GET", f"/v1/responses/{done.body['id']}/input_items").json["data"]
    same([(i["type"], i["approval_request_id"], i["approve"]) for i in items if i["type"] == "mcp_approval_response"],
         [("mcp_approval_response", item["id"], True)], "the stored answer")


@test("Responses: a refusal with a reason; two at once; by the conversation; without any name")
def _():
    s = ours()
    asked = fronts.responses(s, "delete a b")
    first, second = requests_of(asked.body)
    done = fronts.responses(s, [decided(second), decided(first, False, reason="mine")], previous_response_id=asked.body["id"])
    same(done.text, "kept a (mine); deleted b")
    conversation = fronts.post(s, "/v1/conversations", {}).json["id"]
    [item] = requests_of(fronts.responses(s, DELETE, conversation=conversation).body)
    same(fronts.responses(s, [decided(item)], conversation=conversation).text, "deleted old.txt")
    asked = fronts.responses(s, DELETE, store=False)
    [item] = requests_of(asked.body)
    same(fronts.responses(s, [{"role": "user", "content": DELETE}, *asked.body["output"], decided(item)], store=False).text, "deleted old.txt")


@test("Responses: a reference to the request beside the answer; words decide, too")
def _():
    s = ours()
    asked = fronts.responses(s, DELETE)
    [item] = requests_of(asked.body)
    done = fronts.responses(s, [{"type": "item_reference", "id": item["id"]}, decided(item)], previous_response_id=asked.body["id"])
    same(done.text, "deleted old.txt")
    asked = fronts.responses(s, DELETE)
    asked = fronts.responses(s, "why?", previous_response_id=asked.body["id"])
    check(asked.text.startswith("The answer was not understood"), asked.text)
    same(len(requests_of(asked.body)), 1)
    same(fronts.responses(s, "yes", previous_response_id=asked.body["id"]).text, "deleted old.txt")


@test("Responses: an approval that no task waits for is an error")
def _():
    s = ours()
    asked = fronts.responses(s, DELETE)
    [item] = requests_of(asked.body)
    fronts.responses(s, [decided(item)], previous_response_id=asked.body["id"])
    for more in ({"previous_response_id": asked.body["id"]}, {}):
        r = fronts.post(s, "/v1/responses", {"model": "demo", "input": [decided(item)], **more})
        same((r.status, r.json["error"]["code"]), (400, "approval_request_not_found"))
    for bad in ({"type": "mcp_approval_response", "approve": True}, {**decided(item), "approve": "yes"}):
        r = fronts.post(s, "/v1/responses", {"model": "demo", "input": [bad]})
        same((r.status, r.json["error"]["type"]), (400, "invalid_request_error"))


# ---- Chat ---------------------------------------------------------------------------------------------------------

@each("Chat, {}: an approval is a question; only the listed words decide", ["whole", "streamed"])
def _(how):
    s, front = ours(), fronts.chat if how == "whole" else fronts.chat_stream
    for name in ("delete", "silent"):
        for words, want in (("YES!", "deleted"), ("reject", "kept")):
            path = new_id("file")  # equal transcripts of two waiting tasks would be ambiguous
            question = f"May I delete {path}? Answer yes or no." if name == "delete" else \
                f'May the tool delete with {{"path":"{path}"}} be called? Answer yes or no.'
            said = [{"role": "user", "content": f"{name} {path}"}]
            asked = front(s, None, messages=said)
            same((asked.text, asked.end), (question, "stop"))
            said += [{"role": "assistant", "content": asked.text}, {"role": "user", "content": "yes, but only tomorrow"}]
            again = front(s, None, messages=said)
            check(again.text.startswith("The answer was not understood."), again.text)
            said += [{"role": "assistant", "content": again.text}, {"role": "user", "content": words}]
            same(front(s, None, messages=said).text, f"{want} {path}")


@test("Chat: choices and the address to sign in are in the text")
def _():
    s, key = ours(), [("X-Session-Id", new_id("s"))]
    same(fronts.chat(s, "pick", key).text, "Which colour?\n- red\n- blue")
    same(fronts.chat(s, "red", key).text, "You answered: red")
    key = [("X-Session-Id", new_id("s"))]
    same(fronts.chat(s, "sign in", key).text, "Your calendar is needed.\nSign in at https://login.example/start")
    same(fronts.chat(s, "done", key).text, "You answered: done")


# ---- AI SDK -----------------------------------------------------------------------------------------------------------

def ui_message(told):
    """The assistant's message as useChat has it after the stream: its tool parts and its text."""
    parts, calls = [{"type": "step-start"}], {}
    for f in told.frames[:-1]:
        c = f.json
        if c["type"] == "tool-input-available":
            part = {"type": "dynamic-tool", "toolName": c["toolName"], "toolCallId": c["toolCallId"], "state": "input-available",
                    "input": c["input"], "providerExecuted": c.get("providerExecuted", False)}
            calls[c["toolCallId"]] = part
            parts.append(part)
        elif c["type"] == "tool-approval-request":
            calls[c["toolCallId"]].update(state="approval-requested", approval={"id": c["approvalId"]})
    return {"id": told.frames[0].json["messageId"], "role": "assistant", "parts": parts + [{"type": "text", "text": told.text}]}


def approve(part, approved=True, **more):
    part["state"] = "approval-responded"
    part["approval"] = {"id": part["approval"]["id"], "approved": approved, **more}


def tools_of(m):
    return [p for p in m["parts"] if p["type"] == "dynamic-tool"]


@test("AI SDK: an approval is a part of the call, answered in the next request")
def _():
    s, chat = ours(), new_id("chat")
    user = {"id": new_id("u"), "role": "user", "parts": [{"type": "text", "text": "delete a b"}]}
    asked = fronts.ai_sdk(s, None, chat_id=chat, messages=[user])
    m = ui_message(asked)
    same([(p["toolName"], p["state"], p["input"], p["providerExecuted"]) for p in tools_of(m)],
         [("delete", "approval-requested", {"path": "a"}, True), ("delete", "approval-requested", {"path": "b"}, True)])
    for p, yes in zip(tools_of(m), (True, False)):
        approve(p, yes, **({} if yes else {"reason": "mine"}))
    done = fronts.ai_sdk(s, None, chat_id=chat, messages=[user, m])
    same(done.text, "deleted a; kept b (mine)")
    same(done.frames[0].json["messageId"], m["id"], "the message goes on")
    kinds = [(f.json["type"], f.json["toolCallId"]) for f in done.frames[:-1] if f.json["type"].startswith("tool-")]
    same(kinds, [("tool-output-denied", "call-2"), ("tool-output-available", "call-1")], "the calls are not announced again")
    r = fronts.post(s, "/ai-sdk", fronts.ui_body(None, chat_id=chat, messages=[user, m]))
    check(r.status == 400 and "approval" in r.body.decode(), r)


@test("AI SDK: words decide, others ask again")
def _():
    s, chat = ours(), new_id("chat")
    fronts.ai_sdk(s, DELETE, chat_id=chat)
    again = fronts.ai_sdk(s, "hm", chat_id=chat)
    same(len(tools_of(ui_message(again))), 1)
    same(fronts.ai_sdk(s, "allow", chat_id=chat).text, "deleted old.txt")


# ---- across protocols ---------------------------------------------------------------------------------------------

@test("an approval that one protocol asks for is answered by another")
def _():
    s, context = ours(), new_id("ctx")
    c = Client(s, RPC1)
    asked = c.send(DELETE, context=context).task
    told = fronts.ag_ui(s, None, thread=context, messages=[])
    [it] = told.frames[-1].json["outcome"]["interrupts"]
    told, _ = resume(s, context, [resolved(it, {"approved": True})])
    same(told.text, "deleted old.txt")
    same(c.get(asked["id"]).task["status"]["state"], "TASK_STATE_COMPLETED")
    same(Client(s, RPC03).get(asked["id"]).task["status"]["state"], "TASK_STATE_COMPLETED")


# ---- what else a loop shows --------------------------------------------------------------------------------------------

@test("why an answer was cut: Chat, Responses, AI SDK, AG-UI")
def _():
    s = ours()
    for words, chat, responses, ui in (("length", "length", "max_output_tokens", "length"),
                                       ("filtered", "content_filter", "content_filter", "content-filter")):
        same([f(s, words).end for f in (fronts.chat, fronts.chat_stream)], [chat, chat], "Chat")
        for f in (fronts.responses, fronts.responses_stream):
            r = f(s, words).body
            same((r["status"], r["incomplete_details"]), ("incomplete", {"reason": responses}), "Responses")
        same(fronts.ai_sdk(s, words).end, ui, "AI SDK")
        told = fronts.ag_ui(s, words)
        same([f.json["value"]["finish_reason"] for f in told.frames if f.json["type"] == "CUSTOM"], [chat], "AG-UI")
        same(Client(s, RPC1).send(words).task["metadata"]["finish_reason"], chat, "A2A")


@test("a refusal: Chat and Responses have a place for it")
def _():
    s = ours()
    for f in (fronts.chat, fronts.chat_stream, fronts.responses, fronts.responses_stream):
        same(f(s, "refuse").text, "I will not do that.")
    same(fronts.chat(s, "refuse").body["choices"][0]["message"]["refusal"], "I will not do that.")
    same(fronts.ag_ui(s, "refuse").end, "error:rejected")
    same(fronts.ai_sdk(s, "refuse").end, "error")
    same(Client(s, RPC1).send("refuse").task["status"]["state"], "TASK_STATE_REJECTED")


@test("reasoning, calls, state and usage of an agent reach every protocol that has a place")
def _():
    s = ours()
    body = fronts.chat(s, "think").body
    same(body["choices"][0]["message"]["reasoning_content"], "Let me think.")
    same(body["usage"]["total_tokens"], 12)
    deltas = [c["delta"] for f in fronts.chat_stream(s, "think").frames[:-1] for c in f.json["choices"]]
    same("".join(d.get("reasoning_content") or "" for d in deltas), "Let me think.")
    for f in (fronts.responses, fronts.responses_stream):
        r = f(s, "think").body
        same([i["type"] for i in r["output"]], ["reasoning", "mcp_call", "message"])
        same(r["output"][0]["summary"][0]["text"], "Let me think.")
        same(json.loads(r["output"][1]["output"]), {"sky": "snow"})
        same(r["usage"]["total_tokens"], 12)
    events = [f.json for f in fronts.ag_ui(s, "think").frames]
    kinds = [e["type"] for e in events]
    for kind in ("REASONING_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_RESULT", "STATE_SNAPSHOT"):
        check(kind in kinds, f"{kind} is missing")
    same(events[-1]["usage"][0]["totalTokens"], 12)
    chunks = [f.json for f in fronts.ai_sdk(s, "think").frames[:-1]]
    kinds = [c["type"] for c in chunks]
    for kind in ("reasoning-delta", "tool-input-available", "tool-output-available", "data-state"):
        check(kind in kinds, f"{kind} is missing")
    same(chunks[-1]["messageMetadata"]["usage"][0]["totalTokens"], 12)
    with Client(s, RPC1).stream("think") as live:
        check("internal" not in json.dumps([e.payload for e in live.rest()], default=str), "an internal event reached A2A")
