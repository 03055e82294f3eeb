"""Every setting of the config: what is different when it is set. `SETTINGS` at the end holds them against the schema."""
import json
import os
import re
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time

from lib.a2a import REST1, RPC1, RPC03, Client, message, new_id
from lib import fronts, mcp
from lib.agents import completed, tck
from lib.http import Conn, ask
from lib.server import DRAGOMAN, ENV, ROOT, Server, agent, folder, on_postgres, server
from lib.tap import Failure, Skip, check, same, soon, test

PATH = "/.well-known/agent-card.json"
V1 = [("A2A-Version", "1.0")]
HELD = {}


def setting(name, about, timeout=60):
    """A test of a setting; several may hold one."""
    HELD.setdefault(name, []).append(about)
    return test(f"setting {name}: {about}", timeout)


def serve(config=None, agent_type="tck", **more):
    return server(agent_type, config=config or {}, **more)


def card(s, headers=V1, path=PATH):
    return ask(s.address, "GET", path, None, headers).json


def refuses(config, *words, args=()):
    """It does not start, and the sentence has these words."""
    try:
        Server("tck" if "agents" not in config else None, config=config, args=args).kill()
    except Failure as e:
        check(all(w in str(e) for w in words), e)
        return
    raise Failure("it started")


# ---- listening ----------------------------------------------------------------------------------------------------

@setting("profile", "a list of settings below the file's own")
def _():
    s = Server(None, config={"profile": "tck"})
    with s:
        same([e["identifier"].split(":")[-1] for e in ask(s.address, "GET", "/.well-known/ai-catalog.json").json["entries"]], ["tck", "tck-0.3"], "agents")


