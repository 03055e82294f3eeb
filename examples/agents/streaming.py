"""An agent with a language model that streams, a tool of its own, shared state and usage. The model is a fake, so that the
example needs no key: replace `fake_model` by the client of yours.

    dragoman try streaming.py "What is the weather in Oslo?"
"""
import asyncio
from typing import AsyncIterator, Dict, List

from dragoman.agent import Turn, agent


async def fake_model(messages: List[Dict[str, str]], facts: str = "") -> AsyncIterator[str]:
    """Streams words as a model does."""
    answer = f"{facts} You have written {sum(m['role'] == 'user' for m in messages)} messages."
    for word in answer.split():
        await asyncio.sleep(0)
        yield word + " "


async def get_weather(city: str) -> Dict[str, object]:
    return {"city": city, "sky": "snow", "celsius": -3}


@agent
async def main(turn: Turn) -> None:
    """Answers questions about the weather."""
    await turn.reasoning("The user may ask about a city. ")
    facts = ""
    if "Oslo" in turn.text:
        async with turn.tool_call("get_weather", {"city": "Oslo"}) as call:
            call.result = await turn.step("weather", get_weather, "Oslo")
        turn.state["city"] = "Oslo"
        facts = f"There is {call.result['sky']} in Oslo, at {call.result['celsius']} degrees."
    words = 0
    async for word in fake_model(turn.chat(), facts):
        words += 1
        await turn.write(word)
        for message in turn.new_messages():  # written while the agent works
            await turn.write(f"(You wrote: {message.text}) ")
    await turn.usage(input_tokens=len(turn.text.split()), output_tokens=words, model="fake")
