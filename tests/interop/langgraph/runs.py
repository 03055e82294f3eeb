"""Graphs run in a worker process: what the server sees of them. One process for all tests of a class, runs at the same time."""
import asyncio
import importlib.metadata
import socket
import time
import unittest

from lib import tap
from lib.in_process import Connection
from lib.stand_in import Error, Worker, user

from dragoman._graph_run import Events
from dragoman.worker import Run

TOOLS = [{"name": "calc", "description": "adds", "parameters": {"type": "object"}}]
NAMES = """tokens without_model rewrapped tool_messages silent emitting with_subgraph sync_subgraph parallel inbox inbox_after_resume
outbox_message stale_outbox outbox_protobuf outbox_pydantic asks asks_twice breakpoint_before failing rejecting looping large_event
large_state large_result prints blocks_cpu slow_async slow_sync floods tools_of_caller tools_in_context narrow_schemas pydantic_state
plain_list steps delta_messages asks_in_order tool_asks""".split()


class Graphs(unittest.TestCase):
    checkpointer = "server"

    @classmethod
    def setUpClass(cls):
        cls.worker = Worker("acceptance", {n: f"./graphs.py:{n}" for n in NAMES}, checkpointer=cls.checkpointer)

    @classmethod
    def tearDownClass(cls):
        cls.worker.__exit__()

    def run_of(self, graph, input="hi", thread=None, **more):
        return self.worker.run(graph, thread or f"{self.id()}-{graph}", input, **more)

    def failed(self, graph, input="hi", **more):
        run = self.worker.start(graph, f"{self.id()}-{graph}", input, **more)
        with self.assertRaises(Error) as caught:
            run.result()
        return run, caught.exception

    def log_of(self, run):
        return [line for line in self.worker.log if line.startswith(f"{run.run} ")]


