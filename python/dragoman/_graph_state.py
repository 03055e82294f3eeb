"""Reads the state of a thread, and changes its messages without running a node.

`update_state` of LangGraph runs the writers of a node, so it may choose the next nodes again; after two parallel last nodes it
refuses ("Ambiguous update"). Here the newest checkpoint is changed in place: only the value of `messages` and its version. What
runs next, pending writes and the ids of interrupts depend on the checkpoint's id, and stay as they are.
"""
from __future__ import annotations

from typing import Any, Dict, List

from . import _rpc
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
    values = snapshot.values if isinstance(snapshot.values, dict) else _as_dict(snapshot.values)
    messages = values.get("messages")
    ids = [getattr(m, "id", None) or (m.get("id") if isinstance(m, dict) else None) for m in messages] if isinstance(messages, list) else []
    state: Dict[str, Any] = {"exists": snapshot.created_at is not None, "next": next_of(snapshot), "interrupts": interrupts_of(snapshot),
                             "messageIds": [i for i in ids if i][-_MAX_IDS:]}
    if has_values:
        state["values"] = plain(values)
    return state


def _as_dict(values: Any) -> Dict[str, Any]:
    """A state that is a pydantic model or a dataclass."""
    names = getattr(type(values), "model_fields", None) or getattr(type(values), "__dataclass_fields__", {})
    return {n: getattr(values, n, None) for n in names}


# ---- messages ---------------------------------------------------------------------------------------

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


def _merged(channel: Any, old: Any, new: List[Any]) -> Any:
    """As the graph's own reducer does it; a state without one gets LangGraph's for messages."""
    if hasattr(channel, "operator") and type(channel).__name__ == "BinaryOperatorAggregate":
        return channel.operator(old, new)
    if type(channel).__name__ == "DeltaChannel":
        return channel.reducer(old, [new])
    from langgraph.graph.message import add_messages
    return add_messages(old, new)


async def update_messages(graph: Any, thread: str, messages: List[Any], skips_text: bool) -> Dict[str, Any]:
    new = _parse(messages)
    channel = graph.compiled.channels.get("messages")
    if channel is None or not new:
        return {}
    config = graph.config(thread)
    saver = graph.saver
    saved = await saver.aget_tuple({"configurable": {**config["configurable"], "checkpoint_ns": ""}})
    if saved is None:
        raise RpcError(_rpc.INVALID_PARAMS, "this thread has no state")
    values = saved.checkpoint["channel_values"]
    is_delta = type(channel).__name__ == "DeltaChannel"
    old = (await graph.compiled.aget_state(config)).values.get("messages") if is_delta else values.get("messages")
    old = old if isinstance(old, list) else []
    if skips_text and _has_text(old, new):
        return {}
    merged = _merged(channel, old, new)
    if is_delta:
        from langgraph.checkpoint.serde.types import _DeltaSnapshot
        merged = _DeltaSnapshot(merged)
    await _replace(saver, saved, merged)
    return {}


async def _replace(saver: Any, saved: Any, merged: Any) -> None:
    checkpoint = {**saved.checkpoint, "channel_values": {**saved.checkpoint["channel_values"], "messages": merged}}
    before = checkpoint["channel_versions"].get("messages")
    version = saver.get_next_version(before, None)
    checkpoint["channel_versions"] = {**checkpoint["channel_versions"], "messages": version}
    # A node that runs when `messages` changes has seen this change if it had seen the value before it.
    checkpoint["versions_seen"] = {node: {k: version if k == "messages" and v == before else v for k, v in seen.items()}
                                   for node, seen in checkpoint["versions_seen"].items()}
    named = saved.config["configurable"]
    parent = saved.parent_config["configurable"]["checkpoint_id"] if saved.parent_config else None
    config = {"configurable": {"thread_id": named["thread_id"], "checkpoint_ns": named.get("checkpoint_ns", ""), "checkpoint_id": parent}}
    await saver.aput(config, checkpoint, saved.metadata, {"messages": version})
