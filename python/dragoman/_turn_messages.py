"""What an agent reads: messages, files, answers, tools. All of them are views of A2A 1.0 objects as dicts."""
from __future__ import annotations

import base64
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional

Json = Any  # a value of json.loads()

_APPROVED = frozenset(["yes", "y", "approve", "approved", "allow"])
_DECLINED = frozenset(["no", "n", "reject", "rejected", "deny", "denied", "decline", "declined"])


class File(NamedTuple):
    """A file of a message: `content` or `url` is set."""

    name: Optional[str]
    media_type: Optional[str]
    content: Optional[bytes]
    url: Optional[str]


class Message:
    """A message of the conversation. `raw` is the A2A 1.0 object."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw: Dict[str, Any] = dict(raw)

    @property
    def id(self) -> str:
        return str(self.raw.get("messageId", ""))

    @property
    def role(self) -> str:
        """`user` or `agent`."""
        return "agent" if self.raw.get("role") in ("ROLE_AGENT", "agent") else "user"

    @property
    def parts(self) -> List[Dict[str, Any]]:
        """Text, data and file parts, as A2A 1.0 has them. The server's copy of a transcript is not one of them."""
        parts = self.raw.get("parts")
        found = [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
        return [p for p in found if (p.get("metadata") or {}).get("dragoman:part") != "transcript"]

    @property
    def text(self) -> str:
        """The text parts, one after the other."""
        return "".join(p["text"] for p in self.parts if isinstance(p.get("text"), str))

    @property
    def data(self) -> List[Json]:
        """The values of the data parts."""
        return [p["data"] for p in self.parts if "data" in p]

    @property
    def files(self) -> List[File]:
        return [_file_of(p) for p in self.parts if "raw" in p or "url" in p]

    @property
    def metadata(self) -> Dict[str, Any]:
        return dict(self.raw.get("metadata") or {})

    def __repr__(self) -> str:
        return f"Message({self.role}, {self.text!r})"


def _file_of(part: Dict[str, Any]) -> File:
    raw = part.get("raw")
    return File(part.get("filename") or None, part.get("mediaType") or None,
                base64.b64decode(raw) if isinstance(raw, str) else None, part.get("url"))


class Answer(str):
    """The answer to a question: its text, with the message that it is from.

    `data` is the value of its first data part, or None. `approved` is True or False if the answer decides about a request for
    approval, else None.
    """

    message: Message

    def __new__(cls, message: Message) -> Answer:
        answer = super().__new__(cls, message.text)
        answer.message = message
        return answer

    def __reduce__(self) -> Any:  # for copy and pickle
        return Answer, (self.message,)

    @property
    def data(self) -> Json:
        found = self.message.data
        return found[0] if found else None

    @property
    def files(self) -> List[File]:
        return self.message.files

    @property
    def approved(self) -> Optional[bool]:
        for value in self.message.data:
            if isinstance(value, dict) and isinstance(value.get("approved"), bool) and value.get("type") in (None, "approval"):
                return bool(value["approved"])
        word = str(self).strip().rstrip(".! \t\r\n").lower()
        return True if word in _APPROVED else False if word in _DECLINED else None

    def result_of(self, call_id: str) -> Json:
        """The output of a tool that the caller ran, or None."""
        for value in self.message.data:
            for result in (value.get("tool_results") or []) if isinstance(value, dict) else []:
                if isinstance(result, dict) and result.get("call_id") == call_id:
                    return result.get("output")
        return None


class Tool(NamedTuple):
    """A tool that the caller runs: see Turn.call_tool()."""

    name: str
    description: str
    parameters: Dict[str, Any]


def tools_of(values: Any) -> List[Tool]:
    found = []
    for value in values if isinstance(values, list) else []:
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            found.append(Tool(value["name"], value.get("description") or "", value.get("parameters") or {}))
    return found


def find_message(message_id: str, *lists: Iterable[Mapping[str, Any]]) -> Optional[Dict[str, Any]]:
    for messages in lists:
        for message in messages:
            if message.get("messageId") == message_id:
                return dict(message)
    return None
