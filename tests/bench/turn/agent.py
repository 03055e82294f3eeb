"""The same agent as a worker: the import is paid once."""
import openai  # noqa: F401

from dragoman.agent import agent


@agent
async def main(turn):
    await turn.write("You wrote: " + turn.message.text)
