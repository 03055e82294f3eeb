"""The attribute is a function of the config."""
from typing import Annotated

from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[list, add_messages]


def answer(state):
    return {"messages": [AIMessage(content=f"factory_config: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")


def make(config):
    assert "configurable" in config, config
    return builder
