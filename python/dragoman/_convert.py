"""Text from one format to another: at once, or piece by piece."""
from __future__ import annotations

import ctypes
import functools
import json
import threading
from typing import Any, Dict, NamedTuple, Optional, Tuple, TypeVar, Union

from ._extension import native
from ._library import Err, error, lib

_Text = TypeVar("_Text", str, bytes)


class Format(NamedTuple):
    name: str
    about: str


def formats() -> Tuple[Format, ...]:
    """All formats, in the order they are shown to people."""
    rows = (lib.dgm_format_at(i).contents for i in range(lib.dgm_format_count()))
    return tuple(Format(row.name.decode(), row.about.decode()) for row in rows)


_BINARY = frozenset(row.name.decode() for i in range(lib.dgm_format_count())
                    for row in [lib.dgm_format_at(i).contents] if row.binary)


def _bytes_of(data: Union[str, bytes, bytearray, memoryview]) -> bytes:
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")  # the library reports the position of an unpaired surrogate
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"expected text or bytes, got {type(data).__name__}")
    return data if isinstance(data, bytes) else bytes(data)


def _text_api() -> Optional[Tuple[Any, Any]]:
    """Python's own texts without copies, where the interpreter offers that."""
    try:
        look, make = ctypes.pythonapi.PyUnicode_AsUTF8AndSize, ctypes.pythonapi.PyUnicode_DecodeUTF8
    except (AttributeError, ValueError):
        return None
    look.restype, look.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.POINTER(ctypes.c_ssize_t)]
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_char_p]
    return look, make


_TEXT_API = _text_api()


def _given(data: Union[str, bytes, bytearray, memoryview]) -> Tuple[Union[bytes, ctypes.c_char_p], int]:
    """Bytes and their number. Text is lent as the interpreter has it: as it is, or as the copy it keeps with it."""
    if _TEXT_API and isinstance(data, str):
        n = ctypes.c_ssize_t()
        try:
            return ctypes.cast(_TEXT_API[0](data, ctypes.byref(n)), ctypes.c_char_p), n.value
        except UnicodeEncodeError:  # half a pair: the library says where
            pass
    given = _bytes_of(data)
    return given, len(given)


def _options(from_: str, to: str, framing: str, as_: Optional[str], object: Optional[str], seed: Optional[str],
             compact: Optional[bool], answer_source: str) -> bytes:
    options: Dict[str, Any] = {"from": from_, "to": to, "framing": framing, "as": as_, "object": object,
                               "seed": seed, "compact": compact, "answer_source": answer_source}
    return json.dumps({k: v for k, v in options.items() if v is not None}).encode("ascii")


_same_options = functools.lru_cache(maxsize=64, typed=True)(_options)


class Converter:
    """A stream from one format to another, in whatever pieces the bytes come.

        with Converter("a2a-0.3", "openai-chat") as converter:
            for piece in source:
                sink.write(converter.feed(piece))
            sink.write(converter.end())

    Memory is bound by the largest single event. After a ConvertError, whose `output` is what was converted before
    the fault, only close() makes sense. Any thread may call, one after the other.
    """

    def __init__(self, from_: str, to: str, *, framing: str = "auto", as_: Optional[str] = None,
                 object: Optional[str] = None, seed: Optional[str] = None, compact: Optional[bool] = None,
                 answer_source: str = "auto") -> None:
        text = _options(from_, to, framing, as_, object, seed, compact, answer_source)
        self._handle: Optional[ctypes.c_void_p] = None
        self._lock = threading.Lock()
        handle, err = ctypes.c_void_p(), Err()
        if lib.dgm_converter_new_json(text, len(text), ctypes.byref(handle), err):
            raise error(err)
        self._handle = handle

    def feed(self, data: Union[str, bytes, bytearray, memoryview]) -> bytes:
        """What is ready after these bytes; often nothing."""
        given, err = _bytes_of(data), Err()
        with self._lock:
            rc = lib.dgm_converter_feed(self._open(), given, len(given), err)
            return self._taken(rc, err)

    def end(self) -> bytes:
        """The rest. Fails where the stream ends in the middle of something."""
        err = Err()
        with self._lock:
            rc = lib.dgm_converter_end(self._open(), err)
            return self._taken(rc, err)

    def _whole(self, data: _Text) -> _Text:
        """feed() and end() with one copy of what comes out; of a text that fails nothing does."""
        (given, n), err = _given(data), Err()
        rc = lib.dgm_converter_feed_all(self._open(), given, n, err)
        if rc:
            raise error(err)
        if isinstance(data, bytes):
            return self._taken(rc, err)
        ready = lib.dgm_converter_output(self._handle)
        text: str = _TEXT_API[1](ready.p, ready.n, None) if _TEXT_API and ready.n else self._taken(rc, err).decode()
        return text

    def close(self) -> None:
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                lib.dgm_converter_free(handle)

    def _open(self) -> ctypes.c_void_p:
        if self._handle is None:
            raise ValueError("the converter is closed")
        return self._handle

    def _taken(self, rc: int, err: Err) -> bytes:
        ready = lib.dgm_converter_output(self._handle)
        output = ctypes.string_at(ready.p, ready.n) if ready.n else b""
        lib.dgm_converter_consume(self._handle, ready.n)
        if rc:
            raise error(err, output)
        return output

    def __enter__(self) -> Converter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


def convert(text: _Text, from_: str, to: str, *, framing: str = "auto", as_: Optional[str] = None,
            object: Optional[str] = None, seed: Optional[str] = None, compact: Optional[bool] = None,
            answer_source: str = "auto") -> _Text:
    """One text to another: JSON, JSON lines or server-sent events; str gives str, bytes give bytes.

    from_    a format's name, or "auto"
    to       a format's name; formats() lists them
    framing  of the output: "auto", "json", "array", "lines", "sse"
    as_      kind of output: "events", "response", "messages", "request"; None: the kind of the input
    object   type of each A2A object in the input; None: detected from the input
    seed     generated ids depend on it and on the input
    compact  True: always; False: never; None: documents are compacted, streams are not
    answer_source  "status": texts of `working` states are the answer, not progress
    """
    if isinstance(text, str) and to in _BINARY:
        raise TypeError(f"{to} is binary: pass bytes to get bytes")
    if native:
        try:
            options = _same_options(from_, to, framing, as_, object, seed, compact, answer_source)
        except TypeError:  # of a type that the library refuses
            options = _options(from_, to, framing, as_, object, seed, compact, answer_source)
        found: _Text = native.convert(options, text)
        if found is not NotImplemented:
            return found
    with Converter(from_, to, framing=framing, as_=as_, object=object, seed=seed, compact=compact,
                   answer_source=answer_source) as converter:
        return converter._whole(text)
