"""The extension module against ctypes: the same results, the same errors, no leaks."""
import collections
import contextlib
import ctypes
import enum
import gc
import glob
import json
import math
import os
import random
import resource
import sys
import threading
import unittest
from unittest import mock

import tap

import dragoman
from dragoman import _convert, _extension, _functions, _library

FUNCTIONS = {
    "_to_openai": dragoman.convert_a2a_message_to_openai,
    "_to_event": dragoman.convert_a2a_message_to_agui_event,
    "_to_official_event": lambda m: dragoman.convert_a2a_message_to_agui_event(m, official=True),
    "_compact": dragoman.compact_events,
    "_to_chat": dragoman.convert_agui_event_to_openai_chat,
}
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")
HI = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "Hi"}]}


def outcome(function, *arguments):
    """The result with all types in it, or the error with all its members."""
    try:
        return typed(function(*arguments))
    except dragoman.ConvertError as e:
        return e.code, e.pointer, e.message, e.line, e.column
    except Exception as e:
        return type(e).__name__, str(e)


def typed(value):
    """1, 1.0 and True are not the same, and neither are the orders of members."""
    if isinstance(value, dict):
        return [(typed(k), typed(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [typed(v) for v in value]
    return type(value).__name__, repr(value)


def both(name, argument):
    """(with the extension module, with ctypes)"""
    with mock.patch.object(_functions, name, _functions._unusual):
        slow = outcome(FUNCTIONS[name], argument)
    return outcome(FUNCTIONS[name], argument), slow


def is_usual(name, argument):
    return getattr(_functions, name)(argument) is not NotImplemented


def with_data(data):
    """A message of the agent that has the value as data, as arguments of a call and as metadata."""
    call = {"call_id": "k", "name": "f", "arguments": {"data": data}}
    return {"role": "agent", "messageId": "m", "metadata": {"data": data},
            "parts": [{"kind": "data", "data": {"value": data}}, {"kind": "data", "data": {"tool_calls": [call]}}]}


def vectors():
    """Every JSON value of the golden files."""
    for path in sorted(glob.glob(os.path.join(tap.TREE, "tests", "vectors", "*", "*", "*.json"))):
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            text = f.read()
        for part in [text, *text.splitlines()]:
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(part)


def random_value(r, depth=0):
    kind = r.randrange(12 if depth < 4 else 8)
    if kind < 3:
        return "".join(r.choice(["a", "\\", '"', "\n", "\x7f", "\x00", "é", "\u2028", "語", "\U0001F600"])
                       for _ in range(r.randrange(12)))
    if kind < 8:
        return r.choice([None, True, False, 0, -1, 7, 2 ** 63, -2 ** 63, 2 ** 70, 10 ** 18, 1.0, -0.0, 1e-300, 1e300, 0.1])
    if kind < 10:
        return [random_value(r, depth + 1) for _ in range(r.randrange(5))]
    return {random_value_key(r): random_value(r, depth + 1) for _ in range(r.randrange(5))}


def random_value_key(r):
    return r.choice(["a", "b", "", "é", "text", "kind", "role", "parts", "tool_calls", "call_id", "x" * 40])


def random_message(r):
    parts = [r.choice([{"kind": "text", "text": "Hé"}, {"text": "a"}, {"kind": "data", "data": {"a": random_value(r)}},
                       {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "image/png"}},
                       {"kind": "data", "data": {"tool_calls": [{"call_id": "k", "name": "f", "arguments": random_value(r)}]}},
                       {"kind": "data", "data": {"tool_results": [{"call_id": "k", "output": random_value(r)}]}},
                       random_value(r)]) for _ in range(r.randrange(4))]
    message = {"role": r.choice(["user", "agent", "ROLE_USER", "ROLE_AGENT", "other"]), "parts": parts}
    for name in ("kind", "messageId", "message_id", "contextId", "metadata", "taskId", "status", "extra"):
        if r.random() < 0.3:
            message[name] = r.choice(["m", "message", {"canonical_type": "TextMessageChunkEvent"}, random_value(r)])
    members = list(message.items())
    r.shuffle(members)
    return dict(members)


class Same(unittest.TestCase):
    def test_loaded(self):
        """the extension module is used, and its library is the package's"""
        self.assertIsNotNone(_extension.native)
        self.assertEqual(_extension.native.version, dragoman.__version__)
        self.assertTrue(is_usual("_to_openai", HI))
        with open("/proc/self/maps", encoding="utf-8") as f:
            mapped = {line.split()[-1] for line in f if "libdragoman.so" in line}
        self.assertEqual(mapped, {os.path.realpath(_library.lib._name)})

    def test_vectors(self):
        """every golden file: every function has the same result or error"""
        n = usual = 0
        for value in vectors():
            for name in FUNCTIONS:
                fast, slow = both(name, value)
                self.assertEqual(fast, slow, (name, value))
                n += 1
                usual += isinstance(value, (dict, list)) and is_usual(name, value)
        self.assertGreater(n, 1000)
        self.assertGreater(usual, 300)

    def test_random(self):
        """random messages, and their events: the same results and errors, generated ids included"""
        r = random.Random(14)
        usual, n = 0, 300 if SANITIZED else 1500
        for _ in range(n):
            message = random_message(r)
            for name in ("_to_openai", "_to_event", "_to_official_event"):
                fast, slow = both(name, message)
                self.assertEqual(fast, slow, (name, message))
                usual += is_usual(name, message)
            with contextlib.suppress(dragoman.ConvertError):
                events = dragoman.convert_a2a_message_to_agui_event([message], official=r.random() < 0.5)
                for name in ("_compact", "_to_chat"):
                    for given in (events, *events[:1], random_value(r)):
                        fast, slow = both(name, given)
                        self.assertEqual(fast, slow, (name, given))
        self.assertGreater(usual, n // 5)

    def test_generated_ids(self):
        """ids that are generated from the text are the same, with every kind of character"""
        call = {"call_id": "k", "name": "f", "arguments": {"a": 'é語\U0001F600\x7f\x01\n"\\/\u2028', "b": [1.5, 2 ** 70, -0.0]}}
        message = {"role": "agent", "parts": [{"kind": "text", "text": "Hé"}, {"kind": "data", "data": {"tool_calls": [call]}}]}
        for given in (message, [message, message]):
            for name in ("_to_event", "_to_official_event"):
                fast, slow = both(name, given)
                self.assertEqual(fast, slow)
                self.assertTrue(is_usual(name, given))
        events = dragoman.convert_a2a_message_to_agui_event([message, message])
        self.assertEqual(len({e["messageId"] for e in events if "messageId" in e}), 2)

    def test_values(self):
        """numbers and texts at their limits"""
        for data in (0, -1, 2 ** 63 - 1, -2 ** 63, 2 ** 63, 10 ** 17, -10 ** 17, 10 ** 18, 10 ** 4000, -10 ** 40, 0.0, -0.0, 1e22, 5e-324,
                     sys.float_info.max, 0.1, True, False, None, "", "\0", "\x7f", "\xff", "\uffff", "\U0010ffff", [], {}, (), ((),),
                     {"": ""}, {"k" * 24: 1}, {"k" * 25: 1}, "x" * 70000, list(range(3000)), [0.5] * 3000, [[[]]] * 100):
            with self.subTest(data=str(data)[:40]):
                for name in ("_to_openai", "_to_event"):
                    fast, slow = both(name, with_data(data))
                    self.assertEqual(fast, slow)
                    self.assertTrue(is_usual(name, with_data(data)))

    def test_unusual(self):
        """subclasses, objects, keys that are not strings, and values that JSON does not have"""
        class Text(str):
            def __str__(self):
                raise RuntimeError("not called")

        class Bad:
            def __getattribute__(self, name):
                raise RuntimeError("bad")

        class Role(str, enum.Enum):
            USER = "user"

        deep = None
        for _ in range(126):
            deep = [deep]
        circle = []
        circle.append(circle)
        around = {}
        around["again"] = {"list": [around]}
        too_deep = None
        for _ in range(100000):
            too_deep = [too_deep]
        for data in (math.nan, math.inf, -math.inf, Text("a"), Bad(), Role.USER, collections.OrderedDict(a=1), collections.defaultdict(int),
                     {1: 2}, {True: 1}, {None: 1}, {1.5: 1}, {(1, 2): 3}, {"1": 1, 1: 2}, {Text("a"): 1}, {b"a": 1}, "\ud800", {"\udfff": 1}, b"bytes",
                     {1, 2}, object(), deep, circle, around, 10 ** 5000, 1j, range(3), collections.deque([1])):
            with self.subTest(data=str(type(data))):
                for name in FUNCTIONS:
                    for given in (with_data(data), [{"type": "text-message-end", "messageId": "m", "message": {"role": "user", "content": data}}]):
                        fast, slow = both(name, given)
                        self.assertEqual(fast, slow)
        for name in FUNCTIONS:
            self.assertFalse(is_usual(name, with_data(too_deep)))
        while too_deep:  # without the recursion of its deallocation
            too_deep = too_deep[0]

    def test_not_an_object(self):
        """a value that is not an object"""
        for given in ("text", b"text", 7, None, True, object(), [], (), {}, [[]], [None], ({},), iter([HI]), float("nan"), collections.UserDict(HI)):
            for name in FUNCTIONS:
                if hasattr(given, "__next__"):
                    continue
                fast, slow = both(name, given)
                self.assertEqual(fast, slow, (name, given))

    def test_limits(self):
        """limits of depth, size and lists are those of JSON text"""
        def nested(n):
            value = "x"
            for _ in range(n):
                value = {"a": value}
            return value

        part = {"kind": "text", "text": "a"}
        for given in (*({"role": "user", "messageId": "m", "parts": [{"kind": "data", "data": nested(n)}]} for n in (120, 123, 124, 125, 126, 127, 128, 129, 500)),
                      {"role": "user", "messageId": "m", "parts": [part] * 100000}, {"role": "user", "messageId": "m", "parts": [part] * 100001},
                      {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "é" * (3 << 20)}]},
                      {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "a" * (33 << 20)}]},
                      {"role": "user", "messageId": "m", "parts": [part], **{f"x{i}": 1 for i in range(1001)}}):
            fast, slow = both("_to_openai", given)
            self.assertTrue(fast == slow, (str(fast)[:200], str(slow)[:200]))
        self.assertEqual(both("_to_openai", {"role": "user", "parts": [part] * 100001})[0][0], "TOO_LARGE")
        events = [{"type": "run-started", "threadId": "c", "runId": "t"}] * 100001
        self.assertEqual(both("_compact", events)[0], both("_compact", events)[1])


