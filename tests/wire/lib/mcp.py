"""A small MCP server of revision 2025-11-25: over HTTP (class HttpMcp), or over stdin and stdout when it is run as a program.

Its tools: `read_file` answers with {"path"}; `about` with the environment, the folder and the number of the process as JSON.
"""
import http.server
import json
import os
import sys
import threading

TOOLS = [{"name": "read_file", "description": "Reads a file.", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
         {"name": "about", "description": "Describes the server.", "inputSchema": {"type": "object"}}]


def answer(request):
    """The response to a JSON-RPC request; None for a notification."""
    method, params = request.get("method"), request.get("params") or {}
    if "id" not in request:
        return None
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call" and params["name"] == "read_file":
        result = {"content": [{"type": "text", "text": f"the content of {params['arguments']['path']}"}]}
    elif method == "tools/call":
        about = {"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()}
        result = {"content": [{"type": "text", "text": json.dumps(about)}]}
    else:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown method"}}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class HttpMcp:
    """Listens until the process ends. `headers` has the headers of the requests, in order."""

    def __init__(self, silent=False):
        self.headers, outer = [], self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                outer.headers.append(dict(self.headers))
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if silent and request.get("method") == "tools/call":
                    threading.Event().wait()
                response = answer(request)
                body = json.dumps(response).encode() if response else b""
                self.send_response(200 if response else 202)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.send_error(405)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{server.server_port}/mcp"


if __name__ == "__main__":
    for line in sys.stdin:
        response = answer(json.loads(line))
        if response:
            print(json.dumps(response), flush=True)
