"""Servers of no particular protocol, to be talked to in tests."""
import http.client
import http.server
import json
import threading

MESSAGE = {"1.0": {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "recorded"}]}},
           "0.3": {"kind": "message", "messageId": "m", "role": "agent", "parts": [{"kind": "text", "text": "recorded"}]}}


class Stranger:
    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.owner = self
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Recorder(Stranger):
    """Keeps what it is asked; answers with `body`, or with a Message in the version of the request."""

    def __init__(self, body=None, status=200):
        self.requests, self.body, self.status = [], body, status
        super().__init__(RecorderHandler)


class RecorderHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        owner.requests.append({"path": self.path, "headers": dict(self.headers), "body": body})
        out = owner.body
        if out is None:
            out = json.dumps({"jsonrpc": "2.0", "id": 1, "result": MESSAGE[self.headers.get("A2A-Version", "1.0")]}).encode()
        self.send_response(owner.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)

    do_GET = do_POST = do_CONNECT = answer

    def log_message(self, *_):
        pass


class Cutter(Stranger):
    """Passes everything on to `target`, but cuts the first stream after a few events."""

    def __init__(self, target):
        self.target, self.cuts = target.removeprefix("http://"), 0
        super().__init__(CutterHandler)


class CutterHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers["Content-Length"]))
        there = http.client.HTTPConnection(owner.target, timeout=60)
        there.request("POST", self.path, body, {k: v for k, v in self.headers.items() if k.lower() != "host"})
        answer = there.getresponse()
        if "event-stream" in answer.headers["Content-Type"]:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(8):
                line = answer.readline()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            owner.cuts += 1
            self.close_connection = True
            there.close()
            return
        out = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)
        there.close()

    def log_message(self, *_):
        pass


class Streamer(Stranger):
    """Answers every call with these events of 0.3, over JSON-RPC, and does not close the stream."""

    def __init__(self, events):
        self.events, self.over, self.bodies = events, threading.Event(), []
        super().__init__(StreamerHandler)

    def __exit__(self, *_):
        self.over.set()
        super().__exit__()


class StreamerHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        owner = self.server.owner
        owner.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
        id = json.loads(owner.bodies[-1])["id"]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in owner.events:
            self.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", "id": id, "result": event}).encode() + b"\n\n")
        self.wfile.flush()
        owner.over.wait(60)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Redirector(Stranger):
    """Redirects these paths; all others are not found."""

    def __init__(self, targets):
        self.targets, self.paths = targets, []
        super().__init__(RedirectorHandler)


class RedirectorHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        owner = self.server.owner
        owner.paths.append(self.path)
        self.send_response(302 if self.path in owner.targets else 404)
        if self.path in owner.targets:
            self.send_header("Location", owner.targets[self.path])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass
