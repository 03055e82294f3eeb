"""The objects of A2A in each dialect: strict checks of what the server wrote, and the conversions
between the dialects that the client needs. Written from the reference, not from our own codecs."""
import base64
import re

from .tap import Failure, check, show

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.(\d{3}|\d{6}|\d{9}))?Z")
CAMEL = re.compile(r"[a-z][A-Za-z0-9]*")
OPAQUE = {"metadata", "data", "header", "params", "scopes"}  # their members are not A2A's

ENUMS = {
    "1.0": {"State": ["TASK_STATE_" + s for s in "UNSPECIFIED SUBMITTED WORKING COMPLETED FAILED CANCELED INPUT_REQUIRED REJECTED AUTH_REQUIRED".split()],
            "Role": ["ROLE_USER", "ROLE_AGENT"]},
    "0.3": {"State": "submitted working input-required completed canceled failed rejected auth-required unknown".split(), "Role": ["user", "agent"]},
    "0.3-rest": {"State": ["TASK_STATE_" + s for s in "UNSPECIFIED SUBMITTED WORKING COMPLETED FAILED CANCELLED INPUT_REQUIRED REJECTED AUTH_REQUIRED".split()],
                 "Role": ["ROLE_USER", "ROLE_AGENT"]},
}
# member[!][:type]; ! required; no type: a string that is not empty
SHAPES = {
    "1.0": {
        "Part": "text:str raw:base64 url data:any filename mediaType metadata:obj",
        "Message": "messageId! contextId taskId role!:Role parts!:[Part] metadata:obj extensions:[str] referenceTaskIds:[str]",
        "Status": "state!:State message:Message timestamp!:time",
        "Task": "id! contextId! status!:Status artifacts:[]Artifact history:[Message] metadata:obj",
        "Artifact": "artifactId! name description parts!:[Part] metadata:obj extensions:[str]",
        "StatusEvent": "taskId! contextId! status!:Status metadata:obj",
        "ArtifactEvent": "taskId! contextId! artifact!:Artifact append:bool lastChunk:bool metadata:obj",
        "List": "tasks!:[]Task nextPageToken!:str pageSize!:int totalSize!:int",
    },
    "0.3": {
        "Part": "kind!:kind text:str file:File data:obj metadata:obj",
        "File": "bytes:base64 uri name mimeType",
        "Message": "kind!:message messageId! contextId taskId role!:Role parts!:[Part] metadata:obj extensions:[str] referenceTaskIds:[str]",
        "Status": "state!:State message:Message timestamp!:time",
        "Task": "kind!:task id! contextId! status!:Status artifacts:[Artifact] history:[Message] metadata:obj",
        "Artifact": "artifactId! name description parts!:[Part] metadata:obj extensions:[str]",
        "StatusEvent": "kind!:status-update taskId! contextId! status!:Status final!:bool metadata:obj",
        "ArtifactEvent": "kind!:artifact-update taskId! contextId! artifact!:Artifact append:bool lastChunk:bool metadata:obj",
    },
    "0.3-rest": {
        "Part": "text:str file:File data:DataPart metadata:obj",
        "File": "fileWithBytes:base64 fileWithUri name mimeType",
        "DataPart": "data!:obj",
        "Message": "messageId! contextId taskId role!:Role content!:[Part] metadata:obj extensions:[str]",
        "Status": "state!:State message:Message timestamp!:time",
        "Task": "id! contextId! status!:Status artifacts:[Artifact] history:[Message] metadata:obj",
        "Artifact": "artifactId! name description parts!:[Part] metadata:obj extensions:[str]",
        "StatusEvent": "taskId! contextId! status!:Status final:bool metadata:obj",
        "ArtifactEvent": "taskId! contextId! artifact!:Artifact append:bool lastChunk:bool metadata:obj",
    },
}
UNION = {"task": "Task", "message": "Message", "statusUpdate": "StatusEvent", "artifactUpdate": "ArtifactEvent"}
KINDS = {"task": "Task", "message": "Message", "status-update": "StatusEvent", "artifact-update": "ArtifactEvent"}
ENDS = {"completed", "canceled", "failed", "rejected", "input-required"}  # `final` is a function of the state


