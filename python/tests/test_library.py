"""Finding libdragoman.so, and the error if it is not found."""
import ctypes.util
import os
import subprocess
import sys
import unittest

import tap

import dragoman
from dragoman import _library

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(dragoman.__file__)))


def run(code, **env):
    return subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": PACKAGE, **env}, cwd="/",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)


class Library(unittest.TestCase):
    def test_named(self):
        """DRAGOMAN_LIB names the library"""
        p = run("import dragoman._library; print(dragoman._library.lib._name)", DRAGOMAN_LIB=_library.lib._name)
        self.assertEqual(p.stdout.strip(), _library.lib._name, p.stderr)

    def test_absent(self):
        """a library that is not there is an ImportError that says what to do"""
        p = run("from dragoman import convert", DRAGOMAN_LIB="/nowhere/libdragoman.so")
        self.assertIn("ImportError: dragoman needs libdragoman.so", p.stderr)
        self.assertIn("/nowhere/libdragoman.so: not there", p.stderr)
        self.assertIn("DRAGOMAN_LIB=", p.stderr)

    def test_agents_do_not_need_it(self):
        """agents and workers are imported without the library"""
        p = run("import dragoman.agent, dragoman.worker, dragoman.testing; print('fine')", DRAGOMAN_LIB="/nowhere/libdragoman.so")
        self.assertEqual(p.stdout.strip(), "fine", p.stderr)

    def test_another(self):
        """a library that is another one is refused"""
        p = run("import dragoman; dragoman.convert", DRAGOMAN_LIB=ctypes.util.find_library("c"))
        self.assertIn("of another version, it has no dgm_free", p.stderr)

    def test_version(self):
        """the version is the library's"""
        with open(os.path.join(tap.TREE, "meson.build"), encoding="utf-8") as f:
            self.assertIn(f"version: '{dragoman.__version__}'", f.read())

    def test_errors_have_their_layout(self):
        """dgm_err is laid out as the header has it"""
        # a fault in options has a pointer, one of syntax has a place: all members are seen
        with self.assertRaises(dragoman.ConvertError) as caught:
            dragoman.convert('[{"role": "user",\n "parts": [x', "a2a-0.3", "openai-chat")
        e = caught.exception
        self.assertEqual((e.code, e.pointer, e.line, e.column), ("PARSE", "/0/parts/0", 2, 12))
        self.assertNotIn("\0", e.message)

    def test_all(self):
        """the package shows what it promises"""
        for name in dragoman.__all__:
            self.assertTrue(hasattr(dragoman, name), name)


if __name__ == "__main__":
    tap.main()