@setting("listen", "a unix socket")
def _():
    path = os.path.join(folder(), "s.sock")
    p = subprocess.Popen([DRAGOMAN, "serve", "--store", "memory:", "--listen", f"unix:{path}"], env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        check(f"listening on unix:{path}" in p.stdout.readline().decode(), "the banner")
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(20)
        c.connect(path)
        c.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        check(c.recv(100).startswith(b"HTTP/1.1 200"), "no answer")
        c.close()
    finally:
        p.terminate()
        same(p.wait(60), 0, "status")


def certificate():
    d = folder()
    cert, key = os.path.join(d, "cert.pem"), os.path.join(d, "key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost"]
    try:
        subprocess.run(make, check=True, capture_output=True)
    except FileNotFoundError:
        raise Skip("no openssl here")
    return cert, key


def tls_ask(s):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(s.address, timeout=20) as raw, context.wrap_socket(raw) as c:
        c.sendall(b"GET " + PATH.encode() + b" HTTP/1.1\r\nHost: localhost:1\r\nA2A-Version: 1.0\r\nConnection: close\r\n\r\n")
        data = b""
        while more := c.recv(65536):
            data += more
        return data, c.getpeercert(True)


@setting("tls.cert", "HTTPS, and cards have https URLs")
def _():
    cert, key = certificate()
    with Server("tck", config={"tls": {"cert": cert, "key": key}}) as s:
        check(b'"url":"https://localhost:1/"' in tls_ask(s)[0], "the card")


@setting("tls.cert", "SIGHUP reads a new one from the same file, and keeps the old one if the new one is invalid")
def _():
    cert, key = certificate()
    with Server("tck", config={"tls": {"cert": cert, "key": key}}) as s:
        old = tls_ask(s)[1]
        for new in certificate(), None:
            if new:
                os.replace(new[0], cert)
                os.replace(new[1], key)
            else:
                with open(cert, "w", encoding="utf-8") as f:
                    f.write("nonsense")
            n = len(s.log)
            s.process.send_signal(signal.SIGHUP)
            if new:
                soon(lambda: tls_ask(s)[1] != old, "the old certificate", 30)
                old = tls_ask(s)[1]
            else:
                soon(lambda: any(" error " in line for line in s.log[n:]), "no complaint", 30)
                same(tls_ask(s)[1], old, "certificate")


@setting("tls.key", "both or neither")
def _():
    refuses({"tls": {"cert": "x.pem"}}, "key")


@setting("insecure", "a listen beyond loopback needs tokens, or this")
def _():
    refuses({"listen": "0.0.0.0:0"}, "does not listen", args=["--listen", "0.0.0.0:0"])
    p = subprocess.run([DRAGOMAN, "serve", "--check", "--listen", "0.0.0.0:0", "--insecure"], env=ENV, capture_output=True, text=True, timeout=60)
    same(p.returncode, 0, "status")


@setting("public_url", "what cards and the catalog say")
def _():
    s = serve({"public_url": "https://agents.example/base/"})
    check(all(i["url"].startswith("https://agents.example/base") for i in card(s)["supportedInterfaces"]), card(s))
    check("https://agents.example/base/agents/" in ask(s.address, "GET", "/.well-known/ai-catalog.json").json["entries"][0]["url"], "the catalog")


@test("without public_url cards say where the caller reached the server")
def _():
    s = serve()
    check(all(i["url"].startswith("http://localhost:7") for i in card(s, [*V1, ("Host", "localhost:7")])["supportedInterfaces"]), card(s))


@setting("hosts", "names beside loopback's")
def _():
    s = serve({"hosts": ["agents.example"]})
    for host, status in ("agents.example", 200), ("agents.example:80", 200), ("other.example", 403), ("localhost", 200):
        same(ask(s.address, "GET", PATH, None, [("Host", host)]).status, status, host)


@setting("outbound.allow", "ranges of addresses; others are an error")
def _():
    s = serve({"outbound": {"allow": ["10.1.0.0/16", "fd00::/8", "127.0.0.1"]}})
    same(ask(s.address, "GET", "/healthz").status, 200, "status")
    for wrong in "10.0.0.1/8", "intranet.example", "10.0.0.0/33":
        refuses({"outbound": {"allow": [wrong]}}, wrong, "a range of addresses like 10.1.0.0/16")


@setting("cors.origins", "pages that may call")
def _():
    s = serve({"cors": {"origins": ["https://app.example"]}})
    for origin, status in ("https://app.example", 200), ("https://other.example", 403):
        r = ask(s.address, "GET", "/healthz", None, [("Origin", origin)])
        same((r.status, r.get("access-control-allow-origin")), (status, origin if status == 200 else None), origin)


@setting("store", "tasks are there after a restart, or not")
def _():
    path = "sqlite:" + os.path.join(folder(), "t.db")
    with Server("tck", store=path) as s:
        id = completed(Client(s, RPC1))["id"]
        s.stop_well()
        s.restart()
        same(Client(s, RPC1).get(id).task["id"], id, "id")


def replicas(store, columns):
    """The servers that use a PostgreSQL, one row after the other."""
    done = subprocess.run(["psql", "-Atq", "-d", store.removeprefix("postgres:"), "-c", f"SELECT {columns} FROM dragoman.replicas WHERE NOT dead"],
                          check=True, stdout=subprocess.PIPE, text=True, timeout=60)
    return done.stdout.split()


@setting("replica.name", "the name in the table of the servers", timeout=120)
def _():
    store = on_postgres("memory:")
    with Server("tck", store=store, config={"replica": {"name": "east-1"}}):
        same(replicas(store, "convert_from(name,'UTF8')"), ["east-1"], "names")


@setting("replica.lease_s", "how long a server lives without a heartbeat", timeout=120)
def _():
    store = on_postgres("memory:")
    with Server("tck", store=store, config={"replica": {"lease_s": 600}}):
        same(replicas(store, "until>now()+interval '5 minutes'"), ["t"], "a lease of ten minutes")


@setting("replica.wakeup", "with LISTEN, or without", timeout=120)
def _():
    for wakeup, listens in (("notify", True), ("poll", False)):
        store = on_postgres("memory:")
        database, host = re.search(r"dbname=(\S+)", store)[1], re.search(r"host=(\S+)", store)[1]
        subprocess.run(["psql", "-q", "-d", store.removeprefix("postgres:"), "-c", f"ALTER DATABASE {database} SET log_statement='all'"],
                       check=True, timeout=60)
        with open(os.path.join(host, "log"), "rb") as log:
            log.seek(0, os.SEEK_END)
            with Server("tck", store=store, config={"replica": {"wakeup": wakeup}}):
                same(len(replicas(store, "id")), 1, "servers")
            statements = log.read().decode(errors="replace")
        check("INSERT INTO dragoman.replicas" in statements, "the statements are not in the log of the server")
        same("LISTEN dragoman;" in statements, listens, wakeup)


HOUR, DAY = 3600 * 1000, 24 * 3600 * 1000


def age(path, id, ms):
    """All that a task says of time was so long ago."""
    with sqlite3.connect(path) as db:
        (n,) = db.execute("SELECT n FROM tasks WHERE id=?", (id,)).fetchone()
        db.execute("UPDATE tasks SET created_ms=created_ms-?1,status_ms=status_ms-?1 WHERE n=?2", (ms, n))
        db.execute("UPDATE turns SET ended_ms=ended_ms-?1 WHERE at>>32=?2", (ms, n))
    db.close()


def exported(path):
    lines = subprocess.run([DRAGOMAN, "db", "export", "-d", path], env=ENV, capture_output=True, text=True, check=True).stdout.splitlines()
    return [json.loads(line)["task"] for line in lines]


def aged_server(ages, **config):
    """Tasks of these ages, in a server that has started since."""
    path = os.path.join(folder(), "t.db")
    s = Server("tck", store="sqlite:" + path, config=config)
    with s:
        ids = [completed(Client(s, RPC1))["id"] for _ in ages]
        s.stop_well()
        for id, ms in zip(ids, ages):
            age(path, id, ms)
        s.restart()
        yield s, path, ids
        s.stop_well()
    found = subprocess.run([DRAGOMAN, "db", "check", "-d", path], env=ENV, capture_output=True, text=True)
    same(found.returncode, 0, found.stdout + found.stderr)


@setting("retention_hours", "logs of turns that ended before go, their tasks stay")
def _():
    for s, path, (old, young) in aged_server([3 * HOUR, HOUR], retention_hours=2):
        soon(lambda: old not in exported(path), "the log is there")
        check(young in exported(path), "the other one's is gone")
        same([Client(s, RPC1).get(id).task["status"]["state"] for id in (old, young)], ["TASK_STATE_COMPLETED"] * 2, "states")


@setting("keep_tasks_days", "tasks that ended earlier are deleted with their records")
def _():
    for s, path, (old, young) in aged_server([3 * DAY, DAY], keep_tasks_days=2, retention_hours=100000):
        soon(lambda: not Client(s, RPC1).get(old).ok, "the task is there")
        Client(s, RPC1).get(old).expect("TaskNotFound")
        same(Client(s, RPC1).get(young).task["id"], young, "the other one")
        check(old not in exported(path) and young in exported(path), "logs")
    for s, path, (old,) in aged_server([3000 * DAY], retention_hours=876000):
        same(Client(s, RPC1).get(old).task["id"], old, "for ever")


@setting("loops", "how many threads serve")
def _():
    def threads(n):
        with Server("tck", config={"loops": n}) as s:
            return len(os.listdir(f"/proc/{s.process.pid}/task"))
    same(threads(5) - threads(2), 3, "more threads")


@setting("drain_s", "how long a run may go on after SIGTERM", timeout=120)
def _():
    with Server("demo", store="sqlite:" + os.path.join(folder(), "t.db"), config={"drain_s": 0}) as s:
        with Client(s, RPC1).stream("slow 600") as events:
            events.next()
            began = time.monotonic()
            s.stop_well()
        check(time.monotonic() - began < 60, "it waited for the run")


@setting("log.level", "how much is logged")
def _():
    for level, there in ("info", True), ("warn", False):
        with Server("tck", config={"log": {"level": level}}) as s:
            completed(Client(s, RPC1))
            s.stop_well()
            same(any("operation=SendMessage" in line for line in s.log), there, f"a line of the request at {level}")


@setting("log.format", "lines for people or for programs")
def _():
    with Server("tck", config={"log": {"format": "json"}}) as s:
        t = completed(Client(s, RPC1))
        s.stop_well()
        lines = [json.loads(line) for line in s.log if line.startswith("{")]
        one = next(x for x in lines if x.get("operation") == "SendMessage")
        same((one["level"], one["msg"], one["method"], one["path"], one["status"], one["task"], one["turn"]), ("info", "request", "POST", "/", 200, t["id"], 1), "line")
        check(one["request"] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["time"]), one)