def check_result(value, op, dialect):
    """op: the operation whose result it is, or `event`."""
    check_plain(value, "")
    if op == "list":
        return check_shape(value, "List", dialect, "")
    if op in ("get", "cancel"):
        return check_shape(value, "Task", dialect, "")
    if op in ("send", "event"):
        allowed = UNION if op == "event" else {"task": "Task", "message": "Message"}
        check(isinstance(value, dict), f"no object: {show(value)}")
        if dialect == "0.3":
            kind = value.get("kind")
            check(kind in KINDS and KINDS[kind] in allowed.values(), f"kind {kind!r} of {show(value)}")
            return check_shape(value, KINDS[kind], dialect, "")
        check(len(value) == 1 and next(iter(value)) in allowed, f"exactly one wrapper member: {show(value)}")
        (member, inner), = value.items()
        return check_shape(inner, UNION[member], dialect, "/" + member)
    return None


def check_plain(value, at, opaque=False):
    """No null, no snake_case, no internal event, whatever it is."""
    if isinstance(value, dict):
        check(not str(value.get("kind", "")).startswith("internal:"), f"an internal event at {at}: {show(value)}")
        for k, v in value.items():
            check(opaque or CAMEL.fullmatch(k), f"{at}/{k}: not camelCase")
            check(opaque or v is not None, f"{at}/{k} is null")
            check_plain(v, f"{at}/{k}", opaque or k in OPAQUE)
    elif isinstance(value, list):
        for i, v in enumerate(value):
            check(opaque or v is not None, f"{at}/{i} is null")
            check_plain(v, f"{at}/{i}", opaque)


def check_shape(value, name, dialect, at):
    check(isinstance(value, dict), f"{at or '/'} is not an object: {show(value)}")
    members = {}
    for word in SHAPES[dialect][name].split():
        m = re.fullmatch(r"(\w+)(!?)(?::(.+))?", word)
        members[m[1]] = (bool(m[2]), m[3] or "id")
    for k in value:
        check(k in members, f"{at}/{k}: {dialect} {name} has no such member")
    for k, (required, kind) in members.items():
        check(not required or k in value, f"{at}/{k} is missing in {show(value)}")
        if k in value:
            check_kind(value[k], kind, dialect, f"{at}/{k}")
    if name == "Part":
        contents = [k for k in value if k in ("text", "raw", "url", "data", "file")]
        check(len(contents) == 1, f"{at}: exactly one content: {show(value)}")
        check("kind" not in value or value["kind"] == contents[0], f"{at}: kind {value.get('kind')}")
    if name == "File":
        check(len({"bytes", "uri", "fileWithBytes", "fileWithUri"} & set(value)) == 1, f"{at}: bytes or uri: {show(value)}")
    if name == "StatusEvent" and dialect == "0.3":
        check(value["final"] == (value["status"]["state"] in ENDS), f"{at}/final is {value['final']} at {value['status']['state']}")


def check_kind(v, kind, dialect, at):
    if kind in ("id", "str", "base64", "time"):
        check(isinstance(v, str) and (v or kind == "str"), f"{at} is not a string: {show(v)}")
        if kind == "time":
            check(TIME.fullmatch(v), f"{at}: {v} is no UTC time with Z")
        if kind == "base64":
            try:
                base64.b64decode(v, validate=True)
            except ValueError:
                raise Failure(f"{at}: no padded standard base64: {show(v)}")
    elif kind in ("bool", "int", "obj"):
        check(type(v) is {"bool": bool, "int": int, "obj": dict}[kind], f"{at} is no {kind}: {show(v)}")
    elif kind in ENUMS[dialect]:
        check(v in ENUMS[dialect][kind], f"{at}: {v!r} is no {kind} of {dialect}")
    elif kind == "kind":
        check(v in ("text", "file", "data"), f"{at}: {v!r}")
    elif kind.startswith("["):
        check(isinstance(v, list), f"{at} is not an array: {show(v)}")
        item = kind[2:] if kind.startswith("[]") else kind[1:-1]
        check(v or kind.startswith("[]"), f"{at} is empty instead of absent")
        for i, x in enumerate(v):
            check_kind(x, item, dialect, f"{at}/{i}")
    elif kind[0].isupper():
        check_shape(v, kind, dialect, at)
    elif kind != "any":
        check(v == kind, f"{at} is {v!r}, wanted {kind!r}")


# ---- 0.3 to 1.0 ---------------------------------------------------------------------------------------------------

