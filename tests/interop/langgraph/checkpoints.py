"""The checkpointer on the server's store: LangGraph's conformance tests, values of every size, the inbox and the outbox."""
import asyncio
import os
import subprocess
import sys
import unittest
import uuid

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from lib import TREE, tap
from lib.in_process import Connection
from lib.stand_in import Refused, Store

from dragoman._checkpointer import CheckpointError, ServerSaver
from dragoman.langgraph import A2AInbox


def config(thread, **more):
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}


def checkpoint(**values):
    from langgraph.checkpoint.base.id import uuid6
    return {"v": 4, "id": str(uuid6(clock_seq=-1)), "ts": "", "channel_values": values, "channel_versions": {k: 1 for k in values}, "versions_seen": {}}


class Conformance(unittest.TestCase):
    """Of langgraph-checkpoint-conformance. Each test of it is one test here."""


def conformance_tests():
    @checkpointer_test(name="ServerSaver")
    async def server_saver():
        yield ServerSaver(Connection())
    outcome = {}

    async def all_of_it():
        from langgraph.checkpoint.conformance.report import ProgressCallbacks
        return await validate(server_saver, progress=ProgressCallbacks(
            on_test_result=lambda capability, name, passed, error: outcome.setdefault((capability, name), error if not passed else None)))
    report = asyncio.run(all_of_it())

    def one(error):
        return lambda self: self.assertIsNone(error, error)
    for (capability, name), error in outcome.items():
        test = one(error)
        test.__doc__ = f"conformance: {capability}: {name[len('test_'):].replace('_', ' ')}"
        setattr(Conformance, f"test_{capability}_{name}", test)

    def complete(self):
        """conformance: every base and extended capability is detected and passes"""
        self.assertEqual({c.value for c in ALL_CAPABILITIES}, set(report.results))
        self.assertEqual([c for c, r in report.results.items() if not (r.detected and r.passed)], [])
        self.assertGreater(len(outcome), 60)
    setattr(Conformance, "test_zz_complete", complete)


class Values(unittest.IsolatedAsyncioTestCase):
    async def test_parts(self):
        """a checkpoint over the line limit travels in parts, both ways, and leaves no blob behind"""
        store = Store(inline=30000)
        saver = ServerSaver(Connection(store, max_line=64 << 10))
        stored = await saver.aput(config("t"), checkpoint(big="x" * 500000, small="y"), {"step": 1}, {"big": 1})
        await saver.aput_writes(stored, [(f"c{i}", "z" * (40000 if i % 3 else 10)) for i in range(30)], "task")
        saved = await saver.aget_tuple(config("t"))
        self.assertEqual((len(saved.checkpoint["channel_values"]["big"]), saved.metadata["step"]), (500000, 1))
        self.assertEqual(sorted((c, len(v)) for _, c, v in saved.pending_writes), sorted((f"c{i}", 40000 if i % 3 else 10) for i in range(30)))
        self.assertGreater(store.calls.count("blob/write"), 10)
        self.assertEqual((store.uploads, store.downloads), ({}, {}))

    async def test_together(self):
        """eight large checkpoints at the same time do not need more blobs than the server allows"""
        store = Store()
        saver = ServerSaver(Connection(store, max_line=64 << 10))
        await asyncio.gather(*(saver.aput(config(f"t{i}"), checkpoint(big=os.urandom(200000)), {}, {"big": 1}) for i in range(8)))
        await asyncio.gather(*(saver.aput_writes(config("t0", checkpoint_id="x"), [("c", os.urandom(100000))] * 12, f"k{i}") for i in range(8)))
        self.assertEqual((len(store.rows), len(store.writes["t0", "", "x"]), store.uploads), (8, 96, {}))

    async def test_limit(self):
        """a checkpoint over 64 MiB is refused with its size, before it is sent"""
        store = Store()
        with self.assertRaisesRegex(CheckpointError, r"the checkpoint has \d+ bytes; the limit is 67108864"):
            await ServerSaver(Connection(store)).aput(config("t"), checkpoint(big=b"x" * (65 << 20)), {}, {"big": 1})
        self.assertEqual(store.calls, [])

    async def test_failure(self):
        """an upload that fails closes its blobs; a store that fails once is asked again, unless the request has consumed blobs"""
        store = Store()
        saver = ServerSaver(Connection(store, max_line=64 << 10))
        original, failures = store.checkpoint_put, [Refused(-32602, "no such thread")]

        def put(**params):
            if failures:
                raise failures.pop(0)
            return original(**params)
        store.checkpoint_put = put
        with self.assertRaisesRegex(CheckpointError, "checkpoint/put: no such thread"):
            await saver.aput(config("t"), checkpoint(big="x" * 100000), {}, {"big": 1})
        self.assertEqual(store.uploads, {})
        failures[:] = [Refused(-32603, "disk full")]
        with self.assertRaisesRegex(CheckpointError, "checkpoint/put: disk full"):  # its blobs are consumed: it cannot be repeated
            await saver.aput(config("t"), checkpoint(big="x" * 100000), {}, {"big": 1})
        self.assertEqual((store.uploads, failures), ({}, []))
        failures[:] = [Refused(-32603, "disk full")]
        await saver.aput(config("t"), checkpoint(small="x"), {}, {"small": 1})
        self.assertEqual(len(store.rows), 1)

    async def test_threads(self):
        """the sync methods work in threads, and on the event loop they say what to do instead"""
        saver = ServerSaver(Connection())

        def work():
            stored = saver.put(config("t"), checkpoint(a=1), {"source": "loop"}, {"a": 1})
            saver.put_writes(stored, [("a", 2)], "k")
            saver.copy_thread("t", "t:copy")
            found = [s.checkpoint["channel_values"] for s in saver.list(config("t:copy"))]
            return saver.get_tuple(config("t")).pending_writes, found
        self.assertEqual(await asyncio.to_thread(work), ([("k", "a", 2)], [{"a": 1}]))
        with self.assertRaisesRegex(RuntimeError, "await graph.ainvoke"):
            saver.get_tuple(config("t"))

    async def test_list(self):
        """a list over several pages and namespaces has each checkpoint once, newest first"""
        saver = ServerSaver(Connection())
        made = []
        for i in range(7):
            one = checkpoint(i=i)
            made.append(one["id"])
            await saver.aput({"configurable": {"thread_id": "t", "checkpoint_ns": f"n{i % 2}"}}, one, {"step": i}, {"i": 1})
        found = [s.checkpoint["id"] async for s in saver.alist({"configurable": {"thread_id": "t"}})]
        self.assertEqual(found, made[::-1])
        self.assertEqual([s.metadata["step"] async for s in saver.alist(None, filter={"step": 3})], [3])
        self.assertEqual([s.metadata["step"] async for s in saver.alist({"configurable": {"thread_id": "t"}}, limit=3)], [6, 5, 4])

    async def test_list_part(self):
        """a list that is not read to its end leaves no blobs open"""
        store = Store(inline=1)
        saver = ServerSaver(Connection(store))
        for i in range(4):
            await saver.aput(config("t"), checkpoint(i=i), {"step": i}, {"i": 1})
        saved = saver.alist(config("t"))
        self.assertEqual((await saved.__anext__()).metadata["step"], 3)
        self.assertNotEqual(store.downloads, {})
        await saved.aclose()
        self.assertEqual(store.downloads, {})
        self.assertEqual([s.metadata["step"] async for s in saver.alist(config("t"), limit=1, filter={"step": 1})], [1])
        self.assertEqual(store.downloads, {})

    async def test_prune(self):
        """prune leaves a thread whose DeltaChannel is rebuilt from older checkpoints"""
        saver = ServerSaver(Connection())
        for thread, metadata in (("plain", {}), ("delta", {"counters_since_delta_snapshot": {"messages": (1, 1)}})):
            for _ in range(3):
                await saver.aput(config(thread), checkpoint(a=1), metadata, {"a": 1})
        await saver.aprune(["plain", "delta"])
        self.assertEqual([len([s async for s in saver.alist(config(t))]) for t in ("plain", "delta")], [1, 3])