# ---- limits -----------------------------------------------------------------------------------------------------------

@setting("limits.http_body_bytes", "more is 413")
def _():
    s = serve({"limits": {"http_body_bytes": 2000}})
    same(ask(s.address, "POST", "/", b"x" * 2001, [("Content-Type", "application/json")]).status, 413, "status")


def second_large_request(s, first, second):
    """What a second request of 700 kB is answered with, while the first one waits for its body."""
    with Conn(s.address) as a:
        for c, headers in (a, first), (Conn(s.address), second):
            lines = "".join(f"{n}: {v}\r\n" for n, v in [("Content-Type", "application/json"), ("Content-Length", "700000"), ("Expect", "100-continue"), *headers])
            c.send(f"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n{lines}\r\n")
            if c is a:
                check(c.line().startswith(b"HTTP/1.1 100"), "the first one is admitted")
            else:
                with c:
                    return int(c.line()[9:12])


@setting("limits.in_flight_bytes", "more is 503")
def _():
    same(second_large_request(serve({"limits": {"in_flight_bytes": 1 << 20}}), [], []), 503, "status")
    same(second_large_request(serve(), [], []), 100, "by default")


@setting("limits.in_flight_bytes_per_principal", "more is 429, another one is not concerned")
def _():
    s = serve({"limits": {"in_flight_bytes_per_principal": 1 << 20}, "tokens": [{"token": f"{p}-secret-1234", "principal": p} for p in ("alice", "bob", "carol")]})
    alice, bob, carol = ([("Authorization", f"Bearer {p}-secret-1234")] for p in ("alice", "bob", "carol"))
    same(second_large_request(s, alice, alice), 429, "alice twice")
    same(second_large_request(s, bob, carol), 100, "bob and carol")


@setting("limits.connections", "further connections get 503")
def _():
    s = serve({"limits": {"connections": 2}, "loops": 1})
    with Conn(s.address) as a, Conn(s.address) as b:
        for c in a, b:
            c.request("GET", "/healthz")
            same(c.response().status, 200, "status")
        same(ask(s.address, "GET", "/healthz").status, 503, "the third")


@setting("limits.log_bytes", "a task with a longer log fails")
def _():
    s = serve({"limits": {"log_bytes": 65536}}, "bench")
    t = Client(s, RPC1).send("chunks 2000 words").task
    same((t["status"]["state"], t["metadata"]["error"].split(":")[0]), ("TASK_STATE_FAILED", "log_limit"), "end")


@setting("limits.log_records", "likewise, counted")
def _():
    s = serve({"limits": {"log_records": 16}}, "bench")
    t = Client(s, RPC1).send("chunks 100 words").task
    same((t["status"]["state"], t["metadata"]["error"].split(":")[0]), ("TASK_STATE_FAILED", "log_limit"), "end")


@setting("limits.queued_messages", "one more than fit is refused")
def _():
    s = serve({"limits": {"queued_messages": 0}}, "bench")
    c = Client(s, RPC1)
    t = c.send("hold 600", config={"returnImmediately": True}).task
    c.send("more", task=t["id"]).expect("UnsupportedOperation")


