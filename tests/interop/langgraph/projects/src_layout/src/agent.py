"""A file in a folder that is not a package, with a neighbour."""
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph

from shared_state import State


def answer(state):
    return {"messages": [AIMessage(content=f"src: {state['messages'][-1].content}")]}


builder = StateGraph(State)
builder.add_node(answer)
builder.add_edge(START, "answer")
graph = builder.compile()
