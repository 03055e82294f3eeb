"""Agents of type a2a: one server in front of another one, which has the demo agent.

Every script of the demo must look the same through the first server as it does directly.
"""
import re

from lib.a2a import ALL, ONE, Client, fold, task_text
from lib.agents import DEMO_ALL, DEMO_AUTH, DEMO_MORE, DEMO_SLOW
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
