"""Functions of the Functional API. The text of the message says what they do."""
import asyncio
import os

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.func import entrypoint, task
from langgraph.types import interrupt

from dragoman.langgraph import emit_data


def model(text):
    return GenericFakeChatModel(messages=iter([AIMessage(content=text)]))


@task
async def think(text):
    if os.environ.get("TRACE"):
        with open(os.environ["TRACE"], "a", encoding="utf-8") as f:
            f.write("think\n")
    return (await model(f"thought {text}").ainvoke("x")).content


@entrypoint()
async def agent(inputs, *, previous=None, writer=None):
    text = inputs["messages"][-1].content
    word = text.split(" ")[0]
    thought = await think(text) if word in ("ask", "stream", "wait") else ""
    if word == "ask":
        name = interrupt({"prompt": "Your name?"})
        return {"messages": [AIMessage(f"{thought}, {name}")]}
    if word == "remember":
        seen = [*(previous or []), text]
        return entrypoint.final(value=" | ".join(seen), save=seen)
    if word == "outbox":
        emit_data(writer, {"n": 1})
        inbox = inputs["a2a_inbox"]
        return {"a2a_outbox": {"role": "ROLE_AGENT", "messageId": "out-1", "parts": [{"text": f"to {inbox.message.messageId}"}, {"data": {"x": 1}}]}}
    if word == "stream":
        return None
    if word == "wait":
        while not os.path.exists(os.environ["GATE"]):
            await asyncio.sleep(0.02)
        return AIMessage(f"{thought}, done")
    return {"messages": [AIMessage(f"functional: {text}")]}


@entrypoint()
def sync(inputs):
    return f"sync: {inputs['messages'][-1].content}"
