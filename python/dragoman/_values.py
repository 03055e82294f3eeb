"""Whatever holds a message, as JSON text: dicts, pydantic models, protobuf messages, objects with attributes."""
from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import importlib
import json
import uuid
from collections.abc import Mapping
from typing import Any, Dict, Iterable, List, Tuple

# A2A's names for what Python calls otherwise. Only attributes are renamed: the keys of a dict are meant as they are.
_NAMES = {
    "message_id": "messageId", "context_id": "contextId", "task_id": "taskId", "artifact_id": "artifactId",
    "reference_task_ids": "referenceTaskIds", "last_chunk": "lastChunk", "media_type": "mediaType",
    "mime_type": "mimeType", "status_update": "statusUpdate", "artifact_update": "artifactUpdate",
}


def _is_pydantic(value: Any) -> bool:
    return hasattr(type(value), "model_dump_json")


def _is_old_pydantic(value: Any) -> bool:
    return hasattr(type(value), "__fields__") and hasattr(type(value), "json")


def _is_protobuf(value: Any) -> bool:
    return hasattr(type(value), "DESCRIPTOR") and hasattr(type(value), "SerializeToString")


def _from_protobuf(value: Any) -> Any:
    # where such a message comes from, this is too
    json_format = importlib.import_module("google.protobuf.json_format")
    return _settled(json_format.MessageToDict(value))


def _settled(value: Any) -> Any:
    """protobuf has only doubles for numbers in data (1 went in, 1.0 comes out), and no order of members: tools may
    mind the one, whoever compares texts the other."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2 ** 53:
        return int(value)
    if isinstance(value, dict):
        return {k: _settled(v) for k, v in sorted(value.items())}
    return [_settled(v) for v in value] if isinstance(value, list) else value


def _attributes(value: Any) -> Iterable[Tuple[str, Any]]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    if hasattr(value, "__dict__"):
        return list(vars(value).items())
    slots: List[str] = [s for c in type(value).__mro__ for s in _slots(c)]
    return [(name, getattr(value, name)) for name in slots if hasattr(value, name)]


def _slots(cls: type) -> Tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _plain(value: Any) -> Any:
    """For json.dumps: one level of what it does not know."""
    if _is_pydantic(value):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if _is_protobuf(value):
        return _from_protobuf(value)
    if _is_old_pydantic(value):
        return json.loads(value.json(by_alias=True, exclude_none=True))
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if hasattr(type(value), "__iter__"):
        return list(value)
    members: Dict[str, Any] = {}
    for name, member in _attributes(value):
        if member is not None and not name.startswith("_") and not callable(member):
            members[_NAMES.get(name, name)] = member
    if not members:
        raise TypeError(f"a {type(value).__name__} is nothing that dragoman can read: give a dict, or an object "
                        "with the attributes of one")
    return members["root"] if list(members) == ["root"] else members


# made once: json.dumps() would each time
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=_plain)
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_plain)


def text_of(value: Any) -> bytes:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("expected a dict or an object, got text: for JSON text there is dragoman.convert(), or "
                        "json.loads() it first")
    if _is_pydantic(value):
        text: str = value.model_dump_json(by_alias=True, exclude_none=True)
        return text.encode()
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:  # half a surrogate pair: as an escape it reaches the library, which reports where it is
        return _ASCII_ENCODER.encode(value).encode("ascii")
