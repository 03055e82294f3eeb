#!/usr/bin/env python3
"""An exec agent that answers from the conversation that it gets, and from nothing else.

My name is Ann      -> Hello Ann.
What is my name?    -> Your name is Ann.
history             -> the history as JSON: [["user", "text"], ...]; calls are c:ID, results r:ID, other parts +
ask, weather        -> asks: a question, the call of a tool of its caller
file                -> a text and a file
sleep               -> works until it is stopped
"""
import json
import re
import sys
import time


def text_of(message):
    return "".join(p.get("text", "") for p in message["parts"])


def short(message):
    out = []
    for p in message["parts"]:
        data = p.get("data") if isinstance(p.get("data"), dict) else {}
        ids = [f"c:{c['call_id']}" for c in data.get("tool_calls", [])] + [f"r:{r['call_id']}" for r in data.get("tool_results", [])]
        out += ids or [p.get("text", "+")]
    return [message["role"].removeprefix("ROLE_").lower(), "".join(out)]


def say(text, *more):
    print(json.dumps({"artifactUpdate": {"artifact": {"artifactId": "answer", "parts": [{"text": text}, *more]}, "lastChunk": True}}), flush=True)


def ask(*parts):
    print(json.dumps({"statusUpdate": {"status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": {
        "messageId": "", "role": "ROLE_AGENT", "parts": list(parts)}}}}), flush=True)


def name_in(history):
    told = [re.search(r"[Mm]y name is (\w+)", text_of(m)) for m in history if m["role"] == "ROLE_USER"]
    return next((m.group(1) for m in reversed(told) if m), None)


def main():
    line = json.loads(sys.stdin.readline())
    text, history = text_of(line["message"]), line["history"]
    told = re.search(r"[Mm]y name is (\w+)", text)
    if told:
        say(f"Hello {told.group(1)}.")
    elif "my name?" in text:
        say(f"Your name is {name_in(history)}." if name_in(history) else "I do not know your name.")
    elif text == "ask":
        ask({"text": "Which one?"})
    elif text == "weather":
        ask({"data": {"tool_calls": [{"call_id": "call-1", "name": "weather", "arguments": {"city": "Bonn"}}]}})
    elif text == "file":
        say("Here it is.", {"raw": "aGk=", "filename": "hi.txt", "mediaType": "text/plain"})
    elif text == "sleep":
        print(json.dumps({"statusUpdate": {"status": {"state": "TASK_STATE_WORKING"}}}), flush=True)
        time.sleep(600)
    else:
        say(json.dumps([short(m) for m in history]))


main()
