"""Lists, references and histories that are too long: a clear refusal, little memory, and a server that goes on."""
import concurrent.futures
import copy
import os
import re

from lib import fronts
from lib.a2a import new_id
from lib.http import Conn, ask
from lib.server import Server, agent, folder, is_sanitized, server, settings
from lib.tap import check, each, same, soon, test

MiB = 1 << 20
# Of a release build. A request of 1 MiB needs some 10 MiB when it is parsed; what is beyond that is work per entry.
LIST_BYTES = 256 * MiB
BOMB_BYTES = 320 * MiB


def demo():
    return settings(agents=[agent("demo", settings={"pace": 0}, reply="task")])


def shared():
    return server(None, config=demo())


def peak(s):
    with open(f"/proc/{s.process.pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]) * 1024


def has_little(s, most, what):
    """The most memory that it ever had."""
    if not is_sanitized():
        check(peak(s) < most, lambda: f"{what}: {peak(s) / MiB:.0f} MiB, wanted less than {most / MiB:.0f}")


def is_well(s):
    check("still here" in fronts.chat(s, "echo still here").text, "no answer afterwards")


# ---- every list of every request ------------------------------------------------------------------------------

USER = {"role": "user", "content": "hi"}
AGUI_USER = {"id": "u", "role": "user", "content": "hi"}
AISDK_USER = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {}}}
AGUI_TOOL = {"name": "f", "description": "", "parameters": {}}
FUNCTION = {"type": "function", "name": "f", "parameters": {}}
TEXT = {"type": "text", "text": "x"}
INPUT_TEXT = {"type": "input_text", "text": "x"}
SUMMARY = {"type": "summary_text", "text": "x"}
ITEM = {"type": "message", "role": "user", "content": "x"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
A2A_PART = {"text": "x"}


def a2a(**message):
    return {"message": {"messageId": new_id(), "role": "ROLE_USER", "parts": [A2A_PART], **message}}


def rpc(params):
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}


