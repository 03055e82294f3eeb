"""The objects of the official SDK, whichever version the interpreter has: 0.3 (pydantic), 1.x (protobuf)."""
import copy
import sys
import unittest
from importlib.metadata import version

import tap

from dragoman import (ConvertError, compact_events, convert_a2a_message_to_agui_event, convert_a2a_message_to_openai,
                      convert_agui_event_to_openai_chat)

from a2a import types

PYDANTIC = hasattr(types.Message, "model_validate")
CALL = {"tool_calls": [{"call_id": "k", "name": "f", "arguments": {"a": {"b": [1, None, "é"]}, "n": None}}]}
CALL_CHAT = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "k", "type": "function", "function": {"name": "f", "arguments": '{"a": {"b": [1, null, "é"]}, "n": null}'}}]}


def message(role, *parts, **more):
    """Of this version of the SDK; a part is a text or data."""
    if PYDANTIC:
        made = [types.Part(root=types.TextPart(text=p) if isinstance(p, str) else types.DataPart(data=p)) for p in parts]
        return types.Message(message_id="m", role=types.Role(role), parts=made, **more)
    from google.protobuf.json_format import ParseDict

    made = [{"text": p} if isinstance(p, str) else {"data": p} for p in parts]
    return ParseDict({"messageId": "m", "role": f"ROLE_{role.upper()}", "parts": made, **more}, types.Message())


def status(state, **more):
    if PYDANTIC:
        return types.TaskStatusUpdateEvent(task_id="t", context_id="c", final=False,
                                           status=types.TaskStatus(state=types.TaskState(state), **more))
    made = types.TaskStatusUpdateEvent(task_id="t", context_id="c")
    made.status.state = types.TaskState.Value("TASK_STATE_" + state.replace("-", "_").upper())
    return made


class Sdk(unittest.TestCase):
    def test_version(self):
        """the version is the one that is meant"""
        self.assertRegex(version("a2a-sdk"), r"^0\.3\." if PYDANTIC else r"^1\.")
        self.assertEqual(PYDANTIC, "03" in sys.prefix)

    def test_direct(self):
        """messages of the SDK through the direct function [R001-02 R001-04 R001-05 R001-10 R001-11]"""
        self.assertEqual(convert_a2a_message_to_openai(message("user", "What's ", "the weather?")),
                         ({"role": "user", "content": "What's the weather?"}, []))
        self.assertEqual(convert_a2a_message_to_openai(message("agent", CALL)), (CALL_CHAT, []))
        results = {"tool_results": [{"call_id": "k", "name": "f", "output": "Sunny, 72°F"}]}
        self.assertEqual(convert_a2a_message_to_openai(message("user", results, "So?")),
                         ({"role": "user", "content": "So?"},
                          [{"role": "tool", "tool_call_id": "k", "content": "Sunny, 72°F"}]))

    def test_events(self):
        """messages and updates of the SDK as events [R000-33]"""
        said = message("agent", "Sunny", metadata={"canonical_type": "TextMessageEndEvent"})
        self.assertEqual(convert_a2a_message_to_agui_event(said),
                         {"type": "text-message-end", "messageId": "m", "message": {"role": "assistant", "content": "Sunny"}})
        chunk = message("agent", "Sun", metadata={"canonical_type": "TextMessageChunkEvent"})
        self.assertEqual(convert_a2a_message_to_agui_event(chunk)["type"], "text-message-chunk")
        for state, name in (("submitted", "run-started"), ("working", "step-started"), ("input-required", "step-finished"),
                            ("completed", "run-finished"), ("failed", "run-error")):
            self.assertEqual(convert_a2a_message_to_agui_event(status(state))["type"], name)

    def test_history(self):
        """a history of the SDK through map, reduce, map [R000-33 R001-01]"""
        history = [message("user", "Hi"), message("agent", "One moment.", CALL), status("working"), message("agent", "Done")]
        events = compact_events(map(convert_a2a_message_to_agui_event, history))
        want = [c for m in history if not hasattr(m, "status") for c in [convert_a2a_message_to_openai(m)[0]]]
        self.assertEqual(convert_agui_event_to_openai_chat(events), want)
        self.assertEqual(want[1]["content"], "One moment.")
        self.assertEqual(convert_agui_event_to_openai_chat(convert_a2a_message_to_agui_event(history)), want)

    def test_task(self):
        """a task of the SDK says all it holds"""
        task = types.Task(id="t", context_id="c") if not PYDANTIC else types.Task(
            id="t", context_id="c", status=types.TaskStatus(state=types.TaskState.completed), history=[message("user", "Hi")])
        if not PYDANTIC:
            task.status.state = types.TaskState.Value("TASK_STATE_COMPLETED")
            task.history.append(message("user", "Hi"))
        self.assertEqual([e["type"] for e in convert_a2a_message_to_agui_event(task)],
                         ["run-started", "text-message-content", "run-finished"])

    def test_within_dicts(self):
        """objects of the SDK within a dict or a list"""
        part = message("user", "Hi").parts[0]
        role = "user" if PYDANTIC else "ROLE_USER"
        self.assertEqual(convert_a2a_message_to_openai({"role": role, "parts": [part]}), ({"role": "user", "content": "Hi"}, []))

    def test_files(self):
        """files of the SDK"""
        if PYDANTIC:
            part = types.Part(root=types.FilePart(file=types.FileWithBytes(bytes="aGk=", mime_type="image/png")))
            m = types.Message(message_id="m", role=types.Role.user, parts=[part])
        else:
            m = types.Message(message_id="m", role=types.Role.Value("ROLE_USER"))
            m.parts.append(types.Part(raw=b"hi", media_type="image/png"))
        chat, _ = convert_a2a_message_to_openai(m)
        self.assertEqual(chat["content"], [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}])

    def test_untouched(self):
        """what is converted stays as it was"""
        m = message("agent", "Hi", CALL)
        before = copy.deepcopy(m)
        convert_a2a_message_to_openai(m)
        convert_a2a_message_to_agui_event(m)
        self.assertEqual(m, before)

    def test_error(self):
        """errors of the SDK's objects have a pointer"""
        with self.assertRaises(ConvertError) as caught:
            convert_a2a_message_to_openai(message("agent", {"tool_calls": [{"call_id": "k"}]}))
        self.assertEqual(caught.exception.pointer, "/parts/0/data/tool_calls/0/name")


if __name__ == "__main__":
    tap.main()
