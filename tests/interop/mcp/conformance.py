"""The client scenarios of @modelcontextprotocol/conformance, for both revisions. Scenarios in exceptions.txt are not run."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "..", "wire"))
from lib import tap  # noqa: E402
from lib.tap import check, test  # noqa: E402

DRAGOMAN = os.path.join(ROOT, os.environ.get("DRAGOMAN", "build/dragoman"))
RUNNER = [shutil.which("node"), os.path.join(HERE, "node_modules/@modelcontextprotocol/conformance/dist/index.js")]


def exceptions():
    """Prefixes of names, each with its reason behind a colon."""
    with open(os.path.join(HERE, "exceptions.txt"), encoding="utf-8") as f:
        return [line.split(":")[0].strip() for line in f if line.strip() and not line.startswith("#")]


def scenarios(revision):
    listed = subprocess.run([*RUNNER, "list", "--requirements", revision], capture_output=True, text=True, timeout=60).stdout
    part = listed.split("Client scenarios", 1)[1].split("\n\n", 1)[0]
    return [name for name in re.findall(r"^\s*- (\S+)", part, re.M) if not name.startswith(tuple(exceptions()))]


def add(revision, name):
    @test(f"{revision}: {name}")
    def _():
        done = subprocess.run([*RUNNER, "client", "--command", f"{DRAGOMAN} mcp-conformance", "--scenario", name, "--spec-version", revision],
                              capture_output=True, text=True, timeout=110)
        output = done.stdout + done.stderr
        check(done.returncode == 0 and "OVERALL: PASSED" in output, output[-3000:])


if __name__ == "__main__":
    for REVISION, FEWEST in (("2026-07-28", 7), ("2025-11-25", 4)):
        NAMES = scenarios(REVISION)
        for NAME in NAMES:
            add(REVISION, NAME)

        @test(f"{REVISION}: the list of scenarios was read")
        def _(n=len(NAMES), fewest=FEWEST):
            check(n >= fewest, f"{n} scenarios")
    sys.exit(1 if tap.main(tap.TESTS) else 0)
