"""Dragoman's translator, agent protocols from one to another, and its agent loop. See docs/python.md.

The names below are imported when they are used: agents (dragoman.agent, dragoman.worker) do not need libdragoman.so.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._agent import AgentError, AgentLoop, Events
    from ._convert import Converter, Format, convert, formats
    from ._functions import (
        compact_events,
        convert_a2a_message_to_agui_event,
        convert_a2a_message_to_openai,
        convert_agui_event_to_openai_chat,
    )
    from ._library import ConvertError
    from ._library import version as __version__

_PLACES = {
    "AgentError": "_agent",
    "AgentLoop": "_agent",
    "ConvertError": "_library",
    "Converter": "_convert",
    "Events": "_agent",
    "Format": "_convert",
    "compact_events": "_functions",
    "convert": "_convert",
    "convert_a2a_message_to_agui_event": "_functions",
    "convert_a2a_message_to_openai": "_functions",
    "convert_agui_event_to_openai_chat": "_functions",
    "formats": "_convert",
}

__all__ = [
    "AgentError",
    "AgentLoop",
    "ConvertError",
    "Converter",
    "Events",
    "Format",
    "__version__",
    "compact_events",
    "convert",
    "convert_a2a_message_to_agui_event",
    "convert_a2a_message_to_openai",
    "convert_agui_event_to_openai_chat",
    "formats",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = importlib.import_module("._library", __name__).version
    elif name in _PLACES:
        value = getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