def to_1(value, op, dialect):
    if dialect == "1.0" or op not in ("send", "event", "get", "cancel"):
        return value
    if op in ("get", "cancel"):
        return object_1(value, "Task", dialect)
    if dialect == "0.3":
        name = KINDS[value["kind"]]
        return {next(k for k, v in UNION.items() if v == name): object_1(value, name, dialect)}
    (member, inner), = value.items()
    return {member: object_1(inner, UNION[member], dialect)}


def object_1(v, name, dialect):
    v = {k: x for k, x in v.items() if k not in ("kind", "final")}
    if name == "Part":
        if "file" in v:
            f = v.pop("file")
            for old, new in (("bytes", "raw"), ("fileWithBytes", "raw"), ("uri", "url"), ("fileWithUri", "url"),
                             ("name", "filename"), ("mimeType", "mediaType")):
                if old in f:
                    v[new] = f[old]
        if "data" in v and dialect == "0.3-rest":
            v["data"] = v["data"]["data"]
        return v
    if "content" in v:
        v["parts"] = v.pop("content")
    if "role" in v:
        v["role"] = v["role"] if v["role"].startswith("ROLE_") else "ROLE_" + v["role"].upper()
    if "state" in v:
        s = v["state"]
        v["state"] = s.replace("CANCELLED", "CANCELED") if s.startswith("TASK_") else \
            "TASK_STATE_" + {"unknown": "UNSPECIFIED"}.get(s, s.replace("-", "_").upper())
    for member, item in (("parts", "Part"), ("history", "Message"), ("artifacts", "Artifact")):
        if member in v:
            v[member] = [object_1(x, item, dialect) for x in v[member]]
    for member, item in (("message", "Message"), ("status", "Status"), ("artifact", "Artifact")):
        if member in v:
            v[member] = object_1(v[member], item, dialect)
    return v


# ---- 1.0 to 0.3, for what a client sends -----------------------------------------------------------------------------

def part_03(p, rest):
    p = dict(p)
    more = {"metadata": p["metadata"]} if "metadata" in p else {}
    if "text" in p:
        return {**({} if rest else {"kind": "text"}), "text": p["text"], **more}
    if "data" in p:
        return {"data": {"data": p["data"]}, **more} if rest else {"kind": "data", "data": p["data"], **more}
    if "raw" in p or "url" in p:
        f = {("fileWithBytes" if rest else "bytes") if "raw" in p else ("fileWithUri" if rest else "uri"): p.get("raw", p.get("url"))}
        f.update({new: p[old] for old, new in (("filename", "name"), ("mediaType", "mimeType")) if old in p})
        return {**({} if rest else {"kind": "file"}), "file": f, **more}
    return p


def message_03(m, rest=False):
    m = dict(m)
    if not rest and isinstance(m.get("role"), str):
        m["role"] = m["role"].removeprefix("ROLE_").lower()
    if "parts" in m:
        parts = m.pop("parts")
        parts = [part_03(p, rest) if isinstance(p, dict) else p for p in parts] if isinstance(parts, list) else parts
        m["content" if rest else "parts"] = parts
    if rest:
        m.pop("referenceTaskIds", None)
        return m
    return {"kind": "message", **m}


def configuration_03(c, rest):
    c = dict(c)
    if "returnImmediately" in c:
        c["blocking"] = not c.pop("returnImmediately")
    elif rest:
        c.setdefault("blocking", True)  # proto3: false is what an absent member means there
    if "taskPushNotificationConfig" in c:
        c["pushNotification" if rest else "pushNotificationConfig"] = c.pop("taskPushNotificationConfig")
    return c


def params_03(op, p):
    p = dict(p)
    p.pop("tenant", None)
    if op in ("send", "stream"):
        if isinstance(p.get("message"), dict):
            p["message"] = message_03(p["message"])
        if "configuration" in p:
            p["configuration"] = configuration_03(p["configuration"], False)
    elif op == "push-create":
        p = {"taskId": p.get("taskId"), "pushNotificationConfig": {k: v for k, v in p.items() if k in ("id", "url", "token")}}
    elif op in ("push-get", "push-delete"):
        p = {"id": p.get("taskId"), "pushNotificationConfigId": p.get("id")}
    elif op == "push-list":
        p = {"id": p.get("taskId")}
    return p


def send_03_rest(p):
    p = dict(p)
    if isinstance(p.get("message"), dict):
        p["message"] = message_03(p["message"], True)
    if "configuration" in p:
        p["configuration"] = configuration_03(p["configuration"], True)
    return p
