#!/usr/bin/env python3
"""An exec agent that sends what document 004 shows: the faulty stream, and the four events of the usage pattern."""
import json
import sys


def status(state, text=None, mark=None):
    update = {"state": f"TASK_STATE_{state}"}
    if text is not None:
        update["message"] = {"role": "ROLE_AGENT", "parts": [{"text": text}]}
        if mark:
            update["message"]["metadata"] = {"canonical_type": mark}
    print(json.dumps({"statusUpdate": {"status": update}}), flush=True)


turn = json.loads(sys.stdin.readline())
words = "".join(p.get("text", "") for p in turn["message"]["parts"])
if "faulty" in words:
    status("WORKING", "Processing your greeting...")
    status("COMPLETED", "Hello! How can I assist you today? 😊")
else:
    if "progress" in words:
        status("WORKING", "Processing your greeting...")
    status("WORKING")
    status("WORKING", "Hello", "TextMessageChunkEvent")
    status("WORKING", " world!", "TextMessageChunkEvent")
    status("COMPLETED", "Hello world!")
