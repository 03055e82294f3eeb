"""What the worker does with less work in the usual case gives what it gives otherwise."""
import operator
import random
import unittest
from typing import Annotated, Any, List

from langchain_core.messages import AIMessageChunk, AnyMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from lib import tap
from lib.in_process import Connection
from typing_extensions import TypedDict

from dragoman import _rpc
from dragoman._graph_run import Events, GraphRun, _message_event
from dragoman._graph_state import interrupts_of, next_of
from dragoman._graphs import Graph, GraphAgents
from dragoman._messages import is_text_chunk
from dragoman.worker import Run


# ---- text chunks --------------------------------------------------------------------------------------

class Lines:
    """A connection that keeps its lines."""

    def __init__(self):
        self.sent = []

    def is_full(self):
        return False

    def notify(self, method, params):
        self.send_line(_rpc.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def send_line(self, line):
        self.sent.append(line)


def chunks():
    """Pieces of a few model calls, mixed."""
    r = random.Random(1)
    calls = [({"langgraph_node": n, "langgraph_step": s, "langgraph_checkpoint_ns": ns}, i, path)
             for n, s, ns, i, path in (("a", 1, "a:1", "m1", ()), ("a", 1, "a:1", "m2", ()), ('q"\\', 2, None, None, ("x:1", "ü:2")), (None, None, "", "", ("x",)))]
    calls += [(calls[0][0], "other id, same call", ()), ({}, "ä", [])]
    for _ in range(400):
        about, key, path = r.choice(calls)
        text = "".join(chr(r.choice((r.randrange(128), 34, 92, 10, r.randrange(32, 127)))) for _ in range(r.randrange(12)))
        yield AIMessageChunk(content=text, id=key), about, path


class TextChunks(unittest.TestCase):
    def test_lines(self):
        """a text chunk of a model is the same line as any other event: random texts, several calls [R003-19]"""
        lines = []
        for is_short in (True, False):
            connection = Lines()
            events = Events(Run(connection, {"run": "r\"1"}))
            for message, about, path in chunks():
                self.assertTrue(is_text_chunk(message))
                if is_short:
                    self.assertTrue(events.send_text(message, about, path))
                else:
                    self.assertTrue(events.send_now("messages", _message_event((message, about)), list(path)))
            lines.append(connection.sent)
        self.assertEqual(len(lines[0]), 400)
        self.assertEqual(*lines)


# ---- the end of a run ---------------------------------------------------------------------------------

class State(TypedDict, total=False):
    messages: Annotated[List[AnyMessage], add_messages]
    trace: Annotated[List[str], operator.add]


def say(state):
    return {"trace": ["said"]}


def ask(state):
    return {"trace": [interrupt("sure?")]}


def built(*nodes, **options):
    """Nodes one after the other."""
    builder = StateGraph(State)
    for i, node in enumerate(nodes):
        builder.add_node(f"n{i}", node)
        builder.add_edge(f"n{i - 1}" if i else START, f"n{i}")
    return builder.compile(**options)


def sending(node):
    builder = StateGraph(State)
    builder.add_node("first", say)
    builder.add_node("each", node)
    builder.add_edge(START, "first")
    builder.add_conditional_edges("first", lambda s: [Send("each", {"trace": []}), Send("each", {"trace": []})], ["each"])
    return builder.compile()


def beside(*nodes):
    builder = StateGraph(State)
    for i, node in enumerate(nodes):
        builder.add_node(f"n{i}", node)
        builder.add_edge(START, f"n{i}")
    return builder.compile()


async def calls_inner(state, config):
    return await built(say, ask).ainvoke({"trace": []}, config)


def hidden(node):
    """A graph whose node is tagged so that LangGraph does not show it."""
    compiled = built(say, node)
    compiled.nodes["n1"].tags = ["langsmith:hidden"]
    return compiled


WAITING = {
    "a node that asks": lambda: built(say, ask, say), "the first node": lambda: built(ask), "beside one that ends": lambda: beside(say, ask, say),
    "two that ask": lambda: beside(ask, ask), "a subgraph": lambda: built(say, built(say, ask), say), "two levels": lambda: built(built(built(ask))),
    "a graph that a node calls": lambda: built(calls_inner, say), "sent": lambda: sending(ask), "hidden": lambda: hidden(ask), "hidden in a subgraph": lambda: built(say, hidden(ask)),
    "before a node": lambda: built(say, say, interrupt_before=["n1"]), "after a node": lambda: built(say, say, interrupt_after=["n0"]),
    "before all nodes": lambda: built(say, say, interrupt_before="*"), "before a node of a subgraph": lambda: built(say, built(say, say, interrupt_before=["n1"])),
    "a tag of the whole graph": lambda: built(ask).with_config(tags=["langsmith:hidden"])}
ENDED = {
    "one node": lambda: built(say), "a subgraph": lambda: built(say, built(say)), "sent": lambda: sending(say), "beside": lambda: beside(say, say),
    "a jump": lambda: built(say, lambda s: Command(update={"trace": ["x"]}))}


class Counted:
    """A graph that counts how often the state of a thread is read."""

    def __init__(self, compiled):
        self.compiled, self.reads = compiled, 0

    def __getattr__(self, name):
        return getattr(self.compiled, name)

    async def aget_state(self, config):
        self.reads += 1
        return await self.compiled.aget_state(config)


class Ends(unittest.IsolatedAsyncioTestCase):
    async def ended(self, compiled, durability, checkpointer="server"):
        agents = GraphAgents(Connection())
        graph = Graph("g", compiled, agents._saver_for("g", compiled, checkpointer))
        graph.compiled = Counted(graph.compiled)
        run = Run(agents.connection, {"run": "r1", "agent": "g", "thread": "t", "input": {"trace": []}, "durability": durability})
        result = await GraphRun(graph, run).execute()
        state = await graph.compiled.compiled.aget_state(graph.config("t"))
        interrupts, following = interrupts_of(state), next_of(state)
        self.assertEqual((result["interrupts"], result["next"]), (interrupts, following))
        self.assertEqual(result["status"], "interrupted" if following else "completed")
        return result, graph.compiled.reads

    async def test_waiting(self):
        """a run that waits says for what, wherever LangGraph shows it: nodes, subgraphs, breakpoints, hidden nodes; every durability"""
        for name, make in WAITING.items():
            for durability in ("sync", "async", "exit"):
                with self.subTest(name, durability=durability):
                    result, _ = await self.ended(make(), durability)
                    self.assertEqual(result["status"], "interrupted")

    async def test_ended(self):
        """a new turn that ran to its end is completed without another look at its thread"""
        for name, make in ENDED.items():
            for checkpointer in ("server", "memory"):
                with self.subTest(name, checkpointer=checkpointer):
                    result, reads = await self.ended(make(), "exit" if checkpointer == "memory" else "sync", checkpointer)
                    self.assertEqual((result["status"], reads), ("completed", 0))


if __name__ == "__main__":
    tap.main()
