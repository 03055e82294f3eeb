"""`@copilotkit/aimock` behind agents of `type: llm`: Chat Completions and Responses, tools, reasoning, errors, and its chaos flags,
through every protocol."""
import json
import os
import shutil
import urllib.request

from common import CLIENTS, HERE, Proxy, llm, main, start
from lib import fronts
from lib.a2a import RPC1, Client
from lib.server import server, settings
from lib.tap import check, each, same

CLI = os.path.join(HERE, "node_modules/@copilotkit/aimock/dist/cli.js")
PLAIN, TWO = "A plain answer of the server, in several chunks.", ["I call both.", "Both tools have answered."]
ECHO = {"exec": {"name": "echo", "command": ["cat"], "description": "returns its arguments",
                 "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}}
CHAOS = {"drop": ["--chaos-drop", "1"], "malformed": ["--chaos-malformed", "1"], "disconnect": ["--chaos-disconnect", "1"],
         "ratelimit": ["--chaos-ratelimit", "1"], "latency": ["--chaos-latency", "400"]}
APIS = ["chat", "responses"]


def aimock(*flags):
    return start([shutil.which("node"), CLI, "-p", "0", "-f", os.path.join(HERE, "fixtures.json"), "-c", "6", *flags])


MOCK = aimock()
WHOLE = Proxy(MOCK, is_whole=True)
CHAOTIC = {name: aimock(*flags) for name, flags in CHAOS.items()}


def serve():
    rows = []
    for api in APIS:
        rows += [llm(f"{api}-streamed", MOCK, api=api, tools=[ECHO]), llm(f"{api}-whole", WHOLE.url, api=api, tools=[ECHO])]
        rows += [llm(f"{api}-{name}", url, api=api, retries=1) for name, url in CHAOTIC.items()]
        rows += [llm(f"{api}-over", CHAOTIC["drop"], api=api, retries=0, upstreams=[{"base_url": MOCK + "/v1", "api": api, "model": "m"}])]
    return server(None, config=settings(agents=rows))


def journal(url):
    with urllib.request.urlopen(url + "/__aimock/journal") as r:
        return json.load(r)


def every(*ways):
    return [(f"{api}, {way}, through {name}", f"{api}-{way}", name) for api in APIS for way in ways for name in CLIENTS]


def cases(way="streamed"):
    return [(f"{api}, through {name}", f"{api}-{way}", name) for api in APIS for name in CLIENTS]


# ---- answers -----------------------------------------------------------------------------------------------------------------

@each("aimock, {}: the text once, usage", every("streamed", "whole"))
def _(id, name):
    r = CLIENTS[name](serve(), id, "plain")
    same((r.error, r.texts), (None, [PLAIN]), "the answer")
    check(r.usage is not None, "no usage")
    if id.startswith("chat"):  # its Responses API reports zeros
        check(min(r.usage) > 0, f"usage: {r.usage}")


@each("aimock, {}: two calls run, each once, and the model gets both results", every("streamed", "whole"))
def _(id, name):
    before = len(journal(MOCK))
    r = CLIENTS[name](serve(), id, "two tools")
    same((r.error, "".join(r.texts).replace("\n", "")), (None, "".join(TWO)), "the answer")
    requests = journal(MOCK)[before:]
    same(len(requests), 2, "requests")
    results = [json.loads(m["content"]) for m in requests[1]["body"]["messages"] if m["role"] == "tool"]
    same(results, [{"text": "one"}, {"text": "two"}], "the results")


@each("aimock, {}: the calls and the results are in the history", [(f"{a}, {w}", f"{a}-{w}") for a in APIS for w in ("streamed", "whole")])
def _(id):
    t = Client(serve(), RPC1, base=f"/agents/{id}").send("two tools").task
    data = [p["data"] for m in t["history"] for p in m["parts"] if "data" in p]
    same([(c["name"], c["arguments"]) for d in data for c in d.get("tool_calls", [])], [("echo", {"text": "one"}), ("echo", {"text": "two"})], "the calls")
    same(sorted(r["output"]["text"] for d in data for r in d.get("tool_results", [])), ["one", "two"], "the results, as they came")


@each("aimock, {}: reasoning is not text", every("streamed", "whole"))
def _(id, name):
    r = CLIENTS[name](serve(), id, "reason")
    same((r.error, r.texts), (None, ["The answer."]), "the answer")


@each("aimock, {}: reasoning of Chat and Responses clients", [(f"{a}, {w}", f"{a}-{w}") for a in APIS for w in ("streamed", "whole")])
def _(id):
    s, thought = serve(), "Let me think about it."
    body = fronts.post(s, "/v1/chat/completions", fronts.chat_body("reason", model=id)).json
    same(body["choices"][0]["message"]["reasoning_content"], thought, "Chat")
    body = fronts.post(s, "/v1/responses", {"model": id, "input": "reason"}).json
    same([p["text"] for i in body["output"] if i["type"] == "reasoning" for p in i["summary"]], [thought], "Responses")


# ---- errors ------------------------------------------------------------------------------------------------------------------

@each("aimock, {}: an error of the server is the error of the task, and is not repeated", cases())
def _(id, name):
    before = len(journal(MOCK))
    r = CLIENTS[name](serve(), id, "wrong")
    check(r.error and "The server does not like this." in r.error, f"the error: {r.error}")
    same((r.texts, len(journal(MOCK)) - before), ([], 1), "text and requests")


@each("aimock, {}: one error 503, then the answer", cases())
def _(id, name):
    body = json.dumps({"status": 503, "body": {"message": "busy", "type": "server_error"}}).encode()
    urllib.request.urlopen(urllib.request.Request(MOCK + "/__aimock/error", body, {"Content-Type": "application/json"})).close()
    r = CLIENTS[name](serve(), id, "plain")
    same((r.error, r.texts), (None, [PLAIN]), "the answer")


@each("aimock, {}: a stream that ends too early is failed with a sentence, no text twice", [
    (f"{words}, {label}", id, name, words) for words in ("truncate", "vanish") for label, id, name in cases()])
def _(id, name, words):
    r = CLIENTS[name](serve(), id, words)
    check(r.error and " " in r.error, f"the error: {r.error}")
    check(all("This text is cut after some ".startswith(t[:28]) and t.count("This") == 1 for t in r.texts), r.texts)


# ---- chaos -------------------------------------------------------------------------------------------------------------------

@each("aimock with chaos, {}: failed with a sentence, after one repetition", every("drop", "disconnect", "ratelimit"))
def _(id, name):
    url = CHAOTIC[id.split("-")[1]]
    before = len(journal(url))
    r = CLIENTS[name](serve(), id, "plain")
    check(r.error and " " in r.error, f"the error: {r.error}")
    same((r.texts, len(journal(url)) - before), ([], 2), "text and requests")


@each("aimock with chaos, {}: JSON that is not JSON is failed with a sentence", every("malformed"))
def _(id, name):
    r = CLIENTS[name](serve(), id, "plain")
    check(r.error and " " in r.error, f"the error: {r.error}")
    same(r.texts, [], "text")


@each("aimock with chaos, {}: a slow server answers", every("latency"))
def _(id, name):
    r = CLIENTS[name](serve(), id, "plain")
    same((r.error, r.texts), (None, [PLAIN]), "the answer")


@each("aimock with chaos, {}: another server answers for one that drops requests", cases("over"))
def _(id, name):
    r = CLIENTS[name](serve(), id, "plain")
    same((r.error, r.texts), (None, [PLAIN]), "the answer")


main()
