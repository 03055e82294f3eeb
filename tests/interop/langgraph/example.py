"""The graph of examples/langgraph, in a worker."""
import os
import unittest

from lib import TREE, tap
from lib.stand_in import Worker


class Example(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = Worker(os.path.join(TREE, "examples", "langgraph"), {"travel": {"path": "./agent.py:graph", "description": "d"}})

    @classmethod
    def tearDownClass(cls):
        cls.worker.__exit__()

    def test_advice(self):
        """the example streams its answer"""
        run = self.worker.run("travel", "t1", "When to go?")
        self.assertEqual(run.text(), "You asked: When to go? The best month for Lisbon is May.")
        self.assertEqual(run.value["messages"][0]["content"], run.text())

    def test_booking(self):
        """the example asks before it books, and sends every kind of event"""
        asked = self.worker.run("travel", "t2", "book it").value["interrupts"]
        self.assertEqual(asked[0]["value"], {"prompt": "Book the flight to Lisbon for 120 EUR?"})
        run = self.worker.run("travel", "t2", "yes", resume={asked[0]["id"]: "yes"})
        self.assertEqual([e["a2a"]["type"] for e in run.of("custom")], ["task_metadata", "message", "artifact", "artifact", "task_metadata"])
        self.assertEqual(run.value["outbox"]["parts"][0]["text"], "Your flight is booked.")

    def test_page(self):
        """the code of docs/agents/langgraph.md for authors runs"""
        with open(os.path.join(TREE, "docs", "agents", "langgraph.md"), encoding="utf-8") as f:
            code = f.read().split("## For graph authors (Python)")[1].split("```python")[1].split("```")[0]
        names, events = {}, []
        exec(code, names)
        inbox = names["A2AInbox"]({"message": {"parts": [{"text": "hi"}]}})
        self.assertEqual(names["node"]({"a2a_inbox": inbox}, events.append)["a2a_outbox"].parts[0].text, "done")
        self.assertEqual(events[0]["a2a"]["name"], "analysis")


if __name__ == "__main__":
    tap.main()
