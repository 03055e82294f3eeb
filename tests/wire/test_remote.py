"""Agents of type a2a: one server in front of another one, which has the demo agent.

Every script of the demo must look the same through the first server as it does directly.
"""
import re

from lib.a2a import ALL, ONE, Client, fold, message, task_text
from lib.agents import DEMO_ALL, DEMO_ASK, DEMO_AUTH, DEMO_MORE, DEMO_SLOW, DEMO_TEXT
from lib.fronts import chat, chat_stream
from lib.server import Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, soon, test

# how the first server calls the second one: the id of its agent, its settings
ROADS = {"rpc10": {}, "rest10": {"binding": "rest"}, "rpc03": {"protocol": "a2a-0.3"},
         "rest03": {"protocol": "a2a-0.3", "binding": "rest"}}
# internal events (tools, state, reasoning, usage) are not sent to A2A clients, so only what A2A has is compared
WORDS = DEMO_ALL + [w for w in DEMO_MORE if w not in ("client-tool",)]


def far(streams=None):
    needs_ours("type: a2a")
    return server(None, config=settings(streaming=streams, agents=[agent("demo", settings={"pace": 0})]))


def near(streams=None):
    return server(None, config=settings(agents=[agent("a2a", id=road, settings={"url": far(streams).url, **how})
                                                for road, how in ROADS.items()]))


def shown(task):
    """What a client shows of a task."""
    return ([(a["artifactId"], a.get("name"), [{k: v for k, v in p.items() if k != "metadata"} for p in a["parts"]])
             for a in task.get("artifacts", [])], task_text(task), task["status"]["state"])


def streamed(c, word):
    events = c.stream(word)
    if word == DEMO_AUTH:
        events.until("AUTH_REQUIRED")
        events.close()
        return fold(events.seen)
    return fold(events.rest())


@each("a script looks the same through another server: {}", [(f"{word}, {road}, {w}", w, road, word)
                                                            for w in ONE[:1] for road in ROADS for word in WORDS])
def _(wire, road, word):
    direct, through = Client(far(), wire), Client(near(), wire, base=f"/agents/{road}")
    want, got = streamed(direct, word), streamed(through, word)
    same(shown(got), shown(want), "through another server and directly")
    check(got["id"] != want["id"] and got["contextId"] != want["contextId"], "ids are translated")
    same(shown(through.get(got["id"]).task), shown(want), "GetTask through the server")


@each("each wire to each wire: {}", [(f"{road}, {w}", w, road) for w in ALL for road in ROADS])
def _(wire, road):
    c = Client(near(), wire, base=f"/agents/{road}")
    sent = c.send("files").task
    same(sent["status"]["state"], "TASK_STATE_COMPLETED", "state")
    same(shown(sent), shown(Client(far(), wire).send("files").task), "through another server and directly")


def without_addresses(text):
    """Files are served by the server that was called."""
    return re.sub(r"http://127[^)]*/v1/files/[^)]*", "FILE", text or "")


@each("the same text in a chat: {}", [(f"{word}, {road}", road, word) for road in ROADS
                                      for word in WORDS if word not in (DEMO_AUTH, "interrupt")])
def _(road, word):
    for ask in chat, chat_stream:
        want, got = ask(far(), word), ask(near(), word, model=road)
        same(without_addresses(got.text), without_addresses(want.text), ask.__name__)


@each("an agent without streams is polled: {}", [(w, w) for w in ("rpc10", "rpc03")])
def _(road):
    c = Client(near(streams=False), ONE[0], base=f"/agents/{road}")
    same(shown(c.send("files").task), shown(Client(far(), ONE[0]).send("files").task), "polled and streamed")


@test("a cancel reaches the other server")
def _():
    needs_ours("type: a2a")
    behind = server(None, config=settings(agents=[agent("demo", settings={"pace": 1})]))
    before = server(None, config=settings(agents=[agent("a2a", settings={"url": behind.url})]))
    c, d = Client(before, ONE[0]), Client(behind, ONE[0])
    events = c.stream(DEMO_SLOW)
    events.until("WORKING")
    id = events.seen[0].body["id"]
    same(c.cancel(id).task["status"]["state"], "TASK_STATE_CANCELED", "our task")
    soon(lambda: [t["status"]["state"] for t in d.list().value["tasks"]][:1] == ["TASK_STATE_CANCELED"], "the remote task")
    events.close()


@each("a cancel of a task that waits reaches the other server: {}", [("at once", False), ("after a restart", True)])
def _(restarts):
    needs_ours("type: a2a")
    behind = server(None, config=settings(agents=[agent("demo", settings={"pace": 0})]))
    config = settings(agents=[agent("a2a", settings={"url": behind.url})])
    with Server(None, config=config, store=f"sqlite:{folder()}/tasks.db") as before:
        task = Client(before, ONE[0]).send(DEMO_ASK).task
        same(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "our task")
        if restarts:
            before.kill()
            before.restart()
        c, d = Client(before, ONE[0]), Client(behind, ONE[0])
        same(c.cancel(task["id"]).task["status"]["state"], "TASK_STATE_CANCELED", "our task")
        soon(lambda: [t["status"]["state"] for t in d.list().value["tasks"]][:1] == ["TASK_STATE_CANCELED"], "the remote task")
        same(c.get(task["id"]).task["status"]["state"], "TASK_STATE_CANCELED", "our task, read again")


@test("a cancel of a task that waits ends it when the other server is not there")
def _():
    needs_ours("type: a2a")
    with Server(None, config=settings(agents=[agent("demo", settings={"pace": 0})])) as behind:
        before = server(None, config=settings(agents=[agent("a2a", settings={"url": behind.url, "answer_timeout": 1})]))
        c = Client(before, ONE[0])
        task = c.send(DEMO_ASK).task
    c.cancel(task["id"])
    soon(lambda: c.get(task["id"]).task["status"]["state"] == "TASK_STATE_CANCELED", "our task")


