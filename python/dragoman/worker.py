"""A worker process: `python -m dragoman.worker agent.py[:name]`. The server starts it and sends it many runs at once.

This file has what all workers do: the handshake, runs and their cancellation, the log. The agents themselves are an object of
class Agents: functions (agent.py), or LangGraph graphs (_graphs.py) if `initialize` has `graphs`. docs/worker-protocol.md
describes the messages.
"""
from __future__ import annotations

import argparse
import asyncio
import contextvars
import faulthandler
import gc
import importlib
import io
import os
import platform
import sys
import traceback
from typing import Any, Dict, List, Mapping, Optional, Sequence, TextIO

from . import _rpc
from ._rpc import Connection, RpcError

PROTOCOL_VERSION = 1
MAX_RUNS = 64
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_JOURNAL_PART = 1 << 20  # characters of a part: below the limit of a line, also if all are escaped
_CLOSE_SECONDS = 1.0  # for runs that are aborted when the server has closed the connection


class Run:
    """One run: its parameters, and the way to send its events. Use it on the event loop."""

    def __init__(self, connection: Connection, params: Dict[str, Any]) -> None:
        self.connection, self.params = connection, params
        self.id: str = params["run"]
        self.agent: str = params.get("agent", "")
        self.thread: str = params.get("thread", "")
        self.is_cancelled = False  # the server has asked for it; the task of the run got a CancelledError
        self._seq = 0
        self._quoted_id = _rpc.quoted(self.id)

    def event(self, type: str, data: Any, ns: Optional[Sequence[str]] = None) -> None:
        """Queues one event. EncodeError: the value is not JSON or too long; nothing was sent then. Await drain() after it."""
        params: Dict[str, Any] = {"run": self.id, "seq": self._seq, "type": type, "data": data}
        if ns is not None:
            params["ns"] = list(ns)
        self.connection.notify("event", params)
        self._seq += 1

    def text_event(self, head: str, text: str, tail: str) -> None:
        """As event, for many that differ in one text: `head` and `tail` are the JSON around it, from `"type"` on."""
        line = f'{{"jsonrpc":"2.0","method":"event","params":{{"run":{self._quoted_id},"seq":{self._seq},{head}{_rpc.quoted(text)}{tail}}}}}'
        self.connection.send_line(line.encode("utf-8"))
        self._seq += 1

    async def drain(self) -> None:
        """Waits while the server does not read: back-pressure."""
        await self.connection.drain()

    def log(self, level: str, text: str) -> None:
        """A line for the operator's log; from any thread."""
        self.connection.log(level, text, self.id)

    async def journal(self, text: str) -> None:
        """Stores a text with the task, durably, together with all events sent before it. A long one is sent in parts."""
        starts = range(0, len(text), _JOURNAL_PART) or range(1)
        parts = [{"run": self.id, "text": text[at:at + _JOURNAL_PART], **({"more": True} if at + _JOURNAL_PART < len(text) else {})} for at in starts]
        # all are queued now, in order: no part of another text comes in between, and no event that the text does not count
        await asyncio.gather(*[self.connection.start_request("journal/put", part) for part in parts])

    async def fetch_journal(self) -> None:
        """A long journal is only announced in `run`: reads it into the params."""
        if not isinstance(self.params.get("journal"), dict):
            return
        texts: List[str] = []
        part: Dict[str, Any] = {"next": 0, "more": True}
        while part["more"]:
            part = await self.connection.request("journal/get", {"run": self.id, "offset": part["next"]})
            texts.append(part["text"])
        self.params["journal"] = "".join(texts)


#: The run whose code is running; None outside of runs. Threads that are started with a copy of the context have it, too.
current_run: contextvars.ContextVar[Optional[Run]] = contextvars.ContextVar("dragoman_run", default=None)


class Agents:
    """What a worker serves. Subclasses implement `initialize` and `run`, and the rest if they have the capability.

    All methods are called on the event loop. An RpcError that one raises is the response. Any other exception of `run` is
    sent as -32000 with its traceback, which only the operator sees.
    """

    async def initialize(self, params: Dict[str, Any]) -> Dict[str, Any]:
        """Loads the code. Returns {agents: [...], capabilities: {...}} and what else the response has (`worker` is merged).
        Any exception is sent as -32004, with its message and traceback."""
        raise NotImplementedError

    async def run(self, run: Run) -> Dict[str, Any]:
        """Runs to the end and returns the result of `run`. `cancel` raises CancelledError in here: raise it on, or return
        any result; the worker answers with status cancelled if it is raised."""
        raise NotImplementedError

    def input(self, run: Run, message: Dict[str, Any]) -> None:
        """A steering message to a run (capability input)."""

    async def state(self, params: Dict[str, Any]) -> Dict[str, Any]:
        raise RpcError(_rpc.UNKNOWN_METHOD, "unknown method state: these agents have no state")

    async def state_update(self, params: Dict[str, Any]) -> Dict[str, Any]:
        raise RpcError(_rpc.UNKNOWN_METHOD, "unknown method state/update: these agents have no state")

    def shutdown(self) -> None:
        """The worker ends soon: runs that can stop at a safe place do so and return status drained. Others go on."""

    async def close(self) -> None:
        """The worker ends: no run is active any more."""


