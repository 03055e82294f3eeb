"""unittest that prints TAP. A test is named by its docstring, which ends with the requirements it holds."""
import os
import sys
import traceback
import unittest

TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if not os.environ.get("DRAGOMAN_INSTALLED"):  # else: the one that pip installed
    sys.path.insert(0, os.path.join(TREE, "python"))


class _Tap(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.n = 0

    def _line(self, test, ok, err=None):
        self.n += 1
        name = " ".join((test._testMethodDoc or test._testMethodName.replace("_", " ")).split())
        print(f"{'ok' if ok else 'not ok'} {self.n} - {name}", flush=True)
        for line in "".join(traceback.format_exception(*err)).splitlines() if err else []:
            print(f"# {line}")

    def addSuccess(self, test):
        self._line(test, True)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._line(test, False, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._line(test, False, err)
            print(f"# {subtest._subDescription()}")

    def addError(self, test, err):
        super().addError(test, err)
        if not isinstance(test, unittest.TestCase):  # a class that could not be set up
            print("Bail out!", test, *traceback.format_exception(*err))
            return
        self._line(test, False, err)


def main():
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = _Tap()
    tests.run(result)
    print(f"1..{result.n}")
    sys.exit(0 if result.wasSuccessful() and result.n else 1)
