"""For the programs of this folder: a server with the graph of projects/acceptance, and the clients of tests/wire/lib."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.dirname(HERE)
TREE = os.path.dirname(os.path.dirname(os.path.dirname(FOLDER)))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TREE, "tests", "wire")]

from lib import server, tap  # noqa: E402
from lib.tap import check, test  # noqa: E402

PYTHON = os.path.join(FOLDER, ".venv-langgraph", "bin", "python")
PROJECT = os.path.join(FOLDER, "projects", "acceptance")
COMMAND = [PYTHON, "-m", "dragoman.worker"]


def settings(graph="routed", **more):
    return server.settings(agents=[server.agent("langgraph", id="demo", settings={
        "config": os.path.join(PROJECT, "langgraph.json"), "graph": graph, "command": COMMAND, **more})])


def shared(**more):
    """One server for all tests that do not harm it."""
    return server.server(None, config=settings(**more))


def own(store="memory:", **more):
    return server.Server(None, store=store, config=settings(**more))


def workers_of(s):
    """The pids of its worker processes."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                parent = f.read().rsplit(")", 1)[1].split()[1]
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
                is_worker = "dragoman.worker" in f.read()
        except OSError:
            continue
        if int(parent) == s.process.pid and is_worker:
            found.append(int(pid))
    return found


def main():
    @test("the servers ended well")
    def _():
        complaints = server.end_all()
        check(not complaints, "\n".join(complaints))
    status = tap.main([t for t in tap.TESTS if not sys.argv[1:] or any(a in t.name for a in sys.argv[1:])])
    sys.stdout.flush()
    server.at_exit()
    os._exit(1 if status else 0)
