"""The agent type llm and the servers of its model: requests, retries, failover, faults, cancel. The servers are scripted
(lib/models.py)."""
import json
import subprocess
import threading
import time

from lib import fronts, models
from lib.a2a import RPC1, Client, artifact_texts, message, task_text
from lib.models import Upstream, calls, cut, error, responses_text, text
from lib.server import DRAGOMAN, ENV, Server, agent, folder, settings
from lib.tap import check, each, same, soon, test

QUICK = {"connect_timeout": 5}


def in_front(up, *others, env=None, **more):
    rows = [agent("llm", id="assistant", settings={"base_url": up.url, "model": "m-1", **QUICK, **more}), *others]
    return Server(None, config=settings(agents=rows), env=env)


# ---- requests --------------------------------------------------------------------------------------------------------------

@test("the request: model, instructions, message, stream, credentials, trace and task")
def _():
    up = Upstream(lambda body, n: text("fine"))
    with in_front(up, env={"THE_KEY": "sk-very-secret"}, api_key_env="THE_KEY", instructions="Be brief.", parameters={"temperature": 0.5}) as s:
        t = Client(s, RPC1).send("hello").task
        same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "fine"), "the answer")
        (path, headers, body), = up.requests
        same(path, "/v1/chat/completions", "the path")
        same(headers["Authorization"], "Bearer sk-very-secret", "the key")
        same(headers["X-Dragoman-Task"], t["id"], "the task")
        check(headers["traceparent"].startswith(f"00-{t['id'].replace('-', '')}-"), headers)
        same((body["model"], body["stream"], body["temperature"]), ("m-1", True, 0.5), "members")
        same([(m["role"], m["content"]) for m in body["messages"]], [("system", "Be brief."), ("user", "hello")], "messages")


@test("a query in base_url stays at the end of the URL")
def _():
    up = Upstream(lambda body, n: text("fine"))
    up.url += "/?api-version=7"
    with in_front(up) as s:
        same(task_text(Client(s, RPC1).send("hello").task), "fine", "the answer")
        same(up.requests[0][0], "/v1/chat/completions?api-version=7", "the path")


@test("a key in a file; neither the log nor errors contain a key")
def _():
    up = Upstream(lambda body, n: error(401, "the key sk-in-a-file is wrong"))
    where = folder() + "/key"
    with open(where, "w", encoding="utf-8") as f:
        f.write("sk-in-a-file\n")
    with in_front(up, api_key_file=where) as s:
        t = Client(s, RPC1).send("hello").task
        same(up.requests[0][1]["Authorization"], "Bearer sk-in-a-file", "the key")
        same(t["status"]["state"], "TASK_STATE_FAILED", "the state")
        check("sk-in-a-file" not in json.dumps(t), t)
        check("sk-in-a-file" not in "".join(s.log), "the log")


@test("the API responses")
def _():
    up = Upstream(lambda body, n: responses_text("from responses"))
    with in_front(up, api="responses", instructions="Be brief.") as s:
        same(task_text(Client(s, RPC1).send("hello").task), "from responses", "the answer")
        path, _, body = up.requests[0]
        same((path, body["model"], body["instructions"]), ("/v1/responses", "m-1", "Be brief."), "the request")


@test("parameters of a Chat caller reach the model, and have priority")
def _():
    up = Upstream(lambda body, n: text('{"a": 1}'))
    with in_front(up, parameters={"temperature": 0.5, "seed": 3}) as s:
        r = fronts.post(s, "/v1/chat/completions", {"model": "assistant", "messages": [{"role": "user", "content": "x"}], "user": "ann",
                                                    "temperature": 0.1, "response_format": {"type": "json_object"}})
        same(r.get("x-dragoman-ignored"), "user", "ignored members")
        body, = up.bodies()
        same((body["temperature"], body["seed"], body["response_format"]), (0.1, 3, {"type": "json_object"}), "parameters")


@test("instructions of a Chat caller, and the context of an AG-UI client, follow those of the agent")
def _():
    up = Upstream(lambda body, n: text("fine"))
    with in_front(up, instructions="Be brief.") as s:
        fronts.chat(s, None, model="assistant", messages=[{"role": "system", "content": "Speak French."}, {"role": "user", "content": "x"}])
        fronts.ag_ui(s, "x", context=[{"description": "the city", "value": "Paris"}])
        first, second = [b["messages"][0]["content"] for b in up.bodies()]
        check("Be brief." in first and "Speak French." in json.dumps(up.bodies()[0]["messages"]), up.bodies()[0])
        check("Be brief." in second and "the city: Paris" in second, second)


@each("a server that rejects {} gets the request again without it, and no further request has it", [
    ("stream_options", "stream_options", "Unknown parameter: 'stream_options'."),
    ("max_completion_tokens", "max_completion_tokens", "Unrecognized request argument supplied: max_completion_tokens")])
