"""dragoman._native, the extension module: the functions on dicts and on whole texts, without ctypes.

It is beside the library, which is its library, too. Without it everything works, and takes longer.
"""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from typing import Any, Optional

from . import _library

_NAME = "_native.abi3.so"


def _load() -> Optional[Any]:
    """None: it is not wanted, not there, or not for this Python or this library."""
    # the stable ABI of 3.10; builds without the interpreter's lock do not have it
    if os.environ.get("DRAGOMAN_NO_EXTENSION") or sys.version_info < (3, 10) or sys.implementation.name != "cpython":
        return None
    path = os.path.join(os.path.dirname(_library.lib._name) or os.path.dirname(__file__), _NAME)
    if not os.path.exists(path):
        return None
    name = f"{__package__}._native"
    try:
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        if spec is None:
            return None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError:
        return None
    return module if module.version == _library.version else None


native = _load()
