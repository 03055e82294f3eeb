"""Answers to `auth-required`: a credential that a caller sends all the same enters neither the log, the model nor a later task."""
import json

from lib import fronts, models
from lib.a2a import RPC1, Client, message, new_id, task_text
from lib.http import ask
from lib.models import Upstream, calls, text
from lib.server import Server, agent, folder, needs_ours, settings, stored_bytes
from lib.tap import check, each, same, test

SECRET = "hunter2-0f9a"


class World:
    """A model that requests to sign in once, then answers."""

    def __init__(self):
        needs_ours("only Dragoman has this agent")
        self.folder = folder()
        self.up = Upstream(lambda body, n: text("signed in") if models.results_of(body) or "later" in json.dumps(body) else calls(
            ("request_auth", {"reason": "Sign in first.", "url": "https://login.example/x"})))
        self.server = Server(None, store=f"sqlite:{self.folder}/tasks.db", config=settings(agents=[
            agent("llm", id="assistant", settings={"base_url": self.up.url, "model": "m", "request_auth": True})]))
        self.client = Client(self.server, RPC1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.__exit__()

    def check_hidden(self):
        """In no request to the model, no record, no file of the store."""
        check(len(self.up.bodies()) > 1, "the model was not called again")
        check(SECRET not in json.dumps(self.up.bodies()), "the model has it")
        for t in self.client.list(pageSize=100).value["tasks"]:
            check(SECRET not in json.dumps(self.client.get(t["id"]).task), "the task has it")
            check(SECRET not in ask(self.server.address, "GET", f"/debug/tasks/{t['id']}/records").body.decode(), "the records have it")
        check(SECRET not in "\n".join(self.server.log), "the operator's log has it")
        stored = stored_bytes(self.server.store)
        check(any(b"Sign in first." in content for content in stored.values()), "no database, or it cannot be searched")
        for name, content in stored.items():
            check(SECRET.encode() not in content, f"{name} has it")


def waiting(w, context=None):
    t = w.client.send("go", context=context).task
    same(t["status"]["state"], "TASK_STATE_AUTH_REQUIRED", "the state")
    return t


@each("A2A: the answer is not stored: {}", [
    ("a text", [{"text": f"my password is {SECRET}"}]), ("data", [{"data": {"token": SECRET}}]),
    ("a text that is longer than a digest", [{"text": SECRET * 40}]),
    ("a file", [{"raw": "aHVudGVyMi0wZjlh", "mediaType": "text/plain", "filename": SECRET}])])
def _(parts):
    with World() as w:
        t = waiting(w)
        t = w.client.send(m=message(task=t["id"], parts=parts)).task
        same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "signed in"), "the end")
        answer = [m for m in t["history"] if m["role"] == "ROLE_USER"][1]
        same(answer["parts"], [{"data": {"type": "auth-response", "action": "accept"}}], "the answer in the history")
        w.client.send("later", context=t["contextId"])
        w.check_hidden()


@test("A2A: the same answer again, also after kill -9, is a resend")
def _():
    with World() as w:
        t = waiting(w)
        m = message(task=t["id"], parts=[{"text": SECRET}])
        w.client.send(m=m)
        for restarts in (False, True):
            if restarts:
                w.server.kill()
                w.server.restart()
            n = len(w.up.bodies())
            same(w.client.send(m=m).task["status"]["state"], "TASK_STATE_COMPLETED", "the state")
            same(len(w.up.bodies()), n, "model calls")
        w.check_hidden()


@each("A2A: declined: {}", [("a word", [{"text": "no"}]), ("data", [{"data": {"action": "decline", "token": SECRET}}])])
def _(parts):
    with World() as w:
        t = waiting(w)
        t = w.client.send(m=message(task=t["id"], parts=parts)).task
        same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")
        check("declined" in models.results_of(w.up.bodies()[-1])[0][1], w.up.bodies()[-1])
        w.check_hidden()


def answer_ag_ui(w):
    thread = new_id("thread")
    first = fronts.ag_ui(w.server, "go", thread=thread)
    interrupt, = first.frames[-1].json["outcome"]["interrupts"]
    with fronts.stream(w.server, "/ag-ui", fronts.run_input(None, thread=thread, resume=[
            {"interruptId": interrupt["id"], "status": "resolved", "payload": {"text": SECRET}}])) as s:
        return fronts.fold_ag_ui(s.rest()).text


def answer_responses(w):
    first = fronts.responses(w.server, "go", model="assistant")
    return fronts.responses(w.server, SECRET, model="assistant", previous_response_id=first.body["id"]).text


def answer_responses_streamed(w):
    first = fronts.responses_stream(w.server, "go", model="assistant")
    return fronts.responses_stream(w.server, SECRET, model="assistant", previous_response_id=first.body["id"]).text


def answer_conversation(w):
    id = fronts.post(w.server, "/v1/conversations", {}).json["id"]
    fronts.responses(w.server, "go", model="assistant", conversation=id)
    return fronts.responses(w.server, SECRET, model="assistant", conversation=id).text


def answer_chat(w):
    first = fronts.chat(w.server, "go", model="assistant")
    said = first.body["choices"][0]["message"]
    return fronts.chat(w.server, None, model="assistant", messages=[{"role": "user", "content": "go"}, said, {"role": "user", "content": SECRET}],
                       headers=[("X-A2A-Context-Id", first.body["a2a"]["context_id"])]).text


def answer_ai_sdk(w):
    chat, user = new_id("chat"), {"id": new_id("u"), "role": "user", "parts": [{"type": "text", "text": "go"}]}
    fronts.ai_sdk(w.server, None, chat_id=chat, messages=[user])
    list = ask(w.server.address, "GET", f"/ai-sdk/{chat}/messages").json
    answer = {"id": new_id("u"), "role": "user", "parts": [{"type": "text", "text": SECRET}]}
    return fronts.ai_sdk(w.server, None, chat_id=chat, messages=[*list, answer]).text


@each("{}: the answer is not stored", [("AG-UI", answer_ag_ui), ("Responses", answer_responses), ("Responses, streamed", answer_responses_streamed),
                                       ("a conversation of Responses", answer_conversation), ("Chat", answer_chat), ("AI SDK", answer_ai_sdk)])
def _(answer):
    with World() as w:
        check("signed in" in answer(w), "the answer")
        w.check_hidden()
