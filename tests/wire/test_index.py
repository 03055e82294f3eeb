"""Which agents there are: the text index at /, errors for unknown agents in the shape of each protocol, unknown paths below /v1."""
import json

from lib.a2a import RPC1, Client
from lib.http import ask
from lib.server import Server, agent, needs_ours, server, settings
from lib.tap import check, each, same, test

JSON = [("Content-Type", "application/json")]
AGENTS = ["first", "second"]


def two(**more):
    needs_ours("several agents in one server")
    return server(None, config=settings(agents=[agent("bench", "first"), agent("hello", "second")], **more))


def lists_agents(text, unknown):
    check(f"'{unknown}'" in text and all(x in text for x in AGENTS), text)


# ---- an unknown agent -------------------------------------------------------------------------------------------------

SHAPES = {  # path below the agent: how an error message is read from the body
    "/": lambda r: r.json["error"]["message"],
    "/a2a": lambda r: r.json["error"]["message"],
    "/message:send": lambda r: r.json["error"]["message"],
    "/v1/message:send": lambda r: r.json["message"],
    "/v1/chat/completions": lambda r: {"type": r.json["error"]["type"], "message": r.json["error"]["message"]}["message"],
    "/v1/responses": lambda r: {"type": r.json["error"]["type"], "message": r.json["error"]["message"]}["message"],
    "/v1/anything": lambda r: {"type": r.json["error"]["type"], "message": r.json["error"]["message"]}["message"],
    "/ag-ui": lambda r: r.json["error"]["message"],
    "/ai-sdk": lambda r: r.body.decode(),
    "/simple/ag-ui": lambda r: r.json["error"]["message"],
}


@each("an unknown agent is 404 with the agents that exist, in the error shape of the protocol: POST /agents/secnod{}", SHAPES)
def _(path):
    r = ask(two().address, "POST", "/agents/secnod" + path, b"{}", JSON)
    same(r.status, 404, f"status ({r})")
    lists_agents(SHAPES[path](r), "secnod")


@each("an unknown agent is 404 with the agents that exist: GET /agents/secnod{}", ["/.well-known/agent-card.json", "/v1/models", "/tasks", "/ag-ui/capabilities", "/", ""])
def _(path):
    r = ask(two().address, "GET", "/agents/secnod" + path)
    same(r.status, 404, f"status ({r})")
    lists_agents(r.body.decode(), "secnod")


@test("the card of an unknown agent is 404 without a token: cards are public")
def _():
    r = ask(two(tokens=True).address, "GET", "/agents/secnod/.well-known/agent-card.json")
    same(r.status, 404, f"status ({r})")
    lists_agents(r.json["error"]["message"], "secnod")


@test("other requests to an unknown agent need a token before they get an answer")
def _():
    r = ask(two(tokens=True).address, "POST", "/agents/secnod/", b"{}", JSON)
    same(r.status, 401, f"status ({r})")


@each("an unknown model is 404 with the models that exist: {}", ["/v1/chat/completions", "/v1/responses"])
def _(path):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    body.pop("input" if "chat" in path else "messages")
    r = ask(two().address, "POST", path, json.dumps(body).encode(), JSON)
    same((r.status, r.json["error"]["code"]), (404, "model_not_found"), r)
    lists_agents(r.json["error"]["message"], "gpt-4o")


@test("the sentence about an unknown agent stays short, whatever the id")
def _():
    s = server(None, config=settings(agents=[agent("hello", f"agent-with-a-rather-long-name-{i:03}") for i in range(100)]))
    r = ask(s.address, "POST", "/agents/" + "%C3%A4" * 1000 + "/", b"{}", JSON)
    same(r.status, 404, r)
    check(len(r.json["error"]["message"]) < 400 and "agent-with-a-rather-long-name-000" in r.json["error"]["message"], r)


# ---- the index ---------------------------------------------------------------------------------------------------------

@each("curl and probes get a text index: {}", [(f"{m} {p}", m, p) for m in ("GET", "HEAD") for p in ("/", "/agents", "/agents/", "/agents/second", "/agents/second/")])
def _(method, path):
    s = two()
    r = ask(s.address, method, path, None, [("Accept", "*/*")])
    same((r.status, r.get("content-type")), (200, "text/plain; charset=utf-8"), f"answer ({r})")
    if method == "HEAD":
        same(r.body, b"", "body")
        return
    text = r.body.decode()
    base = s.url + ("/agents/second" if "second" in path else "")
    check(text.startswith("Dragoman "), text)
    for url in ("/v1", "/ag-ui", "/ai-sdk", "/.well-known/agent-card.json"):
        check(base + url in text, f"{base + url} in {text}")
        check(ask(s.address, "GET", (base + url)[len(s.url):]).status != 404 or url == "/v1", url)
    for id in AGENTS:
        check((f"/agents/{id}/" in text) == ("second" not in path or id == "second"), text)


@each("browsers still get the page: {}", ["/", "/agents/second/"])
def _(path):
    r = ask(two().address, "GET", path, None, [("Accept", "text/html,*/*;q=0.8")])
    same((r.status, r.type), (200, "text/html"), r)


@test("the index needs no token and names none")
def _():
    r = ask(two(tokens=True).address, "GET", "/")
    check(r.status == 200 and "secret" not in r.body.decode(), r)


@test("POST / is still JSON-RPC")
def _():
    check(Client(two(), RPC1).send("echo one").message, "an answer")


# ---- unknown paths below /v1 --------------------------------------------------------------------------------------------

@each("an unknown path below /v1 is OpenAI's error: {}", [(f"{m} {p}", m, p) for m, p in
      [("POST", "/v1/embeddings"), ("GET", "/v1/nonsense"), ("POST", "/v1/completions"), ("POST", "/agents/second/v1/embeddings"), ("GET", "/v1"), ("GET", "/v1/"), ("DELETE", "/v1/assistants/x")]])
def _(method, path):
    r = ask(two().address, method, path, b"{}" if method == "POST" else None, JSON if method == "POST" else [])
    same((r.status, r.type), (404, "application/json"), f"answer ({r})")
    e = r.json["error"]
    check(e["type"] == "invalid_request_error" and e["code"] == "unknown_url" and "/chat/completions" in e["message"], e)
    check(r.get("x-request-id"), "a name for the request")


@each("an unknown path of A2A 0.3 below /v1 keeps A2A's error: {}", ["/v1/message:nonsense", "/v1/tasks/a/b/c"])
def _(path):
    r = ask(two().address, "GET", path)
    check(r.status in (404, 405) and "message" in r.json, r)
