"""usage: bare.py SECONDS TOKENS: the graph alone, as the worker runs it: astream with the same modes, subgraphs, a saver in memory, saved at the end of a run.

Prints {"tokens_per_s": ..., "cpu_us_per_token": ...}."""
import asyncio
import json
import sys
import time

from graph import builder
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

MODES = ["values", "messages", "custom", "updates"]


async def turn(graph, thread, tokens):
    seen = 0
    config = {"configurable": {"thread_id": thread}}
    async for _, mode, _ in graph.astream({"messages": [HumanMessage(f"tokens {tokens}")]}, config, stream_mode=MODES, subgraphs=True,
                                         durability="exit"):
        seen += mode == "messages"
    if seen < tokens:
        sys.exit(f"bare.py: {seen} of {tokens} tokens")


async def main(seconds, tokens):
    graph = builder.compile(checkpointer=InMemorySaver())
    await turn(graph, "warm", tokens)
    n, began, cpu = 0, time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        await turn(graph, f"t{n}", tokens)
        n += 1
    print(json.dumps({"tokens_per_s": n * tokens / (time.monotonic() - began),
                      "cpu_us_per_token": (time.process_time() - cpu) * 1e6 / (n * tokens)}))


asyncio.run(main(float(sys.argv[1]), int(sys.argv[2])))