@setting("limits.subscribers", "one more is refused")
def _():
    s = serve({"limits": {"subscribers": 1}}, "bench")
    c = Client(s, RPC1)
    t = c.send("hold 600", config={"returnImmediately": True}).task
    with c.subscribe(t["id"]) as first:
        first.next()
        a = c.open("subscribe", {"id": t["id"]})
        same(a.response.status, 429, "status")


# ---- who ------------------------------------------------------------------------------------------------------------------

@setting("tenants", "those there are; tokens may name no others")
def _():
    refuses({"tenants": ["acme"], "tokens": [{"token": "t", "principal": "p", "tenant": "other"}]}, "other")
    c = Client(serve({"tenants": ["acme"]}), RPC1, tenant="nobody")
    check(not c.send(id=tck("complete-task")).ok, "an unknown tenant")


@setting("a2a.stream_errors", "how a streaming call over JSON-RPC is refused")
def _():
    for how, type in ("event", "text/event-stream"), ("json", "application/json"):
        c = Client(serve({"a2a": {"stream_errors": how}}), RPC1)
        a = c.open("subscribe", {"id": "nobody"})
        same((a.stream.response if how == "event" else a.response).type, type, how)
        a.expect("TaskNotFound")


@setting("ag-ui.questions", "a question that is only text: a message, or an interrupt")
def _():
    body = {"threadId": "t", "runId": "r", "state": {}, "messages": [{"id": "u", "role": "user", "content": "ask"}],
            "tools": [], "context": [], "forwardedProps": {}}
    for how, outcome in ("message", "success"), ("interrupt", "interrupt"):
        a = ask(serve({"ag-ui": {"questions": how}}, "demo").address, "POST", "/ag-ui", body, [("Content-Type", "application/json")])
        end = json.loads([line for line in a.body.decode().splitlines() if line.startswith("data: ")][-1][len("data: "):])
        same((end["type"], end.get("outcome", {"type": "success"})["type"]), ("RUN_FINISHED", outcome), how)


@setting("openai.continue_questions", "a request without a conversation id continues the task that asked, or starts a new one")
def _():
    asked = [{"role": "user", "content": "ask"}, {"role": "assistant", "content": "What is your name?"}, {"role": "user", "content": "Ann"}]
    for on, start in (True, "Hello Ann"), (False, "You said: Ann"):
        s = serve({"openai": {"continue_questions": on}}, "demo")
        for messages in asked[:1], asked:
            a = ask(s.address, "POST", "/v1/chat/completions", {"model": "demo", "messages": messages}, [("Content-Type", "application/json")])
        content = a.json["choices"][0]["message"]["content"]
        check(content.startswith(start), f"{on}: {content}")


@setting("a2a.security_requirements", "the card of a server with tokens has no securityRequirements, and its schemes")
def _():
    tokens = [{"token": "t", "principal": "p"}]
    for on in True, False:
        c = card(serve({"tokens": tokens, "a2a": {"security_requirements": on}}))
        same(("securityRequirements" in c, "securitySchemes" in c), (on, True), f"with {on}")


@setting("tokens.may_set_metadata", "keys that a trusted router's messages keep")
def _():
    refuses({"tokens": [{"token": "t", "principal": "p", "may_set_metadata": ["dragoman:"]}]}, "may_set_metadata")
    s = serve({"tokens": [{"token": "t", "principal": "p"}, {"token": "r", "principal": "p", "may_set_metadata": ["aion:"]}]}, "demo")
    for token, kept in ("t", None), ("r", "n"):
        m = Client(s, RPC1, token=token).send(m=message("echo x", metadata={"aion:network": "n"})).task["history"][0]
        same(m["metadata"].get("aion:network"), kept, token)


@setting("tokens.role", "operators may read traces, other callers may not")
def _():
    refuses({"tokens": [{"token": "t", "principal": "p", "role": "root"}]}, "role")
    s = serve({"tokens": [{"token": "t", "principal": "p"}, {"token": "o", "principal": "p", "role": "operator"}]}, "demo")
    for token, status in ("t", 403), ("o", 200):
        same(ask(s.address, "GET", "/debug/tasks/x/trace", None, [("Authorization", f"Bearer {token}")]).status, status, token)


TOKEN_FILE = os.path.join(folder(), "token")
with open(TOKEN_FILE, "w", encoding="utf-8") as f:
    f.write("from-a-file\n")
MANY = {"tokens": [{"token": "plain", "principal": "a"}, {"token_env": "WIRE_TOKEN", "principal": "b", "tenant": "acme"}, {"token_file": TOKEN_FILE, "principal": "c"},
                   {"kind": "api-key", "header": "X-My-Key", "token": "key", "principal": "d"}]}


def who(headers):
    return ask(serve(MANY, env={"WIRE_TOKEN": "from-env"}).address, "GET", "/tasks/x", None, [*V1, *headers]).status


for key, headers in {"token": [("Authorization", "Bearer plain")], "token_env": [("Authorization", "Bearer from-env")], "token_file": [("Authorization", "Bearer from-a-file")],
                     "kind": [("X-My-Key", "key")], "header": [("x-my-key", "key")]}.items():
    setting(f"tokens.{key}", "accepts its bearer and no other caller")(lambda headers=headers: same((who(headers), who([])), (404, 401), "statuses"))


# ---- MCP servers --------------------------------------------------------------------------------------------------

SMALL = [sys.executable, "-I", os.path.abspath(mcp.__file__)]  # -I: its folder has modules with the names of Python's


