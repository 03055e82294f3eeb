"""One run of a graph: `astream` with the modes values, messages, custom and updates, as events of the worker protocol.

What differs between graphs is decided here, so that the server sees one form: messages are flat JSON, chunks are marked, and the
result has what this run added: new messages, and the outbox only if a node wrote it in this run.
"""
from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from . import _rpc
from ._functional import MESSAGE_ID, message_id_of, values_of
from ._graph_state import apply_input, interrupts_of, next_of, pending_ids
from ._messages import flat_message, is_text_chunk, message_type
from ._plain import plain, plain_outbox
from ._rpc import RpcError
from .langgraph import A2AInbox
from .worker import Run

MODES = ["values", "messages", "custom", "updates"]
_INTERRUPT = "__interrupt__"
_TEXT_HEAD = '"type":"messages","data":{"message":{"type":"ai","content":'
_MAX_HELD = 64  # events that wait for a full socket; then the run waits, too
_MAX_JOINED = 64 << 10  # characters of one chunk that was joined from several


# ---- events out -------------------------------------------------------------------------------------

class Events:
    """Sends the events of a run in order. While the socket is full, adjacent text chunks of one model call are joined."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._held: List[Tuple[str, Any, List[str]]] = []
        self._sender: Optional[asyncio.Task[None]] = None
        self._about: Optional[Mapping[str, Any]] = None  # of the text chunk that was sent last
        self._id: Any = None
        self._tail = ""  # JSON after its text

    async def send(self, kind: str, data: Any, ns: List[str]) -> None:
        if not self.send_now(kind, data, ns):
            await self._hold(kind, data, ns)

    def send_text(self, message: Any, about: Mapping[str, Any], ns: Sequence[str]) -> bool:
        """Sends a chunk that has only text, like most events: the JSON that all chunks of a model call share is encoded once.
        False: the socket is full."""
        if self._held or self.run.connection.is_full():
            return False
        if about is not self._about or message.id != self._id:
            self._about, self._id = about, message.id
            origin, path = _rpc.encode(_origin_of(about)).decode(), _rpc.encode(list(ns)).decode()
            self._tail = f',"id":{_rpc.encode(message.id).decode()},"chunk":true}},{origin[1:]},"ns":{path}'
        self.run.text_event(_TEXT_HEAD, message.content, self._tail)
        return True

    def send_now(self, kind: str, data: Any, ns: List[str]) -> bool:
        """False: the socket is full."""
        if self._held or self.run.connection.is_full():
            return False
        self.run.event(kind, data, ns)
        return True

    async def _hold(self, kind: str, data: Any, ns: List[str]) -> None:
        if not (self._held and _join(self._held[-1], kind, data, ns)):
            self._held.append((kind, data, ns))
        if len(self._held) > _MAX_HELD:
            await self.flush()
        elif self._sender is None:
            self._sender = self.run.connection.loop.create_task(self._send_later())

    async def _send_later(self) -> None:
        try:
            await self.run.drain()
        except ConnectionError:
            return  # the run is aborted
        finally:
            self._sender = None
        self._send_held()

    def _send_held(self) -> None:
        held, self._held = self._held, []
        for kind, data, ns in held:
            self.run.event(kind, data, ns)

    async def flush(self) -> None:
        await self.run.drain()
        self._send_held()

    def close(self) -> None:
        if self._sender is not None:
            self._sender.cancel()


def _join(held: Tuple[str, Any, List[str]], kind: str, data: Any, ns: List[str]) -> bool:
    """Appends a text chunk to the one before it. False if they do not belong together, or are more than text."""
    if kind != "messages" or held[0] != kind or held[2] != ns or held[1]["src"] != data["src"]:
        return False
    old, new = held[1]["message"], data["message"]
    if not all(m.get("chunk") and isinstance(m["content"], str) and m.keys() <= {"type", "content", "id", "chunk"} for m in (old, new)):
        return False
    if len(old["content"]) + len(new["content"]) > _MAX_JOINED:
        return False
    old["content"] += new["content"]
    return True


# ---- the run ----------------------------------------------------------------------------------------

class GraphRun:
    def __init__(self, graph: Any, run: Run) -> None:
        self.graph, self.run, self.params = graph, run, run.params
        self.events = Events(run)
        self.is_continued = self.params.get("input") is None and not self.params.get("resume")
        self._old: Set[Any] = set()  # messages that were there before
        self._has_old = False
        self._values: Dict[str, Any] = {}  # the newest state
        self._wrote_outbox = False
        self._may_wait = self.params.get("input") is None or bool(self.params.get("resume")) or not graph.shows_interrupts
        self._forward = set(self.params.get("forward") or ())
        self._control = _new_control() if "control" in graph.options else None

    def drain(self) -> None:
        """Ends at the next step; without LangGraph's support the run goes on."""
        if self._control is not None:
            self._control.request_drain()

    async def execute(self) -> Dict[str, Any]:
        config = self._config()
        if self.graph.entry:
            await self._name_message(config)
        given = await self._input()
        is_drained = False
        try:
            await self._stream(given, config)
        except Exception as e:
            is_drained = _is_named(e, "GraphDrained")
            if not is_drained:
                raise _as_error(e, self.is_continued) from e
        finally:
            self.events.close()
        await self.events.flush()
        return await self._result(config, is_drained)

    async def _stream(self, given: Any, config: Dict[str, Any]) -> None:
        options: Dict[str, Any] = {"stream_mode": MODES, "subgraphs": True}
        if self._control is not None:
            options["control"] = self._control
        if "durability" in self.graph.options and self.params.get("durability"):
            options["durability"] = self.params["durability"]
        context = self._context()
        if context:
            options["context"] = context
        # The plain form (ns, mode, data), not version="v2": that one turns `values` into the graph's output schema, if it is a
        # pydantic model or a dataclass, and then lacks keys of the state such as a2a_outbox.
        stream = self.graph.compiled.astream(given, config, **options)
        try:
            async for ns, mode, data in stream:
                if mode != "messages":
                    await self._on_part(list(ns), mode, data)
                    continue
                if is_text_chunk(data[0]) and self.events.send_text(data[0], data[1], ns):
                    continue
                event, path = _message_event(data), list(ns)  # without another coroutine for each
                if not self.events.send_now(mode, event, path):
                    await self.events.send(mode, event, path)
        finally:
            await stream.aclose()

    # ---- input ----

    def _config(self) -> Dict[str, Any]:
        p = self.params
        caller = {k: p[k] for k in ("task", "context", "principal", "tenant", "metadata", "acceptedOutputModes", "isResumed", "attempt") if k in p}
        config = self.graph.config(self.run.thread, tools=p.get("tools") or [], a2a=caller)
        # No run_id here: LangGraph takes a run with the run_id of the newest checkpoint for a continuation, and drops its input.
        config["metadata"] = {k: p[m] for k, m in (("task_id", "task"), ("context_id", "context")) if p.get(m)}
        if isinstance(p.get("recursionLimit"), int):
            config["recursion_limit"] = p["recursionLimit"]
        return dict(config)

    async def _name_message(self, config: Dict[str, Any]) -> None:
        """Also in a run that goes on."""
        key = message_id_of(self.params.get("input"))
        if key is None:
            key = ((await self.graph.compiled.aget_state(self.graph.config(self.run.thread))).metadata or {}).get(MESSAGE_ID)
        if key:
            config["metadata"][MESSAGE_ID] = key

    def _context(self) -> Dict[str, Any]:
        """The fields of the graph's context schema that have a value here."""
        given = self.params.get("input") or {}
        inbox = given.get("a2a_inbox")
        known = {"tools": self.params.get("tools") or [], "a2a_inbox": A2AInbox(inbox) if isinstance(inbox, dict) else None,
                 "task_id": self.params.get("task"), "context_id": self.params.get("context"),
                 "principal": self.params.get("principal"), "tenant": self.params.get("tenant")}
        return {k: v for k, v in known.items() if k in self.graph.context_fields}

    async def _input(self) -> Any:
        given = self.params.get("input")
        if given is not None and not isinstance(given, dict):
            raise RpcError(_rpc.INVALID_PARAMS, "expected input to be an object or null")
        made = None if given is None else _with_objects(given)
        resume = self.params.get("resume")
        if not resume:
            return made
        pending = await pending_ids(self.graph, self.run.thread)
        unknown = [i for i in resume if i not in pending]
        if unknown:
            raise RpcError(_rpc.INVALID_PARAMS, f"interrupt {unknown[0]} is not pending on this thread; pending: {', '.join(pending) or 'none'}")
        if made and not self.graph.entry:
            await apply_input(self.graph, self.run.thread, made)
        from langgraph.types import Command
        return Command(resume=resume)

    # ---- output ----

    async def _on_part(self, ns: List[str], mode: str, data: Any) -> None:
        if mode == "custom":
            await self.events.send("custom", plain(data), ns)
        elif mode == "updates":
            await self._on_updates(ns, data)
        elif mode == "values" and not ns:
            await self._on_values(data)

    async def _on_updates(self, ns: List[str], data: Any) -> None:
        if self.graph.entry and not ns and isinstance(data, dict) and self.graph.entry in data:
            self._on_returned(data[self.graph.entry])
        self._may_wait = self._may_wait or (isinstance(data, dict) and _INTERRUPT in data)
        nodes = [n for n in data if not n.startswith("__")] if isinstance(data, dict) else []
        if not nodes:
            return
        event: Dict[str, Any] = {"nodes": nodes}
        written = [w["a2a_outbox"] for n in nodes for w in _writes_of(data[n]) if "a2a_outbox" in w]
        if written and not ns:
            self._wrote_outbox = written[-1] is not None
            if self._wrote_outbox:
                event["outbox"] = True
        await self.events.send("updates", event, ns)

    def _on_returned(self, value: Any) -> None:
        """A function with @entrypoint has returned: all of it is of this run."""
        self._values = values_of(value)
        self._wrote_outbox = self._values.get("a2a_outbox") is not None

    async def _on_values(self, data: Any) -> None:
        if not isinstance(data, dict) or self.graph.entry:
            return
        self._values = {k: v for k, v in data.items() if k != _INTERRUPT}
        if not self._has_old:
            self._old = self._old_messages()
            self._has_old = bool(self._old) or not self.is_continued  # a continued run may start without its input
            if self.is_continued and self._values.get("a2a_outbox") is not None:
                self._wrote_outbox = True  # by a node that finished before the crash: the input of the turn had cleared it
        if "values" in self._forward:
            await self.events.send("values", plain(self._values), [])

    def _messages(self) -> List[Any]:
        messages = self._values.get("messages")
        return messages if isinstance(messages, list) else []

    def _old_messages(self) -> Set[Any]:
        """Of a run that goes on after a crash, messages since the newest human one are new: the caller has not seen them."""
        messages = self._messages()
        if self.is_continued:
            humans = [i for i, m in enumerate(messages) if message_type(m) == "human"]
            messages = messages[: humans[-1] + 1] if humans else []
        return {_identity(m) for m in messages}

    async def _waits_for(self, config: Dict[str, Any]) -> Tuple[List[Dict[str, Any]], List[str]]:
        """Interrupts, and nodes that run next. A new turn that the stream showed no interrupt of ran to its end: only others read
        the thread's state for it."""
        snapshot = await self.graph.compiled.aget_state(config)
        return interrupts_of(snapshot), next_of(snapshot)

    async def _result(self, config: Dict[str, Any], is_drained: bool) -> Dict[str, Any]:
        interrupts, following = await self._waits_for(config) if self._may_wait or is_drained else ([], [])
        status = "interrupted" if interrupts or following else "completed"
        result: Dict[str, Any] = {
            "status": "drained" if is_drained else status, "interrupts": interrupts, "next": following,
            "messages": [_flat(m) for m in self._messages() if _identity(m) not in self._old],
            "hasOutbox": self._wrote_outbox, "outbox": plain_outbox(self._values.get("a2a_outbox")) if self._wrote_outbox else None}
        if "values" in self._forward:
            result["values"] = plain(self._values)
        return result


