"""For authors of LangGraph graphs: A2A events from inside a node, and the types of `a2a_inbox` and `a2a_outbox`.

    from dragoman.langgraph import emit_file, emit_data, emit_message, emit_task_metadata

    def node(state, writer: StreamWriter):
        emit_data(writer, {"rows": 3}, name="analysis")

The same names are in `aion.langgraph.stream`. The functions only call `writer`, so a graph that uses them also runs in plain
LangGraph. docs/agents/langgraph.md describes what the caller sees.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional

from ._messages import flat_message, is_chunk, message_type
from ._plain import checked, plain_outbox

__all__ = ["A2AInbox", "A2AObject", "A2AOutbox", "TaskRejected", "caller_tools", "emit_data", "emit_file", "emit_message",
           "emit_task_metadata"]

StreamWriter = Callable[[Any], None]
_FILE_CHUNK = 4 << 20  # characters of base64 in one event
_MAX_FILE_BYTES = 20 << 20  # the server's limit file_bytes


# ---- events -----------------------------------------------------------------------------------------

def emit_file(writer: StreamWriter, *, url: Optional[str] = None, base64: Optional[str] = None, mime_type: str,
              name: Optional[str] = None, append: bool = False, is_last_chunk: bool = True) -> None:
    """Sends a file artifact. Its content is either at `url` or in `base64`."""
    if (url is None) == (base64 is None):
        raise ValueError("emit_file: expected exactly one of url and base64, got " + ("neither" if url is None else "both"))
    for argument, value in (("url", url), ("base64", base64), ("mime_type", mime_type), ("name", name)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"emit_file: expected {argument} to be a string, got {type(value).__name__}")
    if not mime_type:
        raise ValueError("emit_file: missing mime_type")
    if url is not None:
        _emit_artifact(writer, "file", name, {"mime_type": mime_type, "url": url}, append, is_last_chunk)
        return
    pieces = _pieces_of(base64 or "")
    for i, piece in enumerate(pieces):
        _emit_artifact(writer, "file", name, {"mime_type": mime_type, "base64": piece}, append or i > 0, is_last_chunk and i == len(pieces) - 1)


def _pieces_of(base64: str) -> List[str]:
    """A file that is too large for one event is sent in several; the server joins them."""
    if len(base64) <= _FILE_CHUNK:
        return [base64]
    base64 = "".join(base64.split())
    if len(base64) // 4 * 3 > _MAX_FILE_BYTES + 2:
        raise ValueError(f"emit_file: the file has {len(base64) // 4 * 3} bytes; the limit file_bytes is {_MAX_FILE_BYTES}: send its URL")
    return [base64[at:at + _FILE_CHUNK] for at in range(0, len(base64), _FILE_CHUNK)]


def emit_data(writer: StreamWriter, data: Any, name: Optional[str] = None, append: bool = False,
              is_last_chunk: bool = True) -> None:
    """Sends a data artifact. TypeError names the place of a value that is not JSON."""
    _emit_artifact(writer, "data", name, {"data": checked(data, "data")}, append, is_last_chunk)


def _emit_artifact(writer: StreamWriter, kind: str, name: Optional[str], content: Dict[str, Any], append: bool,
                   is_last_chunk: bool) -> None:
    writer({"a2a": {"type": "artifact", "kind": kind, "name": name or kind, **content, "append": bool(append),
                    "is_last_chunk": bool(is_last_chunk)}})


def emit_message(writer: StreamWriter, message: Any) -> None:
    """Shows an AIMessage, which is stored in the history, or an AIMessageChunk, which is only streamed."""
    if not (hasattr(message, "content") and message_type(message) == "ai"):
        raise TypeError(f"emit_message: expected an AIMessage or AIMessageChunk, got {type(message).__name__}")
    writer({"a2a": {"type": "message", "message": flat_message(message, is_final=not is_chunk(message))}})


def emit_task_metadata(writer: StreamWriter, metadata: Mapping[str, Any]) -> None:
    """Merges `metadata` into the task's. Keys that start with `aion:` or `dragoman:` are ignored."""
    if not isinstance(metadata, Mapping):
        raise TypeError(f"emit_task_metadata: expected a dictionary, got {type(metadata).__name__}")
    writer({"a2a": {"type": "task_metadata", "metadata": checked(dict(metadata), "metadata")}})


