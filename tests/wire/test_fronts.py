"""One log, many protocols: the frontends other than A2A's show the same content of the same tasks."""
from lib import fronts
from lib.a2a import REST1, RPC1, Client, artifact_texts, task_text
from lib.agents import DEMO_ALL, DEMO_ASK, DEMO_AUTH, DEMO_FAIL, DEMO_MORE, DEMO_REJECT
from lib.http import ask
from lib.server import Server, agent, folder, server, settings
from lib.tap import check, each, same, soon, test


def demo(pace=0):
    return server(None, config=settings(agents=[agent("demo", settings={"pace": pace})]))


def words(text):
    return " ".join(text.split())


# ---- a Message answer ------------------------------------------------------------------------------------

SIMPLE = {"simple/ag-ui": lambda s, text: fronts.post(s, "/simple/ag-ui", fronts.run_input(text)),
          "simple/responses": lambda s, text: fronts.post(s, "/simple/responses", {"model": "hello", "input": text})}


def hello():
    return server("hello")


def tasks_of(s):
    return Client(s, RPC1).list().value["totalSize"]


@each("a Message answer stores no task: {} [R004-21 R004-26]", [*fronts.ALL, *SIMPLE])
def _(name):
    with Server("hello") as s:
        if name in SIMPLE:
            r = SIMPLE[name](s, "hi")
            check(r.status == 200 and b"Hello" in r.body, r)
        else:
            more = {"model": "hello"} if name.startswith(("chat", "responses")) else {}
            told = fronts.ALL[name](s, "hi", **more)
            check(told.text.startswith("Hello"), told.text)
            check(not told.headers or not told.headers.get("x-a2a-task-id"), "a header names a task")
        same(tasks_of(s), 0, "tasks")


@test("Responses: a Message answer with store can be read, listed, continued and deleted; there is no task [R004-26]")
def _():
    s = hello()
    first = fronts.responses(s, "hi", model="hello").body
    check("a2a_task_id" not in first["metadata"], first["metadata"])
    got = ask(s.address, "GET", f"/v1/responses/{first['id']}")
    same(got.status, 200, "status")
    same({k: got.json[k] for k in ("id", "output", "status", "metadata")}, {k: first[k] for k in ("id", "output", "status", "metadata")}, "the response")
    items = ask(s.address, "GET", f"/v1/responses/{first['id']}/input_items").json["data"]
    same([i["content"][0]["text"] for i in items], ["hi"], "input items")
    with fronts.stream(s, f"/v1/responses/{first['id']}?stream=true", None, method="GET") as again:
        same(fronts.fold_responses(again.rest()).text, fronts.output_text(first), "streamed again")
    then = fronts.responses(s, "and you?", model="hello", previous_response_id=first["id"]).body
    same((then["status"], then["previous_response_id"]), ("completed", first["id"]), "the next one")
    same(ask(s.address, "DELETE", f"/v1/responses/{first['id']}").status, 200, "deleted")
    same(ask(s.address, "GET", f"/v1/responses/{first['id']}").status, 404, "after that")
    same(tasks_of(s), 0, "tasks")


@test("Responses: a Message answer without store is gone [R004-26]")
def _():
    s = hello()
    r = fronts.responses(s, "hi", model="hello", store=False).body
    same(ask(s.address, "GET", f"/v1/responses/{r['id']}").status, 404, "status")


@test("Responses: a stored Message answer survives kill -9 [R004-26]")
def _():
    with Server("hello", store=f"sqlite:{folder()}/db") as s:
        r = fronts.responses(s, "hi", model="hello").body
        s.kill()
        s.restart()
        same(ask(s.address, "GET", f"/v1/responses/{r['id']}").json["output"], r["output"], "output")


@test("two Message answers have ids of their own")
def _():
    s = hello()
    ids = [fronts.chat(s, "hi", model="hello").body["id"] for _ in range(2)] + [fronts.responses(s, "hi", model="hello").body["output"][0]["id"] for _ in range(2)]
    same(len(set(ids)), 4, "ids")


