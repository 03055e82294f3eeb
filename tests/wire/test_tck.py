"""docs/internals/tck.md tells which of our tests hold which requirement of the conformance kits: they have to be there."""
import glob
import importlib
import os
import re

from lib import tap
from lib.server import ROOT
from lib.tap import check, test

HERE = os.path.dirname(os.path.abspath(__file__))


@test("every test that docs/internals/tck.md names is there, and every row names one or says why not")
def _():
    for path in glob.glob(os.path.join(HERE, "test_*.py")):
        importlib.import_module(os.path.basename(path)[:-3])
    names = [f"{t.module[5:]}: {t.name}" for t in tap.TESTS]
    with open(os.path.join(ROOT, "docs/internals/tck.md"), encoding="utf-8") as f:
        page = f.read().partition("\n## Exceptions")[0]
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| id", "| file"))]
    check(len(rows) > 100, f"{len(rows)} rows")
    lost = []
    for row in rows:
        told = re.findall(r"`(\w+: [^`]+)`", row)
        if not told and not re.search(r"see Not|unit tests of|every answer of", row):
            lost.append(f"no test in {row}")
        lost += [f"no test begins with {name!r}" for name in told if not any(n.startswith(name) for n in names)]
    check(not lost, "\n".join(lost))
