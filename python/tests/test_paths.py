"""Map, reduce, map gives what the direct function gives: on every message of the vectors, and on random ones."""
import json
import os
import random
import unittest

import tap

from dragoman import (ConvertError, compact_events, convert_a2a_message_to_agui_event, convert_a2a_message_to_openai,
                      convert_agui_event_to_openai_chat)

VECTORS = os.path.join(tap.TREE, "tests", "vectors")
INTERMEDIATE = ("TextMessageChunkEvent", "ToolCallArgsEvent")


def direct_road(message):
    """As a history has it: tool messages first, unless the message makes calls itself."""
    chat, tools = convert_a2a_message_to_openai(message)
    if not chat:
        return tools
    return [chat, *tools] if chat.get("tool_calls") else [*tools, chat]


def long_road(message):
    return convert_agui_event_to_openai_chat(compact_events(convert_a2a_message_to_agui_event(message)))


def outcome(road, message):
    try:
        return road(message)
    except ConvertError as e:
        return e.code, e.pointer


def values_of(text):
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    found = []
    for line in text.splitlines():
        try:
            found.append(json.loads(line[5:] if line.startswith("data:") else line))
        except ValueError:
            pass
    return found


def messages_in(value):
    if isinstance(value, list):
        return [m for v in value for m in messages_in(v)]
    if not isinstance(value, dict):
        return []
    mine = [value] if "role" in value and isinstance(value.get("parts", value.get("content")), list) else []
    return mine + [m for v in value.values() for m in messages_in(v)]


def vector_messages():
    for folder, _, files in sorted(os.walk(VECTORS)):
        for f in sorted(files):
            if f.startswith(("in.a2a", "both.a2a", "out.a2a")):
                with open(os.path.join(folder, f), encoding="utf-8", errors="surrogateescape") as text:
                    for value in values_of(text.read()):
                        for message in messages_in(value):
                            yield os.path.relpath(os.path.join(folder, f), VECTORS), message


def is_intermediate(message):
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and metadata.get("canonical_type") in INTERMEDIATE


TEXTS = ["", "Hello", " wörld\n", "{}", "a\u0000b", "\U0001F600", '"', "\\u0041"]
VALUES = [None, True, 0, -1.5, 2 ** 64, "text", [], {}, {"b": 1, "a": [2, {"c": None}]}]


def random_part(r):
    kind = r.randrange(5)
    if kind < 2:
        return {"kind": "text", "text": r.choice(TEXTS)}
    if kind == 2:
        return {"kind": "data", "data": r.choice([{"x": r.choice(VALUES)}, {}, {"y": r.choice(TEXTS)}])}
    if kind == 3:
        calls = [{"call_id": f"c{r.randrange(9)}", "name": "f", "arguments": r.choice([{"q": r.choice(VALUES)}, "{}", "x", {}])}
                 for _ in range(r.randrange(3))]
        results = [{"call_id": f"c{r.randrange(9)}", "output": r.choice(VALUES)} for _ in range(r.randrange(3))]
        return {"kind": "data", "data": r.choice([{"tool_calls": calls}, {"tool_results": results},
                                                  {"tool_calls": calls, "tool_results": results}])}
    file = r.choice([{"bytes": "aGk=", "mimeType": r.choice(["image/png", "audio/wav", "application/pdf", "x/y"])},
                     {"uri": r.choice(["https://e/x.png", "https://e/x y", "https://e/a.pdf"]), "name": "a [b]"}])
    return {"kind": "file", "file": file}


class Roads(unittest.TestCase):
    def compare(self, message, name):
        direct = outcome(direct_road, message)
        if direct == [] and is_intermediate(message):
            return 0  # the direct function takes complete messages
        self.assertEqual(outcome(long_road, message), direct, f"{name}: {json.dumps(message)}")
        return 1

    def test_vectors(self):
        """both paths agree on every complete message of the vectors [R001-01 R000-22 R000-29 R000-33]"""
        n = sum(self.compare(m, name) for name, m in vector_messages())
        self.assertGreater(n, 300)

    def test_random(self):
        """both paths agree on four thousand random messages [R001-01 R001-06 R001-07 R001-09 R000-22 R000-28 R000-29]"""
        for seed in range(4000):
            r = random.Random(seed)
            message = {"role": r.choice(["user", "agent"]), "parts": [random_part(r) for _ in range(r.randrange(1, 6))]}
            if r.randrange(2):
                message["messageId"] = "m"
            if not r.randrange(4):
                message["metadata"] = {"canonical_type": r.choice(["TextMessageEndEvent", "nonsense", *INTERMEDIATE])}
            self.compare(message, seed)


if __name__ == "__main__":
    tap.main()
