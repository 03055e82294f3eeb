"""Turn: what the function of an agent gets. Everything that it sends goes through here, and replay is decided here.

Turn is for async functions and belongs to one event loop. SyncTurn (_sync_turn.py) is the same for functions that run in a
thread. Neither knows the server: a Sink accepts the events.
"""
from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import mimetypes
import os
import sys
from types import TracebackType
from typing import (Any, Awaitable, Callable, Dict, Generator, Iterator, List, Mapping, MutableMapping, Optional, Sequence, Tuple, Type,
                    TypeVar, Union, cast)

from . import _rpc
from ._journal import Journal, NotDeterministic, Segment
from ._turn_messages import Answer, File, Json, Message, Tool, tools_of

_MAX_QUEUED_BYTES = 64 << 20  # of output that is not awaited
_CHUNK = 256 << 10  # characters of one event: below the limit of a line
_FILE_CHUNK = 3 << 20  # bytes of a file in one event
_MAX_FILE = 20 << 20  # bytes of a file: the server's limit file_bytes
_YIELD_EVERY = 32  # awaited writes after which other runs get their turn

T = TypeVar("T")


class Failed(Exception):
    """Raise it to fail the task: callers read the sentence. Any other exception is only in the operator's log."""


class Rejected(Exception):
    """Raise it to refuse the message: callers read the sentence. The task ends as rejected."""


class Suspended(BaseException):
    """Ends the function while a question waits for its answer. Do not catch it."""


class Sink:
    """Accepts what a turn sends: a connection to the server, or a test."""

    def emit(self, event: Dict[str, Any]) -> None:
        raise NotImplementedError

    async def drain(self) -> None:
        """Waits while the reader is slow."""

    def is_full(self) -> bool:
        return False

    def queued_bytes(self) -> int:
        return 0

    async def journal(self, text: str) -> None:
        raise NotImplementedError


