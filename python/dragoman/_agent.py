"""The agent loop: a language model with tools and MCP servers, without a server."""
from __future__ import annotations

import ctypes
import json
import threading
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Type, Union

from . import _agent_library as c

_WAIT_MS = 200  # so that Ctrl-C is noticed


class AgentError(RuntimeError):
    """A loop cannot be opened, or there is no task. A task that fails is an event, not an error.

    `code` is for programs ("BAD_PARAMS", "TASK_NOT_FOUND", "UNAVAILABLE", ...), `pointer` is the JSON pointer of the
    invalid setting, `line` its line in a configuration, counted from 1 (0: not known).
    """

    def __init__(self, message: str, code: str, pointer: str = "", line: int = 0) -> None:
        super().__init__(message, code, pointer, line)
        self.message, self.code, self.pointer, self.line = message, code, pointer, line

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class _Err:
    """A dgm_err, freed with this object."""

    def __init__(self, lib: ctypes.CDLL) -> None:
        self._lib = lib
        self._as_parameter_ = ctypes.c_void_p(lib.dgm_err_new())

    def __del__(self) -> None:
        self._lib.dgm_err_free(self)

    def exception(self) -> AgentError:
        lib = self._lib
        return AgentError(lib.dgm_err_message(self).decode("utf-8", "replace"),
                          lib.dgm_code_name(lib.dgm_err_code(self)).decode(),
                          lib.dgm_err_pointer(self).decode("utf-8", "replace"), lib.dgm_err_line(self))


def _utf8(text: Optional[str]) -> Optional[bytes]:
    return None if text is None else text.encode("utf-8", "surrogatepass")  # the library refuses unpaired surrogates


def _json(value: Union[None, str, Mapping[str, Any]]) -> Optional[bytes]:
    return _utf8(value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False))


class Events(Iterator[Dict[str, Any]]):
    """The events of one execute() or resume(), in the form of A2A 0.3.

    The agent runs whether events are read or not. `close()` stops reading; the task goes on. One thread at a time.
    """

    def __init__(self, lib: ctypes.CDLL, handle: ctypes.c_void_p) -> None:
        self._lib, self._handle = lib, handle

    def __next__(self) -> Dict[str, Any]:
        event = ctypes.POINTER(c.Event)()
        err = _Err(self._lib)
        if not self._handle:
            raise StopIteration
        found = c.TIMEOUT
        while found == c.TIMEOUT:
            found = self._lib.dgm_agent_stream_next(self._handle, _WAIT_MS, ctypes.byref(event), err)
        if found == c.EVENT:
            text = event.contents.json
            result: Dict[str, Any] = json.loads(ctypes.string_at(text.p, text.n))
            return result
        self.close()
        if found == c.END:
            raise StopIteration
        raise err.exception()

    def close(self) -> None:
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            self._lib.dgm_agent_stream_free(handle)

    def __enter__(self) -> Events:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self.close()


