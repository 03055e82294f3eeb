"""What an operator meets: the banner, signals, reloads, logs, metrics, what goes wrong at the start."""
import json
import os
import re
import signal
import socket
import subprocess
import time

from lib.a2a import REST1, RPC1, Client
from lib.http import Conn, ask
from lib.server import DRAGOMAN, ENV, ROOT, Server, agent, folder, server
from lib.tap import Failure, Skip, check, each, same, soon, test

PATH = "/.well-known/agent-card.json"
V1 = [("A2A-Version", "1.0")]


# ---- the first minute ------------------------------------------------------------------------------------------------

def banner(s):
    """The lines that are there to be copied."""
    return [line.strip() for line in s.log if line.startswith("  ") and not line.startswith(("  agent ", "  tasks ", "  settings "))]


@test("the banner's curl line works unchanged")
def _():
    s = server("demo")
    line = next(x for x in banner(s) if x.startswith("curl "))
    p = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    check("You said: hello" in p.stdout, p)


@test("the banner's line for Chat Completions works unchanged")
def _():
    s = server("demo")
    line = next(x for x in banner(s) if "/v1/chat/completions" in x)
    p = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60)
    check("You said: hello" in p.stdout, p)


@test("the banner's send line works unchanged")
def _():
    s = server("demo")
    line = next(x for x in banner(s) if " send " in x)
    p = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, env=ENV)
    if p.returncode == 2 and "send" in p.stderr:
        raise Skip("this build has no `send`")
    check(p.returncode == 0 and "hello" in p.stdout, p)


@test("the banner's browser line works unchanged")
def _():
    s = server("demo")
    url = next(x for x in banner(s) if x.startswith("http"))
    check(url.startswith(s.url), url)
    r = ask(s.address, "GET", url[len(s.url):], None, [("Accept", "text/html")])
    same((r.status, r.type), (200, "text/html"), "answer")
    check("default-src 'none'" in r.get("content-security-policy") and "unsafe" not in r.get("content-security-policy"), r)
    for name in re.findall(rb'(?:src|href)="(/web/[^"]+)"', r.body):
        same(ask(s.address, "GET", name.decode()).status, 200, name)
    check(b"<script>" not in r.body and b"style=" not in r.body, "inline code")


@test("the banner of a server with tokens has no secret in it, and its lines work")
def _():
    with Server("demo", config={"tokens": [{"token": "s3cret-word", "principal": "p"}]}) as s:
        check("s3cret-word" not in "\n".join(s.log), "the secret")
        line = next(x for x in banner(s) if x.startswith("curl "))
        p = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, env={**os.environ, "TOKEN": "s3cret-word"})
        check("You said: hello" in p.stdout, p)


