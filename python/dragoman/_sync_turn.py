"""SyncTurn: Turn for functions that are not async. They run in a thread; each call waits until it is done."""
from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Coroutine, Dict, List, Mapping, Optional, Sequence, TypeVar, Union, cast

from ._turn_messages import Answer, File, Json, Message, Tool
from ._turn import Sent, State, ToolCall, Turn

T = TypeVar("T")


class SyncTurn:
    """One turn of the conversation, for a function that runs in a thread. The same as Turn, without await.

    When the turn is canceled, the next call raises asyncio.CancelledError, which is not an Exception: it ends the function.
    """

    def __init__(self, turn: Turn, loop: asyncio.AbstractEventLoop) -> None:
        self._turn, self._loop = turn, loop
        self._is_canceled = False

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._is_canceled:
            work.close()
            raise asyncio.CancelledError
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _do(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        async def call() -> Any:
            result = function(*args, **kwargs)
            if isinstance(result, Sent):
                await result
            return result
        return self._wait(call())

    @property
    def is_canceled(self) -> bool:
        """The caller has canceled the turn: end soon."""
        return self._is_canceled

    # ---- what the caller wrote ----

    @property
    def message(self) -> Message:
        """The message that started this turn."""
        return self._turn.message

    @property
    def history(self) -> List[Message]:
        """The conversation before it, oldest first."""
        return self._turn.history

    @property
    def text(self) -> str:
        """The text of the message."""
        return self._turn.text

    @property
    def files(self) -> List[File]:
        return self._turn.files

    @property
    def instructions(self) -> str:
        return self._turn.instructions

    @property
    def metadata(self) -> Dict[str, Any]:
        return self._turn.metadata

    @property
    def tools(self) -> List[Tool]:
        return self._turn.tools

    @property
    def task_id(self) -> str:
        return self._turn.task_id

    @property
    def context_id(self) -> str:
        return self._turn.context_id

    @property
    def thread(self) -> str:
        return self._turn.thread

    @property
    def principal(self) -> str:
        return self._turn.principal

    @property
    def tenant(self) -> str:
        return self._turn.tenant

    @property
    def accepted_output_modes(self) -> List[str]:
        return self._turn.accepted_output_modes

    def chat(self) -> List[Dict[str, str]]:
        return self._turn.chat()

    def new_messages(self) -> List[Message]:
        """Messages that the caller sent to this turn while it works, since the last call."""
        return cast(List[Message], self._do(self._turn.new_messages))

    def wait_for_message(self) -> None:
        self._wait(self._turn.wait_for_message())

    # ---- what the agent sends ----

    def write(self, text: str) -> None:
        """Adds text to the answer."""
        self._do(self._turn.write, text)

    def progress(self, text: str) -> None:
        self._do(self._turn.progress, text)

    def reasoning(self, text: str) -> None:
        self._do(self._turn.reasoning, text)

    def tool_call(self, name: str, arguments: Json = None) -> SyncToolCall:
        return SyncToolCall(self, cast(ToolCall, self._do(self._turn.tool_call, name, arguments)))

    def usage(self, *, input_tokens: int = 0, output_tokens: int = 0, total_tokens: Optional[int] = None, model: Optional[str] = None,
              **more: Json) -> None:
        self._do(self._turn.usage, input_tokens=input_tokens, output_tokens=output_tokens, total_tokens=total_tokens, model=model, **more)

    def custom(self, name: str, value: Json) -> None:
        self._do(self._turn.custom, name, value)

    def file(self, name: str, content: Union[bytes, str, os.PathLike[str], None] = None, *, url: Optional[str] = None,
             media_type: Optional[str] = None) -> None:
        self._do(self._turn.file, name, content, url=url, media_type=media_type)

    def data(self, value: Json, name: str = "data") -> None:
        self._do(self._turn.data, value, name)

    def emit(self, event: Dict[str, Any]) -> None:
        self._do(self._turn.emit, event)

    @property
    def state(self) -> SyncState:
        return SyncState(self)

    # ---- questions and steps ----

    def ask(self, question: str, *, choices: Optional[Sequence[str]] = None, schema: Optional[Mapping[str, Any]] = None) -> Answer:
        return self._wait(self._turn.ask(question, choices=choices, schema=schema))

    def approve(self, tool: str, arguments: Json = None, *, question: Optional[str] = None) -> bool:
        return self._wait(self._turn.approve(tool, arguments, question=question))

    def sign_in(self, url: str, reason: str = "Please sign in.") -> Answer:
        return self._wait(self._turn.sign_in(url, reason))

    def call_tool(self, name: str, arguments: Json = None) -> Json:
        return self._wait(self._turn.call_tool(name, arguments))

    def step(self, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Calls the function once, in this thread, and stores its result."""
        found, value, step = self._do(self._turn._start_step, name)
        if found:
            return cast(T, value)
        try:
            value = function(*args, **kwargs)
        except Exception as e:
            self._turn._fail_step(step, e)
            raise
        return cast(T, self._wait(self._turn._end_step(step, value)))


class SyncState(State):
    """State of a SyncTurn: the same object on the other side."""

    def __init__(self, turn: SyncTurn) -> None:
        self._sync = turn
        self._behind = turn._turn.state
        self._value = self._behind._value

    def __setitem__(self, name: str, value: Any) -> None:
        self._sync._do(self._behind.__setitem__, name, value)

    def __delitem__(self, name: str) -> None:
        self._sync._do(self._behind.__delitem__, name)
        self._value = self._behind._value

    def replace(self, value: Mapping[str, Any]) -> Sent:
        sent = cast(Sent, self._sync._do(self._behind.replace, value))
        self._value = self._behind._value
        return sent


class SyncToolCall:
    """ToolCall of a SyncTurn."""

    def __init__(self, turn: SyncTurn, call: ToolCall) -> None:
        self._sync, self._call = turn, call
        self.id, self.name, self.arguments = call.id, call.name, call.arguments
        self.result: Json = None

    def succeeded(self, result: Json) -> None:
        self._sync._do(self._call.succeeded, result)

    def failed(self, error: str) -> None:
        self._sync._do(self._call.failed, error)

    def __enter__(self) -> SyncToolCall:
        return self

    def __exit__(self, kind: Any, error: Any, tb: Any) -> None:
        self._call.result = self.result
        try:
            self._sync._do(self._call.__exit__, kind, error, tb)
        except asyncio.CancelledError:
            if error is None:
                raise
