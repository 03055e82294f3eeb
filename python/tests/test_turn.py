"""Functions as agents: what they send, and how they run again after questions and losses. Without a server."""
import asyncio
import base64
import itertools
import random
import unittest

import tap

from dragoman import _journal
from dragoman._rpc import EncodeError
from dragoman.agent import Failed, NotDeterministic, Rejected, agent
from dragoman.testing import Conversation, _Lost, run


def kinds(result):
    """The events in short."""
    found = []
    for e in result.events:
        if "artifactUpdate" in e:
            u = e["artifactUpdate"]
            text = "".join(p.get("text", "?") for p in u["artifact"]["parts"])
            found.append(f"{u['artifact']['artifactId']}{'+' if u['append'] else '='}{text}{'.' if u['lastChunk'] else ''}")
        elif "statusUpdate" in e:
            found.append(e["statusUpdate"]["status"]["state"].replace("TASK_STATE_", "").lower())
        else:
            found.append(e["kind"].replace("internal:", ""))
    return found


class Sending(unittest.TestCase):
    def test_write(self):
        """text is one artifact in chunks that ends with lastChunk"""
        @agent
        async def main(turn):
            await turn.write("Hello ")
            await turn.write(turn.text)
        self.assertEqual(kinds(run(main, "world")), ["working", "answer=Hello ", "answer+world", "answer+."])

    def test_kinds_of_functions(self):
        """async functions, async generators, functions, generators, and those that return a text"""
        async def coroutine(turn):
            return "a" + turn.text

        async def generator(turn):
            yield "a"
            yield turn.text

        def function(turn):
            turn.write("a")
            return turn.text

        def sync_generator(turn):
            yield "a"
            yield turn.text

        for f in (coroutine, generator, function, sync_generator):
            result = run(agent(f), "b")
            self.assertEqual((result.text, result.state), ("ab", "completed"), f.__name__)

    def test_writes_that_are_not_awaited(self):
        """a write without await is sent, too"""
        @agent
        async def main(turn):
            turn.write("a")
            turn.progress("p")
            turn.state["n"] = 1
            turn.write("b")
        result = run(main, "")
        self.assertEqual((result.text, result.progress, result.shared_state), ("ab", ["p"], {"n": 1}))

    def test_everything(self):
        """progress, reasoning, tool calls, usage, files, data, state and custom events"""
        @agent
        async def main(turn):
            await turn.progress("Looking")
            await turn.reasoning("Hm. ")
            await turn.reasoning("Yes.")
            async with turn.tool_call("get_weather", {"city": "Oslo"}) as call:
                call.result = {"sky": "snow"}
            second = turn.tool_call("broken")
            second.failed("no answer")
            turn.state["days"] = 2
            turn.state["city"] = "Oslo"
            del turn.state["days"]
            await turn.custom("map", {"lat": 59.9})
            await turn.file("a.txt", "text")
            await turn.file("b.png", b"\x89PNG")
            await turn.file("c.pdf", url="https://example.com/c.pdf")
            await turn.data({"n": 1})
            await turn.usage(input_tokens=3, output_tokens=4, model="m")
        r = run(main, "hi", state={"days": 1})
        self.assertEqual((r.progress, r.reasoning), (["Looking"], "Hm. Yes."))
        self.assertEqual(r.tool_calls, [{"name": "get_weather", "arguments": {"city": "Oslo"}, "success": True, "result": {"sky": "snow"}},
                                        {"name": "broken", "arguments": {}, "success": False, "error": "no answer"}])
        self.assertEqual(r.shared_state, {"city": "Oslo"})
        self.assertEqual([(f.name, f.media_type, f.content, f.url) for f in r.files],
                         [("a.txt", "text/plain", b"text", None), ("b.png", "image/png", b"\x89PNG", None),
                          ("c.pdf", "application/pdf", None, "https://example.com/c.pdf")])
        self.assertEqual(r.data, [{"n": 1}])
        self.assertEqual(r.usage, [{"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "model": "m"}])
        self.assertIn("custom", kinds(r))

    def test_tool_that_fails(self):
        """an exception in a tool call is reported without its text; Failed with it"""
        for error, told in ((ValueError("secret"), "t failed"), (Failed("the shop is closed"), "the shop is closed")):
            @agent
            async def main(turn, error=error):
                try:
                    async with turn.tool_call("t"):
                        raise error
                except Exception:
                    pass
            self.assertEqual(run(main, "").tool_calls, [{"name": "t", "arguments": {}, "success": False, "error": told}])

    def test_what_it_reads(self):
        """message, history, files, data, tools, instructions"""
        seen = {}

        @agent
        async def main(turn):
            seen.update(text=turn.text, history=[(m.role, m.text) for m in turn.history], files=turn.files, data=turn.message.data,
                        tools=[t.name for t in turn.tools], chat=turn.chat(), principal=turn.principal)
            return "first" if not turn.history else "second"
        c = Conversation(main, tools=[{"name": "look_up", "parameters": {}}], metadata={"dragoman:instructions": "Be brief"}, principal="ann")
        c.send("one")
        message = {"role": "ROLE_USER", "parts": [{"text": "secret", "metadata": {"dragoman:part": "transcript"}}, {"text": "tw"}, {"text": "o"},
                                                  {"raw": "aGk=", "filename": "h.txt", "mediaType": "text/plain"}, {"data": {"n": 1}}]}
        c.send(message)
        self.assertEqual((seen["text"], seen["history"]), ("two", [("user", "one"), ("agent", "first")]))
        self.assertEqual(([tuple(f) for f in seen["files"]], seen["data"]), ([("h.txt", "text/plain", b"hi", None)], [{"n": 1}]))
        self.assertEqual((seen["tools"], seen["principal"]), (["look_up"], "ann"))
        self.assertEqual([m["role"] for m in seen["chat"]], ["system", "user", "assistant", "user"])

    def test_failed_and_rejected(self):
        """the sentence of Failed and Rejected is for callers; other exceptions are raised on"""
        @agent
        async def main(turn):
            turn.write("so far")
            if turn.text == "bug":
                raise KeyError("secret")
            raise (Failed if turn.text == "fail" else Rejected)("The bank is closed.")
        failed, rejected = run(main, "fail"), run(main, "reject")
        self.assertEqual((failed.state, failed.error, failed.text), ("failed", "The bank is closed.", "so far"))
        self.assertEqual((rejected.state, rejected.error), ("rejected", "The bank is closed."))
        self.assertEqual(kinds(failed)[-2:], ["answer+.", "failed"])
        with self.assertRaises(KeyError):
            run(main, "bug")

    def test_values_that_are_not_json(self):
        """NaN, lone surrogates and objects are errors of the call that sends them, which name the place"""
        caught = []

        @agent
        async def main(turn):
            for call in (lambda: turn.data({"a": [1, float("nan")]}), lambda: turn.write("\ud800"), lambda: turn.data({"a": {"b": object()}}),
                         lambda: turn.data({("a", "b"): 1})):
                try:
                    await call()
                except EncodeError as e:
                    caught.append(str(e))
            await turn.write("fine")
        result = run(main, "")
        self.assertEqual(result.text, "fine")
        self.assertEqual(len(caught), 4)
        self.assertIn("/a/1 is nan", caught[0])
        self.assertIn("lone surrogate", caught[1])
        self.assertIn("/a/b is of type object", caught[2])
        self.assertIn("key of type tuple", caught[3])

    def test_wrong_results(self):
        """an agent that returns or writes something else than text gets a clear error"""
        @agent
        async def returns(turn):
            return {"a": 1}

        @agent
        async def writes(turn):
            turn.write(3)
        for f, text in ((returns, "not dict"), (writes, "got int")):
            with self.assertRaises(TypeError) as caught:
                run(f, "")
            self.assertIn(text, str(caught.exception))

    def test_long_text(self):
        """a text longer than a line is sent in several events"""
        @agent
        async def main(turn):
            await turn.write("x" * 3_000_000)
        result = run(main, "")
        self.assertEqual(len(result.text), 3_000_000)
        self.assertGreater(len(result.events), 5)

    def test_cancel(self):
        """a cancel is a CancelledError in an async function, and the next call in a thread; an open text is closed"""
        ended = []

        @agent
        async def main(turn):
            try:
                for i in itertools.count():
                    await turn.write(f"{i} ")
                    await asyncio.sleep(0.001)
            finally:
                ended.append("async")

        @agent
        def sync(turn):
            try:
                for i in itertools.count():
                    turn.write(f"{i} ")
            finally:
                ended.append("sync")
        for f in (main, sync):
            result = Conversation(f).send("", cancel_after=4)
            self.assertEqual(result.state, "canceled")
            self.assertTrue(result.events[-1]["artifactUpdate"]["lastChunk"])
        self.assertEqual(ended, ["async", "sync"])


class Questions(unittest.TestCase):
    def test_ask_twice(self):
        """the function runs again from the top, answers are returned in order, output is not repeated"""
        runs = []

        @agent
        async def main(turn):
            runs.append(turn.text)
            await turn.write("Hello. ")
            turn.state["greeted"] = True
            name = await turn.ask("Name?")
            await turn.write(f"Hi {name}. ")
            color = await turn.ask("Color?", choices=["red", "blue"])
            await turn.write(f"{name} likes {color}.")
        c = Conversation(main)
        first = c.send("start")
        self.assertEqual((first.state, first.question), ("input-required", "Name?"))
        second = c.send("Bob")
        self.assertEqual(second.question, "Color?")
        self.assertEqual(second.question_parts[1], {"data": {"type": "question", "text": "Color?", "choices": ["red", "blue"]}})
        last = c.send("blue")
        self.assertEqual((last.state, last.question), ("completed", None))
        self.assertEqual(kinds(last), ["working", "answer=Hello. ", "state", "answer+.", "input_required", "working", "answer-2=Hi Bob. ", "answer-2+.",
                                       "input_required", "working", "answer-3=Bob likes blue.", "answer-3+."])
        self.assertEqual(runs, ["start"] * 3)

    def test_ask_in_a_loop(self):
        """a loop of questions, in a function that is not async"""
        @agent
        def main(turn):
            items = []
            while True:
                item = turn.ask("Next item?")
                if item == "done":
                    return ", ".join(items)
                items.append(item)
        result = run(main, "list", answers=["milk", "bread", "tea", "done"])
        self.assertEqual((result.text, len(result.questions)), ("milk, bread, tea", 4))

    def test_answers(self):
        """an answer is a text with data and files; approvals and tools of the caller"""
        seen = []

        @agent
        async def main(turn):
            answer = await turn.ask("Form?", schema={"type": "object"})
            seen.append((str(answer), answer.data))
            seen.append(await turn.approve("delete", {"path": "x"}))
            seen.append(await turn.call_tool("look_up", {"city": "Oslo"}))
            seen.append(str(await turn.sign_in("https://example.com/login")))
        c = Conversation(main)
        c.send("go")
        r = c.send({"role": "ROLE_USER", "parts": [{"text": "here"}, {"data": {"n": 1}}]})
        self.assertEqual(r.question_parts[1]["data"]["type"], "approval-request")
        r = c.send("perhaps")
        self.assertEqual(r.question_parts[1]["data"]["tool"], "delete")
        r = c.send("Yes!")
        call = r.question_parts[0]["data"]["tool_calls"][0]
        self.assertEqual((call["name"], call["arguments"]), ("look_up", {"city": "Oslo"}))
        r = c.send({"role": "ROLE_USER", "parts": [{"data": {"tool_results": [{"call_id": call["call_id"], "output": "snow"}]}}]})
        self.assertEqual((r.state, r.question_parts[1]["data"]["url"]), ("auth-required", "https://example.com/login"))
        r = c.send("signed in")
        self.assertEqual(r.state, "completed")
        del seen[:-4]
        self.assertEqual(seen, [("here", {"n": 1}), True, "snow", "signed in"])

    def test_message_and_history_stay(self):
        """message, history, metadata and state are those of the first run"""
        seen = []

        @agent
        async def main(turn):
            seen.append((turn.text, [m.text for m in turn.history], turn.metadata.get("n"), dict(turn.state)))
            await turn.ask("Q?")
        c = Conversation(main, history=["before"], metadata={"n": 1}, state={"s": 1})
        c.send("start")
        c._metadata = {"n": 2, "dragoman:state": {"s": 2}}
        c.send("answer")
        self.assertEqual(seen, [("start", ["before"], 1, {"s": 1})] * 2)

    def test_large_messages(self):
        """large messages are not copied to the journal: they are found in the history"""
        seen = []

        @agent
        async def main(turn):
            first = await turn.ask("File?")
            await turn.ask("Another?")
            seen.append((len(turn.text), [len(m.text) for m in turn.history], len(first.files[0].content)))
        c = Conversation(main, history=["h" * 200_000, "i" * 200_000])
        c.send("t" * 300_000)
        c.send({"role": "ROLE_USER", "parts": [{"raw": base64.b64encode(b"f" * 900_000).decode(), "filename": "f"}]})
        self.assertLess(len(c.result._journal), 300_000)
        self.assertEqual(c.send("ok").state, "completed")
        self.assertEqual(seen, [(300_000, [200_000, 200_000], 900_000)])

    def test_question_inside_try(self):
        """code that catches everything does not break a question"""
        @agent
        async def main(turn):
            try:
                name = await turn.ask("Name?")
            except BaseException:
                raise ValueError("swallowed")
            return f"Hi {name}"
        c = Conversation(main)
        self.assertEqual(c.send("").question, "Name?")
        self.assertEqual(c.send("Bob").text, "Hi Bob")

    def test_questions_at_the_same_time(self):
        """two questions of tasks that run at the same time are asked one after the other"""
        @agent
        async def main(turn):
            a, b = await asyncio.gather(turn.ask("A?"), turn.ask("B?"))
            return f"{a}{b}"
        result = run(main, "", answers=["1", "2"])
        self.assertEqual((result.text, result.questions), ("12", ["A?", "B?"]))

    def test_next_turn(self):
        """the turn after a turn with questions starts with an empty journal"""
        @agent
        async def main(turn):
            return f"{len(turn.history)} {await turn.ask('Q?')}"
        c = Conversation(main)
        c.send("a")
        c.send("b")
        self.assertEqual(c.result.text, "0 b")
        self.assertEqual(c.send("c").question, "Q?")
        self.assertEqual(c.send("d").text, "4 d")


class Steps(unittest.TestCase):
    def test_before_and_after(self):
        """steps before and after a question run once"""
        calls = []

        def work(name):
            calls.append(name)
            return {"name": name, "n": len(calls)}

        @agent
        async def main(turn):
            a = await turn.step("a", work, "a")
            await turn.ask("Q?")
            b = await turn.step("b", lambda: work("b"))
            await turn.ask("R?")
            return f"{a['n']}{b['n']}"
        self.assertEqual(run(main, "", answers=["x", "y"]).text, "12")
        self.assertEqual(calls, ["a", "b"])

    def test_values(self):
        """a result is the same in the first run and later: JSON; the function may change its copy"""
        seen = []

        @agent
        async def main(turn):
            async def work():
                return (1, {"a": (2,)})
            value = await turn.step("v", work)
            seen.append(repr(value))
            value[1]["a"].append(3)
            await turn.ask("Q?")
        run(main, "", answers=["x", ])
        self.assertEqual(seen, ["[1, {'a': [2]}]"] * 2)

    def test_loop(self):
        """steps of one name get their results in order"""
        calls = []

        @agent
        def main(turn):
            found = []
            for i in range(3):
                found.append(turn.step("s", lambda i=i: calls.append(i) or i * 10))
            turn.ask("Q?")
            return str(found)
        self.assertEqual(run(main, "", answers=["x"]).text, "[0, 10, 20]")
        self.assertEqual(calls, [0, 1, 2])

    def test_at_the_same_time(self):
        """steps that run at the same time are found by name, whatever their order"""
        calls = []

        @agent
        async def main(turn):
            async def branch(name):
                async def work(n):
                    await asyncio.sleep(random.random() / 200)
                    calls.append(f"{name}{n}")
                    return f"{name}{n}"
                return [await turn.step(f"{name}{n}", work, n) for n in range(3)]
            found = await asyncio.gather(branch("a"), branch("b"))
            await turn.ask("Q?")
            return str(found)
        text = "[['a0', 'a1', 'a2'], ['b0', 'b1', 'b2']]"
        self.assertEqual(run(main, "", answers=["x"]).text, text)
        self.assertEqual(len(calls), 6)

    def test_failure(self):
        """a step that raises raises the same when the function runs again"""
        calls = []

        class Own(LookupError):
            def __init__(self, a, b):
                super().__init__(f"{a}{b}")
        globals()["Own"] = Own
        Own.__qualname__ = "Own"

        def work():
            calls.append(1)
            if len(calls) < 3:
                raise OSError("no network") if len(calls) == 1 else Own("no", " entry")
            return "fine"

        @agent
        async def main(turn):
            caught = []
            while True:
                try:
                    return str(caught) + await turn.step("s", work)
                except (OSError, Own) as e:
                    caught.append(str(e))
                    await turn.ask("Try again?")
        self.assertEqual(run(main, "", answers=["yes", "yes"]).text, "['no network', 'no entry']fine")
        self.assertEqual(len(calls), 3)
        calls.clear()

        @agent
        def sync(turn):
            try:
                return turn.step("s", work)
            except OSError as e:
                return str(e) + turn.ask("Try again?")
        self.assertEqual(run(sync, "", answers=["!"]).text, "no network!")

    def test_results_that_cannot_be_stored(self):
        """a result that is not JSON, or too large, is a clear error"""
        @agent
        async def main(turn):
            await turn.step("s", (lambda: object()) if turn.text == "object" else (lambda: "x" * (_journal.MAX_JOURNAL_BYTES + 1)))
        for text, error, expected in (("object", TypeError, "the result of the step 's' cannot be stored"), ("large", ValueError, "return less from turn.step")):
            with self.assertRaises(error) as caught:
                run(main, text)
            self.assertIn(expected, str(caught.exception))

    def test_not_deterministic(self):
        """code that does something else when it runs again is found, and the error names both"""
        counter = itertools.count()

        @agent
        async def question(turn):
            await turn.ask(f"Question {next(counter)}?")

        @agent
        async def other_step(turn):
            await turn.step(f"step {next(counter)}", lambda: 1)
            await turn.ask("Q?")

        @agent
        async def no_step(turn):
            if next(counter) == 0:
                await turn.step("once", lambda: 1)
            await turn.ask("Q?")
        @agent
        async def no_question(turn):
            if next(counter) == 0:
                await turn.ask("Q?")
        for f, words in ((no_question, ("question 1 was 'Q?'", "has not been asked now")), (question, ("question 1 was 'Question 0?'", "is now 'Question 1?'")), (other_step, ("the step 'step 1'", "was not run there before")),
                         (no_step, ("the step 'once' was run, and is not run now",))):
            counter = itertools.count()
            c = Conversation(f)
            c.send("")
            with self.assertRaises(NotDeterministic) as caught:
                c.send("x")
            for word in (*words, "turn.step(name, function)"):
                self.assertIn(word, str(caught.exception))


class Losses(unittest.TestCase):
    """The process is lost after each number of events: the caller sees every text once, and steps are not repeated."""

    def every_loss(self, function, answers=(), check=None):
        """Runs it without a loss, then with a loss at every place of every run."""
        expected = run(function, "start", answers=answers)
        for at in range(len(answers) + 1):
            for n in range(0, 60):
                c = Conversation(function)
                for i, message in enumerate(["start", *answers]):
                    c.send(message, lost_after=n if i == at else None)
                self.assertEqual((c.result.state, c.result.text, c.result.questions), (expected.state, expected.text, expected.questions), (at, n))
                if check:
                    check(c.result)
        return expected

    def test_text(self):
        """a text that is the same is continued without a repetition; one that differs restarts with append: false"""
        @agent
        async def same(turn):
            for word in ("one ", "two ", "three"):
                await turn.write(word)
            await turn.data({"n": 1})

        def no_repetition(result):
            chunks = [e["artifactUpdate"] for e in result.events if "artifactUpdate" in e and e["artifactUpdate"]["artifact"]["artifactId"] == "answer"]
            self.assertEqual("".join(c["artifact"]["parts"][0]["text"] for c in chunks), "one two three")
            self.assertEqual([c["append"] for c in chunks].count(False), 1)
        self.every_loss(same, check=no_repetition)
        runs = itertools.count()

        @agent
        async def other(turn):
            n = next(runs)
            for word in (f"run {n}: ", "two ", "three") if n == 0 else (f"run {n}: ", "done"):
                await turn.write(word)
        result = Conversation(other).send("", lost_after=3)
        self.assertEqual(result.text, "run 1: done")
        self.assertEqual(kinds(result), ["working", "answer=run 0: ", "answer+two ", "answer=run 1: ", "answer+done", "answer+."])
        runs = itertools.count()
        result = Conversation(other).send("", lost_after=4)
        self.assertEqual(result.text, "run 1: done")

    def test_shorter_text(self):
        """a text that is shorter in the second run is cut"""
        runs = itertools.count()

        @agent
        async def main(turn):
            await turn.write("Hello world" if next(runs) == 0 else "Hello")
        result = Conversation(main).send("", lost_after=2)
        self.assertEqual(result.text, "Hello")

    def test_split_differently(self):
        """the same text in other chunks is not repeated"""
        runs = itertools.count()

        @agent
        async def main(turn):
            size = 3 if next(runs) % 2 == 0 else 4
            for i in range(0, 20, size):
                await turn.write("abcdefghijklmnopqrst"[i:i + size])
        for n in range(9):
            runs = itertools.count()
            result = Conversation(main).send("", lost_after=n)
            self.assertEqual(result.text, "abcdefghijklmnopqrst")
            self.assertEqual([k for k in kinds(result) if "=" in k][1:], [])

    def test_questions_and_steps(self):
        """questions, steps, files and tool calls, with a loss at every place"""
        calls = []

        @agent
        async def main(turn):
            await turn.write("A ")
            first = await turn.step("first", lambda: calls.append("first") or 1)
            await turn.write(f"B{first} ")
            await turn.file("f.txt", "content")
            name = await turn.ask("Name?")
            with turn.tool_call("t", {"name": name}) as call:
                call.result = await turn.step("second", lambda: calls.append("second") or name.upper())
            await turn.write(f"C {call.result} ")
            color = await turn.ask("Color?")
            await turn.write(f"D {name} {color}")
            await turn.data([name, color])

        def check(result):
            self.assertEqual([f.content for f in result.files], [b"content"])
            self.assertEqual(result.data, [["Bob", "blue"]])
            self.assertEqual([c["result"] for c in result.tool_calls if c.get("success")][-1], "BOB")
        expected = self.every_loss(main, ["Bob", "blue"], check)
        self.assertEqual(expected.text, "A B1 C BOB D Bob blue")

    def test_steps_run_once(self):
        """a step that was stored does not run again after a loss"""
        calls = []

        @agent
        async def main(turn):
            await turn.step("a", lambda: calls.append("a"))
            await turn.write("x")
            await turn.step("b", lambda: calls.append("b"))
            await turn.write("y")
        for n in range(2, 5):
            calls.clear()
            self.assertEqual(Conversation(main).send("", lost_after=n).text, "xy")
            self.assertEqual(calls.count("a"), 1, n)

    def test_tool_calls_that_are_stored(self):
        """events before a stored step are not sent again; an open call ends under its first id"""
        @agent
        async def main(turn):
            turn.progress("p")
            with turn.tool_call("t") as call:
                call.result = await turn.step("s", lambda: 5)
                await turn.write("x")
        result = Conversation(main).send("", lost_after=4)
        self.assertEqual(kinds(result), ["working", "working", "tool-start", "answer=x", "tool-complete", "answer+."])
        self.assertEqual(result.tool_calls, [{"name": "t", "arguments": {}, "success": True, "result": 5}])

    def test_step_beside_events_and_two_losses(self):
        """a step is stored before the events that the run before had sent: a second loss does not send them again"""
        runs = itertools.count()

        @agent
        async def main(turn):
            is_first = next(runs) == 0

            async def slow():
                await asyncio.sleep(3600 if is_first else 0)
                await turn.step("slow", lambda: 1)
            step = asyncio.create_task(slow())
            await turn.progress("p1")
            if not is_first:
                await step
            for text in ("p2", "p3", "p4"):
                await turn.progress(text)
            step.cancel()
        c = Conversation(main)

        async def lose_twice():
            message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
            for n, lost_after in enumerate((3, 1)):  # the status at the start, p1 and p2; p3
                with self.assertRaises(_Lost):
                    await c._run(message, [], lost_after, None, {"history": []} if n else None, n > 0)
            await c._run(message, [], None, None, {"history": []}, True)
        asyncio.run(lose_twice())
        self.assertEqual(c.result.progress, ["p1", "p2", "p3", "p4"])

    def test_question_that_was_stored_but_not_sent(self):
        """a loss between the journal and the question: the question is asked, the message is not its answer"""
        @agent
        async def main(turn):
            return f"Hi {await turn.ask('Name?')}"
        c = Conversation(main)
        # working is event 1; the question would be event 2
        result = c.send("start", lost_after=1)
        self.assertEqual(result.questions, ["Name?"])
        self.assertEqual(c.send("Bob").text, "Hi Bob")


class Steering(unittest.TestCase):
    def test_messages(self):
        """messages that arrive while the agent works are returned once"""
        @agent
        async def main(turn):
            await turn.wait_for_message()
            first = [m.text for m in turn.new_messages()]
            return f"{first} {turn.new_messages()}"
        self.assertEqual(Conversation(main).send("", steering=["stop", "now"]).text, "['stop', 'now'] []")

    def test_replay(self):
        """after a question the same messages are returned at the same place; later ones are new"""
        seen = []

        @agent
        async def main(turn):
            seen.append([m.text for m in turn.new_messages()])
            answer = await turn.ask("Q?")
            seen.append([m.text for m in turn.new_messages()])
            return str(answer)

        c = Conversation(main)
        c.send("a", steering=["one"])
        c.send("b", steering=["two"])
        self.assertEqual(seen, [["one"], ["one"], ["two"]])

    def test_unread_messages(self):
        """a message that was not read before a question is read after it"""
        @agent
        async def main(turn):
            answer = await turn.ask("Q?")
            return f"{answer} {[m.text for m in turn.new_messages()]}"
        c = Conversation(main)
        c.send("a", steering=["early"])
        self.assertEqual(c.send("b").text, "b ['early']")

    def test_loss(self):
        """accepted messages are not lost with the process, and not delivered twice"""
        @agent
        async def main(turn):
            await turn.write("x")
            found = [m.text for m in turn.new_messages()]
            await turn.step("s", lambda: 1)
            await turn.write(str(found))
            await turn.write("end")
            return str([m.text for m in turn.new_messages()])
        for n in range(1, 7):
            result = Conversation(main).send("", steering=["hello"], lost_after=n)
            self.assertEqual(result.text, "x['hello']end[]", n)


if __name__ == "__main__":
    tap.main()
