"""Clients of a2a-sdk at work until stdin ends: prints each operation as a line of JSON. usage: sdk_a2a.py URL SEED CLIENTS"""
import asyncio
import json
import logging
import random
import re
import sys
import time

from kit import clients, history
from kit.sdk import Printer, is_over, stopped

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict, ParseDict
from lib.a2a import TERMINAL, message, new_id, text_of

logging.disable(logging.CRITICAL)


def plain(event):
    """As JSON. Protobuf leaves out the fraction of a second if it is zero: the log has it always."""
    return json.loads(re.sub(r'("timestamp": "[^".]*)Z"', r'\1.000Z"', json.dumps(MessageToDict(event))))


async def work(url, name, pick, out):
    http = httpx.AsyncClient(timeout=clients.WAIT)
    while not is_over():
        try:
            sdk = await ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC"])).create_from_url(url)
            break
        except Exception:
            await asyncio.sleep(0.1)
    while not is_over():
        await one(sdk, name, pick, out)
        await asyncio.sleep(pick.random() * 0.1)
    await http.aclose()


async def one(sdk, name, pick, out):
    words = clients.prompt(pick, new_id("tag"))
    m, task, state, began = message(words), None, None, time.monotonic()
    while state not in TERMINAL and time.monotonic() - began < clients.PATIENCE:
        start, payloads, is_snapshot = time.monotonic(), [], task is not None
        try:
            stream = sdk.subscribe(ParseDict({"id": task}, pb.SubscribeToTaskRequest())) if is_snapshot else \
                sdk.send_message(ParseDict({"message": m}, pb.SendMessageRequest()))
            async for event in stream:
                payloads.append(plain(event))
                (kind, body), = payloads[-1].items()
                task = body["id"] if kind == "task" else body["taskId"]
                state = body.get("status", {}).get("state", state)
        except Exception as e:
            if is_snapshot and "terminal" in str(e):
                state = "TASK_STATE_COMPLETED"
        if payloads:
            out(name, "events", start, task=task, payloads=payloads, snapshot=is_snapshot)
            if not is_snapshot:
                out(name, "send", start, task=task, message=m["messageId"])
        if state not in TERMINAL:
            await asyncio.sleep(0.05 + pick.random() * 0.1)
    while task and time.monotonic() - began < clients.PATIENCE:
        start = time.monotonic()
        try:
            t = plain(await sdk.get_task(ParseDict({"id": task}, pb.GetTaskRequest())))
        except Exception:
            await asyncio.sleep(0.1)
            continue
        out(name, "get", start, task=task, view=history.view_of(t))
        out(name, "text", start, task=task, protocol="a2a-sdk", text=text_of(t["status"].get("message")), want=clients.TEXT)
        return


async def main():
    url, seed, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stopped()
    await asyncio.gather(*[work(url, f"a2a-sdk-{i}", random.Random(f"{seed} a2a {i}"), Printer()) for i in range(n)])


asyncio.run(main())
