"""A scripted server of a language model: Chat Completions and Responses, with faults.

A script is a function of the parsed request that returns the answer, made by the functions below. `requests` has what was
received: the headers and the body of each request, in order.
"""
import http.server
import json
import threading
import time


class Answer:
    """status: of HTTP; frames: values of the stream, or bytes; cut: the connection ends without the end of the body."""

    def __init__(self, frames=(), status=200, headers=None, cut=False, pause=0, body=None, gate=None):
        self.frames, self.status, self.headers, self.cut, self.pause = list(frames), status, headers or {}, cut, pause
        self.body, self.gate = body, gate


def text(words, **how):
    """A streamed answer, one chunk per word. usage=(input, output)."""
    usage = how.pop("usage", (10, 5))
    frames = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    frames += [{"choices": [{"index": 0, "delta": {"content": w}}]} for w in split(words)]
    frames += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
               {"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}},
               "[DONE]"]
    return Answer(frames, **how)


def split(words):
    parts = words.split(" ")
    return [p + " " for p in parts[:-1]] + parts[-1:]


def calls(*list, words="", **how):
    """Calls of tools: (name, arguments)."""
    frames = [{"choices": [{"index": 0, "delta": {"content": w}}]} for w in split(words) if w]
    for i, (name, arguments) in enumerate(list):
        frames.append({"choices": [{"index": 0, "delta": {"tool_calls": [
            {"index": i, "id": f"c{i}-{time.monotonic_ns()}", "type": "function",
             "function": {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}}]}}]})
    frames += [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}, "[DONE]"]
    return Answer(frames, **how)


def error(status, message="out of order", headers=None, **more):
    return Answer(status=status, headers=headers, body={"error": {"message": message, "type": "test", **more}})


def cut(words, **how):
    """The connection is lost behind these words."""
    return Answer([{"choices": [{"index": 0, "delta": {"content": w}}]} for w in split(words) if w], cut=True, **how)


def responses_text(words):
    """The same as `text` for the Responses API."""
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": words, "annotations": []}]}
    done = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item],
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}}
    frames = [{"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
              {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
              {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 0, "content_index": 0,
               "part": {"type": "output_text", "text": "", "annotations": []}}]
    frames += [{"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": w} for w in split(words)]
    frames += [{"type": "response.output_text.done", "item_id": "msg_1", "output_index": 0, "content_index": 0, "text": words},
               {"type": "response.output_item.done", "output_index": 0, "item": item}, {"type": "response.completed", "response": done}]
    return Answer([{**f, "sequence_number": i} for i, f in enumerate(frames)])


def results_of(body):
    """The results of tools in a Chat request, by the names of their calls."""
    names = {c["id"]: c["function"]["name"] for m in body["messages"] for c in m.get("tool_calls") or []}
    return [(names.get(m["tool_call_id"]), m["content"]) for m in body["messages"] if m["role"] == "tool"]


class Upstream:
    """Listens on a free port until the process ends. script: function of the body, and the number of the request from 0."""

    def __init__(self, script):
        self.script, self.requests, self.lock, self.open = script, [], threading.Lock(), 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    n = len(outer.requests)
                    outer.requests.append((self.path, dict(self.headers), body))
                    outer.open += 1
                try:
                    self.reply(outer.script(body, n), body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True
                finally:
                    with outer.lock:
                        outer.open -= 1

            def reply(self, a, body):
                if a.gate:
                    a.gate(self)
                if a.body is not None:
                    data = json.dumps(a.body).encode()
                    return self.send(a.status, "application/json", a.headers, data)
                self.head(a.status, "text/event-stream", {**a.headers, "Transfer-Encoding": "chunked"})
                for f in a.frames:
                    data = f if isinstance(f, bytes) else f"data: {f if isinstance(f, str) else json.dumps(f)}\n\n".encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                    self.wfile.flush()
                    if a.pause:
                        time.sleep(a.pause)
                if a.cut:
                    self.close_connection = True
                    return None
                self.wfile.write(b"0\r\n\r\n")
                return self.wfile.flush()

            def head(self, status, type, headers):
                self.send_response(status)
                self.send_header("Content-Type", type)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def send(self, status, type, headers, data):
                self.head(status, type, {**headers, "Content-Length": str(len(data))})
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that is killed resets its connections
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def bodies(self):
        with self.lock:
            return [b for _, _, b in self.requests]
