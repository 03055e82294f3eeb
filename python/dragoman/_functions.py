"""The functions of the documents: A2A messages, AG-UI events, messages of Chat Completions."""
from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union, overload

from ._library import call, lib
from ._values import text_of

_read = json.JSONDecoder().decode

Event = Dict[str, Any]
ChatMessage = Dict[str, Any]

_SIMPLE, _OFFICIAL = 0, 1


def convert_a2a_message_to_agui_event(msg: Any, *, official: bool = False) -> Union[Event, List[Event], None]:
    """The AG-UI event of an A2A message, Task, status- or artifact-update.

    One event, a list when the message holds several, None where there is none. `official` asks for AG-UI's own
    events instead of document 000's. `msg` is a dict or an object: a2a-sdk 0.3 and 1.x, or anything with
    attributes. A list of messages gives the list of all their events.
    """
    text = call(lib.dgm_convert_a2a_message_to_agui_event, text_of(msg), _OFFICIAL if official else _SIMPLE)
    return None if text is None else _read(text.decode())


def compact_events(events: Union[Iterable[Any], Mapping[str, Any], None]) -> List[Event]:
    """The events, with what was streamed as if it had been said at once.

    Takes what convert_a2a_message_to_agui_event() gave for each message of a history, as it is: None is nothing, a
    list stands for its elements.
    """
    if events is not None and not isinstance(events, (list, tuple, Mapping)) and _is_iterator(events):
        events = list(events)
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
    """The message of an event, None for one that is no message (chunks, runs, steps).

    A list of events gives a list of messages: calls that share a parent become one.
    """
    if event is None:
        return None
    text = call(lib.dgm_convert_agui_event_to_openai_chat, text_of(event))
    return None if text is None else _read(text.decode())


def convert_a2a_message_to_openai(msg: Any) -> Tuple[Optional[ChatMessage], List[ChatMessage]]:
    """(openai_message, tool_messages) of an A2A message; in a history the tool messages stand first."""
    text = call(lib.dgm_convert_a2a_text_to_openai, text_of(msg))
    message, tools = _read((text or b"[null, []]").decode())
    return message, tools
