"""`dragoman send`, `task` and `card` against our own server, over every wire, and against the official SDK's."""
import atexit
import base64
import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time

from support import (DRAGOMAN, ENV, FOLDER, ROOT, WAIT, Server, check, check_same, end, failed, folder, run, start, succeeded, test,
                     write)
from strangers import Cutter, Recorder, Redirector, Streamer

WIRES = [(v, b) for v in ("1.0", "0.3") for b in ("jsonrpc", "rest")]
QUICK = "long 20"  # the demo streams it without pausing
STORY = "This is line 000001 of a long text"

shared = {}


def server():
    """One for all tests that do not stop it."""
    if "demo" not in shared:
        shared["demo"] = Server(agent="demo")
    return shared["demo"].url


def events(ended):
    return [json.loads(line) for line in succeeded(ended).out.splitlines()]


def kinds(lines):
    for line in lines:
        check_same(len(line), 1, f"members of {line}")
    return [next(iter(line)) for line in lines]


def task_of(lines):
    return lines[0]["task"]["id"]


# ---- answers --------------------------------------------------------------------------------------------

@test("send prints the answer once, over every version and binding, streamed or not")
def _():
    want = None
    for version, binding in WIRES:
        for more in ([], ["--no-stream"]):
            out = succeeded(run("send", "--protocol", version, "--binding", binding, *more, server(), QUICK)).out.decode()
            check(out.count(STORY) == 1 and out.endswith("\n"), out)
            want = want or out
            check_same(out, want, f"{version} {binding} {more}")
    check_same(succeeded(run("send", server(), QUICK)).out.decode(), want)


@test("send chooses an interface from the card, and takes the options' word for it")
def _():
    for args in ([], ["--protocol", "0.3"], ["--protocol", "1.0"], ["--binding", "rest"], ["--binding", "jsonrpc"]):
        check(STORY.encode() in succeeded(run("send", *args, server(), QUICK)).out, args)
    address = server().removeprefix("http://")
    check(STORY.encode() in succeeded(run("send", address, QUICK)).out, "without a scheme")
    check(STORY.encode() in succeeded(run("send", server() + "/a2a", QUICK)).out, "an endpoint's address")
    check(STORY.encode() in succeeded(run("send", server() + "/.well-known/agent-card.json", QUICK)).out, "the card's")


@test("an unknown agent path is an error that lists the agents: send, task, card, lint")
def _():
    here = folder()
    write(os.path.join(here, "two.yaml"), "agents: [{id: first, type: demo}, {id: second, type: hello}]\n")
    two = Server("-c", os.path.join(here, "two.yaml"), agent=None)
    for args in (["send", "URL", "hi"], ["task", "list", "URL"], ["task", "get", "URL", "x"], ["card", "get", "URL"], ["lint", "URL"],
                 ["send", "--protocol", "1.0", "--binding", "rest", "URL", "hi"], ["send", "--protocol", "0.3", "--binding", "jsonrpc", "URL", "hi"]):
        ended = run(*(two.url + "/agents/secnod" if a == "URL" else a for a in args))
        failed(ended, 1, "unknown agent 'secnod'", "first, second")
        check_same(ended.out, b"", f"stdout of {args}")
    check(b"Hello" in succeeded(run("send", two.url + "/agents/second", "hi")).out, "a known one")
    two.kill()


@test("the card of the host is used for another path, and a line on stderr names the agent")
def _():
    ended = run("send", server() + "/elsewhere", QUICK)
    check(ended.status == 0 and STORY.encode() in ended.out and "there is no agent card below" in ended.err and server() in ended.err, ended)
    check_same(succeeded(run("send", server() + "/", QUICK)).err, "", "stderr without a fallback")


@test("https to a server without TLS: the error names the address to use")
def _():
    failed(run("send", server().replace("http:", "https:"), "hi"), 1, "does not use TLS", "hint: try " + server())


