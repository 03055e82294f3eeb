"""LangGraph graphs as the agents of a worker: `initialize` with `graphs` (docs/worker-protocol.md).

Each graph is copied with the checkpointer that the server asked for. One run is in _graph_run.py, reading and changing the state
of a thread in _graph_state.py.
"""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import os
from typing import Any, Dict, List, Mapping, Optional, Set

from . import _rpc
from ._functional import KEYS, entry_of, is_functional
from ._graph_load import load_graph, prepare_path
from ._rpc import Connection, RpcError
from .worker import MAX_RUNS, Agents, LoadError, Run, config_of

_THREADS = 2 * MAX_RUNS
_INGRESS = ("messages", "a2a_inbox")  # keys that the input of a run writes


class Graph:
    """One graph, ready to run."""

    def __init__(self, name: str, compiled: Any, saver: Any) -> None:
        self.name, self.saver = name, saver
        self.compiled = compiled.copy(update={"checkpointer": saver, **_store_of(compiled)})
        self.options: Set[str] = set(inspect.signature(self.compiled.astream).parameters)
        self.entry = entry_of(self.compiled) if is_functional(self.compiled) else ""  # the name of a function with @entrypoint
        self.input_keys = _input_keys(self.compiled)
        self.keys: List[str] = KEYS if self.entry else [k for k in self.compiled.channels if _is_own(k) and (k not in _INGRESS or k in self.input_keys)]
        self.context_fields = _context_fields(self.compiled)
        self.shows_interrupts = not _has_hidden(self.compiled)

    def config(self, thread: str, **configurable: Any) -> Dict[str, Any]:
        return {"configurable": {"thread_id": thread, **configurable}}


def _store_of(compiled: Any) -> Dict[str, Any]:
    """A graph that was compiled without a store gets one in memory, as LangGraph's own server gives it one."""
    if getattr(compiled, "store", None) is not None:
        return {}
    from langgraph.store.memory import InMemoryStore
    return {"store": InMemoryStore()}


def _is_own(name: str) -> bool:
    """A key of the state, not one of LangGraph's own channels."""
    return not name.startswith("__") and ":" not in name


def _input_keys(compiled: Any) -> Set[str]:
    """The keys that the input of a run can write."""
    builder = getattr(compiled, "builder", None)
    schemas = getattr(builder, "schemas", {})
    written = schemas.get(getattr(builder, "input_schema", getattr(builder, "input", None)))
    return {k for k in (compiled.channels if written is None else written) if _is_own(k)}


def _context_fields(compiled: Any) -> Set[str]:
    schema = getattr(compiled, "context_schema", None)
    fields: Set[str] = set()
    for base in getattr(schema, "__mro__", ()):
        fields.update(getattr(base, "__annotations__", {}))
    return fields


def _has_hidden(compiled: Any) -> bool:
    """Has it a node whose tags hide its interrupts from the stream?"""
    tags = list((getattr(compiled, "config", None) or {}).get("tags") or ())
    for name, node in compiled.nodes.items():
        tags += (getattr(node, "tags", None) or ()) if _is_own(name) else ()
    return "langsmith:hidden" in tags


def _import_langgraph() -> str:
    """Its version."""
    try:
        import langgraph.pregel  # noqa: F401
        from importlib.metadata import version
        return version("langgraph")
    except ModuleNotFoundError as e:
        raise LoadError(f"missing package {(e.name or 'langgraph').split('.')[0]}: a project's graphs run in the project's own "
                        "environment, which needs langgraph") from e