# ---- parts ------------------------------------------------------------------------------------------

def _new_control() -> Any:
    from langgraph.runtime import RunControl
    return RunControl()


def _message_event(data: Any) -> Dict[str, Any]:
    message, about = data
    return {"message": flat_message(message), **_origin_of(about)}


def _origin_of(about: Mapping[str, Any]) -> Dict[str, Any]:
    return {"node": about.get("langgraph_node"), "step": about.get("langgraph_step"), "src": about.get("langgraph_checkpoint_ns") or ""}


def _with_objects(given: Mapping[str, Any]) -> Dict[str, Any]:
    """Messages as LangChain's objects: a state without a reducer would keep the dicts. The inbox with attributes."""
    from langchain_core.messages import convert_to_messages
    made = dict(given)
    if isinstance(made.get("messages"), list):
        made["messages"] = convert_to_messages(made["messages"])
    if isinstance(made.get("a2a_inbox"), dict):
        made["a2a_inbox"] = A2AInbox(made["a2a_inbox"])
    return made


def _writes_of(update: Any) -> List[Mapping[str, Any]]:
    """A node's update, or its several updates."""
    return [w for w in (update if isinstance(update, (list, tuple)) else [update]) if isinstance(w, Mapping)]


def _identity(message: Any) -> Any:
    key = message.get("id") if isinstance(message, Mapping) else getattr(message, "id", None)
    return key if key else ("object", id(message))


def _flat(message: Any) -> Any:
    if isinstance(message, Mapping):
        from langchain_core.messages import convert_to_messages
        try:
            message = convert_to_messages([dict(message)])[0]
        except Exception:
            return plain(message)
    return flat_message(message, is_final=True)


def _is_named(error: BaseException, name: str) -> bool:
    return any(c.__name__ == name for c in type(error).__mro__)


def _as_error(error: Exception, is_continued: bool) -> Exception:
    if _is_named(error, "GraphRecursionError"):
        return RpcError(_rpc.RECURSION_LIMIT, str(error), {"type": type(error).__name__})
    if _is_named(error, "TaskRejected"):
        return RpcError(_rpc.REJECTED, str(error) or "the agent rejected the task")
    if is_continued and _is_named(error, "EmptyInputError"):
        return RpcError(_rpc.INVALID_PARAMS, "this thread has no state: there is nothing to continue")
    return error