class Text(Graphs):
    def test_handshake(self):
        """initialize reports graphs, the keys of their state and the version of LangGraph"""
        agents = {a["id"]: a for a in self.worker.described["agents"]}
        self.assertEqual(agents["tokens"], {"id": "tokens", "kind": "graph", "keys": ["messages", "a2a_inbox", "a2a_outbox", "trace"]})
        self.assertEqual(agents["narrow_schemas"]["keys"], ["messages", "a2a_outbox", "trace"])
        self.assertEqual(self.worker.described["worker"]["langgraph"], importlib.metadata.version("langgraph"))
        self.assertTrue(any("a2a_inbox is in the state, but not in the input schema" in line for line in self.worker.log))

    def test_tokens(self):
        """tokens are chunks with node, step and source, and the new message is the result [R003-01 R003-19 R003-23]"""
        run = self.run_of("tokens")
        chunks = run.of("messages")
        self.assertEqual(run.text(), "Hello there friend")
        self.assertTrue(all(c["message"]["chunk"] is True and c["message"]["type"] == "ai" and c["node"] == "chat" for c in chunks))
        self.assertEqual(len({c["src"] for c in chunks}), 1)
        self.assertTrue(chunks[0]["src"].startswith("chat:"))
        self.assertEqual([(m["type"], m["content"], m.get("chunk")) for m in run.value["messages"]], [("ai", "Hello there friend", None)])
        self.assertEqual((run.value["status"], run.value["next"], run.value["interrupts"]), ("completed", [], []))
        self.assertEqual([u["nodes"] for u in run.of("updates")], [["chat"], ["post"]])

    def test_no_model(self):
        """a node without a model: its message comes whole"""
        run = self.run_of("without_model")
        self.assertEqual([(e["message"]["content"], "chunk" in e["message"]) for e in run.of("messages")], [("no model", False)])

    def test_rewrapped(self):
        """a re-wrapped message has the source of its chunks, so that the text is not shown twice [R003-27]"""
        run = self.run_of("rewrapped")
        events = run.of("messages")
        self.assertEqual((run.text(), events[-1]["message"]["content"]), ("Hello there friend", "Hello there friend"))
        self.assertEqual(len({e["src"] for e in events}), 1)
        self.assertEqual([m["content"] for m in run.value["messages"]], ["Hello there friend"])

    def test_tools(self):
        """tool messages have their type; tool calls are in the message that makes them"""
        run = self.run_of("tool_messages")
        self.assertEqual([m["type"] for m in run.value["messages"]], ["ai", "tool", "ai"])
        self.assertEqual(run.value["messages"][0]["tool_calls"][0]["name"], "look")
        self.assertEqual(run.value["messages"][1]["tool_call_id"], "call_1")

    def test_no_input_messages(self):
        """a run whose input has no message returns the messages that it made"""
        given = user("hi")
        del given["messages"]
        self.assertEqual([m["content"] for m in self.run_of("without_model", given).value["messages"]], ["no model"])

    def test_silent(self):
        """a run that adds no message has none in the result, also after one that did [R003-21]"""
        self.assertEqual(self.run_of("silent").value["messages"], [])
        thread = self.id()
        self.run_of("tokens", "one", thread)
        second = self.run_of("tokens", "two", thread)
        self.assertEqual(len(second.value["messages"]), 1)

    def test_parallel(self):
        """parallel model calls have different sources"""
        run = self.run_of("parallel")
        texts = {}
        for e in run.of("messages"):
            texts[e["src"].split(":")[0]] = texts.get(e["src"].split(":")[0], "") + e["message"]["content"]
        self.assertEqual(texts, {"left": "left one two", "right": "right one two"})

    def test_subgraph(self):
        """tokens and events from inside a subgraph arrive, with its namespace [R003-28]"""
        run = self.run_of("with_subgraph")
        self.assertEqual(run.text(), "inner words")
        self.assertEqual([e["a2a"]["name"] for e in run.of("custom")], ["inner"])
        inside = [e for e in run.events if e["type"] in ("messages", "custom")]
        self.assertTrue(all(len(e["ns"]) == 1 and e["ns"][0].startswith("outer:") for e in inside))
        self.assertEqual([m["content"] for m in run.value["messages"]], ["inner words"])
        for e in run.of("messages"):
            self.assertTrue(e["src"].startswith(inside[0]["ns"][0] + "|inner_chat:"))

    def test_sync_subgraph(self):
        """a sync node that calls subgraph.invoke() uses the checkpointer from its thread"""
        self.assertEqual(self.run_of("sync_subgraph").value["messages"][0]["content"], "from a sync subgraph")

    def test_emit(self):
        """the usage example: each emit function is one custom event, in order [R003-28 R003-30 R003-39]"""
        run = self.run_of("emitting")
        self.assertEqual([e.get("a2a", {}).get("type") for e in run.of("custom")], ["artifact", "artifact", "message", "message", "task_metadata", None])
        self.assertEqual(run.of("custom")[0]["a2a"]["url"], "https://example.com/report.pdf")
        self.assertEqual(run.of("custom")[1]["a2a"]["data"], {"status": "success", "results": [1, 2]})
        self.assertEqual(run.of("custom")[4]["a2a"], {"type": "task_metadata", "metadata": {"progress": 100}})
        self.assertEqual(run.value["messages"], [])

    def test_nan(self):
        """NaN, a lone surrogate and a set in an author's own event are made JSON"""
        self.assertEqual(self.run_of("emitting").of("custom")[-1], {"own": None, "bad": "?", "set": [1]})

    def test_values(self):
        """values are sent only if the server asks for them [R003-40]"""
        self.assertEqual(self.run_of("tokens").of("values"), [])
        run = self.run_of("tokens", thread=self.id() + "2", forward=["values"])
        self.assertEqual([len(v["messages"]) for v in run.of("values")], [1, 2, 2])
        self.assertEqual(run.value["values"]["trace"], ["post"])


