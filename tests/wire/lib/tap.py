"""Tests and their names, and what they check with. Prints TAP."""
import json
import os
import re
import sys
import threading
import time
import traceback

TESTS = []


class Failure(Exception):
    pass


class Skip(Exception):
    pass


class Test:
    def __init__(self, name, run, timeout, module):
        self.name, self.run, self.timeout, self.module = name, run, timeout, module


def test(name, timeout=120):
    """Registers a function. Requirement ids are in brackets at the end of the name."""
    def keep(function):
        TESTS.append(Test(name, function, timeout, function.__module__))
        return function
    return keep


def each(name, cases, timeout=120):
    """One test per case: `{}` in the name is the case's own name. A case is a value with a `name`, a
    string, or a tuple that begins with one; a tuple's rest becomes the arguments."""
    def keep(function):
        for case in cases:
            label = case if isinstance(case, str) else case[0] if isinstance(case, tuple) else case.name
            label = label if isinstance(label, str) else label.name
            args = case[1:] if isinstance(case, tuple) and isinstance(case[0], str) else case if isinstance(case, tuple) else (case,)
            TESTS.append(Test(name.replace("{}", label), lambda args=args: function(*args), timeout, function.__module__))
        return function
    return keep


# ---- checking ----------------------------------------------------------------------------------------

def check(good, why="not so"):
    if not good:
        raise Failure(str(why() if callable(why) else why))


def same(got, want, what="this"):
    check(got == want, lambda: f"{what} is {show(got)}, wanted {show(want)}")


def show(value, limit=1500):
    text = value if isinstance(value, str) else repr(value) if isinstance(value, bytes) else \
        json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= limit else text[:limit] + f"... ({len(text)} characters)"


def soon(condition, why, seconds=30.0, step=0.02):
    """Waits until condition() is true; its value."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, why)
        time.sleep(step)


class Part:
    """`2/3`: the tests 2, 5, 8... of a suite, so that a slow suite can be run as several that do not wait for each other."""

    def __init__(self, text):
        part, n = text.split("/")
        self.part, self.n = int(part), int(n)
        if not 1 <= self.part <= self.n:
            raise ValueError(text)

    def of(self, tests):
        return tests[self.part - 1::self.n]


# ---- running -----------------------------------------------------------------------------------------

def run_one(test):
    """None, or what went wrong; ('skip', why)."""
    outcome = []

    def body():
        try:
            test.run()
            outcome.append(None)
        except Skip as e:
            outcome.append(("skip", str(e)))
        except Failure as e:
            where = [f for f in traceback.extract_tb(e.__traceback__) if os.sep + "lib" + os.sep not in f.filename]
            at = f"\nat {os.path.basename(where[-1].filename)}:{where[-1].lineno}: {where[-1].line}" if where else ""
            outcome.append(str(e) + at)
        except Exception:
            outcome.append(traceback.format_exc())

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(test.timeout)
    return outcome[0] if outcome else f"no end after {test.timeout} s"


def main(tests, known=()):
    """known: names of tests whose failure is a known fault of another server than ours (TODO in TAP)."""
    print(f"1..{len(tests)}", flush=True)
    failed, unexpected = 0, []
    for n, t in enumerate(tests, 1):
        began = time.monotonic()
        trouble = run_one(t)
        took = time.monotonic() - began
        plain = re.sub(r" \[R[^\]]*\]$", "", t.name)
        if isinstance(trouble, tuple):
            print(f"ok {n} - {t.name} # SKIP {trouble[1]}")
        elif trouble is None:
            print(f"ok {n} - {t.name}")
            if plain in known:
                unexpected.append(plain)
        else:
            todo = plain in known
            failed += not todo
            print(f"not ok {n} - {t.name}{' # TODO known' if todo else ''}")
            print("\n".join("# " + line for line in trouble.splitlines()))
        if took > 5:
            print(f"# took {took:.1f} s")
        sys.stdout.flush()
    for name in unexpected:
        print(f"# passes although listed as known to fail: {name}")
    return failed
