"""`dragoman connect`: finds the protocol of a server, with as few requests as possible, and prints its configuration."""
import http.server
import json
import os
import re
import subprocess

from support import DRAGOMAN, ENV, WAIT, Server, check, check_same, failed, folder, run, succeeded, test, write
from strangers import Redirector, Stranger

CARD = {"name": "Desk (beta)", "description": "d", "version": "1", "capabilities": {"streaming": True}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"], "skills": []}
AT = "/.well-known/agent-card.json"


class Service(Stranger):
    """Answers with what `routes` has for 'METHOD /path': (status, content type, body, further headers). A function gets the request's body."""

    def __init__(self, routes):
        self.routes, self.requests = routes, []
        super().__init__(ServiceHandler)


class ServiceHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        owner.requests.append((f"{self.command} {self.path}", self.headers, body))
        route = owner.routes.get(f"{self.command} {self.path}", (404, "text/html", b"<h1>not found</h1>"))
        if callable(route):
            route = route(body)
        status, kind, out, *more = route
        out = out.encode() if isinstance(out, str) else out
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(out)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(out)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


def as_json(value):
    return 200, "application/json", json.dumps(value)


def settings(out):
    """The lines of the first agent."""
    text = re.split(r"\n\n|^outbound:", out.decode(), flags=re.M)[0]
    return [line for line in text.splitlines() if not line.startswith("#")]


def agent(id, type, **members):
    return ["agents:", f"- id: {id}", f"  type: {type}", "  settings:"] + [f'    {name}: "{value}"' for name, value in members.items()]


def posts(service):
    return [what for what, _, _ in service.requests if what.startswith("POST")]


def connect(service, path="", *args):
    return run("connect", *args, service.url + path)


def check_connects(routes, path, want, said=None, n_posts=0, args=()):
    """want: a function of the service that returns the lines."""
    with Service(routes) as service:
        ended = succeeded(connect(service, path, *args))
        check_same(settings(ended.out), want(service))
        check(not said or said in ended.out.decode(), ended)
        check_same(len(posts(service)), n_posts, f"POSTs: {posts(service)}")
        return ended


@test("connect finds a card of A2A 1.0, 0.3 or both, below the address, at the older path or at the host, without a POST")
def _():
    one = {**CARD, "supportedInterfaces": [{"url": "http://127.0.0.1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    old = {**CARD, "protocolVersion": "0.3.0", "url": "http://127.0.0.1/rpc", "preferredTransport": "JSONRPC"}
    both = {**one, "supportedInterfaces": one["supportedInterfaces"] + [
        {"url": "http://127.0.0.1/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "0.3"}]}
    for card, versions in (one, "A2A 1.0, agent"), (old, "A2A 0.3, agent"), (both, "A2A 1.0 and 0.3, agent"):
        check_connects({"GET " + AT: as_json(card)}, "", lambda s: agent("desk-beta", "a2a", url=s.url), versions)
    check_connects({"GET /a" + AT: as_json(one)}, "/a/", lambda s: agent("desk-beta", "a2a", url=s.url + "/a"))
    check_connects({"GET /.well-known/agent.json": as_json(old)}, "", lambda s: agent("desk-beta", "a2a", url=s.url + "/.well-known/agent.json"))
    check_connects({"GET /my.json": as_json(one)}, "/my.json", lambda s: agent("desk-beta", "a2a", url=s.url + "/my.json"))
    check_connects({"GET " + AT: as_json(one)}, "/else", lambda s: agent("desk-beta", "a2a", url=s.url), "This is the card of the host")


@test("connect names the address of a card that leads to another origin, and the header of an API key")
def _():
    card = {**CARD, "supportedInterfaces": [{"url": "https://other.example/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Desk-Key"}}}}
    with Service({"GET " + AT: as_json(card)}) as service:
        p = subprocess.run([DRAGOMAN, "connect", "--token-env", "DESK_TOKEN", service.url], env={**ENV, "DESK_TOKEN": "sesame"}, capture_output=True, timeout=WAIT)
        check_same(p.returncode, 0, p)
        check_same(settings(p.stdout), agent("desk-beta", "a2a", url=service.url, token_env="DESK_TOKEN", token_header="X-Desk-Key"))
        check(b"https://other.example/rpc" in p.stdout and b"outbound" in p.stdout and b"sesame" not in p.stdout + p.stderr, p)
        check_same(service.requests[0][1]["Authorization"], "Bearer sesame")


@test("connect allows the private address that a card names, and no public one")
def _():
    def card(url):
        return as_json({**CARD, "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
    for url, allow in ("http://127.0.0.1:1/rpc", "127.0.0.1"), ("http://localhost:1", "127.0.0.1"), ("http://[fd00::7]:1/", "fd00::7"), ("http://8.8.8.8/", None), ("http://a.example/", None):
        with Service({"GET " + AT: card(url)}) as service:
            out = succeeded(connect(service)).out.decode()
            check_same(re.findall(r'^outbound:\n  allow: \["(.*)"\]', out, re.M), [allow] if allow else [], url)
            found = json.loads(succeeded(connect(service, "", "--json")).out)["findings"][0]
            check_same(found.get("outbound"), {"allow": [allow]} if allow else None, url)


@test("connect finds AG-UI by its capabilities, by the members that an error misses, or by the first event of a run without messages")
def _():
    def want(s):
        return agent("127-0-0-1", "http", url=s.url + "/run", format="ag-ui")
    check_connects({"GET /run/capabilities": as_json({"identity": {"name": "Board"}, "transport": {"streaming": True}})}, "/run",
                   lambda s: agent("board", "http", url=s.url + "/run", format="ag-ui"), "ag-ui-0")
    pydantic = {"detail": [{"type": "missing", "loc": ["body", "threadId"], "msg": "Field required", "input": {}}]}
    check_connects({"POST /run": (422, "application/json", json.dumps(pydantic))}, "/run", want, n_posts=1)

    def lax(body):
        if b"threadId" not in body:
            return 400, "text/plain", "bad request"
        return 200, "text/event-stream", 'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\ndata: {"type":"RUN_FINISHED"}\n\n'
    ended = check_connects({"POST /run": lax}, "/run", want, n_posts=2)
    check_same(ended.err, "")


@test("connect finds OpenAI's APIs by their models, or by the parameter that an error names")
def _():
    models = as_json({"object": "list", "data": [{"id": "gpt-x", "object": "model"}, {"id": "gpt-y", "object": "model"}]})
    for path in "", "/v1", "/v1/", "/v1/chat/completions", "/v1/models":
        check_connects({"GET /v1/models": models}, path,
                       lambda s: agent("gpt-x", "http", url=s.url + "/v1/chat/completions", format="openai-chat", model="gpt-x"))
    check_connects({"GET /v1/models": models}, "/v1/responses",
                   lambda s: agent("gpt-x", "http", url=s.url + "/v1/responses", format="openai-responses", model="gpt-x"))
    error = 400, "application/json", json.dumps({"error": {"message": "you must provide a model parameter", "type": "invalid_request_error", "param": "model"}})
    check_connects({"POST /v1/chat/completions": error}, "/v1/chat/completions",
                   lambda s: agent("127-0-0-1", "http", url=s.url + "/v1/chat/completions", format="openai-chat"), n_posts=1)


@test("connect finds the AI SDK by the header of its stream")
def _():
    def chat(body):
        if json.loads(body).get("id") is None:
            return 400, "text/plain", "invalid request"
        return 200, "text/event-stream", 'data: {"type":"start"}\n\n', ("x-vercel-ai-ui-message-stream", "v1")
    check_connects({"POST /api/chat": chat}, "/api/chat", lambda s: agent("127-0-0-1", "http", url=s.url + "/api/chat", format="ai-sdk"), n_posts=3)


@test("connect finds A2A over JSON-RPC without a card by reading a task that does not exist; other JSON-RPC servers are not A2A")
def _():
    def rpc(known):
        def answer(body):
            method = json.loads(body).get("method")
            code = -32600 if method is None else -32001 if method == known else -32601
            return as_json({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}})
        return answer
    for method, version, n in ("GetTask", "a2a-1.0", 2), ("tasks/get", "a2a-0.3", 3):
        check_connects({"POST /rpc": rpc(method)}, "/rpc", lambda s: agent("127-0-0-1", "a2a", url=s.url + "/rpc", card="none", protocol=version, binding="jsonrpc"),
                       "without an agent card", n_posts=n)
    with Service({"POST /rpc": rpc("tools/list")}) as service:
        failed(connect(service, "/rpc"), 1, "found no agent at", "JSON-RPC, but not this version of A2A")


@test("connect to any other server lists every request with status and content type")
def _():
    with Service({}) as service:
        failed(connect(service, "/x"), 1, f"found no agent at {service.url}/x", f"agent card: GET {service.url}/x{AT}: status 404, text/html",
               f"POST {service.url}/x: status 404, text/html", "hint: use the address of the agent itself")
        check_same(len(posts(service)), 1, "POSTs to a server that has no such path")
        ended = run("connect", "--json", service.url)
        check_same(ended.status, 1, ended)
        report = json.loads(ended.out)
        check_same((report["findings"], report["requests"][0]["status"], report["requests"][0]["contentType"]), ([], 404, "text/html"))
    with Service({"GET " + AT: (401, "application/json", "{}"), "POST /": (401, "application/json", "{}")}) as service:
        failed(connect(service), 1, "status 401", "hint: it needs credentials: --token-env")
    grpc = {**CARD, "supportedInterfaces": [{"url": "grpc://127.0.0.1:1", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]}
    with Service({"GET " + AT: as_json(grpc)}) as service:
        failed(connect(service), 1, "an agent card without an interface that this program supports")
    with Service({"GET " + AT: as_json({"name": 7})}) as service:
        failed(connect(service), 1, "JSON that is not an agent card")
    with Redirector({AT: "https://other.example/card"}) as service:
        failed(run("connect", service.url), 1, "redirects to another origin, which is not followed: https://other.example:443")


@test("connect: errors of the command line and of the connection")
def _():
    failed(run("connect"), 2, "connect needs URL")
    failed(run("connect", "ftp://x"), 2, "expected a URL with http:// or https://")
    failed(run("connect", "http://"), 2, "this URL has no host")
    failed(run("connect", "--token-env", "NO_SUCH_VARIABLE", "http://127.0.0.1:1"), 2, "the environment has no variable of this name")
    failed(run("connect", "http://127.0.0.1:1"), 1, "cannot reach http://127.0.0.1:1", "is the server running")


@test("connect writes headers as variables, so that no secret is printed; options of the connection become settings")
def _():
    card = {**CARD, "supportedInterfaces": [{"url": "http://127.0.0.1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    with Service({"GET " + AT: as_json(card)}) as service:
        ended = succeeded(connect(service, "", "-H", "X-Api-Key: sesame", "--header", "X-Org: acme", "--proxy", ""))
        check_same(settings(ended.out), agent("desk-beta", "a2a", url=service.url) + ['    headers: {"X-Api-Key": "${X_API_KEY}", "X-Org": "${X_ORG}"}'])
        check("sesame" not in ended.out.decode() + ended.err, ended)
        check_same(service.requests[0][1]["X-Api-Key"], "sesame")
        report = json.loads(succeeded(connect(service, "", "--json", "-H", "X-Api-Key: sesame")).out)
        check_same(report["findings"][0]["agent"], {"id": "desk-beta", "type": "a2a", "settings": {"url": service.url, "headers": {"X-Api-Key": "${X_API_KEY}"}}})


@test("what a stranger calls itself cannot leave its comment")
def _():
    card = {**CARD, "name": "x\nagents: [evil]\x1b[2J", "supportedInterfaces": [{"url": "http://127.0.0.1/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}
    with Service({"GET " + AT: as_json(card)}) as service:
        out = succeeded(connect(service)).out
        check_same(settings(out), agent("x-agents-evil-2j", "a2a", url=service.url))
        check(b"\x1b" not in out, out)


@test("connect to our own server prefers A2A and shows the others; the configuration is accepted by serve")
def _():
    schema = succeeded(run("schema")).out.decode()
    has_type = any('"a2a"' in values and '"exec"' in values for values in re.findall(r'"enum": \[([^\]]*)\]', schema))
    with Server(agent="demo") as own:
        for path in "", "/ag-ui", "/v1", "/v1/responses", "/ai-sdk":
            out = succeeded(run("connect", own.url + path)).out
            check_same(settings(out), agent("demo", "a2a", url=own.url), path)
        check(b"#     format: \"ag-ui\"" in run("connect", own.url + "/ag-ui").out, "the other protocol")
        tasks = run("task", "list", own.url)
        check_same(tasks.out, b"", "tasks that it started")
        if has_type:
            path = write(os.path.join(folder(), "dragoman.yaml"), run("connect", own.url).out)
            succeeded(run("serve", "--check", "-c", path))


@test("connect over HTTPS trusts --ca-file and writes it into the settings")
def _():
    where = folder()
    cert, key = os.path.join(where, "cert.pem"), os.path.join(where, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    config = write(os.path.join(where, "tls.json"), json.dumps({"tls": {"cert": cert, "key": key}, "agents": [{"id": "demo", "type": "demo"}]}))
    with Server("-c", config, agent=None) as own:
        check_same(settings(succeeded(run("connect", "--ca-file", cert, own.url)).out), agent("demo", "a2a", url=own.url, ca_file=cert))
        failed(run("connect", own.url), 1, "cannot trust", "hint: --ca-file FILE")
        failed(run("connect", own.url.replace("https:", "http:")), 1, "found no agent")
