"""What a worker says about itself in the handshake is on the agent card: configuration, then handshake, then defaults."""
import json
import os
import signal
import subprocess
import sys
import time

from lib.http import ask
from lib.server import ROOT, Server, agent, folder, needs_ours, settings
from lib.tap import check, each, same, soon, test

PYTHON = '''from dragoman.agent import agent

@agent(name="{name}", description="Answers.", version="2.1", input_modes=["text/plain", "image/png"], output_modes=["application/json"],
       skills=[{{"id": "sum", "name": "Sums", "description": "Adds numbers.", "tags": ["math"], "examples": ["1 and 2"]}}, {{"id": "plain"}}])
async def main(turn):
    await turn.write("x")
'''
NODE = '''import { agent } from 'dragoman';
export default agent({ name: '%s', description: 'Answers.', version: '2.1', inputModes: ['text/plain', 'image/png'], outputModes: ['application/json'],
    skills: [{ id: 'sum', name: 'Sums', description: 'Adds numbers.', tags: ['math'], examples: ['1 and 2'] }, { id: 'plain' }] },
    async (turn) => turn.write('x'));
'''
LANGUAGES = {"Python": ([sys.executable, "-m", "dragoman.worker"], "agent.py", lambda name: PYTHON.format(name=name)),
             "JavaScript": (["node", os.path.join(ROOT, "js", "worker.js")], "agent.mjs", lambda name: NODE % name)}
EACH = [(language, language) for language in LANGUAGES]


def config(language, path, card=None):
    command = LANGUAGES[language][0] + [path]
    more = {"card": card} if card else {}
    return settings(agents=[agent("exec", id="demo", settings={"mode": "worker", "command": command, "cwd": os.path.dirname(path), "env": {"PYTHONPATH": os.path.join(ROOT, "python")}}, **more)])


def write(language, name, at=None):
    at = at or folder()
    path = os.path.join(at, LANGUAGES[language][1])
    packages = os.path.join(at, "node_modules")
    if language == "JavaScript" and not os.path.exists(packages):
        os.mkdir(packages)
        os.symlink(os.path.join(ROOT, "js"), os.path.join(packages, "dragoman"))
    with open(path, "w", encoding="utf-8") as f:
        f.write(LANGUAGES[language][2](name))
    return path


def fetch(s, *headers):
    return ask(s.address, "GET", "/.well-known/agent-card.json", None, [("A2A-Version", "1.0"), *headers])


def etag(response):
    return {k.lower(): v for k, v in response.headers}["etag"]


def card_with(s, name):
    def found():
        card = json.loads(fetch(s).body)
        return card if card["name"] == name else None
    return soon(found, lambda: (fetch(s).body, s.log[-5:]), 30)


@each("{}: name, description, version, modes and skills of the handshake", EACH)
def _(language):
    needs_ours()
    with Server(None, config=config(language, write(language, "First"))) as s:
        card = card_with(s, "First")
        same((card["description"], card["version"], card["defaultInputModes"], card["defaultOutputModes"]),
             ("Answers.", "2.1", ["text/plain", "image/png"], ["application/json"]), "members")
        same(card["skills"], [{"id": "sum", "name": "Sums", "description": "Adds numbers.", "tags": ["math"], "examples": ["1 and 2"]},
                              {"id": "plain", "name": "plain", "description": "plain", "tags": []}], "skills")
        old = json.loads(ask(s.address, "GET", "/.well-known/agent-card.json", None, []).body)
        same(old["name"], "First", "the card of 0.3")


@test("the configuration wins, the rest comes from the handshake")
def _():
    needs_ours()
    with Server(None, config=config("Python", write("Python", "Hidden"), card={"name": "Configured", "skills": [{"id": "a", "name": "A", "description": "d", "tags": ["t"]}]})) as s:
        soon(lambda: json.loads(fetch(s).body)["version"] == "2.1", lambda: fetch(s).body, 60)
        card = json.loads(fetch(s).body)
        same((card["name"], card["description"], [x["id"] for x in card["skills"]]), ("Configured", "Answers.", ["a"]), "members")


@each("{}: another handshake is another card with another ETag; a lost process changes nothing", EACH)
def _(language):
    needs_ours()
    path = write(language, "Before")
    with Server(None, config=config(language, path), args=["--watch"]) as s:
        card_with(s, "Before")
        first = fetch(s)
        tag = etag(first)
        same(fetch(s, ("If-None-Match", tag)).status, 304, "the same card")
        time.sleep(0.1)
        write(language, "After", os.path.dirname(path))
        card_with(s, "After")
        changed = fetch(s, ("If-None-Match", tag))
        same(changed.status, 200, "the changed card")
        check(etag(changed) != tag, changed)
        out = subprocess.run(["pgrep", "-P", str(s.process.pid)], capture_output=True, text=True, check=False).stdout
        os.kill(int(out.split()[0]), signal.SIGKILL)
        same(etag(fetch(s)), etag(changed), "after the loss of the worker")
        os.kill(s.process.pid, signal.SIGHUP)
        soon(lambda: any("reload" in line for line in s.log), lambda: s.log[-5:], 30)
        same(json.loads(fetch(s).body)["name"], "After", "after a reload")
