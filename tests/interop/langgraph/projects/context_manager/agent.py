"""The attribute is an async context manager: it is left when the worker ends."""
import asyncio
import contextlib
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list, add_messages]


def answer(state):
    return {"messages": [AIMessage(content=f"context_manager: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")


@contextlib.asynccontextmanager
async def make(config):
    task = asyncio.current_task()
    print("opened")
    try:
        yield builder.compile()
    finally:
        print("closed by the same task" if asyncio.current_task() is task else "closed by another task")