# ---- every script, everywhere -----------------------------------------------------------------------------

WORK = [w for w in DEMO_ALL + DEMO_MORE if w not in (DEMO_FAIL, DEMO_REJECT, "break")]


@each("the same answer as A2A's: {} [R000-01 R004-17]", [(f"{w}, {name}", w, name) for w in WORK for name in fronts.ALL])
def _(word, name):
    s = demo()
    task = Client(s, RPC1).send(word).task
    told = fronts.ALL[name](s, word)
    check(words(task_text(task)) in words(told.text), f"A2A: {task_text(task)!r}, {name}: {told.text!r}")
    check(words(told.text).count(words(task_text(task))) == 1 or not task_text(task), f"sent twice: {told.text!r}")


ENDS = {"fail": {"chat": "task_failed", "chat, streamed": "task_failed", "responses": "task_failed", "responses, streamed": "failed",
                 "ag-ui": "error:failed", "ai-sdk": "error"},
        "reject": {"chat": "stop", "chat, streamed": "stop", "responses": "completed", "responses, streamed": "completed",
                   "ag-ui": "error:rejected", "ai-sdk": "error"},
        "ask": {"chat": "stop", "chat, streamed": "stop", "responses": "completed", "responses, streamed": "completed",
                "ag-ui": "success", "ai-sdk": "stop"},
        "auth": {"chat": "stop", "chat, streamed": "stop", "responses": "completed", "responses, streamed": "completed",
                 "ag-ui": "interrupt", "ai-sdk": "stop"},
        "stream": {"chat": "stop", "chat, streamed": "stop", "responses": "completed", "responses, streamed": "completed",
                   "ag-ui": "success", "ai-sdk": "stop"}}


@each("how it ends: {}", [(f"{w}, {name}", w, name) for w in ENDS for name in fronts.ALL])
def _(word, name):
    same(fronts.ALL[name](demo(), word).end, ENDS[word][name], "the end")


@each("the text that was sent before the task broke off is shown as A2A shows it: {}", [(n, n) for n in fronts.ALL if n not in ("chat", "responses")])  # whole, these have an error
def _(name):
    s = demo()
    said = "".join(artifact_texts(Client(s, RPC1).send("break").task))
    check(said, "no text was sent")
    same(fronts.ALL[name](s, "break").text, said, "the text")


@each("the reason of a rejection is the same as in A2A: {}", [(n, n) for n in fronts.ALL])
def _(name):
    s = demo()
    why = task_text(Client(s, RPC1).send("reject").task)
    told = fronts.ALL[name](s, "reject")
    check(why and (why in (told.text or "") or any(why in f.data for f in told.frames)), (why, told.text))


# ---- one task, many readers ----------------------------------------------------------------------------------

@test("one task: begun over Responses, watched over A2A and AG-UI, continued over Chat, listed over REST")
def _():
    s = demo(pace=0.2)
    a2a, rest = Client(s, RPC1), Client(s, REST1)
    with fronts.stream(s, "/v1/responses", {"model": "demo", "input": "status", "stream": True}) as began:
        first = began.next().json["response"]
        task_id, context_id = first["metadata"]["a2a_task_id"], first["metadata"]["a2a_context_id"]
        watched = a2a.subscribe(task_id)
        seen = fronts.stream(s, "/ag-ui/connect", fronts.run_input(thread=context_id))
        told = began.rest()
    text = fronts.output_text([f for f in told if f.data != "[DONE]"][-1].json["response"])
    check(text, "no text")
    events = watched.rest()
    same(task_text(a2a.get(task_id).task), text, "A2A's text")
    same(events[-1].state, "TASK_STATE_COMPLETED", "the watched stream's end")
    over = fronts.fold_ag_ui(seen.rest())
    check(over.text.endswith(text) and over.text.count(text) == 1, (over.text, text))
    again = fronts.chat(s, None, messages=[{"role": "user", "content": "status"}, {"role": "assistant", "content": text},
                                           {"role": "user", "content": "stream"}], headers=[("X-A2A-Context-Id", context_id)])
    same(again.body["a2a"]["context_id"], context_id, "Chat's context")
    listed = rest.list(contextId=context_id).value["tasks"]
    same({t["id"] for t in listed}, {task_id, again.body["a2a"]["task_id"]}, "the tasks of the context")
    same(task_text(next(t for t in listed if t["id"] != task_id)), again.text, "Chat's text")