def _(member, words):
    up = Upstream(lambda body, n: error(400, words, param=member) if member in body else text("fine"))
    with in_front(up, parameters={"max_completion_tokens": 100}, retries=0) as s:
        c = Client(s, RPC1)
        for _ in range(2):
            same(task_text(c.send("hello").task), "fine", "the answer")
        same([member in b for b in up.bodies()], [True, False, False], "the requests")


# ---- retries and failover ---------------------------------------------------------------------------------------------------

FAULTS = {"status 500": error(500), "status 503 with Retry-After": error(503, headers={"Retry-After": "0"}),
          "status 429": error(429, headers={"Retry-After": "0"}), "a lost connection": models.Answer(cut=True)}


@each("{} before any text: the call is repeated, and the text is shown once", list(FAULTS))
def _(fault):
    up = Upstream(lambda body, n: FAULTS[fault] if n < 2 else text("at last"))
    with in_front(up, retries=2) as s:
        t = Client(s, RPC1).send("hello").task
        same((t["status"]["state"], artifact_texts(t), len(up.requests)), ("TASK_STATE_COMPLETED", ["at last"], 3), "the task")


@test("a connection that is lost behind some text fails the task; the text stays, once")
def _():
    up = Upstream(lambda body, n: cut("some words"))
    with in_front(up, retries=3) as s:
        t = Client(s, RPC1).send("hello").task
        same((t["status"]["state"], artifact_texts(t), len(up.requests)), ("TASK_STATE_FAILED", ["some words"], 1), "the task")


@test("an error that a repetition does not change is not repeated")
def _():
    up = Upstream(lambda body, n: error(404, "no such model"))
    with in_front(up, retries=3) as s:
        t = Client(s, RPC1).send("hello").task
        same((t["status"]["state"], len(up.requests)), ("TASK_STATE_FAILED", 1), "the task")
        check("no such model" in t["metadata"]["error"], t["metadata"])
        soon(lambda: any("no such model" in line and t["id"] in line and "warn" in line for line in s.log), "the operator's log has no warning", 30)


@test("failover: the next server answers when the first is out of order")
def _():
    first, second = Upstream(lambda body, n: error(500)), Upstream(lambda body, n: responses_text("from the second"))
    with in_front(first, retries=1, upstreams=[{"base_url": second.url, "api": "responses", "model": "m-2"}]) as s:
        t = Client(s, RPC1).send("hello").task
        same((task_text(t), len(first.requests), len(second.requests)), ("from the second", 2, 1), "the answer")
        same(second.bodies()[0]["model"], "m-2", "the model")


def thinks_then_calls(body, n):
    """A call with a signature, behind some reasoning; then an answer."""
    if n:
        return text("done")
    answer = calls(("now", {}))
    answer.frames.insert(0, {"choices": [{"index": 0, "delta": {"reasoning_content": "I need the time."}}]})
    answer.frames[1]["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "signed"}}
    return answer


NOW = [{"exec": {"name": "now", "command": ["echo", "noon"], "description": "the time"}}]


@each("reasoning is sent back only if the setting send_reasoning is {}", [("false", False), ("true", True)])
def _(wanted):
    up = Upstream(thinks_then_calls)
    with in_front(up, tools=NOW, send_reasoning=wanted) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
    turn = next(m for m in up.bodies()[1]["messages"] if m["role"] == "assistant")
    same(turn.get("reasoning_content"), "I need the time." if wanted else None, "the reasoning")
    same(turn["tool_calls"][0].get("extra_content"), {"google": {"thought_signature": "signed"}}, "the signature")


@test("failover: the next server does not get the signatures of the first")
def _():
    first = Upstream(lambda body, n: thinks_then_calls(body, n) if n == 0 else error(500))
    second = Upstream(lambda body, n: text("from the second"))
    with in_front(first, tools=NOW, retries=0, upstreams=[{"base_url": second.url, "model": "m-2"}]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "from the second", "the answer")
    check("signed" in json.dumps(first.bodies()[1]), "the first server gets its own signature")
    check("signed" not in json.dumps(second.bodies()[0]), second.bodies()[0])


@test("failover when nothing listens")
def _():
    second = Upstream(lambda body, n: text("from the second"))
    rows = [agent("llm", id="assistant", settings={"base_url": "http://127.0.0.1:9/v1", "model": "x", "retries": 0,
                                                   "upstreams": [{"base_url": second.url, "model": "m-2"}]})]
    with Server(None, config=settings(agents=rows)) as s:
        same(task_text(Client(s, RPC1).send("hello").task), "from the second", "the answer")


# ---- tools -------------------------------------------------------------------------------------------------------------------------

@test("parallel calls of tools: each result is with its call, in the order of the calls")
def _():
    def script(body, n):
        if n == 0:
            return calls(("desk", {"message": "echo one"}), ("desk", {"message": "echo two"}), ("desk", {"message": "echo three"}))
        return text("done")
    up = Upstream(script)
    with in_front(up, agent("demo", id="desk"), tools=[{"agent": "desk"}], limits={"parallel_tools": 2}) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        results = models.results_of(up.bodies()[1])
        same([name for name, _ in results], ["desk"] * 3, "the results")
        same([words in r for words, (_, r) in zip(("one", "two", "three"), results)], [True] * 3, results)


@test("arguments that do not fit the schema are explained to the model")
def _():
    up = Upstream(lambda body, n: calls(("desk", {"massage": "x"})) if n == 0 else text("done"))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        (_, result), = models.results_of(up.bodies()[1])
        check("message" in result and "massage" in result, result)


@test("a tool that does not exist, and arguments that are not JSON, are results with an explanation")
def _():
    up = Upstream(lambda body, n: calls(("nothing", {}), ("desk", "{not json")) if n == 0 else text("done"))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}]) as s:
        same(task_text(Client(s, RPC1).send("go").task), "done", "the answer")
        same(len(models.results_of(up.bodies()[1])), 2, "the results")


