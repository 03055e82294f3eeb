"""Clients of PyPI's `openai` at work until stdin ends: prints each operation as a line of JSON. usage: sdk_openai.py URL SEED CLIENTS"""
import random
import sys
import threading
import time

from kit import clients
from kit.sdk import Printer, is_over, stopped

import openai
from lib.a2a import new_id

ENDS = ("response.completed", "response.failed", "response.incomplete")


def one(sdk, name, pick, out):
    words, began, id, last, end = clients.prompt(pick, new_id("tag")), time.monotonic(), None, None, None
    while end is None and time.monotonic() - began < clients.PATIENCE:
        start, records, after = time.monotonic(), [], last
        try:
            stream = sdk.responses.create(model="assistant", input=words, background=True, stream=True) if id is None else \
                sdk.responses.retrieve(id, stream=True, starting_after=last)
            for event in stream:
                records.append((event.sequence_number, event.to_dict()))
                last = event.sequence_number
                if hasattr(event, "response"):
                    id = event.response.id
                if event.type in ENDS:
                    end = event.type
        except openai.NotFoundError as e:
            out(name, "fault", start, text=f"the response {id} is not found: {e}")
            return
        except Exception:
            pass
        if records:
            out(name, "numbers", start, response=id, after=after, records=records)
        if end is None:
            time.sleep(0.05 + pick.random() * 0.1)
    while end and time.monotonic() - began < clients.PATIENCE:
        start = time.monotonic()
        try:
            r = sdk.responses.retrieve(id)
        except Exception:
            time.sleep(0.1)
            continue
        if r.status != end.removeprefix("response."):
            out(name, "fault", start, text=f"{id} is {r.status} behind {end}")
        out(name, "text", start, task=(r.metadata or {}).get("a2a_task_id"), protocol="openai", text=r.output_text, want=clients.TEXT)
        return


def work(url, name, pick):
    sdk, out = openai.OpenAI(base_url=url + "/v1", api_key="none", timeout=clients.WAIT, max_retries=0), Printer()
    while not is_over():
        one(sdk, name, pick, out)
        time.sleep(pick.random() * 0.1)


def main():
    url, seed, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
    stopped()
    threads = [threading.Thread(target=work, args=(url, f"openai-{i}", random.Random(f"{seed} openai {i}"))) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


main()
