"""What the programs of this folder share: the library of tests/wire, servers of models, a proxy that cuts connections, and a client
of each protocol."""
import atexit
import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "wire"))
from lib import a2a, fronts, server, tap  # noqa: E402
from lib import http as http_lib  # noqa: E402


@atexit.register
def end_running():
    for p in RUNNING:
        p.kill()


def servers_end():
    complaints = server.end_all()
    end_running()
    tap.check(not complaints, "\n".join(complaints))


def main():
    """Runs the registered tests, then stops the servers: a report of a sanitizer fails the program."""
    tap.TESTS.append(tap.Test("the servers ended well", servers_end, 120, "main"))
    status = 1 if tap.main(tap.TESTS) else 0
    sys.stdout.flush()
    server.at_exit()
    os._exit(status)  # threads of tests that hang do not keep us


# ---- programs that are the servers of a model --------------------------------------------------------------------------------

RUNNING = []


def start(command, **how):
    """Starts a server that prints its address; its URL. It is ended with this program."""
    p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **how)
    RUNNING.append(p)
    found, lines = [], []

    def follow():
        for line in p.stdout:
            lines.append(line)
            if not found and (m := re.search(r"listening on (http://127\.0\.0\.1:\d+)", line)):
                found.append(m[1])

    threading.Thread(target=follow, daemon=True).start()
    try:
        return tap.soon(lambda: found and found[0] or p.poll() is not None and "ended", "it does not listen", 60)
    finally:
        if not found:
            print("# " + "# ".join(lines[-20:]), flush=True)


class Proxy:
    """In front of a server: counts requests. cut(n, body): after how many bytes of the body the connection of the request number
    n is cut, None: not at all. is_whole: requests have no `stream`, so the server answers with one JSON body."""

    def __init__(self, url, cut=lambda n, body: None, is_whole=False):
        host, port = url.removeprefix("http://").split(":")
        self.count, outer = 0, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                n, outer.count = outer.count, outer.count + 1
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if is_whole:
                    body.pop("stream"), body.pop("stream_options", None)
                conn = http.client.HTTPConnection(host, int(port), timeout=60)
                conn.request("POST", self.path, json.dumps(body), {"Content-Type": "application/json"})
                answer = conn.getresponse()
                data = answer.read()
                conn.close()
                self.forward(answer, data, cut(n, data))

            def forward(self, answer, data, end):
                if end == 0:  # not even a head
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.getheader("Content-Type"))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[:end])
                self.close_connection = end is not None

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


# ---- clients of an agent: what each protocol shows ---------------------------------------------------------------------------

class Result:
    """texts: of each model call that has one. error: the sentence of a task that failed. usage: (input, output) or None."""

    def __init__(self, texts, error, usage):
        self.texts, self.error, self.usage = [t for t in texts if t], error, usage


def usage_of(value, input, output):
    return value and (value[input], value[output])


def a2a_result(s, id, task):
    error = None
    if task["status"]["state"] != "TASK_STATE_COMPLETED":
        error = task["metadata"]["error"]
        tap.same(task["status"]["state"], "TASK_STATE_FAILED", task["status"])
        tap.same(a2a.task_text(task), error, "the message of the error")
    records = http_lib.ask(s.address, "GET", f"/debug/tasks/{task['id']}/records").body.decode().splitlines()
    found = [r["value"] for r in (json.loads(line)["record"] for line in records) if r.get("kind") == "internal:usage"]
    usage = (sum(int(u["inputTokens"]) for u in found), sum(int(u["outputTokens"]) for u in found)) if found else None
    return Result(a2a.artifact_texts(task), error, usage)


def ask_a2a(s, id, text):
    return a2a_result(s, id, a2a.Client(s, a2a.RPC1, base=f"/agents/{id}").send(text).task)


