"""A2A clients on four wires: JSON-RPC and REST, 1.0 and 0.3. Tests use 1.0; requests are converted to the dialect
of the wire, answers are checked in that dialect (shapes.py) and then converted to 1.0."""
import base64
import json
import uuid
from urllib.parse import quote, urlencode

from . import shapes
from .http import WAIT, Conn, Stream, ask
from .server import IS_STANDIN
from .tap import check, same, show


class Wire:
    def __init__(self, name, version, binding):
        self.name, self.version, self.binding = name, version, binding
        self.is_rpc, self.is_1 = binding == "rpc", version == "1.0"
        self.dialect = "1.0" if self.is_1 else "0.3" if self.is_rpc else "0.3-rest"

    def __repr__(self):
        return self.name


RPC1, REST1 = Wire("1.0 JSON-RPC", "1.0", "rpc"), Wire("1.0 REST", "1.0", "rest")
RPC03, REST03 = Wire("0.3 JSON-RPC", "0.3", "rpc"), Wire("0.3 REST", "0.3", "rest")
ALL, RPC, REST, ONE, OLD = [RPC1, REST1, RPC03, REST03], [RPC1, RPC03], [REST1, REST03], [RPC1, REST1], [RPC03, REST03]

METHODS = {  # operation: 1.0, 0.3
    "send": ("SendMessage", "message/send"), "stream": ("SendStreamingMessage", "message/stream"),
    "get": ("GetTask", "tasks/get"), "list": ("ListTasks", None), "cancel": ("CancelTask", "tasks/cancel"),
    "subscribe": ("SubscribeToTask", "tasks/resubscribe"),
    "push-create": ("CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/set"),
    "push-get": ("GetTaskPushNotificationConfig", "tasks/pushNotificationConfig/get"),
    "push-list": ("ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/list"),
    "push-delete": ("DeleteTaskPushNotificationConfig", "tasks/pushNotificationConfig/delete"),
    "card": ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard"),
}
PUSH = ["push-create", "push-get", "push-list", "push-delete"]

TERMINAL = {"TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"}
INTERRUPTED = {"TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"}
STATES_03 = {"submitted": "SUBMITTED", "working": "WORKING", "input-required": "INPUT_REQUIRED", "completed": "COMPLETED",
             "canceled": "CANCELED", "failed": "FAILED", "rejected": "REJECTED", "auth-required": "AUTH_REQUIRED",
             "unknown": "UNSPECIFIED"}


def new_id(prefix="m"):
    return f"{prefix}-{uuid.uuid4()}"


def message(text="hello", id=None, task=None, context=None, parts=None, role="ROLE_USER", **more):
    """1.0; more: other members, for instance metadata."""
    m = {"messageId": id or new_id(), "role": role, "parts": [{"text": text}] if parts is None else parts}
    if task:
        m["taskId"] = task
    if context:
        m["contextId"] = context
    return {**m, **more}


# ---- errors (tables 4.1 and 4.2) ---------------------------------------------------------------------------

class Error:
    def __init__(self, name, code, reason, now, before):
        self.name, self.code, self.reason = name, code, reason
        self.status = {"1.0.1": now, "1.0.0": before}  # profile: (HTTP, gRPC name)


