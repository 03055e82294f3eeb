"""Messages to a task that works: an agent that accepts them gets them at once, and every stream shows what follows."""
import os

from lib import fronts
from lib.a2a import REST1, RPC1, Client, artifact_texts, new_id
from lib.http import ask
from lib.server import Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

ANSWER = "I heard 2 messages."


def demo():
    return server(None, config=settings(agents=[agent("demo", settings={"pace": 0.1})]))


def tasks_in(s, context):
    return Client(s, RPC1).list(contextId=context).value["totalSize"]


def user_texts(task):
    return [m["parts"][0]["text"] for m in task["history"] if m["role"] == "ROLE_USER"]


# ---- A2A ----------------------------------------------------------------------------------------------------------------------

@each("A2A: a message reaches the run, and both streams show what follows: {}", [RPC1, REST1])
def _(wire):
    needs_ours()
    c = Client(demo(), wire)
    first = c.stream("listen")
    task = first.next().body["id"]
    second = c.stream("one", task=task)
    begun = second.next().body
    same(user_texts(begun), ["listen", "one"], "the history that the second stream starts with")
    last = c.send("done", task=task).task
    same(last["status"]["state"], "TASK_STATE_COMPLETED", "the answer to the last message")
    same(artifact_texts(last), ["one", "done", ANSWER], "artifacts")
    for stream in (first, second):
        events = stream.rest()
        same(events[-1].state, "TASK_STATE_COMPLETED", "the last event")
        names = [e.body["artifact"]["artifactId"] for e in events if e.kind == "artifactUpdate"]
        check(names[:2] == ["heard-1", "heard-2"], names)
    same(user_texts(c.get(task).task), ["listen", "one", "done"], "history")


@test("A2A: a message to a run that does not accept it waits for the next turn, as before")
def _():
    needs_ours()
    c = Client(demo(), RPC1)
    task = c.send("slow 2", config={"returnImmediately": True}).task["id"]
    c.send("one", task=task).expect("UnsupportedOperation")


@test("A2A: an accepted message is in the history after kill -9")
def _():
    needs_ours()
    config = settings(agents=[agent("demo", settings={"pace": 0.1})])
    with Server(None, store="sqlite:" + os.path.join(folder(), new_id("db")), config=config) as s:
        c = Client(s, RPC1)
        task = c.send("listen", config={"returnImmediately": True}).task["id"]
        c.send("one", task=task, config={"returnImmediately": True})
        s.kill()
        s.restart()
        c = Client(s, RPC1)
        same(user_texts(c.get(task).task), ["listen", "one"], "history")


# ---- protocols whose clients name a conversation ------------------------------------------------------------------------------

def ui_messages(*texts):
    return [{"id": f"u-{i}-{t}", "role": "user", "parts": [{"type": "text", "text": t}]} for i, t in enumerate(texts)]


def agui_messages(*texts):
    return [{"id": f"u-{i}-{t}", "role": "user", "content": t} for i, t in enumerate(texts)]


def open_agui(s, thread, texts, previous):
    return fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=agui_messages(*texts)))


def open_ui(s, thread, texts, previous):
    return fronts.stream(s, "/ai-sdk", fronts.ui_body(None, thread, messages=ui_messages(*texts)))


def open_chat(s, thread, texts, previous):
    messages = [{"role": "user", "content": t} for t in texts]
    return fronts.stream(s, "/v1/chat/completions", fronts.chat_body(None, messages=messages, stream=True), [("X-Session-Id", thread)])


def open_session(s, thread, texts, previous):
    input = [{"role": "user", "content": t} for t in texts]
    return fronts.stream(s, "/v1/responses", {"model": "demo", "stream": True, "input": input}, [("X-Session-Id", thread)])


def open_responses(s, thread, texts, previous):
    """Only what is new, and the id of the response before."""
    more = {"previous_response_id": previous} if previous else {}
    return fronts.stream(s, "/v1/responses", {"model": "demo", "stream": True, "input": texts[-1], **more})


FOLLOWED = {"ag-ui": (open_agui, fronts.fold_ag_ui, "success"), "ai-sdk": (open_ui, fronts.fold_ui, "stop"), "chat": (open_chat, fronts.fold_chat, "stop"),
            "responses with a session": (open_session, fronts.fold_responses, "completed"), "responses": (open_responses, fronts.fold_responses, "completed")}


def response_id(frames):
    created = [f.json for f in frames if f.event == "response.created"]
    return created[0]["response"]["id"] if created else None


@each("a request in a conversation whose task works goes to its run: {}", [(n, n) for n in FOLLOWED])
def _(name):
    needs_ours()
    s = demo()
    start, fold, end = FOLLOWED[name]
    thread, texts, previous, streams = new_id("thread"), [], None, []
    for text in ("listen", "one", "done"):
        texts.append(text)
        stream = start(s, thread, texts, previous)
        streams.append((stream, [stream.next()]))
        previous = response_id(streams[-1][1]) if name == "responses" else None
    told = []
    for stream, frames in streams:
        told.append(fold(frames + stream.rest()))
        stream.close()
    same([t.end for t in told], [end] * 3, "ends")
    for t in told:
        check(t.text.endswith(ANSWER), t.text)
    check("one" in told[0].text and "one" in told[1].text, [t.text for t in told])
    all = Client(s, RPC1).list(contextId=thread if name not in ("responses",) else context_of(s, told)).value
    same(all["totalSize"], 1, "tasks")


def context_of(s, told):
    return Client(s, RPC1).get(told[0].body["metadata"]["a2a_task_id"]).task["contextId"]


@test("AG-UI: a conversation with an earlier turn")
def _():
    needs_ours()
    s, thread = demo(), new_id("thread")
    said = [{"id": "u-1", "role": "user", "content": "hello"}]
    with fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=said)) as first:
        text = fronts.fold_ag_ui(first.rest()).text
    said += [{"id": "a-1", "role": "assistant", "content": text}, {"id": "u-2", "role": "user", "content": "listen"}]
    working = fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=list(said)))
    working.next()
    said.append({"id": "u-3", "role": "user", "content": "done"})
    with fronts.stream(s, "/ag-ui", fronts.run_input(thread=thread, messages=said)) as last:
        told = fronts.fold_ag_ui(last.rest())
    same(told.end, "success", "the end")
    check(told.text.endswith("I heard 1 messages."), told.text)
    working.close()
    same(tasks_in(s, thread), 2, "tasks")


@each("the messages of a conversation: {}", ["ag-ui", "ai-sdk"])
def _(name):
    needs_ours()
    s, thread, texts = demo(), new_id("thread"), []
    streams = []
    for text in ("listen", "one", "done"):
        texts.append(text)
        streams.append(FOLLOWED[name][0](s, thread, list(texts), None))
        streams[-1].next()
    for stream in streams:
        stream.rest()
        stream.close()
    path = f"/ag-ui/threads/{thread}/messages" if name == "ag-ui" else f"/ai-sdk/{thread}/messages"
    r = ask(s.address, "GET", path)
    same(r.status, 200, r)
    messages = r.json["messages"] if isinstance(r.json, dict) else r.json
    said = [m.get("content") or m["parts"][0]["text"] for m in messages if m["role"] == "user"]
    same(said, texts, "messages of the user")
    check(ANSWER in str(messages[-1]), messages[-1])


@test("the same request again is a task of its own, though the first one works")
def _():
    needs_ours()
    s, thread = demo(), new_id("thread")
    with open_agui(s, thread, ["listen"], None) as one, open_agui(s, thread, ["listen"], None) as two:
        one.next(), two.next()
        soon(lambda: tasks_in(s, thread) == 2, "two tasks")
