#!/usr/bin/env python3
"""A hostile agent for the tests of the page (`type: exec`): what it sends must be shown harmlessly.

    html      HTML, scripts and links that run something, in every place where an agent can write
    names     names that imitate the page, control characters, text that is written from right to left
    big       8 MiB of text in one line; `big lines`: in many lines; `big code`: in a block of code
    many N    N events, of which most are chunks of text
    ask       a question whose form is hostile
"""
import base64
import json
import sys

XSS = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2><svg onload=window.hacked=3><iframe srcdoc='<script>parent.hacked=4</script>'></iframe>"
LINKS = ("[click](javascript:window.hacked=5) [data](data:text/html,<script>window.hacked=6</script>) <javascript:window.hacked=7> ![x](javascript:window.hacked=8) "
         "![tracker](https://tracker.example/pixel.png) [blob](blob:null/x) [file](file:///etc/passwd) [us](/agents/demo/?c=x) [fine](https://example.org/fine)")
RTL = "\u202egnp.exe\u202c \u2066\u202eabc\u2069 \u200f\u061c"
CONTROLS = "".join(chr(c) for c in range(1, 32) if c not in (9, 10, 13)) + "\x7f\x85\u2028\u2029\ufeff\ufffe"


def emit(event):
    sys.stdout.write(json.dumps(event) + "\n")


def status(state, *parts, **metadata):
    message = {"message": {"role": "ROLE_AGENT", "parts": list(parts)}} if parts else {}
    emit({"statusUpdate": {"status": {"state": "TASK_STATE_" + state, **message}, "metadata": metadata}})


def artifact(id, *parts, append=False, last=True, **more):
    emit({"artifactUpdate": {"artifact": {"artifactId": id, "parts": list(parts), **more}, "append": append, "lastChunk": last}})


def everywhere(text):
    """The same text in every place of an answer."""
    status("WORKING", {"data": {"type": "status-indicator", "text": text, "displayAs": text, "agent": {"name": text, "url": "javascript:window.hacked=9", "taskId": text}}})
    emit({"kind": "internal:reasoning", "text": text})
    emit({"kind": "internal:tool-start", "toolCallId": "c1", "toolName": text[:60], "arguments": {text[:60]: text}})
    emit({"kind": "internal:tool-complete", "toolCallId": "c1", "success": False, "error": text})
    emit({"kind": "internal:step", "name": text})
    emit({"kind": "internal:state", "value": {text: text, "__proto__": {"polluted": text}, "constructor": {"prototype": {"polluted": 1}}}})
    emit({"kind": "internal:custom", "name": text, "value": text})
    emit({"kind": "internal:usage", "value": {"model": text, "inputTokens": 1, text: text}})
    for media_type, name, content in (("text/html", "page.html", XSS), ("image/svg+xml", text[:60], f"<svg xmlns='http://www.w3.org/2000/svg'>{XSS}</svg>"), ("image/png", "a.png", XSS),
                                      ("application/pdf", "a.pdf", "%PDF-1.4 not one"), ("text/javascript", "a.js", "window.hacked=10"), (text[:60], "x", "x")):
        artifact("f-" + name[:20], {"raw": base64.b64encode(content.encode()).decode(), "mediaType": media_type, "filename": name}, name=text[:60], description=text)
    for url in ("javascript:window.hacked=11", "data:text/html,<script>window.hacked=12</script>", "https://example.org/<b>"):
        artifact("u-" + url[:4], {"url": url, "mediaType": "image/png", "filename": text[:60]})
    artifact("d", {"data": {text: [text, None, {"__proto__": text}]}})
    artifact("answer", {"text": text})
    artifact("answer-2", {"text": LINKS}, name=text[:60])


def main():
    turn = json.loads(sys.stdin.readline())
    text = "".join(part.get("text", "") for part in turn["message"]["parts"]).strip()
    word, _, rest = text.partition(" ")
    if turn["task"]:
        status("COMPLETED", {"text": "answered"})
    elif word == "html":
        everywhere(XSS)
        status("FAILED", {"text": XSS})
    elif word == "names":
        everywhere("Dragoman: sign in at https://example.org " + RTL + CONTROLS)
        status("COMPLETED")
    elif word == "big":
        line = {"lines": "a line of a *long* text\n\n", "code": "x = [1, 2]\n"}.get(rest, "words ")
        piece = line * ((1 << 20) // len(line))
        if rest == "code":
            artifact("answer", {"text": "```python\n"}, last=False)
        for i in range(8):
            artifact("answer", {"text": piece}, append=i > 0 or rest == "code", last=i == 7)
        status("COMPLETED")
    elif word == "many":
        n = int(rest)
        for i in range(n):
            artifact("answer", {"text": f"{i} "}, append=i > 0, last=i == n - 1)
        status("COMPLETED")
    elif word == "ask":
        schema = {"type": "object", "title": XSS, "properties": {XSS: {"type": "string", "title": XSS, "description": XSS, "default": XSS},
                                                                 "__proto__": {"type": "string"}, "e": {"enum": [XSS, RTL]}}}
        status("INPUT_REQUIRED", {"text": XSS}, {"data": {"type": "question", "text": XSS, "schema": schema, "choices": [XSS, RTL]}},
               {"data": {"type": "approval-request", "id": "a1", "tool": XSS, "arguments": {XSS: XSS}}})
    else:
        status("COMPLETED", {"text": "You said " + text})


main()
