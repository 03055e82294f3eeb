"""python -m dragoman.worker, with the server's side played by fake_server.py."""
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import tap
from fake_server import FakeServer

AGENT = '''
import asyncio, os, sys, threading, time
from dragoman.agent import agent, Failed, Rejected

print("loaded")

@agent(name="Test", description="An agent for tests", skills=[{"id": "s", "name": "S", "description": "d", "tags": []}])
async def main(turn):
    word, _, rest = turn.text.partition(" ")
    if word == "echo":
        await turn.write(rest)
    elif word == "count":
        for i in range(int(rest)):
            await turn.write(f"{i} ")
    elif word == "ask":
        await turn.write("Before. ")
        once = await turn.step("pid", os.getpid)
        name = await turn.ask("Name?")
        color = await turn.ask("Color?")
        await turn.write(f"{name} {color} {once}")
    elif word == "wait":
        await turn.write("waiting")
        try:
            await asyncio.sleep(600)
        finally:
            await turn.write(" no more")
    elif word == "steer":
        await turn.wait_for_message()
        await turn.write(str([m.text for m in turn.new_messages()]))
    elif word == "print":
        print("printed", rest)
        sys.stderr.write("to stderr\\n")
        os.write(1, b"raw bytes\\n")
        thread = threading.Thread(target=lambda: print("from a thread"))
        thread.start(); thread.join()
    elif word == "raise":
        raise ValueError("secret " + rest)
    elif word == "surrogate":
        raise ValueError("\\ud800")
    elif word == "fail":
        raise Failed("The bank is closed.")
    elif word == "reject":
        raise Rejected("Not my job.")
    elif word == "nan":
        await turn.write("so far ")
        await turn.data(float("nan"))
    elif word == "long":
        await turn.data("x" * int(rest))
    elif word == "flood":
        for i in range(10**9):
            await turn.write("x" * 1000)
    elif word == "beside":
        async def report():
            for i in range(10):
                turn.progress(str(i))
                await asyncio.sleep(0)
        await asyncio.gather(turn.step("s", lambda: 1), report())
    elif word == "state":
        turn.state["n"] = 1
        await turn.file("a.txt", "hello")
    elif word == "exit":
        os._exit(3)
    return None
'''
SYNC = '''
import time
from dragoman.agent import agent

@agent
def one(turn):
    """Repeats.

    More."""
    if turn.text == "block":
        turn.write("x")
        time.sleep(600)
    yield f"{turn.text}{turn.ask('More?')}"

@agent(id="two")
def second(turn):
    return "two"
'''


class WorkerCase(unittest.TestCase):
    agent = AGENT

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dragoman-worker-")
        self.servers = []
        self.write("agent.py", self.agent)

    def tearDown(self):
        for s in self.servers:
            if s.process.poll() is None:
                s.kill()
            if not s.process.stderr.closed:
                s.close()
        shutil.rmtree(self.folder)

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def start(self, *arguments, **more):
        self.servers.append(FakeServer(*(arguments or ["agent.py"]), cwd=self.folder, **more))
        return self.servers[-1]

    def ready(self, **more):
        s = self.start(**more)
        answer = s.initialize()
        self.assertNotIn("error", answer)
        return s


