#!/usr/bin/env python3
"""An agent for `type: exec`: one message in, A2A events out. Standard library only.

Dragoman starts it for each message. One line of JSON comes on stdin: the message, the task so far (null for a new one),
the earlier messages of the conversation (history), the metadata of the request, taskId, contextId, and the caller (tenant, principal, contextKey). Each line on stdout is one event: a StreamResponse of A2A 1.0. Ids and
times are filled in. Exit status 0 completes the task, any other one fails it; stderr goes to the server's log.

    count 5        streams an answer, with progress
    chart          a file and data beside the answer
    order          asks a question, and continues with your answer
    anything else  one Message (with `reply: auto` in the configuration, it is the answer; else it becomes a Task)
"""
import base64
import json
import sys
import time


def emit(event):
    print(json.dumps(event, ensure_ascii=False), flush=True)  # flush: or it would all come at the end


def status(state, text=None):
    message = {"message": {"role": "ROLE_AGENT", "parts": [{"text": text}]}} if text is not None else {}
    emit({"statusUpdate": {"status": {"state": "TASK_STATE_" + state, **message}}})


def indicate(text):
    """Progress. Never a text part: clients would take it for the answer."""
    data = {"type": "status-indicator", "text": text, "displayAs": "loading"}
    emit({"statusUpdate": {"status": {"state": "TASK_STATE_WORKING", "message": {"role": "ROLE_AGENT", "parts": [{"data": data}]}}}})


def artifact(id, part, append=False, last=True):
    emit({"artifactUpdate": {"artifact": {"artifactId": id, "parts": [part]}, "append": append, "lastChunk": last}})


def stream(pieces):
    """Streams the answer: the first chunk starts the artifact, the others append to it, the last one is marked as the last."""
    pieces, text = list(pieces), ""
    for i, piece in enumerate(pieces):
        artifact("answer", {"text": piece}, append=i > 0, last=i == len(pieces) - 1)
        text += piece
        time.sleep(0.05)
    status("COMPLETED", text)  # once more, whole


def main():
    turn = json.loads(sys.stdin.readline())
    text = "".join(part.get("text", "") for part in turn["message"]["parts"]).strip()
    word, _, rest = text.partition(" ")

    if turn["task"]:  # we asked, this is the answer
        status("WORKING")
        stream(["One ", "pizza ", f"{text}, ", "coming up."])
    elif word == "count":
        indicate("Counting")
        stream(f"{n} " for n in range(1, int(rest or 3) + 1))
    elif word == "chart":
        status("WORKING")
        artifact("sales", {"data": {"January": 100, "February": 115}})
        artifact("sales.csv", {"raw": base64.b64encode(b"month,sales\nJanuary,100\nFebruary,115\n").decode(),
                               "filename": "sales.csv", "mediaType": "text/csv"})
        stream(["Sales increased ", "15%."])
    elif word == "order":
        status("INPUT_REQUIRED", "Which pizza?")
    else:
        emit({"message": {"role": "ROLE_AGENT", "parts": [{"text": f"You said: {text}"}]}})


main()
