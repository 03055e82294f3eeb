"""Ids (5.3), what history keeps, and resends of one message (003: 1.2)."""
import concurrent.futures

from lib.a2a import ALL, ONE, RPC, RPC03, RPC1, Client, message, new_id, text_of
from lib.agents import completed, tck, waiting
from lib.server import needs_ours, server, settings
from lib.tap import check, each, same, test


def client(wire, agent="tck", **options):
    return Client(server(agent, **options), wire)


# ---- table 5.3 -----------------------------------------------------------------------------------------------------------

@each("no taskId, no contextId: a new task with both, different each time, {}", ALL)
def _(wire):
    c = client(wire)
    a, b = completed(c), completed(c)
    check(len({a["id"], b["id"], a["contextId"], b["contextId"]}) == 4, (a, b))


@each("contextId alone: a new task in that context, {}", ALL)
def _(wire):
    c = client(wire)
    context = new_id("ctx")
    a, b = completed(c, context), completed(c, context)
    same((a["contextId"], b["contextId"]), (context, context), "contexts")
    check(a["id"] != b["id"], "two tasks")


@each("a contextId of the client's own making is kept to the letter: {}", ["a", "x" * 200, "with space", "ünïcödé-😀", "a/b:c?d#e", "0"])
def _(context):
    c = client(RPC1)
    same(completed(c, context)["contextId"], context, "contextId")
    same([t["contextId"] for t in c.list(contextId=context, pageSize=1).value["tasks"]], [context], "the list's")