class Protocol(WorkerCase):
    def test_handshake(self):
        """initialize names the agent, what is in its card, and what the worker can do"""
        s = self.start()
        answer = s.initialize(agent="configured")
        self.assertEqual((answer["protocolVersion"], answer["worker"]["lang"], answer["maxRuns"]), (1, "python", 64))
        self.assertEqual(answer["agents"], [{"id": "configured", "kind": "events", "name": "Test", "description": "An agent for tests",
                                             "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}]}])
        self.assertEqual(answer["capabilities"], {"cancel": True, "input": True, "state": False, "drain": False})
        self.assertEqual(s.call("ping"), {})
        self.assertEqual(s.call("initialize", {"protocolVersion": 9})["error"]["code"], -32602)

    def test_run(self):
        """events come before the response, seq is dense"""
        s = self.ready()
        self.assertEqual(s.run("r1", "echo hello wörld"), {"status": "completed"})
        self.assertEqual(s.text("r1"), "hello wörld")
        self.assertEqual(s.run("r2", "count 3"), {"status": "completed"})
        self.assertEqual([e["seq"] for e in s.events["r2"]], [0, 1, 2, 3, 4])
        self.assertEqual({e["type"] for e in s.events["r2"]}, {"a2a"})

    def test_many_runs(self):
        """60 runs at a time, 240 in all, multiplexed"""
        s = self.ready()
        for batch in range(4):
            keys = {f"r{batch}-{i}": s.start("run", s.run_params(f"r{batch}-{i}", f"count {i}")) for i in range(60)}
            for i, (run, key) in enumerate(keys.items()):
                self.assertEqual(s.wait(key)["result"], {"status": "completed"})
                self.assertEqual(s.text(run), "".join(f"{n} " for n in range(i)))

    def test_limit_of_runs(self):
        """more than maxRuns runs are refused"""
        s = self.ready()
        keys = [s.start("run", s.run_params(f"r{i}", "wait")) for i in range(64)]
        self.assertEqual(s.run("r64", "echo x")["error"]["code"], -32003)
        for i in range(64):
            s.notify("cancel", {"run": f"r{i}"})
        self.assertEqual({s.wait(k)["result"]["status"] for k in keys}, {"cancelled"})
        self.assertEqual(s.run("r64", "echo x"), {"status": "completed"})

    def test_cancel(self):
        """cancel is a CancelledError; the run is answered, and may still write"""
        s = self.ready()
        key = s.start("run", s.run_params("r1", "wait"))
        s.until(lambda: s.text("r1") == "waiting")
        s.notify("cancel", {"run": "r1"})
        s.notify("cancel", {"run": "unknown"})
        self.assertEqual(s.wait(key)["result"], {"status": "cancelled"})
        self.assertEqual(s.text("r1"), "waiting no more")

    def test_steering(self):
        """input reaches the function"""
        s = self.ready()
        key = s.start("run", s.run_params("r1", "steer"))
        s.until(lambda: s.events.get("r1"))
        s.notify("input", {"run": "r1", "message": {"messageId": "m9", "role": "ROLE_USER", "parts": [{"text": "faster"}]}})
        self.assertEqual(s.wait(key)["result"], {"status": "completed"})
        self.assertEqual(s.text("r1"), "['faster']")

    def test_errors(self):
        """exceptions have their type and traceback for the operator; Failed and Rejected are events"""
        s = self.ready()
        error = s.run("r1", "raise x")["error"]
        self.assertEqual((error["code"], error["message"], error["data"]["type"]), (-32000, "secret x", "ValueError"))
        self.assertIn("agent.py", error["data"]["traceback"])
        self.assertEqual(s.run("r2", "surrogate")["error"]["code"], -32000)
        for run, word, state in (("r3", "fail", "TASK_STATE_FAILED"), ("r4", "reject", "TASK_STATE_REJECTED")):
            self.assertEqual(s.run(run, word), {"status": "completed"})
            self.assertEqual(s.events[run][-1]["data"]["statusUpdate"]["status"]["state"], state)
        self.assertEqual(s.run("r5", "echo fine"), {"status": "completed"})

    def test_values_that_cannot_be_sent(self):
        """NaN and lines over the limit are errors of that run, and no broken line"""
        s = self.ready()
        error = s.run("r1", "nan")["error"]
        self.assertEqual((error["code"], s.text("r1")), (-32010, "so far "))
        self.assertIn("nan", error["message"])
        error = s.run("r2", f"long {9 << 20}")["error"]
        self.assertEqual(error["code"], -32010)
        self.assertIn("8388608", error["message"])
        self.assertEqual(s.run("r3", f"long {7 << 20}"), {"status": "completed"})
        self.assertEqual(s.run("r4", "echo fine"), {"status": "completed"})

    def test_wrong_requests(self):
        """unknown methods, wrong parameters, broken lines"""
        s = self.start()
        self.assertEqual(s.call("run", {})["error"]["code"], -32600)
        s.initialize()
        self.assertEqual(s.call("nonsense")["error"]["code"], -32601)
        self.assertEqual(s.call("state", {"agent": "a", "thread": "t"})["error"]["code"], -32601)
        self.assertEqual(s.call("run", {"run": 7})["error"]["code"], -32602)
        self.assertEqual(s.call("run", {"run": "r1"})["error"]["code"], -32602)
        s.send_bytes(b"\n  \n{broken\n[1]\n")
        self.assertEqual(s.run("r1", "echo fine"), {"status": "completed"})

    def test_lines_in_pieces(self):
        """a line that arrives byte by byte, and lines that arrive together"""
        s = self.ready()
        lines = []
        for key in (900, 901, 902):
            s._answers[key] = queue.Queue()
            request = {"jsonrpc": "2.0", "id": key, "method": "run", "params": s.run_params(f"r{key}", "echo ünï")}
            lines.append(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        for i in range(len(lines[0])):
            s.send_bytes(lines[0][i:i + 1])
        self.assertEqual(s.wait(900)["result"], {"status": "completed"})
        self.assertEqual(s.text("r900"), "ünï")
        s.send_bytes(lines[1] + lines[2])
        self.assertEqual((s.wait(901)["result"], s.wait(902)["result"]), ({"status": "completed"}, {"status": "completed"}))

    def test_large_line_to_the_worker(self):
        """a message of 7 MiB"""
        s = self.ready()
        self.assertEqual(s.run("r1", "echo " + "y" * (7 << 20)), {"status": "completed"})
        self.assertEqual(len(s.text("r1")), 7 << 20)

    def test_back_pressure(self):
        """a worker whose server does not read waits, and does not collect output in memory"""
        s = self.start(is_reading=False)
        s.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "agent": "a"}})
        s.send({"jsonrpc": "2.0", "id": 2, "method": "run", "params": s.run_params("r1", "flood")})

        def memory():
            with open(f"/proc/{s.process.pid}/statm", encoding="ascii") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def cpu():
            with open(f"/proc/{s.process.pid}/stat", encoding="ascii") as f:
                return sum(int(n) for n in f.read().rsplit(")", 1)[1].split()[11:13])
        last, since = -1, time.monotonic()
        while cpu() != last or time.monotonic() - since < 1:  # until it is idle for a second
            if cpu() != last:
                last, since = cpu(), time.monotonic()
            time.sleep(0.05)
        self.assertGreater(last, 0)
        self.assertLess(memory(), 200 << 20)
        s.kill()

    def test_end_of_connection(self):
        """EOF aborts all runs, and the worker exits with 0"""
        s = self.ready()
        s.start("run", s.run_params("r1", "wait"))
        s.until(lambda: s.text("r1") == "waiting")
        self.assertEqual(s.close(), 0)

    def test_shutdown(self):
        """after shutdown runs finish, new ones are refused, then the worker closes and exits with 0"""
        s = self.ready()
        key = s.start("run", s.run_params("r1", "steer"))
        s.until(lambda: s.events.get("r1"))
        self.assertEqual(s.call("shutdown", {"graceMs": 5000}), {})
        self.assertEqual(s.run("r2", "echo x")["error"]["code"], -32003)
        s.notify("input", {"run": "r1", "message": {"messageId": "m9", "role": "ROLE_USER", "parts": [{"text": "go"}]}})
        self.assertEqual(s.wait(key)["result"], {"status": "completed"})
        self.assertEqual(s.process.wait(30), 0)
        t = self.ready()
        self.assertEqual(t.call("shutdown", {"graceMs": 5000}), {})
        self.assertEqual(t.process.wait(30), 0)

    def test_output(self):
        """lines that a run prints are log lines with its id; other output goes to stdout and stderr"""
        s = self.ready()
        s.run("r1", "print this")
        s.until(lambda: b"raw bytes" in s.output and b"loaded" in s.output and b"from a thread" in s.output)
        self.assertEqual([(e["run"], e["text"]) for e in s.logs], [("r1", "printed this"), ("r1", "to stderr")])

    def test_stdio(self):
        """without DRAGOMAN_FD: stdin and stdout; output of the agent does not break the lines"""
        s = self.start(stdio=True)
        self.assertNotIn("error", s.initialize())
        self.assertEqual(s.run("r1", "print x"), {"status": "completed"})
        self.assertEqual(s.run("r2", "echo hi"), {"status": "completed"})
        self.assertEqual(s.text("r2"), "hi")
        self.assertEqual(s.close(), 0)

    def test_wrong_descriptor(self):
        """a DRAGOMAN_FD that is not a socket is a clear error"""
        p = subprocess.run([sys.executable, "-m", "dragoman.worker", "agent.py"], cwd=self.folder, text=True, capture_output=True,
                           env={**os.environ, "DRAGOMAN_FD": "77", "PYTHONPATH": os.path.join(tap.TREE, "python")}, timeout=60)
        self.assertEqual(p.returncode, 1)
        self.assertIn("DRAGOMAN_FD=77 is not an open socket", p.stderr)


class Replay(WorkerCase):
    def ask(self, run, text, journal, task=None, server=None, **more):
        s = server or self.ready()
        answer = s.run(run, text, journal=journal, currentTask=task, **more)
        return s, answer

    def test_question_after_kill(self):
        """each answer goes to a new process after kill -9: steps are not repeated, output is not repeated"""
        s, answer = self.ask("r1", "ask", None)
        self.assertEqual(answer, {"status": "interrupted"})
        self.assertEqual((s.text("r1"), s.events["r1"][-1]["data"]["statusUpdate"]["status"]["message"]["parts"]), ("Before. ", [{"text": "Name?"}]))
        pid, journal = s.process.pid, s.journals["r1"]
        s.kill()
        task = {"id": "task-1", "status": {"state": "TASK_STATE_INPUT_REQUIRED"}, "artifacts": [], "history": []}
        s, answer = self.ask("r2", "Bob", journal, task)
        self.assertEqual((answer, s.text("r2")), ({"status": "interrupted"}, ""))
        journal = s.journals["r2"]
        s.kill()
        s, answer = self.ask("r3", "blue", journal, task)
        self.assertEqual((answer, s.text("r3")), ({"status": "completed"}, f"Bob blue {pid}"))

    def test_lost_run(self):
        """a run that was lost is started again with the same message: the text goes on where the server has it"""
        s = self.ready()
        task = {"id": "task-1", "status": {"state": "TASK_STATE_WORKING"}, "history": [],
                "artifacts": [{"artifactId": "answer", "parts": [{"text": "0 1 2 "}]}]}
        self.assertEqual(s.run("r1", "count 5", isResumed=True, attempt=2, currentTask=task), {"status": "completed"})
        updates = [e["data"]["artifactUpdate"] for e in s.events["r1"]]
        self.assertEqual([(u["artifact"]["parts"][0]["text"], u["append"], u["lastChunk"]) for u in updates],
                         [("3 ", True, False), ("4 ", True, False), ("", True, True)])
        task["artifacts"][0]["parts"][0]["text"] = "0 one"
        self.assertEqual(s.run("r2", "count 2", isResumed=True, attempt=2, currentTask=task), {"status": "completed"})
        self.assertEqual((s.text("r2"), s.events["r2"][0]["data"]["artifactUpdate"]["append"]), ("0 1 ", False))

    def test_journal_beside_events(self):
        """a journal counts exactly the events that the server has received before it"""
        s, seen = self.ready(), []

        def answer(method, params):
            received = sum("statusUpdate" in e["data"] and "message" in e["data"]["statusUpdate"]["status"] for e in s.events.get("r1", []))
            seen.append((json.loads(params["text"])["segments"][-1].get("events", 0), received))
            return s.answer_request(method, params)
        s.answer = answer
        self.assertEqual(s.run("r1", "beside"), {"status": "completed"})
        self.assertEqual([counted for counted, _ in seen], [received for _, received in seen])
        self.assertEqual(len(seen), 1)

    def test_journal_of_another_program(self):
        """a journal that this package did not write is a clear error"""
        s = self.ready()
        error = s.run("r1", "echo x", journal="not json")["error"]
        self.assertIn("unknown format", error["message"])

    def test_journal_that_is_refused(self):
        """a journal that the server cannot store is an error of the run"""
        s = self.ready()
        s.answer = lambda method, params: {"error": {"code": -32603, "message": "the disk is full"}}
        error = s.run("r1", "ask")["error"]
        self.assertIn("the disk is full", error["message"])
        self.assertNotIn("TASK_STATE_INPUT_REQUIRED", str(s.events["r1"]))


class Loading(WorkerCase):
    agent = SYNC

    def error(self, *arguments, **more):
        s = self.start(*arguments, **more)
        error = s.initialize()["error"]
        self.assertEqual(error["code"], -32004)
        self.assertIn(sys.executable, error["message"])
        return error

    def test_choose(self):
        """a file with several agents: chosen by name, by the id of the configured agent"""
        s = self.start("agent.py:two")
        self.assertEqual(s.initialize()["agents"][0]["id"], "a")
        s.run("r1", "x")
        self.assertEqual(s.text("r1"), "two")
        s = self.start("--agent", "agent.py")
        self.assertEqual(s.initialize(agent="one")["agents"], [{"id": "one", "kind": "events", "description": "Repeats."}])
        self.assertEqual(s.run("r1", "x", agent="one"), {"status": "interrupted"})
        self.assertIn("name one, agent.py:one", self.error("agent.py")["message"])
        self.assertIn("agent.py has no agent three. Agents: one, two", self.error("agent.py:three")["message"])

    def test_thread_that_blocks(self):
        """a function that blocks its thread does not hold other runs, a cancel, or the end of the process"""
        s = self.start("agent.py:one")
        s.initialize()
        key = s.start("run", s.run_params("r1", "block"))
        s.until(lambda: s.text("r1") == "x")
        self.assertEqual(s.run("r2", "hi"), {"status": "interrupted"})
        s.notify("cancel", {"run": "r1"})
        self.assertEqual(s.wait(key)["result"], {"status": "cancelled"})
        s.start("run", s.run_params("r3", "block"))
        s.until(lambda: s.text("r3") == "x")
        self.assertEqual(s.close(), 0)

    def test_faults(self):
        """a missing package, an error in the file, no agent, no file, no argument: each is explained"""
        self.write("needs.py", "import not_installed_package.sub\n")
        error = self.error("needs.py")
        self.assertIn("missing package not_installed_package", error["message"])
        self.assertIn("-m pip install not_installed_package", error["message"])
        self.assertIn("needs.py", error["data"]["traceback"])
        self.write("broken.py", "def f(:\n")
        self.assertIn("SyntaxError", self.error("broken.py")["message"])
        self.write("empty.py", "x = 1\n")
        self.assertIn("empty.py has no agent: put @agent", self.error("empty.py")["message"])
        self.assertIn("there is no file", self.error("absent.py")["message"])
        s = FakeServer(cwd=self.folder)
        self.servers.append(s)
        self.assertIn("missing the file of the agent", s.initialize()["error"]["message"])

    def test_imports(self):
        """files next to the agent are imported, also if it is in another folder; a module works, too"""
        os.mkdir(os.path.join(self.folder, "app"))
        self.write("app/helper.py", "WORD = 'helped'\n")
        self.write("app/json.py", "from helper import WORD\nfrom dragoman.agent import agent\n\n@agent\nasync def f(turn):\n    return WORD\n")
        s = self.start("app/json.py")
        self.assertNotIn("error", s.initialize())
        s.run("r1")
        self.assertEqual(s.text("r1"), "helped")
        self.write("module.py", "from dragoman.agent import agent\n\n@agent\nasync def f(turn):\n    return __name__\n")
        s = self.start("module:f")
        self.assertNotIn("error", s.initialize())
        s.run("r1")
        self.assertEqual(s.text("r1"), "module")


if __name__ == "__main__":
    tap.main()
