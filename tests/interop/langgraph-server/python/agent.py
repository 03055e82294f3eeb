"""Graphs for the tests of LangGraph servers: what they do is chosen by the message. No model is needed."""
import asyncio
from typing import Annotated, Any, AsyncIterator, Iterator, List, Optional, TypedDict

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class Words(BaseChatModel):
    """Streams its text word by word."""

    text: str
    pause: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "words"

    def _pieces(self) -> List[str]:
        words = self.text.split(" ")
        return [word if i == 0 else " " + word for i, word in enumerate(words)]

    def _generate(self, messages: List[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self.text))])

    def _stream(self, messages: List[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for piece in self._pieces():
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk

    async def _astream(self, messages: List[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for piece in self._pieces():
            await asyncio.sleep(self.pause)
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=piece))
            if run_manager:
                await run_manager.on_llm_new_token(piece, chunk=chunk)
            yield chunk


class State(TypedDict, total=False):
    messages: Annotated[List[Any], add_messages]


WORDS = {"fail", "ask", "approve", "slow", "sleep", "count", "write", "loop", "both", "tool"}


def last_text(state: Any) -> str:
    """The last message that names what to do, else the last one: the answer to a question is a message, too."""
    texts = [m.content if isinstance(m.content, str) else str(m.content) for m in state.get("messages", []) if m.type == "human"]
    waiting = state["messages"][-1].type == "human" if state.get("messages") else False
    for text in reversed(texts[-2:] if waiting else texts):
        if text.split(" ")[0] in WORDS:
            return text
    return texts[-1] if texts else ""


async def answer(state: State) -> Any:
    text = last_text(state)
    word, _, rest = text.partition(" ")
    if word == "fail":
        raise ValueError("the secret is 42")
    if word == "ask":
        reply = interrupt({"prompt": rest or "Your name?"})
        return {"messages": [AIMessage(content=f"Hello {reply}")]}
    if word == "approve":
        reply = interrupt({"prompt": "May I?", "kind": "approval"})
        return {"messages": [AIMessage(content=f"answered {reply!r}")]}
    if word == "slow":
        count = int(rest or "20")
        model = Words(text=" ".join(f"w{i}" for i in range(count)), pause=0.03)
        return {"messages": [await model.ainvoke(state["messages"])]}
    if word == "sleep":
        await asyncio.sleep(float(rest or "30"))
        return {"messages": [AIMessage(content="awake")]}
    if word == "count":
        humans = sum(1 for m in state["messages"] if m.type == "human")
        return {"messages": [AIMessage(content=f"{humans} messages")]}
    if word == "write":
        writer = get_stream_writer()
        writer({"progress": 50})
        writer({"a2a": {"type": "artifact", "kind": "data", "name": "analysis", "data": {"status": "success"}, "append": False, "is_last_chunk": True}})
        writer({"a2a": {"type": "artifact", "kind": "file", "name": "file", "mime_type": "application/pdf", "url": "https://example.com/report.pdf",
                        "append": False, "is_last_chunk": True}})
        writer({"a2a": {"type": "task_metadata", "metadata": {"progress": 100}}})
        return {"messages": [AIMessage(content="written")]}
    model = Words(text=f"You said: {text} with several words", pause=0.005)
    return {"messages": [await model.ainvoke(state["messages"])]}


def loop(state: State) -> Any:
    return {"messages": []}


def route(state: State) -> str:
    text = last_text(state)
    return text if text in ("loop", "both") else "call" if text == "tool" else "answer"


def first(state: State) -> Any:
    return {"messages": [AIMessage(content=f"first {interrupt({'prompt': 'First?'})}")]}


def second(state: State) -> Any:
    return {"messages": [AIMessage(content=f"second {interrupt({'prompt': 'Second?'})}")]}


def call(state: State) -> Any:
    return {"messages": [AIMessage(content="", tool_calls=[{"name": "book", "args": {}, "id": "c1"}])]}


def book(state: State) -> Any:
    return {"messages": [ToolMessage(content=f"booked: {interrupt({'prompt': 'Book?'})}", tool_call_id="c1")]}


def types(state: State) -> Any:
    return {"messages": [AIMessage(content=" ".join(m.type for m in state["messages"]))]}


builder = StateGraph(State)
builder.add_node("answer", answer)
builder.add_node("loop", loop)
builder.add_node("both", lambda state: {"messages": []})
builder.add_node("first", first)
builder.add_node("second", second)
builder.add_conditional_edges(START, route, ["answer", "loop", "both", "call"])
for node in (call, book, types):
    builder.add_node(node.__name__, node)
builder.add_edge("call", "book")
builder.add_edge("book", "types")
builder.add_edge("types", END)
builder.add_edge("loop", "loop")
builder.add_edge("both", "first")
builder.add_edge("both", "second")
builder.add_edge("answer", END)
graph = builder.compile()


class A2AState(TypedDict, total=False):
    messages: Annotated[List[Any], add_messages]
    a2a_inbox: Optional[Any]
    a2a_outbox: Optional[Any]


def outbox(state: A2AState) -> Any:
    inbox = state.get("a2a_inbox") or {}
    parts = inbox.get("message", {}).get("parts", [])
    return {"a2a_outbox": {"kind": "message", "role": "agent", "messageId": "out-" + inbox["message"]["messageId"],
                           "parts": [{"kind": "text", "text": f"{len(parts)} parts"}, {"kind": "data", "data": {"metadata": inbox.get("metadata")}}]}}


a2a_builder = StateGraph(A2AState)
a2a_builder.add_node("outbox", outbox)
a2a_builder.add_edge(START, "outbox")
a2a_builder.add_edge("outbox", END)
a2a_graph = a2a_builder.compile()
