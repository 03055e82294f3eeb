"""libdragoman-agent.so: loads it when the first loop is opened, declares its functions."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, List, Optional, Tuple

from ._library import Str, load

_HERE = os.path.dirname(os.path.abspath(__file__))
_NAME = "libdragoman-agent.so"

OnLog = ctypes.CFUNCTYPE(None, ctypes.c_void_p, Str)


class LoopOptions(ctypes.Structure):
    """dgm_agent_loop_options"""

    _fields_ = [("size", ctypes.c_size_t), ("settings", Str), ("config", Str), ("config_file", ctypes.c_char_p),
                ("mcp", Str), ("agent", ctypes.c_char_p), ("store", ctypes.c_char_p), ("on_log", OnLog),
                ("log_user", ctypes.c_void_p)]


class ExecuteOptions(ctypes.Structure):
    """dgm_agent_execute_options"""

    _fields_ = [("size", ctypes.c_size_t), ("context_id", Str), ("task_id", Str), ("message", Str)]


class Event(ctypes.Structure):
    """dgm_agent_event"""

    _fields_ = [("event", ctypes.c_void_p), ("json", Str), ("is_internal", ctypes.c_bool), ("is_last", ctypes.c_bool)]


# dgm_agent_next
EVENT, END, TIMEOUT = 0, 1, 2

_BYTES, _SIZE, _HANDLE, _INT = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_int
_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    "dgm_code_name": (_BYTES, [_INT]),
    "dgm_err_new": (_HANDLE, []),
    "dgm_err_free": (None, [_HANDLE]),
    "dgm_err_code": (_INT, [_HANDLE]),
    "dgm_err_message": (_BYTES, [_HANDLE]),
    "dgm_err_pointer": (_BYTES, [_HANDLE]),
    "dgm_err_line": (_SIZE, [_HANDLE]),
    "dgm_err_column": (_SIZE, [_HANDLE]),
    "dgm_agent_loop_new": (_INT, [ctypes.POINTER(LoopOptions), ctypes.POINTER(_HANDLE), _HANDLE]),
    "dgm_agent_loop_free": (None, [_HANDLE]),
    "dgm_agent_loop_cancel": (_INT, [_HANDLE, Str, _HANDLE]),
    "dgm_agent_stream_execute": (_INT, [_HANDLE, Str, ctypes.POINTER(ExecuteOptions), ctypes.POINTER(_HANDLE), _HANDLE]),
    "dgm_agent_stream_resume": (_INT, [_HANDLE, Str, ctypes.POINTER(_HANDLE), _HANDLE]),
    "dgm_agent_stream_next": (_INT, [_HANDLE, ctypes.c_int64, ctypes.POINTER(ctypes.POINTER(Event)), _HANDLE]),
    "dgm_agent_stream_free": (None, [_HANDLE]),
}


def _candidates() -> List[str]:
    named = os.environ.get("DRAGOMAN_AGENT_LIB")
    if named:
        return [named]
    if os.environ.get("DRAGOMAN_LIB"):  # the one that was built with it
        return [os.path.join(os.path.dirname(os.path.abspath(os.environ["DRAGOMAN_LIB"])), _NAME)]
    tree = os.path.dirname(os.path.dirname(_HERE))
    found = [os.path.join(_HERE, _NAME)]
    if os.path.exists(os.path.join(tree, "include", "dragoman", "agent.h")):
        found.append(os.path.join(tree, "build", _NAME))
    return found + [_NAME + ".1"]


_lib: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    global _lib
    if _lib is None:
        _lib = load(_candidates(), _PROTOTYPES, f"AgentLoop needs {_NAME}, which was not found:",
                    f"Build it (`make`) and install the package again, or set DRAGOMAN_AGENT_LIB=/path/to/{_NAME}")
    return _lib


def borrow(text: Optional[bytes]) -> Str:
    """A dgm_str; the caller holds the bytes as long as it is used. None is "absent"."""
    if text is None:
        return Str(None, 0)
    return Str(ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p), len(text))
