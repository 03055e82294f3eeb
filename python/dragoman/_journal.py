"""What is stored of a turn that asks questions, so that its function can run again from the top.

The journal is one text per task, which the server stores with `journal/put` and sends with each `run` of the task:

    {"v": 1, "start": {message, history, metadata, tools}, "by": "<messageId of the run that wrote it>", "segments": [
        {"question": "Which color?", "answer": {message}, "steps": [["name", 0, <value>], ["name", 1], ...],
         "polls": 3, "received": {"2": [message, ...]}, "events": 4}, ...], "unread": [message, ...]}

A segment is the part of the function between two questions; the last one is open: it has no answer yet. When the function
runs again, answers are returned in order. Within a segment the n-th step of a name gets the n-th result of that name, so
steps may run at the same time. All output of a segment that has an answer was sent before: it is not sent again. `events` counts
the progress, tool calls and the like of the open segment that were sent before the journal was stored; the server knows how
many came behind it.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from . import _rpc
from ._turn_messages import find_message

VERSION = 1
MAX_JOURNAL_BYTES = 64 << 20  # the server's limit journal_bytes
_MAX_INLINE_BYTES = 256 << 10  # longer values of the start are found in the task's history, or are those of the new run

Json = Any
Known = List[List[Dict[str, Any]]]  # lists of messages that have ids



class NotDeterministic(Exception):
    """The function did something else when it ran again. The message names both."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the agent is not deterministic: {what}. The function of an agent that asks a question runs again from the top "
                         "when the answer arrives, and must then do the same as before. Wrap everything that may change (calls of a model, the "
                         "time, random numbers) in turn.step(name, function), which stores the result")


class Segment:
    """The part of the function up to a question. `answer` is None in the open one."""

    def __init__(self, stored: Optional[Mapping[str, Any]] = None, known: Optional[Known] = None) -> None:
        stored, known = stored or {}, known or []
        self.question: Optional[str] = stored.get("question")
        self.answer: Optional[Dict[str, Any]] = _unpack(stored["answer"], known) if "answer" in stored else None
        self.polls: int = stored.get("polls", 0)
        self.received = {poll: [_unpack(m, known) for m in messages] for poll, messages in (stored.get("received") or {}).items()}
        self.events: int = stored.get("events", 0)
        self._steps: Dict[str, List[List[Json]]] = {}  # by name: [name, n] was requested,
        # [name, n, value] has its result, [name, n, null, [module, class, text]] raised an exception
        self._requested: Dict[str, int] = {}  # in this run
        for step in stored.get("steps") or []:
            self._steps.setdefault(step[0], []).append(list(step))

    def find_step(self, name: str) -> Optional[List[Json]]:
        """The next step of this name, or None if it was never requested before."""
        n = self._requested.get(name, 0)
        self._requested[name] = n + 1
        stored = self._steps.get(name, [])
        return stored[n] if n < len(stored) else None

    def add_step(self, name: str) -> List[Json]:
        stored = self._steps.setdefault(name, [])
        step: List[Json] = [name, len(stored)]
        stored.append(step)
        return step

    def step_not_requested(self) -> Optional[str]:
        """A step of the run before that this run has not requested."""
        for name, steps in self._steps.items():
            if self._requested.get(name, 0) < len(steps):
                return name
        return None

    def as_json(self) -> Dict[str, Any]:
        members = {"question": self.question, "answer": self.answer and _pack(self.answer), "polls": self.polls,
                   "received": {poll: _pack_list(messages) for poll, messages in self.received.items()}, "events": self.events,
                   "steps": [step for steps in self._steps.values() for step in steps]}
        return {name: value for name, value in members.items() if value}


class Journal:
    """The segments of a turn, and the message that started it."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        stored = _parse(params.get("journal"))
        task = params.get("currentTask") or {}
        history = list(params.get("history") or [])
        known = [history, list(task.get("history") or []), list(params.get("accepted") or []), [params["message"]]]
        start = stored.get("start") or {}
        self.message: Dict[str, Any] = _unpack(start["message"], known) if "message" in start else params["message"]
        # the oldest messages may be too old for the history of this run: it starts later then
        self.history: List[Dict[str, Any]] = history
        if "history" in start:
            self.history = [m for m in (_unpack(m, known, required=False) for m in start["history"]) if m]
        self.metadata: Dict[str, Any] = start.get("metadata") or dict(params.get("metadata") or {})
        self.tools: List[Json] = start.get("tools") or list(params.get("tools") or [])
        self._by = str(params["message"].get("messageId", ""))
        self.segments = [Segment(s, known) for s in stored.get("segments") or []] or [Segment()]
        self.unread: List[Dict[str, Any]] = [_unpack(m, known) for m in stored.get("unread") or []]
        last = self.segments[-1]
        # A question that another run stored was asked: this run's message is the answer. One that this run's message led to
        # may not have been sent: the process ended in between.
        if last.question is not None and stored.get("by") != self._by:
            last.answer = params["message"]
        if last.answer is not None:
            self.segments.append(Segment())
        self._start: Optional[str] = None  # encoded

    def ids_received(self) -> List[str]:
        """Ids of all messages that the function has received or that are unread."""
        lists = [m for s in self.segments for m in s.received.values()] + [self.unread]
        return [str(m.get("messageId")) for messages in lists for m in messages]

    def encode(self, unread: List[Dict[str, Any]]) -> str:
        if self._start is None:
            self._start = _rpc.encode({"message": _pack(self.message), "history": _pack_list(self.history),
                                       "metadata": _pack(self.metadata), "tools": _pack(self.tools)}).decode()
        text = '{"v":%d,"by":%s,"start":%s,"unread":%s,"segments":%s}' % (
            VERSION, json.dumps(self._by), self._start, _rpc.encode(_pack_list(unread)).decode(),
            _rpc.encode([s.as_json() for s in self.segments]).decode())
        if len(text.encode("utf-8")) > MAX_JOURNAL_BYTES:
            raise ValueError(f"the answers and the results of steps of this turn have more than {MAX_JOURNAL_BYTES} bytes (limit journal_bytes): return less from turn.step()")
        return text


def _parse(text: Any) -> Dict[str, Any]:
    if not isinstance(text, str) or not text:
        return {}
    try:
        stored = json.loads(text)
    except ValueError:
        stored = None
    if not isinstance(stored, dict) or stored.get("v") != VERSION:
        raise ValueError("the journal of this task has an unknown format: another program wrote it")
    return stored


def _pack(value: Any, limit: int = _MAX_INLINE_BYTES) -> Any:
    """The value, or how to find it: a large message by its id, other large values not at all."""
    if len(_rpc.encode(value)) <= limit:
        return value
    return {"messageId": value["messageId"], "isStored": True} if isinstance(value, dict) and "messageId" in value else None


def _pack_list(messages: List[Dict[str, Any]]) -> List[Any]:
    """The messages; the oldest ones only by their ids if all together are large."""
    packed, room = [], _MAX_INLINE_BYTES
    for message in reversed(messages):
        room -= len(_rpc.encode(message))
        packed.append(_pack(message, _MAX_INLINE_BYTES if room >= 0 else 0))
    return packed[::-1]


def _unpack(value: Dict[str, Any], known: Known, required: bool = True) -> Dict[str, Any]:
    if not value.get("isStored"):
        return value
    found = find_message(value["messageId"], *known)
    if found is None and required:
        raise ValueError(f"the message {value['messageId']} of this turn is not in the history of its task")
    return found or {}
