"""Graphs that do one thing each. The tests name them."""
import asyncio
import operator
import time
from typing import Annotated, Any, List, Optional

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, StreamWriter, interrupt
from typing_extensions import TypedDict

from aion.langgraph.stream import emit_data, emit_file, emit_message, emit_task_metadata
from dragoman.langgraph import A2AInbox, TaskRejected, caller_tools


class State(TypedDict, total=False):
    messages: Annotated[List[AnyMessage], add_messages]
    a2a_inbox: Optional[A2AInbox]
    a2a_outbox: Any
    trace: Annotated[List[str], operator.add]


def line(*nodes, state=State, **named):
    """A graph of nodes one after the other."""
    builder = StateGraph(state)
    before = START
    for node in nodes:
        builder.add_node(node.__name__, node)
        builder.add_edge(before, node.__name__)
        before = node.__name__
    builder.add_edge(before, END)
    return builder.compile(**named)


def model(*texts):
    return GenericFakeChatModel(messages=iter(AIMessage(content=t) for t in texts))


# ---- text ----

async def chat(state):
    return {"messages": [await model("Hello there friend").ainvoke(state["messages"])]}


def post(state):
    return {"trace": ["post"]}


tokens = line(chat, post)


def plain_node(state):
    return {"messages": [AIMessage(content="no model")]}


without_model = line(plain_node)


async def rewrap(state):
    made = await model("Hello there friend").ainvoke(state["messages"])
    return {"messages": [AIMessage(content=made.content)]}


rewrapped = line(rewrap)


def tools_node(state):
    call = {"name": "look", "args": {"q": "x"}, "id": "call_1", "type": "tool_call"}
    return {"messages": [AIMessage(content="", tool_calls=[call], id="ai-call"), ToolMessage(content="secret", tool_call_id="call_1", id="tool-1"),
                         AIMessage(content="done", id="ai-done")]}


tool_messages = line(tools_node)


def only_trace(state):
    return {"trace": ["nothing to say"]}


silent = line(only_trace)


# ---- emit ----

def emits(state: dict, writer: StreamWriter):
    emit_file(writer, url="https://example.com/report.pdf", mime_type="application/pdf")
    emit_data(writer, {"status": "success", "results": [1, 2]}, name="analysis")
    emit_message(writer, AIMessage(content="Processing complete", id="pc"))
    emit_message(writer, AIMessageChunk(content="pie", id="ch"))
    emit_task_metadata(writer, {"progress": 100})
    writer({"own": float("nan"), "bad": "\ud800", "set": {1}})
    return state


emitting = line(emits)


async def inner_chat(state, writer: StreamWriter):
    emit_data(writer, {"from": "inside"}, name="inner")
    return {"messages": [await model("inner words").ainvoke(state["messages"])]}


inner = line(inner_chat)
with_subgraph = (lambda b: (b.add_node("outer", inner), b.add_edge(START, "outer"), b.compile())[-1])(StateGraph(State))


def inner_sync(state):
    return {"messages": inner_graph_sync.invoke({"messages": state["messages"]})["messages"]}


def answer_sync(state):
    return {"messages": [AIMessage(content="from a sync subgraph")]}


inner_graph_sync = line(answer_sync)
sync_subgraph = line(inner_sync)


async def left(state):
    return {"messages": [await model("left one two").ainvoke(state["messages"])]}


async def right(state):
    return {"messages": [await model("right one two").ainvoke(state["messages"])]}


def _parallel():
    builder = StateGraph(State)
    for node in (left, right):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
    return builder.compile()


parallel = _parallel()


# ---- inbox and outbox ----

def read_inbox(state):
    inbox = state["a2a_inbox"]
    text = f'{inbox["message"]["messageId"] == inbox.message.message_id} {inbox.message.parts[0].root.text} {inbox.task.context_id} {inbox.metadata["trace"]}'
    return {"messages": [AIMessage(content=text)]}


inbox = line(read_inbox)


def ask_then_read(state):
    answer = interrupt({"prompt": "Name?"})
    return {"messages": [AIMessage(content=f"{answer} {type(state['a2a_inbox']).__name__} {state['a2a_inbox'].message.message_id}")]}


inbox_after_resume = line(post, ask_then_read)


