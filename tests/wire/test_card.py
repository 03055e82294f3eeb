"""Discovery (5.11), the card in its shapes (1.9, 1.10), the extended card, the catalog."""
import re

from lib.a2a import ALL, RPC1, Client
from lib.http import ask
from lib.server import agent, needs_ours, server, settings
from lib.tap import check, each, same, test

PATH = "/.well-known/agent-card.json"
ONE_HEADER = [("A2A-Version", "1.0")]


def get(headers=(), method="GET", path=PATH, **options):
    return ask(server("tck", **options).address, method, path, None, list(headers))


def check_1(card, s):
    """A card of 1.0 with no other member."""
    known = {"name": str, "description": str, "version": str, "supportedInterfaces": list, "provider": dict, "documentationUrl": str, "iconUrl": str,
             "capabilities": dict, "securitySchemes": dict, "securityRequirements": list, "defaultInputModes": list, "defaultOutputModes": list, "skills": list, "signatures": list}
    for k, v in card.items():
        check(k in known, f"{k} is no member of a 1.0 card")
        check(isinstance(v, known[k]), f"{k}: {v!r}")
    for k in ("name", "description", "version", "supportedInterfaces", "capabilities", "defaultInputModes", "defaultOutputModes", "skills"):
        check(k in card and (card[k] or k in ("capabilities", "skills")), f"{k} is missing")
    check(set(card["capabilities"]) <= {"streaming", "pushNotifications", "extensions", "extendedAgentCard"}, card["capabilities"])
    for i in card["supportedInterfaces"]:
        check(set(i) <= {"url", "protocolBinding", "tenant", "protocolVersion"} and i["url"].startswith(s.url), i)
        check(i["protocolBinding"] in ("JSONRPC", "HTTP+JSON", "GRPC") and re.fullmatch(r"\d+\.\d+", i["protocolVersion"]), i)
    for skill in card["skills"]:
        check(all(skill.get(k) for k in ("id", "name", "description", "tags")), skill)


@test("the card under A2A-Version: 1.0 is a pure card of 1.0")
def _():
    r = get(ONE_HEADER)
    same((r.status, r.type), (200, "application/json"), "answer")
    check_1(r.json, server("tck"))


@test("the card lists JSON-RPC and HTTP+JSON, 1.0 before 0.3, and every listed interface answers")
def _():
    s = server("tck")
    seen = [(i["protocolVersion"], i["protocolBinding"]) for i in get(ONE_HEADER).json["supportedInterfaces"]]
    check({("1.0", "JSONRPC"), ("1.0", "HTTP+JSON")} <= set(seen), seen)
    same([v for v, _ in seen], sorted((v for v, _ in seen), reverse=True), "versions in order")
    for i in get(ONE_HEADER).json["supportedInterfaces"]:
        base = i["url"].removeprefix(s.url).rstrip("/")
        wire = next(w for w in ALL if w.version == i["protocolVersion"] and w.is_rpc == (i["protocolBinding"] == "JSONRPC"))
        if wire.dialect == "0.3-rest":
            base = base.removesuffix("/v1")
        Client(s, wire, base=base).get("nobody").expect("TaskNotFound")


@each("the card for 0.3 is hybrid: {}", [("no version header", []), ("A2A-Version: 0.3", [("A2A-Version", "0.3")]), ("A2A-Version: 0.3.0", [("A2A-Version", "0.3.0")])])
def _(headers):
    card = get(headers).json
    for k in ("name", "description", "url", "version", "capabilities", "skills", "defaultInputModes", "defaultOutputModes", "preferredTransport", "protocolVersion"):
        check(card.get(k) not in (None, "", []), f"{k} is missing: {card}")
    check(card["protocolVersion"].startswith("0.3") and card["preferredTransport"] == "JSONRPC", card)
    check(card.get("supportedInterfaces"), "supportedInterfaces")
    check(any(i["transport"] == "HTTP+JSON" for i in card.get("additionalInterfaces", [])), card)


@test("the card for an unknown version is the pure one of 1.0")
def _():
    check_1(get([("A2A-Version", "99.0")]).json, server("tck"))


@test("card_headerless: pure-1.0 forces the pure card for those who send no version (what the kit needs)")
def _():
    needs_ours("a switch")
    s = server("tck", config=settings(card="pure-1.0"))
    check_1(ask(s.address, "GET", PATH).json, s)


@test("the tck profile serves the pure card and errors of 1.0.0")
def _():
    needs_ours("a profile")
    s = server(None, profile="tck")
    check_1(ask(s.address, "GET", PATH).json, s)
    same(Client(s, RPC1).raw("GET", "/tasks/nobody").status, 404, "status")


# ---- caching --------------------------------------------------------------------------------------------------------------------

