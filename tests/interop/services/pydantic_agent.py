"""An agent of pydantic-ai behind `type: http`, reached through every protocol of Dragoman."""
import os
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "wire"))
from lib import fronts, server, tap  # noqa: E402
from lib.a2a import RPC03, RPC1, Client, artifact_texts, message, task_text  # noqa: E402
from lib.tap import check, each, same, test  # noqa: E402

TOOLS = [{"name": "get_weather", "description": "the weather of a city", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}]
PATHS = {"ag-ui": "/ag-ui", "ag-ui-0": "/ag-ui", "ai-sdk": "/ai-sdk"}
service = None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_service():
    global service
    port = free_port()
    python = os.path.join(HERE, ".venv-services", "bin", "python")
    service = subprocess.Popen([python, os.path.join(HERE, "pydantic_agent_service.py"), str(port)])
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return port
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the service does not listen")


def dragoman(format):
    return server.server(None, config=server.settings(agents=[server.agent("http", id="demo", settings={
        "url": f"http://127.0.0.1:{PORT}{PATHS[format]}", "format": format})]))


@each("{}: text, streamed, once, through every protocol", list(PATHS))
def _(format):
    s = dragoman(format)
    want = "You said hello in turn 1"
    for wire in (RPC1, RPC03):
        t = Client(s, wire).send("hello").task
        same((t["status"]["state"], task_text(t), artifact_texts(t)), ("TASK_STATE_COMPLETED", want, [want]), wire.name)
    with Client(s, RPC1).stream("hello") as events:
        chunks = [e for e in events.rest() if e.kind == "artifactUpdate"]
    check(len(chunks) > 2, f"{len(chunks)} chunks")
    for name, front in fronts.ALL.items():
        same(front(s, "hello").text, want, name)


@each("{}: a failure of the agent is one of the task", list(PATHS))
def _(format):
    t = Client(dragoman(format), RPC1).send("fail").task
    same(t["status"]["state"], "TASK_STATE_FAILED", "the state")
    check("out of order" in t["metadata"]["error"], t["metadata"])


@each("{}: a tool of the agent", list(PATHS))
def _(format):
    s = dragoman(format)
    t = Client(s, RPC1).send("add milk").task
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "The tool add_item says: 1 items"), "the answer")
    told = fronts.ag_ui(s, "add milk")
    same(told.text, "The tool add_item says: 1 items", "AG-UI")
    same([f.json["toolCallName"] for f in told.frames if f.json["type"] == "TOOL_CALL_START"], ["add_item"], "calls")
    same(len([f for f in told.frames if f.json["type"] == "TOOL_CALL_RESULT"]), 1, "results")


@each("{}: a tool of the caller, through Chat", ["ag-ui", "ag-ui-0"])
def _(format):
    s = dragoman(format)
    tools = [{"type": "function", "function": t} for t in TOOLS]
    asked = [{"role": "user", "content": "weather"}]
    first = fronts.chat(s, None, messages=asked, tools=tools)
    calls = first.body["choices"][0]["message"]["tool_calls"]
    same([(c["function"]["name"], c["function"]["arguments"]) for c in calls], [("get_weather", '{"city": "Rome"}')], "calls")
    asked += [first.body["choices"][0]["message"], {"role": "tool", "tool_call_id": calls[0]["id"], "content": "hail"}]
    same(fronts.chat(s, None, messages=asked, tools=tools).text, "The tool get_weather says: hail", "the answer")


@each("{}: a tool of the caller, through AG-UI and A2A", ["ag-ui", "ag-ui-0"])
def _(format):
    s = dragoman(format)
    first = fronts.ag_ui(s, "weather", thread="t-" + format, tools=TOOLS)
    call = [f.json for f in first.frames if f.json["type"] == "TOOL_CALL_START"][0]
    c = Client(s, RPC1)
    t = [t for t in c.list(contextId="t-" + format).value["tasks"]][0]
    same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
    result = {"call_id": call["toolCallId"], "name": "get_weather", "output": "hail"}
    t = c.send(m=message(parts=[{"data": {"tool_results": [result]}}], task=t["id"], context=t["contextId"])).task
    same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "The tool get_weather says: hail"), "the answer")


@each("{}: state goes to the agent and comes back", ["ag-ui", "ag-ui-0"])
def _(format):
    told = fronts.ag_ui(dragoman(format), "add milk", state={"items": ["bread"]})
    same([f.json["snapshot"] for f in told.frames if f.json["type"] == "STATE_SNAPSHOT"][-1], {"items": ["bread", "milk"]}, "the state")
    same(told.text, "The tool add_item says: 2 items", "the answer")


@each("{}: a change inside the state is a delta", ["ag-ui", "ag-ui-0"])
def _(format):
    told = fronts.ag_ui(dragoman(format), "replace tea", state={"items": ["bread", "milk"]})
    same([f.json["delta"] for f in told.frames if f.json["type"] == "STATE_DELTA"], [[{"op": "replace", "path": "/items/1", "value": "tea"}]], "the changes")
    same([f.json for f in told.frames if f.json["type"] == "CUSTOM" and "state" in f.json["name"]], [], "custom events")


@test("the servers ended well")
def _():
    complaints = server.end_all()
    check(not complaints, "\n".join(complaints))


if __name__ == "__main__":
    PORT = start_service()
    try:
        status = tap.main(tap.TESTS)
    finally:
        service.terminate()
        service.wait()
    sys.stdout.flush()
    server.at_exit()
    os._exit(1 if status else 0)
