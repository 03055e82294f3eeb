"""Input: files, folders, standard input; the errors when one cannot be read."""
import json
import os
import pty
import re
import subprocess

from support import (DRAGOMAN, ENV, FOLDER, TO_03, WAIT, check, check_same, compact, end, failed, folder, message, message_03,
                     run, start, succeeded, test, write)


@test("one value from a file is one line out")
def _():
    path = write(os.path.join(folder(), "m.json"), json.dumps(message(), indent=2))
    out = succeeded(run(*TO_03, path)).out
    check_same(json.loads(out), message_03())
    check(out.count(b"\n") == 1 and out.endswith(b"}\n"), out)


@test("no file and - are both standard input, - also between files")
def _():
    path = write(os.path.join(folder(), "m.json"), compact(message("two")))
    want = json.dumps(message_03("one"))
    check_same(json.loads(succeeded(run(*TO_03, stdin=compact(message("one")))).out), json.loads(want))
    out = succeeded(run(*TO_03, path, "-", path, stdin=compact(message("one")))).out
    check_same([json.loads(line)["parts"][0]["text"] for line in out.splitlines()], ["two", "one", "two"])


@test("single values of several files are written one per line, streams follow each other")
def _():
    here = folder()
    a, b = write(os.path.join(here, "a"), compact(message("a")) + "\n\n"), write(os.path.join(here, "b"), compact(message("b")))
    out = succeeded(run(*TO_03, a, b)).out
    check_same([json.loads(line)["parts"][0]["text"] for line in out.splitlines()], ["a", "b"])
    out = succeeded(run(*TO_03, "--frame", "array", a, b)).out
    check_same([len(json.loads(line)) for line in out.splitlines()], [1, 1])
    out = succeeded(run(*TO_03, "--frame", "sse", a, b)).out
    check_same(out.count(b"data: "), 2)
    check(out.endswith(b"\n\n"), out)


@test("a file whose name begins with a dash comes behind --")
def _():
    here = folder()
    write(os.path.join(here, "--to"), compact(message()))
    check_same(json.loads(succeeded(run(*TO_03, "--", "--to", cwd=here)).out), message_03())


@test("a missing file is named, the others are converted, status 1")
def _():
    path = write(os.path.join(folder(), "m.json"), compact(message()))
    ended = failed(run(*TO_03, path, "missing.json", path), 1, "cannot open missing.json: No such file or directory")
    check_same(ended.out.count(b"\n"), 2)


@test("a folder cannot be read")
def _():
    failed(run(*TO_03, FOLDER), 1, f"cannot read {FOLDER}: Is a directory")


@test("a file without permission is named")
def _():
    path = write(os.path.join(folder(), "secret.json"), compact(message()))
    os.chmod(path, 0)
    if os.access(path, os.R_OK):  # root reads anything, but not through a file that is a folder
        failed(run(*TO_03, path + "/x"), 1, f"cannot open {path}/x: Not a directory")
    else:
        failed(run(*TO_03, path), 1, f"cannot open {path}: Permission denied")


@test("bad input ends with 1 and leaves nothing on stdout")
def _():
    for text in ("", "{", "nonsense", '{"a":1}', "[1]", "[" * 10000, '{"role":"ROLE_USER","parts":[{"text":1}]}', "\0", "\xff\xfe"):
        ended = failed(run(*TO_03, stdin=text.encode("latin-1")), 1, "dragoman: <stdin>")
        check_same(ended.out.strip(), b"", repr(text[:20]))


@test("a syntax error names file, line and column")
def _():
    path = write(os.path.join(folder(), "bad.json"), '{\n  "messageId": "m",\n  "role": x\n}\n')
    failed(run(*TO_03, path), 1, f"dragoman: {path}:3:11: ")


@test("an error in a document names file, line, column and JSON pointer")
def _():
    path = write(os.path.join(folder(), "bad.json"),
                 '{\n  "role": "ROLE_USER",\n  "parts": [\n    {"text": "a"},\n    {"text": 42}\n  ]\n}\n')
    failed(run(*TO_03, path), 1, f"dragoman: {path}:5:14: expected a string, got a number (at /parts/1/text)\n")
    sse = 'data: {"role":"ROLE_USER",\ndata:  "parts":[{"text":\ndata: 7}]}\n\n'
    failed(run(*TO_03, stdin=sse), 1, "<stdin>:3:7: ", "(at /parts/0/text)")


@test("an error in a stream names the line of its event; what came before is out")
def _():
    lines = [compact(message(id="m-1")), compact(message(id="m-2")), '{"role":"ROLE_USER","parts":[{"text":7}]}', compact(message())]
    ended = failed(run(*TO_03, "--frame", "lines", stdin="\n".join(lines)), 1, "<stdin>:3:", "(at /parts/0/text)")
    check_same([json.loads(line)["messageId"] for line in ended.out.splitlines()], ["m-1", "m-2"])
    sse = "".join(f"data: {line}\r\n\r\n" for line in lines)
    ended = failed(run(*TO_03, stdin=sse), 1, "<stdin>:5:", "(at /parts/0/text)")
    check_same(ended.out.count(b"data: "), 2)


