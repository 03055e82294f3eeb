"""What LangGraph itself does, as far as the worker and the server rely on it. A newer version that differs fails here first."""
import asyncio
import operator
import unittest
from typing import Annotated, Any, List, Optional

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt
from lib import tap
from pydantic import BaseModel
from typing_extensions import TypedDict

MODES = ["values", "messages", "custom", "updates"]


class State(TypedDict, total=False):
    messages: Annotated[List[AnyMessage], add_messages]
    trace: Annotated[List[str], operator.add]
    a2a_outbox: Any


class Saver(InMemorySaver):
    def __init__(self):
        super().__init__()
        self.calls = []

    async def aput(self, *args):
        self.calls.append("put")
        return await super().aput(*args)

    async def aput_writes(self, *args):
        self.calls.append("writes")
        return await super().aput_writes(*args)

    async def aget_tuple(self, *args):
        self.calls.append("get")
        return await super().aget_tuple(*args)


def line(*nodes, schema=State, saver=True, **more):
    builder = StateGraph(schema, **more)
    before = START
    for i, node in enumerate(nodes):
        builder.add_node(f"n{i}", node)
        builder.add_edge(before, f"n{i}")
        before = f"n{i}"
    return builder.compile(checkpointer=Saver() if saver else None)


def beside(*nodes):
    builder = StateGraph(State)
    for i, node in enumerate(nodes):
        builder.add_node(f"n{i}", node)
        builder.add_edge(START, f"n{i}")
    return builder.compile(checkpointer=Saver())


def config(thread="t"):
    return {"configurable": {"thread_id": thread}}


async def parts(graph, given, thread="t", **more):
    options = {"stream_mode": MODES, "subgraphs": True, **more}
    return [p async for p in graph.astream(given, config(thread), **options)]


def of(found, mode):
    return [data for _, m, data in found if m == mode]


def say(*texts):
    def node(state):
        return {"messages": [AIMessage(content=t) for t in texts]}
    return node


def asks(name):
    def node(state):
        return {"trace": [f"{name}={interrupt(name)!r}"]}
    return node