class Worker:
    """Answers the server's requests with the help of an Agents object, which `initialize` creates."""

    def __init__(self, agent: Optional[str] = None) -> None:
        self.agent = agent  # FILE[:NAME] of the command line
        self.connection: Connection
        self.agents: Optional[Agents] = None
        self._runs: Dict[str, Run] = {}
        self._tasks: Dict[str, asyncio.Task[Dict[str, Any]]] = {}
        self._max_runs = MAX_RUNS
        self._draining = False

    def create_agents(self, params: Dict[str, Any]) -> Agents:
        """The agents that `initialize` describes."""
        if params.get("graphs"):
            graphs = importlib.import_module("._graphs", __package__)  # needs langgraph
            agents: Agents = graphs.create(self.connection, params)
            return agents
        from ._agents import FunctionAgents
        return FunctionAgents(self.agent)

    # ---- requests ----

    async def on_request(self, method: str, params: Dict[str, Any]) -> Any:
        if method == "ping":
            return {}
        if method == "initialize":
            return await self._initialize(params)
        if method == "shutdown":
            return self._shutdown()
        agents = self.agents
        if agents is None:
            raise RpcError(_rpc.INVALID_REQUEST, f"{method} before initialize")
        if method == "run":
            return await self._run(agents, params)
        if method == "state":
            return await agents.state(params)
        if method == "state/update":
            return await agents.state_update(params)
        raise RpcError(_rpc.UNKNOWN_METHOD, f"unknown method {method}")

    def on_notification(self, method: str, params: Dict[str, Any]) -> None:
        # Later: a request that came just before it is handled by a task, which registers the run when it starts.
        self.connection.loop.call_soon(self._notified, method, params)

    def _notified(self, method: str, params: Dict[str, Any]) -> None:
        run = self._runs.get(str(params.get("run")))
        if run is None:
            return  # it has ended in the meantime, or the method is unknown: no answer is expected
        if method == "cancel":
            run.is_cancelled = True
            self._tasks[run.id].cancel()
        elif method == "input" and self.agents is not None and isinstance(params.get("message"), dict):
            self.agents.input(run, params["message"])

    async def _initialize(self, params: Dict[str, Any]) -> Dict[str, Any]:
        version = params.get("protocolVersion")
        if version != PROTOCOL_VERSION:
            raise RpcError(_rpc.INVALID_PARAMS, f"unknown protocolVersion {version}: this worker has version {PROTOCOL_VERSION}")
        if isinstance(params.get("maxLineBytes"), int):
            self.connection.max_line_bytes = params["maxLineBytes"]
        try:
            agents = self.create_agents(params)
            answer = await agents.initialize(params)
        except RpcError:
            raise
        except Exception as e:
            raise RpcError(_rpc.CANNOT_LOAD, explain_load_error(e), {"traceback": _traceback_of(e)}) from None
        self.agents = agents
        settle_collector()
        worker = {"name": "dragoman-python", "lang": "python", "version": platform.python_version(), **answer.pop("worker", {})}
        self._max_runs = answer.setdefault("maxRuns", MAX_RUNS)
        return {"protocolVersion": PROTOCOL_VERSION, "worker": worker, **answer}

    async def _run(self, agents: Agents, params: Dict[str, Any]) -> Dict[str, Any]:
        run_id = params.get("run")
        if not isinstance(run_id, str) or run_id in self._runs:
            raise RpcError(_rpc.INVALID_PARAMS, f"expected run to be a new id, got {run_id!r}")
        if len(self._runs) >= self._max_runs or self._draining:
            raise RpcError(_rpc.TOO_MANY_RUNS, "this worker ends" if self._draining else f"{len(self._runs)} runs are active")
        run = Run(self.connection, params)
        token = current_run.set(run)  # the task copies the context
        task = self.connection.loop.create_task(agents.run(run))
        current_run.reset(token)
        self._runs[run_id], self._tasks[run_id] = run, task
        try:
            await asyncio.wait({task})
            return self._result_of(run, task)
        finally:
            del self._runs[run_id], self._tasks[run_id]
            if self._draining and not self._runs:
                self.connection.loop.call_soon(self.connection.close)

    @staticmethod
    def _result_of(run: Run, task: asyncio.Task[Dict[str, Any]]) -> Dict[str, Any]:
        if task.cancelled():
            if run.is_cancelled:
                return {"status": "cancelled"}
            raise RpcError(_rpc.RAISED, "the code of the agent canceled its own run", {"type": "CancelledError"})
        error = task.exception()
        if error is None:
            return task.result()
        if isinstance(error, (RpcError, _rpc.EncodeError)):
            raise error
        raise RpcError(_rpc.RAISED, str(error) or type(error).__name__,
                       {"type": type(error).__name__, "traceback": _traceback_of(error)}) from None

    def _shutdown(self) -> Dict[str, Any]:
        self._draining = True
        if self.agents is not None:
            self.agents.shutdown()
        if not self._runs:
            self.connection.loop.call_later(0.01, self.connection.close)  # after the response
        return {}

    # ---- the process ----

    async def serve(self, connection: Optional[Connection] = None) -> None:
        """Serves until the server closes the connection; then all runs are aborted."""
        self.connection = connection or await _rpc.connect(self.on_request, self.on_notification)
        await self.connection.closed
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)
        if self.agents is not None:
            await self.agents.close()
        self.connection.close()