class Boxes(Graphs):
    def test_inbox(self):
        """a2a_inbox is readable by key and by attribute, in both ways of writing [R003-06]"""
        self.assertEqual(self.run_of("inbox").value["messages"][0]["content"], "True hi c1 x")

    def test_human(self):
        """the input is one HumanMessage with the id of the A2A message, as an object also in a plain list [R003-05]"""
        self.assertEqual(self.run_of("plain_list").value["messages"][0]["content"], "HumanMessage")
        given = user("hi there")
        thread = self.id()
        self.run_of("tokens", given, thread)
        state = self.worker.state("tokens", thread, values=True)
        human = state["values"]["messages"][0]
        self.assertEqual((human["type"], human["content"], human["id"]), ("human", "hi there", given["messages"][0]["id"]))
        self.assertEqual(state["messageIds"][0], given["messages"][0]["id"])

    def test_twice(self):
        """the same messageId again replaces the HumanMessage: the thread has it once [R003-07]"""
        given, thread = user("hi"), self.id()
        self.run_of("silent", given, thread)
        self.run_of("silent", given, thread)
        self.assertEqual(self.worker.state("silent", thread)["messageIds"], [given["messages"][0]["id"]])

    def test_outbox(self):
        """an outbox that a node wrote is in the result, whole [R003-10 R003-18]"""
        run = self.run_of("outbox_message")
        self.assertEqual((run.value["hasOutbox"], run.value["outbox"]["parts"]), (True, [{"kind": "data", "data": {"x": 1}}]))
        self.assertEqual(run.of("updates"), [{"nodes": ["write_message"], "outbox": True}])

    def test_stale(self):
        """an outbox of an earlier run is not in the result, whether or not the input cleared it [R003-10]"""
        thread = self.id()
        self.assertTrue(self.run_of("stale_outbox", "write", thread).value["hasOutbox"])
        second = self.run_of("stale_outbox", "no", thread)
        self.assertEqual((second.value["hasOutbox"], second.value["outbox"]), (False, None))
        self.run_of("stale_outbox", "write", thread)
        given = user("no")
        del given["a2a_outbox"]
        self.assertEqual(self.run_of("stale_outbox", given, thread).value["outbox"], None)

    def test_objects(self):
        """protobuf and pydantic objects in the outbox are JSON in the result [R003-10]"""
        self.assertEqual(self.run_of("outbox_protobuf").value["outbox"], {"messageId": "p1", "role": "ROLE_AGENT", "parts": [{"text": "from protobuf"}]})
        self.assertEqual(self.run_of("outbox_pydantic").value["outbox"], {"messageId": "p2", "parts": [{"kind": "text", "text": "from pydantic"}]})

    def test_schemas(self):
        """an outbox outside the output schema is found, with a TypedDict and with a pydantic model [R003-10]"""
        self.assertEqual(self.run_of("narrow_schemas").value["outbox"]["messageId"], "out-1")
        self.assertEqual(self.run_of("pydantic_state").value["outbox"]["parts"], [{"text": "A2AInbox m"}])

    def test_caller(self):
        """the caller's tools are in the config, with its task and principal; a context schema gets them, too"""
        run = self.run_of("tools_of_caller", tools=TOOLS, principal="bob")
        self.assertEqual(run.value["messages"][0]["content"], "['calc'] True t1 bob")
        self.assertEqual(self.run_of("tools_in_context", tools=TOOLS).value["messages"][0]["content"], "calc user")


