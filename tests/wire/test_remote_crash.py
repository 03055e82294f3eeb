"""kill -9 of us and of a remote agent at random moments: each task ends, no message is sent twice, no text appears twice.

DRAGOMAN_KILLS says how often (10; `make soak`: 100)."""
import os
import threading
import time

from lib.a2a import ONE, TERMINAL, Client, artifact_texts, new_id, task_text
from lib.agents import DEMO_TEXT
from lib.http import Closed
from lib.server import Server, agent, folder, needs_ours, settings
from lib.tap import Failure, check, same, soon, test
from test_resume import rng

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "10"))
# `resends`: the other server recognises a message that it has seen
AGENTS = {"careful": {}, "resends": {"resend": True}, "older": {"protocol": "a2a-0.3", "binding": "rest"}}
DOUBT = "the message may have been received"


def remote_and_front():
    behind = Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=[agent("demo", settings={"pace": 0.3})]))
    rows = [agent("a2a", id=id, settings={"url": behind.url, "reconnect_timeout": 30, **how}) for id, how in AGENTS.items()]
    return behind, Server(None, store=f"sqlite:{folder()}/tasks.db", config=settings(agents=rows))


class Caller:
    """Sends one message after the other to an agent, until a server is killed."""

    def __init__(self, server, agent, gone):
        self.client, self.agent, self.gone, self.faults = Client(server, ONE[0], base=f"/agents/{agent}"), agent, gone, []
        self.sent = {}  # the text of a message: the id of its task, None if it is not known

    def run(self, first_wait):
        time.sleep(first_wait)
        while not self.gone.is_set():
            text = f"{DEMO_TEXT} {new_id('n')}"
            self.sent[text] = None
            try:
                with self.client.stream(text) as events:
                    for _ in events:
                        self.sent[text] = events.seen[0].body["id"]
            except (Closed, ConnectionError, OSError):
                return
            except Failure as e:  # a server that was killed leaves half a line
                if not self.gone.wait(1):
                    self.faults.append(str(e))
                return


def new_tasks(c, seen):
    """The tasks that are not in `seen`, by the text of their first message, each at its end."""
    found, token = {}, None
    while token != "":
        page = c.list(pageSize=100, **({"pageToken": token} if token else {})).value
        for id in {t["id"] for t in page["tasks"]} - seen:
            seen.add(id)
            soon(lambda: c.get(id).state in TERMINAL, lambda: f"{c.base}: {id} is {c.get(id).state}", 60, step=0.1)
            t = c.get(id).task
            found.setdefault(t["history"][0]["parts"][0]["text"], []).append(t)
        token = page["nextPageToken"]
    return found


def check_task(task, agent, whole, who, remote):
    """A task of ours after the restart, and the tasks of the other server that got its message."""
    state, error = task["status"]["state"], task.get("metadata", {}).get("error", "")
    text = "".join(artifact_texts(task))
    what = f"{agent}, kill of {who}: {task['id']} {state} {error}"
    check(len(remote) <= 1, f"{what}: the message is in {len(remote)} tasks")
    for t in remote:
        same(len([m for m in t["history"] if m["role"] == "ROLE_USER"]), 1, f"{what}: messages of the remote task")
    if state == "TASK_STATE_COMPLETED":
        same((text, task_text(task)), (whole, whole), f"{what}: the text")
        return
    same(state, "TASK_STATE_FAILED", what)
    check(error and whole.startswith(text), f"{what}: {text}")
    if who == "us":  # then nothing is lost, unless it is not known whether the message arrived
        check(DOUBT in error and agent != "resends", what)


@test(f"kill -9 of us and of the remote agent, {KILLS} times: each task ends, each message is sent once, each text appears once",
      timeout=120 + 60 * KILLS)
def _():
    needs_ours("type: a2a")
    pick = rng("remote crash")
    behind, before = remote_and_front()
    with behind, before:
        whole = task_text(Client(behind, ONE[0]).send(DEMO_TEXT).task)
        ends, seen = {}, set()
        for n in range(KILLS):
            gone = threading.Event()
            callers = [Caller(before, id, gone) for id in AGENTS for _ in range(3)]
            threads = [threading.Thread(target=c.run, args=(pick.random() * 0.5,), daemon=True) for c in callers]
            for t in threads:
                t.start()
            who = ("us", "the remote agent", "both")[n % 3]
            time.sleep(0.1 + pick.random() * 1.5)
            gone.set()
            killed = {"us": [before], "the remote agent": [behind], "both": [before, behind]}[who]
            for s in killed:
                s.kill()
            time.sleep(pick.random() * 0.5)
            for s in reversed(killed) if pick.random() < 0.5 else killed:
                s.restart()
            for t in threads:
                t.join(60)
                check(not t.is_alive(), "a stream does not end")
            for c in callers:
                check(not c.faults, c.faults[:1])
            ours = {id: new_tasks(Client(before, ONE[0], base=f"/agents/{id}"), seen) for id in AGENTS}
            there = new_tasks(Client(behind, ONE[0]), seen)
            for c in callers:
                for text, id in c.sent.items():
                    tasks = ours[c.agent].get(text, [])
                    check(tasks or not id, f"{id} is missing")
                    check(len(tasks) <= 1, "two tasks of ours have one message")
                    for t in tasks:
                        check_task(t, c.agent, whole, who, there.get(text, []))
                        key = f"{who}: {t['status']['state']}"
                        ends[key] = ends.get(key, 0) + 1
        print("# " + ", ".join(f"{k} {v}" for k, v in sorted(ends.items())))