def mcp_call(server, tool="about", env=None, timeout=60):
    """`dragoman mcp call` with this server as `small`: its exit status, and its output."""
    path = os.path.join(folder(), new_id("mcp") + ".yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"agents": [{"id": "a", "type": "hello"}], "mcp": {"small": server}}, f)
    p = subprocess.run([DRAGOMAN, "mcp", "call", "-c", path, "small", tool, '{"path": "a.txt"}'], env={**ENV, **(env or {})},
                       capture_output=True, text=True, timeout=timeout)
    return p.returncode, p.stdout + p.stderr


def about(server, env=None):
    status, out = mcp_call(server, env=env)
    same(status, 0, out)
    return json.loads(out)


setting("mcp.command", "the program that is the server")(
    lambda: same(mcp_call({"command": SMALL}, "read_file"), (0, "the content of a.txt\n"), "the result"))


@setting("mcp.name", "the name of a server: letters, digits, _ and -")
def _():
    refuses({"mcp": {"a b": {"command": SMALL}}}, "a b")
    path = os.path.join(folder(), "names.yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"mcp": [{"name": "desk", "command": SMALL}]}, f)
    out = subprocess.run([DRAGOMAN, "mcp", "list", "-c", path], env=ENV, capture_output=True, text=True, timeout=60)
    check("desk__read_file" in out.stdout, out)


@setting("mcp.cwd", "the folder of the program")
def _():
    where = os.path.realpath(folder())
    same(about({"command": SMALL, "cwd": where})["cwd"], where, "the folder")


setting("mcp.env", "variables of the program")(lambda: same(about({"command": SMALL, "env": {"COLOUR": "red"}})["env"]["COLOUR"], "red", "COLOUR"))


@setting("mcp.inherit_env", "variables of the server that the program gets, too")
def _():
    for names, wanted in ([], None), (["COLOUR"], "red"):
        same(about({"command": SMALL, "inherit_env": names}, {"COLOUR": "red"})["env"].get("COLOUR"), wanted, names)


@setting("mcp.url", "the URL of the server")
def _():
    same(mcp_call({"url": mcp.HttpMcp().url}, "read_file"), (0, "the content of a.txt\n"), "the result")
    refuses({"mcp": {"x": {"url": "ftp://127.0.0.1/"}}}, "url")


@setting("mcp.headers", "headers of every request")
def _():
    server = mcp.HttpMcp()
    same(mcp_call({"url": server.url, "headers": {"X-Colour": "red"}})[0], 0, "status")
    same({h.get("X-Colour") for h in server.headers}, {"red"}, "the header")


@setting("mcp.token_env", "the variable that has the bearer token")
def _():
    server = mcp.HttpMcp()
    same(mcp_call({"url": server.url, "token_env": "MCP_KEY"}, env={"MCP_KEY": "k-1"})[0], 0, "status")
    same({h.get("Authorization") for h in server.headers}, {"Bearer k-1"}, "the token")


@setting("mcp.timeout", "seconds that a call may be without an answer")
def _():
    status, out = mcp_call({"url": mcp.HttpMcp(silent=True).url, "timeout": 0.5})
    check(status != 0 and "time" in out, out)


@setting("mcp.share", "who shares a session")
def _():
    refuses({"mcp": {"x": {"command": SMALL, "share": "planet"}}}, "share")
    for share, n in ("server", 1), ("context", 2):
        rows = [{"id": "a", "type": "llm", "settings": {"base_url": "mock:", "tools": ["small"]}}]
        with Server(None, config={"agents": rows, "loops": 1, "mcp": {"small": {"command": SMALL, "share": share}}}) as s:
            texts = [json.dumps(Client(s, RPC1).send("call small__about {}").task) for _ in range(2)]
            pids = {re.search(r'\\"pid\\*": (\d+)', t)[1] for t in texts}
            same(len(pids), n, share)


@setting("inspect", "who may read the records of a task")
def _():
    for value, status in (("owner", 200), ("operator", 403)):
        s = serve({"inspect": value, "tokens": [{"token": "t", "principal": "p"}]}, "demo")
        task = Client(s, RPC1, token="t").send("stream").task["id"]
        same(ask(s.address, "GET", f"/debug/tasks/{task}/records", None, [("Authorization", "Bearer t")]).status, status, value)


@setting("inspect_remote", "operators may reach other servers through this one")
def _():
    for value in (False, True):
        s = serve({"inspect_remote": value}, "demo")
        same(ask(s.address, "GET", "/debug/me").json["remote"], value, "what the page offers")
        refused = ask(s.address, "POST", "/debug/remote/card", b'{"url": "http://127.0.0.1:1/"}', [("Content-Type", "application/json")])
        same((refused.status, "inspect_remote" in refused.json["error"]["message"]), (403, not value), "why it is refused")


@setting("tokens.principal", "what is not yours does not exist")
def _():
    s = serve(MANY, env={"WIRE_TOKEN": "from-env"})
    t = completed(Client(s, RPC1, token="plain"))
    Client(s, RPC1, token="from-a-file").get(t["id"]).expect("TaskNotFound")
    same(Client(s, RPC1, token="plain").get(t["id"]).task["id"], t["id"], "id")


@setting("tokens.tenant", "the only one it reaches")
def _():
    s = serve(MANY, env={"WIRE_TOKEN": "from-env"})
    completed(Client(s, RPC1, token="from-env", tenant="acme"))
    check(not Client(s, RPC1, token="from-env", tenant="other").send(id=tck("complete-task")).ok, "another tenant")


def is_canceled_after_leaving(config, go):
    s = serve(config, "demo")
    c = Client(s, RPC1)
    with c.stream("slow 600") as events:
        id = events.until(lambda e: e.kind == "task").body["id"]
        events.stream.conn.reset()
    go(c, id)


@setting("on_disconnect.a2a", "a run ends when its caller is gone, or goes on")
def _():
    is_canceled_after_leaving({"on_disconnect": {"a2a": "cancel"}, "disconnect_grace_s": {"a2a": 0}}, lambda c, id: soon(lambda: c.get(id).state == "TASK_STATE_CANCELED", "not canceled", 30))
    is_canceled_after_leaving({"on_disconnect": {"a2a": "continue"}, "disconnect_grace_s": {"a2a": 0}}, lambda c, id: (time.sleep(1), same(c.get(id).state, "TASK_STATE_WORKING", "state"), c.cancel(id)))


@setting("disconnect_grace_s.a2a", "who comes back in time finds it running")
def _():
    def back(c, id):
        with c.subscribe(id) as events:
            events.next()
            time.sleep(9)
            same(c.get(id).state, "TASK_STATE_WORKING", "state")
        c.cancel(id)
    is_canceled_after_leaving({"on_disconnect": {"a2a": "cancel"}, "disconnect_grace_s": {"a2a": 8}}, back)


LEFT = {"ag-ui": ("/ag-ui", lambda: fronts.run_input("slow 600")),
        "chat": ("/v1/chat/completions", lambda: fronts.chat_body("slow 600", stream=True)),
        "responses": ("/v1/responses", lambda: {"model": "demo", "input": "slow 600", "stream": True}),
        "ai-sdk": ("/ai-sdk", lambda: fronts.ui_body("slow 600"))}


def left(name, config):
    """A task whose caller, of this frontend, is gone."""
    s = serve(config, "demo")
    c, (path, body) = Client(s, REST1), LEFT[name]
    before = {t["id"] for t in c.list(pageSize=100).value["tasks"]}
    with fronts.stream(s, path, body()) as told:
        told.next()
        id, = {t["id"] for t in c.list(pageSize=100).value["tasks"]} - before
        told.conn.reset()
    return c, id


def leaves(name):
    def ends(word):
        return {"on_disconnect": {name: word}, "disconnect_grace_s": {name: 0}}

    @setting(f"on_disconnect.{name}", "a run ends when its caller is gone, or goes on")
    def _():
        c, id = left(name, ends("cancel"))
        soon(lambda: c.get(id).state == "TASK_STATE_CANCELED", "not canceled", 30)
        c, id = left(name, ends("continue"))
        time.sleep(1)
        same(c.get(id).state, "TASK_STATE_WORKING", "state")
        c.cancel(id)

    @setting(f"disconnect_grace_s.{name}", "who comes back in time finds it running")
    def _():
        c, id = left(name, {"on_disconnect": {name: "cancel"}, "disconnect_grace_s": {name: 2}})
        with c.subscribe(id) as events:
            events.next()
            time.sleep(3)
            same(c.get(id).state, "TASK_STATE_WORKING", "state")
        c.cancel(id)


for name in LEFT:
    leaves(name)


# ---- A2A ---------------------------------------------------------------------------------------------------------------------

@setting("a2a.versions", "what is answered and listed")
def _():
    for only, good, bad in ("1.0", RPC1, RPC03), ("0.3", RPC03, RPC1):
        s = serve({"a2a": {"versions": [only]}})
        same({i["protocolVersion"] for i in card(s)["supportedInterfaces"]}, {only}, "versions on the card")
        Client(s, good).get("nobody").expect("TaskNotFound")
        same(Client(s, bad).get("nobody").code, -32009, "code")


@setting("a2a.error_table", "HTTP statuses of 1.0.0")
def _():
    for table, status in ("1.0.0", 409), ("1.0.1", 400):
        s = serve({"a2a": {"error_table": table}})
        c = Client(s, REST1)
        same(c.cancel(completed(c)["id"]).response.status, status, table)


@setting("a2a.card_headerless", "the card of 1.0 alone")
def _():
    check("url" not in card(serve({"a2a": {"card_headerless": "pure-1.0"}}), []) and "url" in card(serve(), []), "members")


@setting("a2a.version_mode", "a 1.0 method without a header")
def _():
    for mode, code in ("strict", -32009), ("lenient", -32001):
        r = ask(serve({"a2a": {"version_mode": mode}}).address, "POST", "/", b'{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"x"}}', [("Content-Type", "application/json")])
        same(r.json["error"]["code"], code, mode)


@setting("a2a.rest_media_type", "type of REST answers")
def _():
    for name, type in ("a2a", "application/a2a+json"), ("json", "application/json"):
        c = Client(serve({"a2a": {"rest_media_type": name}}), REST1, headers=[("Accept", "application/a2a+json")])
        same(c.list().response.type, type, name)


@setting("a2a.stream_at_input_required", "the stream of a send ends there, or not")
def _():
    for word, ends in ("close", True), ("open", False):
        c = Client(serve({"a2a": {"stream_at_input_required": word}}), RPC1)
        with c.stream("please", id=tck("input-required")) as events:
            id = events.until("INPUT_REQUIRED").body["taskId"]
            if ends:
                n = len(events.seen)
                same(len(events.rest()) - n, 0, "events after the question")
            else:
                c.send("go on", id=tck("complete-task"), task=id)
                n = len(events.seen)
                check(len(events.rest()) > n, "nothing after the question")


@setting("a2a.blocking_limit_s", "a blocking send answers with the task as it is")
def _():
    c = Client(serve({"a2a": {"blocking_limit_s": 1}}, "bench"), RPC1)
    same(c.send("hold 600").state, "TASK_STATE_WORKING", "state")


@setting("a2a.canonical_type", "written on messages, or not")
def _():
    for on in True, False:
        t = completed(Client(serve({"a2a": {"canonical_type": on}}), RPC1))
        same("canonical_type" in json.dumps(t), on, f"when {on}")


@setting("a2a.media_types", "parts of a type that the card does not list")
def _():
    for rule, good in ("enforce", False), ("accept", True):
        c = Client(serve({"a2a": {"media_types": rule}, "agents": [agent("tck", card={"defaultInputModes": ["text/plain"]})]}, None), RPC1)
        a = c.call("send", {"message": message(id=tck("complete-task"), parts=[{"text": "x", "mediaType": "application/x-odd"}])})
        same(a.ok, good, rule)


@setting("a2a.streaming", "off: the card has streaming false and streams are refused")
def _():
    s = serve({"a2a": {"streaming": False}})
    same(card(s)["capabilities"]["streaming"], False, "streaming")
    Client(s, RPC1).call("stream", {"message": message()}).expect("UnsupportedOperation")


@setting("a2a.card_max_age_s", "max-age of the card")
def _():
    check("max-age=7" in ask(serve({"a2a": {"card_max_age_s": 7}}).address, "GET", PATH).get("cache-control"), "header")


EXTENSION = {"uri": "urn:example:needed", "description": "words", "required": True, "params": {"a": [1]}}


for key in "uri", "description", "params":
    setting(f"a2a.extensions.{key}", "listed in the card")(lambda key=key: same(card(serve({"a2a": {"extensions": [EXTENSION]}}))["capabilities"]["extensions"][0][key], EXTENSION[key], key))


@setting("a2a.extensions.required", "who does not list it is refused")
def _():
    s = serve({"a2a": {"extensions": [EXTENSION]}})
    Client(s, RPC1).send(id=tck("complete-task")).expect("ExtensionSupportRequired")
    check(Client(s, RPC1, headers=[("A2A-Extensions", EXTENSION["uri"])]).send(id=tck("complete-task")).ok, "refused although listed")


# ---- agents --------------------------------------------------------------------------------------------------------------------

def two(**more):
    return serve({"agents": [agent("demo", "one"), agent("hello", "two", **more)]}, None)


@setting("agents.id", "its path")
def _():
    same((ask(two().address, "GET", "/agents/two" + PATH).status, ask(two().address, "GET", "/agents/three" + PATH).status), (200, 404), "statuses")


@setting("agents.type", "who does the work")
def _():
    check("hello" in str(Client(two(), RPC1, base="/agents/two").send("x").message).lower(), "not the hello agent")
    refuses({"agents": [{"type": "nonsense"}]}, "nonsense")


@setting("agents.default", "the one at /")
def _():
    same((card(two())["name"], card(two(default=True))["name"]), ("Demo", "Hello"), "names")


@setting("agents.card", "how it presents itself")
def _():
    c = card(two(default=True, card={"name": "Nobody", "provider": {"organization": "x", "url": "https://x.example"}, "documentationUrl": "https://x.example/d"}))
    same((c["name"], c["provider"]["organization"], c["documentationUrl"]), ("Nobody", "x", "https://x.example/d"), "members")


@setting("agents.extended_card", "what callers with a token see")
def _():
    s = serve({"agents": [agent("hello", extended_card={"description": "more"})], **MANY}, None, env={"WIRE_TOKEN": "from-env"})
    same((Client(s, RPC1, token="plain").call("card").result["description"], card(s)["capabilities"]["extendedAgentCard"]), ("more", True), "card")
    check(card(s)["description"] != "more", "the public card has it too")


@setting("agents.a2a", "for this agent alone")
def _():
    s = two(a2a={"streaming": False})
    same([card(s, path=p + PATH)["capabilities"]["streaming"] for p in ("", "/agents/two")], [True, False], "streaming")


@setting("agents.settings", "errors in them are reported with their position")
def _():
    refuses({"agents": [{"type": "exec", "settings": {"commands": ["x"]}}]}, "/agents/0/settings")
    p = subprocess.run([DRAGOMAN, "serve", "--check", "-c", write({"agents": [{"type": "exec", "settings": {"command": []}}]})], env=ENV, capture_output=True, text=True, timeout=60)
    same(p.returncode, 1, "status of --check")
    check("/agents/0/settings/command" in p.stderr, p.stderr)


def write(config):
    path = os.path.join(folder(), "dragoman.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return path


def both(name, about):
    """A setting of agents that `agent_defaults` has too; the test gets a function that makes a client."""
    def keep(function):
        def of_agent(type, settings=None, **how):
            return Client(serve({"agents": [agent(type, settings=settings, **how)]}, None), RPC1)

        def of_defaults(type, settings=None, **how):
            return Client(serve({"agent_defaults": how, "agents": [agent(type, settings=settings)]}, None), RPC1)
        setting(f"agents.{name}", about)(lambda: function(of_agent))
        setting(f"agent_defaults.{name}", about)(lambda: function(of_defaults))
        return function
    return keep


@both("reply", "a Message or a Task")
def _(client):
    check("task" in client("hello", reply="task").send("x").result and "message" in client("bench", reply="message").send("chunks 2 x").result, "the other")


@both("final_text", "completed repeats the text, or not")
def _(client):
    same(["message" in client("demo", final_text=w).send("echo a b").task["status"] for w in ("full", "omit")], [True, False], "status.message")


def program(*events):
    lines = " ".join("'" + json.dumps(e) + "'" for e in events)
    return {"command": ["/bin/sh", "-c", f"cat >/dev/null; printf '%s\\n' {lines}"]}


PROGRESS = program({"statusUpdate": {"status": {"state": "TASK_STATE_WORKING", "message": {"role": "ROLE_AGENT", "parts": [{"text": "from the status"}]}}}})


@both("answer_source", "text of a working status is the answer, or progress")
def _(client):
    tasks = [client("exec", PROGRESS, answer_source=source).send("x").task for source in ("status", "artifact")]
    same(["from the status" in json.dumps([t.get("artifacts"), t["status"]]) for t in tasks], [True, False], "in the answer")


@both("working_message", "a status indicator while it works")
def _(client):
    with client("demo", working_message="one moment").stream("echo a") as events:
        check(any("one moment" in json.dumps(e.body) for e in events.rest()), "no indicator")


DELTA = program({"artifactUpdate": {"artifact": {"artifactId": "aion:stream-delta", "name": "aion:stream-delta", "parts": [{"text": "piece"}]}, "append": False, "lastChunk": True}})


@both("persist_stream_delta", "transitory artifacts are kept, or not")
def _(client):
    tasks = [client("exec", DELTA, persist_stream_delta=on).send("x").task for on in (True, False)]
    same(["aion:stream-delta" in [a["artifactId"] for a in t.get("artifacts", [])] for t in tasks], [True, False], "kept")


@both("dedupe", "a message that is sent again finds its turn, or not")
def _(client):
    for on, n in (True, 1), (False, 2):
        c = client("bench", dedupe=on)
        id = new_id("same")
        same(len({c.send("chunks 1 x", id=id, context="ctx").task["id"] for _ in range(2)}), n, f"tasks with {on}")


REMEMBERS = {"command": [os.path.join(ROOT, "tests/wire/lib/remembers.py")]}


def history_of(c, *before):
    context = new_id("ctx")
    for text in before:
        task = c.send(text, context=context).task
    if before[-1:] == ("weather",):
        result = {"data": {"tool_results": [{"call_id": "call-1", "output": "rain"}]}}
        c.send(m=message(parts=[result], task=task["id"]))
    task = c.send("history", context=context).task
    return json.loads(task["status"]["message"]["parts"][0]["text"])


@both("history.messages", "how many messages of the conversation the agent gets")
def _(client):
    for n in 0, 1, 3:
        same(len(history_of(client("exec", REMEMBERS, history={"messages": n}), "a", "b", "c")), n, f"messages with {n}")
    same(len(history_of(client("exec", REMEMBERS, history=2), "a", "b", "c")), 2, "the short form")


@both("history.bytes", "how many bytes of it")
def _(client):
    same([len(history_of(client("exec", REMEMBERS, history={"bytes": n}), "x" * 5000)) for n in (4000, 100000)], [1, 2], "messages")


@both("history.tools", "with calls and results, or without")
def _(client):
    same(["call-1" in json.dumps(history_of(client("exec", REMEMBERS, history={"tools": on}), "weather")[:3]) for on in (True, False)], [True, False],
         "calls")


# ---- is that all? ----------------------------------------------------------------------------------------------------------------

ELSEWHERE = {}
PARTS = {"agents.card": "checked by shape in tests/config, copied to the card", "agents.extended_card": ""}


def leaves(schema, root, at=""):
    while "$ref" in schema or "anyOf" in schema or "oneOf" in schema:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].split("/")[-1]]
        else:
            options = schema.get("anyOf") or schema.get("oneOf")
            schema = next((o for o in options if "variable" not in o.get("$ref", "")), options[0])
    if at in PARTS or at == "agents.a2a" or at == "agents.settings":
        return [at]
    if "properties" in schema:
        return [x for k, v in schema["properties"].items() for x in leaves(v, root, f"{at}.{k}" if at else k)]
    if schema.get("items") and ("$ref" in schema["items"] or "properties" in schema["items"]):
        return leaves(schema["items"], root, at)
    return [at]


@test("every setting of the schema has a test here")
def _():
    with open(os.path.join(ROOT, "share/config.schema.json"), encoding="utf-8") as f:
        schema = json.load(f)
    there = set(leaves(schema, schema)) - {"x-"}
    check(len(there) > 50, there)
    same(sorted(there - set(HELD) - set(ELSEWHERE)), [], "settings without a test")
    same(sorted(set(HELD) - there), [], "tests of no setting")
