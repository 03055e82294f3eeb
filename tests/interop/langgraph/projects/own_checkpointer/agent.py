"""Compiled with a checkpointer of its own, which the server replaces."""
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list, add_messages]


def answer(state):
    return {"messages": [AIMessage(content=f"own_checkpointer: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")
saver = InMemorySaver()
graph = builder.compile(checkpointer=saver)
