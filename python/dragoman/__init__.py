"""Dragoman's translator, agent protocols from one to another, and its agent loop. See docs/python.md."""
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
