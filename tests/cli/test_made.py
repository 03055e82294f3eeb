"""Man pages and completions, which are made from the same table as the help."""
import json
import os
import re
import shutil
import subprocess
import sys

from support import FOLDER, ROOT, Server, check, check_same, folder, read, run, shell, succeeded, test, write

COMMANDS = ["serve", "send", "try", "task", "card", "connect", "init", "schema", "db", "mcp", "bench", "lint", "convert", "compact", "formats", "version", "help"]
OPTION = re.compile(r"^  (?:(-\w), |    )--([\w-]+)(?: ([A-Z]+))?", re.M)


def options(*of):
    """[(letter or "", name, value or "")] as the help shows them"""
    found = OPTION.findall(succeeded(run(*of, "--help")).out.decode())
    check(found, f"no options in the help of {of}")
    return found


def page(name):
    return succeeded(run("__man", name)).out.decode()


@test("every option in a help text is in the man page, with its letter and value")
def _():
    for command in [None] + COMMANDS:
        text = page(command or "dragoman").replace("\\-", "-").replace("\\fB", "").replace("\\fI", "").replace("\\fR", "")
        for letter, name, value in options(*[command] if command else []):
            head = (letter and letter + ", ") + "--" + name + (value and " " + value)
            check(f".TP\n{head}\n" in text, f"the man page of {command} lacks {head}")


@test("every option in a help text is in the completions of all three shells")
def _():
    scripts = {s: succeeded(run("__completion", s)).out.decode() for s in ("bash", "zsh", "fish")}
    for command in COMMANDS:
        fish = "\n".join(line for line in scripts["fish"].splitlines() if f"__dragoman_at {command}" in line)
        zsh = re.search(rf"^        {command}\)$.*?^            ;;$", scripts["zsh"], re.S | re.M)[0]
        bash = re.search(rf"^    '{command}'\) options='(.*?)'", scripts["bash"], re.M)[1].split()
        for letter, name, _value in options(command):
            check(f" -l {name} " in fish and (not letter or f" -s {letter[1]} " in fish), f"fish: {command} --{name}")
            check(f"--{name}" in zsh and letter in zsh, f"zsh: {command} --{name}")
            check(f"--{name}" in bash and (not letter or letter in bash), f"bash: {command} --{name}")


@test("man pages come by three names and nothing is taken for a macro by mistake")
def _():
    check_same(page("convert"), page("dragoman-convert"))
    check_same(page("dragoman"), succeeded(run("__man")).out.decode())
    for name in ["dragoman"] + COMMANDS:
        text = page(name)
        check(text.startswith(".TH DRAGOMAN"), text[:100])
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
            check(text.count(f".SH {section}\n") == 1, f"{name}: section {section}")
        for line in text.splitlines():
            check(line, f"{name}: an empty line")
            if line[0] in ".'":
                check(re.match(r"\.(TH .*|SH [A-Z ]+|PP|TP|RS 4|RE|nf|fi)$", line), f"{name}: {line}")
            escapes = re.findall(r"\\(?:f.|\(..|.)", line)
            check(set(escapes) <= {"\\-", "\\fB", "\\fI", "\\fR", "\\(aq", "\\(ti", "\\(ha", "\\e", "\\&"}, f"{name}: {escapes}")
        if shutil.which("groff"):
            p = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=text.encode(), capture_output=True)
            check(p.returncode == 0 and not p.stderr, p.stderr.decode())


