"""Where it goes: -o, full disks, readers that leave, signals."""
import json
import os
import signal
import stat
import subprocess
import time

from support import (TO_03, WAIT, check, check_same, compact, end, event, failed, folder, message, message_03, read, run,
                     shell, start, succeeded, test, write)

ONE = compact(message())
BAD = compact({**message(), "parts": [{"text": 1}]})


def left_in(path):
    return sorted(os.listdir(path))


@test("-o makes a file, with the permissions of the umask")
def _():
    here = folder()
    ended = succeeded(run(*TO_03, "-o", "out.json", stdin=ONE, cwd=here, preexec_fn=lambda: os.umask(0o027)))
    check_same(ended.out, b"")
    check_same(json.loads(read(os.path.join(here, "out.json"))), message_03())
    check_same(stat.S_IMODE(os.stat(os.path.join(here, "out.json")).st_mode), 0o640)
    check_same(left_in(here), ["out.json"])


@test("-o replaces a file and keeps its permissions")
def _():
    here = folder()
    path = write(os.path.join(here, "out.json"), "old")
    os.chmod(path, 0o604)
    succeeded(run(*TO_03, f"--output={path}", stdin=ONE))
    check_same(json.loads(read(path)), message_03())
    check_same(stat.S_IMODE(os.stat(path).st_mode), 0o604)


@test("-o leaves the file as it was when anything fails, and nothing beside it")
def _():
    here = folder()
    path = write(os.path.join(here, "out.json"), "old")
    good = write(os.path.join(folder(), "good"), ONE)
    for inputs in (["-"], [good, "-"], ["-", good], [good, "missing"]):
        failed(run(*TO_03, "-o", path, *inputs, stdin=BAD), 1)
        check_same(read(path), b"old", str(inputs))
        check_same(left_in(here), ["out.json"], "the folder")
    failed(run(*TO_03, "-o", path + ".new", stdin=BAD), 1)
    check_same(left_in(here), ["out.json"], "the folder")


@test("-o shows nothing of the new file before it is complete")
def _():
    here = folder()
    path = write(os.path.join(here, "out.sse"), "old")
    p = start(*TO_03, "-o", path, "--frame", "sse")
    for n in range(3):
        p.stdin.write(compact(event(n)).encode() + b"\n")
    deadline = time.monotonic() + WAIT
    while len(left_in(here)) == 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    check_same(len(left_in(here)), 2, "files while it runs")
    check_same(read(path), b"old")
    succeeded(end(p))
    check_same(read(path).count(b"data: "), 3)
    check_same(left_in(here), ["out.sse"])


@test("-o may name the file that is read")
def _():
    path = write(os.path.join(folder(), "m.json"), ONE)
    succeeded(run(*TO_03, "-o", path, path))
    check_same(json.loads(read(path)), message_03())


@test("-o through a link replaces what it points to")
def _():
    here = folder()
    write(os.path.join(here, "real"), "old")
    os.symlink("real", os.path.join(here, "link"))
    succeeded(run(*TO_03, "-o", "link", stdin=ONE, cwd=here))
    check(os.path.islink(os.path.join(here, "link")), "the link is gone")
    check_same(json.loads(read(os.path.join(here, "real"))), message_03())


@test("-o to a device or pipe writes directly, - is standard output")
def _():
    succeeded(run(*TO_03, "-o", "/dev/null", stdin=ONE))
    check(not stat.S_ISREG(os.stat("/dev/null").st_mode), "/dev/null has become a file")
    fifo = os.path.join(folder(), "fifo")
    os.mkfifo(fifo)
    p = start(*TO_03, "-o", fifo, "--frame", "lines")
    with open(fifo, "rb", buffering=0) as f:
        p.stdin.write(ONE.encode() + b"\n")
        check_same(json.loads(f.readline()), message_03())
        succeeded(end(p))
    check_same(json.loads(succeeded(run(*TO_03, "-o", "-", stdin=ONE)).out), message_03())


