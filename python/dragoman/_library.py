"""libdragoman.so: loads it, declares its functions, raises its errors as exceptions."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

_HERE = os.path.dirname(os.path.abspath(__file__))


class ConvertError(ValueError):
    """The input cannot be converted.

    `code` is for programs ("PARSE", "BAD_PARAMS", "TOO_LARGE", ...), `pointer` is the JSON pointer of what is
    wrong ("" is the whole of it), `line` and `column` are its place in the text, counted from 1 (0: not known).
    `output` is what a Converter had ready before the fault.
    """

    def __init__(self, message: str, code: str, pointer: str = "", line: int = 0, column: int = 0,
                 output: bytes = b"") -> None:
        super().__init__(message, code, pointer, line, column, output)
        self.message, self.code, self.pointer = message, code, pointer
        self.line, self.column, self.output = line, column, output

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class Err:
    """A dgm_err of dragoman/base.h, freed with this object."""

    def __init__(self) -> None:
        self._as_parameter_ = ctypes.c_void_p(lib.dgm_err_new())

    def __del__(self) -> None:
        lib.dgm_err_free(self)


class Str(ctypes.Structure):
    """dgm_str"""

    _fields_ = [("p", ctypes.c_void_p), ("n", ctypes.c_size_t)]


class FormatInfo(ctypes.Structure):
    """dgm_format_info"""

    _fields_ = [("id", ctypes.c_int), ("name", ctypes.c_char_p), ("about", ctypes.c_char_p),
                ("envelopes", ctypes.c_bool), ("binary", ctypes.c_bool)]


_BYTES, _SIZE, _HANDLE, _INT = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
_OUT = [ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(_SIZE), _HANDLE]
_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "dgm_free": (None, [ctypes.c_void_p]),
    "dgm_version": (_BYTES, []),
    "dgm_code_name": (_BYTES, [_INT]),
    "dgm_err_new": (_HANDLE, []),
    "dgm_err_free": (None, [_HANDLE]),
    "dgm_err_code": (_INT, [_HANDLE]),
    "dgm_err_message": (_BYTES, [_HANDLE]),
    "dgm_err_pointer": (_BYTES, [_HANDLE]),
    "dgm_err_line": (_SIZE, [_HANDLE]),
    "dgm_err_column": (_SIZE, [_HANDLE]),
    "dgm_format_at": (ctypes.POINTER(FormatInfo), [_SIZE]),
    "dgm_format_count": (_SIZE, []),
    "dgm_convert_a2a_message_to_agui_event": (_INT, [_BYTES, _SIZE, _INT, *_OUT]),
    "dgm_compact_events": (_INT, [_BYTES, _SIZE, *_OUT]),
    "dgm_convert_agui_event_to_openai_chat": (_INT, [_BYTES, _SIZE, *_OUT]),
    "dgm_convert_a2a_message_to_openai": (_INT, [_BYTES, _SIZE, *_OUT]),
    "dgm_converter_new_json": (_INT, [_BYTES, _SIZE, ctypes.POINTER(_HANDLE), _HANDLE]),
    "dgm_converter_free": (None, [_HANDLE]),
    "dgm_converter_feed": (_INT, [_HANDLE, _BYTES, _SIZE, _HANDLE]),
    "dgm_converter_feed_all": (_INT, [_HANDLE, _BYTES, _SIZE, _HANDLE]),
    "dgm_converter_end": (_INT, [_HANDLE, _HANDLE]),
    "dgm_converter_output": (Str, [_HANDLE]),
    "dgm_converter_consume": (None, [_HANDLE, _SIZE]),
}


def _candidates() -> List[str]:
    named = os.environ.get("DRAGOMAN_LIB")
    if named:
        return [named]  # whoever names one wants that one
    tree = os.path.dirname(os.path.dirname(_HERE))
    found = [os.path.join(_HERE, "libdragoman.so")]
    if os.path.exists(os.path.join(tree, "include", "dragoman", "dragoman.h")):
        found.append(os.path.join(tree, "build", "libdragoman.so"))
    return found + ["libdragoman.so.1"]


def load(candidates: List[str], prototypes: Dict[str, Tuple[Any, List[Any]]], problem: str, advice: str) -> ctypes.CDLL:
    """The first of these libraries that has all functions; ImportError lists what was tried."""
    tried = []
    for path in candidates:
        if os.sep in path and not os.path.exists(path):
            tried.append(f"{path}: not there")
            continue
        try:
            found = ctypes.CDLL(path)
            for name, (result, arguments) in prototypes.items():
                function = getattr(found, name)
                function.restype, function.argtypes = result, arguments
            return found
        except OSError as e:
            tried.append(f"{path}: {e}")
        except AttributeError:
            tried.append(f"{path}: of another version, it has no {name}")
    raise ImportError("\n  ".join([problem, *tried]) + "\n" + advice)


lib = load(_candidates(), _PROTOTYPES, "dragoman needs libdragoman.so, which was not found:",
           "Build it (`make`) and install the package again, or set DRAGOMAN_LIB=/path/to/libdragoman.so")
version: str = lib.dgm_version().decode()


def error(err: Err, output: bytes = b"") -> ConvertError:
    return ConvertError(lib.dgm_err_message(err).decode("utf-8", "replace"),
                        lib.dgm_code_name(lib.dgm_err_code(err)).decode(),
                        lib.dgm_err_pointer(err).decode("utf-8", "replace"), lib.dgm_err_line(err),
                        lib.dgm_err_column(err), output)


def call(function: Callable[..., int], text: bytes, *how: int) -> Optional[bytes]:
    """Calls a function of the library: text in, text out; None if it returns no text."""
    out, n, err = ctypes.c_void_p(), ctypes.c_size_t(), Err()
    if function(text, len(text), *how, ctypes.byref(out), ctypes.byref(n), err):
        raise error(err)
    if not out:
        return None
    try:
        return ctypes.string_at(out, n.value)
    finally:
        lib.dgm_free(out)
