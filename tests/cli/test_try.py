"""`dragoman try`: an agent file without a server."""
import json
import os

from support import check, check_same, folder, run, test, write

AGENT = '''
from dragoman.agent import Failed, agent
print("loaded")

@agent
def main(turn):
    print("prints", turn.text)
    if turn.text == "ask":
        turn.write("Hello. ")
        name = turn.ask("Name?")
        color = turn.ask("Color?")
        return f"{name} likes {color}."
    if turn.text == "fail":
        raise Failed("The bank is closed.")
    if turn.text == "raise":
        raise ValueError("a secret")
    return f"{len(turn.history)} {turn.text}"
'''


def agent_file():
    return write(os.path.join(folder(), "agent.py"), AGENT)


@test("try: prints the answer on stdout, and what the agent prints on stderr")
def _():
    ended = run("try", agent_file(), "two", "words")
    check_same((ended.status, ended.out.decode()), (0, "0 two words\n"))
    check("loaded" in ended.err and "prints two words" in ended.err and "is ready" not in ended.err, ended)


@test("try: lines of standard input answer questions")
def _():
    ended = run("try", agent_file(), "ask", stdin=b"Ann\nblue\n")
    check_same(ended.out.decode(), "Hello. \n\nName?\n\nColor?\n\nAnn likes blue.\n")
    check_same(ended.status, 0)
    ended = run("try", agent_file(), "ask", stdin=b"Ann\n")
    check_same(ended.out.decode(), "Hello. \n\nName?\n\nColor?\n")
    check("the agent waits for an answer" in ended.err, ended)


@test("try: without text every line is a message of one conversation")
def _():
    ended = run("try", agent_file(), stdin=b"one\ntwo\n")
    check_same(ended.out.decode(), "0 one\n\n2 two\n")


@test("try: a failure has status 1, and the traceback is on stderr")
def _():
    ended = run("try", agent_file(), "fail")
    check(ended.status == 1 and "the task failed: The bank is closed." in ended.err, ended)
    ended = run("try", agent_file(), "raise")
    check(ended.status == 1 and "ValueError: a secret" in ended.err and "agent.py" in ended.err, ended)
    broken = write(os.path.join(folder(), "broken.py"), "import not_installed\n")
    ended = run("try", broken, "x")
    check(ended.status == 1 and "missing package not_installed" in ended.err, ended)


@test("try: files that are not agents are refused")
def _():
    for name, word in (("/nowhere/agent.py", "cannot read"), ("agent.rb", "expected .py")):
        ended = run("try", name, "x")
        check(ended.status == 1 and word in ended.err, ended)


@test("try: --json prints every event")
def _():
    lines = run("try", "--json", agent_file(), "hi").out.decode().splitlines()
    kinds = [next(iter(json.loads(line))) for line in lines]
    check_same((kinds[0], kinds[-1]), ("task", "statusUpdate"))
    check("artifactUpdate" in kinds, kinds)