@test("caching: Cache-Control with max-age, ETag, Last-Modified, Vary: A2A-Version")
def _():
    r = get(ONE_HEADER)
    check(re.search(r"max-age=\d+", r.get("cache-control") or ""), r)
    check(re.fullmatch(r'(W/)?"[^"]+"', r.get("etag") or ""), r)
    check(re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", r.get("last-modified") or ""), r)
    check("a2a-version" in [v.strip().lower() for v in (r.get("vary") or "").split(",")], r)


@each("caching: {} gives 304 without a body", [("If-None-Match with the ETag", lambda e: e), ("If-None-Match with the weak ETag", lambda e: "W/" + e.removeprefix("W/")), ("If-None-Match *", lambda e: "*"), ("If-None-Match with a list", lambda e: f'"x", {e}, "y"')])
def _(value):
    etag = get(ONE_HEADER).get("etag")
    r = get([*ONE_HEADER, ("If-None-Match", value(etag))])
    same((r.status, r.body, r.get("etag")), (304, b"", etag), "answer")
    check(r.get("cache-control") and r.get("vary"), f"a 304 repeats the caching headers: {r}")


@test("caching: another ETag gives the card")
def _():
    same(get([*ONE_HEADER, ("If-None-Match", '"other"')]).status, 200, "status")


@test("caching: If-Modified-Since with Last-Modified gives 304, with an older date the card")
def _():
    since = get(ONE_HEADER).get("last-modified")
    same(get([*ONE_HEADER, ("If-Modified-Since", since)]).status, 304, "status")
    same(get([*ONE_HEADER, ("If-Modified-Since", "Thu, 01 Jan 1998 00:00:00 GMT")]).status, 200, "status")


@test("caching: the two shapes have two ETags, each stable")
def _():
    one, old = get(ONE_HEADER).get("etag"), get().get("etag")
    check(one != old, (one, old))
    same((get(ONE_HEADER).get("etag"), get().get("etag")), (one, old), "ETags again")
    same(get([*ONE_HEADER, ("If-None-Match", old)]).status, 200, "the other shape's ETag")


@each("HEAD gives the same head without a body: {}", [("1.0", ONE_HEADER), ("0.3", [])])
def _(headers):
    g, h = get(headers), get(headers, "HEAD")
    same((h.status, h.body), (200, b""), "answer")
    for name in ("content-length", "content-type", "etag", "cache-control", "vary", "last-modified"):
        same(h.get(name), g.get(name), name)


@each("the card's path takes no {}", ["POST", "PUT", "DELETE"])
def _(method):
    r = ask(server("tck").address, method, PATH, b"{}" if method != "DELETE" else None, [("Content-Type", "application/json")])
    check(r.status in (405, 404), r)


@test("the card needs no credentials")
def _():
    s = server("tck", config=settings(tokens=True))
    same(ask(s.address, "GET", PATH, None, ONE_HEADER).status, 200, "status")


@test("the card declares the schemes that tokens and keys make")
def _():
    needs_ours("made from the configuration")
    s = server("tck", config=settings(tokens=True))
    card = ask(s.address, "GET", PATH, None, ONE_HEADER).json
    schemes = card["securitySchemes"]
    check(any("httpAuthSecurityScheme" in v and v["httpAuthSecurityScheme"]["scheme"].lower() == "bearer" for v in schemes.values()), schemes)
    check(any("apiKeySecurityScheme" in v for v in schemes.values()), schemes)
    named = {n for r in card["securityRequirements"] for n in r["schemes"]}
    same(named, set(schemes), "required schemes")


@test("the card says what works: streaming yes, push no, no extended card")
def _():
    c = get(ONE_HEADER).json["capabilities"]
    same((c.get("streaming"), bool(c.get("pushNotifications")), bool(c.get("extendedAgentCard"))), (True, False, False), "capabilities")


@test("streaming off is shown in the card")
def _():
    s = server("tck", config=settings(streaming=False))
    same(bool(ask(s.address, "GET", PATH, None, ONE_HEADER).json["capabilities"].get("streaming")), False, "streaming")


@test("extensions are listed in the card")
def _():
    e = [{"uri": "urn:example:a", "description": "a"}]
    s = server("tck", config=settings(extensions=e))
    same([x["uri"] for x in ask(s.address, "GET", PATH, None, ONE_HEADER).json["capabilities"]["extensions"]], ["urn:example:a"], "extensions")


# ---- extended card --------------------------------------------------------------------------------------------------------------

@each("the extended card: 401 without a token, the card with one, not for caches: {}", ALL)
def _(wire):
    needs_ours("the stand-in has none")
    s = server(None, config=settings(tokens=True, agents=[agent("tck", extended_card={"description": "for those we know"})]))
    r = Client(s, wire).call("card").response
    same(r.status, 401, "status without")
    check(r.get("www-authenticate"), r)
    a = Client(s, wire, token="alice-secret").call("card")
    check(a.ok, a)
    same(a.result["description"], "for those we know", "description")
    check(any(w in (a.response.get("cache-control") or "") for w in ("private", "no-store")) or wire.is_rpc, a.response)


# ---- agents and catalog -----------------------------------------------------------------------------------------------------------

@test("each agent has its card, the catalog lists all")
def _():
    needs_ours("several agents in one server")
    s = server(None, config=settings(agents=[agent("bench", "first", card={"name": "First"}), agent("hello", "second", card={"name": "Second"})]))
    names = [ask(s.address, "GET", p + PATH, None, ONE_HEADER).json["name"] for p in ("", "/agents/first", "/agents/second")]
    same(names, ["First", "First", "Second"], "names")
    urls = ask(s.address, "GET", "/agents/second" + PATH, None, ONE_HEADER).json["supportedInterfaces"]
    check(all("/agents/second" in i["url"] for i in urls), urls)
    r = ask(s.address, "GET", "/.well-known/ai-catalog.json")
    same((r.status, "json" in r.type), (200, True), "catalog")
    check(b"/agents/first" in r.body and b"/agents/second" in r.body, r)


@each("{} answers", ["/healthz", "/readyz", "/metrics"])
def _(path):
    needs_ours("Dragoman's operations")
    same(ask(server("tck").address, "GET", path).status, 200, "status")


@test("GET / in a browser gives a page")
def _():
    needs_ours("Dragoman's page")
    r = ask(server("tck").address, "GET", "/", None, [("Accept", "text/html,application/xhtml+xml")])
    same((r.status, r.type), (200, "text/html"), "answer")