@test("after a file that broke off the next begins on a line of its own")
def _():
    here = folder()
    a = write(os.path.join(here, "a"), compact(message()) + "\n" + compact(message()) + "\n{")
    b = write(os.path.join(here, "b"), compact(message_03()))
    ended = failed(run("convert", "--to", "a2a-1.0", "--frame", "array", a, b), 1, f"{a}:3:")
    check_same(json.loads(ended.out.splitlines()[-1])[0]["messageId"], "m-1")


@test("errors name each file that fails")
def _():
    here = folder()
    paths = [write(os.path.join(here, n), "{") for n in "abc"]
    ended = failed(run(*TO_03, *paths), 1, *[f"dragoman: {p}:1:" for p in paths])
    check_same(ended.out, b"")


@test("a wrong --from gets a hint")
def _():
    failed(run("convert", "--from", "a2a-1.0", "--to", "openai-chat", stdin=compact(message_03())), 1, "hint: ", "--from auto")


@test("control characters in names and documents do not reach the terminal")
def _():
    here = folder()
    path = write(os.path.join(here, "a\x1b[2J\nb"), '{"role":"\\u001b[31m","parts":[]}')
    for args in ([path], [path + "?"]):
        ended = failed(run(*TO_03, *args), 1, "\\x1b[2J\\x0ab")
        check("\x1b" not in ended.err and "\x9b" not in ended.err, ended)


@test("a terminal as standard input gets a note, unless - asked for it")
def _():
    for args, noted in (([], True), (["-"], False)):
        ours, theirs = pty.openpty()
        p = start(*TO_03, *args, stdin=theirs)
        os.close(theirs)
        os.write(ours, compact(message()).encode() + b"\n\x04\x04")
        ended = end(p)
        os.close(ours)
        check_same(ended.status, 0, ended)
        check(json.loads(ended.out) == message_03(), ended)
        check_same(ended.err, "dragoman: reading standard input; end it with Ctrl-D\n" if noted else "", "stderr")


@test("a closed standard input is an error, not another file")
def _():
    ended = failed(run(*TO_03, stdin=b"", preexec_fn=lambda: os.close(0)), 1, "cannot read <stdin>: Bad file descriptor")
    check_same(ended.out, b"")


@test("standard input may be non-blocking")
def _():
    out_of, into = os.pipe()
    os.set_blocking(out_of, False)
    p = start(*TO_03, stdin=out_of)
    os.close(out_of)
    text = compact(message()).encode()
    for i in range(0, len(text), 20):
        os.write(into, text[i:i + 20])
    os.close(into)
    check_same(json.loads(succeeded(end(p)).out), message_03())


@test("ids made up for what has none depend on seed and input alone")
def _():
    bare = {"role": "ROLE_USER", "parts": [{"text": "x"}]}
    def id_of(value, *seed):
        return json.loads(succeeded(run(*TO_03, *seed, stdin=compact(value))).out)["messageId"]
    once = id_of(bare)
    check(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", once), once)
    check_same(id_of(bare), once)
    check(len({once, id_of(bare, "--seed", "a"), id_of(bare, "--seed", "b"), id_of({**bare, "metadata": {}})}) == 4, "not distinct")


@test("--object says what the shape leaves open")
def _():
    part = {"text": "x"}
    ended = succeeded(run(*TO_03, "--object", "part", stdin=compact(part)))
    check_same(json.loads(ended.out), {"kind": "text", "text": "x"})


@test("--frame chooses json, array, lines or sse")
def _():
    two = compact(message(id="a")) + "\n" + compact(message(id="b"))
    for frame, want in (("json", b"["), ("array", b"["), ("lines", b"{"), ("sse", b"data: "), ("auto", b"data: ")):
        out = succeeded(run(*TO_03, "--frame", frame, stdin=two)).out
        check(out.startswith(want), f"{frame}: {out}")
    check(succeeded(run(*TO_03, "--frame", "json", stdin=compact(message()))).out.startswith(b"{"), "one value")


@test("a value of 10 MB goes through, from a file and from a pipe in pieces")
def _():
    text = "Grüße \\ \"und\" mehr\n" * 500000
    data = compact(message(text)).encode()
    check(len(data) > 10_000_000, len(data))
    path = write(os.path.join(folder(), "big.json"), data)
    out = succeeded(run(*TO_03, path)).out
    check(json.loads(out) == message_03(text), "it came out differently")
    p = subprocess.Popen([DRAGOMAN, *TO_03], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
    check(p.communicate(data, timeout=WAIT)[0] == out, "the pipe gave something else")
    check_same(p.returncode, 0)