@test("-o with a folder, a missing folder or an empty name is an error before anything is read")
def _():
    here = folder()
    for path, why in ((here, "Is a directory"), (here + "/no/such", "No such file or directory"), ("", "without a name")):
        p = start(*TO_03, "-o", path)  # its input stays open
        p.wait(WAIT)
        failed(end(p), 1, why)


@test("a signal leaves no half file behind")
def _():
    here = folder()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        p = start(*TO_03, "-o", os.path.join(here, "out"))
        deadline = time.monotonic() + WAIT
        while not left_in(here) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)  # from the file to the handler is not far
        p.send_signal(number)
        p.wait(WAIT)
        check_same(end(p).status, -number, "status")
        check_same(left_in(here), [], "the folder")


@test("a full disk is an error with a sentence")
def _():
    path = write(os.path.join(folder(), "m.json"), ONE)
    with open("/dev/full", "wb") as full:
        for args in ([*TO_03, path], ["formats"], ["formats", "--json"], ["--help"], ["version"], ["__man"], ["__completion", "zsh"]):
            failed(end(start(*args, stdout=full)), 1, "cannot write to standard output: No space left on device")
    failed(run(*TO_03, "-o", "/dev/full", stdin=ONE), 1, "cannot write to /dev/full: No space left on device")


@test("a file that may not grow is removed again")
def _():
    here = folder()
    write(os.path.join(here, "big"), compact(message("x" * 100000)))
    ended = shell(f"ulimit -f 1; trap '' XFSZ; cd {here}; dragoman {' '.join(TO_03)} -o out big 2>&1")
    check_same(ended.status, 1, ended)
    check(b"cannot write to out: File too large" in ended.out, ended)
    check_same(left_in(here), ["big"])


@test("a closed standard output is an error, not another file")
def _():
    path = write(os.path.join(folder(), "m.json"), ONE)
    for args in ([*TO_03, path], ["--help"]):
        failed(run(*args, preexec_fn=lambda: os.close(1)), 1, "cannot write to standard output: Bad file descriptor")
    check_same(read(path), ONE.encode())


@test("when the reader leaves it ends at once, silently, by SIGPIPE")
def _():
    for ignored in (False, True):  # whoever started it may have SIGPIPE ignored
        p = start(*TO_03, "--frame", "lines", restore_signals=False,
                  preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN if ignored else signal.SIG_DFL))
        p.stdin.write(ONE.encode() + b"\n")
        check(p.stdout.readline(), "no first line")
        p.stdout.close()
        try:
            for _ in range(1000):
                p.stdin.write(ONE.encode() + b"\n")
            p.stdin.close()
        except BrokenPipeError:
            pass
        p.wait(WAIT)
        check_same(p.returncode, -signal.SIGPIPE, "status")
        check_same(p.stderr.read(), b"", "stderr")


@test("head takes what it wants from a long stream without a word")
def _():
    path = write(os.path.join(folder(), "long"), "".join(compact(event(n)) + "\n" for n in range(20000)))
    ended = shell(f"dragoman {' '.join(TO_03)} --frame lines {path} | head -n 2; echo ${{PIPESTATUS[0]}}")
    check_same(ended.err, "", "stderr")
    check_same(len(ended.out.splitlines()), 3)
    check_same(ended.out.splitlines()[-1], b"141", "its status in a shell")


@test("a slow reader on a non-blocking pipe gets everything")
def _():
    out_of, into = os.pipe()
    os.set_blocking(into, False)
    path = write(os.path.join(folder(), "many"), "".join(compact(event(n)) + "\n" for n in range(5000)))
    p = start(*TO_03, "--frame", "lines", path, stdin=subprocess.DEVNULL, stdout=into)
    os.close(into)
    time.sleep(0.2)  # the pipe fills meanwhile
    with open(out_of, "rb") as f:
        lines = f.read().splitlines()
    check_same(p.wait(WAIT), 0, "status")
    check_same(p.stderr.read(), b"", "stderr")
    p.stderr.close()
    check_same([json.loads(line)["artifact"]["parts"][0]["text"] for line in lines], [f"x {n}" for n in range(5000)])
