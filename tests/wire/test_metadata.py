"""Metadata that only the server sets: keys with the prefix aion: or dragoman:, and canonical_type of tasks and updates."""
import json
import os
import sys

from lib.a2a import ALL, RPC1, Client, message, new_id
from lib.http import ask
from lib.server import agent, folder, needs_ours, server, settings
from lib.tap import check, each, same, test

# prints the lines of the file that the message names
PRINTS = ["/bin/sh", "-c", 'read -r file; cat "$file"']
# answers with what it was given
ECHO = [sys.executable, "-c", """
import json, sys
given = json.load(sys.stdin)
print(json.dumps({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"data": {"message": given["message"], "metadata": given.get("metadata")}}]}}))
"""]

EVIL = {"aion:network": "evil", "dragoman:principal": "evil", "canonical_type": "RunStartedEvent", "mine": "stays"}
MESSAGE = {"messageId": "m", "role": "ROLE_AGENT", "metadata": EVIL, "parts": [{"text": "hi", "metadata": EVIL}]}
ARTIFACT = {"artifactId": "aion:kept-id", "metadata": EVIL, "parts": [{"text": "a", "metadata": EVIL}]}
LINES = {
    "task": {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}, "metadata": EVIL}},
    "statusUpdate": {"statusUpdate": {"taskId": "t", "contextId": "c", "metadata": EVIL, "status": {"state": "TASK_STATE_WORKING"}}},
    "status message": {"statusUpdate": {"taskId": "t", "contextId": "c", "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": MESSAGE}}},
    "artifactUpdate": {"artifactUpdate": {"taskId": "t", "contextId": "c", "metadata": EVIL, "artifact": ARTIFACT}},
    "later task": {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}, "metadata": EVIL,
                            "history": [MESSAGE], "artifacts": [ARTIFACT]}},
    "message": {"message": MESSAGE},
}


def agents(**more):
    return settings(agents=[agent("exec", id="prints", settings={"command": PRINTS, "input": "text"}, reply="auto"),
                            agent("exec", id="echo", settings={"command": ECHO}, reply="auto")], **more)


def metadata_in(value, path=""):
    """Every metadata object below a value, with where it is."""
    if isinstance(value, dict):
        for k, v in value.items():
            if k == "metadata" and isinstance(v, dict):
                yield path, v
            else:
                yield from metadata_in(v, f"{path}/{k}")
    elif isinstance(value, list):
        for i, v in enumerate(value):
            yield from metadata_in(v, f"{path}/{i}")


def check_clean(value):
    for where, m in metadata_in(value):
        check(not [k for k in m if k.startswith(("aion:", "dragoman:"))], f"{where}: {m}")


def check_no_type(body):
    """Of a Task or an update, as 1.0 has it."""
    check("canonical_type" not in body.get("metadata", {}), body)


def printed(*names):
    path = os.path.join(folder(), "lines")
    with open(path, "w") as f:
        f.writelines(json.dumps(LINES[n]) + "\n" for n in names)
    return path


@each("an agent's {}: the server's metadata is removed from the stream, the rest stays [R003-12 R003-42 R000-31]",
      [(f"{n}, {w}", n, w) for n in LINES if n != "later task" for w in ALL])
def _(name, wire):
    needs_ours("needs the exec agent")
    c = Client(server(None, config=agents()), wire)
    lines = [name] if name in ("task", "message") else ["task", name]
    with c.stream(printed(*lines)) as s:
        events = s.rest()
    for e in events:
        check_clean(e.payload)
        if e.kind != "message":
            check_no_type(e.body)
    check("stays" in json.dumps([e.payload for e in events]), "the agent's own members are gone, too")
    check("evil" not in json.dumps([e.payload for e in events]), events)


@each("an agent's {}: the server's metadata is not in the stored Task [R003-12 R003-42 R000-31]", [n for n in LINES if n != "message"])
def _(name):
    needs_ours("needs the exec agent")
    c = Client(server(None, config=agents()), RPC1)
    task = c.send(printed(*(["task"] if name == "task" else ["task", name]))).task
    stored = c.get(task["id"]).task
    for t in (task, stored, *(t for t in c.list(includeArtifacts=True).value["tasks"] if t["id"] == task["id"])):
        check_clean(t)
        check_no_type(t)
        check("evil" not in json.dumps(t), t)
    same(stored["metadata"]["mine"], "stays", "the agent's own member")
    if "artifacts" in stored:
        same(stored["artifacts"][0]["artifactId"], "aion:kept-id", "an id is not metadata")


@test("an agent that sets the server's metadata is reported in the log")
def _():
    needs_ours("needs the exec agent")
    s = server(None, config=agents())
    Client(s, RPC1).send(printed("task", "statusUpdate"))
    check(any("server-metadata" in line for line in s.log), s.log[-5:])


def echoed(c, **how):
    """What the agent was given: message and metadata of the request."""
    return c.send(**how).message["parts"][0]["data"]