@test("a history that is not the context's begins another one")
def _():
    s = demo()
    one = fronts.chat(s, "stream")
    context = one.body["a2a"]["context_id"]
    edited = [{"role": "user", "content": "something else"}, {"role": "assistant", "content": one.text}, {"role": "user", "content": "stream"}]
    check(fronts.chat(s, None, messages=edited, headers=[("X-A2A-Context-Id", context)]).body["a2a"]["context_id"] != context, "not forked")
    straight = [{"role": "user", "content": "stream"}] + edited[1:]
    same(fronts.chat(s, None, messages=straight, headers=[("X-A2A-Context-Id", context)]).body["a2a"]["context_id"], context, "the context")


@each("an answer goes to the task that waits: {}", [(w, w) for w in (DEMO_ASK, DEMO_AUTH)])
def _(word):
    s = demo()
    asked = fronts.chat(s, word)
    context, task = asked.body["a2a"]["context_id"], asked.body["a2a"]["task_id"]
    same(fronts.chat(s, "blue", headers=[("X-A2A-Context-Id", context)]).body["a2a"]["task_id"], task, "the task")
    same(Client(s, RPC1).get(task).task["status"]["state"], "TASK_STATE_COMPLETED", "state")


@test("results go to the conversation they came in, though another one has calls of the same id")
def _():
    s, ids = demo(), []
    asked = [fronts.chat(s, "client-tool") for _ in range(2)]
    for a in asked:
        m = a.body["choices"][0]["message"]
        told = fronts.chat(s, None, messages=[{"role": "user", "content": "client-tool"}, m, *[
            {"role": "tool", "tool_call_id": c["id"], "content": "Rain"} for c in m["tool_calls"]]],
            headers=[("X-A2A-Context-Id", a.body["a2a"]["context_id"])])
        ids.append(told.body["a2a"]["task_id"])
    same(ids, [a.body["a2a"]["task_id"] for a in asked], "the tasks")


# ---- durable ----------------------------------------------------------------------------------------------------

@test("a response is streamed again, frame by frame, after kill -9")
def _():
    from lib.server import folder
    with Server(None, store=f"sqlite:{folder()}/d.db", config=settings(agents=[agent("demo", settings={"pace": 0})])) as s:
        with fronts.stream(s, "/v1/responses", {"model": "demo", "input": "stream", "stream": True, "background": True}) as began:
            frames = began.rest()
        id = frames[0].json["response"]["id"]
        s.kill()
        s.restart()
        for after in (None, 0, 3, len(frames) - 2):
            query = "?stream=true" + ("" if after is None else f"&starting_after={after}")
            with fronts.stream(s, f"/v1/responses/{id}{query}", None, method="GET") as again:
                got = [f.data for f in again.rest()]
            same(got, [f.data for f in frames[0 if after is None else after + 1:]], f"frames after {after}")


# ---- who leaves ---------------------------------------------------------------------------------------------------

def leave_after(s, path, body, n):
    with fronts.stream(s, path, body) as left:
        for _ in range(n):
            if left.next() is None:
                return


LEAVERS = {"chat": ("/v1/chat/completions", lambda: fronts.chat_body("slow 1", stream=True), True),
           "ag-ui": ("/ag-ui", lambda: fronts.run_input("slow 1"), True),
           "responses": ("/v1/responses", lambda: {"model": "demo", "input": "slow 1", "stream": True}, False),
           "ai-sdk": ("/ai-sdk", lambda: fronts.ui_body("slow 1"), False)}


