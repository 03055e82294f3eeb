"""The examples of the docs run unchanged."""
import doctest
import os
import subprocess
import sys
import unittest

import tap


class Docs(unittest.TestCase):
    def test_page(self):
        """every example of docs/python.md has the output that the page shows"""
        page = os.path.join(tap.TREE, "docs", "python.md")
        with open(page, encoding="utf-8") as f:
            text = f.read()
        test = doctest.DocTestParser().get_doctest(text, {}, "python.md", page, 0)
        said = []
        result = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(test, out=said.append)
        self.assertEqual(result.failed, 0, "".join(said))
        self.assertGreater(result.attempted, 15)

    def test_programs(self):
        """the Python programs of examples/ print the text of their .expected files"""
        folder = os.path.join(tap.TREE, "examples")
        programs = sorted(f for f in os.listdir(folder) if f.endswith(".py"))
        self.assertGreater(len(programs), 0)
        for program in programs:
            p = subprocess.run([sys.executable, program], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[:2]), "PYTHONUTF8": "1"},
                               encoding="utf-8", timeout=60)
            with open(os.path.join(folder, program + ".expected"), encoding="utf-8") as f:
                self.assertEqual(p.stdout, f.read(), program)


if __name__ == "__main__":
    tap.main()
