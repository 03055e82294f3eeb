"""docs/agents/langgraph.md as a graph's author reads it: who has which duty, the signatures, and every example, run unchanged."""
import glob
import inspect
import os
import re
import subprocess
import sys

import common
from lib.a2a import RPC1, Client, task_text
from lib.server import DRAGOMAN, Server, folder
from lib.tap import check, each, same, test

sys.path.insert(0, os.path.join(common.TREE, "python"))
with open(os.path.join(common.TREE, "docs/agents/langgraph.md"), encoding="utf-8") as f:
    GUIDE = f.read()

AUTHOR = {"LangChain types in messages": r"`state\.messages` as LangChain message types", "a2a_outbox is optional": r"optionally sets `a2a_outbox`",
          "the functions are optional": r"optionally emits A2A events by the functions"}
SERVER = {"ids and routing metadata": r"owns ids of tasks and contexts, and routing metadata", "each message is accepted once": r"accepts each message once",
          "the mapping": r"maps the output and the state of the graph to Messages and Tasks",
          "StreamResponse": r"each frame is a StreamResponse with exactly one of `statusUpdate`, `artifactUpdate`, `message`, `task`"}


def section(title):
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", GUIDE, re.S | re.M)[1]


def example(title, language):
    block, = re.findall(rf"^```{language}\n(.*?)^```", section(title), re.S | re.M)
    return block


@test("the guide says what the graph's author does, and what the server does [R003-41]")
def _():
    head, _line, *rows = [[c.strip() for c in line.strip("|").split("|")] for line in section("Who does what").splitlines() if line.startswith("|")]
    same(head, ["the graph's author", "the server"], "the columns")
    for column, duties in ((0, AUTHOR), (1, SERVER)):
        cells = "\n".join(row[column] for row in rows)
        same([name for name, words in duties.items() if not re.search(words, cells)], [], f"duties that are missing under {head[column]!r}")


@test("the table of functions has their signatures [R003-41]")
def _():
    from dragoman import langgraph
    found = re.findall(r"^\| `(emit_\w+)(\(.*?\))` \|", section("What the client gets"), re.M)
    same([name for name, _ in found], ["emit_file", "emit_data", "emit_message", "emit_task_metadata"], "functions")
    for name, written in found:
        signature = inspect.signature(getattr(langgraph, name))
        plain = signature.replace(return_annotation=inspect.Signature.empty, parameters=[p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()])
        same(written, str(plain), name)


SENTENCES = ["1.1", "1.2 (1)", "1.2 (2)", "1.2 (3)", "2.1", "2.1 (1)", "2.1 (2)", "3.1", "3.2", "3.2 (3)", "3.3", "3.4", "3.5", "4"]  # of the mapping's document
WIRE = {"wire": "test_langgraph.py", "js": "test_langgraph_js.py"}


def tests_of(file):
    with open(os.path.join(common.TREE, "tests", "wire", file), encoding="utf-8") as f:
        return re.findall(r'^@(?:test|each)\("(.*?)"', f.read(), re.M)


def missing(cell):
    """The tests that a cell of the table names and that are not there."""
    for part in cell.split("; "):
        kind, _, names = part.partition(": ")
        for name in names.split(", "):
            if kind == "turns" and not glob.glob(os.path.join(common.TREE, "tests", "langgraph", "turns", name + ".json")) or \
                    kind in WIRE and not any(name in t for t in tests_of(WIRE[kind])) or kind not in ("turns", *WIRE, "graphs", "this page"):
                yield part if not names else f"{kind}: {name}"


@test("the table of the mapping's sentences has each of them, and the tests that it names exist")
def _():
    text = section("The A2A ↔ LangGraph mapping, sentence by sentence")
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in text.splitlines() if re.match(r"\| \d", line)]
    same(sorted({re.match(r"[\d.]+(?: \(\d\))?", sentence)[0] for sentence, _ in rows}), SENTENCES, "the sections")
    same([m for _, cell in rows for m in missing(cell)], [], "tests that do not exist")
    same(list(missing("turns: no-such-turn; wire: no such test; elsewhere")), ["turns: no-such-turn", "wire: no such test", "elsewhere"], "what this test would find")


def written(files):
    """A project of these files, in the place of one that a reader has."""
    place = folder()
    for name, text in files.items():
        with open(os.path.join(place, name), "w", encoding="utf-8") as f:
            f.write(text)
    return place


def python_project():
    code = example("For graph authors (Python)", "python")
    code += "\nfrom langgraph.graph import END, START, StateGraph\n"
    code += "graph = StateGraph(State).add_node(node).add_edge(START, 'node').add_edge('node', END).compile()\n"
    place = written({"graph.py": code, "langgraph.json": '{"dependencies": ["."], "graphs": {"agent": "./graph.py:graph"}}'})
    os.symlink(os.path.join(common.FOLDER, ".venv-langgraph"), os.path.join(place, ".venv"))
    return place


def javascript_project():
    code = "import { MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';\n" + example("JavaScript", "js")
    code += "\nexport const graph = new StateGraph(MessagesAnnotation).addNode('report', report).addEdge(START, 'report');\n"
    place = written({"graph.mjs": code, "langgraph.json": '{"node_version": "20", "graphs": {"agent": "./graph.mjs:graph"}}'})
    os.symlink(os.path.join(common.FOLDER, "../langgraph-js/node_modules"), os.path.join(place, "node_modules"))
    return place


def with_command(place):
    command, = re.findall(r"^    dragoman serve (.*)$", GUIDE, re.M)
    args = [os.path.join(place, a) if a.startswith("./") else a for a in command.split()]
    return Server(None, args=args), ""


def with_configuration(place):
    text, = re.findall(r"^```yaml\n(.*?)^```", GUIDE.split("\n## ")[0], re.S | re.M)
    file = os.path.join(place, "dragoman.yaml")
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)
    return Server(None, args=["-c", file]), "/agents/research"


WAYS = [("the command", with_command), ("the configuration", with_configuration)]


@each("the guide's Python example runs with {} [R003-41]", WAYS)
def _(way):
    s, base = way(python_project())
    with s:
        task = Client(s, RPC1, base=base).send("hi").task
        same([(a["name"], a["parts"]) for a in task["artifacts"]], [("analysis", [{"data": {"rows": 3}}])], "the artifact")
        same(task["status"]["message"]["parts"], [{"text": "done"}, {"data": {"rows": 3}}], "the answer")
        s.stop_well()


@each("the guide's JavaScript example runs with {} [R003-41]", WAYS)
def _(way):
    s, base = way(javascript_project())
    with s:
        task = Client(s, RPC1, base=base).send("hi").task
        same([(a["name"], a["parts"]) for a in task["artifacts"]], [("report", [{"data": {"rows": 1}}])], "the artifact")
        s.stop_well()


@test("the guide's command writes a project that answers [R003-41]")
def _():
    command, = re.findall(r"`dragoman (init langgraph \S+)`", GUIDE)
    place = folder()
    made = subprocess.run([DRAGOMAN, *command.split()], cwd=place, capture_output=True, text=True, timeout=60, check=False)
    check(made.returncode == 0, made.stderr)
    project = os.path.join(place, command.split()[-1])
    os.symlink(os.path.join(common.FOLDER, ".venv-langgraph"), os.path.join(project, ".venv"))
    with Server(None, args=["--langgraph", os.path.join(project, "langgraph.json")]) as s:
        t = Client(s, RPC1).send("hi").task
        same(t["status"]["state"], "TASK_STATE_COMPLETED", "the state")
        check(task_text(t), t)
        s.stop_well()


if __name__ == "__main__":
    common.main()