@test("send takes words, standard input, files and data")
def _():
    check(b"one two" in succeeded(run("send", server(), "message", "one", "two")).out, "words")
    check(b"from stdin" in succeeded(run("send", server(), "-", stdin="message from stdin\n")).out, "stdin")
    here = folder()
    write(os.path.join(here, "note.txt"), "hello file")
    write(os.path.join(here, "d.json"), '{"a": [1, 2.50]}')
    with Recorder() as recorder:
        ended = run("send", "--protocol", "1.0", "--binding", "jsonrpc", "--file", os.path.join(here, "note.txt"), "--data",
                    '{"n": 1e400}', "--data", "@" + os.path.join(here, "d.json"), "--context", "c-1", "--task", "t-1",
                    "-H", "X-One: 1", "--header", "X-Two: 2", "--token", "secret", recorder.url, "text")
        check_same(ended.out, b"recorded\n", "stdout")
        check_same(ended.status, 0, "status")
        request = recorder.requests[-1]
    message = json.loads(request["body"], parse_float=str)["params"]["message"]
    check_same(message["role"], "ROLE_USER")
    check_same((message["contextId"], message["taskId"]), ("c-1", "t-1"))
    text, file, data, more = message["parts"]
    check_same(text, {"text": "text"})
    check_same(file, {"raw": base64.b64encode(b"hello file").decode(), "filename": "note.txt", "mediaType": "text/plain"})
    check_same(data, {"data": {"n": "1e400"}})
    check_same(more, {"data": {"a": [1, "2.50"]}})
    headers = request["headers"]
    check_same((headers["X-One"], headers["X-Two"], headers["Authorization"], headers["A2A-Version"]),
               ("1", "2", "Bearer secret", "1.0"))


@test("the token may come from the environment, where other users do not see it")
def _():
    with Recorder() as recorder:
        p = subprocess.run([DRAGOMAN, "send", "--protocol", "0.3", "--binding", "jsonrpc", recorder.url, "x"],
                           env={**ENV, "DRAGOMAN_TOKEN": "from-env"}, capture_output=True, timeout=WAIT)
        check_same((p.returncode, p.stdout), (0, b"recorded\n"))
        check_same(recorder.requests[-1]["headers"]["Authorization"], "Bearer from-env")
        check_same(json.loads(recorder.requests[-1]["body"])["method"], "message/stream")


