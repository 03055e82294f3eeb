"""A llama.cpp server with a generated model behind agents of `type: llm`: Chat Completions and Responses, streamed and not, and
connections that are cut, through every protocol."""
import json
import os
import urllib.request

from common import CLIENTS, HERE, Proxy, llm, main, start
from lib.server import folder, server, settings
from lib.tap import check, each, same

PYTHON = os.path.join(HERE, ".venv-models/bin/python")
WORDS, TOKENS = "hello", 24
LIMIT = {"chat": "max_tokens", "responses": "max_output_tokens"}

LLAMA = start([PYTHON, os.path.join(HERE, "llama_server.py"), folder()])
WHOLE = Proxy(LLAMA, is_whole=True)
NO_HEAD = Proxy(LLAMA, cut=lambda n, body: 0 if n % 2 == 0 else None)
BEFORE_TEXT = Proxy(LLAMA, cut=lambda n, body: 40 if n % 2 == 0 else None)
IN_TEXT = Proxy(LLAMA, cut=lambda n, body: len(body) * 2 // 3)


def agents(api):
    more = {"api": api, "model": "random", "parameters": {"temperature": 0, LIMIT[api]: TOKENS}}
    return [llm(f"{api}-streamed", LLAMA, **more), llm(f"{api}-whole", WHOLE.url, **more), llm(f"{api}-no-head", NO_HEAD.url, **more),
            llm(f"{api}-before-text", BEFORE_TEXT.url, **more), llm(f"{api}-in-text", IN_TEXT.url, **more),
            llm(f"{api}-wrong", LLAMA, **{**more, "parameters": {"temperature": "warm"}})]


def serve():
    return server(None, config=settings(agents=agents("chat") + agents("responses")))


def expected(words=WORDS):
    """The text without us: weights, temperature and number of tokens are fixed."""
    body = {"model": "random", "messages": [{"role": "user", "content": words}], "temperature": 0, "max_tokens": TOKENS}
    with urllib.request.urlopen(urllib.request.Request(LLAMA + "/v1/chat/completions", json.dumps(body).encode())) as r:
        return json.load(r)["choices"][0]["message"]["content"]


CASES = [(f"{api}, {how}, through {name}", f"{api}-{how}", name) for api in LIMIT for how in ("streamed", "whole") for name in CLIENTS]


@each("llama.cpp, {}: the text once, usage", CASES)
def _(id, name):
    r = CLIENTS[name](serve(), id, WORDS)
    same((r.error, r.texts), (None, [expected()]), "the answer")
    check(r.usage and r.usage[0] > 0 and r.usage[1] == TOKENS, f"usage: {r.usage}")


@each("llama.cpp, {}: the connection is cut before any text, and the call is repeated", [
    (f"{api}, {how}, through {name}", f"{api}-{how}", name) for api in LIMIT for how in ("no-head", "before-text") for name in CLIENTS])
def _(id, name):
    proxy = NO_HEAD if "no-head" in id else BEFORE_TEXT
    before = proxy.count
    r = CLIENTS[name](serve(), id, WORDS)
    same((r.error, r.texts, proxy.count - before), (None, [expected()], 2), "the answer, and the number of requests")


@each("llama.cpp, {}: the connection is cut in the text: failed with a sentence, no text twice", [
    (f"{api}, through {name}", f"{api}-in-text", name) for api in LIMIT for name in CLIENTS])
def _(id, name):
    r = CLIENTS[name](serve(), id, WORDS)
    check(r.error and " " in r.error, f"the error: {r.error}")
    for text in r.texts:
        check(expected().startswith(text), text)


@each("llama.cpp, {}: an error of the server is the error of the task", [(f"{api}, through {name}", f"{api}-wrong", name) for api in LIMIT for name in CLIENTS])
def _(id, name):
    r = CLIENTS[name](serve(), id, WORDS)
    check(r.error and "type" in r.error, f"the error: {r.error}")
    same(r.texts, [], "text")


main()
