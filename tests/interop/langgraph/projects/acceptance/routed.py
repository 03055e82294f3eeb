"""One graph whose first word of the message decides what it does, for tests with a server: one process runs everything."""
import os
import time

import graphs as g
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, StreamWriter, interrupt

from aion.langgraph.stream import emit_data, emit_file, emit_message, emit_task_metadata
from dragoman.langgraph import A2AOutbox, TaskRejected, caller_tools


def my_node(state: dict, writer: StreamWriter):
    """The usage example of the mapping's document."""
    # Emit file artifact
    emit_file(writer, url="https://example.com/report.pdf", mime_type="application/pdf")

    # Emit data artifact
    emit_data(writer, {"status": "success", "results": [1, 2]}, name="analysis")

    # Emit message (not from LLM output)
    emit_message(writer, AIMessage(content="Processing complete"))

    # Update task metadata
    emit_task_metadata(writer, {"progress": 100})

    return state


async def everything(state, writer: StreamWriter):
    """Every emit function, the inbox and the outbox."""
    emit_task_metadata(writer, {"progress": 10, "aion:network": "mine"})
    for piece, is_last in (("SGVs", False), ("bG8=", True)):
        emit_file(writer, base64=piece, mime_type="text/plain", name="hello.txt", append=not (piece == "SGVs"), is_last_chunk=is_last)
    emit_data(writer, [1, 2], name="numbers")
    emit_message(writer, AIMessageChunk(content="thin"))
    emit_message(writer, AIMessageChunk(content="king"))
    writer({"own": {"step": 1}})
    return {"a2a_outbox": A2AOutbox(message={"messageId": "outbox-" + state["a2a_inbox"].message.message_id, "parts": [
        {"kind": "text", "text": f"You sent {len(state['a2a_inbox'].message.parts)} part(s)"}, {"kind": "data", "data": {"answer": 42}}]})}


def patch_task(state):
    """An outbox that is a Task."""
    return {"a2a_outbox": {"kind": "task", "id": "not mine", "contextId": "neither", "status": {"state": "completed"}, "metadata": {"cost": 3, "aion:network": "mine"},
                           "artifacts": [{"artifactId": "table", "name": "table", "parts": [{"kind": "data", "data": {"rows": 2}}]}],
                           "history": [{"kind": "message", "role": "agent", "messageId": "step-1" + state["a2a_inbox"].message.message_id, "parts": [{"kind": "text", "text": "first step"}]}]}}


def transcript(state):
    return {"messages": [AIMessage(content=" | ".join(f"{m.type}:{m.text}" for m in state["messages"]))]}


def ask_city(state):
    city = interrupt({"prompt": "Which city?"})
    return {"messages": [AIMessage(content=f"Going to {city}, {state['a2a_inbox'].message.parts[0].root.text}")]}


def ask_login(state):
    interrupt({"a2a_state": "auth-required", "prompt": "Please log in"})
    return {"messages": [AIMessage(content="Logged in")]}


def ask_two(state):
    first = interrupt("First?")
    second = interrupt("Second?")
    return {"messages": [AIMessage(content=f"{first} and {second}")]}


def weather(state, config):
    names = [t["function"]["name"] for t in caller_tools(config)]
    last = state["messages"][-1]
    if last.type == "tool":
        return {"messages": [AIMessage(content=f"The tool says {last.content}")]}
    call = {"name": names[0], "args": {"city": "Bern"}, "id": "call_1", "type": "tool_call"}
    return {"messages": [AIMessage(content="", tool_calls=[call])]}


async def wait_for_file(state, writer: StreamWriter):
    """Marks that it ran; goes on when the file FILE.go exists."""
    import asyncio
    path = str([m for m in state["messages"] if m.type == "human"][-1].content).split()[1]
    g._marks(path, "wait")
    emit_message(writer, AIMessageChunk(content="waiting"))
    while not os.path.exists(path + ".go"):
        await asyncio.sleep(0.02)
    return {}


def mark_first(state):
    g._marks(str(state["messages"][-1].content).split()[1], "first")
    return {"messages": [AIMessage(content="The first node is done.")]}


def mark_last(state):
    path = str([m for m in state["messages"] if m.type == "human"][-1].content).split()[1]
    g._marks(path, "last")
    return {"messages": [AIMessage(content=f"All is done, {state['a2a_inbox'].message.message_id[:2]}.")]}


def leave(state):
    """Ends the process."""
    os._exit(3)


def slow_burn(state):
    end = time.monotonic() + 3
    while time.monotonic() < end:
        pass
    return {"messages": [AIMessage(content="burnt")]}


def rejects(state):
    raise TaskRejected("not my job")


def only_deltas(state, writer: StreamWriter):
    for word in ("only ", "deltas"):
        emit_message(writer, AIMessageChunk(content=word))
    return {}


NODES = {"tokens": g.chat, "rewrap": g.rewrap, "example": my_node, "everything": everything, "patch": patch_task, "city": ask_city, "login": ask_login,
         "two": ask_two, "weather": weather, "fail": g.raises, "reject": rejects, "print": g.noisy, "burn": slow_burn, "leave": leave,
         "tools": g.tools_node, "transcript": transcript, "deltas": only_deltas, "silent": g.only_trace, "sleep": g.wait_async, "count": g.many_tokens}


def route(state):
    if state["messages"] and state["messages"][-1].type == "tool":
        return "weather"
    word = str(state["messages"][-1].content).split()[0]
    return {"steps": "first", "parallel": ["left", "right"]}.get(word, word if word in NODES else "tokens")


def large_words(state, writer: StreamWriter):
    emit_data(writer, {"text": "x" * (9 << 20)})


async def short(state):
    import asyncio
    await asyncio.sleep(0.3)
    return {"messages": [AIMessage(content="short")]}


NODES.update({"large": large_words, "loop": lambda state: Command(goto="loop"), "short": short,
              "state": lambda state: {"trace": ["y" * (9 << 20)], "messages": [AIMessage(content="stored")]},
              "length": lambda state: {"messages": [AIMessage(content=f"length {len(state['trace'][0])}")]}})
builder = StateGraph(g.State)
for name, node in {**NODES, "first": mark_first, "wait": wait_for_file, "last": mark_last, "left": g.left, "right": g.right}.items():
    builder.add_node(name, node)
builder.add_conditional_edges(START, route, [*NODES, "first", "left", "right"])
for name in NODES:
    builder.add_edge(name, END)
builder.add_edge("first", "wait")
builder.add_edge("wait", "last")
graph = builder.compile()
