"""mypy --strict over the package, and over a program that uses it."""
import os
import subprocess
import unittest

import tap

MYPY = os.path.join(tap.TREE, "python", "tests", ".venv-mypy", "bin", "mypy")
PYTHON = os.path.join(tap.TREE, "python")

USER = """
import dragoman
from typing import Any, Dict, List, Optional
pair = dragoman.convert_a2a_message_to_openai({})
message: Optional[Dict[str, Any]] = pair[0]
tools: List[Dict[str, Any]] = pair[1]
one: Optional[Dict[str, Any]] = dragoman.convert_agui_event_to_openai_chat({"type": "run-started"})
many: List[Dict[str, Any]] = dragoman.convert_agui_event_to_openai_chat(dragoman.compact_events([None]))
text: str = dragoman.convert("{}", "auto", "a2a-1.0", framing="lines", as_=None)
data: bytes = dragoman.convert(b"{}", "auto", "a2a-1.0")
with dragoman.Converter("auto", "a2a-1.0") as c:
    data += c.feed(b"") + c.end()
with dragoman.AgentLoop({"base_url": "mock:"}, store="memory:") as loop:
    for event in loop.execute("hi", context_id="c"):
        kind: str = event["kind"]
    loop.cancel(next(loop.resume("t"))["taskId"])
try:
    pass
except dragoman.ConvertError as e:
    where: str = e.pointer + e.code
    line: int = e.line
"""
AGENT = """
from typing import AsyncIterator, Optional
from dragoman.agent import Answer, Failed, SyncTurn, Turn, agent
from dragoman.testing import Conversation, Result, run

@agent
async def main(turn: Turn) -> None:
    await turn.write(turn.text)
    answer: Answer = await turn.ask("Name?", choices=["a"])
    name: str = answer
    n: int = await turn.step("n", lambda: 1)
    turn.state["n"] = n
    async with turn.tool_call("t", {"a": 1}) as call:
        call.result = name
    approved: Optional[bool] = answer.approved
    raise Failed("closed")

@agent(name="Other")
def other(turn: SyncTurn) -> str:
    turn.file("a.txt", b"a")
    return turn.ask("Name?") + str(turn.step("n", lambda: 1))

@agent
async def words(turn: Turn) -> AsyncIterator[str]:
    yield "a"

result: Result = run(main, "hi", answers=["x"])
text: str = Conversation(other).send("hi").text
"""
WRONG_AGENT = """
from dragoman.agent import Turn, agent

@agent
async def main(turn: Turn) -> None:
    await turn.write(3)
    number: int = await turn.ask("Name?")
"""
WRONG = """
import dragoman
dragoman.convert("{}", "auto", "a2a-1.0", colour="red")
text: bytes = dragoman.convert("{}", "auto", "a2a-1.0")
"""


def mypy(*arguments):
    p = subprocess.run([MYPY, "--strict", "--python-version", "3.9", "--cache-dir", "/dev/null", *arguments], cwd=PYTHON,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=300)
    return p.returncode, p.stdout


class Types(unittest.TestCase):
    def test_package(self):
        """mypy --strict finds nothing in the package"""
        code, said = mypy("dragoman", "aion")
        self.assertEqual(code, 0, said)

    def test_user(self):
        """a program that uses it is understood"""
        code, said = mypy("-c", USER)
        self.assertEqual(code, 0, said)

    def test_agent(self):
        """agents are understood, and their mistakes are seen"""
        code, said = mypy("-c", AGENT)
        self.assertEqual(code, 0, said)
        code, said = mypy("-c", WRONG_AGENT)
        self.assertEqual((code, "Found 2 errors" in said), (1, True), said)

    def test_wrong(self):
        """mistakes are seen"""
        code, said = mypy("-c", WRONG)
        self.assertEqual(code, 1, said)
        self.assertIn('"colour"', said)
        self.assertIn("Found 2 errors", said)


if __name__ == "__main__":
    tap.main()
