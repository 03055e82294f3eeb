"""Plain JSON values: what leaves a worker process as a line of the protocol.

`checked()` refuses what is not JSON and names the place; it is for values that an author passes to us on purpose (emit_data).
`plain()` converts everything, for values that happen to be in a graph's state or on its stream.
"""
from __future__ import annotations

import base64
import dataclasses
import datetime
import enum
import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

_MAX_DEPTH = 100  # the server's limit is 128 for a whole line


def _text(value: str) -> str:
    """Without lone surrogates, which UTF-8 cannot encode."""
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return value.encode("utf-8", "replace").decode("utf-8")
    return value


# ---- strict -----------------------------------------------------------------------------------------

def checked(value: Any, path: str) -> Any:
    """A copy of a JSON value. TypeError names the place of the first value that JSON does not have."""
    return _checked(value, path, ())


def _checked(value: Any, path: str, parents: Tuple[int, ...]) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        if _text(value) != value:
            raise TypeError(f"{path} is a text with a lone surrogate, which is not JSON")
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{path} is {value}, which is not JSON")
        return value
    if not isinstance(value, (dict, list, tuple)):
        raise TypeError(f"{path} is of type {type(value).__name__}, which is not JSON")
    if id(value) in parents:
        raise TypeError(f"{path} contains itself, which is not JSON")
    if len(parents) >= _MAX_DEPTH:
        raise TypeError(f"{path} is nested too deeply: the limit is {_MAX_DEPTH} levels")
    inner = parents + (id(value),)
    if isinstance(value, dict):
        return {_checked_key(k, path): _checked(v, f"{path}[{k!r}]", inner) for k, v in value.items()}
    return [_checked(v, f"{path}[{i}]", inner) for i, v in enumerate(value)]


def _checked_key(key: Any, path: str) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{path} has a key of type {type(key).__name__}: expected a string")
    if _text(key) != key:
        raise TypeError(f"{path} has a key with a lone surrogate, which is not JSON")
    return key


# ---- lenient ----------------------------------------------------------------------------------------

def plain(value: Any, depth: int = 0) -> Any:
    """Any value as JSON: NaN is null, a set is a list, a model is an object, an unknown object is the name of its type."""
    if value is None or value is True or value is False:
        return value
    kind = type(value)
    if kind is str:
        return _text(value)
    if kind is int:
        return value
    if depth > _MAX_DEPTH:
        return None
    if kind is dict:
        return {_key(k): plain(v, depth + 1) for k, v in value.items()}
    if kind is list or kind is tuple:
        return [plain(v, depth + 1) for v in value]
    for matches, convert in _CONVERTERS:
        if matches(value):
            return convert(value, depth)
    return f"<{kind.__module__}.{kind.__qualname__}>"


def _key(key: Any) -> str:
    if isinstance(key, str):
        return _text(key)
    return str(plain(key)) if isinstance(key, (int, float, bool, enum.Enum)) or key is None else f"<{type(key).__qualname__}>"


def is_message(value: Any) -> bool:
    """A LangChain message, without an import of langchain_core."""
    return hasattr(value, "content") and hasattr(value, "additional_kwargs") and isinstance(getattr(value, "type", None), str)


def _flat(value: Any, depth: int) -> Any:
    from ._messages import flat_message
    return flat_message(value)


def is_model(value: Any) -> bool:
    return callable(getattr(value, "model_dump", None)) and not isinstance(value, type)


def _model(value: Any, depth: int) -> Any:
    return plain(value.model_dump(by_alias=True, exclude_none=True), depth + 1)


def is_protobuf(value: Any) -> bool:
    return hasattr(value, "DESCRIPTOR") and hasattr(value, "SerializeToString") and not isinstance(value, type)


def _protobuf(value: Any, depth: int) -> Any:
    from google.protobuf.json_format import MessageToDict
    return plain(MessageToDict(value), depth + 1)


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _dataclass(value: Any, depth: int) -> Any:
    return {f.name: plain(getattr(value, f.name, None), depth + 1) for f in dataclasses.fields(value)}


def _array(value: Any, depth: int) -> Any:
    return plain(value.tolist(), depth + 1)


def _is_a(*kinds: Any) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_CONVERTERS: List[Tuple[Callable[[Any], bool], Callable[[Any, int], Any]]] = [
    (_is_a(enum.Enum), lambda v, d: plain(v.value, d + 1)),
    (_is_a(str), lambda v, d: _text(str(v))),
    (_is_a(int), lambda v, d: int(v)),
    (_is_a(float), lambda v, d: float(v) if math.isfinite(v) else None),
    (is_message, _flat),
    (is_model, _model),
    (is_protobuf, _protobuf),
    (_is_a(Mapping), lambda v, d: {_key(k): plain(m, d + 1) for k, m in v.items()}),
    (_is_a(list, tuple, set, frozenset), lambda v, d: [plain(m, d + 1) for m in v]),
    (_is_a(bytes, bytearray), lambda v, d: base64.b64encode(v).decode("ascii")),
    (_is_a(datetime.datetime, datetime.date, datetime.time), lambda v, d: v.isoformat()),
    (_is_dataclass, _dataclass),
    (lambda v: type(v).__module__ == "numpy" and hasattr(v, "tolist"), _array),
    (lambda v: type(v).__module__ in ("uuid", "decimal", "pathlib", "ipaddress", "fractions"), lambda v, d: _text(str(v))),
]


# ---- A2A objects ------------------------------------------------------------------------------------

def plain_outbox(value: Any) -> Any:
    """A Message or Task as JSON, from a dict, a pydantic model or a protobuf message; `{"message": ..}` is unwrapped."""
    made = plain(value)
    if isinstance(made, dict):
        named: Dict[str, Any] = {k: v for k, v in made.items() if v is not None}
        wrapped: Optional[Any] = named.get("message", named.get("task")) if len(named) == 1 else None
        if isinstance(wrapped, dict):
            return wrapped
    return made
