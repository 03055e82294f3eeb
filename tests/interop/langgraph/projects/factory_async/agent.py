"""The attribute is an async function."""
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list, add_messages]


def answer(state):
    return {"messages": [AIMessage(content=f"factory_async: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")


async def make(config):
    return builder.compile()