# ---- inbox and outbox -------------------------------------------------------------------------------

# Members that an A2A object may lack: reading such an attribute gives None, as with the models of a2a-sdk.
_OPTIONAL = frozenset((
    "task", "message", "metadata", "id", "kind", "role", "parts", "status", "state", "timestamp", "history", "artifacts", "text",
    "data", "file", "name", "description", "uri", "bytes", "url", "raw", "filename", "extensions", "contextId", "taskId",
    "messageId", "artifactId", "referenceTaskIds", "mimeType", "mediaType"))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def _wrap(value: Any) -> Any:
    if isinstance(value, A2AObject):
        return value
    if isinstance(value, dict):
        return A2AObject(value)
    return [_wrap(v) for v in value] if isinstance(value, list) else value


class A2AObject(Dict[str, Any]):
    """A JSON object of A2A. `o["messageId"]`, `o.messageId` and `o.message_id` are the same."""

    def __init__(self, *args: Any, **members: Any) -> None:
        super().__init__(*args, **members)
        for key, value in self.items():
            dict.__setitem__(self, key, _wrap(value))

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, _wrap(value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for key in (name, _camel(name)):
            if key in self:
                return self[key]
        if name == "root":  # a part of a2a-sdk 0.3 wraps its content
            return self
        if _camel(name) in _OPTIONAL:
            return None
        raise AttributeError(f"this {type(self).__name__} has no member {name!r}; members: {', '.join(self) or 'none'}")

    def __setattr__(self, name: str, value: Any) -> None:
        self[name if name in self or "_" not in name else _camel(name)] = value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A field of this type in a pydantic state keeps the attributes."""
        from pydantic_core import core_schema

        def validate(value: Any) -> Any:
            if isinstance(value, cls):
                return value
            if isinstance(value, Mapping):
                return cls(dict(value))
            raise ValueError(f"expected an object, got {type(value).__name__}")
        return core_schema.no_info_plain_validator_function(validate, serialization=core_schema.plain_serializer_function_ser_schema(dict))


class A2AInbox(A2AObject):
    """`state["a2a_inbox"]`: the current Task, the whole inbound Message, the metadata of the request."""

    @property
    def task(self) -> Any:
        return self.get("task")

    @property
    def message(self) -> Any:
        return self.get("message")

    @property
    def metadata(self) -> Any:
        return self.get("metadata")


class A2AOutbox(A2AObject):
    """`state["a2a_outbox"]`: the Message or Task that the graph answers with. A plain dict is fine, too.

        return {"a2a_outbox": A2AOutbox(message={"parts": [{"text": "hi"}]})}

    `message` and `task` may also be objects of a2a-sdk, pydantic or protobuf.
    """

    def __init__(self, value: Any = None, *, message: Any = None, task: Any = None, **members: Any) -> None:
        passed = [v for v in (value, message, task) if v is not None]
        if len(passed) > 1:
            raise ValueError("A2AOutbox: expected one of a value, message and task")
        made = plain_outbox(passed[0]) if passed else {}
        if not isinstance(made, dict):
            raise TypeError(f"A2AOutbox: expected a Message or a Task, got {type(passed[0]).__name__}")
        super().__init__({**made, **members})


class TaskRejected(Exception):
    """Raised by a node: the task ends as rejected, and the caller sees the message."""


# ---- the caller -------------------------------------------------------------------------------------

def caller_tools(config: Optional[Mapping[str, Any]] = None) -> List[Dict[str, Any]]:
    """The tools that the caller can run, as `model.bind_tools()` accepts them. `config`: the node's RunnableConfig."""
    if config is None:
        from langgraph.config import get_config
        config = get_config()
    tools = (config.get("configurable") or {}).get("tools") or []
    return [{"type": "function", "function": {"name": t.get("name", ""), "description": t.get("description") or "",
                                              "parameters": t.get("parameters") or {"type": "object", "properties": {}}}}
            for t in tools if isinstance(t, Mapping)]
