"""A graph in Python and one in JavaScript that do the same: text of a model, document 003's usage example, every emit function with inbox and outbox, a question. Through
a2a-sdk and @a2a-js/sdk, streaming and not, and through every other protocol: the same text once."""
import asyncio
import base64
import json
import os
import subprocess

import common
from lib import fronts, server
from lib.a2a import message
from lib.tap import check, each, same

COMPLETED, ASKS = "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
REPORT = [{"url": "https://example.com/report.pdf", "mediaType": "application/pdf"}]
# what is sent; the answer's text and data; the text that is streamed; artifacts; metadata; what the history has once
SENT = [{"text": "tokens"}, {"text": "example"}, {"text": "everything", "data": {"x": 1}}, {"text": "city", "answer": "Bern"}]
WANTED = [("Hello there friend", [], "Hello there friend", {}, {}, "Hello there friend"),
          ("Processing complete", [], "", {"file": REPORT, "analysis": [{"data": {"status": "success", "results": [1, 2]}}]}, {"progress": 100}, "Processing complete"),
          ("You sent 2 part(s)", [{"answer": 42}], "thinking", {"hello.txt": b"Hello", "numbers": [{"data": [1, 2]}]}, {"progress": 10}, "You sent 2 part(s)"),
          ("Going to Bern, Bern", [], "Going to Bern, Bern", {}, {}, "Going to Bern, Bern")]


def javascript():
    file = os.path.join(common.FOLDER, "../langgraph-js/projects/server/langgraph.json")
    return server.server(None, config=server.settings(agents=[server.agent("langgraph", id="demo", settings={"config": os.path.abspath(file)})]))


LANGUAGES = [("Python", common.shared), ("JavaScript", javascript)]


def fold(events, forgets=False):
    """The Task that a client has at the end, and the streamed text. forgets: the client does not say `append`."""
    task, deltas = json.loads(json.dumps(events[0]["task"])), ""
    artifacts = {}
    for e in events[1:]:
        if status := e.get("statusUpdate"):
            task["status"] = status["status"]
            task["metadata"] = {**task.get("metadata", {}), **status.get("metadata", {})}
            continue
        update = e["artifactUpdate"]
        new = update["artifact"]
        if new["artifactId"] == "aion:stream-delta":
            deltas = (deltas if update.get("append") else "") + "".join(p.get("text", "") for p in new["parts"])
        elif (update.get("append") or forgets) and new["artifactId"] in artifacts:
            artifacts[new["artifactId"]]["parts"] += new["parts"]
        else:
            artifacts[new["artifactId"]] = new
    return {**task, "artifacts": list(artifacts.values())}, deltas


def data_of(part):
    """0.3 has only objects in data parts: a list comes as {"value": list}."""
    data = part["data"]
    return data["value"] if isinstance(data, dict) and set(data) == {"value"} else data


def parts_of(artifact):
    if any("raw" in p for p in artifact["parts"]):
        return b"".join(base64.b64decode(p["raw"]) for p in artifact["parts"])
    return [{"data": data_of(p)} if "data" in p else {"url": p["url"], "mediaType": p["mediaType"]} for p in artifact["parts"]]


def check_task(task, wanted, forgets, has_history, where):
    text, data, _, artifacts, metadata, once = wanted
    answer = task["status"].get("message", {"parts": []})
    same(task["status"]["state"], COMPLETED, where)
    if answer["parts"] or data:
        same(["".join(p.get("text", "") for p in answer["parts"]), [p["data"] for p in answer["parts"] if "data" in p]], [text, data], f"{where}: the answer")
    found = {a.get("name", "") if not forgets else i: parts_of(a) for i, a in enumerate(task.get("artifacts", []))}
    same(found, artifacts if not forgets else dict(enumerate(artifacts.values())), f"{where}: artifacts")
    same({k: task.get("metadata", {}).get(k) for k in ("progress", "aion:network")}, {"progress": metadata.get("progress"), "aion:network": None}, f"{where}: metadata")
    if has_history:
        texts = ["".join(p.get("text", "") for p in m["parts"]) for m in task["history"] if m["role"] == "ROLE_AGENT"]
        same([t for t in texts if "?" not in t], [once], f"{where}: the agent's messages")


def check_all(results):
    """results: as sdks.mjs prints them."""
    for row in results:
        for sent, seen, wanted in zip(SENT, row["seen"], WANTED):
            where = f"{row['client']}: {sent['text']}"
            if sent.get("answer"):
                same([fold(seen["events"][0])[0]["status"]["state"], seen["tasks"][0]["status"]["state"]], [ASKS, ASKS], f"{where}: the question")
            task, deltas = fold(seen["events"][-1], row["forgets"])
            check_task(task, wanted, row["forgets"], False, f"{where}, streamed")
            if not row["forgets"]:
                same(deltas, wanted[2], f"{where}: the streamed text")
            check_task(seen["tasks"][-1], wanted, row["forgets"], True, f"{where}, sent")


@each("{} graph, @a2a-js/sdk 1.x and 0.3, streaming and not: text, the usage example, every emit function, a question [R003-04 R003-20 R003-28 R003-39]", LANGUAGES, timeout=300)
def _(start):
    ran = subprocess.run(["node", os.path.join(common.HERE, "sdks.mjs"), start().url + "/"], input=json.dumps(SENT), capture_output=True, text=True, timeout=250, check=False)
    check(ran.returncode == 0, ran.stderr)
    results = json.loads(ran.stdout)
    same(len(results), 4, "clients")
    check_all(results)


async def python_sdk(url):
    """The same through a2a-sdk."""
    import httpx
    from a2a.client import ClientConfig, ClientFactory
    from a2a.types import a2a_pb2 as pb
    from google.protobuf.json_format import MessageToDict, ParseDict
    out = []

    async def say(client, m):
        return [MessageToDict(e) async for e in client.send_message(ParseDict({"message": m}, pb.SendMessageRequest()))]

    async def turns(client, sent):
        parts = [{"text": sent["text"]}] + ([{"data": sent["data"]}] if "data" in sent else [])
        told = [await say(client, message(sent["text"], parts=parts))]
        if "answer" in sent:
            task = told[0][0]["task"]
            told.append(await say(client, message(sent["answer"], task=task["id"], context=task["contextId"])))
        return told
    async with httpx.AsyncClient(timeout=60) as http:
        streaming, sending = [await ClientFactory(ClientConfig(httpx_client=http, streaming=s)).create_from_url(url) for s in (True, False)]
        for sent in SENT:
            events, tasks = await turns(streaming, sent), await turns(sending, sent)
            same([len(t) for t in tasks], [1] * len(tasks), "answers of a send")
            out.append({"events": events, "tasks": [t[0]["task"] for t in tasks]})
    return [{"client": "a2a-sdk", "forgets": False, "seen": out}]


@each("{} graph, a2a-sdk, streaming and not: text, the usage example, every emit function, a question [R003-04 R003-20 R003-28 R003-39]", LANGUAGES, timeout=300)
def _(start):
    check_all(asyncio.run(python_sdk(start().url)))


@each("{} graph: the same text once through Chat, Responses, AG-UI and the AI SDK [R003-27]", LANGUAGES, timeout=300)
def _(start):
    for text, want in (("tokens", "Hello there friend"), ("example", "Processing complete"), ("everything", "You sent 1 part(s)")):
        for name, front in fronts.ALL.items():
            told = front(start(), text)
            same(told.text.count(want), 1, f"{name}: {text}: {told.text!r}")


if __name__ == "__main__":
    common.main()