STRICT = """
import asyncio
from lib import tap
from lib.in_process import Connection, loaded, run
from lib.stand_in import user
from langgraph.checkpoint.serde import _msgpack
assert _msgpack.STRICT_MSGPACK_ENABLED

async def main():
    async with loaded("acceptance", {"g": "./graphs.py:inbox_after_resume", "p": "./graphs.py:outbox_pydantic"}) as agents:
        first = await run(agents, "g", "t", "hi")
        given = user("Bob")
        second = await run(agents, "g", "t", given, resume={first["interrupts"][0]["id"]: "Bob"})
        print(second["messages"][-1]["content"] == f"Bob A2AInbox {given['a2a_inbox']['message']['messageId']}", second["status"])
        print((await run(agents, "p", "t2", "hi"))["outbox"])
asyncio.run(main())
"""


class Objects(unittest.IsolatedAsyncioTestCase):
    async def test_inbox(self):
        """the inbox of a stored checkpoint has attributes again: in its channel, in a write, in the input, in a Send [R003-06]"""
        from langgraph.types import Send
        saver = ServerSaver(Connection())
        inbox = A2AInbox({"message": {"messageId": "m"}})
        stored = await saver.aput(config("t"), checkpoint(a2a_inbox=inbox, __start__={"a2a_inbox": inbox}), {}, {"a2a_inbox": 1})
        await saver.aput_writes(stored, [("a2a_inbox", inbox), ("__pregel_tasks", Send("n", {"a2a_inbox": inbox}))], "k")
        saved = await saver.aget_tuple(config("t"))
        values, writes = saved.checkpoint["channel_values"], {c: v for _, c, v in saved.pending_writes}
        for found in (values["a2a_inbox"], values["__start__"]["a2a_inbox"], writes["a2a_inbox"], writes["__pregel_tasks"].arg["a2a_inbox"]):
            self.assertIsInstance(found, A2AInbox)
            self.assertEqual((found.message.message_id, found["message"]["messageId"]), ("m", "m"))

    def test_strict(self):
        """LANGGRAPH_STRICT_MSGPACK: the inbox has attributes after a resume, an outbox model is stored [R003-06 R003-10]"""
        p = subprocess.run([sys.executable, "-c", STRICT], cwd=os.path.dirname(os.path.abspath(__file__)), encoding="utf-8", stdout=subprocess.PIPE,
                           env={**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": os.path.join(TREE, "python")}, timeout=120)
        self.assertEqual(p.stdout, "True completed\n{'messageId': 'p2', 'parts': [{'kind': 'text', 'text': 'from pydantic'}]}\n")

    async def test_protobuf(self):
        """protobuf and pydantic objects in a2a_outbox are stored as JSON [R003-10]"""
        from a2a.types import Message, Part
        saver = ServerSaver(Connection())
        made = Message(message_id="p", parts=[Part(text="x")])
        stored = await saver.aput(config("t"), checkpoint(a2a_outbox=made), {}, {"a2a_outbox": 1})
        await saver.aput_writes(stored, [("a2a_outbox", made)], str(uuid.uuid4()))
        saved = await saver.aget_tuple(config("t"))
        expected = {"messageId": "p", "parts": [{"text": "x"}]}
        self.assertEqual((saved.checkpoint["channel_values"]["a2a_outbox"], saved.pending_writes[0][2]), (expected, expected))


if __name__ == "__main__":
    conformance_tests()
    tap.main()
