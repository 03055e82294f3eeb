"""Runs the functions of agent.py in a worker: finds them in a file, calls them, and reports how they ended."""
from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _rpc
from ._rpc import RpcError
from ._sync_turn import SyncTurn
from ._turn import Failed, Rejected, Sink, Turn, status_update
from .agent import MARK, AgentInfo
from .worker import Agents, LoadError, Run

_STOP_SECONDS = 1.0  # for a thread to end after a cancel

Function = Callable[[Any], Any]


# ---- finding them ----

def load_agents(spec: str) -> Dict[str, Function]:
    """The agents of FILE.py[:NAME] or MODULE[:NAME], by id. LoadError if the file has no agent."""
    path, name = split_spec(spec)
    module = _load_file(path) if path.endswith(".py") else importlib.import_module(path)
    found = {getattr(f, MARK).id: f for f in vars(module).values() if isinstance(getattr(f, MARK, None), AgentInfo)}
    if name is None:
        if not found:
            raise LoadError(f"{path} has no agent: put @agent (from dragoman.agent) above a function")
        return found
    chosen = found.get(name) or getattr(module, name, None)
    if not callable(chosen):
        raise LoadError(f"{path} has no agent {name}. Agents: {', '.join(sorted(found)) or 'none'}")
    return {name: chosen}


def split_spec(spec: str) -> "tuple[str, Optional[str]]":
    path, colon, name = spec.rpartition(":")
    return (path, name) if colon and name.isidentifier() else (spec, None)


def _load_file(path: str) -> ModuleType:
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise LoadError(f"there is no file {path}")
    folder, name = os.path.dirname(path), os.path.basename(path)[:-3]
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that it imports the files next to it
    if name in sys.modules or not name.isidentifier():
        name = f"_dragoman_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def choose_agent(agents: Mapping[str, Function], configured: str) -> Optional[str]:
    """The id of the agent for the configured one: the same id, the only one, or main."""
    if configured in agents:
        return configured
    if len(agents) == 1:
        return next(iter(agents))
    return "main" if "main" in agents else None


# ---- calling them ----

async def call_function(function: Function, turn: Turn) -> None:
    """Calls a function of any kind, to its end."""
    if inspect.isasyncgenfunction(function):
        async for text in function(turn):
            await turn.write(text)
    elif inspect.iscoroutinefunction(function):
        _write_result(turn, await function(turn))
    else:
        await _call_in_thread(function, turn)


def _write_result(turn: Turn, result: Any) -> None:
    if isinstance(result, str):
        turn.write(result)
    elif result is not None:
        raise TypeError(f"an agent returns a text or None, not {type(result).__name__}: turn.data() sends other values")


async def _call_in_thread(function: Function, turn: Turn) -> None:
    """In a thread of its own that does not hold the process: an executor would wait for it at the end."""
    loop = asyncio.get_running_loop()
    sync = SyncTurn(turn, loop)
    done: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        error: Optional[BaseException] = None
        result = None
        try:
            result = context.run(_run_sync, function, sync)
        except BaseException as e:  # also Suspended and CancelledError
            error = e
        try:
            loop.call_soon_threadsafe(_settle, done, result, error)
        except RuntimeError:  # the loop is closed
            pass

    threading.Thread(target=work, name=f"dragoman-{turn.task_id}", daemon=True).start()
    try:
        _write_result(turn, await asyncio.shield(done))
    except asyncio.CancelledError:
        sync._is_canceled = True
        if not done.done():
            await asyncio.wait({done}, timeout=_STOP_SECONDS)
        raise


def _run_sync(function: Function, turn: SyncTurn) -> Any:
    result = function(turn)
    if not inspect.isgenerator(result):
        return result
    for text in result:
        turn.write(text)
    return None


def _settle(done: "asyncio.Future[Any]", result: Any, error: Optional[BaseException]) -> None:
    if done.done():
        return
    if isinstance(error, asyncio.CancelledError):
        done.cancel()
    elif error is not None:
        done.set_exception(_Wrapped(error) if isinstance(error, StopIteration) else error)
    else:
        done.set_result(result)


