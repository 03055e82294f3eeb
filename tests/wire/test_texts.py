"""Text that an agent streams in messages is the same answer everywhere: the rows of tests/support/text_streams.h,
played by an exec agent over every frontend, streamed and not, and by `dragoman send`."""
import json
import os
import re
import subprocess

from lib import fronts
from lib.a2a import REST1, RPC03, RPC1, Client, fold, task_text
from lib.server import DRAGOMAN, agent, folder, needs_ours, server, settings
from lib.tap import check, each, same

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support", "text_streams.h")
ROW = re.compile(r'^    X\("([^"]*)", "([^"]*)", "([^"]*)", "([^"]*)", ([01])\)')


def rows():
    with open(TABLE, encoding="utf-8") as f:
        found = [m.groups() for m in map(ROW.match, f) if m]
    return [(name, pieces, final.replace("\\n", "\n"), answer.replace("\\n", "\n"), streamable == "1")
            for name, pieces, final, answer, streamable in found]


ROWS = rows()
check(len(ROWS) >= 20, "the table was not read")


def status(state, id=None, text=None, type=None):
    message = {"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": text}], **({"metadata": {"canonical_type": type}} if type else {})}
    return {"statusUpdate": {"status": {"state": "TASK_STATE_" + state, **({"message": message} if id else {})}}}


def events(pieces, final):
    out = []
    for piece in pieces.split("|"):
        id, text = piece[1:].split(" ", 1)
        out.append(status("WORKING", id, text, "TextMessageEndEvent" if piece[0] == "=" else "TextMessageChunkEvent"))
    return out + [status("COMPLETED", "final", final) if final else status("COMPLETED")]


def player():
    """A server whose agent plays the row that the message names by its number."""
    home = os.path.join(os.path.dirname(folder()), "texts")
    os.makedirs(home, exist_ok=True)
    for i, (_, pieces, final, _, _) in enumerate(ROWS):
        with open(os.path.join(home, f"{i}.jsonl"), "w", encoding="utf-8") as f:
            f.writelines(json.dumps(e) + "\n" for e in events(pieces, final))
    command = ["sh", "-c", f'read -r row; cat "{home}/$row.jsonl"']
    return server(None, config=settings(agents=[agent("exec", id="demo", settings={"command": command, "input": "text"})]))


NUMBERED = [(r[0], str(i), *r[2:]) for i, r in enumerate(ROWS)]


@each("A2A: {} [R000-40 R004-11 R004-17]", NUMBERED)
def _(i, final, answer, streamable):
    needs_ours("needs the exec agent")
    s = player()
    c = Client(s, RPC1)
    task = c.send(i).task
    same(task_text(task), answer, "the final text")
    same(task_text(c.get(task["id"]).task), answer, "the stored text")
    same(task_text(Client(s, RPC03).get(task["id"]).task), answer, "the stored text, 0.3")
    same(task_text(fold(Client(s, REST1).stream(i).rest())), answer, "the stream's text")


@each("{} [R000-40 R004-10 R004-12 R004-17]", [(f"{name}: {r[0]}", name, *r[1:]) for name in fronts.ALL for r in NUMBERED])
def _(name, i, final, answer, streamable):
    needs_ours("needs the exec agent")
    told = fronts.ALL[name](player(), i)
    if streamable or name != "chat, streamed":
        same(told.text.replace("\n\n\n\n", "\n\n"), answer, "the answer")
    else:  # deltas that were sent cannot be taken back; what is right comes last
        check(told.text.endswith(answer.split("\n\n")[0]) or told.text.endswith(answer), told.text)


def in_order(pieces):
    """The last text of every message, in the order in which the messages begin."""
    texts = {}
    for id, done, text in pieces:
        texts.setdefault(id, "")
        texts[id] = text if done else texts[id]
    return [t for t in texts.values() if t]


def simple_ag_ui(s, i):
    with fronts.stream(s, "/simple/ag-ui", fronts.run_input(i)) as stream:
        told = [f.json for f in stream.rest() if f.data != "[DONE]"]
    return in_order((e["messageId"], e["type"] == "text-message-end", e.get("message", {}).get("content"))
                    for e in told if e["type"] in ("text-message-chunk", "text-message-end"))


def simple_responses(s, i):
    with fronts.stream(s, "/simple/responses", {"model": "demo", "input": i, "stream": True}) as stream:
        told = [f.json for f in stream.rest() if f.data != "[DONE]"]
    return in_order((e["data"]["message_id"], e["event"] == "message.done", e["data"]["content"])
                    for e in told if e["event"] in ("message.delta", "message.done") and e["data"]["role"] == "assistant")


@each("{} [R000-40 R004-12]", [(f"{name}: {r[0]}", ask, *r[1:]) for name, ask in
                               (("simple/ag-ui", simple_ag_ui), ("simple/responses", simple_responses)) for r in NUMBERED])
def _(ask, i, final, answer, streamable):
    needs_ours("needs the exec agent")
    same("\n\n".join(ask(player(), i)), answer, "the answer")


@each("send: {} [R000-40 R004-12]", NUMBERED)
def _(i, final, answer, streamable):
    needs_ours("needs the exec agent")
    s = player()
    r = subprocess.run([DRAGOMAN, "send", s.url, i], capture_output=True, text=True, timeout=60)
    same(r.returncode, 0, r.stderr)
    if streamable:
        same(r.stdout, answer + "\n", "standard output")
    else:
        check(r.stdout.endswith(answer + "\n") or answer.split("\n\n")[0] in r.stdout, r.stdout)
