"""A worker without a process: its agents in this one, its connection answered by the stand-in of the store."""
import asyncio
import contextlib
import json
import os
import sys

from dragoman._graphs import GraphAgents
from dragoman._rpc import EncodeError, RpcError, encode
from dragoman.worker import Run

from .stand_in import PROJECTS, Refused, Store, user


class Connection:
    def __init__(self, store=None, max_line=8 << 20):
        self.loop = asyncio.get_running_loop()
        self.store = store if store is not None else Store()
        self.max_line_bytes = max_line
        self.sent, self.lines = [], []
        self.log = lambda level, text, run=None: self.lines.append(f"{level}: {text}")

    async def request(self, method, params):
        if len(encode({"jsonrpc": "2.0", "id": "w1", "method": method, "params": params})) >= self.max_line_bytes:
            raise EncodeError("too long")
        await asyncio.sleep(0)
        try:
            answer = self.store.call(method, params)
        except Refused as e:
            raise RpcError(e.code, str(e)) from None
        assert len(encode(answer)) < self.max_line_bytes, "the store sent too long a line"
        return answer

    def notify(self, method, params):
        self.sent.append(params)

    def send_line(self, line):
        self.sent.append(json.loads(line)["params"])

    def is_full(self):
        return False

    async def drain(self):
        pass


@contextlib.asynccontextmanager
async def loaded(project, graphs, settings=None, checkpointer="server", store=None):
    """The agents of a project. What it imported is forgotten at the end: projects have modules of the same name."""
    folder, modules, path, env = os.getcwd(), set(sys.modules), sys.path[:], dict(os.environ)
    agents = GraphAgents(Connection(store))
    try:
        agents.described = await agents.initialize({"graphs": graphs, "settings": settings or {}, "checkpointer": checkpointer, "cwd": os.path.join(PROJECTS, project)})
        yield agents
    finally:
        await agents.close()
        os.chdir(folder)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(PROJECTS):
                del sys.modules[name]
        for name in set(os.environ) - set(env):
            del os.environ[name]


async def run(agents, agent, thread, input, **more):
    if isinstance(input, str):
        input = user(input)
    made = Run(agents.connection, {"run": "r1", "agent": agent, "thread": thread, "input": input, "recursionLimit": 100, **more})
    return await agents.run(made)
