"""For tests that kill servers: tools that count their runs, a library that kills at a commit, clients that come back."""
import json
import os
import subprocess
import sys

from . import fronts
from .a2a import RPC1, Client, new_id
from .http import Closed, Conn, Stream, ask
from .server import folder
from .tap import Failure, Skip, check, same

HERE = os.path.dirname(os.path.abspath(__file__))


# ---- a kill at a commit of the store -----------------------------------------------------------------------------------

_library = []


def at_commit(n, count_in):
    """The environment of a server that is killed after the commit n of its store (0: never)."""
    if not _library:
        path = os.path.join(folder(), "kill_at_commit.so")
        build = subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", path, os.path.join(HERE, "kill_at_commit.c"), "-ldl"],
                               capture_output=True, text=True, check=False)
        if build.returncode:
            raise Skip("the library cannot be built: " + build.stderr[:200])
        _library.append(path)
    return {"LD_PRELOAD": _library[0], "KILL_AT_COMMIT": str(n), "COMMITS_FILE": count_in,
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "exitcode=77") + ":verify_asan_link_order=0"}


def commits(count_in):
    with open(count_in, encoding="utf-8") as f:
        return int(f.read() or 0)


# ---- tools that count ------------------------------------------------------------------------------------------------------

# appends a line with its name, its tag, the key of its call, and the fence of the server that runs it
COUNTS = """import json, os, sys, time
a = json.load(sys.stdin)
f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(f, f"{sys.argv[2]} {a['tag']} {os.environ['DRAGOMAN_CALL_ID']} {os.environ.get('DRAGOMAN_FENCE', '-')}\\n".encode())
time.sleep(float(sys.argv[3]))
print("done", a["tag"])
"""
SCHEMA = {"type": "object", "properties": {"tag": {"type": "string"}}, "required": ["tag"]}
# an MCP server of one tool that counts
MCP = """import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "count", "description": "counts", "inputSchema": %s}]}
    elif m["method"] == "tools/call":
        tag = m["params"]["arguments"]["tag"]
        f = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(f, f"mcp {tag} - -\\n".encode())
        os.close(f)
        r = {"content": [{"type": "text", "text": "done " + tag}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
""" % json.dumps(SCHEMA)


def exec_tool(name, log, seconds=0.0, **more):
    return {"exec": {"name": name, "description": "a step", "parameters": SCHEMA,
                     "command": [sys.executable, "-S", "-c", COUNTS, log, name, str(seconds)], **more}}


def mcp_server(log):
    return {"command": [sys.executable, "-S", "-c", MCP, log]}


class Runs:
    """The lines that the tools have written."""

    def __init__(self, log):
        self.lines = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as f:
                self.lines = [line.split() for line in f]

    def of(self, tool, tag):
        """The keys of the runs."""
        return [k for t, g, k, _ in self.lines if (t, g) == (tool, tag)]


# ---- clients that come back -------------------------------------------------------------------------------------------------

class Reader:
    """Streams one message to the agent until the server is gone. text(): of everything that it reads before and behind."""

    def __init__(self, server, agent, prompt):
        self.server, self.agent, self.prompt, self.frames, self.more, self.fault = server, agent, prompt, [], [], None
        self.stream = self.open()

    def open(self):
        return fronts.stream(self.server, self.path(), self.body(), headers=self.headers())

    def headers(self):
        return []

    def read(self, until=lambda f: False):
        """False: the stream broke."""
        try:
            while (f := self.stream.next(60)) is not None:
                self.frames.append(f)
                if until(f):
                    return True
        except (Closed, ConnectionError, OSError, Failure):
            return False
        return True

    def rest(self, stream):
        with stream as s:
            return s.rest(60)

    def has_word(self, f, word):
        return f.data != "[DONE]" and f.json.get("delta") == word + " "

    def check_restart(self, words):
        """How the protocol shows that a text started again. words: that the client had."""


