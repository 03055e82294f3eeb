"""`dragoman bench`: it measures, and it is not fooled."""
import http.server
import json
import re
import threading

from support import DRAGOMAN, Server, check, check_same, failed, run, succeeded, test


def figures(*args):
    return json.loads(succeeded(run("bench", "--json", *args)).out)


@test("bench sends as many requests as it is asked to and says how long they took")
def _():
    with Server(agent="bench") as server:
        got = figures("--requests", "200", "-n", "4", "--pid", str(server.p.pid), server.url)
        check_same((got["mode"], got["requests"], got["errors"], got["connections"]), ("send", 200, 0, 4))
        times = [got["latency_us"][k] for k in ("min", "p50", "p90", "p99", "p999", "max")]
        check(times == sorted(times) and times[0] > 0, times)
        check(got["server_cpu_s"] > 0 and got["client_cpu_s"] > 0 and got["requests_per_s"] > 0, got)
        out = succeeded(run("bench", "--requests", "5", server.url)).out.decode()
        check(re.search(r"^requests +5, \d+ per second$", out, re.M) and re.search(r"^errors +0$", out, re.M), out)


@test("bench counts the events of streams, and asks for tasks")
def _():
    with Server(agent="bench") as server:
        got = figures("--mode", "stream", "--text", "chunks 7", "--requests", "20", server.url)
        check_same((got["requests"], got["events"], got["errors"]), (20, 20 * 10, 0))
        got = figures("--mode", "stream", "--text", "chunks 7 yield", "--requests", "20", "-n", "3", server.url)
        check_same((got["requests"], got["events"], got["errors"]), (20, 20 * 10, 0))
        got = figures("--mode", "get", "--requests", "50", server.url)
        check_same((got["requests"], got["errors"]), (50, 0))


@test("bench speaks what clients speak: AG-UI, Chat Completions, Responses, the AI SDK")
def _():
    with Server(agent="bench") as server:
        for api, path in [("ag-ui", "ag-ui"), ("chat", "v1/chat/completions"), ("responses", "v1/responses"), ("ai-sdk", "ai-sdk")]:
            for text in ["chunks 7", "chunks 7 yield"]:
                got = figures("--api", api, "--mode", "stream", "--text", text, "--requests", "10", f"{server.url}/{path}")
                check_same((got["requests"], got["errors"]), (10, 0), api)
                check(got["events"] > 10 * 8, got)
        for api, path in [("chat", "v1/chat/completions"), ("responses", "v1/responses")]:
            got = figures("--api", api, "--requests", "10", f"{server.url}/{path}")
            check_same((got["requests"], got["errors"]), (10, 0), api)


@test("bench holds streams open and weighs them")
def _():
    with Server(agent="bench") as server:
        got = figures("--mode", "hold", "--text", "hold 2", "-n", "20", "--seconds", "0.1", "--pid", str(server.p.pid), server.url)
        check_same((got["requests"], got["errors"]), (20, 0))
        check(got["rss_anon_after"] > 0 and "bytes_per_stream" in got, got)


@test("bench keeps to a rate and runs for the given time")
def _():
    with Server(agent="bench") as server:
        got = figures("--rate", "50", "--seconds", "0.5", "--warmup", "0.1", server.url)
        check(0 < got["requests"] <= 30 and got["seconds"] >= 0.5, got)


@test("bench starts a server again and again, and notices one that does not start")
def _():
    with Server(agent="bench") as server:
        url = server.url
        failed(run("bench", "--mode", "startup", url, "--", DRAGOMAN), 1, "already responds at")
    listen = url.removeprefix("http://")
    got = figures("--mode", "startup", "--requests", "2", url, "--", DRAGOMAN, "serve", "--agent", "bench",
                  "--store", "memory:", "--listen", listen)
    check_same((got["requests"], got["errors"]), (2, 0))
    failed(run("bench", "--mode", "startup", url, "--", "false"), 1, "false ended before it responded")


class Nonsense(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answer = b""
    status = 200

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.answer)))
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_):
        pass


