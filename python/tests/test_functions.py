"""The documents' functions on dicts and on objects of many kinds."""
import collections
import dataclasses
import enum
import json
import threading
import types
import unittest
from typing import List, Optional

import tap

import dragoman
from dragoman import (compact_events, convert_a2a_message_to_agui_event, convert_a2a_message_to_openai,
                      convert_agui_event_to_openai_chat)

WEATHER = {"role": "user", "parts": [{"kind": "text", "text": "What's the weather?"}],
           "metadata": {"canonical_type": "TextMessageContentEvent"}}
CALL = {"role": "agent", "parts": [{"kind": "data", "data": {"tool_calls": [
    {"call_id": "call_abc123", "name": "get_weather", "arguments": {"location": "Oakland"}}]}}],
    "metadata": {"canonical_type": "ToolCallStartEvent"}}
RESULT = {"role": "user", "parts": [{"kind": "data", "data": {"tool_results": [
    {"call_id": "call_abc123", "name": "get_weather", "output": "Sunny, 72°F"}]}}],
    "metadata": {"canonical_type": "ToolCallResultEvent"}}
CALL_CHAT = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "call_abc123", "type": "function",
     "function": {"name": "get_weather", "arguments": '{"location": "Oakland"}'}}]}
TOOL_CHAT = {"role": "tool", "tool_call_id": "call_abc123", "content": "Sunny, 72°F"}


