"""Names of Aion's newer authoring package, so that graphs which import them load. Routing options are ignored."""
from __future__ import annotations

import base64
from typing import Any, Dict

from dragoman import langgraph as _langgraph
from dragoman._plain import plain
from dragoman.langgraph import A2AInbox, A2AOutbox, StreamWriter, emit_data, emit_file

__all__ = ["A2AInbox", "A2AOutbox", "emit_artifact", "emit_message"]


def emit_message(writer: StreamWriter, message: Any, ephemeral: bool = False, routing: Any = None) -> None:
    """ephemeral: the message is only streamed, like an AIMessageChunk."""
    if not ephemeral:
        _langgraph.emit_message(writer, message)
        return

    def write_chunk(value: Any) -> None:
        value["a2a"]["message"]["chunk"] = True
        writer(value)
    _langgraph.emit_message(write_chunk, message)


def emit_artifact(writer: StreamWriter, artifact: Any, *, routing: Any = None, append: bool = False, is_last_chunk: bool = True) -> None:
    """An Artifact of a2a-sdk or a dict: each of its parts is emitted as a file or as data."""
    made = plain(artifact)
    if not isinstance(made, dict) or not isinstance(made.get("parts"), list):
        raise TypeError(f"emit_artifact: expected an Artifact with parts, got {type(artifact).__name__}")
    parts = [_content_of(part) for part in made["parts"]]
    name = made.get("name")
    for i, part in enumerate(parts):
        more: Dict[str, Any] = {"name": name, "append": append or i > 0, "is_last_chunk": is_last_chunk and i == len(parts) - 1}
        if "data" in part:
            emit_data(writer, part["data"], **more)
        else:
            emit_file(writer, **_file_of(part), **more)


def _content_of(part: Any) -> Dict[str, Any]:
    """A part of a2a-sdk 0.3 wraps its content in `root`."""
    inner = part.get("root", part) if isinstance(part, dict) else {}
    return inner if isinstance(inner, dict) else {}


def _file_of(part: Dict[str, Any]) -> Dict[str, Any]:
    """url or base64, and mime_type, of a file or text part of A2A 0.3 or 1.0."""
    if isinstance(part.get("text"), str):
        return {"base64": base64.b64encode(part["text"].encode("utf-8")).decode("ascii"), "mime_type": part.get("mediaType") or "text/plain"}
    file = part.get("file")
    if not isinstance(file, dict):
        file = part
    kind = file.get("mimeType") or file.get("mediaType") or "application/octet-stream"
    url = file.get("uri") or file.get("url")
    if url:
        return {"url": url, "mime_type": kind}
    return {"base64": file.get("bytes") or file.get("raw") or "", "mime_type": kind}