class AgentLoop:
    """An agent with tools, run by this process.

        with AgentLoop({"base_url": "https://api.example.com/v1", "model": "m-1", "api_key_env": "KEY"}) as loop:
            for event in loop.execute("Hello"):
                print(event["kind"])

    `settings` are those of an agent of `type: llm`, `mcp` the MCP servers that its tools name. Instead of both: `config`,
    a whole configuration as `dragoman serve` reads it (YAML or JSON text, or a dict), or `config_file`, its path; `agent` is then the
    id of the agent, if not the default one. `store` is "memory:" or "sqlite:PATH". `on_log` gets lines for the
    operator's log, from another thread. All methods may be called from any thread.
    """

    def __init__(self, settings: Optional[Mapping[str, Any]] = None, *, mcp: Optional[Mapping[str, Any]] = None,
                 config: Union[None, str, Mapping[str, Any]] = None, config_file: Optional[str] = None,
                 agent: Optional[str] = None, store: str = "memory:",
                 on_log: Optional[Callable[[str], None]] = None) -> None:
        self._lib = c.library()
        self._changed = threading.Condition()
        self._calls = 0  # in progress
        self._handle = ctypes.c_void_p()
        texts = [_json(settings), _json(config), _json(mcp)]  # borrowed until the loop is open
        self._on_log = self._make_log(on_log)
        options = c.LoopOptions(size=ctypes.sizeof(c.LoopOptions), settings=c.borrow(texts[0]), config=c.borrow(texts[1]),
                                config_file=_utf8(config_file), mcp=c.borrow(texts[2]), agent=_utf8(agent),
                                store=_utf8(store), on_log=self._on_log)
        err = _Err(self._lib)
        handle = ctypes.c_void_p()
        if self._lib.dgm_agent_loop_new(ctypes.byref(options), ctypes.byref(handle), err):
            raise err.exception()
        self._handle = handle

    @staticmethod
    def _make_log(on_log: Optional[Callable[[str], None]]) -> Any:
        if on_log is None:
            return c.OnLog()  # NULL
        given = on_log

        def line(user: Optional[int], text: Any) -> None:
            given(ctypes.string_at(text.p, text.n).decode("utf-8", "replace"))

        return c.OnLog(line)

    def _start(self, function: Callable[..., int], *arguments: Any) -> Events:
        stream, err = ctypes.c_void_p(), _Err(self._lib)
        with _Call(self) as loop:
            if function(loop, *arguments, ctypes.byref(stream), err):
                raise err.exception()
        return Events(self._lib, stream)

    def execute(self, prompt: Union[str, Mapping[str, Any]], context_id: Optional[str] = None, *,
                task_id: Optional[str] = None) -> Events:
        """Runs the agent and returns its events: a `task` first, last a status-update that ends the turn.

        `prompt` is a text, or an A2A message as a dict (files, data, the answer to an approval). `context_id` is the
        conversation, `task_id` a task that waits for input.
        """
        is_text = isinstance(prompt, str)
        text = _json(prompt)
        ids = [_utf8(context_id), _utf8(task_id)]
        options = c.ExecuteOptions(size=ctypes.sizeof(c.ExecuteOptions), context_id=c.borrow(ids[0]),
                                   task_id=c.borrow(ids[1]), message=c.borrow(None if is_text else text))
        return self._start(self._lib.dgm_agent_stream_execute, c.borrow(text if is_text else None), ctypes.byref(options))

    def resume(self, task_id: str) -> Events:
        """The events of a task until its turn ends, without a `task`; of a finished task its status."""
        text = _utf8(task_id)
        return self._start(self._lib.dgm_agent_stream_resume, c.borrow(text))

    def cancel(self, task_id: str) -> None:
        """Cancels a task and waits until it has stopped."""
        text, err = _utf8(task_id), _Err(self._lib)
        with _Call(self) as loop:
            if self._lib.dgm_agent_loop_cancel(loop, c.borrow(text), err):
                raise err.exception()

    def close(self) -> None:
        """Stops everything. Tasks that still run stay in their store; the next loop resumes them."""
        with self._changed:
            handle, self._handle = self._handle, ctypes.c_void_p()
            while self._calls:
                self._changed.wait()
        if handle:
            self._lib.dgm_agent_loop_free(handle)

    def __enter__(self) -> AgentLoop:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


class _Call:
    """A call in progress: close() waits for it."""

    def __init__(self, loop: AgentLoop) -> None:
        self._loop = loop

    def __enter__(self) -> ctypes.c_void_p:
        with self._loop._changed:
            if not self._loop._handle:
                raise AgentError("the agent loop is closed", "UNAVAILABLE")
            self._loop._calls += 1
            return self._loop._handle

    def __exit__(self, *_: object) -> None:
        with self._loop._changed:
            self._loop._calls -= 1
            self._loop._changed.notify_all()
