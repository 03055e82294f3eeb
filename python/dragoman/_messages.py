"""LangChain messages as flat JSON: {type, content, id, ...}, with `chunk: true` for a piece of a message.

Nothing here imports langchain_core, so that `dragoman.langgraph` can be imported without it.
"""
from __future__ import annotations

from typing import Any, Dict, List

from ._plain import plain

_TOOL_BLOCKS = ("tool_call", "tool_call_chunk", "invalid_tool_call")  # they are in tool_calls, too
_MEMBERS = ("name", "tool_call_id", "status", "usage_metadata")


def is_chunk(message: Any) -> bool:
    return type(message).__name__.endswith("MessageChunk") or str(getattr(message, "type", "")).endswith("MessageChunk")


def message_type(message: Any) -> str:
    """ai, human, tool, system, ...: the same for a message and its chunks."""
    kind = str(getattr(message, "type", ""))
    return kind[: -len("MessageChunk")].lower() if kind.endswith("MessageChunk") else kind


def _content(message: Any) -> Any:
    content = message.content
    extra = getattr(message, "additional_kwargs", None)
    if isinstance(content, str) and not (extra and "reasoning_content" in extra):
        return plain(content)
    try:
        blocks = message.content_blocks  # one form for all providers (langchain-core 1.0)
    except Exception:  # older, or content that it does not understand
        blocks = None
    if blocks is None:
        return plain(content)
    return [plain(b) for b in blocks if not (isinstance(b, dict) and b.get("type") in _TOOL_BLOCKS)]


def is_text_chunk(message: Any) -> bool:
    """A chunk that has nothing but text: almost every event of a stream is one."""
    return (type(message).__name__ == "AIMessageChunk" and type(message.content) is str and message.content.isascii()
            and not message.tool_call_chunks and not message.additional_kwargs and message.usage_metadata is None
            and message.name is None)


def flat_message(message: Any, is_final: bool = False) -> Dict[str, Any]:
    """is_final: a chunk that is in the state is a message."""
    if not is_final and is_text_chunk(message):
        return {"type": "ai", "content": message.content, "id": message.id, "chunk": True}
    flat: Dict[str, Any] = {"type": message_type(message), "content": _content(message), "id": getattr(message, "id", None)}
    has_chunk = is_chunk(message) and not is_final
    if has_chunk:
        flat["chunk"] = True
        pieces = getattr(message, "tool_call_chunks", None)
        if pieces:
            flat["tool_call_chunks"] = plain(pieces)
    else:
        calls = getattr(message, "tool_calls", None)
        if calls:
            flat["tool_calls"] = plain(calls)
    for name in _MEMBERS:
        value = getattr(message, name, None)
        if value is not None:
            flat[name] = plain(value)
    return flat


def text_of(message: Any) -> str:
    """The text of a message, without reasoning."""
    content = flat_message(message)["content"]
    if isinstance(content, str):
        return content
    texts: List[str] = []
    for block in content if isinstance(content, list) else []:
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
    return "".join(texts)
