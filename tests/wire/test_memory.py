"""Memory: an agent gets the conversation of its context, whichever protocols its turns came by."""
import json
import os
import sqlite3

from lib import fronts
from lib.a2a import ALL, RPC1, Client, message, new_id, task_text
from lib.http import ask
from lib.server import Server, TOKENS, agent, folder, needs_ours, server, settings, needs_sqlite
from lib.tap import check, each, same, soon, test

AGENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "remembers.py")
ANN, WHO, KNOWS, UNKNOWN = "My name is Ann", "What is my name?", "Your name is Ann.", "I do not know your name."
TOLD = [["user", ANN], ["agent", "Hello Ann."]]


def config(tokens=False, **more):
    needs_ours()
    return settings(tokens=tokens, agents=[agent("exec", id="one", settings={"command": [AGENT]}, **more),
                                           agent("exec", id="two", settings={"command": [AGENT]}, **more)])


def ours(**more):
    return server(None, config=config(**more))


def said(role, text):
    return {"role": role, "content": text}


def send(s, text, wire=RPC1, base="", token=None, **how):
    return task_text(Client(s, wire, base=base, token=token).send(text, **how).task)


def history(s, **how):
    return json.loads(send(s, "history", **how))


# ---- each protocol --------------------------------------------------------------------------------------------

@each("an A2A context is remembered: {}", ALL)
def _(wire):
    s, context = ours(), new_id("ctx")
    send(s, ANN, wire, context=context)
    same(send(s, WHO, wire, context=context), KNOWS)
    same(send(s, WHO, wire, context=new_id("ctx")), UNKNOWN, "another context")
    same(send(s, WHO, wire), UNKNOWN, "no context")


@test("Chat with a conversation id: the new message is enough")
def _():
    s, key = ours(), [("X-Session-Id", new_id("s"))]
    fronts.chat(s, ANN, key, model="one")
    same(fronts.chat(s, WHO, key, model="one").text, KNOWS)
    whole = [said("user", ANN), said("assistant", "Hello Ann."), said("user", WHO), said("assistant", KNOWS), said("user", "history")]
    same(json.loads(fronts.chat(s, "", key, model="one", messages=whole).text), TOLD + [["user", WHO], ["agent", KNOWS]], "the whole transcript")


@test("Chat without a conversation id: the transcript is the history")
def _():
    s = ours()
    whole = [said("system", "be brief"), said("user", ANN), said("assistant", "Hello Ann."), said("user", WHO)]
    same(fronts.chat(s, "", model="one", messages=whole).text, KNOWS)
    same(fronts.chat_stream(s, "", model="one", messages=whole).text, KNOWS, "streamed")
    whole[-1] = said("user", "history")
    same(json.loads(fronts.chat(s, "", model="one", messages=whole).text), TOLD)
    same(fronts.chat(s, WHO, model="one").text, UNKNOWN, "without it")


@test("Responses: previous_response_id")
def _():
    s = ours()
    first = fronts.responses(s, ANN, model="one").body["id"]
    second = fronts.responses(s, WHO, model="one", previous_response_id=first)
    same(second.text, KNOWS)
    third = fronts.responses(s, "history", model="one", previous_response_id=second.body["id"])
    same(json.loads(third.text), TOLD + [["user", WHO], ["agent", KNOWS]])
    branch = fronts.responses(s, "history", model="one", previous_response_id=first)
    same(json.loads(branch.text), TOLD, "a branch behind the first")
    behind = fronts.responses(s, WHO, model="one", previous_response_id=branch.body["id"])
    same(behind.text, KNOWS, "the branch has it, too")
    same(fronts.responses(s, WHO, model="one").text, UNKNOWN, "without it")


@test("Responses: conversations")
def _():
    s = ours()
    talk = fronts.post(s, "/v1/conversations", {}).json["id"]
    fronts.responses(s, ANN, model="one", conversation=talk)
    same(fronts.responses(s, WHO, model="one", conversation=talk).text, KNOWS)
    items = [{"type": "message", "role": "user", "content": ANN}, {"type": "message", "role": "assistant", "content": "Hello Ann."}]
    other = fronts.post(s, "/v1/conversations", {"items": items}).json["id"]
    same(fronts.responses(s, WHO, model="one", conversation=other).text, KNOWS, "items that the client added")
    same(fronts.responses(s, WHO, model="one", conversation=other).text, KNOWS, "and the turn behind")
    listed = ask(s.address, "GET", f"/v1/conversations/{other}/items?order=asc&limit=50").json["data"]
    same(["".join(p["text"] for p in i["content"]) for i in listed], [ANN, "Hello Ann.", WHO, KNOWS, WHO, KNOWS], "its items, each once")