def ask_a2a_stream(s, id, text):
    c = a2a.Client(s, a2a.RPC1, base=f"/agents/{id}")
    with c.stream(text) as events:
        seen = events.rest()
    texts = {}
    for e in seen:
        if e.kind == "artifactUpdate":
            key = e.body["artifact"]["artifactId"]
            texts[key] = (texts.get(key, "") if e.body.get("append") else "") + "".join(p.get("text", "") for p in e.body["artifact"]["parts"])
    result = a2a_result(s, id, c.get(seen[0].body["id"]).task)
    tap.same([t for t in texts.values() if t], result.texts, "the streamed text")
    return result


def chat_usage(value):
    return usage_of(value, "prompt_tokens", "completion_tokens")


def ask_chat(s, id, text):
    r = fronts.post(s, "/v1/chat/completions", fronts.chat_body(text, model=id))
    if r.status != 200:
        return Result([], r.json["error"]["message"], None)
    return Result([r.json["choices"][0]["message"]["content"]], None, chat_usage(r.json["usage"]))


def ask_chat_stream(s, id, text):
    told = fronts.chat_stream(s, text, model=id, stream_options={"include_usage": True})
    values = [f.json for f in told.frames[:-1]]
    errors = [v["error"]["message"] for v in values if "error" in v]
    usages = [v["usage"] for v in values if v.get("usage")]
    return Result([told.text], errors[0] if errors else None, chat_usage(usages[-1] if usages else None))


def responses_result(body):
    error = body.get("error")
    if "output" not in body:
        return Result([], error["message"], None)
    texts = ["".join(p["text"] for p in i["content"]) for i in body["output"] if i["type"] == "message"]
    return Result(texts, error and error["message"], usage_of(body["usage"], "input_tokens", "output_tokens"))


def ask_responses(s, id, text):
    return responses_result(fronts.post(s, "/v1/responses", {"model": id, "input": text}).json)


def ask_responses_stream(s, id, text):
    with fronts.stream(s, "/v1/responses", {"model": id, "input": text, "stream": True}) as live:
        told = fronts.fold_responses(live.rest())
    result = responses_result(told.body)
    tap.same("".join(f.json["delta"] for f in told.frames if f.event == "response.output_text.delta"), "".join(result.texts), "the streamed text")
    return result


def ask_ag_ui(s, id, text):
    with fronts.stream(s, f"/agents/{id}/ag-ui", fronts.run_input(text)) as live:
        frames = live.rest()
    texts, end = {}, frames[-1].json
    for e in (f.json for f in frames):
        if e["type"] == "TEXT_MESSAGE_CONTENT":
            texts[e["messageId"]] = texts.get(e["messageId"], "") + e["delta"]
    usage = end.get("usage")
    return Result(texts.values(), end["message"] if end["type"] == "RUN_ERROR" else None,
                  usage and (sum(u["inputTokens"] for u in usage), sum(u["outputTokens"] for u in usage)))


def ask_ai_sdk(s, id, text):
    with fronts.stream(s, f"/agents/{id}/ai-sdk", fronts.ui_body(text)) as live:
        frames = live.rest()
    texts, errors, usage = {}, [], None
    for c in (f.json for f in frames[:-1]):
        if c["type"] == "text-delta":
            texts[c["id"]] = texts.get(c["id"], "") + c["delta"]
        elif c["type"] == "error":
            errors.append(c["errorText"])
        usage = (c.get("messageMetadata") or {}).get("usage") or usage
    return Result(texts.values(), errors[0] if errors else None,
                  usage and (sum(u["inputTokens"] for u in usage), sum(u["outputTokens"] for u in usage)))


CLIENTS = {"A2A": ask_a2a, "A2A, streamed": ask_a2a_stream, "Chat": ask_chat, "Chat, streamed": ask_chat_stream,
           "Responses": ask_responses, "Responses, streamed": ask_responses_stream, "AG-UI": ask_ag_ui,
           "the AI SDK": ask_ai_sdk}


def llm(id, url, api="chat", model="m", **more):
    return server.agent("llm", id=id, settings={"base_url": url + "/v1", "api": api, "model": model, **more})
