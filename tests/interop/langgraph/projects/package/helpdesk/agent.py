"""A module of a package, with a relative import."""
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph

from .state import State


def answer(state):
    return {"messages": [AIMessage(content=f"package: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")
graph = builder.compile()