@test("Responses: the whole conversation as input")
def _():
    s = ours()
    whole = [said("user", ANN), said("assistant", "Hello Ann."), said("user", WHO)]
    same(fronts.responses(s, whole, model="one", store=False).text, KNOWS)


@test("AG-UI threads, with all messages and with the new one")
def _():
    s, thread = ours(), new_id("thread")
    run(s, thread, [u("1", ANN)])
    same(run(s, thread, [u("2", WHO)]), KNOWS, "the new message alone")
    same(run(s, thread, [u("1", ANN), a("1a", "Hello Ann."), u("2", WHO), a("2a", KNOWS), u("3", "history")]),
         json.dumps(TOLD + [["user", WHO], ["agent", KNOWS]]), "all messages")
    same(run(s, new_id("thread"), [u("1", ANN), a("1a", "Hello Ann."), u("2", WHO)]), KNOWS, "a thread that is not stored here")


@test("AI SDK chats, with all messages and with the new one")
def _():
    s, chat = ours(), new_id("chat")
    ui(s, chat, [p("1", "user", ANN)])
    same(ui(s, chat, [p("2", "user", WHO)]), KNOWS, "the new message alone")
    same(ui(s, chat, [p("1", "user", ANN), p("1a", "assistant", "Hello Ann."), p("2", "user", WHO), p("2a", "assistant", KNOWS),
                      p("3", "user", "history")]), json.dumps(TOLD + [["user", WHO], ["agent", KNOWS]]), "all messages")


def u(id, text):
    return {"id": f"u{id}", "role": "user", "content": text}


def a(id, text):
    return {"id": f"a{id}", "role": "assistant", "content": text}


def p(id, role, text):
    return {"id": f"{role}{id}", "role": role, "parts": [{"type": "text", "text": text}]}


def run(s, thread, messages):
    with fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=messages)) as stream:
        return last_text(fronts.fold_ag_ui(stream.rest()), messages)


def last_text(told, messages):
    """A snapshot has the messages of the request, too."""
    before = "\n\n".join(m["content"] for m in messages if m["role"] == "assistant")
    return told.text[len(before):].lstrip("\n") if before and told.text.startswith(before) else told.text


def ui(s, chat, messages, **more):
    with fronts.stream(s, "/ai-sdk", fronts.ui_body("", chat_id=chat, messages=messages, **more)) as stream:
        return fronts.fold_ui(stream.rest()).text


# ---- all of them --------------------------------------------------------------------------------------------------

@test("the same history whichever protocols the turns came by")
def _():
    s, context = ours(), new_id("ctx")
    send(s, ANN, context=context)
    same(run(s, context, [u(new_id(), WHO)]), KNOWS, "AG-UI")
    same(ui(s, context, [p(new_id(), "user", WHO)]), KNOWS, "AI SDK")
    same(fronts.chat(s, WHO, [("X-A2A-Context-Id", context)], model="one").text, KNOWS, "Chat")
    same(history(s, context=context), TOLD + 3 * [["user", WHO], ["agent", KNOWS]], "A2A")


@test("another principal, agent and context see nothing")
def _():
    s, context = ours(tokens=True), new_id("ctx")
    send(s, ANN, context=context, token=TOKENS["alice"])
    same(send(s, WHO, context=context, token=TOKENS["alice"]), KNOWS)
    same(send(s, WHO, context=context, token=TOKENS["bob"]), UNKNOWN, "another principal")
    same(send(s, WHO, context=context, token=TOKENS["alice"], base="/agents/two"), UNKNOWN, "another agent")
    same(send(s, WHO, context=new_id("ctx"), token=TOKENS["alice"]), UNKNOWN, "another context")