class Interrupts(Graphs):
    def asked(self, graph, thread):
        run = self.run_of(graph, "hi", thread)
        self.assertEqual(run.value["status"], "interrupted")
        return run.value["interrupts"]

    def test_text(self):
        """an interrupt ends the run; its id resumes it, and nodes before it do not run again"""
        thread = self.id()
        asked = self.asked("asks", thread)
        self.assertEqual([i["value"] for i in asked], ["Your name?"])
        run = self.run_of("asks", user("Bob"), thread, resume={asked[0]["id"]: "Bob"})
        self.assertEqual((run.value["status"], run.value["messages"][-1]["content"]), ("completed", "Hi Bob"))
        self.assertEqual(self.worker.state("asks", thread, values=True)["values"]["trace"], ["post"])

    def test_messages(self):
        """the answer to a question is in the transcript once, and is not a new message of the run"""
        thread = self.id()
        asked = self.asked("asks", thread)
        given = user("Bob")
        run = self.run_of("asks", given, thread, resume={asked[0]["id"]: "Bob"})
        self.assertEqual([m["type"] for m in run.value["messages"]], ["ai"])
        self.assertEqual(self.worker.state("asks", thread)["messageIds"].count(given["messages"][0]["id"]), 1)

    def test_tool(self):
        """the answer to a question of a tool is not put between the call and its result"""
        thread = self.id()
        asked, = self.asked("tool_asks", thread)
        run = self.run_of("tool_asks", user("yes"), thread, resume={asked["id"]: "yes"})
        self.assertEqual((run.value["status"], run.value["messages"][-1]["content"]), ("completed", "human ai tool"))

    def test_falsy(self):
        """a resume value may be empty, zero, false, null or an empty object"""
        for value in ("", 0, False, None, {}, []):
            thread = f"{self.id()}{value!r}"
            asked = self.asked("asks", thread)
            run = self.run_of("asks", None, thread, resume={asked[0]["id"]: value})
            self.assertEqual(run.value["messages"][-1]["content"], f"Hi {value}")

    def test_parallel(self):
        """two questions at once: both ids are reported, and they are answered together or one after the other"""
        thread = self.id()
        asked = {i["value"]["prompt"]: i["id"] for i in self.asked("asks_twice", thread)}
        self.assertEqual(set(asked), {"A?", "B?"})
        run = self.run_of("asks_twice", None, thread, resume={asked["A?"]: "1"})
        self.assertEqual([i["id"] for i in run.value["interrupts"]], [asked["B?"]])
        run = self.run_of("asks_twice", None, thread, resume={asked["B?"]: "2"})
        self.assertEqual(run.value["status"], "completed")
        both = self.id() + "both"
        asked = [i["id"] for i in self.asked("asks_twice", both)]
        self.run_of("asks_twice", None, both, resume=dict(zip(asked, "xy")))
        self.assertEqual(sorted(t[2:] for t in self.worker.state("asks_twice", both, values=True)["values"]["trace"]), ["'x'", "'y'"])

    def test_in_order(self):
        """two questions of one node, one after the other: each answer is in the transcript, the node sees the newest inbox [R003-06]"""
        thread = self.id()
        asked = self.asked("asks_in_order", thread)
        for text, status in (("one", "interrupted"), ("two", "completed")):
            given = user(text)
            run = self.run_of("asks_in_order", given, thread, resume={asked[0]["id"]: text})
            self.assertEqual(run.value["status"], status)
            asked = run.value["interrupts"]
        self.assertEqual(run.value["messages"][0]["content"], f"one two {given['messages'][0]['id']}")
        texts = [m["content"] for m in self.worker.state("asks_in_order", thread, values=True)["values"]["messages"]]
        self.assertEqual(texts[:3], ["hi", "one", "two"])

    def test_unknown(self):
        """an interrupt that is not pending is refused, on an interrupted, a finished and an unknown thread"""
        thread = self.id()
        asked = self.asked("asks", thread)
        for name, key in ((thread, "0" * 32), (self.id() + "none", asked[0]["id"])):
            with self.assertRaises(Error) as caught:
                self.run_of("asks", None, name, resume={key: "x"})
            self.assertEqual(caught.exception.code, -32602)
        self.run_of("asks", None, thread, resume={asked[0]["id"]: "x"})
        with self.assertRaises(Error) as caught:
            self.run_of("asks", None, thread, resume={asked[0]["id"]: "again"})
        self.assertIn("is not pending on this thread; pending: none", str(caught.exception))

    def test_inbox(self):
        """the inbox of the answer has attributes after a resume [R003-06]"""
        thread = self.id()
        asked = self.asked("inbox_after_resume", thread)
        given = user("Bob")
        run = self.run_of("inbox_after_resume", given, thread, resume={asked[0]["id"]: "Bob"})
        self.assertEqual(run.value["messages"][-1]["content"], f"Bob A2AInbox {given['messages'][0]['id']}")
        again = self.id() + "2"  # without a new inbox: the one of the checkpoint
        asked = self.asked("inbox_after_resume", again)
        run = self.run_of("inbox_after_resume", None, again, resume={asked[0]["id"]: "Bob"})
        self.assertRegex(run.value["messages"][-1]["content"], r"^Bob A2AInbox m\d+$")

    def test_breakpoint(self):
        """a static breakpoint is interrupted without an id, and goes on with a null input"""
        thread = self.id()
        run = self.run_of("breakpoint_before", "hi", thread)
        self.assertEqual((run.value["status"], run.value["interrupts"], run.value["next"]), ("interrupted", [], ["post"]))
        self.assertEqual(self.run_of("breakpoint_before", None, thread).value["status"], "completed")

    def test_state(self):
        """state reports the pending interrupts and what is next; an unknown thread does not exist"""
        thread = self.id()
        asked = self.asked("asks", thread)
        state = self.worker.state("asks", thread)
        self.assertEqual((state["exists"], state["next"], state["interrupts"]), (True, ["ask_text"], asked))
        self.assertEqual(self.worker.state("asks", self.id() + "none"), {"exists": False, "next": [], "interrupts": [], "messageIds": []})


