"""A server of the MCP SDK for Python (revision 2026-07-28): `sdk_server.py` over stdio, `sdk_server.py PORT` over HTTP."""
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("interop")


class Sum(BaseModel):
    sum: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """Adds two numbers."""
    return Sum(sum=a + b)


@server.tool()
async def steps(ctx: Context) -> str:
    """Reports progress."""
    for i in range(3):
        await ctx.report_progress(i + 1, 3, f"step {i + 1}")
    return "three steps"


@server.tool()
def fail() -> str:
    """Fails."""
    raise ValueError("it went wrong")


if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
