"""A LangGraph checkpointer whose checkpoints are in the server's store (checkpoint/* and blob/* of docs/worker-protocol.md).

Values are opaque to the server: the type and the bytes that LangGraph's serializer makes. A value that does not fit into a line
travels in parts. The sync methods are for threads: a sync node that calls `subgraph.invoke()` uses them.
"""
from __future__ import annotations

import asyncio
import base64
import contextlib
import copy
import inspect
import itertools
from typing import Any, AsyncIterator, Coroutine, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver, CheckpointTuple, get_checkpoint_metadata

from ._plain import is_model, is_protobuf, plain_outbox
from ._rpc import INTERNAL_ERROR, EncodeError, RpcError
from .langgraph import A2AInbox

MAX_VALUE_BYTES = 64 << 20  # the server's limit
_PART_BYTES = 4 << 20  # of one blob/write, before base64
_MAX_BLOBS = 8  # of a worker at a time
_MAX_WRITES = 256  # of one request
_RETRY_SECONDS = (0.1, 0.5)
_PAGE = 100

Value = List[Any]  # ["<serde type>", "<base64>" or {"blob": ...}]


class Connection(Protocol):
    """What this file needs of _rpc.Connection; tests have another one."""

    loop: asyncio.AbstractEventLoop
    max_line_bytes: int

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        ...


class CheckpointError(RuntimeError):
    """The server refused a checkpoint operation, or could not do it."""


# ---- values of the state that are not stored as they are ---------------------------------------------

def wrap_inbox(channel: str, value: Any) -> Any:
    """A checkpoint turns A2AInbox into a plain dict. This turns it back: in its channel, in the input, in a Send."""
    if channel == "a2a_inbox":
        return A2AInbox(value) if isinstance(value, dict) and not isinstance(value, A2AInbox) else value
    if isinstance(value, dict):
        if isinstance(value.get("a2a_inbox"), dict):
            value["a2a_inbox"] = wrap_inbox("a2a_inbox", value["a2a_inbox"])
    elif isinstance(value, list):
        for member in value:
            if hasattr(member, "arg"):
                wrap_inbox("", member.arg)
    elif hasattr(value, "arg"):
        wrap_inbox("", value.arg)
    return value


def wrap_tuple(saved: Any) -> Any:
    if saved is None:
        return None
    values = saved.checkpoint["channel_values"]
    for channel in values:
        values[channel] = wrap_inbox(channel, values[channel])
    if not saved.pending_writes:
        return saved
    return saved._replace(pending_writes=[(t, c, wrap_inbox(c, v)) for t, c, v in saved.pending_writes])


def storable(channel: str, value: Any) -> Any:
    """Objects of a2a-sdk in the outbox become JSON: the serializer refuses protobuf, and strict mode refuses models."""
    return plain_outbox(value) if channel == "a2a_outbox" and (is_model(value) or is_protobuf(value)) else value


def storable_checkpoint(checkpoint: Any) -> Any:
    value = checkpoint["channel_values"].get("a2a_outbox")
    made = storable("a2a_outbox", value)
    if made is value:
        return checkpoint
    return {**checkpoint, "channel_values": {**checkpoint["channel_values"], "a2a_outbox": made}}


# ---- sync from async ----------------------------------------------------------------------------------

def _with_signature(method: Any) -> Any:
    """LangGraph inspects the parameters of this method in every run and subgraph: the stored signature saves this time."""
    method.__signature__ = inspect.signature(method)
    return method