@test("a loop that never ends is ended by max_iterations")
def _():
    up = Upstream(lambda body, n: calls(("desk", {"message": "again"})))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}], limits={"max_iterations": 3}) as s:
        t = Client(s, RPC1).send("go").task
        same(t["status"]["state"], "TASK_STATE_FAILED", t["status"])
        check(len(up.requests) <= 4, f"{len(up.requests)} model calls")


@test("a token limit ends the task")
def _():
    up = Upstream(lambda body, n: calls(("desk", {"message": "again"})) if n < 5 else text("done"))
    up.script = lambda body, n: models.Answer(calls(("desk", {"message": "x"})).frames[:-1] + [
        {"choices": [], "usage": {"prompt_tokens": 60, "completion_tokens": 5, "total_tokens": 65}}, "[DONE]"])
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}], limits={"max_tokens": 100}) as s:
        t = Client(s, RPC1).send("go").task
        same((t["status"]["state"], len(up.requests)), ("TASK_STATE_FAILED", 2), t["status"])


@test("a forbidden tool rejects the task")
def _():
    up = Upstream(lambda body, n: calls(("desk", {"message": "x"})))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}], forbid=["desk"]) as s:
        same(Client(s, RPC1).send("go").task["status"]["state"], "TASK_STATE_REJECTED", "the state")


# ---- approvals -----------------------------------------------------------------------------------------------------------------------

def approval_of(task):
    found = [p["data"] for p in task["status"]["message"]["parts"] if p.get("data", {}).get("type") == "approval-request"]
    same(len(found), 1, f"requests for approval in {task['status']}")
    return found[0]


@each("approval in A2A: {}", [("approved", True), ("denied", False)])
def _(approved):
    up = Upstream(lambda body, n: calls(("desk", {"message": "delete all"})) if n == 0 else text("done"))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}], approve=["desk"]) as s:
        c = Client(s, RPC1)
        t = c.send("go").task
        same(t["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the state")
        request = approval_of(t)
        same((request["tool"], request["arguments"]), ("desk", {"message": "delete all"}), "the request")
        t = c.send(m=message(task=t["id"], parts=[{"data": {"type": "approval", "id": request["id"], "approved": approved}}])).task
        same((t["status"]["state"], task_text(t)), ("TASK_STATE_COMPLETED", "done"), "the end")
        (_, result), = models.results_of(up.bodies()[1])
        same("Hello" in result, approved, result)


@each("text in front of a request for approval is shown, and stays, through {}", [(n, f) for n, f in fronts.ALL.items()])
def _(front):
    up = Upstream(lambda body, n: calls(("desk", {"message": "x"}), words="I call the desk.") if n == 0 else text("done"))
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}], approve=["desk"]) as s:
        told = front(s, "go", **({} if front in (fronts.ag_ui, fronts.ai_sdk) else {"model": "assistant"}))
        check(told.text.startswith("I call the desk.") and "Answer yes or no." in told.text, told.text)


# ---- cancel --------------------------------------------------------------------------------------------------------------------------

def canceled_quickly(c, task):
    since = time.monotonic()
    same(c.cancel(task).state, "TASK_STATE_CANCELED", "the state")
    return time.monotonic() - since


@test("cancel during a model call: the connection is closed, the text stays")
def _():
    up = Upstream(lambda body, n: text("word " * 600, pause=0.05))
    with in_front(up) as s:
        c = Client(s, RPC1)
        with c.stream("go") as events:
            events.until(lambda e: e.kind == "artifactUpdate")
            canceled_quickly(c, events.seen[0].body["id"])
            seen = events.rest()
        chunks = [e.body for e in seen if e.kind == "artifactUpdate"]
        check(chunks[-1].get("lastChunk"), chunks[-1])
        soon(lambda: up.open == 0, "the request is still open", 10)


