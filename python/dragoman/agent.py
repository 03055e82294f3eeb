"""Agents as functions. See docs/agents/python.md.

    from dragoman.agent import agent

    @agent
    async def main(turn):
        await turn.write(f"You wrote: {turn.text}")
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union, overload

from ._journal import NotDeterministic
from ._turn_messages import Answer, File, Message, Tool
from ._sync_turn import SyncToolCall, SyncTurn
from ._turn import Failed, Rejected, Sent, State, ToolCall, Turn

__all__ = ["Answer", "Failed", "File", "Message", "NotDeterministic", "Rejected", "Sent", "State", "SyncToolCall", "SyncTurn", "Tool", "ToolCall",
           "Turn", "agent"]

F = TypeVar("F", bound=Callable[..., Any])


class AgentInfo(NamedTuple):
    """What a decorated function is served as."""

    id: str
    name: Optional[str]
    description: Optional[str]
    skills: List[Dict[str, Any]]
    version: Optional[str]
    input_modes: List[str]
    output_modes: List[str]


@overload
def agent(function: F) -> F: ...
@overload
def agent(*, id: Optional[str] = None, name: Optional[str] = None, description: Optional[str] = None,
          skills: Sequence[Mapping[str, Any]] = (), version: Optional[str] = None, input_modes: Sequence[str] = (),
          output_modes: Sequence[str] = ()) -> Callable[[F], F]: ...


def agent(function: Optional[F] = None, *, id: Optional[str] = None, name: Optional[str] = None, description: Optional[str] = None,
          skills: Sequence[Mapping[str, Any]] = (), version: Optional[str] = None, input_modes: Sequence[str] = (),
          output_modes: Sequence[str] = ()) -> Union[F, Callable[[F], F]]:
    """Makes a function an agent. The function gets a Turn (async functions and async generators) or a SyncTurn (other functions and
    generators, which run in a thread). It writes its answer, or yields texts, or returns a text.

    `name`, `description` (default: the docstring), `skills`, `version` and the media types `input_modes` and `output_modes` are for the
    agent card; the server's configuration has priority. `id` is the name that selects an agent if a file has
    several, by default the name of the function.
    """

    def mark(f: F) -> F:
        about = description or (f.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ") or None
        setattr(f, MARK, AgentInfo(id or f.__name__, name, about, [dict(s) for s in skills], version, list(input_modes), list(output_modes)))
        return f

    return mark if function is None else mark(function)


MARK = "__dragoman_agent__"