@test("the other server is killed and comes back: the task ends, the message was sent once")
def _():
    needs_ours("type: a2a")
    behind = Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[agent("demo")]))
    before = server(None, config=settings(agents=[agent("a2a", settings={"url": behind.url})]))
    c, d = Client(before, ONE[0]), Client(behind, ONE[0])
    events = c.stream("slow 60")
    while not any(e.kind == "artifactUpdate" for e in events.seen):
        events.next()
    behind.listen = behind.url.removeprefix("http://")
    behind.kill()
    behind.start()
    events.rest()
    task = fold(events.seen)
    same(task["status"]["state"], "TASK_STATE_FAILED", "state")
    check(task["metadata"]["error"], task)
    same(len(d.list().value["tasks"]), 1, "tasks of the other server")
    behind.stop_well()


@test("a server that is not there: the task fails with a sentence")
def _():
    needs_ours("type: a2a")
    s = server(None, config=settings(agents=[agent("a2a", settings={"url": "http://127.0.0.1:9"})]))
    t = Client(s, ONE[0]).send("hi").task
    same(t["status"]["state"], "TASK_STATE_FAILED", "state")
    check("127.0.0.1:9" in t["metadata"]["error"] and "no agent card" in t["metadata"]["error"], t)


# ---- questions: the answer goes to the same remote task ------------------------------------------------------------

def pair(pace=0, road="rpc10", store="memory:"):
    """A server with the demo agent, and one in front of it, for one test."""
    needs_ours("type: a2a")
    behind = Server(None, config=settings(agents=[agent("demo", settings={"pace": pace})]))
    return behind, Server(None, store=store, config=settings(agents=[agent("a2a", id="demo", settings={"url": behind.url, **ROADS[road]})]))


def sent_texts(behind):
    """The texts that the other server got: one list per task."""
    d = Client(behind, ONE[0])
    tasks = [d.get(t["id"]).task for t in d.list().value["tasks"]]
    return [[m["parts"][0]["text"] for m in t["history"] if m["role"] == "ROLE_USER"] for t in tasks]


@each("a question and its answer are one remote task: {}", list(ROADS))
def _(road):
    behind, before = pair(road=road)
    with behind, before:
        c = Client(before, ONE[0])
        asked = c.send(DEMO_ASK).task
        same((asked["status"]["state"], task_text(asked)), ("TASK_STATE_INPUT_REQUIRED", "What is your name?"), "the question")
        events = c.stream(m=message("Ann", task=asked["id"], context=asked["contextId"]))
        task = fold(events.rest())
        same((task["id"], task["status"]["state"]), (asked["id"], "TASK_STATE_COMPLETED"), "the task")
        check(task_text(task).count("Ann") == 1, task_text(task))
        same(sent_texts(behind), [[DEMO_ASK, "Ann"]], "tasks of the other server and their messages")


@each("a question and its answer in a chat are one remote task: {}", [(f"{road}, {ask.__name__}", road, ask)
                                                                      for road in ROADS for ask in (chat, chat_stream)])
def _(road, ask):
    behind, before = pair(road=road)
    with behind, before:
        asked = ask(before, DEMO_ASK)
        same(asked.text, "What is your name?", "the question")
        said = [{"role": "user", "content": DEMO_ASK}, {"role": "assistant", "content": asked.text}, {"role": "user", "content": "Ann"}]
        check(ask(before, None, messages=said).text.count("Ann") == 1, "the answer")
        same(sent_texts(behind), [[DEMO_ASK, "Ann"]], "tasks of the other server and their messages")


@each("a question is answered after a restart: {}", ["stop_well", "kill"])
def _(end):
    behind, before = pair(store=f"sqlite:{folder()}/tasks.db")
    with behind, before:
        c = Client(before, ONE[0])
        asked = c.send(DEMO_ASK).task
        getattr(before, end)()
        before.restart()
        same(c.get(asked["id"]).state, "TASK_STATE_INPUT_REQUIRED", "the state after the restart")
        answered = c.send(m=message("Ann", task=asked["id"], context=asked["contextId"])).task
        same(answered["status"]["state"], "TASK_STATE_COMPLETED", "the state")
        check(task_text(answered).count("Ann") == 1, task_text(answered))
        same(sent_texts(behind), [[DEMO_ASK, "Ann"]], "tasks of the other server and their messages")
        before.stop_well()


# ---- a restart of ours ------------------------------------------------------------------------------------------------

@each("our server ends in the middle and starts again: the task completes, the text once, the message sent once: {}",
      [(f"{end}, {road}", end, road) for end in ("stop_well", "kill") for road in ROADS])
def _(end, road):
    behind, before = pair(pace=0.5, road=road, store=f"sqlite:{folder()}/tasks.db")
    with behind, before:
        c = Client(before, ONE[0])
        with c.stream(DEMO_TEXT) as events:
            events.until(lambda e: e.kind == "artifactUpdate")
            id, last = events.seen[0].body["id"], events.seen[-1].id
            seen = list(events.seen)
            getattr(before, end)()
        before.restart()
        with c.subscribe(id, last=last) as events:
            task = fold(seen + events.rest())
        direct = Client(far(), ONE[0]).send(DEMO_TEXT).task
        same(shown(task), shown(direct), "the stream before and after the restart")
        same(shown(c.get(id).task), shown(direct), "GetTask")
        same(sent_texts(behind), [[DEMO_TEXT]], "tasks of the other server and their messages")
        before.stop_well()
