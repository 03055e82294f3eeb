"""AgentLoop, with the scripted model."""
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import tap

from dragoman import AgentError, AgentLoop

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = {"exec": {"name": "now", "command": ["echo", "noon"], "description": "the time"}}
SETTINGS = {"base_url": "mock:", "ask_user": True, "tools": [TOOL]}


def text_of(events):
    """The text of the last artifact."""
    text = ""
    for e in events:
        if e["kind"] == "artifact-update":
            piece = "".join(p.get("text", "") for p in e["artifact"]["parts"])
            text = text + piece if e.get("append") else piece
    return text


def states(events):
    return [e["status"]["state"] for e in events if "status" in e]


class Agent(unittest.TestCase):
    def test_compliance(self):
        """the compliance test of document 002: internal events filtered, first a task, last a final status-update [R002-31 R002-35]"""
        with AgentLoop(SETTINGS) as loop:
            events = [e for e in loop.execute("Test prompt") if not e["kind"].startswith("internal:")]
        for e in events:
            self.assertIn(e["kind"], ("task", "status-update", "artifact-update"))
        self.assertEqual(events[0]["kind"], "task")
        self.assertEqual(events[-1]["kind"], "status-update")
        self.assertIs(events[-1]["final"], True)

    def test_flow(self):
        """the flow of an execution with a tool [R002-29]"""
        with AgentLoop(SETTINGS) as loop:
            events = list(loop.execute("call now {} then echo It is noon.", context_id="ctx-456"))
        kinds = [e["kind"] for e in events]
        self.assertEqual(states(events), ["submitted", "working", "completed"])
        order = [kinds.index(k) for k in ("task", "status-update", "internal:llm-call", "internal:tool-start",
                                          "internal:tool-complete", "artifact-update")]
        self.assertEqual(order, sorted(order))
        start = events[kinds.index("internal:tool-start")]
        self.assertEqual((start["toolName"], start["taskId"]), ("now", events[0]["id"]))
        self.assertEqual(events[0]["contextId"], "ctx-456")
        self.assertEqual(text_of(events), "It is noon.")
        self.assertEqual(events[-1]["status"]["message"]["parts"][0]["text"], "It is noon.")

    def test_question(self):
        """a question is answered with the id of its task"""
        with AgentLoop(SETTINGS) as loop:
            events = list(loop.execute("ask Which color?"))
            self.assertEqual(states(events)[-1], "input-required")
            task_id = events[0]["id"]
            self.assertEqual([e["status"]["state"] for e in loop.resume(task_id)], ["input-required"])
            events = list(loop.execute("blue", task_id=task_id))
            self.assertEqual((events[0]["kind"], events[0]["id"]), ("task", task_id))
            self.assertEqual(states(events)[-1], "completed")

    def test_approval(self):
        """a message as a dict answers an approval"""
        with AgentLoop({**SETTINGS, "approve": "always"}) as loop:
            events = list(loop.execute("call now {}"))
            request = [p["data"] for p in events[-1]["status"]["message"]["parts"] if p["kind"] == "data"][0]
            self.assertEqual(request["type"], "approval-request")
            answer = {"kind": "message", "role": "user", "parts": [
                {"kind": "data", "data": {"type": "approval", "id": request["id"], "approved": False, "reason": "no"}}]}
            events = list(loop.execute(answer, task_id=events[0]["id"]))
            self.assertEqual(states(events)[-1], "completed")
            self.assertNotIn("internal:tool-start", [e["kind"] for e in events])

    def test_cancel(self):
        """another thread cancels; a task that has ended cannot be canceled"""
        with AgentLoop(SETTINGS) as loop:
            events, threads = [], []
            for e in loop.execute("hang"):
                events.append(e)
                if e["kind"] == "internal:llm-call":
                    threads.append(threading.Thread(target=loop.cancel, args=[events[0]["id"]]))
                    threads[0].start()
            threads[0].join()
            self.assertEqual(states(events)[-1], "canceled")
            done = list(loop.execute("echo hi"))
            with self.assertRaises(AgentError) as caught:
                loop.cancel(done[0]["id"])
            self.assertEqual(caught.exception.code, "TASK_NOT_CANCELABLE")

    def test_resume_after_a_crash(self):
        """after a kill -9 resume goes on without a second task and ends in completed [R002-32 R002-37]"""
        program = f"""if 1:
            import json, os, signal, sys
            sys.path.insert(0, {HERE!r}); import tap
            from dragoman import AgentLoop
            loop = AgentLoop({SETTINGS!r}, store=sys.argv[1])
            for e in loop.execute("call now {{}} then slow 50 one two three four five six"):
                if e["kind"] == "task":
                    print(e["id"], flush=True)
                if e["kind"] == "artifact-update":
                    os.kill(os.getpid(), signal.SIGKILL)
        """
        with tempfile.TemporaryDirectory() as folder:
            store = f"sqlite:{folder}/tasks.db"
            p = subprocess.run([sys.executable, "-c", program, store], stdout=subprocess.PIPE, text=True, timeout=60)
            self.assertEqual(p.returncode, -9)
            task_id = p.stdout.strip()
            with AgentLoop(SETTINGS, store=store) as loop:
                events = list(loop.resume(task_id))
                again = list(loop.resume(task_id))
        kinds = [e["kind"] for e in events]
        self.assertNotIn("task", kinds)
        self.assertNotIn("internal:tool-start", kinds)
        self.assertEqual((states(events)[-1], events[-1]["final"]), ("completed", True))
        self.assertEqual(text_of(events), "one two three four five six")
        self.assertEqual([(e["kind"], e["status"]["state"]) for e in again], [("status-update", "completed")])

    def test_failed(self):
        """a model that fails is a failed task with metadata.error [R002-10]"""
        with AgentLoop(SETTINGS) as loop:
            last = list(loop.execute("error 400 broken"))[-1]
        self.assertEqual((last["status"]["state"], last["final"]), ("failed", True))
        self.assertTrue(last["metadata"]["error"])

    def test_mcp(self):
        """tools of an MCP server"""
        dragoman = os.environ.get("DRAGOMAN") or os.path.join(tap.TREE, "build", "dragoman")
        with AgentLoop({"base_url": "mock:", "tools": ["demo"]}, mcp={"demo": {"command": [dragoman, "mcp-demo"]}}) as loop:
            events = list(loop.execute("call demo__roll_dice {}"))
        complete = [e for e in events if e["kind"] == "internal:tool-complete"]
        self.assertEqual([e["success"] for e in complete], [True], events)

    def test_config(self):
        """a whole configuration, as text and from a file, with the id of the agent"""
        config = "agents:\n- {id: hello, type: hello, default: true}\n- {id: m, type: llm, settings: {base_url: 'mock:'}}\n"
        with AgentLoop(config=config, agent="m") as loop:
            self.assertEqual(text_of(loop.execute("echo from m")), "from m")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "dragoman.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(config)
            with AgentLoop(config_file=path, agent="m") as loop:
                self.assertEqual(text_of(loop.execute("echo from m")), "from m")

    def test_errors(self):
        """errors have a code and the pointer of the invalid setting"""
        with self.assertRaises(AgentError) as caught:
            AgentLoop({**SETTINGS, "histroy": 3})
        self.assertEqual((caught.exception.code, caught.exception.pointer), ("BAD_PARAMS", "/histroy"))
        with AgentLoop(SETTINGS) as loop:
            for call in (lambda: list(loop.resume("unknown")), lambda: loop.cancel("unknown"),
                         lambda: list(loop.execute("hi", task_id="unknown"))):
                with self.assertRaises(AgentError) as caught:
                    call()
                self.assertEqual(caught.exception.code, "TASK_NOT_FOUND")
            with self.assertRaises(AgentError) as caught:
                loop.execute("half a pair: \ud800")
            self.assertEqual(caught.exception.code, "PARSE")

    def test_close(self):
        """a loop that is closed ends its iterators, and refuses calls"""
        loop = AgentLoop(SETTINGS)
        events = loop.execute("hang")
        next(events)
        loop.close()
        with self.assertRaises(AgentError) as caught:
            list(events)
        self.assertEqual(caught.exception.code, "UNAVAILABLE")
        with self.assertRaises(AgentError):
            loop.execute("hi")
        loop.close()

    def test_closed_events(self):
        """events that are not read do not stop the task"""
        with AgentLoop(SETTINGS) as loop:
            with loop.execute("slow 20 one two three") as events:
                task_id = next(events)["id"]
            self.assertEqual(list(events), [])
            self.assertEqual(states(loop.resume(task_id))[-1], "completed")

    def test_log(self):
        """lines of the operator's log reach on_log"""
        lines = []
        mcp = {"gone": {"command": ["/nowhere/program"]}}
        with AgentLoop({"base_url": "mock:", "tools": ["gone"]}, mcp=mcp, on_log=lines.append) as loop:
            list(loop.execute("echo hi"))
        self.assertTrue(any("the MCP server gone" in line for line in lines), lines)

    def test_missing_library(self):
        """without libdragoman-agent.so only AgentLoop fails, and says what to do"""
        p = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {HERE!r}); import tap, dragoman\n"
                            "dragoman.AgentLoop({})"], env={**os.environ, "DRAGOMAN_AGENT_LIB": "/nowhere/x.so"},
                           stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn("ImportError: AgentLoop needs libdragoman-agent.so", p.stderr)
        self.assertIn("/nowhere/x.so: not there", p.stderr)


if __name__ == "__main__":
    tap.main()
