"""`pip install ./python` into a fresh environment, without a network; and what it says when it cannot."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import tap

HI = ('import dragoman; print(dragoman.convert_a2a_message_to_openai({"role": "user", "parts": [{"kind": "text", '
      '"text": "Hi"}]}), dragoman._library.lib._name)')

EMIT = ('from aion.langgraph.stream import emit_file, emit_data, emit_message, emit_task_metadata; import aion; made = []; '
        'emit_task_metadata(made.append, {"progress": 1}); print(made[0], getattr(aion, "__file__", None))')


def run(*command, env=None, cwd="/"):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "DRAGOMAN_LIB", "VIRTUAL_ENV")}
    # an address without a server: a build that uses the network fails at once
    clean.update({"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                  "PIP_NO_CACHE_DIR": "1"})
    return subprocess.run(command, cwd=cwd, env={**clean, **(env or {})}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=600)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dragoman-venv-")
        cls.bin = os.path.join(cls.folder, "bin")
        made = run(sys.executable, "-m", "venv", cls.folder)
        assert made.returncode == 0, made.stdout

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def pip(self, *arguments, **more):
        return run(os.path.join(self.bin, "python"), "-m", "pip", *arguments, **more)

    def python(self, code):
        return run(os.path.join(self.bin, "python"), "-c", code)

    def test_1_wheel(self):
        """pip installs it from the tree, with its library"""
        p = self.pip("install", os.path.join(tap.TREE, "python"))
        self.assertEqual(p.returncode, 0, p.stdout)
        p = self.python(HI)
        self.assertIn("({'role': 'user', 'content': 'Hi'}, [])", p.stdout)
        self.assertIn(os.path.join(self.folder, "lib"), p.stdout)
        p = self.python(EMIT)
        self.assertEqual(p.stdout, "{'a2a': {'type': 'task_metadata', 'metadata': {'progress': 1}}} None\n")
        p = self.python("import dragoman; print(dragoman._extension.native.__file__)")
        self.assertIn(os.path.join(self.folder, "lib"), p.stdout)
        p = self.pip("check")
        self.assertEqual(p.returncode, 0, p.stdout)
        p = self.pip("show", "-f", "dragoman")
        for line in ("Name: dragoman", "dragoman/py.typed", "dragoman/libdragoman.so", "dragoman/libdragoman-agent.so", "dragoman/_native.abi3.so",
                     "dragoman/__init__.py"):
            self.assertIn(line, p.stdout)

    def test_2_tests(self):
        """the tests pass with what was installed"""
        for program, without in (("functions", ""), ("functions", "1"), ("convert", ""), ("native", ""), ("agent", "")):
            p = run(os.path.join(self.bin, "python"), os.path.join(tap.TREE, "python", "tests", f"test_{program}.py"),
                    env={"DRAGOMAN_INSTALLED": "1", "DRAGOMAN_NO_EXTENSION": without})
            self.assertEqual(p.returncode, 0, p.stdout)

    def test_3_uninstall(self):
        """pip takes it away again, all of it"""
        self.assertEqual(self.pip("uninstall", "-y", "dragoman").returncode, 0)
        left = [os.path.join(d, f) for d, folders, files in os.walk(self.folder) for f in folders + files if "dragoman" in f]
        self.assertEqual(left, [])

    def test_4_editable(self):
        """pip installs it where it is"""
        p = self.pip("install", "-e", os.path.join(tap.TREE, "python"))
        self.assertEqual(p.returncode, 0, p.stdout)
        self.assertIn(os.path.join(tap.TREE, "build", "libdragoman.so"), self.python(HI).stdout)
        self.assertEqual(self.pip("uninstall", "-y", "dragoman").returncode, 0)

    def test_5_wrong_library(self):
        """a missing library is an error when the wheel is built"""
        p = self.pip("install", os.path.join(tap.TREE, "python"), env={"DRAGOMAN_LIB": "/nowhere/libdragoman.so"})
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("DRAGOMAN_LIB=/nowhere/libdragoman.so is no libdragoman.so", p.stdout)

    def test_6_nothing_to_build_with(self):
        """a tree that is not built, without meson: pip says what to do"""
        with tempfile.TemporaryDirectory() as tree:
            shutil.copytree(os.path.join(tap.TREE, "python"), os.path.join(tree, "python"),
                            ignore=shutil.ignore_patterns("__pycache__"))
            for f in ("meson.build", "LICENSE"):
                shutil.copy(os.path.join(tap.TREE, f), tree)
            p = self.pip("install", os.path.join(tree, "python"), env={"PATH": self.bin})
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("no meson to build one. Run `make` there first", p.stdout)


if __name__ == "__main__":
    tap.main()
