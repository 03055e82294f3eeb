"""Graphs of LangGraph's Functional API (`@entrypoint`): the differences from a StateGraph.

They have no state with keys: the input is the argument of the function, the output is its return value, and `previous` is the value that
the author saves. So the input is a dict with `messages` (only the new message: the thread has no history) and `a2a_inbox`, and the answer is
found in the return value:

    {"a2a_outbox": ...}                the outbox
    {"messages": [...]}                its last AI message; the same for a returned list of messages, message or text
    anything else                      the text that was streamed

The id of the message that started a run is in the metadata of its checkpoints, so that a run that was lost can be found.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

KEYS = ["messages", "a2a_inbox"]
MESSAGE_ID = "message_id"  # in the metadata of a checkpoint
_END = "__end__"


def is_functional(compiled: Any) -> bool:
    return getattr(compiled, "output_channels", None) == _END and "__previous__" in getattr(compiled, "channels", {})


def entry_of(compiled: Any) -> str:
    """The name of the function: that of the node whose `updates` are the value that it returns."""
    return next((n for n in compiled.nodes if not n.startswith("__")), "")


def values_of(returned: Any) -> Dict[str, Any]:
    """The return value of a function, with the keys of a state."""
    if isinstance(returned, str):
        return {"messages": _messages([returned])} if returned else {}
    if hasattr(returned, "content") and hasattr(returned, "type"):
        return {"messages": [returned]}
    if isinstance(returned, list):
        return {"messages": [m for m in returned if _is_message(m)]}
    if not isinstance(returned, Mapping):
        names = getattr(type(returned), "model_fields", None) or getattr(type(returned), "__dataclass_fields__", {})
        returned = {n: getattr(returned, n, None) for n in names}
    values = {k: returned[k] for k in ("messages", "a2a_outbox") if returned.get(k) is not None}
    if "messages" in values:
        listed = values["messages"] if isinstance(values["messages"], list) else [values["messages"]]
        values["messages"] = _messages([m for m in listed if isinstance(m, str) or _is_message(m)])
    return values


def _is_message(value: Any) -> bool:
    return (hasattr(value, "content") and hasattr(value, "type")) or (isinstance(value, Mapping) and ("role" in value or "type" in value) and "content" in value)


def _messages(values: List[Any]) -> List[Any]:
    """Texts as messages of the agent."""
    from langchain_core.messages import AIMessage
    return [AIMessage(content=v) if isinstance(v, str) else v for v in values]


def message_id_of(given: Any) -> Optional[str]:
    """Of the message in the input of a run."""
    messages = given.get("messages") if isinstance(given, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    key = last.get("id") if isinstance(last, Mapping) else None
    return key if isinstance(key, str) else None