def bash_completes(*words):
    """What bash offers for the last of these words."""
    script = write(os.path.join(folder(), "dragoman.bash"), run("__completion", "bash").out)
    quoted = " ".join("'" + w + "'" for w in words)
    ended = shell(f"source {script}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _dragoman; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
    check_same(ended.err, "", "stderr of the completion")
    return ended.out.decode().split()


@test("bash completes commands, options, values, arguments and files")
def _():
    write(os.path.join(FOLDER, "some.json"), "{}")
    formats = [f["name"] for f in json.loads(succeeded(run("formats", "--json")).out)["formats"]]
    for words, want in [
            (["dragoman", ""], COMMANDS),
            (["dragoman", "c"], ["card", "connect", "convert", "compact"]),
            (["dragoman", "--v"], ["--version"]),
            (["dragoman", "convert", "--fr"], ["--from", "--frame"]),
            (["dragoman", "convert", "--to", ""], formats),
            (["dragoman", "convert", "--from", "="], ["auto"] + formats),
            (["dragoman", "convert", "--from", "=", "openai-c"], ["openai-chat"]),
            (["dragoman", "convert", "-f", "a2a-1.0", "-t", "openai-c"], ["openai-chat"]),
            (["dragoman", "convert", "--frame", "l"], ["lines"]),
            (["dragoman", "convert", "--as", "r"], ["response", "request"]),
            (["dragoman", "convert", "--answer-source", ""], ["auto", "status"]),
            (["dragoman", "convert", "--object", "ca"], ["cancel-request", "card"]),
            (["dragoman", "convert", "--seed", ""], []),
            (["dragoman", "convert", "-o", "some.j"], ["some.json"]),
            (["dragoman", "convert", "--to", "=", "a2a-1.0", "some.j"], ["some.json"]),
            (["dragoman", "formats", "--json", ""], formats),
            (["dragoman", "formats", "a2a-1.0", "openai-c"], ["openai-chat"]),
            (["dragoman", "formats", "a2a-1.0", "a2a-0.3", ""], []),
            (["dragoman", "help", "f"], ["formats"]),
            (["dragoman", "db", "ba"], ["backup"])]:
        check_same(bash_completes(*words), want, " ".join(words))


@test("the shells that are here can parse their completions")
def _():
    for name in ("bash", "zsh", "fish"):
        if shutil.which(name):
            script = write(os.path.join(folder(), name), run("__completion", name).out)
            p = subprocess.run([name, "-n", script], capture_output=True, env={**os.environ, "HOME": FOLDER})
            check(p.returncode == 0 and not p.stderr, f"{name}: {p.stderr}")


def postgres():
    """The connection string of a PostgreSQL that ends with this process."""
    start = [os.path.join(ROOT, "tests/postgres/server"), "start", "--until", str(os.getpid())]
    return subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout.strip()


def try_examples(command, here, server):
    """How many there were. Where they say 8484 our own server answers; what runs until it is stopped is
    tried elsewhere."""
    ran = 0
    text = succeeded(run(*["help"] + ([command] if command else []))).out.decode()
    for example in re.findall(r"^  # .*\n  (.*)", text.split("Examples:\n")[1], re.M):
        if example.startswith("curl ") or example.startswith("dragoman serve") and "--check" not in example:
            continue
        if "mcp.example.com" in example:
            continue
        example = example.replace("http://127.0.0.1:8484", server.url)
        if "postgres:" in example:
            example = example.replace("postgres:dbname=dragoman", f"postgres:{postgres()} dbname=postgres")
        ended = shell(f"cd {here}; export STATE_DIRECTORY={here}; set -o pipefail; {example}")
        silent = example.startswith(("dragoman db backup", "dragoman lint")) or "db export" in example or " > " in example
        check(ended.status == 0 and (ended.out or silent) and not ended.err, f"{example}\n{ended}")
        ran += 1
    return ran


@test("the examples of every help text work unchanged")
def _():
    tour = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/tour")
    here = folder()
    for name in ("message.json", "task.json", "events.jsonl"):
        shutil.copy(os.path.join(tour, name), here)
    write(os.path.join(here, "agent.py"), "from dragoman.agent import agent\n\n@agent\nasync def main(turn):\n    await turn.write(turn.text)\n")
    with_mcp = folder()
    with open(os.path.join(with_mcp, "dragoman.yaml"), "w", encoding="utf-8") as f:
        json.dump({"mcp": {"files": {"command": [sys.executable, "-I", os.path.join(ROOT, "tests/wire/lib/mcp.py")]}}}, f)
    with Server(agent="demo", store=f"sqlite:{here}/dragoman.db") as demo, Server(agent="bench") as bench:
        ran = sum(try_examples(command, with_mcp if command == "mcp" else here, bench if command == "bench" else demo) for command in [None] + COMMANDS)
    check(ran >= 8, f"only {ran} examples found")


@test("the program is a user of the library: it sees the installed headers and no others")
def _():
    here = os.path.join(ROOT, "src/app/cli")
    for name in sorted(os.listdir(here)):
        if name.endswith((".c", ".h")):
            for header in re.findall(r'^#include "(.*?)"', read(os.path.join(here, name)).decode(), re.M):
                check(header in ("cli.h", "cli_table.h", "cli_lint.h") or name.startswith("test_") or name == "main.c", f"{name} includes {header}")
            check("yyjson" not in read(os.path.join(here, name)).decode(), f"{name} knows yyjson")
