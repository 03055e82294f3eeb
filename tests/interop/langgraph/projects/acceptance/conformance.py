"""A graph whose node runs LangGraph's conformance tests on the checkpointer that it runs with."""
import json

import graphs as g
from langchain_core.messages import AIMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES

from dragoman._checkpointer import ServerSaver


class Prefixed(ServerSaver):
    """The server accepts threads that it has named, and names that are derived from one."""

    prefix = ""

    def _named(self, value):
        if isinstance(value, dict):
            conf = value["configurable"]
            return {**value, "configurable": {**conf, "thread_id": self._named(conf["thread_id"])}}
        return self.prefix + str(value)

    def _plain(self, config):
        if config is None:
            return None
        conf = config["configurable"]
        return {"configurable": {**conf, "thread_id": conf["thread_id"][len(self.prefix):]}}

    def _tuple_of(self, saved):
        return saved and saved._replace(config=self._plain(saved.config), parent_config=self._plain(saved.parent_config))

    async def aget_tuple(self, config):
        return self._tuple_of(await super().aget_tuple(self._named(config)))

    async def alist(self, config, **more):
        async for saved in super().alist(self._named(config), **more):
            yield self._tuple_of(saved)

    async def _needs_ancestors(self, thread):
        return await super()._needs_ancestors(thread[len(self.prefix):])

    async def aput(self, config, *rest):
        return self._plain(await super().aput(self._named(config), *rest))

    async def aput_writes(self, config, *rest, **more):
        await super().aput_writes(self._named(config), *rest, **more)

    async def adelete_thread(self, thread_id):
        await super().adelete_thread(self._named(thread_id))

    async def adelete_for_runs(self, run_ids):
        await super().adelete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id, target_thread_id):
        await super().acopy_thread(self._named(source_thread_id), self._named(target_thread_id))

    async def aprune(self, thread_ids, **more):
        await super().aprune([self._named(t) for t in thread_ids], **more)

    async def aget_delta_channel_history(self, *, config, channels):
        return await super().aget_delta_channel_history(config=config, channels=channels)


async def check(state, config):
    own = config["configurable"]["__pregel_checkpointer"]

    @checkpointer_test(name="the server's store")
    async def saver():
        made = Prefixed(own.connection)
        made.prefix = config["configurable"]["thread_id"] + ":"
        yield made
    report = await validate(saver)
    results = report.results
    return {"messages": [AIMessage(content=json.dumps({
        "failures": [f for r in results.values() for f in r.failures or []], "all": [c.value for c in ALL_CAPABILITIES],
        "passed": [c for c, r in results.items() if r.detected and r.passed], "tests": sum(r.tests_passed for r in results.values()), "skipped": sum(r.tests_skipped for r in results.values())}))]}


graph = g.line(check)
