"""Cursors: many readers of one task, cuts and resumes, restarts. Exactly once, in order."""
import asyncio
import os
import random

from lib.a2a import ALL, RPC1, TERMINAL, Client, fold, new_id
from lib.agents import tck, waiting
from lib.many import Subscriber, run
from lib.server import Server, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, test

SEED = int(os.environ.get("DRAGOMAN_SEED", "0")) or random.SystemRandom().randrange(1 << 30)


def rng(name):
    print(f"# DRAGOMAN_SEED={SEED}")
    return random.Random(f"{SEED} {name}")


def sqlite():
    return "sqlite:" + os.path.join(folder(), "dragoman.db")


# ---- many readers -------------------------------------------------------------------------------------------------------------

@test("500 subscribers of one task get identical payloads", timeout=300)
def _():
    async def go():
        s = server("tck")
        c = Client(s, RPC1)
        t = waiting(c)
        readers = await asyncio.gather(*[Subscriber(Client(s, RPC1), "subscribe", {"id": t["id"]}).open() for _ in range(500)])
        firsts = [await r.next() for r in readers]
        same(len({(f.id, f.data) for f in firsts}), 1, "different snapshots")
        sender = asyncio.to_thread(lambda: c.send(id=tck("stream-001"), task=t["id"]))
        rests = await asyncio.gather(sender, *[r.rest() for r in readers])
        seen = rests[1:]
        check(seen[0], "no event")
        same(len({str(x) for x in seen}), 1, "different streams")
        check("TASK_STATE_COMPLETED" in seen[0][-1][1], seen[0][-1])
        for r in readers:
            r.close(reset=False)
    run(go(), 280)


# writes a line now and then until the file that the message names is there
UNTIL_TOLD = 'read -r gate; i=0; until [ -e "$gate" ]; do i=$((i+1)); echo $i; sleep 0.01; done'


@test("100 subscribers who come at any time of a long stream fold to the same Task", timeout=300)
def _():
    needs_ours("needs the exec agent")

    async def go():
        s = server(None, config=settings(agents=[agent("exec", settings={"command": UNTIL_TOLD, "input": "text", "output": "text"})]))
        gate = os.path.join(folder(), "gate")
        t = Client(s, RPC1).send(gate, config={"returnImmediately": True}).task
        pick = rng("late")

        async def come(delay):
            await asyncio.sleep(delay)
            return await Subscriber(Client(s, RPC1), "subscribe", {"id": t["id"]}).open()
        readers = await asyncio.gather(*[come(pick.random() * 0.5) for _ in range(100)])
        open(gate, "w").close()
        got = await asyncio.gather(*[r.rest() for r in readers])
        same(len({x[-1] for x in got}), 1, "different last frames")
        for frames in got:
            ids = [int(i) for i, _ in frames if i]
            same(ids, sorted(set(ids)), "ids in order, once")
    run(go(), 280)


# ---- cut and resumed ---------------------------------------------------------------------------------------------------------------

def whole(c, text):
    events = c.stream(text).rest(60)
    return events[0].body["id"], [(e.id, e.payload) for e in events]


@each("a stream is read again from every one of its ids: {}", ALL)
def _(wire):
    needs_ours("other servers have no cursors")
    c = Client(server("bench"), wire)
    task, all_ = whole(c, "chunks 30 x")
    for n, (id, _) in enumerate(all_):
        with c.subscribe(task, last=id) as s:
            same([(e.id, e.payload) for e in s.rest()], all_[n + 1:], f"after {id}")


@test("Last-Event-ID beyond the end gives a snapshot, never silence")
def _():
    needs_ours("other servers have no cursors")
    c = Client(server("tck"), RPC1)
    t = waiting(c)
    with c.open("subscribe", {"id": t["id"]}, headers=[("Last-Event-ID", "100000")]) as s:
        same(s.next(5).kind, "task", "first event")


