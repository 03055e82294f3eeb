"""The agent of test_python_agents.py: the first word of the message says what it does."""
import asyncio
import os
import signal

from dragoman.agent import Failed, Rejected, agent


def is_first_time(path):
    """True once, also if the process is killed afterwards."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False


@agent(name="Python", description="An agent for tests")
async def main(turn):
    word, _, rest = turn.text.partition(" ")
    await COMMANDS[word](turn, rest)


async def count(turn, rest):
    for i in range(int(rest)):
        await turn.write(f"{i} ")


async def ask(turn, rest):
    await turn.write("Hello. ")
    pid = await turn.step("pid", os.getpid)
    name = await turn.ask("What is your name?")
    await turn.write(f"Thanks, {name}. ")
    color = await turn.ask("Which color?", choices=["red", "blue"])
    await turn.write(f"{name} likes {color}. First process: {pid}.")


async def wait(turn, rest):
    await turn.write("waiting ")
    try:
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        await turn.write("no more")
        raise


async def steer(turn, rest):
    await turn.write("ready ")
    while True:
        await turn.wait_for_message()
        for message in turn.new_messages():
            await turn.write(f"[{message.text}] ")
            if message.text == "done":
                return


async def everything(turn, rest):
    await turn.progress("Working on it")
    await turn.reasoning("Let me think.")
    async with turn.tool_call("get_weather", {"city": "Oslo"}) as call:
        call.result = {"sky": "snow"}
    await turn.state.replace({"city": "Oslo", "days": 2})
    turn.state["days"] = 3
    await turn.file("a.txt", "content of a")
    await turn.data({"n": 1})
    await turn.write("Done.")
    await turn.usage(input_tokens=3, output_tokens=4, model="m")


async def end(turn, rest):
    await turn.write("so far")
    if rest == "raise":
        raise ValueError("a secret")
    raise (Failed if rest == "fail" else Rejected)("The bank is closed.")


async def lost(turn, rest):
    """Its process is killed in the middle of the text, once; then it writes the same text, or another one."""
    path, _, other = rest.partition(" ")
    is_first = is_first_time(path)
    await turn.step("once", lambda: print("the step runs"))
    await turn.write("one ")
    await turn.write("two " if is_first or not other else other + " ")
    if is_first:
        await asyncio.sleep(0.2)  # until the server has it
        os.kill(os.getpid(), signal.SIGKILL)
    await turn.write("three")


async def hold(turn, rest):
    """Writes, and waits until the file exists."""
    await turn.write("one ")
    await turn.write("two ")
    while not os.path.exists(rest):
        await asyncio.sleep(0.02)
    await turn.write("three")


async def tool(turn, rest):
    output = await turn.call_tool("look_up", {"city": "Oslo"})
    await turn.write(f"{[t.name for t in turn.tools]} {output}")


async def history(turn, rest):
    await turn.write(" | ".join(f"{m.role}: {m.text}" for m in turn.history))


COMMANDS = {f.__name__: f for f in (count, ask, wait, steer, everything, end, lost, hold, tool, history)}