def explain_load_error(error: BaseException) -> str:
    """One sentence for the operator: what is wrong, and with which interpreter."""
    where = f"(Python {platform.python_version()}, {sys.executable})"
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.split(".")[0]
        return f"missing package {package} {where}: install it for this interpreter, for example with {sys.executable} -m pip install {package}"
    text = str(error) or type(error).__name__
    return f"{text} {where}" if isinstance(error, LoadError) else f"{type(error).__name__}: {text} {where}"


class LoadError(Exception):
    """The code of an agent cannot be loaded; the message is for the operator."""


_COLLECTOR = gc.get_threshold()
_MIN_COLLECTED = 10000  # new objects before Python searches them for cycles; its default is 700 or 2000


def settle_collector() -> None:
    """Freezes the loaded objects, which exist until the process ends: searching them repeatedly for garbage was a sixth of the
    CPU time of a short run of a graph. If the code of the agent configures the collector, nothing is changed."""
    if not gc.isenabled() or gc.get_threshold() != _COLLECTOR or not hasattr(gc, "freeze"):
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(max(_MIN_COLLECTED, _COLLECTOR[0]), *_COLLECTOR[1:])


def _traceback_of(error: BaseException) -> str:
    """Without the frames of this package and of the import machinery above the code of the agent."""
    start = error.__traceback__
    while start is not None and start.tb_frame.f_code.co_filename.startswith((_HERE, "<frozen importlib")):
        start = start.tb_next
    return "".join(traceback.format_exception(type(error), error, start))[-64000:]


class Output(io.TextIOBase):
    """sys.stdout and sys.stderr of the process: lines that a run prints go to the log with the id of the run; other lines
    go where they went before."""

    def __init__(self, behind: TextIO, level: str, connection: Connection) -> None:
        self._behind, self._level, self._connection = behind, level, connection
        self._lines: Dict[Optional[str], str] = {}  # unfinished, by run

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._behind.encoding

    def fileno(self) -> int:
        return self._behind.fileno()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        run = current_run.get()
        if run is None:
            return self._behind.write(text)
        lines = (self._lines.pop(run.id, "") + text).split("\n")
        if lines[-1] and len(lines[-1]) < 4096 and len(self._lines) < 1000:
            self._lines[run.id] = lines.pop()
        for line in lines:
            if line:
                self._connection.log(self._level, line, run.id)
        return len(text)

    def flush(self) -> None:
        self._behind.flush()


async def _serve(agent: Optional[str]) -> None:
    worker = Worker(agent)
    worker.connection = await _rpc.connect(worker.on_request, worker.on_notification)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)  # a pipe: what an agent prints is read while it works, not at the end
    sys.stdout = Output(sys.stdout, "info", worker.connection)
    sys.stderr = Output(sys.stderr, "info", worker.connection)
    await worker.serve(worker.connection)


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m dragoman.worker", description="Serves the agents of a Python file to a Dragoman server.")
    parser.add_argument("agent", nargs="?", metavar="FILE[:NAME]", help="a Python file, and the name of its agent if it has several")
    parser.add_argument("--agent", dest="named", metavar="FILE[:NAME]", help="the same")
    return parser.parse_args(arguments)


def main(arguments: Optional[List[str]] = None) -> None:
    faulthandler.enable()
    args = parse_arguments(arguments)
    loop = asyncio.new_event_loop()  # not asyncio.run(): it waits for the threads of user code
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_serve(args.agent or args.named))
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(0)  # a thread of user code that still runs would hold the process


def config_of(params: Mapping[str, Any]) -> Dict[str, Any]:
    """`settings` of `initialize`."""
    settings = params.get("settings")
    return dict(settings) if isinstance(settings, dict) else {}


if __name__ == "__main__":
    # `python -m` runs this file as __main__: user code that imports dragoman.worker must get the same objects.
    from dragoman.worker import main as run_main

    run_main()