def old(**message):
    return {"message": {"messageId": new_id(), "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "x"}], **message}}


def agui(**more):
    return fronts.run_input("hi", **more)


def aisdk(**more):
    return {"id": new_id("chat"), "trigger": "submit-message", "messages": [AISDK_USER], **more}


def chat(**more):
    return {"model": "demo", "messages": [USER], **more}


def responses(**more):
    return {"model": "demo", "input": [ITEM], **more}


V1 = [("A2A-Version", "1.0")]
MESSAGES, PARTS, TOOLS, WORDS = ("request_messages", 10000), ("request_parts", 1000), ("request_tools", 1000), ("request_words", 128)
OUTPUT = {"type": "function_call_output", "call_id": "c"}
REASONING = {"type": "reasoning", "summary": [SUMMARY]}
# name, path, body, where the long list is, its entry (None: members of an object), the limit, headers
ROWS = []


def rows(name, path, body, *lists, headers=()):
    for where, entry, limit in lists:
        ROWS.append((f"{name}: {'/'.join(str(w) for w in where)}", path, body, where, entry, limit, headers))


for path in ("/ag-ui", "/ag-ui/connect", "/simple/ag-ui"):
    rows(path, path, agui(),
         (["messages"], AGUI_USER, MESSAGES), (["messages", 0, "content"], TEXT, PARTS), (["tools"], AGUI_TOOL, TOOLS),
         (["context"], {"description": "d", "value": "v"}, TOOLS),
         (["resume"], {"interruptId": "x", "status": "resolved"}, ("resume_entries", 256)))
    rows(path, path, agui(messages=[{"id": "a", "role": "assistant", "content": ""}, AGUI_USER]),
         (["messages", 0, "toolCalls"], CALL, PARTS))
rows("/ai-sdk", "/ai-sdk", aisdk(),
     (["messages"], AISDK_USER, MESSAGES), (["messages", 0, "parts"], TEXT, PARTS), (["tools"], {"name": "f"}, TOOLS))
rows("chat", "/v1/chat/completions", chat(),
     (["messages"], USER, MESSAGES), (["messages", 0, "content"], TEXT, PARTS), (["tools"], TOOL, TOOLS), (["functions"], TOOL["function"], TOOLS),
     (["stop"], "x", WORDS), (["modalities"], "text", WORDS), (["metadata"], None, WORDS), (["logit_bias"], None, ("unknown_members", 1000)))
rows("chat", "/v1/chat/completions", chat(messages=[{"role": "assistant", "content": None}, USER]),
     (["messages", 0, "tool_calls"], CALL, PARTS))
rows("chat", "/v1/chat/completions", chat(tool_choice={"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}),
     (["tool_choice", "allowed_tools", "tools"], {"type": "function"}, TOOLS))
rows("chat", "/v1/chat/completions", chat(prediction={"type": "content"}), (["prediction", "content"], TEXT, PARTS))
for path in ("/v1/responses", "/simple/responses"):
    rows(path, path, responses(),
         (["input"], ITEM, MESSAGES), (["input", 0, "content"], INPUT_TEXT, PARTS), (["tools"], FUNCTION, TOOLS), (["metadata"], None, WORDS),
         (["include"], "x", WORDS))
    rows(path, path, responses(input=[OUTPUT, ITEM]), (["input", 0, "output"], INPUT_TEXT, PARTS))
    rows(path, path, responses(input=[REASONING, ITEM]), (["input", 0, "summary"], SUMMARY, PARTS))
    rows(path, path, responses(input=[{**ITEM, "content": [INPUT_TEXT]}]),
         (["input", 0, "content", 0, "annotations"], {}, PARTS), (["input", 0, "content", 0, "logprobs"], {}, PARTS))
    rows(path, path, responses(tool_choice={"type": "allowed_tools", "mode": "auto"}), (["tool_choice", "tools"], {}, TOOLS))
    rows(path, path, responses(prompt={"id": "p"}), (["prompt", "variables"], None, WORDS))
rows("conversations", "/v1/conversations", {}, (["items"], ITEM, MESSAGES), (["metadata"], None, WORDS))
rows("conversations", "/v1/conversations", {"items": [ITEM]}, (["items", 0, "content"], INPUT_TEXT, PARTS))
rows("conversation items", "/v1/conversations/none/items", {}, (["items"], ITEM, MESSAGES))
for path, wrap, lead in (("/message:send", lambda p: p, []), ("/", rpc, ["params"])):
    rows("A2A " + path, path, wrap(a2a()),
         (lead + ["message", "parts"], A2A_PART, PARTS), (lead + ["message", "extensions"], "urn:x", WORDS),
         (lead + ["message", "referenceTaskIds"], "x", WORDS), headers=V1)
    rows("A2A " + path, path, wrap({**a2a(), "configuration": {}}), (lead + ["configuration", "acceptedOutputModes"], "text/plain", WORDS), headers=V1)
rows("A2A 0.3", "/", {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": old()},
     (["params", "message", "parts"], {"kind": "text", "text": "x"}, PARTS), (["params", "message", "referenceTaskIds"], "x", WORDS))


def with_list(body, where, value):
    body = copy.deepcopy(body)
    at = body
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    return body


@each("a list with one entry too many is refused by name: {}", ROWS)
def _(path, body, where, entry, limit, headers):
    s = shared()
    name, most = limit
    value = {f"k{i}": "1" for i in range(most + 1)} if entry is None else [entry] * (most + 1)
    r = ask(s.address, "POST", path, with_list(body, where, value), fronts.JSON + list(headers))
    text = r.body.decode()
    is_error = r.status in (400, 413) or (r.status == 200 and "error" in r.json)  # JSON-RPC
    check(is_error, r)
    check(name in text and str(most) in text, r)
    steps = [w for w in where if isinstance(w, str) and w != "params"]
    check(all(w in text for w in steps), lambda: f"{steps} is not named: {r}")


@each("lists of a hundred thousand entries need little memory: {}",
      [(name, *rest) for name, *rest in ROWS if len(rest[2]) == 1], timeout=240)
def _(path, body, where, entry, limit, headers):
    s = shared()
    value = {f"k{i}": "1" for i in range(100000)} if entry is None else [{} if isinstance(entry, dict) else "x"] * 100000
    r = ask(s.address, "POST", path, with_list(body, where, value), fronts.JSON + list(headers))
    check(r.status in (400, 413), r)
    has_little(s, LIST_BYTES, where[-1])


@test("AG-UI resume with 20,000 entries is refused, and the server goes on")
def _():
    with Server(None, config=demo()) as s:
        for _ in range(2):
            r = fronts.post(s, "/ag-ui", {"threadId": "t", "runId": "r", "messages": [AGUI_USER],
                                          "resume": [{"interruptId": "x", "status": "resolved"}] * 20000})
            same(r.status, 413, "the status")
            check("resume" in r.body.decode() and "resume_entries of 256" in r.body.decode(), r)
        is_well(s)
        has_little(s, LIST_BYTES, "resume")
        s.stop_well()


@test("AG-UI resume with as many entries as allowed: those that no interrupt waits for are listed as ignored")
def _():
    s = shared()
    with fronts.stream(s, "/ag-ui", agui(resume=[{"interruptId": f"x{i}", "status": "resolved"} for i in range(16)])) as told:
        same(told.response.get("X-Dragoman-Ignored"), ", ".join(f"resume[{i}]" for i in range(16)), "the header")
        check(told.rest(), "no events")


# ---- references to items ------------------------------------------------------------------------------------------

def response(s, **body):
    r = fronts.post(s, "/v1/responses", {"model": "demo", **body})
    same(r.status, 200, r)
    return r.json["id"]


def input_item(s, size):
    """The id of an item with a text of this size."""
    id = response(s, input="help " + "x" * size)
    items = ask(s.address, "GET", f"/v1/responses/{id}/input_items").json["data"]
    return items[0]["id"]


def reference(id):
    return {"type": "item_reference", "id": id}


BOMBS = [("one id, 400 times, /v1/responses", "/v1/responses", 1, 400, "record_bytes"),
         ("two ids in turns, 200 in all, /v1/responses", "/v1/responses", 2, 200, "record_bytes"),
         ("one id, 1000 times, /v1/responses", "/v1/responses", 1, 1000, "record_bytes"),
         ("one id, 3000 times, /v1/responses", "/v1/responses", 1, 3000, "item_references"),
         ("one id, 400 times, /v1/conversations", "/v1/conversations", 1, 400, "note_bytes"),
         ("one id, 400 times, conversation items", "/v1/conversations/{}/items", 1, 400, "note_bytes")]


@each("item references to a large item are refused before they are copied: {}", BOMBS, timeout=240)
def _(path, n_ids, n, limit):
    with Server(None, config=demo()) as s:
        ids = [input_item(s, 900 << 10) for _ in range(n_ids)]
        conversation = fronts.post(s, "/v1/conversations", {}).json["id"]
        refs = [reference(ids[i % n_ids]) for i in range(n)]
        body = {"items": refs} if "conversations" in path else {"model": "demo", "input": refs + [ITEM]}
        r = fronts.post(s, path.format(conversation), body)
        same(r.status, 413, r)
        check(limit in r.body.decode(), r)
        is_well(s)
        has_little(s, BOMB_BYTES, "references")
        s.stop_well()


@test("item references to many responses are resolved, in any order and more than once")
def _():
    s = shared()
    ids = [input_item(s, 10 + i) for i in range(3)]
    order = [0, 1, 0, 2, 1, 0]
    id = response(s, input=[reference(ids[i]) for i in order] + [{"role": "user", "content": "help"}])
    items = ask(s.address, "GET", f"/v1/responses/{id}/input_items?order=asc").json["data"]
    same([len(i["content"][0]["text"]) - 15 for i in items[:-1]], order, "the items")


@test("a chain of responses that became too large is refused, with little memory", timeout=240)
def _():
    with Server(None, config=demo()) as s:
        first = response(s, input="help " + "x" * (900 << 10))
        last = first
        for _ in range(11):
            last = response(s, input="help " + "x" * (900 << 10), previous_response_id=last)
        response(s, input="help", previous_response_id=last)  # it goes on there
        r = fronts.post(s, "/v1/responses", {"model": "demo", "input": "help", "previous_response_id": last})  # and cannot twice
        same(r.status, 413, r)
        check("record_bytes" in r.body.decode() and "previous_response_id" in r.body.decode(), r)
        is_well(s)
        has_little(s, BOMB_BYTES, "the chain")
        s.stop_well()


# ---- histories ------------------------------------------------------------------------------------------------------

N_TASKS, TASK_BYTES = 10, 3 << 20  # far more than history_bytes
NEWEST = f"task {N_TASKS - 1} "


def large_task(s, context, i, size):
    """A task whose message is large and whose answer is not."""
    parts = [{"text": "help"}, {"data": {"name": f"task {i} ", "pad": "x" * size}}]
    r = ask(s.address, "POST", "/message:send", a2a(contextId=context, parts=parts), fronts.JSON + V1)
    same(r.status, 200, r)


def long_context(s):
    for i in range(N_TASKS):
        large_task(s, "long", i, TASK_BYTES)


def reset_peak(s):
    with open(f"/proc/{s.process.pid}/clear_refs", "w") as f:
        f.write("5")


def get(path):
    return lambda s: ask(s.address, "GET", path)


def connect(s):
    return fronts.post(s, "/ag-ui/connect", fronts.run_input(thread="long"))


def chat_in_context(s):
    said = [{"role": "user", "content": "help task 0"}, {"role": "assistant", "content": "x"}, {"role": "user", "content": "help"}]
    return fronts.post(s, "/v1/chat/completions", chat(messages=said), [("X-A2A-Context-Id", "long")])


HISTORIES = {"/ag-ui/threads/long/messages": get("/ag-ui/threads/long/messages"), "/ai-sdk/long/messages": get("/ai-sdk/long/messages"),
             "/v1/conversations/long/items": get("/v1/conversations/long/items?limit=100"), "/ag-ui/connect": connect,
             "chat with X-A2A-Context-Id": chat_in_context}


@test("the history of a long context: the newest messages, a limited answer, little memory", timeout=600)
def _():
    with Server(None, config=demo(), store="sqlite:" + os.path.join(folder(), "tasks.db")) as s:
        long_context(s)
        for name, ask_for in HISTORIES.items():
            reset_peak(s)
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(lambda _: ask_for(s), range(4)))
            has_little(s, 512 * MiB, name)
            for r in answers:
                same(r.status, 200, name)
                check(len(r.body) < 20 * MiB, lambda: f"{name}: {len(r.body)} bytes")
                check(name.startswith("chat") or NEWEST in r.body.decode(), f"{name}: the newest message is missing")
        check(answers[0].get("X-A2A-Context-Id") == "long", "the chat went on in another context")
        read = HISTORIES["/ag-ui/threads/long/messages"]
        check(read(s).json.get("truncated") is True, "not marked as truncated")
        refuses_when_unread(s, read)
        s.stop_well()


def refuses_when_unread(s, read):
    """Clients that do not read their answers: the next one is refused, until they are gone."""
    unread, r = [], read(s)
    while r.status == 200:
        check(len(unread) < 12, "nothing is refused")
        unread.append(Conn(s.address))
        unread[-1].request("GET", "/ag-ui/threads/long/messages")
        r = read(s)
    same(r.status, 429, r)
    check("unsent_bytes" in r.body.decode(), r)
    is_well(s)
    for c in unread:
        c.close()
    soon(lambda: read(s).status == 200, "still refused")


@test("pages of a conversation's items end before they are too large, and lead to all of them", timeout=240)
def _():
    with Server(None, config=demo()) as s:
        for i in range(8):
            large_task(s, "pages", i, MiB)
        seen, after, sizes = [], "", []
        while True:
            r = ask(s.address, "GET", f"/v1/conversations/pages/items?limit=100{after}")
            same(r.status, 200, r)
            sizes.append(len(r.body))
            seen += [i for i in r.json["data"] if i["role"] == "user"]
            if not r.json["has_more"]:
                break
            after = "&after=" + r.json["last_id"]
        check(len(sizes) > 1 and max(sizes) < 6 * MiB, sizes)
        texts = ["".join(p["text"] for p in i["content"]) for i in reversed(seen)]
        same([re.search(r"task (\d)", t)[1] for t in texts], [str(i) for i in range(8)], "the items")
