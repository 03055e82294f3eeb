"""An agent of pydantic-ai, served by its AG-UI and AI SDK adapters. usage: pydantic_agent_service.py PORT"""
import sys

import uvicorn
from ag_ui.core import EventType, StateDeltaEvent, StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, ToolReturn
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.ui import StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from pydantic_ai.ui.vercel_ai import VercelAIAdapter
from starlette.applications import Starlette
from starlette.routing import Route


class Board(BaseModel):
    items: list[str] = []


def prompt_of(message):
    return "".join(p.content for p in message.parts if isinstance(p, UserPromptPart) and isinstance(p.content, str))


async def answer(messages, info):
    """Replaces a model: calls the tool that the prompt names, reports its result, or counts the turns."""
    last = messages[-1].parts[-1]
    text = prompt_of(messages[-1])
    if isinstance(last, ToolReturnPart):
        for word in ("The tool ", last.tool_name, " says: ", str(last.content)):
            yield word
    elif text == "fail":
        raise ValueError("the model is out of order")
    elif text.startswith("add "):
        yield {0: DeltaToolCall(name="add_item", json_args='{"item": "%s"}' % text[4:], tool_call_id="call_add")}
    elif text.startswith("replace "):
        yield {0: DeltaToolCall(name="replace_item", json_args='{"item": "%s"}' % text[8:], tool_call_id="call_replace")}
    elif text == "weather" and any(t.name == "get_weather" for t in info.function_tools):
        yield {0: DeltaToolCall(name="get_weather", json_args='{"city": "Rome"}', tool_call_id="call_weather")}
    else:
        turns = [m for m in messages if isinstance(m, ModelRequest) and prompt_of(m)]
        for word in ("You said ", text, " in turn ", str(len(turns))):
            yield word


agent = Agent(FunctionModel(stream_function=answer), deps_type=StateDeps[Board])


@agent.tool
async def add_item(ctx: RunContext[StateDeps[Board]], item: str) -> ToolReturn:
    ctx.deps.state.items.append(item)
    return ToolReturn(return_value=f"{len(ctx.deps.state.items)} items",
                      metadata=[StateSnapshotEvent(type=EventType.STATE_SNAPSHOT, snapshot=ctx.deps.state.model_dump())])


@agent.tool
async def replace_item(ctx: RunContext[StateDeps[Board]], item: str) -> ToolReturn:
    ctx.deps.state.items[-1] = item
    change = {"op": "replace", "path": f"/items/{len(ctx.deps.state.items) - 1}", "value": item}
    return ToolReturn(return_value=f"{item} is the last item", metadata=[StateDeltaEvent(type=EventType.STATE_DELTA, delta=[change])])


async def ag_ui(request):
    return await AGUIAdapter.dispatch_request(request, agent=agent, deps=StateDeps(Board()))


async def ai_sdk(request):
    return await VercelAIAdapter.dispatch_request(request, agent=agent, deps=StateDeps(Board()))


app = Starlette(routes=[Route("/ag-ui", ag_ui, methods=["POST"]), Route("/ai-sdk", ai_sdk, methods=["POST"])])

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