class GraphAgents(Agents):
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.graphs: Dict[str, Graph] = {}
        self._saver: Any = None
        self._busy: Set[str] = set()  # threads with a run
        self._active: Set[Any] = set()  # GraphRun
        self._end = asyncio.Event()
        self._lifetime: Optional[asyncio.Task[None]] = None

    # ---- start and end ----

    async def initialize(self, params: Dict[str, Any]) -> Dict[str, Any]:
        version = _import_langgraph()
        # Sync nodes run in threads of this executor. Its default size, a few more than there are cores, would let nodes that
        # wait for a model hold up all other runs.
        self.connection.loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(_THREADS, "node"))
        ready: asyncio.Future[None] = self.connection.loop.create_future()
        # Context managers are entered and left by the same task: some of them insist on it.
        self._lifetime = self.connection.loop.create_task(self._live(params, ready))
        await ready
        described = params["graphs"]
        agents = [{"id": name, "kind": "graph", "keys": graph.keys, **_described(described[name])} for name, graph in self.graphs.items()]
        return {"agents": agents, "worker": {"langgraph": version},
                "capabilities": {"cancel": True, "input": False, "state": True, "drain": True}}

    async def _live(self, params: Dict[str, Any], ready: asyncio.Future[None]) -> None:
        async with contextlib.AsyncExitStack() as stack:
            try:
                await self._load(params, stack)
            except BaseException as e:
                ready.set_exception(e)
                return
            ready.set_result(None)
            await self._end.wait()

    async def _load(self, params: Dict[str, Any], stack: contextlib.AsyncExitStack) -> None:
        settings = config_of(params)
        cwd = os.path.abspath(params.get("cwd") or ".")
        os.chdir(cwd)
        env = settings.get("env")
        os.environ.update({str(k): str(v) for k, v in env.items()} if isinstance(env, dict) else {})
        prepare_path(cwd, [d for d in settings.get("dependencies") or [] if isinstance(d, str)])
        for name, described in params["graphs"].items():
            spec = described.get("path") if isinstance(described, dict) else described
            if not isinstance(spec, str):
                raise LoadError(f"graph {name}: missing path")
            compiled = await load_graph(name, spec, cwd, {"configurable": {}}, stack)
            graph = Graph(name, compiled, self._saver_for(name, compiled, params.get("checkpointer", "server")))
            self.graphs[name] = graph
            self._note_unreachable(graph)

    def _saver_for(self, name: str, compiled: Any, kind: str) -> Any:
        from ._checkpointer import ServerSaver, WrappedSaver
        own = getattr(compiled, "checkpointer", None)
        if kind == "worker" and own is not None and not isinstance(own, bool):
            return WrappedSaver(own, self.connection.loop)
        if kind == "server":
            self._saver = self._saver or ServerSaver(self.connection)
            return self._saver
        if kind == "worker":
            self.connection.log("warning", f"graph {name} has no checkpointer of its own: its state is lost when the worker ends")
        from langgraph.checkpoint.memory import InMemorySaver
        return WrappedSaver(InMemorySaver(), self.connection.loop)

    def _note_unreachable(self, graph: Graph) -> None:
        for key in _INGRESS:
            if key in graph.compiled.channels and key not in graph.keys:
                self.connection.log("warning", f"graph {graph.name}: {key} is in the state, but not in the input schema: it is not set")

    # ---- requests ----

    def graph_of(self, params: Mapping[str, Any]) -> Graph:
        name = params.get("agent")
        graph = self.graphs.get(str(name))
        if graph is None and len(self.graphs) == 1:
            graph = next(iter(self.graphs.values()))
        if graph is None:
            raise RpcError(_rpc.INVALID_PARAMS, f"unknown graph {name}; graphs: {', '.join(self.graphs)}")
        return graph

    def thread_of(self, params: Mapping[str, Any]) -> str:
        thread = params.get("thread")
        if not isinstance(thread, str) or not thread:
            raise RpcError(_rpc.INVALID_PARAMS, "missing thread")
        if thread in self._busy:
            raise RpcError(_rpc.THREAD_BUSY, f"thread {thread} has an active run")
        return thread

    async def run(self, run: Run) -> Dict[str, Any]:
        from ._graph_run import GraphRun
        graph, thread = self.graph_of(run.params), self.thread_of(run.params)
        active = GraphRun(graph, run)
        self._busy.add(thread)
        self._active.add(active)
        try:
            return await active.execute()
        finally:
            self._active.discard(active)
            self._busy.discard(thread)

    async def state(self, params: Dict[str, Any]) -> Dict[str, Any]:
        from ._graph_state import read_state
        thread = params.get("thread")
        if not isinstance(thread, str) or not thread:
            raise RpcError(_rpc.INVALID_PARAMS, "missing thread")
        return await read_state(self.graph_of(params), thread, bool(params.get("values")))

    async def state_update(self, params: Dict[str, Any]) -> Dict[str, Any]:
        from ._graph_state import update_messages
        graph, thread = self.graph_of(params), self.thread_of(params)
        messages = params.get("messages")
        if not isinstance(messages, list):
            raise RpcError(_rpc.INVALID_PARAMS, "expected messages to be a list")
        self._busy.add(thread)
        try:
            return await update_messages(graph, thread, messages, bool(params.get("checkSkipText")))
        finally:
            self._busy.discard(thread)

    def shutdown(self) -> None:
        for active in self._active:
            active.drain()

    async def close(self) -> None:
        """Leaves the context managers of the graphs."""
        self._end.set()
        if self._lifetime is not None:
            await asyncio.wait({self._lifetime}, timeout=1)


def _described(described: Any) -> Dict[str, Any]:
    """name, description, ...: what the project's file says of a graph."""
    if not isinstance(described, dict):
        return {}
    names = (("name", "name"), ("description", "description"), ("skills", "skills"), ("version", "version"), ("inputModes", "input_modes"),
             ("outputModes", "output_modes"))
    return {k: described[m] for k, m in names if described.get(m)}


def create(connection: Connection, params: Mapping[str, Any]) -> GraphAgents:
    return GraphAgents(connection)
