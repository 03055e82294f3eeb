"""A worker process is killed with -9; another one goes on from the server's checkpoints."""
import os
import tempfile
import unittest

from lib import tap
from lib.stand_in import Store, Worker, user


class Killed(unittest.TestCase):
    def setUp(self):
        self.store = Store()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.marks = os.path.join(self.folder.name, "marks")

    def worker(self, *graphs):
        return Worker("acceptance", {g: f"./graphs.py:{g}" for g in graphs}, store=self.store)

    def marked(self):
        with open(self.marks, encoding="utf-8") as f:
            return f.read().split()

    def test_node(self):
        """in the middle of a node: the finished node is not repeated, its message and outbox are in the result, the inbox has attributes [R003-06 R003-21]"""
        given = user(self.marks)
        with self.worker("steps") as worker:
            run = worker.start("steps", "t", given)
            run.wait_for(lambda r: r.of("custom"))
            worker.kill()
        with open(self.marks + ".go", "w", encoding="utf-8"):
            pass
        with self.worker("steps") as worker:
            state = worker.state("steps", "t")
            self.assertEqual((state["exists"], state["next"], state["messageIds"][0]), (True, ["step_two"], given["messages"][0]["id"]))
            result = worker.run("steps", "t", None, attempt=2).value
            self.assertEqual(self.marked(), ["one", "two", "two", "three"])
            self.assertEqual((result["status"], [m["content"] for m in result["messages"]]), ("completed", ["from one"]))
            self.assertEqual(result["outbox"], {"parts": [{"text": "outbox of one"}]})
            trace = worker.state("steps", "t", values=True)["values"]["trace"]
            self.assertEqual(trace, ["one", "two", f"three {given['messages'][0]['id']}"])

    def test_interrupted(self):
        """while interrupted: the question is still there, and its answer finishes the run"""
        with self.worker("asks") as worker:
            asked = worker.run("asks", "t", "hi").value["interrupts"]
            worker.kill()
        with self.worker("asks") as worker:
            self.assertEqual(worker.state("asks", "t")["interrupts"], asked)
            result = worker.run("asks", "t", "Bob", resume={asked[0]["id"]: "Bob"}).value
            self.assertEqual((result["status"], result["messages"][-1]["content"]), ("completed", "Hi Bob"))
            self.assertEqual(worker.state("asks", "t", values=True)["values"]["trace"], ["post"])

    def test_resumed(self):
        """in the middle of a resumed node: the interrupt is still reported, and the same resume finishes it"""
        with self.worker("resumed_slowly") as worker:
            asked = worker.run("resumed_slowly", "t", "hi").value["interrupts"]
            given = user("answer")
            run = worker.start("resumed_slowly", "t", given, resume={asked[0]["id"]: self.marks})
            run.wait_for(lambda r: r.of("custom"))
            worker.kill()
        with open(self.marks + ".go", "w", encoding="utf-8"):
            pass
        with self.worker("resumed_slowly") as worker:
            self.assertEqual(worker.state("resumed_slowly", "t")["interrupts"], asked)
            result = worker.run("resumed_slowly", "t", given, resume={asked[0]["id"]: self.marks}).value
            self.assertEqual((result["status"], [m["content"] for m in result["messages"]]), ("completed", ["waited"]))
            self.assertEqual(self.marked(), ["asked", "asked"])
            self.assertEqual(worker.state("resumed_slowly", "t", values=True)["values"]["trace"], ["post"])

    def test_stream(self):
        """in the middle of a stream: the thread is at the streaming node, and continues there"""
        with self.worker("slow_stream") as worker:
            run = worker.start("slow_stream", "t", "hi")
            run.wait_for(lambda r: len(r.of("custom")) >= 3)
            worker.kill()
        with self.worker("slow_stream") as worker:
            self.assertEqual(worker.state("slow_stream", "t")["next"], ["slow_tokens"])
            run = worker.start("slow_stream", "t", None)
            run.wait_for(lambda r: len(r.of("custom")) >= 3)
            self.assertEqual(run.of("custom")[0]["a2a"]["message"]["content"], "0 ")

    def test_before(self):
        """before the input was stored: the thread does not exist, and the same run is sent again"""
        original = self.store.checkpoint_put
        with self.worker("tokens") as worker:
            self.store.checkpoint_put = lambda **params: worker.kill() or {}
            run = worker.start("tokens", "t", "hi")
            with self.assertRaises(Exception):
                run.result()
        self.store.checkpoint_put = original
        with self.worker("tokens") as worker:
            self.assertFalse(worker.state("tokens", "t")["exists"])
            self.assertEqual(worker.run("tokens", "t", "hi").value["messages"][0]["content"], "Hello there friend")

    def test_after_input(self):
        """between the input and the first node: the inbox has attributes in the first node [R003-06]"""
        original, count = self.store.checkpoint_put, []

        def put(**params):
            count.append(params)
            return original(**params) if len(count) == 1 else worker.kill() or {}
        with self.worker("inbox") as worker:
            self.store.checkpoint_put = put
            run = worker.start("inbox", "t", "hi")
            with self.assertRaises(Exception):
                run.result()
        self.store.checkpoint_put = original
        with self.worker("inbox") as worker:
            self.assertEqual(worker.state("inbox", "t")["next"], ["__start__"])
            self.assertEqual(worker.run("inbox", "t", None).value["messages"][0]["content"], "True hi c1 x")

    def test_finished(self):
        """after the end: state has the messages"""
        with self.worker("tokens") as worker:
            worker.run("tokens", "t", "hi")
            worker.kill()
        with self.worker("tokens") as worker:
            state = worker.state("tokens", "t", values=True)
            self.assertEqual((state["next"], state["values"]["messages"][-1]["content"]), ([], "Hello there friend"))
            result = worker.run("tokens", "t", None).value
            self.assertEqual((result["status"], result["messages"][-1]["content"]), ("completed", "Hello there friend"))


if __name__ == "__main__":
    tap.main()
