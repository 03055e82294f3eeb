"""An agent of a2a-sdk 1.x. usage: agent_a2a_1.py PORT [no-streams]"""
import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part, Role, Task, TaskState, TaskStatus
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        word = context.get_user_input()
        if word == "message":
            await queue.enqueue_event(Message(message_id="m", role=Role.ROLE_AGENT, context_id=context.context_id, parts=[Part(text="Hello")]))
            return
        if not context.current_task:
            await queue.enqueue_event(Task(id=context.task_id, context_id=context.context_id, history=[context.message],
                                           status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)))
        task = TaskUpdater(queue, context.task_id, context.context_id)
        await task.start_work()
        if word == "fail":
            await task.failed(task.new_agent_message([Part(text="no luck")]))
        elif word == "ask":
            await task.requires_input(task.new_agent_message([Part(text="Which one?")]))
        elif word == "wait":
            await asyncio.sleep(60)
        elif word == "files":
            await task.add_artifact([Part(raw=b"a,b\n", filename="t.csv", media_type="text/csv")], artifact_id="f", last_chunk=True)
            await task.add_artifact([Part(data=ParseDict({"n": 1}, Value()))], artifact_id="d", last_chunk=True)
            await task.complete()
        else:
            for i, text in enumerate(["Hello", " ", "world"]):
                await task.add_artifact([Part(text=text)], artifact_id="a", append=i > 0, last_chunk=i == 2)
            await task.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


port = int(sys.argv[1])
card = AgentCard(name="Agent", description="An agent", version="1", capabilities=AgentCapabilities(streaming=len(sys.argv) < 3),
                 default_input_modes=["text/plain"], default_output_modes=["text/plain"],
                 skills=[AgentSkill(id="s", name="S", description="does s", tags=["x"])],
                 supported_interfaces=[AgentInterface(url=f"http://localhost:{port}/{path}", protocol_binding=binding, protocol_version="1.0")
                                       for path, binding in (("rpc", "JSONRPC"), ("rest", "HTTP+JSON"))])
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/rpc") + create_rest_routes(handler, path_prefix="/rest"))
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