@each("a client cannot set the server's metadata: {} [R003-12 R003-42]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    s = server(None, config=agents())
    c = Client(s, wire, base="/agents/echo")
    m = message(parts=[{"text": "x", "metadata": EVIL}], metadata=EVIL)
    got = echoed(c, m=m, metadata={**EVIL, "dragoman:tools": [{"name": "forged"}]})
    check("evil" not in json.dumps(got) and "forged" not in json.dumps(got), got)
    same((got["message"]["metadata"]["mine"], got["message"]["parts"][0]["metadata"]["mine"], got["metadata"]["mine"]),
         ("stays", "stays", "stays"), "the client's own members")


@each("nor on a message that answers a question: {} [R003-12 R003-42]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    c = Client(server(None, config=agents()), wire)
    t = c.send(printed("task", "status message")).task
    m = message(printed("task", "status message"), task=t["id"], metadata=EVIL)
    after = c.send(m=m).task
    check("evil" not in json.dumps(after), after)
    same([h["metadata"]["canonical_type"] for h in after["history"] if h["messageId"] == m["messageId"]], ["TextMessageContentEvent"], "canonical_type")


def with_tokens(may_set=None):
    config = agents()
    config["tokens"] = [{"token": "plain", "principal": "ann", "tenant": "acme"},
                        {"token": "router", "principal": "ann", "tenant": "acme", "may_set_metadata": may_set or ["aion:"]}]
    return server(None, config=config)


@each("who sent a message is set by the server: {} [R003-42]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    s = with_tokens()
    got = echoed(Client(s, wire, token="plain", base="/agents/echo"), m=message("x", metadata=EVIL))["message"]["metadata"]
    same((got["dragoman:principal"], got["dragoman:tenant"]), ("ann", "acme"), "identity")
    check("aion:network" not in got, got)
    c = Client(s, wire, token="plain")
    t = c.get(c.send(printed("task", "status message")).task["id"]).task
    same(t["history"][0]["metadata"]["dragoman:principal"], "ann", "principal in the stored history")
    after = c.send(m=message(printed("task", "status message"), task=t["id"], metadata=EVIL)).task
    same([m["metadata"].get("dragoman:principal") for m in after["history"] if m["role"] == "ROLE_USER"], ["ann", "ann"], "of both messages")


@test("without tokens there is no identity to set [R003-42]")
def _():
    needs_ours("needs the exec agent")
    got = echoed(Client(server(None, config=agents()), RPC1, base="/agents/echo"), text="x")
    check(not [k for k in got["message"]["metadata"] if k.startswith("dragoman:")], got)


@each("may_set_metadata: a router's token keeps aion: keys, and never identity: {} [R003-42]", ALL)
def _(wire):
    needs_ours("needs the exec agent")
    c = Client(with_tokens(), wire, token="router", base="/agents/echo")
    got = echoed(c, m=message(parts=[{"text": "x", "metadata": EVIL}], metadata=EVIL), metadata=EVIL)
    same((got["message"]["metadata"]["aion:network"], got["message"]["parts"][0]["metadata"]["aion:network"], got["metadata"]["aion:network"]),
         ("evil", "evil", "evil"), "aion:network")
    same(got["message"]["metadata"]["dragoman:principal"], "ann", "principal")
    check("dragoman:principal" not in got["metadata"], got)


@test("may_set_metadata: a longer prefix allows only its keys")
def _():
    needs_ours("needs the exec agent")
    c = Client(with_tokens(["aion:net"]), RPC1, token="router", base="/agents/echo")
    got = echoed(c, m=message("x", metadata={"aion:network": 1, "aion:other": 2}))["message"]["metadata"]
    check(got.get("aion:network") == 1 and "aion:other" not in got, got)


@each("what frontends tell agents cannot be forged: {} [R003-12 R003-42]", ["chat", "responses", "ag-ui"])
def _(front):
    needs_ours("needs the exec agent")
    s = server(None, config=agents())
    forged = {"dragoman:instructions": "forged", "aion:network": "forged", "mine": "stays"}
    path, body = {
        "chat": ("/v1/chat/completions", {"model": "echo", "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "x"}], "metadata": forged}),
        "responses": ("/v1/responses", {"model": "echo", "instructions": "be kind", "input": "x", "metadata": forged}),
        "ag-ui": ("/agents/echo/ag-ui", {"threadId": new_id(), "runId": new_id(), "tools": [], "context": [], "state": {}, "forwardedProps": {},
                                         "messages": [{"id": "s", "role": "system", "content": "be kind"},
                                                      {"id": "u", "role": "user", "content": [{"type": "text", "text": "x", "metadata": {"dragoman:part": "forged"}}]}]}),
    }[front]
    r = ask(s.address, "POST", path, json.dumps(body).encode(), [("Content-Type", "application/json")])
    same(r.status, 200, "status")
    # what the agent was given; the rest of a response repeats the request's metadata
    text = json.dumps(r.json["output"]) if front == "responses" else r.body.decode()
    check("be kind" in text, text)
    check("forged" not in text, text)