class Stream(Nonsense):
    def send_header(self, name, value):
        super().send_header(name, "text/event-stream" if name == "Content-Type" else value)


def nonsense(body, code=200, base=Nonsense):
    kind = type("Kind", (base,), {"answer": body, "status": code})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.handle_error = lambda *_: None  # bench leaves in the middle when it has seen enough
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


@test("bench is not content with status 200: every answer is looked at")
def _():
    right = {"jsonrpc": "2.0", "id": 1, "result": {"message": {
        "messageId": "x", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": "another text"}]}}}
    for body, code, said in [
            (b"{}", 200, 'does not contain "result"'),
            (b'{"jsonrpc":"2.0","id":1,"result":{"message":{"role":"ROLE_AGENT","parts":5}}}', 200, "not a2a-1.0"),
            (json.dumps(right).encode(), 200, 'does not contain "echo hello"'),
            (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}', 200, 'does not contain "result"'),
            (b"gone", 410, "answers HTTP/1.1 410")]:
        server, url = nonsense(body, code)
        ended = run("bench", "--requests", "3", "-n", "1", url)
        check(ended.status == 1 and said in ended.err, f"{body}: {ended}")
        server.shutdown()
        server.server_close()


def sse(*events):
    return b"".join(b"data: %s\n\n" % (json.dumps(e).encode() if e != "[DONE]" else b"[DONE]") for e in events)


def ended_of(body, *args, base=Nonsense):
    server, url = nonsense(body, base=base)
    ended = run("bench", "--requests", "2", "-n", "1", *args, url)
    server.shutdown()
    server.server_close()
    return ended


@test("bench looks at the answers of other APIs as closely")
def _():
    def completion(**choice):
        return json.dumps({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "echo hello"}, "finish_reason": "stop", **choice}]}).encode()
    succeeded(ended_of(completion(), "--api", "chat"))
    succeeded(ended_of(completion(), "--api", "chat", "--text", "hi", "--expect", "echo hello"))
    for body, said in [
            (b"{}", "not openai-chat"),
            (completion(message=5), "not openai-chat"),
            (completion(message={"role": "assistant", "content": "hello"}), 'does not contain "echo hello"')]:
        failed(ended_of(body, "--api", "chat"), 1, said)

    def delta(text, **more):
        return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None, **more}]}
    right = [delta("1"), delta("2"), delta("", delta={}, finish_reason="stop"), "[DONE]"]
    asked = ["--api", "chat", "--mode", "stream", "--text", "chunks 2"]
    succeeded(ended_of(sse(*right), *asked, base=Stream))
    failed(ended_of(sse(*right[1:]), *asked, base=Stream), 1, "with 1 text chunks does not have the requested number")
    failed(ended_of(sse(*right[:3]), *asked, base=Stream), 1, "has no successful end")


@test("bench says what is wrong with its command line, and who cannot be reached")
def _():
    failed(run("bench"), 2, "bench needs URL")
    failed(run("bench", "--mode", "sned", "http://127.0.0.1:1"), 2, "unknown mode 'sned'", "did you mean 'send'?")
    failed(run("bench", "-n", "none", "http://127.0.0.1:1"), 2, "--connections none: expected a number")
    failed(run("bench", "https://127.0.0.1:1"), 2, "only http://")
    failed(run("bench", "--mode", "startup", "http://127.0.0.1:1"), 2, "needs COMMAND")
    failed(run("bench", "--api", "chat", "--mode", "get", "http://127.0.0.1:1"), 2, "--mode get is only for --api a2a")
    failed(run("bench", "--api", "ag-ui", "http://127.0.0.1:1"), 2, "ag-ui supports only streams")
    failed(run("bench", "http://127.0.0.1:1", "x"), 2, "COMMAND is only for --mode startup")
    ended = run("bench", "--seconds", "1", "http://127.0.0.1:1")
    check(ended.status == 1 and "cannot connect to http://127.0.0.1:1" in ended.err, ended)