@test("--json prints every event as a line of A2A 1.0, whatever version the server has")
def _():
    for version, binding in WIRES:
        lines = events(run("send", "--json", "--protocol", version, "--binding", binding, server(), QUICK))
        names = kinds(lines)
        check_same(names[0], "task", version + binding)
        check(names.count("artifactUpdate") >= 2 and names[-1] == "statusUpdate", names)
        check_same(lines[-1]["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED")
        text = "".join(line["artifactUpdate"]["artifact"]["parts"][0]["text"] for line in lines if "artifactUpdate" in line)
        check(text.startswith(STORY), text)
    lines = events(run("send", "--json", server(), "help"))
    check_same(kinds(lines), ["message"])


@test("progress is never in the answer, and nowhere at all without a terminal")
def _():
    ended = succeeded(run("send", server(), "status"))
    check(ended.out and b"\x1b" not in ended.out and b"\r" not in ended.out, ended)
    lines = events(run("send", "--json", server(), "status"))
    said = [p["data"]["text"] for line in lines if "statusUpdate" in line
            for p in line["statusUpdate"]["status"].get("message", {}).get("parts", []) if "data" in p]
    check(said, "the demo shows indicators")
    for text in said:
        check(text.encode() not in ended.out, f"{text} is in the answer")


def on_terminal(*args):
    """(status, what the terminal got on stderr, stdout)"""
    ours, theirs = pty.openpty()
    p = subprocess.Popen([DRAGOMAN, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=ENV, cwd=FOLDER)
    os.close(theirs)
    shown, out = [], []
    reader = threading.Thread(target=lambda: out.append(p.stdout.read()))
    reader.start()
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:
            break
        if not data:
            break
        shown.append(data)
    os.close(ours)
    reader.join(WAIT)
    return p.wait(WAIT), b"".join(shown).decode("utf-8", "replace"), out[0]


@test("on a terminal there is a spinner with the agent's own words, and it goes away")
def _():
    status, shown, out = on_terminal("send", server(), "status")
    check_same(status, 0, "status")
    check(re.search(r"\r\x1b\[K[|/\\-] \w+", shown), shown)
    check(shown.endswith("\r\x1b[K"), repr(shown[-80:]))
    check(b"\x1b" not in out, out)


@test("on a terminal there is a generic indicator while a task is working without a message [R004-06]")
def _():
    lines = events(run("send", "--json", server(), "slow 2"))
    working = [line["statusUpdate"]["status"] for line in lines if line.get("statusUpdate", {}).get("status", {}).get("state") == "TASK_STATE_WORKING"]
    check(working and all("message" not in status for status in working), working)
    for more in ([], ["--protocol", "0.3"]):
        status, shown, out = on_terminal("send", *more, server(), "slow 2")
        check_same(status, 0, "status")
        check(re.search(r"\r\x1b\[K[|/\\-] Working", shown), shown)
        check(shown.endswith("\r\x1b[K"), repr(shown[-80:]))
        check(b"Working" not in out, out)
    check("Working" not in run("send", server(), "slow 2").err, "shown without a terminal")
    check_same(on_terminal("send", "--json", server(), "slow 2")[1], "", "shown with --json")


@test("send without TEXT reads standard input if it is not a terminal")
def _():
    check(b"from a pipe" in succeeded(run("send", server(), stdin="message from a pipe\n")).out, "stdin")
    failed(run("send", server(), stdin=b"\n"), 2, "nothing to send")
    with Recorder() as recorder:
        run("send", "--protocol", "1.0", "--binding", "jsonrpc", "--data", "1", recorder.url, stdin="not sent")
        check_same(json.loads(recorder.requests[-1]["body"])["params"]["message"]["parts"], [{"data": 1}], "parts with --data")
    ours, theirs = pty.openpty()
    p = subprocess.run([DRAGOMAN, "send", server()], stdin=theirs, capture_output=True, env=ENV, timeout=WAIT)
    check(p.returncode == 2 and b"nothing to send" in p.stderr, p)
    os.close(ours)
    os.close(theirs)


@test("a forgotten URL or action is named, with the line to type")
def _():
    failed(run("send", "hello"), 2, "'hello' is not a URL", "dragoman send URL TEXT")
    failed(run("task", server()), 2, "task needs an action before the URL", f"dragoman task list {server()}")
    check_same(succeeded(run("card", server())).out, succeeded(run("card", "get", server())).out, "card URL")
    failed(run("card", "got", server()), 2, "unknown action 'got'", "did you mean 'get'?")
    failed(run("card"), 2, "card needs ACTION")
    failed(run("card", "get"), 2, "card needs URL")


@test("a wrong token: the error names it, and where to set the right one")
def _():
    here = folder()
    write(os.path.join(here, "t.yaml"), "tokens: [{token: right, principal: p}]\n")
    with Server("-c", os.path.join(here, "t.yaml")) as own:
        failed(run("send", "--token", "wrong", own.url, "hi"), 1, "HTTP status 401: unknown token or key", "--token TOKEN (or DRAGOMAN_TOKEN)")
        failed(run("send", own.url, "hi"), 1, "HTTP status 401: missing token or key", "--token TOKEN")
        succeeded(run("send", "--token", "right", own.url, "hi"))


@test("files and data are shown beside the text")
def _():
    out = succeeded(run("send", server(), "file")).out.decode()
    check(re.search(r"\[file \S+, \S+, \d+ bytes\]", out) and "http" in out, out)
    out = succeeded(run("send", server(), "data")).out.decode()
    check(any(line.startswith("{") and json.loads(line) for line in out.splitlines()), out)


# ---- endings ------------------------------------------------------------------------------------------------

@test("a task that fails, breaks or is rejected ends with 1 and says why on stderr")
def _():
    for version, binding in WIRES:
        wire = ["--protocol", version, "--binding", binding]
        failed(run("send", *wire, server(), "fail"), 1, "the task failed: ")
        failed(run("send", *wire, server(), "reject"), 1, "the task was rejected: ")
        ended = failed(run("send", *wire, server(), "break"), 1, "the task failed")
        check(ended.out.endswith(b"\n"), ended)


@test("input-required prints the question and how to go on, and that works")
def _():
    for version, binding in WIRES:
        wire = ["--protocol", version, "--binding", binding]
        ended = run("send", *wire, server(), "ask")
        check_same(ended.status, 0, ended)
        check(b"?" in ended.out, ended)
        line = re.search(r"^hint: the agent is waiting for your answer: dragoman send (\S+) --task (\S+) TEXT$", ended.err, re.M)
        check(line and line[1] == server(), ended)
        check(b"Ada" in succeeded(run("send", *wire, server(), "--task", line[2], "Ada")).out, "the answer")
    check("requires authentication" in run("send", server(), "auth").err, "auth")


def waits(ended):
    """It ended well, with hints on standard error."""
    check(ended.status == 0 and ended.err.startswith("hint: "), ended)
    return ended


def asks():
    """A server whose agent asks for approvals."""
    if "asks" not in shared:
        program = os.path.join(ROOT, "tests/wire/lib/asks.py")
        config = {"agents": [{"id": "asks", "type": "exec", "settings": {"command": [program]}}]}
        shared["asks"] = Server("-c", write(os.path.join(folder(), "asks.yaml"), json.dumps(config)), agent=None)
    return shared["asks"].url


@test("a request for approval is shown with its id, and answered by options")
def _():
    ended = waits(run("send", asks(), "delete a b"))
    check_same(ended.out, b"May I delete a and b? Answer yes or no.\n")
    for line in ('hint: approval call-1: delete {"path":"a"}', 'hint: approval call-2: delete {"path":"b"}', "--approve all"):
        check(line in ended.err, ended.err)
    task = re.search(r"--task (\S+)", ended.err)[1]
    some = waits(run("send", asks(), "--task", task, "--reject", "call-2", "--reason", "mine"))
    check("approval call-1" in some.err and "approval call-2" not in some.err, some.err)
    check_same(succeeded(run("send", asks(), "--task", task, "--approve", "all")).out, b"deleted a\n")
    check("need --task" in failed(run("send", asks(), "--approve", "all"), 2).err, "without --task")
    signed = waits(run("send", asks(), "sign in"))
    check("hint: sign in at https://login.example/start" in signed.err, signed.err)


def decide_on_terminal(args, answers):
    """What the terminal shows; each question gets the next answer."""
    pid, fd = pty.fork()
    if not pid:
        os.execve(DRAGOMAN, [DRAGOMAN, *args], ENV)
    shown, end, given = b"", time.monotonic() + WAIT, 0
    while time.monotonic() < end:
        if not select.select([fd], [], [], 0.2)[0]:
            continue
        try:
            piece = os.read(fd, 4096)
        except OSError:  # it has ended
            break
        shown += piece
        while given < min(len(answers), shown.count(b"[y/n] ")):
            os.write(fd, answers[given])
            given += 1
        if not piece:
            break
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.replace(b"\r\n", b"\n").decode()


@test("on a terminal, send and task subscribe ask about each request until the answer is yes or no")
def _():
    status, shown = decide_on_terminal(["send", asks(), "delete a b"], [b"perhaps\n", b"YES\n", b"n\n"])
    check(status == 0 and shown.count("Allow delete") == 3 and "deleted a; kept b" in shown, shown)
    task = re.search(r"--task (\S+)", waits(run("send", asks(), "delete a")).err)[1]
    status, shown = decide_on_terminal(["task", "subscribe", asks(), task], [b"y\n"])
    check(status == 0 and "deleted a" in shown, shown)
    status, shown = decide_on_terminal(["send", asks(), "delete a"], [b"\x04"])  # the end of the input: nothing is decided
    check(status == 0 and "--approve all" in shown and "deleted" not in shown, shown)


@test("--no-wait prints the task's id; get, subscribe and list show the rest")
def _():
    for version, binding in WIRES:
        wire = ["--protocol", version, "--binding", binding]
        id = succeeded(run("send", *wire, "--no-wait", server(), "slow 2")).out.decode().strip()
        check(re.fullmatch(r"[0-9a-f-]{36}", id), id)
        ended = run("task", "subscribe", *wire, server(), id)
        check(ended.status == 0 or "terminal" in ended.err or "ended" in ended.err or "-32004" in ended.err, ended)
        out = succeeded(run("task", "get", *wire, server(), id)).out.decode()
        check(f"task     {id}\n" in out and "state    completed" in out, out)


@test("task get prints JSON, and the history that is asked for")
def _():
    lines = events(run("send", "--json", server(), QUICK))
    id = task_of(lines)
    task = json.loads(succeeded(run("task", "get", "--json", "--history", "1", server(), id)).out)
    check_same((task["id"], task["status"]["state"], len(task["history"])), (id, "TASK_STATE_COMPLETED", 1))
    check_same(json.loads(succeeded(run("task", "get", "--json", "--history", "0", server(), id)).out).get("history"), None)


HEADER = 2  # lines above the tasks


@test("task list has a header with the agent, a preview of the message, and shows tasks by state and context")
def _():
    with Server(agent="bench") as own:
        sent = [events(run("send", "--json", own.url, text)) for text in ("chunks 1 " + "ä" * 50, "chunks 2", "chunks 3 one\ttwo")]
        ids = [task_of(lines) for lines in sent]
        out = succeeded(run("task", "list", own.url)).out.decode()
        head, columns, *lines = out.splitlines()
        check(head.startswith("Tasks of ") and own.url in head, head)
        check_same(columns.split(), ["TASK", "STATE", "CHANGED", "(UTC)", "MESSAGE"])
        check_same([line.split()[0] for line in lines], ids[::-1], "newest first")
        check(all(re.match(r"\S{36}  completed       \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  chunks \d", line) for line in lines), out)
        check(lines[0].endswith("chunks 3 one two") and lines[2].endswith("ä..."), out)
        check_same({line.index("chunks") for line in lines}, {columns.index("MESSAGE")}, "columns")
        for binding in ("jsonrpc", "rest"):
            some = run("task", "list", "--binding", binding, "--limit", "2", own.url)
            check_same(some.out.decode().splitlines()[HEADER:], lines[:2], "two of them")
            check_same((some.status, some.err), (0, "hint: 2 of 3 tasks; --limit 0 lists all\n"))
            check_same(run("task", "list", "--binding", binding, "--state", "failed", own.url).out, b"", "no failed ones")
            context = sent[1][0]["task"]["contextId"]
            one = succeeded(run("task", "list", "--binding", binding, "--json", "--context", context, own.url)).out
            check_same(json.loads(one)["id"], ids[1])
        check_same(len(succeeded(run("task", "list", "--limit", "0", own.url)).out.splitlines()), HEADER + 3)
    failed(run("task", "list", "--protocol", "0.3", server()), 1, "A2A 0.3 has no lists")


@test("task list walks pages to the end, and says how many there are")
def _():
    with Server(agent="bench") as own:
        run("bench", "--mode", "stream", "--text", "chunks 1", "--requests", "120", own.url)
        lines = succeeded(run("task", "list", "--limit", "0", own.url)).out.splitlines()[HEADER:]
        check_same(len(set(lines)), 120, "tasks")
        ended = run("task", "list", own.url)
        check_same((len(ended.out.splitlines()), ended.err), (HEADER + 50, "hint: 50 of 120 tasks; --limit 0 lists all\n"), "tasks by default")
        check_same(len(run("task", "list", "--limit", "70", own.url).out.splitlines()), HEADER + 70)
        check_same(len(run("task", "list", "--json", "--limit", "70", own.url).out.splitlines()), 70)


@test("task cancel stops a task; one that is over cannot be stopped")
def _():
    for version, binding in WIRES:
        wire = ["--protocol", version, "--binding", binding]
        id = succeeded(run("send", *wire, "--no-wait", server(), "slow 60")).out.decode().strip()
        out = run("task", "cancel", *wire, server(), id)
        check(out.status == 0 and b"state    canceled" in out.out, out)
        id = task_of(events(run("send", "--json", server(), QUICK)))
        failed(run("task", "cancel", *wire, server(), id), 1, "the server rejected the request: ")


@test("Ctrl-C asks the server to cancel and waits for it")
def _():
    for version, binding in WIRES:
        p = start("send", "--json", "--protocol", version, "--binding", binding, server(), "slow 60")
        first = json.loads(p.stdout.readline())
        while b"artifactUpdate" not in p.stdout.readline():
            pass
        p.send_signal(signal.SIGINT)
        ended = end(p)
        check_same(ended.status, 1, ended)
        task = json.loads(succeeded(run("task", "get", "--json", server(), first["task"]["id"])).out)
        check_same(task["status"]["state"], "TASK_STATE_CANCELED", f"{version} {binding}")


@test("a second Ctrl-C ends the program at once, also while the first one cancels the task")
def _():
    with Streamer([{"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}]) as streamer:
        p = start("send", "--json", "--protocol", "0.3", "--binding", "jsonrpc", streamer.url, "hi")
        check(b'"t"' in p.stdout.readline(), "a task")
        p.send_signal(signal.SIGINT)
        while len(streamer.bodies) < 2:  # the request to cancel, which this server does not answer properly
            check(p.poll() is None, "it ended after one Ctrl-C")
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        check_same(end(p).status, -signal.SIGINT, "status")


@test("Ctrl-C ends a pause between two requests as well")
def _():
    working = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "working"}}
    with Recorder(json.dumps({"jsonrpc": "2.0", "id": 1, "result": working}).encode()) as recorder:
        p = start("send", "--no-stream", "--protocol", "0.3", "--binding", "jsonrpc", recorder.url, "hi")
        while len(recorder.requests) < 6:  # by now it pauses for 2 s
            check(p.poll() is None, "it did not wait for the task")
            time.sleep(0.01)
        p.send_signal(signal.SIGINT)
        check_same(end(p).status, 1, "status")
    check_same(json.loads(recorder.requests[-1]["body"])["method"], "tasks/cancel", "the last request")


@test("proxies come from --proxy or the environment, but not for this machine's own servers")
def _():
    wire = ["--protocol", "1.0", "--binding", "jsonrpc"]
    def through(url, *args, **variables):
        """The request line that the proxy got."""
        with Recorder() as proxy:
            env = {k: v for k, v in ENV.items() if not k.lower().endswith("_proxy")}
            env.update({k: v.replace("PROXY", proxy.url) for k, v in variables.items()})
            args = [a.replace("PROXY", proxy.url) for a in args]
            subprocess.run([DRAGOMAN, "send", *wire, *args, url, "x"], env=env, capture_output=True, timeout=WAIT)
            return [r["path"] for r in proxy.requests]
    far = "http://name.invalid/a2a"
    check_same(through(far), [], "no proxy")
    check_same(through(far, http_proxy="PROXY"), [far])
    check_same(through(far, all_proxy="PROXY"), [far])
    check_same(through(far, HTTP_PROXY="PROXY"), [], "HTTP_PROXY")
    check_same(through(far, https_proxy="PROXY"), [], "the proxy for https")
    check_same(through("https://name.invalid/", HTTPS_PROXY="PROXY"), ["name.invalid:443"])
    check_same(through(far, http_proxy="PROXY", no_proxy="other,.invalid"), [], "no_proxy")
    check_same(through(far, "--proxy", "PROXY", no_proxy="*"), [far], "--proxy")
    check_same(through(far, "--proxy", "", http_proxy="PROXY"), [], "an empty --proxy")
    with Recorder() as own:
        check_same(through(own.url, http_proxy="PROXY"), [], "this machine")
        check_same(len(own.requests), 1, "requests to this machine")


@test("a redirect of the card is followed within its origin; to another one it is an error that names it")
def _():
    with Redirector({"/.well-known/agent-card.json": server() + "/.well-known/agent-card.json"}) as away:
        failed(run("card", "--token", "secret", away.url), 1, "redirects to another origin, which is not followed: " + server(),
               "hint: use the URL")
    with Redirector({"/.well-known/agent-card.json": "/card.json"}) as within:
        check("HTTP status 404" in run("card", within.url).err, "the second request")
        check_same(within.paths, ["/.well-known/agent-card.json", "/card.json"])


@test("a stream that breaks is no end: the task is asked for until it is over")
def _():
    with Cutter(server()) as cut:
        ended = run("send", "--protocol", "1.0", "--binding", "jsonrpc", cut.url, QUICK)
        check(cut.cuts == 1, "the proxy cut nothing")
        check_same((ended.status, ended.out), (0, run("send", server(), QUICK).out), ended)


# ---- what is wrong --------------------------------------------------------------------------------------------

@test("errors say what, where and what to do")
def _():
    failed(run("send"), 2, "send needs URL")
    failed(run("send", server()), 2, "nothing to send")
    failed(run("send", "ftp://x", "y"), 2, "expected a URL with http:// or https://")
    failed(run("send", "-H", "nonsense", server(), "x"), 2, "expected 'NAME: VALUE'")
    failed(run("send", "--timeout", "soon", server(), "x"), 2, "--timeout soon: expected a number")
    failed(run("send", "--data", "{", server(), "x"), 1, "--data:1:")
    failed(run("send", "--file", "/nowhere", server(), "x"), 1, "cannot read /nowhere")
    failed(run("send", "http://127.0.0.1:1", "x"), 1, "cannot reach http://127.0.0.1:1", "is the server running")
    failed(run("send", "--task", "no-such", server(), "x"), 1, "the server rejected the request: ", "dragoman task list")
    failed(run("task", "get", server()), 2, "get needs the ID")
    failed(run("task", "get", server(), "no-such"), 1, "the server rejected the request: Task not found", "dragoman task list")
    failed(run("task", "get", "--binding", "rest", server(), "no such/one"), 1, "the server rejected the request: ")
    failed(run("task", "list", server(), "x"), 2, "list needs no ID")
    failed(run("task", "look", server()), 2, "unknown action 'look'")


@test("a server of another protocol and one that refuses have different errors")
def _():
    for body, status, said in [(b"<html>", 200, "not A2A 1.0"), (b'{"jsonrpc":"2.0","id":1}', 200, "not A2A"),
                               (b"", 502, "HTTP status 502"), (b"no", 401, "--token TOKEN"),
                               (b'{"error":{"code":429,"message":"slow down"}}', 429, "slow down")]:
        with Recorder(body, status) as recorder:
            failed(run("send", "--protocol", "1.0", "--binding", "jsonrpc", recorder.url, "x"), 1, said)
    with Recorder(b"{}", 404) as recorder:
        failed(run("send", recorder.url, "x"), 1, "no agent card at", "--protocol and --binding")
    with Recorder(b'{"name":"x"}', 200) as recorder:
        ended = run("send", recorder.url, "x")
        check(ended.status == 1 and ("has no interface that this program supports" in ended.err or "not an agent card" in ended.err), ended)


@test("what a stranger writes cannot command the terminal")
def _():
    text = "a\x1b[2Jb\x9bc\x07\u009bd"
    with Recorder(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"message": {
            "messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}}}).encode()) as recorder:
        ours, theirs = pty.openpty()
        p = subprocess.Popen([DRAGOMAN, "send", "--protocol", "1.0", "--binding", "jsonrpc", recorder.url, "x"],
                             stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=ENV)
        check_same(p.wait(WAIT), 0, "status")
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 0.5)[0]:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            shown += data
        os.close(ours)
        check(b"\x1b" not in shown and b"\x07" not in shown and b"\xc2\x9b" not in shown and b"\\x1b[2Jb" in shown, shown)


@test("send ends silently when standard output is closed")
def _():
    p = start("send", server(), "long 20000")
    p.stdout.read(100)
    p.stdout.close()
    err = p.stderr.read().decode()
    status = p.wait(WAIT)
    check(status in (-signal.SIGPIPE, 1) and err == "", f"{status} {err}")


# ---- cards ----------------------------------------------------------------------------------------------------------

@test("card get shows who is there, as text and as JSON, and finds no fault with ours")
def _():
    out = succeeded(run("card", "get", server())).out.decode()
    check(re.search(r"^name +Demo$", out, re.M) and "A2A 1.0  JSONRPC" in out, out)
    card = json.loads(succeeded(run("card", "get", "--json", server())).out)
    check(card["name"] == "Demo" and card["supportedInterfaces"], card)
    check("without faults" in succeeded(run("card", "get", "--validate", server())).out.decode(), "validate")


@test("card get --validate names every fault with its pointer")
def _():
    card = {"name": "", "description": "d", "version": "1", "capabilities": {}, "defaultInputModes": ["text/plain"],
            "supportedInterfaces": [{"url": "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "one"}],
            "securityRequirements": [{"schemes": {"key": {"list": []}}}],
            "skills": [{"id": "a", "name": "A", "description": "", "tags": []}, {"id": "a", "name": "B", "description": "b", "tags": []}]}
    with Recorder(json.dumps(card).encode()) as recorder:
        ended = run("card", "get", "--validate", recorder.url)
        check_same(ended.status, 1, ended)
        for said in ("/name: empty", "/supportedInterfaces/0/url: \"/rpc\"", "/supportedInterfaces/0/protocolVersion: \"one\"",
                     "/defaultOutputModes: missing", "/skills/0/description: empty", "/skills/1/id: two skills of a card have the same id",
                     "\"key\" is not among the securitySchemes"):
            check(said in ended.err, f"{said} is not printed\n{ended}")


# ---- the official SDK's servers -----------------------------------------------------------------------------------------

class Sdk:
    def __init__(self, version):
        self.p = subprocess.Popen(["node", os.path.join(ROOT, "tests/cli/sdk_server.mjs"), version], stdout=subprocess.PIPE)
        atexit.register(self.p.kill)
        self.url = self.p.stdout.readline().decode().strip()
        check(self.url, "node did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()


def with_sdk(version):
    with Sdk(version) as sdk:
        for binding in ("jsonrpc", "rest"):
            wire = ["--binding", binding]
            check_same(succeeded(run("send", *wire, sdk.url, "reply")).out, b"Hello\n", "a message")
            for more in ([], ["--no-stream"]):
                check_same(succeeded(run("send", *wire, *more, sdk.url, "go")).out, b"Hello world\n\nDone\n", f"{binding} {more}")
            lines = events(run("send", "--json", *wire, sdk.url, "go"))
            check_same(kinds(lines), ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"])
            out = succeeded(run("task", "get", *wire, sdk.url, task_of(lines))).out.decode()
            check("state    completed" in out and "Hello world" in out, out)
            id = succeeded(run("send", "--no-wait", *wire, sdk.url, "wait")).out.decode().strip()
            p = start("task", "subscribe", "--json", *wire, sdk.url, id)
            first = json.loads(p.stdout.readline())
            check_same(first["task"]["id"], id)
            check(b"canceled" in run("task", "cancel", *wire, sdk.url, id).out, "cancel")
            ended = end(p)
            check(ended.status == 1 and b"TASK_STATE_CANCELED" in ended.out, ended)
            p = start("send", "--json", *wire, sdk.url, "wait")
            check(json.loads(p.stdout.readline())["task"], "a task")
            p.stdout.readline()
            p.send_signal(signal.SIGINT)
            ended = end(p)
            check(ended.status == 1 and b"TASK_STATE_CANCELED" in ended.out, ended)
            failed(run("task", "get", *wire, sdk.url, "no-such"), 1, "the server rejected the request: ")
        check("without faults" in succeeded(run("card", "get", "--validate", sdk.url)).out.decode(), "the card")


@test("servers of @a2a-js/sdk 1.3.0 understand us: send, stream, get, subscribe, cancel, card, errors")
def _():
    with_sdk("1.0")


@test("servers of @a2a-js/sdk 0.3.14 understand us: send, stream, get, subscribe, cancel, card, errors")
def _():
    with_sdk("0.3")


# ---- TLS ---------------------------------------------------------------------------------------------------

@test("send and task use HTTPS, and trust the given certificates")
def _():
    where = folder()
    cert, key = os.path.join(where, "cert.pem"), os.path.join(where, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    config = os.path.join(where, "tls.json")
    write(config, json.dumps({"tls": {"cert": cert, "key": key}, "agents": [{"id": "demo", "type": "demo"}]}).encode())
    with Server("-c", config, agent=None) as s:
        check(s.url.startswith("https://"), s.url)
        for version, binding in WIRES:
            wire = ["--ca", cert, "--protocol", version, "--binding", binding]
            for more in ([], ["--no-stream"]):
                check_same(succeeded(run("send", *wire, *more, s.url, QUICK)).out.decode().count(STORY), 1, f"{wire} {more}")
        lines = events(run("send", "--ca", cert, "--json", s.url, QUICK))
        check_same(kinds(lines)[0], "task")
        got = succeeded(run("task", "get", "--ca", cert, "--json", s.url, task_of(lines)))
        check_same(json.loads(got.out)["id"], task_of(lines))
        failed(run("send", s.url, QUICK), 1, "cannot trust", "--ca FILE")
        failed(run("send", "--ca", key, s.url, QUICK), 1, "cannot trust", "--ca FILE")


@test("the servers that were talked to end well")
def _():
    for one in shared.values():
        one.stop()
    shared.clear()


@test("send takes the end from the state, with or without final, message and timestamp, also while the stream stays open [R004-09]")
def _():
    task = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}}
    artifact = {"kind": "artifact-update", "taskId": "t", "contextId": "c", "lastChunk": True,
                "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": "Hello"}]}}
    message = {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "Hello"}]}
    for state, code in (("completed", 0), ("failed", 1)):
        for more in ({}, {"final": True}):
            for status in ({}, {"message": message}, {"timestamp": "2026-01-01T00:00:00Z"}):
                end = {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": state, **status}, **more}
                with Streamer([task, artifact, end]) as streamer:
                    ended = run("send", "--protocol", "0.3", "--binding", "jsonrpc", streamer.url, "hi")
                check_same(ended.status, code, f"{end}: status")
                check_same(ended.out.count(b"Hello"), 1, f"{end}: {ended.out}")