@test("a running task, cut and resumed at 200 random points, is seen exactly once, in order", timeout=300)
def _():
    needs_ours("other servers have no cursors")
    pick = rng("cuts")

    async def go():
        s = server("bench")
        n, cuts = 20000, 200
        first = await Subscriber(Client(s, RPC1), "stream", Client(s, RPC1).params(f"chunks {n} yield x")).open()
        frame = await first.next()
        task, seen = frame.json["result"]["task"]["id"], [(frame.id, frame.data)]
        watch = asyncio.create_task((await Subscriber(Client(s, RPC1), "subscribe", {"id": task}, last=frame.id).open()).rest())
        reader, left = first, cuts
        while True:
            stop = pick.randrange(1, n // cuts)
            for _ in range(stop if left else 1 << 30):
                frame = await reader.next()
                if frame is None:
                    break
                seen.append((frame.id, frame.data))
            if frame is None:
                break
            left -= 1
            reader.close(reset=pick.random() < 0.5)
            reader = await Subscriber(Client(s, RPC1), "subscribe", {"id": task}, last=seen[-1][0]).open()
        same([int(i) for i, _ in seen], list(range(1, len(seen) + 1)), "ids")
        same(len(seen), n + 3, "events")
        same(left, 0, "cuts that were not made")
        same(seen[1:], await watch, "the events of one who was not cut")
    run(go(), 280)


@test("a finished task, read at 200 random points, gives exactly the rest", timeout=300)
def _():
    needs_ours("other servers have no cursors")
    pick = rng("finished")
    c = Client(server("bench"), RPC1)
    task, all_ = whole(c, "chunks 100 x")
    for _ in range(200):
        n = pick.randrange(len(all_))
        with c.subscribe(task, last=all_[n][0]) as s:
            same([(e.id, e.payload) for e in s.rest()], all_[n + 1:], f"after {all_[n][0]}")


@test("a reader that is cut within a frame loses nothing", timeout=120)
def _():
    needs_ours("other servers have no cursors")
    c = Client(server("bench"), RPC1)
    with c.stream("chunks 5000 yield x") as s:
        task = s.next().body["id"]
        s.stream.conn.socket.recv(1000)  # some bytes, a frame's middle for sure
        last = s.seen[-1].id
    with c.subscribe(task, last=last) as s:
        ids = [int(e.id) for e in s.rest(30)]
    same(ids, list(range(int(last) + 1, 5004)), "ids")


@each("a cursor of one wire is good on another: {}", ALL)
def _(wire):
    needs_ours("other servers have no cursors")
    s = server("bench")
    task, all_ = whole(Client(s, RPC1), "chunks 10 x")
    with Client(s, wire).subscribe(task, last=all_[4][0]) as r:
        same([e.id for e in r.rest()], [i for i, _ in all_[5:]], "ids")


@test("a cursor goes over several turns of a task")
def _():
    needs_ours("other servers have no cursors")
    c = Client(server("tck"), RPC1)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        at = s.next().id
        c.send(id=tck("input-required"), task=t["id"])
        c.send(id=tck("stream-001"), task=t["id"])
        live = [(e.id, e.payload) for e in s.rest()[1:]]
    with c.subscribe(t["id"], last=at) as s:
        events = s.rest()
    states = [e.state[11:] for e in events if e.state]
    same(states[-1], "COMPLETED", "last state")
    check("INPUT_REQUIRED" in states, states)
    same([(e.id, e.payload) for e in events], live, "what one saw who was not cut")


@test("a resumed subscription to a task that waits stays open for its next turn")
def _():
    needs_ours("other servers have no cursors")
    c = Client(server("tck"), RPC1)
    t = waiting(c)
    with c.subscribe(t["id"]) as s:
        at = s.next().id
    with c.subscribe(t["id"], last=at) as s:
        check(s.stream.silent(0.5), "nothing new yet")
        c.send(id=tck("complete-task"), task=t["id"])
        same(s.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


# ---- restarts ----------------------------------------------------------------------------------------------------------------------

@test("a finished task after kill -9 and restart: same Task, same events from every cursor [R002-33]", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("bench", store=sqlite()) as s:
        c = Client(s, RPC1)
        task, all_ = whole(c, "chunks 50 x")
        before = c.get(task).task
        s.kill()
        s.restart()
        same(c.get(task).task, before, "task")
        same(c.list(contextId=before["contextId"]).value["totalSize"], 1, "listed")
        for n in (0, 1, 2, 25, len(all_) - 2, len(all_) - 1):
            with c.subscribe(task, last=all_[n][0]) as r:
                same([(e.id, e.payload) for e in r.rest()], all_[n + 1:], f"after {all_[n][0]}")


@test("a waiting task after kill -9 and restart goes on", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("tck", store=sqlite()) as s:
        c = Client(s, RPC1)
        t = waiting(c)
        with c.subscribe(t["id"]) as r:
            at = r.next().id
        s.kill()
        s.restart()
        same(c.get(t["id"]).state, "TASK_STATE_INPUT_REQUIRED", "state")
        with c.subscribe(t["id"], last=at) as r:
            c.send("go on", id=tck("stream-001"), task=t["id"])
            events = r.rest()
        same([e.state and e.state[11:] for e in events], ["WORKING", "WORKING", None, "COMPLETED"], "what came: the question is answered, the agent works")
        with c.subscribe(t["id"], last=at) as r:
            same([(e.id, e.payload) for e in r.rest()], [(e.id, e.payload) for e in events], "the same again")


@test("a running task after kill -9 and restart has failed with metadata.error, its cursor goes on to that [R002-10]", timeout=300)
def _():
    needs_ours("needs a store that stays")
    with Server("demo", store=sqlite()) as s:
        c = Client(s, RPC1)
        r = c.stream("slow 600")  # a word per second: it is at work when we kill it
        for _ in range(4):
            at = r.next()
        task = r.seen[0].body["id"]
        s.kill()
        s.restart()
        got = c.get(task).task
        same(got["status"]["state"], "TASK_STATE_FAILED", "state")
        check(isinstance(got["metadata"]["error"], str), got.get("metadata"))
        with c.subscribe(task, last=at.id) as again:
            events = again.rest(30)
        same([int(e.id) for e in events], list(range(int(at.id) + 1, int(at.id) + 1 + len(events))), "ids")
        same((events[-1].state, events[-1].body["metadata"]["error"]), ("TASK_STATE_FAILED", got["metadata"]["error"]), "last event")


@test("a stream cut by kill -9 at random points over 10 restarts is seen exactly once, in order", timeout=300)
def _():
    needs_ours("needs a store that stays")
    pick = rng("restarts")
    with Server("demo", store=sqlite()) as s:
        c = Client(s, RPC1)
        for _ in range(10):
            r = c.stream("long 50000", context=new_id("c"))  # a kilobyte per millisecond, 3000 of them
            seen = []
            for _ in range(pick.randrange(3, 400)):
                e = r.next()
                seen.append((e.id, e.payload))
            task = r.seen[0].body["id"]
            s.kill()
            while (e := next_or_none(r)) is not None:  # what was on its way
                seen.append((e.id, e.payload))
            s.restart()
            with c.subscribe(task, last=seen[-1][0]) as again:
                seen += [(e.id, e.payload) for e in again.rest(30)]
            same([int(i) for i, _ in seen], list(range(1, len(seen) + 1)), "ids")
            check(c.get(task).state in TERMINAL, "it ended")


def next_or_none(events):
    try:
        return events.next(2)
    except Exception:
        return None


@test("SIGTERM ends streams cleanly, the tasks' cursors are good after the restart", timeout=200)
def _():
    needs_ours("needs a store that stays")
    with Server("tck", store=sqlite()) as s:
        c = Client(s, RPC1)
        t = waiting(c)
        r = c.subscribe(t["id"])
        at = r.next().id
        s.stop_well()
        same(r.next(5), None, "a clean end of the body")
        s.restart()
        with c.subscribe(t["id"], last=at) as r:
            c.send(id=tck("complete-task"), task=t["id"])
            same(r.rest()[-1].state, "TASK_STATE_COMPLETED", "last state")


@test("the fold of a stream over a restart is the Task")
def _():
    needs_ours("needs a store that stays")
    with Server("tck", store=sqlite()) as s:
        c = Client(s, RPC1)
        first = c.stream(id=tck("input-required")).rest()
        s.kill()
        s.restart()
        c.send(id=tck("stream-001"), task=first[0].body["id"])
        with c.subscribe(first[0].body["id"], last=first[-1].id) as r:
            events = first + r.rest()
        got, folded = c.get(first[0].body["id"]).task, fold(events)
        same((folded["status"], folded["artifacts"]), (got["status"], got["artifacts"]), "status and artifacts")
