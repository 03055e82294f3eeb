"""dragoman convert --losses: what this input lost, for people and for programs."""
import json
import os
import pty

from support import WAIT, check, check_same, compact, folder, run, start, test, write

MESSAGE = {"messageId": "m1", "contextId": "c1", "role": "ROLE_USER", "parts": [{"text": "hi"}], "extensions": ["urn:x"],
           "metadata": {"a": 1}, "referenceTaskIds": ["t0"]}
LOST = ["/messageId", "/contextId", "/metadata", "/extensions", "/referenceTaskIds"]
TO_CHAT = ["convert", "-f", "a2a-1.0", "-t", "openai-chat"]
CHAT = b'{"role":"user","content":"hi"}\n'


@test("--losses names the members that this message lost, with their positions")
def _():
    path = write(os.path.join(folder(), "m.json"), json.dumps(MESSAGE, indent=1))
    ended = run(*TO_CHAT, "--losses", path)
    check_same((ended.status, ended.out), (0, CHAT))
    lines = ended.err.splitlines()
    check_same(len(lines), len(LOST), ended)
    for line, member in zip(lines, LOST):
        check(f": message {member}: left out" in line and line.endswith(" (once)"), line)
    check(lines[1].startswith(f"dragoman: {path}:3:15: "), lines[1])


@test("--losses-json says the same as JSON lines")
def _():
    ended = run(*TO_CHAT, "--losses-json", stdin=compact(MESSAGE).encode())
    check_same((ended.status, ended.out), (0, CHAT))
    rows = [json.loads(line) for line in ended.err.splitlines()]
    check_same([(r["file"], r["names"], r["object"], r["member"], r["count"], r["line"], r["at"]) for r in rows],
               [("<stdin>", "input", "message", m, 1, 1, m) for m in LOST])


@test("a conversion that loses nothing reports nothing")
def _():
    plain = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    for option in ("--losses", "--losses-json"):
        ended = run("convert", "-f", "a2a-1.0", "-t", "a2a-0.3", option, stdin=compact(plain).encode())
        check_same((ended.status, ended.err), (0, ""))


@test("without --losses, standard error is empty unless it is a terminal")
def _():
    ended = run(*TO_CHAT, stdin=compact(MESSAGE).encode())
    check_same((ended.status, ended.out, ended.err), (0, CHAT, ""))


def on_terminal(*args, stdin):
    """(exit status, standard output, standard error) with a terminal as standard error."""
    ours, theirs = pty.openpty()
    path = write(os.path.join(folder(), "in.json"), stdin)
    p = start(*args, path, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other side is closed
            piece = b""
        if not piece:
            break
        seen += piece
    os.close(ours)
    out = p.stdout.read()
    return p.wait(WAIT), out, seen.decode().replace("\r\n", "\n")


@test("on a terminal one line reports that something was lost, and names --losses")
def _():
    status, out, said = on_terminal(*TO_CHAT, stdin=compact(MESSAGE))
    check_same((status, out), (0, CHAT))
    check_same(said, "hint: 5 kinds of data lost or changed; `--losses` lists them\n")
    status, _, said = on_terminal("convert", "-f", "a2a-1.0", "-t", "a2a-0.3", stdin=compact(
        {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hi"}]}))
    check_same((status, said), (0, ""))


@test("losses of a stream are counted over all its events, each file for itself")
def _():
    here = folder()
    step = [{"type": "STEP_STARTED", "stepName": "s"}, {"type": "STEP_FINISHED", "stepName": "s"}]
    run_of = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, *step * 100,
              {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}]
    paths = [write(os.path.join(here, name), "".join(compact(e) + "\n" for e in run_of)) for name in ("a", "b")]
    ended = run("convert", "-f", "ag-ui", "-t", "ai-sdk", "--losses-json", *paths)
    check_same(ended.status, 0, ended)
    rows = [json.loads(line) for line in ended.err.splitlines()]
    check_same([(r["file"], r["names"], r["member"], r["count"], r["line"]) for r in rows],
               [(path, "ag-ui", "STEP_*", 200, 2) for path in paths])


@test("an error is reported with the losses before it, and the exit status stays 1")
def _():
    ended = run(*TO_CHAT, "--frame", "lines", "--losses", stdin=compact(MESSAGE).encode() + b"\n{\"messageId\":1}\n")
    check_same(ended.status, 1, ended)
    check("message /contextId: left out" in ended.err and "<stdin>:2:" in ended.err, ended)
