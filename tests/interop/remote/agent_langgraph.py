"""Sends what LangGraph's own A2A endpoint sends. usage: agent_langgraph.py PORT

The shapes were measured with langgraph-api 0.16.7: a hybrid card, `kind` and parts of 0.3 in answers of 1.0, task ids with a
colon, no subscription; a stream of working statuses, each with the whole text so far and a new messageId, then the text as an
artifact, then completed without a message. A question has no message, but an artifact.
"""
import json
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port = int(sys.argv[1])
CARD = {"name": "Graph", "description": "A graph", "version": "1", "protocolVersion": "1.0", "url": f"http://127.0.0.1:{port}/a2a/x",
        "preferredTransport": "JSONRPC", "capabilities": {"streaming": True, "pushNotifications": False},
        "supportedInterfaces": [{"url": f"http://127.0.0.1:{port}/a2a/x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "does s", "tags": ["x"], "metadata": {}}]}


def part(text):
    return {"kind": "text", "text": text}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(CARD)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request["method"] != "SendStreamingMessage":
            self.answer({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
            return
        ids = {"taskId": f"{uuid.uuid4()}:{uuid.uuid4()}", "contextId": str(uuid.uuid4())}

        def send(result):
            self.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode() + b"\r\n\r\n")
            time.sleep(0.02)

        def status(state, text=None, final=False):
            message = {"kind": "message", "messageId": str(uuid.uuid4()), "role": "agent", "parts": [part(text)]} if text else None
            send({"statusUpdate": {"kind": "status-update", **ids, "final": final,
                                   "status": {"state": state, **({"message": message} if message else {})}}})

        def artifact(name, parts):
            send({"artifactUpdate": {"kind": "artifact-update", **ids, "lastChunk": True,
                                     "artifact": {"artifactId": str(uuid.uuid4()), "name": name, "parts": parts}}})

        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        word = request["params"]["message"]["parts"][0]["text"]
        send({"task": {"kind": "task", "id": ids["taskId"], "contextId": ids["contextId"], "status": {"state": "submitted"}, "history": []}})
        if word == "ask":
            artifact("Interrupt", [{"kind": "data", "data": {"id": "i", "value": "Which one?"}}])
            status("TASK_STATE_INPUT_REQUIRED", final=True)
            return
        for text in "Hel", "Hello", "Hello wor", "Hello world":
            status("TASK_STATE_WORKING", text)
        artifact("Assistant Response", [part("Hello world")])
        status("TASK_STATE_COMPLETED", final=True)


ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
