"""Reads the state of a thread, and changes its values without running a node.

`update_state` of LangGraph runs the writers of a node, so it may choose the next nodes again; after two parallel last nodes it
refuses ("Ambiguous update"). `Command(resume=..., update=...)` stores its update as writes of the checkpoint: the second answer to one
node, or the same answer again after a crash, then fails ("Can receive only one value per step"). Here the newest checkpoint is
changed in place: only values and their versions. What runs next, pending writes and the ids of interrupts depend on the
checkpoint's id, and stay as they are.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping

from . import _rpc
from ._functional import MESSAGE_ID, values_of
from ._messages import message_type, text_of
from ._plain import plain
from ._rpc import RpcError

_MAX_IDS = 200


def interrupts_of(snapshot: Any) -> List[Dict[str, Any]]:
    """All pending interrupts, each once."""
    found = getattr(snapshot, "interrupts", None)
    if not found:
        found = [i for task in snapshot.tasks for i in task.interrupts]
    made: Dict[str, Dict[str, Any]] = {}
    for i in found:
        key = str(getattr(i, "id", None) or getattr(i, "interrupt_id", ""))
        made.setdefault(key, {"id": key, "value": plain(i.value)})
    return list(made.values())


def next_of(snapshot: Any) -> List[str]:
    """The nodes that run next. Nodes whose writes are stored, but not yet applied, count: the thread is not finished, and
    LangGraph leaves them out."""
    return list(snapshot.next) or [task.name for task in snapshot.tasks]


async def pending_ids(graph: Any, thread: str) -> List[str]:
    return [i["id"] for i in interrupts_of(await graph.compiled.aget_state(graph.config(thread)))]


async def read_state(graph: Any, thread: str, has_values: bool) -> Dict[str, Any]:
    snapshot = await graph.compiled.aget_state(graph.config(thread))
    if graph.entry:
        return _functional_state(snapshot, has_values)
    values = snapshot.values if isinstance(snapshot.values, dict) else _as_dict(snapshot.values)
    messages = values.get("messages")
    ids = [getattr(m, "id", None) or (m.get("id") if isinstance(m, dict) else None) for m in messages] if isinstance(messages, list) else []
    state: Dict[str, Any] = {"exists": snapshot.created_at is not None, "next": next_of(snapshot), "interrupts": interrupts_of(snapshot),
                             "messageIds": [i for i in ids if i][-_MAX_IDS:]}
    if has_values:
        state["values"] = plain(values)
    return state


def _functional_state(snapshot: Any, has_values: bool) -> Dict[str, Any]:
    """The messages that a function with @entrypoint has returned, after the message that it answers."""
    key = (snapshot.metadata or {}).get(MESSAGE_ID)
    state: Dict[str, Any] = {"exists": snapshot.created_at is not None, "next": next_of(snapshot), "interrupts": interrupts_of(snapshot),
                             "messageIds": [key] if key else []}
    if has_values:
        values = {} if state["next"] else values_of(snapshot.values)
        asked = [{"type": "human", "content": "", "id": key}] if key else []
        state["values"] = plain({**values, "messages": asked + list(values.get("messages") or [])})
    return state


def _as_dict(values: Any) -> Dict[str, Any]:
    """A state that is a pydantic model or a dataclass."""
    names = getattr(type(values), "model_fields", None) or getattr(type(values), "__dataclass_fields__", {})
    return {n: getattr(values, n, None) for n in names}


# ---- changes ----------------------------------------------------------------------------------------

def _parse(messages: List[Any]) -> List[Any]:
    from langchain_core.messages import convert_to_messages
    try:
        return list(convert_to_messages([{k: v for k, v in m.items() if k != "chunk" and v is not None} for m in messages]))
    except Exception as e:
        raise RpcError(_rpc.INVALID_PARAMS, f"invalid messages: {e}") from None


def _has_text(old: List[Any], new: List[Any]) -> bool:
    """The newest AI message already has the text of the only message to add."""
    last = next((m for m in reversed(old) if message_type(m) == "ai"), None)
    return len(new) == 1 and last is not None and not getattr(new[0], "tool_calls", None) and text_of(last) == text_of(new[0])


def _merged(channel: Any, old: Any, new: Any) -> Any:
    """As the channel itself does it; a value without a reducer is replaced."""
    kind = type(channel).__name__
    if kind == "BinaryOperatorAggregate":
        return channel.operator(old, new) if old is not None else new
    return channel.reducer(old if old is not None else channel.typ(), [new]) if kind == "DeltaChannel" else new


async def _newest(graph: Any, thread: str) -> Any:
    return await graph.saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})


async def _values_of(graph: Any, thread: str, saved: Any) -> Dict[str, Any]:
    """The values of a checkpoint, and those that LangGraph rebuilds from older ones."""
    values = dict(saved.checkpoint["channel_values"])
    if any(type(c).__name__ == "DeltaChannel" for c in graph.compiled.channels.values()):
        snapshot = await graph.compiled.aget_state(graph.config(thread))
        values.update(snapshot.values if isinstance(snapshot.values, dict) else _as_dict(snapshot.values))
    return values


async def update_messages(graph: Any, thread: str, messages: List[Any], skips_text: bool) -> Dict[str, Any]:
    new = _parse(messages)
    channel = None if graph.entry else graph.compiled.channels.get("messages")
    if channel is None or not new:
        return {}
    saved = await _newest(graph, thread)
    if saved is None:
        raise RpcError(_rpc.INVALID_PARAMS, "this thread has no state")
    old = (await _values_of(graph, thread, saved)).get("messages")
    old = old if isinstance(old, list) else []
    if skips_text and _has_text(old, new):
        return {}
    merged = _merged(channel, old, new)
    if merged is new:  # no reducer: LangGraph's for messages
        from langgraph.graph.message import add_messages
        merged = add_messages(old, new)
    await _replace(graph, saved, {"messages": merged})
    return {}


async def apply_input(graph: Any, thread: str, given: Mapping[str, Any]) -> None:
    """The input of a run that answers an interrupt, written to the state. The same input twice changes nothing."""
    saved = await _newest(graph, thread)
    channels = graph.compiled.channels
    keys = [k for k in given if k in channels and k in graph.input_keys]
    if saved is None or not keys:
        return
    values = await _values_of(graph, thread, saved)
    if "messages" in keys:
        given = {**given, "messages": _without_text(values.get("messages"), given["messages"])}
        keys = [k for k in keys if k != "messages" or given["messages"]]
    if keys:
        await _replace(graph, saved, {k: _merged(channels[k], values.get(k), given[k]) for k in keys})


def _without_text(old: Any, new: List[Any]) -> List[Any]:
    """Models refuse a message between a call of a tool and its result: only results enter there."""
    results = [m for m in new if message_type(m) == "tool"]
    return results if _has_open_call([*(old if isinstance(old, list) else []), *results]) else new


def _has_open_call(messages: List[Any]) -> bool:
    """Whether the newest AI message calls a tool that has no result yet: a tool asks, or a node in front of it."""
    done = set()
    for m in reversed(messages):
        kind = message_type(m)
        if kind == "tool":
            done.add(m.tool_call_id)
        elif kind == "ai":
            return any(call.get("id") not in done for call in m.tool_calls)
    return False


async def _replace(graph: Any, saved: Any, values: Dict[str, Any]) -> None:
    saver, before = graph.saver, saved.checkpoint["channel_versions"]
    for name in values:
        if type(graph.compiled.channels[name]).__name__ == "DeltaChannel":
            from langgraph.checkpoint.serde.types import _DeltaSnapshot
            values[name] = _DeltaSnapshot(values[name])
    versions = {name: saver.get_next_version(before.get(name), None) for name in values}
    # A node that runs when a value changes has seen this change if it had seen the value before it.
    seen = {node: {k: versions[k] if k in versions and v == before.get(k) else v for k, v in known.items()}
            for node, known in saved.checkpoint["versions_seen"].items()}
    checkpoint = {**saved.checkpoint, "channel_values": {**saved.checkpoint["channel_values"], **values},
                  "channel_versions": {**before, **versions}, "versions_seen": seen}
    named = saved.config["configurable"]
    parent = saved.parent_config["configurable"]["checkpoint_id"] if saved.parent_config else None
    config = {"configurable": {"thread_id": named["thread_id"], "checkpoint_ns": named.get("checkpoint_ns", ""), "checkpoint_id": parent}}
    await saver.aput(config, checkpoint, saved.metadata, versions)