class _Wrapped(RuntimeError):
    """StopIteration cannot be the exception of a future."""


async def run_turn(function: Function, turn: Turn) -> str:
    """Calls the function and returns the status of the run. Raises what the function raised, except for the ends that are
    reported to the caller."""
    error: Optional[BaseException] = None
    try:
        await call_function(function, turn)
    except BaseException as e:
        error = e
    if turn._has_asked and not isinstance(error, asyncio.CancelledError):
        return "interrupted"  # code that catches Suspended may return or raise anything: the question is what counts
    if error is None:
        turn._finish()
    elif isinstance(error, (Failed, Rejected)):
        turn._end_text()
        state = "TASK_STATE_FAILED" if isinstance(error, Failed) else "TASK_STATE_REJECTED"
        turn._sink.emit(status_update(state, [{"text": str(error) or "the agent failed"}]))
        turn._is_over = True
    else:
        _end_quietly(turn)
        raise error
    return "completed"


def _end_quietly(turn: Turn) -> None:
    """The function raised: its open text is closed, and nothing may follow."""
    try:
        turn._end_text()
    except _rpc.EncodeError:
        pass
    turn._is_over = True


class RunSink(Sink):
    """Sends to the server."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def emit(self, event: Dict[str, Any]) -> None:
        self._run.event("a2a", event)

    async def drain(self) -> None:
        await self._run.drain()

    def is_full(self) -> bool:
        return self._run.connection.is_full()

    def queued_bytes(self) -> int:
        return self._run.connection.queued_bytes()

    async def journal(self, text: str) -> None:
        await self._run.journal(text)


class FunctionAgents(Agents):
    """The agents of one file."""

    def __init__(self, spec: Optional[str]) -> None:
        self._spec = spec
        self._agents: Dict[str, Function] = {}
        self._turns: Dict[str, Turn] = {}

    async def initialize(self, params: Dict[str, Any]) -> Dict[str, Any]:
        if not self._spec:
            raise LoadError("missing the file of the agent: python -m dragoman.worker FILE[:NAME]")
        found = load_agents(self._spec)
        configured = str(params.get("agent") or "main")
        chosen = choose_agent(found, configured)
        if chosen is None:
            raise LoadError(f"{self._spec} has several agents ({', '.join(sorted(found))}): name one, {self._spec}:{sorted(found)[0]}")
        self._agents = {configured: found[chosen]}
        return {"agents": [_describe(configured, found[chosen])], "capabilities": {"cancel": True, "input": True, "state": False, "drain": False}}

    async def run(self, run: Run) -> Dict[str, Any]:
        function = self._agents.get(run.agent) or (next(iter(self._agents.values())) if len(self._agents) == 1 else None)
        if function is None:
            raise RpcError(_rpc.INVALID_PARAMS, f"unknown agent {run.agent}")
        if not isinstance(run.params.get("message"), dict):
            raise RpcError(_rpc.INVALID_PARAMS, "expected message to be an object")
        await run.fetch_journal()
        turn = Turn(run.params, RunSink(run))
        self._turns[run.id] = turn
        try:
            return {"status": await run_turn(function, turn)}
        finally:
            del self._turns[run.id]

    def input(self, run: Run, message: Dict[str, Any]) -> None:
        turn = self._turns.get(run.id)
        if turn is not None:
            turn._receive(message)


def _describe(agent_id: str, function: Function) -> Dict[str, Any]:
    info = getattr(function, MARK, None)
    about: Dict[str, Any] = {"id": agent_id, "kind": "events"}
    if isinstance(info, AgentInfo):
        members: List["tuple[str, Any]"] = [("name", info.name), ("description", info.description), ("skills", info.skills),
                                             ("version", info.version), ("inputModes", info.input_modes), ("outputModes", info.output_modes)]
        about.update({key: value for key, value in members if value})
    return about