def write_message(state):
    return {"a2a_outbox": {"role": "agent", "parts": [{"kind": "data", "data": {"x": 1}}], "messageId": "out-1", "kind": "message"}}


outbox_message = line(write_message)


def maybe_outbox(state):
    return {"a2a_outbox": {"parts": [{"text": "first"}]}} if state["messages"][-1].content == "write" else {"trace": ["none"]}


stale_outbox = line(maybe_outbox)


def write_protobuf(state):
    from a2a.types import Message, Part, Role
    return {"a2a_outbox": Message(message_id="p1", role=Role.ROLE_AGENT, parts=[Part(text="from protobuf")])}


outbox_protobuf = line(write_protobuf, post)


def write_pydantic(state):
    from pydantic import BaseModel, Field

    class Message(BaseModel):
        message_id: str = Field(alias="messageId")
        parts: list
        task_id: Optional[str] = Field(default=None, alias="taskId")
    return {"a2a_outbox": Message(messageId="p2", parts=[{"kind": "text", "text": "from pydantic"}])}


outbox_pydantic = line(write_pydantic, post)


# ---- interrupts ----

def ask_text(state):
    return {"messages": [AIMessage(content=f"Hi {interrupt('Your name?')}")]}


asks = line(post, ask_text)


@tool
def book(city: str) -> str:
    """Books a flight."""
    return f"{city}: {interrupt(f'Book {city}?')}"


def call_book(state):
    return {"messages": [AIMessage(content="", tool_calls=[{"name": "book", "args": {"city": "Bern"}, "id": "c1"}])]}


def list_types(state):
    return {"messages": [AIMessage(content=" ".join(m.type for m in state["messages"]))]}


def _tools():
    builder = StateGraph(State).add_node(call_book).add_node("tools", ToolNode([book])).add_node(list_types)
    return builder.add_edge(START, "call_book").add_edge("call_book", "tools").add_edge("tools", "list_types").compile()


tool_asks = _tools()


def first_question(state):
    return {"trace": [f"a={interrupt({'prompt': 'A?'})!r}"]}


def second_question(state):
    return {"trace": [f"b={interrupt({'prompt': 'B?'})!r}"]}


def _two():
    builder = StateGraph(State)
    for node in (first_question, second_question):
        builder.add_node(node.__name__, node)
        builder.add_edge(START, node.__name__)
    return builder.compile()


asks_twice = _two()
breakpoint_before = line(only_trace, post, interrupt_before=["post"])


# ---- trouble ----

def raises(state):
    raise ValueError("secret detail")


failing = line(raises)


def rejects(state):
    raise TaskRejected("not my job")


rejecting = line(rejects)


def again(state):
    return Command(goto="again")


looping = line(again)


def large(state, writer: StreamWriter):
    emit_data(writer, {"text": "x" * int(state["messages"][-1].content)})
    return {}


large_event = line(large)


def large_state_node(state):
    return {"trace": ["y" * int(state["messages"][-1].content)]}


large_state = line(large_state_node, post)


def large_message(state):
    return {"messages": [AIMessage(content="z" * int(state["messages"][-1].content))]}


large_result = line(large_message)


def noisy(state):
    print("printed by a node")
    print('{"jsonrpc":"2.0"}')
    import logging
    import sys
    logging.getLogger("author").warning("logged by a node")
    sys.stderr.write("to stderr\n")
    return {"messages": [AIMessage(content="quiet")]}


prints = line(noisy)


def burn(state):
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    return {"messages": [AIMessage(content="burnt")]}


blocks_cpu = line(burn)


async def wait_async(state, writer: StreamWriter):
    writer({"started": True})
    await asyncio.sleep(60)
    return {"trace": ["waited"]}


def wait_sync(state, writer: StreamWriter):
    writer({"started": True})
    time.sleep(20)
    return {"trace": ["waited"]}


slow_async = line(post, wait_async)
slow_sync = line(post, wait_sync)


async def many_tokens(state):
    return {"messages": [await model(" ".join(str(i) for i in range(3000))).ainvoke(state["messages"])]}


floods = line(many_tokens)


async def slow_tokens(state, writer: StreamWriter):
    for i in range(200):
        emit_message(writer, AIMessageChunk(content=f"{i} "))
        await asyncio.sleep(0.05)
    return {}


