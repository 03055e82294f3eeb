"""The agents of examples/agents that are Python functions, and those of the docs."""
import importlib.util
import os
import re
import unittest

import tap

from dragoman.testing import Conversation, run

AGENTS = os.path.join(tap.TREE, "examples", "agents")


def load(path, text=None):
    """The module of a file, or of a text."""
    name = os.path.basename(path).replace(".py", "")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    if text is None:
        spec.loader.exec_module(module)
    else:
        exec(compile(text, path, "exec"), module.__dict__)
    return module


class Examples(unittest.TestCase):
    def test_booking(self):
        """booking.py asks, stores its step, and sends a file"""
        book = load(os.path.join(AGENTS, "booking.py")).book
        c = Conversation(book)
        self.assertEqual(c.send("a table for tonight").question, "For how many people?")
        self.assertEqual(c.send("many").question, "For how many people?")
        self.assertEqual(c.send("3").question, "Inside or outside?")
        result = c.send("inside", lost_after=3)
        self.assertEqual((result.state, result.text), ("completed", "Gladly. Booked: 3 people, inside, number 4711."))
        self.assertEqual([f.content for f in result.files], [b"Booking 4711: 3 people, inside\n"])
        self.assertEqual(result.data[0]["people"], 3)
        rejected = run(book, "a song")
        self.assertEqual((rejected.state, rejected.error), ("rejected", "I only book tables."))

    def test_streaming(self):
        """streaming.py streams, calls its tool once, and reads messages while it works"""
        main = load(os.path.join(AGENTS, "streaming.py")).main
        c = Conversation(main)
        first = c.send("What is the weather in Oslo?")
        self.assertEqual(first.text, "There is snow in Oslo, at -3 degrees. You have written 1 messages. ")
        self.assertEqual(first.tool_calls[0]["result"]["sky"], "snow")
        self.assertEqual((first.shared_state, first.usage[0]["model"]), ({"city": "Oslo"}, "fake"))
        second = c.send("Thanks", steering=["Be brief"])
        self.assertEqual(second.text, "You (You wrote: Be brief) have written 2 messages. ")


class Page(unittest.TestCase):
    def blocks(self, page):
        with open(os.path.join(tap.TREE, "docs", page), encoding="utf-8") as f:
            return re.findall(r"^```python\n(.*?)^```", f.read(), re.S | re.M)

    def test_agents_page(self):
        """every Python example of docs/agents/python.md runs; those with asserts hold"""
        blocks = self.blocks("agents/python.md")
        self.assertGreater(len(blocks), 5)
        shared = {"__name__": "page"}
        for block in blocks:
            exec(compile(block, "docs/agents/python.md", "exec"), shared)
        tests = [name for name in shared if name.startswith("test_")]
        self.assertGreater(len(tests), 2)
        for name in tests:
            shared[name]()


if __name__ == "__main__":
    tap.main()
