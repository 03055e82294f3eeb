"""The functions of the documents: A2A messages, AG-UI events, messages of Chat Completions."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union, overload

from ._extension import native
from ._library import call, lib
from ._values import text_of

_read = json.JSONDecoder().decode

Event = Dict[str, Any]
ChatMessage = Dict[str, Any]

_SIMPLE, _OFFICIAL = 0, 1


def _unusual(_: Any) -> Any:
    """For all of the extension module's functions: it is not there, and nothing is usual."""
    return NotImplemented


# Each returns NotImplemented for input that needs the functions below: objects, subclasses, everything with an error.
_to_event, _to_official_event, _compact, _to_chat, _to_openai = (
    getattr(native, name, _unusual) for name in (
        "a2a_message_to_agui_event", "a2a_message_to_official_event", "compact_events", "agui_event_to_openai_chat",
        "a2a_message_to_openai"))


def convert_a2a_message_to_agui_event(msg: Any, *, official: bool = False) -> Union[Event, List[Event], None]:
    """The AG-UI event of an A2A message, Task, status- or artifact-update.

    Returns one event, a list if the message has several, or None. `official` returns the official events of AG-UI
    instead of the simple dialect. `msg` is a dict or an object: a2a-sdk 0.3 and 1.x, or any object with
    attributes. A list of messages is converted to the list of all their events.
    """
    found: Union[Event, List[Event], None] = _to_official_event(msg) if official else _to_event(msg)
    if found is not NotImplemented:
        return found
    text = call(lib.dgm_convert_a2a_message_to_agui_event, text_of(msg), _OFFICIAL if official else _SIMPLE)
    return None if text is None else _read(text.decode())


def compact_events(events: Union[Iterable[Any], Mapping[str, Any], None]) -> List[Event]:
    """The events, with streamed chunks replaced by complete events.

    Accepts the results of convert_a2a_message_to_agui_event() for each message of a history unchanged: None is
    ignored, a nested list is flattened.
    """
    if events is not None and not isinstance(events, (list, tuple, Mapping)) and _is_iterator(events):
        events = list(events)
    found: List[Event] = _compact(events)
    if found is not NotImplemented:
        return found
    text = call(lib.dgm_compact_events, text_of(events))
    return _read((text or b"[]").decode())  # type: ignore[no-any-return]


def _is_iterator(value: Any) -> bool:
    return hasattr(value, "__next__")


@overload
def convert_agui_event_to_openai_chat(event: Mapping[str, Any]) -> Optional[ChatMessage]: ...
@overload
def convert_agui_event_to_openai_chat(event: Union[List[Any], Tuple[Any, ...]]) -> List[ChatMessage]: ...
@overload
def convert_agui_event_to_openai_chat(event: None) -> None: ...
@overload
def convert_agui_event_to_openai_chat(event: Any) -> Union[ChatMessage, List[ChatMessage], None]: ...


def convert_agui_event_to_openai_chat(event: Any) -> Union[ChatMessage, List[ChatMessage], None]:
    """The message of an event, or None if it has none (chunks, runs, steps).

    A list of events is converted to a list of messages: calls that share a parent become one message.
    """
    if event is None:
        return None
    found: Union[ChatMessage, List[ChatMessage], None] = _to_chat(event)
    if found is not NotImplemented:
        return found
    text = call(lib.dgm_convert_agui_event_to_openai_chat, text_of(event))
    return None if text is None else _read(text.decode())


def convert_a2a_message_to_openai(msg: Any) -> Tuple[Optional[ChatMessage], List[ChatMessage]]:
    """(openai_message, tool_messages) of an A2A message; in a history the tool messages come first."""
    found: Tuple[Optional[ChatMessage], List[ChatMessage]] = _to_openai(msg)
    if found is not NotImplemented:
        return found
    text = call(lib.dgm_convert_a2a_message_to_openai, text_of(msg))
    message, tools = _read((text or b"[null, []]").decode())
    return message, tools