class Texts(unittest.TestCase):
    def both(self, text, *arguments, **options):
        with mock.patch.object(_convert, "native", None):
            slow = outcome(lambda: dragoman.convert(text, *arguments, **options))
        fast = outcome(lambda: dragoman.convert(text, *arguments, **options))
        self.assertTrue(fast == slow, (fast[:3], slow[:3]))
        return fast

    def test_characters(self):
        """str and bytes of every width, short and long, at every position of a block"""
        for alphabet in ("a", "aé", "é", "a\xff", "aĀ", "語", "a語é", "\U0001F600a", "\x80", "\u07ff", "\u0800", "\uffff"):
            for n in (0, 1, 15, 16, 17, 5000, 16380, 16384, 40000, 70001):
                content = (alphabet * (n // len(alphabet) + 1))[:n]
                text = json.dumps({"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": content}]}, ensure_ascii=False)
                for given in (text, text.encode()):
                    self.both(given, "a2a-0.3", "a2a-1.0")
                    got = dragoman.convert(given, "a2a-0.3", "openai-chat")
                    self.assertIs(type(got), type(given))
                    self.assertEqual(json.loads(got), {"role": "user", "content": content})
        for at in range(40):
            content = "a" * 20000 + "b" * at + "é" + "c" * (40 - at) + "ÿ"
            text = json.dumps({"role": "user", "parts": [{"kind": "text", "text": content}]}, ensure_ascii=False)
            self.assertEqual(json.loads(dragoman.convert(text, "a2a-0.3", "openai-chat"))["content"], content)

    def test_random(self):
        """random texts"""
        r = random.Random(3)
        for _ in range(50 if SANITIZED else 200):
            values = [random_message(r) for _ in range(r.randrange(1, 120))]
            text = json.dumps(values, ensure_ascii=r.random() < 0.3)
            self.both(text, "auto", r.choice(["a2a-1.0", "openai-chat", "ag-ui", "ag-ui-simple"]))

    def test_errors(self):
        """the same errors: of text, of options, of arguments"""
        text = json.dumps(HI)
        for given in ("", "[", "{}", "\ud800", text[:-1], "x" * 20000, "é" * 20000 + "\ud800", b"\xff", b"", bytearray(text.encode()),
                      memoryview(text.encode()), 7, None, HI, "\0" + text):
            self.both(given, "a2a-0.3", "openai-chat")
        for options in ({"framing": "xml"}, {"framing": ["a"]}, {"framing": {}}, {"compact": 1}, {"compact": True}, {"compact": "yes"}, {"seed": "\ud800"},
                        {"object": object()}, {"seed": b"a"}, {"as_": "messages"}, {"answer_source": None}):
            self.both(text, "a2a-0.3", "openai-chat", **options)
        self.both(text, "nonsense", "openai-chat")
        self.both(text, None, "openai-chat")
        self.both(text, "auto", "ag-ui-proto")
        self.both(text.encode(), "auto", "ag-ui-proto")

    def test_wrong_calls(self):
        """wrong arguments of the module's functions are errors"""
        for arguments in ((), (b"{}",), ("{}", "text"), (b"{}", "text", 1)):
            with self.assertRaises(TypeError):
                _extension.native.convert(*arguments)
        with self.assertRaises(TypeError):
            _extension.native.compact_events()