BAD = (400, "INVALID_ARGUMENT")
PRE = (400, "FAILED_PRECONDITION")
UNIMPLEMENTED = (400, "UNIMPLEMENTED")
ERRORS = {e.name: e for e in [
    Error("TaskNotFound", -32001, "TASK_NOT_FOUND", (404, "NOT_FOUND"), (404, "NOT_FOUND")),
    Error("TaskNotCancelable", -32002, "TASK_NOT_CANCELABLE", PRE, (409, "FAILED_PRECONDITION")),
    Error("PushNotificationNotSupported", -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", PRE, UNIMPLEMENTED),
    Error("UnsupportedOperation", -32004, "UNSUPPORTED_OPERATION", PRE, UNIMPLEMENTED),
    Error("ContentTypeNotSupported", -32005, "CONTENT_TYPE_NOT_SUPPORTED", BAD, (415, "INVALID_ARGUMENT")),
    Error("InvalidAgentResponse", -32006, "INVALID_AGENT_RESPONSE", (500, "INTERNAL"), (502, "INTERNAL")),
    Error("ExtendedAgentCardNotConfigured", -32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", PRE, PRE),
    Error("ExtensionSupportRequired", -32008, "EXTENSION_SUPPORT_REQUIRED", PRE, PRE),
    Error("VersionNotSupported", -32009, "VERSION_NOT_SUPPORTED", PRE, UNIMPLEMENTED),
    Error("Parse", -32700, None, BAD, BAD),
    Error("InvalidRequest", -32600, None, BAD, BAD),
    Error("InvalidParams", -32602, None, BAD, BAD),
    Error("MethodNotFound", -32601, None, (404, "UNIMPLEMENTED"), (404, "UNIMPLEMENTED")),
    Error("Internal", -32603, None, (500, "INTERNAL"), (500, "INTERNAL")),
]}
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def check_details(details, e, where):
    check(isinstance(details, list), f"{where} is not an array: {show(details)}")
    for d in details:
        check(isinstance(d, dict) and isinstance(d.get("@type"), str), f"an object with @type in {where}: {show(d)}")
    infos = [d for d in details if d["@type"] == ERROR_INFO and d.get("domain") == "a2a-protocol.org"]
    if e.reason is None:
        if IS_STANDIN:  # the SDK names INVALID_PARAMS and the like
            return
        same(infos, [], f"ErrorInfo of A2A's domain for {e.name}")
        return
    same(len(infos), 1, f"number of ErrorInfo in {where}")
    same(infos[0].get("reason"), e.reason, "reason")
    check(set(infos[0]) <= {"@type", "reason", "domain", "metadata"}, show(infos[0]))
    for k, v in infos[0].get("metadata", {}).items():
        check(isinstance(v, str), f"ErrorInfo.metadata.{k} is not a string: {v!r}")


class Answer:
    """The answer to one call: .result in the dialect of the wire, .value as 1.0; or an error."""

    def __init__(self, wire, op, response, id=None, profile="1.0.1"):
        self.wire, self.op, self.response, self.id, self.profile = wire, op, response, id, profile
        self.result = self.error = None
        if wire.is_rpc:
            if response.status == 200:
                body = response.json
                check(response.type == "application/json", response)
                self.result, self.error = envelope(body, id)
            else:
                self.error = response.json.get("error") if response.body else {}
        elif response.status == 200 or IS_STANDIN and response.status == 201:
            self.result = response.json
        else:
            self.error = response.json if response.body else {}
        self.ok = self.error is None

    def __repr__(self):
        return f"{self.wire} {self.op}: {self.response}"

    @property
    def value(self):
        check(self.ok, self)
        shapes.check_result(self.result, self.op, self.wire.dialect)
        return shapes.to_1(self.result, self.op, self.wire.dialect)

    @property
    def task(self):
        v = self.value
        v = v.get("task") if self.op == "send" else v
        check(v, lambda: f"no task: {self}")
        return v

    @property
    def message(self):
        check("message" in self.value, lambda: f"no message: {self}")
        return self.value["message"]

    @property
    def state(self):
        return self.task["status"]["state"]

    def expect(self, name, profile=None, status=None):
        """This error, in every member that the wire has for it."""
        e, w = ERRORS[name], self.wire
        check(not self.ok, lambda: f"{name} was due: {self}")
        http, grpc = e.status[profile or self.profile]
        if w.is_rpc:
            same(self.response.status, 200, "HTTP status")
            check(set(self.error) <= {"code", "message", "data"}, f"members of error: {show(self.error)}")
            same(self.error.get("code"), e.code, f"code in {show(self.error)}")
            check(isinstance(self.error.get("message"), str) and self.error["message"], show(self.error))
            if w.is_1 and (e.reason or "data" in self.error):
                check_details(self.error.get("data"), e, "error.data")
            return self
        same(self.response.status, status or http, f"HTTP status of {self.response.body!r}")
        if not IS_STANDIN:  # the SDK has application/a2a+json
            same(self.response.type, "application/json", "content type")
        if w.is_1:
            same(set(self.error), {"error"}, "members of the body")
            error = self.error["error"]
            check(set(error) <= {"code", "status", "message", "details"}, f"members of error: {show(error)}")
            same(error.get("code"), self.response.status, "error.code")
            same(error.get("status"), grpc, "error.status")
            check(isinstance(error.get("message"), str) and error["message"], show(error))
            if e.reason or "details" in error:
                check_details(error.get("details"), e, "error.details")
        else:
            check(set(self.error) <= {"code", "message", "data", "type"}, f"members of the body: {show(self.error)}")
            same(self.error.get("code"), e.code, "code")
            if not IS_STANDIN:
                same(self.error.get("type"), {"Parse": "JSONParse"}.get(e.name, e.name) + "Error", "type")
            check(isinstance(self.error.get("message"), str) and self.error["message"], show(self.error))
        return self

    @property
    def code(self):
        """JSON-RPC code, or the code that the REST error's reason stands for."""
        if self.wire.is_rpc or not self.wire.is_1:
            return (self.error or {}).get("code")
        details = (self.error or {}).get("error", {}).get("details", [])
        reasons = [d.get("reason") for d in details if d.get("@type") == ERROR_INFO]
        return next((e.code for e in ERRORS.values() if e.reason and e.reason in reasons), None)

    def refused(self):
        check(not self.ok, lambda: f"an error was due: {self}")
        return self


def envelope(body, id):
    """(result, error) of a JSON-RPC response that is one in every respect."""
    check(isinstance(body, dict), f"no object: {show(body)}")
    same(body.get("jsonrpc"), "2.0", "jsonrpc")
    check("id" in body, f"no id: {show(body)}")
    check(("result" in body) != ("error" in body), f"one of result and error: {show(body)}")
    same(set(body) - {"jsonrpc", "id", "result", "error"}, set(), "other members of the envelope")
    same((type(body["id"]), body["id"]), (type(id), id), "id")
    return body.get("result"), body.get("error")


# ---- the client ---------------------------------------------------------------------------------------------

class Event:
    def __init__(self, frame, payload, value):
        self.frame, self.id, self.payload = frame, frame.id, payload  # payload: the event in the dialect of the wire
        (self.kind, self.body), = value.items()  # as 1.0: task, message, statusUpdate, artifactUpdate
        self.state = self.body["status"]["state"] if "status" in self.body else None

    def __repr__(self):
        return f"{self.kind} {self.state or ''} {show(self.payload, 300)}"


class Events:
    """A stream of events, each checked as it comes."""

    def __init__(self, wire, stream, id, resumed=False):
        self.wire, self.stream, self.rpc_id, self.resumed = wire, stream, id, resumed
        self.seen, self.ended_by = [], None
        head = stream.response
        check("no-cache" in (head.get("cache-control") or ""), f"Cache-Control of a stream: {head}")
        same(head.get("content-encoding"), None, "Content-Encoding")

    def next(self, seconds=WAIT):
        frame = self.stream.next(seconds)
        if frame is None:
            return None
        payload = frame.json
        if self.wire.is_rpc:
            payload, error = envelope(payload, self.rpc_id)
            check(error is None, lambda: f"an error in the stream: {frame}")
        else:
            check("error" not in payload, lambda: f"an error in the stream: {frame}")
        same(frame.event, None, "event: line")
        shapes.check_result(payload, "event", self.wire.dialect)
        event = Event(frame, payload, shapes.to_1(payload, "event", self.wire.dialect))
        self.check_order(event)
        self.seen.append(event)
        return event

    def check_order(self, event):
        check(self.ended_by is None, lambda: f"{event} after {self.ended_by}")
        if not self.seen and not self.resumed:
            check(event.kind in ("task", "message"), f"the first event is {event}")
        if event.kind == "message":
            check(not self.seen, f"a message after {self.seen}")
            self.ended_by = event
        if event.kind == "statusUpdate" and event.state in TERMINAL:
            self.ended_by = event
        if self.seen:
            check(event.kind in ("statusUpdate", "artifactUpdate"), f"later event is {event}")
            first = self.seen[0].body
            for mine, its in ((task_of(event), task_of(self.seen[0])), (event.body["contextId"], first["contextId"])):
                same(mine, its, "taskId and contextId of a later event")
            if event.id is not None and self.seen[-1].id is not None:
                check(int(event.id) > int(self.seen[-1].id), f"id {event.id} after {self.seen[-1].id}")

    def __iter__(self):
        while (e := self.next()) is not None:
            yield e

    def rest(self, seconds=WAIT):
        """All until the server ends the stream."""
        while self.next(seconds) is not None:
            pass
        return self.seen

    def until(self, condition, seconds=WAIT):
        """The first event for which it is true (an event, or a state's end such as WORKING)."""
        wanted = condition if callable(condition) else lambda e: e.state == "TASK_STATE_" + condition
        while (e := self.next(seconds)) is not None:
            if wanted(e):
                return e
        check(False, f"the stream ended before; it had {self.seen}")

    def answer(self):
        """Of a JSON-RPC call that was refused: its only event, the error, as the Answer that a body would be."""
        check(self.wire.is_rpc and not self.seen, self)
        frame = self.stream.next()
        check(frame is not None and frame.event is None, lambda: f"the event is {frame}")
        check(self.stream.next() is None, "something behind the error")
        a = Answer.__new__(Answer)
        a.wire, a.op, a.response, a.id, a.profile = self.wire, "stream", self.stream.response, self.rpc_id, self.profile
        a.result, a.error = envelope(frame.json, self.rpc_id)
        a.ok = a.error is None
        self.close()
        return a

    def expect(self, *of, **more):
        return self.answer().expect(*of, **more)

    def refused(self):
        return self.answer().refused()

    def close(self):
        self.stream.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def task_of(event):
    return event.body["id"] if event.kind == "task" else event.body.get("taskId")


class Client:
    """Calls on one wire. Everything about it can be overridden per call."""

    def __init__(self, server, wire, token=None, key=None, tenant=None, headers=(), base="", profile=None):
        self.server, self.wire, self.tenant, self.base = server, wire, tenant, base
        self.profile = profile or server.errors
        self.headers = list(headers)
        if token:
            self.headers.append(("Authorization", f"Bearer {token}"))
        if key:
            self.headers.append(("X-API-Key", key))
        self.count = 0

    # -- requests as bytes

    def prepare(self, op, params, id=None, headers=()):
        """(id, method, target, body, headers) of a call; params as 1.0 has them."""
        w = self.wire
        own = [("A2A-Version", "1.0")] if w.is_1 else []
        own = [(n, v) for n, v in self.headers + own if n.lower() not in {h.lower() for h, _ in headers}]
        headers = own + [h for h in headers if h[1] is not None]
        params = dict(params or {})
        if w.is_1 and self.tenant and "tenant" not in params:
            params["tenant"] = self.tenant
        if w.is_rpc:
            self.count += 1
            id = self.count if id is None else id
            body = {"jsonrpc": "2.0", "id": id, "method": METHODS[op][not w.is_1],
                    "params": params if w.is_1 else shapes.params_03(op, params)}
            return id, "POST", self.base + "/", json_bytes(body), headers + [("Content-Type", "application/json")]
        method, target, body = self.route(op, params)
        if body is not None:
            headers = headers + [("Content-Type", "application/json")]
            body = json_bytes(body)
        return None, method, self.base + target, body, headers

    def route(self, op, params):
        p, v1 = dict(params), self.wire.is_1
        prefix = ("/" + quote(p.pop("tenant"), safe="") if p.get("tenant") else "") if v1 else "/v1"
        task = quote(str(p.get("taskId" if op in PUSH else "id", "")), safe=":")
        if op in ("send", "stream"):
            return "POST", f"{prefix}/message:{op}", p if v1 else shapes.send_03_rest(p)
        if op == "get":
            p.pop("id", None)
            return "GET", f"{prefix}/tasks/{task}{query(p)}", None
        if op == "list":
            return "GET", f"{prefix}/tasks{query(p)}", None
        if op == "cancel":
            p.pop("id", None)
            return "POST", f"{prefix}/tasks/{task}:cancel", p
        if op == "subscribe":
            return "POST", f"{prefix}/tasks/{task}:subscribe", {}
        if op == "card":
            return "GET", f"{prefix}/extendedAgentCard" if v1 else f"{prefix}/card", None
        config = quote(str(p.get("id", "")), safe="")
        if op == "push-create":
            body = {k: x for k, x in p.items() if k != "taskId"} if v1 else {"pushNotificationConfig": {"url": p.get("url"), "id": p.get("id", "")}}
            return "POST", f"{prefix}/tasks/{task}/pushNotificationConfigs", body
        if op == "push-list":
            return "GET", f"{prefix}/tasks/{task}/pushNotificationConfigs", None
        return {"push-get": "GET", "push-delete": "DELETE"}[op], f"{prefix}/tasks/{task}/pushNotificationConfigs/{config}", None

    # -- calls

    def call(self, op, params=None, id=None, headers=(), wait=WAIT):
        id, method, target, body, headers = self.prepare(op, params, id, headers)
        r = ask(self.server.address, method, target, body, headers, wait=wait)
        return Answer(self.wire, op, r, id, self.profile)

    def open(self, op, params=None, id=None, headers=(), wait=WAIT):
        """A streaming call: Events, or the Answer when it is refused."""
        headers = [*headers, ("Accept", "text/event-stream")]
        id, method, target, body, headers = self.prepare(op, params, id, headers)
        conn = Conn(self.server.address, wait)
        conn.request(method, target, body, headers)
        head = conn.head()
        if head.type != "text/event-stream":
            head.body = b"".join(conn.chunks(head))
            conn.close()
            return Answer(self.wire, op, head, id, self.profile)
        events = Events(self.wire, Stream(conn, head), id, resumed=any(n.lower() == "last-event-id" for n, _ in headers))
        events.profile = self.profile
        return events

    def params(self, text="hello", m=None, metadata=None, config=None, **ids):
        p = {"message": m or message(text, **ids)}
        if config:
            p["configuration"] = config
        if metadata:
            p["metadata"] = metadata
        return p

    def send(self, text="hello", headers=(), wait=WAIT, **how):
        return self.call("send", self.params(text, **how), headers=headers, wait=wait)

    def stream(self, text="hello", headers=(), wait=WAIT, **how):
        events = self.open("stream", self.params(text, **how), headers=headers, wait=wait)
        check(isinstance(events, Events), events)
        return events

    def subscribe(self, task, last=None, headers=(), wait=WAIT):
        headers = [*headers, ("Last-Event-ID", str(last))] if last is not None else list(headers)
        events = self.open("subscribe", {"id": task}, headers=headers, wait=wait)
        check(isinstance(events, Events), events)
        return events

    def get(self, task, headers=(), **more):
        return self.call("get", {"id": task, **more}, headers=headers)

    def cancel(self, task, headers=(), wait=WAIT, **more):
        return self.call("cancel", {"id": task, **more}, headers=headers, wait=wait)

    def list(self, headers=(), **more):
        return self.call("list", more, headers=headers)

    def raw(self, method, target, body=None, headers=(), version=True):
        """As it is; only the version header and the credentials are added."""
        own = self.headers + ([("A2A-Version", "1.0")] if self.wire.is_1 and version else [])
        names = {n.lower() for n, _ in headers}
        return ask(self.server.address, method, self.base + target, body, [h for h in own if h[0].lower() not in names] + list(headers))

    def rpc(self, body, headers=(), id=None, op="raw"):
        """A JSON-RPC body as it is (bytes or a value), answered with an envelope of this id."""
        data = body if isinstance(body, bytes) else json_bytes(body)
        names = {n.lower() for n, _ in headers}
        own = [] if "content-type" in names else [("Content-Type", "application/json")]
        return Answer(self.wire, op, self.raw("POST", "/", data, [*own, *headers]), id, self.profile)

    def rest(self, method, target, body=None, headers=(), op="raw"):
        data = body if body is None or isinstance(body, bytes) else json_bytes(body)
        names = {n.lower() for n, _ in headers}
        own = [] if data is None or "content-type" in names else [("Content-Type", "application/json")]
        return Answer(self.wire, op, self.raw(method, target, data, [*own, *headers]), None, self.profile)


def json_bytes(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def query(params):
    pairs = [(k, str(v).lower() if isinstance(v, bool) else v) for k, v in params.items()]
    return "?" + urlencode(pairs) if pairs else ""


# ---- reading answers ------------------------------------------------------------------------------------------

def text_of(thing):
    """All text parts of a message or artifact, one after the other."""
    return "".join(p.get("text", "") for p in (thing or {}).get("parts", []))


def task_text(task):
    return text_of(task["status"].get("message"))


def artifact_texts(task):
    return [text_of(a) for a in task.get("artifacts", [])]


def joined(parts):
    """Parts as the server stores them: neighbouring texts that differ in nothing else are one part."""
    out = []
    for p in parts:
        rest = {k: v for k, v in p.items() if k != "text"}
        if out and "text" in p and "text" in out[-1] and rest == {k: v for k, v in out[-1].items() if k != "text"}:
            out[-1] = {**p, "text": out[-1]["text"] + p["text"]}
        elif not out or p != {"text": ""}:
            out.append(p)
    return out


def fold(events):
    """What a client makes of a stream: the Task at its end."""
    task = json.loads(json.dumps(events[0].body))
    check(events[0].kind == "task", events[0])
    artifacts = {a["artifactId"]: a for a in task.get("artifacts", [])}
    for e in events[1:]:
        if e.kind == "statusUpdate":
            task["status"] = e.body["status"]
            if e.body.get("metadata"):
                task["metadata"] = {**task.get("metadata", {}), **e.body["metadata"]}
        else:
            new = e.body["artifact"]
            old = artifacts.get(new["artifactId"])
            if e.body.get("append") and old:
                old["parts"] = old["parts"] + new["parts"]
            else:
                artifacts[new["artifactId"]] = dict(new)
    task["artifacts"] = [{**a, "parts": joined(a["parts"])} for a in artifacts.values()]
    return task


def b64(data):
    return base64.b64encode(data).decode()
