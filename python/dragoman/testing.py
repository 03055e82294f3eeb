"""Runs an agent in a test, without a server, and collects what it sends.

    from dragoman.testing import Conversation, run
    from agent import main

    def test_greeting():
        assert run(main, "hello").text == "You wrote: hello"

    def test_question():
        conversation = Conversation(main)
        assert conversation.send("book a table").question == "For how many?"
        assert "for 4" in conversation.send("4").text
"""
from __future__ import annotations

import asyncio
import copy
import json
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _rpc
from ._agents import run_turn
from ._turn import Sink, Turn, is_counted
from ._turn_messages import File, Message

__all__ = ["Conversation", "Result", "run"]

Text = Union[str, Mapping[str, Any]]


class _Lost(BaseException):
    """The process of the agent is gone, as with kill -9."""


class Result:
    """What the agent has sent in one task so far. A task has several runs if the agent asks questions."""

    def __init__(self) -> None:
        #: completed, input-required, auth-required, failed, rejected or canceled
        self.state = "submitted"
        #: Every event, as docs/agents.md describes them.
        self.events: List[Dict[str, Any]] = []
        #: Texts of all questions so far.
        self.questions: List[str] = []
        #: The A2A artifacts, by id.
        self.artifacts: Dict[str, Dict[str, Any]] = {}
        #: State that the agent shares with its callers.
        self.shared_state: Dict[str, Any] = {}
        self._journal: Optional[str] = None
        self._emitted = 0  # events behind the journal, as the server counts them
        self._messages: List[Dict[str, Any]] = []
        self._status: Dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The answer."""
        return "".join(_text(a.get("parts")) for name, a in self.artifacts.items() if name == "answer" or name.startswith("answer-"))

    @property
    def question(self) -> Optional[str]:
        """The question that waits for an answer."""
        return self.questions[-1] if self.state in ("input-required", "auth-required") else None

    @property
    def question_parts(self) -> List[Dict[str, Any]]:
        """The parts of that question, with choices, a schema or a request for approval."""
        return list((self._status.get("message") or {}).get("parts") or []) if self.question is not None else []

    @property
    def error(self) -> Optional[str]:
        """The sentence that callers read if the task failed or was rejected."""
        return _text((self._status.get("message") or {}).get("parts")) if self.state in ("failed", "rejected") else None

    @property
    def files(self) -> List[File]:
        return Message({"parts": self._parts()}).files

    @property
    def data(self) -> List[Any]:
        return Message({"parts": self._parts()}).data

    @property
    def progress(self) -> List[str]:
        statuses = (e["statusUpdate"]["status"] for e in self.events if "statusUpdate" in e)
        parts = (p for s in statuses if s["state"] == "TASK_STATE_WORKING" for p in (s.get("message") or {}).get("parts", []))
        return [p["data"]["text"] for p in parts if isinstance(p.get("data"), dict) and p["data"].get("type") == "status-indicator"]

    @property
    def reasoning(self) -> str:
        return "".join(e["text"] for e in self._internal("reasoning"))

    @property
    def usage(self) -> List[Dict[str, Any]]:
        return [e["value"] for e in self._internal("usage")]

    @property
    def tool_calls(self) -> List[Dict[str, Any]]:
        """Calls of the agent's own tools: name, arguments, and success with result or error."""
        ends = {e["toolCallId"]: e for e in self._internal("tool-complete")}
        calls = []
        for e in self._internal("tool-start"):
            end = ends.get(e["toolCallId"], {})
            calls.append({"name": e["toolName"], "arguments": e["arguments"], **{k: end[k] for k in ("success", "result", "error") if k in end}})
        return calls

    def _internal(self, kind: str) -> List[Dict[str, Any]]:
        return [e for e in self.events if e.get("kind") == f"internal:{kind}"]

    def _parts(self) -> List[Dict[str, Any]]:
        return [p for a in self.artifacts.values() for p in a.get("parts") or []]

    def __repr__(self) -> str:
        return f"Result({self.state}, {self.text!r})"

    def _add(self, event: Dict[str, Any]) -> None:
        self.events.append(event)
        self._emitted += is_counted(event)
        if "artifactUpdate" in event:
            self._add_artifact(event["artifactUpdate"])
        elif "statusUpdate" in event:
            self._status = event["statusUpdate"]["status"]
            self.state = self._status["state"].replace("TASK_STATE_", "").replace("_", "-").lower()
            if self.state in ("input-required", "auth-required"):
                self.questions.append(_text((self._status.get("message") or {}).get("parts")))
        elif event.get("kind") == "internal:state":
            if "name" in event:
                self.shared_state[event["name"]] = event["value"]
            else:
                self.shared_state = dict(event["value"])

    def _add_artifact(self, update: Dict[str, Any]) -> None:
        new, old = update["artifact"], self.artifacts.get(update["artifact"]["artifactId"])
        if not update.get("append") or old is None:
            if update.get("append"):
                raise AssertionError(f"the artifact {new['artifactId']} does not exist: nothing can be appended")
            self.artifacts[new["artifactId"]] = copy.deepcopy(new)
        elif old["parts"] and "text" in old["parts"][-1] and all("text" in p for p in new["parts"]):
            old["parts"][-1]["text"] += _text(new["parts"])
        elif old["parts"] and (new["parts"][0].get("metadata") or {}).get("chunk"):
            old["parts"][-1]["raw"] += new["parts"][0]["raw"]
        else:
            old["parts"] += copy.deepcopy(new["parts"])


