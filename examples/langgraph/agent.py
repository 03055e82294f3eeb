"""A travel desk: a LangGraph graph that A2A, AG-UI, OpenAI and AI SDK clients can talk to.

Its model is scripted, so the example needs no key: put `init_chat_model("...")` in its place.
"""
from typing import Annotated, Any, List, Optional

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import StreamWriter, interrupt
from typing_extensions import TypedDict

from dragoman.langgraph import A2AInbox, A2AOutbox, emit_data, emit_file, emit_message, emit_task_metadata


class State(TypedDict, total=False):
    messages: Annotated[List[AnyMessage], add_messages]  # the transcript: Dragoman appends the user's message
    a2a_inbox: Optional[A2AInbox]  # the whole A2A message and its task
    a2a_outbox: Any  # an A2A Message or Task as the answer, if text is not enough


async def model(text: str, messages: List[AnyMessage]) -> Any:
    """Streams `text` word by word."""
    return await GenericFakeChatModel(messages=iter([AIMessage(content=text)])).ainvoke(messages)


async def advise(state: State) -> Any:
    question = state["messages"][-1].content
    return {"messages": [await model(f"You asked: {question} The best month for Lisbon is May.", state["messages"])]}


def wants_to_book(state: State) -> str:
    asked = [m for m in state["messages"] if m.type == "human"]
    return "book" if "book" in str(asked[-1].content) else END


def book(state: State, writer: StreamWriter) -> Any:
    emit_task_metadata(writer, {"progress": 50})
    answer = interrupt({"prompt": "Book the flight to Lisbon for 120 EUR?"})  # the caller sees input-required
    if str(answer).strip().lower() not in ("yes", "true"):
        return {"messages": [AIMessage(content="Nothing was booked.")]}
    emit_message(writer, AIMessage(content="Booking the flight."))
    emit_data(writer, {"flight": "LX 100", "price": 120}, name="booking")
    emit_file(writer, url="https://example.com/ticket.pdf", mime_type="application/pdf", name="ticket")
    emit_task_metadata(writer, {"progress": 100})
    return {"a2a_outbox": A2AOutbox(message={"role": "agent", "parts": [
        {"kind": "text", "text": "Your flight is booked."}, {"kind": "data", "data": {"flight": "LX 100"}}]})}


builder = StateGraph(State)
builder.add_node("advise", advise)
builder.add_node("book", book)
builder.add_edge(START, "advise")
builder.add_conditional_edges("advise", wants_to_book, ["book", END])
builder.add_edge("book", END)
graph = builder.compile()
