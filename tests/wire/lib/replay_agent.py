"""The agent of test_function_replay.py in Python: the first word of the message says what it does."""
import asyncio
import os

from dragoman.agent import agent


@agent
async def main(turn):
    word, _, rest = turn.text.partition(" ")
    await COMMANDS[word](turn, rest)


async def wait_for(path):
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8"):
        pass
    while not os.path.exists(path):
        await asyncio.sleep(0.02)


async def report(turn, gate):
    """Everything that an agent can send, and a crash between two steps and their next output."""
    await turn.progress("first")
    if turn.metadata.get("steps"):
        await turn.step("step", lambda: 1)
    await turn.reasoning("Hm. ")
    async with turn.tool_call("look_up", {"city": "Oslo"}) as call:
        call.result = "snow"
    await turn.custom("mine", {"n": 1})
    turn.state["days"] = 2
    for i, text in enumerate(("a", "b")):
        await turn.emit({"artifactUpdate": {"artifact": {"artifactId": "chart", "parts": [{"text": text}]}, "append": i > 0, "lastChunk": False}})
    await turn.file("small.txt", "content")
    await turn.file("large.bin", b"x" * 200_000)
    await turn.write("one ")
    call = turn.tool_call("slow", {})
    await wait_for(gate)
    await call.succeeded("done")
    await turn.emit({"artifactUpdate": {"artifact": {"artifactId": "chart", "parts": [{"text": "c"}]}, "append": True, "lastChunk": True}})
    await turn.progress("second")
    await turn.write("two")


async def asks(turn, gate):
    await turn.progress("before the question")
    await turn.ask("Which?")
    await report(turn, gate)


async def large(turn, size):
    """A journal of many lines, which comes back whole."""
    values = [await turn.step("s", lambda i=i: chr(0xe4 + i) * int(size)) for i in range(3)]
    answer = await turn.ask("Which?")
    await turn.write(f"{answer} {[f'{v[0]}{len(v)}' for v in values]}")


async def file(turn, size):
    try:
        await turn.file("large.bin", bytes(i % 251 for i in range(251)) * (int(size) // 251) + b"end")
    except ValueError as e:
        await turn.write(str(e))


COMMANDS = {f.__name__: f for f in (report, asks, large, file)}
