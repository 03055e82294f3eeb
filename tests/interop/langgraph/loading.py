"""Graphs are loaded from projects of every form (docs/agents/langgraph.md)."""
import contextlib
import io
import os
import sys
import unittest

from lib import tap
from lib.in_process import loaded, run
from lib.projects import graphs_of
from lib.stand_in import PROJECTS, Error, Store, Worker

from dragoman.worker import LoadError, explain_load_error


class Loading(unittest.IsolatedAsyncioTestCase):
    async def answer(self, project, prefix, agent="agent", **more):
        async with loaded(project, **graphs_of(project), **more) as agents:
            result = await run(agents, agent, "t", "hi")
            self.assertEqual([m["content"] for m in result["messages"]], [f"{prefix}: hi"])
            self.assertEqual(result["status"], "completed")
            return agents

    def test_process(self):
        """a compiled graph of langgraph.json runs unchanged in a worker process, which ends with the connection"""
        with Worker("compiled", **graphs_of("compiled")) as worker:
            self.assertEqual(worker.run("agent", "t", "hi").value["messages"][0]["content"], "compiled: hi")
            self.assertEqual(worker.close(), 0)

    async def test_compiled(self):
        """a compiled graph"""
        await self.answer("compiled", "compiled")

    async def test_uncompiled(self):
        """a StateGraph is compiled"""
        await self.answer("uncompiled", "uncompiled")

    async def test_factory(self):
        """a function without arguments returns the graph"""
        await self.answer("factory", "factory")

    async def test_factory_config(self):
        """a function of the config returns a StateGraph"""
        await self.answer("factory_config", "factory_config")

    async def test_factory_async(self):
        """an async function returns the graph"""
        await self.answer("factory_async", "factory_async")

    async def test_context_manager(self):
        """an async context manager is entered once, and left by the same task when the worker ends"""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            await self.answer("context_manager", "context_manager")
        self.assertEqual(printed.getvalue(), "opened\nclosed by the same task\n")

    async def test_package(self):
        """a module of a package, by its name and by its file, with relative imports"""
        await self.answer("package", "package", "module")
        await self.answer("package", "package", "file")

    async def test_src(self):
        """a file in a folder that is not a package can import its neighbours"""
        await self.answer("src_layout", "src")

    async def test_described(self):
        """an entry {path, description} of langgraph.json; its env reaches the graph"""
        agents = await self.answer("described", "good morning described")
        self.assertEqual(agents.described["agents"], [{"id": "agent", "kind": "graph", "keys": ["messages"], "description": "Answers with a greeting"}])

    async def test_aion(self):
        """an entry of aion.yaml"""
        agents = await self.answer("aion", "aion", "helper")
        agent = agents.described["agents"][0]
        self.assertEqual((agent["name"], agent["description"], agent["skills"][0]["id"]), ("Helper", "Helps", "help"))

    async def test_own_checkpointer(self):
        """a graph that was compiled with a checkpointer uses the server's"""
        store = Store()
        await self.answer("own_checkpointer", "own_checkpointer", store=store)
        self.assertTrue(store.rows)

    async def test_worker_checkpointer(self):
        """checkpointer worker: the graph's own one is used, and nothing is sent to the server"""
        store = Store()
        async with loaded("own_checkpointer", **graphs_of("own_checkpointer"), store=store, checkpointer="worker") as agents:
            await run(agents, "agent", "t", "one")
            await run(agents, "agent", "t", "two")
            self.assertEqual(len((await agents.state({"thread": "t"}))["messageIds"]), 4)
        self.assertFalse(store.calls)

    async def test_memory_checkpointer(self):
        """checkpointer memory: the state is in the process; checkpointer worker without one of its own warns"""
        for kind in ("memory", "worker"):
            async with loaded("compiled", **graphs_of("compiled"), checkpointer=kind) as agents:
                await run(agents, "agent", "t", "one")
                await run(agents, "agent", "t", "two")
                self.assertEqual(len((await agents.state({"thread": "t"}))["messageIds"]), 4)
                self.assertEqual(any("no checkpointer of its own" in line for line in agents.connection.lines), kind == "worker")
                self.assertFalse(agents.connection.store.calls)


class Wrong(unittest.IsolatedAsyncioTestCase):
    async def refused(self, project, graphs):
        with self.assertRaises(LoadError) as caught:
            async with loaded(project, graphs):
                pass
        return explain_load_error(caught.exception)

    def test_process(self):
        """a worker process answers initialize with -32004"""
        with Worker("missing", {"agent": "./agent.py:graph"}, start=False) as worker, self.assertRaises(Error) as caught:
            worker.call("initialize", worker.initialize)
        self.assertEqual(caught.exception.code, -32004)
        self.assertIn("missing packages another_missing_one, package_that_is_missing", str(caught.exception))
        self.assertIn("Traceback", caught.exception.data["traceback"])

    async def test_missing(self):
        """missing packages are named all at once, with the interpreter and the command to install them"""
        text = await self.refused("missing", {"agent": "./agent.py:graph"})
        self.assertIn("missing packages another_missing_one, package_that_is_missing", text)
        self.assertIn(f"{sys.executable} -m pip install another-missing-one package-that-is-missing", text)
        self.assertIn(f"Python {sys.version.split()[0]}", text)

    async def test_no_file(self):
        """a file that does not exist is named"""
        self.assertIn(os.path.join(PROJECTS, "compiled", "agent2.py"), await self.refused("compiled", {"agent": "./agent2.py:graph"}))

    async def test_no_attribute(self):
        """an attribute that does not exist: the graphs that do are named"""
        self.assertIn("has no attribute agent; graphs in it: builder, graph", await self.refused("compiled", {"agent": "./agent.py:agent"}))

    async def test_no_module(self):
        """a module that does not exist is named"""
        self.assertIn("there is no module helpdesk.agents", await self.refused("package", {"agent": "helpdesk.agents:graph"}))

    async def test_bad_spec(self):
        """a path without an attribute is refused"""
        self.assertIn('invalid path "./agent.py": expected path/to/file.py:attribute', await self.refused("compiled", {"agent": "./agent.py"}))

    async def test_not_a_graph(self):
        """an attribute that is not a graph is refused"""
        self.assertIn("expected a compiled graph, a StateGraph or a function that returns one, got dict",
                      await self.refused("compiled", {"agent": "./agent.py:State"}))

    async def test_arguments(self):
        """a function of two arguments is refused"""
        self.assertIn("with no argument or one (the config), got 2: left, right", await self.refused("compiled", {"agent": "langgraph.graph.message:add_messages"}))


if __name__ == "__main__":
    tap.main()
