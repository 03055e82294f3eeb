#!/usr/bin/env python3
"""An agent loop in your own program: a language model with a tool, its events as they happen.

    pip install ../python && python3 loop.py

The model is the scripted one, which needs no key. For another, set base_url, model and api_key_env in the settings.
"""
from dragoman import AgentLoop

SETTINGS = {
    "base_url": "mock:",
    "tools": [{"exec": {"name": "sales", "command": ["echo", "15%"], "description": "growth of the sales"}}],
}

with AgentLoop(SETTINGS) as loop:
    prompt = "call sales {} then echo Based on the analysis, sales increased 15%"
    # Events are A2A events: a server sends them to its clients as they are, unless the kind starts with "internal:".
    for event in loop.execute(prompt, context_id="ctx-456"):
        if event["kind"] == "task":
            print("Task created in", event["contextId"])
        elif event["kind"] == "status-update":
            if event["status"]["state"] == "completed":
                print("Result:", event["status"]["message"]["parts"][0]["text"])
        elif event["kind"] == "artifact-update":
            if event["artifact"]["parts"][0]["text"]:
                print("Content chunk:", event["artifact"]["parts"][0]["text"])
        elif event["kind"] == "internal:tool-start":
            print(f"(calls the tool {event['toolName']})")