class A2A(Reader):
    name = "A2A"

    def open(self):
        self.client = Client(self.server, RPC1, base=f"/agents/{self.agent}")
        return self.client.stream(self.prompt)

    def read(self, until=lambda f: False):
        try:
            while (e := self.stream.next(60)) is not None:
                self.frames.append(e)
                if until(e):
                    return True
        except (Closed, ConnectionError, OSError, Failure):
            return False
        return True

    def has_word(self, f, word):
        return f.kind == "artifactUpdate" and f.body["artifact"]["parts"][0].get("text") == word + " "

    def check_restart(self, words):
        again = [e.body for e in self.more if e.kind == "artifactUpdate" and not e.body.get("append")]
        same(len(again), 1, "updates with append:false behind the restart")

    def task(self):
        return self.frames[0].body["id"] if self.frames else None

    def come_back(self):
        with self.client.subscribe(self.task(), last=self.frames[-1].id) as s:
            self.more = s.rest(60)

    def text(self):
        texts = {}
        for e in self.frames + self.more:
            if e.kind == "artifactUpdate":
                a = e.body["artifact"]
                texts[a["artifactId"]] = (texts.get(a["artifactId"], "") if e.body.get("append") else "") + \
                    "".join(p.get("text", "") for p in a["parts"])
        return "\n\n".join(t for t in texts.values() if t)


class Responses(Reader):
    name = "Responses"

    def path(self):
        return "/v1/responses"

    def body(self):
        return {"model": self.agent, "input": self.prompt, "stream": True}

    def task(self):
        return self.frames[0].json["response"]["a2a"]["task_id"] if self.frames else None

    def come_back(self):
        id, last = self.frames[0].json["response"]["id"], self.frames[-1].json["sequence_number"]
        self.more = self.rest(fronts.stream(self.server, f"/v1/responses/{id}?stream=true&starting_after={last}", None, method="GET"))

    def text(self):
        """An item that ends as incomplete was started again."""
        texts, ended = {}, {}
        all = [f for f in self.frames + self.more if f.data != "[DONE]"]
        same([f.json["sequence_number"] for f in all], list(range(len(all))), "sequence numbers")
        for f in all:
            e = f.json
            if e["type"] == "response.output_text.delta":
                check(e["item_id"] not in ended, "text behind the end of its item")
                texts[e["item_id"]] = texts.get(e["item_id"], "") + e["delta"]
            elif e["type"] == "response.output_item.done":
                ended[e["item"]["id"]] = e["item"].get("status")
        last = self.response = all[-1].json["response"]
        streamed = "".join(t for i, t in texts.items() if ended.get(i) == "completed")
        kept = "".join(p["text"] for i in last["output"] if i["type"] == "message" and i["status"] == "completed" for p in i["content"])
        same(streamed, kept, "the text of the response")
        same(fronts.output_text(last), streamed, "the text as clients join it")
        return streamed

    def check_restart(self, words):
        want = ["completed"] if words == 1 else ["incomplete", "completed"]  # the same first words are not a restart
        same([i["status"] for i in self.response["output"]], want, "items")


class AgUi(Reader):
    name = "AG-UI"

    def path(self):
        return f"/agents/{self.agent}/ag-ui"

    def body(self):
        if not hasattr(self, "input"):
            self.input = fronts.run_input(self.prompt)
        return self.input

    def headers(self):
        last = [f.id for f in self.frames if f.id]
        return [("Last-Event-ID", last[-1])] if last else []

    def task(self):
        return None

    def come_back(self):
        self.more = self.rest(self.open())

    def text(self):
        is_whole = self.more and self.more[0].json["type"] == "RUN_STARTED"
        events = self.more if is_whole else self.frames + self.more
        return fronts.fold_ag_ui(events).text

    def check_restart(self, words):
        kinds = [f.json["type"] for f in self.more]
        check(words == 1 or "MESSAGES_SNAPSHOT" in kinds, kinds)


class AgUiAgain(AgUi):
    name = "AG-UI, from its beginning"

    def headers(self):
        return []


class AiSdk(Reader):
    name = "AI SDK"

    def path(self):
        return f"/agents/{self.agent}/ai-sdk"

    def body(self):
        if not hasattr(self, "chat"):
            self.chat = new_id("chat")
        return fronts.ui_body(self.prompt, chat_id=self.chat)

    def task(self):
        return None

    def come_back(self):
        path = f"/agents/{self.agent}/ai-sdk/{self.chat}"
        conn = Conn(self.server.address)
        conn.request("GET", path + "/stream")
        head = conn.head()
        if head.status == 204:  # it has ended: the client loads the chat
            self.messages = ask(self.server.address, "GET", path + "/messages").json
            return
        self.more = self.rest(Stream(conn, head))

    def text(self):
        if self.more or not self.is_cut:
            return fronts.fold_ui(self.more or self.frames).text
        parts = [p for m in self.messages if m["role"] == "assistant" for p in m["parts"]]
        return "\n\n".join(p["text"] for p in parts if p["type"] == "text" and p["text"])


READERS = [A2A, Responses, AgUi, AgUiAgain, AiSdk]