class Update(Graphs):
    """state/update: messages without running a node."""

    def update(self, graph, thread, *messages, **more):
        return self.worker.call("state/update", {"agent": graph, "thread": thread, "messages": list(messages), **more})

    def texts(self, graph, thread):
        return [m["content"] for m in self.worker.state(graph, thread, values=True)["values"]["messages"]]

    def test_append(self):
        """an AI message with the outbound id is appended, and the next run sees it [R003-16]"""
        thread = self.id()
        self.run_of("outbox_message", "hi", thread)
        self.assertEqual(self.update("outbox_message", thread, {"type": "ai", "content": "sent", "id": "out-1"}), {})
        state = self.worker.state("outbox_message", thread)
        self.assertEqual((state["messageIds"][-1], state["next"]), ("out-1", []))
        run = self.run_of("outbox_message", "again", thread)
        self.assertEqual(run.value["messages"], [])
        self.assertEqual(self.texts("outbox_message", thread), ["hi", "sent", "again"])

    def test_same(self):
        """the same update again changes nothing; the same id with another text replaces it"""
        thread = self.id()
        self.run_of("outbox_message", "hi", thread)
        for text in ("sent", "sent", "changed"):
            self.update("outbox_message", thread, {"type": "ai", "content": text, "id": "out-1"})
        self.assertEqual(self.texts("outbox_message", thread), ["hi", "changed"])

    def test_tools(self):
        """tool calls and tool results of an outbox become AIMessage.tool_calls and ToolMessage [R003-16]"""
        thread = self.id()
        self.run_of("outbox_message", "hi", thread)
        self.update("outbox_message", thread, {"type": "ai", "content": "", "id": "a", "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}]},
                    {"type": "tool", "content": "42", "id": "b", "tool_call_id": "c1"})
        messages = self.worker.state("outbox_message", thread, values=True)["values"]["messages"]
        self.assertEqual([(m["type"], m.get("tool_calls", [{}])[0].get("name"), m.get("tool_call_id")) for m in messages[1:]], [("ai", "f", None), ("tool", None, "c1")])

    def test_parallel(self):
        """after two parallel last nodes, where update_state is ambiguous [R003-16]"""
        thread = self.id()
        self.run_of("parallel", "hi", thread)
        self.update("parallel", thread, {"type": "ai", "content": "sent", "id": "out"})
        state = self.worker.state("parallel", thread)
        self.assertEqual((state["messageIds"][-1], state["next"]), ("out", []))
        self.assertEqual(self.run_of("parallel", "again", thread).value["status"], "completed")

    def test_interrupted(self):
        """on an interrupted thread: next and the interrupt's id stay, and it can be answered [R003-16]"""
        thread = self.id()
        before = self.run_of("asks", "hi", thread).value
        self.update("asks", thread, {"type": "ai", "content": "sent", "id": "out"})
        state = self.worker.state("asks", thread)
        self.assertEqual((state["next"], state["interrupts"]), (before["next"], before["interrupts"]))
        run = self.run_of("asks", None, thread, resume={before["interrupts"][0]["id"]: "Bob"})
        self.assertEqual((run.value["status"], self.texts("asks", thread)), ("completed", ["hi", "sent", "Hi Bob"]))

    def test_skip(self):
        """checkSkipText: a text that the newest AI message has already is not added"""
        thread = self.id()
        self.run_of("tokens", "hi", thread)
        self.update("tokens", thread, {"type": "ai", "content": "Hello there friend", "id": "out"}, checkSkipText=True)
        self.assertNotIn("out", self.worker.state("tokens", thread)["messageIds"])
        self.update("tokens", thread, {"type": "ai", "content": "Another", "id": "out"}, checkSkipText=True)
        self.assertIn("out", self.worker.state("tokens", thread)["messageIds"])

    def test_other_states(self):
        """a state without a reducer, and one whose messages are a DeltaChannel"""
        for graph in ("plain_list", "delta_messages"):
            thread = self.id() + graph
            self.run_of(graph, "hi", thread)
            self.update(graph, thread, {"type": "ai", "content": "sent", "id": "out"})
            self.assertEqual(self.worker.state(graph, thread)["messageIds"][-1], "out")
            self.run_of(graph, "again", thread)
            self.assertIn("sent", self.texts(graph, thread)) if graph == "delta_messages" else None

    def test_wrong(self):
        """an unknown thread and invalid messages are refused"""
        for thread, message in ((self.id() + "none", {"type": "ai", "content": "x"}), (self.id(), {"type": "unknown", "content": "x"})):
            with self.assertRaises(Error) as caught:
                self.update("tokens", thread, message)
            self.assertEqual(caught.exception.code, -32602)


class InMemory(Update):
    """The same with LangGraph's own checkpointer."""
    checkpointer = "memory"


class Trouble(Graphs):
    def test_raises(self):
        """an exception is -32000 with its type and traceback in the data"""
        run, error = self.failed("failing")
        self.assertEqual((error.code, str(error), error.data["type"]), (-32000, "secret detail", "ValueError"))
        self.assertIn("in raises", error.data["traceback"])

    def test_retry(self):
        """a failed thread goes on with a null input"""
        thread = f"{self.id()}-failing"
        self.failed("failing")
        with self.assertRaises(Error) as caught:
            self.run_of("failing", None, thread)
        self.assertEqual(str(caught.exception), "secret detail")

    def test_rejected(self):
        """TaskRejected is -32005 with the author's text"""
        _, error = self.failed("rejecting")
        self.assertEqual((error.code, str(error)), (-32005, "not my job"))

    def test_recursion(self):
        """the recursion limit of the request holds, and is -32001"""
        run, error = self.failed("looping", recursionLimit=7)
        self.assertEqual(error.code, -32001)
        self.assertEqual(len(run.of("updates")), 7)

    def test_large_event(self):
        """an event over the line limit is -32010 of its run; the worker and other runs go on"""
        _, error = self.failed("large_event", str(9 << 20))
        self.assertEqual(error.code, -32010)
        self.assertIn("the limit is 8388608", str(error))
        self.assertEqual(self.run_of("tokens").value["status"], "completed")

    def test_large_result(self):
        """a message over the line limit is -32010 of its run"""
        self.assertEqual(self.failed("large_result", str(9 << 20))[1].code, -32010)

    def test_large_state(self):
        """a state of 9 MiB is stored in parts and read again"""
        thread = self.id()
        self.assertEqual(self.run_of("large_state", str(9 << 20), thread).value["status"], "completed")
        self.assertEqual(self.run_of("large_state", "3", thread).value["status"], "completed")
        self.assertEqual((self.worker.store.uploads, self.worker.store.downloads), ({}, {}))

    def test_prints(self):
        """what a node prints or logs is in the log with the id of its run, and not on the connection"""
        run = self.run_of("prints")
        self.assertEqual([line.split(": ", 1)[1] for line in self.log_of(run)],
                         ["printed by a node", '{"jsonrpc":"2.0"}', "logged by a node", "to stderr"])

    def test_busy(self):
        """a second run on a busy thread is -32002, and state/update, too"""
        thread = self.id()
        run = self.worker.start("slow_async", thread, "hi")
        run.wait_for(lambda r: r.of("custom"))
        for method, params in (("run", {"run": "other", "agent": "tokens", "thread": thread, "input": {}}),
                               ("state/update", {"agent": "tokens", "thread": thread, "messages": []})):
            with self.assertRaises(Error) as caught:
                self.worker.call(method, params)
            self.assertEqual(caught.exception.code, -32002)
        self.worker.notify("cancel", {"run": run.run})
        self.assertEqual(run.result()["status"], "cancelled")

    def test_cancel(self):
        """cancel during an async node, a sync node and before the first event is answered; the thread goes on later"""
        for graph in ("slow_async", "slow_sync"):
            thread = self.id() + graph
            run = self.worker.start(graph, thread, "hi")
            run.wait_for(lambda r: r.of("custom"))
            self.worker.notify("cancel", {"run": run.run})
            self.assertEqual(run.result(10)["status"], "cancelled")
            state = self.worker.state(graph, thread)
            self.assertEqual(state["next"], ["wait_async" if graph == "slow_async" else "wait_sync"])
        run = self.worker.start("slow_async", self.id() + "early", "hi")
        self.worker.notify("cancel", {"run": run.run})
        self.assertEqual(run.result(10)["status"], "cancelled")
        self.assertEqual(self.run_of("tokens", "hi", self.id() + "slow_async").value["status"], "completed")

    def test_blocks(self):
        """a sync node that uses the CPU does not stop other runs and pings"""
        run = self.worker.start("blocks_cpu", self.id(), "hi")
        self.worker.call("ping", {}, seconds=30)
        self.assertEqual(self.run_of("tokens").value["status"], "completed")
        self.assertEqual(run.result()["messages"][0]["content"], "burnt")

    def test_unknown(self):
        """an unknown graph, a missing thread and a continued thread without state are -32602"""
        for params in ({"agent": "nothing", "thread": "t", "input": {}}, {"agent": "tokens", "input": {}}, {"agent": "tokens", "thread": "unknown thread", "input": None}):
            with self.assertRaises(Error) as caught:
                self.worker.call("run", {"run": f"x{len(params)}{params.get('agent')}", **params})
            self.assertEqual(caught.exception.code, -32602)


class Load(unittest.TestCase):
    def test_many(self):
        """200 runs, 64 at a time, each with its own events in order"""
        with Worker("acceptance", {"tokens": "./graphs.py:tokens"}) as worker:
            waiting = [f"t{i}" for i in range(200)]
            active, done = [], []
            while waiting or active:
                while waiting and len(active) < 64:
                    active.append(worker.start("tokens", waiting.pop(), "hi"))
                active[0].result()
                done += [r for r in active if r.is_done()]
                active = [r for r in active if not r.is_done()]
            self.assertEqual(len(done), 200)
            self.assertEqual({(r.result()["status"], r.text()) for r in done}, {("completed", "Hello there friend")})

    def test_too_many(self):
        """the run beyond maxRuns is -32003"""
        with Worker("acceptance", {"slow_async": "./graphs.py:slow_async"}, checkpointer="memory") as worker:
            runs = [worker.start("slow_async", f"t{i}", "hi") for i in range(worker.described["maxRuns"])]
            with self.assertRaises(Error) as caught:
                worker.run("slow_async", "one more", "hi")
            self.assertEqual(caught.exception.code, -32003)
            self.assertFalse(any(r.is_done() for r in runs))

    def test_slow_reader(self):
        """nothing is lost while the server does not read"""
        with Worker("acceptance", {"floods": "./graphs.py:floods"}, checkpointer="memory") as worker:
            worker.reading.clear()
            worker.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            run = worker.start("floods", "t", "hi")
            time.sleep(2)
            worker.reading.set()
            self.assertEqual(run.result()["status"], "completed")
            self.assertEqual(run.text(), " ".join(str(i) for i in range(3000)))

    def test_join(self):
        """while the socket is full, adjacent text chunks of one model call are joined; everything else stays as it is"""
        async def send(*chunks):
            connection = Connection()
            connection.full, room = True, asyncio.Event()
            connection.is_full, connection.drain = lambda: connection.full, room.wait
            events = Events(Run(connection, {"run": "r"}))
            for src, message in chunks:
                await events.send("messages", {"message": {"type": "ai", **message}, "node": "n", "step": 1, "src": src}, [])
            sent = len(connection.sent)
            connection.full = False
            room.set()
            await asyncio.sleep(0.01)
            return sent, [(e["seq"], e["data"]["src"], e["data"]["message"]["content"]) for e in connection.sent]

        def chunk(text, **more):
            return {"content": text, "id": "x", "chunk": True, **more}
        made = asyncio.run(send(("a", chunk("one ")), ("a", chunk("two")), ("b", chunk("three")), ("b", {"content": "whole", "id": "y"}), ("a", chunk("four")),
                                ("a", chunk("", usage_metadata={"total_tokens": 1}))))
        self.assertEqual(made, (0, [(0, "a", "one two"), (1, "b", "three"), (2, "b", "whole"), (3, "a", "four"), (4, "a", "")]))
        self.assertEqual(len(asyncio.run(send(*[("a", chunk("x" * 1000)) for _ in range(130)]))[1]), 2)

    def test_threads(self):
        """thirty sync nodes wait at the same time"""
        with Worker("acceptance", {"slow_sync": "./graphs.py:slow_sync"}, checkpointer="memory") as worker:
            runs = [worker.start("slow_sync", f"t{i}", "hi") for i in range(30)]
            for run in runs:
                run.wait_for(lambda r: r.of("custom"), 15)

    def test_drain(self):
        """shutdown ends a graph at its next step: status drained, and the next worker goes on there"""
        with Worker("acceptance", {"slow": "./graphs.py:slow_then"}) as worker:
            run = worker.start("slow", "t", "hi")
            run.wait_for(lambda r: r.of("custom"))
            worker.call("shutdown", {"graceMs": 5000})
            result = run.result()
            self.assertEqual((result["status"], result["next"]), ("drained", ["post"]))
            self.assertEqual(worker.process.wait(20), 0)
        with Worker("acceptance", {"slow": "./graphs.py:slow_then"}, store=worker.store) as second:
            self.assertEqual(second.run("slow", "t", None).value["status"], "completed")
            self.assertEqual(second.state("slow", "t", values=True)["values"]["trace"], ["short", "post"])


del Graphs
if __name__ == "__main__":
    tap.main()