class Sent:
    """The result of sending. Await it, so that a fast agent waits for a slow reader; the event is sent in any case."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __await__(self) -> Generator[Any, None, None]:
        turn = self._turn
        turn._writes += 1
        if turn._sink.is_full():
            yield from turn._sink.drain().__await__()
        elif turn._writes % _YIELD_EVERY == 0:
            yield  # so that other runs and a cancel get their turn


class _Text:
    """The streamed text of a segment: one artifact. `before` is what the server has of it from a run that was lost; text that
    is the same is not sent again, and the artifact restarts where it is not."""

    def __init__(self, artifact_id: str, before: Optional[str]) -> None:
        self.id, self._before, self._same = artifact_id, before, 0
        self._is_open = False

    def chunks(self, text: str) -> Iterator[Dict[str, Any]]:
        append = self._is_open
        if self._before is not None:
            rest = self._before[self._same:]
            if rest.startswith(text):
                self._same += len(text)
                self._is_open = True
                return
            if text.startswith(rest):
                text, append = text[len(rest):], True
            else:
                text, append = self._before[:self._same] + text, False
            self._before = None
        for at in range(0, len(text), _CHUNK):
            yield self._update(text[at:at + _CHUNK], append, False)
            self._is_open = append = True

    def end(self) -> Iterator[Dict[str, Any]]:
        before, self._before = self._before, None
        if before is not None and self._same < len(before):
            yield self._update(before[:self._same], False, True)
        elif self._is_open or before:
            yield self._update("", True, True)
        self._is_open = False

    def _update(self, text: str, append: bool, last: bool) -> Dict[str, Any]:
        return {"artifactUpdate": {"artifact": {"artifactId": self.id, "parts": [{"text": text}]}, "append": append, "lastChunk": last}}


def _text_of(artifact: Optional[Mapping[str, Any]]) -> Optional[str]:
    if artifact is None:
        return None
    return "".join(p.get("text") or "" for p in artifact.get("parts") or [])


class State(MutableMapping[str, Any]):
    """State that the agent shares with its callers (AG-UI). Setting a member sends it; replace() sends everything."""

    def __init__(self, turn: Turn, value: Any) -> None:
        self._turn = turn
        self._value: Dict[str, Any] = dict(value) if isinstance(value, dict) else {}

    def __getitem__(self, name: str) -> Any:
        return self._value[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._turn._event({"kind": "internal:state", "name": name, "value": value})
        self._value[name] = value

    def __delitem__(self, name: str) -> None:
        self._value[name]  # KeyError
        self.replace({key: value for key, value in self._value.items() if key != name})

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def replace(self, value: Mapping[str, Any]) -> Sent:
        """Sends the whole state."""
        copy = dict(value)
        sent = self._turn._event({"kind": "internal:state", "value": copy})
        self._value = copy
        return sent

    def __repr__(self) -> str:
        return f"State({self._value!r})"


class ToolCall:
    """A call of one of the agent's own tools: `with turn.tool_call(...) as call: call.result = ...`, or call succeeded() or
    failed()."""

    def __init__(self, turn: Turn, name: str, arguments: Json) -> None:
        self._turn, self.name, self.arguments = turn, name, arguments
        self.id = turn._new_call_id()
        self.result: Json = None
        self._is_over = False
        turn._event({"kind": "internal:tool-start", "toolCallId": self.id, "toolName": name, "arguments": arguments})

    def succeeded(self, result: Json) -> Sent:
        """Reports the result."""
        self.result = result
        return self._end({"success": True, "result": result})

    def failed(self, error: str) -> Sent:
        """Reports a failure; callers may read the sentence."""
        return self._end({"success": False, "error": error})

    def _end(self, how: Dict[str, Any]) -> Sent:
        if self._is_over:
            raise RuntimeError(f"the call of {self.name} has its result already")
        self._is_over = True
        return self._turn._event({"kind": "internal:tool-complete", "toolCallId": self.id, **how})

    def __enter__(self) -> ToolCall:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        if self._is_over or self._turn._is_over or isinstance(error, Suspended):
            return
        if error is None:
            self.succeeded(self.result)
        else:
            self.failed(str(error) if isinstance(error, Failed) else "canceled" if isinstance(error, asyncio.CancelledError)
                        else f"{self.name} failed")

    async def __aenter__(self) -> ToolCall:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        self.__exit__(kind, error, tb)


class Turn:
    """One turn of the conversation, for an async function. See docs/agents/python.md."""

    def __init__(self, params: Mapping[str, Any], sink: Sink) -> None:
        self._sink = sink
        self._journal = Journal(params)
        self._task: Dict[str, Any] = dict(params.get("currentTask") or {})
        self._is_resumed = bool(params.get("isResumed"))
        self._emitted = int(params.get("emitted") or 0)  # events of the open segment that were sent behind the journal
        self._writes = 0
        self._is_over = False
        self._is_suspended = False  # a question is being asked
        self._has_asked = False
        self._inbox: List[Dict[str, Any]] = list(self._journal.unread)
        received = set(self._journal.ids_received())
        self._inbox += [m for m in params.get("accepted") or [] if m.get("messageId") not in received]
        self._arrived = asyncio.Event()
        #: The message that started this turn. It stays the same when the function runs again after an answer.
        self.message = Message(self._journal.message)
        #: The conversation before it, oldest first.
        self.history: List[Message] = [Message(m) for m in self._journal.history]
        #: Metadata of the request; see docs/agents.md for the keys that start with `dragoman:`.
        self.metadata: Dict[str, Any] = self._journal.metadata
        #: Tools that the caller runs: see call_tool().
        self.tools: List[Tool] = tools_of(self._journal.tools)
        self.task_id: str = params.get("task", "")
        self.context_id: str = params.get("context", "")
        #: A key for what the agent stores about this conversation. A context_id alone is not unique.
        self.thread: str = params.get("thread", "")
        self.principal: str = params.get("principal") or ""
        self.tenant: str = params.get("tenant") or ""
        self.accepted_output_modes: List[str] = list(params.get("acceptedOutputModes") or [])
        #: State that the agent shares with its callers.
        self.state = State(self, self.metadata.get("dragoman:state"))
        self._index = -1
        self._next_segment()
        if (self._task.get("status") or {}).get("state") != "TASK_STATE_WORKING":
            self._sink.emit(status_update("TASK_STATE_WORKING"))

    # ---- what the caller wrote ----

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def files(self) -> List[File]:
        """The files of the message."""
        return self.message.files

    @property
    def instructions(self) -> str:
        """System and developer messages of OpenAI's and AG-UI's clients, as one text."""
        return str(self.metadata.get("dragoman:instructions") or "")

    def chat(self) -> List[Dict[str, str]]:
        """The conversation and the message as messages of Chat Completions: role and content, texts only."""
        messages = [{"role": "system", "content": self.instructions}] if self.instructions else []
        for message in [*self.history, self.message]:
            if message.text:
                messages.append({"role": "assistant" if message.role == "agent" else "user", "content": message.text})
        return messages

    def new_messages(self) -> List[Message]:
        """Messages that the caller sent to this turn while it works (steering), since the last call. Recorded for replay."""
        self._check()
        segment, poll = self._segment, self._polls
        self._polls += 1
        if poll < segment.polls:  # as in the run before
            return [Message(m) for m in segment.received.get(str(poll), [])]
        found, self._inbox = self._inbox, []
        self._arrived.clear()
        segment.polls = self._polls
        if found:
            segment.received[str(poll)] = found
        return [Message(m) for m in found]

    async def wait_for_message(self) -> None:
        """Returns when new_messages() has one."""
        self._check()
        while not self._inbox and self._polls >= self._segment.polls:
            self._arrived.clear()
            await self._arrived.wait()

    # ---- what the agent sends ----

    def write(self, text: str) -> Sent:
        """Adds text to the answer. Callers see it at once."""
        if not isinstance(text, str):
            raise TypeError(f"expected text, got {type(text).__name__}: turn.data() sends other values")
        self._check()
        if not self._is_replaying():
            _rpc.encode(text)  # EncodeError before anything changes
            for event in self._text.chunks(text):
                self._emit(event)
        return Sent(self)

    def progress(self, text: str) -> Sent:
        """Shows what the agent is doing. It is not part of the answer."""
        part = {"data": {"type": "status-indicator", "text": text, "displayAs": "loading"}}
        return self._event(status_update("TASK_STATE_WORKING", [part]))

    def reasoning(self, text: str) -> Sent:
        """Adds text to the reasoning that clients may show apart from the answer."""
        return self._event({"kind": "internal:reasoning", "text": text})

    def tool_call(self, name: str, arguments: Json = None) -> ToolCall:
        """Reports a call of one of the agent's own tools: a context manager whose `result` is the result."""
        return ToolCall(self, name, {} if arguments is None else arguments)

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0, total_tokens: Optional[int] = None, model: Optional[str] = None,
              **more: Json) -> Sent:
        """Reports the tokens that a model used."""
        value: Dict[str, Any] = {"inputTokens": input_tokens, "outputTokens": output_tokens,
                                 "totalTokens": input_tokens + output_tokens if total_tokens is None else total_tokens, **more}
        if model is not None:
            value["model"] = model
        return self._event({"kind": "internal:usage", "value": value})

    def custom(self, name: str, value: Json) -> Sent:
        """Sends a custom event to AG-UI clients, a data part to AI SDK clients."""
        return self._event({"kind": "internal:custom", "name": name, "value": value})

    def file(self, name: str, content: Union[bytes, str, os.PathLike[str], None] = None, *, url: Optional[str] = None,
             media_type: Optional[str] = None) -> Sent:
        """Sends a file: its bytes (a str is text), the path of a file to read, or a URL."""
        if (content is None) == (url is None):
            raise ValueError("expected content or url, and not both")
        part: Dict[str, Any] = {"filename": name, "mediaType": media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"}
        if url is not None:
            part["url"] = url
        else:
            return self._artifact("file", name, _parts_of_file(part, _bytes_of(content)))
        return self._artifact("file", name, [part])

    def data(self, value: Json, name: str = "data") -> Sent:
        """Sends a JSON value as an artifact."""
        return self._artifact("data", name, [{"data": value}])

    def emit(self, event: Dict[str, Any]) -> Sent:
        """Sends any event, in the form that docs/agents.md describes for programs. Not sent again when the function runs again."""
        return self._emitted_artifact(event) if isinstance(event.get("artifactUpdate"), dict) else self._event(event)

    # ---- questions ----

    async def ask(self, question: str, *, choices: Optional[Sequence[str]] = None, schema: Optional[Mapping[str, Any]] = None) -> Answer:
        """Asks the caller and returns the answer. The function ends here; it runs again from the top when the answer is there."""
        parts: List[Dict[str, Any]] = [{"text": question}]
        if choices is not None or schema is not None:
            data: Dict[str, Any] = {"type": "question", "text": question}
            if choices is not None:
                data["choices"] = list(choices)
            if schema is not None:
                data["schema"] = dict(schema)
            parts.append({"data": data})
        return await self._ask(question, "TASK_STATE_INPUT_REQUIRED", parts)

    async def approve(self, tool: str, arguments: Json = None, *, question: Optional[str] = None) -> bool:
        """Asks whether a tool may be called. Asks again until the answer is a decision."""
        text = question or f"May {tool} be called? Answer yes or no."
        while True:
            request = {"type": "approval-request", "id": self._question_id(), "tool": tool, "arguments": {} if arguments is None else arguments}
            answer = await self._ask(text, "TASK_STATE_INPUT_REQUIRED", [{"text": text}, {"data": request}])
            if answer.approved is not None:
                return answer.approved

    async def sign_in(self, url: str, reason: str = "Please sign in.") -> Answer:
        """Asks the caller to sign in at a URL; any message is the answer."""
        return await self._ask(reason, "TASK_STATE_AUTH_REQUIRED", [{"text": reason}, {"data": {"type": "auth-request", "url": url, "reason": reason}}])

    async def call_tool(self, name: str, arguments: Json = None) -> Json:
        """Lets the caller run one of its tools (see `tools`) and returns the output."""
        call_id = self._question_id()
        call = {"call_id": call_id, "name": name, "arguments": {} if arguments is None else arguments}
        key = f"tool {name} {json.dumps(call['arguments'], sort_keys=True, default=str)}"
        answer = await self._ask(key, "TASK_STATE_INPUT_REQUIRED", [{"data": {"tool_calls": [call]}}])
        return answer.result_of(call_id)

    def _question_id(self) -> str:
        return f"call-{self.task_id or 'turn'}-{self._index + 1}"

    async def _ask(self, key: str, state: str, parts: List[Dict[str, Any]]) -> Answer:
        self._check()
        segment = self._segment
        if segment.question is not None and segment.question != key:
            raise NotDeterministic(f"question {self._index + 1} was {segment.question!r} when the function ran before, and is now {key!r}")
        if segment.answer is not None:
            missing = segment.step_not_requested()
            if missing is not None:
                raise NotDeterministic(f"before question {self._index + 1} ({key!r}) the step {missing!r} was run, and is not run now")
            answer = Answer(Message(segment.answer))
            self._next_segment()
            return answer
        self._end_text()
        self._is_suspended = True  # another question at the same time is asked in the next run
        if segment.question is None:
            segment.question = key
            try:
                await self._store()
            except BaseException:
                segment.question, self._is_suspended = None, False
                raise
        self._sink.emit(status_update(state, parts))
        self._has_asked = self._is_over = True
        raise Suspended

    # ---- results that are stored ----

    async def step(self, name: str, function: Callable[..., Union[T, Awaitable[T]]], *args: Any, **kwargs: Any) -> T:
        """Calls the function once and stores its result, which must be JSON. When the agent's function runs again, the stored
        result is returned, or the exception is raised, and the function is not called."""
        found, value, step = self._start_step(name)
        if found:
            return cast(T, value)
        try:
            result = function(*args, **kwargs)
            value = await result if isinstance(result, Awaitable) else result
        except Exception as e:
            self._fail_step(step, e)
            raise
        return cast(T, await self._end_step(step, value))

    def _start_step(self, name: str) -> Tuple[bool, Json, List[Json]]:
        """Whether there is a result, the result, and the step that is passed to _end_step()."""
        self._check()
        segment = self._segment
        step = segment.find_step(name)
        if step is not None and len(step) > 3:
            raise _make_exception(*step[3])
        if step is not None and len(step) > 2:
            return True, json.loads(json.dumps(step[2])), step  # a copy: the function may change it
        if step is None:
            if self._is_replaying():
                raise NotDeterministic(f"the step {name!r} is run before question {self._index + 1} ({segment.question!r}), and was not run "
                                       "there before")
            step = segment.add_step(name)
        return False, None, step

    async def _end_step(self, step: List[Json], value: Json) -> Json:
        try:
            text = _rpc.encode(value)
        except _rpc.EncodeError as e:
            raise TypeError(f"the result of the step {step[0]!r} cannot be stored: {e}") from None
        step.append(json.loads(text))
        await self._store()
        return json.loads(text)  # as it is when the function runs again: a tuple is a list

    @staticmethod
    def _fail_step(step: List[Json], error: Exception) -> None:
        """Stored with the next question or step: the function may go on after the exception, and must do so again."""
        text = str(error).encode("utf-8", "replace").decode("utf-8")[:10000]
        step += [None, [type(error).__module__, type(error).__qualname__, text]]

    # ---- inside ----

    def _is_replaying(self) -> bool:
        """The output of this segment was sent before: its question has an answer."""
        return self._segment.answer is not None

    def _next_segment(self) -> None:
        self._index += 1
        self._segment: Segment = self._journal.segments[self._index]
        self._polls = self._events = self._calls = self._artifacts = 0
        self._shown: Dict[str, List[Dict[str, Any]]] = {}  # parts of artifacts of emit(), as this run has made them
        # Only a run that was lost has sent something of the open segment before.
        self._before = {a.get("artifactId"): a for a in self._task.get("artifacts") or []} if self._is_resumed and not self._is_replaying() else {}
        self._events_before = self._segment.events + (0 if self._is_replaying() else self._emitted)
        answer_id = "answer" if self._index == 0 else f"answer-{self._index + 1}"
        self._text = _Text(answer_id, _text_of(self._before.get(answer_id)))

    async def _store(self) -> None:
        segment = self._segment
        # the server counts from here on: also what a lost run has sent and this one has not reached yet
        segment.events = max(segment.events, self._events, self._events_before)
        segment.polls = max(segment.polls, self._polls)
        await self._sink.journal(self._journal.encode(self._inbox))

    def _check(self) -> None:
        if self._is_suspended:
            raise Suspended
        if self._is_over:
            raise RuntimeError("the turn is over: nothing can be sent any more")

    def _emit(self, event: Dict[str, Any]) -> None:
        if self._sink.queued_bytes() > _MAX_QUEUED_BYTES:
            raise BufferError(f"more than {_MAX_QUEUED_BYTES} bytes wait to be sent: await the result of turn.write()")
        self._sink.emit(event)

    def _event(self, event: Dict[str, Any]) -> Sent:
        self._check()
        counted = is_counted(event)
        self._events += counted
        if not self._is_replaying() and not (counted and self._events <= self._events_before):
            self._emit(event)
        return Sent(self)

    def _emitted_artifact(self, update: Dict[str, Any]) -> Sent:
        """An artifact of emit(). Parts that a lost run has sent are not sent again; if this run makes other parts, the artifact
        starts again."""
        artifact = update["artifactUpdate"].get("artifact") or {}
        key = str(artifact.get("artifactId"))
        before = self._before.get(key)
        self._check()
        if before is None or self._is_replaying():
            return self._event(update)
        parts = _join_texts((self._shown.get(key, []) if update["artifactUpdate"].get("append") else []) + list(artifact.get("parts") or []))
        self._shown[key] = parts
        if not _is_start(parts, before.get("parts") or []):
            del self._before[key]
            update = {"artifactUpdate": {**update["artifactUpdate"], "append": False, "artifact": {**artifact, "parts": parts}}}
            self._emit(update)
        return Sent(self)

    def _artifact(self, kind: str, name: str, parts: List[Dict[str, Any]]) -> Sent:
        self._check()
        self._artifacts += 1
        artifact = {"artifactId": f"{kind}-{self._index + 1}-{self._artifacts}", "name": name, "parts": parts}
        before = self._before.get(artifact["artifactId"])
        if not self._is_replaying() and (before is None or not _is_same_artifact(before.get("parts") or [], parts)):
            for i, part in enumerate(parts):
                self._emit({"artifactUpdate": {"artifact": {**artifact, "parts": [part]}, "append": i > 0, "lastChunk": i == len(parts) - 1}})
        return Sent(self)

    def _new_call_id(self) -> str:
        """The same one when the function runs again."""
        self._calls += 1
        return "call-" + hashlib.sha256(f"{self.task_id}/{self.message.id}/{self._index}/{self._calls}".encode()).hexdigest()[:12]

    def _end_text(self) -> None:
        if not self._is_replaying():
            for event in self._text.end():
                self._emit(event)

    def _receive(self, message: Dict[str, Any]) -> None:
        self._inbox.append(message)
        self._arrived.set()

    def _finish(self) -> None:
        """The function has returned."""
        if self._is_replaying() and not self._is_over:
            raise NotDeterministic(f"question {self._index + 1} was {self._segment.question!r} when the function ran before, and has not been asked "
                                   "now when the function ended")
        if not self._is_over:
            self._end_text()
        self._is_over = True


def is_counted(event: Dict[str, Any]) -> bool:
    """Events that the server counts, too: internal ones, and progress."""
    kind = event.get("kind")
    update = event.get("statusUpdate") or (event if kind == "status-update" else {})
    status = update.get("status") or {}
    if isinstance(kind, str) and kind.startswith("internal:"):
        return kind != "internal:message"
    return status.get("state") in ("TASK_STATE_WORKING", "working") and status.get("message") is not None


def _join_texts(parts: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """As the server stores them: neighbouring texts are one part."""
    joined: List[Dict[str, Any]] = []
    for part in parts:
        last = joined[-1] if joined else {}
        if "text" in part and "text" in last and part.get("metadata") == last.get("metadata"):
            joined[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def _is_start(parts: List[Dict[str, Any]], whole: List[Dict[str, Any]]) -> bool:
    if not parts or len(parts) > len(whole):
        return not parts
    last, same = parts[-1], whole[len(parts) - 1]
    starts = last == same or ("text" in last and str(same.get("text", "")).startswith(last["text"]) and last.get("metadata") == same.get("metadata"))
    return parts[:-1] == whole[:len(parts) - 1] and starts


def _parts_of_file(part: Dict[str, Any], content: bytes) -> List[Dict[str, Any]]:
    """One part, or several for a file that is too large for a line: the server joins those that have a number."""
    if len(content) > _MAX_FILE:
        raise ValueError(f"{part['filename']} has {len(content)} bytes; the limit file_bytes is {_MAX_FILE}: send its URL")
    if len(content) <= _FILE_CHUNK:
        return [{**part, "raw": base64.b64encode(content).decode()}]
    return [{**part, "raw": base64.b64encode(content[at:at + _FILE_CHUNK]).decode(), "metadata": {"chunk": i}}
            for i, at in enumerate(range(0, len(content), _FILE_CHUNK))]


def _is_same_artifact(before: List[Dict[str, Any]], parts: List[Dict[str, Any]]) -> bool:
    """`before` is what the server has; it leaves out the bytes of larger files."""
    size = (before[0].get("metadata") or {}).get("omittedBytes") if len(before) == 1 else None
    if size is None:
        return before == parts
    return before[0].get("filename") == parts[0].get("filename") and size == sum(len(p.get("raw", "")) for p in parts)


def status_update(state: str, parts: Optional[List[Dict[str, Any]]] = None) -> Dict[str, Any]:
    status: Dict[str, Any] = {"state": state}
    if parts is not None:
        status["message"] = {"role": "ROLE_AGENT", "parts": parts}
    return {"statusUpdate": {"status": status}}


def _make_exception(module: str, name: str, text: str) -> Exception:
    """An exception of the same class, if the class is loaded, with the same text."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type) or not issubclass(found, Exception):
        return RuntimeError(text)
    error = found.__new__(found)  # without __init__, whose arguments are unknown
    error.args = (text,)
    return error


def _bytes_of(content: Union[bytes, str, os.PathLike[str], None]) -> bytes:
    if isinstance(content, os.PathLike):
        with open(content, "rb") as f:
            return f.read()
    return content.encode("utf-8") if isinstance(content, str) else bytes(content or b"")
