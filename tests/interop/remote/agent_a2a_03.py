"""An agent of a2a-sdk 0.3. usage: agent_a2a_03.py PORT [no-streams]"""
import asyncio
import base64
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, DataPart, FilePart, FileWithBytes, Part, TextPart
from a2a.utils import new_agent_text_message, new_task


class Executor(AgentExecutor):
    async def execute(self, context, queue):
        word = context.get_user_input()
        if word == "message":
            await queue.enqueue_event(new_agent_text_message("Hello", context.context_id))
            return
        made = context.current_task or new_task(context.message)
        if not context.current_task:
            await queue.enqueue_event(made)
        task = TaskUpdater(queue, made.id, made.context_id)
        await task.start_work()
        if word == "fail":
            await task.failed(new_agent_text_message("no luck", made.context_id, made.id))
        elif word == "ask":
            await task.requires_input(new_agent_text_message("Which one?", made.context_id, made.id))
        elif word == "wait":
            await asyncio.sleep(60)
        elif word == "files":
            file = FileWithBytes(bytes=base64.b64encode(b"a,b\n").decode(), name="t.csv", mime_type="text/csv")
            await task.add_artifact([Part(root=FilePart(file=file))], artifact_id="f", last_chunk=True)
            await task.add_artifact([Part(root=DataPart(data={"n": 1}))], artifact_id="d", last_chunk=True)
            await task.complete()
        else:
            for i, text in enumerate(["Hello", " ", "world"]):
                await task.add_artifact([Part(root=TextPart(text=text))], artifact_id="a", append=i > 0, last_chunk=i == 2)
            await task.complete()

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


port = int(sys.argv[1])
card = AgentCard(name="Agent", description="An agent", version="1", url=f"http://0.0.0.0:{port}/", preferred_transport="JSONRPC",
                 capabilities=AgentCapabilities(streaming=len(sys.argv) < 3), default_input_modes=["text/plain"],
                 default_output_modes=["text/plain"], skills=[AgentSkill(id="s", name="S", description="does s", tags=["x"])])
handler = DefaultRequestHandler(agent_executor=Executor(), task_store=InMemoryTaskStore())
uvicorn.run(A2AStarletteApplication(agent_card=card, http_handler=handler).build(), host="127.0.0.1", port=port, log_level="warning")
