"""What third-party clients of OpenAI's APIs rely on: JSON that was requested, calls that are required, usage, and questions that are
answered without the id of a conversation."""
import json

from lib import fronts
from lib.a2a import RPC1, Client
from lib.server import Server, agent, folder, server, settings
from lib.tap import check, each, same, test

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "forecast": {"type": "array"}}, "required": ["city", "forecast"]}
KEYS = ["city", "temperature", "forecast", "sunrise", "chance_of_rain"]
APIS = [(n, n) for n in ("chat", "chat, streamed", "responses", "responses, streamed")]
AGENTS = [agent("demo", settings={"pace": 0}), agent("hello"), agent("demo", "other", settings={"pace": 0})]


def demo(**more):
    return server(None, config={**settings(agents=AGENTS), **more})


def ask(s, api, messages, **more):
    """A request of this API with these messages. `json`, `tool`: what it wants."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    wants, tool = more.pop("json", None), more.pop("tool", None)
    if "chat" in api:
        if wants:
            more["response_format"] = {"type": "json_object"} if wants is True else {"type": "json_schema", "json_schema": {"name": "x", "schema": wants}}
        if tool:
            more["tools"] = [{"type": "function", "function": {"name": n, "parameters": p}} for n, p in tool["tools"].items()]
            more["tool_choice"] = tool["choice"] if isinstance(tool["choice"], str) else {"type": "function", "function": tool["choice"]}
        return fronts.ALL[api](s, None, messages=messages, **more)
    if wants:
        more["text"] = {"format": {"type": "json_object"} if wants is True else {"type": "json_schema", "name": "x", "schema": wants}}
    if tool:
        more["tools"] = [{"type": "function", "name": n, "parameters": p} for n, p in tool["tools"].items()]
        more["tool_choice"] = tool["choice"] if isinstance(tool["choice"], str) else {"type": "function", **tool["choice"]}
    return fronts.ALL[api](s, messages, **more)


def whole(told):
    """The response of a stream, or the body."""
    return told.body or [f for f in told.frames if f.data != "[DONE]"][-1].json.get("response")


def calls_of(api, told):
    if api == "chat":
        return [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in told.body["choices"][0]["message"].get("tool_calls", [])]
    if api == "chat, streamed":
        deltas = [c for f in told.frames[:-1] for ch in f.json["choices"] for c in ch["delta"].get("tool_calls", [])]
        return [(d["function"]["name"], json.loads("".join(e["function"]["arguments"] for e in deltas))) for d in deltas[:1]]
    return [(i["name"], json.loads(i["arguments"])) for i in whole(told)["output"] if i["type"] == "function_call"]


def state_of(api, told):
    if api == "chat":
        return told.body["a2a"]["state"]
    if api == "chat, streamed":
        return [f.json["a2a"]["state"] for f in told.frames[:-1] if "a2a" in f.json][-1]
    return whole(told)["metadata"]["a2a_task_state"]


# ---- the form of an answer -----------------------------------------------------------------------------------

@each("JSON that was requested is the data of the agent, and nothing else: {}", [(f"{api}, {n}", api, f) for api, _ in APIS
                                                                                for n, f in (("json_object", True), ("json_schema", CITY))])
def _(api, form):
    same(list(json.loads(ask(demo(), api, "data", json=form).text)), KEYS, "the members")


@each("where JSON was requested and the agent has only text, the text is unchanged: {}", APIS)
def _(api):
    s = demo()
    same(ask(s, api, "tools", json=True).text, ask(s, api, "tools").text, "the text")


@each("where JSON was requested, a question and a refusal are still shown: {}", APIS)
def _(api):
    s = demo()
    same(ask(s, api, "ask", json=CITY).text, "What is your name?", "the question")
    check("asked to refuse" in ask(s, api, "reject", json=CITY).text, "no refusal")


@each("a conversation goes on behind an answer that is JSON: {}", [(n, n) for n in ("chat", "chat, streamed")])
def _(api):
    s = demo()
    one = ask(s, api, "data", json=CITY, headers=[("X-Conversation-Id", f"json-{api[-3:]}")])
    messages = [{"role": "user", "content": "data"}, {"role": "assistant", "content": one.text}, {"role": "user", "content": "tools"}]
    ask(s, api, messages, headers=[("X-Conversation-Id", f"json-{api[-3:]}")])
    same(len(Client(s, RPC1).list(contextId=f"json-{api[-3:]}").value["tasks"]), 2, "tasks of the conversation")


@each("data is the arguments of a call that is required: {}", [(f"{api}, {n}", api, c) for api, _ in APIS
                                                             for n, c in (("named", {"name": "weather"}), ("required", "required"))])
def _(api, choice):
    tools = {"other": {"type": "object", "required": ["x"]}, "weather": CITY}
    told = ask(demo(), api, "data", tool={"tools": tools, "choice": choice})
    [(name, arguments)] = calls_of(api, told)
    same([name, list(arguments)], ["weather", KEYS], "the call")
    same(state_of(api, told), "completed", "the state of the task")
    if "chat" in api:
        same(told.end, "tool_calls", "the end")


@each("a call that is required reaches an agent that calls tools: {}", APIS)
def _(api):
    told = ask(demo(), api, "client-tool", tool={"tools": {"get_weather": {"type": "object"}}, "choice": "required"})
    same(calls_of(api, told), [("get_weather", {"location": "Oakland"})], "the call")
    same(state_of(api, told), "input-required", "the state of the task")


@each("a call that is required is refused for an agent that neither calls tools nor produces data: {}", [(p, p) for p in ("chat", "responses")])
def _(api):
    body = {"model": "hello", "tool_choice": "required"}
    body.update({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {"name": "f"}}]} if api == "chat"
                else {"input": "x", "tools": [{"type": "function", "name": "f", "parameters": {}}]})
    r = fronts.post(demo(), "/v1/chat/completions" if api == "chat" else "/v1/responses", body)
    same([r.status, r.json["error"]["param"]], [400, "tool_choice"], "the error")


@test("usage is there when the agent reports none, as zeros")
def _():
    s = demo()
    same(ask(s, "chat", "tools").body["usage"], {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, "Chat's")
    streamed = ask(s, "chat, streamed", "tools", stream_options={"include_usage": True}).frames[-2].json
    same([streamed["choices"], streamed["usage"]["total_tokens"]], [[], 0], "the last chunk")
    same(ask(s, "responses", "tools").body["usage"]["total_tokens"], 0, "Responses'")
    same(whole(ask(s, "responses, streamed", "tools"))["usage"]["total_tokens"], 0, "Responses', streamed")
    same(ask(s, "chat", "usage").body["usage"]["total_tokens"], 21, "what the agent reports")


@test("a response that failed is an error, and the header says that it is not to be tried again")
def _():
    s = demo()
    told = ask(s, "responses", "fail")
    same([told.end, told.headers.get("x-should-retry"), told.headers.get("x-a2a-task-state")], ["task_failed", "false", "failed"], "the error")


# ---- questions, without the id of a conversation --------------------------------------------------------------

def fresh(**more):
    """A server of its own: a question that waits there from another test would count."""
    return Server(agent=None, config={**settings(agents=AGENTS), **more}, store=f"sqlite:{folder()}/tasks.db")


def dialog(*texts):
    return [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(texts)]


ANN = dialog("ask", "What is your name?", "Ann")


@each("a request whose messages end with a question and its answer continues the task: {}", APIS)
def _(api):
    with fresh() as s:
        same(ask(s, api, "ask").text, "What is your name?", "the question")
        check(ask(s, api, ANN).text.startswith("Hello Ann"), "the task was not continued")
        [task] = Client(s, RPC1).list().value["tasks"]
        same(task["status"]["state"], "TASK_STATE_COMPLETED", "the one task")


@test("it continues in the next process, too, and a second question as well")
def _():
    with fresh() as s:
        ask(s, "chat", "ask")
        s.kill()
        s.restart()
        second = ask(s, "chat", dialog("ask", "What is your name?", " "))
        same(second.text, "I did not get that. What is your name?", "the second question")
        s.kill()
        s.restart()
        check(ask(s, "chat", dialog("ask", "What is your name?", " ", second.text, "Ann")).text.startswith("Hello Ann"), "not continued")


@each("these do not continue it: {}", [
    ("an edited message", {"messages": dialog("please ask", "What is your name?", "Ann")}),
    ("an edited question", {"messages": dialog("ask", "What is your age?", "Ann")}),
    ("messages before", {"messages": dialog("hi", "hello", "ask", "What is your name?", "Ann")}),
    ("another agent", {"model": "other"}),
    ("another user", {"user": "bob"}),
    ("another safety_identifier", {"safety_identifier": "b"}),
    ("another principal", {"headers": [("Authorization", "Bearer bob")]}),
])
def _(changed):
    with fresh(tokens=[{"token": "ann", "principal": "ann"}, {"token": "bob", "principal": "bob"}]) as s:
        ours = [("Authorization", "Bearer ann")]
        ask(s, "chat", "ask", headers=ours, user="ann", safety_identifier="a")
        more = {"messages": ANN, "headers": ours, "user": "ann", "safety_identifier": "a"}
        told = ask(s, "chat", **{**more, **changed})
        check(told.text.startswith("You said: Ann"), told.text)
        check(ask(s, "chat", **more).text.startswith("Hello Ann"), "the task does not wait any more")


@test("of two tasks that wait with the same question neither is continued, until one of them ended")
def _():
    with fresh() as s:
        one, two = ask(s, "chat", "ask"), ask(s, "chat", "ask")
        check(ask(s, "chat", ANN).text.startswith("You said: Ann"), "one of two was chosen")
        Client(s, RPC1).cancel(one.body["a2a"]["task_id"])
        same(ask(s, "chat", ANN).body["a2a"]["task_id"], two.body["a2a"]["task_id"], "the task")


@test("an answer that is regenerated starts a new task, and one that is sent again does not")
def _():
    with fresh() as s:
        ask(s, "chat", "ask")
        key = [("Idempotency-Key", "k1")]
        first = ask(s, "chat", ANN, headers=key)
        check(first.text.startswith("Hello Ann"), first.text)
        again = ask(s, "chat", ANN, headers=key)
        same([again.text, again.body["a2a"]["task_id"]], [first.text, first.body["a2a"]["task_id"]], "the same request")
        same(len(Client(s, RPC1).list().value["tasks"]), 1, "tasks")
        check(ask(s, "chat", ANN).body["a2a"]["task_id"] != first.body["a2a"]["task_id"], "the regenerated answer is in the old task")


@test("the same conversation can be held more often than questions are listed")
def _():
    with fresh() as s:
        for _ in range(20):
            ask(s, "chat", "ask")
            check(ask(s, "chat", ANN).text.startswith("Hello Ann"), "not continued")


@test("more tasks wait with the same question than are listed: none is continued")
def _():
    with fresh() as s:
        tasks = [ask(s, "chat", "ask").body["a2a"]["task_id"] for _ in range(18)]
        for task in tasks[:15]:
            Client(s, RPC1).cancel(task)
        check(ask(s, "chat", ANN).text.startswith("You said: Ann"), "one of three was chosen")


@test("openai.continue_questions: off")
def _():
    with fresh(openai={"continue_questions": False}) as s:
        ask(s, "chat", "ask")
        check(ask(s, "chat", ANN).text.startswith("You said: Ann"), "it was continued")
