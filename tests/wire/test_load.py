"""Many at once: resends, idle streams, memory. Numbers are the issue's; each test says how many it did."""
import asyncio
import os
import time

from lib.a2a import RPC1, Client, message, new_id
from lib.http import Conn
from lib.many import Pool, Subscriber, run
from lib.server import Server, agent, needs_ours, needs_plain, settings
from lib.tap import check, same, soon, test


@test("10,000 resends of one message over 100 connections start the agent once [R003-08]", timeout=600)
def _():
    needs_ours("only Dragoman knows a resend")

    async def go(s):
        c = Client(s, RPC1)
        m = message("chunks 3 x", context=new_id("ctx"))
        pool = Pool(c, 100)
        replies = await asyncio.gather(*[pool.call("send", {"message": m}) for _ in range(10000)])
        pool.close()
        bad = [r for r in replies if r.status != 200 or "result" not in r.json]
        check(not bad, bad[:1])
        tasks = [r.json["result"]["task"] for r in replies]
        same(len({t["id"] for t in tasks}), 1, "different tasks")
        same({t["status"]["state"] for t in tasks}, {"TASK_STATE_COMPLETED"}, "states")
        v = c.list(contextId=m["contextId"]).value
        same(v["totalSize"], 1, "tasks in the context")
        same(len([h for h in c.get(tasks[0]["id"]).task["history"] if h["role"] == "ROLE_USER"]), 1, "the user's messages")
    with Server("bench", config=settings(dedupe=True)) as s:
        run(go(s), 590)


@test("2,000 idle streams: each has its first events, the server stays small, all end with the server", timeout=400)
def _():
    needs_ours("a promise of ours")
    needs_plain()

    async def go(s):
        before = s.memory()
        streams = []
        for _ in range(20):
            streams += await asyncio.gather(*[Subscriber(Client(s, RPC1), "stream", Client(s, RPC1).params("hold 300 x")).open() for _ in range(100)])
        for x in streams:
            check((await x.next()) is not None, "first event")
        each = (s.memory() - before) / len(streams)
        print(f"# {each:.0f} bytes for each idle stream")
        check(each < 10 * 1024, f"{each:.0f} bytes for each")
        check(Client(s, RPC1).send("echo x").ok, "another client")
        for x in streams:
            x.close()
    with Server("bench") as s:
        run(go(s), 390)


@test("a blocking send does not keep its request", timeout=300)
def _():
    needs_ours("a promise of ours")
    needs_plain()
    with Server("bench") as s:
        c = Client(s, RPC1)
        _, method, path, body, headers = c.prepare("send", c.params("hold 600 x"))
        big = body[:-1] + b',"unknown":[' + b"12345678901234567890," * 900_000 + b"0]}"  # 19 MB, and more when parsed
        conns = []
        for n in range(6):
            conns.append(Conn(s.address))
            conns[-1].request(method, path, big.replace(b'"messageId":"m-', b'"messageId":"m%d-' % n), headers)
            soon(lambda: c.list().value["totalSize"] == n + 1, "the task", 60)
        soon(lambda: s.memory() < 128 << 20, f"RssAnon {s.memory()} while they wait", 20)
        for conn in conns:
            conn.close()


@test("idle, it needs less than 4 MiB")
def _():
    needs_ours("a promise of ours")
    needs_plain()
    with Server("bench") as s:
        check(Client(s, RPC1).send("echo x").ok, "an answer")
        check(s.memory() < 4 << 20, f"RssAnon {s.memory()}")


@test("a thousand tasks at once over fifty connections, all complete, all can be read", timeout=400)
def _():
    async def go(s):
        c = Client(s, RPC1)
        pool = Pool(c, 50)
        context = new_id("many")
        replies = await asyncio.gather(*[pool.call("send", c.params("chunks 5 x", context=context)) for _ in range(1000)])
        ids = {r.json["result"]["task"]["id"] for r in replies}
        same(len(ids), 1000, "tasks")
        got = await asyncio.gather(*[pool.call("get", {"id": i}) for i in ids])
        same({r.json["result"]["status"]["state"] for r in got}, {"TASK_STATE_COMPLETED"}, "states")
        seen, token = set(), None
        while token != "":
            v = c.list(contextId=context, pageSize=100, **({"pageToken": token} if token else {})).value
            new = {t["id"] for t in v["tasks"]}
            check(not new & seen, "a task twice")
            seen |= new
            token = v["nextPageToken"]
        same(seen, ids, "listed")
        pool.close()
    with Server("bench") as s:
        run(go(s), 390)


@test("a stream of 100,000 chunks arrives whole and in order", timeout=400)
def _():
    needs_ours("the SDK copies what it has so far at every chunk")

    async def go(s):
        n = 100000
        x = await Subscriber(Client(s, RPC1), "stream", Client(s, RPC1).params(f"chunks {n} x")).open()
        count, last = 0, 0
        while (f := await x.next()) is not None:
            count += 1
            check(int(f.id) == last + 1, f"id {f.id} after {last}")
            last = int(f.id)
        same(count, n + 3, "events")
    with Server("bench") as s:
        run(go(s), 390)


def descriptors(s):
    return len(os.listdir(f"/proc/{s.process.pid}/fd"))


def connections(port):
    """Connections of this machine to a port, in any state but TIME_WAIT."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return sum(row[2].endswith(f":{port:04X}") and row[3] != "06" for row in rows)


@test("1,000 streams of a remote agent at once on one loop: all live, canceled or left, then the same descriptors as before", timeout=200)
def _():
    needs_ours("type: a2a")

    async def go(c, s):
        began = time.monotonic()
        streams = []
        for _ in range(10):
            streams += await asyncio.gather(*[Subscriber(c, "stream", c.params("hold 300 x")).open() for _ in range(100)])
        ids = []
        for x in streams:
            frame = await x.next()
            ids.append(frame.json["result"]["task"]["id"])
            while "TASK_STATE_WORKING" not in frame.data:
                frame = await x.next()
        print(f"# {time.monotonic() - began:.1f} s until all work")
        check(time.monotonic() - began < 60, "it took more than 60 s until all work")
        check(c.send("echo x").ok, "another client")
        for x in streams[:500]:  # half of the readers leave first, the others see the end
            x.close()
        pool = Pool(c, 50)
        replies = await asyncio.gather(*[pool.call("cancel", {"id": id}) for id in ids])
        same({r.json["result"]["status"]["state"] for r in replies}, {"TASK_STATE_CANCELED"}, "states")
        for x in streams[500:]:
            check("TASK_STATE_CANCELED" in (await x.rest())[-1][1], "the end of a stream")
            x.close()
        pool.close()
    with Server("bench") as behind, \
            Server(None, config={**settings(agents=[agent("a2a", settings={"url": behind.url})]), "loops": 1}) as s:
        c = Client(s, RPC1)
        check(c.send("echo x").ok, "an answer")
        port = int(behind.url.rsplit(":", 1)[1])
        # net/client_pool.c closes connections that were idle for 4 seconds
        soon(lambda: connections(port) == 0, lambda: f"{connections(port)} connections to the agent's server", 20)
        before = descriptors(s)
        run(go(c, s), 90)
        soon(lambda: descriptors(s) == before, lambda: f"{descriptors(s)} descriptors, before {before}", 20)
        s.stop_well()
        behind.stop_well()
