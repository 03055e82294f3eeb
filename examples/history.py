#!/usr/bin/env python3
"""A history of A2A messages for a model: map, reduce, map, with the Python package.

    pip install ../python && python3 history.py
"""
import json

from dragoman import compact_events, convert_a2a_message_to_agui_event, convert_agui_event_to_openai_chat


def agent(part, canonical_type):
    return {"messageId": "m2", "role": "agent", "parts": [part], "metadata": {"canonical_type": canonical_type}}


def call(arguments):
    return {"kind": "data", "data": {"tool_calls": [
        {"call_id": "call_abc123", "name": "get_weather", "arguments": arguments}]}}


# What a memory store has kept, pieces of the stream included.
history = [
    {"messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": "What's the weather?"}]},
    agent(call({"location": "Oakland"}), "ToolCallArgsEvent"),
    agent(call({"unit": "F"}), "ToolCallStartEvent"),
    {"messageId": "m3", "role": "user", "parts": [{"kind": "data", "data": {"tool_results": [
        {"call_id": "call_abc123", "name": "get_weather", "output": "Sunny, 72°F"}]}}]},
    agent({"kind": "text", "text": "It is "}, "TextMessageChunkEvent"),
    agent({"kind": "text", "text": "It is sunny."}, "TextMessageEndEvent"),
]

events = compact_events(convert_a2a_message_to_agui_event(m) for m in history)
for message in convert_agui_event_to_openai_chat(events):
    print(json.dumps(message, ensure_ascii=False))