@each("taskId alone: the context is the task's, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    again = c.send(id=tck("complete-task"), task=t["id"]).task
    same((again["id"], again["contextId"], again["status"]["state"]), (t["id"], t["contextId"], "TASK_STATE_COMPLETED"), "task")


@each("taskId and its own contextId go together, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    same(c.send(id=tck("complete-task"), task=t["id"], context=t["contextId"]).task["id"], t["id"], "id")


@each("taskId and another contextId are refused and change nothing, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    before = c.get(t["id"]).task
    c.send(id=tck("complete-task"), task=t["id"], context=new_id("other")).expect("InvalidParams")
    same(c.get(t["id"]).task, before, "task")


@each("a client cannot choose the id of a new task, {}", ALL)
def _(wire):
    client(wire).send(id=tck("complete-task"), task="my-own-id").expect("TaskNotFound")


@each("unknown referenceTaskIds are ignored, {}", [*ONE, RPC03])
def _(wire):
    c = client(wire)
    t = c.send(m=message(id=tck("input-required"), referenceTaskIds=["nobody", "nobody-else"])).task
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "state")
    same(c.get(t["id"]).task["history"][0]["referenceTaskIds"], ["nobody", "nobody-else"], "kept")


@each("an answer that is a Message carries a contextId and no task, {}", ALL)
def _(wire):
    c = client(wire, "bench")
    m = c.send("echo one").message
    check(m["contextId"] and "taskId" not in m, m)
    same(c.send("echo two", context="mine").message["contextId"], "mine", "contextId")


@each("history keeps the caller's message with taskId and contextId filled in, {} [R002-04]", ALL)
def _(wire):
    c = client(wire)
    id = tck("input-required")
    t = c.get(c.send("the question", id=id).task["id"]).task
    first = t["history"][0]
    same((first["messageId"], first["role"], text_of(first), first["taskId"], first["contextId"]),
         (id, "ROLE_USER", "the question", t["id"], t["contextId"]), "first entry")


@each("a follow-up is appended to history in order, {}", ALL)
def _(wire):
    c = client(wire)
    t = waiting(c)
    for n in (1, 2):
        c.send(f"follow-up {n}", id=tck("input-required"), task=t["id"])
    texts = [text_of(m) for m in c.get(t["id"]).task["history"] if m["role"] == "ROLE_USER"]
    same(texts, ["please", "follow-up 1", "follow-up 2"], "the user's messages")


@each("server messages carry ids: {}", ALL)
def _(wire):
    c = client(wire)
    t = completed(c)
    m = t["status"]["message"]
    check(m["messageId"] and m["role"] == "ROLE_AGENT", m)
    same((m["contextId"], m["taskId"]), (t["contextId"], t["id"]), "ids of the status message")


# ---- resends ---------------------------------------------------------------------------------------------------------------

def dedupe(wire, agent="bench"):
    needs_ours("only Dragoman knows a resend")
    return Client(server(agent, config=settings(dedupe=True)), wire)


@each("a resend with equal content gives the same task, {} [R003-08]", [(f"{what}, {w}", w, context) for w in ALL for what, context in (("no contextId", None), ("with contextId", "ctx-resend"))])
def _(wire, context):
    c = dedupe(wire)
    m = message("chunks 2 x", context=context and new_id(context))
    one, two = (c.send(m=m).task for _ in range(2))
    same(two["id"], one["id"], "id")
    same(two["artifacts"], one["artifacts"], "artifacts")
    same(len([h for h in two.get("history", []) if h["role"] == "ROLE_USER"]), 1, "the user's messages in history")


@each("a resend that now names the context it was given is the same message too, {} [R003-08]", RPC)
def _(wire):
    c = dedupe(wire)
    m = message("chunks 2 x")
    one = c.send(m=m).task
    same(c.send(m={**m, "contextId": one["contextId"]}).task["id"], one["id"], "id")


@each("the same messageId with other content is a new message, {} [R003-08]", ALL)
def _(wire):
    c = dedupe(wire)
    id = new_id()
    check(c.send("chunks 2 x", id=id).task["id"] != c.send("chunks 2 y", id=id).task["id"], "two tasks")


@test("metadata is not content: a resend with other metadata is the same message [R003-08]")
def _():
    c = dedupe(RPC1)
    m = message("chunks 2 x")
    same(c.send(m={**m, "metadata": {"try": 2}}).task["id"], c.send(m={**m, "metadata": {"try": 1}}).task["id"], "id")


@test("the same message in two contexts is two messages [R003-08]")
def _():
    c = dedupe(RPC1)
    m = message("chunks 2 x")
    check(c.send(m={**m, "contextId": new_id("a")}).task["id"] != c.send(m={**m, "contextId": new_id("b")}).task["id"], "two tasks")


@test("the same message of two principals is two messages [R003-08]")
def _():
    needs_ours("only Dragoman knows a resend")
    s = server("bench", config=settings(tokens=True))
    m = message("chunks 2 x")
    a, b = (Client(s, RPC1, token=t).send(m=m).task["id"] for t in ("alice-secret", "bob-secret"))
    check(a != b, "two tasks")


@test("a resend while the first still runs attaches to it from its first event [R003-08]")
def _():
    c = dedupe(RPC1)
    m = message("hold 2 x")
    first = c.stream(m=m)
    task = first.next().body["id"]
    second = c.stream(m=m)
    same(second.next().body["id"], task, "id")
    one, two = first.rest(), second.rest()
    same([e.payload for e in two], [e.payload for e in one], "events")
    same([e.id for e in two], [e.id for e in one], "ids")


@test("a resend across versions is the same message [R003-08]")
def _():
    c = dedupe(RPC1)
    m = message("chunks 2 x")
    one = c.send(m=m).task
    same(dedupe(RPC03).send(m=m).task["id"], one["id"], "id")


@test("a Message answer is not deduplicated [R004-21]")
def _():
    c = dedupe(RPC1)
    m = message("echo x")
    one, two = c.send(m=m).message, c.send(m=m).message
    check(one["messageId"] != two["messageId"], (one, two))


@test("a resend of a follow-up is not a second follow-up [R003-08]")
def _():
    needs_ours("only Dragoman knows a resend")
    c = Client(server("tck", config=settings(dedupe=True)), RPC1)
    t = waiting(c)
    m = message("again", id=tck("input-required"), task=t["id"], context=t["contextId"])
    for _ in range(3):
        c.send(m=m)
    same([text_of(h) for h in c.get(t["id"]).task["history"] if h["role"] == "ROLE_USER"], ["please", "again"], "the user's messages")


@test("dedupe off: one messageId, many messages, all in history (what the kits do)")
def _():
    c = Client(server(None, profile="tck"), RPC1)
    id = tck("input-required")
    t = c.send("TCK history message 1", id=id).task
    c.send("TCK history message 2", id=id, task=t["id"])
    c.send("TCK history message 2", id=id, task=t["id"])
    texts = [text_of(h) for h in c.get(t["id"]).task["history"] if h["role"] == "ROLE_USER"]
    same(texts, ["TCK history message 1", "TCK history message 2", "TCK history message 2"], "the user's messages")


@test("300 resends at once start the agent once [R003-08]", timeout=60)
def _():
    c = dedupe(RPC1)
    m = message("chunks 3 x", context=new_id("ctx"))
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        ids = list(pool.map(lambda _: Client(c.server, RPC1).send(m=m).task["id"], range(300)))
    same(len(set(ids)), 1, "different tasks")
    same(c.list(contextId=m["contextId"]).value["totalSize"], 1, "tasks in the context")
