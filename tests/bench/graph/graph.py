"""The graph of the benchmark: `tokens N` is answered by a fake model that streams N tokens, in a subgraph, without a pause."""
from typing import Annotated, Any, AsyncIterator, List, Optional

from langchain_core.language_models.chat_models import agenerate_from_stream
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessageChunk, AnyMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict


class State(TypedDict):
    messages: Annotated[List[AnyMessage], add_messages]


class Model(GenericFakeChatModel):
    async def _astream(self, messages: List[BaseMessage], stop: Optional[List[str]] = None, run_manager: Any = None,
                       **more: Any) -> AsyncIterator[ChatGenerationChunk]:
        words = str(messages[-1].content).split()
        for i in range(int(words[1]) if len(words) > 1 else 1):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=f"token{i} "))
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _agenerate(self, messages: List[BaseMessage], stop: Optional[List[str]] = None, run_manager: Any = None,
                         **more: Any) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **more))


MODEL = Model(messages=iter([]))


async def answer(state: State) -> State:
    return {"messages": [await MODEL.ainvoke(state["messages"])]}


inner = StateGraph(State)
inner.add_node("answer", answer)
inner.add_edge(START, "answer")
builder = StateGraph(State)
builder.add_node("inner", inner.compile())
builder.add_edge(START, "inner")
graph = builder.compile()