class Typed:
    """`dragoman serve` as a person types it: in a folder, without options that the test does not name."""

    def __init__(self, *args, cwd, env=None):
        env = {k: v for k, v in ENV.items() if k not in ("STATE_DIRECTORY", "XDG_STATE_HOME")} | {"HOME": folder()} | (env or {})
        self.p = subprocess.Popen([DRAGOMAN, "serve", *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        for line in self.p.stdout:
            self.lines.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break

    def __enter__(self):
        check(any(line.startswith("Ctrl-C") for line in self.lines), lambda: self.p.stderr.read())
        return "\n".join(self.lines)

    def __exit__(self, *_):
        self.p.terminate()
        self.p.communicate(timeout=60)


@test("serve reads ./dragoman.yaml, reports it, and prints the absolute path of the database")
def _():
    here = os.path.realpath(folder())
    with open(os.path.join(here, "dragoman.yaml"), "w") as f:
        f.write("listen: 127.0.0.1:0\nagents: {mine: {type: hello}}\n")
    with Typed(cwd=here) as banner:
        check("agent mine at " in banner, banner)
        check(f"settings from {here}/dragoman.yaml" in banner, banner)
        check(f"tasks are stored in {here}/dragoman.db" in banner and os.path.exists(here + "/dragoman.db"), banner)
    other = folder()
    with Typed("-c", here + "/dragoman.yaml", cwd=other) as banner:
        check(f"tasks are stored in {here}/dragoman.db" in banner, banner)
    same(os.listdir(other), [], "files in the current folder")
    p = subprocess.run([DRAGOMAN, "serve", "--check"], cwd=here, env=ENV, capture_output=True, text=True, timeout=60)
    same((p.returncode, p.stderr), (0, "dragoman: reading ./dragoman.yaml\n"), "--check")
    same(json.loads(p.stdout)["agents"][0]["id"], "mine", "its agent")


@each("without a file the database is in the state folder: {}", [
    ("$STATE_DIRECTORY", {"STATE_DIRECTORY": "A"}, "A"), ("$XDG_STATE_HOME", {"XDG_STATE_HOME": "A"}, "A/dragoman"), ("~/.local/state", {"HOME": "A"}, "A/.local/state/dragoman")])
def _(env, want):
    a, here = os.path.realpath(folder()), folder()
    with Typed("--listen", "127.0.0.1:0", cwd=here, env={k: a for k in env}) as banner:
        path = want.replace("A", a, 1) + "/dragoman.db"
        check(f"tasks are stored in {path}" in banner and os.path.exists(path), banner)
        check("settings from" not in banner, banner)
    same(os.listdir(here), [], "files in the current folder")
    p = subprocess.run([DRAGOMAN, "db", "check"], cwd=here, env={**{k: v for k, v in ENV.items() if k not in ("STATE_DIRECTORY", "XDG_STATE_HOME")}, "HOME": "/nowhere", **{k: a for k in env}}, capture_output=True, text=True, timeout=60)
    same((p.returncode, p.stdout), (0, "0 tasks, 0 turns, 0 records, 0 faults\n"), f"db check finds it ({p})")


@test("a store in memory is named as such in the banner")
def _():
    with Typed("--listen", "127.0.0.1:0", "--store", "memory", cwd=folder()) as banner:
        check("tasks are stored in memory only" in banner, banner)


def start_badly(*args):
    p = subprocess.run([DRAGOMAN, "serve", *args], env=ENV, capture_output=True, text=True, timeout=60, cwd=folder())
    check(p.returncode == 1 and p.stdout == "", p)
    lines = p.stderr.strip().splitlines()
    same(len(lines), 1, f"lines of {lines}")
    return lines[0]


@test("a port that is taken: one sentence says what to do")
def _():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        line = start_badly("--listen", f"127.0.0.1:{port}", "--store", "memory:")
        check(str(port) in line and "--listen" in line, line)


@test("a port that needs rights: one sentence says what to do")
def _():
    if os.geteuid() == 0 or int(open("/proc/sys/net/ipv4/ip_unprivileged_port_start").read()) < 80:
        raise Skip("this user may listen on port 80")
    line = start_badly("--listen", "127.0.0.1:80", "--store", "memory:")
    check("--listen" in line, line)


@test("a second server on the same database: one sentence names the first")
def _():
    db = "sqlite:" + os.path.join(folder(), "t.db")
    with Server("demo", store=db) as s:
        line = start_badly("--listen", "127.0.0.1:0", "--store", db)
        check(str(s.process.pid) in line, line)


@test("a database in a folder that is not there: one sentence")
def _():
    check("nowhere" in start_badly("--listen", "127.0.0.1:0", "--store", "sqlite:/nowhere/t.db"), "words")


@test("--check prints one JSON document that reads back")
def _():
    p = subprocess.run([DRAGOMAN, "serve", "--check"], env=ENV, capture_output=True, text=True, timeout=60)
    check(p.returncode == 0 and p.stdout.endswith("}\n") and not p.stdout.endswith("\n\n"), repr(p.stdout[-20:]))
    same(json.loads(p.stdout)["listen"], "127.0.0.1:8484", "listen")


# ---- ending ---------------------------------------------------------------------------------------------------------------

@each("{} drains: streams end cleanly, the status is 0", [("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)], timeout=120)
def _(sig):
    with Server("demo", config={"drain_s": 1}) as s:
        with Client(s, RPC1).stream("slow 600") as events:
            events.next()
            s.process.send_signal(sig)
            events.rest()  # checks that the body ends with its last chunk
        same(s.process.wait(60), 0, "status")


@test("while it drains a short run may finish", timeout=120)
def _():
    with Server("demo", config={"drain_s": 60}) as s:
        with Client(s, RPC1).stream("slow 2") as events:
            events.next()
            s.process.send_signal(signal.SIGTERM)
            events.rest()
        same(s.process.wait(60), 0, "status")


@test("who knocks while it drains finds the door closed, who is in sees /readyz red", timeout=120)
def _():
    with Server("bench", config={"drain_s": 30}) as s, Conn(s.address) as inside:
        c = Client(s, RPC1)
        with c.stream("hold 20") as events:
            events.next()
            inside.request("GET", "/readyz")
            same(inside.response().status, 200, "status before")
            s.process.send_signal(signal.SIGTERM)

            def is_closed():
                try:
                    Conn(s.address).close()
                except OSError:
                    return True
            soon(is_closed, "the door is open", 30)
            events.close()
        same(s.process.wait(60), 0, "status")


@test("a second SIGTERM ends it at once", timeout=120)
def _():
    with Server("bench", config={"drain_s": 3000}) as s:
        with Client(s, RPC1).stream("hold 2000") as events:
            events.next()

            def ends():
                s.process.send_signal(signal.SIGTERM)  # those of the first second count as one
                return s.process.poll() is not None
            soon(ends, "it waits", 60, 0.5)
            same(s.process.wait(60), 0, "status")


@test("with few descriptors it runs, or one sentence says which limit to raise", timeout=240)
def _():
    import resource
    ran = 0
    for n in range(8, 48):
        path = os.path.join(folder(), "t.db")
        p = subprocess.Popen([DRAGOMAN, "serve", "--store", "sqlite:" + path, "--listen", "127.0.0.1:0"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
        line = p.stdout.readline()
        p.terminate()
        _, err = p.communicate(timeout=60)
        if line:
            ran += 1
            same(p.returncode, 0, f"status with {n}")
        else:
            same((p.returncode, err.count("\n"), "ulimit -n" in err), (1, 1, True), f"{n}: {err}")
    check(ran, "it never ran")


# ---- reloading ---------------------------------------------------------------------------------------------------------------

class Reloaded:
    """A server whose file changes."""

    def __init__(self, config):
        self.path = os.path.join(folder(), "dragoman.json")
        self.write(config)
        self.s = Server(None, args=["-c", self.path])

    def write(self, config):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(config if isinstance(config, str) else json.dumps(config))

    def reload(self, config, words="reloaded"):
        self.write(config)
        n = len(self.s.log)
        self.s.process.send_signal(signal.SIGHUP)
        soon(lambda: any(words in line for line in self.s.log[n:]), f"no {words} in the log", 30)
        return self.s.log[n:]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.__exit__()


def status(s, token):
    return ask(s.address, "GET", "/tasks/x", None, [*V1, *([("Authorization", f"Bearer {token}")] if token else [])]).status


@test("SIGUSR1 writes the trace to the log")
def _():
    s = server("bench")
    ask(s.address, "POST", "/message:send", {"message": {"messageId": "m-trace", "role": "ROLE_USER", "parts": [{"text": "x"}]}}, [*V1, ("Content-Type", "application/json")])
    n = len(s.log)
    s.process.send_signal(signal.SIGUSR1)
    soon(lambda: any("end of the trace" in line for line in s.log[n:]), "no end of the trace in the log", 30)
    lines = [line for line in s.log[n:] if " trace at=" in line]
    check(any("machine=connection" in line and "from=idle to=head" in line for line in lines), lines[-9:])
    check(any("machine=exchange" in line and "to=ended" in line for line in lines), lines[-9:])
    check(any(re.search(r"machine=run object=\S{8} from=undecided to=", line) for line in lines), lines[-9:])
    same(ask(s.address, "GET", "/healthz").status, 200, "the server goes on")


@test("SIGHUP: other tokens")
def _():
    with Reloaded({"tokens": [{"token": "old", "principal": "p"}]}) as r:
        same([status(r.s, t) for t in ("old", "new", None)], [404, 401, 401], "before")
        r.reload({"tokens": [{"token": "new", "principal": "p"}]})
        soon(lambda: [status(r.s, t) for t in ("old", "new", None)] == [401, 404, 401], "the tokens after", 30)


@test("SIGHUP: cards, origins, limits, the level of the log")
def _():
    with Reloaded({"agents": [agent("demo", card={"name": "Old"})], "log": {"level": "info"}}) as r:
        ask(r.s.address, "GET", PATH)
        lines = r.reload({"agents": [agent("demo", card={"name": "New"})], "cors": {"origins": ["https://app.example"]}, "limits": {"http_body_bytes": 1024}, "log": {"level": "error"}})
        changed = {m[1] for line in lines if (m := re.search(r"setting=(\S+)", line))}
        same(changed, {"/agents/0/card", "/cors/origins", "/limits/http_body_bytes", "/log/level"}, "settings that changed")
        soon(lambda: ask(r.s.address, "GET", PATH, None, V1).json["name"] == "New", "the card", 30)
        soon(lambda: ask(r.s.address, "GET", "/healthz", None, [("Origin", "https://app.example")]).status == 200, "the origin", 30)
        same(ask(r.s.address, "POST", "/", b"x" * 1025, [("Content-Type", "application/json")]).status, 413, "status")
        n = len(r.s.log)
        for _ in range(5):
            ask(r.s.address, "GET", PATH)
        r.s.stop_well()
        check(not any("request" in line for line in r.s.log[n:]), r.s.log[n:])


@each("SIGHUP with an invalid configuration changes nothing and logs the errors: {}", [
    ("no JSON", "{"), ("a typo", {"lisen": 1}), ("a tenant of ours", {"tokens": [{"token": "t", "principal": "p", "tenant": "v1"}]})])
def _(config):
    with Reloaded({"tokens": [{"token": "old", "principal": "p"}]}) as r:
        lines = r.reload(config, "nothing reloaded")
        check(any("error" in line and "dragoman.json:" in line for line in lines), lines)
        same([status(r.s, t) for t in ("old", None)], [404, 401], "after")


@test("SIGHUP: settings that need a restart are reported as such, the others take effect")
def _():
    with Reloaded({"agents": [agent("demo")], "a2a": {"card_max_age_s": 5}}) as r:
        lines = r.reload({"loops": 3, "agents": [agent("demo")], "a2a": {"card_max_age_s": 6}}, "reloaded changed=2 need_restart=1")
        waiting = {m[1] for line in lines if "after a restart" in line and (m := re.search(r"setting=(\S+)", line))}
        same(waiting, {"/loops"}, "settings that wait")
        soon(lambda: "max-age=6" in ask(r.s.address, "GET", PATH).get("cache-control"), "the card", 30)


@test("SIGHUP: a change that needs a restart alone is reported as a warning")
def _():
    with Reloaded({"agents": [agent("demo")]}) as r:
        lines = r.reload({"loops": 3, "agents": [agent("demo")]}, "nothing reloaded: the changes need a restart")
        check(any("warn" in line and "nothing reloaded" in line for line in lines), lines)


# An address that is not loopback by its form, and that only this machine reaches.
BEYOND = "[::ffff:127.0.0.1]"


@each("SIGHUP does not lower the protection of the listener that stays open: {}", [
    ("another listen without tokens", BEYOND, {"listen": "127.0.0.1:{port}"}), ("no tokens", BEYOND, {"listen": BEYOND + ":{port}"}),
    ("insecure without tokens", BEYOND, {"listen": BEYOND + ":{port}", "insecure": True}), ("on loopback, no tokens", "127.0.0.1", {"listen": "127.0.0.1:{port}"})])
def _(first, config):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def at(c):
        return {k: v.replace("{port}", str(port)) if isinstance(v, str) else v for k, v in c.items()}
    path = os.path.join(folder(), "dragoman.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(at({"listen": first + ":{port}", "store": "memory:", "tokens": [{"token": "old-token-1234", "principal": "p"}]}), f)
    p = subprocess.Popen([DRAGOMAN, "serve", "-c", path], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        check("listening" in p.stdout.readline(), "the banner")

        def statuses():
            return [ask(("127.0.0.1", port), "GET", "/tasks/x", None, [*V1, *([("Authorization", f"Bearer {t}")] if t else [])]).status for t in ("old-token-1234", None)]
        same(statuses(), [404, 401], "before")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(at({"store": "memory:", **config}), f)
        p.send_signal(signal.SIGHUP)
        while "nothing reloaded" not in (line := p.stderr.readline()):
            check(line and "msg=reloaded" not in line, line)
        same(statuses(), [404, 401], "after")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
        p.stderr.close()


@test("SIGHUP without a change logs that nothing changed")
def _():
    with Reloaded({"agents": [agent("demo")]}) as r:
        r.reload({"agents": [agent("demo")]}, "reloaded: the settings are the same")


def echo(word):
    """An exec agent that answers with a word."""
    return agent("exec", "mine", {"command": ["/bin/sh", "-c", f"cat >/dev/null; echo {word}"], "input": "text", "output": "text"})


def says(s, text, base="/agents/mine", **more):
    answer = Client(s, RPC1, base=base).send(text, **more)
    return json.dumps(answer.value)


@test("SIGHUP: agents are added, changed and removed without a restart")
def _():
    with Reloaded({"agents": [agent("demo")]}) as r:
        same(ask(r.s.address, "GET", "/agents/mine" + PATH).status, 404, "before")
        lines = r.reload({"agents": [agent("demo"), echo("one")]})
        check(any("agent added" in line and "/agents/mine" in line for line in lines), lines)
        soon(lambda: ask(r.s.address, "GET", "/agents/mine" + PATH).status == 200, "the new agent", 30)
        check("one" in says(r.s, "hi"), "its answer")
        lines = r.reload({"agents": [agent("demo"), echo("two")]})
        check(any("setting changed" in line and "/agents/1/settings" in line for line in lines), lines)
        soon(lambda: "two" in says(r.s, "hi"), "the answer of the changed agent", 30)
        lines = r.reload({"agents": [agent("demo")]})
        check(any("agent removed" in line and "/agents/mine" in line for line in lines), lines)
        soon(lambda: ask(r.s.address, "GET", "/agents/mine" + PATH).status == 404, "the removed agent", 30)
        r.reload({"agents": [agent("demo"), echo("two")]})
        soon(lambda: ask(r.s.address, "GET", "/agents/mine" + PATH).status == 200, "the agent once more", 30)
        check("two" in says(r.s, "hi"), "its answer")
        r.s.stop_well()


@test("SIGHUP: a running task keeps the agent it started with, its next turn gets the new one", timeout=120)
def _():
    asks = """cat >/dev/null; if [ "$(cat state)" = asked ]; then echo '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"b","role":"ROLE_AGENT","parts":[{"text":"WORD"}]}}}}';
    else echo asked >state; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"a","role":"ROLE_AGENT","parts":[{"text":"which?"}]}}}}'; fi"""
    here = folder()
    open(os.path.join(here, "state"), "w").close()

    def asker(word):
        return agent("exec", "mine", {"command": ["/bin/sh", "-c", asks.replace("WORD", word)], "cwd": here})
    with Reloaded({"agents": [asker("old")]}) as r:
        with Client(r.s, RPC1, base="/agents/mine").stream("start") as events:
            t = events.next().body["id"]
            events.rest()
        r.reload({"agents": [asker("new")]})
        soon(lambda: any("reloaded changed=" in line for line in r.s.log), "the reload", 30)
        answer = Client(r.s, RPC1, base="/agents/mine").send("go on", task=t)
        check("new" in json.dumps(answer.value) and answer.state == "TASK_STATE_COMPLETED", answer)
        r.s.stop_well()


@test("SIGHUP: an agent that cannot be opened changes nothing")
def _():
    with Reloaded({"agents": [agent("demo"), echo("one")]}) as r:
        bad = agent("exec", "mine", {"command": []})
        r.reload({"agents": [agent("demo"), bad]}, "nothing reloaded")
        check("one" in says(r.s, "hi"), "the answer of the old agent")


@test("a stream goes on over many reloads", timeout=120)
def _():
    with Reloaded({"agents": [agent("demo")]}) as r:
        with Client(r.s, RPC1).stream("slow 3") as events:
            events.next()
            for i in range(6):
                r.reload({"agents": [agent("demo", card={"name": f"n{i}"}, working_message=f"working {i}"), *[echo(str(i))] * (i % 2)]})
            check(any("TASK_STATE_COMPLETED" in str(e.body) for e in events.rest()), "no end")


# ---- ready, metrics, logs -------------------------------------------------------------------------------------------------------

@test("/healthz and /readyz, and methods they do not take")
def _():
    s = server("tck")
    for path, word in ("/healthz", "ok"), ("/readyz", "ready"):
        r = ask(s.address, "GET", path)
        same((r.status, r.json["status"], r.get("cache-control")), (200, word, "no-store"), path)
        r = ask(s.address, "POST", path, b"{}", [("Content-Type", "application/json")])
        same((r.status, r.get("allow")), (405, "GET, HEAD"), path)


@test("/readyz is red, with the reason, when the store cannot write; new work is refused", timeout=120)
def _():
    limit = 400 * 1024
    path = os.path.join(folder(), "t.db")

    def small_files():
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    original = subprocess.Popen

    def popen(*a, **k):
        return original(*a, **{**k, "preexec_fn": small_files})
    subprocess.Popen = popen
    try:
        s = Server("bench", store="sqlite:" + path)
    finally:
        subprocess.Popen = original
    with s:
        c = Client(s, RPC1)

        def is_full():
            big = c.send("chunks 1 " + "x" * 300000)
            r, m = ask(s.address, "GET", "/readyz"), ask(s.address, "GET", "/metrics").body.decode()
            for body in big.response.body, r.body:
                check(path.encode() not in body and b"user" not in body, body)  # where it is and who we are is for the log
            return not big.ok and r.status == 503 and len(r.json["reason"]) > 10 and "dragoman_ready 0" in m
        soon(is_full, "it is ready although nothing can be written", 60)


@each("a database that is deleted or moved under the server: /readyz is red, sends are refused, only the log names the path: {}", ["deleted", "moved", "replaced"])
def _(how):
    path = os.path.join(folder(), "t.db")
    with Server("bench", store="sqlite:" + path) as s:
        c = Client(s, RPC1)
        check(c.send("chunks 1 x").ok, "before")
        if how == "deleted":
            os.unlink(path)
        else:
            os.rename(path, path + ".aside")
        if how == "replaced":
            with open(path, "w", encoding="utf-8"):
                pass
        r = ask(s.address, "GET", "/readyz")
        same(r.status, 503, "/readyz")
        refused = c.send("chunks 1 x")
        check(not refused.ok, refused)
        for body in r.body, refused.response.body:
            check(path.encode() not in body, body)
        soon(lambda: any("the store failed" in line and path in line for line in s.log), "the log names it", 30)
        if how == "moved":
            os.rename(path + ".aside", path)
            soon(lambda: ask(s.address, "GET", "/readyz").status == 200, "it works again", 30)
            check(c.send("chunks 1 x").ok, "after")


def metrics(s):
    r = ask(s.address, "GET", "/metrics")
    same((r.status, r.type), (200, "text/plain"), "answer")
    out, typed = {}, set()
    for line in r.body.decode().splitlines():
        if line.startswith("# TYPE "):
            check(line.split()[2] not in typed, f"twice: {line}")
            typed.add(line.split()[2])
        elif not line.startswith("#"):
            m = re.fullmatch(r"([a-z_]+)(\{[^}]*\})? ([-+0-9.e]+|\+Inf)", line)
            check(m, f"no metric: {line}")
            check(re.sub(r"_(bucket|sum|count)$", "", m[1]) in typed or m[1] in typed, f"no type: {line}")
            check(m[1] + (m[2] or "") not in out, f"twice: {line}")
            out[m[1] + (m[2] or "")] = float(m[3])
    return out


@test("/metrics counts requests, tasks, runs, streams, and how long it took")
def _():
    with Server("demo") as s:
        c = Client(s, RPC1)
        c.send("echo a")
        with c.stream("echo b") as events:
            events.rest()
        Client(s, REST1).get("nobody")
        ask(s.address, "GET", "/nothing")
        m = metrics(s)
        for name, value in {'dragoman_http_requests_total{route="jsonrpc",code="200"}': 2, 'dragoman_http_requests_total{route="rest",code="404"}': 1, 'dragoman_http_requests_total{route="none",code="404"}': 1,
                            "dragoman_tasks_total": 2, "dragoman_runs_total": 2, "dragoman_sends_total": 2, "dragoman_streams_total": 1, "dragoman_streams_open": 0, "dragoman_ready": 1,
                            'dragoman_http_request_duration_seconds_count{route="jsonrpc"}': 1}.items():
            same(m.get(name), float(value), name)
        check(m["process_resident_memory_bytes"] > 1e6 and m["dragoman_records_total"] > 4 and m["dragoman_http_sent_bytes_total"] > 100, m)
        buckets = [v for k, v in m.items() if k.startswith('dragoman_http_request_duration_seconds_bucket{route="jsonrpc"')]
        same((buckets, buckets[-1]), (sorted(buckets), 1.0), "buckets")
        check(any(k.startswith('dragoman_agent_warnings_total{rule="') for k in m), "rules")


@test("/metrics: how long the disk takes")
def _():
    with Server("bench", store="sqlite:" + os.path.join(folder(), "t.db")) as s:
        Client(s, RPC1).send("chunks 3 x")
        m = metrics(s)
        check(m["dragoman_store_commit_duration_seconds_count"] == m["dragoman_store_commits_total"] >= 1 and m["dragoman_store_commit_duration_seconds_sum"] > 0, m)


@test("/metrics: open streams are counted while they are open")
def _():
    with Server("bench") as s:
        with Client(s, RPC1).stream("hold 600") as events:
            events.next()
            same(metrics(s)["dragoman_streams_open"], 1.0, "open")
            events.stream.conn.reset()
        soon(lambda: metrics(s)["dragoman_streams_open"] == 0, "still open", 30)


@test("a request's own id is in its line and in the answer")
def _():
    with Server("tck") as s:
        r = ask(s.address, "GET", PATH, None, [("X-Request-Id", "abc-123")])
        same(r.get("x-request-id"), "abc-123", "header")
        r = ask(s.address, "GET", PATH, None, [("X-Request-Id", 'a" level=error')])
        same(r.get("x-request-id"), None, "header")
        s.stop_well()
        check(any("request=abc-123" in line for line in s.log), "the line")


@test("a line of the log cannot be forged")
def _():
    with Server("tck") as s:
        for target in ("/x%0aerror", "/x\x1b[31m", "/x\x7f"):
            try:
                ask(s.address, "GET", target)
            except Failure:
                pass
        s.stop_well()
        check(not any("\x1b" in line or line.startswith("error") for line in s.log), s.log)


@test("what an agent's program says to stderr is in the log, with its task")
def _():
    works = """cat >/dev/null; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"}}}'; sleep 0.3; echo careful >&2"""
    with Server(None, config={"agents": [agent("exec", settings={"command": ["/bin/sh", "-c", works]})]}) as s:
        t = Client(s, RPC1).send("x").task
        s.stop_well()
        check(any("careful" in line and t["id"] in line for line in s.log), "\n".join(s.log))


@test("a protocol error of a third-party agent is a warning in the log, and counted")
def _():
    bad = """cat >/dev/null; echo '{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true,"lastChunk":true}}'"""
    with Server(None, config={"agents": [agent("exec", settings={"command": ["/bin/sh", "-c", bad]})]}) as s:
        Client(s, RPC1).send("x")
        soon(lambda: sum(v for k, v in metrics(s).items() if k.startswith("dragoman_agent_warnings_total")) >= 1, "not counted", 30)
        s.stop_well()
        check(any(" warn " in line and "rule=" in line for line in s.log), "\n".join(s.log))


@test("a text part in a working status is logged once a run, by lint's rule and with its pointer, and refused nowhere [R004-14]")
def _():
    says = """cat >/dev/null; for t in one two; do printf '{"statusUpdate":{"status":{"state":"TASK_STATE_WORKING","message":{"role":"ROLE_AGENT",""" \
           """"parts":[{"text":"%s"}]}}}}\\n' $t; done; echo '{"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"}}}'"""
    with Server(None, config={"agents": [agent("exec", settings={"command": ["/bin/sh", "-c", says]})]}) as s:
        for n in (1, 2):
            same(Client(s, RPC1).send("x").task["status"]["state"], "TASK_STATE_COMPLETED", "the task")
            soon(lambda: metrics(s)['dragoman_agent_warnings_total{rule="working-status-text"}'] == n, "not counted", 30)
        s.stop_well()
        told = [line for line in s.log if "rule=working-status-text" in line]
        check(len(told) == 2 and all(" warn " in line and "/status/message/parts/0" in line for line in told), "\n".join(s.log))


@test("secrets are not in the log, however they are sent")
def _():
    with Server("tck", config={"tokens": [{"token": "s3cret-word", "principal": "p"}], "log": {"level": "debug"}}) as s:
        for headers, target in ([("Authorization", "Bearer s3cret-word")], "/tasks/x"), ([("X-API-Key", "s3cret-word")], "/tasks/x"), ([], "/tasks/x?access_token=s3cret-word"):
            ask(s.address, "GET", target, None, [*V1, *headers])
        s.stop_well()
        check(not any("s3cret-word" in line for line in s.log), "\n".join(s.log))


@test("a log without a reader does not block the server", timeout=120)
def _():
    p = subprocess.Popen([DRAGOMAN, "serve", "--listen", "127.0.0.1:0", "--store", "memory:", "--agent", "tck"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder())
    try:
        port = int(re.search(r":(\d+)$", p.stdout.readline().decode().strip())[1])
        with Conn(("127.0.0.1", port)) as c:
            for _ in range(3000):  # more lines than a pipe holds
                c.request("GET", PATH)
                same(c.response().status, 200, "status")
    finally:
        p.terminate()
        same(p.wait(60), 0, "status")


@test("what `make run` starts answers, agent by agent")
def _():
    with Server(None, args=["-c", os.path.join(ROOT, "examples/run/dragoman.yaml")]) as s:
        for base, words in ("", "You said: x"), ("/agents/hello", "Hello"), ("/agents/assistant", "x"), ("/agents/shell", "You said: x"):
            check(words in json.dumps(Client(s, RPC1, base=base).send("x").result), base)


@test("the example of a language model with tools answers")
def _():
    with Server(None, args=["-c", os.path.join(ROOT, "examples/llm/dragoman.yaml")]) as s:
        check("UTC" in json.dumps(Client(s, RPC1).send("call now {}").result), "the tool `now`")
        same(Client(s, RPC1).send('call remove {"file": "x"}').state, "TASK_STATE_INPUT_REQUIRED", "a tool that is approved first")
