"""`dragoman db` and `dragoman init`: files of a server."""
import json
import os
import re
import urllib.request

from support import ROOT, Server, check, check_same, failed, folder, read, run, shell, succeeded, test, write


def ask(url, text):
    """A message, sent without any of our own client code."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {
        "messageId": f"m-{text}", "role": "ROLE_USER", "parts": [{"text": text}]}}}
    request = urllib.request.Request(url + "/", json.dumps(body).encode(),
                                     {"Content-Type": "application/json", "A2A-Version": "1.0"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["result"]


def filled(path, n=3):
    """A database with n tasks."""
    with Server(agent="bench", store=f"sqlite:{path}") as server:
        return [ask(server.url, f"chunks {i + 1}")["task"]["id"] for i in range(n)]


@test("db check counts what is there, beside a running server too")
def _():
    path = os.path.join(folder(), "a.db")
    filled(path)
    with Server(agent="bench", store=f"sqlite:{path}"):
        out = succeeded(run("db", "check", "-d", path)).out.decode()
        check(re.fullmatch(r"3 tasks, 3 turns, \d+ records, 0 faults\n", out), out)
    check_same(run("db", "check", "-d", "sqlite:" + path).out.decode(), out)


@test("db check finds and reports a damaged page")
def _():
    path = os.path.join(folder(), "a.db")
    filled(path, 20)
    data = bytearray(read(path))
    at = data.index(b"artifactUpdate")
    data[at:at + 14] = b"artifactUpdat!"
    write(path, bytes(data))
    ended = run("db", "check", "-d", path)
    check_same(ended.status, 1, "status")
    check("a.db" in ended.err and b"0 faults" not in ended.out, ended)


@test("db backup and restore bring tasks back")
def _():
    here = folder()
    path, copy = os.path.join(here, "a.db"), os.path.join(here, "copy.db")
    filled(path, 2)
    succeeded(run("db", "backup", "-d", path, copy))
    failed(run("db", "backup", "-d", path, copy), 1, "copy.db")
    os.unlink(path)
    filled(path, 5)
    succeeded(run("db", "restore", "-d", path, copy))
    check(b"2 tasks" in succeeded(run("db", "check", "-d", path)).out, "what was restored")
    check(b"5 tasks" in succeeded(run("db", "check", "-d", path + ".before-restore")).out, "what was there")


@test("db restore and vacuum want the database alone and say who has it")
def _():
    path = os.path.join(folder(), "a.db")
    filled(path, 1)
    succeeded(run("db", "backup", "-d", path, path + ".copy"))
    with Server(agent="bench", store=f"sqlite:{path}") as server:
        failed(run("db", "restore", "-d", path, path + ".copy"), 1, str(server.p.pid))
        failed(run("db", "vacuum", "-d", path), 1, str(server.p.pid))
    out = succeeded(run("db", "vacuum", "-d", path)).out.decode()
    check(re.fullmatch(r"\d+ bytes before, \d+ after\n", out), out)


@test("db export prints every record as a line of JSON, by task and seq")
def _():
    path = os.path.join(folder(), "a.db")
    tasks = filled(path)
    lines = [json.loads(line) for line in succeeded(run("db", "export", "-d", path)).out.splitlines()]
    check_same({line["task"] for line in lines}, set(tasks), "tasks")
    for task in tasks:
        seqs = [line["seq"] for line in lines if line["task"] == task]
        check_same(seqs, list(range(1, len(seqs) + 1)), "seqs")
    check(all(line["agent"] == "bench" and line["event"] for line in lines), lines[0])


@test("db export to a reader that goes away ends silently")
def _():
    path = os.path.join(folder(), "a.db")
    filled(path)
    ended = shell(f"set -o pipefail; dragoman db export -d {path} | head -c 10; echo ${{PIPESTATUS[0]}}")
    check_same(ended.err, "", "stderr")


@test("db says what is missing or too much, and which database is not there")
def _():
    here = folder()
    failed(run("db", cwd=here), 2, "db needs ACTION", "check, backup")
    failed(run("db", "look", cwd=here), 2, "unknown action 'look'")
    failed(run("db", "backup", cwd=here), 2, "backup needs FILE")
    failed(run("db", "check", "x", cwd=here), 2, "check needs no FILE", "--database")
    failed(run("db", "check", cwd=here), 1, "dragoman.db")
    check_same(os.listdir(here), [], "files made by looking")


@test("init exec writes an agent that answers at once, and leaves what is there alone")
def _():
    here = folder()
    out = succeeded(run("init", "exec", "mine", cwd=here)).out.decode()
    check("wrote mine/dragoman.yaml" in out, out)
    check(out.endswith("cd mine && dragoman serve\n"), out)
    with Server(agent=None, cwd=os.path.join(here, "mine")) as server:
        answer = ask(server.url, "hello")
        check("hello" in json.dumps(answer), answer)
    failed(run("init", "exec", "mine", cwd=here), 1, "dragoman.yaml exists already")


@test("init names the schema in the first line, and writes it: `dragoman schema` prints the same")
def _():
    here = folder()
    succeeded(run("init", "exec", cwd=here))
    first = read(os.path.join(here, "dragoman.yaml")).decode().splitlines()[0]
    check_same(first, "# yaml-language-server: $schema=dragoman.schema.json", "first line")
    schema = read(os.path.join(here, "dragoman.schema.json"))
    check_same(succeeded(run("schema")).out, schema, "dragoman schema")
    check(json.loads(schema)["$id"].startswith("urn:dragoman:config:"), "$id")
    check_same(schema, read(os.path.join(ROOT, "share/config.schema.json")), "the installed schema")


@test("init: the database is at the same place whether or not the line of the store is a comment")
def _():
    here = folder()
    succeeded(run("init", "exec", cwd=here))
    path = os.path.join(here, "dragoman.yaml")
    text = read(path).decode()
    check("# store: sqlite:dragoman.db" in text, text)
    stores = []
    for t in (text, text.replace("# store:", "store:")):
        write(path, t)
        stores.append(json.loads(succeeded(run("serve", "-c", path, "--check")).out)["store"])
    check_same(stores[0], stores[1], "store")
    check_same(stores[0], f"sqlite:{here}/dragoman.db", "store")


@test("db uses the database of the configuration")
def _():
    here = folder()
    write(os.path.join(here, "dragoman.yaml"), "store: mine.db\n")
    failed(run("db", "check", cwd=here), 1, "mine.db")
    write(os.path.join(here, "other.yaml"), "store: memory\n")
    failed(run("db", "check", "-c", "other.yaml", cwd=here), 1, "not a database file", "--database")
    write(os.path.join(here, "bad.yaml"), "stroe: x.db\n")
    failed(run("db", "check", "-c", "bad.yaml", cwd=here), 1, "unknown setting \"stroe\"")


@test("init a2a and init http write a configuration to fill in, for types that the program has")
def _():
    known = [t for line in succeeded(run("schema")).out.decode().splitlines() if '"enum"' in line and '"exec"' in line for t in re.findall(r'"([\w-]+)"', line)]
    for kind in "a2a", "http":
        here = folder()
        out = succeeded(run("init", kind, "mine", cwd=here)).out.decode()
        check("wrote mine/dragoman.yaml" in out and "Replace the URL" in out and "cd mine && dragoman serve" in out, out)
        text = read(os.path.join(here, "mine", "dragoman.yaml")).decode()
        check(f"type: {kind}" in text and "dragoman connect URL" in text, text)
        check_same(sorted(os.listdir(os.path.join(here, "mine"))), ["dragoman.schema.json", "dragoman.yaml"])
        if kind in known:
            checked = run("serve", "--check", cwd=os.path.join(here, "mine"))
            check_same((checked.status, checked.err), (0, "dragoman: reading ./dragoman.yaml\n"))


@test("init refuses kinds that it does not know")
def _():
    failed(run("init"), 2, "init needs KIND", "exec")
    failed(run("init", "exce"), 2, "unknown kind of agent 'exce'", "did you mean 'exec'?")