class Measured(unittest.IsolatedAsyncioTestCase):
    async def test_order(self):
        """measured: the order in a step is custom and messages, updates, values; a node without writes is null and makes no values"""
        def node(state, writer):
            writer({"x": 1})
            return {"messages": [AIMessage(content="a")]}
        found = await parts(line(node, lambda state: None), {"messages": [HumanMessage("hi")]})
        self.assertEqual([m for _, m, _ in found], ["values", "custom", "messages", "updates", "values", "updates"])
        self.assertEqual(of(found, "updates")[1], {"n1": None})

    async def test_v2(self):
        """measured: version v2 turns values into a pydantic output schema, which lacks keys of the state; the plain form does not"""
        class Wide(BaseModel):
            messages: Annotated[List[AnyMessage], add_messages] = []
            a2a_outbox: Any = None

        class Small(BaseModel):
            messages: Annotated[List[AnyMessage], add_messages] = []
        graph = line(lambda state: {"a2a_outbox": {"x": 1}}, schema=Wide, output_schema=Small)
        new = [p["data"] for p in await parts(graph, {"messages": []}, version="v2") if p["type"] == "values"]
        self.assertFalse(hasattr(new[-1], "a2a_outbox") or "a2a_outbox" in dict(new[-1]))
        self.assertEqual(of(await parts(graph, {"messages": []}, "t2"), "values")[-1]["a2a_outbox"], {"x": 1})

    async def test_interrupt(self):
        """measured: the last values of an interrupted run have the state and the interrupt; the stream ends normally"""
        found = await parts(line(asks("a")), {"messages": [HumanMessage("hi")]})
        self.assertEqual(set(of(found, "values")[-1]), {"messages", "trace", "__interrupt__"} & set(of(found, "values")[-1]))
        self.assertIn("__interrupt__", of(found, "values")[-1])
        self.assertIn("messages", of(found, "values")[-1])

    async def test_resume(self):
        """measured: resume by a map of ids takes any value; an unknown id asks again; a value for two questions is refused"""
        graph = beside(asks("a"), asks("b"))
        await parts(graph, {"messages": []})
        ids = [i.id for i in (await graph.aget_state(config())).interrupts]
        with self.assertRaises(RuntimeError):
            await parts(graph, Command(resume="x"))
        await parts(graph, Command(resume={"0" * 32: "x"}))
        self.assertEqual([i.id for i in (await graph.aget_state(config())).interrupts], ids)
        await parts(graph, Command(resume={ids[0]: None, ids[1]: {}}))
        self.assertEqual(sorted((await graph.aget_state(config())).values["trace"]), ["a=None", "b={}"])

    async def test_resume_finished(self):
        """measured: a resume on a finished thread replays the old state as if it were an answer; on an unknown one it runs the graph"""
        graph = line(say("old"))
        await parts(graph, {"messages": [HumanMessage("hi")]})
        found = await parts(graph, Command(resume={"0" * 32: "x"}))
        self.assertEqual([m for _, m, _ in found], ["values"])
        self.assertEqual(found[0][2]["messages"][-1].content, "old")

    async def test_new_input(self):
        """measured: new input to an interrupted thread discards the question"""
        graph = line(asks("a"))
        await parts(graph, {"messages": [HumanMessage("hi")]})
        first = (await graph.aget_state(config())).interrupts[0].id
        await parts(graph, {"messages": [HumanMessage("other")]})
        self.assertNotEqual((await graph.aget_state(config())).interrupts[0].id, first)

    async def test_update_of_resume(self):
        """measured: Command(resume, update) writes the state first; the resumed node and the first values have it"""
        def node(state):
            return {"trace": [f"{interrupt('?')} {state['messages'][-1].content} {state.get('a2a_outbox')}"]}
        graph = line(node)
        await parts(graph, {"messages": [HumanMessage("hi")], "a2a_outbox": 1})
        key = (await graph.aget_state(config())).interrupts[0].id
        found = await parts(graph, Command(resume={key: "yes"}, update={"messages": [HumanMessage("new")], "a2a_outbox": None}))
        self.assertEqual([m.content for m in of(found, "values")[0]["messages"]], ["hi", "new"])
        self.assertEqual(of(found, "values")[-1]["trace"], ["yes new None"])

    async def test_second_answer(self):
        """measured: a second Command(resume, update) for one node fails, because the first update is a write of its checkpoint"""
        def node(state):
            return {"trace": [interrupt("a") + interrupt("b")]}
        graph = line(node)
        await parts(graph, {"messages": []})
        with self.assertRaisesRegex(InvalidUpdateError, "Can receive only one value per step"):
            for text in "xy":
                key = (await graph.aget_state(config())).interrupts[0].id
                await parts(graph, Command(resume={key: text}, update={"a2a_outbox": text}))

    async def test_input(self):
        """measured: unknown keys of the input vanish, an empty input runs the graph, null continues or does nothing"""
        graph = line(say("a"))
        found = await parts(graph, {"messages": [], "unknown": 1})
        self.assertNotIn("unknown", of(found, "values")[-1])
        self.assertEqual([m for _, m, _ in await parts(graph, None)], ["values"])
        with self.assertRaises(EmptyInputError):
            await parts(graph, None, "other")

    async def test_stale(self):
        """measured: a key without reducer stays across turns, so an outbox must be cleared"""
        graph = line(lambda state: {"a2a_outbox": "first"} if len(state["messages"]) == 1 else {"trace": ["x"]})
        await parts(graph, {"messages": [HumanMessage("1")]})
        self.assertEqual(of(await parts(graph, {"messages": [HumanMessage("2")]}), "values")[-1]["a2a_outbox"], "first")

    async def test_calls(self):
        """measured: a run over n nodes makes n+2 put and n+1 put_writes with durability sync, one put with exit"""
        graph = line(say("a"), say("b"), say("c"))
        await parts(graph, {"messages": []}, durability="sync")
        self.assertEqual({k: graph.checkpointer.calls.count(k) for k in ("put", "writes", "get")}, {"put": 5, "writes": 4, "get": 1})
        graph.checkpointer.calls.clear()
        await parts(graph, {"messages": []}, "t2", durability="exit")
        self.assertEqual(graph.checkpointer.calls.count("put"), 1)

    async def test_run_id(self):
        """measured: a run with the run_id of the newest checkpoint is taken for a continuation, and its input is dropped"""
        graph = line(say("a"))
        given = {**config(), "metadata": {"run_id": "same"}}
        for text in ("one", "two"):
            await graph.ainvoke({"messages": [HumanMessage(text)]}, given)
        self.assertEqual([m.content for m in (await graph.aget_state(config())).values["messages"]], ["one", "a"])

    async def test_ambiguous(self):
        """measured: update_state after two parallel last nodes is ambiguous"""
        graph = beside(say("a"), say("b"))
        await parts(graph, {"messages": [HumanMessage("hi")]})
        with self.assertRaisesRegex(InvalidUpdateError, "Ambiguous update"):
            await graph.aupdate_state(config(), {"messages": [AIMessage("x")]})

    async def test_together(self):
        """measured: two runs at once on one thread lose messages"""
        async def slow(state):
            await asyncio.sleep(0.05)
            return {"messages": [AIMessage("re:" + state["messages"][-1].content)]}
        graph = line(slow)
        await asyncio.gather(*(parts(graph, {"messages": [HumanMessage(c)]}) for c in "AB"))
        self.assertEqual(len((await graph.aget_state(config())).values["messages"]), 2)

    async def test_subgraphs(self):
        """measured: without subgraphs=True the tokens and events of a subgraph are lost"""
        def inner(state, writer):
            writer({"x": 1})
            return {"messages": [AIMessage("inner")]}
        builder = StateGraph(State)
        builder.add_node("outer", line(inner, saver=False))
        builder.add_edge(START, "outer")
        graph = builder.compile()
        found = [p async for p in graph.astream({"messages": []}, stream_mode=MODES)]
        self.assertEqual([m for m, _ in found if m == "custom"], [])
        found = await parts(graph, {"messages": []})
        self.assertEqual([len(ns) for ns, m, _ in found if m == "custom"], [1])

    async def test_messages(self):
        """measured: messages of nodes arrive, also of tools; dicts do not; the human input does not"""
        def node(state):
            return {"messages": [ToolMessage("secret", tool_call_id="c"), {"role": "assistant", "content": "a dict"}, *state["messages"]]}
        found = of(await parts(line(node), {"messages": [HumanMessage("hi", id="h")]}), "messages")
        self.assertEqual([m.content for m, _ in found], ["secret"])

    async def test_nostream(self):
        """measured: the tag nostream hides a model call"""
        async def node(state):
            model = GenericFakeChatModel(messages=iter([AIMessage("hidden words")])).with_config(tags=["nostream"])
            return {"trace": [(await model.ainvoke("x")).content]}
        self.assertEqual(of(await parts(line(node), {"messages": []}), "messages"), [])

    async def test_ids(self):
        """measured: chunks of one model call can have two ids, and the last one is marked, possibly empty"""
        class Model(GenericFakeChatModel):
            async def _astream(self, messages, stop=None, run_manager: Optional[Any] = None, **more):
                for text, key in (("a", "msg_1"), ("b", None)):
                    chunk = ChatGenerationChunk(message=AIMessageChunk(content=text, id=key))
                    yield chunk

        async def node(state):
            return {"messages": [await Model(messages=iter([])).ainvoke("x")]}
        found = of(await parts(line(node), {"messages": []}), "messages")
        self.assertEqual(found[0][0].id, "msg_1")
        self.assertEqual(len({about["langgraph_checkpoint_ns"] for _, about in found}), 1)
        self.assertEqual("".join(m.content for m, _ in found), "ab")
        self.assertEqual([getattr(m, "chunk_position", None) for m, _ in found][-1], "last")

    async def test_limit(self):
        """measured: the default recursion limit is 10007"""
        from langgraph._internal._config import DEFAULT_RECURSION_LIMIT
        self.assertEqual(DEFAULT_RECURSION_LIMIT, 10007)

    async def test_retry(self):
        """measured: after an exception null runs the failed node again, and only that one"""
        ran = []

        def second(state):
            ran.append("second")
            if len(ran) < 3:
                raise ValueError("x")
        graph = line(lambda state: ran.append("first"), second)
        with self.assertRaises(ValueError):
            await parts(graph, {"messages": []})
        self.assertEqual((await graph.aget_state(config())).next, ("n1",))
        await parts(graph, None)
        self.assertEqual(ran, ["first", "second", "second"])

    async def test_writes_not_applied(self):
        """measured: between a step's writes and its checkpoint LangGraph reports no next node, though tasks are there"""
        graph = line(say("a"), say("b"))
        stopped = []
        original = graph.checkpointer.aput

        async def aput(*args):
            if len(stopped) == 2:
                raise ConnectionError("killed")
            stopped.append(1)
            return await original(*args)
        graph.checkpointer.aput = aput
        with self.assertRaises(ConnectionError):
            await parts(graph, {"messages": [HumanMessage("hi")]}, durability="sync")
        graph.checkpointer.aput = original
        state = await graph.aget_state(config())
        self.assertEqual((state.next, [t.name for t in state.tasks]), ((), ["n0"]))
        found = await parts(graph, None)
        self.assertEqual([m.content for m in of(found, "values")[-1]["messages"]], ["hi", "a", "b"])


if __name__ == "__main__":
    tap.main()
