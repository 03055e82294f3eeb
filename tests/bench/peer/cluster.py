"""The peer of `make bench-replicas`: a2a-python's database cluster mode, one replica per process, with the contract of our agent `bench`.

usage: cluster.py DSN [--port N] [--pool N] [--poll SECONDS]      prints the port it listens on

  echo ...              one Message with the same text
  chunks N ...          submitted, working, N artifact-updates of one short text part, completed
  chunks N yield ...    the same with a turn of the event loop between chunks
  tokens N every MS ... one chunk every MS milliseconds; its text is the time at which the agent sent it, in microseconds of CLOCK_MONOTONIC

Built as the SDK's own sample of a cluster builds it: DefaultRequestHandler with VersionedDatabaseTaskStore and DatabaseTaskEventStream on one
database. Set up for speed: uvloop and httptools, one pool of connections for both, no access log, OpenTelemetry off (the caller sets
OTEL_INSTRUMENTATION_A2A_SDK_ENABLED=false).
"""
import argparse
import asyncio
import contextlib
import re
import socket
import time

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.cluster import DatabaseTaskEventStream, VersionedDatabaseTaskStore
from a2a.server.models import Base
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from sqlalchemy.ext.asyncio import create_async_engine
from starlette.applications import Starlette


class BenchExecutor(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        chunks = re.match(r"chunks (\d+)( yield)?", text)
        tokens = re.match(r"tokens (\d+) every (\d+)", text)
        if not chunks and not tokens:
            await event_queue.enqueue_event(new_text_message(text, context_id=context.context_id))
            return
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        await updater.start_work()
        parts = []
        for i in range(1, int((chunks or tokens)[1]) + 1):
            if tokens:
                await asyncio.sleep(int(tokens[2]) / 1000)
            elif chunks[2]:
                await asyncio.sleep(0)
            parts.append(f"{time.monotonic_ns() // 1000} " if tokens else f"{i} ")
            await updater.add_artifact([Part(text=parts[-1])], artifact_id="answer", append=i > 1, last_chunk=i == int((chunks or tokens)[1]))
        await updater.complete(updater.new_agent_message([Part(text="".join(parts))]))

    async def cancel(self, context, event_queue):
        pass


def card(port):
    return AgentCard(
        name="Bench", description="Answers as fast as it can", version="1", default_input_modes=["text/plain"], default_output_modes=["text/plain"],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        skills=[AgentSkill(id="bench", name="Bench", description="echo, chunks, tokens", tags=["benchmark"])],
        supported_interfaces=[AgentInterface(protocol_binding="JSONRPC", protocol_version="1.0", url=f"http://127.0.0.1:{port}/")])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("dsn")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pool", type=int, default=20)
    parser.add_argument("--poll", type=float, default=0.2)
    args = parser.parse_args()
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", args.port))
    port = listening.getsockname()[1]
    engine = create_async_engine(args.dsn, pool_size=args.pool, max_overflow=0)
    store = VersionedDatabaseTaskStore(engine, create_table=False)
    stream = DatabaseTaskEventStream(engine, create_table=False, poll_interval_s=args.poll)
    handler = DefaultRequestHandler(agent_executor=BenchExecutor(), task_store=store, agent_card=card(port), event_stream=stream)

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with engine.begin() as connection:
            await connection.run_sync(Base.metadata.create_all)
        print(port, flush=True)
        yield
        await handler.aclose()
        await engine.dispose()

    app = Starlette(routes=[*create_agent_card_routes(card(port)), *create_jsonrpc_routes(handler, "/")], lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, loop="uvloop", http="httptools", log_level="error", access_log=False, timeout_graceful_shutdown=1)).run(sockets=[listening])


main()