def status(state):
    return {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": state}, "final": False}


def agent(text, canonical_type, **more):
    return {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": text}],
            "metadata": {"canonical_type": canonical_type}, **more}


def call(arguments, canonical_type):
    return {"messageId": "m", "role": "agent", "metadata": {"canonical_type": canonical_type},
            "parts": [{"kind": "data", "data": {"tool_calls": [{"call_id": "k", "name": "f", "arguments": arguments}]}}]}


RUN = {"threadId": "c", "runId": "t"}
# object, event, message of Chat Completions
ROWS = [
    ({"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}},
     {"type": "run-started", **RUN}, None),
    (status("created"), {"type": "run-started", **RUN}, None),
    (status("working"), {"type": "step-started", "stepName": "working"}, None),
    (WEATHER, {"type": "text-message-content", "message": {"role": "user", "content": "What's the weather?"}},
     {"role": "user", "content": "What's the weather?"}),
    (agent("Sun", "TextMessageChunkEvent"),
     {"type": "text-message-chunk", "messageId": "m", "role": "assistant", "delta": "Sun"}, None),
    (agent("Sunny", "TextMessageEndEvent"),
     {"type": "text-message-end", "messageId": "m", "message": {"role": "assistant", "content": "Sunny"}},
     {"role": "assistant", "content": "Sunny"}),
    (call({"a": 1}, "ToolCallArgsEvent"),
     {"type": "tool-call-args", "toolCall": {"id": "k", "name": "f", "arguments": {"a": 1}}}, None),
    (CALL, {"type": "tool-call-start", "toolCall": {"id": "call_abc123", "name": "get_weather",
                                                    "arguments": {"location": "Oakland"}}}, CALL_CHAT),
    (RESULT, {"type": "tool-call-result", "toolCallId": "call_abc123", "result": "Sunny, 72°F"}, TOOL_CHAT),
    (status("input-required"), {"type": "step-finished", "stepName": "working"}, None),
    (status("completed"), {"type": "run-finished", **RUN}, None),
    (status("failed"), {"type": "run-error", "message": "The task failed", "code": "failed"}, None),
    (status("canceled"), {"type": "run-error", "message": "The task was canceled", "code": "canceled"}, None),
]


class Documents(unittest.TestCase):
    def test_rows(self):
        """every row of document 000 gives its event and its message
        [R000-06 R000-07 R000-08 R000-09 R000-10 R000-11 R000-12 R000-13 R000-14 R000-15 R000-16 R000-17 R000-33]"""
        for a2a, event, chat in ROWS:
            with self.subTest(event=event["type"]):
                self.assertEqual(convert_a2a_message_to_agui_event(a2a), event)
                self.assertEqual(convert_agui_event_to_openai_chat(event), chat)

    def test_direct(self):
        """document 001's function returns a pair [R001-02 R001-04 R001-05 R001-11 R001-12 R001-13]"""
        self.assertEqual(convert_a2a_message_to_openai(WEATHER), ({"role": "user", "content": "What's the weather?"}, []))
        self.assertEqual(convert_a2a_message_to_openai(CALL), (CALL_CHAT, []))
        self.assertEqual(convert_a2a_message_to_openai(RESULT), (None, [TOOL_CHAT]))
        both = {"role": "user", "parts": RESULT["parts"] + WEATHER["parts"]}
        self.assertEqual(convert_a2a_message_to_openai(both),
                         ({"role": "user", "content": "What's the weather?"}, [TOOL_CHAT]))

    def test_history(self):
        """a history through map, reduce, map [R000-33 R000-34 R000-35 R000-36 R000-38]"""
        history = [WEATHER, agent("Let", "TextMessageChunkEvent"), agent("Let me see.", "TextMessageEndEvent"),
                   status("working"), call({"a": 1}, "ToolCallArgsEvent"), call({"b": 2}, "ToolCallStartEvent"), RESULT]
        events = compact_events(convert_a2a_message_to_agui_event(m) for m in history)
        self.assertEqual([e["type"] for e in events],
                         ["text-message-content", "text-message-end", "step-started", "tool-call-start",
                          "tool-call-result"])
        self.assertEqual(convert_agui_event_to_openai_chat(events), [
            {"role": "user", "content": "What's the weather?"}, {"role": "assistant", "content": "Let me see."},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "k", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}]}, TOOL_CHAT])
        self.assertEqual(convert_a2a_message_to_agui_event(history), [convert_a2a_message_to_agui_event(m) for m in history])

    def test_several(self):
        """a message of several events is a list, and one message again [R000-28]"""
        m = {"role": "agent", "parts": [{"kind": "text", "text": "Well."}, *CALL["parts"], *CALL["parts"]]}
        events = convert_a2a_message_to_agui_event(m)
        self.assertEqual([e["type"] for e in events], ["text-message-end", "tool-call-start", "tool-call-start"])
        self.assertEqual(len({e.get("parentMessageId", e.get("messageId")) for e in events}), 1)
        message, = convert_agui_event_to_openai_chat(compact_events(events))
        self.assertEqual((message["content"], len(message["tool_calls"])), ("Well.", 2))

    def test_none(self):
        """no event is None; None and empty lists are skipped"""
        self.assertIsNone(convert_a2a_message_to_agui_event(status("unknown")))
        self.assertIsNone(convert_agui_event_to_openai_chat(None))
        self.assertEqual(compact_events(None), [])
        self.assertEqual(compact_events([None, [], ({"type": "run-started", **RUN},)]), [{"type": "run-started", **RUN}])
        self.assertEqual(convert_agui_event_to_openai_chat([]), [])

    def test_official(self):
        """AG-UI's own events when they are asked for"""
        events = convert_a2a_message_to_agui_event(agent("Hi", "TextMessageEndEvent"), official=True)
        self.assertEqual([e["type"] for e in events], ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"])
        self.assertEqual(compact_events(events), events)
        self.assertEqual(convert_agui_event_to_openai_chat(events), [{"role": "assistant", "content": "Hi"}])

    def test_values(self):
        """numbers, line ends, NULs and emoji come through"""
        data = {"big": 2 ** 70, "small": 1e-300, "none": None, "deep": [[{}]], "text": "a\u0000b\r\n\U0001F600"}
        call = {"call_id": "k", "name": "f", "arguments": data}
        event = convert_a2a_message_to_agui_event({"role": "agent", "parts": [{"kind": "data", "data": {"tool_calls": [call]}}]})
        self.assertEqual(event["toolCall"]["arguments"], data)
        chat = convert_agui_event_to_openai_chat(event)
        self.assertEqual(json.loads(chat["tool_calls"][0]["function"]["arguments"]), data)


class Role(enum.Enum):
    USER = "user"
    AGENT = "agent"


@dataclasses.dataclass
class TextPart:
    text: str
    kind: str = "text"
    metadata: Optional[dict] = None


@dataclasses.dataclass
class Message:
    role: Role
    parts: List[TextPart]
    message_id: str = "m"
    context_id: Optional[str] = None


class Slotted:
    __slots__ = ("role", "parts", "unset")

    def __init__(self):
        self.role, self.parts = "user", [{"kind": "text", "text": "Hi"}]


class Objects(unittest.TestCase):
    HI = ({"role": "user", "content": "Hi"}, [])

    def test_attributes(self):
        """objects with attributes are read: dataclasses, slots, namespaces, mappings, enums [R001-10]"""
        space = types.SimpleNamespace
        for m in (Message(Role.USER, [TextPart("Hi")]), Slotted(),
                  space(role="user", parts=[space(root=space(kind="text", text="Hi", metadata=None))], _private=1),
                  collections.ChainMap({"role": "user"}, {"parts": ({"kind": "text", "text": "Hi"},)}),
                  {"role": Role.USER, "parts": [TextPart("Hi")]}):
            with self.subTest(type=type(m).__name__):
                self.assertEqual(convert_a2a_message_to_openai(m), self.HI)
        event = convert_a2a_message_to_agui_event(Message(Role.AGENT, [TextPart("Hi")], message_id="a-1"))
        self.assertEqual(event["messageId"], "a-1")

    def test_bytes(self):
        """bytes of a file become base64"""
        part = {"kind": "file", "file": {"bytes": b"hi", "mimeType": "image/png"}}
        chat, _ = convert_a2a_message_to_openai({"role": "user", "parts": [part]})
        self.assertEqual(chat["content"][0]["image_url"]["url"], "data:image/png;base64,aGk=")

    def test_without_ids(self):
        """a message needs no id [R001-10]"""
        self.assertEqual(convert_a2a_message_to_openai({"role": "user", "parts": [{"text": "Hi"}]}), self.HI)

    def test_not_a_message(self):
        """a value that is not a message is refused with a readable error"""
        for wrong in ("text", b"text", object(), 7, lambda: 0):
            with self.subTest(wrong=wrong), self.assertRaises((TypeError, dragoman.ConvertError)) as caught:
                convert_a2a_message_to_openai(wrong)
            self.assertGreater(len(str(caught.exception)), 10)
        circle = {"role": "user", "parts": []}
        circle["parts"].append(circle)
        with self.assertRaises(ValueError):
            convert_a2a_message_to_openai(circle)


class Errors(unittest.TestCase):
    def test_error(self):
        """an error has a code, a pointer, a place and a sentence"""
        with self.assertRaises(dragoman.ConvertError) as caught:
            convert_a2a_message_to_openai({"role": "agent", "parts": [{"kind": "data", "data": {"tool_calls": [{"call_id": "1"}]}}]})
        e = caught.exception
        self.assertIsInstance(e, ValueError)
        self.assertEqual((e.code, e.pointer, e.line), ("BAD_PARAMS", "/parts/0/data/tool_calls/0/name", 1))
        self.assertGreater(e.column, 1)
        self.assertIn(e.pointer, str(e))
        self.assertIn(e.message, str(e))

    def test_place_in_a_list(self):
        """in a list the pointer says which"""
        with self.assertRaises(dragoman.ConvertError) as caught:
            compact_events([{"type": "run-started", **RUN}, [{"type": "no-such"}]])
        self.assertEqual(caught.exception.pointer, "/1/0/type")

    def test_half_a_surrogate_pair(self):
        """half a surrogate pair is refused"""
        with self.assertRaises(dragoman.ConvertError) as caught:
            convert_a2a_message_to_openai({"role": "user", "parts": [{"kind": "text", "text": "\ud800"}]})
        self.assertEqual(caught.exception.code, "PARSE")

    def test_pieces_that_are_no_call(self):
        """invalid chunks of arguments name the call in the error [R000-37]"""
        with self.assertRaisesRegex(dragoman.ConvertError, '"k"'):
            compact_events([convert_a2a_message_to_agui_event(call('{"a', "ToolCallArgsEvent"))])


class Threads(unittest.TestCase):
    def test_threads(self):
        """eight threads at once"""
        wrong = []

        def work(n):
            for i in range(300):
                text = f"{n}-{i}"
                got = convert_a2a_message_to_openai({"role": "user", "parts": [{"kind": "text", "text": text}]})
                if got != ({"role": "user", "content": text}, []):
                    wrong.append(got)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    tap.main()