class _Collector(Sink):
    """Adds the events to a result, and plays the loss of the process."""

    def __init__(self, result: Result, lost_after: Optional[int], on_event: Optional[Callable[[int], None]]) -> None:
        self._result, self._lost_after, self._on_event = result, lost_after, on_event
        self._sent = 0

    def emit(self, event: Dict[str, Any]) -> None:
        event = json.loads(_rpc.encode(event))  # EncodeError as with a server
        if self._lost_after is not None and self._sent >= self._lost_after:
            raise _Lost
        self._sent += 1
        self._result._add(event)
        if self._on_event:
            self._on_event(self._sent)

    async def journal(self, text: str) -> None:
        await asyncio.sleep(0)  # the server answers later
        if self._lost_after is not None and self._sent >= self._lost_after:
            raise _Lost
        self._result._journal, self._result._emitted = text, 0


class Conversation:
    """Several turns with one agent: the function, or what it gets besides the message."""

    def __init__(self, function: Callable[[Any], Any], *, history: Sequence[Text] = (), metadata: Optional[Mapping[str, Any]] = None,
                 tools: Sequence[Mapping[str, Any]] = (), state: Optional[Mapping[str, Any]] = None, principal: str = "") -> None:
        self._function = function
        self._metadata = dict(metadata or {})
        if state is not None:
            self._metadata["dragoman:state"] = dict(state)
        self._tools = [dict(t) for t in tools]
        self._principal = principal
        self._context = f"context-{uuid.uuid4().hex[:8]}"
        self._task = ""
        #: Complete messages of the conversation, as the next turn gets them.
        self.history: List[Dict[str, Any]] = [_message(m) for m in history]
        self.result = Result()

    def send(self, message: Text, *, steering: Sequence[Text] = (), lost_after: Optional[int] = None,
             cancel_after: Optional[int] = None) -> Result:
        """Sends a message and returns the result. If the agent has asked a question, the message is the answer.

        `steering`: messages that arrive while the agent works. `lost_after`: the process is lost after so many events, and the
        function runs again. `cancel_after`: the caller cancels after so many events.
        """
        return asyncio.run(self.send_async(message, steering=steering, lost_after=lost_after, cancel_after=cancel_after))

    async def send_async(self, message: Text, *, steering: Sequence[Text] = (), lost_after: Optional[int] = None,
                         cancel_after: Optional[int] = None) -> Result:
        """The same, in an event loop."""
        message = _message(message)
        if self.result.question is None:
            self.result = Result()
            self._task = f"task-{uuid.uuid4().hex[:8]}"
        result, messages = self.result, [_message(m) for m in steering]
        before = {"history": list(result._messages), "status": dict(result._status)} if result._messages else None
        result._messages.append(message)
        try:
            await self._run(message, messages, lost_after, cancel_after, before, False)
        except _Lost:
            await self._run(message, messages, None, None, {"history": list(result._messages)}, True)
        self._remember(message, messages)
        return result

    async def _run(self, message: Dict[str, Any], steering: List[Dict[str, Any]], lost_after: Optional[int], cancel_after: Optional[int],
                   task: Optional[Dict[str, Any]], is_resumed: bool) -> None:
        result = self.result
        if task is not None:
            task = {"id": self._task, "contextId": self._context, "status": dict(result._status),
                    "artifacts": copy.deepcopy(list(result.artifacts.values())), **task}
        running: List[asyncio.Task[str]] = []

        def on_event(n: int) -> None:
            if n == cancel_after and running:
                running[0].cancel()

        params = {"run": "r1", "agent": "main", "thread": self._context, "task": self._task, "context": self._context, "principal": self._principal,
                  "isResumed": is_resumed, "metadata": self._metadata, "tools": self._tools, "acceptedOutputModes": [], "attempt": 1 + is_resumed,
                  "message": message, "history": self.history + result._messages[:-1], "accepted": steering if is_resumed else [],
                  "currentTask": task, "journal": result._journal, "emitted": result._emitted}
        running.append(asyncio.get_running_loop().create_task(self._turn(params, _Collector(result, lost_after, on_event), steering)))
        try:
            if await running[0] == "completed" and result.state == "working":
                result.state = "completed"
        except asyncio.CancelledError:
            result.state = "canceled"

    async def _turn(self, params: Dict[str, Any], sink: Sink, steering: List[Dict[str, Any]]) -> str:
        turn = Turn(params, sink)
        for message in [] if params["isResumed"] else steering:
            turn._receive(message)
        return await run_turn(self._function, turn)

    def _remember(self, message: Dict[str, Any], steering: List[Dict[str, Any]]) -> None:
        result = self.result
        result._messages += steering
        if result.question is not None:
            result._messages.append({**_message(result.question), "role": "ROLE_AGENT"})
        else:
            self.history += result._messages
            if result.text:
                self.history.append({**_message(result.text), "role": "ROLE_AGENT"})


def run(function: Callable[[Any], Any], message: Text, *, answers: Sequence[Text] = (), **more: Any) -> Result:
    """Runs an agent for one message and answers its questions in order. `more`: the arguments of Conversation."""
    conversation = Conversation(function, **more)
    result = conversation.send(message)
    for answer in answers:
        if result.question is None:
            raise AssertionError(f"the agent has not asked a question: {answer!r} is an answer too many")
        result = conversation.send(answer)
    return result


def _message(value: Text) -> Dict[str, Any]:
    message = {"role": "ROLE_USER", "parts": [{"text": value}]} if isinstance(value, str) else dict(value)
    message.setdefault("messageId", f"m-{uuid.uuid4().hex[:12]}")
    return message


def _text(parts: Any) -> str:
    return "".join(p.get("text") or "" for p in parts or [])