slow_stream = line(post, slow_tokens)


def _marks(path, name):
    with open(path, "a", encoding="utf-8") as f:
        f.write(name + "\n")


def step_one(state):
    _marks(state["messages"][-1].content, "one")
    return {"trace": ["one"], "messages": [AIMessage(content="from one")], "a2a_outbox": {"parts": [{"text": "outbox of one"}]}}


async def step_two(state, writer: StreamWriter):
    import os
    path = state["messages"][0].content
    _marks(path, "two")
    writer({"started": True})
    if not os.path.exists(path + ".go"):
        await asyncio.sleep(60)
    return {"trace": ["two"]}


def step_three(state):
    _marks(state["messages"][0].content, "three")
    return {"trace": [f"three {state['a2a_inbox'].message.message_id}"]}


steps = line(step_one, step_two, step_three)


# ---- the caller ----

def see_tools(state, config: RunnableConfig):
    names = [t["function"]["name"] for t in caller_tools(config)]
    caller = config["configurable"]["a2a"]
    return {"messages": [AIMessage(content=f"{names} {caller_tools() == caller_tools(config)} {caller['task']} {caller.get('principal')}")]}


tools_of_caller = line(see_tools)


class Context(TypedDict, total=False):
    tools: list
    a2a_inbox: Any


def see_context(state, runtime):
    return {"messages": [AIMessage(content=f"{runtime.context['tools'][0]['name']} {runtime.context['a2a_inbox'].message.role}")]}


def _with_context():
    from langgraph.runtime import Runtime
    see_context.__annotations__["runtime"] = Runtime[Context]
    builder = StateGraph(State, context_schema=Context)
    builder.add_node("see_context", see_context)
    builder.add_edge(START, "see_context")
    return builder.compile()


tools_in_context = _with_context()


# ---- schemas ----

class Narrow(TypedDict):
    trace: List[str]


class OnlyMessages(TypedDict):
    messages: Annotated[List[AnyMessage], add_messages]


def _narrow():
    builder = StateGraph(State, input_schema=OnlyMessages, output_schema=Narrow)
    builder.add_node("write_message", write_message)
    builder.add_edge(START, "write_message")
    return builder.compile()


narrow_schemas = _narrow()


def _pydantic():
    from pydantic import BaseModel

    class Wide(BaseModel):
        messages: Annotated[List[AnyMessage], add_messages] = []
        a2a_inbox: Optional[A2AInbox] = None
        a2a_outbox: Any = None

    class Small(BaseModel):
        messages: Annotated[List[AnyMessage], add_messages] = []

    def node(state):
        return {"a2a_outbox": {"parts": [{"text": f"{type(state.a2a_inbox).__name__} {state.a2a_inbox.message.message_id[:1]}"}]}}
    builder = StateGraph(Wide, output_schema=Small)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    return builder.compile()


pydantic_state = _pydantic()


class Listed(TypedDict, total=False):
    messages: list


def append(state):
    return {"messages": state["messages"] + [AIMessage(content=type(state["messages"][-1]).__name__)]}


plain_list = line(append, state=Listed)

own_checkpointer = line(chat, checkpointer=InMemorySaver())
no_checkpointer_graph = line(chat)


class Delta(TypedDict, total=False):
    messages: Annotated[list, DeltaChannel(_messages_delta_reducer)]


delta_messages = line(plain_node, state=Delta)


async def short_wait(state, writer: StreamWriter):
    writer({"started": True})
    await asyncio.sleep(1)
    return {"trace": ["short"]}


slow_then = line(short_wait, post)


async def ask_then_wait(state, writer: StreamWriter):
    import os
    answer = interrupt("path?")
    _marks(answer, "asked")
    writer({"started": True})
    if not os.path.exists(answer + ".go"):
        await asyncio.sleep(60)
    return {"messages": [AIMessage(content="waited")]}


resumed_slowly = line(post, ask_then_wait)


def two_questions(state):
    first = interrupt("First?")
    second = interrupt("Second?")
    return {"messages": [AIMessage(content=f"{first} {second} {state['a2a_inbox'].message.message_id}")]}


asks_in_order = line(two_questions)