@each("no task is stuck when its caller leaves after any frame: {}", [(n, n) for n in LEAVERS], timeout=300)
def _(name):
    path, body, is_canceled = LEAVERS[name]
    config = settings(agents=[agent("demo", settings={"pace": 0.3})])
    config["disconnect_grace_s"] = {"chat": 0, "ag-ui": 0}
    s = server(None, config=config)
    a2a = Client(s, REST1)
    before = {t["id"] for t in a2a.list(pageSize=100).value["tasks"]}
    for n in range(8):
        leave_after(s, path, body(), n)

    def over():
        tasks = [t for t in a2a.list(pageSize=100).value["tasks"] if t["id"] not in before]
        states = {t["status"]["state"] for t in tasks}
        return len(tasks) >= 7 and states <= {"TASK_STATE_COMPLETED", "TASK_STATE_CANCELED"} and \
            (not is_canceled or "TASK_STATE_CANCELED" in states) and (is_canceled or states == {"TASK_STATE_COMPLETED"})

    soon(over, "tasks that do not end", seconds=60)


# ---- a page that reads a run again ------------------------------------------------------------------------------


@test("AG-UI: with X-Dragoman-On-Disconnect: continue a run goes on without its client, and headers name task and turn")
def _():
    config = settings(agents=[agent("demo", settings={"pace": 0.3})])
    config["disconnect_grace_s"] = {"ag-ui": 0}
    s = server(None, config=config)
    body = fronts.run_input("slow 4")
    with fronts.stream(s, "/ag-ui", body, headers=[("X-Dragoman-On-Disconnect", "continue")]) as left:
        task, turn = left.response.get("x-a2a-task-id"), left.response.get("x-dragoman-turn")
        left.next()
    a2a = Client(s, REST1)
    soon(lambda: a2a.get(task).state == "TASK_STATE_COMPLETED", "the run does not go on", seconds=60)
    same(turn, "1", "turn")


@test("AG-UI: Last-Event-ID: 0 returns all events of a run, also of a later turn of its task")
def _():
    s = demo()
    first = fronts.run_input("ask")
    with fronts.stream(s, "/ag-ui", first) as stream:
        stream.rest()
    then = {**fronts.run_input("Ann"), "threadId": first["threadId"]}
    with fronts.stream(s, "/ag-ui", then) as stream:
        live, turn = [f.json for f in stream.rest()], stream.response.get("x-dragoman-turn")
    same(turn, "2", "turn")
    with fronts.stream(s, "/ag-ui", {**then, "messages": []}, headers=[("Last-Event-ID", "0")]) as stream:
        same([f.json for f in stream.rest()], live, "the run again")
        same(stream.response.get("x-dragoman-turn"), "2", "turn of the run again")


# ---- which dialect is where -----------------------------------------------------------------------------------

ASKS = {"ag-ui": lambda: fronts.run_input("tools"), "responses": lambda: {"model": "demo", "input": "tools", "stream": True}}
OFFICIAL = {"ag-ui": lambda name: name == name.upper() and "-" not in name, "responses": lambda name: name.startswith("response.")}
PLACES = {"ag-ui": ["/ag-ui", "/agents/demo/ag-ui"], "responses": ["/v1/responses", "/agents/demo/v1/responses"]}


@each("the simple dialect is at /simple only, every other endpoint has the official events: {} [R000-04]", [(k, k) for k in ASKS])
def _(kind):
    s = demo()

    def types(path):
        with fronts.stream(s, path, ASKS[kind]()) as stream:
            same(stream.response.status, 200, path)
            return [f.json.get("type") or f.json["event"] for f in stream.rest() if f.data != "[DONE]"]

    for path in PLACES[kind]:
        names = types(path)
        check(names and all(map(OFFICIAL[kind], names)), (path, names))
    for path in (f"/simple/{kind}", f"/agents/demo/simple/{kind}"):
        names = types(path)
        check(names and not any(map(OFFICIAL[kind], names)), (path, names))
