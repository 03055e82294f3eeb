"""`dragoman mcp list|call` with third-party MCP servers: server-everything (2025-11-25) and the SDK for Python (2026-07-28), over
stdio and streamable HTTP."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "..", "wire"))
from lib import tap  # noqa: E402
from lib.tap import check, each, same, test  # noqa: E402

DRAGOMAN = os.path.join(ROOT, os.environ.get("DRAGOMAN", "build/dragoman"))
NODE = shutil.which("node")
EVERYTHING = os.path.join(HERE, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
PYTHON = os.path.join(HERE, ".venv-mcp/bin/python")
SDK_SERVER = os.path.join(HERE, "sdk_server.py")
folder = tempfile.mkdtemp(prefix="mcp-interop-")
running = []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(command, port, env=None):
    running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})}))
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return f"http://127.0.0.1:{port}/mcp"
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")


def configure():
    everything_port, sdk_port = free_port(), free_port()
    servers = {
        "everything-stdio": {"command": [NODE, EVERYTHING, "stdio"]},
        "everything-http": {"url": start([NODE, EVERYTHING, "streamableHttp"], everything_port, {"PORT": str(everything_port)})},
        "sdk-stdio": {"command": [PYTHON, SDK_SERVER]},
        "sdk-http": {"url": start([PYTHON, SDK_SERVER, str(sdk_port)], sdk_port)},
    }
    with open(os.path.join(folder, "dragoman.json"), "w", encoding="utf-8") as f:
        json.dump({"mcp": servers}, f)


def mcp(*args, status=0):
    done = subprocess.run([DRAGOMAN, "mcp", args[0], "-c", os.path.join(folder, "dragoman.json"), *args[1:]],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    check(status is None or done.returncode == status, done.stderr)
    return done


def call(server, tool, arguments=None, *options, status=0):
    return json.loads(mcp("call", "--json", *options, server, tool, json.dumps(arguments or {}), status=status).stdout)


EVERYTHINGS, SDKS = ["everything-stdio", "everything-http"], ["sdk-stdio", "sdk-http"]


@each("{}: the list of tools", EVERYTHINGS)
def _(server):
    tools = {t["tool"]: t for t in json.loads(mcp("list", "--json", server).stdout)}
    check({"echo", "get-sum", "get-tiny-image", "trigger-elicitation-request"} <= set(tools), sorted(tools))
    same(tools["echo"]["name"], f"{server}__echo")
    same(tools["echo"]["inputSchema"]["required"], ["message"])


@each("{}: text, images, resources and structured content", EVERYTHINGS)
def _(server):
    same(call(server, "echo", {"message": "h\u00e9"}), {"parts": [{"text": "Echo: h\u00e9"}], "isError": False})
    same([list(p)[0] for p in call(server, "get-tiny-image")["parts"]], ["text", "raw", "text"])
    check(any("url" in p for p in call(server, "get-resource-links", {"count": 2})["parts"]))
    same(call(server, "get-structured-content", {"location": "New York"})["structured"]["conditions"], "Cloudy")


@each("{}: progress", EVERYTHINGS)
def _(server):
    done = mcp("call", server, "trigger-long-running-operation", '{"duration": 1, "steps": 3}')
    check("3 of 3" in done.stderr, done.stderr)


@each("{}: a form is answered, or declined", EVERYTHINGS)
def _(server):
    text = str(call(server, "trigger-elicitation-request", {}, "--answer", '{"name": "Ada"}'))
    check("Ada" in text, text)
    text = str(call(server, "trigger-elicitation-request"))
    check("declined" in text.lower(), text)


@each("{}: a page is opened first, asked for by a request and by an error", EVERYTHINGS)
def _(server):
    for path in (False, True):
        done = mcp("call", "--answer", "{}", server, "trigger-url-elicitation",
                   json.dumps({"url": "https://example.com/login", "message": "log in", "errorPath": path}), status=None)
        check("https://example.com/login" in done.stderr, done.stderr)


@each("{}: the list of tools", SDKS)
def _(server):
    same([t["tool"] for t in json.loads(mcp("list", "--json", server).stdout)], ["add", "steps", "fail"])


@each("{}: structured content, progress and failures", SDKS)
def _(server):
    same(call(server, "add", {"a": 2, "b": 3})["structured"], {"sum": 5})
    check("step 3" in mcp("call", server, "steps").stderr)
    same(call(server, "fail", status=1), {"parts": [{"text": "Error executing tool fail"}], "isError": True})


@test("an unknown tool, and an unknown server")
def _():
    check('has no tool "nothing"' in mcp("call", "sdk-stdio", "nothing", status=1).stderr)
    check("unknown MCP server 'nothing'" in mcp("list", "nothing", status=1).stderr)


@test("a list of all servers, and one by its URL")
def _():
    names = {t["server"] for t in json.loads(mcp("list", "--json").stdout)}
    same(names, set(EVERYTHINGS + SDKS))
    with open(os.path.join(folder, "dragoman.json"), encoding="utf-8") as f:
        url = json.load(f)["mcp"]["sdk-http"]["url"]
    check("server__add" in mcp("list", url).stdout)


if __name__ == "__main__":
    try:
        configure()
        status = tap.main(tap.TESTS)
    finally:
        for p in running:
            p.kill()
            p.wait()
        shutil.rmtree(folder)
    sys.exit(1 if status else 0)
