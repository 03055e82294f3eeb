"""Streams: every event out as it comes in, however the bytes are cut."""
import json
import select
import time

from support import TO_03, WAIT, check, check_same, compact, end, event, message, run, start, succeeded, test


def read_until(p, ending):
    """Bytes of its stdout up to this ending; nothing more is sent meanwhile."""
    got, deadline = b"", time.monotonic() + WAIT
    while not got.endswith(ending):
        left = deadline - time.monotonic()
        check(left > 0 and select.select([p.stdout], [], [], left)[0], f"nothing comes after {got!r}")
        piece = p.stdout.read(65536)
        check(piece, f"it ended after {got!r}")
        got += piece
    return got


def text_of(update):
    return update["artifact"]["parts"][0]["text"]


@test("each server-sent event is out before the next is sent")
def _():
    p = start(*TO_03)
    for n in range(5):
        p.stdin.write(f"id: {n}\ndata: {compact(event(n))}\n\n".encode())
        got = read_until(p, b"\n\n")
        check(got.startswith(f"id: {n}\ndata: ".encode()), got)
        check_same(text_of(json.loads(got.split(b"data: ")[1])), f"x {n}")
    succeeded(end(p))


@test("with --frame for a stream, each JSON line is written before the next is sent")
def _():
    for frame, before, ending in (("lines", b"", b"\n"), ("sse", b"data: ", b"\n\n")):
        p = start(*TO_03, "--frame", frame)
        for n in range(5):
            p.stdin.write(compact(event(n)).encode() + b"\n")
            got = read_until(p, ending)
            check_same(text_of(json.loads(got[len(before):])), f"x {n}")
        succeeded(end(p))


@test("without --frame the second JSON line shows that it is a stream")
def _():
    p = start(*TO_03)
    p.stdin.write((compact(event(0)) + "\n" + compact(event(1)) + "\n").encode())
    got = b""
    while got.count(b"\n\n") < 2:
        got += read_until(p, b"\n\n")
    for n in range(2, 5):
        p.stdin.write(compact(event(n)).encode() + b"\n")
        check_same(text_of(json.loads(read_until(p, b"\n\n")[len("data: "):])), f"x {n}")
    succeeded(end(p))


STREAMS = {
    "lines": "".join(compact(event(n, "Grüße, 世界 \\ \"")) + "\n" for n in range(4)),
    "lines with CRLF": "".join(compact(event(n)) + "\r\n" for n in range(4)),
    "values without any break": "".join(compact(event(n)) for n in range(4)),
    "values over several lines": "\n".join(json.dumps(event(n), indent=2) for n in range(4)),
    "sse": "".join(f": comment\nevent: message\ndata: {compact(event(n, 'Grüße 世界'))}\n\n" for n in range(4)),
    "sse with CRLF": "".join(f"data: {compact(event(n))}\r\n\r\n" for n in range(4)),
    "sse with CR": "".join(f"data: {compact(event(n))}\r\r" for n in range(4)),
    "sse of several data lines": "".join(
        "".join(f"data: {line}\n" for line in json.dumps(event(n), indent=1).splitlines()) + "\n" for n in range(4)),
}


@test("it does not matter how the bytes of a stream are cut")
def _():
    for name, text in STREAMS.items():
        data = text.encode()
        whole = succeeded(run(*TO_03, "--frame", "lines", stdin=data)).out
        check_same(len(whole.splitlines()), 4, f"events of {name}")
        for size in (1, 7, 64):
            p = start(*TO_03, "--frame", "lines")
            for i in range(0, len(data), size):
                p.stdin.write(data[i:i + size])
                if size > 1 or i % 16 == 0:
                    time.sleep(0.0005)  # so that it really is read in pieces
            check_same(succeeded(end(p)).out, whole, f"{name} in pieces of {size}")


@test("an event larger than one read goes through whole")
def _():
    events = [event(n, "x" * 200_000) for n in range(3)] + [event(3)]
    out = succeeded(run(*TO_03, "--frame", "lines", stdin="\n".join(map(compact, events)))).out
    check_same([len(text_of(json.loads(line))) for line in out.splitlines()], [200_002] * 3 + [3])


@test("a stream of many events keeps order and number")
def _():
    n = 20000
    out = succeeded(run(*TO_03, "--frame", "lines", stdin="".join(compact(event(i)) + "\n" for i in range(n)))).out
    check_same([text_of(json.loads(line)) for line in out.splitlines()], [f"x {i}" for i in range(n)])


@test("single messages between the events of a stream are converted in place")
def _():
    data = "".join(f"data: {compact(v)}\n\n" for v in (event(0), message("in between"), event(1)))
    out = succeeded(run(*TO_03, stdin=data)).out
    check_same([json.loads(part[6:])["kind"] for part in out.decode().split("\n\n") if part],
               ["artifact-update", "message", "artifact-update"])
