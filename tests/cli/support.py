"""What the tests of this folder share: running the program, checking, a folder to write in."""
import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DRAGOMAN = os.path.join(ROOT, os.environ.get("DRAGOMAN", "build/dragoman"))
FOLDER = tempfile.mkdtemp(prefix="dragoman-cli-")
# A report of the sanitizers must never pass for `bad input` (1). The default database is in our folder: the user may have one.
ENV = {**os.environ, "LC_ALL": "C", "XDG_STATE_HOME": os.path.join(FOLDER, "state"), "ASAN_OPTIONS": "exitcode=77:detect_leaks=1",
       "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
WAIT = 60  # seconds; nothing here takes one, but machines may be busy

TESTS = []


class Failure(Exception):
    pass


class Test:
    def __init__(self, name, run):
        self.name, self.run = name, run


def test(name):
    """Names are unique: tests/run looks."""
    def keep(function):
        TESTS.append(Test(name, function))
        return function
    return keep


# ---- a folder of our own -----------------------------------------------------------------------------

def cleanup():
    shutil.rmtree(FOLDER, ignore_errors=True)


atexit.register(cleanup)


def folder():
    return tempfile.mkdtemp(dir=FOLDER)


def write(path, data):
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return path


def read(path):
    with open(path, "rb") as f:
        return f.read()


# ---- running it ----------------------------------------------------------------------------------------

class Ended:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err.decode("utf-8", "replace")

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.out[:2000]!r}\nstderr: {self.err[:4000]}"


def run(*args, stdin=b"", cwd=None, **options):
    p = subprocess.run([DRAGOMAN, *args], input=stdin if isinstance(stdin, bytes) else stdin.encode(),
                       capture_output=True, cwd=cwd or FOLDER, env=ENV, timeout=WAIT, **options)
    return Ended(p.returncode, p.stdout, p.stderr)


def start(*args, **options):
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": FOLDER,
               "env": ENV, "bufsize": 0, **options}
    return subprocess.Popen([DRAGOMAN, *args], **options)


def end(p):
    out, err = p.communicate(timeout=WAIT)
    return Ended(p.returncode, out or b"", err or b"")


def shell(script, **options):
    """A bash script in which `dragoman` is ours."""
    p = subprocess.run(["bash", "-c", 'dragoman() { "$DRAGOMAN" "$@"; }\n' + script], capture_output=True, cwd=FOLDER,
                       env={**ENV, "DRAGOMAN": DRAGOMAN}, timeout=WAIT, stdin=subprocess.DEVNULL, **options)
    return Ended(p.returncode, p.stdout, p.stderr)


# ---- a server to talk to ----------------------------------------------------------------------------------

class Server:
    """`dragoman serve` on a free port; everything below is its own."""

    def __init__(self, *args, agent="demo", store="memory:", env=None, cwd=None):
        self.log = open(os.path.join(folder(), "log"), "w+b")
        self.p = subprocess.Popen(
            [DRAGOMAN, "serve", "--listen", "127.0.0.1:0", "--store", store, *(["--agent", agent] if agent else []), *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, cwd=cwd or FOLDER, env={**ENV, **(env or {})})
        atexit.register(self.kill)
        self.url = None
        for line in self.p.stdout:
            found = re.search(rb"https?://127\.0\.0\.1:\d+", line)
            if found:
                self.url = found[0].decode()
                break
        check(self.url, f"no server: {self.said()}")
        threading.Thread(target=self.p.stdout.read, daemon=True).start()

    def said(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def kill(self):
        if self.p.poll() is None:
            self.p.kill()
            self.p.wait()

    def stop(self):
        """It ends well: nothing leaked, nothing wrong."""
        self.p.terminate()
        status = self.p.wait(WAIT)
        check(status == 0, f"the server ended with {status}\n{self.said()[-4000:]}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.kill()
        else:
            self.stop()


# ---- checking ---------------------------------------------------------------------------------------------

def check(good, why):
    if not good:
        raise Failure(str(why))


def check_same(got, want, what="this"):
    check(got == want, f"{what} is {got!r}, wanted {want!r}")


def succeeded(ended):
    check(ended.status == 0, ended)
    check_same(ended.err, "", "stderr")
    return ended


def failed(ended, status, *said):
    """It ended with this status and printed all of this on standard error, where every line is ours."""
    check(ended.status == status, ended)
    for text in said:
        check(text in ended.err, f"stderr does not say {text!r}\n{ended}")
    for line in ended.err.splitlines():
        check(line.startswith(("dragoman: ", "hint: ")), f"a strange line on stderr: {line}")
    return ended


# ---- things to convert --------------------------------------------------------------------------------------

def message(text="Hello", id="m-1"):
    """A2A 1.0."""
    return {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}


def message_03(text="Hello", id="m-1"):
    return {"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]}


def event(n, text="x"):
    """A2A 1.0, of a stream."""
    return {"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "append": n > 0,
                               "artifact": {"artifactId": "a-1", "parts": [{"text": f"{text} {n}"}]}}}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


TO_03 = ["convert", "--from", "a2a-1.0", "--to", "a2a-0.3"]