class Memory(unittest.TestCase):
    def test_references(self):
        """objects of the caller have as many references as before"""
        text, key, number, real = "a text é " * 3, "key-" + "x" * 5, 2 ** 70, 0.125
        inner = {key: [text, number, real, None, True, (text,)]}
        message = with_data(inner)
        bad = {**message, "role": 7}
        watched = (text, key, number, real, inner, inner[key], message, bad, None, True)
        before = [sys.getrefcount(o) for o in watched]
        for _ in range(200):
            for name in FUNCTIONS:
                for given in (message, [message, message], bad, [inner], {key: {1: text}}):
                    getattr(_functions, name)(given)
        del given
        after = [sys.getrefcount(o) for o in watched]
        self.assertEqual(after[:8], before[:8])
        for a, b in zip(after[8:], before[8:]):  # None and True: every result has some
            self.assertLess(abs(a - b), 50)

    def test_blocks(self):
        """a thousand calls leave no objects and no memory behind"""
        history = [with_data({"k" * 30: [1, 2.5, "é", None, {}]}), HI, {"role": "agent", "parts": []}]
        long = json.dumps([HI] * 2000) + " "
        wide = json.dumps([{**HI, "parts": [{"kind": "text", "text": "é語"}]}] * 2000, ensure_ascii=False)
        bad = [{**HI, "role": 7}, {"a": math.nan}, {"a": "\ud800"}, {1: 2}, [2 ** 70] * 200 + [math.inf], list(range(500)) + [object()]]

        def once(i):
            for message in history:
                for name in ("_to_openai", "_to_event", "_to_official_event"):
                    getattr(_functions, name)(message)
            events = dragoman.convert_a2a_message_to_agui_event(history[:2])
            dragoman.convert_agui_event_to_openai_chat(dragoman.compact_events(events))
            for given in bad:
                _functions._to_openai(given)
            if i % 20 == 0:
                for text in (long + str(i)[:0], wide, long.encode(), long[:-3], "é" + long):
                    outcome(_extension.native.convert, b'{"from":"a2a-0.3","to":"openai-chat"}', text)

        def run(n):
            for i in range(n):
                once(i)
            gc.collect()
            return sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        run(200)
        blocks, rss = run(100)
        more_blocks, more_rss = run(200 if SANITIZED else 1000)
        # A leak of one object a conversion is at least as many blocks as runs; Python 3.13 itself adds about a hundred in all.
        self.assertLess(more_blocks - blocks, 100 if SANITIZED else 200)
        if not SANITIZED:  # its allocator retains freed memory
            self.assertLess(more_rss - rss, 4096)

    def test_finalizers(self):
        """a finalizer that runs while a result is built may convert, too"""
        wrong, runs = [], [0]

        class Cycle:
            def __init__(self):
                self.me = self

            def __del__(self):
                runs[0] += 1
                if dragoman.convert_a2a_message_to_openai(HI) != ({"role": "user", "content": "Hi"}, []):
                    wrong.append("in a finalizer")

        message = with_data([{"a": [{} for _ in range(20)]} for _ in range(20)])
        expected = dragoman.convert_a2a_message_to_agui_event(message)
        threshold = gc.get_threshold()
        gc.set_threshold(1)
        try:
            for _ in range(100):
                Cycle()
                if dragoman.convert_a2a_message_to_agui_event(message) != expected:
                    wrong.append("around a finalizer")
        finally:
            gc.set_threshold(*threshold)
        self.assertEqual(wrong, [])
        self.assertGreater(runs[0], 10)

    def test_threads(self):
        """threads that convert and change what others convert"""
        shared, stop, wrong = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "0"}]}, threading.Event(), []

        def change():
            i = 0
            while not stop.is_set():
                i += 1
                shared["parts"] = [{"kind": "text", "text": "é" * (i % 50)}]
                shared[f"x{i % 7}"] = i
                shared.pop(f"x{(i + 3) % 7}", None)

        def convert():
            for _ in range(2000):
                chat, tools = dragoman.convert_a2a_message_to_openai(shared)
                if tools or set(chat["content"]) - {"é", "0"}:
                    wrong.append(chat)

        changer = threading.Thread(target=change)
        workers = [threading.Thread(target=convert) for _ in range(4)]
        for t in (changer, *workers):
            t.start()
        for t in workers:
            t.join()
        stop.set()
        changer.join()
        self.assertEqual(wrong, [])


class Fallback(unittest.TestCase):
    def test_environment(self):
        """DRAGOMAN_NO_EXTENSION=1, a library without the module beside it, and a module that cannot be loaded: ctypes is used"""
        with mock.patch.dict(os.environ, {"DRAGOMAN_NO_EXTENSION": "1"}):
            self.assertIsNone(_extension._load())
        with mock.patch.object(_extension, "_NAME", "no-such.so"):
            self.assertIsNone(_extension._load())
        with mock.patch.object(_extension, "_NAME", os.path.basename(_library.lib._name)):
            self.assertIsNone(_extension._load())
        with mock.patch.object(_library, "version", "0.0.0"):
            self.assertIsNone(_extension._load())
        self.assertIsNotNone(_extension._load())
        self.assertIsInstance(_library.lib, ctypes.CDLL)


if __name__ == "__main__":
    tap.main()