@test("cancel while the model has not answered")
def _():
    gate = threading.Event()
    up = Upstream(lambda body, n: text("late", gate=lambda h: gate.wait(30)))
    with in_front(up) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: up.requests, "no request")
        canceled_quickly(c, t["id"])
        gate.set()


@test("cancel during an agent of another server: its task is canceled, too")
def _():
    behind = Server(None, config=settings(agents=[agent("demo")]))
    up = Upstream(lambda body, n: calls(("127_0_0_1", {"message": "slow 30"})))
    with behind, in_front(up, tools=[{"agent": behind.url}]) as s:
        c, desk = Client(s, RPC1), Client(behind, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: desk.list().value["tasks"], "no task of the other agent")
        canceled_quickly(c, t["id"])
        soon(lambda: desk.list().value["tasks"][0]["status"]["state"] == "TASK_STATE_CANCELED",
             lambda: desk.list().value["tasks"][0]["status"], 10)
        s.stop_well()


@test("cancel during a sub-agent: its task is canceled, too")
def _():
    up = Upstream(lambda body, n: calls(("desk", {"message": "slow 30"})))
    with in_front(up, agent("demo", id="desk"), tools=[{"agent": "desk"}]) as s:
        c, desk = Client(s, RPC1), Client(s, RPC1, base="/agents/desk")
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: desk.list().value["tasks"], "no task of the sub-agent")
        canceled_quickly(c, t["id"])
        soon(lambda: desk.list().value["tasks"][0]["status"]["state"] == "TASK_STATE_CANCELED",
             lambda: desk.list().value["tasks"][0]["status"], 10)


# ---- steering ------------------------------------------------------------------------------------------------------------------------

@test("a message to a task that works reaches the model at the next call")
def _():
    gate = threading.Event()

    def script(body, n):
        if n == 0:
            return calls(("desk", {"message": "x"}), gate=lambda h: gate.wait(30))
        return text("done")
    up = Upstream(script)
    with in_front(up, agent("hello", id="desk"), tools=[{"agent": "desk"}]) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: up.requests, "no request")
        c.send("and in French", task=t["id"], config={"returnImmediately": True})
        gate.set()
        soon(lambda: c.get(t["id"]).state == "TASK_STATE_COMPLETED", lambda: c.get(t["id"]).task)
        check("and in French" in json.dumps(up.bodies()[1]["messages"]), up.bodies()[1]["messages"])


@test("a message while the model writes: the next request has the text first, then the message")
def _():
    gate = threading.Event()
    up = Upstream(lambda body, n: text("first answer", gate=lambda h: gate.wait(30)) if n == 0 else text("second answer"))
    with in_front(up) as s:
        c = Client(s, RPC1)
        t = c.send("go", config={"returnImmediately": True}).task
        soon(lambda: up.requests, "no request")
        c.send("and in French", task=t["id"], config={"returnImmediately": True})
        gate.set()
        soon(lambda: c.get(t["id"]).state == "TASK_STATE_COMPLETED", lambda: c.get(t["id"]).task)
        same([(m["role"], m["content"]) for m in up.bodies()[1]["messages"]],
             [("user", "go"), ("assistant", "first answer"), ("user", "and in French")], "the second request")
        same(artifact_texts(c.get(t["id"]).task), ["first answer", "second answer"], "the artifacts")


# ---- settings --------------------------------------------------------------------------------------------------------------------------

@each("a configuration with {} is refused, with the place", [
    ("an unknown sub-agent", {"tools": [{"agent": "nothere"}]}, 'unknown agent "nothere"'),
    ("an unknown MCP server", {"tools": ["files"]}, 'unknown MCP server "files"'),
    ("a misspelt setting of a limit", {"limits": {"max_iteration": 3}}, 'did you mean "max_iterations"?'),
    ("an unknown tool to approve", {"approve": ["rm"]}, 'unknown tool "rm"'),
    ("a key whose variable is not set", {"api_key_env": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set"),
    ("a URL that is not one", {"base_url": "ftp://x"}, "not an http or https URL"),
    ("an upstream without a model", {"upstreams": [{"base_url": "http://127.0.0.1:1/v1"}]}, "model")])
def _(more, words):
    where = folder() + "/dragoman.yaml"
    with open(where, "w", encoding="utf-8") as f:
        json.dump({"agents": [agent("llm", settings={"base_url": "http://127.0.0.1:1/v1", "model": "m", **more})]}, f)
    r = subprocess.run([DRAGOMAN, "serve", "--check", "-c", where], env=ENV, capture_output=True, text=True, check=False)
    check(r.returncode != 0 and words in r.stderr, f"{r.returncode}: {r.stderr}")