class _Saver(BaseCheckpointSaver):
    """The sync methods, by the async ones on the loop of `self.loop`."""

    loop: asyncio.AbstractEventLoop

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._is_loop_thread():
            work.close()
            raise RuntimeError("a sync checkpoint method was called on the event loop: use the async one (await graph.ainvoke(...)), "
                               "or call it in a sync node, which runs in a thread")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def _is_loop_thread(self) -> bool:
        try:
            return asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def get_tuple(self, config: Any) -> Any:
        return self._wait(self.aget_tuple(config))

    def list(self, config: Any, *, filter: Optional[Dict[str, Any]] = None, before: Any = None,
             limit: Optional[int] = None) -> Iterator[Any]:
        async def collect() -> Any:
            return [saved async for saved in self.alist(config, filter=filter, before=before, limit=limit)]
        yield from self._wait(collect())

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self._wait(self.aput(config, checkpoint, metadata, new_versions))

    @_with_signature
    def put_writes(self, config: Any, writes: Sequence[Tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        self._wait(self.aput_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self._wait(self.adelete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._wait(self.adelete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._wait(self.acopy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._wait(self.aprune(thread_ids, strategy=strategy))

    def get_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Any:
        return self._wait(self.aget_delta_channel_history(config=config, channels=channels))


# ---- the server's store -------------------------------------------------------------------------------

class ServerSaver(_Saver):
    """Checkpoints in the server's store."""

    def __init__(self, connection: Connection, *, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self.connection, self.loop = connection, connection.loop
        self._blobs = itertools.count(1)
        self._uploads = asyncio.Lock()  # one request with blobs at a time: the server allows few

    async def _request(self, method: str, params: Mapping[str, Any], values: Sequence[Value] = ()) -> Any:
        # A request consumes its blobs, also one that fails: only one without blobs can be repeated.
        may_repeat = not any(isinstance(value[1], dict) for value in values)
        for seconds in (*(_RETRY_SECONDS if may_repeat else ()), None):
            try:
                return await self.connection.request(method, params)
            except RpcError as e:
                if e.code != INTERNAL_ERROR or seconds is None:
                    raise CheckpointError(f"{method}: {e.message}") from None
            except EncodeError as e:
                raise CheckpointError(f"{method}: {e}") from None
            await asyncio.sleep(seconds)
        raise AssertionError("the last try returns or raises")

    # ---- to send values ----

    def _dump(self, value: Any, what: str) -> Tuple[str, bytes]:
        kind, data = self.serde.dumps_typed(value)
        if len(data) > MAX_VALUE_BYTES:
            raise CheckpointError(f"{what} has {len(data)} bytes; the limit is {MAX_VALUE_BYTES}. "
                                  "Store large data elsewhere, and a reference to it in the state")
        return kind, bytes(data)

    @contextlib.asynccontextmanager
    async def _values(self, dumped: Sequence[Tuple[str, bytes]]) -> AsyncIterator[List[Value]]:
        """The values as a request has them. Those that do not fit into its line are uploaded; the request consumes them."""
        room = self.connection.max_line_bytes // 2
        values: List[Value] = []
        large: List[int] = []
        for i, (kind, data) in enumerate(dumped):
            size = _size_in_line(kind, data)
            values.append([kind, "" if size > room else base64.b64encode(data).decode("ascii")])
            if size > room:
                large.append(i)
            else:
                room -= size
        if not large:
            yield values
            return
        names: List[str] = []
        async with self._uploads:
            try:
                for i in large:
                    names.append(f"b{next(self._blobs)}")
                    await self._upload(names[-1], dumped[i][1])
                    values[i][1] = {"blob": names[-1]}
                yield values
            except BaseException:
                for name in names:
                    await self._close(name)
                raise

    def _part_bytes(self) -> int:
        return max(3, min(_PART_BYTES, (self.connection.max_line_bytes - 1024) // 4 * 3) // 3 * 3)

    async def _upload(self, name: str, data: bytes) -> None:
        step = self._part_bytes()
        for offset in range(0, len(data), step):
            await self._request("blob/write", {"blob": name, "data": base64.b64encode(data[offset:offset + step]).decode("ascii")})

    async def _close(self, name: str) -> None:
        try:
            await self.connection.request("blob/close", {"blob": name})
        except (RpcError, OSError):
            pass  # the server frees it with the process

    # ---- to read values ----

    async def _load(self, value: Any) -> Any:
        kind, data = value
        if not isinstance(data, dict):
            return self.serde.loads_typed((kind, base64.b64decode(data)))
        try:
            made = await self._download(data["blob"])
        finally:
            await self._close(data["blob"])
        return self.serde.loads_typed((kind, made))

    async def _download(self, name: str) -> bytes:
        made = bytearray()
        while True:
            part = await self._request("blob/read", {"blob": name, "offset": len(made), "max": self._part_bytes()})
            made += base64.b64decode(part["data"])
            if part["last"] or not part["data"]:
                return bytes(made)

    async def _tuple(self, row: Any) -> Any:
        thread, ns = row["thread"], row["ns"]
        checkpoint = await self._load(row["checkpoint"])
        metadata = await self._load(row["metadata"]) if row["metadata"][0] else {}
        writes = [(w[0], w[1], await self._load(w[2])) for w in row["writes"]]
        parent = row.get("parent")
        return wrap_tuple(CheckpointTuple(
            config=_config(thread, ns, row["id"]), checkpoint=checkpoint, metadata=metadata,
            parent_config=_config(thread, ns, parent) if parent else None, pending_writes=writes))

    # ---- LangGraph's methods ----

    async def aget_tuple(self, config: Any) -> Any:
        thread, ns, key = _key_of(config)
        row = await self._request("checkpoint/get", {"thread": thread, "ns": ns, **({"id": key} if key else {})})
        return None if row is None else await self._tuple(row)

    async def alist(self, config: Any, *, filter: Optional[Dict[str, Any]] = None, before: Any = None,
                    limit: Optional[int] = None) -> AsyncIterator[Any]:
        named = (config or {}).get("configurable", {})
        wanted = named.get("checkpoint_id")
        params = _list_params(named, before)
        found = 0
        while limit is None or found < limit:
            page = await self._request("checkpoint/list", {**params, "limit": _PAGE if limit is None else min(limit, _PAGE)})
            rows = list(page["rows"])
            try:
                while rows:
                    row = rows.pop(0)
                    if (limit is not None and found >= limit) or (wanted and row["id"] != wanted):
                        await self._skip(row)
                        continue
                    saved = await self._tuple(row)
                    if not filter or all(saved.metadata.get(k) == v for k, v in filter.items()):
                        found += 1
                        yield saved
            finally:  # also if the caller stops reading
                for row in rows:
                    await self._skip(row)
            if not page.get("more") or not page.get("next"):
                return
            params["after"] = page["next"]

    async def _skip(self, row: Any) -> None:
        """Closes the blobs of a row that is not read."""
        for value in (row["checkpoint"], row["metadata"], *(w[2] for w in row["writes"])):
            if isinstance(value[1], dict):
                await self._close(value[1]["blob"])

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        thread, ns, parent = _key_of(config)
        made = get_checkpoint_metadata(config, metadata)
        params = {"thread": thread, "ns": ns, "id": checkpoint["id"]}
        if parent:
            params["parent"] = parent
        if isinstance(made.get("run_id"), str):
            params["run"] = made["run_id"]
        dumped = [self._dump(storable_checkpoint(checkpoint), "the checkpoint"), self._dump(made, "the metadata")]
        async with self._values(dumped) as (value, about):
            await self._request("checkpoint/put", {**params, "checkpoint": value, "metadata": about}, [value, about])
        return _config(thread, ns, checkpoint["id"])

    @_with_signature
    async def aput_writes(self, config: Any, writes: Sequence[Tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        thread, ns, key = _key_of(config)
        params = {"thread": thread, "ns": ns, "id": key, "task": task_id}
        if task_path:
            params["taskPath"] = task_path
        rows = [(WRITES_IDX_MAP.get(channel, i), channel, self._dump(storable(channel, value), f"a write to {channel}"))
                for i, (channel, value) in enumerate(writes)]
        for some in _batches(rows, self.connection.max_line_bytes // 2):
            async with self._values([dumped for _, _, dumped in some]) as values:
                await self._request("checkpoint/writes", {**params, "writes": [[i, c, v] for (i, c, _), v in zip(some, values)]}, values)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._request("checkpoint/delete", {"thread": str(thread_id)})

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        if run_ids:
            await self._request("checkpoint/delete_runs", {"runs": [str(r) for r in run_ids]})

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._request("checkpoint/copy", {"from": str(source_thread_id), "to": str(target_thread_id)})

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        threads = [str(t) for t in thread_ids]
        if strategy != "delete":
            threads = [t for t in threads if not await self._needs_ancestors(t)]
        if threads:
            await self._request("checkpoint/prune", {"threads": threads, "strategy": strategy})

    async def _needs_ancestors(self, thread: str) -> bool:
        """A DeltaChannel is rebuilt from older checkpoints: the newest one alone would lose its value."""
        seen = set()
        async for saved in self.alist({"configurable": {"thread_id": thread}}):
            ns = saved.config["configurable"]["checkpoint_ns"]
            if ns not in seen and saved.metadata.get("counters_since_delta_snapshot"):
                return True
            seen.add(ns)
        return False

    async def aget_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Any:
        return await super().aget_delta_channel_history(config=config, channels=channels)


def _config(thread: str, ns: str, key: str) -> Dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": key}}


def _key_of(config: Any) -> Tuple[str, str, Optional[str]]:
    named = config["configurable"]
    return str(named["thread_id"]), named.get("checkpoint_ns") or "", named.get("checkpoint_id")


def _list_params(named: Mapping[str, Any], before: Any) -> Dict[str, Any]:
    params: Dict[str, Any] = {}
    if "thread_id" in named:
        params["thread"] = str(named["thread_id"])
    if named.get("checkpoint_ns") is not None:
        params["ns"] = named["checkpoint_ns"]
    before_id = (before or {}).get("configurable", {}).get("checkpoint_id")
    if before_id:
        params["before"] = before_id
    return params


def _size_in_line(kind: str, data: bytes) -> int:
    return 4 * (len(data) // 3 + 1) + len(kind) + 64


Row = Tuple[int, str, Tuple[str, bytes]]


def _batches(rows: Sequence[Row], room: int) -> Iterator[List[Row]]:
    """Requests that hold few enough values: those beyond the line's limit become blobs, of which there are not many."""
    some: List[Row] = []
    inline = blobs = 0
    for row in rows:
        size = _size_in_line(*row[2]) + len(row[1]) * 6
        is_blob = inline + size > room
        if some and (len(some) >= _MAX_WRITES or (is_blob and blobs >= _MAX_BLOBS)):
            yield some
            some, inline, blobs = [], 0, 0
            is_blob = size > room
        some.append(row)
        blobs += is_blob
        inline += 0 if is_blob else size
    if some:
        yield some


# ---- other checkpointers ------------------------------------------------------------------------------

class WrappedSaver(_Saver):
    """A checkpointer of LangGraph or of the graph's author, with the inbox and the outbox as ServerSaver has them."""

    def __init__(self, inner: Any, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(serde=inner.serde)
        self.inner, self.loop = inner, loop

    @property
    def config_specs(self) -> Any:
        return self.inner.config_specs

    def with_allowlist(self, extra_allowlist: Any) -> Any:
        clone = copy.copy(self)
        clone.inner = self.inner.with_allowlist(extra_allowlist)
        clone.serde = clone.inner.serde
        return clone

    def get_next_version(self, current: Any, channel: Any) -> Any:
        return self.inner.get_next_version(current, channel)

    async def _call(self, name: str, *args: Any, **options: Any) -> Any:
        """The async method, or the sync one in a thread if the checkpointer has only that."""
        try:
            return await getattr(self.inner, "a" + name)(*args, **options)
        except NotImplementedError:
            return await asyncio.to_thread(getattr(self.inner, name), *args, **options)

    async def aget_tuple(self, config: Any) -> Any:
        return wrap_tuple(await self._call("get_tuple", config))

    async def alist(self, config: Any, *, filter: Optional[Dict[str, Any]] = None, before: Any = None,
                    limit: Optional[int] = None) -> AsyncIterator[Any]:
        options = {"filter": filter, "before": before, "limit": limit}
        try:
            async for saved in self.inner.alist(config, **options):
                yield wrap_tuple(saved)
        except NotImplementedError:
            for saved in await asyncio.to_thread(lambda: [*self.inner.list(config, **options)]):
                yield wrap_tuple(saved)

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return await self._call("put", config, storable_checkpoint(checkpoint), metadata, new_versions)

    @_with_signature
    async def aput_writes(self, config: Any, writes: Sequence[Tuple[str, Any]], task_id: str, task_path: str = "") -> None:
        await self._call("put_writes", config, [(c, storable(c, v)) for c, v in writes], task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._call("delete_thread", thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._call("delete_for_runs", run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._call("copy_thread", source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._call("prune", thread_ids, strategy=strategy)

    async def aget_delta_channel_history(self, *, config: Any, channels: Sequence[str]) -> Any:
        return await self._call("get_delta_channel_history", config=config, channels=channels)
