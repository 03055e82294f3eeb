"""Dragoman's translator: agent protocols from one to another. See docs/python.md."""
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
    "ConvertError",
    "Converter",
    "Format",
    "__version__",
    "compact_events",
    "convert",
    "convert_a2a_message_to_agui_event",
    "convert_a2a_message_to_openai",
    "convert_agui_event_to_openai_chat",
    "formats",
]