@test("a question and its answer are in it once")
def _():
    s, context = ours(), new_id("ctx")
    send(s, ANN, context=context)
    task = Client(s, RPC1).send("ask", context=context).task
    same(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    answer = Client(s, RPC1).send("history", task=task["id"]).task
    same(json.loads(task_text(answer)), TOLD + [["user", "ask"], ["agent", "Which one?"]])


@test("a file of the agent is a part of its answer")
def _():
    s, context = ours(), new_id("ctx")
    send(s, "file", context=context)
    same(history(s, context=context), [["user", "file"], ["agent", "Here it is.+"]])


@test("an edited message: Chat starts another context with the transcript, linked to the old one")
def _():
    s, key = ours(), new_id("s")
    headers = [("X-Session-Id", key)]
    fronts.chat(s, ANN, headers, model="one")
    edited = [said("user", "My name is Bob"), said("assistant", "Hello Bob."), said("user", WHO)]
    same(fronts.chat(s, "", headers, model="one", messages=edited).text, "Your name is Bob.")
    edited += [said("assistant", "Your name is Bob."), said("user", WHO)]
    same(fronts.chat(s, "", headers, model="one", messages=edited).text, "Your name is Bob.", "the turn behind it")
    same(fronts.chat(s, WHO, headers, model="one").text, KNOWS, "the old context is as it was")
    tasks = Client(s, RPC1).list(pageSize=100, historyLength=50).value["tasks"]
    old = {t["id"] for t in tasks if t["contextId"] == key}
    links = [r for t in tasks if t["contextId"] != key for m in t.get("history", []) for r in m.get("referenceTaskIds", [])]
    check(old & set(links), (old, links))


@test("an edited message: the transcript of AG-UI and the AI SDK replaces what the context held")
def _():
    s = ours()
    thread = new_id("thread")
    run(s, thread, [u("1", ANN)])
    edited = [u("1", "My name is Bob"), a("1a", "Hello Bob."), u("2", "history")]
    want = [["user", "My name is Bob"], ["agent", "Hello Bob."]]
    same(json.loads(run(s, thread, edited)), want, "AG-UI")
    same(run(s, thread, [u("3", WHO)]), "Your name is Bob.", "AG-UI, the turn behind it")
    chat = new_id("chat")
    ui(s, chat, [p("1", "user", ANN)])
    edited = [p("1", "user", "My name is Bob"), p("1a", "assistant", "Hello Bob."), p("2", "user", "history")]
    same(json.loads(ui(s, chat, edited)), want, "AI SDK")
    same(ui(s, chat, [p("3", "user", WHO)]), "Your name is Bob.", "AI SDK, the turn behind it")


@test("an answer that is regenerated does not see the one before")
def _():
    s, chat = ours(), new_id("chat")
    ui(s, chat, [p("1", "user", ANN)])
    ui(s, chat, [p("2", "user", "history")])
    again = ui(s, chat, [p("2", "user", "history")], trigger="regenerate-message", messageId="assistant2")
    same(json.loads(again), TOLD)
    whole = [p("1", "user", ANN), p("1a", "assistant", "Hello Ann."), p("2", "user", "history")]
    again = ui(s, chat, whole, trigger="regenerate-message", messageId="assistant2")
    same(json.loads(again), TOLD, "with all messages")


# ---- calls ----------------------------------------------------------------------------------------------------------

def call_weather(s, context):
    task = Client(s, RPC1).send("weather", context=context).task
    same(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED")
    result = {"data": {"tool_results": [{"call_id": "call-1", "output": "rain"}]}}
    return Client(s, RPC1).send(m=message(parts=[result, {"text": "history"}], task=task["id"])).task


@test("a call and its result are both in it")
def _():
    s, context = ours(), new_id("ctx")
    first = json.loads(task_text(call_weather(s, context)))
    same(first, [["user", "weather"], ["agent", "c:call-1"]], "the result is the message")
    later = history(s, context=context)
    same(later[:3], [["user", "weather"], ["agent", "c:call-1"], ["user", "r:call-1history"]])


@test("neither is, if tools is off or one of them is beyond the limit")
def _():
    s, context = ours(history={"tools": False}), new_id("ctx")
    call_weather(s, context)
    same([m[1] for m in history(s, context=context)][:1], ["weather"])
    check("call-1" not in json.dumps(history(s, context=context)), "a call or a result")
    s, context = ours(history={"messages": 2}), new_id("ctx")
    call_weather(s, context)
    same([m[0] for m in history(s, context=context)], ["user", "agent"], "the text beside the result stays")
    check("call-1" not in json.dumps(history(s, context=context)[:1]), "a result without its call")


@test("a call of a tool of a Chat client")
def _():
    s, key = ours(), [("X-Session-Id", new_id("s"))]
    first = fronts.chat(s, "weather", key, model="one").body["choices"][0]["message"]
    same(first["tool_calls"][0]["id"], "call-1")
    whole = [said("user", "weather"), first, {"role": "tool", "tool_call_id": "call-1", "content": "rain"}, said("user", "history")]
    same(json.loads(fronts.chat(s, "", key, model="one", messages=whole).text), [["user", "weather"], ["agent", "c:call-1"]])
    whole = [said("user", "weather"), first, {"role": "tool", "tool_call_id": "call-1", "content": "rain"}, said("assistant", "It rains."),
             said("user", "history")]
    same(json.loads(fronts.chat(s, "", model="one", messages=whole).text),
         [["user", "weather"], ["agent", "c:call-1"], ["user", "r:call-1"], ["agent", "It rains."]], "as a transcript")


# ---- limits and settings -------------------------------------------------------------------------------------------

@test("messages is a limit, and 0 switches it off")
def _():
    s, context = ours(history=3), new_id("ctx")
    send(s, ANN, context=context)
    send(s, WHO, context=context)
    same(history(s, context=context), [["agent", "Hello Ann."], ["user", WHO], ["agent", KNOWS]])
    s = ours(history=0)
    send(s, ANN, context=context)
    same(send(s, WHO, context=context), UNKNOWN)
    whole = [said("user", ANN), said("assistant", "Hello Ann."), said("user", WHO)]
    same(fronts.chat(s, "", model="one", messages=whole).text, "Hello Ann.", "the transcript is a text in front")


@test("bytes is a limit")
def _():
    s, context = ours(history={"bytes": 2000}), new_id("ctx")
    send(s, "x" * 1900, context=context)
    send(s, ANN, context=context)
    same(history(s, context=context)[-2:], TOLD)
    check("xxx" not in json.dumps(history(s, context=context)), "the long message")


@test("reply: message with a history is a warning")
def _():
    with Server(None, config=config(reply="message")) as s:
        soon(lambda: "answers with Messages, which are not stored" in s.last_words(), "a warning")


@test("an exec agent answers with a Task by default")
def _():
    s = ours()
    check("status" in Client(s, RPC1).send(ANN).task, "no task")


# ---- time --------------------------------------------------------------------------------------------------------------

@test("it outlives the server, and logs that were trimmed")
def _():
    needs_sqlite("it changes the tables of SQLite")
    path = os.path.join(folder(), "tasks.db")
    context, thread = new_id("ctx"), new_id("thread")
    with Server(None, config=config(), store=f"sqlite:{path}") as s:
        send(s, ANN, context=context)
        run(s, thread, [u("1", "My name is Bob"), a("1a", "Hello Bob."), u("2", WHO)])
        s.kill()
        db = sqlite3.connect(path)
        db.execute("DELETE FROM log")
        db.execute("UPDATE turns SET first_seq=last_seq+1,ended_ms=0,protocol='',caller='',request='',previous=''")
        db.commit()
        db.close()
        s.restart()
        same(send(s, WHO, context=context), KNOWS)
        same(run(s, thread, [u("3", WHO)]), "Your name is Bob.", "a transcript")


@test("a task that works is in the history of another, without its progress")
def _():
    s, context = ours(), new_id("ctx")
    client = Client(s, RPC1)
    task = client.send("sleep", context=context, config={"returnImmediately": True}).task
    same(history(s, context=context), [["user", "sleep"]])
    client.cancel(task["id"])


@test("a page of AG-UI shows the transcript that replaced the messages")
def _():
    s, thread = ours(), new_id("thread")
    run(s, thread, [u("1", ANN), a("1a", "Hello Ann."), u("2", WHO)])
    shown = ask(s.address, "GET", f"/ag-ui/threads/{thread}/messages")
    same([m["content"] for m in shown.json["messages"]], [ANN, "Hello Ann.", WHO, KNOWS])
